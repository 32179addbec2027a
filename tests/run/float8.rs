//! Floats of 8 bits: what is stored, loaded and cast, to the bit, against the specification's tables.

use galatea::prelude::*;
use galatea::{Element, Number};

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::check_bits;
use crate::value::Value;

tests![
    every_value<f8e4m3, f8e5m2>,
    every_f16<f8e4m3, f8e5m2>,
    from_f32<f8e4m3, f8e5m2>,
    from_f64<f8e4m3, f8e5m2>,
    from_integers<f8e4m3, f8e5m2>,
    copies<f8e4m3, f8e5m2>,
    comparisons<f8e4m3, f8e5m2>,
    sorted<f8e4m3, f8e5m2>,
    scales_and_rounds,
    constants_and_scalars,
];

/// A float of 8 bits, as the specification describes it.
trait Float8: Value {
    const FRACTION_BITS: u32;
    const BIAS: i32;
    const HAS_INFINITY: bool;
    const LARGEST: f64;

    fn worth(bits: u8) -> f64 {
        let scale = f64::from(1u32 << Self::FRACTION_BITS);
        let (exponent, fraction) =
            (i32::from(bits & 0x7f) >> Self::FRACTION_BITS, f64::from(bits & ((1 << Self::FRACTION_BITS) - 1)) / scale);
        let magnitude = match exponent {
            0 => fraction * 2f64.powi(1 - Self::BIAS),
            31 if Self::HAS_INFINITY && fraction == 0.0 => f64::INFINITY,
            31 if Self::HAS_INFINITY => f64::NAN,
            15 if !Self::HAS_INFINITY && fraction == 0.875 => f64::NAN,
            _ => (1.0 + fraction) * 2f64.powi(exponent - Self::BIAS),
        };
        if bits >> 7 == 1 { -magnitude } else { magnitude }
    }

    /// The largest of its sign for what is too large; else the one of its two neighbours that is nearer, of both the even one.
    fn nearest(value: f64) -> u8 {
        if value.is_nan() {
            return 0x7f;
        }
        let sign = if value.is_sign_negative() { 0x80 } else { 0 };
        let size = value.abs().min(Self::LARGEST);
        let above = (0..0x80u8).find(|bits| Self::worth(*bits) >= size).unwrap();
        let below = if Self::worth(above) == size { above } else { above - 1 };
        let (to_above, to_below) = (Self::worth(above) - size, size - Self::worth(below));
        let nearer = if to_above < to_below || to_above == to_below && above % 2 == 0 { above } else { below };
        nearer | sign
    }
}

impl Float8 for f8e4m3 {
    const FRACTION_BITS: u32 = 3;
    const BIAS: i32 = 7;
    const HAS_INFINITY: bool = false;
    const LARGEST: f64 = 448.0;
}

impl Float8 for f8e5m2 {
    const FRACTION_BITS: u32 = 2;
    const BIAS: i32 = 15;
    const HAS_INFINITY: bool = true;
    const LARGEST: f64 = 57344.0;
}

/// Every element there is, in an order that no vector access is aligned with, each several times.
fn all<T: Float8>() -> Vec<T> {
    (0..1021).map(|i| T::from_bits(i * 7 % 256)).collect()
}

fn byte<T: Element>(value: T) -> u8 {
    value.bits() as u8
}

#[kernel(B = 256)]
fn widen<T: Element, const B: usize>(
    x: Ptr<T>,
    half: PtrMut<f16>,
    brain: PtrMut<bf16>,
    single: PtrMut<f32>,
    double: PtrMut<f64>,
    short: PtrMut<i16>,
    byte: PtrMut<u8>,
    non_zero: PtrMut<bool>,
    n: usize,
) {
    let at = program_id(0) * B + arange(0, B);
    let v = load(x + at, mask = at < n);
    store(half + at, v as f16);
    store(brain + at, v as bf16);
    store(single + at, v as f32);
    store(double + at, v as f64);
    store(short + at, v as i16);
    store(byte + at, v as u8);
    store(non_zero + at, v as bool);
}

fn every_value<T: Float8>(lab: &mut Lab) {
    let host = all::<T>();
    let n = host.len();
    let x = lab.input(&host);
    let (mut half, mut brain, mut single, mut double) = (lab.output(n), lab.output(n), lab.output(n), lab.output(n));
    let (mut short, mut small, mut non_zero) = (lab.output(n), lab.output(n), lab.output(n));
    widen::<T, 256>(
        x.slice(),
        &mut half.slice(),
        &mut brain.slice(),
        &mut single.slice(),
        &mut double.slice(),
        &mut short.slice(),
        &mut small.slice(),
        &mut non_zero.slice(),
        n,
    )
    .grid(cdiv(n, 256))
    .launch()
    .unwrap();
    let worth = |i: usize| T::worth(byte(host[i]));
    check_same(&half.read(), |i| f16::from_f64(worth(i)));
    check_same(&brain.read(), |i| bf16::from_f64(worth(i)));
    check_same(&single.read(), |i| worth(i) as f32);
    check_same(&double.read(), worth);
    check_bits(&short.read(), |i| worth(i) as i16);
    check_bits(&small.read(), |i| worth(i) as u8);
    check_bits(&non_zero.read(), |i| worth(i) != 0.0);
}

