//! Compile-time decisions: `if` on constants, const generics with listed and other values, assertions, tuples.

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
    constants_by_if<f32, f16>,
    constants_of_types,
    constants_of_the_module,
    constants_beside_device_functions,
    constants_of_an_autotuned_kernel,
    float_constants_of_configurations,
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
        /// Arithmetic on constants gives the same results as arithmetic on values.
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

/// Extents, bounds and numbers that an `if` or a `match` on constants chooses. Only the chosen side needs a value.
#[kernel(B = [8, 64], MODE = [0, 1, 2])]
fn by_if<T: Float, const B: usize, const MODE: i32>(x: Ptr<T>, y: PtrMut<T>, z: PtrMut<i64>) {
    const WIDE: bool = if MODE == 0 { B > 16 } else { false };
    const H: usize = if WIDE || B < 16 && MODE != 2 {
        B
    } else if !(MODE == 1) {
        B / 2
    } else {
        B / 4
    };
    const SHARE: i64 = if MODE > 0 { 12 / MODE as i64 } else { -1 };
    let scale = match MODE {
        0 => 1,
        1 if WIDE => 2,
        _ => 0.5,
    };
    let at = arange(0, H);
    // `scale` is a float on every side: a quarter of it is none of an integer.
    store(y + at, load(x + at) * (scale / 4));
    let offset: u8 = if WIDE { 200u8 } else { B + 1 };
    store(z, H + SHARE * 1000 + offset as i64 * 100_000);
}

fn constants_by_if<T: FloatValue>(lab: &mut Lab) {
    fn one<T: FloatValue, const B: usize, const MODE: i32>(lab: &mut Lab) {
        let host: Vec<T> = (0..B).map(|_| T::near(lab.below(64) as f64)).collect();
        let x = lab.input(&host);
        let (mut y, mut z) = (lab.output::<T>(B), lab.output::<i64>(1));
        by_if::<T, B, MODE>(x.slice(), &mut y.slice(), &mut z.slice()).grid(1).launch().unwrap();
        let wide = MODE == 0 && B > 16;
        let half = match () {
            () if wide || B < 16 && MODE != 2 => B,
            () if MODE != 1 => B / 2,
            () => B / 4,
        };
        let before = y.before().to_vec();
        let scale = if MODE == 0 { 1.0 } else { 0.5 };
        check_bits(&y.read(), |i| if i < half { T::near(host[i].wide() * scale / 4.0) } else { before[i] });
        let share = 12i64.checked_div(i64::from(MODE)).unwrap_or(-1);
        check_bits(&z.read(), |_| half as i64 + share * 1000 + if wide { 200 } else { B as i64 + 1 } * 100_000);
    }
    one::<T, 8, 0>(lab);
    one::<T, 8, 1>(lab);
    one::<T, 8, 2>(lab);
    one::<T, 64, 0>(lab);
    one::<T, 64, 1>(lab);
    one::<T, 64, 2>(lab);
    // Not listed.
    one::<T, 16, 0>(lab);
    one::<T, 128, 3>(lab);
}

/// The constants of a type parameter in a device function. The kernel below uses them directly.
#[device]
fn limits<I: Int>(y: PtrMut<I>, bits: PtrMut<i64>) {
    store(y, I::MIN);
    store(y + 1, I::MAX);
    store(bits, I::BITS);
    store(bits + arange(1, I::BITS), I::BITS - arange(1, I::BITS));
}

#[kernel(I = [i8, u32], T = [f16, f32], N = [i16])]
fn of_types<I: Int, T: Float, N: Number>(i: PtrMut<I>, t: PtrMut<T>, n: PtrMut<N>, bits: PtrMut<i64>) {
    limits(i, bits);
    store(i + 2, I::MAX - 1);
    store(i + 3, I::MIN + 1);
    store(t, T::MAX);
    store(t + 1, T::MIN);
    store(t + 2, T::EPSILON);
    store(t + 3, T::MIN_POSITIVE * 2.0);
    store(t + 4 + arange(0, 2), select(arange(0, 2) == 0, T::INFINITY, T::NAN));
    store(n, if N == f64 { 0 } else { N::MAX });
    store(n + 1, N::MIN);
}

fn constants_of_types(lab: &mut Lab) {
    macro_rules! check {
        ($i:ty, $t:ty, $n:ty) => {{
            let (mut i, mut t, mut n) = (lab.output::<$i>(4), lab.output::<$t>(5), lab.output::<$n>(2));
            let mut bits = lab.output::<i64>(64);
            of_types::<$i, $t, $n>(&mut i.slice(), &mut t.slice(), &mut n.slice(), &mut bits.slice()).grid(1).launch().unwrap();
            check_bits(&i.read(), |at| [<$i>::MIN, <$i>::MAX, <$i>::MAX - 1, <$i>::MIN + 1][at]);
            let smallest = <$t>::near(2.0 * <$t>::MIN_POSITIVE.wide());
            check_bits(&t.read(), |at| [<$t>::MAX, <$t>::MIN, <$t>::EPSILON, smallest, <$t>::INFINITY][at]);
            check_bits(&n.read(), |at| [<$n>::MAX, <$n>::MIN][at]);
            let before = bits.before().to_vec();
            check_bits(&bits.read(), |at| match at as i64 {
                0 => <$i>::BITS.into(),
                at if at < <$i>::BITS.into() => i64::from(<$i>::BITS) - at,
                at => before[at as usize],
            });
        }};
    }
    check!(i8, f16, i16);
    check!(u32, f32, i16);
    check!(i64, bf16, f32);
    check!(u64, f64, bf16);
    check!(u16, f32, u8);
}

