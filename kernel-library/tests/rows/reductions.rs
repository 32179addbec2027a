//! Sums and largest elements of rows.

use galatea::prelude::*;
use kernel_library::kernels;

use crate::{COLUMNS, ROWS, Real, check, devices, numbers};

fn reductions<T: Real>() {
    for device in devices() {
        for columns in COLUMNS.into_iter().chain([9000]) {
            let x = numbers::<T>(ROWS * columns, 3.0, columns as u64);
            let dx = device.tensor(&x).unwrap();
            let [mut sums, mut largest] = [0; 2].map(|_| device.empty::<T>(ROWS).unwrap());
            kernels::row_sum(&dx, &mut sums, columns).grid(|_| ROWS).launch().unwrap();
            kernels::row_max(&dx, &mut largest, columns).grid(|_| ROWS).launch().unwrap();
            let row = |row: usize| x[row * columns..][..columns].iter().map(|v| v.wide());
            check(device, &sums.to_vec().unwrap(), (columns as f64).sqrt(), |i| row(i).sum());
            check(device, &largest.to_vec().unwrap(), 0.0, |i| row(i).fold(f64::NEG_INFINITY, f64::max));
        }
    }
}

#[test]
fn sums_and_largest_elements() {
    reductions::<f32>();
    reductions::<f16>();
    reductions::<bf16>();
}

#[test]
fn a_row_without_columns() {
    for device in devices() {
        let x = device.zeros::<f32>(1).unwrap();
        let [mut sums, mut largest] = [0; 2].map(|_| device.tensor(&[7.0f32; 3]).unwrap());
        kernels::row_sum(&x, &mut sums, 0).grid(|_| 3).launch().unwrap();
        kernels::row_max(&x, &mut largest, 0).grid(|_| 3).launch().unwrap();
        assert_eq!((sums.to_vec().unwrap(), largest.to_vec().unwrap()), (vec![0.0; 3], vec![f32::NEG_INFINITY; 3]), "{device}");
    }
}

fn columns<T: Real>(shapes: &[(usize, usize, usize)]) {
    for device in devices() {
        for &(rows, columns, groups) in shapes {
            let x = numbers::<T>(rows * columns, 3.0, columns as u64);
            let dx = device.tensor(&x).unwrap();
            let mut parts = device.empty::<f32>(groups * columns).unwrap();
            let mut sums = device.empty::<T>(columns).unwrap();
            kernels::column_sum(&dx, &mut parts, rows, columns).grid(|config| (cdiv(columns, config.BLOCK_SIZE), groups)).launch().unwrap();
            kernels::column_sum(&parts, &mut sums, groups, columns).grid(|config| cdiv(columns, config.BLOCK_SIZE)).launch().unwrap();
            let column = |rows: std::iter::StepBy<std::ops::Range<usize>>, j: usize| rows.map(|i| x[i * columns + j].wide()).sum::<f64>();
            let size = (rows as f64).sqrt() + 1.0;
            check(device, &parts.to_vec().unwrap(), size, |i| column((i / columns..rows.max(i / columns)).step_by(groups), i % columns));
            check(device, &sums.to_vec().unwrap(), size, |j| column((0..rows).step_by(1), j));
        }
    }
}

#[test]
fn sums_of_columns() {
    columns::<f32>(&[(0, 3, 1), (1, 1, 1), (5, 1000, 2), (103, 7, 16), (40, 257, 50)]);
    columns::<f16>(&[(5, 1000, 2), (103, 7, 16)]);
    columns::<bf16>(&[(40, 257, 50)]);
}

fn all<T: Real>() {
    for device in devices() {
        for (n, groups) in [(0, 2), (1, 1), (1000, 3), (20_003, 7)] {
            let x = numbers::<T>(n, 3.0, n as u64);
            let dx = device.tensor(&x).unwrap();
            let mut parts = device.empty::<f32>(groups).unwrap();
            let mut total = device.empty::<T>(1).unwrap();
            kernels::block_sum(&dx, &mut parts, n).grid(|_| groups).launch().unwrap();
            kernels::block_sum(&parts, &mut total, groups).grid(|_| 1).launch().unwrap();
            let want: f64 = x.iter().map(|v| v.wide()).sum();
            check(device, &total.to_vec().unwrap(), (n as f64).sqrt() + 1.0, |_| want);
        }
    }
}

#[test]
fn sums_of_all() {
    all::<f32>();
    all::<f16>();
    all::<bf16>();
}
