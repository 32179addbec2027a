//! Profiles of some steps of a loop: a schedule of steps, and the profiler that follows it.

use std::fmt;

use super::{Profile, Span, Trace, span};

/// The names of steps without their numbers, as in PyTorch.
pub(super) const STEP: &str = "ProfilerStep#";

/// Which steps of a loop a [`Profiler`] records, as `torch.profiler.schedule`: it waits for some steps, warms up for some, and records some. These three
/// are a cycle, which is repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StepSchedule {
    skip_first: u64,
    wait: u64,
    warmup: u64,
    active: u64,
    repeat: u64,
}

/// What a profiler does with a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepAction {
    /// Nothing: launches cost what they cost without a profile.
    Wait,
    /// It records the step, and discards the recording. So the step pays what recorded steps pay, and none of them pays for the first time.
    Warmup,
    /// It records the step.
    Record,
    /// It records the step, the last one of a cycle. Then the trace is ready.
    RecordAndSave,
}

impl Default for StepSchedule {
    fn default() -> StepSchedule {
        StepSchedule::new()
    }
}

impl StepSchedule {
    /// Records each step into a trace of its own, without end.
    pub const fn new() -> StepSchedule {
        StepSchedule { skip_first: 0, wait: 0, warmup: 0, active: 1, repeat: 0 }
    }

    /// The number of steps before the first cycle; 0 by default.
    #[must_use]
    pub const fn skip_first(self, steps: u64) -> StepSchedule {
        StepSchedule { skip_first: steps, ..self }
    }

    /// The number of steps at the beginning of each cycle that are not recorded; 0 by default.
    #[must_use]
    pub const fn wait(self, steps: u64) -> StepSchedule {
        StepSchedule { wait: steps, ..self }
    }

    /// The number of steps after these whose recording is discarded; 0 by default.
    #[must_use]
    pub const fn warmup(self, steps: u64) -> StepSchedule {
        StepSchedule { warmup: steps, ..self }
    }

    /// The number of steps after these that are recorded; 1 by default. With 0, nothing is ever recorded.
    #[must_use]
    pub const fn active(self, steps: u64) -> StepSchedule {
        StepSchedule { active: steps, ..self }
    }

    /// The number of cycles; 0, the default, for cycles without end.
    #[must_use]
    pub const fn repeat(self, cycles: u64) -> StepSchedule {
        StepSchedule { repeat: cycles, ..self }
    }

    /// What a profiler does with a step; the first is step 0.
    pub const fn action(&self, step: u64) -> StepAction {
        let StepSchedule { skip_first, wait, warmup, active, repeat } = *self;
        let unrecorded = wait.saturating_add(warmup);
        let period = unrecorded.saturating_add(active);
        if active == 0 || step < skip_first || (repeat > 0 && (step - skip_first) / period >= repeat) {
            return StepAction::Wait;
        }
        match (step - skip_first) % period {
            step if step < wait => StepAction::Wait,
            step if step < unrecorded => StepAction::Warmup,
            step if step < period - 1 => StepAction::Record,
            _ => StepAction::RecordAndSave,
        }
    }
}

/// Records the steps of a loop that a [`StepSchedule`] selects, as `torch.profiler.profile` does with a schedule. Dropping it discards what it records.
///
/// ```
/// use kernel_runtime::profile::{Profiler, StepSchedule, span};
///
/// let mut profiler = Profiler::start(StepSchedule::new().warmup(3).active(5).repeat(1));
/// for step in 0..8 {
///     let work = span(format!("step_{step}"));
///     // the work of the step
///     drop(work);
///     profiler.step();
/// }
/// let [trace] = &profiler.finish()[..] else { panic!("there is one cycle") };
/// let names: Vec<&str> = trace.spans().iter().map(|span| span.name.as_str()).collect();
/// assert_eq!(names[..4], ["ProfilerStep#3", "step_3", "ProfilerStep#4", "step_4"]);
/// assert_eq!(names.len(), 10);
/// ```
///
/// Each recorded step is a span `ProfilerStep#3` on the thread that calls [`Profiler::step`]. The trace of a cycle has the launches and spans that
/// began in its recorded steps, of all threads.
#[must_use = "dropped, it forgets what it recorded: call `finish`"]
pub struct Profiler<'f> {
    schedule: StepSchedule,
    step: u64,
    recording: Option<Recording>,
    on_trace_ready: Option<Box<dyn FnMut(Trace) + 'f>>,
    traces: Vec<Trace>,
}

