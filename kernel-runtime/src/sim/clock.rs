//! The clock of simulated GPUs: the time of launches, estimated from the operations that they performed.
//!
//! This is not a model of a GPU's timing. It is the same in every run, and distinguishes many instructions from few, scattered accesses from dense
//! ones, and few warps from many. That suffices to choose between configurations, and to test that choice.

use std::cell::Cell;
use std::time::Duration;

use kernel_sim::LineCounters;

thread_local! {
    /// A launch is complete when its call returns, so each thread has a clock of its own launches.
    static NANOSECONDS: Cell<u64> = const { Cell::new(0) };
}

/// The time on this thread's clock.
pub(crate) fn now() -> Duration {
    Duration::from_nanos(NANOSECONDS.get())
}

/// Advances this thread's clock by the time of a launch.
pub(super) fn advance(nanoseconds: f64) {
    NANOSECONDS.set(NANOSECONDS.get() + nanoseconds.round() as u64);
}

/// The time of a launch that does nothing.
const LAUNCH_NS: f64 = 2000.0;
/// Cycles per nanosecond.
const CLOCK_GHZ: f64 = 1.7;
/// The warps of a multiprocessor that issue at the same time.
const SCHEDULERS: u64 = 4;
/// The bytes of global memory that reach a multiprocessor per nanosecond, if all multiprocessors load: 3.3 TB/s for 132 of them.
const BYTES_PER_NS: f64 = 25.0;

/// Estimates the nanoseconds of a launch with these counters and this many warps, on a GPU with this many multiprocessors.
pub(super) fn estimate(did: &LineCounters, warps: u64, multiprocessors: u64) -> f64 {
    let issuing = warps.clamp(1, SCHEDULERS * multiprocessors) as f64;
    let busy = multiprocessors.min(warps).max(1) as f64;
    let issue = did.warp_instructions() as f64 / issuing / CLOCK_GHZ;
    let memory = (32 * did.global.sectors() + did.async_bytes) as f64 / (BYTES_PER_NS * multiprocessors as f64);
    let shared = did.shared.wavefronts as f64 / busy / CLOCK_GHZ;
    LAUNCH_NS + issue.max(memory).max(shared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_work_takes_longer_and_more_warps_do_not() {
        let did = |instructions: u64, sectors: u64| {
            let mut did = LineCounters::default();
            did.instructions[0] = instructions;
            did.global.load_sectors = sectors;
            did
        };
        let few = estimate(&did(100_000, 10), 8, 132);
        assert!(estimate(&did(200_000, 10), 8, 132) > few && estimate(&did(100_000, 10), 64, 132) < few);
        assert!(estimate(&did(100, 1 << 20), 8, 132) > estimate(&did(100, 1 << 19), 8, 132));
        assert_eq!(estimate(&LineCounters::default(), 0, 1), LAUNCH_NS);
        let before = now();
        advance(1500.4);
        assert_eq!(now() - before, Duration::from_nanos(1500));
    }
}
