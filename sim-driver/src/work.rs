//! The work on streams and its execution.

use cudarc::driver::sys::CUresult;
use kernel_sim::{Kernel, Launch, LaunchError, MemoryError};

use crate::state::State;

/// An operation of a GPU.
#[derive(Clone)]
pub(crate) enum Work {
    Launch(Call),
    /// A copy inside one GPU.
    Copy {
        from: u64,
        to: u64,
        bytes: usize,
    },
    /// A copy from another GPU.
    CopyFrom {
        gpu: usize,
        from: u64,
        to: u64,
        bytes: usize,
    },
    /// A copy from host memory, which is read when the copy runs.
    Write {
        to: u64,
        from: usize,
        bytes: usize,
    },
    /// A fill of `rows` rows of `count` elements, with a distance of `pitch` bytes.
    Fill {
        to: u64,
        element: Vec<u8>,
        count: usize,
        rows: usize,
        pitch: usize,
    },
    Free(u64),
    /// Completes an event, unless it was recorded again.
    Record {
        event: usize,
        generation: u64,
    },
    Wait(Ticket),
}

/// A launch with copied parameters.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) kernel: Kernel,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared_bytes: u32,
    pub(crate) params: Vec<Vec<u8>>,
}

/// A position in the work of a stream: after its first `count` operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ticket {
    pub(crate) stream: usize,
    pub(crate) count: u64,
}

/// The simulated time of an operation, in microseconds, without the instructions of a kernel.
const WORK_US: f64 = 2.0;
/// The number of warp instructions per microsecond of simulated time.
const INSTRUCTIONS_PER_US: f64 = 100_000.0;

impl State {
    /// Queues work, and returns its position in the stream.
    pub(crate) fn queue(&mut self, stream: usize, work: Work) -> Result<Ticket, CUresult> {
        let node = self.handle();
        let end = self.streams.get(&stream).ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?.end(stream);
        if let Some(origin) = self.capture_of(stream) {
            let origin = self.streams.get_mut(&origin).ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
            let gpu = origin.gpu;
            origin.capture.get_or_insert_default().append(node, gpu, work);
            return Ok(end);
        }
        let queue = self.streams.get_mut(&stream).ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
        let ticket = queue.push(work, stream);
        // The queue of a real GPU is limited, too: the caller waits when it is full.
        if self.streams[&stream].is_full() {
            self.finish(Ticket { count: ticket.count - 1, ..ticket });
        }
        Ok(ticket)
    }

    pub(crate) fn is_done(&self, ticket: Ticket) -> bool {
        // A destroyed stream has completed its work.
        self.streams.get(&ticket.stream).is_none_or(|stream| stream.done >= ticket.count)
    }

    /// Completes the work up to this position, and the work that it waits for. Other work stays queued.
    pub(crate) fn finish(&mut self, ticket: Ticket) {
        while !self.is_done(ticket) {
            let Some((gpu, work)) = self.streams.get_mut(&ticket.stream).and_then(|stream| Some((stream.gpu, stream.queue.pop_front()?)))
            else {
                return;
            };
            // After a fault no work is executed.
            if self.lost.is_none()
                && let Err(code) = self.do_work(gpu, work)
            {
                self.lost = Some(code);
            }
            if let Some(stream) = self.streams.get_mut(&ticket.stream) {
                stream.done += 1;
            }
        }
    }

    fn do_work(&mut self, gpu: usize, work: Work) -> Result<(), CUresult> {
        let machine = self.gpus[gpu].clone();
        self.clock_us += WORK_US;
        match work {
            Work::Launch(call) => self.clock_us += run(&machine, &call)? / INSTRUCTIONS_PER_US,
            Work::Copy { from, to, bytes } => machine.copy(from, to, bytes).map_err(fault)?,
            Work::CopyFrom { gpu: other, from, to, bytes } => {
                let mut copied = vec![0; bytes];
                self.gpus[other].read(from, &mut copied).map_err(fault)?;
                machine.write(to, &copied).map_err(fault)?;
            }
            Work::Write { to, from, bytes } => {
                // SAFETY: the caller that queued the copy keeps the buffer valid until the copy completes.
                let bytes = unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(from), bytes) };
                machine.write(to, bytes).map_err(fault)?;
            }
            Work::Fill { to, element, count, rows, pitch } => {
                (0..rows as u64).try_for_each(|row| machine.fill(to + row * pitch as u64, &element, count)).map_err(fault)?;
            }
            Work::Free(address) => machine.free(address).map_err(fault)?,
            Work::Record { event, generation } => {
                let now = self.clock_us;
                if let Some(event) = self.events.get_mut(&event).filter(|event| event.generation == generation) {
                    event.time_us = Some(now);
                }
            }
            Work::Wait(ticket) => self.finish(ticket),
        }
        Ok(())
    }
}

/// Runs a launch, and returns the number of executed warp instructions.
fn run(machine: &kernel_sim::Machine, call: &Call) -> Result<f64, CUresult> {
    let params: Vec<&[u8]> = call.params.iter().map(Vec::as_slice).collect();
    let launch = Launch { shared_bytes: call.shared_bytes, ..Launch::new(call.grid, call.block, &params) };
    match machine.launch(&call.kernel, &launch) {
        Ok(counters) => Ok(counters.total().warp_instructions() as f64),
        Err(error) => {
            eprintln!("simulated driver: {error}");
            Err(match error {
                LaunchError::Fault(_) => CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
                _ => CUresult::CUDA_ERROR_LAUNCH_FAILED,
            })
        }
    }
}

/// The error of a copy or fill of memory that does not exist when the operation runs.
fn fault(error: MemoryError) -> CUresult {
    eprintln!("simulated driver: {error}");
    CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
}
