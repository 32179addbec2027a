//! Guards: the checks of a run's inputs. Unless there is an error, they allocate nothing.

use kernel_runtime::ops::Tensor;
use kernel_runtime::{Device, DimValues, Error};

use crate::error::RunError;
use crate::plan::PlanInput;

/// Checks the inputs of a run on a device, and sets the values of the dims.
pub(crate) fn check(expected: &[PlanInput], device: Device, inputs: &[&Tensor], dims: &mut DimValues) -> Result<(), RunError> {
    if inputs.len() != expected.len() {
        let names = expected.iter().map(|input| input.name.clone()).collect::<Vec<_>>().join(", ");
        return Err(RunError::InputCount { expected: expected.len(), names, given: inputs.len() });
    }
    dims.clear();
    for (tensor, declared) in inputs.iter().zip(expected) {
        let input = || declared.name.clone();
        if tensor.dtype() != declared.ty.dtype {
            return Err(RunError::InputDtype { input: input(), expected: declared.ty.dtype, found: tensor.dtype() });
        }
        if tensor.rank() != declared.ty.dims.len() {
            return Err(RunError::InputRank { input: input(), expected: declared.ty.dims.len(), found: tensor.rank() });
        }
        let Some(extents) = tensor.extents() else { return Err(RunError::RecordedInput { input: input() }) };
        match tensor.device() {
            Some(found) if found == device => {}
            Some(found) => return Err(RunError::InputDevice { input: input(), expected: device, found }),
            None => return Err(RunError::RecordedInput { input: input() }),
        }
        if tensor.flows() {
            return Err(RunError::InputGradient { input: input() });
        }
        for (axis, (extent, dim)) in extents.iter().zip(&declared.ty.dims).enumerate() {
            if dim.is_named()
                && let Err(error) = dims.set(dim, number(*extent))
            {
                let Error::Dim(error) = error else { return Err(error.into()) };
                return Err(RunError::InputExtent { input: input(), axis, error: Box::new(error) });
            }
        }
    }
    for (tensor, declared) in inputs.iter().zip(expected) {
        for (axis, (extent, dim)) in tensor.extents().unwrap_or_default().iter().zip(&declared.ty.dims).enumerate() {
            let (expected, found) = (dim.value(dims)?, number(*extent));
            if expected != found {
                return Err(RunError::InputMismatch { input: declared.name.clone(), axis, dim: dim.to_string(), expected, found });
            }
        }
    }
    Ok(())
}

/// An extent of a tensor. A tensor has at most `isize::MAX` elements.
fn number(extent: usize) -> i64 {
    i64::try_from(extent).unwrap_or(i64::MAX)
}
