//! Products of matrices by the tensor cores: device functions with an epilogue of your own, and the tuned kernels that `matmul` and `Matmul` launch.
//!
//! # Layouts
//!
//! `a` is `[rows, inner]`, or `[inner, rows]` with `TRANSPOSED_A`; `b` is `[inner, columns]`, or `[columns, inner]` with `TRANSPOSED_B`; `y` is `[rows, columns]`.
//! `a_stride`, `b_stride` and `y_stride` are the distances between rows in memory, in elements. Elements of a row are neighbours.
//!
//! A Hopper GPU copies operands by its tensor memory accelerator if their addresses and strides are multiples of 16 bytes. Other launches are correct, and slower.

use galatea::prelude::*;

use crate::tiling;

/// The sums of a block: `a * b` in `f32` for the rows `row`, a tile of one column, and the columns `column`, a tile of one row.
///
/// `BLOCK` is the part of `inner` that an iteration loads. See the kernel [`matmul()`] for the other arguments, and [`product_sums`] for operands of other types.
#[device]
pub fn matmul_sums<
    T: Float,
    const TRANSPOSED_A: bool,
    const TRANSPOSED_B: bool,
    const ROWS: usize,
    const COLUMNS: usize,
    const BLOCK: usize,
>(
    a: Ptr<T>,
    b: Ptr<T>,
    row: Value<usize>,
    column: Value<usize>,
    rows: usize,
    columns: usize,
    inner: usize,
    a_stride: usize,
    b_stride: usize,
) -> Value<f32> {
    product_sums::<T, T, f32, false, TRANSPOSED_A, TRANSPOSED_B, ROWS, COLUMNS, BLOCK>(
        a, b, row, column, rows, columns, inner, a_stride, b_stride,
    )
}

/// As [`matmul_sums`], of operands of the types `A` and `B`, with sums of the type `S`. `TF32` is for operands of `f32`: they are rounded to `tf32`.
#[device]
pub fn product_sums<
    A: Element,
    B: Element,
    S: Number,
    const TF32: bool,
    const TRANSPOSED_A: bool,
    const TRANSPOSED_B: bool,
    const ROWS: usize,
    const COLUMNS: usize,
    const BLOCK: usize,
>(
    a: Ptr<A>,
    b: Ptr<B>,
    row: Value<usize>,
    column: Value<usize>,
    rows: usize,
    columns: usize,
    inner: usize,
    a_stride: usize,
    b_stride: usize,
) -> Value<S> {
    let mut total = zeros::<S>([ROWS, COLUMNS]);
    for first in range(0, inner, BLOCK) {
        let k = first + arange(0, BLOCK);
        let (across, down) = (k.row(), k.col());
        let at = if TRANSPOSED_A { across * a_stride + row } else { row * a_stride + across };
        let left = load(a + at, mask = (row < rows) & (across < inner));
        let at = if TRANSPOSED_B { column * b_stride + down } else { down * b_stride + column };
        let right = load(b + at, mask = (column < columns) & (down < inner));
        total += dot(left, right, acc_type = S, precision = if TF32 { "tf32" } else { "ieee" });
    }
    total
}

/// The block of a program: `y = epilogue(a * b, row, column)`, where the closure takes and returns tiles of `f32`, and `row` and `column` are the indices of
/// their elements. The result is rounded once.
///
/// Grid: `[cdiv(rows, ROWS), cdiv(columns, COLUMNS)]`. A kernel that calls this function has the speed of [`matmul()`]: an epilogue adds no launch, and no pass
/// over memory.
///
/// ```
/// use galatea::prelude::*;
/// use kernel_library::kernels::matmul_block;
///
/// /// `y = tanh(a * b + row - column)`
/// #[kernel(num_warps = 4)]
/// fn product(a: Ptr<f16>, b: Ptr<f16>, y: PtrMut<f32>, rows: usize, columns: usize, inner: usize) {
///     matmul_block::<f16, f32, false, false, 64, 64, 64>(a, b, y, rows, columns, inner, inner, columns, columns, |sum, row, column| {
///         tanh(sum + (row - column) as f32)
///     });
/// }
///
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let (a, b) = (device.full([3, 5], f16::from_f32(0.5))?, device.full([5, 2], f16::from_f32(-0.5))?);
/// let mut y = device.zeros::<f32>([3, 2])?;
/// product(&a, &b, &mut y, 3, 2, 5).grid((cdiv(3, 64), cdiv(2, 64))).launch()?;
/// assert!((y.to_vec()?[4] - (-1.25f32 + 2.0).tanh()).abs() < 1e-6);
/// # Ok(())
/// # }
/// ```
#[device]
pub fn matmul_block<
    T: Float,
    O: Float,
    const TRANSPOSED_A: bool,
    const TRANSPOSED_B: bool,
    const ROWS: usize,
    const COLUMNS: usize,
    const BLOCK: usize,
