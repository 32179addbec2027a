//! Execution of a plan's nodes.

use std::time::Instant;

use kernel_runtime::DimValues;
use kernel_runtime::ops::Tensor;
use kernel_runtime::ops::recorder::{BoundArg, RecordedArg, RecordedLaunch, Value};

use crate::error::RunError;
use crate::memory::{Lifetimes, Memory, extents};
use crate::plan::{Node, NodeOp, Plan};

type Result<T, E = RunError> = std::result::Result<T, E>;

/// What an execution does with launches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Launches {
    /// It makes them.
    Made,
    /// It makes none: a graph that was captured of an equal run makes them. The execution only moves tensors from value to value.
    Replayed,
    /// It makes those of an untrusted plan, until this time.
    Untrusted { end: Instant },
}

/// Executes the nodes in order, and returns the outputs. The memory is prepared; afterwards, that of later runs is in its place again.
pub(crate) fn run(
    plan: &Plan,
    lifetimes: &Lifetimes,
    inputs: impl IntoIterator<Item = Tensor>,
    dims: &DimValues,
    memory: &mut Memory,
    launches: Launches,
) -> Result<Vec<Tensor>> {
    let mut execution = Execution { plan, lifetimes, dims, values: vec![None; plan.types.len()], memory, launches };
    execution.values.iter_mut().zip(inputs).for_each(|(value, input)| *value = Some(input));
    for constant in &plan.constants {
        execution.values[constant.value.0 as usize] = Some(constant.tensor.clone());
    }
    for (number, node) in plan.nodes.iter().enumerate() {
        if let Err(error) = execution.node(number, node) {
            execution.restore();
            return Err(error.at(&node.location));
        }
        lifetimes.last_uses[number].iter().for_each(|value| execution.end(*value));
    }
    plan.outputs.iter().map(|value| defined(&execution.values, *value).cloned()).collect()
}

struct Execution<'e> {
    plan: &'e Plan,
    lifetimes: &'e Lifetimes,
    dims: &'e DimValues,
    /// The tensor of each value that is defined and used later.
    values: Vec<Option<Tensor>>,
    memory: &'e mut Memory,
    launches: Launches,
}

impl Execution<'_> {
    fn node(&mut self, number: usize, node: &Node) -> Result<()> {
        // Also fills and copies take time.
        if matches!(self.launches, Launches::Untrusted { end } if Instant::now() >= end) {
            return Err(RunError::TimeLimit);
        }
        let tensor = match &node.op {
            NodeOp::Alloc { zeroed } => {
                let mut tensor = self.lifetimes.allocated(node.results[0], self.plan.ty(node.results[0]), self.dims, self.memory)?;
                // A stranger's kernel must not read what other programs left in the memory of a GPU. On the CPU, memory that no run had is zeros.
                let is_untrusted = matches!(self.launches, Launches::Untrusted { .. });
                let may_leak = is_untrusted && tensor.device().is_none_or(|device| !device.is_cpu());
                if (*zeroed || may_leak) && self.launches != Launches::Replayed {
                    tensor.fill_zeros()?;
                }
                tensor
            }
            NodeOp::View { of, offset } => {
                let extents = extents(self.plan.ty(node.results[0]), self.dims)?;
                defined(&self.values, *of)?.part_at(offset.value(self.dims)?, extents)?
            }
            NodeOp::Launch(launch) => {
                return self.launch(launch, &node.results, &self.lifetimes.last_uses[number]);
            }
        };
        self.values[node.results[0].0 as usize] = Some(tensor);
        Ok(())
    }

    /// Makes a launch. A tensor that it writes is taken out of its value if that value is used no more; else the launch copies it.
    fn launch(&mut self, launch: &RecordedLaunch, results: &[Value], ends: &[Value]) -> Result<()> {
        let reads = |wanted: Value| {
            launch.args().any(|(_, arg)| matches!(arg, RecordedArg::Tensor { value, writes: false, .. } if *value == wanted))
        };
        let mut written: Vec<Tensor> = Vec::with_capacity(results.len());
        let mut pending: Vec<Value> = launch.args().filter_map(|(_, arg)| arg.written()).collect();
        pending.reverse();
        while let Some(value) = pending.pop() {
            let tensor = defined(&self.values, value)?.clone();
            // The launch may write one value by two arguments, which are two tensors after it.
            if ends.contains(&value) && !reads(value) && !pending.contains(&value) {
                self.values[value.0 as usize] = None;
            }
            written.push(tensor);
        }
        if self.launches != Launches::Replayed {
            let mut targets = written.iter_mut();
            let mut arguments = Vec::new();
            for (_, arg) in launch.args() {
                arguments.push(match arg {
                    RecordedArg::Tensor { writes: true, .. } => BoundArg::TensorMut(
                        targets
                            .next()
                            .ok_or_else(|| RunError::Invalid { reason: "a launch writes more tensors than it has".to_owned() })?,
                    ),
                    RecordedArg::Tensor { value, .. } => BoundArg::Tensor(defined(&self.values, *value)?),
                    RecordedArg::Word { .. } => BoundArg::Recorded,
                    RecordedArg::Dim { dim, .. } => BoundArg::Dim(dim.value(self.dims)?),
                });
            }
            launch.run(arguments, self.dims)?;
        }
        results.iter().zip(written).for_each(|(result, tensor)| self.values[result.0 as usize] = Some(tensor));
        Ok(())
    }

    /// Keeps all memory for later runs, also that of outputs.
    fn restore(&mut self) {
        for (number, tensor) in self.values.iter_mut().enumerate() {
            if let Some(tensor) = tensor.take() {
                self.lifetimes.keep(Value(number as u32), tensor, self.memory);
            }
        }
    }

    /// Drops a value, or keeps its memory for later runs.
    fn end(&mut self, value: Value) {
        if let Some(tensor) = self.values[value.0 as usize].take() {
            self.lifetimes.end(value, tensor, self.memory);
        }
    }
}

/// The tensor of a value.
fn defined(values: &[Option<Tensor>], value: Value) -> Result<&Tensor> {
    let tensor = values.get(value.0 as usize).and_then(Option::as_ref);
    tensor.ok_or_else(|| RunError::Invalid { reason: format!("value {} is used where it is not known", value.0) })
}

/// Handles of inputs that the caller keeps. A session computes no gradients.
pub(crate) fn shared<'t>(inputs: &'t [&Tensor]) -> impl Iterator<Item = Tensor> + 't {
    inputs.iter().map(|input| input.detach())
}
