//! Further mathematical functions beside those of [`math`](super::math).
//!
//! They are written in the kernel language, without the device's approximations, so that their error bounds hold on every device. Functions
//! that use no `log`, `sin`, `cos` or `erf` (all except `asinh`, `acosh`, the gamma, error and Bessel functions) give the same bits on all
//! devices.
//!
//! They take `f16`, `bf16`, `f32` and `f64`; `f16` and `bf16` are computed in `f32` and rounded once. Special values follow annex F of the C
//! standard. The error bounds were measured against references of higher precision, on a million `f32` and some thousand `f64` arguments
//! each, including subnormal results.

use super::{Value, only_in_a_kernel};

/// 10 to the power of `x`.
///
/// Error: at most 0.8 ulp for `f32`, 0.7 ulp for `f64`, 1 ulp for `f16` and `bf16`.
///
/// ```ignore
/// let r = exp10(v / 20.0);
/// ```
pub fn exp10<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// `exp(x) - 1`, accurate also for small `x`.
///
/// Error: at most 1.4 ulp for `f32`, 1.2 ulp for `f64`, 1 ulp for `f16` and `bf16`.
///
/// ```ignore
/// let r = select(v > 0.0, v, expm1(v));
/// ```
pub fn expm1<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// `log(1 + x)`, accurate also for small `x`. `log1p(-1)` is minus infinity; below -1 the result is NaN.
///
/// Error: at most 1.8 ulp for `f32`, 1.4 ulp for `f64`, 1 ulp for `f16` and `bf16`.
///
/// ```ignore
/// let softplus = max(v, 0.0) + log1p(exp(-abs(v)));
/// ```
pub fn log1p<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The logarithm to base 10; an exact integer for powers of ten. `log10(0)` is minus infinity; the logarithm of a negative number is NaN.
///
/// Error: at most 0.6 ulp for `f32`, 0.6 ulp for `f64`, 1 ulp for `f16` and `bf16`.
///
/// ```ignore
/// let decibels = 20.0 * log10(abs(v));
/// ```
pub fn log10<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// `x` to the power of `y`.
///
/// For negative `x` the result is NaN unless `y` is an integer. `pow(1, y)` and `pow(x, 0)` are 1, also for NaN.
///
/// Error: at most 0.9 ulp for `f32`, 1.1 ulp for `f64`, 1 ulp for `f16` and `bf16`. It takes about 150 instructions. For positive `x` and
/// lower accuracy, [`fast_pow`](super::fast_pow) takes three.
///
/// ```ignore
/// let r = pow(v, 1.5);
/// ```
pub fn pow<T>(x: Value<T>, y: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The cube root, also of negative numbers.
///
/// Error: at most 0.8 ulp for `f32`, 0.6 ulp for `f64`, 1 ulp for `f16` and `bf16`.
///
/// ```ignore
/// let r = cbrt(v);
/// ```
pub fn cbrt<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// `sqrt(x * x + y * y)` without intermediate overflow. The result is infinity if one argument is infinite, even if the other is NaN.
///
/// Error: at most 0.6 ulp for `f32`, 1.0 ulp for `f64`, 1 ulp for `f16` and `bf16`.
///
/// ```ignore
/// let r = hypot(v, a);
/// ```
pub fn hypot<T>(x: Value<T>, y: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The exact remainder of the truncated division `x / y`, as `x % y`, with the sign of `x`. It is NaN for `y = 0` and for infinite `x`.
///
/// ```ignore
/// let r = fmod(v, 6.5);
/// ```
pub fn fmod<T>(x: Value<T>, y: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The angle in [-pi/2, pi/2] whose sine is `x`; NaN outside [-1, 1].
///
/// Error: at most 2.0 ulp for `f32`, 1.9 ulp for `f64`, 1 ulp for `f16` and `bf16`.
///
/// ```ignore
/// let r = asin(v);
/// ```
pub fn asin<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The angle in [0, pi] whose cosine is `x`; NaN outside [-1, 1].
///
/// Error: at most 1.2 ulp for `f32`, 1.2 ulp for `f64`, 1 ulp for `f16` and `bf16`.
///
/// ```ignore
/// let r = acos(v);
/// ```
pub fn acos<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The angle in [-pi/2, pi/2] whose tangent is `x`.
///
/// Error: at most 1.3 ulp for `f32`, 1.2 ulp for `f64`, 1 ulp for `f16` and `bf16`.
///
/// ```ignore
/// let r = atan(v);
/// ```
pub fn atan<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The angle of the point (`x`, `y`), in [-pi, pi]; the signs of zeros are significant.
///
/// Error: at most 1.6 ulp for `f32`, 1.3 ulp for `f64`, 1 ulp for `f16` and `bf16`.
///
/// ```ignore
/// let r = atan2(v, a);
/// ```
pub fn atan2<T>(y: Value<T>, x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The hyperbolic sine.
///
/// Error: at most 2.4 ulp for `f32`, 2.1 ulp for `f64`, 1 ulp for `f16` and `bf16`.
///
/// ```ignore
/// let r = sinh(v);
/// ```
pub fn sinh<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The hyperbolic cosine.
///
/// Error: at most 1.3 ulp for `f32`, 1.2 ulp for `f64`, 1 ulp for `f16` and `bf16`.
///
/// ```ignore
/// let r = cosh(v);
/// ```
pub fn cosh<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The inverse of [`sinh`].
///
/// Error: at most 2.3 ulp for `f32`, 1.5 ulp for `f64`, 1 ulp for `f16` and `bf16`.
///
/// ```ignore
/// let r = asinh(v);
/// ```
pub fn asinh<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The inverse of [`cosh`] for `x >= 1`; NaN below.
///
/// Error: at most 2.3 ulp for `f32`, 1.7 ulp for `f64`, 1 ulp for `f16` and `bf16`.
///
/// ```ignore
/// let r = acosh(v);
/// ```
pub fn acosh<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The inverse of [`tanh`](super::tanh); infinite at -1 and 1, NaN outside [-1, 1].
///
/// Error: at most 2.5 ulp for `f32`, 1.5 ulp for `f64`, 1 ulp for `f16` and `bf16`.
///
/// ```ignore
/// let r = atanh(v);
/// ```
pub fn atanh<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// `1 - erf(x)`, accurate also where the result is small.
///
/// Error: at most 2.9 ulp for `f32`, 2.5 ulp for `f64`, 1 ulp for `f16` and `bf16`.
///
/// ```ignore
/// let r = 0.5 * erfc(-v * 0.70710678);
/// ```
pub fn erfc<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The inverse of [`erf`](super::erf); infinite at -1 and 1, NaN outside [-1, 1].
///
/// Error: at most 2.6 ulp for `f32`, 3.2 ulp for `f64`, 1 ulp for `f16` and `bf16`.
///
/// ```ignore
/// let r = erfinv(v);
/// ```
pub fn erfinv<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The gamma function; for positive integers `(x - 1)!`. It is infinite at 0, and NaN at the other poles (the negative integers) and at minus
/// infinity.
///
/// Error: at most 4.8 ulp for `f32`, 3.1 ulp for `f64`, 1 ulp for `f16` and `bf16`.
///
/// ```ignore
/// let r = tgamma(v);
/// ```
pub fn tgamma<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The logarithm of the absolute value of the gamma function; infinite at its poles.
///
/// Error for positive numbers: at most 2.8 ulp for `f32`, 2.0 ulp for `f64`, 1 ulp for `f16` and `bf16`. For negative numbers, where the
/// function has zeros, the error is a few ulp of the larger of 1 and the result.
///
/// ```ignore
/// let r = lgamma(v);
/// ```
pub fn lgamma<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The Bessel function of the first kind, of order 0.
///
/// Error, in ulp of the larger of the result and the amplitude min(1, sqrt(2 / (pi |x|))): at most 9 for `f32`, 8 for `f64`. For |x| < 8,
/// which contains the first two zeros: 14 and 11 ulp of the result itself.
///
/// ```ignore
/// let r = j0(v);
/// ```
pub fn j0<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The Bessel function of the first kind, of order 1.
///
/// Error, in ulp of the larger of the result and the amplitude min(1, sqrt(2 / (pi |x|))): at most 4 for `f32`, 7 for `f64`. For |x| < 8,
/// which contains the first two zeros: 5 and 9 ulp of the result itself.
///
/// ```ignore
/// let r = j1(v);
/// ```
pub fn j1<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The Bessel function of the second kind, of order 0; minus infinity at 0, NaN for negative numbers.
///
/// Error, in ulp of the larger of the result and the amplitude min(1, sqrt(2 / (pi |x|))): at most 12 for `f32`, 12 for `f64`.
///
/// ```ignore
/// let r = y0(v);
/// ```
pub fn y0<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The Bessel function of the second kind, of order 1; minus infinity at 0, NaN for negative numbers.
///
/// Error, in ulp of the larger of the result and the amplitude min(1, sqrt(2 / (pi |x|))): at most 9 for `f32`, 11 for `f64`.
///
/// ```ignore
/// let r = y1(v);
/// ```
pub fn y1<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}
