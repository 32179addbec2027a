//! Atomic operations on one element.

use crate::dtype::Dtype;
use crate::ir::{AtomicOp, BinaryOp};
use crate::scalar::{Scalar, binary};

/// The new value of an element; `None` if the types differ or the op does not support them.
///
/// ```
/// use kernel_lang::dtype::Dtype;
/// use kernel_lang::ir::{AtomicOp, ConstExpr};
/// use kernel_lang::scalar::{self, Scalar};
///
/// let f32 = |value| Scalar::from_const(&ConstExpr::Float(value), Dtype::F32).unwrap();
/// assert_eq!(scalar::atomic(AtomicOp::Max, f32(-0.0), &[f32(0.0)]), Some(f32(0.0)));
/// assert_eq!(scalar::atomic(AtomicOp::Max, f32(1.0), &[f32(f64::NAN)]), Some(f32(1.0)));
/// assert_eq!(scalar::atomic(AtomicOp::CompareAndSwap, f32(1.0), &[f32(1.0), f32(2.0)]), Some(f32(2.0)));
/// ```
#[inline]
pub fn atomic(op: AtomicOp, old: Scalar, operands: &[Scalar]) -> Option<Scalar> {
    let fits = op.dtypes().contains(&old.dtype()) && operands.iter().all(|operand| operand.dtype() == old.dtype());
    if !fits || operands.len() != op.operands() {
        return None;
    }
    let with = |op: BinaryOp| binary(op, old, operands[0]);
    match op {
        AtomicOp::Load => Some(old),
        AtomicOp::Store | AtomicOp::Exchange => Some(operands[0]),
        AtomicOp::CompareAndSwap => Some(if old == operands[0] { operands[1] } else { old }),
        AtomicOp::And => with(BinaryOp::And),
        AtomicOp::Or => with(BinaryOp::Or),
        AtomicOp::Xor => with(BinaryOp::Xor),
        AtomicOp::Add if old.dtype() == Dtype::F32 => Some(sum_of_f32(old, operands[0])),
        AtomicOp::Add => with(BinaryOp::Add),
        AtomicOp::Max | AtomicOp::Min if old.dtype().is_float() => Some(extreme(op == AtomicOp::Max, old, operands[0])),
        AtomicOp::Max => with(BinaryOp::Max),
        AtomicOp::Min => with(BinaryOp::Min),
    }
}

/// GPUs add `f32` in the memory system, which flushes subnormals to zeros of their sign (PTX ISA, 9.7.13.5).
#[inline]
fn sum_of_f32(old: Scalar, operand: Scalar) -> Scalar {
    let flushed = |value: f32| if value.is_subnormal() { 0f32.copysign(value) } else { value };
    let [old, operand] = [old, operand].map(|scalar| flushed(f32::from_bits(scalar.bits() as u32)));
    Scalar::from_bits(Dtype::F32, flushed(old + operand).to_bits().into())
}

/// The maximum or minimum in the total order of IEEE 754; a NaN operand changes nothing.
#[inline]
fn extreme(is_max: bool, old: Scalar, operand: Scalar) -> Scalar {
    let (is_nan, order) = match old.dtype() {
        Dtype::F32 => {
            let [a, b] = [old, operand].map(|scalar| f32::from_bits(scalar.bits() as u32));
            (b.is_nan(), b.total_cmp(&a))
        }
        _ => {
            let [a, b] = [old, operand].map(|scalar| f64::from_bits(scalar.bits()));
            (b.is_nan(), b.total_cmp(&a))
        }
    };
    let is_better = if is_max { order.is_gt() } else { order.is_lt() };
    if is_better && !is_nan { operand } else { old }
}
