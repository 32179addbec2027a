//! The clocks of GPUs, and what they say by the host's.
//!
//! An event has no time, only a distance to another event, as an `f32` of milliseconds. So every clock has a *base*, an event whose time is known, and moves it along when
//! distances grow so long that they lose digits. Where the host's clock stood at a time of the GPU's, events say that are waited for at once.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cudarc::driver::{CudaStream, sys};

use super::sink::{self, Ran, Record};
use crate::{Device, Event, Result, Stream};

static CLOCKS: Mutex<Vec<Clock>> = Mutex::new(Vec::new());

struct Clock {
    device: Device,
    /// Of our own, where nothing else is queued.
    stream: Stream,
    /// An event, and its time in microseconds since the first comparison.
    base: (Event, f64),
    /// The first comparison with the host's clock, which is the GPU's 0, and the last one.
    first: Instant,
    last: (f64, Instant),
    /// Launches whose times nobody has read, the oldest first.
    pending: VecDeque<(Marks, Arc<Record>)>,
    /// Times that were read, to be translated in the end.
    read: Vec<(f64, f64, Arc<Record>)>,
    /// Events to be used again.
    free: Vec<Marks>,
}

/// The events around a launch.
pub(super) struct Marks {
    start: Event,
    end: Event,
}

/// Launches whose events are out at once.
const MOST_PENDING: usize = 512;
/// A distance in microseconds after which the base moves: an `f32` of a second has steps of 0.06 us.
const FAR_US: f64 = 1e6;
/// Shorter distances between comparisons say nothing of how the clocks' speeds differ.
const TELLING_US: f64 = 1e5;

/// Is the work that is queued here captured into a graph?
pub(super) fn is_capturing(stream: &CudaStream) -> bool {
    let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    // SAFETY: the stream is alive, and `status` a valid place for the answer.
    let code = unsafe { sys::cuStreamIsCapturing(stream.cu_stream(), &mut status) };
    code == sys::CUresult::CUDA_SUCCESS && status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
}

/// Launches between two events; none if events cannot be had, which is no failure of the launch. Launches take turns here, so that nobody else's comes
/// between the events.
pub(super) fn timed(stream: &Stream, wait: impl FnOnce() -> Result<()>, launch: impl FnOnce() -> Result<()>) -> Result<Option<Marks>> {
    let mut clocks = clocks();
    let marks = of(&mut clocks, stream.device()).and_then(Clock::marks).ok();
    wait()?;
    let started = marks.filter(|marks| marks.start.record(stream).is_ok());
    launch()?;
    Ok(started.filter(|marks| marks.end.record(stream).is_ok()))
}

/// Has the times of the launch written to the record, once they are known.
pub(super) fn keep(device: Device, marks: Marks, record: Arc<Record>) {
    if let Some(clock) = clocks().iter_mut().find(|clock| clock.device == device) {
        clock.pending.push_back((marks, record));
        if clock.pending.len() > MOST_PENDING {
            clock.read(MOST_PENDING / 2);
        }
    }
}

/// Waits for all launches, and writes their times.
pub(super) fn settle() {
    for clock in clocks().iter_mut() {
        clock.read(0);
        if let Ok((event, host)) = compare(&clock.stream)
            && let Ok(us) = clock.time(&event)
        {
            clock.last = (us, host);
        }
        clock.translate();
    }
}

/// Where nobody profiles, events and streams are given back.
pub(super) fn forget_if_unused() {
    let mut clocks = clocks();
    if sink::is_empty() {
        clocks.clear();
    }
}

fn clocks() -> MutexGuard<'static, Vec<Clock>> {
    CLOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn of(clocks: &mut Vec<Clock>, device: Device) -> Result<&mut Clock> {
    let place = match clocks.iter().position(|clock| clock.device == device) {
        Some(place) => place,
        None => {
            clocks.push(Clock::new(device)?);
            clocks.len() - 1
        }
    };
    Ok(&mut clocks[place])
}

