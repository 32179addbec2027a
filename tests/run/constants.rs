//! What is decided when a kernel is compiled: `if` on constants, const generics listed and not, assertions, tuples.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::{Class, check, check_bits};
use crate::value::{FloatValue, Value};

tests![
    branches_on_constants<f16, bf16, f32, f64>,
    values_that_are_not_listed,
    types_that_are_not_listed<u8, i32, f16, f64>,
    constants_of_every_type,
    constants_with_a_type_wrap,
    constants_fit_the_type_that_they_are_given,
    constants_are_rounded_once,
    assertions_name_their_message,
    extents_are_positive,
    tuples_carry_values,
    bounds_of_aranges,
    targets,
];

#[kernel(B = 64, BIAS = [true, false], POWER = [1, 3])]
fn affine<T: Float, const B: usize, const BIAS: bool, const POWER: i32>(x: Ptr<T>, bias: Ptr<T>, y: PtrMut<T>, n: usize) {
    static_assert!(POWER > 0 && B % 32 == 0, "a positive power");
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    let v = load(x + at, mask = mask);
    let mut w = if POWER == 1 { v } else { v * v };
    if BIAS {
        w += load(bias + at, mask = mask);
    } else if POWER > 2 {
        w = -w;
    }
    store(y + at, w, mask = mask);
}

fn branches_on_constants<T: FloatValue>(lab: &mut Lab) {
    let n = 1000;
    // Small integers and halves, on which all of it is exact.
    let mut numbers = || (0..n).map(|_| T::near(lab.below(16) as f64 / 2.0 - 4.0)).collect::<Vec<T>>();
    let (host, bias) = (numbers(), numbers());
    let (x, b) = (lab.input(&host), lab.input(&bias));
    let [mut p, mut q, mut r, mut s] = [(); 4].map(|()| lab.output::<T>(n));
    affine::<T, 64, true, 1>(x.slice(), b.slice(), &mut p.slice(), n).grid(cdiv(n, 64)).launch().unwrap();
    affine::<T, 64, false, 1>(x.slice(), b.slice(), &mut q.slice(), n).grid(cdiv(n, 64)).launch().unwrap();
    affine::<T, 64, true, 3>(x.slice(), b.slice(), &mut r.slice(), n).grid(cdiv(n, 64)).launch().unwrap();
    affine::<T, 64, false, 3>(x.slice(), b.slice(), &mut s.slice(), n).grid(cdiv(n, 64)).launch().unwrap();
    let (v, b) = (|i: usize| host[i].wide(), |i: usize| bias[i].wide());
    check(&p.read(), Class::Rounded, |i| v(i) + b(i));
    check(&q.read(), Class::Rounded, v);
    check(&r.read(), Class::Rounded, |i| v(i) * v(i) + b(i));
    check(&s.read(), Class::Rounded, |i| -v(i) * v(i));
}

/// Constants without a list, which are compiled in this process.
#[kernel]
fn scale<const B: usize, const FACTOR: i32>(x: Ptr<i64>, y: PtrMut<i64>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    store(y + at, load(x + at) * FACTOR + B, mask = at < n);
}

fn values_that_are_not_listed(lab: &mut Lab) {
    fn one<const B: usize, const FACTOR: i32>(lab: &mut Lab) {
        for n in [1, B - 1, B + 1, 1003] {
            let host = lab.values::<i64>(n);
            let x = lab.input(&host);
            let mut y = lab.output::<i64>(n);
            // Twice: the second launch finds what the first one compiled.
            for _ in 0..2 {
                scale::<B, FACTOR>(x.slice(), &mut y.slice(), n).grid(cdiv(n, B)).launch().unwrap();
            }
            check_bits(&y.read(), |i| host[i].wrapping_mul(i64::from(FACTOR)).wrapping_add(B as i64));
        }
    }
    one::<1, 3>(lab);
    one::<2, -1>(lab);
    one::<32, 0>(lab);
    one::<256, { i32::MIN }>(lab);
    one::<2048, { i32::MAX }>(lab);
}

