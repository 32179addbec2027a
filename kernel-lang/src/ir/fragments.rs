//! The fragments of a `dot`: which thread holds which elements of its operands.

use crate::ir::arena::{Inst, Value};
use crate::ir::function::Function;
use crate::ir::ops::Op;
use crate::ir::product::multiplier;
use crate::ir::types::Type;
use crate::layout::{Fragments, Layout, MOST_COLUMNS, SharedBlock};
use crate::schedule::Schedule;

/// The layouts of the operands and the result of a `dot`. `None` for another op, and for extents without fragments.
pub fn fragments(func: &Function, op: &Op, schedule: Schedule) -> Option<Fragments> {
    let Op::Dot { a, b, precision, .. } = op else { return None };
    let known =
        |value: &Value| -> Option<Vec<u32>> { func.ty(*value).shape().iter().map(|extent| u32::try_from(extent.as_int()?).ok()).collect() };
    let (left, right) = (known(a)?, known(b)?);
    let (k, rows) = left.split_last()?;
    let extents: Vec<u32> = rows.iter().chain([right.last()?, k]).copied().collect();
    Fragments::new(&extents, multiplier(func.ty(*a).dtype(), *precision), schedule.num_warps, schedule.num_ctas).ok()
}

/// The order of the elements of a block in shared memory. `None` for another type, and for extents with which the hardware has no such order.
pub fn shared_block(ty: &Type) -> Option<SharedBlock> {
    let Type::Shared { elem, shape, contiguous } = ty else { return None };
    let extents: Vec<u32> = shape.iter().map(|extent| u16::try_from(extent.as_int()?).ok().map(u32::from)).collect::<Option<_>>()?;
    let &[rows, columns] = &extents[..] else { return None };
    SharedBlock::new([rows, columns], *contiguous as usize, elem.dtype()?.bytes() as u32)
}

/// The layout of the accumulators of a `warpgroup_dot`. `None` if the warps of the schedule do not divide the rows, or the columns if it is `swapped`.
pub fn warpgroup_accumulator(func: &Function, acc: Value, swapped: bool, schedule: Schedule) -> Option<Layout> {
    let mut shape: Vec<u32> = func.ty(acc).extents().iter().map(|extent| u32::try_from(*extent).ok()).collect::<Option<_>>()?;
    if swapped {
        shape.reverse();
    }
    let [rows, columns] = shape[..] else { return None };
    if schedule.num_warps < 4 || rows < 16 * schedule.num_warps || columns < 8 {
        return None;
    }
    let layout = Layout::wgmma_accumulator(&shape, columns.min(MOST_COLUMNS), schedule.num_warps).ok()?;
    if swapped { layout.transpose().ok() } else { Some(layout) }
}

/// The layout of an operand of a `warpgroup_dot` in registers. `None` if the warps of the schedule do not divide its rows, or its columns if the product is `swapped`.
pub fn warpgroup_operand(func: &Function, operand: Value, swapped: bool, schedule: Schedule) -> Option<Layout> {
    let mut shape: Vec<u32> = func.ty(operand).extents().iter().map(|extent| u32::try_from(*extent).ok()).collect::<Option<_>>()?;
    if swapped {
        shape.reverse();
    }
    if schedule.num_warps < 4 || shape.first().is_none_or(|rows| *rows < 16 * schedule.num_warps) {
        return None;
    }
    let layout = Layout::wgmma_operand_a(&shape, func.ty(operand).dtype().bits(), schedule.num_warps).ok()?;
    if swapped { layout.transpose().ok() } else { Some(layout) }
}

/// The elements of the largest accumulator of a `warpgroup_dot`.
pub fn largest_product(func: &Function) -> u32 {
    let elements = |inst: Inst| match func.inst(inst).op {
        Op::WarpgroupDot { acc, .. } => u32::try_from(func.ty(acc).numel()).unwrap_or(u32::MAX),
        _ => 0,
    };
    func.all_insts().into_iter().map(elements).max().unwrap_or(0)
}
