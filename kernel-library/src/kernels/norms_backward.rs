//! The backward passes of layer norm and RMS norm: gradients of the input, and the parts that the gradients of the weights are summed from.
//!
//! A program takes some rows in turns, and adds what they say about the weights up in registers, to write it as one row of a matrix;
//! [`column_sum`](crate::kernels::column_sum()) sums the rows of that. How many programs there are is the caller's choice, `groups`: as many as the GPU has multiprocessors
//! keep it busy. No program waits for another, and the result is the same in every launch of one configuration. Groups without a row write zeros.

use galatea::prelude::*;

/// The backward pass of [`layer_norm`](crate::kernels::layer_norm()): the gradient `dx`, and those of `weight` and `bias` in parts.
///
/// With `normal = (x - mean) * rstd` and `g = dy * weight`, each row of `dx` is `(g - mean of g - normal * mean of (g * normal)) * rstd`. Each row
/// of `parts` is the sum of `dy * normal` over the rows of a program, and behind it that of `dy`: [`column_sum`](crate::kernels::column_sum()) makes
/// the gradients of `weight` and of `bias` of them.
///
/// `dy`, `x` and `dx` are `[rows, columns]`, `weight` is `[columns]`, `mean` and `rstd` are `[rows]`, as the forward pass kept them,
/// `parts` is `[groups, 2, columns]`; the grid is `groups`, at least 1. Computed in `f32`; `dx` is rounded once. Rows are held
/// in registers: by one CTA up to 8,192 columns, by a cluster up to 65,536 on GPUs that have clusters; longer ones are [`Error::NoConfig`].
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// # let device = Device::cpu();
/// # let (rows, columns, groups) = (3, 2, 2);
/// # let [x, dy] = [device.tensor(&[1.0f32, 2.0, 3.0, 5.0, 8.0, 13.0])?, device.tensor(&[1.0f32; 6])?];
/// # let [weight, bias] = [0; 2].map(|_| device.tensor(&[1.0f32; 2]).unwrap());
/// # let [mut y, mut dx] = [device.empty_like(&x)?, device.empty_like(&x)?];
/// # let [mut mean, mut rstd] = [device.empty::<f32>(rows)?, device.empty::<f32>(rows)?];
/// kernel_library::kernels::layer_norm(&x, &weight, &bias, &mut y, &mut mean, &mut rstd, rows, columns, 1e-5)
///     .grid(|config| cdiv(rows, config.ROWS))
///     .launch()?;
///
/// let mut parts = device.empty::<f32>(groups * 2 * columns)?;
/// kernel_library::kernels::layer_norm_backward(&dy, &x, &weight, &mean, &rstd, &mut dx, &mut parts, rows, columns).grid(|_| groups).launch()?;
/// let mut both = device.empty::<f32>(2 * columns)?;
/// kernel_library::kernels::column_sum(&parts, &mut both, groups, 2 * columns).grid(|config| cdiv(2 * columns, config.BLOCK_SIZE)).launch()?;
/// let (dweight, dbias) = (both.slice(..columns)?, both.slice(columns..)?);
/// assert_eq!(dbias.to_vec()?, [3.0, 3.0]);
/// # Ok(())
/// # }
/// ```
#[autotune(
    configs = [
        Config { BLOCK_SIZE: 256, ROWS: 32, STAGES: 2, num_warps: 8 },
        Config { BLOCK_SIZE: 256, ROWS: 16, STAGES: 2, num_warps: 4 },
        Config { BLOCK_SIZE: 512, ROWS: 16, STAGES: 2, num_warps: 8 },
        Config { BLOCK_SIZE: 512, ROWS: 8, STAGES: 2, num_warps: 4 },
        Config { BLOCK_SIZE: 1024, ROWS: 8, STAGES: 2, num_warps: 8 },
        Config { BLOCK_SIZE: 1024, ROWS: 4, STAGES: 2, num_warps: 4 },
        Config { BLOCK_SIZE: 2048, ROWS: 4, STAGES: 2, num_warps: 8 },
        Config { BLOCK_SIZE: 2048, ROWS: 2, STAGES: 2, num_warps: 4 },
        Config { BLOCK_SIZE: 4096, ROWS: 2, STAGES: 2, num_warps: 8 },
        Config { BLOCK_SIZE: 4096, ROWS: 1, STAGES: 2, num_warps: 8 },
        Config { BLOCK_SIZE: 8192, ROWS: 1, STAGES: 2, num_warps: 8 },
        Config { BLOCK_SIZE: 8192, ROWS: 1, STAGES: 3, num_warps: 8 },
        Config { BLOCK_SIZE: 8192, ROWS: 1, STAGES: 4, num_warps: 8 }, // of halves: of `f32` that is more than a GPU has
        Config { BLOCK_SIZE: 8192, ROWS: 1, STAGES: 2, num_warps: 16 },
        Config { BLOCK_SIZE: 16384, ROWS: 1, STAGES: 1, num_warps: 8, num_ctas: 4 },
        Config { BLOCK_SIZE: 32768, ROWS: 1, STAGES: 1, num_warps: 8, num_ctas: 8 },
        Config { BLOCK_SIZE: 65536, ROWS: 1, STAGES: 1, num_warps: 8, num_ctas: 16 },
    ],
    key = [columns],
    prune = |config| config.BLOCK_SIZE < columns || config.BLOCK_SIZE >= 2 * columns.max(129),
)]
#[kernel(T = [f32, f16, bf16], contract)]
pub fn layer_norm_backward<T: Float, const BLOCK_SIZE: usize, const ROWS: usize, const STAGES: usize>(
    dy: Ptr<T>,
    x: Ptr<T>,
    weight: Ptr<T>,
    mean: Ptr<f32>,
    rstd: Ptr<f32>,
    dx: PtrMut<T>,
    parts: PtrMut<f32>,
    rows: usize,
    columns: usize,
) {
    let column = arange(0, BLOCK_SIZE);
    let mask = column < columns;
    let scale = 1.0 / columns as f32;
    let w = load(weight + column, mask = mask)[(None, ..)] as f32;
    let mut dw = zeros::<f32>([ROWS, BLOCK_SIZE]);
    let mut db = zeros::<f32>([ROWS, BLOCK_SIZE]);
    for first in range(program_id(0) * ROWS, rows, num_programs(0) * ROWS, num_stages = STAGES) {
        let row = first + arange(0, ROWS);
        let at = row.col() * columns + column.row();
        let inside = (row < rows).col() & mask.row();
        let d = load(dy + at, mask = inside) as f32;
        let row_rstd = load(rstd + row, mask = row < rows).col();
        let normal = (load(x + at, mask = inside) as f32 - load(mean + row, mask = row < rows).col()) * row_rstd;
        let g = d * w;
        let along = sum(g * normal, axis = 1) * scale;
        let constant = sum(g, axis = 1) * scale;
        store(dx + at, ((g - (normal * along.col() + constant.col())) * row_rstd) as T, mask = inside);
        dw += d * normal;
        db += d;
    }
    let part = 2 * program_id(0) * columns + column;
    store(parts + part, sum(dw, axis = 0), mask = mask);
    store(parts + columns + part, sum(db, axis = 0), mask = mask);
}

