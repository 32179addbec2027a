//! Fences: `membar` and `fence` (PTX ISA, 9.7.13.4).

use crate::counters::Class;
use crate::fault::Trap;
use crate::instructions::{Address, Form, Instruction, Progress, Unsupported, ordering};
use crate::machine::Cx;
use crate::memory::{Scope, View};
use crate::ptx::{Space, Type};

/// A fence.
struct Fence {
    kind: Kind,
}

enum Kind {
    /// A fence between accesses of the generic proxy; the flag is true for `fence.sc`.
    Memory(Scope, bool),
    /// A fence to a proxy that the race check does not cover.
    Nothing,
    /// A proxy fence to the async proxy, for these memories.
    Async(&'static [View]),
    /// A proxy fence for a tensor map that was modified in memory.
    TensorMap(Option<Address>),
}

/// Decodes `membar`.
pub(crate) fn decode_membar(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    if form.flag("proxy") {
        return decode_proxy(form);
    }
    let scope = form.one_of(&[("cta", Scope::Cta), ("gl", Scope::Gpu), ("sys", Scope::Gpu)]);
    let scope = scope.ok_or_else(|| form.error("`membar` needs a level: `.cta`, `.gl` or `.sys`"))?;
    // `membar` is a synonym of `fence.sc`.
    Ok(Box::new(Fence { kind: Kind::Memory(scope, true) }))
}

/// Decodes `fence`.
pub(crate) fn decode_fence(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    if form.flag("proxy") {
        return decode_proxy(form);
    }
    if form.flag("mbarrier_init") {
        if !(form.flag("release") && form.flag("cluster")) {
            return Err(form.error("`fence.mbarrier_init` is always `fence.mbarrier_init.release.cluster`"));
        }
        return Ok(Box::new(Fence { kind: Kind::Memory(Scope::Cluster, false) }));
    }
    let semantics = form.modifier_where(|modifier| matches!(modifier, "sc" | "acq_rel" | "acquire" | "release"));
    take_restriction(form, semantics)?;
    let scope = ordering::take_scope(form);
    let scope = scope.ok_or_else(|| form.error("`fence` needs a scope: `.cta`, `.cluster`, `.gpu` or `.sys`"))?;
    Ok(Box::new(Fence { kind: Kind::Memory(scope, semantics == Some("sc")) }))
}

/// Takes `.sync_restrict::shared::..`, which must match the direction of the fence.
fn take_restriction(form: &mut Form<'_>, semantics: Option<&str>) -> Result<(), Unsupported> {
    let Some(restriction) = form.modifier_where(|modifier| modifier.starts_with("sync_restrict")) else { return Ok(()) };
    match (semantics, restriction) {
        (Some("acquire"), "sync_restrict::shared::cluster") | (Some("release"), "sync_restrict::shared::cta") => Ok(()),
        _ => Err(form.error(format!("`.{restriction}` does not go with this fence"))),
    }
}

fn decode_proxy(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    let proxy = form.next_modifier().unwrap_or("");
    let kind = match proxy {
        "alias" => Kind::Nothing,
        "async" => {
            let is_global = form.flag("global");
            let is_shared = form.flag("shared::cta") || form.flag("shared::cluster");
            if is_global && is_shared {
                return Err(form.error("one space at most may be named"));
            }
            Kind::Async(match (is_global, is_shared) {
                (true, _) => &[View::AsyncGlobal],
                (_, true) => &[View::AsyncShared],
                _ => &[View::AsyncShared, View::AsyncGlobal],
            })
        }
        "async::generic" => {
            let semantics = form.modifier_where(|modifier| matches!(modifier, "acquire" | "release"));
            take_restriction(form, semantics)?;
            if !form.flag("cluster") {
                return Err(form.error("`fence.proxy.async::generic` has the scope `.cluster`"));
            }
            Kind::Async(&[View::AsyncShared])
        }
        "tensormap::generic" => {
            let is_acquire = form.one_of(&[("acquire", true), ("release", false)]);
            let is_acquire = is_acquire.ok_or_else(|| form.error("a fence of tensor maps is `.acquire` or `.release`"))?;
            if ordering::take_scope(form).is_none() {
                return Err(form.error("a fence of tensor maps needs a scope"));
            }
            if is_acquire {
                let address = form.address(Space::Generic)?;
                if form.source(Type::U32)? != crate::instructions::Value::Bits(128) {
                    return Err(form.error("a tensor map has 128 bytes"));
                }
                Kind::TensorMap(Some(address))
            } else {
                Kind::TensorMap(None)
            }
        }
        _ => return Err(form.error(format!("the simulator does not know the proxy `.{proxy}`"))),
    };
    Ok(Box::new(Fence { kind }))
}

impl Instruction for Fence {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        match self.kind {
            Kind::Nothing | Kind::TensorMap(None) => {}
            Kind::Memory(scope, is_sequential) => ordering::fence(cx, scope, is_sequential),
            Kind::TensorMap(Some(address)) => drop(cx.addresses(address)?),
            Kind::Async(memories) => {
                let warp = cx.cluster.clocks.warp(cx.rank, cx.warp.index);
                cx.cluster.clocks.fence_proxy_async(warp, cx.lanes, memories);
            }
        }
        Ok(Progress::Done)
    }

    fn class(&self) -> Class {
        Class::Barrier
    }
}
