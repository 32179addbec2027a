//! The recording of a profile.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use kernel_lang::Schedule;

use super::flops::Counter;
use super::nesting;
use super::op_span::SpanKind;
use super::sink::{Ran, Record, Sink};
use crate::Device;

/// The recording of a [`Profile`](super::Profile). All times are relative to its start.
#[derive(Clone, Debug)]
pub struct Trace {
    launches: Vec<LaunchRecord>,
    spans: Vec<SpanRecord>,
    left_out: usize,
    started: SystemTime,
}

/// A launch.
#[derive(Clone, Debug)]
pub struct LaunchRecord {
    /// The kernel's name.
    pub kernel: &'static str,
    /// The types and constants, as in `T = f32, BLOCK_SIZE = 1024`.
    pub parameters: String,
    /// The number of programs.
    pub grid: [u32; 3],
    /// The schedule: the kernel's own if none was tuned; none on the CPU.
    pub schedule: Option<Schedule>,
    /// The total size of all tensor arguments in bytes. The kernel may read and write less.
    pub tensor_bytes: u64,
    /// The device.
    pub device: Device,
    /// The number of its track on the device: of its stream on a GPU, otherwise of its thread.
    pub track: usize,
    /// The thread that launched it.
    pub thread: String,
    /// The user's line that launched it, such as `src/model.rs:41:21`.
    pub line: String,
    /// The time of the launch call, from its beginning to its end.
    pub enqueued: Range<Duration>,
    /// The time of execution. None for a launch that failed or was captured into a replay, and if the GPU's time cannot be read.
    pub ran: Option<Range<Duration>>,
    /// The error, if the launch failed. A launch that is refused before it starts, for example because its grid is too large, is not
    /// recorded.
    pub error: Option<String>,
    /// The floating-point operations of all programs, or a lower bound if their number depends on data. None if the kernel does not compile.
    /// The chapter "Recorded graphs" of the book has the rules.
    pub flops: Option<u64>,
    /// Whether `flops` is exact. Otherwise it is a lower bound.
    pub is_exact: bool,
    /// The bytes of the tensors that the kernel reads, each tensor as a whole. None if the kernel does not compile.
    pub read_bytes: Option<u64>,
    /// The bytes of the tensors that the kernel writes.
    pub written_bytes: Option<u64>,
    /// The index of the innermost span around the launch among [`Trace::spans`].
    pub span: Option<usize>,
    pub(super) thread_number: u64,
    pub(super) stream: Option<usize>,
}

/// A span.
#[derive(Clone, Debug)]
pub struct SpanRecord {
    /// Its name.
    pub name: String,
    /// The thread of the span.
    pub thread: String,
    /// The time of the span.
    pub time: Range<Duration>,
    /// What the span stands for.
    pub kind: SpanKind,
    /// The floating-point operations of the launches in the span. For an op with `flops = f`, the result of that function.
    pub flops: u64,
    /// Whether `flops` is the result of an op's own function.
    pub states_flops: bool,
    /// The index of the innermost span around this one among [`Trace::spans`].
    pub parent: Option<usize>,
    pub(super) thread_number: u64,
}

impl Trace {
    /// The launches, in the order in which they were queued.
    pub fn launches(&self) -> &[LaunchRecord] {
        &self.launches
    }

    /// The spans, in the order of their beginnings. Of spans that begin together, the longer comes first.
    pub fn spans(&self) -> &[SpanRecord] {
        &self.spans
    }

    /// The number of launches and spans that were dropped because the profile was full.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// The time of day at the start.
    pub fn started(&self) -> SystemTime {
        self.started
    }

    /// Writes [`Trace::to_json`] to a file, with the path as the trace's name.
    ///
    /// # Errors
    /// The system's error.
    pub fn write(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        std::fs::write(path, self.json(&path.display().to_string()))
    }
}

