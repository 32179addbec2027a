//! A call of an autotuned kernel: the fastest configuration for its key, found at the first launch.

use std::sync::Arc;

use super::race::{median, race, winner};
use super::{Kept, Outcome, Report, Trial, TuneConfig, Tuner, alone, recall, with_key};
use crate::args::Args;
use crate::bench::{FLUSH_BYTES, Timer};
use crate::gpu::{self, Gpu};
use crate::grid::IntoGrid;
use crate::launch::{NoGrid, Place, run_on_cpu};
use crate::module::CudaGpu;
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
    kept: Kept,
    grid: G,
    stream: Option<&'a Stream>,
    checked: bool,
}

impl<'a, const WORDS: usize, const KEY: usize, C: TuneConfig> AutotunedLaunch<'a, WORDS, KEY, C> {
    /// A call of the kernel with these arguments; the words of `key` that configurations write may be anything, always the same.
    #[doc(hidden)]
    #[inline]
    pub fn new(args: Args<'a, WORDS>, key: [u64; KEY], tuner: &'static Tuner<C>, kept: Kept) -> Self {
        AutotunedLaunch { args, key, tuner, kept, grid: NoGrid, stream: None, checked: false }
    }

    /// How many programs run with a configuration, as in `.grid(|config| cdiv(n, config.BLOCK_SIZE))`.
    #[inline]
    pub fn grid<G: IntoGrid, F: Fn(C) -> G>(self, grid: F) -> AutotunedLaunch<'a, WORDS, KEY, C, F> {
        let AutotunedLaunch { args, key, tuner, kept, grid: NoGrid, stream, checked } = self;
        AutotunedLaunch { args, key, tuner, kept, grid, stream, checked }
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
        match Place::of(&mut self.args, self.stream)? {
            Place::Cpu => {
                let first = self.first(Device::cpu())?;
                let grid = self.grid_of(first)?;
                if grid.contains(&0) { Ok(()) } else { run_on_cpu(&self.args, &self.key_of(first), grid, self.checked) }
            }
            // How long a simulation takes says nothing about a GPU.
            Place::Sim(sim) => self.run_first(sim),
            // Looking for a mistake needs no tuning, nobody wants to read what each trial prints, and one configuration has no rivals.
            Place::Cuda(cuda) if self.checked || self.args.kernel().prints() || self.kept().nth(1).is_none() => self.run_first(cuda),
            Place::Cuda(cuda) => {
                let first = self.first(cuda.device)?;
                let report = self.with_tuning_key(cuda, |key| match self.tuner.find(key) {
                    Some(report) => Ok(Some(report)),
                    // Nothing to do is nothing to tune.
                    None if self.grid_of(first)?.contains(&0) => Ok(None),
                    None => self.tune(key, cuda).map(Some),
                })?;
                let Some(report) = report else { return Ok(()) };
                let config = report.chosen().map_or(first, |trial| trial.config);
                self.run(config, self.grid_of(config)?, cuda)
            }
        }
    }

    /// What was tried for this key and what was chosen; tunes first where it is new.
    ///
    /// # Errors
    /// As [`AutotunedLaunch::launch`].
    pub fn report(mut self) -> Result<Arc<Report<C>>> {
        match Place::of(&mut self.args, self.stream)? {
            Place::Cuda(cuda) if self.kept().nth(1).is_some() && !self.args.kernel().prints() => {
                self.with_tuning_key(cuda, |key| match self.tuner.find(key) {
                    Some(report) => Ok(report),
                    None => self.tune(key, cuda),
                })
            }
            Place::Cuda(cuda) => Ok(Arc::new(self.untimed(cuda.device))),
            Place::Sim(sim) => Ok(Arc::new(self.untimed(sim.device()))),
            Place::Cpu => Ok(Arc::new(self.untimed(Device::cpu()))),
        }
    }

    /// The configurations that are left, in their order.
    fn kept(&self) -> impl Iterator<Item = C> {
        self.tuner.configs().iter().enumerate().filter(|(i, _)| self.kept.has(*i)).map(|(_, config)| *config)
    }

    /// The first configuration that is left is chosen without a race.
    fn untimed(&self, device: Device) -> Report<C> {
        let first = (0..self.tuner.configs().len()).find(|i| self.kept.has(*i));
        let trials = self.tuner.configs().iter().enumerate();
        let trials = trials.map(|(i, &config)| Trial {
            config,
            outcome: if self.kept.has(i) { Outcome::Untimed } else { Outcome::Pruned },
            chosen: first == Some(i),
        });
        Report { kernel: self.args.kernel().name(), device, trials: trials.collect() }
    }

    fn first(&self, device: Device) -> Result<C> {
        let none = || {
            let failures = self.tuner.configs().iter().map(|config| format!("  {config:?}: pruned for these arguments"));
            Error::NoConfig { kernel: self.args.kernel().name(), device, failures: failures.collect() }
        };
        self.kept().next().ok_or_else(none)
    }

    fn key_of(&self, config: C) -> [u64; KEY] {
        let mut key = self.key;
        config.write_key(&mut key);
        key
    }

    fn grid_of(&self, config: C) -> Result<[u32; 3]> {
        (self.grid)(config).into_grid().check(self.args.kernel().name())
    }

    /// Runs the first configuration that the device can run at all.
    fn run_first(&self, gpu: impl Gpu) -> Result<()> {
        let first = self.first(gpu.device())?;
        let mut outcome = self.run(first, self.grid_of(first)?, gpu);
        for config in self.kept().skip(1) {
            // What the kernel does, and to what, is no other configuration's business.
            if !matches!(outcome, Err(Error::Compile { .. } | Error::SharedMemory { .. })) {
                break;
            }
            outcome = self.run(config, self.grid_of(config)?, gpu);
        }
        outcome
    }

    fn run(&self, config: C, grid: [u32; 3], gpu: impl Gpu) -> Result<()> {
        if grid.contains(&0) {
            return Ok(());
        }
        gpu::run(gpu, &self.args, &self.key_of(config), Some(config.schedule()), grid, self.checked)
    }

    /// The tuning key: the device, the configurations that are left, the key arguments, and the kernel's key without the tuned constants.
    #[inline]
    fn with_tuning_key<R>(&self, gpu: CudaGpu<'_>, look: impl FnOnce(&[u64]) -> R) -> R {
        let mut words = [0; WORDS];
        let mut count = 0;
        for &word in self.tuner.key_words {
            if let (Some(place), Some(&value)) = (words.get_mut(count), self.args.words().get(word)) {
                *place = value;
                count += 1;
            }
        }
        with_key(&[&[gpu.cuda.ordinal as u64], &self.kept.words(), &words[..count], &self.key], look)
    }

    #[cold]
    fn tune(&self, key: &[u64], gpu: CudaGpu<'_>) -> Result<Arc<Report<C>>> {
        let configs: Vec<C> = self.kept().collect();
        let kernel = self.args.kernel().name();
        // The user's function is asked first: it may do anything, tuning another kernel included.
        let grids: Vec<_> = configs.iter().map(|&config| self.grid_of(config)).collect();
        let run = |i: usize, grid: [u32; 3]| self.run(configs[i], grid, gpu);
        let _guard = alone();
        if let Some(report) = self.tuner.find(key) {
            return Ok(report);
        }
        // The first word says which of the devices it is, and the next process may number them otherwise.
        let unknown = match recall::recall(self.args.kernel(), gpu, self.tuner.configs(), |config| self.key_of(config), &key[1..]) {
            Ok(report) => return Ok(self.tuner.remember(key, report)),
            Err(unknown) => unknown,
        };
        // One run of each, untimed: it loads the code, and shows who runs at all. What one leaves undone on the GPU no
        // other can outlive, so that ends the tuning.
        let outcomes = grids.into_iter().enumerate().map(|(i, grid)| grid.and_then(|grid| run(i, grid).map(|()| grid)));
        let outcomes: Vec<_> = outcomes.collect();
        crate::stream::synchronize(gpu.stream)?;
        let able: Vec<_> = outcomes.iter().enumerate().filter_map(|(i, outcome)| Some((i, *outcome.as_ref().ok()?))).collect();

        let mut timer = Timer::new(&gpu.stream(), FLUSH_BYTES)?;
        let times = race(able.len(), |alive| {
            for (n, &candidate) in alive.iter().enumerate() {
                let (i, grid) = able[candidate];
                timer.run(n, &mut || run(i, grid))?;
            }
            crate::stream::synchronize(gpu.stream)?;
            (0..alive.len()).map(|n| timer.elapsed_us(n)).collect()
        })?;

        let fastest = winner(&times).map(|candidate| able[candidate].0);
        let mut times = times.iter();
        let mut raced = outcomes.into_iter().enumerate();
        let trials = self.tuner.configs().iter().enumerate().map(|(place, &config)| {
            let outcome = self.kept.has(place).then(|| raced.next()).flatten();
            let chosen = outcome.as_ref().is_some_and(|(i, _)| fastest == Some(*i));
            let outcome = match outcome {
                None => Outcome::Pruned,
                Some((_, Err(error))) => Outcome::Failed(error.to_string()),
                Some((_, Ok(_))) => {
                    let times = times.next().map_or(&[][..], |times| times);
                    Outcome::Measured { median_us: median(times), samples: times.len() }
                }
            };
            Trial { config, outcome, chosen }
        });
        let report = Report { kernel, device: gpu.device, trials: trials.collect() };
        if fastest.is_none() {
            let failures = report.trials.iter().map(|trial| match &trial.outcome {
                Outcome::Failed(reason) => format!("  {:?}: {reason}", trial.config),
                Outcome::Pruned => format!("  {:?}: pruned for these arguments", trial.config),
                _ => format!("  {:?}: not timed", trial.config),
            });
            return Err(Error::NoConfig { kernel, device: gpu.device, failures: failures.collect() });
        }
        unknown.keep(&report);
        Ok(self.tuner.remember(key, report))
    }
}
