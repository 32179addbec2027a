//! Bessel functions of the first and second kind, of orders 0 and 1.
//!
//! Below 8 polynomials; beyond, with modulus M and phase t, which are polynomials of 1 / x^2 (t times x),
//! J = sqrt(2 / (pi x)) M cos(x - a + t) and Y = sqrt(2 / (pi x)) M sin(x - a + t) (Abramowitz and Stegun, 9.2.17), where a is pi/4 for order 0 and
//! 3 pi/4 for order 1.

pub fn j0<T: Float>(x: Value<T>) -> Value<T> {
    if T == f64 { j0_of(x as f64) as T } else { j0_of(x as f32) as T }
}

pub fn j1<T: Float>(x: Value<T>) -> Value<T> {
    if T == f64 { j1_of(x as f64) as T } else { j1_of(x as f32) as T }
}

pub fn y0<T: Float>(x: Value<T>) -> Value<T> {
    if T == f64 { y0_of(x as f64) as T } else { y0_of(x as f32) as T }
}

pub fn y1<T: Float>(x: Value<T>) -> Value<T> {
    if T == f64 { y1_of(x as f64) as T } else { y1_of(x as f32) as T }
}

fn j0_of<F: Float>(x: Value<F>) -> Value<F> {
    let size = abs(x);
    let w = inverse_square(size);
    let (cosine, _) = far_parts(size, modulus_0(w), phase_0(w));
    let result = select(size < 8.0, j0_near(size), cosine);
    // 1 - x^2 / 4 rounds to 1, which the polynomial misses by one unit in the last place.
    let is_tiny = size < if F == f64 { 1.0e-8 as F } else { 1.0e-4 as F };
    at_infinity(size, select(is_tiny, 1.0, result))
}

fn j1_of<F: Float>(x: Value<F>) -> Value<F> {
    let size = abs(x);
    let w = inverse_square(size);
    let (_, sine) = far_parts(size, modulus_1(w), phase_1(w));
    at_infinity(size, select(size < 8.0, x * j1_near(size), copysign(1.0, x) * sine))
}

fn y0_of<F: Float>(x: Value<F>) -> Value<F> {
    let w = inverse_square(x);
    let (_, sine) = far_parts(x, modulus_0(w), phase_0(w));
    let two_over_pi = if F == f64 { std::f64::consts::FRAC_2_PI as F } else { std::f32::consts::FRAC_2_PI as F };
    let near = fma(two_over_pi * log(x), j0_near(x), y0_rest(fma(x, 0.031_25 * x, -1.0)));
    at_infinity(x, select(x < 8.0, near, sine))
}

fn y1_of<F: Float>(x: Value<F>) -> Value<F> {
    let w = inverse_square(x);
    let (cosine, _) = far_parts(x, modulus_1(w), phase_1(w));
    let two_over_pi = if F == f64 { std::f64::consts::FRAC_2_PI as F } else { std::f32::consts::FRAC_2_PI as F };
    let regular = x * fma(two_over_pi * log(x), j1_near(x), y1_rest(fma(x, 0.031_25 * x, -1.0)));
    let near = regular - two_over_pi / x;
    let near = select(x == 0.0, -(f32::INFINITY as F), near);
    at_infinity(x, select(x < 8.0, near, -cosine))
}

/// All four vanish there, where an angle is not a number.
fn at_infinity<F: Float>(x: Value<F>, result: Value<F>) -> Value<F> {
    select(x == f32::INFINITY as F, 0.0, result)
}

/// 1 / x^2 for x from 8 on, what the polynomials are made for; 1/64 below.
fn inverse_square<F: Float>(x: Value<F>) -> Value<F> {
    let inverse = 1.0 / max(x, 8.0);
    inverse * inverse
}

/// sqrt(2 / (pi x)) times M and the cosine and the sine of x - pi/4 + t, where x t is given. With x - 3 pi/4 instead the cosine is this sine, and
/// the sine is minus this cosine.
fn far_parts<F: Float>(x: Value<F>, modulus: Value<F>, phase: Value<F>) -> (Value<F>, Value<F>) {
    let (sin_x, cos_x) = (sin(x), cos(x));
    // The root of 2 times the sine and the cosine of x - pi/4.
    let (sine, cosine) = (sin_x - cos_x, sin_x + cos_x);
    let t = phase / max(x, 8.0);
    let z = t * t;
    // |t| < 0.05: the series to t^8.
    let c = fma(z, 2.480_158_730_158_73e-5, -1.388_888_888_888_889e-3);
    let c = fma(z, c, 0.041_666_666_666_666_664);
    let cos_t = fma(z, fma(z, c, -0.5), 1.0);
    let s = fma(z, -1.984_126_984_126_984e-4, 8.333_333_333_333_333e-3);
    let s = fma(z, s, -0.166_666_666_666_666_66);
    let sin_t = fma(t * z, s, t);
    let one_over_pi = if F == f64 { std::f64::consts::FRAC_1_PI as F } else { std::f32::consts::FRAC_1_PI as F };
    let amplitude = sqrt(one_over_pi / x) * modulus;
    (amplitude * fma(cosine, cos_t, -(sine * sin_t)), amplitude * fma(sine, cos_t, cosine * sin_t))
}

