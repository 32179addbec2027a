//! Shared memory: who has which bytes, and the barriers between.
//!
//! Tiles do not live in shared memory: an op writes there, waits, and reads. So the bytes of an op are free again once every thread has read, and
//! that is known after the next barrier, whosever it is. Until then another op takes other bytes, if there are some; if not, it waits first.
//!
//! ```text
//! write A, barrier, read A        pending: A
//! write B, barrier, read B        B is other memory than A, so nobody waited; after this barrier A is free: pending B
//! write A, barrier, read A        and so on, one barrier an op
//! ```
//!
//! A ring is the exception: it is held for as long as its loop runs, but each thread has places of its own there, and nobody waits.
//!
//! Where several CTAs share a program, what the others read is free only after a barrier of the cluster, which the last reads of a kernel are followed by,
//! too: the memory of a CTA is gone when it ends.
//!
//! A loop comes back to its first op: if that writes, before any barrier of the loop, what the end of the loop may still be reading, the loop
//! ends in a barrier.

use std::ops::Range;

use super::Emitter;
use super::registers::{Class, Reg, asm};

/// The name of the buffer in the PTX.
pub(super) const NAME: &str = "shared";
/// Memory that is taken rather than waiting for what there is.
const SPARE_BYTES: u32 = 4096;
/// The most bytes that a thread moves at once: what every range is aligned to.
pub(super) const WIDEST: u32 = 16;

/// What is known about shared memory at this place of the program.
#[derive(Default)]
pub(super) struct Shared {
    /// The most bytes that were taken.
    pub(super) bytes: u32,
    /// What some thread may still be reading.
    pending: Vec<Pending>,
    /// What rings hold: nobody else's for as long as they live.
    held: Vec<Range<u32>>,
    /// The loops around.
    loops: Vec<Loop>,
}

/// Bytes that are being read, by threads of this CTA or of the whole cluster.
#[derive(Clone, PartialEq, Eq)]
struct Pending {
    range: Range<u32>,
    by_cluster: bool,
}

#[derive(Default)]
struct Loop {
    /// Was there surely a barrier since the body began?
    is_fenced: bool,
    /// What is written before that.
    exposed: Vec<Range<u32>>,
}

/// The state before a branch.
pub(super) struct Fork {
    pending: Vec<Pending>,
    fenced: Vec<bool>,
}

fn overlap(a: &Range<u32>, b: &Range<u32>) -> bool {
    a.start < b.end && b.start < a.end
}

impl Shared {
    /// The first place of so many bytes that nobody holds, and with `quiet` nobody may be reading.
    fn place(&self, bytes: u32, quiet: bool) -> Option<u32> {
        let taken: Vec<&Range<u32>> = self.held.iter().chain(self.pending.iter().filter(|_| quiet).map(|pending| &pending.range)).collect();
        let mut starts: Vec<u32> = [0].into_iter().chain(taken.iter().map(|range| range.end)).collect();
        starts.sort_unstable();
        starts.into_iter().find(|start| taken.iter().all(|range| !overlap(range, &(*start..start + bytes))))
    }
}