>(
    a: Ptr<T>,
    b: Ptr<T>,
    y: PtrMut<O>,
    rows: usize,
    columns: usize,
    inner: usize,
    a_stride: usize,
    b_stride: usize,
    y_stride: usize,
    epilogue: impl Fn(Value<f32>, Value<usize>, Value<usize>) -> Value<f32>,
) {
    product_block::<T, T, f32, O, false, TRANSPOSED_A, TRANSPOSED_B, ROWS, COLUMNS, BLOCK>(
        a, b, y, rows, columns, inner, a_stride, b_stride, y_stride, epilogue,
    );
}

/// As [`matmul_block`], of operands of the types `A` and `B`, with sums of the type `S`. The closure takes the sums as `f32`. `TF32` is for operands of `f32`: they are
/// rounded to `tf32`.
#[device]
pub fn product_block<
    A: Element,
    B: Element,
    S: Number,
    O: Float,
    const TF32: bool,
    const TRANSPOSED_A: bool,
    const TRANSPOSED_B: bool,
    const ROWS: usize,
    const COLUMNS: usize,
    const BLOCK: usize,
>(
    a: Ptr<A>,
    b: Ptr<B>,
    y: PtrMut<O>,
    rows: usize,
    columns: usize,
    inner: usize,
    a_stride: usize,
    b_stride: usize,
    y_stride: usize,
    epilogue: impl Fn(Value<f32>, Value<usize>, Value<usize>) -> Value<f32>,
) {
    let row = (program_id(0) * ROWS + arange(0, ROWS)).col();
    let column = (program_id(1) * COLUMNS + arange(0, COLUMNS)).row();
    let total = product_sums::<A, B, S, TF32, TRANSPOSED_A, TRANSPOSED_B, ROWS, COLUMNS, BLOCK>(
        a, b, row, column, rows, columns, inner, a_stride, b_stride,
    );
    store(y + row * y_stride + column, epilogue(total as f32, row, column) as O, mask = (row < rows) & (column < columns));
}

/// The activation with a number: 0 for `x`, 1 for `max(x, 0)`, 2 for `x * sigmoid(x)`, 3 for `x / 2 * (1 + erf(x / sqrt(2)))`.
#[device]
fn activated<const ACTIVATION: usize>(x: Value<f32>) -> Value<f32> {
    match ACTIVATION {
        0 => x,
        1 => select(x <= 0.0, 0.0, x),
        2 => x * sigmoid(x),
        _ => 0.5 * x * (1.0 + erf(x * 0.707_106_77)),
    }
}

