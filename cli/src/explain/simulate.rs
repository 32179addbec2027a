//! Runs a compiled kernel on the simulator, and adds up its counters by access and by tensor.

use std::collections::HashMap;

use kernel_lang::explain::{Access, Explained};
use kernel_lang::launch_value::LaunchValues;
use kernel_lang::launch_value::persistent_entry::PersistentEntry;
use kernel_sim::{Argument, Counters, FaultKind, Launch, LaunchError, LineCounters, Machine, Options};

use super::card::Model;
use super::request::{Request, Value};

/// Bytes of a sector, the smallest transfer of memory.
pub(super) const SECTOR: f64 = kernel_lang::target::SECTOR as f64;

/// The counters of a launch. If only a part of it ran, all numbers are scaled to the whole launch.
pub(super) struct Run {
    pub(super) programs: u64,
    pub(super) programs_run: u64,
    /// The programs along each axis.
    pub(super) grid: [u32; 3],
    /// Does the launch take the version with roles?
    pub(super) takes_roles: bool,
    /// The shared memory that the launch asks for, for each CTA.
    pub(super) shared_bytes: u32,
    /// The accesses that were executed, in the order of [`Explained::accesses`].
    pub(super) accesses: Vec<Traffic>,
    /// The bytes of different elements that were asked for, loaded or stored: the least that memory moves.
    pub(super) least_bytes: f64,
    /// The bytes of different sectors that were moved.
    pub(super) memory_bytes: f64,
    /// The bytes of sectors that the L2 delivers and takes: those that a program loads, each counted once for each program, and those that
    /// requests store.
    pub(super) l2_bytes: f64,
    /// Cache lines of requests: the L1 looks up one in a cycle.
    pub(super) l1_lines: f64,
    /// Instructions of warps, in the PTX.
    pub(super) instructions: f64,
    /// Passes over the banks of shared memory.
    pub(super) wavefronts: f64,
    /// The part of `wavefronts` that bank conflicts cause.
    pub(super) bank_conflicts: f64,
}

/// The traffic of one access.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Traffic {
    pub(super) asked_bytes: f64,
    pub(super) requests: f64,
    pub(super) sectors: f64,
    pub(super) least_sectors: f64,
    /// Bytes by the width of one thread's access: 1, 2, 4, 8 and 16 bytes.
    pub(super) bytes_by_width: [f64; 5],
}

/// A tensor in the simulator's memory.
struct Tensor {
    address: u64,
    bytes: u64,
}

/// Runs the kernel. At most so many programs run.
pub(super) fn run(explained: &Explained, request: &Request, grid: [u32; 3], most: Option<u64>, model: Model) -> Result<Run, String> {
    let (machine, schedule) = (Machine::new(model.simulated()), request.options.schedule);
    let module = machine.load(&explained.compiled.ptx).map_err(|error| error.to_string())?;
    let kernel = module.kernel(&explained.compiled.entry).ok_or("the PTX has no such kernel")?;
    let (mut params, mut tensors, mut described) = (Vec::new(), Vec::new(), Vec::new());
    for given in &request.arguments {
        match &given.value {
            Value::Scalar { bytes, .. } => params.push(bytes.clone()),
            Value::Tensor { element, count, fill } => {
                let bytes = count * element.bytes();
                let address = machine.allocate(bytes).map_err(|error| format!("`{}`: {error}", given.name))?;
                match fill {
                    crate::argument::Fill::Zeros => machine.fill(address, &[0], bytes).map_err(|error| error.to_string())?,
                    fill => {
                        if let Some(bytes) = fill.bytes(*element, *count)? {
                            machine.write(address, &bytes).map_err(|error| error.to_string())?;
                        }
                    }
                }
                params.extend([address, *count as u64].map(|word| word.to_le_bytes().to_vec()));
                tensors.push(Tensor { address, bytes: bytes as u64 });
                let (elements, element_bytes) = (*count as u64, element.bytes() as u32);
                described.push(Argument { name: &given.name, address, elements, element_bytes });
            }
        }
    }
    let takes_roles = takes_roles(&explained.compiled.ptx, &params, grid)?;
    let mut shared_bytes = explained.compiled.shared_bytes;
    if let Some(values) = LaunchValues::of_ptx(&explained.compiled.ptx)? {
        let (added, fewer) = values.bytes(&params, grid)?;
        params.extend(added);
        shared_bytes = fewer.unwrap_or(shared_bytes);
    }
    let params: Vec<&[u8]> = params.iter().map(Vec::as_slice).collect();
    let ctas = grid[0].checked_mul(schedule.num_ctas).ok_or("the grid has too many CTAs")?;
    let options = Options { allow_races: true, allow_uninitialised: true, count_sectors: true, most_clusters: most, ..Options::default() };
    let launch = Launch {
        grid: [ctas, grid[1], grid[2]],
        block: [schedule.threads(), 1, 1],
        cluster: None,
        shared_bytes,
        params: &params,
        arguments: &described,
        options,
    };
    let programs: u64 = grid.iter().map(|extent| u64::from(*extent)).product();
    let counters = machine.launch(&kernel, &launch).map_err(|error| {
        let waits =
            matches!(&error, LaunchError::Fault(fault) if matches!(fault.kind, FaultKind::Deadlock { .. } | FaultKind::TooLong { .. }));
        let is_part = options.clusters_run(programs) < programs;
        let help = if waits && is_part { "\nhelp: only a part of the programs ran; run all of them by `--programs all`" } else { "" };
        format!("{error}{help}")
    })?;
    Ok(Run { shared_bytes, grid, takes_roles, ..add_up(explained, &counters, &tensors, (programs, options.clusters_run(programs))) })
}

