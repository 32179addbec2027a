//! Quantisation to 8-bit integers with a scale for each row or group, and back.

use galatea::prelude::*;
use galatea::{Dtype, Result};

use crate::work::{Case, FLOATS, Run, Work, by_dtype, input, launch, output};

/// `q[i, j] = rint(x[i, j] / scale[i])`, the scale of a row being its largest magnitude divided by 127: a program a row.
#[autotune(
    configs = product(BLOCK_SIZE = [1024, 2048, 4096, 8192], num_warps = [4, 8]),
    key = [columns],
    prune = |config| config.BLOCK_SIZE < columns || config.BLOCK_SIZE >= 2 * columns.max(513),
)]
#[kernel(T = [bf16])]
pub fn row_quantise<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, q: PtrMut<i8>, scales: PtrMut<f32>, columns: usize) {
    let row = program_id(0);
    let column = arange(0, BLOCK_SIZE);
    let mask = column < columns;
    let v = load(x + row * columns + column, mask = mask) as f32;
    let largest = max(abs(v));
    let scale = max(largest, 1e-8) / 127.0;
    store(q + row * columns + column, rint(v / scale) as i8, mask = mask);
    store(scales + row, scale);
}

/// Quantisation by rows: `[rows, columns]`.
pub const ROW_QUANTISE: Work = Work {
    name: "row_quantise",
    dtypes: &[Dtype::Bf16],
    sizes: [&[8192, 4096], &[8191, 4093], &[200, 1000]],
    test_sizes: &[&[4, 256], &[3, 1037], &[1, 1]],
    tensors: |s| {
        // The reference is not rounded to an integer.
        vec![input("x", s[0] * s[1]), output("q", s[0] * s[1]).of(Dtype::I8).within(0.5001), output("scales", s[0]).of(Dtype::F32)]
    },
    launch: by_dtype!(launch_row_quantise, Bf16: bf16),
    reference: |s, host| groups_quantised(&host["x"], s[1]),
    tolerance: 1.0,
};

/// Quotients and scales of groups of `len` elements.
fn groups_quantised(x: &[f64], len: usize) -> crate::work::Outputs {
    let (mut q, mut scales) = (Vec::new(), Vec::new());
    for group in x.chunks(len) {
        let scale = group.iter().fold(1e-8, |largest: f64, v| largest.max(v.abs())) / 127.0;
        q.extend(group.iter().map(|v| v / scale));
        scales.push(scale);
    }
    vec![("q", q), ("scales", scales)]
}

fn launch_row_quantise<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, mut q, mut scales) = (case.read::<T>("x"), case.write::<i8>("q"), case.write::<f32>("scales"));
    launch!(run, row_quantise(&*x, &mut *q, &mut *scales, s[1]).grid(|_| s[0]));
    Ok(())
}

/// `q = rint(x / scale)`, with a scale for each group of 64 elements: a program has several groups, as the rows of a tile.
#[autotune(configs = product(BLOCK_SIZE = [512, 1024, 2048, 4096], num_warps = [4, 8]) if BLOCK_SIZE >= 128 * num_warps, key = [n])]
#[kernel(T = [f32, bf16])]
pub fn group_quantise<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, q: PtrMut<i8>, scales: PtrMut<f32>, n: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let groups = reshape(load(x + offsets, mask = offsets < n) as f32, [BLOCK_SIZE / 64, 64]);
    let scale = max(max(abs(groups), axis = 1), 1e-8) / 127.0;
    store(q + offsets, reshape(rint(groups / scale[(.., None)]), [BLOCK_SIZE]) as i8, mask = offsets < n);
    let group = program_id(0) * (BLOCK_SIZE / 64) + arange(0, BLOCK_SIZE / 64);
    store(scales + group, scale, mask = group < cdiv(n, 64));
}

/// Quantisation by groups of 64: `[n]`.
pub const GROUP_QUANTISE: Work = Work {
    name: "group_quantise",
    dtypes: FLOATS,
    sizes: [&[1 << 26], &[(1 << 26) - 1001], &[500_000]],
    test_sizes: &[&[4096], &[3001], &[1], &[0]],
    tensors: |s| vec![input("x", s[0]), output("q", s[0]).of(Dtype::I8).within(0.5001), output("scales", cdiv(s[0], 64)).of(Dtype::F32)],
    launch: by_dtype!(launch_group_quantise),
    reference: |_, host| groups_quantised(&host["x"], 64),
    tolerance: 1.0,
};

fn launch_group_quantise<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, mut q, mut scales) = (case.read::<T>("x"), case.write::<i8>("q"), case.write::<f32>("scales"));
    launch!(run, group_quantise(&*x, &mut *q, &mut *scales, s[0]).grid(|config| cdiv(s[0], config.BLOCK_SIZE)));
    Ok(())
}

/// `y = q * scale`, with a scale for each group of 64 elements.
#[autotune(configs = product(BLOCK_SIZE = [512, 1024, 2048, 4096], num_warps = [4, 8]) if BLOCK_SIZE >= 128 * num_warps, key = [n])]
#[kernel(T = [f32, bf16])]
pub fn group_dequantise<T: Float, const BLOCK_SIZE: usize>(q: Ptr<i8>, scales: Ptr<f32>, y: PtrMut<T>, n: usize, group: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let scale = load(scales + offsets / group, mask = mask);
    store(y + offsets, (load(q + offsets, mask = mask) as f32 * scale) as T, mask = mask);
}

/// Back from groups of 64: `[n]`.
pub const GROUP_DEQUANTISE: Work = Work {
    name: "group_dequantise",
    dtypes: FLOATS,
    sizes: [&[1 << 26], &[(1 << 26) - 1001], &[500_000]],
    test_sizes: &[&[4096], &[3001], &[1], &[0]],
    tensors: |s| {
        vec![input("q", s[0]).of(Dtype::I8).between(-127.0, 127.0), input("scales", cdiv(s[0], 64)).of(Dtype::F32), output("y", s[0])]
    },
    launch: by_dtype!(launch_group_dequantise),
    reference: |_, host| vec![("y", host["q"].iter().enumerate().map(|(i, q)| q * host["scales"][i / 64]).collect())],
    tolerance: 1.0,
};

fn launch_group_dequantise<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (q, scales, mut y) = (case.read::<i8>("q"), case.read::<f32>("scales"), case.write::<T>("y"));
    launch!(run, group_dequantise(&*q, &*scales, &mut *y, s[0], 64).grid(|config| cdiv(s[0], config.BLOCK_SIZE)));
    Ok(())
}
