//! Launches: arguments and a grid, checked, and run on the device where the arguments live.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::CudaStream;
use cudarc::driver::sys::{self, CUresult};

use crate::args::Args;
use crate::device::Gpu;
use crate::driver::launch_error;
use crate::grid::{Grid, IntoGrid};
use crate::kernel::Schedule;
use crate::module::Loaded;
use crate::{Result, Stream, checked, cpu};

/// A launch that has no grid yet.
#[derive(Clone, Copy, Debug)]
pub struct NoGrid;

/// A call of a kernel, not run yet: `kernel(arguments)` makes it, [`Launch::grid`] says how many programs there are, and
/// [`Launch::launch`] runs it.
///
/// On a GPU the launch is queued, and the call returns at once; on the CPU it is done when the call returns.
#[must_use = "a launch does nothing until `.grid(..).launch()`"]
pub struct Launch<'a, const WORDS: usize, const KEY: usize, G = NoGrid> {
    args: Args<'a, WORDS>,
    key: [u64; KEY],
    grid: G,
    stream: Option<&'a Stream>,
    checked: bool,
}

impl<'a, const WORDS: usize, const KEY: usize> Launch<'a, WORDS, KEY> {
    /// A call of the kernel with these arguments, for these types and constants.
    #[doc(hidden)]
    #[inline]
    pub fn new(args: Args<'a, WORDS>, key: [u64; KEY]) -> Launch<'a, WORDS, KEY> {
        Launch { args, key, grid: NoGrid, stream: None, checked: false }
    }

    /// How many programs run: a number, or up to three in a tuple or array.
    ///
    /// A grid without programs is no error: there is nothing to do.
    #[inline]
    pub fn grid(self, grid: impl IntoGrid) -> Launch<'a, WORDS, KEY, Grid> {
        let Launch { args, key, grid: NoGrid, stream, checked } = self;
        Launch { args, key, grid: grid.into_grid(), stream, checked }
    }
}

impl<'a, const WORDS: usize, const KEY: usize, G> Launch<'a, WORDS, KEY, G> {
    /// Runs on this stream, in order with all other uses of the arguments.
    ///
    /// Without it the launch goes to the home stream of the first tensor that it writes, else of the first that it reads.
    #[inline]
    pub fn on(mut self, stream: &'a Stream) -> Self {
        self.stream = Some(stream);
        self
    }

    /// Reports an access outside its tensor as an [`Error::OutOfBounds`] that names the line, the program and the index: on the CPU
    /// the first in the order of programs, on a GPU the first to happen. The launch is done when the call returns.
    ///
    /// Any launch is safe without it: lanes outside read 0 or `other`, and store nothing.
    ///
    /// [`Error::OutOfBounds`]: crate::Error::OutOfBounds
    #[inline]
    pub fn checked(mut self) -> Self {
        self.checked = true;
        self
    }
}

impl<const WORDS: usize, const KEY: usize> Launch<'_, WORDS, KEY, Grid> {
    /// Runs it.
    ///
    /// # Errors
    /// [`Error::DeviceMismatch`], [`Error::GridTooLarge`], [`Error::ScalarTooLarge`], [`Error::Compile`] for types and constants
    /// that do not compile, [`Error::Jit`], [`Error::OutOfBounds`] of a `.checked()` launch, or what the driver says.
    ///
    /// [`Error::DeviceMismatch`]: crate::Error::DeviceMismatch
    /// [`Error::GridTooLarge`]: crate::Error::GridTooLarge
    /// [`Error::ScalarTooLarge`]: crate::Error::ScalarTooLarge
    /// [`Error::Compile`]: crate::Error::Compile
    /// [`Error::Jit`]: crate::Error::Jit
    /// [`Error::OutOfBounds`]: crate::Error::OutOfBounds
    #[inline]
    pub fn launch(mut self) -> Result<()> {
        let place = Place::of(&mut self.args, self.stream)?;
        let grid = self.grid.check(self.args.kernel().name())?;
        if grid.contains(&0) {
            return Ok(());
        }
        match place {
            Place::Cpu => run_on_cpu(&self.args, &self.key, grid, self.checked),
            Place::Cuda(gpu, stream) if self.checked => checked::run(&self.args, &self.key, grid, gpu, stream),
            Place::Cuda(gpu, stream) => run_on_cuda(&self.args, &self.key, None, grid, gpu, stream),
        }
    }
}

/// Where a launch runs.
#[derive(Clone, Copy)]
pub(crate) enum Place<'a> {
    Cpu,
    Cuda(Gpu, &'a Arc<CudaStream>),
}

impl<'a> Place<'a> {
    /// Where these arguments, on that stream, run; an error if they cannot.
    #[inline]
    pub(crate) fn of<const WORDS: usize>(args: &mut Args<'a, WORDS>, on: Option<&'a Stream>) -> Result<Place<'a>> {
        args.check()?;
        let (device, stream) = match on {
            Some(stream) => (stream.device(), stream.cuda_stream()),
            None => args.home()?,
        };
        args.check_device(device, on.is_some())?;
        Ok(match (device.cuda_info(), stream) {
            (Some(cuda), Some(stream)) => Place::Cuda(Gpu { device, cuda }, stream),
            _ => Place::Cpu,
        })
    }
}

#[inline]
pub(crate) fn run_on_cpu<const WORDS: usize>(args: &Args<'_, WORDS>, key: &[u64], grid: [u32; 3], checked: bool) -> Result<()> {
    let program = args.kernel().on_cpu(key)?;
    cpu::run(args.kernel().name(), &program, args.words(), grid, checked)
}

/// Queues the launch; a schedule is named by tuning only.
#[inline]
pub(crate) fn run_on_cuda<const WORDS: usize>(
    args: &Args<'_, WORDS>,
    key: &[u64],
    schedule: Option<Schedule>,
    grid: [u32; 3],
    gpu: Gpu,
    stream: &Arc<CudaStream>,
) -> Result<()> {
    gpu.cuda.bind()?;
    let loaded = args.kernel().on_cuda(gpu, key, schedule)?;
    // SAFETY: the function takes these words.
    unsafe { enqueue(args, loaded, grid, stream, &mut args.cuda_params()) }
}

/// Queues a launch on a stream, and orders it with every other use of its arguments. The device's context is current.
///
/// # Safety
/// The function takes these parameters, each no wider than a word, and pointers that are not in `args` are good until it ends.
#[inline]
pub(crate) unsafe fn enqueue<const WORDS: usize>(
    args: &Args<'_, WORDS>,
    loaded: Loaded,
    [x, y, z]: [u32; 3],
    stream: &Arc<CudaStream>,
    params: &mut [*mut c_void],
) -> Result<()> {
    let guards = args.before(stream)?;
    let Loaded { function, threads, shared_bytes } = loaded;
    let (raw, params, extra) = (stream.cu_stream(), params.as_mut_ptr(), std::ptr::null_mut());
    // SAFETY: the function is loaded in the current context, and takes the parameters; what the pointers in `args` point to is
    // borrowed until the launch is ordered before every later use.
    let code = unsafe { sys::cuLaunchKernel(function, x, y, z, threads, 1, 1, shared_bytes, raw, params, extra) };
    drop(guards);
    if code != CUresult::CUDA_SUCCESS {
        return Err(launch_error(code, args.kernel().name(), threads, shared_bytes));
    }
    args.after(stream)
}
