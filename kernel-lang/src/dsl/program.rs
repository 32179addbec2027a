//! Where a program stands in the grid, and counting.

use super::{Value, only_in_a_kernel};

/// The index of this program along an axis of the grid, as `i64`.
///
/// `axis` is a literal 0, 1 or 2. The grid is what `.grid(..)` of the launch says: program 0 up to `num_programs(axis) - 1`.
///
/// ```ignore
/// let first = program_id(0) * N;
/// let offsets = first + arange(0, N);
/// ```
pub fn program_id(axis: u32) -> Value<i64> {
    only_in_a_kernel()
}

/// How many programs the grid has along an axis, as `i64`.
///
/// `axis` is a literal 0, 1 or 2.
///
/// ```ignore
/// let mut block = program_id(0);
/// while block < cdiv(n, N) {
///     let offsets = block * N + arange(0, N);
///     store(y + offsets, load(x + offsets), mask = offsets < n);
///     block += num_programs(0);
/// }
/// ```
pub fn num_programs(axis: u32) -> Value<i64> {
    only_in_a_kernel()
}

/// `[start, start + 1, .., end - 1]` as a tile of `i64`.
///
/// Both bounds are constants; `end - start` is at least 1 and at most 2^20. `arange(0, 96)` takes the registers of `arange(0, 128)`.
///
/// ```ignore
/// let offsets = program_id(0) * N + arange(0, N);
/// ```
pub fn arange(start: i64, end: i64) -> Value<i64> {
    only_in_a_kernel()
}

/// The quotient of two integers, rounded up: of scalars, tiles or constants.
///
/// `cdiv(7, 2)` is 4, `cdiv(-7, 2)` is -3. It does not overflow where the result fits. As `a / 0` is 0 with the remainder `a`, `cdiv(a, 0)`
/// is 1 for positive `a`.
///
/// ```ignore
/// let blocks = cdiv(n, N);
/// ```
pub fn cdiv<T>(a: Value<T>, b: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The compute capability that this copy of the kernel is compiled for, times ten: 80 for `sm_80`, 90 for `sm_90a`; 0 on the CPU. A constant.
///
/// An `if` on it keeps one branch, so that the other may use what only another device is good at. The same PTX runs on newer devices: on one of
/// compute capability 12.0 this is 80, the newest that it can run.
///
/// ```ignore
/// let rows = if target() >= 90 { 8 } else { 4 };
/// ```
pub fn target() -> i64 {
    only_in_a_kernel()
}

/// Says that a condition holds, of a tile for every element: `bool`. It is computed nowhere, but the compiler may count on it in what follows.
///
/// Behind `assume(n >= 64)`, `n == 0` is false and `n > 32` true; behind `assume(n % 16 == 0)`, `n % 4` is 0; an `if` on what is known keeps one
/// branch. Only what is said of scalars is used so far. A `.checked()` launch computes the condition instead, and one that does not hold is an
/// error that names the line, as of `device_assert!`. Where it does not hold in another launch, results are unspecified, but no access leaves its tensor,
/// unless the kernel is `unchecked`.
///
/// ```ignore
/// assume(n > 0);
/// assume((n % 8 == 0) & (program_id(0) < 1024));
/// ```
pub fn assume(cond: Value<bool>) {
    only_in_a_kernel()
}

/// `x`, of which the caller says that it is a multiple of `factor`: `assume(x % factor == 0)`, and all that holds of [`assume`]. Of integers,
/// scalars or tiles.
///
/// ```ignore
/// let n = multiple_of(n, 16);
/// ```
pub fn multiple_of<I>(x: Value<I>, factor: Value<I>) -> Value<I> {
    only_in_a_kernel()
}

/// The tile that a program computes, in an order in which programs that run together share rows and columns of their inputs.
///
/// Programs are numbered `i * columns + j` over a matrix of `rows` by `columns` tiles. The result is the tile `(row, column)` for this
/// number when tiles are taken in groups of `group` rows, each group column by column; the last group may have fewer rows. Every tile is
/// taken once. As in Triton; all are integers, scalars or tiles.
///
/// ```ignore
/// let (row, column) = swizzle2d(program_id(0), program_id(1), num_programs(0), num_programs(1), 8);
/// ```
pub fn swizzle2d<I>(i: Value<I>, j: Value<I>, rows: Value<I>, columns: Value<I>, group: Value<I>) -> (Value<I>, Value<I>) {
    only_in_a_kernel()
}

/// The indices of a `for` loop: `start`, `start + step`, .. below `end`. `a..b` and `(a..b).step_by(s)` say the same.
///
/// The bounds are integer scalars of one type, at run time or constant; `step` is positive, 1 if it is left out. Nothing runs where `end` is not
/// above `start`, or a step that is known at run time only is not positive.
///
/// * `num_stages = N`, a constant from 1 to 16: so many turns are under way at once. While one computes, the tiles that the next `N - 1` load are
///   on their way, as with Triton's `tl.range`; what a loop computes does not change. A load runs ahead if its address and its mask follow from
///   the index and from what stands before the loop, and if the loop does not write to that tensor. Where tiles are full and aligned they wait in
///   `N` buffers in shared memory, copied there asynchronously; others take registers, `N - 1` times. More shared memory than a GPU has is an
///   error; where another GPU has less, fewer turns run ahead.
///   1 loads nothing ahead. Without it a loop that contains no other has as many as keep the buffers within 96 bytes a thread, with which a
///   multiprocessor is still full of threads, and at most the `num_stages` of `#[kernel]`: three where it loads a tile of 1024 `f32` with 4
///   warps, none where it loads two.
/// * `unroll = K`, a constant from 1 to 64: `K` turns stand behind one another, so that their loads are under way together, in registers, and the
///   loop's own instructions count once for all. The turns that are left over run one by one.
///
/// Neither is for a loop that `break` or `return` leaves. On the CPU they have no effect.
///
/// A loop over tiles needs no care: where masks and bounds grow with the index, the turns whose tiles are full run without masks, by accesses of
/// 16 bytes, and those left over, a row's end say, as they stand.
///
/// ```ignore
/// let mut sum = zeros::<f32>([N]);
/// for k in range(0, n, N, num_stages = 3) {
///     let offsets = k + arange(0, N);
///     sum += load(x + offsets, mask = offsets < n);
/// }
/// ```
pub fn range(start: i64, end: i64, step: i64, num_stages: Option<usize>, unroll: Option<usize>) -> std::ops::Range<i64> {
    only_in_a_kernel()
}

/// The indices of a loop that is written out: its body stands in the kernel once for each index, which is a constant in it.
///
/// The bounds are constants; `step` is positive, 1 if it is left out. A body is repeated at most 4096 times, and neither `break` nor `return` leaves
/// it. Where the bounds name constant parameters, a variable that the body assigns to keeps its type, as in any loop.
///
/// ```ignore
/// let mut power = v;
/// for i in static_range(0, 3) {
///     store(y + i * N + arange(0, N), power);
///     power *= v;
/// }
/// ```
pub fn static_range(start: i64, end: i64, step: i64) -> std::ops::Range<i64> {
    only_in_a_kernel()
}