/// `y = activation(scale * a * b + bias) + residual`, for each of `batches` products of matrices.
///
/// | | |
/// |---|---|
/// | `a`, `b`, `y` | see the layouts of this module; `a_batch`, `b_batch` and `y_batch` are the distances between the matrices of a batch, 0 for one matrix |
/// | `bias` | `biased` is 0 for none, 1 for an element for each column, 2 for an element for each row |
/// | `residual` | with `has_residual`, of the size of `y`, without distances between rows |
/// | `activation` | 0 for none, 1 for `max(x, 0)`, 2 for `x * sigmoid(x)`, 3 for `x / 2 * (1 + erf(x / sqrt(2)))` |
///
/// A tensor that is not read may be any. `T` is `f16`, `bf16` or `f32`; operands of `f32` are rounded to `tf32`, and their blocks have `BLOCK / 2` elements of `inner`. Grid:
/// `(cdiv(rows, ROWS), cdiv(columns, COLUMNS), batches)`. Products are exact, sums and the epilogue are `f32`, and each result is rounded once.
///
/// Tuning times the four tiles for which the cost model of [`tiling`](crate::tiling) expects the least time. Numbers of rows with the same next power of two
/// share a configuration. Heuristics make constants of the layouts and of the epilogue, so each of them is compiled at its first launch.
#[autotune(
    configs = [
        Config { ROWS: 64, COLUMNS: 64, BLOCK: 64, num_warps: 4 },
        Config { ROWS: 16, COLUMNS: 128, BLOCK: 64, num_warps: 4 },
        Config { ROWS: 16, COLUMNS: 64, BLOCK: 128, num_warps: 4 },
        Config { ROWS: 16, COLUMNS: 256, BLOCK: 64, num_warps: 8 },
        Config { ROWS: 32, COLUMNS: 128, BLOCK: 64, num_warps: 4 },
        Config { ROWS: 64, COLUMNS: 32, BLOCK: 64, num_warps: 4 },
        Config { ROWS: 64, COLUMNS: 128, BLOCK: 64, num_warps: 4 },
        Config { ROWS: 128, COLUMNS: 64, BLOCK: 64, num_warps: 8 },
        Config { ROWS: 64, COLUMNS: 256, BLOCK: 64, num_warps: 4 },
        Config { ROWS: 128, COLUMNS: 128, BLOCK: 64, num_warps: 8 },
        Config { ROWS: 256, COLUMNS: 128, BLOCK: 64, num_warps: 8 },
        Config { ROWS: 128, COLUMNS: 256, BLOCK: 64, num_warps: 8 },
    ],
    key = [bucket(rows), columns, inner, bucket(batches), transposed_a, transposed_b, biased, activation, has_residual],
    prune = top_k(4, |config| {
        tiling::cost_in_bucket([config.ROWS, config.COLUMNS, config.BLOCK], config.num_warps, [rows, columns, inner], batches)
    }),
    heuristics(
        TRANSPOSED_A = transposed_a,
        TRANSPOSED_B = transposed_b,
        BATCHED = batches > 1,
        BIAS = biased,
        ACTIVATION = activation,
        RESIDUAL = has_residual,
    ),
)]
#[kernel(do_not_specialize)]
#[allow(unused_variables, reason = "heuristics read arguments that the body does not")]
pub fn matmul<
    T: Float,
    O: Float,
    const TRANSPOSED_A: bool,
    const TRANSPOSED_B: bool,
    const BATCHED: bool,
    const BIAS: usize,
    const ACTIVATION: usize,
    const RESIDUAL: bool,
    const ROWS: usize,
    const COLUMNS: usize,
    const BLOCK: usize,
>(
    a: Ptr<T>,
    b: Ptr<T>,
    bias: Ptr<T>,
    residual: Ptr<T>,
    y: PtrMut<O>,
    rows: usize,
    columns: usize,
    inner: usize,
    a_stride: usize,
    b_stride: usize,
    y_stride: usize,
    batches: usize,
    a_batch: usize,
    b_batch: usize,
    y_batch: usize,
    transposed_a: bool,
    transposed_b: bool,
    biased: usize,
    activation: usize,
    has_residual: bool,
    scale: f32,
) {
    let batch = if BATCHED { program_id(2) } else { 0 };
    let residual = residual + batch * rows * columns;
    let epilogue = |sum, row, column| {
        let scaled = sum * scale;
        let shifted = match BIAS {
            0 => scaled,
            1 => scaled + load(bias + column, mask = column < columns) as f32,
            _ => scaled + load(bias + row, mask = row < rows) as f32,
        };
        let result = activated::<ACTIVATION>(shifted);
        if RESIDUAL { result + load(residual + row * columns + column, mask = (row < rows) & (column < columns)) as f32 } else { result }
    };
    let (a, b, y) = (a + batch * a_batch, b + batch * b_batch, y + batch * y_batch);
    if T == f32 {
        product_block::<T, T, f32, O, true, TRANSPOSED_A, TRANSPOSED_B, ROWS, COLUMNS, { BLOCK / 2 }>(
            a, b, y, rows, columns, inner, a_stride, b_stride, y_stride, epilogue,
        );
    } else {
        matmul_block::<T, O, TRANSPOSED_A, TRANSPOSED_B, ROWS, COLUMNS, BLOCK>(
            a, b, y, rows, columns, inner, a_stride, b_stride, y_stride, epilogue,
        );
    }
}

