//! The predicted time of a launch and its roof, from the counters and the properties of the GPU.

use serde::Serialize;

use super::card::{Card, L2_BYTES_PER_CLOCK_OF_ONE, SCHEDULERS};
use super::simulate::Run;

/// Times in microseconds. Each part assumes that it alone limits the launch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Times {
    /// The longest part.
    pub(super) predicted_us: f64,
    /// The name of the longest part.
    pub(super) bound: &'static str,
    /// The least bytes at the bandwidth of memory.
    pub(super) roof_us: f64,
    /// The roof divided by the predicted time.
    pub(super) part_of_roof: f64,
    /// Different sectors at the bandwidth of memory.
    pub(super) memory_us: f64,
    /// The sectors that programs load, each once for each program, and those that requests store, at the bandwidth of the L2.
    pub(super) l2_us: f64,
    /// The cache lines of all requests, one in a cycle of each multiprocessor.
    pub(super) l1_us: f64,
    /// The instructions of all warps, one for each scheduler and cycle.
    pub(super) issue_us: f64,
    /// The passes over the banks of shared memory, one for each multiprocessor and cycle.
    pub(super) shared_us: f64,
}

impl Times {
    /// The times of a launch of so many CTAs.
    pub(super) fn of(card: &Card, run: &Run, ctas: u64) -> Times {
        let busy = card.multiprocessors.min(ctas).max(1);
        let cycles = |count: f64, per_cycle: u64| count / per_cycle as f64 / card.clock_ghz / 1e3;
        let memory_us = run.memory_bytes / card.memory_gb_per_s / 1e3;
        let l2_us = cycles(run.l2_bytes, card.l2_bytes_per_clock.min(L2_BYTES_PER_CLOCK_OF_ONE * busy));
        let l1_us = cycles(run.l1_lines, busy);
        let issue_us = cycles(run.instructions, SCHEDULERS * busy);
        let shared_us = cycles(run.wavefronts, busy);
        let parts = [("memory", memory_us), ("L2", l2_us), ("L1", l1_us), ("instruction issue", issue_us), ("shared memory", shared_us)];
        let (bound, predicted_us) = parts.into_iter().fold(("memory", 0.0), |most, part| if part.1 > most.1 { part } else { most });
        let roof_us = run.least_bytes / card.memory_gb_per_s / 1e3;
        let part_of_roof = if predicted_us > 0.0 { roof_us / predicted_us } else { 1.0 };
        Times { predicted_us, bound, roof_us, part_of_roof, memory_us, l2_us, l1_us, issue_us, shared_us }
    }
}

#[cfg(test)]
mod tests {
    use super::super::card::Model;
    use super::*;

    fn run(memory_bytes: f64, l2_bytes: f64, instructions: f64) -> Run {
        Run {
            programs: 1,
            programs_run: 1,
            grid: [1; 3],
            takes_roles: false,
            shared_bytes: 0,
            accesses: Vec::new(),
            least_bytes: memory_bytes / 2.0,
            memory_bytes,
            l2_bytes,
            l1_lines: memory_bytes / 128.0,
            instructions,
            wavefronts: 0.0,
            bank_conflicts: 0.0,
        }
    }

    #[test]
    fn the_longest_part_is_the_bound() {
        let card = Model::H100.card();
        let times = Times::of(&card, &run(3.35e9, 3.35e9, 1e6), 10_000);
        assert_eq!((times.bound, times.memory_us, times.roof_us, times.part_of_roof), ("memory", 1000.0, 500.0, 0.5));
        let strided = Times::of(&card, &run(3.35e9, 8.0 * 3.35e9, 1e6), 10_000);
        assert!(strided.bound == "L2" && strided.predicted_us > 2.0 * times.predicted_us, "{strided:?}");
        let busy = Times::of(&card, &run(3.35e6, 3.35e6, 1e9), 10_000);
        assert_eq!(busy.bound, "instruction issue");
        assert!(Times::of(&card, &run(3.35e6, 3.35e6, 1e9), 1).predicted_us > 100.0 * busy.predicted_us);
    }

    #[test]
    fn a_launch_that_does_nothing_has_times() {
        let times = Times::of(&Model::A100.card(), &run(0.0, 0.0, 0.0), 1);
        assert_eq!((times.predicted_us, times.part_of_roof), (0.0, 1.0));
    }
}
