//! A copy of the workspace with all defects planted, and the test executables that are built from it.
//!
//! A defect is off unless the environment variable [`VARIABLE`] holds its number, so one build serves the whole list. In the copy, launched
//! kernels are compiled in process, because the macro compiled its embedded variants with no defect on.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::list::{Defect, Number, planted};
use crate::artifacts::{self, Executable};
use crate::process;

/// The environment variable with the number of the active defect.
pub(super) const VARIABLE: &str = "GALATEA_MUTANT";

/// The source of a module that crates of the copy have in addition.
const PLANTED: &str = r#"//! Which planted defect is on.

use std::sync::LazyLock;

static ON: LazyLock<u32> = LazyLock::new(|| std::env::var("GALATEA_MUTANT").map_or(0, |number| number.parse().expect("GALATEA_MUTANT is a number")));

/// Is it that one?
#[inline]
pub fn is_on(number: u32) -> bool {
    *ON == number
}
"#;

/// Where this module is in the crates that have planted defects.
const PLANTED_AT: [&str; 4] =
    ["kernel-lang/src/planted.rs", "kernel-library/src/planted.rs", "kernel-graph/src/planted.rs", "kernel-runtime/src/planted.rs"];

/// Other changes of the copy: the file, the original text, and its replacement.
const CHANGES: [(&str, &str, &str); 6] = [
    (
        "kernel-lang/src/lib.rs",
        "pub mod diagnostic;",
        "#![allow(warnings, reason = \"planted code is as it is written in the list\")]\n\npub mod diagnostic;\npub mod planted;",
    ),
    (
        "kernel-library/src/lib.rs",
        "mod activations;",
        "#![allow(warnings, reason = \"planted code is as it is written in the list\")]\n\nmod activations;\nmod planted;",
    ),
    (
        "kernel-graph/src/lib.rs",
        "mod dot;",
        "#![allow(warnings, reason = \"planted code is as it is written in the list\")]\n\nmod dot;\nmod planted;",
    ),
    (
        "kernel-runtime/src/lib.rs",
        "#![deny(missing_docs)]",
        "#![allow(warnings, reason = \"planted code is as it is written in the list\")]\n\nmod planted;",
    ),
    // Embedded variants are not used.
    (
        "kernel-runtime/src/kernel/mod.rs",
        "usable(self.variants, |target| runs_on(target, gpu))",
        "usable(&[], |target| runs_on(target, gpu))",
    ),
    // The macros compile none, except where tuning must know which configurations are left out.
    (
        "kernel-frontend/src/variants.rs",
        "cached.get_or_compile(instance, || one(func, instance, groups.group(index)))",
        "if has_choice { cached.get_or_compile(instance, || one(func, instance, groups.group(index))) } else { Ok(Outcomes::default()) }",
    ),
];

/// The test executables of the copy: `(package, target)`.
pub(super) const TESTS: [(&str, &str); 14] = [
    ("kernel-lang", "kernel_lang"),
    ("kernel-lang", "layout"),
    ("kernel-lang", "math"),
    ("kernel-lang", "filetests"),
    ("kernel-runtime", "tiles"),
    ("galatea-tests", "ops"),
    ("galatea-tests", "kernels"),
    ("galatea-tests", "run"),
    ("galatea-tests", "fuzz"),
    ("galatea-tests", "conformance"),
    ("kernel-library", "rows"),
    ("kernel-graph", "graphs"),
    ("kernel-graph", "kernel_graph"),
    ("kernel-runtime", "kernel_runtime"),
];

/// Whether an executable has the unit tests of its package.
fn has_unit_tests((package, test): (&str, &str)) -> bool {
    package.replace('-', "_") == test
}

/// The folder of the copy.
pub(super) fn folder() -> PathBuf {
    process::target_dir().join("mutants/tree")
}

/// Writes or updates the copy.
pub(super) fn write(defects: &[Defect]) -> Result<()> {
    let (root, tree) = (process::root(), folder());
    let list = process::output(&mut process::command("git ls-files --cached --others --exclude-standard"))?;
    let files: Vec<&str> = list.lines().filter(|file| root.join(file).is_file()).collect();
    ensure!(!files.is_empty(), "git names no files of {}", root.display());
    for file in &files {
        let bytes = fs::read(root.join(file)).with_context(|| format!("cannot read {file}"))?;
        let own: Vec<(Number, &Defect)> =
            defects.iter().enumerate().filter(|(_, defect)| defect.file == *file).map(|(at, defect)| (at + 1, defect)).collect();
        let changes: Vec<_> = CHANGES.iter().filter(|(changed, ..)| changed == file).collect();
        if own.is_empty() && changes.is_empty() {
            copy(&root.join(file), &tree.join(file), &bytes)?;
            continue;
        }
        let mut text = planted(std::str::from_utf8(&bytes)?, &own)?;
        for (_, from, to) in changes {
            ensure!(text.matches(from).count() == 1, "{file} has no single `{from}`: mend `CHANGES` in xtask/src/mutants/tree.rs");
            text = text.replace(from, to);
        }
        update(&tree.join(file), text.as_bytes())?;
    }
    for path in PLANTED_AT {
        update(&tree.join(path), PLANTED.as_bytes())?;
    }
    remove_strangers(&tree, &tree, &files)
}

