//! `exp` of `f32`, and the functions that use it: `sigmoid`, `tanh`.

use crate::ir::{BinaryOp, CompareOp, UnaryOp, Value};

use super::formula::Formula;

/// log2(e), rounded to `f32`.
const LOG2_E: f64 = 1.4426950216293335;
/// ln 2 = `LN_2_HIGH` + `LN_2_LOW`, both `f32`.
const LN_2_HIGH: f64 = 0.6931471824645996;
const LN_2_LOW: f64 = -1.9046542121259336e-09;

/// 2^t for the rounded t = x log2(e), and d = x - t ln 2, the error of the rounding: e^x = 2^t e^d = 2^t (1 + d), since |d| < 2^-17.
///
/// If x is infinite, or so large that t is infinite, d is not finite.
fn split_exp(f: &mut Formula<'_>, x: Value) -> (Value, Value) {
    let t = f.mul_k(x, LOG2_E);
    let d = f.fma_k(t, -LN_2_HIGH, x);
    let d = f.fma_k(t, -LN_2_LOW, d);
    (f.unary(UnaryOp::ExpApprox2, t), d)
}

/// If 2^t is 0 or inf, or x is infinite, `2^t d + 2^t` may be NaN. The result is then 2^t itself, which is NaN only if x is NaN.
pub(super) fn exp(f: &mut Formula<'_>, x: Value) -> Value {
    let (power, d) = split_exp(f, x);
    let corrected = f.fma(power, d, power);
    let is_number = f.compare(CompareOp::Eq, corrected, corrected);
    f.select(is_number, corrected, power)
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
