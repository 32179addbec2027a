//! Functions on a CUDA GPU: launches of what was loaded, see [`load`].

use std::ffi::c_void;

use cudarc::driver::sys::{self, CUresult};
use kernel_lang::Schedule;

use crate::device::Cuda;
use crate::device::driver::{check, launch_error};
use crate::device::stream::Queue;
use crate::kernel::gpu::{Gpu, Image};
use crate::kernel::launch_values::LaunchValues;
use crate::kernel::load::load;
use crate::kernel::{Kernel, Tables};
use crate::launch::args::Args;
use crate::replay::Code;
use crate::{Device, Error, Result, Stream, launch::grid};

/// A CUDA GPU, and the stream of a launch.
#[derive(Clone, Copy)]
pub(crate) struct CudaGpu<'a> {
    pub(crate) device: Device,
    pub(crate) cuda: &'static Cuda,
    pub(crate) stream: Queue<'a>,
    /// Whether the launch may begin before the previous one is complete.
    pub(crate) overlaps: bool,
}

/// A function that a GPU can run. It is never unloaded, because the static kernel that holds it lives as long as the process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loaded {
    pub(crate) function: sys::CUfunction,
    pub(crate) schedule: Schedule,
    /// The most bytes of shared memory that a CTA uses.
    pub(crate) shared_bytes: u32,
    /// Whether the function waits for the previous launch, so that it may begin earlier.
    pub(super) waits: bool,
    /// The values that the function takes after the kernel's own parameters.
    pub(super) launch_values: Option<&'static LaunchValues>,
}

// SAFETY: a function handle is an identifier that the driver accepts on every thread.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

impl Gpu for CudaGpu<'_> {
    type Loaded = Loaded;
    const IS_SIMULATED: bool = false;

    type Anywhere = CudaGpu<'static>;

    fn anywhere(&self) -> Result<CudaGpu<'static>> {
        let stream = self.device.stream().queue().ok_or(Error::NoStream { device: self.device })?;
        Ok(CudaGpu { stream, ..*self })
    }

    #[inline]
    fn device(&self) -> Device {
        self.device
    }

    #[inline]
    fn number(&self) -> usize {
        self.cuda.ordinal
    }

    fn count() -> usize {
        Device::cuda_count()
    }

    fn compute_capability(&self) -> (i32, i32) {
        self.cuda.compute_capability
    }

    #[inline]
    fn multiprocessors(&self) -> u64 {
        self.cuda.multiprocessors.into()
    }

    fn stream(&self) -> Stream {
        Stream::from_launch(self.device, self.stream)
    }

    #[inline]
    fn tables<'k>(&self, kernel: &'k Kernel) -> &'k Tables<Loaded> {
        kernel.cuda_tables()
    }

    #[cold]
    fn load(&self, image: &Image<'_>) -> Result<Loaded> {
        load(self.device, self.cuda, image)
    }

    fn cache_bytes(&self) -> usize {
        self.cuda.cache_bytes as usize
    }

    unsafe fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.cuda.bind()?;
        // SAFETY: as the caller promises.
        check(unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, self.stream.raw()) }, "copy memory")
    }

    unsafe fn zero(&self, address: u64, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.cuda.bind()?;
        // SAFETY: as the caller promises.
        check(unsafe { sys::cuMemsetD8Async(address, 0, bytes, self.stream.raw()) }, "fill memory")
    }

    fn code(loaded: &Loaded) -> Code {
        Code::Cuda(*loaded)
    }

    #[inline]
    fn begins_early(&self, loaded: &Loaded) -> bool {
        self.overlaps && loaded.waits
    }

    #[inline]
    unsafe fn start<const WORDS: usize>(&self, args: &Args<'_, WORDS>, loaded: &Loaded, grid: [u32; 3], params: &[&u64]) -> Result<()> {
        let Some(values) = loaded.launch_values else {
            // SAFETY: as the caller promises.
            return unsafe { self.start_with(args, loaded, grid, params, loaded.shared_bytes) };
        };
        let added = values.parameters(params, grid);
        let count = params.len() + added.len();
        // An array on the stack, because a launch allocates nothing.
        let mut some = [&0; 64];
        let mut many = Vec::new();
        let all = match some.get_mut(..count) {
            Some(all) => all,
            None => {
                many.resize(count, &0);
                &mut many[..]
            }
        };
        all.iter_mut().zip(params.iter().copied().chain(added.iter())).for_each(|(slot, word)| *slot = word);
        // SAFETY: as the caller promises, and the function takes these as its last parameters.
        unsafe { self.start_with(args, loaded, grid, all, loaded.shared_bytes_of(&added)) }
    }
}