/// J0 for 0 <= x < 8: the factors of its two zeros there, which are taken in two parts, times a polynomial of v = x^2 / 32 - 1.
fn j0_near<F: Float>(x: Value<F>) -> Value<F> {
    let first = if F == f64 { 2.404_825_557_695_773 as F } else { 2.404_825_4 as F };
    let first_low = if F == f64 { -1.176_691_651_530_894e-16 as F } else { 1.087_059_05e-7 as F };
    let second = if F == f64 { 5.520_078_110_286_311 as F } else { 5.520_078 as F };
    let second_low = if F == f64 { 8.088_597_146_146_722e-17 as F } else { -7.193_414_6e-8 as F };
    let factors = ((x - first) - first_low) * (x + first) * (((x - second) - second_low) * (x + second));
    factors * j0_polynomial(fma(x, 0.031_25 * x, -1.0))
}

/// J1 over x for 0 <= x < 8: the factors of its two zeros there, which are taken in two parts, times a polynomial of v = x^2 / 32 - 1.
fn j1_near<F: Float>(x: Value<F>) -> Value<F> {
    let first = if F == f64 { 3.831_705_970_207_512_5 as F } else { 3.831_706 as F };
    let first_low = if F == f64 { -1.526_918_409_008_806_7e-16 as F } else { -7.685_059e-8 as F };
    let second = if F == f64 { 7.015_586_669_815_619 as F } else { 7.015_587 as F };
    let second_low = if F == f64 { -9.414_165_653_410_389e-17 as F } else { -1.832_117_2e-7 as F };
    let factors = ((x - first) - first_low) * (x + first) * (((x - second) - second_low) * (x + second));
    factors * j1_polynomial(fma(x, 0.031_25 * x, -1.0))
}

/// J0(x) over the factors of its zeros.
fn j0_polynomial<F: Float>(v: Value<F>) -> Value<F> {
    if F == f64 {
        let p = fma(v, 2.801_967_314_197_948_7e-19, -1.135_767_533_100_946_8e-17);
        let p = fma(v, p, 3.995_679_581_476_215_5e-16);
        let p = fma(v, p, -1.244_037_563_070_813_1e-14);
        let p = fma(v, p, 3.392_348_132_058_802e-13);
        let p = fma(v, p, -8.023_536_489_276_367e-12);
        let p = fma(v, p, 1.627_648_933_734_943e-10);
        let p = fma(v, p, -2.794_862_919_029_88e-9);
        let p = fma(v, p, 3.998_839_345_544_951e-8);
        let p = fma(v, p, -4.677_128_021_500_395e-7);
        let p = fma(v, p, 4.366_932_324_640_499e-6);
        let p = fma(v, p, -3.157_342_540_223_125e-5);
        let p = fma(v, p, 0.000_169_772_007_139_978_44);
        let p = fma(v, p, -0.000_641_539_064_640_612_7);
        let p = fma(v, p, 0.001_563_643_164_593_166_1);
        let p = fma(v, p, -0.002_119_794_289_479_692);
        fma(v, p, 0.001_143_493_774_376_254_5)
    } else {
        let p = fma(v, 3.786_790_6e-8, -4.713_371_3e-7);
        let p = fma(v, p, 4.369_639e-6);
        let p = fma(v, p, -3.157_267_2e-5);
        let p = fma(v, p, 0.000_169_771_87);
        let p = fma(v, p, -0.000_641_538_94);
        let p = fma(v, p, 0.001_563_642_8);
        let p = fma(v, p, -0.002_119_794_3);
        fma(v, p, 0.001_143_493_8)
    }
}

