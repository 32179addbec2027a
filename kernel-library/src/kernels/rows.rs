//! Functions of rows of any length that have no configurations, so that recordings can launch them: softmax, norms and their gradients.
//!
//! A program takes one row, in blocks, and reads it once for each sum over the row. The grid is the number of rows. All kernels compute in `A`, `f32` or `f64`, and
//! round each result once.

use galatea::prelude::*;

/// The largest element of a row, and the sum of the exponentials of the differences to it. The largest element is `-inf` for a row without elements.
#[device]
fn exponentials<T: Float, A: Float, const BLOCK: usize>(x: Ptr<T>, columns: usize) -> (Value<A>, Value<A>) {
    let mut largest = full([BLOCK], A::NEG_INFINITY);
    for first in range(0, columns, BLOCK) {
        let at = first + arange(0, BLOCK);
        largest = max(largest, load(x + at, mask = at < columns, other = T::NEG_INFINITY) as A);
    }
    let top = max(largest);
    let mut total = zeros::<A>([BLOCK]);
    for first in range(0, columns, BLOCK) {
        let at = first + arange(0, BLOCK);
        total += exp(load(x + at, mask = at < columns, other = T::NEG_INFINITY) as A - top);
    }
    (top, sum(total))
}

/// The softmax of each row, or its logarithm with `LOG`: `y = exp(x - top) / total`, or `y = x - top - log(total)`.
///
/// `x` and `y` are `[rows, columns]`. A row with NaN or `+inf`, or of nothing but `-inf`, becomes NaN.
#[kernel(T = [f32, f16, bf16], A = [f32], LOG = [false, true], BLOCK = 1024)]
pub fn softmax_rows<T: Float, A: Float, const LOG: bool, const BLOCK: usize>(x: Ptr<T>, y: PtrMut<T>, columns: usize) {
    let start = program_id(0) * columns;
    let (top, total) = exponentials::<T, A, BLOCK>(x + start, columns);
    for first in range(0, columns, BLOCK) {
        let at = first + arange(0, BLOCK);
        let v = load(x + start + at, mask = at < columns) as A - top;
        let result = if LOG { v - log(total) } else { exp(v) / total };
        store(y + start + at, result as T, mask = at < columns);
    }
}

/// The gradient of [`softmax_rows`], whose result is `y`: `dx = y * (dy - sum of dy * y)`, or `dx = dy - exp(y) * sum of dy` with `LOG`.
///
/// All tensors are `[rows, columns]`.
#[kernel(T = [f32, f16, bf16], A = [f32], LOG = [false, true], BLOCK = 1024)]
pub fn softmax_gradients<T: Float, A: Float, const LOG: bool, const BLOCK: usize>(dy: Ptr<T>, y: Ptr<T>, dx: PtrMut<T>, columns: usize) {
    let start = program_id(0) * columns;
    let mut total = zeros::<A>([BLOCK]);
    for first in range(0, columns, BLOCK) {
        let at = first + arange(0, BLOCK);
        let g = load(dy + start + at, mask = at < columns) as A;
        total += if LOG { g } else { g * load(y + start + at, mask = at < columns) as A };
    }
    let along = sum(total);
    for first in range(0, columns, BLOCK) {
        let at = first + arange(0, BLOCK);
        let g = load(dy + start + at, mask = at < columns) as A;
        let v = load(y + start + at, mask = at < columns) as A;
        let result = if LOG { g - exp(v) * along } else { v * (g - along) };
        store(dx + start + at, result as T, mask = at < columns);
    }
}

/// The losses of rows of logits: `losses[i] = lse[i] - logits[i, targets[i]]`, `lse[i]` the logarithm of the sum of the exponentials of row `i`.
///
/// `logits` are `[rows, classes]`; `targets`, `losses` and `lse` are `[rows]`. A row whose target is `ignore_index` has the loss 0; one whose target is no class otherwise
/// has the loss NaN.
#[kernel(T = [f32, f16, bf16], A = [f32], BLOCK = 1024)]
pub fn cross_entropy_rows<T: Float, A: Float, const BLOCK: usize>(
    logits: Ptr<T>,
    targets: Ptr<i64>,
    losses: PtrMut<A>,
    lse: PtrMut<A>,
    classes: usize,
    ignore_index: i64,
) {
    let row = program_id(0);
    let target = load(targets + row);
    let is_class = (target >= 0) & (target < classes);
    let chosen = load(logits + row * classes + target, mask = is_class) as A;
    let (top, total) = exponentials::<T, A, BLOCK>(logits + row * classes, classes);
    let row_lse = top + log(total);
    let loss = select(is_class, row_lse - chosen, A::NAN);
    store(losses + row, select(target == ignore_index, 0.0, loss));
    store(lse + row, row_lse);
}

