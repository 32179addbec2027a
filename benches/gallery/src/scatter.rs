//! Indices that are read from memory: scatter by atomics, selections of rows, bags of embeddings, histograms.

use galatea::prelude::*;
use galatea::{Dtype, Result};

use crate::work::{Case, FLOATS, Run, Work, by_dtype, indices, input, launch, output};

/// `y[index[i], j] += x[i, j]`, by atomics over the flat index of `x`.
#[autotune(configs = product(BLOCK_SIZE = [512, 1024, 2048, 4096], num_warps = [4, 8]) if BLOCK_SIZE >= 128 * num_warps, key = [n])]
#[kernel(T = [f32, bf16])]
pub fn scatter_add<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, index: Ptr<i64>, y: PtrMut<f32>, n: usize, columns: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let row = load(index + offsets / columns, mask = mask);
    let v = load(x + offsets, mask = mask) as f32;
    atomic_add(y + row * columns + offsets % columns, v, mask = mask);
}

/// Scatter-add: `[rows of x, rows of y, columns]`.
pub const SCATTER_ADD: Work = Work {
    name: "scatter_add",
    dtypes: FLOATS,
    sizes: [&[65_536, 16_384, 512], &[65_535, 16_383, 509], &[2000, 500, 256]],
    test_sizes: &[&[32, 8, 128], &[29, 7, 37], &[1, 1, 1], &[0, 3, 5]],
    tensors: |s| vec![input("x", s[0] * s[2]), indices("index", s[0], s[1]), output("y", s[1] * s[2]).of(Dtype::F32)],
    launch: by_dtype!(launch_scatter_add),
    reference: |s, host| {
        let mut y = vec![0.0; s[1] * s[2]];
        for (i, x) in host["x"].iter().enumerate() {
            y[host["index"][i / s[2]] as usize * s[2] + i % s[2]] += x;
        }
        vec![("y", y)]
    },
    tolerance: 4.0,
};

fn launch_scatter_add<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, index, mut y) = (case.read::<T>("x"), case.read::<i64>("index"), case.write::<f32>("y"));
    let n = s[0] * s[2];
    y.fill(0.0)?;
    launch!(run, scatter_add(&*x, &*index, &mut *y, n, s[2]).grid(|config| cdiv(n, config.BLOCK_SIZE)));
    Ok(())
}

/// `y[i, j] = x[index[i], j]`, over the flat index of `y`.
#[autotune(configs = product(BLOCK_SIZE = [512, 1024, 2048, 4096], num_warps = [4, 8]) if BLOCK_SIZE >= 128 * num_warps, key = [n])]
#[kernel(T = [f32, bf16])]
pub fn index_select<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, index: Ptr<i64>, y: PtrMut<T>, n: usize, columns: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let row = load(index + offsets / columns, mask = mask);
    store(y + offsets, load(x + row * columns + offsets % columns, mask = mask), mask = mask);
}

/// Rows selected: `[rows of y, rows of x, columns]`.
pub const INDEX_SELECT: Work = Work {
    name: "index_select",
    tensors: |s| vec![input("x", s[1] * s[2]), indices("index", s[0], s[1]), output("y", s[0] * s[2])],
    launch: by_dtype!(launch_index_select),
    reference: |s, host| {
        let rows = host["index"].iter().map(|&row| &host["x"][row as usize * s[2]..][..s[2]]);
        vec![("y", rows.flatten().copied().collect())]
    },
    ..SCATTER_ADD
};

fn launch_index_select<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, index, mut y) = (case.read::<T>("x"), case.read::<i64>("index"), case.write::<T>("y"));
    let n = s[0] * s[2];
    launch!(run, index_select(&*x, &*index, &mut *y, n, s[2]).grid(|config| cdiv(n, config.BLOCK_SIZE)));
    Ok(())
}

