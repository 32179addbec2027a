//! Reductions along each axis and along all: of every type, with NaN, and as kernels are written.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::{Class, check, check_bits, check_ints};
use crate::value::{FloatValue, IntValue, Value};

tests![
    integers<i8, i16, i32, i64, u8, u16, u32, u64>,
    extremes<f16, bf16, f32, f64>,
    sums<f16, bf16, f32, f64>,
    half_sums_are_rounded_once<f16, bf16>,
    booleans,
    positions<i32, u64, f16, f32, f64>,
    nan_propagates_on_request,
    softmax_of_rows<f16, f32, f64>,
    softmax_of_one_row,
    layer_norm<f16, bf16, f32>,
    welford,
    order_is_preserved,
    a_reduction_in_a_loop,
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
fn integers_kernel<T: Int, const M: usize, const N: usize>(x: Ptr<T>, rows: PtrMut<T>, columns: PtrMut<T>, all: PtrMut<T>) {
    let at = arange(0, M)[(.., None)] * N + arange(0, N)[(None, ..)];
    let v = load(x + at);
    let row = arange(0, M);
    store(rows + row, v.sum(axis = 1));
    store(rows + row + M, prod(v, axis = -1));
    store(rows + row + 2 * M, xor_sum(v, axis = 1));
    store(rows + row + 3 * M, v.min(axis = 1));
    store(rows + row + 4 * M, max(v, axis = 1));
    let column = arange(0, N);
    store(columns + column, sum(v, axis = 0));
    store(columns + column + N, v.prod(axis = 0));
    store(columns + column + 2 * N, v.xor_sum(axis = -2));
    store(columns + column + 3 * N, min(v, axis = 0));
    store(columns + column + 4 * N, v.max(axis = 0));
    store(all, sum(v));
    store(all + 1, v.prod());
    store(all + 2, xor_sum(v));
    store(all + 3, min(v));
    store(all + 4, v.max());
    store(all + arange(0, 1)[(.., None)] + 5, sum(v, keep_dims = true));
}

fn integers<T: IntValue>(lab: &mut Lab) {
    of_shapes!(integers_of<T>, lab);
}

fn integers_of<T: IntValue, const M: usize, const N: usize>(lab: &mut Lab) {
    let host = lab.values::<T>(M * N);
    let x = lab.input(&host);
    let (mut rows, mut columns, mut all) = (lab.output::<T>(5 * M), lab.output::<T>(5 * N), lab.output::<T>(6));
    integers_kernel::<T, M, N>(x.slice(), &mut rows.slice(), &mut columns.slice(), &mut all.slice()).grid(1).launch().unwrap();
    let combined = |which: usize, of: &mut dyn Iterator<Item = usize>| -> i128 {
        let values = of.map(|at| host[at].wide());
        match which {
            0 | 5 => values.sum(),
            1 => values.fold(1, |a, b| T::wrap(a.wrapping_mul(b)).wide()),
            2 => values.fold(0, |a, b| a ^ b),
            3 => values.min().unwrap(),
            _ => values.max().unwrap(),
        }
    };
    check_ints(&rows.read(), |i| combined(i / M, &mut (0..N).map(|column| i % M * N + column)));
    check_ints(&columns.read(), |i| combined(i / N, &mut (0..M).map(|row| row * N + i % N)));
    check_ints(&all.read(), |i| combined(i, &mut (0..M * N)));
}

#[kernel]
fn extremes_kernel<T: Float, const M: usize, const N: usize>(x: Ptr<T>, rows: PtrMut<T>, columns: PtrMut<T>) {
    let at = arange(0, M)[(.., None)] * N + arange(0, N)[(None, ..)];
    let v = load(x + at);
    store(rows + arange(0, M), v.min(axis = 1));
    store(rows + arange(M, 2 * M), max(v, axis = 1));
    store(columns + arange(0, N), min(v, axis = 0));
    store(columns + arange(N, 2 * N), v.max(axis = 0));
}

/// NaN loses against numbers; where there is nothing else, it stays.
fn extremes<T: FloatValue>(lab: &mut Lab) {
    of_shapes!(extremes_of<T>, lab);
}

fn extremes_of<T: FloatValue, const M: usize, const N: usize>(lab: &mut Lab) {
    let mut host = lab.values::<T>(M * N);
    host[3 * N..4 * N].fill(T::near(f64::NAN));
    host[4 * N..5 * N].fill(T::near(f64::NEG_INFINITY));
    let x = lab.input(&host);
    let (mut rows, mut columns) = (lab.output::<T>(2 * M), lab.output::<T>(2 * N));
    extremes_kernel::<T, M, N>(x.slice(), &mut rows.slice(), &mut columns.slice()).grid(1).launch().unwrap();
    let best = |which: usize, of: &mut dyn Iterator<Item = usize>| {
        let values = of.map(|at| host[at].wide());
        if which == 0 { values.fold(f64::NAN, f64::min) } else { values.fold(f64::NAN, f64::max) }
    };
    check(&rows.read(), Class::Rounded, |i| best(i / M, &mut (0..N).map(|column| i % M * N + column)));
    check(&columns.read(), Class::Rounded, |i| best(i / N, &mut (0..M).map(|row| row * N + i % N)));
}

#[kernel]
fn sums_kernel<T: Float, const M: usize, const N: usize>(x: Ptr<T>, rows: PtrMut<T>, columns: PtrMut<T>, all: PtrMut<T>) {
    let at = arange(0, M)[(.., None)] * N + arange(0, N)[(None, ..)];
    let v = load(x + at);
    store(rows + arange(0, M), sum(v, axis = 1));
    store(columns + arange(0, N), v.sum(axis = 0));
    store(all, sum(v));
}

fn sums<T: FloatValue>(lab: &mut Lab) {
    of_shapes!(sums_of<T>, lab);
}

fn sums_of<T: FloatValue, const M: usize, const N: usize>(lab: &mut Lab) {
    let host = lab.numbers::<T>(M * N, 0.0, 1.0);
    let x = lab.input(&host);
    let (mut rows, mut columns, mut all) = (lab.output::<T>(M), lab.output::<T>(N), lab.output::<T>(1));
    sums_kernel::<T, M, N>(x.slice(), &mut rows.slice(), &mut columns.slice(), &mut all.slice()).grid(1).launch().unwrap();
    let sum = |of: &mut dyn Iterator<Item = usize>| of.map(|at| host[at].wide()).sum::<f64>();
    // For `f64` the reference, one sum after the other, is the less exact one.
    let class = |roundings: usize| Class::Chain(if T::DIGITS == 53 { 100 } else { roundings });
    check(&rows.read(), class(8), |i| sum(&mut (0..N).map(|column| i * N + column)));
    check(&columns.read(), class(8), |i| sum(&mut (0..M).map(|row| row * N + i)));
    check(&all.read(), class(10), |_| sum(&mut (0..M * N)));
}

/// 2048 ones and a thousand more: in halves, 2048 + 1 is 2048 (and 256 + 1 is 256).
fn half_sums_are_rounded_once<T: FloatValue>(lab: &mut Lab) {
    let host: Vec<T> = (0..4096).map(|at| T::near(if at < 3048 { 1.0 } else { 0.0 })).collect();
    let x = lab.input(&host);
    let (mut rows, mut columns, mut all) = (lab.output::<T>(1), lab.output::<T>(4096), lab.output::<T>(1));
    sums_kernel::<T, 1, 4096>(x.slice(), &mut rows.slice(), &mut columns.slice(), &mut all.slice()).grid(1).launch().unwrap();
    check(&rows.read(), Class::Rounded, |_| 3048.0);
    let (mut rows, mut columns, mut all) = (lab.output::<T>(64), lab.output::<T>(64), lab.output::<T>(1));
    sums_kernel::<T, 64, 64>(x.slice(), &mut rows.slice(), &mut columns.slice(), &mut all.slice()).grid(1).launch().unwrap();
    check(&all.read(), Class::Rounded, |_| 3048.0);
}

#[kernel]
fn any_and_all_kernel<const M: usize, const N: usize>(x: Ptr<bool>, y: PtrMut<bool>, count: PtrMut<i32>) {
    let v = load(x + (arange(0, M)[(.., None)] * N + arange(0, N)[(None, ..)]));
    store(y + arange(0, M), any(v, axis = 1));
    store(y + arange(M, 2 * M), v.all(axis = 1));
    store(count, sum(v as i32));
    if any(v) && !all(v) {
        store(count + 1, 1);
    }
}

fn booleans(lab: &mut Lab) {
    of_shapes!(any_and_all, lab);
}

fn any_and_all<const M: usize, const N: usize>(lab: &mut Lab) {
    for share in [0, 1, 30, 31, 32] {
        let host: Vec<bool> = (0..M * N).map(|_| lab.below(32) < share).collect();
        let x = lab.input(&host);
        let (mut y, mut count) = (lab.output::<bool>(2 * M), lab.in_place(&[0i32, 0]));
        any_and_all_kernel::<M, N>(x.slice(), &mut y.slice(), &mut count.slice()).grid(1).launch().unwrap();
        let row = |i: usize| &host[i % M * N..(i % M + 1) * N];
        check_bits(&y.read(), |i| if i < M { row(i).contains(&true) } else { !row(i).contains(&false) });
        let held = host.iter().filter(|held| **held).count();
        check_ints(&count.read(), |i| if i == 0 { held as i128 } else { i128::from(held > 0 && held < host.len()) });
    }
}

#[kernel]
fn positions_kernel<T: Number, const M: usize, const N: usize>(x: Ptr<T>, rows: PtrMut<i64>, columns: PtrMut<i64>, all: PtrMut<i64>) {
    let v = load(x + (arange(0, M)[(.., None)] * N + arange(0, N)[(None, ..)]));
    store(rows + arange(0, M), argmax(v, axis = 1));
    store(rows + arange(M, 2 * M), v.argmin(axis = 1));
    store(columns + arange(0, N), argmax(v, axis = 0));
    store(columns + arange(N, 2 * N), argmin(v, axis = 0));
    store(all, argmax(v));
    store(all + 1, argmin(v));
}

/// Few different values, so that the first of equal ones is asked for; NaN among them, and nothing else in one row.
fn positions<T: Value + Number + Into<Wide>>(lab: &mut Lab) {
    of_shapes!(positions_of<T>, lab);
}

fn positions_of<T: Value + Number + Into<Wide>, const M: usize, const N: usize>(lab: &mut Lab) {
    let host: Vec<T> =
        (0..M * N).map(|at| T::near(if at / N == 2 || lab.below(5) == 0 { f64::NAN } else { lab.below(6) as f64 })).collect();
    let x = lab.input(&host);
    let (mut rows, mut columns, mut all) = (lab.output::<i64>(2 * M), lab.output::<i64>(2 * N), lab.output::<i64>(2));
    positions_kernel::<T, M, N>(x.slice(), &mut rows.slice(), &mut columns.slice(), &mut all.slice()).grid(1).launch().unwrap();
    let best = |is_max: bool, of: &mut dyn Iterator<Item = usize>| {
        let mut best: Option<(usize, f64)> = None;
        for (at, value) in of.map(|at| host[at].into().0).enumerate() {
            let better =
                best.is_none_or(|(_, known)| if is_max { value > known } else { value < known } || known.is_nan() && !value.is_nan());
            if better {
                best = Some((at, value));
            }
        }
        best.map_or(0, |(at, _)| at as i128)
    };
    check_ints(&rows.read(), |i| best(i < M, &mut (0..N).map(|column| i % M * N + column)));
    check_ints(&columns.read(), |i| best(i < N, &mut (0..M).map(|row| row * N + i % N)));
    check_ints(&all.read(), |i| best(i == 0, &mut (0..M * N)));
}

/// A number of any type as `f64`.
struct Wide(f64);

macro_rules! wide {
    ($($ty:ident),*) => {$(
        impl From<$ty> for Wide {
            fn from(value: $ty) -> Wide {
                Wide(value.to_string().parse().unwrap())
            }
        }
    )*};
}
wide!(i32, u64, f16, f32, f64);

#[kernel]
fn nan_kernel<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    let v = load(x + arange(0, N));
    store(y, max(v, axis = 0, propagate_nan = true));
    store(y + 1, v.min(propagate_nan = true));
    store(y + 2, max(v));
}

