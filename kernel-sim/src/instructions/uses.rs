//! The registers that an instruction names, noted while it is decoded.

use crate::instructions::{Register, Special};
use crate::ptx::Type;

/// What an instruction reads and writes. Its guard is not among it.
#[derive(Clone, Default, Debug)]
pub(crate) struct Uses {
    pub(crate) reads: Vec<Register>,
    pub(crate) writes: Vec<Register>,
    /// Does it read a register that counts time?
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
