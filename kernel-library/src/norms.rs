//! Normalised rows: layer norm and RMS norm, with their gradients.
//!
//! The functions `*_forward` return what the gradient needs beside the result, so that the result can be moved into the next layer.

use galatea::prelude::*;

use crate::call::{Call, Of};
use crate::stages::{Matrices, sum_of_columns};
use crate::{AsTensor, kernels};

/// The longest row of the forward kernels, which hold a row in the registers of one CTA.
const LONGEST: usize = 32_768;
/// The longest row of the backward kernels, which hold a row in the registers of a cluster.
const LONGEST_BACKWARD: usize = 65_536;

/// The statistics of [`layer_norm_forward()`] that [`layer_norm_backward()`] needs. Their shape is that of the input without its last axis.
#[derive(Debug)]
pub struct LayerNormSaved {
    /// The mean of each row.
    pub mean: Tensor<f32>,
    /// `1 / sqrt(variance + eps)` of each row.
    pub rstd: Tensor<f32>,
}

/// The gradients of a layer norm, returned by [`layer_norm_backward()`].
#[derive(Debug)]
pub struct LayerNormGradients<T: Element> {
    /// The gradient of `x`, with its shape.
    pub dx: Tensor<T>,
    /// The gradient of `weight`, with its shape.
    pub dweight: Tensor<T>,
    /// The gradient of `bias`, with its shape.
    pub dbias: Tensor<T>,
}

/// The statistics of [`rms_norm_forward()`] that [`rms_norm_backward()`] needs. Their shape is that of the input without its last axis.
#[derive(Debug)]
pub struct RmsNormSaved {
    /// `1 / sqrt(mean of squares + eps)` of each row.
    pub rstd: Tensor<f32>,
}

/// The gradients of an RMS norm, returned by [`rms_norm_backward()`].
#[derive(Debug)]
pub struct RmsNormGradients<T: Element> {
    /// The gradient of `x`, with its shape.
    pub dx: Tensor<T>,
    /// The gradient of `weight`, with its shape.
    pub dweight: Tensor<T>,
}

/// The layer norm of each row (arXiv 1607.06450): `y = (x - mean) / sqrt(variance + eps) * weight + bias`.
///
/// `x` has any shape with at least one axis; rows lie along the last axis and have at most 32,768 elements. `weight` and `bias` have one element for each
/// column. The result has the shape of `x`. Every [`Float`] is accepted, computed in `f32` and rounded once. The variance is divided by the number of
/// columns, and computed from the differences to the mean. `eps` is usually 1e-5. For training, call [`layer_norm_forward()`].
///
/// # Errors
/// [`Error::ArgumentShape`] if `x` has no axis or longer rows, or if `weight` or `bias` does not match; [`Error::ArgumentDevice`];
/// [`Error::ArgumentValue`] if `eps` is negative or not finite; or an error of an allocation or a launch.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let x = device.tensor_from(&[1.0f32, 3.0, -5.0, 5.0], [2, 2])?;
/// let (weight, bias) = (device.tensor(&[1.0f32, 2.0])?, device.tensor(&[0.0f32, 10.0])?);
/// assert_eq!(kernel_library::layer_norm(&x, &weight, &bias, 0.0)?.to_vec()?, [-1.0, 12.0, -1.0, 12.0]);
/// # Ok(())
/// # }
/// ```
pub fn layer_norm<T: Float>(x: &impl AsTensor<T>, weight: &impl AsTensor<T>, bias: &impl AsTensor<T>, eps: f32) -> Result<Tensor<T>> {
    let (y, _) = layer_norm_of("layer_norm", x.as_tensor(), weight.as_tensor(), bias.as_tensor(), eps)?;
    Ok(y)
}

