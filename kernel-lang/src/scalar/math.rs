//! Mathematical functions of `f32`, each within 0.51 ulp: computed in `f64` with about 30 correct bits to spare, and rounded once.
//!
//! They use arithmetic only, so that results do not depend on the platform's library. Except for angles they have no branches, so that a loop
//! over them is vectorised. In `f64`, subnormal `f32` arguments and results are normal numbers and need no special cases.
//!
//! | function | by | truncation error |
//! |---|---|---|
//! | exp, exp2, sigmoid, tanh | 2^n * 2^r, Taylor series to r^8, \|r\| <= 1/2 | 2e-10 |
//! | tanh, \|x\| < 1/4 | Taylor series to x^13 | 6e-12 |
//! | log, log2 | n + 2 atanh((m - 1) / (m + 1)), to the 13th power | 2e-12 |
//! | sin, cos, tan | [`reduce_wide`], Taylor series to r^14 | 2e-14 |

use std::f64::consts::{LN_2, LOG2_E};

use crate::scalar::pio2::{reduce_small, reduce_wide};

/// Adding it to a number below 2^51 rounds the number to an integer, which is then in the low bits of the sum.
pub(super) const ROUND: f64 = 1.5 * 4_503_599_627_370_496.0;

/// 2 to the power of `x`, with `x` clamped to [-160, 160]. NaN stays NaN.
#[inline(always)]
fn exp2_wide(x: f64) -> f64 {
    let x = if x < -160.0 { -160.0 } else { x };
    let x = if x > 160.0 { 160.0 } else { x };
    let rounded = x + ROUND;
    let r = (x - (rounded - ROUND)) * LN_2;
    let scale = f64::from_bits((rounded.to_bits() << 52).wrapping_add(1023 << 52));
    let tail = 1.0 / 120.0 + r * (1.0 / 720.0 + r * (1.0 / 5040.0 + r * (1.0 / 40320.0)));
    let power = 1.0 + r * (1.0 + r * (0.5 + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * tail))));
    power * scale
}

#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    exp2_wide(f64::from(x) * LOG2_E) as f32
}

#[inline(always)]
pub(super) fn exp2(x: f32) -> f32 {
    exp2_wide(f64::from(x)) as f32
}

#[inline(always)]
pub(super) fn exp2_ftz(x: f32) -> f32 {
    if x < -126.0 { 0.0 } else { exp2(x) }
}

#[inline(always)]
pub(super) fn sigmoid(x: f32) -> f32 {
    let small = exp2_wide(-f64::from(x.abs()) * LOG2_E);
    let above = if x < 0.0 { small } else { 1.0 };
    (above / (1.0 + small)) as f32
}

#[inline(always)]
pub(super) fn tanh(x: f32) -> f32 {
    let wide = f64::from(x);
    let small = exp2_wide(wide.abs() * (-2.0 * LOG2_E));
    let far = ((1.0 - small) / (1.0 + small)).copysign(wide);
    let z = wide * wide;
    let tail = -17.0 / 315.0 + z * (62.0 / 2835.0 + z * (-1382.0 / 155_925.0 + z * (21844.0 / 6_081_075.0)));
    let near = wide * (1.0 + z * (-1.0 / 3.0 + z * (2.0 / 15.0 + z * tail)));
    (if x.abs() < 0.25 { near } else { far }) as f32
}

/// The logarithm to base 2 of a positive finite number.
#[inline(always)]
fn log2_wide(x: f64) -> f64 {
    const SQRT_HALF: u64 = 0x3FE6_A09E_667F_3BCD;
    let shifted = x.to_bits().wrapping_sub(SQRT_HALF).wrapping_add(1024 << 52) >> 52;
    let exponent = f64::from_bits(shifted | 1075 << 52) - (4_503_599_627_370_496.0 + 1024.0);
    let mantissa = f64::from_bits(x.to_bits().wrapping_sub(shifted << 52).wrapping_add(1024 << 52));
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let z = s * s;
    let tail = 1.0 / 7.0 + z * (1.0 / 9.0 + z * (1.0 / 11.0 + z * (1.0 / 13.0)));
    let series = 1.0 + z * (1.0 / 3.0 + z * (1.0 / 5.0 + z * tail));
    exponent + s * (series * (2.0 * LOG2_E))
}

#[inline(always)]
fn logarithm(x: f32, unit: f64) -> f32 {
    let finite = (log2_wide(f64::from(x)) * unit) as f32;
    let value = if x > 0.0 { finite } else { f32::NAN };
    let value = if x == 0.0 { f32::NEG_INFINITY } else { value };
    if x == f32::INFINITY { x } else { value }
}

#[inline(always)]
pub(super) fn log(x: f32) -> f32 {
    logarithm(x, LN_2)
}

#[inline(always)]
pub(super) fn log2(x: f32) -> f32 {
    logarithm(x, 1.0)
}

/// sin and cos of an angle in [-pi/4, pi/4].
#[inline(always)]
fn sin_cos_near(r: f64) -> (f64, f64) {
    let z = r * r;
    let tail = 1.0 / 362_880.0 + z * (-1.0 / 39_916_800.0 + z * (1.0 / 6_227_020_800.0));
    // The product form keeps -0.
    let sin = r * (1.0 + z * (-1.0 / 6.0 + z * (1.0 / 120.0 + z * (-1.0 / 5040.0 + z * tail))));
    let tail = 1.0 / 40320.0 + z * (-1.0 / 3_628_800.0 + z * (1.0 / 479_001_600.0 + z * (-1.0 / 87_178_291_200.0)));
    let cos = 1.0 + z * (-0.5 + z * (1.0 / 24.0 + z * (-1.0 / 720.0 + z * tail)));
    (sin, cos)
}

/// The sine of the remainder plus `quadrant` right angles. Only the last two bits of `quadrant` are used.
#[inline(always)]
fn sin_of(remainder: f64, quadrant: u64) -> f64 {
    let (sin, cos) = sin_cos_near(remainder);
    let value = if quadrant & 1 == 0 { sin } else { cos };
    f64::from_bits(value.to_bits() ^ (quadrant & 2) << 62)
}

/// The cosine of the same angle as in [`sin_of`].
#[inline(always)]
fn cos_of(remainder: f64, quadrant: u64) -> f64 {
    let (sin, cos) = sin_cos_near(remainder);
    let value = if quadrant & 1 == 0 { cos } else { sin };
    f64::from_bits(value.to_bits() ^ (quadrant.wrapping_add(1) & 2) << 62)
}

/// Declares a function of any angle, and one of angles below [`SMALL`](crate::scalar::pio2::SMALL), which has no branches.
macro_rules! of_angles {
    ($name:ident, $small:ident, |$remainder:ident, $quadrant:ident| $body:expr) => {
        #[inline(always)]
        pub(super) fn $small(x: f32) -> f32 {
            let ($remainder, $quadrant) = reduce_small(x);
            $body as f32
        }

        #[inline]
        pub(super) fn $name(x: f32) -> f32 {
            let ($remainder, $quadrant) = reduce_wide(x);
            if x.is_finite() { $body as f32 } else { f32::NAN }
        }
    };
}

of_angles!(sin, sin_small, |remainder, quadrant| sin_of(remainder, quadrant));
of_angles!(cos, cos_small, |remainder, quadrant| cos_of(remainder, quadrant));
of_angles!(tan, tan_small, |remainder, quadrant| (sin_of(remainder, quadrant) / cos_of(remainder, quadrant)));
