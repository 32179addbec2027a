//! Layer norm and RMS norm.

use galatea::prelude::*;
use kernel_library::kernels;

use crate::{COLUMNS, ROWS, Real, check, devices, numbers};

pub(crate) const EPS: f32 = 1e-5;

fn layer_norm<T: Real>() {
    for device in devices() {
        for columns in COLUMNS {
            let [w, b] = [1, 2].map(|seed| numbers::<T>(columns, 1.0, seed));
            // A mean far from zero: the differences must be taken before the squares.
            let x: Vec<T> = numbers::<T>(ROWS * columns, 2.0, 3).into_iter().map(|v| T::near(v.wide() + 10.0)).collect();
            let (dx, dw, db) = (device.tensor(&x).unwrap(), device.tensor(&w).unwrap(), device.tensor(&b).unwrap());
            let mut y = device.empty_like(&dx).unwrap();
            let [mut mean, mut rstd] = [0; 2].map(|_| device.empty::<f32>(ROWS).unwrap());
            kernels::layer_norm(&dx, &dw, &db, &mut y, &mut mean, &mut rstd, ROWS, columns, EPS)
                .grid(|config| cdiv(ROWS, config.ROWS))
                .launch()
                .unwrap();

            let stats: Vec<(f64, f64)> = x.chunks(columns).map(stats).collect();
            check(device, &mean.to_vec().unwrap(), 0.0, |row| stats[row].0);
            // The square root halves what the variance is off by; a single column has none but its roundings.
            check(device, &rstd.to_vec().unwrap(), 0.0, |row| stats[row].1);
            check(device, &y.to_vec().unwrap(), 4.0, |i| {
                let (mean, rstd) = stats[i / columns];
                (x[i].wide() - mean) * rstd * w[i % columns].wide() + b[i % columns].wide()
            });
        }
    }
}

pub(crate) fn stats<T: Real>(row: &[T]) -> (f64, f64) {
    let count = row.len() as f64;
    let mean = row.iter().map(|v| v.wide()).sum::<f64>() / count;
    let variance = row.iter().map(|v| (v.wide() - mean).powi(2)).sum::<f64>() / count;
    (mean, 1.0 / (variance + f64::from(EPS)).sqrt())
}

fn rms_norm<T: Real>() {
    for device in devices() {
        for columns in COLUMNS {
            let (w, x) = (numbers::<T>(columns, 1.0, 1), numbers::<T>(ROWS * columns, 3.0, 2));
            let (dx, dw) = (device.tensor(&x).unwrap(), device.tensor(&w).unwrap());
            let mut y = device.empty_like(&dx).unwrap();
            let mut rstd = device.empty::<f32>(ROWS).unwrap();
            kernels::rms_norm(&dx, &dw, &mut y, &mut rstd, ROWS, columns, EPS).grid(|config| cdiv(ROWS, config.ROWS)).launch().unwrap();
            let want = |row: usize| {
                let squares: f64 = x[row * columns..][..columns].iter().map(|v| v.wide().powi(2)).sum();
                1.0 / (squares / columns as f64 + f64::from(EPS)).sqrt()
            };
            let want: Vec<f64> = (0..ROWS).map(want).collect();
            check(device, &rstd.to_vec().unwrap(), 0.0, |row| want[row]);
            // Beside 0 halves are coarser than their digits.
            check(device, &y.to_vec().unwrap(), 1e-2, |i| x[i].wide() * want[i / columns] * w[i % columns].wide());
        }
    }
}

#[test]
fn layer_norms() {
    layer_norm::<f32>();
    layer_norm::<f16>();
    layer_norm::<bf16>();
}

#[test]
fn rms_norms() {
    rms_norm::<f32>();
    rms_norm::<f16>();
    rms_norm::<bf16>();
}
