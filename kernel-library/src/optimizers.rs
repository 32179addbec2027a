//! Steps of optimizers, which update weights in place.

use galatea::prelude::*;

use crate::call::{Call, Of};
use crate::{AsTensor, AsTensorMut, kernels};

/// The elements of a block, one of the sizes that are compiled with this crate.
const BLOCK_SIZE: usize = 1024;

/// The parameters of [`adamw()`]. The defaults are those of PyTorch: 1e-3, 0.9, 0.999, 1e-8 and 0.01.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamW {
    /// The learning rate.
    pub lr: f32,
    /// The decay of the mean of the gradients.
    pub beta1: f32,
    /// The decay of the mean of their squares.
    pub beta2: f32,
    /// A number that keeps the divisor from 0.
    pub eps: f32,
    /// The part of a weight that a step subtracts, for a learning rate of 1.
    pub weight_decay: f32,
}

impl Default for AdamW {
    fn default() -> AdamW {
        AdamW { lr: 1e-3, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.01 }
    }
}

/// A step of AdamW (arXiv 1711.05101): updates weights, and the two moments of their gradients, in place.
///
/// With the gradient `g` and the number `t` of the step:
///
/// | | |
/// |---|---|
/// | `m` | `beta1 * m + (1 - beta1) * g` |
/// | `v` | `beta2 * v + (1 - beta2) * g * g` |
/// | `weights` | `weights * (1 - lr * weight_decay) - lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)` |
///
/// The four tensors have the same shape, of any rank. `m` and `v` are zeros before the first step, which has the number 1. Every [`Float`] is accepted,
/// computed in `f32`; weights are rounded once. A training in `f16` or `bf16` keeps a copy of the weights in `f32`, because small steps round to nothing.
///
/// # Errors
/// [`Error::ArgumentShape`] or [`Error::ArgumentDevice`] for tensors that do not match; [`Error::ArgumentValue`] for a parameter outside its range
/// (`beta1` and `beta2` are from 0 to below 1, the others finite and at least 0) or a step below 1; or an error of a launch.
///
/// ```
/// # use galatea::prelude::*;
/// # use kernel_library::AdamW;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let (mut weights, gradients) = (device.tensor(&[1.0f32, 1.0])?, device.tensor(&[0.3f32, -20.0])?);
/// let (mut m, mut v) = (device.zeros::<f32>(2)?, device.zeros::<f32>(2)?);
/// let parameters = AdamW { lr: 0.1, weight_decay: 0.0, ..AdamW::default() };
/// kernel_library::adamw(&mut weights, &gradients, &mut m, &mut v, &parameters, 1)?;
/// let weights = weights.to_vec()?; // the first step is as long as the learning rate
/// assert!((weights[0] - 0.9).abs() < 1e-5 && (weights[1] - 1.1).abs() < 1e-5);
/// # Ok(())
/// # }
/// ```
pub fn adamw<T: Float>(
    weights: &mut impl AsTensorMut<T>,
    gradients: &impl AsTensor<T>,
    m: &mut impl AsTensorMut<f32>,
    v: &mut impl AsTensorMut<f32>,
    parameters: &AdamW,
    step: i64,
) -> Result<()> {
    let (mut weights, gradients) = (weights.as_tensor_mut(), gradients.as_tensor());
    let (mut m, mut v) = (m.as_tensor_mut(), v.as_tensor_mut());
    let all = weights.as_view();
    let call = Call::new("adamw", "weights", &all);
    call.expect("gradients", &gradients, all.shape(), Of::shape("weights"))?;
    call.expect("m", &m.as_view(), all.shape(), Of::shape("weights"))?;
    call.expect("v", &v.as_view(), all.shape(), Of::shape("weights"))?;
    let AdamW { lr, beta1, beta2, eps, weight_decay } = *parameters;
    call.expect_magnitude("lr", lr, "a usual value is 1e-3")?;
    let decay = "a number from 0 to below 1 is expected";
    call.expect_value("beta1", beta1, (0.0..1.0).contains(&beta1), decay, "a usual value is 0.9")?;
    call.expect_value("beta2", beta2, (0.0..1.0).contains(&beta2), decay, "a usual value is 0.999")?;
    call.expect_magnitude("eps", eps, "a usual value is 1e-8")?;
    call.expect_magnitude("weight_decay", weight_decay, "a usual value is 0.01")?;
    call.expect_value("step", step, step >= 1, "a number of at least 1 is expected", "count steps from 1")?;
    let n = all.len();
    if n > 0 {
        kernels::adamw::<T, BLOCK_SIZE>(&mut weights, gradients, &mut m, &mut v, n, lr, beta1, beta2, eps, weight_decay, step)
            .grid(cdiv(n, BLOCK_SIZE))
            .launch()?;
    }
    Ok(())
}