fn nan_propagates_on_request(lab: &mut Lab) {
    for index in [None, Some(0), Some(17), Some(63)] {
        let mut host = lab.numbers::<f32>(64, -1.0, 1.0);
        if let Some(index) = index {
            host[index] = f32::NAN;
        }
        let x = lab.input(&host);
        let mut y = lab.output::<f32>(3);
        nan_kernel::<64>(x.slice(), &mut y.slice()).grid(1).launch().unwrap();
        let (low, high) = host.iter().fold((f32::NAN, f32::NAN), |(low, high), value| (low.min(*value), high.max(*value)));
        let nan = |value: f32| if index.is_some() { f64::NAN } else { value.into() };
        check(&y.read(), Class::Rounded, |i| [nan(high), nan(low), high.into()][i]);
    }
}

#[kernel]
fn softmax_kernel<T: Float, const ROWS: usize, const COLS: usize>(x: Ptr<T>, y: PtrMut<T>, rows: usize, cols: usize) {
    let row = program_id(0) * ROWS + arange(0, ROWS);
    let col = arange(0, COLS);
    let offsets = row[(.., None)] * cols + col[(None, ..)];
    let mask = (row < rows)[(.., None)] & (col < cols)[(None, ..)];
    let v = load(x + offsets, mask = mask) as f32;
    let v = select(mask, v, f32::NEG_INFINITY);
    let e = exp(v - max(v, axis = 1, keep_dims = true));
    store(y + offsets, (e / sum(e, axis = 1)[(.., None)]) as T, mask = mask);
}

