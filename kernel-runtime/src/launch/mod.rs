//! Launches: the runtime checks arguments and grid, and runs the kernel on the device that holds the arguments.

pub(crate) mod args;
pub(crate) mod call;
pub(crate) mod deferral;
pub(crate) mod device_reports;
pub(crate) mod fact;
pub(crate) mod grid;
pub(crate) mod prints;
pub(crate) mod recording;
pub(crate) mod scalar;
pub(crate) mod type_word;

use std::panic::Location;

use crate::device::Backend;
use crate::kernel::module::CudaGpu;
use crate::launch::args::Args;
use crate::launch::call::{Call, Mode};
use crate::launch::fact::Key;
use crate::launch::grid::{Grid, HasGrid, IntoGrid};
use crate::sim::SimGpu;
use crate::{Error, Result, Stream};

/// The type of the grid of a launch before [`Launch::grid`] is called.
#[derive(Clone, Copy, Debug)]
pub struct NoGrid;

/// A call of a kernel that has not run yet. `kernel(arguments)` makes it, [`Launch::grid`] sets the number of programs, and [`Launch::launch`] runs
/// it.
///
/// On a CUDA GPU the launch is queued, and the call returns at once. On the CPU and on a simulated GPU the launch is complete when the call returns.
#[must_use = "a launch does nothing until `.grid(..).launch()`"]
pub struct Launch<'a, const WORDS: usize, const KEY: usize, G = NoGrid> {
    args: Args<'a, WORDS>,
    key: [u64; KEY],
    grid: G,
    stream: Option<&'a Stream>,
    mode: Mode,
    overlaps: bool,
}

impl<'a, const WORDS: usize, const KEY: usize> Launch<'a, WORDS, KEY> {
    /// A call of the kernel with these arguments, for the types and constants of `key`.
    ///
    /// # Safety
    /// - The arguments are those of the kernel's parameters, in their order and of their types for this key.
    /// - The key has a word for each of the kernel's generics.
    /// - If the kernel is `unchecked`, it may be launched with these arguments.
    ///
    /// ```compile_fail,E0133
    /// use kernel_runtime::Launch;
    /// use kernel_runtime::private::{Args, Kernel, Schedule};
    /// // SAFETY: it has no variants.
    /// static KERNEL: Kernel = unsafe { Kernel::new("k", "", Schedule::DEFAULT, &[], &[]) };
    /// let _ = Launch::<'_, 0, 0>::new(Args::new(&KERNEL), []);
    /// ```
    #[doc(hidden)]
    #[inline]
    pub unsafe fn new(args: Args<'a, WORDS>, key: [u64; KEY]) -> Launch<'a, WORDS, KEY> {
        Launch { args, key, grid: NoGrid, stream: None, mode: Mode::default(), overlaps: false }
    }

    /// Sets the number of programs: a number, or up to three in a tuple or array.
    ///
    /// A grid without programs is not an error: the launch does nothing.
    #[inline]
    pub fn grid(self, grid: impl IntoGrid) -> Launch<'a, WORDS, KEY, Grid> {
        let Launch { mut args, key, grid: NoGrid, stream, mode, overlaps } = self;
        if grid.is_unknown() {
            args.defer_grid(grid.unknown());
        }
        Launch { args, key, grid: grid.into_grid(), stream, mode, overlaps }
    }
}

impl<'a, const WORDS: usize, const KEY: usize, G> Launch<'a, WORDS, KEY, G> {
    /// Runs the launch on this stream, ordered with all other uses of the arguments.
    ///
    /// Without this call, a launch uses the home stream of the first tensor that it writes, or else of the first tensor that it reads.
    #[inline]
    pub fn on(mut self, stream: &'a Stream) -> Self {
        self.stream = Some(stream);
        self
    }

