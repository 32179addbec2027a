//! Splits an `f32` angle into a multiple of pi/2 and a remainder, exactly for every finite angle.
//!
//! Small angles use two-part subtraction in `f64` (Cody and Waite, 1980). Large angles use the product with the significant bits of 2/pi
//! (Payne and Hanek, 1983).

use std::f64::consts::{FRAC_2_PI, FRAC_PI_2};

use crate::scalar::math::ROUND;

/// The first 33 bits of pi/2: its product with a multiple below 2^20 is exact.
const PIO2_HIGH: f64 = 1.570_796_326_734_125_6;
/// pi/2 minus `PIO2_HIGH`.
const PIO2_LOW: f64 = 6.077_100_506_506_192e-11;
/// The bits of 2/pi after the binary point.
const TWO_OVER_PI: [u64; 5] =
    [0xA2F9_836E_4E44_1529, 0xFC27_57D1_F534_DDC0, 0xDB62_9599_3C43_9041, 0xFE51_63AB_DEBB_C561, 0xB724_6E3A_424D_D2E0];

/// The remainder in [-pi/4, pi/4] and the multiple modulo 4. NaN and infinities give NaN and 0.
#[inline]
pub(crate) fn reduce_pio2(x: f32) -> (f32, i32) {
    if !x.is_finite() {
        return (f32::NAN, 0);
    }
    let (remainder, quadrant) = reduce_wide(x);
    (remainder as f32, (quadrant & 3) as i32)
}

/// Angles below this limit are reduced by subtraction.
pub(super) const SMALL: f32 = 1_048_576.0;

/// As [`reduce_wide`], for an angle below [`SMALL`]. Only the last two bits of the multiple are valid.
#[inline(always)]
pub(super) fn reduce_small(x: f32) -> (f64, u64) {
    let rounded = f64::from(x) * FRAC_2_PI + ROUND;
    let multiple = rounded - ROUND;
    ((f64::from(x) - multiple * PIO2_HIGH) - multiple * PIO2_LOW, rounded.to_bits())
}

/// The remainder of a finite angle to about 50 bits, and the multiple, of which the last two bits are valid.
#[inline]
pub(super) fn reduce_wide(x: f32) -> (f64, u64) {
    if x.abs() < SMALL {
        return reduce_small(x);
    }
    // x = mantissa * 2^exponent, exponent >= -3. Bits of 2/pi above 2^(2 - exponent) contribute multiples of 4 to the product.
    let bits = x.abs().to_bits();
    let mantissa = u128::from((bits & 0x7f_ffff) | 0x80_0000);
    let exponent = (bits >> 23) as i32 - 150;
    let window = two_over_pi(exponent - 2);
    // A fixed-point number with two bits before the point.
    let product = mantissa.wrapping_mul(window);
    let multiple = product.wrapping_add(1 << 125) >> 126;
    let fraction = product.wrapping_sub(multiple << 126) as i128;
    let remainder = fraction as f64 * (FRAC_PI_2 * 2f64.powi(-126));
    let multiple = multiple as u64;
    if x < 0.0 { (-remainder, multiple.wrapping_neg()) } else { (remainder, multiple) }
}

/// 128 bits of 2/pi from bit `skip` after the point; a negative `skip` puts zeros before.
#[inline]
fn two_over_pi(skip: i32) -> u128 {
    let words = |at: usize| u128::from(TWO_OVER_PI[at]) << 64 | u128::from(TWO_OVER_PI[at + 1]);
    if skip <= 0 {
        return words(0) >> -skip;
    }
    let (word, bit) = (skip as usize / 64, skip as u32 % 64);
    let next = u128::from(TWO_OVER_PI[word + 2]);
    words(word) << bit | next << bit >> 64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares sin(x) from this reduction with sin(x) from the standard library's `f64` function, which has its own reduction.
    #[test]
    fn agrees_with_the_library_at_every_magnitude() {
        let mut state = 0x9E37_79B9_7F4A_7C15u64;
        for exponent in 0..255u32 {
            for _ in 0..200 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let x = f32::from_bits(exponent << 23 | (state >> 41) as u32 | (state as u32 & 0x8000_0000));
                let (remainder, quadrant) = reduce_wide(x);
                assert!(remainder.abs() <= FRAC_PI_2 / 2.0 * (1.0 + 1e-7), "{x:e}");
                let sine = match quadrant & 3 {
                    0 => remainder.sin(),
                    1 => remainder.cos(),
                    2 => -remainder.sin(),
                    3 => -remainder.cos(),
                    other => panic!("quadrant {other}"),
                };
                let expected = f64::from(x).sin();
                assert!((sine - expected).abs() <= 1e-14 * expected.abs().max(1e-300), "sin({x:e}) = {sine:e}, not {expected:e}");
            }
        }
    }

    #[test]
    fn keeps_zeros_and_refuses_infinities() {
        assert_eq!(reduce_pio2(-0.0).0.to_bits(), (-0.0f32).to_bits());
        for x in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
            assert!(reduce_pio2(x).0.is_nan());
        }
        // The hardest `f32`: the closest to a multiple of pi/2 (Muller, "Elementary Functions", table 11.1).
        let hard = 16_367_173.0 * 2f32.powi(72);
        let (remainder, _) = reduce_pio2(hard);
        assert!((f64::from(remainder.abs()) - f64::from(hard).cos().abs().min(f64::from(hard).sin().abs())).abs() < 1e-15);
    }
}
