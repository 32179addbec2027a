//! The state of shared memory at a point of the program: which bytes are held, and which some thread may still be reading.
//!
//! Scratch allocations live for one op: the op writes, waits at a barrier, and reads. The bytes of an op are free once every thread has
//! read them. The next barrier of any op guarantees this. Until then the next op gets other bytes if there are any; if not, all threads first wait.
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
//! [`Placement::at_once`] computes how much of an exchange fits beside the async buffers. If not all of it fits, the op goes through shared
//! memory in several parts, one after another. If even one part does not fit, the kernel is rejected: see
//! [`crate::backend::ptx::exchange::budget`].

use std::ops::Range;

use crate::ir::{Inst, Part, Wait};
use crate::target::Target;

use super::Placement;
use super::barrier_state::BarrierState;
use crate::backend::ptx::exchange::shared::WIDEST;

/// The maximum number of additional bytes that are allocated to avoid a barrier.
const SPARE_BYTES: u32 = 4096;

/// The state of shared memory at the current point of the program.
#[derive(Default)]
pub(super) struct Shared {
    /// The maximum number of allocated bytes.
    bytes: u32,
    /// The ranges that some thread may still be reading.
    pub(super) uses: BarrierState<Use>,
    /// The ranges of async buffers. No other op uses them while they live.
    held: Vec<Range<u32>>,
}

/// A range in use by threads of this CTA or of the whole cluster.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Use {
    range: Range<u32>,
    by_cluster: bool,
}

fn overlap(a: &Range<u32>, b: &Range<u32>) -> bool {
    a.start < b.end && b.start < a.end
}

impl Shared {
    /// The first free offset with `bytes` bytes that no allocation holds and, with `quiet`, no thread may be reading.
    fn free_offset(&self, bytes: u32, quiet: bool) -> Option<u32> {
        let taken: Vec<&Range<u32>> = self.held.iter().chain(self.uses.done().iter().filter(|_| quiet).map(|reads| &reads.range)).collect();
        let mut starts: Vec<u32> = [0].into_iter().chain(taken.iter().map(|range| range.end)).collect();
        starts.sort_unstable();
        starts.into_iter().find(|start| taken.iter().all(|range| !overlap(range, &(*start..start + bytes))))
    }

    /// The number of bytes out of `limit` that one op can use once no thread reads: the largest gap between the held ranges.
    fn available(&self, limit: u32) -> u32 {
        let mut held: Vec<&Range<u32>> = self.held.iter().collect();
        held.sort_unstable_by_key(|range| range.start);
        let (mut available, mut end) = (0, 0);
        for range in held {
            available = available.max(range.start.saturating_sub(end));
            end = end.max(range.end);
        }
        available.max(limit.saturating_sub(end))
    }

    /// Whether a CTA of the cluster may be reading the memory of another.
    fn cluster_reads(&self) -> bool {
        self.uses.done().iter().any(|reads| reads.by_cluster)
    }
}

impl Placement<'_> {
    /// The number of the `count` equal parts of an exchange that fit into shared memory at once, beside the held ranges: all of them, a
    /// half, a quarter and so on, and at least one, even if one does not fit. `bytes` gives the size of a number of parts.
    pub(super) fn at_once(&mut self, count: u32, bytes: &dyn Fn(u32) -> u32) -> u32 {
        let at_once = self.target.ask(|target| {
            let available = self.shared.available(target.shared_bytes());
            let mut parts = count.max(1);
            while parts > 1 && bytes(parts).next_multiple_of(WIDEST) > available {
                parts = parts.div_ceil(2);
            }
            parts
        });
        self.scratch.at_once.push(at_once);
        at_once
    }

    /// Bytes that the current op can write without a hazard.
    pub(super) fn scratch(&mut self, bytes: u32) -> Range<u32> {
        let size = bytes.next_multiple_of(WIDEST);
        let held = self.shared.held.iter().map(|held| held.end).max().unwrap_or_default();
        // Prefer more memory to a barrier, if more memory is available.
        let is_spare = |end: u32| end <= held + SPARE_BYTES && self.target.ask(|target| end <= Target::shared_bytes(target));
        let start = self.shared.free_offset(size, true).filter(|start| start + size <= self.shared.bytes || is_spare(start + size));
        let (start, wait) = match start {
            Some(start) => (start, None),
            None => {
                let wait = self.end_reads();
                (self.shared.free_offset(size, false).unwrap_or_default(), wait)
            }
        };
        let range = start..start + size;
        self.shared.bytes = self.shared.bytes.max(range.end);
        self.shared.uses.expose(&Use { range: range.clone(), by_cluster: false });
        self.scratch.parts.push(Part { range: range.clone(), wait });
        range
    }

    /// Bytes that stay allocated until [`Placement::give_back`].
    pub(super) fn hold(&mut self, bytes: u32) -> Range<u32> {
        let range = self.scratch(bytes);
        self.shared.held.push(range.clone());
        range
    }

    /// Frees bytes that threads may still be reading.
    pub(super) fn give_back(&mut self, range: Range<u32>) {
        self.shared.held.retain(|held| *held != range);
        self.reads_shared(range);
    }

    /// At a barrier of all threads of the CTA: their writes are visible, and the memory that they read is free.
    pub(super) fn at_barrier(&mut self) {
        self.shared.uses.fence(|reads| reads.by_cluster);
        if self.schedule.num_ctas == 1 {
            self.hazards.touched.fence(|_| false);
        }
    }

    /// At a barrier of all threads of the program, which may belong to several CTAs.
    pub(super) fn at_program_barrier(&mut self) {
        self.shared.uses.fence(|_| false);
        self.hazards.touched.fence(|_| false);
    }

    /// At a barrier of each warp, for exchanges in which each warp reads only its own writes.
    pub(super) fn at_warp_barrier(&mut self) {
        if self.schedule.num_warps == 1 {
            self.at_barrier();
        }
    }

    /// The threads that wait, if any thread may still be reading.
    fn end_reads(&mut self) -> Option<Wait> {
        if self.shared.cluster_reads() {
            self.at_program_barrier();
            Some(Wait::Program)
        } else if !self.shared.uses.done().is_empty() {
            self.at_barrier();
            Some(Wait::Cta)
        } else {
            None
        }
    }

    /// Before a return, or at the end of an iteration: a CTA from which other CTAs read stays until they have read.
    pub(super) fn end_cluster_reads(&mut self, at: Inst) {
        if self.shared.cluster_reads() {
            self.place_program_barrier(at);
        }
    }

    /// Records that threads read this range from here on.
    pub(super) fn reads_shared(&mut self, range: Range<u32>) {
        self.shared.uses.note(Use { range, by_cluster: false });
    }

    /// Records that threads of all CTAs of the cluster read this range from here on.
    pub(super) fn cluster_reads_shared(&mut self, range: Range<u32>) {
        self.shared.uses.note(Use { range, by_cluster: true });
    }

    /// Between two iterations of a loop, the second of which uses `exposed` before any barrier. `at` is the end of the first one.
    pub(super) fn end_shared_iteration(&mut self, exposed: &[Use], at: Inst) {
        // The state does not record, around a loop, which barriers freed memory that CTAs of a cluster read.
        self.end_cluster_reads(at);
        if exposed.iter().any(|written| self.shared.uses.done().iter().any(|read| overlap(&written.range, &read.range))) {
            self.place_barrier(at);
        }
    }
}
