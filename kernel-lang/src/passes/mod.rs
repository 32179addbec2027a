//! Passes: each file holds one function that rewrites a kernel. Tables list the passes for a GPU in order: [`UNCHECKED`], [`SIMPLIFY`] and [`PIPELINE`]
//! for a kernel, then [`SCHEDULE`] for each of its schedules.

pub mod accumulate_dots;
pub mod align_loops;
pub mod align_tiles;
pub mod assign_layouts;
pub mod canonicalize;
pub mod choose_eviction;
pub mod choose_readers;
pub mod clamp_limits;
pub mod compute_at_launch;
pub mod contract;
pub mod cse;
pub mod dce;
pub mod divide;
pub mod drop_assertions;
pub mod expand_math;
pub mod expand_sort;
mod flat_indices;
pub mod group_loads;
pub mod guard_accesses;
pub mod hoist_loads;
pub mod issue_loads;
pub mod licm;
pub mod narrow_carried;
pub mod order_conjuncts;
pub mod overlap_products;
pub mod pad_tiles;
pub mod pair_accesses;
pub mod prefetch_loads;
mod reductions;
pub mod relax_atomics;
pub mod report_accesses;
pub mod short_circuit;
pub mod sink_indices;
pub mod sink_to_uses;
pub mod skip_masked;
pub mod skip_selections;
pub mod slice_guarded_tiles;
pub mod specialize;
pub mod specialize_warps;
pub mod split_carried_indices;
pub mod split_full_tiles;
pub mod split_loops;
pub mod stage_operands;
pub mod tile_transposes;
pub mod unroll_loops;
pub mod use_assumptions;
pub mod wait_for_previous;
pub mod widen_loops;
pub mod widen_sums;

use crate::diagnostic::Diagnostics;
use crate::ir::rewrite::Changed;
use crate::ir::{Function, Stage, verify};
use crate::schedule::Schedule;
use crate::target::Asked;

/// A row of a table: one pass over a specialised kernel.
#[derive(Clone, Copy, Debug)]
pub struct Pass<F = fn(&mut Function) -> Changed> {
    /// The name of the pass, which is also the name of its file.
    pub name: &'static str,
    /// The function that rewrites a kernel.
    pub run: F,
}

/// A row of [`SCHEDULE`]: a pass that may query the target and the schedule, and that may reject the kernel.
pub type ScheduledPass = Pass<fn(&mut Function, &Asked, Schedule) -> Result<Changed, Diagnostics>>;

macro_rules! pipeline {
    ($($pass:ident),* $(,)?) => { &[$(Pass { name: stringify!($pass), run: $pass::run }),*] };
}

/// Rows of [`SCHEDULE`]. `(schedule)` marks the passes that query the target or the schedule.
macro_rules! schedule {
    ($($pass:ident $(($schedule:ident))?),* $(,)?) => {
        &[$(Pass { name: stringify!($pass), run: schedule!(@run $pass $($schedule)?) }),*]
    };
    (@run $pass:ident schedule) => { $pass::run };
    (@run $pass:ident) => { |func, _, _| Ok($pass::run(func)) };
}

/// The passes that every backend runs first. They simplify the kernel and assign no layouts.
pub const SIMPLIFY: &[Pass] = pipeline![
    pad_tiles, // first: the other passes know only powers of two
    canonicalize,
    widen_sums,      // after canonicalize: it finds only an `add` in canonical form
    accumulate_dots, // before licm, which moves the zeros of a product out of its loop
    cse,
    licm, // after cse, which leaves one copy of an op to move
    dce,
];

/// The passes before [`SIMPLIFY`] in code for a GPU, unless the launch is checked. A program for the CPU decides at launch whether it checks,
/// so it keeps its assertions and skips these passes.
pub const UNCHECKED: &[Pass] = pipeline![
    pad_tiles,       // first, as in SIMPLIFY, which then has nothing to pad
    use_assumptions, // before drop_assertions, which removes the assumptions
    drop_assertions, // before SIMPLIFY: its dce then removes the conditions
];

