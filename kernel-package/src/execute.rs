//! Execution of a plan's nodes.

use std::time::Instant;

use kernel_runtime::ops::recorder::{Binding, BoundArg, RecordedArg, RecordedLaunch, TensorType, Value};
use kernel_runtime::ops::{ExternArg, ExternCall, Tensor};
use kernel_runtime::{Dim, DimValues, Stream};

use crate::error::RunError;
use crate::memory::{Lifetimes, Memory};
use crate::plan::{Node, NodeOp, Plan};

type Result<T, E = RunError> = std::result::Result<T, E>;

/// What an execution does with launches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Launches {
    /// It makes them.
    Made,
    /// It makes those of an untrusted plan, until this time.
    Untrusted { end: Instant },
}

/// What all operations of a run have in common.
#[derive(Clone, Copy)]
pub(crate) struct Run<'r> {
    pub(crate) plan: &'r Plan,
    pub(crate) lifetimes: &'r Lifetimes,
    pub(crate) dims: &'r DimValues,
    /// Launches run on it, and new memory has it as its home stream.
    pub(crate) stream: &'r Stream,
}

/// Vectors that are empty between runs, so that a run need not allocate them.
#[derive(Default, Debug)]
pub(crate) struct Values {
    /// The tensor of each value that is defined and used later.
    tensors: Vec<Option<Tensor>>,
    /// The tensors that a launch writes.
    written: Vec<Tensor>,
    /// The values of those that are still to be found.
    pending: Vec<Value>,
}

/// Executes the nodes in order, and adds the outputs. The memory is prepared; afterwards, that of later runs is in its place again.
pub(crate) fn run(
    run: Run<'_>,
    inputs: impl IntoIterator<Item = Tensor>,
    (memory, values): (&mut Memory, &mut Values),
    launches: Launches,
    outputs: &mut Vec<Tensor>,
) -> Result<()> {
    values.tensors.clear();
    values.tensors.resize(run.plan.types.len(), None);
    let mut execution = Execution { run, values, memory, launches };
    let ended = execution.all(inputs, outputs);
    execution.values.tensors.clear();
    ended
}

struct Execution<'e> {
    run: Run<'e>,
    values: &'e mut Values,
    memory: &'e mut Memory,
    launches: Launches,
}

