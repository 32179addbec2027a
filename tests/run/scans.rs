//! Scans along each axis, forwards and backwards.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::{Class, check, check_bits, check_ints};
use crate::value::{FloatValue, IntValue};

tests![
    integers<i8, i32, i64, u16, u64>,
    running_extremes<f16, f32, f64>,
    running_sums<f16, bf16, f32, f64>,
    recurrences,
    order_is_preserved,
    offsets_of_ragged_rows,
    constants_decide,
];

/// Does something with tiles of several shapes: powers of two, and such as are kept with padding.
macro_rules! of_shapes {
    ($test:ident $(<$ty:ident>)?, $lab:ident) => {
        $test::<$($ty,)? 8, 32>($lab);
        $test::<$($ty,)? 6, 40>($lab);
        $test::<$($ty,)? 5, 3>($lab);
        $test::<$($ty,)? 16, 129>($lab);
    };
}

#[kernel]
fn integers_kernel<T: Int, const M: usize, const N: usize>(x: Ptr<T>, y: PtrMut<T>) {
    let at = arange(0, M)[(.., None)] * N + arange(0, N)[(None, ..)];
    let v = load(x + at);
    store(y + at, cumsum(v, axis = 0));
    store(y + at + M * N, v.cumsum(axis = 1));
    store(y + at + 2 * M * N, cumsum(v, axis = 0, reverse = true));
    store(y + at + 3 * M * N, cumsum(v, axis = -1, reverse = true));
    store(y + at + 4 * M * N, cumprod(v, axis = 1));
    store(y + at + 5 * M * N, v.cumprod(axis = 0, reverse = true));
}

fn integers<T: IntValue>(lab: &mut Lab) {
    of_shapes!(integers_of<T>, lab);
}

fn integers_of<T: IntValue, const M: usize, const N: usize>(lab: &mut Lab) {
    let host = lab.values::<T>(M * N);
    let x = lab.input(&host);
    let mut y = lab.output::<T>(6 * M * N);
    integers_kernel::<T, M, N>(x.slice(), &mut y.slice()).grid(1).launch().unwrap();
    check_ints(&y.read(), |i| {
        let (which, row, column) = (i / (M * N), i / N % M, i % N);
        let (is_rows, reverse) = [(false, false), (true, false), (false, true), (true, true), (true, false), (false, true)][which];
        let (here, end) = if is_rows { (column, N) } else { (row, M) };
        let range = if reverse { here..end } else { 0..here + 1 };
        let values = range.map(|at| if is_rows { host[row * N + at] } else { host[at * N + column] }.wide());
        if which < 4 { values.sum() } else { values.fold(1, |a, b| T::wrap(a.wrapping_mul(b)).wide()) }
    });
}

#[kernel]
fn extremes_kernel<T: Float, const N: usize>(x: Ptr<T>, y: PtrMut<T>) {
    let at = arange(0, N);
    let v = load(x + at);
    store(y + at, cummax(v));
    store(y + at + N, v.cummin(reverse = true));
}

fn running_extremes<T: FloatValue>(lab: &mut Lab) {
    running_extremes_of::<T, 256>(lab);
    running_extremes_of::<T, 200>(lab);
}

fn running_extremes_of<T: FloatValue, const N: usize>(lab: &mut Lab) {
    let host = lab.values::<T>(N);
    let x = lab.input(&host);
    let mut y = lab.output::<T>(2 * N);
    extremes_kernel::<T, N>(x.slice(), &mut y.slice()).grid(1).launch().unwrap();
    let wide: Vec<f64> = host.iter().map(|value| value.wide()).collect();
    check(&y.read(), Class::Rounded, |i| match i {
        _ if i < N => wide[..=i].iter().copied().fold(f64::NAN, f64::max),
        _ => wide[i - N..].iter().copied().fold(f64::NAN, f64::min),
    });
}

#[kernel]
fn sums_kernel<T: Float, const N: usize>(x: Ptr<T>, y: PtrMut<T>) {
    let at = arange(0, N);
    store(y + at, cumsum(load(x + at), axis = 0));
}

/// Halves are added up in `f32`, and each sum is rounded once.
fn running_sums<T: FloatValue>(lab: &mut Lab) {
    let host = lab.numbers::<T>(2048, 0.0, 2.0);
    let x = lab.input(&host);
    let mut y = lab.output::<T>(2048);
    sums_kernel::<T, 2048>(x.slice(), &mut y.slice()).grid(1).launch().unwrap();
    let class = match T::DIGITS {
        0..24 => Class::Chain(1),
        24 => Class::Chain(24),
        // Here the reference, one sum after the other, is the less exact one.
        _ => Class::Chain(200),
    };
    check(&y.read(), class, |i| host[..=i].iter().map(|value| value.wide()).sum());
}

/// `h = a * h + x` along the rows, as a state space model runs it.
#[kernel]
fn recurrence_kernel<const M: usize, const N: usize>(a: Ptr<f32>, x: Ptr<f32>, y: PtrMut<f32>) {
    let at = arange(0, M)[(.., None)] * N + arange(0, N)[(None, ..)];
    let (_, h) = associative_scan((load(a + at), load(x + at)), 1, |(a, x), (b, y)| (a * b, x * b + y));
    store(y + at, h);
}

