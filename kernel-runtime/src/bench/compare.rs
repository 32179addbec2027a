//! Is it faster, or is it noise? Two pieces of work in turns, and what their times can prove.

use std::fmt;

use super::{Stats, timer};
use crate::{Device, Result};

/// Two pieces of work that took turns, and how much faster the second is.
///
/// # Method
/// `speedup` is the first one's median time over the second's. How sure that is says a confidence interval at 99 %, by the bootstrap (Efron and
/// Tibshirani, *An Introduction to the Bootstrap*, 1993, chapter 13): turns are drawn again from those that were run, with replacement,
/// 2000 times, and the interval holds the middle 99 % of the ratios of medians that come out. A turn is drawn with both its times, so that a
/// clock that drifts touches both; turns are drawn in runs of neighbours (Künsch, *The jackknife and the bootstrap for general stationary
/// observations*, 1989), because what disturbs one turn often disturbs the next. The draws are the same for the same times. Of fewer than ten
/// turns too few different draws can be made to say anything: there the interval has no bounds, and names no winner.
///
/// [`Comparison::verdict`] names a winner only where the whole interval lies more than half a percent from 1. Where the data
/// happens to lie in memory can move equal kernels as far as that, and no number of runs would show it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Times of the first.
    pub first: Stats,
    /// Times of the second.
    pub second: Stats,
    /// The first one's median over the second's: above 1, the second is faster.
    pub speedup: f64,
    /// The lower end of the confidence interval of `speedup`; 0 if there were too few turns to tell.
    pub low: f64,
    /// The upper end; infinite if there were too few turns to tell.
    pub high: f64,
}

/// What a [`Comparison`] proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The first takes less time.
    FirstIsFaster,
    /// The second takes less time.
    SecondIsFaster,
    /// What difference there is, these runs cannot tell from noise.
    NoDifference,
}

/// A difference that is smaller is none.
const MARGIN: f64 = 0.005;
/// Turns that are run at least, however long they take: as they are drawn in runs of three, seven of them make a draw.
const LEAST_TURNS: usize = 20;
/// Turns below which nothing is told.
const TELLING_TURNS: usize = 10;
/// How often turns are drawn again.
const DRAWS: usize = 2000;
/// The part of the ratios that is left out at each end.
const TAIL: f64 = 0.005;

/// Times two pieces of work that take turns, 20 at least, and says what their ratio means.
///
/// ```
/// # use kernel_runtime::{Device, Result, bench::{Verdict, do_bench_paired}};
/// # fn main() -> Result<()> {
/// let device = Device::cpu();
/// let (mut few, mut many) = (device.zeros::<f32>(1 << 10)?, device.zeros::<f32>(1 << 18)?);
/// let compared = do_bench_paired(&device, || many.fill(1.0), || few.fill(1.0))?;
/// assert_eq!(compared.verdict(), Verdict::SecondIsFaster);
/// println!("{compared}"); // 41.300x as fast (99 % confidence: 38.031x to 44.902x, 4210 turns)
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
    let times = timer::in_turns(device, LEAST_TURNS, &mut [&mut first, &mut second])?;
    Ok(Comparison::of(&times[0], &times[1]))
}

impl Comparison {
    /// Of the times of turns, both in the order of the turns; what one side has more of is left out.
    pub fn of(first: &[f64], second: &[f64]) -> Comparison {
        let turns = first.len().min(second.len());
        let (first, second) = (&first[..turns], &second[..turns]);
        let (stats_first, stats_second) = (Stats::of(first.to_vec()), Stats::of(second.to_vec()));
        let speedup = stats_first.median_us / stats_second.median_us;
        let (low, high) = if turns < TELLING_TURNS { (0.0, f64::INFINITY) } else { interval(first, second) };
        Comparison { first: stats_first, second: stats_second, speedup, low, high }
    }

