//! Softmax and what is computed with it: a program a row, which is one tile.

use galatea::prelude::*;
use galatea::{Dtype, Result};

use crate::work::{Case, FLOATS, Run, Work, by_dtype, input, launch, output};

/// Softmax of square matrices of scores, of which each position sees itself and those before it: a program a row.
#[autotune(
    configs = product(BLOCK_SIZE = [1024, 2048, 4096, 8192], num_warps = [4, 8]),
    key = [sequence],
    prune = |config| config.BLOCK_SIZE < sequence || config.BLOCK_SIZE >= 2 * sequence.max(513),
)]
#[kernel(T = [f32, bf16])]
pub fn causal_softmax<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<T>, sequence: usize) {
    let row = program_id(0);
    let column = arange(0, BLOCK_SIZE);
    let is_seen = column <= row % sequence;
    let v = load(x + row * sequence + column, mask = is_seen, other = f32::NEG_INFINITY) as f32;
    let e = exp(v - max(v));
    store(y + row * sequence + column, (e / sum(e)) as T, mask = column < sequence);
}

/// Causal softmax: `[heads, sequence]`, of matrices `[sequence, sequence]`.
pub const CAUSAL_SOFTMAX: Work = Work {
    name: "causal_softmax",
    dtypes: FLOATS,
    sizes: [&[16, 2048], &[15, 2047], &[12, 256]],
    test_sizes: &[&[2, 16], &[1, 37], &[1, 1], &[0, 5]],
    tensors: |s| vec![input("x", s[0] * s[1] * s[1]), output("y", s[0] * s[1] * s[1])],
    launch: by_dtype!(launch_causal_softmax),
    reference: |s, host| {
        let mut y = Vec::new();
        for (i, row) in host["x"].chunks(s[1]).enumerate() {
            let seen = i % s[1] + 1;
            let total: f64 = row[..seen].iter().map(|v| v.exp()).sum();
            y.extend(row.iter().enumerate().map(|(j, v)| if j < seen { v.exp() / total } else { 0.0 }));
        }
        vec![("y", y)]
    },
    tolerance: 1.0,
};

fn launch_causal_softmax<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, mut y) = (case.read::<T>("x"), case.write::<T>("y"));
    launch!(run, causal_softmax(&*x, &mut *y, s[1]).grid(|_| s[0] * s[1]));
    Ok(())
}

/// The logarithm of a softmax: a program a row.
#[autotune(
    configs = product(BLOCK_SIZE = [1024, 2048, 4096, 8192], num_warps = [4, 8]),
    key = [columns],
    prune = |config| config.BLOCK_SIZE < columns || config.BLOCK_SIZE >= 2 * columns.max(513),
)]
#[kernel(T = [f32, bf16])]
pub fn log_softmax<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<T>, columns: usize) {
    let row = program_id(0);
    let column = arange(0, BLOCK_SIZE);
    let mask = column < columns;
    let v = load(x + row * columns + column, mask = mask, other = f32::NEG_INFINITY) as f32;
    let shifted = v - max(v);
    store(y + row * columns + column, (shifted - log(sum(exp(shifted)))) as T, mask = mask);
}

/// Log-softmax: `[rows, columns]`.
pub const LOG_SOFTMAX: Work = Work {
    name: "log_softmax",
    dtypes: FLOATS,
    sizes: [&[8192, 4096], &[8191, 4093], &[200, 1000]],
    test_sizes: &[&[4, 256], &[3, 1037], &[1, 1], &[0, 5]],
    tensors: |s| vec![input("x", s[0] * s[1]), output("y", s[0] * s[1])],
    launch: by_dtype!(launch_log_softmax),
    reference: |s, host| {
        let mut y = Vec::new();
        for row in host["x"].chunks(s[1]) {
            let total: f64 = row.iter().map(|v| v.exp()).sum();
            y.extend(row.iter().map(|v| v - total.ln()));
        }
        vec![("y", y)]
    },
    tolerance: 1.0,
};

fn launch_log_softmax<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, mut y) = (case.read::<T>("x"), case.write::<T>("y"));
    launch!(run, log_softmax(&*x, &mut *y, s[1]).grid(|_| s[0]));
    Ok(())
}

