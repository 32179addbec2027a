//! Simulated GPUs: one for each target, opened once per process.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use kernel_lang::target::Target;
use kernel_sim::{Gpu as Model, Machine};

use super::report::Ledger;
use crate::device::Backend;
use crate::{Device, Error, Result};

/// The targets that can be simulated.
pub(crate) const TARGETS: &[Target] = &Target::ALL;

/// The target of the device name `sim`: the best one.
pub(crate) const DEFAULT_TARGET: Target = Target::ALL[Target::ALL.len() - 1];

/// A simulated GPU, with its properties.
pub(crate) struct Sim {
    pub(super) machine: Machine,
    /// The maximum shared memory of one program, in bytes.
    pub(super) shared_bytes: u32,
    /// The seed of the order in which warps run.
    pub(super) seed: AtomicU64,
    /// Whether races in global memory are allowed. Otherwise they are faults.
    pub(super) allows_races: AtomicBool,
    pub(super) ledger: Mutex<Ledger>,
    pub(super) number: usize,
    target: Target,
    name: String,
    compute_capability: (i32, i32),
    multiprocessors: usize,
}

impl Device {
    /// The simulated GPU of this target. The first call opens it. Requires the feature `sim`.
    ///
    /// Kernels run as the same PTX as on a real GPU of this target, thread by thread on all cores of the host, and every access is checked; see
    /// [`sim`](crate::sim).
    ///
    /// ```
    /// # use kernel_runtime::{Device, Result, Target};
    /// # fn main() -> Result<()> {
    /// let device = Device::sim(Target::SM_90A)?;
    /// assert_eq!((device.to_string().as_str(), device.compute_capability()), ("sim:sm_90a", Some((9, 0))));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownDevice`] for a target that cannot be simulated.
    pub fn sim(target: Target) -> Result<Device> {
        device(target)
    }

    /// Changes the order in which the warps of later launches run. A wrong kernel may then give another result. The same seed gives the same order.
    /// With seed 0, the default, warps run in their own order. Does nothing on other devices. Requires the feature `sim`.
    pub fn set_sim_seed(&self, seed: u64) {
        if let Backend::Sim(sim) = self.backend() {
            sim.seed.store(seed, Ordering::Relaxed);
        }
    }

    /// Sets whether later launches allow races in global memory. By default a race is a fault, unless the environment variable `GALATEA_SIM_RACES` is
    /// `allow`. Without the check, a launch takes two thirds to nine tenths of the time. A race in shared memory is always a fault. Does nothing on
    /// other devices. Requires the feature `sim`.
    pub fn allow_sim_races(&self, are_allowed: bool) {
        if let Backend::Sim(sim) = self.backend() {
            sim.allows_races.store(are_allowed, Ordering::Relaxed);
        }
    }
}

/// The environment variable that allows races in global memory. `galatea sim --allow-races` sets it.
const RACES: &str = "GALATEA_SIM_RACES";

pub(crate) fn device(target: Target) -> Result<Device> {
    static OPENED: [OnceLock<Device>; TARGETS.len()] = [const { OnceLock::new() }; TARGETS.len()];
    static OPENING: Mutex<()> = Mutex::new(());

    let unknown = || Error::UnknownDevice {
        name: format!("sim:{target}"),
        variable: None,
        known: TARGETS.iter().map(|target| format!("sim:{target}")).collect(),
    };
    let number = TARGETS.iter().position(|known| *known == target).ok_or_else(unknown)?;
    let _guard = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(device) = OPENED[number].get() {
        return Ok(*device);
    }
    let model = model(target).ok_or_else(unknown)?;
    let sim = Sim::new(number, target, model);
    Ok(*OPENED[number].get_or_init(|| Device::leak(Backend::Sim(sim))))
}

/// The GPU model for which this target is the best.
fn model(target: Target) -> Option<Model> {
    let best = |model: &Model| {
        let (major, minor) = capability(model);
        Target::best_for(major, minor)
    };
    [Model::a100(), Model::h200()].into_iter().find(|model| best(model) == Some(target))
}

fn capability(model: &Model) -> (i32, i32) {
    let (major, minor) = model.compute_capability;
    (major.cast_signed(), minor.cast_signed())
}

impl Sim {
    fn new(number: usize, target: Target, model: Model) -> Sim {
        Sim {
            shared_bytes: model.shared_bytes,
            seed: AtomicU64::new(0),
            allows_races: AtomicBool::new(std::env::var_os(RACES).is_some_and(|value| value == "allow")),
            ledger: Mutex::default(),
            number,
            target,
            name: format!("{} ({target})", model.name),
            compute_capability: capability(&model),
            multiprocessors: model.num_sms as usize,
            machine: Machine::new(model),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn target(&self) -> Target {
        self.target
    }

    pub(crate) fn compute_capability(&self) -> (i32, i32) {
        self.compute_capability
    }

    pub(crate) fn multiprocessors(&self) -> usize {
        self.multiprocessors
    }

    /// Copies bytes within this GPU's memory.
    pub(crate) fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<()> {
        Ok(self.machine.copy(from, to, bytes)?)
    }

    /// Sets `count` elements to these bytes.
    pub(crate) fn fill(&self, address: u64, element: &[u8], count: usize) -> Result<()> {
        Ok(self.machine.fill(address, element, count)?)
    }

    /// The free and the total memory, in bytes.
    pub(crate) fn memory(&self) -> (usize, usize) {
        let (free, total) = self.machine.free_and_total();
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        (bytes(free), bytes(total))
    }
}
