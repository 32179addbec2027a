//! Timing of work on a device, by the method of Triton's `do_bench`.
//!
//! 1. One run initialises, and five runs estimate the time of a run.
//! 2. Warm-up runs for 25 ms.
//! 3. As many timed runs follow as fit in 100 ms.
//!
//! Before every run a buffer of 256 MiB is zeroed, so that none of the work's data is in the L2 cache. If there is no memory for the
//! buffer, a warning on standard error says so. A pair of events times each run on the GPU. Works that are compared run alternately, in
//! another order each time, so that a drifting clock favours none.
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
//!
//! [`do_bench_paired`] decides whether one of two works is faster or whether the difference is noise. [`Roof`] gives the peak performance
//! of the device. With the feature `bench-report`, `perf_report` times several works over many sizes and writes Markdown, JSON and a plot.

#[cfg(feature = "bench-report")]
pub mod chart;
mod compare;
#[cfg(feature = "bench-report")]
mod report;
mod roof;
mod stats;
mod timer;

pub use compare::{Comparison, Verdict, do_bench_paired};
#[cfg(feature = "bench-report")]
pub use report::{Ahead, Contender, PerfReport, Point, Report, ReportError, Series, Step, Unit, perf_report};
pub use roof::{Achieved, Bound, Roof, Work};
pub use stats::Stats;
pub(crate) use timer::{FLUSH_BYTES, Timer};

use std::time::Duration;

use crate::{Device, Result};

/// Times `work`, which queues its work on the default stream of `device`, or does it on the CPU.
///
/// # Errors
/// The error of `work` or of the work that it queued.
pub fn do_bench(device: &Device, mut work: impl FnMut() -> Result<()>) -> Result<Stats> {
    let stats = do_bench_interleaved(device, &mut [&mut work])?;
    Ok(stats[0])
}

/// As [`do_bench`], with a rest before each run: the GPU is idle for so long.
///
/// A GPU that reaches its power limit lowers its clocks, by how much it computes on average. So processes that are compared must rest for the same time.
///
/// # Errors
/// As [`do_bench`].
pub fn do_bench_with_rests(device: &Device, rest: Duration, mut work: impl FnMut() -> Result<()>) -> Result<Stats> {
    Ok(Stats::of(timer::in_rounds(device, 1, rest, &mut [&mut work])?.swap_remove(0)))
}

/// Times several works alternately. The statistics are in the order of the works.
///
/// # Errors
/// As [`do_bench`].
pub fn do_bench_interleaved(device: &Device, works: &mut [&mut dyn FnMut() -> Result<()>]) -> Result<Vec<Stats>> {
    Ok(timer::in_rounds(device, 1, Duration::ZERO, works)?.into_iter().map(Stats::of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_run_in_rounds_and_the_slow_one_is_slower() {
        let order = std::cell::RefCell::new(Vec::new());
        let sleep = |name, us| {
            order.borrow_mut().push(name);
            std::thread::sleep(std::time::Duration::from_micros(us));
            Ok(())
        };
        let compared = do_bench_paired(&Device::cpu(), || sleep('a', 500), || sleep('b', 3000)).unwrap();
        let (fast, slow) = (compared.first, compared.second);
        assert!(fast.median_us >= 500.0 && fast.median_us < slow.median_us, "{fast:?} {slow:?}");
        assert_eq!((fast.samples, compared.verdict()), (slow.samples, Verdict::FirstIsFaster));
        assert!(order.borrow().chunks(2).all(|round| round == ['a', 'b'] || round == ['b', 'a']));
    }

    #[test]
    fn an_error_of_the_work_ends_the_timing() {
        let result = do_bench(&Device::cpu(), || Err(crate::Error::EventNotRecorded));
        assert!(matches!(result, Err(crate::Error::EventNotRecorded)));
    }
}
