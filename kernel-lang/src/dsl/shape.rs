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
