//! The CUDA driver: its detection, its version, and the meaning of its error codes.
//!
//! cudarc loads the driver's library on the first call, and panics if there is none. Therefore every path to cudarc starts at [`load`].

use std::ffi::{CStr, c_void};
use std::sync::OnceLock;

use cudarc::driver::DriverError;
use cudarc::driver::sys::{self, CUresult};

use crate::error::{Error, Result};

/// Proof that the driver's library is present and initialised.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Driver {
    /// The number of GPUs that the driver sees.
    pub(crate) device_count: usize,
}

/// Loads and initialises the driver, once per process.
///
/// # Errors
/// [`Error::NoDriver`] if the library is missing, [`Error::Driver`] if it does not start. Without any GPU the driver starts, and the device count is
/// 0.
pub(crate) fn load() -> Result<Driver> {
    static DRIVER: OnceLock<Result<Driver, Option<CUresult>>> = OnceLock::new();
    match DRIVER.get_or_init(start) {
        Ok(driver) => Ok(*driver),
        Err(None) => Err(Error::NoDriver),
        Err(Some(code)) => Err(error(*code, "start the CUDA driver")),
    }
}

fn start() -> Result<Driver, Option<CUresult>> {
    if !library_is_present() {
        return Err(None);
    }
    // SAFETY: `cuInit` may be called at any time, and its flags must be 0.
    match unsafe { sys::cuInit(0) } {
        CUresult::CUDA_SUCCESS => {}
        CUresult::CUDA_ERROR_NO_DEVICE => return Ok(Driver { device_count: 0 }),
        // The toolkit's stub library, which replaces the driver only at link time.
        CUresult::CUDA_ERROR_STUB_LIBRARY => return Err(None),
        code => return Err(Some(code)),
    }
    let mut count = 0;
    // SAFETY: `count` is valid for the result.
    match unsafe { sys::cuDeviceGetCount(&mut count) } {
        CUresult::CUDA_SUCCESS => Ok(Driver { device_count: usize::try_from(count).unwrap_or(0) }),
        code => Err(Some(code)),
    }
}

/// The driver's version: that of CUDA, and, if the system reports it, that of the driver itself, as in `13.0 (580.159.04)`. Two drivers may compile
/// the same PTX differently.
pub(crate) fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        let cuda = match cuda_version() {
            0 => "none".to_owned(),
            cuda => format!("{}.{}", cuda / 1000, cuda % 1000 / 10),
        };
        let module = std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
        match module_version(&module) {
            Some(version) => format!("{cuda} ({version})"),
            None => cuda,
        }
    })
}

/// The newest version of CUDA that the driver supports: 12030 for 12.3, or 0 without a driver.
pub(crate) fn cuda_version() -> i32 {
    let mut cuda = 0;
    // SAFETY: the driver is present, and `cuda` is valid for the result.
    let known = load().is_ok() && unsafe { sys::cuDriverGetVersion(&mut cuda) } == CUresult::CUDA_SUCCESS;
    if known { cuda } else { 0 }
}

/// Extracts the version from the kernel module's line: `NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue ..`.
fn module_version(text: &str) -> Option<&str> {
    let line = text.lines().find(|line| line.starts_with("NVRM"))?;
    line.split_whitespace().find(|word| word.contains('.') && word.chars().all(|c| c == '.' || c.is_ascii_digit()))
}

/// Returns whether the driver's library is on this machine.
///
/// Another crate may make cudarc link the driver instead of loading it (candle does). Then `sys` has no `is_culib_present`, the glob import below
/// adds nothing, and the name refers to the outer function. That function returns `true`, because a process that is linked to the driver could not
/// have started without it.
fn library_is_present() -> bool {
    #[allow(unused_imports, reason = "see above")]
    use cudarc::driver::sys::*;
    // SAFETY: the call opens the driver's library and runs its initialisers, as any use of CUDA does.
    unsafe { is_culib_present() }
}

#[allow(dead_code, reason = "used where cudarc links the driver, see `library_is_present`")]
unsafe fn is_culib_present() -> bool {
    true
}

/// Returns `Ok` on success, else the error for the code.
#[inline]
pub(crate) fn check(code: CUresult, doing: &'static str) -> Result<()> {
    match code {
        CUresult::CUDA_SUCCESS => Ok(()),
        code => Err(error(code, doing)),
    }
}

/// Makes a context current on the calling thread. Cheap if it is current already.
///
/// cudarc's own function also returns errors that earlier calls left in the context. A use of memory must not stop at these.
#[inline]
pub(crate) fn bind(context: sys::CUcontext) -> Result<()> {
    let mut current = std::ptr::null_mut();
    // SAFETY: `current` is valid for the result.
    check(unsafe { sys::cuCtxGetCurrent(&mut current) }, "ask for the current context")?;
    if current != context {
        // SAFETY: the callers hold a stream or a device of the context, which keeps the context alive.
        check(unsafe { sys::cuCtxSetCurrent(context) }, "make a context current")?;
    }
    Ok(())
}

