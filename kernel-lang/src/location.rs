//! Positions in the user's source.

use std::fmt;
use std::sync::Arc;

/// A position in the user's source: file of the kernel, line and column.
///
/// [`Loc::NONE`] means that no position is known. A pass that creates an op gives it the position of the op it replaces.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Loc {
    /// Index into [`crate::ir::Function::files`].
    pub file: u16,
    /// Line, from 1; 0 in [`Loc::NONE`].
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

impl Loc {
    /// No position.
    pub const NONE: Loc = Loc { file: 0, line: 0, column: 0 };

    /// A position in the kernel's own file.
    pub fn new(line: u32, column: u32) -> Loc {
        Loc { file: 0, line, column }
    }

    /// Is a position known?
    pub fn is_some(self) -> bool {
        self.line != 0
    }
}

/// `12:5`, or `1:12:5` for a file other than the kernel's own.
impl fmt::Display for Loc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.file != 0 {
            write!(f, "{}:", self.file)?;
        }
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A name in a kernel: of a parameter, a type, a constant.
pub type Name = Arc<str>;
