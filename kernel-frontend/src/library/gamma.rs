//! The gamma function and its logarithm.

use super::extended::{exp_of_sum, ln_in_two_parts, split_exponent, two_product, two_sum};

pub fn tgamma<T: Float>(x: Value<T>) -> Value<T> {
    if T == f64 { tgamma_of(x as f64) as T } else { tgamma_of(x as f32) as T }
}

pub fn lgamma<T: Float>(x: Value<T>) -> Value<T> {
    if T == f64 { lgamma_of(x as f64) as T } else { lgamma_of(x as f32) as T }
}

/// |sin(pi x)| for x >= 0, and whether the sine is negative.
fn sine_of_turns<F: Float>(x: Value<F>) -> (Value<F>, Value<bool>) {
    let nearest = rint(x);
    let half = 0.5 * nearest;
    let is_odd = trunc(half) != half;
    let distance = x - nearest;
    let pi = if F == f64 { std::f64::consts::PI as F } else { std::f32::consts::PI as F };
    (sin(pi * abs(distance)), is_odd != (distance < 0.0))
}

/// For |x| < 8 a product of 1 / (1 / gamma(1 + t)) with t in [0, 1), beyond it Stirling's formula in two parts; for negative x by
/// gamma(-x) gamma(x) = -pi / (x sin(pi x)).
fn tgamma_of<F: Float>(x: Value<F>) -> Value<F> {
    let infinity = f32::INFINITY as F;
    let size = abs(x);
    let is_negative = x < 0.0;
    let (sine, is_sine_negative) = sine_of_turns(size);
    let pi = if F == f64 { std::f64::consts::PI as F } else { std::f32::consts::PI as F };
    let sine_over_pi = select(is_sine_negative, sine, -sine) / pi;

    let inside = select(size < 8.0, size, 1.5);
    let t = inside - floor(inside);
    let (product, low) = times_factor(inside, 1.0, 1.0, 0.0);
    let (product, low) = times_factor(inside, 2.0, product, low);
    let (product, low) = times_factor(inside, 3.0, product, low);
    let (product, low) = times_factor(inside, 4.0, product, low);
    let (product, low) = times_factor(inside, 5.0, product, low);
    let (product, low) = times_factor(inside, 6.0, product, low);
    let product = product + low;
    let inverse = inverse_gamma(t);
    let is_below_1 = inside < 1.0;
    // gamma(x) = gamma(1 + x) / x below 1.
    let positive = select(is_below_1, 1.0 / (inverse * inside), product / inverse);
    let negative = select(is_below_1, inverse / sine_over_pi, inverse / (inside * sine_over_pi * product));
    let near = select(is_negative, negative, positive);

    let (high, low) = stirling_in_two_parts(select(size < 8.0, 8.0, size));
    let factor = select(is_negative, 1.0 / (size * sine_over_pi), 1.0);
    let far = exp_of_sum(select(is_negative, -high, high), select(is_negative, -low, low), factor);

    let result = select(size < 8.0, near, far);
    let is_tiny = size < if F == f64 { 1.0e-17 as F } else { 1.0e-9 as F };
    let result = select(is_tiny, 1.0 / x, result);
    let is_pole = is_negative & (trunc(x) == x);
    select(x != x, x, select(is_pole, f32::NAN as F, select(x == infinity, x, result)))
}

/// A product in two parts times x - i, where that is a factor of gamma(x).
fn times_factor<F: Float>(x: Value<F>, i: Value<F>, product: Value<F>, low: Value<F>) -> (Value<F>, Value<F>) {
    let factor = x - i;
    let (next, rest) = two_product(factor, product);
    let is_factor = factor >= 1.0;
    (select(is_factor, next, product), select(is_factor, fma(low, factor, rest), low))
}

/// ln gamma(x) = (x - 1/2) ln x - x + ln(2 pi) / 2 + s(1 / x^2) / x for x >= 8, in two parts.
fn stirling_in_two_parts<F: Float>(x: Value<F>) -> (Value<F>, Value<F>) {
    let (e, f) = split_exponent(x);
    let (ln, ln_low) = ln_in_two_parts(e, f);
    let shifted = x - 0.5;
    let (product, rest) = two_product(shifted, ln);
    let low = fma(shifted, ln_low, rest);
    let (sum, rest) = two_sum(product, -x);
    let constant = if F == f64 { 0.918_938_533_204_672_8 as F } else { 0.918_938_5 as F };
    let constant_low = if F == f64 { -3.878_294_158_067_241_5e-17 as F } else { 1.563_417_7e-8 as F };
    let (sum, more) = two_sum(sum, constant);
    let inverse = 1.0 / x;
    (sum, fma(inverse, stirling(inverse * inverse), (low + rest) + (more + constant_low)))
}

