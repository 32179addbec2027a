//! The cycles of a multiprocessor that accesses and arithmetic take under a layout.
//!
//! Where accesses are aligned, a component moves the same bytes under every layout, and takes as long as the memory. An access that is not aligned moves fewer elements
//! at once than a thread has neighbours. If a thread has 4 neighbours of 4 bytes, each of its 4 instructions touches the same 4 lines of the L1:
//!
//! | neighbours in a thread | instructions | lines of each | wavefronts |
//! |---:|---:|---:|---:|
//! | 4 | 4 | 4 | 16 |
//! | 2 | 4 | 2 | 8 |
//! | 1 | 4 | 1 | 4 |
//!
//! One such load takes less time than the memory. Those of a stencil take more. With fewer neighbours, more lanes compute what is the same for a run of neighbours,
//! and some of it moves between lanes, so all of these count.

use rustc_hash::FxHashMap;

use crate::ir::{Function, Op, Value};
use crate::layout::Layout;
use crate::target::{Asked, LINE, Target};

use super::access_cost::vector;
use super::accesses::{Width, Wish};
use super::components::Components;
use super::scatter;

/// The bytes that the memory moves for a multiprocessor in a cycle, in which the L1 handles a wavefront: 4.8 TB/s for 132 of them at 1.98 GHz (H200).
const BYTES_IN_A_CYCLE: u32 = 18;

/// The instructions that a multiprocessor issues in a cycle.
const ISSUED_IN_A_CYCLE: u32 = 4;

/// The cycles that a warp waits at the barrier of a convert, while others run.
const WAIT: u32 = 4;

/// What the components do.
pub(super) struct Work<'w> {
    pub(super) wishes: &'w [Wish],
    /// Whether the tiles of each component are scattered if their layout follows from that of a larger tile.
    pub(super) is_scattered: Vec<bool>,
    /// The number of arithmetic ops on the tiles of each component.
    arithmetic: Vec<u32>,
    lanes: u32,
}

impl Work<'_> {
    pub(super) fn of<'w>(func: &Function, components: &mut Components, wishes: &'w [Wish], target: &Asked) -> Work<'w> {
        let mut arithmetic = vec![0; func.value_count()];
        func.for_each_inst(func.body, &mut |inst| {
            let data = func.inst(inst);
            let is_arithmetic =
                matches!(data.op, Op::Unary { .. } | Op::Binary { .. } | Op::Compare { .. } | Op::Select { .. } | Op::Fma { .. });
            for result in data.results.iter().filter(|result| is_arithmetic && func.ty(**result).is_tile()) {
                arithmetic[components.find(*result)] += 1;
            }
        });
        Work { wishes, is_scattered: scatter::components(func, components), arithmetic, lanes: target.ask(Target::warp_size) }
    }

    /// About the cycles that the accesses and the arithmetic of a component take for a warp.
    pub(super) fn cycles(&self, component: usize, layout: &Layout) -> u32 {
        let arithmetic = self.arithmetic[component] * layout.registers_per_thread() / ISSUED_IN_A_CYCLE;
        self.wavefronts(component, layout) + arithmetic
    }

    /// Do the accesses of a component take longer than the memory, because some are not aligned?
    pub(super) fn outlasts_memory(&self, component: usize, layout: &Layout) -> bool {
        let wish = &self.wishes[component];
        let is_narrow =
            |access: &Width| access.axis.is_some_and(|axis| vector(access, layout) < layout.contiguous_per_thread(axis).elements());
        let mut tensors: Vec<(Value, u32)> = wish.accesses.iter().map(|access| (access.tensor, access.bytes)).collect();
        tensors.sort_unstable();
        tensors.dedup();
        let bytes: u32 = tensors.iter().map(|(_, bytes)| self.lanes * layout.registers_per_thread() * bytes).sum();
        fastest(wish).any(is_narrow) && self.wavefronts(component, layout) * BYTES_IN_A_CYCLE > bytes
    }

    /// The wavefronts of the accesses for a warp: one an instruction for each line between its first lane and its last one.
    fn wavefronts(&self, component: usize, layout: &Layout) -> u32 {
        let lines = |access: &Width| {
            access.axis.map_or(1, |axis| (self.lanes * layout.contiguous_per_thread(axis).elements() * access.bytes).div_ceil(LINE))
        };
        let instructions = |access: &Width| (layout.registers_per_thread() / vector(access, layout)).max(1);
        fastest(&self.wishes[component]).map(|access| instructions(access) * lines(access)).sum()
    }
}

/// The accesses of a component without those of slower versions: there are wider ones to the same tensor.
fn fastest(wish: &Wish) -> impl Iterator<Item = &Width> {
    let mut widest: FxHashMap<Value, u32> = FxHashMap::default();
    for access in &wish.accesses {
        let vector = widest.entry(access.tensor).or_default();
        *vector = access.vector.max(*vector);
    }
    wish.accesses.iter().filter(move |access| access.vector == widest[&access.tensor])
}

/// About the cycles of a convert through shared memory, for a warp: each element is written and read.
pub(super) fn of_convert(from: &Layout, to: &Layout) -> u32 {
    from.registers_per_thread() + to.registers_per_thread() + WAIT
}
