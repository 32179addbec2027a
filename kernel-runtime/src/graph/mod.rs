//! Graphs: launches, copies and fills that are written down once and replayed by one call.
//!
//! A capture writes down what the launches of its closure would do; nothing runs, and no stream of CUDA's is put into its capturing mode, so that loading
//! PTX, compiling in process and other threads are as free as ever. A graph holds no tensor. It holds addresses, and what is done there; each launch
//! of it borrows the tensors anew, and is refused if they do not cover every address. So between two launches tensors are read, written, moved and
//! dropped as always, and what was dropped is an error of the next launch, not a dangling pointer.

mod capture;
mod cuda;
mod lent;
mod node;

use std::fmt;

pub(crate) use capture::{Forbidden, capture_copy, capture_fill, capture_on_cpu, capture_on_gpu, forbid, is_capturing};
pub use lent::{Lent, Tensors};
pub(crate) use node::Code;

use crate::device::Backend;
use crate::sim::SimGpu;
use crate::{Device, Error, Result, Stream, profile};
use capture::{Capture, Use};
use cuda::Executable;
use lent::{Item, Known};
use node::Node;

/// Launches, copies on the device and fills that run again and again, in their order, by one call: on a CUDA GPU as a CUDA graph, for a fraction of what queueing
/// each of them costs; on the CPU and on a simulated GPU one after the other, so that programs and their results are the same everywhere.
///
/// ```
/// # use kernel_runtime::{Device, Graph, Result};
/// # fn main() -> Result<()> {
/// let device = Device::default()?;
/// let x = device.tensor(&[1.0f32, 2.0])?;
/// let mut y = device.zeros::<f32>(2)?;
/// // Launches of kernels stand here just as well.
/// let mut graph = Graph::capture(device.stream(), || y.view_mut().copy_from(&x.view()))?;
/// assert_eq!(y.to_vec()?, [0.0, 0.0]); // nothing has run yet
/// graph.launch((&x, &mut y))?;
/// assert_eq!(y.to_vec()?, [1.0, 2.0]);
/// # Ok(())
/// # }
/// ```
///
/// # What is captured
/// Every launch that the closure makes on this thread, wherever in its callees, [`TensorViewMut::copy_from`](crate::TensorViewMut::copy_from) on one device, and `fill`. They run in
/// this order, whatever streams they name. Arguments are captured as they are: scalars and grids by value, tensors by their place in memory.
///
/// What a replay could not repeat is an [`Error::InCapture`](crate::Error::InCapture): to allocate, to copy from or to the host, to wait, to launch with
/// `.checked()`, a kernel that prints, to tune. An autotuned kernel runs in the configuration that was chosen for these arguments before, in this process or by a record
/// on disk; one that was never tuned is an error, as no configuration chosen blindly should be replayed a million times. Kernels that
/// are launched for the first time are compiled and loaded. Work of other libraries, and of other threads, is not captured.
///
/// A launch of an `unchecked` kernel, which is `unsafe`, is a promise for every replay.
///
/// # Other values
/// [`Graph::update`] captures the work anew, with other scalars, grids and tensors, and changes the graph in place where it has the same kernels in the same order.
#[must_use = "nothing of a graph runs until `graph.launch(..)`"]
pub struct Graph {
    stream: Stream,
    nodes: Vec<Node>,
    uses: Vec<Use>,
    /// What the last launch was given, and what of it is used: the same again need not be looked at. None before the first.
    known: Option<Vec<Known>>,
    /// Room for what a launch is given, kept so that no launch allocates.
    room: Vec<Item<'static>>,
    /// On a CUDA GPU; none if it could not be made of these nodes yet.
    executable: Option<Executable>,
}

/// What [`Graph::update`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Update {
    /// The graph has the same shape as before; so many of its launches, copies and fills were given other arguments or grids.
    InPlace {
        /// How many.
        changed: usize,
    },
    /// The graph was made anew: it has other launches, or in another order.
    Rebuilt,
}

impl Graph {
    /// Captures what `work` launches, for launches on this stream. Nothing of it runs.
    ///
    /// # Errors
    /// What `work` gives, [`Error::InCapture`](crate::Error::InCapture) for what cannot be captured, [`Error::WrongDevice`](crate::Error::WrongDevice) for work on another device than the
    /// stream's, or what the driver says. A capture ends with its closure, also if that fails or panics.
    pub fn capture(stream: &Stream, work: impl FnOnce() -> Result<()>) -> Result<Graph> {
        let Capture { nodes, uses, .. } = Capture::of(stream.device(), work)?;
        let executable = executable(stream.device(), &nodes)?;
        Ok(Graph { stream: stream.clone(), nodes, uses, known: None, room: Vec::new(), executable })
    }

