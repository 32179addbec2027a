//! Sessions: runs of a plan on a device.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kernel_runtime::ops::Tensor;
use kernel_runtime::ops::parts::stopping_at;
use kernel_runtime::ops::recorder::TensorType;
use kernel_runtime::{Device, DimValues, profile};

use crate::error::RunError;
use crate::execute::{self, Launches, Lifetimes, Memory};
use crate::guards;
use crate::limits::Bounds;
use crate::plan::{NodeOp, Plan};
use crate::replays::{Refusal, Replays};

type Result<T, E = RunError> = std::result::Result<T, E>;

/// A program on a device.
///
/// Each run checks its inputs first: their number, dtypes, devices and extents. It then executes the nodes in order. A launch writes a tensor in place where
/// no later operation needs the older elements.
///
/// The session keeps the memory of a run for later ones, at the upper bounds of the dims. Only outputs get memory of their own in each run: they belong to the
/// caller, who may write them. Runs of several threads at the same time have memory of their own.
///
/// On a CUDA GPU, a run is one launch of a CUDA graph. The session keeps graphs for the dims of the latest runs, and changes one in place for other tensors
/// or dims. Launches that such a graph cannot hold, such as
/// those that copy a shared tensor first, are launched one by one, and so are those of a run that a profile records.
///
/// Runs of an untrusted package keep no memory, run one after the other, and launch one by one.
#[derive(Debug)]
pub struct Session {
    plan: Plan,
    device: Device,
    lifetimes: Lifetimes,
    /// What runs that have ended left behind.
    rooms: Mutex<Vec<Room>>,
    /// Whether runs are launches of a graph.
    replays: AtomicBool,
    allocations: AtomicUsize,
    /// The limits of an untrusted package.
    bounds: Option<Bounds>,
    /// Held by the run of a session with limits: together, two runs could take more than the limit.
    alone: Mutex<()>,
}

/// What a run needs, and leaves behind for a later one.
#[derive(Debug, Default)]
struct Room {
    memory: Memory,
    replays: Replays,
}

/// The most runs that leave something behind.
const MOST_ROOMS: usize = 8;

impl Session {
    /// A session of this plan, or of what converts to one, such as a recorded graph.
    ///
    /// # Errors
    /// [`RunError::Invalid`] for a plan that breaks a rule, and an error of the runtime if the constants cannot be copied to the device.
    pub fn new(plan: impl Into<Plan>, device: &Device) -> Result<Session> {
        Session::of(plan.into(), device, None)
    }

    /// A session with limits, if the plan is that of an untrusted package.
    pub(crate) fn of(mut plan: Plan, device: &Device, bounds: Option<Bounds>) -> Result<Session> {
        if let Some(own) = plan.on_cpu.take().filter(|_| device.is_cpu()) {
            plan = Plan { name: plan.name, ..*own };
        }
        plan.verify().map_err(|violation| RunError::Invalid { reason: violation.reason })?;
        for constant in &mut plan.constants {
            constant.tensor = constant.tensor.to_device(device)?;
        }
        let lifetimes = Lifetimes::of(&plan);
        let launches = plan.nodes.iter().filter(|node| matches!(node.op, NodeOp::Launch(_))).count();
        let replays = AtomicBool::new(device.is_cuda() && launches > 1 && bounds.is_none());
        Ok(Session {
            plan,
            device: *device,
            lifetimes,
            rooms: Mutex::default(),
            replays,
            allocations: AtomicUsize::new(0),
            bounds,
            alone: Mutex::default(),
        })
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Replaces parameters of the model in all later runs, by their names. If there is an error, all parameters stay.
    ///
    /// The tensors are shared, not copied, unless they are on another device.
    ///
    /// ```
    /// # use kernel_package::{Package, PackageError};
    /// # use kernel_runtime::Device;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # fn update(path: &str) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut session = Package::open(path)?.load(&Device::default()?)?;
    /// let weights = kernel_package::weights::load("newer.safetensors", &Device::default()?)?;
    /// session.update_params(weights)?;
    /// # Ok(())
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`RunError::NoParameter`] for a name that no constant has
    /// - [`RunError::ParameterType`] for another dtype or other extents
    /// - [`RunError::RecordedInput`] for a tensor of a recording, and errors of copies between devices
    pub fn update_params(&mut self, params: impl IntoIterator<Item = (String, Tensor)>) -> Result<()> {
        let names = self.plan.constant_names();
        let mut new = Vec::new();
        for (name, tensor) in params {
            let mut known = false;
            for (number, _) in names.iter().enumerate().filter(|(_, known)| **known == name) {
                known = true;
                let expected = self.plan.ty(self.plan.constants[number].value);
                let found = TensorType { dtype: tensor.dtype(), dims: tensor.dims() };
                if found != *expected {
                    return Err(RunError::ParameterType { name, expected: expected.to_string(), found: found.to_string() });
                }
                if tensor.device().is_none() {
                    return Err(RunError::RecordedInput { input: name });
                }
                new.push((number, tensor.to_device(&self.device)?));
            }
            if !known {
                return Err(RunError::NoParameter { name, known: names });
            }
        }
        new.into_iter().for_each(|(number, tensor)| self.plan.constants[number].tensor = tensor.detach());
        Ok(())
    }

