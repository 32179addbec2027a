//! Models: values with named parameters.

use kernel_lang::dtype::Dtype;
use kernel_lang::scalar::{self, Scalar};
use rayon::prelude::*;

use super::{OpsError, Tensor};
use crate::{Device, Error, Result};

/// A model, or a part of one: a value with named parameters. `#[derive(Module)]` implements it for structs of modules and tensors.
///
/// A parameter's name is the path of fields to it, such as `linear1.weight`; an element of a `Vec` has a number, as in `layers.0.weight`.
///
/// ```
/// # use kernel_runtime::{Device, Result, ops::{Module, Tensor}};
/// struct Scale {
///     factors: Vec<Tensor>,
/// }
///
/// // As `#[derive(Module)]` writes it.
/// impl Module for Scale {
///     fn visit(&self, path: &str, f: &mut dyn FnMut(&str, &Tensor)) {
///         self.factors.visit(&kernel_runtime::ops::path_of(path, "factors"), f);
///     }
///
///     fn visit_mut(&mut self, path: &str, f: &mut dyn FnMut(&str, &mut Tensor) -> Result<()>) -> Result<()> {
///         self.factors.visit_mut(&kernel_runtime::ops::path_of(path, "factors"), f)
///     }
/// }
///
/// # fn main() -> Result<()> {
/// let device = Device::cpu();
/// let scale = Scale { factors: vec![device.tensor(&[1.0f32, 2.0])?.into(), device.tensor(&[3.0f32])?.into()] };
/// let names: Vec<String> = scale.parameters().into_iter().map(|(name, _)| name).collect();
/// assert_eq!(names, ["factors.0", "factors.1"]);
/// # Ok(())
/// # }
/// ```
pub trait Module {
    /// Calls the function with the name of each parameter and the parameter, in the order of fields. `path` is the name of the module in its model.
    fn visit(&self, path: &str, f: &mut dyn FnMut(&str, &Tensor));

    /// [`Module::visit`] with parameters that the function may replace. Ends with the first error.
    ///
    /// # Errors
    /// Those of the function.
    fn visit_mut(&mut self, path: &str, f: &mut dyn FnMut(&str, &mut Tensor) -> Result<()>) -> Result<()>;

    /// The parameters with their names. The tensors are handles of the module's own.
    fn parameters(&self) -> Vec<(String, Tensor)> {
        let mut parameters = Vec::new();
        self.visit("", &mut |name, tensor| parameters.push((name.to_owned(), tensor.clone())));
        parameters
    }

    /// The module with its parameters in a dtype, on a device, or both: `to(Dtype::Bf16)`, `to(&device)`, `to((Dtype::Bf16, &device))`.
    ///
    /// A dtype is that of the floats: each element is rounded once, to nearest even, and other parameters keep their dtype. A number beyond the largest one of the dtype
    /// becomes infinite, or the largest one of an 8-bit float. The host converts, so all devices get the same bits. A parameter that changes neither dtype nor device shares
    /// its memory with the old one. A parameter that requires its gradient still does.
    ///
    /// ```
    /// # use kernel_runtime::{Device, Dtype, Result, ops::{Module, Tensor}};
    /// # fn main() -> Result<()> {
    /// let device = Device::cpu();
    /// let layers = vec![Tensor::from(device.tensor(&[1.0f32, 0.1])?), device.tensor(&[7i32])?.into()];
    /// let layers = layers.to(Dtype::Bf16)?;
    /// assert_eq!(layers[0].to_bytes()?, [0x80, 0x3f, 0xcd, 0x3d]);
    /// assert_eq!(layers[1].dtype(), Dtype::I32);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`OpsError::ModelDtype`] for a dtype that is no float, and those of [`Tensor::to_device`].
    fn to(mut self, options: impl Into<TensorOptions>) -> Result<Self>
    where
        Self: Sized,
    {
        let TensorOptions { dtype, device } = options.into();
        if let Some(dtype) = dtype.filter(|dtype| !dtype.is_float()) {
            return Err(Error::Ops(OpsError::ModelDtype { dtype }));
        }
        self.visit_mut("", &mut |_, tensor| {
            let dtype = dtype.filter(|_| tensor.dtype().is_float()).unwrap_or(tensor.dtype());
            let moved = placed(&tensor.detach(), dtype, device)?;
            *tensor = if tensor.needs_grad() { moved.requires_grad()? } else { moved };
            Ok(())
        })?;
        Ok(self)
    }

