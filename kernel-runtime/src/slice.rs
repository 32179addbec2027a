//! Slices of cudarc's as arguments: memory that other libraries own.

use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaSlice, CudaStream, CudaView, CudaViewMut, DevicePtr, DevicePtrMut, SyncOnDrop};

use crate::driver::check_cudarc;
use crate::pointer::{Owner, Pointer, PtrArg, PtrMutArg, Sealed};
use crate::stream::Queue;
use crate::{Element, Error, Result};

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
    /// this one when dropped, see [`record`].
    #[inline]
    pub(crate) fn track<'s>(&'s self, stream: &'s CudaStream) -> Result<Option<SyncOnDrop<'s>>> {
        if !self.stream.context().is_managing_stream_synchronization() {
            return Ok(None);
        }
        // A failure that cudarc could tell nobody is left in the context, and ends the next call there, which may be a wait. What fails here is left there, too.
        check_cudarc(stream.context().check_err(), TRACKING)?;
        // SAFETY: `slice` is borrowed for 'a, is what `acquire` was made for, and both live as long as the guard.
        let guard = unsafe { (self.acquire)(self.slice, stream) };
        check_cudarc(stream.context().check_err(), TRACKING)?;
        Ok(Some(guard))
    }
}

const TRACKING: &str = "order the uses of a slice";

/// Records uses on `stream`, now enqueued. If it fails, others than the slices' own streams do not know of them.
pub(crate) fn record(guards: Vec<SyncOnDrop<'_>>, stream: Queue<'_>) -> Result<()> {
    if guards.is_empty() {
        return Ok(());
    }
    drop(guards);
    check_cudarc(stream.cuda().context().check_err(), TRACKING)
}

/// A slice of cudarc's, whose own events know that it may be used when all that is queued on `home` so far is done.
///
/// # Safety
/// The memory holds that many elements, nobody else frees it, and all uses are ordered before what is queued on `home` from now on.
pub(crate) unsafe fn of_address<T: Element>(address: CUdeviceptr, len: usize, home: &Arc<CudaStream>) -> Result<CudaSlice<T>> {
    let doing = "give memory to a slice";
    let context = home.context();
    // cudarc panics where it cannot make the slice's events, as after an error that was left in the context.
    check_cudarc(context.bind_to_thread(), doing)?;
    // SAFETY: as the caller promises.
    let made = catch_unwind(AssertUnwindSafe(|| unsafe { home.upgrade_device_ptr::<T>(address, len) }));
    let mut slice = made.map_err(|_| Error::Driver {
        doing,
        code: "CUDA_ERROR_UNKNOWN".to_owned(),
        description: "cudarc could not make the events of a slice".to_owned(),
    })?;
    // To be given the pointer to write is to record a write.
    drop(slice.device_ptr_mut(home));
    if let Err(error) = check_cudarc(context.check_err(), doing) {
        // The slice's events do not know of the work, so it ends here; and so does the slice's claim to the memory, which stays the caller's.
        let error = Queue::of_others(home).finish(error);
        slice.leak();
        return Err(error);
    }
    Ok(slice)
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
