//! Ranges of floats that are computed from indices, as an interpolation computes them:
//!
//! ```text
//! %2 = cast %1 : f32                 %1 has a range
//! %3 = mul (add %2, 0.5), 0.5
//! %4 = cast (max %3, 0.0) : i64      the same ops on the two ends of the range of %1
//! ```
//!
//! Each of these ops is monotone, also with its rounding: a larger operand never gives a smaller result. So the ops on the smallest and on the largest
//! index give bounds of all elements, and not even the rounding differs. No result is NaN: constants are finite, and no factor is 0.

use crate::dtype::Dtype;
use crate::ir::{BinaryOp, ConstExpr, Function, Op, UnaryOp, Value};

use super::bound::{Bound, Node};
use super::{Memo, Narrowed, Ranges};

/// Bounds of a float.
type Ends = (Bound, Bound);

impl Ranges<'_> {
    /// The range of a float after its cast to an integer.
    pub(super) fn of_cast(&mut self, x: Value, narrowed: &Narrowed, memo: &mut Memo<'_>) -> Option<Ends> {
        // A contracted op rounds less often than the ops on the ends.
        let (low, high) = if self.func.contract { None } else { self.of_float(x, narrowed, memo) }?;
        let [low, high] = [low, high].map(|bound| self.bounds.number(Node::Cast(Dtype::I64, bound)));
        Some((low, high))
    }

    /// The range of a float. The recursion is as deep as the chain of ops, which is limited.
    fn of_float(&mut self, x: Value, narrowed: &Narrowed, memo: &mut Memo<'_>) -> Option<Ends> {
        let func = self.func;
        let dtype = float(func, x).filter(|_| self.depths[x] > 0)?;
        match *func.def_op(x)? {
            Op::Cast { x: of } => {
                let (low, high) = if float(func, of).is_some() {
                    self.of_float(of, narrowed, memo)?
                } else {
                    let range = self.operand(of, narrowed, memo)?;
                    (range.low, range.high)
                };
                let [low, high] = [low, high].map(|bound| self.bounds.number(Node::Cast(dtype, bound)));
                Some((low, high))
            }
            Op::Unary { op: op @ (UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Rint | UnaryOp::Round | UnaryOp::Trunc), x } => {
                let (low, high) = self.of_float(x, narrowed, memo)?;
                let [low, high] = [low, high].map(|bound| self.bounds.number(Node::Unary(op, bound)));
                Some((low, high))
            }
            Op::Binary { op, lhs, rhs } => {
                // A commutative op may have its constant on either side.
                let (x, constant) = match (op, finite(func, lhs)) {
                    (BinaryOp::Add | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max, Some(constant)) => (rhs, constant),
                    _ => (lhs, finite(func, rhs)?),
                };
                let is_monotone = match op {
                    BinaryOp::Add | BinaryOp::Sub | BinaryOp::Min | BinaryOp::Max => true,
                    BinaryOp::Mul | BinaryOp::Div => constant > 0.0,
                    _ => false,
                };
                let (low, high) = if is_monotone { self.of_float(x, narrowed, memo) } else { None }?;
                let constant = self.bounds.number(Node::Float(dtype, constant.to_bits()));
                let [low, high] = [low, high].map(|bound| self.bounds.number(Node::Binary(op, bound, constant)));
                Some((low, high))
            }
            _ => None,
        }
    }
}

/// The type of a tile of `f32` or `f64`.
fn float(func: &Function, x: Value) -> Option<Dtype> {
    func.ty(x).elem().dtype().filter(|dtype| func.ty(x).is_tile() && matches!(dtype, Dtype::F32 | Dtype::F64))
}

/// The finite constant that every element equals. It is one of the tile's type: the ops on the ends round it no further.
fn finite(func: &Function, x: Value) -> Option<f64> {
    let constant = match func.splat(x)? {
        ConstExpr::Float(constant) if float(func, x) == Some(Dtype::F32) => f64::from(*constant as f32),
        ConstExpr::Float(constant) => *constant,
        _ => return None,
    };
    constant.is_finite().then_some(constant)
}
