//! Functions of [`ops::Tensor`](galatea::ops::Tensor), for models: their dtype is a run-time value, a recording shows each call as one line, and they have gradients.
//!
//! ```
//! # use galatea::ops::Tensor;
//! # use galatea::prelude::*;
//! use kernel_library::ops;
//!
//! # fn main() -> galatea::Result<()> {
//! let device = Device::cpu();
//! let x = Tensor::from(device.tensor_from(&[1.0f32, 2.0, 3.0], [1, 3])?);
//! let weight = Tensor::from(device.tensor_from(&[1.0f32, 0.0, 0.0, 0.5, 0.5, 0.5], [2, 3])?).requires_grad()?;
//! let bias = Tensor::from(device.tensor(&[0.0f32, -3.0])?);
//! let y = ops::linear(&x, &weight, Some(&bias))?;
//! assert_eq!(y.to_vec::<f32>()?, [1.0, 0.0]);
//! assert_eq!(ops::linear::DEF.schema, "galatea::linear(Tensor x, Tensor weight, Tensor? bias) -> Tensor");
//!
//! let gradients = ops::sum(&y)?.backward()?;
//! assert_eq!(gradients.get(&weight).unwrap().to_vec::<f32>()?, [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
//! # Ok(())
//! # }
//! ```
//!
//! | | |
//! |---|---|
//! | products | [`linear()`], [`matmul()`] |
//! | elementwise, of two tensors that broadcast | [`add()`], [`sub()`], [`mul()`], [`div()`] |
//! | elementwise | [`neg()`], [`scale()`], [`shift()`], [`exp()`], [`log()`], [`sqrt()`], [`sin()`], [`cos()`], [`tanh()`], [`sigmoid()`], [`relu()`], [`silu()`], [`gelu()`], [`convert()`] |
//! | reductions | [`sum()`], [`mean()`], [`sum_axis()`], [`mean_axis()`] |
//! | of the last axis | [`softmax()`], [`log_softmax()`], [`layer_norm()`], [`rms_norm()`] |
//! | losses | [`cross_entropy()`], [`mse_loss()`] |
//! | tokens | [`embedding()`] |
//! | optimizers | [`adamw()`], [`sgd()`], [`sgd_momentum()`], [`count_step()`] |
//!
//! - **Dtypes.** The float tensors of a call have one dtype: `f32`, `f16`, `bf16` or `f64`. Everything is computed in `f32`, in `f64` for `f64`, and each result is rounded once.
//!   Kernels for `f64` are compiled at their first launch.
//! - **Gradients.** All functions but the optimizers have gradients. The gradient of [`embedding()`] adds with atomics, so its last bits may differ between calls. All other
//!   results have the same bits in every call on one device.
//! - **Recordings.** No kernel has configurations, so [`export`](galatea::graph::export) records all functions, and training steps made of them. Extents may be named
//!   dims.
//! - **Errors.** A tensor with other extents or another dtype than a function takes is an [`OpsError`](galatea::ops::OpsError) that names the op and the argument. A
//!   comparison of extents that is not decided for all values of named dims is [`Error::Dim`]. Launches have errors of their own.

/// Evaluates an expression with the type in which kernels compute for elements of a dtype: `f64` for `f64`, `f32` for others.
macro_rules! with_wide {
    ($dtype:expr, $A:ident => $value:expr) => {
        if $dtype == galatea::Dtype::F64 {
            type $A = f64;
            $value
        } else {
            type $A = f32;
            $value
        }
    };
}

mod broadcast;
mod elementwise;
mod embeddings;
mod losses;
mod norms;
mod optimizers;
mod products;
mod reductions;
mod softmaxes;

pub use elementwise::{add, convert, cos, div, exp, gelu, log, mul, neg, relu, scale, shift, sigmoid, silu, sin, sqrt, sub, tanh};
pub use embeddings::embedding;
use galatea::ops::Tensor;
use galatea::prelude::*;
use galatea::{Dim, Dtype};
pub use losses::{cross_entropy, cross_entropy_forward, mse_loss};
pub use norms::{layer_norm, layer_norm_forward, rms_norm, rms_norm_forward};
pub use optimizers::{adamw, adamw_step, count_step, sgd, sgd_momentum};
pub use products::{linear, matmul};
pub use reductions::{mean, mean_axis, sum, sum_axis};
pub use softmaxes::{log_softmax, softmax};

/// The dtype in which kernels compute for elements of a dtype.
fn wide(dtype: Dtype) -> Dtype {
    if dtype == Dtype::F64 { Dtype::F64 } else { Dtype::F32 }
}

/// The product of extents: 1 for none.
fn product_of(dims: &[Dim]) -> Dim {
    dims.iter().fold(Dim::from(1), |product, dim| product * dim)
}

/// A tensor as rows along its last axis.
struct Rows {
    /// The axes before the last one.
    leading: Vec<Dim>,
    /// The number of rows.
    rows: Dim,
    /// The number of elements in a row.
    columns: Dim,
}

impl Rows {
    /// The rows of a tensor. An error for a tensor without axes.
    fn of(x: &Tensor) -> Result<Rows> {
        let columns = x.dim(-1);
        columns.bounds()?;
        let mut leading = x.dims();
        leading.pop();
        Ok(Rows { rows: product_of(&leading), leading, columns })
    }
}
