//! Recorded launches of kernels with configurations: the configurations with their grids, and the parts of a tuner that a package holds.
//!
//! A recorded launch runs through [`AutotunedLaunch`], with the tuner of its kernel. So it has the same tuning keys as launches without a recording,
//! and one result of tuning serves both. Heuristics are computed while the launch is recorded, because grids depend on them.

use std::fmt;

use kernel_lang::Schedule;

use super::key::Alike;
use super::rules::ConfigSet;
use super::{AutotunedLaunch, KeyPart, Rules, TuneConfig, Tuner};
use crate::kernel::{Kernel, ParamKind};
use crate::launch::args::{Args, Argument};
use crate::launch::grid::{Grid, HasGridOf};
use crate::launch::recording;
use crate::ops::OpsError;
use crate::ops::recorder::{Binding, RecordedArg, RecordedLaunch};
use crate::{Dim, DimValues, Error, Result};

/// The configurations of a recorded launch.
pub struct RecordedTuning {
    /// The words for types and constants. Those that configurations set have the values of launches without a recording.
    pub(crate) key: Vec<u64>,
    pub(crate) configs: Vec<RecordedConfig>,
    /// The tuner for a file, or why a file cannot hold it.
    pub(crate) parts: Result<TunerParts, NotPacked>,
    pub(super) runner: Box<dyn Runner>,
}

/// A configuration of a recorded launch.
#[derive(Clone, PartialEq, Debug)]
pub struct RecordedConfig {
    /// The configuration as text, such as `Config { BLOCK_SIZE: 4, num_warps: 8, num_stages: 3 }`.
    pub text: String,
    /// The words for types and constants, with those of the configuration.
    pub key: Vec<u64>,
    /// The schedule.
    pub schedule: Schedule,
    /// The number of programs along each axis.
    pub grid: [Dim; 3],
    /// Whether `prune` rejects the configuration.
    pub is_pruned: bool,
    /// The cost that `top_k` estimates; 0 without `top_k`.
    pub cost: f64,
}

/// A tuner without its configurations and functions.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TunerParts {
    /// The arguments of the tuning key.
    pub key: Vec<KeyPartParts>,
    /// `reset_to_zero` and `restore_value`, as numbers of pointers.
    pub zeroed: Vec<usize>,
    /// See `zeroed`.
    pub restored: Vec<usize>,
    /// `warmup` and `rep`, in milliseconds.
    pub warmup_ms: u32,
    /// See `warmup_ms`.
    pub rep_ms: u32,
    /// Whether `prune` decides which configurations belong to a tuning key.
    pub prunes: bool,
    /// The number of configurations that `top_k` times.
    pub top_k: Option<usize>,
    /// Whether `verify = cpu` is given.
    pub verifies: bool,
    /// The bits of `rtol`.
    pub rtol: Option<u64>,
    /// The names and texts of `records`.
    pub records: Vec<(String, String)>,
}

/// An argument word of a tuning key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct KeyPartParts {
    /// The index of the word.
    pub word: usize,
    /// None for the value, 0 for the next power of two, or the number whose next multiple counts.
    pub bucket: Option<u64>,
}

/// Why a package cannot hold the tuner of a launch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotPacked {
    /// The field of `#[autotune]`.
    pub field: &'static str,
    /// The parameter whose value the field depends on, if that is the reason. Otherwise the field is a function of the program.
    pub param: Option<&'static str>,
}

impl fmt::Display for NotPacked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.param {
            Some(param) => write!(f, "`{}` depends on `{param}`, which has no value before a run", self.field),
            None => write!(f, "`{}` is a function of this program", self.field),
        }
    }
}

impl NotPacked {
    /// How to mend it.
    pub fn help(&self) -> &'static str {
        match self.param {
            Some(_) => "record with a number in place of the dim, or leave the field out of `#[autotune]`",
            None => "leave the field out of `#[autotune]`, or run the graph in this program",
        }
    }
}

/// Runs a recorded launch with the tuner of its kernel.
pub(super) trait Runner: Send + Sync {
    fn run(&self, launch: &RecordedLaunch, tuning: &RecordedTuning, binding: Binding<'_, '_>) -> Result<()>;
}

