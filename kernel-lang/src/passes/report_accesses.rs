//! For a `.checked()` launch: notes each access that would leave its tensor.
//!
//! before:  %v = load %x, %offsets {mask = %m}
//! after:   %o = ge (bitcast %offsets : tile<u64, [64]>), (broadcast (bitcast (length %x)))
//!          %w = and %m, %o
//!          report %x, %offsets, %w
//!          %v = load %x, %offsets {mask = %m}
//!
//! The access stays as it is, so [`super::guard_accesses`] still keeps it inside. Does nothing unless [`Function::reports`] is set.

use crate::dtype::Dtype;
use crate::ir::rewrite::Changed;
use crate::ir::{BinaryOp, Builder, CompareOp, Function, Op};

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
            if let Op::Load { base, offset, mask, in_bounds: false, .. } | Op::Store { base, offset, mask, in_bounds: false, .. } = data.op
            {
                let (loc, is_store) = (data.loc, matches!(data.op, Op::Store { .. }));
                let scratch = func.add_region();
                let b = &mut Builder::new(func, scratch, loc);
                let index = b.bitcast(offset, Dtype::U64);
                let length = b.op(Op::Length { base }, &[]);
                let length = b.bitcast(length, Dtype::U64);
                let shape = b.func.ty(offset).shape().to_vec();
                let length = b.broadcast(length, &shape);
                let outside = b.compare(CompareOp::Ge, index, length);
                let outside = mask.map_or(outside, |mask| b.binary(BinaryOp::And, mask, outside));
                b.func.append(scratch, Op::Report { base, offset, outside, is_store }, [], loc);
                out.append(func.insts_mut(scratch));
                changed = true;
            }
            out.push(inst);
        }
        *func.insts_mut(region) = out;
    }
    changed
}
