//! Loading PTX on a CUDA GPU. The driver compiles it, and its log explains errors. The number of registers that it took decides whether the kernel is compiled
//! again with fewer, see [`kernel_lang::occupancy`]; a persistent entry states its own. Machine code of a package is loaded in place of its PTX. Machine code from an assembler is cached and loaded
//! again, see [`cache`].
//!
//! The driver takes one to two seconds for an entry with matrix products. So of PTX with two entries, each is a module of its own, which is loaded when a launch first
//! needs it. Machine code takes no time, and is one module.

use std::ffi::{CStr, CString};

use cudarc::driver::sys::{self, CUfunction_attribute as Attribute, CUjit_option as Option_, CUresult};
use kernel_lang::Schedule;
use kernel_lang::ir::Requirement;
use kernel_lang::launch_value::PersistentEntry;
use kernel_lang::launch_value::persistent_entry::{separate_modules, split_entries};
use kernel_lang::occupancy::{Cta, Needs, limited};

use crate::assembler::Advisory;
#[cfg(feature = "cache")]
use crate::assembler::Kept;
#[cfg(feature = "cache")]
use crate::cache;
use crate::device::Cuda;
#[cfg(feature = "cache")]
use crate::device::driver;
use crate::device::driver::{check, code_name};
use crate::kernel::entries::Stated;
use crate::kernel::gpu::Image;
use crate::kernel::module::{Function, Loaded};
use crate::kernel::on_demand::OnDemand;
use crate::launch::prints::show;
use crate::{Device, Error, Result};

/// The dynamic shared memory that a function may use without setting an attribute.
const SHARED_BYTES_UNASKED: u32 = 48 << 10;
/// The CTAs of a cluster that a function may use without setting an attribute.
const PORTABLE_CTAS: u32 = 8;

/// The instruction about which the driver's compiler has advisories.
const WARPGROUP_PRODUCT: &str = "wgmma.mma_async";
/// The size of a log of the driver.
const LOG_BYTES: usize = 16 << 10;

/// Loads an image into the device's context. A usual entry has fewer registers than the assembler takes where more CTAs then run at the same time.
pub(super) fn load(device: Device, cuda: &'static Cuda, image: &Image<'_>) -> Result<Loaded> {
    if image.shared_bytes > cuda.shared_bytes {
        return Err(Error::SharedMemory { kernel: image.kernel, device, requested: image.shared_bytes, limit: cuda.shared_bytes });
    }
    cuda.bind()?;
    let refused = |error| Error::Jit { kernel: image.kernel, device, code: "CUDA_ERROR_INVALID_PTX".to_owned(), log: error };
    let stated = Stated::of(image, cuda.shared_bytes).map_err(refused)?;
    let usual = Entry::usual(device, cuda, image);
    let persistent = stated.persistent().map(|entry| Entry::persistent(device, cuda, image, entry));
    // The text states whether this code waits. Code for another target, or of an `unchecked` kernel, may not wait.
    let waits = |part: &str| part.contains("griddepcontrol.wait");
    let (usual_part, other_part) = split_entries(image.ptx);
    let waits = waits(usual_part) && (persistent.is_none() || other_part.is_some_and(waits));

    let machine_code = image.machine_code.and_then(|code| of_machine_code(code, &usual, persistent.as_ref()));
    let (usual, persistent) = match machine_code {
        Some(functions) => {
            let (usual, persistent) = functions?;
            (OnDemand::of(usual), persistent.map(OnDemand::of))
        }
        None => match (separate_modules(image.ptx), persistent) {
            ((usual_text, Some(text)), Some(persistent)) => {
                let [usual_text, text] = [usual_text, text].map(Box::<str>::from);
                (OnDemand::new(move || usual.load(&usual_text)), Some(OnDemand::new(move || persistent.load(&text))))
            }
            ((text, _), _) => (OnDemand::of(usual.load(&text)?), None),
        },
    };
    let entries = stated.entries(image, usual, persistent, cuda.multiprocessors.into());
    // They live as long as the functions, which are never unloaded.
    Ok(Loaded { entries: Box::leak(Box::new(entries)), waits })
}

