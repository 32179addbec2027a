//! The sources of the book: what chapters include exists, every page is in the table of contents, and programs are tested.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Languages of code blocks that nothing has to compile.
const PLAIN: [&str; 5] = ["text", "sh", "toml", "json", ""];
/// This page is generated, and the test that generates it compiles its examples.
const GENERATED: &str = "builtins.md";

/// One line for each problem of a page.
pub(super) fn problems(root: &Path) -> Result<Vec<String>> {
    let docs = root.join("docs");
    let read = |path: &Path| fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()));
    let (summary, doctests) = (read(&docs.join("SUMMARY.md"))?, read(&root.join("src/lib.rs"))?);
    let mut pages = BTreeSet::new();
    for entry in docs.read_dir().context("cannot read docs/")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") && name != "SUMMARY.md" {
            pages.insert(name);
        }
    }
    let mut problems = Vec::new();
    for name in &pages {
        let text = read(&docs.join(name))?;
        if !summary.contains(&format!("({name})")) {
            problems.push(format!("docs/{name} is not in the table of contents: add it to docs/SUMMARY.md"));
        }
        let blocks = code_blocks(&text);
        if blocks.iter().any(|block| block.language == "rust") && !doctests.contains(&format!("\"../docs/{name}\"")) {
            problems.push(format!("docs/{name} has programs, and nothing compiles them: add it to the pages in src/lib.rs"));
        }
        problems.extend(blocks.iter().filter_map(|block| untested(name, block)));
        problems.extend(includes(&text).filter_map(|(line, target)| Some(format!("docs/{name}:{line}: {}", missing(&docs, target)?))));
    }
    Ok(problems)
}

struct Block<'a> {
    line: usize,
    language: &'a str,
    text: &'a str,
}

/// The fenced code blocks of a page.
fn code_blocks(text: &str) -> Vec<Block<'_>> {
    let (mut blocks, mut open, mut start) = (Vec::new(), None, 0);
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let end = start + line.len();
        if let Some(language) = line.trim().strip_prefix("```") {
            open = match open {
                None => Some((index + 1, language, end)),
                Some((line, language, from)) => {
                    blocks.push(Block { line, language, text: &text[from..start] });
                    None
                }
            };
        }
        start = end;
    }
    blocks
}

/// Only what is included may be left to others to compile: examples, and inputs of tests.
fn untested(name: &str, block: &Block<'_>) -> Option<String> {
    let of_tested = ["{{#include ../examples/", "{{#include ../tests/", "{{#include ../cli/tests/"];
    let is_included = block.text.lines().all(|line| line.is_empty() || of_tested.iter().any(|start| line.starts_with(start)));
    let is_tested = match block.language {
        "rust" => !block.text.contains("{{#"),
        "rust,ignore" => is_included || name == GENERATED,
        language => PLAIN.contains(&language),
    };
    let Block { line, language, .. } = block;
    (!is_tested).then(|| {
        format!("docs/{name}:{line}: a block of `{language}` is not tested: make it a program (`rust`), or include a part of an example (`rust,ignore`)")
    })
}

/// The lines of includes, and what they name.
fn includes(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let target = |line| str::split_once(line, "{{#include ")?.1.split_once("}}").map(|(target, _)| target);
    text.lines().enumerate().filter_map(move |(index, line)| Some((index + 1, target(line)?)))
}

/// The problem of an include: `../examples/a.rs`, with an anchor `../examples/a.rs:kernel`, or with lines `../examples/a.rs:5:`.
fn missing(docs: &Path, target: &str) -> Option<String> {
    let (path, part) = target.split_once(':').unwrap_or((target, ""));
    let Ok(text) = fs::read_to_string(docs.join(path)) else { return Some(format!("`{path}` is included, and cannot be read")) };
    let is_lines = part.chars().all(|c| c.is_ascii_digit() || c == ':');
    let has = |mark: &str| text.lines().any(|line| line.trim() == format!("// {mark}: {part}"));
    if is_lines || (has("ANCHOR") && has("ANCHOR_END")) {
        return None;
    }
    Some(format!("`{path}` has no lines `// ANCHOR: {part}` and `// ANCHOR_END: {part}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_nothing_compiles_are_found() {
        let text = "```rust\nfn main() {}\n```\n\n```rust,ignore\n{{#include ../examples/a.rs:b}}\n```\n\n```rust,ignore\nlet a = ..;\n```\n```c\n```\n";
        let blocks = code_blocks(text);
        let found: Vec<_> = blocks.iter().filter(|block| untested("a.md", block).is_some()).map(|block| block.line).collect();
        assert_eq!(found, [9, 12]);
        assert!(blocks.iter().filter(|block| block.language == "rust,ignore").all(|block| untested(GENERATED, block).is_none()));
    }

    #[test]
    fn missing_files_and_anchors_are_found() {
        let folder = std::env::temp_dir().join(format!("galatea-book-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("a.rs"), "// ANCHOR: whole\nfn a() {}\n// ANCHOR_END: whole\n// ANCHOR: half\n").unwrap();
        let text = "{{#include a.rs:whole}}\n{{#include a.rs:half}}\n{{#include a.rs:none}}\n{{#include a.rs:2:}}\n{{#include a.rs}}\n{{#include b.rs}}\n";
        let found: Vec<_> = includes(text).filter(|(_, target)| missing(&folder, target).is_some()).map(|(line, _)| line).collect();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, [2, 3, 6]);
    }
}
