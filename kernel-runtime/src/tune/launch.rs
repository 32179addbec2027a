//! A call of an autotuned kernel. It uses the fastest configuration for its key, which the first launch finds.

use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use kernel_lang::Schedule;

use super::key::TuningKey;
use super::recorded;
use super::rules::ConfigSet;
use super::{Origin, Outcome, Report, Rules, Trial, TuneConfig, Tuner, Winner};
use crate::cache::Programs;
use crate::kernel::gpu::Gpu;
use crate::kernel::module::CudaGpu;
use crate::launch::args::Args;
use crate::launch::call::{Call, Mode};
use crate::launch::fact::Key;
use crate::launch::grid::{GridRule, HasGridOf, IntoGrid};
use crate::launch::recording::{Program, Request};
use crate::launch::{LaunchDevice, NoGrid};
use crate::{Device, Error, Result, Stream, profile};

/// A call of an autotuned kernel that has not run yet. Like a [`Launch`](crate::Launch), but [`AutotunedLaunch::grid`] takes a function of
/// the configuration. A kernel with heuristics but without `#[autotune]` has one configuration, which is not timed.
///
/// The first launch of a key runs the kernel many times, see [`tune`](crate::tune).
#[must_use = "a launch does nothing until `.grid(..).launch()`"]
pub struct AutotunedLaunch<'a, const WORDS: usize, const KEY: usize, C: TuneConfig, G = NoGrid> {
    pub(super) args: Args<'a, WORDS>,
    /// The kernel's key. Configurations overwrite the words of tuned constants.
    key: [u64; KEY],
    pub(super) tuner: &'static Tuner<C>,
    pub(super) rules: &'static Rules<C, WORDS>,
    grid: G,
    stream: Option<&'a Stream>,
    mode: Mode,
    overlaps: bool,
}

impl<'a, const WORDS: usize, const KEY: usize, C: TuneConfig> AutotunedLaunch<'a, WORDS, KEY, C> {
    /// A call of the kernel with these arguments. The words of `key` that configurations overwrite may have any value, but always the same
    /// one.
    ///
    /// # Safety
    /// As [`Launch::new`](crate::Launch::new), for the key with every configuration of the tuner. The pointers that the tuner zeroes or
    /// restores must be ones that the kernel may write.
    #[doc(hidden)]
    #[inline]
    pub unsafe fn new(args: Args<'a, WORDS>, key: [u64; KEY], tuner: &'static Tuner<C>, rules: &'static Rules<C, WORDS>) -> Self {
        AutotunedLaunch { args, key, tuner, rules, grid: NoGrid, stream: None, mode: Mode::default(), overlaps: false }
    }

    /// Sets the number of programs for a configuration, as in `.grid(|config| cdiv(n, config.BLOCK_SIZE))`.
    #[inline]
    pub fn grid<G: IntoGrid, F: GridRule<C, G>>(self, grid: F) -> AutotunedLaunch<'a, WORDS, KEY, C, F> {
        let AutotunedLaunch { args, key, tuner, rules, grid: NoGrid, stream, mode, overlaps } = self;
        AutotunedLaunch { args, key, tuner, rules, grid, stream, mode, overlaps }
    }
}

impl<'a, const WORDS: usize, const KEY: usize, C: TuneConfig, G> AutotunedLaunch<'a, WORDS, KEY, C, G> {
    /// Runs on this stream, see [`Launch::on`](crate::Launch::on).
    #[inline]
    pub fn on(mut self, stream: &'a Stream) -> Self {
        self.stream = Some(stream);
        self
    }

    /// Allows the launch to begin before the previous launch is complete, see
    /// [`Launch::overlap_previous`](crate::Launch::overlap_previous).
    #[inline]
    pub fn overlap_previous(mut self) -> Self {
        self.overlaps = true;
        self
    }

    /// Reports the first access outside a tensor, see [`Launch::checked`](crate::Launch::checked).
    #[inline]
    pub fn checked(mut self) -> Self {
        self.mode.checked = true;
        self
    }

    /// Does not wait for a variant that is not compiled yet, see [`Launch::compile_in_background`](crate::Launch::compile_in_background).
    /// Tuning still waits, because it times the variants that later launches use.
    #[inline]
    pub fn compile_in_background(mut self) -> Self {
        self.mode.in_background = true;
        self
    }
}

