//! The capture of a thread: it records launches, copies and fills instead of running them, and refuses operations that a replay cannot repeat.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use kernel_cpu::Program;

use super::node::{Code, Fill, KernelNode, Node};
use crate::kernel::gpu::Gpu;
use crate::launch::args::{Args, Region};
use crate::{Device, Element, Error, Result, TensorView, TensorViewMut};

/// The maximum number of bytes of one copy node. A CUDA graph describes a copy as a row of a 2D region, and a row has less than 2 GiB.
const MOST_COPIED: usize = 1 << 30;

thread_local! {
    /// A plain flag, because every launch reads it.
    static IS_CAPTURING: Cell<bool> = const { Cell::new(false) };
    static CAPTURE: RefCell<Option<Capture>> = const { RefCell::new(None) };
}

/// What a launch does that tunes.
const TUNING: &str = "tune a kernel";

impl Error {
    /// Whether a kernel was to be tuned in a capture. A launch with the same arguments outside of the capture tunes it.
    pub fn is_tuning_in_capture(&self) -> bool {
        matches!(self, Error::InCapture { doing: TUNING, .. })
    }
}

/// The operations that were captured so far.
pub(super) struct Capture {
    device: Device,
    pub(super) nodes: Vec<Node>,
    pub(super) uses: Vec<Use>,
}

/// Memory that an operation uses, with the names that an error reports.
pub(super) struct Use {
    pub(super) region: Region,
    pub(super) kernel: Option<&'static str>,
}

/// An operation that a replay cannot repeat.
#[derive(Clone, Copy)]
pub(crate) enum Forbidden {
    Allocating,
    FromHost,
    ToHost,
    Waiting,
    Checked,
    Printing,
    Tuning,
    Replay,
}

/// Returns whether this thread captures.
#[inline]
pub fn is_capturing() -> bool {
    IS_CAPTURING.get()
}

/// Returns an error if this thread captures.
#[inline]
pub(crate) fn forbid(what: Forbidden) -> Result<()> {
    if is_capturing() { Err(what.error()) } else { Ok(()) }
}

impl Forbidden {
    #[cold]
    fn error(self) -> Error {
        let (doing, help) = match self {
            Forbidden::Allocating => ("allocate memory", "make tensors before the capture, and write to them in it"),
            Forbidden::FromHost => ("copy from the host", "copy before the launch of the replay, into a tensor that it reads"),
            Forbidden::ToHost => ("copy to the host", "read tensors after the launch of the replay"),
            Forbidden::Waiting => ("record or wait for events and streams", "do so before or after the launch of the replay"),
            Forbidden::Checked => ("run a `.checked()` launch", "look for mistakes outside of the capture"),
            Forbidden::Printing => {
                ("run a kernel with a `device_print!`", "print outside of the capture, or capture the kernel without it")
            }
            Forbidden::Tuning => (TUNING, "launch it once with such arguments before the capture"),
            Forbidden::Replay => ("capture or launch another replay", "do so before or after the capture"),
        };
        Error::InCapture { doing, help }
    }
}

impl Capture {
    /// Captures the operations of `work` on this device.
    pub(super) fn of(device: Device, work: impl FnOnce() -> Result<()>) -> Result<Capture> {
        /// Ends the capture, also if `work` panics.
        struct End;
        impl Drop for End {
            fn drop(&mut self) {
                IS_CAPTURING.set(false);
                CAPTURE.take();
            }
        }
        forbid(Forbidden::Replay)?;
        CAPTURE.set(Some(Capture { device, nodes: Vec::new(), uses: Vec::new() }));
        IS_CAPTURING.set(true);
        let end = End;
        work()?;
        let captured = CAPTURE.take();
        drop(end);
        Ok(captured.unwrap_or(Capture { device, nodes: Vec::new(), uses: Vec::new() }))
    }

