//! Arithmetic of `.f16`, `.bf16`, `.f32` and `.f64` in the four rounding modes, on raw bits (PTX ISA, 9.7.3 to 9.7.5).
//!
//! The three narrow formats are computed in `f64` with rounding to odd: the last bit of an inexact result is 1. An `f64` has more than
//! twice their precision plus two bits. Rounding such a result to the narrow format therefore equals rounding the exact result (Boldo and
//! Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).

use rustc_apfloat::Float as _;
use rustc_apfloat::Round;
use rustc_apfloat::ieee::Double;

use crate::numerics::small_float::{Format, Rounding, Unpacked};

/// A floating-point format with arithmetic.
pub(crate) trait Float: Send + Sync + 'static {
    const FORMAT: Format;
    /// The number of bits of a value.
    const BITS: u32;
    /// 1.0
    const ONE: u64;
    /// The exact value as an `f64`.
    fn value(bits: u64) -> f64;
    /// The NaN result of an operation with these operands.
    fn nan(operands: &[u64]) -> u64;
    fn add(a: u64, b: u64, rounding: Rounding) -> u64;
    fn mul(a: u64, b: u64, rounding: Rounding) -> u64;
    fn fma(a: u64, b: u64, c: u64, rounding: Rounding) -> u64;
    fn div(a: u64, b: u64, rounding: Rounding) -> u64;
    fn sqrt(a: u64, rounding: Rounding) -> u64;
    /// Rounds to the format; `operands` determine the bits of a NaN.
    fn round(value: f64, rounding: Rounding, operands: &[u64]) -> u64;

    /// The sign bit.
    const SIGN: u64 = 1 << (Self::BITS - 1);

    fn is_nan(bits: u64) -> bool {
        bits & !Self::SIGN > Self::FORMAT.infinity()
    }

    /// Replaces a subnormal by a zero of the same sign.
    fn flush(bits: u64) -> u64 {
        if Self::FORMAT.is_subnormal(bits) { bits & Self::SIGN } else { bits }
    }

    /// `.sat`: clamps to the range 0 to 1; NaN becomes 0.
    fn saturate(bits: u64) -> u64 {
        if bits & Self::SIGN != 0 || Self::is_nan(bits) { 0 } else { bits.min(Self::ONE) }
    }

    /// `.relu`: negative numbers become 0; NaN is unchanged.
    fn relu(bits: u64) -> u64 {
        if bits & Self::SIGN != 0 && !Self::is_nan(bits) { 0 } else { bits }
    }
}

/// `.f16`
pub(crate) struct F16;
/// `.bf16`
pub(crate) struct Bf16;
/// `.f32`
pub(crate) struct F32;
/// `.f64`
pub(crate) struct F64;

macro_rules! narrow {
    ($name:ident, $format:expr, $bits:literal, $one:literal, $nan:literal, $value:expr) => {
        impl Float for $name {
            const FORMAT: Format = $format;
            const BITS: u32 = $bits;
            const ONE: u64 = $one;

            fn value(bits: u64) -> f64 {
                $value(bits)
            }

            fn nan(_: &[u64]) -> u64 {
                $nan
            }

            fn add(a: u64, b: u64, rounding: Rounding) -> u64 {
                Self::round(sum_to_odd(Self::value(a), Self::value(b), rounding), rounding, &[])
            }

            fn mul(a: u64, b: u64, rounding: Rounding) -> u64 {
                Self::round(Self::value(a) * Self::value(b), rounding, &[])
            }

            fn fma(a: u64, b: u64, c: u64, rounding: Rounding) -> u64 {
                // The product of two significands of at most 24 bits is exact in 53 bits.
                Self::round(sum_to_odd(Self::value(a) * Self::value(b), Self::value(c), rounding), rounding, &[])
            }

            fn div(a: u64, b: u64, rounding: Rounding) -> u64 {
                Self::round(quotient_to_odd(Self::value(a), Self::value(b)), rounding, &[])
            }

            fn sqrt(a: u64, rounding: Rounding) -> u64 {
                Self::round(root_to_odd(Self::value(a)), rounding, &[])
            }

            fn round(value: f64, rounding: Rounding, _: &[u64]) -> u64 {
                pack_f64(Self::FORMAT, value, rounding).unwrap_or($nan)
            }
        }
    };
}

