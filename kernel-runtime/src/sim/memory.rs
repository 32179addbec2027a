//! Memory of a simulated GPU: an allocation of its own for each tensor, so that what leaves it is seen.

use std::sync::atomic::Ordering;

use super::machine::Sim;
use crate::error::FreeBytes;
use crate::memory::Init;
use crate::{Device, Error, Result};

/// Memory of a simulated GPU. Dropping frees it, and a kernel that uses it later is at fault.
pub(crate) struct SimBuffer {
    sim: &'static Sim,
    device: Device,
    address: u64,
    bytes: usize,
}

impl SimBuffer {
    pub(crate) fn new(sim: &'static Sim, device: Device, bytes: usize, init: Init) -> Result<SimBuffer> {
        let (free, _) = sim.memory();
        let out_of_memory = || Error::OutOfMemory { device, requested: bytes, free: FreeBytes(Some(free)) };
        if bytes > free {
            return Err(out_of_memory());
        }
        let address = sim.machine.allocate(bytes).map_err(|_| out_of_memory())?;
        sim.used_bytes.fetch_add(bytes, Ordering::Relaxed);
        let buffer = SimBuffer { sim, device, address, bytes };
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

    /// Fills `count` elements of `width` bytes at `offset` with the low bytes of `bits`.
    pub(crate) fn fill(&self, offset: usize, count: usize, width: usize, bits: u64) -> Result<()> {
        Ok(self.sim.machine.fill(self.address + offset as u64, &bits.to_le_bytes()[..width], count)?)
    }
}

impl Drop for SimBuffer {
    fn drop(&mut self) {
        // An address that the machine gave is one that it takes back.
        if self.sim.machine.free(self.address).is_ok() {
            self.sim.used_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}
