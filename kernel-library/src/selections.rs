//! The largest elements of rows and their columns, and histograms.

use galatea::MAX_RANK;
use galatea::prelude::*;

use crate::call::Call;
use crate::{AsTensor, kernels, stages};

/// The elements of a block of the kernel `bin_counts`, one of those that are compiled with this crate.
const BLOCK_SIZE: usize = 1024;

/// The largest elements of each row, returned by [`row_topk()`]. Both shapes are that of the input, with `K` as the last extent.
#[derive(Debug)]
pub struct TopK<T: Element> {
    /// The elements, the largest first.
    pub values: Tensor<T>,
    /// Their columns; -1 where a row has fewer than `K` elements.
    pub indices: Tensor<i64>,
}

/// The column of the largest element of each row; of equal elements the first.
///
/// `x` has any shape with at least one axis; rows lie along the last axis and have any length above 0. The result has the shape of `x` without its last
/// axis. `f32`, `f16` and `bf16` are accepted. NaN counts as `-inf`; a row of nothing else gives 0.
/// Few long rows are reduced in two launches, see [Reductions](crate#reductions).
///
/// # Errors
/// [`Error::ArgumentShape`] if `x` has no axis, or rows without elements; [`Error::Compile`] for `f64`; or an error of an allocation or a launch.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let x = Device::cpu().tensor_from(&[1.0f32, 7.0, 7.0, -4.0, f32::NAN, -5.0], [2, 3])?;
/// assert_eq!(kernel_library::row_argmax(&x)?.to_vec()?, [1, 0]);
/// # Ok(())
/// # }
/// ```
pub fn row_argmax<T: Float>(x: &impl AsTensor<T>) -> Result<Tensor<i64>> {
    let x = x.as_tensor();
    let call = Call::new("row_argmax", "x", &x);
    let rows = call.rows(&x, usize::MAX)?;
    if rows.columns == 0 && rows.rows > 0 {
        let expected = "at least one column is expected: a row without elements has no largest element".to_owned();
        return Err(call.wrong_shape("x", &x, expected, "leave out the call for such a tensor".to_owned()));
    }
    stages::argmax_of_rows(&call, x, rows.rows, rows.columns, rows.leading)
}

/// The `K` largest elements of each row, the largest first, and their columns; of equal elements the first comes first.
///
/// `x` has any shape with at least one axis; rows lie along the last axis. Both results have the shape of `x`, with `K` in place of the last extent. `K`
/// is from 1 to 256, which is checked when the call is compiled. Code for 8 and 64 is built with this crate, code for another `K` at its first launch; a
/// power of two is fastest. `f32`, `f16` and `bf16` are accepted. NaN is beyond the infinity of its sign, and -0.0 is less than 0.0. Where a row has
/// fewer than `K` elements, the rest is `-inf` at column -1.
///
/// # Errors
/// [`Error::ArgumentShape`] if `x` has no axis, or rows of 2^32 elements; [`Error::Compile`] for `f64`; or an error of an allocation or a launch.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let x = Device::cpu().tensor_from(&[1.0f32, 9.0, 3.0, 9.0, 5.0], [1, 5])?;
/// let top = kernel_library::row_topk::<_, 3>(&x)?;
/// assert_eq!((top.values.to_vec()?, top.indices.to_vec()?), (vec![9.0, 9.0, 5.0], vec![1, 3, 4]));
/// assert_eq!(top.values.shape(), [1, 3]);
/// # Ok(())
/// # }
/// ```
pub fn row_topk<T: Float, const K: usize>(x: &impl AsTensor<T>) -> Result<TopK<T>> {
    const { assert!(K >= 1 && K <= 256, "`row_topk` finds 1 to 256 elements of a row") };
    let x = x.as_tensor();
    let call = Call::new("row_topk", "x", &x);
    // The kernel keeps a column in 32 bits.
    let rows = call.rows(&x, u32::MAX as usize)?;
    let mut shape = [K; MAX_RANK];
    shape[..rows.leading.len()].copy_from_slice(rows.leading);
    let shape = &shape[..=rows.leading.len()];
    let mut top = TopK { values: call.empty(shape)?, indices: call.empty(shape)? };
    if !top.values.is_empty() {
        kernels::row_topk::<T, K>(x, &mut top.values, &mut top.indices, rows.columns).grid(|_| rows.rows).launch()?;
    }
    Ok(top)
}

/// A histogram: how many elements lie in each of `BINS` equal parts of `low..=high`.
///
/// `x` has any shape; the result is `[BINS]`. Every [`Float`] is accepted. The part of an element is `(x - low) * (BINS / (high - low))`, computed in
/// `f32`; `high` itself is in the last part. NaN, and elements outside `low..=high`, are not counted. Code for 64 and 256 parts is built with this crate,
/// code for another number at its first launch.
///
/// # Errors
/// [`Error::ArgumentValue`] if `high` is not greater than `low`, or their difference is not finite; or an error of an allocation or a launch.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let x = Device::cpu().tensor(&[0.1f32, 0.9, 0.3, 1.0, 2.0])?;
/// assert_eq!(kernel_library::bin_counts::<_, 4>(&x, 0.0, 1.0)?.to_vec()?, [1, 1, 0, 2]);
/// # Ok(())
/// # }
/// ```
pub fn bin_counts<T: Float, const BINS: usize>(x: &impl AsTensor<T>, low: f32, high: f32) -> Result<Tensor<i32>> {
    const { assert!(BINS >= 1, "`bin_counts` counts at least one part") };
    let x = x.as_tensor();
    let call = Call::new("bin_counts", "x", &x);
    let finite = "a finite number is expected";
    call.expect_value("low", low, low.is_finite(), finite, "pass the smallest number to count")?;
    call.expect_value("high", high, high.is_finite(), finite, "pass the largest number to count")?;
    call.expect_value(
        "high",
        high,
        high > low,
        format_args!("a number above `low` is expected, which is {low:?}"),
        "pass the smaller number first",
    )?;
    let width = "a finite difference to `low` is expected";
    call.expect_value("high", high, (high - low).is_finite(), width, "count in a narrower range")?;
    let mut counts = call.zeros(&[BINS])?;
    if !x.is_empty() {
        let programs = cdiv(x.len(), BLOCK_SIZE).min(4 * call.device().multiprocessors());
        kernels::bin_counts::<T, BINS, BLOCK_SIZE>(x, &mut counts, x.len(), low, high).grid(programs).launch()?;
    }
    Ok(counts)
}
