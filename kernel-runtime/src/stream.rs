//! Streams: queues of work that run beside each other.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cudarc::driver::{CudaStream, sys};

use crate::device::PooledEvent;
use crate::driver::{bind, check, check_cudarc, is_asynchronous};
use crate::graph::{self, Forbidden};
use crate::{Device, Error, Event, Result};

/// A queue of work on a device. Work on one stream runs in order; streams run beside each other.
///
/// Tensors keep the order that safe code expects, whatever streams it uses: a launch waits for the earlier writes of
/// what it reads, and for the earlier uses of what it writes. A stream of the CPU, or of a simulated GPU, is always idle.
///
/// Cloning gives another name for the same stream.
#[derive(Clone)]
pub struct Stream {
    device: Device,
    cuda: Option<Arc<CudaStream>>,
    /// Has somebody else got cudarc's stream, so that it may be captured? None of a stream that others made.
    handed_out: Option<Arc<AtomicBool>>,
}

/// A stream as work is queued on it.
#[derive(Clone, Copy)]
pub(crate) struct Queue<'a> {
    cuda: &'a Arc<CudaStream>,
    handed_out: Option<&'a Arc<AtomicBool>>,
}

impl Stream {
    /// A stream that nobody else has.
    pub(crate) fn new(device: Device, cuda: Option<Arc<CudaStream>>) -> Stream {
        Stream { device, cuda, handed_out: Some(Arc::default()) }
    }

    /// A stream that cudarc, or a library on it, made.
    ///
    /// # Errors
    /// [`Error::PerThreadStream`] for the per-thread default stream, [`Error::ForeignContext`] for a stream of a
    /// context that is not the device's primary one.
    pub fn from_cuda(stream: Arc<CudaStream>) -> Result<Stream> {
        if is_per_thread(&stream) {
            return Err(Error::PerThreadStream);
        }
        Ok(Stream { device: Device::of_context(stream.context(), "this stream")?, cuda: Some(stream), handed_out: None })
    }

    /// The stream that a launch goes to, for more work in the same order.
    pub(crate) fn from_launch(device: Device, queue: Queue<'_>) -> Stream {
        Stream { device, cuda: Some(queue.cuda.clone()), handed_out: queue.handed_out.cloned() }
    }

    /// The device whose work it queues.
    pub fn device(&self) -> Device {
        self.device
    }

    /// cudarc's stream, for other libraries. None on the CPU and on a simulated GPU.
    ///
    /// Who has it can capture it into a CUDA graph. Launches, copies and all else that would go into such a graph are refused, as an
    /// [`Error::StreamCaptured`]; so each of them asks the driver from now on. On a stream for which this was never called they ask nothing. Do not begin a
    /// capture while another thread launches on the stream.
    pub fn cuda_stream(&self) -> Option<&Arc<CudaStream>> {
        if let Some(handed_out) = &self.handed_out {
            handed_out.store(true, Ordering::Release);
        }
        self.cuda.as_ref()
    }

    /// Where work is queued; none on the devices that do theirs at once.
    #[inline]
    pub(crate) fn queue(&self) -> Option<Queue<'_>> {
        self.cuda.as_ref().map(|cuda| Queue { cuda, handed_out: self.handed_out.as_ref() })
    }

    /// Waits on the host until all work queued so far is done.
    ///
    /// # Errors
    /// [`Error::InCapture`], [`Error::StreamCaptured`], or a failure of that work: [`Error::Asynchronous`]. So is what nobody could be told when it failed,
    /// such as to free a tensor.
    pub fn synchronize(&self) -> Result<()> {
        graph::forbid(Forbidden::Waiting)?;
        let Some(queue) = self.queue() else { return Ok(()) };
        queue.forbid_capture(WAITING)?;
        queue.synchronize()?;
        check_cudarc(queue.cuda.context().check_err(), WAITING)
    }

    /// Makes work queued here from now on wait, on the device, until `event` has happened.
    ///
    /// # Errors
    /// [`Error::EventNotRecorded`], [`Error::InCapture`], [`Error::StreamCaptured`], or what the driver says.
    pub fn wait(&self, event: &Event) -> Result<()> {
        event.hold_back(self)
    }

    /// Makes work queued here from now on wait, on the device, for all work queued on `other` so far.
    ///
    /// # Errors
    /// [`Error::InCapture`], [`Error::StreamCaptured`], or what the driver says.
    pub fn wait_for(&self, other: &Stream) -> Result<()> {
        graph::forbid(Forbidden::Waiting)?;
        match (self.queue(), other.queue()) {
            (Some(this), Some(other)) => order(this, other),
            _ => Ok(()),
        }
    }

    /// An event that happens when all work queued so far is done.
    ///
    /// # Errors
    /// [`Error::InCapture`], [`Error::StreamCaptured`], or what the driver says.
    pub fn record(&self) -> Result<Event> {
        let event = Event::new(self.device)?;
        event.record(self)?;
        Ok(event)
    }
}