    /// Lets the programs begin while the previous launch on the stream still runs, on Hopper GPUs (compute capability 9.0). The work of a
    /// kernel before its `gdc_wait()`, and the start of the launch, then overlap with the previous launch. If the previous kernel calls
    /// `gdc_launch_dependents()`, the overlap begins early; otherwise only its last programs are overlapped.
    ///
    /// This is only a permission: a kernel that calls neither function, or that runs on another device, begins when the previous launch is complete.
    /// So does an `unchecked` kernel without a `gdc_wait()`. A safe kernel that calls either function always waits before it accesses memory; see
    /// `dsl::gdc_wait`.
    #[inline]
    pub fn overlap_previous(mut self) -> Self {
        self.overlaps = true;
        self
    }

    /// Reports an access outside its tensor as an [`Error::OutOfBounds`] that names the line, the program and the index. On the CPU this is the first
    /// such access in the order of programs, on a GPU the first to happen. A `device_assert!` that fails is reported as an
    /// [`Error::AssertionFailed`]; other launches do not evaluate assertions. The launch is complete when the call returns.
    ///
    /// Every launch is safe without this check: elements outside the tensor read 0 or `other`, and are not stored.
    ///
    /// [`Error::OutOfBounds`]: crate::Error::OutOfBounds
    /// [`Error::AssertionFailed`]: crate::Error::AssertionFailed
    #[inline]
    pub fn checked(mut self) -> Self {
        self.mode.checked = true;
        self
    }

    /// Does not wait if the variant for these arguments must still be compiled. Another thread compiles and loads it. Meanwhile this launch and later
    /// ones run a variant that was built with the program and relies on fewer of the facts that hold, or else the variant that was compiled for any
    /// arguments. Once the new variant is loaded, later launches with this method, and all launches without it, use it.
    ///
    /// Such a variant is for a combination of facts, such as strides that are 1, that was not built with the program. If nothing was built for the
    /// types and constants of the launch, and no variant for any arguments has been compiled, the launch waits for the compiler. It also waits on the
    /// CPU, if it is [`checked`](Launch::checked), and while the driver compiles the PTX of a variant that no other thread has loaded.
    ///
    /// If the other thread fails, one later launch with this method returns its error. The launches after that one run the same variant as before.
    #[inline]
    pub fn compile_in_background(mut self) -> Self {
        self.mode.in_background = true;
        self
    }
}

impl<const WORDS: usize, const KEY: usize, G> Launch<'_, WORDS, KEY, G> {
    /// Runs the launch. If the kernel contains a `device_print!`, the launch is complete and its lines are printed when the call returns; see
    /// [`capture_prints`](crate::capture_prints).
    ///
    /// # Errors
    /// - [`Error::DeviceMismatch`], [`Error::GridTooLarge`] or [`Error::ScalarTooLarge`] for the arguments and the grid
    /// - [`Error::Dim`] for an argument or a grid that is an expression, if the launch is not recorded
    /// - [`Error::Ops`] for a tensor of [`ops`](crate::ops) with another dtype, or for a launch that cannot be recorded
    /// - [`Error::Compile`] for types and constants that do not compile, or [`Error::NotBuilt`] in a program without the compiler
    /// - [`Error::Jit`] if the device cannot load the PTX
    /// - [`Error::OutOfBounds`] or [`Error::AssertionFailed`] of a `.checked()` launch
    /// - [`Error::InCapture`] for a launch that a replay cannot repeat
    /// - [`Error::StreamCaptured`] if other code captures the stream
    /// - a CUDA driver error; on a simulated GPU, an `Error::Fault` for every mistake that it detects
    ///
    /// [`Error::Dim`]: crate::Error::Dim
    /// [`Error::Ops`]: crate::Error::Ops
    /// [`Error::DeviceMismatch`]: crate::Error::DeviceMismatch
    /// [`Error::GridTooLarge`]: crate::Error::GridTooLarge
    /// [`Error::ScalarTooLarge`]: crate::Error::ScalarTooLarge
    /// [`Error::Compile`]: crate::Error::Compile
    /// [`Error::NotBuilt`]: crate::Error::NotBuilt
    /// [`Error::Jit`]: crate::Error::Jit
    /// [`Error::OutOfBounds`]: crate::Error::OutOfBounds
    /// [`Error::AssertionFailed`]: crate::Error::AssertionFailed
    /// [`Error::InCapture`]: crate::Error::InCapture
    /// [`Error::StreamCaptured`]: crate::Error::StreamCaptured
    #[inline]
    #[track_caller]
    pub fn launch(mut self) -> Result<()>
    where
        G: HasGrid,
    {
        let device = match LaunchDevice::of(&mut self.args, self.stream) {
            Ok(device) => device,
            Err(error) => return self.record(error, Location::caller()),
        };
        let grid = self.grid.chosen().check(self.args.kernel().name())?;
        if grid.contains(&0) {
            return Ok(());
        }
        let key = Key::new(self.key, self.args.facts());
        let call = Call { args: &self.args, key, schedule: None, grid, mode: self.mode };
        match device {
            LaunchDevice::Cpu => call.run_on_cpu(),
            LaunchDevice::Cuda(cuda) => call.run(&CudaGpu { overlaps: self.overlaps, ..cuda }),
            LaunchDevice::Sim(sim) => call.run(&sim),
        }
    }
}

