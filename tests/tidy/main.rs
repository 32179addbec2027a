//! The house rules of STYLE.md that a machine can check: one rule, one test.
//!
//! A failure names file and line, and the mend. Each test first shows its rule a planted mistake,
//! so a rule that no longer sees anything fails as well.

mod host_api;
mod source;

use std::fmt::Write;

use host_api::host_api;
use source::{Finding, Source, before_tests, is_word, line_of, paths_after, project, words};

type Rule = fn(&Source) -> Vec<Finding>;

#[test]
fn every_module_says_what_it_holds() {
    enforce(module_doc, &[("kernel-lang/src/a.rs", "use std::fmt;\n"), ("tests/run/a.rs", "// Adds.\nfn run() {}\n")]);
}

fn module_doc(source: &Source) -> Vec<Finding> {
    let documented = source.text.lines().find(|line| !line.trim().is_empty()).is_some_and(|line| line.starts_with("//!"));
    if !source.is_rust() || source.is_test_case() || documented {
        return Vec::new();
    }
    vec![source.finding(1, "begin the file with a `//!` line that says what lives in it")]
}

#[test]
fn files_fit_in_the_head() {
    enforce(file_length, &[("kernel-lang/src/a.rs", &"//! Long.\n".repeat(701))]);
}

fn file_length(source: &Source) -> Vec<Finding> {
    const LIMIT: usize = 700;
    // The op table is one table, and reads as one.
    const WHOLE: &str = "kernel-lang/src/ir/ops.rs";
    let lines = source.text.lines().count();
    if !source.is_rust() || lines <= LIMIT || source.path == WHOLE {
        return Vec::new();
    }
    vec![source.finding(LIMIT + 1, format!("{lines} lines are too many to keep in mind: split the file by concept"))]
}

#[test]
fn files_are_named_for_what_is_in_them() {
    enforce(file_name, &[("kernel-lang/src/utils.rs", ""), ("tests/common/mod.rs", ""), ("kernel-lang/src/ir/misc/a.rs", "")]);
}

fn file_name(source: &Source) -> Vec<Finding> {
    const EMPTY_WORDS: &[&str] = &["util", "utils", "common", "helper", "helpers", "misc"];
    let says_nothing = |part: &str| EMPTY_WORDS.contains(&part.split('.').next().unwrap_or(part));
    if !source.path.split('/').any(says_nothing) {
        return Vec::new();
    }
    vec![source.finding(1, "the name says nothing: move each item to the module whose idea it is")]
}

/// Which modules of its crate each module may import, besides itself.
type Modules = &'static [(&'static str, &'static [&'static str])];

/// The crates that have modules.
const CRATES: &[(&str, Modules)] = &[("kernel-lang/src/", COMPILER), ("kernel-sim/src/", SIMULATOR)];

const COMPILER: Modules = &[
    ("diagnostic", &["location"]),
    ("dtype", &["diagnostic", "location"]),
    ("float8", &["dtype"]),
    ("location", &["diagnostic"]),
    ("occupancy", &[]),
    ("random", &[]),
    ("schedule", &[]),
    ("target", &["diagnostic", "dtype", "location", "schedule"]),
    ("ir", &["diagnostic", "dtype", "float8", "layout", "location", "schedule", "target"]),
    ("layout", &["diagnostic", "dtype", "location", "target"]),
    // The result of an elementwise op on one element: constant folding and the CPU executor share it.
    ("scalar", &["diagnostic", "dtype", "float8", "ir", "location"]),
    ("launch_value", &["diagnostic", "dtype", "ir", "location", "random", "scalar"]),
    ("analysis", &["diagnostic", "dtype", "ir", "launch_value", "layout", "location", "random", "scalar", "target"]),
    ("passes", &["analysis", "diagnostic", "dtype", "ir", "launch_value", "layout", "location", "random", "scalar", "schedule", "target"]),
    (
        "backend",
        &[
            "analysis",
            "diagnostic",
            "dtype",
            "float8",
            "ir",
            "launch_value",
            "layout",
            "location",
            "passes",
            "scalar",
            "schedule",
            "target",
        ],
    ),
    // The only entry point: it imports the passes and the backends, so that no other module does.
    (
        "compile",
        &[
            "analysis",
            "backend",
            "diagnostic",
            "dtype",
            "ir",
            "launch_value",
            "layout",
            "location",
            "passes",
            "scalar",
            "schedule",
            "target",
        ],
    ),
    // It follows a compilation, and no other module uses it.
    ("explain", &["analysis", "backend", "compile", "diagnostic", "dtype", "ir", "layout", "location", "passes", "target"]),
    ("dsl", &["dtype"]),
];

