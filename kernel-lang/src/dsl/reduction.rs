//! Reductions and scans along an axis.
//!
//! A reduction takes `axis = k`, a literal, counted from the end if negative. Without it, all axes are combined and the result is a scalar.
//! With `keep_dims = true` the axis stays with extent 1, so that the result broadcasts to the input tile. The order in which elements are
//! combined is unspecified. Launches of a kernel with the same shapes, and tensors at the same distance from a multiple of 16 bytes, have
//! the same order. All are available as methods: `x.sum(axis = 1)`, `x.max()`. The largest and the smallest element are
//! [`max`](super::max)`(x, axis = k)` and [`min`](super::min)`(x, axis = k)`.

use super::{Value, only_in_a_kernel};

/// The sum of the elements along an axis.
///
/// Integers wrap. `f16` and `bf16` are summed in `f32` and rounded once; a sum of sums keeps the `f32` intermediate value. To count `true`
/// elements, use `sum(mask as i32)`.
///
/// ```ignore
/// let total = sum(select(mask, v, 0.0), axis = 0);
/// ```
pub fn sum<T>(x: Value<T>, axis: Option<usize>, keep_dims: Option<bool>) -> Value<T> {
    only_in_a_kernel()
}

/// The product of the elements along an axis. Types as in [`sum`].
///
/// ```ignore
/// let product = prod(v, axis = 0);
/// ```
pub fn prod<T>(x: Value<T>, axis: Option<usize>, keep_dims: Option<bool>) -> Value<T> {
    only_in_a_kernel()
}

/// The bitwise exclusive or of the integers along an axis.
///
/// ```ignore
/// let parity = xor_sum(offsets);
/// ```
pub fn xor_sum<T>(x: Value<T>, axis: Option<usize>, keep_dims: Option<bool>) -> Value<T> {
    only_in_a_kernel()
}

/// The mean of the floats along an axis.
///
/// `f64` is summed in `f64`, all other types in `f32`, so that a sum of `f16` or `bf16` does not overflow. The mean is rounded once to the
/// type.
///
/// ```ignore
/// let centred = v - mean(v, axis = 0, keep_dims = true);
/// ```
pub fn mean<T>(x: Value<T>, axis: Option<usize>, keep_dims: Option<bool>) -> Value<T> {
    only_in_a_kernel()
}

/// The variance of the floats along an axis: the sum of squared distances from the [`mean`], divided by the number of elements minus
/// `correction`.
///
/// `correction` is 0 by default. `correction = 1` estimates the variance of the population from a sample, and gives NaN for one element.
/// Types as in [`mean`]. The computation takes two passes over the elements, so that numbers far from 0 keep their digits.
///
/// ```ignore
/// let scale = rsqrt(var(v, axis = 0) + 1e-5);
/// ```
pub fn var<T>(x: Value<T>, axis: Option<usize>, keep_dims: Option<bool>, correction: Option<usize>) -> Value<T> {
    only_in_a_kernel()
}

/// `exp(x)` divided by its sum along an axis, or over the whole tile without an axis: positive numbers whose sum is 1.
///
/// The largest element is subtracted first, so that nothing overflows. Types as in [`mean`]; each element is within a few ulp. Set elements
/// to `f32::NEG_INFINITY` to exclude them. If all are excluded, or if one is NaN or infinity, the result is NaN.
///
/// ```ignore
/// let weights = softmax(select(mask, v, f32::NEG_INFINITY), axis = 0);
/// ```
pub fn softmax<T>(x: Value<T>, axis: Option<usize>) -> Value<T> {
    only_in_a_kernel()
}

/// Is any `bool` along an axis true?
///
/// ```ignore
/// let has_nan = any(v != v);
/// ```
pub fn any<T>(x: Value<T>, axis: Option<usize>, keep_dims: Option<bool>) -> Value<bool> {
    only_in_a_kernel()
}

/// Is every `bool` along an axis true?
///
/// ```ignore
/// let is_done = all(abs(v) < 1e-6);
/// ```
pub fn all<T>(x: Value<T>, axis: Option<usize>, keep_dims: Option<bool>) -> Value<bool> {
    only_in_a_kernel()
}

/// The index of the largest element along an axis, as `i64`; without an axis, the row-major index in the whole tile.
///
/// Of equal elements the first counts. NaN is ignored unless there is nothing else.
///
/// ```ignore
/// let best = argmax(v, axis = 0);
/// ```
pub fn argmax<T>(x: Value<T>, axis: Option<usize>, keep_dims: Option<bool>) -> Value<i64> {
    only_in_a_kernel()
}

/// The index of the smallest element along an axis. As [`argmax`].
///
/// ```ignore
/// let nearest = argmin(v);
/// ```
pub fn argmin<T>(x: Value<T>, axis: Option<usize>, keep_dims: Option<bool>) -> Value<i64> {
    only_in_a_kernel()
}

/// Combines the elements along `axis` with a closure. With a tuple of tiles, it combines them together and returns a tuple.
///
/// The closure takes the results of two adjacent runs of elements, the earlier one first, and returns the result of both. It must be
/// associative, but need not be commutative. Its body computes on single elements, constants and scalars, without memory accesses, `if` or
/// loops.
///
/// ```ignore
/// let largest = reduce(v, 0, |a, b| max(a, b));
/// let (value, index) = reduce((v, offsets), 0, |(a, i), (b, j)| (max(a, b), select(b > a, j, i)));
/// ```
pub fn reduce<T>(x: Value<T>, axis: usize, combine: impl Fn(Value<T>, Value<T>) -> Value<T>, keep_dims: Option<bool>) -> Value<T> {
    only_in_a_kernel()
}

/// As [`reduce`], of every prefix: from the first element along `axis` up to and including each element. With `reverse = true` the scan
/// starts at the last element, and the earlier run is the one at the higher indices.
///
/// ```ignore
/// let (a, b) = associative_scan((v, v), 0, |(a, x), (b, y)| (a * b, x * b + y));
/// ```
pub fn associative_scan<T>(x: Value<T>, axis: usize, combine: impl Fn(Value<T>, Value<T>) -> Value<T>, reverse: Option<bool>) -> Value<T> {
    only_in_a_kernel()
}

/// The cumulative sum of the elements. A tile of several axes needs the axis.
///
/// With `reverse = true` it starts at the end. Integers wrap; `f16` and `bf16` are summed in `f32` and rounded once.
///
/// ```ignore
/// let ends = cumsum(offsets, axis = 0);
/// ```
pub fn cumsum<T>(x: Value<T>, axis: Option<usize>, reverse: Option<bool>) -> Value<T> {
    only_in_a_kernel()
}

/// The cumulative product of the elements. As [`cumsum`].
///
/// ```ignore
/// let decays = cumprod(v, axis = 0);
/// ```
pub fn cumprod<T>(x: Value<T>, axis: Option<usize>, reverse: Option<bool>) -> Value<T> {
    only_in_a_kernel()
}

/// The cumulative maximum of the elements; a number wins over NaN. As [`cumsum`].
///
/// ```ignore
/// let peaks = cummax(v);
/// ```
pub fn cummax<T>(x: Value<T>, axis: Option<usize>, reverse: Option<bool>) -> Value<T> {
    only_in_a_kernel()
}

/// The cumulative minimum of the elements; a number wins over NaN. As [`cumsum`].
///
/// ```ignore
/// let lows = cummin(v, reverse = true);
/// ```
pub fn cummin<T>(x: Value<T>, axis: Option<usize>, reverse: Option<bool>) -> Value<T> {
    only_in_a_kernel()
}
