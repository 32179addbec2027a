//! PTX on a CUDA GPU. The driver compiles and loads it, its log explains errors, and launches run on a stream. Machine code from an assembler is
//! cached and loaded again, see [`cache`].

use std::ffi::{CStr, CString, c_void};

use cudarc::driver::sys::{self, CUjit_option as Option_, CUresult};
use kernel_lang::Schedule;

#[cfg(feature = "cache")]
use crate::assembler::Assembler;
#[cfg(feature = "cache")]
use crate::cache;
use crate::device::Cuda;
#[cfg(feature = "cache")]
use crate::device::driver;
use crate::device::driver::{check, code_name, launch_error};
use crate::device::stream::Queue;
use crate::kernel::gpu::{Gpu, Image};
use crate::kernel::launch_values::LaunchValues;
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
    pub(crate) shared_bytes: u32,
    /// Whether the function waits for the previous launch, so that it may begin earlier.
    waits: bool,
    /// The values that the function takes after the kernel's own parameters.
    launch_values: Option<&'static LaunchValues>,
}

// SAFETY: a function handle is an identifier that the driver accepts on every thread.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

/// The dynamic shared memory that a function may use without setting an attribute.
const SHARED_BYTES_UNASKED: u32 = 48 << 10;
/// The CTAs of a cluster that a function may use without setting an attribute.
const PORTABLE_CTAS: u32 = 8;

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
            return unsafe { self.start_with(args, loaded, grid, params) };
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
        unsafe { self.start_with(args, loaded, grid, all) }
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
    ) -> Result<()> {
        let Loaded { function, schedule, shared_bytes, .. } = *loaded;
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

    let module = match load_kept(cuda, image) {
        Some(module) => module,
        None => load_ptx(&text).map_err(|(code, log)| refused(code_name(code), log))?,
    };
    let module = Module(module);
    let mut function = std::ptr::null_mut();
    // SAFETY: the module is loaded, and the name is null-terminated.
    let code = unsafe { sys::cuModuleGetFunction(&mut function, module.0, entry.as_ptr()) };
    if code != CUresult::CUDA_SUCCESS {
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
    // The text states whether this code waits. Code for another target, or of an `unchecked` kernel, may not wait.
    let waits = image.ptx.contains("griddepcontrol.wait");
    let launch_values = LaunchValues::of_ptx(image.ptx).map_err(|error| refused("CUDA_ERROR_INVALID_PTX".to_owned(), error))?;
    module.keep();
    // They live as long as the function, which is never unloaded.
    let launch_values = launch_values.map(|values| &*Box::leak(Box::new(values)));
    Ok(Loaded { function, schedule: image.schedule, shared_bytes: image.shared_bytes, waits, launch_values })
}

/// A module in the current context. Dropping it unloads it, unless it is kept.
struct Module(sys::CUmodule);

impl Module {
    /// Keeps the module loaded as long as the process runs.
    fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: the module is loaded, and no code outside of `load` has seen it or its functions.
        let _ = unsafe { sys::cuModuleUnload(self.0) };
    }
}

/// Loads the machine code that an assembler made of the PTX, now or in another process. `None` without an assembler or a disk cache.
#[cfg(feature = "cache")]
fn load_kept(cuda: &Cuda, image: &Image<'_>) -> Option<sys::CUmodule> {
    let assembler = Assembler::current()?;
    let (major, minor) = cuda.compute_capability;
    let architecture = format!("{major}.{minor}");
    let machine = [("architecture", architecture.as_str()), ("driver", driver::version()), ("assembler", assembler.name())];
    let assemble = || assembler.assemble(image.ptx, cuda.compute_capability);
    cache::load_code(image.kernel, image.ptx, &machine, assemble, |code| load_code(code).ok())
}

#[cfg(not(feature = "cache"))]
fn load_kept(_: &Cuda, _: &Image<'_>) -> Option<sys::CUmodule> {
    None
}

/// Loads PTX, which the driver compiles. The error consists of the driver's code and its log.
fn load_ptx(text: &CStr) -> Result<sys::CUmodule, (CUresult, String)> {
    let mut log = vec![0u8; 16 << 10];
    let mut options = [Option_::CU_JIT_ERROR_LOG_BUFFER, Option_::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    // An option value that is not a pointer is passed in the bits of the pointer.
    let mut values = [log.as_mut_ptr().cast(), std::ptr::without_provenance_mut(log.len())];
    let mut module = std::ptr::null_mut();
    // SAFETY: the text is null-terminated, there are as many options as values, and the log is alive.
    let code = unsafe {
        sys::cuModuleLoadDataEx(&mut module, text.as_ptr().cast(), options.len() as u32, options.as_mut_ptr(), values.as_mut_ptr())
    };
    if code == CUresult::CUDA_SUCCESS { Ok(module) } else { Err((code, terminated(&log))) }
}

/// Loads machine code. The driver takes its length from its header.
#[cfg(feature = "cache")]
fn load_code(code: &[u8]) -> Result<sys::CUmodule, CUresult> {
    if !is_whole_elf(code) {
        return Err(CUresult::CUDA_ERROR_INVALID_IMAGE);
    }
    let mut module = std::ptr::null_mut();
    // SAFETY: the code contains all bytes to which its header refers.
    let result = unsafe { sys::cuModuleLoadData(&mut module, code.as_ptr().cast()) };
    if result == CUresult::CUDA_SUCCESS { Ok(module) } else { Err(result) }
}

/// Returns whether `code` is an ELF file and contains all bytes to which its header refers. The driver is given no length, and would read past the
/// end.
#[cfg(feature = "cache")]
fn is_whole_elf(code: &[u8]) -> bool {
    // The header of a 64-bit ELF file, <https://refspecs.linuxfoundation.org/elf/gabi4+/ch4.eheader.html>: the ends of the program and section header
    // tables.
    let half = |at: usize| code.get(at..at + 2).map_or(0, |bytes| u64::from(u16::from_le_bytes([bytes[0], bytes[1]])));
    let word = |at: usize| code.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(u64::MAX, u64::from_le_bytes);
    let ends = [word(32).saturating_add(half(54) * half(56)), word(40).saturating_add(half(58) * half(60))];
    code.starts_with(b"\x7fELF\x02\x01") && ends.iter().all(|&end| end <= code.len() as u64)
}

/// The text before the first zero byte.
fn terminated(log: &[u8]) -> String {
    let text = log.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).trim().to_owned()
}

#[cfg(all(test, feature = "cache"))]
mod tests {
    use super::*;

    #[test]
    fn machine_code_is_whole_or_none() {
        // A header of 64 bytes, followed by two program headers of 56 bytes, and three section headers of 64 bytes at offset 200.
        let mut code = vec![0u8; 200 + 3 * 64];
        code[..6].copy_from_slice(b"\x7fELF\x02\x01");
        for (at, value) in [(32, 64u16), (40, 200), (54, 56), (56, 2), (58, 64), (60, 3)] {
            code[at..at + 2].copy_from_slice(&value.to_le_bytes());
        }
        assert!(is_whole_elf(&code));
        assert!((0..code.len()).all(|len| !is_whole_elf(&code[..len])));
        code[40..48].fill(0xff);
        assert!(!is_whole_elf(&code));
        assert!(!is_whole_elf(b"") && !is_whole_elf(b".version 7.0") && !is_whole_elf(&[0; 300]));
    }
}