/// J1(x) / x over the factors of its zeros.
fn j1_polynomial<F: Float>(v: Value<F>) -> Value<F> {
    if F == f64 {
        let p = fma(v, 7.443_875_201_930_652e-21, -3.161_880_700_067_583_4e-19);
        let p = fma(v, p, 1.178_168_190_176_654_5e-17);
        let p = fma(v, p, -3.898_565_819_976_169_5e-16);
        let p = fma(v, p, 1.134_317_382_724_482e-14);
        let p = fma(v, p, -2.875_548_654_170_245_6e-13);
        let p = fma(v, p, 6.284_733_786_953_836_4e-12);
        let p = fma(v, p, -1.169_693_238_592_101e-10);
        let p = fma(v, p, 1.826_854_769_551_347_9e-9);
        let p = fma(v, p, -2.352_192_254_633_432_4e-8);
        let p = fma(v, p, 2.442_522_260_751_993_3e-7);
        let p = fma(v, p, -1.989_093_515_914_14e-6);
        let p = fma(v, p, 1.224_217_365_301_561e-5);
        let p = fma(v, p, -5.408_003_239_085_507e-5);
        let p = fma(v, p, 0.000_158_600_167_993_698_74);
        let p = fma(v, p, -0.000_269_752_274_671_636_8);
        fma(v, p, 0.000_194_989_369_858_956_25)
    } else {
        let p = fma(v, 1.770_307_2e-9, -2.416_599_5e-8);
        let p = fma(v, p, 2.446_627_4e-7);
        let p = fma(v, p, -1.988_331_4e-6);
        let p = fma(v, p, 1.224_169_2e-5);
        let p = fma(v, p, -5.408_029_8e-5);
        let p = fma(v, p, 0.000_158_600_32);
        let p = fma(v, p, -0.000_269_752_26);
        fma(v, p, 0.000_194_989_36)
    }
}

/// Y0(x) - 2/pi ln(x) J0(x).
fn y0_rest<F: Float>(v: Value<F>) -> Value<F> {
    if F == f64 {
        let p = fma(v, 2.558_417_250_894_946_3e-14, -8.840_112_291_407_645e-13);
        let p = fma(v, p, 2.681_820_532_145_238e-11);
        let p = fma(v, p, -7.130_461_464_586_556e-10);
        let p = fma(v, p, 1.639_106_529_636_009_8e-8);
        let p = fma(v, p, -3.218_507_844_594_862_3e-7);
        let p = fma(v, p, 5.321_318_633_709_024e-6);
        let p = fma(v, p, -7.279_541_882_454_104e-5);
        let p = fma(v, p, 0.000_806_158_606_055_078_2);
        let p = fma(v, p, -0.007_025_741_057_270_97);
        let p = fma(v, p, 0.046_367_047_681_347_09);
        let p = fma(v, p, -0.218_957_470_961_716_28);
        let p = fma(v, p, 0.672_177_078_343_172_3);
        let p = fma(v, p, -1.077_547_733_821_599_5);
        let p = fma(v, p, 0.144_126_323_693_024_42);
        let p = fma(v, p, 1.647_096_478_874_546_6);
        let p = fma(v, p, -0.828_435_890_360_458_7);
        fma(v, p, -0.382_250_654_459_425)
    } else {
        let p = fma(v, 5.741_51e-6, -6.706_209e-5);
        let p = fma(v, p, 0.000_804_996_93);
        let p = fma(v, p, -0.007_041_380_7);
        let p = fma(v, p, 0.046_368_29);
        let p = fma(v, p, -0.218_943_43);
        let p = fma(v, p, 0.672_176_5);
        let p = fma(v, p, -1.077_552_8);
        let p = fma(v, p, 0.144_126_45);
        let p = fma(v, p, 1.647_097_1);
        let p = fma(v, p, -0.828_435_9);
        fma(v, p, -0.382_250_67)
    }
}

/// (Y1(x) - 2/pi (ln(x) J1(x) - 1 / x)) / x
fn y1_rest<F: Float>(v: Value<F>) -> Value<F> {
    if F == f64 {
        let p = fma(v, 7.340_031_005_041_035e-16, -2.695_139_006_039_382_2e-14);
        let p = fma(v, p, 8.728_806_012_227_662e-13);
        let p = fma(v, p, -2.488_750_990_147_092_2e-11);
        let p = fma(v, p, 6.169_742_620_547_485e-10);
        let p = fma(v, p, -1.315_332_255_113_034_4e-8);
        let p = fma(v, p, 2.380_492_991_359_328_7e-7);
        let p = fma(v, p, -3.600_999_874_357_812_6e-6);
        let p = fma(v, p, 4.467_433_012_914_448e-5);
        let p = fma(v, p, -0.000_443_817_343_511_498_76);
        let p = fma(v, p, 0.003_422_490_739_918_045_5);
        let p = fma(v, p, -0.019_628_756_833_099_423);
        let p = fma(v, p, 0.078_547_869_222_425_45);
        let p = fma(v, p, -0.196_398_398_599_304_25);
        let p = fma(v, p, 0.235_072_092_066_697_55);
        let p = fma(v, p, 0.023_367_571_720_993_584);
        let p = fma(v, p, -0.243_377_430_791_931_14);
        fma(v, p, 0.070_759_858_821_180_05)
    } else {
        let p = fma(v, 4.534_498e-5, -0.000_452_722_02);
        let p = fma(v, p, 0.003_421_826_8);
        let p = fma(v, p, -0.019_621_149);
        let p = fma(v, p, 0.078_548_13);
        let p = fma(v, p, -0.196_401);
        let p = fma(v, p, 0.235_072_06);
        let p = fma(v, p, 0.023_367_867);
        let p = fma(v, p, -0.243_377_43);
        fma(v, p, 0.070_759_855)
    }
}