/// `loss`, the mean of the losses of the rows that count, and `count`, their number: those whose target is not `ignore_index`. Without such rows, the mean is NaN.
///
/// `losses` and `targets` are `[rows]`; `loss` and `count` have one element. Grid: 1, so that the sum has the same bits in every call.
#[kernel(A = [f32], BLOCK = 1024)]
pub fn mean_of_losses<A: Float, const BLOCK: usize>(
    losses: Ptr<A>,
    targets: Ptr<i64>,
    loss: PtrMut<A>,
    count: PtrMut<A>,
    rows: usize,
    ignore_index: i64,
) {
    let (mut total, mut counted) = (zeros::<A>([BLOCK]), zeros::<i64>([BLOCK]));
    for first in range(0, rows, BLOCK) {
        let row = first + arange(0, BLOCK);
        total += load(losses + row, mask = row < rows);
        counted += select((row < rows) & (load(targets + row, mask = row < rows) != ignore_index), 1, 0);
    }
    let counted = sum(counted) as A;
    store(loss, sum(total) / counted);
    store(count, counted);
}

/// The gradient of the mean of [`cross_entropy_rows`] over `count` rows: `dlogits[i, j] = dloss / count * (exp(logits[i, j] - lse[i]) - 1 if j is the target)`.
///
/// Shapes as of [`cross_entropy_rows`]. Rows whose target is `ignore_index` have the gradient 0; those whose target is no class otherwise NaN.
/// Grid: `[rows, cdiv(classes, BLOCK)]`.
#[kernel(T = [f32, f16, bf16], A = [f32], BLOCK = 1024)]
pub fn cross_entropy_gradients<T: Float, A: Float, const BLOCK: usize>(
    dloss: Ptr<A>,
    logits: Ptr<T>,
    targets: Ptr<i64>,
    lse: Ptr<A>,
    count: Ptr<A>,
    dlogits: PtrMut<T>,
    classes: usize,
    ignore_index: i64,
) {
    let row = program_id(0);
    let class = program_id(1) * BLOCK + arange(0, BLOCK);
    let target = load(targets + row);
    let factor = select((target >= 0) & (target < classes), load(dloss) / load(count), A::NAN);
    let probability = exp(load(logits + row * classes + class, mask = class < classes) as A - load(lse + row));
    let gradient = select(class == target, probability - 1.0, probability) * factor;
    store(dlogits + row * classes + class, select(target == ignore_index, 0.0, gradient) as T, mask = class < classes);
}

/// Layer norm of each row: `y = (x - mean) * rstd * weight + bias`, `rstd = 1 / sqrt(variance + eps)`. With `RMS`, RMS norm: `mean` and `bias` are 0, and neither is accessed.
///
/// `x` and `y` are `[rows, columns]`, `weight` and `bias` `[columns]`, `mean` and `rstd` `[rows]`, for the gradients.
#[kernel(T = [f32, f16, bf16], A = [f32], RMS = [false, true], BLOCK = 1024)]
pub fn norm_rows<T: Float, A: Float, const RMS: bool, const BLOCK: usize>(
    x: Ptr<T>,
    weight: Ptr<T>,
    bias: Ptr<T>,
    y: PtrMut<T>,
    mean: PtrMut<A>,
    rstd: PtrMut<A>,
    columns: usize,
    eps: A,
) {
    let start = program_id(0) * columns;
    let scale = 1.0 / columns as A;
    let mut total = zeros::<A>([BLOCK]);
    if !RMS {
        for first in range(0, columns, BLOCK) {
            let at = first + arange(0, BLOCK);
            total += load(x + start + at, mask = at < columns) as A;
        }
    }
    let row_mean = sum(total) * scale;
    let mut squares = zeros::<A>([BLOCK]);
    for first in range(0, columns, BLOCK) {
        let at = first + arange(0, BLOCK);
        let difference = select(at < columns, load(x + start + at, mask = at < columns) as A - row_mean, 0.0);
        squares += difference * difference;
    }
    let row_rstd = 1.0 / sqrt(sum(squares) * scale + eps);
    if !RMS {
        store(mean + program_id(0), row_mean);
    }
    store(rstd + program_id(0), row_rstd);
    for first in range(0, columns, BLOCK) {
        let at = first + arange(0, BLOCK);
        let v = load(x + start + at, mask = at < columns) as A;
        let scaled = (v - row_mean) * row_rstd * load(weight + at, mask = at < columns) as A;
        let result = if RMS { scaled } else { scaled + load(bias + at, mask = at < columns) as A };
        store(y + start + at, result as T, mask = at < columns);
    }
}

