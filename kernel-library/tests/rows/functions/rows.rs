//! Functions from rows to rows: softmax and cumulative sums. And the transpose.

use galatea::prelude::*;
use kernel_library::{row_cumsum, softmax, transpose};

use super::{SHAPES, agree, devices, extents, of_every_type, sample};
use crate::Real;
use crate::softmaxes::reference;

fn softmaxes<T: Real>(shapes: &[&[usize]]) {
    for device in devices() {
        for shape in shapes {
            let (x, host) = sample::<T>(device, shape, 5.0);
            let want: Vec<f64> = host.chunks(extents(shape).2).flat_map(reference).collect();
            agree(device, &softmax(&x).unwrap(), shape, 1e-3, |i| want[i]);
        }
    }
}

#[test]
fn softmax_of_tensors() {
    of_every_type!(softmaxes, SHAPES);
}

fn scans<T: Real>(shapes: &[&[usize]]) {
    for device in devices() {
        for shape in shapes {
            let (x, host) = sample::<T>(device, shape, 3.0);
            let columns = extents(shape).2;
            agree(device, &row_cumsum(&x).unwrap(), shape, 3.0 * (columns as f64).sqrt(), |i| {
                host[i / columns * columns..=i].iter().map(|v| v.wide()).sum()
            });
        }
    }
}

#[test]
fn cumulative_sums_of_tensors() {
    of_every_type!(scans, SHAPES);
}

fn transposes<T: Real>(shapes: &[[usize; 2]]) {
    for device in devices() {
        for &[rows, columns] in shapes {
            let (x, host) = sample::<T>(device, &[rows, columns], 3.0);
            agree(device, &transpose(&x).unwrap(), &[columns, rows], 0.0, |i| host[i % rows * columns + i / rows].wide());
        }
    }
}

#[test]
fn transposes_of_tensors() {
    transposes::<f32>(&[[1, 77], [33, 31]]);
    transposes::<bf16>(&[[40, 3]]);
    let bytes = Device::cpu().tensor_from(&[1u8, 2, 3, 4, 5, 6], [3, 2]).unwrap();
    assert_eq!(transpose(&bytes).unwrap().to_vec().unwrap(), [1, 3, 5, 2, 4, 6]);
}
