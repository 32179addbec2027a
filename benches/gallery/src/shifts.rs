//! Copies with shifted, mirrored or strided indices, over the flat index of the output.

use galatea::Result;
use galatea::prelude::*;

use crate::work::{Case, FLOATS, Run, Work, by_dtype, input, launch, output};

/// `y[i, (j + shift) % columns] = x[i, j]`, over the flat index of the output.
#[autotune(configs = product(BLOCK_SIZE = [512, 1024, 2048, 4096], num_warps = [4, 8]) if BLOCK_SIZE >= 128 * num_warps, key = [n])]
#[kernel(T = [f32, bf16])]
pub fn roll<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize, columns: usize, shift: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let column = offsets % columns;
    let row = offsets / columns;
    let from = row * columns + (column + columns - shift) % columns;
    store(y + offsets, load(x + from, mask = mask), mask = mask);
}

/// Roll along the rows: `[rows, columns, shift]`.
pub const ROLL: Work = Work {
    name: "roll",
    dtypes: FLOATS,
    sizes: [&[8192, 4096, 1024], &[8191, 4099, 1001], &[768, 1000, 37]],
    test_sizes: &[&[16, 128, 64], &[29, 37, 5], &[1, 1, 0], &[0, 5, 2]],
    tensors: |s| vec![input("x", s[0] * s[1]), output("y", s[0] * s[1])],
    launch: by_dtype!(launch_roll),
    reference: |s, host| {
        let mut y = host["x"].to_vec();
        y.chunks_mut(s[1]).for_each(|row| row.rotate_right(s[2]));
        vec![("y", y)]
    },
    tolerance: 0.0,
};

fn launch_roll<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, mut y) = (case.read::<T>("x"), case.write::<T>("y"));
    let n = s[0] * s[1];
    launch!(run, roll(&*x, &mut *y, n, s[1], s[2]).grid(|config| cdiv(n, config.BLOCK_SIZE)));
    Ok(())
}

/// Images with a frame of `padding` pixels that mirrors them, over the flat index of the output.
#[autotune(configs = product(BLOCK_SIZE = [512, 1024, 2048, 4096], num_warps = [4, 8]) if BLOCK_SIZE >= 128 * num_warps, key = [n])]
#[kernel(T = [f32, bf16])]
pub fn reflect_pad<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize, h: usize, w: usize, padding: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let (oh, ow) = (h + 2 * padding, w + 2 * padding);
    let column = abs(offsets % ow - padding);
    let row = abs(offsets / ow % oh - padding);
    let plane = offsets / (ow * oh);
    let from_column = select(column >= w, 2 * (w - 1) - column, column);
    let from_row = select(row >= h, 2 * (h - 1) - row, row);
    store(y + offsets, load(x + (plane * h + from_row) * w + from_column, mask = mask), mask = mask);
}

/// Reflect padding: `[planes, height, width, padding]`.
pub const REFLECT_PAD: Work = Work {
    name: "reflect_pad",
    dtypes: FLOATS,
    sizes: [&[1024, 128, 128, 4], &[1021, 127, 129, 3], &[32, 100, 100, 2]],
    test_sizes: &[&[2, 12, 28, 2], &[3, 5, 7, 3], &[1, 1, 1, 0], &[0, 4, 4, 1]],
    tensors: |s| vec![input("x", s[0] * s[1] * s[2]), output("y", s[0] * (s[1] + 2 * s[3]) * (s[2] + 2 * s[3]))],
    launch: by_dtype!(launch_reflect_pad),
    reference: |s, host| {
        // The indices of an axis with its frame.
        let mirrored = |extent: usize| -> Vec<usize> {
            let before = (1..=s[3]).rev();
            before.chain(0..extent).chain((1..=s[3]).map(|i| extent - 1 - i)).collect()
        };
        let mut y = Vec::new();
        for plane in 0..s[0] {
            for row in mirrored(s[1]) {
                y.extend(mirrored(s[2]).into_iter().map(|column| host["x"][(plane * s[1] + row) * s[2] + column]));
            }
        }
        vec![("y", y)]
    },
    tolerance: 0.0,
};

fn launch_reflect_pad<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, mut y) = (case.read::<T>("x"), case.write::<T>("y"));
    let n = s[0] * (s[1] + 2 * s[3]) * (s[2] + 2 * s[3]);
    launch!(run, reflect_pad(&*x, &mut *y, n, s[1], s[2], s[3]).grid(|config| cdiv(n, config.BLOCK_SIZE)));
    Ok(())
}

/// A view of four axes with any strides to a contiguous tensor, over the flat index of the output.
#[autotune(configs = product(BLOCK_SIZE = [512, 1024, 2048, 4096], num_warps = [4, 8]) if BLOCK_SIZE >= 128 * num_warps, key = [n])]
#[kernel(T = [f32, bf16])]
pub fn strided_copy<T: Float, const BLOCK_SIZE: usize>(
    x: Ptr<T>,
    y: PtrMut<T>,
    n: usize,
    size1: usize,
    size2: usize,
    size3: usize,
    stride0: usize,
    stride1: usize,
    stride2: usize,
    stride3: usize,
) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let i3 = offsets % size3;
    let i2 = offsets / size3 % size2;
    let i1 = offsets / (size3 * size2) % size1;
    let i0 = offsets / (size3 * size2 * size1);
    let from = i0 * stride0 + i1 * stride1 + i2 * stride2 + i3 * stride3;
    store(y + offsets, load(x + from, mask = mask), mask = mask);
}

