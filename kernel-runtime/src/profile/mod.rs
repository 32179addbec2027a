//! What ran when: launches of the whole process, as a trace for `chrome://tracing` or <https://ui.perfetto.dev>.
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
//! A trace has a track for each thread of the host, with spans and with how long each launch took to be queued, and a track for each stream of a device, with
//! when each kernel ran. Every launch of every thread between [`Profile::start`] and [`Profile::finish`] is in it, tuned ones too; what tuning and benchmarks
//! launch themselves is not, as it would disturb them: they are spans. So are launches of a [`Graph`](crate::Graph), whose kernels run as one; a launch
//! that is captured into it has no time on a device. Profiles may overlap; each has all launches of its time.
//!
//! # Whose time it is
//!
//! | device | when a kernel ran |
//! |---|---|
//! | CPU | by the host's clock |
//! | GPU | by a pair of events on its stream, whose own time, about 2 us, is in it. Its clock and the host's are compared when the first launch is seen, at the first launch after a pause of a second or more, and in the end, so places on the two are right to some 10 us, lengths to half a microsecond |
//! | simulated GPU | by its estimated clock, which has nothing to do with the host's: a thread's kernels begin where its first was launched, and follow each other without gaps |
//!
//! # What it costs
//!
//! A launch looks at one word while nobody profiles. While somebody does, each takes some microseconds more, launches to GPUs take turns and do not overlap with the one before
//! on their stream, and a profile holds at most 65,536 launches and spans, if [`Profile::with_limit`] says no other number; later ones are counted only.
//!
//! # A whole process
//!
//! `GALATEA_PROFILE=trace.json` in the environment profiles a program as it is, from its first launch to its end, and writes the trace when it exits. A
//! process that is killed, or aborts, writes none.

mod clock;
mod json;
mod observation;
mod sink;
mod trace;
mod whole_process;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

pub(crate) use observation::{Observation, start, start_on_cpu};
use sink::Sink;
pub(crate) use sink::is_on;
pub use trace::{LaunchRecord, SpanRecord, Trace};

/// Records launches and spans from [`Profile::start`] on. Dropped, it forgets them.
#[derive(Debug)]
#[must_use = "dropped, it forgets what it recorded: call `finish`"]
pub struct Profile {
    sink: Arc<Sink>,
}

/// What a profile holds if it is told nothing else.
const LIMIT: usize = 1 << 16;

impl Profile {
    /// Records from now on.
    pub fn start() -> Profile {
        Profile::with_limit(LIMIT)
    }

    /// Records at most so many launches and spans.
    pub fn with_limit(limit: usize) -> Profile {
        whole_process::ask();
        Profile { sink: sink::add(limit) }
    }

    /// Ends recording, waits until GPUs have done what was recorded, and gives the trace. Where the work of a GPU has failed, which whoever waits for
    /// it will be told, its kernels have no times.
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

/// A part of a thread's work with a name, from now until the [`Span`] is dropped, by an error or a panic too. Costs one look at a word while nobody
/// profiles, and what it costs to make the name.
pub fn span(name: impl Into<Cow<'static, str>>) -> Span {
    if !is_on() {
        return Span { open: None };
    }
    whole_process::ask();
    Span { open: Some((name.into(), Instant::now())) }
}

/// Ends what [`span`] began when it is dropped.
#[derive(Debug)]
#[must_use = "the span ends when this is dropped"]
pub struct Span {
    open: Option<(Cow<'static, str>, Instant)>,
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some((name, start)) = self.open.take() {
            sink::keep_span(name, start);
        }
    }
}

/// Until it is dropped, launches of this thread are not recorded; instead there is one span of that name.
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
