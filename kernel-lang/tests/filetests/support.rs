//! Walking the folders, comparing with a file, writing it under `BLESS=1`.

use std::fs;
use std::path::{Path, PathBuf};

const BLESS: &str = "BLESS=1 cargo test -p kernel-lang --test filetests";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests")
}

/// Calls `check` with every file of a folder (and its folders) that has the extension; panics with all that failed.
pub(crate) fn each(folder: &str, extension: &str, check: &mut dyn FnMut(&Path, &str) -> Result<(), String>) {
    let mut files = Vec::new();
    collect(&root().join(folder), extension, &mut files);
    files.sort();
    assert!(!files.is_empty(), "tests/filetests/{folder} holds no .{extension} file");
    let mut failed = Vec::new();
    for path in &files {
        let text = fs::read_to_string(path).expect("the file was just listed");
        if let Err(message) = check(path, &text) {
            let shown = path.strip_prefix(root()).unwrap_or(path).display();
            failed.push(format!("tests/filetests/{shown}\n{message}"));
        }
    }
    assert!(failed.is_empty(), "{} of {} files fail\n\n{}\n\nif this is right: {BLESS}", failed.len(), files.len(), failed.join("\n\n"));
}

fn collect(folder: &Path, extension: &str, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, extension, files);
        } else if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
}

/// Compares with what the file holds, or writes it under `BLESS=1`.
pub(crate) fn expect_file(path: &Path, found: &str) -> Result<(), String> {
    let wanted = fs::read_to_string(path).unwrap_or_default();
    if wanted == found {
        return Ok(());
    }
    if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
        return fs::write(path, found).map_err(|error| format!("cannot write: {error}"));
    }
    Err(difference(&wanted, found))
}

/// What changed, line by line.
pub(crate) fn difference(wanted: &str, found: &str) -> String {
    similar::TextDiff::from_lines(wanted, found).unified_diff().context_radius(3).header("expected", "found").to_string()
}
