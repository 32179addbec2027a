//! The tuning of a key at its first launch: runs every configuration and keeps the fastest.

use std::time::Instant;

use super::launch::is_of_config;
use super::memory::{Memory, Undo};
use super::progress::Progress;
use super::race::{Budget, Race, Round, fastest, median, race};
use super::recall::Search;
use super::rules::ConfigSet;
use super::verify::{HostArgs, Reference, Verify};
use super::{AutotunedLaunch, Origin, Outcome, Report, Trial, TuneConfig, Winner, alone, is_printed};
use crate::bench::{FLUSH_BYTES, Timer};
use crate::cache::Programs;
use crate::kernel::gpu::Gpu;
use crate::launch::call::Mode;
use crate::launch::grid::HasGridOf;
use crate::replay::{self, Forbidden, Replay};
use crate::{Error, Result, kernel::cpu, launch::prints, profile};

impl<'a, const WORDS: usize, const KEY: usize, C, F> AutotunedLaunch<'a, WORDS, KEY, C, F>
where
    C: TuneConfig,
    F: HasGridOf<C>,
{
    /// Times the configurations that `prune` leaves and stores the result. None if the grid is empty, another tuning is active on this
    /// thread, or there is no memory for the copies.
    #[cold]
    pub(super) fn tune<P: Gpu>(&self, key: &[u64], unpruned: ConfigSet, programs: Programs, gpu: &P) -> Result<Option<&'static Winner<C>>> {
        let configs: Vec<C> = (0..self.tuner.configs().len()).map(|index| self.config(index)).collect();
        // Call the user's functions before taking the lock: they may do anything, including tuning another kernel.
        let grids: Vec<Result<[u32; 3]>> = configs.iter().map(|&config| self.grid_of(config)).collect();
        let first = self.indices(unpruned).next();
        if first.is_some_and(|first| grids[first].as_ref().is_ok_and(|grid| grid.contains(&0))) {
            return Ok(None);
        }
        let (likely, others) = self.rules.likely(self.args.words(), &configs, self.indices(unpruned).collect());
        let verify = self.rules.verifies();
        let of = (self.tuner, verify);
        // The first word of the key numbers the device, and the next process may number devices differently. `programs` is passed beside
        // the values.
        let load = |config| self.load(config, gpu);
        let search = Search::new(self.args.kernel(), gpu, of, &configs, |config| self.key_of(config), load, (programs, &key[1..]));
        // A known result does not wait for the tuning of another thread.
        let known = self.tuner.found(key, || search.known());
        if known.is_some() {
            return Ok(known);
        }
        let Some(_alone) = alone() else { return Ok(None) };
        if let Some(winner) = self.tuner.find(key) {
            return Ok(Some(winner));
        }
        let start = Instant::now();
        let unknown = match search.take_turn() {
            Ok((report, chosen)) => return Ok(Some(self.tuner.remember(key, report, chosen))),
            Err(unknown) => unknown,
        };
        replay::forbid(Forbidden::Tuning)?;
        let _undisturbed = profile::undisturbed(|| format!("tune {}", self.args.kernel().name()));
        let undo = Undo { zeroed: self.tuner.zeroed, restored: self.tuner.restored, verifies: verify.is_some() };
        let Some(memory) = Memory::save(&self.args, gpu, &undo)? else { return Ok(None) };
        let mut progress = Progress::new(self.args.kernel().name());
        let reference = match verify {
            Some(verify) => {
                progress.tell(|| "the reference".to_owned());
                let Some(reference) = self.reference(verify, unpruned, &configs, &grids, gpu)? else { return Ok(None) };
                Some(reference)
            }
            None => None,
        };
        // The flush buffer of benchmarks, or twice the cache if that is more: the lines that a flush leaves in the cache affect the timing
        // of a configuration.
        let flush_bytes = FLUSH_BYTES.max(2 * gpu.cache_bytes());
        let timer = Timer::new(&gpu.stream(), flush_bytes)?;
        let outcomes = configs.iter().map(|_| Outcome::Pruned).collect();
        let launch = |index: usize, grid: [u32; 3]| self.run_grid(configs[index], grid, Mode::default(), gpu);
        let capture = |index: usize, grid: [u32; 3]| Replay::capture(&gpu.stream(), || launch(index, grid));
        let run = |timer: &mut Timer, n: usize, index: usize, grid: [u32; 3], replay: Option<&mut Replay>| {
            let (config, words) = (configs[index], self.args.words());
            self.rules.before(words, config);
            let outcome = match replay {
                // SAFETY: `self.args` borrows the tensors, and `first_runs` has launched the kernel on them, on this stream. Before the function returns,
                // it waits for the runs, or, after an error or a panic, `Memory::drop` does.
                Some(replay) => timer.run(n, &mut || unsafe { replay.launch_borrowed() }),
                None => timer.run(n, &mut || launch(index, grid)),
            };
            self.rules.after(words, config);
            outcome
        };
        let limits_ms = (self.tuner.warmup_ms, self.tuner.rep_ms);
        let replays = configs.iter().map(|_| None).collect();
        let mut contest =
            Contest { run: &run, capture: &capture, limits_ms, grids, outcomes, replays, memory, reference, timer, progress, gpu };
        let chosen = contest.winner(&likely, &others);
        let restored = contest.memory.restore_all(gpu).and_then(|()| contest.settle());
        // Report the first error.
        let chosen = chosen?;
        restored?;

        let (kernel, device) = (self.args.kernel().name(), gpu.device());
        let Contest { outcomes, progress, .. } = contest;
        drop(progress);
        let trials = configs.into_iter().zip(outcomes).enumerate();
        let trials = trials.map(|(index, (config, outcome))| Trial { config, outcome, chosen: chosen == Some(index) }).collect();
        let took = start.elapsed();
        let report = Report { kernel, device, trials, origin: Origin::Timed, took };
        if is_printed() {
            prints::tell(format_args!("tuned in {took:.0?}: {report}"));
        }
        match chosen {
            Some(chosen) => {
                unknown.keep(&report, chosen);
                Ok(Some(self.tuner.remember(key, report, chosen)))
            }
            None => {
                let failures = report.trials.iter().map(|trial| match &trial.outcome {
                    Outcome::Failed(reason) => format!("  {:?}: {}", trial.config, reason.replace('\n', "\n    ")),
                    _ => format!("  {:?}: pruned for these arguments", trial.config),
                });
                Err(Error::NoConfig { kernel, device, failures: failures.collect() })
            }
        }
    }
}

