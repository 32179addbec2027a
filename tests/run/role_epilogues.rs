//! Kernels with roles: what they do with products, and how they store the results.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::products::eighths;
use crate::roles::Matrices;
use crate::roles::Version::Roles;
use crate::tests;
use crate::tolerance::check_bits;
use crate::value::FloatValue;

tests![
    epilogues<f16, bf16>,
    integer_results<f16>,
    epilogues_that_exchange_tiles<bf16>,
    results_that_are_read<f16>,
];

#[kernel]
fn epilogue<T: Float, U: Float, const M: usize>(
    x: Ptr<T>,
    y: Ptr<T>,
    bias: Ptr<f32>,
    residual: Ptr<U>,
    z: PtrMut<U>,
    scale: f32,
    rows: usize,
    columns: usize,
    inner: usize,
) {
    let row = (program_id(0) * M + arange(0, M)).col();
    let column = (program_id(1) * 64 + arange(0, 64)).row();
    let mut total = zeros::<f32>([M, 64]);
    for first in range(0, inner, 32) {
        let k = first + arange(0, 32);
        let a = load(x + row * inner + k.row(), mask = (row < rows) & (k.row() < inner));
        let b = load(y + k.col() * columns + column, mask = (column < columns) & (k.col() < inner));
        total += dot(a, b);
    }
    let mask = (row < rows) & (column < columns);
    let biased = max(total * scale + load(bias + column, mask = column < columns), 0.0);
    let sum = biased + load(residual + row * columns + column, mask = mask) as f32;
    store(z + row * columns + column, sum as U, mask = mask);
}

fn epilogues<T: FloatValue>(lab: &mut Lab) {
    epilogue_of::<T, f32>(lab);
    epilogue_of::<T, f16>(lab);
    epilogue_of::<T, bf16>(lab);
}

/// Results that a tensor copy can store, and results that it cannot: rows that are no multiples of 16 bytes, and an address that is none.
fn epilogue_of<T: FloatValue, U: FloatValue>(lab: &mut Lab) {
    for ([m, n, k], shift) in [([72, 136, 40], 0), ([65, 72, 32], 0), ([64, 64, 32], 1)] {
        let of = Matrices::<T>::new(lab, [m, n, k], [false, false]);
        let (bias, residual) = (eighths::<f32>(lab, n), eighths::<U>(lab, m * n));
        let (on_bias, on_residual, mut out) = (lab.input(&bias), lab.input(&residual), lab.output_at::<U>(m * n, shift));
        lab.launch("epilogue", Roles, || {
            epilogue::<T, U, 64>(of.a.slice(), of.b.slice(), on_bias.slice(), on_residual.slice(), &mut out.slice(), 0.5, m, n, k)
                .grid((m.div_ceil(64), n.div_ceil(64)))
                .launch()
        });
        let product = of.product();
        check_bits(&out.read(), |i| U::near((product[i] * 0.5 + f64::from(bias[i % n])).max(0.0) + residual[i].wide()));
    }
}

#[kernel]
fn integers<T: Float, U: Int, const M: usize>(x: Ptr<T>, y: Ptr<T>, z: PtrMut<U>) {
    let (row, column, k) = (arange(0, M), arange(0, M), arange(0, 32));
    let a = load(x + row.col() * 32 + k.row());
    let b = load(y + k.col() * 64 + column.row());
    store(z + row.col() * 64 + column.row(), (dot(a, b) * 64.0) as U);
}

fn integer_results<T: FloatValue>(lab: &mut Lab) {
    let of = Matrices::<T>::new(lab, [64, 64, 32], [false, false]);
    let product = of.product();
    let (mut wide, mut narrow) = (lab.output_at::<i32>(64 * 64, 0), lab.output_at::<i16>(64 * 64, 0));
    lab.launch("integers", Roles, || integers::<T, i32, 64>(of.a.slice(), of.b.slice(), &mut wide.slice()).grid(1).launch());
    check_bits(&wide.read(), |i| (product[i] * 64.0) as i32);
    lab.launch("integers", Roles, || integers::<T, i16, 64>(of.a.slice(), of.b.slice(), &mut narrow.slice()).grid(1).launch());
    check_bits(&narrow.read(), |i| (product[i] * 64.0) as i16);
}

