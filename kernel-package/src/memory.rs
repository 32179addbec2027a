//! The memory of a plan's allocations.
//!
//! Each allocation has a slot. Allocations that are never needed at the same time, and have one dtype, share a slot. Only what outputs have, or are parts of, gets slots
//! of its own: outputs leave with their memory.

use std::collections::BTreeSet;

use kernel_runtime::ops::Tensor;
use kernel_runtime::ops::recorder::{RecordedArg, TensorType, Value};
use kernel_runtime::{Dim, DimValues, Dtype, Shape, Stream};

use crate::error::RunError;
use crate::execute::Run;
use crate::plan::{NodeOp, Plan};

type Result<T, E = RunError> = std::result::Result<T, E>;

/// The memory of each slot, as a tensor of one axis; `None` while a value has it.
pub(crate) type Memory = Vec<Option<Tensor>>;

/// Memory of more bytes is allocated for the extents of a run, not for the upper bounds of the dims.
const MOST_BYTES_AHEAD: i64 = 256 << 20;

/// Which values of a plan need memory, and how long.
#[derive(Debug)]
pub(crate) struct Lifetimes {
    /// For each node, the values that no later node and no output uses.
    pub(crate) last_uses: Vec<Vec<Value>>,
    /// For each value, the slot whose memory it has or is a part of, unless a launch had to copy.
    slot_of: Vec<Option<usize>>,
    slots: Vec<Slot>,
    /// The memory of each output, if no launch copies; `None` if it is not known.
    outputs: Vec<Option<Part>>,
}

/// The memory of a value.
#[derive(Clone, Debug)]
struct Part {
    of: Whole,
    /// The number of the first element.
    offset: Dim,
}

/// The memory of which a value is a part.
#[derive(Clone, Copy, Debug)]
enum Whole {
    Input(usize),
    Constant(usize),
    Slot(usize),
}

/// Memory that allocations have one after the other.
#[derive(Debug)]
struct Slot {
    dtype: Dtype,
    /// The values that the allocations define, in the order of the plan.
    allocated: Vec<Value>,
    /// The number of elements for the upper bounds of the dims; `None` for no bound.
    most: Option<i64>,
    /// Whether an output has the memory, or is a part of it.
    escapes: bool,
}

impl Slot {
    /// The number of elements for these dims. An error if an allocation of that size is impossible.
    fn len(&self, plan: &Plan, dims: &DimValues) -> Result<usize> {
        self.allocated.iter().try_fold(0, |most, value| Ok(plan.ty(*value).shape(dims)?.len().max(most)))
    }

    /// New memory for `len` elements, and for later runs with room for the upper bounds of the dims.
    fn allocate(&self, stream: &Stream, len: usize, for_later_runs: bool) -> Result<Tensor> {
        let empty = |len: usize| Tensor::empty_on(stream, self.dtype, Shape::new(&[len])?);
        let fits = |most: &i64| most.checked_mul(self.dtype.bytes() as i64).is_some_and(|bytes| bytes <= MOST_BYTES_AHEAD);
        // If there is too little memory for the upper bounds, that of this run may still fit.
        if for_later_runs
            && let Some(most) = self.most.filter(fits).and_then(|most| usize::try_from(most).ok())
            && let Ok(tensor) = empty(most.max(len))
        {
            return Ok(tensor);
        }
        Ok(empty(len)?)
    }
}

