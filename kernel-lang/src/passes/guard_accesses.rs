//! Makes "out of bounds" impossible: every access that is not proved in bounds gets its bounds as part of its mask.
//!
//! ```text
//! ; before
//! kernel @k(%x: ptr<f32>, %at: tile<i64, [64]>, %m: tile<bool, [64]>) {
//!     %0 = load %x, %at {mask = %m} : tile<f32, [64]>
//!     return
//! }
//! ; after
//! kernel @k(%x: ptr<f32>, %at: tile<i64, [64]>, %m: tile<bool, [64]>) {
//!     %0 = bitcast %at : tile<u64, [64]>
//!     %1 = length %x : i64
//!     %2 = bitcast %1 : u64
//!     %3 = broadcast %2 : tile<u64, [64]>
//!     %4 = lt %0, %3 : tile<bool, [64]>
//!     %5 = and %m, %4 : tile<bool, [64]>
//!     %6 = load %x, %at {mask = %5, in_bounds = true} : tile<f32, [64]>
//!     return
//! }
//! ```
//!
//! Lanes outside read `other`, or 0, and store nothing, exactly as masked-off lanes. A negative offset is a huge one when its bits are
//! taken as `u64`, so one comparison does, also for the mask `offsets < n` that most kernels have: it makes the bound the lesser of `n`, if that
//! is not negative, and the length. An `unchecked` kernel keeps its accesses as they are.
//!
//! In a row, at `start + columns` where `columns < n`, the bounds become numbers that `columns` is compared with: an index that knows no `start`
//! is small, and its comparisons are cheap.

use crate::analysis::affine::{Affine, AffineFacts};
use crate::dtype::Dtype;
use crate::ir::rewrite::Changed;
use crate::ir::{Access, BinaryOp, Builder, CompareOp, Function, Op, Value};

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let mut changed = false;
    let mut facts = AffineFacts::new();
    for region in func.regions_under(func.body) {
        let mut out = Vec::new();
        for inst in func.region(region).insts.clone() {
            let data = func.inst(inst);
            if let Some(Access { base, offset, mask, in_bounds: false, .. }) = data.op.access() {
                let loc = data.loc;
                let guard = if func.unchecked {
                    mask
                } else {
                    let scratch = func.add_region();
                    let row = mask.and_then(|mask| row(func, &mut facts, mask, offset));
                    let limit = mask.and_then(|mask| limit(func, mask, offset));
                    let b = &mut Builder::new(func, scratch, loc);
                    let inside = match &row {
                        Some((row, start)) => row.inside(b, base, start),
                        None => inside(b, base, offset, limit),
                    };
                    let mask = mask.filter(|mask| limit.is_none() && row.as_ref().is_none_or(|(row, _)| row.mask != *mask));
                    let inside = mask.map_or(inside, |mask| b.binary(BinaryOp::And, mask, inside));
                    out.append(func.insts_mut(scratch));
                    Some(inside)
                };
                func.inst_mut(inst).op.set_lanes(guard, true);
                changed = true;
            }
            out.push(inst);
        }
        *func.insts_mut(region) = out;
    }
    changed
}

/// The lanes whose offset is in bounds, and below `limit`.
fn inside(b: &mut Builder<'_>, base: Value, offset: Value, limit: Option<Value>) -> Value {
    let index = b.bitcast(offset, Dtype::U64);
    let length = b.op(Op::Length { base }, &[]);
    let end = limit.map_or(length, |limit| {
        let zero = b.index(0);
        let limit = b.binary(BinaryOp::Max, limit, zero);
        b.binary(BinaryOp::Min, limit, length)
    });
    let end = b.bitcast(end, Dtype::U64);
    let shape = b.func.ty(offset).shape().to_vec();
    let end = b.broadcast(end, &shape);
    b.compare(CompareOp::Lt, index, end)
}

/// An access at `start + position` whose mask says `position < end`.
#[derive(Clone, Copy)]
struct Row {
    mask: Value,
    position: Value,
    end: Value,
}

/// The row that an access is of, if `mask` or a part of it says so.
fn row(func: &Function, facts: &mut AffineFacts, mask: Value, offset: Value) -> Option<(Row, Affine)> {
    match func.def_op(mask)? {
        Op::Binary { op: BinaryOp::And, lhs, rhs } => {
            let (lhs, rhs) = (*lhs, *rhs);
            row(func, facts, lhs, offset).or_else(|| row(func, facts, rhs, offset))
        }
        Op::Compare { op: CompareOp::Lt, lhs, rhs } => {
            let (position, index) = (facts.get(func, *lhs)?, facts.get(func, offset)?);
            let Op::Broadcast { x: end } = func.def_op(*rhs)? else { return None };
            let start = index.minus(&position);
            let is_position = position.start.is(0) && position.lane_maximum(&func.ty(*lhs).extents()).is_some();
            let is_row = is_position && start.is_uniform() && func.ty(*end).is_scalar();
            is_row.then_some((Row { mask, position: *lhs, end: *end }, start))
        }
        _ => None,
    }
}

impl Row {
    /// The lanes that are in bounds and below the row's end. Where a difference overflows, `start` is so far outside that no lane is inside, and
    /// the other comparison says so.
    fn inside(self, b: &mut Builder<'_>, base: Value, start: &Affine) -> Value {
        let shape = b.func.ty(self.position).shape().to_vec();
        let (known, start) = (start.as_constant(), start.uniform_value(b));
        let length = b.op(Op::Length { base }, &[]);
        let room = b.binary(BinaryOp::Sub, length, start);
        let end = b.binary(BinaryOp::Min, self.end, room);
        let end = b.broadcast(end, &shape);
        let below = b.compare(CompareOp::Lt, self.position, end);
        if known.is_some_and(|start| start >= 0) {
            return below;
        }
        let zero = b.index(0);
        let first = b.binary(BinaryOp::Sub, zero, start);
        let first = b.broadcast(first, &shape);
        let behind = b.compare(CompareOp::Ge, self.position, first);
        b.binary(BinaryOp::And, below, behind)
    }
}

/// `n`, where the mask is `offset < n`: then the lanes from 0 up to the lesser of `n` and the length are those of mask and bounds both.
fn limit(func: &Function, mask: Value, offset: Value) -> Option<Value> {
    match func.def_op(mask)? {
        Op::Compare { op: CompareOp::Lt, lhs, rhs } if *lhs == offset => match func.def_op(*rhs)? {
            Op::Broadcast { x } if func.ty(*x).is_scalar() => Some(*x),
            _ => None,
        },
        _ => None,
    }
}
