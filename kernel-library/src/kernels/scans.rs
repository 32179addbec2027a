//! Scans of the rows of a matrix.

use galatea::prelude::*;

/// `y[i, j]` = the sum of the first `j + 1` elements of row `i`: a program a row.
///
/// `x` and `y` are `[rows, columns]`; the grid is the number of rows. Rows are of any length, added up in `f32`; each sum is rounded once.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let x = device.tensor(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let mut y = device.empty_like(&x)?;
/// kernel_library::kernels::row_cumsum(&x, &mut y, 3).grid(|_| 2).launch()?;
/// assert_eq!(y.to_vec()?, [1.0, 3.0, 6.0, 4.0, 9.0, 15.0]);
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
pub fn row_cumsum<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<T>, columns: usize) {
    let start = program_id(0) * columns;
    let column = arange(0, BLOCK_SIZE);
    let mut before: f32 = 0.0;
    for first in range(0, columns, BLOCK_SIZE) {
        let at = first + column;
        let v = load(x + start + at, mask = at < columns) as f32;
        store(y + start + at, (cumsum(v) + before) as T, mask = at < columns);
        before += sum(v);
    }
}
