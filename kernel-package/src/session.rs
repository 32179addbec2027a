//! Runs of a plan.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kernel_runtime::ops::Tensor;
use kernel_runtime::ops::recorder::{BoundArg, RecordedArg, RecordedLaunch, TensorType, Value};
use kernel_runtime::{Device, Dim, DimValues, Error};

use crate::error::RunError;
use crate::plan::{Node, NodeOp, Plan};

type Result<T, E = RunError> = std::result::Result<T, E>;

/// A program on a device.
///
/// Each run checks its inputs first: their number, dtypes, devices and extents. It then executes the nodes in order. A tensor is freed after its last use,
/// and a launch writes a tensor in place where no later operation needs the older elements.
///
/// The session keeps the memory of a run for later ones, at the upper bounds of the dims. Only outputs get memory of their own in each run: they belong to the
/// caller, who may write them. Runs of several threads at the same time have memory of their own.
#[derive(Debug)]
pub struct Session {
    plan: Plan,
    device: Device,
    /// For each node, the values that no later node and no output uses.
    last_uses: Vec<Vec<Value>>,
    /// For each value, the number of the allocation whose memory it has, unless a launch had to copy.
    allocation_of: Vec<Option<usize>>,
    /// The allocations whose memory outputs have.
    escaping: Vec<bool>,
    /// The memory of runs that have ended.
    kept: Mutex<Vec<Kept>>,
    allocations: AtomicUsize,
}

/// The memory for each allocation of a program, with the numbers of the allocations.
type Kept = Vec<Option<Tensor>>;

/// The most runs whose memory a session keeps.
const MOST_KEPT: usize = 8;
/// Memory of more bytes is allocated for the extents of the run, not for the upper bounds of the dims.
const MOST_BYTES_AHEAD: i64 = 256 << 20;

