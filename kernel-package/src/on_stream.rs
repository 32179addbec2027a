//! Runs on a stream of the caller.

use kernel_runtime::Stream;
use kernel_runtime::ops::{OpResults, Tensor};

use crate::compiled::Compiled;
use crate::error::RunError;
use crate::session::Session;

/// A session on a stream, made by [`Session::on`] or [`Compiled::on`]. Its runs are queued there, as launches with [`.on(&stream)`](kernel_runtime::Launch::on) are: ordered
/// with all other uses of their inputs and outputs, whatever streams these have. The stream is the home stream of new outputs.
///
/// Runs on different streams have memory of their own, so they may overlap on the GPU.
#[derive(Clone, Copy, Debug)]
#[must_use = "a stream does nothing until a run"]
pub struct OnStream<'s, S> {
    session: &'s S,
    stream: &'s Stream,
}

impl<'s, S> OnStream<'s, S> {
    pub(crate) fn new(session: &'s S, stream: &'s Stream) -> OnStream<'s, S> {
        OnStream { session, stream }
    }
}

impl OnStream<'_, Session> {
    /// [`Session::run`] on the stream.
    ///
    /// # Errors
    /// As [`Session::run`], and [`WrongDevice`](kernel_runtime::Error::WrongDevice) for a stream of another device.
    pub fn run<'t>(&self, inputs: impl AsRef<[&'t Tensor]>) -> Result<Vec<Tensor>, RunError> {
        self.session.run_new(self.stream, inputs.as_ref())
    }

    /// [`Session::run_into`] on the stream. Outputs of runs on another stream move to this one, which waits for their earlier uses.
    ///
    /// # Errors
    /// As [`OnStream::run`].
    pub fn run_into<'t>(&self, inputs: impl AsRef<[&'t Tensor]>, outputs: &mut Vec<Tensor>) -> Result<(), RunError> {
        self.session.run_on(self.stream, inputs.as_ref(), outputs)
    }

    /// [`Session::run_owned`] on the stream.
    ///
    /// # Errors
    /// As [`OnStream::run`].
    pub fn run_owned(&self, inputs: impl Into<Vec<Tensor>>) -> Result<Vec<Tensor>, RunError> {
        self.session.run_owned_on(self.stream, inputs.into())
    }
}

impl<const N: usize, R: OpResults> OnStream<'_, Compiled<N, R>> {
    /// [`Compiled::call`] on the stream.
    ///
    /// # Errors
    /// As [`OnStream::run`].
    pub fn call(&self, inputs: [&Tensor; N]) -> Result<R, RunError> {
        self.session.call_on(self.stream, inputs)
    }
}
