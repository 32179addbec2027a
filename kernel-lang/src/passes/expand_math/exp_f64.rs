//! `exp`, `exp2`, `sigmoid` and `tanh` of `f64`.

use crate::dtype::Dtype;
use crate::ir::{BinaryOp, CompareOp, Value};

use super::formula::Formula;

/// 1.5 * 2^52. The sum of a float with it is an integer, which is in the low bits of the sum.
pub(super) const TO_INTEGER: f64 = 6_755_399_441_055_744.0;
const LOG2_E: f64 = std::f64::consts::LOG2_E;
/// ln 2 = `LN_2_HIGH` + `LN_2_LOW`; the high part has 32 bits, so that its products with integers below 2^20 are exact.
pub(super) const LN_2_HIGH: f64 = 0.6931471803691238;
pub(super) const LN_2_LOW: f64 = 1.9082149292705877e-10;
/// e^r = 1 + r + r^2 p(r) for |r| <= ln 2 / 2; relative error 2^-56.4.
const EXP: [f64; 10] = [
    0.5000000000000011,
    0.16666666666666413,
    0.04166666666653016,
    0.008333333333494555,
    0.0013888888943629745,
    0.00019841269506377436,
    2.4801493098910945e-5,
    2.7557586548670357e-6,
    2.7630248485210193e-7,
    2.5000008332431882e-8,
];
/// 2^r = 1 + r p(r) for |r| <= 1/2; relative error 2^-55.
const EXP2: [f64; 11] = [
    std::f64::consts::LN_2,
    0.2402265069591013,
    0.055504108664820084,
    0.009618129107594109,
    0.0013333558146774321,
    0.00015403530457124907,
    1.52527334933874e-5,
    1.3215435276485473e-6,
    1.0178199472965694e-7,
    7.073784171890645e-9,
    4.4347850559536367e-10,
];
/// The largest and the smallest x whose e^x is neither inf nor 0, or slightly beyond.
const EXP_HIGH: f64 = 709.8;
const EXP_LOW: f64 = -745.2;

/// e^x = y 2^n: y in [0.7, 1.42], and the float whose low bits hold n.
fn split_exp(f: &mut Formula<'_>, x: Value) -> (Value, Value) {
    let log2_e = f.k(LOG2_E);
    let shifted = f.fma_plus(x, log2_e, TO_INTEGER);
    let n = f.add_k(shifted, -TO_INTEGER);
    let r = f.fma_k(n, -LN_2_HIGH, x);
    let r = f.fma_k(n, -LN_2_LOW, r);
    let p = f.polynomial(r, &EXP);
    let square = f.mul(r, r);
    let s = f.fma(square, p, r);
    (f.add_k(s, 1.0), shifted)
}

/// y 2^n for any n whose result is a number, subnormals included: the product with two factors, of which only the second one rounds.
fn scale(f: &mut Formula<'_>, y: Value, shifted: Value) -> Value {
    let bits = f.bitcast(shifted, Dtype::I64);
    let n = f.int_op(BinaryOp::Sub, bits, i128::from(TO_INTEGER.to_bits()));
    let first = f.int_op(BinaryOp::Shr, n, 1);
    let second = f.binary(BinaryOp::Sub, n, first);
    let mut result = y;
    for part in [first, second] {
        let exponent = f.int_op(BinaryOp::Add, part, 1023);
        let bits = f.int_op(BinaryOp::Shl, exponent, 52);
        let factor = f.float(bits);
        result = f.mul(result, factor);
    }
    result
}

/// y 2^n if the result is a normal number: n is added to the exponent.
fn scale_normal(f: &mut Formula<'_>, y: Value, shifted: Value) -> Value {
    let bits = f.bits(shifted);
    let n = f.int_op(BinaryOp::Shl, bits, 52);
    let y = f.bits(y);
    let bits = f.binary(BinaryOp::Add, y, n);
    f.float(bits)
}