impl Session {
    /// A session of this plan, or of what converts to one, such as a recorded graph.
    ///
    /// # Errors
    /// [`RunError::Invalid`] for a plan that breaks a rule, and an error of the runtime if the constants cannot be copied to the device.
    pub fn new(plan: impl Into<Plan>, device: &Device) -> Result<Session> {
        let mut plan = plan.into();
        plan.verify().map_err(|violation| RunError::Invalid { reason: violation.reason })?;
        for constant in &mut plan.constants {
            constant.tensor = constant.tensor.to_device(device)?;
        }
        let mut is_used_later = vec![false; plan.types.len()];
        plan.outputs.iter().for_each(|value| is_used_later[value.0 as usize] = true);
        // The session keeps them for the next run.
        plan.constants.iter().for_each(|constant| is_used_later[constant.value.0 as usize] = true);
        let mut last_uses = Vec::with_capacity(plan.nodes.len());
        for node in plan.nodes.iter().rev() {
            let mut ends = Vec::new();
            let mut visit = |value: Value| {
                if !std::mem::replace(&mut is_used_later[value.0 as usize], true) {
                    ends.push(value);
                }
            };
            node.op.each_operand(&mut |value, _| visit(value));
            // A result may have no use at all.
            node.results.iter().for_each(|result| visit(*result));
            last_uses.push(ends);
        }
        last_uses.reverse();
        let allocation_of = allocations(&plan);
        let mut escaping = vec![false; plan.nodes.len()];
        plan.outputs.iter().filter_map(|value| allocation_of[value.0 as usize]).for_each(|number| escaping[number] = true);
        Ok(Session { plan, device: *device, last_uses, allocation_of, escaping, kept: Mutex::default(), allocations: AtomicUsize::new(0) })
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How many times runs have allocated memory: in each run once for each output, and in first runs for what is computed in between.
    pub fn allocations(&self) -> usize {
        self.allocations.load(Ordering::Relaxed)
    }

    /// Runs the program, and returns its outputs.
    ///
    /// # Errors
    /// An error that names the input, its axis, the value and the allowed ones if the inputs do not fit the program, and the errors of launches.
    pub fn run<'t>(&self, inputs: impl AsRef<[&'t Tensor]>) -> Result<Vec<Tensor>> {
        let inputs = inputs.as_ref();
        let dims = self.check(inputs)?;
        let mut kept = self.kept().pop().unwrap_or_else(|| vec![None; self.plan.nodes.len()]);
        let outputs = self.run_nodes(inputs, &dims, &mut kept)?;
        let mut all = self.kept();
        if all.len() < MOST_KEPT {
            all.push(kept);
        }
        Ok(outputs)
    }

    fn kept(&self) -> MutexGuard<'_, Vec<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run_nodes(&self, inputs: &[&Tensor], dims: &DimValues, kept: &mut Kept) -> Result<Vec<Tensor>> {
        let mut values: Vec<Option<Tensor>> = vec![None; self.plan.types.len()];
        values.iter_mut().zip(inputs).for_each(|(value, input)| *value = Some((*input).clone()));
        for constant in &self.plan.constants {
            values[constant.value.0 as usize] = Some(constant.tensor.clone());
        }
        for (node, ends) in self.plan.nodes.iter().zip(&self.last_uses) {
            self.run_node(node, ends, dims, &mut values, kept).map_err(|error| error.at(&node.location))?;
            ends.iter().for_each(|value| self.keep(*value, &mut values, kept));
        }
        self.plan.outputs.iter().map(|value| defined(&values, *value).cloned()).collect()
    }

    /// Drops a value, or keeps its memory for later runs.
    fn keep(&self, value: Value, values: &mut [Option<Tensor>], kept: &mut Kept) {
        let tensor = values[value.0 as usize].take();
        let Some(number) = self.allocation_of[value.0 as usize].filter(|number| !self.escaping[*number]) else { return };
        // A launch that had to copy has made memory for the extents of this run.
        if tensor.as_ref().map(Tensor::capacity) > kept[number].as_ref().map(Tensor::capacity) {
            kept[number] = tensor;
        }
    }

    /// Memory with these extents: that of an earlier run, if there is some.
    fn memory(&self, number: usize, ty: &TensorType, extents: Vec<i64>, kept: &mut Kept) -> Result<Tensor> {
        if let Some(tensor) = kept[number].take()
            && let Some(tensor) = tensor.reused(extents.clone())?
        {
            return Ok(tensor);
        }
        self.allocations.fetch_add(1, Ordering::Relaxed);
        let most = |dim: &Dim| dim.bounds().map(|bounds| *bounds.end());
        let most = ty.dims.iter().try_fold(1i64, |product, dim| product.checked_mul(most(dim).ok()?));
        let fits = |most: &i64| most.checked_mul(ty.dtype.bytes() as i64).is_some_and(|bytes| bytes <= MOST_BYTES_AHEAD);
        if let Some(most) = most.filter(fits).filter(|_| !self.escaping[number])
            && let Some(tensor) = Tensor::empty(&self.device, ty.dtype, [most])?.reused(extents.clone())?
        {
            return Ok(tensor);
        }
        Ok(Tensor::empty(&self.device, ty.dtype, extents)?)
    }

    fn run_node(&self, node: &Node, ends: &[Value], dims: &DimValues, values: &mut [Option<Tensor>], kept: &mut Kept) -> Result<()> {
        let extents =
            |value: Value| self.plan.ty(value).dims.iter().map(|dim| dim.value(dims)).collect::<kernel_runtime::Result<Vec<i64>>>();
        let (result, tensor) = match &node.op {
            NodeOp::Alloc { zeroed } => {
                let result = node.results[0];
                let number = self.allocation_of[result.0 as usize].unwrap_or_default();
                let mut tensor = self.memory(number, self.plan.ty(result), extents(result)?, kept)?;
                if *zeroed {
                    tensor.fill_zeros()?;
                }
                (result, tensor)
            }
            NodeOp::View { of, offset } => {
                let result = node.results[0];
                (result, defined(values, *of)?.part_at(offset.value(dims)?, extents(result)?)?)
            }
            NodeOp::Launch(launch) => return run_launch(launch, &node.results, ends, dims, values),
        };
        values[result.0 as usize] = Some(tensor);
        Ok(())
    }

    /// Checks the inputs, and returns the values of the dims.
    fn check(&self, inputs: &[&Tensor]) -> Result<DimValues> {
        let expected = &self.plan.inputs;
        if inputs.len() != expected.len() {
            let names = expected.iter().map(|input| input.name.clone()).collect::<Vec<_>>().join(", ");
            return Err(RunError::InputCount { expected: expected.len(), names, given: inputs.len() });
        }
        let mut dims = DimValues::new();
        for (tensor, graph) in inputs.iter().zip(expected) {
            let input = || graph.name.clone();
            if tensor.dtype() != graph.ty.dtype {
                return Err(RunError::InputDtype { input: input(), expected: graph.ty.dtype, found: tensor.dtype() });
            }
            if tensor.rank() != graph.ty.dims.len() {
                return Err(RunError::InputRank { input: input(), expected: graph.ty.dims.len(), found: tensor.rank() });
            }
            match tensor.device() {
                Some(found) if found == self.device => {}
                Some(found) => return Err(RunError::InputDevice { input: input(), expected: self.device, found }),
                None => return Err(RunError::RecordedInput { input: input() }),
            }
            for (axis, (extent, dim)) in tensor.dims().iter().zip(&graph.ty.dims).enumerate() {
                if dim.is_named()
                    && let Err(error) = dims.set(dim, extent.value(&DimValues::new())?)
                {
                    let Error::Dim(error) = error else { return Err(error.into()) };
                    return Err(RunError::InputExtent { input: input(), axis, error: Box::new(error) });
                }
            }
        }
        for (tensor, graph) in inputs.iter().zip(expected) {
            for (axis, (extent, dim)) in tensor.dims().iter().zip(&graph.ty.dims).enumerate() {
                let (expected, found) = (dim.value(&dims)?, extent.value(&DimValues::new())?);
                if expected != found {
                    return Err(RunError::InputMismatch { input: graph.name.clone(), axis, dim: dim.to_string(), expected, found });
                }
            }
        }
        Ok(dims)
    }
}