/// The modules of the compiler that the frontend and the CPU executor, crates of their own, may import, beside the functions at the root.
const AROUND_THE_COMPILER: Modules = &[
    ("kernel-frontend/src/", &["compile", "diagnostic", "dsl", "dtype", "float8", "ir", "location", "target"]),
    ("kernel-cpu/src/", &["compile", "diagnostic", "dtype", "ir", "location", "scalar"]),
];

const SIMULATOR: Modules = &[
    // The text knows nothing of what runs it.
    ("ptx", &[]),
    ("lanes", &[]),
    // Exact arithmetic is named by the types of PTX.
    ("numerics", &["ptx"]),
    ("tensor_map", &[]),
    ("arguments", &[]),
    ("fault", &["arguments", "lanes", "ptx"]),
    ("counters", &["fault", "lanes", "ptx"]),
    // The machine defines the type of an access, which instructions and memory use.
    ("memory", &["counters", "fault", "lanes", "machine", "ptx"]),
    // An instruction sees the machine through its context, and the machine holds what instructions keep in it.
    ("instructions", &["arguments", "counters", "fault", "lanes", "machine", "memory", "numerics", "program", "ptx", "tensor_map"]),
    ("program", &["counters", "fault", "instructions", "lanes", "ptx"]),
    ("machine", &["arguments", "counters", "fault", "instructions", "lanes", "memory", "program", "ptx", "tensor_map"]),
];

#[test]
fn imports_between_modules_run_one_way() {
    enforce(
        module_imports,
        &[
            ("kernel-lang/src/ir/print.rs", "use crate::passes::fold;"),
            ("kernel-lang/src/dtype.rs", "use crate::{ir::Function, target};"),
            ("kernel-frontend/src/lower.rs", "fn f() { kernel_lang::analysis::uses::compute(); }"),
            ("kernel-lang/src/analysis/uses.rs", "use super::super::backend::ptx;"),
            ("kernel-cpu/src/execute.rs", "use kernel_lang::backend::ptx;"),
            ("kernel-lang/src/pantry.rs", "fn f() {}"),
            ("kernel-sim/src/ptx/parser.rs", "use crate::instructions::Form;"),
            ("kernel-sim/src/memory/global.rs", "use crate::{lanes::Lanes, program::Program};"),
        ],
    );
}

fn module_imports(source: &Source) -> Vec<Finding> {
    if let Some((_, allowed)) = AROUND_THE_COMPILER.iter().find(|(folder, _)| source.path.starts_with(folder)) {
        return imports_of_the_compiler(source, allowed);
    }
    let of_crate = CRATES.iter().find_map(|(folder, modules)| Some((source.path.strip_prefix(folder)?, modules)));
    let Some((inside, modules)) = of_crate else { return Vec::new() };
    let steps: Vec<&str> = inside.trim_end_matches(".rs").trim_end_matches("/mod").split('/').collect();
    let module = steps[0];
    if module == "lib" {
        return Vec::new();
    }
    let Some((_, allowed)) = modules.iter().find(|(name, _)| *name == module) else {
        return vec![source.finding(1, format!("the module `{module}` is new: say in tests/tidy/main.rs what it may import"))];
    };
    let mut findings = Vec::new();
    let from_root = ["crate::".to_owned(), "super::".repeat(steps.len())];
    for (line, path) in from_root.iter().flat_map(|prefix| paths_after(&source.code, prefix)) {
        let other = path.split("::").next().unwrap_or_default();
        let known = modules.iter().any(|(name, _)| *name == other);
        if known && other != module && !allowed.contains(&other) {
            let allowed = allowed.join(", ");
            findings.push(source.finding(line, format!("`{module}` may not use `{other}` (it may use {allowed}): move what both need")));
        }
    }
    findings
}

