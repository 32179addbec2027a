//! Memory semantics and scopes of accesses: `.relaxed.gpu`, `.acquire.cta`, `.volatile` (PTX ISA, 8.5 and 9.7.9.8).

use crate::instructions::{Form, Unsupported};

/// What an access promises beside its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Semantics {
    /// Nothing; the default of loads and stores.
    Weak,
    /// `.volatile`: as `.relaxed.sys`.
    Volatile,
    /// `.relaxed`
    Relaxed,
    /// `.acquire`
    Acquire,
    /// `.release`
    Release,
    /// `.acq_rel`
    AcquireRelease,
}

impl Semantics {
    /// Do two such accesses race? Only weak ones do.
    pub(crate) fn is_strong(self) -> bool {
        self != Semantics::Weak
    }
}

/// Takes a scope, if there is one: `cta`, `cluster`, `gpu` or `sys`. One launch is simulated at a time and all its memory is one, so a
/// narrow scope shows no more than a wide one; which it is does not matter.
pub(crate) fn take_scope<'a>(form: &mut Form<'a>) -> Option<&'a str> {
    form.modifier_where(|modifier| matches!(modifier, "cta" | "cluster" | "gpu" | "sys"))
}

/// Takes the semantics and the scope of a `ld` (`synchronising` is `acquire`) or a `st` (`release`).
pub(crate) fn take_access(form: &mut Form<'_>, synchronising: (&str, Semantics)) -> Result<Semantics, Unsupported> {
    let is_mmio = form.flag("mmio");
    let choices = [("weak", Semantics::Weak), ("volatile", Semantics::Volatile), ("relaxed", Semantics::Relaxed), synchronising];
    let semantics = form.one_of(&choices);
    let scope = take_scope(form);
    match (semantics, scope) {
        (Some(Semantics::Relaxed), Some("sys")) if is_mmio => Ok(Semantics::Relaxed),
        _ if is_mmio => Err(form.error("`.mmio` is always `.mmio.relaxed.sys`")),
        (Some(Semantics::Relaxed), None) => Err(form.error("`.relaxed` needs a scope, such as `.relaxed.gpu`")),
        (Some(semantics), None) if semantics == synchronising.1 => {
            let name = synchronising.0;
            Err(form.error(format!("`.{name}` needs a scope, such as `.{name}.gpu`")))
        }
        (None | Some(Semantics::Weak | Semantics::Volatile), Some(scope)) => {
            Err(form.error(format!("the scope `.{scope}` needs `.relaxed` or `.{}`", synchronising.0)))
        }
        (semantics, _) => Ok(semantics.unwrap_or(Semantics::Weak)),
    }
}

/// Takes the semantics and the scope of an atomic: `.relaxed` and `.gpu` if they are not written.
pub(crate) fn take_atomic(form: &mut Form<'_>, choices: &[(&str, Semantics)]) -> Semantics {
    let semantics = form.one_of(choices).unwrap_or(Semantics::Relaxed);
    take_scope(form);
    semantics
}
