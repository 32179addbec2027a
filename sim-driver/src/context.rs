//! The driver, its GPUs and their contexts. Each GPU has one context, which all threads share.

use std::ffi::{CStr, c_char, c_void};

use cudarc::driver::sys::{CUcontext, CUdevice, CUdevice_attribute as Attribute, CUmemoryPool, CUresult, CUuuid};

use crate::call::{answer, call, call_in_context, current, handle, init, set_current};
use crate::state::State;

/// The CUDA version of the API.
const VERSION: i32 = 13_000;
/// The first handle of a context.
const CONTEXTS: usize = 0x10;

/// The GPU of a context.
pub(crate) fn gpu_of(state: &State, context: CUcontext) -> Result<usize, CUresult> {
    let gpu = context.addr().wrapping_sub(CONTEXTS);
    if gpu < state.gpus.len() { Ok(gpu) } else { Err(CUresult::CUDA_ERROR_INVALID_CONTEXT) }
}

fn gpu(state: &State, device: CUdevice) -> Result<usize, CUresult> {
    usize::try_from(device).ok().filter(|gpu| *gpu < state.gpus.len()).ok_or(CUresult::CUDA_ERROR_INVALID_DEVICE)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuInit(_flags: u32) -> CUresult {
    init()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDriverGetVersion(version: *mut i32) -> CUresult {
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    call(|_| unsafe { answer(version, VERSION) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetCount(count: *mut i32) -> CUresult {
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    call(|state| unsafe { answer(count, state.gpus.len() as i32) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGet(device: *mut CUdevice, ordinal: i32) -> CUresult {
    call(|state| {
        let gpu = gpu(state, ordinal)?;
        // SAFETY: the caller passes a pointer that is null or valid for writes.
        unsafe { answer(device, gpu as CUdevice) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, len: i32, device: CUdevice) -> CUresult {
    call(|state| {
        let known = &state.gpus[gpu(state, device)?].gpu().name;
        let room = usize::try_from(len).unwrap_or(0);
        let kept = known.len().min(room.checked_sub(1).ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?);
        // SAFETY: the caller passes a buffer of `len` bytes, and `kept` bytes and the terminating zero fit.
        unsafe {
            std::ptr::copy_nonoverlapping(known.as_ptr().cast(), name, kept);
            name.add(kept).write(0);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetUuid_v2(uuid: *mut CUuuid, device: CUdevice) -> CUresult {
    call(|state| {
        let gpu = gpu(state, device)?;
        // SAFETY: the caller passes a pointer that is null or valid for writes.
        unsafe { answer(uuid, CUuuid { bytes: [gpu as c_char; 16] }) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice) -> CUresult {
    call(|state| {
        let (_, total) = state.gpus[gpu(state, device)?].free_and_total();
        // SAFETY: the caller passes a pointer that is null or valid for writes.
        unsafe { answer(bytes, total as usize) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetAttribute(value: *mut i32, attribute: i32, device: CUdevice) -> CUresult {
    // Values of an H200, for attributes that the model does not have.
    const CLOCK_KHZ: i32 = 1_980_000;
    const MEMORY_CLOCK_KHZ: i32 = 3_201_000;
    const MEMORY_BUS_BITS: i32 = 6144;
    call(|state| {
        let model = state.gpus[gpu(state, device)?].gpu();
        let known = [
            (Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, model.compute_capability.0 as i32),
            (Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, model.compute_capability.1 as i32),
            (Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, model.num_sms as i32),
            (Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, model.shared_bytes as i32),
            (Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1),
            (Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE, CLOCK_KHZ),
            (Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, MEMORY_CLOCK_KHZ),
            (Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, MEMORY_BUS_BITS),
        ];
        // A simulated GPU has no caches and supports no feature outside the table.
        let found = known.iter().find(|(known, _)| *known as i32 == attribute).map_or(0, |(_, value)| *value);
        // SAFETY: the caller passes a pointer that is null or valid for writes.
        unsafe { answer(value, found) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice) -> CUresult {
    call(|state| {
        let gpu = gpu(state, device)?;
        // SAFETY: the caller passes a pointer that is null or valid for writes.
        unsafe { answer(context, handle(CONTEXTS + gpu)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxRelease_v2(_device: CUdevice) -> CUresult {
    CUresult::CUDA_SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetCurrent(context: *mut CUcontext) -> CUresult {
    let own = current().map_or(std::ptr::null_mut(), |gpu| handle(CONTEXTS + gpu));
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    match unsafe { answer(context, own) } {
        Ok(()) => CUresult::CUDA_SUCCESS,
        Err(code) => code,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxSetCurrent(context: CUcontext) -> CUresult {
    call(|state| {
        set_current(if context.is_null() { None } else { Some(gpu_of(state, context)?) });
        Ok(())
    })
}

/// Drains the last stream first, so that no program can rely on the order of streams.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxSynchronize() -> CUresult {
    call_in_context(|state, gpu| {
        state.finish_gpu(gpu);
        Ok(())
    })
}

impl State {
    /// Completes all queued work of a GPU.
    pub(crate) fn finish_gpu(&mut self, gpu: usize) {
        let mut streams: Vec<usize> = self.streams.iter().filter(|(_, stream)| stream.gpu == gpu).map(|(own, _)| *own).collect();
        streams.sort_unstable();
        for stream in streams.into_iter().rev() {
            self.finish(self.end_of(stream));
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetDefaultMemPool(pool: *mut CUmemoryPool, device: CUdevice) -> CUresult {
    call(|state| {
        let gpu = gpu(state, device)?;
        // SAFETY: the caller passes a pointer that is null or valid for writes.
        unsafe { answer(pool, handle(CONTEXTS + gpu)) }
    })
}

/// Accepts every attribute and ignores it: freed memory is never kept.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemPoolSetAttribute(_pool: CUmemoryPool, _attribute: i32, _value: *mut c_void) -> CUresult {
    CUresult::CUDA_SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorString(code: i32, text: *mut *const c_char) -> CUresult {
    let known: &CStr = match code {
        0 => c"no error",
        1 => c"invalid argument",
        2 => c"out of memory",
        3 => c"initialization error",
        101 => c"invalid device ordinal",
        200 => c"device kernel image is invalid",
        201 => c"invalid device context",
        218 => c"a PTX JIT compilation failed",
        400 => c"invalid resource handle",
        500 => c"named symbol not found",
        600 => c"device not ready",
        700 => c"an illegal memory access was encountered",
        719 => c"unspecified launch failure",
        _ => return CUresult::CUDA_ERROR_INVALID_VALUE,
    };
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    match unsafe { answer(text, known.as_ptr()) } {
        Ok(()) => CUresult::CUDA_SUCCESS,
        Err(code) => code,
    }
}
