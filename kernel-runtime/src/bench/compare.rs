//! Paired comparison: two works run alternately, and a confidence interval separates a difference from noise.

use std::fmt;
use std::time::Duration;

use super::{Stats, timer};
use crate::{Device, Result};

/// The times of two works that ran alternately, and the speedup of the second.
///
/// # Method
/// Both works run once in each round. `speedup` is the median time of the first work divided by that of the second. Its confidence interval
/// at 99 % comes from the bootstrap (Efron and Tibshirani, *An Introduction to the Bootstrap*, 1993, chapter 13): rounds are resampled with
/// replacement 2000 times, and the interval holds the middle 99 % of the resulting ratios of medians.
///
/// - A round is drawn with both its times, so that a drifting clock affects both works.
/// - Rounds are drawn in blocks of neighbours (Künsch, *The jackknife and the bootstrap for general stationary observations*, 1989),
///   because a disturbance of one round often affects the next.
/// - The same times give the same draws.
/// - Fewer than ten rounds have too few different draws: the interval then has no bounds, and there is no winner.
///
/// [`Comparison::verdict`] names a winner only if the whole interval is more than half a percent from 1. The position of the data in memory
/// can move the times of equal kernels by that much, and more runs would not reveal it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The statistics of the first work.
    pub first: Stats,
    /// The statistics of the second work.
    pub second: Stats,
    /// The median of the first work divided by that of the second. Above 1, the second is faster.
    pub speedup: f64,
    /// The lower end of the confidence interval of `speedup`; 0 if there were too few rounds.
    pub low: f64,
    /// The upper end; infinite if there were too few rounds.
    pub high: f64,
}

/// The result of a [`Comparison`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The first work takes less time.
    FirstIsFaster,
    /// The second work takes less time.
    SecondIsFaster,
    /// The difference, if any, cannot be distinguished from noise.
    NoDifference,
}

/// A smaller relative difference does not count.
const MARGIN: f64 = 0.005;
/// The minimum number of rounds, however long they take. Rounds are drawn in blocks of three, so a draw has seven blocks.
const LEAST_ROUNDS: usize = 20;
/// With fewer rounds there is no interval.
const TELLING_ROUNDS: usize = 10;
/// The number of bootstrap draws.
const DRAWS: usize = 2000;
/// The fraction of the ratios that is cut off at each end.
const TAIL: f64 = 0.005;

/// Times two works alternately, in at least 20 rounds, and compares them.
///
/// ```
/// # use kernel_runtime::{Device, Result, bench::{Verdict, do_bench_paired}};
/// # fn main() -> Result<()> {
/// let device = Device::cpu();
/// let (mut few, mut many) = (device.zeros::<f32>(1 << 10)?, device.zeros::<f32>(1 << 18)?);
/// let compared = do_bench_paired(&device, || many.fill(1.0), || few.fill(1.0))?;
/// assert_eq!(compared.verdict(), Verdict::SecondIsFaster);
/// println!("{compared}"); // 41.300x as fast (99 % confidence: 38.031x to 44.902x, 4210 rounds)
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`do_bench`](super::do_bench).
pub fn do_bench_paired(
    device: &Device,
    mut first: impl FnMut() -> Result<()>,
    mut second: impl FnMut() -> Result<()>,
) -> Result<Comparison> {
    let times = timer::in_rounds(device, LEAST_ROUNDS, Duration::ZERO, &mut [&mut first, &mut second])?;
    Ok(Comparison::of(&times[0], &times[1]))
}

impl Comparison {
    /// Compares two lists of times, both in the order of the rounds. Surplus times of one side are ignored.
    pub fn of(first: &[f64], second: &[f64]) -> Comparison {
        let rounds = first.len().min(second.len());
        let (first, second) = (&first[..rounds], &second[..rounds]);
        let (stats_first, stats_second) = (Stats::of(first.to_vec()), Stats::of(second.to_vec()));
        let speedup = stats_first.median_us / stats_second.median_us;
        let (low, high) = if rounds < TELLING_ROUNDS { (0.0, f64::INFINITY) } else { interval(first, second) };
        Comparison { first: stats_first, second: stats_second, speedup, low, high }
    }

    /// The winner, if the interval is far enough from 1.
    pub fn verdict(&self) -> Verdict {
        // Without times the bounds are NaN and prove nothing.
        if self.low > 1.0 + MARGIN {
            Verdict::SecondIsFaster
        } else if self.high < 1.0 / (1.0 + MARGIN) {
            Verdict::FirstIsFaster
        } else {
            Verdict::NoDifference
        }
    }
}

