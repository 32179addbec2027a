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
    let mut changed = false;
    mark(func, func.body, &mut live);
    for region in func.regions_under(func.body) {
        let kept: Vec<Inst> = func.region(region).insts.iter().copied().filter(|inst| is_needed(func, *inst, &live)).collect();
        changed |= kept.len() != func.region(region).insts.len();
        *func.insts_mut(region) = kept;
    }
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

/// Marks the values that a region needs. The walk runs from the end, so that uses come before definitions. The terminators of a loop use
/// the values that it carries.
fn mark(func: &Function, region: Region, live: &mut [bool]) {
    for inst in func.region(region).insts.iter().rev() {
        if is_needed(func, *inst, live) {
            let op = &func.inst(*inst).op;
            op.for_each_region(&mut |inner| mark(func, inner, live));
            op.for_each_operand(&mut |value| live[value.index()] = true);
        }
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
