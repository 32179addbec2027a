//! Sessions: runs of a plan on a device.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kernel_runtime::ops::parts::{is_capturing, stopping_at};
use kernel_runtime::ops::recorder::TensorType;
use kernel_runtime::ops::{MissingOp, Module, Tensor};
use kernel_runtime::{Device, DimValues, Stream, profile};

use crate::error::RunError;
use crate::execute::{self, Launches, Run, Values};
use crate::guards;
use crate::limits::Bounds;
use crate::memory::{Lifetimes, Memory};
use crate::on_stream::OnStream;
use crate::plan::{NodeOp, Plan};
use crate::replays::{Counters, Refusal, ReplayCounts, Replays};

type Result<T, E = RunError> = std::result::Result<T, E>;

/// A program on a device.
///
/// Each run checks its inputs first: their number, dtypes, devices and extents. It then executes the nodes in order. A launch writes a tensor in place where
/// no later operation needs the older elements.
///
/// The session keeps the memory of a run for later ones, at the upper bounds of the dims. Only outputs get memory of their own in each run: they belong to the
/// caller, who may write them. Runs of several threads at the same time have memory of their own, and so have runs on different streams. The memory of eight runs is kept,
/// and with it their streams.
///
/// On a CUDA GPU, a run is one launch of a CUDA graph. The session keeps 16 graphs for runs that follow each other, of the dims of the latest runs and of
/// addresses of tensors that recur. For other dims or tensors, it changes one in place, which takes longer; [`Session::replay_counts`] counts both. Launches that
/// such a graph cannot hold, such as those that copy a shared tensor first, are launched one by one, and so are those of a run that a profile records.
///
/// A plan with [opaque ops](kernel_runtime::ops::ExternCall) is launched one by one, too. A run calls each op as a function of this process does.
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
    counters: Counters,
    /// The dims of a check without a run, in a vector that all checks use.
    checked_dims: Mutex<DimValues>,
    /// The limits of an untrusted package.
    bounds: Option<Bounds>,
    /// Held by the run of a session with limits: together, two runs could take more than the limit.
    alone: Mutex<()>,
}

/// What a run needs, and leaves behind for a later one on the same stream. So the stream orders their uses of the memory.
#[derive(Debug)]
struct Room {
    stream: Stream,
    dims: DimValues,
    memory: Memory,
    values: Values,
    replays: Replays,
}

/// The most runs that leave something behind.
const MOST_ROOMS: usize = 8;

impl Room {
    fn of(stream: &Stream) -> Room {
        let (dims, memory, values, replays) = Default::default();
        Room { stream: stream.clone(), dims, memory, values, replays }
    }

    /// A run with these dims on this stream, the memory, and vectors for the values.
    fn parts<'r>(&'r mut self, plan: &'r Plan, lifetimes: &'r Lifetimes) -> (Run<'r>, &'r mut Memory, &'r mut Values) {
        (Run { plan, lifetimes, dims: &self.dims, stream: &self.stream }, &mut self.memory, &mut self.values)
    }
}