    /// The module with parameters that [require](Tensor::requires_grad) their gradients, but for those whose elements are no floating-point numbers.
    ///
    /// # Errors
    /// None for the modules of this crate.
    fn requires_grad(mut self) -> Result<Self>
    where
        Self: Sized,
    {
        self.visit_mut("", &mut |_, tensor| {
            if tensor.dtype().is_float() {
                *tensor = tensor.clone().requires_grad()?;
            }
            Ok(())
        })?;
        Ok(self)
    }
}

/// What [`Module::to`] changes of parameters: a dtype, a device, or both.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TensorOptions {
    /// The dtype of floats.
    pub dtype: Option<Dtype>,
    /// The device.
    pub device: Option<Device>,
}

impl From<Dtype> for TensorOptions {
    fn from(dtype: Dtype) -> TensorOptions {
        TensorOptions { dtype: Some(dtype), device: None }
    }
}

impl From<&Device> for TensorOptions {
    fn from(device: &Device) -> TensorOptions {
        TensorOptions { dtype: None, device: Some(*device) }
    }
}

impl From<(Dtype, &Device)> for TensorOptions {
    fn from((dtype, device): (Dtype, &Device)) -> TensorOptions {
        TensorOptions { dtype: Some(dtype), device: Some(*device) }
    }
}

/// The tensor with its elements in a dtype, each rounded once, on a device or where it is.
fn placed(tensor: &Tensor, dtype: Dtype, device: Option<Device>) -> Result<Tensor> {
    let Some(device) = device.or(tensor.device()).filter(|_| tensor.dtype() != dtype) else {
        return device.map_or_else(|| Ok(tensor.clone()), |device| tensor.to_device(&device));
    };
    let (from, bytes) = (tensor.dtype(), tensor.to_bytes()?);
    let mut converted = vec![0; bytes.len() / from.bytes() * dtype.bytes()];
    converted.par_chunks_exact_mut(dtype.bytes()).zip(bytes.par_chunks_exact(from.bytes())).with_min_len(1 << 12).for_each(
        |(to, element)| {
            let bits = element.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
            to.copy_from_slice(&scalar::cast(Scalar::from_bits(from, bits), dtype).bits().to_le_bytes()[..dtype.bytes()]);
        },
    );
    Tensor::from_bytes(&device, dtype, tensor.dims(), &converted)
}

/// The name of a field of the module `path`: `linear1.weight`. The path of a whole model is empty.
pub fn path_of(path: &str, field: &str) -> String {
    if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") }
}

impl Module for Tensor {
    fn visit(&self, path: &str, f: &mut dyn FnMut(&str, &Tensor)) {
        f(path, self);
    }

    fn visit_mut(&mut self, path: &str, f: &mut dyn FnMut(&str, &mut Tensor) -> Result<()>) -> Result<()> {
        f(path, self)
    }
}

impl<M: Module> Module for Vec<M> {
    fn visit(&self, path: &str, f: &mut dyn FnMut(&str, &Tensor)) {
        self.iter().enumerate().for_each(|(number, module)| module.visit(&path_of(path, &number.to_string()), f));
    }

    fn visit_mut(&mut self, path: &str, f: &mut dyn FnMut(&str, &mut Tensor) -> Result<()>) -> Result<()> {
        self.iter_mut().enumerate().try_for_each(|(number, module)| module.visit_mut(&path_of(path, &number.to_string()), f))
    }
}

impl<M: Module> Module for Option<M> {
    fn visit(&self, path: &str, f: &mut dyn FnMut(&str, &Tensor)) {
        self.iter().for_each(|module| module.visit(path, f));
    }

    fn visit_mut(&mut self, path: &str, f: &mut dyn FnMut(&str, &mut Tensor) -> Result<()>) -> Result<()> {
        self.iter_mut().try_for_each(|module| module.visit_mut(path, f))
    }
}

impl<M: Module> Module for Box<M> {
    fn visit(&self, path: &str, f: &mut dyn FnMut(&str, &Tensor)) {
        (**self).visit(path, f);
    }

    fn visit_mut(&mut self, path: &str, f: &mut dyn FnMut(&str, &mut Tensor) -> Result<()>) -> Result<()> {
        (**self).visit_mut(path, f)
    }
}
