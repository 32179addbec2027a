//! The tensors that the functions of this crate accept: whole tensors and views.

use galatea::prelude::*;

/// A tensor argument that a function reads: a [`Tensor`], a [`TensorView`] or a [`TensorViewMut`], passed by reference.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let x = Device::cpu().zeros::<f32>([4, 2])?;
/// assert_eq!(kernel_library::softmax(&x)?.shape(), [4, 2]);
/// assert_eq!(kernel_library::softmax(&x.slice(1..3)?)?.shape(), [2, 2]);
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tensor of `{T}`",
    note = "pass a reference to a `Tensor<{T}>`, a `TensorView<{T}>` or a `TensorViewMut<{T}>`"
)]
pub trait AsTensor<T: Element> {
    /// A view of all elements.
    fn as_tensor(&self) -> TensorView<'_, T>;
}

/// A tensor argument that a function updates: a [`Tensor`] or a [`TensorViewMut`], passed by mutable reference.
///
/// ```
/// # use galatea::prelude::*;
/// # use kernel_library::AdamW;
/// # fn main() -> galatea::Result<()> {
/// # let device = Device::cpu();
/// # let [gradients, mut m, mut v] = [device.zeros::<f32>(2)?, device.zeros(2)?, device.zeros(2)?];
/// let mut all = device.zeros::<f32>(10)?;
/// let mut weights = all.slice_mut(4..6)?;
/// kernel_library::adamw(&mut weights, &gradients, &mut m, &mut v, &AdamW::default(), 1)?;
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tensor of `{T}` that can be written",
    note = "pass a mutable reference to a `Tensor<{T}>` or a `TensorViewMut<{T}>`"
)]
pub trait AsTensorMut<T: Element>: AsTensor<T> {
    /// A mutable view of all elements.
    fn as_tensor_mut(&mut self) -> TensorViewMut<'_, T>;
}

impl<T: Element> AsTensor<T> for Tensor<T> {
    fn as_tensor(&self) -> TensorView<'_, T> {
        self.view()
    }
}

impl<T: Element> AsTensor<T> for TensorView<'_, T> {
    fn as_tensor(&self) -> TensorView<'_, T> {
        *self
    }
}

impl<T: Element> AsTensor<T> for TensorViewMut<'_, T> {
    fn as_tensor(&self) -> TensorView<'_, T> {
        self.as_view()
    }
}

/// For a variable that is a reference already.
impl<T: Element, A: AsTensor<T>> AsTensor<T> for &A {
    fn as_tensor(&self) -> TensorView<'_, T> {
        A::as_tensor(self)
    }
}

/// For a variable that is a mutable reference already.
impl<T: Element, A: AsTensor<T>> AsTensor<T> for &mut A {
    fn as_tensor(&self) -> TensorView<'_, T> {
        A::as_tensor(self)
    }
}

impl<T: Element> AsTensorMut<T> for Tensor<T> {
    fn as_tensor_mut(&mut self) -> TensorViewMut<'_, T> {
        self.view_mut()
    }
}

impl<T: Element> AsTensorMut<T> for TensorViewMut<'_, T> {
    fn as_tensor_mut(&mut self) -> TensorViewMut<'_, T> {
        self.view_mut()
    }
}

/// For a variable that is a mutable reference already.
impl<T: Element, A: AsTensorMut<T>> AsTensorMut<T> for &mut A {
    fn as_tensor_mut(&mut self) -> TensorViewMut<'_, T> {
        A::as_tensor_mut(self)
    }
}
