//! The clocks of GPUs, and the translation of their times to the host's clock.
//!
//! An event has no absolute time, only a distance to another event, an `f32` in milliseconds. So every clock has a *base*, an event whose
//! time is known. The base moves forward when distances grow so long that they lose digits. After a pause without launches, the next launch
//! sets a new base. The duration of a launch is the distance between its own two events, independent of the base. Comparisons of the GPU's
//! clock with the host's use events that the host waits for at once.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::sink::{self, Ran, Record};
use crate::{Device, Event, Result, Stream};

static CLOCKS: Mutex<Vec<Clock>> = Mutex::new(Vec::new());

struct Clock {
    device: Device,
    /// The clock's own stream, with nothing else queued.
    stream: Stream,
    /// The base: an event, and its time in microseconds since the first comparison.
    base: (Event, f64),
    /// The approximate time of the newest base on the host's clock, including a base that is still pending.
    based: Instant,
    /// Comparisons with the host's clock: the first, which is the GPU's time 0; the one from which current times are counted; and the last.
    first: Instant,
    near: Compared,
    last: Compared,
    /// Launches and bases that have not been read, oldest first.
    pending: VecDeque<Pending>,
    /// Times that have been read and are translated at the end, each with a recent comparison.
    read: Vec<(Range<f64>, Compared, Arc<Record>)>,
    /// Events for reuse.
    free: Vec<Marks>,
}

/// A time of the GPU in microseconds since the first comparison, and the host's time at that moment.
type Compared = (f64, Instant);

enum Pending {
    Launch(Marks, Arc<Record>),
    /// A new base: an event, and the host's time at that moment. Later launches run after it.
    Base(Event, Instant),
}

/// The events before and after a launch.
pub(super) struct Marks {
    start: Event,
    end: Event,
}

/// The maximum number of launches with pending events.
const MOST_PENDING: usize = 512;
/// The distance after which the base moves: an `f32` of one second has steps of 0.06 us.
const FAR: Duration = Duration::from_secs(1);
/// A shorter distance between comparisons is too short to compare the clocks' speeds.
const TELLING_US: f64 = 1e5;

/// Launches between two events. None if the events cannot be created, which does not fail the launch. A lock serialises launches here, so
/// that no other launch comes between the events.
pub(super) fn timed(stream: &Stream, wait: impl FnOnce() -> Result<()>, launch: impl FnOnce() -> Result<()>) -> Result<Option<Marks>> {
    let mut clocks = clocks();
    let marks = of(&mut clocks, stream.device()).and_then(|clock| {
        clock.come_near();
        clock.marks()
    });
    let marks = marks.ok();
    wait()?;
    let started = marks.filter(|marks| marks.start.record(stream).is_ok());
    launch()?;
    Ok(started.filter(|marks| marks.end.record(stream).is_ok()))
}

/// Writes the times of the launch to the record once they are known.
pub(super) fn keep(device: Device, marks: Marks, record: Arc<Record>) {
    if let Some(clock) = clocks().iter_mut().find(|clock| clock.device == device) {
        clock.pending.push_back(Pending::Launch(marks, record));
        if clock.pending.len() > MOST_PENDING {
            clock.read(MOST_PENDING / 2);
        }
    }
}

/// Waits for all launches and writes their times.
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

/// Releases events and streams if there is no profile.
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
    let index = match clocks.iter().position(|clock| clock.device == device) {
        Some(index) => index,
        None => {
            clocks.push(Clock::new(device)?);
            clocks.len() - 1
        }
    };
    Ok(&mut clocks[index])
}

/// An event that just happened, and its host time: the middle between recording it and seeing it complete, from the fastest of eight
/// attempts.
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
        let (base, near) = ((event, 0.0), (0.0, first));
        let (pending, read, free) = (VecDeque::new(), Vec::new(), Vec::new());
        Ok(Clock { device, stream, base, based: first, first, near, last: near, pending, read, free })
    }

    /// Sets a new base for the coming launches if the newest base is more than `FAR` ago on the host's clock. If that fails, positions are
    /// less exact.
    fn come_near(&mut self) {
        if self.based.elapsed() > FAR
            && let Ok((event, host)) = compare(&self.stream)
        {
            self.based = host;
            self.pending.push_back(Pending::Base(event, host));
        }
    }

    fn marks(&mut self) -> Result<Marks> {
        match self.free.pop() {
            Some(marks) => Ok(marks),
            None => Ok(Marks { start: Event::new(self.device)?, end: Event::new(self.device)? }),
        }
    }

    /// The time of an event in microseconds since the first comparison.
    fn time(&self, event: &Event) -> Result<f64> {
        Ok(self.base.1 + 1e3 * f64::from(self.base.0.elapsed_ms(event)?))
    }

    /// Waits for the oldest launches until at most `left` are pending. Launches that failed get no times.
    fn read(&mut self, left: usize) {
        while self.pending.len() > left {
            match self.pending.pop_front() {
                Some(Pending::Launch(marks, record)) => self.read_launch(marks, record),
                Some(Pending::Base(event, host)) => {
                    // The rounding of a long distance affects only this time: later times are counted from this base and translated with
                    // this comparison.
                    if let Ok(us) = self.time(&event) {
                        (self.base, self.near) = ((event, us), (us, host));
                    }
                }
                None => return,
            }
        }
    }

    fn read_launch(&mut self, mut marks: Marks, record: Arc<Record>) {
        let (Ok(start), Ok(took_ms)) = (self.time(&marks.start), marks.start.elapsed_ms(&marks.end)) else { return };
        let end = start + 1e3 * f64::from(took_ms);
        self.read.push((start..end, self.near, record));
        if end - self.base.1 > FAR.as_secs_f64() * 1e6 {
            std::mem::swap(&mut self.base.0, &mut marks.end);
            self.base.1 = end;
            // Exact enough to decide whether the base is near.
            self.based = self.based.max(host_time(self.near, 1.0, end));
        }
        self.free.push(marks);
    }

    /// Translates the times that were read to the host's clock, and writes them to the records.
    fn translate(&mut self) {
        let speed = speed(self.first, self.last);
        for (ran, near, record) in self.read.drain(..) {
            let _ = record.ran.set(Ran::Gpu(host_time(near, speed, ran.start), host_time(near, speed, ran.end)));
        }
    }
}