#[kernel(T = [f32], B = 64)]
fn double<T: Number, const B: usize>(x: Ptr<T>, y: PtrMut<T>) {
    let at = program_id(0) * B + arange(0, B);
    let v = load(x + at);
    store(y + at, v + v);
}

fn types_that_are_not_listed<T: Value + galatea::Number>(lab: &mut Lab) {
    let n = 777;
    let host: Vec<T> = (0..n).map(|_| T::near(lab.below(60) as f64)).collect();
    let x = lab.input(&host);
    let (mut y, mut z) = (lab.output::<T>(n), lab.output::<T>(n));
    double::<T, 64>(x.slice(), &mut y.slice()).grid(cdiv(n, 64)).launch().unwrap();
    double::<T, 128>(x.slice(), &mut z.slice()).grid(cdiv(n, 128)).launch().unwrap();
    let (y, z) = (y.read(), z.read());
    for i in 0..n {
        assert!(
            (0..60).any(|whole| host[i] == T::near(f64::from(whole)) && y[i] == T::near(f64::from(2 * whole))),
            "{i}: {:?} of {:?}",
            y[i],
            host[i]
        );
    }
    check_bits(&z, |i| y[i]);
}

#[kernel]
fn constants<const A: bool, const B: i8, const C: u16, const D: i64, const E: u64, const F: isize, const G: u8, const H: u32>(
    y: PtrMut<i64>,
    u: PtrMut<u64>,
) {
    store(y, if A { 1 } else { -1 });
    store(y + 1, B);
    store(y + 2, C);
    store(y + 3, D);
    store(y + 4, F);
    store(y + 5, B as i64 * (C as i64) + (G as i64));
    store(u, E);
    store(u + 1, (E >> 1) + H);
}

fn constants_of_every_type(lab: &mut Lab) {
    let (mut y, mut u) = (lab.output::<i64>(6), lab.output::<u64>(2));
    constants::<true, -128, 65_535, { i64::MIN }, { u64::MAX }, -5, 255, 4_000_000_000>(&mut y.slice(), &mut u.slice())
        .grid(1)
        .launch()
        .unwrap();
    check_bits(&y.read(), |i| [1, -128, 65_535, i64::MIN, -5, -128 * 65_535 + 255][i]);
    check_bits(&u.read(), |i| [u64::MAX, (u64::MAX >> 1) + 4_000_000_000][i]);
    constants::<false, 127, 0, { i64::MAX }, 0, { isize::MAX }, 0, 0>(&mut y.slice(), &mut u.slice()).grid(1).launch().unwrap();
    check_bits(&y.read(), |i| [-1, 127, 0, i64::MAX, i64::MAX, 0][i]);
    check_bits(&u.read(), |_| 0);
}

#[kernel]
fn guarded<const B: usize>(y: PtrMut<f32>) {
    static_assert!(B >= 64, "B is too small");
    store(y + arange(0, B), 1.0);
}

fn assertions_name_their_message(lab: &mut Lab) {
    let mut y = lab.output::<f32>(100);
    guarded::<64>(&mut y.slice()).grid(1).launch().unwrap();
    check_bits(&y.read(), |i| if i < 64 { 1.0 } else { y.before()[i] });
    let mut y = lab.output::<f32>(100);
    let error = guarded::<32>(&mut y.slice()).grid(1).launch().unwrap_err();
    let Error::Compile { kernel: "guarded", parameters, diagnostics } = &error else { panic!("{error}") };
    assert!(parameters.contains("B = 32") && diagnostics.contains("B is too small"), "{error}");
    check_bits(&y.read(), |i| y.before()[i]);
}

#[kernel]
fn narrowed<const B: i64>(y: PtrMut<i64>) {
    let b: u8 = B + 1;
    store(y, (b / 2) as i64);
}

