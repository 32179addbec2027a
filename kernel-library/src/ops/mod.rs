//! Functions of [`ops::Tensor`](galatea::ops::Tensor), for models: their dtype is a run-time value, and a recording shows each call as one line.
//!
//! ```
//! # use galatea::ops::Tensor;
//! # use galatea::prelude::*;
//! use kernel_library::ops;
//!
//! # fn main() -> galatea::Result<()> {
//! let device = Device::cpu();
//! let x = Tensor::from(device.tensor_from(&[1.0f32, 2.0, 3.0], [1, 3])?);
//! let weight = Tensor::from(device.tensor_from(&[1.0f32, 0.0, 0.0, 0.5, 0.5, 0.5], [2, 3])?);
//! let bias = Tensor::from(device.tensor(&[0.0f32, -3.0])?);
//! let y = ops::linear(&x, &weight, Some(&bias))?;
//! assert_eq!(y.to_vec::<f32>()?, [1.0, 0.0]);
//! assert_eq!(ops::linear::DEF.schema, "galatea::linear(Tensor x, Tensor weight, Tensor? bias) -> Tensor");
//! # Ok(())
//! # }
//! ```

use galatea::ops::{Any, Tensor};
use galatea::prelude::*;
use galatea::{Dim, op};

use crate::kernels;

/// `x * weightᵀ + bias`, for each row of `x`.
///
/// `x` is `[.., inner]`, `weight` is `[columns, inner]`, `bias` is `[columns]`, and the result is `[.., columns]`. All have one dtype: `f32`, `f16`, `bf16` or `f64`.
/// Sums are `f32`, and each result is rounded once.
///
/// # Errors
/// [`OpsError::Dims`](galatea::ops::OpsError::Dims) for tensors whose extents do not fit, and those of a launch.
#[op("galatea::linear", flops = |x, weight, _| x.numel() * weight.dim(0) * 2)]
pub fn linear(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    let (columns, inner) = (weight.dim(0), x.dim(-1));
    let mut dims = x.dims();
    let Some(last) = dims.last_mut() else { return x.expect_dims("galatea::linear", "x", [weight.dim(1)]).map(|()| x.clone()) };
    last.clone_from(&columns);
    weight.expect_dims("galatea::linear", "weight", [&columns, &inner])?;
    if let Some(bias) = bias {
        bias.expect_dims("galatea::linear", "bias", [&columns])?;
    }
    let rows = x.dims().iter().rev().skip(1).fold(Dim::from(1), |product, dim| product * dim);
    let mut y = x.new_empty(x.dtype(), &*dims)?;
    let biased = if bias.is_some() { columns.clone() } else { Dim::from(0) };
    kernels::linear::<Any, 4, 32, 64>(x, weight, bias.unwrap_or(weight), &mut y, &rows, &columns, &inner, &biased)
        .grid((rows.cdiv(4), columns.cdiv(32)))
        .launch()?;
    Ok(y)
}

/// SiLU: `x / (1 + exp(-x))`, elementwise. The result has the dtype and the extents of `x`. Computed in `f32` and rounded once.
///
/// # Errors
/// Those of a launch.
#[op("galatea::silu")]
pub fn silu(x: &Tensor) -> Result<Tensor> {
    let (n, mut y) = (x.numel(), x.empty_like()?);
    kernels::silu::<Any, 1024>(x, &mut y, &n).grid(n.cdiv(1024)).launch()?;
    Ok(y)
}
