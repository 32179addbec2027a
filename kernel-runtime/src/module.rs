//! PTX into functions, through the driver's own loader, whose log says what it disliked.

use std::ffi::CString;

use cudarc::driver::sys::{self, CUjit_option as Option_, CUresult};

use crate::device::Gpu;
use crate::driver::{check, code_name};
use crate::{Error, Result};

/// PTX and what is needed to run it.
pub(crate) struct Image<'a> {
    pub(crate) kernel: &'static str,
    pub(crate) entry: &'a str,
    pub(crate) ptx: &'a str,
    pub(crate) num_warps: u32,
    pub(crate) shared_bytes: u32,
}

/// A function that a GPU can run. It is never unloaded: the static kernel that holds it lives as long as the process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loaded {
    pub(crate) function: sys::CUfunction,
    pub(crate) threads: u32,
    pub(crate) shared_bytes: u32,
}

// SAFETY: a function handle is a name that the driver understands on every thread.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

/// Dynamic shared memory that a function has without asking.
const SHARED_BYTES_UNASKED: u32 = 48 << 10;

/// Threads of a warp, on every GPU so far.
const WARP: u32 = 32;

/// Loads the PTX into the device's context.
pub(crate) fn load(Gpu { device, cuda }: Gpu, image: &Image<'_>) -> Result<Loaded> {
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
    Ok(Loaded { function, threads: WARP * image.num_warps, shared_bytes: image.shared_bytes })
}

/// The text before the first zero byte.
fn terminated(log: &[u8]) -> String {
    let text = log.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).trim().to_owned()
}