fn softmax(row: &[f64]) -> Vec<f64> {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = row.iter().map(|value| libm::exp(value - largest)).collect();
    let total: f64 = powers.iter().sum();
    powers.iter().map(|power| power / total).collect()
}

fn softmax_of_rows<T: FloatValue>(lab: &mut Lab) {
    for (rows, cols) in [(0, 7), (1, 1), (5, 64), (9, 33), (17, 50)] {
        let host = lab.numbers::<T>(rows * cols, -5.0, 5.0);
        let x = lab.input(&host);
        let mut y = lab.output::<T>(rows * cols);
        softmax_kernel::<T, 4, 64>(x.slice(), &mut y.slice(), rows, cols).grid(cdiv(rows, 4)).launch().unwrap();
        let want: Vec<f64> = host.chunks(cols).flat_map(|row| softmax(&row.iter().map(|value| value.wide()).collect::<Vec<_>>())).collect();
        // The computation is in `f32` whatever the type.
        let got: Vec<f32> = y.read().into_iter().map(|value| value.wide() as f32).collect();
        if T::DIGITS < 24 {
            check(&y.read(), Class::Math, |i| want[i]);
        } else {
            check(&got, Class::Chain(40), |i| want[i]);
        }
    }
}

#[kernel]
fn softmax_row_kernel<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let at = arange(0, N);
    let row = program_id(0) * n;
    let v = load(x + row + at, mask = at < n, other = f32::NEG_INFINITY);
    let e = exp(v - max(v));
    store(y + row + at, e / sum(e), mask = at < n);
}

