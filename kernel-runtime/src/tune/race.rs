//! Selection of the fastest candidate: each round runs every remaining candidate once and drops slow ones; the two best are compared by new
//! runs.
//!
//! The time of a candidate is the mean of the middle half of its runs ([`Stats::middle_us`]). The times of short kernels have two modes some 0.2 us
//! apart, which is more than configurations differ. The median of a few runs is one of these modes; this mean needs as many rounds as fit in the
//! time limit, which are many for short kernels.

use crate::Result;
use crate::bench::Stats;

/// The time limits of a race.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// Microseconds of warm-up rounds, which are not counted.
    pub(super) warmup_us: f64,
    /// Microseconds after which no new round begins.
    pub(super) rep_us: f64,
}

/// The result of a round.
pub(super) struct Round {
    /// Microseconds of each candidate that ran, in their order.
    pub(super) times_us: Vec<f64>,
    /// Microseconds of the whole round.
    pub(super) took_us: f64,
}

/// The result of a race.
#[derive(Debug)]
pub(super) struct Race {
    /// The times of each candidate's runs, in microseconds.
    pub(super) times: Vec<Vec<f64>>,
    /// The fastest candidate; none if no candidate was timed.
    pub(super) winner: Option<usize>,
}

/// Rounds that the remaining candidates run for each 100 ms of the budget, if the time suffices.
const ROUNDS: f64 = 100.0;

/// Rounds for a single remaining candidate: enough samples for its time.
const ROUNDS_ALONE: usize = 5;

/// Rounds of the duel between the two best, if the time suffices, and the rounds that it has in any case.
const DUEL: usize = 50;
const LEAST_DUEL: usize = 3;

/// Returns whether a candidate with these times drops out after a round, because they are too far above the leader's time. Early rounds are noisy,
/// so the best of a few times decides with large factors; later, the mean of the middle half decides.
fn is_hopeless(round: usize, times: &[f64], leader: f64) -> bool {
    let best = || times.iter().copied().fold(f64::INFINITY, f64::min);
    match round {
        0 => best() > 2.0 * leader,
        1..=3 => best() > 1.25 * leader,
        4..=14 => best() > 1.08 * leader,
        _ => middle(times) > 1.04 * leader,
    }
}

/// Runs each candidate that it is given once, in the given order. It is a trait object, so that the race is not compiled again for each kernel.
pub(super) type Measure<'m> = dyn FnMut(&[usize]) -> Result<Round> + 'm;

/// Runs the race.
pub(super) fn race(candidates: usize, budget: Budget, measure: &mut Measure<'_>) -> Result<Race> {
    let mut times = vec![Vec::new(); candidates];
    let mut alive: Vec<usize> = (0..candidates).collect();
    let mut warm_us = 0.0;
    while warm_us < budget.warmup_us && candidates > 1 {
        warm_us += measure(&alive)?.took_us.max(1.0);
    }
    let rounds = (ROUNDS * budget.rep_us / 100e3).max(ROUNDS_ALONE as f64) as usize;
    let mut spent_us = 0.0;
    for round in 0..rounds {
        if alive.is_empty() || (alive.len() == 1 && round >= ROUNDS_ALONE) || spent_us > budget.rep_us {
            break;
        }
        let Round { times_us, took_us } = measure(&alive)?;
        spent_us += took_us;
        alive.iter().zip(times_us).for_each(|(&candidate, time)| times[candidate].push(time));
        let leader = alive.iter().map(|&candidate| middle(&times[candidate])).fold(f64::INFINITY, f64::min);
        alive.retain(|&candidate| !is_hopeless(round, &times[candidate], leader));
        // Rotate the order in each round, so that no candidate always runs after the same neighbour.
        if !alive.is_empty() {
            alive.rotate_left(1);
        }
    }
    alive.sort_by(|&a, &b| middle(&times[a]).total_cmp(&middle(&times[b])).then(a.cmp(&b)));
    let winner = match alive[..] {
        // Among many similar candidates the leader was lucky in its few runs, so only new runs compare the best two.
        [first, second, ..] => Some(duel([first, second], budget.rep_us / 4.0, &mut times, measure)?),
        _ => fastest(&times),
    };
    Ok(Race { times, winner })
}