fn constants_fit_the_type_that_they_are_given(lab: &mut Lab) {
    let mut y = lab.output::<i64>(1);
    narrowed::<254>(&mut y.slice()).grid(1).launch().unwrap();
    check_bits(&y.read(), |_| 127);
    for error in [narrowed::<255>(&mut y.slice()).grid(1).launch(), narrowed::<-2>(&mut y.slice()).grid(1).launch()] {
        let error = error.unwrap_err();
        assert!(matches!(&error, Error::Compile { diagnostics, .. } if diagnostics.contains("`B + 1` does not fit `u8`")), "{error}");
    }
}

fn extents_are_positive(lab: &mut Lab) {
    let (x, mut y) = (lab.input(&[1i64]), lab.output::<i64>(1));
    let error = scale::<0, 1>(x.slice(), &mut y.slice(), 1).grid(1).launch().unwrap_err();
    assert!(matches!(&error, Error::Compile { diagnostics, .. } if diagnostics.contains("positive number")), "{error}");
}

#[kernel(B = 64)]
fn tuples<const B: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: i32) {
    let at = program_id(0) * B + arange(0, B);
    let (mut a, mut b) = (load(x + at), 1.0f32);
    let pair = (a, (b, n));
    let (c, (d, _)) = pair;
    for i in 0..n {
        (a, b) = (a + b, d + i as f32);
    }
    let t = {
        let s = a * 2.0;
        (s, b)
    };
    let u = if n > 2 { (t.0, t.1) } else { (c, (pair.1).0) };
    store(y + at, u.0 + u.1);
}

fn tuples_carry_values(lab: &mut Lab) {
    for n in [-1, 0, 2, 3, 9] {
        let host: Vec<f32> = (0..200).map(|_| lab.below(100) as f32).collect();
        let x = lab.input(&host);
        let mut y = lab.output::<f32>(200);
        tuples::<64>(x.slice(), &mut y.slice(), n).grid(4).launch().unwrap();
        check_bits(&y.read(), |i| {
            let (mut a, mut b) = (host[i], 1.0);
            (0..n).for_each(|i| (a, b) = (a + b, 1.0 + i as f32));
            if n > 2 { a * 2.0 + b } else { host[i] + 1.0 }
        });
    }
}

#[kernel]
fn counted<const LOW: isize, const B: isize>(y: PtrMut<i64>) {
    let numbers = arange(LOW, LOW + B);
    store(y + arange(0, B), numbers * numbers - numbers);
    store(y + (numbers - LOW + B), select(numbers < 0, -1, 1));
}

fn bounds_of_aranges(lab: &mut Lab) {
    fn one<const LOW: isize, const B: isize>(lab: &mut Lab) {
        let len = B as usize;
        let mut y = lab.output::<i64>(2 * len);
        counted::<LOW, B>(&mut y.slice()).grid(1).launch().unwrap();
        check_bits(&y.read(), |i| {
            let number = (i % len) as i64 + LOW as i64;
            if i < len {
                number.wrapping_mul(number) - number
            } else if number < 0 {
                -1
            } else {
                1
            }
        });
    }
    one::<0, 1>(lab);
    one::<-3, 2>(lab);
    one::<-500, 1024>(lab);
    one::<1000, 64>(lab);
    one::<4_000_000_000, 128>(lab);
}

/// A branch that another target takes need not be possible here: no tile has -1 elements.
#[kernel(N = 8)]
fn of_target<const N: usize>(y: PtrMut<i64>) {
    let extra = if target() >= 90 { 3 } else { 0 };
    if target() == 0 {
        store(y + arange(0, N - target()), full([N - target()], 7i64));
    } else {
        store(y + arange(0, target() / 10), arange(0, target() / 10) + extra);
    }
    store(y + 20, target());
}

fn targets(lab: &mut Lab) {
    let mut y = lab.output::<i64>(21);
    let before = y.before().to_vec();
    of_target::<8>(&mut y.slice()).grid(1).launch().unwrap();
    let want = lab.device.compute_capability().map_or(0, |(major, minor)| if (major, minor) == (9, 0) { 90 } else { 80 });
    let written = if want == 0 { 8 } else { want / 10 };
    let extra = if want >= 90 { 3 } else { 0 };
    check_bits(&y.read(), |i| match i as i64 {
        20 => want,
        i if i < written => {
            if want == 0 {
                7
            } else {
                i + extra
            }
        }
        _ => before[i],
    });
}

