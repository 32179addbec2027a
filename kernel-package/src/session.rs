//! Sessions: runs of a plan on a device.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kernel_runtime::ops::parts::{is_capturing, stopping_at};
use kernel_runtime::ops::recorder::TensorType;
use kernel_runtime::ops::{Module, Tensor};
use kernel_runtime::{Device, DimValues, profile};

use crate::error::RunError;
use crate::execute::{self, Launches};
use crate::guards;
use crate::limits::Bounds;
use crate::memory::{Lifetimes, Memory};
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
        plan.verify().map_err(|violation| RunError::Invalid { reason: violation.reason })?;
        if let Some(reason) = plan.not_on_cpu.take().filter(|_| device.is_cpu()) {
            return Err(RunError::NotOnCpu { reason });
        }
        if let Some(own) = plan.on_cpu.take().filter(|_| device.is_cpu()) {
            plan = Plan { name: plan.name, ..*own };
        }
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

    /// The same session with checked launches: a run reports the first access outside a tensor, and the first assertion that fails, with the line of the kernel and
    /// that of the recorded function. See [`Launch::checked`](kernel_runtime::Launch::checked). Launches run one by one.
    #[must_use]
    pub fn checked(mut self) -> Session {
        for node in &mut self.plan.nodes {
            if let NodeOp::Launch(launch) = &mut node.op {
                launch.set_checked();
            }
        }
        *self.replays.get_mut() = false;
        self
    }

    /// Replaces the named constants of the program by the parameters of a model with the same names. The model may be on another device. Later runs use its
    /// elements as they are now. Parameters that the program does not use are ignored. If there is an error, the session keeps its constants.
    ///
    /// Constants have the names of parameters if the graph was made with `with_params`. Those without a name stay.
    ///
    /// # Errors
    /// [`RunError::NoParameter`] for a constant with a name that the model lacks, [`RunError::ParameterType`] for a parameter of another dtype or shape, and those of
    /// a copy to the device.
    pub fn update_params(&mut self, model: &impl Module) -> Result<()> {
        let parameters: HashMap<String, Tensor> = model.parameters().into_iter().collect();
        let mut new = Vec::new();
        for name in self.plan.constants.iter().filter_map(|constant| constant.name.as_ref()) {
            let parameter = parameters.get(name).ok_or_else(|| RunError::NoParameter { name: name.clone() })?;
            new.push((name.clone(), parameter.clone()));
        }
        self.update_constants(new)
    }

    /// Replaces constants of the program by tensors with their names, such as those of [`weights::load`](crate::weights::load). It needs no model. Other constants stay, and
    /// all of them if there is an error.
    ///
    /// # Errors
    /// [`RunError::NoConstant`] for a name that no constant has, and the errors of [`Session::update_params`].
    pub fn update_constants(&mut self, tensors: impl IntoIterator<Item = (String, Tensor)>) -> Result<()> {
        let names = self.plan.constant_names();
        let mut new = Vec::new();
        for (name, tensor) in tensors {
            // Tensors of a recording have no elements.
            if tensor.device().is_none() {
                return Err(RunError::RecordedInput { input: name });
            }
            let found = TensorType { dtype: tensor.dtype(), dims: tensor.dims() };
            let tensor = tensor.detach().to_device(&self.device)?;
            let before = new.len();
            for (number, _) in names.iter().enumerate().filter(|(_, known)| **known == name) {
                let expected = self.plan.ty(self.plan.constants[number].value);
                if found != *expected {
                    return Err(RunError::ParameterType { name, expected: Box::new(expected.clone()), found: Box::new(found) });
                }
                new.push((number, tensor.clone()));
            }
            if new.len() == before {
                return Err(RunError::NoConstant { name, known: names });
            }
        }
        new.into_iter().for_each(|(number, tensor)| self.plan.constants[number].tensor = tensor);
        Ok(())
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
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
        self.with_room(|room| {
            self.lifetimes.take(&self.plan, &self.device, outputs, &mut room.memory);
            self.run_in(room, inputs, &dims)
        })
    }

    /// As [`Session::run`], with inputs that the caller gives away: a launch writes an input in place, unless the caller has kept a clone. So a cache that each run returns with
    /// another row is never copied. Launches run one by one.
    ///
    /// A session of an [untrusted](crate::Package::untrusted) package copies inputs that it writes.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub fn run_owned(&self, inputs: impl Into<Vec<Tensor>>) -> Result<Vec<Tensor>> {
        let inputs: Vec<Tensor> = inputs.into();
        let of_run: Vec<&Tensor> = inputs.iter().collect();
        if self.bounds.is_some() {
            return self.run(of_run);
        }
        let dims = guards::check(&self.plan.inputs, self.device, &of_run)?;
        let _call = profile::call(&self.plan.name, of_run);
        self.with_room(|room| {
            self.prepare(room, &dims)?;
            execute::run(&self.plan, &self.lifetimes, inputs, &dims, &mut room.memory, Launches::Made)
        })
    }

    /// A run with what an earlier one left behind.
    fn with_room(&self, run: impl FnOnce(&mut Room) -> Result<Vec<Tensor>>) -> Result<Vec<Tensor>> {
        let mut room = self.rooms().pop().unwrap_or_default();
        let outputs = run(&mut room)?;
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
        stopping_at(end, || {
            execute::run(&self.plan, &self.lifetimes, execute::shared(inputs), dims, &mut memory, Launches::Untrusted { end })
        })
    }

    fn rooms(&self) -> MutexGuard<'_, Vec<Room>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run_in(&self, room: &mut Room, inputs: &[&Tensor], dims: &DimValues) -> Result<Vec<Tensor>> {
        if self.replays.load(Ordering::Relaxed) && !profile::is_recording() && !is_capturing() {
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
        execute::run(&self.plan, &self.lifetimes, execute::shared(inputs), dims, &mut room.memory, Launches::Made)
    }

    fn prepare(&self, room: &mut Room, dims: &DimValues) -> Result<()> {
        let allocations = self.lifetimes.prepare(&self.plan, &self.device, dims, &mut room.memory, true)?;
        self.allocations.fetch_add(allocations, Ordering::Relaxed);
        Ok(())
    }
}
