//! Decides who holds which element: gives every tile a layout.
//!
//! Tiles that meet in an elementwise op have one layout, and so have all tiles connected through such ops, branches and loops: a
//! component. Its memory accesses choose: the widest that an access can use, so that each thread moves up to 16 bytes at once and the
//! lanes of a warp lie side by side; without one that can be wide, neighbouring lanes hold neighbouring elements.
//!
//! Ops that change the shape relate components: a sum along an axis is held where the rows were, a row that is broadcast is held by every
//! thread that holds a part of its copies. The largest tiles choose, and the smaller ones follow as [`crate::ir::renaming`] says. Where a
//! component cannot have what two neighbours or two accesses want, a `convert` stands between.
//!
//! ```text
//! ; before
//! ; num_warps 4
//! kernel @k(%x: ptr<f32>) {
//!     %0 = arange {start = 0, end = 1024} : tile<i64, [1024]>
//!     %1 = load %x, %0 {in_bounds = true, align = 16} : tile<f32, [1024]>
//!     return
//! }
//! ; after
//! kernel @k(%x: ptr<f32>) {
//!     %0 = arange {start = 0, end = 1024} : tile<i64, [1024]> layout<[1024], register = [1, 2, 512], lane = [4, 8, 16, 32, 64], warp = [128, 256], block = []>
//!     %1 = load %x, %0 {in_bounds = true, align = 16} : tile<f32, [1024]> layout<[1024], register = [1, 2, 512], lane = [4, 8, 16, 32, 64], warp = [128, 256], block = []>
//!     return
//! }
//! ```

mod accesses;
mod clusters;
mod components;
mod converts;

use std::cmp::Reverse;

use crate::diagnostic::Diagnostics;
use crate::ir::renaming::{operand_layout, result_layout};
use crate::ir::{Function, Inst, Op, SideTable, Value};
use crate::layout::Layout;
use crate::schedule::Schedule;
use crate::target::{Asked, Target};

use accesses::Wish;
use components::{Components, tiles};

/// Runs the pass. Every tile of the kernel then has a layout in [`Function::layouts`].
///
/// # Errors
/// If the CTAs of a program cannot share what the kernel does.
pub fn run(func: &mut Function, target: &Asked, schedule: Schedule) -> Result<(), Diagnostics> {
    let (mut components, mut accesses) = (Components::of(func), accesses::compute(func));
    let mut wishes = accesses::wishes(func, &accesses, &mut components);
    if accesses::separate(func, &accesses, &mut components, &wishes) {
        (components, accesses) = (Components::of(func), accesses::compute(func));
        wishes = accesses::wishes(func, &accesses, &mut components);
    }
    let chosen = choose(func, &mut components, &wishes, target, schedule);
    let mut layouts = SideTable::new();
    for value in tiles(func) {
        layouts[value] = chosen[components.find(value)].clone();
    }
    func.layouts = layouts;
    converts::insert(func);
    if schedule.num_ctas > 1 { clusters::check(func, schedule.num_ctas) } else { Ok(()) }
}

