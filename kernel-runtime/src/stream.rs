//! Streams: queues of work that run beside each other.

use std::fmt;
use std::sync::Arc;

use cudarc::driver::{CudaStream, sys};

use crate::driver::{check, check_cudarc};
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
}

impl Stream {
    pub(crate) fn new(device: Device, cuda: Option<Arc<CudaStream>>) -> Stream {
        Stream { device, cuda }
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
        Ok(Stream { device: Device::of_context(stream.context(), "this stream")?, cuda: Some(stream) })
    }

    /// The stream that a launch goes to, for more work in the same order.
    pub(crate) fn from_launch(device: Device, stream: &Arc<CudaStream>) -> Stream {
        Stream { device, cuda: Some(stream.clone()) }
    }

    /// The device whose work it queues.
    pub fn device(&self) -> Device {
        self.device
    }

    /// cudarc's stream. None on the CPU and on a simulated GPU.
    #[inline]
    pub fn cuda_stream(&self) -> Option<&Arc<CudaStream>> {
        self.cuda.as_ref()
    }

    /// Waits on the host until all work queued so far is done.
    ///
    /// # Errors
    /// [`Error::InCapture`], or a failure of that work: [`Error::Asynchronous`].
    pub fn synchronize(&self) -> Result<()> {
        graph::forbid(Forbidden::Waiting)?;
        self.cuda.as_deref().map_or(Ok(()), synchronize)
    }

    /// Makes work queued here from now on wait, on the device, until `event` has happened.
    ///
    /// # Errors
    /// [`Error::EventNotRecorded`], [`Error::InCapture`], or what the driver says.
    pub fn wait(&self, event: &Event) -> Result<()> {
        event.hold_back(self)
    }

    /// Makes work queued here from now on wait, on the device, for all work queued on `other` so far.
    ///
    /// # Errors
    /// [`Error::InCapture`], or what the driver says.
    pub fn wait_for(&self, other: &Stream) -> Result<()> {
        graph::forbid(Forbidden::Waiting)?;
        match (&self.cuda, &other.cuda) {
            (Some(this), Some(other)) => order(this, other),
            _ => Ok(()),
        }
    }

    /// An event that happens when all work queued so far is done.
    ///
    /// # Errors
    /// [`Error::InCapture`], or what the driver says.
    pub fn record(&self) -> Result<Event> {
        let event = Event::new(self.device)?;
        event.record(self)?;
        Ok(event)
    }
}

/// Waits on the host for a stream of cudarc's.
pub(crate) fn synchronize(stream: &CudaStream) -> Result<()> {
    check_cudarc(stream.context().bind_to_thread(), "make a context current")?;
    // SAFETY: the stream is alive and its context current.
    check(unsafe { sys::cuStreamSynchronize(stream.cu_stream()) }, "wait for a stream")
}

/// Makes `later` wait, on the device, for all that is queued on `earlier` so far.
pub(crate) fn order(later: &CudaStream, earlier: &CudaStream) -> Result<()> {
    if later == earlier {
        return Ok(());
    }
    check_cudarc(later.join(earlier), "order two streams")
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
