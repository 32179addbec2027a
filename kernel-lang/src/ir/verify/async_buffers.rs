//! The invariants of async buffers and of the copies to them.

use super::Verifier;
use crate::ir::arena::{Inst, Region, Value};
use crate::ir::function::{Def, Function};
use crate::ir::ops::Op;

impl Verifier<'_> {
    /// Invariant 13 within a region: copies belong to groups, and a slot is read after a wait that covers it.
    pub(super) fn copies(&mut self, region: Region) {
        let func = self.func;
        let (mut ungrouped, mut waited): (Vec<Inst>, Option<u32>) = (Vec::new(), None);
        // Since the last wait, have all threads met?
        let mut is_met = false;
        for inst in &func.region(region).insts {
            match func.inst(*inst).op {
                Op::AsyncCopy { buffer, .. } => {
                    ungrouped.push(*inst);
                    if waited.is_some() && !is_met && is_allocated_in_common(func, buffer) {
                        self.broken(*inst, "overwrites what other threads may still read, and no barrier follows the wait");
                    }
                }
                Op::AsyncCommitGroup {} => ungrouped.clear(),
                Op::AsyncWait { pending } => (waited, is_met) = (Some(pending), false),
                Op::SyncThreads { .. } => is_met = true,
                Op::LocalLoad { buffer, .. } => {
                    let slots = match func.def_op(buffer) {
                        Some(Op::AsyncBuffer { slots, .. }) => *slots,
                        _ => continue,
                    };
                    match waited {
                        None => self.broken(*inst, "reads a slot that nobody waited for"),
                        Some(pending) if pending >= slots => {
                            self.broken(*inst, format!("reads one of {slots} slots, and {pending} groups may still be on their way"));
                        }
                        Some(_) => {}
                    }
                    if !is_met && is_allocated_in_common(func, buffer) {
                        self.broken(*inst, "reads what other threads copied, and no barrier follows the wait");
                    }
                }
                _ => {}
            }
        }
        for inst in ungrouped {
            self.broken(inst, "is in no group that anybody could wait for");
        }
    }

    /// Invariant 13 for one op: an async buffer is the result of an `async_buffer`, and no other op names it.
    pub(super) fn buffers(&mut self, inst: Inst) {
        let func = self.func;
        let is_of_copies = |op: &Op| {
            matches!(
                op,
                Op::AsyncBuffer { .. } | Op::AsyncCopy { .. } | Op::AsyncCommitGroup {} | Op::AsyncWait { .. } | Op::LocalLoad { .. }
            )
        };
        self.has_async_buffers |= is_of_copies(&func.inst(inst).op);
        // No op names a buffer that is not defined before.
        if !self.has_async_buffers {
            return;
        }
        if let Op::LocalLoad { buffer, ref first, .. } = func.inst(inst).op
            && is_common(func, buffer) != first.is_some()
        {
            self.broken(inst, "reads a part of common slots, or a whole tile of its own slots");
        }
        let own = match func.inst(inst).op {
            Op::AsyncCopy { buffer, .. } | Op::LocalLoad { buffer, .. } => {
                if !matches!(func.def_op(buffer), Some(Op::AsyncBuffer { .. })) {
                    self.broken(inst, format!("names {buffer}, which is no async buffer"));
                }
                Some(buffer)
            }
            _ => None,
        };
        let mut others = Vec::new();
        func.inst(inst).op.for_each_operand(&mut |value| {
            if matches!(func.def_op(value), Some(Op::AsyncBuffer { .. })) {
                others.push(value);
            }
        });
        // An op may name its own async buffer once.
        if let Some(index) = others.iter().position(|other| Some(*other) == own) {
            others.remove(index);
        }
        others.dedup();
        for buffer in others {
            self.broken(inst, format!("takes the async buffer {buffer} for a tile"));
        }
    }
}

/// Does the async buffer have slots that are common to all threads?
fn is_common(func: &Function, buffer: Value) -> bool {
    matches!(func.def_op(buffer), Some(Op::AsyncBuffer { common: true, .. }))
}

/// As [`is_common`], behind the allocation of shared memory. Before it, there are no barriers.
fn is_allocated_in_common(func: &Function, buffer: Value) -> bool {
    is_common(func, buffer) && matches!(func.def(buffer), Def::Result(inst, _) if func.scratch[inst].is_some())
}