/// The device on which a launch runs, with its stream.
#[derive(Clone, Copy)]
pub(crate) enum LaunchDevice<'a> {
    Cpu,
    Cuda(CudaGpu<'a>),
    Sim(SimGpu),
}

impl<'a> LaunchDevice<'a> {
    /// Selects the device for these arguments and that stream. Returns an error if the launch cannot run there.
    #[inline]
    pub(crate) fn of<const WORDS: usize>(args: &mut Args<'a, WORDS>, on: Option<&'a Stream>) -> Result<LaunchDevice<'a>> {
        args.check()?;
        let (device, stream) = match on {
            Some(stream) => (stream.device(), stream.queue()),
            None => args.home()?,
        };
        args.check_device(device, on.is_some())?;
        match (device.backend(), stream) {
            (Backend::Cpu, _) => Ok(LaunchDevice::Cpu),
            (Backend::Sim(sim), _) => Ok(LaunchDevice::Sim(SimGpu { device, sim })),
            (Backend::Cuda(cuda), Some(stream)) => {
                stream.forbid_capture("launch a kernel")?;
                Ok(LaunchDevice::Cuda(CudaGpu { device, cuda, stream, overlaps: false }))
            }
            (Backend::Cuda(_), None) => Err(Error::NoStream { device }),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::kernel::Kernel;
    use crate::launch::args::Args;
    use crate::{Device, Error, Event, Launch, Replay, Result, Stream};

    /// No public function makes such a stream, but the runtime must not rely on that.
    #[test]
    #[ignore = "needs a CUDA driver: `cargo xtask ci driver` has one"]
    fn a_gpu_without_a_stream_is_an_error_and_not_the_cpu() {
        // SAFETY: the kernel has neither code nor parameters.
        static KERNEL: Kernel = unsafe { Kernel::new("k", "kernel @k() {\n    return\n}\n", kernel_lang::Schedule::DEFAULT, &[], &[]) };
        let device = Device::cuda(0).unwrap();
        let none = Stream::new(device, None);
        let refused = |outcome: Result<()>| match outcome {
            Err(Error::NoStream { device: named }) => assert_eq!(named, device),
            other => panic!("{other:?}"),
        };
        // SAFETY: the kernel has no parameters.
        refused(unsafe { Launch::<0, 0>::new(Args::new(&KERNEL), []) }.on(&none).grid(1).launch());
        refused(Event::new(device).unwrap().record(&none));
        let mut x = device.zeros::<f32>(4).unwrap();
        refused(Replay::capture(&none, || x.fill(1.0)).and_then(|mut replay| replay.launch(&mut x)));
        assert_eq!(x.to_vec().unwrap(), [0.0; 4]);
    }
}