impl Lifetimes {
    /// The lifetimes of a valid plan.
    pub(crate) fn of(plan: &Plan) -> Lifetimes {
        let last_uses = last_uses(plan);
        let allocation_of = allocations(plan);
        let mut escaping = vec![false; plan.nodes.len()];
        plan.outputs.iter().filter_map(|value| allocation_of[value.0 as usize]).for_each(|number| escaping[number] = true);
        // The node after which no value has the memory of an allocation.
        let mut ends = vec![0; plan.nodes.len()];
        for (node, values) in last_uses.iter().enumerate() {
            values.iter().filter_map(|value| allocation_of[value.0 as usize]).for_each(|number| ends[number] = node);
        }
        let mut slots: Vec<Slot> = Vec::new();
        let mut slot_of_node = vec![0; plan.nodes.len()];
        // The slots that no allocation has, by dtype and size, and those that are given back after a node.
        let mut free: BTreeSet<(u8, i64, usize)> = BTreeSet::new();
        let key = |slots: &[Slot], slot: usize| (slots[slot].dtype as u8, slots[slot].most.unwrap_or(i64::MAX), slot);
        let mut given_back: Vec<Vec<usize>> = vec![Vec::new(); plan.nodes.len()];
        for (number, node) in plan.nodes.iter().enumerate() {
            if let NodeOp::Alloc { .. } = node.op {
                let value = node.results[0];
                let ty = plan.ty(value);
                let (most, dtype) = (most(ty), ty.dtype as u8);
                // The smallest slot that is large enough, or else the largest one.
                let wanted = (dtype, most.unwrap_or(i64::MAX), 0);
                let larger = free.range(wanted..).next().filter(|key| key.0 == dtype);
                let fits = larger.or_else(|| free.range(..wanted).next_back().filter(|key| key.0 == dtype));
                let slot = match fits.copied().filter(|_| !escaping[number]) {
                    Some(key) => {
                        free.remove(&key);
                        key.2
                    }
                    None => {
                        slots.push(Slot { dtype: ty.dtype, allocated: Vec::new(), most: Some(0), escapes: escaping[number] });
                        slots.len() - 1
                    }
                };
                slots[slot].most = slots[slot].most.zip(most).map(|(known, most)| known.max(most));
                slots[slot].allocated.push(value);
                slot_of_node[number] = slot;
                if !escaping[number] {
                    given_back[ends[number].max(number)].push(slot);
                }
            }
            free.extend(given_back[number].drain(..).map(|slot| key(&slots, slot)));
        }
        let slot_of: Vec<_> = allocation_of.iter().map(|number| number.map(|number| slot_of_node[number])).collect();
        let outputs = parts(plan, &slot_of);
        Lifetimes { last_uses, slot_of, slots, outputs }
    }

    /// The bytes that a run with these dims allocates at most, its outputs included.
    pub(crate) fn bytes(&self, plan: &Plan, dims: &DimValues) -> Result<u64> {
        let mut total = 0u64;
        for slot in &self.slots {
            let mut bytes = slot.allocated.iter().map(|value| bytes(plan.ty(*value), dims));
            total = total.saturating_add(bytes.try_fold(0, |most, bytes| Ok::<_, RunError>(most.max(bytes?)))?);
        }
        let mut has_views = vec![false; self.slots.len()];
        for (number, node) in plan.nodes.iter().enumerate() {
            match &node.op {
                NodeOp::Alloc { .. } => {}
                NodeOp::View { of, .. } => {
                    if let Some(slot) = self.slot_of[of.0 as usize] {
                        has_views[slot] = true;
                    }
                }
                NodeOp::Launch(launch) => {
                    for written in launch.args().filter_map(|(_, arg)| arg.written()) {
                        let uses = launch.args().filter(|(_, arg)| matches!(arg, RecordedArg::Tensor { value, .. } if *value == written));
                        let is_alone = self.slot_of[written.0 as usize].is_some_and(|slot| !has_views[slot]);
                        // Otherwise another value may share the memory, and the launch copies it.
                        if !(is_alone && self.last_uses[number].contains(&written) && uses.count() == 1) {
                            total = total.saturating_add(bytes(plan.ty(written), dims)?);
                        }
                    }
                }
                // The op allocates what it returns, and memory for a tensor that it writes and that is shared.
                NodeOp::Extern(_) => {
                    for result in &node.results {
                        total = total.saturating_add(bytes(plan.ty(*result), dims)?);
                    }
                }
            }
        }
        Ok(total)
    }