/// The passes that prepare a kernel for a GPU, in order. Of the schedule they know only whether a program is a cluster, so schedules share them.
pub const PIPELINE: &[Pass] = pipeline![
    relax_atomics,         // before the passes that copy ops, because it counts accesses before and after each atomic
    widen_loops,           // before split_carried_indices: an index is a sum of 64-bit scalars
    split_carried_indices, // before split_full_tiles, which knows only sums of scalars and stride terms
    choose_eviction,       // after split_carried_indices, which shows the loop's index in an index; before split_loops, which copies loads
    narrow_carried, // after choose_eviction, which takes the loads of a copy for more reads; before align_loops and split_loops, which copy loops
    tile_transposes, // after choose_eviction, which takes the loads of a copy for more reads; before split_full_tiles, which tests its tiles
    pair_accesses, // after tile_transposes, which knows no branches; before split_loops and split_full_tiles, which make its accesses wide
    align_loops,   // before split_loops, which makes the accesses of aligned loops wide
    align_tiles, // after align_loops, which needs no copy of the kernel; before split_loops, which makes the accesses of shifted tiles wide
    split_loops, // before split_full_tiles, which handles the iterations of the remainder loop
    unroll_loops, // after split_loops: remainder loops are not unrolled
    split_full_tiles, // before guard_accesses: full tiles need no guards
    dce,         // the branches hold copies of ops in front of them: remove the originals before cse merges both
    slice_guarded_tiles, // after dce, so that unused ops are not sliced
    report_accesses, // before guard_accesses: it reports accesses as the user wrote them
    guard_accesses,
    dce,         // masks that only guarded copies of accesses use are computed there: remove the originals before cse merges both
    expand_sort, // after the passes that make branches for full tiles, which contain no sort
    contract,    // before expand_math, whose formulas rely on every rounding
    expand_math, // after simplification, which cannot simplify an expanded function
    divide, // after the passes that analyse indices of accesses, which it moves into branches, and before cse, for what divisions share
    canonicalize,
    cse,
    licm,
    dce,
    sink_indices, // after cse and licm, which would undo it
    dce,
    short_circuit,     // after licm, which moves what is the same in all iterations out of the loop; cse would undo it
    hoist_loads,       // behind expand_math, whose formulas have no divisions
    sink_to_uses,      // last of the passes that move ops, because an op that moves may use a cast earlier
    clamp_limits,      // before compute_at_launch, which makes a launch value of a clamped limit
    order_conjuncts,   // before compute_at_launch: what is the same in all programs becomes one launch value
    compute_at_launch, // after all passes that make tests, and after those that move ops out of regions
    dce,               // a test at launch holds copies of its ops: remove the originals
    wait_for_previous, // last: no later pass moves an access over an op with effects
];

/// The passes that depend on the schedule, in order.
pub const SCHEDULE: &[ScheduledPass] = schedule![
    overlap_products(schedule), // before assign_layouts, and behind all passes that copy loops
    prefetch_loads(schedule),   // before assign_layouts, which gives its async buffers the layouts of the tiles that are loaded from them
    stage_operands(schedule), // after prefetch_loads, whose slots it reads in slices; before assign_layouts, which gives the slices the layouts of fragments
    assign_layouts(schedule), // before all others, which count the registers of a thread
    group_loads,              // before issue_loads, which decides by the order of the ops
    issue_loads,              // before the passes that move loads into branches
    skip_masked,              // behind the passes that search straight-line regions, which it splits
    skip_selections,
    choose_readers, // last: the passes before it move loads into branches, and a branch gives on what it yields
];

/// Runs rows of the table. Debug builds verify the kernel after the last row, and tests verify it after each row. The function calls
/// `after` for each pass, with the kernel and whether the pass changed it.
///
/// # Panics
/// In debug builds, if a pass leaves a kernel that breaks an invariant. This is a defect of the pass.
pub fn run(func: &mut Function, rows: &[Pass], after: &mut dyn FnMut(&Pass, &Function, Changed)) {
    let given = cfg!(debug_assertions).then(|| func.clone());
    let mut any = false;
    for pass in rows {
        let changed = (pass.run)(func);
        any |= changed;
        after(pass, func, changed);
    }
    // An unchanged kernel has been verified before.
    if let Some(given) = given.filter(|_| any && verify(func, Stage::Tile).is_err()) {
        blame(given, rows);
    }
}

/// Runs rows of [`SCHEDULE`], or of the table of a backend. The function calls `after` for each pass, with the kernel and whether the pass changed it.
///
/// # Errors
/// If a pass rejects the kernel, or the schedule for the kernel.
pub fn run_scheduled(
    func: &mut Function,
    rows: &[ScheduledPass],
    target: &Asked,
    schedule: Schedule,
    after: &mut dyn FnMut(&ScheduledPass, &Function, Changed),
) -> Result<(), Diagnostics> {
    for pass in rows {
        let changed = (pass.run)(func, target, schedule)?;
        after(pass, func, changed);
    }
    Ok(())
}

/// Runs the rows one by one on a kernel that they break, to find the pass that breaks it.
fn blame(mut func: Function, rows: &[Pass]) -> ! {
    for pass in rows {
        (pass.run)(&mut func);
        if let Err(violations) = verify(&func, Stage::Tile) {
            let list: Vec<String> = violations.iter().map(ToString::to_string).collect();
            panic!("`{}` left a broken kernel:\n{}\n{func}", pass.name, list.join("\n"));
        }
    }
    unreachable!("a pass makes the same of the same kernel")
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;
    use crate::ir::{Op, parse};

    #[test]
    #[should_panic(expected = "`forget` left a broken kernel")]
    fn of_several_passes_the_one_that_breaks_a_kernel_is_named() {
        /// Removes constants that are used.
        fn forget(func: &mut Function) -> Changed {
            let insts = func.region(func.body).insts.clone();
            *func.insts_mut(func.body) = insts.into_iter().filter(|inst| !matches!(func.inst(*inst).op, Op::Const { .. })).collect();
            true
        }
        let rows = [canonicalize::run as fn(&mut Function) -> Changed, forget, licm::run];
        let rows: Vec<Pass> = ["canonicalize", "forget", "licm"].into_iter().zip(rows).map(|(name, run)| Pass { name, run }).collect();
        let mut func =
            parse("kernel @k(%y: ptr_mut<i64>) {\n%0 = const {value = 1} : i64\nstore %y, %0, %0\nreturn\n}").expect("it is well formed");
        run(&mut func, &rows, &mut |_, _, _| {});
    }
}
