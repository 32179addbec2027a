//! Elements that go where data says.
//!
//! The extents of the tiles are powers of two: a tile of 96 is one of 128 whose last 32 elements are masked off or hold what does not count,
//! such as the infinity that sorts last.

use super::{Value, only_in_a_kernel};

/// Elements of a tile by their index along an axis: the result has the shape of `index`, and `result[i, j]` is `x[index[i, j], j]` for
/// axis 0, `x[i, index[i, j]]` for axis 1.
///
/// `index` is a tile of integers with as many axes as `x`, alike along all but that one. Where it is negative or beyond the extent, the
/// result is 0 (or `false`). All extents are powers of two. It goes through shared memory, which holds `x` meanwhile; elements of a tensor are
/// picked by [`load`](super::load).
///
/// ```ignore
/// let reversed = gather(v, N - 1 - arange(0, N), 0);
/// ```
pub fn gather<T>(x: Value<T>, index: Value<i64>, axis: usize) -> Value<T> {
    only_in_a_kernel()
}

/// How many elements are 0, 1, .., `num_bins - 1`, as a tile of `i32` with that one axis.
///
/// The elements are integers, of a tile with any number of axes, their extents powers of two; others than those are not counted, nor are those
/// where `mask` is false. `num_bins` is a constant and a power of two. Counts of several programs are added up by [`atomic_add`](super::atomic_add).
///
/// ```ignore
/// let counts = histogram((v * 15.0) as i32, 16, mask = mask);
/// atomic_add(flags + arange(0, 16), counts, sem = "relaxed");
/// ```
pub fn histogram<T>(x: Value<T>, num_bins: usize, mask: Value<bool>) -> Value<i32> {
    only_in_a_kernel()
}

/// The elements along an axis, the last one if it is left out, from the smallest to the largest; with `descending = true` from the largest.
///
/// Elements of every type, in a tile whose extents are powers of two. Floats are in the order -NaN, -infinity, .., -0.0, 0.0, .., infinity, NaN. A tile of 1024 is sorted in 55 steps, in
/// each of which every element is compared with another.
///
/// ```ignore
/// let median = sum(select(offsets == N / 2, sort(v), 0.0));
/// ```
pub fn sort<T>(x: Value<T>, axis: usize, descending: bool) -> Value<T> {
    only_in_a_kernel()
}

/// The `k` largest elements along an axis, the last one if it is left out, from the largest on.
///
/// `k` is a constant and a power of two, at most the extent; the tile's extents are powers of two. The order is that of [`sort`].
///
/// ```ignore
/// let best = topk(select(mask, v, f32::NEG_INFINITY), 4);
/// ```
pub fn topk<T>(x: Value<T>, k: usize, axis: usize) -> Value<T> {
    only_in_a_kernel()
}
