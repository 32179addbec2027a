//! Streams.

use std::collections::VecDeque;

use cudarc::driver::sys::{CUevent, CUgraph, CUresult, CUstream, CUstreamCaptureStatus as Status};

use crate::call::{answer, call_in_context, handle};
use crate::graph::Graph;
use crate::state::State;
use crate::work::{Ticket, Work};

/// Work in its order.
pub(crate) struct Stream {
    pub(crate) gpu: usize,
    pub(crate) queue: VecDeque<Work>,
    /// How many were queued, and how many of them are done.
    queued: u64,
    pub(crate) done: u64,
    /// What is written down instead of queued.
    pub(crate) capture: Option<Graph>,
}

/// More work than that is not queued at once.
const LENGTH: usize = 1024;

impl Stream {
    pub(crate) fn new(gpu: usize) -> Stream {
        Stream { gpu, queue: VecDeque::new(), queued: 0, done: 0, capture: None }
    }

    pub(crate) fn push(&mut self, work: Work, own: usize) -> Ticket {
        self.queue.push_back(work);
        self.queued += 1;
        self.end(own)
    }

    /// After everything that is queued now.
    pub(crate) fn end(&self, own: usize) -> Ticket {
        Ticket { stream: own, count: self.queued }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.queue.len() > LENGTH
    }
}

impl State {
    /// After everything that is queued there now.
    pub(crate) fn end_of(&self, stream: usize) -> Ticket {
        self.streams[&stream].end(stream)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamCreate(stream: *mut CUstream, _flags: u32) -> CUresult {
    call_in_context(|state, gpu| {
        let new = state.handle();
        state.streams.insert(new, Stream::new(gpu));
        // SAFETY: the caller's place for the answer.
        unsafe { answer(stream, handle(new)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamCreateWithPriority(stream: *mut CUstream, flags: u32, _priority: i32) -> CUresult {
    // SAFETY: as the caller promises.
    unsafe { cuStreamCreate(stream, flags) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamDestroy_v2(stream: CUstream) -> CUresult {
    call_in_context(|state, gpu| {
        let own = state.stream_of(stream, gpu)?;
        // What is queued is done all the same.
        state.finish(state.end_of(own));
        state.streams.remove(&own);
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamSynchronize(stream: CUstream) -> CUresult {
    call_in_context(|state, gpu| {
        let own = state.stream_of(stream, gpu)?;
        state.finish(state.end_of(own));
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamWaitEvent(stream: CUstream, event: CUevent, _flags: u32) -> CUresult {
    call_in_context(|state, gpu| {
        let own = state.stream_of(stream, gpu)?;
        let event = state.events.get(&event.addr()).ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
        // One that was never recorded has happened.
        if let Some(ticket) = event.recorded {
            state.queue(own, Work::Wait(ticket))?;
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamIsCapturing(stream: CUstream, status: *mut Status) -> CUresult {
    call_in_context(|state, gpu| {
        let captures = state.streams[&state.stream_of(stream, gpu)?].capture.is_some();
        let found = if captures { Status::CU_STREAM_CAPTURE_STATUS_ACTIVE } else { Status::CU_STREAM_CAPTURE_STATUS_NONE };
        // SAFETY: the caller's place for the answer.
        unsafe { answer(status, found) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamBeginCapture_v2(stream: CUstream, _mode: i32) -> CUresult {
    call_in_context(|state, gpu| {
        let own = state.own_stream(stream, gpu)?;
        match state.streams.get_mut(&own).map(|stream| &mut stream.capture) {
            Some(capture @ None) => *capture = Some(Graph::default()),
            _ => return Err(CUresult::CUDA_ERROR_ILLEGAL_STATE),
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph) -> CUresult {
    call_in_context(|state, gpu| {
        let own = state.own_stream(stream, gpu)?;
        let captured = state.streams.get_mut(&own).and_then(|stream| stream.capture.take()).ok_or(CUresult::CUDA_ERROR_ILLEGAL_STATE)?;
        let new = state.handle();
        state.graphs.insert(new, captured);
        // SAFETY: the caller's place for the answer.
        unsafe { answer(graph, handle(new)) }
    })
}
