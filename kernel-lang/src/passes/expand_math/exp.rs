//! `exp` of `f32`, and the functions that use it: `sigmoid`, `tanh`.

use crate::ir::{BinaryOp, CompareOp, UnaryOp, Value};

use super::formula::Formula;

/// log2(e), rounded to `f32`.
const LOG2_E: f64 = 1.4426950216293335;
/// log2(e) = `LOG2_E_HIGH` + `LOG2_E_LOW` + 2^-32.5. The five digits of 23/16 make x `LOG2_E_HIGH` - n exact for large x.
const LOG2_E_HIGH: f64 = 1.4375;
const LOG2_E_LOW: f64 = 0.005195040721446276;
/// 2^n is a normal number for n from -126 to 127: a distance of 253.
const LEAST: f64 = -126.0;
const DISTANCE: f64 = 253.0;
/// 1.5 * 2^23 + 127. A float of this size has no fractional part, so that the sum with n rounds n to an integer. Its bits end with n + 127,
/// the exponent of 2^n as a float has it.
const ROUNDING: f64 = 12_583_039.0;

/// e^x = 2^n 2^r for r = x log2(e) - n.
///
/// n is x log2(e), rounded to an integer and clamped so that 2^n is normal. Thus |r| <= 1/2 up to rounding, and r has an absolute error of
/// 2^-25. If n is clamped, r is not small: 2^r is then what is missing, up to 0 and inf, and the last product rounds a subnormal result once.
/// The clamp is between 0 and 1, which costs no instruction: `fma.sat`. It makes NaN a number, but r is NaN if x is.
pub(super) fn exp(f: &mut Formula<'_>, x: Value) -> Value {
    let (scale, start) = (f.k(rounded(LOG2_E / DISTANCE)), f.k(rounded(-LEAST / DISTANCE)));
    let part = f.fma(x, scale, start);
    let (zero, one) = (f.k(0.0), f.k(1.0));
    let part = f.binary(BinaryOp::Max, part, zero);
    let part = f.binary(BinaryOp::Min, part, one);
    let (distance, rounding) = (f.k(DISTANCE), f.k(ROUNDING + LEAST));
    let shifted = f.fma(part, distance, rounding);

    let rounding = f.k(ROUNDING);
    let minus_n = f.sub(rounding, shifted);
    let r = f.fma_k(x, LOG2_E_HIGH, minus_n);
    let r = f.fma_k(x, LOG2_E_LOW, r);
    // The argument is subnormal only where the result is 1, and the result only where that of `exp` is 0.
    let power = f.unary(UnaryOp::ExpApproxFtz2, r);

    let bits = f.bits(shifted);
    let bits = f.int_op(BinaryOp::Shl, bits, 23);
    let whole = f.float(bits);
    f.mul(power, whole)
}

/// A constant that may be rounded: n need not be the nearest integer.
fn rounded(value: f64) -> f64 {
    f64::from(value as f32)
}

/// ln 2 = `LN_2_HIGH` + `LN_2_LOW`, both `f32`.
const LN_2_HIGH: f64 = 0.6931471824645996;
const LN_2_LOW: f64 = -1.9046542121259336e-09;

/// 2^t for the rounded t = x log2(e), and d = x - t ln 2, the error of the rounding: e^x = 2^t e^d = 2^t (1 + d), since |d| < 2^-17.
///
/// If x is infinite, or so large that t is infinite, d is not finite. Where e^x cannot overflow and a larger error does not matter, this takes
/// fewer registers than [`exp`].
fn split_exp(f: &mut Formula<'_>, x: Value) -> (Value, Value) {
    let t = f.mul_k(x, LOG2_E);
    let d = f.fma_k(t, -LN_2_HIGH, x);
    let d = f.fma_k(t, -LN_2_LOW, d);
    (f.unary(UnaryOp::ExpApprox2, t), d)
}

/// With e = exp(-|x|) and q = e / (1 + e): 1 - q for x >= 0 and e - e q for x < 0. So e never overflows, small results keep their digits,
/// and errors of q matter less than in a quotient.
pub(super) fn sigmoid(f: &mut Formula<'_>, x: Value) -> Value {
    let magnitude = f.abs(x);
    let negative = f.neg(magnitude);
    let (power, d) = split_exp(f, negative);
    // For infinite x, d is NaN, and if t overflows, d is inf. Both become a number, and 0 times a number is 0. `power` keeps NaN.
    let one = f.k(1.0);
    let d = f.binary(BinaryOp::Min, d, one);
    let e = f.fma(power, d, power);
    let minus_one = f.k(-1.0);
    let minus_sum = f.sub(minus_one, e);
    let inverse = f.unary(UnaryOp::RecipApprox, minus_sum);
    let minus_q = f.mul(e, inverse);
    let is_negative = f.compare_k(CompareOp::Lt, x, 0.0);
    let whole = f.select(is_negative, e, one);
    f.fma(minus_q, whole, whole)
}

/// From this x on, 1 - 2 / (e^2x + 1) loses no digits: tanh(x) is above 1/2.
const TANH_LARGE: f64 = 0.5625;
/// tanh(x) = x + x z p(z), z = x^2, for |x| < 0.5625; relative error 2^-24.4.
const TANH: [f64; 4] = [-0.3333287537097931, 0.1331905573606491, -0.052563611418008804, 0.016230067238211632];

pub(super) fn tanh(f: &mut Formula<'_>, x: Value) -> Value {
    let z = f.mul(x, x);
    let p = f.polynomial(z, &TANH);
    let w = f.fma_plus(p, z, 0.0);
    let small = f.fma(w, x, x);

    let magnitude = f.abs(x);
    let t = f.mul_k(magnitude, 2.0 * LOG2_E);
    let power = f.unary(UnaryOp::ExpApproxFtz2, t);
    let sum = f.add_k(power, 1.0);
    let inverse = f.unary(UnaryOp::RecipApprox, sum);
    let minus_two = f.k(-2.0);
    let large = f.fma_plus(inverse, minus_two, 1.0);
    let large = f.with_sign_of(large, x);

    // NaN is not large.
    let is_large = f.compare_k(CompareOp::Ge, magnitude, TANH_LARGE);
    f.select(is_large, large, small)
}
