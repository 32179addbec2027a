//! Masks by position: masks of a remainder loop compare an element's position in its tile, which fits in 32 bits, instead of its index.
//!
//! ```text
//! %i + %columns < %n                   %columns < %n - %i, if neither side overflows
//! ```

use crate::analysis::affine::{Affine, AffineFacts};
use crate::analysis::loops::Loop;
use crate::analysis::masks::Comparison;
use crate::analysis::polynomial::Product;
use crate::ir::{BinaryOp, Builder, CompareOp, Function, Op, SideTable, Value, postorder};

/// Rewrites masks of the loop's body that compare `start + position` with a number, so that they compare the position instead. The pass
/// does this only if `start` is known to be neither negative nor near the end of 64 bits.
pub(super) fn mask_by_position(func: &mut Function, around: &Loop, facts: &mut AffineFacts, bits: &mut Bits) {
    let mut out = Vec::new();
    for inst in func.region(around.body).insts.clone() {
        if let Some(Comparison { op: CompareOp::Lt, index, extents, limit, .. }) = Comparison::of(func, facts, &func.inst(inst).op)
            && index.start.as_constant().is_none()
            && index.maximum_offset(&extents).is_some()
            && is_small(func, around, &index, bits)
        {
            let (loc, shape) = (func.inst(inst).loc, func.ty(func.result(inst)).shape().to_vec());
            let scratch = func.add_region();
            let b = &mut Builder::new(func, scratch, loc);
            let (start, limit, zero) = (index.uniform_value(b), limit.value(b), b.index(0));
            let limit = b.binary(BinaryOp::Max, limit, zero);
            let limit = b.binary(BinaryOp::Sub, limit, start);
            let rhs = b.broadcast(limit, &shape);
            let lhs = index.strides_value(b, &shape);
            out.append(func.insts_mut(scratch));
            func.inst_mut(inst).op = Op::Compare { op: CompareOp::Lt, lhs, rhs };
        }
        out.push(inst);
    }
    *func.insts_mut(around.body) = out;
}

/// Is the start of the index at least 0 and less than 2^62? For a loop index this holds if it begins small and takes small steps: it would
/// need 2^40 iterations to get there, and no program runs that long.
fn is_small(func: &Function, around: &Loop, affine: &Affine, bits: &mut Bits) -> bool {
    const STEP: i64 = 1 << 20;
    let (index, step) = (around.index(func), around.constant_step(func));
    let is_small_term = |(factors, coefficient): &(Product, i64)| {
        let [value] = &factors[..] else { return false };
        let begins = if *value == index { around.lower } else { *value };
        let slow = *value != index || step.and_then(|step| step.checked_mul(*coefficient)).is_some_and(|step| step <= STEP);
        let bits = bits.get(func, begins);
        *coefficient > 0 && slow && bits.is_some_and(|bits| bits + coefficient.ilog2() < 58)
    };
    affine.start.terms.len() <= 4 && affine.start.terms.iter().all(is_small_term) && (0..1 << 60).contains(&affine.start.constant)
}

/// For values that are at least 0 and less than `2^bits`: a number of such bits. Each is computed once.
#[derive(Default)]
pub(super) struct Bits {
    known: SideTable<Value, Option<Option<u32>>>,
}

impl Bits {
    fn get(&mut self, func: &Function, value: Value) -> Option<u32> {
        let enter = |cx: &mut Bits, value: Value, before: &mut Vec<Value>| {
            let is_new = cx.known[value].is_none();
            if is_new && let Some(Op::Binary { op: BinaryOp::Add | BinaryOp::Mul, lhs, rhs }) = func.def_op(value) {
                before.extend([*lhs, *rhs]);
            }
            is_new
        };
        postorder(self, value, enter, |cx, value| {
            let bits = cx.of(func, value);
            cx.known[value] = Some(bits);
        });
        self.known[value].flatten()
    }

    fn of(&self, func: &Function, value: Value) -> Option<u32> {
        let known = |value: &Value| self.known[*value].flatten();
        match func.def_op(value)? {
            Op::Const { value } => value.as_int().filter(|value| (0..1 << 62).contains(value)).map(|value| (value + 1).ilog2() + 1),
            Op::ProgramId { .. } | Op::NumPrograms { .. } => Some(32),
            Op::Binary { op: BinaryOp::Add, lhs, rhs } => Some(known(lhs)?.max(known(rhs)?) + 1).filter(|bits| *bits < 63),
            Op::Binary { op: BinaryOp::Mul, lhs, rhs } => Some(known(lhs)? + known(rhs)?).filter(|bits| *bits < 63),
            _ => None,
        }
    }
}
