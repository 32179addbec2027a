//! The end of a loop over slices: no element behind the limit of a mask is stored, so the loop does not go on behind it.
//!
//! ```text
//! %at = add (broadcast %start), (arange 0 .. 1024)       for 0 .. min(1024, %n - %start) {
//! %mask = lt %at, (broadcast %n)                             a slice of each tile
//! store %y, %at, %v {mask = %mask}                       }
//! ```
//!
//! This needs such a comparison in the mask of each store. If the comparisons differ, the loop goes on to the last end. A checked launch reports loads out of
//! bounds that no store needs, so its loop goes to the end of the tile.

use crate::analysis::affine::AffineFacts;
use crate::analysis::masks::{self, Comparison};
use crate::ir::{BinaryOp, Builder, CompareOp, Function, Inst, Op, Value};

/// More ends than this cost more than slices that store nothing.
const MOST_ENDS: usize = 4;

/// The end of the positions that a store keeps along the sliced axis: those with `start + position < limit`.
pub(super) struct End {
    comparison: Comparison,
    /// The extent of the axis.
    extent: usize,
}

impl End {
    fn is(&self, other: &End) -> bool {
        let (one, two) = (&self.comparison, &other.comparison);
        self.extent == other.extent && one.index.start == two.index.start && one.limit == two.limit
    }

    /// Appends the number of positions that are kept.
    fn positions(&self, b: &mut Builder<'_>) -> Value {
        let (start, limit) = (self.comparison.index.uniform_value(b), self.comparison.limit.value(b));
        let extent = self.extent as i128;
        let (zero, all, last) = (b.index(0), b.index(extent), b.index(i128::from(i64::MAX) - extent));
        // From a start that is not negative, neither a position nor the difference overflows.
        let limit = b.binary(BinaryOp::Max, limit, zero);
        let distance = b.binary(BinaryOp::Sub, limit, start);
        let positions = b.binary(BinaryOp::Min, distance, all);
        let (is_natural, is_low) = (b.compare(CompareOp::Ge, start, zero), b.compare(CompareOp::Le, start, last));
        let is_exact = b.binary(BinaryOp::And, is_natural, is_low);
        b.select(is_exact, positions, all)
    }
}

/// Ends such that each store keeps no position behind one of them. None if a store has no end.
pub(super) fn find(func: &Function, insts: &[Inst], axis_of: &dyn Fn(Value) -> Option<usize>, facts: &mut AffineFacts) -> Option<Vec<End>> {
    if func.reports {
        return None;
    }
    let mut of_stores: Vec<Vec<End>> = Vec::new();
    for inst in insts {
        let Op::Store { offset, mask, .. } = func.inst(*inst).op else { continue };
        let (axis, extents) = (axis_of(offset)?, func.ty(offset).extents());
        let ends = masks::conjuncts(func, facts, mask?)
            .iter()
            .filter_map(|conjunct| conjunct.along_axis(&extents))
            .filter(|(comparison, along)| comparison.op == CompareOp::Lt && *along == axis)
            .map(|(comparison, _)| End { comparison: comparison.clone(), extent: extents[axis] })
            .collect();
        of_stores.push(ends);
    }
    let mut ends = Vec::new();
    while !of_stores.is_empty() {
        // The end that most stores have, the first of these.
        let shared = |end: &End| of_stores.iter().filter(|own| own.iter().any(|other| end.is(other))).count();
        let counts: Vec<usize> = of_stores[0].iter().map(shared).collect();
        let most = counts.iter().copied().max()?;
        let at = counts.iter().position(|count| *count == most)?;
        let end = of_stores[0].swap_remove(at);
        of_stores.remove(0);
        of_stores.retain(|own| !own.iter().any(|other| end.is(other)));
        ends.push(end);
    }
    (1..=MOST_ENDS).contains(&ends.len()).then_some(ends)
}

/// Appends the number of slices up to the last end, of tiles that are cut into so many.
pub(super) fn slices(b: &mut Builder<'_>, ends: &[End], slices: usize) -> Value {
    let counts = ends.iter().map(|end| {
        let length = end.extent / slices;
        let positions = end.positions(b);
        let begun = b.index(length as i128 - 1);
        let begun = b.binary(BinaryOp::Add, positions, begun);
        // Extents are powers of two. A negative number of positions stays less than one slice.
        let shift = b.index(length.trailing_zeros().into());
        b.binary(BinaryOp::Shr, begun, shift)
    });
    let counts: Vec<Value> = counts.collect();
    largest(b, counts)
}

/// Appends the number of positions up to the last end.
pub(super) fn positions(b: &mut Builder<'_>, ends: &[End]) -> Value {
    let counts = ends.iter().map(|end| end.positions(b)).collect();
    largest(b, counts)
}

fn largest(b: &mut Builder<'_>, counts: Vec<Value>) -> Value {
    counts.into_iter().reduce(|one, other| b.binary(BinaryOp::Max, one, other)).expect("there is an end")
}