const SCALE: f32 = 2.5;
const OFFSET: u32 = 3;
const SHIFT: i32 = -2;
const LEVEL: u8 = 200;
const DEBUG: bool = SCALE > 2.0;
const HALF: f16 = f16::from_bits(0x3555);

mod config {
    pub(super) const FILL: f32 = -0.0;
    pub(super) const GAIN: f64 = 1.0 / 3.0;
    pub(super) static STEPS: usize = 5;

    pub(super) struct Limits;
    impl Limits {
        pub(super) const LARGEST: i64 = i64::MAX;
    }
}
use config::Limits;

/// Constants of this module and others, as operands, offsets, bounds and conditions.
#[kernel(N = 64)]
fn of_the_module<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, h: PtrMut<f16>, z: PtrMut<i64>, n: usize) {
    let at = arange(0, N);
    let v = load(x + at, mask = at < n, other = config::FILL);
    store(y + at, v * SCALE - 1.0 / SCALE);
    store(h + at, (v as f16) * HALF);
    store(z + at + OFFSET, at * SHIFT);
    store(z, LEVEL);
    if DEBUG && n > 3 {
        store(z + 1, Limits::LARGEST);
    }
    let mut acc = 0;
    for i in 0..config::STEPS {
        acc += i;
    }
    store(z + 2, acc + (3.0 * config::GAIN) as i64);
    store(y + N, SCALE * config::GAIN as f32);
}

fn constants_of_the_module(lab: &mut Lab) {
    let n = 50;
    let host: Vec<f32> = (0..64).map(|_| lab.below(100) as f32).collect();
    let x = lab.input(&host);
    let (mut y, mut h, mut z) = (lab.output::<f32>(65), lab.output::<f16>(64), lab.output::<i64>(70));
    of_the_module::<64>(x.slice(), &mut y.slice(), &mut h.slice(), &mut z.slice(), n).grid(1).launch().unwrap();
    let before = z.before().to_vec();
    let v = |i: usize| if i < n { host[i] } else { config::FILL };
    check_bits(&y.read(), |i| if i < 64 { v(i) * SCALE - 1.0 / SCALE } else { SCALE * config::GAIN as f32 });
    check_bits(&h.read(), |i| f16::from_f32(f16::from_f32(v(i)).to_f32() * HALF.to_f32()));
    check_bits(&z.read(), |i| match i {
        0 => 200,
        1 => Limits::LARGEST,
        2 => 10 + 1,
        3..67 => (i as i64 - 3) * -2,
        _ => before[i],
    });
}

#[device]
fn halved(x: Value<f32>) -> Value<f32> {
    x * 0.5
}

/// The sources of device functions reach a kernel after its launcher has been written.
#[kernel(N = 8)]
fn beside_device_functions<const N: usize>(y: PtrMut<f32>, z: PtrMut<i64>) {
    store(y + arange(0, N), halved(SCALE));
    store(z + OFFSET, SHIFT);
}

fn constants_beside_device_functions(lab: &mut Lab) {
    let (mut y, mut z) = (lab.output::<f32>(8), lab.output::<i64>(4));
    let before = z.before().to_vec();
    beside_device_functions::<8>(&mut y.slice(), &mut z.slice()).grid(1).launch().unwrap();
    check_bits(&y.read(), |_| SCALE * 0.5);
    check_bits(&z.read(), |i| if i == 3 { -2 } else { before[i] });
}

#[autotune(configs = [Config { N: 32 }, Config { N: 64 }], key = [n])]
#[kernel(heuristics(EVEN = n.is_multiple_of(N)))]
fn tuned<const N: usize, const EVEN: bool>(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let at = program_id(0) * N + arange(0, N);
    let v = if EVEN { load(x + at) } else { load(x + at, mask = at < n) };
    store(y + at, v * SCALE, mask = at < n);
}

fn constants_of_an_autotuned_kernel(lab: &mut Lab) {
    for n in [100, 128] {
        let host: Vec<f32> = (0..n).map(|_| lab.below(100) as f32).collect();
        let x = lab.input(&host);
        let mut y = lab.output::<f32>(n);
        tuned(x.slice(), &mut y.slice(), n).grid(|config| cdiv(n, config.N)).launch().unwrap();
        check_bits(&y.read(), |i| host[i] * SCALE);
    }
}

#[autotune(
    configs = product(N = [32, 64], SCALE = [0.1, 1.0 / 3.0, -2]) if SCALE < 0.1 || N == 64,
    prune = |config| config.SCALE != if n > 100 { 0.1 } else { -2.0 },
)]
#[kernel(heuristics(WIDE = if n > 100 { 1e-300 } else { -0.0 }))]
fn scaled<T: Float, const N: usize, const SCALE: f32, const WIDE: f64>(x: Ptr<T>, y: PtrMut<f32>, z: PtrMut<f64>, n: usize) {
    let at = program_id(0) * N + arange(0, N);
    let factor = if SCALE > 0.0 { SCALE } else { -SCALE / 2.0 };
    store(y + at, load(x + at, mask = at < n) as f32 * factor, mask = at < n);
    if program_id(0) == 0 {
        store(z, WIDE);
    }
}

fn float_constants_of_configurations(lab: &mut Lab) {
    for (n, factor, wide) in [(100, 1.0, -0.0f64), (128, 0.1f32, 1e-300)] {
        let host: Vec<f32> = (0..n).map(|_| lab.below(100) as f32).collect();
        let x = lab.input(&host);
        let (mut y, mut z) = (lab.output::<f32>(n), lab.output::<f64>(1));
        scaled::<f32>(x.slice(), &mut y.slice(), &mut z.slice(), n).grid(|config| cdiv(n, config.N)).launch().unwrap();
        check_bits(&y.read(), |i| host[i] * factor);
        check_bits(&z.read(), |_| wide);
    }
}
