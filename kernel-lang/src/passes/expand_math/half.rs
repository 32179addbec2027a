//! Half precision: ops of `f16` and `bf16` are computed in `f32` and rounded once.
//!
//! The sum, difference, product, quotient and root of two halves, rounded to `f32` and then to the half, are correctly rounded: 24 binary
//! digits are at least 2 p + 2 for p = 11 and p = 8 (Figueroa, "When is double rounding innocuous?", 1995). This does not hold for `fma`:
//! the exact sum may be so close to the middle of two halves that `f32`, and for `bf16` even `f64`, rounds it to the middle. So `fma` of
//! halves stays; the targets have it (`fma.rn.f16`, `fma.rn.bf16`, from `sm_80` on).
//!
//! Floats of 8 bits have only comparisons.
//!
//! `neg`, `abs` and `copysign` only touch the sign bit. Comparisons, `min` and `max` are exact in `f32`.
//!
//! If a half needs fewer digits than `f32` gives, the formula is shorter: 14 digits are enough for an error of one ulp of `f16`.

use crate::dtype::Dtype;
use crate::ir::{BinaryOp, Builder, CompareOp, Op, Type, UnaryOp, Value};

use super::formula::Formula;

const LOG2_E: f64 = 1.4426950216293335;
const LN_2: f64 = 0.6931471824645996;
/// ln(1 + r) = r + r^2 p(r) for |r| < 1/16; relative error 2^-20.9.
const LOG: [f64; 3] = [-0.4999995827674866, 0.33398208022117615, -0.2506924569606781];
/// log2(1 + r) = r log2(e) + r^2 p(r) for |r| < 1/16; relative error 2^-20.9.
const LOG2: [f64; 3] = [-0.721346914768219, 0.4818343222141266, -0.36167365312576294];

/// Appends the replacement of an op whose first operand is narrower than `f32`, unless the op stays.
pub(super) fn expand(mut build: Builder<'_>, op: &Op, operands: &[Value]) -> Option<Value> {
    let half = build.func.ty(operands[0]).dtype();
    match op {
        Op::Unary { op: UnaryOp::Neg, x } => Some(sign_bit(&mut build, BinaryOp::Xor, 0x8000, *x, half)),
        Op::Unary { op: UnaryOp::Abs, x } => Some(sign_bit(&mut build, BinaryOp::And, 0x7fff, *x, half)),
        Op::Unary { op, x } => {
            let x = build.cast(*x, Dtype::F32);
            let ty: Type = build.func.ty(x).clone();
            let mut f = Formula::new(build, ty);
            let result = match op {
                UnaryOp::Exp2 => exp2(&mut f, x, half),
                UnaryOp::Exp => exp(&mut f, x, half),
                UnaryOp::Sigmoid => sigmoid(&mut f, x, half),
                UnaryOp::Log => log(&mut f, x, LN_2, 1.0, &LOG),
                UnaryOp::Log2 => log(&mut f, x, 1.0, LOG2_E, &LOG2),
                op => super::function(&mut f, *op, x).unwrap_or_else(|| f.unary(*op, x)),
            };
            Some(f.cast(result, half))
        }
        Op::Binary { op: BinaryOp::CopySign, lhs, rhs } => {
            let magnitude = masked(&mut build, *lhs, 0x7fff);
            let sign = masked(&mut build, *rhs, 0x8000);
            let bits = build.binary(BinaryOp::Or, magnitude, sign);
            Some(build.bitcast(bits, half))
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

/// The bits that `mask` selects, as `u16`.
fn masked(build: &mut Builder<'_>, x: Value, mask: i128) -> Value {
    let bits = build.bitcast(x, Dtype::U16);
    let mask = build.int_like(mask, bits);
    build.binary(BinaryOp::And, bits, mask)
}

fn sign_bit(build: &mut Builder<'_>, op: BinaryOp, mask: i128, x: Value, half: Dtype) -> Value {
    let bits = build.bitcast(x, Dtype::U16);
    let mask = build.int_like(mask, bits);
    let bits = build.binary(op, bits, mask);
    build.bitcast(bits, half)
}

/// 2^(x log2(e)). If the result is not 0 or inf, |x| < 134, so the rounding of the exponent costs 2^-17.
fn exp(f: &mut Formula<'_>, x: Value, half: Dtype) -> Value {
    let t = f.mul_k(x, LOG2_E);
    exp2(f, t, half)
}

/// A result that is too small for a normal `f32` is zero as `f16`, but not as `bf16`.
fn exp2(f: &mut Formula<'_>, x: Value, half: Dtype) -> Value {
    f.unary(if half == Dtype::F16 { UnaryOp::ExpApproxFtz2 } else { UnaryOp::ExpApprox2 }, x)
}

/// For `f16`, e^-x overflows only if the result is 0. For `bf16`, whose range is that of `f32`, e = exp(-|x|) never overflows, and the
/// result is e / (1 + e) for x < 0.
fn sigmoid(f: &mut Formula<'_>, x: Value, half: Dtype) -> Value {
    let magnitude = if half == Dtype::Bf16 { f.abs(x) } else { x };
    let t = f.mul_k(magnitude, -LOG2_E);
    let e = exp2(f, t, half);
    let sum = f.add_k(e, 1.0);
    let inverse = f.unary(UnaryOp::RecipApprox, sum);
    if half == Dtype::F16 {
        return inverse;
    }
    let small = f.mul(e, inverse);
    let is_negative = f.compare_k(CompareOp::Lt, x, 0.0);
    f.select(is_negative, small, inverse)
}

/// The device's `log2`, with an absolute error of 2^-22, times `factor`. If the result is near zero: r = x - 1, which is exact, and r
/// `slope` + r^2 p(r).
fn log(f: &mut Formula<'_>, x: Value, factor: f64, slope: f64, p: &[f64]) -> Value {
    let mut far = f.unary(UnaryOp::LogApprox2, x);
    if factor != 1.0 {
        far = f.mul_k(far, factor);
    }
    let r = f.add_k(x, -1.0);
    let p = f.polynomial(r, p);
    let p = f.fma_plus(p, r, slope);
    let near = f.mul(p, r);
    let distance = f.abs(r);
    let is_near = f.compare_k(CompareOp::Lt, distance, 1.0 / 16.0);
    f.select(is_near, near, far)
}
