//! The links of the built book: relative ones must lead to a file and, behind `#`, to an element of the page.
//!
//! Pages also link to files of the repository that are no chapters, such as `../README.md`; and ARCHITECTURE.md, which is a chapter by inclusion, is written
//! from another folder. Such links become links to chapters, or to the files in the repository, so that they work in the book as they do in a checkout.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};

/// The files of the repository are shown here.
const REPOSITORY: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/");
/// mdBook's own pages: the table of contents, and the page for addresses that do not exist, whose links depend on where the book is published.
const NOT_WRITTEN: [&str; 2] = ["toc.html", "404.html"];

/// Rewrites the links that leave the book, and checks all of them. Returns the numbers of pages and links, and a line for each dead link.
pub(super) fn check(root: &Path, book: &Path) -> Result<(usize, usize, Vec<String>)> {
    let mut pages = BTreeMap::new();
    for entry in book.read_dir().with_context(|| format!("cannot read {}", book.display()))? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.ends_with(".html") && !NOT_WRITTEN.contains(&&*name) {
            pages.insert(name, fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?);
        }
    }
    let ids: BTreeMap<&str, HashSet<&str>> =
        pages.iter().map(|(name, html)| (&**name, values(html, "id").map(|(_, id)| id).collect())).collect();
    let (mut links, mut problems) = (0, Vec::new());
    for (name, html) in &pages {
        let mut rewritten = String::with_capacity(html.len());
        let mut copied = 0;
        let mut targets: Vec<(usize, &str)> = values(html, "href").chain(values(html, "src")).collect();
        targets.sort_unstable();
        for (at, link) in targets {
            links += 1;
            match resolve(root, book, name, link, &ids) {
                Target::Good => {}
                Target::Elsewhere(better) => {
                    rewritten += &html[copied..at];
                    rewritten += &better;
                    copied = at + link.len();
                }
                // The page for printing repeats all chapters, and so their links.
                Target::Dead(_) if name == "print.html" => {}
                Target::Dead(why) => problems.push(format!("{}: `{link}` {why}", source_of(name))),
            }
        }
        if copied > 0 {
            rewritten += &html[copied..];
            fs::write(book.join(name), rewritten).with_context(|| format!("cannot write {name}"))?;
        }
    }
    problems.dedup();
    Ok((pages.len(), links, problems))
}

#[derive(Debug, PartialEq)]
enum Target {
    Good,
    /// The link that leads where the author meant.
    Elsewhere(String),
    Dead(&'static str),
}

fn resolve(root: &Path, book: &Path, page: &str, link: &str, ids: &BTreeMap<&str, HashSet<&str>>) -> Target {
    if link.contains(':') || link.starts_with("//") {
        return Target::Good;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let path = if path.is_empty() { page } else { path };
    if book.join(path).is_file() {
        let has_anchor = anchor.is_empty() || ids.get(path).is_none_or(|ids| ids.contains(anchor));
        return if has_anchor { Target::Good } else { Target::Dead("names no heading of that page") };
    }
    // mdBook has made `.html` of `.md`.
    let source = path.strip_suffix(".html").map_or_else(|| path.to_owned(), |stem| format!("{stem}.md"));
    for folder in ["docs", ""] {
        let Some(file) = normal(&Path::new(folder).join(&source)) else { continue };
        if !root.join(&file).exists() {
            continue;
        }
        let file = file.to_string_lossy().replace('\\', "/");
        let chapter = match file.as_str() {
            "ARCHITECTURE.md" => Some("internals".to_owned()),
            file => file.strip_prefix("docs/").and_then(|file| file.strip_suffix(".md")).map(str::to_owned),
        };
        let anchor = link.find('#').map_or("", |at| &link[at..]);
        let Some(chapter) = chapter else { return Target::Elsewhere(format!("{REPOSITORY}{file}{anchor}")) };
        let inside = format!("{chapter}.html{anchor}");
        return match resolve(root, book, page, &inside, ids) {
            Target::Good => Target::Elsewhere(inside),
            other => other,
        };
    }
    Target::Dead("leads to no file")
}

/// The path without `..`, or none if it leaves the repository.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                if !parts.pop() {
                    return None;
                }
            }
            Component::CurDir => {}
            part => parts.push(part),
        }
    }
    Some(parts)
}

/// The name of the page in `docs/`.
fn source_of(page: &str) -> String {
    format!("docs/{}.md", page.trim_end_matches(".html"))
}

/// The values of an attribute, with their positions.
fn values<'a>(html: &'a str, attribute: &str) -> impl Iterator<Item = (usize, &'a str)> {
    let start = format!(" {attribute}=\"");
    let positions: Vec<usize> = html.match_indices(&start).map(|(at, start)| at + start.len()).collect();
    positions.into_iter().filter_map(|at| Some((at, html[at..].split_once('"')?.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_where_they_were_written_to_lead() {
        let root = crate::process::root();
        let book = std::env::temp_dir().join(format!("galatea-links-{}", std::process::id()));
        fs::create_dir_all(&book).unwrap();
        for (name, html) in [
            ("guide.html", r#"<h1 id="from-triton"></h1><a href="caches.html#none">"#),
            ("internals.html", r#"<a id="map">"#),
            ("caches.html", ""),
        ] {
            fs::write(book.join(name), html).unwrap();
        }
        let ids = BTreeMap::from([
            ("guide.html", HashSet::from(["from-triton"])),
            ("internals.html", HashSet::from(["map"])),
            ("caches.html", HashSet::new()),
        ]);
        let to = |link| resolve(&root, &book, "guide.html", link, &ids);
        let elsewhere = |link: &str| Target::Elsewhere(link.to_owned());
        for good in ["guide.html", "#from-triton", "guide.html#from-triton", "https://example.org/a", "mailto:a@example.org"] {
            assert_eq!(to(good), Target::Good, "{good}");
        }
        assert_eq!(to("../ARCHITECTURE.html#map"), elsewhere("internals.html#map"));
        assert_eq!(to("docs/caches.html"), elsewhere("caches.html"));
        assert_eq!(to("../README.html#limits"), elsewhere(&format!("{REPOSITORY}README.md#limits")));
        assert_eq!(to("xtask/src/main.rs"), elsewhere(&format!("{REPOSITORY}xtask/src/main.rs")));
        for dead in ["#none", "caches.html#none", "../ARCHITECTURE.html#none", "none.html", "../../../none.md"] {
            assert!(matches!(to(dead), Target::Dead(_)), "{dead}");
        }
        let (pages, links, problems) = check(&root, &book).unwrap();
        fs::remove_dir_all(&book).unwrap();
        assert_eq!((pages, links), (3, 1));
        assert_eq!(problems, ["docs/guide.md: `caches.html#none` names no heading of that page"]);
    }
}