/// The trace of a sink whose launches are settled.
pub(super) fn of(sink: &Sink) -> Trace {
    let log = sink.log();
    let mut records: Vec<&Record> = log.launches.iter().map(|record| &**record).collect();
    records.sort_by_key(|record| record.start);
    let mut tracks = Tracks::default();
    let mut counter = Counter::default();
    let mut launches: Vec<LaunchRecord> = Vec::with_capacity(records.len());
    for record in records {
        let counted = record.work.as_ref().and_then(|work| counter.count(work));
        launches.push(LaunchRecord {
            flops: counted.and_then(|counted| counted.flops),
            is_exact: counted.is_some_and(|counted| counted.is_exact),
            read_bytes: counted.map(|counted| counted.read_bytes),
            written_bytes: counted.map(|counted| counted.written_bytes),
            ..tracks.launch(record, sink.start)
        });
    }
    order_streams(&mut launches);
    let since = |at: Instant| at.saturating_duration_since(sink.start);
    let mut spans: Vec<SpanRecord> = log
        .spans
        .iter()
        .map(|span| SpanRecord {
            name: span.name.clone(),
            thread: span.thread.name.clone(),
            time: since(span.start)..since(span.end),
            kind: span.kind.clone(),
            flops: span.flops.unwrap_or(0),
            states_flops: span.flops.is_some(),
            parent: None,
            thread_number: span.thread.number,
        })
        .collect();
    spans.sort_by(|a, b| a.time.start.cmp(&b.time.start).then(b.time.end.cmp(&a.time.end)));
    name_lines(&launches, &mut spans);
    nest(&mut launches, &mut spans);
    Trace { launches, spans, left_out: log.left_out, started: sink.started }
}

/// Sets the lines of copies of arguments: that of the next launch of their thread. Launches and spans are sorted by their starts.
fn name_lines(launches: &[LaunchRecord], spans: &mut [SpanRecord]) {
    let mut next: HashMap<u64, &LaunchRecord> = HashMap::new();
    let mut launches = launches.iter().rev().peekable();
    for span in spans.iter_mut().rev() {
        while let Some(launch) = launches.next_if(|launch| launch.enqueued.start >= span.time.start) {
            next.insert(launch.thread_number, launch);
        }
        if let SpanKind::Copy { line, .. } = &mut span.kind
            && line.is_empty()
            && let Some(launch) = next.get(&span.thread_number)
        {
            line.clone_from(&launch.line);
        }
    }
}

/// Sets the span around each launch and each span, and the operations of spans.
fn nest(launches: &mut [LaunchRecord], spans: &mut [SpanRecord]) {
    let items = |span: &SpanRecord| (span.thread_number, span.time.clone());
    let span_items: Vec<_> = spans.iter().map(items).collect();
    let launch_items: Vec<_> = launches.iter().map(|launch| (launch.thread_number, launch.enqueued.clone())).collect();
    let (of_spans, of_launches) = nesting::innermost(&span_items, &launch_items);
    for (launch, span) in launches.iter_mut().zip(of_launches) {
        launch.span = span;
        if let Some(span) = span.filter(|span| !spans[*span].states_flops) {
            spans[span].flops = spans[span].flops.saturating_add(launch.flops.unwrap_or(0));
        }
    }
    // A span begins before the spans inside of it.
    for (index, parent) in of_spans.into_iter().enumerate().rev() {
        spans[index].parent = parent;
        if let Some(parent) = parent.filter(|parent| !spans[*parent].states_flops) {
            spans[parent].flops = spans[parent].flops.saturating_add(spans[index].flops);
        }
    }
}

/// The tracks of all devices.
#[derive(Default)]
struct Tracks {
    /// Track numbers, by device and stream or thread.
    numbers: HashMap<(Device, u64), usize>,
    counts: HashMap<Device, usize>,
    /// For each thread's track of a simulated GPU: its start by the host's clock, and the simulated time at the start.
    anchors: HashMap<(Device, usize), (Duration, Duration)>,
}

impl Tracks {
    fn launch(&mut self, record: &Record, zero: Instant) -> LaunchRecord {
        let since = |at: Instant| at.saturating_duration_since(zero);
        let enqueued = since(record.start)..since(record.end);
        let device = record.device;
        // The stream, or the thread on a device without streams.
        let queue = record.stream.map_or(record.thread.number, |stream| stream as u64);
        let count = self.counts.entry(device).or_default();
        let track = *self.numbers.entry((device, queue)).or_insert_with(|| {
            *count += 1;
            *count - 1
        });
        let ran = record.ran.get().map(|ran| match *ran {
            Ran::Host(start, end) | Ran::Gpu(start, end) => since(start)..since(end),
            Ran::Simulated(start, end) => {
                let (host, own) = *self.anchors.entry((device, track)).or_insert((enqueued.start, start));
                host + start.saturating_sub(own)..host + end.saturating_sub(own)
            }
        });
        LaunchRecord {
            kernel: record.kernel,
            parameters: record.parameters.clone(),
            grid: record.grid,
            schedule: record.schedule,
            tensor_bytes: record.tensor_bytes,
            device,
            track,
            thread: record.thread.name.clone(),
            line: record.line.to_string(),
            enqueued,
            ran,
            error: record.error.clone(),
            flops: None,
            is_exact: false,
            read_bytes: None,
            written_bytes: None,
            span: None,
            thread_number: record.thread.number,
            stream: record.stream,
        }
    }
}

