//! Tensors of ops as arguments of launches.

use super::Tensor;
use crate::tensor::element::ElementArg;
use crate::tensor::pointer::{Pointer, PtrArg, PtrMutArg, Sealed, ViewArg, ViewMutArg};
use crate::tensor::shape::Shape;

impl Sealed for &Tensor {}
impl Sealed for &mut Tensor {}
impl Sealed for &&Tensor {}
impl Sealed for &mut &mut Tensor {}

impl<'a, T: ElementArg> PtrArg<'a, T> for &'a Tensor {
    fn pointer(self) -> Pointer<'a> {
        self.argument::<T>().0
    }
}

/// For a variable that is a reference already.
impl<'a, T: ElementArg> PtrArg<'a, T> for &'a &Tensor {
    fn pointer(self) -> Pointer<'a> {
        self.argument::<T>().0
    }
}

impl<'a, T: ElementArg> PtrMutArg<'a, T> for &'a mut Tensor {
    #[track_caller]
    fn pointer(self) -> Pointer<'a> {
        self.argument_mut::<T>().0
    }
}

/// For a variable that is a mutable reference already. Passing it directly would move it.
impl<'a, T: ElementArg> PtrMutArg<'a, T> for &'a mut &mut Tensor {
    #[track_caller]
    fn pointer(self) -> Pointer<'a> {
        self.argument_mut::<T>().0
    }
}

impl<'a, T: ElementArg> ViewArg<'a, T> for &'a Tensor {
    fn shaped(self) -> (Pointer<'a>, Shape) {
        self.argument::<T>()
    }
}

impl<'a, T: ElementArg> ViewArg<'a, T> for &'a &Tensor {
    fn shaped(self) -> (Pointer<'a>, Shape) {
        self.argument::<T>()
    }
}

impl<'a, T: ElementArg> ViewMutArg<'a, T> for &'a mut Tensor {
    #[track_caller]
    fn shaped(self) -> (Pointer<'a>, Shape) {
        self.argument_mut::<T>()
    }
}

impl<'a, T: ElementArg> ViewMutArg<'a, T> for &'a mut &mut Tensor {
    #[track_caller]
    fn shaped(self) -> (Pointer<'a>, Shape) {
        self.argument_mut::<T>()
    }
}
