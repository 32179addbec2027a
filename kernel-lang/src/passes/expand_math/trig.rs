//! `sin`, `cos` and `tan` of `f32`: after `reduce_pio2`, polynomials on [-pi/4, pi/4].
//!
//! | quadrant | sin | cos | tan |
//! |---|---|---|---|
//! | 0 | s | c | t |
//! | 1 | c | -s | -1/t |
//! | 2 | -s | -c | t |
//! | 3 | -c | s | -1/t |

use crate::ir::{BinaryOp, CompareOp, UnaryOp, Value};

use super::formula::Formula;

/// sin(r) = r + r z p(z), z = r^2; relative error 2^-27.9.
const SIN: [f64; 3] = [-0.16666655242443085, 0.008332189172506332, -0.00019518285989761353];
/// cos(r) = 1 - z/2 + z^2 p(z); relative error 2^-33.
const COS: [f64; 3] = [0.04166664555668831, -0.0013887309469282627, 2.4432327336398885e-5];
/// tan(r) = r + r z p(z); relative error 2^-25.7.
const TAN: [f64; 6] = [
    0.33333155512809753,
    0.13338835537433624,
    0.05340820178389549,
    0.024441389366984367,
    0.003101490903645754,
    0.009396516717970371,
];

/// r + r z p(z), with the sign of a zero r.
fn odd(f: &mut Formula<'_>, r: Value, z: Value, p: &[f64]) -> Value {
    let p = f.polynomial(z, p);
    let w = f.fma_plus(p, z, 0.0);
    f.fma(w, r, r)
}

/// The sine of the angle of `quadrant` quarter turns and r more.
fn sin_of_parts(f: &mut Formula<'_>, r: Value, quadrant: Value) -> Value {
    let z = f.mul(r, r);
    let sin = odd(f, r, z, &SIN);
    let p = f.polynomial(z, &COS);
    let minus_half = f.k(-0.5);
    let q = f.fma(p, z, minus_half);
    let cos = f.fma_plus(q, z, 1.0);
    let is_odd = is_odd(f, quadrant);
    let magnitude = f.select(is_odd, cos, sin);
    // Bit 1 of the quadrant is the sign.
    let half_turn = f.int_op(BinaryOp::And, quadrant, 2);
    let sign = f.int_op(BinaryOp::Shl, half_turn, 30);
    let sign = f.bitcast(sign, crate::dtype::Dtype::U32);
    let bits = f.bits(magnitude);
    let bits = f.binary(BinaryOp::Xor, bits, sign);
    f.from_bits(bits)
}

fn is_odd(f: &mut Formula<'_>, quadrant: Value) -> Value {
    let low = f.int_op(BinaryOp::And, quadrant, 1);
    let zero = f.int(0, low);
    f.compare(CompareOp::Ne, low, zero)
}

pub(super) fn sin(f: &mut Formula<'_>, x: Value) -> Value {
    let (r, quadrant) = f.reduce_pio2(x);
    sin_of_parts(f, r, quadrant)
}

pub(super) fn cos(f: &mut Formula<'_>, x: Value) -> Value {
    let (r, quadrant) = f.reduce_pio2(x);
    let quadrant = f.int_op(BinaryOp::Add, quadrant, 1);
    sin_of_parts(f, r, quadrant)
}

pub(super) fn tan(f: &mut Formula<'_>, x: Value) -> Value {
    let (r, quadrant) = f.reduce_pio2(x);
    let z = f.mul(r, r);
    let tan = odd(f, r, z, &TAN);
    let minus_tan = f.neg(tan);
    let turned = f.unary(UnaryOp::RecipApprox, minus_tan);
    let is_odd = is_odd(f, quadrant);
    f.select(is_odd, turned, tan)
}
