//! Execution of a plan's nodes, and the memory that they use.

use std::time::Instant;

use kernel_runtime::ops::Tensor;
use kernel_runtime::ops::recorder::{BoundArg, RecordedArg, RecordedLaunch, TensorType, Value};
use kernel_runtime::{Device, Dim, DimValues};

use crate::error::RunError;
use crate::plan::{Node, NodeOp, Plan};

type Result<T, E = RunError> = std::result::Result<T, E>;

/// The memory for each allocation of a program, by the number of its node.
pub(crate) type Memory = Vec<Option<Tensor>>;

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

/// Memory of more bytes is allocated for the extents of a run, not for the upper bounds of the dims.
const MOST_BYTES_AHEAD: i64 = 256 << 20;

/// Which values of a plan need memory, and how long.
#[derive(Debug)]
pub(crate) struct Lifetimes {
    /// For each node, the values that no later node and no output uses.
    last_uses: Vec<Vec<Value>>,
    /// For each value, the number of the allocation whose memory it has or is a part of, unless a launch had to copy.
    allocation_of: Vec<Option<usize>>,
    /// The allocations whose memory outputs have, or are parts of.
    escaping: Vec<bool>,
}

impl Lifetimes {
    /// The bytes that a run with these dims allocates at most, its outputs included.
    pub(crate) fn bytes(&self, plan: &Plan, dims: &DimValues) -> Result<u64> {
        let mut has_views = vec![false; plan.nodes.len()];
        let mut total = 0u64;
        for (number, node) in plan.nodes.iter().enumerate() {
            match &node.op {
                NodeOp::Alloc { .. } => total = total.saturating_add(bytes(plan.ty(node.results[0]), dims)?),
                NodeOp::View { of, .. } => {
                    if let Some(number) = self.allocation_of[of.0 as usize] {
                        has_views[number] = true;
                    }
                }
                NodeOp::Launch(launch) => {
                    for written in launch.args().filter_map(|(_, arg)| arg.written()) {
                        let uses = launch.args().filter(|(_, arg)| matches!(arg, RecordedArg::Tensor { value, .. } if *value == written));
                        let is_alone = self.allocation_of[written.0 as usize].is_some_and(|number| !has_views[number]);
                        // Otherwise another value may share the memory, and the launch copies it.
                        if !(is_alone && self.last_uses[number].contains(&written) && uses.count() == 1) {
                            total = total.saturating_add(bytes(plan.ty(written), dims)?);
                        }
                    }
                }
            }
        }
        Ok(total)
    }

    /// The lifetimes of a valid plan.
    pub(crate) fn of(plan: &Plan) -> Lifetimes {
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
        let allocation_of = allocations(plan);
        let mut escaping = vec![false; plan.nodes.len()];
        plan.outputs.iter().filter_map(|value| allocation_of[value.0 as usize]).for_each(|number| escaping[number] = true);
        Lifetimes { last_uses, allocation_of, escaping }
    }

    /// Takes the memory of outputs of an earlier run for those of the next one, where no other tensor shares it.
    pub(crate) fn take(&self, plan: &Plan, device: &Device, outputs: Vec<Tensor>, memory: &mut Memory) {
        memory.resize(plan.nodes.len(), None);
        for (value, tensor) in plan.outputs.iter().zip(outputs) {
            let number = self.allocation_of[value.0 as usize];
            let fits = tensor.dtype() == plan.ty(*value).dtype && tensor.device() == Some(*device);
            if let Some(number) = number.filter(|number| fits && memory[*number].is_none()) {
                let capacity = tensor.capacity();
                memory[number] = tensor.reused([capacity]).ok().flatten();
            }
        }
    }

    /// Makes sure that there is memory for each allocation, with the extents of a run. Returns how often memory was allocated.
    ///
    /// Unless they are `for_later_runs`, the sizes are those of this run.
    pub(crate) fn prepare(
        &self,
        plan: &Plan,
        device: &Device,
        dims: &DimValues,
        memory: &mut Memory,
        for_later_runs: bool,
    ) -> Result<usize> {
        memory.resize(plan.nodes.len(), None);
        let mut allocations = 0;
        for (number, node) in plan.nodes.iter().enumerate() {
            let NodeOp::Alloc { .. } = node.op else { continue };
            let ty = plan.ty(node.results[0]);
            let extents = extents(ty, dims)?;
            let known = memory[number].take().map(|tensor| tensor.reused(extents.clone())).transpose()?.flatten();
            memory[number] = match known {
                Some(tensor) => Some(tensor),
                None => {
                    allocations += 1;
                    Some(allocate(device, ty, extents, for_later_runs && !self.escaping[number])?)
                }
            };
        }
        Ok(allocations)
    }
}

