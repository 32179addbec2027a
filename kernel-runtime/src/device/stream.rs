//! Streams: queues of work that run concurrently.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cudarc::driver::{CudaStream, sys};

use crate::device::PooledEvent;
use crate::device::driver::{bind, check, check_cudarc, is_asynchronous};
use crate::replay::{self, Forbidden};
use crate::{Device, Error, Event, Result};

/// A queue of work on a device. Work on one stream runs in order; different streams run concurrently.
///
/// Tensors keep the order that safe code expects, on any combination of streams: a launch waits for the earlier writes of the tensors that it reads,
/// and for the earlier uses of the tensors that it writes. A stream of the CPU, or of a simulated GPU, is always idle.
///
/// A clone refers to the same stream.
#[derive(Clone)]
pub struct Stream {
    device: Device,
    cuda: Option<Arc<CudaStream>>,
    /// Whether other code has cudarc's stream, so that it may capture the stream. `None` for a stream that other code made.
    handed_out: Option<Arc<AtomicBool>>,
}

/// A borrowed stream on which work is queued.
#[derive(Clone, Copy)]
pub(crate) struct Queue<'a> {
    cuda: &'a Arc<CudaStream>,
    handed_out: Option<&'a Arc<AtomicBool>>,
}

impl Stream {
    /// A stream to which no other code has access.
    pub(crate) fn new(device: Device, cuda: Option<Arc<CudaStream>>) -> Stream {
        Stream { device, cuda, handed_out: Some(Arc::default()) }
    }

    /// Wraps a stream that cudarc, or a library on top of it, made.
    ///
    /// # Errors
    /// [`Error::PerThreadStream`] for the per-thread default stream, [`Error::ForeignContext`] for a stream of a context that is not the device's
    /// primary one.
    pub fn from_cuda(stream: Arc<CudaStream>) -> Result<Stream> {
        if is_per_thread(&stream) {
            return Err(Error::PerThreadStream);
        }
        Ok(Stream { device: Device::of_context(stream.context(), "this stream")?, cuda: Some(stream), handed_out: None })
    }

    /// The stream of a launch, for more work in the same order.
    pub(crate) fn from_launch(device: Device, queue: Queue<'_>) -> Stream {
        Stream { device, cuda: Some(queue.cuda.clone()), handed_out: queue.handed_out.cloned() }
    }

    /// The device on which its work runs.
    pub fn device(&self) -> Device {
        self.device
    }

    /// cudarc's stream, for other libraries. `None` on the CPU and on a simulated GPU.
    ///
    /// The caller can capture this stream into a CUDA graph. During such a capture, launches, copies and all other operations that the graph would
    /// record fail with [`Error::StreamCaptured`]. To detect a capture, each of these operations queries the driver from now on; on a stream for
    /// which this function was never called, it does not. Do not begin a capture while another thread launches on the stream.
    pub fn cuda_stream(&self) -> Option<&Arc<CudaStream>> {
        if let Some(handed_out) = &self.handed_out {
            handed_out.store(true, Ordering::Release);
        }
        self.cuda.as_ref()
    }

    /// The queue of a CUDA stream; `None` on devices that complete their work at once.
    #[inline]
    pub(crate) fn queue(&self) -> Option<Queue<'_>> {
        self.cuda.as_ref().map(|cuda| Queue { cuda, handed_out: self.handed_out.as_ref() })
    }

    /// Waits on the host until all work queued so far is complete.
    ///
    /// # Errors
    /// [`Error::InCapture`], [`Error::StreamCaptured`], or [`Error::Asynchronous`] if that work failed. It also returns an error
    /// that an earlier operation could not return, such as a failure to free a tensor.
    pub fn synchronize(&self) -> Result<()> {
        replay::forbid(Forbidden::Waiting)?;
        let Some(queue) = self.queue() else { return Ok(()) };
        queue.forbid_capture(WAITING)?;
        queue.synchronize()?;
        check_cudarc(queue.cuda.context().check_err(), WAITING)
    }

    /// Makes work queued here from now on wait, on the device, until `event` has happened.
    ///
    /// # Errors
    /// [`Error::EventNotRecorded`], [`Error::InCapture`], [`Error::StreamCaptured`], or a CUDA driver error.
    pub fn wait(&self, event: &Event) -> Result<()> {
        event.hold_back(self)
    }

    /// Makes work queued here from now on wait, on the device, for all work queued on `other` so far.
    ///
    /// # Errors
    /// [`Error::InCapture`], [`Error::StreamCaptured`], or a CUDA driver error.
    pub fn wait_for(&self, other: &Stream) -> Result<()> {
        replay::forbid(Forbidden::Waiting)?;
        match (self.queue(), other.queue()) {
            (Some(this), Some(other)) => order(this, other),
            _ => Ok(()),
        }
    }

    /// Records an event that happens when all work queued so far is complete.
    ///
    /// # Errors
    /// [`Error::InCapture`], [`Error::StreamCaptured`], or a CUDA driver error.
    pub fn record(&self) -> Result<Event> {
        let event = Event::new(self.device)?;
        event.record(self)?;
        Ok(event)
    }
}

