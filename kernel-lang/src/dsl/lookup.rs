//! Elements that go where data says.

use super::{Value, only_in_a_kernel};

/// Elements of a tile by their index along an axis: the result has the shape of `index`, and `result[i, j]` is `x[index[i, j], j]` for
/// axis 0, `x[i, index[i, j]]` for axis 1.
///
/// `index` is a tile of integers with as many axes as `x`, alike along all but that one. Where it is negative or beyond the extent, the
/// result is 0 (or `false`). It goes through shared memory, which holds `x` meanwhile; elements of a tensor are picked by [`load`](super::load).
///
/// ```ignore
/// let reversed = gather(v, N - 1 - arange(0, N), 0);
/// ```
pub fn gather<T>(x: Value<T>, index: Value<i64>, axis: usize) -> Value<T> {
    only_in_a_kernel()
}

/// How many elements are 0, 1, .., `num_bins - 1`, as a tile of `i32` with that one axis.
///
/// The elements are integers, of a tile with any number of axes; others than those are not counted, nor are those where `mask` is false.
/// `num_bins` is a constant. Counts of several programs are added up by [`atomic_add`](super::atomic_add).
///
/// ```ignore
/// let counts = histogram((v * 15.0) as i32, 16, mask = mask);
/// atomic_add(flags + arange(0, 16), counts, sem = "relaxed");
/// ```
pub fn histogram<T>(x: Value<T>, num_bins: usize, mask: Option<Value<bool>>) -> Value<i32> {
    only_in_a_kernel()
}

/// The elements along an axis, the last one if it is left out, from the smallest to the largest; with `descending = true` from the largest.
///
/// Elements of every type. Floats are in the order -NaN, -infinity, .., -0.0, 0.0, .., infinity, NaN. A tile of 1024 is sorted in 55 steps, in
/// each of which every element is compared with another; one of 1000 takes as many.
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

/// The `k` largest elements along an axis, the last one if it is left out, from the largest on.
///
/// `k` is a constant, at most the extent. The order is that of [`sort`]. Where `k` is a power of two that divides the extent, what is taken stays in
/// its threads; else it goes through shared memory.
///
/// ```ignore
/// let best = topk(select(mask, v, f32::NEG_INFINITY), 4);
/// ```
pub fn topk<T>(x: Value<T>, k: usize, axis: Option<usize>) -> Value<T> {
    only_in_a_kernel()
}