fn imports_of_the_compiler(source: &Source, allowed: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, path) in paths_after(&source.code, "kernel_lang::") {
        let module = path.split("::").next().unwrap_or_default();
        if COMPILER.iter().any(|(name, _)| *name == module) && !allowed.contains(&module) {
            let allowed = allowed.join(", ");
            findings.push(source.finding(line, format!("this crate may not use `kernel_lang::{module}` (it may use {allowed})")));
        }
    }
    findings
}

#[test]
fn the_compiler_touches_nothing_outside_itself() {
    enforce(no_io, &[("kernel-lang/src/a.rs", "let home = std::env::var(\"HOME\");"), ("kernel-frontend/src/b.rs", "use std::{fmt, fs};")]);
}

fn no_io(source: &Source) -> Vec<Finding> {
    const OUTSIDE: &[&str] = &["env", "fs", "io", "net", "process"];
    if !["kernel-lang/src/", "kernel-frontend/src/", "kernel-cpu/src/"].iter().any(|compiler| source.path.starts_with(compiler)) {
        return Vec::new();
    }
    let mend = "the compiler does no I/O and reads no environment: take the value as an argument";
    let paths = paths_after(before_tests(&source.code), "std::");
    let outside = paths.into_iter().filter(|(_, path)| OUTSIDE.contains(&path.split("::").next().unwrap_or_default()));
    outside.map(|(line, _)| source.finding(line, mend)).collect()
}

#[test]
fn only_the_runtime_knows_the_driver() {
    enforce(
        driver_crate,
        &[("xtask/src/main.rs", "use cudarc::driver;"), ("kernel-lang/Cargo.toml", "[dependencies]\ncudarc = \"0.19\"\n")],
    );
}

fn driver_crate(source: &Source) -> Vec<Finding> {
    // The workspace's manifest pins the version of each dependency, the facade re-exports the runtime, one benchmark measures the driver's own
    // call, another maps memory of its peers' process and tells a profiler when to count, and the simulated driver has the interface that cudarc declares.
    let is_home = ["kernel-runtime/", "sim-driver/"].iter().any(|own| source.path.starts_with(own));
    let others = ["Cargo.toml", "src/lib.rs", "benches/launch.rs", "benches/shared/mod.rs", "benches/gallery/benches/counters.rs"];
    if is_home || others.contains(&source.path.as_str()) {
        return Vec::new();
    }
    let mend = "only kernel-runtime names cudarc: use or add what the runtime offers";
    lines_with(source, &source.code, &["cudarc"], mend)
}

#[test]
fn only_the_runtime_and_the_command_know_the_simulator() {
    enforce(
        simulator_crate,
        &[("examples/a.rs", "use kernel_sim::Machine;"), ("kernel-lang/Cargo.toml", "[dependencies]\nkernel-sim = \"1\"\n")],
    );
}

fn simulator_crate(source: &Source) -> Vec<Finding> {
    // The manifest of the workspace lists its members, and the command runs PTX that no kernel of ours became.
    if ["cli/", "kernel-runtime/", "kernel-sim/", "sim-driver/"].iter().any(|own| source.path.starts_with(own))
        || source.path == "Cargo.toml"
    {
        return Vec::new();
    }
    let mend = "only kernel-runtime and the command name the simulator: use or add what the runtime offers";
    lines_with(source, &source.code, &["kernel_sim", "kernel-sim"], mend)
}

#[test]
fn the_entry_point_holds_no_logic() {
    let long = "fn f() {}\n".repeat(101);
    enforce(entry_point, &[("kernel-macros/src/lib.rs", "use syn::ItemFn;"), ("kernel-macros/src/a.rs", &long)]);
}

fn entry_point(source: &Source) -> Vec<Finding> {
    const LIMIT: usize = 100;
    if !source.path.starts_with("kernel-macros/src/") {
        return Vec::new();
    }
    let mend = "kernel-macros only calls kernel-frontend: what reads or writes syntax lives there";
    let mut findings = lines_with(source, &source.code, &["syn", "quote"], mend);
    let lines = source.code.lines().filter(|line| !line.trim().is_empty()).count();
    if lines > LIMIT {
        findings.push(source.finding(1, format!("{lines} lines of code are more than an entry point needs: move them to kernel-frontend")));
    }
    findings
}

