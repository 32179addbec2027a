//! Events that order streams. Each is made once and used again, so that ordering two streams allocates nothing.

use std::sync::{Mutex, PoisonError};

use cudarc::driver::{CudaStream, sys};

use super::{Cuda, Device};
use crate::driver::{bind, check};
use crate::{Error, Result};

/// The events of a device that nobody uses now.
#[derive(Default)]
pub(super) struct Events(Mutex<Vec<Handle>>);

struct Handle(sys::CUevent);

// SAFETY: a handle is a name that the driver understands on every thread.
unsafe impl Send for Handle {}

/// An event of a device, which goes back to the others when it is dropped.
///
/// It may be recorded anew as soon as streams have been told to wait for it: each waits for what was recorded when it was told.
pub(crate) struct PooledEvent {
    cuda: &'static Cuda,
    raw: sys::CUevent,
}

// SAFETY: a handle is a name that the driver understands on every thread.
unsafe impl Send for PooledEvent {}
// SAFETY: as above; the driver locks what it does with an event.
unsafe impl Sync for PooledEvent {}

impl PooledEvent {
    /// An event that happens when all that is queued on the stream so far is done.
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
                // SAFETY: the context is current, and `raw` a valid place for the answer.
                check(unsafe { sys::cuEventCreate(&mut raw, flags) }, "make an event")?;
                PooledEvent { cuda, raw }
            }
        };
        event.record(stream)?;
        Ok(event)
    }

    /// Moves the event behind all that is queued on a stream of its device so far. If that fails, it is where it was.
    pub(crate) fn record(&self, stream: &CudaStream) -> Result<()> {
        bind(stream.context().cu_ctx())?;
        // SAFETY: event and stream are alive, and of the current context.
        check(unsafe { sys::cuEventRecord(self.raw, stream.cu_stream()) }, "record an event")
    }

    /// Makes what is queued on the stream from now on wait for it.
    pub(crate) fn hold_back(&self, stream: &CudaStream) -> Result<()> {
        bind(stream.context().cu_ctx())?;
        // SAFETY: event and stream are alive, and the stream is of the current context.
        check(unsafe { sys::cuStreamWaitEvent(stream.cu_stream(), self.raw, 0) }, "make a stream wait for an event")
    }
}

impl Drop for PooledEvent {
    fn drop(&mut self) {
        self.cuda.events.0.lock().unwrap_or_else(PoisonError::into_inner).push(Handle(self.raw));
    }
}
