//! Products with a transposed matrix, as in a linear layer.

use galatea::prelude::*;

/// `y = x * weightᵀ + bias`: `x` is `[rows, inner]`, `weight` is `[columns, inner]`, and `y` is `[rows, columns]`. `bias` has `biased` elements: `columns`, or
/// 0 for none.
///
/// Grid: `[cdiv(rows, ROWS), cdiv(columns, COLUMNS)]`. Each product is rounded to `f32`, sums are `f32`, and each result is rounded once.
#[kernel(T = [f32, f16, bf16], ROWS = 4, COLUMNS = 32, BLOCK = 64, num_warps = 8)]
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
    let row = program_id(0) * ROWS + arange(0, ROWS);
    let column = program_id(1) * COLUMNS + arange(0, COLUMNS);
    let mut total = zeros::<f32>([ROWS, COLUMNS]);
    for first in range(0, inner, BLOCK) {
        let k = first + arange(0, BLOCK);
        let a = load(x + row.col() * inner + k.row(), mask = (row < rows).col() & (k < inner).row()) as f32;
        let b = load(weight + column.col() * inner + k.row(), mask = (column < columns).col() & (k < inner).row()) as f32;
        total += sum(a[(.., None, ..)] * b[(None, .., ..)], axis = 2);
    }
    let shift = load(bias + column, mask = column < biased) as f32;
    let inside = (row < rows).col() & (column < columns).row();
    store(y + row.col() * columns + column.row(), (total + shift.row()) as T, mask = inside);
}
