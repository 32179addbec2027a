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
//!     %0 = length %x : i64
//!     %1 = bitcast %at : tile<u64, [64]>
//!     %2 = bitcast %0 : u64
//!     %3 = broadcast %2 : tile<u64, [64]>
//!     %4 = lt %1, %3 : tile<bool, [64]>
//!     %5 = and %m, %4 : tile<bool, [64]>
//!     %6 = load %x, %at {mask = %5, in_bounds = true} : tile<f32, [64]>
//!     return
//! }
//! ```
//!
//! Lanes outside read `other`, or 0, and store nothing, exactly as masked-off lanes. An `unchecked` kernel keeps its accesses as they are.
//!
//! The tile above may hold any indices: a negative one is huge when its bits are taken as `u64`, so one comparison does. Where more is known of
//! an index, less is computed for each element:
//!
//! - `interval`: all steps are known, so that the lanes in bounds are an interval of small numbers. (Of a tile of few elements the indices are compared.)
//! - `corners`: the mask leaves a box of the tile. One test says whether the box is in bounds; then only the mask is left to ask.

mod corners;
mod interval;

use crate::analysis::affine::AffineFacts;
use crate::dtype::Dtype;
use crate::ir::rewrite::Changed;
use crate::ir::{Access, BinaryOp, Builder, CompareOp, Function, Inst, Op, Value};

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let mut changed = false;
    let mut facts = AffineFacts::new();
    for region in func.regions_under(func.body) {
        let mut out = Vec::new();
        for inst in func.region(region).insts.clone() {
            if let Some(access @ Access { mask, in_bounds: false, .. }) = func.inst(inst).op.access() {
                if func.unchecked {
                    func.inst_mut(inst).op.set_lanes(mask, true);
                } else {
                    guard(func, &mut facts, inst, access, &mut out);
                }
                changed = true;
            }
            out.push(inst);
        }
        *func.insts_mut(region) = out;
    }
    changed
}

/// Guards an access. Ops that come before it are put out.
fn guard(func: &mut Function, facts: &mut AffineFacts, inst: Inst, access: Access, out: &mut Vec<Inst>) {
    let loc = func.inst(inst).loc;
    let scratch = func.add_region();
    let interval = interval::find(func, facts, access);
    let b = &mut Builder::new(func, scratch, loc);
    if let Some(interval) = interval {
        let inside = interval.inside(b, access);
        let mask = access.mask.filter(|mask| interval.absorbed != Some(*mask));
        let inside = mask.map_or(inside, |mask| b.binary(BinaryOp::And, mask, inside));
        b.func.inst_mut(inst).op.set_lanes(Some(inside), true);
    } else if let Some(corners) = corners::find(b.func, facts, access) {
        corners.split(b, inst, access);
    } else {
        let inside = inside(b, access);
        b.func.inst_mut(inst).op.set_lanes(Some(inside), true);
    }
    out.append(func.insts_mut(scratch));
}

/// The lanes whose mask holds and whose offset is in bounds.
fn inside(b: &mut Builder<'_>, access: Access) -> Value {
    let length = b.op(Op::Length { base: access.base }, &[]);
    let inside = below(b, access.offset, length);
    access.mask.map_or(inside, |mask| b.binary(BinaryOp::And, mask, inside))
}

/// The lanes whose offset is from 0 to `end`, which is not negative.
fn below(b: &mut Builder<'_>, offset: Value, end: Value) -> Value {
    let index = b.bitcast(offset, Dtype::U64);
    let end = b.bitcast(end, Dtype::U64);
    let shape = b.func.ty(offset).shape().to_vec();
    let end = b.broadcast(end, &shape);
    b.compare(CompareOp::Lt, index, end)
}
