//! `docs/requirements.md`: the tests that it names exist and run, and each requirement and each task has a row.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn page() -> String {
    fs::read_to_string(root().join("docs/requirements.md")).unwrap()
}

/// The rows of the tables by the name in their first column.
fn rows(page: &str) -> BTreeMap<&str, &str> {
    let row = |line| str::strip_prefix(line, "| ").and_then(|cells| cells.split_once(" | "));
    page.lines().filter_map(row).collect()
}

/// The links of a text to the repository's files: the names of tests and paths. The name is the text of the link, or stands behind `#`.
fn links(text: &str) -> Vec<(&str, &str)> {
    let mut links = Vec::new();
    for (at, _) in text.match_indices("](../") {
        let start = text[..at].rfind('[').map_or(0, |start| start + 1);
        let path = &text[at + "](../".len()..];
        let path = &path[..path.find(')').unwrap_or(0)];
        links.push(match path.split_once('#') {
            Some((path, name)) => (name, path),
            None => (text[start..at].trim_matches('`'), path),
        });
    }
    links
}

/// What is wrong with a link: the file does not exist, or has no test of this name that a harness runs.
fn problem(name: &str, path: &str) -> Option<String> {
    let file = root().join(path);
    let Ok(text) = fs::read_to_string(&file) else { return Some(format!("`{path}` does not exist")) };
    // A link to a file that is no test has its name.
    if Path::new(path).file_name().is_some_and(|file| file == name) {
        return None;
    }
    let definition = |end| text.find(&format!("fn {name}{end}"));
    let Some(at) = definition('(').or_else(|| definition('<')) else { return Some(format!("`{path}` has no `{name}`")) };
    let has_attribute = text[..at].lines().rev().take(4).any(|line| line.trim() == "#[test]");
    let is_in_list = |text: &str, ends: &[char]| {
        text.match_indices(name).any(|(at, _)| {
            let is_end = text[at + name.len()..].starts_with(ends);
            is_end && !text[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_')
        })
    };
    let main = file.parent().and_then(|folder| fs::read_to_string(folder.join("main.rs")).ok());
    let is_run = has_attribute || is_in_list(&text, &[',', '<', ')']) || main.is_some_and(|main| is_in_list(&main, &['"']));
    (!is_run).then(|| format!("`{name}` of `{path}` is run by no harness"))
}

pub(crate) fn tests_of_the_page_exist() {
    let page = page();
    let links = links(&page);
    assert!(links.len() > 100, "the page names {} tests", links.len());
    let problems: Vec<String> = links.iter().filter_map(|(name, path)| problem(name, path)).collect();
    assert!(problems.is_empty(), "docs/requirements.md:\n{}", problems.join("\n"));
    // Mistakes are seen.
    let this = "kernel-graph/tests/acceptance/page.rs";
    assert_eq!(problem("tests_of_the_page_exist", this), None);
    assert!(problem("no_such_test", this).is_some() && problem("links", this).is_some() && problem("links", "no/such/file.rs").is_some());
}

pub(crate) fn all_requirements_have_a_row() {
    let page = page();
    let rows = rows(&page);
    let numbered = |letter: &'static str, numbers: std::ops::RangeInclusive<usize>| numbers.map(move |number| format!("{letter}{number}"));
    let requirements = numbered("K", 1..=10).chain(numbered("O", 1..=19)).chain(numbered("G", 1..=15)).chain(numbered("A", 1..=13));
    for name in requirements.chain(numbered("", 1..=20)) {
        let row = rows.get(&*name).unwrap_or_else(|| panic!("docs/requirements.md has no row `{name}`"));
        assert!(
            !links(row).is_empty() || row.contains("](#support-chart)") || row.contains("**not met**") || row.contains("no such thing"),
            "{name}: {row}"
        );
    }
}
