//! The reference of `reduce_pio2`, op by op what the backends implement, and the proof that it is accurate.
//!
//! x = n pi/2 + r, with n the nearest integer to 2/pi x; the results are r and n modulo 4.
//!
//! * Up to [`FAST_LIMIT`], after Cody and Waite: n comes from one fma with 1.5 * 2^23, whose sum holds n in its low bits, and n pi/2 is
//!   subtracted in three parts. All three parts are positive, which keeps the sign of a zero.
//! * Beyond, after Payne and Hanek: of 2/pi only 96 bits matter for an exponent, those whose product with the significand is neither a
//!   multiple of 4 nor below 2^-62. An `f32` is never nearer than 2^-29 to a multiple of pi/2, so r keeps more than 30 bits.

use std::f64::consts::FRAC_PI_2;

/// 2/pi: a word of zeros, then 192 bits below the point.
pub(crate) const TWO_OVER_PI: [u32; 7] = [0, 0xa2f9_836e, 0x4e44_1529, 0xfc27_57d1, 0xf534_ddc0, 0xdb62_9599, 0x3c43_9041];
/// pi/2 = the sum of three parts of 24 bits, each rounded down, to 2^-72.
pub(crate) const PIO2: [u32; 3] = [0x3fc9_0fda, 0x33a2_2168, 0x27c2_34c4];
/// The largest |x| for the fast path: n stays below 2^16.1, and n times the first part of pi/2 is exact in the fma.
pub(crate) const FAST_LIMIT: f32 = 105_615.0;
/// 1.5 * 2^23: sums with it are rounded to integers.
const TO_INTEGER: f32 = 12_582_912.0;

pub(crate) fn reduce_pio2(x: f32) -> (f32, i32) {
    if x.abs() <= FAST_LIMIT { fast(x) } else { slow(x) }
}

fn fast(x: f32) -> (f32, i32) {
    let shifted = x.mul_add(std::f32::consts::FRAC_2_PI, TO_INTEGER);
    let n = shifted - TO_INTEGER;
    let mut r = x;
    for part in PIO2 {
        r = n.mul_add(-f32::from_bits(part), r);
    }
    (r, shifted.to_bits() as i32 & 3)
}

fn slow(x: f32) -> (f32, i32) {
    let bits = x.to_bits();
    let exponent = (bits >> 23) & 0xff;
    if exponent == 255 {
        return (f32::NAN, 0);
    }
    // |x| = significand 2^(exponent - 158). The window begins `exponent - 128` bits into the table.
    let significand = u64::from((bits << 8) | 0x8000_0000);
    let start = exponent - 128;
    let (word, bit) = ((start >> 5) as usize, start & 31);
    let window = |at: usize| {
        // One `shf.l.wrap.b32`.
        let pair = (u64::from(TWO_OVER_PI[word + at]) << 32) | u64::from(TWO_OVER_PI[word + at + 1]);
        (pair << bit) >> 32
    };
    // The upper 64 of the low 96 bits of the product: two bits of integer, 62 of fraction.
    let product = ((significand * window(0)) << 32).wrapping_add(significand * window(1)).wrapping_add((significand * window(2)) >> 32);
    let n = ((product >> 62) + ((product >> 61) & 1)) as i32;
    let fraction = (product << 2) as i64;
    let r = (fraction as f64 * (FRAC_PI_2 / 18_446_744_073_709_551_616.0)) as f32;
    if x < 0.0 { (-r, -n & 3) } else { (r, n & 3) }
}

/// Lines `bits n r`: the angles of each exponent that come nearest to a multiple of pi/2, and random ones.
/// Made by `data/reduce_pio2.py` with exact arithmetic.
const ANGLES: &str = include_str!("../data/reduce_pio2.txt");

#[test]
fn every_exponent_is_reduced_to_one_ulp() {
    let mut worst = (0.0f64, 0u32);
    for line in ANGLES.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split(' ').collect();
        let x = f32::from_bits(u32::from_str_radix(fields[0], 16).unwrap());
        let (n, exact) = (fields[1].parse::<i32>().unwrap(), fields[2].parse::<f64>().unwrap());
        for sign in [1.0f32, -1.0] {
            let (r, quadrant) = reduce_pio2(sign * x);
            let n = if sign < 0.0 { -n & 3 } else { n };
            // Near the middle of two multiples either one will do.
            let exact = exact * f64::from(sign) - f64::from((quadrant - n + 1).rem_euclid(4) - 1) * FRAC_PI_2;
            assert!(f64::from(r.abs()) < std::f64::consts::FRAC_PI_4 * 1.002, "{x:?}: r = {r}");
            let error = crate::ulp::error32(r, exact);
            if error > worst.0 {
                worst = (error, x.to_bits());
            }
        }
    }
    println!("reduce_pio2: {:.3} ulp at {:08x}", worst.0, worst.1);
    assert!(worst.0 <= 1.0, "{worst:?}");
}

#[test]
fn specials_are_reduced() {
    assert_eq!(reduce_pio2(0.0).0.to_bits(), 0.0f32.to_bits());
    assert_eq!(reduce_pio2(-0.0).0.to_bits(), (-0.0f32).to_bits());
    for x in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        assert!(reduce_pio2(x).0.is_nan());
    }
    let tiny = f32::from_bits(1);
    assert_eq!(reduce_pio2(-tiny), (-tiny, 0));
}