/// The gradient of a log-softmax from its result: a program a row.
#[autotune(
    configs = product(BLOCK_SIZE = [1024, 2048, 4096, 8192], num_warps = [4, 8]),
    key = [columns],
    prune = |config| config.BLOCK_SIZE < columns || config.BLOCK_SIZE >= 2 * columns.max(513),
)]
#[kernel(T = [f32, bf16])]
pub fn log_softmax_backward<T: Float, const BLOCK_SIZE: usize>(dy: Ptr<T>, y: Ptr<T>, dx: PtrMut<T>, columns: usize) {
    let row = program_id(0);
    let column = arange(0, BLOCK_SIZE);
    let mask = column < columns;
    let g = load(dy + row * columns + column, mask = mask) as f32;
    let p = exp(load(y + row * columns + column, mask = mask) as f32);
    store(dx + row * columns + column, (g - p * sum(g)) as T, mask = mask);
}

/// The gradient of log-softmax: `[rows, columns]`.
pub const LOG_SOFTMAX_BACKWARD: Work = Work {
    name: "log_softmax_backward",
    tensors: |s| vec![input("dy", s[0] * s[1]), input("y", s[0] * s[1]).between(-8.0, 0.0), output("dx", s[0] * s[1])],
    launch: by_dtype!(launch_log_softmax_backward),
    reference: |s, host| {
        let mut dx = Vec::new();
        for (g, y) in host["dy"].chunks(s[1]).zip(host["y"].chunks(s[1])) {
            let total: f64 = g.iter().sum();
            dx.extend(g.iter().zip(y).map(|(g, y)| g - y.exp() * total));
        }
        vec![("dx", dx)]
    },
    ..LOG_SOFTMAX
};

fn launch_log_softmax_backward<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (dy, y, mut dx) = (case.read::<T>("dy"), case.read::<T>("y"), case.write::<T>("dx"));
    launch!(run, log_softmax_backward(&*dy, &*y, &mut *dx, s[1]).grid(|_| s[0]));
    Ok(())
}

/// `losses[i]` = the sum of `exp(p) * (p - q)` over row `i`, of logarithms of probabilities: a program a row.
#[autotune(
    configs = product(BLOCK_SIZE = [1024, 2048, 4096, 8192], num_warps = [4, 8]),
    key = [columns],
    prune = |config| config.BLOCK_SIZE < columns || config.BLOCK_SIZE >= 2 * columns.max(513),
)]
#[kernel(T = [f32, bf16])]
pub fn kl_divergence<T: Float, const BLOCK_SIZE: usize>(p: Ptr<T>, q: Ptr<T>, losses: PtrMut<f32>, columns: usize) {
    let row = program_id(0);
    let column = arange(0, BLOCK_SIZE);
    let mask = column < columns;
    let log_p = load(p + row * columns + column, mask = mask) as f32;
    let log_q = load(q + row * columns + column, mask = mask) as f32;
    store(losses + row, sum(exp(log_p) * (log_p - log_q)));
}

/// KL divergence: `[rows, columns]`.
pub const KL_DIVERGENCE: Work = Work {
    name: "kl_divergence",
    tensors: |s| {
        let n = s[0] * s[1];
        vec![input("p", n).between(-8.0, 0.0), input("q", n).between(-8.0, 0.0), output("losses", s[0]).of(Dtype::F32)]
    },
    launch: by_dtype!(launch_kl_divergence),
    reference: |s, host| {
        let rows = host["p"].chunks(s[1]).zip(host["q"].chunks(s[1]));
        vec![("losses", rows.map(|(p, q)| p.iter().zip(q).map(|(p, q)| p.exp() * (p - q)).sum()).collect())]
    },
    ..LOG_SOFTMAX
};

fn launch_kl_divergence<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (p, q, mut losses) = (case.read::<T>("p"), case.read::<T>("q"), case.write::<f32>("losses"));
    launch!(run, kl_divergence(&*p, &*q, &mut *losses, s[1]).grid(|_| s[0]));
    Ok(())
}
