//! The active profiles and the data recorded for each.

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use kernel_lang::Schedule;

use super::flops::Work;
use super::{OpenSpan, SpanKind};
use crate::{Device, Site};

/// There is no profile.
const OFF: u8 = 0;
/// There is a profile.
const ON: u8 = 1;
/// The environment has not been read yet.
const UNASKED: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(UNASKED);
static SINKS: Mutex<Vec<Arc<Sink>>> = Mutex::new(Vec::new());

/// Returns whether there may be a profile. This is the only check in a launch without one.
#[inline]
pub(crate) fn is_on() -> bool {
    STATE.load(Ordering::Relaxed) != OFF
}

/// The data recorded for one profile.
#[derive(Debug)]
pub(super) struct Sink {
    pub(super) start: Instant,
    /// The time of day at the start.
    pub(super) started: SystemTime,
    limit: usize,
    log: Mutex<Log>,
}

#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) launches: Vec<Arc<Record>>,
    pub(super) spans: Vec<EndedSpan>,
    pub(super) left_out: usize,
}

/// A launch with its untranslated times.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) kernel: &'static str,
    pub(super) parameters: String,
    pub(super) grid: [u32; 3],
    pub(super) schedule: Option<Schedule>,
    pub(super) tensor_bytes: u64,
    pub(super) work: Option<Work>,
    pub(super) device: Device,
    /// The driver's handle of the stream; none for devices whose calls return after the work is done.
    pub(super) stream: Option<usize>,
    pub(super) thread: Arc<Thread>,
    pub(super) start: Instant,
    pub(super) end: Instant,
    pub(super) line: Site,
    pub(super) error: Option<String>,
    /// Set at once, or when the GPU has finished.
    pub(super) ran: OnceLock<Ran>,
}

/// The time of a kernel's execution.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ran {
    Host(Instant, Instant),
    /// By the thread's simulated clock.
    Simulated(Duration, Duration),
    /// By the host's clock, translated from the GPU's clock.
    Gpu(Instant, Instant),
}

#[derive(Debug)]
pub(super) struct EndedSpan {
    pub(super) name: String,
    pub(super) kind: SpanKind,
    /// The operations that the author of an op states.
    pub(super) flops: Option<u64>,
    pub(super) thread: Arc<Thread>,
    pub(super) start: Instant,
    pub(super) end: Instant,
}

/// A thread of the host.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) number: u64,
    pub(super) name: String,
}

thread_local! {
    static THREAD: Arc<Thread> = {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = std::thread::current().name().map_or_else(|| format!("thread {number}"), str::to_owned);
        Arc::new(Thread { number, name })
    };
    /// The number of `pause`s in effect on this thread.
    static PAUSED: Cell<usize> = const { Cell::new(0) };
}

pub(super) fn thread() -> Arc<Thread> {
    THREAD.with(Arc::clone)
}

/// Notes that the environment has been read: from now on the state depends on the active profiles alone.
pub(super) fn set_asked() {
    let sinks = sinks();
    set_state(&sinks);
}

pub(super) fn add(limit: usize) -> Arc<Sink> {
    let sink = Arc::new(Sink { start: Instant::now(), started: SystemTime::now(), limit, log: Mutex::default() });
    let mut sinks = sinks();
    sinks.push(sink.clone());
    set_state(&sinks);
    sink
}

pub(super) fn remove(sink: &Arc<Sink>) {
    let mut sinks = sinks();
    sinks.retain(|other| !Arc::ptr_eq(other, sink));
    set_state(&sinks);
}

/// Returns whether there is no profile.
pub(super) fn is_empty() -> bool {
    sinks().is_empty()
}

fn set_state(sinks: &[Arc<Sink>]) {
    STATE.store(if sinks.is_empty() { OFF } else { ON }, Ordering::Relaxed);
}

fn sinks() -> MutexGuard<'static, Vec<Arc<Sink>>> {
    SINKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The sinks that record a launch of this thread. Full sinks only count it.
pub(super) fn asking() -> Vec<Arc<Sink>> {
    if is_paused() {
        return Vec::new();
    }
    let mut asking = sinks().clone();
    asking.retain(|sink| sink.has_room());
    asking
}

#[cold]
pub(super) fn keep_span(OpenSpan { name, kind, start, flops }: OpenSpan) {
    let end = Instant::now();
    let sinks = sinks().clone();
    for sink in sinks.iter().filter(|sink| sink.start <= start) {
        let mut log = sink.log();
        if log.has_room(sink.limit) {
            log.spans.push(EndedSpan { name: name.to_string(), kind: kind.clone(), flops: flops.get(), thread: thread(), start, end });
        }
    }
}

/// Returns whether launches of this thread are not recorded.
pub(super) fn is_paused() -> bool {
    PAUSED.get() > 0
}

/// Suspends the recording of this thread's launches until [`Paused`] is dropped.
pub(super) fn pause() {
    PAUSED.set(PAUSED.get() + 1);
}

/// Ends one [`pause`] when it is dropped.
pub(super) struct Paused;

impl Drop for Paused {
    fn drop(&mut self) {
        PAUSED.set(PAUSED.get().saturating_sub(1));
    }
}

impl Sink {
    pub(super) fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether there is space for one more record; counts the record if not.
    fn has_room(&self) -> bool {
        self.log().has_room(self.limit)
    }

    pub(super) fn keep_launch(&self, record: Arc<Record>) {
        let mut log = self.log();
        // Other threads may have filled the log since the launch began.
        if log.has_room(self.limit) {
            log.launches.push(record);
        }
    }
}

impl Log {
    fn has_room(&mut self, limit: usize) -> bool {
        let has_room = self.launches.len() + self.spans.len() < limit;
        self.left_out += usize::from(!has_room);
        has_room
    }
}
