//! Ops: named functions of tensors, which a recording shows as one call.

use std::any::Any;
use std::cell::OnceCell;
use std::fmt::{Debug, Display};
use std::panic::Location;
use std::sync::Arc;

use super::autograd::{Input, Tape};
use super::recorder::{Recorder, Value};
use super::{OpFunction, OpInput, OpsError, Tensor, opaque};
use crate::profile::{self, CallInput};
use crate::{Dim, Dtype, Error, Result};

/// The definition of an op. `#[op]` makes it, as `DEF` in a module with the name of the function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpDef {
    /// The namespace and the name: `mylib::silu`.
    pub name: &'static str,
    /// The schema in PyTorch's format: `mylib::silu(Tensor x) -> Tensor`.
    pub schema: &'static str,
    /// The source file of the definition.
    pub file: &'static str,
    /// The line of the definition.
    pub line: u32,
    /// Whether the op has a backward function.
    pub has_backward: bool,
    /// Whether the op has a function of its own for the CPU.
    pub has_cpu: bool,
    /// Whether the op is opaque: a recording has a call of it as one operation.
    pub is_opaque: bool,
}

/// An argument of a recorded op.
#[derive(Clone, Debug)]
pub enum OpValue {
    /// A tensor of the recording.
    Tensor(Value),
    /// A tensor that is not recorded, which a recorder replaces by the value of a constant.
    Real(Tensor),
    /// Several arguments.
    List(Vec<OpValue>),
    /// Another value as text.
    Text(String),
}

/// A type of arguments of ops.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of an op",
    note = "arguments are `&Tensor`, `&mut Tensor`, `Option` and slices of tensors, `Dim`, `Dtype`, numbers, `bool` and `&str`"
)]
pub trait OpArg {
    /// The argument in a call that this recorder records.
    fn value(&self, recorder: &Arc<dyn Recorder>) -> OpValue;

    /// The recording that one of its tensors belongs to.
    fn recorder(&self) -> Option<Arc<dyn Recorder>> {
        None
    }

    /// Calls the function with each of its tensors; with `None` for an optional one that is not given.
    fn each_tensor<'t>(&'t self, _visit: &mut dyn FnMut(Option<&'t Tensor>)) {}

    /// The argument in a profile.
    fn input(&self) -> CallInput;
}

/// A type of results of ops: a tensor, or several.
#[diagnostic::on_unimplemented(
    message = "an op cannot return `{Self}`",
    note = "an op returns `Result` of a tensor, a tuple or a vector of tensors, or `()`"
)]
pub trait OpResults: Sized {
    /// The number of tensors; `None` if each value has its own.
    const COUNT: Option<usize>;

    /// The tensors, in order.
    fn tensors(&self) -> Vec<&Tensor>;

    /// The results of these tensors. `None` for another number of them.
    fn of(tensors: Vec<Tensor>) -> Option<Self>;

    /// The tensors, in order, to change.
    fn tensors_mut(&mut self) -> Vec<&mut Tensor>;
}

impl OpArg for Tensor {
    fn value(&self, recorder: &Arc<dyn Recorder>) -> OpValue {
        match self.recorded() {
            Some((own, value)) if Arc::ptr_eq(own, recorder) => OpValue::Tensor(value),
            Some(_) => OpValue::Text("a tensor of another recording".to_owned()),
            None => OpValue::Real(self.clone()),
        }
    }

    fn recorder(&self) -> Option<Arc<dyn Recorder>> {
        self.recorded().map(|(recorder, _)| recorder.clone())
    }

    fn each_tensor<'t>(&'t self, visit: &mut dyn FnMut(Option<&'t Tensor>)) {
        visit(Some(self));
    }

    fn input(&self) -> CallInput {
        CallInput::tensor(self)
    }
}

impl<A: OpArg + ?Sized> OpArg for &A {
    fn value(&self, recorder: &Arc<dyn Recorder>) -> OpValue {
        (**self).value(recorder)
    }

    fn recorder(&self) -> Option<Arc<dyn Recorder>> {
        (**self).recorder()
    }

    fn each_tensor<'t>(&'t self, visit: &mut dyn FnMut(Option<&'t Tensor>)) {
        (**self).each_tensor(visit);
    }

    fn input(&self) -> CallInput {
        (**self).input()
    }
}

impl<A: OpArg + ?Sized> OpArg for &mut A {
    fn value(&self, recorder: &Arc<dyn Recorder>) -> OpValue {
        (**self).value(recorder)
    }

    fn recorder(&self) -> Option<Arc<dyn Recorder>> {
        (**self).recorder()
    }

