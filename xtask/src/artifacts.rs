//! The executables that a Cargo command built, read from its `--message-format=json` lines.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use serde::Deserialize;

use crate::process;

/// An executable and the Cargo target that it was built from.
pub(crate) struct Executable {
    pub(crate) path: PathBuf,
    pub(crate) package: String,
    pub(crate) target: String,
    /// The kind in Cargo's output: `lib`, `test`, `example`, `bench`, `bin`, `proc-macro`.
    pub(crate) kind: String,
    /// Whether it was built as a test, with or without the test harness.
    pub(crate) is_test: bool,
}

/// Runs a `cargo .. --message-format=json-render-diagnostics` command and lists the executables that it built, sorted by name.
pub(crate) fn executables(command: &mut Command) -> Result<Vec<Executable>> {
    let mut found = Vec::new();
    process::each_line(command, |line| found.extend(executable(line)))?;
    found.sort_by(|a, b| (&a.package, &a.target).cmp(&(&b.package, &b.target)));
    Ok(found)
}

fn executable(line: &str) -> Option<Executable> {
    // Other lines (build scripts, diagnostics, the closing line) have another shape and are skipped.
    let message: Message = serde_json::from_str(line).ok()?;
    Some(Executable {
        path: message.executable?,
        package: package_name(&message.package_id),
        target: message.target.name,
        kind: message.target.kind.into_iter().next()?,
        is_test: message.profile.test,
    })
}

/// The package name in an id such as `path+file:///there/kernel-lang#0.1.0` or `path+file:///there#galatea@0.1.0`.
fn package_name(id: &str) -> String {
    let (path, fragment) = id.split_once('#').unwrap_or(("", id));
    match fragment.split_once('@') {
        Some((name, _version)) => name.to_owned(),
        None => path.rsplit('/').next().unwrap_or(path).to_owned(),
    }
}

#[derive(Deserialize)]
struct Message {
    package_id: String,
    target: Target,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_ids_of_both_forms_give_the_name() {
        assert_eq!(package_name("path+file:///there/kernel-lang#0.1.0"), "kernel-lang");
        assert_eq!(package_name("path+file:///there#galatea@0.1.0"), "galatea");
    }

    #[test]
    fn only_lines_with_an_executable_count() {
        let line = r#"{"reason":"compiler-artifact","package_id":"path+file:///x#galatea@0.1.0",
            "target":{"kind":["test"],"name":"run"},"profile":{"test":true},"executable":"/x/run-1"}"#;
        let found = executable(line).unwrap();
        assert_eq!((found.package.as_str(), found.target.as_str()), ("galatea", "run"));
        assert!(executable(r#"{"reason":"build-finished","success":true}"#).is_none());
        assert!(executable(&line.replace(r#""/x/run-1""#, "null")).is_none());
    }
}
