//! The layout that suits the accesses of a component.
//!
//! Lanes lie side by side along the axis of consecutive addresses, each with a vector of elements; then along the other axes, the last one first. Warps
//! prefer axes that nothing is reduced along if reductions then stay within a warp. The CTAs of a cluster prefer these axes, too, and each holds its own
//! part of the tile.
//!
//! A warp that accesses single elements moves a part of a row, whose first and last sector also hold elements of the parts beside it. So a warp accesses
//! several parts that lie side by side, one after the other, while these sectors are in the L1: the row, divided among the warps, or all of it if a
//! reduction over rows crosses warps in return.
//!
//! | accesses of a tile of 16 x 128, 4 warps | vector | lanes | parts of a row, in registers | warps |
//! |---|---|---|---|---|
//! | of 16 bytes, of `f32` | 4 columns | 32 along the columns | 1 | 4 along the rows |
//! | of single elements | 1 column | 32 along the columns | 1 | 4 along the columns |
//! | the same, reduced over rows | 1 column | 32 along the columns | 4 | 4 along the rows |

use crate::layout::{Layout, Level};
use crate::schedule::Schedule;
use crate::target::{Asked, Target};

use super::accesses::Wish;

/// The layout of a tile of these extents that suits the accesses of its component.
pub(super) fn layout_of(whole: &[u32], wish: &Wish, target: &Asked, schedule: Schedule) -> Layout {
    let rank = whole.len();
    let fastest = wish.axis.unwrap_or(rank - 1);
    let order: Vec<usize> = [fastest].into_iter().chain((0..rank).rev().filter(|axis| *axis != fastest)).collect();
    let mut unreduced_first = order.clone();
    unreduced_first.sort_by_key(|axis| wish.reduced.contains(axis));
    let ctas = spread(schedule.num_ctas, whole, &unreduced_first);
    let shape: Vec<u32> = whole.iter().zip(&ctas).map(|(extent, ctas)| (extent / ctas).max(1)).collect();
    let share = (shape.iter().product::<u32>() / schedule.threads()).max(1);

    let mut room = shape.clone();
    let mut vector = vec![1; rank];
    vector[fastest] = wish.vector.min(share).min(room[fastest]);
    take(&mut room, &vector);
    let lanes = spread(target.ask(Target::warp_size), &room, &order);
    take(&mut room, &lanes);
    let hold_all_warps = |axes: &[usize]| axes.iter().map(|axis| room[*axis]).product::<u32>() >= schedule.num_warps;
    let unreduced: Vec<usize> = order.iter().copied().filter(|axis| !wish.reduced.contains(axis)).collect();
    let others = &order[1..];
    let warp_order = if wish.is_narrow() && others.iter().any(|axis| wish.reduced.contains(axis)) && hold_all_warps(others) {
        [others, &order[..1]].concat()
    } else if hold_all_warps(&unreduced) {
        unreduced_first
    } else {
        // A reduction crosses warps in any case. A thread holds one part of several rows, and needs one part of what is the same for these rows.
        order.clone()
    };
    let warps = spread(schedule.num_warps, &room, &warp_order);
    let mut row = vec![1; rank];
    if wish.is_narrow() {
        row[fastest] = (room[fastest] / warps[fastest]).clamp(1, share);
    }
    let levels = [(Level::Register, &vector[..]), (Level::Lane, &lanes), (Level::Register, &row), (Level::Warp, &warps)];
    Layout::nested(&shape, &levels, &order)
        .and_then(|layout| layout.over_blocks(whole, &ctas))
        .expect("extents of verified tiles are powers of two")
}

/// Takes so many units of each axis from what is left of it.
fn take(room: &mut [u32], counts: &[u32]) {
    room.iter_mut().zip(counts).for_each(|(room, count)| *room = (*room / count).max(1));
}

/// The number of units along each axis, of `count` units in total: as many as `room` allows, in the order of `order`. The last axis takes
/// the remaining units, as copies.
fn spread(count: u32, room: &[u32], order: &[usize]) -> Vec<u32> {
    let (mut counts, mut left) = (vec![1; room.len()], count);
    for (index, &axis) in order.iter().enumerate() {
        counts[axis] = if index + 1 == order.len() { left } else { room[axis].min(left) };
        left /= counts[axis];
    }
    counts
}
