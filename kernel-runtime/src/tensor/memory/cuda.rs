//! Memory of a CUDA GPU, and the order of its uses on several streams.
//!
//! A buffer has a *home* stream, on which it is allocated, copied and freed. These rules keep safe code free of data races, on any combination of
//! streams:
//!
//! | use on another stream | before the use                            | after the use                                        |
//! |-----------------------|-------------------------------------------|------------------------------------------------------|
//! | read                  | the stream waits for home                 | an event is recorded on the stream, and remembered   |
//! | write                 | the stream waits for home and all readers | home waits for the stream                            |
//!
//! So home is always ordered after every write, and reads on several streams run concurrently. Work on the home stream alone, the usual case, needs
//! no events. Freeing counts as a write on the home stream.
//!
//! A step after a use can fail although the use is already queued. The host then waits for the use before it returns the error, so no memory is freed
//! while an unordered use is pending.
//!
//! Ordering two streams may leave the context of either current on the thread. Therefore a use binds its own context after the ordering.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use cudarc::driver::{CudaStream, result, sys};

use super::Init;
use crate::device::driver::{check, check_cudarc};
use crate::device::stream::{self, Queue, Stream};
use crate::device::{Cuda, PooledEvent};
use crate::error::FreeBytes;
use crate::{Device, Error, Result};

/// An allocation in a GPU's memory.
pub(crate) struct CudaBuffer {
    address: sys::CUdeviceptr,
    cuda: &'static Cuda,
    /// The home stream.
    stream: Stream,
    readers: Readers,
}

/// Reads on streams other than home since the last write.
#[derive(Default)]
struct Readers {
    any: AtomicBool,
    list: Mutex<Vec<Reader>>,
}

/// The last read on one stream.
struct Reader {
    /// The stream may be gone, and a new stream may have its handle. But no other stream has its address while this weak pointer exists.
    stream: Weak<CudaStream>,
    /// The event happens when the read is complete.
    event: PooledEvent,
}

/// With this many readers, home waits for all of them, and the list is cleared. Otherwise reads on ever new streams would make the list grow without
/// bound.
const MOST_READERS: usize = 32;

/// Buffers that were dropped while other code captured their home stream into a CUDA graph. That graph would have recorded the free.
#[derive(Default)]
pub(crate) struct Left {
    any: AtomicBool,
    buffers: Mutex<Vec<CudaBuffer>>,
}

impl CudaBuffer {
    pub(super) fn new(cuda: &'static Cuda, stream: Stream, bytes: usize, init: Init) -> Result<CudaBuffer> {
        cuda.left.free();
        let queue = stream.queue().ok_or(Error::NoStream { device: stream.device() })?;
        queue.forbid_capture("allocate memory")?;
        cuda.bind()?;
        // The driver refuses allocations of 0 bytes, but an empty tensor needs an address too.
        let room = bytes.max(1);
        let buffer = match allocate(cuda, queue, room) {
            Ok(address) => CudaBuffer { address, cuda, stream, readers: Readers::default() },
            Err(result::DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => {
                let free = FreeBytes(result::mem_get_info().ok().map(|(free, _)| free));
                return Err(Error::OutOfMemory { device: stream.device(), requested: bytes, free });
            }
            Err(error) => return check_cudarc(Err(error), "allocate memory"),
        };
        if init == Init::Zeros {
            // SAFETY: the buffer holds that many bytes.
            check(unsafe { sys::cuMemsetD8Async(buffer.address, 0, room, buffer.home()?.raw()) }, "fill memory")?;
        }
        Ok(buffer)
    }

    /// Takes over memory that was allocated on `stream`.
    ///
    /// # Safety
    /// `address` is the start of an allocation that nothing else frees. All its pending uses are ordered before the work that is queued on `stream`
    /// from now on.
    pub(crate) unsafe fn from_raw(address: sys::CUdeviceptr, cuda: &'static Cuda, stream: Stream) -> CudaBuffer {
        CudaBuffer { address, cuda, stream, readers: Readers::default() }
    }

    /// Passes the address and the home stream to `make`, whose result takes over the memory. All uses are ordered before later work on the home
    /// stream.
    ///
    /// # Errors
    /// If the uses cannot be ordered, or if `make` fails. The memory is freed then.
    pub(crate) fn give<S>(self, make: impl FnOnce(sys::CUdeviceptr, &Arc<CudaStream>) -> Result<S>) -> Result<S> {
        let home = self.home()?;
        home.forbid_capture("give memory away")?;
        self.before_write(home)?;
        let made = make(self.address, home.cuda())?;
        let mut this = std::mem::ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped, so each field is dropped once, here.
        unsafe {
            std::ptr::drop_in_place(&mut this.stream);
            std::ptr::drop_in_place(&mut this.readers);
        }
        Ok(made)
    }

    /// Makes `stream` the home stream, ordered after all work on the buffer so far.
    pub(crate) fn set_home(&mut self, stream: &Stream) -> Result<()> {
        if let Some(queue) = stream.queue() {
            queue.forbid_capture("make a stream a tensor's home")?;
            self.before_write(queue)?;
            self.readers.forget();
            self.stream = stream.clone();
        }
        Ok(())
    }

    #[inline]
    pub(super) fn address(&self) -> u64 {
        self.address
    }

    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }

