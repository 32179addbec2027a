//! Kernels with roles: loads, grids and loops of other forms.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::roles::Matrices;
use crate::roles::Version::{Any, Roles, Usual};
use crate::tests;
use crate::tolerance::check_bits;
use crate::value::FloatValue;

tests![
    a_grid_of_one_axis<f16>,
    batches<f16>,
    parts_of_the_sum<bf16>,
    no_masks<f16>,
    other_masks<bf16>,
    loops_without_an_index<f16>,
    products_that_share_an_operand<bf16>,
    loops_one_after_the_other<f16>,
    a_product_outside_of_loops<bf16>,
    transposed_operands<f16>,
    sums_that_several_products_begin_with<f16>,
    ones_behind_the_ends<bf16>,
];

#[kernel]
fn one_axis<T: Float, const M: usize>(x: Ptr<T>, y: Ptr<T>, z: PtrMut<f32>, rows: usize, columns: usize, inner: usize) {
    let across = cdiv(columns, 32);
    let row = (program_id(0) / across * M + arange(0, M)).col();
    let column = (program_id(0) % across * 32 + arange(0, 32)).row();
    let mut total = zeros::<f32>([M, 32]);
    for first in range(0, inner, 32) {
        let k = first + arange(0, 32);
        let a = load(x + row * inner + k.row(), mask = (row < rows) & (k.row() < inner));
        let b = load(y + column * inner + k.col(), mask = (column < columns) & (k.col() < inner));
        total += dot(a, b);
    }
    store(z + row * columns + column, total, mask = (row < rows) & (column < columns));
}

fn a_grid_of_one_axis<T: FloatValue>(lab: &mut Lab) {
    for [m, n, k] in [[136, 104, 72], [64, 32 * 270, 16]] {
        let of = Matrices::<T>::new(lab, [m, n, k], [false, true]);
        let mut out = lab.output::<f32>(m * n);
        lab.launch("one_axis", Roles, || {
            one_axis::<T, 64>(of.a.slice(), of.b.slice(), &mut out.slice(), m, n, k).grid(m.div_ceil(64) * n.div_ceil(32)).launch()
        });
        let product = of.product();
        check_bits(&out.read(), |i| product[i] as f32);
    }
}

#[kernel]
fn batched<T: Float, const M: usize>(x: Ptr<T>, y: Ptr<T>, z: PtrMut<f32>, rows: usize, columns: usize, inner: usize) {
    let row = (program_id(0) * M + arange(0, M)).col();
    let column = (program_id(1) * 32 + arange(0, 32)).row();
    let batch = program_id(2);
    let mut total = zeros::<f32>([M, 32]);
    for first in range(0, inner, 32) {
        let k = first + arange(0, 32);
        let a = load(x + batch * rows * inner + row * inner + k.row(), mask = (row < rows) & (k.row() < inner));
        let b = load(y + batch * columns * inner + column * inner + k.col(), mask = (column < columns) & (k.col() < inner));
        total += dot(a, b);
    }
    store(z + batch * rows * columns + row * columns + column, total, mask = (row < rows) & (column < columns));
}

fn batches<T: FloatValue>(lab: &mut Lab) {
    let [m, n, k, count] = [72, 40, 40, 3];
    let of: Vec<Matrices<T>> = (0..count).map(|_| Matrices::new(lab, [m, n, k], [false, true])).collect();
    let [a, b] = [0, 1].map(|side| of.iter().flat_map(|of| of.host[side].clone()).collect::<Vec<T>>());
    let (a, b, mut out) = (lab.input_at(&a, 0), lab.input_at(&b, 0), lab.output::<f32>(count * m * n));
    lab.launch("batched", Any, || {
        batched::<T, 64>(a.slice(), b.slice(), &mut out.slice(), m, n, k).grid((m.div_ceil(64), n.div_ceil(32), count)).launch()
    });
    let products: Vec<f64> = of.iter().flat_map(Matrices::product).collect();
    check_bits(&out.read(), |i| products[i] as f32);
}

