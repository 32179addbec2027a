//! Arithmetic and functions of floats, element by element.

use galatea::prelude::*;

use crate::lab::{Lab, SIZES};
use crate::tests;
use crate::tolerance::{Class, check, check_bits};
use crate::value::FloatValue;

tests![
    arithmetic<f16, bf16, f32, f64>,
    functions<f16, bf16, f32, f64>,
    rounding<f16, bf16, f32, f64>,
    choices<f16, bf16, f32, f64>,
    silu<f16, bf16, f32, f64>,
    nothing_is_contracted,
];

#[kernel(B = 256)]
fn arithmetic_kernel<T: Float, const B: usize>(
    x: Ptr<T>,
    y: Ptr<T>,
    sum: PtrMut<T>,
    difference: PtrMut<T>,
    product: PtrMut<T>,
    quotient: PtrMut<T>,
    fused: PtrMut<T>,
    root: PtrMut<T>,
    n: usize,
) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    let a = load(x + at, mask = mask);
    let b = load(y + at, mask = mask);
    store(sum + at, a + b, mask = mask);
    store(difference + at, a - b, mask = mask);
    store(product + at, a * b, mask = mask);
    store(quotient + at, a / b, mask = mask);
    store(fused + at, fma(a, b, a), mask = mask);
    store(root + at, a.sqrt(), mask = mask);
}

fn arithmetic<T: FloatValue>(lab: &mut Lab) {
    for n in SIZES {
        let (a, b) = (lab.values::<T>(n), lab.values::<T>(n));
        let (x, y) = (lab.input(&a), lab.input(&b));
        let [mut sum, mut difference, mut product, mut quotient, mut fused, mut root] = [(); 6].map(|()| lab.output::<T>(n));
        arithmetic_kernel::<T, 256>(
            x.slice(),
            y.slice(),
            &mut sum.slice(),
            &mut difference.slice(),
            &mut product.slice(),
            &mut quotient.slice(),
            &mut fused.slice(),
            &mut root.slice(),
            n,
        )
        .grid(cdiv(n, 256))
        .launch()
        .unwrap();
        let (a, b) = (|i: usize| a[i].wide(), |i: usize| b[i].wide());
        check(&sum.read(), Class::Rounded, |i| a(i) + b(i));
        check(&difference.read(), Class::Rounded, |i| a(i) - b(i));
        check(&product.read(), Class::Rounded, |i| a(i) * b(i));
        check(&quotient.read(), Class::Rounded, |i| a(i) / b(i));
        check(&fused.read(), Class::Rounded, |i| a(i).mul_add(b(i), a(i)));
        check(&root.read(), Class::Rounded, |i| a(i).sqrt());
    }
}

#[kernel(B = 128)]
fn functions_kernel<T: Float, const B: usize>(
    x: Ptr<T>,
    e: PtrMut<T>,
    l: PtrMut<T>,
    s: PtrMut<T>,
    t: PtrMut<T>,
    r: PtrMut<T>,
    f: PtrMut<T>,
    n: usize,
) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    let v = load(x + at, mask = mask);
    store(e + at, exp(v), mask = mask);
    store(l + at, v.log(), mask = mask);
    store(s + at, sin(v), mask = mask);
    store(t + at, tanh(v), mask = mask);
    store(r + at, rsqrt(v), mask = mask);
    store(f + at, erf(v), mask = mask);
}

