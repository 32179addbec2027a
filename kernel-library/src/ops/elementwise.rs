//! Elementwise functions.

use galatea::ops::{Any, Tensor};
use galatea::prelude::*;
use galatea::{Dtype, op};

use super::broadcast::{Operand, broadcast_dims, sum_to};
use crate::kernels;

/// The elements of a block, the number that is compiled with this crate.
const BLOCK: usize = 1024;

// The numbers of functions of `kernels::unary` and `kernels::unary_gradients`.
const SCALE: usize = 0;
const SHIFT: usize = 1;
const EXP: usize = 2;
const LOG: usize = 3;
const SQRT: usize = 4;
const SIN: usize = 5;
const COS: usize = 6;
const TANH: usize = 7;
const SIGMOID: usize = 8;
const RELU: usize = 9;
const SILU: usize = 10;
const GELU: usize = 11;

// The numbers of functions of `kernels::binary`.
const ADD: usize = 0;
const SUB: usize = 1;
const MUL: usize = 2;
const DIV: usize = 3;
const NEGATED_DIV: usize = 4;

fn unary<const F: usize>(x: &Tensor, by: f64) -> Result<Tensor> {
    let (n, mut y) = (x.numel(), x.empty_like()?);
    with_wide!(x.dtype(), A => kernels::unary::<Any, A, F, BLOCK>(x, &mut y, &n, by as A).grid(n.cdiv(BLOCK)).launch())?;
    Ok(y)
}

/// The gradient of [`unary`] from its input or its result, as the kernel takes it.
fn unary_backward<const F: usize>(grad: &Tensor, v: &Tensor) -> Result<Tensor> {
    let (n, mut dx) = (v.numel(), v.empty_like()?);
    with_wide!(v.dtype(), A => kernels::unary_gradients::<Any, A, F, BLOCK>(grad, v, &mut dx, &n).grid(n.cdiv(BLOCK)).launch())?;
    Ok(dx)
}

fn binary<const F: usize>(op: &'static str, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    y.expect_dtype(op, "y", x.dtype())?;
    let dims = broadcast_dims(op, x, y)?;
    let (left, right) = (Operand::new(x, &dims)?, Operand::new(y, &dims)?);
    let mut z = x.new_empty(x.dtype(), &*dims)?;
    let n = z.numel();
    let grid = n.cdiv(BLOCK);
    let (x, y) = (left.tensor(), right.tensor());
    if left.is_whole() && right.is_whole() {
        with_wide!(x.dtype(), A => kernels::binary::<Any, A, F, true, BLOCK>(x, y, &mut z, &n, 1, 1, 1, 1).grid(grid).launch())?;
    } else {
        let (x_inner, x_middle) = left.strides(&n);
        let (y_inner, y_middle) = right.strides(&n);
        with_wide!(x.dtype(), A => {
            kernels::binary::<Any, A, F, false, BLOCK>(x, y, &mut z, &n, &x_inner, &x_middle, &y_inner, &y_middle).grid(grid).launch()
        })?;
    }
    Ok(z)
}

/// `x + y`, elementwise, broadcast: axes are aligned at the last one, and an extent of 1 is repeated. The result has the dtype of both.
///
/// # Errors
/// [`OpsError::OpDtype`](galatea::ops::OpsError::OpDtype) for two dtypes, [`OpsError::Broadcast`](galatea::ops::OpsError::Broadcast) for extents that do not fit, and
/// those of a launch.
///
/// ```
/// # use galatea::ops::Tensor;
/// # use galatea::prelude::*;
/// # use kernel_library::ops;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let column = Tensor::from(device.tensor_from(&[10.0f32, 20.0], [2, 1])?);
/// let row = Tensor::from(device.tensor(&[1.0f32, 2.0, 3.0])?);
/// assert_eq!(ops::add(&column, &row)?.to_vec::<f32>()?, [11.0, 12.0, 13.0, 21.0, 22.0, 23.0]);
/// # Ok(())
/// # }
/// ```
#[op("galatea::add", backward(x, y) = |grad, x, y| Ok::<_, Error>((sum_to(grad, x)?, sum_to(grad, y)?)))]
pub fn add(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    binary::<ADD>("galatea::add", x, y)
}

/// `x - y`, elementwise, broadcast as [`add()`].
///
/// # Errors
/// As [`add()`].
#[op("galatea::sub", backward(x, y) = |grad, x, y| Ok::<_, Error>((sum_to(grad, x)?, neg(&sum_to(grad, y)?)?)))]
pub fn sub(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    binary::<SUB>("galatea::sub", x, y)
}

/// `x * y`, elementwise, broadcast as [`add()`].
///
/// # Errors
/// As [`add()`].
#[op("galatea::mul", backward(x, y) = mul_backward)]
pub fn mul(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    binary::<MUL>("galatea::mul", x, y)
}

fn mul_backward(grad: &Tensor, x: &Tensor, y: &Tensor) -> Result<(Tensor, Tensor)> {
    Ok((sum_to(&mul(grad, y)?, x)?, sum_to(&mul(grad, x)?, y)?))
}

/// `x / y`, elementwise, broadcast as [`add()`].
///
/// # Errors
/// As [`add()`].
#[op("galatea::div", backward(x, y, out) = div_backward)]
pub fn div(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    binary::<DIV>("galatea::div", x, y)
}