/// For each value, the allocation whose memory it has: the number of the node that allocates it.
fn allocations(plan: &Plan) -> Vec<Option<usize>> {
    let mut of = vec![None; plan.types.len()];
    for (number, node) in plan.nodes.iter().enumerate() {
        match &node.op {
            NodeOp::Alloc { .. } => of[node.results[0].0 as usize] = Some(number),
            NodeOp::View { .. } => {}
            NodeOp::Launch(launch) => {
                for (result, written) in node.results.iter().zip(launch.args().filter_map(|(_, arg)| arg.written())) {
                    of[result.0 as usize] = of[written.0 as usize];
                }
            }
        }
    }
    of
}

/// The tensor of a value.
fn defined(values: &[Option<Tensor>], value: Value) -> Result<&Tensor> {
    let tensor = values.get(value.0 as usize).and_then(Option::as_ref);
    tensor.ok_or_else(|| RunError::Invalid { reason: format!("value {} is used where it is not known", value.0) })
}

/// Runs a launch. A tensor that it writes is taken out of its value if that value is used no more; else the launch copies it.
fn run_launch(launch: &RecordedLaunch, results: &[Value], ends: &[Value], dims: &DimValues, values: &mut [Option<Tensor>]) -> Result<()> {
    let reads =
        |wanted: Value| launch.args().any(|(_, arg)| matches!(arg, RecordedArg::Tensor { value, writes: false, .. } if *value == wanted));
    let mut written: Vec<Tensor> = Vec::with_capacity(results.len());
    for value in launch.args().filter_map(|(_, arg)| arg.written()) {
        let tensor = defined(values, value)?.clone();
        if ends.contains(&value) && !reads(value) {
            values[value.0 as usize] = None;
        }
        written.push(tensor);
    }
    let mut targets = written.iter_mut();
    let mut arguments = Vec::new();
    for (_, arg) in launch.args() {
        arguments.push(match arg {
            RecordedArg::Tensor { writes: true, .. } => BoundArg::TensorMut(
                targets.next().ok_or_else(|| RunError::Invalid { reason: "a launch writes more tensors than it has".to_owned() })?,
            ),
            RecordedArg::Tensor { value, .. } => BoundArg::Tensor(defined(values, *value)?),
            RecordedArg::Word { .. } => BoundArg::Recorded,
            RecordedArg::Dim { dim, .. } => BoundArg::Dim(dim.value(dims)?),
        });
    }
    let mut grid = [0; 3];
    for (programs, dim) in grid.iter_mut().zip(launch.grid()) {
        *programs = dim.value(dims)?;
    }
    launch.run(arguments, grid)?;
    results.iter().zip(written).for_each(|(result, tensor)| values[result.0 as usize] = Some(tensor));
    Ok(())
}
