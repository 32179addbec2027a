//! 8-bit floats on the host, as elements of tensors.

use std::cmp::Ordering;
use std::fmt;

use cudarc::driver::{DeviceRepr, ValidAsZeroBits};
use kernel_lang::float8::{Format, NAN};

macro_rules! float8 {
    ($(#[$doc:meta])* $name:ident = $format:expr) => {
        $(#[$doc])*
        ///
        /// Numbers compare by their values: a NaN equals nothing, and -0 equals 0.
        #[allow(non_camel_case_types, reason = "it is named as Rust names its own floats, and `half` its `f16`")]
        #[derive(Clone, Copy, Default)]
        #[repr(transparent)]
        pub struct $name(u8);

        impl $name {
            /// The largest finite number.
            pub const MAX: $name = $name($format.largest());
            /// The smallest finite number.
            pub const MIN: $name = $name($format.largest() | 0x80);
            /// The smallest positive normal number.
            pub const MIN_POSITIVE: $name = $name($format.from_f32($format.smallest_normal()));
            /// The difference between 1 and the next larger number.
            pub const EPSILON: $name = $name($format.from_f32($format.epsilon()));
            /// Not a number.
            pub const NAN: $name = $name(NAN);

            /// The float with these bits.
            pub const fn from_bits(bits: u8) -> $name {
                $name(bits)
            }

            /// The bits: sign, exponent, fraction.
            pub const fn to_bits(self) -> u8 {
                self.0
            }

            /// Rounds to the nearest float, ties to even. A value that is too large, or infinite, becomes the largest finite number of its sign. In a
            /// kernel, `x as` this type gives the same bits.
            #[must_use]
            pub const fn from_f32(value: f32) -> $name {
                $name($format.from_f32(value))
            }

            /// The exact value.
            pub const fn to_f32(self) -> f32 {
                $format.to_f32(self.0)
            }

            /// Returns whether the float is a NaN.
            pub const fn is_nan(self) -> bool {
                self.to_f32().is_nan()
            }
        }

        impl From<$name> for f32 {
            fn from(value: $name) -> f32 {
                value.to_f32()
            }
        }

        impl From<$name> for f64 {
            fn from(value: $name) -> f64 {
                value.to_f32().into()
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &$name) -> bool {
                self.to_f32() == other.to_f32()
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &$name) -> Option<Ordering> {
                self.to_f32().partial_cmp(&other.to_f32())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.to_f32(), f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.to_f32(), f)
            }
        }

        // SAFETY: the type is one byte, and every bit pattern is a float. The device uses the same byte.
        unsafe impl DeviceRepr for $name {}
        // SAFETY: the bits 0 are the number 0.
        unsafe impl ValidAsZeroBits for $name {}
    };
}

float8! {
    /// An 8-bit float with 4 bits of exponent and 3 of fraction. The largest number is 448, the smallest normal one 2^-6, and the smallest positive
    /// one 2^-9. There are no infinities. It is `E4M3` of the Open Compute Project's 8-bit floating point specification.
    ///
    /// ```
    /// use kernel_runtime::f8e4m3;
    /// assert_eq!(f8e4m3::from_f32(0.3).to_f32(), 0.3125);
    /// assert_eq!(f8e4m3::from_f32(1e6), f8e4m3::MAX);
    /// assert_eq!(f8e4m3::MAX.to_f32(), 448.0);
    /// assert!(f8e4m3::from_f32(f32::NAN).is_nan());
    /// ```
    f8e4m3 = Format::E4M3
}
float8! {
    /// An 8-bit float with 5 bits of exponent and 2 of fraction. The largest finite number is 57344, the smallest normal one 2^-14, and the smallest
    /// positive one 2^-16. It is `E5M2` of the Open Compute Project's 8-bit floating point specification: the upper byte of an `f16`.
    ///
    /// ```
    /// use kernel_runtime::f8e5m2;
    /// assert_eq!(f8e5m2::from_f32(0.3).to_f32(), 0.3125);
    /// assert_eq!(f8e5m2::from_f32(f32::INFINITY), f8e5m2::MAX);
    /// assert_eq!(f8e5m2::INFINITY.to_f32(), f32::INFINITY);
    /// assert_eq!(f8e5m2::MAX.to_f32(), 57344.0);
    /// ```
    f8e5m2 = Format::E5M2
}

impl f8e5m2 {
    /// Infinity. No conversion produces it.
    pub const INFINITY: f8e5m2 = f8e5m2(Format::E5M2.largest() + 1);
    /// Negative infinity. No conversion produces it.
    pub const NEG_INFINITY: f8e5m2 = f8e5m2((Format::E5M2.largest() + 1) | 0x80);
}
