//! Errors of PTX text, with their positions.

use super::Position;

/// A mistake in PTX or a construct that the simulator does not support, with its position and its line.
///
/// The message shows the line with a caret below the position:
///
/// ```text
/// PTX line 3, column 20: expected `;`, found `%r3`
///   add.s32 %r1, %r2 %r3;
///                    ^
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("PTX line {}, column {}: {message}\n  {}\n  {}^", position.line, position.column, line.trim_end(), self.indent())]
pub struct PtxError {
    /// The position of the mistake.
    pub position: Position,
    /// The description of the mistake.
    pub message: String,
    /// The text of the line.
    pub line: String,
}

impl PtxError {
    /// An error at this position of the text.
    pub(crate) fn new(text: &str, position: Position, message: impl Into<String>) -> PtxError {
        let row = position.line.saturating_sub(1) as usize;
        let line = text.split('\n').nth(row).unwrap_or_default().trim_end_matches('\r').to_owned();
        PtxError { position, message: message.into(), line }
    }

    /// The spaces before the caret. Tabs of the line stay tabs.
    fn indent(&self) -> String {
        let before = self.position.column.saturating_sub(1) as usize;
        let characters = self.line.char_indices().take_while(|&(offset, _)| offset < before);
        characters.map(|(_, character)| if character == '\t' { '\t' } else { ' ' }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_is_below_the_position() {
        let error = PtxError::new("a\n\tadd é x;\r\n", Position { line: 2, column: 9 }, "no");
        assert_eq!(error.to_string(), "PTX line 2, column 9: no\n  \tadd é x;\n  \t      ^");
        let past = PtxError::new("a", Position { line: 7, column: 3 }, "no");
        assert_eq!(past.to_string(), "PTX line 7, column 3: no\n  \n  ^");
    }
}
