//! Elementwise functions of flattened tensors: activations, masks, dropout, rotary positions and random numbers.

use galatea::prelude::*;
use galatea::{Dtype, Result};

use crate::philox::uniform;
use crate::work::{Case, FLOATS, Run, Work, by_dtype, in_place, input, launch, output};

/// `y[i, j] = max(x[i, j] + bias[j], 0)`, over the flat index.
#[autotune(configs = product(BLOCK_SIZE = [512, 1024, 2048, 4096], num_warps = [4, 8]) if BLOCK_SIZE >= 128 * num_warps, key = [n])]
#[kernel(T = [f32, bf16])]
pub fn bias_relu<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, bias: Ptr<T>, y: PtrMut<T>, n: usize, columns: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let b = load(bias + offsets % columns, mask = mask) as f32;
    let v = load(x + offsets, mask = mask) as f32 + b;
    store(y + offsets, max(v, 0.0) as T, mask = mask);
}

/// Bias and ReLU: `[rows, columns]`.
pub const BIAS_RELU: Work = Work {
    name: "bias_relu",
    dtypes: FLOATS,
    sizes: [&[8192, 4096], &[8191, 4099], &[768, 1000]],
    test_sizes: &[&[16, 128], &[29, 37], &[1, 1], &[0, 5]],
    tensors: |s| vec![input("x", s[0] * s[1]), input("bias", s[1]), output("y", s[0] * s[1])],
    launch: by_dtype!(launch_bias_relu),
    reference: |s, host| {
        let y = host["x"].iter().enumerate().map(|(i, x)| (x + host["bias"][i % s[1]]).max(0.0));
        vec![("y", y.collect())]
    },
    tolerance: 1.0,
};

fn launch_bias_relu<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, bias, mut y) = (case.read::<T>("x"), case.read::<T>("bias"), case.write::<T>("y"));
    let n = s[0] * s[1];
    launch!(run, bias_relu(&*x, &*bias, &mut *y, n, s[1]).grid(|config| cdiv(n, config.BLOCK_SIZE)));
    Ok(())
}

/// `x += dropout(branch)`: an element of `branch` is kept with probability `1 - p` and divided by it.
#[autotune(configs = product(BLOCK_SIZE = [512, 1024, 2048, 4096], num_warps = [4, 8]) if BLOCK_SIZE >= 128 * num_warps, key = [n])]
#[kernel(T = [f16])]
pub fn dropout_residual<T: Float, const BLOCK_SIZE: usize>(x: PtrMut<T>, branch: Ptr<T>, n: usize, p: f32, seed: i64) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let v = load(branch + offsets, mask = mask) as f32;
    let dropped = select(rand(seed, offsets) > p, v / (1.0 - p), 0.0);
    let residual = load(x + offsets, mask = mask) as f32;
    store(x + offsets, (residual + dropped) as T, mask = mask);
}

/// Dropout and residual in place: `[n]`.
pub const DROPOUT_RESIDUAL: Work = Work {
    name: "dropout_residual",
    dtypes: &[Dtype::F16],
    sizes: [&[1 << 26], &[(1 << 26) - 1001], &[500_000]],
    test_sizes: &[&[4096], &[3001], &[1], &[0]],
    tensors: |s| vec![in_place("x", s[0]), input("branch", s[0])],
    launch: by_dtype!(launch_dropout_residual, F16: f16),
    reference: |_, host| {
        let add =
            |(i, (x, branch)): (usize, (&f64, &f64))| x + if uniform(SEED, i as u64) > P { branch / (1.0 - f64::from(P)) } else { 0.0 };
        vec![("x", host["x"].iter().zip(&host["branch"]).enumerate().map(add).collect())]
    },
    tolerance: 1.0,
};

/// The probability that an element is dropped, and the seed of the random numbers; `peers/` has the same.
const P: f32 = 0.25;
const SEED: u64 = 1234;

fn launch_dropout_residual<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (mut x, branch) = (case.write::<T>("x"), case.read::<T>("branch"));
    launch!(run, dropout_residual(&mut *x, &*branch, s[0], P, SEED as i64).grid(|config| cdiv(s[0], config.BLOCK_SIZE)));
    Ok(())
}