impl<'a, const WORDS: usize, const KEY: usize, C, F> AutotunedLaunch<'a, WORDS, KEY, C, F>
where
    C: TuneConfig,
    F: HasGridOf<C>,
{
    /// The reference results for these arguments; none if there is no memory for their copies.
    fn reference<P: Gpu>(
        &self,
        verify: Verify,
        unpruned: ConfigSet,
        configs: &[C],
        grids: &[Result<[u32; 3]>],
        gpu: &P,
    ) -> Result<Option<Reference>> {
        let Some(mut host) = HostArgs::read(&self.args, gpu, self.tuner.zeroed)? else { return Ok(None) };
        match verify.by {
            Some((_, reference)) => reference(&mut host),
            None => {
                let kernel = self.args.kernel();
                // The reference is the first configuration that fits the arguments and compiles. If there is none, no configuration can
                // win.
                let program = self.indices(unpruned).find_map(|index| {
                    let grid = *grids[index].as_ref().ok().filter(|grid| !grid.contains(&0))?;
                    Some((kernel.on_cpu(self.key_of(configs[index]).general()).ok()?, grid))
                });
                if let Some((program, grid)) = program {
                    host.run(|words| cpu::run(kernel.name(), &program, words, grid, false))?;
                }
            }
        }
        Ok(Some(host.into_reference(verify.rtol)))
    }
}

/// Queues a run of a configuration, by index, on a grid, between the events of a pair: its replay if there is one, else a launch.
type Run<'r> = dyn Fn(&mut Timer, usize, usize, [u32; 3], Option<&mut Replay>) -> Result<()> + 'r;

/// Captures the launch of a configuration, by index, on a grid.
type Capture<'r> = dyn Fn(usize, [u32; 3]) -> Result<Replay> + 'r;

/// The state while configurations are timed. It names no type of the kernel, so that a program compiles it once for all kernels.
struct Contest<'c, P> {
    run: &'c Run<'c>,
    capture: &'c Capture<'c>,
    /// The milliseconds of `warmup` and `rep`.
    limits_ms: (u32, u32),
    grids: Vec<Result<[u32; 3]>>,
    outcomes: Vec<Outcome>,
    /// The launches of the configurations that passed their first run, as replays: programs that need speed replay their launches, and the fastest
    /// configuration can differ. Launches are timed where this has none.
    replays: Vec<Option<Replay>>,
    memory: Memory,
    /// The results to compare with, if `verify` is given.
    reference: Option<Reference>,
    timer: Timer,
    progress: Progress,
    gpu: &'c P,
}

