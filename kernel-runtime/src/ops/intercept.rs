//! Scopes that observe and replace calls of ops.
//!
//! An intercepted call is a call by name: its arguments are [`OpInput`]s, and its results a list of tensors. So one interceptor serves ops of all signatures. A call outside of a scope
//! reads one variable of the thread, and nothing else.
//!
//! ```text
//! intercept(&a, || intercept(&b, || silu(&x)))
//!   b.call          calls of its own are seen by a
//!     a.call        calls of its own are seen by none
//!       silu        calls in its body are seen by b, then a
//! ```

use std::cell::Cell;
use std::fmt;
use std::ptr::NonNull;

use super::schema::Schema;
use super::{OpDef, OpFunction, OpInput, OpResults, OpsError, Tensor, op};
use crate::{Error, Result};

/// A function that takes the place of calls of ops in a scope, see [`intercept`].
pub trait Interceptor {
    /// The results of a call. [`Intercepted::proceed`] computes those of the op. An interceptor may look at arguments and results, change both, or compute other results. Their number is that of
    /// the op's results. A tensor that the op writes is an [`OpInput::TensorMut`] among the arguments.
    ///
    /// # Errors
    /// Those of the op, or of the interceptor: the call returns them.
    fn call(&self, call: Intercepted<'_>) -> Result<Vec<Tensor>>;
}

/// A closure with an argument of a stated type: `|call: Intercepted<'_>| call.proceed()`.
impl<F: Fn(Intercepted<'_>) -> Result<Vec<Tensor>>> Interceptor for F {
    fn call(&self, call: Intercepted<'_>) -> Result<Vec<Tensor>> {
        self(call)
    }
}

/// Runs the closure. Each call of an op on this thread, as a function or by name, is a call of the interceptor instead: also in bodies of ops, in backward functions, and of opaque ops in runs
/// of sessions. Calls that the interceptor makes itself are those of the scope around this one.
///
/// A recording has what the interceptor calls, and gradients flow through it: a replaced call is none.
///
/// ```
/// use kernel_runtime::ops::{self, Intercepted, OpInput, Tensor};
/// use kernel_runtime::{Device, Result};
///
/// /// Prints the ops that a model calls, and skips products with 1.
/// fn observed(model: impl FnOnce() -> Result<Tensor>) -> Result<Tensor> {
///     let interceptor = |call: Intercepted<'_>| {
///         println!("{}", call.def.name);
///         match (call.def.name, &call.inputs[..]) {
///             ("mylib::scale", [OpInput::Tensor(x), OpInput::Float(1.0)]) => Ok(vec![(*x).clone()]),
///             _ => call.proceed(),
///         }
///     };
///     ops::intercept(&interceptor, model)
/// }
///
/// # fn main() -> Result<()> {
/// let x: Tensor = Device::cpu().tensor(&[1.0f32, 2.0])?.into();
/// assert!(observed(|| x.reshape([2, 1]))?.dims() == [2.into(), 1.into()]);
/// # Ok(())
/// # }
/// ```
///
/// The chapter "Ops" of the book has more examples.
pub fn intercept<R>(interceptor: &dyn Interceptor, run: impl FnOnce() -> R) -> R {
    let scope = Scope { interceptor, outer: ACTIVE.get() };
    // The lifetime is erased: the guard takes the scope out of the variable before it ends.
    let _active = Active::set(Some(NonNull::from(&scope).cast()));
    run()
}

/// A call of an op in a scope of [`intercept`].
pub struct Intercepted<'a> {
    /// The op.
    pub def: &'static OpDef,
    /// The arguments, in the order of the schema.
    pub inputs: Vec<OpInput<'a>>,
    function: OpFunction,
    /// The scope whose interceptor is called next; `None` for the op itself.
    next: ScopeLink,
    /// The scope of the op's body.
    body: ScopeLink,
}

impl Intercepted<'_> {
    /// Calls on: the interceptor of the scope around this one, or the op.
    ///
    /// # Errors
    /// Those of the op and of other interceptors, [`OpsError::OpArguments`] if `inputs` do not fit the schema, and [`OpsError::ResultCount`] if another interceptor returns another number of
    /// tensors than the op.
    pub fn proceed(self) -> Result<Vec<Tensor>> {
        let Some(scope) = self.next else {
            let _active = Active::set(self.body);
            return (self.function)(self.inputs);
        };
        // SAFETY: the scope is a local variable of `intercept`, whose guard takes it out of the variable of the thread, also if it panics. A call begins while the scope is in that variable,
        // and ends before: `Interceptor::call` cannot keep an `Intercepted` of any lifetime, nor send it to another thread.
        let Scope { interceptor, outer } = unsafe { scope.as_ref() };
        let _active = Active::set(*outer);
        let def = self.def;
        let tensors = interceptor.call(Intercepted { next: *outer, ..self })?;
        match Schema::parse(def.schema).and_then(|schema| schema.results) {
            Some(expected) if expected != tensors.len() => {
                Err(Error::Ops(OpsError::ResultCount { schema: def.schema, found: tensors.len() }))
            }
            _ => Ok(tensors),
        }
    }
}

impl fmt::Debug for Intercepted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intercepted").field("def", &self.def).field("inputs", &self.inputs).finish_non_exhaustive()
    }
}

/// A running [`intercept`].
struct Scope<'s> {
    interceptor: &'s dyn Interceptor,
    outer: ScopeLink,
}

type ScopeLink = Option<NonNull<Scope<'static>>>;

thread_local! {
    /// The innermost scope that sees calls.
    static ACTIVE: Cell<ScopeLink> = const { Cell::new(None) };
}

/// Until it is dropped, another scope is active.
struct Active {
    before: ScopeLink,
}

impl Active {
    fn set(scope: ScopeLink) -> Active {
        Active { before: ACTIVE.replace(scope) }
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        ACTIVE.set(self.before);
    }
}

/// Whether a scope sees calls of this thread.
#[inline]
pub fn is_intercepted() -> bool {
    ACTIVE.get().is_some()
}

/// A call by name.
pub(super) fn call(def: &'static OpDef, function: OpFunction, inputs: Vec<OpInput<'_>>) -> Result<Vec<Tensor>> {
    let active = ACTIVE.get();
    Intercepted { def, inputs, function, next: active, body: active }.proceed()
}

/// A call of an op's function in a scope.
#[cold]
pub fn intercepted<R: OpResults>(def: &'static OpDef, inputs: Vec<OpInput<'_>>) -> Result<R> {
    op::typed(def, def.call(inputs)?)
}
