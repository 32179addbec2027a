//! `log` and `log2`: x = 2^e (1 + r) with 1 + r in [0.707, 1.415), then a polynomial in r.

use crate::dtype::Dtype;
use crate::ir::{BinaryOp, CompareOp, Value};

use super::formula::Formula;

/// The bits of the `f32` nearest to the root of 1/2. With this split, e + log2(1 + r) is never in a lower binade than e + r log2(e).
const ROOT_HALF: i128 = 0x3f35_04f3;
/// ln(1 + r) = r + r^2 p(r); relative error 2^-25.2.
const LOG: [f64; 8] = [
    -0.49999991059303284,
    0.3333394527435303,
    -0.25001776218414307,
    0.19962240755558014,
    -0.1657031774520874,
    0.1491634100675583,
    -0.14307667315006256,
    0.0873875617980957,
];
/// log2(1 + r) = r log2(e) + r^2 p(r); relative error 2^-25.2.
const LOG2: [f64; 8] = [
    -0.7213473916053772,
    0.4809072017669678,
    -0.36069944500923157,
    0.28799355030059814,
    -0.23905734717845917,
    0.2152014821767807,
    -0.2064291536808014,
    0.12607932090759277,
];
const LN_2: f64 = 0.6931471824645996;
/// log2(e) - 5/4
const LOG2_E_REST: f64 = 0.1926950365304947;

/// The r and e of x. A subnormal x is first scaled by 2^23. If x is not positive and finite, the results are finite but meaningless.
fn split(f: &mut Formula<'_>, x: Value) -> (Value, Value) {
    let is_tiny = f.compare_k(CompareOp::Lt, x, f64::from(f32::MIN_POSITIVE));
    let scaled = f.mul_k(x, 8_388_608.0);
    let normal = f.select(is_tiny, scaled, x);
    let (minus_23, zero) = (f.k(-23.0), f.k(0.0));
    let offset = f.select(is_tiny, minus_23, zero);

    let bits = f.bits(normal);
    let above = f.int_op(BinaryOp::Sub, bits, ROOT_HALF);
    let exponent = f.int_op(BinaryOp::And, above, 0xff80_0000);
    let mantissa = f.binary(BinaryOp::Sub, bits, exponent);
    let mantissa = f.float(mantissa);
    let exponent = f.bitcast(exponent, Dtype::I32);
    let exponent = f.cast(exponent, Dtype::F32);
    let e = f.fma_k(exponent, 1.0 / 8_388_608.0, offset);
    (f.add_k(mantissa, -1.0), e)
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
    let limit = f.int(0x7f7f_ffff, below);
    let in_domain = f.compare(CompareOp::Lt, below, limit);
    f.select(in_domain, result, other)
}

pub(super) fn log(f: &mut Formula<'_>, x: Value) -> Value {
    let (r, e) = split(f, x);
    let p = f.polynomial(r, &LOG);
    let square = f.mul(r, r);
    let ln = f.fma(square, p, r);
    let result = f.fma_k(e, LN_2, ln);
    outside_domain(f, x, result)
}

pub(super) fn log2(f: &mut Formula<'_>, x: Value) -> Value {
    let (r, e) = split(f, x);
    let p = f.polynomial(r, &LOG2);
    // The rounded parts are small: r log2(e) is split into 5/4 r, which is exact in the fma, and the rest.
    let slope = f.fma_plus(r, p, LOG2_E_REST);
    let rest = f.fma(r, slope, e);
    let result = f.fma_k(r, 1.25, rest);
    outside_domain(f, x, result)
}
