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

use crate::dtype::Dtype;
use crate::ir::rewrite::Changed;
use crate::ir::{Access, BinaryOp, Builder, CompareOp, Function, Op, Value};

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let mut changed = false;
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
                    let limit = mask.and_then(|mask| limit(func, mask, offset));
                    let b = &mut Builder::new(func, scratch, loc);
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
                    let inside = b.compare(CompareOp::Lt, index, end);
                    let mask = mask.filter(|_| limit.is_none());
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
