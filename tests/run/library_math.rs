//! The mathematical functions of the library, in kernels, against another library's in `f64`. How exact they are is measured in
//! `kernel-lang/tests/math`; here is seen that they say the same on every device and for every type.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::{Class, check, check_bits};
use crate::value::FloatValue;

/// Tests of functions of one number: the builtin, how far it may be from its reference (of `tgamma` that is the less exact of the two), and the
/// interval that the arguments are from.
macro_rules! functions {
    ($($name:ident: $kernel:ident, $class:expr, $reference:expr, $low:expr, $high:expr;)*) => {
        $(
            #[kernel]
            fn $kernel<T: Float, const B: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
                let at = program_id(0) * B + arange(0, B);
                let mask = at < n;
                store(y + at, $name(load(x + at, mask = mask)), mask = mask);
            }

            fn $name<T: FloatValue>(lab: &mut Lab) {
                for n in [1, 127, 1501] {
                    let mut host = lab.numbers::<T>(n, $low, $high);
                    let specials = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1.0, -1.0, 0.5];
                    host.iter_mut().skip(1).zip(specials).for_each(|(value, special)| *value = T::near(special));
                    let (x, mut y) = (lab.input(&host), lab.output::<T>(n));
                    $kernel::<T, 128>(x.slice(), &mut y.slice(), n).grid(cdiv(n, 128)).launch().unwrap();
                    let reference: fn(f64) -> f64 = $reference;
                    check(&y.read(), $class, |i| reference(host[i].wide()));
                }
            }
        )*
        tests![
            $($name<f16, bf16, f32, f64>,)*
            pow<f16, bf16, f32, f64>,
            hypot<f16, bf16, f32, f64>,
            atan2<f16, bf16, f32, f64>,
            fmod<f16, bf16, f32, f64>,
            kinds<f16, bf16, f32, f64>,
            approximations<f16, bf16, f32, f64>,
            bessel<f16, bf16, f32, f64>,
            matrices,
        ];
    };
}

functions! {
    exp10: exp10_kernel, Class::Math, libm::exp10, -9.0, 9.0;
    expm1: expm1_kernel, Class::Math, libm::expm1, -9.0, 9.0;
    log1p: log1p_kernel, Class::Math, libm::log1p, -1.5, 50.0;
    log10: log10_kernel, Class::Math, libm::log10, -1.0, 50.0;
    cbrt: cbrt_kernel, Class::Math, libm::cbrt, -100.0, 100.0;
    asin: asin_kernel, Class::Math, libm::asin, -1.1, 1.1;
    acos: acos_kernel, Class::Math, libm::acos, -1.1, 1.1;
    atan: atan_kernel, Class::Math, libm::atan, -20.0, 20.0;
    sinh: sinh_kernel, Class::Math, libm::sinh, -12.0, 12.0;
    cosh: cosh_kernel, Class::Math, libm::cosh, -12.0, 12.0;
    asinh: asinh_kernel, Class::Math, libm::asinh, -500.0, 500.0;
    acosh: acosh_kernel, Class::Math, |x| if x < 1.0 { f64::NAN } else { libm::acosh(x) }, 0.5, 500.0;
    erfc: erfc_kernel, Class::Math, libm::erfc, -4.0, 9.0;
    erfinv: erfinv_kernel, Class::Math, erfinv_of, -1.1, 1.1;
    lgamma: lgamma_kernel, Class::Math, libm::lgamma, 0.01, 50.0;
    tgamma: tgamma_kernel, Class::Chain(20), libm::tgamma, 0.1, 30.0;
    atanh: atanh_kernel, Class::Math, libm::atanh, -1.1, 1.1;
}

/// The root of erf(y) = x by bisection.
fn erfinv_of(x: f64) -> f64 {
    if x == 0.0 || x.abs() == 1.0 {
        return if x == 0.0 { x } else { f64::INFINITY.copysign(x) };
    }
    if x.is_nan() || x.abs() > 1.0 {
        return f64::NAN;
    }
    let (mut low, mut high) = (0.0, 6.0);
    for _ in 0..200 {
        let middle: f64 = 0.5 * (low + high);
        let is_below = if x.abs() < 0.5 { libm::erf(middle) < x.abs() } else { libm::erfc(middle) > 1.0 - x.abs() };
        (low, high) = if is_below { (middle, high) } else { (low, middle) };
    }
    high.copysign(x)
}