/// M of order 0.
fn modulus_0<F: Float>(w: Value<F>) -> Value<F> {
    if F == f64 {
        let p = fma(w, -15_684_342_946.039_892, 1_748_365_408.160_812_4);
        let p = fma(w, p, -93_039_617.683_211_3);
        let p = fma(w, p, 3_303_111.340_419_866_6);
        let p = fma(w, p, -96_453.536_223_266_9);
        let p = fma(w, p, 2862.256_168_269_517_3);
        let p = fma(w, p, -106.494_965_012_543_94);
        let p = fma(w, p, 5.847_744_926_629_099);
        let p = fma(w, p, -0.542_845_275_631_812);
        let p = fma(w, p, 0.103_515_623_918_490_33);
        let p = fma(w, p, -0.062_499_999_999_671_346);
        fma(w, p, 1.0)
    } else {
        let p = fma(w, -0.414_538_83, 0.102_477_01);
        let p = fma(w, p, -0.062_497_49);
        fma(w, p, 1.0)
    }
}

/// x t of order 0.
fn phase_0<F: Float>(w: Value<F>) -> Value<F> {
    if F == f64 {
        let p = fma(w, 121_478_188_107.866_38, -13_334_517_728.192_947);
        let p = fma(w, p, 692_328_301.707_824_5);
        let p = fma(w, p, -23_577_904.452_272_71);
        let p = fma(w, p, 640_973.067_097_738_5);
        let p = fma(w, p, -16_928.118_185_366_806);
        let p = fma(w, p, 532.318_755_545_347_6);
        let p = fma(w, p, -23.467_107_823_402_37);
        let p = fma(w, p, 1.638_054_169_169_463_4);
        let p = fma(w, p, -0.209_570_303_528_121_14);
        let p = fma(w, p, 0.065_104_166_663_953_83);
        fma(w, p, -0.124_999_999_999_999_86)
    } else {
        let p = fma(w, 1.110_864_2, -0.204_757_26);
        let p = fma(w, p, 0.065_089_14);
        fma(w, p, -0.124_999_99)
    }
}

/// M of order 1.
fn modulus_1<F: Float>(w: Value<F>) -> Value<F> {
    if F == f64 {
        let p = fma(w, 17_889_600_434.444_935, -1_998_722_843.786_375_5);
        let p = fma(w, p, 106_764_981.093_954_03);
        let p = fma(w, p, -3_815_970.125_608_648);
        let p = fma(w, p, 112_823.899_592_468_69);
        let p = fma(w, p, -3424.063_154_904_985);
        let p = fma(w, p, 132.319_939_534_434_13);
        let p = fma(w, p, -7.738_876_248_342_585);
        let p = fma(w, p, 0.805_296_265_126_423);
        let p = fma(w, p, -0.193_359_373_777_169_55);
        let p = fma(w, p, 0.187_499_999_999_628_2);
        fma(w, p, 1.0)
    } else {
        let p = fma(w, 0.632_351_46, -0.191_948_6);
        let p = fma(w, p, 0.187_496_57);
        fma(w, p, 1.0)
    }
}

/// x t of order 1.
fn phase_1<F: Float>(w: Value<F>) -> Value<F> {
    if F == f64 {
        let p = fma(w, -138_420_061_853.409_2, 15_226_066_639.104_677);
        let p = fma(w, p, -793_258_021.010_337);
        let p = fma(w, p, 27_178_677.810_363_1);
        let p = fma(w, p, -747_104.628_432_757_8);
        let p = fma(w, p, 20_133.770_820_298_69);
        let p = fma(w, p, -655.443_500_209_779_8);
        let p = fma(w, p, 30.614_968_191_749_032);
        let p = fma(w, p, -2.369_384_623_984_413);
        let p = fma(w, p, 0.370_898_427_367_048_87);
        let p = fma(w, p, -0.164_062_499_996_934_2);
        fma(w, p, 0.374_999_999_999_999_83)
    } else {
        let p = fma(w, -1.727_636_2, 0.365_791_32);
        let p = fma(w, p, -0.164_050_27);
        fma(w, p, 0.375)
    }
}