    #[inline]
    pub(crate) fn device(&self) -> Device {
        self.stream.device()
    }

    #[inline]
    pub(crate) fn home(&self) -> Result<Queue<'_>> {
        self.stream.queue().ok_or(Error::NoStream { device: self.device() })
    }

    /// The home stream, for a use that is queued now. Returns an error if other code captures the stream.
    fn home_for(&self, doing: &'static str) -> Result<Queue<'_>> {
        let home = self.home()?;
        home.forbid_capture(doing)?;
        Ok(home)
    }

    /// Returns whether a use on `stream` is ordered with all other uses without any event. The usual launch checks only this.
    #[inline]
    pub(crate) fn is_in_order(&self, writes: bool, stream: Queue<'_>) -> bool {
        self.stream.queue().is_some_and(|home| Arc::ptr_eq(home.cuda(), stream.cuda()))
            && !(writes && self.readers.any.load(Ordering::Acquire))
    }

    /// Returns whether `stream` is the home stream.
    #[inline]
    fn is_home(&self, stream: Queue<'_>) -> bool {
        self.stream.queue().is_some_and(|home| home.cuda() == stream.cuda())
    }

    /// Must be called before a read on `stream`.
    #[inline]
    pub(crate) fn before_read(&self, stream: Queue<'_>) -> Result<()> {
        if self.is_home(stream) { Ok(()) } else { stream::order(stream, self.home()?) }
    }

    /// Must be called after a read on `stream`. On an error, the read is not ordered before later uses.
    #[inline]
    pub(crate) fn after_read(&self, stream: Queue<'_>) -> Result<()> {
        if self.is_home(stream) { Ok(()) } else { self.readers.add(stream, self.home()?) }
    }

    /// Must be called before a write on `stream`.
    #[inline]
    pub(crate) fn before_write(&self, stream: Queue<'_>) -> Result<()> {
        self.before_read(stream)?;
        if self.readers.any.load(Ordering::Acquire) { self.readers.hold_back(stream, self.is_home(stream)) } else { Ok(()) }
    }

    /// Must be called after a write on `stream`. On an error, the write is not ordered before later uses.
    #[inline]
    pub(crate) fn after_write(&self, stream: Queue<'_>) -> Result<()> {
        if self.is_home(stream) {
            return Ok(());
        }
        stream::order(self.home()?, stream)?;
        // The write waited for the readers, so home is now ordered after them too.
        self.readers.forget();
        Ok(())
    }

    /// # Safety
    /// As [`Memory::write`](super::Memory::write).
    pub(super) unsafe fn write(&self, offset: usize, source: &[u8]) -> Result<()> {
        if source.is_empty() {
            return Ok(());
        }
        let doing = "copy to the GPU";
        let home = self.home_for(doing)?;
        self.before_write(home)?;
        self.cuda.bind()?;
        let (target, start) = (self.address + offset as u64, source.as_ptr().cast());
        // SAFETY: both sides hold that many bytes. The source is borrowed until the copy is complete, because this function waits for it: the driver
        // does not guarantee that it has read the host memory when the call returns.
        let queued = check(unsafe { sys::cuMemcpyHtoDAsync_v2(target, start, source.len(), home.raw()) }, doing);
        queued.map_err(|error| home.finish(error)).and_then(|()| home.synchronize())
    }

    /// # Safety
    /// As [`Memory::read`](super::Memory::read).
    pub(super) unsafe fn read(&self, offset: usize, target: &mut [u8]) -> Result<()> {
        if target.is_empty() {
            return Ok(());
        }
        let doing = "copy from the GPU";
        let home = self.home_for(doing)?;
        self.cuda.bind()?;
        let source = self.address + offset as u64;
        // SAFETY: both sides hold that many bytes. The target is borrowed until the copy is complete, because this function waits for it.
        let code = unsafe { sys::cuMemcpyDtoHAsync_v2(target.as_mut_ptr().cast(), source, target.len(), home.raw()) };
        check(code, doing).map_err(|error| home.finish(error)).and_then(|()| home.synchronize())
    }

    /// # Safety
    /// As [`Memory::copy_to`](super::Memory::copy_to).
    pub(super) unsafe fn copy_to(&self, offset: usize, bytes: usize, target: &CudaBuffer, target_offset: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let doing = "copy between GPUs";
        let stream = target.home_for(doing)?;
        self.before_read(stream)?;
        target.before_write(stream)?;
        target.cuda.bind()?;
        let (from, to) = (self.cuda.context.cu_ctx(), target.cuda.context.cu_ctx());
        let (source, start) = (self.address + offset as u64, target.address + target_offset as u64);
        // SAFETY: both sides hold that many bytes, and each address belongs to the context that is passed with it.
        let code = unsafe { sys::cuMemcpyPeerAsync(start, to, source, from, bytes, stream.raw()) };
        check(code, doing)?;
        self.after_read(stream).map_err(|error| stream.finish(error))
    }

    /// Fills `count` elements of `width` bytes at `offset` with the low bytes of `bits`.
    ///
    /// # Safety
    /// The elements are inside this memory and aligned, and nothing else uses them.
    pub(crate) unsafe fn fill(&self, offset: usize, count: usize, width: usize, bits: u64) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        let doing = "fill memory";
        let home = self.home_for(doing)?;
        self.before_write(home)?;
        self.cuda.bind()?;
        let (start, stream) = (self.address + offset as u64, home.raw());
        let (low, high) = (bits as u32, (bits >> 32) as u32);
        // SAFETY: as the caller promises.
        let code = unsafe {
            match width {
                1 => sys::cuMemsetD8Async(start, bits as u8, count, stream),
                2 => sys::cuMemsetD16Async(start, bits as u16, count, stream),
                4 => sys::cuMemsetD32Async(start, low, count, stream),
                _ if low == high => sys::cuMemsetD32Async(start, low, 2 * count, stream),
                // Each half of an 8-byte element is a column, one 4-byte word wide, of a 2D region with a pitch of 8 bytes.
                _ => match sys::cuMemsetD2D32Async(start, 8, low, 1, count, stream) {
                    sys::CUresult::CUDA_SUCCESS => sys::cuMemsetD2D32Async(start + 4, 8, high, 1, count, stream),
                    code => code,
                },
            }
        };
        check(code, doing)
    }
}

