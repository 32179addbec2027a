//! The command lines of `galatea` and `cargo galatea`: help, colours, exit codes, and readers that stop.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A command without the variables that choose colours.
fn command(binary: &str) -> Command {
    let mut command = match binary {
        "galatea" => Command::new(env!("CARGO_BIN_EXE_galatea")),
        _ => Command::new(env!("CARGO_BIN_EXE_cargo-galatea")),
    };
    for variable in ["CARGO_TERM_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "NO_COLOR"] {
        command.env_remove(variable);
    }
    command.env("GALATEA_CACHE", "off");
    command
}

fn output(line: &str) -> Output {
    let mut words = line.split(' ');
    command(words.next().unwrap()).args(words).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// `BLESS=1` writes the expected texts.
#[test]
fn help_texts_are_those_of_the_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command_line");
    let commands = [
        ("galatea", "galatea"),
        ("galatea-sim", "galatea sim"),
        ("galatea-explain", "galatea explain"),
        ("galatea-cache", "galatea cache"),
        ("galatea-cache-list", "galatea cache list"),
        ("galatea-cache-show", "galatea cache show"),
        ("galatea-cache-clear", "galatea cache clear"),
        ("galatea-cache-export", "galatea cache export"),
        ("galatea-cache-import", "galatea cache import"),
        ("galatea-tune", "galatea tune"),
        ("galatea-variants", "galatea variants"),
        ("galatea-inspect", "galatea inspect"),
        ("galatea-verify", "galatea verify"),
        ("galatea-run", "galatea run"),
        ("galatea-diff", "galatea diff"),
        ("cargo-galatea", "cargo-galatea galatea"),
        ("cargo-galatea-variants", "cargo-galatea galatea variants"),
    ];
    for (name, line) in commands {
        let output = output(&format!("{line} --help"));
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let (help, file) = (text(&output.stdout), folder.join(format!("{name}.txt")));
        if std::env::var_os("BLESS").is_some() {
            fs::write(&file, &help).unwrap();
        }
        assert_eq!(help, fs::read_to_string(&file).unwrap_or_default(), "{name}: `BLESS=1 cargo test` accepts the new text");
    }
}

#[test]
fn colours_are_those_that_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    let coloured = |arguments: &[&str], variables: &[(&str, &str)]| {
        let Output { stderr, stdout, .. } = command("galatea").args(arguments).envs(variables.iter().copied()).output().unwrap();
        text(&[stderr, stdout].concat()).contains('\u{1b}')
    };
    // An error of ours, one of the command line, and help. Nothing of this is on a terminal.
    let failing = ["cache", "show", "name", "--dir", folder];
    for line in [&failing[..], &["cache", "--nonsense"], &["tune", "--help"]] {
        let with = |more: &[&'static str]| [line, more].concat();
        assert!(!coloured(line, &[]), "{line:?}");
        assert!(coloured(&with(&["--color=always"]), &[]), "{line:?}");
        assert!(coloured(&with(&["--color", "always"]), &[("NO_COLOR", "1"), ("CARGO_TERM_COLOR", "never")]), "{line:?}");
        assert!(coloured(line, &[("CARGO_TERM_COLOR", "always"), ("NO_COLOR", "1")]), "{line:?}");
        assert!(!coloured(&with(&["--color=never"]), &[("CARGO_TERM_COLOR", "always")]), "{line:?}");
        // `CLICOLOR_FORCE` stands for a terminal, which tests do not have.
        assert!(coloured(line, &[("CLICOLOR_FORCE", "1")]), "{line:?}");
        assert!(!coloured(line, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]), "{line:?}");
        assert!(!coloured(line, &[("CLICOLOR_FORCE", "1"), ("CARGO_TERM_COLOR", "never")]), "{line:?}");
    }
}

#[test]
fn titles_of_tables_are_bold_and_data_has_no_colours() {
    let folder = tempfile::tempdir().unwrap();
    let line = r#"{"kernel":"add","file":"a.rs","values":{},"num_warps":4,"target":"sm_80","shared_bytes":0,"compile_us":1,"ptx":""}"#;
    let file = folder.path().join("variants.jsonl");
    fs::write(&file, format!("{line}\n")).unwrap();
    let output = |more: &[&str]| {
        let mut command = command("galatea");
        command.env("PATH", "").env_remove("GALATEA_PTXAS");
        text(&command.args(["variants", "--color", "always"]).arg(&file).args(more).output().unwrap().stdout)
    };
    let table = output(&[]);
    let mut lines = table.lines();
    let titles = lines.next().unwrap();
    assert!(titles.starts_with("\u{1b}[1mKERNEL  VALUES") && titles.ends_with("COMPILED IN\u{1b}[0m"), "{table:?}");
    assert!(lines.all(|line| !line.contains('\u{1b}')), "{table:?}");
    assert!(!output(&["--json"]).contains('\u{1b}'));
}

#[test]
fn exit_codes_distinguish_mistakes_on_the_command_line_from_failures() {
    let cases = [
        ("galatea --version", 0),
        ("galatea help sim", 0),
        ("galatea", 2),
        ("galatea nonsense", 2),
        ("galatea cache list --kind nonsense", 2),
        ("galatea cache list --color sometimes", 2),
        // The caches are off.
        ("galatea cache list", 1),
        ("galatea sim no-such-file.ptx", 1),
        ("galatea variants no-such-folder", 1),
        ("galatea inspect no-such-file.gpk", 1),
        ("galatea verify no-such-file.gpk", 1),
        ("galatea verify x.gpk --target sm_10", 2),
        ("galatea run no-such-file.gpk batch=16", 1),
        ("galatea run x.gpk batch", 2),
        ("galatea diff no-such-file.gpk no-such-file.gpk", 2),
        ("cargo-galatea galatea --version", 0),
        ("cargo-galatea galatea", 1),
        ("cargo-galatea galatea variants --nonsense", 1),
        ("cargo-galatea galatea variants --manifest-path no-such-folder/Cargo.toml", 101),
    ];
    for (line, code) in cases {
        let output = output(line);
        assert_eq!(output.status.code(), Some(code), "{line}: {output:?}");
        assert!(code == 0 || (output.stdout.is_empty() && !output.stderr.is_empty()), "{line}: {output:?}");
    }
}

/// Readers that stop early, as `head` does, are no error.
#[test]
fn a_closed_pipe_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("variants.jsonl"), "").unwrap();
    let lines: [&[&str]; 7] = [
        &["cache", "list", "--dir", "."],
        &["cache", "list", "--json", "--dir", "."],
        &["cache", "export", "--dir", "."],
        &["variants", "."],
        &["variants", ".", "--json"],
        &["--help"],
        &["--version"],
    ];
    for line in lines {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = command("galatea").current_dir(&folder).args(line).stdout(writer).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{line:?}: {output:?}");
    }
    // Nobody reads the messages either.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut failing = command("galatea");
    let status = failing.args(["variants", "no-such-folder"]).stderr(writer).stdout(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(1));
}