/// [`layer_norm()`] for training: also returns the statistics of the rows for [`layer_norm_backward()`].
///
/// Without columns, the statistics are NaN.
///
/// # Errors
/// As [`layer_norm()`].
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let x = device.tensor_from(&[1.0f32, 3.0, -5.0, 5.0], [2, 2])?;
/// let (weight, bias) = (device.tensor(&[1.0f32, 2.0])?, device.tensor(&[0.0f32, 10.0])?);
/// let (y, saved) = kernel_library::layer_norm_forward(&x, &weight, &bias, 0.0)?;
/// assert_eq!((saved.mean.to_vec()?, saved.rstd.to_vec()?), (vec![2.0, 0.0], vec![1.0, 0.2]));
///
/// let dy = device.full(y.shape(), 1.0f32)?; // the gradient of a loss, here of the sum of `y`
/// let gradients = kernel_library::layer_norm_backward(&dy, &x, &weight, &saved)?;
/// assert_eq!((gradients.dweight.to_vec()?, gradients.dbias.to_vec()?), (vec![-2.0, 2.0], vec![2.0, 2.0]));
/// # Ok(())
/// # }
/// ```
pub fn layer_norm_forward<T: Float>(
    x: &impl AsTensor<T>,
    weight: &impl AsTensor<T>,
    bias: &impl AsTensor<T>,
    eps: f32,
) -> Result<(Tensor<T>, LayerNormSaved)> {
    layer_norm_of("layer_norm_forward", x.as_tensor(), weight.as_tensor(), bias.as_tensor(), eps)
}

fn layer_norm_of<T: Float>(
    function: &'static str,
    x: TensorView<'_, T>,
    weight: TensorView<'_, T>,
    bias: TensorView<'_, T>,
    eps: f32,
) -> Result<(Tensor<T>, LayerNormSaved)> {
    let call = Call::new(function, "x", &x);
    let rows = call.rows(&x, LONGEST)?;
    call.expect("weight", &weight, &[rows.columns], Of::columns("x", x.shape()))?;
    call.expect("bias", &bias, &[rows.columns], Of::columns("x", x.shape()))?;
    call.expect_magnitude("eps", eps, "a usual value is 1e-5")?;
    let mut y = call.empty(x.shape())?;
    if x.is_empty() {
        let saved = LayerNormSaved { mean: call.not_a_number(rows.leading)?, rstd: call.not_a_number(rows.leading)? };
        return Ok((y, saved));
    }
    let mut saved = LayerNormSaved { mean: call.empty(rows.leading)?, rstd: call.empty(rows.leading)? };
    kernels::layer_norm(x, weight, bias, &mut y, &mut saved.mean, &mut saved.rstd, rows.rows, rows.columns, eps)
        .grid(|config| cdiv(rows.rows, config.ROWS))
        .launch()?;
    Ok((y, saved))
}

/// The gradients of [`layer_norm()`].
///
/// With `normal = (x - mean) * rstd` and `g = dy * weight`:
///
/// | | |
/// |---|---|
/// | `dx` | `(g - mean of g - normal * mean of (g * normal)) * rstd`, where the means are those of a row |
/// | `dweight` | the sum of `dy * normal` over the rows |
/// | `dbias` | the sum of `dy` over the rows |
///
/// `dy` and `x` have the same shape, of at least one axis. `weight` has one element for each column. `saved` is the result of [`layer_norm_forward()`]
/// for the same `x`. Every [`Float`] is accepted, computed in `f32` and rounded once. Rows have at most 65,536 elements, and on GPUs without clusters at
/// most 8,192. The result is the same in every call on one device.
///
/// # Errors
/// [`Error::ArgumentShape`] or [`Error::ArgumentDevice`] for tensors that do not match; [`Error::NoConfig`] for rows that are too long for the device; or
/// an error of an allocation or a launch.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let x = device.tensor_from(&[1.0f32, 3.0], [1, 2])?;
/// let (weight, bias) = (device.tensor(&[1.0f32, 2.0])?, device.tensor(&[0.0f32, 10.0])?);
/// let (y, saved) = kernel_library::layer_norm_forward(&x, &weight, &bias, 0.0)?;
///
/// let dy = device.full(y.shape(), 1.0f32)?;
/// let gradients = kernel_library::layer_norm_backward(&dy, &x, &weight, &saved)?;
/// assert_eq!(gradients.dx.to_vec()?, [0.0, 0.0]); // two elements are normalised to -1 and 1, whatever they are
/// # Ok(())
/// # }
/// ```
pub fn layer_norm_backward<T: Float>(
    dy: &impl AsTensor<T>,
    x: &impl AsTensor<T>,
    weight: &impl AsTensor<T>,
    saved: &LayerNormSaved,
) -> Result<LayerNormGradients<T>> {
    let (dy, x, weight) = (dy.as_tensor(), x.as_tensor(), weight.as_tensor());
    let call = Call::new("layer_norm_backward", "dy", &dy);
    let rows = call.rows(&dy, LONGEST_BACKWARD)?;
    call.expect("x", &x, dy.shape(), Of::shape("dy"))?;
    call.expect("weight", &weight, &[rows.columns], Of::columns("dy", dy.shape()))?;
    call.expect("saved.mean", &saved.mean.view(), rows.leading, Of::rows("dy", dy.shape()))?;
    call.expect("saved.rstd", &saved.rstd.view(), rows.leading, Of::rows("dy", dy.shape()))?;
    let (rows, columns, mut dx) = (rows.rows, rows.columns, call.empty(dy.shape())?);
    if dy.is_empty() {
        return Ok(LayerNormGradients { dx, dweight: call.zeros(&[columns])?, dbias: call.zeros(&[columns])? });
    }
    let groups = groups(&call, rows);
    let mut parts = call.empty::<f32>(&[groups * 2 * columns])?;
    kernels::layer_norm_backward(dy, x, weight, &saved.mean, &saved.rstd, &mut dx, &mut parts, rows, columns).grid(|_| groups).launch()?;
    // A row of `parts` has the part of `dweight`, and behind it that of `dbias`. So each gradient is the sums of half of the columns: the grid covers
    // these, and the kernel does not store elements outside its result.
    let [mut dweight, mut dbias] = [call.empty(&[columns])?, call.empty(&[columns])?];
    kernels::column_sum(&parts, &mut dweight, groups, 2 * columns).grid(|config| cdiv(columns, config.BLOCK_SIZE)).launch()?;
    kernels::column_sum(parts.slice(columns..)?, &mut dbias, groups, 2 * columns)
        .grid(|config| cdiv(columns, config.BLOCK_SIZE))
        .launch()?;
    Ok(LayerNormGradients { dx, dweight, dbias })
}

