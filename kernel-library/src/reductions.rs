//! Sums and maxima of rows, of columns and of all elements.

use galatea::prelude::*;

use crate::AsTensor;
use crate::call::Call;
use crate::stages::{self, Matrices};

/// The sum of each row: `y[i]` is the sum of `x[i, j]` over all `j`.
///
/// `x` has any shape with at least one axis; rows lie along the last axis and have any length. The result has the shape of `x` without its last axis.
/// Every [`Float`] is accepted, added up in `f32` and rounded once. The sum of a row without elements is 0. Few long rows are summed in two launches, see
/// [Reductions](crate#reductions). The result is the same in every call on one device.
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
    stages::sum_of_rows(&call, x, rows.rows, rows.columns, rows.leading)
}

/// The largest element of each row. NaN counts as `-inf`.
///
/// `x` has any shape with at least one axis; rows lie along the last axis and have any length. The result has the shape of `x` without its last axis.
/// `f32`, `f16` and `bf16` are accepted. The largest element of a row without elements is `-inf`. Few long rows are reduced in two launches, see
/// [Reductions](crate#reductions).
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
    stages::max_of_rows(&call, x, rows.rows, rows.columns, rows.leading)
}

/// The sum of each column over all rows: `y[j]` is the sum of `x[i, j]` over all `i`.
///
/// `x` has any shape with at least one axis; rows lie along the last axis, so all other axes are summed. The result has one element for each column.
/// Every [`Float`] is accepted, added up in `f32` and rounded once. Sums of no rows are 0. A matrix of many rows and few columns is summed in two
/// launches, see [Reductions](crate#reductions). The result is the same in every call on one device.
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
    let columns = rows.columns;
    stages::sum_of_columns(&call, x, Matrices { matrices: 1, rows: rows.rows, columns }, &[columns])
}

/// The sum of all elements, which the kernel [`block_sum`](crate::kernels::block_sum()) computes.
///
/// `x` has any shape; the result has no axes and one element. Every [`Float`] is accepted, added up in `f32` and rounded once. The sum of no elements is
/// 0. From 32,768 elements on, the sum takes two launches, see [Reductions](crate#reductions). The result is the same in every call on one device.
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
    stages::sum_of_blocks(&call, x, 1, x.len(), &[])
}
