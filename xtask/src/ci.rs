//! `cargo xtask ci`: every check that a change must pass, in one table.
//!
//! All steps run even if one fails, so that one run shows all failures.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::{artifacts, book, bundle, mutants, process, ptxas};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run only these steps, in the table's order [default: all]
    #[arg(value_parser = STEPS.iter().map(|step| step.name).collect::<Vec<_>>())]
    steps: Vec<String>,
}

struct Step {
    name: &'static str,
    what: &'static str,
    run: fn(&mut Findings) -> Result<()>,
}

const STEPS: &[Step] = &[
    Step { name: "fmt", what: "the sources are formatted", run: fmt },
    Step { name: "clippy", what: "no lint fires", run: clippy },
    Step { name: "test", what: "the tests pass: cargo test --workspace", run: test },
    Step { name: "driver", what: "what talks to the CUDA driver is right on one of simulated GPUs", run: driver },
    Step { name: "examples", what: "every example checks itself on the CPU and on a simulated GPU", run: examples },
    Step { name: "ptxas", what: "all PTX assembles without warning, spill or local memory", run: ptx },
    Step { name: "mutants", what: "planted defects of the compiler are noticed", run: mutants },
    Step { name: "docs", what: "the documentation builds without warning", run: docs },
    Step { name: "book", what: "the book builds, and every link in it leads somewhere", run: book },
    Step { name: "alone", what: "each crate builds alone and with each of its features", run: alone },
    Step { name: "no-syn", what: "running kernels and packages needs neither syn nor the recorder", run: no_syn },
    Step { name: "once", what: "no crate is built once for the tests, and again for the macros or for this program", run: once },
];

/// Results of steps that other steps or the summary use.
#[derive(Default)]
struct Findings {
    tests: Tests,
    /// The folder to which the macros wrote the PTX of all kernels during the step `clippy`.
    ptx: Option<PathBuf>,
}

/// Results of the tests: the totals of all `test result:` lines, and the output of failing tests.
#[derive(Default)]
struct Tests {
    passed: usize,
    failed: usize,
    skipped: usize,
    failures: Vec<String>,
    is_in_failures: bool,
}

/// The number of output lines of each executable's failing tests that are shown below the summary.
const LINES_OF_FAILURES: usize = 60;

