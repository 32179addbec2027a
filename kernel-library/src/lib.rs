//! Functions that models are made of, on tensors: softmax, norms, losses, activations, embeddings, optimizers, and reductions.
//!
//! A function takes tensors and returns tensors. It reads all sizes from the shapes, checks the arguments, allocates its results and launches kernels.
//!
//! ```
//! # use galatea::prelude::*;
//! # fn main() -> galatea::Result<()> {
//! let device = Device::default()?; // the first CUDA GPU, else the CPU
//! let x = device.tensor_from(&[1.0f32, 3.0, -5.0, 5.0], [2, 2])?;
//! let (weight, bias) = (device.tensor(&[1.0f32, 1.0])?, device.tensor(&[0.0f32, 0.0])?);
//! let y = kernel_library::layer_norm(&x, &weight, &bias, 1e-5)?;
//! let p = kernel_library::softmax(&y)?;
//! assert_eq!(p.shape(), [2, 2]);
//! # Ok(())
//! # }
//! ```
//!
//! | topic | functions |
//! |---|---|
//! | rows | [`softmax()`], [`row_sum()`], [`row_max()`], [`row_argmax()`], [`row_topk()`], [`row_cumsum()`] |
//! | norms | [`layer_norm()`], [`layer_norm_forward()`], [`layer_norm_backward()`], [`rms_norm()`], [`rms_norm_forward()`], [`rms_norm_backward()`] |
//! | activations | [`swiglu()`], [`swiglu_backward()`], [`geglu()`], [`geglu_backward()`], [`dropout()`], [`dropout_backward()`] |
//! | tokens | [`embedding()`], [`embedding_backward()`], [`rope()`], [`rope_backward()`] |
//! | losses | [`cross_entropy()`], [`cross_entropy_forward()`], [`cross_entropy_backward()`] |
//! | optimizers | [`adamw()`] |
//! | products | [`matmul()`], [`matmul_into()`], [`matmul_gated()`], [`Matmul`], [`ScaledMatmul`] |
//! | matrices | [`column_sum()`], [`transpose()`], [`sum()`], [`bin_counts()`] |
//! | any axes | [`sum_over()`], [`mean_over()`], [`max_over()`] |
//! | models | [`nn`]: layers; [`ops`]: functions of `ops::Tensor` that recorded graphs show |
//! | tuning | [`tiling`]: which tiles a matrix product should try |
//!
//! # Conventions
//!
//! - **Shapes.** The last axis is the row, and all axes before it count rows, as many as a tensor can have. Tensors and views are contiguous, so no
//!   argument needs a copy. Empty tensors give empty results, or sums of 0, without a launch.
//! - **Types.** A function is generic over the float type. `f32`, `f16` and `bf16` are compiled with this crate; `f64` is compiled at its first launch,
//!   where the function accepts it. Everything is computed in `f32` and rounded once. Products of matrices take `f16` and `bf16`, and are compiled at their first
//!   launch.
//! - **Arguments.** Inputs come first, then parameters, then numbers. A gradient takes `dy` first. A function whose gradient needs more than the inputs has
//!   a form `*_forward`, which returns the result and a struct `*Saved` for the form `*_backward`.
//! - **Errors.** A wrong shape, device or number is an [`Error`](galatea::Error) that names the function and the argument. Indices in memory, such as the
//!   targets of a loss, are not read by the host: each function documents the result for an index out of range.
//! - **Launches.** A function launches on the home stream of its first tensor, and returns without waiting for the launch. Its results have the same
//!   home stream. The first call for a row length times the configurations of the kernel, see [`tune`](galatea::tune).
//! - **Replays.** Functions allocate, which [`Replay::capture`](galatea::Replay::capture) refuses, except [`adamw()`] and, with a workspace where it needs one,
//!   [`Matmul::product_into`]. A capture launches the
//!   [`kernels`] instead, which write into tensors that exist already.
//!
//! # Reductions
//!
//! [`row_sum()`], [`row_max()`], [`row_argmax()`], [`column_sum()`], [`sum()`], [`sum_over()`], [`mean_over()`] and [`max_over()`] reduce axes of any
//! extent. Each chooses its kernel from the shape, and tuning chooses the configuration of the kernel.
//!
//! - **Kernels.** Axes at the end of a shape are rows in memory, which the kernels of rows reduce. Axes before others are reduced by a program for some of
//!   the columns behind them. Neighbouring axes are one. Of several groups of axes, the largest is reduced first.
//! - **Two launches.** If one launch has too few programs for the device, a first launch reduces groups of each row, or groups of rows, and a second launch
//!   reduces the results of the groups. So four rows of ten million elements occupy all multiprocessors. The table states the rule; a program reduces
//!   rows, or up to 128 columns.
//! - **Rounding.** Sums between two launches, and between groups of axes, are `f32`. So a sum or a mean is rounded to its type once.
//! - **Determinism.** No launch has atomics. A result has the same bits in every call on one device.
//!
//! | | rows | columns |
//! |---|---|---|
//! | two launches below so many programs for each multiprocessor | 1 | 2 |
//! | programs of the first launch for each multiprocessor | 4 | 2 |
//! | least elements of a row, or least rows, in a group | 16,384 | 256 |

mod activations;
mod as_tensor;
mod axes;
mod call;
mod embeddings;
pub mod kernels;
mod losses;
mod matmuls;
pub mod nn;
mod norms;
pub mod ops;
mod optimizers;
mod positions;
mod reductions;
mod scans;
mod selections;
mod softmaxes;
mod stages;
pub mod tiling;
mod transposes;

pub use activations::{GateGradients, dropout, dropout_backward, geglu, geglu_backward, swiglu, swiglu_backward};
pub use as_tensor::{AsTensor, AsTensorMut};
pub use axes::{Keep, max_over, mean_over, sum_over};
pub use embeddings::{embedding, embedding_backward};
pub use losses::{CrossEntropySaved, cross_entropy, cross_entropy_backward, cross_entropy_forward};
pub use matmuls::{Activation, Byte, Factor, Half, Matmul, Padding, ScaledMatmul, matmul, matmul_gated, matmul_into};
pub use norms::{
    LayerNormGradients, LayerNormSaved, RmsNormGradients, RmsNormSaved, layer_norm, layer_norm_backward, layer_norm_forward, rms_norm,
    rms_norm_backward, rms_norm_forward,
};
pub use optimizers::{AdamW, adamw};
pub use positions::{rope, rope_backward};
pub use reductions::{column_sum, row_max, row_sum, sum};
pub use scans::row_cumsum;
pub use selections::{TopK, bin_counts, row_argmax, row_topk};
pub use softmaxes::softmax;
pub use transposes::transpose;
