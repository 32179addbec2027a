//! What the ops that access memory have in common.

use crate::ir::arena::Value;
use crate::ir::atomic::AtomicOp;
use crate::ir::fields::{AttributeValue, Field, Parts, take_attribute};
use crate::ir::function::Function;
use crate::ir::ops::Op;
use crate::ir::types::Type;

/// An access to memory: which lanes touch which elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// How.
    pub kind: AccessKind,
    /// The pointer.
    pub base: Value,
    /// Offsets in elements.
    pub offset: Value,
    /// Which lanes access, if not all.
    pub mask: Option<Value>,
    /// Can no such lane be outside the tensor?
    pub in_bounds: bool,
}

/// How memory is accessed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AccessKind {
    /// `load`
    Load,
    /// `store`
    Store,
    /// `atomic_add` and the like
    Atomic(AtomicOp),
}

impl AccessKind {
    /// The word of the language.
    pub const fn word(self) -> &'static str {
        match self {
            AccessKind::Load => "load",
            AccessKind::Store => "store",
            AccessKind::Atomic(op) => op.word(),
        }
    }
}

/// A load is not printed.
impl Field for AccessKind {
    fn print(&self, name: &str, parts: &mut Parts) {
        if *self != AccessKind::Load {
            parts.attributes.push((name.to_string(), AttributeValue::Text(self.word().to_string())));
        }
    }
    fn parse(name: &str, parts: &mut Parts) -> Result<AccessKind, String> {
        match take_attribute(name, parts) {
            None => Ok(AccessKind::Load),
            Some(AttributeValue::Text(text)) => {
                let atomics = AtomicOp::ALL.iter().map(|op| AccessKind::Atomic(*op));
                let mut kinds = [AccessKind::Load, AccessKind::Store].into_iter().chain(atomics);
                kinds.find(|kind| kind.word() == text).ok_or_else(|| format!("`{name}` cannot be \"{text}\""))
            }
            Some(_) => Err(format!("attribute `{name}` is not a text")),
        }
    }
}

/// May a pointer lead to memory that is stored to through another one? Parameters are tensors of their own, and to what a `Ptr` points, nobody
/// stores.
pub fn may_alias(func: &Function, base: Value, stored: Value) -> bool {
    let is_constant = matches!(func.ty(base), Type::Pointer { mutable: false, .. });
    base == stored || !is_constant && (func.param_index(base).is_none() || func.param_index(stored).is_none())
}

impl Op {
    /// What it touches, if it accesses memory.
    pub fn access(&self) -> Option<Access> {
        match *self {
            Op::Load { base, offset, mask, in_bounds, .. } => Some(Access { kind: AccessKind::Load, base, offset, mask, in_bounds }),
            Op::Store { base, offset, mask, in_bounds, .. } => Some(Access { kind: AccessKind::Store, base, offset, mask, in_bounds }),
            Op::Atomic { base, offset, op, mask, in_bounds, .. } => {
                Some(Access { kind: AccessKind::Atomic(op), base, offset, mask, in_bounds })
            }
            _ => None,
        }
    }

    /// Gives an op that accesses memory another mask, and says whether no lane whose mask holds can be outside its tensor.
    pub fn set_lanes(&mut self, lanes: Option<Value>, inside: bool) {
        if let Op::Load { mask, in_bounds, .. } | Op::Store { mask, in_bounds, .. } | Op::Atomic { mask, in_bounds, .. } = self {
            (*mask, *in_bounds) = (lanes, inside);
        }
    }
}
