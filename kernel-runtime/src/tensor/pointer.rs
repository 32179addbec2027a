//! Arguments for pointer and view parameters: an address, a length, and the owner of the memory.

use std::sync::Mutex;

use cudarc::driver::SyncOnDrop;
use kernel_lang::dtype::Dtype;

use crate::device::stream::{self, Queue};
use crate::ops::{Real, Traced};
use crate::tensor::cuda_slice::{self, CudaMemory};
use crate::tensor::element::ElementArg;
use crate::tensor::memory::{CudaBuffer, Memory};
use crate::tensor::shape::Shape;
use crate::tensor::view::{TensorView, TensorViewMut};
use crate::{Device, Element, Error, Result, Tensor};

mod sealed {
    pub trait Sealed {}
}
pub(crate) use sealed::Sealed;

/// An argument for a kernel parameter `Ptr<T>`: `&Tensor<T>`, a [`TensorView`], cudarc's `&CudaSlice<T>` and `&CudaView<T>`, or a
/// [`&ops::Tensor`](crate::ops::Tensor).
#[diagnostic::on_unimplemented(
    message = "a kernel cannot read `{Self}` as a tensor of `{T}`",
    note = "pass `&Tensor<{T}>`, a `TensorView<{T}>`, a `&CudaSlice<{T}>`, or an `&ops::Tensor` (for `Any`, only this); `device.tensor(&data)?` copies a slice or a `Vec` into a tensor"
)]
pub trait PtrArg<'a, T: ElementArg>: Sealed {
    /// The memory of the argument.
    #[doc(hidden)]
    fn pointer(self) -> Pointer<'a>;
}

/// An argument for a kernel parameter `PtrMut<T>`: `&mut Tensor<T>`, `&mut TensorViewMut<T>`, cudarc's `&mut CudaSlice<T>` and `&mut
/// CudaViewMut<T>`, or a [`&mut ops::Tensor`](crate::ops::Tensor).
#[diagnostic::on_unimplemented(
    message = "a kernel cannot write `{Self}` as a tensor of `{T}`",
    note = "pass `&mut Tensor<{T}>`, `&mut TensorViewMut<{T}>`, `&mut CudaSlice<{T}>`, or `&mut ops::Tensor` (for `Any`, only this); `device.tensor(&data)?` copies a slice or a `Vec` into a tensor"
)]
pub trait PtrMutArg<'a, T: ElementArg>: Sealed {
    /// The memory of the argument.
    #[doc(hidden)]
    fn pointer(self) -> Pointer<'a>;
}

/// An argument for a kernel parameter `View<T, RANK>`: `&Tensor<T>` or a [`TensorView`] with `RANK` axes. [`compare`](crate::compare) takes two.
#[diagnostic::on_unimplemented(
    message = "a kernel cannot read `{Self}` as a tensor of `{T}` with a shape",
    note = "pass `&Tensor<{T}>`, a `TensorView<{T}>`, or an `&ops::Tensor` (for `Any`, only this)"
)]
pub trait ViewArg<'a, T: ElementArg>: Sealed {
    /// The memory of the argument, and its shape and strides.
    #[doc(hidden)]
    fn shaped(self) -> (Pointer<'a>, Shape);
}

/// An argument for a kernel parameter `ViewMut<T, RANK>`: `&mut Tensor<T>` or `&mut TensorViewMut<T>` with `RANK` axes.
#[diagnostic::on_unimplemented(
    message = "a kernel cannot write `{Self}` as a tensor of `{T}` with a shape",
    note = "pass `&mut Tensor<{T}>`, `&mut TensorViewMut<{T}>`, or `&mut ops::Tensor` (for `Any`, only this)"
)]
pub trait ViewMutArg<'a, T: ElementArg>: Sealed {
    /// The memory of the argument, and its shape and strides.
    #[doc(hidden)]
    fn shaped(self) -> (Pointer<'a>, Shape);
}