#[test]
fn nothing_is_left_for_later() {
    let planted = "fn f() { dbg!(1) }\nfn g() { todo!() }\nfn h() { unimplemented!(\"later\") }\n";
    enforce(leftovers, &[("kernel-lang/src/a.rs", planted)]);
    assert_eq!(leftovers(&Source::new("kernel-lang/src/a.rs", planted)).len(), 3);
}

fn leftovers(source: &Source) -> Vec<Finding> {
    let mend = "finish it, or return an error that says what cannot be done";
    lines_with(source, &source.code, &["dbg!", "todo!", "unimplemented!"], mend)
}

#[test]
fn lines_end_where_their_text_ends() {
    enforce(trailing_space, &[("README.md", "# Galatea \n"), ("kernel-lang/src/a.rs", "fn f() {\t\n}\n")]);
}

fn trailing_space(source: &Source) -> Vec<Finding> {
    let padded = |line: &str| line.ends_with([' ', '\t']);
    let lines = source.text.lines().enumerate().filter(|(_, line)| padded(line));
    lines.map(|(index, _)| source.finding(index + 1, "remove the spaces at the end of the line")).collect()
}

#[test]
fn architectures_are_compared_in_one_module() {
    enforce(
        architectures,
        &[
            ("kernel-lang/src/backend/ptx/a.rs", "let target = \"sm_90a\";"),
            ("kernel-runtime/src/a.rs", "if device.arch() >= 90 {}"),
            ("kernel-lang/src/passes/a.rs", "if target.arch == 80 {}"),
        ],
    );
    let in_tests = "#[cfg(test)]\nmod tests { const TARGET: &str = \"sm_90a\"; }";
    assert!(architectures(&Source::new("kernel-lang/src/a.rs", in_tests)).is_empty());
}

fn architectures(source: &Source) -> Vec<Finding> {
    let in_sources = source.path.starts_with("src/") || source.path.contains("/src/");
    // The simulator holds PTX to the ISA, which says of each instruction which architecture has it; the command names what it simulates.
    let knows = ["kernel-lang/src/target.rs", "kernel-sim/", "cli/"].iter().any(|path| source.path.starts_with(path));
    if !source.is_rust() || !in_sources || knows {
        return Vec::new();
    }
    let mend = "ask `Target` for the fact that matters here (target.rs): the next architecture will differ elsewhere";
    let mut findings = Vec::new();
    for (index, line) in before_tests(&source.without_comments).lines().enumerate() {
        let names_one = line.match_indices("sm_").any(|(at, _)| {
            let free = !line[..at].ends_with(is_word);
            free && line[at + 3..].starts_with(|c: char| c.is_ascii_digit())
        });
        if names_one || ["arch", "capability", "compute_capability"].iter().any(|word| is_compared(line, word)) {
            findings.push(source.finding(index + 1, mend));
        }
    }
    findings
}

/// Whether `word`, `word()` or `word.0` stands before a comparison operator.
fn is_compared(line: &str, word: &str) -> bool {
    words(line, word).any(|at| {
        let rest = line[at + word.len()..].trim_start_matches(['(', ')', '.', '0']);
        [" >= ", " <= ", " == ", " != ", " > ", " < "].iter().any(|operator| rest.starts_with(operator))
    })
}

#[test]
fn silenced_lints_say_why() {
    let planted = "#[allow(dead_code)]\nfn f() {}\n#![expect(\n    unused,\n    clippy::all\n)]\n";
    enforce(silenced_lints, &[("kernel-lang/src/a.rs", planted)]);
    assert_eq!(silenced_lints(&Source::new("kernel-lang/src/a.rs", planted)).len(), 2);
    let fine = "#[allow(dead_code, reason = \"the table names every field\")]\nfn f() {}\n";
    assert!(silenced_lints(&Source::new("kernel-lang/src/a.rs", fine)).is_empty());
}

fn silenced_lints(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for start in ["[allow(", "[expect("].iter().flat_map(|start| source.code.match_indices(start)) {
        let attribute = source.code[start.0..].split(']').next().unwrap_or_default();
        if source.is_rust() && source.code[..start.0].ends_with(['#', '!']) && !attribute.contains("reason =") {
            findings
                .push(source.finding(line_of(&source.code, start.0), "add `reason = \"..\"` to the attribute, or mend what the lint saw"));
        }
    }
    findings
}

