//! Reductions of the rows and of the columns of a matrix.

use galatea::prelude::*;

/// `y[i]` = the sum of row `i`: a program a row.
///
/// `x` is `[rows, columns]`, `y` `[rows]`; the grid is the number of rows. Added up in `f32` and rounded once. With `ONCE` a whole row is
/// loaded at once.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let x = device.tensor(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let mut y = device.empty::<f32>(2)?;
/// kernel_library::kernels::row_sum(&x, &mut y, 3).grid(|_| 2).launch()?;
/// assert_eq!(y.to_vec()?, [6.0, 15.0]);
/// # Ok(())
/// # }
/// ```
#[autotune(
    configs = [
        Config { BLOCK_SIZE: 1024, ONCE: false, num_warps: 1 },
        Config { BLOCK_SIZE: 1024, ONCE: false, num_warps: 4 },
        Config { BLOCK_SIZE: 2048, ONCE: false, num_warps: 4 },
        Config { BLOCK_SIZE: 4096, ONCE: false, num_warps: 4 },
        Config { BLOCK_SIZE: 4096, ONCE: false, num_warps: 8 },
        Config { BLOCK_SIZE: 8192, ONCE: false, num_warps: 8 },
        Config { BLOCK_SIZE: 8192, ONCE: false, num_warps: 16 },
        Config { BLOCK_SIZE: 2048, ONCE: true, num_warps: 8 },
        Config { BLOCK_SIZE: 4096, ONCE: true, num_warps: 8 },
        Config { BLOCK_SIZE: 4096, ONCE: true, num_warps: 16 },
        Config { BLOCK_SIZE: 8192, ONCE: true, num_warps: 4 },
        Config { BLOCK_SIZE: 8192, ONCE: true, num_warps: 8 },
        Config { BLOCK_SIZE: 8192, ONCE: true, num_warps: 16 },
        Config { BLOCK_SIZE: 8192, ONCE: true, num_warps: 32 },
        Config { BLOCK_SIZE: 16384, ONCE: true, num_warps: 32 },
    ],
    key = [columns],
    prune = |config| config.BLOCK_SIZE >= 2 * columns.max(1024) || (config.ONCE && config.BLOCK_SIZE < columns),
)]
#[kernel(T = [f32, f16, bf16], contract)]
pub fn row_sum<T: Float, const BLOCK_SIZE: usize, const ONCE: bool>(x: Ptr<T>, y: PtrMut<T>, columns: usize) {
    let row = program_id(0);
    let column = arange(0, BLOCK_SIZE);
    let mut total = zeros::<f32>([BLOCK_SIZE]);
    if ONCE {
        total = load(x + row * columns + column, mask = column < columns) as f32;
    } else {
        for first in range(0, columns, BLOCK_SIZE) {
            let at = first + column;
            total += load(x + row * columns + at, mask = at < columns) as f32;
        }
    }
    store(y + row, sum(total) as T);
}

/// `y[i]` = the largest element of row `i`, `-inf` if it has none: a program a row. NaN counts as `-inf`.
///
/// `x` is `[rows, columns]` of `f32`, `f16` or `bf16`, `y` `[rows]`; the grid is the number of rows.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let x = device.tensor(&[1.0f32, 7.0, 3.0, -4.0, f32::NAN, -6.0])?;
/// let mut y = device.empty::<f32>(2)?;
/// kernel_library::kernels::row_max(&x, &mut y, 3).grid(|_| 2).launch()?;
/// assert_eq!(y.to_vec()?, [7.0, -4.0]);
/// # Ok(())
/// # }
/// ```
#[autotune(
    configs = [
        Config { BLOCK_SIZE: 1024, num_warps: 1 },
        Config { BLOCK_SIZE: 1024, num_warps: 4 },
        Config { BLOCK_SIZE: 2048, num_warps: 4 },
        Config { BLOCK_SIZE: 4096, num_warps: 4 },
        Config { BLOCK_SIZE: 4096, num_warps: 8 },
        Config { BLOCK_SIZE: 8192, num_warps: 8 },
        Config { BLOCK_SIZE: 8192, num_warps: 16 },
    ],
    key = [columns],
    prune = |config| config.BLOCK_SIZE >= 2 * columns.max(1024),
)]
#[kernel(T = [f32, f16, bf16], contract)]
pub fn row_max<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<T>, columns: usize) {
    static_assert!(T != f64, "elements are compared as f32, in which different numbers of f64 are equal");
    let row = program_id(0);
    let column = arange(0, BLOCK_SIZE);
    let mut largest = full([BLOCK_SIZE], f32::NEG_INFINITY);
    for first in range(0, columns, BLOCK_SIZE) {
        let at = first + column;
        let lowest = f32::NEG_INFINITY as T;
        let mask = at < columns;
        let v = load(x + row * columns + at, mask = mask, other = lowest) as f32;
        largest = max(largest, v);
    }
    store(y + row, max(largest) as T);
}