const WAITING: &str = "wait for a stream";

impl<'a> Queue<'a> {
    /// A stream that somebody else made, and may capture.
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

    /// An error if somebody else captures the stream: a graph would keep what is queued, and the addresses in it. A stream that nobody else has
    /// is captured by nobody, as ours never wait for one that is: that costs a comparison.
    #[inline]
    pub(crate) fn forbid_capture(self, doing: &'static str) -> Result<()> {
        if self.handed_out.is_none_or(|handed_out| handed_out.load(Ordering::Acquire)) { self.ask_for_capture(doing) } else { Ok(()) }
    }

    #[cold]
    fn ask_for_capture(self, doing: &'static str) -> Result<()> {
        bind(self.cuda.context().cu_ctx())?;
        let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: the stream is alive, and `status` a valid place for the answer.
        check(unsafe { sys::cuStreamIsCapturing(self.raw(), &mut status) }, "ask whether a stream is captured")?;
        let is_free = status == sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        if is_free { Ok(()) } else { Err(Error::StreamCaptured { doing }) }
    }

    /// Waits on the host until all work queued so far is done. An error says that it failed, or will never be done.
    pub(crate) fn synchronize(self) -> Result<()> {
        bind(self.cuda.context().cu_ctx())?;
        // SAFETY: the stream is alive and its context current.
        let code = unsafe { sys::cuStreamSynchronize(self.raw()) };
        if code == sys::CUresult::CUDA_SUCCESS { Ok(()) } else { self.insist(code) }
    }

    /// The driver would not wait. It forbids that to every thread while one captures in the global mode, unless a thread says that it does not mind;
    /// else it is tried for the whole device, and again.
    #[cold]
    fn insist(self, code: sys::CUresult) -> Result<()> {
        let mut mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the mode is one; it is given back below.
        let exchanged = unsafe { sys::cuThreadExchangeStreamCaptureMode(&mut mode) } == sys::CUresult::CUDA_SUCCESS;
        // SAFETY: the stream is alive and its context current.
        let is_done = unsafe {
            sys::cuStreamSynchronize(self.raw()) == sys::CUresult::CUDA_SUCCESS || sys::cuCtxSynchronize() == sys::CUresult::CUDA_SUCCESS
        };
        if exchanged {
            // SAFETY: it is the thread's own mode.
            unsafe { sys::cuThreadExchangeStreamCaptureMode(&mut mode) };
        }
        if is_done && !is_asynchronous(code) { Ok(()) } else { check(code, WAITING) }
    }

    /// Waits for what was queued and could not be put in order, so that it uses nothing any more when the error is passed on.
    ///
    /// If even that fails, the device is lost, and runs nothing any more.
    #[cold]
    pub(crate) fn finish(self, error: Error) -> Error {
        let _ = self.synchronize();
        error
    }
}

/// Makes `later` wait, on the device, for all that is queued on `earlier` so far.
///
/// Whatever is left in their contexts of others' failures, this either orders them or is an error.
pub(crate) fn order(later: Queue<'_>, earlier: Queue<'_>) -> Result<()> {
    if later.cuda == earlier.cuda {
        return Ok(());
    }
    const DOING: &str = "order two streams";
    later.forbid_capture(DOING)?;
    earlier.forbid_capture(DOING)?;
    PooledEvent::after(earlier.cuda)?.hold_back(later.cuda)
}

/// Is it the handle that means another stream on every thread?
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