impl Drop for CudaBuffer {
    /// Frees the memory on the home stream, after every use. An error is stored in the context, and the next wait for a stream returns it.
    fn drop(&mut self) {
        let Ok(home) = self.home() else { return };
        let context = &self.cuda.context;
        match home.forbid_capture("free memory").and_then(|()| self.before_write(home)) {
            Ok(()) => {}
            Err(Error::StreamCaptured { .. }) => {
                let readers = std::mem::take(&mut self.readers);
                return self.cuda.left.keep(CudaBuffer { address: self.address, cuda: self.cuda, stream: self.stream.clone(), readers });
            }
            // If the uses cannot be ordered, the host waits for the device. If that fails too, the device and its memory are lost.
            Err(_) if self.cuda.synchronize().is_err() => return,
            Err(_) => {}
        }
        if self.cuda.bind().is_err() {
            return;
        }
        if context.has_async_alloc() {
            // SAFETY: the buffer owns the memory, and every use is ordered before the free.
            context.record_err(unsafe { result::free_async(self.address, home.raw()) });
        } else if home.synchronize().is_ok() {
            // SAFETY: the buffer owns the memory, and every use is complete.
            context.record_err(unsafe { result::free_sync(self.address) });
        }
    }
}

impl Left {
    #[cold]
    fn keep(&self, buffer: CudaBuffer) {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
        self.any.store(true, Ordering::Release);
    }

