//! Launches that are recorded instead of run, and the launches of a recorded graph.

use std::panic::Location;
use std::sync::Arc;

use kernel_lang::dtype::Dtype;

use crate::kernel::ParamKind;
use crate::launch::args::{Args, Argument};
use crate::launch::call::{Call, Mode};
use crate::launch::deferral::Deferral;
use crate::launch::fact::Key;
use crate::launch::grid::{Grid, HasGrid};
use crate::launch::{Launch, LaunchDevice};
use crate::ops::recorder::{Binding, BoundArg, RecordedArg, RecordedLaunch, Recorder};
use crate::ops::{OpsError, with_element};
use crate::tune::recorded::{RecordedConfig, RecordedTuning};
use crate::{Dim, DimValues, Error, Result, Site, bf16, f8e4m3, f8e5m2, f16, profile};

impl<const WORDS: usize, const KEY: usize, G: HasGrid> Launch<'_, WORDS, KEY, G> {
    /// Records a launch without memory, or returns the error that keeps it from running.
    #[cold]
    pub(super) fn record(mut self, error: Error, location: &'static Location<'static>) -> Result<()> {
        let (key, grid, is_placed) = (self.key, self.grid.chosen(), self.stream.is_some() || self.overlaps);
        let request = Request { args: &mut self.args, mode: self.mode, is_placed, location };
        request.record(error, &key, |_, _, axes| Ok(Program { key: key.to_vec(), grid: grid.with_dims(axes), tuning: None }))
    }
}

/// A launch that is to be recorded.
pub(crate) struct Request<'r, 'a, const WORDS: usize> {
    pub(crate) args: &'r mut Args<'a, WORDS>,
    pub(crate) mode: Mode,
    /// Whether the launch names a stream, or overlaps.
    pub(crate) is_placed: bool,
    pub(crate) location: &'static Location<'static>,
}

/// What a recorded launch runs.
pub(crate) struct Program {
    pub(crate) key: Vec<u64>,
    pub(crate) grid: [Dim; 3],
    pub(crate) tuning: Option<Arc<RecordedTuning>>,
}

