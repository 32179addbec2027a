//! Floating-point formats: unpacks numbers of up to 64 bits exactly, and packs them with rounding.
//!
//! The formats are those of the PTX ISA, 5.2.2 "Fundamental Types" and 5.2.3 "Alternate Floating-Point Data Formats". `e4m3` and `e5m2` are
//! those of the Open Compute Project's 8-bit floating point specification, revision 1.0.

/// A binary floating-point format of at most 64 bits: sign, exponent and fraction, from the highest bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Format {
    exponent_bits: u32,
    fraction_bits: u32,
    /// The number of ignored bits below the fraction: 13 in a `.tf32` register.
    ignored_bits: u32,
    /// Whether the highest exponent is reserved for infinities and NaNs. If not, only the pattern of all ones is a NaN, and there is no
    /// infinity.
    has_infinity: bool,
}

/// The value of a bit pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unpacked {
    /// `significand * 2^exponent`, with a sign. Zeros have a sign, too.
    Finite { negative: bool, significand: u64, exponent: i32 },
    /// An infinity.
    Infinite { negative: bool },
    /// Any NaN.
    Nan,
}

/// Rounding modes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rounding {
    /// `.rn`: to nearest, ties to even.
    NearestEven,
    /// `.rna`: to nearest, ties away from zero.
    #[cfg(test)]
    NearestAway,
    /// `.rz`: towards zero.
    Zero,
    /// `.rm`: towards negative infinity.
    Down,
    /// `.rp`: towards positive infinity.
    Up,
}

impl Rounding {
    /// Whether rounding increments the magnitude, given the dropped bits.
    pub(crate) fn grows(self, negative: bool, is_odd: bool, dropped: Dropped) -> bool {
        match self {
            Rounding::NearestEven => dropped == Dropped::MoreThanHalf || dropped == Dropped::Half && is_odd,
            #[cfg(test)]
            Rounding::NearestAway => dropped >= Dropped::Half,
            Rounding::Zero => false,
            Rounding::Down => negative && dropped > Dropped::Nothing,
            Rounding::Up => !negative && dropped > Dropped::Nothing,
        }
    }
}

/// The size of the dropped bits, relative to the last kept bit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Dropped {
    Nothing,
    LessThanHalf,
    Half,
    MoreThanHalf,
}

impl Dropped {
    /// Classifies the low `shift` bits of a magnitude.
    pub(crate) fn of(magnitude: u128, shift: u32) -> Dropped {
        if shift == 0 || magnitude == 0 {
            return Dropped::Nothing;
        }
        if shift > 128 {
            return Dropped::LessThanHalf;
        }
        let half = 1u128 << (shift - 1);
        let rest = if shift == 128 { magnitude } else { magnitude & ((1 << shift) - 1) };
        match rest.cmp(&half) {
            _ if rest == 0 => Dropped::Nothing,
            std::cmp::Ordering::Less => Dropped::LessThanHalf,
            std::cmp::Ordering::Equal => Dropped::Half,
            std::cmp::Ordering::Greater => Dropped::MoreThanHalf,
        }
    }
}

impl Format {
    pub(crate) const E4M3: Format = Format { exponent_bits: 4, fraction_bits: 3, ignored_bits: 0, has_infinity: false };
    pub(crate) const E5M2: Format = Format::ieee(5, 2);
    pub(crate) const F16: Format = Format::ieee(5, 10);
    pub(crate) const BF16: Format = Format::ieee(8, 7);
    pub(crate) const TF32: Format = Format { ignored_bits: 13, ..Format::ieee(8, 10) };
    pub(crate) const F32: Format = Format::ieee(8, 23);
    pub(crate) const F64: Format = Format::ieee(11, 52);

    const fn ieee(exponent_bits: u32, fraction_bits: u32) -> Format {
        Format { exponent_bits, fraction_bits, ignored_bits: 0, has_infinity: true }
    }

    /// The exponent of the last bit of a subnormal number.
    pub(crate) fn lowest_exponent(self) -> i32 {
        2 - (1 << (self.exponent_bits - 1)) - self.fraction_bits as i32
    }

    pub(crate) fn sign_bit(self) -> u64 {
        1 << (self.exponent_bits + self.fraction_bits)
    }

    /// The number of bits of the fraction.
    pub(crate) fn fraction_bits(self) -> u32 {
        self.fraction_bits
    }

