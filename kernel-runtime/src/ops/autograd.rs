//! Gradients: how a tensor was computed, and the walk from a result back to the tensors whose gradients are wanted.
//!
//! A tensor that [requires](Tensor::requires_grad) its gradient, and each tensor that an op with a backward function computes from it, has an [`Edge`]: the node of the
//! call, and the number of the result. A node holds the edges of the call's inputs, and a closure with what the backward function needs. Nothing else is
//! kept: no list of all calls, and no state of a thread but whether gradients are [off](no_grad).

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::recorder::TensorType;
use super::{OpsError, Tensor};
use crate::{Device, Dim, DimValues, Dtype, Error, Result, bf16, f8e4m3, f8e5m2, f16};

thread_local! {
    /// The number of scopes without gradients.
    static PAUSED: Cell<usize> = const { Cell::new(0) };
}

/// Runs the closure without gradients: what it computes on this thread has none, and it may write tensors that require theirs, as an optimizer does.
///
/// ```
/// # use kernel_runtime::{Device, Result, ops::{self, Tensor}};
/// # fn main() -> Result<()> {
/// let mut weight = Tensor::from(Device::cpu().tensor(&[1.0f32, 2.0])?).requires_grad()?;
/// assert!(weight.view_mut::<f32>().is_err());
/// ops::no_grad(|| weight.view_mut::<f32>()?.fill(3.0))?;
/// assert!(weight.needs_grad() && !ops::no_grad(|| weight.reshape([2, 1]))?.needs_grad());
/// # Ok(())
/// # }
/// ```
pub fn no_grad<R>(run: impl FnOnce() -> R) -> R {
    let _scope = Pause::new();
    run()
}

/// Returns whether gradients are computed on this thread.
pub(super) fn is_on() -> bool {
    PAUSED.get() == 0
}

/// A scope without gradients, which ends also if it panics.
pub(super) struct Pause(());

impl Pause {
    pub(super) fn new() -> Pause {
        PAUSED.set(PAUSED.get() + 1);
        Pause(())
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        PAUSED.set(PAUSED.get() - 1);
    }
}

/// The kernels with which gradients are put together. The crate that has `#[kernel]` defines them, and each op brings them along.
#[derive(Debug)]
pub struct GradKernels {
    /// The sum of two tensors of one dtype and shape.
    pub add: fn(&Tensor, &Tensor) -> Result<Tensor>,
    /// A tensor of zeros with these extents, in which the elements from number `offset` on are those of the first tensor.
    pub pad: fn(&Tensor, &Dim, &[Dim]) -> Result<Tensor>,
}

impl Tensor {
    /// Returns whether what is computed from the tensor here has a gradient.
    #[inline]
    #[doc(hidden)]
    pub fn flows(&self) -> bool {
        self.edge().is_some() && is_on()
    }

    /// The tensor as one whose gradient [`Tensor::backward`] computes, such as a parameter in training. Clones of it are the same parameter.
    ///
    /// # Errors
    /// [`OpsError::NotDifferentiable`] for elements that are not floating-point numbers.
    pub fn requires_grad(mut self) -> Result<Tensor> {
        if !self.dtype().is_float() {
            return Err(Error::Ops(OpsError::NotDifferentiable { dtype: self.dtype() }));
        }
        if self.edge().is_none_or(|edge| !edge.is_leaf()) {
            self.set_edge(Some(Edge::leaf()));
        }
        Ok(self)
    }

    /// Returns whether gradients flow to the tensor: it requires its gradient, or was computed from such a tensor.
    pub fn needs_grad(&self) -> bool {
        self.edge().is_some()
    }

    /// The gradients of this tensor, which has one element, for each tensor that [requires](Tensor::requires_grad) its gradient and from which this one was
    /// computed. Ops call their backward functions, which run, or are recorded, as any other function of tensors.
    ///
    /// What the ops kept for this is freed. A second call is an error.
    ///
    /// # Errors
    /// [`OpsError::NoGradient`] if there is no such tensor, [`OpsError::NotScalar`] for more elements or none, [`OpsError::GradientType`] and [`OpsError::GradientCount`]
    /// for a backward function with a mistake, [`OpsError::BackwardTwice`], and those of the backward functions.
    #[track_caller]
    pub fn backward(&self) -> Result<Grads> {
        let ty = TensorType { dtype: self.dtype(), dims: self.dims() };
        if !ty.numel().is_eq(1)? {
            return Err(Error::Ops(OpsError::NotScalar { found: ty.to_string() }));
        }
        let edge = self.edge().ok_or(Error::Ops(OpsError::NoGradient))?;
        let one = Tensor::from_numbers(&self.device().unwrap_or_else(Device::cpu), ty.dtype, &*ty.dims, &[1.0])?;
        walk(edge, one)
    }

