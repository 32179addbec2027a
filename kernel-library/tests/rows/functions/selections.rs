//! Largest elements with their columns, and histograms.

use galatea::prelude::*;
use kernel_library::{bin_counts, row_argmax, row_topk};

use super::{SHAPES, devices, extents, of_every_type};
use crate::Real;
use crate::selections::{coarse, descending_indices};

fn largest<T: Real>(shapes: &[&[usize]]) {
    const K: usize = 8;
    for device in devices() {
        for shape in shapes {
            let (n, _, columns) = extents(shape);
            let leading = &shape[..shape.len() - 1];
            let host = coarse::<T>(n, columns as u64);
            let x = device.tensor_from(&host, *shape).unwrap();
            let (first, top) = (row_argmax(&x).unwrap(), row_topk::<_, K>(&x).unwrap());
            let of_top = [leading, &[K]].concat();
            assert_eq!((first.shape(), top.values.shape(), top.indices.shape()), (leading, &of_top[..], &of_top[..]));
            let (first, values, indices) = (first.to_vec().unwrap(), top.values.to_vec().unwrap(), top.indices.to_vec().unwrap());
            for (row, x) in host.chunks(columns).enumerate() {
                let want = descending_indices(x);
                assert_eq!(first[row], want[0] as i64, "{device}: row {row} of {shape:?}");
                for k in 0..K {
                    let got = (indices[row * K + k], values[row * K + k].wide());
                    assert_eq!(got, (want[k] as i64, x[want[k]].wide()), "{device}: number {k} of row {row} of {shape:?}");
                }
            }
        }
    }
}

#[test]
fn largest_elements_of_tensors() {
    of_every_type!(largest, SHAPES);
}

fn counts<T: Real>(shapes: &[&[usize]]) {
    const BINS: usize = 64;
    for device in devices() {
        for shape in shapes {
            let mut host = coarse::<T>(extents(shape).0, 3);
            host[..3].copy_from_slice(&[4.0, -4.0, f64::NAN].map(T::near));
            let x = device.tensor_from(&host, *shape).unwrap();
            let part = |v: f64| (((v + 4.0) * BINS as f64 / 8.0) as usize).min(BINS - 1);
            let of = |k: usize| host.iter().map(|v| v.wide()).filter(|v| (-4.0..=4.0).contains(v) && part(*v) == k).count() as i32;
            let got = bin_counts::<_, BINS>(&x, -4.0, 4.0).unwrap();
            assert_eq!((got.shape(), got.to_vec().unwrap()), (&[BINS][..], (0..BINS).map(of).collect::<Vec<i32>>()), "{device}: {shape:?}");
        }
    }
}

#[test]
fn histograms_of_tensors() {
    // The last has several programs.
    const OF_COUNTS: [&[usize]; 4] = [SHAPES[0], SHAPES[1], SHAPES[2], &[5003]];
    of_every_type!(counts, OF_COUNTS);
}

/// Rows that are reduced in two launches, with equal largest elements in several blocks and groups, and before the first block.
#[test]
fn largest_elements_of_long_rows() {
    const N: usize = 49_155;
    fn holds<T: Real>(device: Device) {
        for (first, others) in [(0, vec![16_384, 20_000]), (3, vec![N - 1]), (20_000, vec![20_001, 40_000, N - 1]), (N - 1, vec![])] {
            let mut host = vec![T::near(-2.0); 3 * N];
            // The row in the middle begins at no multiple of 16 elements. Its neighbours have larger elements at its ends.
            for at in [N - 1, N + first, 2 * N].into_iter().chain(others.into_iter().map(|at| N + at)) {
                host[at] = T::near(if at / N == 1 { -1.0 } else { 5.0 });
            }
            let x = device.tensor_from(&host, [3, N]).unwrap();
            let found = row_argmax(&x).unwrap().to_vec().unwrap();
            assert_eq!(found, [N as i64 - 1, first as i64, 0], "{} on {device}", T::DTYPE);
        }
    }
    for device in devices() {
        holds::<f32>(device);
        holds::<bf16>(device);
        let (nan, low) = (f32::NAN, f32::NEG_INFINITY);
        let mut host = vec![nan; 3 * N];
        host[N..2 * N].fill(low);
        host[3 * N - 2] = f32::MIN;
        let x = device.tensor_from(&host, [3, N]).unwrap();
        assert_eq!(row_argmax(&x).unwrap().to_vec().unwrap(), [0, 0, N as i64 - 2], "{device}");
    }
}
