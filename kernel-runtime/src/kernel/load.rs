//! Loading PTX on a CUDA GPU. The driver compiles it, and its log explains errors. The number of registers that it took decides whether the kernel is compiled
//! again with fewer, see [`kernel_lang::occupancy`]. Machine code from an assembler is cached and loaded again, see [`cache`].

use std::ffi::{CStr, CString};

use cudarc::driver::sys::{self, CUfunction_attribute as Attribute, CUjit_option as Option_, CUresult};
use kernel_lang::occupancy::{Cta, Needs, limited};

#[cfg(feature = "cache")]
use crate::assembler::Assembler;
#[cfg(feature = "cache")]
use crate::cache;
use crate::device::Cuda;
#[cfg(feature = "cache")]
use crate::device::driver;
use crate::device::driver::{check, code_name};
use crate::kernel::gpu::Image;
use crate::kernel::launch_values::LaunchValues;
use crate::kernel::module::Loaded;
use crate::{Device, Error, Result};

/// The dynamic shared memory that a function may use without setting an attribute.
const SHARED_BYTES_UNASKED: u32 = 48 << 10;
/// The CTAs of a cluster that a function may use without setting an attribute.
const PORTABLE_CTAS: u32 = 8;

/// Loads the PTX into the device's context, with fewer registers than the assembler takes where more CTAs then run at the same time.
pub(super) fn load(device: Device, cuda: &Cuda, image: &Image<'_>) -> Result<Loaded> {
    if image.shared_bytes > cuda.shared_bytes {
        return Err(Error::SharedMemory { kernel: image.kernel, device, requested: image.shared_bytes, limit: cuda.shared_bytes });
    }
    cuda.bind()?;
    let refused = |code: String, log: String| Error::Jit { kernel: image.kernel, device, code, log };
    let launch_values = LaunchValues::of_ptx(image.ptx).map_err(|error| refused("CUDA_ERROR_INVALID_PTX".to_owned(), error))?;

    let first = Code::load(cuda, image, image.ptx).map_err(|(code, log)| refused(code, log))?;
    let needs = first.needs()?;
    let cta = Cta { warps: image.schedule.num_warps, shared_bytes: image.shared_bytes };
    let code = cuda.multiprocessor.most_ctas(cta, (first, needs), |registers| {
        let code = Code::load(cuda, image, &limited(image.ptx, registers)?).ok()?;
        let needs = code.needs().ok()?;
        Some((code, needs))
    });

    let function = code.function;
    if image.shared_bytes > SHARED_BYTES_UNASKED {
        let attribute = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function is loaded.
        check(unsafe { sys::cuFuncSetAttribute(function, attribute, image.shared_bytes as i32) }, "reserve shared memory")?;
    }
    if image.schedule.num_ctas > PORTABLE_CTAS {
        let attribute = Attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
        // SAFETY: the function is loaded.
        check(unsafe { sys::cuFuncSetAttribute(function, attribute, 1) }, "allow larger clusters")?;
    }
    // The text states whether this code waits. Code for another target, or of an `unchecked` kernel, may not wait.
    let waits = image.ptx.contains("griddepcontrol.wait");
    code.module.keep();
    // They live as long as the function, which is never unloaded.
    let launch_values = launch_values.map(|values| &*Box::leak(Box::new(values)));
    Ok(Loaded { function, schedule: image.schedule, shared_bytes: image.shared_bytes, waits, launch_values })
}

/// The driver's code of an error, and its log.
type Refusal = (String, String);

/// The function of a loaded module.
struct Code {
    module: Module,
    function: sys::CUfunction,
}

impl Code {
    /// Loads the entry of this PTX, which may be that of the image with a limit.
    fn load(cuda: &Cuda, image: &Image<'_>, ptx: &str) -> Result<Code, Refusal> {
        let no_text = |_| ("CUDA_ERROR_INVALID_PTX".to_owned(), "the PTX contains a zero byte".to_owned());
        let text = CString::new(ptx).map_err(no_text)?;
        let entry = CString::new(image.entry).map_err(no_text)?;
        let module = match load_kept(cuda, image.kernel, ptx) {
            Some(module) => module,
            None => load_ptx(&text).map_err(|(code, log)| (code_name(code), log))?,
        };
        let module = Module(module);
        let mut function = std::ptr::null_mut();
        // SAFETY: the module is loaded, and the name is null-terminated.
        match unsafe { sys::cuModuleGetFunction(&mut function, module.0, entry.as_ptr()) } {
            CUresult::CUDA_SUCCESS => Ok(Code { module, function }),
            code => Err((code_name(code), format!("the PTX has no entry `{}`", image.entry))),
        }
    }

    fn needs(&self) -> Result<Needs> {
        let of = |attribute| {
            let mut value = 0;
            // SAFETY: the function is loaded, and the pointer is valid.
            check(unsafe { sys::cuFuncGetAttribute(&mut value, attribute, self.function) }, "read an attribute of the function")?;
            Ok::<u32, Error>(u32::try_from(value).unwrap_or(0))
        };
        Ok(Needs { registers: of(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?, local_bytes: of(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)? })
    }
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
fn load_kept(cuda: &Cuda, kernel: &str, ptx: &str) -> Option<sys::CUmodule> {
    let assembler = Assembler::current()?;
    let (major, minor) = cuda.compute_capability;
    let architecture = format!("{major}.{minor}");
    let machine = [("architecture", architecture.as_str()), ("driver", driver::version()), ("assembler", assembler.name())];
    let assemble = || assembler.assemble(ptx, cuda.compute_capability);
    cache::load_code(kernel, ptx, &machine, assemble, |code| load_code(code).ok())
}

#[cfg(not(feature = "cache"))]
fn load_kept(_: &Cuda, _: &str, _: &str) -> Option<sys::CUmodule> {
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