    /// Who is faster, if that is sure.
    pub fn verdict(&self) -> Verdict {
        // Times of nothing are no numbers, and prove nothing.
        if self.low > 1.0 + MARGIN {
            Verdict::SecondIsFaster
        } else if self.high < 1.0 / (1.0 + MARGIN) {
            Verdict::FirstIsFaster
        } else {
            Verdict::NoDifference
        }
    }
}

/// Said of the second: `1.021x as fast (99 % confidence: 1.018x to 1.024x, 412 turns)`, or that there is no difference, or that nobody can know.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Comparison { speedup, low, high, .. } = self;
        let turns = match self.first.samples {
            1 => "1 turn".to_owned(),
            turns => format!("{turns} turns"),
        };
        if self.first.samples < TELLING_TURNS {
            return write!(f, "no difference is sure: {speedup:.3}x as fast ({turns}: too few to tell)");
        }
        if self.verdict() == Verdict::NoDifference {
            write!(f, "no difference: ")?;
        }
        write!(f, "{speedup:.3}x as fast (99 % confidence: {low:.3}x to {high:.3}x, {turns})")
    }
}

/// The middle of the ratios of medians when turns are drawn again.
fn interval(first: &[f64], second: &[f64]) -> (f64, f64) {
    let turns = first.len();
    let (ranked_first, ranked_second) = (Ranked::of(first), Ranked::of(second));
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    // As long as keeps what is alike together, short enough that many are drawn: the cube root, as Künsch found for means.
    let block = (turns as f64).cbrt().ceil() as usize;
    let mut counts = vec![0u32; turns];
    let ratio = |_| {
        draw(&mut counts, block, &mut random);
        ranked_first.median(&counts) / ranked_second.median(&counts)
    };
    let mut ratios: Vec<f64> = (0..DRAWS).map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    let at = |q: f64| ratios[(q * (DRAWS - 1) as f64).round() as usize];
    (at(TAIL), at(1.0 - TAIL))
}

/// Draws as many turns as there are, in runs of `block` neighbours: how often each was drawn.
fn draw(counts: &mut [u32], block: usize, random: &mut Random) {
    counts.fill(0);
    let (turns, mut left) = (counts.len(), counts.len());
    while left > 0 {
        let length = block.min(left);
        let start = random.below(turns - length + 1);
        counts[start..start + length].iter_mut().for_each(|count| *count += 1);
        left -= length;
    }
}

/// Times in order, each with its turn, so that the median of any draw is found by counting.
struct Ranked(Vec<(f64, usize)>);

impl Ranked {
    fn of(times: &[f64]) -> Ranked {
        let mut ranked: Vec<_> = times.iter().copied().zip(0..).collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ranked(ranked)
    }

    /// The median where each turn is there as often as it says.
    fn median(&self, counts: &[u32]) -> f64 {
        let turns = counts.len() as u32;
        (self.at(turns.saturating_sub(1) / 2, counts) + self.at(turns / 2, counts)) / 2.0
    }

