//! Powers, roots, and the remainder.

use super::extended::{exp_of_sum, ln_in_two_parts, split_exponent, two_product};

pub fn pow<T: Float>(x: Value<T>, y: Value<T>) -> Value<T> {
    if T == f64 { pow_of(x as f64, y as f64) as T } else { pow_of(x as f32, y as f32) as T }
}

pub fn cbrt<T: Float>(x: Value<T>) -> Value<T> {
    if T == f64 { cbrt_of(x as f64) as T } else { cbrt_of(x as f32) as T }
}

pub fn hypot<T: Float>(x: Value<T>, y: Value<T>) -> Value<T> {
    if T == f64 { hypot_of(x as f64, y as f64) as T } else { hypot_of(x as f32, y as f32) as T }
}

pub fn fmod<T: Float>(x: Value<T>, y: Value<T>) -> Value<T> {
    x % y
}

/// e^(y ln |x|), the logarithm and the product in two parts; then the special cases of C's annex F.
fn pow_of<F: Float>(x: Value<F>, y: Value<F>) -> Value<F> {
    let infinity = f32::INFINITY as F;
    let size = abs(x);
    let (e, f) = split_exponent(size);
    let (ln, low) = ln_in_two_parts(e, f);
    let is_usual = (size > 0.0) & (size < infinity);
    let ln = select(is_usual, ln, select(size == 0.0, -infinity, infinity));
    let (product, rest) = two_product(y, ln);
    // Where the product is infinite, so is what it lost, or not a number: `exp_of_sum` does not look at it.
    let power = exp_of_sum(product, fma(y, low, rest), 1.0);

    let half = 0.5 * y;
    let is_integer = trunc(y) == y;
    let is_odd = is_integer & (trunc(half) != half);
    let is_negative = copysign(1.0, x) < 0.0;
    let signed = select(is_negative & is_odd, -power, power);
    let outside = (x < 0.0) & (size < infinity) & !is_integer;
    let is_nan = (x != x) | (y != y);
    let result = select(is_nan, x + y, select(outside, f32::NAN as F, signed));
    // 1 to any power, any number to the power 0, -1 to an infinite power.
    let is_one = (x == 1.0) | (y == 0.0) | ((x == -1.0) & (abs(y) == infinity));
    select(is_one, 1.0, result)
}

/// A guess by a third of the exponent's bits, within 3.5 %; two of Halley's steps, each of which triples the digits; and one of Newton's with
/// the exact residual.
fn cbrt_of<F: Float>(x: Value<F>) -> Value<F> {
    let infinity = f32::INFINITY as F;
    let size = abs(x);
    let is_tiny = size < if F == f64 { f64::MIN_POSITIVE as F } else { f32::MIN_POSITIVE as F };
    // 2^54 and 2^24, whose cube roots are 2^18 and 2^8.
    let up = if F == f64 { 18_014_398_509_481_984.0 as F } else { 16_777_216.0 as F };
    let down = if F == f64 { 3.814_697_265_625e-6 as F } else { 0.003_906_25 as F };
    let a = select(is_tiny, size * up, size);
    let guess = if F == f64 {
        // The upper words only: (1023 - 1023 / 3 - 0.0331) 2^20. A third is a product with 2^32 / 3.
        let third = umulhi((bitcast::<u64>(a) >> 32) as u32, 0x5555_5556);
        bitcast::<f64>(((third + 715_093_920) as u64) << 32)
    } else {
        // (127 - 127 / 3 - 0.0331) 2^23
        bitcast::<f32>(umulhi(bitcast::<u32>(a), 0x5555_5556) + 709_957_300)
    };
    let root = halley(a, halley(a, guess));
    let (square, square_low) = two_product(root, root);
    let residual = fma(square_low, root, fma(square, root, -a));
    let root = root - residual / (3.0 * square);
    let root = select(is_tiny, root * down, root);
    select((size == 0.0) | !(size < infinity), x, copysign(root, x))
}

fn halley<F: Float>(a: Value<F>, t: Value<F>) -> Value<F> {
    // A quarter of everything, which does not overflow.
    let cube = 0.25 * t * t * t;
    t * ((cube + 0.5 * a) / (2.0 * cube + 0.25 * a))
}

/// The root of the sum of squares, scaled so that they neither overflow nor lose digits, and corrected by the sum's residual.
fn hypot_of<F: Float>(x: Value<F>, y: Value<F>) -> Value<F> {
    let infinity = f32::INFINITY as F;
    let (x, y) = (abs(x), abs(y));
    let (large, small) = (max(x, y), min(x, y));
    // 2^63 and 2^80, 2^-62 and 2^86; for `f64` 2^510 and 2^600, 2^-500 and 2^600.
    let is_huge = large > if F == f64 { 3.351_951_982_485_649e153 as F } else { 9.223_372e18 as F };
    let is_tiny = large < if F == f64 { 3.054_936_363_499_605e-151 as F } else { 2.168_404_3e-19 as F };
    let up = if F == f64 { 4.149_515_568_880_993e180 as F } else { 7.737_125_2e25 as F };
    let down = if F == f64 { 2.409_919_865_102_884e-181 as F } else { 8.271_806e-25 as F };
    let scale = select(is_huge, down, select(is_tiny, up, 1.0));
    let back = select(is_huge, if F == f64 { 4.149_515_568_880_993e180 as F } else { 1.208_925_8e24 as F }, 1.0);
    let back = select(is_tiny, if F == f64 { 2.409_919_865_102_884e-181 as F } else { 1.292_469_7e-26 as F }, back);
    let (a, b) = (large * scale, small * scale);
    let (aa, aa_low) = two_product(a, a);
    let (bb, bb_low) = two_product(b, b);
    let root = sqrt(aa + bb);
    let (square, square_low) = two_product(root, root);
    let residual = ((aa - square) + bb) + ((aa_low - square_low) + bb_low);
    let root = select(root == 0.0, root, root + residual / (root + root)) * back;
    let root = select((x != x) | (y != y), x + y, root);
    select(large == infinity, infinity, root)
}
