//! Elements as the tests see them: made from bits, and widened to `f64` or `i128` for the references.

use galatea::prelude::*;
use galatea::{Element, Float, Int};

/// Any element.
pub(crate) trait Value: Element {
    /// The value with these low bits.
    fn from_bits(bits: u64) -> Self;
    /// A number of moderate size, as near as the type has it.
    fn near(value: f64) -> Self;
}

/// A float, widened without loss.
pub(crate) trait FloatValue: Value + Float {
    /// Binary digits of the significand.
    const DIGITS: i32;
    /// The exponent of the smallest normal number.
    const MIN_EXPONENT: i32;
    /// The largest finite number.
    const MAX: f64;
    fn wide(self) -> f64;
}

/// An integer, widened without loss.
pub(crate) trait IntValue: Value + Int {
    const BITS: u32;
    fn wide(self) -> i128;
    /// The low bits of a number.
    fn wrap(value: i128) -> Self;
}

impl Value for bool {
    fn from_bits(bits: u64) -> bool {
        bits & 1 != 0
    }
    fn near(value: f64) -> bool {
        value > 0.0
    }
}

macro_rules! ints {
    ($($ty:ident),*) => {$(
        impl Value for $ty {
            fn from_bits(bits: u64) -> $ty {
                bits as $ty
            }
            fn near(value: f64) -> $ty {
                value as $ty
            }
        }
        impl IntValue for $ty {
            const BITS: u32 = <$ty>::BITS;
            fn wide(self) -> i128 {
                self.into()
            }
            fn wrap(value: i128) -> $ty {
                value as $ty
            }
        }
    )*};
}
ints!(i8, i16, i32, i64, u8, u16, u32, u64);

impl Value for f8e4m3 {
    fn from_bits(bits: u64) -> f8e4m3 {
        f8e4m3::from_bits(bits as u8)
    }
    fn near(value: f64) -> f8e4m3 {
        f8e4m3::from_f32(value as f32)
    }
}

impl Value for f8e5m2 {
    fn from_bits(bits: u64) -> f8e5m2 {
        f8e5m2::from_bits(bits as u8)
    }
    fn near(value: f64) -> f8e5m2 {
        f8e5m2::from_f32(value as f32)
    }
}

macro_rules! floats {
    ($($ty:ident: $bits:ty, $from_f64:expr, $digits:expr, $min:expr, $max:expr;)*) => {$(
        impl Value for $ty {
            fn from_bits(bits: u64) -> $ty {
                $ty::from_bits(bits as $bits)
            }
            fn near(value: f64) -> $ty {
                $from_f64(value)
            }
        }
        impl FloatValue for $ty {
            const DIGITS: i32 = $digits;
            const MIN_EXPONENT: i32 = $min;
            const MAX: f64 = $max;
            fn wide(self) -> f64 {
                self.into()
            }
        }
    )*};
}
floats! {
    f16: u16, f16::from_f64, 11, -14, 65504.0;
    bf16: u16, bf16::from_f64, 8, -126, 255.0 * (1u128 << 120) as f64;
    f32: u32, |value| value as f32, 24, -126, f32::MAX as f64;
    f64: u64, |value| value, 53, -1022, f64::MAX;
}
