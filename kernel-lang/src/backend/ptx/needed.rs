//! Which values must be in registers. Offsets of accesses, masks and indices are computed from their affine forms where they are used.

use rustc_hash::FxHashSet;

use super::arithmetic::compare::{PositionTest, bounds_test};
use super::memory;
use crate::analysis::affine::AffineFacts;
use crate::ir::{Function, Handle, Op, Value};

/// The values that must be in registers: all operands except offsets of accesses that are affine.
pub(super) fn needed(func: &Function, facts: &mut AffineFacts, kept: &FxHashSet<Value>) -> Vec<bool> {
    let mut needed = vec![false; func.value_count()];
    let mut insts = func.all_insts();
    insts.reverse();
    // Loops pass values backwards, so iterate to a fixpoint.
    loop {
        let mut changed = false;
        for inst in &insts {
            let data = func.inst(*inst);
            if !data.op.has_effects() && !data.results.iter().any(|result| needed[result.index()]) {
                continue;
            }
            let mut need = |value: Value| {
                changed |= !needed[value.index()];
                needed[value.index()] = true;
            };
            if let Op::Load { base, .. }
            | Op::Store { base, .. }
            | Op::Atomic { base, .. }
            | Op::AsyncCopy { base, .. }
            | Op::Report { base, .. } = &data.op
            {
                need(*base);
            }
            match &data.op {
                Op::Load { offset, mask, other, .. } => {
                    [*mask, *other].into_iter().flatten().for_each(&mut need);
                    offset_parts(func, facts, *offset).into_iter().for_each(need);
                }
                Op::Store { offset, value, mask, .. } => {
                    need(*value);
                    mask.iter().copied().for_each(&mut need);
                    offset_parts(func, facts, *offset).into_iter().for_each(need);
                }
                Op::Atomic { offset, values, mask, .. } => {
                    values.iter().copied().chain(*mask).for_each(&mut need);
                    offset_parts(func, facts, *offset).into_iter().for_each(need);
                }
                Op::AsyncCopy { slot, on, offset, mask, .. } => {
                    [*slot, *on].into_iter().chain(*mask).for_each(&mut need);
                    offset_parts(func, facts, *offset).into_iter().for_each(need);
                }
                Op::Report { offset, outside, .. } => {
                    need(*outside);
                    // It reports the whole index.
                    match facts.get(func, *offset) {
                        Some(affine) => affine.scalars().for_each(need),
                        None => need(*offset),
                    }
                }
                op if let Some(test) = data.results.first().and_then(|result| PositionTest::of(func, facts, op, *result, kept)) => {
                    test.operands().for_each(need);
                }
                op if let Some((_, index, length)) = bounds_test(func, facts, op) => {
                    index.scalars().for_each(&mut need);
                    need(length);
                }
                op => match data.results.first().filter(|result| func.ty(**result).is_tile()).and_then(|result| facts.get(func, *result)) {
                    // A tile of indices that is needed is computed from its affine form, whatever op defines it.
                    Some(affine) if op.is_pure() => affine.scalars().for_each(need),
                    _ => op.for_each_operand(&mut need),
                },
            }
        }
        if !changed {
            return needed;
        }
    }
}

/// The values from which an offset is computed.
fn offset_parts(func: &Function, facts: &mut AffineFacts, offset: Value) -> Vec<Value> {
    match facts.get(func, offset) {
        Some(affine) => affine.scalars().collect(),
        None => vec![memory::first_and_steps(func, facts, offset).map_or(offset, |(first, _)| first)],
    }
}
