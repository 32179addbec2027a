//! Steps of optimizers, which update weights in place. They run without gradients, so that they take the weights of a training.
//!
//! A training step that is recorded takes weights and the state of the optimizer as inputs, and returns them. AdamW needs the number of the step, which is therefore an
//! element of a tensor that [`count_step()`] increments.

use galatea::ops::{Any, Tensor, no_grad};
use galatea::prelude::*;
use galatea::{Dtype, op};

use super::wide;
use crate::{AdamW, kernels};

/// The elements of a block, the number that is compiled with this crate.
const BLOCK: usize = 1024;

/// A step of AdamW (arXiv 1711.05101), as [`adamw`](crate::adamw()) of the crate's root: updates `weights`, and the moments `m` and `v` of their gradients, in place.
///
/// All have the same extents; `gradients` have the dtype of the weights, and `m` and `v` are `f32`, or `f64` for `f64` weights, and zeros before the first step. `step` is
/// the number of the step, one `i64` without axes: call [`count_step()`] before the steps of all weights. Weights are rounded once: a training in `f16` or `bf16` keeps weights of
/// `f32`, and [converts](super::convert()) them for the model.
///
/// # Errors
/// [`OpsError::Dims`](galatea::ops::OpsError::Dims) and [`OpsError::OpDtype`](galatea::ops::OpsError::OpDtype) for tensors that do not fit,
/// [`Error::ArgumentValue`] for a parameter outside its range (`beta1` and `beta2` are from 0 to below 1, the others finite and at least 0), and those of a launch.
///
/// ```
/// # use galatea::Dtype;
/// # use galatea::ops::Tensor;
/// # use galatea::prelude::*;
/// # use kernel_library::{AdamW, ops};
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let mut weight = Tensor::from(device.tensor(&[1.0f32, 1.0])?).requires_grad()?;
/// let (mut m, mut v) = (weight.zeros_like()?, weight.zeros_like()?);
/// let mut step = Tensor::zeros(&device, Dtype::I64, [0usize; 0])?;
/// let parameters = AdamW { lr: 0.1, weight_decay: 0.0, ..AdamW::default() };
///
/// let gradient = ops::sum(&ops::mul(&weight, &weight)?)?.backward()?.take(&weight).unwrap();
/// ops::count_step(&mut step)?;
/// ops::adamw(&mut weight, &gradient, &mut m, &mut v, &step, &parameters)?;
/// let weights = weight.to_vec::<f32>()?; // the first step is as long as the learning rate
/// assert!(weights.iter().all(|weight| (weight - 0.9).abs() < 1e-5));
/// # Ok(())
/// # }
/// ```
pub fn adamw(weights: &mut Tensor, gradients: &Tensor, m: &mut Tensor, v: &mut Tensor, step: &Tensor, parameters: &AdamW) -> Result<()> {
    let AdamW { lr, beta1, beta2, eps, weight_decay } = *parameters;
    let [lr, beta1, beta2, eps, weight_decay] = [lr, beta1, beta2, eps, weight_decay].map(decimal);
    no_grad(|| adamw_step(weights, gradients, m, v, step, lr, beta1, beta2, eps, weight_decay))
}

/// The number with the shortest decimal that rounds to this one, so that 0.9 stays 0.9 in `f64`, and in the text of a graph.
fn decimal(number: f32) -> f64 {
    number.to_string().parse().unwrap_or(f64::from(number))
}

/// The op of [`adamw()`].
///
/// # Errors
/// As [`adamw()`], and [`OpsError::NoBackward`](galatea::ops::OpsError::NoBackward) for tensors through which gradients flow, outside of [`no_grad`].
#[allow(clippy::too_many_arguments, reason = "the schema of an op has numbers, and no structs of them")]
#[op("galatea::adamw_")]
pub fn adamw_step(
    weights: &mut Tensor,
    gradients: &Tensor,
    m: &mut Tensor,
    v: &mut Tensor,
    step: &Tensor,
    lr: f64,
    beta1: f64,
    beta2: f64,
    eps: f64,
    weight_decay: f64,
) -> Result<()> {
    const OP: &str = "galatea::adamw_";
    expect_like(OP, weights, gradients, &[("m", m), ("v", v)])?;
    step.expect_dtype(OP, "step", Dtype::I64)?;
    step.expect_dims(OP, "step", [0i64; 0])?;
    expect_magnitudes(OP, &[("lr", lr), ("eps", eps), ("weight_decay", weight_decay)])?;
    for (argument, decay) in [("beta1", beta1), ("beta2", beta2)] {
        expect_number(OP, argument, decay, (0.0..1.0).contains(&decay), "a number from 0 to below 1 is expected")?;
    }
    let n = weights.numel();
    with_wide!(weights.dtype(), A => {
        let [lr, beta1, beta2, eps, weight_decay] = [lr, beta1, beta2, eps, weight_decay].map(|number| number as A);
        kernels::adamw_counted::<Any, A, BLOCK>(weights, gradients, m, v, step, &n, lr, beta1, beta2, eps, weight_decay)
            .grid(n.cdiv(BLOCK))
            .launch()
    })
}

