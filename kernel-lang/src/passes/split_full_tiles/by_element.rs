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
//! If rows have an odd number of elements, at most one row in eight is aligned, and nearly all programs would run the guarded copy. The guarded copy compares
//! each index with the end of the mask and with both ends of the tensor. This version tests once, with scalars, that the row is in bounds, and then compares
//! each index with the end of the mask only. The guarded copy then runs only for a row that leaves its tensor. So it is compiled for short code, not for
//! speed: its loads do not run ahead, and [`crate::passes::guard_accesses`] adds no test of whole slices to it.
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
