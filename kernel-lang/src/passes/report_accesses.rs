//! Out-of-bounds reports: for a `.checked()` launch, reports each access that would leave its tensor.
//!
//! ```text
//! ; before
//! ; checked
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
//!     %4 = ge %0, %3 : tile<bool, [64]>
//!     %5 = and %m, %4 : tile<bool, [64]>
//!     report %x, %at, %5
//!     %6 = load %x, %at {mask = %m} : tile<f32, [64]>
//!     return
//! }
//! ```
//!
//! The access itself does not change: [`super::guard_accesses`] still guards it. The pass does nothing unless [`Function::reports`] is set.

use crate::dtype::Dtype;
use crate::ir::rewrite::Changed;
use crate::ir::{Access, BinaryOp, Builder, CompareOp, Function, Op};

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let mut changed = false;
    if !func.reports {
        return changed;
    }
    for region in func.regions_under(func.body) {
        let mut out = Vec::new();
        for inst in func.region(region).insts.clone() {
            let data = func.inst(inst);
            if let Some(Access { kind, base, offset, mask, in_bounds: false }) = data.op.access() {
                let loc = data.loc;
                let scratch = func.add_region();
                let b = &mut Builder::new(func, scratch, loc);
                let index = b.bitcast(offset, Dtype::U64);
                let length = b.length(base);
                let length = b.bitcast(length, Dtype::U64);
                let shape = b.func.ty(offset).shape().to_vec();
                let length = b.broadcast(length, &shape);
                let outside = b.compare(CompareOp::Ge, index, length);
                let outside = mask.map_or(outside, |mask| b.binary(BinaryOp::And, mask, outside));
                b.func.append(scratch, Op::Report { base, offset, outside, kind }, [], loc);
                out.append(func.insts_mut(scratch));
                changed = true;
            }
            out.push(inst);
        }
        *func.insts_mut(region) = out;
    }
    changed
}
