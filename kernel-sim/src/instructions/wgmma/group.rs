//! The matrix products in flight of warps and warpgroups.
//!
//! Four warps execute a product together. The simulator reads the product's operands in shared memory when all four warps have issued the
//! product and the first of them waits for it. This is as late as possible, so a store that overwrites an operand too early is detected.
//! Each warp updates its own registers when it waits.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::super::Register;
use super::descriptor::Descriptor;
use super::product::Shape;
use crate::memory::Operation;

/// The number of warps in a warpgroup.
pub(super) const WARPS: usize = 4;

/// The warpgroups of a CTA, by number.
pub(crate) type Warpgroups = HashMap<usize, Warpgroup>;

/// A warpgroup.
#[derive(Default)]
pub(crate) struct Warpgroup {
    /// The products that not all warps have waited for, by ordinal.
    pub(super) products: HashMap<u64, Joint>,
    /// The register count of the n-th `setmaxnreg`, as requested by the first warp that executes it.
    pub(in crate::instructions) register_counts: HashMap<u64, u32>,
}

/// The state of a product that the four warps share.
pub(super) struct Joint {
    pub(super) step: u32,
    /// The source line.
    pub(super) line: u32,
    pub(super) a: Option<Descriptor>,
    pub(super) b: Descriptor,
    pub(super) shape: Shape,
    /// The operation of each warp of the warpgroup that has issued the product.
    pub(super) operations: [Option<Operation>; WARPS],
    /// The operands from shared memory, after they were read.
    pub(super) operands: Option<Arc<Operands>>,
    /// The number of warps that have received their result.
    pub(super) delivered: usize,
}

/// The bits of elements that were read from shared memory, row by row along K.
pub(super) struct Operands {
    /// 64 rows; empty if A is in registers.
    pub(super) a: Vec<u64>,
    /// One row for each column of D.
    pub(super) b: Vec<u64>,
}

/// The products of one warp.
#[derive(Default)]
pub(crate) struct Matrices {
    /// The number of issued products.
    pub(super) issued: u64,
    /// The number of committed groups.
    pub(super) committed: u64,
    /// The products without a completed wait, oldest first.
    pub(super) products: VecDeque<Own>,
    /// The number of executed `setmaxnreg`.
    pub(in crate::instructions) register_changes: u64,
    /// The number of register writes since the first `wgmma.fence`.
    clock: u64,
    /// The last write of each register.
    written: Vec<u64>,
    /// The last write before the last `wgmma.fence`.
    fenced: u64,
}

/// The state of a product in one warp.
pub(super) struct Own {
    pub(super) ordinal: u64,
    pub(super) group: u64,
    pub(super) accumulators: Vec<Register>,
    /// The registers of A, if A is not in shared memory.
    pub(super) a: Vec<Register>,
    pub(super) adds: bool,
    /// The number of register writes at the time of issue.
    pub(super) began: u64,
}

impl Matrices {
    /// Records the write of a register by another instruction than a matrix product.
    pub(crate) fn wrote(&mut self, register: Register) {
        if let Some(written) = self.written.get_mut(register.0 as usize) {
            self.clock += 1;
            *written = self.clock;
        }
    }

    /// Executes `wgmma.fence` in a warp with this number of registers.
    pub(super) fn fence(&mut self, registers: usize) {
        if self.written.is_empty() {
            self.written.resize(registers.max(1), 0);
        }
        self.fenced = self.clock;
    }

    /// Whether a `wgmma.fence` was executed after the last write of the register.
    pub(super) fn is_fenced(&self, register: Register) -> bool {
        self.written.get(register.0 as usize).is_some_and(|&written| written <= self.fenced)
    }

    /// Whether a `wgmma.fence` was ever executed.
    pub(super) fn has_fenced(&self) -> bool {
        !self.written.is_empty()
    }

    /// The current number of register writes.
    pub(super) fn now(&self) -> u64 {
        self.clock
    }

    /// Whether the register was written after this time.
    pub(super) fn is_written_since(&self, register: Register, time: u64) -> bool {
        self.written.get(register.0 as usize).is_some_and(|&written| written > time)
    }
}