pub(crate) fn run(args: &Args) -> Result<()> {
    let chosen = |step: &&Step| args.steps.is_empty() || args.steps.iter().any(|s| s == step.name);
    let steps: Vec<&Step> = STEPS.iter().filter(chosen).collect();
    let before = working_tree()?;
    let mut findings = Findings::default();
    let mut ended: Vec<(&str, Duration, Result<()>)> = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        println!("\n==> [{}/{}] {}: {}", number + 1, steps.len(), step.name, step.what);
        let start = Instant::now();
        let result = (step.run)(&mut findings);
        let took = start.elapsed();
        match &result {
            Ok(()) => println!("    {} passed in {:.1} s", step.name, took.as_secs_f64()),
            Err(error) => println!("    {} FAILED in {:.1} s: {error:#}", step.name, took.as_secs_f64()),
        }
        ended.push((step.name, took, result));
    }
    // The last step: every file that a step blessed or generated must already be committed.
    ended.push(("unchanged", Duration::ZERO, unchanged(&before)));

    println!("\n==> summary");
    for (name, took, result) in &ended {
        let verdict = if result.is_ok() { "passed" } else { "FAILED" };
        println!("    {name:<10} {verdict} {:>7.1} s", took.as_secs_f64());
    }
    let tests = &findings.tests;
    // Print failures again, so that a log that is cut to its end still shows them.
    for failures in &tests.failures {
        println!("{}", last_lines(failures, LINES_OF_FAILURES));
    }
    let failed: Vec<_> = ended.iter().filter_map(|(name, _, r)| r.is_err().then_some(*name)).collect();
    for (name, _, result) in &ended {
        if let Err(error) = result {
            println!("    {name}: {error:#}");
        }
    }
    if steps.iter().any(|step| step.name == "test") {
        println!("tests: {} passed, {} failed, {} skipped", tests.passed, tests.failed, tests.skipped);
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

fn fmt(_: &mut Findings) -> Result<()> {
    process::run(&mut process::command("cargo fmt --all --check"))
}

/// This step expands all kernels, so the macros write their PTX for the step `ptxas`.
fn clippy(findings: &mut Findings) -> Result<()> {
    let folder = ptxas::new_folder()?;
    let mut command = process::command("cargo clippy --workspace --all-targets --quiet -- -D warnings");
    process::run(command.env("GALATEA_PTX_DIR", &folder))?;
    findings.ptx = Some(folder);
    Ok(())
}

/// Examples use development dependencies, so Cargo chooses the features of the tests, and builds no dependency again.
const LIBRARIES_AND_EXAMPLES: &str = "cargo build --quiet --workspace --lib --examples";

fn test(Findings { tests, .. }: &mut Findings) -> Result<()> {
    let mut command = process::command("cargo test --workspace --no-fail-fast");
    // An executable that crashes prints no total, but Cargo's exit status reports it.
    process::each_line(&mut command, |line| {
        println!("{line}");
        tests.take(line);
    })?;
    ensure!(tests.failed == 0, "{} tests failed", tests.failed);
    ensure!(tests.passed > 0, "no test ran");
    Ok(())
}

/// The programs load the simulated driver in place of NVIDIA's. They are those of the step `test`, so nothing is rebuilt.
fn driver(Findings { tests, .. }: &mut Findings) -> Result<()> {
    process::run(&mut process::command(LIBRARIES_AND_EXAMPLES))?;
    let (built, folder) = (process::target_dir().join("debug/libsim_driver.so"), process::target_dir().join("driver"));
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for name in ["libcuda.so", "libcuda.so.1"] {
        fs::copy(&built, folder.join(name)).with_context(|| format!("cannot copy {}", built.display()))?;
    }
    let json = "--message-format=json-render-diagnostics";
    let mut built = artifacts::executables(&mut process::command(&format!("cargo test --workspace --no-run --quiet {json}")))?;
    built.retain(|exe| exe.is_test && ["kernel-graph", "kernel-runtime"].contains(&exe.package.as_str()) && bundle::asks_for_gpu(exe));
    ensure!(!built.is_empty(), "kernel-graph and kernel-runtime have no tests");
    let mut failed = Vec::new();
    for exe in &built {
        // Some tests of the library are ignored without a driver.
        let is_library = exe.kind == "lib";
        for arguments in [&[][..], &["--ignored"]].into_iter().take(1 + usize::from(is_library)) {
            println!("    {} {}", exe.target, arguments.join(" "));
            let mut command = std::process::Command::new(&exe.path);
            let package = process::root().join(&exe.package);
            command.args(arguments).current_dir(&package).env("LD_LIBRARY_PATH", &folder).env("CARGO_MANIFEST_DIR", &package);
            let run = process::each_line(&mut command, |line| {
                println!("{line}");
                tests.take(line);
            });
            if run.is_err() {
                failed.push(exe.target.as_str());
            }
        }
    }
    ensure!(failed.is_empty(), "tests failed: {}", failed.join(", "));
    Ok(())
}

/// Uses the unoptimised build of the tests: an optimised build takes longer than running all examples.
fn examples(_: &mut Findings) -> Result<()> {
    let names = example_names()?;
    ensure!(!names.is_empty(), "examples/ holds no example");
    process::run(&mut process::command(LIBRARIES_AND_EXAMPLES))?;
    let mut failed = Vec::new();
    for name in names {
        for arguments in example_arguments(&name) {
            println!("--- {name} {}", arguments.join(" "));
            let mut command = std::process::Command::new(process::target_dir().join("debug/examples").join(&name));
            command.current_dir(process::root()).env("GALATEA_CACHE", "off");
            if process::run(command.args(&arguments)).is_err() {
                failed.push(format!("{name} on {}", arguments[1]));
            }
        }
    }
    ensure!(failed.is_empty(), "examples failed: {}", failed.join(", "));
    // The pages start the command without the name of its program.
    process::run(&mut process::command("cargo run --quiet -p galatea-cli -- --help"))
}

/// The arguments of both runs of an example: most take a number of elements.
fn example_arguments(name: &str) -> [Vec<&'static str>; 2] {
    match name {
        "silu_mlp" => [vec!["--device", "cpu"], vec!["--device", "sim"]],
        "train_mlp" => [vec!["--device", "cpu", "--steps", "100"], vec!["--device", "sim", "--steps", "10"]],
        _ => [vec!["--device", "cpu", "--len", "100003"], vec!["--device", "sim", "--len", "10007"]],
    }
}

/// `examples/silu.rs` and `examples/silu/main.rs` are both called `silu`.
fn example_names() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in process::root().join("examples").read_dir().context("cannot read examples/")? {
        let path = entry?.path();
        let is_example = path.extension().is_some_and(|e| e == "rs") || path.join("main.rs").exists();
        if let (true, Some(stem)) = (is_example, path.file_stem()) {
            names.push(stem.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn ptx(findings: &mut Findings) -> Result<()> {
    ptxas::run(&ptxas::Args::default(), findings.ptx.as_deref())
}

/// Runs only defects that a test of `tests/kernels` notices, which is fast. The whole list takes hours.
fn mutants(_: &mut Findings) -> Result<()> {
    mutants::run(&mutants::Args::sample(60))
}

fn docs(_: &mut Findings) -> Result<()> {
    let mut command = process::command("cargo doc --no-deps --workspace --quiet");
    process::run(command.env("RUSTDOCFLAGS", "-D warnings"))
}

fn book(_: &mut Findings) -> Result<()> {
    book::run(&book::Args::default())
}

/// Crates with their features, in two groups that are checked in parallel: the check of one crate keeps one core busy.
const ALONE: [&[&str]; 2] = [
    &[
        "kernel-runtime",
        "kernel-runtime --no-default-features",
        "kernel-runtime --no-default-features --features cache",
        "kernel-runtime --no-default-features --features jit",
        "kernel-runtime --features bench-report",
        "kernel-runtime --features sim",
        "sim-driver",
        "galatea --no-default-features",
        "galatea --examples", // as a user builds them, without the features of the tests
    ],
    &["kernel-lang", "kernel-cpu", "kernel-frontend", "kernel-macros", "kernel-sim", "trusted-files"],
];

fn alone(_: &mut Findings) -> Result<()> {
    // Cargo locks a target directory, so the second group has its own.
    let folders = [process::target_dir(), process::target_dir().join("alone")];
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for (packages, folder) in ALONE.iter().zip(&folders) {
            let failed = &failed;
            scope.spawn(move || {
                for package in *packages {
                    // Clippy is a `cargo check` that can reject warnings, above all dead code under one feature. It does not need
                    // RUSTFLAGS, which would check every dependency again.
                    let mut command = process::command(&format!("cargo clippy --quiet -p {package}"));
                    let result = process::run(command.arg("--target-dir").arg(folder).args(["--", "-D", "warnings"]));
                    println!("    {package}");
                    if result.is_err() {
                        failed.lock().expect("no worker panics").push(*package);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("no worker panics");
    ensure!(failed.is_empty(), "these do not build alone without a warning: {}", failed.join("; "));
    Ok(())
}

fn no_syn(_: &mut Findings) -> Result<()> {
    // Searching the output of `cargo tree` is more reliable than `cargo tree -i syn`, which prints nothing to standard output if it fails,
    // for example because the lock file has two versions of syn.
    // A package runs without the macros and without the recorder.
    for package in ["kernel-runtime", "kernel-package"] {
        let line = format!("cargo tree -p {package} -e normal,no-proc-macro --prefix none");
        let tree = process::output(&mut process::command(&line))?;
        ensure!(tree.starts_with(&format!("{package} ")), "`{line}` printed no tree");
        let is_unwanted = |line: &&str| ["syn ", "kernel-graph "].iter().any(|name| line.starts_with(name));
        let unwanted: Vec<_> = tree.lines().filter(is_unwanted).collect();
        ensure!(unwanted.is_empty(), "{package} depends on {}; `{line}` shows its tree", unwanted.join(", "));
    }
    Ok(())
}

/// Cargo builds a crate once for each set of features that it is given. This program, the macros and the tests should share one build.
fn once(_: &mut Findings) -> Result<()> {
    let mut built = BTreeMap::<String, BTreeSet<String>>::new();
    // This program is built first, and without the development dependencies whose features the tests have.
    for what in ["-p xtask -e normal,build", "--workspace"] {
        let tree = process::output(&mut process::command(&format!("cargo tree {what} --prefix none --format {{p}}|{{f}}")))?;
        for (package, features) in tree.lines().filter_map(|line| line.trim_end_matches(" (*)").split_once('|')) {
            built.entry(package.to_owned()).or_default().insert(features.to_owned());
        }
    }
    ensure!(built.len() > 1, "`cargo tree` printed no tree");
    let twice: Vec<_> = built.iter().filter(|(_, sets)| sets.len() > 1).map(|(package, sets)| format!("{package} with {sets:?}")).collect();
    ensure!(twice.is_empty(), "built more than once: {}; see `cargo tree --workspace -e features -i CRATE`", twice.join("; "));
    Ok(())
}

/// The state that Git sees: changes to tracked files, and the names of untracked ones.
fn working_tree() -> Result<String> {
    let diff = process::output(&mut process::command("git diff HEAD"))?;
    let status = process::output(&mut process::command("git status --porcelain --untracked-files=all"))?;
    Ok(format!("{status}{diff}"))
}

/// Like `git diff --exit-code` for a clean checkout. With uncommitted work, nothing beyond that work may change.
fn unchanged(before: &str) -> Result<()> {
    let after = working_tree()?;
    if before == after {
        return Ok(());
    }
    let news: Vec<_> = after.lines().filter(|line| !before.lines().any(|old| old == *line)).collect();
    bail!("the checks changed the working tree; commit what they write:\n{}", news.join("\n"));
}

/// The last `lines` lines of a text.
fn last_lines(text: &str, lines: usize) -> &str {
    let start = text.trim_end().rmatch_indices('\n').nth(lines - 1).map_or(0, |(at, _)| at + 1);
    &text[start..]
}

impl Tests {
    /// Both libtest and libtest-mimic print `failures:`, the output of each failing test, their names, and the totals.
    fn take(&mut self, line: &str) {
        self.is_in_failures = match line {
            "failures:" if !self.is_in_failures => {
                self.failures.push(String::new());
                true
            }
            _ => self.is_in_failures && !line.starts_with("test result: "),
        };
        if let (true, Some(text)) = (self.is_in_failures, self.failures.last_mut()) {
            text.push_str(line);
            text.push('\n');
        }
        self.count(line);
    }

    /// Adds a line such as `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; ..`.
    fn count(&mut self, line: &str) {
        let Some((_, sums)) = line.split_once("test result: ") else {
            return;
        };
        let sums = sums.split_once(". ").map_or(sums, |(_verdict, sums)| sums);
        for sum in sums.split(';') {
            let mut words = sum.split_whitespace();
            let number = words.next().and_then(|n| n.parse::<usize>().ok()).unwrap_or(0);
            match words.next() {
                Some("passed") => self.passed += number,
                Some("failed") => self.failed += number,
                Some("ignored") => self.skipped += number,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_all_executables_add_up() {
        let mut tests = Tests::default();
        tests.count("running 3 tests");
        tests.count("test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out");
        tests.count("test result: FAILED. 2 passed; 4 failed; 0 ignored; 0 measured; 0 filtered out");
        assert_eq!((tests.passed, tests.failed, tests.skipped), (5, 4, 1));
    }

    #[test]
    fn the_output_of_failing_tests_is_collected() {
        let mut tests = Tests::default();
        let said = "failures:\n\n---- adds stdout ----\nleft: 1\n\nfailures:\n    adds\n\n";
        let sums = "test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out";
        for executable in ["first", "second"] {
            format!("Running {executable}\n{said}{sums}\nrunning 1 test").lines().for_each(|line| tests.take(line));
        }
        assert_eq!(tests.failures, [said, said]);
        assert_eq!(tests.failed, 2);
        assert_eq!(last_lines(said, 2), "failures:\n    adds\n\n");
        assert_eq!(last_lines(said, 100), said);
    }
}
