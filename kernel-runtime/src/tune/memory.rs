//! Saving and restoring the tensors that tuning overwrites: every run finds the tensors in their state before the launch.
//!
//! A kernel that only writes a tensor leaves the same contents after every run. A kernel that accumulates into a tensor does not. So every
//! tensor that the kernel both reads and writes is copied first and restored before each run. `reset_to_zero` says that a tensor holds
//! zeros, and zeroing is cheaper than copying. `restore_value` names more tensors to copy. With `verify`, every tensor that the kernel
//! writes is restored before the verified runs and at the end.

use crate::kernel::gpu::Gpu;
use crate::launch::args::{Args, Region};
use crate::{Error, Result, Stream, Tensor};

/// The tensors that runs change, and their saved contents.
pub(super) struct Memory {
    copies: Vec<(Region, Tensor<u8>)>,
    zeroed: Vec<Region>,
    /// Restored only before verified runs and at the end.
    written: Vec<(Region, Tensor<u8>)>,
    /// The stream of the launch, on which all copies and fills run. The tensors do not track these uses, so their other uses do not wait.
    stream: Stream,
}

/// The tensors to restore, as numbers of pointers.
pub(super) struct Undo {
    pub(super) zeroed: &'static [usize],
    pub(super) restored: &'static [usize],
    /// Whether `verify` is given.
    pub(super) verifies: bool,
}

impl Memory {
    /// Copies the tensors to restore; none if there is no memory for the copies.
    pub(super) fn save<G: Gpu, const WORDS: usize>(args: &Args<'_, WORDS>, gpu: &G, undo: &Undo) -> Result<Option<Memory>> {
        let updated = args.kernel().updates();
        let regions: Vec<Region> = args.regions().collect();
        let mut memory = Memory { copies: Vec::new(), zeroed: Vec::new(), written: Vec::new(), stream: gpu.stream() };
        // Wait for work that other streams queued on the arguments.
        if let Some(stream) = gpu.stream().queue() {
            drop(args.before(stream)?);
        }
        for (number, region) in regions.into_iter().enumerate().filter(|(_, region)| region.writes && region.bytes > 0) {
            // If the kernel's updates are unknown, treat every tensor as updated.
            let is_updated = updated.get(number).copied().unwrap_or(true);
            let copies = if undo.zeroed.contains(&number) {
                memory.zeroed.push(region);
                continue;
            } else if is_updated || undo.restored.contains(&number) {
                &mut memory.copies
            } else if undo.verifies {
                &mut memory.written
            } else {
                continue;
            };
            let Some(copy) = copy(gpu, region)? else { return Ok(None) };
            copies.push((region, copy));
        }
        Ok(Some(memory))
    }

    /// Restores the tensors whose contents a run depends on.
    pub(super) fn restore(&self, gpu: &impl Gpu) -> Result<()> {
        for region in &self.zeroed {
            // SAFETY: the argument is borrowed mutably for the launch and holds that many bytes.
            unsafe { gpu.zero(region.address, region.bytes)? };
        }
        put_back(gpu, &self.copies)
    }

    /// Restores all tensors.
    pub(super) fn restore_all(&self, gpu: &impl Gpu) -> Result<()> {
        put_back(gpu, &self.written)?;
        self.restore(gpu)
    }
}

impl Drop for Memory {
    /// Waits for the copies. Other uses of the tensors are not ordered after them, so the copies must be complete when tuning ends, also
    /// after an error.
    fn drop(&mut self) {
        if let Some(queue) = self.stream.queue() {
            let _ = queue.synchronize();
        }
    }
}

/// Copies an argument to the host; none if there is no memory for a copy.
pub(super) fn read(gpu: &impl Gpu, region: Region) -> Result<Option<Vec<u8>>> {
    if region.bytes == 0 {
        return Ok(Some(Vec::new()));
    }
    match copy(gpu, region)? {
        Some(copy) => copy.to_vec().map(Some),
        None => Ok(None),
    }
}

fn put_back(gpu: &impl Gpu, copies: &[(Region, Tensor<u8>)]) -> Result<()> {
    for (region, copy) in copies {
        // SAFETY: the argument is borrowed mutably for the launch and holds that many bytes, as does the copy.
        unsafe { gpu.copy(copy.view().address(), region.address, region.bytes)? };
    }
    Ok(())
}

/// Copies a region on its device. The copy is queued on the stream of the launch.
fn copy(gpu: &impl Gpu, region: Region) -> Result<Option<Tensor<u8>>> {
    let made = gpu.device().empty::<u8>(region.bytes).and_then(|mut copy| copy.set_stream(&gpu.stream()).map(|()| copy));
    let copy = match made {
        Err(Error::OutOfMemory { .. }) => return Ok(None),
        copy => copy?,
    };
    // SAFETY: the argument is borrowed for the launch and holds that many bytes, as does the copy.
    unsafe { gpu.copy(region.address, copy.view().address(), region.bytes)? };
    Ok(Some(copy))
}