    /// Takes the memory of outputs of an earlier run for those of the next one, where no other tensor shares it. `outputs` is empty then. Memory with another
    /// home stream moves to the stream of the run, which waits for earlier uses.
    pub(crate) fn take(&self, plan: &Plan, stream: &Stream, outputs: &mut Vec<Tensor>, memory: &mut Memory) {
        memory.resize(self.slots.len(), None);
        // In their order: the last one of several parts of one memory is its only handle.
        for (tensor, value) in outputs.drain(..).zip(&plan.outputs) {
            let fits = tensor.dtype() == plan.ty(*value).dtype && tensor.device() == Some(stream.device());
            if let Some(slot) = self.slot_of[value.0 as usize].filter(|slot| fits && memory[*slot].is_none()) {
                memory[slot] = whole(tensor).and_then(|tensor| moved_to(stream, tensor));
            }
        }
    }

    /// The outputs of a run whose operations a graph has made, with prepared memory. Adds them to `outputs`.
    pub(crate) fn outputs(
        &self,
        plan: &Plan,
        inputs: &[&Tensor],
        dims: &DimValues,
        memory: &mut Memory,
        outputs: &mut Vec<Tensor>,
    ) -> Result<()> {
        for (value, part) in plan.outputs.iter().zip(&self.outputs) {
            let whole = part.as_ref().and_then(|part| match part.of {
                Whole::Input(number) => inputs.get(number).copied(),
                Whole::Constant(number) => plan.constants.get(number).map(|constant| &constant.tensor),
                Whole::Slot(slot) => memory[slot].as_ref(),
            });
            let (Some(part), Some(whole)) = (part, whole) else {
                return Err(RunError::Invalid { reason: format!("value {} has no memory", value.0) });
            };
            outputs.push(whole.part_at(part.offset.value(dims)?, plan.ty(*value).shape(dims)?)?);
        }
        // Outputs belong to the caller.
        self.slots.iter().zip(memory).filter(|(slot, _)| slot.escapes).for_each(|(_, memory)| *memory = None);
        Ok(())
    }

    /// Whether a run knows the memory of its outputs without its operations.
    pub(crate) fn are_outputs_known(&self) -> bool {
        self.outputs.iter().all(Option::is_some)
    }

    /// Makes sure that each slot has memory for a run with these dims. Returns how often memory was allocated.
    ///
    /// Unless they are `for_later_runs`, the sizes are those of this run.
    pub(crate) fn prepare(
        &self,
        plan: &Plan,
        stream: &Stream,
        dims: &DimValues,
        memory: &mut Memory,
        for_later_runs: bool,
    ) -> Result<usize> {
        memory.resize(self.slots.len(), None);
        let mut allocations = 0;
        for (slot, memory) in self.slots.iter().zip(memory) {
            let len = slot.len(plan, dims)?;
            let fits = |known: &Tensor| len <= known.capacity() && known.is_unique();
            if !memory.as_ref().is_some_and(fits) {
                allocations += 1;
                // The old memory is free before the new one is needed.
                *memory = None;
                *memory = Some(slot.allocate(stream, len, for_later_runs && !slot.escapes)?);
            }
        }
        Ok(allocations)
    }

    /// The memory for an allocation, which defines this value.
    pub(crate) fn allocated(&self, value: Value, Run { plan, dims, stream, .. }: Run<'_>, memory: &mut Memory) -> Result<Tensor> {
        let tensor = self.slot_of[value.0 as usize].and_then(|slot| memory[slot].take());
        let ty = plan.ty(value);
        match tensor.and_then(|tensor| tensor.reused(ty.shape(dims).ok()?)) {
            Some(tensor) => Ok(tensor),
            // An opaque op has kept a handle of the memory, so that the earlier value of the slot did not give it back.
            None => Ok(Tensor::empty_on(stream, ty.dtype, ty.shape(dims)?)?),
        }
    }

    /// Keeps the memory of a value that has ended, for a later allocation of the slot.
    pub(crate) fn end(&self, value: Value, tensor: Tensor, memory: &mut Memory) {
        if self.slot_of[value.0 as usize].is_some_and(|slot| !self.slots[slot].escapes) {
            self.keep(value, tensor, memory);
        }
    }

