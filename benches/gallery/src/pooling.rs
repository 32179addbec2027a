//! Windows of images: pooling and interpolation, over the flat index of the output.

use galatea::prelude::*;
use galatea::{Dtype, Result};

use crate::work::{Case, FLOATS, Run, Work, by_dtype, input, launch, output};

/// Max pooling of 3x3 windows with a stride of 2 and a padding of 1, over the flat index of the output.
#[autotune(configs = product(BLOCK_SIZE = [512, 1024, 2048, 4096], num_warps = [4, 8]) if BLOCK_SIZE >= 128 * num_warps, key = [n])]
#[kernel(T = [f16])]
pub fn max_pool<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize, h: usize, w: usize, oh: usize, ow: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let column = offsets % ow;
    let row = offsets / ow % oh;
    let plane = offsets / (ow * oh);
    let mut best = full::<f32>([BLOCK_SIZE], f32::NEG_INFINITY);
    for i in static_range(0, 3) {
        for j in static_range(0, 3) {
            let (from_row, from_column) = (row * 2 + i - 1, column * 2 + j - 1);
            let inside = mask & (from_row >= 0) & (from_row < h) & (from_column >= 0) & (from_column < w);
            let v = load(x + (plane * h + from_row) * w + from_column, mask = inside, other = f32::NEG_INFINITY) as f32;
            best = max(best, v);
        }
    }
    store(y + offsets, best as T, mask = mask);
}

/// Max pooling: `[planes, height, width]`.
pub const MAX_POOL: Work = Work {
    name: "max_pool",
    dtypes: &[Dtype::F16],
    sizes: [&[1024, 112, 112], &[1021, 111, 113], &[64, 56, 56]],
    test_sizes: &[&[4, 16, 32], &[3, 7, 13], &[1, 1, 1], &[0, 4, 4]],
    tensors: |s| vec![input("x", s.iter().product()), output("y", s[0] * halved(s[1]) * halved(s[2]))],
    launch: by_dtype!(launch_max_pool, F16: f16),
    reference: |s, host| {
        let mut y = Vec::new();
        for plane in 0..s[0] {
            for row in 0..halved(s[1]) {
                for column in 0..halved(s[2]) {
                    let mut best = f64::NEG_INFINITY;
                    for r in (2 * row).saturating_sub(1)..(2 * row + 2).min(s[1]) {
                        for c in (2 * column).saturating_sub(1)..(2 * column + 2).min(s[2]) {
                            best = best.max(host["x"][(plane * s[1] + r) * s[2] + c]);
                        }
                    }
                    y.push(best);
                }
            }
        }
        vec![("y", y)]
    },
    tolerance: 1.0,
};

/// The extent of the output of a window of 3 with a stride of 2 and a padding of 1.
fn halved(extent: usize) -> usize {
    extent.div_ceil(2)
}

fn launch_max_pool<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, mut y) = (case.read::<T>("x"), case.write::<T>("y"));
    let (oh, ow) = (halved(s[1]), halved(s[2]));
    let n = s[0] * oh * ow;
    launch!(run, max_pool(&*x, &mut *y, n, s[1], s[2], oh, ow).grid(|config| cdiv(n, config.BLOCK_SIZE)));
    Ok(())
}

/// Bilinear upsampling by 2, as torch computes it without `align_corners`, over the flat index of the output.
#[autotune(configs = product(BLOCK_SIZE = [512, 1024, 2048, 4096], num_warps = [4, 8]) if BLOCK_SIZE >= 128 * num_warps, key = [n])]
#[kernel(T = [f32])]
pub fn bilinear_upsample<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize, h: usize, w: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let column = offsets % (2 * w);
    let row = offsets / (2 * w) % (2 * h);
    let plane = offsets / (4 * h * w);
    let from_row = max((row as f32 + 0.5) * 0.5 - 0.5, 0.0);
    let from_column = max((column as f32 + 0.5) * 0.5 - 0.5, 0.0);
    let (top, left) = (from_row as i64, from_column as i64);
    let (bottom, right) = (min(top + 1, h - 1), min(left + 1, w - 1));
    let (down, along) = (from_row - top as f32, from_column - left as f32);
    let image = x + plane * h * w;
    let upper_left = load(image + top * w + left, mask = mask) as f32;
    let upper_right = load(image + top * w + right, mask = mask) as f32;
    let lower_left = load(image + bottom * w + left, mask = mask) as f32;
    let lower_right = load(image + bottom * w + right, mask = mask) as f32;
    let upper = upper_left * (1.0 - along) + upper_right * along;
    let lower = lower_left * (1.0 - along) + lower_right * along;
    store(y + offsets, (upper * (1.0 - down) + lower * down) as T, mask = mask);
}