/// The RMS norm of each row (arXiv 1910.07467): `y = x / sqrt(mean of squares + eps) * weight`.
///
/// `x` has any shape with at least one axis; rows lie along the last axis and have at most 32,768 elements. `weight` has one element for each column. The
/// result has the shape of `x`. Every [`Float`] is accepted, computed in `f32` and rounded once. `eps` is usually 1e-5. For training, call
/// [`rms_norm_forward()`].
///
/// # Errors
/// [`Error::ArgumentShape`] if `x` has no axis or longer rows, or if `weight` does not match; [`Error::ArgumentDevice`]; [`Error::ArgumentValue`] if
/// `eps` is negative or not finite; or an error of an allocation or a launch.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let x = device.tensor_from(&[3.0f32, -3.0, 4.0, 4.0], [2, 2])?;
/// let weight = device.tensor(&[1.0f32, 2.0])?;
/// assert_eq!(kernel_library::rms_norm(&x, &weight, 0.0)?.to_vec()?, [1.0, -2.0, 1.0, 2.0]);
/// # Ok(())
/// # }
/// ```
pub fn rms_norm<T: Float>(x: &impl AsTensor<T>, weight: &impl AsTensor<T>, eps: f32) -> Result<Tensor<T>> {
    let (y, _) = rms_norm_of("rms_norm", x.as_tensor(), weight.as_tensor(), eps)?;
    Ok(y)
}

/// [`rms_norm()`] for training: also returns the statistics of the rows for [`rms_norm_backward()`].
///
/// Without columns, the statistics are NaN.
///
/// # Errors
/// As [`rms_norm()`].
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let x = device.tensor_from(&[3.0f32, -3.0, 4.0, 4.0], [2, 2])?;
/// let weight = device.tensor(&[1.0f32, 2.0])?;
/// let (y, saved) = kernel_library::rms_norm_forward(&x, &weight, 0.0)?;
///
/// let dy = device.full(y.shape(), 1.0f32)?; // the gradient of a loss, here of the sum of `y`
/// let gradients = kernel_library::rms_norm_backward(&dy, &x, &weight, &saved)?;
/// assert_eq!(gradients.dweight.to_vec()?, [2.0, 0.0]);
/// # Ok(())
/// # }
/// ```
pub fn rms_norm_forward<T: Float>(x: &impl AsTensor<T>, weight: &impl AsTensor<T>, eps: f32) -> Result<(Tensor<T>, RmsNormSaved)> {
    rms_norm_of("rms_norm_forward", x.as_tensor(), weight.as_tensor(), eps)
}

