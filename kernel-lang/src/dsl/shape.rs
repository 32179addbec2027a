//! Giving tiles another shape.

use super::{Shape, Value, only_in_a_kernel};

/// The tile with a new axis of extent 1 at position `axis`; -1 is behind the last.
///
/// `x[(.., None)]` and `x[(None, ..)]` say the same by writing `..` for each axis there is.
///
/// ```ignore
/// let column = expand_dims(offsets, 1);
/// ```
pub fn expand_dims<T>(x: Value<T>, axis: usize) -> Value<T> {
    only_in_a_kernel()
}

/// The tile of that shape in which a scalar, or every axis of extent 1, repeats.
///
/// Operators do that by themselves; it has as many axes as the shape.
///
/// ```ignore
/// let matrix = broadcast_to(offsets[(.., None)], [N, 4]);
/// ```
pub fn broadcast_to<T>(x: Value<T>, shape: Shape) -> Value<T> {
    only_in_a_kernel()
}

/// The same elements in row-major order, under another shape with as many.
///
/// No element moves to another thread for it, so an extent that is no power of two must stay, or be that of the first of the axes that
/// change: `[96]` becomes `[3, 32]` or `[48, 2]`, but not `[32, 3]`.
///
/// ```ignore
/// let pairs = reshape(v, [N / 2, 2]);
/// ```
pub fn reshape<T>(x: Value<T>, shape: Shape) -> Value<T> {
    only_in_a_kernel()
}

/// The axes in another order: axis `i` of the result is axis `order[i]` of `x`.
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

/// A tile of one axis as a column: `[M]` becomes `[M, 1]`, as `x[(.., None)]`.
///
/// ```ignore
/// let at = offsets.col() * 64 + arange(0, 64).row();
/// ```
pub fn col<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// A tile of one axis as a row: `[N]` becomes `[1, N]`, as `x[(None, ..)]`.
///
/// ```ignore
/// let both = mask.col() & (arange(0, 64).row() < n);
/// ```
pub fn row<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The tile without its axis `axis`, whose extent is 1. The opposite of [`expand_dims`].
///
/// ```ignore
/// let sums = squeeze(sum(v[(None, ..)], axis = 1, keep_dims = true), 0);
/// ```
pub fn squeeze<T>(x: Value<T>, axis: usize) -> Value<T> {
    only_in_a_kernel()
}

/// The elements in the opposite order along `axis`, which a tile of one axis need not name.
///
/// ```ignore
/// let backwards = flip(v);
/// ```
pub fn flip<T>(x: Value<T>, axis: Option<usize>) -> Value<T> {
    only_in_a_kernel()
}

/// Both along a new last axis of extent 2: `[M, N]` and `[M, N]` give `[M, N, 2]`, two scalars give `[2]`. [`split`] takes them apart.
///
/// Shapes and types meet as in an operator: a scalar or an axis of extent 1 repeats.
///
/// ```ignore
/// let pairs = join(v, -v);
/// ```
pub fn join<T>(a: Value<T>, b: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// What stands first and what stands second along the last axis, whose extent is 2: `[M, N, 2]` gives two tiles `[M, N]`, `[2]` two
/// scalars.
///
/// ```ignore
/// let (even, odd) = split(reshape(v, [N / 2, 2]));
/// ```
pub fn split<T>(x: Value<T>) -> (Value<T>, Value<T>) {
    only_in_a_kernel()
}

/// The elements of both in turn along the last axis: `a[0], b[0], a[1], b[1], ..`; `[M, N]` and `[M, N]` give `[M, 2 * N]`.
///
/// Shapes and types meet as in [`join`].
///
/// ```ignore
/// let twice = interleave(v, v);
/// ```
pub fn interleave<T>(a: Value<T>, b: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The one tile and behind it the other, along `axis`, or along the first if it is left out: `[M, N]` and `[M, N]` give `[2 * M, N]`.
///
/// Both have the same shape. Where the axis has an extent that is no power of two they go through shared memory.
///
/// ```ignore
/// let both = cat(v, -v);
/// ```
pub fn cat<T>(a: Value<T>, b: Value<T>, axis: Option<usize>) -> Value<T> {
    only_in_a_kernel()
}

/// How many elements a tile has along an axis: a constant. `axis` is a literal, from the end if negative.
///
/// ```ignore
/// let mean = sum(v, axis = 0) / extent(v, 0) as f32;
/// ```
pub fn extent<T>(x: Value<T>, axis: usize) -> usize {
    only_in_a_kernel()
}

/// How many axes a value has: a constant, 0 for a scalar.
///
/// ```ignore
/// static_assert!(rank(v) == 1, "a vector is expected");
/// ```
pub fn rank<T>(x: Value<T>) -> usize {
    only_in_a_kernel()
}

/// How many elements a value has: a constant, 1 for a scalar.
///
/// ```ignore
/// let mean = sum(v) / numel(v) as f32;
/// ```
pub fn numel<T>(x: Value<T>) -> usize {
    only_in_a_kernel()
}