/// Programs along the third axis add parts of the same sum.
#[kernel]
fn split_sum<T: Float, const M: usize>(x: Ptr<T>, y: Ptr<T>, z: PtrMut<f32>, rows: usize, columns: usize, inner: usize, part: usize) {
    let row = (program_id(0) * M + arange(0, M)).col();
    let column = (program_id(1) * 32 + arange(0, 32)).row();
    let mut total = zeros::<f32>([M, 32]);
    for first in range(program_id(2) * part, min((program_id(2) + 1) * part, inner), 32) {
        let k = first + arange(0, 32);
        let a = load(x + row * inner + k.row(), mask = (row < rows) & (k.row() < inner));
        let b = load(y + column * inner + k.col(), mask = (column < columns) & (k.col() < inner));
        total += dot(a, b);
    }
    atomic_add(z + row * columns + column, total, mask = (row < rows) & (column < columns));
}

fn parts_of_the_sum<T: FloatValue>(lab: &mut Lab) {
    // The last programs have fewer iterations, or none.
    let [m, n, k, part] = [72, 40, 200, 64];
    let of = Matrices::<T>::new(lab, [m, n, k], [false, true]);
    let mut out = lab.in_place(&vec![0.0f32; m * n]);
    lab.launch("split_sum", Roles, || {
        split_sum::<T, 64>(of.a.slice(), of.b.slice(), &mut out.slice(), m, n, k, part).grid((m.div_ceil(64), n.div_ceil(32), 5)).launch()
    });
    let product = of.product();
    check_bits(&out.read(), |i| product[i] as f32);
}

#[kernel]
fn unmasked<T: Float, const M: usize>(x: Ptr<T>, y: Ptr<T>, z: PtrMut<f32>, columns: usize, inner: usize) {
    let row = (program_id(0) * M + arange(0, M)).col();
    let column = (program_id(1) * 32 + arange(0, 32)).row();
    let mut total = zeros::<f32>([M, 32]);
    for first in range(0, inner, 32) {
        let k = first + arange(0, 32);
        total += dot(load(x + row * inner + k.row()), load(y + k.col() * columns + column));
    }
    store(z + row * columns + column, total);
}

fn no_masks<T: FloatValue>(lab: &mut Lab) {
    for [m, n, k] in [[64, 32, 32], [192, 96, 160]] {
        let of = Matrices::<T>::new(lab, [m, n, k], [false, false]);
        let mut out = lab.output::<f32>(m * n);
        lab.launch("unmasked", Roles, || {
            unmasked::<T, 64>(of.a.slice(), of.b.slice(), &mut out.slice(), n, k).grid((m / 64, n / 32)).launch()
        });
        let product = of.product();
        check_bits(&out.read(), |i| product[i] as f32);
    }
}

/// The last index of the rows, and no mask along the sum.
#[kernel]
fn last_indices<T: Float, const M: usize>(x: Ptr<T>, y: Ptr<T>, z: PtrMut<f32>, last_row: usize, last_column: usize, inner: usize) {
    let row = (program_id(0) * M + arange(0, M)).col();
    let column = (program_id(1) * 32 + arange(0, 32)).row();
    let mut total = zeros::<f32>([M, 32]);
    for first in range(0, inner, 32) {
        let k = first + arange(0, 32);
        let a = load(x + row * inner + k.row(), mask = row <= last_row);
        let b = load(y + column * inner + k.col(), mask = last_column >= column);
        total += dot(a, b);
    }
    store(z + row * (last_column + 1) + column, total, mask = (row <= last_row) & (column <= last_column));
}

fn other_masks<T: FloatValue>(lab: &mut Lab) {
    for [m, n, k] in [[65, 33, 96], [128, 64, 32], [1, 1, 32]] {
        let of = Matrices::<T>::new(lab, [m, n, k], [false, true]);
        let mut out = lab.output::<f32>(m * n);
        lab.launch("last_indices", Roles, || {
            last_indices::<T, 64>(of.a.slice(), of.b.slice(), &mut out.slice(), m - 1, n - 1, k)
                .grid((m.div_ceil(64), n.div_ceil(32)))
                .launch()
        });
        let product = of.product();
        check_bits(&out.read(), |i| product[i] as f32);
    }
}

