//! Rows of a table that indices pick, and the gradient of the table.

use galatea::prelude::*;

/// `y[i]` = row `indices[i]` of a table.
///
/// `table` is `[vocabulary, columns]`, `indices` is `[tokens]`, `y` is `[tokens, columns]`; the grid is `(tokens, cdiv(columns, BLOCK_SIZE))`. An index
/// that the table has not gives a row of zeros. Nothing is computed: `y` has the bits of the table.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let table = device.tensor(&[1.0f32, 2.0, 3.0, 4.0])?;
/// let indices = device.tensor(&[1i64, 0, 1])?;
/// let mut y = device.empty::<f32>(6)?;
/// kernel_library::kernels::embedding(&table, &indices, &mut y, 2, 2).grid(|config| (3, cdiv(2, config.BLOCK_SIZE))).launch()?;
/// assert_eq!(y.to_vec()?, [3.0, 4.0, 1.0, 2.0, 3.0, 4.0]);
/// # Ok(())
/// # }
/// ```
#[autotune(
    configs = [
        Config { BLOCK_SIZE: 128, num_warps: 1 },
        Config { BLOCK_SIZE: 512, num_warps: 2 },
        Config { BLOCK_SIZE: 1024, num_warps: 4 },
        Config { BLOCK_SIZE: 4096, num_warps: 8 },
    ],
    key = [columns],
)]
#[kernel(T = [f32, f16, bf16])]
pub fn embedding<T: Float, const BLOCK_SIZE: usize>(table: Ptr<T>, indices: Ptr<i64>, y: PtrMut<T>, vocabulary: usize, columns: usize) {
    let token = program_id(0);
    let column = program_id(1) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = column < columns;
    let index = load(indices + token);
    let v = load(table + index * columns + column, mask = mask & (index >= 0) & (index < vocabulary));
    store(y + token * columns + column, v, mask = mask);
}

/// The gradient of [`embedding()`]: each row of `dy` is added to row `indices[i]` of `dtable`.
///
/// `dy` is `[tokens, columns]`, `indices` is `[tokens]`, `dtable` is `[vocabulary, columns]` of `A`, `f32` or `f64`, and holds zeros, or the gradient so far, before;
/// the grid is `(tokens, cdiv(columns, BLOCK_SIZE))`. Rows whose index is `padding_index` or none of the table's are left out. Tokens meet in one row in
/// no certain order, so the last bits of a sum may differ from launch to launch. Not autotuned, since each launch adds: a `BLOCK_SIZE` of 256 or 1024 is
/// compiled ahead.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let dy = device.tensor(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let indices = device.tensor(&[1i64, 0, 1])?;
/// let mut dtable = device.zeros::<f32>(4)?;
/// kernel_library::kernels::embedding_backward::<f32, f32, 256>(&dy, &indices, &mut dtable, 2, 2, -1).grid((3, cdiv(2, 256))).launch()?;
/// assert_eq!(dtable.to_vec()?, [3.0, 4.0, 6.0, 8.0]);
/// # Ok(())
/// # }
/// ```
#[kernel(T = [f32, f16, bf16], A = [f32], BLOCK_SIZE = [256, 1024])]
pub fn embedding_backward<T: Float, A: Float, const BLOCK_SIZE: usize>(
    dy: Ptr<T>,
    indices: Ptr<i64>,
    dtable: PtrMut<A>,
    vocabulary: usize,
    columns: usize,
    padding_index: i64,
) {
    let token = program_id(0);
    let column = program_id(1) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let index = load(indices + token);
    let mask = (column < columns) & (index >= 0) & (index < vocabulary) & (index != padding_index);
    let v = load(dy + token * columns + column, mask = mask) as A;
    atomic_add(dtable + index * columns + column, v, mask = mask, sem = "relaxed");
}

/// [`embedding()`] without configurations, so that recordings can launch it: `y[i, j] = table[indices[i], j]` for `n` elements of `y`. The grid is `cdiv(n, BLOCK)`.
#[kernel(T = [f32, f16, bf16], BLOCK = 1024)]
pub fn embedded<T: Float, const BLOCK: usize>(table: Ptr<T>, indices: Ptr<i64>, y: PtrMut<T>, n: usize, vocabulary: usize, columns: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let index = load(indices + at / columns, mask = at < n);
    let v = load(table + index * columns + at % columns, mask = (at < n) & (index >= 0) & (index < vocabulary));
    store(y + at, v, mask = at < n);
}
