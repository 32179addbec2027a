//! The error function's complement and inverse; `erf` is an op.

use super::extended::{exp_of_sum, limited, two_product};

pub fn erfc<T: Float>(x: Value<T>) -> Value<T> {
    if T == f64 { erfc_of(x as f64) as T } else { erfc_of(x as f32) as T }
}

pub fn erfinv<T: Float>(x: Value<T>) -> Value<T> {
    if T == f64 { erfinv_of(x as f64) as T } else { erfinv_of(x as f32) as T }
}

/// For x >= 1/2 e^(-x^2) g(t) / (1 + 2 x), where t = (x - k) / (x + k) maps all positive numbers to [-1, 1] (Shepherd and Laframboise,
/// "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x", 1981), and the square is in two parts; for x <= -1/2 what is missing to 2.
fn erfc_of<F: Float>(x: Value<F>) -> Value<F> {
    // From here on the result is 0.
    let size = limited(abs(x), 0.0, if F == f64 { 28.0 as F } else { 11.0 as F });
    let k = if F == f64 { 4.0 as F } else { 2.0 as F };
    let g = erfc_factor((size - k) / (size + k));
    let (square, rest) = two_product(size, size);
    let far = exp_of_sum(-square, -rest, g / fma(2.0, size, 1.0));
    let is_small = abs(x) < 0.5;
    select(is_small, 1.0 - erf(x), select(x < 0.0, 2.0 - far, far))
}

/// g(t), within 2^-27.2 and 2^-54.3.
fn erfc_factor<F: Float>(t: Value<F>) -> Value<F> {
    if F == f64 {
        let p = fma(t, 1.198_124_172_895_001_8e-9, 1.677_238_877_080_441_5e-9);
        let p = fma(t, p, -1.407_058_080_565_240_6e-8);
        let p = fma(t, p, -1.746_957_443_901_105_6e-8);
        let p = fma(t, p, 1.103_330_283_974_450_9e-7);
        let p = fma(t, p, 7.410_525_286_290_015e-8);
        let p = fma(t, p, -8.259_666_387_836_491e-7);
        let p = fma(t, p, 2.941_618_444_194_804_7e-7);
        let p = fma(t, p, 5.710_196_897_263_522e-6);
        let p = fma(t, p, -1.122_218_301_323_945_1e-5);
        let p = fma(t, p, -2.439_944_228_271_629e-5);
        let p = fma(t, p, 0.000_150_621_723_467_171_57);
        let p = fma(t, p, -0.000_199_256_625_515_746_25);
        let p = fma(t, p, -0.000_757_773_299_239_659_4);
        let p = fma(t, p, 0.005_031_969_964_883_561);
        let p = fma(t, p, -0.016_197_734_056_208_418);
        let p = fma(t, p, 0.037_167_515_538_977_53);
        let p = fma(t, p, -0.066_330_365_812_360_07);
        let p = fma(t, p, 0.093_732_834_998_256_26);
        let p = fma(t, p, -0.101_039_066_036_297_73);
        let p = fma(t, p, 0.068_097_054_254_695_32);
        let p = fma(t, p, 0.015_379_652_102_619_622);
        let p = fma(t, p, -0.139_621_116_840_562_53);
        fma(t, p, 1.232_995_118_625_552_6)
    } else {
        let p = fma(t, 0.000_108_889_944, 0.000_208_857_76);
        let p = fma(t, p, -0.000_440_914_65);
        let p = fma(t, p, -0.001_482_573_3);
        let p = fma(t, p, 0.001_271_507_6);
        let p = fma(t, p, 0.008_743_541);
        let p = fma(t, p, -0.008_034_429_5);
        let p = fma(t, p, -0.054_225_83);
        let p = fma(t, p, 0.164_051_3);
        let p = fma(t, p, -0.166_029_86);
        let p = fma(t, p, -0.092_763_826);
        fma(t, p, 1.276_978_4)
    }
}

/// x p(w) with w = -ln(1 - x^2): for large w, of its root (after Giles, "Approximating the erfinv function", 2010).
fn erfinv_of<F: Float>(x: Value<F>) -> Value<F> {
    let size = abs(x);
    let w = -log((1.0 - size) * (1.0 + size));
    let root = sqrt(w);
    let p = if F == f64 {
        let center = erfinv_center(w - 3.125);
        let middle = erfinv_middle(root - 3.25);
        select(w < 6.25, center, select(w < 16.0, middle, erfinv_tail(root - 5.0)))
    } else {
        select(w < 5.0, erfinv_center(w - 2.5), erfinv_tail(root - 3.0))
    };
    select(size == 1.0, copysign(f32::INFINITY as F, x), x * p)
}

