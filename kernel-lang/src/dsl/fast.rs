//! Hardware approximations.
//!
//! They take one or two instructions each for `f32`, `f16` and `bf16`. For `f64`, and on the CPU, they are the accurate functions of the same
//! name. The error bounds are for `f32`: they are those of the PTX ISA, or follow from them. A bound stated as absolute gives few correct
//! digits, or none, for results near zero.

use super::{Value, only_in_a_kernel};

/// 2 to the power of `x`, within 2 ulp; for `f32` and `bf16`, results below 2^-126 are zero. It is one instruction; [`exp2`](super::exp2) of
/// `f32` takes four.
///
/// ```ignore
/// let r = fast_exp2(v);
/// ```
pub fn fast_exp2<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The logarithm of `x` to base 2: an absolute error of 2^-22 for results between -1 and 1, and a relative error of 2^-22 for others.
///
/// ```ignore
/// let r = fast_log2(v);
/// ```
pub fn fast_log2<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The square root, within 1 ulp. [`sqrt`](super::sqrt) is correctly rounded and takes about eight instructions.
///
/// ```ignore
/// let r = fast_sqrt(v);
/// ```
pub fn fast_sqrt<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The sine of `x` in radians: an absolute error of 2^-20.5 for |x| <= pi, larger beyond.
///
/// ```ignore
/// let r = fast_sin(v);
/// ```
pub fn fast_sin<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The cosine of `x` in radians: an absolute error of 2^-20.5 for |x| <= pi, larger beyond.
///
/// ```ignore
/// let r = fast_cos(v);
/// ```
pub fn fast_cos<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The hyperbolic tangent, with a relative error of 2^-11. This is enough for `f16` and `bf16`.
///
/// ```ignore
/// let r = fast_tanh(v);
/// ```
pub fn fast_tanh<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// `a / b`, within 2 ulp; subnormal operands and results may be treated as zero. The operator `a / b` is correctly rounded and takes about
/// ten instructions.
///
/// ```ignore
/// let r = fast_div(v, a);
/// ```
pub fn fast_div<T>(a: Value<T>, b: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// e to the power of `x`, as `fast_exp2(x * log2(e))`: within 2 + 1.3 |x| ulp. The error grows with |x| because the product is rounded.
///
/// ```ignore
/// let r = fast_exp(v);
/// ```
pub fn fast_exp<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// 10 to the power of `x`, as `fast_exp2(x * log2(10))`: within 2 + 2.6 |x| ulp.
///
/// ```ignore
/// let r = fast_exp10(v);
/// ```
pub fn fast_exp10<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The natural logarithm, from [`fast_log2`]: an absolute error of 2^-22 for results between -0.69 and 0.69, and a relative error of 2^-21
/// for others.
///
/// ```ignore
/// let r = fast_log(v);
/// ```
pub fn fast_log<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The logarithm to base 10, from [`fast_log2`]: an absolute error of 2^-23 for results between -0.3 and 0.3, and a relative error of 2^-21
/// for others.
///
/// ```ignore
/// let r = fast_log10(v);
/// ```
pub fn fast_log10<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// `x` to the power of `y` for positive `x`, as `fast_exp2(y * fast_log2(x))`: three instructions, with a relative error of about 2^-22 (1 +
/// |y log2(x)|). For negative `x` the result is NaN.
///
/// ```ignore
/// let r = fast_pow(abs(v), 0.75);
/// ```
pub fn fast_pow<T>(x: Value<T>, y: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The tangent, as the quotient of [`fast_sin`] and [`fast_cos`]: an absolute error of 2^-20.5 around 0, where few digits are correct.
///
/// ```ignore
/// let r = fast_tan(v);
/// ```
pub fn fast_tan<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// `1 / (1 + exp(-x))`, from [`fast_tanh`]: an absolute error of 2^-12. Small results have no correct digits.
///
/// ```ignore
/// let r = v * fast_sigmoid(v);
/// ```
pub fn fast_sigmoid<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}
