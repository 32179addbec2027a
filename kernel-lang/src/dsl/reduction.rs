//! Combining the elements along an axis.
//!
//! A reduction takes `axis = k`, a literal, from the end if negative; left out, all axes are combined and the result is a scalar. With
//! `keep_dims = true` the axis stays, with extent 1, so that the result meets the tile it came from. In which order elements are combined
//! is fixed for a compiled kernel, but open. All can be written as methods: `x.sum(axis = 1)`, `x.max()`. The largest and the smallest element
//! are [`max`](super::max)`(x, axis = k)` and [`min`](super::min)`(x, axis = k)`.

use super::{Value, only_in_a_kernel};

/// The sum of the elements along an axis.
///
/// Integers wrap. `f16` and `bf16` are added up in `f32` and rounded once; a sum of sums keeps the `f32` in between. How many `bool`s hold is `sum(mask as i32)`.
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
/// Added up in `f64` for `f64` and in `f32` for all other types, so that a sum of halves does not overflow; the mean is rounded once to
/// the type.
///
/// ```ignore
/// let centred = v - mean(v, axis = 0, keep_dims = true);
/// ```
pub fn mean<T>(x: Value<T>, axis: Option<usize>, keep_dims: Option<bool>) -> Value<T> {
    only_in_a_kernel()
}

/// The variance of the floats along an axis: the squared distances from their [`mean`], added up, over how many elements there are less
/// `correction` (0 if left out; 1 estimates the variance of what they are a sample of, and makes that of one element NaN).
///
/// Types as in [`mean`]. The elements are gone through twice, so that numbers far from 0 keep their digits.
///
/// ```ignore
/// let scale = rsqrt(var(v, axis = 0) + 1e-5);
/// ```
pub fn var<T>(x: Value<T>, axis: Option<usize>, keep_dims: Option<bool>, correction: Option<usize>) -> Value<T> {
    only_in_a_kernel()
}

/// `exp(x)` over the sum of all of them along an axis, or in the whole tile if it is left out: positive numbers whose sum is 1.
///
/// The largest element is subtracted first, so that nothing overflows. Types as in [`mean`]; each element is within a few ulp. Elements that
/// shall not count are `f32::NEG_INFINITY`; where all are, the result is NaN, as it is where one is NaN or infinity.
///
/// ```ignore
/// let weights = softmax(select(mask, v, f32::NEG_INFINITY), axis = 0);
/// ```
pub fn softmax<T>(x: Value<T>, axis: Option<usize>) -> Value<T> {
    only_in_a_kernel()
}

/// Does any `bool` along an axis hold?
///
/// ```ignore
/// let has_nan = any(v != v);
/// ```
pub fn any<T>(x: Value<T>, axis: Option<usize>, keep_dims: Option<bool>) -> Value<bool> {
    only_in_a_kernel()
}

/// Does every `bool` along an axis hold?
///
/// ```ignore
/// let is_done = all(abs(v) < 1e-6);
/// ```
pub fn all<T>(x: Value<T>, axis: Option<usize>, keep_dims: Option<bool>) -> Value<bool> {
    only_in_a_kernel()
}

/// Where the largest element along an axis is: its index, as `i64`; without an axis, in row-major order of the whole tile.
///
/// Of equal elements it is the first. NaN counts only where there is nothing else.
///
/// ```ignore
/// let best = argmax(v, axis = 0);
/// ```
pub fn argmax<T>(x: Value<T>, axis: Option<usize>, keep_dims: Option<bool>) -> Value<i64> {
    only_in_a_kernel()
}

/// Where the smallest element along an axis is. As [`argmax`].
///
/// ```ignore
/// let nearest = argmin(v);
/// ```
pub fn argmin<T>(x: Value<T>, axis: Option<usize>, keep_dims: Option<bool>) -> Value<i64> {
    only_in_a_kernel()
}

/// The elements along `axis` combined by a closure; with a tuple of tiles, element by element of each, and the result is a tuple.
///
/// The closure gets what an earlier run of elements gave and what the run behind it gave, and says what both give. It must be
/// associative; it sees the two in their order. Inside are single elements, constants and scalars; no memory, no `if`, no loops.
///
/// ```ignore
/// let largest = reduce(v, 0, |a, b| max(a, b));
/// let (value, index) = reduce((v, offsets), 0, |(a, i), (b, j)| (max(a, b), select(b > a, j, i)));
/// ```
pub fn reduce<T>(x: Value<T>, axis: usize, combine: impl Fn(Value<T>, Value<T>) -> Value<T>, keep_dims: Option<bool>) -> Value<T> {
    only_in_a_kernel()
}

/// As [`reduce`], of every run from the first element along `axis` up to and with each; with `reverse = true` from the last one, so that
/// what came earlier is what stands behind.
///
/// ```ignore
/// let (a, b) = associative_scan((v, v), 0, |(a, x), (b, y)| (a * b, x * b + y));
/// ```
pub fn associative_scan<T>(x: Value<T>, axis: usize, combine: impl Fn(Value<T>, Value<T>) -> Value<T>, reverse: Option<bool>) -> Value<T> {
    only_in_a_kernel()
}

/// The sum of the elements up to and with each. A tile of several axes needs the axis.
///
/// With `reverse = true` from the end. Integers wrap; `f16` and `bf16` are added up in `f32` and rounded once.
///
/// ```ignore
/// let ends = cumsum(offsets, axis = 0);
/// ```
pub fn cumsum<T>(x: Value<T>, axis: Option<usize>, reverse: Option<bool>) -> Value<T> {
    only_in_a_kernel()
}

/// The product of the elements up to and with each. As [`cumsum`].
///
/// ```ignore
/// let decays = cumprod(v, axis = 0);
/// ```
pub fn cumprod<T>(x: Value<T>, axis: Option<usize>, reverse: Option<bool>) -> Value<T> {
    only_in_a_kernel()
}

/// The largest element up to and with each; NaN loses against numbers. As [`cumsum`].
///
/// ```ignore
/// let peaks = cummax(v);
/// ```
pub fn cummax<T>(x: Value<T>, axis: Option<usize>, reverse: Option<bool>) -> Value<T> {
    only_in_a_kernel()
}

/// The smallest element up to and with each; NaN loses against numbers. As [`cumsum`].
///
/// ```ignore
/// let lows = cummin(v, reverse = true);
/// ```
pub fn cummin<T>(x: Value<T>, axis: Option<usize>, reverse: Option<bool>) -> Value<T> {
    only_in_a_kernel()
}
