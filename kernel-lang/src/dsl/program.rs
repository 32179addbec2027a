//! Program ids, ranges, loops over indices, and hints for the compiler.

use super::{Value, only_in_a_kernel};

/// The index of this program along an axis of the grid, as `i64`.
///
/// `axis` is a literal 0, 1 or 2. The launch sets the grid with `.grid(..)`: indices run from 0 to `num_programs(axis) - 1`.
///
/// ```ignore
/// let first = program_id(0) * N;
/// let offsets = first + arange(0, N);
/// ```
pub fn program_id(axis: u32) -> Value<i64> {
    only_in_a_kernel()
}

/// The number of programs along an axis of the grid, as `i64`.
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

/// The quotient of two integers (scalars, tiles or constants), rounded up.
///
/// `cdiv(7, 2)` is 4, `cdiv(-7, 2)` is -3. It does not overflow if the result fits. Since `a / 0` is 0 with remainder `a`, `cdiv(a, 0)` is 1
/// for positive `a`.
///
/// ```ignore
/// let blocks = cdiv(n, N);
/// ```
pub fn cdiv<T>(a: Value<T>, b: Value<T>) -> Value<T> {
    only_in_a_kernel()
}

/// The compute capability of the target that this copy of the kernel is compiled for, times ten: 80 for `sm_80`, 90 for `sm_90a`; 0 on the
/// CPU. A constant.
///
/// An `if` on it keeps one branch, so that the other branch may use features of another device. The same PTX runs on newer devices: on
/// compute capability 12.0 the value is 80, the newest target that the device can run.
///
/// ```ignore
/// let rows = if target() >= 90 { 8 } else { 4 };
/// ```
pub fn target() -> i64 {
    only_in_a_kernel()
}

/// States that a `bool` condition holds, for a tile for every element. The condition is not computed; the compiler may use it in the code
/// that follows.
///
/// After `assume(n >= 64)`, `n == 0` is false and `n > 32` is true; after `assume(n % 16 == 0)`, `n % 4` is 0. An `if` on a known condition
/// keeps one branch. So far the compiler uses only conditions on scalars.
///
/// A `.checked()` launch evaluates the condition and fails if it is false, with an error that names the line, as for `device_assert!`. In
/// other launches a false condition makes the results unspecified, but no access leaves its tensor, unless the kernel is `unchecked`.
///
/// ```ignore
/// assume(n > 0);
/// assume((n % 8 == 0) & (program_id(0) < 1024));
/// ```
pub fn assume(cond: Value<bool>) {
    only_in_a_kernel()
}

/// Returns `x` and states that it is a multiple of `factor`: `assume(x % factor == 0)`, with the rules of [`assume`]. `x` is an integer
/// scalar or tile.
///
/// ```ignore
/// let n = multiple_of(n, 16);
/// ```
pub fn multiple_of<I>(x: Value<I>, factor: Value<I>) -> Value<I> {
    only_in_a_kernel()
}

/// Maps a program to a tile in an order in which concurrent programs share rows and columns of their inputs.
///
/// Programs are numbered `i * columns + j` over a matrix of `rows` by `columns` tiles. The result is the tile `(row, column)` for this number
/// when tiles are taken in groups of `group` rows, each group column by column; the last group may have fewer rows. Every tile is taken once.
/// As in Triton. All arguments are integers, scalars or tiles.
///
/// ```ignore
/// let (row, column) = swizzle2d(program_id(0), program_id(1), num_programs(0), num_programs(1), 8);
/// ```
pub fn swizzle2d<I>(i: Value<I>, j: Value<I>, rows: Value<I>, columns: Value<I>, group: Value<I>) -> (Value<I>, Value<I>) {
    only_in_a_kernel()
}

/// The indices of a `for` loop: `start`, `start + step`, .. below `end`. `a..b` and `(a..b).step_by(s)` are equivalent.
///
/// The bounds are integer scalars of one type, constant or computed at run time. `step` is positive, 1 by default. The loop does not run if
/// `end` is not above `start`, or if a run-time step is not positive.
///
/// * `num_stages = N`, a constant from 1 to 16: software pipelining with `N` iterations in flight, as with Triton's `tl.range`. While one
///   iteration computes, the loads of the next `N - 1` are in flight; the results of the loop do not change. `num_stages = 1` prefetches
///   nothing.
///   - A load is prefetched if its address and mask depend only on the index and on values from before the loop, and if the loop does not
///     write to that tensor.
///   - Full, aligned tiles are copied asynchronously into `N` buffers in shared memory; other tiles take registers, `N - 1` times.
///   - Using more shared memory than a GPU has is an error; on a GPU with less shared memory, fewer iterations are prefetched.
///   - Without `num_stages`, an innermost loop has as many stages as keep the buffers within 112 bytes per thread, which still allows full
///     occupancy, and at most the `num_stages` of `#[kernel]`, 8 by default: seven if it loads one tile of 512 `f32` with 4 warps, three if it
///     loads one of 1024, no prefetching if it loads two of those. If it loads operands of a `dot`, all threads share their buffers, and it has two to four stages.
/// * `unroll = K`, a constant from 1 to 64: `K` iterations are unrolled, so that their loads are in flight together, in registers, and the
///   loop's own instructions execute once for all of them. Left-over iterations run one by one. Without `unroll` and `num_stages`, a short loop
///   whose iterations load less than 2 KiB, or 4 KiB from loaded indices, is unrolled up to four times, unless its threads exchange elements.
///
/// Neither option is allowed for a loop that `break` or `return` leaves. On the CPU they have no effect.
///
/// Loops over tiles need no manual splitting. If masks and bounds grow with the index, iterations with full tiles run without masks and with
/// 16-byte accesses; the others, such as the end of a row, run with their masks.
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

/// The indices of a loop that is unrolled completely: its body is compiled once for each index, which is a constant in the body.
///
/// The bounds are constants; `step` is positive, 1 by default. The body is repeated at most 4096 times; `break` and `return` cannot leave it.
/// If the bounds name constant parameters, a variable that the body assigns to keeps its type, as in any loop.
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
