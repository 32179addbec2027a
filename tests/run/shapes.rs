//! Tiles of several axes: broadcasting, transposing, reshaping, and the memory behind them.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::{Class, check, check_bits, check_ints};
use crate::value::Value;

tests![
    transposes<bool, u8, f16, f32, i64>,
    outer_products,
    rows_meet_columns,
    cubes<u8, f32, i64>,
    reshapes<f16, f32, u64>,
    a_tile_larger_than_the_tensor,
    tiles_of_every_rank,
    loops_carry_matrices,
];

/// Rows and columns of a matrix, and a block's position in it.
const SIZES: [(usize, usize); 7] = [(0, 5), (1, 1), (3, 70), (16, 32), (33, 31), (64, 64), (100, 257)];

#[kernel]
fn transpose_kernel<T: Element, const M: usize, const N: usize>(x: Ptr<T>, y: PtrMut<T>, m: usize, n: usize) {
    let rows = program_id(0) * M + arange(0, M);
    let columns = program_id(1) * N + arange(0, N);
    let mask = (rows < m)[(.., None)] & (columns < n)[(None, ..)];
    let tile = load(x + rows[(.., None)] * n + columns[(None, ..)], mask = mask);
    store(y + columns[(.., None)] * m + rows[(None, ..)], trans(tile), mask = trans(mask));
}

fn transposes<T: Value>(lab: &mut Lab) {
    for (m, n) in SIZES {
        let host = lab.values::<T>(m * n);
        let x = lab.input(&host);
        let (mut y, mut z) = (lab.output::<T>(m * n), lab.output::<T>(m * n));
        transpose_kernel::<T, 16, 32>(x.slice(), &mut y.slice(), m, n).grid((cdiv(m, 16), cdiv(n, 32))).launch().unwrap();
        transpose_kernel::<T, 64, 1>(x.slice(), &mut z.slice(), m, n).grid((cdiv(m, 64), n)).launch().unwrap();
        for got in [y.read(), z.read()] {
            check_bits(&got, |i| host[i % m * n + i / m]);
        }
    }
}

#[kernel]
fn outer_product_kernel<const M: usize, const N: usize>(a: Ptr<f32>, b: Ptr<f32>, y: PtrMut<f32>, m: usize, n: usize) {
    let rows = program_id(0) * M + arange(0, M);
    let columns = arange(0, N);
    let left = load(a + rows, mask = rows < m)[(.., None)];
    let right = load((b + columns)[(None, ..)], mask = (columns < n)[(None, ..)]);
    let mask = rows[(.., None)] < m && columns[(None, ..)] < n;
    store(y + (rows[(.., None)] * n + columns[(None, ..)]), left * right, mask = mask);
}

fn outer_products(lab: &mut Lab) {
    for (m, n) in SIZES.into_iter().filter(|(_, n)| *n <= 128) {
        let (left, right) = (lab.values::<f32>(m), lab.values::<f32>(n));
        let (a, b) = (lab.input(&left), lab.input(&right));
        let mut y = lab.output::<f32>(m * n);
        outer_product_kernel::<8, 128>(a.slice(), b.slice(), &mut y.slice(), m, n).grid(cdiv(m, 8)).launch().unwrap();
        check(&y.read(), Class::Rounded, |i| f64::from(left[i / n]) * f64::from(right[i % n]));
    }
}

/// Comparisons, `select`, `fma`, casts and `other` of a row and a column.
#[kernel]
fn rows_and_columns_kernel<const M: usize, const N: usize>(x: Ptr<i32>, y: PtrMut<i64>, limit: i32) {
    let rows = arange(0, M)[(.., None)];
    let columns = arange(0, N)[(None, ..)];
    let at = rows * N + columns;
    let v = load(x + at, mask = columns >= rows, other = rows as i32 - 100);
    let chosen = select(columns == rows, limit, v);
    store(y + at, max(chosen as i64, rows) - columns, mask = columns < 9);
}

fn rows_meet_columns(lab: &mut Lab) {
    let host = lab.numbers::<i32>(16 * 8, -50.0, 50.0);
    let x = lab.input(&host);
    let mut y = lab.output::<i64>(8 * 16);
    rows_and_columns_kernel::<8, 16>(x.slice(), &mut y.slice(), 7).grid(1).launch().unwrap();
    let before: Vec<i64> = y.before().to_vec();
    check_ints(&y.read(), |i| {
        let (row, column) = ((i / 16) as i64, (i % 16) as i64);
        let v = if column >= row { i64::from(host[i]) } else { row - 100 };
        let chosen = if column == row { 7 } else { v };
        if column < 9 { i128::from(chosen.max(row) - column) } else { before[i].into() }
    });
}

#[kernel]
fn cube_kernel<T: Element, const A: usize, const B: usize, const C: usize>(x: Ptr<T>, y: PtrMut<T>, z: PtrMut<T>) {
    let at = arange(0, A)[(.., None, None)] * (B * C) + arange(0, B)[(None, .., None)] * C + arange(0, C)[(None, None, ..)];
    let cube = load(x + at);
    let turned = permute(cube, [2, 0, 1]);
    store(y + reshape(arange(0, A * B * C), [C, A, B]), turned);
    store(z + permute(at, [1, 2, 0]), permute(turned, [-1, 0, 1]));
}

