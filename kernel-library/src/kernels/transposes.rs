//! The transpose of a matrix.

use galatea::prelude::*;

/// `y[j, i] = x[i, j]`: a program a tile, which is read and written along the rows of both.
///
/// `x` is `[rows, columns]`, `y` is `[columns, rows]`, of any element type; the grid is `(cdiv(rows, config.ROWS), cdiv(columns, config.COLUMNS))`. A GPU takes 65,535
/// programs along the second axis: 8 million columns in tiles of 128.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let x = device.tensor(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let mut y = device.empty_like(&x)?;
/// kernel_library::kernels::transpose(&x, &mut y, 2, 3).grid(|config| (cdiv(2, config.ROWS), cdiv(3, config.COLUMNS))).launch()?;
/// assert_eq!(y.to_vec()?, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
/// # Ok(())
/// # }
/// ```
#[autotune(
    configs = [
        Config { ROWS: 32, COLUMNS: 32, num_warps: 4 },
        Config { ROWS: 32, COLUMNS: 128, num_warps: 2 },
        Config { ROWS: 32, COLUMNS: 128, num_warps: 4 },
        Config { ROWS: 64, COLUMNS: 64, num_warps: 4 },
        Config { ROWS: 64, COLUMNS: 64, num_warps: 8 },
        Config { ROWS: 64, COLUMNS: 128, num_warps: 4 },
    ],
    key = [rows, columns],
)]
#[kernel(T = [f32, f16, bf16])]
pub fn transpose<T: Element, const ROWS: usize, const COLUMNS: usize>(x: Ptr<T>, y: PtrMut<T>, rows: usize, columns: usize) {
    let row = program_id(0) * ROWS + arange(0, ROWS);
    let column = program_id(1) * COLUMNS + arange(0, COLUMNS);
    let from = (row * columns)[(.., None)] + column[(None, ..)];
    let v = load(x + from, mask = (row < rows)[(.., None)] & (column < columns)[(None, ..)]);
    let to = (column * rows)[(.., None)] + row[(None, ..)];
    store(y + to, trans(v), mask = (column < columns)[(.., None)] & (row < rows)[(None, ..)]);
}