/// Equal bits; a NaN is one whatever its bits.
#[track_caller]
fn check_same<T: Element + Into<f64>>(got: &[T], want: impl Fn(usize) -> T) {
    for (i, got) in got.iter().enumerate() {
        let want = want(i);
        assert!(got.bits() == want.bits() || (*got).into().is_nan() && want.into().is_nan(), "element {i} is {got:?}, not {want:?}");
    }
}

#[kernel(B = 512)]
fn narrow<S: Number, T: Element, const B: usize>(x: Ptr<S>, y: PtrMut<T>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    store(y + at, load(x + at, mask = mask) as T, mask = mask);
}

fn check_narrow<S: Value + Number, T: Float8>(lab: &mut Lab, host: &[S], exact: impl Fn(S) -> f64) {
    let n = host.len();
    let (x, mut y) = (lab.input(host), lab.output::<T>(n));
    narrow::<S, T, 512>(x.slice(), &mut y.slice(), n).grid(cdiv(n, 512)).launch().unwrap();
    for (i, got) in y.read().into_iter().enumerate() {
        let want = T::nearest(exact(host[i]));
        assert_eq!(byte(got), want, "element {i}: {:?} became {got:?}", host[i]);
    }
}

fn every_f16<T: Float8>(lab: &mut Lab) {
    let host: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
    check_narrow::<f16, T>(lab, &host, f64::from);
    let host: Vec<bf16> = (0..=u16::MAX).map(bf16::from_bits).collect();
    check_narrow::<bf16, T>(lab, &host, f64::from);
}

/// Every middle of two neighbours and what lies beside it, among numbers of any bits.
fn from_f32<T: Float8>(lab: &mut Lab) {
    let mut host = lab.values::<f32>(3001);
    for bits in 0..0x7fu8 {
        let middle = ((T::worth(bits) + T::worth(bits + 1)) / 2.0) as f32;
        host.extend([middle, middle.next_up(), middle.next_down(), -middle, -middle.next_up(), -middle.next_down()]);
    }
    check_narrow::<f32, T>(lab, &host, f64::from);
}

/// Where rounding to `f32` first would hide which side of the middle a number is on.
fn from_f64<T: Float8>(lab: &mut Lab) {
    let mut host = lab.values::<f64>(1001);
    for bits in 0..0x7fu8 {
        let middle = (T::worth(bits) + T::worth(bits + 1)) / 2.0;
        host.extend([middle, middle.next_up(), middle.next_down(), -middle, -middle.next_up(), -middle.next_down()]);
    }
    check_narrow::<f64, T>(lab, &host, |value| value);
}

fn from_integers<T: Float8>(lab: &mut Lab) {
    let host: Vec<i32> = (-70000..70000).step_by(7).collect();
    check_narrow::<i32, T>(lab, &host, f64::from);
    let host: Vec<u8> = (0..=u8::MAX).collect();
    check_narrow::<u8, T>(lab, &host, f64::from);
    let host = lab.values::<u64>(1001);
    check_narrow::<u64, T>(lab, &host, |value| value as f64);
    let host = lab.values::<i64>(1001);
    check_narrow::<i64, T>(lab, &host, |value| value as f64);
}

/// Bits are what is loaded, stored and chosen: a NaN keeps its own.
#[kernel(B = [1024, 96])]
fn reversed<T: Element, const B: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    let v = load(x + at, mask = mask);
    let w = load(x + (n - 1 - at), mask = mask);
    store(y + at, select(at % 3 == 0, w, v), mask = mask);
}

fn copies<T: Float8>(lab: &mut Lab) {
    for n in [1, 64, 1000, 4099] {
        let host = lab.values::<T>(n);
        let (x, mut y, mut z) = (lab.input(&host), lab.output::<T>(n), lab.output_at::<T>(n, 0));
        reversed::<T, 1024>(x.slice(), &mut y.slice(), n).grid(cdiv(n, 1024)).launch().unwrap();
        reversed::<T, 96>(x.slice(), &mut z.slice(), n).grid(cdiv(n, 96)).launch().unwrap();
        for got in [y.read(), z.read()] {
            for (i, got) in got.into_iter().enumerate() {
                assert_eq!(byte(got), byte(host[if i % 3 == 0 { n - 1 - i } else { i }]), "element {i} of {n}");
            }
        }
    }
}

#[kernel(B = 128)]
fn compare<T: Element, const B: usize>(x: Ptr<T>, y: Ptr<T>, equal: PtrMut<bool>, less: PtrMut<bool>, differ: PtrMut<bool>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let (a, b) = (load(x + at, mask = at < n), load(y + at, mask = at < n));
    store(equal + at, a == b);
    store(less + at, a < b);
    store(differ + at, a != b);
}

