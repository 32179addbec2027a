//! Functions on a CUDA GPU: launches of what was loaded, see [`load`].

use std::ffi::c_void;

use cudarc::driver::sys::{self, CUresult};

use crate::device::Cuda;
use crate::device::driver::{check, launch_error};
use crate::device::stream::Queue;
use crate::kernel::entries::{Call, Entries};
use crate::kernel::gpu::{Gpu, Image};
use crate::kernel::load::load;
use crate::kernel::tensor_map::encode;
use crate::kernel::{Kernel, Tables};
use crate::launch::args::Args;
use crate::replay::Code;
use crate::{Device, Error, Result, Stream};

/// A CUDA GPU, and the stream of a launch.
#[derive(Clone, Copy)]
pub(crate) struct CudaGpu<'a> {
    pub(crate) device: Device,
    pub(crate) cuda: &'static Cuda,
    pub(crate) stream: Queue<'a>,
    /// Whether the launch may begin before the previous one is complete.
    pub(crate) overlaps: bool,
}

/// What a GPU can run of a variant. It is never unloaded, because the static kernel that holds it lives as long as the process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loaded {
    pub(super) entries: &'static Entries<Function>,
    /// Whether each entry waits for the previous launch, so that it may begin earlier.
    pub(super) waits: bool,
}

/// A function of the driver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function(pub(super) sys::CUfunction);

// SAFETY: a function handle is an identifier that the driver accepts on every thread.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Function {
    /// The driver's handle.
    #[inline]
    pub(crate) fn raw(self) -> sys::CUfunction {
        self.0
    }
}

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

    fn load_entries(&self, loaded: &Loaded) -> Result<()> {
        loaded.entries.load()
    }

    fn load_entry(&self, kernel: &'static str, loaded: &Loaded, grid: [u32; 3], params: &[&u64]) -> Result<()> {
        loaded.call(kernel, params, grid).map(drop)
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
        let call = loaded.call(args.kernel().name(), params, grid)?;
        let (added, maps) = call.added();
        if added.is_empty() && maps.is_empty() {
            // SAFETY: as the caller promises. The driver takes the address of each word.
            return unsafe { self.start_call(args, loaded, &call, params.as_ptr().cast_mut().cast()) };
        }
        let count = params.len() + added.len() + maps.len();
        // An array on the stack, because a launch allocates nothing.
        let mut some = [std::ptr::null_mut(); 64];
        let mut many = Vec::new();
        let all = match some.get_mut(..count) {
            Some(all) => all,
            None => {
                many.resize(count, std::ptr::null_mut());
                &mut many[..]
            }
        };
        all.iter_mut().zip(pointers(params.iter().copied(), &call)).for_each(|(slot, pointer)| *slot = pointer);
        // SAFETY: as the caller promises, and the function takes the added parameters as its last ones.
        unsafe { self.start_call(args, loaded, &call, all.as_mut_ptr()) }
    }
}

impl CudaGpu<'_> {
    /// Queues a launch with pointers to all parameters of the function.
    ///
    /// # Safety
    /// As [`Gpu::start`].
    #[inline]
    unsafe fn start_call<const WORDS: usize>(
        &self,
        args: &Args<'_, WORDS>,
        loaded: &Loaded,
        call: &FunctionCall,
        params: *mut *mut c_void,
    ) -> Result<()> {
        let Call { function, ctas: [x, y, z], threads, shared_bytes, .. } = *call;
        let in_order = args.are_in_order(self.stream);
        let guards = if in_order { Vec::new() } else { args.before(self.stream)? };
        self.cuda.bind()?;
        let raw = self.stream.raw();
        // SAFETY: the function is loaded in the current context, and takes these parameters. The driver reads as many bytes of each as the parameter has, the low ones
        // of a word, and writes nothing. The memory to which the pointers in `args` point is borrowed until the launch is ordered before every later use,
        // or is complete; `after` ensures this even on an error. No other code captures the stream.
        let code = unsafe {
            if self.begins_early(loaded) {
                start_early(function.raw(), [x, y, z], threads, shared_bytes, raw, params)
            } else {
                sys::cuLaunchKernel(function.raw(), x, y, z, threads, 1, 1, shared_bytes, raw, params, std::ptr::null_mut())
            }
        };
        if code != CUresult::CUDA_SUCCESS {
            return Err(launch_error(code, args.kernel().name(), threads, shared_bytes));
        }
        if in_order { Ok(()) } else { args.after(guards, self.stream) }
    }
}

impl Loaded {
    /// Returns whether both are the same functions, from one load.
    pub(crate) fn is_same(&self, other: &Loaded) -> bool {
        std::ptr::eq(self.entries, other.entries)
    }

    /// How a kernel of this name is launched with these words and this number of programs along each axis.
    #[inline]
    pub(crate) fn call(&self, kernel: &'static str, words: &[&u64], grid: [u32; 3]) -> Result<FunctionCall> {
        self.entries.call(kernel, words, grid, encode)
    }
}

/// How a launch calls a function of the driver.
pub(crate) type FunctionCall = Call<'static, Function>;

/// Pointers to all parameters of a launch with these words. The driver reads as many bytes of each as the parameter has.
#[inline]
pub(crate) fn pointers<'p>(words: impl Iterator<Item = &'p u64>, call: &'p FunctionCall) -> impl Iterator<Item = *mut c_void> {
    let (added, maps) = call.added();
    let words = words.chain(added).map(|word| std::ptr::from_ref(word).cast_mut().cast());
    words.chain(maps.iter().map(|map| std::ptr::from_ref(map).cast_mut().cast()))
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
