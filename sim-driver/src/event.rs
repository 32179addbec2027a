//! Events: recording, waiting, elapsed times, and the look-up of functions by name.

use std::ffi::c_void;

use cudarc::driver::sys::{CUdriverProcAddressQueryResult, CUevent, CUresult, CUstream};

use crate::call::{answer, call, call_in_context, handle};
use crate::plant;
use crate::state::State;
use crate::tensor_map::cuTensorMapEncodeTiled;
use crate::work::{Ticket, Work};

/// An event: a position in the work of a stream.
#[derive(Default)]
pub(crate) struct Event {
    pub(crate) gpu: usize,
    /// The stream whose capture contains the last recording, if the last recording was captured. The event is then a dependency in the
    /// graph.
    pub(crate) captured: Option<usize>,
    /// The position of the last recording.
    pub(crate) recorded: Option<Ticket>,
    /// The number of recordings.
    pub(crate) generation: u64,
    /// The time at which the last recording completed, if it has.
    pub(crate) time_us: Option<f64>,
}

impl State {
    fn event(&mut self, event: CUevent) -> Result<&mut Event, CUresult> {
        self.events.get_mut(&event.addr()).ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventCreate(event: *mut CUevent, _flags: u32) -> CUresult {
    call_in_context(|state, gpu| {
        state.may_fail("cuEventCreate")?;
        let new = state.handle();
        state.events.insert(new, Event { gpu, ..Event::default() });
        // SAFETY: the caller passes a pointer that is null or valid for writes.
        unsafe { answer(event, handle(new)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventDestroy_v2(event: CUevent) -> CUresult {
    call(|state| state.events.remove(&event.addr()).map(drop).ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventRecord(event: CUevent, stream: CUstream) -> CUresult {
    call_in_context(|state, gpu| {
        state.may_fail("cuEventRecord")?;
        let own = state.stream_of(stream, gpu)?;
        let captured = state.capture_of(own);
        let of_stream = state.streams[&own].gpu;
        let known = state.event(event)?;
        if known.gpu != of_stream {
            return Err(CUresult::CUDA_ERROR_INVALID_HANDLE);
        }
        known.captured = captured;
        if captured.is_some() {
            return Ok(());
        }
        known.generation += 1;
        known.time_us = None;
        let generation = known.generation;
        let ticket = state.queue(own, Work::Record { event: event.addr(), generation })?;
        state.event(event)?.recorded = Some(ticket);
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventSynchronize(event: CUevent) -> CUresult {
    call(|state| {
        if state.event(event)?.captured.is_some() {
            return Err(CUresult::CUDA_ERROR_CAPTURED_EVENT);
        }
        if let Some(ticket) = state.event(event)?.recorded {
            state.finish(ticket);
        }
        Ok(())
    })
}

/// Completes the work before the event, so that a program that polls the event terminates.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventQuery(event: CUevent) -> CUresult {
    call(|state| {
        if state.event(event)?.captured.is_some() {
            return Err(CUresult::CUDA_ERROR_CAPTURED_EVENT);
        }
        let recorded = state.event(event)?.recorded;
        let Some(pending) = recorded.filter(|ticket| !state.is_done(*ticket)) else { return Ok(()) };
        state.finish(pending);
        Err(CUresult::CUDA_ERROR_NOT_READY)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventElapsedTime(milliseconds: *mut f32, start: CUevent, end: CUevent) -> CUresult {
    call(|state| {
        let mut time = |event: CUevent| -> Result<f64, CUresult> {
            let event = state.event(event)?;
            event.recorded.ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
            event.time_us.ok_or(CUresult::CUDA_ERROR_NOT_READY)
        };
        let (start, end) = (time(start)?, time(end)?);
        // SAFETY: the caller passes a pointer that is null or valid for writes.
        unsafe { answer(milliseconds, ((end - start) / 1e3) as f32) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventElapsedTime_v2(milliseconds: *mut f32, start: CUevent, end: CUevent) -> CUresult {
    // SAFETY: the caller guarantees valid pointers, as the driver API requires.
    unsafe { cuEventElapsedTime(milliseconds, start, end) }
}

/// Finds the functions that `kernel-runtime` requests by version, and the functions for tests.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetProcAddress_v2(
    symbol: *const std::ffi::c_char,
    function: *mut *mut c_void,
    _version: i32,
    _flags: u64,
    _status: *mut CUdriverProcAddressQueryResult,
) -> CUresult {
    // SAFETY: the caller passes a null-terminated string.
    let symbol = unsafe { std::ffi::CStr::from_ptr(symbol) };
    call(|_| {
        let found = match symbol.to_bytes() {
            b"cuEventElapsedTime" => Some(cuEventElapsedTime as *mut c_void),
            b"cuTensorMapEncodeTiled" => Some(cuTensorMapEncodeTiled as *mut c_void),
            _ => plant::find(symbol),
        };
        // SAFETY: the caller passes a pointer that is null or valid for writes.
        unsafe { answer(function, found.unwrap_or(std::ptr::null_mut()))? };
        found.map(drop).ok_or(CUresult::CUDA_ERROR_NOT_FOUND)
    })
}
