//! Moves of elements between layouts: the flat index of the output is taken apart by `/` and `%` with sizes known at run time.

use galatea::Result;
use galatea::prelude::*;

use crate::work::{Case, FLOATS, Run, Work, by_dtype, input, launch, output};

/// Nearest upsampling by `scale`, over the flat index of the output.
#[autotune(configs = product(BLOCK_SIZE = [512, 1024, 2048, 4096], num_warps = [4, 8]) if BLOCK_SIZE >= 128 * num_warps, key = [n])]
#[kernel(T = [f32, bf16])]
pub fn nearest_upsample<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize, h: usize, w: usize, scale: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let column = offsets % (w * scale);
    let row = offsets / (w * scale) % (h * scale);
    let plane = offsets / (w * scale * h * scale);
    let from = (plane * h + row / scale) * w + column / scale;
    store(y + offsets, load(x + from, mask = mask), mask = mask);
}

/// Nearest upsampling: `[planes, height, width, scale]`.
pub const NEAREST_UPSAMPLE: Work = Work {
    name: "nearest_upsample",
    dtypes: FLOATS,
    sizes: [&[256, 128, 128, 2], &[255, 127, 129, 3], &[16, 100, 100, 2]],
    test_sizes: &[&[2, 16, 32, 2], &[3, 5, 7, 3], &[1, 1, 1, 1], &[0, 4, 4, 2]],
    tensors: |s| vec![input("x", s[0] * s[1] * s[2]), output("y", s[0] * s[1] * s[2] * s[3] * s[3])],
    launch: by_dtype!(launch_nearest_upsample),
    reference: |s, host| {
        let mut y = Vec::new();
        for plane in 0..s[0] {
            for row in 0..s[1] * s[3] {
                for column in 0..s[2] * s[3] {
                    y.push(host["x"][(plane * s[1] + row / s[3]) * s[2] + column / s[3]]);
                }
            }
        }
        vec![("y", y)]
    },
    tolerance: 0.0,
};

fn launch_nearest_upsample<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, mut y) = (case.read::<T>("x"), case.write::<T>("y"));
    let n = s[0] * s[1] * s[2] * s[3] * s[3];
    launch!(run, nearest_upsample(&*x, &mut *y, n, s[1], s[2], s[3]).grid(|config| cdiv(n, config.BLOCK_SIZE)));
    Ok(())
}

/// `[batch, sequence, heads, depth]` to `[batch, heads, sequence, depth]`, over the flat index of the output.
#[autotune(configs = product(BLOCK_SIZE = [512, 1024, 2048, 4096], num_warps = [4, 8]) if BLOCK_SIZE >= 128 * num_warps, key = [n])]
#[kernel(T = [f32, bf16])]
pub fn heads_transposed<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize, sequence: usize, heads: usize, depth: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let d = offsets % depth;
    let s = offsets / depth % sequence;
    let h = offsets / (depth * sequence) % heads;
    let b = offsets / (depth * sequence * heads);
    let from = ((b * sequence + s) * heads + h) * depth + d;
    store(y + offsets, load(x + from, mask = mask), mask = mask);
}

/// Heads moved before the sequence: `[batch, sequence, heads, depth]`.
pub const HEADS_TRANSPOSED: Work = Work {
    name: "heads_transposed",
    dtypes: FLOATS,
    sizes: [&[8, 2048, 32, 128], &[7, 2047, 31, 80], &[2, 128, 12, 64]],
    test_sizes: &[&[2, 8, 4, 32], &[3, 5, 7, 11], &[1, 1, 1, 1], &[2, 0, 3, 4]],
    tensors: |s| vec![input("x", s.iter().product()), output("y", s.iter().product())],
    launch: by_dtype!(launch_heads_transposed),
    reference: |s, host| {
        let mut y = vec![0.0; host["x"].len()];
        let mut values = host["x"].iter();
        for b in 0..s[0] {
            for t in 0..s[1] {
                for h in 0..s[2] {
                    let start = ((b * s[2] + h) * s[1] + t) * s[3];
                    y[start..start + s[3]].iter_mut().zip(&mut values).for_each(|(to, from)| *to = *from);
                }
            }
        }
        vec![("y", y)]
    },
    tolerance: 0.0,
};

fn launch_heads_transposed<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, mut y) = (case.read::<T>("x"), case.write::<T>("y"));
    let n = s.iter().product();
    launch!(run, heads_transposed(&*x, &mut *y, n, s[1], s[2], s[3]).grid(|config| cdiv(n, config.BLOCK_SIZE)));
    Ok(())
}
