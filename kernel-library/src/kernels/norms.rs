//! Normalised rows: layer norm and RMS norm.

use galatea::prelude::*;

/// `y = (x - mean) * rstd * weight + bias` for each row, `rstd = 1 / sqrt(variance + eps)`: a program takes up to 4 short rows.
///
/// `x` and `y` are `[rows, columns]`, `weight` and `bias` `[columns]`, `mean` and `rstd` `[rows]`, kept for the backward pass; the grid is
/// `cdiv(rows, config.ROWS)`. The variance is that of the row, divided by `columns`, from the differences to the mean. Computed in `f32` and rounded
/// once. Rows of up to 32,768 columns are held in registers; longer ones are [`Error::NoConfig`].
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let x = device.tensor(&[1.0f32, 3.0, -5.0, 5.0])?;
/// let (weight, bias) = (device.tensor(&[1.0f32, 2.0])?, device.tensor(&[0.0f32, 10.0])?);
/// let [mut mean, mut rstd] = [device.empty::<f32>(2)?, device.empty::<f32>(2)?];
/// let mut y = device.empty_like(&x)?;
/// kernel_library::kernels::layer_norm(&x, &weight, &bias, &mut y, &mut mean, &mut rstd, 2, 2, 0.0).grid(|config| cdiv(2, config.ROWS)).launch()?;
/// assert_eq!((y.to_vec()?, mean.to_vec()?), (vec![-1.0, 12.0, -1.0, 12.0], vec![2.0, 0.0]));
/// # Ok(())
/// # }
/// ```
#[autotune(
    configs = product(
        BLOCK_SIZE = [256, 512, 1024, 2048, 4096, 8192, 16384, 32768],
        ROWS = [1, 2, 4],
        num_warps = [1, 2, 4, 8, 16, 32],
    ) if ROWS * BLOCK_SIZE <= 2048 * num_warps
        && (num_warps == 1 || ROWS * BLOCK_SIZE >= 512 * num_warps)
        && (ROWS == 1 || (ROWS * BLOCK_SIZE <= 4096 && (num_warps == 1 || ROWS * BLOCK_SIZE >= 1024 * num_warps))),
    key = [columns],
    prune = |config| config.BLOCK_SIZE < columns || config.BLOCK_SIZE >= 2 * columns.max(129),
)]
#[kernel(T = [f32, f16, bf16], contract)]
pub fn layer_norm<T: Float, const BLOCK_SIZE: usize, const ROWS: usize>(
    x: Ptr<T>,
    weight: Ptr<T>,
    bias: Ptr<T>,
    y: PtrMut<T>,
    mean: PtrMut<f32>,
    rstd: PtrMut<f32>,
    rows: usize,
    columns: usize,
    eps: f32,
) {
    let row = program_id(0) * ROWS + arange(0, ROWS);
    let column = arange(0, BLOCK_SIZE);
    let (is_row, is_column) = (row < rows, column < columns);
    let mask = is_row.col() & is_column.row();
    let at = row.col() * columns + column.row();
    let v = load(x + at, mask = mask) as f32;
    // For a short row, weight and bias are loaded together with the row. In a long row they would take registers from the row.
    const SHORT: bool = BLOCK_SIZE <= 4096;
    let (near_weight, near_bias) =
        if SHORT { (load(weight + column, mask = is_column) as f32, load(bias + column, mask = is_column) as f32) } else { (0.0, 0.0) };
    let scale = 1.0 / columns as f32;
    let row_mean = sum(v, axis = 1) * scale;
    let difference = select(mask, v - row_mean.col(), 0.0);
    let row_rstd = rsqrt(sum(difference * difference, axis = 1) * scale + eps);
    store(mean + row, row_mean, mask = is_row);
    store(rstd + row, row_rstd, mask = is_row);
    let w = if SHORT { near_weight } else { load(weight + column, mask = is_column) as f32 };
    let b = if SHORT { near_bias } else { load(bias + column, mask = is_column) as f32 };
    let normal = (difference * row_rstd.col() * w.row() + b.row()) as T;
    store(y + at, normal, mask = mask);
}

/// `y = x * rstd * weight` for each row, `rstd = 1 / sqrt(mean of squares + eps)`: a program takes up to 4 short rows.
///
/// `x` and `y` are `[rows, columns]`, `weight` is `[columns]`, `rstd` `[rows]`, kept for the backward pass; the grid is `cdiv(rows, config.ROWS)`.
/// Computed in `f32` and rounded once. Rows of up to 32,768 columns are held in registers; longer ones are [`Error::NoConfig`].
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let (x, weight) = (device.tensor(&[3.0f32, -3.0, 4.0, 4.0])?, device.tensor(&[1.0f32, 2.0])?);
/// let (mut y, mut rstd) = (device.empty_like(&x)?, device.empty::<f32>(2)?);
/// kernel_library::kernels::rms_norm(&x, &weight, &mut y, &mut rstd, 2, 2, 0.0).grid(|config| cdiv(2, config.ROWS)).launch()?;
/// assert_eq!(y.to_vec()?, [1.0, -2.0, 1.0, 2.0]);
/// # Ok(())
/// # }
/// ```
#[autotune(
    configs = product(
        BLOCK_SIZE = [256, 512, 1024, 2048, 4096, 8192, 16384, 32768],
        ROWS = [1, 2, 4],
        num_warps = [1, 2, 4, 8, 16, 32],
    ) if ROWS * BLOCK_SIZE <= 2048 * num_warps
        && (num_warps == 1 || ROWS * BLOCK_SIZE >= 512 * num_warps)
        && (ROWS == 1 || (ROWS * BLOCK_SIZE <= 4096 && (num_warps == 1 || ROWS * BLOCK_SIZE >= 1024 * num_warps))),
    key = [columns],
    prune = |config| config.BLOCK_SIZE < columns || config.BLOCK_SIZE >= 2 * columns.max(129),
)]
#[kernel(T = [f32, f16, bf16], contract)]
pub fn rms_norm<T: Float, const BLOCK_SIZE: usize, const ROWS: usize>(
    x: Ptr<T>,
    weight: Ptr<T>,
    y: PtrMut<T>,
    rstd: PtrMut<f32>,
    rows: usize,
    columns: usize,
    eps: f32,
) {
    let row = program_id(0) * ROWS + arange(0, ROWS);
    let column = arange(0, BLOCK_SIZE);
    let (is_row, is_column) = (row < rows, column < columns);
    let mask = is_row.col() & is_column.row();
    let at = row.col() * columns + column.row();
    let v = load(x + at, mask = mask) as f32;
    // As in `layer_norm`.
    const SHORT: bool = BLOCK_SIZE <= 8192;
    let near_weight = if SHORT { load(weight + column, mask = is_column) as f32 } else { 0.0 };
    let row_rstd = rsqrt(sum(v * v, axis = 1) * (1.0 / columns as f32) + eps);
    store(rstd + row, row_rstd, mask = is_row);
    let w = if SHORT { near_weight } else { load(weight + column, mask = is_column) as f32 };
    let normal = (v * row_rstd.col() * w.row()) as T;
    store(y + at, normal, mask = mask);
}
