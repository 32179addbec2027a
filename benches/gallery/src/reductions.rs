//! Reductions and scans over rows, over the middle axis and over the first axis, and selections.

use galatea::prelude::*;
use galatea::{Dtype, Result};

use crate::work::{Case, FLOATS, Run, Work, by_dtype, input, launch, lengths, output, starts, uneven_lengths};

/// The largest element of each row, and its column: a program a row.
#[autotune(
    configs = product(BLOCK_SIZE = [1024, 2048, 4096, 8192], num_warps = [4, 8]),
    key = [columns],
    prune = |config| config.BLOCK_SIZE < columns || config.BLOCK_SIZE >= 2 * columns.max(513),
)]
#[kernel(T = [f32, bf16])]
pub fn row_max_index<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, values: PtrMut<T>, indices: PtrMut<i64>, columns: usize) {
    let row = program_id(0);
    let column = arange(0, BLOCK_SIZE);
    let v = load(x + row * columns + column, mask = column < columns, other = f32::NEG_INFINITY) as f32;
    store(values + row, max(v) as T);
    store(indices + row, argmax(v));
}

/// Row maximum with index: `[rows, columns]`.
pub const ROW_MAX_INDEX: Work = Work {
    name: "row_max_index",
    dtypes: FLOATS,
    sizes: [&[8192, 4096], &[8191, 4093], &[200, 1000]],
    test_sizes: &[&[4, 256], &[3, 1037], &[1, 1], &[0, 5]],
    tensors: |s| vec![input("x", s[0] * s[1]), output("values", s[0]), output("indices", s[0]).of(Dtype::I64)],
    launch: by_dtype!(launch_row_max_index),
    reference: |s, host| {
        let of_rows: Vec<(f64, f64)> = host["x"].chunks(s[1]).map(|row| largest(row.iter())).collect();
        vec![("values", of_rows.iter().map(|row| row.0).collect()), ("indices", of_rows.iter().map(|row| row.1).collect())]
    },
    tolerance: 0.0,
};

/// The largest of some numbers, and the index of the first one that is equal to it.
fn largest<'a>(numbers: impl Iterator<Item = &'a f64>) -> (f64, f64) {
    let keep = |best: (f64, f64), (i, &v): (usize, &f64)| if v > best.0 { (v, i as f64) } else { best };
    numbers.enumerate().fold((f64::NEG_INFINITY, 0.0), keep)
}

fn launch_row_max_index<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, mut values, mut indices) = (case.read::<T>("x"), case.write::<T>("values"), case.write::<i64>("indices"));
    launch!(run, row_max_index(&*x, &mut *values, &mut *indices, s[1]).grid(|_| s[0]));
    Ok(())
}

/// The `K` largest elements of each row, in descending order: a program a row.
#[autotune(configs = product(BLOCK_SIZE = [1024], num_warps = [1, 2, 4, 8]), key = [columns])]
#[kernel(T = [f32, bf16], K = [16])]
pub fn row_topk<T: Float, const K: usize, const BLOCK_SIZE: usize>(x: Ptr<T>, values: PtrMut<T>, columns: usize) {
    let row = program_id(0);
    let column = arange(0, BLOCK_SIZE);
    let v = load(x + row * columns + column, mask = column < columns, other = f32::NEG_INFINITY) as f32;
    store(values + row * K + arange(0, K), topk(v, K) as T);
}

/// Top-k of rows of at most 1024 elements: `[rows, columns]`.
pub const ROW_TOPK: Work = Work {
    name: "row_topk",
    dtypes: FLOATS,
    sizes: [&[32_768, 1000], &[32_767, 999], &[512, 1000]],
    test_sizes: &[&[2, 256], &[3, 137], &[1, 16], &[0, 5]],
    tensors: |s| vec![input("x", s[0] * s[1]), output("values", s[0] * TOP)],
    launch: by_dtype!(launch_row_topk),
    reference: |s, host| {
        let top = |row: &[f64]| {
            let mut row = row.to_vec();
            row.sort_by(|a, b| b.total_cmp(a));
            row.truncate(TOP);
            row
        };
        vec![("values", host["x"].chunks(s[1]).flat_map(top).collect())]
    },
    tolerance: 0.0,
};

/// How many of the largest elements there are; `peers/` has the same number.
const TOP: usize = 16;

fn launch_row_topk<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, mut values) = (case.read::<T>("x"), case.write::<T>("values"));
    launch!(run, row_topk::<T, TOP>(&*x, &mut *values, s[1]).grid(|_| s[0]));
    Ok(())
}