fn recurrences(lab: &mut Lab) {
    of_shapes!(recurrences_of, lab);
}

fn recurrences_of<const M: usize, const N: usize>(lab: &mut Lab) {
    let (decays, inputs) = (lab.numbers::<f32>(M * N, 0.5, 1.0), lab.numbers::<f32>(M * N, 0.0, 1.0));
    let (a, x) = (lab.input(&decays), lab.input(&inputs));
    let mut y = lab.output::<f32>(M * N);
    recurrence_kernel::<M, N>(a.slice(), x.slice(), &mut y.slice()).grid(1).launch().unwrap();
    let mut want = vec![0.0; M * N];
    for i in 0..M * N {
        let before = if i % N == 0 { 0.0 } else { want[i - 1] };
        want[i] = f64::from(decays[i]) * before + f64::from(inputs[i]);
    }
    check(&y.read(), Class::Chain(40), |i| want[i]);
}

/// Which element came first and which last, from either end; nothing may be reordered.
#[kernel]
fn ends_kernel<const M: usize, const N: usize>(y: PtrMut<i64>) {
    let at = arange(0, M)[(.., None)] * N + arange(0, N)[(None, ..)];
    let (first, last) = associative_scan((at, at), 0, |(a, _), (_, d)| (a, d), reverse = true);
    store(y + at, first * 1000 + last);
    let (first, last) = associative_scan((at, at), 1, |(a, _), (_, d)| (a, d));
    store(y + at + M * N, first * 1000 + last);
}

fn order_is_preserved(lab: &mut Lab) {
    of_shapes!(order_is_preserved_of, lab);
}

fn order_is_preserved_of<const M: usize, const N: usize>(lab: &mut Lab) {
    let mut y = lab.output::<i64>(2 * M * N);
    ends_kernel::<M, N>(&mut y.slice()).grid(1).launch().unwrap();
    check_ints(&y.read(), |i| {
        let at = i % (M * N);
        let first = if i < M * N { (M - 1) * N + at % N } else { at / N * N };
        (first * 1000 + at) as i128
    });
}

/// Where each row of a ragged array begins: its lengths added up, without its own.
#[kernel]
fn starts_kernel<const N: usize>(lengths: Ptr<u32>, starts: PtrMut<i64>, n: usize) {
    let at = arange(0, N);
    let length = load(lengths + at, mask = at < n) as i64;
    store(starts + at, cumsum(length) - length, mask = at < n);
}

fn offsets_of_ragged_rows(lab: &mut Lab) {
    for n in [0, 1, 100, 512] {
        let host: Vec<u32> = (0..n).map(|_| lab.below(1000) as u32).collect();
        let lengths = lab.input(&host);
        let mut starts = lab.output::<i64>(n);
        starts_kernel::<512>(lengths.slice(), &mut starts.slice(), n).grid(1).launch().unwrap();
        check_bits(&starts.read(), |i| host[..i].iter().map(|length| i64::from(*length)).sum());
    }
}

#[kernel]
fn decided_kernel<const N: usize, const BACK: bool>(x: Ptr<i32>, y: PtrMut<i32>) {
    let at = arange(0, N);
    let v = load(x + at, volatile = !BACK);
    store(y + at, cumsum(v, reverse = BACK));
    store(y + at + N, associative_scan(v, 0, |a, b| a + b + a * b, reverse = BACK));
    store(y + at + 2 * N, sort(v, descending = BACK));
    let one_is_nan = select(at == 3, f32::NAN, v as f32);
    let largest = max(one_is_nan, propagate_nan = BACK);
    store(y + 3 * N, (largest != largest) as i32);
}

fn constants_decide(lab: &mut Lab) {
    decided::<64, true>(lab);
    decided::<64, false>(lab);
    decided::<40, true>(lab);
}

fn decided<const N: usize, const BACK: bool>(lab: &mut Lab) {
    let host = lab.values::<i32>(N);
    let x = lab.input(&host);
    let mut y = lab.output::<i32>(3 * N + 1);
    decided_kernel::<N, BACK>(x.slice(), &mut y.slice()).grid(1).launch().unwrap();
    let mut runs = host.clone();
    if BACK {
        runs.reverse();
    }
    let folds = |step: fn(i32, i32) -> i32| {
        let mut folds: Vec<i32> = runs
            .iter()
            .scan(None, |last, v| {
                *last = Some(last.map_or(*v, |last| step(last, *v)));
                *last
            })
            .collect();
        if BACK {
            folds.reverse();
        }
        folds
    };
    let mut expected = folds(i32::wrapping_add);
    expected.extend(folds(|a, b| a.wrapping_add(b).wrapping_add(a.wrapping_mul(b))));
    let mut sorted = host;
    sorted.sort_unstable();
    if BACK {
        sorted.reverse();
    }
    expected.extend(sorted);
    expected.push(i32::from(BACK));
    assert_eq!(y.read(), expected);
}