/// Strided copy: `[a, b, c, d, padding]`, of a tensor `[b, a, c, d + padding]` seen as `[a, b, c, d]`.
pub const STRIDED_COPY: Work = Work {
    name: "strided_copy",
    dtypes: FLOATS,
    sizes: [&[32, 64, 128, 128, 16], &[31, 63, 127, 129, 7], &[8, 16, 32, 60, 4]],
    test_sizes: &[&[2, 4, 8, 32, 8], &[3, 5, 7, 9, 1], &[1, 1, 1, 1, 0], &[2, 3, 0, 4, 1]],
    tensors: |s| vec![input("x", s[0] * s[1] * s[2] * (s[3] + s[4])), output("y", s[0] * s[1] * s[2] * s[3])],
    launch: by_dtype!(launch_strided_copy),
    reference: |s, host| {
        let mut y = Vec::new();
        for a in 0..s[0] {
            for b in 0..s[1] {
                for c in 0..s[2] {
                    let start = ((b * s[0] + a) * s[2] + c) * (s[3] + s[4]);
                    y.extend(&host["x"][start..start + s[3]]);
                }
            }
        }
        vec![("y", y)]
    },
    tolerance: 0.0,
};

fn launch_strided_copy<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, mut y) = (case.read::<T>("x"), case.write::<T>("y"));
    let n = s[0] * s[1] * s[2] * s[3];
    let row = s[3] + s[4];
    let (stride0, stride1) = (s[2] * row, s[0] * s[2] * row);
    launch!(run, strided_copy(&*x, &mut *y, n, s[1], s[2], s[3], stride0, stride1, row, 1).grid(|config| cdiv(n, config.BLOCK_SIZE)));
    Ok(())
}

/// `y = a + b` of tensors with four axes: a stride of 0 broadcasts an axis.
#[autotune(configs = product(BLOCK_SIZE = [512, 1024, 2048, 4096], num_warps = [4, 8]) if BLOCK_SIZE >= 128 * num_warps, key = [n])]
#[kernel(T = [f32, bf16])]
pub fn broadcast_add<T: Float, const BLOCK_SIZE: usize>(
    a: Ptr<T>,
    b: Ptr<T>,
    y: PtrMut<T>,
    n: usize,
    size1: usize,
    size2: usize,
    size3: usize,
    a0: usize,
    a1: usize,
    a2: usize,
    a3: usize,
    b0: usize,
    b1: usize,
    b2: usize,
    b3: usize,
) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let i3 = offsets % size3;
    let i2 = offsets / size3 % size2;
    let i1 = offsets / (size3 * size2) % size1;
    let i0 = offsets / (size3 * size2 * size1);
    let left = load(a + i0 * a0 + i1 * a1 + i2 * a2 + i3 * a3, mask = mask) as f32;
    let right = load(b + i0 * b0 + i1 * b1 + i2 * b2 + i3 * b3, mask = mask) as f32;
    store(y + offsets, (left + right) as T, mask = mask);
}

/// Broadcasted sum: `[a, b, c, d]`, of tensors `[a, b, c, d]` and `[a, 1, c, 1]`.
pub const BROADCAST_ADD: Work = Work {
    name: "broadcast_add",
    dtypes: FLOATS,
    sizes: [&[32, 64, 128, 128], &[31, 63, 127, 129], &[8, 16, 32, 60]],
    test_sizes: &[&[2, 4, 8, 32], &[3, 5, 7, 9], &[1, 1, 1, 1], &[2, 3, 0, 4]],
    tensors: |s| {
        let n = s.iter().product();
        vec![input("a", n), input("b", s[0] * s[2]), output("y", n)]
    },
    launch: by_dtype!(launch_broadcast_add),
    reference: |s, host| {
        let mut y = Vec::new();
        for (i, rows) in host["a"].chunks((s[2] * s[3]).max(1)).enumerate() {
            for (j, row) in rows.chunks(s[3]).enumerate() {
                y.extend(row.iter().map(|v| v + host["b"][i / s[1] * s[2] + j]));
            }
        }
        vec![("y", y)]
    },
    tolerance: 1.0,
};

fn launch_broadcast_add<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (a, b, mut y) = (case.read::<T>("a"), case.read::<T>("b"), case.write::<T>("y"));
    let n = s.iter().product();
    let call = broadcast_add(&*a, &*b, &mut *y, n, s[1], s[2], s[3], s[1] * s[2] * s[3], s[2] * s[3], s[3], 1, s[2], 0, 1, 0);
    launch!(run, call.grid(|config| cdiv(n, config.BLOCK_SIZE)));
    Ok(())
}
