//! `erf` of `f64`: a polynomial near zero, 1 - e^p(|x|) beyond.

use crate::ir::{BinaryOp, CompareOp, Value};

use super::exp_f64::exp_normal;
use super::formula::Formula;

/// From this x on, 1 - erfc(x) loses no digits.
const LARGE: f64 = 1.0;
/// From this x on, erfc is below half an ulp of 1, and e^p stays constant.
const LIMIT: f64 = 5.9375;
/// erf(x) = x + x p(x^2) for |x| < 1; relative error 2^-56.3.
const SMALL: [f64; 13] = [
    0.1283791670955126,
    -0.3761263890318375,
    0.11283791670954857,
    -0.0268661706450729,
    0.005223977624780897,
    -0.0008548326978743887,
    0.00012055331036958146,
    -1.4925593508217899e-5,
    1.6460972837070245e-6,
    -1.6350025422969908e-7,
    1.4657881117443724e-8,
    -1.1365670651578695e-9,
    5.945269338633744e-11,
];
/// ln(erfc(x)) = p(x) in [1, 5.9375]; absolute error of erfc 2^-56.8.
const ERFC: [f64; 20] = [
    -2.3865453847158033e-7,
    -1.1283767697541824,
    -0.63663093755539,
    -0.1027406980063165,
    0.019066186561731997,
    0.00029621154743736795,
    -0.0017842157588447592,
    0.0006520170403096347,
    -5.03097525331529e-5,
    -6.867249386282674e-5,
    4.50049383941743e-5,
    -1.681362816711058e-5,
    4.520308637128797e-6,
    -9.238965066005151e-7,
    1.450211213002597e-7,
    -1.7276073568693734e-8,
    1.5142725389978297e-9,
    -9.215308053193616e-11,
    3.47732079309648e-12,
    -6.124052907009983e-14,
];

pub(super) fn erf(f: &mut Formula<'_>, x: Value) -> Value {
    let z = f.mul(x, x);
    let p = f.polynomial(z, &SMALL);
    let small = f.fma(p, x, x);

    let magnitude = f.abs(x);
    let limit = f.k(LIMIT);
    let clamped = f.binary(BinaryOp::Min, magnitude, limit);
    let p = f.polynomial(clamped, &ERFC);
    let erfc = exp_normal(f, p);
    let one = f.k(1.0);
    let large = f.sub(one, erfc);
    let large = f.with_sign_of(large, x);

    // NaN is not large.
    let is_large = f.compare_k(CompareOp::Ge, magnitude, LARGE);
    f.select(is_large, large, small)
}
