//! The rule that docs/host-api.md lists the host API: the names at the root and in the prelude of `galatea`, and the methods of its types.

use crate::source::{Finding, Source, before_tests, is_word, line_of, project, words};

const PAGE: &str = "docs/host-api.md";

/// The files whose `pub use` make the root and the prelude.
const NAMES: [&str; 2] = ["src/lib.rs", "kernel-runtime/src/prelude.rs"];

/// The files with the methods of devices, tensors, launches, streams, events, replays and simulated GPUs.
const METHODS: [&str; 14] = [
    "kernel-runtime/src/device/event.rs",
    "kernel-runtime/src/device/mod.rs",
    "kernel-runtime/src/device/name.rs",
    "kernel-runtime/src/device/stream.rs",
    "kernel-runtime/src/launch/grid.rs",
    "kernel-runtime/src/launch/mod.rs",
    "kernel-runtime/src/launch/prints.rs",
    "kernel-runtime/src/replay/mod.rs",
    "kernel-runtime/src/sim/machine.rs",
    "kernel-runtime/src/sim/report.rs",
    "kernel-runtime/src/tensor/mod.rs",
    "kernel-runtime/src/tensor/shape.rs",
    "kernel-runtime/src/tensor/view.rs",
    "kernel-runtime/src/tune/launch.rs",
];

pub(crate) fn host_api(source: &Source) -> Vec<Finding> {
    let public = if NAMES.contains(&source.path.as_str()) {
        reexports(&source.code)
    } else if METHODS.contains(&source.path.as_str()) {
        methods(before_tests(&source.code))
    } else {
        return Vec::new();
    };
    let page = project().iter().find(|source| source.path == PAGE).unwrap_or_else(|| panic!("{PAGE} exists"));
    let missing = public.into_iter().filter(|(_, name)| !is_in_code(&page.text, name));
    missing.map(|(line, name)| source.finding(line, format!("`{name}` is public: add it to {PAGE}"))).collect()
}

/// The files of the two lists that do not exist any more.
pub(crate) fn missing_files() -> Vec<&'static str> {
    let exists = |path: &str| project().iter().any(|source| source.path == path);
    NAMES.into_iter().chain(METHODS).filter(|path| !exists(path)).collect()
}

/// Whether the name is a word in code, between backticks, of the page.
fn is_in_code(page: &str, name: &str) -> bool {
    page.split('`').skip(1).step_by(2).any(|code| words(code, name).next().is_some())
}

/// The names that `pub use` declarations give, with their lines. Names that begin with two underscores are for generated code.
fn reexports(code: &str) -> Vec<(usize, String)> {
    let mut names = Vec::new();
    for (at, start) in code.match_indices("pub use ") {
        let declaration = code[at + start.len()..].split(';').next().unwrap_or_default();
        let parts = match declaration.split_once('{') {
            Some((_, group)) => group.trim_end_matches('}').split(',').collect(),
            None => vec![declaration],
        };
        for part in parts {
            // `path::name as alias` gives the alias.
            let name = part.trim().rsplit(|c: char| !is_word(c)).next().unwrap_or_default();
            if !name.is_empty() && !name.starts_with("__") {
                names.push((line_of(code, at), name.to_owned()));
            }
        }
    }
    names
}

/// The safe public functions, with their lines: only generated code calls the unsafe ones.
fn methods(code: &str) -> Vec<(usize, String)> {
    let name = |(index, line): (usize, &str)| {
        let line = line.trim_start();
        let rest = line.strip_prefix("pub fn ").or_else(|| line.strip_prefix("pub const fn "))?;
        Some((index + 1, rest.chars().take_while(|c| is_word(*c)).collect()))
    };
    code.lines().enumerate().filter_map(name).collect()
}

#[test]
fn public_names_are_found() {
    let names = |code: &str| reexports(code).into_iter().map(|(_, name)| name).collect::<Vec<_>>();
    let code = "pub use a::{B, c::D, e as F,\n    G};\npub use h::i;\npub use j as __k;\npub use l::*;\nuse m::N;\npub(crate) use o::P;\n";
    assert_eq!(names(code), ["B", "D", "F", "G", "i"]);
    let code = "    pub fn a(&self) {}\n    pub const fn b() {}\n    pub(crate) fn c() {}\n    pub unsafe fn d() {}\n    fn e() {}\n";
    assert_eq!(methods(code), [(1, "a".to_owned()), (2, "b".to_owned())]);
    assert!(is_in_code("call `x.name()` and", "name") && !is_in_code("the name of `x`", "name"));
}
