//! Models: values with named parameters.

use super::Tensor;
use crate::{Device, Result};

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

    /// The module with its parameters on a device.
    ///
    /// # Errors
    /// As [`Tensor::to_device`].
    fn to(mut self, device: &Device) -> Result<Self>
    where
        Self: Sized,
    {
        self.visit_mut("", &mut |_, tensor| {
            let moved = tensor.detach().to_device(device)?;
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
