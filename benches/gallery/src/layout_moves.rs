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

/// `[images, channels * scale * scale, h, w]` to `[images, channels, h * scale, w * scale]`, over the flat index of the output.
#[autotune(configs = product(BLOCK_SIZE = [512, 1024, 2048, 4096], num_warps = [4, 8]) if BLOCK_SIZE >= 128 * num_warps, key = [n])]
#[kernel(T = [f32, bf16])]
pub fn pixel_shuffle<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize, h: usize, w: usize, scale: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let column = offsets % (w * scale);
    let row = offsets / (w * scale) % (h * scale);
    let channel = offsets / (w * scale * h * scale);
    let from_channel = (channel * scale + row % scale) * scale + column % scale;
    let from = (from_channel * h + row / scale) * w + column / scale;
    store(y + offsets, load(x + from, mask = mask), mask = mask);
}

/// Pixel shuffle: `[images * channels, height, width, scale]` of the small images.
pub const PIXEL_SHUFFLE: Work = Work {
    name: "pixel_shuffle",
    dtypes: FLOATS,
    sizes: [&[256, 128, 128, 2], &[255, 65, 67, 3], &[16, 100, 100, 2]],
    test_sizes: &[&[2, 16, 32, 2], &[3, 5, 7, 3], &[1, 1, 1, 1], &[0, 4, 4, 2]],
    tensors: |s| {
        let n = s[0] * s[1] * s[2] * s[3] * s[3];
        vec![input("x", n), output("y", n)]
    },
    launch: by_dtype!(launch_pixel_shuffle),
    reference: |s, host| {
        let mut y = vec![0.0; host["x"].len()];
        let mut values = host["x"].iter();
        for channel in 0..s[0] {
            for shift in 0..s[3] * s[3] {
                for row in 0..s[1] {
                    for column in 0..s[2] {
                        let to_row = channel * s[1] * s[3] + row * s[3] + shift / s[3];
                        y[to_row * s[2] * s[3] + column * s[3] + shift % s[3]] = *values.next().expect("as many inputs as outputs");
                    }
                }
            }
        }
        vec![("y", y)]
    },
    tolerance: 0.0,
};

fn launch_pixel_shuffle<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, mut y) = (case.read::<T>("x"), case.write::<T>("y"));
    let n = s[0] * s[1] * s[2] * s[3] * s[3];
    launch!(run, pixel_shuffle(&*x, &mut *y, n, s[1], s[2], s[3]).grid(|config| cdiv(n, config.BLOCK_SIZE)));
    Ok(())
}

/// The 3x3 windows of images, with a padding of 1: `[images, channels, h, w]` to `[images, channels * 9, h * w]`, over the flat index of the output.
#[autotune(configs = product(BLOCK_SIZE = [512, 1024, 2048, 4096], num_warps = [4, 8]) if BLOCK_SIZE >= 128 * num_warps, key = [n])]
#[kernel(T = [f32, bf16])]
pub fn im2col<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize, h: usize, w: usize, window: usize, padding: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let column = offsets % w;
    let row = offsets / w % h;
    let j = offsets / (w * h) % window;
    let i = offsets / (w * h * window) % window;
    let plane = offsets / (w * h * window * window);
    let (from_row, from_column) = (row + i - padding, column + j - padding);
    let inside = mask & (from_row >= 0) & (from_row < h) & (from_column >= 0) & (from_column < w);
    store(y + offsets, load(x + (plane * h + from_row) * w + from_column, mask = inside), mask = mask);
}

/// Windows as columns: `[images * channels, height, width]`.
pub const IM2COL: Work = Work {
    name: "im2col",
    dtypes: FLOATS,
    sizes: [&[512, 112, 112], &[511, 111, 113], &[32, 48, 48]],
    test_sizes: &[&[2, 8, 16], &[3, 5, 7], &[1, 1, 1], &[0, 4, 4]],
    tensors: |s| vec![input("x", s.iter().product()), output("y", 9 * s.iter().product::<usize>())],
    launch: by_dtype!(launch_im2col),
    reference: |s, host| {
        let mut y = Vec::new();
        for plane in 0..s[0] {
            for window in 0..9 {
                for row in window / 3..s[1] + window / 3 {
                    for column in window % 3..s[2] + window % 3 {
                        let is_inside = row > 0 && row <= s[1] && column > 0 && column <= s[2];
                        y.push(if is_inside { host["x"][(plane * s[1] + row - 1) * s[2] + column - 1] } else { 0.0 });
                    }
                }
            }
        }
        vec![("y", y)]
    },
    tolerance: 0.0,
};

fn launch_im2col<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, mut y) = (case.read::<T>("x"), case.write::<T>("y"));
    let n = 9 * s[0] * s[1] * s[2];
    launch!(run, im2col(&*x, &mut *y, n, s[1], s[2], 3, 1).grid(|config| cdiv(n, config.BLOCK_SIZE)));
    Ok(())
}

/// `[images, channels, pixels]` to `[images, pixels, channels]`, over the flat index of the output.
#[autotune(configs = product(BLOCK_SIZE = [512, 1024, 2048, 4096], num_warps = [4, 8]) if BLOCK_SIZE >= 128 * num_warps, key = [n])]
#[kernel(T = [f32, bf16])]
pub fn nchw_to_nhwc<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize, channels: usize, h: usize, w: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let channel = offsets % channels;
    let column = offsets / channels % w;
    let row = offsets / (channels * w) % h;
    let image = offsets / (channels * w * h);
    let from = ((image * channels + channel) * h + row) * w + column;
    store(y + offsets, load(x + from, mask = mask), mask = mask);
}

