//! What is queued on streams, and how it is done.

use cudarc::driver::sys::CUresult;
use kernel_sim::{Kernel, Launch, LaunchError, MemoryError};

use crate::state::State;

/// Something that a GPU is to do.
#[derive(Clone)]
pub(crate) enum Work {
    Launch(Call),
    /// Inside one GPU.
    Copy {
        from: u64,
        to: u64,
        bytes: usize,
    },
    /// From another GPU.
    CopyFrom {
        gpu: usize,
        from: u64,
        to: u64,
        bytes: usize,
    },
    /// From the host's memory, which is read when the copy is done and not before.
    Write {
        to: u64,
        from: usize,
        bytes: usize,
    },
    /// `rows` rows of `count` elements, which begin `pitch` bytes apart.
    Fill {
        to: u64,
        element: Vec<u8>,
        count: usize,
        rows: usize,
        pitch: usize,
    },
    Free(u64),
    /// The event happens, if it has not been recorded anew.
    Record {
        event: usize,
        generation: u64,
    },
    Wait(Ticket),
}

/// A launch, its parameters copied.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) kernel: Kernel,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared_bytes: u32,
    pub(crate) params: Vec<Vec<u8>>,
}

/// A place in the work of a stream: after its first so many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ticket {
    pub(crate) stream: usize,
    pub(crate) count: u64,
}

/// Microseconds of anything that a GPU does.
const WORK_US: f64 = 2.0;
/// Warp instructions of a microsecond.
const INSTRUCTIONS_PER_US: f64 = 100_000.0;

impl State {
    /// Queues work, and says when it will be done.
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
        // A queue has an end also on a GPU: who is too far ahead waits.
        if self.streams[&stream].is_full() {
            self.finish(Ticket { count: ticket.count - 1, ..ticket });
        }
        Ok(ticket)
    }

    pub(crate) fn is_done(&self, ticket: Ticket) -> bool {
        // A stream that is gone has done everything.
        self.streams.get(&ticket.stream).is_none_or(|stream| stream.done >= ticket.count)
    }

    /// Does what is queued up to there, and what that waits for; nothing else.
    pub(crate) fn finish(&mut self, ticket: Ticket) {
        while !self.is_done(ticket) {
            let Some((gpu, work)) = self.streams.get_mut(&ticket.stream).and_then(|stream| Some((stream.gpu, stream.queue.pop_front()?)))
            else {
                return;
            };
            // After a fault nothing is done any more.
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
                // SAFETY: who queued the copy keeps that many bytes there until it is done.
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

/// Runs a launch; how many warp instructions it took.
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

/// Memory that a copy or a fill names, and that is not there when its turn comes.
fn fault(error: MemoryError) -> CUresult {
    eprintln!("simulated driver: {error}");
    CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
}
