//! Elementwise functions of flattened tensors: activations, masks, dropout, rotary positions and random numbers.

use galatea::prelude::*;
use galatea::{Dtype, Result};

use crate::philox::uniform;
use crate::work::{Case, FLOATS, Run, Work, by_dtype, in_place, indices, input, launch, output};

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

/// `y = gelu(x) * gate`, with the approximation of GELU by `tanh`.
#[autotune(configs = product(BLOCK_SIZE = [512, 1024, 2048, 4096], num_warps = [4, 8]) if BLOCK_SIZE >= 128 * num_warps, key = [n])]
#[kernel(T = [f32, bf16])]
pub fn gelu_gate<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, gate: Ptr<T>, y: PtrMut<T>, n: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let v = load(x + offsets, mask = mask) as f32;
    let g = load(gate + offsets, mask = mask) as f32;
    let gelu = 0.5 * v * (1.0 + tanh(0.797_884_56 * (v + 0.044715 * v * v * v)));
    store(y + offsets, (gelu * g) as T, mask = mask);
}

/// GELU times a gate: `[n]`.
pub const GELU_GATE: Work = Work {
    name: "gelu_gate",
    dtypes: FLOATS,
    sizes: [&[1 << 26], &[(1 << 26) - 1001], &[500_000]],
    test_sizes: &[&[4096], &[3001], &[1], &[0]],
    tensors: |s| vec![input("x", s[0]), input("gate", s[0]), output("y", s[0])],
    launch: by_dtype!(launch_gelu_gate),
    reference: |_, host| {
        let gelu = |v: f64| 0.5 * v * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (v + 0.044715 * v.powi(3))).tanh());
        vec![("y", host["x"].iter().zip(&host["gate"]).map(|(&v, g)| gelu(v) * g).collect())]
    },
    tolerance: 1.0,
};

fn launch_gelu_gate<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, gate, mut y) = (case.read::<T>("x"), case.read::<T>("gate"), case.write::<T>("y"));
    launch!(run, gelu_gate(&*x, &*gate, &mut *y, s[0]).grid(|config| cdiv(s[0], config.BLOCK_SIZE)));
    Ok(())
}

/// `y[i, j] = value` where `is_filled[j]` is not 0, else `x[i, j]`: the mask is the same for every row.
#[autotune(configs = product(BLOCK_SIZE = [512, 1024, 2048, 4096], num_warps = [4, 8]) if BLOCK_SIZE >= 128 * num_warps, key = [n])]
#[kernel(T = [f32, bf16])]
pub fn masked_fill<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, is_filled: Ptr<u8>, y: PtrMut<T>, n: usize, columns: usize, value: f32) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let filled = load(is_filled + offsets % columns, mask = mask) != 0;
    let v = load(x + offsets, mask = mask);
    store(y + offsets, select(filled, value as T, v), mask = mask);
}

/// Masked fill: `[rows, columns]`.
pub const MASKED_FILL: Work = Work {
    name: "masked_fill",
    dtypes: FLOATS,
    sizes: [&[8192, 4096], &[8191, 4099], &[768, 1000]],
    test_sizes: &[&[16, 128], &[29, 37], &[1, 1], &[0, 5]],
    tensors: |s| {
        let is_filled = indices("is_filled", s[1], 2).of(Dtype::U8);
        vec![input("x", s[0] * s[1]), is_filled, output("y", s[0] * s[1])]
    },
    launch: by_dtype!(launch_masked_fill),
    reference: |s, host| {
        let fill = |(i, &x): (usize, &f64)| if host["is_filled"][i % s[1]] == 0.0 { x } else { -10_000.0 };
        vec![("y", host["x"].iter().enumerate().map(fill).collect())]
    },
    tolerance: 1.0,
};

fn launch_masked_fill<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, is_filled, mut y) = (case.read::<T>("x"), case.read::<u8>("is_filled"), case.write::<T>("y"));
    let n = s[0] * s[1];
    launch!(run, masked_fill(&*x, &*is_filled, &mut *y, n, s[1], -10_000.0).grid(|config| cdiv(n, config.BLOCK_SIZE)));
    Ok(())
}

