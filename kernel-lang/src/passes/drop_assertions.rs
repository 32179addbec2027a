//! Assertion removal: drops the assertions of a launch that is not `.checked()`.
//!
//! ```text
//! ; before
//! kernel @k(%x: ptr<f32>, %n: i64, %m: i64) {
//!     %0 = lt %n, %m : bool
//!     assert %0 {message = "n is too large"}
//!     return
//! }
//! ; after
//! kernel @k(%x: ptr<f32>, %n: i64, %m: i64) {
//!     %0 = lt %n, %m : bool
//!     return
//! }
//! ```
//!
//! [`super::dce`] removes the ops that compute the conditions.

use crate::ir::rewrite::Changed;
use crate::ir::{Function, Op};

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let mut changed = false;
    for region in func.regions_under(func.body) {
        let mut insts = func.region(region).insts.clone();
        let before = insts.len();
        insts.retain(|inst| !matches!(func.inst(*inst).op, Op::Assert { .. }));
        changed |= insts.len() < before;
        *func.insts_mut(region) = insts;
    }
    changed
}