impl Emitter<'_> {
    /// Bytes that this op may write at once.
    pub(super) fn scratch(&mut self, bytes: u32) -> Range<u32> {
        let bytes = bytes.next_multiple_of(WIDEST);
        let held = self.shared.held.iter().map(|range| range.end).max().unwrap_or_default();
        let start = self.shared.place(bytes, true).filter(|start| start + bytes <= self.shared.bytes.max(held + SPARE_BYTES));
        let start = start.unwrap_or_else(|| {
            self.end_reads();
            self.shared.place(bytes, false).unwrap_or_default()
        });
        let range = start..start + bytes;
        let shared = &mut self.shared;
        shared.bytes = shared.bytes.max(range.end);
        shared.loops.iter_mut().filter(|around| !around.is_fenced).for_each(|around| around.exposed.push(range.clone()));
        range
    }

    /// Bytes that stay taken until they are given back.
    pub(super) fn hold(&mut self, bytes: u32) -> Range<u32> {
        let range = self.scratch(bytes);
        self.shared.held.push(range.clone());
        range
    }

    /// Gives back bytes that threads may still be reading.
    pub(super) fn give_back(&mut self, range: Range<u32>) {
        self.shared.held.retain(|held| *held != range);
        self.reads_shared(range);
    }

    /// Waits for all threads of the CTA: what they wrote is seen, what they read is free.
    pub(super) fn barrier(&mut self) {
        if self.schedule.num_warps == 1 {
            asm!(self, "bar.warp.sync 0xffffffff");
        } else {
            asm!(self, "bar.sync 0");
        }
        self.shared.pending.retain(|pending| pending.by_cluster);
        self.shared.loops.iter_mut().for_each(|around| around.is_fenced = true);
        if self.schedule.num_ctas == 1 {
            self.order.all_wait();
        }
    }

    /// Waits for all threads of the program, which may be those of several CTAs.
    pub(super) fn program_barrier(&mut self) {
        if self.schedule.num_ctas == 1 {
            return self.barrier();
        }
        self.await_cluster();
        asm!(self, "barrier.cluster.arrive.release.aligned");
        asm!(self, "barrier.cluster.wait.acquire.aligned");
        self.shared.pending.clear();
        self.shared.loops.iter_mut().for_each(|around| around.is_fenced = true);
        self.order.all_wait();
    }

    /// Waits until nobody reads, if anybody may.
    fn end_reads(&mut self) {
        if self.shared.pending.iter().any(|pending| pending.by_cluster) {
            self.program_barrier();
        } else if !self.shared.pending.is_empty() {
            self.barrier();
        }
    }

    /// In front of a return: a CTA that others read from stays until they have.
    pub(super) fn end_cluster_reads(&mut self) {
        self.await_cluster();
        if self.shared.pending.iter().any(|pending| pending.by_cluster) {
            self.program_barrier();
        }
    }

    /// Waits for the threads of the own warp, where each warp reads only what it wrote.
    pub(super) fn warp_barrier(&mut self) {
        if self.schedule.num_warps == 1 {
            self.barrier();
        } else {
            asm!(self, "bar.warp.sync 0xffffffff");
        }
    }

    /// From now on threads read there.
    pub(super) fn reads_shared(&mut self, range: Range<u32>) {
        self.shared.pending.push(Pending { range, by_cluster: false });
    }

    /// From now on threads of all CTAs of the cluster read there.
    pub(super) fn cluster_reads_shared(&mut self, range: Range<u32>) {
        self.shared.pending.push(Pending { range, by_cluster: true });
    }

    /// The address of a byte of shared memory.
    pub(super) fn shared_address(&mut self, offset: Option<Reg>) -> Reg {
        let base = self.reg(Class::B32);
        asm!(self, "mov.b32 {base}, {NAME}");
        let Some(offset) = offset else { return base };
        let sum = self.reg(Class::B32);
        asm!(self, "add.s32 {sum}, {base}, {offset}");
        sum
    }

    /// In front of code that may not run.
    pub(super) fn shared_fork(&self) -> Fork {
        let shared = &self.shared;
        Fork { pending: shared.pending.clone(), fenced: shared.loops.iter().map(|around| around.is_fenced).collect() }
    }

    /// Goes back to the fork, for the other arm; gives the state at the end of the first.
    pub(super) fn shared_other_arm(&mut self, fork: &Fork) -> Fork {
        let end = self.shared_fork();
        self.shared.pending.clone_from(&fork.pending);
        for (around, is_fenced) in self.shared.loops.iter_mut().zip(&fork.fenced) {
            around.is_fenced = *is_fenced;
        }
        end
    }

    /// Where two ways meet: what either may still read, and only the barriers that both have passed.
    pub(super) fn shared_join(&mut self, other: Fork) {
        for pending in other.pending {
            if !self.shared.pending.contains(&pending) {
                self.shared.pending.push(pending);
            }
        }
        for (around, is_fenced) in self.shared.loops.iter_mut().zip(other.fenced) {
            around.is_fenced &= is_fenced;
        }
    }

    /// Begins the body of a loop.
    pub(super) fn shared_loop(&mut self) {
        self.shared.loops.push(Loop::default());
    }

    /// Ends the body of a loop.
    pub(super) fn shared_loop_end(&mut self) {
        let Some(Loop { exposed, .. }) = self.shared.loops.pop() else { return };
        // Which barriers freed what CTAs of a cluster read is not followed around a loop.
        self.end_cluster_reads();
        if exposed.iter().any(|written| self.shared.pending.iter().any(|read| overlap(written, &read.range))) {
            self.barrier();
        }
    }
}
