//! Recording: a function is called with tensors without memory.

use std::collections::HashMap;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kernel_package::{Compiled, Constant, Node, NodeOp, Plan, PlanInput};
use kernel_runtime::ops::recorder::{RecordedLaunch, Recorder, TensorType, Value};
use kernel_runtime::ops::{ExternCall, IntoDims, OpDef, OpResults, OpValue, OpsError, Tensor};
use kernel_runtime::{Device, Dim, DimError, Dtype, Error, Site};

use crate::error::{GraphError, Result};
use crate::graph::{Call, Graph};
use crate::{passes, verify};

/// An input of a recorded function: its name, extents and dtype. [`input`] makes it.
#[derive(Clone, Debug)]
pub struct Input(PlanInput);

/// An input with this name, these extents and this dtype.
pub fn input(name: &str, dims: impl IntoDims, dtype: Dtype) -> Input {
    Input(PlanInput { name: name.to_owned(), ty: TensorType { dtype, dims: dims.into_dims() } })
}

/// Records a function: calls it once, with tensors without memory, and returns its allocations and launches as a graph. Launches whose results no
/// output needs are left out, and so is a launch that computes what an earlier one has computed. If an op has a function of its own for the CPU, the function is
/// called once more, and the graph has a second list of launches for that device. If that function cannot be recorded, for example because it reads elements, only a
/// session for the CPU is an error.
///
/// ```
/// use galatea::ops::Tensor;
/// use galatea::prelude::*;
/// use galatea::{Dim, Dtype};
/// use kernel_graph::{Session, export, input};
///
/// #[kernel]
/// fn double<T: Float, const BLOCK: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
///     let at = program_id(0) * BLOCK + arange(0, BLOCK);
///     let v = load(x + at, mask = at < n);
///     store(y + at, v + v, mask = at < n);
/// }
///
/// fn quadruple(x: &Tensor) -> Result<Tensor> {
///     let (n, mut y) = (x.numel(), x.empty_like()?);
///     double::<f32, 256>(x, &mut y, &n).grid(n.cdiv(256)).launch()?;
///     let mut z = x.empty_like()?;
///     double::<f32, 256>(&y, &mut z, &n).grid(n.cdiv(256)).launch()?;
///     Ok(z)
/// }
///
/// # fn main() -> kernel_graph::Result<()> {
/// let n = Dim::new("n", 0..=4096);
/// let graph = export(|[x]| quadruple(x), [input("x", [&n], Dtype::F32)])?.named("quadruple");
/// assert_eq!(
///     graph.to_string(),
///     "graph quadruple(x: f32[n]) where n in 0..=4096
///   %0 = alloc : f32[n]
///   %1 = launch double<T = f32, BLOCK = 256> [cdiv(n, 256), 1, 1] (x = %x, y = %0, n = n) : f32[n]
///   %2 = alloc : f32[n]
///   %3 = launch double<T = f32, BLOCK = 256> [cdiv(n, 256), 1, 1] (x = %1, y = %2, n = n) : f32[n]
///   return %3
/// "
/// );
/// let session = Session::new(graph, &Device::cpu())?;
/// let x = Tensor::from(Device::cpu().tensor(&[1.0f32, 2.5, -3.0])?);
/// assert_eq!(session.run([&x])?[0].to_vec::<f32>()?, [4.0, 10.0, -12.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// - [`GraphError::InputName`], [`GraphError::SameName`], [`GraphError::InputDim`] and [`GraphError::Undetermined`] for the inputs
/// - [`GraphError::Runtime`] with the error that the function returns
/// - [`GraphError::NodeDim`] for an operation with a dim that no input determines
/// - [`GraphError::ForeignOutput`] for a result that is not recorded
pub fn export<const N: usize, R: OpResults>(
    mut body: impl FnMut([&Tensor; N]) -> kernel_runtime::Result<R>,
    inputs: [Input; N],
) -> Result<Graph> {
    export_slice(|tensors| body(std::array::from_fn(|number| tensors[number])), inputs.into())
}