/// Bilinear upsampling by 2: `[planes, height, width]`.
pub const BILINEAR_UPSAMPLE: Work = Work {
    name: "bilinear_upsample",
    dtypes: &[Dtype::F32],
    sizes: [&[256, 128, 128], &[255, 127, 129], &[16, 100, 100]],
    test_sizes: &[&[2, 16, 32], &[3, 7, 13], &[1, 1, 1], &[0, 4, 4]],
    tensors: |s| vec![input("x", s.iter().product()), output("y", 4 * s.iter().product::<usize>())],
    launch: by_dtype!(launch_bilinear_upsample, F32: f32),
    reference: |s, host| {
        // The two elements that an index of the output lies between, and how far from the first.
        let between = |at: usize, extent: usize| {
            let from = (at as f64 / 2.0 - 0.25).max(0.0);
            let low = from.floor() as usize;
            (low, (low + 1).min(extent - 1), from - from.floor())
        };
        let mut y = Vec::new();
        for plane in 0..s[0] {
            let at = |row: usize, column: usize| host["x"][(plane * s[1] + row) * s[2] + column];
            for row in 0..2 * s[1] {
                let (top, bottom, down) = between(row, s[1]);
                for column in 0..2 * s[2] {
                    let (left, right, along) = between(column, s[2]);
                    let mix = |row| at(row, left) * (1.0 - along) + at(row, right) * along;
                    y.push(mix(top) * (1.0 - down) + mix(bottom) * down);
                }
            }
        }
        vec![("y", y)]
    },
    tolerance: 1.0,
};

fn launch_bilinear_upsample<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, mut y) = (case.read::<T>("x"), case.write::<T>("y"));
    let n = 4 * s[0] * s[1] * s[2];
    launch!(run, bilinear_upsample(&*x, &mut *y, n, s[1], s[2]).grid(|config| cdiv(n, config.BLOCK_SIZE)));
    Ok(())
}

/// The mean of 2x2 windows with a stride of 2, over the flat index of the output.
#[autotune(configs = product(BLOCK_SIZE = [512, 1024, 2048, 4096], num_warps = [4, 8]) if BLOCK_SIZE >= 128 * num_warps, key = [n])]
#[kernel(T = [f32, bf16])]
pub fn average_pool<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize, h: usize, w: usize, oh: usize, ow: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let column = offsets % ow;
    let row = offsets / ow % oh;
    let plane = offsets / (ow * oh);
    let mut total = zeros::<f32>([BLOCK_SIZE]);
    for i in static_range(0, 2) {
        for j in static_range(0, 2) {
            total += load(x + (plane * h + row * 2 + i) * w + column * 2 + j, mask = mask) as f32;
        }
    }
    store(y + offsets, (total / 4.0) as T, mask = mask);
}

/// Average pooling: `[planes, height, width]`.
pub const AVERAGE_POOL: Work = Work {
    name: "average_pool",
    dtypes: FLOATS,
    sizes: [&[1024, 112, 112], &[1021, 111, 113], &[64, 56, 56]],
    test_sizes: &[&[4, 16, 32], &[3, 7, 13], &[1, 2, 2], &[1, 1, 1]],
    tensors: |s| vec![input("x", s.iter().product()), output("y", s[0] * (s[1] / 2) * (s[2] / 2))],
    launch: by_dtype!(launch_average_pool),
    reference: |s, host| {
        let mut y = Vec::new();
        for plane in 0..s[0] {
            let at = |row: usize, column: usize| host["x"][(plane * s[1] + row) * s[2] + column];
            for row in (0..s[1] / 2).map(|row| 2 * row) {
                y.extend((0..s[2] / 2).map(|c| (at(row, 2 * c) + at(row, 2 * c + 1) + at(row + 1, 2 * c) + at(row + 1, 2 * c + 1)) / 4.0));
            }
        }
        vec![("y", y)]
    },
    tolerance: 1.0,
};

fn launch_average_pool<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, mut y) = (case.read::<T>("x"), case.write::<T>("y"));
    let (oh, ow) = (s[1] / 2, s[2] / 2);
    let n = s[0] * oh * ow;
    launch!(run, average_pool(&*x, &mut *y, n, s[1], s[2], oh, ow).grid(|config| cdiv(n, config.BLOCK_SIZE)));
    Ok(())
}