/// The transposed result and the sums of columns are exchanged through shared memory before a block is stored from there.
#[kernel]
fn exchanges<T: Float, const M: usize>(
    x: Ptr<T>,
    y: Ptr<T>,
    transposed: PtrMut<f32>,
    sums: PtrMut<f32>,
    z: PtrMut<f32>,
    rows: usize,
    columns: usize,
    inner: usize,
) {
    let row = (program_id(0) * M + arange(0, M)).col();
    let column = (program_id(1) * 128 + arange(0, 128)).row();
    let mut total = zeros::<f32>([M, 128]);
    for first in range(0, inner, 32) {
        let k = first + arange(0, 32);
        let a = load(x + row * inner + k.row(), mask = (row < rows) & (k.row() < inner));
        let b = load(y + column * inner + k.col(), mask = (column < columns) & (k.col() < inner));
        total += dot(a, b);
    }
    let mask = (row < rows) & (column < columns);
    store(transposed + column * rows + row, total, mask = mask);
    let at = program_id(0) * columns + program_id(1) * 128 + arange(0, 128);
    store(sums + at, sum(total, axis = 0), mask = program_id(1) * 128 + arange(0, 128) < columns);
    store(z + row * columns + column, total, mask = mask);
}

fn epilogues_that_exchange_tiles<T: FloatValue>(lab: &mut Lab) {
    // Two programs of each worker, and one.
    for [m, n, k] in [[64 * 9, 128 * 31, 16], [72, 136, 40]] {
        let of = Matrices::<T>::new(lab, [m, n, k], [false, true]);
        let tiles = m.div_ceil(64);
        let (mut transposed, mut sums, mut out) = (lab.output::<f32>(m * n), lab.output::<f32>(tiles * n), lab.output_at::<f32>(m * n, 0));
        lab.launch("exchanges", Roles, || {
            exchanges::<T, 64>(of.a.slice(), of.b.slice(), &mut transposed.slice(), &mut sums.slice(), &mut out.slice(), m, n, k)
                .grid((tiles, n.div_ceil(128)))
                .launch()
        });
        let product = of.product();
        check_bits(&out.read(), |i| product[i] as f32);
        check_bits(&transposed.read(), |i| product[i % m * n + i / m] as f32);
        check_bits(&sums.read(), |i| (i / n * 64..m.min(i / n * 64 + 64)).map(|row| product[row * n + i % n]).sum::<f64>() as f32);
    }
}

#[kernel]
fn added<T: Float, const M: usize>(x: Ptr<T>, y: Ptr<T>, z: PtrMut<f32>, copy: PtrMut<f32>, rows: usize, columns: usize, inner: usize) {
    let row = (program_id(0) * M + arange(0, M)).col();
    let column = (program_id(1) * 32 + arange(0, 32)).row();
    let (at, mask) = (z + row * columns + column, (row < rows) & (column < columns));
    let before = load(at, mask = mask);
    let mut total = zeros::<f32>([M, 32]);
    for first in range(0, inner, 32) {
        let k = first + arange(0, 32);
        let a = load(x + row * inner + k.row(), mask = (row < rows) & (k.row() < inner));
        let b = load(y + column * inner + k.col(), mask = (column < columns) & (k.col() < inner));
        total += dot(a, b);
    }
    store(at, total * 2.0 + before, mask = mask);
    store(copy + row * columns + column, load(at, mask = mask), mask = mask);
}

/// Results that the kernel reads before and after it stores them.
fn results_that_are_read<T: FloatValue>(lab: &mut Lab) {
    let [m, n, k] = [72, 40, 40];
    let of = Matrices::<T>::new(lab, [m, n, k], [false, true]);
    let before = eighths::<f32>(lab, m * n);
    let (mut out, mut copy) = (lab.in_place_at(&before, 0), lab.output_at::<f32>(m * n, 0));
    lab.launch("added", Roles, || {
        added::<T, 64>(of.a.slice(), of.b.slice(), &mut out.slice(), &mut copy.slice(), m, n, k)
            .grid((m.div_ceil(64), n.div_ceil(32)))
            .launch()
    });
    let product = of.product();
    let sums: Vec<f32> = (0..m * n).map(|i| (product[i] * 2.0) as f32 + before[i]).collect();
    check_bits(&out.read(), |i| sums[i]);
    check_bits(&copy.read(), |i| sums[i]);
}
