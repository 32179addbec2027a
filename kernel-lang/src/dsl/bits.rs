//! Bit operations on integers. All are available as methods: `x.popc()`.

use super::{Value, only_in_a_kernel};

/// The number of 1 bits of an integer, in the integer's type.
///
/// ```ignore
/// let ones = popc(offsets);
/// ```
pub fn popc<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The number of 0 bits above the highest 1 bit of an integer, in the integer's type; for 0 the width, 32 for a `u32`.
///
/// The number of zeros below the lowest 1 is `clz(brev(x))`.
///
/// ```ignore
/// let log2 = 63 - clz(n);
/// ```
pub fn clz<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The bits of an integer in reverse order.
///
/// ```ignore
/// let r = brev(1u32); // 0x80000000
/// ```
pub fn brev<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The upper half of the product of two unsigned integers at twice their width; the lower half is `a * b`.
///
/// Signed integers are an error: reinterpret them with `bitcast::<u32>(x)`.
///
/// ```ignore
/// let tenth = umulhi(offsets as u32, 0xcccc_cccd) >> 3;
/// ```
pub fn umulhi<T>(a: Value<T>, b: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The position of the lowest 1 bit of an integer, counted from 1; 0 if no bit is 1. The result has the integer's type.
///
/// ```ignore
/// let lowest = ffs(offsets);
/// ```
pub fn ffs<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}
