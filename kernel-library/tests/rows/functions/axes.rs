//! Reductions over any axes.

use galatea::prelude::*;
use kernel_library::{Keep, max_over, mean_over, sum_over};

use super::{agree, devices, in_both_calls, sample};
use crate::Real;

/// The shape of the result of a reduction, and the elements of which each of its elements is reduced, by their coordinates.
fn groups<T: Real>(host: &[T], shape: &[usize], axes: &[usize], keep: Keep) -> (Vec<usize>, Vec<Vec<f64>>) {
    let extents: Vec<usize> = shape.iter().enumerate().map(|(axis, extent)| if axes.contains(&axis) { 1 } else { *extent }).collect();
    let mut groups = vec![Vec::new(); extents.iter().product()];
    for (at, v) in host.iter().enumerate() {
        let (mut rest, mut group, mut stride) = (at, 0, 1);
        for axis in (0..shape.len()).rev() {
            let coordinate = rest % shape[axis];
            rest /= shape[axis];
            group += coordinate.min(extents[axis] - 1) * stride;
            stride *= extents[axis];
        }
        groups[group].push(v.wide());
    }
    let is_left = |axis: &usize| keep == Keep::Yes || !axes.contains(axis);
    ((0..shape.len()).filter(is_left).map(|axis| extents[axis]).collect(), groups)
}

fn holds<T: Real>(device: Device, shape: &[usize], axes: &[usize], keep: Keep) {
    let (x, host) = sample::<T>(device, shape, 3.0);
    let (expected, groups) = groups(&host, shape, axes, keep);
    let count = (host.len() / groups.len().max(1)).max(1) as f64;
    let sum = |i: usize| groups[i].iter().sum::<f64>();
    eprintln!("{device}: {} {shape:?} over {axes:?}", T::DTYPE);
    agree(device, &in_both_calls(|| sum_over(&x, axes, keep)), &expected, 3.0 * count.sqrt(), sum);
    agree(device, &in_both_calls(|| mean_over(&x, axes, keep)), &expected, 3.0 / count.sqrt(), |i| sum(i) / count);
    let largest = |i: usize| groups[i].iter().copied().fold(f64::NEG_INFINITY, f64::max);
    agree(device, &in_both_calls(|| max_over(&x, axes, keep)), &expected, 0.0, largest);
}

/// Each set of axes of a tensor of three axes, with and without these axes in the result.
#[test]
fn every_set_of_axes() {
    for device in devices() {
        for set in 0..8 {
            let axes: Vec<usize> = (0..3).filter(|axis| set >> axis & 1 == 1).collect();
            for keep in [Keep::Yes, Keep::No] {
                holds::<f32>(device, &[3, 5, 7], &axes, keep);
            }
        }
        holds::<f32>(device, &[], &[], Keep::Yes);
    }
}

/// Axes in any order, several groups of axes with others between them, extents of 1, and other types.
#[test]
fn axes_that_are_not_neighbours() {
    for device in devices() {
        holds::<f32>(device, &[2, 3, 4, 5, 2], &[4, 0, 2], Keep::Yes);
        holds::<f32>(device, &[2, 3, 1, 4], &[3, 1], Keep::No);
        holds::<f16>(device, &[5, 3, 4], &[2, 0], Keep::No);
        holds::<bf16>(device, &[5, 3, 4], &[1], Keep::Yes);
    }
}

/// The thresholds of two launches: 512 rows of a matrix, and 32,768 elements of a row.
#[test]
fn axes_in_two_launches() {
    for device in devices() {
        holds::<f32>(device, &[2, 511, 3], &[1], Keep::No);
        holds::<f32>(device, &[2, 512, 3], &[1], Keep::No);
        holds::<f16>(device, &[3, 803, 5], &[1], Keep::No);
        holds::<f32>(device, &[2, 32_771], &[1], Keep::No);
        holds::<bf16>(device, &[700, 2, 50], &[0, 2], Keep::No);
    }
}