/// Elements in memory that stays borrowed for `'a`.
#[derive(Clone, Copy)]
pub struct Pointer<'a> {
    pub(crate) address: u64,
    pub(crate) len: u64,
    pub(crate) owner: Owner<'a>,
}

/// The owner of the memory, which orders its uses on several streams.
#[derive(Clone, Copy)]
pub(crate) enum Owner<'a> {
    /// Memory of a device that has completed all work when a call returns: the CPU, or a simulated GPU.
    Idle(Device),
    Tensor(&'a CudaBuffer),
    Slice(CudaMemory<'a>),
    /// A tensor of ops, which a recorded launch can hold.
    Shared(&'a Real),
    /// There is no memory, and [`Args`](crate::launch::args::Args) refuses or records the launch.
    Deferred(Deferred<'a>),
}

/// An argument without memory.
#[derive(Clone, Copy)]
pub(crate) enum Deferred<'a> {
    /// A tensor of a recording.
    Traced(&'a Traced),
    /// A tensor whose dtype is not that of the parameter.
    WrongDtype { expected: Dtype, found: Dtype },
    /// A tensor, with this dtype, through which gradients flow.
    Differentiable(Dtype),
    /// A tensor that could not be copied before it is written.
    Failed(&'a Mutex<Option<Error>>),
}

impl<'a> Pointer<'a> {
    pub(crate) fn deferred(deferred: Deferred<'a>) -> Pointer<'a> {
        Pointer { address: 0, len: 0, owner: Owner::Deferred(deferred) }
    }

    /// The dtype of an argument for a parameter of type `T`.
    #[inline]
    pub(crate) fn dtype<T: ElementArg>(&self) -> Dtype {
        match T::KNOWN {
            Some(dtype) => dtype,
            None => self.owner.dtype(),
        }
    }

    #[inline]
    fn new(address: u64, len: usize, memory: &'a Memory) -> Pointer<'a> {
        Pointer { address, len: len as u64, owner: Owner::of(memory) }
    }
}

impl<T> Sealed for &Tensor<T> {}
impl<T> Sealed for &mut Tensor<T> {}
impl<T> Sealed for &&Tensor<T> {}
impl<T> Sealed for &mut &mut Tensor<T> {}
impl<T> Sealed for TensorView<'_, T> {}
impl<T> Sealed for &TensorView<'_, T> {}
impl<T> Sealed for &TensorViewMut<'_, T> {}
impl<T> Sealed for &mut TensorViewMut<'_, T> {}

impl<'a, T: Element> PtrArg<'a, T> for &'a Tensor<T> {
    #[inline]
    fn pointer(self) -> Pointer<'a> {
        self.view().pointer()
    }
}

/// For a variable that is a reference already.
impl<'a, T: Element> PtrArg<'a, T> for &'a &Tensor<T> {
    #[inline]
    fn pointer(self) -> Pointer<'a> {
        self.view().pointer()
    }
}

impl<'a, T: Element> PtrArg<'a, T> for TensorView<'a, T> {
    #[inline]
    fn pointer(self) -> Pointer<'a> {
        Pointer::new(self.address(), self.len(), self.memory())
    }
}

impl<'a, T: Element> PtrArg<'a, T> for &'a TensorView<'_, T> {
    #[inline]
    fn pointer(self) -> Pointer<'a> {
        (*self).pointer()
    }
}

impl<'a, T: Element> PtrArg<'a, T> for &'a TensorViewMut<'_, T> {
    #[inline]
    fn pointer(self) -> Pointer<'a> {
        self.as_view().pointer()
    }
}

impl<'a, T: Element> PtrMutArg<'a, T> for &'a mut Tensor<T> {
    #[inline]
    fn pointer(self) -> Pointer<'a> {
        self.view().pointer()
    }
}

