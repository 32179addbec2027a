//! Launches: checks the launch parameters as the driver does, and runs the clusters on the host's cores.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use crate::arguments::{Argument, Arguments};
use crate::counters::Counters;
use crate::fault::{Fault, FaultKind};
use crate::lanes::WARP;
use crate::machine::run::{Chosen, ClusterRun, Job, run_in_order, run_in_turns};
use crate::machine::{Gpu, Grid};
use crate::memory::{GlobalMemory, GlobalView, LaunchRecord};
use crate::program::Program;

/// The parameters of a kernel launch.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    /// The number of CTAs along each axis.
    pub grid: [u32; 3],
    /// The number of threads of a CTA along each axis.
    pub block: [u32; 3],
    /// The number of CTAs of a cluster along each axis; `None` for a launch without clusters.
    pub cluster: Option<[u32; 3]>,
    /// The dynamic shared memory of a CTA, in bytes.
    pub shared_bytes: u32,
    /// The bytes of each parameter, in order.
    pub params: &'a [&'a [u8]],
    /// The memory that parameters point to. Faults name it by argument and element. For a pointer parameter that is not described here,
    /// faults count bytes.
    pub arguments: &'a [Argument<'a>],
    /// Options of the simulation.
    pub options: Options,
}

impl<'a> Launch<'a> {
    /// A launch without clusters and without dynamic shared memory.
    pub fn new(grid: [u32; 3], block: [u32; 3], params: &'a [&'a [u8]]) -> Launch<'a> {
        Launch { grid, block, cluster: None, shared_bytes: 0, params, arguments: &[], options: Options::default() }
    }
}

/// Options of the simulation of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Determines the order in which warps run and asynchronous operations complete; each number gives another order. With 0, warps run in
    /// order, each as far as it can, and asynchronous operations complete as late as possible.
    pub seed: u64,
    /// Allows reads of uninitialised memory.
    pub allow_uninitialised: bool,
    /// Allows races in global memory. Accesses to global memory are then not recorded, which saves time and memory.
    pub allow_races: bool,
    /// The maximum number of instructions of a warp; a warp that executes more faults, as its kernel probably never ends. The default is
    /// 2^28, which takes about a minute.
    pub max_instructions: u64,
    /// Counts the different sectors of global memory that each line touches: [`Counters::sectors`].
    pub count_sectors: bool,
    /// Runs only so many clusters (CTAs, in a launch without clusters): the first one, the last one, and others spread between them. A
    /// kernel whose clusters wait for each other may then not end. `None` runs the whole grid.
    pub most_clusters: Option<u64>,
}

impl Options {
    /// The number of clusters that run, of a launch of so many.
    pub fn clusters_run(&self, clusters: u64) -> u64 {
        self.most_clusters.map_or(clusters, |most| most.clamp(1, clusters.max(1)).min(clusters))
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 0,
            allow_uninitialised: false,
            allow_races: false,
            max_instructions: 1 << 28,
            count_sectors: false,
            most_clusters: None,
        }
    }
}

/// The reason why a launch failed.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// A mistake in the kernel.
    #[error(transparent)]
    Fault(Box<Fault>),
    /// Launch parameters that no GPU would accept.
    #[error("launch of `{kernel}`: {reason}")]
    Invalid {
        /// The name of the kernel.
        kernel: String,
        /// The reason for the rejection.
        reason: String,
    },
}

