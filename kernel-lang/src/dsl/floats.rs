//! Classification of floats: NaN, infinite, finite.

use super::{Value, only_in_a_kernel};

/// Is the element NaN?
///
/// ```ignore
/// let r = select(isnan(v), 0.0, v);
/// ```
pub fn isnan<T>(x: Value<T>) -> Value<bool> {
    only_in_a_kernel()
}

/// Is the element one of the two infinities?
///
/// ```ignore
/// let r = select(isinf(v), 0.0, v);
/// ```
pub fn isinf<T>(x: Value<T>) -> Value<bool> {
    only_in_a_kernel()
}

/// Is the element neither NaN nor infinite?
///
/// ```ignore
/// let r = select(isfinite(v), v, 0.0);
/// ```
pub fn isfinite<T>(x: Value<T>) -> Value<bool> {
    only_in_a_kernel()
}