/// Tests of functions of two numbers.
macro_rules! of_two {
    ($($name:ident: $kernel:ident, $reference:expr, $class:expr;)*) => {$(
        #[kernel]
        fn $kernel<T: Float, const B: usize>(x: Ptr<T>, y: Ptr<T>, z: PtrMut<T>, n: usize) {
            let at = program_id(0) * B + arange(0, B);
            let mask = at < n;
            store(z + at, $name(load(x + at, mask = mask), load(y + at, mask = mask)), mask = mask);
        }

        fn $name<T: FloatValue>(lab: &mut Lab) {
            for n in [1, 127, 1501] {
                let mut a = lab.numbers::<T>(n, -6.0, 6.0);
                let mut b = lab.numbers::<T>(n, -6.0, 6.0);
                let specials = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1.0, -1.0, 2.0, 3.0];
                for (i, special) in specials.iter().flat_map(|x| specials.iter().map(move |y| (*x, *y))).enumerate() {
                    if n > specials.len() * specials.len() {
                        (a[i], b[i]) = (T::near(special.0), T::near(special.1));
                    }
                }
                let (x, y, mut z) = (lab.input(&a), lab.input(&b), lab.output::<T>(n));
                $kernel::<T, 128>(x.slice(), y.slice(), &mut z.slice(), n).grid(cdiv(n, 128)).launch().unwrap();
                let reference: fn(f64, f64) -> f64 = $reference;
                check(&z.read(), $class, |i| reference(a[i].wide(), b[i].wide()));
            }
        }
    )*};
}

of_two! {
    pow: pow_kernel, libm::pow, Class::Math;
    hypot: hypot_kernel, libm::hypot, Class::Math;
    atan2: atan2_kernel, libm::atan2, Class::Math;
    fmod: fmod_kernel, libm::fmod, Class::Rounded;
}

#[kernel]
fn kinds_kernel<T: Float, const B: usize>(x: Ptr<T>, nan: PtrMut<bool>, infinite: PtrMut<bool>, finite: PtrMut<bool>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    let v = load(x + at, mask = mask);
    store(nan + at, isnan(v), mask = mask);
    store(infinite + at, v.isinf(), mask = mask);
    store(finite + at, isfinite(v), mask = mask);
}

fn kinds<T: FloatValue>(lab: &mut Lab) {
    let n = 2001;
    let host = lab.values::<T>(n);
    let x = lab.input(&host);
    let [mut nan, mut infinite, mut finite] = [(); 3].map(|()| lab.output::<bool>(n));
    kinds_kernel::<T, 256>(x.slice(), &mut nan.slice(), &mut infinite.slice(), &mut finite.slice(), n).grid(cdiv(n, 256)).launch().unwrap();
    check_bits(&nan.read(), |i| host[i].wide().is_nan());
    check_bits(&infinite.read(), |i| host[i].wide().is_infinite());
    check_bits(&finite.read(), |i| host[i].wide().is_finite());
}

#[kernel]
fn approximations_kernel<T: Float, const B: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    let v = load(x + at, mask = mask);
    let size = abs(v);
    store(y + at, fast_exp(v), mask = mask);
    store(y + n + at, fast_exp10(v), mask = mask);
    store(y + 2 * n + at, fast_log(size), mask = mask);
    store(y + 3 * n + at, fast_log10(size), mask = mask);
    store(y + 4 * n + at, fast_pow(size, 1.5), mask = mask);
    store(y + 5 * n + at, fast_tan(v), mask = mask);
    store(y + 6 * n + at, fast_sigmoid(v), mask = mask);
}

/// A reference, and the absolute and the relative error allowed.
type Approximation = (fn(f64) -> f64, f64, f64);

