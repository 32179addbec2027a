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
    signs<f16, bf16, f32, f64>,
    approximations<f16, bf16, f32, f64>,
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

#[kernel(B = 128)]
fn signs_kernel<T: Float, const B: usize>(x: Ptr<T>, y: Ptr<T>, z: PtrMut<T>, unit: PtrMut<T>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    let a = load(x + at, mask = mask);
    store(z + at, copysign(a, load(y + at, mask = mask)), mask = mask);
    store(unit + at, copysign(1.0, a), mask = mask);
}

/// Of NaN the sign counts, but which NaN it is does not.
fn signs<T: FloatValue>(lab: &mut Lab) {
    let n = 4001;
    let (a, b) = (lab.values::<T>(n), lab.values::<T>(n));
    let (x, y) = (lab.input(&a), lab.input(&b));
    let [mut z, mut unit] = [(); 2].map(|()| lab.output::<T>(n));
    signs_kernel::<T, 128>(x.slice(), y.slice(), &mut z.slice(), &mut unit.slice(), n).grid(cdiv(n, 128)).launch().unwrap();
    let (z, unit) = (z.read(), unit.read());
    for i in 0..n {
        let sign = b[i].wide().is_sign_negative();
        assert!(z[i].wide().is_nan() == a[i].wide().is_nan() && z[i].wide().is_sign_negative() == sign, "{:?} of {:?}", z[i], (a[i], b[i]));
        assert!(a[i].wide().is_nan() || z[i].wide().abs() == a[i].wide().abs(), "{:?} of {:?}", z[i], (a[i], b[i]));
    }
    check_bits(&unit, |i| T::near(1f64.copysign(a[i].wide())));
}

#[kernel(B = 128)]
fn approximations_kernel<T: Float, const B: usize>(
    x: Ptr<T>,
    power: PtrMut<T>,
    logarithm: PtrMut<T>,
    root: PtrMut<T>,
    sine: PtrMut<T>,
    cosine: PtrMut<T>,
    tangent: PtrMut<T>,
    quotient: PtrMut<T>,
    n: usize,
) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    let v = load(x + at, mask = mask);
    store(power + at, fast_exp2(v), mask = mask);
    store(logarithm + at, fast_log2(v.abs()), mask = mask);
    store(root + at, fast_sqrt(v.abs()), mask = mask);
    store(sine + at, fast_sin(v), mask = mask);
    store(cosine + at, fast_cos(v), mask = mask);
    store(tangent + at, v.fast_tanh(), mask = mask);
    store(quotient + at, fast_div(1.0, v), mask = mask);
}

/// To the bounds of the PTX ISA, which are absolute for some.
fn approximations<T: FloatValue>(lab: &mut Lab) {
    let n = 3001;
    let host = lab.numbers::<T>(n, -3.0, 3.0);
    let x = lab.input(&host);
    let [mut power, mut logarithm, mut root, mut sine, mut cosine, mut tangent, mut quotient] = [(); 7].map(|()| lab.output::<T>(n));
    approximations_kernel::<T, 128>(
        x.slice(),
        &mut power.slice(),
        &mut logarithm.slice(),
        &mut root.slice(),
        &mut sine.slice(),
        &mut cosine.slice(),
        &mut tangent.slice(),
        &mut quotient.slice(),
        n,
    )
    .grid(cdiv(n, 128))
    .launch()
    .unwrap();
    let v = |i: usize| host[i].wide();
    check(&power.read(), Class::Math, |i| v(i).exp2());
    check(&root.read(), Class::Math, |i| v(i).abs().sqrt());
    check(&quotient.read(), Class::Math, |i| 1.0 / v(i));
    let rounding = 2f64.powi(-T::DIGITS);
    let near = |name: &str, got: Vec<T>, absolute: f64, relative: f64, want: &dyn Fn(f64) -> f64| {
        for (i, got) in got.into_iter().enumerate() {
            let (got, want) = (got.wide(), want(v(i)));
            let allowed = absolute + (relative + 2.0 * rounding) * want.abs();
            assert!(got == want || (got - want).abs() <= allowed, "{name}({}) is {got}, not {want}", v(i));
        }
    };
    near("log2", logarithm.read(), 2f64.powi(-22), 2f64.powi(-22), &|x| x.abs().log2());
    near("sin", sine.read(), 2f64.powi(-20), 0.0, &f64::sin);
    near("cos", cosine.read(), 2f64.powi(-20), 0.0, &f64::cos);
    near("tanh", tangent.read(), 0.0, 2f64.powi(-11), &f64::tanh);
}
