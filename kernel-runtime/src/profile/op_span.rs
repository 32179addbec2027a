//! Spans of calls with tensors as inputs: ops, runs of models, and copies of shared tensors.

use std::borrow::Cow;
use std::cell::RefCell;
use std::panic::Location;

use super::{Span, sink, whole_process};
use crate::ops::recorder::TensorType;
use crate::{Site, ops};

/// What a span stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SpanKind {
    /// A part of the program that [`span`](super::span) names, or a step of a [`Profiler`](super::Profiler).
    Annotation,
    /// A call of an op, or a run of a recorded program.
    Op {
        /// The arguments, in their order.
        inputs: Vec<CallInput>,
    },
    /// A copy of a tensor that was written while it was shared. On a GPU, the span is the time that the copy took to be queued.
    Copy {
        /// The tensor.
        tensor: TensorType,
        /// The bytes that were copied.
        bytes: usize,
        /// The line of the launch, or of the other write, that caused the copy. Empty if that launch failed before it began.
        line: String,
    },
}

/// An argument of an op in a profile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CallInput {
    /// A tensor.
    Tensor(TensorType),
    /// Several arguments.
    List(Vec<CallInput>),
    /// Another value as text.
    Value(String),
}

impl CallInput {
    /// The dtype and the extents of a tensor.
    pub(crate) fn tensor(tensor: &ops::Tensor) -> CallInput {
        CallInput::Tensor(TensorType { dtype: tensor.dtype(), dims: tensor.dims() })
    }
}

thread_local! {
    /// The line of the launch that this thread runs, if it is recorded or autotuned: such a launch is not called at the user's line.
    static LINE: RefCell<Option<Site>> = const { RefCell::new(None) };
}

/// Starts a span of a call with tensors, such as a run of a model. As for [`span`](super::span), it ends when it is dropped, and costs reading one word without a profile.
///
/// An `#[op]` starts such a span itself.
///
/// ```
/// # use kernel_runtime::{Device, Dtype, Result, ops, profile};
/// # fn main() -> Result<()> {
/// let x = ops::Tensor::zeros(&Device::cpu(), Dtype::F32, [2, 3])?;
/// let profile = profile::Profile::start();
/// drop(profile::call("model", [&x]));
/// let trace = profile.finish();
/// assert!(trace.to_json().contains(r#""Input Dims":[[2,3]]"#));
/// # Ok(())
/// # }
/// ```
pub fn call<'t>(name: &str, inputs: impl IntoIterator<Item = &'t ops::Tensor>) -> Span {
    if !super::is_on() {
        return Span::NONE;
    }
    begin(Cow::Owned(name.to_owned()), SpanKind::Op { inputs: inputs.into_iter().map(CallInput::tensor).collect() })
}

/// Starts the span of an op, if a profile records this thread.
#[cold]
pub(crate) fn op(name: &'static str, inputs: Vec<CallInput>) -> Span {
    begin(Cow::Borrowed(name), SpanKind::Op { inputs })
}

/// Starts the span of a copy of a shared tensor, which the write at this line caused. None for an argument of a launch, whose line the launch knows
/// later.
pub(crate) fn copy(tensor: impl FnOnce() -> TensorType, bytes: usize, line: Option<&'static Location<'static>>) -> Span {
    if !super::is_on() {
        return Span::NONE;
    }
    let line = guarded_line().or(line.map(Site::from)).map_or_else(String::new, |line| line.to_string());
    begin(Cow::Borrowed("galatea::copy_shared"), SpanKind::Copy { tensor: tensor(), bytes, line })
}

#[cold]
fn begin(name: Cow<'static, str>, kind: SpanKind) -> Span {
    whole_process::ask();
    // A benchmark calls an op so often that its spans would fill the profile.
    if sink::is_paused() { Span::NONE } else { Span::begin(name, kind) }
}

/// The line of a guard of this thread.
pub(super) fn guarded_line() -> Option<Site> {
    LINE.with_borrow(Option::clone)
}

/// Until the guard is dropped, copies and launches of this thread have this line, unless they have one from a guard around this one.
#[inline]
pub(crate) fn of_line(line: impl Into<Site>) -> OfLine {
    OfLine { is_first: super::is_on() && set_line(line.into()) }
}

#[cold]
fn set_line(line: Site) -> bool {
    LINE.with_borrow_mut(|current| current.is_none() && current.replace(line).is_none())
}

/// See [`of_line`].
pub(crate) struct OfLine {
    /// Whether the line is that of this guard.
    is_first: bool,
}

impl Drop for OfLine {
    #[inline]
    fn drop(&mut self) {
        if self.is_first {
            LINE.set(None);
        }
    }
}