narrow!(F16, Format::F16, 16, 0x3c00, 0x7fff, |bits| half::f16::from_bits(bits as u16).to_f64());
narrow!(Bf16, Format::BF16, 16, 0x3f80, 0x7fff, |bits: u64| f64::from(f32::from_bits((bits as u32) << 16)));

/// The NaN result of every `.f32` operation.
pub(crate) const NAN_F32: u64 = 0x7fff_ffff;

fn single(value: f32) -> u64 {
    if value.is_nan() { NAN_F32 } else { u64::from(value.to_bits()) }
}

fn as_single(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

impl Float for F32 {
    const FORMAT: Format = Format::F32;
    const BITS: u32 = 32;
    const ONE: u64 = 0x3f80_0000;

    fn value(bits: u64) -> f64 {
        f64::from(as_single(bits))
    }

    fn nan(_: &[u64]) -> u64 {
        NAN_F32
    }

    fn add(a: u64, b: u64, rounding: Rounding) -> u64 {
        match rounding {
            Rounding::NearestEven => single(as_single(a) + as_single(b)),
            _ => Self::round(sum_to_odd(Self::value(a), Self::value(b), rounding), rounding, &[]),
        }
    }

    fn mul(a: u64, b: u64, rounding: Rounding) -> u64 {
        match rounding {
            Rounding::NearestEven => single(as_single(a) * as_single(b)),
            _ => Self::round(Self::value(a) * Self::value(b), rounding, &[]),
        }
    }

    fn fma(a: u64, b: u64, c: u64, rounding: Rounding) -> u64 {
        Self::round(sum_to_odd(Self::value(a) * Self::value(b), Self::value(c), rounding), rounding, &[])
    }

    fn div(a: u64, b: u64, rounding: Rounding) -> u64 {
        match rounding {
            Rounding::NearestEven => single(as_single(a) / as_single(b)),
            _ => Self::round(quotient_to_odd(Self::value(a), Self::value(b)), rounding, &[]),
        }
    }

    fn sqrt(a: u64, rounding: Rounding) -> u64 {
        match rounding {
            Rounding::NearestEven => single(as_single(a).sqrt()),
            _ => Self::round(root_to_odd(Self::value(a)), rounding, &[]),
        }
    }

    fn round(value: f64, rounding: Rounding, _: &[u64]) -> u64 {
        match rounding {
            Rounding::NearestEven => single(value as f32),
            _ => pack_f64(Format::F32, value, rounding).unwrap_or(NAN_F32),
        }
    }
}

/// The NaN result of an `.f64` operation: the first NaN among these operands, made quiet, with its payload. Each operation lists its
/// operands in the order of the hardware. An invalid operation returns the NaN with a sign and no payload.
fn nan_f64(operands: &[u64]) -> u64 {
    let quiet = 1 << 51;
    operands.iter().find(|&&bits| F64::is_nan(bits)).map_or(0xfff8_0000_0000_0000, |bits| bits | quiet)
}

/// The result of an operation on `f64`: native for rounding to nearest.
fn double(operands: &[u64], rounding: Rounding, native: impl Fn() -> f64, directed: impl Fn(Round) -> Double) -> u64 {
    let result = match rounding {
        Rounding::NearestEven => native().to_bits(),
        #[cfg(test)]
        Rounding::NearestAway => directed(Round::NearestTiesToAway).to_bits() as u64,
        Rounding::Zero => directed(Round::TowardZero).to_bits() as u64,
        Rounding::Down => directed(Round::TowardNegative).to_bits() as u64,
        Rounding::Up => directed(Round::TowardPositive).to_bits() as u64,
    };
    if F64::is_nan(result) { nan_f64(operands) } else { result }
}

fn as_double(bits: u64) -> Double {
    Double::from_bits(u128::from(bits))
}

impl Float for F64 {
    const FORMAT: Format = Format::F64;
    const BITS: u32 = 64;
    const ONE: u64 = 0x3ff0_0000_0000_0000;

    fn value(bits: u64) -> f64 {
        f64::from_bits(bits)
    }

    fn nan(operands: &[u64]) -> u64 {
        nan_f64(operands)
    }

    fn add(a: u64, b: u64, rounding: Rounding) -> u64 {
        let native = || Self::value(a) + Self::value(b);
        double(&[b, a], rounding, native, |round| as_double(a).add_r(as_double(b), round).value)
    }

    fn mul(a: u64, b: u64, rounding: Rounding) -> u64 {
        let native = || Self::value(a) * Self::value(b);
        double(&[b, a], rounding, native, |round| as_double(a).mul_r(as_double(b), round).value)
    }

    fn fma(a: u64, b: u64, c: u64, rounding: Rounding) -> u64 {
        let native = || Self::value(a).mul_add(Self::value(b), Self::value(c));
        double(&[b, c, a], rounding, native, |round| as_double(a).mul_add_r(as_double(b), as_double(c), round).value)
    }

    fn div(a: u64, b: u64, rounding: Rounding) -> u64 {
        let native = || Self::value(a) / Self::value(b);
        double(&[a, b], rounding, native, |round| as_double(a).div_r(as_double(b), round).value)
    }

    fn sqrt(a: u64, rounding: Rounding) -> u64 {
        let value = Self::value(a);
        let root = value.sqrt();
        if root.is_nan() {
            return nan_f64(&[a]);
        }
        if rounding == Rounding::NearestEven || root == 0.0 || root.is_infinite() {
            return root.to_bits();
        }
        // Scales tiny values, so that the remainder below is exact.
        let is_tiny = value < 2f64.powi(-900);
        let (scaled, scaled_root) = if is_tiny { (value * 2f64.powi(200), root * 2f64.powi(100)) } else { (value, root) };
        let rest = (-scaled_root).mul_add(scaled_root, scaled);
        match rounding {
            Rounding::Zero | Rounding::Down if rest < 0.0 => root.next_down().to_bits(),
            Rounding::Up if rest > 0.0 => root.next_up().to_bits(),
            _ => root.to_bits(),
        }
    }

    fn round(value: f64, _: Rounding, operands: &[u64]) -> u64 {
        if value.is_nan() { nan_f64(operands) } else { value.to_bits() }
    }
}

/// Rounds an `f64` to a format; `None` for a NaN.
pub(crate) fn pack_f64(format: Format, value: f64, rounding: Rounding) -> Option<u64> {
    match Format::F64.unpack(value.to_bits()) {
        Unpacked::Finite { negative, significand, exponent } => Some(format.pack(negative, u128::from(significand), exponent, rounding)),
        // The exponent is so large that every format returns an infinity, even if it ignores low bits.
        Unpacked::Infinite { negative } => Some(format.pack(negative, 1, i32::from(i16::MAX), Rounding::NearestEven)),
        Unpacked::Nan => None,
    }
}

/// The sum, rounded to odd. The sign of an exact zero follows the rounding mode.
pub(crate) fn sum_to_odd(x: f64, y: f64, rounding: Rounding) -> f64 {
    let sum = x + y;
    if sum == 0.0 && rounding == Rounding::Down && x.is_sign_negative() != y.is_sign_negative() {
        return -0.0;
    }
    if !sum.is_finite() {
        return sum;
    }
    // The exact error of a sum, by Knuth.
    let of_y = sum - x;
    let error = (x - (sum - of_y)) + (y - of_y);
    to_odd(sum, error)
}

fn quotient_to_odd(x: f64, y: f64) -> f64 {
    let quotient = x / y;
    if !quotient.is_finite() || quotient == 0.0 || y.is_infinite() {
        return quotient;
    }
    let rest = (-quotient).mul_add(y, x);
    to_odd(quotient, if y < 0.0 { -rest } else { rest })
}

fn root_to_odd(x: f64) -> f64 {
    let root = x.sqrt();
    if !root.is_finite() || root == 0.0 {
        return root;
    }
    to_odd(root, (-root).mul_add(root, x))
}

/// Rounds to odd: `nearest` is the exact value rounded to nearest, and `error` has the sign of the exact value less `nearest`.
fn to_odd(nearest: f64, error: f64) -> f64 {
    let bits = nearest.to_bits();
    if error == 0.0 || bits & 1 == 1 {
        return nearest;
    }
    let grows = (error > 0.0) == (nearest > 0.0);
    f64::from_bits(if grows { bits + 1 } else { bits - 1 })
}

/// Selects the minimum or the maximum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Extremum {
    Min,
    Max,
}