    fn each_tensor<'t>(&'t self, visit: &mut dyn FnMut(Option<&'t Tensor>)) {
        (**self).each_tensor(visit);
    }

    fn input(&self) -> CallInput {
        (**self).input()
    }
}

impl<A: OpArg> OpArg for Option<A> {
    fn value(&self, recorder: &Arc<dyn Recorder>) -> OpValue {
        self.as_ref().map_or_else(|| OpValue::Text("None".to_owned()), |arg| arg.value(recorder))
    }

    fn recorder(&self) -> Option<Arc<dyn Recorder>> {
        self.as_ref().and_then(A::recorder)
    }

    fn each_tensor<'t>(&'t self, visit: &mut dyn FnMut(Option<&'t Tensor>)) {
        match self {
            Some(arg) => arg.each_tensor(visit),
            None => visit(None),
        }
    }

    fn input(&self) -> CallInput {
        self.as_ref().map_or_else(|| CallInput::Value("None".to_owned()), A::input)
    }
}

impl<A: OpArg> OpArg for [A] {
    fn value(&self, recorder: &Arc<dyn Recorder>) -> OpValue {
        OpValue::List(self.iter().map(|arg| arg.value(recorder)).collect())
    }

    fn recorder(&self) -> Option<Arc<dyn Recorder>> {
        self.iter().find_map(A::recorder)
    }

    fn each_tensor<'t>(&'t self, visit: &mut dyn FnMut(Option<&'t Tensor>)) {
        self.iter().for_each(|arg| arg.each_tensor(visit));
    }

    fn input(&self) -> CallInput {
        CallInput::List(self.iter().map(A::input).collect())
    }
}

impl OpArg for Dim {
    fn value(&self, _: &Arc<dyn Recorder>) -> OpValue {
        OpValue::Text(self.to_string())
    }

    fn input(&self) -> CallInput {
        CallInput::Value(self.to_string())
    }
}

impl OpArg for Dtype {
    fn value(&self, _: &Arc<dyn Recorder>) -> OpValue {
        OpValue::Text(self.to_string())
    }

    fn input(&self) -> CallInput {
        CallInput::Value(self.to_string())
    }
}

macro_rules! shown_as_debug {
    ($($ty:ty),*) => {$(
        impl OpArg for $ty {
            fn value(&self, _: &Arc<dyn Recorder>) -> OpValue {
                OpValue::Text(format!("{self:?}"))
            }

            fn input(&self) -> CallInput {
                CallInput::Value(format!("{self:?}"))
            }
        }
    )*};
}

shown_as_debug!(bool, i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, f32, f64, str);

impl OpResults for Tensor {
    const COUNT: Option<usize> = Some(1);

    fn tensors(&self) -> Vec<&Tensor> {
        vec![self]
    }

    fn of(tensors: Vec<Tensor>) -> Option<Tensor> {
        let [tensor] = tensors.try_into().ok()?;
        Some(tensor)
    }

    fn tensors_mut(&mut self) -> Vec<&mut Tensor> {
        vec![self]
    }
}

impl OpResults for Vec<Tensor> {
    const COUNT: Option<usize> = None;

    fn tensors(&self) -> Vec<&Tensor> {
        self.iter().collect()
    }

    fn of(tensors: Vec<Tensor>) -> Option<Vec<Tensor>> {
        Some(tensors)
    }

    fn tensors_mut(&mut self) -> Vec<&mut Tensor> {
        self.iter_mut().collect()
    }
}

impl<const N: usize> OpResults for [Tensor; N] {
    const COUNT: Option<usize> = Some(N);

    fn tensors(&self) -> Vec<&Tensor> {
        self.iter().collect()
    }

    fn of(tensors: Vec<Tensor>) -> Option<[Tensor; N]> {
        tensors.try_into().ok()
    }

    fn tensors_mut(&mut self) -> Vec<&mut Tensor> {
        self.iter_mut().collect()
    }
}

impl OpResults for () {
    const COUNT: Option<usize> = Some(0);

    fn tensors(&self) -> Vec<&Tensor> {
        Vec::new()
    }

    fn of(tensors: Vec<Tensor>) -> Option<()> {
        tensors.is_empty().then_some(())
    }

    fn tensors_mut(&mut self) -> Vec<&mut Tensor> {
        Vec::new()
    }
}

impl OpResults for (Tensor, Tensor) {
    const COUNT: Option<usize> = Some(2);

    fn tensors(&self) -> Vec<&Tensor> {
        vec![&self.0, &self.1]
    }