impl<const WORDS: usize, const KEY: usize, C: TuneConfig, F> AutotunedLaunch<'_, WORDS, KEY, C, F> {
    /// Launches the kernel. Tunes first if the key is new.
    ///
    /// # Errors
    /// As [`Launch::launch`](crate::Launch::launch), and [`Error::NoConfig`] if no configuration runs.
    #[inline]
    #[track_caller]
    pub fn launch(mut self) -> Result<()>
    where
        F: HasGridOf<C>,
    {
        let _line = profile::of_line(Location::caller());
        let device = match LaunchDevice::of(&mut self.args, self.stream) {
            Ok(device) => device,
            Err(error) => return self.record(error, Location::caller()),
        };
        match device {
            LaunchDevice::Cpu => self.run_first(self.unpruned(), Device::cpu(), |config| self.run_on_cpu(config)),
            LaunchDevice::Sim(sim) => self.launch_on(&sim),
            LaunchDevice::Cuda(cuda) => self.launch_on(&CudaGpu { overlaps: self.overlaps, ..cuda }),
        }
    }

    /// Launches the kernel with the first configuration for which `is_wanted` returns true, of those that `prune` leaves. Tunes nothing, and
    /// does not change which configuration [`AutotunedLaunch::launch`] uses. This is for measurements of a configuration that is known, such as
    /// under a profiler, which changes the times that tuning would compare.
    ///
    /// # Errors
    /// As [`Launch::launch`](crate::Launch::launch), and [`Error::NoConfig`] if no configuration is wanted.
    #[track_caller]
    pub fn launch_with(mut self, is_wanted: impl Fn(&C) -> bool) -> Result<()>
    where
        F: HasGridOf<C>,
    {
        let _line = profile::of_line(Location::caller());
        match LaunchDevice::of(&mut self.args, self.stream)? {
            LaunchDevice::Cpu => self.run_on_cpu(self.wanted(is_wanted, Device::cpu())?),
            LaunchDevice::Sim(sim) => self.run(self.wanted(is_wanted, sim.device())?, &sim),
            LaunchDevice::Cuda(cuda) => self.run(self.wanted(is_wanted, cuda.device())?, &CudaGpu { overlaps: self.overlaps, ..cuda }),
        }
    }

    /// Returns the trials for this key and the chosen configuration. Tunes first if the key is new. Apart from that, nothing is launched.
    /// Tensors keep their contents, except those that the kernel only writes and those that are zeroed before each run.
    ///
    /// # Errors
    /// As [`AutotunedLaunch::launch`].
    pub fn report(mut self) -> Result<Arc<Report<C>>>
    where
        F: HasGridOf<C>,
    {
        match LaunchDevice::of(&mut self.args, self.stream)? {
            LaunchDevice::Cpu => Ok(Arc::new(self.untimed(self.unpruned(), Device::cpu()))),
            LaunchDevice::Sim(sim) => self.report_on(&sim),
            LaunchDevice::Cuda(cuda) => self.report_on(&cuda),
        }
    }
}

