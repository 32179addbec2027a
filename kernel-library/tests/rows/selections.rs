//! Largest elements and their indices, and counts of sizes.

use galatea::prelude::*;
use kernel_library::kernels;

use crate::{COLUMNS, ROWS, Real, check, devices, numbers};

/// Few different values, so that some are equal.
pub(crate) fn coarse<T: Real>(len: usize, seed: u64) -> Vec<T> {
    numbers::<T>(len, 6.0, seed).into_iter().map(|v| T::near((v.wide() * 16.0).round() / 16.0)).collect()
}

/// The columns of a row from the largest element on, equal ones from the first on.
pub(crate) fn descending_indices<T: Real>(row: &[T]) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..row.len()).collect();
    indices.sort_by(|i, j| row[*j].wide().total_cmp(&row[*i].wide()));
    indices
}

fn largest<T: Real, const K: usize>(columns: &[usize]) {
    for device in devices() {
        for &columns in columns {
            let x = coarse::<T>(ROWS * columns, columns as u64);
            let dx = device.tensor(&x).unwrap();
            let mut first = device.empty::<i64>(ROWS).unwrap();
            kernels::row_argmax(&dx, &mut first, columns).grid(|_| ROWS).launch().unwrap();
            let (mut values, mut found) = (device.empty::<T>(ROWS * K).unwrap(), device.empty::<i64>(ROWS * K).unwrap());
            kernels::row_topk::<T, K>(&dx, &mut values, &mut found, columns).grid(|_| ROWS).launch().unwrap();

            let (first, values, found) = (first.to_vec().unwrap(), values.to_vec().unwrap(), found.to_vec().unwrap());
            for (row, x) in x.chunks(columns).enumerate() {
                let want = descending_indices(x);
                assert_eq!(first[row], want[0] as i64, "{device}: row {row} of {columns} columns");
                for k in 0..K {
                    let got = (found[row * K + k], values[row * K + k].wide());
                    let want = want.get(k).map_or((-1, f64::NEG_INFINITY), |index| (*index as i64, x[*index].wide()));
                    assert_eq!(got, want, "{device}: number {k} of row {row} of {columns} columns");
                }
            }
        }
    }
}

#[test]
fn largest_of_every_type() {
    largest::<f32, 8>(&COLUMNS);
    largest::<f16, 64>(&COLUMNS);
    largest::<bf16, 8>(&COLUMNS);
}

/// Compiled when they are launched.
#[test]
fn the_smallest_and_the_largest_k() {
    largest::<f32, 1>(&[257]);
    largest::<bf16, 256>(&[257]);
    largest::<f32, 5>(&[3, 257]);
    largest::<f16, 100>(&[300]);
}

#[test]
fn infinities_and_nan() {
    const INF: f32 = f32::INFINITY;
    for device in devices() {
        let x = device.tensor(&[f32::NAN, -INF, -INF, -0.0, 0.0, -INF, f32::NAN, INF, 1.0]).unwrap();
        let mut first = device.empty::<i64>(3).unwrap();
        kernels::row_argmax(&x, &mut first, 3).grid(|_| 3).launch().unwrap();
        assert_eq!(first.to_vec().unwrap(), [0, 0, 1], "{device}");
        let (mut values, mut found) = (device.empty::<f32>(12).unwrap(), device.empty::<i64>(12).unwrap());
        kernels::row_topk::<f32, 4>(&x, &mut values, &mut found, 3).grid(|_| 3).launch().unwrap();
        assert_eq!(found.to_vec().unwrap(), [0, 1, 2, -1, 1, 0, 2, -1, 0, 1, 2, -1], "{device}");
        let want = [f64::NAN, -f64::INFINITY, -f64::INFINITY, -f64::INFINITY];
        check(device, &values.to_vec().unwrap()[..4], 0.0, |i| want[i]);
    }
}

fn counts<T: Real, const BINS: usize>() {
    for device in devices() {
        for (n, programs) in [(0, 1), (1, 1), (1000, 3), (5003, 2)] {
            let mut x = coarse::<T>(n, n as u64);
            // The ends are counted, NaN is not.
            for (x, v) in x.iter_mut().zip([4.0, -4.0, f64::NAN, f64::INFINITY]) {
                *x = T::near(v);
            }
            let dx = device.tensor(&x).unwrap();
            let mut counts = device.tensor(&[1i32; BINS]).unwrap();
            kernels::bin_counts::<T, BINS, 1024>(&dx, &mut counts, n, -4.0, 4.0).grid(programs).launch().unwrap();
            let part = |v: f64| (((v + 4.0) * BINS as f64 / 8.0) as usize).min(BINS - 1);
            let of = |k: usize| 1 + x.iter().map(|v| v.wide()).filter(|v| (-4.0..=4.0).contains(v) && part(*v) == k).count() as i32;
            assert_eq!(counts.to_vec().unwrap(), (0..BINS).map(of).collect::<Vec<i32>>(), "{device}: {n} {}", T::DTYPE);
        }
    }
}

#[test]
fn counts_of_sizes() {
    counts::<f32, 64>();
    counts::<f16, 64>();
    counts::<bf16, 64>();
    counts::<f32, 96>();
}
