//! `galatea variants` as a user calls it, on lines as the macros write them; a script stands for the assembler.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const LINES: &str = r#"{"kernel":"add","file":"src/a.rs","values":{"T":"f32","B":"512"},"num_warps":4,"num_ctas":1,"num_stages":8,"maxnreg":null,"target":"sm_80","shared_bytes":0,"compile_us":2301,"name":"add-11-512-w4-sm_80.ptx","ptx":"// twenty registers\n.target sm_80\n"}
{"kernel":"add","file":"src/a.rs","values":{"T":"f32","B":"4096"},"num_warps":8,"num_ctas":2,"num_stages":8,"maxnreg":64,"target":"sm_90a","shared_bytes":128,"compile_us":901,"name":"add-11-4096-w8-sm_90a.ptx","ptx":"// forty\n.target sm_90a\n"}
{"kernel":"add","file":"src/a.rs","values":{"T":"f32","B":"4096"},"num_warps":8,"num_ctas":2,"num_stages":8,"maxnreg":64,"target":"sm_80","pruned":"sm_80 has no clusters of 2 CTAs"}
{"kernel":"add","file":"src/a.rs","values":{"T":"f32","B":"512"},"num_warps":4,"num_ctas":1,"num_stages":8,"maxnreg":null,"target":"sm_80","shared_bytes":0,"compile_us":2800,"name":"add-11-512-w4-sm_80.ptx","ptx":"// twenty registers\n.target sm_80\n"}
"#;

/// Its arguments are those of `ptxas`: the last is the file.
const PTXAS: &str = r#"#!/bin/sh
for file; do :; done
registers=20
if grep -q forty "$file" 2>/dev/null; then registers=40; fi
echo "ptxas info    : Compiling entry function 'add' for 'sm_80'"
echo "    0 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads"
echo "ptxas info    : Used $registers registers, used 0 barriers, 380 bytes cmem[0]"
"#;

fn galatea(folder: &Path, arguments: &[&str]) -> (String, String, bool) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_galatea"));
    command.current_dir(folder).arg("variants").args(arguments).env_remove("GALATEA_PTXAS").env("PATH", folder.join("nothing"));
    command.env("CARGO_TERM_COLOR", "never");
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(stdout), text(stderr), status.success())
}

#[test]
fn variants_are_listed_once_and_what_was_left_out_has_a_note() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("variants.jsonl"), LINES).unwrap();
    let (out, err, success) = galatea(folder.path(), &["."]);
    assert!(success && err.is_empty(), "{out}{err}");
    let expected = "\
KERNEL  VALUES             SCHEDULE                                   TARGET  REGISTERS  SPILLS  SHARED   PTX  COMPILED IN
add     T = f32, B = 512   num_warps = 4                              sm_80           -       -     0 B  34 B       2.3 ms
add     T = f32, B = 4096  num_warps = 8, num_ctas = 2, maxnreg = 64  sm_90a          -       -   128 B  24 B       0.9 ms
2 variants, 1 left out
note: add, T = f32, B = 4096, num_warps = 8, num_ctas = 2, maxnreg = 64, sm_80: sm_80 has no clusters of 2 CTAs
help: registers and spills are what NVIDIA's assembler says: `--ptxas PATH`
";
    assert_eq!(out, expected);
    assert_eq!(galatea(folder.path(), &["variants.jsonl"]).0, out, "the file itself");
}

