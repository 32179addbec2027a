//! A call of an autotuned kernel: the fastest configuration for its key, found at the first launch.

use std::sync::Arc;

use cudarc::driver::CudaStream;

use super::race::{median, race, winner};
use super::{Outcome, Report, Trial, TuneConfig, Tuner, alone, with_key};
use crate::args::Args;
use crate::bench::Timer;
use crate::device::Cuda;
use crate::grid::IntoGrid;
use crate::kernel::Schedule;
use crate::launch::{NoGrid, Place, checked_on_cuda, enqueue_with, run_on_cpu};
use crate::{Device, Error, Result, Stream};

/// A call of an autotuned kernel, not run yet. Like a [`Launch`](crate::Launch), but [`AutotunedLaunch::grid`] takes a
/// function of the configuration.
///
/// The first launch for a key runs the kernel many times, see [`tune`](crate::tune).
#[must_use = "a launch does nothing until `.grid(..).launch()`"]
pub struct AutotunedLaunch<'a, const WORDS: usize, const KEY: usize, C: TuneConfig, G = NoGrid> {
    args: Args<'a, WORDS>,
    /// The kernel's key; the places of tuned constants are free.
    key: [u64; KEY],
    tuner: &'static Tuner<C>,
    grid: G,
    stream: Option<&'a Stream>,
    checked: bool,
}

impl<'a, const WORDS: usize, const KEY: usize, C: TuneConfig> AutotunedLaunch<'a, WORDS, KEY, C> {
    /// A call of the kernel with these arguments; the words of `key` that configurations write may be anything, always the same.
    #[doc(hidden)]
    #[inline]
    pub fn new(args: Args<'a, WORDS>, key: [u64; KEY], tuner: &'static Tuner<C>) -> Self {
        AutotunedLaunch { args, key, tuner, grid: NoGrid, stream: None, checked: false }
    }

    /// How many programs run with a configuration, as in `.grid(|config| cdiv(n, config.BLOCK_SIZE))`.
    #[inline]
    pub fn grid<G: IntoGrid, F: Fn(C) -> G>(self, grid: F) -> AutotunedLaunch<'a, WORDS, KEY, C, F> {
        let AutotunedLaunch { args, key, tuner, grid: NoGrid, stream, checked } = self;
        AutotunedLaunch { args, key, tuner, grid, stream, checked }
    }
}

impl<'a, const WORDS: usize, const KEY: usize, C: TuneConfig, G> AutotunedLaunch<'a, WORDS, KEY, C, G> {
    /// Runs on this stream, see [`Launch::on`](crate::Launch::on).
    #[inline]
    pub fn on(mut self, stream: &'a Stream) -> Self {
        self.stream = Some(stream);
        self
    }

    /// Reports the first access outside a tensor, see [`Launch::checked`](crate::Launch::checked).
    #[inline]
    pub fn checked(mut self) -> Self {
        self.checked = true;
        self
    }
}

