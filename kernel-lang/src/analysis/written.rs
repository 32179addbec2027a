//! Which pointers a kernel writes through.
//!
//! What it reads there may change while it runs: another program stores, or a thread of this one that is ahead. Threads that hold the same
//! element must then not each look for themselves, or a scalar would differ between them and a branch on it part them.

use crate::ir::{Function, Op, SideTable, Value};

/// For each pointer parameter, whether a store or an atomic of the kernel goes through it.
pub fn compute(func: &Function) -> SideTable<Value, bool> {
    let mut written = SideTable::new();
    for inst in func.all_insts() {
        match func.inst(inst).op {
            Op::Store { base, .. } => written[base] = true,
            Op::Atomic { base, op, .. } => written[base] |= op.writes(),
            _ => {}
        }
    }
    written
}
