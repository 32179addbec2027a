//! The operations of a replay, and how the CPU and a simulated GPU run them.

use std::sync::Arc;

use kernel_cpu::Program;

use crate::kernel::Kernel;
use crate::launch::args::Region;
use crate::sim::SimGpu;
use crate::{Result, kernel::cpu, kernel::module};

/// One operation of a replay.
pub(super) enum Node {
    Kernel(KernelNode),
    /// A copy of bytes within one device.
    Copy {
        from: u64,
        to: u64,
        bytes: usize,
    },
    Fill(Fill),
}

/// A launch with all its arguments.
pub(super) struct KernelNode {
    pub(super) kernel: &'static Kernel,
    pub(super) code: Code,
    pub(super) words: Box<[u64]>,
    /// The memory of its arguments. Faults of a simulated GPU name it.
    pub(super) regions: Box<[Region]>,
    /// The number of programs along each axis.
    pub(super) grid: [u32; 3],
    /// Whether the launch may begin before the previous operation is complete.
    pub(super) is_early: bool,
}

/// The code of a kernel for one device.
pub(crate) enum Code {
    Cpu(Arc<Program>),
    Cuda(module::Loaded),
    #[cfg_attr(not(feature = "sim"), expect(dead_code, reason = "there is no simulator, so nobody makes one"))]
    Sim(crate::sim::Loaded),
}

/// `count` elements of `width` bytes, set to the low bytes of `bits`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Fill {
    pub(super) address: u64,
    pub(super) count: usize,
    pub(super) width: usize,
    pub(super) bits: u64,
}

/// The invariant that a node has code for the device of its replay.
const ELSEWHERE: &str = "a capture takes launches of its own device only";

impl Node {
    /// Returns whether both are the same kind of operation with the same code, so that only arguments differ.
    pub(super) fn takes_place_of(&self, other: &Node) -> bool {
        match (self, other) {
            (Node::Kernel(this), Node::Kernel(other)) => {
                std::ptr::eq(this.kernel, other.kernel) && this.code == other.code && this.is_early == other.is_early
            }
            (Node::Copy { .. }, Node::Copy { .. }) => true,
            (Node::Fill(this), Node::Fill(other)) => this.width == other.width,
            _ => false,
        }
    }

    /// Runs the operation on a simulated GPU, whose memory checks every access itself.
    pub(super) fn simulate(&self, gpu: SimGpu) -> Result<()> {
        match self {
            Node::Kernel(KernelNode { kernel, code: Code::Sim(loaded), words, regions, grid, .. }) => {
                gpu.run(kernel.name(), loaded, *grid, words, regions.iter().copied())
            }
            Node::Kernel(_) => unreachable!("{ELSEWHERE}"),
            Node::Copy { from, to, bytes } => gpu.sim.copy(*from, *to, *bytes),
            Node::Fill(fill) => gpu.sim.fill(fill.address, &fill.bits.to_le_bytes()[..fill.width], fill.count),
        }
    }

    /// Runs the operation on the CPU.
    ///
    /// # Safety
    /// The memory that it reads and writes is alive and of the types with which it was captured, and nothing else uses the memory that it writes.
    pub(super) unsafe fn run_on_cpu(&self) -> Result<()> {
        match self {
            Node::Kernel(KernelNode { kernel, code: Code::Cpu(program), words, grid, .. }) => {
                cpu::run(kernel.name(), program, words, *grid, false)
            }
            Node::Kernel(_) => unreachable!("{ELSEWHERE}"),
            Node::Copy { from, to, bytes } => {
                let (from, to) = (std::ptr::with_exposed_provenance(*from as usize), std::ptr::with_exposed_provenance_mut(*to as usize));
                // SAFETY: as the caller promises, both sides have that many bytes.
                unsafe { std::ptr::copy::<u8>(from, to, *bytes) };
                Ok(())
            }
            Node::Fill(Fill { address, count, width, bits }) => {
                let element = &bits.to_le_bytes()[..*width];
                let target: *mut u8 = std::ptr::with_exposed_provenance_mut(*address as usize);
                // SAFETY: as the caller promises, the memory has that many elements.
                let target = unsafe { std::slice::from_raw_parts_mut(target, count * width) };
                target.chunks_exact_mut(*width).for_each(|bytes| bytes.copy_from_slice(element));
                Ok(())
            }
        }
    }
}

/// Two nodes are equal if they are the same operation with the same arguments.
impl PartialEq for Node {
    fn eq(&self, other: &Node) -> bool {
        match (self, other) {
            (Node::Kernel(this), Node::Kernel(that)) => self.takes_place_of(other) && this.words == that.words && this.grid == that.grid,
            (Node::Copy { from, to, bytes }, Node::Copy { from: other_from, to: other_to, bytes: other_bytes }) => {
                (from, to, bytes) == (other_from, other_to, other_bytes)
            }
            (Node::Fill(this), Node::Fill(that)) => this == that,
            _ => false,
        }
    }
}

/// Two codes are equal if they are the same compiled function.
impl PartialEq for Code {
    fn eq(&self, other: &Code) -> bool {
        match (self, other) {
            (Code::Cpu(this), Code::Cpu(other)) => Arc::ptr_eq(this, other),
            (Code::Cuda(this), Code::Cuda(other)) => this.is_same(other),
            (Code::Sim(this), Code::Sim(other)) => this.is_same(other),
            _ => false,
        }
    }
}
