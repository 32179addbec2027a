//! Streams: creation, synchronisation and capture.

use std::collections::VecDeque;

use cudarc::driver::sys::{CUevent, CUgraph, CUresult, CUstream, CUstreamCaptureStatus as Status};

use crate::call::{answer, call_in_context, handle};
use crate::graph::Graph;
use crate::state::State;
use crate::work::{Ticket, Work};

/// The queue of a stream.
pub(crate) struct Stream {
    pub(crate) gpu: usize,
    pub(crate) queue: VecDeque<Work>,
    /// The number of queued operations; `done` is the number of completed ones.
    queued: u64,
    pub(crate) done: u64,
    /// The captured graph, if the stream is in capture.
    pub(crate) capture: Option<Graph>,
    /// The stream whose capture this stream has joined by waiting for an event of that capture.
    joined: Option<usize>,
}

/// The maximum number of operations in the queue.
const LENGTH: usize = 1024;

impl Stream {
    pub(crate) fn new(gpu: usize) -> Stream {
        Stream { gpu, queue: VecDeque::new(), queued: 0, done: 0, capture: None, joined: None }
    }

    pub(crate) fn push(&mut self, work: Work, own: usize) -> Ticket {
        self.queue.push_back(work);
        self.queued += 1;
        self.end(own)
    }

    /// The position after everything that is queued now.
    pub(crate) fn end(&self, own: usize) -> Ticket {
        Ticket { stream: own, count: self.queued }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.queue.len() > LENGTH
    }
}

impl State {
    /// The position after everything that is queued on a stream now.
    pub(crate) fn end_of(&self, stream: usize) -> Ticket {
        self.streams[&stream].end(stream)
    }

    /// The stream whose capture receives the operations of this stream, if any.
    pub(crate) fn capture_of(&self, stream: usize) -> Option<usize> {
        let own = self.streams.get(&stream)?;
        if own.capture.is_some() { Some(stream) } else { own.joined }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamCreate(stream: *mut CUstream, _flags: u32) -> CUresult {
    call_in_context(|state, gpu| {
        let new = state.handle();
        state.streams.insert(new, Stream::new(gpu));
        // SAFETY: the caller passes a pointer that is null or valid for writes.
        unsafe { answer(stream, handle(new)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamCreateWithPriority(stream: *mut CUstream, flags: u32, _priority: i32) -> CUresult {
    // SAFETY: the caller guarantees valid pointers, as the driver API requires.
    unsafe { cuStreamCreate(stream, flags) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamDestroy_v2(stream: CUstream) -> CUresult {
    call_in_context(|state, gpu| {
        let own = state.stream_of(stream, gpu)?;
        // Queued work is completed first.
        state.finish(state.end_of(own));
        state.streams.remove(&own);
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamSynchronize(stream: CUstream) -> CUresult {
    call_in_context(|state, gpu| {
        state.may_fail("cuStreamSynchronize")?;
        let own = state.stream_of(stream, gpu)?;
        if state.capture_of(own).is_some() {
            return Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        }
        state.finish(state.end_of(own));
        Ok(())
    })
}

/// The capture mode has no effect: a capture forbids nothing to other threads.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuThreadExchangeStreamCaptureMode(_mode: *mut i32) -> CUresult {
    CUresult::CUDA_SUCCESS
}

/// A wait for an event of a capture joins the capture.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamWaitEvent(stream: CUstream, event: CUevent, _flags: u32) -> CUresult {
    call_in_context(|state, gpu| {
        state.may_fail("cuStreamWaitEvent")?;
        let own = state.stream_of(stream, gpu)?;
        let event = state.events.get(&event.addr()).ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
        if let Some(origin) = event.captured {
            if state.capture_of(own).is_none_or(|known| known == origin) {
                if own != origin
                    && let Some(stream) = state.streams.get_mut(&own)
                {
                    stream.joined = Some(origin);
                }
                return Ok(());
            }
            return Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_MERGE);
        }
        // An event that was never recorded counts as complete.
        if let Some(ticket) = event.recorded {
            if state.capture_of(own).is_some() {
                return Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
            }
            state.queue(own, Work::Wait(ticket))?;
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamIsCapturing(stream: CUstream, status: *mut Status) -> CUresult {
    call_in_context(|state, gpu| {
        let captures = state.capture_of(state.stream_of(stream, gpu)?).is_some();
        let found = if captures { Status::CU_STREAM_CAPTURE_STATUS_ACTIVE } else { Status::CU_STREAM_CAPTURE_STATUS_NONE };
        // SAFETY: the caller passes a pointer that is null or valid for writes.
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
        state.streams.values_mut().filter(|stream| stream.joined == Some(own)).for_each(|stream| stream.joined = None);
        state.events.values_mut().filter(|event| event.captured == Some(own)).for_each(|event| event.captured = None);
        let new = state.handle();
        state.graphs.insert(new, captured);
        // SAFETY: the caller passes a pointer that is null or valid for writes.
        unsafe { answer(graph, handle(new)) }
    })
}
