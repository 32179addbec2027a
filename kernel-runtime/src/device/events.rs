//! A pool of events that order streams. Each event is created once and reused, so ordering two streams allocates nothing.

use std::sync::{Mutex, PoisonError};

use cudarc::driver::{CudaStream, sys};

use super::{Cuda, Device};
use crate::device::driver::{bind, check};
use crate::{Error, Result};

/// The unused events of a device.
#[derive(Default)]
pub(super) struct Events(Mutex<Vec<Handle>>);

struct Handle(sys::CUevent);

// SAFETY: a handle is an identifier that the driver accepts on every thread.
unsafe impl Send for Handle {}

/// An event of a device. Dropping it returns it to the pool.
///
/// It may be recorded again as soon as streams have been made to wait for it: each stream waits for the work that was recorded when the wait was
/// queued.
pub(crate) struct PooledEvent {
    cuda: &'static Cuda,
    raw: sys::CUevent,
}

// SAFETY: a handle is an identifier that the driver accepts on every thread.
unsafe impl Send for PooledEvent {}
// SAFETY: as above; the driver locks its operations on an event.
unsafe impl Sync for PooledEvent {}

impl PooledEvent {
    /// An event that happens when all work queued on the stream so far is complete.
    pub(crate) fn after(stream: &CudaStream) -> Result<PooledEvent> {
        let device = Device::cuda(stream.context().ordinal())?;
        let cuda = device.cuda_info().ok_or(Error::NotCuda { what: "this stream" })?;
        let kept = cuda.events.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let event = match kept {
            Some(Handle(raw)) => PooledEvent { cuda, raw },
            None => {
                cuda.bind()?;
                let mut raw = std::ptr::null_mut();
                let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
                // SAFETY: the context is current, and `raw` is valid for the result.
                check(unsafe { sys::cuEventCreate(&mut raw, flags) }, "make an event")?;
                PooledEvent { cuda, raw }
            }
        };
        event.record(stream)?;
        Ok(event)
    }

    /// Records the event after all work queued so far on a stream of its device. On an error, the event is unchanged.
    pub(crate) fn record(&self, stream: &CudaStream) -> Result<()> {
        bind(stream.context().cu_ctx())?;
        // SAFETY: the event and the stream are alive and belong to the current context.
        check(unsafe { sys::cuEventRecord(self.raw, stream.cu_stream()) }, "record an event")
    }

    /// Makes work that is queued on the stream from now on wait for the event.
    pub(crate) fn hold_back(&self, stream: &CudaStream) -> Result<()> {
        bind(stream.context().cu_ctx())?;
        // SAFETY: the event and the stream are alive, and the stream belongs to the current context.
        check(unsafe { sys::cuStreamWaitEvent(stream.cu_stream(), self.raw, 0) }, "make a stream wait for an event")
    }
}

impl Drop for PooledEvent {
    fn drop(&mut self) {
        self.cuda.events.0.lock().unwrap_or_else(PoisonError::into_inner).push(Handle(self.raw));
    }
}