impl<'a, const WORDS: usize, const KEY: usize, C, F, G> AutotunedLaunch<'a, WORDS, KEY, C, F>
where
    C: TuneConfig,
    F: Fn(C) -> G,
    G: IntoGrid,
{
    /// Runs it, and tunes first where this key is new.
    ///
    /// # Errors
    /// As [`Launch::launch`](crate::Launch::launch), and [`Error::NoConfig`] if no configuration runs.
    #[inline]
    pub fn launch(mut self) -> Result<()> {
        let place = Place::of(&mut self.args, self.stream)?;
        let first = self.first(place)?;
        if self.grid_of(first)?.contains(&0) {
            return Ok(());
        }
        match place {
            Place::Cpu => {
                let (key, grid) = (self.key_of(first), self.grid_of(first)?);
                run_on_cpu(&self.args, &key, grid, self.checked)
            }
            Place::Cuda { device, .. } if self.checked => checked_on_cuda(&self.args, device),
            Place::Cuda { device, cuda, stream } => {
                let report = self.tuned(device, cuda, stream)?;
                let config = report.chosen().map_or(first, |trial| trial.config);
                self.enqueue(config, (device, cuda, stream))
            }
        }
    }

    /// What was tried for this key and what was chosen; tunes first where it is new.
    ///
    /// # Errors
    /// As [`AutotunedLaunch::launch`].
    pub fn report(mut self) -> Result<Arc<Report<C>>> {
        match Place::of(&mut self.args, self.stream)? {
            Place::Cuda { device, cuda, stream } => self.tuned(device, cuda, stream),
            Place::Cpu => {
                let trials = self.tuner.configs().iter().enumerate();
                let trials = trials.map(|(i, &config)| Trial { config, outcome: Outcome::Untimed, chosen: i == 0 });
                Ok(Arc::new(Report { kernel: self.args.kernel().name(), device: Device::cpu(), trials: trials.collect() }))
            }
        }
    }

    fn first(&self, place: Place<'_>) -> Result<C> {
        self.tuner.configs().first().copied().ok_or_else(|| {
            let device = match place {
                Place::Cpu => Device::cpu(),
                Place::Cuda { device, .. } => device,
            };
            Error::NoConfig { kernel: self.args.kernel().name(), device, failures: Vec::new() }
        })
    }

    fn key_of(&self, config: C) -> [u64; KEY] {
        let mut key = self.key;
        config.write_key(&mut key);
        key
    }

    fn grid_of(&self, config: C) -> Result<[u32; 3]> {
        (self.grid)(config).into_grid().check(self.args.kernel().name())
    }

    fn enqueue(&self, config: C, place: (Device, &'static Cuda, &Arc<CudaStream>)) -> Result<()> {
        let schedule = Schedule { num_warps: config.num_warps(), num_stages: config.num_stages() };
        let grid = self.grid_of(config)?;
        if grid.contains(&0) {
            return Ok(());
        }
        enqueue_with(&self.args, &self.key_of(config), schedule, grid, place)
    }

    /// What was chosen for this key, now or before.
    #[inline]
    fn tuned(&self, device: Device, cuda: &'static Cuda, stream: &Arc<CudaStream>) -> Result<Arc<Report<C>>> {
        let mut words = [0; WORDS];
        let mut count = 0;
        for &word in self.tuner.key_words {
            if let (Some(place), Some(&value)) = (words.get_mut(count), self.args.words().get(word)) {
                *place = value;
                count += 1;
            }
        }
        let key = [&[cuda.ordinal as u64], &words[..count], &self.key];
        with_key(&key, |key| match self.tuner.find(key) {
            Some(report) => Ok(report),
            None => self.tune(key, device, cuda, stream),
        })
    }

    #[cold]
    fn tune(&self, key: &[u64], device: Device, cuda: &'static Cuda, stream: &Arc<CudaStream>) -> Result<Arc<Report<C>>> {
        let _guard = alone();
        if let Some(report) = self.tuner.find(key) {
            return Ok(report);
        }
        let configs = self.tuner.configs();
        let kernel = self.args.kernel().name();
        // One run of each, untimed: it loads the code, and shows who runs at all. What one leaves undone on the GPU no
        // other can outlive, so that ends the tuning.
        let outcomes = configs.iter().map(|&config| self.enqueue(config, (device, cuda, stream)));
        let outcomes: Vec<_> = outcomes.collect();
        crate::stream::synchronize(stream)?;
        let able: Vec<usize> = (0..configs.len()).filter(|&i| outcomes[i].is_ok()).collect();

        // Twice the cache, so that nothing of it is left.
        let mut timer = Timer::new(&Stream::from_launch(device, stream), 2 * cuda.l2_bytes)?;
        let times = race(able.len(), |alive| {
            for (n, &candidate) in alive.iter().enumerate() {
                timer.run(n, &mut || self.enqueue(configs[able[candidate]], (device, cuda, stream)))?;
            }
            crate::stream::synchronize(stream)?;
            (0..alive.len()).map(|n| timer.elapsed_us(n)).collect()
        })?;

        let fastest = winner(&times).map(|candidate| able[candidate]);
        let mut times = times.iter();
        let trials = configs.iter().zip(outcomes).enumerate().map(|(i, (&config, outcome))| {
            let outcome = match (outcome, &mut times) {
                (Err(error), _) => Outcome::Failed(error.to_string()),
                (Ok(()), times) => {
                    let times = times.next().map_or(&[][..], |times| times);
                    Outcome::Measured { median_us: median(times), samples: times.len() }
                }
            };
            Trial { config, outcome, chosen: fastest == Some(i) }
        });
        let report = Report { kernel, device, trials: trials.collect() };
        if fastest.is_none() {
            let failures = report.trials.iter().map(|trial| match &trial.outcome {
                Outcome::Failed(reason) => format!("  {:?}: {reason}", trial.config),
                _ => format!("  {:?}: not timed", trial.config),
            });
            return Err(Error::NoConfig { kernel, device, failures: failures.collect() });
        }
        Ok(self.tuner.remember(key, report))
    }
}
