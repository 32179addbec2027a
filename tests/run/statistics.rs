//! Means, variances and softmax along each axis, against `f64`.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::{Class, check};
use crate::value::FloatValue;

tests![
    means_and_variances<f16, bf16, f32, f64>,
    sums_that_overflow_have_means,
    numbers_far_from_zero_keep_their_digits,
    softmaxes<f16, bf16, f32, f64>,
    softmax_of_corners,
    one_element_has_no_sample_variance,
];

#[kernel]
fn moments_kernel<T: Float, const M: usize, const N: usize>(x: Ptr<T>, rows: PtrMut<T>, columns: PtrMut<T>, all: PtrMut<T>) {
    let at = arange(0, M)[(.., None)] * N + arange(0, N)[(None, ..)];
    let v = load(x + at);
    let row = arange(0, M);
    store(rows + row, mean(v, axis = 1));
    store(rows + row + M, v.var(axis = -1));
    store(rows + (row + 2 * M)[(.., None)], var(v, axis = 1, keep_dims = true, correction = 1));
    let column = arange(0, N);
    store(columns + column, v.mean(axis = 0));
    store(columns + column + N, var(v, axis = 0));
    store(columns + (column + 2 * N)[(None, ..)], v.var(axis = 0, correction = 1, keep_dims = true));
    store(all, mean(v));
    store(all + 1, var(v));
    store(all + 2, var(v, correction = 1));
}

fn means_and_variances<T: FloatValue>(lab: &mut Lab) {
    means_and_variances_of::<T, 8, 32>(lab);
    means_and_variances_of::<T, 3, 50>(lab);
}

fn means_and_variances_of<T: FloatValue, const M: usize, const N: usize>(lab: &mut Lab) {
    let host = lab.numbers::<T>(M * N, 1.0, 3.0);
    let x = lab.input(&host);
    let (mut rows, mut columns, mut all) = (lab.output::<T>(3 * M), lab.output::<T>(3 * N), lab.output::<T>(3));
    moments_kernel::<T, M, N>(x.slice(), &mut rows.slice(), &mut columns.slice(), &mut all.slice()).grid(1).launch().unwrap();
    let moment = |which: usize, values: Vec<f64>| {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        [mean, squares / count, squares / (count - 1.0)][which]
    };
    let at = |row: usize, column: usize| host[row * N + column].wide();
    // The order of the reference's own sums is what `f64` shows; halves are rounded once.
    let class = Class::Chain(if T::DIGITS < 24 { 1 } else { 60 });
    check(&rows.read(), class, |i| moment(i / M, (0..N).map(|column| at(i % M, column)).collect()));
    check(&columns.read(), class, |i| moment(i / N, (0..M).map(|row| at(row, i % N)).collect()));
    check(&all.read(), class, |i| moment(i, host.iter().map(|value| value.wide()).collect()));
}

#[kernel]
fn mean_kernel<T: Float, const N: usize>(x: Ptr<T>, y: PtrMut<T>) {
    let v = load(x + arange(0, N));
    store(y, mean(v));
    store(y + 1, var(v));
}

fn sums_that_overflow_have_means(lab: &mut Lab) {
    let host: Vec<f16> = (0..1000).map(|i| f16::from_f64(if i % 2 == 0 { 60000.0 } else { 59968.0 })).collect();
    let x = lab.input(&host);
    let mut y = lab.output::<f16>(2);
    mean_kernel::<f16, 1000>(x.slice(), &mut y.slice()).grid(1).launch().unwrap();
    check(&y.read(), Class::Rounded, |i| [59984.0, 256.0][i]);
}