    /// Drops all buffers of the list. A buffer whose stream is still captured puts itself back.
    #[inline]
    fn free(&self) {
        if self.any.load(Ordering::Acquire) && self.any.swap(false, Ordering::AcqRel) {
            let buffers = std::mem::take(&mut *self.buffers.lock().unwrap_or_else(PoisonError::into_inner));
            drop(buffers);
        }
    }
}

impl Reader {
    /// Returns whether the read was on this stream. The per-thread default stream is a different stream on each thread, so it never matches.
    fn is_on(&self, stream: Queue<'_>) -> bool {
        std::ptr::eq(self.stream.as_ptr(), Arc::as_ptr(stream.cuda())) && !stream::is_per_thread(stream.cuda())
    }
}

impl Readers {
    /// Remembers the read that was queued last on `stream`, so that later writes wait for it.
    #[cold]
    fn add(&self, stream: Queue<'_>, home: Queue<'_>) -> Result<()> {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        match list.iter().find(|reader| reader.is_on(stream)) {
            Some(known) => known.event.record(stream.cuda())?,
            None => {
                let event = PooledEvent::after(stream.cuda())?;
                // If home cannot wait now, the list just gets longer.
                if list.len() >= MOST_READERS && home.forbid_capture("order two streams").and_then(|()| wait_for_all(home, &list)).is_ok() {
                    list.clear();
                }
                list.push(Reader { stream: Arc::downgrade(stream.cuda()), event });
            }
        }
        self.any.store(true, Ordering::Release);
        Ok(())
    }

    /// Makes `stream` wait for all readers. If `stream` is the home stream, clears the list.
    #[cold]
    fn hold_back(&self, stream: Queue<'_>, is_home: bool) -> Result<()> {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        wait_for_all(stream, &list)?;
        if is_home {
            list.clear();
            self.any.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// Clears the list, because home is ordered after all readers.
    #[inline]
    fn forget(&self) {
        if self.any.load(Ordering::Acquire) {
            self.list.lock().unwrap_or_else(PoisonError::into_inner).clear();
            self.any.store(false, Ordering::Release);
        }
    }
}

/// Makes `stream` wait for these reads, except for reads on `stream` itself, after which it is already ordered.
fn wait_for_all(stream: Queue<'_>, readers: &[Reader]) -> Result<()> {
    readers.iter().filter(|reader| !reader.is_on(stream)).try_for_each(|reader| reader.event.hold_back(stream.cuda()))
}

fn allocate(cuda: &Cuda, queue: Queue<'_>, bytes: usize) -> Result<sys::CUdeviceptr, result::DriverError> {
    // SAFETY: the context is current, and the stream is alive.
    unsafe { if cuda.context.has_async_alloc() { result::malloc_async(queue.raw(), bytes) } else { result::malloc_sync(bytes) } }
}
