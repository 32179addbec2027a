//! Layout assignment: gives every tile a layout, which says which thread holds which element.
//!
//! The tiles of an elementwise op have one layout. So have all tiles that such ops, branches and loops connect: these form a component. The
//! memory accesses of a component choose its layout. The widest access wins, so that each thread moves up to 16 bytes at once and the lanes
//! of a warp access adjacent addresses. If no access can be wide, neighbouring lanes hold neighbouring elements: see `preferred.rs`.
//!
//! Ops that change the shape relate components. The threads of a row hold the sum of that row. The threads that hold a copy of a broadcast
//! row hold the row. The pass chooses the layouts of the largest tiles first, and derives those of smaller tiles as [`crate::ir::renaming`]
//! says. The tiles of a `dot` have the layouts of the matrix instruction: see `dots.rs`. Where two ops or two accesses require different layouts, the pass inserts a `convert`, or computes a cheap tile once more. An access
//! takes a layout in which it is narrower if that costs less than the `convert`: see `access_cost.rs`. Sums that no larger tile needs are scattered among
//! lanes: see `scatter.rs`. A store of sums can get a layout of its own: see `reduced_stores.rs`, and so can a scan: see `scans.rs`. A region with a
//! guarded loop has layouts of its own: see `boundaries.rs`.
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

mod access_cost;
mod accesses;
mod boundaries;
mod clusters;
mod components;
mod converts;
mod cycles;
mod dots;
mod preferred;
mod recompute;
mod reduced_stores;
mod scans;
mod scatter;

use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;

use crate::diagnostic::Diagnostics;
use crate::ir::renaming::{operand_layout, result_layout};
use crate::ir::rewrite::Changed;
use crate::ir::{Function, Inst, Op, SideTable, Value};
use crate::layout::Layout;
use crate::schedule::Schedule;
use crate::target::Asked;

use accesses::Wish;
use components::{Components, tiles};
use cycles::Work;
use preferred::layout_of;

/// Runs the pass. Every tile of the kernel then has a layout in [`Function::layouts`].
///
/// # Errors
/// If the CTAs of a program cannot share an op of the kernel.
pub fn run(func: &mut Function, target: &Asked, schedule: Schedule) -> Result<Changed, Diagnostics> {
    let boundaries = boundaries::insert(func);
    dots::isolate(func, target);
    let (mut components, mut accesses) = (Components::of(func), accesses::compute(func, target));
    let mut wishes = accesses::wishes(func, &accesses, &mut components);
    if accesses::separate(func, &accesses, &mut components, &wishes) {
        (components, accesses) = (Components::of(func), accesses::compute(func, target));
        wishes = accesses::wishes(func, &accesses, &mut components);
    }
    let edges = edges(func, &mut components, &boundaries);
    let required = dots::layouts(func, &mut components, schedule);
    let chosen = choose(func, &mut components, (&wishes, &required), &edges, target, schedule);
    let mut layouts = SideTable::new();
    for value in tiles(func) {
        layouts[value] = chosen[components.find(value)].clone();
    }
    func.layouts = layouts;
    converts::insert(func);
    reduced_stores::convert(func, &accesses, &|shape, wish| layout_of(shape, wish, target, schedule));
    scans::convert(func, &|shape, wish| layout_of(shape, wish, target, schedule));
    recompute::run(func);
    if schedule.num_ctas > 1 {
        clusters::check(func, schedule.num_ctas)?;
    }
    Ok(true)
}

/// Chooses a layout for each component.
fn choose(
    func: &Function,
    components: &mut Components,
    (wishes, required): (&[Wish], &FxHashMap<usize, Layout>),
    edges: &[Vec<Edge>],
    target: &Asked,
    schedule: Schedule,
) -> Vec<Option<Layout>> {
    let mut order: Vec<Value> = tiles(func);
    // The largest tiles come first; among equal ones, those that access memory. The first value of a component decides for the component. Tiles of a `dot` leave no
    // choice.
    order.sort_by_cached_key(|value| {
        let component = components.find(*value);
        (!required.contains_key(&component), Reverse(func.ty(*value).numel()), !wishes[component].is_access())
    });
    let mut chosen: Vec<Option<Layout>> = vec![None; func.value_count()];
    let work = Work::of(func, components, wishes, target);
    for value in order {
        let component = components.find(value);
        if chosen[component].is_some() {
            continue;
        }
        let shape = extents(func, value);
        let mut wish = wishes[component].clone();
        let mut cheapest: Option<Derived> = None;
        let own = |shape: &[u32], wish: &Wish| layout_of(shape, wish, target, schedule);
        if let Some(layout) = required.get(&component) {
            let derived = derive(func, components, &work, edges, &chosen, (component, layout.clone()), &own);
            let others = derived.layouts.into_iter().filter(|(other, _)| *other == component || !required.contains_key(other));
            others.for_each(|(component, layout)| chosen[component] = Some(layout));
            continue;
        }
        // A narrower access here can save a convert to the accesses of another component.
        loop {
            let layout = own(&shape, &wish);
            if cheapest.is_some() && !access_cost::suits(&wish, &layout) {
                break;
            }
            let derived = derive(func, components, &work, edges, &chosen, (component, layout), &own);
            let is_last = wish.vector == 1 || !derived.has_converts;
            if cheapest.as_ref().is_none_or(|cheapest| derived.cost < cheapest.cost) {
                cheapest = Some(derived);
            }
            if is_last {
                break;
            }
            wish.vector /= 2;
        }
        // More neighbours in a thread can save the accesses of another component instructions.
        if let (Some(wider), Some(known)) = (access_cost::wider(&wishes[component]), &cheapest)
            && !known.has_converts
        {
            let derived = derive(func, components, &work, edges, &chosen, (component, own(&shape, &wider)), &own);
            if !derived.has_converts && derived.cost < known.cost {
                cheapest = Some(derived);
            }
        }
        // Fewer neighbours in a thread can save accesses that are not aligned: those of a stencil load each line several times.
        if let Some(known) = &cheapest
            && !known.has_converts
            && work.outlasts_memory(component, &known.layouts[0].1)
        {
            let mut wish = wishes[component].clone();
            // The estimates are rough, so a tenth at least.
            let mut enough = known.cycles(&work) * 9 / 10;
            while wish.vector > 1 {
                wish.vector /= 2;
                let derived = derive(func, components, &work, edges, &chosen, (component, own(&shape, &wish)), &own);
                let cycles = derived.cycles(&work);
                if !derived.has_converts && cycles <= enough {
                    (enough, cheapest) = (cycles.saturating_sub(1), Some(derived));
                }
            }
        }
        for (component, layout) in cheapest.into_iter().flat_map(|derived| derived.layouts) {
            chosen[component] = Some(layout);
        }
    }
    chosen
}