fn softmax_of_one_row(lab: &mut Lab) {
    for n in [1, 127, 700, 1024] {
        let host = lab.numbers::<f32>(3 * n, -20.0, 20.0);
        let x = lab.input(&host);
        let mut y = lab.output::<f32>(3 * n);
        softmax_row_kernel::<1024>(x.slice(), &mut y.slice(), n).grid(3).launch().unwrap();
        let want: Vec<f64> = host.chunks(n).flat_map(|row| softmax(&row.iter().map(|value| (*value).into()).collect::<Vec<_>>())).collect();
        // The difference to the largest is rounded: half an ulp of 40, times what exp makes of it.
        check(&y.read(), Class::Chain(80), |i| want[i]);
    }
}

#[kernel]
fn layer_norm_kernel<T: Float, const N: usize>(
    x: Ptr<T>,
    weight: Ptr<T>,
    bias: Ptr<T>,
    y: PtrMut<T>,
    mean: PtrMut<f32>,
    rstd: PtrMut<f32>,
    n: usize,
    eps: f32,
) {
    let row = program_id(0);
    let at = arange(0, N);
    let mask = at < n;
    let v = load(x + row * n + at, mask = mask) as f32;
    let average = sum(v) / n as f32;
    let centred = select(mask, v - average, 0.0);
    let scale = rsqrt(sum(centred * centred) / n as f32 + eps);
    store(mean + row, average);
    store(rstd + row, scale);
    let result = centred * scale * load(weight + at, mask = mask) as f32 + load(bias + at, mask = mask) as f32;
    store(y + row * n + at, result as T, mask = mask);
}

