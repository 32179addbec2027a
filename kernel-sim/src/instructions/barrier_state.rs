//! The state of the barriers of a CTA and of a cluster: arrivals and the completion of phases (PTX ISA, 9.7.13.1 and 9.7.13.3).
//!
//! This module executes no instructions; `barrier.rs` does, and reports waiting lanes to the scheduler.

use std::collections::HashMap;

use crate::fault::FaultKind;
use crate::lanes::{Lanes, WARP};
use crate::machine::Cluster;
use crate::memory::Stamp;

/// The 16 barriers of a CTA.
#[derive(Default)]
pub(crate) struct Barriers {
    barriers: [Barrier; 16],
}

/// The state of a barrier.
#[derive(Default)]
struct Barrier {
    /// The number of completed phases.
    phase: u64,
    /// The usage in this phase; `None` before the first arrival.
    usage: Option<Usage>,
    /// The expected number of threads at the last check.
    expected: u32,
    /// The threads that have arrived in this phase, by warp.
    parts: Vec<Part>,
    /// The release of the threads that arrived without waiting.
    stamp: Option<Stamp>,
    /// The number of true predicates.
    ayes: u32,
    /// The completed phases that waiting threads have not left yet.
    results: HashMap<u64, Finished>,
}

/// The properties on which all threads of a phase must agree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Usage {
    /// The number of threads; `None` for all threads of the CTA.
    count: Option<u32>,
    reduction: Option<Reduction>,
}

/// The threads of a warp that have arrived.
struct Part {
    warp: usize,
    arrived: Lanes,
    /// The arrived threads that wait.
    waiting: Lanes,
    /// The threads of the warp that have not exited.
    live: Lanes,
}

struct Finished {
    ayes: u32,
    threads: u32,
    waiting: u32,
}

/// The reduction of the predicates by `bar.red`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reduction {
    /// The number of true predicates.
    Count,
    /// Whether all are true.
    And,
    /// Whether at least one is true.
    Or,
}

/// Threads that arrive at a barrier together.
pub(crate) struct Arrival {
    pub(crate) barrier: usize,
    pub(crate) warp: usize,
    pub(crate) lanes: Lanes,
    /// The lanes of the warp that have not exited.
    pub(crate) live: Lanes,
    /// The number of participating threads; `None` for all threads of the CTA.
    pub(crate) count: Option<u32>,
    pub(crate) waits: bool,
    /// The reduction, and the lanes whose predicate is true.
    pub(crate) reduction: Option<(Reduction, Lanes)>,
    /// The release of threads that arrive without waiting.
    pub(crate) stamp: Option<Stamp>,
}

/// A phase that was just completed.
pub(crate) struct Completed {
    /// The threads that waited.
    pub(crate) waiting: Vec<(usize, Lanes)>,
    /// The release of the threads that arrived without waiting.
    pub(crate) stamp: Option<Stamp>,
}

/// The number of threads of a CTA, and the number of those that have not exited.
#[derive(Clone, Copy)]
pub(crate) struct Threads {
    pub(crate) all: u32,
    pub(crate) live: u32,
}

impl Barriers {
    /// Records an arrival, and returns the phase that the threads belong to.
    pub(crate) fn arrive(&mut self, arrival: Arrival, threads: Threads) -> Result<u64, FaultKind> {
        let Arrival { barrier: number, warp, lanes, live, count, waits, reduction, stamp } = arrival;
        let fault = |reason: String| FaultKind::Barrier { barrier: number as u32, reason };
        let all = threads.all.next_multiple_of(WARP as u32);
        if let Some(count) = count {
            if count % WARP as u32 != 0 || (count == 0 && !waits) {
                return Err(fault(format!("it is for {count} threads, which is no number of whole warps")));
            }
            if count > all {
                return Err(fault(format!("it is for {count} threads, and the program has {}", threads.all)));
            }
        }
        let count = count.filter(|&count| count != 0);
        let barrier = &mut self.barriers[number];
        let usage = Usage { count, reduction: reduction.map(|(reduction, _)| reduction) };
        let first = *barrier.usage.get_or_insert(usage);
        if first.count.unwrap_or(all) != count.unwrap_or(all) {
            let (first, other) = (first.count.unwrap_or(all), count.unwrap_or(all));
            return Err(fault(format!("it is for {first} threads, and these threads use it for {other}")));
        }
        if first.reduction != usage.reduction {
            return Err(fault("it is used with and without a reduction, or with different ones, at the same time".to_owned()));
        }
        let index = match barrier.parts.iter().position(|part| part.warp == warp) {
            Some(index) => index,
            None => {
                barrier.parts.push(Part { warp, arrived: Lanes::NONE, waiting: Lanes::NONE, live });
                barrier.parts.len() - 1
            }
        };
        let part = &mut barrier.parts[index];
        if let Some(lane) = part.arrived.and(lanes).lowest() {
            return Err(fault(format!("lane {lane} of warp {warp} arrives again before the barrier is complete")));
        }
        part.arrived = part.arrived.or(lanes);
        part.live = live;
        if waits {
            part.waiting = part.waiting.or(lanes);
        }
        barrier.ayes += reduction.map_or(0, |(_, ayes)| ayes.and(lanes).count());
        match (&mut barrier.stamp, stamp) {
            (Some(own), Some(other)) => own.join(&other),
            (own @ None, other) => *own = other,
            (Some(_), None) => {}
        }
        barrier.expected = first.count.unwrap_or(threads.live);
        let arrived = barrier.arrived();
        if arrived > barrier.expected {
            return Err(fault(format!("{arrived} threads arrived, and it is for {}", barrier.expected)));
        }
        Ok(barrier.phase)
    }

