//! Launches: arguments and a grid, checked, and run on the device where the arguments live.

use crate::args::Args;
use crate::call::{Call, Mode};
use crate::device::Backend;
use crate::fact::Key;
use crate::grid::{Grid, IntoGrid};
use crate::module::CudaGpu;
use crate::sim::SimGpu;
use crate::{Error, Result, Stream};

/// A launch that has no grid yet.
#[derive(Clone, Copy, Debug)]
pub struct NoGrid;

/// A call of a kernel, not run yet: `kernel(arguments)` makes it, [`Launch::grid`] says how many programs there are, and
/// [`Launch::launch`] runs it.
///
/// On a GPU the launch is queued, and the call returns at once; on the CPU and on a simulated GPU it is done when the call returns.
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
    /// A call of the kernel with these arguments, for these types and constants.
    ///
    /// # Safety
    /// The arguments are of the kernel's parameters, in their order and of their types for this key, which has a word for each of the kernel's generics.
    /// A kernel that is `unchecked` may be launched with them.
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

    /// How many programs run: a number, or up to three in a tuple or array.
    ///
    /// A grid without programs is no error: there is nothing to do.
    #[inline]
    pub fn grid(self, grid: impl IntoGrid) -> Launch<'a, WORDS, KEY, Grid> {
        let Launch { args, key, grid: NoGrid, stream, mode, overlaps } = self;
        Launch { args, key, grid: grid.into_grid(), stream, mode, overlaps }
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

    /// Lets the programs begin while the launch before it on the stream still runs, on GPUs from compute capability 9.0 on: what a kernel does in front of its
    /// `gdc_wait()` then costs no time of its own, and nor does starting it. The launch before may say `gdc_launch_dependents()` to be overlapped early;
    /// else the last of its programs are.
    ///
    /// It is only an option: a kernel that says neither word, or runs on a device that cannot, begins when the launch before is over. A safe kernel
    /// is as safe as ever, because it waits before it touches memory, whatever it says; see `dsl::gdc_wait`.
    #[inline]
    pub fn overlap_previous(mut self) -> Self {
        self.overlaps = true;
        self
    }

    /// Reports an access outside its tensor as an [`Error::OutOfBounds`] that names the line, the program and the index: on the CPU
    /// the first in the order of programs, on a GPU the first to happen. So does a `device_assert!` of the kernel that does not hold, as an
    /// [`Error::AssertionFailed`]; other launches do not look at it. The launch is done when the call returns.
    ///
    /// Any launch is safe without it: lanes outside read 0 or `other`, and store nothing.
    ///
    /// [`Error::OutOfBounds`]: crate::Error::OutOfBounds
    /// [`Error::AssertionFailed`]: crate::Error::AssertionFailed
    #[inline]
    pub fn checked(mut self) -> Self {
        self.mode.checked = true;
        self
    }

    /// Does not wait where the variant for these arguments is still to be compiled: another thread compiles and loads it, while this launch and
    /// those behind it run what was built with the program and counts on fewer of the facts that hold of them, or what serves any arguments. When it is ready,
    /// later launches with this method, and all without, use it.
    ///
    /// What is compiled is a combination of facts, such as strides that are 1, that was not built with the program. Where nothing was built for the
    /// types and constants of the launch, and nothing that serves any arguments has been compiled either, there is nothing to run meanwhile, and it waits. So it does on the CPU,
    /// and where it is [`checked`](Launch::checked).
    ///
    /// If the other thread fails, one later launch with this method returns its error; those behind it run what ran before.
    #[inline]
    pub fn compile_in_background(mut self) -> Self {
        self.mode.in_background = true;
        self
    }
}

impl<const WORDS: usize, const KEY: usize> Launch<'_, WORDS, KEY, Grid> {
    /// Runs it. One of a kernel with a `device_print!` is done when the call returns, and its lines have been printed; see
    /// [`capture_prints`](crate::capture_prints).
    ///
    /// # Errors
    /// [`Error::DeviceMismatch`], [`Error::GridTooLarge`], [`Error::ScalarTooLarge`], [`Error::Compile`] for types and constants
    /// that do not compile, or [`Error::NotBuilt`] in a program that compiles none, [`Error::Jit`], [`Error::OutOfBounds`] or [`Error::AssertionFailed`] of a `.checked()` launch,
    /// [`Error::InCapture`] for one that no graph can repeat, [`Error::StreamCaptured`] where somebody else captures the stream, or what the driver says; on a simulated GPU every mistake that it sees, as an `Error::Fault`.
    ///
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
    pub fn launch(mut self) -> Result<()> {
        let place = Place::of(&mut self.args, self.stream)?;
        let grid = self.grid.check(self.args.kernel().name())?;
        if grid.contains(&0) {
            return Ok(());
        }
        let key = Key::new(self.key, self.args.facts());
        let call = Call { args: &self.args, key, schedule: None, grid, mode: self.mode };
        match place {
            Place::Cpu => call.run_on_cpu(),
            Place::Cuda(cuda) => call.run(&CudaGpu { overlaps: self.overlaps, ..cuda }),
            Place::Sim(sim) => call.run(&sim),
        }
    }
}

/// Where a launch runs.
#[derive(Clone, Copy)]
pub(crate) enum Place<'a> {
    Cpu,
    Cuda(CudaGpu<'a>),
    Sim(SimGpu),
}

impl<'a> Place<'a> {
    /// Where these arguments, on that stream, run; an error if they cannot.
    #[inline]
    pub(crate) fn of<const WORDS: usize>(args: &mut Args<'a, WORDS>, on: Option<&'a Stream>) -> Result<Place<'a>> {
        args.check()?;
        let (device, stream) = match on {
            Some(stream) => (stream.device(), stream.queue()),
            None => args.home()?,
        };
        args.check_device(device, on.is_some())?;
        match (device.backend(), stream) {
            (Backend::Cpu, _) => Ok(Place::Cpu),
            (Backend::Sim(sim), _) => Ok(Place::Sim(SimGpu { device, sim })),
            (Backend::Cuda(cuda), Some(stream)) => {
                stream.forbid_capture("launch a kernel")?;
                Ok(Place::Cuda(CudaGpu { device, cuda, stream, overlaps: false }))
            }
            (Backend::Cuda(_), None) => Err(Error::NoStream { device }),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::args::Args;
    use crate::kernel::Kernel;
    use crate::{Device, Error, Event, Graph, Launch, Result, Stream};

    /// Nobody can make such a stream, and nothing counts on that.
    #[test]
    #[ignore = "needs a CUDA driver: `cargo xtask ci driver` has one"]
    fn a_gpu_without_a_stream_is_an_error_and_not_the_cpu() {
        // SAFETY: it has neither code nor parameters.
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
        refused(Graph::capture(&none, || x.fill(1.0)).and_then(|mut graph| graph.launch(&mut x)));
        assert_eq!(x.to_vec().unwrap(), [0.0; 4]);
    }
}
