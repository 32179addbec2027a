//! Norms and their gradients: a program for each group or row.

use galatea::prelude::*;
use galatea::{Dtype, Result};

use crate::work::{Case, Run, Work, by_dtype, input, launch, output, scratch};

/// Group norm of `[images, channels, pixels]`: a program for each group of an image, which reads the group twice.
#[autotune(configs = product(BLOCK_SIZE = [1024, 2048, 4096, 8192], num_warps = [4, 8]), key = [channels, pixels, groups])]
#[kernel(T = [f16])]
pub fn group_norm<T: Float, const BLOCK_SIZE: usize>(
    x: Ptr<T>,
    weight: Ptr<T>,
    bias: Ptr<T>,
    y: PtrMut<T>,
    channels: usize,
    pixels: usize,
    groups: usize,
    eps: f32,
) {
    let first_channel = program_id(0) % groups * (channels / groups);
    let n = channels / groups * pixels;
    let start = program_id(0) * n;
    let mut total = zeros::<f32>([BLOCK_SIZE]);
    let mut squares = zeros::<f32>([BLOCK_SIZE]);
    for first in range(0, n, BLOCK_SIZE) {
        let at = first + arange(0, BLOCK_SIZE);
        let v = load(x + start + at, mask = at < n) as f32;
        total += v;
        squares += v * v;
    }
    let mean = sum(total) / n as f32;
    let rstd = rsqrt(sum(squares) / n as f32 - mean * mean + eps);
    for first in range(0, n, BLOCK_SIZE) {
        let at = first + arange(0, BLOCK_SIZE);
        let mask = at < n;
        let channel = first_channel + at / pixels;
        let w = load(weight + channel, mask = mask) as f32;
        let b = load(bias + channel, mask = mask) as f32;
        let v = load(x + start + at, mask = mask) as f32;
        store(y + start + at, ((v - mean) * rstd * w + b) as T, mask = mask);
    }
}

const EPS: f32 = 1e-5;

/// Group norm: `[images, channels, pixels, groups]`.
pub const GROUP_NORM: Work = Work {
    name: "group_norm",
    dtypes: &[Dtype::F16],
    sizes: [&[16, 512, 64 * 64, 32], &[15, 510, 63 * 65, 30], &[4, 64, 32 * 32, 8]],
    test_sizes: &[&[2, 8, 256, 4], &[3, 6, 35, 2], &[1, 1, 4, 1], &[0, 4, 4, 2]],
    tensors: |s| {
        let n = s[0] * s[1] * s[2];
        vec![input("x", n), input("weight", s[1]), input("bias", s[1]), output("y", n)]
    },
    launch: by_dtype!(launch_group_norm, F16: f16),
    reference: |s, host| {
        let n = s[1] / s[3] * s[2];
        let mut y = Vec::new();
        for group in host["x"].chunks(n) {
            let mean = group.iter().sum::<f64>() / n as f64;
            let variance = group.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64;
            for v in group {
                let channel = y.len() / s[2] % s[1];
                y.push((v - mean) / (variance + f64::from(EPS)).sqrt() * host["weight"][channel] + host["bias"][channel]);
            }
        }
        vec![("y", y)]
    },
    tolerance: 1.0,
};

fn launch_group_norm<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, weight, bias, mut y) = (case.read::<T>("x"), case.read::<T>("weight"), case.read::<T>("bias"), case.write::<T>("y"));
    let groups = s[0] * s[3];
    launch!(run, group_norm(&*x, &*weight, &*bias, &mut *y, s[1], s[2], s[3], EPS).grid(|_| groups));
    Ok(())
}

