//! Ops: named functions of tensors, which a recording shows as one call.

use std::fmt::Debug;
use std::sync::Arc;

use super::Tensor;
use super::recorder::{Recorder, Value};
use crate::profile::{self, OpInput};
use crate::{Dim, Dtype};

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

    /// The argument in a profile.
    fn input(&self) -> OpInput;
}

/// A type of results of ops: a tensor, or several.
#[diagnostic::on_unimplemented(
    message = "an op cannot return `{Self}`",
    note = "an op returns `Result` of a tensor, a tuple or a vector of tensors, or `()`"
)]
pub trait OpResults {
    /// The tensors, in order.
    fn tensors(&self) -> Vec<&Tensor>;
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

    fn input(&self) -> OpInput {
        OpInput::tensor(self)
    }
}

impl<A: OpArg + ?Sized> OpArg for &A {
    fn value(&self, recorder: &Arc<dyn Recorder>) -> OpValue {
        (**self).value(recorder)
    }

    fn recorder(&self) -> Option<Arc<dyn Recorder>> {
        (**self).recorder()
    }

    fn input(&self) -> OpInput {
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

    fn input(&self) -> OpInput {
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

    fn input(&self) -> OpInput {
        self.as_ref().map_or_else(|| OpInput::Value("None".to_owned()), A::input)
    }
}

impl<A: OpArg> OpArg for [A] {
    fn value(&self, recorder: &Arc<dyn Recorder>) -> OpValue {
        OpValue::List(self.iter().map(|arg| arg.value(recorder)).collect())
    }

    fn recorder(&self) -> Option<Arc<dyn Recorder>> {
        self.iter().find_map(A::recorder)
    }

    fn input(&self) -> OpInput {
        OpInput::List(self.iter().map(A::input).collect())
    }
}

impl OpArg for Dim {
    fn value(&self, _: &Arc<dyn Recorder>) -> OpValue {
        OpValue::Text(self.to_string())
    }

    fn input(&self) -> OpInput {
        OpInput::Value(self.to_string())
    }
}

impl OpArg for Dtype {
    fn value(&self, _: &Arc<dyn Recorder>) -> OpValue {
        OpValue::Text(self.to_string())
    }

    fn input(&self) -> OpInput {
        OpInput::Value(self.to_string())
    }
}

macro_rules! shown_as_debug {
    ($($ty:ty),*) => {$(
        impl OpArg for $ty {
            fn value(&self, _: &Arc<dyn Recorder>) -> OpValue {
                OpValue::Text(format!("{self:?}"))
            }

            fn input(&self) -> OpInput {
                OpInput::Value(format!("{self:?}"))
            }
        }
    )*};
}

shown_as_debug!(bool, i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, f32, f64, str);

impl OpResults for Tensor {
    fn tensors(&self) -> Vec<&Tensor> {
        vec![self]
    }
}

impl OpResults for Vec<Tensor> {
    fn tensors(&self) -> Vec<&Tensor> {
        self.iter().collect()
    }
}

impl<const N: usize> OpResults for [Tensor; N] {
    fn tensors(&self) -> Vec<&Tensor> {
        self.iter().collect()
    }
}

impl OpResults for () {
    fn tensors(&self) -> Vec<&Tensor> {
        Vec::new()
    }
}

impl OpResults for (Tensor, Tensor) {
    fn tensors(&self) -> Vec<&Tensor> {
        vec![&self.0, &self.1]
    }
}

impl OpResults for (Tensor, Tensor, Tensor) {
    fn tensors(&self) -> Vec<&Tensor> {
        vec![&self.0, &self.1, &self.2]
    }
}

/// A call of an op that runs. Code generated by `#[op]` makes it before the function's body, and ends it after it.
#[must_use = "a call has an end"]
pub struct OpCall(State);

enum State {
    /// Nothing observes the call.
    Unobserved,
    /// The span of the call in a profile, which ends with it.
    Profiled(#[expect(dead_code, reason = "its drop ends the span")] profile::Span),
    /// The recording that the call belongs to, the number of the call in it, and its results.
    Recorded { recorder: Arc<dyn Recorder>, call: usize, results: Vec<Value> },
}

impl OpCall {
    /// Begins a call. If a tensor among the arguments belongs to a recording, so does the call. Otherwise a profile shows it as a span.
    #[inline]
    pub fn begin(def: &'static OpDef, args: &[(&'static str, &dyn OpArg)]) -> OpCall {
        OpCall(match args.iter().find_map(|(_, arg)| arg.recorder()) {
            Some(recorder) => {
                let call = recorder.begin_op(def, args.iter().map(|(name, arg)| (*name, arg.value(&recorder))).collect());
                State::Recorded { recorder, call, results: Vec::new() }
            }
            None if profile::is_on() => State::Profiled(profile::op(def.name, args.iter().map(|(_, arg)| arg.input()).collect())),
            None => State::Unobserved,
        })
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
