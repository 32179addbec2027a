//! The registers that an instruction uses, recorded during decoding.

use crate::instructions::{Register, Special};
use crate::ptx::Type;

/// The registers that an instruction reads and writes. The guard predicate is not included.
#[derive(Clone, Default, Debug)]
pub(crate) struct Uses {
    pub(crate) reads: Vec<Register>,
    pub(crate) writes: Vec<Register>,
    /// Whether the instruction reads a clock register.
    pub(crate) reads_clock: bool,
}

impl Uses {
    pub(super) fn read(&mut self, register: Register, ty: Type) {
        push(&mut self.reads, register, ty);
    }

    pub(super) fn write(&mut self, register: Register, ty: Type) {
        push(&mut self.writes, register, ty);
    }

    pub(super) fn special(&mut self, special: Special) {
        self.reads_clock |= matches!(special, Special::Clock | Special::Clock64 | Special::GlobalTimer);
    }
}

fn push(registers: &mut Vec<Register>, register: Register, ty: Type) {
    registers.push(register);
    if ty.bits() > 64 {
        registers.push(register.high());
    }
}