impl CudaGpu<'_> {
    /// Queues a launch with all parameters of the function.
    ///
    /// # Safety
    /// As [`Gpu::start`].
    #[inline]
    unsafe fn start_with<const WORDS: usize>(
        &self,
        args: &Args<'_, WORDS>,
        loaded: &Loaded,
        grid: [u32; 3],
        params: &[&u64],
        shared_bytes: u32,
    ) -> Result<()> {
        let Loaded { function, schedule, .. } = *loaded;
        let threads = schedule.threads();
        let [x, y, z] = grid::of_ctas(grid, schedule.num_ctas, args.kernel().name())?;
        let in_order = args.are_in_order(self.stream);
        let guards = if in_order { Vec::new() } else { args.before(self.stream)? };
        self.cuda.bind()?;
        // The driver takes the address of each word. It reads as many low bytes of the word as the parameter has, and writes nothing.
        let params: *mut *mut c_void = params.as_ptr().cast_mut().cast();
        let raw = self.stream.raw();
        // SAFETY: the function is loaded in the current context, and takes these parameters. The memory to which the pointers in `args` point is
        // borrowed until the launch is ordered before every later use, or is complete; `after` ensures this even on an error. No other code captures
        // the stream.
        let code = unsafe {
            if self.begins_early(loaded) {
                start_early(function, [x, y, z], threads, shared_bytes, raw, params)
            } else {
                sys::cuLaunchKernel(function, x, y, z, threads, 1, 1, shared_bytes, raw, params, std::ptr::null_mut())
            }
        };
        if code != CUresult::CUDA_SUCCESS {
            return Err(launch_error(code, args.kernel().name(), threads, shared_bytes));
        }
        if in_order { Ok(()) } else { args.after(guards, self.stream) }
    }
}

impl Loaded {
    /// The values that the function takes after the kernel's own parameters.
    pub(crate) fn launch_values(&self) -> Option<&'static LaunchValues> {
        self.launch_values
    }

    /// The bytes of shared memory that a CTA uses in a launch with these parameters of its launch values.
    #[inline]
    pub(crate) fn shared_bytes_of(&self, added: &[u64]) -> u32 {
        self.launch_values.and_then(|values| values.shared_bytes(added)).unwrap_or(self.shared_bytes)
    }
}

/// Queues a launch that may begin before the previous one is complete. The kernel itself waits for the previous launch: the compiler has inserted the
/// wait before its first access (`passes::wait_for_previous`). Clusters need no attribute, because the PTX states how many CTAs they have. The
/// priority is that of the stream.
///
/// # Safety
/// That of the driver's own call. In addition, the kernel waits for the previous launch.
unsafe fn start_early(
    function: sys::CUfunction,
    [x, y, z]: [u32; 3],
    threads: u32,
    shared_bytes: u32,
    stream: sys::CUstream,
    params: *mut *mut c_void,
) -> CUresult {
    let mut attribute = sys::CUlaunchAttribute {
        id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        pad: [0; 4],
        value: sys::CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 },
    };
    let config = sys::CUlaunchConfig {
        gridDimX: x,
        gridDimY: y,
        gridDimZ: z,
        blockDimX: threads,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: shared_bytes,
        hStream: stream,
        attrs: &mut attribute,
        numAttrs: 1,
    };
    // SAFETY: as the caller promises; the launch configuration lives until the call returns.
    unsafe { sys::cuLaunchKernelEx(&config, function, params, std::ptr::null_mut()) }
}
