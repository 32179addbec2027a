//! Diagnostics: errors for the user, with message, source span and help.

use std::fmt;

use crate::location::{Loc, Name};

/// One error in a kernel.
///
/// The message uses the terms of the kernel language, in lower case, without a full stop, with code in backticks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// The error message.
    pub message: String,
    /// The span to underline.
    pub loc: Loc,
    /// Further spans that explain the error, each with its remark.
    pub labels: Vec<(Loc, String)>,
    /// How to fix it.
    pub help: Option<String>,
    /// Does the kernel exceed a limit of the GPU, so that other values or another schedule may work?
    pub beyond_gpu: bool,
}

impl Diagnostic {
    /// An error at a span.
    pub fn new(loc: Loc, message: impl Into<String>) -> Diagnostic {
        Diagnostic { message: message.into(), loc, labels: Vec::new(), help: None, beyond_gpu: false }
    }

    /// Adds how to fix it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// Marks the error as exceeding a limit of the GPU.
    #[must_use]
    pub fn beyond_gpu(mut self) -> Diagnostic {
        self.beyond_gpu = true;
        self
    }

    /// Adds a further span with its remark.
    #[must_use]
    pub fn label(mut self, loc: Loc, remark: impl Into<String>) -> Diagnostic {
        self.labels.push((loc, remark.into()));
        self
    }
}

/// Prints `message`, then `help: ...` on a line of its own.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        for (loc, remark) in &self.labels {
            write!(f, "\nnote: {remark} (line {})", loc.line)?;
        }
        if let Some(help) = &self.help {
            write!(f, "\nhelp: {help}")?;
        }
        Ok(())
    }
}

/// The errors found so far. A phase pushes errors and continues, then stops once with [`Diagnostics::finish`].
///
/// Dropping it with unread errors panics in debug builds, because losing an error is a defect of the compiler.
#[derive(Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    read: bool,
}

impl Diagnostics {
    /// An empty list.
    pub fn new() -> Diagnostics {
        Diagnostics::default()
    }

    /// Adds an error; drops it if the same error at the same span is already listed.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if !self.list.contains(&diagnostic) {
            self.list.push(diagnostic);
        }
    }

    /// Adds all errors of another phase.
    pub fn extend(&mut self, other: Diagnostics) {
        other.into_vec().into_iter().for_each(|diagnostic| self.push(diagnostic));
    }

    /// Is the list empty?
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The number of errors. A checker compares counts to see whether a step failed.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// The errors in the order in which they were found.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }

    /// Ends the phase: returns `value` if there are no errors.
    ///
    /// # Errors
    /// The collected errors, if there are any.
    pub fn finish<T>(self, value: T) -> Result<T, Diagnostics> {
        if self.list.is_empty() { Ok(value) } else { Err(self) }
    }

    /// Takes the errors out, sorted by span.
    pub fn into_vec(mut self) -> Vec<Diagnostic> {
        self.read = true;
        let mut list = std::mem::take(&mut self.list);
        list.sort_by_key(|diagnostic| diagnostic.loc);
        list
    }

    /// Renders the errors for a terminal: `error: message`, ` --> file:line:column`, `help: ...`.
    pub fn render(self, files: &[Name]) -> String {
        let mut text = String::new();
        for diagnostic in self.into_vec() {
            text.push_str("error: ");
            text.push_str(&diagnostic.message);
            text.push('\n');
            let file_of = |loc: Loc| files.get(usize::from(loc.file)).map_or("kernel", |name| name);
            if diagnostic.loc.is_some() {
                let Loc { line, column, .. } = diagnostic.loc;
                text.push_str(&format!(" --> {}:{line}:{column}\n", file_of(diagnostic.loc)));
            }
            for (loc, remark) in &diagnostic.labels {
                text.push_str(&format!("note: {}:{}:{}: {remark}\n", file_of(*loc), loc.line, loc.column));
            }
            if let Some(help) = &diagnostic.help {
                text.push_str(&format!("help: {help}\n"));
            }
        }
        text
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Diagnostics {
        Diagnostics { list: vec![diagnostic], read: false }
    }
}

impl Drop for Diagnostics {
    fn drop(&mut self) {
        if cfg!(debug_assertions) && !self.read && !self.list.is_empty() && !std::thread::panicking() {
            panic!("diagnostics dropped unread: {:?}", self.list);
        }
    }
}

/// The closest of `candidates` to a misspelt `name`, if one is near enough to suggest.
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(1) + usize::from(name.len() > 4);
    candidates
        .into_iter()
        .map(|candidate| (edit_distance(name, candidate), candidate))
        // If every character of the name had to change, the candidate is no suggestion: every name is that near to a name of one character.
        .filter(|(distance, _)| *distance <= limit && *distance < name.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance where swapping two neighbours also costs one (optimal string alignment).
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let same = usize::from(a[i - 1] != b[j - 1]);
                let mut best = (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(rows[i - 1][j - 1] + same);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    best = best.min(rows[i - 2][j - 2] + 1);
                }
                best
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_a_near_name_only() {
        let names = ["arange", "store", "load", "sigmoid"];
        assert_eq!(did_you_mean("arrange", names), Some("arange"));
        assert_eq!(did_you_mean("sotre", names), Some("store"));
        assert_eq!(did_you_mean("sgimoid", names), Some("sigmoid"));
        assert_eq!(did_you_mean("matmul", names), None);
    }

    #[test]
    fn mistakes_are_sorted_by_position_and_reported_once() {
        let mut diagnostics = Diagnostics::new();
        diagnostics.push(Diagnostic::new(Loc::new(9, 1), "late"));
        diagnostics.push(Diagnostic::new(Loc::new(2, 4), "early").help("mend it"));
        diagnostics.push(Diagnostic::new(Loc::new(9, 1), "late"));
        let text = diagnostics.render(&["a.rs".into()]);
        assert_eq!(text, "error: early\n --> a.rs:2:4\nhelp: mend it\nerror: late\n --> a.rs:9:1\n");
    }

    #[test]
    #[cfg(debug_assertions)]
    fn unread_mistakes_panic() {
        let outcome = std::panic::catch_unwind(|| {
            let _unread = Diagnostics::from(Diagnostic::new(Loc::NONE, "lost"));
        });
        assert!(outcome.is_err());
    }
}
