//! The timer: events around each run, an L2 flush before it, and alternating runs.

use std::time::{Duration, Instant};

use crate::{Device, Error, Event, Result, Stream, Tensor, launch::prints, profile};

/// The size of the buffer for the L2 flush, as in Triton's `do_bench`: several times the L2 cache of any GPU.
pub(crate) const FLUSH_BYTES: usize = 256 << 20;

/// The run times of each work in microseconds, by round. A round runs every work once. Warm-up takes 25 ms for each work; then as many
/// rounds run as fit in 100 ms for each work, but at least `least_rounds`. The device is idle for `rest` before each run.
pub(super) fn in_rounds(
    device: &Device,
    least_rounds: usize,
    rest: Duration,
    works: &mut [&mut dyn FnMut() -> Result<()>],
) -> Result<Vec<Vec<f64>>> {
    const WARM_UP_MS: f64 = 25.0;
    const TIMED_MS: f64 = 100.0;
    const ESTIMATE_RUNS: usize = 5;
    /// A limit for runs that take no time at all; more samples give no more information.
    const MOST_RUNS: f64 = 10_000.0;

    let _undisturbed = profile::undisturbed(|| "benchmark".to_owned());
    let mut timer = Timer::new(device.stream(), FLUSH_BYTES)?;
    timer.rest = rest;
    for work in works.iter_mut() {
        work()?;
    }
    timer.stream.synchronize()?;

    // The estimate is for a whole round including the flushes, which count towards the time limits.
    let start = Instant::now();
    timer.rounds(works, ESTIMATE_RUNS)?;
    let round_ms = start.elapsed().as_secs_f64() * 1e3 / ESTIMATE_RUNS as f64;
    let runs = |ms: f64| (works.len() as f64 * ms / round_ms).clamp(1.0, MOST_RUNS) as usize;
    let (warm_up, timed) = (runs(WARM_UP_MS), runs(TIMED_MS).max(least_rounds));
    timer.rounds(works, warm_up)?;
    timer.rounds(works, timed)
}

/// Times work on one stream with events, and flushes the L2 cache before each run.
pub(crate) struct Timer {
    stream: Stream,
    /// The buffer that is zeroed to flush the L2 cache. None without a cache to flush, or without memory for it.
    flush: Option<Tensor<u8>>,
    /// The events before and after each run, reused in the next round.
    events: Vec<(Event, Event)>,
    /// How long the device is idle before each run.
    pub(crate) rest: Duration,
    /// When the host saw that the device was idle.
    idle_since: Instant,
}

impl Timer {
    pub(crate) fn new(stream: &Stream, flush_bytes: usize) -> Result<Timer> {
        let device = stream.device();
        // The CPU's caches are left as programs find them, and a simulated GPU has none.
        let has_cache = device.cuda_info().is_some_and(|cuda| cuda.cache_bytes > 0);
        let mut flush = if has_cache { unless_memory_is_short(device.empty::<u8>(flush_bytes))? } else { None };
        if let Some(buffer) = &mut flush {
            buffer.set_stream(stream)?;
        }
        Ok(Timer { stream: stream.clone(), flush, events: Vec::new(), rest: Duration::ZERO, idle_since: Instant::now() })
    }

    /// Waits for earlier runs, flushes the L2 cache, and queues a run between the `n`-th pair of events.
    pub(crate) fn run(&mut self, n: usize, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        while self.events.len() <= n {
            let device = self.stream.device();
            self.events.push((Event::new(device)?, Event::new(device)?));
        }
        self.let_go()?;
        // The host does not sleep: it would wake late.
        while self.idle_since.elapsed() < self.rest {
            std::hint::spin_loop();
        }
        if let Some(buffer) = &mut self.flush {
            buffer.fill(0)?;
        }
        self.events[n].0.record(&self.stream)?;
        work()?;
        self.events[n].1.record(&self.stream)
    }

