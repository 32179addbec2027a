//! Modules of one entry each, made of the text of a module with two. An assembler takes one to two seconds for an entry with matrix products, and most launches
//! need only one of the two.

use std::borrow::Cow;

use super::split_entries;

/// The lines in front of the entries, apart from comments, that each module can have for itself.
const SHARED: [&str; 6] = [".version ", ".target ", ".address_size ", ".const ", ".extern .shared ", FILE];
/// Names a source file.
const FILE: &str = ".file ";
/// The beginning of a function that is an entry, with the end of the line before it.
const ENTRY: &str = "\n.visible .entry ";
/// The end of a function, with the end of the line before it.
const END: &str = "\n}\n";

/// The module with the usual entry alone, and the module with the persistent entry alone, if the PTX text has one. Both have the target, the constants, the declaration
/// of shared memory and the names of source files, and each has the comments about its own launches.
///
/// A text that the compiler did not write may have more in common, such as variables or functions. Each of the two is then the whole text.
pub fn separate_modules(ptx: &str) -> (Cow<'_, str>, Option<Cow<'_, str>>) {
    let (usual, Some(persistent)) = split_entries(ptx) else { return (Cow::Borrowed(ptx), None) };
    match separated(usual, persistent) {
        Some([usual, persistent]) => (Cow::Owned(usual), Some(Cow::Owned(persistent))),
        None => (Cow::Borrowed(ptx), Some(Cow::Borrowed(ptx))),
    }
}

fn separated(usual: &str, persistent: &str) -> Option<[String; 2]> {
    let has_one_entry = |part: &str| part.matches(ENTRY).count() == 1;
    // The names of source files follow the last function.
    let files = &persistent[persistent.rfind(END)? + END.len()..];
    let function = usual.trim_end();
    if !has_one_entry(usual) || !has_one_entry(persistent) || !function.ends_with(END.trim_end()) || !files.lines().all(is_file) {
        return None;
    }
    let mut head = String::new();
    for line in usual[..usual.find(ENTRY)?].lines().filter(|line| !is_comment(line)) {
        // A declaration ends where its line does.
        let is_whole = !line.starts_with(".const ") && !line.starts_with(".extern ") || line.ends_with(';');
        if !is_whole || !SHARED.iter().any(|shared| line.starts_with(shared)) {
            return None;
        }
        head.push_str(line);
        head.push('\n');
    }
    Some([format!("{function}\n{files}"), format!("{head}\n{persistent}")])
}

fn is_comment(line: &str) -> bool {
    line.is_empty() || line.starts_with("//")
}

fn is_file(line: &str) -> bool {
    line.is_empty() || line.starts_with(FILE)
}
