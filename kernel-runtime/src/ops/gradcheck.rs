//! Gradients beside finite differences.

use std::fmt;

use super::{OpsError, Tensor};
use crate::{Dtype, Error, Result};

/// How [`gradcheck`] compares.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct GradTolerance {
    /// The distance of an element to either side of which the function is computed, 1e-6 by default.
    pub step: f64,
    /// The allowed error, 1e-6 by default: of a gradient below 1 absolute, of a larger one relative.
    pub error: f64,
    /// The most elements of an input that are moved, 64 by default: of a larger one, as many at equal distances.
    pub elements: usize,
}

impl GradTolerance {
    /// A step and an allowed error for a function that computes in a narrower type than `f64`.
    #[must_use]
    pub fn with(step: f64, error: f64) -> GradTolerance {
        GradTolerance { step, error, ..GradTolerance::default() }
    }
}

impl Default for GradTolerance {
    fn default() -> GradTolerance {
        GradTolerance { step: 1e-6, error: 1e-6, elements: 64 }
    }
}

/// The result of a [`gradcheck`] in which all gradients fit: how many there were, and the greatest error.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GradCheck {
    /// The number of elements that were moved.
    pub checked: usize,
    /// The greatest error.
    pub max_error: f64,
}

impl fmt::Display for GradCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gradcheck: ok, max error {:.0e} in {} elements", self.max_error, self.checked)
    }
}

/// Compares the gradients of a function with finite differences: each element of each `f64` input is moved to either side. Inputs of other dtypes are constants.
///
/// The gradients of all outputs are computed, from fixed numbers as the outputs' gradients.
///
/// # Errors
/// [`OpsError::WrongGradient`] for the first gradient that does not fit, [`OpsError::NothingToCheck`] if no input is `f64`, and the errors of the function and of
/// [`Tensor::backward_from`].
pub fn gradcheck(inputs: &[Tensor], tolerance: GradTolerance, function: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>) -> Result<GradCheck> {
    let is_moved = |input: &Tensor| input.dtype() == Dtype::F64;
    if !inputs.iter().any(is_moved) {
        return Err(Error::Ops(OpsError::NothingToCheck));
    }
    let leaf = |input: &Tensor| if is_moved(input) { input.detach().requires_grad() } else { Ok(input.detach()) };
    let leaves = inputs.iter().map(leaf).collect::<Result<Vec<_>>>()?;
    // A backward pass frees what the function keeps, so each output has a call of its own.
    let mut analytic: Vec<Option<Vec<f64>>> = vec![None; inputs.len()];
    let count = function(&leaves)?.len();
    for number in 0..count {
        let outputs = function(&leaves)?;
        let Some(output) = outputs.get(number).filter(|output| output.needs_grad()) else { continue };
        let grads = output.backward_from(&weights_like(output, number)?)?;
        for (leaf, sum) in leaves.iter().zip(&mut analytic) {
            if let Some(grad) = grads.get(leaf) {
                let grad = grad.to_vec::<f64>()?;
                *sum = Some(sum.take().map_or_else(|| grad.clone(), |sum| sum.iter().zip(&grad).map(|(a, b)| a + b).collect()));
            }
        }
    }
    let mut result = GradCheck { checked: 0, max_error: 0.0 };
    for (input, grads) in analytic.iter().enumerate() {
        if !is_moved(&inputs[input]) {
            continue;
        }
        let values = inputs[input].to_vec::<f64>()?;
        let distance = values.len().div_ceil(tolerance.elements.max(1)).max(1);
        for element in (0..values.len()).step_by(distance) {
            let at = |step: f64| {
                let mut moved = inputs.to_vec();
                let mut values = values.clone();
                values[element] += step;
                moved[input] = like(&inputs[input], &values)?;
                sum_of(&function(&moved)?)
            };
            let numeric = (at(tolerance.step)? - at(-tolerance.step)?) / (2.0 * tolerance.step);
            let analytic = grads.as_ref().map_or(0.0, |grads| grads[element]);
            let error = (numeric - analytic).abs() / numeric.abs().max(1.0);
            if error.is_nan() || error > tolerance.error {
                return Err(Error::Ops(OpsError::WrongGradient { input, element, analytic, numeric }));
            }
            result.checked += 1;
            result.max_error = result.max_error.max(error);
        }
    }
    Ok(result)
}

/// A number for an element of an output: different ones for neighbours, all below 2.
fn weight(output: usize, element: usize) -> f64 {
    0.5 + ((7 * element + 3 * output) % 11) as f64 / 8.0
}

fn weights_like(output: &Tensor, number: usize) -> Result<Tensor> {
    let len = usize::try_from(output.numel().known().unwrap_or(0)).unwrap_or(0);
    let weights: Vec<f64> = (0..len).map(|element| weight(number, element)).collect();
    match output.dtype() {
        Dtype::F64 => like(output, &weights),
        found => Err(Error::Ops(OpsError::WrongDtype { expected: Dtype::F64, found })),
    }
}

fn like(tensor: &Tensor, values: &[f64]) -> Result<Tensor> {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let device = tensor.device().unwrap_or_else(crate::Device::cpu);
    Tensor::from_bytes(&device, Dtype::F64, &*tensor.dims(), &bytes)
}

/// The sum of all `f64` outputs, each element times its weight.
fn sum_of(outputs: &[Tensor]) -> Result<f64> {
    let mut sum = 0.0;
    for (number, output) in outputs.iter().enumerate().filter(|(_, output)| output.dtype() == Dtype::F64) {
        sum += output.to_vec::<f64>()?.iter().enumerate().map(|(element, value)| value * weight(number, element)).sum::<f64>();
    }
    Ok(sum)
}
