//! Normalised rows: layer norm and RMS norm.

use galatea::prelude::*;

/// `y = (x - mean) * rstd * weight + bias` for each row, `rstd = 1 / sqrt(variance + eps)`: a program a row.
///
/// `x` and `y` are `[rows, columns]`, `weight` and `bias` `[columns]`, `mean` and `rstd` `[rows]`, kept for the backward pass; the grid is the
/// number of rows. The variance is that of the row, divided by `columns`, from the differences to the mean. Computed in `f32` and rounded
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
/// kernel_library::kernels::layer_norm(&x, &weight, &bias, &mut y, &mut mean, &mut rstd, 2, 0.0).grid(|_| 2).launch()?;
/// assert_eq!((y.to_vec()?, mean.to_vec()?), (vec![-1.0, 12.0, -1.0, 12.0], vec![2.0, 0.0]));
/// # Ok(())
/// # }
/// ```
#[autotune(
    configs = product(
        BLOCK_SIZE = [256, 512, 1024, 2048, 4096, 8192, 16384, 32768],
        num_warps = [1, 2, 4, 8, 16, 32],
    ) if BLOCK_SIZE <= 2048 * num_warps && (BLOCK_SIZE >= 512 * num_warps || num_warps == 1),
    key = [columns],
    prune = |config| config.BLOCK_SIZE < columns || config.BLOCK_SIZE >= 2 * columns.max(129),
)]
#[kernel(T = [f32, f16, bf16], contract)]
pub fn layer_norm<T: Float, const BLOCK_SIZE: usize>(
    x: Ptr<T>,
    weight: Ptr<T>,
    bias: Ptr<T>,
    y: PtrMut<T>,
    mean: PtrMut<f32>,
    rstd: PtrMut<f32>,
    columns: usize,
    eps: f32,
) {
    let row = program_id(0);
    let column = arange(0, BLOCK_SIZE);
    let mask = column < columns;
    let v = load(x + row * columns + column, mask = mask, evict = "evict_last") as f32;
    // What a short row waits for comes with it; in a long one it would take registers from the row.
    const SHORT: bool = BLOCK_SIZE <= 1024;
    let (near_weight, near_bias) =
        if SHORT { (load(weight + column, mask = mask) as f32, load(bias + column, mask = mask) as f32) } else { (0.0, 0.0) };
    let scale = 1.0 / columns as f32;
    let row_mean = sum(v) * scale;
    let difference = select(mask, v - row_mean, 0.0);
    let row_rstd = rsqrt(sum(difference * difference) * scale + eps);
    store(mean + row, row_mean);
    store(rstd + row, row_rstd);
    let w = if SHORT { near_weight } else { load(weight + column, mask = mask) as f32 };
    let b = if SHORT { near_bias } else { load(bias + column, mask = mask) as f32 };
    let normal = (difference * row_rstd * w + b) as T;
    store(y + row * columns + column, normal, mask = mask);
}

/// `y = x * rstd * weight` for each row, `rstd = 1 / sqrt(mean of squares + eps)`: a program a row.
///
/// `x` and `y` are `[rows, columns]`, `weight` is `[columns]`, `rstd` `[rows]`, kept for the backward pass; the grid is the number of rows.
/// Computed in `f32` and rounded once. Rows of up to 32,768 columns are held in registers; longer ones are [`Error::NoConfig`].
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let (x, weight) = (device.tensor(&[3.0f32, -3.0, 4.0, 4.0])?, device.tensor(&[1.0f32, 2.0])?);
/// let (mut y, mut rstd) = (device.empty_like(&x)?, device.empty::<f32>(2)?);
/// kernel_library::kernels::rms_norm(&x, &weight, &mut y, &mut rstd, 2, 0.0).grid(|_| 2).launch()?;
/// assert_eq!(y.to_vec()?, [1.0, -2.0, 1.0, 2.0]);
/// # Ok(())
/// # }
/// ```
#[autotune(
    configs = product(
        BLOCK_SIZE = [256, 512, 1024, 2048, 4096, 8192, 16384, 32768],
        num_warps = [1, 2, 4, 8, 16, 32],
    ) if BLOCK_SIZE <= 2048 * num_warps && (BLOCK_SIZE >= 512 * num_warps || num_warps == 1),
    key = [columns],
    prune = |config| config.BLOCK_SIZE < columns || config.BLOCK_SIZE >= 2 * columns.max(129),
)]
#[kernel(T = [f32, f16, bf16], contract)]
pub fn rms_norm<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, weight: Ptr<T>, y: PtrMut<T>, rstd: PtrMut<f32>, columns: usize, eps: f32) {
    let row = program_id(0);
    let column = arange(0, BLOCK_SIZE);
    let mask = column < columns;
    let v = load(x + row * columns + column, mask = mask, evict = "evict_last") as f32;
    // As in `layer_norm`.
    const SHORT: bool = BLOCK_SIZE <= 1024;
    let near_weight = if SHORT { load(weight + column, mask = mask) as f32 } else { 0.0 };
    let row_rstd = rsqrt(sum(v * v) * (1.0 / columns as f32) + eps);
    store(rstd + row, row_rstd);
    let w = if SHORT { near_weight } else { load(weight + column, mask = mask) as f32 };
    let normal = (v * row_rstd * w) as T;
    store(y + row * columns + column, normal, mask = mask);
}
