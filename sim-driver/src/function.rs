//! Modules, functions and launches.

use std::ffi::{CStr, c_char, c_void};

use cudarc::driver::sys::{
    CUfunction, CUfunction_attribute as Attribute, CUjit_option as Option_, CUlaunchConfig, CUmodule, CUresult, CUstream,
};
use kernel_sim::Kernel;

use crate::call::{answer, call_in_context, handle};
use crate::state::State;
use crate::work::{Call, Work};

/// A kernel of a module.
#[derive(Clone)]
pub(crate) struct Function {
    gpu: usize,
    kernel: Kernel,
    /// The maximum dynamic shared memory of a launch.
    shared_bytes: u32,
}

/// The default maximum of dynamic shared memory, without a raised attribute.
const SHARED_BYTES: u32 = 48 << 10;
const MOST_THREADS: u32 = 1024;

/// The beginning of machine code of simulated GPUs: the identification of an ELF file, with a name where NVIDIA's has none. PTX follows the header.
const MACHINE_CODE: &[u8; 16] = b"\x7fELF\x02\x01\0\0simulate";
/// The bytes of an ELF header.
const ELF_HEADER: usize = 64;

/// Loads PTX, or machine code of simulated GPUs. Other machine code is rejected. A failure that is planted for `cuModuleLoadData` is one of both functions.
fn load(state: &mut State, gpu: usize, module: *mut CUmodule, image: *const c_void) -> Result<(), (CUresult, String)> {
    state.may_fail("cuModuleLoadData").map_err(|code| (code, "simulated driver: a planted failure".to_owned()))?;
    // SAFETY: the caller passes null-terminated PTX, or machine code, which begins with four nonzero bytes.
    let mut text = unsafe { CStr::from_ptr(image.cast()) };
    if text.to_bytes().starts_with(b"\x7fELF") {
        // SAFETY: machine code has a whole header.
        let identification = unsafe { image.cast::<[u8; MACHINE_CODE.len()]>().read() };
        if identification != *MACHINE_CODE {
            return Err((CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU, String::new()));
        }
        // SAFETY: null-terminated PTX follows the header of this machine code.
        text = unsafe { CStr::from_ptr(image.cast::<c_char>().add(ELF_HEADER)) };
    }
    let refused = |log: String| (CUresult::CUDA_ERROR_INVALID_PTX, log);
    let text = text.to_str().map_err(|error| refused(error.to_string()))?;
    let loaded = state.gpus[gpu].load(text).map_err(|error| refused(format!("simulated driver: {error}")))?;
    let new = state.handle();
    state.modules.insert(new, (gpu, loaded));
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    unsafe { answer(module, handle(new)) }.map_err(|code| (code, String::new()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleLoadData(module: *mut CUmodule, image: *const c_void) -> CUresult {
    call_in_context(|state, gpu| load(state, gpu, module, image).map_err(|(code, _)| code))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleLoadDataEx(
    module: *mut CUmodule,
    image: *const c_void,
    count: u32,
    options: *const i32,
    values: *const *mut c_void,
) -> CUresult {
    let option = |wanted: Option_| {
        // SAFETY: the caller passes `count` options and a value for each of them.
        (0..count as usize).find(|at| unsafe { *options.add(*at) } == wanted as i32).map(|at| unsafe { *values.add(at) })
    };
    call_in_context(|state, gpu| {
        load(state, gpu, module, image).map_err(|(code, log)| {
            let room = option(Option_::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES).map_or(0, |size| size.addr());
            if let Some(buffer) = option(Option_::CU_JIT_ERROR_LOG_BUFFER).filter(|_| room > 0) {
                let kept = log.len().min(room - 1);
                // SAFETY: the caller's buffer has `room` bytes, and `kept` is less than `room`.
                unsafe {
                    std::ptr::copy_nonoverlapping(log.as_ptr(), buffer.cast(), kept);
                    buffer.cast::<u8>().add(kept).write(0);
                }
            }
            code
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleUnload(module: CUmodule) -> CUresult {
    call_in_context(|state, _| state.modules.remove(&module.addr()).map(drop).ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char) -> CUresult {
    // SAFETY: the caller passes a null-terminated string.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    call_in_context(|state, _| {
        let (gpu, module) = state.modules.get(&module.addr()).ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
        let kernel = module.kernel(&name).ok_or(CUresult::CUDA_ERROR_NOT_FOUND)?;
        let new = Function { gpu: *gpu, kernel, shared_bytes: SHARED_BYTES };
        let known = state.handle();
        state.functions.insert(known, new);
        // SAFETY: the caller passes a pointer that is null or valid for writes.
        unsafe { answer(function, handle(known)) }
    })
}

/// The simulator executes virtual registers, and has no numbers of real ones: every attribute is 0.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuFuncGetAttribute(value: *mut i32, _attribute: i32, function: CUfunction) -> CUresult {
    call_in_context(|state, _| {
        state.functions.get(&function.addr()).ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
        // SAFETY: the caller passes a pointer that is null or valid for writes.
        unsafe { answer(value, 0) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuFuncSetAttribute(function: CUfunction, attribute: i32, value: i32) -> CUresult {
    call_in_context(|state, _| {
        let function = state.functions.get_mut(&function.addr()).ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
        if attribute == Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as i32 {
            let most = state.gpus[function.gpu].gpu().shared_bytes;
            let asked = u32::try_from(value).ok().filter(|asked| *asked <= most);
            function.shared_bytes = asked.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        }
        Ok(())
    })
}

/// Checks a launch, and copies its parameters.
///
/// # Safety
/// `params` has a valid pointer to each parameter of the function.
pub(crate) unsafe fn checked_call(
    state: &State,
    gpu: usize,
    function: CUfunction,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    params: *const *mut c_void,
) -> Result<Call, CUresult> {
    let function = state.functions.get(&function.addr()).ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
    if function.gpu != gpu {
        return Err(CUresult::CUDA_ERROR_INVALID_HANDLE);
    }
    let threads = block.iter().product::<u32>();
    let is_launchable = !grid.contains(&0) && grid[1..].iter().all(|extent| *extent <= 0xffff) && (1..=MOST_THREADS).contains(&threads);
    if !is_launchable || shared_bytes > function.shared_bytes {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    let read = |(at, bytes): (usize, u32)| {
        // SAFETY: the caller guarantees valid pointers, as the driver API requires.
        unsafe { std::slice::from_raw_parts((*params.add(at)).cast::<u8>(), bytes as usize) }.to_vec()
    };
    let params = function.kernel.params().enumerate().map(read).collect();
    Ok(Call { kernel: function.kernel.clone(), grid, block, shared_bytes, params })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLaunchKernel(
    function: CUfunction,
    grid_x: u32,
    grid_y: u32,
    grid_z: u32,
    block_x: u32,
    block_y: u32,
    block_z: u32,
    shared_bytes: u32,
    stream: CUstream,
    params: *mut *mut c_void,
    _extra: *mut *mut c_void,
) -> CUresult {
    call_in_context(|state, gpu| {
        state.may_fail("cuLaunchKernel")?;
        let own = state.own_stream(stream, gpu)?;
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        // SAFETY: the caller guarantees valid pointers, as the driver API requires.
        let call = unsafe { checked_call(state, gpu, function, grid, block, shared_bytes, params)? };
        state.queue(own, Work::Launch(call)).map(drop)
    })
}

/// Ignores the attributes, because they only permit more overlap: a launch that may begin early begins after all work before it.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuLaunchKernelEx(
    config: *const CUlaunchConfig,
    function: CUfunction,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> CUresult {
    // SAFETY: the caller guarantees valid pointers, as the driver API requires.
    unsafe {
        let CUlaunchConfig { gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, hStream, .. } = *config;
        cuLaunchKernel(function, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, hStream, params, extra)
    }
}