/// For a variable that is a mutable reference already. Passing it directly would move it.
impl<'a, T: Element> PtrMutArg<'a, T> for &'a mut &mut Tensor<T> {
    #[inline]
    fn pointer(self) -> Pointer<'a> {
        self.view().pointer()
    }
}

impl<'a, T: Element> PtrMutArg<'a, T> for &'a mut TensorViewMut<'_, T> {
    #[inline]
    fn pointer(self) -> Pointer<'a> {
        self.as_view().pointer()
    }
}

impl<'a> Pointer<'a> {
    /// The memory of a view, and its shape and strides.
    #[inline]
    pub(crate) fn shaped<T: Element>(view: TensorView<'a, T>) -> (Pointer<'a>, Shape) {
        (Pointer::new(view.address(), view.len(), view.memory()), view.layout())
    }
}

impl<'a, T: Element> ViewArg<'a, T> for &'a Tensor<T> {
    #[inline]
    fn shaped(self) -> (Pointer<'a>, Shape) {
        Pointer::shaped(self.view())
    }
}

impl<'a, T: Element> ViewArg<'a, T> for &'a &Tensor<T> {
    #[inline]
    fn shaped(self) -> (Pointer<'a>, Shape) {
        Pointer::shaped(self.view())
    }
}

impl<'a, T: Element> ViewArg<'a, T> for TensorView<'a, T> {
    #[inline]
    fn shaped(self) -> (Pointer<'a>, Shape) {
        Pointer::shaped(self)
    }
}

impl<'a, T: Element> ViewArg<'a, T> for &'a TensorView<'_, T> {
    #[inline]
    fn shaped(self) -> (Pointer<'a>, Shape) {
        Pointer::shaped(*self)
    }
}

impl<'a, T: Element> ViewArg<'a, T> for &'a TensorViewMut<'_, T> {
    #[inline]
    fn shaped(self) -> (Pointer<'a>, Shape) {
        Pointer::shaped(self.as_view())
    }
}

impl<'a, T: Element> ViewMutArg<'a, T> for &'a mut Tensor<T> {
    #[inline]
    fn shaped(self) -> (Pointer<'a>, Shape) {
        Pointer::shaped(self.view())
    }
}

impl<'a, T: Element> ViewMutArg<'a, T> for &'a mut &mut Tensor<T> {
    #[inline]
    fn shaped(self) -> (Pointer<'a>, Shape) {
        Pointer::shaped(self.view())
    }
}

impl<'a, T: Element> ViewMutArg<'a, T> for &'a mut TensorViewMut<'_, T> {
    #[inline]
    fn shaped(self) -> (Pointer<'a>, Shape) {
        Pointer::shaped(self.as_view())
    }
}

impl<'a> Owner<'a> {
    /// The owner of memory on a device.
    #[inline]
    pub(crate) fn of(memory: &'a Memory) -> Owner<'a> {
        match memory {
            Memory::Cuda(buffer) => Owner::Tensor(buffer),
            memory => Owner::Idle(memory.device()),
        }
    }

    /// The owner that a tensor of ops has as a typed tensor; of an argument without memory, the CPU. It is no part of the functions that call it, so
    /// that these stay small enough to be inlined.
    #[cold]
    fn of_ops(&self) -> Owner<'a> {
        match self {
            Owner::Shared(real) => real.owner(),
            Owner::Deferred(_) => Owner::Idle(Device::cpu()),
            owner => *owner,
        }
    }

    /// The dtype of a tensor of ops. An argument of another kind has a static type, or an error that ends the launch.
    fn dtype(&self) -> Dtype {
        match self {
            Owner::Shared(real) => real.dtype(),
            Owner::Deferred(Deferred::Traced(traced)) => traced.ty.dtype,
            Owner::Deferred(Deferred::WrongDtype { found, .. } | Deferred::Differentiable(found)) => *found,
            Owner::Deferred(Deferred::Failed(_)) | Owner::Idle(_) | Owner::Tensor(_) | Owner::Slice(_) => Dtype::Bool,
        }
    }

