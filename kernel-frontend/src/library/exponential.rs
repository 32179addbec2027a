//! Exponentials and logarithms beside `exp`, `exp2`, `log` and `log2`, which are ops.

use super::extended::{exp_of_sum, exp_parts, fast_two_sum, limited, ln_in_two_parts, power_of_two, split_exponent, two_product};

pub fn exp10<T: Float>(x: Value<T>) -> Value<T> {
    if T == f64 { exp10_of(x as f64) as T } else { exp10_of(x as f32) as T }
}

pub fn expm1<T: Float>(x: Value<T>) -> Value<T> {
    if T == f64 { expm1_of(x as f64) as T } else { expm1_of(x as f32) as T }
}

pub fn log1p<T: Float>(x: Value<T>) -> Value<T> {
    if T == f64 { log1p_of(x as f64) as T } else { log1p_of(x as f32) as T }
}

pub fn log10<T: Float>(x: Value<T>) -> Value<T> {
    if T == f64 { log10_of(x as f64) as T } else { log10_of(x as f32) as T }
}

/// e^(x ln 10), the product in two parts.
fn exp10_of<F: Float>(x: Value<F>) -> Value<F> {
    let ln_10 = if F == f64 { 2.302_585_092_994_046 as F } else { 2.302_585_1 as F };
    let ln_10_low = if F == f64 { -2.170_756_223_382_249_4e-16 as F } else { -3.197_543_6e-8 as F };
    let (product, rest) = two_product(x, ln_10);
    exp_of_sum(product, fma(x, ln_10_low, rest), 1.0)
}

/// 2^n p + (2^n - 1), halved, so that 2^n does not overflow first.
fn expm1_of<F: Float>(x: Value<F>) -> Value<F> {
    // Below, the result is -1; above, infinity.
    let low = if F == f64 { -50.0 as F } else { -25.0 as F };
    let high = if F == f64 { 709.8 as F } else { 88.8 as F };
    let (r, t, n) = exp_parts(limited(x, low, high), 0.0);
    let half_power = power_of_two::<F>(n - 1);
    let half = fma(half_power, t, fma(half_power, r, half_power - 0.5));
    // Halves of subnormals are not exact.
    let is_tiny = abs(x) < if F == f64 { 1.0e-17 as F } else { 1.0e-9 as F };
    select(is_tiny, x, half + half)
}

/// 1 + x = 2^e (1 + f), where f is 2^-e x + (2^-e - 1), rounded once, and x itself where e is 0.
fn log1p_of<F: Float>(x: Value<F>) -> Value<F> {
    let sum = 1.0 + x;
    let result = if F == f64 {
        let exponent = (bitcast::<i64>(sum) - 0x3fe6_a09e_667f_3bcd) >> 52;
        let field = exponent << 52;
        let f = bitcast::<f64>(bitcast::<i64>(x) - field) + fma(0.25, bitcast::<f64>(0x4010_0000_0000_0000 - field), -1.0);
        let e = exponent as i32 as f64;
        // ln(1 + f) = f - (f^2 / 2 - s (f^2 / 2 + z p(z))), s = f / (2 + f), z = s^2; relative error 2^-59.
        let s = f / (2.0 + f);
        let z = s * s;
        let p = fma(z, 0.147_956_043_045_996_99, 0.153_140_867_161_780_02);
        let p = fma(z, p, 0.181_835_628_477_989_54);
        let p = fma(z, p, 0.222_221_986_028_502_85);
        let p = fma(z, p, 0.285_714_287_420_875_8);
        let p = fma(z, p, 0.399_999_999_994_160_64);
        let p = fma(z, p, 0.666_666_666_666_673_4);
        let half_square = 0.5 * f * f;
        let correction = fma(e, 1.908_214_929_270_587_7e-10, s * fma(z, p, half_square));
        fma(e, 0.693_147_180_369_123_8, f - (half_square - correction))
    } else {
        let exponent = (bitcast::<i32>(sum) - 0x3f35_04f3) >> 23;
        let field = exponent << 23;
        let f = bitcast::<f32>(bitcast::<i32>(x) - field) + fma(0.25, bitcast::<f32>(0x4080_0000 - field), -1.0);
        // ln(1 + f) = f + f^2 p(f); relative error 2^-25.2.
        let p = fma(f, 0.087_387_56, -0.143_076_67);
        let p = fma(f, p, 0.149_163_41);
        let p = fma(f, p, -0.165_703_18);
        let p = fma(f, p, 0.199_622_41);
        let p = fma(f, p, -0.250_017_76);
        let p = fma(f, p, 0.333_339_45);
        let p = fma(f, p, -0.499_999_9);
        let e = exponent as f32;
        // The first sum is exact, or nearly so: the high part of ln 2 has 16 bits.
        fma(e, 0.693_145_75, f) + fma(f * f, p, e * 1.428_606_8e-6)
    };
    let infinity = f32::INFINITY as F;
    let in_domain = (x > -1.0) & (x < infinity);
    let outside = select(x == -1.0, -infinity, fma(x, infinity, infinity));
    select(x == 0.0, x, select(in_domain, result, outside))
}

/// Both factors in two parts: the result is so near to the exact one that powers of ten give integers.
fn log10_of<F: Float>(x: Value<F>) -> Value<F> {
    let log10_e = if F == f64 { 0.434_294_481_903_251_8 as F } else { 0.434_294_5 as F };
    let log10_e_low = if F == f64 { 1.098_319_650_216_765e-17 as F } else { -1.010_305e-8 as F };
    let (e, f) = split_exponent(x);
    let (ln, low) = ln_in_two_parts(e, f);
    let (product, rest) = two_product(ln, log10_e);
    let (result, _) = fast_two_sum(product, fma(ln, log10_e_low, fma(low, log10_e, rest)));
    let infinity = f32::INFINITY as F;
    let in_domain = (x > 0.0) & (x < infinity);
    select(in_domain, result, select(x == 0.0, -infinity, fma(x, infinity, infinity)))
}
