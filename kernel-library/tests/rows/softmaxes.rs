//! Softmax of rows that a CTA holds, that a cluster holds, and that nobody holds.

use galatea::prelude::*;
use kernel_library::kernels;

use crate::{COLUMNS, ROWS, Real, check, devices, numbers};

pub(crate) fn reference<T: Real>(x: &[T]) -> Vec<f64> {
    let largest = x.iter().map(|v| v.wide()).fold(f64::NEG_INFINITY, f64::max);
    let exponentials: Vec<f64> = x.iter().map(|v| (v.wide() - largest).exp()).collect();
    let total: f64 = exponentials.iter().sum();
    exponentials.into_iter().map(|e| e / total).collect()
}

fn softmax<T: Real>(device: Device, x: &[T], columns: usize) -> Vec<T> {
    let rows = x.len() / columns;
    let x = device.tensor(x).unwrap();
    let mut y = device.empty_like(&x).unwrap();
    kernels::softmax(&x, &mut y, columns).grid(|_| rows).launch().unwrap();
    y.to_vec().unwrap()
}

fn rows<T: Real>() {
    for device in devices() {
        for columns in COLUMNS {
            for scale in [1.0, 60.0] {
                let x = numbers::<T>(ROWS * columns, scale, columns as u64);
                let want: Vec<f64> = x.chunks(columns).flat_map(reference).collect();
                let got = softmax(device, &x, columns);
                // An exponent of 100 is off by its own rounding.
                check(device, &got, 1e-4 * scale, |i| want[i]);
                for row in got.chunks(columns) {
                    let total: f64 = row.iter().map(|v| v.wide()).sum();
                    assert!((total - 1.0).abs() < 2.0 * T::TOLERANCE, "{} on {device}: a row sums up to {total}", T::DTYPE);
                }
            }
        }
    }
}

#[test]
fn f32_rows() {
    rows::<f32>();
}

#[test]
fn f16_rows() {
    rows::<f16>();
}

#[test]
fn bf16_rows() {
    rows::<bf16>();
}

#[test]
fn infinities_and_nan() {
    const INF: f32 = f32::INFINITY;
    for device in devices() {
        for row in [[0.0, -INF, 1.0, -INF], [-INF; 4], [INF, 0.0, 1.0, 2.0], [0.0, f32::NAN, 1.0, 2.0]] {
            let want = reference(&row);
            let got = softmax(device, &row, 4);
            check(device, &got, 0.0, |i| want[i]);
        }
    }
}

/// In one CTA; in a cluster; too long for one, so that sums are carried from block to block, and the last block is a part.
#[test]
fn long_rows() {
    for columns in [10_007, 40_001, 530_001] {
        let x = numbers::<f32>(columns, 20.0, 3);
        let want = reference(&x);
        for device in devices() {
            check(device, &softmax(device, &x, columns), 1e-4, |i| want[i]);
        }
    }
}

/// Where there are no clusters, what needs them is passed over.
#[test]
fn devices_without_clusters_read_long_rows_twice() {
    let device = Device::sim(Target::SM_80).unwrap();
    let x = numbers::<f32>(40_001, 20.0, 5);
    let want = reference(&x);
    check(device, &softmax(device, &x, x.len()), 1e-4, |i| want[i]);
}

/// A part of a row with nothing in it has no say in how large the rest is.
#[test]
fn empty_parts_of_long_rows() {
    // Runs of all lengths: of what a thread has, of what a warp has, and of what a CTA has.
    for run in [256, 4096, 8192] {
        let mut x = numbers::<f32>(40_001, 3.0, 9);
        for (column, x) in x.iter_mut().enumerate() {
            *x = if column / run % 3 == 1 { f32::NEG_INFINITY } else { *x - 200.0 };
        }
        let want = reference(&x);
        for device in devices() {
            check(device, &softmax(device, &x, x.len()), 1e-4, |i| want[i]);
        }
    }
}

/// Masks write the smallest number as often as `-inf`, and whole parts of a row may be masked; an offset takes no digits.
#[test]
fn the_largest_numbers_and_offsets() {
    for columns in [5, 1000, 20_001, 40_001, 530_001] {
        let half = |value: f32| {
            numbers::<f32>(columns, 3.0, 11).into_iter().enumerate().map(move |(i, v)| if i < columns / 2 { v } else { value })
        };
        let rows: [Vec<f32>; 5] = [
            half(f32::MIN).collect(),
            half(f32::MAX).collect(),
            vec![f32::MIN; columns],
            vec![f32::MAX; columns],
            half(0.0).map(|v| v + 1e4).collect(),
        ];
        // The longest rows are split, whatever is in them.
        for x in rows.into_iter().take(if columns > 100_000 { 2 } else { 5 }) {
            let want = reference(&x);
            for device in devices() {
                check(device, &softmax(device, &x, columns), 1e-6, |i| want[i]);
            }
        }
    }
}

/// Nothing to choose from is no distribution.
#[test]
fn rows_of_minus_infinity_are_nan() {
    for columns in [100, 40_001] {
        let x = vec![f32::NEG_INFINITY; columns];
        for device in devices() {
            assert!(softmax(device, &x, columns).iter().all(|p| p.is_nan()), "{columns} columns on {device}");
        }
    }
}
