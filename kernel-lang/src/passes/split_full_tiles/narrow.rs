//! Narrow runs: a version of a region for tiles that are not full, or whose rows are not aligned, with accesses of four elements.
//!
//! ```text
//! for %i .. (%sum: tile<f32, [512]>) {                  for %i .. (%sum: tile<f32, [512]>) {
//!     %v = load %x, %row + %at {mask = %at < %n}            if %is_full { .. }
//!     yield %sum + %v                                       else if %rows_and_n_are_multiples_of_4 {
//! }                                                             %v = load %x, %row + %at {mask = %at < %n, in_bounds = true, align = 8}
//!                                                           } else { the code as it was, guarded }
//!                                                       }
//! ```
//!
//! A guarded copy usually has a layout of its own, in which the threads of a warp access neighbours. But a region that takes a tile from another region
//! or hands one on shares the layout of that tile with the copy for full tiles, in which each thread has neighbours. Its guarded copy either
//! accesses them one by one, so that each access of a warp touches as many sectors as a wide one, or moves elements between threads. With
//! rows of 500 elements of 16 bits, accesses one by one would be eight times as many requests as wide accesses, and this version has twice as many.
//!
//! The masks may end anywhere in the tile: they compare positions with the distance from the start of the tile to the limit. The test makes sure
//! that this distance does not overflow, that it is a multiple of a run, and that the elements in front of it are in bounds.

use rustc_hash::FxHashSet;

use crate::analysis::affine::AffineFacts;
use crate::dtype::Dtype;
use crate::ir::rewrite::{Substitution, substitute};
use crate::ir::{Builder, CompareOp, Function, Inst, Region, Value};
use crate::location::Loc;
use crate::passes::flat_indices::is_index_tile;

use super::{Plan, Ragged, Sought, WIDEST};

/// A longer region gets no such version.
const MAX_OPS: usize = 500;
/// The elements of a run of the smallest type: more lengths of rows are multiples of 4 than of 8 or 16.
const RUN: i64 = 4;

/// The plan of a version for tiles that are not full or whose rows are not aligned, if it is worth its code.
pub(super) fn plan(func: &Function, ops: &[Inst], wide: &Plan, results: &[Value], facts: &mut AffineFacts) -> Option<Plan> {
    if ops.len() > MAX_OPS || !is_tied(func, ops, results) {
        return None;
    }
    let widest = run(func, wide)?;
    // Of larger types, a wide access has only four elements itself.
    let sought = (widest < WIDEST).then_some(Sought { widest, ragged: Ragged::Anywhere, ..Sought::WIDEST })?;
    super::plan(func, ops, facts, &|_| true, sought).filter(Plan::has_runs)
}

/// The bytes of a narrow run, if the plan has accesses.
pub(in crate::passes) fn run(func: &Function, plan: &Plan) -> Option<i64> {
    let bytes = || plan.accesses.keys().filter_map(|inst| Some(func.ty(func.inst(*inst).op.access()?.base).dtype().bytes() as i64));
    Some(WIDEST.min(RUN * bytes().min()?).max(bytes().max()?))
}

/// Does the region take tiles from other regions, or hand some on? These have the same layout in all its versions.
pub(super) fn is_tied(func: &Function, ops: &[Inst], results: &[Value]) -> bool {
    let own: FxHashSet<Value> = ops.iter().flat_map(|inst| &func.inst(*inst).results).copied().collect();
    let is_data = |value: Value| {
        let ty = func.ty(value);
        ty.is_tile() && ty.dtype() != Dtype::Bool && !is_index_tile(func, value) && func.splat(value).is_none()
    };
    let mut is_tied = results.iter().any(|result| is_data(*result));
    for inst in ops {
        let op = &func.inst(*inst).op;
        op.for_each_operand(&mut |value| is_tied |= !own.contains(&value) && is_data(value));
    }
    is_tied
}

/// Lets the masks that end within a tile compare positions, which fit in 32 bits, with the distance of the end.
pub(super) fn mask_by_position(func: &mut Function, region: Region, plan: &Plan, map: &Substitution) {
    let (scratch, mut with) = (func.add_region(), Substitution::new());
    for (mask, comparison) in &plan.distances {
        let shape = func.ty(*mask).shape().to_vec();
        let b = &mut Builder::new(func, scratch, Loc::NONE);
        let mut distance = comparison.distance().value(b);
        if plan.has_short_distances {
            // The casts tell later passes that the distance fits in 32 bits, which the condition tests.
            distance = b.cast(distance, Dtype::I32);
            distance = b.cast(distance, Dtype::I64);
        }
        let (lhs, rhs) = (comparison.index.strides_value(b, &shape), b.broadcast(distance, &shape));
        with.insert(map.get(*mask), b.compare(CompareOp::Lt, lhs, rhs));
    }
    substitute(func, region, &with);
    let tests = std::mem::take(func.insts_mut(scratch));
    func.insts_mut(region).splice(0..0, tests);
}
