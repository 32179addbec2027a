//! The state of the driver, and its handles.

use std::collections::HashMap;
use std::sync::Arc;

use cudarc::driver::sys::CUresult;
use kernel_sim::{Gpu, Machine, Module};

use crate::event::Event;
use crate::function::Function;
use crate::graph::{Executable, Graph};
use crate::plant::Planted;
use crate::stream::Stream;

/// The whole state, behind one lock. A call holds the lock from its beginning to its end.
pub(crate) struct State {
    pub(crate) gpus: Vec<Arc<Machine>>,
    pub(crate) streams: HashMap<usize, Stream>,
    pub(crate) events: HashMap<usize, Event>,
    pub(crate) modules: HashMap<usize, (usize, Module)>,
    pub(crate) functions: HashMap<usize, Function>,
    pub(crate) graphs: HashMap<usize, Graph>,
    pub(crate) executables: HashMap<usize, Executable>,
    /// The planted failures.
    pub(crate) planted: Vec<Planted>,
    /// The number of failed calls. A tool such as compute-sanitizer reports each of them.
    pub(crate) failed: usize,
    /// The number of encoded tensor maps.
    pub(crate) encoded: usize,
    /// The fault that ended all work. Each later call returns it.
    pub(crate) lost: Option<CUresult>,
    /// The clock of the GPUs in microseconds. It advances when work completes.
    pub(crate) clock_us: f64,
    handles: usize,
}

/// The first handle of the null streams, of which each GPU has one.
const NULL_STREAMS: usize = 0x100;
const PER_THREAD_STREAMS: usize = 0x200;
/// The first of all other handles.
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
            encoded: 0,
            lost: None,
            clock_us: 0.0,
            handles: HANDLES,
        }
    }

    /// A new handle. Like an address, it is a multiple of 16.
    pub(crate) fn handle(&mut self) -> usize {
        self.handles += 16;
        self.handles
    }

    /// The internal handle of a stream. The null stream and the per-thread stream have a different one for each GPU.
    pub(crate) fn stream_of<T>(&self, handle: *mut T, gpu: usize) -> Result<usize, CUresult> {
        let known = match handle.addr() {
            0 | 1 => NULL_STREAMS + gpu,
            2 => PER_THREAD_STREAMS + gpu,
            handle => handle,
        };
        if self.streams.contains_key(&known) { Ok(known) } else { Err(CUresult::CUDA_ERROR_INVALID_HANDLE) }
    }

    /// The internal handle of a stream, which must belong to the thread's current GPU.
    pub(crate) fn own_stream<T>(&self, handle: *mut T, gpu: usize) -> Result<usize, CUresult> {
        let known = self.stream_of(handle, gpu)?;
        if self.streams[&known].gpu == gpu { Ok(known) } else { Err(CUresult::CUDA_ERROR_INVALID_CONTEXT) }
    }
}
