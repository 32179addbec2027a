//! Helpers of the mathematical functions: sums and products with their rounding errors, e^x and ln x in two parts, powers of two.
//!
//! A number "in two parts" is the unevaluated sum of a float and of a small second one, which carries the digits that the first lacks
//! (Dekker, "A floating-point technique for extending the available precision", 1971). `F` is `f32` or `f64` throughout.
//! Coefficients come from `coefficients.py` beside this file.

/// a + b and its rounding error, for |a| >= |b|.
pub(super) fn fast_two_sum<F: Float>(a: Value<F>, b: Value<F>) -> (Value<F>, Value<F>) {
    let sum = a + b;
    (sum, b - (sum - a))
}

/// a + b and its rounding error (Knuth).
pub(super) fn two_sum<F: Float>(a: Value<F>, b: Value<F>) -> (Value<F>, Value<F>) {
    let sum = a + b;
    let taken = sum - a;
    (sum, (a - (sum - taken)) + (b - taken))
}

/// a * b and its rounding error.
pub(super) fn two_product<F: Float>(a: Value<F>, b: Value<F>) -> (Value<F>, Value<F>) {
    let product = a * b;
    (product, fma(a, b, -product))
}

/// 2^n for the exponent of a normal number.
pub(super) fn power_of_two<F: Float>(n: Value<i32>) -> Value<F> {
    if F == f64 { bitcast::<f64>((n as i64 + 1023) << 52) } else { bitcast::<f32>((n + 127) << 23) }
}

/// y 2^n for any n that may give a number: in two factors, the second of which rounds where the result is subnormal.
pub(super) fn scaled<F: Float>(y: Value<F>, n: Value<i32>) -> Value<F> {
    let half = n >> 1;
    y * power_of_two::<F>(half) * power_of_two::<F>(n - half)
}

/// x limited to an interval; unlike `clamp` of a NaN, which is a bound, NaN stays.
pub(super) fn limited<F: Float>(x: Value<F>, low: Value<F>, high: Value<F>) -> Value<F> {
    let x = select(x < low, low, x);
    select(x > high, high, x)
}

/// e^(x + low) = 2^n (1 + r + t) with |r| <= 0.35 and t small beside r, for |x| below 1000 (150 for `f32`).
pub(super) fn exp_parts<F: Float>(x: Value<F>, low: Value<F>) -> (Value<F>, Value<F>, Value<i32>) {
    if F == f64 {
        // 1.5 * 2^52: the sum with it is an integer, which stands in its low bits.
        let shifted = fma(x, std::f64::consts::LOG2_E, 6_755_399_441_055_744.0);
        let n = shifted - 6_755_399_441_055_744.0;
        let high = fma(n, -0.693_147_180_369_123_8, x);
        let low = fma(n, -1.908_214_929_270_587_7e-10, low);
        let (r, t) = fast_two_sum(high, low);
        // e^r = 1 + r + r^2 p(r); relative error 2^-56.4.
        let p = fma(r, 2.500_000_833_243_188_2e-8, 2.763_024_848_521_019_3e-7);
        let p = fma(r, p, 2.755_758_654_867_035_7e-6);
        let p = fma(r, p, 2.480_149_309_891_094_5e-5);
        let p = fma(r, p, 1.984_126_950_637_743_6e-4);
        let p = fma(r, p, 1.388_888_894_362_974_5e-3);
        let p = fma(r, p, 8.333_333_333_494_555e-3);
        let p = fma(r, p, 4.166_666_666_653_016e-2);
        let p = fma(r, p, 0.166_666_666_666_664_13);
        let p = fma(r, p, 0.500_000_000_000_001_1);
        (r, fma(r * r, p, t), bitcast::<i64>(shifted) as i32)
    } else {
        let shifted = fma(x, std::f32::consts::LOG2_E, 12_582_912.0);
        let n = shifted - 12_582_912.0;
        let high = fma(n, -0.693_145_75, x);
        let low = fma(n, -1.428_606_8e-6, low);
        let (r, t) = fast_two_sum(high, low);
        // Relative error 2^-28.3.
        let p = fma(r, 1.382_145_1e-3, 8.368_662e-3);
        let p = fma(r, p, 4.166_825_5e-2);
        let p = fma(r, p, 0.166_665_21);
        let p = fma(r, p, 0.499_999_94);
        (r, fma(r * r, p, t), bitcast::<i32>(shifted) - 0x4b40_0000)
    }
}

