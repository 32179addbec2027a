//! Construction of tiles, element selection and casts.

use super::{Shape, Value, only_in_a_kernel};

/// A tile of zeros (`false` for `bool`) of the given element type.
///
/// ```ignore
/// let mut sum = zeros::<f32>([N]);
/// sum += v;
/// ```
pub fn zeros<T>(shape: Shape) -> Value<T> {
    only_in_a_kernel()
}

/// A tile of ones (`true` for `bool`) of the given element type.
///
/// ```ignore
/// let mut product = ones::<f32>([N]);
/// product *= v;
/// ```
pub fn ones<T>(shape: Shape) -> Value<T> {
    only_in_a_kernel()
}

/// A tile of zeros (`false` for `bool`) with the shape and type of `x`.
///
/// ```ignore
/// let mut sum = zeros_like(v);
/// sum += v;
/// ```
pub fn zeros_like<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// A tile with the shape and type of `x` whose elements are all `value`, a scalar.
///
/// ```ignore
/// let halves = full_like(v, 0.5);
/// ```
pub fn full_like<T>(x: Value<T>, value: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// A tile whose elements are all `value`: a constant or a scalar computed at run time.
///
/// A literal without a suffix needs the element type: `full::<f32>([N], 1.0)`.
///
/// ```ignore
/// let lowest = full::<f32>([N], f32::NEG_INFINITY);
/// let scaled = full([N], a * 0.5);
/// ```
pub fn full<T>(shape: Shape, value: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// `a` where `cond` is true, else `b`, element by element. Triton's `where`.
///
/// Both `a` and `b` are evaluated. Scalars among tiles are broadcast.
///
/// ```ignore
/// let relu = select(v > 0.0, v, 0.0);
/// ```
pub fn select<T>(cond: Value<bool>, a: Value<T>, b: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// Reinterprets the bits of each element as another type of the same width.
///
/// ```ignore
/// let sign = bitcast::<u32>(v) >> 31;
/// let back = bitcast::<f32>(bitcast::<u32>(v) & 0x7fff_ffff);
/// ```
pub fn bitcast<U>(x: Value<impl Sized>) -> Value<U> {
    only_in_a_kernel()
}

/// `x as T`, written as a method: `x.to::<f32>()`.
///
/// ```ignore
/// let halves = v.to::<f16>();
/// ```
pub fn to<U>(x: Value<impl Sized>) -> Value<U> {
    only_in_a_kernel()
}
