//! Masks by position: masks of a remainder loop compare an element's position in its tile, which fits in 32 bits, instead of its index.
//!
//! ```text
//! %i + %columns < %n                   %columns < %n - %i, if neither side overflows
//! ```

use crate::analysis::affine::{Affine, AffineFacts};
use crate::analysis::bits::Bits;
use crate::analysis::loops::Loop;
use crate::analysis::masks::Comparison;
use crate::ir::{BinaryOp, Builder, CompareOp, Function, Op};

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
    let scale = affine.start.coefficient(index).and_then(|scale| scale.as_constant());
    let is_slow = scale.is_some_and(|scale| scale == 0 || step.and_then(|step| step.checked_mul(scale)).is_some_and(|step| step <= STEP));
    is_slow && bits.are_few(func, &affine.start.map(&|value| if value == index { around.lower } else { value }))
}
