//! Sessions whose inputs and outputs have the types of the recorded function.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use kernel_runtime::Stream;
use kernel_runtime::ops::{OpResults, Tensor};

use crate::error::RunError;
use crate::on_stream::OnStream;
use crate::session::Session;

/// A [`Session`] with `N` inputs and the results `R`: a tensor, an array, a tuple or a vector of tensors. `compile` makes it of a function, and
/// [`Session::typed`] of any session.
///
/// Another number of inputs, or another type of results, is an error of rustc:
///
/// ```compile_fail,E0308
/// # use kernel_package::{Compiled, RunError};
/// # use kernel_runtime::ops::Tensor;
/// fn sum(compiled: &Compiled<2, Tensor>, x: &Tensor) -> Result<Tensor, RunError> {
///     compiled.call([x]) // error: expected an array with a size of 2, found one with a size of 1
/// }
/// ```
pub struct Compiled<const N: usize, R> {
    session: Session,
    results: PhantomData<fn() -> R>,
}

impl Session {
    /// The session with types for its inputs and results, such as `session.typed::<2, (Tensor, Tensor)>()?`.
    ///
    /// # Errors
    /// [`RunError::InputCount`] and [`RunError::OutputCount`] for another number of inputs or outputs than the program has.
    pub fn typed<const N: usize, R: OpResults>(self) -> Result<Compiled<N, R>, RunError> {
        let plan = self.plan();
        if plan.inputs.len() != N {
            let names = plan.inputs.iter().map(|input| input.name.as_str()).collect::<Vec<_>>().join(", ");
            return Err(RunError::InputCount { expected: plan.inputs.len(), names, given: N });
        }
        match R::COUNT {
            Some(typed) if typed != plan.outputs.len() => Err(RunError::OutputCount { returned: plan.outputs.len(), typed }),
            _ => Ok(Compiled { session: self, results: PhantomData }),
        }
    }
}

impl<const N: usize, R: OpResults> Compiled<N, R> {
    /// Runs the program, and returns its results as the recorded function does.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub fn call(&self, inputs: [&Tensor; N]) -> Result<R, RunError> {
        self.call_on(self.session.device().stream(), inputs)
    }

    pub(crate) fn call_on(&self, stream: &Stream, inputs: [&Tensor; N]) -> Result<R, RunError> {
        let outputs = self.session.run_new(stream, &inputs)?;
        let returned = outputs.len();
        R::of(outputs).ok_or(RunError::OutputCount { returned, typed: R::COUNT.unwrap_or(returned) })
    }
}

impl<const N: usize, R> Compiled<N, R> {
    /// [`Session::on`], with [`OnStream::call`].
    pub fn on<'s>(&'s self, stream: &'s Stream) -> OnStream<'s, Compiled<N, R>> {
        OnStream::new(self, stream)
    }

    /// [`Session::checked`].
    #[must_use]
    pub fn checked(self) -> Compiled<N, R> {
        Compiled { session: self.session.checked(), results: PhantomData }
    }

    /// The session.
    pub fn into_session(self) -> Session {
        self.session
    }
}

impl<const N: usize, R> Deref for Compiled<N, R> {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl<const N: usize, R> DerefMut for Compiled<N, R> {
    fn deref_mut(&mut self) -> &mut Session {
        &mut self.session
    }
}

impl<const N: usize, R> fmt::Debug for Compiled<N, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.session.fmt(f)
    }
}
