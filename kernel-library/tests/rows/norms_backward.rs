//! The backward passes of the norms, in both stages.

use galatea::prelude::*;
use kernel_library::kernels;

use crate::{COLUMNS, Real, check, devices, numbers};

const EPS: f64 = 1e-5;

/// Rows and groups of them: groups of several rows, the last one shorter; one of all; more groups than rows.
const GROUPED: [(usize, usize); 3] = [(7, 3), (5, 1), (2, 4)];

/// The mean (0 for RMS norm) and one over the deviation of each row, as a forward pass keeps them.
pub(crate) fn stats<T: Real>(x: &[T], columns: usize, is_centred: bool) -> (Vec<f32>, Vec<f32>) {
    let of = |row: &[T]| {
        let count = columns as f64;
        let mean = if is_centred { row.iter().map(|v| v.wide()).sum::<f64>() / count } else { 0.0 };
        let variance = row.iter().map(|v| (v.wide() - mean).powi(2)).sum::<f64>() / count;
        (mean as f32, (1.0 / (variance + EPS).sqrt()) as f32)
    };
    x.chunks(columns).map(of).unzip()
}

/// The expected gradients: `dx`, and the sums over the rows for weight and bias.
pub(crate) struct Gradients {
    pub(crate) dx: Vec<f64>,
    pub(crate) weight: Vec<f64>,
    pub(crate) bias: Vec<f64>,
}

/// By the chain rule, term by term: `normal[k]` depends on `x[j]` directly, through the deviation, and through the mean.
pub(crate) fn reference<T: Real>(dy: &[T], x: &[T], weight: &[T], (mean, rstd): (&[f32], &[f32]), is_centred: bool) -> Gradients {
    let columns = weight.len();
    let mut all = Gradients { dx: Vec::new(), weight: vec![0.0; columns], bias: vec![0.0; columns] };
    for (row, (dy, x)) in dy.chunks(columns).zip(x.chunks(columns)).enumerate() {
        let (mean, rstd) = (f64::from(mean[row]), f64::from(rstd[row]));
        let distance: Vec<f64> = x.iter().map(|v| v.wide() - mean).collect();
        let dnormal: Vec<f64> = dy.iter().zip(weight).map(|(d, w)| d.wide() * w.wide()).collect();
        let drstd: f64 = dnormal.iter().zip(&distance).map(|(d, x)| d * x).sum();
        let dvariance = -0.5 * drstd * rstd.powi(3);
        let dmean = if is_centred { -dnormal.iter().sum::<f64>() * rstd } else { 0.0 };
        for j in 0..columns {
            all.dx.push(dnormal[j] * rstd + (dvariance * 2.0 * distance[j] + dmean) / columns as f64);
            all.weight[j] += dy[j].wide() * distance[j] * rstd;
            all.bias[j] += dy[j].wide();
        }
    }
    all
}

fn summed<T: Real>(device: Device, parts: &Tensor<f32>, groups: usize, columns: usize) -> Vec<T> {
    let mut y = device.empty::<T>(columns).unwrap();
    kernels::column_sum(parts, &mut y, groups, columns).grid(|config| cdiv(columns, config.BLOCK_SIZE)).launch().unwrap();
    y.to_vec().unwrap()
}

/// All shapes of one type. Of the others, whose loads and stores differ, a few: each shape is tuned first, which takes the most of the time.
fn norms(is_centred: bool) {
    norms_of::<f32>(is_centred, &COLUMNS, &GROUPED);
    norms_of::<f16>(is_centred, &[7, 257, 2056], &GROUPED[..1]);
    norms_of::<bf16>(is_centred, &[1, 1000], &GROUPED[..1]);
}

fn norms_of<T: Real>(is_centred: bool, lengths: &[usize], grouped: &[(usize, usize)]) {
    for device in devices() {
        for &columns in lengths {
            for &(rows, groups) in grouped {
                let w = numbers::<T>(columns, 1.0, 1);
                let [x, dy] = [2, 3].map(|seed| numbers::<T>(rows * columns, 2.0, seed));
                let (mean, rstd) = stats(&x, columns, is_centred);
                let want = reference(&dy, &x, &w, (&mean, &rstd), is_centred);

                let [ddy, dx, dw] = [&dy, &x, &w].map(|host| device.tensor(host).unwrap());
                let [dmean, drstd] = [&mean, &rstd].map(|host| device.tensor(host).unwrap());
                let mut gradient = device.empty_like(&dx).unwrap();
                if is_centred {
                    let mut parts = device.empty::<f32>(groups * 2 * columns).unwrap();
                    kernels::layer_norm_backward(&ddy, &dx, &dw, &dmean, &drstd, &mut gradient, &mut parts, rows, columns)
                        .grid(|_| groups)
                        .launch()
                        .unwrap();
                    let both = [&want.weight[..], &want.bias].concat();
                    check(device, &summed::<T>(device, &parts, groups, 2 * columns), 4.0, |i| both[i]);
                } else {
                    let mut weights = device.empty::<f32>(groups * columns).unwrap();
                    kernels::rms_norm_backward(&ddy, &dx, &dw, &drstd, &mut gradient, &mut weights, rows, columns)
                        .grid(|_| groups)
                        .launch()
                        .unwrap();
                    check(device, &summed::<T>(device, &weights, groups, columns), 4.0, |i| want.weight[i]);
                }
                // Of a single column the gradient is a difference of what is scaled by the inverse deviation.
                let size = rstd.iter().fold(4.0, |size, rstd| f64::from(*rstd).max(size));
                check(device, &gradient.to_vec().unwrap(), 2.0 * size, |i| want.dx[i]);
            }
        }
    }
}

#[test]
fn layer_norms() {
    norms(true);
}

#[test]
fn rms_norms() {
    norms(false);
}

#[test]
fn rows_of_a_cluster() {
    norms_of::<f16>(true, &[9001], &[(3, 2)]);
    norms_of::<f32>(false, &[9001], &[(3, 2)]);
}

#[test]
fn a_row_that_is_too_long_is_an_error() {
    let (device, columns) = (Device::cpu(), 65_537);
    let x = device.zeros::<f32>(columns).unwrap();
    let [mut dx, mut parts] = [0; 2].map(|_| device.zeros::<f32>(columns).unwrap());
    let rstd = device.zeros::<f32>(1).unwrap();
    let error = kernels::rms_norm_backward(&x, &x, &x, &rstd, &mut dx, &mut parts, 1, columns).grid(|_| 1).launch().unwrap_err();
    assert!(matches!(error, Error::NoConfig { kernel: "rms_norm_backward", .. }), "{error}");
}