/// Parts between steps are `f32`: a sum of 2049 is not rounded before it becomes 4098, which `f16` cannot hold exactly beside 4096 and 4100.
#[test]
fn sums_in_steps_are_rounded_once() {
    for device in devices() {
        let mut host = vec![f16::from_f32(0.0); 3 * 2 * 3];
        for (at, v) in [(0, 2048.0), (1, 1.0), (6, 2048.0), (7, 1.0), (12, 1.0)] {
            host[at] = f16::from_f32(v);
        }
        let x = device.tensor_from(&host, [3, 2, 3]).unwrap();
        // 4099 is nearer to 4100 than to 4096. Rounded before, it would be 2048 + 2048 + 1, which is 4096.
        assert_eq!(sum_over(&x, &[0, 2], Keep::No).unwrap().to_vec().unwrap(), [4099.0, 0.0].map(f16::from_f32), "{device}");
    }
}

/// Results without elements, and reductions of no elements.
#[test]
fn axes_of_empty_tensors() {
    for device in devices() {
        let x = device.zeros::<f32>([2, 0, 3]).unwrap();
        for (axes, keep, shape) in [
            (&[1][..], Keep::No, &[2, 3][..]),
            (&[1], Keep::Yes, &[2, 1, 3]),
            (&[0], Keep::No, &[0, 3]),
            (&[2], Keep::Yes, &[2, 0, 1]),
            (&[0, 1], Keep::No, &[3]),
            (&[1, 2], Keep::No, &[2]),
            (&[0, 2], Keep::Yes, &[1, 0, 1]),
            (&[0, 1, 2], Keep::No, &[]),
            (&[], Keep::No, &[2, 0, 3]),
        ] {
            let n: usize = shape.iter().product();
            let of = |y: Result<Tensor<f32>>| {
                let y = y.unwrap();
                assert_eq!(y.shape(), shape, "{device}: {axes:?}");
                y.to_vec().unwrap()
            };
            assert_eq!(of(sum_over(&x, axes, keep)), vec![0.0; n], "{device}: {axes:?}");
            assert_eq!(of(max_over(&x, axes, keep)), vec![f32::NEG_INFINITY; n], "{device}: {axes:?}");
            assert!(of(mean_over(&x, axes, keep)).into_iter().all(f32::is_nan), "{device}: {axes:?}");
        }
    }
}

/// NaN counts as `-inf` over every axis, also where a single element is the largest.
#[test]
fn special_values_over_axes() {
    let (nan, infinity) = (f32::NAN, f32::INFINITY);
    for device in devices() {
        let x = device.tensor_from(&[nan, nan, 1.0, -infinity, infinity, nan, 2.0, nan], [2, 2, 2]).unwrap();
        let largest = |axes: &[usize]| max_over(&x, axes, Keep::No).unwrap().to_vec().unwrap();
        assert_eq!(largest(&[0]), [infinity, -infinity, 2.0, -infinity], "{device}");
        assert_eq!(largest(&[1]), [1.0, -infinity, infinity, -infinity], "{device}");
        assert_eq!(largest(&[2]), [-infinity, 1.0, infinity, 2.0], "{device}");
        assert_eq!(largest(&[0, 2]), [infinity, 2.0], "{device}");
        assert_eq!(largest(&[]), [-infinity, -infinity, 1.0, -infinity, infinity, -infinity, 2.0, -infinity], "{device}");
        let sums = sum_over(&x, &[1], Keep::No).unwrap().to_vec().unwrap();
        assert!(sums[0].is_nan() && sums[1].is_nan() && sums[2] == infinity && sums[3].is_nan(), "{device}: {sums:?}");
        let x = device.tensor_from(&[infinity, -infinity, 1.0, infinity], [2, 2]).unwrap();
        let means = mean_over(&x, &[0], Keep::No).unwrap().to_vec().unwrap();
        assert!(means[0] == infinity && means[1].is_nan(), "{device}: {means:?}");
    }
}

/// `f64` is added up in `f32`, and has no largest elements.
#[test]
fn doubles_over_axes() {
    let x = Device::cpu().tensor_from(&[1.0f64, 2.0, 3.0, 6.0], [2, 2]).unwrap();
    assert_eq!(sum_over(&x, &[0], Keep::No).unwrap().to_vec().unwrap(), [4.0, 8.0]);
    assert_eq!(mean_over(&x, &[1], Keep::No).unwrap().to_vec().unwrap(), [1.5, 4.5]);
    for axis in [0, 1] {
        let refused = max_over(&x, &[axis], Keep::No);
        assert!(matches!(&refused, Err(Error::Compile { .. })), "{refused:?}");
    }
}
