//! Layouts across ops that change a tile's shape: the layout of the result when no element moves between threads.
//!
//! ```text
//! expand_dims, reshape   the bases stay: an index is one row-major number
//! permute                the axes of each basis are permuted
//! reduce                 the axis is removed from each basis; registers that differ only there are merged; the result may be scattered
//! broadcast              read backwards: the result's bases, without the axes along which the operand has extent 1
//! ```

use crate::ir::arena::Value;
use crate::ir::function::Function;
use crate::ir::ops::Op;
use crate::layout::{Layout, Trade, renaming};

/// The result layout of `op` for a given operand layout, if every thread keeps its elements. `None` for other ops, and for `broadcast`, whose
/// result layout is not unique. That of a `reduce` may be [scattered](Layout::scattered) as well.
pub fn result_layout(func: &Function, op: &Op, result: Value, operand: &Layout) -> Option<Layout> {
    let layout = match op {
        Op::ExpandDims { .. } | Op::Reshape { .. } => operand.reshape(&extents(func, result)).ok()?,
        Op::Permute { order, .. } => operand.permute(&axes(order)).ok()?,
        Op::Reduce { axis, .. } => operand.slice(*axis as usize).ok()?,
        _ => return None,
    };
    Some(layout.without_register_copies().0)
}

/// The layout that the operand `x` of `op` must have, so that every thread holds the elements it needs for a given result layout. `None` for
/// other ops, and for `reduce`, whose operand layout is not unique.
pub fn operand_layout(func: &Function, op: &Op, x: Value, result: &Layout) -> Option<Layout> {
    let shape = extents(func, x);
    let layout = match op {
        Op::ExpandDims { .. } | Op::Reshape { .. } => result.reshape(&shape).ok()?,
        Op::Permute { order, .. } => {
            let order = axes(order);
            let inverse: Vec<usize> = (0..order.len()).map(|axis| order.iter().position(|from| *from == axis)).collect::<Option<_>>()?;
            result.permute(&inverse).ok()?
        }
        Op::Broadcast { .. } => result.unbroadcast(&shape).ok()?,
        _ => return None,
    };
    Some(layout.without_register_copies().0)
}

/// For each register of the result, the operand register that holds the element, in every thread; for a `reduce`, a register that holds one
/// of the elements. `None` if the layouts require elements to move.
pub fn register_sources(func: &Function, op: &Op, x: Value, result: Value) -> Option<Vec<u32>> {
    let (from, to) = (func.layouts[x].as_ref()?, func.layouts[result].as_ref()?);
    match op {
        Op::ExpandDims { .. } | Op::Reshape { .. } => renaming(&from.reshape(to.shape()).ok()?, to),
        Op::Permute { order, .. } => renaming(&from.permute(&axes(order)).ok()?, to),
        Op::Reduce { axis, .. } => {
            let (scattered, _) = from.slice(*axis as usize).ok()?.trades(to)?;
            renaming(&scattered, to)
        }
        Op::Broadcast { .. } => renaming(from, &to.unbroadcast(from.shape()).ok()?),
        _ => None,
    }
}

/// The trades between lanes by which a `reduce` of `x` scatters its result.
pub fn trades(func: &Function, op: &Op, x: Value, result: Value) -> Option<Vec<Trade>> {
    let (from, to) = (func.layouts[x].as_ref()?, func.layouts[result].as_ref()?);
    let Op::Reduce { axis, .. } = op else { return None };
    Some(from.slice(*axis as usize).ok()?.trades(to)?.1)
}

fn extents(func: &Function, value: Value) -> Vec<u32> {
    func.ty(value).extents().iter().map(|extent| *extent as u32).collect()
}

fn axes(order: &[u32]) -> Vec<usize> {
    order.iter().map(|axis| *axis as usize).collect()
}