    /// Whether runs are launches of a CUDA graph. A session finds that out in its first run.
    pub fn is_replayed(&self) -> bool {
        self.replays.load(Ordering::Relaxed)
    }

    /// How many times runs have allocated memory: in each run once for each output, and in first runs for what is computed in between.
    pub fn allocations(&self) -> usize {
        self.allocations.load(Ordering::Relaxed)
    }

    /// Runs the program, and returns its outputs.
    ///
    /// # Errors
    /// An error that names the input, its axis, the value and the allowed ones if the inputs do not fit the program, and the errors of launches. For an
    /// [untrusted](crate::Package::untrusted) package also [`RunError::MemoryLimit`], and the error of a launch that is stopped.
    pub fn run<'t>(&self, inputs: impl AsRef<[&'t Tensor]>) -> Result<Vec<Tensor>> {
        self.run_with(inputs.as_ref(), Vec::new())
    }

    /// [`Session::run`] into the outputs of an earlier run. Their memory is used again where it is large enough and no other tensor shares it, so a
    /// loop allocates nothing. After an error, `outputs` is empty.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub fn run_into<'t>(&self, inputs: impl AsRef<[&'t Tensor]>, outputs: &mut Vec<Tensor>) -> Result<()> {
        *outputs = self.run_with(inputs.as_ref(), std::mem::take(outputs))?;
        Ok(())
    }

    fn run_with(&self, inputs: &[&Tensor], outputs: Vec<Tensor>) -> Result<Vec<Tensor>> {
        let dims = guards::check(&self.plan.inputs, self.device, inputs)?;
        let _call = profile::call(&self.plan.name, inputs.iter().copied());
        if let Some(bounds) = &self.bounds {
            return self.run_within(bounds, inputs, &dims);
        }
        let mut room = self.rooms().pop().unwrap_or_default();
        self.lifetimes.take(&self.plan, &self.device, outputs, &mut room.memory);
        let outputs = self.run_in(&mut room, inputs, &dims)?;
        let mut rooms = self.rooms();
        if rooms.len() < MOST_ROOMS {
            rooms.push(room);
        }
        Ok(outputs)
    }

    /// A run of an untrusted package. It leaves no memory behind.
    fn run_within(&self, Bounds { limits, held }: &Bounds, inputs: &[&Tensor], dims: &DimValues) -> Result<Vec<Tensor>> {
        let _alone = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
        limits.allow(held.saturating_add(self.lifetimes.bytes(&self.plan, dims)?))?;
        let (mut memory, end) = (Memory::new(), limits.end());
        let allocations = self.lifetimes.prepare(&self.plan, &self.device, dims, &mut memory, false)?;
        self.allocations.fetch_add(allocations, Ordering::Relaxed);
        stopping_at(end, || execute::run(&self.plan, &self.lifetimes, inputs, dims, &mut memory, Launches::Untrusted { end }))
    }

    fn rooms(&self) -> MutexGuard<'_, Vec<Room>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run_in(&self, room: &mut Room, inputs: &[&Tensor], dims: &DimValues) -> Result<Vec<Tensor>> {
        if self.replays.load(Ordering::Relaxed) && !profile::is_recording() {
            self.prepare(room, dims)?;
            match room.replays.run((&self.plan, &self.lifetimes, &self.device), inputs, dims, &mut room.memory) {
                // Launched one by one, this run tunes. The next one with such dims is captured.
                Err(Refusal::Untuned) => {}
                Err(Refusal::Captured) => self.replays.store(false, Ordering::Relaxed),
                Err(Refusal::Failed(error)) => return Err(error),
                Ok(outputs) => return Ok(outputs),
            }
        }
        self.prepare(room, dims)?;
        execute::run(&self.plan, &self.lifetimes, inputs, dims, &mut room.memory, Launches::Made)
    }

    fn prepare(&self, room: &mut Room, dims: &DimValues) -> Result<()> {
        let allocations = self.lifetimes.prepare(&self.plan, &self.device, dims, &mut room.memory, true)?;
        self.allocations.fetch_add(allocations, Ordering::Relaxed);
        Ok(())
    }
}
