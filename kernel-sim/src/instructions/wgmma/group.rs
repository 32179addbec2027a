//! What warps and warpgroups remember of the matrix products that they have begun.
//!
//! A product is the work of four warps, so its operands in shared memory are read when all of them have begun it and the first waits for
//! it, as late as can be: whoever overwrites them too early is found. Each warp then adds to its own registers when it waits itself.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::super::Register;
use super::descriptor::Descriptor;
use super::product::Shape;
use crate::memory::Operation;

/// Warps of a warpgroup.
pub(super) const WARPS: usize = 4;

/// The warpgroups of a CTA, by number.
pub(crate) type Warpgroups = HashMap<usize, Warpgroup>;

/// A warpgroup.
#[derive(Default)]
pub(crate) struct Warpgroup {
    /// By ordinal: those that not all warps have waited for.
    pub(super) products: HashMap<u64, Joint>,
    /// What the first warp to come wanted in its n-th `setmaxnreg`.
    pub(in crate::instructions) register_counts: HashMap<u64, u32>,
}

/// A product as the four warps share it.
pub(super) struct Joint {
    pub(super) step: u32,
    /// The source line.
    pub(super) line: u32,
    pub(super) a: Option<Descriptor>,
    pub(super) b: Descriptor,
    pub(super) shape: Shape,
    /// By warp of the warpgroup: its operation, once it has begun.
    pub(super) operations: [Option<Operation>; WARPS],
    /// Operands from shared memory, once they were read.
    pub(super) operands: Option<Arc<Operands>>,
    /// Warps that have their result.
    pub(super) delivered: usize,
}

/// Elements that were read from shared memory: their bits, row by row along K.
pub(super) struct Operands {
    /// 64 rows; empty if A is in registers.
    pub(super) a: Vec<u64>,
    /// A row for each column of D.
    pub(super) b: Vec<u64>,
}

/// The products of one warp.
#[derive(Default)]
pub(crate) struct Matrices {
    /// How many it has begun.
    pub(super) issued: u64,
    /// How many groups it has committed.
    pub(super) committed: u64,
    /// Those that it has not waited for, oldest first.
    pub(super) products: VecDeque<Own>,
    /// How many `setmaxnreg` it has executed.
    pub(in crate::instructions) register_changes: u64,
    /// Counts writes to registers, from the first `wgmma.fence` on.
    clock: u64,
    /// By register: the last write.
    written: Vec<u64>,
    /// The last write before the last `wgmma.fence`.
    fenced: u64,
}

/// A product as one warp sees it.
pub(super) struct Own {
    pub(super) ordinal: u64,
    pub(super) group: u64,
    pub(super) accumulators: Vec<Register>,
    /// Registers of A, if it is not in shared memory.
    pub(super) a: Vec<Register>,
    pub(super) adds: bool,
    /// The last write to a register before it began.
    pub(super) began: u64,
}

impl Matrices {
    /// A register was written by something else than a matrix product.
    pub(crate) fn wrote(&mut self, register: Register) {
        if let Some(written) = self.written.get_mut(register.0 as usize) {
            self.clock += 1;
            *written = self.clock;
        }
    }

    /// `wgmma.fence`, in a warp with that many registers.
    pub(super) fn fence(&mut self, registers: usize) {
        if self.written.is_empty() {
            self.written.resize(registers.max(1), 0);
        }
        self.fenced = self.clock;
    }

    /// Was there a `wgmma.fence` since the register was written?
    pub(super) fn is_fenced(&self, register: Register) -> bool {
        self.written.get(register.0 as usize).is_some_and(|&written| written <= self.fenced)
    }

    /// Was there ever a `wgmma.fence`?
    pub(super) fn has_fenced(&self) -> bool {
        !self.written.is_empty()
    }

    /// The last write to any register.
    pub(super) fn now(&self) -> u64 {
        self.clock
    }

    /// Was the register written later than that?
    pub(super) fn is_written_since(&self, register: Register, time: u64) -> bool {
        self.written.get(register.0 as usize).is_some_and(|&written| written > time)
    }
}
