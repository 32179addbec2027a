//! Timing work on a device, by the method of Triton's `do_bench`.
//!
//! One run to get started; five to estimate how long one takes; warm-up for 25 ms; then as many timed runs as fit in 100 ms. Before
//! every run a buffer of 256 MiB is zeroed, so that nothing the work reads is still in the L2 cache, and each run is timed on
//! the GPU by a pair of events. Peers that are compared take turns, so that a drifting clock favours none.
//!
//! ```
//! # use kernel_runtime::{Device, Result, bench::do_bench};
//! # fn main() -> Result<()> {
//! let device = Device::default()?;
//! let mut x = device.zeros::<f32>(1 << 16)?;
//! let stats = do_bench(&device, || x.fill(1.0))?;
//! println!("{:.1} us, {:.0} GB/s", stats.median_us, stats.gb_per_s(4 << 16));
//! # Ok(())
//! # }
//! ```

use std::time::Instant;

use crate::{Device, Event, Result, Stream, Tensor};

/// How long runs take, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stats {
    /// Half of the runs are faster.
    pub median_us: f64,
    /// A fifth of the runs is faster.
    pub p20_us: f64,
    /// Four fifths of the runs are faster.
    pub p80_us: f64,
    /// The fastest run.
    pub min_us: f64,
    /// The mean of all runs.
    pub mean_us: f64,
    /// How many runs were timed.
    pub samples: usize,
}

impl Stats {
    /// Of times in microseconds, in any order. Of no times everything is NaN.
    pub fn of(mut times: Vec<f64>) -> Stats {
        times.sort_by(f64::total_cmp);
        let quantile = |q: f64| {
            let at = q * times.len().saturating_sub(1) as f64;
            let (low, high) = (at.floor() as usize, at.ceil() as usize);
            match (times.get(low), times.get(high)) {
                (Some(low), Some(high)) => low + (high - low) * at.fract(),
                _ => f64::NAN,
            }
        };
        Stats {
            median_us: quantile(0.5),
            p20_us: quantile(0.2),
            p80_us: quantile(0.8),
            min_us: quantile(0.0),
            mean_us: times.iter().sum::<f64>() / times.len() as f64,
            samples: times.len(),
        }
    }

    /// Gigabytes a second, if a run moves that many bytes.
    pub fn gb_per_s(&self, bytes: usize) -> f64 {
        bytes as f64 / self.median_us * 1e-3
    }

    /// Teraflops, if a run does that many operations.
    pub fn tflops(&self, operations: f64) -> f64 {
        operations / self.median_us * 1e-6
    }
}

/// Times `work`, which queues its work on the default stream of `device`, or does it on the CPU.
///
/// # Errors
/// What `work` returns, or a failure of what it queued.
pub fn do_bench(device: &Device, mut work: impl FnMut() -> Result<()>) -> Result<Stats> {
    let stats = do_bench_interleaved(device, &mut [&mut work])?;
    Ok(stats[0])
}

/// Times two pieces of work that take turns, so that their ratio means something.
///
/// # Errors
/// As [`do_bench`].
pub fn do_bench_paired(
    device: &Device,
    mut first: impl FnMut() -> Result<()>,
    mut second: impl FnMut() -> Result<()>,
) -> Result<(Stats, Stats)> {
    let stats = do_bench_interleaved(device, &mut [&mut first, &mut second])?;
    Ok((stats[0], stats[1]))
}

/// Times any number of pieces of work that take turns; the statistics are in their order.
///
/// # Errors
/// As [`do_bench`].
pub fn do_bench_interleaved(device: &Device, works: &mut [&mut dyn FnMut() -> Result<()>]) -> Result<Vec<Stats>> {
    const WARM_UP_MS: f64 = 25.0;
    const TIMED_MS: f64 = 100.0;
    const ESTIMATE_RUNS: usize = 5;
    /// Where a run takes no time at all, more samples tell nothing more.
    const MOST_RUNS: f64 = 10_000.0;

    let mut timer = Timer::new(device.stream(), FLUSH_BYTES)?;
    for work in works.iter_mut() {
        work()?;
    }
    timer.stream.synchronize()?;

    // The estimate is of a whole turn, flushing included, as that is what takes the time.
    let start = Instant::now();
    timer.rounds(works, ESTIMATE_RUNS)?;
    let turn_ms = start.elapsed().as_secs_f64() * 1e3 / ESTIMATE_RUNS as f64;
    let runs = |ms: f64| (works.len() as f64 * ms / turn_ms).clamp(1.0, MOST_RUNS) as usize;
    let (warm_up, timed) = (runs(WARM_UP_MS), runs(TIMED_MS));
    timer.rounds(works, warm_up)?;
    Ok(timer.rounds(works, timed)?.into_iter().map(Stats::of).collect())
}

