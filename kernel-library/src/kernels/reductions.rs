//! Reductions of the rows and of the columns of a matrix.
//!
//! With `STREAM` the L2 gives up first what is read here, and so keeps what others wrote: up to some 200 MB that is faster, beyond it is slower.

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
        Config { BLOCK_SIZE: 1024, ONCE: false, STREAM: true, num_warps: 1 },
        Config { BLOCK_SIZE: 1024, ONCE: false, STREAM: true, num_warps: 4 },
        Config { BLOCK_SIZE: 2048, ONCE: false, STREAM: false, num_warps: 4 },
        Config { BLOCK_SIZE: 2048, ONCE: false, STREAM: true, num_warps: 4 },
        Config { BLOCK_SIZE: 4096, ONCE: false, STREAM: true, num_warps: 4 },
        Config { BLOCK_SIZE: 4096, ONCE: false, STREAM: true, num_warps: 8 },
        Config { BLOCK_SIZE: 8192, ONCE: false, STREAM: true, num_warps: 8 },
        Config { BLOCK_SIZE: 8192, ONCE: false, STREAM: true, num_warps: 16 },
        Config { BLOCK_SIZE: 2048, ONCE: true, STREAM: true, num_warps: 8 },
        Config { BLOCK_SIZE: 4096, ONCE: true, STREAM: true, num_warps: 8 },
        Config { BLOCK_SIZE: 4096, ONCE: true, STREAM: true, num_warps: 16 },
        Config { BLOCK_SIZE: 8192, ONCE: true, STREAM: true, num_warps: 4 },
        Config { BLOCK_SIZE: 8192, ONCE: true, STREAM: true, num_warps: 8 },
        Config { BLOCK_SIZE: 8192, ONCE: true, STREAM: false, num_warps: 8 },
        Config { BLOCK_SIZE: 8192, ONCE: true, STREAM: true, num_warps: 16 },
        Config { BLOCK_SIZE: 8192, ONCE: true, STREAM: true, num_warps: 32 },
        Config { BLOCK_SIZE: 16384, ONCE: true, STREAM: true, num_warps: 32 },
    ],
    key = [columns],
    prune = |config| config.BLOCK_SIZE >= 2 * columns.max(1024) || (config.ONCE && config.BLOCK_SIZE < columns),
)]
#[kernel(T = [f32, f16, bf16], contract)]
pub fn row_sum<T: Float, const BLOCK_SIZE: usize, const ONCE: bool, const STREAM: bool>(x: Ptr<T>, y: PtrMut<T>, columns: usize) {
    let row = program_id(0);
    let column = arange(0, BLOCK_SIZE);
    let mut total = zeros::<f32>([BLOCK_SIZE]);
    if ONCE {
        total =
            load(x + row * columns + column, mask = column < columns, evict = if STREAM { "evict_first" } else { "evict_normal" }) as f32;
    } else {
        for first in range(0, columns, BLOCK_SIZE) {
            let at = first + column;
            total += load(x + row * columns + at, mask = at < columns, evict = if STREAM { "evict_first" } else { "evict_normal" }) as f32;
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
        Config { BLOCK_SIZE: 1024, STREAM: true, num_warps: 1 },
        Config { BLOCK_SIZE: 1024, STREAM: true, num_warps: 4 },
        Config { BLOCK_SIZE: 2048, STREAM: false, num_warps: 4 },
        Config { BLOCK_SIZE: 2048, STREAM: true, num_warps: 4 },
        Config { BLOCK_SIZE: 4096, STREAM: true, num_warps: 4 },
        Config { BLOCK_SIZE: 4096, STREAM: true, num_warps: 8 },
        Config { BLOCK_SIZE: 8192, STREAM: true, num_warps: 8 },
        Config { BLOCK_SIZE: 8192, STREAM: true, num_warps: 16 },
        Config { BLOCK_SIZE: 8192, STREAM: false, num_warps: 16 },
    ],
    key = [columns],
    prune = |config| config.BLOCK_SIZE >= 2 * columns.max(1024),
)]
#[kernel(T = [f32, f16, bf16], contract)]
pub fn row_max<T: Float, const BLOCK_SIZE: usize, const STREAM: bool>(x: Ptr<T>, y: PtrMut<T>, columns: usize) {
    static_assert!(T != f64, "elements are compared as f32, in which different numbers of f64 are equal");
    let row = program_id(0);
    let column = arange(0, BLOCK_SIZE);
    let mut largest = full([BLOCK_SIZE], f32::NEG_INFINITY);
    for first in range(0, columns, BLOCK_SIZE) {
        let at = first + column;
        let lowest = f32::NEG_INFINITY as T;
        let mask = at < columns;
        let v =
            load(x + row * columns + at, mask = mask, other = lowest, evict = if STREAM { "evict_first" } else { "evict_normal" }) as f32;
        largest = max(largest, v);
    }
    store(y + row, max(largest) as T);
}

