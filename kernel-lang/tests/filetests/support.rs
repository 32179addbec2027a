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

/// One of the sources with a few of its tokens changed; the same for the same seed.
pub(crate) fn mutate(sources: &[String], seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below.max(1) as u64).unwrap_or(0)
    };
    let mut tokens = tokens_of(&sources[random(sources.len())]);
    let others = tokens_of(&sources[random(sources.len())]);
    for _ in 0..1 + random(3) {
        let at = random(tokens.len());
        match random(5) {
            0 => drop(tokens.remove(at)),
            1 => tokens.insert(at, tokens[at].clone()),
            2 => {
                let with = random(tokens.len());
                tokens.swap(at, with);
            }
            3 => tokens[at] = others[random(others.len())].clone(),
            _ => {
                let start = random(others.len());
                let end = (start + 1 + random(12)).min(others.len());
                tokens.splice(at..at, others[start..end].iter().cloned());
            }
        }
    }
    tokens.concat()
}

/// Names and single signs, each with the space after it.
fn tokens_of(source: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut was_name = false;
    for c in source.chars() {
        let is_name = c.is_alphanumeric() || c == '_';
        match out.last_mut() {
            Some(last) if c.is_whitespace() || (is_name && was_name) => last.push(c),
            _ => out.push(c.to_string()),
        }
        was_name = is_name;
    }
    out
}
