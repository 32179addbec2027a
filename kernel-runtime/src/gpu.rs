//! What runs PTX: a GPU through the CUDA driver, or a simulated one. A launch is the same on both but for the last step.

use kernel_lang::Schedule;

use crate::args::Args;
use crate::fact::Key;
use crate::graph::Code;
use crate::kernel::{Kernel, Tables};
use crate::profile::{self, Observation};
use crate::{Device, Result, Stream, background, graph, reporting};

/// A device that runs PTX, and where on it a launch goes.
pub(crate) trait Gpu: Copy {
    /// A function that it can run; a name, cheap to copy.
    type Loaded: Clone + Send + Sync + 'static;

    /// Is its time an estimate, the same in every run?
    const IS_SIMULATED: bool;

    /// The same device, to load things for from any thread.
    type Anywhere: Gpu<Loaded = Self::Loaded> + Send + 'static;

    /// The same device, whatever its stream.
    fn anywhere(self) -> Self::Anywhere;

    /// The device.
    fn device(self) -> Device;

    /// Its number among the devices of its kind.
    fn number(self) -> usize;

    /// How many devices of its kind there are.
    fn count() -> usize;

    /// Major and minor.
    fn compute_capability(self) -> (i32, i32);

    /// The stream of the launch.
    fn stream(self) -> Stream;

    /// What devices of this kind have loaded of a kernel.
    fn tables(self, kernel: &Kernel) -> &Tables<Self::Loaded>;

    /// Loads PTX.
    fn load(self, image: &Image<'_>) -> Result<Self::Loaded>;

    /// Bytes of the cache that the whole GPU shares; 0 if it has none.
    fn cache_bytes(self) -> usize;

    /// Copies bytes on the stream of the launch.
    ///
    /// # Safety
    /// Both sides have that many bytes, and nobody else uses them until the copy is done.
    unsafe fn copy(self, from: u64, to: u64, bytes: usize) -> Result<()>;

    /// Sets bytes to zero on the stream of the launch.
    ///
    /// # Safety
    /// There are that many bytes, and nobody else uses them until it is done.
    unsafe fn zero(self, address: u64, bytes: usize) -> Result<()>;

    /// What a graph keeps of a function.
    fn code(loaded: Self::Loaded) -> Code;

    /// Does a launch of this function begin before the one in front of it is over?
    fn begins_early(self, _: &Self::Loaded) -> bool {
        false
    }

    /// Runs a function, or queues it, in order with every other use of the arguments.
    ///
    /// # Safety
    /// The function takes these parameters, each no wider than a word, and pointers that are not in `args` are good until it ends.
    unsafe fn start<const WORDS: usize>(self, args: &Args<'_, WORDS>, loaded: Self::Loaded, grid: [u32; 3], params: &[&u64]) -> Result<()>;
}

/// PTX and what is needed to run it.
pub(crate) struct Image<'a> {
    pub(crate) kernel: &'static str,
    pub(crate) entry: &'a str,
    pub(crate) ptx: &'a str,
    pub(crate) schedule: Schedule,
    pub(crate) shared_bytes: u32,
}

/// How a launch is to run, beside where.
#[derive(Clone, Copy, Default)]
pub(crate) struct Mode {
    /// Does it report the first access outside a tensor?
    pub(crate) checked: bool,
    /// Is what is not there yet compiled on another thread?
    pub(crate) in_background: bool,
}

/// Starts the launch; a schedule is named by tuning only.
#[inline]
pub(crate) fn run<G: Gpu, const WORDS: usize, const KEY: usize>(
    gpu: G,
    args: &Args<'_, WORDS>,
    key: &Key<KEY>,
    schedule: Option<Schedule>,
    grid: [u32; 3],
    mode: Mode,
) -> Result<()> {
    if profile::is_on() {
        return run_profiled(gpu, args, key, schedule, grid, mode);
    }
    run_observed(gpu, args, key, schedule, grid, mode, None)
}

#[cold]
fn run_profiled<G: Gpu, const WORDS: usize, const KEY: usize>(
    gpu: G,
    args: &Args<'_, WORDS>,
    key: &Key<KEY>,
    schedule: Option<Schedule>,
    grid: [u32; 3],
    mode: Mode,
) -> Result<()> {
    let mut observation = Observation::begin();
    let outcome = run_observed(gpu, args, key, schedule, grid, mode, Some(&mut observation));
    observation.end(args, key.as_ref(), Some(schedule.unwrap_or(args.kernel().schedule())), gpu.device(), grid, &outcome);
    outcome
}

#[inline]
fn run_observed<G: Gpu, const WORDS: usize, const KEY: usize>(
    gpu: G,
    args: &Args<'_, WORDS>,
    key: &Key<KEY>,
    schedule: Option<Schedule>,
    grid: [u32; 3],
    mode: Mode,
    observation: Option<&mut Observation>,
) -> Result<()> {
    if mode.checked || args.kernel().prints() {
        // Whoever looks for mistakes, or reads lines, sees the kernel as it is written.
        return reporting::run(gpu, args, &key.without_facts(), schedule, grid, mode, observation);
    }
    let loaded = variant(gpu, args.kernel(), key, schedule, mode)?;
    if graph::is_capturing() {
        return graph::capture_on_gpu(gpu, args, loaded, grid);
    }
    // SAFETY: the function takes these words.
    unsafe { profile::start(observation, gpu, args, loaded, grid, &args.params()) }
}

/// The function that a launch runs.
#[inline]
pub(crate) fn variant<G: Gpu, const KEY: usize>(
    gpu: G,
    kernel: &'static Kernel,
    key: &Key<KEY>,
    schedule: Option<Schedule>,
    mode: Mode,
) -> Result<G::Loaded> {
    // Without a compiler in the program, another variant has to do for ever.
    if mode.in_background || cfg!(not(feature = "jit")) {
        return background::at_once(kernel, gpu, key, schedule);
    }
    kernel.on_gpu(gpu, key.as_ref(), schedule)
}