const WAITING: &str = "wait for a stream";

impl<'a> Queue<'a> {
    /// A stream that other code made, and may capture.
    pub(crate) fn of_others(cuda: &'a Arc<CudaStream>) -> Queue<'a> {
        Queue { cuda, handed_out: None }
    }

    #[inline]
    pub(crate) fn cuda(self) -> &'a Arc<CudaStream> {
        self.cuda
    }

    #[inline]
    pub(crate) fn raw(self) -> sys::CUstream {
        self.cuda.cu_stream()
    }

    /// Returns an error if other code captures the stream: its graph would record the queued work, and the addresses in it. Nothing captures a stream
    /// that was never handed out, because our streams never wait for a captured stream. For it the check costs one comparison.
    #[inline]
    pub(crate) fn forbid_capture(self, doing: &'static str) -> Result<()> {
        if self.handed_out.is_none_or(|handed_out| handed_out.load(Ordering::Acquire)) { self.ask_for_capture(doing) } else { Ok(()) }
    }

    #[cold]
    fn ask_for_capture(self, doing: &'static str) -> Result<()> {
        bind(self.cuda.context().cu_ctx())?;
        let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: the stream is alive, and `status` is valid for the result.
        check(unsafe { sys::cuStreamIsCapturing(self.raw(), &mut status) }, "ask whether a stream is captured")?;
        let is_free = status == sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        if is_free { Ok(()) } else { Err(Error::StreamCaptured { doing }) }
    }

    /// Waits on the host until all work queued so far is complete. An error means that the work failed, or will never be complete.
    pub(crate) fn synchronize(self) -> Result<()> {
        bind(self.cuda.context().cu_ctx())?;
        // SAFETY: the stream is alive and its context current.
        let code = unsafe { sys::cuStreamSynchronize(self.raw()) };
        if code == sys::CUresult::CUDA_SUCCESS { Ok(()) } else { self.insist(code) }
    }

    /// Repeats a wait that the driver refused. While one thread captures in the global mode, the driver forbids waits to all threads that are not in
    /// the relaxed mode. So this function selects the relaxed mode, and waits for the stream, or else for the whole device.
    #[cold]
    fn insist(self, code: sys::CUresult) -> Result<()> {
        let mut mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: `mode` is a valid mode; the previous one is restored below.
        let exchanged = unsafe { sys::cuThreadExchangeStreamCaptureMode(&mut mode) } == sys::CUresult::CUDA_SUCCESS;
        // SAFETY: the stream is alive, and its context is current.
        let is_done = unsafe {
            sys::cuStreamSynchronize(self.raw()) == sys::CUresult::CUDA_SUCCESS || sys::cuCtxSynchronize() == sys::CUresult::CUDA_SUCCESS
        };
        if exchanged {
            // SAFETY: `mode` is the thread's previous mode.
            unsafe { sys::cuThreadExchangeStreamCaptureMode(&mut mode) };
        }
        if is_done && !is_asynchronous(code) { Ok(()) } else { check(code, WAITING) }
    }

    /// Waits for queued work that could not be ordered, so that it no longer uses any memory when the error is returned.
    ///
    /// If even the wait fails, the device is lost and runs nothing any more.
    #[cold]
    pub(crate) fn finish(self, error: Error) -> Error {
        let _ = self.synchronize();
        error
    }
}

/// Makes `later` wait, on the device, for all work queued on `earlier` so far.
///
/// Errors that other code left in the contexts have no effect: this function either orders the streams or returns an error.
pub(crate) fn order(later: Queue<'_>, earlier: Queue<'_>) -> Result<()> {
    if later.cuda == earlier.cuda {
        return Ok(());
    }
    const DOING: &str = "order two streams";
    later.forbid_capture(DOING)?;
    earlier.forbid_capture(DOING)?;
    PooledEvent::after(earlier.cuda)?.hold_back(later.cuda)
}

/// Returns whether this is the handle that means a different stream on every thread.
pub(crate) fn is_per_thread(stream: &CudaStream) -> bool {
    stream.cu_stream() as usize == 2
}

impl PartialEq for Stream {
    fn eq(&self, other: &Stream) -> bool {
        self.device == other.device && self.cuda == other.cuda
    }
}

impl Eq for Stream {}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cuda {
            Some(cuda) => write!(f, "Stream({}, {:p})", self.device, cuda.cu_stream()),
            None => write!(f, "Stream({})", self.device),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_the_cpu_are_idle() {
        let cpu = Device::cpu();
        let (a, b) = (cpu.stream(), cpu.new_stream().unwrap());
        a.wait_for(&b).unwrap();
        let event = b.record().unwrap();
        a.wait(&event).unwrap();
        a.synchronize().unwrap();
        assert_eq!((a.device(), format!("{a:?}")), (cpu, "Stream(cpu)".to_owned()));
        assert!(a.cuda_stream().is_none());
    }
}