/// The backward pass of [`rms_norm`](crate::kernels::rms_norm()): the gradient `dx`, and that of `weight` in parts.
///
/// With `normal = x * rstd` and `g = dy * weight`, each row of `dx` is `(g - normal * mean of (g * normal)) * rstd`, and each row of `weight_parts`
/// the sum of `dy * normal` over the rows of a program: [`column_sum`](crate::kernels::column_sum()) makes the gradient of `weight` of them.
///
/// `dy`, `x` and `dx` are `[rows, columns]`, `weight` is `[columns]`, `rstd` is `[rows]`, as the forward pass kept it, `weight_parts` is
/// `[groups, columns]`; the grid is `groups`, at least 1. Computed in `f32`; `dx` is rounded once. Rows are held in
/// registers: by one CTA up to 8,192 columns, by a cluster up to 65,536 on GPUs that have clusters; longer ones are [`Error::NoConfig`].
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let [x, dy] = [device.tensor(&[3.0f32, -3.0, 4.0, 4.0])?, device.tensor(&[1.0f32; 4])?];
/// let (weight, rstd) = (device.tensor(&[1.0f32, 1.0])?, device.tensor(&[1.0f32 / 3.0, 0.25])?);
/// let (mut dx, mut parts) = (device.empty_like(&x)?, device.empty::<f32>(2)?);
/// kernel_library::kernels::rms_norm_backward(&dy, &x, &weight, &rstd, &mut dx, &mut parts, 2, 2).grid(|_| 1).launch()?;
/// assert_eq!(parts.to_vec()?, [2.0, 0.0]); // one group: the gradient of `weight`
/// # Ok(())
/// # }
/// ```
#[autotune(
    configs = [
        Config { BLOCK_SIZE: 256, ROWS: 32, STAGES: 2, num_warps: 8 },
        Config { BLOCK_SIZE: 256, ROWS: 16, STAGES: 2, num_warps: 4 },
        Config { BLOCK_SIZE: 512, ROWS: 16, STAGES: 2, num_warps: 8 },
        Config { BLOCK_SIZE: 512, ROWS: 8, STAGES: 2, num_warps: 4 },
        Config { BLOCK_SIZE: 1024, ROWS: 8, STAGES: 2, num_warps: 8 },
        Config { BLOCK_SIZE: 1024, ROWS: 4, STAGES: 2, num_warps: 4 },
        Config { BLOCK_SIZE: 2048, ROWS: 4, STAGES: 2, num_warps: 8 },
        Config { BLOCK_SIZE: 2048, ROWS: 2, STAGES: 2, num_warps: 4 },
        Config { BLOCK_SIZE: 4096, ROWS: 2, STAGES: 2, num_warps: 8 },
        Config { BLOCK_SIZE: 4096, ROWS: 1, STAGES: 2, num_warps: 8 },
        Config { BLOCK_SIZE: 8192, ROWS: 1, STAGES: 2, num_warps: 8 },
        Config { BLOCK_SIZE: 8192, ROWS: 1, STAGES: 3, num_warps: 8 },
        Config { BLOCK_SIZE: 8192, ROWS: 1, STAGES: 4, num_warps: 8 }, // of halves: of `f32` that is more than a GPU has
        Config { BLOCK_SIZE: 8192, ROWS: 1, STAGES: 2, num_warps: 16 },
        Config { BLOCK_SIZE: 16384, ROWS: 1, STAGES: 1, num_warps: 8, num_ctas: 4 },
        Config { BLOCK_SIZE: 32768, ROWS: 1, STAGES: 1, num_warps: 8, num_ctas: 8 },
        Config { BLOCK_SIZE: 65536, ROWS: 1, STAGES: 1, num_warps: 8, num_ctas: 16 },
    ],
    key = [columns],
    prune = |config| config.BLOCK_SIZE < columns || config.BLOCK_SIZE >= 2 * columns.max(129),
)]
#[kernel(T = [f32, f16, bf16], contract)]
pub fn rms_norm_backward<T: Float, const BLOCK_SIZE: usize, const ROWS: usize, const STAGES: usize>(
    dy: Ptr<T>,
    x: Ptr<T>,
    weight: Ptr<T>,
    rstd: Ptr<f32>,
    dx: PtrMut<T>,
    weight_parts: PtrMut<f32>,
    rows: usize,
    columns: usize,
) {
    let column = arange(0, BLOCK_SIZE);
    let mask = column < columns;
    let scale = 1.0 / columns as f32;
    let w = load(weight + column, mask = mask)[(None, ..)] as f32;
    let mut dw = zeros::<f32>([ROWS, BLOCK_SIZE]);
    for first in range(program_id(0) * ROWS, rows, num_programs(0) * ROWS, num_stages = STAGES) {
        let row = first + arange(0, ROWS);
        let at = row.col() * columns + column.row();
        let inside = (row < rows).col() & mask.row();
        let d = load(dy + at, mask = inside) as f32;
        let row_rstd = load(rstd + row, mask = row < rows).col();
        let normal = load(x + at, mask = inside) as f32 * row_rstd;
        let g = d * w;
        let along = sum(g * normal, axis = 1) * scale;
        store(dx + at, ((g - normal * along.col()) * row_rstd) as T, mask = inside);
        dw += d * normal;
    }
    store(weight_parts + program_id(0) * columns + column, sum(dw, axis = 0), mask = mask);
}
