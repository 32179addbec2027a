//! `galatea sim` as a user calls it.

use std::process::{Command, Output};

const ADD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernel-lang/tests/filetests/ptx/sm_80/vector_add.ptx");

fn galatea(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_galatea")).args(arguments).env("CARGO_TERM_COLOR", "never").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A vector add of 1000 elements: each pointer is followed by its length.
fn add(more: &[&str]) -> Output {
    let arguments = ["f32:1000=iota", "u64=1000", "f32:1000=ones", "u64=1000", "f32:1000=nothing", "u64=1000", "i64=1000"];
    let arguments = arguments.iter().flat_map(|argument| ["--arg", argument]);
    let arguments: Vec<&str> =
        ["sim", ADD, "--grid", "1", "--block", "128"].into_iter().chain(arguments).chain(more.iter().copied()).collect();
    galatea(&arguments)
}

#[test]
fn ptx_runs_and_shows_its_memory() {
    let output = add(&["--show", "4"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let out = text(&output.stdout);
    assert!(out.contains("argument 4: 1 2 3 4\n"), "{out}");
    assert!(out.contains("ran without a fault on a simulated H200"), "{out}");
}

#[test]
fn the_report_counts_bytes() {
    let out = text(&add(&["--report", "--gpu", "a100"]).stdout);
    assert!(out.contains("simulated A100"), "{out}");
    let total = out.lines().find(|line| line.starts_with("total")).unwrap();
    assert!(total.contains(" 12000 "), "{total}");
}

#[test]
fn a_fault_says_where_and_fails() {
    // The kernel is told that there is more memory than there is.
    let arguments = ["f32:1000=iota", "u64=1024", "f32:1024=ones", "u64=1024", "f32:1024", "u64=1024", "i64=1024"];
    let arguments = arguments.iter().flat_map(|argument| ["--arg", argument]);
    let arguments: Vec<&str> = ["sim", ADD].into_iter().chain(arguments).collect();
    let output = galatea(&arguments);
    assert!(!output.status.success());
    let error = text(&output.stderr);
    assert!(error.contains("outside every allocation") && error.contains("ld.global.nc"), "{error}");
    assert!(error.contains("\n  element 1000 of argument `param_0`, which has 1000 elements: 1 after the last\n"), "{error}");
}

#[test]
fn programs_that_write_one_element_race_unless_that_is_allowed() {
    let softmax = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernel-lang/tests/filetests/ptx/sm_80/softmax_rows.ptx");
    // Each program writes the same four rows.
    let arguments =
        ["--arg", "f32:512=iota", "--arg", "u64=512", "--arg", "f32:512", "--arg", "u64=512", "--grid", "2", "--shared", "1024"];
    let arguments: Vec<&str> = ["sim", softmax].into_iter().chain(arguments).collect();
    let output = galatea(&arguments);
    let error = text(&output.stderr);
    assert!(!output.status.success() && error.contains("of program [0, 0, 0]") && error.contains("in program [1, 0, 0]"), "{error}");
    let output = galatea(&[&arguments[..], &["--allow-races"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn mistakes_on_the_command_line_are_explained() {
    let cases: [(&[&str], &str); 5] = [
        (&["sim"], "required"),
        (&["sim", "no-such-file.ptx"], "cannot read `no-such-file.ptx`"),
        (&["sim", ADD, "--arg", "f31:4"], "`f31` is no type"),
        (&["sim", ADD, "--arg", "u64=1"], "help: one `--arg` for each"),
        (&["sim", ADD, "--kernel", "other"], "help: there are vector_add"),
    ];
    for (arguments, part) in cases {
        let output = galatea(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(text(&output.stderr).contains(part), "{arguments:?}: {}", text(&output.stderr));
    }
}

/// A module whose second entry is for launches with tensor maps.
#[test]
fn a_module_with_a_persistent_entry_runs_its_usual_entry() {
    let entry = |name: &str| format!(".visible .entry {name}(.param .u64 x)\n.reqntid 32, 1, 1\n{{\n    ret;\n}}\n\n");
    let comment = "// persistent entry: second
// 32 threads and 0 bytes of shared memory a CTA, 1 CTAs a multiprocessor
// launch values:
// kernel @launch_values(%x: i64) {
//     %2 = launch_value () {
//         %0 = const {value = 1} : i64
//         %1 = eq %0, %x : bool
//         yield %1
//     } : bool
//     return
// }

";
    let head = ".version 8.0\n.target sm_90a\n.address_size 64\n\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("two.ptx");
    let run = |comment: &str, more: &[&str]| {
        std::fs::write(&path, [head, &entry("first"), comment, &entry("second")].concat()).unwrap();
        galatea(&[&["sim", path.to_str().unwrap(), "--block", "32", "--arg", "u64=1"], more].concat())
    };
    let output = run(comment, &[]);
    assert!(output.status.success() && text(&output.stdout).contains("`first` ran"), "{}", text(&output.stderr));
    let output = run(comment, &["--kernel", "second"]);
    assert!(!output.status.success() && text(&output.stderr).contains("help: there are first\n"), "{}", text(&output.stderr));
    let output = run(&comment.replace("32 threads", "33 threads"), &[]);
    assert!(
        text(&output.stderr).contains("two.ptx: the comment with the persistent entry: a CTA has whole warps"),
        "{}",
        text(&output.stderr)
    );
    let output = run("", &[]);
    assert!(text(&output.stderr).contains("the file has several kernels"), "{}", text(&output.stderr));
}

#[test]
fn a_program_that_does_not_use_the_simulator_gets_a_note() {
    let output = galatea(&["sim", "--report", "--", env!("CARGO_BIN_EXE_galatea"), "--version"]);
    assert!(output.status.success());
    assert!(text(&output.stderr).contains("no kernel ran on a simulated GPU"));
}

#[cfg(unix)]
#[test]
fn the_status_is_that_of_the_program() {
    for (script, code) in [("exit 0", 0), ("exit 3", 3), ("kill -KILL $$", 128 + 9)] {
        assert_eq!(galatea(&["sim", "--", "sh", "-c", script]).status.code(), Some(code), "{script}");
    }
}