impl<P: Gpu> Contest<'_, P> {
    /// The index of the fastest configuration; none if no configuration runs. Configurations outside `top_k` run only if all others fail.
    fn winner(&mut self, likely: &[usize], others: &[usize]) -> Result<Option<usize>> {
        let start = Instant::now();
        let mut times = self.first_runs(likely)?;
        if times.is_empty() {
            times = self.first_runs(others)?;
        }
        let able: Vec<usize> = times.iter().map(|(index, _)| *index).collect();
        let (warmup_ms, rep_ms) = self.limits_ms;
        let race = if P::IS_SIMULATED {
            // The simulated clock has no noise and models no cache, so one run suffices.
            let times: Vec<Vec<f64>> = times.into_iter().map(|(_, time)| vec![time]).collect();
            Race { winner: fastest(&times), times }
        } else {
            let warmup_us = f64::from(warmup_ms) * 1e3 - start.elapsed().as_secs_f64() * 1e6;
            let budget = Budget { warmup_us, rep_us: f64::from(rep_ms) * 1e3 };
            self.capture(&able);
            race(able.len(), budget, &mut |alive| {
                let indices: Vec<usize> = alive.iter().map(|&candidate| able[candidate]).collect();
                self.round(&indices)
            })?
        };
        for (index, times) in able.iter().zip(&race.times) {
            self.outcomes[*index] = Outcome::Measured { median_us: median(times), samples: times.len() };
        }
        self.confirmed(race.winner.map(|candidate| able[candidate]))
    }

    /// With `verify`, runs the winner again and compares its results with the reference. If they are wrong, the configuration counts as
    /// failed, and the next best one is checked. A configuration with a data race can be right by chance in one run.
    fn confirmed(&mut self, mut winner: Option<usize>) -> Result<Option<usize>> {
        while let (Some(index), Some(_)) = (winner, &self.reference) {
            let Err(reason) = self.checked_run(index)? else { break };
            self.outcomes[index] = Outcome::Failed(reason);
            let measured = self.outcomes.iter().enumerate().filter_map(|(index, outcome)| match outcome {
                Outcome::Measured { median_us, .. } => Some((index, *median_us)),
                _ => None,
            });
            winner = measured.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(index, _)| index);
        }
        Ok(winner)
    }

    /// Runs each configuration once, which loads its code and shows whether it runs at all and, with `verify`, computes the right results.
    /// Returns the indices and times of those that pass, and records the reason for each of the others. An error that is not specific to
    /// a configuration ends the tuning, such as a fault on the GPU, after which nothing can run.
    fn first_runs(&mut self, indices: &[usize]) -> Result<Vec<(usize, f64)>> {
        let mut able = Vec::new();
        for (n, &index) in indices.iter().enumerate() {
            self.progress.tell(|| format!("configuration {} of {}", n + 1, indices.len()));
            let outcome = match &self.grids[index] {
                Ok(grid) if grid.contains(&0) => Err("its grid has no programs, and that of the first has".to_owned()),
                Ok(_) => self.checked_run(index)?,
                Err(error) => Err(error.to_string()),
            };
            match outcome {
                Ok(time) => able.push((index, time)),
                Err(reason) => self.outcomes[index] = Outcome::Failed(reason),
            }
        }
        Ok(able)
    }

    /// Runs one configuration alone and returns its time, or the reason if the configuration does not run or its results are wrong.
    fn checked_run(&mut self, index: usize) -> Result<Result<f64, String>> {
        if self.reference.is_some() {
            self.memory.restore_all(self.gpu)?;
        }
        let time = match self.timed_run(0, index).and_then(|()| self.settle()).and_then(|()| self.timer.elapsed_us(0)) {
            Err(error) if !is_of_config(&error) => return Err(error),
            Err(error) => return Ok(Err(error.to_string())),
            Ok(time) => time,
        };
        let difference = self.reference.as_ref().map_or(Ok(None), |reference| reference.difference(self.gpu))?;
        Ok(difference.map_or(Ok(time), Err))
    }

    fn round(&mut self, indices: &[usize]) -> Result<Round> {
        let start = Instant::now();
        self.progress.tell(|| match indices.len() {
            1 => "one configuration left".to_owned(),
            count => format!("{count} configurations left"),
        });
        for (n, &index) in indices.iter().enumerate() {
            self.timed_run(n, index)?;
        }
        self.settle()?;
        let times_us = (0..indices.len()).map(|n| self.timer.elapsed_us(n)).collect::<Result<_>>()?;
        Ok(Round { times_us, took_us: start.elapsed().as_secs_f64() * 1e6 })
    }

    /// Queues a run between the `n`-th pair of events. The arguments are restored first.
    fn timed_run(&mut self, n: usize, index: usize) -> Result<()> {
        let Ok(grid) = self.grids[index] else { return Ok(()) };
        self.memory.restore(self.gpu)?;
        (self.run)(&mut self.timer, n, index, grid, self.replays[index].as_mut())
    }

    /// Captures the configurations at these indices, and runs each replay once, because its first launch takes longer. If one of them fails, such as for
    /// lack of memory, all are timed as launches.
    fn capture(&mut self, indices: &[usize]) {
        let captured = indices.iter().try_for_each(|&index| {
            let Ok(grid) = self.grids[index] else { return Ok(()) };
            self.replays[index] = Some((self.capture)(index, grid)?);
            self.timed_run(0, index)
        });
        if captured.and_then(|()| self.settle()).is_err() {
            self.replays.fill_with(|| None);
        }
    }

    fn settle(&self) -> Result<()> {
        self.gpu.stream().synchronize()
    }
}
