//! Shared memory in the PTX: the bytes that `allocate_shared` gave to each op, and barriers.

use std::collections::VecDeque;
use std::ops::Range;

use crate::ir::{Part, Scratch, Wait};

use crate::backend::ptx::Emitter;
use crate::backend::ptx::roles::{CONSUMER_BARRIER, Role};
use crate::backend::ptx::text::registers::{Class, Reg, asm};

/// The name of the buffer in the PTX.
pub(crate) const NAME: &str = "shared";
/// The widest access of a thread, in bytes. Every range has this alignment.
pub(crate) const WIDEST: u32 = 16;

/// What the op that is being emitted has not used yet of its shared memory.
#[derive(Default)]
pub(crate) struct Placed {
    at_once: VecDeque<u32>,
    parts: VecDeque<Part>,
}

impl Placed {
    pub(crate) fn of(scratch: Option<&Scratch>) -> Placed {
        let Some(Scratch { at_once, parts }) = scratch else { return Placed::default() };
        Placed { at_once: at_once.iter().copied().collect(), parts: parts.iter().cloned().collect() }
    }

    pub(crate) fn has_parts(&self) -> bool {
        !self.parts.is_empty()
    }

    pub(crate) fn is_used_up(&self) -> bool {
        self.at_once.is_empty() && self.parts.is_empty()
    }
}

impl Emitter<'_> {
    /// How much of the op's next exchange goes through shared memory at once.
    pub(crate) fn at_once(&mut self) -> u32 {
        self.placed.at_once.pop_front().expect("`allocate_shared` has decided about each exchange")
    }

    /// The next bytes of the op. Emits a barrier if some thread may still be reading there.
    pub(crate) fn scratch(&mut self) -> Range<u32> {
        let Part { range, wait } = self.placed.parts.pop_front().expect("`allocate_shared` has given bytes to each exchange");
        match wait {
            None => {}
            Some(Wait::Cta) => self.barrier(),
            Some(Wait::Program) => self.program_barrier(),
        }
        range
    }

    /// Emits a barrier for all threads of the CTA: their writes become visible, and the memory that they read is free.
    pub(crate) fn barrier(&mut self) {
        if self.schedule.num_warps == 1 {
            asm!(self, "bar.warp.sync 0xffffffff");
        } else if self.rings.role == Role::Consumer {
            asm!(self, "bar.sync {CONSUMER_BARRIER}, {}", self.schedule.threads());
        } else {
            asm!(self, "bar.sync 0");
        }
    }

    /// Emits a barrier for all threads of the program, which may belong to several CTAs.
    pub(crate) fn program_barrier(&mut self) {
        if self.schedule.num_ctas == 1 {
            return self.barrier();
        }
        self.await_cluster();
        asm!(self, "barrier.cluster.arrive.release.aligned");
        asm!(self, "barrier.cluster.wait.acquire.aligned");
    }

    /// Emits a barrier of the warp, for exchanges in which each warp reads only its own writes.
    pub(crate) fn warp_barrier(&mut self) {
        asm!(self, "bar.warp.sync 0xffffffff");
    }

    /// The address of a byte of shared memory.
    pub(crate) fn shared_address(&mut self, offset: Option<Reg>) -> Reg {
        let base = self.reg(Class::B32);
        asm!(self, "mov.b32 {base}, {NAME}");
        let Some(offset) = offset else { return base };
        let sum = self.reg(Class::B32);
        asm!(self, "add.s32 {sum}, {base}, {offset}");
        sum
    }
}