/// The gradient of an RMS norm, and the parts of the weights' gradient: a program takes every so many rows, each in one tile.
#[autotune(
    configs = product(BLOCK_SIZE = [1024, 2048, 4096, 8192], num_warps = [4, 8]),
    key = [columns],
    prune = |config| config.BLOCK_SIZE < columns || config.BLOCK_SIZE >= 2 * columns.max(513),
)]
#[kernel(T = [f16])]
pub fn rms_norm_backward<T: Float, const BLOCK_SIZE: usize>(
    dy: Ptr<T>,
    x: Ptr<T>,
    weight: Ptr<T>,
    rstd: Ptr<f32>,
    dx: PtrMut<T>,
    parts: PtrMut<f32>,
    rows: usize,
    columns: usize,
) {
    let column = arange(0, BLOCK_SIZE);
    let mask = column < columns;
    let w = load(weight + column, mask = mask) as f32;
    let mut dw = zeros::<f32>([BLOCK_SIZE]);
    for row in range(program_id(0), rows, num_programs(0)) {
        let g = load(dy + row * columns + column, mask = mask) as f32;
        let scale = load(rstd + row);
        let normal = load(x + row * columns + column, mask = mask) as f32 * scale;
        let mean = sum(g * w * normal) / columns as f32;
        store(dx + row * columns + column, ((g * w - normal * mean) * scale) as T, mask = mask);
        dw += g * normal;
    }
    store(parts + program_id(0) * columns + column, dw, mask = mask);
}

/// `y[j]` = the sum of `x[i, j]` over the rows.
#[autotune(configs = product(ROWS = [16, 32], COLUMNS = [32, 64, 128], num_warps = [4, 8]), key = [rows, columns])]
#[kernel(T = [f16])]
pub fn column_sum<T: Float, const ROWS: usize, const COLUMNS: usize>(x: Ptr<f32>, y: PtrMut<T>, rows: usize, columns: usize) {
    let column = program_id(0) * COLUMNS + arange(0, COLUMNS);
    let mut total = zeros::<f32>([ROWS, COLUMNS]);
    for first in range(0, rows, ROWS) {
        let row = first + arange(0, ROWS);
        let mask = (row < rows)[(.., None)] & (column < columns)[(None, ..)];
        total += load(x + row[(.., None)] * columns + column[(None, ..)], mask = mask);
    }
    store(y + column, sum(total, axis = 0) as T, mask = column < columns);
}

/// The gradients of an RMS norm in two launches: `[rows, columns]`.
pub const RMS_NORM_BACKWARD: Work = Work {
    name: "rms_norm_backward",
    dtypes: &[Dtype::F16],
    sizes: [&[4096, 1024], &[4095, 1001], &[512, 768]],
    test_sizes: &[&[4, 256], &[3, 1037], &[1, 1]],
    tensors: |s| {
        let n = s[0] * s[1];
        let rstd = input("rstd", s[0]).of(Dtype::F32).between(0.5, 1.5);
        let (dx, dweight) = (output("dx", n), output("dweight", s[1]));
        vec![input("dy", n), input("x", n), input("weight", s[1]), rstd, dx, dweight, scratch("parts", GROUPS * s[1]).of(Dtype::F32)]
    },
    launch: by_dtype!(launch_rms_norm_backward, F16: f16),
    reference: |s, host| {
        let (mut dx, mut dweight) = (Vec::new(), vec![0.0; s[1]]);
        for row in 0..s[0] {
            let at = |name: &str, column: usize| host[name][row * s[1] + column];
            let scale = host["rstd"][row];
            let mean = (0..s[1]).map(|j| at("dy", j) * host["weight"][j] * at("x", j) * scale).sum::<f64>() / s[1] as f64;
            for (j, total) in dweight.iter_mut().enumerate() {
                let normal = at("x", j) * scale;
                dx.push((at("dy", j) * host["weight"][j] - normal * mean) * scale);
                *total += at("dy", j) * normal;
            }
        }
        vec![("dx", dx), ("dweight", dweight)]
    },
    tolerance: 1.0,
};

/// How many programs share the rows; `peers/` has the same number.
const GROUPS: usize = 256;

fn launch_rms_norm_backward<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (dy, x, weight, rstd) = (case.read::<T>("dy"), case.read::<T>("x"), case.read::<T>("weight"), case.read::<f32>("rstd"));
    let (mut dx, mut dweight, mut parts) = (case.write::<T>("dx"), case.write::<T>("dweight"), case.write::<f32>("parts"));
    launch!(run, rms_norm_backward(&*dy, &*x, &*weight, &*rstd, &mut *dx, &mut *parts, s[0], s[1]).grid(|_| GROUPS));
    launch!(run, column_sum(&*parts, &mut *dweight, GROUPS, s[1]).grid(|config| cdiv(s[1], config.COLUMNS)));
    Ok(())
}
