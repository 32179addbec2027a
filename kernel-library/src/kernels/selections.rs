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
    let (_, best) = reduce((largest, best_column), 0, larger);
    store(y + row, best);
}

/// The larger of two elements with its column; of equal elements the one in the first column. Neither is NaN.
#[device]
fn larger(one: (Value<f32>, Value<i64>), other: (Value<f32>, Value<i64>)) -> (Value<f32>, Value<i64>) {
    let ((a, i), (b, j)) = (one, other);
    (max(a, b), select((b > a) | ((b == a) & (j < i)), j, i))
}

/// `values[k, i]` = the largest element in blocks `i`, `i + groups`, `i + 2 * groups` and so on of row `k`, and `columns[k, i]` its column.
///
/// `x` is `[rows, n]` of `f32`, `f16` or `bf16`, `values` is `[rows, groups]`, `columns` is `[rows, groups]` of `i64`; the grid is `(groups, rows)`. This
/// is the first stage for few long rows, and [`group_argmax`](group_argmax()) the second. NaN counts as `-inf`; a group of nothing else gives one of
/// the first columns.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let mut data = vec![1.0f32; 100_000];
/// (data[30_000], data[70_000]) = (5.0, 7.0);
/// let x = device.tensor_from(&data, [2, 50_000])?;
/// let (rows, groups) = (2, 16);
/// let (mut values, mut columns) = (device.empty::<f32>(rows * groups)?, device.empty::<i64>(rows * groups)?);
/// let mut y = device.empty::<i64>(rows)?;
/// kernel_library::kernels::block_argmax(&x, &mut values, &mut columns, 50_000).grid(|_| (groups, rows)).launch()?;
/// kernel_library::kernels::group_argmax::<f32, 1024>(&values, &columns, &mut y, groups).grid(rows).launch()?;
/// assert_eq!(y.to_vec()?, [30_000, 20_000]);
/// # Ok(())
/// # }
/// ```
#[autotune(
    configs = [
        Config { BLOCK_SIZE: 2048, num_warps: 4 },
        Config { BLOCK_SIZE: 4096, num_warps: 8 },
        Config { BLOCK_SIZE: 8192, num_warps: 16 },
    ],
    key = [n],
)]
#[kernel(T = [f32, f16, bf16])]
pub fn block_argmax<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, values: PtrMut<T>, columns: PtrMut<i64>, n: usize) {
    static_assert!(T != f64, "elements are compared as f32, in which different numbers of f64 are equal");
    let (group, groups, row) = (program_id(0), num_programs(0), program_id(1));
    let lowest = f32::NEG_INFINITY as T;
    // The blocks are those of `block_sum`. The first group also has the elements of the row before its first block.
    let start = row * n;
    let blocks = cdiv(start, 16) * 16 - start;
    let column = arange(0, 16);
    let v = load(x + start + column, mask = (group == 0) & (column < min(blocks, n)), other = lowest) as f32;
    let head = reduce((max(v, f32::NEG_INFINITY), column), 0, larger);
    let element = arange(0, BLOCK_SIZE);
    let mut largest = full([BLOCK_SIZE], f32::NEG_INFINITY);
    let mut best_column = element;
    for block in range(group, cdiv(n - blocks, BLOCK_SIZE), groups) {
        let at = blocks + block * BLOCK_SIZE + element;
        let v = load(x + start + at, mask = at < n, other = lowest) as f32;
        best_column = select(v > largest, at, best_column);
        largest = max(largest, v);
    }
    let (value, best) = larger(head, reduce((largest, best_column), 0, larger));
    store(values + row * groups + group, value as T);
    store(columns + row * groups + group, best);
}

/// `y[k]` = the column of the largest value in row `k`, of equal ones the first: the second stage for few long rows.
///
/// `values` and `columns` are `[rows, groups]`, as [`block_argmax`](block_argmax()) gives them, and `y` is `[rows]`; the grid is the number of rows. Not
/// autotuned: a `BLOCK_SIZE` of 1024 is compiled ahead.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let (values, columns) = (device.tensor(&[3.0f32, 7.0, 7.0])?, device.tensor(&[4i64, 9, 8])?);
/// let mut y = device.empty::<i64>(1)?;
/// kernel_library::kernels::group_argmax::<f32, 1024>(&values, &columns, &mut y, 3).grid(1).launch()?;
/// assert_eq!(y.to_vec()?, [8]);
/// # Ok(())
/// # }
/// ```
#[kernel(T = [f32, f16, bf16], BLOCK_SIZE = [1024])]
pub fn group_argmax<T: Float, const BLOCK_SIZE: usize>(values: Ptr<T>, columns: Ptr<i64>, y: PtrMut<i64>, groups: usize) {
    static_assert!(T != f64, "elements are compared as f32, in which different numbers of f64 are equal");
    let row = program_id(0);
    let lowest = f32::NEG_INFINITY as T;
    let mut best = (full([BLOCK_SIZE], f32::NEG_INFINITY), full([BLOCK_SIZE], i64::MAX));
    for first in range(0, groups, BLOCK_SIZE) {
        let group = first + arange(0, BLOCK_SIZE);
        let v = load(values + row * groups + group, mask = group < groups, other = lowest) as f32;
        let column = load(columns + row * groups + group, mask = group < groups, other = i64::MAX);
        best = larger(best, (v, column));
    }
    let (_, column) = reduce(best, 0, larger);
    store(y + row, column);
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
