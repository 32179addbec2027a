//! `log` and `log2`: x = 2^e (1 + r) with 1 + r in [2/3, 4/3), then a polynomial in r.

use crate::dtype::Dtype;
use crate::ir::{BinaryOp, CompareOp, Value};

use super::formula::Formula;

/// The bits of the `f32` 2/3, rounded up.
const TWO_THIRDS: i128 = 0x3f2a_aaab;
/// ln(1 + r) = r + r^2 p(r); relative error 2^-25.2.
const LOG: [f64; 8] = [
    -0.49999937415122986,
    0.33333200216293335,
    -0.2500774562358856,
    0.2001107931137085,
    -0.1641709804534912,
    0.13996998965740204,
    -0.15383216738700867,
    0.14021331071853638,
];
/// log2(1 + r) = r log2(e) + r^2 p(r); relative error 2^-25.2.
const LOG2: [f64; 8] = [
    -0.7213466167449951,
    0.4808964133262634,
    -0.360785573720932,
    0.28869932889938354,
    -0.2368474304676056,
    0.20192837715148926,
    -0.22193913161754608,
    0.20230650901794434,
];
const LN_2: f64 = 0.6931471824645996;
/// log2(e) = `LOG2_E_HIGH` + `LOG2_E_LOW`, both `f32`.
const LOG2_E_HIGH: f64 = 1.4426950216293335;
const LOG2_E_LOW: f64 = 1.925963033500011e-08;

/// The r and e of x; a subnormal x is scaled by 2^23 first. Finite nonsense where x is not positive and finite.
fn split(f: &mut Formula<'_>, x: Value) -> (Value, Value) {
    let is_tiny = f.compare_k(CompareOp::Lt, x, f64::from(f32::MIN_POSITIVE));
    let scaled = f.mul_k(x, 8_388_608.0);
    let normal = f.select(is_tiny, scaled, x);
    let (minus_23, zero) = (f.k(-23.0), f.k(0.0));
    let offset = f.select(is_tiny, minus_23, zero);

    let bits = f.bits(normal);
    let above = f.int_op(BinaryOp::Sub, bits, TWO_THIRDS);
    let exponent = f.int_op(BinaryOp::And, above, 0xff80_0000);
    let mantissa = f.binary(BinaryOp::Sub, bits, exponent);
    let mantissa = f.float(mantissa);
    let exponent = f.bitcast(exponent, Dtype::I32);
    let exponent = f.cast(exponent, Dtype::F32);
    let e = f.fma_k(exponent, 1.0 / 8_388_608.0, offset);
    (f.add_k(mantissa, -1.0), e)
}

/// `result` for positive finite x; inf for inf, -inf for both zeros, NaN for NaN and all below zero.
fn outside_domain(f: &mut Formula<'_>, x: Value, result: Value) -> Value {
    let infinity = f.k(f64::INFINITY);
    let other = f.fma(x, infinity, infinity);
    let is_zero = f.compare_k(CompareOp::Eq, x, 0.0);
    let minus_infinity = f.k(f64::NEG_INFINITY);
    let other = f.select(is_zero, minus_infinity, other);
    // As unsigned numbers, the bits of the positive finite floats are those from 1 to the one before inf.
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
    let slope = f.fma_plus(r, p, LOG2_E_LOW);
    let high = f.fma_k(r, LOG2_E_HIGH, e);
    let result = f.fma(r, slope, high);
    outside_domain(f, x, result)
}