/// The sum of the rows of a table that a bag names: a program for some columns of a bag.
#[autotune(configs = product(BLOCK_SIZE = [128, 256, 512, 1024], num_warps = [1, 4]), key = [in_bag, columns])]
#[kernel(T = [f32, bf16])]
pub fn embedding_bag<T: Float, const BLOCK_SIZE: usize>(table: Ptr<T>, index: Ptr<i64>, y: PtrMut<T>, in_bag: usize, columns: usize) {
    let bag = program_id(1);
    let column = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = column < columns;
    let mut total = zeros::<f32>([BLOCK_SIZE]);
    for i in 0..in_bag {
        let row = load(index + bag * in_bag + i);
        total += load(table + row * columns + column, mask = mask) as f32;
    }
    store(y + bag * columns + column, total as T, mask = mask);
}

/// Bags of embeddings: `[bags, rows in a bag, rows of the table, columns]`.
pub const EMBEDDING_BAG: Work = Work {
    name: "embedding_bag",
    dtypes: FLOATS,
    sizes: [&[8192, 32, 50_000, 512], &[8191, 31, 50_021, 500], &[64, 16, 1000, 256]],
    test_sizes: &[&[3, 4, 10, 128], &[5, 3, 7, 37], &[1, 1, 1, 1], &[2, 0, 3, 5]],
    tensors: |s| vec![input("table", s[2] * s[3]), indices("index", s[0] * s[1], s[2]), output("y", s[0] * s[3])],
    launch: by_dtype!(launch_embedding_bag),
    reference: |s, host| {
        let mut y = vec![0.0; s[0] * s[3]];
        for (i, row) in host["index"].iter().enumerate() {
            let bag = i / s[1];
            let row = &host["table"][*row as usize * s[3]..][..s[3]];
            y[bag * s[3]..][..s[3]].iter_mut().zip(row).for_each(|(total, v)| *total += v);
        }
        vec![("y", y)]
    },
    tolerance: 1.0,
};

fn launch_embedding_bag<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (table, index, mut y) = (case.read::<T>("table"), case.read::<i64>("index"), case.write::<T>("y"));
    let call = embedding_bag(&*table, &*index, &mut *y, s[1], s[3]);
    launch!(run, call.grid(|config| (cdiv(s[3], config.BLOCK_SIZE), s[0])));
    Ok(())
}

/// Adds to `counts[k]` how many elements lie in part `k` of 256 equal parts of [0, 1): each program adds the counts of its block by atomics.
#[autotune(configs = product(BLOCK_SIZE = [512, 1024, 2048, 4096], num_warps = [4, 8]) if BLOCK_SIZE >= 128 * num_warps, key = [n])]
#[kernel(T = [f32, bf16])]
pub fn bin_counts<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, counts: PtrMut<i32>, n: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let bin = (load(x + offsets, mask = mask) as f32 * 256.0) as i32;
    atomic_add(counts + arange(0, 256), histogram(bin, 256, mask = mask));
}

/// A histogram: `[n]`.
pub const BIN_COUNTS: Work = Work {
    name: "bin_counts",
    dtypes: FLOATS,
    sizes: [&[1 << 26], &[(1 << 26) - 1001], &[500_000]],
    test_sizes: &[&[4096], &[3001], &[1], &[0]],
    tensors: |s| vec![input("x", s[0]).between(0.0, 0.99), output("counts", 256).of(Dtype::I32)],
    launch: by_dtype!(launch_bin_counts),
    reference: |_, host| {
        let mut counts = vec![0.0; 256];
        host["x"].iter().for_each(|x| counts[(x * 256.0) as usize] += 1.0);
        vec![("counts", counts)]
    },
    tolerance: 0.0,
};

fn launch_bin_counts<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, mut counts) = (case.read::<T>("x"), case.write::<i32>("counts"));
    counts.fill(0)?;
    launch!(run, bin_counts(&*x, &mut *counts, s[0]).grid(|config| cdiv(s[0], config.BLOCK_SIZE)));
    Ok(())
}