    fn add(&mut self, device: Device, node: Node, uses: impl Iterator<Item = Use>, what: &'static str) -> Result<()> {
        same_device(device, self.device, what)?;
        self.nodes.push(node);
        // A region of 0 bytes may have any address.
        for new in uses.filter(|new| new.region.bytes > 0) {
            if !self.uses.iter().any(|known| known.region == new.region) {
                self.uses.push(new);
            }
        }
        Ok(())
    }
}

pub(super) fn same_device(device: Device, expected: Device, what: &'static str) -> Result<()> {
    if device == expected { Ok(()) } else { Err(Error::WrongDevice { what, device, expected }) }
}

fn add(device: Device, node: Node, uses: impl Iterator<Item = Use>, what: &'static str) -> Result<()> {
    CAPTURE.with_borrow_mut(|capture| match capture {
        Some(capture) => capture.add(device, node, uses, what),
        None => Ok(()),
    })
}

/// Captures a launch on the CPU.
#[cold]
pub(crate) fn capture_on_cpu<const WORDS: usize>(
    args: &Args<'_, WORDS>,
    program: Arc<Program>,
    grid: [u32; 3],
    checked: bool,
) -> Result<()> {
    if checked {
        forbid(Forbidden::Checked)?;
    }
    if args.kernel().prints() {
        forbid(Forbidden::Printing)?;
    }
    capture_launch(Device::cpu(), args, Code::Cpu(program), grid, false)
}

/// Captures a launch on a GPU, real or simulated.
#[cold]
pub(crate) fn capture_on_gpu<G: Gpu, const WORDS: usize>(
    gpu: &G,
    args: &Args<'_, WORDS>,
    loaded: &G::Loaded,
    grid: [u32; 3],
) -> Result<()> {
    let is_early = gpu.begins_early(loaded);
    capture_launch(gpu.device(), args, G::code(loaded), grid, is_early)
}

fn capture_launch<const WORDS: usize>(device: Device, args: &Args<'_, WORDS>, code: Code, grid: [u32; 3], is_early: bool) -> Result<()> {
    let kernel = args.kernel();
    let uses = args.regions().map(|region| Use { region, kernel: Some(kernel.name()) });
    let node = KernelNode { kernel, code, words: args.given().into(), regions: args.regions().collect(), grid, is_early };
    add(device, Node::Kernel(node), uses, "a captured launch")
}

/// Captures a copy within one device.
#[cold]
pub(crate) fn capture_copy<T: Element>(source: &TensorView<'_, T>, target: &TensorViewMut<'_, T>) -> Result<()> {
    if source.device() != target.device() {
        // A copy between devices may go through the host.
        return Err(Error::WrongDevice { what: "the source of a captured copy", device: source.device(), expected: target.device() });
    }
    if source.is_empty() {
        return Ok(());
    }
    let whole = size_of::<T>() * source.len();
    for start in (0..whole).step_by(MOST_COPIED) {
        let (from, to) = (source.address() + start as u64, target.address() + start as u64);
        let bytes = MOST_COPIED.min(whole - start);
        let region = |name, address, writes| Region { name, address, bytes, dtype: T::DTYPE, writes };
        let uses = [
            Use { region: region("the source of a copy", from, false), kernel: None },
            Use { region: region("the target of a copy", to, true), kernel: None },
        ];
        add(target.device(), Node::Copy { from, to, bytes }, uses.into_iter(), "a captured copy")?;
    }
    Ok(())
}

/// Captures a fill.
#[cold]
pub(crate) fn capture_fill<T: Element>(target: &TensorViewMut<'_, T>, value: T) -> Result<()> {
    if target.is_empty() {
        return Ok(());
    }
    let fill = Fill { address: target.address(), count: target.len(), width: size_of::<T>(), bits: value.bits() };
    let (name, bytes) = ("the target of a fill", fill.count * fill.width);
    let region = Region { name, address: fill.address, bytes, dtype: T::DTYPE, writes: true };
    let uses = [Use { region, kernel: None }];
    add(target.device(), Node::Fill(fill), uses.into_iter(), "a captured fill")
}