/// Loads the functions of machine code. `None` if the driver does not take it, for example because it is older than the assembler, or if an entry is
/// missing: then the PTX runs. The code's registers were limited when it was made.
fn of_machine_code(code: &[u8], usual: &Entry, persistent: Option<&Entry>) -> Option<Result<(Function, Option<Function>)>> {
    let module = Module(load_code(code).ok()?);
    let function = module.function(&usual.name).ok()?;
    let other = persistent.map(|entry| module.function(&entry.name).map(|function| (entry, function))).transpose().ok()?;
    let set_up = || {
        usual.set_up(function)?;
        let other = other.map(|(entry, function)| entry.set_up(function).map(|()| function)).transpose()?;
        module.keep();
        Ok((function, other))
    };
    Some(set_up())
}

/// An entry of a variant.
struct Entry {
    device: Device,
    cuda: &'static Cuda,
    kernel: &'static str,
    /// The name in the PTX.
    name: Box<str>,
    /// The most bytes of shared memory that a CTA uses.
    shared_bytes: u32,
    /// The schedule of a usual entry. A persistent entry states its threads and registers, and has no clusters.
    schedule: Option<Schedule>,
    /// Whether slower products are an error.
    is_strict: bool,
}

/// The driver's code of an error, and its log.
type Refusal = (String, String);

impl Entry {
    fn usual(device: Device, cuda: &'static Cuda, image: &Image<'_>) -> Entry {
        let &Image { kernel, entry, ptx, schedule, shared_bytes, .. } = image;
        let is_strict = Requirement::is_stated(ptx);
        Entry { device, cuda, kernel, name: entry.into(), shared_bytes, schedule: Some(schedule), is_strict }
    }

    fn persistent(device: Device, cuda: &'static Cuda, image: &Image<'_>, entry: &PersistentEntry) -> Entry {
        let (name, shared_bytes) = (entry.name.as_str().into(), entry.shared_bytes);
        Entry { name, shared_bytes, schedule: None, ..Entry::usual(device, cuda, image) }
    }

    /// Loads the entry of this PTX, which the driver or an assembler compiles.
    fn load(&self, ptx: &str) -> Result<Function> {
        self.cuda.bind()?;
        let first = self.compile(ptx).map_err(|(code, log)| Error::Jit { kernel: self.kernel, device: self.device, code, log })?;
        report(self.kernel, self.device, (ptx, self.is_strict), &first.losses)?;
        let Code { module, function, .. } = match self.schedule {
            Some(schedule) => {
                let needs = first.needs()?;
                let cta = Cta { warps: schedule.num_warps, shared_bytes: self.shared_bytes };
                self.cuda.multiprocessor.most_ctas(cta, (first, needs), |registers| {
                    let code = self.compile(&limited(ptx, registers)?).ok().filter(|code| code.losses.is_empty())?;
                    let needs = code.needs().ok()?;
                    Some((code, needs))
                })
            }
            None => first,
        };
        self.set_up(function)?;
        module.keep();
        Ok(function)
    }

    /// Loads the PTX, which may be limited, without setting anything up.
    fn compile(&self, ptx: &str) -> Result<Code, Refusal> {
        let text = CString::new(ptx).map_err(|_| ("CUDA_ERROR_INVALID_PTX".to_owned(), "the PTX contains a zero byte".to_owned()))?;
        let (module, log) = match load_kept(self.cuda, self.kernel, ptx) {
            Some(module) => (module, String::new()),
            None => load_ptx(&text, ptx.contains(WARPGROUP_PRODUCT)).map_err(|(code, log)| (code_name(code), log))?,
        };
        let losses = Advisory::parse_all(&log).into_iter().filter(Advisory::is_loss).collect();
        let module = Module(module);
        let function = module.function(&self.name)?;
        Ok(Code { module, function, losses })
    }

