//! PTX on a simulated GPU: loaded once, and run to completion by each launch.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use kernel_lang::launch_value::persistent_entry::{MappedTensor, TensorMap};
use kernel_sim::tensor_map::{ElementType, Fill, Interleave, Promotion, Swizzle};
use kernel_sim::{Argument, Kernel as Function, Launch, LaunchError, Options};

use super::machine::Sim;
use super::{clock, report};
use crate::kernel::entries::{Call, Entries, Stated};
use crate::kernel::gpu::{Gpu, Image};
use crate::kernel::on_demand::OnDemand;
use crate::kernel::tensor_map::{ELEMENT_STRIDES, EncodedMap, element_number, swizzle_number};
use crate::kernel::{Kernel, Tables};
use crate::launch::args::{Args, Region};
use crate::replay::Code;
use crate::{Device, Error, Result, Stream};

/// A simulated GPU on which a launch runs.
#[derive(Clone, Copy)]
pub(crate) struct SimGpu {
    pub(crate) device: Device,
    pub(crate) sim: &'static Sim,
}

/// What a simulated GPU can run of a variant.
#[derive(Clone)]
pub(crate) struct Loaded(Arc<Entries<Function>>);

impl Loaded {
    /// Returns whether both are the same functions of the same PTX, from one load.
    pub(crate) fn is_same(&self, other: &Loaded) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
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
        let find = |entry: &str| module.kernel(entry).ok_or_else(|| refused(format!("the PTX has no entry `{entry}`")));
        let stated = Stated::of(image, limit).map_err(refused)?;
        // Parsing takes as long for one entry as for two, and the simulator compiles nothing.
        let persistent = stated.persistent().map(|entry| find(&entry.name)).transpose()?.map(OnDemand::of);
        Ok(Loaded(Arc::new(stated.entries(image, OnDemand::of(find(image.entry)?), persistent, self.multiprocessors()))))
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
        let given: Vec<&u64> = words.iter().collect();
        let call = loaded.0.call(kernel, &given, grid, encode)?;
        let (added, maps) = call.added();
        let words: Vec<[u8; 8]> = words.iter().chain(added).map(|word| word.to_le_bytes()).collect();
        let given = words.iter().map(<[u8; 8]>::as_slice).chain(maps.iter().map(|map| map.0.as_slice()));
        let Call { function, ctas: grid, threads, shared_bytes, .. } = call;
        // A parameter is the low bytes of its word, or a tensor map.
        let params: Vec<&[u8]> = given.zip(function.params()).map(|(given, bytes)| &given[..given.len().min(bytes as usize)]).collect();
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
        let warps = grid.iter().map(|&ctas| u64::from(ctas)).product::<u64>() * u64::from(threads / 32);
        clock::advance(clock::estimate(&counters.total(), warps, self.sim.multiprocessors() as u64));
        self.sim.ledger.lock().unwrap_or_else(PoisonError::into_inner).add(kernel, function.files(), shared_bytes, &counters);
        report::write_if_asked(self.device)
    }
}

/// Makes a tensor map in the simulator's form.
fn encode(map: &TensorMap, tensor: &MappedTensor) -> Option<EncodedMap> {
    let MappedTensor { address, extents, byte_strides } = tensor;
    let simulated = kernel_sim::TensorMap {
        element: ElementType::from_number(element_number(map.dtype, map.tf32))?,
        global_address: *address,
        extents: extents.clone(),
        strides: byte_strides.clone(),
        box_extents: map.block.clone(),
        element_strides: ELEMENT_STRIDES[..extents.len()].to_vec(),
        interleave: Interleave::None,
        swizzle: Swizzle::from_number(swizzle_number(map.swizzle))?,
        promotion: Promotion::Bytes256,
        fill: Fill::Zero,
    };
    simulated.encode().ok().map(EncodedMap)
}

/// The description of an argument's memory in a fault.
fn argument(region: Region) -> Argument<'static> {
    let element_bytes = region.dtype.bytes();
    let elements = region.bytes / element_bytes.max(1);
    Argument { name: region.name, address: region.address, elements: elements as u64, element_bytes: element_bytes as u32 }
}