/// 1 / gamma(1 + t) for t in [0, 1]; within 2^-29.7 and 2^-55.4.
fn inverse_gamma<F: Float>(t: Value<F>) -> Value<F> {
    if F == f64 {
        let p = fma(t, -8.429_247_934_432_176e-10, 2.355_576_070_049_882e-8);
        let p = fma(t, p, -2.405_598_613_763_392_3e-7);
        let p = fma(t, p, 1.182_656_321_388_772_8e-6);
        let p = fma(t, p, -1.302_165_349_531_110_2e-6);
        let p = fma(t, p, -2.009_470_988_210_964_3e-5);
        let p = fma(t, p, 0.000_128_026_808_569_488_16);
        let p = fma(t, p, -0.000_215_231_335_812_776_3);
        let p = fma(t, p, -0.001_165_170_999_368_485_8);
        let p = fma(t, p, 0.007_218_944_075_471_38);
        let p = fma(t, p, -0.009_621_971_673_238_213);
        let p = fma(t, p, -0.042_197_734_537_8);
        let p = fma(t, p, 0.166_538_611_380_862_57);
        let p = fma(t, p, -0.042_002_635_034_025_446);
        let p = fma(t, p, -0.655_878_071_520_255_7);
        let p = fma(t, p, 0.577_215_664_901_532_9);
        fma(t, p, 1.0)
    } else {
        let p = fma(t, -0.001_097_248, 0.006_594_06);
        let p = fma(t, p, -0.008_787_995);
        let p = fma(t, p, -0.042_745_236);
        let p = fma(t, p, 0.166_736_56);
        let p = fma(t, p, -0.042_041_2);
        let p = fma(t, p, -0.655_874_5);
        let p = fma(t, p, 0.577_215_55);
        fma(t, p, 1.0)
    }
}

/// The rest of Stirling's formula times x, of 1 / x^2 for x >= 8; within 2^-28.6 and 2^-57.6.
fn stirling<F: Float>(z: Value<F>) -> Value<F> {
    if F == f64 {
        let p = fma(z, 0.005_069_273_892_155_041, -0.001_890_541_235_772_508_4);
        let p = fma(z, p, 0.000_841_472_874_051_113_1);
        let p = fma(z, p, -0.000_595_236_607_172_099_1);
        let p = fma(z, p, 0.000_793_650_789_835_751_1);
        let p = fma(z, p, -0.002_777_777_777_774_100_3);
        fma(z, p, 0.083_333_333_333_333_33)
    } else {
        let p = fma(z, 0.000_861_369_25, -0.002_778_978);
        fma(z, p, 0.083_333_336)
    }
}

/// Below 3 and below 8 polynomials times (x - 1) (x - 2), where the result is zero; beyond, Stirling's formula. Below 1 of x + 1; for
/// negative x by the reflection.
fn lgamma_of<F: Float>(x: Value<F>) -> Value<F> {
    let infinity = f32::INFINITY as F;
    let size = abs(x);
    let logarithm = log(size);
    let is_below_1 = size < 1.0;
    let from_1 = select(is_below_1, size, size - 1.0);
    let from_2 = select(is_below_1, size - 1.0, size - 2.0);
    let r = select(size < 3.0, lgamma_near(from_2), lgamma_middle(size - 5.5));
    // The zeros at 1 and 2 are positive: -0 + 0 is 0.
    let near = fma(from_1 * from_2, r, 0.0);
    let near = select(is_below_1, near - logarithm, near);
    let inverse = 1.0 / size;
    let constant = if F == f64 { 0.418_938_533_204_672_7 as F } else { 0.418_938_55 as F };
    let far = fma(size - 0.5, logarithm - 1.0, fma(inverse, stirling(inverse * inverse), constant));
    let positive = select(size < 8.0, near, far);

    let (sine, _) = sine_of_turns(size);
    let pi = if F == f64 { std::f64::consts::PI as F } else { std::f32::consts::PI as F };
    let reflected = log(pi / (size * sine)) - positive;
    // There the reflection would overflow, and both are -ln |x|.
    let is_tiny = size < if F == f64 { 1.0e-17 as F } else { 1.0e-9 as F };
    let result = select(is_tiny, -logarithm, select(x < 0.0, reflected, positive));
    select(size == infinity, infinity, result)
}