/// [`export`] for a number of inputs that is known when the program runs, such as that of the parameters of a model.
///
/// # Errors
/// As [`export`].
pub fn export_slice<R: OpResults>(mut body: impl FnMut(&[&Tensor]) -> kernel_runtime::Result<R>, inputs: Vec<Input>) -> Result<Graph> {
    let mut finished = |for_cpu: bool| {
        let (mut graph, has_cpu) = record(&mut body, inputs.clone(), for_cpu)?;
        for pass in passes::ALL {
            pass(&mut graph);
            verify::run(&graph)?;
        }
        Ok::<_, GraphError>((graph, has_cpu))
    };
    let (mut graph, has_cpu) = finished(false)?;
    if has_cpu {
        match finished(true) {
            Ok((on_cpu, _)) => {
                graph.plan.on_cpu = Some(Box::new(on_cpu.plan));
                if let Err(violation) = graph.plan.verify() {
                    (graph.plan.on_cpu, graph.plan.not_on_cpu) = (None, Some(violation.reason));
                }
            }
            // Other devices run the kernels.
            Err(error) => graph.plan.not_on_cpu = Some(error.to_string()),
        }
    }
    Ok(graph)
}

/// The graph before all passes, and whether it has ops with a function of their own for the CPU, which `for_cpu` records.
pub(crate) fn record<R: OpResults>(
    mut body: impl FnMut(&[&Tensor]) -> kernel_runtime::Result<R>,
    inputs: Vec<Input>,
    for_cpu: bool,
) -> Result<(Graph, bool)> {
    let inputs: Vec<PlanInput> = inputs.into_iter().map(|input| input.0).collect();
    check_inputs(&inputs)?;
    let recording = Arc::new(Recording {
        state: Mutex::new(Some(State {
            nodes: Vec::new(),
            calls: Vec::new(),
            constants: Vec::new(),
            by_identity: HashMap::new(),
            types: inputs.iter().map(|input| input.ty.clone()).collect(),
        })),
        for_cpu,
        has_cpu: AtomicBool::new(false),
    });
    let values = (0..).map(Value);
    let tensors: Vec<Tensor> =
        inputs.iter().zip(values).map(|(input, value)| Tensor::traced(recording.clone(), value, input.ty.clone())).collect();
    let returned = body(&tensors.iter().collect::<Vec<_>>());
    let has_cpu = recording.has_cpu.load(Ordering::Relaxed);
    // Later uses of a recorded tensor are errors.
    let state = recording.lock().take();
    let State { nodes, mut calls, constants, types, .. } =
        state.ok_or_else(|| GraphError::Invalid { reason: "the recording has ended twice".to_owned() })?;
    let recorder: Arc<dyn Recorder> = recording;
    let mut outputs = Vec::new();
    for (number, tensor) in returned?.tensors().into_iter().enumerate() {
        match tensor.recorded() {
            Some((own, value)) if Arc::ptr_eq(own, &recorder) => outputs.push(value),
            _ => return Err(GraphError::ForeignOutput { number }),
        }
    }
    keep_nested(&mut calls);
    let plan = Plan { name: "graph".to_owned(), inputs, constants, nodes, types, outputs, on_cpu: None, not_on_cpu: None };
    let graph = Graph { plan, calls };
    verify::run(&graph)?;
    verify::dims(&graph)?;
    Ok((graph, has_cpu))
}

/// Records a function, and makes a session of the graph on a device: [`export`] and [`Graph::compile`]. A call of the session takes and returns as many
/// tensors as the function.
///
/// ```
/// use galatea::ops::Tensor;
/// use galatea::prelude::*;
/// use galatea::{Dim, Dtype};
/// use kernel_graph::{compile, input};
/// use kernel_library::ops::{add, sub};
///
/// # fn main() -> kernel_graph::Result<()> {
/// let n = Dim::new("n", 0..=4096);
/// let inputs = [input("x", [&n], Dtype::F32), input("y", [&n], Dtype::F32)];
/// let compiled = compile(|[x, y]| Ok((add(x, y)?, sub(x, y)?)), inputs, &Device::cpu())?;
/// let [x, y] = [[5.0f32, 7.0], [2.0, 3.0]].map(|numbers| Device::cpu().tensor(&numbers).map(Tensor::from));
/// let (sum, difference) = compiled.call([&x?, &y?])?;
/// assert_eq!((sum.to_vec::<f32>()?, difference.to_vec::<f32>()?), (vec![7.0, 10.0], vec![3.0, 4.0]));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Those of both.
pub fn compile<const N: usize, R: OpResults>(
    body: impl FnMut([&Tensor; N]) -> kernel_runtime::Result<R>,
    inputs: [Input; N],
    device: &Device,
) -> Result<Compiled<N, R>> {
    Ok(export(body, inputs)?.compile(device)?.typed()?)
}

