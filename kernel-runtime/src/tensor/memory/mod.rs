//! The memory behind a tensor, as bytes.

mod cuda;
mod host;

pub(crate) use cuda::{CudaBuffer, Left};
use host::HostBuffer;

use crate::device::Backend;
use crate::device::stream::Stream;
use crate::replay::{self, Forbidden};
use crate::sim::SimBuffer;
use crate::{Device, Result};

/// The initial contents of new memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Init {
    Zeros,
    /// Uninitialised, and only for types of which every bit pattern is a value. On the CPU the memory is zeroed nevertheless. A simulated GPU reports
    /// a kernel that reads it.
    Anything,
}

/// Memory on one device, owned.
pub(crate) enum Memory {
    Host(HostBuffer),
    Cuda(CudaBuffer),
    Sim(SimBuffer),
}

impl Memory {
    pub(crate) fn new(stream: &Stream, bytes: usize, init: Init) -> Result<Memory> {
        replay::forbid(Forbidden::Allocating)?;
        match stream.device().backend() {
            Backend::Cpu => HostBuffer::zeros(bytes).map(Memory::Host),
            Backend::Cuda(cuda) => CudaBuffer::new(cuda, stream.clone(), bytes, init).map(Memory::Cuda),
            Backend::Sim(sim) => SimBuffer::new(sim, stream.device(), bytes, init).map(Memory::Sim),
        }
    }

    pub(crate) fn device(&self) -> Device {
        match self {
            Memory::Host(_) => Device::cpu(),
            Memory::Cuda(buffer) => buffer.device(),
            Memory::Sim(buffer) => buffer.device(),
        }
    }

    /// The address of the first byte.
    #[inline]
    pub(crate) fn address(&self) -> u64 {
        match self {
            Memory::Host(buffer) => buffer.start().as_ptr() as u64,
            Memory::Cuda(buffer) => buffer.address(),
            Memory::Sim(buffer) => buffer.address(),
        }
    }

    pub(crate) fn stream(&self) -> &Stream {
        match self {
            Memory::Host(_) => Device::cpu().stream(),
            Memory::Cuda(buffer) => buffer.stream(),
            Memory::Sim(buffer) => buffer.device().stream(),
        }
    }

    /// Makes a stream of the same device the home stream, ordered after all work on the memory so far.
    pub(crate) fn set_home(&mut self, stream: &Stream) -> Result<()> {
        match self {
            Memory::Cuda(buffer) => buffer.set_home(stream),
            Memory::Host(_) | Memory::Sim(_) => Ok(()),
        }
    }

    /// Copies `source` to the bytes from `offset` on.
    ///
    /// # Safety
    /// The bytes are inside this memory, and nothing else uses them.
    pub(crate) unsafe fn write(&self, offset: usize, source: &[u8]) -> Result<()> {
        replay::forbid(Forbidden::FromHost)?;
        match self {
            Memory::Host(buffer) => {
                // SAFETY: as the caller promises.
                unsafe { buffer.write(offset, source) };
                Ok(())
            }
            // SAFETY: as the caller promises.
            Memory::Cuda(buffer) => unsafe { buffer.write(offset, source) },
            Memory::Sim(buffer) => buffer.write(offset, source),
        }
    }

    /// Copies the bytes from `offset` on to `target`, and waits for the copy.
    ///
    /// # Safety
    /// The bytes are inside this memory, and nothing writes them.
    pub(crate) unsafe fn read(&self, offset: usize, target: &mut [u8]) -> Result<()> {
        replay::forbid(Forbidden::ToHost)?;
        match self {
            Memory::Host(buffer) => {
                // SAFETY: as the caller promises.
                unsafe { buffer.read(offset, target) };
                Ok(())
            }
            // SAFETY: as the caller promises.
            Memory::Cuda(buffer) => unsafe { buffer.read(offset, target) },
            Memory::Sim(buffer) => buffer.read(offset, target),
        }
    }

    /// Copies `bytes` bytes from `offset` in this memory to `target_offset` in other memory, on any device.
    ///
    /// # Safety
    /// The bytes are inside both memories, nothing writes the source, and nothing else uses the target.
    pub(crate) unsafe fn copy_to(&self, offset: usize, bytes: usize, target: &Memory, target_offset: usize) -> Result<()> {
        match (self, target) {
            (Memory::Host(source), target) => {
                // SAFETY: as the caller promises.
                unsafe { target.write(target_offset, std::slice::from_raw_parts(source.start().add(offset).as_ptr(), bytes)) }
            }
            (source, Memory::Host(target)) => {
                // SAFETY: as the caller promises.
                unsafe { source.read(offset, std::slice::from_raw_parts_mut(target.start().add(target_offset).as_ptr(), bytes)) }
            }
            // SAFETY: as the caller promises.
            (Memory::Cuda(source), Memory::Cuda(target)) => unsafe { source.copy_to(offset, bytes, target, target_offset) },
            (Memory::Sim(source), Memory::Sim(target)) if source.device() == target.device() => {
                source.copy_to(offset, bytes, target, target_offset)
            }
            // A simulated GPU exchanges data with other devices only through the host.
            (source, target) => {
                let mut host = vec![0; bytes];
                // SAFETY: as the caller promises.
                unsafe {
                    source.read(offset, &mut host)?;
                    target.write(target_offset, &host)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn host_memory_is_aligned_zeroed_and_never_null() {
        for bytes in [0, 1, 63, 4096] {
            let memory = Memory::new(Device::cpu().stream(), bytes, Init::Anything).unwrap();
            assert_eq!(memory.address() % HostBuffer::ALIGN as u64, 0);
            assert_ne!(memory.address(), 0);
            let mut read = vec![7; bytes];
            // SAFETY: the memory holds that many bytes.
            unsafe { memory.read(0, &mut read) }.unwrap();
            assert!(read.iter().all(|&byte| byte == 0));
        }
    }

    #[test]
    fn more_host_memory_than_there_can_be_is_an_error() {
        let huge = Memory::new(Device::cpu().stream(), isize::MAX as usize - 4096, Init::Zeros);
        assert!(matches!(huge.map(|_| ()), Err(Error::OutOfMemory { .. })));
    }
}
