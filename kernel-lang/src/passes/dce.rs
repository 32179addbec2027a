//! Dead code elimination: removes ops that have no effect and whose results are unused.
//!
//! ```text
//! ; before
//! kernel @k(%y: ptr_mut<i64>, %n: i64) {
//!     %0 = program_id : i64
//!     %1 = mul %0, %n : i64
//!     store %y, %0, %n
//!     return
//! }
//! ; after
//! kernel @k(%y: ptr_mut<i64>, %n: i64) {
//!     %0 = program_id : i64
//!     store %y, %0, %n
//!     return
//! }
//! ```
//!
//! Loops and `if`s without effects are removed, too. So are loads: reading memory is not an effect unless the load is volatile.

use crate::ir::rewrite::Changed;
use crate::ir::{Function, Handle, Inst, Op, Region};

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let mut live = vec![false; func.value_count()];
    sweep(func, func.body, &mut live)
}

/// Removes what a region does not need, and marks the values that it needs. The walk runs from the end, so that uses come before definitions. The
/// terminators of a loop use the values that it carries.
fn sweep(func: &mut Function, region: Region, live: &mut [bool]) -> Changed {
    let mut insts = std::mem::take(func.insts_mut(region));
    let mut changed = false;
    // The ops that stay gather at the end of the list.
    let mut first = insts.len();
    for at in (0..insts.len()).rev() {
        let inst = insts[at];
        if !is_needed(func, inst, live) {
            continue;
        }
        first -= 1;
        insts[first] = inst;
        let op = &func.inst(inst).op;
        op.for_each_operand(&mut |value| live[value.index()] = true);
        if op.has_regions() {
            let mut inner = Vec::new();
            op.for_each_region(&mut |region| inner.push(region));
            inner.into_iter().for_each(|region| changed |= sweep(func, region, live));
        }
    }
    changed |= first > 0;
    insts.drain(..first);
    *func.insts_mut(region) = insts;
    changed
}

fn is_needed(func: &Function, inst: Inst, live: &[bool]) -> bool {
    let data = func.inst(inst);
    data.results.iter().any(|value| live[value.index()]) || has_effects(func, inst)
}

/// An `if` or a loop has the effects of its regions. A `while` may never end, which is an effect.
fn has_effects(func: &Function, inst: Inst) -> bool {
    match &func.inst(inst).op {
        op @ (Op::If { .. } | Op::For { .. }) => {
            let mut effects = false;
            op.for_each_region(&mut |region| {
                let insts = &func.region(region).insts;
                effects |= insts.iter().any(|inst| !func.inst(*inst).op.is_terminator() && has_effects(func, *inst));
            });
            effects
        }
        op => op.has_effects(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unused_loop_goes_with_what_it_carries() {
        let text = "kernel @k(%y: ptr_mut<f32>, %n: i64) {
            %0 = const {value = 0} : i64
            %1 = const {value = 1} : i64
            %2 = for %0, %n, %1, %0 (%i: i64, %sum: i64) {
                %3 = add %sum, %i : i64
                yield %3
            } : i64
            return
        }";
        let mut func = crate::ir::parse(text).unwrap();
        assert!(run(&mut func));
        assert_eq!(func.region(func.body).insts.len(), 1);
        assert!(!run(&mut func));
    }
}
