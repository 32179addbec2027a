//! Softmax, in one piece and in pieces.

use galatea::prelude::*;

use crate::{COLUMNS, ROWS, Real, check, devices, numbers};

fn reference<T: Real>(x: &[T]) -> Vec<f64> {
    let largest = x.iter().map(|v| v.wide()).fold(f64::NEG_INFINITY, f64::max);
    let exponentials: Vec<f64> = x.iter().map(|v| (v.wide() - largest).exp()).collect();
    let total: f64 = exponentials.iter().sum();
    exponentials.into_iter().map(|e| e / total).collect()
}

fn both<T: Real>(device: Device, x: &[T], columns: usize) -> [Vec<T>; 2] {
    let rows = x.len() / columns;
    let x = device.tensor(x).unwrap();
    let [mut y, mut z] = [0; 2].map(|_| device.empty_like(&x).unwrap());
    kernel_library::softmax(&x, &mut y, columns).grid(|_| rows).launch().unwrap();
    kernel_library::softmax_wide(&x, &mut z, columns).grid(|_| rows).launch().unwrap();
    [y.to_vec().unwrap(), z.to_vec().unwrap()]
}

fn rows<T: Real>() {
    for device in devices() {
        for columns in COLUMNS {
            for scale in [1.0, 60.0] {
                let x = numbers::<T>(ROWS * columns, scale, columns as u64);
                let want: Vec<f64> = x.chunks(columns).flat_map(reference).collect();
                for got in both(device, &x, columns) {
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
            for got in both(device, &row, 4) {
                check(device, &got, 0.0, |i| want[i]);
            }
        }
    }
}

/// A row of several blocks, so that `softmax_wide` carries its sums, and the last block is a part.
#[test]
fn rows_of_several_blocks() {
    let columns = 10_007;
    let x = numbers::<f32>(2 * columns, 20.0, 3);
    let want: Vec<f64> = x.chunks(columns).flat_map(reference).collect();
    for device in devices() {
        for got in both(device, &x, columns) {
            check(device, &got, 1e-4, |i| want[i]);
        }
    }
}

/// A row that a cluster of CTAs holds.
#[test]
fn rows_of_a_cluster() {
    let columns = 40_001;
    let x = numbers::<f32>(columns, 20.0, 4);
    let want = reference(&x);
    for device in devices() {
        for got in both(device, &x, columns) {
            check(device, &got, 1e-4, |i| want[i]);
        }
    }
}

#[test]
fn a_row_that_is_too_long_is_an_error() {
    let device = Device::cpu();
    let x = device.zeros::<f32>(524_289).unwrap();
    let mut y = device.empty_like(&x).unwrap();
    let error = kernel_library::softmax(&x, &mut y, 524_289).grid(|_| 1).launch().unwrap_err();
    assert!(matches!(error, Error::NoConfig { kernel: "softmax", .. }), "{error}");
}
