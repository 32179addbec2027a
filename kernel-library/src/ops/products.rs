//! Products of matrices.

use galatea::ops::{Any, Tensor};
use galatea::prelude::*;
use galatea::{Dim, Dtype, op};

use super::broadcast::sums;
use super::{Rows, add};
use crate::kernels;

/// `x * weightᵀ + bias`, for each row of `x`.
///
/// `x` is `[.., inner]`, `weight` is `[columns, inner]`, `bias` is `[columns]`, and the result is `[.., columns]`, of the dtype of all.
///
/// # Errors
/// [`OpsError::Dims`](galatea::ops::OpsError::Dims) and [`OpsError::OpDtype`](galatea::ops::OpsError::OpDtype) for tensors that do not fit, and those of a launch.
#[op("galatea::linear", backward(x, weight, bias) = linear_backward, flops = |x, weight, _| x.numel() * weight.dim(0) * 2)]
pub fn linear(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    const OP: &str = "galatea::linear";
    if x.rank() == 0 {
        x.expect_dims(OP, "x", [weight.dim(1)])?;
    }
    let Rows { leading: mut dims, rows, columns: inner } = Rows::of(x)?;
    let columns = weight.dim(0);
    weight.expect_dims(OP, "weight", [&columns, &inner])?;
    weight.expect_dtype(OP, "weight", x.dtype())?;
    if let Some(bias) = bias {
        bias.expect_dims(OP, "bias", [&columns])?;
        bias.expect_dtype(OP, "bias", x.dtype())?;
    }
    dims.push(columns.clone());
    if x.dtype() == Dtype::F64 {
        // The kernels of the other dtypes have sums of `f32`.
        let y = product::<false, true>(x, weight, [&rows, &columns, &inner])?.reshape(dims)?;
        return bias.map_or(Ok(y.clone()), |bias| add(&y, bias));
    }
    let mut y = x.new_empty(x.dtype(), dims)?;
    let biased = if bias.is_some() { columns.clone() } else { Dim::from(0) };
    let bias = bias.unwrap_or(weight);
    if x.dtype() == Dtype::F32 {
        kernels::linear_f32::<4, 32, 64>(x, weight, bias, &mut y, &rows, &columns, &inner, &biased)
            .grid((rows.cdiv(4), columns.cdiv(32)))
            .launch()?;
    } else {
        kernels::linear::<Any, 16, 32, 64>(x, weight, bias, &mut y, &rows, &columns, &inner, &biased)
            .grid((rows.cdiv(16), columns.cdiv(32)))
            .launch()?;
    }
    Ok(y)
}

fn linear_backward(grad: &Tensor, x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<(Tensor, Tensor, Option<Tensor>)> {
    let Rows { rows, columns: inner, .. } = Rows::of(x)?;
    let columns = weight.dim(0);
    let dx = product::<false, false>(grad, weight, [&rows, &inner, &columns])?.reshape(x.dims())?;
    let dweight = product::<true, false>(grad, x, [&columns, &inner, &rows])?;
    let axes = [Dim::from(1), rows, columns];
    let dbias = bias.map(|_| sums(grad, &axes, &Dim::from(1), grad.dtype())).transpose()?;
    Ok((dx, dweight, dbias))
}

/// The product of two matrices: `[rows, inner]` and `[inner, columns]` give `[rows, columns]`, all of one dtype.
///
/// # Errors
/// [`OpsError::Dims`](galatea::ops::OpsError::Dims) and [`OpsError::OpDtype`](galatea::ops::OpsError::OpDtype) for tensors that do not fit, and those of a launch.
///
/// ```
/// # use galatea::ops::Tensor;
/// # use galatea::prelude::*;
/// # use kernel_library::ops;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let a = Tensor::from(device.tensor_from(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?);
/// let b = Tensor::from(device.tensor_from(&[1.0f32, 10.0], [2, 1])?);
/// assert_eq!(ops::matmul(&a, &b)?.to_vec::<f32>()?, [21.0, 43.0]);
/// # Ok(())
/// # }
/// ```
#[op("galatea::matmul", backward(a, b) = matmul_backward)]
pub fn matmul(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    const OP: &str = "galatea::matmul";
    let (rows, inner, columns) = (a.dim(0), a.dim(-1), b.dim(-1));
    a.expect_dims(OP, "a", [&rows, &inner])?;
    b.expect_dims(OP, "b", [&inner, &columns])?;
    b.expect_dtype(OP, "b", a.dtype())?;
    product::<false, false>(a, b, [&rows, &columns, &inner])
}

fn matmul_backward(grad: &Tensor, a: &Tensor, b: &Tensor) -> Result<(Tensor, Tensor)> {
    let (rows, inner, columns) = (a.dim(0), a.dim(1), b.dim(1));
    let da = product::<false, true>(grad, b, [&rows, &inner, &columns])?;
    Ok((da, product::<true, false>(a, grad, [&inner, &columns, &rows])?))
}

/// A product of matrices that may be transposed, as `kernels::matmul_in_tiles` and `kernels::products` take them.
fn product<const TRANSPOSED_A: bool, const TRANSPOSED_B: bool>(
    a: &Tensor,
    b: &Tensor,
    [rows, columns, inner]: [&Dim; 3],
) -> Result<Tensor> {
    let mut y = a.new_empty(a.dtype(), [rows, columns])?;
    if matches!(a.dtype(), Dtype::F16 | Dtype::Bf16) {
        kernels::matmul_in_tiles::<Any, TRANSPOSED_A, TRANSPOSED_B, 64, 64, 64>(a, b, &mut y, rows, columns, inner)
            .grid((rows.cdiv(64), columns.cdiv(64)))
            .launch()?;
        return Ok(y);
    }
    const ROWS: usize = 16;
    const COLUMNS: usize = 64;
    with_wide!(a.dtype(), A => {
        kernels::products::<Any, A, TRANSPOSED_A, TRANSPOSED_B, ROWS, COLUMNS>(a, b, &mut y, rows, columns, inner)
            .grid((rows.cdiv(ROWS), columns.cdiv(COLUMNS)))
            .launch()
    })?;
    Ok(y)
}
