//! Makes a kernel that may overlap with the launch before it wait for that one before it touches memory.
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
//! It overlaps if it says one of the two words. It is left alone where every access has a `gdc_wait` before it on every way that leads there, and where none ends
//! without one: who waits for this launch waits for those before it, too, only because it has waited. An `unchecked` kernel waits where its author says.

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

/// Has a kernel that enters the region without having waited done so at its end? None if it touches memory before.
fn after(func: &Function, region: Region) -> Option<bool> {
    for &inst in &func.region(region).insts {
        let waited = match func.inst(inst).op {
            Op::GdcWait {} => true,
            Op::If { then_region, else_region, .. } => after(func, then_region)? & after(func, else_region)?,
            // It may have no turn.
            Op::For { body, .. } => {
                after(func, body)?;
                false
            }
            // It asks at least once.
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