/// `y[i, j]` = the sum of column `j` of `x` over the rows `i`, `i + groups`, `i + 2 * groups` and so on.
///
/// With one group these are the sums of the columns. A matrix of few columns and many rows is summed in two stages, so that there are programs
/// enough: into some hundred groups of `f32`, and those into one.
///
/// `x` is `[rows, columns]`, `y` is `[groups, columns]`, of any two of the float types; the grid is `(cdiv(columns, BLOCK_SIZE), groups)`, or the
/// first alone for one group. Added up in `f32` and rounded once. Without rows the sums are 0.
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
    let group = program_id(1);
    let column = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = column < columns;
    // Many rows at once: few programs wait for memory seldom.
    let own = group + arange(0, ROWS) * num_programs(1);
    let mut total = zeros::<f32>([ROWS, BLOCK_SIZE]);
    // Few iterations, whose loads fill the threads' registers: more under way would only begin later.
    for first in range(0, rows, ROWS * num_programs(1), num_stages = 1) {
        let row = first + own;
        let at = (row * columns)[(.., None)] + column[(None, ..)];
        total += load(x + at, mask = (row < rows)[(.., None)] & mask[(None, ..)]) as f32;
    }
    store(y + group * columns + column, sum(total, axis = 0) as T, mask = mask);
}

/// `y[i]` = the sum of `x` over blocks `i`, `i + groups`, `i + 2 * groups` and so on.
///
/// With one group this is the sum of all. A large tensor is summed in two stages, so that there are programs enough: into some hundred groups of
/// `f32`, and those into one. No atomics: a sum is the same in every launch of one configuration.
///
/// `x` has `n` elements, `y` has `groups`, of any two of the float types; the grid is `groups`. Added up in `f32` and rounded once; an empty sum is 0.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let x = device.tensor(&[1.0f32; 100_000])?;
/// let groups = 16;
/// let mut parts = device.empty::<f32>(groups)?;
/// let mut y = device.empty::<f32>(1)?;
/// kernel_library::kernels::block_sum(&x, &mut parts, x.len()).grid(|_| groups).launch()?;
/// kernel_library::kernels::block_sum(&parts, &mut y, groups).grid(|_| 1).launch()?;
/// assert_eq!(y.to_vec()?, [100_000.0]);
/// # Ok(())
/// # }
/// ```
#[autotune(
    configs = [
        Config { BLOCK_SIZE: 1024, STREAM: true, num_warps: 4 },
        Config { BLOCK_SIZE: 2048, STREAM: true, num_warps: 4 },
        Config { BLOCK_SIZE: 2048, STREAM: false, num_warps: 4 },
        Config { BLOCK_SIZE: 4096, STREAM: true, num_warps: 8 },
        Config { BLOCK_SIZE: 8192, STREAM: true, num_warps: 16 },
        Config { BLOCK_SIZE: 8192, STREAM: false, num_warps: 16 },
    ],
    key = [n],
)]
#[kernel(S = [f32, f16, bf16], T = [f32, f16, bf16], contract)]
pub fn block_sum<S: Float, T: Float, const BLOCK_SIZE: usize, const STREAM: bool>(x: Ptr<S>, y: PtrMut<T>, n: usize) {
    let element = arange(0, BLOCK_SIZE);
    let mut total = zeros::<f32>([BLOCK_SIZE]);
    for first in range(program_id(0) * BLOCK_SIZE, n, num_programs(0) * BLOCK_SIZE) {
        let at = first + element;
        total += load(x + at, mask = at < n, evict = if STREAM { "evict_first" } else { "evict_normal" }) as f32;
    }
    store(y + program_id(0), sum(total) as T);
}
