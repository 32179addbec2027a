//! cudarc slices as kernel arguments: memory that other libraries own.

use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaSlice, CudaStream, CudaView, CudaViewMut, DevicePtr, DevicePtrMut, SyncOnDrop};

use crate::device::driver::check_cudarc;
use crate::device::stream::Queue;
use crate::tensor::pointer::{Owner, Pointer, PtrArg, PtrMutArg, Sealed};
use crate::{Element, Error, Result};

/// A borrowed cudarc slice or view whose type is erased.
#[derive(Clone, Copy)]
pub(crate) struct CudaMemory<'a> {
    stream: &'a Arc<CudaStream>,
    slice: *const (),
    /// Gets the slice's pointer; cudarc then makes the stream wait, as for its own launches.
    acquire: Acquire<'a>,
    borrow: PhantomData<&'a ()>,
}

// SAFETY: the value stands for a `&` or `&mut` of a cudarc slice or view, and cudarc allows sending both to other threads.
unsafe impl Send for CudaMemory<'_> {}
// SAFETY: as above. Only `track` recreates a `&mut`. It runs where a launch is consumed, on the one thread that owns the launch.
unsafe impl Sync for CudaMemory<'_> {}

impl<'a> CudaMemory<'a> {
    /// The slice's own stream, on which its owner allocates, copies and frees it.
    pub(crate) fn stream(&self) -> &'a Arc<CudaStream> {
        self.stream
    }

    /// If cudarc tracks the uses of slices, makes `stream` wait for the earlier uses, and returns a guard. Dropping the guard records this use, see
    /// [`record`].
    #[inline]
    pub(crate) fn track<'s>(&'s self, stream: &'s CudaStream) -> Result<Option<SyncOnDrop<'s>>> {
        if !self.stream.context().is_managing_stream_synchronization() {
            return Ok(None);
        }
        // cudarc stores an error that it cannot return in the context. The next call there returns that error and does nothing else, even if it is a
        // wait. So the stored error is taken out before the call, and an error of the call itself after it.
        check_cudarc(stream.context().check_err(), TRACKING)?;
        // SAFETY: `slice` is borrowed for 'a and has the type for which `acquire` was made. The slice and the stream live as long as the guard.
        let guard = unsafe { (self.acquire)(self.slice, stream) };
        check_cudarc(stream.context().check_err(), TRACKING)?;
        Ok(Some(guard))
    }
}

const TRACKING: &str = "order the uses of a slice";

/// Records the uses on `stream`, which are now enqueued. On an error, only the slices' own streams are ordered after these uses.
pub(crate) fn record(guards: Vec<SyncOnDrop<'_>>, stream: Queue<'_>) -> Result<()> {
    if guards.is_empty() {
        return Ok(());
    }
    drop(guards);
    check_cudarc(stream.cuda().context().check_err(), TRACKING)
}

/// Makes a cudarc slice of the memory. The slice's events record that it may be used once all work queued on `home` so far is complete.
///
/// # Safety
/// The memory holds `len` elements, nothing else frees it, and all uses are ordered before the work that is queued on `home` from now on.
pub(crate) unsafe fn of_address<T: Element>(address: CUdeviceptr, len: usize, home: &Arc<CudaStream>) -> Result<CudaSlice<T>> {
    let doing = "give memory to a slice";
    let context = home.context();
    // cudarc panics if it cannot create the slice's events, for example after an error that was stored in the context.
    check_cudarc(context.bind_to_thread(), doing)?;
    // SAFETY: as the caller promises.
    let made = catch_unwind(AssertUnwindSafe(|| unsafe { home.upgrade_device_ptr::<T>(address, len) }));
    let mut slice = made.map_err(|_| Error::Driver {
        doing,
        code: "CUDA_ERROR_UNKNOWN".to_owned(),
        description: "cudarc could not make the events of a slice".to_owned(),
    })?;
    // Getting the pointer for writing, and dropping the guard, records a write.
    drop(slice.device_ptr_mut(home));
    if let Err(error) = check_cudarc(context.check_err(), doing) {
        // The slice's events do not cover the queued work, so the host waits for it here. The slice must not free the memory, which the caller still
        // owns.
        let error = Queue::of_others(home).finish(error);
        slice.leak();
        return Err(error);
    }
    Ok(slice)
}

/// Gets the pointer of a slice on a stream. Both are valid for `'a`. They are raw pointers, because references would make `'a` invariant.
type Acquire<'a> = unsafe fn(slice: *const (), stream: *const CudaStream) -> SyncOnDrop<'a>;

fn pointer<'a, T: Element, S: DevicePtr<T>>(slice: *const S, stream: &'a Arc<CudaStream>, acquire: Acquire<'a>) -> Pointer<'a> {
    // SAFETY: the callers pass a slice that is borrowed for 'a.
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
    /// `slice` comes from a `&'a mut S`. During `'a`, other code uses nothing of the slice but its stream.
    unsafe fn acquire<'a, T, S: DevicePtrMut<T> + 'a>(slice: *const (), stream: *const CudaStream) -> SyncOnDrop<'a> {
        // SAFETY: as the caller promises; `device_ptr_mut` writes nothing to the slice itself.
        let (slice, stream): (&'a mut S, &'a CudaStream) = unsafe { (&mut *slice.cast_mut().cast::<S>(), &*stream) };
        slice.device_ptr_mut(stream).1
    }
    let slice = std::ptr::from_mut(slice);
    // SAFETY: the slice is borrowed for 'a and keeps its stream during that time.
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
