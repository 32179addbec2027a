//! Shared memory: allocation of scratch bytes, and the barriers between their uses.
//!
//! Scratch allocations live for one op: the op writes, waits at a barrier, and reads. The bytes of an op are free once every thread has
//! read them. The next barrier of any op guarantees this. Until then the next op gets other bytes if there are any; if not, it first emits
//! a barrier.
//!
//! ```text
//! write A, barrier, read A        in use: A
//! write B, barrier, read B        B and A are disjoint, so no barrier precedes the write; after this barrier A is free: in use: B
//! write A, barrier, read A        and so on, with one barrier per op
//! ```
//!
//! Async buffers are the exception. A buffer is held for the duration of its loop, but each thread has its own slots in it, so no barrier
//! is needed.
//!
//! If several CTAs share a program, memory that other CTAs read is free only after a barrier of the cluster. Such a barrier also follows
//! the last reads of a kernel, because the memory of a CTA is gone when the CTA ends.
//!
//! A loop returns to its first op. If an op writes bytes before any barrier of the loop, and the end of the loop may still read these
//! bytes, the loop ends with a barrier.
//!
//! [`Emitter::at_once`] computes how much of an exchange fits beside the async buffers. If not all of it fits, the op goes through shared
//! memory in several parts, one after another. If even one part does not fit, the kernel is rejected: see
//! [`crate::backend::ptx::exchange::budget`].

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::ir::Inst;
use crate::target::Target;

use crate::backend::ptx::Emitter;
use crate::backend::ptx::memory::barrier_state::BarrierState;
use crate::backend::ptx::text::registers::{Class, Reg, asm};

/// The name of the buffer in the PTX.
pub(crate) const NAME: &str = "shared";
/// The maximum number of additional bytes that are allocated to avoid a barrier.
const SPARE_BYTES: u32 = 4096;
/// The widest access of a thread, in bytes. Every range has this alignment.
pub(crate) const WIDEST: u32 = 16;

/// The state of shared memory at the current point of the program.
#[derive(Default)]
pub(crate) struct Shared {
    /// The maximum number of allocated bytes.
    pub(crate) bytes: u32,
    /// The ranges that some thread may still be reading.
    pub(crate) uses: BarrierState<Use>,
    /// The allocations of async buffers, each with its op. No other op uses them while they live.
    held: Vec<Allocation>,
    /// The allocations that were live when the maximum was reached.
    pub(crate) peak: Vec<Allocation>,
    /// The end of the last bytes that each op has used; of no op: those that the exchanges of a cluster use.
    pub(crate) ends: FxHashMap<Option<Inst>, u32>,
    /// The op that is being emitted; `None` before the first.
    pub(crate) op: Option<Inst>,
}

/// A range of shared memory and the op that uses it.
#[derive(Clone)]
pub(crate) struct Allocation {
    pub(crate) range: Range<u32>,
    pub(crate) op: Option<Inst>,
}

/// A range in use by threads of this CTA or of the whole cluster.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Use {
    range: Range<u32>,
    by_cluster: bool,
}

fn overlap(a: &Range<u32>, b: &Range<u32>) -> bool {
    a.start < b.end && b.start < a.end
}

impl Shared {
    /// The first free offset with `bytes` bytes that no allocation holds and, with `quiet`, no thread may be reading.
    fn free_offset(&self, bytes: u32, quiet: bool) -> Option<u32> {
        let held = self.held.iter().map(|held| &held.range);
        let taken: Vec<&Range<u32>> = held.chain(self.uses.done().iter().filter(|_| quiet).map(|reads| &reads.range)).collect();
        let mut starts: Vec<u32> = [0].into_iter().chain(taken.iter().map(|range| range.end)).collect();
        starts.sort_unstable();
        starts.into_iter().find(|start| taken.iter().all(|range| !overlap(range, &(*start..start + bytes))))
    }

    /// The number of bytes out of `limit` that one op can use once no thread reads: the largest gap between the held ranges.
    fn available(&self, limit: u32) -> u32 {
        let mut held: Vec<&Range<u32>> = self.held.iter().map(|held| &held.range).collect();
        held.sort_unstable_by_key(|range| range.start);
        let (mut available, mut end) = (0, 0);
        for range in held {
            available = available.max(range.start.saturating_sub(end));
            end = end.max(range.end);
        }
        available.max(limit.saturating_sub(end))
    }
}

