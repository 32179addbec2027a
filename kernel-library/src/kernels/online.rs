//! Sums of exponentials of parts of a row, each relative to the largest element of its part (online normalizer calculation, arXiv 1805.02867).
//!
//! Exponents are differences before they are scaled for the machine's base of 2: scaled first, `f32::MIN`, which masks write, would overflow, and a
//! large offset of the whole row would take digits.

use galatea::prelude::*;

/// The number to subtract from exponents: the largest element, or 0 if all elements are `-inf`, because `-inf - -inf` is NaN.
#[device]
pub(crate) fn finite(largest: Value<f32>) -> Value<f32> {
    select(largest == f32::NEG_INFINITY, 0.0, largest)
}

/// The largest element of two parts, and the sum of exponentials relative to it.
#[device]
pub(crate) fn joined(one: (Value<f32>, Value<f32>), other: (Value<f32>, Value<f32>)) -> (Value<f32>, Value<f32>) {
    let ((a, x), (b, y)) = (one, other);
    let top = max(a, b);
    let base = finite(top);
    (top, x * fast_exp(a - base) + y * fast_exp(b - base))
}
