//! Cumulative sums.

use galatea::prelude::*;

use crate::call::Call;
use crate::{AsTensor, kernels};

/// The cumulative sum of each row: `y[i, j]` is the sum of `x[i, k]` for `k` from 0 to `j`.
///
/// `x` has any shape with at least one axis; rows lie along the last axis and have any length. The result has the shape of `x`. Every [`Float`] is
/// accepted, added up in `f32`; each sum is rounded once.
///
/// # Errors
/// [`Error::ArgumentShape`] if `x` has no axis, or an error of an allocation or a launch.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let x = Device::cpu().tensor_from(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])?;
/// assert_eq!(kernel_library::row_cumsum(&x)?.to_vec()?, [1.0, 3.0, 6.0, 4.0, 9.0, 15.0]);
/// # Ok(())
/// # }
/// ```
pub fn row_cumsum<T: Float>(x: &impl AsTensor<T>) -> Result<Tensor<T>> {
    let x = x.as_tensor();
    let call = Call::new("row_cumsum", "x", &x);
    let rows = call.rows(&x, usize::MAX)?;
    let mut y = call.empty(x.shape())?;
    if !x.is_empty() {
        kernels::row_cumsum(x, &mut y, rows.columns).grid(|_| rows.rows).launch()?;
    }
    Ok(y)
}