/// A layout for each component.
fn choose(func: &Function, components: &mut Components, wishes: &[Wish], target: &Asked, schedule: Schedule) -> Vec<Option<Layout>> {
    let mut order: Vec<Value> = tiles(func);
    // The largest first; of equal ones those that access memory. Of one component the first value speaks.
    order.sort_by_cached_key(|value| (Reverse(func.ty(*value).numel()), !wishes[components.find(*value)].is_access));
    let edges = edges(func, components);
    let mut chosen: Vec<Option<Layout>> = vec![None; func.value_count()];
    for value in order {
        let component = components.find(value);
        if chosen[component].is_some() {
            continue;
        }
        let shape: Vec<u32> = func.ty(value).extents().iter().map(|extent| *extent as u32).collect();
        chosen[component] = Some(layout_of(&shape, &wishes[component], target, schedule));
        let mut next = vec![component];
        while let Some(known) = next.pop() {
            let Some(layout) = chosen[known].clone() else { continue };
            for (inst, x, result) in &edges[known] {
                let op = &func.inst(*inst).op;
                let is_forward = components.find(*x) == known;
                let (from, to) = if is_forward { (*x, *result) } else { (*result, *x) };
                let follower = components.find(to);
                let (leads, follows) = (func.ty(from).numel(), func.ty(to).numel());
                if chosen[follower].is_some() || follows > leads || (follows == leads && wishes[follower].is_access) {
                    continue;
                }
                let derived = match op {
                    Op::Convert { .. } => Some(layout.clone()),
                    _ if is_forward => result_layout(func, op, to, &layout),
                    _ => operand_layout(func, op, to, &layout),
                };
                if derived.is_some() {
                    chosen[follower] = derived;
                    next.push(follower);
                }
            }
        }
    }
    chosen
}

/// By component, the ops that lead from it or to it, with the operand and the result.
fn edges(func: &Function, components: &mut Components) -> Vec<Vec<(Inst, Value, Value)>> {
    let mut edges = vec![Vec::new(); func.value_count()];
    for inst in func.all_insts() {
        let data = func.inst(inst);
        let x = match &data.op {
            Op::Broadcast { x } | Op::ExpandDims { x, .. } | Op::Reshape { x } | Op::Permute { x, .. } | Op::Convert { x } => *x,
            Op::Reduce { inputs, .. } => inputs[0],
            _ => continue,
        };
        if func.ty(x).is_tile() && func.ty(data.results[0]).is_tile() {
            for end in [x, data.results[0]] {
                edges[components.find(end)].push((inst, x, data.results[0]));
            }
        }
    }
    edges
}

/// Threads side by side along the axis that memory runs along, each with a vector; then along the others, the last first. Warps rather
/// stand along axes that nothing is reduced along, so that reductions stay inside of them. CTAs of a cluster stand as warps do, each with a
/// part of the tile that is all its own.
fn layout_of(whole: &[u32], wish: &Wish, target: &Asked, schedule: Schedule) -> Layout {
    let rank = whole.len();
    let fastest = wish.axis.unwrap_or(rank - 1);
    let order: Vec<usize> = [fastest].into_iter().chain((0..rank).rev().filter(|axis| *axis != fastest)).collect();
    let mut warp_order = order.clone();
    warp_order.sort_by_key(|axis| wish.reduced.contains(axis));
    let ctas = spread(schedule.num_ctas, whole, &warp_order);
    let shape: Vec<u32> = whole.iter().zip(&ctas).map(|(extent, ctas)| (extent / ctas).max(1)).collect();
    let share = (shape.iter().product::<u32>() / schedule.threads()).max(1);
    let mut size_per_thread = vec![1; rank];
    size_per_thread[fastest] = wish.vector.min(share).min(shape[fastest]);
    let room: Vec<u32> = (0..rank).map(|axis| (shape[axis] / size_per_thread[axis]).max(1)).collect();
    let lanes = spread(target.ask(Target::warp_size), &room, &order);
    let room: Vec<u32> = (0..rank).map(|axis| (room[axis] / lanes[axis]).max(1)).collect();
    let warps = spread(schedule.num_warps, &room, &warp_order);
    Layout::blocked(&shape, &size_per_thread, &lanes, &warps, &order)
        .and_then(|layout| layout.over_blocks(whole, &ctas))
        .expect("extents of verified tiles are powers of two")
}

/// How many of `count` stand along each axis: the room there is, in that order. What is left makes copies along the last.
fn spread(count: u32, room: &[u32], order: &[usize]) -> Vec<u32> {
    let (mut counts, mut left) = (vec![1; room.len()], count);
    for (index, &axis) in order.iter().enumerate() {
        counts[axis] = if index + 1 == order.len() { left } else { room[axis].min(left) };
        left /= counts[axis];
    }
    counts
}