/// Rotates each pair of neighbouring elements by the angle of its position in the sequence, over the flat index of the pairs.
#[autotune(configs = product(BLOCK_SIZE = [512, 1024, 2048, 4096], num_warps = [4, 8]) if BLOCK_SIZE >= 128 * num_warps, key = [n])]
#[kernel(T = [f32, bf16])]
pub fn rope_interleaved<T: Float, const BLOCK_SIZE: usize>(
    x: Ptr<T>,
    cos: Ptr<f32>,
    sin: Ptr<f32>,
    y: PtrMut<T>,
    n: usize,
    sequence: usize,
    heads: usize,
    half: usize,
) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let pair = offsets % half;
    let position = offsets / (half * heads) % sequence;
    let c = load(cos + position * half + pair, mask = mask);
    let s = load(sin + position * half + pair, mask = mask);
    let even = load(x + 2 * offsets, mask = mask) as f32;
    let odd = load(x + 2 * offsets + 1, mask = mask) as f32;
    store(y + 2 * offsets, (even * c - odd * s) as T, mask = mask);
    store(y + 2 * offsets + 1, (even * s + odd * c) as T, mask = mask);
}

/// Interleaved rotary positions: `[batch, sequence, heads, half the depth]`.
pub const ROPE_INTERLEAVED: Work = Work {
    name: "rope_interleaved",
    dtypes: FLOATS,
    sizes: [&[8, 2048, 32, 64], &[7, 2047, 31, 40], &[2, 128, 12, 32]],
    test_sizes: &[&[2, 8, 4, 16], &[3, 5, 7, 11], &[1, 1, 1, 1], &[2, 0, 3, 4]],
    tensors: |s| {
        let (n, angles) = (2 * s.iter().product::<usize>(), s[1] * s[3]);
        vec![input("x", n), input("cos", angles).of(Dtype::F32), input("sin", angles).of(Dtype::F32), output("y", n)]
    },
    launch: by_dtype!(launch_rope_interleaved),
    reference: |s, host| {
        let mut y = Vec::new();
        for (token, row) in host["x"].chunks(2 * s[2] * s[3]).enumerate() {
            for (i, pair) in row.chunks(2).enumerate() {
                let angle = token % s[1] * s[3] + i % s[3];
                let (c, sine) = (host["cos"][angle], host["sin"][angle]);
                y.extend([pair[0] * c - pair[1] * sine, pair[0] * sine + pair[1] * c]);
            }
        }
        vec![("y", y)]
    },
    tolerance: 1.0,
};

fn launch_rope_interleaved<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, cos, sin, mut y) = (case.read::<T>("x"), case.read::<f32>("cos"), case.read::<f32>("sin"), case.write::<T>("y"));
    let n = s.iter().product();
    launch!(run, rope_interleaved(&*x, &*cos, &*sin, &mut *y, n, s[1], s[2], s[3]).grid(|config| cdiv(n, config.BLOCK_SIZE)));
    Ok(())
}

/// `y` = random numbers between two bounds.
#[autotune(configs = product(BLOCK_SIZE = [512, 1024, 2048, 4096], num_warps = [4, 8]) if BLOCK_SIZE >= 128 * num_warps, key = [n])]
#[kernel(T = [f32, bf16])]
pub fn random_init<T: Float, const BLOCK_SIZE: usize>(y: PtrMut<T>, n: usize, low: f32, high: f32, seed: i64) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let v = low + (high - low) * rand(seed, offsets);
    store(y + offsets, v as T, mask = offsets < n);
}

/// Random numbers from -0.5 to 0.5: `[n]`.
pub const RANDOM_INIT: Work = Work {
    name: "random_init",
    dtypes: FLOATS,
    sizes: [&[1 << 26], &[(1 << 26) - 1001], &[500_000]],
    test_sizes: &[&[4096], &[3001], &[1], &[0]],
    tensors: |s| vec![output("y", s[0])],
    launch: by_dtype!(launch_random_init),
    reference: |s, _| vec![("y", (0..s[0]).map(|i| f64::from(uniform(SEED, i as u64)) - 0.5).collect())],
    tolerance: 1.0,
};

fn launch_random_init<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let mut y = case.write::<T>("y");
    launch!(run, random_init(&mut *y, s[0], -0.5, 0.5, SEED as i64).grid(|config| cdiv(s[0], config.BLOCK_SIZE)));
    Ok(())
}