    fn exponent_ones(self) -> u64 {
        (1 << self.exponent_bits) - 1
    }

    /// The bits of positive infinity, or of the NaN if the format has no infinity.
    pub(crate) fn infinity(self) -> u64 {
        if self.has_infinity { self.exponent_ones() << self.fraction_bits } else { self.sign_bit() - 1 }
    }

    /// The bits of the highest finite number.
    pub(crate) fn highest(self) -> u64 {
        self.infinity() - 1
    }

    /// Whether the number is subnormal.
    pub(crate) fn is_subnormal(self, bits: u64) -> bool {
        let magnitude = (bits >> self.ignored_bits) & (self.sign_bit() - 1);
        magnitude != 0 && magnitude >> self.fraction_bits == 0
    }

    /// Unpacks a bit pattern.
    pub(crate) fn unpack(self, bits: u64) -> Unpacked {
        let bits = bits >> self.ignored_bits;
        let negative = bits & self.sign_bit() != 0;
        let magnitude = bits & (self.sign_bit() - 1);
        if magnitude >= self.infinity() {
            return if self.has_infinity && magnitude == self.infinity() { Unpacked::Infinite { negative } } else { Unpacked::Nan };
        }
        let fraction = magnitude & ((1 << self.fraction_bits) - 1);
        let stored = (magnitude >> self.fraction_bits) as i32;
        let hidden = u64::from(stored > 0) << self.fraction_bits;
        Unpacked::Finite { negative, significand: hidden | fraction, exponent: self.lowest_exponent() + stored.max(1) - 1 }
    }

    /// The bits of `magnitude * 2^exponent`, rounded. On overflow the result is an infinity (the NaN of `e4m3`), or the highest finite
    /// number if the mode rounds towards zero.
    pub(crate) fn pack(self, negative: bool, magnitude: u128, exponent: i32, rounding: Rounding) -> u64 {
        let sign = if negative { self.sign_bit() } else { 0 };
        let finite = self.round(negative, magnitude, exponent, rounding);
        let largest = if rounding.grows(negative, true, Dropped::MoreThanHalf) { self.infinity() } else { self.highest() };
        (sign | finite.unwrap_or(largest)) << self.ignored_bits
    }

    /// As [`Format::pack`], but every overflow becomes an infinity, as in a tensor core.
    pub(crate) fn pack_or_infinity(self, negative: bool, magnitude: u128, exponent: i32, rounding: Rounding) -> u64 {
        let sign = if negative { self.sign_bit() } else { 0 };
        (sign | self.round(negative, magnitude, exponent, rounding).unwrap_or(self.infinity())) << self.ignored_bits
    }

    /// As [`Format::pack`] with rounding to nearest, but an overflow becomes the highest finite number: `.satfinite`.
    #[cfg(test)]
    pub(crate) fn pack_saturating(self, negative: bool, magnitude: u128, exponent: i32) -> u64 {
        let sign = if negative { self.sign_bit() } else { 0 };
        (sign | self.round(negative, magnitude, exponent, Rounding::NearestEven).unwrap_or(self.highest())) << self.ignored_bits
    }

    /// The bits of a finite result without the sign; `None` on overflow.
    fn round(self, negative: bool, magnitude: u128, exponent: i32, rounding: Rounding) -> Option<u64> {
        if magnitude == 0 {
            return Some(0);
        }
        let top = 127 - magnitude.leading_zeros() as i32;
        // The exponent of the result's last bit, for a full significand or for a subnormal.
        let last = (exponent + top - self.fraction_bits as i32).max(self.lowest_exponent());
        let shift = last - exponent;
        let significand = if shift <= 0 {
            (magnitude as u64) << -shift
        } else {
            let kept = magnitude.checked_shr(shift as u32).unwrap_or(0) as u64;
            kept + u64::from(rounding.grows(negative, kept & 1 == 1, Dropped::of(magnitude, shift as u32)))
        };
        // A carry out of the fraction increments the exponent, because the two fields are adjacent.
        let stored = (last - self.lowest_exponent()) as u64;
        let bits = (stored << self.fraction_bits) + significand;
        (stored <= self.exponent_ones() && bits <= self.highest()).then_some(bits)
    }
}

