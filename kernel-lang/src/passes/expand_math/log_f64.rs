//! `log` and `log2` of `f64`: x = 2^e (1 + r) with 1 + r in [0.707, 1.414], s = r / (2 + r), then
//! ln(1 + r) = ln((1 + s) / (1 - s)) = r - (r^2 / 2 - s (r^2 / 2 + z p(z))), z = s^2: the large term r is exact.

use crate::dtype::Dtype;
use crate::ir::{BinaryOp, CompareOp, Value};

use super::exp_f64::{LN_2_HIGH, LN_2_LOW};
use super::formula::Formula;

/// ln((1 + s) / (1 - s)) = 2 s + s z p(z); relative error 2^-59.
const LOG: [f64; 7] = [
    0.6666666666666734,
    0.39999999999416064,
    0.2857142874208758,
    0.22222198602850285,
    0.18183562847798954,
    0.15314086716178002,
    0.14795604304599705,
];
/// The bits of the float nearest to the root of 1/2.
const ROOT_HALF: i128 = 0x3fe6_a09e_667f_3bcd;
/// log2(e) = `LOG2_E_HIGH` + `LOG2_E_LOW`.
const LOG2_E_HIGH: f64 = std::f64::consts::LOG2_E;
const LOG2_E_LOW: f64 = 2.0355273740931033e-17;
const TWO_54: f64 = 18_014_398_509_481_984.0;

/// The r and e of x. A subnormal x is first scaled by 2^54. If x is not positive and finite, the results are finite but meaningless.
fn split(f: &mut Formula<'_>, x: Value) -> (Value, Value) {
    let is_tiny = f.compare_k(CompareOp::Lt, x, f64::MIN_POSITIVE);
    let scaled = f.mul_k(x, TWO_54);
    let normal = f.select(is_tiny, scaled, x);
    let (minus_54, zero) = (f.k(-54.0), f.k(0.0));
    let offset = f.select(is_tiny, minus_54, zero);

    let bits = f.bitcast(normal, Dtype::I64);
    let above = f.int_op(BinaryOp::Sub, bits, ROOT_HALF);
    let exponent = f.int_op(BinaryOp::Shr, above, 52);
    let field = f.int_op(BinaryOp::Shl, exponent, 52);
    let mantissa = f.binary(BinaryOp::Sub, bits, field);
    let mantissa = f.float(mantissa);
    let exponent = f.cast(exponent, Dtype::I32);
    let exponent = f.cast(exponent, Dtype::F64);
    (f.add_k(mantissa, -1.0), f.add(exponent, offset))
}

/// (r^2 / 2, s (r^2 / 2 + z p(z)))
fn parts(f: &mut Formula<'_>, r: Value) -> (Value, Value) {
    let sum = f.add_k(r, 2.0);
    let s = f.div(r, sum);
    let z = f.mul(s, s);
    let p = f.polynomial(z, &LOG);
    let half = f.mul_k(r, 0.5);
    let half_square = f.mul(half, r);
    let inner = f.fma(z, p, half_square);
    (half_square, f.mul(s, inner))
}

/// `result` for positive finite x; inf for inf, -inf for both zeros, NaN for NaN and negative x.
fn outside_domain(f: &mut Formula<'_>, x: Value, result: Value) -> Value {
    let infinity = f.k(f64::INFINITY);
    let other = f.fma(x, infinity, infinity);
    let is_zero = f.compare_k(CompareOp::Eq, x, 0.0);
    let minus_infinity = f.k(f64::NEG_INFINITY);
    let other = f.select(is_zero, minus_infinity, other);
    // As unsigned numbers, the bits of the positive finite floats range from 1 to the bits of inf minus 1.
    let bits = f.bits(x);
    let below = f.int_op(BinaryOp::Sub, bits, 1);
    let limit = f.int(0x7fef_ffff_ffff_ffff, below);
    let in_domain = f.compare(CompareOp::Lt, below, limit);
    f.select(in_domain, result, other)
}

pub(super) fn log(f: &mut Formula<'_>, x: Value) -> Value {
    let (r, e) = split(f, x);
    let (half_square, inner) = parts(f, r);
    let inner = f.fma_k(e, LN_2_LOW, inner);
    let tail = f.sub(half_square, inner);
    let ln = f.sub(r, tail);
    let result = f.fma_k(e, LN_2_HIGH, ln);
    outside_domain(f, x, result)
}

/// The product r log2(e) is kept in two floats, and so is its sum with e.
pub(super) fn log2(f: &mut Formula<'_>, x: Value) -> Value {
    let (r, e) = split(f, x);
    let (half_square, inner) = parts(f, r);
    let minus_tail = f.sub(inner, half_square);

    let log2_e = f.k(LOG2_E_HIGH);
    let high = f.mul(r, log2_e);
    let minus_high = f.neg(high);
    let low = f.fma(r, log2_e, minus_high);
    let low = f.fma_k(r, LOG2_E_LOW, low);
    let low = f.fma(minus_tail, log2_e, low);
    // e + high, exactly: e is 0 or larger than high.
    let sum = f.add(e, high);
    let taken = f.sub(sum, e);
    let lost = f.sub(high, taken);
    let low = f.add(low, lost);
    let result = f.add(sum, low);
    outside_domain(f, x, result)
}
