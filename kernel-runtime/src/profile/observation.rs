//! The recording of one launch.

use std::panic::Location;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use super::clock::{self, Marks};
use super::flops::Work;
use super::op_span::guarded_line;
use super::sink::{self, Ran, Record, Sink};
use super::whole_process;
use crate::kernel::gpu::Gpu;
use crate::launch::args::Args;
use crate::launch::call::Call;
use crate::{Device, Error, Result, sim};

/// Runs or queues a function of a GPU, and records its times if there is a profile.
///
/// # Safety
/// As [`Gpu::start`].
#[inline]
pub(crate) unsafe fn start<G: Gpu, const WORDS: usize>(
    observation: Option<&mut Observation>,
    gpu: &G,
    args: &Args<'_, WORDS>,
    loaded: &G::Loaded,
    grid: [u32; 3],
    params: &[&u64],
) -> Result<()> {
    // SAFETY: as the caller promises.
    unsafe {
        match observation {
            None => gpu.start(args, loaded, grid, params),
            Some(observation) => observation.start(gpu, args, loaded, grid, params),
        }
    }
}

/// Runs a launch on the CPU, and records its times if there is a profile.
#[inline]
pub(crate) fn start_on_cpu(observation: Option<&mut Observation>, run: impl FnOnce() -> Result<()>) -> Result<()> {
    let Some(observation) = observation else { return run() };
    let start = Instant::now();
    let outcome = run();
    observation.ran = Some(Ran::Host(start, Instant::now()));
    outcome
}

/// A launch, and the sinks that record it.
pub(crate) struct Observation {
    sinks: Vec<Arc<Sink>>,
    start: Instant,
    stream: Option<usize>,
    ran: Option<Ran>,
    marks: Option<Marks>,
}

impl Observation {
    /// Notes the beginning of a launch.
    pub(crate) fn begin() -> Observation {
        let sinks = if sink::is_on() {
            whole_process::ask();
            sink::asking()
        } else {
            Vec::new()
        };
        Observation { sinks, start: Instant::now(), stream: None, ran: None, marks: None }
    }

    /// # Safety
    /// As [`Gpu::start`].
    unsafe fn start<G: Gpu, const WORDS: usize>(
        &mut self,
        gpu: &G,
        args: &Args<'_, WORDS>,
        loaded: &G::Loaded,
        grid: [u32; 3],
        params: &[&u64],
    ) -> Result<()> {
        // SAFETY: as the caller promises.
        let launch = || unsafe { gpu.start(args, loaded, grid, params) };
        if self.sinks.is_empty() {
            return launch();
        }
        let stream = gpu.stream();
        let Some(queue) = stream.queue() else {
            let start = sim::now();
            launch()?;
            self.ran = Some(Ran::Simulated(start, sim::now()));
            return Ok(());
        };
        self.stream = Some(queue.raw() as usize);
        // Loading is not part of the launch's time.
        gpu.load_entry(args.kernel().name(), loaded, grid, params)?;
        // Waits for other streams are not, either, so they are queued before the first event. Queueing them twice costs
        // nothing.
        self.marks = clock::timed(&stream, || args.before(queue).map(drop), launch)?;
        Ok(())
    }

    /// Notes that the launch was queued, executed or refused.
    pub(crate) fn end<const WORDS: usize, const KEY: usize>(
        self,
        call: &Call<'_, '_, WORDS, KEY>,
        device: Device,
        outcome: &Result<()>,
        location: &'static Location<'static>,
    ) {
        if self.sinks.is_empty() {
            return;
        }
        let kernel = call.args.kernel();
        let (key, schedule) = if device.is_cpu() {
            (call.key.general(), None)
        } else {
            (call.key.as_ref(), Some(call.schedule.unwrap_or(kernel.schedule())))
        };
        let record = Arc::new(Record {
            end: Instant::now(),
            kernel: kernel.name(),
            parameters: kernel.parameters(key),
            grid: call.grid,
            schedule,
            work: Some(Work::of(kernel, call.key.general(), call.args.given(), call.grid)),
            tensor_bytes: call.args.regions().map(|region| region.bytes as u64).sum(),
            device,
            stream: self.stream,
            thread: sink::thread(),
            start: self.start,
            line: guarded_line().unwrap_or_else(|| location.into()),
            error: outcome.as_ref().err().map(Error::to_string),
            ran: OnceLock::new(),
        });
        if let Some(ran) = self.ran {
            let _ = record.ran.set(ran);
        }
        for sink in &self.sinks {
            sink.keep_launch(record.clone());
        }
        if let Some(marks) = self.marks {
            clock::keep(device, marks, record);
        }
    }
}