    /// [`Tensor::backward`] from a tensor of any shape: the gradients of the sum of its elements times those of `grad`, which has the same dtype and extents.
    ///
    /// # Errors
    /// As [`Tensor::backward`].
    #[track_caller]
    pub fn backward_from(&self, grad: &Tensor) -> Result<Grads> {
        grad.expect_dims("backward_from", "grad", &*self.dims())?;
        if grad.dtype() != self.dtype() {
            return Err(Error::Ops(OpsError::WrongDtype { expected: self.dtype(), found: grad.dtype() }));
        }
        walk(self.edge().ok_or(Error::Ops(OpsError::NoGradient))?, grad.detach())
    }
}

/// Where a tensor came from: a result of a call.
#[derive(Clone)]
pub(super) struct Edge {
    node: Arc<Node>,
    output: usize,
}

/// A call whose results have gradients, or, without inputs, a tensor that requires its gradient.
struct Node {
    /// Greater than those of the calls before it.
    number: u64,
    name: &'static str,
    inputs: Vec<Input>,
    outputs: Vec<TensorType>,
    /// `None` after the backward pass: the tensors that the function has saved are then freed.
    backward: Mutex<Option<Backward>>,
    kernels: Option<&'static GradKernels>,
}

/// A tensor that a call took.
pub(super) struct Input {
    name: &'static str,
    /// `None` for an optional tensor that the call was not given.
    ty: Option<TensorType>,
    edge: Option<Edge>,
}

/// Maps a gradient for each result to one for each input.
type Backward = Box<dyn FnOnce(&[Tensor], Option<&'static GradKernels>) -> Result<Vec<Option<Tensor>>> + Send>;

/// Long chains of nodes are dropped without recursion.
impl Drop for Node {
    fn drop(&mut self) {
        let mut inputs = std::mem::take(&mut self.inputs);
        while let Some(input) = inputs.pop() {
            if let Some(mut node) = input.edge.and_then(|edge| Arc::into_inner(edge.node)) {
                inputs.append(&mut node.inputs);
            }
        }
    }
}

impl Edge {
    fn new(
        name: &'static str,
        inputs: Vec<Input>,
        outputs: Vec<TensorType>,
        backward: Option<Backward>,
        kernels: Option<&'static GradKernels>,
    ) -> Edge {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let inherited = || inputs.iter().find_map(|input| input.edge.as_ref()?.node.kernels);
        let kernels = kernels.or_else(inherited);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        Edge { node: Arc::new(Node { number, name, inputs, outputs, backward: Mutex::new(backward), kernels }), output: 0 }
    }

    /// The edge of a tensor that requires its gradient.
    pub(super) fn leaf() -> Edge {
        Edge::new("requires_grad", Vec::new(), Vec::new(), None, None)
    }

    pub(super) fn is_leaf(&self) -> bool {
        self.node.inputs.is_empty()
    }

    /// The edge of the elements of `whole` from number `offset` on.
    pub(super) fn part(whole: &Tensor, offset: Dim, ty: &TensorType) -> Option<Edge> {
        let input = Input::of("tensor", whole)?;
        let dims = whole.dims();
        let is_whole = whole.numel().is_eq(ty.numel()).unwrap_or(false);
        let backward = move |grads: &[Tensor], kernels: Option<&'static GradKernels>| {
            let grad = &grads[0];
            let grad = match kernels {
                _ if is_whole => grad.reshape(&*dims)?,
                Some(kernels) => (kernels.pad)(grad, &offset, &dims)?,
                None => padded(grad, &offset, &dims)?,
            };
            Ok(vec![Some(grad)])
        };
        Some(Edge::new("a part of a tensor", vec![input], vec![ty.clone()], Some(Box::new(backward)), None))
    }

    /// The edge of a copy on another device.
    pub(super) fn copy(tensor: &Tensor, device: Device) -> Option<Edge> {
        let input = Input::of("tensor", tensor)?;
        let outputs = input.ty.iter().cloned().collect();
        let backward = move |grads: &[Tensor], _: Option<&'static GradKernels>| Ok(vec![Some(grads[0].to_device(&device)?)]);
        Some(Edge::new("to_device", vec![input], outputs, Some(Box::new(backward)), None))
    }
}

