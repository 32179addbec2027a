//! Conversions between 8-bit floats and `f32`: exact to `f32`; from `f32` rounded once to nearest even, bit for bit as a GPU's
//! `cvt.rn.satfinite`.
//!
//! Values beyond the largest finite number, infinities included, become the largest finite number of their sign; a NaN becomes `0x7f`. The
//! formats are `E4M3` and `E5M2` of the Open Compute Project's 8-bit floating point specification, revision 1.0:
//!
//! | | exponent bias | largest | smallest normal | smallest | infinities | NaNs |
//! |---|---|---|---|---|---|---|
//! | `f8e4m3` | 7 | 448 = `0x7e` | 2^-6 | 2^-9 | none | `0x7f`, `0xff` |
//! | `f8e5m2` | 15 | 57344 = `0x7b` | 2^-14 | 2^-16 | `0x7c`, `0xfc` | `0x7d` to `0x7f`, `0xfd` to `0xff` |

use crate::dtype::Dtype;

/// An 8-bit float format.
///
/// ```
/// use kernel_lang::float8::Format;
/// assert_eq!(Format::E4M3.to_f32(0x39), 1.125);
/// assert_eq!(Format::E4M3.from_f32(1.125), 0x39);
/// assert_eq!(Format::E4M3.to_f32(Format::E4M3.from_f32(1e9)), 448.0);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Format {
    fraction: u32,
    /// The exponent of the smallest normal number.
    smallest: i32,
    largest: u8,
}

/// The NaN that conversions return.
pub const NAN: u8 = 0x7f;

impl Format {
    /// The format of `f8e4m3`.
    pub const E4M3: Format = Format { fraction: 3, smallest: -6, largest: 0x7e };
    /// The format of `f8e5m2`.
    pub const E5M2: Format = Format { fraction: 2, smallest: -14, largest: 0x7b };

    /// The format of an element type; `None` if it is not an 8-bit float.
    pub const fn of(dtype: Dtype) -> Option<Format> {
        match dtype {
            Dtype::F8E4M3 => Some(Format::E4M3),
            Dtype::F8E5M2 => Some(Format::E5M2),
            _ => None,
        }
    }

    /// Does the format have infinities?
    pub const fn has_infinities(self) -> bool {
        self.largest + 1 < NAN
    }

    /// The bits of the largest finite number.
    pub const fn largest(self) -> u8 {
        self.largest
    }

    /// The smallest normal number.
    pub const fn smallest_normal(self) -> f32 {
        f32::from_bits(self.smallest_normal_bits())
    }

    /// The difference between 1 and the next larger number.
    pub const fn epsilon(self) -> f32 {
        f32::from_bits(Self::power(-(self.fraction as i32)))
    }

    /// 2 to the power `exponent`, as the bits of an `f32`.
    const fn power(exponent: i32) -> u32 {
        ((127 + exponent) as u32) << 23
    }

    /// The distance in bits between the fraction of an `f32` and the fraction of this format.
    pub(crate) const fn shift(self) -> u32 {
        23 - self.fraction
    }

    /// The smallest normal number as the bits of an `f32`.
    pub(crate) const fn smallest_normal_bits(self) -> u32 {
        Self::power(self.smallest)
    }

    /// The largest finite number as the bits of an `f32`.
    pub(crate) const fn largest_bits(self) -> u32 {
        ((self.largest as u32) << self.shift()) + self.rebias()
    }

    /// For a normal number: the bits of the `f32` minus the bits of this format shifted to the same position.
    pub(crate) const fn rebias(self) -> u32 {
        self.smallest_normal_bits() - (1 << 23)
    }

    /// The bits of an `f32` whose last bit is worth the smallest number of the format: adding to it rounds to a multiple of that number.
    pub(crate) const fn magic(self) -> u32 {
        Self::power(self.smallest - self.fraction as i32 + 23)
    }

    /// The bits of an `f32` factor: it corrects the exponent bias after exponent and fraction are shifted to their position in an `f32`.
    pub(crate) const fn scale(self) -> u32 {
        Self::power(126 + self.smallest)
    }

    /// The value of the bits, exactly; a NaN stays a NaN.
    #[inline(always)]
    pub const fn to_f32(self, bits: u8) -> f32 {
        let magnitude = (bits & 0x7f) as u32;
        // The product is exact for subnormal numbers too.
        let value = f32::from_bits(magnitude << self.shift()) * f32::from_bits(self.scale());
        let is_infinite = self.has_infinities() && magnitude == self.largest as u32 + 1;
        let special = if is_infinite { f32::INFINITY } else { f32::NAN };
        let value = if magnitude > self.largest as u32 { special } else { value };
        f32::from_bits(value.to_bits() | ((bits & 0x80) as u32) << 24)
    }

