//! What runs PTX: a GPU through the CUDA driver, or a simulated one. A launch is the same on both but for the last step.

use kernel_lang::Schedule;

use crate::args::Args;
use crate::graph::Code;
use crate::kernel::{Kernel, Tables};
use crate::{Device, Result, Stream};

/// A device that runs PTX, and where on it a launch goes.
pub(crate) trait Gpu {
    /// A function that it can run; a name, cheap to copy.
    type Loaded: Clone + Send + Sync + 'static;

    /// Is its time an estimate, the same in every run?
    const IS_SIMULATED: bool;

    /// The same device, to load things for from any thread.
    type Anywhere: Gpu<Loaded = Self::Loaded> + Send + 'static;

    /// The same device, whatever its stream.
    fn anywhere(&self) -> Self::Anywhere;

    /// The device.
    fn device(&self) -> Device;

    /// Its number among the devices of its kind.
    fn number(&self) -> usize;

    /// How many devices of its kind there are.
    fn count() -> usize;

    /// Major and minor.
    fn compute_capability(&self) -> (i32, i32);

    /// How many multiprocessors it has.
    #[inline]
    fn multiprocessors(&self) -> u64 {
        self.device().multiprocessors() as u64
    }

    /// The stream of the launch.
    fn stream(&self) -> Stream;

    /// What devices of this kind have loaded of a kernel.
    fn tables<'k>(&self, kernel: &'k Kernel) -> &'k Tables<Self::Loaded>;

    /// Loads PTX.
    fn load(&self, image: &Image<'_>) -> Result<Self::Loaded>;

    /// Bytes of the cache that the whole GPU shares; 0 if it has none.
    fn cache_bytes(&self) -> usize;

    /// Copies bytes on the stream of the launch.
    ///
    /// # Safety
    /// Both sides have that many bytes, and nobody else uses them until the copy is done.
    unsafe fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<()>;

    /// Sets bytes to zero on the stream of the launch.
    ///
    /// # Safety
    /// There are that many bytes, and nobody else uses them until it is done.
    unsafe fn zero(&self, address: u64, bytes: usize) -> Result<()>;

    /// What a graph keeps of a function.
    fn code(loaded: &Self::Loaded) -> Code;

    /// Does a launch of this function begin before the one in front of it is over?
    fn begins_early(&self, _: &Self::Loaded) -> bool {
        false
    }

    /// Runs a function, or queues it, in order with every other use of the arguments.
    ///
    /// # Safety
    /// The function takes these parameters, each no wider than a word, and pointers that are not in `args` are good until it ends.
    unsafe fn start<const WORDS: usize>(
        &self,
        args: &Args<'_, WORDS>,
        loaded: &Self::Loaded,
        grid: [u32; 3],
        params: &[&u64],
    ) -> Result<()>;
}

/// PTX and what is needed to run it.
pub(crate) struct Image<'a> {
    pub(crate) kernel: &'static str,
    pub(crate) entry: &'a str,
    pub(crate) ptx: &'a str,
    pub(crate) schedule: Schedule,
    pub(crate) shared_bytes: u32,
}