/// The layouts that follow from the layout of one component.
struct Derived {
    /// The components and their layouts, the given one first.
    layouts: Vec<(usize, Layout)>,
    /// The instructions of a thread for the accesses of the given component and of tiles as large as its own, and for converts to those accesses
    /// that do not take the layout.
    cost: u32,
    /// Whether such a convert is needed.
    has_converts: bool,
    /// The layouts on both sides of each convert, also of those of smaller tiles.
    converted: Vec<[Layout; 2]>,
}

impl Derived {
    /// About the cycles of a multiprocessor that the accesses, the arithmetic and the converts of these components take for a warp.
    fn cycles(&self, work: &Work<'_>) -> u32 {
        let converts = self.converted.iter().map(|[from, to]| cycles::of_convert(from, to));
        self.layouts.iter().map(|(component, layout)| work.cycles(*component, layout)).chain(converts).sum()
    }
}

/// Derives layouts from that of the component `first`, for all components that shape ops relate to it and that have none yet. `own` is the
/// layout that an access of a given shape would choose itself.
fn derive(
    func: &Function,
    components: &mut Components,
    work: &Work<'_>,
    edges: &[Vec<Edge>],
    chosen: &[Option<Layout>],
    first: (usize, Layout),
    own: &dyn Fn(&[u32], &Wish) -> Layout,
) -> Derived {
    let wishes = work.wishes;
    let mut known: FxHashSet<usize> = [first.0].into_iter().collect();
    let (mut next, whole) = (vec![first.clone()], first.1.elements());
    let mut derived =
        Derived { cost: access_cost::of(&wishes[first.0], &first.1), layouts: vec![first], has_converts: false, converted: Vec::new() };
    while let Some((leader, layout)) = next.pop() {
        for (inst, x, result) in &edges[leader] {
            let op = &func.inst(*inst).op;
            let is_forward = components.find(*x) == leader;
            let (from, to) = if is_forward { (*x, *result) } else { (*result, *x) };
            let follower = components.find(to);
            let (leads, follows) = (func.ty(from).numel(), func.ty(to).numel());
            if known.contains(&follower) || chosen[follower].is_some() || follows > leads {
                continue;
            }
            let layout = match op {
                Op::Convert { .. } => Some(layout.clone()),
                _ if is_forward => result_layout(func, op, to, &layout),
                _ => operand_layout(func, op, to, &layout),
            };
            let Some(mut layout) = layout else { continue };
            if work.is_scattered[follower] {
                layout = layout.scattered();
            }
            let wish = &wishes[follower];
            if follows == leads && wish.is_access() {
                let (taken, own) = (access_cost::of(wish, &layout), own(&extents(func, to), wish));
                let apart = access_cost::of(wish, &own) + access_cost::of_convert(&layout, &own, func.ty(to).dtype().bytes() as u32);
                let has_copies = layout.registers_per_thread() > own.registers_per_thread();
                let is_cheaper = if has_copies {
                    // A few loads of what other lanes load as well, such as the factor of a run, take less than to get it from these lanes.
                    let [here, elsewhere] = [&layout, &own].map(|layout| work.cycles(follower, layout));
                    let is_anywhere = wish.accesses.iter().all(|access| access.is_load && access.axis.is_none());
                    is_anywhere && here <= elsewhere + cycles::of_convert(&layout, &own)
                } else {
                    taken <= apart
                };
                let is_taken = is_cheaper && access_cost::suits(wish, &layout);
                // Converts of smaller tiles are no reason to access the large ones otherwise.
                if follows as u64 == whole {
                    derived.cost += if is_taken { taken } else { apart };
                    derived.has_converts |= !is_taken;
                }
                if !is_taken {
                    derived.converted.push([layout, own]);
                    continue;
                }
            }
            known.insert(follower);
            next.push((follower, layout.clone()));
            derived.layouts.push((follower, layout));
        }
    }
    derived
}

fn extents(func: &Function, value: Value) -> Vec<u32> {
    func.ty(value).extents().iter().map(|extent| *extent as u32).collect()
}

/// An op that relates two components, with its operand and its result.
type Edge = (Inst, Value, Value);

/// For each component, the ops from it or to it. A convert at the boundary of a region with a guarded loop relates nothing: the fast versions of the
/// loop would have to be narrower to save it.
fn edges(func: &Function, components: &mut Components, boundaries: &SideTable<Inst, bool>) -> Vec<Vec<Edge>> {
    let mut edges = vec![Vec::new(); func.value_count()];
    for inst in func.all_insts().into_iter().filter(|inst| !boundaries[*inst]) {
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
