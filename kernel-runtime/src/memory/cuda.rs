//! Memory of a CUDA GPU, and the order of its uses on several streams.
//!
//! A buffer has a *home* stream, on which it is made, copied and freed. The rules that keep safe code free of
//! races, whatever streams it launches on:
//!
//! | use on another stream | before it                                | after it                                      |
//! |-----------------------|------------------------------------------|-----------------------------------------------|
//! | read                  | that stream waits for home               | the stream is remembered as a reader          |
//! | write                 | that stream waits for home and readers   | home waits for that stream                    |
//!
//! So home is always behind every write, readers run beside each other, and work on the home stream alone, the usual
//! case, costs nothing. Freeing is a write on the home stream.
//!
//! Ordering two streams may leave the context of either as the thread's own, so a use binds its own context after it has been ordered.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::{CudaStream, result, sys};

use super::Init;
use crate::device::Cuda;
use crate::driver::{check, check_cudarc};
use crate::error::FreeBytes;
use crate::stream::{self, Stream};
use crate::{Device, Error, Result};

/// Memory of a GPU.
pub(crate) struct CudaBuffer {
    address: sys::CUdeviceptr,
    cuda: &'static Cuda,
    /// Home.
    stream: Stream,
    readers: Readers,
}

/// Streams other than home that have read since the last write.
#[derive(Default)]
struct Readers {
    any: AtomicBool,
    streams: Mutex<Vec<Arc<CudaStream>>>,
}

