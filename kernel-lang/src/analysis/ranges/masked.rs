//! Ranges where a mask holds.
//!
//! ```text
//! %5 = rem %4, (broadcast %n)        where %6 holds, %5 is at least 3 and %4, which is not less than its remainder, too:
//! %6 = ge %5, (const 3)              so %7 is not negative
//! %7 = sub %4, (const 3)
//! load %x, %7 {mask = %6}
//! ```
//!
//! So the mask says something of the tiles that it compares, of those that they are computed from, and of all that is computed from either. The
//! narrowed range lies inside the whole one, so its bounds do not overflow either. The exception is a mask that holds nowhere: its access does nothing,
//! whatever the bounds say.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::affine::AffineFacts;
use crate::analysis::masks;
use crate::ir::{BinaryOp, CompareOp, MOST_MOVES, Op, Value};

use super::bound::END;
use super::{Bound, Range, Ranges, divisor};

/// A lower and an upper bound, as far as they are known.
type Ends = (Option<Bound>, Option<Bound>);
/// By tile: what a mask guarantees of its elements.
pub(super) type Narrowed = FxHashMap<Value, Ends>;

impl Ranges<'_> {
    /// What the conjuncts of a mask say about the tiles that they compare.
    pub(super) fn narrowed(&mut self, mask: Value, facts: &mut AffineFacts, known: &FxHashSet<Value>) -> Narrowed {
        let mut narrowed = Narrowed::default();
        // A conjunct of another shape says nothing of the elements at the same positions.
        let is_own = |part: &masks::Conjunct| part.mask == part.whole && !known.contains(&part.mask);
        for part in masks::conjuncts(self.func, facts, mask).into_iter().filter(is_own) {
            let Some(&Op::Compare { op, lhs, rhs }) = self.func.def_op(part.mask) else { continue };
            let (Some(left), Some(right)) = (self.of(lhs), self.of(rhs)) else { continue };
            for (value, own, other, op) in [(lhs, left, right, op), (rhs, right, left, op.swapped())] {
                // A scalar has one bound, which is exact.
                if own.low == own.high {
                    continue;
                }
                let ends = self.compared(op, other);
                self.narrow_to(value, ends, &mut narrowed);
            }
        }
        narrowed
    }

    /// Notes bounds of a tile, and what follows for the tiles that it is computed from.
    fn narrow_to(&mut self, tile: Value, (mut low, mut high): Ends, narrowed: &mut Narrowed) {
        let (func, mut at) = (self.func, tile);
        for _ in 0..MOST_MOVES {
            let entry = narrowed.entry(at).or_default();
            *entry = (entry.0.or(low), entry.1.or(high));
            at = match func.def_op(at) {
                Some(Op::Broadcast { x } | Op::ExpandDims { x, .. } | Op::Reshape { x } | Op::Permute { x, .. })
                    if func.ty(*x).is_tile() =>
                {
                    *x
                }
                Some(Op::Binary { op: op @ (BinaryOp::Add | BinaryOp::Sub), lhs, rhs }) => {
                    let sides = [(*lhs, *rhs), (*rhs, *lhs)];
                    let sides = &sides[..if *op == BinaryOp::Add { 2 } else { 1 }];
                    let Some((rest, term)) = sides.iter().find_map(|(rest, term)| Some((*rest, self.single(*term)?))) else { return };
                    let undone = if *op == BinaryOp::Add { BinaryOp::Sub } else { BinaryOp::Add };
                    (low, high) =
                        (low.map(|low| self.bounds.binary(undone, low, term)), high.map(|high| self.bounds.binary(undone, high, term)));
                    rest
                }
                // The dividend is not negative, so it is not less than its remainder.
                Some(Op::Binary { op: BinaryOp::Rem, lhs, .. }) => {
                    high = None;
                    *lhs
                }
                // `x / d >= low`, so `x >= low * d`; and `x / d < high + 1`, so `x < (high + 1) * d`. The first product does not overflow if the mask holds
                // for some `x`. The second one does not if `high` has 32 bits, and no element has more.
                Some(Op::Binary { op: BinaryOp::Div, lhs, rhs }) => {
                    let Some(of) = divisor(func, *rhs).and_then(|of| self.divisor(of)) else { return };
                    let one = self.bounds.constant(1);
                    low = low.filter(|low| self.bounds.is_not_negative(*low)).map(|low| self.bounds.binary(BinaryOp::Mul, low, of));
                    high = high.filter(|high| self.bounds.is_not_negative(*high)).map(|high| {
                        let next = self.bounds.binary(BinaryOp::Add, high, one);
                        let end = self.bounds.binary(BinaryOp::Mul, next, of);
                        let last = self.bounds.binary(BinaryOp::Sub, end, one);
                        let most = self.bounds.constant(END - 1);
                        self.bounds.binary(BinaryOp::Min, last, most)
                    });
                    *lhs
                }
                _ => return,
            };
            if low.is_none() && high.is_none() {
                return;
            }
        }
    }

    /// The bound that all elements of a tile equal.
    fn single(&mut self, tile: Value) -> Option<Bound> {
        self.of(tile).filter(|range| range.low == range.high).map(|range| range.low)
    }

    /// The bounds of what compares like this with elements of a range.
    pub(super) fn compared(&mut self, op: CompareOp, other: Range) -> (Option<Bound>, Option<Bound>) {
        let one = self.bounds.constant(1);
        match op {
            CompareOp::Lt => (None, Some(self.bounds.binary(BinaryOp::Sub, other.high, one))),
            CompareOp::Le => (None, Some(other.high)),
            CompareOp::Gt => (Some(self.bounds.binary(BinaryOp::Add, other.low, one)), None),
            CompareOp::Ge => (Some(other.low), None),
            CompareOp::Eq => (Some(other.low), Some(other.high)),
            CompareOp::Ne => (None, None),
        }
    }
}
