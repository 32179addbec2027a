//! Memory semantics and scopes of accesses: `.relaxed.gpu`, `.acquire.cta`, `.volatile` (PTX ISA, 8.5 and 9.7.9.8).

use std::collections::HashMap;

use crate::instructions::{Form, Unsupported};
use crate::lanes::{Row, WARP};
use crate::machine::{Cx, Place};
use crate::memory::Stamp;
use crate::ptx::Space;

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

    fn acquires(self) -> bool {
        matches!(self, Semantics::Acquire | Semantics::AcquireRelease)
    }

    fn releases(self) -> bool {
        matches!(self, Semantics::Release | Semantics::AcquireRelease)
    }
}

/// What was released at each place of memory that threads of the cluster stored to with strong accesses, for whoever reads it there. It
/// only grows: to learn from an older store than the one that is read hides a race, and finds no wrong one.
#[derive(Default)]
pub(crate) struct Published {
    /// By rank (none for global memory) and address.
    stamps: HashMap<(Option<usize>, u64), Stamp>,
}

/// What the fences of a warp's lanes order: a fence before a strong store makes that a release, and one after a strong load makes that an
/// acquire (PTX ISA, 8.8, "release patterns" and "acquire patterns").
#[derive(Default)]
pub(crate) struct Fences {
    fenced: [Option<Stamp>; WARP],
    observed: [Option<Stamp>; WARP],
}

impl Fences {
    /// What a lane knew at its last fence.
    pub(crate) fn fenced(&self, lane: usize) -> Option<&Stamp> {
        self.fenced[lane].as_ref()
    }
}

/// The lanes execute a fence.
pub(crate) fn fence(cx: &mut Cx<'_>) {
    let warp = cx.cluster.clocks.warp(cx.rank, cx.warp.index);
    for lane in cx.lanes {
        if let Some(stamp) = cx.warp.fences.observed[lane].take() {
            cx.cluster.clocks.acquire(warp, lane, &stamp);
        }
        cx.warp.fences.fenced[lane] = Some(cx.cluster.clocks.release(warp, lane));
    }
}

/// The lanes have stored at these addresses.
pub(crate) fn publish(cx: &mut Cx<'_>, semantics: Semantics, space: Space, addresses: &Row) {
    if !semantics.is_strong() {
        return;
    }
    let warp = cx.cluster.clocks.warp(cx.rank, cx.warp.index);
    for lane in cx.lanes {
        let stamp = match semantics.releases() {
            true => Some(cx.cluster.clocks.release(warp, lane)),
            false => cx.warp.fences.fenced[lane].clone(),
        };
        if let (Some(stamp), Some(key)) = (stamp, key(cx, space, addresses[lane])) {
            cx.cluster.published.stamps.entry(key).or_default().join(&stamp);
        }
    }
}

/// The lanes have loaded from these addresses.
pub(crate) fn observe(cx: &mut Cx<'_>, semantics: Semantics, space: Space, addresses: &Row) {
    if !semantics.is_strong() || cx.cluster.published.stamps.is_empty() {
        return;
    }
    let warp = cx.cluster.clocks.warp(cx.rank, cx.warp.index);
    for lane in cx.lanes {
        let stamp = key(cx, space, addresses[lane]).and_then(|key| cx.cluster.published.stamps.get(&key).cloned());
        let Some(stamp) = stamp else { continue };
        if semantics.acquires() {
            cx.cluster.clocks.acquire(warp, lane, &stamp);
        } else {
            cx.warp.fences.observed[lane].get_or_insert_with(Stamp::default).join(&stamp);
        }
    }
}

fn key(cx: &Cx<'_>, space: Space, address: u64) -> Option<(Option<usize>, u64)> {
    match cx.resolve(space, address) {
        Ok(Place::Global(address)) => Some((None, address)),
        Ok(Place::Shared { rank, offset }) => Some((Some(rank), offset)),
        _ => None,
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
