//! Bounds guards: adds the bounds to the mask of every access that is not proved in bounds, so that no access leaves its tensor.
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
//! Elements out of bounds behave like masked-off elements: loads give `other`, or 0, and stores do nothing. An `unchecked` kernel keeps its
//! accesses as they are.
//!
//! The tile above may hold any indices. A negative index is huge when its bits are taken as `u64`, so one comparison checks both bounds. If
//! more is known of an index, the pass computes less for each element:
//!
//! - `interval`: all strides are known, so the elements in bounds are an interval of small numbers. (In a tile of few elements, the pass
//!   compares the indices.)
//! - `corners`: the mask selects a box of the tile. One test decides whether the box is in bounds. If it is, only the mask remains.

mod corners;
mod interval;

use rustc_hash::FxHashSet;

use crate::analysis::affine::AffineFacts;
use crate::analysis::masks;
use crate::dtype::Dtype;
use crate::ir::rewrite::Changed;
use crate::ir::{Access, BinaryOp, Builder, CompareOp, Function, Inst, Region, Value};

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let mut changed = false;
    let mut facts = AffineFacts::new();
    let frequent: FxHashSet<Region> = func.frequent_regions().into_iter().collect();
    for region in func.regions_under(func.body) {
        let mut out = Vec::new();
        for inst in func.region(region).insts.clone() {
            if let Some(access @ Access { mask, in_bounds: false, .. }) = func.inst(inst).op.access() {
                if func.unchecked {
                    func.inst_mut(inst).op.set_lanes(mask, true);
                } else {
                    guard(func, &mut facts, inst, access, frequent.contains(&region), &mut out);
                }
                changed = true;
            }
            out.push(inst);
        }
        *func.insts_mut(region) = out;
    }
    changed
}

/// Guards an access. The ops that come before the access are appended to `out`.
fn guard(func: &mut Function, facts: &mut AffineFacts, inst: Inst, access: Access, is_frequent: bool, out: &mut Vec<Inst>) {
    let loc = func.inst(inst).loc;
    let scratch = func.add_region();
    let conjuncts = access.mask.map_or(Vec::new(), |mask| masks::conjuncts(func, facts, mask));
    let interval = interval::find(func, facts, access, &conjuncts);
    let b = &mut Builder::new(func, scratch, loc);
    if let Some(interval) = interval {
        let inside = interval.inside(b, access);
        let mask = access.mask.filter(|mask| interval.absorbed != Some(*mask));
        let inside = mask.map_or(inside, |mask| b.binary(BinaryOp::And, mask, inside));
        b.func.inst_mut(inst).op.set_lanes(Some(inside), true);
    } else if let Some(corners) = corners::find(b.func, facts, access, &conjuncts).filter(|_| is_frequent) {
        corners.split(b, inst, access);
    } else {
        let inside = inside(b, access);
        b.func.inst_mut(inst).op.set_lanes(Some(inside), true);
    }
    out.append(func.insts_mut(scratch));
}

/// The mask of the elements whose mask holds and whose offset is in bounds.
fn inside(b: &mut Builder<'_>, access: Access) -> Value {
    let length = b.length(access.base);
    let inside = below(b, access.offset, length);
    access.mask.map_or(inside, |mask| b.binary(BinaryOp::And, mask, inside))
}

/// The mask of the elements whose offset is at least 0 and less than `end`, which is not negative.
fn below(b: &mut Builder<'_>, offset: Value, end: Value) -> Value {
    let index = b.bitcast(offset, Dtype::U64);
    let end = b.bitcast(end, Dtype::U64);
    let shape = b.func.ty(offset).shape().to_vec();
    let end = b.broadcast(end, &shape);
    b.compare(CompareOp::Lt, index, end)
}
