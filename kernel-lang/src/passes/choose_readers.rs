//! Readers of loads: where a kernel reads a tensor that it also writes, one thread reads for all threads that hold the element.
//!
//! ```text
//! ; before
//! ; num_warps 1
//! kernel @k(%x: ptr_mut<f32>, %w: ptr<f32>) {
//!     %0 = const {value = 0} : i64
//!     %1 = load %x, %0 {in_bounds = true} : f32
//!     %2 = load %w, %0 {in_bounds = true} : f32
//!     %3 = mul %1, %2 : f32
//!     store %x, %0, %3 {in_bounds = true}
//!     return
//! }
//! ; after
//! kernel @k(%x: ptr_mut<f32>, %w: ptr<f32>) {
//!     %0 = const {value = 0} : i64
//!     %1 = load %x, %0 {in_bounds = true, reader = "owner"} : f32
//!     %2 = load %w, %0 {in_bounds = true} : f32
//!     %3 = mul %1, %2 : f32
//!     store %x, %0, %3 {in_bounds = true}
//!     return
//! }
//! ```
//!
//! `analysis::uniform_loads` says when such a thread broadcasts. The owner of an element also copies it to an async buffer, if it reads for the `local_load`s.

use crate::analysis::uniform_loads;
use crate::ir::rewrite::Changed;
use crate::ir::{Function, Op};

/// Runs the pass. All tiles have layouts.
pub fn run(func: &mut Function) -> Changed {
    let readers = uniform_loads::compute(func);
    let mut changed = false;
    for inst in func.all_insts() {
        let data = func.inst(inst);
        let of = match data.op {
            Op::Load { .. } | Op::LocalLoad { .. } => data.results[0],
            Op::AsyncCopy { buffer, .. } => buffer,
            _ => continue,
        };
        if let Op::Load { reader, .. } | Op::LocalLoad { reader, .. } | Op::AsyncCopy { reader, .. } = &mut func.inst_mut(inst).op {
            changed |= *reader != readers[of];
            *reader = readers[of];
        }
    }
    changed
}