fn functions<T: FloatValue>(lab: &mut Lab) {
    for n in [0, 1, 127, 5001] {
        let mut host = lab.numbers::<T>(n, -20.0, 20.0);
        if n > 5 {
            let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, 1.0];
            host.iter_mut().zip(special).for_each(|(value, special)| *value = T::near(special));
        }
        let x = lab.input(&host);
        let [mut e, mut l, mut s, mut t, mut r, mut f] = [(); 6].map(|()| lab.output::<T>(n));
        functions_kernel::<T, 128>(
            x.slice(),
            &mut e.slice(),
            &mut l.slice(),
            &mut s.slice(),
            &mut t.slice(),
            &mut r.slice(),
            &mut f.slice(),
            n,
        )
        .grid(cdiv(n, 128))
        .launch()
        .unwrap();
        let v = |i: usize| host[i].wide();
        check(&e.read(), Class::Math, |i| libm::exp(v(i)));
        check(&l.read(), Class::Math, |i| libm::log(v(i)));
        check(&s.read(), Class::Math, |i| libm::sin(v(i)));
        check(&t.read(), Class::Math, |i| libm::tanh(v(i)));
        check(&r.read(), Class::Math, |i| 1.0 / v(i).sqrt());
        check(&f.read(), Class::Math, |i| libm::erf(v(i)));
    }
}

#[kernel(B = 128)]
fn rounding_kernel<T: Float, const B: usize>(
    x: Ptr<T>,
    down: PtrMut<T>,
    up: PtrMut<T>,
    away: PtrMut<T>,
    even: PtrMut<T>,
    to_zero: PtrMut<T>,
    size: PtrMut<T>,
    n: usize,
) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    let v = load(x + at, mask = mask);
    store(down + at, floor(v), mask = mask);
    store(up + at, ceil(v), mask = mask);
    store(away + at, round(v), mask = mask);
    store(even + at, v.rint(), mask = mask);
    store(to_zero + at, trunc(v), mask = mask);
    store(size + at, abs(v), mask = mask);
}

fn rounding<T: FloatValue>(lab: &mut Lab) {
    let n = 10_001;
    let mut host = lab.values::<T>(n);
    // Halves, where the ways of rounding differ.
    (0..200).for_each(|i| host[i] = T::near(i as f64 * 0.5 - 50.0));
    let x = lab.input(&host);
    let [mut down, mut up, mut away, mut even, mut to_zero, mut size] = [(); 6].map(|()| lab.output::<T>(n));
    rounding_kernel::<T, 128>(
        x.slice(),
        &mut down.slice(),
        &mut up.slice(),
        &mut away.slice(),
        &mut even.slice(),
        &mut to_zero.slice(),
        &mut size.slice(),
        n,
    )
    .grid(cdiv(n, 128))
    .launch()
    .unwrap();
    let v = |i: usize| host[i].wide();
    check(&down.read(), Class::Rounded, |i| v(i).floor());
    check(&up.read(), Class::Rounded, |i| v(i).ceil());
    check(&away.read(), Class::Rounded, |i| v(i).round());
    check(&even.read(), Class::Rounded, |i| v(i).round_ties_even());
    check(&to_zero.read(), Class::Rounded, |i| v(i).trunc());
    check(&size.read(), Class::Rounded, |i| v(i).abs());
}

#[kernel(B = 128)]
fn choices_kernel<T: Float, const B: usize>(
    x: Ptr<T>,
    y: Ptr<T>,
    low: PtrMut<T>,
    high: PtrMut<T>,
    clamped: PtrMut<T>,
    chosen: PtrMut<T>,
    negated: PtrMut<T>,
    n: usize,
) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    let a = load(x + at, mask = mask);
    let b = load(y + at, mask = mask);
    store(low + at, min(a, b), mask = mask);
    store(high + at, a.max(b), mask = mask);
    store(clamped + at, clamp(a, -1.0, 6.0), mask = mask);
    store(chosen + at, select(a > b, a, select(a == b, 2.0, b)), mask = mask);
    store(negated + at, -a, mask = mask);
}

