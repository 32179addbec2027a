//! Slices of cudarc's as arguments: memory that other libraries own.

use std::marker::PhantomData;
use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, CudaView, CudaViewMut, DevicePtr, DevicePtrMut, SyncOnDrop};

use crate::Element;
use crate::pointer::{Owner, Pointer, PtrArg, PtrMutArg, Sealed};

/// A borrowed slice of cudarc's, its type forgotten.
#[derive(Clone, Copy)]
pub(crate) struct CudaMemory<'a> {
    stream: &'a Arc<CudaStream>,
    slice: *const (),
    /// Asks the slice for its pointer, which makes the stream wait as cudarc's own launches do.
    acquire: Acquire<'a>,
    borrow: PhantomData<&'a ()>,
}

// SAFETY: it stands for `&` or `&mut` of cudarc's slices and views, which cudarc lets other threads have.
unsafe impl Send for CudaMemory<'_> {}
// SAFETY: as above; `track`, the one that makes a `&mut` again, is called where a launch is consumed, by the one thread that has it.
unsafe impl Sync for CudaMemory<'_> {}

impl<'a> CudaMemory<'a> {
    /// The slice's own stream: where its owner allocates, copies and frees it.
    pub(crate) fn stream(&self) -> &'a Arc<CudaStream> {
        self.stream
    }

    /// If cudarc tracks the uses of slices: makes `stream` wait for the earlier ones, and gives the guard that records
    /// this one when dropped.
    #[inline]
    pub(crate) fn track<'s>(&'s self, stream: &'s CudaStream) -> Option<SyncOnDrop<'s>> {
        let tracks = self.stream.context().is_managing_stream_synchronization();
        // SAFETY: `slice` is borrowed for 'a, is what `acquire` was made for, and both live as long as the guard.
        tracks.then(|| unsafe { (self.acquire)(self.slice, stream) })
    }
}

/// Slice and stream are valid for `'a`. (References would make `'a` invariant.)
type Acquire<'a> = unsafe fn(slice: *const (), stream: *const CudaStream) -> SyncOnDrop<'a>;

fn pointer<'a, T: Element, S: DevicePtr<T>>(slice: *const S, stream: &'a Arc<CudaStream>, acquire: Acquire<'a>) -> Pointer<'a> {
    // SAFETY: the callers give a slice that is borrowed for 'a.
    let (address, len) = unsafe { ((*slice).device_ptr(stream).0, (*slice).len()) };
    let memory = CudaMemory { stream, slice: slice.cast(), acquire, borrow: PhantomData };
    Pointer { address, len: len as u64, owner: Owner::Slice(memory) }
}

fn reading<'a, T: Element, S: DevicePtr<T>>(slice: &'a S) -> Pointer<'a> {
    /// # Safety
    /// `slice` is a `&'a S`.
    unsafe fn acquire<'a, T, S: DevicePtr<T> + 'a>(slice: *const (), stream: *const CudaStream) -> SyncOnDrop<'a> {
        // SAFETY: as the caller promises.
        let (slice, stream): (&'a S, &'a CudaStream) = unsafe { (&*slice.cast::<S>(), &*stream) };
        slice.device_ptr(stream).1
    }
    pointer::<T, S>(slice, slice.stream(), acquire::<T, S>)
}

fn writing<'a, T: Element, S: DevicePtr<T> + DevicePtrMut<T>>(slice: &'a mut S) -> Pointer<'a> {
    /// # Safety
    /// `slice` is a `&'a mut S`, of which nothing but its stream is used meanwhile.
    unsafe fn acquire<'a, T, S: DevicePtrMut<T> + 'a>(slice: *const (), stream: *const CudaStream) -> SyncOnDrop<'a> {
        // SAFETY: as the caller promises; taking the pointer writes nothing in the slice itself.
        let (slice, stream): (&'a mut S, &'a CudaStream) = unsafe { (&mut *slice.cast_mut().cast::<S>(), &*stream) };
        slice.device_ptr_mut(stream).1
    }
    let slice = std::ptr::from_mut(slice);
    // SAFETY: borrowed for 'a, in which the slice keeps its stream.
    let stream = unsafe { &*slice }.stream();
    pointer::<T, S>(slice, stream, acquire::<T, S>)
}

impl<T> Sealed for &CudaSlice<T> {}
impl<T> Sealed for &mut CudaSlice<T> {}
impl<T> Sealed for &CudaView<'_, T> {}
impl<T> Sealed for &mut CudaViewMut<'_, T> {}

impl<'a, T: Element> PtrArg<'a, T> for &'a CudaSlice<T> {
    #[inline]
    fn pointer(self) -> Pointer<'a> {
        reading::<T, _>(self)
    }
}

impl<'a, T: Element> PtrArg<'a, T> for &'a CudaView<'_, T> {
    #[inline]
    fn pointer(self) -> Pointer<'a> {
        reading::<T, _>(self)
    }
}

impl<'a, T: Element> PtrMutArg<'a, T> for &'a mut CudaSlice<T> {
    #[inline]
    fn pointer(self) -> Pointer<'a> {
        writing::<T, _>(self)
    }
}

impl<'a, T: Element> PtrMutArg<'a, T> for &'a mut CudaViewMut<'_, T> {
    #[inline]
    fn pointer(self) -> Pointer<'a> {
        writing::<T, _>(self)
    }
}
