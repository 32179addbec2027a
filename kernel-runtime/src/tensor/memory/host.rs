//! Host memory.

use std::alloc;
use std::ptr::NonNull;

use crate::error::FreeBytes;
use crate::{Device, Error, Result};

/// Host memory, aligned for the widest vector registers.
pub(crate) struct HostBuffer {
    start: NonNull<u8>,
    layout: alloc::Layout,
}

// SAFETY: the buffer is plain memory that it owns.
unsafe impl Send for HostBuffer {}
// SAFETY: as above. All access to the memory is `unsafe`, and its callers guarantee that nothing else uses bytes that are written.
unsafe impl Sync for HostBuffer {}

impl HostBuffer {
    /// The size of a cache line, which is also the best alignment for vector instructions.
    pub(super) const ALIGN: usize = 64;

    pub(super) fn zeros(bytes: usize) -> Result<HostBuffer> {
        let out_of_memory = || Error::OutOfMemory { device: Device::cpu(), requested: bytes, free: FreeBytes(None) };
        // An empty tensor needs an address too.
        let layout = alloc::Layout::from_size_align(bytes.max(1), Self::ALIGN).map_err(|_| out_of_memory())?;
        // SAFETY: the layout is not empty.
        let start = NonNull::new(unsafe { alloc::alloc_zeroed(layout) }).ok_or_else(out_of_memory)?;
        Ok(HostBuffer { start, layout })
    }

    #[inline]
    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// # Safety
    /// As [`Memory::write`](super::Memory::write).
    pub(super) unsafe fn write(&self, offset: usize, source: &[u8]) {
        // SAFETY: as the caller promises.
        unsafe { self.start.add(offset).copy_from_nonoverlapping(NonNull::from(source).cast(), source.len()) };
    }

    /// # Safety
    /// As [`Memory::read`](super::Memory::read).
    pub(super) unsafe fn read(&self, offset: usize, target: &mut [u8]) {
        // SAFETY: as the caller promises.
        unsafe { self.start.add(offset).copy_to_nonoverlapping(NonNull::from(&mut *target).cast(), target.len()) };
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated with this layout, and nothing else frees it.
        unsafe { alloc::dealloc(self.start.as_ptr(), self.layout) };
    }
}