/// Does a launch with these parameters take the persistent entry?
fn takes_roles(ptx: &str, params: &[Vec<u8>], grid: [u32; 3]) -> Result<bool, String> {
    let Some((entry, values)) = PersistentEntry::of_ptx(ptx)? else { return Ok(false) };
    let word = |bytes: &Vec<u8>| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    let words: Vec<u64> = params.iter().map(word).collect();
    let parameters = values.parameters(&words, grid);
    Ok(parameters.first() == Some(&1) && entry.maps.iter().all(|map| map.tensor(&parameters).is_some()))
}

fn add_up(explained: &Explained, counters: &Counters, tensors: &[Tensor], (programs, programs_run): (u64, u64)) -> Run {
    let scale = programs as f64 / programs_run.max(1) as f64;
    let total = counters.total();
    let l2_sectors = counters.sectors_read_by_clusters() + total.global.store_sectors;
    let (least_bytes, memory_bytes) = memory(counters, tensors, scale);
    Run {
        programs,
        programs_run,
        grid: [1; 3],
        takes_roles: false,
        shared_bytes: 0,
        accesses: explained.accesses.iter().map(|access| traffic(access, counters, scale)).collect(),
        least_bytes,
        memory_bytes,
        l2_bytes: scale * (SECTOR * l2_sectors as f64 + total.async_bytes as f64),
        l1_lines: scale * total.global.lines as f64,
        instructions: total.warp_instructions() as f64 * scale,
        wavefronts: total.shared.wavefronts as f64 * scale,
        bank_conflicts: total.shared.bank_conflicts() as f64 * scale,
    }
}

/// The traffic of the access's line and column.
fn traffic(access: &Access, counters: &Counters, scale: f64) -> Traffic {
    let is_here = |line: &kernel_sim::ptx::SourceLine| {
        (line.file, line.line, line.column) == (u32::from(access.loc.file) + 1, access.loc.line, access.loc.column)
    };
    let found = counters.lines().find(|(line, _)| is_here(line));
    let LineCounters { global, .. } = found.map(|(_, counters)| counters.clone()).unwrap_or_default();
    Traffic {
        asked_bytes: (global.load_bytes + global.store_bytes) as f64 * scale,
        requests: global.requests as f64 * scale,
        sectors: global.sectors() as f64 * scale,
        least_sectors: global.least_sectors as f64 * scale,
        bytes_by_width: global.bytes_by_width.map(|bytes| bytes as f64 * scale),
    }
}

/// The bytes of the different elements and of the different sectors that a launch loads and stores. If only a part of the launch ran, the
/// other programs are taken to touch as many new ones, up to the size of each tensor.
fn memory(counters: &Counters, tensors: &[Tensor], scale: f64) -> (f64, f64) {
    let (mut least, mut moved) = (0.0, 0.0);
    let mut directions: [HashMap<u64, u32>; 2] = Default::default();
    for (_, sectors) in counters.sectors() {
        for (all, own) in directions.iter_mut().zip([&sectors.loaded, &sectors.stored]) {
            own.iter().for_each(|(sector, bytes)| *all.entry(*sector).or_default() |= bytes);
        }
    }
    for sectors in &directions {
        // The bytes and the sectors in each tensor, and elsewhere.
        let mut touched = vec![(0.0, 0.0); tensors.len() + 1];
        for (sector, bytes) in sectors {
            let address = sector * SECTOR as u64;
            let is_in = |tensor: &Tensor| tensor.address <= address && address < tensor.address + tensor.bytes.max(1);
            let of = &mut touched[tensors.iter().position(is_in).unwrap_or(tensors.len())];
            *of = (of.0 + f64::from(bytes.count_ones()), of.1 + SECTOR);
        }
        for (at, (bytes, sector_bytes)) in touched.into_iter().enumerate() {
            let most = tensors.get(at).map_or(f64::INFINITY, |tensor| tensor.bytes as f64);
            least += (bytes * scale).min(most);
            moved += (sector_bytes * scale).min((most / SECTOR).ceil() * SECTOR);
        }
    }
    (least, moved)
}
