//! Memory: allocation is immediate, all other operations run in stream order.

use std::ffi::c_void;

use cudarc::driver::sys::{CUcontext, CUdeviceptr, CUresult, CUstream};
use kernel_sim::MemoryError;

use crate::call::{answer, call, call_in_context};
use crate::context::gpu_of;
use crate::state::State;
use crate::work::Work;

/// The memory of a loaded module, which takes a page of its own.
const MODULE_BYTES: u64 = 2 << 20;

/// The error code for a memory error.
fn code(error: MemoryError) -> CUresult {
    match error {
        MemoryError::OutOfMemory { .. } => CUresult::CUDA_ERROR_OUT_OF_MEMORY,
        _ => CUresult::CUDA_ERROR_INVALID_VALUE,
    }
}

/// Queues work on a stream of the thread's current GPU.
fn queue(stream: CUstream, work: Work) -> CUresult {
    call_in_context(|state, gpu| {
        let own = state.own_stream(stream, gpu)?;
        state.queue(own, work).map(drop)
    })
}

fn allocate(state: &State, gpu: usize, address: *mut CUdeviceptr, bytes: usize) -> Result<(), CUresult> {
    if bytes == 0 {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    let new = state.gpus[gpu].allocate(bytes).map_err(code)?;
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    unsafe { answer(address, new) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAllocAsync(address: *mut CUdeviceptr, bytes: usize, stream: CUstream) -> CUresult {
    call_in_context(|state, gpu| {
        state.own_stream(stream, gpu)?;
        allocate(state, gpu, address, bytes)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAlloc_v2(address: *mut CUdeviceptr, bytes: usize) -> CUresult {
    call_in_context(|state, gpu| allocate(state, gpu, address, bytes))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemFreeAsync(address: CUdeviceptr, stream: CUstream) -> CUresult {
    call_in_context(|state, gpu| {
        state.may_fail("cuMemFreeAsync")?;
        let own = state.own_stream(stream, gpu)?;
        state.queue(own, Work::Free(address)).map(drop)
    })
}

/// Completes all work of the GPU first.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemFree_v2(address: CUdeviceptr) -> CUresult {
    call_in_context(|state, gpu| {
        state.finish_gpu(gpu);
        state.gpus[gpu].free(address).map_err(code)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> CUresult {
    call_in_context(|state, gpu| {
        let (left, all) = state.gpus[gpu].free_and_total();
        let modules = state.modules.values().filter(|(own, _)| *own == gpu).count() as u64;
        // SAFETY: the caller passes two pointers that are null or valid for writes.
        unsafe {
            answer(free, left.saturating_sub(modules * MODULE_BYTES) as usize)?;
            answer(total, all as usize)
        }
    })
}

/// Rejects every query: no host memory is page-locked here, and no caller queries memory of a GPU.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuPointerGetAttribute(_data: *mut c_void, _attribute: i32, _address: CUdeviceptr) -> CUresult {
    call(|_| Err(CUresult::CUDA_ERROR_INVALID_VALUE))
}

/// The copy reads the host memory when it runs, even for pageable memory: the interface does not promise that the bytes are read before the
/// call returns.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyHtoDAsync_v2(to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream) -> CUresult {
    if bytes == 0 {
        return CUresult::CUDA_SUCCESS;
    }
    queue(stream, Work::Write { to, from: from.expose_provenance(), bytes })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyHtoD_v2(to: CUdeviceptr, from: *const c_void, bytes: usize) -> CUresult {
    // SAFETY: the caller guarantees valid pointers, as the driver API requires.
    match unsafe { cuMemcpyHtoDAsync_v2(to, from, bytes, std::ptr::null_mut()) } {
        CUresult::CUDA_SUCCESS => call_in_context(|state, gpu| {
            let own = state.stream_of::<c_void>(std::ptr::null_mut(), gpu)?;
            state.finish(state.end_of(own));
            Ok(())
        }),
        code => code,
    }
}

/// A copy to pageable memory: the bytes are in host memory when the call returns.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream) -> CUresult {
    call_in_context(|state, gpu| {
        let own = state.own_stream(stream, gpu)?;
        if state.capture_of(own).is_some() {
            return Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        }
        state.finish(state.end_of(own));
        if bytes == 0 || state.lost.is_some() {
            return Ok(());
        }
        // SAFETY: the caller passes a buffer of `bytes` bytes.
        let to = unsafe { std::slice::from_raw_parts_mut(to.cast::<u8>(), bytes) };
        state.gpus[gpu].read(from, to).map_err(code)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyDtoH_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize) -> CUresult {
    // SAFETY: the caller guarantees valid pointers, as the driver API requires.
    unsafe { cuMemcpyDtoHAsync_v2(to, from, bytes, std::ptr::null_mut()) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyDtoDAsync_v2(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream) -> CUresult {
    call_in_context(|state, gpu| {
        state.may_fail("cuMemcpyDtoDAsync_v2")?;
        let own = state.own_stream(stream, gpu)?;
        state.queue(own, Work::Copy { from, to, bytes }).map(drop)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyPeerAsync(
    to: CUdeviceptr,
    to_context: CUcontext,
    from: CUdeviceptr,
    from_context: CUcontext,
    bytes: usize,
    stream: CUstream,
) -> CUresult {
    call_in_context(|state, gpu| {
        let (of, at, own) = (gpu_of(state, from_context)?, gpu_of(state, to_context)?, state.stream_of(stream, gpu)?);
        if state.streams[&own].gpu != at {
            return Err(CUresult::CUDA_ERROR_INVALID_CONTEXT);
        }
        let work = if of == at { Work::Copy { from, to, bytes } } else { Work::CopyFrom { gpu: of, from, to, bytes } };
        state.queue(own, work).map(drop)
    })
}

/// Queues a fill of one row.
fn fill(to: CUdeviceptr, element: Vec<u8>, count: usize, stream: CUstream) -> CUresult {
    queue(stream, Work::Fill { to, element, count, rows: 1, pitch: 0 })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemsetD8Async(to: CUdeviceptr, value: u8, count: usize, stream: CUstream) -> CUresult {
    fill(to, vec![value], count, stream)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemsetD8_v2(to: CUdeviceptr, value: u8, count: usize) -> CUresult {
    fill(to, vec![value], count, std::ptr::null_mut())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemsetD16Async(to: CUdeviceptr, value: u16, count: usize, stream: CUstream) -> CUresult {
    fill(to, value.to_le_bytes().to_vec(), count, stream)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemsetD32Async(to: CUdeviceptr, value: u32, count: usize, stream: CUstream) -> CUresult {
    fill(to, value.to_le_bytes().to_vec(), count, stream)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemsetD2D32Async(
    to: CUdeviceptr,
    pitch: usize,
    value: u32,
    width: usize,
    height: usize,
    stream: CUstream,
) -> CUresult {
    queue(stream, Work::Fill { to, element: value.to_le_bytes().to_vec(), count: width, rows: height, pitch })
}