#[test]
fn texts_name_no_machine() {
    // The planted paths are put together here, so that this file names none.
    let planted = ["home", "root", "tmp"].map(|folder| format!("see `/{folder}/x`\n"));
    enforce(machine_paths, &[("README.md", &planted[0]), ("xtask/src/a.rs", &planted[1]), (".ci/run", &planted[2])]);
    assert!(machine_paths(&Source::new("README.md", "target/tmp/x and https://example.org/home/x\n")).is_empty());
}

fn machine_paths(source: &Source) -> Vec<Finding> {
    const FOLDERS: &[&str] = &["home", "mnt", "root", "tmp", "Users", "work", "workspace"];
    let mut findings = Vec::new();
    for folder in FOLDERS {
        let path = format!("/{folder}/");
        for (at, _) in source.text.match_indices(&path) {
            // A part of a longer path or address is no absolute path.
            let part_of_more = |c: char| is_word(c) || ".-}/~*".contains(c);
            if !source.text[..at].ends_with(part_of_more) {
                let mend = "name a path of the project, or ask the system for a temporary folder";
                findings.push(source.finding(line_of(&source.text, at), mend));
            }
        }
    }
    findings
}

#[test]
fn terms_are_those_of_the_field() {
    // The planted words are put together here, so that this file has none.
    let planted =
        ["who", "tru", "stret"].iter().zip(["ever", "ths", "ch"]).map(|(start, end)| format!("// {start}{end}\n")).collect::<Vec<_>>();
    enforce(plain_words, &[("README.md", &planted[0]), ("kernel-lang/src/a.rs", &planted[1]), ("tests/run/a.rs", &planted[2])]);
    assert!(plain_words(&Source::new("STYLE.md", &planted[0])).is_empty());
}

/// The words that no rule of grammar makes right; STYLE.md has more, and lists these.
fn plain_words(source: &Source) -> Vec<Finding> {
    const REPLACED: [(&str, &str); 4] = [
        (concat!("who", "ever"), "the subject's own noun"),
        (concat!("tru", "ths"), "`predicates`, `booleans` or `mask`"),
        (concat!("stret", "ch"), "`straight-line region` or `range`"),
        (concat!("stret", "ches"), "`straight-line regions` or `ranges`"),
    ];
    if source.path == "STYLE.md" || !(source.is_rust() || source.path.ends_with(".md")) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (word, instead) in REPLACED {
        let all = words(&source.text, word).map(|at| source.finding(line_of(&source.text, at), format!("write {instead}, not `{word}`")));
        findings.extend(all);
    }
    findings
}

#[test]
fn the_page_of_the_host_api_lists_what_is_public() {
    enforce(
        host_api,
        &[
            ("src/lib.rs", "pub use kernel_runtime::{Device, Unlisted};"),
            ("kernel-runtime/src/prelude.rs", "pub use crate::Unlisted;"),
            ("kernel-runtime/src/tensor/view.rs", "impl A {\n    pub fn unlisted(&self) {}\n}\n"),
        ],
    );
    assert!(host_api::missing_files().is_empty(), "tests/tidy/host_api.rs names {:?}", host_api::missing_files());
}

/// One finding for each line of a Rust file or manifest that has one of the words.
fn lines_with(source: &Source, text: &str, any_of: &[&str], mend: &str) -> Vec<Finding> {
    if !source.is_rust() && !source.path.ends_with("Cargo.toml") {
        return Vec::new();
    }
    let has = |line: &str| any_of.iter().any(|word| words(line, word).next().is_some());
    let lines = text.lines().enumerate().filter(|(_, line)| has(line));
    lines.map(|(index, _)| source.finding(index + 1, mend)).collect()
}

/// Fails unless the rule finds something in each planted text and nothing in the project.
fn enforce(rule: Rule, planted: &[(&str, &str)]) {
    for (path, text) in planted {
        let found = rule(&Source::new(path, text));
        assert!(!found.is_empty(), "the rule has gone blind: it finds nothing in the planted {path}:\n{text}");
    }
    let mut report = String::new();
    for finding in project().iter().flat_map(rule) {
        let _ = writeln!(report, "{}:{}: {}", finding.path, finding.line, finding.mend);
    }
    assert!(report.is_empty(), "\n{report}");
}