/// `y = activation(a * b * a_scale * b_scale + bias) + residual` of 8-bit floats, or of 8-bit integers, for each of `batches` products of matrices.
///
/// | | |
/// |---|---|
/// | `a`, `b`, `y` | see the layouts of this module; `a_batch`, `b_batch` and `y_batch` are the distances between the matrices of a batch, 0 for one matrix |
/// | `a_scales` | with `is_scaled`, a factor for each row, at a distance of `a_step`: 1, or 0 for one factor for all |
/// | `b_scales` | with `is_scaled`, a factor for each column, at a distance of `b_step`: 1, or 0 for one factor for all |
/// | `bias` | with `is_biased`, an element for each column |
/// | `residual` | with `has_residual`, of the size of `y`, without distances between rows |
/// | `activation` | as of [`matmul()`] |
///
/// A tensor that is not read may be any. `A` and `B` are of `f8e4m3` and `f8e5m2`, or of `i8` and `u8`. Blocks have `2 * BLOCK` elements of `inner`. Grid: `(cdiv(rows, ROWS),
/// cdiv(columns, COLUMNS), batches)`. Products are exact; sums of floats are `f32`, with the [precision](galatea::dsl::dot) of the matrix instruction, and those of
/// integers are `i32`, which wrap. The epilogue is `f32`, and each result is rounded once. Tuning is that of [`matmul()`].
#[autotune(
    configs = [
        Config { ROWS: 64, COLUMNS: 64, BLOCK: 64, num_warps: 4 },
        Config { ROWS: 16, COLUMNS: 128, BLOCK: 64, num_warps: 4 },
        Config { ROWS: 16, COLUMNS: 64, BLOCK: 128, num_warps: 4 },
        Config { ROWS: 32, COLUMNS: 128, BLOCK: 64, num_warps: 4 },
        Config { ROWS: 64, COLUMNS: 128, BLOCK: 64, num_warps: 4 },
        Config { ROWS: 128, COLUMNS: 64, BLOCK: 64, num_warps: 8 },
        Config { ROWS: 64, COLUMNS: 256, BLOCK: 64, num_warps: 4 },
        Config { ROWS: 128, COLUMNS: 128, BLOCK: 64, num_warps: 8 },
        Config { ROWS: 256, COLUMNS: 128, BLOCK: 64, num_warps: 8 },
        Config { ROWS: 128, COLUMNS: 256, BLOCK: 64, num_warps: 8 },
    ],
    key = [bucket(rows), columns, inner, bucket(batches), transposed_a, transposed_b, is_scaled, is_biased, activation, has_residual],
    // A block has the bytes of one of 16-bit floats, of which there are half as many.
    prune = top_k(4, |config| {
        tiling::cost_in_bucket([config.ROWS, config.COLUMNS, config.BLOCK], config.num_warps, [rows, columns, inner.div_ceil(2)], batches)
    }),
    heuristics(
        TRANSPOSED_A = transposed_a,
        TRANSPOSED_B = transposed_b,
        BATCHED = batches > 1,
        SCALED = is_scaled,
        BIASED = is_biased,
        ACTIVATION = activation,
        RESIDUAL = has_residual,
    ),
)]
#[kernel(do_not_specialize)]
#[allow(unused_variables, reason = "heuristics read arguments that the body does not")]
pub fn matmul_scaled<
    A: Element,
    B: Element,
    O: Float,
    const TRANSPOSED_A: bool,
    const TRANSPOSED_B: bool,
    const BATCHED: bool,
    const SCALED: bool,
    const BIASED: bool,
    const ACTIVATION: usize,
    const RESIDUAL: bool,
    const ROWS: usize,
    const COLUMNS: usize,
    const BLOCK: usize,
