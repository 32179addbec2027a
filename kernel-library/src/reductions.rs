//! Sums and maxima of rows, of columns and of all elements.

use galatea::prelude::*;

use crate::call::Call;
use crate::{AsTensor, kernels};

/// The rows that one program sums, at least, before a second kernel sums the results of several programs.
const ROWS_OF_A_GROUP: usize = 256;
/// The columns of the widest block of the kernel `column_sum`.
const COLUMNS_OF_A_BLOCK: usize = 128;
/// The elements that one program sums, at least, before a second kernel sums the results of several programs.
const ELEMENTS_OF_A_GROUP: usize = 16_384;

/// The sum of each row: `y[i]` is the sum of `x[i, j]` over all `j`.
///
/// `x` has any shape with at least one axis; rows lie along the last axis and have any length. The result has the shape of `x` without its last axis.
/// Every [`Float`] is accepted, added up in `f32` and rounded once. The sum of a row without elements is 0.
///
/// # Errors
/// [`Error::ArgumentShape`] if `x` has no axis, or an error of an allocation or a launch.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let x = Device::cpu().tensor_from(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])?;
/// assert_eq!(kernel_library::row_sum(&x)?.to_vec()?, [6.0, 15.0]);
/// # Ok(())
/// # }
/// ```
pub fn row_sum<T: Float>(x: &impl AsTensor<T>) -> Result<Tensor<T>> {
    let x = x.as_tensor();
    let call = Call::new("row_sum", "x", &x);
    let rows = call.rows(&x, usize::MAX)?;
    if x.is_empty() {
        return call.zeros(rows.leading);
    }
    let mut y = call.empty(rows.leading)?;
    kernels::row_sum(x, &mut y, rows.columns).grid(|_| rows.rows).launch()?;
    Ok(y)
}

/// The largest element of each row. NaN counts as `-inf`.
///
/// `x` has any shape with at least one axis; rows lie along the last axis and have any length. The result has the shape of `x` without its last axis.
/// `f32`, `f16` and `bf16` are accepted. The largest element of a row without elements is `-inf`.
///
/// # Errors
/// [`Error::ArgumentShape`] if `x` has no axis, [`Error::Compile`] for `f64`, or an error of an allocation or a launch.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let x = Device::cpu().tensor_from(&[1.0f32, 7.0, 3.0, -4.0, f32::NAN, -6.0], [2, 3])?;
/// assert_eq!(kernel_library::row_max(&x)?.to_vec()?, [7.0, -4.0]);
/// # Ok(())
/// # }
/// ```
pub fn row_max<T: Float>(x: &impl AsTensor<T>) -> Result<Tensor<T>> {
    let x = x.as_tensor();
    let call = Call::new("row_max", "x", &x);
    let rows = call.rows(&x, usize::MAX)?;
    let mut y = call.empty(rows.leading)?;
    if !y.is_empty() {
        kernels::row_max(x, &mut y, rows.columns).grid(|_| rows.rows).launch()?;
    }
    Ok(y)
}

/// The sum of each column over all rows: `y[j]` is the sum of `x[i, j]` over all `i`.
///
/// `x` has any shape with at least one axis; rows lie along the last axis, so all other axes are summed. The result has one element for each column.
/// Every [`Float`] is accepted, added up in `f32` and rounded once. Sums of no rows are 0. A matrix of many rows and few columns is summed in two
/// launches, through scratch memory of at most 1/256 of its rows. The result is the same in every call on one device.
///
/// # Errors
/// [`Error::ArgumentShape`] if `x` has no axis, or an error of an allocation or a launch.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let x = Device::cpu().tensor_from(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [3, 2])?;
/// assert_eq!(kernel_library::column_sum(&x)?.to_vec()?, [9.0, 12.0]);
/// # Ok(())
/// # }
/// ```
pub fn column_sum<T: Float>(x: &impl AsTensor<T>) -> Result<Tensor<T>> {
    let x = x.as_tensor();
    let call = Call::new("column_sum", "x", &x);
    let rows = call.rows(&x, usize::MAX)?;
    let (rows, columns) = (rows.rows, rows.columns);
    if x.is_empty() {
        return call.zeros(&[columns]);
    }
    // With fewer blocks of columns than multiprocessors, groups of rows occupy the others.
    let programs = cdiv(columns, COLUMNS_OF_A_BLOCK);
    let groups = cdiv(2 * call.device().multiprocessors(), programs).min(rows / ROWS_OF_A_GROUP);
    if groups < 2 {
        return sum_of_columns(&call, x, rows, columns);
    }
    let mut parts = call.empty::<f32>(&[groups, columns])?;
    kernels::column_sum(x, &mut parts, rows, columns).grid(|config| (cdiv(columns, config.BLOCK_SIZE), groups)).launch()?;
    sum_of_columns(&call, parts.view(), groups, columns)
}

/// The sums of the columns of a matrix that has elements, in one launch.
pub(crate) fn sum_of_columns<S: Float, T: Float>(call: &Call<'_>, x: TensorView<'_, S>, rows: usize, columns: usize) -> Result<Tensor<T>> {
    let mut y = call.empty(&[columns])?;
    kernels::column_sum(x, &mut y, rows, columns).grid(|config| cdiv(columns, config.BLOCK_SIZE)).launch()?;
    Ok(y)
}

/// The sum of all elements, which the kernel [`block_sum`](kernels::block_sum()) computes.
///
/// `x` has any shape; the result has no axes and one element. Every [`Float`] is accepted, added up in `f32` and rounded once. The sum of no elements is
/// 0. More than 32,768 elements are summed in two launches, without atomics: the result is the same in every call on one device.
///
/// # Errors
/// An error of an allocation or a launch.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let x = Device::cpu().full([100, 1000], 1.0f32)?;
/// let total = kernel_library::sum(&x)?;
/// assert_eq!((total.shape(), total.to_vec()?), (&[][..], vec![100_000.0]));
/// # Ok(())
/// # }
/// ```
pub fn sum<T: Float>(x: &impl AsTensor<T>) -> Result<Tensor<T>> {
    let x = x.as_tensor();
    let call = Call::new("sum", "x", &x);
    if x.is_empty() {
        return call.zeros(&[]);
    }
    let mut y = call.empty(&[])?;
    let groups = (x.len() / ELEMENTS_OF_A_GROUP).min(4 * call.device().multiprocessors());
    if groups < 2 {
        kernels::block_sum(x, &mut y, x.len()).grid(|_| 1).launch()?;
        return Ok(y);
    }
    let mut parts = call.empty::<f32>(&[groups])?;
    kernels::block_sum(x, &mut parts, x.len()).grid(|_| groups).launch()?;
    kernels::block_sum(&parts, &mut y, groups).grid(|_| 1).launch()?;
    Ok(y)
}