/// To the bounds of the PTX ISA, of `f32` at least, and a rounding or two of the type.
fn approximations<T: FloatValue>(lab: &mut Lab) {
    let n = 1001;
    let host = lab.numbers::<T>(n, -1.4, 1.4);
    let (x, mut y) = (lab.input(&host), lab.output::<T>(7 * n));
    approximations_kernel::<T, 128>(x.slice(), &mut y.slice(), n).grid(cdiv(n, 128)).launch().unwrap();
    let got = y.read();
    let functions: [Approximation; 7] = [
        (f64::exp, 0.0, 1e-6),
        (libm::exp10, 0.0, 1e-6),
        (|x| x.abs().ln(), 3e-7, 3e-7),
        (|x| x.abs().log10(), 2e-7, 4e-7),
        (|x| x.abs().powf(1.5), 0.0, 2e-6),
        (f64::tan, 1e-6, 2e-5),
        (|x| 1.0 / (1.0 + (-x).exp()), 2.5e-4, 0.0),
    ];
    for (k, (reference, absolute, relative)) in functions.into_iter().enumerate() {
        for i in 0..n {
            let (got, want) = (got[k * n + i].wide(), reference(host[i].wide()));
            let smallest = 2f64.powi(T::MIN_EXPONENT - T::DIGITS + 1);
            let allowed = absolute + smallest + (relative + 2f64.powi(1 - T::DIGITS)) * want.abs();
            assert!(got == want || (got - want).abs() <= allowed, "function {k} of {:?} is {got}, not {want}", host[i]);
        }
    }
}

#[kernel]
fn bessel_kernel<T: Float, const B: usize>(x: Ptr<T>, a: PtrMut<T>, b: PtrMut<T>, c: PtrMut<T>, d: PtrMut<T>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    let v = load(x + at, mask = mask);
    store(a + at, j0(v), mask = mask);
    store(b + at, j1(v), mask = mask);
    store(c + at, y0(v), mask = mask);
    store(d + at, y1(v), mask = mask);
}

/// They have zeros everywhere: to some units in the last place of the larger of the result and 1.
fn bessel<T: FloatValue>(lab: &mut Lab) {
    let n = 1501;
    let mut host = lab.numbers::<T>(n, -3.0, 40.0);
    let specials = [f64::NAN, 0.0, -0.0, 1e-3, 8.0];
    host.iter_mut().zip(specials).for_each(|(value, special)| *value = T::near(special));
    let x = lab.input(&host);
    let [mut a, mut b, mut c, mut d] = [(); 4].map(|()| lab.output::<T>(n));
    bessel_kernel::<T, 128>(x.slice(), &mut a.slice(), &mut b.slice(), &mut c.slice(), &mut d.slice(), n)
        .grid(cdiv(n, 128))
        .launch()
        .unwrap();
    let references: [fn(f64) -> f64; 4] = [libm::j0, libm::j1, libm::y0, libm::y1];
    for (got, reference) in [a, b, c, d].iter().map(crate::lab::Output::read).zip(references) {
        for i in 0..n {
            let (got, want) = (got[i].wide(), reference(host[i].wide()));
            let allowed = 16.0 * 2f64.powi(1 - T::DIGITS) * want.abs().max(1.0);
            let fits = got == want || (got.is_nan() && want.is_nan()) || (got - want).abs() <= allowed;
            assert!(fits, "of {:?} it is {got}, not {want}", host[i]);
        }
    }
}

#[kernel]
fn matrices_kernel<const M: usize, const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, exponent: f32) {
    let at = arange(0, M)[(.., None)] * N + arange(0, N)[(None, ..)];
    store(y + at, pow(load(x + at), exponent) + log1p(exponent));
}

/// A tile of two axes, and scalars.
fn matrices(lab: &mut Lab) {
    let host = lab.numbers::<f32>(512, 0.1, 9.0);
    let (x, mut y) = (lab.input(&host), lab.output::<f32>(512));
    matrices_kernel::<16, 32>(x.slice(), &mut y.slice(), 2.5).grid(1).launch().unwrap();
    check(&y.read(), Class::Math, |i| libm::pow(f64::from(host[i]), 2.5) + libm::log1p(2.5));
}