#[kernel]
fn while_loop<T: Float, const M: usize>(x: Ptr<T>, y: Ptr<T>, z: PtrMut<f32>, rows: usize, columns: usize, inner: usize) {
    let row = (program_id(0) * M + arange(0, M)).col();
    let column = (program_id(1) * 32 + arange(0, 32)).row();
    let mut total = zeros::<f32>([M, 32]);
    let mut first = 0usize;
    while first < inner {
        let k = first + arange(0, 32);
        let a = load(x + row * inner + k.row(), mask = (row < rows) & (k.row() < inner));
        let b = load(y + column * inner + k.col(), mask = (column < columns) & (k.col() < inner));
        total += dot(a, b);
        first += 32;
    }
    store(z + row * columns + column, total, mask = (row < rows) & (column < columns));
}

/// A product in every second iteration of a loop that counts otherwise: both roles count the iterations.
#[kernel]
fn counted_otherwise<T: Float, const M: usize>(x: Ptr<T>, y: Ptr<T>, z: PtrMut<f32>, inner: usize) {
    let (row, column) = (arange(0, M).col(), arange(0, 32).row());
    let mut total = zeros::<f32>([M, 32]);
    let mut left = inner / 16;
    while left > 0 {
        left -= 1;
        if left % 2 == 0 {
            let a = load(x + row * 32 + arange(0, 32).row());
            let b = load(y + column * 32 + arange(0, 32).col());
            total += dot(a, b);
        }
    }
    store(z + row * 32 + column, total);
}

fn loops_without_an_index<T: FloatValue>(lab: &mut Lab) {
    let [m, n, k] = [72, 40, 104];
    let of = Matrices::<T>::new(lab, [m, n, k], [false, true]);
    let mut out = lab.output::<f32>(m * n);
    lab.launch("while_loop", Usual, || {
        while_loop::<T, 64>(of.a.slice(), of.b.slice(), &mut out.slice(), m, n, k).grid((m.div_ceil(64), n.div_ceil(32))).launch()
    });
    let product = of.product();
    check_bits(&out.read(), |i| product[i] as f32);

    let of = Matrices::<T>::new(lab, [64, 32, 32], [false, true]);
    let mut out = lab.output::<f32>(64 * 32);
    lab.launch("counted_otherwise", Roles, || {
        counted_otherwise::<T, 64>(of.a.slice(), of.b.slice(), &mut out.slice(), 16 * 9).grid(1).launch()
    });
    let product = of.product();
    check_bits(&out.read(), |i| 5.0 * product[i] as f32);
}

/// Two products of one left operand.
#[kernel]
fn gated<T: Float, const M: usize>(x: Ptr<T>, y: Ptr<T>, gate: Ptr<T>, z: PtrMut<f32>, rows: usize, columns: usize, inner: usize) {
    let row = (program_id(0) * M + arange(0, M)).col();
    let column = (program_id(1) * 32 + arange(0, 32)).row();
    let (mut total, mut gates) = (zeros::<f32>([M, 32]), zeros::<f32>([M, 32]));
    for first in range(0, inner, 32) {
        let k = first + arange(0, 32);
        let a = load(x + row * inner + k.row(), mask = (row < rows) & (k.row() < inner));
        let mask = (column < columns) & (k.col() < inner);
        total += dot(a, load(y + column * inner + k.col(), mask = mask));
        gates += dot(a, load(gate + column * inner + k.col(), mask = mask));
    }
    store(z + row * columns + column, total * max(gates, 0.0), mask = (row < rows) & (column < columns));
}

fn products_that_share_an_operand<T: FloatValue>(lab: &mut Lab) {
    let [m, n, k] = [136, 72, 168];
    let of = Matrices::<T>::new(lab, [m, n, k], [false, true]);
    let mut gates = Matrices::<T>::new(lab, [m, n, k], [false, true]);
    gates.host[0] = of.host[0].clone();
    let mut out = lab.output::<f32>(m * n);
    lab.launch("gated", Roles, || {
        gated::<T, 64>(of.a.slice(), of.b.slice(), gates.b.slice(), &mut out.slice(), m, n, k)
            .grid((m.div_ceil(64), n.div_ceil(32)))
            .launch()
    });
    let (product, gates) = (of.product(), gates.product());
    check_bits(&out.read(), |i| product[i] as f32 * (gates[i] as f32).max(0.0));
}

