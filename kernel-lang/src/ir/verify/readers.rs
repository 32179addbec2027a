//! The invariants of the readers of loads, which threads that hold the same element rely on.

use super::Verifier;
use crate::ir::access::Stored;
use crate::ir::arena::{Inst, SideTable, Value};
use crate::ir::function::Function;
use crate::ir::ops::{Op, Reader};

/// Data about the whole kernel for invariant 14.
pub(super) struct Written {
    stored: Stored,
    /// Is the source of a copy to the async buffer written?
    is_source_written: SideTable<Value, bool>,
    /// Do only owners copy to the async buffer?
    is_of_owners: SideTable<Value, bool>,
}

impl Written {
    pub(super) fn of(func: &Function) -> Written {
        let insts = func.all_insts();
        let stored = Stored::by(func, &insts);
        let (mut is_source_written, mut is_of_owners): (SideTable<Value, bool>, SideTable<Value, bool>) = Default::default();
        for inst in insts {
            if let Op::AsyncCopy { buffer, base, reader, .. } = func.inst(inst).op {
                is_source_written[buffer] |= stored.may_alias(func, base);
                is_of_owners[buffer] |= reader != Reader::Each;
            }
        }
        Written { stored, is_source_written, is_of_owners }
    }
}

impl Verifier<'_> {
    /// Invariant 14 for one op.
    pub(super) fn readers(&mut self, inst: Inst) {
        let op = &self.func.inst(inst).op;
        let (Op::Load { reader, .. } | Op::LocalLoad { reader, .. } | Op::AsyncCopy { reader, .. }) = *op else { return };
        if self.gpu.is_none() && reader != Reader::Each {
            self.broken(inst, "has an owner only in kernels with layouts");
        }
        let Some(written) = self.written.as_ref().filter(|_| reader == Reader::Each) else { return };
        match *op {
            Op::Load { base, volatile, .. } if volatile || written.stored.may_alias(self.func, base) => {
                self.broken(inst, "lets each thread read what may change meanwhile");
            }
            Op::LocalLoad { buffer, .. } if written.is_source_written[buffer] => {
                self.broken(inst, "lets each thread read its own copy of what may change meanwhile");
            }
            Op::LocalLoad { buffer, .. } if written.is_of_owners[buffer] => {
                self.broken(inst, "lets each thread read slots that only owners fill");
            }
            _ => {}
        }
    }
}
