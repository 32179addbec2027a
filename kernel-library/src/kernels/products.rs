//! Products of matrices that may be transposed, as in the gradients of a linear layer.

use galatea::prelude::*;

/// `y = a * b`: `a` is `[rows, inner]`, or `[inner, rows]` with `TRANSPOSED_A`; `b` is `[inner, columns]`, or `[columns, inner]` with `TRANSPOSED_B`; `y` is
/// `[rows, columns]`.
///
/// A program adds outer products of a column of `a` and a row of `b`. Grid: `[cdiv(rows, ROWS), cdiv(columns, COLUMNS)]`. Products and sums are computed in `A`, in the order
/// of `inner`, and each result is rounded once.
#[kernel(T = [f32], A = [f32], TRANSPOSED_A = [false, true], TRANSPOSED_B = false, ROWS = 16, COLUMNS = 64)]
pub fn products<T: Float, A: Float, const TRANSPOSED_A: bool, const TRANSPOSED_B: bool, const ROWS: usize, const COLUMNS: usize>(
    a: Ptr<T>,
    b: Ptr<T>,
    y: PtrMut<T>,
    rows: usize,
    columns: usize,
    inner: usize,
) {
    let row = (program_id(0) * ROWS + arange(0, ROWS)).col();
    let column = (program_id(1) * COLUMNS + arange(0, COLUMNS)).row();
    let mut total = zeros::<A>([ROWS, COLUMNS]);
    for k in range(0, inner) {
        let left = load(a + if TRANSPOSED_A { k * rows + row } else { row * inner + k }, mask = row < rows) as A;
        let right = load(b + if TRANSPOSED_B { column * inner + k } else { k * columns + column }, mask = column < columns) as A;
        total += left * right;
    }
    store(y + row * columns + column, total as T, mask = (row < rows) & (column < columns));
}
