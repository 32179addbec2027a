//! Profiles: timelines of all launches of the process, as traces for `chrome://tracing` or <https://ui.perfetto.dev>.
//!
//! ```
//! # use kernel_runtime::{Device, Result};
//! use kernel_runtime::profile::{Profile, span};
//! # fn main() -> Result<()> {
//! let device = Device::cpu();
//! let profile = Profile::start();
//! {
//!     let _span = span("fill twice"); // a name of your own, on the thread's track
//!     let mut x = device.zeros::<f32>(1 << 16)?;
//!     x.fill(1.0)?;
//! }
//! let trace = profile.finish();
//! assert_eq!((trace.spans().len(), trace.launches().len()), (1, 0)); // a fill is no launch
//! println!("{}", trace.to_json());
//! # Ok(())
//! # }
//! ```
//!
//! A trace has a track for each thread of the host and for each stream of a device. Host tracks show spans and the time that each launch
//! took to be queued; stream tracks show when each kernel ran. A call of an [`#[op]`](crate::ops::OpDef) is a span over its launches, with the
//! dtypes and the extents of its arguments, and a copy of a shared tensor is a span with its bytes and its line ([`SpanKind`]). Each launch and
//! each span has the floating-point operations of its kernels. [`Trace::key_averages`] sums the times by name. A [`Profiler`] records the steps
//! of a loop that a schedule selects.
//!
//! A trace contains every launch of every thread between [`Profile::start`] and
//! [`Profile::finish`], including launches of tuned kernels. The runs of tuning and of benchmarks are not recorded, because that would
//! disturb their measurements: each tuning or benchmark is one span. A launch of a [`Replay`](crate::Replay) is a span too, because its
//! kernels run as one; a launch that is captured into a replay has no time on a device. Profiles may overlap in time; each contains all
//! launches of its interval.
//!
//! # Clocks
//!
//! | device | source of a kernel's times |
//! |---|---|
//! | CPU | the host's clock |
//! | GPU | a pair of events on its stream, translated to the host's clock |
//! | simulated GPU | its estimated clock, which is independent of the host's |
//!
//! On a GPU, a kernel's time includes about 2 us of the events themselves. The clocks of the GPU and the host are compared at the first
//! launch, at the first launch after a pause of at least a second, and at the end. So positions on the two clocks agree to about 10 us, and
//! durations are accurate to half a microsecond. On a simulated GPU, a thread's kernels start at the time of its first launch and follow
//! each other without gaps.
//!
//! # Overhead
//!
//! Without a profile, a launch reads one word. With a profile, each launch takes some microseconds longer, and launches to GPUs are
//! serialised and do not overlap with the previous launch on their stream. A profile holds at most 65,536 launches and spans unless
//! [`Profile::with_limit`] sets another limit; later ones are only counted.
//!
//! # Whole processes
//!
//! The environment variable `GALATEA_PROFILE=trace.json` profiles an unmodified program from its first launch to its end, and writes the
//! trace at exit. A process that is killed or aborts writes no trace.

mod averages;
mod clock;
mod flops;
mod json;
mod nesting;
mod observation;
mod op_span;
mod sink;
mod steps;
mod trace;
mod whole_process;

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;

pub use averages::{KeyAverage, KeyAverages, SortBy};
pub(crate) use observation::{Observation, start, start_on_cpu};
pub use op_span::{CallInput, SpanKind, call};
pub(crate) use op_span::{copy, of_line, op};
use sink::Sink;
pub(crate) use sink::is_on;
pub use steps::{Profiler, StepAction, StepSchedule};
pub use trace::{LaunchRecord, SpanRecord, Trace};

/// Records launches and spans from [`Profile::start`] on. Dropping it discards the recording.
#[derive(Debug)]
#[must_use = "dropped, it forgets what it recorded: call `finish`"]
pub struct Profile {
    sink: Arc<Sink>,
}

/// The default limit of launches and spans.
const LIMIT: usize = 1 << 16;

impl Profile {
    /// Starts recording.
    pub fn start() -> Profile {
        Profile::with_limit(LIMIT)
    }

    /// Starts recording, with a limit on the number of launches and spans.
    pub fn with_limit(limit: usize) -> Profile {
        whole_process::ask();
        Profile { sink: sink::add(limit) }
    }

    /// Stops recording, waits until the GPUs have finished the recorded work, and returns the trace. If the work of a GPU has failed, its
    /// kernels have no times; the next call that waits for that work returns the error.
    pub fn finish(self) -> Trace {
        sink::remove(&self.sink);
        clock::settle();
        trace::of(&self.sink)
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        sink::remove(&self.sink);
        clock::forget_if_unused();
    }
}

/// Returns whether a profile records launches now.
pub fn is_recording() -> bool {
    is_on()
}

/// Starts a named span on this thread. It ends when the [`Span`] is dropped, also after an error or a panic. Without a profile it costs
/// reading one word and making the name.
pub fn span(name: impl Into<Cow<'static, str>>) -> Span {
    if !is_on() {
        return Span::NONE;
    }
    whole_process::ask();
    Span::begin(name.into(), SpanKind::Annotation)
}

/// A span that [`span`] or [`call`] started. It ends when it is dropped.
#[derive(Debug)]
#[must_use = "the span ends when this is dropped"]
pub struct Span {
    /// In a box, so that ops without a profile move one word.
    open: Option<Box<OpenSpan>>,
}

/// A span that has not ended.
#[derive(Debug)]
struct OpenSpan {
    name: Cow<'static, str>,
    kind: SpanKind,
    start: Instant,
    /// The operations that the author of an op states.
    flops: Cell<Option<u64>>,
}

impl Span {
    /// A span that nothing records.
    const NONE: Span = Span { open: None };

    fn begin(name: Cow<'static, str>, kind: SpanKind) -> Span {
        Span { open: Some(Box::new(OpenSpan { name, kind, start: Instant::now(), flops: Cell::new(None) })) }
    }

    /// States the operations of the span, in place of those of its launches.
    pub(crate) fn set_flops(&self, flops: impl FnOnce() -> Option<u64>) {
        if let Some(open) = &self.open {
            open.flops.set(flops());
        }
    }
}

impl Drop for Span {
    #[inline]
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            sink::keep_span(*open);
        }
    }
}

/// Until the guard is dropped, launches of this thread are not recorded; one span with this name stands for them.
pub(crate) fn undisturbed(name: impl FnOnce() -> String) -> Undisturbed {
    if !is_on() {
        return Undisturbed { _span: None };
    }
    sink::pause();
    Undisturbed { _span: Some((span(name()), sink::Paused)) }
}

/// See [`undisturbed`].
pub(crate) struct Undisturbed {
    _span: Option<(Span, sink::Paused)>,
}