/// The gradient of a tensor from that of its elements from number `offset` on, without a kernel: no op that brings one is between them.
fn padded(part: &Tensor, offset: &Dim, dims: &[Dim]) -> Result<Tensor> {
    let ty = TensorType { dtype: part.dtype(), dims: dims.to_vec() };
    let (len, numbers) = (part.numel(), DimValues::new());
    let mut whole = part.new_zeros(ty.dtype, [ty.numel()])?;
    let part = part.reshape([len.clone()])?;
    let (first, len) = (offset.value(&numbers)?, len.value(&numbers)?);
    let range = usize::try_from(first).unwrap_or(0)..usize::try_from(first + len).unwrap_or(0);
    with_element!(ty.dtype, T => whole.view_mut::<T>()?.slice_mut(range)?.copy_from(&part.view::<T>()?))?;
    whole.reshape(dims)
}

impl Input {
    /// The input, if a gradient flows to it.
    fn of(name: &'static str, tensor: &Tensor) -> Option<Input> {
        let input = Input::any(name, Some(tensor));
        input.edge.is_some().then_some(input)
    }

    /// The input, with its edge if it has one.
    pub(super) fn any(name: &'static str, tensor: Option<&Tensor>) -> Input {
        let ty = tensor.map(|tensor| TensorType { dtype: tensor.dtype(), dims: tensor.dims() });
        Input { name, ty, edge: tensor.and_then(Tensor::edge).cloned() }
    }
}

/// The gradients that a backward function returns for an argument of its op.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no gradient of an argument",
    note = "a gradient is a `Tensor`, an `Option<Tensor>` (`None` for an argument without a gradient), or, for a slice of tensors, a `Vec<Tensor>`"
)]
pub trait IntoGrad {
    /// Appends them.
    fn add_to(self, grads: &mut Vec<Option<Tensor>>);
}

impl IntoGrad for Tensor {
    fn add_to(self, grads: &mut Vec<Option<Tensor>>) {
        grads.push(Some(self));
    }
}

impl IntoGrad for Option<Tensor> {
    fn add_to(self, grads: &mut Vec<Option<Tensor>>) {
        grads.push(self);
    }
}

impl IntoGrad for Vec<Tensor> {
    fn add_to(self, grads: &mut Vec<Option<Tensor>>) {
        grads.extend(self.into_iter().map(Some));
    }
}

impl IntoGrad for Vec<Option<Tensor>> {
    fn add_to(self, grads: &mut Vec<Option<Tensor>>) {
        grads.extend(self);
    }
}

/// What a backward function returns for an op with `N` arguments that are tensors.
#[diagnostic::on_unimplemented(
    message = "the backward function of this op cannot return `{Self}`",
    note = "it returns a gradient for each of the op's {N} arguments that are tensors, in their order, as a tuple; or the only one. `None` is for an argument without a gradient"
)]
pub trait OpGrads<const N: usize> {
    /// One for each tensor.
    fn into_grads(self) -> Vec<Option<Tensor>>;
}

impl<A: IntoGrad> OpGrads<1> for A {
    fn into_grads(self) -> Vec<Option<Tensor>> {
        let mut grads = Vec::new();
        self.add_to(&mut grads);
        grads
    }
}

macro_rules! tuples_of_gradients {
    ($($count:literal: $($A:ident $index:tt)*;)*) => {$(
        impl<$($A: IntoGrad),*> OpGrads<$count> for ($($A,)*) {
            fn into_grads(self) -> Vec<Option<Tensor>> {
                let mut grads = Vec::new();
                $(self.$index.add_to(&mut grads);)*
                grads
            }
        }
    )*};
}

tuples_of_gradients! {
    2: A 0 B 1;
    3: A 0 B 1 C 2;
    4: A 0 B 1 C 2 D 3;
    5: A 0 B 1 C 2 D 3 E 4;
    6: A 0 B 1 C 2 D 3 E 4 F 5;
    7: A 0 B 1 C 2 D 3 E 4 F 5 G 6;
    8: A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7;
}

/// A call of an op with a backward function, some of whose inputs have gradients. Code generated by `#[op]` makes it before the function's body.
#[must_use = "a call has an end"]
pub struct Tape {
    name: &'static str,
    inputs: Vec<Input>,
    paused: Pause,
}

impl Tape {
    pub(super) fn new(name: &'static str, inputs: Vec<Input>) -> Tape {
        Tape { name, inputs, paused: Pause::new() }
    }

    /// Gives the results their gradients.
    pub fn end(
        self,
        results: Vec<&mut Tensor>,
        kernels: &'static GradKernels,
        backward: impl FnOnce(&[Tensor]) -> Result<Vec<Option<Tensor>>> + Send + 'static,
    ) {
        let Tape { name, inputs, paused } = self;
        drop(paused);
        let outputs = results.iter().map(|result| TensorType { dtype: result.dtype(), dims: result.dims() }).collect();
        let backward = move |grads: &[Tensor], _: Option<&'static GradKernels>| backward(grads);
        let edge = Edge::new(name, inputs, outputs, Some(Box::new(backward)), Some(kernels));
        for (output, result) in results.into_iter().enumerate() {
            let is_float = result.dtype().is_float();
            result.set_edge(is_float.then(|| Edge { output, ..edge.clone() }));
        }
    }
}