/// Describes the second work: `1.021x as fast (99 % confidence: 1.018x to 1.024x, 412 rounds)`, or says that there is no difference or that
/// there are too few rounds to tell.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Comparison { speedup, low, high, .. } = self;
        let rounds = match self.first.samples {
            1 => "1 round".to_owned(),
            rounds => format!("{rounds} rounds"),
        };
        if self.first.samples < TELLING_ROUNDS {
            return write!(f, "no difference is sure: {speedup:.3}x as fast ({rounds}: too few to tell)");
        }
        if self.verdict() == Verdict::NoDifference {
            write!(f, "no difference: ")?;
        }
        write!(f, "{speedup:.3}x as fast (99 % confidence: {low:.3}x to {high:.3}x, {rounds})")
    }
}

/// The confidence interval: the middle of the ratios of medians over all draws.
fn interval(first: &[f64], second: &[f64]) -> (f64, f64) {
    let rounds = first.len();
    let (ranked_first, ranked_second) = (Ranked::of(first), Ranked::of(second));
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    // The block length is the cube root of the number of rounds, which Künsch derived for means: long enough to keep correlated rounds
    // together, and short enough for many blocks in a draw.
    let block = (rounds as f64).cbrt().ceil() as usize;
    let mut counts = vec![0u32; rounds];
    let ratio = |_| {
        draw(&mut counts, block, &mut random);
        ranked_first.median(&counts) / ranked_second.median(&counts)
    };
    let mut ratios: Vec<f64> = (0..DRAWS).map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    let at = |q: f64| ratios[(q * (DRAWS - 1) as f64).round() as usize];
    (at(TAIL), at(1.0 - TAIL))
}

/// Draws as many rounds as there are, in blocks of `block` neighbours. `counts` receives how often each round was drawn.
fn draw(counts: &mut [u32], block: usize, random: &mut Random) {
    counts.fill(0);
    let (rounds, mut left) = (counts.len(), counts.len());
    while left > 0 {
        let length = block.min(left);
        let start = random.below(rounds - length + 1);
        counts[start..start + length].iter_mut().for_each(|count| *count += 1);
        left -= length;
    }
}

/// Sorted times, each with its round, so that counting finds the median of any draw.
struct Ranked(Vec<(f64, usize)>);

impl Ranked {
    fn of(times: &[f64]) -> Ranked {
        let mut ranked: Vec<_> = times.iter().copied().zip(0..).collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ranked(ranked)
    }

    /// The median, if each round occurs `counts` times.
    fn median(&self, counts: &[u32]) -> f64 {
        let rounds = counts.len() as u32;
        (self.at(rounds.saturating_sub(1) / 2, counts) + self.at(rounds / 2, counts)) / 2.0
    }

    /// The time of that rank, counted from 0.
    fn at(&self, rank: u32, counts: &[u32]) -> f64 {
        let mut seen = 0;
        let mut reaches = |round: usize| {
            seen += counts[round];
            seen > rank
        };
        self.0.iter().find(|(_, round)| reaches(*round)).map_or(f64::NAN, |(time, _)| *time)
    }
}

