//! Softmax.

use galatea::prelude::*;

use crate::call::Call;
use crate::{AsTensor, kernels};

/// The softmax of each row: `y[i, j] = exp(x[i, j] - m[i]) / sum over k of exp(x[i, k] - m[i])`, where `m[i]` is the largest element of row `i`.
///
/// `x` has any shape with at least one axis; rows lie along the last axis and have any length. The result has the shape of `x`. Every [`Float`] is
/// accepted, computed in `f32` and rounded once. Special values are those of the kernel [`softmax`](kernels::softmax()): a row with NaN or `+inf`
/// becomes NaN, and so does a row of nothing but `-inf`.
///
/// # Errors
/// [`Error::ArgumentShape`] if `x` has no axis, or an error of an allocation or a launch.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let x = Device::cpu().tensor_from(&[0.0f32, 0.0, 1.0, 1.0], [2, 2])?;
/// let y = kernel_library::softmax(&x)?;
/// assert_eq!((y.shape(), y.to_vec()?), (&[2, 2][..], vec![0.5; 4]));
/// # Ok(())
/// # }
/// ```
pub fn softmax<T: Float>(x: &impl AsTensor<T>) -> Result<Tensor<T>> {
    let x = x.as_tensor();
    let call = Call::new("softmax", "x", &x);
    let rows = call.rows(&x, usize::MAX)?;
    let mut y = call.empty(x.shape())?;
    if !x.is_empty() {
        kernels::softmax(x, &mut y, rows.columns).grid(|_| rows.rows).launch()?;
    }
    Ok(y)
}
