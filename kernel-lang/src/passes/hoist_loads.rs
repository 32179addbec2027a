//! Hoisting of loads: a load goes in front of ops whose machine code has branches.
//!
//! ```text
//! ; before
//! kernel @k(%x: ptr<f32>, %y: ptr<f32>, %z: ptr_mut<f32>, %a: f32) {
//!     %0 = arange {start = 0, end = 1024} : tile<i64, [1024]>
//!     %1 = load %x, %0 : tile<f32, [1024]>
//!     %2 = broadcast %a : tile<f32, [1024]>
//!     %3 = div %1, %2 : tile<f32, [1024]>
//!     %4 = load %y, %0 : tile<f32, [1024]>
//!     %5 = add %3, %4 : tile<f32, [1024]>
//!     store %z, %0, %5
//!     return
//! }
//! ; after
//! kernel @k(%x: ptr<f32>, %y: ptr<f32>, %z: ptr_mut<f32>, %a: f32) {
//!     %0 = arange {start = 0, end = 1024} : tile<i64, [1024]>
//!     %1 = load %x, %0 : tile<f32, [1024]>
//!     %2 = broadcast %a : tile<f32, [1024]>
//!     %3 = load %y, %0 : tile<f32, [1024]>
//!     %4 = div %1, %2 : tile<f32, [1024]>
//!     %5 = add %4, %3 : tile<f32, [1024]>
//!     store %z, %0, %5
//!     return
//! }
//! ```
//!
//! The driver's compiler moves a load only between two branches. A division that is correctly rounded has a branch for rare operands, so a load behind
//! it would wait for memory after all loads in front of it have waited. The pass keeps the order of the loads, moves none across a store, an atomic or
//! a barrier, and moves few bytes: the elements need registers while they wait.

use rustc_hash::FxHashSet;

use crate::ir::rewrite::Changed;
use crate::ir::{BinaryOp, Function, Inst, Op, Region, UnaryOp, Value};

/// The bytes of all tiles that move over an op: 16 registers for a thread of the usual four warps.
const MOST_BYTES: usize = 8192;

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let mut changed = false;
    for region in func.regions_under(func.body) {
        changed |= hoist(func, region);
    }
    changed
}

fn hoist(func: &mut Function, region: Region) -> Changed {
    let mut insts = func.region(region).insts.clone();
    // The first op with branches that loads may still move over, and the bytes that have.
    let (mut first, mut bytes, mut changed) = (None, 0, false);
    let mut at = 0;
    while at < insts.len() {
        let op = &func.inst(insts[at]).op;
        if op.has_effects() {
            (first, bytes) = (None, 0);
        } else if has_branches(func, op) {
            first.get_or_insert(at);
        } else if let (Op::Load { volatile: false, .. }, Some(front)) = (op, first)
            && let Some(size) = tile_bytes(func, func.result(insts[at])).filter(|size| bytes + size <= MOST_BYTES)
            && let Some(moved) = with_operands(func, &insts[front..=at])
        {
            let is_moved: FxHashSet<Inst> = moved.iter().copied().collect();
            let stay: Vec<Inst> = insts[front..=at].iter().copied().filter(|inst| !is_moved.contains(inst)).collect();
            first = Some(front + moved.len());
            bytes += size;
            insts.splice(front..=at, moved.into_iter().chain(stay));
            changed = true;
        }
        at += 1;
    }
    if changed {
        *func.insts_mut(region) = insts;
    }
    changed
}

/// The last of these ops, with those among them that compute its operands; `None` if one of them has branches, or loads.
fn with_operands(func: &Function, insts: &[Inst]) -> Option<Vec<Inst>> {
    let (load, others) = insts.split_last()?;
    let mut needed: FxHashSet<Value> = FxHashSet::default();
    func.inst(*load).op.for_each_operand(&mut |operand| _ = needed.insert(operand));
    let mut moved = vec![*load];
    for inst in others.iter().rev() {
        let data = func.inst(*inst);
        if data.results.iter().any(|result| needed.contains(result)) {
            if data.op.has_regions() || !data.op.is_pure() || has_branches(func, &data.op) {
                return None;
            }
            data.op.for_each_operand(&mut |operand| _ = needed.insert(operand));
            moved.push(*inst);
        }
    }
    moved.reverse();
    Some(moved)
}

/// Has the machine code of a tile's op branches?
fn has_branches(func: &Function, op: &Op) -> bool {
    let is_float_tile = |value: Value| func.ty(value).is_tile() && func.ty(value).elem().dtype().is_some_and(|dtype| dtype.is_float());
    match *op {
        Op::Binary { op: BinaryOp::Div | BinaryOp::Rem, lhs, .. } => is_float_tile(lhs),
        Op::Unary { op: UnaryOp::Sqrt, x } => is_float_tile(x),
        _ => false,
    }
}

fn tile_bytes(func: &Function, value: Value) -> Option<usize> {
    let ty = func.ty(value);
    ty.is_tile().then(|| ty.extents().iter().product::<usize>() * ty.dtype().bytes())
}