impl Execution<'_> {
    fn all(&mut self, inputs: impl IntoIterator<Item = Tensor>, outputs: &mut Vec<Tensor>) -> Result<()> {
        let Run { plan, lifetimes, .. } = self.run;
        self.values.tensors.iter_mut().zip(inputs).for_each(|(value, input)| *value = Some(input));
        for constant in &plan.constants {
            self.values.tensors[constant.value.0 as usize] = Some(constant.tensor.clone());
        }
        for (number, node) in plan.nodes.iter().enumerate() {
            if let Err(error) = self.node(number, node) {
                self.restore();
                return Err(error.at(&node.location));
            }
            lifetimes.last_uses[number].iter().for_each(|value| self.end(*value));
        }
        for value in &plan.outputs {
            outputs.push(defined(&self.values.tensors, *value)?.clone());
        }
        Ok(())
    }

    fn node(&mut self, number: usize, node: &Node) -> Result<()> {
        let Run { plan, lifetimes, dims, .. } = self.run;
        // Also fills and copies take time.
        if matches!(self.launches, Launches::Untrusted { end } if Instant::now() >= end) {
            return Err(RunError::TimeLimit);
        }
        let tensor = match &node.op {
            NodeOp::Alloc { zeroed } => {
                let mut tensor = lifetimes.allocated(node.results[0], self.run, self.memory)?;
                // A stranger's kernel must not read what other programs left in the memory of a GPU. On the CPU, memory that no run had is zeros.
                let is_untrusted = matches!(self.launches, Launches::Untrusted { .. });
                let may_leak = is_untrusted && tensor.device().is_none_or(|device| !device.is_cpu());
                if *zeroed || may_leak {
                    tensor.fill_zeros()?;
                }
                tensor
            }
            NodeOp::View { of, offset } => {
                let shape = plan.ty(node.results[0]).shape(dims)?;
                defined(&self.values.tensors, *of)?.part_at(offset.value(dims)?, shape)?
            }
            NodeOp::Launch(launch) => {
                return self.launch(launch, &node.results, &lifetimes.last_uses[number]);
            }
            NodeOp::Extern(call) => return self.call(call, &node.results, &lifetimes.last_uses[number]),
        };
        self.values.tensors[node.results[0].0 as usize] = Some(tensor);
        Ok(())
    }

    /// Makes a launch. A tensor that it writes is taken out of its value if that value is used no more; else the launch copies it.
    fn launch(&mut self, launch: &RecordedLaunch, results: &[Value], ends: &[Value]) -> Result<()> {
        let Run { dims, stream, .. } = self.run;
        let Values { tensors, written: kept, pending } = &mut *self.values;
        let reads = |wanted: Value| {
            launch.args().any(|(_, arg)| matches!(arg, RecordedArg::Tensor { value, writes: false, .. } if *value == wanted))
        };
        let mut written = std::mem::take(kept);
        pending.clear();
        pending.extend(launch.args().filter_map(|(_, arg)| arg.written()));
        pending.reverse();
        while let Some(value) = pending.pop() {
            let tensor = defined(tensors, value)?.clone();
            // The launch may write one value by two arguments, which are two tensors after it.
            if ends.contains(&value) && !reads(value) && !pending.contains(&value) {
                tensors[value.0 as usize] = None;
            }
            written.push(tensor);
        }
        let (known, mut targets, mut refused) = (&**tensors, written.iter_mut(), None);
        let mut bound = |arg: &RecordedArg| {
            Ok(match arg {
                RecordedArg::Tensor { writes: true, .. } => BoundArg::TensorMut(
                    targets.next().ok_or_else(|| RunError::Invalid { reason: "a launch writes more tensors than it has".to_owned() })?,
                ),
                RecordedArg::Tensor { value, .. } => BoundArg::Tensor(defined(known, *value)?),
                RecordedArg::Word { .. } => BoundArg::Recorded,
                RecordedArg::Dim { dim, .. } => BoundArg::Dim(dim.value(dims)?),
            })
        };
        let mut arguments = launch.args().map_while(|(_, arg)| bound(arg).map_err(|error| refused = Some(error)).ok());
        let launched = launch.run(Binding { arguments: &mut arguments, dims, stream });
        let launched = refused.map_or(launched.map_err(RunError::from), Err);
        match launched {
            Ok(()) => results.iter().zip(written.drain(..)).for_each(|(result, tensor)| tensors[result.0 as usize] = Some(tensor)),
            // Their memory is kept.
            Err(_) => {
                let values = launch.args().filter_map(|(_, arg)| arg.written());
                values.zip(written.drain(..)).for_each(|(value, tensor)| tensors[value.0 as usize] = Some(tensor));
            }
        }
        *kept = written;
        launched
    }

    /// Calls an opaque op, and compares its results with the types that were recorded. As for a launch, a tensor that it writes is taken out of its value
    /// if that value is used no more.
    fn call(&mut self, call: &ExternCall, results: &[Value], ends: &[Value]) -> Result<()> {
        let Run { plan, dims, stream, .. } = self.run;
        let known = &mut self.values.tensors;
        let mut tensors: Vec<Vec<Tensor>> = Vec::with_capacity(call.arguments().len());
        for arg in call.arguments() {
            tensors.push(arg.values().iter().map(|value| defined(known, *value).cloned()).collect::<Result<_>>()?);
        }
        for value in call.written().filter(|value| ends.contains(value)) {
            let mut uses = 0;
            call.each_value(&mut |operand, _| uses += usize::from(operand == value));
            if uses == 1 {
                known[value.0 as usize] = None;
            }
        }
        let returned = call.run(&mut tensors, dims)?;
        let differs = |reason: String| RunError::OpResult { op: call.name().to_owned(), reason };
        let written: Vec<(&str, Tensor)> = call
            .args()
            .zip(tensors)
            .filter(|((_, arg), _)| matches!(arg, ExternArg::Written(_)))
            .flat_map(|((name, _), tensors)| tensors.into_iter().map(move |tensor| (name, tensor)))
            .collect();
        let expected = results.len() - written.len();
        if returned.len() != expected {
            return Err(differs(format!("it returns {} results, and `fake` returns {expected}", returned.len())));
        }
        let numbered = returned.into_iter().enumerate().map(|(number, tensor)| (format!("result {number}"), tensor));
        let all = numbered.chain(written.into_iter().map(|(name, tensor)| (format!("`{name}`"), tensor)));
        for ((what, tensor), result) in all.zip(results) {
            let ty = plan.ty(*result);
            let extents = ty.dims.iter().map(|dim| dim.value(dims).map(Dim::from));
            let expected = TensorType { dtype: ty.dtype, dims: extents.collect::<kernel_runtime::Result<_>>()? };
            let found = TensorType { dtype: tensor.dtype(), dims: tensor.dims() };
            if found != expected {
                return Err(differs(format!("{what} is {found} after the call, and `fake` declares {ty}, which is {expected}")));
            }
            if tensor.device() != Some(stream.device()) {
                let found = tensor.device().map_or_else(|| "recorded".to_owned(), |device| format!("on `{device}`"));
                return Err(differs(format!("{what} is {found} after the call, and the session runs on `{}`", stream.device())));
            }
            known[result.0 as usize] = Some(tensor.detach());
        }
        Ok(())
    }

    /// Keeps all memory for later runs, also that of outputs.
    fn restore(&mut self) {
        for (number, tensor) in self.values.tensors.iter_mut().enumerate() {
            if let Some(tensor) = tensor.take() {
                self.run.lifetimes.keep(Value(number as u32), tensor, self.memory);
            }
        }
    }

    /// Drops a value, or keeps its memory for later runs.
    fn end(&mut self, value: Value) {
        if let Some(tensor) = self.values.tensors[value.0 as usize].take() {
            self.run.lifetimes.end(value, tensor, self.memory);
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
