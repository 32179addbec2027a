//! What tuning does to memory, and undoes: each run finds the tensors as the launch did.
//!
//! A kernel that only writes a tensor leaves the same there however often it runs. One that adds to it does not: so what a kernel both reads and writes
//! is copied first, and copied back before each run. `reset_to_zero` says that it holds zeros, which are cheaper to make than a copy; `restore_value` names
//! more tensors to copy. Where results are compared, every tensor that the kernel writes is as it was before those runs, and in the end.

use crate::args::{Args, Region};
use crate::gpu::Gpu;
use crate::{Error, Result, Stream, Tensor};

/// The tensors that runs would change, and how to undo it.
pub(super) struct Memory {
    copies: Vec<(Region, Tensor<u8>)>,
    zeroed: Vec<Region>,
    /// What is put back only where results are compared.
    written: Vec<(Region, Tensor<u8>)>,
    /// Of the launch, on which all of this is done. A tensor's home knows nothing of it.
    stream: Stream,
}

/// What is to be undone: numbers of pointers.
pub(super) struct Undo {
    pub(super) zeroed: &'static [usize],
    pub(super) restored: &'static [usize],
    /// Are results compared?
    pub(super) verifies: bool,
}

impl Memory {
    /// Copies what must be given back; none if there is no memory for that.
    pub(super) fn save<G: Gpu, const WORDS: usize>(args: &Args<'_, WORDS>, gpu: &G, undo: &Undo) -> Result<Option<Memory>> {
        let updated = args.kernel().updates();
        let regions: Vec<Region> = args.regions().collect();
        let mut memory = Memory { copies: Vec::new(), zeroed: Vec::new(), written: Vec::new(), stream: gpu.stream() };
        // Work that others queued on the arguments comes first.
        if let Some(stream) = gpu.stream().queue() {
            drop(args.before(stream)?);
        }
        for (number, region) in regions.into_iter().enumerate().filter(|(_, region)| region.writes && region.bytes > 0) {
            // A kernel whose text cannot be read may do anything.
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

    /// Makes as it was what a run finds changed.
    pub(super) fn restore(&self, gpu: &impl Gpu) -> Result<()> {
        for region in &self.zeroed {
            // SAFETY: the argument is borrowed mutably for the launch and holds that many bytes.
            unsafe { gpu.zero(region.address, region.bytes)? };
        }
        put_back(gpu, &self.copies)
    }

    /// Makes all as it was.
    pub(super) fn restore_all(&self, gpu: &impl Gpu) -> Result<()> {
        put_back(gpu, &self.written)?;
        self.restore(gpu)
    }
}

impl Drop for Memory {
    /// The copies are in no order with other uses of the tensors, so they are over when tuning ends, however it does.
    fn drop(&mut self) {
        if let Some(queue) = self.stream.queue() {
            let _ = queue.synchronize();
        }
    }
}

/// What an argument holds, on the host; none if there is no memory for a copy.
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

/// A copy on the same device, queued on the stream of the launch.
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