fn layer_norm<T: FloatValue>(lab: &mut Lab) {
    for n in [1, 100, 256] {
        let rows = 5;
        let host = lab.numbers::<T>(rows * n, 1.0, 3.0);
        let (weights, biases) = (lab.numbers::<T>(n, 0.5, 1.0), lab.numbers::<T>(n, 4.0, 5.0));
        let (x, weight, bias) = (lab.input(&host), lab.input(&weights), lab.input(&biases));
        let (mut y, mut mean, mut rstd) = (lab.output::<T>(rows * n), lab.output::<f32>(rows), lab.output::<f32>(rows));
        layer_norm_kernel::<T, 256>(x.slice(), weight.slice(), bias.slice(), &mut y.slice(), &mut mean.slice(), &mut rstd.slice(), n, 0.1)
            .grid(rows)
            .launch()
            .unwrap();
        let row = |i: usize| host[i * n..(i + 1) * n].iter().map(|value| value.wide());
        let averages: Vec<f64> = (0..rows).map(|i| row(i).sum::<f64>() / n as f64).collect();
        let variance = |i: usize| row(i).map(|value| (value - averages[i]).powi(2)).sum::<f64>() / n as f64;
        let scales: Vec<f64> = (0..rows).map(|i| 1.0 / (variance(i) + f64::from(0.1f32)).sqrt()).collect();
        check(&mean.read(), Class::Chain(12), |i| averages[i]);
        check(&rstd.read(), Class::Chain(40), |i| scales[i]);
        let got: Vec<f32> = y.read().iter().map(|value| value.wide() as f32).collect();
        let want = |i: usize| (host[i].wide() - averages[i / n]) * scales[i / n] * weights[i % n].wide() + biases[i % n].wide();
        if T::DIGITS < 24 {
            check(&y.read(), Class::Math, want);
        } else {
            check(&got, Class::Chain(20), want);
        }
    }
}

/// Mean and variance in one pass: count, mean and sum of squares of two runs, combined.
#[kernel]
fn welford_kernel<const M: usize, const N: usize>(x: Ptr<f32>, mean: PtrMut<f32>, variance: PtrMut<f32>) {
    let at = arange(0, M)[(.., None)] * N + arange(0, N)[(None, ..)];
    let v = load(x + at);
    let one = full([M, N], 1.0f32);
    let zero = zeros::<f32>([M, N]);
    let (count, average, squares) = reduce((one, v, zero), 1, |(n, a, p), (m, b, q)| {
        let total = n + m;
        let delta = b - a;
        let share = m / total;
        (total, a + delta * share, p + q + delta * delta * n * share)
    });
    store(mean + arange(0, M), average);
    store(variance + arange(0, M), squares / count);
}

fn welford(lab: &mut Lab) {
    of_shapes!(welford_of, lab);
}