/// `y[k, i, j]` = the sum of column `j` of matrix `k` over its rows `i`, `i + groups`, `i + 2 * groups` and so on.
///
/// With one group these are the sums of the columns. A matrix of few columns and many rows is summed in two stages, so that there are programs
/// enough: into some hundred groups of `f32`, and those into one. Several matrices are a tensor of three axes that is summed over the middle one.
///
/// `x` is `[matrices, rows, columns]`, `y` is `[matrices, groups, columns]`, of any two of the float types; the grid is
/// `(cdiv(columns, BLOCK_SIZE), groups, matrices)`, without the last numbers if they are 1. Added up in `f32` and rounded once. Without rows the sums are
/// 0.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let x = device.tensor(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let (rows, columns, groups) = (3, 2, 2);
/// let mut parts = device.empty::<f32>(groups * columns)?;
/// let mut y = device.empty::<f16>(columns)?;
/// kernel_library::kernels::column_sum(&x, &mut parts, rows, columns).grid(|config| (cdiv(columns, config.BLOCK_SIZE), groups)).launch()?;
/// kernel_library::kernels::column_sum(&parts, &mut y, groups, columns).grid(|config| cdiv(columns, config.BLOCK_SIZE)).launch()?;
/// assert_eq!(parts.to_vec()?, [6.0, 8.0, 3.0, 4.0]);
/// assert_eq!(y.to_vec()?, [9.0, 12.0].map(f16::from_f32));
/// # Ok(())
/// # }
/// ```
#[autotune(
    configs = [
        Config { ROWS: 32, BLOCK_SIZE: 32, num_warps: 4 },
        Config { ROWS: 64, BLOCK_SIZE: 32, num_warps: 8 },
        Config { ROWS: 128, BLOCK_SIZE: 32, num_warps: 4 },
        Config { ROWS: 128, BLOCK_SIZE: 32, num_warps: 8 },
        Config { ROWS: 64, BLOCK_SIZE: 64, num_warps: 4 },
        Config { ROWS: 64, BLOCK_SIZE: 64, num_warps: 8 },
        Config { ROWS: 16, BLOCK_SIZE: 128, num_warps: 4 },
        Config { ROWS: 32, BLOCK_SIZE: 128, num_warps: 8 },
    ],
    key = [rows, columns],
)]
#[kernel(S = [f32, f16, bf16], T = [f32, f16, bf16], contract)]
pub fn column_sum<S: Float, T: Float, const ROWS: usize, const BLOCK_SIZE: usize>(x: Ptr<S>, y: PtrMut<T>, rows: usize, columns: usize) {
    let (group, groups, matrix) = (program_id(1), num_programs(1), program_id(2));
    let column = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = column < columns;
    // Many rows at once: few programs wait for memory seldom.
    let own = group + arange(0, ROWS) * groups;
    let x = x + matrix * rows * columns;
    let mut total = zeros::<f32>([ROWS, BLOCK_SIZE]);
    // Few iterations, whose loads fill the threads' registers: more under way would only begin later.
    for first in range(0, rows, ROWS * groups, num_stages = 1) {
        let row = first + own;
        let at = (row * columns)[(.., None)] + column[(None, ..)];
        total += load(x + at, mask = (row < rows)[(.., None)] & mask[(None, ..)]) as f32;
    }
    store(y + (matrix * groups + group) * columns + column, sum(total, axis = 0) as T, mask = mask);
}

