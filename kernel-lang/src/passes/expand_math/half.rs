//! `f16` and `bf16`: computed in `f32`, rounded once.
//!
//! The sum, difference, product, quotient and root of two halves, rounded to `f32` and then to the half, are correctly rounded: 24
//! digits are at least 2 p + 2 for p = 11 and p = 8 (Figueroa, "When is double rounding innocuous?", 1995). That does not hold of
//! `fma`: the exact sum may lie so close to the middle of two halves that `f32`, for `bf16` even `f64`, rounds it onto the middle.
//! So `fma` of halves stays; the targets have it (`fma.rn.f16`, `fma.rn.bf16`, from `sm_80` on).
//!
//! `neg` and `abs` only touch the sign bit. Comparisons, `min` and `max` are exact in `f32`.

use crate::dtype::Dtype;
use crate::ir::{BinaryOp, Builder, Op, Type, UnaryOp, Value};

use super::formula::Formula;

/// Appends what replaces an op whose first operand is a half, unless it stays.
pub(super) fn expand(mut build: Builder<'_>, op: &Op, operands: &[Value]) -> Option<Value> {
    let half = build.func.ty(operands[0]).dtype();
    match op {
        Op::Unary { op: UnaryOp::Neg, x } => Some(sign_bit(&mut build, BinaryOp::Xor, 0x8000, *x, half)),
        Op::Unary { op: UnaryOp::Abs, x } => Some(sign_bit(&mut build, BinaryOp::And, 0x7fff, *x, half)),
        Op::Unary { op, x } => {
            let x = build.cast(*x, Dtype::F32);
            let ty: Type = build.func.ty(x).clone();
            let mut f = Formula::new(build, ty);
            let result = super::function(&mut f, *op, x).unwrap_or_else(|| f.unary(*op, x));
            Some(f.cast(result, half))
        }
        Op::Binary { op, lhs, rhs } => {
            let (lhs, rhs) = (build.cast(*lhs, Dtype::F32), build.cast(*rhs, Dtype::F32));
            let result = build.binary(*op, lhs, rhs);
            Some(build.cast(result, half))
        }
        Op::Compare { op, lhs, rhs } => {
            let (lhs, rhs) = (build.cast(*lhs, Dtype::F32), build.cast(*rhs, Dtype::F32));
            Some(build.compare(*op, lhs, rhs))
        }
        _ => None,
    }
}

fn sign_bit(build: &mut Builder<'_>, op: BinaryOp, mask: i128, x: Value, half: Dtype) -> Value {
    let bits = build.bitcast(x, Dtype::U16);
    let mask = build.int_like(mask, bits);
    let bits = build.binary(op, bits, mask);
    build.bitcast(bits, half)
}
