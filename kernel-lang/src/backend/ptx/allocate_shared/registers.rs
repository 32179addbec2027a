//! The tiles whose elements a thread has in one register: constants, broadcast scalars, and what is computed from these alone. An op that moves elements moves
//! nothing of such a tile.

use super::Placement;
use crate::backend::ptx::arithmetic::compare::{PositionTest, bounds_test};
use crate::ir::{BinaryOp, Handle, InstData, Op};

impl Placement<'_> {
    /// Records which results of an op need a register for each element.
    pub(super) fn note_registers(&mut self, data: &InstData) {
        let func = self.func;
        for result in &data.results {
            let ty = func.ty(*result);
            self.each[*result] = match &data.op {
                Op::LocalLoad { .. } => true,
                op if ty.is_tile() && op.is_pure() && self.facts.get(func, *result).is_some() => true,
                Op::Binary { op: BinaryOp::Mul, .. } if self.summed[result.index()] => true,
                Op::Const { .. } => false,
                Op::Compare { .. } => {
                    self.any_operand(&data.op)
                        || PositionTest::of(func, &mut self.facts, &data.op, *result, &self.kept).is_some()
                        || bounds_test(func, &mut self.facts, &data.op).is_some()
                }
                // The number of such a shift is a part of the instruction.
                Op::Binary { op: BinaryOp::Shl | BinaryOp::Shr, lhs, rhs } if func.splat(*rhs).is_some_and(|by| by.as_int().is_some()) => {
                    self.each[*lhs]
                }
                Op::Broadcast { x } | Op::ExpandDims { x, .. } | Op::Reshape { x } | Op::Permute { x, .. } => {
                    self.each[*x] && func.ty(*x).numel() > 1
                }
                Op::Unary { .. }
                | Op::Binary { .. }
                | Op::Fma { .. }
                | Op::Select { .. }
                | Op::Cast { .. }
                | Op::Bitcast { .. }
                | Op::ReducePio2 { .. }
                | Op::InlinePtx { .. }
                | Op::Flip { .. }
                | Op::Convert { .. }
                | Op::Butterfly { .. } => self.any_operand(&data.op),
                _ => ty.is_tile(),
            };
        }
    }

    fn any_operand(&self, op: &Op) -> bool {
        let mut any = false;
        op.for_each_operand(&mut |operand| any |= self.each[operand]);
        any
    }
}