/// `y[k, i, j]` = the largest element in column `j` of matrix `k` in its rows `i`, `i + groups`, `i + 2 * groups` and so on. NaN counts as `-inf`.
///
/// `x` is `[matrices, rows, columns]` of `f32`, `f16` or `bf16`, `y` is `[matrices, groups, columns]`; the grid is that of
/// [`column_sum`](column_sum()), whose stages this kernel has as well. Without rows the result is `-inf`.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let x = device.tensor(&[1.0f32, 2.0, 7.0, f32::NAN, 5.0, -6.0])?;
/// let mut y = device.empty::<f32>(2)?;
/// kernel_library::kernels::column_max(&x, &mut y, 3, 2).grid(|config| cdiv(2, config.BLOCK_SIZE)).launch()?;
/// assert_eq!(y.to_vec()?, [7.0, 2.0]);
/// # Ok(())
/// # }
/// ```
#[autotune(
    configs = [
        Config { ROWS: 64, BLOCK_SIZE: 32, num_warps: 8 },
        Config { ROWS: 64, BLOCK_SIZE: 64, num_warps: 4 },
        Config { ROWS: 16, BLOCK_SIZE: 128, num_warps: 4 },
        Config { ROWS: 32, BLOCK_SIZE: 128, num_warps: 8 },
    ],
    key = [rows, columns],
)]
#[kernel(T = [f32, f16, bf16], contract)]
pub fn column_max<T: Float, const ROWS: usize, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<T>, rows: usize, columns: usize) {
    static_assert!(T != f64, "elements are compared as f32, in which different numbers of f64 are equal");
    let (group, groups, matrix) = (program_id(1), num_programs(1), program_id(2));
    let column = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = column < columns;
    let own = group + arange(0, ROWS) * groups;
    let x = x + matrix * rows * columns;
    let lowest = f32::NEG_INFINITY as T;
    let mut largest = full([ROWS, BLOCK_SIZE], f32::NEG_INFINITY);
    for first in range(0, rows, ROWS * groups, num_stages = 1) {
        let row = first + own;
        let at = (row * columns)[(.., None)] + column[(None, ..)];
        let v = load(x + at, mask = (row < rows)[(.., None)] & mask[(None, ..)], other = lowest) as f32;
        largest = max(largest, v);
    }
    store(y + (matrix * groups + group) * columns + column, max(largest, axis = 0) as T, mask = mask);
}

/// `y[k, i]` = the sum of row `k` over its blocks `i`, `i + groups`, `i + 2 * groups` and so on.
///
/// With one group these are the sums of the rows. Few long rows are summed in two stages, so that there are programs enough: into groups of `f32`,
/// and those into one. No atomics: a sum is the same in every launch of one configuration.
///
/// `x` is `[rows, n]`, `y` is `[rows, groups]`, of any two of the float types; the grid is `(groups, rows)`, or the first alone for one row. Added up
/// in `f32` and rounded once; an empty sum is 0.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let x = device.tensor(&[1.0f32; 100_000])?;
/// let (rows, groups) = (2, 16);
/// let mut parts = device.empty::<f32>(rows * groups)?;
/// let mut y = device.empty::<f32>(rows)?;
/// kernel_library::kernels::block_sum(&x, &mut parts, x.len() / rows).grid(|_| (groups, rows)).launch()?;
/// kernel_library::kernels::block_sum(&parts, &mut y, groups).grid(|_| (1, rows)).launch()?;
/// assert_eq!(y.to_vec()?, [50_000.0, 50_000.0]);
/// # Ok(())
/// # }
/// ```
#[autotune(
    configs = [
        Config { BLOCK_SIZE: 1024, num_warps: 4 },
        Config { BLOCK_SIZE: 2048, num_warps: 4 },
        Config { BLOCK_SIZE: 4096, num_warps: 8 },
        Config { BLOCK_SIZE: 8192, num_warps: 16 },
    ],
    key = [n],
)]
#[kernel(S = [f32, f16, bf16], T = [f32, f16, bf16], contract)]
pub fn block_sum<S: Float, T: Float, const BLOCK_SIZE: usize>(x: Ptr<S>, y: PtrMut<T>, n: usize) {
    let (group, groups, row) = (program_id(0), num_programs(0), program_id(1));
    let end = (row + 1) * n;
    // A row begins at any element, and its blocks at the next multiple of 16, for wide loads. The first group also sums the elements before its blocks.
    let begin = cdiv(row * n, 16) * 16;
    let before = row * n + arange(0, 16);
    let head = load(x + before, mask = (group == 0) & (before < min(begin, end))) as f32;
    let element = arange(0, BLOCK_SIZE);
    let mut total = zeros::<f32>([BLOCK_SIZE]);
    for block in range(group, cdiv(end - begin, BLOCK_SIZE), groups) {
        let at = begin + block * BLOCK_SIZE + element;
        total += load(x + at, mask = at < end) as f32;
    }
    store(y + row * groups + group, (sum(head) + sum(total)) as T);
}