/// Compares two candidates by new runs of their own. If their times are equal, the first one wins.
fn duel(two: [usize; 2], most_us: f64, times: &mut [Vec<f64>], measure: &mut Measure<'_>) -> Result<usize> {
    let mut own = [Vec::new(), Vec::new()];
    let mut spent_us = 0.0;
    for round in 0..DUEL {
        if round >= LEAST_DUEL && spent_us > most_us {
            break;
        }
        let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
        let Round { times_us, took_us } = measure(&order.map(|index| two[index]))?;
        spent_us += took_us;
        order.iter().zip(times_us).for_each(|(&index, time)| own[index].push(time));
    }
    let better = if middle(&own[1]) < middle(&own[0]) { 1 } else { 0 };
    own.into_iter().zip(two).for_each(|(own, candidate)| times[candidate].extend(own));
    Ok(two[better])
}

/// The candidate with the smallest time; the first of equal ones. None if no candidate was timed.
pub(super) fn fastest(times: &[Vec<f64>]) -> Option<usize> {
    let timed = times.iter().enumerate().filter(|(_, times)| !times.is_empty());
    timed.min_by(|(_, a), (_, b)| middle(a).total_cmp(&middle(b))).map(|(candidate, _)| candidate)
}

/// The time of a candidate with these runs.
fn middle(times: &[f64]) -> f64 {
    Stats::of(times.to_vec()).middle_us
}

