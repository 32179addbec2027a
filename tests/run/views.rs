//! Views: tensors whose shape travels with them, read and written by blocks that may stick out on every side.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::{Class, check, check_bits, check_ints};
use crate::value::{FloatValue, Value};

tests![
    copies<bool, u8, bf16, f32, i64>,
    transposes<f16, i32>,
    blocks_that_stick_out<i32, f64>,
    single_rows_that_stick_out,
    slices_of_a_tensor,
    vectors<u16, f32>,
    cubes,
    row_sums<f32, f64>,
    views_of_pointers,
    a_view_of_another_rank_is_an_error,
    checked_launches_find_nothing_outside,
];

#[kernel]
fn copy_kernel<T: Element, const M: usize, const N: usize>(x: View<T, 2>, y: ViewMut<T, 2>) {
    let (i, j) = (program_id(0) * M, program_id(1) * N);
    y.store([i, j], x.load([i, j], [M, N]));
}

/// A tensor of that shape on the lab's device.
fn matrix<T: Value>(lab: &Lab, host: &[T], m: usize, n: usize) -> Tensor<T> {
    lab.device.tensor(host).unwrap().reshape([m, n]).unwrap()
}

fn copies<T: Value>(lab: &mut Lab) {
    for (m, n) in [(0, 3), (1, 1), (16, 64), (33, 7), (50, 131)] {
        let host = lab.values::<T>(m * n);
        let x = matrix(lab, &host, m, n);
        let mut y = matrix(lab, &lab_noise::<T>(m * n), m, n);
        copy_kernel::<T, 16, 64>(&x, &mut y).grid((cdiv(m, 16), cdiv(n, 64))).launch().unwrap();
        check_bits(&y.to_vec().unwrap(), |i| host[i]);
        let mut z = matrix(lab, &lab_noise::<T>(m * n), m, n);
        copy_kernel::<T, 3, 40>(x.view(), &mut z.view_mut()).grid((cdiv(m, 3), cdiv(n, 40))).launch().unwrap();
        check_bits(&z.to_vec().unwrap(), |i| host[i]);
        let mut rows = matrix(lab, &lab_noise::<T>(m * n), m, n);
        copy_kernel::<T, 1, 96>(&x, &mut rows).grid((m, cdiv(n, 96))).launch().unwrap();
        check_bits(&rows.to_vec().unwrap(), |i| host[i]);
        let mut columns = matrix(lab, &lab_noise::<T>(m * n), m, n);
        copy_kernel::<T, 20, 1>(&x, &mut columns).grid((cdiv(m, 20), n)).launch().unwrap();
        check_bits(&columns.to_vec().unwrap(), |i| host[i]);
    }
}

/// One row, far outside in either direction.
#[kernel]
fn row_kernel<const N: usize>(x: View<i32, 2>, y: PtrMut<i32>, i: i64, j: i64) {
    store(y + arange(0, N), x.load([i, j], [1, N]).squeeze(0));
    let column = x.load([j, i], [N, 1], other = 5);
    store(y + N + arange(0, N), column.squeeze(1));
}

fn single_rows_that_stick_out(lab: &mut Lab) {
    let (m, n) = (9, 13);
    let host = lab.values::<i32>(m * n);
    let x = matrix(lab, &host, m, n);
    for (i, j) in [(0, 0), (8, 12), (9, 0), (-1, 0), (3, -7), (3, 13), (i64::MIN, 0), (4, i64::MAX), (i64::MAX, i64::MIN)] {
        let mut y = lab.output::<i32>(32);
        row_kernel::<16>(&x, &mut y.slice(), i, j).grid(1).launch().unwrap();
        check_ints(&y.read(), |lane| {
            let along = i128::from(j) + lane as i128 % 16;
            let (row, column, other) = if lane < 16 { (i.into(), along, 0) } else { (along, i.into(), 5) };
            let inside = (0..m as i128).contains(&row) && (0..n as i128).contains(&column);
            if inside { host[row as usize * n + column as usize].into() } else { other }
        });
    }
}

fn lab_noise<T: Value>(len: usize) -> Vec<T> {
    vec![T::from_bits(0x5a5a_5a5a_5a5a_5a5b); len]
}

#[kernel]
fn transpose_kernel<T: Element, const M: usize, const N: usize>(x: View<T, 2>, y: ViewMut<T, 2>) {
    let (i, j) = (program_id(0) * M, program_id(1) * N);
    y.store([j, i], trans(x.load([i, j], [M, N])));
}