fn welford_of<const M: usize, const N: usize>(lab: &mut Lab) {
    let host = lab.numbers::<f32>(M * N, 10.0, 20.0);
    let x = lab.input(&host);
    let (mut mean, mut variance) = (lab.output::<f32>(M), lab.output::<f32>(M));
    welford_kernel::<M, N>(x.slice(), &mut mean.slice(), &mut variance.slice()).grid(1).launch().unwrap();
    let row = |i: usize| host[i * N..(i + 1) * N].iter().map(|value| f64::from(*value));
    let average = |i: usize| row(i).sum::<f64>() / N as f64;
    check(&mean.read(), Class::Chain(12), average);
    for (i, got) in variance.read().into_iter().map(f64::from).enumerate() {
        let want = row(i).map(|value| (value - average(i)).powi(2)).sum::<f64>() / N as f64;
        // The averages of runs round, as numbers of their own size, and what is squared is their difference.
        let allowed = 30.0 * f64::from(f32::EPSILON) * (want + want.sqrt() * average(i));
        assert!((got - want).abs() <= allowed, "row {i}: got {got:e}, want {want:e}, allowed {allowed:e}");
    }
}

/// Linear functions `a * x + b` one after the other, modulo 2^32: associative, but nothing may be reordered.
#[kernel]
fn compositions_kernel<const M: usize, const N: usize, const SCALE: i64>(a: Ptr<u32>, b: Ptr<u32>, y: PtrMut<u32>) {
    let at = arange(0, M)[(.., None)] * N + arange(0, N)[(None, ..)];
    let (slopes, offsets) = (load(a + at) * (SCALE as u32), load(b + at));
    let (slope, offset) = reduce((slopes, offsets), 0, |(a, b), (c, d)| (a * c, b * c + d), keep_dims = true);
    let (slope, offset) = reduce((slope, offset), 1, |(a, b), (c, d)| (a * c, b * c + d));
    store(y + arange(0, 1), slope);
    store(y + 1 + arange(0, 1), offset);
}

fn order_is_preserved(lab: &mut Lab) {
    of_shapes!(order_is_preserved_of, lab);
}

fn order_is_preserved_of<const M: usize, const N: usize>(lab: &mut Lab) {
    let (slopes, offsets) = (lab.values::<u32>(M * N), lab.values::<u32>(M * N));
    let (a, b) = (lab.input(&slopes), lab.input(&offsets));
    let mut y = lab.output::<u32>(2);
    compositions_kernel::<M, N, 3>(a.slice(), b.slice(), &mut y.slice()).grid(1).launch().unwrap();
    let (mut slope, mut offset) = (1u32, 0u32);
    // Down each column, then along the row of columns.
    for at in 0..M * N {
        let at = at % M * N + at / M;
        let by = slopes[at].wrapping_mul(3);
        (slope, offset) = (slope.wrapping_mul(by), offset.wrapping_mul(by).wrapping_add(offsets[at]));
    }
    check_bits(&y.read(), |i| [slope, offset][i]);
}

/// The largest element of each row, a block of columns at a time.
#[kernel]
fn row_maxima_kernel<const M: usize, const N: usize>(x: Ptr<i32>, y: PtrMut<i32>, rows: usize, cols: usize, low: i32) {
    let row = program_id(0) * M + arange(0, M);
    let mut largest = full([M], i32::MIN);
    for start in (0..cols).step_by(N) {
        let col = start + arange(0, N);
        let mask = (row < rows)[(.., None)] & (col < cols)[(None, ..)];
        let v = load(x + row[(.., None)] * cols + col[(None, ..)], mask = mask, other = i32::MIN);
        largest = max(largest, reduce(v, 1, |a, b| max(max(a, b), low)));
    }
    store(y + row, largest, mask = row < rows);
}

fn a_reduction_in_a_loop(lab: &mut Lab) {
    for (rows, cols) in [(1, 1), (7, 100), (20, 33)] {
        let host = lab.values::<i32>(rows * cols);
        let x = lab.input(&host);
        let mut y = lab.output::<i32>(rows);
        row_maxima_kernel::<8, 32>(x.slice(), &mut y.slice(), rows, cols, -7).grid(cdiv(rows, 8)).launch().unwrap();
        check_ints(&y.read(), |i| i128::from(*host[i * cols..(i + 1) * cols].iter().max().unwrap()).max(-7));
    }
}
