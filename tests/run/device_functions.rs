//! Functions that are written in the language: the library's and the user's.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::{Class, check, check_bits};
use crate::value::FloatValue;

tests![programs_in_groups, tiles_in_groups, activations<f16, bf16, f32, f64>, across_crates<f16, bf16, f32, f64>, closures<f16, bf16, f32>];

mod activation {
    use galatea::prelude::*;

    /// `x` where it is positive, else a part of it.
    #[device]
    pub(super) fn leaky_relu<T: Float>(x: Value<T>, #[option(0.125)] slope: T) -> Value<T> {
        let (positive, negative) = parts(x);
        positive + negative * slope
    }

    #[device]
    fn parts<T: Number>(x: Value<T>) -> (Value<T>, Value<T>) {
        (max(x, 0), min(x, 0))
    }
}

#[device]
fn window<const N: usize>(n: usize) -> (Value<usize>, Value<bool>) {
    let offsets = program_id(0) * N + arange(0, N);
    (offsets, offsets < n)
}

#[kernel]
fn activations_kernel<T: Float, const N: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let (offsets, inside) = window::<N>(n);
    let v = load(x + offsets, mask = inside);
    store(y + offsets, activation::leaky_relu(v) + activation::leaky_relu::<T>(v, slope = 0.5), mask = inside);
}

fn activations<T: FloatValue>(lab: &mut Lab) {
    for n in [1, 63, 64, 1000] {
        let host = lab.numbers::<T>(n, -8.0, 8.0);
        let x = lab.input(&host);
        let mut y = lab.output::<T>(n);
        activations_kernel::<T, 64>(x.slice(), &mut y.slice(), n).grid(cdiv(n, 64)).launch().unwrap();
        // Each slope rounds: exact, but for subnormal numbers.
        let leaky = |v: f64, slope: f64| if v > 0.0 { v } else { T::near(v * slope).wide() };
        check(&y.read(), Class::Rounded, |i| leaky(host[i].wide(), 0.125) + leaky(host[i].wide(), 0.5));
    }
}

/// Functions of another crate, by their paths, imported, imported with others, and under another name.
mod elsewhere {
    use activations::silu as swish;
    use activations::*;
    use galatea::prelude::*;

    #[kernel]
    pub(super) fn by_path<T: Float, const N: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
        let (offsets, inside) = ::activations::window::<N>(n);
        activations::apply(x, y, offsets, mask = inside);
    }

    #[kernel(T = [f32], N = [32])]
    pub(super) fn by_name<T: Float, const N: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
        let (offsets, inside) = window::<N>(n);
        let v = load(x + offsets, mask = inside);
        store(y + offsets, swish(swish(v)), mask = inside);
    }
}

fn across_crates<T: FloatValue>(lab: &mut Lab) {
    for n in [1, 31, 32, 500] {
        let host = lab.numbers::<T>(n, -8.0, 8.0);
        let x = lab.input(&host);
        let (mut y, mut z) = (lab.output::<T>(n), lab.output::<T>(n));
        elsewhere::by_path::<T, 32>(x.slice(), &mut y.slice(), n).grid(cdiv(n, 32)).launch().unwrap();
        elsewhere::by_name::<T, 32>(x.slice(), &mut z.slice(), n).grid(cdiv(n, 32)).launch().unwrap();
        let (y, z) = (y.read(), z.read());
        check_bits(&z, |i| y[i]);
        let silu = |x: f64| x / (1.0 + (-x).exp());
        for (i, got) in y.iter().enumerate() {
            let want = silu(silu(host[i].wide()));
            // Two roundings to `T` and a few in `f32`, of numbers that do not cancel.
            let bound = want.abs() * (4.0 * 2f64.powi(-T::DIGITS) + 16.0 * 2f64.powi(-24)) + 1e-6;
            assert!((got.wide() - want).abs() <= bound, "silu(silu({})): {} for {want}", host[i].wide(), got.wide());
        }
    }
}

#[kernel]
fn programs_in_groups_kernel(y: PtrMut<i64>, group: usize) {
    let (rows, columns) = (num_programs(0), num_programs(1));
    let (i, j) = (program_id(0), program_id(1));
    let (row, column) = swizzle2d(i, j, rows, columns, group);
    let at = 2 * (i * columns + j);
    store(y + at, row);
    store(y + at + 1, column);
}

