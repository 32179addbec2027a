//! Reductions of the rows of a matrix.

use galatea::prelude::*;

/// `y[i]` = the sum of row `i`: a program a row.
///
/// `x` is `[rows, columns]`, `y` `[rows]`; the grid is the number of rows. Added up in `f32` and rounded once.
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
pub fn row_sum<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<T>, columns: usize) {
    let row = program_id(0);
    let column = arange(0, BLOCK_SIZE);
    let mut total = zeros::<f32>([BLOCK_SIZE]);
    for first in range(0, columns, BLOCK_SIZE) {
        let at = first + column;
        total += load(x + row * columns + at, mask = at < columns, evict = "evict_first") as f32;
    }
    store(y + row, sum(total) as T);
}

/// `y[i]` = the largest element of row `i`, `-inf` if it has none: a program a row. NaN counts only where there is nothing else.
///
/// `x` is `[rows, columns]`, `y` `[rows]`; the grid is the number of rows.
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
    let row = program_id(0);
    let column = arange(0, BLOCK_SIZE);
    let mut largest = full([BLOCK_SIZE], f32::NEG_INFINITY);
    for first in range(0, columns, BLOCK_SIZE) {
        let at = first + column;
        largest =
            max(largest, load(x + row * columns + at, mask = at < columns, other = f32::NEG_INFINITY as T, evict = "evict_first") as f32);
    }
    store(y + row, max(largest) as T);
}
