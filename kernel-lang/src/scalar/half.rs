//! Conversions of `f16` and `bf16` to `f32` and back, and of `f64` to either, each rounded once to nearest even.
//!
//! They have no branches, so that a loop over them is vectorised on every CPU. The loops of the `half` crate are scalar for `bf16`, and its
//! conversions from `f64` look only at the upper half of the mantissa.

use half::{bf16, f16};

/// The value of an `f16`, exactly; a NaN stays a NaN.
///
/// The exponent is shifted into position. Zeros and subnormals then lack a factor, which a subtraction of two normal numbers corrects.
#[inline(always)]
pub(crate) fn f16_to_f32(half: f16) -> f32 {
    const SMALLEST_NORMAL: u32 = 113 << 23;
    let bits = u32::from(half.to_bits());
    let sign = (bits & 0x8000) << 16;
    let shifted = (bits & 0x7fff) << 13;
    let exponent = shifted & (0x1f << 23);
    let normal = shifted + (112 << 23);
    let special = shifted + (224 << 23);
    let small = (f32::from_bits(shifted + SMALLEST_NORMAL) - f32::from_bits(SMALLEST_NORMAL)).to_bits();
    let magnitude = if exponent == 0 { small } else { normal };
    let magnitude = if exponent == 0x1f << 23 { special } else { magnitude };
    f32::from_bits(magnitude | sign)
}

/// The nearest `f16`.
#[inline(always)]
pub(crate) fn f32_to_f16(value: f32) -> f16 {
    let bits = value.to_bits();
    let sign = (bits >> 16) & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    // A subnormal: adding 0.5 aligns the mantissa to units of 2^-24, and the hardware rounds.
    let small = (f32::from_bits(magnitude.min(126 << 23)) + 0.5).to_bits().wrapping_sub(126 << 23);
    let odd = (magnitude >> 13) & 1;
    let normal = magnitude.wrapping_sub(112 << 23).wrapping_add(0xfff + odd) >> 13;
    let rounded = if magnitude < 113 << 23 { small } else { normal };
    let rounded = if magnitude >= 143 << 23 { 0x7c00 } else { rounded };
    let rounded = if magnitude > 255 << 23 { 0x7e00 } else { rounded };
    f16::from_bits((rounded | sign) as u16)
}

/// The value of a `bf16`, exactly.
#[inline(always)]
pub(crate) fn bf16_to_f32(half: bf16) -> f32 {
    f32::from_bits(u32::from(half.to_bits()) << 16)
}

/// The nearest `bf16`.
#[inline(always)]
pub(crate) fn f32_to_bf16(value: f32) -> bf16 {
    let bits = value.to_bits();
    let odd = (bits >> 16) & 1;
    let rounded = bits.wrapping_add(0x7fff + odd) >> 16;
    let quiet = (bits >> 16) | 0x40;
    let is_nan = bits & 0x7fff_ffff > 255 << 23;
    bf16::from_bits((if is_nan { quiet } else { rounded }) as u16)
}

/// Rounds `value` to odd: truncates, and sets the last bit if anything was lost.
///
/// Rounding the result to a format with at least two bits fewer gives the same as rounding `value` itself (Boldo and Melquiond, 2008).
#[inline(always)]
pub(crate) fn f64_to_f32_odd(value: f64) -> f32 {
    let nearest = value as f32;
    let back = f64::from(nearest);
    let bits = nearest.to_bits();
    let truncated = if back.abs() > value.abs() { bits.wrapping_sub(1) } else { bits };
    let odd = f32::from_bits(truncated | 1);
    if back == value || value.is_nan() { nearest } else { odd }
}