impl<'a, const WORDS: usize, const KEY: usize, C, F> AutotunedLaunch<'a, WORDS, KEY, C, F>
where
    C: TuneConfig,
    F: HasGridOf<C>,
{
    /// Records a launch without memory, or returns the error that keeps it from running.
    #[cold]
    fn record(mut self, error: Error, location: &'static Location<'static>) -> Result<()> {
        let (key, tuner, rules, grid) = (self.key, self.tuner, self.rules, &self.grid);
        let is_placed = self.stream.is_some() || self.overlaps;
        let request = Request { args: &mut self.args, mode: self.mode, is_placed, location };
        request.record(error, &key, |args, recorded, _| {
            let words = recorded::known_words(args, recorded);
            let tuning = recorded::record(args.kernel(), key, (tuner, rules), &words, grid)?;
            let none = || Error::NoConfig { kernel: args.kernel().name(), device: Device::cpu(), failures: Vec::new() };
            let first = tuning.first().ok_or_else(none)?;
            Ok(Program { key: first.key.clone(), grid: first.grid.clone(), tuning: Some(Arc::new(tuning)) })
        })
    }

    #[inline]
    pub(super) fn launch_on(&self, gpu: &impl Gpu) -> Result<()> {
        let unpruned = self.unpruned();
        if self.is_untimed(unpruned) {
            return self.run_untimed(unpruned, gpu);
        }
        match self.winner(unpruned, gpu)? {
            Some(winner) if winner.refusals.are_none() => match self.run(self.config(winner.chosen), gpu) {
                Err(error) if is_of_config(&error) => self.run_another(winner, Some(error), gpu),
                done => done,
            },
            Some(winner) => self.run_another(winner, None, gpu),
            None => self.run_untimed(unpruned, gpu),
        }
    }

    fn report_on(&self, gpu: &impl Gpu) -> Result<Arc<Report<C>>> {
        let unpruned = self.unpruned();
        let winner = if self.is_untimed(unpruned) { None } else { self.winner(unpruned, gpu)? };
        Ok(winner.map_or_else(|| Arc::new(self.untimed(unpruned, gpu.device())), |winner| winner.report.clone()))
    }

    /// A checked launch looks for a mistake and needs no tuning; a kernel that prints would print in each trial; a single configuration has
    /// no rivals.
    #[inline]
    fn is_untimed(&self, unpruned: ConfigSet) -> bool {
        self.mode.checked || self.args.kernel().prints() || self.indices(unpruned).nth(1).is_none()
    }

    /// The result for the key; tunes if the key is new. None if there is nothing to tune: the grid is empty, or there is no memory for the
    /// copies.
    #[inline]
    fn winner(&self, unpruned: ConfigSet, gpu: &impl Gpu) -> Result<Option<&'static Winner<C>>> {
        let programs = self.programs(unpruned, gpu);
        let key = self.tuning_key(unpruned, programs, gpu);
        match self.tuner.find(key.words()) {
            Some(winner) => Ok(Some(winner)),
            None => self.tune(key.words(), unpruned, programs, gpu),
        }
    }

    #[inline]
    fn unpruned(&self) -> ConfigSet {
        self.rules.unpruned(self.args.words(), self.tuner.configs())
    }

    /// The indices of the configurations that `prune` leaves, in their order.
    #[inline]
    pub(super) fn indices(&self, unpruned: ConfigSet) -> impl Iterator<Item = usize> {
        unpruned.of(self.tuner.configs().len())
    }

    /// The configuration at this index, after heuristics.
    #[inline]
    pub(super) fn config(&self, index: usize) -> C {
        self.rules.completed(self.args.words(), self.tuner.configs()[index])
    }

    /// The report that chooses the first remaining configuration without timing.
    fn untimed(&self, unpruned: ConfigSet, device: Device) -> Report<C> {
        let first = self.indices(unpruned).next();
        let trial = |index: usize| Trial {
            config: self.config(index),
            outcome: if unpruned.has(index) { Outcome::Untimed } else { Outcome::Pruned },
            chosen: first == Some(index),
        };
        let trials = (0..self.tuner.configs().len()).map(trial).collect();
        Report { kernel: self.args.kernel().name(), device, trials, origin: Origin::Untimed, took: Duration::ZERO }
    }

    /// The error if `prune` rejects every configuration.
    #[cold]
    fn all_are_pruned(&self, device: Device) -> Error {
        self.no_config(device, |_| "pruned for these arguments")
    }

    /// The first wanted configuration that `prune` leaves.
    fn wanted(&self, is_wanted: impl Fn(&C) -> bool, device: Device) -> Result<C> {
        let unpruned = self.unpruned();
        let reason = |index| if unpruned.has(index) { "not wanted by the launch" } else { "pruned for these arguments" };
        let found = self.indices(unpruned).map(|index| self.config(index)).find(is_wanted);
        found.ok_or_else(|| self.no_config(device, reason))
    }

    fn no_config(&self, device: Device, reason: impl Fn(usize) -> &'static str) -> Error {
        let failures = (0..self.tuner.configs().len()).map(|index| format!("  {:?}: {}", self.config(index), reason(index)));
        Error::NoConfig { kernel: self.args.kernel().name(), device, failures: failures.collect() }
    }

    pub(super) fn key_of(&self, config: C) -> Key<KEY> {
        let mut key = self.key;
        config.write_key(&mut key);
        Key::new(key, self.args.facts())
    }

    #[inline]
    pub(super) fn grid_of(&self, config: C) -> Result<[u32; 3]> {
        self.grid.of(config).check(self.args.kernel().name())
    }

    /// Runs the first configuration that the device can run. If it can run none, returns the error of the first. Errors of the kernel's
    /// execution or of its arguments do not depend on the configuration, so they end the search.
    #[inline]
    fn run_first(&self, unpruned: ConfigSet, device: Device, run: impl Fn(C) -> Result<()>) -> Result<()> {
        let mut failure = None;
        for index in self.indices(unpruned) {
            match run(self.config(index)) {
                Err(error) if is_of_config(&error) => {
                    failure.get_or_insert(error);
                }
                done => return done,
            }
        }
        Err(failure.unwrap_or_else(|| self.all_are_pruned(device)))
    }

    fn run_untimed(&self, unpruned: ConfigSet, gpu: &impl Gpu) -> Result<()> {
        self.run_first(unpruned, gpu.device(), |config| self.run(config, gpu))
    }

    #[inline]
    fn run_on_cpu(&self, config: C) -> Result<()> {
        let grid = self.grid_of(config)?;
        if grid.contains(&0) { Ok(()) } else { self.call(config, grid, self.mode).run_on_cpu() }
    }

    /// Runs the fastest configuration that is not refused. `refused` is the error of the chosen one, if this launch has just tried it. The
    /// key keeps its winner; [`Refusals`](super::refusals::Refusals) decides which launches retry it.
    #[cold]
    fn run_another(&self, winner: &Winner<C>, mut refused: Option<Error>, gpu: &impl Gpu) -> Result<()> {
        let mut failure = None;
        for index in winner.by_time() {
            let config = self.config(index);
            let (key, schedule) = (self.key_of(config), config.schedule());
            let error = match refused.take() {
                Some(error) => error,
                None if !winner.refusals.is_tried(key.as_ref(), schedule) => continue,
                None => match self.run(config, gpu) {
                    Err(error) if is_of_config(&error) => error,
                    done => {
                        if done.is_ok() {
                            winner.refusals.forget(key.as_ref(), schedule);
                        }
                        return done;
                    }
                },
            };
            winner.refusals.note(key.as_ref(), schedule, &error);
            failure.get_or_insert(error);
        }
        if let Some(error) = failure {
            return Err(error);
        }
        // No configuration was due for a retry: run the chosen one, which succeeds by now or gives the error.
        let config = self.config(winner.chosen);
        self.run(config, gpu)?;
        winner.refusals.forget(self.key_of(config).as_ref(), config.schedule());
        Ok(())
    }

    #[inline]
    fn run(&self, config: C, gpu: &impl Gpu) -> Result<()> {
        let grid = self.grid_of(config)?;
        self.run_grid(config, grid, self.mode, gpu)
    }

    #[inline]
    pub(super) fn run_grid(&self, config: C, grid: [u32; 3], mode: Mode, gpu: &impl Gpu) -> Result<()> {
        if grid.contains(&0) {
            return Ok(());
        }
        self.call(config, grid, mode).run(gpu)
    }

    /// Loads the code that a launch of this configuration runs.
    pub(super) fn load(&self, config: C, gpu: &impl Gpu) -> Result<()> {
        let kernel = self.args.kernel();
        let loaded = kernel.on_gpu(gpu, self.key_of(config).as_ref(), Some(config.schedule()))?;
        let load = |grid| self.args.with_params(|params| gpu.load_entry(kernel.name(), loaded, grid, params));
        match self.grid_of(config).and_then(load) {
            // The size of the launch is the reason, not the code.
            Err(Error::GridTooLarge { .. }) => Ok(()),
            loaded => loaded,
        }
    }

    #[inline]
    fn call(&self, config: C, grid: [u32; 3], mode: Mode) -> Call<'_, 'a, WORDS, KEY> {
        Call { args: &self.args, key: self.key_of(config), schedule: Some(config.schedule()), grid, mode }
    }

    /// The class of the number of programs, from the grid of the first remaining configuration. The chosen configuration may have another
    /// grid.
    #[inline]
    fn programs(&self, unpruned: ConfigSet, gpu: &impl Gpu) -> Programs {
        let Some(first) = self.indices(unpruned).next() else { return Programs::UpToOneWave };
        let config = self.config(first);
        let Schedule { num_warps, num_ctas, .. } = config.schedule();
        match self.grid_of(config) {
            Ok(grid) => Programs::of(grid, num_warps.saturating_mul(num_ctas), gpu.multiprocessors()),
            Err(_) => Programs::ManyWaves,
        }
    }

    /// Stores a report for this launch's key, as if the key had been tuned.
    #[cfg(test)]
    pub(super) fn remember_as_tuned(&self, gpu: &impl Gpu, report: Report<C>, chosen: usize) {
        let unpruned = self.unpruned();
        let key = self.tuning_key(unpruned, self.programs(unpruned, gpu), gpu);
        self.tuner.remember(key.words(), report, chosen);
    }

    /// The tuning key, see [`key`](super::key). Its first word combines the device and the class of the number of programs.
    #[inline]
    fn tuning_key<P: Gpu>(&self, unpruned: ConfigSet, programs: Programs, gpu: &P) -> TuningKey {
        let mut words = TuningKey::new();
        let device = 2 * gpu.number() as u64 + u64::from(P::IS_SIMULATED);
        words.push(4 * device + programs as u64);
        unpruned.words().into_iter().for_each(|word| words.push(word));
        words.push(self.args.unaligned());
        self.tuner.key.iter().for_each(|part| words.push(part.of(self.args.words())));
        Key::new(self.key, self.args.facts()).as_ref().iter().for_each(|word| words.push(*word));
        words
    }
}

/// Returns whether the error is specific to the configuration, so that another one may run.
pub(super) fn is_of_config(error: &Error) -> bool {
    use Error::{Compile, GridTooLarge, Jit, LaunchRefused, NotBuilt, SharedMemory, TooOld};
    matches!(
        error,
        Compile { .. } | NotBuilt { .. } | Jit { .. } | SharedMemory { .. } | LaunchRefused { .. } | GridTooLarge { .. } | TooOld { .. }
    )
}