/// One half of `cvt.rn.satfinite.e4m3x2.f32` (PTX ISA, 9.7.9.22), independent of the simulator's conversions: tests compare the two.
#[cfg(test)]
pub(crate) fn e4m3_from_f32(x: f32, relu: bool) -> u8 {
    saturating_from_f32(Format::E4M3, x, relu)
}

/// One half of `cvt.rn.satfinite.e5m2x2.f32`, also independent.
#[cfg(test)]
pub(crate) fn e5m2_from_f32(x: f32, relu: bool) -> u8 {
    saturating_from_f32(Format::E5M2, x, relu)
}

/// One half of `cvt.rn.f16x2.e4m3x2`, which is exact.
pub(crate) fn e4m3_to_f16(bits: u8) -> u16 {
    exact_to_f16(Format::E4M3, bits)
}

/// One half of `cvt.rn.f16x2.e5m2x2`, which is exact.
pub(crate) fn e5m2_to_f16(bits: u8) -> u16 {
    exact_to_f16(Format::E5M2, bits)
}

/// The NaN result of conversions to an 8-bit format.
#[cfg(test)]
const NAN_8: u8 = 0x7f;

/// The NaN result of conversions to `.f16`.
const NAN_F16: u16 = 0x7fff;

#[cfg(test)]
fn saturating_from_f32(format: Format, x: f32, relu: bool) -> u8 {
    match Format::F32.unpack(u64::from(x.to_bits())) {
        Unpacked::Nan => NAN_8,
        Unpacked::Finite { negative: true, .. } | Unpacked::Infinite { negative: true } if relu => 0,
        Unpacked::Infinite { negative } => format.pack_saturating(negative, 1, i32::from(i16::MAX)) as u8,
        Unpacked::Finite { negative, significand, exponent } => format.pack_saturating(negative, significand.into(), exponent) as u8,
    }
}