/// Adds 1 to the number of a step, one `i64` without axes.
///
/// # Errors
/// [`OpsError::Dims`](galatea::ops::OpsError::Dims) and [`OpsError::OpDtype`](galatea::ops::OpsError::OpDtype) for another tensor, and those of a launch.
#[op("galatea::count_step_")]
pub fn count_step(step: &mut Tensor) -> Result<()> {
    step.expect_dtype("galatea::count_step_", "step", Dtype::I64)?;
    step.expect_dims("galatea::count_step_", "step", [0i64; 0])?;
    kernels::count_step(step).grid(1).launch()
}

/// A step of stochastic gradient descent: `weights -= lr * (gradients + weight_decay * weights)`, in place. Both tensors have the same extents and dtype.
///
/// # Errors
/// As [`adamw()`].
pub fn sgd(weights: &mut Tensor, gradients: &Tensor, lr: f64, weight_decay: f64) -> Result<()> {
    no_grad(|| sgd_step(weights, gradients, lr, weight_decay))
}

#[op("galatea::sgd_")]
fn sgd_step(weights: &mut Tensor, gradients: &Tensor, lr: f64, weight_decay: f64) -> Result<()> {
    const OP: &str = "galatea::sgd_";
    expect_like(OP, weights, gradients, &[])?;
    expect_magnitudes(OP, &[("lr", lr), ("weight_decay", weight_decay)])?;
    let (n, mut none) = (weights.numel(), weights.new_empty(wide(weights.dtype()), [0i64])?);
    with_wide!(weights.dtype(), A => {
        kernels::sgd::<Any, A, false, false, BLOCK>(weights, gradients, &mut none, &n, lr as A, 0.0, weight_decay as A)
            .grid(n.cdiv(BLOCK))
            .launch()
    })
}

/// A step of stochastic gradient descent with momentum, in place: `velocity = momentum * velocity + g` and `weights -= lr * velocity`, with
/// `g = gradients + weight_decay * weights`. With `nesterov`, `weights -= lr * (g + momentum * velocity)`.
///
/// All tensors have the same extents; `velocity` is `f32`, or `f64` for `f64` weights, and zeros before the first step.
///
/// # Errors
/// As [`adamw()`].
pub fn sgd_momentum(
    weights: &mut Tensor,
    gradients: &Tensor,
    velocity: &mut Tensor,
    lr: f64,
    momentum: f64,
    weight_decay: f64,
    nesterov: bool,
) -> Result<()> {
    no_grad(|| sgd_momentum_step(weights, gradients, velocity, lr, momentum, weight_decay, nesterov))
}

#[op("galatea::sgd_.momentum")]
fn sgd_momentum_step(
    weights: &mut Tensor,
    gradients: &Tensor,
    velocity: &mut Tensor,
    lr: f64,
    momentum: f64,
    weight_decay: f64,
    nesterov: bool,
) -> Result<()> {
    const OP: &str = "galatea::sgd_.momentum";
    expect_like(OP, weights, gradients, &[("velocity", velocity)])?;
    expect_magnitudes(OP, &[("lr", lr), ("momentum", momentum), ("weight_decay", weight_decay)])?;
    let n = weights.numel();
    macro_rules! launch {
        ($nesterov:literal) => {
            with_wide!(weights.dtype(), A => {
                let [lr, momentum, weight_decay] = [lr, momentum, weight_decay].map(|number| number as A);
                kernels::sgd::<Any, A, true, $nesterov, BLOCK>(weights, gradients, velocity, &n, lr, momentum, weight_decay)
                    .grid(n.cdiv(BLOCK))
                    .launch()
            })
        };
    }
    if nesterov { launch!(true) } else { launch!(false) }
}

/// Checks that gradients are of the weights, and that a state of the optimizer is of them too, in the dtype in which kernels compute.
fn expect_like(op: &'static str, weights: &Tensor, gradients: &Tensor, states: &[(&'static str, &Tensor)]) -> Result<()> {
    gradients.expect_dims(op, "gradients", weights.dims())?;
    gradients.expect_dtype(op, "gradients", weights.dtype())?;
    for (argument, state) in states {
        state.expect_dims(op, argument, weights.dims())?;
        state.expect_dtype(op, argument, wide(weights.dtype()))?;
    }
    Ok(())
}

fn expect_magnitudes(op: &'static str, numbers: &[(&'static str, f64)]) -> Result<()> {
    let mut numbers = numbers.iter();
    numbers.try_for_each(|(argument, number)| {
        expect_number(op, argument, *number, number.is_finite() && *number >= 0.0, "a finite number of at least 0 is expected")
    })
}

fn expect_number(op: &'static str, argument: &'static str, number: f64, is_in_range: bool, expected: &str) -> Result<()> {
    if is_in_range {
        return Ok(());
    }
    let (value, expected) = (number.to_string(), expected.to_owned());
    Err(Error::ArgumentValue { function: op, argument, value, expected, help: "the defaults of `AdamW` are usual values" })
}