/// The cumulative sum of each row: a program a row, block by block.
#[autotune(configs = product(BLOCK_SIZE = [1024, 2048, 4096, 8192], num_warps = [4, 8]), key = [columns])]
#[kernel(T = [f32, bf16])]
pub fn row_cumsum<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<T>, columns: usize) {
    let start = program_id(0) * columns;
    let mut before = 0.0f32;
    for first in range(0, columns, BLOCK_SIZE) {
        let column = first + arange(0, BLOCK_SIZE);
        let v = load(x + start + column, mask = column < columns) as f32;
        store(y + start + column, (cumsum(v) + before) as T, mask = column < columns);
        before += sum(v);
    }
}

/// Cumulative sums of long rows: `[rows, columns]`.
pub const ROW_CUMSUM: Work = Work {
    name: "row_cumsum",
    dtypes: FLOATS,
    sizes: [&[256, 131_072], &[255, 131_071], &[8, 100_000]],
    test_sizes: &[&[2, 2048], &[3, 1037], &[1, 1], &[0, 5]],
    tensors: |s| vec![input("x", s[0] * s[1]), output("y", s[0] * s[1])],
    launch: by_dtype!(launch_row_cumsum),
    reference: |s, host| {
        let mut y = Vec::new();
        for row in host["x"].chunks(s[1]) {
            let mut total = 0.0;
            y.extend(row.iter().map(|v| {
                total += v;
                total
            }));
        }
        vec![("y", y)]
    },
    tolerance: 4.0,
};

fn launch_row_cumsum<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, mut y) = (case.read::<T>("x"), case.write::<T>("y"));
    launch!(run, row_cumsum(&*x, &mut *y, s[1]).grid(|_| s[0]));
    Ok(())
}

/// Mean and variance over the middle axis of `[outer, middle, columns]`: a program for some columns of an outer index.
#[autotune(configs = product(ROWS = [16, 32], COLUMNS = [32, 64, 128], num_warps = [4, 8]), key = [middle, columns])]
#[kernel(T = [f32, bf16])]
pub fn middle_moments<T: Float, const ROWS: usize, const COLUMNS: usize>(
    x: Ptr<T>,
    means: PtrMut<f32>,
    variances: PtrMut<f32>,
    middle: usize,
    columns: usize,
) {
    let outer = program_id(1);
    let column = program_id(0) * COLUMNS + arange(0, COLUMNS);
    let mut total = zeros::<f32>([ROWS, COLUMNS]);
    let mut squares = zeros::<f32>([ROWS, COLUMNS]);
    for first in range(0, middle, ROWS) {
        let row = first + arange(0, ROWS);
        let mask = (row < middle)[(.., None)] & (column < columns)[(None, ..)];
        let at = (outer * middle + row)[(.., None)] * columns + column[(None, ..)];
        let v = load(x + at, mask = mask) as f32;
        total += v;
        squares += v * v;
    }
    let mean = sum(total, axis = 0) / middle as f32;
    let variance = sum(squares, axis = 0) / middle as f32 - mean * mean;
    store(means + outer * columns + column, mean, mask = column < columns);
    store(variances + outer * columns + column, variance, mask = column < columns);
}

/// Moments over the middle axis: `[outer, middle, columns]`.
pub const MIDDLE_MOMENTS: Work = Work {
    name: "middle_moments",
    dtypes: FLOATS,
    sizes: [&[64, 512, 1024], &[63, 511, 1001], &[4, 128, 768]],
    test_sizes: &[&[2, 32, 128], &[3, 37, 45], &[1, 1, 1], &[0, 3, 5]],
    tensors: |s| {
        let moments = |name| output(name, s[0] * s[2]).of(Dtype::F32);
        vec![input("x", s.iter().product()), moments("means"), moments("variances")]
    },
    launch: by_dtype!(launch_middle_moments),
    reference: |s, host| {
        let (mut means, mut variances) = (Vec::new(), Vec::new());
        for outer in 0..s[0] {
            for column in 0..s[2] {
                let values = (0..s[1]).map(|row| host["x"][(outer * s[1] + row) * s[2] + column]);
                let mean = values.clone().sum::<f64>() / s[1] as f64;
                means.push(mean);
                variances.push(values.map(|v| (v - mean).powi(2)).sum::<f64>() / s[1] as f64);
            }
        }
        vec![("means", means), ("variances", variances)]
    },
    tolerance: 1.0,
};

fn launch_middle_moments<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, mut means, mut variances) = (case.read::<T>("x"), case.write::<f32>("means"), case.write::<f32>("variances"));
    let call = middle_moments(&*x, &mut *means, &mut *variances, s[1], s[2]);
    launch!(run, call.grid(|config| (cdiv(s[2], config.COLUMNS), s[0])));
    Ok(())
}

