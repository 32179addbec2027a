//! `docs/builtins.md`, the reference of the builtins in the book: the documentation of `src/dsl` as one page.
//!
//! | in `src/dsl` | on the page |
//! |---|---|
//! | the documentation of `mod.rs` and its headings | the first sections |
//! | a module | a section, with the module's documentation |
//! | a function, a type | a heading in its section, its usage, and its documentation |
//! | links to items, such as ``[`exp`](super::exp)`` | links within the page |

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

/// The modules in the order of the page, with their titles.
const SECTIONS: [(&str, &str); 15] = [
    ("program", "Programs and ranges"),
    ("memory", "Memory"),
    ("tile", "Creating tiles"),
    ("shape", "Shapes"),
    ("math", "Mathematics"),
    ("special", "Further mathematics"),
    ("fast", "Approximations"),
    ("floats", "Classification of floats"),
    ("bits", "Bits"),
    ("reduction", "Reductions and scans"),
    ("product", "Matrix products"),
    ("lookup", "Lookup and sorting"),
    ("random", "Random numbers"),
    ("atomic", "Atomics"),
    ("overlap", "Programmatic dependent launch"),
];

const INTRODUCTION: &str = "\
# Builtin functions

This page is the reference of the kernel language: values, types, operators and statements, and then every builtin. It is generated from the documentation of
the module `galatea::dsl`, which `cargo doc --open` shows as well. [The language on one page](language.md) is a summary.

The code blocks are parts of kernels. They use `offsets`, a tile of indices; `mask`, which is `offsets < n`; `v`, a tile of `f32`; the pointers `x` and `y`; and
the scalars `n` and `a`. Tests compile the examples of the functions.

";

/// A documented item of a module.
struct Item {
    name: String,
    is_type: bool,
    doc: String,
}

/// The page.
///
/// # Errors
/// A module, item or link that the page cannot show.
pub(crate) fn page() -> Result<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/dsl");
    let read =
        |module: &str| std::fs::read_to_string(folder.join(module).with_extension("rs")).map_err(|error| format!("{module}.rs: {error}"));
    let files = folder.read_dir().map_err(|error| error.to_string())?.filter_map(Result::ok);
    let files: BTreeSet<String> = files.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
    let listed: BTreeSet<String> = SECTIONS.iter().map(|(module, _)| *module).chain(["mod"]).map(|module| format!("{module}.rs")).collect();
    if files != listed {
        return Err(format!("`SECTIONS` in {} lists {listed:?}, and src/dsl has {files:?}", file!()));
    }

    let head = read("mod")?;
    let types: Vec<Item> = items(&head).into_iter().filter(|item| item.is_type).collect();
    let mut sections = Vec::new();
    for (module, title) in SECTIONS {
        let source = read(module)?;
        sections.push((title, module_doc(&source), items(&source)));
    }
    let documented: BTreeSet<&str> = sections.iter().flat_map(|(_, _, items)| items).map(|item| item.name.as_str()).collect();
    if let Some(missing) = kernel_frontend::builtins().find(|builtin| !documented.contains(builtin.name)) {
        return Err(format!("the builtin `{}` has no documented function in src/dsl", missing.name));
    }

    let mut page = INTRODUCTION.to_owned();
    page.push_str("| builtins | |\n|---|---|\n");
    for (title, _, items) in &sections {
        let names: Vec<String> = items.iter().map(|item| format!("[`{0}`](#{0})", item.name)).collect();
        let _ = writeln!(page, "| [{title}](#{}) | {} |", title.to_lowercase().replace(' ', "-"), names.join(" "));
    }
    page.push('\n');
    let rules = module_doc(&head);
    // What stands before the first heading is about the module, not about the language.
    let rules = rules.find("# Values\n").map_or("", |start| &rules[start..]);
    push_doc(&mut page, rules, 1);
    page.push_str("## Types of parameters\n\n");
    types.iter().for_each(|item| push_item(&mut page, item));
    for (title, doc, items) in &sections {
        let _ = write!(page, "## {title}\n\n");
        push_doc(&mut page, doc, 2);
        items.iter().for_each(|item| push_item(&mut page, item));
    }
    let page = format!("{}\n", page.trim_end());

    let mut targets: Vec<(String, String)> =
        types.iter().map(|item| (item.name.clone(), format!("parameter-{}", item.name.to_lowercase()))).collect();
    targets.extend(documented.iter().map(|name| ((*name).to_owned(), (*name).to_owned())));
    targets.extend(SECTIONS.map(|(module, title)| (module.to_owned(), title.to_lowercase().replace(' ', "-"))));
    linked(&page, &targets)
}

/// The `//!` lines.
fn module_doc(source: &str) -> String {
    source.lines().map_while(|line| line.strip_prefix("//!")).map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect()
}

/// The public functions and types, with their `///` lines.
fn items(source: &str) -> Vec<Item> {
    let (mut items, mut doc) = (Vec::new(), String::new());
    for line in source.lines() {
        if let Some(text) = line.strip_prefix("///") {
            doc.push_str(text.strip_prefix(' ').unwrap_or(text));
            doc.push('\n');
        } else if let Some(rest) = line.strip_prefix("pub fn ").or_else(|| line.strip_prefix("pub struct ")) {
            let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default().to_owned();
            items.push(Item { name, is_type: line.starts_with("pub struct"), doc: std::mem::take(&mut doc) });
        } else if !line.starts_with("#[") {
            doc.clear();
        }
    }
    items
}

fn push_item(page: &mut String, item: &Item) {
    if item.is_type {
        let _ = write!(page, "### Parameter `{}`\n\n", item.name);
    } else {
        let _ = write!(page, "### `{}`\n\n", item.name);
        if let Some(builtin) = kernel_frontend::builtins().find(|builtin| builtin.name == item.name) {
            let _ = write!(page, "```text\n{}\n```\n\n", builtin.usage);
        }
    }
    push_doc(page, &item.doc, 3);
}

/// Appends documentation, with headings some levels lower; examples are parts of kernels, which no tool compiles by itself.
fn push_doc(page: &mut String, doc: &str, levels: usize) {
    let mut in_code = false;
    for line in doc.lines() {
        let is_fence = line.starts_with("```");
        if !in_code && line.starts_with('#') {
            page.push_str(&"#".repeat(levels));
        }
        page.push_str(if line == "```ignore" { "```rust,ignore" } else { line });
        page.push('\n');
        in_code ^= is_fence;
    }
    page.push('\n');
}

/// The page with links to items in place of rustdoc's.
fn linked(page: &str, targets: &[(String, String)]) -> Result<String, String> {
    let (mut out, mut rest) = (String::new(), page);
    while let Some(start) = rest.find("[`") {
        let (before, link) = rest.split_at(start);
        out.push_str(before);
        let Some((name, after)) = link[2..].split_once("`]") else { return Err(format!("a link is not closed: {link:.40}")) };
        if after.starts_with("(#") {
            // The index has links of the page already.
            let _ = write!(out, "[`{name}`]");
            rest = after;
            continue;
        }
        let target =
            targets.iter().find(|(item, _)| item == name).ok_or_else(|| format!("a link to `{name}`, which the page does not have"))?;
        let _ = write!(out, "[`{name}`](#{})", target.1);
        rest = if after.starts_with("(super::") { after.split_once(')').map_or("", |(_, rest)| rest) } else { after };
    }
    out.push_str(rest);
    Ok(out)
}