    /// Completes the phase if all threads have arrived.
    pub(crate) fn settle(&mut self, number: usize, threads: Threads) -> Option<Completed> {
        let barrier = &mut self.barriers[number];
        barrier.expected = barrier.usage?.count.unwrap_or(threads.live);
        if barrier.arrived() < barrier.expected {
            return None;
        }
        let waiting: Vec<_> = barrier.parts.iter().map(|part| (part.warp, part.waiting)).filter(|(_, lanes)| !lanes.is_empty()).collect();
        let count = waiting.iter().map(|(_, lanes)| lanes.count()).sum();
        let all = barrier.parts.iter().map(|part| part.arrived.count()).sum();
        if count > 0 {
            barrier.results.insert(barrier.phase, Finished { ayes: barrier.ayes, threads: all, waiting: count });
        }
        barrier.phase += 1;
        barrier.usage = None;
        barrier.ayes = 0;
        barrier.parts.clear();
        Some(Completed { waiting, stamp: barrier.stamp.take() })
    }

    /// The result of a phase, if it is complete, for this number of waiting threads, which then continue.
    pub(crate) fn go_on(&mut self, number: usize, phase: u64, reduction: Option<Reduction>, threads: u32) -> Option<u32> {
        let results = &mut self.barriers[number].results;
        let finished = results.get_mut(&phase)?;
        let result = match reduction {
            None => 0,
            Some(Reduction::Count) => finished.ayes,
            Some(Reduction::And) => u32::from(finished.ayes == finished.threads),
            Some(Reduction::Or) => u32::from(finished.ayes > 0),
        };
        finished.waiting = finished.waiting.saturating_sub(threads);
        if finished.waiting == 0 {
            results.remove(&phase);
        }
        Some(result)
    }

    /// A description of the incomplete barriers, such as `barrier 0 has 96 of 128 threads`; `None` if there are none.
    pub(crate) fn waiting(&self) -> Option<String> {
        let open = self.barriers.iter().enumerate().filter(|(_, barrier)| barrier.usage.is_some());
        let texts = open.map(|(number, barrier)| format!("barrier {number} has {} of {} threads", barrier.arrived(), barrier.expected));
        let texts: Vec<_> = texts.collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    }

    fn exited(&mut self, warp: usize, lanes: Lanes) {
        for barrier in &mut self.barriers {
            let is_of_all = barrier.usage.is_some_and(|usage| usage.count.is_none());
            for part in barrier.parts.iter_mut().filter(|part| part.warp == warp) {
                part.live = part.live.without(lanes);
                if is_of_all {
                    part.arrived = part.arrived.without(lanes);
                }
            }
        }
    }
}

impl Barrier {
    /// The number of arrived threads. An explicit thread count is a multiple of the warp size. With such a count, a warp counts as a full
    /// warp when all its live lanes have arrived.
    fn arrived(&self) -> u32 {
        let is_counted = self.usage.is_some_and(|usage| usage.count.is_some());
        let count = |part: &Part| if is_counted && part.arrived.contains(part.live) { WARP as u32 } else { part.arrived.count() };
        self.parts.iter().map(count).sum()
    }
}

/// The barrier of a cluster.
#[derive(Default)]
pub(crate) struct ClusterBarrier {
    /// Indexed by rank and warp.
    parts: HashMap<(usize, usize), ClusterPart>,
    /// The joined releases of this phase's arrivals.
    arriving: Stamp,
    /// The joined releases of the last phase's arrivals. One phase is enough: a phase needs the arrival of all threads, and a thread
    /// arrives again only after its wait.
    complete: Stamp,
}

#[derive(Default)]
struct ClusterPart {
    /// The lanes that have arrived in this phase.
    arrived: Lanes,
    /// The lanes that have arrived in this phase or the last one, and have not waited yet.
    owing: Lanes,
}

