//! Shape changes of tiles, and their extents.

use super::{Shape, Value, only_in_a_kernel};

/// Adds an axis of extent 1 at position `axis`; -1 adds it after the last axis.
///
/// `x[(.., None)]` and `x[(None, ..)]` are equivalent, with one `..` for each existing axis.
///
/// ```ignore
/// let column = expand_dims(offsets, 1);
/// ```
pub fn expand_dims<T>(x: Value<T>, axis: usize) -> Value<T> {
    only_in_a_kernel()
}

/// Broadcasts a scalar or a tile to a shape with as many axes as the tile: axes of extent 1 are repeated.
///
/// Operators broadcast implicitly.
///
/// ```ignore
/// let matrix = broadcast_to(offsets[(.., None)], [N, 4]);
/// ```
pub fn broadcast_to<T>(x: Value<T>, shape: Shape) -> Value<T> {
    only_in_a_kernel()
}

/// The same elements in row-major order, in another shape with the same number of elements.
///
/// A reshape usually moves no element to another thread, and costs nothing. It moves elements, as [`gather`](fn@crate::dsl::gather) does, where
/// an extent that is not a power of two changes and is not the first of the axes that change: `[96]` to `[32, 3]`, but not `[96]` to `[3, 32]`.
///
/// ```ignore
/// let pairs = reshape(v, [N / 2, 2]);
/// ```
pub fn reshape<T>(x: Value<T>, shape: Shape) -> Value<T> {
    only_in_a_kernel()
}

/// Permutes the axes: axis `i` of the result is axis `order[i]` of `x`.
///
/// ```ignore
/// let swapped = permute(v[(None, .., None)], [1, 0, 2]);
/// ```
pub fn permute<T>(x: Value<T>, order: Shape) -> Value<T> {
    only_in_a_kernel()
}

/// The transpose of a tile of two axes.
///
/// ```ignore
/// store(y + offsets[(None, ..)], trans(v[(.., None)]));
/// ```
pub fn trans<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// Makes a column of a tile with one axis: `[M]` becomes `[M, 1]`, as `x[(.., None)]`.
///
/// ```ignore
/// let at = offsets.col() * 64 + arange(0, 64).row();
/// ```
pub fn col<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// Makes a row of a tile with one axis: `[N]` becomes `[1, N]`, as `x[(None, ..)]`.
///
/// ```ignore
/// let both = mask.col() & (arange(0, 64).row() < n);
/// ```
pub fn row<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// Removes the axis `axis`, whose extent is 1. The inverse of [`expand_dims`].
///
/// ```ignore
/// let sums = squeeze(sum(v[(None, ..)], axis = 1, keep_dims = true), 0);
/// ```
pub fn squeeze<T>(x: Value<T>, axis: usize) -> Value<T> {
    only_in_a_kernel()
}

/// Reverses the elements along `axis`; a tile with one axis may omit it.
///
/// ```ignore
/// let backwards = flip(v);
/// ```
pub fn flip<T>(x: Value<T>, axis: Option<usize>) -> Value<T> {
    only_in_a_kernel()
}

/// Joins two values along a new last axis of extent 2: `[M, N]` and `[M, N]` give `[M, N, 2]`, two scalars give `[2]`. The inverse of
/// [`split`].
///
/// Shapes and types are matched as for operators: a scalar or an axis of extent 1 is repeated.
///
/// ```ignore
/// let pairs = join(v, -v);
/// ```
pub fn join<T>(a: Value<T>, b: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// Splits a tile along its last axis, whose extent is 2: `[M, N, 2]` gives two tiles `[M, N]`, `[2]` gives two scalars. The inverse of
/// [`join`].
///
/// ```ignore
/// let (even, odd) = split(reshape(v, [N / 2, 2]));
/// ```
pub fn split<T>(x: Value<T>) -> (Value<T>, Value<T>) {
    only_in_a_kernel()
}

/// Interleaves the elements of two values along the last axis: `a[0], b[0], a[1], b[1], ..`; `[M, N]` and `[M, N]` give `[M, 2 * N]`.
///
/// Shapes and types are matched as in [`join`].
///
/// ```ignore
/// let twice = interleave(v, v);
/// ```
pub fn interleave<T>(a: Value<T>, b: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// Concatenates two tiles along `axis` (default: the first axis): `[M, N]` and `[M, N]` give `[2 * M, N]`.
///
/// Both have the same shape. If the extent along the axis is not a power of two, the elements go through shared memory.
///
/// ```ignore
/// let both = cat(v, -v);
/// ```
pub fn cat<T>(a: Value<T>, b: Value<T>, axis: Option<usize>) -> Value<T> {
    only_in_a_kernel()
}

/// The number of elements of a tile along an axis: a constant. `axis` is a literal, counted from the end if negative.
///
/// ```ignore
/// let mean = sum(v, axis = 0) / extent(v, 0) as f32;
/// ```
pub fn extent<T>(x: Value<T>, axis: usize) -> usize {
    only_in_a_kernel()
}

/// The number of axes of a value: a constant, 0 for a scalar.
///
/// ```ignore
/// static_assert!(rank(v) == 1, "a vector is expected");
/// ```
pub fn rank<T>(x: Value<T>) -> usize {
    only_in_a_kernel()
}

/// The number of elements of a value: a constant, 1 for a scalar.
///
/// ```ignore
/// let mean = sum(v) / numel(v) as f32;
/// ```
pub fn numel<T>(x: Value<T>) -> usize {
    only_in_a_kernel()
}