/// `y[k, i]` = the largest element in blocks `i`, `i + groups`, `i + 2 * groups` and so on of row `k`, `-inf` if there is none. NaN counts as `-inf`.
///
/// `x` is `[rows, n]` of `f32`, `f16` or `bf16`, `y` is `[rows, groups]`; the grid is `(groups, rows)`. This is the first stage for few long rows:
/// [`row_max`](row_max()) finds the largest of the groups.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let x = device.tensor_from(&vec![1.0f32; 100_000], [2, 50_000])?;
/// let (rows, groups) = (2, 16);
/// let mut parts = device.empty::<f32>(rows * groups)?;
/// let mut y = device.empty::<f32>(rows)?;
/// kernel_library::kernels::block_max(&x, &mut parts, 50_000).grid(|_| (groups, rows)).launch()?;
/// kernel_library::kernels::row_max(&parts, &mut y, groups).grid(|_| rows).launch()?;
/// assert_eq!(y.to_vec()?, [1.0, 1.0]);
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
#[kernel(T = [f32, f16, bf16], contract)]
pub fn block_max<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    static_assert!(T != f64, "elements are compared as f32, in which different numbers of f64 are equal");
    let (group, groups, row) = (program_id(0), num_programs(0), program_id(1));
    let lowest = f32::NEG_INFINITY as T;
    // The blocks are those of `block_sum`.
    let end = (row + 1) * n;
    let begin = cdiv(row * n, 16) * 16;
    let before = row * n + arange(0, 16);
    let head = load(x + before, mask = (group == 0) & (before < min(begin, end)), other = lowest) as f32;
    let element = arange(0, BLOCK_SIZE);
    let mut largest = full([BLOCK_SIZE], f32::NEG_INFINITY);
    for block in range(group, cdiv(end - begin, BLOCK_SIZE), groups) {
        let at = begin + block * BLOCK_SIZE + element;
        let v = load(x + at, mask = at < end, other = lowest) as f32;
        largest = max(largest, v);
    }
    // `largest` is never NaN, so a NaN of the elements before the blocks is dropped here.
    store(y + row * groups + group, max(max(head), max(largest)) as T);
}

/// `y[i] = x[i] / divisor`: means from sums.
///
/// `x` has `n` elements, `y` as many of any float type; the grid is `cdiv(n, BLOCK_SIZE)`. Divided in `f32` and rounded once. Not autotuned: a
/// `BLOCK_SIZE` of 1024 is compiled ahead.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let x = device.tensor(&[1.0f32, 2.0, 3.0])?;
/// let mut y = device.empty::<f16>(3)?;
/// kernel_library::kernels::quotients::<f16, 1024>(&x, &mut y, 3, 2.0).grid(1).launch()?;
/// assert_eq!(y.to_vec()?, [0.5, 1.0, 1.5].map(f16::from_f32));
/// # Ok(())
/// # }
/// ```
#[kernel(T = [f32, f16, bf16], BLOCK_SIZE = [1024])]
pub fn quotients<T: Float, const BLOCK_SIZE: usize>(x: Ptr<f32>, y: PtrMut<T>, n: usize, divisor: f32) {
    let at = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    store(y + at, (load(x + at, mask = at < n) / divisor) as T, mask = at < n);
}