/// `min` and `max`: -0 is less than +0. If one operand is a NaN, the result is the other operand, unless `propagates`.
pub(crate) fn extremum<T: Float>(a: u64, b: u64, which: Extremum, propagates: bool) -> u64 {
    match (T::is_nan(a), T::is_nan(b)) {
        (true, true) => T::nan(&[b, a]),
        (true, false) | (false, true) if propagates => T::nan(&[b, a]),
        (true, false) => b,
        (false, true) => a,
        (false, false) => {
            // As sign-magnitude integers, numbers are ordered.
            let key = |bits: u64| {
                let magnitude = (bits & !T::SIGN) as i64;
                if bits & T::SIGN != 0 { -magnitude - 1 } else { magnitude }
            };
            if (key(a) < key(b)) == (which == Extremum::Min) { a } else { b }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rustc_apfloat::ieee::{BFloat, Half, Single};

    use super::*;

    const ROUNDINGS: [(Rounding, Round); 4] = [
        (Rounding::NearestEven, Round::NearestTiesToEven),
        (Rounding::Zero, Round::TowardZero),
        (Rounding::Down, Round::TowardNegative),
        (Rounding::Up, Round::TowardPositive),
    ];

    /// Bits of a format: random ones, or with an exponent near the middle, the lowest or the highest. Then sums cancel, results are
    /// subnormal, and sums are ties.
    fn bits(format: Format) -> impl Strategy<Value = u64> {
        let top = format.infinity();
        let fraction = format.fraction_bits();
        let near = move |exponent: u64| {
            (any::<bool>(), 0..4u64, any::<u64>(), 0..3u32).prop_map(move |(negative, step, random, zeros)| {
                let low = random & ((1 << fraction) - 1);
                let low = match zeros {
                    0 => low,
                    1 => low & !0 << (fraction / 2),
                    _ => low >> (fraction - 1),
                };
                (exponent + (step << fraction) + low) & (top | ((1 << fraction) - 1)) | if negative { format.sign_bit() } else { 0 }
            })
        };
        prop_oneof![
            any::<u64>().prop_map(move |bits| bits & (format.sign_bit() | (format.sign_bit() - 1))),
            near(0),
            near(top / 2),
            near(top - (4 << fraction)),
            Just(0),
            Just(format.sign_bit()),
            Just(top),
        ]
    }

    fn same<T: Float>(got: u64, expected: u128, what: &str) {
        let expected = if T::is_nan(expected as u64) { None } else { Some(expected as u64) };
        assert_eq!((!T::is_nan(got)).then_some(got), expected, "{what}: {got:#x}");
    }

    fn agrees<T: Float, Reference: rustc_apfloat::Float>(a: u64, b: u64, c: u64) {
        let [x, y, z] = [a, b, c].map(|bits| Reference::from_bits(u128::from(bits)));
        for (rounding, round) in ROUNDINGS {
            let what = |name: &str| format!("{name} {a:#x} {b:#x} {c:#x} {rounding:?}");
            same::<T>(T::add(a, b, rounding), x.add_r(y, round).value.to_bits(), &what("add"));
            same::<T>(T::mul(a, b, rounding), x.mul_r(y, round).value.to_bits(), &what("mul"));
            same::<T>(T::div(a, b, rounding), x.div_r(y, round).value.to_bits(), &what("div"));
            same::<T>(T::fma(a, b, c, rounding), x.mul_add_r(y, z, round).value.to_bits(), &what("fma"));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn half_agrees_with_another_implementation(a in bits(Format::F16), b in bits(Format::F16), c in bits(Format::F16)) {
            agrees::<F16, Half>(a, b, c);
        }

        #[test]
        fn bfloat_agrees_with_another_implementation(a in bits(Format::BF16), b in bits(Format::BF16), c in bits(Format::BF16)) {
            agrees::<Bf16, BFloat>(a, b, c);
        }

        #[test]
        fn single_agrees_with_another_implementation(a in bits(Format::F32), b in bits(Format::F32), c in bits(Format::F32)) {
            agrees::<F32, Single>(a, b, c);
        }

        #[test]
        fn double_agrees_with_another_implementation(a in bits(Format::F64), b in bits(Format::F64), c in bits(Format::F64)) {
            agrees::<F64, Double>(a, b, c);
        }

        #[test]
        fn roots_agree_with_whole_numbers(a in bits(Format::F64), b in bits(Format::F32)) {
            root_agrees::<F64>(a);
            root_agrees::<F32>(b);
        }
    }

    /// Compares with the square root of an integer of about 110 bits.
    fn root_agrees<T: Float>(a: u64) {
        let Unpacked::Finite { negative: false, significand, exponent } = T::FORMAT.unpack(a) else { return };
        if significand == 0 {
            return;
        }
        let shift = 126 - (63 - significand.leading_zeros() as i32);
        let shift = shift - (exponent - shift).rem_euclid(2);
        let (square, exponent) = (u128::from(significand) << shift, exponent - shift);
        let root = square.isqrt();
        // One more bit records whether the root is exact.
        let root = root << 1 | u128::from(root * root != square);
        for (rounding, _) in ROUNDINGS {
            assert_eq!(T::sqrt(a, rounding), T::FORMAT.pack(false, root, exponent / 2 - 1, rounding), "sqrt {a:#x} {rounding:?}");
        }
    }

    #[test]
    fn half_sums_and_products_of_every_number_with_some() {
        for b in [0x0000u64, 0x8001, 0x03ff, 0x3c00, 0x3c01, 0xbbff, 0x7bff, 0x7c00, 0x1400] {
            (0..=0xffffu64).step_by(3).for_each(|a| agrees::<F16, Half>(a, b, 0x8400));
        }
    }

    #[test]
    fn special_numbers() {
        assert_eq!(F32::add(0x7f80_0000, 0xff80_0000, Rounding::NearestEven), NAN_F32);
        assert_eq!(F32::add(0x7f80_0001, 0, Rounding::Zero), NAN_F32);
        assert_eq!(F32::add(0x3f80_0000, 0xbf80_0000, Rounding::Down), 0x8000_0000);
        assert_eq!(F16::sqrt(0xbc00, Rounding::NearestEven), 0x7fff);
        assert_eq!(Bf16::mul(0x7f80, 0, Rounding::NearestEven), 0x7fff);
        assert_eq!(F64::sqrt(1 << 63, Rounding::Up), 1 << 63);
        assert_eq!(F64::add(0x7ff0_0000_0000_0001, 0, Rounding::NearestEven), 0x7ff8_0000_0000_0001);
        let (first, second, third) = (0x7ff8_0000_0000_0001, 0xfff0_0000_0000_0002, 0x7ff8_0000_0000_0003);
        assert_eq!(F64::add(first, second, Rounding::NearestEven), 0xfff8_0000_0000_0002);
        assert_eq!(F64::div(first, second, Rounding::Zero), first);
        assert_eq!(F64::fma(first, 0, third, Rounding::Zero), third);
        assert_eq!(F64::fma(first, second, third, Rounding::Zero), 0xfff8_0000_0000_0002);
        assert_eq!(F64::mul(0x7ff0_0000_0000_0000, 0, Rounding::NearestEven), 0xfff8_0000_0000_0000);
        assert_eq!(F32::saturate(0x8000_0000), 0);
        assert_eq!(F32::saturate(NAN_F32), 0);
        assert_eq!(F32::saturate(0x4000_0000), F32::ONE);
        assert_eq!(F32::saturate(0x3f00_0000), 0x3f00_0000);
        assert_eq!(F32::flush(0x807f_ffff), 0x8000_0000);
        assert_eq!(F32::flush(0x8080_0000), 0x8080_0000);
        assert_eq!(F16::relu(0xfc00), 0);
        assert_eq!(F16::relu(0x7fff), 0x7fff);
    }

    #[test]
    fn extrema_order_zeros_and_prefer_numbers() {
        let (plus, minus, one, nan) = (0, 0x8000_0000, F32::ONE, 0xffc0_0000);
        for (a, b, least, greatest) in
            [(plus, minus, minus, plus), (minus, plus, minus, plus), (one, minus, minus, one), (nan, one, one, one)]
        {
            assert_eq!(extremum::<F32>(a, b, Extremum::Min, false), least);
            assert_eq!(extremum::<F32>(a, b, Extremum::Max, false), greatest);
        }
        assert_eq!(extremum::<F32>(nan, nan, Extremum::Max, false), NAN_F32);
        assert_eq!(extremum::<F32>(one, nan, Extremum::Max, true), NAN_F32);
    }
}