#[cfg(unix)]
#[test]
fn an_assembler_adds_registers_and_spills_to_sort_by() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("variants.jsonl"), LINES).unwrap();
    let ptxas = folder.path().join("ptxas");
    // The tools that the script uses are found by their paths.
    fs::write(&ptxas, PTXAS.replace("grep", "PATH=/usr/bin:/bin grep")).unwrap();
    fs::set_permissions(&ptxas, fs::Permissions::from_mode(0o755)).unwrap();
    let (out, err, success) = galatea(folder.path(), &[".", "--ptxas", "./ptxas", "--sort", "registers"]);
    assert!(success && err.is_empty(), "{out}{err}");
    let lines: Vec<Vec<&str>> = out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(lines[1].contains(&"sm_90a") && lines[1].windows(3).any(|words| words == ["40", "12", "B"]), "{out}");
    assert!(lines[2].contains(&"sm_80") && lines[2].windows(3).any(|words| words == ["20", "12", "B"]), "{out}");
    assert!(!out.contains("help: "), "{out}");

    let (out, _, _) = galatea(folder.path(), &[".", "--ptxas", "./ptxas", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (list.as_array().map(Vec::len), &list[0]["registers"], &list[0]["values"]["B"]),
        (Some(3), &20.into(), &"512".into()),
        "{out}"
    );
    assert_eq!((&list[0]["compile_us"], &list[0]["ptx_bytes"], &list[0]["spill_bytes"]), (&2301.into(), &34.into(), &12.into()), "{out}");
    assert!(list.as_array().unwrap().iter().any(|entry| entry["pruned"] == "sm_80 has no clusters of 2 CTAs"), "{out}");
}

#[test]
fn mistakes_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let fail = |arguments: &[&str]| {
        let (out, err, success) = galatea(folder.path(), arguments);
        assert!(!success && out.is_empty(), "{out}{err}");
        err
    };
    assert!(fail(&["."]).contains("variants.jsonl") && fail(&["."]).contains("help: a build with `GALATEA_PTX_DIR=.` writes it"));
    fs::write(folder.path().join("variants.jsonl"), format!("{LINES}{{}}\n")).unwrap();
    assert!(fail(&["."]).contains("variants.jsonl: line 5 tells of no variant"));
    fs::write(folder.path().join("variants.jsonl"), LINES).unwrap();
    assert!(fail(&[".", "--ptxas", "nowhere"]).contains("`nowhere` is no assembler that can be run"));
}