>(
    a: Ptr<A>,
    b: Ptr<B>,
    a_scales: Ptr<f32>,
    b_scales: Ptr<f32>,
    bias: Ptr<O>,
    residual: Ptr<O>,
    y: PtrMut<O>,
    rows: usize,
    columns: usize,
    inner: usize,
    a_stride: usize,
    b_stride: usize,
    y_stride: usize,
    batches: usize,
    a_batch: usize,
    b_batch: usize,
    y_batch: usize,
    a_step: usize,
    b_step: usize,
    transposed_a: bool,
    transposed_b: bool,
    is_scaled: bool,
    is_biased: bool,
    activation: usize,
    has_residual: bool,
) {
    let batch = if BATCHED { program_id(2) } else { 0 };
    let residual = residual + batch * rows * columns;
    let epilogue = |sum, row, column| {
        let scaled = if SCALED {
            sum * (load(a_scales + row * a_step, mask = row < rows) * load(b_scales + column * b_step, mask = column < columns))
        } else {
            sum
        };
        let shifted = if BIASED { scaled + load(bias + column, mask = column < columns) as f32 } else { scaled };
        let result = activated::<ACTIVATION>(shifted);
        if RESIDUAL { result + load(residual + row * columns + column, mask = (row < rows) & (column < columns)) as f32 } else { result }
    };
    let (a, b, y) = (a + batch * a_batch, b + batch * b_batch, y + batch * y_batch);
    if A == i8 || A == u8 {
        product_block::<A, B, i32, O, false, TRANSPOSED_A, TRANSPOSED_B, ROWS, COLUMNS, { 2 * BLOCK }>(
            a, b, y, rows, columns, inner, a_stride, b_stride, y_stride, epilogue,
        );
    } else {
        product_block::<A, B, f32, O, false, TRANSPOSED_A, TRANSPOSED_B, ROWS, COLUMNS, { 2 * BLOCK }>(
            a, b, y, rows, columns, inner, a_stride, b_stride, y_stride, epilogue,
        );
    }
}

/// `y = activation(scale * a * gate) * (scale * a * up)`: both products in one loop, which reads `a` once.
///
/// `gate` and `up` have the layout of `b`, see this module. `activation` is that of [`matmul()`]. Grid: `(cdiv(rows, ROWS), cdiv(columns, COLUMNS))`. Products are exact, sums are
/// `f32`, and each result is rounded once. The kernel is compiled at its first launch.
// A thread has the accumulators of both products, so no tile has more than half of the elements of the largest of `matmul`, and those of 4 warps have a quarter.
#[autotune(
    configs = [
        Config { ROWS: 64, COLUMNS: 64, BLOCK: 64, num_warps: 4 },
        Config { ROWS: 16, COLUMNS: 128, BLOCK: 64, num_warps: 4 },
        Config { ROWS: 32, COLUMNS: 128, BLOCK: 64, num_warps: 4 },
        Config { ROWS: 128, COLUMNS: 64, BLOCK: 64, num_warps: 8 },
        Config { ROWS: 128, COLUMNS: 128, BLOCK: 64, num_warps: 8 },
    ],
    key = [bucket(rows), columns, inner, transposed_a, transposed_b, activation],
    // The two products are one with twice the columns.
    prune = top_k(3, |config| tiling::cost_in_bucket(
        [config.ROWS, config.COLUMNS * 2, config.BLOCK],
        config.num_warps,
        [rows, columns.saturating_mul(2), inner],
        1
    )),
    heuristics(TRANSPOSED_A = transposed_a, TRANSPOSED_B = transposed_b, ACTIVATION = activation),
)]
#[kernel(do_not_specialize)]
#[allow(unused_variables, reason = "heuristics read arguments that the body does not")]
pub fn matmul_gated<
    T: Float,
    O: Float,
    const TRANSPOSED_A: bool,
    const TRANSPOSED_B: bool,
    const ACTIVATION: usize,
    const ROWS: usize,
    const COLUMNS: usize,
    const BLOCK: usize,
