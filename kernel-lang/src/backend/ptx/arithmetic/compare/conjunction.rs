//! The comparisons of a mask, and the code for an element: as few comparisons as possible.

use std::ops::Range;

use crate::backend::ptx::Emitter;
use crate::backend::ptx::text::registers::{Class, Reg, asm};
use crate::ir::CompareOp;

/// The maximum number of comparisons in a mask that is recomputed; larger masks are computed once.
const MOST_TESTS: usize = 16;

/// A conjunction of comparisons.
#[derive(Clone, Debug)]
pub(crate) struct Tests {
    all: Vec<Test>,
}

/// A comparison for each register of a thread.
#[derive(Clone, Debug)]
pub(super) enum Test {
    /// Compares the thread's slack with the register's part of the index.
    Position { op: CompareOp, slack: Reg, parts: Vec<i64> },
    /// Compares `base + part`, unsigned, with a length.
    Index { bases: Vec<Reg>, parts: Vec<i64>, length: Reg },
}

impl Test {
    /// Is it the same for all elements of a thread, such as for elements of one row?
    fn is_uniform(&self) -> bool {
        matches!(self, Test::Position { parts, .. } if parts.iter().all(|part| *part == parts[0]))
    }

    /// The test of one of these registers: the last to fail as the limit tightens, or the first.
    fn of_extreme(&self, registers: Range<usize>, is_last: bool) -> Option<Test> {
        let Test::Position { op, slack, parts } = self else { return None };
        let parts = parts[registers].iter().copied();
        let part = match op {
            CompareOp::Eq | CompareOp::Ne => None,
            _ if matches!(op, CompareOp::Gt | CompareOp::Ge) == is_last => parts.min(),
            _ => parts.max(),
        };
        Some(Test::Position { op: *op, slack: *slack, parts: vec![part?] })
    }

    fn moved(self, sources: &[u32]) -> Test {
        let parts = |parts: Vec<i64>| sources.iter().map(|at| parts[*at as usize]).collect();
        match self {
            Test::Position { op, slack, parts: of } => Test::Position { op, slack, parts: parts(of) },
            Test::Index { bases, parts: of, length } => {
                let bases = sources.iter().map(|at| bases[(*at as usize).min(bases.len() - 1)]).collect();
                Test::Index { bases, parts: parts(of), length }
            }
        }
    }
}

impl From<Test> for Tests {
    fn from(test: Test) -> Tests {
        Tests { all: vec![test] }
    }
}

impl Tests {
    /// The tests if runs of `run` adjacent registers are equal: each run is tested at its first register.
    pub(crate) fn of_runs(self, run: usize) -> Tests {
        let (Test::Position { parts, .. } | Test::Index { parts, .. }) = &self.all[0];
        let sources: Vec<u32> = (0..parts.len()).map(|register| (register & !(run - 1)) as u32).collect();
        self.moved(&sources)
    }

    /// A test that holds if a mask may hold for an element of one of these registers: that of the register whose index the limit excludes last.
    pub(crate) fn of_any(&self, registers: Range<usize>) -> Option<Tests> {
        Some(Tests { all: vec![self.all.iter().find_map(|test| test.of_extreme(registers.clone(), true))?] })
    }

    /// Tests that hold only if the mask holds for the elements of all of these registers.
    pub(crate) fn of_all(&self, registers: Range<usize>) -> Option<Tests> {
        let all = self.all.iter().map(|test| test.of_extreme(registers.clone(), false));
        Some(Tests { all: all.collect::<Option<_>>()? })
    }

    /// The tests of a tile whose elements are those of other registers.
    pub(crate) fn moved(self, sources: &[u32]) -> Tests {
        Tests { all: self.all.into_iter().map(|test| test.moved(sources)).collect() }
    }
}

impl Emitter<'_> {
    /// The conjunction of two masks, with as few comparisons for an element as possible. `None` if it has more than [`MOST_TESTS`]: then a predicate is computed
    /// and kept.
    ///
    /// The driver's compiler computes a chain of comparisons once, and keeps its result in a register for each element: it has only seven predicates. One
    /// comparison it computes again.
    pub(crate) fn conjunction(&mut self, lhs: Tests, rhs: Tests) -> Option<Tests> {
        let mut all: Vec<Test> = Vec::new();
        'tests: for test in lhs.all.into_iter().chain(rhs.all) {
            for known in &mut all {
                if let Some(both) = self.one_test(known, &test).or_else(|| self.one_test(&test, known)) {
                    *known = both;
                    continue 'tests;
                }
            }
            all.push(test);
        }
        (all.len() <= MOST_TESTS).then_some(Tests { all })
    }

    /// One comparison that holds where two do, if the second one compares with the same parts as the first, or is the same for all elements.
    fn one_test(&mut self, first: &Test, second: &Test) -> Option<Test> {
        let Test::Position { op, slack, parts } = first else { return None };
        let Test::Position { op: other_op, slack: other, parts: other_parts } = second else { return None };
        // Is the comparison that of an index below a limit?
        let is_below = match op {
            CompareOp::Gt | CompareOp::Ge => true,
            CompareOp::Lt | CompareOp::Le => false,
            CompareOp::Eq | CompareOp::Ne => return None,
        };
        let both = if op == other_op && parts == other_parts {
            let both = self.reg(Class::B32);
            asm!(self, "{}.s32 {both}, {slack}, {other}", if is_below { "min" } else { "max" });
            both
        } else if is_below && second.is_uniform() && !first.is_uniform() {
            // No part is negative, so that none is below this slack.
            let (holds, both) = (self.reg(Class::Pred), self.reg(Class::B32));
            asm!(self, "setp.{}.s32 {holds}, {other}, {}", other_op.name(), other_parts[0]);
            asm!(self, "selp.b32 {both}, {slack}, -1, {holds}");
            both
        } else {
            return None;
        };
        Some(Test::Position { op: *op, slack: both, parts: parts.clone() })
    }

    /// Emits the conjunction of the tests for that element.
    pub(crate) fn test(&mut self, tests: &Tests, register: usize) -> Reg {
        let mut before: Option<Reg> = None;
        for test in &tests.all {
            let (compare, left, right) = match test {
                Test::Position { op, slack, parts } => (format!("{}.s32", op.name()), *slack, parts[register].to_string()),
                Test::Index { bases, parts, length } => {
                    let mut index = bases[register.min(bases.len() - 1)];
                    if parts[register] != 0 {
                        let base = index;
                        index = self.reg(Class::B64);
                        asm!(self, "add.s64 {index}, {base}, {}", parts[register]);
                    }
                    ("lt.u64".to_string(), index, length.to_string())
                }
            };
            let holds = self.reg(Class::Pred);
            match (before, compare.split_once('.')) {
                (Some(before), Some((op, ty))) => asm!(self, "setp.{op}.and.{ty} {holds}, {left}, {right}, {before}"),
                _ => asm!(self, "setp.{compare} {holds}, {left}, {right}"),
            }
            before = Some(holds);
        }
        before.expect("there is a test")
    }
}