    /// Returns whether a use on `stream` is ordered with all other uses without any event.
    #[inline]
    pub(crate) fn is_in_order(&self, writes: bool, stream: Queue<'_>) -> bool {
        let is_in_order = |owner: &Owner<'_>| match owner {
            Owner::Idle(_) => true,
            Owner::Tensor(buffer) => buffer.is_in_order(writes, stream),
            Owner::Slice(_) | Owner::Shared(_) | Owner::Deferred(_) => false,
        };
        match self {
            Owner::Shared(_) | Owner::Deferred(_) => is_in_order(&self.of_ops()),
            owner => is_in_order(owner),
        }
    }

    /// Returns whether the memory is known to be on `device`.
    #[inline]
    pub(crate) fn lives_on(&self, device: Device) -> bool {
        match self {
            Owner::Idle(own) => *own == device,
            Owner::Tensor(buffer) => buffer.device() == device,
            Owner::Slice(_) | Owner::Shared(_) | Owner::Deferred(_) => self.device().is_ok_and(|own| own == device),
        }
    }

    /// Makes `stream` wait for the work on which a use there depends. The caller drops the guard after it has enqueued the use.
    pub(crate) fn before<'s>(&'s self, writes: bool, stream: Queue<'s>) -> Result<Option<SyncOnDrop<'s>>> {
        match self {
            // The memory of a tensor needs no guard.
            Owner::Shared(_) => self.of_ops().before(writes, stream).map(|_| None),
            Owner::Idle(_) | Owner::Deferred(_) => Ok(None),
            Owner::Tensor(buffer) if writes => buffer.before_write(stream).map(|()| None),
            Owner::Tensor(buffer) => buffer.before_read(stream).map(|()| None),
            Owner::Slice(slice) => {
                stream::order(stream, Queue::of_others(slice.stream()))?;
                slice.track(stream.cuda())
            }
        }
    }

    /// Orders later uses after a use on `stream`, which is now enqueued. On an error, the use is not ordered before later uses.
    pub(crate) fn after(&self, writes: bool, stream: Queue<'_>) -> Result<()> {
        match self {
            Owner::Shared(_) => self.of_ops().after(writes, stream),
            Owner::Idle(_) | Owner::Deferred(_) => Ok(()),
            Owner::Tensor(buffer) if writes => buffer.after_write(stream),
            Owner::Tensor(buffer) => buffer.after_read(stream),
            Owner::Slice(slice) => {
                let own = Queue::of_others(slice.stream());
                stream::order(own, stream)?;
                // cudarc may not track slices in the context of the use's stream. The slice's own stream now comes after the use, so a record there
                // makes cudarc's other streams wait for it.
                cuda_slice::record(slice.track(own.cuda())?.into_iter().collect(), own)
            }
        }
    }

    #[inline]
    pub(crate) fn device(&self) -> Result<Device> {
        let device = |owner: &Owner<'_>| match owner {
            Owner::Idle(device) => Ok(*device),
            Owner::Tensor(buffer) => Ok(buffer.device()),
            Owner::Slice(slice) => Device::of_context(slice.stream().context(), "a slice"),
            Owner::Shared(_) | Owner::Deferred(_) => Ok(Device::cpu()),
        };
        match self {
            Owner::Shared(_) | Owner::Deferred(_) => device(&self.of_ops()),
            owner => device(owner),
        }
    }

    #[inline]
    pub(crate) fn queue(&self) -> Option<Queue<'a>> {
        let queue = |owner: &Owner<'a>| match owner {
            Owner::Idle(_) | Owner::Shared(_) | Owner::Deferred(_) => None,
            Owner::Tensor(buffer) => buffer.home().ok(),
            Owner::Slice(slice) => Some(Queue::of_others(slice.stream())),
        };
        match self {
            Owner::Shared(_) | Owner::Deferred(_) => queue(&self.of_ops()),
            owner => queue(owner),
        }
    }
}
