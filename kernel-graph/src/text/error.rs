//! Errors of texts of graphs.

use std::fmt;

use super::Span;

/// A mistake in the text of a graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextError {
    /// The line, from 1 on.
    pub line: usize,
    /// The column, in characters from 1 on.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
    /// The line of the text, or a part of it, and the number of characters in front of the mistake.
    excerpt: Option<(String, usize)>,
}

/// The most characters of a line that an error shows.
const MOST_SHOWN: usize = 120;

impl TextError {
    pub(super) fn new(source: &str, span: Span, message: String, help: Option<String>) -> TextError {
        let line = span.line.checked_sub(1).and_then(|line| source.split('\n').nth(line)).filter(|line| !line.trim().is_empty());
        let excerpt = line.map(|line| {
            let before = span.column.saturating_sub(1);
            let left_out = before.saturating_sub(MOST_SHOWN / 2);
            // A control character has no width of 1.
            let shown = line.chars().skip(left_out).take(MOST_SHOWN).map(|c| if c.is_control() { ' ' } else { c });
            (shown.collect::<String>().trim_end().to_owned(), before - left_out)
        });
        TextError { line: span.line, column: span.column, message, help, excerpt }
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)?;
        if let Some((line, before)) = &self.excerpt {
            write!(f, "\n  | {line}\n  | {:before$}^", "")?;
        }
        match &self.help {
            Some(help) => write!(f, "\nhelp: {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for TextError {}
