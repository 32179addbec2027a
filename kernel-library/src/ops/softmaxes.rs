//! The softmax of the last axis, and its logarithm.

use galatea::op;
use galatea::ops::{Any, Tensor};
use galatea::prelude::*;

use super::Rows;
use crate::kernels;

/// The softmax along the last axis: `exp(x - m) / sum of exp(x - m)`, `m` the largest element. A row with NaN or `+inf`, or of nothing but `-inf`, becomes NaN.
///
/// # Errors
/// [`Error::Dim`] for a tensor without axes, and those of a launch.
#[op("galatea::softmax", backward(out) = backward::<false>)]
pub fn softmax(x: &Tensor) -> Result<Tensor> {
    rows::<false>(x)
}

/// The logarithm of the [`softmax()`], which has digits where the softmax is nearly 0.
///
/// # Errors
/// As [`softmax()`].
#[op("galatea::log_softmax", backward(out) = backward::<true>)]
pub fn log_softmax(x: &Tensor) -> Result<Tensor> {
    rows::<true>(x)
}

fn rows<const LOG: bool>(x: &Tensor) -> Result<Tensor> {
    let Rows { rows, columns, .. } = Rows::of(x)?;
    let mut y = x.empty_like()?;
    with_wide!(x.dtype(), A => kernels::softmax_rows::<Any, A, LOG, 1024>(x, &mut y, &columns).grid(rows).launch())?;
    Ok(y)
}

fn backward<const LOG: bool>(grad: &Tensor, out: &Tensor) -> Result<Tensor> {
    let Rows { rows, columns, .. } = Rows::of(out)?;
    let mut dx = out.empty_like()?;
    with_wide!(out.dtype(), A => kernels::softmax_gradients::<Any, A, LOG, 1024>(grad, out, &mut dx, &columns).grid(rows).launch())?;
    Ok(dx)
}