    /// [`Lifetimes::end`], also for memory of outputs, which a run that has failed does not return.
    pub(crate) fn keep(&self, value: Value, tensor: Tensor, memory: &mut Memory) {
        let Some(slot) = self.slot_of[value.0 as usize] else { return };
        // A part that still exists keeps the memory, until it ends itself. A launch that had to copy has made memory for the extents of this run.
        if tensor.is_unique() && memory[slot].as_ref().is_none_or(|known| known.capacity() < tensor.capacity()) {
            memory[slot] = whole(tensor);
        }
    }
}

/// For each node, the values that no later node and no output uses.
fn last_uses(plan: &Plan) -> Vec<Vec<Value>> {
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
    last_uses
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
            NodeOp::Extern(call) => {
                let written: Vec<Value> = call.written().collect();
                for (result, written) in node.results[node.results.len() - written.len()..].iter().zip(written) {
                    of[result.0 as usize] = of[written.0 as usize];
                }
            }
        }
    }
    of
}

/// The memory of each output. A launch that copies makes memory of its own instead.
fn parts(plan: &Plan, slot_of: &[Option<usize>]) -> Vec<Option<Part>> {
    // The value that brings the memory, and the number of the first element in it.
    let mut roots: Vec<(Value, Dim)> = (0..plan.types.len()).map(|value| (Value(value as u32), Dim::from(0))).collect();
    for node in &plan.nodes {
        match &node.op {
            NodeOp::View { of, offset } => {
                let (root, first) = &roots[of.0 as usize];
                roots[node.results[0].0 as usize] = (*root, first + offset);
            }
            NodeOp::Launch(launch) => {
                for (result, written) in node.results.iter().zip(launch.args().filter_map(|(_, arg)| arg.written())) {
                    roots[result.0 as usize] = roots[written.0 as usize].clone();
                }
            }
            // No graph holds a call, so no run asks for the memory of its results.
            NodeOp::Alloc { .. } | NodeOp::Extern(_) => {}
        }
    }
    let part = |value: &Value| {
        let (root, offset) = &roots[value.0 as usize];
        let constant = || plan.constants.iter().position(|constant| constant.value == *root).map(Whole::Constant);
        let input = Some(root.0 as usize).filter(|root| *root < plan.inputs.len()).map(Whole::Input);
        let of = slot_of[value.0 as usize].map(Whole::Slot).or(input).or_else(constant)?;
        // A sum may have no value where each of its terms has one.
        offset.bounds().is_ok().then(|| Part { of, offset: offset.clone() })
    };
    plan.outputs.iter().map(part).collect()
}

/// All memory of a tensor, as one axis; `None` if another tensor shares it.
fn whole(tensor: Tensor) -> Option<Tensor> {
    let shape = Shape::new(&[tensor.capacity()]).ok()?;
    tensor.reused(shape)
}

/// The tensor with this home stream; `None` if the streams cannot be ordered.
fn moved_to(stream: &Stream, mut tensor: Tensor) -> Option<Tensor> {
    let is_home = tensor.stream() == Some(stream);
    (is_home || tensor.set_stream(stream).is_ok()).then_some(tensor)
}

/// The number of elements; `None` if an extent is not known, or for more than an `i64` counts. The order of the extents does not matter: a tensor with an extent of 0 is empty.
fn product(extents: impl Iterator<Item = Option<i64>> + Clone) -> Option<i64> {
    if extents.clone().any(|extent| extent == Some(0)) {
        return Some(0);
    }
    extents.into_iter().try_fold(1i64, |product, extent| product.checked_mul(extent.filter(|extent| *extent > 0)?))
}

/// The number of elements for the upper bounds of the dims.
fn most(ty: &TensorType) -> Option<i64> {
    product(ty.dims.iter().map(|dim: &Dim| dim.bounds().ok().map(|bounds| *bounds.end())))
}

/// The bytes of a value with these dims; `u64::MAX` for more than memory can have.
fn bytes(ty: &TensorType, dims: &DimValues) -> Result<u64> {
    let extents = ty.dims.iter().map(|dim| dim.value(dims)).collect::<kernel_runtime::Result<Vec<i64>>>()?;
    let len = product(extents.into_iter().map(Some));
    Ok(len.and_then(|len| u64::try_from(len).ok()?.checked_mul(ty.dtype.bytes() as u64)).unwrap_or(u64::MAX))
}
