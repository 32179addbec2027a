//! Replays: launches, copies and fills that are captured once and run again by one call.
//!
//! A capture records what the launches of its closure would do. Nothing runs, and no CUDA stream enters its capturing mode, so loading PTX, compiling in
//! process and other threads work as before. A replay owns no tensor: it holds addresses and operations. Each launch of the replay borrows the tensors
//! again, and fails if they do not cover every address. Between two launches the caller may read, write, move and drop the tensors; the next launch
//! reports a dropped tensor as an error, and never uses a dangling pointer.

mod capture;
mod cuda;
mod lent;
mod node;

use std::fmt;

pub use capture::is_capturing;
pub(crate) use capture::{Forbidden, capture_copy, capture_fill, capture_on_cpu, capture_on_gpu, forbid};
pub use lent::{Lent, Tensors};
pub(crate) use node::Code;

use crate::device::Backend;
use crate::sim::SimGpu;
use crate::{Device, Error, Result, Stream, profile};
use capture::{Capture, Use};
use cuda::Executable;
use lent::{Item, Known};
use node::Node;

/// A captured sequence of launches, device copies and fills that one call runs again, in order.
///
/// On a CUDA GPU the sequence is a CUDA graph, whose launch costs a fraction of queueing each operation. On the CPU and on a simulated GPU the
/// operations run one after the other, with the same results.
///
/// ```
/// # use kernel_runtime::{Device, Replay, Result};
/// # fn main() -> Result<()> {
/// let device = Device::default()?;
/// let x = device.tensor(&[1.0f32, 2.0])?;
/// let mut y = device.zeros::<f32>(2)?;
/// // Launches of kernels stand here just as well.
/// let mut replay = Replay::capture(device.stream(), || y.view_mut().copy_from(&x.view()))?;
/// assert_eq!(y.to_vec()?, [0.0, 0.0]); // nothing has run yet
/// replay.launch((&x, &mut y))?;
/// assert_eq!(y.to_vec()?, [1.0, 2.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Captured operations
/// A capture records every launch that the closure and its callees make on this thread, every
/// [`TensorViewMut::copy_from`](crate::TensorViewMut::copy_from) within one device, and every `fill`. They run in this order, whatever streams they
/// name. Arguments are captured as they are: scalars and grids by value, tensors by address.
///
/// An operation that a replay cannot repeat is an [`Error::InCapture`](crate::Error::InCapture):
///
/// - to allocate a tensor,
/// - to copy from or to the host,
/// - to record or wait for events and streams,
/// - to launch with `.checked()`, or a kernel that prints,
/// - to tune,
/// - to capture or launch another replay.
///
/// An autotuned kernel runs in the configuration that was chosen for these arguments earlier, in this process or by a record on disk. A kernel that
/// was never tuned for them is an error, because no untested configuration should be replayed many times. Kernels that are launched for the first
/// time are compiled and loaded. The work of other libraries, and of other threads, is not captured.
///
/// The caller of an `unchecked` kernel, whose launch is `unsafe`, gives its guarantee for every launch of the replay.
///
/// # Updates
/// [`Replay::update`] captures the work again, with other scalars, grids and tensors. If the kernels and their order are the same, it changes the
/// replay in place.
#[must_use = "nothing of a replay runs until `replay.launch(..)`"]
pub struct Replay {
    stream: Stream,
    nodes: Vec<Node>,
    uses: Vec<Use>,
    /// The tensors of the last launch and how the replay uses them: the same tensors need no new check. `None` before the first launch.
    known: Option<Vec<Known>>,
    /// An empty vector for the tensors of a launch, kept so that no launch allocates.
    room: Vec<Item<'static>>,
    /// The graph of a CUDA GPU; `None` if it could not be made of these nodes yet.
    executable: Option<Executable>,
}

/// The result of [`Replay::update`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Update {
    /// The replay has the same structure as before. Some of its launches, copies and fills were given other arguments or grids.
    InPlace {
        /// The number of these operations.
        changed: usize,
    },
    /// The replay was rebuilt: it has other operations, or in another order, or its graph could not be changed in place.
    Rebuilt,
}

impl Replay {
    /// Captures the operations of `work`, for launches on this stream. None of them runs.
    ///
    /// # Errors
    /// The error of `work`, [`Error::InCapture`](crate::Error::InCapture) for an operation that cannot be captured,
    /// [`Error::WrongDevice`](crate::Error::WrongDevice) for work on another device than the stream's, or a CUDA driver error. The capture ends with
    /// the closure, also if the closure fails or panics.
    pub fn capture(stream: &Stream, work: impl FnOnce() -> Result<()>) -> Result<Replay> {
        let Capture { nodes, uses, .. } = Capture::of(stream.device(), work)?;
        let executable = executable(stream.device(), &nodes)?;
        Ok(Replay { stream: stream.clone(), nodes, uses, known: None, room: Vec::new(), executable })
    }