    /// The time of that rank, from 0.
    fn at(&self, rank: u32, counts: &[u32]) -> f64 {
        let mut seen = 0;
        let mut reaches = |turn: usize| {
            seen += counts[turn];
            seen > rank
        };
        self.0.iter().find(|(_, turn)| reaches(*turn)).map_or(f64::NAN, |(time, _)| *time)
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

    /// A number below `end`; its bias, of 2^-40 and less, is nobody's concern here.
    fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns of two works on a machine whose clock drifts by 10 %, with noise that lasts for some turns and now and then a run that takes twice as long.
    fn turns(count: usize, factor: f64, seed: u64) -> (Vec<f64>, Vec<f64>) {
        let mut random = Random(seed);
        let mut uniform = || random.below(1 << 30) as f64 / f64::from(1u32 << 30);
        let mut disturbed = 0.0;
        let mut time = |turn: usize, factor: f64| {
            disturbed = 0.7 * disturbed + 0.01 * (uniform() - 0.5);
            let spike = if uniform() < 0.03 { 2.0 } else { 1.0 };
            100.0 * factor * spike * (1.0 + 0.1 * turn as f64 / count as f64 + disturbed + 0.005 * uniform())
        };
        (0..count).map(|turn| (time(turn, 1.0), time(turn, 1.0 / factor))).unzip()
    }

    #[test]
    fn two_percent_are_told_from_noise_and_the_same_from_the_same() {
        let mut wrong = 0;
        for seed in 0..50 {
            let (a, b) = turns(400, 1.02, seed);
            let compared = Comparison::of(&a, &b);
            assert!(compared.low <= compared.speedup && compared.speedup <= compared.high, "{compared:?}");
            wrong += usize::from(compared.verdict() != Verdict::SecondIsFaster);
            wrong += usize::from(Comparison::of(&b, &a).verdict() != Verdict::FirstIsFaster);
            let (a, b) = turns(400, 1.0, seed);
            wrong += usize::from(Comparison::of(&a, &b).verdict() != Verdict::NoDifference);
        }
        assert!(wrong <= 1, "{wrong} of 150 verdicts are wrong");
    }

    #[test]
    fn the_interval_holds_the_truth() {
        let held = |seed| {
            let (a, b) = turns(200, 1.05, seed);
            let compared = Comparison::of(&a, &b);
            compared.low <= 1.05 && 1.05 <= compared.high
        };
        let held = (100..300).filter(|&seed| held(seed)).count();
        assert!(held >= 190, "{held} of 200 intervals");
        // More turns tell more.
        let width = |count| {
            let (a, b) = turns(count, 1.05, 7);
            let compared = Comparison::of(&a, &b);
            compared.high - compared.low
        };
        assert!(width(2000) < 0.7 * width(100));
    }

    #[test]
    fn turns_that_disturb_their_neighbours_prove_less() {
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
        // The same turns in an order without neighbours.
        for last in (1..a.len()).rev() {
            let other = random.below(last + 1);
            a.swap(last, other);
            b.swap(last, other);
        }
        let shuffled = width(&a, &b);
        assert!(in_order > 1.5 * shuffled, "{in_order} {shuffled}");
    }

    #[test]
    fn few_turns_prove_nothing_and_the_same_times_give_the_same_answer() {
        let (a, b) = turns(300, 1.01, 3);
        assert_eq!(Comparison::of(&a, &b), Comparison::of(&a, &b));
        let none = Comparison::of(&[], &[]);
        assert!(none.speedup.is_nan() && none.verdict() == Verdict::NoDifference);
        // However far apart they are: no draw of one or two turns differs from another.
        for (a, b) in [(vec![100.0], vec![50.0]), (vec![100.0, 101.0], vec![50.0, 49.0]), (vec![100.0; 9], vec![50.0; 9])] {
            let few = Comparison::of(&a, &b);
            assert_eq!((few.low, few.high, few.verdict()), (0.0, f64::INFINITY, Verdict::NoDifference), "{few:?}");
            assert!(few.speedup > 1.9 && few.first.samples == a.len(), "{few:?}");
        }
        assert_eq!(Comparison::of(&[3.0], &[2.0]).to_string(), "no difference is sure: 1.500x as fast (1 turn: too few to tell)");
        // A clock that has not moved.
        assert_eq!(Comparison::of(&[0.0; 20], &[0.0; 20]).verdict(), Verdict::NoDifference);
        let same = Comparison::of(&[3.0; 20], &[3.0; 20]);
        assert_eq!((same.low, same.high, same.verdict()), (1.0, 1.0, Verdict::NoDifference));
        assert_eq!(same.to_string(), "no difference: 1.000x as fast (99 % confidence: 1.000x to 1.000x, 20 turns)");
    }

    #[test]
    fn however_slow_it_is_there_are_turns_enough() {
        let sleep = |ms| {
            move || {
                std::thread::sleep(std::time::Duration::from_millis(ms));
                Ok(())
            }
        };
        let compared = do_bench_paired(&Device::cpu(), sleep(20), sleep(1)).unwrap();
        assert_eq!((compared.first.samples, compared.verdict()), (LEAST_TURNS, Verdict::SecondIsFaster), "{compared}");
    }
}
