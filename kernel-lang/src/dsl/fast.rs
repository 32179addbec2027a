//! The device's own approximations: an instruction or two each, for `f32`, `f16` and `bf16`; of `f64` they are the exact functions of the
//! same name. On the CPU they are as exact as those. Bounds are of the PTX ISA, and are not met by all inputs in units in the last place:
//! where they say "absolute", results near zero have few correct digits or none.

use super::{Value, only_in_a_kernel};

/// 2 to the power of `x`: within 2 ulp; of `f32` and `bf16`, results below 2^-126 are zero. It is one instruction, where [`exp2`](super::exp2) of `f32` is four.
///
/// ```ignore
/// let r = fast_exp2(v);
/// ```
pub fn fast_exp2<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The logarithm of `x` to base 2: an absolute error of 2^-22 for results below 1, a relative one beyond.
///
/// ```ignore
/// let r = fast_log2(v);
/// ```
pub fn fast_log2<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The square root: within 1 ulp. [`sqrt`](super::sqrt) is correctly rounded, in some eight instructions.
///
/// ```ignore
/// let r = fast_sqrt(v);
/// ```
pub fn fast_sqrt<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The sine of `x` in radians: an absolute error of 2^-20.5 for |x| <= pi, which grows with |x|.
///
/// ```ignore
/// let r = fast_sin(v);
/// ```
pub fn fast_sin<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The cosine of `x` in radians: an absolute error of 2^-20.5 for |x| <= pi, which grows with |x|.
///
/// ```ignore
/// let r = fast_cos(v);
/// ```
pub fn fast_cos<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The hyperbolic tangent: a relative error of 2^-11, enough for `f16` and `bf16`.
///
/// ```ignore
/// let r = fast_tanh(v);
/// ```
pub fn fast_tanh<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// `a / b`: within 2 ulp; subnormal operands and results may count as zero. `a / b` is correctly rounded, in some ten instructions.
///
/// ```ignore
/// let r = fast_div(v, a);
/// ```
pub fn fast_div<T>(a: Value<T>, b: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// e to the power of `x`, as `fast_exp2(x * log2(e))`: the rounding of the product makes it less exact the larger |x| is, 2 + 1.3 |x| ulp.
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

/// The natural logarithm, of [`fast_log2`]: an absolute error of 2^-22.5 for results below 0.7, a relative one beyond.
///
/// ```ignore
/// let r = fast_log(v);
/// ```
pub fn fast_log<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The logarithm to base 10, of [`fast_log2`]: an absolute error of 2^-23 for results below 0.3, a relative one of 2^-21 beyond.
///
/// ```ignore
/// let r = fast_log10(v);
/// ```
pub fn fast_log10<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// `x` to the power of `y` for positive `x`, as `fast_exp2(y * fast_log2(x))`: three instructions, a relative error of some 2^-22 (1 + |y log2(x)|).
/// Of negative `x` it is NaN.
///
/// ```ignore
/// let r = fast_pow(abs(v), 0.75);
/// ```
pub fn fast_pow<T>(x: Value<T>, y: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The tangent, as the quotient of [`fast_sin`] and [`fast_cos`]: an absolute error of 2^-20.5 around 0, where few digits of it are left.
///
/// ```ignore
/// let r = fast_tan(v);
/// ```
pub fn fast_tan<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// `1 / (1 + exp(-x))` of [`fast_tanh`]: an absolute error of 2^-12; no digits of small results.
///
/// ```ignore
/// let r = v * fast_sigmoid(v);
/// ```
pub fn fast_sigmoid<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}