    fn of(tensors: Vec<Tensor>) -> Option<(Tensor, Tensor)> {
        tensors.try_into().ok().map(<[Tensor; 2]>::into)
    }

    fn tensors_mut(&mut self) -> Vec<&mut Tensor> {
        vec![&mut self.0, &mut self.1]
    }
}

impl OpResults for (Tensor, Tensor, Tensor) {
    const COUNT: Option<usize> = Some(3);

    fn tensors(&self) -> Vec<&Tensor> {
        vec![&self.0, &self.1, &self.2]
    }

    fn of(tensors: Vec<Tensor>) -> Option<(Tensor, Tensor, Tensor)> {
        tensors.try_into().ok().map(<[Tensor; 3]>::into)
    }

    fn tensors_mut(&mut self) -> Vec<&mut Tensor> {
        vec![&mut self.0, &mut self.1, &mut self.2]
    }
}

/// A call of an op that runs. Code generated by `#[op]` makes it before the function's body, and ends it after it.
#[must_use = "a call has an end"]
pub struct OpCall(State);

enum State {
    /// Nothing observes the call.
    Unobserved,
    /// The span of the call in a profile, which ends with it.
    Profiled(profile::Span),
    /// The recording that the call belongs to, the number of the call in it, and its results.
    Recorded { recorder: Arc<dyn Recorder>, call: usize, results: Vec<Value> },
    /// The recording of a call of an opaque op, and the floating-point operations of the call.
    Opaque { def: &'static OpDef, recorder: Arc<dyn Recorder>, flops: OnceCell<Dim> },
}

impl OpCall {
    /// Begins a call. If a tensor among the arguments belongs to a recording, so does the call. Otherwise a profile shows it as a span.
    #[inline]
    pub fn begin(def: &'static OpDef, args: &[(&'static str, &dyn OpArg)]) -> OpCall {
        OpCall(match args.iter().find_map(|(_, arg)| arg.recorder()) {
            Some(recorder) if def.is_opaque => State::Opaque { def, recorder, flops: OnceCell::new() },
            Some(recorder) => {
                let call = recorder.begin_op(def, args.iter().map(|(name, arg)| (*name, arg.value(&recorder))).collect());
                State::Recorded { recorder, call, results: Vec::new() }
            }
            None if profile::is_on() => State::Profiled(profile::op(def.name, args.iter().map(|(_, arg)| arg.input()).collect())),
            None => State::Unobserved,
        })
    }

    /// Notes the floating-point operations of the call, if it is recorded or profiled, in place of those of its kernels.
    #[inline]
    pub fn flops(&self, count: impl FnOnce() -> Dim) {
        match &self.0 {
            State::Unobserved => {}
            State::Profiled(span) => span.set_flops(|| count().known().and_then(|count| u64::try_from(count).ok())),
            State::Recorded { recorder, call, .. } => recorder.op_flops(*call, count()),
            State::Opaque { flops, .. } => drop(flops.set(count())),
        }
    }

    /// Whether [`OpCall::record`] takes the place of the op's body.
    #[inline]
    pub fn is_opaque(&self) -> bool {
        matches!(self.0, State::Opaque { .. })
    }

    /// Records the call of an opaque op as one operation, with results of the types that `fake` makes.
    ///
    /// # Errors
    /// Those of `fake`, [`OpsError::CallNotRecorded`], and [`OpsError::RecordingEnded`].
    #[track_caller]
    pub fn record<R: OpResults>(&self, inputs: Vec<OpInput<'_>>, fake: OpFunction) -> Result<R> {
        let State::Opaque { def, recorder, flops } = &self.0 else { unreachable!("`is_opaque` was asked") };
        opaque::record(def, recorder, inputs, flops.get().cloned(), fake, Location::caller())
    }

    /// Ends the call, which returned these tensors and wrote those arguments.
    #[inline]
    pub fn end<R: OpResults, E>(mut self, returned: &Result<R, E>, written: &[&Tensor]) {
        if matches!(self.0, State::Unobserved) {
            // Nothing is dropped, which the compiler does not see.
            return std::mem::forget(self);
        }
        if let (State::Recorded { recorder, results, .. }, Ok(returned)) = (&mut self.0, returned) {
            let own = |tensor: &Tensor| tensor.recorded().filter(|(own, _)| Arc::ptr_eq(own, recorder)).map(|(_, value)| value);
            *results = returned.tensors().into_iter().chain(written.iter().copied()).filter_map(own).collect();
        }
    }
}