/// Channels last: `[images, channels, height, width]`.
pub const NCHW_TO_NHWC: Work = Work {
    name: "nchw_to_nhwc",
    dtypes: FLOATS,
    sizes: [&[32, 256, 56, 56], &[31, 255, 57, 55], &[4, 64, 32, 32]],
    test_sizes: &[&[2, 64, 8, 8], &[2, 8, 8, 16], &[3, 5, 7, 9], &[1, 1, 1, 1], &[2, 3, 0, 4]],
    tensors: |s| vec![input("x", s.iter().product()), output("y", s.iter().product())],
    launch: by_dtype!(launch_nchw_to_nhwc),
    reference: |s, host| vec![("y", matrices_transposed(&host["x"], s[0], s[1], s[2] * s[3]))],
    tolerance: 0.0,
};

fn matrices_transposed(x: &[f64], matrices: usize, rows: usize, columns: usize) -> Vec<f64> {
    let mut y = Vec::new();
    for matrix in 0..matrices {
        for column in 0..columns {
            y.extend((0..rows).map(|row| x[(matrix * rows + row) * columns + column]));
        }
    }
    y
}

fn launch_nchw_to_nhwc<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, mut y) = (case.read::<T>("x"), case.write::<T>("y"));
    let n = s.iter().product();
    launch!(run, nchw_to_nhwc(&*x, &mut *y, n, s[1], s[2], s[3]).grid(|config| cdiv(n, config.BLOCK_SIZE)));
    Ok(())
}

/// `[images, pixels, channels]` to `[images, channels, pixels]`, over the flat index of the output.
#[autotune(configs = product(BLOCK_SIZE = [512, 1024, 2048, 4096], num_warps = [4, 8]) if BLOCK_SIZE >= 128 * num_warps, key = [n])]
#[kernel(T = [f32, bf16])]
pub fn nhwc_to_nchw<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize, channels: usize, h: usize, w: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let column = offsets % w;
    let row = offsets / w % h;
    let channel = offsets / (w * h) % channels;
    let image = offsets / (w * h * channels);
    let from = ((image * h + row) * w + column) * channels + channel;
    store(y + offsets, load(x + from, mask = mask), mask = mask);
}

/// Channels first: `[images, channels, height, width]`.
pub const NHWC_TO_NCHW: Work = Work {
    name: "nhwc_to_nchw",
    launch: by_dtype!(launch_nhwc_to_nchw),
    reference: |s, host| vec![("y", matrices_transposed(&host["x"], s[0], s[2] * s[3], s[1]))],
    ..NCHW_TO_NHWC
};

fn launch_nhwc_to_nchw<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, mut y) = (case.read::<T>("x"), case.write::<T>("y"));
    let n = s.iter().product();
    launch!(run, nhwc_to_nchw(&*x, &mut *y, n, s[1], s[2], s[3]).grid(|config| cdiv(n, config.BLOCK_SIZE)));
    Ok(())
}

/// Each head `repeats` times: `[batch, heads, sequence, depth]` to `[batch, heads * repeats, sequence, depth]`, over the flat index of the output.
#[autotune(configs = product(BLOCK_SIZE = [512, 1024, 2048, 4096], num_warps = [4, 8]) if BLOCK_SIZE >= 128 * num_warps, key = [n])]
#[kernel(T = [f32, bf16])]
pub fn repeat_kv<T: Float, const BLOCK_SIZE: usize>(
    x: Ptr<T>,
    y: PtrMut<T>,
    n: usize,
    heads: usize,
    sequence: usize,
    depth: usize,
    repeats: usize,
) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let d = offsets % depth;
    let s = offsets / depth % sequence;
    let h = offsets / (depth * sequence) % (heads * repeats);
    let b = offsets / (depth * sequence * heads * repeats);
    let from = ((b * heads + h / repeats) * sequence + s) * depth + d;
    store(y + offsets, load(x + from, mask = mask), mask = mask);
}

/// Heads repeated: `[batch, heads, sequence, depth, repeats]`.
pub const REPEAT_KV: Work = Work {
    name: "repeat_kv",
    dtypes: FLOATS,
    sizes: [&[8, 8, 2048, 128, 4], &[7, 5, 2047, 80, 3], &[2, 3, 128, 64, 4]],
    test_sizes: &[&[2, 2, 8, 32, 2], &[3, 2, 5, 7, 3], &[1, 1, 1, 1, 1], &[2, 3, 0, 4, 2]],
    tensors: |s| vec![input("x", s[0] * s[1] * s[2] * s[3]), output("y", s.iter().product())],
    launch: by_dtype!(launch_repeat_kv),
    reference: |s, host| {
        let head = (s[2] * s[3]).max(1);
        vec![("y", host["x"].chunks(head).flat_map(|head| head.repeat(s[4])).collect())]
    },
    tolerance: 0.0,
};

fn launch_repeat_kv<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, mut y) = (case.read::<T>("x"), case.write::<T>("y"));
    let n = s.iter().product();
    launch!(run, repeat_kv(&*x, &mut *y, n, s[1], s[2], s[3], s[4]).grid(|config| cdiv(n, config.BLOCK_SIZE)));
    Ok(())
}