/// The order that the documentation promises, written out: group by group, each column by column.
fn grouped(rows: usize, columns: usize, group: usize) -> Vec<(i64, i64)> {
    let mut order = Vec::new();
    for first in (0..rows).step_by(group) {
        for column in 0..columns {
            for row in first..rows.min(first + group) {
                order.push((row as i64, column as i64));
            }
        }
    }
    order
}

fn programs_in_groups(lab: &mut Lab) {
    for (rows, columns, group) in [(1, 1, 1), (7, 5, 3), (8, 3, 4), (5, 9, 8), (6, 6, 1)] {
        let mut y = lab.output::<i64>(2 * rows * columns);
        programs_in_groups_kernel(&mut y.slice(), group).grid((rows, columns)).launch().unwrap();
        let got: Vec<(i64, i64)> = y.read().chunks(2).map(|pair| (pair[0], pair[1])).collect();
        assert_eq!(got, grouped(rows, columns, group), "{rows} x {columns} in groups of {group}");
    }
}

#[kernel]
fn tiles_in_groups_kernel<const N: usize>(y: PtrMut<i32>, rows: i32, columns: i32, group: i32) {
    let index = arange(0, N);
    let (row, column) = swizzle2d(0, index as i32, rows, columns, group);
    let mask = index < rows * columns;
    store(y + 2 * index, row, mask = mask);
    store(y + 2 * index + 1, column, mask = mask);
}

fn tiles_in_groups(lab: &mut Lab) {
    for (rows, columns, group) in [(7i32, 9i32, 4i32), (3, 11, 2), (1, 64, 5)] {
        let mut y = lab.output::<i32>((2 * rows * columns) as usize);
        tiles_in_groups_kernel::<64>(&mut y.slice(), rows, columns, group).grid(1).launch().unwrap();
        let got: Vec<(i64, i64)> = y.read().chunks(2).map(|pair| (i64::from(pair[0]), i64::from(pair[1]))).collect();
        assert_eq!(got, grouped(rows as usize, columns as usize, group as usize), "{rows} x {columns} in groups of {group}");
    }
}

/// A loop over a row that knows nothing of what it combines, nor how.
#[device]
fn along_row<T: Float, const N: usize>(
    x: Ptr<T>,
    n: usize,
    start: f32,
    f: impl Fn(Value<f32>) -> Value<f32>,
    combine: impl Fn(f32, f32) -> f32,
) -> f32 {
    let mut row = full::<f32>([N], start);
    for first in range(0, n, N) {
        let offsets = first + arange(0, N);
        let v = f(load(x + offsets, mask = offsets < n) as f32);
        row = select(offsets < n, row + v, row);
    }
    reduce(row, 0, combine)
}

#[kernel]
fn closures_kernel<T: Float, const N: usize>(x: Ptr<T>, y: PtrMut<f32>, n: usize, shift: f32) {
    let row = x + program_id(0) * n;
    let squares = along_row::<T, N>(row, n, 0.0, |v| (v + shift) * (v + shift), |a, b| a + b);
    let largest = along_row::<T, N>(row, min(n, N), 0.0, |v| v, |a, b| max(a, b));
    store(y + 2 * program_id(0), squares);
    store(y + 2 * program_id(0) + 1, largest);
}

fn closures<T: FloatValue>(lab: &mut Lab) {
    for n in [1, 31, 32, 100] {
        // Small integers: every sum is exact.
        let host: Vec<T> = lab.numbers::<T>(3 * n, -20.0, 20.0).into_iter().map(|v| T::near(v.wide().round())).collect();
        let x = lab.input(&host);
        let mut y = lab.output::<f32>(6);
        closures_kernel::<T, 32>(x.slice(), &mut y.slice(), n, 2.0).grid(3).launch().unwrap();
        let got = y.read();
        for (row, got) in host.chunks(n).zip(got.chunks(2)) {
            let squares: f64 = row.iter().map(|v| (v.wide() + 2.0).powi(2)).sum();
            // Lanes beyond the row hold 0.
            let floor = if n < 32 { 0.0 } else { f64::NEG_INFINITY };
            let largest = row.iter().take(32).map(|v| v.wide()).fold(floor, f64::max);
            assert_eq!((f64::from(got[0]), f64::from(got[1])), (squares, largest), "{row:?}");
        }
    }
}
