//! Sums and largest elements of rows, of columns and of blocks.

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

/// Each case: matrices, rows, columns and groups.
fn columns<T: Real>(cases: &[[usize; 4]]) {
    for device in devices() {
        for &[matrices, rows, columns, groups] in cases {
            let x = numbers::<T>(matrices * rows * columns, 3.0, columns as u64);
            let dx = device.tensor(&x).unwrap();
            let mut parts = device.empty::<f32>(matrices * groups * columns).unwrap();
            let [mut sums, mut largest, mut largest_parts] =
                [1, 1, groups].map(|groups| device.empty::<T>(matrices * groups * columns).unwrap());
            let sum = kernels::column_sum(&dx, &mut parts, rows, columns);
            sum.grid(|config| (cdiv(columns, config.BLOCK_SIZE), groups, matrices)).launch().unwrap();
            let sum = kernels::column_sum(&parts, &mut sums, groups, columns);
            sum.grid(|config| (cdiv(columns, config.BLOCK_SIZE), 1, matrices)).launch().unwrap();
            let max = kernels::column_max(&dx, &mut largest_parts, rows, columns);
            max.grid(|config| (cdiv(columns, config.BLOCK_SIZE), groups, matrices)).launch().unwrap();
            let max = kernels::column_max(&largest_parts, &mut largest, groups, columns);
            max.grid(|config| (cdiv(columns, config.BLOCK_SIZE), 1, matrices)).launch().unwrap();
            // The elements of column `j` of matrix `k`, in the rows of a group or in all.
            let column = |k: usize, group: usize, groups: usize, j: usize| {
                let x = &x;
                (group..rows.max(group)).step_by(groups).map(move |i| x[(k * rows + i) * columns + j].wide())
            };
            let part = |i: usize| column(i / columns / groups, i / columns % groups, groups, i % columns);
            let whole = |i: usize| column(i / columns, 0, 1, i % columns);
            let size = (rows as f64).sqrt() + 1.0;
            check(device, &parts.to_vec().unwrap(), size, |i| part(i).sum());
            check(device, &sums.to_vec().unwrap(), size, |i| whole(i).sum());
            check(device, &largest_parts.to_vec().unwrap(), 0.0, |i| part(i).fold(f64::NEG_INFINITY, f64::max));
            check(device, &largest.to_vec().unwrap(), 0.0, |i| whole(i).fold(f64::NEG_INFINITY, f64::max));
        }
    }
}

#[test]
fn reductions_of_columns() {
    columns::<f32>(&[[1, 0, 3, 1], [1, 1, 1, 1], [1, 5, 1000, 2], [1, 103, 7, 16], [1, 40, 257, 9], [3, 70, 5, 2], [2, 0, 3, 2]]);
    columns::<f16>(&[[1, 5, 1000, 2], [2, 103, 7, 3]]);
    columns::<bf16>(&[[3, 40, 65, 2]]);
}

/// Each case: rows, their elements, and groups.
fn blocks<T: Real>(cases: &[[usize; 3]]) {
    for device in devices() {
        for &[rows, n, groups] in cases {
            let x = numbers::<T>(rows * n, 3.0, n as u64);
            let dx = device.tensor(&x).unwrap();
            let mut parts = device.empty::<f32>(rows * groups).unwrap();
            let [mut sums, mut largest, mut largest_parts] = [1, 1, groups].map(|groups| device.empty::<T>(rows * groups).unwrap());
            kernels::block_sum(&dx, &mut parts, n).grid(|_| (groups, rows)).launch().unwrap();
            kernels::block_sum(&parts, &mut sums, groups).grid(|_| (1, rows)).launch().unwrap();
            kernels::block_max(&dx, &mut largest_parts, n).grid(|_| (groups, rows)).launch().unwrap();
            kernels::row_max(&largest_parts, &mut largest, groups).grid(|_| rows).launch().unwrap();
            let row = |row: usize| x[row * n..][..n].iter().map(|v| v.wide());
            check(device, &sums.to_vec().unwrap(), (n as f64).sqrt() + 1.0, |i| row(i).sum());
            check(device, &largest.to_vec().unwrap(), 0.0, |i| row(i).fold(f64::NEG_INFINITY, f64::max));
        }
    }
}

/// Rows that begin at multiples of 16 elements and elsewhere, that end before the first multiple, and that have fewer blocks than groups.
#[test]
fn reductions_of_blocks() {
    blocks::<f32>(&[[1, 0, 2], [1, 1, 1], [1, 1000, 3], [1, 20_003, 7], [5, 3, 2], [3, 16, 2], [4, 2049, 2], [2, 0, 2], [3, 20_003, 2]]);
    blocks::<f16>(&[[1, 20_003, 7], [5, 1, 1], [3, 8200, 2]]);
    blocks::<bf16>(&[[1, 1000, 3], [3, 4099, 3]]);
}

/// Infinities and NaN at the first elements of a row, which are before its first block, and within blocks.
#[test]
fn special_values_in_blocks() {
    const N: usize = 1003;
    for device in devices() {
        for at in [0, 1, 500, N - 1] {
            for (value, sum, largest) in [
                (f32::NAN, f32::NAN, 1.0),
                (f32::INFINITY, f32::INFINITY, f32::INFINITY),
                (f32::NEG_INFINITY, f32::NEG_INFINITY, 1.0),
                (2.0, N as f32 + 1.0, 2.0),
            ] {
                let mut x = vec![1.0f32; 3 * N];
                x[N + at] = value;
                let dx = device.tensor(&x).unwrap();
                let [mut sums, mut maxima] = [0; 2].map(|_| device.empty::<f32>(3).unwrap());
                kernels::block_sum(&dx, &mut sums, N).grid(|_| (1, 3)).launch().unwrap();
                kernels::block_max(&dx, &mut maxima, N).grid(|_| (1, 3)).launch().unwrap();
                check(device, &sums.to_vec().unwrap(), 0.0, |i| f64::from([N as f32, sum, N as f32][i]));
                check(device, &maxima.to_vec().unwrap(), 0.0, |i| f64::from([1.0, largest, 1.0][i]));
            }
        }
        // Rows of NaN alone.
        let dx = device.tensor(&[f32::NAN; 3 * 17]).unwrap();
        let mut largest = device.empty::<f32>(3).unwrap();
        kernels::block_max(&dx, &mut largest, 17).grid(|_| (1, 3)).launch().unwrap();
        assert_eq!(largest.to_vec().unwrap(), [f32::NEG_INFINITY; 3], "{device}");
        let mut largest = device.empty::<f32>(17).unwrap();
        kernels::column_max(&dx, &mut largest, 3, 17).grid(|config| cdiv(17, config.BLOCK_SIZE)).launch().unwrap();
        assert_eq!(largest.to_vec().unwrap(), [f32::NEG_INFINITY; 17], "{device}");
    }
}

fn quotients<T: Real>() {
    for device in devices() {
        for n in [0, 1, 1000, 1025] {
            let x = numbers::<f32>(n, 3.0, n as u64);
            let mut y = device.empty::<T>(n).unwrap();
            kernels::quotients::<T, 1024>(&device.tensor(&x).unwrap(), &mut y, n, 7.0).grid(cdiv(n, 1024)).launch().unwrap();
            check(device, &y.to_vec().unwrap(), 0.0, |i| f64::from(x[i]) / 7.0);
        }
    }
}

#[test]
fn quotients_of_sums() {
    quotients::<f32>();
    quotients::<f16>();
    quotients::<bf16>();
}
