//! Runs of a plan.

use kernel_runtime::ops::Tensor;
use kernel_runtime::ops::recorder::{BoundArg, RecordedArg, RecordedLaunch, Value};
use kernel_runtime::{Device, DimValues, Error};

use crate::error::RunError;
use crate::plan::{Node, NodeOp, Plan};

type Result<T, E = RunError> = std::result::Result<T, E>;

/// A program on a device.
///
/// Each run checks its inputs first: their number, dtypes, devices and extents. It then executes the nodes in order. A tensor is freed after its last use,
/// and a launch writes a tensor in place where no later operation needs the older elements.
#[derive(Debug)]
pub struct Session {
    plan: Plan,
    device: Device,
    /// For each node, the values that no later node and no output uses.
    last_uses: Vec<Vec<Value>>,
}

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
        Ok(Session { plan, device: *device, last_uses })
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Runs the program, and returns its outputs.
    ///
    /// # Errors
    /// An error that names the input, its axis, the value and the allowed ones if the inputs do not fit the program, and the errors of launches.
    pub fn run<'t>(&self, inputs: impl AsRef<[&'t Tensor]>) -> Result<Vec<Tensor>> {
        let inputs = inputs.as_ref();
        let dims = self.check(inputs)?;
        let mut values: Vec<Option<Tensor>> = vec![None; self.plan.types.len()];
        values.iter_mut().zip(inputs).for_each(|(value, input)| *value = Some((*input).clone()));
        for constant in &self.plan.constants {
            values[constant.value.0 as usize] = Some(constant.tensor.clone());
        }
        for (node, ends) in self.plan.nodes.iter().zip(&self.last_uses) {
            self.run_node(node, ends, &dims, &mut values).map_err(|error| error.at(&node.location))?;
            ends.iter().for_each(|value| values[value.0 as usize] = None);
        }
        self.plan.outputs.iter().map(|value| defined(&values, *value).cloned()).collect()
    }

    fn run_node(&self, node: &Node, ends: &[Value], dims: &DimValues, values: &mut [Option<Tensor>]) -> Result<()> {
        let extents =
            |value: Value| self.plan.ty(value).dims.iter().map(|dim| dim.value(dims)).collect::<kernel_runtime::Result<Vec<i64>>>();
        let (result, tensor) = match &node.op {
            NodeOp::Alloc { zeroed } => {
                let (result, new) = (node.results[0], if *zeroed { Tensor::zeros } else { Tensor::empty });
                (result, new(&self.device, self.plan.ty(result).dtype, extents(result)?)?)
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
