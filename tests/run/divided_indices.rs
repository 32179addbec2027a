//! Indices that are taken apart by divisions and put together otherwise: in 32 bits where they fit, and right where they do not.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::{check_bits, check_ints};

tests![taken_apart, of_two_axes, by_what_is_read];

/// As kernels divide: `x / 0` is 0.
fn quotient(a: i64, b: i64) -> i64 {
    if b == 0 { 0 } else { a.wrapping_div(b) }
}

fn rest(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { a.wrapping_rem(b) }
}

#[kernel(B = 256)]
fn taken_apart_kernel<const B: usize>(y: PtrMut<i64>, z: PtrMut<bool>, n: usize, start: i64, columns: i64, rows: i64) {
    let at = program_id(0) * B + arange(0, B);
    let index = start + at as i64;
    let column = index % columns;
    let row = index / columns % rows;
    let rest = index / (columns * rows);
    store(y + at, (column * rows + row) * 3 + rest - 7, mask = at < n);
    store(z + at, row <= column, mask = at < n);
}

/// Numbers about the edges of 32 and of 64 bits, negative ones, and divisors that are none.
fn taken_apart(lab: &mut Lab) {
    const EDGE: i64 = 1 << 31;
    let n = 300;
    let starts = [0, 1 << 20, EDGE - 512, EDGE - 300, EDGE - 100, 2 * EDGE - 100, 1 << 40, -150, i64::MIN, i64::MAX - 100];
    let sizes = [
        (1, 1),
        (7, 3),
        (64, 128),
        (100, 1),
        (1 << 16, 1 << 15),
        (1 << 16, 1 << 16),
        (EDGE - 1, 2),
        (EDGE, 3),
        (0, 5),
        (3, 0),
        (-4, 3),
        (5, -1),
    ];
    for start in starts {
        for (columns, rows) in sizes {
            let (mut y, mut z) = (lab.output::<i64>(n), lab.output::<bool>(n));
            taken_apart_kernel::<256>(&mut y.slice(), &mut z.slice(), n, start, columns, rows).grid(cdiv(n, 256)).launch().unwrap();
            let parts = |i: usize| {
                let index = start.wrapping_add(i as i64);
                (rest(index, columns), rest(quotient(index, columns), rows), quotient(index, columns.wrapping_mul(rows)))
            };
            check_ints(&y.read(), |i| {
                let (column, row, rest) = parts(i);
                column.wrapping_mul(rows).wrapping_add(row).wrapping_mul(3).wrapping_add(rest).wrapping_sub(7).into()
            });
            check_bits(&z.read(), |i| parts(i).1 <= parts(i).0);
        }
    }
}

#[kernel(R = 8, C = 256)]
fn of_two_axes_kernel<const R: usize, const C: usize>(x: Ptr<f32>, y: PtrMut<f32>, rows: usize, columns: usize, window: usize) {
    let (row, column) = (arange(0, R), program_id(0) * C + arange(0, C));
    let inside = (row < rows)[(.., None)] & (column < columns)[(None, ..)];
    // Of each window the first.
    let from = (row / window * window)[(.., None)] * columns + (column / window * window)[(None, ..)];
    store(y + row[(.., None)] * columns + column[(None, ..)], load(x + from, mask = inside), mask = inside);
}

fn of_two_axes(lab: &mut Lab) {
    for (rows, columns, window) in [(8, 512, 2), (7, 301, 3), (1, 1, 5)] {
        let data = lab.values::<f32>(rows * columns);
        let (x, mut y) = (lab.input(&data), lab.output::<f32>(rows * columns));
        of_two_axes_kernel::<8, 256>(x.slice(), &mut y.slice(), rows, columns, window).grid(cdiv(columns, 256)).launch().unwrap();
        check_bits(&y.read(), |i| data[i / columns / window * window * columns + i % columns / window * window]);
    }
}

#[kernel(B = 256)]
fn by_what_is_read_kernel<const B: usize>(x: Ptr<i64>, y: PtrMut<i64>, z: PtrMut<i64>, n: usize, iterations: usize) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    store(y + at, at / n + at % 3, mask = mask);
    // The first program's divisor is what it has read by now, the others' too.
    let by = load(x + program_id(0));
    store(z + at, at / by * 1000 + at % by, mask = mask);
    for iteration in range(0, iterations) {
        let back = load(z + (at + iteration) % n, mask = mask);
        store(y + at, load(y + at, mask = mask) + back * 0 + (at + iteration) / by, mask = mask);
    }
}

fn by_what_is_read(lab: &mut Lab) {
    let (n, iterations) = (250, 3);
    for by in [1, 7, 0, -3, 1 << 33] {
        let (x, mut y, mut z) = (lab.input(&[by]), lab.output::<i64>(n), lab.output::<i64>(n));
        by_what_is_read_kernel::<256>(x.slice(), &mut y.slice(), &mut z.slice(), n, iterations).grid(1).launch().unwrap();
        let at = |i: usize| i as i64;
        check_ints(&z.read(), |i| (quotient(at(i), by) * 1000 + rest(at(i), by)).into());
        check_ints(&y.read(), |i| (at(i) % 3 + (0..3).map(|iteration| quotient(at(i) + iteration, by)).sum::<i64>()).into());
    }
}