/// One formula in a type: sums, products, differences and shifts that leave it, compared, widened and halved.
#[device]
fn mixed<T: Int>(a: T, b: T) -> i64 {
    let sum = a + b;
    let product = sum * a;
    let shifted = (product - 7 as T) << 3 as T;
    let larger = if shifted > a { 1 } else { 0 };
    (sum / 3 as T) as i64 + 1000 * (product as i64) + 1_000_000 * (min(shifted, b) as i64) + larger
}

macro_rules! typed {
    ($($name:ident: $ty:ident = $a:expr, $b:expr;)*) => {
        mod typed {
            use galatea::prelude::*;
            $(
                #[kernel]
                pub(super) fn $name<const A: $ty, const B: $ty>(values: Ptr<$ty>, y: PtrMut<i64>) {
                    let a: $ty = A;
                    let b: $ty = B;
                    store(y, super::mixed(a, b));
                    store(y + 1, super::mixed(load(values), load(values + 1)));
                    const OWN: $ty = B;
                    store(y + 2, ((OWN + OWN) / 2) as i64);
                    store(y + 3, (-1 - a as i64) as $ty as i64);
                }
            )*
        }
        /// What is computed of constants is what is computed of values.
        fn constants_with_a_type_wrap(lab: &mut Lab) {$(
            for (a, b) in [($a, $b), ($b, $a)] {
                let x = lab.input(&[a, b]);
                let mut y = lab.output::<i64>(4);
                if a == $a {
                    typed::$name::<{ $a }, { $b }>(x.slice(), &mut y.slice()).grid(1).launch().unwrap();
                } else {
                    typed::$name::<{ $b }, { $a }>(x.slice(), &mut y.slice()).grid(1).launch().unwrap();
                }
                let found = y.read();
                assert_eq!(found[0], found[1], "{a} and {b}");
                let twice = b.wrapping_add(b) / 2;
                assert_eq!(found[2..], [twice as i64, (-1 - a as i64) as $ty as i64], "{a} and {b}");
            }
        )*}
    };
}
typed! {
    of_u8: u8 = 200u8, 250u8;
    of_i8: i8 = 100i8, -128i8;
    of_u16: u16 = 65_000u16, 3u16;
    of_i16: i16 = -32_768i16, 32_000i16;
    of_u32: u32 = 0x9e37_79b9u32, 5u32;
    of_i32: i32 = 2_147_483_647i32, -7i32;
    of_u64: u64 = 0xffff_ffff_ffff_fff0u64, 0x9e37_79b9_7f4a_7c15u64;
}

/// Constants, and the same numbers as values.
#[kernel]
fn rounded<const N: i64>(halves: PtrMut<f16>, floats: PtrMut<f32>, x: f64, n: i64) {
    let half: f16 = 1.000_488_281_250_001;
    store(halves, half);
    store(halves + 1, x as f16);
    store(floats, N as f32);
    store(floats + 1, n as f32);
    let float: f32 = 1_152_921_573_326_323_713;
    store(floats + 2, float);
}

fn constants_are_rounded_once(lab: &mut Lab) {
    // Just above the middle of two numbers: by less than an `f64`, or its upper half, can tell.
    const ABOVE: i64 = (1 << 60) + (1 << 36) + 1;
    let (mut halves, mut floats) = (lab.output::<f16>(2), lab.output::<f32>(3));
    rounded::<ABOVE>(&mut halves.slice(), &mut floats.slice(), 1.000_488_281_250_001, ABOVE).grid(1).launch().unwrap();
    check_bits(&halves.read(), |_| f16::from_bits(0x3c01));
    check_bits(&floats.read(), |_| ABOVE as f32);
}
