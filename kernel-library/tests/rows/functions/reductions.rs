//! Sums and maxima.

use galatea::prelude::*;
use kernel_library::{column_sum, row_max, row_sum, sum};

use super::{SHAPES, agree, devices, extents, of_every_type, sample};
use crate::Real;

/// The shapes of all, and one that is summed in two launches.
const OF_SUMS: [&[usize]; 5] = [SHAPES[0], SHAPES[1], SHAPES[2], SHAPES[3], &[11_003, 3]];

fn reductions<T: Real>(shapes: &[&[usize]]) {
    for device in devices() {
        for shape in shapes {
            let (n, rows, columns) = extents(shape);
            let leading = &shape[..shape.len() - 1];
            let (x, host) = sample::<T>(device, shape, 3.0);
            let row = |i: usize| host[i * columns..][..columns].iter().map(|v| v.wide());
            let size = |count: usize| 3.0 * (count as f64).sqrt();
            agree(device, &column_sum(&x).unwrap(), &[columns], size(rows), |j| {
                host.iter().skip(j).step_by(columns).map(|v| v.wide()).sum()
            });
            agree(device, &sum(&x).unwrap(), &[], size(n), |_| host.iter().map(|v| v.wide()).sum());
            // Many short rows take the simulator long, and are no other case.
            if rows < 100 {
                agree(device, &row_sum(&x).unwrap(), leading, size(columns), |i| row(i).sum());
                agree(device, &row_max(&x).unwrap(), leading, 0.0, |i| row(i).fold(f64::NEG_INFINITY, f64::max));
            }
        }
    }
}

#[test]
fn reductions_of_tensors() {
    of_every_type!(reductions, OF_SUMS);
}

/// Two programs of the first launch, each with several blocks.
#[test]
fn a_sum_in_two_launches() {
    for device in devices() {
        let (x, host) = sample::<f32>(device, &[40_003], 3.0);
        agree(device, &sum(&x).unwrap(), &[], 600.0, |_| host.iter().map(|v| f64::from(*v)).sum());
    }
}