impl<const WORDS: usize> Request<'_, '_, WORDS> {
    /// Records the launch, or returns the error. `program` takes the argument words, the recorded arguments and the axes of the grid that have no value.
    pub(crate) fn record(
        self,
        error: Error,
        key: &[u64],
        program: impl FnOnce(&Args<'_, WORDS>, &[RecordedArg], [Option<Dim>; 3]) -> Result<Program>,
    ) -> Result<()> {
        let Request { args, mode, is_placed, location } = self;
        let Some(deferral) = args.take_deferral() else { return Err(at(error, location.into())) };
        let kernel = args.kernel();
        let refused = |reason: String, help| Err(Error::Ops(OpsError::NotRecorded { kernel: kernel.name(), reason, help }));
        let traced = |argument: Argument<'_>| if let Argument::Traced(traced) = argument { Some(traced.recorder.clone()) } else { None };
        let Some(recorder) = args.tensors().find_map(|(.., argument)| traced(argument)) else { return Err(error) };
        if kernel.parsed()?.unchecked {
            return refused(
                "it is `unchecked`".to_owned(),
                "its caller vouches for the tensors of one launch, and a graph has others in each run",
            );
        }
        if mode.checked || kernel.prints() {
            return refused("it is checked or prints".to_owned(), "run the recorded graph on `Device::cpu()` to debug it");
        }
        if is_placed || mode.in_background {
            let reason = "it names a stream, overlaps, or compiles in the background".to_owned();
            return refused(reason, "leave these to the recorded graph");
        }
        if WORDS > MOST_WORDS || key.len() > MOST_KEYS {
            return refused(
                format!("its arguments take {WORDS} words and its generics {}", key.len()),
                "a recorded launch has at most 128 and 12: pass fewer tensors, or views of fewer axes",
            );
        }
        for (name, writes, argument) in args.tensors() {
            match argument {
                Argument::Traced(traced) if Arc::ptr_eq(&traced.recorder, &recorder) => {}
                Argument::Traced(_) => {
                    return refused(format!("`{name}` belongs to another recording"), "use the tensors of one recording");
                }
                Argument::Real(_) if !writes => {}
                Argument::Real(_) => {
                    return refused(
                        format!("it writes `{name}`, which is not recorded"),
                        "write an input, or a tensor that `x.new_empty(..)` or `x.new_zeros(..)` makes",
                    );
                }
                Argument::Unshared => {
                    return refused(
                        format!("`{name}` is not an `ops::Tensor`"),
                        "convert it with `.into()`, so that the graph can share it",
                    );
                }
            }
        }
        let recorded = recorded_args(args, key, &deferral, &recorder, location)?;
        let Program { key, grid, tuning } = program(args, &recorded, deferral.grid)?;
        let launch = RecordedLaunch { kernel, key, args: recorded, grid, tuning, is_checked: false, location: location.into() };
        let mut values = recorder.launch(launch)?.into_iter();
        for (_, writes, argument) in args.tensors() {
            if let (true, Argument::Traced(traced)) = (writes, argument)
                && let Some(value) = values.next()
            {
                traced.set_value(value);
            }
        }
        Ok(())
    }
}

/// The error with the user's line, if it is one of a copy before the launch.
fn at(error: Error, location: Site) -> Error {
    match error {
        Error::Ops(OpsError::CopyDenied { bytes, .. }) => Error::Ops(OpsError::CopyDenied { bytes, location }),
        error => error,
    }
}

/// The arguments for each parameter of a kernel: tensors without addresses, and the words of scalars.
fn recorded_args<const WORDS: usize>(
    args: &Args<'_, WORDS>,
    key: &[u64],
    deferral: &Deferral,
    recorder: &Arc<dyn Recorder>,
    location: &'static Location<'static>,
) -> Result<Vec<RecordedArg>> {
    let (mut tensors, mut word) = (args.tensors(), 0);
    let kernel = args.kernel();
    let mut recorded = Vec::new();
    for (number, param) in kernel.params().iter().enumerate() {
        let first = word;
        word += param.kind.words();
        let dim = deferral.dims.iter().find(|(at, ..)| *at == first);
        recorded.push(match (param.kind, dim) {
            (ParamKind::Scalar, Some((_, dim, ty))) => RecordedArg::Dim { dim: dim.clone(), ty: *ty },
            (ParamKind::Scalar, None) => {
                let word = args.words().get(first).copied().unwrap_or_default();
                RecordedArg::Word { word, text: kernel.written(number, key, word) }
            }
            _ => match tensors.next() {
                Some((_, writes, Argument::Traced(traced))) => {
                    RecordedArg::Tensor { value: traced.value(), dtype: traced.ty.dtype, writes }
                }
                Some((_, writes, Argument::Real(real))) => {
                    let tensor = real.handle();
                    RecordedArg::Tensor { dtype: tensor.dtype(), value: recorder.constant(tensor, location)?, writes }
                }
                _ => return Err(Error::ArgumentCount { kernel: kernel.name(), expected: WORDS, given: first }),
            },
        });
    }
    Ok(recorded)
}

/// The most words that the arguments of a recorded launch take, and those of most launches. There is a copy of the launch path for each.
pub(crate) const MOST_WORDS: usize = 128;
const FEW_WORDS: usize = 32;
/// The most generics of a kernel in a recorded launch.
pub(crate) const MOST_KEYS: usize = 12;

/// Launches a recorded kernel with these arguments.
pub(crate) fn run(launch: &RecordedLaunch, binding: Binding<'_, '_>) -> Result<()> {
    let _line = profile::of_line(&launch.location);
    let run = match &launch.tuning {
        Some(tuning) => tuning.run(launch, binding),
        None => run_untuned(launch, binding),
    };
    run.map_err(|error| at(error, launch.location.clone()))
}

/// The numbers of programs for these dims.
pub(crate) fn grid(axes: &[Dim; 3], dims: &DimValues) -> Result<[i64; 3]> {
    let [x, y, z] = axes;
    Ok([x.value(dims)?, y.value(dims)?, z.value(dims)?])
}

fn run_untuned(launch: &RecordedLaunch, binding: Binding<'_, '_>) -> Result<()> {
    let grid = grid(&launch.grid, binding.dims)?;
    let words = launch.kernel.params().iter().map(|param| param.kind.words()).sum();
    let expected = launch.kernel.params().len();
    macro_rules! run_with {
        ($($keys:literal)*) => {
            match launch.key.len() {
                $($keys if words <= FEW_WORDS => run_with::<FEW_WORDS, $keys>(launch, words, binding, grid),
                $keys => run_with::<MOST_WORDS, $keys>(launch, words, binding, grid),)*
                given => Err(Error::ArgumentCount { kernel: launch.kernel.name(), expected, given }),
            }
        };
    }
    run_with!(0 1 2 3 4 5 6 7 8 9 10 11 12)
}

fn run_with<const WORDS: usize, const KEY: usize>(
    launch: &RecordedLaunch,
    words: usize,
    Binding { arguments, stream, .. }: Binding<'_, '_>,
    grid: [i64; 3],
) -> Result<()> {
    let (args, key) = (bind::<WORDS>(launch, words, arguments)?, key(launch, &launch.key)?);
    // SAFETY: the launch is one that was recorded, whose caller guarantees that the key and the parameters are those of the kernel, or one whose parts
    // `RecordedLaunch::of_parts` has checked against the IR. The arguments follow the parameters and have the recorded dtypes; scalars are recorded
    // words, or converted for their parameter. An unchecked kernel is not recorded.
    //
    // The launch may overlap with the previous one: a safe kernel that can begin early waits before it accesses memory.
    let mut call = unsafe { Launch::<WORDS, KEY>::new(args, key) }.overlap_previous();
    call.mode.checked = launch.is_checked;
    call.on(stream).grid(Grid::of_numbers(grid)).launch()
}

/// Launches with the key, the schedule and the grid of one configuration.
pub(crate) fn run_config(launch: &RecordedLaunch, config: &RecordedConfig, binding: Binding<'_, '_>) -> Result<()> {
    macro_rules! run {
        ($($keys:literal)*) => {
            match config.key.len() {
                $($keys => run_config_with::<$keys>(launch, config, binding),)*
                given => Err(Error::ArgumentCount { kernel: launch.kernel(), expected: launch.kernel.params().len(), given }),
            }
        };
    }
    run!(0 1 2 3 4 5 6 7 8 9 10 11 12)
}

fn run_config_with<const KEY: usize>(
    launch: &RecordedLaunch,
    config: &RecordedConfig,
    Binding { arguments, dims, stream }: Binding<'_, '_>,
) -> Result<()> {
    let words = launch.kernel.params().iter().map(|param| param.kind.words()).sum();
    let mut args = bind::<MOST_WORDS>(launch, words, arguments)?;
    let device = LaunchDevice::of(&mut args, Some(stream))?;
    let grid = Grid::of_numbers(grid(&config.grid, dims)?).check(launch.kernel())?;
    if grid.contains(&0) {
        return Ok(());
    }
    // `RecordedLaunch::of_parts` has compared the arguments with the IR, and `tuned` the key.
    let key = Key::new(key::<KEY>(launch, &config.key)?, args.facts());
    let call =
        Call { args: &args, key, schedule: Some(config.schedule), grid, mode: Mode { checked: launch.is_checked, ..Mode::default() } };
    match device {
        LaunchDevice::Cpu => call.run_on_cpu(),
        LaunchDevice::Cuda(cuda) => call.run(&cuda),
        LaunchDevice::Sim(sim) => call.run(&sim),
    }
}

/// The words as an array.
pub(crate) fn key<const KEY: usize>(launch: &RecordedLaunch, words: &[u64]) -> Result<[u64; KEY]> {
    let (kernel, expected) = (launch.kernel.name(), launch.kernel.params().len());
    words.try_into().map_err(|_| Error::ArgumentCount { kernel, expected, given: 0 })
}

/// The arguments of a recorded launch, which take `words` words, with memory.
pub(crate) fn bind<'a, const WORDS: usize>(
    launch: &RecordedLaunch,
    words: usize,
    arguments: &mut dyn Iterator<Item = BoundArg<'a>>,
) -> Result<Args<'a, WORDS>> {
    let (kernel, params) = (launch.kernel, launch.kernel.params());
    let mut args = Args::<WORDS>::with_words(kernel, words);
    let wrong_count = |given| Err(Error::ArgumentCount { kernel: kernel.name(), expected: params.len(), given });
    if launch.args.len() != params.len() {
        return wrong_count(launch.args.len());
    }
    for (at, param) in params.iter().enumerate() {
        let Some(argument) = arguments.next() else { return wrong_count(at) };
        let (name, kind) = (param.name, param.kind);
        let expected = if let RecordedArg::Tensor { dtype, .. } = &launch.args[at] { *dtype } else { Dtype::I64 };
        // `Args` compares the dtype of the argument with the recorded one, for which the variant was compiled.
        with_element!(expected, T => match (kind, argument, &launch.args[at]) {
            (ParamKind::Pointer, BoundArg::Tensor(tensor), _) => args.pointer::<T>(name, tensor),
            (ParamKind::PointerMut, BoundArg::TensorMut(tensor), _) => args.pointer_mut::<T>(name, tensor),
            (ParamKind::View(rank), BoundArg::Tensor(tensor), _) => args.view::<T>(name, tensor, rank),
            (ParamKind::ViewMut(rank), BoundArg::TensorMut(tensor), _) => args.view_mut::<T>(name, tensor, rank),
            (ParamKind::Scalar, BoundArg::Recorded, RecordedArg::Word { word, .. }) => args.scalar::<u64>(*word),
            (ParamKind::Scalar, BoundArg::Dim(value), RecordedArg::Dim { ty, .. }) => {
                let too_large = |value| Error::ScalarTooLarge { kernel: kernel.name(), position: at + 1, value };
                args.scalar::<u64>(ty.word(value).map_err(too_large)?);
            }
            _ => return wrong_count(at),
        });
    }
    if arguments.next().is_some() { wrong_count(params.len() + 1) } else { Ok(args) }
}