/// SplitMix64 (Steele et al. 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`. Its bias of at most 2^-40 does not matter here.
    fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of two works on a machine whose clock drifts by 10 %. Noise lasts for several rounds, and some runs take twice as long.
    fn rounds(count: usize, factor: f64, seed: u64) -> (Vec<f64>, Vec<f64>) {
        let mut random = Random(seed);
        let mut uniform = || random.below(1 << 30) as f64 / f64::from(1u32 << 30);
        let mut disturbed = 0.0;
        let mut time = |round: usize, factor: f64| {
            disturbed = 0.7 * disturbed + 0.01 * (uniform() - 0.5);
            let spike = if uniform() < 0.03 { 2.0 } else { 1.0 };
            100.0 * factor * spike * (1.0 + 0.1 * round as f64 / count as f64 + disturbed + 0.005 * uniform())
        };
        (0..count).map(|round| (time(round, 1.0), time(round, 1.0 / factor))).unzip()
    }

    #[test]
    fn a_difference_of_two_percent_is_significant_and_equal_works_do_not_differ() {
        let mut wrong = 0;
        for seed in 0..50 {
            let (a, b) = rounds(400, 1.02, seed);
            let compared = Comparison::of(&a, &b);
            assert!(compared.low <= compared.speedup && compared.speedup <= compared.high, "{compared:?}");
            wrong += usize::from(compared.verdict() != Verdict::SecondIsFaster);
            wrong += usize::from(Comparison::of(&b, &a).verdict() != Verdict::FirstIsFaster);
            let (a, b) = rounds(400, 1.0, seed);
            wrong += usize::from(Comparison::of(&a, &b).verdict() != Verdict::NoDifference);
        }
        assert!(wrong <= 1, "{wrong} of 150 verdicts are wrong");
    }

    #[test]
    fn the_interval_contains_the_true_speedup() {
        let held = |seed| {
            let (a, b) = rounds(200, 1.05, seed);
            let compared = Comparison::of(&a, &b);
            compared.low <= 1.05 && 1.05 <= compared.high
        };
        let held = (100..300).filter(|&seed| held(seed)).count();
        assert!(held >= 190, "{held} of 200 intervals");
        // More rounds give a narrower interval.
        let width = |count| {
            let (a, b) = rounds(count, 1.05, 7);
            let compared = Comparison::of(&a, &b);
            compared.high - compared.low
        };
        assert!(width(2000) < 0.7 * width(100));
    }

    #[test]
    fn rounds_that_affect_their_neighbours_widen_the_interval() {
        let mut random = Random(11);
        let (mut a, mut b, mut drift) = (Vec::new(), Vec::new(), [0.0; 2]);
        for _ in 0..1000 {
            drift = drift.map(|drift| 0.9 * drift + 0.01 * (random.below(1000) as f64 / 1000.0 - 0.5));
            a.push(100.0 * (1.0 + drift[0]));
            b.push(100.0 * (1.0 + drift[1]));
        }
        let width = |a: &[f64], b: &[f64]| {
            let compared = Comparison::of(a, b);
            compared.high - compared.low
        };
        let in_order = width(&a, &b);
        // The same rounds in random order.
        for last in (1..a.len()).rev() {
            let other = random.below(last + 1);
            a.swap(last, other);
            b.swap(last, other);
        }
        let shuffled = width(&a, &b);
        assert!(in_order > 1.5 * shuffled, "{in_order} {shuffled}");
    }

    #[test]
    fn few_rounds_prove_nothing_and_the_same_times_give_the_same_answer() {
        let (a, b) = rounds(300, 1.01, 3);
        assert_eq!(Comparison::of(&a, &b), Comparison::of(&a, &b));
        let none = Comparison::of(&[], &[]);
        assert!(none.speedup.is_nan() && none.verdict() == Verdict::NoDifference);
        // The distance of the times does not matter: draws of one or two rounds do not differ.
        for (a, b) in [(vec![100.0], vec![50.0]), (vec![100.0, 101.0], vec![50.0, 49.0]), (vec![100.0; 9], vec![50.0; 9])] {
            let few = Comparison::of(&a, &b);
            assert_eq!((few.low, few.high, few.verdict()), (0.0, f64::INFINITY, Verdict::NoDifference), "{few:?}");
            assert!(few.speedup > 1.9 && few.first.samples == a.len(), "{few:?}");
        }
        assert_eq!(Comparison::of(&[3.0], &[2.0]).to_string(), "no difference is sure: 1.500x as fast (1 round: too few to tell)");
        // A clock that did not advance.
        assert_eq!(Comparison::of(&[0.0; 20], &[0.0; 20]).verdict(), Verdict::NoDifference);
        let same = Comparison::of(&[3.0; 20], &[3.0; 20]);
        assert_eq!((same.low, same.high, same.verdict()), (1.0, 1.0, Verdict::NoDifference));
        assert_eq!(same.to_string(), "no difference: 1.000x as fast (99 % confidence: 1.000x to 1.000x, 20 rounds)");
    }

    #[test]
    fn however_slow_it_is_there_are_rounds_enough() {
        let sleep = |ms| {
            move || {
                std::thread::sleep(std::time::Duration::from_millis(ms));
                Ok(())
            }
        };
        let compared = do_bench_paired(&Device::cpu(), sleep(20), sleep(1)).unwrap();
        assert_eq!((compared.first.samples, compared.verdict()), (LEAST_ROUNDS, Verdict::SecondIsFaster), "{compared}");
    }
}
