//! What the driver knows.

use std::collections::HashMap;
use std::sync::Arc;

use cudarc::driver::sys::CUresult;
use kernel_sim::{Gpu, Machine, Module};

use crate::event::Event;
use crate::function::Function;
use crate::graph::{Executable, Graph};
use crate::plant::Planted;
use crate::stream::Stream;

/// Everything, behind one lock: a call has it from its beginning to its end.
pub(crate) struct State {
    pub(crate) gpus: Vec<Arc<Machine>>,
    pub(crate) streams: HashMap<usize, Stream>,
    pub(crate) events: HashMap<usize, Event>,
    pub(crate) modules: HashMap<usize, (usize, Module)>,
    pub(crate) functions: HashMap<usize, Function>,
    pub(crate) graphs: HashMap<usize, Graph>,
    pub(crate) executables: HashMap<usize, Executable>,
    /// Calls that are to fail, because a test wants to see what then.
    pub(crate) planted: Vec<Planted>,
    /// Calls that have failed. A tool such as compute-sanitizer reports each.
    pub(crate) failed: usize,
    /// The fault that ended everything: each later call returns it.
    pub(crate) lost: Option<CUresult>,
    /// Of the GPUs, in microseconds: it moves when work is done.
    pub(crate) clock_us: f64,
    handles: usize,
}

/// Where the handles of streams that nobody makes begin: one for each GPU.
const NULL_STREAMS: usize = 0x100;
const PER_THREAD_STREAMS: usize = 0x200;
/// Where all other handles begin.
const HANDLES: usize = 0x1000;

impl State {
    pub(crate) fn new() -> State {
        let count = std::env::var("SIM_DRIVER_GPUS").ok().and_then(|count| count.parse().ok()).unwrap_or(2);
        let gpus: Vec<_> = (0..count).map(|_| Arc::new(Machine::new(Gpu::h200()))).collect();
        let implicit = |base: usize| (0..count).map(move |gpu| (base + gpu, Stream::new(gpu)));
        State {
            gpus,
            streams: implicit(NULL_STREAMS).chain(implicit(PER_THREAD_STREAMS)).collect(),
            events: HashMap::new(),
            modules: HashMap::new(),
            functions: HashMap::new(),
            graphs: HashMap::new(),
            executables: HashMap::new(),
            planted: Vec::new(),
            failed: 0,
            lost: None,
            clock_us: 0.0,
            handles: HANDLES,
        }
    }

    /// A handle that nobody has. It is a multiple of 16, as an address would be.
    pub(crate) fn handle(&mut self) -> usize {
        self.handles += 16;
        self.handles
    }

    /// The handle by which a stream is known here: the null stream and the per-thread one are others for each GPU.
    pub(crate) fn stream_of<T>(&self, handle: *mut T, gpu: usize) -> Result<usize, CUresult> {
        let known = match handle.addr() {
            0 | 1 => NULL_STREAMS + gpu,
            2 => PER_THREAD_STREAMS + gpu,
            handle => handle,
        };
        if self.streams.contains_key(&known) { Ok(known) } else { Err(CUresult::CUDA_ERROR_INVALID_HANDLE) }
    }

    /// The stream, which must be of the thread's own GPU.
    pub(crate) fn own_stream<T>(&self, handle: *mut T, gpu: usize) -> Result<usize, CUresult> {
        let known = self.stream_of(handle, gpu)?;
        if self.streams[&known].gpu == gpu { Ok(known) } else { Err(CUresult::CUDA_ERROR_INVALID_CONTEXT) }
    }
}