/// e^x if the result is a normal number.
pub(super) fn exp_normal(f: &mut Formula<'_>, x: Value) -> Value {
    let (y, shifted) = split_exp(f, x);
    scale_normal(f, y, shifted)
}

/// `result`, but 0 below `low` and inf above `high`.
fn limit(f: &mut Formula<'_>, x: Value, low: f64, high: f64, result: Value) -> Value {
    let is_low = f.compare_k(CompareOp::Lt, x, low);
    let zero = f.k(0.0);
    let result = f.select(is_low, zero, result);
    let is_high = f.compare_k(CompareOp::Gt, x, high);
    let infinity = f.k(f64::INFINITY);
    f.select(is_high, infinity, result)
}

pub(super) fn exp(f: &mut Formula<'_>, x: Value) -> Value {
    let (y, shifted) = split_exp(f, x);
    let result = scale(f, y, shifted);
    limit(f, x, EXP_LOW, EXP_HIGH, result)
}

pub(super) fn exp2(f: &mut Formula<'_>, x: Value) -> Value {
    let shifted = f.add_k(x, TO_INTEGER);
    let n = f.add_k(shifted, -TO_INTEGER);
    let r = f.sub(x, n);
    let p = f.polynomial(r, &EXP2);
    let y = f.fma_plus(r, p, 1.0);
    let result = scale(f, y, shifted);
    limit(f, x, -1075.0, 1024.0, result)
}

/// As for `f32`: with e = exp(-|x|), 1 / (1 + e) for x >= 0 and e / (1 + e) for x < 0.
pub(super) fn sigmoid(f: &mut Formula<'_>, x: Value) -> Value {
    let magnitude = f.abs(x);
    let negative = f.neg(magnitude);
    let (y, shifted) = split_exp(f, negative);
    let e = scale(f, y, shifted);
    let is_low = f.compare_k(CompareOp::Lt, negative, EXP_LOW);
    let zero = f.k(0.0);
    let e = f.select(is_low, zero, e);
    let sum = f.add_k(e, 1.0);
    let is_negative = f.compare_k(CompareOp::Lt, x, 0.0);
    let one = f.k(1.0);
    let numerator = f.select(is_negative, e, one);
    f.div(numerator, sum)
}

/// From this x on, 1 - 2 / (e^2x + 1) loses no digits.
const TANH_LARGE: f64 = 0.625;
/// From this x on, tanh is 1.
const TANH_LIMIT: f64 = 20.0;
/// tanh(x) = x + x z p(z), z = x^2, for |x| < 0.625; relative error 2^-56.
const TANH: [f64; 11] = [
    -0.33333333333332854,
    0.13333333333262098,
    -0.05396825393127061,
    0.02186948757614324,
    -0.008863221003104155,
    0.0035919891767519454,
    -0.0014549588900636089,
    0.0005863165733757257,
    -0.00022856426912154322,
    7.714442580134968e-5,
    -1.6072596278911356e-5,
];

pub(super) fn tanh(f: &mut Formula<'_>, x: Value) -> Value {
    let z = f.mul(x, x);
    let p = f.polynomial(z, &TANH);
    let w = f.fma_plus(p, z, 0.0);
    let small = f.fma(w, x, x);

    let magnitude = f.abs(x);
    let limit = f.k(TANH_LIMIT);
    let clamped = f.binary(BinaryOp::Min, magnitude, limit);
    let double = f.add(clamped, clamped);
    let power = exp_normal(f, double);
    let sum = f.add_k(power, 1.0);
    let minus_two = f.k(-2.0);
    let minus_rest = f.div(minus_two, sum);
    let large = f.add_k(minus_rest, 1.0);
    let large = f.with_sign_of(large, x);

    // NaN is not large.
    let is_large = f.compare_k(CompareOp::Ge, magnitude, TANH_LARGE);
    f.select(is_large, large, small)
}