/// ln gamma(2 + v) / (v (1 + v)) for v in [-1, 1]; within 2^-25.9 and 2^-56.
fn lgamma_near<F: Float>(v: Value<F>) -> Value<F> {
    if F == f64 {
        let p = fma(v, 1.147_739_735_322_010_5e-10, -2.203_902_873_790_221e-10);
        let p = fma(v, p, -4.362_579_753_981_691e-10);
        let p = fma(v, p, 7.788_251_398_675_206e-10);
        let p = fma(v, p, 1.515_200_906_313_105e-9);
        let p = fma(v, p, -2.723_517_896_944_254_5e-9);
        let p = fma(v, p, -9.002_653_953_951_569e-10);
        let p = fma(v, p, 1.034_398_608_811_185_4e-9);
        let p = fma(v, p, 6.973_067_633_817_592e-9);
        let p = fma(v, p, -1.341_889_097_435_031_1e-8);
        let p = fma(v, p, 1.910_173_056_277_764_5e-8);
        let p = fma(v, p, -4.098_495_722_056_424e-8);
        let p = fma(v, p, 9.217_370_770_341_112e-8);
        let p = fma(v, p, -1.929_800_705_650_384_6e-7);
        let p = fma(v, p, 4.033_234_600_648_981e-7);
        let p = fma(v, p, -8.524_576_898_115_521e-7);
        let p = fma(v, p, 1.808_223_179_919_084_6e-6);
        let p = fma(v, p, -3.847_459_243_764_842_5e-6);
        let p = fma(v, p, 8.222_163_708_839_311e-6);
        let p = fma(v, p, -1.766_165_072_427_916_4e-5);
        let p = fma(v, p, 3.816_889_314_246_058e-5);
        let p = fma(v, p, -8.309_512_958_163_164e-5);
        let p = fma(v, p, 0.000_182_552_638_712_108_26);
        let p = fma(v, p, -0.000_405_707_397_244_677_8);
        let p = fma(v, p, 0.000_915_376_922_272_287_8);
        let p = fma(v, p, -0.002_108_130_833_967_797);
        let p = fma(v, p, 0.004_998_641_164_696_696);
        let p = fma(v, p, -0.012_384_192_193_371_023);
        let p = fma(v, p, 0.032_965_000_621_155_836);
        let p = fma(v, p, -0.100_317_301_674_353_92);
        fma(v, p, 0.422_784_335_098_467_13)
    } else {
        let p = fma(v, 1.007_707_1e-5, -3.515_735e-5);
        let p = fma(v, p, 4.952_811_7e-5);
        let p = fma(v, p, -6.191_143_6e-5);
        let p = fma(v, p, 0.000_160_725_16);
        let p = fma(v, p, -0.000_416_511_96);
        let p = fma(v, p, 0.000_930_039_74);
        let p = fma(v, p, -0.002_105_780_9);
        let p = fma(v, p, 0.004_994_513);
        let p = fma(v, p, -0.012_384_369);
        let p = fma(v, p, 0.032_965_414);
        let p = fma(v, p, -0.100_317_3);
        fma(v, p, 0.422_784_33)
    }
}

/// ln gamma(x) / ((x - 1) (x - 2)) of v = x - 5.5 for x in [3, 8].
fn lgamma_middle<F: Float>(v: Value<F>) -> Value<F> {
    if F == f64 {
        let p = fma(v, -1.978_168_854_218_073_5e-20, 1.070_816_965_908_325_8e-19);
        let p = fma(v, p, 1.964_029_865_546_679e-19);
        let p = fma(v, p, -9.094_951_639_608_524e-19);
        let p = fma(v, p, -9.335_466_315_842_877e-18);
        let p = fma(v, p, 4.975_869_013_174_939_3e-17);
        let p = fma(v, p, -1.324_678_531_716_357_6e-16);
        let p = fma(v, p, 7.965_507_571_773_562e-16);
        let p = fma(v, p, -5.617_510_664_805_860_5e-15);
        let p = fma(v, p, 3.217_541_301_004_672e-14);
        let p = fma(v, p, -1.814_265_173_784_395_8e-13);
        let p = fma(v, p, 1.054_256_567_587_973_4e-12);
        let p = fma(v, p, -6.159_143_871_178_61e-12);
        let p = fma(v, p, 3.605_414_169_221_134e-11);
        let p = fma(v, p, -2.121_473_380_343_572e-10);
        let p = fma(v, p, 1.256_269_198_719_404_5e-9);
        let p = fma(v, p, -7.494_727_458_984_34e-9);
        let p = fma(v, p, 4.511_798_711_553_617e-8);
        let p = fma(v, p, -2.746_636_383_053_624e-7);
        let p = fma(v, p, 1.695_914_417_696_359_8e-6);
        let p = fma(v, p, -1.066_656_463_429_024_8e-5);
        let p = fma(v, p, 6.878_711_595_845_375e-5);
        let p = fma(v, p, -0.000_459_753_585_022_857_55);
        let p = fma(v, p, 0.003_248_406_298_683_799);
        let p = fma(v, p, -0.025_347_622_678_910_16);
        fma(v, p, 0.251_289_775_721_823_26)
    } else {
        let p = fma(v, -3.342_758_3e-10, 1.762_184_5e-9);
        let p = fma(v, p, -6.936_47e-9);
        let p = fma(v, p, 4.506_354e-8);
        let p = fma(v, p, -2.747_361_8e-7);
        let p = fma(v, p, 1.679_133_2e-6);
        let p = fma(v, p, -1.067_050_6e-5);
        let p = fma(v, p, 6.884_715_5e-5);
        let p = fma(v, p, -0.000_459_747_77);
        let p = fma(v, p, 0.003_248_346);
        let p = fma(v, p, -0.025_347_624);
        fma(v, p, 0.251_289_78)
    }
}
