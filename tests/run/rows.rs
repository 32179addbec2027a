//! A row a program: masks that are the same for every program, at any alignment, at both ends of a tensor and beyond.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::check_bits;
use crate::value::{FloatValue, Value};

tests![rows<bool, i8, u16, i32, f16, bf16, f32, f64>, fills<u8, f16, f32, i64>, rows_outside<i16, f32, f64>, several_sizes, sums_of_rows<f16, f32>];

/// Numbers of columns: below, at and above wide accesses, and a whole tile.
const COLUMNS: [usize; 9] = [0, 1, 3, 8, 64, 100, 120, 127, 128];

#[kernel]
fn copy<T: Element, const N: usize>(x: Ptr<T>, y: PtrMut<T>, first: i64, columns: usize) {
    let start = (program_id(0) + first) * columns;
    let column = arange(0, N);
    let mask = column < columns;
    store(y + start + column, load(x + start + column, mask = mask), mask = mask);
}

fn rows<T: Value>(lab: &mut Lab) {
    for columns in COLUMNS {
        let host = lab.values::<T>(5 * columns);
        let (x, mut y) = (lab.input(&host), lab.output::<T>(5 * columns));
        copy::<T, 128>(x.slice(), &mut y.slice(), 0, columns).grid(5).launch().unwrap();
        check_bits(&y.read(), |i| host[i]);
    }
}

/// Rows in front of the tensor and behind it, and a last one that it ends in: what is inside is copied, nothing else is touched.
fn rows_outside<T: Value>(lab: &mut Lab) {
    for columns in COLUMNS {
        for rest in [0, 1, 8, 16] {
            let len = 3 * columns + rest.min(columns);
            let host = lab.values::<T>(len);
            let (x, mut y) = (lab.input(&host), lab.output::<T>(len));
            copy::<T, 128>(x.slice(), &mut y.slice(), -2, columns).grid(9).launch().unwrap();
            check_bits(&y.read(), |i| host[i]);
        }
    }
}

#[kernel]
fn fill<T: Element, const N: usize>(x: Ptr<T>, y: PtrMut<T>, columns: usize, other: T) {
    let start = program_id(0) * columns;
    let column = arange(0, N);
    let mask = column < columns;
    store(y + program_id(0) * N + column, load(x + start + column, mask = mask, other = other));
}

fn fills<T: Value>(lab: &mut Lab) {
    for columns in COLUMNS {
        let host = lab.values::<T>(3 * columns);
        let other = lab.values::<T>(1)[0];
        let (x, mut y) = (lab.input(&host), lab.output::<T>(3 * 128));
        fill::<T, 128>(x.slice(), &mut y.slice(), columns, other).grid(3).launch().unwrap();
        check_bits(&y.read(), |i| if i % 128 < columns { host[i / 128 * columns + i % 128] } else { other });
    }
}

/// Two masks of columns, and accesses of two element sizes: the wide one of the smaller type asks most of both.
#[kernel]
fn overlap<const N: usize>(x: Ptr<f32>, y: PtrMut<f16>, columns: usize, kept: usize) {
    let start = program_id(0) * columns;
    let column = arange(0, N);
    let v = load(x + start + column, mask = (column < columns) & (column < kept), other = 1.0);
    store(y + start + column, v as f16, mask = columns > column);
}

fn several_sizes(lab: &mut Lab) {
    for (columns, kept) in [(128, 128), (128, 64), (128, 60), (128, 7), (120, 200), (100, 36), (64, 0)] {
        let host = lab.numbers::<f32>(4 * columns, -1.0, 1.0);
        let (x, mut y) = (lab.input(&host), lab.output::<f16>(4 * columns));
        overlap::<128>(x.slice(), &mut y.slice(), columns, kept).grid(4).launch().unwrap();
        check_bits(&y.read(), |i| f16::from_f32(if i % columns < kept { host[i] } else { 1.0 }));
    }
}

#[kernel]
fn sums<T: Float, const N: usize>(x: Ptr<T>, y: PtrMut<f32>, columns: usize) {
    let row = program_id(0);
    let column = arange(0, N);
    store(y + row, sum(load(x + row * columns + column, mask = column < columns) as f32));
}

fn sums_of_rows<T: FloatValue>(lab: &mut Lab) {
    for columns in [1, 30, 256, 1000, 1024] {
        // Small whole numbers: their sums are exact in any order.
        let host: Vec<T> = (0..4 * columns).map(|_| T::near(lab.below(17) as f64 - 8.0)).collect();
        let (x, mut y) = (lab.input(&host), lab.output::<f32>(4));
        sums::<T, 1024>(x.slice(), &mut y.slice(), columns).grid(4).launch().unwrap();
        check_bits(&y.read(), |row| host[row * columns..][..columns].iter().map(|v| v.wide()).sum::<f64>() as f32);
    }
}