/// The sum of two products of other lengths, each with a ring of its own.
#[kernel]
fn two_loops<T: Float, const M: usize>(
    x: Ptr<T>,
    y: Ptr<T>,
    u: Ptr<T>,
    v: Ptr<T>,
    z: PtrMut<f32>,
    rows: usize,
    columns: usize,
    inner: usize,
    other: usize,
) {
    let row = (program_id(0) * M + arange(0, M)).col();
    let column = (program_id(1) * 16 + arange(0, 16)).row();
    let mut total = zeros::<f32>([M, 16]);
    for first in range(0, inner, 32) {
        let k = first + arange(0, 32);
        let a = load(x + row * inner + k.row(), mask = (row < rows) & (k.row() < inner));
        let b = load(y + column * inner + k.col(), mask = (column < columns) & (k.col() < inner));
        total += dot(a, b);
    }
    for first in range(0, other, 16) {
        let k = first + arange(0, 16);
        let a = load(u + row * other + k.row(), mask = (row < rows) & (k.row() < other));
        let b = load(v + k.col() * columns + column, mask = (column < columns) & (k.col() < other));
        total += dot(a, b);
    }
    store(z + row * columns + column, total, mask = (row < rows) & (column < columns));
}

fn loops_one_after_the_other<T: FloatValue>(lab: &mut Lab) {
    // Several programs of a worker, so that both rings go on where the program before has left them.
    for [m, n, k, other] in [[72, 40, 72, 88], [64 * 20, 16 * 20, 32, 48]] {
        let of = Matrices::<T>::new(lab, [m, n, k], [false, true]);
        let second = Matrices::<T>::new(lab, [m, n, other], [false, false]);
        let mut out = lab.output::<f32>(m * n);
        lab.launch("two_loops", Roles, || {
            two_loops::<T, 64>(of.a.slice(), of.b.slice(), second.a.slice(), second.b.slice(), &mut out.slice(), m, n, k, other)
                .grid((m.div_ceil(64), n.div_ceil(16)))
                .launch()
        });
        let (product, second) = (of.product(), second.product());
        check_bits(&out.read(), |i| (product[i] + second[i]) as f32);
    }
}

#[kernel]
fn without_loop<T: Float, const M: usize>(x: Ptr<T>, y: Ptr<T>, z: PtrMut<f32>, rows: usize, columns: usize, inner: usize) {
    let row = (program_id(0) * M + arange(0, M)).col();
    let column = (program_id(1) * 32 + arange(0, 32)).row();
    let k = arange(0, 64);
    let a = load(x + row * inner + k.row(), mask = (row < rows) & (k.row() < inner));
    let b = load(y + column * inner + k.col(), mask = (column < columns) & (k.col() < inner));
    store(z + row * columns + column, dot(a, b), mask = (row < rows) & (column < columns));
}

fn a_product_outside_of_loops<T: FloatValue>(lab: &mut Lab) {
    for [m, n, k] in [[72, 40, 40], [64 * 5, 32 * 61, 64]] {
        let of = Matrices::<T>::new(lab, [m, n, k], [false, true]);
        let mut out = lab.output::<f32>(m * n);
        lab.launch("without_loop", Roles, || {
            without_loop::<T, 64>(of.a.slice(), of.b.slice(), &mut out.slice(), m, n, k).grid((m.div_ceil(64), n.div_ceil(32))).launch()
        });
        let product = of.product();
        check_bits(&out.read(), |i| product[i] as f32);
    }
}

