//! Functions of the bits of integers. All can be written as methods: `x.popc()`.

use super::{Value, only_in_a_kernel};

/// How many bits of an integer are 1, in its own type.
///
/// ```ignore
/// let ones = popc(offsets);
/// ```
pub fn popc<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// How many bits of an integer are 0 before the highest 1, in its own type; of 0, all of them: 32 of a `u32`.
///
/// The number of zeros behind the lowest 1 is `clz(brev(x))`.
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

/// The upper half of the product of two unsigned integers, at twice their width; the lower half is `a * b`.
///
/// Signed integers are an error: take their bits, `bitcast::<u32>(x)`.
///
/// ```ignore
/// let tenth = umulhi(offsets as u32, 0xcccc_cccd) >> 3;
/// ```
pub fn umulhi<T>(a: Value<T>, b: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The position of the lowest 1 among the bits of an integer, counted from 1; 0 if none is 1. In its own type.
///
/// ```ignore
/// let lowest = ffs(offsets);
/// ```
pub fn ffs<T>(x: Value<T>) -> Value<T> {
    only_in_a_kernel()
}
