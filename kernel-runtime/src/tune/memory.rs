//! What tuning does to memory, and undoes: each run finds the tensors as the launch did.
//!
//! A kernel that only writes a tensor leaves the same there however often it runs. One that adds to it does not: so what a kernel both reads and writes
//! is copied first, and copied back before each run. `reset_to_zero` says that it holds zeros, which are cheaper to make than a copy; `restore_value` names
//! more tensors to copy.

use crate::args::{Args, Region};
use crate::gpu::Gpu;
use crate::{Error, Result, Tensor};

/// The tensors that runs would change, and how to undo it.
pub(super) struct Memory {
    copies: Vec<(Region, Tensor<u8>)>,
    zeroed: Vec<Region>,
}

impl Memory {
    /// Copies what must be given back; none if there is no memory for that. `zeroed` and `restored` are numbers of pointers.
    pub(super) fn save<G: Gpu, const WORDS: usize>(
        args: &Args<'_, WORDS>,
        gpu: G,
        zeroed: &[usize],
        restored: &[usize],
    ) -> Result<Option<Memory>> {
        let updated = args.kernel().updates();
        let regions: Vec<Region> = args.regions().collect();
        let mut memory = Memory { copies: Vec::new(), zeroed: Vec::new() };
        for (number, region) in regions.into_iter().enumerate().filter(|(_, region)| region.writes && region.bytes > 0) {
            // A kernel whose text cannot be read may do anything.
            let is_updated = updated.get(number).copied().unwrap_or(true);
            if zeroed.contains(&number) {
                memory.zeroed.push(region);
            } else if is_updated || restored.contains(&number) {
                let copy = gpu.device().empty::<u8>(region.bytes).and_then(|mut copy| copy.set_stream(&gpu.stream()).map(|()| copy));
                let copy = match copy {
                    Err(Error::OutOfMemory { .. }) => return Ok(None),
                    copy => copy?,
                };
                memory.copies.push((region, copy));
            }
        }
        // Work that others queued on the arguments comes first.
        if let Some(stream) = gpu.stream().cuda_stream() {
            drop(args.before(stream)?);
        }
        for (region, copy) in &memory.copies {
            // SAFETY: the argument is borrowed mutably for the launch and holds that many bytes, as does the copy.
            unsafe { gpu.copy(region.address, copy.view().address(), region.bytes)? };
        }
        Ok(Some(memory))
    }

    /// Makes all as it was.
    pub(super) fn restore(&self, gpu: impl Gpu) -> Result<()> {
        for region in &self.zeroed {
            // SAFETY: the argument is borrowed mutably for the launch and holds that many bytes.
            unsafe { gpu.zero(region.address, region.bytes)? };
        }
        for (region, copy) in &self.copies {
            // SAFETY: as above; the copy holds that many bytes, too.
            unsafe { gpu.copy(copy.view().address(), region.address, region.bytes)? };
        }
        Ok(())
    }
}