    /// Runs all captured operations, on the stream of the capture. On a GPU the launch is queued, ordered with all other uses of the tensors, and
    /// allocates nothing.
    ///
    /// `tensors` are the tensors that the captured work reads and writes: `(&x, &mut y)`, in any order. They may include more tensors; see
    /// [`Tensors`]. They are borrowed like the arguments of any launch:
    ///
    /// ```compile_fail,E0502
    /// # use kernel_runtime::{Device, Replay, Result};
    /// # fn main() -> Result<()> {
    /// # let device = Device::cpu();
    /// let mut y = device.zeros::<f32>(2)?;
    /// let mut replay = Replay::capture(device.stream(), || y.fill(1.0))?;
    /// let seen = y.view();
    /// replay.launch(&mut y)?; // error: `y` is borrowed by `seen`, which is used later
    /// println!("{seen:?}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::NotLent`](crate::Error::NotLent) if the work uses memory that is not among `tensors`, or writes memory that is lent only for reading;
    /// and the errors of launches.
    pub fn launch<'t>(&mut self, tensors: impl Tensors<'t>) -> Result<()> {
        let stream = self.stream.clone();
        self.launch_on(&stream, tensors)
    }

    /// [`Replay::launch`] on another stream of the same device. Only one launch of a replay runs at a time: a launch waits for the previous one,
    /// whatever their streams.
    ///
    /// # Errors
    /// Those of [`Replay::launch`], and [`Error::WrongDevice`](crate::Error::WrongDevice).
    pub fn launch_on<'t>(&mut self, stream: &Stream, tensors: impl Tensors<'t>) -> Result<()> {
        forbid(Forbidden::Replay)?;
        let _span = profile::span("replay");
        capture::same_device(stream.device(), self.device(), "this stream")?;
        let mut lent = Lent::with(lent::emptied(std::mem::take(&mut self.room)));
        tensors.lend(&mut lent);
        let outcome = self.run(stream, lent.items());
        self.room = lent::emptied(lent.into_items());
        outcome
    }

    /// Captures `work`, and replaces the operations of the replay. Returns whether the replay was changed in place. Launches that are already queued
    /// run unchanged.
    ///
    /// # Errors
    /// Those of [`Replay::capture`]. On any error the replay is as it was.
    pub fn update(&mut self, work: impl FnOnce() -> Result<()>) -> Result<Update> {
        let Capture { nodes, uses, .. } = Capture::of(self.device(), work)?;
        let same_shape = nodes.len() == self.nodes.len() && nodes.iter().zip(&self.nodes).all(|(new, old)| new.takes_place_of(old));
        let changed = |index: &usize| !same_shape || nodes[*index] != self.nodes[*index];
        let changed: Vec<usize> = (0..nodes.len()).filter(changed).collect();
        // A graph that accepts only some of the new nodes is dropped. If no new graph can be made either, the next launch makes one of the old nodes.
        let in_place = self.executable.take_if(|_| same_shape);
        let in_place =
            in_place.filter(|executable| changed.iter().all(|&index| matches!(executable.replace(index, &nodes[index]), Ok(true))));
        let stays = same_shape && (in_place.is_some() || !self.device().is_cuda());
        let executable = if in_place.is_some() { in_place } else { executable(self.device(), &nodes)? };
        *self = Replay { nodes, uses, known: None, executable, stream: self.stream.clone(), room: std::mem::take(&mut self.room) };
        Ok(if stays { Update::InPlace { changed: changed.len() } } else { Update::Rebuilt })
    }

    /// The number of launches, copies and fills.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns whether the replay has no operations.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The device on which the replay runs.
    pub fn device(&self) -> Device {
        self.stream.device()
    }

    fn run(&mut self, stream: &Stream, items: &[Item<'_>]) -> Result<()> {
        let known = match self.known.take() {
            Some(known) if known.iter().eq(items.iter().map(Item::known)) => known,
            _ => lent::cover(&self.uses, items, self.device())?,
        };
        // SAFETY: `cover` has checked that all memory that the nodes use is among the items. These are borrowed until this function returns, mutably
        // if written.
        let outcome = unsafe { self.queue(stream, items, &known) };
        self.known = Some(known);
        outcome
    }

    /// [`Replay::launch`] without a check of the tensors, for tuning.
    ///
    /// # Safety
    /// The caller has borrowed all tensors that the work uses, mutably if it writes them. The stream of the capture waits for all earlier uses of them,
    /// and the caller synchronizes it before the borrows end.
    pub(crate) unsafe fn launch_borrowed(&mut self) -> Result<()> {
        let stream = self.stream.clone();
        // SAFETY: by the contract of this function.
        unsafe { self.queue(&stream, &[], &[]) }
    }

    /// Queues the operations on a GPU, ordered with other uses of the items; runs them on other devices.
    ///
    /// # Safety
    /// All memory that the nodes use belongs to items, which are borrowed, or the caller of [`Replay::launch_borrowed`] has borrowed it.
    unsafe fn queue(&mut self, stream: &Stream, items: &[Item<'_>], known: &[Known]) -> Result<()> {
        let device = self.device();
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
            // SAFETY: by the contract of this function.
            (Backend::Cpu, _) => self.nodes.iter().try_for_each(|node| unsafe { node.run_on_cpu() }),
            (Backend::Cuda(_), None) => Err(Error::NoStream { device }),
        }
    }
}

/// The graph of a CUDA GPU; `None` on other devices.
fn executable(device: Device, nodes: &[Node]) -> Result<Option<Executable>> {
    match device.backend() {
        Backend::Cuda(cuda) => Executable::new(cuda, nodes).map(Some),
        _ => Ok(None),
    }
}

/// Shows the device and the number of nodes.
impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay").field("device", &self.device()).field("nodes", &self.nodes.len()).finish_non_exhaustive()
    }
}
