//! `sin`, `cos` and `tan` of `f64`: x = n pi/2 + r with n the nearest integer to 2/pi x, then polynomials in r.
//!
//! Up to [`FAST_LIMIT`], n pi/2 is subtracted in three parts (Cody and Waite). Beyond, 192 bits of 2/pi, selected by the exponent, are
//! multiplied by the significand (Payne and Hanek). Both are computed and one is selected: a formula has no branches.

use crate::dtype::Dtype;
use crate::ir::{BinaryOp, CompareOp, Value};

use super::exp_f64::TO_INTEGER;
use super::formula::Formula;

/// pi/2 is the sum of three parts of 53 bits, each rounded down, to 2^-160. All parts are positive, which keeps the sign of a zero x.
const PIO2: [f64; 3] = [std::f64::consts::FRAC_PI_2, 6.123233995736765e-17, 1.0828566739219139e-32];
/// Up to this limit, 2/pi rounded to 53 bits gives the nearest n or, within 2^-14 of the middle, the next integer.
const FAST_LIMIT: f64 = 1_099_511_627_776.0;
/// sin(r) = r + r z p(z), z = r^2; relative error 2^-56.4.
const SIN: [f64; 6] =
    [-0.1666666666666663, 0.00833333333332211, -0.0001984126982958165, 2.755731361850255e-6, -2.505074728889171e-8, 1.589620141601124e-10];
/// cos(r) = 1 - z/2 + z^2 p(z); relative error 2^-59.7.
const COS: [f64; 6] = [
    0.041666666666666595,
    -0.0013888888888873043,
    2.480158728884212e-5,
    -2.755731417641512e-7,
    2.0875700436194266e-9,
    -1.1358514829826322e-11,
];
/// tan(r) = r + r z p(z); relative error 2^-55.262.
const TAN: [f64; 14] = [
    0.33333333333332776,
    0.13333333333414535,
    0.0539682539267088,
    0.021869489608048194,
    0.008863219177255313,
    0.003592288965812395,
    0.0014547586243668397,
    0.0005950621002195668,
    0.00022238731248875384,
    0.00013651048428063703,
    -2.636528788611146e-5,
    8.943334610982358e-5,
    -4.4866375322815735e-5,
    2.086082038738745e-5,
];
/// 2/pi: a word of zeros, then 1152 bits after the binary point.
const TWO_OVER_PI: [u64; 19] = [
    0x0000_0000_0000_0000,
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
];

/// x = n pi/2 + r + low.
struct Reduced {
    /// Rounded to nearest.
    r: Value,
    /// The rounding error of `r`, if it was requested.
    low: Option<Value>,
    /// As `i64`; only its lowest two bits matter.
    n: Value,
}

fn reduce(f: &mut Formula<'_>, x: Value, with_low: bool) -> Reduced {
    let small = reduce_small(f, x, with_low);
    let large = reduce_large(f, x, with_low);
    let magnitude = f.abs(x);
    let is_large = f.compare_k(CompareOp::Gt, magnitude, FAST_LIMIT);
    Reduced {
        r: f.select(is_large, large.r, small.r),
        low: small.low.zip(large.low).map(|(small, large)| f.select(is_large, large, small)),
        n: f.select(is_large, large.n, small.n),
    }
}

/// The reduction of |x| <= 2^40. The first difference is exact: a multiple of 2^-53 below 1.
fn reduce_small(f: &mut Formula<'_>, x: Value, with_low: bool) -> Reduced {
    let two_over_pi = f.k(std::f64::consts::FRAC_2_PI);
    let shifted = f.fma_plus(x, two_over_pi, TO_INTEGER);
    let n_float = f.add_k(shifted, -TO_INTEGER);
    let n = f.bitcast(shifted, Dtype::I64);
    let first = f.fma_k(n_float, -PIO2[0], x);
    if !with_low {
        let r = f.fma_k(n_float, -PIO2[1], first);
        return Reduced { r: f.fma_k(n_float, -PIO2[2], r), low: None, n };
    }
    // The exact product, subtracted exactly (Knuth's two-sum).
    let product = f.mul_k(n_float, -PIO2[1]);
    let minus_product = f.neg(product);
    let product_low = f.fma_k(n_float, -PIO2[1], minus_product);
    let (high, low) = two_sum(f, first, product);
    let low = f.add(low, product_low);
    let low = f.fma_k(n_float, -PIO2[2], low);
    let (r, low) = fast_two_sum(f, high, low);
    Reduced { r, low: Some(low), n }
}