fn exact_to_f16(format: Format, bits: u8) -> u16 {
    match format.unpack(bits.into()) {
        Unpacked::Nan => NAN_F16,
        Unpacked::Infinite { negative } => Format::F16.pack(negative, 1, i32::from(i16::MAX), Rounding::NearestEven) as u16,
        Unpacked::Finite { negative, significand, exponent } => {
            Format::F16.pack(negative, significand.into(), exponent, Rounding::NearestEven) as u16
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value as an `f64`.
    fn value(format: Format, bits: u64) -> f64 {
        match format.unpack(bits) {
            Unpacked::Nan => f64::NAN,
            Unpacked::Infinite { negative } => {
                if negative {
                    f64::NEG_INFINITY
                } else {
                    f64::INFINITY
                }
            }
            Unpacked::Finite { negative, significand, exponent } => {
                // In two steps, because a power of two below the normal range would lose bits.
                let magnitude = significand as f64 * 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2);
                if negative { -magnitude } else { magnitude }
            }
        }
    }

    #[test]
    fn numbers_named_in_the_specification() {
        for (bits, expected) in [(0x7e, 448.0), (0x08, 2f64.powi(-6)), (0x07, 0.875 * 2f64.powi(-6)), (0x01, 2f64.powi(-9)), (0xc0, -2.0)] {
            assert_eq!(value(Format::E4M3, bits), expected);
        }
        for (bits, expected) in [(0x7b, 57344.0), (0x04, 2f64.powi(-14)), (0x01, 2f64.powi(-16)), (0x7c, f64::INFINITY)] {
            assert_eq!(value(Format::E5M2, bits), expected);
        }
        assert_eq!(Format::E4M3.unpack(0xff), Unpacked::Nan);
        assert_eq!(Format::E5M2.unpack(0x7d), Unpacked::Nan);
    }

    #[test]
    fn unpacks_as_native_code_does() {
        for bits in 0..=u16::MAX {
            let (expected, got) = (half::f16::from_bits(bits).to_f64(), value(Format::F16, bits.into()));
            assert!(expected.to_bits() == got.to_bits() || expected.is_nan() && got.is_nan(), "{bits:#06x}");
            let (expected, got) = (half::bf16::from_bits(bits).to_f64(), value(Format::BF16, bits.into()));
            assert!(expected.to_bits() == got.to_bits() || expected.is_nan() && got.is_nan(), "{bits:#06x}");
            let single = u32::from(bits) << 16 | 0x6000;
            let (expected, got) = (f64::from(f32::from_bits(single)), value(Format::TF32, u64::from(single | 0x1fff)));
            assert!(expected.to_bits() == got.to_bits() || expected.is_nan() && got.is_nan(), "{single:#010x}");
        }
    }

    #[test]
    fn packs_as_native_code_does() {
        let mut state = 1u64;
        for _ in 0..100_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            // Exponents near those of the formats, so that subnormals and overflows occur.
            let double = f64::from_bits(state & 0x8003_ffff_ffff_ffff | (0x300 + (state >> 20) % 0x200) << 52);
            let Unpacked::Finite { negative, significand, exponent } = Format::F64.unpack(double.to_bits()) else { continue };
            let pack = |format: Format| format.pack(negative, significand.into(), exponent, Rounding::NearestEven);
            assert_eq!(pack(Format::F32), u64::from((double as f32).to_bits()), "{double:e}");
            assert_eq!(pack(Format::F64), double.to_bits());
            // `half` uses only the upper half of an `f64`.
            let double = f64::from_bits(double.to_bits() & !0xffff_ffff);
            let Unpacked::Finite { negative, significand, exponent } = Format::F64.unpack(double.to_bits()) else { continue };
            let pack = |format: Format| format.pack(negative, significand.into(), exponent, Rounding::NearestEven);
            assert_eq!(pack(Format::F16), u64::from(half::f16::from_f64(double).to_bits()), "{double:e}");
            assert_eq!(pack(Format::BF16), u64::from(half::bf16::from_f64(double).to_bits()), "{double:e}");
        }
    }

    #[test]
    fn conversions_to_eight_bits_give_the_nearest_number() {
        for (format, convert) in [(Format::E4M3, e4m3_from_f32 as fn(f32, bool) -> u8), (Format::E5M2, e5m2_from_f32)] {
            let highest = format.highest() as u8;
            for bits in 0..highest {
                let (low, high) = (value(format, bits.into()) as f32, value(format, u64::from(bits) + 1) as f32);
                assert_eq!(convert(low, false), bits);
                assert_eq!(convert(-low, false), bits | 0x80);
                assert_eq!(convert(-low, true), 0);
                let middle = (low + high) / 2.0;
                assert_eq!(convert(middle, false), bits + (bits & 1), "a tie goes to the even one");
                assert_eq!(convert(middle.next_up(), false), bits + 1);
                assert_eq!(convert(middle.next_down(), false), bits);
            }
            for large in [f32::INFINITY, f32::MAX, 1e5] {
                assert_eq!(convert(large, false), highest);
                assert_eq!(convert(-large, false), highest | 0x80);
            }
            assert_eq!(convert(f32::NAN, true), 0x7f);
            assert_eq!(convert(f32::from_bits(1), false), 0);
        }
        assert_eq!(e4m3_from_f32(464.0, false), 0x7e, "would be rounded to a number that the format lacks");
    }

    #[test]
    fn conversions_from_eight_bits_are_exact() {
        for bits in 0..=u8::MAX {
            for (format, half) in [(Format::E4M3, e4m3_to_f16(bits)), (Format::E5M2, e5m2_to_f16(bits))] {
                match format.unpack(bits.into()) {
                    Unpacked::Nan => assert_eq!(half, 0x7fff),
                    _ => assert_eq!(half::f16::from_bits(half).to_f64().to_bits(), value(format, bits.into()).to_bits()),
                }
            }
        }
    }

    #[test]
    fn rounding_towards_zero_never_grows() {
        assert_eq!(Format::F32.pack(false, u128::MAX, 100, Rounding::Zero), 0x7f7f_ffff);
        assert_eq!(Format::F32.pack(true, u128::MAX, -127, Rounding::Zero), 0xbfff_ffff);
        assert_eq!(Format::F32.pack_or_infinity(true, u128::MAX, 0, Rounding::Zero), 0xff7f_ffff);
        assert_eq!(Format::F32.pack_or_infinity(true, u128::MAX, 1, Rounding::Zero), 0xff80_0000);
        assert_eq!(Format::F32.pack(true, u128::MAX, -127, Rounding::NearestEven), 0xc000_0000);
        assert_eq!(Format::F16.pack(false, u128::MAX, -152, Rounding::Zero), 0);
        assert_eq!(Format::F16.pack(false, u128::MAX, -152, Rounding::NearestEven), 1);
        assert_eq!(Format::F16.pack(false, u128::MAX, -153, Rounding::NearestEven), 0, "a little less than a tie");
    }
}
