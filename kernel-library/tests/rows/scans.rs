//! Sums up to each element of a row.

use galatea::prelude::*;
use kernel_library::kernels;

use crate::{COLUMNS, ROWS, Real, check, devices, numbers};

fn scans<T: Real>() {
    for device in devices() {
        for columns in COLUMNS {
            let x = numbers::<T>(ROWS * columns, 3.0, columns as u64);
            let dx = device.tensor(&x).unwrap();
            let mut y = device.empty_like(&dx).unwrap();
            kernels::row_cumsum(&dx, &mut y, columns).grid(|_| ROWS).launch().unwrap();
            check(device, &y.to_vec().unwrap(), 3.0 * (columns as f64).sqrt(), |i| {
                x[i / columns * columns..=i].iter().map(|v| v.wide()).sum()
            });
        }
    }
}

#[test]
fn sums_up_to_each() {
    scans::<f32>();
    scans::<f16>();
    scans::<bf16>();
}