fn transposes<T: Value>(lab: &mut Lab) {
    for (m, n) in [(1, 5), (32, 32), (45, 70)] {
        let host = lab.values::<T>(m * n);
        let x = matrix(lab, &host, m, n);
        let mut y = matrix(lab, &lab_noise::<T>(m * n), n, m);
        transpose_kernel::<T, 16, 32>(&x, &mut y).grid((cdiv(m, 16), cdiv(n, 32))).launch().unwrap();
        check_bits(&y.to_vec().unwrap(), |i| host[i % m * n + i / m]);
    }
}

/// A block anywhere, also far outside: what is not there reads as `other`, or 0, and is not stored.
#[kernel]
fn block_kernel<T: Element, const M: usize, const N: usize>(x: View<T, 2>, y: ViewMut<T, 2>, tile: PtrMut<T>, i: i64, j: i64, other: T) {
    let at = arange(0, M)[(.., None)] * N + arange(0, N)[(None, ..)];
    let v = x.load([i, j], [M, N], other = other);
    store(tile + at, v);
    store(tile + M * N + at, x.load([i, j], [M, N], cache = "cg"));
    y.store([j, i], v, evict = "evict_first");
}

fn blocks_that_stick_out<T: Value>(lab: &mut Lab) {
    let (m, n) = (9, 13);
    let host = lab.values::<T>(m * n);
    let x = matrix(lab, &host, m, n);
    let other = T::near(7.0);
    for (i, j) in [(0, 0), (-1, 5), (3, -2), (7, 11), (-8, -16), (9, 0), (0, 13), (i64::MIN, 0), (2, i64::MAX), (-3, i64::MIN + 1)] {
        let before = lab.values::<T>(m * n);
        let mut y = matrix(lab, &before, m, n);
        let mut tile = lab.output::<T>(2 * 8 * 16);
        block_kernel::<T, 8, 16>(&x, &mut y, &mut tile.slice(), i, j, other).grid(1).launch().unwrap();
        // In 128 bits nothing wraps.
        let element = |row: i128, column: i128| {
            let inside = (0..m as i128).contains(&row) && (0..n as i128).contains(&column);
            inside.then(|| host[row as usize * n + column as usize])
        };
        let at = |lane: usize| element(i128::from(i) + lane as i128 / 16, i128::from(j) + lane as i128 % 16);
        check_bits(&tile.read(), |lane| at(lane % 128).unwrap_or(if lane < 128 { other } else { T::from_bits(0) }));
        check_bits(&y.to_vec().unwrap(), |index| {
            let (row, column) = ((index / n) as i128 - i128::from(j), (index % n) as i128 - i128::from(i));
            if (0..8).contains(&row) && (0..16).contains(&column) {
                return at((row * 16 + column) as usize).unwrap_or(other);
            }
            before[index]
        });
    }
}

/// A part of a tensor is a tensor of its own: beside its rows is nothing.
fn slices_of_a_tensor(lab: &mut Lab) {
    let (m, n) = (20, 11);
    let (host, before) = (lab.values::<i32>(m * n), lab.values::<i32>(m * n));
    let x = matrix(lab, &host, m, n);
    let mut y = matrix(lab, &before, m, n);
    copy_kernel::<i32, 16, 16>(x.slice(3..8).unwrap(), &mut y.slice_mut(10..15).unwrap()).grid((1, 1)).launch().unwrap();
    check_bits(&y.to_vec().unwrap(), |i| if (10..15).contains(&(i / n)) { host[i - 7 * n] } else { before[i] });
}

#[kernel]
fn vector_kernel<T: Element, const N: usize>(x: View<T, 1>, y: ViewMut<T, 1>, by: i64) {
    let at = program_id(0) * N;
    y.store([at], x.load([at + by], [N]));
}

fn vectors<T: Value>(lab: &mut Lab) {
    for n in [0, 1, 100, 1000] {
        for by in [0, 1, -5] {
            let host = lab.values::<T>(n);
            let x = lab.input(&host);
            let mut y = lab.output::<T>(n);
            vector_kernel::<T, 64>(x.slice(), &mut y.slice(), by).grid(cdiv(n, 64)).launch().unwrap();
            let zero = T::from_bits(0);
            check_bits(&y.read(), |i| usize::try_from(i as i64 + by).ok().and_then(|at| host.get(at)).copied().unwrap_or(zero));
        }
    }
}

#[kernel]
fn cube_kernel<const A: usize, const B: usize, const C: usize>(x: View<i32, 3>, y: ViewMut<i32, 3>) {
    let i = program_id(0) * A;
    for j in (0..extent(x, 1)).step_by(B) {
        for k in (0..extent(x, -1)).step_by(C) {
            y.store([k, i, j], permute(x.load([i, j, k], [A, B, C]), [2, 0, 1]));
        }
    }
}