    /// Runs all that was captured, on the stream of the capture. On a GPU it is queued, in order with all other uses of the tensors, and allocates nothing.
    ///
    /// `tensors` are those that the captured work reads and writes: `(&x, &mut y)`, in any order, more of them if you like; see [`Tensors`]. They are borrowed as
    /// the arguments of any launch are:
    ///
    /// ```compile_fail,E0502
    /// # use kernel_runtime::{Device, Graph, Result};
    /// # fn main() -> Result<()> {
    /// # let device = Device::cpu();
    /// let mut y = device.zeros::<f32>(2)?;
    /// let mut graph = Graph::capture(device.stream(), || y.fill(1.0))?;
    /// let seen = y.view();
    /// graph.launch(&mut y)?; // error: `y` is borrowed by `seen`, which is used later
    /// println!("{seen:?}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::NotLent`](crate::Error::NotLent) if memory that is read or written is not among them, or only to be read; and what launches give.
    pub fn launch<'t>(&mut self, tensors: impl Tensors<'t>) -> Result<()> {
        let stream = self.stream.clone();
        self.launch_on(&stream, tensors)
    }

    /// [`Graph::launch`] on another stream of the same device. A graph runs once at a time: a launch waits for the one before, whatever their streams.
    ///
    /// # Errors
    /// As [`Graph::launch`], and [`Error::WrongDevice`](crate::Error::WrongDevice).
    pub fn launch_on<'t>(&mut self, stream: &Stream, tensors: impl Tensors<'t>) -> Result<()> {
        forbid(Forbidden::Graph)?;
        let _span = profile::span("graph");
        capture::same_device(stream.device(), self.device(), "this stream")?;
        let mut lent = Lent::with(lent::emptied(std::mem::take(&mut self.room)));
        tensors.lend(&mut lent);
        let outcome = self.run(stream, lent.items());
        self.room = lent::emptied(lent.into_items());
        outcome
    }

    /// Captures `work` instead, and says how much of the graph could stay. Launches that are queued already run as they were.
    ///
    /// # Errors
    /// As [`Graph::capture`]. Whatever fails, the graph is as it was.
    pub fn update(&mut self, work: impl FnOnce() -> Result<()>) -> Result<Update> {
        let Capture { nodes, uses, .. } = Capture::of(self.device(), work)?;
        let same_shape = nodes.len() == self.nodes.len() && nodes.iter().zip(&self.nodes).all(|(new, old)| new.takes_place_of(old));
        let changed = |place: &usize| !same_shape || nodes[*place] != self.nodes[*place];
        let changed: Vec<usize> = (0..nodes.len()).filter(changed).collect();
        // One that takes some of the new nodes and not all is given up: should there be no other either, the next launch makes one of the old nodes.
        let in_place = self.executable.take_if(|_| same_shape);
        let in_place =
            in_place.filter(|executable| changed.iter().all(|&place| matches!(executable.replace(place, &nodes[place]), Ok(true))));
        let stays = same_shape && (in_place.is_some() || !self.device().is_cuda());
        let executable = if in_place.is_some() { in_place } else { executable(self.device(), &nodes)? };
        *self = Graph { nodes, uses, known: None, executable, stream: self.stream.clone(), room: std::mem::take(&mut self.room) };
        Ok(if stays { Update::InPlace { changed: changed.len() } } else { Update::Rebuilt })
    }

    /// How many launches, copies and fills it has.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Where it runs.
    pub fn device(&self) -> Device {
        self.stream.device()
    }

    fn run(&mut self, stream: &Stream, items: &[Item<'_>]) -> Result<()> {
        let device = self.device();
        let known = match self.known.take() {
            Some(known) if known.iter().eq(items.iter().map(Item::known)) => known,
            _ => lent::cover(&self.uses, items, device)?,
        };
        let known = &*self.known.insert(known);
        match (device.backend(), stream.queue()) {
            (Backend::Cuda(cuda), Some(stream)) => {
                let executable = match &mut self.executable {
                    Some(executable) => executable,
                    none => none.insert(Executable::new(cuda, &self.nodes)?),
                };
                executable.launch(cuda, stream, items, known)
            }
            (Backend::Sim(sim), _) => {
                let gpu = SimGpu { device, sim };
                self.nodes.iter().try_for_each(|node| node.simulate(gpu))
            }
            // SAFETY: `cover` has seen that all memory that the nodes use is among the items, which are borrowed until this returns, mutably where it is written.
            (Backend::Cpu, _) => self.nodes.iter().try_for_each(|node| unsafe { node.run_on_cpu() }),
            (Backend::Cuda(_), None) => Err(Error::NoStream { device }),
        }
    }
}

/// What the driver runs; none on the devices without one.
fn executable(device: Device, nodes: &[Node]) -> Result<Option<Executable>> {
    match device.backend() {
        Backend::Cuda(cuda) => Executable::new(cuda, nodes).map(Some),
        _ => Ok(None),
    }
}

/// How many nodes it has, and where it runs.
impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph").field("device", &self.device()).field("nodes", &self.nodes.len()).finish_non_exhaustive()
    }
}