/// The rounded sum a + b, and its rounding error.
fn two_sum(f: &mut Formula<'_>, a: Value, b: Value) -> (Value, Value) {
    let sum = f.add(a, b);
    let b_taken = f.sub(sum, a);
    let a_taken = f.sub(sum, b_taken);
    let b_lost = f.sub(b, b_taken);
    let a_lost = f.sub(a, a_taken);
    (sum, f.add(a_lost, b_lost))
}

/// The same as [`two_sum`], for |a| >= |b|.
fn fast_two_sum(f: &mut Formula<'_>, a: Value, b: Value) -> (Value, Value) {
    let sum = f.add(a, b);
    let taken = f.sub(sum, a);
    (sum, f.sub(b, taken))
}

/// The reduction of |x| > 2^40. |x| = S 2^(exponent - 1086) with the top bit of S set. The window of 192 bits begins `exponent - 1024` bits
/// into the table. Bits before the window contribute multiples of 4 to n, and bits after it less than 2^-126.
fn reduce_large(f: &mut Formula<'_>, x: Value, with_low: bool) -> Reduced {
    let bits = f.bits(x);
    let significand = f.int_op(BinaryOp::Shl, bits, 11);
    let significand = f.int_op(BinaryOp::Or, significand, 1 << 63);
    let exponent = f.int_op(BinaryOp::Shr, bits, 52);
    let exponent = f.int_op(BinaryOp::And, exponent, 0x7ff);
    let start = f.int_op(BinaryOp::Sub, exponent, 1024);
    let words = window_words(f, start);
    let left = f.int_op(BinaryOp::And, start, 63);
    let width = f.int(64, left);
    let right = f.binary(BinaryOp::Sub, width, left);
    let mut window = Vec::new();
    for pair in words.windows(2) {
        let high = f.binary(BinaryOp::Shl, pair[0], left);
        // A shift by 64 gives 0.
        let low = f.binary(BinaryOp::Shr, pair[1], right);
        window.push(f.binary(BinaryOp::Or, high, low));
    }

    // The upper 128 of the low 192 bits of the product: two bits of integer, 126 of fraction.
    let top = f.binary(BinaryOp::Mul, significand, window[0]);
    let middle_high = f.binary(BinaryOp::MulHigh, significand, window[1]);
    let middle_low = f.binary(BinaryOp::Mul, significand, window[1]);
    let bottom = f.binary(BinaryOp::MulHigh, significand, window[2]);
    let low = f.binary(BinaryOp::Add, middle_low, bottom);
    let high = f.binary(BinaryOp::Add, top, middle_high);
    let carries = f.compare(CompareOp::Lt, low, middle_low);
    let plus_one = f.int_op(BinaryOp::Add, high, 1);
    let high = f.select(carries, plus_one, high);

    // n is rounded: bit 61 of the upper word is 1/2. The fraction is then a signed number.
    let half = f.int(1 << 61, high);
    let rounded = f.binary(BinaryOp::Add, high, half);
    let n = f.int_op(BinaryOp::Shr, rounded, 62);
    let two_high = f.int_op(BinaryOp::Shl, high, 2);
    let two_low = f.int_op(BinaryOp::Shr, low, 62);
    let fraction = f.binary(BinaryOp::Or, two_high, two_low);
    let fraction = f.bitcast(fraction, Dtype::I64);
    let rest = f.int_op(BinaryOp::Shl, low, 2);
    let (r, low) = times_quarter_turn(f, fraction, rest, with_low);
    // x - x is 0, or NaN for an infinite x.
    let nothing = f.sub(x, x);
    let r = f.add(r, nothing);

    // For x < 0, n and both floats are negated.
    let n = f.bitcast(n, Dtype::I64);
    let zero = f.int(0, n);
    let minus_n = f.binary(BinaryOp::Sub, zero, n);
    let is_negative = f.compare_k(CompareOp::Lt, x, 0.0);
    let signed = |f: &mut Formula<'_>, value: Value| {
        let minus = f.neg(value);
        f.select(is_negative, minus, value)
    };
    let (r, low) = (signed(f, r), low.map(|low| signed(f, low)));
    Reduced { r, low, n: f.select(is_negative, minus_n, n) }
}

