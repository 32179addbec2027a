//! Launch overlap: a kernel that may overlap with the previous launch waits for that launch before it accesses memory.
//!
//! ```text
//! ; before
//! kernel @k(%x: ptr<f32>, %y: ptr_mut<f32>) {
//!     %0 = const {value = 0} : i64
//!     gdc_launch_dependents
//!     %1 = load %x, %0 : f32
//!     store %y, %0, %1
//!     return
//! }
//! ; after
//! kernel @k(%x: ptr<f32>, %y: ptr_mut<f32>) {
//!     gdc_wait
//!     %0 = const {value = 0} : i64
//!     gdc_launch_dependents
//!     %1 = load %x, %0 : f32
//!     store %y, %0, %1
//!     return
//! }
//! ```
//!
//! A kernel may overlap if it uses `gdc_wait` or `gdc_launch_dependents`. The pass leaves it alone if every path to an access, and every
//! path to the end, has a `gdc_wait`. The wait before the end is necessary: a later launch that waits for this one waits for earlier
//! launches only because this one has waited for them. An `unchecked` kernel waits only where its author says.

use crate::ir::rewrite::Changed;
use crate::ir::{Function, Op, Region};
use crate::location::Loc;

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    if func.unchecked || !func.overlaps() || after(func, func.body) == Some(true) {
        return false;
    }
    let wait = func.make_inst(Op::GdcWait {}, [], Loc::NONE);
    func.insts_mut(func.body).insert(0, wait);
    true
}

/// Has a kernel that enters the region without a wait executed one at its end? `None` if it accesses memory before.
fn after(func: &Function, region: Region) -> Option<bool> {
    for &inst in &func.region(region).insts {
        let waited = match func.inst(inst).op {
            Op::GdcWait {} => true,
            Op::If { then_region, else_region, .. } => after(func, then_region)? & after(func, else_region)?,
            // The loop may have no iteration.
            Op::For { body, .. } => {
                after(func, body)?;
                false
            }
            // The test runs at least once.
            Op::While { test, body, .. } => {
                let asked = after(func, test)?;
                if !asked {
                    after(func, body)?;
                }
                asked
            }
            Op::GdcLaunchDependents {} => false,
            ref op if op.is_terminator() => false,
            ref op if op.has_effects() || matches!(op, Op::Load { .. }) => return None,
            _ => false,
        };
        if waited {
            return Some(true);
        }
    }
    Some(false)
}