impl ClusterBarrier {
    /// Records an arrival, with `live` threads of the cluster left. Returns true if the phase is now complete.
    pub(crate) fn arrive(&mut self, rank: usize, warp: usize, lanes: Lanes, stamp: Option<&Stamp>, live: u32) -> Result<bool, FaultKind> {
        let part = self.parts.entry((rank, warp)).or_default();
        if let Some(lane) = part.owing.and(lanes).lowest() {
            let reason =
                format!("lane {lane} of warp {warp} arrives again at the barrier of the cluster, without `barrier.cluster.wait` before it");
            return Err(FaultKind::Illegal { reason });
        }
        part.arrived = part.arrived.or(lanes);
        part.owing = part.owing.or(lanes);
        if let Some(stamp) = stamp {
            self.arriving.join(stamp);
        }
        Ok(self.settle(live))
    }

    /// Completes the phase if all threads have arrived; returns true if so.
    pub(crate) fn settle(&mut self, live: u32) -> bool {
        let arrived: u32 = self.parts.values().map(|part| part.arrived.count()).sum();
        if arrived == 0 || arrived < live {
            return false;
        }
        self.parts.values_mut().for_each(|part| part.arrived = Lanes::NONE);
        self.complete = std::mem::take(&mut self.arriving);
        true
    }

    /// Lets threads wait: returns the release of the arrived threads if the phase is complete.
    pub(crate) fn wait(&mut self, rank: usize, warp: usize, lanes: Lanes) -> Result<Option<&Stamp>, FaultKind> {
        let part = self.parts.entry((rank, warp)).or_default();
        if let Some(lane) = lanes.without(part.owing).lowest() {
            let reason =
                format!("lane {lane} of warp {warp} waits at the barrier of the cluster, without `barrier.cluster.arrive` before it");
            return Err(FaultKind::Illegal { reason });
        }
        if !part.arrived.and(lanes).is_empty() {
            return Ok(None);
        }
        part.owing = part.owing.without(lanes);
        Ok(Some(&self.complete))
    }

    /// A description of the arrivals, such as `the barrier of the cluster has 96 of 128 threads`; `None` if there are none.
    pub(crate) fn waiting(&self, live: u32) -> Option<String> {
        let arrived: u32 = self.parts.values().map(|part| part.arrived.count()).sum();
        (arrived > 0).then(|| format!("the barrier of the cluster has {arrived} of {live} threads"))
    }
}

