//! Products of matrices, by the tensor cores.

use super::{Value, only_in_a_kernel};

/// The product of two matrices: `a` is `[M, K]`, `b` is `[K, N]`, and the result is `[M, N]`. It is added to `acc`, a tile of the result's type, if that is given:
/// `dot(a, b, acc = total)`, or `dot(a, b, total)`. With an axis in front, `[BATCH, M, K]` and `[BATCH, K, N]`, it is as many products, `[BATCH, M, N]`.
///
/// | `a` and `b` | result | products and sums | least `M`, `N`, `K` |
/// |---|---|---|---|
/// | `f16` | `f32`, or `f16` with `acc_type = f16` | exact products; sums of `f32`, or rounded to `f16` after each instruction | 9, 5, 9 |
/// | `bf16` | `f32` | exact products, sums of `f32` | 9, 5, 9 |
/// | `f32` | `f32` | fused multiply-adds: each addition of a product rounds once | 1, 1, 1 |
/// | `f32`, `precision = "tf32"` | `f32` | both operands are rounded to 10 bits of fraction; exact products, sums of `f32` | 9, 5, 5 |
/// | `f32`, `precision = "tf32x3"` | `f32` | three products of `tf32`; each product of `f32` is right to 2^-21 of itself | 9, 5, 5 |
/// | `f64` | `f64` | fused multiply-adds | 9, 5, 5 |
/// | `i8` or `u8`, also mixed | `i32` | exact; sums wrap | 9, 5, 17 |
/// | `f8e4m3` or `f8e5m2`, also mixed | `f32` | exact products, sums of `f32`; on Hopper GPUs with about 14 bits | 9, 5, 17 |
///
/// - The least extents are for an instruction, which computes 16 x 8 sums. Extents are ideally powers of two.
/// - The order of the additions is unspecified, also within an instruction, so results differ between the CPU and GPUs by the rounding of sums. Only sums of integers are
///   the same everywhere. Tensor cores truncate a sum of `f32` where the CPU rounds it to nearest.
/// - `f32` without `precision` is `"ieee"`: no bit of an operand is dropped unless the kernel says so. It takes the time of ordinary arithmetic, and both operands go
///   through shared memory.
/// - `tf32` rounds to the nearest number; which one of two that are equally near is unspecified. A number above 2^128 - 2^116 rounds to an infinity, also in `tf32x3`. A signalling NaN may count as
///   an infinity.
/// - `tf32x3` writes each operand as the sum of a large and a small `tf32`, and leaves out the products of two small ones. It takes three matrix instructions in place
///   of one. The CPU computes it as `"ieee"`.
/// - `precision = "ieee"` may be said of every type, for functions of any type.
/// - Hopper's warpgroup products of 8-bit floats keep about 14 bits of the largest term of a sum.
/// - GPUs without matrix instructions of 8-bit floats convert them to `f16`, which has all their values. Hopper's `mma.sync` does the same.
/// - There are no sums of `bf16`, none of `f16` for other types than `f16`, and no products of other integers.
///
/// `total += dot(a, b)` adds to the accumulators of the tensor cores, as `acc = total` does. A matrix that is stored with its rows as columns is loaded so, or
/// exchanged by [`trans`](super::trans).
///
/// ```ignore
/// let (rows, columns, k) = (arange(0, 16).col(), arange(0, 16).row(), arange(0, 32));
/// let mut total = zeros::<f32>([16, 16]);
/// for first in range(0, n, 32) {
///     let left = load(x + rows * n + first + k.row(), mask = first + k.row() < n);
///     let right = load(x + columns * n + first + k.col(), mask = first + k.col() < n);
///     total += dot(left as bf16, right as bf16);
/// }
/// let scores = dot(left, right, precision = if FAST { "tf32" } else { "ieee" });
/// ```
pub fn dot<A, B, S>(a: Value<A>, b: Value<B>, acc: Option<Value<S>>, precision: Option<&str>, acc_type: Option<S>) -> Value<S> {
    only_in_a_kernel()
}