/// Runs a launch to its end.
pub(crate) fn run(gpu: &Gpu, memory: &GlobalMemory, program: &Program, launch: &Launch<'_>) -> Result<Counters, LaunchError> {
    let invalid = |reason: String| LaunchError::Invalid { kernel: program.name.clone(), reason };
    let grid = grid(gpu, memory, program, launch).map_err(invalid)?;
    let all: u64 = (0..3).map(|axis| u64::from(grid.grid[axis] / grid.cluster[axis])).product();
    let clusters = Chosen { all, run: launch.options.clusters_run(all) };
    let job = Job { program, grid: &grid, clusters, seed: launch.options.seed, max_instructions: launch.options.max_instructions };
    let resident = || {
        let threads = launch.block.iter().product::<u32>();
        (gpu.num_sms * (2048 / threads).clamp(1, 32) / grid.cluster.iter().product::<u32>()).max(1) as usize
    };
    let in_order = |job: &Job<'_>| {
        let mut counters = Counters::default();
        let add = |done: Counters| counters.merge(&done);
        if program.is_cooperative {
            run_in_turns(resident(), job, add)?
        } else {
            run_in_order(job, add)?
        }
        Ok(counters)
    };
    let is_alone = program.is_cooperative || clusters.run == 1;
    let outcome = if is_alone { in_order(&job) } else { side_by_side(&job) };
    let Some(record) = grid.record.as_ref().filter(|_| !is_alone || job.seed != 0) else { return outcome.map_err(LaunchError::Fault) };
    let has_fault = match &outcome {
        Ok(_) => record.has_race(),
        Err(fault) => !matches!(fault.kind, FaultKind::Deadlock { .. } | FaultKind::TooLong { .. }),
    };
    if !has_fault {
        return outcome.map_err(LaunchError::Fault);
    }
    // Reruns with seed 0 first: the report then depends neither on the number of cores nor on the seed, if seed 0 shows the fault.
    let seeds = if job.seed == 0 { vec![0] } else { vec![0, job.seed] };
    let mut again = Ok(Counters::default());
    for seed in seeds {
        record.restore(&grid.global);
        again = in_order(&Job { seed, ..job });
        if again.is_err() {
            break;
        }
    }
    again.and_then(|counters| outcome.map(|_| counters)).map_err(LaunchError::Fault)
}

/// Runs clusters that do not see each other's work in parallel on all cores.
fn side_by_side(job: &Job<'_>) -> Result<Counters, Box<Fault>> {
    // The first cluster that has failed so far. Later clusters need not run; earlier ones must.
    let failed = AtomicU64::new(u64::MAX);
    let outcome = (0..job.clusters.run)
        .into_par_iter()
        .map(|index| job.clusters.number(index))
        .filter(|number| *number < failed.load(Ordering::Relaxed))
        .map(|number| {
            let mut run = ClusterRun::new(number, job);
            match run.run(job) {
                Ok(()) => {
                    run.compare(job);
                    (run.into_counters(), None)
                }
                Err(fault) => {
                    failed.fetch_min(number, Ordering::Relaxed);
                    (Counters::default(), Some((number, fault)))
                }
            }
        });
    let (counters, fault) = outcome.reduce(
        || (Counters::default(), None),
        |(mut counters, first), (others, second)| {
            counters.merge(&others);
            let fault = match (first, second) {
                (Some(first), Some(second)) => Some(if first.0 <= second.0 { first } else { second }),
                (first, second) => first.or(second),
            };
            (counters, fault)
        },
    );
    fault.map_or(Ok(counters), |(_, fault)| Err(fault))
}

