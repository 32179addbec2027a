//! Empty tiles: a tile that ends before it begins does nothing, so its guarded copy is skipped.
//!
//! The host sizes a grid by the numbers that it passes. It does not know a length that the kernel loads, so it launches programs for the longest
//! of the lengths. Most of these programs may have a tile behind the end of their tensor, and would compute all of it to store nothing.
//!
//! ```text
//! %n = load %lengths, %tensor                          if %is_full { .. } {
//! %at = add (broadcast %start), (arange 0 .. 1024)         if %start < %n {
//! %mask = lt %at, (broadcast %n)                               the code as it was, guarded
//! store %y, %at, %v {mask = %mask}                         } { }
//!                                                      }
//! ```
//!
//! This needs a comparison in the mask of each store and each atomic of the region. Without a store, a region has no effect if nothing uses its
//! values. A checked launch reports loads out of bounds, and so skips nothing.

use rustc_hash::FxHashSet;

use crate::analysis::affine::AffineFacts;
use crate::analysis::masks;
use crate::ir::{BinaryOp, Builder, CompareOp, Function, Inst, Op, Region, Value};
use crate::location::Loc;

use super::{Comparison, Plan, Test};

/// The tests follow so many ops back to a load.
const FARTHEST: usize = 64;

/// The mask of the plan that tests whether a tile has an element, if a tile without one does nothing and a loaded number decides about it.
pub(super) fn find(func: &Function, ops: &[Inst], plan: &Plan, facts: &mut AffineFacts) -> Option<usize> {
    if func.reports {
        return None;
    }
    let is_lower = |test: &Test| matches!(test, Test::Order(Comparison { op: CompareOp::Lt, .. }, _));
    let mut common: Vec<usize> = (0..plan.masks.len()).filter(|index| is_lower(&plan.masks[*index].1)).collect();
    for inst in ops {
        let op = &func.inst(*inst).op;
        if common.is_empty() {
            return None;
        }
        if op.has_effects() {
            let (Op::Store { mask: Some(mask), .. } | Op::Atomic { mask: Some(mask), .. }) = *op else { return None };
            let own: FxHashSet<Value> = masks::conjuncts(func, facts, mask).into_iter().map(|conjunct| conjunct.mask).collect();
            common.retain(|index| own.contains(&plan.masks[*index].0));
        }
    }
    common.into_iter().find(|index| {
        let Test::Order(comparison, _) = &plan.masks[*index].1 else { return false };
        comparison.scalars().any(|scalar| is_loaded(func, scalar))
    })
}

/// Is a scalar computed from one that was loaded?
pub(in crate::passes) fn is_loaded(func: &Function, scalar: Value) -> bool {
    let (mut next, mut seen) = (vec![scalar], FxHashSet::default());
    while let Some(value) = next.pop().filter(|_| seen.len() < FARTHEST) {
        match func.def_op(value) {
            Some(Op::Load { .. }) => return true,
            Some(op) if seen.insert(value) => op.for_each_operand(&mut |operand| next.push(operand)),
            _ => {}
        }
    }
    false
}

/// A region that runs the guarded copy only if the tile has an element.
pub(super) fn skip(func: &mut Function, guarded: Region, test: &Test, loc: Loc) -> Region {
    let Test::Order(Comparison { index, limit, .. }, maximum) = test else { unreachable!("an order was found") };
    let (region, nothing) = (func.add_region(), func.add_region());
    Builder::new(func, guarded, loc).yield_values(Vec::new());
    Builder::new(func, nothing, loc).yield_values(Vec::new());
    let b = &mut Builder::new(func, region, loc);
    let (start, limit) = (index.uniform_value(b), limit.value(b));
    let begins = b.compare(CompareOp::Lt, start, limit);
    // The sum with the stride terms may wrap, and then be less than the limit.
    let last = b.index((i64::MAX - maximum).into());
    let wraps = b.compare(CompareOp::Gt, start, last);
    let cond = b.binary(BinaryOp::Or, begins, wraps);
    b.func.append(region, Op::If { cond, then_region: guarded, else_region: nothing, rare: false }, Vec::new(), loc);
    b.yield_values(Vec::new());
    region
}
