//! Sums and means, of all elements and over an axis.

use galatea::Dim;
use galatea::op;
use galatea::ops::Tensor;
use galatea::prelude::*;

use super::broadcast::{around, repeated, sum_of_all, sums};

/// The sum of all elements, a tensor without axes: 0 for no elements. Rounded once.
///
/// # Errors
/// Those of a launch.
#[op("galatea::sum", backward(x) = |grad, x| spread(grad, x, &Dim::from(1)))]
pub fn sum(x: &Tensor) -> Result<Tensor> {
    sum_of_all::<false>(x, x, &Dim::from(1), x.dtype())
}

/// The mean of all elements, a tensor without axes: NaN for no elements. Rounded once.
///
/// # Errors
/// Those of a launch.
#[op("galatea::mean", backward(x) = |grad, x| spread(grad, x, &x.numel()))]
pub fn mean(x: &Tensor) -> Result<Tensor> {
    sum_of_all::<false>(x, x, &x.numel(), x.dtype())
}

/// One element for all of `x`, divided by a number.
fn spread(grad: &Tensor, x: &Tensor, divisor: &Dim) -> Result<Tensor> {
    repeated(grad, &[Dim::from(1), x.numel(), Dim::from(1)], divisor)?.reshape(x.dims())
}

/// The sums over an axis, which the result lacks: `[a, b, c]` becomes `[a, c]` for axis 1. Axes below 0 count from the end: -1 is the last one. Each sum is rounded once.
///
/// # Errors
/// [`Error::Dim`] for an axis that `x` lacks, and those of a launch.
///
/// ```
/// # use galatea::ops::Tensor;
/// # use galatea::prelude::*;
/// # use kernel_library::ops;
/// # fn main() -> galatea::Result<()> {
/// let x = Tensor::from(Device::cpu().tensor_from(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])?);
/// assert_eq!(ops::sum_axis(&x, 0)?.to_vec::<f32>()?, [5.0, 7.0, 9.0]);
/// assert_eq!(ops::mean_axis(&x, -1)?.to_vec::<f32>()?, [2.0, 5.0]);
/// # Ok(())
/// # }
/// ```
#[op("galatea::sum.axis", backward(x, axis) = |grad, x, axis| along(grad, x, axis, false))]
pub fn sum_axis(x: &Tensor, axis: isize) -> Result<Tensor> {
    over(x, axis, false)
}

/// The means over an axis, as [`sum_axis()`].
///
/// # Errors
/// As [`sum_axis()`].
#[op("galatea::mean.axis", backward(x, axis) = |grad, x, axis| along(grad, x, axis, true))]
pub fn mean_axis(x: &Tensor, axis: isize) -> Result<Tensor> {
    over(x, axis, true)
}

fn over(x: &Tensor, axis: isize, is_mean: bool) -> Result<Tensor> {
    let (at, axes) = around(x, axis)?;
    let divisor = if is_mean { axes[1].clone() } else { Dim::from(1) };
    let mut dims = x.dims();
    dims.remove(at);
    sums(x, &axes, &divisor, x.dtype())?.reshape(dims)
}

/// The gradient of [`over`].
fn along(grad: &Tensor, x: &Tensor, axis: isize, is_mean: bool) -> Result<Tensor> {
    let (_, dims) = around(x, axis)?;
    let divisor = if is_mean { dims[1].clone() } else { Dim::from(1) };
    repeated(grad, &dims, &divisor)?.reshape(x.dims())
}
