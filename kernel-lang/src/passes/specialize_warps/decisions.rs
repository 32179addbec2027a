//! The report about a version with roles: the instruction of each product, the copy of each block, and the resources of a CTA.

use crate::analysis::blocks::Extent;
use crate::analysis::polynomial::Polynomial;
use crate::dtype::Dtype;
use crate::ir::{Function, Inst, Op, Value};
use crate::layout::{BLOCK_ALIGNMENT, STAGED_ROWS, STAGING_BYTES, SharedBlock};
use crate::location::Loc;
use crate::schedule::{RoleRegisters, Schedule};

use super::obstacle::StoreObstacle;
use super::plan::{Copied, Plan, Stored};
use super::programs;

/// The rows of a warpgroup's instruction.
const ROWS: u32 = 64;
/// The bytes of an operand's row that an instruction multiplies.
const DEPTH_BYTES: u32 = 32;

/// What the version with roles of a kernel does. Values are those of the kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct Decisions {
    /// The products, in the order of the ops.
    pub products: Vec<Product>,
    /// The loads and stores that are copies of blocks, in the order of the ops.
    pub copies: Vec<BlockCopy>,
    /// The stores of what products give that are no copies of blocks, with the reasons.
    pub usual_stores: Vec<(Loc, StoreObstacle)>,
    /// The rings.
    pub rings: Vec<Ring>,
    /// The shared memory through which warps store blocks, in bytes.
    pub staging_bytes: u32,
    /// The shared memory of a CTA in bytes, with that of exchanges.
    pub shared_bytes: u32,
    /// The threads that multiply and store.
    pub consumers: u32,
    /// The registers of a thread.
    pub registers: RoleRegisters,
    /// The CTAs that a multiprocessor runs at the same time.
    pub workers: u32,
    /// Workers take programs in groups of so many along the first axis of the grid.
    pub group: u32,
}

/// A product and its instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Product {
    /// The `dot`.
    pub loc: Loc,
    /// The rows and columns of the result, and the terms of each sum.
    pub tile: [u32; 3],
    /// The same of one instruction, of the transposed product if the tile has few rows.
    pub instruction: [u32; 3],
    /// The type of the operands.
    pub dtype: Dtype,
    /// Does the instruction take its first operand from registers?
    pub from_registers: bool,
}

/// A load or store that is a copy of a block between a tensor and shared memory, by a tensor map.
#[derive(Clone, PartialEq, Debug)]
pub struct BlockCopy {
    /// The load or store.
    pub loc: Loc,
    /// The tensor: a parameter of the kernel.
    pub tensor: Value,
    /// The type of an element.
    pub dtype: Dtype,
    /// Is it a store?
    pub is_store: bool,
    /// The elements that an instruction copies along each axis, the contiguous one first.
    pub block: [u32; 2],
    /// The bytes inside of which chunks of 16 bytes are permuted.
    pub swizzle: u32,
    /// The instructions for a tile of the program.
    pub instructions: u32,
    /// The element of the tensor from which blocks count.
    pub offset: Polynomial,
    /// The distance of rows in the tensor, in elements.
    pub row_stride: Polynomial,
    /// The distance of matrices, if the blocks are of several.
    pub matrix_stride: Option<Polynomial>,
    /// The elements of a row, if the mask states them.
    pub row: Option<Polynomial>,
}

/// A ring of slots in shared memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ring {
    /// The first product that reads a slot.
    pub loc: Loc,
    /// The slots.
    pub slots: u32,
    /// The bytes of a slot.
    pub slot_bytes: u32,
}