/// Checks a launch.
fn grid(gpu: &Gpu, memory: &GlobalMemory, program: &Program, launch: &Launch<'_>) -> Result<Grid, String> {
    let Launch { grid, block, .. } = *launch;
    let threads = block.iter().map(|&extent| u64::from(extent)).product::<u64>();
    if threads == 0 || threads > 1024 || block[2] > 64 {
        return Err(format!("a block of {block:?} threads; there can be 1 to 1024, and at most 64 along z"));
    }
    if grid.contains(&0) || grid[0] > i32::MAX as u32 || grid[1] > 65535 || grid[2] > 65535 {
        return Err(format!("a grid of {grid:?} CTAs; there can be 1 to 2147483647, 65535 and 65535"));
    }
    let required = |name: &str| program.directives.iter().find(|(directive, _)| directive == name).map(|(_, numbers)| numbers);
    let extents = |numbers: &[u64]| -> [u64; 3] { std::array::from_fn(|axis| numbers.get(axis).copied().unwrap_or(1)) };
    if let Some(wanted) = required("reqntid").map(|numbers| extents(numbers))
        && wanted != block.map(u64::from)
    {
        return Err(format!("a block of {block:?} threads, and `.reqntid` asks for {wanted:?}"));
    }
    if let Some(limit) = required("maxntid").map(|numbers| extents(numbers).iter().product::<u64>())
        && threads > limit
    {
        return Err(format!("a block of {threads} threads, and `.maxntid` allows {limit}"));
    }
    let from_text = required("reqnctapercluster").map(|numbers| extents(numbers).map(|extent| extent as u32));
    if let (Some(wanted), Some(given)) = (from_text, launch.cluster)
        && wanted != given
    {
        return Err(format!("clusters of {given:?} CTAs, and `.reqnctapercluster` asks for {wanted:?}"));
    }
    let asked = launch.cluster.or(from_text);
    let cluster = asked.unwrap_or([1; 3]);
    let ranks = cluster.iter().map(|&extent| u64::from(extent)).product::<u64>();
    if ranks == 0 || ranks > 16 || (0..3).any(|axis| !grid[axis].is_multiple_of(cluster[axis].max(1))) {
        return Err(format!("clusters of {cluster:?} CTAs in a grid of {grid:?}; 1 to 16 CTAs that divide the grid are possible"));
    }
    if ranks > 1 && gpu.compute_capability.0 < 9 {
        return Err(format!("clusters, which {} does not have", gpu.name));
    }
    let total_shared_bytes = program.dynamic_shared_start.max(program.shared_bytes) + launch.shared_bytes;
    if program.shared_bytes > 48 << 10 || total_shared_bytes > gpu.shared_bytes {
        let (fixed, most) = (program.shared_bytes, gpu.shared_bytes);
        return Err(format!(
            "{fixed} bytes of static and {} of dynamic shared memory; 49152 and {most} in all are possible",
            launch.shared_bytes
        ));
    }
    if launch.params.len() != program.params.len() {
        return Err(format!("{} parameters are given, and it has {}", launch.params.len(), program.params.len()));
    }
    let mut params = vec![0; program.params.last().map_or(0, |last| (last.offset + last.bytes) as usize)];
    for (index, (param, given)) in program.params.iter().zip(launch.params).enumerate() {
        if given.len() != param.bytes as usize {
            return Err(format!("parameter {index} has {} bytes, and {} are given", param.bytes, given.len()));
        }
        params[param.offset as usize..][..given.len()].copy_from_slice(given);
    }
    debug_assert!(threads.div_ceil(WARP as u64) <= 32);
    let global = memory.view();
    let arguments = arguments(&global, program, launch);
    Ok(Grid {
        global,
        params,
        arguments,
        grid,
        block,
        cluster,
        is_explicit_cluster: asked.is_some(),
        dynamic_shared_bytes: launch.shared_bytes,
        total_shared_bytes,
        num_sms: gpu.num_sms,
        allow_uninitialised: launch.options.allow_uninitialised,
        count_sectors: launch.options.count_sectors,
        record: (!launch.options.allow_races).then(LaunchRecord::new),
    })
}

/// The names of the launch's memory in faults: the arguments that the caller describes, then the pointer parameters.
fn arguments(global: &GlobalView, program: &Program, launch: &Launch<'_>) -> Arguments {
    let mut arguments = Arguments::new(launch.arguments);
    for (param, given) in program.params.iter().zip(launch.params) {
        let Ok(bytes) = <[u8; 8]>::try_from(*given) else { continue };
        let address = u64::from_le_bytes(bytes);
        if let Some(bytes) = global.bytes_from(address) {
            arguments.add_bytes(&param.name, address, bytes);
        }
    }
    arguments
}
