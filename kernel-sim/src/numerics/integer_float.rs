//! Conversions between integers and floats (PTX ISA, 9.7.9.21, `cvt`).

use crate::numerics::float::Float;
use crate::numerics::small_float::Rounding;

/// Rounds to an integral value. A zero result has the sign of `value`.
pub(crate) fn to_whole(value: f64, rounding: Rounding) -> f64 {
    match rounding {
        Rounding::NearestEven => value.round_ties_even(),
        #[cfg(test)]
        Rounding::NearestAway => value.round(),
        Rounding::Zero => value.trunc(),
        Rounding::Down => value.floor(),
        Rounding::Up => value.ceil(),
    }
}

/// The lowest and the highest integer with this number of bits.
pub(crate) fn range(bits: u32, is_signed: bool) -> (i128, i128) {
    if is_signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

/// Converts a float to an integer, clamped to the range of the type. A NaN becomes 0, or `1 << (bits - 1)` if the float or the integer has
/// 64 bits.
pub(crate) fn to_integer<T: Float>(a: u64, rounding: Rounding, bits: u32, is_signed: bool) -> i128 {
    let value = T::value(a);
    if value.is_nan() {
        return if T::BITS == 64 || bits == 64 { 1 << (bits - 1) } else { 0 };
    }
    let (lowest, highest) = range(bits, is_signed);
    (to_whole(value, rounding) as i128).clamp(lowest, highest)
}

/// Converts an integer to a float.
pub(crate) fn from_integer<T: Float>(value: i128, rounding: Rounding) -> u64 {
    T::FORMAT.pack(value < 0, value.unsigned_abs(), 0, rounding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::float::{F16, F32, F64};

    #[test]
    fn directions() {
        for (value, expected) in
            [(2.5, [2.0, 3.0, 2.0, 2.0, 3.0]), (-2.5, [-2.0, -3.0, -2.0, -3.0, -2.0]), (-0.25, [-0.0, -0.0, -0.0, -1.0, -0.0])]
        {
            let modes = [Rounding::NearestEven, Rounding::NearestAway, Rounding::Zero, Rounding::Down, Rounding::Up];
            for (mode, expected) in modes.into_iter().zip(expected) {
                assert_eq!(to_whole(value, mode).to_bits(), f64::to_bits(expected), "{value} {mode:?}");
            }
        }
    }

    #[test]
    fn integers_clamp() {
        let single = |value: f32| u64::from(value.to_bits());
        assert_eq!(to_integer::<F32>(single(3e9), Rounding::Zero, 32, true), i128::from(i32::MAX));
        assert_eq!(to_integer::<F32>(single(-1.0), Rounding::Zero, 32, false), 0);
        assert_eq!(to_integer::<F32>(single(f32::INFINITY), Rounding::Zero, 64, false), i128::from(u64::MAX));
        assert_eq!(to_integer::<F32>(single(200.0), Rounding::Zero, 8, true), 127);
        assert_eq!(to_integer::<F32>(single(f32::NAN), Rounding::Zero, 32, true), 0);
        assert_eq!(to_integer::<F32>(single(f32::NAN), Rounding::Zero, 64, true), 1 << 63);
        assert_eq!(to_integer::<F64>(f64::NAN.to_bits(), Rounding::Zero, 32, true), 1 << 31);
        assert_eq!(to_integer::<F64>(4503599627370497.5f64.to_bits(), Rounding::NearestEven, 64, true), 4503599627370498);
    }

    #[test]
    fn floats_of_integers_round_once() {
        for value in [0, 1, -1, 16777217, 16777219, -16777217, i128::from(u64::MAX), i128::from(i64::MIN), 0x7fff_ffbf_ffff_ffff] {
            assert_eq!(from_integer::<F32>(value, Rounding::NearestEven), u64::from((value as f32).to_bits()), "{value}");
            assert_eq!(from_integer::<F64>(value, Rounding::NearestEven), (value as f64).to_bits(), "{value}");
        }
        assert_eq!(from_integer::<F32>(16777217, Rounding::Up), u64::from(16777218f32.to_bits()));
        assert_eq!(from_integer::<F32>(-16777217, Rounding::Up), u64::from((-16777216f32).to_bits()));
        assert_eq!(from_integer::<F16>(65520, Rounding::NearestEven), 0x7c00);
        assert_eq!(from_integer::<F16>(65520, Rounding::Zero), 0x7bff);
    }
}