/// A call that fails or panics ends, too, because the function that called it may go on.
impl Drop for OpCall {
    #[inline]
    fn drop(&mut self) {
        if let State::Recorded { recorder, call, results } = &mut self.0 {
            recorder.end_op(*call, std::mem::take(results));
        }
    }
}

/// Results of the types that an op returns.
pub(super) fn typed<R: OpResults>(def: &'static OpDef, tensors: Vec<Tensor>) -> Result<R> {
    let found = tensors.len();
    R::of(tensors).ok_or(Error::Ops(OpsError::ResultCount { schema: def.schema, found }))
}

/// The tape of a call, if gradients flow to one of its arguments.
#[inline]
pub fn tape(def: &'static OpDef, args: &[(&'static str, &dyn OpArg)]) -> Option<Tape> {
    let mut flows = false;
    args.iter().for_each(|(_, arg)| arg.each_tensor(&mut |tensor| flows |= tensor.is_some_and(Tensor::flows)));
    flows.then(|| {
        let mut inputs = Vec::new();
        args.iter().for_each(|(name, arg)| arg.each_tensor(&mut |tensor| inputs.push(Input::any(name, tensor))));
        Tape::new(def.name, inputs)
    })
}

/// Returns whether the tensors of a call are on the CPU, or belong to a recording for it.
pub fn is_on_cpu(args: &[(&'static str, &dyn OpArg)]) -> bool {
    if let Some(recorder) = args.iter().find_map(|(_, arg)| arg.recorder()) {
        return recorder.is_for_cpu();
    }
    let (mut any, mut all) = (false, true);
    args.iter().for_each(|(_, arg)| {
        arg.each_tensor(&mut |tensor| {
            any |= tensor.is_some();
            all &= tensor.is_none_or(|tensor| tensor.device().is_some_and(|device| device.is_cpu()));
        });
    });
    any && all
}

/// Names the op, which has no backward function, in the error of its launch that needs one.
#[inline]
pub fn named<R, E: 'static>(def: &'static OpDef, args: &[(&'static str, &dyn OpArg)], mut result: Result<R, E>) -> Result<R, E> {
    if let Err(error) = &mut result
        && let Some(Error::Ops(OpsError::NoBackward { op: op @ None, .. })) = (error as &mut dyn Any).downcast_mut()
    {
        let mut input = None;
        args.iter().for_each(|(name, arg)| {
            arg.each_tensor(&mut |tensor| {
                if tensor.is_some_and(Tensor::flows) {
                    input.get_or_insert(*name);
                }
            });
        });
        *op = input.map(|input| (def.name, input));
    }
    result
}

/// A result of the runtime as one of an op, whose error may be a type of its own.
pub fn own_error<R, E: From<Error>>(result: Result<R>) -> Result<R, E> {
    result.map_err(E::from)
}

/// An error of an op's own type as one of the runtime.
pub fn into_error<E: Display + 'static>(def: &'static OpDef, error: E) -> Error {
    let message = error.to_string();
    match (Box::new(error) as Box<dyn Any>).downcast() {
        Ok(error) => *error,
        Err(_) => Error::Ops(OpsError::OpFailed { op: def.name, message }),
    }
}

/// An argument of an op that its backward function gets.
pub trait Saved {
    /// The argument as it was before the call.
    type Value: Send + 'static;

    /// Keeps it.
    fn saved(&self) -> Self::Value;
}

impl Saved for Tensor {
    type Value = Tensor;

    fn saved(&self) -> Tensor {
        self.detach()
    }
}

impl<A: Saved + ?Sized> Saved for &A {
    type Value = A::Value;

    fn saved(&self) -> A::Value {
        (**self).saved()
    }
}

impl<A: Saved + ?Sized> Saved for &mut A {
    type Value = A::Value;

    fn saved(&self) -> A::Value {
        (**self).saved()
    }
}

impl<A: Saved> Saved for Option<A> {
    type Value = Option<A::Value>;

    fn saved(&self) -> Self::Value {
        self.as_ref().map(A::saved)
    }
}

impl<A: Saved> Saved for [A] {
    type Value = Vec<A::Value>;

    fn saved(&self) -> Self::Value {
        self.iter().map(A::saved).collect()
    }
}

impl Saved for str {
    type Value = String;

    fn saved(&self) -> String {
        self.to_owned()
    }
}

macro_rules! saved_as_clones {
    ($($ty:ty),*) => {$(
        impl Saved for $ty {
            type Value = $ty;

            fn saved(&self) -> $ty {
                self.clone()
            }
        }
    )*};
}

saved_as_clones!(Dim, Dtype, bool, i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, f32, f64);