/// Records that threads exited: barriers of all threads no longer wait for them.
pub(crate) fn exited(cluster: &mut Cluster, rank: usize, warp: usize, lanes: Lanes) {
    cluster.ctas[rank].barriers.exited(warp, lanes);
    if let Some(part) = cluster.barrier.parts.get_mut(&(rank, warp)) {
        part.arrived = part.arrived.without(lanes);
        part.owing = part.owing.without(lanes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CTA: Threads = Threads { all: 96, live: 96 };

    fn arrival(warp: usize, lanes: Lanes, count: Option<u32>, waits: bool) -> Arrival {
        Arrival { barrier: 1, warp, lanes, live: Lanes::ALL, count, waits, reduction: None, stamp: None }
    }

    fn reason(result: Result<u64, FaultKind>) -> String {
        result.expect_err("it is misused").to_string()
    }

    #[test]
    fn a_barrier_completes_when_all_threads_have_arrived() {
        let mut barriers = Barriers::default();
        assert_eq!(barriers.arrive(arrival(0, Lanes::ALL, None, true), CTA), Ok(0));
        assert_eq!(barriers.arrive(arrival(2, Lanes::first(16), None, true), CTA), Ok(0));
        assert!(barriers.settle(1, CTA).is_none());
        assert_eq!(barriers.waiting().as_deref(), Some("barrier 1 has 48 of 96 threads"));
        assert_eq!(barriers.go_on(1, 0, None, 32), None);
        assert_eq!(barriers.arrive(arrival(2, Lanes(0xffff_0000), None, true), CTA), Ok(0));
        assert_eq!(barriers.arrive(arrival(1, Lanes::ALL, None, true), CTA), Ok(0));
        let completed = barriers.settle(1, CTA).expect("all are there");
        assert_eq!(completed.waiting, [(0, Lanes::ALL), (2, Lanes::ALL), (1, Lanes::ALL)]);
        assert_eq!(barriers.waiting(), None);
        assert_eq!(barriers.go_on(1, 0, None, 96), Some(0));
        assert_eq!(barriers.arrive(arrival(0, Lanes::ALL, None, true), CTA), Ok(1));
    }

    #[test]
    fn threads_that_exit_are_not_waited_for() {
        let mut barriers = Barriers::default();
        assert_eq!(barriers.arrive(arrival(0, Lanes::ALL, None, true), CTA), Ok(0));
        assert_eq!(barriers.arrive(arrival(1, Lanes::ALL, None, true), CTA), Ok(0));
        barriers.exited(2, Lanes::ALL);
        assert!(barriers.settle(1, CTA).is_none());
        assert!(barriers.settle(1, Threads { all: 96, live: 64 }).is_some());
    }

    #[test]
    fn a_count_is_of_whole_warps() {
        let mut barriers = Barriers::default();
        // The last warp of a program with 80 threads has 16 lanes.
        let threads = Threads { all: 80, live: 80 };
        assert_eq!(barriers.arrive(Arrival { live: Lanes::first(16), ..arrival(2, Lanes::first(16), Some(64), false) }, threads), Ok(0));
        assert_eq!(barriers.arrive(arrival(0, Lanes::ALL, Some(64), true), threads), Ok(0));
        let completed = barriers.settle(1, threads).expect("two warps are there");
        assert_eq!(completed.waiting, [(0, Lanes::ALL)]);
    }

    #[test]
    fn misuse_is_found() {
        let mut barriers = Barriers::default();
        let odd = reason(barriers.arrive(arrival(0, Lanes::ALL, Some(33), true), CTA));
        assert_eq!(odd, "barrier 1: it is for 33 threads, which is no number of whole warps");
        let many = reason(barriers.arrive(arrival(0, Lanes::ALL, Some(128), true), CTA));
        assert_eq!(many, "barrier 1: it is for 128 threads, and the program has 96");
        assert_eq!(barriers.arrive(arrival(0, Lanes::ALL, Some(64), false), CTA), Ok(0));
        let counts = reason(barriers.arrive(arrival(1, Lanes::ALL, None, true), CTA));
        assert_eq!(counts, "barrier 1: it is for 64 threads, and these threads use it for 96");
        let again = reason(barriers.arrive(arrival(0, Lanes::ALL, Some(64), true), CTA));
        assert_eq!(again, "barrier 1: lane 0 of warp 0 arrives again before the barrier is complete");
        let reduction = Some((Reduction::And, Lanes::ALL));
        let mixed = reason(barriers.arrive(Arrival { reduction, ..arrival(1, Lanes::ALL, Some(64), true) }, CTA));
        assert_eq!(mixed, "barrier 1: it is used with and without a reduction, or with different ones, at the same time");
    }

    #[test]
    fn reductions_count_all_threads_of_their_phase() {
        let threads = Threads { all: 64, live: 64 };
        for (reduction, expected) in [(Reduction::Count, 33), (Reduction::And, 0), (Reduction::Or, 1)] {
            let mut barriers = Barriers::default();
            for (warp, ayes) in [(0, Lanes::ALL), (1, Lanes::of(7))] {
                let reduction = Some((reduction, ayes));
                assert_eq!(barriers.arrive(Arrival { reduction, ..arrival(warp, Lanes::ALL, None, true) }, threads), Ok(0));
            }
            assert!(barriers.settle(1, threads).is_some());
            assert_eq!(barriers.go_on(1, 0, Some(reduction), 32), Some(expected));
            // The other warp can still read its result after the barrier is reused.
            let reduction_of_next = Some((reduction, Lanes::NONE));
            assert_eq!(barriers.arrive(Arrival { reduction: reduction_of_next, ..arrival(0, Lanes::ALL, None, true) }, threads), Ok(1));
            assert_eq!(barriers.go_on(1, 0, Some(reduction), 32), Some(expected));
            assert_eq!(barriers.go_on(1, 0, Some(reduction), 32), None);
        }
    }

    #[test]
    fn arrivals_and_waits_of_a_cluster_barrier_alternate() {
        let mut barrier = ClusterBarrier::default();
        assert_eq!(barrier.arrive(0, 0, Lanes::ALL, None, 64), Ok(false));
        assert_eq!(barrier.waiting(64).as_deref(), Some("the barrier of the cluster has 32 of 64 threads"));
        assert!(barrier.wait(0, 0, Lanes::ALL).is_ok_and(|stamp| stamp.is_none()));
        assert!(barrier.arrive(0, 0, Lanes::of(3), None, 64).is_err());
        assert!(barrier.wait(1, 0, Lanes::ALL).is_err());
        assert_eq!(barrier.arrive(1, 0, Lanes::ALL, None, 64), Ok(true));
        assert!(barrier.wait(0, 0, Lanes::ALL).is_ok_and(|stamp| stamp.is_some()));
        assert!(barrier.wait(0, 0, Lanes::ALL).is_err());
        // The program that waited may arrive for the next phase before the other one has waited.
        assert_eq!(barrier.arrive(0, 0, Lanes::ALL, None, 64), Ok(false));
        assert!(barrier.wait(1, 0, Lanes::ALL).is_ok_and(|stamp| stamp.is_some()));
        assert!(barrier.wait(0, 0, Lanes::ALL).is_ok_and(|stamp| stamp.is_none()));
    }
}
