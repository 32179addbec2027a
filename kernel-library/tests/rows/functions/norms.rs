//! Layer norm and RMS norm, with their gradients.

use galatea::prelude::*;
use kernel_library::{layer_norm, layer_norm_backward, layer_norm_forward, rms_norm, rms_norm_backward, rms_norm_forward};

use super::{SHAPES, agree, devices, extents, of_every_type, sample};
use crate::norms::EPS;
use crate::norms_backward::{reference, stats};
use crate::{Real, numbers};

/// The shapes of all, and more rows than programs of the CPU, so that a program sums several rows.
const OF_NORMS: [&[usize]; 5] = [SHAPES[0], SHAPES[1], SHAPES[2], SHAPES[3], &[19, 33]];

fn norms<T: Real>(shapes: &[&[usize]]) {
    for device in devices() {
        for shape in shapes {
            let (_, rows, columns) = extents(shape);
            let leading = &shape[..shape.len() - 1];
            let (x, host) = sample::<T>(device, shape, 2.0);
            let ((weight, w), (bias, b)) = (sample::<T>(device, &[columns], 1.0), sample::<T>(device, &[columns], 1.0));
            let (dy, d) = sample::<T>(device, shape, 2.0);
            for is_centred in [true, false] {
                let (mean, rstd) = stats(&host, columns, is_centred);
                let bias_of = |i: usize| if is_centred { b[i % columns].wide() } else { 0.0 };
                let want = |i: usize| {
                    let (mean, rstd) = (f64::from(mean[i / columns]), f64::from(rstd[i / columns]));
                    (host[i].wide() - mean) * rstd * w[i % columns].wide() + bias_of(i)
                };
                let gradients = reference(&d, &host, &w, (&mean, &rstd), is_centred);
                let size = 2.0 * rstd.iter().fold(4.0, |size, rstd| f64::from(*rstd).max(size));
                // A gradient of a weight is a sum over the rows.
                let sum_size = 4.0 * (rows as f64).sqrt();
                if is_centred {
                    let (y, saved) = layer_norm_forward(&x, &weight, &bias, EPS).unwrap();
                    agree(device, &y, shape, 4.0, want);
                    agree(device, &layer_norm(&x, &weight, &bias, EPS).unwrap(), shape, 4.0, want);
                    agree(device, &saved.mean, leading, 1.0, |row| mean[row].into());
                    agree(device, &saved.rstd, leading, 1.0, |row| rstd[row].into());
                    let got = layer_norm_backward(&dy, &x, &weight, &saved).unwrap();
                    agree(device, &got.dx, shape, size, |i| gradients.dx[i]);
                    agree(device, &got.dweight, &[columns], sum_size, |j| gradients.weight[j]);
                    agree(device, &got.dbias, &[columns], sum_size, |j| gradients.bias[j]);
                } else {
                    let (y, saved) = rms_norm_forward(&x, &weight, EPS).unwrap();
                    agree(device, &y, shape, 4.0, want);
                    agree(device, &rms_norm(&x, &weight, EPS).unwrap(), shape, 4.0, want);
                    agree(device, &saved.rstd, leading, 1.0, |row| rstd[row].into());
                    let got = rms_norm_backward(&dy, &x, &weight, &saved).unwrap();
                    agree(device, &got.dx, shape, size, |i| gradients.dx[i]);
                    agree(device, &got.dweight, &[columns], sum_size, |j| gradients.weight[j]);
                }
            }
        }
    }
}

#[test]
fn norms_of_tensors() {
    of_every_type!(norms, OF_NORMS);
}

/// The longest rows are those that the functions document; the errors for longer ones are in `errors`.
#[test]
fn the_longest_rows() {
    let device = Device::cpu();
    let row = device.tensor(&numbers::<f32>(32_768, 1.0, 1)).unwrap();
    let (_, saved) = layer_norm_forward(&row, &row, &row, EPS).unwrap();
    layer_norm_backward(&row, &row, &row, &saved).unwrap();
    rms_norm(&row, &row, EPS).unwrap();
    let row = device.tensor(&numbers::<f32>(65_536, 1.0, 1)).unwrap();
    let saved = kernel_library::RmsNormSaved { rstd: device.full([], 1.0f32).unwrap() };
    rms_norm_backward(&row, &row, &row, &saved).unwrap();
}