/// The row of the largest element of each column: a program for some columns, row by row.
#[autotune(configs = product(BLOCK_SIZE = [128, 256, 512, 1024], num_warps = [4, 8]), key = [rows, columns])]
#[kernel(T = [f32, bf16])]
pub fn first_axis_argmax<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<i64>, rows: usize, columns: usize) {
    let column = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = column < columns;
    let mut best = full::<f32>([BLOCK_SIZE], f32::NEG_INFINITY);
    let mut best_row = zeros::<i64>([BLOCK_SIZE]);
    for row in 0..rows {
        let v = load(x + row * columns + column, mask = mask) as f32;
        best_row = select(v > best, row, best_row);
        best = max(best, v);
    }
    store(y + column, best_row, mask = mask);
}

/// Argmax over the first axis: `[rows, columns]`.
pub const FIRST_AXIS_ARGMAX: Work = Work {
    name: "first_axis_argmax",
    dtypes: FLOATS,
    sizes: [&[512, 65_536], &[511, 65_537], &[100, 5000]],
    test_sizes: &[&[16, 256], &[7, 137], &[1, 1], &[3, 0]],
    tensors: |s| vec![input("x", s[0] * s[1]), output("y", s[1]).of(Dtype::I64)],
    launch: by_dtype!(launch_first_axis_argmax),
    reference: |s, host| vec![("y", (0..s[1]).map(|column| largest(host["x"][column..].iter().step_by(s[1])).1).collect())],
    tolerance: 0.0,
};

fn launch_first_axis_argmax<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, mut y) = (case.read::<T>("x"), case.write::<i64>("y"));
    launch!(run, first_axis_argmax(&*x, &mut *y, s[0], s[1]).grid(|config| cdiv(s[1], config.BLOCK_SIZE)));
    Ok(())
}

/// The mean of the tokens of each sequence, which lie one behind the other: a program for some columns of a sequence.
#[autotune(configs = product(ROWS = [16, 32], COLUMNS = [32, 64, 128], num_warps = [4, 8]), key = [columns])]
#[kernel(T = [f32, bf16])]
pub fn ragged_mean<T: Float, const ROWS: usize, const COLUMNS: usize>(x: Ptr<T>, starts: Ptr<i64>, y: PtrMut<T>, columns: usize) {
    let sequence = program_id(1);
    let column = program_id(0) * COLUMNS + arange(0, COLUMNS);
    let start = load(starts + sequence);
    let end = load(starts + sequence + 1);
    let mut total = zeros::<f32>([ROWS, COLUMNS]);
    for first in range(start, end, ROWS) {
        let token = first + arange(0, ROWS);
        let mask = (token < end)[(.., None)] & (column < columns)[(None, ..)];
        total += load(x + token[(.., None)] * columns + column[(None, ..)], mask = mask) as f32;
    }
    let mean = sum(total, axis = 0) / (end - start) as f32;
    store(y + sequence * columns + column, mean as T, mask = column < columns);
}

/// Means of ragged sequences: `[sequences, longest, columns]`.
pub const RAGGED_MEAN: Work = Work {
    name: "ragged_mean",
    dtypes: FLOATS,
    sizes: [&[256, 512, 1024], &[255, 511, 1001], &[16, 64, 768]],
    test_sizes: &[&[3, 32, 128], &[5, 37, 45], &[1, 1, 1]],
    tensors: |s| {
        let starts = starts(&uneven_lengths(s[0], s[1]));
        vec![input("x", starts[s[0]] * s[2]), lengths("starts", starts), output("y", s[0] * s[2])]
    },
    launch: by_dtype!(launch_ragged_mean),
    reference: |s, host| {
        let (mut y, mut start) = (Vec::new(), 0);
        for length in uneven_lengths(s[0], s[1]) {
            let sequence = &host["x"][start * s[2]..(start + length) * s[2]];
            y.extend((0..s[2]).map(|column| sequence[column..].iter().step_by(s[2]).sum::<f64>() / length as f64));
            start += length;
        }
        vec![("y", y)]
    },
    tolerance: 1.0,
};

fn launch_ragged_mean<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, starts, mut y) = (case.read::<T>("x"), case.read::<i64>("starts"), case.write::<T>("y"));
    let call = ragged_mean(&*x, &*starts, &mut *y, s[2]);
    launch!(run, call.grid(|config| (cdiv(s[2], config.COLUMNS), s[0])));
    Ok(())
}