    /// The bits of the nearest number. Values beyond the largest finite number, infinities included, give that number; NaN gives `0x7f`.
    #[inline(always)]
    pub const fn from_f32(self, value: f32) -> u8 {
        let bits = value.to_bits();
        let magnitude = bits & 0x7fff_ffff;
        let largest = self.largest_bits();
        let finite = if magnitude > largest { largest } else { magnitude };
        let small = (f32::from_bits(finite) + f32::from_bits(self.magic())).to_bits().wrapping_sub(self.magic());
        let odd = (finite >> self.shift()) & 1;
        let below_half = (1 << (self.shift() - 1)) - 1;
        let normal = finite.wrapping_sub(self.rebias()).wrapping_add(below_half + odd) >> self.shift();
        let rounded = if finite < self.smallest_normal_bits() { small } else { normal };
        let signed = rounded as u8 | (bits >> 24) as u8 & 0x80;
        if magnitude > 0x7f80_0000 { NAN } else { signed }
    }

    /// The nearest number, as if the format had no largest number.
    pub(crate) fn round(self, value: f64) -> f64 {
        nearest(value, self.fraction as i32, self.smallest)
    }
}

/// The nearest number with `fraction` binary digits after the leading one, and with fewer below 2 to the power `smallest`.
pub(crate) fn nearest(value: f64, fraction: i32, smallest: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let exponent = ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    let last_place = 2f64.powi(exponent.max(smallest) - fraction);
    (value / last_place).round_ties_even() * last_place
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of the bits, computed from the specification.
    fn worth(exponent_bits: u32, has_infinity: bool, bits: u8) -> f64 {
        let fraction_bits = 7 - exponent_bits;
        let (exponent, fraction) = (i32::from(bits & 0x7f) >> fraction_bits, bits & ((1 << fraction_bits) - 1));
        let bias = (1 << (exponent_bits - 1)) - 1;
        let part = f64::from(fraction) / f64::from(1u32 << fraction_bits);
        let magnitude = match (exponent, fraction) {
            (31, 0) if has_infinity => f64::INFINITY,
            (31, _) if has_infinity => f64::NAN,
            _ if !has_infinity && bits & 0x7f == 0x7f => f64::NAN,
            (0, _) => part * 2f64.powi(1 - bias),
            _ => (1.0 + part) * 2f64.powi(exponent - bias),
        };
        if bits & 0x80 != 0 { -magnitude } else { magnitude }
    }

    const FORMATS: [(u32, bool, Format); 2] = [(4, false, Format::E4M3), (5, true, Format::E5M2)];

    #[test]
    fn every_value_is_what_the_specification_says_and_survives_the_round_trip() {
        for (exponent_bits, has_infinity, format) in FORMATS {
            for bits in 0..=u8::MAX {
                let (value, wide) = (worth(exponent_bits, has_infinity, bits), format.to_f32(bits));
                if value.is_nan() {
                    assert!(wide.is_nan() && format.from_f32(wide) == NAN, "{bits:#x}");
                    continue;
                }
                assert_eq!(f64::from(wide).to_bits(), value.to_bits(), "{bits:#x}");
                let largest = if has_infinity && value.is_infinite() { bits - 1 } else { bits };
                assert_eq!(format.from_f32(wide), largest, "{bits:#x}");
            }
        }
    }

    /// Compares with a search over all values, for every `f16` and around every midpoint.
    #[test]
    fn every_f16_and_every_tie_goes_to_the_nearest() {
        for (exponent_bits, has_infinity, format) in FORMATS {
            let finite: Vec<u8> = (0..0x80).filter(|bits| worth(exponent_bits, has_infinity, *bits).is_finite()).collect();
            let nearest = |value: f64| {
                // The clamp keeps an infinite value from being equally far from all numbers.
                let distance = |bits: &u8| (worth(exponent_bits, has_infinity, *bits) - value.abs().min(1e9)).abs();
                // Ties go to the even number.
                let best = *finite.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)).then((*a & 1).cmp(&(*b & 1)))).unwrap();
                best | if value.is_sign_negative() { 0x80 } else { 0 }
            };
            let check = |value: f32| {
                let want = if value.is_nan() { NAN } else { nearest(value.into()) };
                assert_eq!(format.from_f32(value), want, "{value:e}");
                let rounded = format.round(value.into());
                let largest = f64::from(format.to_f32(format.largest()));
                if rounded.abs() <= largest {
                    assert_eq!(rounded.to_bits(), f64::from(format.to_f32(want)).to_bits(), "{value:e}");
                }
            };
            for bits in 0..=u16::MAX {
                check(half::f16::from_bits(bits).to_f32_const());
            }
            for pair in finite.windows(2) {
                let middle = (format.to_f32(pair[0]) + format.to_f32(pair[1])) / 2.0;
                for value in [middle, middle.next_up(), middle.next_down()] {
                    check(value);
                    check(-value);
                }
                // A difference that an `f32` cannot hold breaks the tie.
                assert_eq!(format.round(f64::from(middle).next_down()), format.to_f32(pair[0]).into());
                assert_eq!(format.round(f64::from(middle).next_up()), format.to_f32(pair[1]).into());
            }
            for value in [f32::MIN_POSITIVE, f32::from_bits(1), f32::MAX, f32::INFINITY, 449.0, 464.0, 57345.0, 61440.0, 65536.0] {
                check(value);
                check(-value);
            }
        }
    }
}