    /// Lets launches of the function use their shared memory and clusters.
    fn set_up(&self, function: Function) -> Result<()> {
        let set = |attribute, value: i32, doing| {
            // SAFETY: the function is loaded.
            check(unsafe { sys::cuFuncSetAttribute(function.raw(), attribute, value) }, doing)
        };
        if self.shared_bytes > SHARED_BYTES_UNASKED {
            let attribute = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            set(attribute, self.shared_bytes.cast_signed(), "reserve shared memory")?;
        }
        if self.schedule.is_some_and(|schedule| schedule.num_ctas > PORTABLE_CTAS) {
            set(Attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1, "allow larger clusters")?;
        }
        Ok(())
    }
}

/// The advisories about slower products are an error if the kernel requires these, and a warning otherwise.
fn report(kernel: &'static str, device: Device, (ptx, is_strict): (&str, bool), losses: &[Advisory]) -> Result<()> {
    if losses.is_empty() {
        return Ok(());
    }
    let advisories = losses.iter().map(|loss| loss.describe(ptx)).collect::<Vec<_>>().join("\n");
    if is_strict {
        return Err(Error::SlowProducts { kernel, device, advisories });
    }
    show(format!("warning: the driver compiles the products of kernel `{kernel}` to slower code than `{device}` has\n{advisories}"));
    Ok(())
}

/// The function of a loaded module with one entry.
struct Code {
    module: Module,
    function: Function,
    /// The advisories of the driver's compiler about slower products.
    losses: Vec<Advisory>,
}

impl Code {
    /// What the entry needs.
    fn needs(&self) -> Result<Needs> {
        let of = |attribute| {
            let mut value = 0;
            // SAFETY: the function is loaded, and the pointer is valid.
            check(unsafe { sys::cuFuncGetAttribute(&mut value, attribute, self.function.raw()) }, "read an attribute of the function")?;
            Ok::<u32, Error>(u32::try_from(value).unwrap_or(0))
        };
        Ok(Needs { registers: of(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?, local_bytes: of(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)? })
    }
}

/// A module in the current context. Dropping it unloads it, unless it is kept.
struct Module(sys::CUmodule);

impl Module {
    /// The function of an entry.
    fn function(&self, name: &str) -> Result<Function, Refusal> {
        let missing = |code| (code_name(code), format!("the PTX has no entry `{name}`"));
        let terminated = CString::new(name).map_err(|_| missing(CUresult::CUDA_ERROR_NOT_FOUND))?;
        let mut function = std::ptr::null_mut();
        // SAFETY: the module is loaded, and the name is null-terminated.
        match unsafe { sys::cuModuleGetFunction(&mut function, self.0, terminated.as_ptr()) } {
            CUresult::CUDA_SUCCESS => Ok(Function(function)),
            code => Err(missing(code)),
        }
    }

    /// Keeps the module loaded as long as the process runs.
    fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: the module is loaded, and no code outside of this file has seen it or its functions.
        let _ = unsafe { sys::cuModuleUnload(self.0) };
    }
}