    /// Waits, and resets persisting L2 lines to normal. Zero-filling does not evict lines that a kernel asked the L2 to keep
    /// (`evict = "evict_last"`). The next work on the same data would hit these lines and look faster through a hint that it does not use.
    fn let_go(&mut self) -> Result<()> {
        match self.stream.device().cuda_info() {
            Some(cuda) if self.flush.is_some() => {
                self.stream.synchronize()?;
                self.idle_since = Instant::now();
                cuda.reset_kept_lines()
            }
            _ => Ok(()),
        }
    }

    /// The microseconds between the `n`-th pair of events, after the stream has reached them.
    pub(crate) fn elapsed_us(&self, n: usize) -> Result<f64> {
        let (start, end) = &self.events[n];
        Ok(f64::from(start.elapsed_ms(end)?) * 1e3)
    }

    /// Runs all works in rounds and returns the times of each. Every round begins with another work, so that no work always runs after the
    /// same one.
    fn rounds(&mut self, works: &mut [&mut dyn FnMut() -> Result<()>], rounds: usize) -> Result<Vec<Vec<f64>>> {
        let count = works.len();
        for round in 0..rounds {
            for position in 0..count {
                let i = (round + position) % count;
                self.run(round * count + i, works[i])?;
            }
        }
        self.stream.synchronize()?;
        self.let_go()?;
        (0..count).map(|i| (0..rounds).map(|round| self.elapsed_us(round * count + i)).collect()).collect()
    }
}

/// If there is no memory for the flush buffer, timing works without the flush, and a warning says so.
fn unless_memory_is_short<T>(buffer: Result<T>) -> Result<Option<T>> {
    match buffer {
        Ok(buffer) => Ok(Some(buffer)),
        Err(error @ Error::OutOfMemory { .. }) => {
            prints::show(format!(
                "warning: {error}; so the L2 cache is not emptied between runs that are timed, and they may find their data there"
            ));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::FreeBytes;

    #[test]
    fn runs_are_timed_without_memory_and_without_a_device_are_not() {
        let short = Error::OutOfMemory { device: Device::cpu(), requested: 1 << 28, free: FreeBytes(Some(1 << 20)) };
        let (without, lines) = prints::capture_prints(|| unless_memory_is_short::<()>(Err(short)));
        assert!(matches!(without, Ok(None)) && lines.len() == 1, "{lines:?}");
        assert!(
            lines[0].starts_with("warning: out of memory on `cpu`: 268435456 bytes") && lines[0].contains("the L2 cache is not emptied")
        );
        assert!(matches!(unless_memory_is_short::<()>(Err(Error::NoDriver)), Err(Error::NoDriver)));
        assert!(matches!(unless_memory_is_short(Ok(7)), Ok(Some(7))));
    }

    #[test]
    fn a_slow_work_has_as_many_rounds_as_are_wanted() {
        let mut slow = || {
            std::thread::sleep(std::time::Duration::from_millis(60));
            Ok(())
        };
        let rounds =
            |least, work: &mut dyn FnMut() -> Result<()>| in_rounds(&Device::cpu(), least, Duration::ZERO, &mut [work]).unwrap()[0].len();
        assert_eq!((rounds(1, &mut slow), rounds(4, &mut slow)), (1, 4));
    }

    #[test]
    fn every_round_begins_with_another() {
        let order = std::cell::RefCell::new(String::new());
        let name = |name| {
            order.borrow_mut().push(name);
            Ok(())
        };
        let (mut a, mut b, mut c) = (|| name('a'), || name('b'), || name('c'));
        let mut timer = Timer::new(Device::cpu().stream(), FLUSH_BYTES).unwrap();
        let times = timer.rounds(&mut [&mut a, &mut b, &mut c], 4).unwrap();
        assert_eq!((order.into_inner().as_str(), times.len(), times[2].len()), ("abcbcacababc", 3, 4));
    }
}