fn cubes(lab: &mut Lab) {
    let (a, b, c) = (5, 6, 9);
    let host = lab.values::<i32>(a * b * c);
    let x = lab.device.tensor(&host).unwrap().reshape([a, b, c]).unwrap();
    let mut y = lab.device.tensor(&lab_noise::<i32>(a * b * c)).unwrap().reshape([c, a, b]).unwrap();
    cube_kernel::<4, 2, 4>(&x, &mut y).grid(cdiv(a, 4)).launch().unwrap();
    check_bits(&y.to_vec().unwrap(), |index| {
        let (k, i, j) = (index / (a * b), index / b % a, index % b);
        host[(i * b + j) * c + k]
    });
}

#[kernel]
fn row_sums_kernel<T: Float, const M: usize, const N: usize>(x: View<T, 2>, y: ViewMut<T, 1>) {
    let row = program_id(0) * M;
    let mut total = zeros::<T>([M]);
    for column in (0..extent(x, 1)).step_by(N) {
        total += sum(x.load([row, column], [M, N]), axis = 1);
    }
    y.store([row], total);
}

fn row_sums<T: FloatValue>(lab: &mut Lab) {
    for (m, n) in [(1, 1), (7, 100), (16, 64), (9, 200)] {
        let host = lab.numbers::<T>(m * n, 0.0, 1.0);
        let x = matrix(lab, &host, m, n);
        let mut y = lab.output::<T>(m);
        row_sums_kernel::<T, 4, 48>(&x, &mut y.slice()).grid(cdiv(m, 4)).launch().unwrap();
        let class = Class::Chain(if T::DIGITS == 53 { 100 } else { 20 });
        check(&y.read(), class, |row| host[row * n..][..n].iter().map(|value| value.wide()).sum());
    }
}

/// Any strides: columns, every second row from the last one on, one row for all; and a pointer that begins somewhere.
#[kernel]
fn pointer_kernel<const M: usize, const N: usize>(x: Ptr<i64>, y: PtrMut<i64>, m: usize, n: usize) {
    let columns = view(x, [n, m], [1, n]);
    let backwards = view(x + (m - 1) * n, [cdiv(m, 2), n], [-2 * n, 1]);
    let same = view(x + n, [M, n], [0, 1]);
    let out = view(y + 1, [3 * M, n], [n, 1]);
    out.store([0, 0], trans(columns.load([0, 0], [N, M])));
    out.store([M, 0], backwards.load([0, 0], [M, N]));
    out.store([2 * M, 0], same.load([0, 0], [M, N]));
}

fn views_of_pointers(lab: &mut Lab) {
    let (m, n) = (6, 5);
    let host = lab.values::<i64>(m * n);
    let x = lab.input(&host);
    let mut y = lab.output::<i64>(1 + 3 * 8 * n);
    pointer_kernel::<8, 8>(x.slice(), &mut y.slice(), m, n).grid(1).launch().unwrap();
    let first = y.before()[0];
    check_ints(&y.read(), |i| {
        if i == 0 {
            return first.into();
        }
        let (row, column) = ((i - 1) / n, (i - 1) % n);
        let element = |row: usize| i128::from(host[row * n + column]);
        match row {
            0..6 => element(row),
            6..8 => 0,
            8..11 => element(m - 1 - 2 * (row - 8)),
            11..16 => 0,
            _ => element(1),
        }
    });
}

fn a_view_of_another_rank_is_an_error(lab: &mut Lab) {
    let x = lab.device.zeros::<f32>(12).unwrap();
    let mut y = matrix(lab, &[0.0f32; 12], 3, 4);
    let error = copy_kernel::<f32, 4, 4>(&x, &mut y).grid((1, 1)).launch().unwrap_err();
    assert!(matches!(&error, Error::ViewRank { argument: "x", expected: 2, shape, .. } if *shape == [12]), "{error}");
    assert!(error.to_string().contains("argument `x` has the shape [12], and the kernel takes 2 axes"), "{error}");
}

/// Elements outside of a view are meant to be left out: they are no violations.
fn checked_launches_find_nothing_outside(lab: &mut Lab) {
    let host = lab.values::<u8>(7 * 9);
    let x = matrix(lab, &host, 7, 9);
    let mut y = matrix(lab, &lab_noise::<u8>(63), 7, 9);
    copy_kernel::<u8, 16, 64>(&x, &mut y).grid((1, 1)).checked().launch().unwrap();
    check_bits(&y.to_vec().unwrap(), |i| host[i]);
}