/// The profile of a cycle, and the span of its current step.
struct Recording {
    step: Option<Span>,
    profile: Profile,
}

impl<'f> Profiler<'f> {
    /// Begins with step 0.
    pub fn start(schedule: StepSchedule) -> Profiler<'f> {
        let mut profiler = Profiler { schedule, step: 0, recording: None, on_trace_ready: None, traces: Vec::new() };
        profiler.begin_step(None);
        profiler
    }

    /// Calls the function with the trace of each cycle when it is ready. [`Profiler::finish`] then returns none.
    pub fn on_trace_ready(mut self, ready: impl FnMut(Trace) + 'f) -> Profiler<'f> {
        self.on_trace_ready = Some(Box::new(ready));
        self
    }

    /// The number of the current step.
    pub fn current_step(&self) -> u64 {
        self.step
    }

    /// Ends the current step and begins the next one. At the end of a cycle, waits until the GPUs have finished its work.
    pub fn step(&mut self) {
        let ended = self.schedule.action(self.step);
        self.step += 1;
        let mut recording = self.recording.take();
        if let Some(recording) = &mut recording {
            recording.step = None;
        }
        match ended {
            StepAction::RecordAndSave => {
                if let Some(Recording { profile, .. }) = recording.take() {
                    self.ready(profile.finish());
                }
                self.begin_step(None);
            }
            StepAction::Record => self.begin_step(recording),
            // The recording of a warmup is dropped after the next one has begun, which keeps the clocks of the GPUs.
            StepAction::Wait | StepAction::Warmup => self.begin_step(None),
        }
    }

    /// Ends the current step and the profiler. If that step is a recorded one in which something happened, the trace of its cycle is ready.
    ///
    /// Returns the traces of the cycles, in their order, unless [`Profiler::on_trace_ready`] takes them.
    pub fn finish(mut self) -> Vec<Trace> {
        let is_recorded = matches!(self.schedule.action(self.step), StepAction::Record | StepAction::RecordAndSave);
        if let Some(Recording { step, profile }) = self.recording.take().filter(|_| is_recorded) {
            drop(step);
            let trace = profile.finish();
            if trace.launches().len() + trace.spans().len() > 1 {
                self.ready(trace);
            }
        }
        self.traces
    }

    /// Begins the current step in the recording of the steps before it, or in a new one.
    fn begin_step(&mut self, recording: Option<Recording>) {
        if self.schedule.action(self.step) == StepAction::Wait {
            return;
        }
        let mut recording = recording.unwrap_or_else(|| Recording { step: None, profile: Profile::start() });
        recording.step = Some(span(format!("{STEP}{}", self.step)));
        self.recording = Some(recording);
    }

    fn ready(&mut self, trace: Trace) {
        match &mut self.on_trace_ready {
            Some(ready) => ready(trace),
            None => self.traces.push(trace),
        }
    }
}

impl fmt::Debug for Profiler<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Profiler { schedule, step, recording, traces, .. } = self;
        let is_recording = recording.is_some();
        f.debug_struct("Profiler")
            .field("schedule", schedule)
            .field("step", step)
            .field("is_recording", &is_recording)
            .field("traces", &traces.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The letter of each step: `.` wait, `w` warmup, `r` record, `s` record and save.
    fn actions(schedule: StepSchedule, steps: u64) -> String {
        let letter = |step| match schedule.action(step) {
            StepAction::Wait => '.',
            StepAction::Warmup => 'w',
            StepAction::Record => 'r',
            StepAction::RecordAndSave => 's',
        };
        (0..steps).map(letter).collect()
    }

    #[test]
    fn schedules_are_those_of_torch() {
        let of = StepSchedule::new;
        for (schedule, expected) in [
            (of(), "ssssssssssss"),
            (of().warmup(3).active(5).repeat(1), "wwwrrrrs...."),
            (of().wait(1).warmup(1).active(2), ".wrs.wrs.wrs"),
            (of().wait(2).active(1).repeat(2), "..s..s......"),
            (of().skip_first(3).warmup(1).active(2).repeat(2), "...wrswrs..."),
            (of().wait(1).active(0), "............"),
            (of().wait(0).active(0).repeat(3), "............"),
            (of().wait(u64::MAX).warmup(u64::MAX), "............"),
        ] {
            assert_eq!(actions(schedule, 12), expected, "{schedule:?}");
        }
    }
}