impl Decisions {
    pub(super) fn of(func: &Function, plan: &Plan, schedule: Schedule) -> Decisions {
        let rings = plan.rings.iter().map(|ring| Ring {
            loc: ring.loc,
            slots: ring.slots,
            slot_bytes: ring.members.iter().map(|load| plan.loads[load].shared.bytes().next_multiple_of(BLOCK_ALIGNMENT)).sum(),
        });
        let insts = func.all_insts();
        Decisions {
            products: insts.iter().filter_map(|inst| product(func, plan, *inst)).collect(),
            copies: insts.iter().filter_map(|inst| copy(func, plan, *inst, schedule)).collect(),
            usual_stores: plan.usual_stores.iter().map(|(store, why)| (func.inst(*store).loc, *why)).collect(),
            rings: rings.collect(),
            staging_bytes: if plan.stores.is_empty() { 0 } else { schedule.num_warps * STAGING_BYTES },
            consumers: schedule.threads(),
            // The backend knows them.
            shared_bytes: 0,
            registers: schedule.role_registers(1),
            workers: 1,
            group: programs::group(plan.tile),
        }
    }
}

impl Decisions {
    /// Takes over what the backend decides: the shared memory of a CTA, and the CTAs that a multiprocessor runs at the same time.
    pub(crate) fn set_resources(&mut self, shared_bytes: u32, workers: u32, schedule: Schedule) {
        self.shared_bytes = shared_bytes;
        self.workers = workers;
        self.registers = schedule.role_registers(workers);
    }
}

fn product(func: &Function, plan: &Plan, inst: Inst) -> Option<Product> {
    let planned = plan.products.get(&inst)?;
    let Op::Dot { a, .. } = func.inst(inst).op else { return None };
    let dtype = func.ty(a).dtype();
    let [rows, columns, _] = planned.tile;
    let across = if planned.swapped { rows } else { columns };
    let instruction = [ROWS, across, DEPTH_BYTES / dtype.bytes() as u32];
    let from_registers = planned.blocks.contains(&None);
    Some(Product { loc: func.inst(inst).loc, tile: planned.tile, instruction, dtype, from_registers })
}

fn copy(func: &Function, plan: &Plan, inst: Inst, schedule: Schedule) -> Option<BlockCopy> {
    let is_store = plan.stores.contains_key(&inst);
    let (block, shared, instructions) = match (plan.loads.get(&inst), plan.stores.get(&inst), &func.inst(inst).op) {
        (Some(Copied { block, shared, .. }), ..) => (block, *shared, shared.atoms()),
        (_, Some(Stored { block, swapped }), Op::Store { value, .. }) => {
            let extents = func.ty(*value).extents();
            let extents = [extents[0] as u32, extents[1] as u32];
            let staged = SharedBlock::staged(extents, func.ty(*value).dtype().bytes() as u32, *swapped)?;
            let (divided, along) = (usize::from(*swapped), usize::from(!*swapped));
            let groups = extents[divided].div_ceil(STAGED_ROWS * schedule.num_warps);
            (block, staged, groups * schedule.num_warps * (extents[along] / staged.shape[along]))
        }
        _ => return None,
    };
    let (along, across) = (block.contiguous, 1 - block.contiguous);
    Some(BlockCopy {
        loc: func.inst(inst).loc,
        tensor: block.base,
        dtype: func.ty(block.base).dtype(),
        is_store,
        block: [shared.row_elements(), shared.rows()],
        swizzle: shared.row_bytes(),
        instructions,
        offset: block.offset.clone(),
        row_stride: block.axes[across].stride.clone(),
        matrix_stride: block.axes.get(2).map(|axis| axis.stride.clone()),
        row: match &block.axes[along].extent {
            Extent::Limit(limit) => Some(limit.clone()),
            Extent::LastBlock(_) => None,
        },
    })
}

/// As in `wgmma m64n256k16 bf16`.
impl std::fmt::Display for Product {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [m, n, k] = self.instruction;
        let dtype = if self.dtype == Dtype::F32 { "tf32".to_owned() } else { self.dtype.to_string() };
        write!(f, "wgmma m{m}n{n}k{k} {dtype}")?;
        if self.from_registers { f.write_str(", an operand from registers") } else { Ok(()) }
    }
}