/// Two crates: `listed`, and a macro that it uses, which writes a line and mentions the variable as those of Galatea do for each kernel that they compile.
fn crates(folder: &Path) {
    let write = |file: &str, text: &str| {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let manifest = |name: &str, rest: &str| format!("[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n{rest}\n");
    write("writer/Cargo.toml", &manifest("writer", "[lib]\nproc-macro = true"));
    write(
        "writer/src/lib.rs",
        r##"
        #[proc_macro]
        pub fn write(line: proc_macro::TokenStream) -> proc_macro::TokenStream {
            use std::io::Write;
            let folder = std::env::var_os("GALATEA_PTX_DIR").unwrap();
            let file = std::path::Path::new(&folder).join("variants.jsonl");
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file).unwrap();
            // Several compilers append to this file at the same time: a line is one write, under a lock.
            let _ = file.lock();
            let line = line.to_string().replace('\n', " ") + "\n";
            file.write_all(line.as_bytes()).unwrap();
            r#"const _: Option<&str> = option_env!("GALATEA_PTX_DIR");"#.parse().unwrap()
        }
        "##,
    );
    let rest = "[dependencies]\nwriter = { path = \"writer\" }\n[features]\nwide = []\n[profile.small]\ninherits = \"dev\"\n[workspace]";
    write("Cargo.toml", &manifest("listed", rest));
    let line = |krate: &str, kernel: &str| {
        let owner = format!(r#"{{"package":"listed","crate":"{krate}","#);
        let line =
            LINES.lines().next().unwrap().replacen('{', &owner, 1).replacen(r#""add""#, &format!("{kernel:?}"), 1).replace("null", "0");
        format!("writer::write! {{ {line} }}\n")
    };
    let library = line("listed", "add") + "#[cfg(feature = \"wide\")]\n" + &line("listed", "wide");
    write("src/lib.rs", &library);
    write("src/main.rs", &(line("listed", "of_main") + "fn main() {}"));
    for (folder, name, kernel) in [("examples", "show-it", "shown"), ("tests", "check", "checked"), ("benches", "speed", "timed")] {
        let krate = name.replace('-', "_");
        write(&format!("{folder}/{name}.rs"), &(line(&krate, kernel) + "fn main() {}"));
    }
}

/// Runs `cargo galatea variants` in a folder.
fn cargo_galatea(folder: &Path, arguments: &[&str]) -> (String, String, Option<i32>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-galatea"));
    command.current_dir(folder).args(["galatea", "variants"]).args(arguments).env("CARGO_TERM_COLOR", "never");
    command.env_remove("CARGO_TARGET_DIR").env_remove("GALATEA_PTXAS").env("CARGO_NET_OFFLINE", "true");
    let Output { status, stdout, stderr } = command.output().unwrap();
    (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap(), status.code())
}

/// The kernels that `cargo galatea variants` lists, sorted.
fn kernels(folder: &Path, arguments: &[&str]) -> String {
    let (out, err, code) = cargo_galatea(folder, &[&["--json"], arguments].concat());
    assert_eq!(code, Some(0), "{arguments:?}: {out}{err}");
    let list: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"));
    let mut names: Vec<&str> = list.as_array().unwrap().iter().map(|variant| variant["kernel"].as_str().unwrap()).collect();
    names.sort_unstable();
    names.join(" ")
}

#[test]
fn cargo_galatea_lists_the_same_each_time() {
    let folder = tempfile::tempdir().unwrap();
    crates(folder.path());
    let runs: [&[&str]; 5] = [&[], &[], &["--release"], &["--release"], &[]];
    assert_eq!(runs.map(|arguments| kernels(folder.path(), arguments)), ["add of_main"; 5]);
}

#[test]
fn cargo_galatea_has_the_options_of_cargo() {
    let folder = tempfile::tempdir().unwrap();
    crates(folder.path());
    let of = |arguments: &[&str]| kernels(folder.path(), arguments);
    // Targets that are needed, such as the library of an example, are not listed.
    assert_eq!(of(&["--example", "show-it"]), "shown");
    assert_eq!(of(&["--test", "check", "--bench=sp*"]), "checked timed");
    assert_eq!(of(&["--lib", "--all-features"]), "add wide");
    assert_eq!(of(&["--lib", "-F", "wide", "--profile", "small"]), "add wide");
    assert!(folder.path().join("target/galatea-variants/small").exists());
    assert_eq!(of(&["--all-targets", "--no-default-features", "--locked", "--offline"]), "add checked of_main shown timed");
    assert_eq!(of(&["-p", "listed@0.0.0", "--lib", "-q"]), "add");
    assert_eq!(of(&["-p", "writer"]), "", "a dependency without kernels");
    let host = format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS);
    if host == "x86_64-linux" {
        assert_eq!(of(&["--lib", "--target", "x86_64-unknown-linux-gnu", "--target-dir", "elsewhere"]), "add");
        assert!(folder.path().join("elsewhere/galatea-variants/x86_64-unknown-linux-gnu/debug").exists());
    }
    let manifest = folder.path().join("Cargo.toml");
    let elsewhere = tempfile::tempdir().unwrap();
    assert_eq!(kernels(elsewhere.path(), &["--lib", "--manifest-path", manifest.to_str().unwrap()]), "add");

    let (out, err, code) = cargo_galatea(folder.path(), &["--bench", "nothing"]);
    assert!(out.is_empty() && code == Some(101) && err.contains("no bench target named `nothing`"), "{out}{err}");
    let (_, err, code) = cargo_galatea(folder.path(), &["--release", "--profile", "small"]);
    assert!(code == Some(1) && err.contains("'--release' cannot be used with '--profile"), "cargo's own message and code: {err}");
    let (_, err, code) = cargo_galatea(folder.path(), &["--message-format", "json"]);
    assert!(code == Some(1) && err.contains("[possible values: human, short]"), "{err}");
    let (out, err, code) = cargo_galatea(folder.path(), &["-p", "writer"]);
    assert!(code == Some(0) && out == "no kernel is compiled there for values that are known\n", "{out}{err}");
    // Not a folder without a manifest: the folder for temporary files may lie in a package.
    let (_, err, code) = cargo_galatea(elsewhere.path(), &["--manifest-path", "nowhere/Cargo.toml"]);
    assert!(code == Some(101) && err.contains("manifest path `nowhere/Cargo.toml` does not exist"), "{err}");

    fs::write(folder.path().join("src/lib.rs"), "fn broken(").unwrap();
    let (out, err, code) = cargo_galatea(folder.path(), &["--message-format", "short", "--color", "always"]);
    assert!(out.is_empty() && code == Some(101) && err.contains("\u{1b}[") && err.contains("src/lib.rs:1:11: "), "{out}{err}");
}
