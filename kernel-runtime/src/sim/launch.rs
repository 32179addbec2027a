//! PTX on a simulated GPU: loaded once, and run to completion by each launch.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use kernel_lang::Schedule;
use kernel_sim::{Argument, Kernel as Function, Launch, LaunchError, Options};

use super::machine::Sim;
use super::{clock, report};
use crate::kernel::gpu::{Gpu, Image};
use crate::kernel::launch_values::LaunchValues;
use crate::kernel::{Kernel, Tables};
use crate::launch::args::{Args, Region};
use crate::replay::Code;
use crate::{Device, Error, Result, Stream, launch::grid};

/// A simulated GPU on which a launch runs.
#[derive(Clone, Copy)]
pub(crate) struct SimGpu {
    pub(crate) device: Device,
    pub(crate) sim: &'static Sim,
}

/// A function that a simulated GPU can run.
#[derive(Clone)]
pub(crate) struct Loaded {
    function: Function,
    schedule: Schedule,
    shared_bytes: u32,
    /// The values that the function takes after the kernel's own parameters.
    launch_values: Option<Arc<LaunchValues>>,
}

impl Loaded {
    /// Returns whether both are the same function of the same PTX, from one load.
    pub(crate) fn is_same(&self, other: &Loaded) -> bool {
        self.function.is_same(&other.function)
    }
}

impl Gpu for SimGpu {
    type Loaded = Loaded;
    const IS_SIMULATED: bool = true;

    type Anywhere = SimGpu;

    fn anywhere(&self) -> Result<SimGpu> {
        Ok(*self)
    }

    fn device(&self) -> Device {
        self.device
    }

    fn number(&self) -> usize {
        self.sim.number
    }

    fn count() -> usize {
        super::TARGETS.len()
    }

    fn compute_capability(&self) -> (i32, i32) {
        self.sim.compute_capability()
    }

    fn stream(&self) -> Stream {
        self.device.stream().clone()
    }

    fn tables<'k>(&self, kernel: &'k Kernel) -> &'k Tables<Loaded> {
        kernel.sim_tables()
    }

    fn load(&self, image: &Image<'_>) -> Result<Loaded> {
        let SimGpu { device, sim } = *self;
        let (kernel, requested, limit) = (image.kernel, image.shared_bytes, sim.shared_bytes);
        if requested > limit {
            return Err(Error::SharedMemory { kernel, device, requested, limit });
        }
        let refused = |log: String| Error::Jit { kernel, device, code: "INVALID_PTX".to_owned(), log };
        let module = sim.machine.load(image.ptx).map_err(|error| refused(error.to_string()))?;
        let function = module.kernel(image.entry).ok_or_else(|| refused(format!("the PTX has no entry `{}`", image.entry)))?;
        let launch_values = LaunchValues::of_ptx(image.ptx).map_err(refused)?.map(Arc::new);
        Ok(Loaded { function, schedule: image.schedule, shared_bytes: requested, launch_values })
    }

    fn cache_bytes(&self) -> usize {
        0
    }

    unsafe fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<()> {
        self.sim.copy(from, to, bytes)
    }

    unsafe fn zero(&self, address: u64, bytes: usize) -> Result<()> {
        self.sim.fill(address, &[0], bytes)
    }

    fn code(loaded: &Loaded) -> Code {
        Code::Sim(loaded.clone())
    }

    unsafe fn start<const WORDS: usize>(&self, args: &Args<'_, WORDS>, loaded: &Loaded, grid: [u32; 3], params: &[&u64]) -> Result<()> {
        let words: Vec<u64> = params.iter().map(|word| **word).collect();
        self.run(args.kernel().name(), loaded, grid, &words, args.regions())
    }
}

impl SimGpu {
    /// Runs a function with these words, and its launch values. No parameter of the function is wider than a word. Faults name the memory of its arguments by `regions`.
    pub(crate) fn run(
        self,
        kernel: &'static str,
        loaded: &Loaded,
        grid: [u32; 3],
        words: &[u64],
        regions: impl Iterator<Item = Region>,
    ) -> Result<()> {
        let Loaded { function, schedule, shared_bytes, launch_values } = loaded;
        let added = launch_values.as_ref().map(|values| values.parameters(&words.iter().collect::<Vec<_>>(), grid));
        let added = added.as_deref().unwrap_or_default();
        let unused = launch_values.as_ref().and_then(|values| values.shared_bytes(added));
        let (threads, shared_bytes) = (schedule.threads(), unused.unwrap_or(*shared_bytes));
        let grid = grid::of_ctas(grid, schedule.num_ctas, kernel)?;
        let words: Vec<[u8; 8]> = words.iter().chain(added).map(|word| word.to_le_bytes()).collect();
        // A parameter is the low bytes of its word.
        let params: Vec<&[u8]> = words.iter().zip(function.params()).map(|(word, bytes)| &word[..word.len().min(bytes as usize)]).collect();
        let (seed, allow_races) = (self.sim.seed.load(Ordering::Relaxed), self.sim.allows_races.load(Ordering::Relaxed));
        let options = Options { seed, allow_races, ..Options::default() };
        let arguments: Vec<Argument<'_>> = regions.map(argument).collect();
        let launch = Launch { grid, block: [threads, 1, 1], cluster: None, shared_bytes, params: &params, arguments: &arguments, options };
        let counters = self.sim.machine.launch(function, &launch).map_err(|error| match error {
            LaunchError::Fault(fault) => Error::Fault(fault),
            error => {
                let description = match error {
                    LaunchError::Invalid { reason, .. } => reason,
                    error => error.to_string(),
                };
                Error::LaunchRefused { kernel, threads, shared_bytes, code: "INVALID_LAUNCH".to_owned(), description }
            }
        })?;
        let warps = grid.iter().map(|&ctas| u64::from(ctas)).product::<u64>() * u64::from(schedule.num_warps);
        clock::advance(clock::estimate(&counters.total(), warps, self.sim.multiprocessors() as u64));
        self.sim.ledger.lock().unwrap_or_else(PoisonError::into_inner).add(kernel, function.files(), shared_bytes, &counters);
        report::write_if_asked(self.device)
    }
}

/// The description of an argument's memory in a fault.
fn argument(region: Region) -> Argument<'static> {
    let element_bytes = region.dtype.bytes();
    let elements = region.bytes / element_bytes.max(1);
    Argument { name: region.name, address: region.address, elements: elements as u64, element_bytes: element_bytes as u32 }
}