/// Rounds `a + b` to odd. The exact error of the nearest sum (Knuth's two-sum) shows whether anything was lost, and on which side.
#[inline(always)]
pub(crate) fn sum_to_odd(a: f64, b: f64) -> f64 {
    let nearest = a + b;
    let from_b = nearest - a;
    let error = (a - (nearest - from_b)) + (b - from_b);
    let bits = nearest.to_bits();
    let is_away = (error > 0.0) == (nearest > 0.0);
    let neighbour = if is_away { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    // One of the two floats around the sum is odd: the nearest, or its neighbour on the side of the error. A sum that overflows or is NaN has
    // the error NaN.
    let is_inexact = error.abs() > 0.0;
    if is_inexact && bits & 1 == 0 { f64::from_bits(neighbour) } else { nearest }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_survives_the_round_trip() {
        for bits in 0..=u16::MAX {
            let (a, b) = (f16::from_bits(bits), bf16::from_bits(bits));
            let (wide_a, wide_b) = (f16_to_f32(a), bf16_to_f32(b));
            if a.is_nan() {
                assert!(wide_a.is_nan() && f32_to_f16(wide_a).is_nan());
            } else {
                assert_eq!(wide_a.to_bits(), a.to_f32_const().to_bits());
                assert_eq!(f32_to_f16(wide_a), a);
            }
            if b.is_nan() {
                assert!(wide_b.is_nan() && f32_to_bf16(wide_b).is_nan());
            } else {
                assert_eq!(wide_b.to_bits(), b.to_f32_const().to_bits());
                assert_eq!(f32_to_bf16(wide_b), b);
            }
        }
    }

    #[test]
    fn a_sum_to_odd_breaks_ties_by_what_it_lost() {
        // 1.5 * 2^63 * (1 + 2^-7) is halfway between two `bf16`; less 129 it is nearer to the lower one.
        let product = 1.5 * f64::from(bf16_to_f32(bf16::from_f32(9.295_43e18)));
        let near = |value: f64| f32_to_bf16(f64_to_f32_odd(value)).to_bits();
        assert_eq!(near(sum_to_odd(product, -129.0)) + 1, near(sum_to_odd(product, 129.0)));
        assert_eq!(sum_to_odd(1.0, 2.0), 3.0);
        assert!(sum_to_odd(1.0, 1e-30) > 1.0 && sum_to_odd(-1.0, -1e-30) < -1.0);
        assert!(sum_to_odd(1.0, -1e-30) < 1.0);
        assert!(sum_to_odd(f64::INFINITY, -1.0).is_infinite() && sum_to_odd(f64::NAN, 1.0).is_nan());
    }

    #[test]
    fn halfway_cases_go_to_even_and_their_neighbours_to_the_nearer() {
        for bits in 0..0x7c00u16 {
            let (low, high) = (f16::from_bits(bits), f16::from_bits(bits + 1));
            // The last interval ends at infinity; its midpoint is halfway to 65536.
            let top = if high.is_infinite() { 65536.0 } else { f16_to_f32(high) };
            let middle = (f16_to_f32(low) + top) / 2.0;
            let even = if bits % 2 == 0 { low } else { high };
            for sign in [1.0, -1.0] {
                let signed = |half: f16| if sign < 0.0 { -half } else { half };
                assert_eq!(f32_to_f16(middle * sign), signed(even), "{middle}");
                assert_eq!(f32_to_f16(middle.next_down() * sign), signed(low), "{middle}");
                assert_eq!(f32_to_f16(middle.next_up() * sign), signed(high), "{middle}");
                // A difference that an `f32` cannot hold breaks the tie.
                let near = |value: f64| f32_to_f16(f64_to_f32_odd(value * f64::from(sign)));
                assert_eq!(near(f64::from(middle).next_down()), signed(low));
                assert_eq!(near(f64::from(middle).next_up()), signed(high));
            }
        }
        for bits in 0..0x7f80u16 {
            let (low, high) = (bf16::from_bits(bits), bf16::from_bits(bits + 1));
            let middle = f32::from_bits((u32::from(bits) << 16) | 0x8000);
            assert_eq!(f32_to_bf16(middle), if bits % 2 == 0 { low } else { high });
            assert_eq!(f32_to_bf16(middle.next_down()), low);
            assert_eq!(f32_to_bf16(middle.next_up()), high);
            assert_eq!(f32_to_bf16(f64_to_f32_odd(f64::from(middle).next_down())), low);
            assert_eq!(f32_to_bf16(f64_to_f32_odd(f64::from(middle).next_up())), high);
        }
    }

    #[test]
    fn rounding_to_odd_keeps_what_is_exact() {
        for value in [0.0, -0.0, 1.0, -1.5, f64::INFINITY, f64::NEG_INFINITY, 2f64.powi(-149), f64::from(f32::MAX)] {
            assert_eq!(f64::from(f64_to_f32_odd(value)).to_bits(), value.to_bits());
        }
        assert!(f64_to_f32_odd(f64::NAN).is_nan());
        assert_eq!(f64_to_f32_odd(1e300), f32::MAX);
        assert_eq!(f64_to_f32_odd(1e-300), f32::from_bits(1));
    }
}