impl RecordedTuning {
    /// The configurations, in their order.
    pub fn configs(&self) -> &[RecordedConfig] {
        &self.configs
    }

    /// The first configuration that `prune` leaves, or else the first one.
    pub(super) fn first(&self) -> Option<&RecordedConfig> {
        self.configs.iter().find(|config| !config.is_pruned).or(self.configs.first())
    }

    /// The words for types and constants of a tuning key.
    pub fn key(&self) -> &[u64] {
        &self.key
    }

    /// The tuner.
    ///
    /// # Errors
    /// If it has a function of the program, or one that depends on a dim.
    pub fn parts(&self) -> std::result::Result<&TunerParts, NotPacked> {
        self.parts.as_ref().map_err(Clone::clone)
    }

    pub(crate) fn run(&self, launch: &RecordedLaunch, binding: Binding<'_, '_>) -> Result<()> {
        // An error of the grid that other configurations have, too. That of another configuration only excludes this one.
        recording::grid(launch.grid(), binding.dims)?;
        self.runner.run(launch, self, binding)
    }

    /// The grid of the configuration that writes this key and has this schedule.
    pub(super) fn grid(&self, key: &[u64], schedule: Schedule, dims: &DimValues) -> Grid {
        let config = self.configs.iter().find(|config| config.key == key && config.schedule == schedule);
        let grid = config.and_then(|config| recording::grid(&config.grid, dims).ok());
        // A launch refuses a grid of negative numbers.
        Grid::of_numbers(grid.unwrap_or([-1; 3]))
    }
}

impl fmt::Debug for RecordedTuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordedTuning").field("key", &self.key).field("configs", &self.configs).finish_non_exhaustive()
    }
}

/// The tuner of a kernel of this program.
struct OfProgram<C: 'static, const WORDS: usize, const KEY: usize> {
    tuner: &'static Tuner<C>,
    rules: &'static Rules<C, WORDS>,
}

impl<C: TuneConfig, const WORDS: usize, const KEY: usize> Runner for OfProgram<C, WORDS, KEY> {
    fn run(&self, launch: &RecordedLaunch, tuning: &RecordedTuning, Binding { arguments, dims, stream }: Binding<'_, '_>) -> Result<()> {
        let args = recording::bind::<WORDS>(launch, WORDS, arguments)?;
        let key: [u64; KEY] = recording::key(launch, &tuning.key)?;
        let grid = |config: C| {
            let mut key = key;
            config.write_key(&mut key);
            tuning.grid(&key, config.schedule(), dims)
        };
        // SAFETY: the launch is one that was recorded, whose caller guarantees that the key and the parameters are those of the kernel and of this
        // tuner. The arguments follow the parameters and have the recorded dtypes.
        let call = unsafe { AutotunedLaunch::<WORDS, KEY, C>::new(args, key, self.tuner, self.rules) }.on(stream).overlap_previous();
        if launch.is_checked { call.checked().grid(grid).launch() } else { call.grid(grid).launch() }
    }
}

