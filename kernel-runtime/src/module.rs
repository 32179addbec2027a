//! PTX on a CUDA GPU: loaded by the driver, whose log says what it disliked, and launched on a stream.

use std::ffi::{CString, c_void};
use std::sync::Arc;

use cudarc::driver::CudaStream;
use cudarc::driver::sys::{self, CUjit_option as Option_, CUresult};
use kernel_lang::Schedule;

use crate::args::Args;
use crate::device::Cuda;
use crate::driver::{check, code_name, launch_error};
use crate::gpu::{Gpu, Image};
use crate::kernel::{Kernel, Tables};
use crate::{Device, Error, Result, Stream, grid};

/// A CUDA GPU, and the stream that a launch goes to.
#[derive(Clone, Copy)]
pub(crate) struct CudaGpu<'a> {
    pub(crate) device: Device,
    pub(crate) cuda: &'static Cuda,
    pub(crate) stream: &'a Arc<CudaStream>,
}

/// A function that a GPU can run. It is never unloaded: the static kernel that holds it lives as long as the process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loaded {
    function: sys::CUfunction,
    schedule: Schedule,
    shared_bytes: u32,
}

// SAFETY: a function handle is a name that the driver understands on every thread.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

/// Dynamic shared memory that a function has without asking.
const SHARED_BYTES_UNASKED: u32 = 48 << 10;
/// CTAs of a cluster that a function may have without asking.
const PORTABLE_CTAS: u32 = 8;

impl Gpu for CudaGpu<'_> {
    type Loaded = Loaded;
    const IS_SIMULATED: bool = false;

    #[inline]
    fn device(self) -> Device {
        self.device
    }

    #[inline]
    fn number(self) -> usize {
        self.cuda.ordinal
    }

    fn count() -> usize {
        Device::cuda_count()
    }

    fn compute_capability(self) -> (i32, i32) {
        self.cuda.compute_capability
    }

    fn stream(self) -> Stream {
        Stream::from_launch(self.device, self.stream)
    }

    #[inline]
    fn tables(self, kernel: &Kernel) -> &Tables<Loaded> {
        kernel.cuda_tables()
    }

    #[cold]
    fn load(self, image: &Image<'_>) -> Result<Loaded> {
        load(self.device, self.cuda, image)
    }

    fn cache_bytes(self) -> usize {
        self.cuda.cache_bytes as usize
    }

    unsafe fn copy(self, from: u64, to: u64, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.cuda.bind()?;
        // SAFETY: as the caller promises.
        check(unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, self.stream.cu_stream()) }, "copy memory")
    }

    unsafe fn zero(self, address: u64, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.cuda.bind()?;
        // SAFETY: as the caller promises.
        check(unsafe { sys::cuMemsetD8Async(address, 0, bytes, self.stream.cu_stream()) }, "fill memory")
    }

    #[inline]
    unsafe fn start<const WORDS: usize>(self, args: &Args<'_, WORDS>, loaded: Loaded, grid: [u32; 3], params: &[&u64]) -> Result<()> {
        let Loaded { function, schedule, shared_bytes } = loaded;
        let threads = schedule.threads();
        let [x, y, z] = grid::of_ctas(grid, schedule.num_ctas, args.kernel().name())?;
        self.cuda.bind()?;
        let guards = args.before(self.stream)?;
        // The driver takes the address of each word, of which it reads as many low bytes as the parameter has; it writes nothing.
        let params: *mut *mut c_void = params.as_ptr().cast_mut().cast();
        let (raw, extra) = (self.stream.cu_stream(), std::ptr::null_mut());
        // SAFETY: the function is loaded in the current context, and takes the parameters; what the pointers in `args` point to is
        // borrowed until the launch is ordered before every later use.
        let code = unsafe { sys::cuLaunchKernel(function, x, y, z, threads, 1, 1, shared_bytes, raw, params, extra) };
        drop(guards);
        if code != CUresult::CUDA_SUCCESS {
            return Err(launch_error(code, args.kernel().name(), threads, shared_bytes));
        }
        args.after(self.stream)
    }
}

/// Loads the PTX into the device's context.
fn load(device: Device, cuda: &Cuda, image: &Image<'_>) -> Result<Loaded> {
    if image.shared_bytes > cuda.shared_bytes {
        return Err(Error::SharedMemory { kernel: image.kernel, device, requested: image.shared_bytes, limit: cuda.shared_bytes });
    }
    cuda.bind()?;
    let refused = |code: String, log: String| Error::Jit { kernel: image.kernel, device, code, log };
    let no_text = |_| refused("CUDA_ERROR_INVALID_PTX".to_owned(), "the PTX contains a zero byte".to_owned());
    let text = CString::new(image.ptx).map_err(no_text)?;
    let entry = CString::new(image.entry).map_err(no_text)?;

    let mut log = vec![0u8; 16 << 10];
    let mut options = [Option_::CU_JIT_ERROR_LOG_BUFFER, Option_::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    // A value that is no pointer travels in the pointer's own bits.
    let mut values = [log.as_mut_ptr().cast(), std::ptr::without_provenance_mut(log.len())];
    let mut module = std::ptr::null_mut();
    // SAFETY: the text is terminated; there are as many options as values, and the log is alive.
    let code = unsafe {
        sys::cuModuleLoadDataEx(&mut module, text.as_ptr().cast(), options.len() as u32, options.as_mut_ptr(), values.as_mut_ptr())
    };
    if code != CUresult::CUDA_SUCCESS {
        return Err(refused(code_name(code), terminated(&log)));
    }
    let mut function = std::ptr::null_mut();
    // SAFETY: the module is loaded and the name terminated.
    let code = unsafe { sys::cuModuleGetFunction(&mut function, module, entry.as_ptr()) };
    if code != CUresult::CUDA_SUCCESS {
        // SAFETY: nobody has seen the module.
        let _ = unsafe { sys::cuModuleUnload(module) };
        return Err(refused(code_name(code), format!("the PTX has no entry `{}`", image.entry)));
    }
    if image.shared_bytes > SHARED_BYTES_UNASKED {
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function is loaded.
        check(unsafe { sys::cuFuncSetAttribute(function, attribute, image.shared_bytes as i32) }, "reserve shared memory")?;
    }
    if image.schedule.num_ctas > PORTABLE_CTAS {
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
        // SAFETY: the function is loaded.
        check(unsafe { sys::cuFuncSetAttribute(function, attribute, 1) }, "allow larger clusters")?;
    }
    Ok(Loaded { function, schedule: image.schedule, shared_bytes: image.shared_bytes })
}

/// The text before the first zero byte.
fn terminated(log: &[u8]) -> String {
    let text = log.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).trim().to_owned()
}