/// For w below 5, and 6.25 for `f64`; within 2^-24.6 and 2^-54.4.
fn erfinv_center<F: Float>(v: Value<F>) -> Value<F> {
    if F == f64 {
        let p = fma(v, 3.375_782_941_162_861_5e-21, -1.009_124_982_446_237_5e-21);
        let p = fma(v, p, -3.575_518_742_094_971e-19);
        let p = fma(v, p, 1.144_414_479_893_597_9e-18);
        let p = fma(v, p, 1.575_983_312_316_763_2e-17);
        let p = fma(v, p, -1.300_391_510_856_340_5e-16);
        let p = fma(v, p, -4.286_648_085_302_793e-17);
        let p = fma(v, p, 6.594_701_209_190_197_4e-15);
        let p = fma(v, p, -3.998_976_955_273_908_3e-14);
        let p = fma(v, p, -8.117_009_800_536_147e-14);
        let p = fma(v, p, 2.630_354_512_803_664_7e-12);
        let p = fma(v, p, -1.297_695_822_262_104e-11);
        let p = fma(v, p, -5.414_238_970_964_841e-11);
        let p = fma(v, p, 1.051_218_398_220_901_7e-9);
        let p = fma(v, p, -4.112_661_978_471_292e-9);
        let p = fma(v, p, -2.907_038_277_453_658_6e-8);
        let p = fma(v, p, 4.234_788_190_786_97e-7);
        let p = fma(v, p, -1.365_469_184_435_092_6e-6);
        let p = fma(v, p, -1.388_252_339_579_255_1e-5);
        let p = fma(v, p, 0.000_186_734_208_024_256_38);
        let p = fma(v, p, -0.000_740_702_534_153_954_4);
        let p = fma(v, p, -0.006_033_670_871_427_754);
        let p = fma(v, p, 0.240_158_182_425_588_26);
        fma(v, p, 1.653_654_562_683_102_7)
    } else {
        let p = fma(v, -8.235_567e-9, 2.821_226_5e-8);
        let p = fma(v, p, 4.599_385_8e-7);
        let p = fma(v, p, -3.523_93e-6);
        let p = fma(v, p, -4.943_454_3e-6);
        let p = fma(v, p, 0.000_218_578_15);
        let p = fma(v, p, -0.001_252_755_6);
        let p = fma(v, p, -0.004_177_669);
        let p = fma(v, p, 0.246_640_28);
        fma(v, p, 1.501_409_4)
    }
}

/// For w from 6.25 to 16; within 2^-52.2.
fn erfinv_middle(v: Value<f64>) -> Value<f64> {
    let p = fma(v, 3.228_963_078_149_532_5e-9, 9.087_638_367_863_798e-8);
    let p = fma(v, p, -2.777_479_401_777_148_7e-7);
    let p = fma(v, p, 1.794_923_781_492_65e-8);
    let p = fma(v, p, 1.505_458_429_489_265_6e-6);
    let p = fma(v, p, -4.013_577_804_807_532e-6);
    let p = fma(v, p, 2.921_897_725_940_002_5e-6);
    let p = fma(v, p, 1.247_515_114_155_617_3e-5);
    let p = fma(v, p, -4.731_771_598_375_023e-5);
    let p = fma(v, p, 6.828_489_766_982_332e-5);
    let p = fma(v, p, 2.403_101_052_308_014_3e-5);
    let p = fma(v, p, -0.000_355_037_528_260_509_06);
    let p = fma(v, p, 0.000_953_289_390_648_328_2);
    let p = fma(v, p, -0.001_688_275_555_307_930_4);
    let p = fma(v, p, 0.002_491_442_095_511_304_6);
    let p = fma(v, p, -0.003_751_208_507_598_343_4);
    let p = fma(v, p, 0.005_370_914_553_602_604);
    let p = fma(v, p, 1.005_258_967_694_159_7);
    fma(v, p, 3.083_885_610_492_220_3)
}

/// Beyond; within 2^-23.4 and 2^-52.6.
fn erfinv_tail<F: Float>(v: Value<F>) -> Value<F> {
    if F == f64 {
        let p = fma(v, 3.216_695_957_406_652e-11, -2.621_045_071_113_791_7e-11);
        let p = fma(v, p, -3.920_635_802_851_630_3e-10);
        let p = fma(v, p, 1.504_633_970_131_244_5e-9);
        let p = fma(v, p, -3.550_648_834_877_661_5e-9);
        let p = fma(v, p, 7.619_707_178_640_8e-9);
        let p = fma(v, p, -1.518_210_765_841_408_3e-8);
        let p = fma(v, p, 2.914_528_576_099_97e-8);
        let p = fma(v, p, -6.759_412_423_074_231e-8);
        let p = fma(v, p, 2.290_057_695_706_729e-7);
        let p = fma(v, p, -9.930_183_174_822_306e-7);
        let p = fma(v, p, 4.526_062_419_677_865e-6);
        let p = fma(v, p, -1.968_177_238_815_959e-5);
        let p = fma(v, p, 7.599_527_704_671_18e-5);
        let p = fma(v, p, -0.000_215_030_119_714_562_62);
        let p = fma(v, p, -0.000_138_719_318_336_927_66);
        let p = fma(v, p, 1.010_300_464_864_543_3);
        fma(v, p, 4.849_906_401_408_584)
    } else {
        let p = fma(v, -0.000_156_884_26, 7.393_003e-5);
        let p = fma(v, p, 0.001_292_862_8);
        let p = fma(v, p, -0.003_645_099_5);
        let p = fma(v, p, 0.005_762_978_5);
        let p = fma(v, p, -0.007_631_418_8);
        let p = fma(v, p, 0.009_435_624);
        let p = fma(v, p, 1.001_675);
        fma(v, p, 2.832_977)
    }
}
