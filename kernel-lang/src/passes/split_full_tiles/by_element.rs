//! Rows by element: a version of a region that reduces rows, for rows in bounds that are not aligned.
//!
//! ```text
//! %v = load %x, %row + %at {mask = %at < %n}        if %is_full { .. }
//! %sum = reduce %v .. (add)                         else if %is_in_bounds {
//! store %y, %row + %at, %v - %sum {mask = ..}           %v = load %x, %row + %at {mask = %at < %n, in_bounds = true}
//!                                                       ..
//!                                                   } else { the code as it was, guarded } {rare}
//! ```
//!
//! Where the length of rows is odd, no row but each eighth is aligned, and nearly all programs would run the guarded copy. That compares each index with the
//! end of the mask, and with both ends of the tensor. One test of scalars decides about the tensor for all elements. What is left to the guarded copy is a
//! row that leaves its tensor, so that copy is compiled for length, not for speed: nothing in it runs ahead or tests for the usual case.
//!
//! A region whose tiles come from elsewhere or go elsewhere has `narrow` runs instead. One that reduces nothing is sliced as it is, and waits for memory.

use crate::analysis::affine::AffineFacts;
use crate::ir::{Function, Inst, Op, Value};

use super::narrow::is_tied;
use super::{Plan, Sought, Test};

/// A longer region gets no such version.
const MAX_OPS: usize = 500;

/// The plan of the version, if it is worth its code.
pub(super) fn plan(func: &Function, ops: &[Inst], wide: &Plan, results: &[Value], facts: &mut AffineFacts) -> Option<Plan> {
    if ops.len() > MAX_OPS || wide.divisible.is_empty() || !reduces(func, ops) || is_tied(func, ops, results) {
        return None;
    }
    let keeps_masks = |plan: &Plan| plan.masks.iter().all(|(_, test)| matches!(test, Test::Uniform(_)));
    super::plan(func, ops, facts, &|_| true, Sought::ELEMENTS).filter(keeps_masks)
}

/// Does the region reduce tiles? One that scans does not count: in this version, elements would have two layouts in registers.
fn reduces(func: &Function, ops: &[Inst]) -> bool {
    let has = |is: fn(&Op) -> bool| ops.iter().any(|inst| is(&func.inst(*inst).op));
    has(|op| matches!(op, Op::Reduce { .. })) && !has(|op| matches!(op, Op::Scan { .. }))
}
