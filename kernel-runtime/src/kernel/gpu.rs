//! The interface of devices that run PTX: a GPU through the CUDA driver, or a simulated GPU. Their launches differ only in the last step.

use kernel_lang::Schedule;

use crate::kernel::{Kernel, Tables};
use crate::launch::args::Args;
use crate::replay::Code;
use crate::{Device, Result, Stream};

/// A device that runs PTX, with the stream of a launch.
pub(crate) trait Gpu {
    /// A handle of a function that the device can run; cheap to clone.
    type Loaded: Clone + Send + Sync + 'static;

    /// Whether its times are estimates, which are the same in every run.
    const IS_SIMULATED: bool;

    /// The type of the same device for loading from any thread.
    type Anywhere: Gpu<Loaded = Self::Loaded> + Send + 'static;

    /// The same device, independent of the launch's stream.
    ///
    /// # Errors
    /// [`Error::NoStream`](crate::Error::NoStream) if the device has no stream of its own.
    fn anywhere(&self) -> Result<Self::Anywhere>;

    /// The device.
    fn device(&self) -> Device;

    /// Its index among the devices of its kind.
    fn number(&self) -> usize;

    /// The number of devices of its kind.
    fn count() -> usize;

    /// The major and the minor compute capability.
    fn compute_capability(&self) -> (i32, i32);

    /// The number of multiprocessors.
    #[inline]
    fn multiprocessors(&self) -> u64 {
        self.device().multiprocessors() as u64
    }

    /// The stream of the launch.
    fn stream(&self) -> Stream;

    /// The functions that devices of this kind have loaded of a kernel.
    fn tables<'k>(&self, kernel: &'k Kernel) -> &'k Tables<Self::Loaded>;

    /// Loads PTX. Where the device compiles it, and it has two entries, each is loaded when a launch first needs it.
    fn load(&self, image: &Image<'_>) -> Result<Self::Loaded>;

    /// Loads all entries that are not loaded yet, so that no launch waits for one.
    fn load_entries(&self, _: &Self::Loaded) -> Result<()> {
        Ok(())
    }

    /// Loads the entry that a launch with these parameters runs, if it is not loaded yet. A launch does so itself; this is for a launch that is timed.
    fn load_entry(&self, _: &'static str, _: &Self::Loaded, _grid: [u32; 3], _params: &[&u64]) -> Result<()> {
        Ok(())
    }

    /// The size in bytes of the cache that the whole GPU shares; 0 if it has none.
    fn cache_bytes(&self) -> usize;

    /// Copies bytes on the stream of the launch.
    ///
    /// # Safety
    /// Both sides have that many bytes, and nothing else uses them until the copy is complete.
    unsafe fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<()>;

    /// Sets bytes to zero on the stream of the launch.
    ///
    /// # Safety
    /// There are that many bytes, and nothing else uses them until the operation is complete.
    unsafe fn zero(&self, address: u64, bytes: usize) -> Result<()>;

    /// The code of a function, as a replay stores it.
    fn code(loaded: &Self::Loaded) -> Code;

    /// Returns whether a launch of this function begins before the previous launch is complete.
    fn begins_early(&self, _: &Self::Loaded) -> bool {
        false
    }

    /// Runs a function, or queues it, ordered with every other use of the arguments.
    ///
    /// # Safety
    /// The function takes these parameters, each no wider than a word. Pointers that are not in `args` stay valid until the function ends.
    unsafe fn start<const WORDS: usize>(
        &self,
        args: &Args<'_, WORDS>,
        loaded: &Self::Loaded,
        grid: [u32; 3],
        params: &[&u64],
    ) -> Result<()>;
}

/// Code, and the data that is needed to load and run it.
pub(crate) struct Image<'a> {
    pub(crate) kernel: &'static str,
    pub(crate) entry: &'a str,
    pub(crate) ptx: &'a str,
    /// Machine code for this device that a package has beside the PTX.
    pub(crate) machine_code: Option<&'a [u8]>,
    pub(crate) schedule: Schedule,
    pub(crate) shared_bytes: u32,
}