pub(super) fn median(times: &[f64]) -> f64 {
    Stats::of(times.to_vec()).median_us
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A simulated machine: candidate `i` takes `true_us[i]`, with noise and a clock that slows down.
    struct Machine {
        true_us: Vec<f64>,
        runs: Vec<usize>,
        noise: u64,
    }

    impl Machine {
        fn new(true_us: &[f64]) -> Machine {
            Machine { true_us: true_us.to_vec(), runs: vec![0; true_us.len()], noise: 7 }
        }

        fn run(&mut self, candidate: usize) -> f64 {
            self.noise = self.noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let noise = (self.noise >> 40) as f64 / (1u64 << 24) as f64;
            self.runs[candidate] += 1;
            let all: usize = self.runs.iter().sum();
            self.true_us[candidate] * (1.0 + 0.02 * noise + 0.0005 * all as f64)
        }

        fn round(&mut self, alive: &[usize]) -> Result<Round> {
            let times_us: Vec<f64> = alive.iter().map(|&i| self.run(i)).collect();
            Ok(Round { took_us: times_us.iter().sum(), times_us })
        }
    }

    const BUDGET: Budget = Budget { warmup_us: 0.0, rep_us: 100e3 };

    #[test]
    fn the_fastest_wins_though_the_clock_drifts() {
        for fastest in 0..5 {
            let mut true_us = vec![100.0, 104.0, 150.0, 400.0, 108.0];
            true_us.swap(0, fastest);
            let mut machine = Machine::new(&true_us);
            let race = race(5, BUDGET, &mut |alive| machine.round(alive)).unwrap();
            assert_eq!(race.winner, Some(fastest), "{race:?}");
        }
    }

    #[test]
    fn slow_configurations_run_once_and_close_ones_again() {
        let mut machine = Machine::new(&[100.0, 500.0, 101.0, 140.0]);
        let race = race(4, BUDGET, &mut |alive| machine.round(alive)).unwrap();
        let runs: Vec<_> = race.times.iter().map(Vec::len).collect();
        assert_eq!((runs[0], runs[1]), (ROUNDS as usize + DUEL, 1), "{runs:?}");
        assert!(runs[2] > runs[3] && runs[3] <= 3, "{runs:?}");
    }

    /// Runs of short kernels take one of two times 0.2 us apart. Their medians are one of the two, so they do not tell two configurations apart of which
    /// one is faster by 0.06 us.
    #[test]
    fn the_faster_of_two_short_kernels_wins_though_their_times_have_two_modes() {
        let mut noise = 7u64;
        let mut right = 0;
        for _ in 0..100 {
            let result = race(4, BUDGET, &mut |alive| {
                let mut time = |&i: &usize| {
                    noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    // The share of slow runs is 30 % for the fastest, and 60 % for the others.
                    let slow = (noise >> 40) % 10 < if i == 2 { 3 } else { 6 };
                    if slow { 5.2 } else { 5.0 }
                };
                Ok(Round { times_us: alive.iter().map(&mut time).collect(), took_us: 120.0 * alive.len() as f64 })
            });
            right += u32::from(result.unwrap().winner == Some(2));
        }
        assert!(right >= 98, "{right} of 100");
    }

    /// The duel does not count lucky samples of the rounds.
    #[test]
    fn the_better_of_the_last_two_is_found_by_new_runs() {
        let mut runs = 0;
        let race = race(2, BUDGET, &mut |alive| {
            runs += 1;
            let lucky = runs <= ROUNDS as usize;
            let time = |&i: &usize| if i == 0 && lucky { 99.0 } else { 103.0 - 2.0 * i as f64 };
            Ok(Round { times_us: alive.iter().map(time).collect(), took_us: 200.0 })
        });
        let race = race.unwrap();
        assert_eq!((race.winner, fastest(&race.times)), (Some(1), Some(0)));
    }

    #[test]
    fn a_race_ends_with_its_budget_and_needs_no_rivals() {
        let mut slow = |alive: &[usize]| Ok(Round { times_us: vec![60e3; alive.len()], took_us: 120e3 });
        let race2 = race(2, BUDGET, &mut slow).unwrap();
        assert_eq!((race2.times[0].len(), race2.winner), (1 + 3, Some(0)), "one round, and the least of a duel");
        let alone = race(1, BUDGET, &mut |_| Ok(Round { times_us: vec![1.0], took_us: 1.0 })).unwrap();
        assert_eq!(alone.times[0].len(), ROUNDS_ALONE);
        assert_eq!(race(0, BUDGET, &mut |_| Ok(Round { times_us: Vec::new(), took_us: 0.0 })).unwrap().winner, None);
    }

    #[test]
    fn warm_rounds_are_not_counted() {
        let mut rounds = 0;
        let race = race(2, Budget { warmup_us: 1000.0, rep_us: 100e3 }, &mut |alive| {
            rounds += 1;
            Ok(Round { times_us: vec![if rounds <= 5 { 1e9 } else { 10.0 }; alive.len()], took_us: 200.0 })
        });
        assert!(race.unwrap().times.iter().flatten().all(|time| *time == 10.0));
    }

    /// The device time for eleven equally fast configurations of a memory-bound kernel, which is the worst case.
    #[test]
    fn eleven_configurations_take_less_than_a_quarter_of_a_second() {
        const RUN_US: f64 = 400.0;
        const FLUSH_US: f64 = 30.0;
        let mut all_us = 11.0 * (RUN_US + FLUSH_US);
        race(11, Budget { warmup_us: 5e3 - all_us, rep_us: 100e3 }, &mut |alive| {
            let took_us = alive.len() as f64 * (RUN_US + FLUSH_US);
            all_us += took_us;
            Ok(Round { times_us: vec![RUN_US; alive.len()], took_us })
        })
        .unwrap();
        assert!(all_us < 150e3, "{all_us} us");
    }

    #[test]
    fn a_failure_of_the_machine_ends_the_race() {
        let result = race(3, BUDGET, &mut |_| Err(crate::Error::EventNotRecorded));
        assert!(matches!(result, Err(crate::Error::EventNotRecorded)));
    }
}
