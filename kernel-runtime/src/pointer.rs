//! What launches take for pointers and views: elements in some memory, and who keeps it.

use cudarc::driver::SyncOnDrop;

use crate::memory::{CudaBuffer, Memory};
use crate::shape::Shape;
use crate::slice::{self, CudaMemory};
use crate::stream::{self, Queue};
use crate::view::{TensorView, TensorViewMut};
use crate::{Device, Element, Result, Tensor};

mod sealed {
    pub trait Sealed {}
}
pub(crate) use sealed::Sealed;

/// What a parameter `Ptr<T>` of a kernel takes: `&Tensor<T>`, a [`TensorView`], or `&CudaSlice<T>` and `&CudaView<T>` of
/// cudarc's.
#[diagnostic::on_unimplemented(
    message = "a kernel cannot read `{Self}` as a tensor of `{T}`",
    note = "pass `&Tensor<{T}>`, a `TensorView<{T}>`, or a `&CudaSlice<{T}>`"
)]
pub trait PtrArg<'a, T: Element>: Sealed {
    /// The memory that it names.
    #[doc(hidden)]
    fn pointer(self) -> Pointer<'a>;
}

/// What a parameter `PtrMut<T>` of a kernel takes: `&mut Tensor<T>`, `&mut TensorViewMut<T>`, or `&mut CudaSlice<T>` and
/// `&mut CudaViewMut<T>` of cudarc's.
#[diagnostic::on_unimplemented(
    message = "a kernel cannot write `{Self}` as a tensor of `{T}`",
    note = "pass `&mut Tensor<{T}>`, `&mut TensorViewMut<{T}>`, or `&mut CudaSlice<{T}>`"
)]
pub trait PtrMutArg<'a, T: Element>: Sealed {
    /// The memory that it names.
    #[doc(hidden)]
    fn pointer(self) -> Pointer<'a>;
}

/// What a parameter `View<T, RANK>` of a kernel takes: `&Tensor<T>` or a [`TensorView`] with that many axes.
#[diagnostic::on_unimplemented(
    message = "a kernel cannot read `{Self}` as a tensor of `{T}` with a shape",
    note = "pass `&Tensor<{T}>` or a `TensorView<{T}>`"
)]
pub trait ViewArg<'a, T: Element>: Sealed {
    /// The memory that it names, and how its elements lie there.
    #[doc(hidden)]
    fn shaped(self) -> (Pointer<'a>, Shape);
}

/// What a parameter `ViewMut<T, RANK>` of a kernel takes: `&mut Tensor<T>` or `&mut TensorViewMut<T>` with that many axes.
#[diagnostic::on_unimplemented(
    message = "a kernel cannot write `{Self}` as a tensor of `{T}` with a shape",
    note = "pass `&mut Tensor<{T}>` or `&mut TensorViewMut<{T}>`"
)]
pub trait ViewMutArg<'a, T: Element>: Sealed {
    /// The memory that it names, and how its elements lie there.
    #[doc(hidden)]
    fn shaped(self) -> (Pointer<'a>, Shape);
}

/// Elements in some memory, which stay borrowed for `'a`.
#[derive(Clone, Copy)]
pub struct Pointer<'a> {
    pub(crate) address: u64,
    pub(crate) len: u64,
    pub(crate) owner: Owner<'a>,
}

/// Who keeps the memory, and knows how to order its uses.
#[derive(Clone, Copy)]
pub(crate) enum Owner<'a> {
    /// Memory of a device that is done with everything when a call returns: the CPU, or a simulated GPU.
    Idle(Device),
    Tensor(&'a CudaBuffer),
    Slice(CudaMemory<'a>),
}

impl<'a> Pointer<'a> {
    #[inline]
    fn new(address: u64, len: usize, memory: &'a Memory) -> Pointer<'a> {
        let owner = match memory {
            Memory::Cuda(buffer) => Owner::Tensor(buffer),
            memory => Owner::Idle(memory.device()),
        };
        Pointer { address, len: len as u64, owner }
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

/// For a variable that is a reference already, which passing it as it is would move.
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
    /// The memory of a view, and how its elements lie there.
    #[inline]
    fn shaped<T: Element>(view: TensorView<'a, T>) -> (Pointer<'a>, Shape) {
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
    /// Is a use on `stream` in order with all others by itself?
    #[inline]
    pub(crate) fn is_in_order(&self, writes: bool, stream: Queue<'_>) -> bool {
        match self {
            Owner::Idle(_) => true,
            Owner::Tensor(buffer) => buffer.is_in_order(writes, stream),
            Owner::Slice(_) => false,
        }
    }

    /// Is it known to be memory of that device?
    #[inline]
    pub(crate) fn lives_on(&self, device: Device) -> bool {
        match self {
            Owner::Idle(own) => *own == device,
            Owner::Tensor(buffer) => buffer.device() == device,
            Owner::Slice(_) => self.device().is_ok_and(|own| own == device),
        }
    }

    /// Makes `stream` wait for what a use there needs. The guard is to be dropped when that is enqueued.
    pub(crate) fn before<'s>(&'s self, writes: bool, stream: Queue<'s>) -> Result<Option<SyncOnDrop<'s>>> {
        match self {
            Owner::Idle(_) => Ok(None),
            Owner::Tensor(buffer) if writes => buffer.before_write(stream).map(|()| None),
            Owner::Tensor(buffer) => buffer.before_read(stream).map(|()| None),
            Owner::Slice(slice) => {
                stream::order(stream, Queue::of_others(slice.stream()))?;
                slice.track(stream.cuda())
            }
        }
    }

    /// Makes others wait for a use on `stream`, now enqueued. If it fails, the use is in no order.
    pub(crate) fn after(&self, writes: bool, stream: Queue<'_>) -> Result<()> {
        match self {
            Owner::Idle(_) => Ok(()),
            Owner::Tensor(buffer) if writes => buffer.after_write(stream),
            Owner::Tensor(buffer) => buffer.after_read(stream),
            Owner::Slice(slice) => {
                let own = Queue::of_others(slice.stream());
                stream::order(own, stream)?;
                // The use's stream may be one whose slices cudarc does not track: then the home stream, which now comes after the
                // use, tells cudarc's other streams.
                slice::record(slice.track(own.cuda())?.into_iter().collect(), own)
            }
        }
    }

    #[inline]
    pub(crate) fn device(&self) -> Result<Device> {
        match self {
            Owner::Idle(device) => Ok(*device),
            Owner::Tensor(buffer) => Ok(buffer.device()),
            Owner::Slice(slice) => Device::of_context(slice.stream().context(), "a slice"),
        }
    }

    #[inline]
    pub(crate) fn queue(&self) -> Option<Queue<'a>> {
        match self {
            Owner::Idle(_) => None,
            Owner::Tensor(buffer) => buffer.home().ok(),
            Owner::Slice(slice) => Some(Queue::of_others(slice.stream())),
        }
    }
}
