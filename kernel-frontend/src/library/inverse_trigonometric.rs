//! Angles of sines, cosines and tangents. pi and pi/2 are taken in two parts.

pub fn asin<T: Float>(x: Value<T>) -> Value<T> {
    if T == f64 { asin_of(x as f64) as T } else { asin_of(x as f32) as T }
}

pub fn acos<T: Float>(x: Value<T>) -> Value<T> {
    if T == f64 { acos_of(x as f64) as T } else { acos_of(x as f32) as T }
}

pub fn atan<T: Float>(x: Value<T>) -> Value<T> {
    if T == f64 { atan_of(x as f64) as T } else { atan_of(x as f32) as T }
}

pub fn atan2<T: Float>(y: Value<T>, x: Value<T>) -> Value<T> {
    if T == f64 { atan2_of(y as f64, x as f64) as T } else { atan2_of(y as f32, x as f32) as T }
}

/// So many quarter turns, and the angle a + rest with a small rest: the large terms are added first, with little or no error.
fn turned<F: Float>(turns: Value<F>, a: Value<F>, rest: Value<F>) -> Value<F> {
    let high = if F == f64 { std::f64::consts::FRAC_PI_2 as F } else { std::f32::consts::FRAC_PI_2 as F };
    let low = if F == f64 { 6.123_233_995_736_766e-17 as F } else { -4.371_139e-8 as F };
    fma(turns, high, a) + fma(turns, low, rest)
}

/// asin(s) = s + s z p(z) for z = s^2 <= 1/4: what to add to s.
fn asin_rest<F: Float>(s: Value<F>, z: Value<F>) -> Value<F> {
    let p = if F == f64 {
        // Relative error 2^-58.2.
        let p = fma(z, 0.032_654_503_261_411_85, -0.021_039_470_693_957_22);
        let p = fma(z, p, 0.021_735_298_501_988_916);
        let p = fma(z, p, 0.003_695_257_009_631_834_4);
        let p = fma(z, p, 0.010_783_125_000_272_887);
        let p = fma(z, p, 0.011_398_414_496_370_694);
        let p = fma(z, p, 0.013_980_879_518_559_764);
        let p = fma(z, p, 0.017_351_607_256_307_973);
        let p = fma(z, p, 0.022_372_215_242_996_24);
        let p = fma(z, p, 0.030_381_942_699_078_81);
        let p = fma(z, p, 0.044_642_857_174_785_29);
        let p = fma(z, p, 0.074_999_999_999_706_27);
        fma(z, p, 0.166_666_666_666_667_6)
    } else {
        // Relative error 2^-27.6.
        let p = fma(z, 0.042_166_423, 0.024_180_772);
        let p = fma(z, p, 0.045_469_772);
        let p = fma(z, p, 0.074_953_064);
        fma(z, p, 0.166_667_52)
    };
    s * z * p
}

/// Beyond 1/2, pi/2 - 2 asin(sqrt((1 - |x|) / 2)).
fn asin_of<F: Float>(x: Value<F>) -> Value<F> {
    let size = abs(x);
    let is_small = size <= 0.5;
    let z = select(is_small, size * size, 0.5 - 0.5 * size);
    let s = select(is_small, size, sqrt(z));
    let rest = asin_rest(s, z);
    copysign(select(is_small, s + rest, turned(1.0, -2.0 * s, -2.0 * rest)), x)
}

fn acos_of<F: Float>(x: Value<F>) -> Value<F> {
    let size = abs(x);
    let is_small = size <= 0.5;
    let z = select(is_small, size * size, 0.5 - 0.5 * size);
    let s = select(is_small, x, sqrt(z));
    let rest = asin_rest(s, z);
    // pi/2 - asin(x), pi - 2 asin(s), 2 asin(s)
    let factor = select(is_small, 1.0 as F, 2.0 as F);
    select(x > 0.5, 2.0 * (s + rest), turned(factor, -factor * s, -factor * rest))
}

/// atan(q) = q + q z p(z) for z = q^2 <= 1: what to add to q.
fn atan_rest<F: Float>(q: Value<F>) -> Value<F> {
    let z = q * q;
    let p = if F == f64 {
        // Relative error 2^-54.7.
        let p = fma(z, -8.654_333_793_179_807e-6, 1.038_731_693_357_093_1e-4);
        let p = fma(z, p, -5.928_990_945_691_35e-4);
        let p = fma(z, p, 0.002_151_604_390_428_803_5);
        let p = fma(z, p, -0.005_612_418_518_128_913);
        let p = fma(z, p, 0.011_317_693_486_030_967);
        let p = fma(z, p, -0.018_614_243_524_751_918);
        let p = fma(z, p, 0.026_151_702_788_629_14);
        let p = fma(z, p, -0.032_785_452_065_533_155);
        let p = fma(z, p, 0.038_210_076_056_481_27);
        let p = fma(z, p, -0.042_863_914_116_002_697);
        let p = fma(z, p, 0.047_449_262_725_374_634);
        let p = fma(z, p, -0.052_594_338_265_420_68);
        let p = fma(z, p, 0.058_817_161_610_025_9);
        let p = fma(z, p, -0.066_665_837_237_339_3);
        let p = fma(z, p, 0.076_922_997_118_591_07);
        let p = fma(z, p, -0.090_909_085_472_588_4);
        let p = fma(z, p, 0.111_111_110_864_472_7);
        let p = fma(z, p, -0.142_857_142_850_366_13);
        let p = fma(z, p, 0.199_999_999_999_904_48);
        fma(z, p, -0.333_333_333_333_332_87)
    } else {
        // Relative error 2^-28.5.
        let p = fma(z, -0.001_782_928_5, 0.010_869_041);
        let p = fma(z, p, -0.031_097_434);
        let p = fma(z, p, 0.057_881_657);
        let p = fma(z, p, -0.083_993_14);
        let p = fma(z, p, 0.109_508_81);
        let p = fma(z, p, -0.142_640_16);
        let p = fma(z, p, 0.199_985_3);
        fma(z, p, -0.333_332_99)
    };
    q * z * p
}

fn atan_of<F: Float>(x: Value<F>) -> Value<F> {
    let size = abs(x);
    let is_large = size > 1.0;
    let q = select(is_large, 1.0 / size, size);
    let rest = atan_rest(q);
    copysign(select(is_large, turned(1.0, -q, -rest), q + rest), x)
}

fn atan2_of<F: Float>(y: Value<F>, x: Value<F>) -> Value<F> {
    let (across, up) = (abs(x), abs(y));
    let (large, small) = (max(across, up), min(across, up));
    // A diagonal, of two infinities too, is half a quarter turn; two zeros have the angle of their signs.
    let is_diagonal = (across == up) & (large > 0.0);
    let q = select(across == up, 0.0, small / large);
    let rest = atan_rest(q);
    // The angle itself, pi/2 less it, pi/2 more, pi less it.
    let is_steep = up > across;
    let is_behind = copysign(1.0, x) < 0.0;
    let turns = select(is_steep, 1.0 as F, select(is_behind, 2.0 as F, 0.0 as F));
    let turns = select(is_diagonal, select(is_behind, 1.5 as F, 0.5 as F), turns);
    let sign = select(is_steep == is_behind, 1.0 as F, -1.0 as F);
    let angle = turned(turns, sign * q, sign * rest);
    select((x != x) | (y != y), x + y, copysign(angle, y))
}
