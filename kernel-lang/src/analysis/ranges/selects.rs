//! Ranges of what a `select` chooses. Its condition narrows the range of each side, as a mask narrows those of an access:
//!
//! ```text
//! %3 = ge %1, (broadcast %w)                 %1: 0 ..= %m
//! %4 = sub (broadcast 2 * %w), %1            where it is chosen, %1 is at least %w: 2 * %w - %m ..= %w
//! %5 = select %3, %4, %1                     where %1 is chosen, it is less than %w: 0 ..= min(%m, %w - 1)
//! ```
//!
//! A side that is never chosen may have bounds in the wrong order. The range of the `select` then still contains the other side, and lies inside the
//! range that it has without its condition.

use crate::ir::{BinaryOp, CompareOp, Op, UnaryOp, Value};

use super::{Memo, Narrowed, Range, Ranges};

/// The most ops between a tile that is compared and a side that is computed from it. Each op doubles the work at most.
const MOST_STEPS: u32 = 3;

/// A tile, and its range where a condition holds.
struct Assumed {
    value: Value,
    range: Range,
}

impl Ranges<'_> {
    /// The range of one side of a `select`, where its condition has the value that chooses this side.
    pub(super) fn selected(&mut self, side: Value, cond: Value, chosen: bool, narrowed: &Narrowed, memo: &mut Memo<'_>) -> Option<Range> {
        let whole = self.operand(side, narrowed, memo)?;
        let Some(&Op::Compare { op, lhs, rhs }) = self.func.def_op(cond) else { return Some(whole) };
        let (Some(left), Some(right)) = (self.operand(lhs, narrowed, memo), self.operand(rhs, narrowed, memo)) else { return Some(whole) };
        let op = if chosen { op } else { negated(op) };
        for (value, own, other, op) in [(lhs, left, right, op), (rhs, right, left, op.swapped())] {
            let (low, high) = self.compared(op, other);
            // A scalar has one bound, which is exact.
            if own.low == own.high || !self.contains(side, value, MOST_STEPS) {
                continue;
            }
            let low = low.map_or(own.low, |low| self.bounds.binary(BinaryOp::Max, own.low, low));
            let high = high.map_or(own.high, |high| self.bounds.binary(BinaryOp::Min, own.high, high));
            let assumed = Assumed { value, range: Range::exact(low, high) };
            let range = self.assuming(&assumed, side, MOST_STEPS, narrowed, memo)?;
            if memo.is_none() {
                // The check of the `select` also limits the bounds of a side that is never chosen.
                return Some(range);
            }
            let (low, high) =
                (self.bounds.binary(BinaryOp::Max, whole.low, range.low), self.bounds.binary(BinaryOp::Min, whole.high, range.high));
            return Some(Range::exact(low, high));
        }
        Some(whole)
    }

    /// Is a value computed from another one by a few ops of which the range is computed anew?
    fn contains(&self, value: Value, part: Value, steps: u32) -> bool {
        value == part
            || steps > 0
                && match self.func.def_op(value) {
                    Some(Op::Binary { op, lhs, rhs }) if is_followed(*op) => {
                        [*lhs, *rhs].into_iter().any(|side| self.contains(side, part, steps - 1))
                    }
                    Some(Op::Unary { op: UnaryOp::Neg, x }) => self.contains(*x, part, steps - 1),
                    _ => false,
                }
    }

    /// The range of a value under an assumption.
    fn assuming(&mut self, assumed: &Assumed, value: Value, steps: u32, narrowed: &Narrowed, memo: &mut Memo<'_>) -> Option<Range> {
        if value == assumed.value {
            return Some(assumed.range);
        }
        match self.func.def_op(value) {
            Some(&Op::Binary { op, lhs, rhs }) if steps > 0 && is_followed(op) => {
                let x = self.assuming(assumed, lhs, steps - 1, narrowed, memo)?;
                let y = self.assuming(assumed, rhs, steps - 1, narrowed, memo)?;
                self.combined(op, x, y).map(|(low, high)| Range::exact(low, high))
            }
            Some(&Op::Unary { op: UnaryOp::Neg, x }) if steps > 0 => {
                let x = self.assuming(assumed, x, steps - 1, narrowed, memo)?;
                Some(self.negated(x))
            }
            _ => self.operand(value, narrowed, memo),
        }
    }
}

/// Does the range follow from those of the operands alone?
fn is_followed(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul)
}

/// The comparison of integers that holds where another one does not.
fn negated(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Eq => CompareOp::Ne,
        CompareOp::Ne => CompareOp::Eq,
        CompareOp::Lt => CompareOp::Ge,
        CompareOp::Le => CompareOp::Gt,
        CompareOp::Gt => CompareOp::Le,
        CompareOp::Ge => CompareOp::Lt,
    }
}