/// [`check`] for a result of cudarc.
#[inline]
pub(crate) fn check_cudarc<T>(result: Result<T, DriverError>, doing: &'static str) -> Result<T> {
    result.map_err(|DriverError(code)| error(code, doing))
}

#[cold]
fn error(code: CUresult, doing: &'static str) -> Error {
    let (name, description) = (code_name(code), code_description(code));
    if is_asynchronous(code) {
        Error::Asynchronous { doing, code: name, description }
    } else {
        Error::Driver { doing, code: name, description }
    }
}

/// The error of a launch that the driver refused.
#[cold]
pub(crate) fn launch_error(code: CUresult, kernel: &'static str, threads: u32, shared_bytes: u32) -> Error {
    match error(code, "launch a kernel") {
        Error::Driver { code, description, .. } => Error::LaunchRefused { kernel, threads, shared_bytes, code, description },
        earlier => earlier,
    }
}

/// Returns whether earlier work, and not the call that returned the code, caused the error. Every later call returns it too: the context, or the
/// process, is lost.
pub(crate) fn is_asynchronous(code: CUresult) -> bool {
    matches!(
        code,
        CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
            | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
            | CUresult::CUDA_ERROR_ASSERT
            | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
            | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUresult::CUDA_ERROR_INVALID_PC
            | CUresult::CUDA_ERROR_LAUNCH_FAILED
            | CUresult::CUDA_ERROR_TENSOR_MEMORY_LEAK
            | CUresult::CUDA_ERROR_CONTAINED
            | CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
            | CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE
            | CUresult::CUDA_ERROR_EXTERNAL_DEVICE
            | CUresult::CUDA_ERROR_MPS_RPC_FAILURE
            | CUresult::CUDA_ERROR_MPS_CLIENT_TERMINATED
    )
}

/// The driver's name of a code.
pub(crate) fn code_name(code: CUresult) -> String {
    format!("{code:?}")
}

fn code_description(code: CUresult) -> String {
    let mut text = std::ptr::null();
    // SAFETY: a code exists only if the driver is present, and the text to which the pointer is set is static.
    let known = unsafe { sys::cuGetErrorString(code, &mut text) } == CUresult::CUDA_SUCCESS && !text.is_null();
    if known {
        // SAFETY: the driver gave a null-terminated static string.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    } else {
        "no description".to_owned()
    }
}

/// The time between two recorded events that are complete, in milliseconds.
///
/// The driver's header renamed this function in CUDA 12.8, and older drivers lack the new name. Every driver finds the function by its first version.
///
/// # Safety
/// Both events are alive and belong to the current context.
pub(crate) unsafe fn elapsed_ms(start: sys::CUevent, end: sys::CUevent) -> Result<f32> {
    type Elapsed = unsafe extern "C" fn(*mut f32, sys::CUevent, sys::CUevent) -> CUresult;
    static ELAPSED: OnceLock<Result<Elapsed, CUresult>> = OnceLock::new();
    let doing = "read the time between two events";
    let elapsed = *ELAPSED.get_or_init(|| {
        let function = procedure(c"cuEventElapsedTime", 11_000)?;
        // SAFETY: the driver returned the function of that name, which has this signature.
        Ok(unsafe { std::mem::transmute::<*mut c_void, Elapsed>(function) })
    });
    let mut milliseconds = 0.0;
    match elapsed {
        // SAFETY: as the caller promises.
        Ok(elapsed) => check(unsafe { elapsed(&mut milliseconds, start, end) }, doing)?,
        Err(code) => return Err(error(code, doing)),
    }
    Ok(milliseconds)
}

/// The driver's function of this name, as it was in this version of CUDA. Unlike a call through cudarc, it may be missing in an older driver.
pub(crate) fn procedure(name: &CStr, version: i32) -> Result<*mut c_void, CUresult> {
    let mut function: *mut c_void = std::ptr::null_mut();
    // SAFETY: the name is null-terminated, and the pointers for the results are valid, or null where that is allowed.
    match unsafe { sys::cuGetProcAddress_v2(name.as_ptr(), &mut function, version, 0, std::ptr::null_mut()) } {
        CUresult::CUDA_SUCCESS if !function.is_null() => Ok(function),
        CUresult::CUDA_SUCCESS => Err(CUresult::CUDA_ERROR_NOT_FOUND),
        code => Err(code),
    }
}

#[cfg(test)]
mod tests {
    use super::module_version;

    #[test]
    fn the_kernel_module_says_its_version() {
        let closed =
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue Feb 10 10:30:18 UTC 2026\nGCC version:  gcc version 12.3.0\n";
        assert_eq!(module_version(closed), Some("580.159.04"));
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  575.57.08  Release Build  (dvs-builder@U22-I3)\n";
        assert_eq!(module_version(open), Some("575.57.08"));
        assert_eq!((module_version(""), module_version("GCC version: 12.3.0")), (None, None));
    }
}
