//! Cache hints of accesses. They do not change results, but the decoder checks them (PTX ISA, 9.7.9.1 and 9.7.9.2).

use crate::instructions::{Form, Unsupported, Value};
use crate::ptx::{Space, Type};

/// The hints that an instruction accepts.
#[derive(Clone, Copy)]
pub(crate) struct Allowed {
    /// Cache operators, such as `ca`.
    pub(crate) operators: &'static [&'static str],
    /// Whether `.L1::evict_last` and other L1 priorities are accepted.
    pub(crate) level1: bool,
    /// Whether prefetch sizes such as `.L2::128B` are accepted.
    pub(crate) prefetch: bool,
}

/// The hints taken from an instruction.
#[derive(Clone, Copy)]
pub(crate) struct Hints {
    /// Whether there is a policy operand.
    pub(crate) has_policy: bool,
    /// Whether there was a cache operator or an eviction priority. Strong accesses accept no cache operator.
    pub(crate) has_operator: bool,
}

/// Takes the hints.
pub(crate) fn take(form: &mut Form<'_>, space: Space, allowed: Allowed) -> Result<Hints, Unsupported> {
    let operator = form.modifier_where(|modifier| allowed.operators.contains(&modifier));
    let level1 = match form.modifier_where(|modifier| modifier.starts_with("L1::")) {
        Some(modifier @ ("L1::evict_normal" | "L1::evict_unchanged" | "L1::evict_first" | "L1::evict_last" | "L1::no_allocate"))
            if allowed.level1 =>
        {
            Some(modifier)
        }
        Some(modifier) => return Err(form.error(format!("`.{modifier}` is not allowed here"))),
        None => None,
    };
    if let (Some(operator), Some(level1)) = (operator, level1) {
        return Err(form.error(format!("`.{operator}` and `.{level1}` exclude each other")));
    }
    if let Some(modifier) = form.modifier_where(|modifier| modifier.starts_with("L2::evict_")) {
        return Err(form.error(format!("`.{modifier}` needs a vector of 32 bytes, which `sm_100` has first")));
    }
    let prefetch =
        if allowed.prefetch { form.modifier_where(|modifier| matches!(modifier, "L2::64B" | "L2::128B" | "L2::256B")) } else { None };
    let has_policy = form.flag("L2::cache_hint");
    if !matches!(space, Space::Global | Space::Generic) {
        let wrong = level1.or(prefetch).or(has_policy.then_some("L2::cache_hint"));
        if let Some(modifier) = wrong {
            return Err(form.error(format!("`.{modifier}` is for global memory, not for {space} memory")));
        }
    }
    Ok(Hints { has_policy, has_operator: operator.is_some() })
}

impl Hints {
    /// Takes the cache policy, which is the last operand, if there was `.L2::cache_hint`.
    pub(crate) fn policy(self, form: &mut Form<'_>) -> Result<Option<Value>, Unsupported> {
        if self.has_policy { form.source(Type::B64).map(Some) } else { Ok(None) }
    }
}