/// Copies a file with its modification time, from which Cargo sees that the file has not changed.
fn copy(from: &Path, to: &Path, bytes: &[u8]) -> Result<()> {
    if update(to, bytes)? {
        let modified = fs::metadata(from)?.modified()?;
        fs::File::options().append(true).open(to)?.set_modified(modified)?;
    }
    Ok(())
}

/// Writes a file unless its contents are equal. Returns whether it wrote.
fn update(path: &Path, bytes: &[u8]) -> Result<bool> {
    if fs::read(path).is_ok_and(|known| known == bytes) {
        return Ok(false);
    }
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(true)
}

/// Removes files of the copy that no longer exist in the workspace.
fn remove_strangers(folder: &Path, tree: &Path, files: &[&str]) -> Result<()> {
    for entry in folder.read_dir()? {
        let path = entry?.path();
        let name = path.strip_prefix(tree)?.to_string_lossy().replace('\\', "/");
        if path.is_dir() {
            remove_strangers(&path, tree, files)?;
        } else if !files.contains(&name.as_str()) && !PLANTED_AT.contains(&name.as_str()) && name != "Cargo.lock" {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Builds test executables of the copy: those in `only`, or all.
pub(super) fn build(only: Option<&[&str]>) -> Result<Vec<Executable>> {
    let target = process::target_dir().join("mutants/target");
    seed(&target)?;
    let is_wanted = |test: &str| only.is_none_or(|only| only.contains(&test));
    let wanted: Vec<(&str, &str)> = TESTS.into_iter().filter(|(_, test)| is_wanted(test)).collect();
    let packages = |is_meant: &dyn Fn((&str, &str)) -> bool| {
        let packages: BTreeSet<&str> = wanted.iter().filter(|test| is_meant(**test)).map(|(package, _)| *package).collect();
        packages.into_iter().map(|package| format!(" -p {package}")).collect::<String>()
    };
    let tests: String = wanted.iter().filter(|test| !has_unit_tests(**test)).map(|(_, test)| format!(" --test {test}")).collect();
    // The feature is that of the other packages, so that the crates are built once.
    let mut commands = vec![format!("{} -p kernel-runtime --features kernel-runtime/sim{tests}", packages(&|test| !has_unit_tests(test)))];
    if wanted.iter().any(|test| has_unit_tests(*test)) {
        commands.push(format!("{} -p kernel-runtime --features kernel-runtime/sim --lib", packages(&has_unit_tests)));
    }
    let mut built = Vec::new();
    for what in commands {
        let mut command = process::command(&format!("cargo test --no-run --quiet --message-format=json-render-diagnostics{what}"));
        if only.is_none() {
            // The whole list compiles kernels many thousands of times.
            command.arg("--config").arg("profile.dev.package.kernel-lang.opt-level=1");
        }
        command.current_dir(folder()).env("CARGO_TARGET_DIR", &target).env_remove("CARGO_MANIFEST_DIR").env_remove(VARIABLE);
        built.extend(artifacts::executables(&mut command).context("the copy with the planted defects does not build")?);
    }
    built.retain(|executable| executable.is_test && wanted.contains(&(executable.package.as_str(), executable.target.as_str())));
    ensure!(built.len() == wanted.len(), "{} of {} test executables were built", built.len(), wanted.len());
    Ok(built)
}

/// Starts with the dependencies that the workspace has built, because their sources and paths are the same.
fn seed(target: &Path) -> Result<()> {
    let (from, to) = (process::target_dir().join("debug"), target.join("debug"));
    if to.exists() || !from.join(".fingerprint").exists() {
        return Ok(());
    }
    for folder in [".fingerprint", "build", "deps"] {
        copy_folder(&from.join(folder), &to.join(folder))?;
    }
    Ok(())
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in from.read_dir().with_context(|| format!("cannot read {}", from.display()))? {
        let path = entry?.path();
        let copy = to.join(path.file_name().unwrap_or_default());
        let is_needed = path.extension().is_some_and(|extension| ["rlib", "rmeta", "so", "d"].iter().any(|needed| extension == *needed));
        if path.is_dir() {
            copy_folder(&path, &copy)?;
        } else if is_needed || !from.ends_with("deps") {
            let modified = fs::metadata(&path)?.modified()?;
            fs::copy(&path, &copy)?;
            fs::File::options().append(true).open(&copy)?.set_modified(modified)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_of_the_copy_matches_the_sources_once() {
        for (file, from, _) in CHANGES {
            let source = fs::read_to_string(process::root().join(file)).unwrap_or_default();
            assert_eq!(source.matches(from).count(), 1, "{file} has no single `{from}`: mend `CHANGES`");
        }
    }
}