/// For each value, the allocation whose memory it has, or is a part of: the number of the node that allocates it.
fn allocations(plan: &Plan) -> Vec<Option<usize>> {
    let mut of = vec![None; plan.types.len()];
    for (number, node) in plan.nodes.iter().enumerate() {
        match &node.op {
            NodeOp::Alloc { .. } => of[node.results[0].0 as usize] = Some(number),
            NodeOp::View { of: whole, .. } => of[node.results[0].0 as usize] = of[whole.0 as usize],
            NodeOp::Launch(launch) => {
                for (result, written) in node.results.iter().zip(launch.args().filter_map(|(_, arg)| arg.written())) {
                    of[result.0 as usize] = of[written.0 as usize];
                }
            }
        }
    }
    of
}

fn extents(ty: &TensorType, dims: &DimValues) -> Result<Vec<i64>> {
    Ok(ty.dims.iter().map(|dim| dim.value(dims)).collect::<kernel_runtime::Result<_>>()?)
}

/// The bytes of a value with these dims; `u64::MAX` for more than memory can have.
fn bytes(ty: &TensorType, dims: &DimValues) -> Result<u64> {
    let extents = extents(ty, dims)?;
    // The order of the extents does not matter: a tensor with an extent of 0 is empty.
    if extents.contains(&0) {
        return Ok(0);
    }
    let product = extents.into_iter().try_fold(ty.dtype.bytes() as u64, |bytes, extent| bytes.checked_mul(u64::try_from(extent).ok()?));
    Ok(product.unwrap_or(u64::MAX))
}

/// New memory with these extents, and for later runs with room for the upper bounds of the dims.
fn allocate(device: &Device, ty: &TensorType, extents: Vec<i64>, for_later_runs: bool) -> Result<Tensor> {
    let most = |dim: &Dim| dim.bounds().map(|bounds| *bounds.end());
    let most = ty.dims.iter().try_fold(1i64, |product, dim| product.checked_mul(most(dim).ok()?));
    let fits = |most: &i64| for_later_runs && most.checked_mul(ty.dtype.bytes() as i64).is_some_and(|bytes| bytes <= MOST_BYTES_AHEAD);
    // If there is too little memory for the upper bounds, that of this run may still fit.
    if let Some(most) = most.filter(fits)
        && let Ok(tensor) = Tensor::empty(device, ty.dtype, [most])
        && let Some(tensor) = tensor.reused(extents.clone())?
    {
        return Ok(tensor);
    }
    Ok(Tensor::empty(device, ty.dtype, extents)?)
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
        execution.node(number, node).map_err(|error| error.at(&node.location))?;
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
        let tensor = match &node.op {
            NodeOp::Alloc { zeroed } => {
                let missing = || RunError::Invalid { reason: format!("node {number} has no memory") };
                let mut tensor = self.memory[number].take().ok_or_else(missing)?;
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
        // Also a launch of no programs may copy a tensor.
        if matches!(self.launches, Launches::Untrusted { end } if Instant::now() >= end) {
            return Err(kernel_runtime::Error::TimeLimit { kernel: launch.kernel() }.into());
        }
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

    /// Drops a value, or keeps its memory for later runs.
    fn end(&mut self, value: Value) {
        let tensor = self.values[value.0 as usize].take();
        let Lifetimes { allocation_of, escaping, .. } = self.lifetimes;
        let Some(number) = allocation_of[value.0 as usize].filter(|number| !escaping[*number]) else { return };
        // A part that still exists keeps the memory, until it ends itself. A launch that had to copy has made memory for the extents of this run.
        let Some(tensor) = tensor.filter(Tensor::is_unique) else { return };
        let capacity = tensor.capacity();
        if Some(capacity) > self.memory[number].as_ref().map(Tensor::capacity) {
            self.memory[number] = tensor.reused([capacity]).ok().flatten();
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