fn choices<T: FloatValue>(lab: &mut Lab) {
    let n = 10_001;
    let (a, mut b) = (lab.values::<T>(n), lab.values::<T>(n));
    b[..500].copy_from_slice(&a[..500]);
    let (x, y) = (lab.input(&a), lab.input(&b));
    let [mut low, mut high, mut clamped, mut chosen, mut negated] = [(); 5].map(|()| lab.output::<T>(n));
    choices_kernel::<T, 128>(
        x.slice(),
        y.slice(),
        &mut low.slice(),
        &mut high.slice(),
        &mut clamped.slice(),
        &mut chosen.slice(),
        &mut negated.slice(),
        n,
    )
    .grid(cdiv(n, 128))
    .launch()
    .unwrap();
    let (a_at, b_at) = (|i: usize| a[i].wide(), |i: usize| b[i].wide());
    check(&low.read(), Class::Rounded, |i| a_at(i).min(b_at(i)));
    check(&high.read(), Class::Rounded, |i| a_at(i).max(b_at(i)));
    // NaN gives the lower bound, which Rust's `clamp` does not.
    check(&clamped.read(), Class::Rounded, |i| if a_at(i) > -1.0 { a_at(i).min(6.0) } else { -1.0 });
    check(&chosen.read(), Class::Rounded, |i| {
        if a_at(i) > b_at(i) {
            a_at(i)
        } else if a_at(i) == b_at(i) {
            2.0
        } else {
            b_at(i)
        }
    });
    check(&negated.read(), Class::Rounded, |i| -a_at(i));
    // A sign is a bit.
    let sign = 1 << (8 * size_of::<T>() - 1);
    let number = |value: T| if value.wide().is_nan() { T::near(0.0) } else { value };
    check_bits(&negated.read().into_iter().map(number).collect::<Vec<_>>(), |i| number(T::from_bits(a[i].bits() ^ sign)));
}

#[kernel(B = [64, 1024])]
fn silu_kernel<T: Float, const B: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    let v = load(x + at, mask = mask) as f32;
    store(y + at, (v * sigmoid(v)) as T, mask = mask);
}

fn silu<T: FloatValue>(lab: &mut Lab) {
    for n in SIZES {
        let host = lab.numbers::<T>(n, -30.0, 30.0);
        let x = lab.input(&host);
        let (mut y, mut z) = (lab.output::<T>(n), lab.output::<T>(n));
        silu_kernel::<T, 1024>(x.slice(), &mut y.slice(), n).grid(cdiv(n, 1024)).launch().unwrap();
        silu_kernel::<T, 64>(x.slice(), &mut z.slice(), n).grid(cdiv(n, 64)).launch().unwrap();
        let (y, z) = (y.read(), z.read());
        check_bits(&z, |i| y[i]);
        // The kernel computes in f32, whatever the type.
        let v = |i: usize| f64::from(host[i].wide() as f32);
        if T::DIGITS == 53 {
            let narrow: Vec<f32> = y.iter().map(|value| value.wide() as f32).collect();
            check(&narrow, Class::Math, |i| v(i) / (1.0 + (-v(i)).exp()));
        } else {
            check(&y, Class::Math, |i| v(i) / (1.0 + (-v(i)).exp()));
        }
    }
}

#[kernel(B = 64)]
fn multiply_add<const B: usize>(x: Ptr<f32>, y: Ptr<f32>, out: PtrMut<f32>) {
    let at = program_id(0) * B + arange(0, B);
    store(out + at, load(x + at) * load(y + at) + load(x + at));
}

/// `a * b + a` rounds twice; a fused operation would differ for about half of the inputs.
fn nothing_is_contracted(lab: &mut Lab) {
    let n = 1000;
    let (a, b) = (lab.numbers::<f32>(n, -2.0, 2.0), lab.numbers::<f32>(n, -2.0, 2.0));
    let (x, y) = (lab.input(&a), lab.input(&b));
    let mut out = lab.output::<f32>(n);
    multiply_add::<64>(x.slice(), y.slice(), &mut out.slice()).grid(cdiv(n, 64)).launch().unwrap();
    let twice = |i: usize| (f64::from(a[i]) * f64::from(b[i])) as f32 + a[i];
    assert!((0..n).any(|i| a[i].mul_add(b[i], a[i]) != twice(i)), "the inputs tell fused from not fused");
    check_bits(&out.read(), twice);
}