/// Checks that the inputs have different names, and that their extents determine the dims.
fn check_inputs(inputs: &[PlanInput]) -> Result<()> {
    let mut dims: Vec<Dim> = Vec::new();
    for (at, PlanInput { name, ty }) in inputs.iter().enumerate() {
        if !is_input_name(name) {
            return Err(GraphError::InputName { name: name.clone() });
        }
        if inputs[..at].iter().any(|other| other.name == *name) {
            return Err(GraphError::SameName { name: name.clone() });
        }
        let checked = |dim: &Dim| match dim.bounds() {
            Ok(_) => Ok(()),
            Err(Error::Dim(error)) => Err(GraphError::InputDim { input: name.clone(), error: Box::new(error) }),
            Err(error) => Err(error.into()),
        };
        for dim in &ty.dims {
            checked(dim)?;
            for named in dim.named() {
                // A sum of two dims with one name is an error that tells both ranges.
                dims.iter().filter(|known| known.to_string() == named.to_string()).try_for_each(|known| checked(&(known - &named)))?;
                dims.push(named);
            }
        }
    }
    let undetermined = dims.iter().find(|named| !inputs.iter().flat_map(|input| &input.ty.dims).any(|extent| extent == *named));
    undetermined.map_or(Ok(()), |named| Err(GraphError::Undetermined { name: named.to_string() }))
}

pub(crate) fn is_input_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Removes calls that overlap another call partly, as calls of several threads can.
fn keep_nested(calls: &mut Vec<Call>) {
    calls.sort_by_key(|call| (call.nodes.start, std::cmp::Reverse(call.nodes.end)));
    let mut around: Vec<usize> = Vec::new();
    calls.retain(|call| {
        while around.last().is_some_and(|end| *end <= call.nodes.start) {
            around.pop();
        }
        let is_nested = around.last().is_none_or(|end| call.nodes.end <= *end);
        if is_nested {
            around.push(call.nodes.end);
        }
        is_nested
    });
}

/// The recorder of [`export`].
struct Recording {
    /// None once the function has returned.
    state: Mutex<Option<State>>,
    /// Whether the graph is for the CPU only.
    for_cpu: bool,
    /// Whether an op has a function of its own for the CPU.
    has_cpu: AtomicBool,
}

struct State {
    nodes: Vec<Node>,
    calls: Vec<Call>,
    constants: Vec<Constant>,
    /// The indices of the constants with each identity. Different tensors seldom share one.
    by_identity: HashMap<u64, Vec<usize>>,
    types: Vec<TensorType>,
}

impl State {
    /// The value of a tensor with elements.
    fn constant(&mut self, tensor: Tensor) -> kernel_runtime::Result<Value> {
        let alike = self.by_identity.entry(tensor.identity()).or_default();
        if let Some(known) = alike.iter().find(|known| self.constants[**known].tensor.is_same(&tensor)) {
            return Ok(self.constants[*known].value);
        }
        let value = u32::try_from(self.types.len()).map(Value).map_err(|_| Error::Dim(DimError::Overflow))?;
        self.types.push(TensorType { dtype: tensor.dtype(), dims: tensor.dims() });
        alike.push(self.constants.len());
        self.constants.push(Constant { value, name: None, tensor });
        Ok(value)
    }

