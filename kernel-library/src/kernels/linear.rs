//! Products with a transposed matrix, as in a linear layer.

use galatea::prelude::*;

/// `y = x * weightᵀ + bias`, by the tensor cores: `x` is `[rows, inner]`, `weight` is `[columns, inner]`, and `y` is `[rows, columns]`. `bias` has `biased`
/// elements: `columns`, or 0 for none.
///
/// Grid: `[cdiv(rows, ROWS), cdiv(columns, COLUMNS)]`. Products are exact, sums are `f32`, and each result is rounded once.
#[kernel(T = [f16, bf16], ROWS = 16, COLUMNS = 32, BLOCK = 64)]
pub fn linear<T: Float, const ROWS: usize, const COLUMNS: usize, const BLOCK: usize>(
    x: Ptr<T>,
    weight: Ptr<T>,
    bias: Ptr<T>,
    y: PtrMut<T>,
    rows: usize,
    columns: usize,
    inner: usize,
    biased: usize,
) {
    let row = (program_id(0) * ROWS + arange(0, ROWS)).col();
    let column = (program_id(1) * COLUMNS + arange(0, COLUMNS)).row();
    let mut total = zeros::<f32>([ROWS, COLUMNS]);
    // A `range` has a loop without masks and one for the rest. That is twice the code, and packages contain the code.
    let mut first = 0;
    while first < inner {
        let k = first + arange(0, BLOCK);
        let a = load(x + row * inner + k.row(), mask = (row < rows) & (k < inner).row());
        let b = load(weight + column * inner + k.col(), mask = (column < columns) & (k < inner).col());
        total += dot(a, b);
        first += BLOCK;
    }
    let shift = load(bias + column, mask = column < biased) as f32;
    store(y + row * columns + column, (total + shift) as T, mask = (row < rows) & (column < columns));
}

/// [`linear`] of `f32`, by sums of products. Products are rounded to `f32`.
#[kernel(ROWS = 4, COLUMNS = 32, BLOCK = 64, num_warps = 8)]
pub fn linear_f32<const ROWS: usize, const COLUMNS: usize, const BLOCK: usize>(
    x: Ptr<f32>,
    weight: Ptr<f32>,
    bias: Ptr<f32>,
    y: PtrMut<f32>,
    rows: usize,
    columns: usize,
    inner: usize,
    biased: usize,
) {
    let row = program_id(0) * ROWS + arange(0, ROWS);
    let column = program_id(1) * COLUMNS + arange(0, COLUMNS);
    let mut total = zeros::<f32>([ROWS, COLUMNS]);
    for first in range(0, inner, BLOCK) {
        let k = first + arange(0, BLOCK);
        let a = load(x + row.col() * inner + k.row(), mask = (row < rows).col() & (k < inner).row());
        let b = load(weight + column.col() * inner + k.row(), mask = (column < columns).col() & (k < inner).row());
        total += sum(a[(.., None, ..)] * b[(None, .., ..)], axis = 2);
    }
    let shift = load(bias + column, mask = column < biased);
    let inside = (row < rows).col() & (column < columns).row();
    store(y + row.col() * columns + column.row(), total + shift.row(), mask = inside);
}