/// The gradients that [`Tensor::backward`] computed.
#[derive(Clone, Default)]
pub struct Grads(HashMap<u64, Tensor>);

impl Grads {
    /// The gradient of a tensor that requires it: of the same dtype and shape. `None` if none flows to it.
    pub fn get(&self, tensor: &Tensor) -> Option<&Tensor> {
        self.0.get(&tensor.edge()?.node.number)
    }

    /// [`Grads::get`] that takes the gradient out, so that it is not shared.
    pub fn take(&mut self, tensor: &Tensor) -> Option<Tensor> {
        self.0.remove(&tensor.edge()?.node.number)
    }

    /// The number of tensors that have a gradient.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether no tensor has one.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Grads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Grads of {} tensors", self.len())
    }
}

/// Nodes by number, with the gradients of their results so far.
type Pending = BTreeMap<u64, (Arc<Node>, Vec<Option<Tensor>>)>;

/// The walk from `edge`, whose gradient is `seed`.
pub(super) fn walk(edge: &Edge, seed: Tensor) -> Result<Grads> {
    // Backward functions are first-order: nothing records them.
    let _scope = Pause::new();
    let mut pending = Pending::new();
    let mut kernels = None;
    add(&mut pending, edge, seed, kernels)?;
    let mut grads = Grads::default();
    // Calls have greater numbers than those that computed their inputs, so all gradients of a call are there when it is the greatest.
    while let Some((number, (node, results))) = pending.pop_last() {
        kernels = node.kernels.or(kernels);
        let Some(like) = results.iter().flatten().next() else { continue };
        if node.inputs.is_empty() {
            grads.0.insert(number, like.clone());
            continue;
        }
        let backward = node.backward.lock().unwrap_or_else(PoisonError::into_inner).take();
        let backward = backward.ok_or(Error::Ops(OpsError::BackwardTwice { op: node.name }))?;
        let missing = |(result, ty): (&Option<Tensor>, &TensorType)| match result {
            Some(grad) => Ok(grad.clone()),
            None => like.new_zeros(ty.dtype, &*ty.dims),
        };
        let given = results.iter().zip(&node.outputs).map(missing).collect::<Result<Vec<_>>>()?;
        drop(results);
        let found = backward(&given, kernels)?;
        if found.len() != node.inputs.len() {
            return Err(Error::Ops(OpsError::GradientCount { op: node.name, expected: node.inputs.len(), found: found.len() }));
        }
        for (input, grad) in node.inputs.iter().zip(found) {
            if let (Some(edge), Some(grad)) = (&input.edge, grad) {
                input.check(node.name, &grad)?;
                add(&mut pending, edge, grad, kernels)?;
            }
        }
    }
    Ok(grads)
}

/// Adds a gradient of a result.
fn add(pending: &mut Pending, edge: &Edge, grad: Tensor, kernels: Option<&'static GradKernels>) -> Result<()> {
    let count = edge.node.outputs.len().max(1);
    let (_, results) = pending.entry(edge.node.number).or_insert_with(|| (edge.node.clone(), vec![None; count]));
    let Some(slot) = results.get_mut(edge.output) else { return Ok(()) };
    *slot = Some(match (slot.take(), kernels) {
        (None, _) => grad,
        (Some(sum), Some(kernels)) => (kernels.add)(&sum, &grad)?,
        // Two gradients of one result come from a call that took two tensors.
        (Some(_), None) => return Err(Error::Ops(OpsError::NoGradient)),
    });
    Ok(())
}

impl Input {
    /// Checks that a gradient has the type of its tensor.
    fn check(&self, op: &'static str, grad: &Tensor) -> Result<()> {
        let Some(expected) = &self.ty else { return Ok(()) };
        let found = TensorType { dtype: grad.dtype(), dims: grad.dims() };
        let mut fits = found.dtype == expected.dtype && found.dims.len() == expected.dims.len();
        for (found, expected) in found.dims.iter().zip(&expected.dims) {
            fits = fits && found.is_eq(expected)?;
        }
        if fits {
            return Ok(());
        }
        let (found, expected) = (found.to_string(), expected.to_string());
        Err(Error::Ops(OpsError::GradientType { op, input: self.name, expected, found }))
    }
}
