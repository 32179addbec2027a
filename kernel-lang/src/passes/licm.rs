//! Loop-invariant code motion: moves ops whose results do not change between iterations in front of the loop.
//!
//! ```text
//! ; before
//! kernel @k(%y: ptr_mut<i64>, %n: i64, %one: i64) {
//!     for %one, %n, %one (%i: i64) {
//!         %0 = mul %n, %n : i64
//!         store %y, %i, %0
//!         yield
//!     }
//!     return
//! }
//! ; after
//! kernel @k(%y: ptr_mut<i64>, %n: i64, %one: i64) {
//!     %0 = mul %n, %n : i64
//!     for %one, %n, %one (%1: i64) {
//!         store %y, %1, %0
//!         yield
//!     }
//!     return
//! }
//! ```
//!
//! Only pure ops move. They cannot fail, so computing an op that the loop would have skipped does no harm.

use crate::analysis::loops;
use crate::ir::rewrite::Changed;
use crate::ir::{Function, Inst, Op, Region};

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    region(func, func.body)
}

/// Visits inner loops first, so that an op that leaves an inner loop may leave the outer loop, too.
fn region(func: &mut Function, at: Region) -> Changed {
    let mut changed = false;
    let mut insts = Vec::new();
    for inst in func.region(at).insts.clone() {
        let mut inner = Vec::new();
        func.inst(inst).op.for_each_region(&mut |region| inner.push(region));
        for inner in &inner {
            changed |= region(func, *inner);
        }
        if matches!(func.inst(inst).op, Op::For { .. } | Op::While { .. }) {
            let moved = hoist(func, &inner);
            changed |= !moved.is_empty();
            insts.extend(moved);
        }
        insts.push(inst);
    }
    *func.insts_mut(at) = insts;
    changed
}

/// Removes the pure ops that use nothing defined in the loop from its regions, and returns them.
fn hoist(func: &mut Function, regions: &[Region]) -> Vec<Inst> {
    let mut varies = loops::defined_in(func, regions);
    let mut moved = Vec::new();
    for region in regions {
        let mut kept = Vec::new();
        for inst in func.region(*region).insts.clone() {
            let mut invariant = func.inst(inst).op.is_pure();
            func.inst(inst).op.for_each_operand(&mut |value| invariant &= !varies[value]);
            // What the regions of an op define moves with it.
            let mut own = Vec::new();
            func.inst(inst).op.for_each_region(&mut |region| own.push(region));
            invariant &= !loops::captured(func, &own).into_iter().any(|value| varies[value]);
            if invariant {
                func.inst(inst).results.iter().for_each(|result| varies[*result] = false);
                moved.push(inst);
            } else {
                kept.push(inst);
            }
        }
        *func.insts_mut(*region) = kept;
    }
    moved
}
