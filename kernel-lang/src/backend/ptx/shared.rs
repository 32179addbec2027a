//! Shared memory: who has which bytes, and the barriers between.
//!
//! Tiles do not live in shared memory: an op writes there, waits, and reads. So the bytes of an op are free again once every thread has read, and
//! that is known after the next barrier, whosever it is. Until then another op takes other bytes, if there are some; if not, it waits first.
//!
//! ```text
//! write A, barrier, read A        in use: A
//! write B, barrier, read B        B is other memory than A, so nobody waited; after this barrier A is free: in use: B
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
//!
//! An op asks [`Emitter::at_once`] how much of its exchange fits beside the rings. If that is not all of it, the op goes through shared memory in
//! several parts, one after the other. What does not fit even so is an error of the kernel: see [`super::budget`].

use std::ops::Range;

use crate::ir::Inst;
use crate::target::Target;

use super::Emitter;
use super::registers::{Class, Reg, asm};
use super::since::Since;

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
    pub(super) uses: Since<Use>,
    /// What rings hold, each with its op: no other op's for as long as they live.
    held: Vec<Allocation>,
    /// The allocations that lived together when the most bytes were taken.
    pub(super) peak: Vec<Allocation>,
    /// The op that is being emitted; none before the first.
    pub(super) op: Option<Inst>,
}

/// Bytes of shared memory, and the op that takes them.
#[derive(Clone)]
pub(super) struct Allocation {
    pub(super) range: Range<u32>,
    pub(super) op: Option<Inst>,
}

/// Bytes that are in use, by threads of this CTA or of the whole cluster.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Use {
    range: Range<u32>,
    by_cluster: bool,
}

fn overlap(a: &Range<u32>, b: &Range<u32>) -> bool {
    a.start < b.end && b.start < a.end
}

impl Shared {
    /// The first place of so many bytes that nobody holds, and with `quiet` nobody may be reading.
    fn place(&self, bytes: u32, quiet: bool) -> Option<u32> {
        let held = self.held.iter().map(|held| &held.range);
        let taken: Vec<&Range<u32>> = held.chain(self.uses.done().iter().filter(|_| quiet).map(|reads| &reads.range)).collect();
        let mut starts: Vec<u32> = [0].into_iter().chain(taken.iter().map(|range| range.end)).collect();
        starts.sort_unstable();
        starts.into_iter().find(|start| taken.iter().all(|range| !overlap(range, &(*start..start + bytes))))
    }

    /// The most bytes that one op can have of `limit` bytes, once no thread reads any more: the largest gap between what is held.
    fn room(&self, limit: u32) -> u32 {
        let mut held: Vec<&Range<u32>> = self.held.iter().map(|held| &held.range).collect();
        held.sort_unstable_by_key(|range| range.start);
        let (mut room, mut end) = (0, 0);
        for range in held {
            room = room.max(range.start.saturating_sub(end));
            end = end.max(range.end);
        }
        room.max(limit.saturating_sub(end))
    }
}

impl Emitter<'_> {
    /// How many of `count` equal parts of an exchange fit into shared memory at once, beside what is held: all of them, or a half, a quarter and so
    /// on; one if not even that fits. `bytes` says what so many parts take.
    pub(super) fn at_once(&self, count: u32, bytes: impl Fn(u32) -> u32) -> u32 {
        self.target.ask(|target| {
            let room = self.shared.room(target.shared_bytes());
            let mut parts = count.max(1);
            while parts > 1 && bytes(parts).next_multiple_of(WIDEST) > room {
                parts = parts.div_ceil(2);
            }
            parts
        })
    }

    /// Bytes that this op may write at once.
    pub(super) fn scratch(&mut self, bytes: u32) -> Range<u32> {
        let bytes = bytes.next_multiple_of(WIDEST);
        let held = self.shared.held.iter().map(|held| held.range.end).max().unwrap_or_default();
        // Rather than waiting, more is taken, if there is more.
        let is_spare = |end: u32| end <= held + SPARE_BYTES && self.target.ask(|target| end <= Target::shared_bytes(target));
        let start = self.shared.place(bytes, true).filter(|start| start + bytes <= self.shared.bytes || is_spare(start + bytes));
        let start = start.unwrap_or_else(|| {
            self.end_reads();
            self.shared.place(bytes, false).unwrap_or_default()
        });
        let range = start..start + bytes;
        let shared = &mut self.shared;
        if range.end > shared.bytes {
            shared.bytes = range.end;
            shared.peak.clone_from(&shared.held);
            shared.peak.push(Allocation { range: range.clone(), op: shared.op });
        }
        shared.uses.expose(&Use { range: range.clone(), by_cluster: false });
        range
    }

    /// Bytes that stay taken until they are given back.
    pub(super) fn hold(&mut self, bytes: u32) -> Range<u32> {
        let range = self.scratch(bytes);
        self.shared.held.push(Allocation { range: range.clone(), op: self.shared.op });
        range
    }

    /// Gives back bytes that threads may still be reading.
    pub(super) fn give_back(&mut self, range: Range<u32>) {
        self.shared.held.retain(|held| held.range != range);
        self.reads_shared(range);
    }

    /// Waits for all threads of the CTA: what they wrote is seen, what they read is free.
    pub(super) fn barrier(&mut self) {
        if self.schedule.num_warps == 1 {
            asm!(self, "bar.warp.sync 0xffffffff");
        } else {
            asm!(self, "bar.sync 0");
        }
        self.shared.uses.fence(|reads| reads.by_cluster);
        if self.schedule.num_ctas == 1 {
            self.order.touched.fence(|_| false);
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
        self.shared.uses.fence(|_| false);
        self.order.touched.fence(|_| false);
    }

    /// Waits until nobody reads, if anybody may.
    fn end_reads(&mut self) {
        if self.cluster_reads() {
            self.program_barrier();
        } else if !self.shared.uses.done().is_empty() {
            self.barrier();
        }
    }

    /// In front of a return: a CTA that others read from stays until they have.
    pub(super) fn end_cluster_reads(&mut self) {
        self.await_cluster();
        if self.cluster_reads() {
            self.program_barrier();
        }
    }

    /// May a CTA of the cluster be reading another's memory?
    fn cluster_reads(&self) -> bool {
        self.shared.uses.done().iter().any(|reads| reads.by_cluster)
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
        self.shared.uses.note(Use { range, by_cluster: false });
    }

    /// From now on threads of all CTAs of the cluster read there.
    pub(super) fn cluster_reads_shared(&mut self, range: Range<u32>) {
        self.shared.uses.note(Use { range, by_cluster: true });
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

    /// Between two turns of a loop, the second of which uses `exposed` before any barrier.
    pub(super) fn end_shared_turn(&mut self, exposed: &[Use]) {
        // Which barriers freed what CTAs of a cluster read is not followed around a loop.
        self.end_cluster_reads();
        if exposed.iter().any(|written| self.shared.uses.done().iter().any(|read| overlap(&written.range, &read.range))) {
            self.barrier();
        }
    }
}