fn cubes<T: Value>(lab: &mut Lab) {
    let (a, b, c) = (4, 2, 8);
    let host = lab.values::<T>(a * b * c);
    let x = lab.input(&host);
    let (mut y, mut z) = (lab.output::<T>(a * b * c), lab.output::<T>(a * b * c));
    cube_kernel::<T, 4, 2, 8>(x.slice(), &mut y.slice(), &mut z.slice()).grid(1).launch().unwrap();
    check_bits(&y.read(), |i| host[i / b % a * b * c + i % b * c + i / (a * b)]);
    check_bits(&z.read(), |i| host[i]);
}

/// Neighbours are swapped: a tile as pairs, turned twice and flat again.
#[kernel]
fn pairs_kernel<T: Element, const N: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let at = program_id(0) * N + arange(0, N);
    let pairs = load(x + at, mask = at < n).reshape([N / 2, 2]);
    let first = trans(pairs).reshape([N]);
    store(y + at, first, mask = at < n);
    store(y + at, reshape(pairs, [2, N / 4, 2]).reshape([N]), mask = at + 7 < n);
}

fn reshapes<T: Value>(lab: &mut Lab) {
    for n in [0, 1, 63, 128, 1000] {
        let host = lab.values::<T>(n);
        let x = lab.input(&host);
        let mut y = lab.output::<T>(n);
        pairs_kernel::<T, 64>(x.slice(), &mut y.slice(), n).grid(cdiv(n, 64)).launch().unwrap();
        let zero = T::from_bits(0);
        check_bits(&y.read(), |i| {
            let (block, lane) = (i / 64 * 64, i % 64);
            let from = if i + 7 < n { i } else { block + lane % 32 * 2 + lane / 32 };
            host.get(from).copied().unwrap_or(zero)
        });
    }
}

/// Without any mask: what lies outside is read as 0 and not written.
#[kernel]
fn copy_block<const M: usize, const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, stride: usize) {
    let at = arange(0, M)[(.., None)] * stride + arange(0, N)[(None, ..)];
    store(y + at, load(x + at) + 1.0);
}

fn a_tile_larger_than_the_tensor(lab: &mut Lab) {
    for n in [0, 1, 17, 255] {
        let host = lab.values::<f32>(n);
        let x = lab.input(&host);
        let mut y = lab.output::<f32>(n);
        copy_block::<16, 16>(x.slice(), &mut y.slice(), 16).grid(1).launch().unwrap();
        check(&y.read(), Class::Rounded, |i| f64::from(host[i]) + 1.0);
        let checked = copy_block::<16, 16>(x.slice(), &mut y.slice(), 16).grid(1).checked().launch();
        let text = checked.expect_err("256 lanes do not fit").to_string();
        // On a GPU whichever thread is first speaks.
        assert!((n..256).any(|index| text.contains(&format!("load at index {index} of `x`"))), "{text}");
    }
}

#[kernel]
fn ranks_kernel<const K: usize>(y: PtrMut<f32>) {
    let a = full([1], 1.0f32);
    let b = zeros::<f32>([2, K]) + a[(None, ..)];
    let c = b[(None, .., None, ..)] + full([2, 1, 1, 1], 2.0f32);
    let d = broadcast_to(expand_dims(c, -1), [2, 2, 1, K, 2]);
    store(y + reshape(arange(0, 8 * K), [2, 2, 1, K, 2]), d * 3.0);
}

fn tiles_of_every_rank(lab: &mut Lab) {
    let mut y = lab.output::<f32>(32);
    ranks_kernel::<4>(&mut y.slice()).grid(1).launch().unwrap();
    check(&y.read(), Class::Rounded, |_| 9.0);
}

/// The sum of the matrices of a stack.
#[kernel]
fn stack_kernel<const M: usize, const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, count: usize) {
    let mut at = arange(0, M)[(.., None)] * N + arange(0, N)[(None, ..)];
    let here = at;
    let mut total = zeros::<f32>([M, N]);
    let mut turned = zeros::<f32>([N, M]);
    for _ in 0..count {
        let v = load(x + at);
        total += v;
        turned = turned + trans(v);
        at += M * N;
    }
    store(y + here, total - trans(turned) + total);
}

fn loops_carry_matrices(lab: &mut Lab) {
    for count in [0, 1, 5] {
        let host = lab.numbers::<f32>(count * 32, 0.0, 1.0);
        let x = lab.input(&host);
        let mut y = lab.output::<f32>(32);
        stack_kernel::<4, 8>(x.slice(), &mut y.slice(), count).grid(1).launch().unwrap();
        let sum = |i: usize| (0..count).map(|at| f64::from(host[at * 32 + i])).sum::<f64>();
        check(&y.read(), Class::Chain(count + 8), sum);
    }
}