fn numbers_far_from_zero_keep_their_digits(lab: &mut Lab) {
    // Small multiples of an ulp of 10^6 around it: mean and distances are exact in `f32`, squares of the numbers are not.
    let host: Vec<f32> = (0..1024).map(|_| 1_048_576.0 + (lab.below(9) as f32 - 4.0) * 0.125).collect();
    let x = lab.input(&host);
    let mut y = lab.output::<f32>(2);
    mean_kernel::<f32, 1024>(x.slice(), &mut y.slice()).grid(1).launch().unwrap();
    let mean = host.iter().map(|value| f64::from(*value)).sum::<f64>() / 1024.0;
    let variance = host.iter().map(|value| (f64::from(*value) - mean).powi(2)).sum::<f64>() / 1024.0;
    let got = y.read();
    assert!((f64::from(got[0]) - mean).abs() <= 0.125, "{} is not {mean}", got[0]);
    // The mean is rounded: that adds the square of what it is off.
    assert!((f64::from(got[1]) - variance).abs() <= 0.125f64.powi(2) + variance * 1e-5, "{} is not {variance}", got[1]);
}

#[kernel]
fn softmax_kernel<T: Float, const M: usize, const N: usize>(x: Ptr<T>, rows: PtrMut<T>, columns: PtrMut<T>, all: PtrMut<T>) {
    let at = arange(0, M)[(.., None)] * N + arange(0, N)[(None, ..)];
    let v = load(x + at);
    store(rows + at, softmax(v, axis = 1));
    store(columns + at, v.softmax(axis = 0));
    store(all + at, softmax(v));
}

fn softmaxes<T: FloatValue>(lab: &mut Lab) {
    softmaxes_of::<T, 8, 64>(lab);
    softmaxes_of::<T, 5, 77>(lab);
}

fn softmaxes_of<T: FloatValue, const M: usize, const N: usize>(lab: &mut Lab) {
    let host = lab.numbers::<T>(M * N, -4.0, 4.0);
    let x = lab.input(&host);
    let [mut rows, mut columns, mut all] = [0; 3].map(|_| lab.output::<T>(M * N));
    softmax_kernel::<T, M, N>(x.slice(), &mut rows.slice(), &mut columns.slice(), &mut all.slice()).grid(1).launch().unwrap();
    let share = |own: usize, of: &mut dyn Iterator<Item = usize>| {
        libm::exp(host[own].wide()) / of.map(|at| libm::exp(host[at].wide())).sum::<f64>()
    };
    let class = if T::DIGITS < 24 { Class::Math } else { Class::Chain(60) };
    check(&rows.read(), class, |i| share(i, &mut (0..N).map(|column| i / N * N + column)));
    check(&columns.read(), class, |i| share(i, &mut (0..M).map(|row| row * N + i % N)));
    check(&all.read(), class, |i| share(i, &mut (0..M * N)));
}

/// Large numbers do not overflow, -infinity has no share, NaN and infinity spoil their own row only.
fn softmax_of_corners(lab: &mut Lab) {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let host = [1e38, 1e38, -1e38, -inf, nan, 1.0, 2.0, 3.0, inf, 1.0, 2.0, 3.0, -inf, -inf, -inf, -inf, 5.0, -inf, 5.0, 5.0];
    let x = lab.input(&host);
    let [mut rows, mut columns, mut all] = [0; 3].map(|_| lab.output::<f32>(20));
    softmax_kernel::<f32, 5, 4>(x.slice(), &mut rows.slice(), &mut columns.slice(), &mut all.slice()).grid(1).launch().unwrap();
    let third = 1.0 / 3.0;
    let got = rows.read();
    check(&got[..4], Class::Rounded, |i| [0.5, 0.5, 0.0, 0.0][i]);
    check(&got[4..16], Class::Rounded, |_| f64::NAN);
    check(&got[16..], Class::Chain(2), |i| [third, 0.0, third, third][i]);
}

#[kernel]
fn sample_kernel(x: Ptr<f32>, y: PtrMut<f32>) {
    let v = load(x + arange(0, 1));
    store(y, var(v));
    store(y + 1, var(v, correction = 1));
}

fn one_element_has_no_sample_variance(lab: &mut Lab) {
    let x = lab.input(&[3.0f32]);
    let mut y = lab.output::<f32>(2);
    sample_kernel(x.slice(), &mut y.slice()).grid(1).launch().unwrap();
    check(&y.read(), Class::Rounded, |i| [0.0, f64::NAN][i]);
}
