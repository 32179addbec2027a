//! Along which runs of an axis a tile of truths does not change.
//!
//! `lane < 96` is the same for all of each four neighbours, because 96 is a multiple of 4: one predicate then guards a wide access. What is
//! the same for all lanes has runs as long as an axis can be.

use crate::analysis::affine::AffineFacts;
use crate::ir::{BinaryOp, CompareOp, Function, Op, UnaryOp, Value};

/// Longer than any axis.
const ALWAYS: u64 = 1 << 32;

/// The length, a power of two, of the aligned runs along an axis in each of which the elements are equal.
pub fn run(func: &Function, facts: &mut AffineFacts, mask: Value, axis: usize) -> u64 {
    if func.ty(mask).extents().get(axis).is_none_or(|extent| *extent == 1) {
        return ALWAYS;
    }
    match func.def_op(mask) {
        Some(Op::Const { .. }) => ALWAYS,
        Some(Op::Broadcast { x }) if func.ty(*x).is_scalar() => ALWAYS,
        Some(Op::Broadcast { x } | Op::Convert { x } | Op::Unary { op: UnaryOp::Not, x }) => run(func, facts, *x, axis),
        Some(Op::ExpandDims { x, axis: new }) => run(func, facts, *x, if axis < *new as usize { axis } else { axis - 1 }),
        Some(Op::Permute { x, order }) => run(func, facts, *x, order[axis] as usize),
        Some(Op::Binary { op: BinaryOp::And | BinaryOp::Or | BinaryOp::Xor, lhs, rhs }) => {
            run(func, facts, *lhs, axis).min(run(func, facts, *rhs, axis))
        }
        Some(Op::Compare { op, lhs, rhs }) => comparison(func, facts, (*op, *lhs, *rhs), axis),
        _ => 1,
    }
}

fn comparison(func: &Function, facts: &mut AffineFacts, (op, lhs, rhs): (CompareOp, Value, Value), axis: usize) -> u64 {
    if [lhs, rhs].iter().all(|side| facts.step(func, *side, axis) == Some(0)) {
        return ALWAYS;
    }
    let (Some(left), Some(right)) = (facts.get(func, lhs), facts.get(func, rhs)) else { return 1 };
    let difference = left.minus(&right);
    let others = difference.lanes.iter().enumerate().any(|(other, step)| other != axis && *step != 0);
    if !difference.uniform.is_empty() || others {
        return 1;
    }
    // The first lane on the other side: of `lane + c < 0`, of `c - lane < 0`, and of the same with `<=`.
    let c = difference.constant;
    let is_strict = matches!(op, CompareOp::Lt | CompareOp::Ge);
    let first = match (difference.lanes[axis], op) {
        (_, CompareOp::Eq | CompareOp::Ne) => return 1,
        (1, _) => c.wrapping_neg().wrapping_add(i64::from(!is_strict)),
        (-1, _) => c.wrapping_add(i64::from(is_strict)),
        _ => return 1,
    };
    let extent = func.ty(lhs).extents()[axis] as i64;
    if (1..extent).contains(&first) { 1 << first.trailing_zeros() } else { ALWAYS }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse;

    /// Every comparison of a lane with a number, against the truths themselves.
    #[test]
    fn runs_are_constant_and_no_longer_run_is() {
        for op in CompareOp::ALL {
            for (step, number) in (-9..40).flat_map(|number| [(1, number), (-1, number)]) {
                let text = format!(
                    "kernel @k(%y: ptr_mut<bool>) {{
                        %0 = arange {{start = 0, end = 32}} : tile<i64, [32]>
                        %1 = const {{value = {step}}} : tile<i64, [32]>
                        %2 = mul %0, %1 : tile<i64, [32]>
                        %3 = const {{value = {number}}} : tile<i64, [32]>
                        %4 = {} %2, %3 : tile<bool, [32]>
                        store %y, %0, %4
                        return
                    }}",
                    op.name()
                );
                let func = parse(&text).unwrap();
                let mask = func.all_insts().into_iter().map(|inst| func.inst(inst)).find(|data| matches!(data.op, Op::Compare { .. }));
                let found = run(&func, &mut AffineFacts::new(), mask.unwrap().results[0], 0);
                let truth = |lane: i64| {
                    let value = lane * step;
                    match op {
                        CompareOp::Eq => value == number,
                        CompareOp::Ne => value != number,
                        CompareOp::Lt => value < number,
                        CompareOp::Le => value <= number,
                        CompareOp::Gt => value > number,
                        CompareOp::Ge => value >= number,
                    }
                };
                let is_constant = |run: u64| (0..32).all(|lane| truth(lane) == truth(lane - lane % run.min(32) as i64));
                assert!(is_constant(found), "{found}: {text}");
                assert!(found >= 32 || !is_constant(2 * found) || matches!(op, CompareOp::Eq | CompareOp::Ne), "{found}: {text}");
            }
        }
    }
}
