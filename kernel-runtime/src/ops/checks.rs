//! Checks of the arguments of ops.

use kernel_lang::dtype::Dtype;

use super::recorder::TensorType;
use super::{IntoDims, OpsError, Tensor};
use crate::{Error, Result};

impl Tensor {
    /// Checks the extents of an argument of an op.
    ///
    /// ```
    /// # use kernel_runtime::{Device, Dtype, Result, ops::Tensor};
    /// # fn main() -> Result<()> {
    /// let weight = Tensor::zeros(&Device::cpu(), Dtype::F32, [3, 4])?;
    /// weight.expect_dims("mylib::linear", "weight", [3, 4])?;
    /// let error = weight.expect_dims("mylib::linear", "weight", [3, 5]).unwrap_err();
    /// assert_eq!(error.to_string(), "`mylib::linear`: `weight` is f32[3, 4], and [3, 5] is expected");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`OpsError::Dims`] for other extents or another number of them, and [`Error::Dim`] if that is not decided for all values of the dims.
    #[track_caller]
    pub fn expect_dims(&self, op: &'static str, argument: &'static str, expected: impl IntoDims) -> Result<()> {
        let (found, expected) = (self.dims(), expected.into_dims());
        let mut fits = found.len() == expected.len();
        for (found, expected) in found.iter().zip(&expected) {
            fits = fits && found.is_eq(expected)?;
        }
        if fits {
            return Ok(());
        }
        let found = TensorType { dtype: self.dtype(), dims: found }.to_string();
        Err(Error::Ops(OpsError::Dims { op, argument, found, expected }))
    }

    /// Checks the dtype of an argument of an op.
    ///
    /// ```
    /// # use kernel_runtime::{Device, Dtype, Result, ops::Tensor};
    /// # fn main() -> Result<()> {
    /// let bias = Tensor::zeros(&Device::cpu(), Dtype::F16, [4])?;
    /// let error = bias.expect_dtype("mylib::linear", "bias", Dtype::F32).unwrap_err();
    /// assert_eq!(error.to_string(), "`mylib::linear`: `bias` is f16[4], and `f32` elements are expected\nhelp: convert its elements");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`OpsError::OpDtype`] for another dtype.
    pub fn expect_dtype(&self, op: &'static str, argument: &'static str, expected: Dtype) -> Result<()> {
        if self.dtype() == expected {
            return Ok(());
        }
        let found = TensorType { dtype: self.dtype(), dims: self.dims() }.to_string();
        Err(Error::Ops(OpsError::OpDtype { op, argument, found, expected }))
    }
}
