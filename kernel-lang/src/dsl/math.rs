//! Elementwise arithmetic and mathematical functions.
//!
//! Functions of floats take `f16`, `bf16`, `f32` and `f64`; `f16` and `bf16` are computed in `f32` and rounded once. NaN gives NaN unless the
//! function states otherwise. Each function states its maximum error on a GPU in units in the last place (ulp), for the least accurate device
//! that the PTX ISA allows. On the CPU, the error for `f32` is at most 0.51 ulp. All functions are available as methods: `x.exp()`,
//! `x.max(y)`.

use super::{Value, only_in_a_kernel};

/// e to the power of `x`.
///
/// `exp(-inf)` is 0, `exp(inf)` is infinity.
///
/// Error on a GPU: at most 2.5 ulp for `f32`, 1.0 ulp for `f64`, 1 ulp for `f16` and `bf16`.
///
/// ```ignore
/// let r = exp(v);
/// ```
pub fn exp<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// 2 to the power of `x`.
///
/// `exp2(-inf)` is 0, `exp2(inf)` is infinity.
///
/// Error on a GPU: at most 2.0 ulp for `f32`, 1.0 ulp for `f64`, 1 ulp for `f16` and `bf16`.
///
/// ```ignore
/// let r = exp2(v);
/// ```
pub fn exp2<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The natural logarithm of `x`.
///
/// `log(0)` is minus infinity; the logarithm of a negative number is NaN.
///
/// Error on a GPU: at most 1.0 ulp for `f32`, 0.9 ulp for `f64`, 1 ulp for `f16` and `bf16`.
///
/// ```ignore
/// let r = log(v);
/// ```
pub fn log<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The logarithm of `x` to base 2.
///
/// `log2(0)` is minus infinity; the logarithm of a negative number is NaN.
///
/// Error on a GPU: at most 1.9 ulp for `f32`, 1.0 ulp for `f64`, 1 ulp for `f16` and `bf16`.
///
/// ```ignore
/// let r = log2(v);
/// ```
pub fn log2<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The square root of `x`, correctly rounded.
///
/// The square root of a negative number is NaN.
///
/// ```ignore
/// let r = sqrt(v);
/// ```
pub fn sqrt<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// One over the square root of `x`.
///
/// `rsqrt(0)` is infinity.
///
/// Error on a GPU: at most 2.0 ulp for `f32`, 1.5 ulp for `f64`, 1 ulp for `f16` and `bf16`.
///
/// ```ignore
/// let r = rsqrt(v);
/// ```
pub fn rsqrt<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The sine of `x` in radians, for every finite `x`.
///
/// The sine of an infinity is NaN.
///
/// Error on a GPU: at most 1.5 ulp for `f32`, 1.8 ulp for `f64`, 1 ulp for `f16` and `bf16`.
///
/// ```ignore
/// let r = sin(v);
/// ```
pub fn sin<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The cosine of `x` in radians, for every finite `x`.
///
/// The cosine of an infinity is NaN.
///
/// Error on a GPU: at most 1.5 ulp for `f32`, 1.8 ulp for `f64`, 1 ulp for `f16` and `bf16`.
///
/// ```ignore
/// let r = cos(v);
/// ```
pub fn cos<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The tangent of `x` in radians, for every finite `x`.
///
/// The tangent of an infinity is NaN.
///
/// Error on a GPU: at most 3.0 ulp for `f32`, 1.3 ulp for `f64`, 1 ulp for `f16` and `bf16`.
///
/// ```ignore
/// let r = tan(v);
/// ```
pub fn tan<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The hyperbolic tangent of `x`.
///
/// `tanh(-inf)` is -1, `tanh(inf)` is 1.
///
/// Error on a GPU: at most 2.6 ulp for `f32`, 1.3 ulp for `f64`, 1 ulp for `f16` and `bf16`.
///
/// ```ignore
/// let r = tanh(v);
/// ```
pub fn tanh<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// `1 / (1 + exp(-x))`.
///
/// `sigmoid(-inf)` is 0, `sigmoid(inf)` is 1.
///
/// Error on a GPU: at most 5.2 ulp for `f32`, 2.1 ulp for `f64`, 1 ulp for `f16` and `bf16`.
///
/// ```ignore
/// let r = v * sigmoid(v);
/// ```
pub fn sigmoid<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The error function of `x`.
///
/// `erf(-inf)` is -1, `erf(inf)` is 1.
///
/// Error on a GPU: at most 1.5 ulp for `f32`, 1.1 ulp for `f64`, 1 ulp for `f16` and `bf16`.
///
/// ```ignore
/// let r = 0.5 * v * (1.0 + erf(v * 0.70710678));
/// ```
pub fn erf<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// `x` rounded down to an integer.
///
/// Exact.
///
/// ```ignore
/// let r = floor(v);
/// ```
pub fn floor<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// `x` rounded up to an integer.
///
/// Exact.
///
/// ```ignore
/// let r = ceil(v);
/// ```
pub fn ceil<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// `x` rounded to the nearest integer, ties away from zero, as Rust's `round`.
///
/// Exact.
///
/// ```ignore
/// let r = round(v);
/// ```
pub fn round<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// `x` rounded to the nearest integer, ties to even, as Rust's `round_ties_even`.
///
/// Exact.
///
/// ```ignore
/// let r = rint(v);
/// ```
pub fn rint<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// `x` rounded towards zero to an integer.
///
/// Exact.
///
/// ```ignore
/// let r = trunc(v);
/// ```
pub fn trunc<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The absolute value of a number; the smallest signed integer stays unchanged.
///
/// ```ignore
/// let r = abs(v);
/// ```
pub fn abs<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The smaller of two numbers. If one is NaN, the other one.
///
/// With one tile it is a reduction: the smallest element along `axis`, or of the whole tile. It takes the options of [`sum`](super::sum), and
/// `propagate_nan = true` returns NaN if any element is NaN. A bare integer beside a tile of floats is an error, because it could be meant as
/// an axis: write `0.0` or `axis = 0`.
///
/// ```ignore
/// let r = min(v, 6.0);
/// ```
pub fn min<T>(a: Value<T>, b: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The larger of two numbers. If one is NaN, the other one.
///
/// With one tile it is a reduction: the largest element along `axis`, or of the whole tile. It takes the options of [`sum`](super::sum), and
/// `propagate_nan = true` returns NaN if any element is NaN. A bare integer beside a tile of floats is an error, because it could be meant as
/// an axis: write `0.0` or `axis = 0`.
///
/// ```ignore
/// let r = max(v, 0.0);
/// ```
pub fn max<T>(a: Value<T>, b: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// `min(max(x, low), high)`. NaN gives `low`.
///
/// If `low` is the constant -0.0, NVIDIA's assembler may return 0.0 for it: it clamps `f32` to `[-0.0, 1.0]` with a saturating instruction,
/// and it compares `f64` with 0.0.
///
/// ```ignore
/// let r = clamp(v, 0.0, 6.0);
/// ```
pub fn clamp<T>(x: Value<T>, low: Value<T>, high: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// `a * b + c` of floats, rounded once. The expression `a * b + c` rounds twice.
///
/// ```ignore
/// let r = fma(v, a, 1.0);
/// ```
pub fn fma<T>(a: Value<T>, b: Value<T>, c: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The absolute value of `magnitude` with the sign of `sign`, also for zeros and NaN. Exact.
///
/// ```ignore
/// let r = copysign(sqrt(abs(v)), v);
/// ```
pub fn copysign<T>(magnitude: Value<T>, sign: Value<T>) -> Value<T> {
    only_in_a_kernel()
}
