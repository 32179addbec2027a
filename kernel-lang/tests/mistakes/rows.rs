//! The files of rows: reading them, and writing them back as they were.
//!
//! ```text
//! # A line that begins so is for the reader.
//!
//! [exp log]                                 the builtins of the rows below; `$` stands for each; `[]` names none
//!
//! too many arguments: $(v, «s»)             the kind of mistake, and the statement
//!     error: `$` takes 1 argument, not 2
//!     help: write `$(x)`
//!
//! #[kernel(N = [96])] value: ..             the kernel's attribute, where it matters
//! ```

use std::fmt;
use std::path::{Path, PathBuf};

/// A mistake and what is said of it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Row {
    pub(crate) attribute: String,
    pub(crate) kind: String,
    /// With `«` and `»` around what is underlined.
    pub(crate) statement: String,
    /// Messages and their helps: one, unless something is wrong.
    pub(crate) expected: Vec<(String, String)>,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.attribute != PLAIN {
            write!(f, "{} ", self.attribute)?;
        }
        writeln!(f, "{}: {}", self.kind, self.statement)?;
        for (message, help) in &self.expected {
            writeln!(f, "    error: {message}")?;
            if !help.is_empty() {
                writeln!(f, "    help: {help}")?;
            }
        }
        Ok(())
    }
}

const PLAIN: &str = "#[kernel]";

/// Rows for some builtins.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    /// The comments and empty lines before the section.
    before: String,
    pub(crate) builtins: Vec<String>,
    pub(crate) rows: Vec<Row>,
}

/// A file of rows.
pub(crate) struct File {
    path: PathBuf,
    sections: Vec<Section>,
}

impl File {
    pub(crate) fn read(path: &Path) -> File {
        let text = std::fs::read_to_string(path).expect("a file of rows is text");
        let shown = path.display();
        let mut sections: Vec<Section> = Vec::new();
        let mut before = String::new();
        for (index, line) in text.lines().enumerate() {
            let is_comment = line.starts_with('#') && !line.starts_with("#[");
            if line.is_empty() || is_comment {
                before += line;
                before += "\n";
            } else if let Some(builtins) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                let builtins = builtins.split_whitespace().map(str::to_string).collect();
                sections.push(Section { before: std::mem::take(&mut before), builtins, rows: Vec::new() });
            } else {
                let rows = sections.last_mut().map(|section| &mut section.rows);
                let rows = rows.unwrap_or_else(|| panic!("{shown}:{}: a row stands below its builtins", index + 1));
                match (line.strip_prefix("    error: "), line.strip_prefix("    help: "), rows.last_mut()) {
                    (Some(message), _, Some(row)) => row.expected.push((message.to_string(), String::new())),
                    (_, Some(help), Some(Row { expected, .. })) if !expected.is_empty() => {
                        expected.last_mut().expect("there is one").1 = help.to_string();
                    }
                    _ => rows.push(row(line).unwrap_or_else(|| panic!("{shown}:{}: a row is `kind of mistake: statement`", index + 1))),
                }
                // Empty lines between rows are written by themselves.
                assert!(before.trim().is_empty(), "{shown}:{}: comments stand before a section", index + 1);
                before.clear();
            }
        }
        File { path: path.to_path_buf(), sections }
    }

    pub(crate) fn name(&self) -> String {
        self.path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }

    pub(crate) fn sections(&self) -> impl Iterator<Item = &Section> {
        self.sections.iter()
    }

    pub(crate) fn sections_mut(&mut self) -> impl Iterator<Item = &mut Section> {
        self.sections.iter_mut()
    }

    pub(crate) fn write(&self) {
        let mut text = String::new();
        for section in &self.sections {
            text += &format!("{}[{}]\n", section.before, section.builtins.join(" "));
            for row in &section.rows {
                text += &format!("\n{row}");
            }
        }
        std::fs::write(&self.path, text).expect("the rows can be written");
    }
}

fn row(line: &str) -> Option<Row> {
    let (attribute, rest) = match line.strip_prefix("#[").and_then(|rest| rest.split_once(")] ")) {
        Some((arguments, rest)) => (format!("#[{arguments})]"), rest),
        None => (PLAIN.to_string(), line),
    };
    let (kind, statement) = rest.split_once(": ")?;
    Some(Row { attribute, kind: kind.to_string(), statement: statement.to_string(), expected: Vec::new() })
}
