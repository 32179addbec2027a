//! Warp specialisation: the blocks that matrix products read are copied to shared memory by a warp of its own, ahead of the warpgroups that multiply them.
//!
//! The pass makes another version of a kernel, for launches whose tensors a tensor copy can read. Each CTA of this version is a *worker*, which runs programs of the
//! grid one after another:
//!
//! ```text
//! ; a kernel with a product
//! for %i (%sum) {
//!     %a = load %x, ..
//!     %b = load %y, ..
//!     %next = dot %a, %b, %sum
//!     yield %next
//! }
//! store %z, ..
//!
//! ; its version with roles
//! %ring_a, %ring_b = ring {slots = 4}
//! roles () {                                       ; one thread
//!     for each program of the worker {
//!         for %i {
//!             ring_acquire %ring_a
//!             copy_block %ring_a, %x, ..
//!             copy_block %ring_b, %y, ..
//!         }
//!     }
//! } () {                                           ; all warps of the schedule
//!     for each program of the worker {
//!         for %i (%sum) {
//!             %a, %b = ring_wait %ring_a
//!             %next = warpgroup_dot %a, %b, %sum
//!             ring_release %a
//!             yield %next
//!         }
//!         store %z, ..
//!     }
//! }
//! ```
//!
//! - **Which loads** (`analysis/blocks.rs`). A load that only products use, of a rectangle of a tensor that the kernel does not write. Loads of one product, and of
//!   products in the same region that share a load, have one ring.
//! - **The producer** (`specialize_warps/slice.rs`) is the part of the kernel that computes where these loads read, and how often. If that depends on anything but
//!   scalars of the kernel, there is no such version (decoupled access and execute, J. E. Smith, 1982).
//! - **The launch** (`specialize_warps/launch.rs`). Extents and strides are launch values, from which the host makes tensor maps. A launch value tells whether the
//!   hardware can read the tensors like that, and the blocks lie in them. The usual version runs all other launches.
//! - **Order.** Workers take programs in groups of rows, so that those which run at the same time read few different blocks.

mod decisions;
mod launch;
mod obstacle;
mod plan;
mod programs;
mod roles;
mod slice;

use crate::ir::Function;
use crate::passes::{canonicalize, cse, dce, split_carried_indices, widen_loops};
use crate::schedule::Schedule;
use crate::target::Asked;

pub use decisions::{BlockCopy, Decisions, Product, Ring};
pub use obstacle::{Obstacle, StoreObstacle};
pub(crate) use plan::FEWEST_SLOTS;

/// The version of a simplified kernel with roles, and what it does.
///
/// # Errors
/// Why there is none.
pub fn run(func: &Function, target: &Asked, schedule: Schedule) -> Result<(Function, Decisions), Obstacle> {
    let mut original = func.clone();
    // They find the indices that a loop advances.
    let is_changed = widen_loops::run(&mut original) | split_carried_indices::run(&mut original);
    if is_changed {
        canonicalize::run(&mut original);
        cse::run(&mut original);
        dce::run(&mut original);
    }
    let mut plan = plan::plan(&original, schedule)?;
    let slice = slice::of(&original, &plan)?;
    // The target is asked last, so that the other kernels of two targets share one compilation.
    plan.fit(target, schedule)?;
    let mut special = original.clone();
    roles::build(&mut special, &original, &plan, &slice);
    Ok((special, Decisions::of(&original, &plan, schedule)))
}
