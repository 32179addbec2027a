//! Components whose tiles are scattered: see [`Layout::scattered`](crate::layout::Layout::scattered).
//!
//! Behind a reduction, lanes hold copies of the results. If they are only stored, or first combined with each other, each lane can instead compute and store
//! a part of them. If a larger tile needs the results again, as in a softmax of several rows, each lane keeps its copies.

use crate::ir::{Function, Op};

use super::components::Components;
use super::recompute::is_cheap;

/// The components that are scattered if their layout follows from that of a larger tile.
pub(super) fn components(func: &Function, components: &mut Components) -> Vec<bool> {
    let (mut is_reduced, mut is_needed) = (vec![false; func.value_count()], vec![false; func.value_count()]);
    // In reverse order, so that the uses of a result come before its op.
    for inst in func.all_insts().into_iter().rev() {
        let data = func.inst(inst);
        let Some(&result) = data.results.first().filter(|result| func.ty(**result).is_tile()) else { continue };
        let to = components.find(result);
        match data.op {
            Op::Reduce { .. } => is_reduced[to] = true,
            // A cheap tile is computed once more.
            Op::Broadcast { x } if func.ty(x).is_tile() && !is_cheap(func, x) => is_needed[components.find(x)] = true,
            Op::ExpandDims { x, .. } | Op::Reshape { x } | Op::Permute { x, .. } if is_needed[to] && !is_cheap(func, x) => {
                is_needed[components.find(x)] = true;
            }
            _ => {}
        }
    }
    is_reduced.into_iter().zip(is_needed).map(|(is_reduced, is_needed)| is_reduced && !is_needed).collect()
}