/// Orders the kernels of each GPU stream. A kernel runs after its launch began and after the previous kernel of its stream. The translation
/// of clocks is less exact than that, so the order overrides translated times that contradict it.
fn order_streams(launches: &mut [LaunchRecord]) {
    let mut queued: Vec<&mut LaunchRecord> = launches.iter_mut().filter(|launch| launch.stream.is_some() && launch.ran.is_some()).collect();
    // If two threads launch to one stream, their launches may be queued in another order than they began.
    queued.sort_by_key(|launch| launch.ran.clone().map(|ran| ran.start));
    #[expect(clippy::mutable_key_type, reason = "which device it is, its address says, and that never changes")]
    let mut ends: HashMap<(Device, usize), Duration> = HashMap::new();
    for launch in queued {
        let before = ends.entry((launch.device, launch.track)).or_default();
        if let Some(ran) = &mut launch.ran {
            ran.start = ran.start.max(*before).max(launch.enqueued.start);
            ran.end = ran.end.max(ran.start);
            *before = ran.end;
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A launch to a stream, with the times of queueing and execution in microseconds.
    pub(in super::super) fn launch(stream: usize, enqueued: Range<u64>, ran: Range<u64>) -> LaunchRecord {
        let us = |range: Range<u64>| Duration::from_micros(range.start)..Duration::from_micros(range.end);
        LaunchRecord {
            kernel: "add",
            parameters: "BLOCK_SIZE = 64".to_owned(),
            grid: [2, 1, 1],
            schedule: Some(Schedule::DEFAULT),
            tensor_bytes: 12,
            device: Device::cpu(),
            track: stream,
            thread: "main".to_owned(),
            line: "src/main.rs:1:2".to_owned(),
            enqueued: us(enqueued),
            ran: Some(us(ran)),
            error: None,
            flops: Some(100),
            is_exact: true,
            read_bytes: Some(8),
            written_bytes: Some(4),
            span: None,
            thread_number: 1,
            stream: Some(stream),
        }
    }

    /// A span with its time in microseconds.
    pub(in super::super) fn span(name: &str, kind: SpanKind, time: Range<u64>) -> SpanRecord {
        let time = Duration::from_micros(time.start)..Duration::from_micros(time.end);
        SpanRecord {
            name: name.to_owned(),
            thread: "main".to_owned(),
            time,
            kind,
            flops: 0,
            states_flops: false,
            parent: None,
            thread_number: 1,
        }
    }

    /// A trace of launches and spans with measured times, in the order of their starts.
    pub(in super::super) fn trace(mut launches: Vec<LaunchRecord>, mut spans: Vec<SpanRecord>) -> Trace {
        order_streams(&mut launches);
        nest(&mut launches, &mut spans);
        Trace { launches, spans, left_out: 0, started: SystemTime::UNIX_EPOCH + Duration::from_secs(1) }
    }

    #[test]
    fn kernels_of_a_stream_follow_each_other_and_their_launches() {
        // The second launch was queued by a thread that began before the first one; the third seems to run before its launch.
        let launches = vec![launch(0, 10..30, 50..60), launch(0, 12..20, 41..51), launch(1, 40..45, 38..44), launch(1, 90..91, 80..85)];
        let trace = trace(launches, Vec::new());
        let ran: Vec<_> = trace.launches.iter().map(|launch| launch.ran.clone().unwrap()).collect();
        let us = |range: &Range<Duration>| range.start.as_micros()..range.end.as_micros();
        assert_eq!(ran.iter().map(us).collect::<Vec<_>>(), [51..60, 41..51, 40..44, 90..90]);
    }
}