fn rms_norm_of<T: Float>(
    function: &'static str,
    x: TensorView<'_, T>,
    weight: TensorView<'_, T>,
    eps: f32,
) -> Result<(Tensor<T>, RmsNormSaved)> {
    let call = Call::new(function, "x", &x);
    let rows = call.rows(&x, LONGEST)?;
    call.expect("weight", &weight, &[rows.columns], Of::columns("x", x.shape()))?;
    call.expect_magnitude("eps", eps, "a usual value is 1e-5")?;
    let mut y = call.empty(x.shape())?;
    if x.is_empty() {
        return Ok((y, RmsNormSaved { rstd: call.not_a_number(rows.leading)? }));
    }
    let mut saved = RmsNormSaved { rstd: call.empty(rows.leading)? };
    kernels::rms_norm(x, weight, &mut y, &mut saved.rstd, rows.rows, rows.columns, eps)
        .grid(|config| cdiv(rows.rows, config.ROWS))
        .launch()?;
    Ok((y, saved))
}

/// The gradients of [`rms_norm()`].
///
/// With `normal = x * rstd` and `g = dy * weight`, `dx` is `(g - normal * mean of (g * normal)) * rstd`, where the mean is that of a row, and `dweight`
/// is the sum of `dy * normal` over the rows.
///
/// `dy` and `x` have the same shape, of at least one axis. `weight` has one element for each column. `saved` is the result of [`rms_norm_forward()`] for
/// the same `x`. Every [`Float`] is accepted, computed in `f32` and rounded once. Rows have at most 65,536 elements, and on GPUs without clusters at most
/// 8,192. The result is the same in every call on one device.
///
/// # Errors
/// [`Error::ArgumentShape`] or [`Error::ArgumentDevice`] for tensors that do not match; [`Error::NoConfig`] for rows that are too long for the device; or
/// an error of an allocation or a launch.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let (x, weight) = (device.tensor_from(&[3.0f32, -3.0], [1, 2])?, device.tensor(&[1.0f32, 1.0])?);
/// let (y, saved) = kernel_library::rms_norm_forward(&x, &weight, 0.0)?;
/// let gradients = kernel_library::rms_norm_backward(&y, &x, &weight, &saved)?;
/// assert_eq!(gradients.dx.to_vec()?, [0.0, 0.0]); // a longer row has the same norm
/// # Ok(())
/// # }
/// ```
pub fn rms_norm_backward<T: Float>(
    dy: &impl AsTensor<T>,
    x: &impl AsTensor<T>,
    weight: &impl AsTensor<T>,
    saved: &RmsNormSaved,
) -> Result<RmsNormGradients<T>> {
    let (dy, x, weight) = (dy.as_tensor(), x.as_tensor(), weight.as_tensor());
    let call = Call::new("rms_norm_backward", "dy", &dy);
    let rows = call.rows(&dy, LONGEST_BACKWARD)?;
    call.expect("x", &x, dy.shape(), Of::shape("dy"))?;
    call.expect("weight", &weight, &[rows.columns], Of::columns("dy", dy.shape()))?;
    call.expect("saved.rstd", &saved.rstd.view(), rows.leading, Of::rows("dy", dy.shape()))?;
    let (rows, columns, mut dx) = (rows.rows, rows.columns, call.empty(dy.shape())?);
    if dy.is_empty() {
        return Ok(RmsNormGradients { dx, dweight: call.zeros(&[columns])? });
    }
    let groups = groups(&call, rows);
    let mut parts = call.empty::<f32>(&[groups, columns])?;
    kernels::rms_norm_backward(dy, x, weight, &saved.rstd, &mut dx, &mut parts, rows, columns).grid(|_| groups).launch()?;
    let dweight = sum_of_columns(&call, parts.view(), Matrices { matrices: 1, rows: groups, columns }, &[columns])?;
    Ok(RmsNormGradients { dx, dweight })
}

/// The number of programs of a backward kernel, each of which writes one row of parts: enough to occupy every multiprocessor.
fn groups(call: &Call<'_>, rows: usize) -> usize {
    call.device().multiprocessors().min(rows).max(1)
}