/// What is written to empty the cache, as Triton's `do_bench` does: several times what any GPU has.
pub(crate) const FLUSH_BYTES: usize = 256 << 20;

/// Times work on one stream by events, with the L2 cache emptied before each run.
pub(crate) struct Timer {
    stream: Stream,
    /// On a GPU, what is zeroed to empty the cache; none if there is no memory for it.
    flush: Option<Tensor<u8>>,
    /// Start and end of each run, used again in the next round.
    events: Vec<(Event, Event)>,
}

impl Timer {
    pub(crate) fn new(stream: &Stream, flush_bytes: usize) -> Result<Timer> {
        let device = stream.device();
        let mut flush = if device.is_cuda() { device.empty::<u8>(flush_bytes).ok() } else { None };
        if let Some(buffer) = &mut flush {
            buffer.set_stream(stream)?;
        }
        Ok(Timer { stream: stream.clone(), flush, events: Vec::new() })
    }

    /// Queues one run between the `n`-th pair of events.
    pub(crate) fn run(&mut self, n: usize, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        while self.events.len() <= n {
            let device = self.stream.device();
            self.events.push((Event::new(device)?, Event::new(device)?));
        }
        if let Some(buffer) = &mut self.flush {
            buffer.fill(0)?;
        }
        self.events[n].0.record(&self.stream)?;
        work()?;
        self.events[n].1.record(&self.stream)
    }

    /// Microseconds between the `n`-th pair of events, once the stream is done with them.
    pub(crate) fn elapsed_us(&self, n: usize) -> Result<f64> {
        let (start, end) = &self.events[n];
        Ok(f64::from(start.elapsed_ms(end)?) * 1e3)
    }

    /// Lets all works take turns that often; times for each.
    fn rounds(&mut self, works: &mut [&mut dyn FnMut() -> Result<()>], rounds: usize) -> Result<Vec<Vec<f64>>> {
        let count = works.len();
        for round in 0..rounds {
            for (i, work) in works.iter_mut().enumerate() {
                self.run(round * count + i, work)?;
            }
        }
        self.stream.synchronize()?;
        (0..count).map(|i| (0..rounds).map(|round| self.elapsed_us(round * count + i)).collect()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate() {
        let stats = Stats::of(vec![5.0, 1.0, 2.0, 4.0, 3.0, 6.0]);
        assert_eq!((stats.median_us, stats.p20_us, stats.p80_us), (3.5, 2.0, 5.0));
        assert_eq!((stats.min_us, stats.mean_us, stats.samples), (1.0, 3.5, 6));
        assert!(Stats::of(Vec::new()).median_us.is_nan());
        assert_eq!((stats.gb_per_s(7000), stats.tflops(7e6)), (2.0, 2.0));
    }

    #[test]
    fn peers_take_turns_and_the_slow_one_is_slower() {
        let order = std::cell::RefCell::new(Vec::new());
        let sleep = |name, us| {
            order.borrow_mut().push(name);
            std::thread::sleep(std::time::Duration::from_micros(us));
            Ok(())
        };
        let (fast, slow) = do_bench_paired(&Device::cpu(), || sleep('a', 500), || sleep('b', 3000)).unwrap();
        assert!(fast.median_us >= 500.0 && fast.median_us < slow.median_us, "{fast:?} {slow:?}");
        assert_eq!(fast.samples, slow.samples);
        assert!(order.borrow().chunks(2).all(|turn| turn == ['a', 'b']));
    }

    #[test]
    fn an_error_of_the_work_ends_the_timing() {
        let result = do_bench(&Device::cpu(), || Err(crate::Error::EventNotRecorded));
        assert!(matches!(result, Err(crate::Error::EventNotRecorded)));
    }
}
