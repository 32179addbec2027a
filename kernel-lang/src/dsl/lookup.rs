//! Data-dependent element moves: gather, histogram, sort and top-k.

use super::{Value, only_in_a_kernel};

/// Gathers elements of a tile by their index along an axis. The result has the shape of `index`; `result[i, j]` is `x[index[i, j], j]` for
/// axis 0 and `x[i, index[i, j]]` for axis 1.
///
/// `index` is a tile of integers with as many axes as `x` and the same extents along all other axes. A negative index, or one beyond the
/// extent, gives 0 (or `false`). The tile `x` goes through shared memory. To gather elements of a tensor, use [`load`](super::load).
///
/// ```ignore
/// let reversed = gather(v, N - 1 - arange(0, N), 0);
/// ```
pub fn gather<T>(x: Value<T>, index: Value<i64>, axis: usize) -> Value<T> {
    only_in_a_kernel()
}

/// Counts how many elements are 0, 1, .., `num_bins - 1`: a tile of `i32` with one axis of extent `num_bins`.
///
/// The elements are integers, in a tile with any number of axes. Elements outside that range, or whose `mask` is false, are not counted.
/// `num_bins` is a constant. To sum counts over programs, use [`atomic_add`](super::atomic_add).
///
/// ```ignore
/// let counts = histogram((v * 15.0) as i32, 16, mask = mask);
/// atomic_add(flags + arange(0, 16), counts, sem = "relaxed");
/// ```
pub fn histogram<T>(x: Value<T>, num_bins: usize, mask: Option<Value<bool>>) -> Value<i32> {
    only_in_a_kernel()
}

/// Sorts the elements along `axis` (default: the last axis) in ascending order, or in descending order with `descending = true`.
///
/// All element types can be sorted. Floats have the order -NaN, -infinity, .., -0.0, 0.0, .., infinity, NaN. Sorting 1024 elements takes 55
/// steps, each of which compares every element with another one; 1000 elements take as many steps.
///
/// ```ignore
/// let median = sum(select(offsets == N / 2, sort(v), 0.0));
/// // What comes along stands in the low bits of a wider key: here the index of each number that is not negative.
/// let keys = sort((bitcast::<u32>(abs(v)) as u64) << 32 | offsets as u64);
/// let (values, from) = (bitcast::<f32>((keys >> 32) as u32), keys as u32);
/// ```
pub fn sort<T>(x: Value<T>, axis: Option<usize>, descending: Option<bool>) -> Value<T> {
    only_in_a_kernel()
}

/// The `k` largest elements along `axis` (default: the last axis), in descending order.
///
/// `k` is a constant, at most the extent. The order is that of [`sort`]. It takes fewer steps than a sort, because only the `k` largest elements
/// of each half go on: the 16 largest of 1024 elements take 40 steps, the last 30 of them with ever fewer elements.
///
/// ```ignore
/// let best = topk(select(mask, v, f32::NEG_INFINITY), 4);
/// ```
pub fn topk<T>(x: Value<T>, k: usize, axis: Option<usize>) -> Value<T> {
    only_in_a_kernel()
}