/// factor e^(x + low), nearly correctly rounded for the factor 1; overflow gives infinity, underflow a subnormal or 0.
pub(super) fn exp_of_sum<F: Float>(x: Value<F>, low: Value<F>, factor: Value<F>) -> Value<F> {
    let bound = if F == f64 { 800.0 as F } else { 120.0 as F };
    let inside = abs(x) < bound;
    let x = limited(x, -bound, bound);
    let (r, t, n) = exp_parts(x, select(inside, low, 0.0));
    let (y, rest) = fast_two_sum(1.0, r);
    let y = fma(factor, y, factor * (rest + t));
    scaled(y, n)
}

/// x = 2^e (1 + f) with 1 + f in [0.707, 1.415), for x positive and finite; finite nonsense elsewhere.
pub(super) fn split_exponent<F: Float>(x: Value<F>) -> (Value<F>, Value<F>) {
    if F == f64 {
        let is_tiny = x < f64::MIN_POSITIVE;
        // 2^54
        let bits = bitcast::<i64>(select(is_tiny, x * 18_014_398_509_481_984.0, x));
        // The bits of the float next to the root of 1/2.
        let exponent = (bits - 0x3fe6_a09e_667f_3bcd) >> 52;
        let e = exponent as i32 as f64;
        (select(is_tiny, e - 54.0, e), bitcast::<f64>(bits - (exponent << 52)) - 1.0)
    } else {
        let is_tiny = x < f32::MIN_POSITIVE;
        // 2^23
        let bits = bitcast::<i32>(select(is_tiny, x * 8_388_608.0, x));
        let exponent = (bits - 0x3f35_04f3) >> 23;
        let e = exponent as f32;
        (select(is_tiny, e - 23.0, e), bitcast::<f32>(bits - (exponent << 23)) - 1.0)
    }
}

/// ln(2^e (1 + f)) in two parts, whose relative error is about 2^-33 for `f32` and 2^-64 for `f64`.
///
/// With s = f / (2 + f), ln(1 + f) = 2 s + s z (2/3 + z p(z)), z = s^2. All but p is computed in two parts.
pub(super) fn ln_in_two_parts<F: Float>(e: Value<F>, f: Value<F>) -> (Value<F>, Value<F>) {
    let (denominator, denominator_low) = fast_two_sum(2.0, f);
    let inverse = 1.0 / denominator;
    let s = f * inverse;
    let s_low = fma(-s, denominator_low, fma(-s, denominator, f)) * inverse;
    let z = s * s;
    let z_low = fma(2.0 * s, s_low, fma(s, s, -z));
    let p = if F == f64 {
        let p = fma(z, 0.119_886_022_426_915_04, 0.116_748_705_470_206_12);
        let p = fma(z, p, 0.133_363_147_050_418_35);
        let p = fma(z, p, 0.153_845_569_459_931_6);
        let p = fma(z, p, 0.181_818_188_691_404_12);
        let p = fma(z, p, 0.222_222_222_175_467_44);
        let p = fma(z, p, 0.285_714_285_714_450_7);
        fma(z, p, 0.399_999_999_999_999_8)
    } else {
        let p = fma(z, 0.234_199, 0.285_470_84);
        fma(z, p, 0.400_001_53)
    };
    let two_thirds = if F == f64 { 0.666_666_666_666_666_6 as F } else { 0.666_666_7 as F };
    let two_thirds_low = if F == f64 { 3.700_743_415_417_188_6e-17 as F } else { -1.986_821_5e-8 as F };
    let (q, q_rest) = fast_two_sum(two_thirds, z * p);
    let q_low = q_rest + two_thirds_low;
    let (t, t_rest) = two_product(z, q);
    let t_low = fma(z, q_low, fma(z_low, q, t_rest));
    let (u, u_rest) = two_product(s, t);
    let u_low = fma(s, t_low, fma(s_low, t, u_rest));
    let (ln, ln_rest) = fast_two_sum(2.0 * s, u);
    let ln_low = fma(2.0, s_low, ln_rest + u_low);
    // e ln 2: the product with the high part of ln 2 is exact.
    let ln_2_high = if F == f64 { 0.693_147_180_369_123_8 as F } else { 0.693_145_75 as F };
    let ln_2_low = if F == f64 { 1.908_214_929_270_587_7e-10 as F } else { 1.428_606_8e-6 as F };
    let (sum, sum_rest) = two_sum(e * ln_2_high, ln);
    let (product, product_rest) = two_product(e, ln_2_low);
    fast_two_sum_of(sum, product, product_rest + (sum_rest + ln_low))
}

/// (a + b) + c in two parts, for |a| >= |b| or a = 0, and c small.
pub(super) fn fast_two_sum_of<F: Float>(a: Value<F>, b: Value<F>, c: Value<F>) -> (Value<F>, Value<F>) {
    let (sum, rest) = two_sum(a, b);
    fast_two_sum(sum, rest + c)
}
