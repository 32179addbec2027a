//! Losses: the mean cross entropy, and the mean square of differences.

use galatea::ops::{Any, Tensor};
use galatea::prelude::*;
use galatea::{Dtype, op};

use super::broadcast::sum_of_all;
use super::{Rows, wide};
use crate::kernels;

/// The mean cross entropy of rows of logits: `lse - logits[target]`, `lse` the logarithm of the sum of the exponentials of a row.
///
/// `logits` are `[.., classes]`, and `targets` are `[..]` of `i64`. The result has no axes, and is `f32`, or `f64` for `f64` logits. Rows whose target is `ignore_index` (-100
/// elsewhere) do not count; if none counts, the result is NaN, and so it is if a target is no class otherwise.
///
/// # Errors
/// [`OpsError::Dims`](galatea::ops::OpsError::Dims) and [`OpsError::OpDtype`](galatea::ops::OpsError::OpDtype) for targets that do not fit, [`Error::Dim`] for logits
/// without axes, and those of a launch.
///
/// ```
/// # use galatea::ops::Tensor;
/// # use galatea::prelude::*;
/// # use kernel_library::ops;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let logits = Tensor::from(device.tensor_from(&[1.0f32, 1.0, 1.0, 1.0, 0.0, 9.0, 0.0, 0.0], [2, 4])?);
/// let targets = Tensor::from(device.tensor(&[2i64, -100])?);
/// let loss = ops::cross_entropy(&logits, &targets, -100)?;
/// assert!((loss.to_vec::<f32>()?[0] - 4f32.ln()).abs() < 1e-6);
/// # Ok(())
/// # }
/// ```
#[op("galatea::cross_entropy")]
pub fn cross_entropy(logits: &Tensor, targets: &Tensor, ignore_index: i64) -> Result<Tensor> {
    Ok(cross_entropy_forward(logits, targets, ignore_index)?.0)
}

/// [`cross_entropy()`] with what its gradient needs: the loss, `lse` of each row, and the number of rows that count. Only the loss has a gradient.
///
/// # Errors
/// As [`cross_entropy()`].
#[op("galatea::cross_entropy_forward", backward(logits, targets, ignore_index, out1, out2) = cross_entropy_backward)]
pub fn cross_entropy_forward(logits: &Tensor, targets: &Tensor, ignore_index: i64) -> Result<(Tensor, Tensor, Tensor)> {
    const OP: &str = "galatea::cross_entropy";
    let Rows { leading, rows, columns: classes } = Rows::of(logits)?;
    targets.expect_dims(OP, "targets", &*leading)?;
    targets.expect_dtype(OP, "targets", Dtype::I64)?;
    let dtype = wide(logits.dtype());
    let [mut losses, mut lse] = [logits.new_empty(dtype, [&rows])?, logits.new_empty(dtype, [&rows])?];
    let [mut loss, mut count] = [logits.new_empty(dtype, [0i64; 0])?, logits.new_empty(dtype, [0i64; 0])?];
    with_wide!(dtype, A => {
        kernels::cross_entropy_rows::<Any, A, 1024>(logits, targets, &mut losses, &mut lse, &classes, ignore_index).grid(&rows).launch()?;
        kernels::mean_of_losses::<A, 1024>(&losses, targets, &mut loss, &mut count, &rows, ignore_index).grid(1).launch()
    })?;
    Ok((loss, lse, count))
}

#[allow(clippy::too_many_arguments, reason = "a gradient for each of three results, and what was kept")]
fn cross_entropy_backward(
    grad: &Tensor,
    _: &Tensor,
    _: &Tensor,
    logits: &Tensor,
    targets: &Tensor,
    ignore_index: i64,
    lse: &Tensor,
    count: &Tensor,
) -> Result<(Tensor, Option<Tensor>)> {
    let Rows { rows, columns: classes, .. } = Rows::of(logits)?;
    let mut dlogits = logits.empty_like()?;
    with_wide!(logits.dtype(), A => {
        kernels::cross_entropy_gradients::<Any, A, 1024>(grad, logits, targets, lse, count, &mut dlogits, &classes, ignore_index)
            .grid((rows, classes.cdiv(1024)))
            .launch()
    })?;
    Ok((dlogits, None))
}

/// The mean of `(x - y)^2`, a tensor without axes: `f32`, or `f64` for `f64`. `x` and `y` have the same extents and dtype. NaN for no elements.
///
/// # Errors
/// [`OpsError::Dims`](galatea::ops::OpsError::Dims) and [`OpsError::OpDtype`](galatea::ops::OpsError::OpDtype) for tensors that do not fit, and those of a launch.
#[op("galatea::mse_loss", backward(x, y) = mse_backward)]
pub fn mse_loss(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    const OP: &str = "galatea::mse_loss";
    y.expect_dims(OP, "y", x.dims())?;
    y.expect_dtype(OP, "y", x.dtype())?;
    sum_of_all::<true>(x, y, &x.numel(), wide(x.dtype()))
}

fn mse_backward(grad: &Tensor, x: &Tensor, y: &Tensor) -> Result<(Tensor, Tensor)> {
    let gradient = |of: &Tensor, other: &Tensor| {
        let (n, mut dx) = (of.numel(), of.empty_like()?);
        with_wide!(of.dtype(), A => {
            kernels::difference_gradients::<Any, A, 1024>(grad, of, other, &mut dx, &n).grid(n.cdiv(1024)).launch()
        })?;
        Ok::<_, Error>(dx)
    };
    Ok((gradient(x, y)?, gradient(y, x)?))
}
