//! The call stack of each source line. Compilers inline functions and record each inlined call in `.loc` (PTX ISA, 11.5.3, `.loc`); the
//! simulator expands the remaining calls.
//!
//! `inlined_at` gives one line. If that line was inlined, too, the last earlier `.loc` of that line gives its caller.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use crate::ptx::SourceLine;

/// The maximum depth of a call stack; longer ones are cut off. This also bounds circular `inlined_at` records.
const DEPTH: usize = 16;

/// The callers of the current line.
#[derive(Default)]
pub(super) struct Callers {
    /// The caller of each inlined line.
    of_lines: HashMap<SourceLine, SourceLine>,
    /// The callers of the body that is being expanded.
    of_body: Arc<[SourceLine]>,
    chain: Arc<[SourceLine]>,
}

impl Callers {
    /// Enters the body of a function that the current line calls. The result is for [`Self::leave`].
    pub(super) fn call(&mut self, line: SourceLine) -> [Arc<[SourceLine]>; 2] {
        let of_body = std::iter::once(line).chain(self.chain.iter().copied()).take(DEPTH).collect();
        let before = [mem::replace(&mut self.of_body, of_body), self.chain.clone()];
        self.chain = self.of_body.clone();
        before
    }

    /// Leaves the body.
    pub(super) fn leave(&mut self, [of_body, chain]: [Arc<[SourceLine]>; 2]) {
        (self.of_body, self.chain) = (of_body, chain);
    }

    /// Sets the current line from a `.loc`.
    pub(super) fn enter(&mut self, current: &mut SourceLine, line: SourceLine, inlined_at: Option<SourceLine>) {
        *current = line;
        match inlined_at {
            Some(caller) => self.of_lines.insert(line, caller),
            None => self.of_lines.remove(&line),
        };
        let outer = |line: &SourceLine| self.of_lines.get(line).copied();
        self.chain = std::iter::successors(inlined_at, outer).chain(self.of_body.iter().copied()).take(DEPTH).collect();
    }

    /// The callers of the current line, innermost first.
    pub(super) fn chain(&self) -> Arc<[SourceLine]> {
        self.chain.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_in_calls() {
        let line = |line| SourceLine { file: 1, line, column: 1 };
        let (mut callers, mut current) = (Callers::default(), SourceLine::default());
        let mut chain = |number, inlined_at: Option<u32>| {
            callers.enter(&mut current, line(number), inlined_at.map(line));
            callers.chain().iter().map(|line| line.line).collect::<Vec<_>>()
        };
        assert_eq!(chain(50, Some(30)), [30]);
        assert_eq!(chain(30, Some(9)), [9]);
        assert_eq!(chain(50, Some(30)), [30, 9]);
        assert_eq!(chain(30, None), []);
        assert_eq!(chain(50, Some(30)), [30]);
        assert_eq!(chain(7, Some(7)).len(), DEPTH);
    }

    #[test]
    fn calls_of_bodies() {
        let line = |line| SourceLine { file: 1, line, column: 1 };
        let (mut callers, mut current) = (Callers::default(), SourceLine::default());
        callers.enter(&mut current, line(50), Some(line(30)));
        let outer = callers.call(current);
        assert_eq!(*callers.chain(), [50, 30].map(line));
        callers.enter(&mut current, line(70), Some(line(69)));
        assert_eq!(*callers.chain(), [69, 50, 30].map(line));
        callers.leave(outer);
        assert_eq!(*callers.chain(), [line(30)]);
    }
}