/// The gradient of [`norm_rows`] for `x`: `dx = (g - normal * mean of (g * normal) - mean of g) * rstd`, with `normal = (x - mean) * rstd` and `g = dy * weight`. With `RMS`,
/// `mean` and the mean of `g` are 0.
///
/// Shapes as of [`norm_rows`].
#[kernel(T = [f32, f16, bf16], A = [f32], RMS = [false, true], BLOCK = 1024)]
pub fn norm_gradients<T: Float, A: Float, const RMS: bool, const BLOCK: usize>(
    dy: Ptr<T>,
    x: Ptr<T>,
    weight: Ptr<T>,
    mean: Ptr<A>,
    rstd: Ptr<A>,
    dx: PtrMut<T>,
    columns: usize,
) {
    let start = program_id(0) * columns;
    let scale = 1.0 / columns as A;
    let row_mean = if RMS { 0.0 } else { load(mean + program_id(0)) };
    let row_rstd = load(rstd + program_id(0));
    let (mut products, mut total) = (zeros::<A>([BLOCK]), zeros::<A>([BLOCK]));
    for first in range(0, columns, BLOCK) {
        let at = first + arange(0, BLOCK);
        // Zero behind the end of the row, and so are the products.
        let g = load(dy + start + at, mask = at < columns) as A * load(weight + at, mask = at < columns) as A;
        products += g * (load(x + start + at, mask = at < columns) as A - row_mean) * row_rstd;
        total += g;
    }
    let along = sum(products) * scale;
    let constant = if RMS { 0.0 } else { sum(total) * scale };
    for first in range(0, columns, BLOCK) {
        let at = first + arange(0, BLOCK);
        let g = load(dy + start + at, mask = at < columns) as A * load(weight + at, mask = at < columns) as A;
        let normal = (load(x + start + at, mask = at < columns) as A - row_mean) * row_rstd;
        store(dx + start + at, ((g - normal * along - constant) * row_rstd) as T, mask = at < columns);
    }
}

/// The gradients of [`norm_rows`] for `weight` and `bias` in parts, sums of `dy * normal` and of `dy` over `CHUNK` rows. With `RMS`, only those for `weight`.
///
/// `weight_parts` and `bias_parts` are `[columns, cdiv(rows, CHUNK)]`, as [`sum_of_parts`](crate::kernels::sum_of_parts()) takes them, and other shapes as of [`norm_rows`].
/// Grid: `[cdiv(columns, COLUMNS), cdiv(rows, CHUNK)]`.
#[kernel(T = [f32, f16, bf16], A = [f32], RMS = [false, true], COLUMNS = 64, CHUNK = 256)]
pub fn norm_weight_parts<T: Float, A: Float, const RMS: bool, const COLUMNS: usize, const CHUNK: usize>(
    dy: Ptr<T>,
    x: Ptr<T>,
    mean: Ptr<A>,
    rstd: Ptr<A>,
    weight_parts: PtrMut<A>,
    bias_parts: PtrMut<A>,
    rows: usize,
    columns: usize,
) {
    const ROWS: usize = 16;
    let column = program_id(0) * COLUMNS + arange(0, COLUMNS);
    let begin = program_id(1) * CHUNK;
    let (mut dw, mut db) = (zeros::<A>([ROWS, COLUMNS]), zeros::<A>([ROWS, COLUMNS]));
    for first in range(begin, min(begin + CHUNK, rows), ROWS) {
        let row = first + arange(0, ROWS);
        let at = row.col() * columns + column.row();
        let inside = (row < rows).col() & (column < columns).row();
        let d = load(dy + at, mask = inside) as A;
        let v = load(x + at, mask = inside) as A;
        let row_rstd = load(rstd + row, mask = row < rows).col();
        if RMS {
            dw += d * (v * row_rstd);
        } else {
            dw += d * ((v - load(mean + row, mask = row < rows).col()) * row_rstd);
            db += d;
        }
    }
    let part = column * cdiv(rows, CHUNK) + program_id(1);
    store(weight_parts + part, sum(dw, axis = 0), mask = column < columns);
    if !RMS {
        store(bias_parts + part, sum(db, axis = 0), mask = column < columns);
    }
}
