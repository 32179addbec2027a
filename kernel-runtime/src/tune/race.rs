//! Who is fastest: candidates run in rounds, one run each, and the hopeless drop out.

use crate::Result;
use crate::bench::Stats;

/// Rounds that the last ones standing run.
const ROUNDS: usize = 25;

/// With one left, rounds enough to tell its time.
const ROUNDS_ALONE: usize = 5;

/// Timed work after which the race ends at the next round, in microseconds.
const BUDGET_US: f64 = 250e3;

/// A candidate is hopeless after a round if its best time is this much worse than the leader's median. Early rounds are
/// noisy, so they drop only the far behind.
fn hopeless_beyond(round: usize) -> f64 {
    match round {
        0 => 2.0,
        1..=3 => 1.25,
        _ => 1.08,
    }
}

/// Runs the race. `measure` runs each candidate that it is given once, in that order, and says how long each took, in
/// microseconds. The result has, for each candidate, the times of its runs.
pub(super) fn race(candidates: usize, mut measure: impl FnMut(&[usize]) -> Result<Vec<f64>>) -> Result<Vec<Vec<f64>>> {
    let mut times = vec![Vec::new(); candidates];
    let mut alive: Vec<usize> = (0..candidates).collect();
    let mut spent_us = 0.0;
    for round in 0..ROUNDS {
        if alive.is_empty() || (alive.len() == 1 && round >= ROUNDS_ALONE) || spent_us > BUDGET_US {
            break;
        }
        for (&candidate, time) in alive.iter().zip(measure(&alive)?) {
            times[candidate].push(time);
            spent_us += time;
        }
        let leader = alive.iter().map(|&candidate| median(&times[candidate])).fold(f64::INFINITY, f64::min);
        alive.retain(|&candidate| {
            let best = times[candidate].iter().copied().fold(f64::INFINITY, f64::min);
            best <= leader * hopeless_beyond(round)
        });
        // Turns are taken in another order each time, so that nobody always runs after the same neighbour.
        if !alive.is_empty() {
            alive.rotate_left(1);
        }
    }
    Ok(times)
}

/// The one with the smallest median; the first of equals. None if nobody was timed.
pub(super) fn winner(times: &[Vec<f64>]) -> Option<usize> {
    let timed = times.iter().enumerate().filter(|(_, times)| !times.is_empty());
    timed.min_by(|(_, a), (_, b)| median(a).total_cmp(&median(b))).map(|(candidate, _)| candidate)
}

pub(super) fn median(times: &[f64]) -> f64 {
    Stats::of(times.to_vec()).median_us
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine where candidate `i` takes `true_us[i]`, with noise and a clock that slows down.
    struct Machine {
        true_us: Vec<f64>,
        runs: usize,
        noise: u64,
    }

    impl Machine {
        fn run(&mut self, candidate: usize) -> f64 {
            self.noise = self.noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let noise = (self.noise >> 40) as f64 / (1u64 << 24) as f64;
            self.runs += 1;
            self.true_us[candidate] * (1.0 + 0.02 * noise + 0.0005 * self.runs as f64)
        }
    }

    fn machine(true_us: &[f64]) -> Machine {
        Machine { true_us: true_us.to_vec(), runs: 0, noise: 7 }
    }

    #[test]
    fn the_fastest_wins_though_the_clock_drifts() {
        for fastest in 0..5 {
            let mut true_us = vec![100.0, 104.0, 150.0, 400.0, 108.0];
            true_us.swap(0, fastest);
            let mut machine = machine(&true_us);
            let times = race(5, |alive| Ok(alive.iter().map(|&i| machine.run(i)).collect())).unwrap();
            assert_eq!(winner(&times), Some(fastest), "{times:?}");
        }
    }

    #[test]
    fn the_hopeless_run_once_and_the_close_run_on() {
        let mut machine = machine(&[100.0, 500.0, 101.0, 140.0]);
        let times = race(4, |alive| Ok(alive.iter().map(|&i| machine.run(i)).collect())).unwrap();
        let runs: Vec<_> = times.iter().map(Vec::len).collect();
        assert_eq!((runs[0], runs[1]), (ROUNDS, 1), "{runs:?}");
        assert!(runs[2] > runs[3] && runs[3] <= 3, "{runs:?}");
    }

    #[test]
    fn a_race_ends_with_its_budget_and_needs_no_rivals() {
        let times = race(2, |alive| Ok(vec![BUDGET_US; alive.len()])).unwrap();
        assert_eq!((times[0].len(), winner(&times)), (1, Some(0)));
        let times = race(1, |_| Ok(vec![1.0])).unwrap();
        assert_eq!(times[0].len(), ROUNDS_ALONE);
        assert_eq!(winner(&race(0, |_| Ok(Vec::new())).unwrap()), None);
    }

    #[test]
    fn a_failure_of_the_machine_ends_the_race() {
        let result = race(3, |_| Err(crate::Error::EventNotRecorded));
        assert!(matches!(result, Err(crate::Error::EventNotRecorded)));
    }
}