/// An event that just happened, and when: half-way between asking for it and knowing of it, in the shortest of some attempts.
fn compare(stream: &Stream) -> Result<(Event, Instant)> {
    let attempt = || -> Result<_> {
        let event = Event::new(stream.device())?;
        let asked = Instant::now();
        event.record(stream)?;
        event.synchronize()?;
        let took = asked.elapsed();
        Ok((took, event, asked + took / 2))
    };
    let mut best = attempt()?;
    for _ in 0..7 {
        let other = attempt()?;
        if other.0 < best.0 {
            best = other;
        }
    }
    Ok((best.1, best.2))
}

impl Clock {
    fn new(device: Device) -> Result<Clock> {
        let stream = device.new_stream()?;
        let (event, first) = compare(&stream)?;
        let (base, last) = ((event, 0.0), (0.0, first));
        Ok(Clock { device, stream, base, first, last, pending: VecDeque::new(), read: Vec::new(), free: Vec::new() })
    }

    fn marks(&mut self) -> Result<Marks> {
        match self.free.pop() {
            Some(marks) => Ok(marks),
            None => Ok(Marks { start: Event::new(self.device)?, end: Event::new(self.device)? }),
        }
    }

    /// Microseconds of the GPU since the first comparison.
    fn time(&self, event: &Event) -> Result<f64> {
        Ok(self.base.1 + 1e3 * f64::from(self.base.0.elapsed_ms(event)?))
    }

    /// Waits for the oldest launches until so many are left. What failed stays without times.
    fn read(&mut self, left: usize) {
        while self.pending.len() > left {
            let Some((mut marks, record)) = self.pending.pop_front() else { return };
            let (Ok(start), Ok(end)) = (self.time(&marks.start), self.time(&marks.end)) else { continue };
            self.read.push((start, end, record));
            if end - self.base.1 > FAR_US {
                std::mem::swap(&mut self.base.0, &mut marks.end);
                self.base.1 = end;
            }
            self.free.push(marks);
        }
    }

    /// Writes the times that were read, by the host's clock.
    fn translate(&mut self) {
        let (first, last) = (self.first, self.last);
        for (start, end, record) in self.read.drain(..) {
            let _ = record.ran.set(Ran::Gpu(host_time(first, last, start), host_time(first, last, end)));
        }
    }
}

/// What the host's clock showed when the GPU's showed `us`, which was 0 at `first`, if it showed `last.1` at `last.0`.
fn host_time(first: Instant, last: (f64, Instant), us: f64) -> Instant {
    let speed = if last.0 > TELLING_US { last.1.saturating_duration_since(first).as_secs_f64() * 1e6 / last.0 } else { 1.0 };
    let since = us * speed * 1e-6;
    let distance = Duration::try_from_secs_f64(since.abs()).unwrap_or_default();
    if since < 0.0 { first.checked_sub(distance).unwrap_or(first) } else { first + distance }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_runs_faster_is_translated() {
        let first = Instant::now() + Duration::from_secs(5);
        // The GPU counts 1.0001 s while the host counts one.
        let last = (1_000_100.0, first + Duration::from_secs(1));
        let near = |us: f64, want: Duration| (host_time(first, last, us) - first).abs_diff(want) < Duration::from_nanos(10);
        assert!(near(1_000_100.0, Duration::from_secs(1)) && near(500_050.0, Duration::from_millis(500)) && near(0.0, Duration::ZERO));
        assert!((first - host_time(first, last, -1000.1)).abs_diff(Duration::from_millis(1)) < Duration::from_nanos(10));
        // In a short profile the comparison's own error would stretch kernels.
        let short = (100.0, first + Duration::from_micros(110));
        assert_eq!(host_time(first, short, 50.0), first + Duration::from_micros(50));
    }

    #[test]
    fn the_cpu_is_in_no_capture_and_needs_no_clock() {
        settle();
        forget_if_unused();
        assert!(clocks().iter().all(|clock| clock.device.is_cuda()));
    }
}
