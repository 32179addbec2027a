//! Sums and largest elements of rows.

use galatea::prelude::*;

use crate::{COLUMNS, ROWS, Real, check, devices, numbers};

fn reductions<T: Real>() {
    for device in devices() {
        for columns in COLUMNS.into_iter().chain([9000]) {
            let x = numbers::<T>(ROWS * columns, 3.0, columns as u64);
            let dx = device.tensor(&x).unwrap();
            let [mut sums, mut largest] = [0; 2].map(|_| device.empty::<T>(ROWS).unwrap());
            kernel_library::row_sum(&dx, &mut sums, columns).grid(|_| ROWS).launch().unwrap();
            kernel_library::row_max(&dx, &mut largest, columns).grid(|_| ROWS).launch().unwrap();
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
        kernel_library::row_sum(&x, &mut sums, 0).grid(|_| 3).launch().unwrap();
        kernel_library::row_max(&x, &mut largest, 0).grid(|_| 3).launch().unwrap();
        assert_eq!((sums.to_vec().unwrap(), largest.to_vec().unwrap()), (vec![0.0; 3], vec![f32::NEG_INFINITY; 3]), "{device}");
    }
}
