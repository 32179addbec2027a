//! The properties of GPUs from which times and occupancy are computed.

use clap::ValueEnum;
use kernel_lang::occupancy::Multiprocessor;
use kernel_lang::target::Target;
use kernel_sim::Gpu;

/// A GPU that kernels are explained for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Model {
    H200,
    H100,
    A100,
}

/// The properties of a GPU.
///
/// The bandwidth of memory and the clock are those of NVIDIA's data sheets, for the SXM cards. The bandwidth of the L2 is that of the A100's
/// whitepaper for all cards; none is published for the others. The limits of a multiprocessor are those of the CUDA C++ Programming Guide,
/// "Compute Capabilities".
#[derive(Clone, Copy, Debug)]
pub(super) struct Card {
    pub(super) name: &'static str,
    pub(super) target: Target,
    pub(super) multiprocessors: u64,
    /// Cycles per nanosecond.
    pub(super) clock_ghz: f64,
    /// Bytes per nanosecond between memory and the L2.
    pub(super) memory_gb_per_s: f64,
    /// Bytes per cycle between the L2 and all multiprocessors.
    pub(super) l2_bytes_per_clock: u64,
    /// What each multiprocessor has.
    pub(super) multiprocessor: Multiprocessor,
}

/// Bytes per cycle between the L2 and one multiprocessor.
pub(super) const L2_BYTES_PER_CLOCK_OF_ONE: u64 = 64;
/// Warps of a multiprocessor that issue an instruction in a cycle.
pub(super) const SCHEDULERS: u64 = 4;

const AMPERE: Multiprocessor = Multiprocessor::of((8, 0)).unwrap();
const HOPPER: Multiprocessor = Multiprocessor::of((9, 0)).unwrap();

impl Model {
    pub(super) fn card(self) -> Card {
        let hopper = Card {
            name: "H200",
            target: Target::SM_90A,
            multiprocessors: 132,
            clock_ghz: 1.98,
            memory_gb_per_s: 4800.0,
            l2_bytes_per_clock: 5120,
            multiprocessor: HOPPER,
        };
        match self {
            Model::H200 => hopper,
            Model::H100 => Card { name: "H100", memory_gb_per_s: 3350.0, ..hopper },
            Model::A100 => Card {
                name: "A100",
                target: Target::SM_80,
                multiprocessors: 108,
                clock_ghz: 1.41,
                memory_gb_per_s: 1555.0,
                multiprocessor: AMPERE,
                ..hopper
            },
        }
    }

    /// The simulated GPU with the same instructions.
    pub(super) fn simulated(self) -> Gpu {
        match self {
            Model::H200 | Model::H100 => Gpu::h200(),
            Model::A100 => Gpu::a100(),
        }
    }
}
