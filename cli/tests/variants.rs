//! `galatea variants` as a user calls it, on lines as the macros write them; a script stands for the assembler.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const LINES: &str = r#"{"kernel":"add","file":"src/a.rs","values":{"T":"f32","B":"512"},"num_warps":4,"num_ctas":1,"num_stages":3,"maxnreg":null,"target":"sm_80","shared_bytes":0,"compile_us":2301,"name":"add-11-512-w4-sm_80.ptx","ptx":"// twenty registers\n.target sm_80\n"}
{"kernel":"add","file":"src/a.rs","values":{"T":"f32","B":"4096"},"num_warps":8,"num_ctas":2,"num_stages":3,"maxnreg":64,"target":"sm_90a","shared_bytes":128,"compile_us":901,"name":"add-11-4096-w8-sm_90a.ptx","ptx":"// forty\n.target sm_90a\n"}
{"kernel":"add","file":"src/a.rs","values":{"T":"f32","B":"4096"},"num_warps":8,"num_ctas":2,"num_stages":3,"maxnreg":64,"target":"sm_80","pruned":"sm_80 has no clusters of 2 CTAs"}
{"kernel":"add","file":"src/a.rs","values":{"T":"f32","B":"512"},"num_warps":4,"num_ctas":1,"num_stages":3,"maxnreg":null,"target":"sm_80","shared_bytes":0,"compile_us":2800,"name":"add-11-512-w4-sm_80.ptx","ptx":"// twenty registers\n.target sm_80\n"}
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
fn an_assembler_tells_registers_and_spills_and_orders_by_them() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("variants.jsonl"), LINES).unwrap();
    let ptxas = folder.path().join("ptxas");
    // The tools that the script uses are found by their places.
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
fn what_is_wrong_is_said() {
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

#[cfg(unix)]
#[test]
fn who_reads_may_stop() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("variants.jsonl"), LINES).unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = Command::new(env!("CARGO_BIN_EXE_galatea")).arg("variants").arg(folder.path()).stdout(writer).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
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
            writeln!(file, "{}", line.to_string().replace('\n', " ")).unwrap();
            r#"const _: Option<&str> = option_env!("GALATEA_PTX_DIR");"#.parse().unwrap()
        }
        "##,
    );
    write("Cargo.toml", &manifest("listed", "[dependencies]\nwriter = { path = \"writer\" }\n[workspace]"));
    let line = LINES.lines().next().unwrap().replacen('{', r#"{"package":"listed","crate":"listed","#, 1).replace("null", "0");
    write("src/lib.rs", &format!("writer::write! {{ {line} }}"));
}

#[test]
fn cargo_galatea_lists_the_same_each_time() {
    let folder = tempfile::tempdir().unwrap();
    crates(folder.path());
    let list = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-galatea"));
        command.current_dir(folder.path()).args(["galatea", "variants", "--json"]).args(arguments);
        command.env_remove("CARGO_TARGET_DIR").env_remove("GALATEA_PTXAS").env("CARGO_NET_OFFLINE", "true");
        let Output { status, stdout, stderr } = command.output().unwrap();
        let (out, err) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
        assert!(status.success(), "{out}{err}");
        let list: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"));
        list.as_array().unwrap().len()
    };
    let runs: [&[&str]; 5] = [&[], &[], &["--release"], &["--release"], &[]];
    assert_eq!(runs.map(list), [1; 5]);
}

#[test]
fn cargo_galatea_fails_as_cargo_does() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-galatea"));
    let output = command.args(["galatea", "variants", "--manifest-path", "nowhere/Cargo.toml"]).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(101) && output.stdout.is_empty(), "{err}");
    assert!(err.starts_with("error: manifest path `nowhere/Cargo.toml` does not exist"), "{err}");
}
