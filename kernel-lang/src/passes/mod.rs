//! The passes: each a function that rewrites a kernel, one a file. [`PIPELINE`] is the compiler's order.

pub mod assign_layouts;
pub mod canonicalize;
pub mod contract;
pub mod cse;
pub mod dce;
pub mod drop_assertions;
pub mod expand_division;
pub mod expand_math;
pub mod expand_sort;
pub mod guard_accesses;
pub mod licm;
pub mod narrow_divisions;
pub mod pad_tiles;
pub mod prefetch_loads;
pub mod report_accesses;
pub mod sink_indices;
pub mod slice_guarded_tiles;
pub mod specialize;
pub mod split_carried_indices;
pub mod split_full_tiles;
pub mod split_loops;
pub mod unroll_loops;
pub mod use_assumptions;
pub mod wait_for_previous;
pub mod widen_loops;
pub mod widen_sums;

use crate::ir::rewrite::Changed;
use crate::ir::{Function, Stage, verify};

/// A row of the pipeline: one pass over a specialised kernel.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Its name: the file's.
    pub name: &'static str,
    /// What it does to a kernel.
    pub run: fn(&mut Function) -> Changed,
}

macro_rules! pipeline {
    ($($pass:ident),* $(,)?) => { &[$(Pass { name: stringify!($pass), run: $pass::run }),*] };
}

/// What every backend runs first: the kernel as simple as it gets, still without layouts.
pub const SIMPLIFY: &[Pass] = pipeline![
    pad_tiles, // before all: what follows knows powers of two only
    canonicalize,
    widen_sums, // after canonicalize: an `add` that stands in its simplest form is found
    cse,
    licm, // after cse: an op that is computed once moves once
    dce,
];

/// What comes before [`SIMPLIFY`] unless a launch is checked; the CPU finds out when it runs.
pub const UNCHECKED: &[Pass] = pipeline![
    pad_tiles,       // before all, here as in SIMPLIFY, which then finds nothing to pad
    use_assumptions, // before drop_assertions: they are gone behind it
    drop_assertions, // before SIMPLIFY: its dce then drops what only they looked at
];

/// What makes a kernel ready for a GPU, in order; layouts are assigned last.
pub const PIPELINE: &[Pass] = pipeline![
    widen_loops,           // before split_carried_indices: an index is a sum of 64-bit scalars
    split_carried_indices, // before split_full_tiles, which sees only sums of scalars and lanes
    split_loops,           // before split_full_tiles, which sees to the turns that are not full
    unroll_loops,          // after split_loops: turns that need masks are not repeated
    split_full_tiles,      // before guard_accesses: full tiles need no guards
    dce,                   // the branches have copies of what stands in front of them; drop the originals before cse joins them again
    slice_guarded_tiles,   // after dce: what a slice need not compute is gone
    report_accesses,       // before guard_accesses: it speaks of accesses as the user wrote them
    guard_accesses,
    narrow_divisions, // after all that looks at places of accesses, which this puts into branches
    dce,              // masks that only the guarded copies of accesses look at are computed there, unless cse joins them again
    expand_sort,      // after the branches for full tiles were made: they stand around it
    contract,         // before expand_math, whose formulas count on every rounding
    expand_math,      // after simplification: an expanded function is opaque to it
    expand_division,  // as late, and before cse: a quotient and its remainder become one division
    canonicalize,
    cse,
    licm,
    dce,
    sink_indices, // behind cse and licm, which would undo it
    dce,
    wait_for_previous, // last: behind it nothing moves an access
];

/// Runs rows of the table. Debug builds verify what they leave, and tests each row by itself. `after` sees the kernel after each pass and whether it changed.
///
/// # Panics
/// In debug builds, if a pass leaves a kernel that breaks the law: a defect of that pass.
pub fn run(func: &mut Function, rows: &[Pass], after: &mut dyn FnMut(&Pass, &Function, Changed)) {
    let given = cfg!(debug_assertions).then(|| func.clone());
    let mut any = false;
    for pass in rows {
        let changed = (pass.run)(func);
        any |= changed;
        after(pass, func, changed);
    }
    // What was not changed has been verified.
    if let Some(given) = given.filter(|_| any && verify(func, Stage::Tile).is_err()) {
        blame(given, rows);
    }
}

/// Runs rows that leave a broken kernel once more, to find the one that breaks it.
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
        /// Drops constants that are used.
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
