//! Events: points in a stream's work, to wait for and to measure the time between them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cudarc::driver::{CudaEvent, sys};

use crate::device::Backend;
use crate::device::driver::{check, check_cudarc, elapsed_ms};
use crate::replay::{self, Forbidden};
use crate::{Device, Error, Result, Stream, sim};

/// A point in the work of a stream. It happens when all work queued before it is complete.
///
/// A simulated GPU has its own clock. From the operations that were counted, it estimates how long the launches of the calling thread take on such a
/// GPU. The same work always takes the same time.
///
/// ```
/// # use kernel_runtime::{Device, Result};
/// # fn main() -> Result<()> {
/// let device = Device::default()?;
/// let start = device.stream().record()?;
/// let zeros = device.zeros::<f32>(1 << 20)?;
/// let end = device.stream().record()?;
/// println!("{:.3} ms for {} zeros", start.elapsed_ms(&end)?, zeros.len());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Event {
    device: Device,
    mark: Mark,
}

#[derive(Debug)]
enum Mark {
    /// The CPU and a simulated GPU have completed all earlier work when the event is recorded. This is the time of their clock then.
    Time(Mutex<Option<Duration>>),
    Cuda {
        event: CudaEvent,
        recorded: AtomicBool,
    },
}

impl Event {
    /// Makes an event of this device that is not recorded yet.
    ///
    /// # Errors
    /// A CUDA driver error.
    pub fn new(device: Device) -> Result<Event> {
        let mark = match device.cuda_info() {
            Some(cuda) => {
                let flags = sys::CUevent_flags::CU_EVENT_DEFAULT;
                let event = check_cudarc(cuda.context.new_event(Some(flags)), "make an event")?;
                Mark::Cuda { event, recorded: AtomicBool::new(false) }
            }
            None => Mark::Time(Mutex::new(None)),
        };
        Ok(Event { device, mark })
    }

    /// An event that happened at this time of the clock, for a device that completes its work at once.
    #[cfg(test)]
    pub(crate) fn at(device: Device, time: Duration) -> Event {
        Event { device, mark: Mark::Time(Mutex::new(Some(time))) }
    }

    /// Records the event after the work queued on `stream` so far.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] for a stream of another device, [`Error::InCapture`], [`Error::StreamCaptured`], or a CUDA driver error.
    pub fn record(&self, stream: &Stream) -> Result<()> {
        replay::forbid(Forbidden::Waiting)?;
        if stream.device() != self.device {
            return Err(Error::WrongDevice { what: "this event", device: self.device, expected: stream.device() });
        }
        match (&self.mark, stream.queue()) {
            (Mark::Cuda { event, recorded }, Some(queue)) => {
                let doing = "record an event";
                queue.forbid_capture(doing)?;
                check_cudarc(event.record(queue.cuda()), doing)?;
                recorded.store(true, Ordering::Release);
            }
            (Mark::Time(time), _) => *time.lock().unwrap_or_else(PoisonError::into_inner) = Some(now(self.device)),
            (Mark::Cuda { .. }, None) => return Err(Error::NoStream { device: self.device }),
        }
        Ok(())
    }

    /// Waits on the host until the event has happened.
    ///
    /// # Errors
    /// [`Error::EventNotRecorded`], [`Error::InCapture`], or [`Error::Asynchronous`] if the work before it failed.
    pub fn synchronize(&self) -> Result<()> {
        replay::forbid(Forbidden::Waiting)?;
        match (self.cuda_event()?, self.device.cuda_info()) {
            (Some(event), Some(cuda)) => {
                cuda.bind()?;
                // SAFETY: the event is alive and its context current.
                check(unsafe { sys::cuEventSynchronize(event.cu_event()) }, "wait for an event")
            }
            _ => Ok(()),
        }
    }

    /// Waits for both events, and returns the time from this event to `end` in milliseconds.
    ///
    /// The clock of a GPU has a resolution of about half a microsecond.
    ///
    /// # Errors
    /// [`Error::EventNotRecorded`], [`Error::WrongDevice`] for events of two devices, [`Error::InCapture`], or a CUDA driver error.
    pub fn elapsed_ms(&self, end: &Event) -> Result<f32> {
        if self.device != end.device {
            return Err(Error::WrongDevice { what: "this event", device: end.device, expected: self.device });
        }
        self.synchronize()?;
        end.synchronize()?;
        if let (Mark::Time(start), Mark::Time(end)) = (&self.mark, &end.mark) {
            let time = |mark: &Mutex<Option<Duration>>| *mark.lock().unwrap_or_else(PoisonError::into_inner);
            let (Some(start), Some(end)) = (time(start), time(end)) else { return Err(Error::EventNotRecorded) };
            let sign = if end < start { -1.0 } else { 1.0 };
            return Ok(sign * end.abs_diff(start).as_secs_f32() * 1e3);
        }
        match (self.cuda_event()?, end.cuda_event()?, self.device.cuda_info()) {
            (Some(start), Some(end), Some(cuda)) => {
                cuda.bind()?;
                // SAFETY: both events are alive and belong to this context.
                unsafe { elapsed_ms(start.cu_event(), end.cu_event()) }
            }
            _ => Err(Error::EventNotRecorded),
        }
    }

    /// Makes work queued on `stream` from now on wait for this event.
    pub(crate) fn hold_back(&self, stream: &Stream) -> Result<()> {
        replay::forbid(Forbidden::Waiting)?;
        match (self.cuda_event()?, stream.queue()) {
            (Some(event), Some(queue)) => {
                let doing = "make a stream wait for an event";
                queue.forbid_capture(doing)?;
                check_cudarc(queue.cuda().wait(event), doing)
            }
            // A device that completes its work at once cannot delay it, so the host waits here.
            (Some(_), None) => self.synchronize(),
            (None, _) => Ok(()),
        }
    }

    /// The event of a CUDA GPU; `None` on other devices.
    fn cuda_event(&self) -> Result<Option<&CudaEvent>> {
        match &self.mark {
            Mark::Time(time) => match *time.lock().unwrap_or_else(PoisonError::into_inner) {
                Some(_) => Ok(None),
                None => Err(Error::EventNotRecorded),
            },
            Mark::Cuda { event, recorded } if recorded.load(Ordering::Acquire) => Ok(Some(event)),
            Mark::Cuda { .. } => Err(Error::EventNotRecorded),
        }
    }
}

/// The time of the clock of a device that completes its work at once.
fn now(device: Device) -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    match device.backend() {
        Backend::Sim(_) => sim::now(),
        _ => START.elapsed(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_between_two_events_has_a_sign() {
        let stream = Device::cpu().stream();
        let start = stream.record().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let end = stream.record().unwrap();
        assert!(start.elapsed_ms(&end).unwrap() >= 2.0);
        assert!(end.elapsed_ms(&start).unwrap() <= -2.0);
    }

    #[test]
    fn an_event_that_was_not_recorded_says_so() {
        let event = Event::new(Device::cpu()).unwrap();
        let recorded = Device::cpu().stream().record().unwrap();
        for result in [event.synchronize(), event.elapsed_ms(&recorded).map(drop), Device::cpu().stream().wait(&event)] {
            assert!(matches!(result, Err(Error::EventNotRecorded)));
        }
    }
}