>(
    a: Ptr<T>,
    gate: Ptr<T>,
    up: Ptr<T>,
    y: PtrMut<O>,
    rows: usize,
    columns: usize,
    inner: usize,
    a_stride: usize,
    b_stride: usize,
    y_stride: usize,
    transposed_a: bool,
    transposed_b: bool,
    activation: usize,
    scale: f32,
) {
    let row = (program_id(0) * ROWS + arange(0, ROWS)).col();
    let column = (program_id(1) * COLUMNS + arange(0, COLUMNS)).row();
    let mut gates = zeros::<f32>([ROWS, COLUMNS]);
    let mut ups = zeros::<f32>([ROWS, COLUMNS]);
    for first in range(0, inner, BLOCK) {
        let k = first + arange(0, BLOCK);
        let (across, down) = (k.row(), k.col());
        let at = if TRANSPOSED_A { across * a_stride + row } else { row * a_stride + across };
        let left = load(a + at, mask = (row < rows) & (across < inner));
        let at = if TRANSPOSED_B { column * b_stride + down } else { down * b_stride + column };
        let mask = (column < columns) & (down < inner);
        gates += dot(left, load(gate + at, mask = mask));
        ups += dot(left, load(up + at, mask = mask));
    }
    let result = activated::<ACTIVATION>(gates * scale) * (ups * scale);
    store(y + row * y_stride + column, result as O, mask = (row < rows) & (column < columns));
}

/// `y = a * b` in tiles that the launch names, for graphs and packages, which contain the code of each configuration.
///
/// See the layouts of this module; rows follow each other without a distance. Grid: `[cdiv(rows, ROWS), cdiv(columns, COLUMNS)]`. Products are exact, sums are `f32`, and each
/// result is rounded once.
#[kernel(T = [f16, bf16], TRANSPOSED_A = [false, true], TRANSPOSED_B = false, ROWS = 64, COLUMNS = 64, BLOCK = 64)]
pub fn matmul_in_tiles<
    T: Float,
    const TRANSPOSED_A: bool,
    const TRANSPOSED_B: bool,
    const ROWS: usize,
    const COLUMNS: usize,
    const BLOCK: usize,
>(
    a: Ptr<T>,
    b: Ptr<T>,
    y: PtrMut<T>,
    rows: usize,
    columns: usize,
    inner: usize,
) {
    let a_stride = if TRANSPOSED_A { rows } else { inner };
    let b_stride = if TRANSPOSED_B { inner } else { columns };
    matmul_block::<T, T, TRANSPOSED_A, TRANSPOSED_B, ROWS, COLUMNS, BLOCK>(
        a,
        b,
        y,
        rows,
        columns,
        inner,
        a_stride,
        b_stride,
        columns,
        |sum, _row, _column| sum,
    );
}

/// Copies rows of two matrices into a workspace in which rows begin at multiples of 16 bytes. Elements behind the rows are 0.
///
/// `a` has rows of `a_columns` elements, and `a_padded`, a multiple of `16 / size_of::<T>()`, is the distance of its rows in the workspace. They take the first `a_len`
/// elements of `a_out`; those of `b` the first `b_len` elements of `b_out`. Grid: `cdiv(a_len, BLOCK) + cdiv(b_len, BLOCK)`.
#[kernel(T = [f16, bf16], BLOCK = 2048)]
pub fn padded_rows<T: Number, const BLOCK: usize>(
    a: Ptr<T>,
    b: Ptr<T>,
    a_out: PtrMut<T>,
    b_out: PtrMut<T>,
    a_columns: usize,
    a_padded: usize,
    a_len: usize,
    b_columns: usize,
    b_padded: usize,
    b_len: usize,
) {
    let (program, of_a) = (program_id(0), cdiv(a_len, BLOCK));
    if program < of_a {
        let at = program * BLOCK + arange(0, BLOCK);
        let column = at % a_padded;
        let mask = (at < a_len) & (column < a_columns);
        store(a_out + at, load(a + at / a_padded * a_columns + column, mask = mask), mask = at < a_len);
    } else {
        let at = (program - of_a) * BLOCK + arange(0, BLOCK);
        let column = at % b_padded;
        let mask = (at < b_len) & (column < b_columns);
        store(b_out + at, load(b + at / b_padded * b_columns + column, mask = mask), mask = at < b_len);
    }
}
