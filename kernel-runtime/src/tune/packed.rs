//! Tuners of packages: what `#[autotune]` generates, made of the data that a package holds.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use kernel_lang::Schedule;

use super::recorded::{RecordedConfig, RecordedTuning, Runner, TunerParts};
use super::untimed::{self, Untimed};
use super::{AutotunedLaunch, RecordsFile, Rules, TuneConfig, Tuner};
use crate::kernel::Kernel;
use crate::kernel::parts::wrong_word;
use crate::launch::recording::{self, MOST_WORDS};
use crate::ops::OpsError;
use crate::ops::recorder::{Binding, RecordedLaunch};
use crate::{Error, Result};

/// A configuration of a package, with what its functions returned while the launch was recorded.
#[derive(PartialEq, Eq, Hash)]
struct Contents {
    text: String,
    key: Vec<u64>,
    schedule: Schedule,
    is_pruned: bool,
    /// The bits of the cost.
    cost: u64,
}

#[derive(Clone, Copy)]
struct Packed(&'static Contents);

impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl TuneConfig for Packed {
    fn write_key(&self, key: &mut [u64]) {
        key.iter_mut().zip(&self.0.key).for_each(|(word, own)| *word = *own);
    }

    fn schedule(&self) -> Schedule {
        self.0.schedule
    }
}

/// The tuner of a recorded launch of a package, for the rest of the process.
#[derive(Clone, Copy)]
struct OfPackage {
    tuner: &'static Tuner<Packed>,
    rules: &'static Rules<Packed, MOST_WORDS>,
}

impl Runner for OfPackage {
    fn run(&self, launch: &RecordedLaunch, tuning: &RecordedTuning, binding: Binding<'_, '_>) -> Result<()> {
        macro_rules! run {
            ($($keys:literal)*) => {
                match tuning.key.len() {
                    $($keys => self.run_with::<$keys>(launch, tuning, binding),)*
                    given => Err(Error::ArgumentCount { kernel: launch.kernel(), expected: launch.kernel.params().len(), given }),
                }
            };
        }
        run!(0 1 2 3 4 5 6 7 8 9 10 11 12)
    }
}

impl OfPackage {
    fn run_with<const KEY: usize>(
        &self,
        launch: &RecordedLaunch,
        tuning: &RecordedTuning,
        Binding { arguments, dims, stream }: Binding<'_, '_>,
    ) -> Result<()> {
        let words = launch.kernel.params().iter().map(|param| param.kind.words()).sum();
        let args = recording::bind::<MOST_WORDS>(launch, words, arguments)?;
        let key: [u64; KEY] = recording::key(launch, &tuning.key)?;
        let grid = |config: Packed| tuning.grid(&config.0.key, config.0.schedule, dims);
        // SAFETY: `RecordedLaunch::of_parts` has compared the arguments and the types of the key with the IR, and `tuned` those of each configuration.
        // Tuning zeroes and restores only tensors that the kernel may write.
        let call =
            unsafe { AutotunedLaunch::<MOST_WORDS, KEY, Packed>::new(args, key, self.tuner, self.rules) }.on(stream).overlap_previous();
        if launch.is_checked { call.checked().grid(grid).launch() } else { call.grid(grid).launch() }
    }
}

/// The most configurations of a kernel in a package.
const MOST_CONFIGS: usize = 1024;

impl RecordedLaunch {
    /// The same launch, of a kernel with configurations. `key` has the words for types and constants of a tuning key.
    ///
    /// A launch of an [untrusted](crate::ops::parts::KernelParts::untrusted) kernel is never tuned: it runs one configuration, see
    /// [`RecordedLaunch::prepare`]. The tuner of a stranger could take as much time and memory as it states, and its results would get into the
    /// records of other programs.
    ///
    /// # Errors
    /// [`OpsError::NotAKernel`] if the configurations are not those of such a launch.
    pub fn tuned(mut self, key: Vec<u64>, configs: Vec<RecordedConfig>, parts: TunerParts) -> Result<RecordedLaunch> {
        let refused = |reason: &str| Err(Error::Ops(OpsError::NotAKernel { name: self.kernel().to_owned(), reason: reason.to_owned() }));
        let func = self.kernel.parsed()?;
        let types = func.types.len();
        let is_of_launch = |own: &[u64]| own.len() == self.key.len() && own[..types] == self.key[..types];
        if configs.is_empty() || configs.len() > MOST_CONFIGS {
            return refused("a launch has no configuration, or more than 1024");
        }
        if !is_of_launch(&key) || !configs.iter().all(|config| is_of_launch(&config.key)) {
            return refused("a configuration has other types than its launch");
        }
        if let Some(reason) = std::iter::once(&key).chain(configs.iter().map(|config| &config.key)).find_map(|key| wrong_word(func, key)) {
            return refused(&reason);
        }
        if !configs.iter().all(|config| is_possible(config.schedule)) {
            return refused("a configuration has a schedule that is not possible");
        }
        let is_tolerance = |bits: u64| f64::from_bits(bits) >= 0.0;
        if parts.rtol.is_some_and(|bits| !is_tolerance(bits)) || parts.key.iter().any(|part| part.word >= MOST_WORDS) {
            return refused("its tuner is damaged");
        }
        if !self.kernel.is_trusted() {
            return untimed::of_stranger(self, RecordedTuning { key, configs, parts: Ok(parts), runner: Box::new(Untimed) });
        }
        let contents = |config: &RecordedConfig| Contents {
            text: config.text.clone(),
            key: config.key.clone(),
            schedule: config.schedule,
            is_pruned: config.is_pruned,
            cost: config.cost.to_bits(),
        };
        let runner = of_parts(self.kernel, configs.iter().map(contents).collect(), &parts);
        self.tuning = Some(Arc::new(RecordedTuning { key, configs, parts: Ok(parts), runner: Box::new(runner) }));
        Ok(self)
    }
}

fn is_possible(Schedule { num_warps, num_ctas, num_stages, maxnreg }: Schedule) -> bool {
    let is_power = |number: u32, most: u32| number.is_power_of_two() && number <= most;
    is_power(num_warps, 32)
        && is_power(num_ctas, Schedule::MOST_CTAS)
        && (1..=MOST_STAGES).contains(&num_stages)
        && maxnreg.is_none_or(|registers| (1..=Schedule::MOST_REGISTERS).contains(&registers))
}

/// The most stages of a configuration in a package.
const MOST_STAGES: u32 = 1024;

/// How messages name the results of tuning that a package has.
const PACKED: &str = "the package";

/// The tuner of these parts. Equal parts give one tuner, so that loading a package again takes no memory.
fn of_parts(kernel: &'static Kernel, configs: Vec<Contents>, parts: &TunerParts) -> OfPackage {
    type Known = HashMap<(usize, Vec<Contents>, TunerParts), OfPackage>;
    static TUNERS: OnceLock<Mutex<Known>> = OnceLock::new();
    let key = (std::ptr::from_ref(kernel).addr(), configs, parts.clone());
    let mut tuners = TUNERS.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = tuners.get(&key) {
        return *known;
    }
    let leaked = |config: &Contents| {
        let Contents { text, key, schedule, is_pruned, cost } = config;
        let config = Contents { text: text.clone(), key: key.clone(), schedule: *schedule, is_pruned: *is_pruned, cost: *cost };
        Packed(Box::leak(Box::new(config)))
    };
    let configs: &[Packed] = key.1.iter().map(leaked).collect::<Vec<_>>().leak();
    let words: &[_] = parts.key.iter().map(|part| (*part).into()).collect::<Vec<_>>().leak();
    let of_package = (PACKED.to_owned(), kernel.packed_records().to_owned());
    let files = parts.records.iter().chain([&of_package]).filter_map(|(name, text)| RecordsFile::of_parts(name, text));
    let files: &[_] = files.collect::<Vec<_>>().leak();
    let tuner = Tuner::new(configs, words)
        .zeroing(parts.zeroed.clone().leak())
        .restoring(parts.restored.clone().leak())
        .warmup(parts.warmup_ms)
        .rep(parts.rep_ms)
        .records(files);
    let mut rules = Rules::NONE;
    if parts.prunes {
        rules = rules.prune(|_, config: Packed| config.0.is_pruned);
    }
    if let Some(count) = parts.top_k {
        rules = rules.top_k(count, |_, config: Packed| f64::from_bits(config.0.cost));
    }
    if parts.verifies {
        rules = rules.verify(parts.rtol.map(f64::from_bits));
    }
    let new = OfPackage { tuner: Box::leak(Box::new(tuner)), rules: Box::leak(Box::new(rules)) };
    tuners.insert(key, new);
    new
}