impl CudaBuffer {
    pub(super) fn new(cuda: &'static Cuda, stream: Stream, bytes: usize, init: Init) -> Result<CudaBuffer> {
        cuda.bind()?;
        // The driver refuses to allocate nothing, and an empty tensor has an address too.
        let room = bytes.max(1);
        let buffer = match allocate(cuda, &stream, room) {
            Ok(address) => CudaBuffer { address, cuda, stream, readers: Readers::default() },
            Err(result::DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => {
                let free = FreeBytes(result::mem_get_info().ok().map(|(free, _)| free));
                return Err(Error::OutOfMemory { device: stream.device(), requested: bytes, free });
            }
            Err(error) => return check_cudarc(Err(error), "allocate memory"),
        };
        if init == Init::Zeros {
            // SAFETY: the buffer holds that many bytes.
            check(unsafe { sys::cuMemsetD8Async(buffer.address, 0, room, buffer.raw()) }, "fill memory")?;
        }
        Ok(buffer)
    }

    /// Takes over memory that was allocated on `stream`.
    ///
    /// # Safety
    /// `address` is the start of memory that nobody else frees, whose pending uses are all ordered before what is
    /// queued on `stream` from now on.
    pub(crate) unsafe fn from_raw(address: sys::CUdeviceptr, cuda: &'static Cuda, stream: Stream) -> CudaBuffer {
        CudaBuffer { address, cuda, stream, readers: Readers::default() }
    }

    /// Gives the memory away, all uses ordered before what is queued on its home from now on.
    pub(crate) fn into_raw(self) -> Result<(sys::CUdeviceptr, Arc<CudaStream>)> {
        let home = self.home()?.clone();
        self.before_write(&home)?;
        let mut this = std::mem::ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped, so each of these is dropped once, here.
        unsafe {
            std::ptr::drop_in_place(&mut this.stream);
            std::ptr::drop_in_place(&mut this.readers);
        }
        Ok((this.address, home))
    }

    /// Makes `stream` the home, behind all that was done so far.
    pub(crate) fn set_home(&mut self, stream: &Stream) -> Result<()> {
        if let Some(raw) = stream.cuda_stream() {
            self.before_write(raw)?;
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
    pub(crate) fn home(&self) -> Result<&Arc<CudaStream>> {
        self.stream.cuda_stream().ok_or(Error::NotCuda { what: "this stream" })
    }

    fn raw(&self) -> sys::CUstream {
        self.stream.cuda_stream().map_or(std::ptr::null_mut(), |stream| stream.cu_stream())
    }

    /// Is a use on `stream` in order with all others by itself? The only question that the usual launch asks.
    #[inline]
    pub(crate) fn is_in_order(&self, writes: bool, stream: &Arc<CudaStream>) -> bool {
        self.stream.cuda_stream().is_some_and(|home| Arc::ptr_eq(home, stream)) && !(writes && self.readers.any.load(Ordering::Acquire))
    }

    /// Is `stream` the home?
    #[inline]
    fn is_home(&self, stream: &CudaStream) -> bool {
        self.stream.cuda_stream().is_some_and(|home| **home == *stream)
    }

    /// To be called before reading on `stream`.
    #[inline]
    pub(crate) fn before_read(&self, stream: &CudaStream) -> Result<()> {
        if self.is_home(stream) { Ok(()) } else { stream::order(stream, self.home()?) }
    }

    /// To be called after reading on `stream`.
    #[inline]
    pub(crate) fn after_read(&self, stream: &Arc<CudaStream>) {
        if !self.is_home(stream) {
            self.readers.add(stream);
        }
    }

    /// To be called before writing on `stream`.
    #[inline]
    pub(crate) fn before_write(&self, stream: &CudaStream) -> Result<()> {
        self.before_read(stream)?;
        if self.readers.any.load(Ordering::Acquire) { self.readers.hold_back(stream, self.is_home(stream)) } else { Ok(()) }
    }

    /// To be called after writing on `stream`.
    #[inline]
    pub(crate) fn after_write(&self, stream: &CudaStream) -> Result<()> {
        if self.is_home(stream) {
            return Ok(());
        }
        let home = self.home()?;
        stream::order(home, stream)?;
        // The write came after the readers, so home is behind them now.
        if self.readers.any.load(Ordering::Acquire) { self.readers.hold_back(home, true) } else { Ok(()) }
    }

    /// # Safety
    /// As [`Memory::write`](super::Memory::write).
    pub(super) unsafe fn write(&self, offset: usize, source: &[u8]) -> Result<()> {
        if source.is_empty() {
            return Ok(());
        }
        self.before_write(self.home()?)?;
        self.cuda.bind()?;
        let doing = "copy to the GPU";
        let (target, start) = (self.address + offset as u64, source.as_ptr().cast());
        // SAFETY: both sides hold that many bytes. The driver has read pageable memory when the call returns, and
        // page-locked memory is waited for below.
        check(unsafe { sys::cuMemcpyHtoDAsync_v2(target, start, source.len(), self.raw()) }, doing)?;
        if is_page_locked(source) { self.stream.synchronize() } else { Ok(()) }
    }

    /// # Safety
    /// As [`Memory::read`](super::Memory::read).
    pub(super) unsafe fn read(&self, offset: usize, target: &mut [u8]) -> Result<()> {
        if target.is_empty() {
            return Ok(());
        }
        self.cuda.bind()?;
        let source = self.address + offset as u64;
        // SAFETY: both sides hold that many bytes, and the target is borrowed until the copy is done.
        let code = unsafe { sys::cuMemcpyDtoHAsync_v2(target.as_mut_ptr().cast(), source, target.len(), self.raw()) };
        check(code, "copy from the GPU")?;
        self.stream.synchronize()
    }

    /// # Safety
    /// As [`Memory::copy_to`](super::Memory::copy_to).
    pub(super) unsafe fn copy_to(&self, offset: usize, bytes: usize, target: &CudaBuffer, target_offset: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let stream = target.home()?;
        self.before_read(stream)?;
        target.before_write(stream)?;
        target.cuda.bind()?;
        let (from, to) = (self.cuda.context.cu_ctx(), target.cuda.context.cu_ctx());
        let (source, start) = (self.address + offset as u64, target.address + target_offset as u64);
        // SAFETY: both sides hold that many bytes, and each address belongs to the context named with it.
        let code = unsafe { sys::cuMemcpyPeerAsync(start, to, source, from, bytes, stream.cu_stream()) };
        check(code, "copy between GPUs")?;
        self.after_read(stream);
        Ok(())
    }

    /// Fills `count` elements of `width` bytes at `offset` with the low bytes of `bits`.
    ///
    /// # Safety
    /// The elements are inside this memory, aligned, and nobody else uses them.
    pub(crate) unsafe fn fill(&self, offset: usize, count: usize, width: usize, bits: u64) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        self.before_write(self.home()?)?;
        self.cuda.bind()?;
        let (start, stream) = (self.address + offset as u64, self.raw());
        let (low, high) = (bits as u32, (bits >> 32) as u32);
        // SAFETY: as the caller promises.
        let code = unsafe {
            match width {
                1 => sys::cuMemsetD8Async(start, bits as u8, count, stream),
                2 => sys::cuMemsetD16Async(start, bits as u16, count, stream),
                4 => sys::cuMemsetD32Async(start, low, count, stream),
                _ if low == high => sys::cuMemsetD32Async(start, low, 2 * count, stream),
                // Each half of an 8-byte element is a column, one word wide, of a picture with a pitch of 8 bytes.
                _ => match sys::cuMemsetD2D32Async(start, 8, low, 1, count, stream) {
                    sys::CUresult::CUDA_SUCCESS => sys::cuMemsetD2D32Async(start + 4, 8, high, 1, count, stream),
                    code => code,
                },
            }
        };
        check(code, "fill memory")
    }
}

impl Drop for CudaBuffer {
    /// Frees on the home stream, behind every use. A failure is kept for the next caller of the context.
    fn drop(&mut self) {
        let Ok(home) = self.home() else { return };
        let context = &self.cuda.context;
        if self.before_write(home).is_err() || self.cuda.bind().is_err() {
            // The device is lost, and its memory with it.
            return;
        }
        // SAFETY: the memory is this buffer's own, and every use is ordered before.
        context.record_err(unsafe {
            if context.has_async_alloc() {
                result::free_async(self.address, home.cu_stream())
            } else {
                home.synchronize().and_then(|()| result::free_sync(self.address))
            }
        });
    }
}

impl Readers {
    #[cold]
    fn add(&self, stream: &Arc<CudaStream>) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if !streams.contains(stream) {
            streams.push(stream.clone());
        }
        self.any.store(true, Ordering::Release);
    }

    /// Makes `stream` wait for all readers, and forgets them if it is the home.
    #[cold]
    fn hold_back(&self, stream: &CudaStream, is_home: bool) -> Result<()> {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        for reader in streams.iter() {
            stream::order(stream, reader)?;
        }
        if is_home {
            streams.clear();
            self.any.store(false, Ordering::Release);
        }
        Ok(())
    }
}

fn allocate(cuda: &Cuda, stream: &Stream, bytes: usize) -> Result<sys::CUdeviceptr, result::DriverError> {
    let raw = stream.cuda_stream().map_or(std::ptr::null_mut(), |stream| stream.cu_stream());
    // SAFETY: the context is current, and the stream alive.
    unsafe { if cuda.context.has_async_alloc() { result::malloc_async(raw, bytes) } else { result::malloc_sync(bytes) } }
}

/// A copy out of page-locked memory is still running when the driver's call returns.
fn is_page_locked(bytes: &[u8]) -> bool {
    let mut kind: u32 = 0;
    let attribute = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    // SAFETY: the answer is a u32; any address may be asked about, and one unknown to the driver is an error code.
    let code = unsafe { sys::cuPointerGetAttribute((&raw mut kind).cast(), attribute, bytes.as_ptr() as u64) };
    code == sys::CUresult::CUDA_SUCCESS && kind != 0
}