impl Session {
    /// A session of this plan, or of what converts to one, such as a recorded graph.
    ///
    /// # Errors
    /// [`RunError::Invalid`] for a plan that breaks a rule, [`RunError::MissingOps`] if the process lacks an opaque op that the plan calls, and an error of the
    /// runtime if the constants cannot be copied to the device.
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
        resolve(&mut plan)?;
        let lifetimes = Lifetimes::of(&plan);
        let launches = plan.nodes.iter().filter(|node| matches!(node.op, NodeOp::Launch(_))).count();
        // A graph holds launches, and not what an opaque op does on the host.
        let has_calls = plan.nodes.iter().any(|node| matches!(node.op, NodeOp::Extern(_)));
        let may_replay = launches > 1 && !has_calls && lifetimes.are_outputs_known();
        let replays = AtomicBool::new(device.is_cuda() && may_replay && bounds.is_none());
        Ok(Session {
            plan,
            device: *device,
            lifetimes,
            rooms: Mutex::default(),
            replays,
            allocations: AtomicUsize::new(0),
            counters: Counters::default(),
            checked_dims: Mutex::default(),
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

    /// The device.
    pub fn device(&self) -> Device {
        self.device
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Whether runs are launches of a CUDA graph. A session finds that out in its first run.
    pub fn is_replayed(&self) -> bool {
        self.replays.load(Ordering::Relaxed)
    }

    /// How many times runs have allocated memory of the device: in each run once for each output, and in first runs for what is computed in between.
    pub fn allocations(&self) -> usize {
        self.allocations.load(Ordering::Relaxed)
    }

    /// How often runs have made, changed and launched CUDA graphs.
    pub fn replay_counts(&self) -> ReplayCounts {
        self.counters.counts()
    }

    /// Checks the inputs of a run as [`Session::run`] does, and runs nothing. It takes less than a microsecond and allocates nothing.
    ///
    /// # Errors
    /// An error that names the input, its axis, the value and the allowed ones.
    pub fn check<'t>(&self, inputs: impl AsRef<[&'t Tensor]>) -> Result<()> {
        let check = |dims: &mut DimValues| guards::check(&self.plan.inputs, self.device, inputs.as_ref(), dims);
        // Two checks at the same time are rare.
        self.checked_dims.try_lock().map_or_else(|_| check(&mut DimValues::new()), |mut dims| check(&mut dims))
    }

    /// Runs the program, and returns its outputs.
    ///
    /// # Errors
    /// An error that names the input, its axis, the value and the allowed ones if the inputs do not fit the program, and the errors of launches. For an
    /// [untrusted](crate::Package::untrusted) package also [`RunError::MemoryLimit`], and the error of a launch that is stopped.
    pub fn run<'t>(&self, inputs: impl AsRef<[&'t Tensor]>) -> Result<Vec<Tensor>> {
        self.run_new(self.device.stream(), inputs.as_ref())
    }

    /// The session on a stream of its device: `session.on(&stream).run([&x])`. Other runs use the default stream of the device.
    pub fn on<'s>(&'s self, stream: &'s Stream) -> OnStream<'s, Session> {
        OnStream::new(self, stream)
    }

    /// [`Session::run`] into the outputs of an earlier run. Their memory is used again where it is large enough and no other tensor shares it, so a
    /// loop allocates nothing. After an error, `outputs` is empty.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub fn run_into<'t>(&self, inputs: impl AsRef<[&'t Tensor]>, outputs: &mut Vec<Tensor>) -> Result<()> {
        self.run_on(self.device.stream(), inputs.as_ref(), outputs)
    }

    /// As [`Session::run`], with inputs that the caller gives away: a launch writes an input in place, unless the caller has kept a clone. So a cache that each run returns with
    /// another row is never copied. Launches run one by one.
    ///
    /// A session of an [untrusted](crate::Package::untrusted) package copies inputs that it writes.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub fn run_owned(&self, inputs: impl Into<Vec<Tensor>>) -> Result<Vec<Tensor>> {
        self.run_owned_on(self.device.stream(), inputs.into())
    }

    /// A run with new outputs.
    pub(crate) fn run_new(&self, stream: &Stream, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        let mut outputs = Vec::with_capacity(self.plan.outputs.len());
        self.run_on(stream, inputs, &mut outputs)?;
        Ok(outputs)
    }

    pub(crate) fn run_on(&self, stream: &Stream, inputs: &[&Tensor], outputs: &mut Vec<Tensor>) -> Result<()> {
        let ran = self.with_guards(stream, inputs, |mut room| {
            let _call = profile::call(&self.plan.name, inputs.iter().copied());
            self.lifetimes.take(&self.plan, stream, outputs, &mut room.memory);
            match &self.bounds {
                Some(bounds) => self.run_within(bounds, &mut room, inputs, outputs)?,
                None => self.run_in(&mut room, inputs, outputs)?,
            }
            self.leave(room);
            Ok(())
        });
        if ran.is_err() {
            outputs.clear();
        }
        ran
    }

    pub(crate) fn run_owned_on(&self, stream: &Stream, inputs: Vec<Tensor>) -> Result<Vec<Tensor>> {
        let of_run: Vec<&Tensor> = inputs.iter().collect();
        if self.bounds.is_some() {
            return self.run_new(stream, &of_run);
        }
        let mut outputs = Vec::with_capacity(self.plan.outputs.len());
        let (mut room, _call) =
            self.with_guards(stream, &of_run, |room| Ok((room, profile::call(&self.plan.name, of_run.iter().copied()))))?;
        self.prepare(&mut room)?;
        let (run, memory, values) = room.parts(&self.plan, &self.lifetimes);
        execute::run(run, inputs, (memory, values), Launches::Made, &mut outputs)?;
        self.leave(room);
        Ok(outputs)
    }

    /// Checks the inputs of a run on a stream, and gives the run a room of that stream. An error of the inputs leaves the room to later runs.
    fn with_guards<T>(&self, stream: &Stream, inputs: &[&Tensor], run: impl FnOnce(Room) -> Result<T>) -> Result<T> {
        if stream.device() != self.device {
            let (device, expected) = (stream.device(), self.device);
            return Err(kernel_runtime::Error::WrongDevice { what: "this stream", device, expected }.into());
        }
        let known = {
            let mut rooms = self.rooms();
            let known = rooms.iter().rposition(|room| room.stream == *stream);
            known.map(|known| rooms.remove(known))
        };
        let mut room = known.unwrap_or_else(|| Room::of(stream));
        match guards::check(&self.plan.inputs, self.device, inputs, &mut room.dims) {
            Ok(()) => run(room),
            Err(error) => {
                self.leave(room);
                Err(error)
            }
        }
    }

    /// Leaves a room to later runs. If there are many, the one that no run has used for the longest time ends.
    fn leave(&self, room: Room) {
        let mut rooms = self.rooms();
        let oldest = (rooms.len() >= MOST_ROOMS).then(|| rooms.remove(0));
        rooms.push(room);
        drop(rooms);
        // Freeing memory takes time.
        drop(oldest);
    }

    fn rooms(&self) -> MutexGuard<'_, Vec<Room>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A run of an untrusted package. It leaves no memory behind.
    fn run_within(&self, Bounds { limits, held }: &Bounds, room: &mut Room, inputs: &[&Tensor], outputs: &mut Vec<Tensor>) -> Result<()> {
        let _alone = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
        room.memory = Memory::new();
        limits.allow(held.saturating_add(self.lifetimes.bytes(&self.plan, &room.dims)?))?;
        let end = limits.end();
        let (run, memory, values) = room.parts(&self.plan, &self.lifetimes);
        let allocations = self.lifetimes.prepare(&self.plan, run.stream, run.dims, memory, false)?;
        self.allocations.fetch_add(allocations, Ordering::Relaxed);
        let ran = stopping_at(end, || execute::run(run, execute::shared(inputs), (memory, values), Launches::Untrusted { end }, outputs));
        room.memory = Memory::new();
        ran
    }

    fn run_in(&self, room: &mut Room, inputs: &[&Tensor], outputs: &mut Vec<Tensor>) -> Result<()> {
        if self.replays.load(Ordering::Relaxed) && !profile::is_recording() && !is_capturing() {
            self.prepare(room)?;
            let Room { stream, dims, memory, values, replays } = &mut *room;
            let run = Run { plan: &self.plan, lifetimes: &self.lifetimes, dims, stream };
            match replays.run(run, inputs, (memory, values), outputs, &self.counters) {
                Ok(()) => return Ok(()),
                // Launched one by one, this run tunes. The next one with such dims is captured.
                Err(Refusal::Untuned) => {}
                Err(Refusal::Captured) => self.replays.store(false, Ordering::Relaxed),
                Err(Refusal::Failed(error)) => return Err(error),
            }
            outputs.clear();
        }
        self.prepare(room)?;
        let (run, memory, values) = room.parts(&self.plan, &self.lifetimes);
        execute::run(run, execute::shared(inputs), (memory, values), Launches::Made, outputs)
    }

    fn prepare(&self, room: &mut Room) -> Result<()> {
        let allocations = self.lifetimes.prepare(&self.plan, &room.stream, &room.dims, &mut room.memory, true)?;
        self.allocations.fetch_add(allocations, Ordering::Relaxed);
        Ok(())
    }
}

/// Finds the opaque ops that a plan calls.
fn resolve(plan: &mut Plan) -> Result<()> {
    let mut missing: Vec<MissingOp> = Vec::new();
    for node in &mut plan.nodes {
        if let NodeOp::Extern(call) = &mut node.op
            && let Err(op) = call.resolve()
            && !missing.contains(&op)
        {
            missing.push(op);
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(RunError::MissingOps { ops: missing }) }
}