/// pi/2 times the fraction `fraction` 2^-64 + `rest` 2^-128.
fn times_quarter_turn(f: &mut Formula<'_>, fraction: Value, rest: Value, with_low: bool) -> (Value, Option<Value>) {
    let unit = 1.0 / 18_446_744_073_709_551_616.0;
    let high = f.cast(fraction, Dtype::F64);
    let rest = f.cast(rest, Dtype::F64);
    if !with_low {
        let sum = f.fma_k(rest, unit, high);
        let low = f.mul_k(sum, PIO2[1] * unit);
        return (f.fma_k(sum, PIO2[0] * unit, low), None);
    }
    // The rounding error of the cast to 53 digits.
    let taken = f.cast(high, Dtype::I64);
    let lost = f.binary(BinaryOp::Sub, fraction, taken);
    let lost = f.cast(lost, Dtype::F64);
    let rest = f.fma_k(rest, unit, lost);
    let product = f.mul_k(high, PIO2[0] * unit);
    let minus_product = f.neg(product);
    let low = f.fma_k(high, PIO2[0] * unit, minus_product);
    let low = f.fma_k(high, PIO2[1] * unit, low);
    let low = f.fma_k(rest, PIO2[0] * unit, low);
    let (r, low) = fast_two_sum(f, product, low);
    (r, Some(low))
}

/// Four words of the table, from word `start / 64` on. Each bit of that index, from the highest one, drops half of the remaining words.
fn window_words(f: &mut Formula<'_>, start: Value) -> Vec<Value> {
    let mut words: Vec<Value> = TWO_OVER_PI.iter().map(|word| f.int(i128::from(*word), start)).collect();
    for step in [8, 4, 2, 1] {
        let bit = f.int_op(BinaryOp::And, start, 64 * step as i128);
        let zero = f.int(0, bit);
        let is_set = f.compare(CompareOp::Ne, bit, zero);
        let kept = 4 + step - 1;
        words = (0..kept).map(|index| f.select(is_set, words[index + step], words[index])).collect();
    }
    words
}

/// The sine and cosine of r.
fn sin_cos(f: &mut Formula<'_>, r: Value) -> (Value, Value) {
    let z = f.mul(r, r);
    let p = f.polynomial(z, &SIN);
    let w = f.fma_plus(p, z, 0.0);
    let sin = f.fma(w, r, r);
    let p = f.polynomial(z, &COS);
    let minus_half = f.k(-0.5);
    let q = f.fma(p, z, minus_half);
    (sin, f.fma_plus(q, z, 1.0))
}

fn is_odd(f: &mut Formula<'_>, n: Value) -> Value {
    let low = f.int_op(BinaryOp::And, n, 1);
    let zero = f.int(0, low);
    f.compare(CompareOp::Ne, low, zero)
}

/// The sine of the sum of n quarter turns and r.
fn sin_of_parts(f: &mut Formula<'_>, r: Value, n: Value) -> Value {
    let (sin, cos) = sin_cos(f, r);
    let is_odd = is_odd(f, n);
    let magnitude = f.select(is_odd, cos, sin);
    // Bit 1 of n is the sign.
    let half_turn = f.int_op(BinaryOp::And, n, 2);
    let sign = f.int_op(BinaryOp::Shl, half_turn, 62);
    let sign = f.bitcast(sign, Dtype::U64);
    let bits = f.bits(magnitude);
    let bits = f.binary(BinaryOp::Xor, bits, sign);
    f.float(bits)
}

pub(super) fn sin(f: &mut Formula<'_>, x: Value) -> Value {
    let reduced = reduce(f, x, false);
    sin_of_parts(f, reduced.r, reduced.n)
}

pub(super) fn cos(f: &mut Formula<'_>, x: Value) -> Value {
    let reduced = reduce(f, x, false);
    let n = f.int_op(BinaryOp::Add, reduced.n, 1);
    sin_of_parts(f, reduced.r, n)
}

/// t = tan(r + low) in two floats. After an odd number of quarter turns the result is -1 / t, corrected by the lower float.
pub(super) fn tan(f: &mut Formula<'_>, x: Value) -> Value {
    let reduced = reduce(f, x, true);
    let (r, low) = (reduced.r, reduced.low.expect("the low part was asked for"));
    let z = f.mul(r, r);
    let p = f.polynomial(z, &TAN);
    let w = f.fma_plus(p, z, 0.0);
    // To the precision of `low`, the slope of the tangent, 1 + tan^2, is 1 + z.
    let low = f.fma(z, low, low);
    let s = f.fma(w, r, low);
    let (t, t_low) = fast_two_sum(f, r, s);

    let minus_one = f.k(-1.0);
    let q = f.div(minus_one, t);
    let square = f.mul(q, q);
    let turned = f.fma(square, t_low, q);
    let is_odd = is_odd(f, reduced.n);
    let result = f.select(is_odd, turned, t);
    // The sums above lose the sign of a zero.
    let is_zero = f.compare_k(CompareOp::Eq, x, 0.0);
    f.select(is_zero, x, result)
}
