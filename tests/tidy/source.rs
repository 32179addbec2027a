//! The project's texts as the rules see them: with comments and literals separated from code.

use std::path::Path;
use std::sync::LazyLock;

/// One text file of the project. Paths are relative to the workspace root, with `/` between folders.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
    /// The text of a Rust file with comments blanked out, line by line as it was.
    pub(crate) without_comments: String,
    /// The same with the contents of string and character literals blanked out as well.
    pub(crate) code: String,
}

/// A line that breaks a rule, and what to do about it.
pub(crate) struct Finding {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) mend: String,
}

/// Every text file that is written by hand; what Git does not track lives in folders that are passed over.
pub(crate) fn project() -> &'static [Source] {
    static ALL: LazyLock<Vec<Source>> = LazyLock::new(read_project);
    &ALL
}

fn read_project() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this package lies in the project");
    let mut sources = Vec::new();
    read_folder(root, "", &mut sources);
    let rust = sources.iter().filter(|source| source.is_rust()).count();
    assert!(rust > 5, "only {rust} Rust files were found under {}", root.display());
    sources
}

fn read_folder(root: &Path, folder: &str, sources: &mut Vec<Source>) {
    const WRITTEN: &[&str] = &["kir", "md", "py", "rs", "sh", "toml", "yaml", "yml"];
    for entry in root.join(folder).read_dir().expect("a folder of the project is readable") {
        let entry = entry.expect("a folder of the project is readable");
        let name = entry.file_name().into_string().expect("names in the project are UTF-8");
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        let hidden = name.starts_with('.') && name != ".ci" && name != ".cargo";
        if entry.path().is_dir() {
            if !hidden && name != "target" {
                read_folder(root, &path, sources);
            }
        } else if path == ".ci/run" || name.rsplit_once('.').is_some_and(|(_, extension)| WRITTEN.contains(&extension)) {
            let text = std::fs::read_to_string(entry.path()).expect("a text file of the project is UTF-8");
            sources.push(Source::new(&path, &text));
        }
    }
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let is_rust = path.ends_with(".rs");
        let without_comments = if is_rust { blank(text, false) } else { text.to_owned() };
        let code = if is_rust { blank(text, true) } else { text.to_owned() };
        Source { path: path.to_owned(), text: text.to_owned(), without_comments, code }
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Rust files that are the input of a test: often wrong on purpose, and compared as they are.
    pub(crate) fn is_test_case(&self) -> bool {
        self.path.contains("/ui/") || self.path.contains("/filetests/")
    }

    pub(crate) fn finding(&self, line: usize, mend: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line, mend: mend.into() }
    }
}

/// Where `word` stands in the text, not as a part of a longer word.
pub(crate) fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let free = move |at: usize| {
        let ends_in_word = word.ends_with(is_word) && text[at + word.len()..].starts_with(is_word);
        !text[..at].ends_with(is_word) && !ends_in_word
    };
    text.match_indices(word).map(|(at, _)| at).filter(move |at| free(*at))
}

pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

pub(crate) fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// The text up to its module of tests, which by custom stands last.
pub(crate) fn before_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod ").next().unwrap_or(text)
}

/// The paths that follow a prefix such as `crate::`, with their lines; `crate::{ir::Function, dtype}` gives two.
pub(crate) fn paths_after(code: &str, prefix: &str) -> Vec<(usize, String)> {
    let mut paths = Vec::new();
    for at in words(code, prefix) {
        let line = line_of(code, at);
        let rest = &code[at + prefix.len()..];
        // `$crate::`, and a longer chain of `super::`, do not begin with the prefix.
        if rest.starts_with("super::") || code[..at].ends_with(['$', ':']) {
            continue;
        }
        match rest.strip_prefix('{') {
            Some(group) => paths.extend(top_level(group).into_iter().map(|path| (line, path))),
            None => paths.push((line, path_at(rest))),
        }
    }
    paths
}

/// The entries of a `{..}` group of a `use`, groups inside it left out.
fn top_level(group: &str) -> Vec<String> {
    let mut depth = 1;
    let mut entries = vec![String::new()];
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => entries.push(String::new()),
            _ if depth == 1 => entries.last_mut().expect("there is always an entry").push(c),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    entries.iter().map(|entry| path_at(entry.trim())).collect()
}

/// The longest path at the start of the text.
fn path_at(text: &str) -> String {
    text.chars().take_while(|c| is_word(*c) || *c == ':').collect()
}

/// Rust text with comments, and on request the contents of literals, replaced by spaces; lines stay lines.
fn blank(text: &str, literals: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (length, hide) = match token(rest, out.chars().next_back()) {
            Token::Comment(length) => (length, true),
            Token::Literal(length) => (length, literals),
            Token::Other => (first.len_utf8(), false),
        };
        let (taken, left) = rest.split_at(length);
        match hide {
            // A space for each byte keeps columns; the quotes go too, which no rule misses.
            true => out.extend(taken.chars().map(|c| if c == '\n' { '\n' } else { ' ' })),
            false => out.push_str(taken),
        }
        rest = left;
    }
    out
}

enum Token {
    Comment(usize),
    Literal(usize),
    Other,
}

/// The token at the start of the text. Comments and literals have their length in bytes.
fn token(text: &str, before: Option<char>) -> Token {
    let to = |end: Option<usize>, more: usize| end.map_or(text.len(), |end| end + more);
    if text.starts_with("//") {
        return Token::Comment(to(text.find('\n'), 0));
    }
    if text.starts_with("/*") {
        return Token::Comment(block_comment(text));
    }
    if let Some(after) = text.strip_prefix('"') {
        return Token::Literal(1 + quoted(after, '"'));
    }
    // A raw string, unless the letter ends a name.
    let raw = text.strip_prefix("br").or(text.strip_prefix('r')).filter(|_| !before.is_some_and(is_word));
    if let Some(after) = raw {
        let hashes = after.len() - after.trim_start_matches('#').len();
        if after[hashes..].starts_with('"') {
            let close = format!("\"{}", "#".repeat(hashes));
            let open = text.len() - after.len() + hashes + 1;
            return Token::Literal(text[open..].find(&close).map_or(text.len(), |at| open + at + close.len()));
        }
    }
    // `'a'` and `'\n'` are characters, `'a` is a lifetime.
    if let Some(after) = text.strip_prefix('\'') {
        let mut chars = after.chars();
        let (first, second) = (chars.next(), chars.next());
        if first == Some('\\') || second == Some('\'') {
            return Token::Literal(1 + quoted(after, '\''));
        }
    }
    Token::Other
}

/// The length of a literal's rest, its closing quote included.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// The length of a block comment; they nest.
fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if text[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

#[test]
fn comments_and_literals_are_distinguished_from_code() {
    let text = "a('\"', b); // \"c\"\nlet r = r#\"x \" // y\"#; /* d /* e */ */ f::<'g>(h)";
    assert_eq!(blank(text, true), "a(   , b);       \nlet r =              ;                 f::<'g>(h)");
    assert!(blank(text, false).contains("x \" // y"));
}