impl Emitter<'_> {
    /// The number of the `count` equal parts of an exchange that fit into shared memory at once, beside the held ranges: all of them, a
    /// half, a quarter and so on, and at least one, even if one does not fit. `bytes` gives the size of a number of parts.
    pub(crate) fn at_once(&self, count: u32, bytes: impl Fn(u32) -> u32) -> u32 {
        self.target.ask(|target| {
            let available = self.shared.available(target.shared_bytes());
            let mut parts = count.max(1);
            while parts > 1 && bytes(parts).next_multiple_of(WIDEST) > available {
                parts = parts.div_ceil(2);
            }
            parts
        })
    }

    /// Bytes that this op can write without a hazard.
    pub(crate) fn scratch(&mut self, bytes: u32) -> Range<u32> {
        let bytes = bytes.next_multiple_of(WIDEST);
        let held = self.shared.held.iter().map(|held| held.range.end).max().unwrap_or_default();
        // Prefer more memory to a barrier, if more memory is available.
        let is_spare = |end: u32| end <= held + SPARE_BYTES && self.target.ask(|target| end <= Target::shared_bytes(target));
        let start = self.shared.free_offset(bytes, true).filter(|start| start + bytes <= self.shared.bytes || is_spare(start + bytes));
        let start = start.unwrap_or_else(|| {
            self.end_reads();
            self.shared.free_offset(bytes, false).unwrap_or_default()
        });
        let range = start..start + bytes;
        let shared = &mut self.shared;
        let end = shared.ends.entry(shared.op).or_default();
        *end = range.end.max(*end);
        if range.end > shared.bytes {
            shared.bytes = range.end;
            shared.peak.clone_from(&shared.held);
            shared.peak.push(Allocation { range: range.clone(), op: shared.op });
        }
        shared.uses.expose(&Use { range: range.clone(), by_cluster: false });
        range
    }

    /// Bytes that stay allocated until [`Emitter::give_back`].
    pub(crate) fn hold(&mut self, bytes: u32) -> Range<u32> {
        let range = self.scratch(bytes);
        self.shared.held.push(Allocation { range: range.clone(), op: self.shared.op });
        range
    }

    /// Frees bytes that threads may still be reading.
    pub(crate) fn give_back(&mut self, range: Range<u32>) {
        self.shared.held.retain(|held| held.range != range);
        self.reads_shared(range);
    }

    /// Emits a barrier for all threads of the CTA: their writes become visible, and the memory that they read is free.
    pub(crate) fn barrier(&mut self) {
        if self.schedule.num_warps == 1 {
            asm!(self, "bar.warp.sync 0xffffffff");
        } else {
            asm!(self, "bar.sync 0");
        }
        self.shared.uses.fence(|reads| reads.by_cluster);
        if self.schedule.num_ctas == 1 {
            self.hazards.touched.fence(|_| false);
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
        self.shared.uses.fence(|_| false);
        self.hazards.touched.fence(|_| false);
    }

    /// Emits a barrier if any thread may still be reading.
    fn end_reads(&mut self) {
        if self.cluster_reads() {
            self.program_barrier();
        } else if !self.shared.uses.done().is_empty() {
            self.barrier();
        }
    }

    /// Before a return: a CTA from which other CTAs read stays until they have read.
    pub(crate) fn end_cluster_reads(&mut self) {
        self.await_cluster();
        if self.cluster_reads() {
            self.program_barrier();
        }
    }

    /// Whether a CTA of the cluster may be reading the memory of another.
    fn cluster_reads(&self) -> bool {
        self.shared.uses.done().iter().any(|reads| reads.by_cluster)
    }

    /// Emits a barrier of the warp, for exchanges in which each warp reads only its own writes.
    pub(crate) fn warp_barrier(&mut self) {
        if self.schedule.num_warps == 1 {
            self.barrier();
        } else {
            asm!(self, "bar.warp.sync 0xffffffff");
        }
    }

    /// Records that threads read this range from here on.
    pub(crate) fn reads_shared(&mut self, range: Range<u32>) {
        self.shared.uses.note(Use { range, by_cluster: false });
    }

    /// Records that threads of all CTAs of the cluster read this range from here on.
    pub(crate) fn cluster_reads_shared(&mut self, range: Range<u32>) {
        self.shared.uses.note(Use { range, by_cluster: true });
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

    /// Between two iterations of a loop, the second of which uses `exposed` before any barrier.
    pub(crate) fn end_shared_iteration(&mut self, exposed: &[Use]) {
        // The state does not record, around a loop, which barriers freed memory that CTAs of a cluster read.
        self.end_cluster_reads();
        if exposed.iter().any(|written| self.shared.uses.done().iter().any(|read| overlap(&written.range, &read.range))) {
            self.barrier();
        }
    }
}