/// Both operands are loaded as they are stored, and transposed as tiles.
#[kernel]
fn transposes<T: Float, const M: usize>(x: Ptr<T>, y: Ptr<T>, z: PtrMut<f32>, rows: usize, columns: usize, inner: usize) {
    let row = program_id(0) * M + arange(0, M);
    let column = program_id(1) * 32 + arange(0, 32);
    let mut total = zeros::<f32>([M, 32]);
    for first in range(0, inner, 16) {
        let k = first + arange(0, 16);
        let a = load(x + k.col() * rows + row.row(), mask = (row.row() < rows) & (k.col() < inner));
        let b = load(y + column.col() * inner + k.row(), mask = (column.col() < columns) & (k.row() < inner));
        total += dot(trans(a), permute(b, [1, 0]));
    }
    store(z + row.col() * columns + column.row(), total, mask = (row.col() < rows) & (column.row() < columns));
}

fn transposed_operands<T: FloatValue>(lab: &mut Lab) {
    let [m, n, k] = [72, 40, 88];
    let of = Matrices::<T>::new(lab, [m, n, k], [true, true]);
    let mut out = lab.output::<f32>(m * n);
    lab.launch("transposes", Roles, || {
        transposes::<T, 64>(of.a.slice(), of.b.slice(), &mut out.slice(), m, n, k).grid((m.div_ceil(64), n.div_ceil(32))).launch()
    });
    let product = of.product();
    check_bits(&out.read(), |i| product[i] as f32);
}

/// Every product of the inner loop begins with the same sum.
#[kernel]
fn greatest_sums<T: Float, const M: usize>(x: Ptr<T>, y: Ptr<T>, z: PtrMut<f32>, inner: usize, rounds: usize) {
    let (row, column) = (arange(0, M).col(), arange(0, 32).row());
    let mut total = zeros::<f32>([M, 32]);
    for _ in range(0, rounds, 1) {
        let mut greatest = zeros::<f32>([M, 32]);
        for first in range(0, inner, 32) {
            let k = first + arange(0, 32);
            greatest = max(greatest, total + dot(load(x + row * inner + k.row()), load(y + column * inner + k.col())));
        }
        total = greatest;
    }
    store(z + row * 32 + column, total);
}

fn sums_that_several_products_begin_with<T: FloatValue>(lab: &mut Lab) {
    let (inner, rounds) = (32 * 3, 2);
    let of = Matrices::<T>::new(lab, [64, 32, inner], [false, true]);
    let mut out = lab.output::<f32>(64 * 32);
    lab.launch("greatest_sums", Roles, || {
        greatest_sums::<T, 64>(of.a.slice(), of.b.slice(), &mut out.slice(), inner, rounds).grid(1).launch()
    });
    let part = |i: usize, first: usize| {
        let factor = |side: usize, row: usize, k: usize| of.host[side][row * inner + k].wide();
        (first..first + 32).map(|k| factor(0, i / 32, k) * factor(1, i % 32, k)).sum::<f64>()
    };
    check_bits(&out.read(), |i| rounds as f32 * [0, 32, 64].map(|first| part(i, first)).into_iter().fold(0.0, f64::max) as f32);
}

/// Masked elements are ones, which no copy gives.
#[kernel]
fn ones<T: Float, const M: usize>(x: Ptr<T>, y: Ptr<T>, z: PtrMut<f32>, rows: usize, columns: usize, inner: usize) {
    let (row, column) = (arange(0, M).col(), arange(0, 32).row());
    let k = arange(0, 32);
    let a = load(x + row * inner + k.row(), mask = (row < rows) & (k.row() < inner), other = 1.0);
    let b = load(y + column * inner + k.col(), mask = (column < columns) & (k.col() < inner), other = 1.0);
    store(z + row * columns + column, dot(a, b), mask = (row < rows) & (column < columns));
}

fn ones_behind_the_ends<T: FloatValue>(lab: &mut Lab) {
    let [m, n, k] = [40, 24, 16];
    let of = Matrices::<T>::new(lab, [m, n, k], [false, true]);
    let mut out = lab.output_at::<f32>(m * n, 0);
    lab.launch("ones", Usual, || ones::<T, 64>(of.a.slice(), of.b.slice(), &mut out.slice(), m, n, k).grid(1).launch());
    let product = of.product();
    check_bits(&out.read(), |i| product[i] as f32 + 16.0);
}
