//! `erf` of `f32`: a polynomial near zero, 1 - 2^p(|x|) beyond.

use crate::ir::{BinaryOp, CompareOp, UnaryOp, Value};

use super::formula::Formula;

/// From this x on, 1 - erfc(x) loses no digits.
const LARGE: f64 = 0.9375;
/// From this x on, erfc is below half an ulp of 1, and 2^p stays constant.
const LIMIT: f64 = 3.9375;
/// erf(x) = x + x p(x^2) for |x| < 0.95; relative error 2^-25.1.
const SMALL: [f64; 6] =
    [0.12837913632392883, -0.3761240839958191, 0.11280950158834457, -0.026736237108707428, 0.004950141068547964, -0.0005779279163107276];
/// log2(erfc(x)) = p(x) in [0.95, 3.95]; absolute error of erfc 2^-29.
const ERFC: [f64; 7] = [
    -0.00037002607132308185,
    -1.6265318393707275,
    -0.9198626279830933,
    -0.14941537380218506,
    0.03181435167789459,
    -0.004327458329498768,
    0.00027628891984932125,
];

pub(super) fn erf(f: &mut Formula<'_>, x: Value) -> Value {
    let z = f.mul(x, x);
    let p = f.polynomial(z, &SMALL);
    let small = f.fma(p, x, x);

    let magnitude = f.abs(x);
    let limit = f.k(LIMIT);
    let clamped = f.binary(BinaryOp::Min, magnitude, limit);
    let p = f.polynomial(clamped, &ERFC);
    let erfc = f.unary(UnaryOp::ExpApproxFtz2, p);
    let one = f.k(1.0);
    let large = f.sub(one, erfc);
    let large = f.with_sign_of(large, x);

    // NaN is not large.
    let is_large = f.compare_k(CompareOp::Ge, magnitude, LARGE);
    f.select(is_large, large, small)
}
