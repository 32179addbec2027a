//! Layer norm and RMS norm of the last axis.

use galatea::op;
use galatea::ops::{Any, Tensor};
use galatea::prelude::*;

use super::broadcast::sum_of_parts;
use super::{Rows, wide};
use crate::kernels;

/// The rows of which a program sums the gradients of weights.
const CHUNK: usize = 256;

/// Layer norm along the last axis: `(x - mean) * rstd * weight + bias`, with `rstd = 1 / sqrt(variance + eps)`. The variance is divided by the number of elements.
///
/// `x` is `[.., columns]`, `weight` and `bias` are `[columns]`, and the result has the extents of `x`, all of one dtype.
///
/// # Errors
/// [`OpsError::Dims`](galatea::ops::OpsError::Dims) and [`OpsError::OpDtype`](galatea::ops::OpsError::OpDtype) for tensors that do not fit, [`Error::Dim`] for a tensor
/// without axes, and those of a launch.
#[op("galatea::layer_norm")]
pub fn layer_norm(x: &Tensor, weight: &Tensor, bias: &Tensor, eps: f64) -> Result<Tensor> {
    Ok(layer_norm_forward(x, weight, bias, eps)?.0)
}

/// [`layer_norm()`] with what its gradients need: the result, and the mean and `rstd` of each row. Only the result has gradients.
///
/// # Errors
/// As [`layer_norm()`].
#[op("galatea::layer_norm_forward", backward(x, weight, out1, out2) = layer_norm_backward)]
pub fn layer_norm_forward(x: &Tensor, weight: &Tensor, bias: &Tensor, eps: f64) -> Result<(Tensor, Tensor, Tensor)> {
    const OP: &str = "galatea::layer_norm";
    bias.expect_dims(OP, "bias", [x.dim(-1)])?;
    bias.expect_dtype(OP, "bias", x.dtype())?;
    forward::<false>(OP, x, weight, bias, eps)
}

fn layer_norm_backward(
    grad: &Tensor,
    _: &Tensor,
    _: &Tensor,
    x: &Tensor,
    weight: &Tensor,
    mean: &Tensor,
    rstd: &Tensor,
) -> Result<(Tensor, Tensor, Tensor)> {
    backward::<false>(grad, x, weight, mean, rstd)
}

/// RMS norm along the last axis: `x * rstd * weight`, with `rstd = 1 / sqrt(mean of squares + eps)`.
///
/// `x` is `[.., columns]`, `weight` is `[columns]`, and the result has the extents of `x`, all of one dtype.
///
/// # Errors
/// As [`layer_norm()`].
#[op("galatea::rms_norm")]
pub fn rms_norm(x: &Tensor, weight: &Tensor, eps: f64) -> Result<Tensor> {
    Ok(rms_norm_forward(x, weight, eps)?.0)
}

/// [`rms_norm()`] with what its gradients need: the result, and `rstd` of each row. Only the result has gradients.
///
/// # Errors
/// As [`layer_norm()`].
#[op("galatea::rms_norm_forward", backward(x, weight, out1) = rms_norm_backward)]
pub fn rms_norm_forward(x: &Tensor, weight: &Tensor, eps: f64) -> Result<(Tensor, Tensor)> {
    let (y, _, rstd) = forward::<true>("galatea::rms_norm", x, weight, weight, eps)?;
    Ok((y, rstd))
}

fn rms_norm_backward(grad: &Tensor, _: &Tensor, x: &Tensor, weight: &Tensor, rstd: &Tensor) -> Result<(Tensor, Tensor)> {
    let (dx, dweight, _) = backward::<true>(grad, x, weight, rstd, rstd)?;
    Ok((dx, dweight))
}

/// The result, and the mean and `rstd` of each row; with `RMS` there are no means, and `bias` is not read.
fn forward<const RMS: bool>(op: &'static str, x: &Tensor, weight: &Tensor, bias: &Tensor, eps: f64) -> Result<(Tensor, Tensor, Tensor)> {
    let Rows { rows, columns, .. } = Rows::of(x)?;
    weight.expect_dims(op, "weight", [&columns])?;
    weight.expect_dtype(op, "weight", x.dtype())?;
    if !(eps.is_finite() && eps >= 0.0) {
        let (value, expected) = (eps.to_string(), "a finite number of at least 0 is expected".to_owned());
        return Err(Error::ArgumentValue { function: op, argument: "eps", value, expected, help: "a usual value is 1e-5" });
    }
    let means = if RMS { 0.into() } else { rows.clone() };
    let mut y = x.empty_like()?;
    let [mut mean, mut rstd] = [x.new_empty(wide(x.dtype()), [means])?, x.new_empty(wide(x.dtype()), [&rows])?];
    with_wide!(x.dtype(), A => {
        kernels::norm_rows::<Any, A, RMS, 1024>(x, weight, bias, &mut y, &mut mean, &mut rstd, &columns, eps as A).grid(rows).launch()
    })?;
    Ok((y, mean, rstd))
}

/// The gradients of `x`, `weight` and `bias`; with `RMS` the last one is empty.
fn backward<const RMS: bool>(grad: &Tensor, x: &Tensor, weight: &Tensor, mean: &Tensor, rstd: &Tensor) -> Result<(Tensor, Tensor, Tensor)> {
    let Rows { rows, columns, .. } = Rows::of(x)?;
    let mut dx = x.empty_like()?;
    with_wide!(x.dtype(), A => {
        kernels::norm_gradients::<Any, A, RMS, 1024>(grad, x, weight, mean, rstd, &mut dx, &columns).grid(&rows).launch()
    })?;
    let (groups, biases) = (rows.cdiv(CHUNK), if RMS { 0.into() } else { columns.clone() });
    let mut weight_parts = x.new_empty(wide(x.dtype()), [&columns, &groups])?;
    let mut bias_parts = x.new_empty(wide(x.dtype()), [&biases, &groups])?;
    with_wide!(x.dtype(), A => {
        kernels::norm_weight_parts::<Any, A, RMS, 64, CHUNK>(grad, x, mean, rstd, &mut weight_parts, &mut bias_parts, &rows, &columns)
            .grid((columns.cdiv(64), &groups))
            .launch()
    })?;
    let sum = |parts: &Tensor, outputs| sum_of_parts(parts, outputs, &groups, &1.into(), x.dtype());
    Ok((dx, sum(&weight_parts, &columns)?, sum(&bias_parts, &biases)?))
}
