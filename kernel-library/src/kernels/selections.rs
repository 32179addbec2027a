//! Selections: the largest elements of rows with their columns, and histograms.

use galatea::prelude::*;

/// `y[i]` = the column of the largest element of row `i`, of equal ones the first: a program a row.
///
/// `x` is `[rows, columns]` of `f32`, `f16` or `bf16`, `y` is `[rows]` of `i64`; the grid is the number of rows. Rows are of any length. NaN counts as
/// `-inf`; a row of nothing else, or of no columns, gives 0.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let x = device.tensor(&[1.0f32, 7.0, 7.0, -4.0, f32::NAN, -5.0])?;
/// let mut y = device.empty::<i64>(2)?;
/// kernel_library::kernels::row_argmax(&x, &mut y, 3).grid(|_| 2).launch()?;
/// assert_eq!(y.to_vec()?, [1, 0]);
/// # Ok(())
/// # }
/// ```
#[autotune(
    configs = [
        Config { BLOCK_SIZE: 256, num_warps: 1 },
        Config { BLOCK_SIZE: 1024, num_warps: 4 },
        Config { BLOCK_SIZE: 2048, num_warps: 4 },
        Config { BLOCK_SIZE: 4096, num_warps: 8 },
    ],
    key = [columns],
    prune = |config| config.BLOCK_SIZE >= 2 * columns.max(129),
)]
#[kernel(T = [f32, f16, bf16])]
pub fn row_argmax<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<i64>, columns: usize) {
    static_assert!(T != f64, "elements are compared as f32, in which different numbers of f64 are equal");
    let row = program_id(0);
    let column = arange(0, BLOCK_SIZE);
    let mut largest = full([BLOCK_SIZE], f32::NEG_INFINITY);
    let mut best_column = column;
    for first in range(0, columns, BLOCK_SIZE) {
        let at = first + column;
        let lowest = f32::NEG_INFINITY as T;
        let v = load(x + row * columns + at, mask = at < columns, other = lowest) as f32;
        best_column = select(v > largest, at, best_column);
        largest = max(largest, v);
    }
    let (_, best) = reduce((largest, best_column), 0, |(a, i), (b, j)| (max(a, b), select((b > a) | ((b == a) & (j < i)), j, i)));
    store(y + row, best);
}

/// The `K` largest elements of each row, from the largest on, and their columns: a program a row.
///
/// `x` is `[rows, columns]` of `f32`, `f16` or `bf16`, `values` is `[rows, K]`, `indices` is `[rows, K]` of `i64`; the grid is the number of rows. `K` is
/// at most 256, best a power of two; 8 and 64 are compiled ahead. Rows are of any length below 2^32. Of equal elements the first comes first. The order is that of `sort`: NaN is
/// beyond the infinity of its sign, -0.0 less than 0.0. Where a row has fewer than `K` elements, the rest is `-inf` at column -1.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let x = device.tensor(&[1.0f32, 9.0, 3.0, 9.0, 5.0])?;
/// let (mut values, mut indices) = (device.empty::<f32>(4)?, device.empty::<i64>(4)?);
/// kernel_library::kernels::row_topk::<f32, 4>(&x, &mut values, &mut indices, 5).grid(|_| 1).launch()?;
/// assert_eq!((values.to_vec()?, indices.to_vec()?), (vec![9.0, 9.0, 5.0, 3.0], vec![1, 3, 4, 2]));
/// # Ok(())
/// # }
/// ```
#[autotune(
    configs = [
        Config { BLOCK_SIZE: 256, num_warps: 1 },
        Config { BLOCK_SIZE: 512, num_warps: 4 },
        Config { BLOCK_SIZE: 1024, num_warps: 4 },
        Config { BLOCK_SIZE: 2048, num_warps: 8 },
    ],
    key = [columns],
    prune = |config| config.BLOCK_SIZE >= 2 * columns.max(129),
)]
#[kernel(T = [f32, f16, bf16], K = [8, 64])]
pub fn row_topk<T: Float, const K: usize, const BLOCK_SIZE: usize>(x: Ptr<T>, values: PtrMut<T>, indices: PtrMut<i64>, columns: usize) {
    static_assert!(T != f64, "elements are compared as f32, in which different numbers of f64 are equal");
    let row = program_id(0);
    let column = arange(0, BLOCK_SIZE);
    // A key is an element above its column: the bits of a float as an integer of the same order, and columns counted from the end.
    let mut best = full([K], i64::MIN);
    for first in range(0, columns, BLOCK_SIZE) {
        let at = first + column;
        let bits = bitcast::<i32>(load(x + row * columns + at, mask = at < columns) as f32);
        let ordered = (bits ^ ((bits >> 31) & 0x7fff_ffff)) as i64;
        let key = select(at < columns, (ordered << 32) + (0xffff_ffff - at), i64::MIN);
        best = topk(cat(best, topk(key, K)), K);
    }
    let ordered = (best >> 32) as i32;
    let value = bitcast::<f32>(ordered ^ ((ordered >> 31) & 0x7fff_ffff));
    let to = row * K + arange(0, K);
    store(values + to, select(best == i64::MIN, f32::NEG_INFINITY, value) as T);
    store(indices + to, select(best == i64::MIN, -1, 0xffff_ffff - (best & 0xffff_ffff)));
}

/// Adds to `counts[k]` how many elements lie in part `k` of `BINS` equal parts of `low..=high`.
///
/// `x` has `n` elements, `counts` has `BINS` of `i32`, zeros before; `low` is less than `high`. `high` itself is in the last part;
/// elements outside, and NaN, are not counted. The part is `(x - low) * (BINS / (high - low))`, computed in `f32`. The grid is any number of
/// programs, which share the blocks; some hundred fill a GPU. Not autotuned, since each launch adds: 64 and 256 parts, with a `BLOCK_SIZE` of 1024,
/// are compiled ahead.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let x = device.tensor(&[0.1f32, 0.9, 0.3, 1.0, 2.0])?;
/// let mut counts = device.zeros::<i32>(4)?;
/// kernel_library::kernels::bin_counts::<f32, 4, 1024>(&x, &mut counts, x.len(), 0.0, 1.0).grid(1).launch()?;
/// assert_eq!(counts.to_vec()?, [1, 1, 0, 2]);
/// # Ok(())
/// # }
/// ```
#[kernel(T = [f32, f16, bf16], BINS = [64, 256], BLOCK_SIZE = [1024])]
pub fn bin_counts<T: Float, const BINS: usize, const BLOCK_SIZE: usize>(x: Ptr<T>, counts: PtrMut<i32>, n: usize, low: f32, high: f32) {
    let element = arange(0, BLOCK_SIZE);
    let scale = BINS as f32 / (high - low);
    let mut total = zeros::<i32>([BINS]);
    for first in range(program_id(0) * BLOCK_SIZE, n, num_programs(0) * BLOCK_SIZE) {
        let at = first + element;
        let v = load(x + at, mask = at < n) as f32;
        let bin = min(((v - low) * scale) as i32, BINS as i32 - 1);
        total += histogram(bin, BINS, mask = (at < n) & (v >= low) & (v <= high));
    }
    atomic_add(counts + arange(0, BINS), total, sem = "relaxed");
}