/// Loads the machine code that an assembler made of the PTX, now or in another process. `None` without an assembler or a disk cache.
#[cfg(feature = "cache")]
fn load_kept(cuda: &Cuda, kernel: &str, ptx: &str) -> Option<sys::CUmodule> {
    let assembler = Kept::current()?;
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

/// Loads PTX, which the driver compiles. Returns the log with information, if it is wanted. The error consists of the driver's code and its log.
fn load_ptx(text: &CStr, wants_information: bool) -> Result<(sys::CUmodule, String), (CUresult, String)> {
    let mut log = vec![0u8; LOG_BYTES];
    let mut information = vec![0u8; if wants_information { LOG_BYTES } else { 0 }];
    let mut options = vec![Option_::CU_JIT_ERROR_LOG_BUFFER, Option_::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    // An option value that is not a pointer is passed in the bits of the pointer.
    let mut values = vec![log.as_mut_ptr().cast(), std::ptr::without_provenance_mut(log.len())];
    if wants_information {
        options.extend([Option_::CU_JIT_INFO_LOG_BUFFER, Option_::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, Option_::CU_JIT_LOG_VERBOSE]);
        let is_verbose = std::ptr::without_provenance_mut(1);
        values.extend([information.as_mut_ptr().cast(), std::ptr::without_provenance_mut(information.len()), is_verbose]);
    }
    let mut module = std::ptr::null_mut();
    // SAFETY: the text is null-terminated, there are as many options as values, and the logs are alive.
    let code = unsafe {
        sys::cuModuleLoadDataEx(&mut module, text.as_ptr().cast(), options.len() as u32, options.as_mut_ptr(), values.as_mut_ptr())
    };
    if code == CUresult::CUDA_SUCCESS { Ok((module, terminated(&information))) } else { Err((code, terminated(&log))) }
}

/// Loads machine code. The driver takes its length from its header.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Backend;
    use crate::kernel::gpu::Gpu;
    use crate::kernel::module::CudaGpu;
    use crate::kernel::{Kernel, Variant, prepare};

    #[test]
    fn slower_products_are_an_error_for_a_kernel_that_requires_them() {
        let losses = Advisory::parse_all("ptxas info : (C7510) Potential Performance Loss: serialized in the function 'k', line 3");
        let report = |ptx: &str, losses: &[Advisory]| {
            report("k", Device::cpu(), (ptx, Requirement::is_stated(ptx)), losses).map_err(|error| error.to_string())
        };
        let required = "//\n// requires wgmma\n.loc 1 7 5\n.file 1 \"k.rs\"\n";
        assert_eq!(report(required, &[]), Ok(()));
        let (outcome, warnings) = crate::capture_prints(|| report(".version 8.0\n", &losses));
        assert!(outcome == Ok(()) && warnings[0].starts_with("warning: the driver compiles the products of kernel `k`"), "{warnings:?}");
        let error = report(required, &losses).unwrap_err();
        assert_eq!(
            error,
            "kernel `k`: the driver of `cpu` compiles its products to slower code than the kernel requires\n  \
             | (C7510) Potential Performance Loss: serialized in the function 'k', line 3\n  |  --> k.rs:7"
        );
    }

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

    /// The usual entry runs all launches but those with `n = 0`. No launch has a tensor map.
    const PTX: &str = "
.version 8.0
.target sm_90a
.address_size 64

.visible .entry k(.param .u64 n)
.reqntid 32, 1, 1
{
    ret;
}

// persistent entry: k_persistent
// 64 threads and 60000 bytes of shared memory a CTA, 1 CTAs a multiprocessor
// launch values:
// kernel @launch_values(%n: i64) {
//     %10 = launch_value () {
//         %0 = const {value = 0} : i64
//         %1 = eq %n, %0 : bool
//         yield %1
//     } : bool
//     return
// }

.visible .entry k_persistent(.param .u64 n, .param .u32 launch_0)
.reqntid 64, 1, 1
{
    ret;
}
";

    fn image<'a>(ptx: &'a str, machine_code: Option<&'a [u8]>) -> Image<'a> {
        Image { kernel: "k", entry: "k", ptx, machine_code, schedule: SCHEDULE, shared_bytes: 0 }
    }

    const SCHEDULE: Schedule = Schedule { num_warps: 1, ..Schedule::DEFAULT };

    fn gpu() -> CudaGpu<'static> {
        let device = Device::cuda(0).unwrap();
        let Backend::Cuda(cuda) = device.backend() else { panic!("{device} is a CUDA GPU") };
        CudaGpu { device, cuda, stream: device.stream().queue().unwrap(), overlaps: false }
    }

    /// The number of entries that are not loaded.
    fn missing(loaded: &Loaded) -> usize {
        format!("{:?}", loaded.entries).matches("OnDemand(None)").count()
    }

    #[test]
    #[ignore = "needs a CUDA driver: `cargo xtask ci driver` has one"]
    fn an_entry_is_loaded_when_a_launch_needs_it() {
        let gpu = gpu();
        if gpu.compute_capability() < (9, 0) {
            return;
        }
        for first in [0, 1] {
            let loaded = gpu.load(&image(PTX, None)).unwrap();
            assert_eq!(missing(&loaded), 2);
            for (n, left) in [(first, 1), (first, 1), (1 - first, 0)] {
                gpu.load_entry("k", &loaded, [4, 1, 1], &[&n]).unwrap();
                assert_eq!(missing(&loaded), left);
                let call = loaded.call("k", &[&n], [4, 1, 1]).unwrap();
                assert_eq!((call.threads, call.ctas), if n == 0 { (64, [4, 1, 1]) } else { (32, [4, 1, 1]) });
            }
        }
        // A text with one entry is loaded at once.
        let loaded = gpu.load(&image(split_entries(PTX).0, None)).unwrap();
        assert_eq!(missing(&loaded), 0);
        let error = gpu.load(&image(&split_entries(PTX).0.replacen("ret;", "mistake;", 1), None)).unwrap_err();
        assert!(matches!(error, Error::Jit { kernel: "k", .. }), "{error}");
    }

    /// Entries that share a variable are not separated. Each is then loaded from the whole text.
    #[test]
    #[ignore = "needs a CUDA driver: `cargo xtask ci driver` has one"]
    fn entries_that_share_more_are_loaded_from_the_whole_text() {
        let gpu = gpu();
        if gpu.compute_capability() < (9, 0) {
            return;
        }
        let ptx = PTX.replacen(".address_size 64\n", ".address_size 64\n.const .align 4 .b32 table[2] = {\n1, 2};\n", 1);
        let loaded = gpu.load(&image(&ptx, None)).unwrap();
        gpu.load_entries(&loaded).unwrap();
        assert_eq!(missing(&loaded), 0);
    }

    /// Machine code of the simulated driver is the PTX behind a header. NVIDIA's driver refuses it, and the PTX runs.
    #[test]
    #[ignore = "needs a CUDA driver: `cargo xtask ci driver` has one"]
    fn machine_code_has_all_entries_at_once() {
        let gpu = gpu();
        if gpu.compute_capability() < (9, 0) {
            return;
        }
        let code = |ptx: &str| [&b"\x7fELF\x02\x01\0\0simulate"[..], &[0; 48], ptx.as_bytes(), &[0]].concat();
        let is_simulated = gpu.device.name().contains("simulated");
        for (ptx, left) in [(PTX, if is_simulated { 0 } else { 2 }), ("no code", 2), (split_entries(PTX).0, 2)] {
            let loaded = gpu.load(&image(PTX, Some(&code(ptx)))).unwrap();
            assert_eq!(missing(&loaded), left, "code of {ptx}");
            gpu.load_entries(&loaded).unwrap();
            assert_eq!(missing(&loaded), 0);
        }
    }

    #[test]
    #[ignore = "needs a CUDA driver: `cargo xtask ci driver` has one"]
    fn a_prepared_kernel_has_all_entries() {
        let gpu = gpu();
        if gpu.compute_capability() < (9, 0) {
            return;
        }
        let variant = Variant { key: &[], schedule: SCHEDULE, target: "sm_90a", entry: "k", shared_bytes: 0, ptx: PTX };
        // SAFETY: no test launches it.
        let kernel: Kernel = unsafe { Kernel::new("k", "kernel @k(%n: i64) {\n    return\n}\n", SCHEDULE, &[], vec![variant].leak()) };
        let kernel: &'static Kernel = Box::leak(Box::new(kernel));
        assert_eq!(missing(kernel.on_gpu(&gpu, &[], None).unwrap()), 2);
        assert_eq!(prepare::compile(kernel, &gpu.device, &[], None).unwrap(), 0);
        assert_eq!(missing(kernel.on_gpu(&gpu, &[], None).unwrap()), 0);
    }
}