fn comparisons<T: Float8>(lab: &mut Lab) {
    let n = 4001;
    let (a, b) = (lab.values::<T>(n), lab.values::<T>(n));
    let (x, y) = (lab.input(&a), lab.input(&b));
    let (mut equal, mut less, mut differ) = (lab.output(n), lab.output(n), lab.output(n));
    compare::<T, 128>(x.slice(), y.slice(), &mut equal.slice(), &mut less.slice(), &mut differ.slice(), n)
        .grid(cdiv(n, 128))
        .launch()
        .unwrap();
    let worth = |i: usize| (T::worth(byte(a[i])), T::worth(byte(b[i])));
    check_bits(&equal.read(), |i| worth(i).0 == worth(i).1);
    check_bits(&less.read(), |i| worth(i).0 < worth(i).1);
    check_bits(&differ.read(), |i| worth(i).0 != worth(i).1);
}

#[kernel(B = 256)]
fn sort_block<T: Element, const B: usize>(x: Ptr<T>, y: PtrMut<T>) {
    let at = program_id(0) * B + arange(0, B);
    store(y + at, sort(load(x + at), descending = true));
}

fn sorted<T: Float8>(lab: &mut Lab) {
    let host = lab.values::<T>(512);
    let (x, mut y) = (lab.input(&host), lab.output::<T>(512));
    sort_block::<T, 256>(x.slice(), &mut y.slice()).grid(2).launch().unwrap();
    // The total order: of the bits as sign and magnitude.
    let order = |bits: u8| if bits >> 7 == 1 { -1 - i32::from(bits & 0x7f) } else { i32::from(bits) };
    let mut want: Vec<u8> = host.iter().map(|value| byte(*value)).collect();
    want.chunks_mut(256).for_each(|block| block.sort_by_key(|bits| -order(*bits)));
    let got: Vec<u8> = y.read().into_iter().map(byte).collect();
    assert_eq!(got, want);
}

/// Quantises rows of `x` by a scale each, as inference does, and takes them back.
#[kernel(N = 512)]
fn quantize<const N: usize>(x: Ptr<bf16>, q: PtrMut<f8e4m3>, back: PtrMut<bf16>, scales: PtrMut<f32>, n: usize) {
    let row = program_id(0);
    let columns = arange(0, N);
    let mask = columns < n;
    let v = load(x + row * n + columns, mask = mask) as f32;
    let scale = max(max(abs(v), axis = 0) / 448.0, 1e-12);
    let quantized = (v / scale) as f8e4m3;
    store(scales + row, scale);
    store(q + row * n + columns, quantized, mask = mask);
    store(back + row * n + columns, (quantized as f32 * scale) as bf16, mask = mask);
}

fn scales_and_rounds(lab: &mut Lab) {
    let (rows, n) = (7, 509);
    let host = lab.numbers::<bf16>(rows * n, -300.0, 300.0);
    let x = lab.input(&host);
    let (mut q, mut back, mut scales) = (lab.output::<f8e4m3>(rows * n), lab.output::<bf16>(rows * n), lab.output::<f32>(rows));
    quantize::<512>(x.slice(), &mut q.slice(), &mut back.slice(), &mut scales.slice(), n).grid(rows).launch().unwrap();
    let (q, back, scales) = (q.read(), back.read(), scales.read());
    for row in 0..rows {
        let largest = host[row * n..][..n].iter().fold(0.0f32, |largest, value| largest.max(value.to_f32().abs()));
        let scale = largest / 448.0;
        assert_eq!(scales[row], scale);
        for i in row * n..(row + 1) * n {
            assert_eq!(byte(q[i]), f8e4m3::nearest((host[i].to_f32() / scale).into()), "element {i}");
            let value = f8e4m3::worth(byte(q[i])) as f32 * scale;
            assert_eq!(back[i], bf16::from_f32(value), "element {i}");
            assert!((value - host[i].to_f32()).abs() <= host[i].to_f32().abs() / 16.0 + scale * 2f32.powi(-10), "element {i}");
        }
    }
}

#[kernel(B = 64)]
fn fill<const B: usize>(x: Ptr<f8e5m2>, y: PtrMut<f8e5m2>, z: PtrMut<f8e4m3>, given: f8e4m3, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let outside = load(x + at + n, mask = at < n, other = 1.5);
    store(y + at, select(at % 2 == 0, outside, f8e5m2::MAX));
    let one = full([B], 1.0f8e4m3);
    let chosen = select(at % 4 == 0, one, select(at % 4 == 1, f8e4m3::MIN, select(at % 4 == 2, given, 0.3)));
    store(z + at, chosen);
}

fn constants_and_scalars(lab: &mut Lab) {
    let n = 777;
    let host = lab.values::<f8e5m2>(n);
    let (x, mut y, mut z) = (lab.input(&host), lab.output::<f8e5m2>(n), lab.output::<f8e4m3>(n));
    fill::<64>(x.slice(), &mut y.slice(), &mut z.slice(), f8e4m3::from_f32(-3.5), n).grid(cdiv(n, 64)).launch().unwrap();
    check_bits(&y.read(), |i| f8e5m2::from_f32(if i % 2 == 0 { 1.5 } else { 57344.0 }));
    check_bits(&z.read(), |i| f8e4m3::from_f32([1.0, -448.0, -3.5, 0.3125][i % 4]));
}
