//! Kernels with roles: strides, extents and places that a launch states.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::roles::Matrices;
use crate::roles::Version::{Roles, Usual};
use crate::tests;
use crate::tolerance::check_bits;
use crate::value::FloatValue;

tests![narrow_arguments<bf16>, rows_with_gaps<f16>, extents_behind_a_tensor<bf16>, places_far_behind_the_ends<f16>,];

/// Bounds and places of other types than indices.
#[kernel]
fn narrow<T: Float, const M: usize>(x: Ptr<T>, y: Ptr<T>, z: PtrMut<f32>, first_row: i32, rows: u32, columns: i32, inner: i32) {
    let (rows, columns, inner) = (rows as usize, columns as usize, inner as usize);
    let row = (first_row as usize + program_id(0) * M + arange(0, M)).col();
    let column = (program_id(1) * 32 + arange(0, 32)).row();
    let mut total = zeros::<f32>([M, 32]);
    for first in range(0, inner, 32) {
        let k = first + arange(0, 32);
        let a = load(x + row * inner + k.row(), mask = (row < rows) & (k.row() < inner));
        let b = load(y + column * inner + k.col(), mask = (column < columns) & (k.col() < inner));
        total += dot(a, b);
    }
    store(z + row * columns + column, total, mask = (row < rows) & (column < columns));
}

fn narrow_arguments<T: FloatValue>(lab: &mut Lab) {
    let [m, n, k] = [136, 40, 72];
    let of = Matrices::<T>::new(lab, [m, n, k], [false, true]);
    for first_row in [0, 8] {
        let mut out = lab.output::<f32>(m * n);
        lab.launch("narrow", Roles, || {
            narrow::<T, 64>(of.a.slice(), of.b.slice(), &mut out.slice(), first_row, m as u32, n as i32, k as i32)
                .grid(((m - first_row as usize).div_ceil(64), n.div_ceil(32)))
                .launch()
        });
        let (product, before, first) = (of.product(), out.before().to_vec(), first_row as usize * n);
        check_bits(&out.read(), |i| if i < first { before[i] } else { product[i] as f32 });
    }
}

/// All that a launch states: distances between rows, what each program skips of the sum, and the end of it.
#[kernel]
fn strided<T: Float, U: Float, const M: usize>(
    x: Ptr<T>,
    y: Ptr<T>,
    z: PtrMut<U>,
    rows: usize,
    columns: usize,
    inner: usize,
    z_stride: usize,
    skipped: usize,
) {
    let row = (program_id(0) * M + arange(0, M)).col();
    let column = (program_id(1) * 32 + arange(0, 32)).row();
    let mut total = zeros::<f32>([M, 32]);
    for first in range(0, inner, 32) {
        let k = program_id(0) * skipped + first + arange(0, 32);
        let a = load(x + row * inner + k.row(), mask = (row < rows) & (k.row() < inner));
        let b = load(y + column * inner + k.col(), mask = (column < columns) & (k.col() < inner));
        total += dot(a, b);
    }
    store(z + row * z_stride + column, total as U, mask = (row < rows) & (column < columns));
}

/// A copy to a tensor writes whole chunks of 16 bytes, so ends of rows between them are stored otherwise.
fn rows_with_gaps<T: FloatValue>(lab: &mut Lab) {
    rows_with_gaps_of::<T, f32>(lab);
    rows_with_gaps_of::<T, bf16>(lab);
}

fn rows_with_gaps_of<T: FloatValue, U: FloatValue>(lab: &mut Lab) {
    for (n, stride) in [(24, 40), (37, 40), (33, 35)] {
        let (m, k) = (65, 40);
        let of = Matrices::<T>::new(lab, [m, n, k], [false, true]);
        let mut out = lab.output_at::<U>(m * stride, 0);
        lab.launch("strided", Roles, || {
            strided::<T, U, 64>(of.a.slice(), of.b.slice(), &mut out.slice(), m, n, k, stride, 0).grid((2, n.div_ceil(32))).launch()
        });
        let (product, before) = (of.product(), out.before().to_vec());
        check_bits(&out.read(), |i| if i % stride < n { U::near(product[i / stride * n + i % stride]) } else { before[i] });
    }
}

/// More rows than the tensor has, which no program reads.
fn extents_behind_a_tensor<T: FloatValue>(lab: &mut Lab) {
    let [m, n, k] = [64, 32, 32];
    for rows in [m + 1, 1 << 20, 1 << 32, (1 << 60) + 1] {
        let of = Matrices::<T>::new(lab, [m, n, k], [false, true]);
        let mut out = lab.output_at::<f32>(m * n, 0);
        lab.launch("strided", Usual, || {
            strided::<T, f32, 64>(of.a.slice(), of.b.slice(), &mut out.slice(), rows, n, k, n, 0).grid(1).launch()
        });
        let product = of.product();
        check_bits(&out.read(), |i| product[i] as f32);
    }
}

/// Indices along the sum that do not fit 32 bits: nothing is there.
fn places_far_behind_the_ends<T: FloatValue>(lab: &mut Lab) {
    let [m, n, k] = [5 * 64, 32, 32];
    for skipped in [0, 32, 1 << 20, 1 << 29, 1 << 30] {
        let of = Matrices::<T>::new(lab, [m, n, k], [false, true]);
        let mut out = lab.output_at::<f32>(m * n, 0);
        lab.launch("strided", Roles, || {
            strided::<T, f32, 64>(of.a.slice(), of.b.slice(), &mut out.slice(), m, n, k, n, skipped).grid(5).launch()
        });
        let product = of.product();
        check_bits(&out.read(), |i| if skipped == 0 || i < 64 * n { product[i] as f32 } else { 0.0 });
    }
}