    /// An argument of an op with constants in place of tensors with elements.
    fn resolved(&mut self, value: OpValue) -> OpValue {
        match value {
            OpValue::Real(tensor) => match self.constant(tensor.clone()) {
                Ok(value) => OpValue::Tensor(value),
                Err(_) => OpValue::Real(tensor),
            },
            OpValue::List(values) => OpValue::List(values.into_iter().map(|value| self.resolved(value)).collect()),
            other => other,
        }
    }
}

impl Recording {
    fn lock(&self) -> MutexGuard<'_, Option<State>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(
        &self,
        op: NodeOp,
        results: impl FnOnce(&[TensorType]) -> Vec<TensorType>,
        location: Site,
    ) -> kernel_runtime::Result<Vec<Value>> {
        let mut guard = self.lock();
        let Some(State { nodes, types, .. }) = guard.as_mut() else { return Err(Error::Ops(OpsError::RecordingEnded { location })) };
        let first = types.len();
        let new = results(types);
        types.extend(new);
        let number = |at: usize| u32::try_from(at).map(Value).map_err(|_| Error::Dim(DimError::Overflow));
        let results = (first..types.len()).map(number).collect::<kernel_runtime::Result<Vec<Value>>>()?;
        nodes.push(Node { op, results: results.clone(), location });
        Ok(results)
    }
}

impl Recorder for Recording {
    fn alloc(&self, ty: TensorType, zeroed: bool, location: &'static Location<'static>) -> kernel_runtime::Result<Value> {
        self.record(NodeOp::Alloc { zeroed }, |_| vec![ty], location.into()).map(|results| results[0])
    }

    fn view(&self, of: Value, offset: Dim, ty: TensorType, location: &'static Location<'static>) -> kernel_runtime::Result<Value> {
        self.record(NodeOp::View { of, offset }, |_| vec![ty], location.into()).map(|results| results[0])
    }

    fn constant(&self, tensor: Tensor, location: &'static Location<'static>) -> kernel_runtime::Result<Value> {
        match self.lock().as_mut() {
            Some(state) => state.constant(tensor),
            None => Err(Error::Ops(OpsError::RecordingEnded { location: location.into() })),
        }
    }

    fn begin_op(&self, def: &'static OpDef, args: Vec<(&'static str, OpValue)>) -> usize {
        let mut guard = self.lock();
        let Some(state) = guard.as_mut() else { return usize::MAX };
        let args = args.into_iter().map(|(name, value)| (name, state.resolved(value))).collect();
        let start = state.nodes.len();
        state.calls.push(Call { def, args, nodes: start..start, results: Vec::new(), flops: None });
        state.calls.len() - 1
    }

    fn is_for_cpu(&self) -> bool {
        self.has_cpu.store(true, Ordering::Relaxed);
        self.for_cpu
    }

    fn op_flops(&self, call: usize, count: Dim) {
        if let Some(call) = self.lock().as_mut().and_then(|state| state.calls.get_mut(call)) {
            call.flops = Some(count);
        }
    }

    fn end_op(&self, call: usize, results: Vec<Value>) {
        if let Some(State { nodes, calls, .. }) = self.lock().as_mut()
            && let Some(call) = calls.get_mut(call)
        {
            (call.nodes.end, call.results) = (nodes.len(), results);
        }
    }

    fn launch(&self, launch: RecordedLaunch) -> kernel_runtime::Result<Vec<Value>> {
        let written: Vec<Value> = launch.args().filter_map(|(_, arg)| arg.written()).collect();
        let location = launch.location().clone();
        self.record(NodeOp::Launch(launch), |types| written.iter().map(|value| types[value.0 as usize].clone()).collect(), location)
    }
    fn extern_call(
        &self,
        call: ExternCall,
        results: Vec<TensorType>,
        location: &'static Location<'static>,
    ) -> kernel_runtime::Result<Vec<Value>> {
        let written: Vec<Value> = call.written().collect();
        let types = |types: &[TensorType]| results.into_iter().chain(written.iter().map(|value| types[value.0 as usize].clone())).collect();
        self.record(NodeOp::Extern(call), types, location.into())
    }
}