/// The configurations of a launch that is recorded.
pub(super) fn record<C: TuneConfig, const WORDS: usize, const KEY: usize>(
    kernel: &'static Kernel,
    base: [u64; KEY],
    (tuner, rules): (&'static Tuner<C>, &'static Rules<C, WORDS>),
    words: &[Option<u64>],
    grid: &impl HasGridOf<C>,
) -> Result<RecordedTuning> {
    let unknown = rules.reads().iter().find(|word| words.get(**word).copied().flatten().is_none());
    let param = unknown.and_then(|word| param_of(kernel, *word));
    if let (Some(param), true) = (param, rules.has_heuristics()) {
        return Err(Error::Ops(OpsError::NotRecorded {
            kernel: kernel.name(),
            reason: format!("its `heuristics` depend on `{param}`, which has no value while the program is recorded"),
            help: "pass a number, or choose the constants and the schedule in `configs`",
        }));
    }
    let known: [u64; WORDS] = std::array::from_fn(|word| words.get(word).copied().flatten().unwrap_or(0));
    // Without the values, `prune` would decide for zeros.
    let is_known = param.is_none();
    let unpruned = if is_known { rules.unpruned(&known, tuner.configs) } else { ConfigSet::ALL };
    let mut top_k = None;
    let config = |(index, raw): (usize, &C)| {
        let config = rules.completed(&known, *raw);
        let mut key = base;
        config.write_key(&mut key);
        let cost = if is_known { rules.cost(&known, config) } else { None };
        top_k = cost.map(|(count, _)| count);
        RecordedConfig {
            text: format!("{raw:?}"),
            key: key.to_vec(),
            schedule: config.schedule(),
            grid: grid.dims(config),
            is_pruned: !unpruned.has(index),
            cost: cost.map_or(0.0, |(_, cost)| cost),
        }
    };
    let configs = tuner.configs.iter().enumerate().map(config).collect();
    let verify = rules.verifies();
    let parts = match (rules.function(), param) {
        (Some(field), _) => Err(NotPacked { field, param: None }),
        (None, Some(param)) => Err(NotPacked { field: "prune", param: Some(param) }),
        (None, None) => Ok(TunerParts {
            key: tuner.key.iter().map(KeyPart::parts).collect(),
            zeroed: tuner.zeroed.to_vec(),
            restored: tuner.restored.to_vec(),
            warmup_ms: tuner.warmup_ms,
            rep_ms: tuner.rep_ms,
            prunes: rules.has_prune(),
            top_k,
            verifies: verify.is_some(),
            rtol: verify.and_then(|verify| verify.rtol).map(f64::to_bits),
            records: tuner.committed.files.iter().map(|file| file.parts()).collect(),
        }),
    };
    Ok(RecordedTuning { key: base.to_vec(), configs, parts, runner: Box::new(OfProgram::<C, WORDS, KEY> { tuner, rules }) })
}

/// The argument words of a launch, where they are known: not addresses, and not what depends on dims.
pub(super) fn known_words<const WORDS: usize>(args: &Args<'_, WORDS>, recorded: &[RecordedArg]) -> Vec<Option<u64>> {
    let number = |dim: &Dim| dim.known().and_then(|number| u64::try_from(number).ok());
    let (mut words, mut tensors) = (Vec::new(), args.tensors());
    for (param, arg) in args.kernel().params().iter().zip(recorded) {
        let first = words.len();
        match arg {
            RecordedArg::Word { word, .. } => words.push(Some(*word)),
            RecordedArg::Dim { dim, ty } => words.push(dim.known().and_then(|number| ty.word(number).ok())),
            RecordedArg::Tensor { .. } => {
                words.push(None);
                let count = param.kind.words();
                match tensors.next() {
                    Some((.., Argument::Traced(traced))) => {
                        let dims = &traced.ty.dims;
                        let product = |dims: &[Dim]| dims.iter().try_fold(1u64, |product, dim| product.checked_mul(number(dim)?));
                        words.push(product(dims));
                        if let ParamKind::View(_) | ParamKind::ViewMut(_) = param.kind {
                            words.extend(dims.iter().map(number));
                            words.extend((1..dims.len()).map(|axis| product(&dims[axis..])));
                        }
                    }
                    _ => words.extend(args.words().iter().skip(first + 1).take(count - 1).map(|word| Some(*word))),
                }
            }
        }
    }
    words
}

/// The name of the parameter to which an argument word belongs.
fn param_of(kernel: &'static Kernel, word: usize) -> Option<&'static str> {
    let mut end = 0;
    let ends_after = |kind: ParamKind| {
        end += kind.words();
        word < end
    };
    let mut ends_after = ends_after;
    kernel.params().iter().find(|param| ends_after(param.kind)).map(|param| param.name)
}

impl KeyPart {
    /// The part as a package holds it.
    pub(super) fn parts(&self) -> KeyPartParts {
        let bucket = match self.alike {
            Alike::None => None,
            Alike::PowerOfTwo => Some(0),
            Alike::Multiple(of) => Some(of),
        };
        KeyPartParts { word: self.word, bucket }
    }
}

impl From<KeyPartParts> for KeyPart {
    fn from(KeyPartParts { word, bucket }: KeyPartParts) -> KeyPart {
        match bucket {
            None => KeyPart::exact(word),
            Some(0) => KeyPart::power_of_two(word),
            Some(of) => KeyPart::multiple(word, of),
        }
    }
}
