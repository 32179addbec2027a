//! The end of a loop over slices: no element behind the limit of a mask is stored, so the loop does not go on behind it.
//!
//! ```text
//! %at = add (broadcast %start), (arange 0 .. 1024)       for 0 .. min(1024, %n - %start) {
//! %mask = lt %at, (broadcast %n)                             a slice of each tile
//! store %y, %at, %v {mask = %mask}                       }
//! ```
//!
//! This needs the same comparison in the mask of each store. A checked launch reports loads out of bounds that no store needs, so its loop goes to the end
//! of the tile.

use crate::analysis::affine::AffineFacts;
use crate::analysis::masks::{self, Comparison};
use crate::ir::{BinaryOp, Builder, CompareOp, Function, Inst, Op, Value};

/// A comparison `start + position < limit` along the sliced axis that the masks of all stores contain, if there is one.
pub(super) fn find(
    func: &Function,
    insts: &[Inst],
    axis_of: &dyn Fn(Value) -> Option<usize>,
    facts: &mut AffineFacts,
) -> Option<Comparison> {
    if func.reports {
        return None;
    }
    let mut common: Option<Vec<Comparison>> = None;
    for inst in insts {
        let Op::Store { offset, mask, .. } = func.inst(*inst).op else { continue };
        let axis = axis_of(offset)?;
        let extents = func.ty(offset).extents();
        let own: Vec<Comparison> = masks::conjuncts(func, facts, mask?)
            .iter()
            .filter_map(|conjunct| conjunct.along_axis(&extents))
            .filter(|(comparison, along)| comparison.op == CompareOp::Lt && *along == axis)
            .map(|(comparison, _)| comparison.clone())
            .collect();
        match &mut common {
            None => common = Some(own),
            Some(common) => common.retain(|one| own.iter().any(|other| one.index.start == other.index.start && one.limit == other.limit)),
        }
    }
    common?.into_iter().next()
}

/// Appends the number of positions of a tile of that extent up to the limit.
pub(super) fn positions(b: &mut Builder<'_>, comparison: &Comparison, extent: usize) -> Value {
    let (start, limit) = (comparison.index.uniform_value(b), comparison.limit.value(b));
    let (zero, all, last) = (b.index(0), b.index(extent as i128), b.index(i128::from(i64::MAX) - extent as i128));
    // From a start that is not negative, neither a position nor the difference overflows.
    let limit = b.binary(BinaryOp::Max, limit, zero);
    let distance = b.binary(BinaryOp::Sub, limit, start);
    let positions = b.binary(BinaryOp::Min, distance, all);
    let (is_natural, is_low) = (b.compare(CompareOp::Ge, start, zero), b.compare(CompareOp::Le, start, last));
    let is_exact = b.binary(BinaryOp::And, is_natural, is_low);
    b.select(is_exact, positions, all)
}
