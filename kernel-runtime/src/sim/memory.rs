//! Memory of a simulated GPU. Each tensor has its own allocation, so the simulator detects every access that leaves it.

use kernel_sim::MemoryError;

use super::machine::Sim;
use crate::error::FreeBytes;
use crate::tensor::memory::Init;
use crate::{Device, Error, Result};

/// Memory of a simulated GPU. Dropping it frees it, and a later use by a kernel is a fault.
pub(crate) struct SimBuffer {
    sim: &'static Sim,
    device: Device,
    address: u64,
}

impl SimBuffer {
    pub(crate) fn new(sim: &'static Sim, device: Device, bytes: usize, init: Init) -> Result<SimBuffer> {
        let address = sim.machine.allocate(bytes).map_err(|error| match error {
            MemoryError::OutOfMemory { .. } => {
                let (free, _) = sim.memory();
                Error::OutOfMemory { device, requested: bytes, free: FreeBytes(Some(free)) }
            }
            error => error.into(),
        })?;
        let buffer = SimBuffer { sim, device, address };
        if init == Init::Zeros {
            buffer.fill(0, bytes, 1, 0)?;
        }
        Ok(buffer)
    }

    pub(crate) fn device(&self) -> Device {
        self.device
    }

    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    pub(crate) fn write(&self, offset: usize, source: &[u8]) -> Result<()> {
        Ok(self.sim.machine.write(self.address + offset as u64, source)?)
    }

    pub(crate) fn read(&self, offset: usize, target: &mut [u8]) -> Result<()> {
        Ok(self.sim.machine.read(self.address + offset as u64, target)?)
    }

    /// Copies within the same GPU. Bytes that were never written count as unwritten in the target too.
    pub(crate) fn copy_to(&self, offset: usize, bytes: usize, target: &SimBuffer, target_offset: usize) -> Result<()> {
        let (from, to) = (self.address + offset as u64, target.address + target_offset as u64);
        self.sim.copy(from, to, bytes)
    }

    /// Fills `count` elements of `width` bytes at `offset` with the low bytes of `bits`.
    pub(crate) fn fill(&self, offset: usize, count: usize, width: usize, bits: u64) -> Result<()> {
        self.sim.fill(self.address + offset as u64, &bits.to_le_bytes()[..width], count)
    }
}

impl Drop for SimBuffer {
    fn drop(&mut self) {
        // The machine allocated this address, so it can free it.
        let _ = self.sim.machine.free(self.address);
    }
}