/// The seconds of the host's clock for each second of the GPU's clock, which was 0 at `first`.
fn speed(first: Instant, (us, host): Compared) -> f64 {
    if us > TELLING_US { host.saturating_duration_since(first).as_secs_f64() * 1e6 / us } else { 1.0 }
}

/// The host's time when the GPU's clock showed `us`, computed from a comparison at a nearby time.
fn host_time((near, host): Compared, speed: f64, us: f64) -> Instant {
    let since = (us - near) * speed * 1e-6;
    let distance = Duration::try_from_secs_f64(since.abs()).unwrap_or_default();
    if since < 0.0 { host.checked_sub(distance).unwrap_or(host) } else { host + distance }
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use super::*;

    #[test]
    fn a_clock_that_runs_faster_is_translated() {
        let first = Instant::now() + Duration::from_secs(5);
        // The GPU counts 1.0001 s in one second of the host.
        let speed = speed(first, (1_000_100.0, first + Duration::from_secs(1)));
        let near = |us: f64, want: Duration| (host_time((0.0, first), speed, us) - first).abs_diff(want) < Duration::from_nanos(10);
        assert!(near(1_000_100.0, Duration::from_secs(1)) && near(500_050.0, Duration::from_millis(500)) && near(0.0, Duration::ZERO));
        assert!((first - host_time((0.0, first), speed, -1000.1)).abs_diff(Duration::from_millis(1)) < Duration::from_nanos(10));
        let later = (2_000_200.0, first + Duration::from_secs(2));
        assert!((host_time(later, speed, 3_000_300.0) - first).abs_diff(Duration::from_secs(3)) < Duration::from_nanos(10));
        // In a short profile the error of the comparisons would distort durations.
        assert_eq!(super::speed(first, (100.0, first + Duration::from_micros(110))), 1.0);
    }

    /// Distances of the CPU's events are `f32`s like those of a GPU.
    fn clock() -> Clock {
        let mut clock = Clock::new(Device::cpu()).unwrap();
        clock.base.0 = at(0);
        clock
    }

    fn at(nanoseconds: u64) -> Event {
        Event::at(Device::cpu(), Duration::from_nanos(nanoseconds))
    }

    fn launch(start: u64, end: u64) -> Pending {
        let record = Record {
            kernel: "add",
            parameters: String::new(),
            grid: [1; 3],
            schedule: None,
            tensor_bytes: 0,
            work: None,
            device: Device::cpu(),
            stream: None,
            thread: sink::thread(),
            start: Instant::now(),
            end: Instant::now(),
            line: std::panic::Location::caller().into(),
            error: None,
            ran: OnceLock::new(),
        };
        Pending::Launch(Marks { start: at(start), end: at(end) }, Arc::new(record))
    }

    #[test]
    fn a_launch_is_as_long_as_it_was_however_far_the_base_is() {
        const TEN_MINUTES: u64 = 600_000_000_000;
        let mut clock = clock();
        // Adjacent `f32`s near 600,000 ms differ by 62 us.
        clock.pending.push_back(launch(TEN_MINUTES + 40_000, TEN_MINUTES + 50_500));
        clock.read(0);
        let (ran, ..) = &clock.read[0];
        assert!((ran.end - ran.start - 10.5).abs() < 0.01, "{ran:?}");
        // The next launch is positioned relative to the end of that one.
        clock.pending.push_back(launch(TEN_MINUTES + 60_500, TEN_MINUTES + 70_000));
        clock.read(0);
        assert!((clock.read[1].0.start - clock.read[0].0.end - 10.0).abs() < 0.01);
    }

    #[test]
    fn the_times_of_a_launch_after_a_long_pause_come_from_a_new_comparison() {
        const PAUSE: u64 = 600_000_000_000;
        let mut clock = clock();
        clock.come_near();
        assert!(clock.pending.is_empty(), "the base is near");
        let Some(long_ago) = Instant::now().checked_sub(2 * FAR) else { return };
        clock.based = long_ago;
        clock.come_near();
        clock.come_near();
        assert!(matches!(clock.pending.make_contiguous(), [Pending::Base(..)]) && clock.based.elapsed() < FAR);

        let host = clock.first + Duration::from_nanos(PAUSE);
        // Within one `f32` step of the first base: the event of the comparison, and two launches.
        clock.pending = VecDeque::from([
            launch(1000, 2000),
            Pending::Base(at(PAUSE), host),
            launch(PAUSE + 7000, PAUSE + 9000),
            launch(PAUSE + 11_000, PAUSE + 12_000),
        ]);
        clock.read(0);
        let is_near = |launch: usize, since: Instant, nanoseconds: u64| {
            let (ran, near, _) = &clock.read[launch];
            (host_time(*near, 1.0, ran.start) - since).abs_diff(Duration::from_nanos(nanoseconds)) < Duration::from_nanos(10)
        };
        assert!(is_near(0, clock.first, 1000) && is_near(1, host, 7000) && is_near(2, host, 11_000));
    }

    #[test]
    fn the_cpu_is_in_no_capture_and_needs_no_clock() {
        settle();
        forget_if_unused();
        assert!(clocks().iter().all(|clock| clock.device.is_cuda()));
    }
}