fn div_backward(grad: &Tensor, x: &Tensor, y: &Tensor, out: &Tensor) -> Result<(Tensor, Tensor)> {
    let dy = binary::<NEGATED_DIV>("galatea::div", &mul(grad, out)?, y)?;
    Ok((sum_to(&div(grad, y)?, x)?, sum_to(&dy, y)?))
}

/// `-x`, elementwise.
///
/// # Errors
/// Those of a launch.
#[op("galatea::neg", backward() = |grad: &Tensor| neg(grad))]
pub fn neg(x: &Tensor) -> Result<Tensor> {
    unary::<SCALE>(x, -1.0)
}

/// `x * by`, elementwise.
///
/// # Errors
/// Those of a launch.
#[op("galatea::scale", backward(by) = |grad: &Tensor, by| scale(grad, by))]
pub fn scale(x: &Tensor, by: f64) -> Result<Tensor> {
    unary::<SCALE>(x, by)
}

/// `x + by`, elementwise.
///
/// # Errors
/// Those of a launch.
#[op("galatea::shift", backward() = |grad: &Tensor| Ok::<_, Error>(grad.clone()))]
pub fn shift(x: &Tensor, by: f64) -> Result<Tensor> {
    unary::<SHIFT>(x, by)
}

/// `exp(x)`, elementwise.
///
/// # Errors
/// Those of a launch.
#[op("galatea::exp", backward(out) = unary_backward::<EXP>)]
pub fn exp(x: &Tensor) -> Result<Tensor> {
    unary::<EXP>(x, 0.0)
}

/// The natural logarithm, elementwise: `-inf` for 0, and NaN for numbers below 0.
///
/// # Errors
/// Those of a launch.
#[op("galatea::log", backward(x) = unary_backward::<LOG>)]
pub fn log(x: &Tensor) -> Result<Tensor> {
    unary::<LOG>(x, 0.0)
}

/// The square root, elementwise: NaN for numbers below 0.
///
/// # Errors
/// Those of a launch.
#[op("galatea::sqrt", backward(out) = unary_backward::<SQRT>)]
pub fn sqrt(x: &Tensor) -> Result<Tensor> {
    unary::<SQRT>(x, 0.0)
}

/// `sin(x)`, elementwise, `x` in radians.
///
/// # Errors
/// Those of a launch.
#[op("galatea::sin", backward(x) = unary_backward::<SIN>)]
pub fn sin(x: &Tensor) -> Result<Tensor> {
    unary::<SIN>(x, 0.0)
}

/// `cos(x)`, elementwise, `x` in radians.
///
/// # Errors
/// Those of a launch.
#[op("galatea::cos", backward(x) = unary_backward::<COS>)]
pub fn cos(x: &Tensor) -> Result<Tensor> {
    unary::<COS>(x, 0.0)
}

/// `tanh(x)`, elementwise.
///
/// # Errors
/// Those of a launch.
#[op("galatea::tanh", backward(out) = unary_backward::<TANH>)]
pub fn tanh(x: &Tensor) -> Result<Tensor> {
    unary::<TANH>(x, 0.0)
}

/// `1 / (1 + exp(-x))`, elementwise.
///
/// # Errors
/// Those of a launch.
#[op("galatea::sigmoid", backward(out) = unary_backward::<SIGMOID>)]
pub fn sigmoid(x: &Tensor) -> Result<Tensor> {
    unary::<SIGMOID>(x, 0.0)
}

/// `max(x, 0)`, elementwise, and NaN for NaN. The gradient at 0 is 0.
///
/// # Errors
/// Those of a launch.
#[op("galatea::relu", backward(x) = unary_backward::<RELU>)]
pub fn relu(x: &Tensor) -> Result<Tensor> {
    unary::<RELU>(x, 0.0)
}

/// SiLU: `x / (1 + exp(-x))`, elementwise.
///
/// # Errors
/// Those of a launch.
#[op("galatea::silu", backward(x) = unary_backward::<SILU>)]
pub fn silu(x: &Tensor) -> Result<Tensor> {
    unary::<SILU>(x, 0.0)
}

/// GELU: `x / 2 * (1 + erf(x / sqrt(2)))`, elementwise, without an approximation.
///
/// # Errors
/// Those of a launch.
#[op("galatea::gelu", backward(x) = unary_backward::<GELU>)]
pub fn gelu(x: &Tensor) -> Result<Tensor> {
    unary::<GELU>(x, 0.0)
}

/// The elements in another dtype: rounded to nearest even for floats, and saturated for integers, as by `as`. The gradient has the dtype of `x`.
///
/// # Errors
/// Those of a launch, for dtypes without arithmetic.
#[op("galatea::convert", backward(x) = |grad: &Tensor, x: &Tensor| convert(grad, x.dtype()))]
pub fn convert(x: &Tensor, dtype: Dtype) -> Result<Tensor> {
    if x.dtype() == dtype {
        return Ok(x.clone());
    }
    let (n, mut y) = (x.numel(), x.new_empty(dtype, x.dims())?);
    kernels::convert::<Any, Any, BLOCK>(x, &mut y, &n).grid(n.cdiv(BLOCK)).launch()?;
    Ok(y)
}
