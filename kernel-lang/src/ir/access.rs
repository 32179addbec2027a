//! Memory accesses: the view that all ops with an address have in common, and aliasing of pointers.

use rustc_hash::FxHashSet;

use crate::ir::arena::{Inst, Value};
use crate::ir::atomic::AtomicOp;
use crate::ir::fields::{AttributeValue, Field, Parts, take_attribute};
use crate::ir::function::Function;
use crate::ir::ops::Op;
use crate::ir::types::Type;

/// A memory access: which elements it touches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// The kind of access.
    pub kind: AccessKind,
    /// The pointer.
    pub base: Value,
    /// Offsets in elements.
    pub offset: Value,
    /// Which elements are accessed; `None` for all.
    pub mask: Option<Value>,
    /// Is every unmasked element proved to be inside the tensor?
    pub in_bounds: bool,
}

/// The kind of a memory access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AccessKind {
    /// A `load`.
    Load,
    /// A `store`.
    Store,
    /// An `atomic_add` or another atomic.
    Atomic(AtomicOp),
}

impl AccessKind {
    /// The name of the builtin.
    pub const fn builtin(self) -> &'static str {
        match self {
            AccessKind::Load => "load",
            AccessKind::Store => "store",
            AccessKind::Atomic(op) => op.builtin(),
        }
    }
}

/// A load is the default and is not printed.
impl Field for AccessKind {
    fn print(&self, name: &str, parts: &mut Parts) {
        if *self != AccessKind::Load {
            parts.attributes.push((name.to_string(), AttributeValue::Text(self.builtin().to_string())));
        }
    }
    fn parse(name: &str, parts: &mut Parts) -> Result<AccessKind, String> {
        match take_attribute(name, parts) {
            None => Ok(AccessKind::Load),
            Some(AttributeValue::Text(text)) => {
                let atomics = AtomicOp::ALL.iter().map(|op| AccessKind::Atomic(*op));
                let mut kinds = [AccessKind::Load, AccessKind::Store].into_iter().chain(atomics);
                kinds.find(|kind| kind.builtin() == text).ok_or_else(|| format!("`{name}` cannot be \"{text}\""))
            }
            Some(_) => Err(format!("attribute `{name}` is not a text")),
        }
    }
}

/// May `base` point to memory that is stored to through `stored`? Each pointer parameter is a tensor of its own, and no memory behind a `Ptr`
/// is stored to.
pub fn may_alias(func: &Function, base: Value, stored: Value) -> bool {
    let [base, stored] = [base, stored].map(|pointer| func.viewed(pointer));
    let is_constant = matches!(func.ty(base), Type::Pointer { mutable: false, .. });
    base == stored || !is_constant && (func.param_index(base).is_none() || func.param_index(stored).is_none())
}

/// The pointers that are stored through, for [`may_alias`] queries against all of them at once.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    bases: FxHashSet<Value>,
    /// Is one of them not a parameter?
    has_computed: bool,
}

impl Stored {
    /// Collects the pointers.
    pub fn through(func: &Function, bases: impl IntoIterator<Item = Value>) -> Stored {
        let bases: FxHashSet<Value> = bases.into_iter().map(|base| func.viewed(base)).collect();
        Stored { has_computed: bases.iter().any(|base| func.param_index(*base).is_none()), bases }
    }

    /// Collects the pointers through which these ops store.
    pub fn by(func: &Function, insts: &[Inst]) -> Stored {
        let bases = insts.iter().filter_map(|inst| match func.inst(*inst).op {
            Op::Store { base, .. } => Some(base),
            Op::Atomic { base, op, .. } => op.writes().then_some(base),
            _ => None,
        });
        Stored::through(func, bases)
    }

    /// May the pointer point to memory that is stored to?
    pub fn may_alias(&self, func: &Function, base: Value) -> bool {
        let base = func.viewed(base);
        let is_constant = matches!(func.ty(base), Type::Pointer { mutable: false, .. });
        let any_may = self.has_computed || (func.param_index(base).is_none() && !self.bases.is_empty());
        self.bases.contains(&base) || (!is_constant && any_may)
    }
}

impl Access {
    /// Can one instruction access several neighbouring elements?
    pub fn can_be_wide(&self, func: &Function) -> bool {
        !matches!(self.kind, AccessKind::Atomic(_)) || self.is_wide_atomic(func)
    }

    /// Is it an atomic that can update several neighbouring elements by one instruction?
    pub fn is_wide_atomic(&self, func: &Function) -> bool {
        matches!(self.kind, AccessKind::Atomic(op) if op.has_vectors(func.ty(self.base).dtype()))
    }
}

impl Op {
    /// The memory access of the op, if it has one.
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

    /// Replaces the mask of an op that accesses memory. `inside` states that no unmasked element is outside the tensor.
    pub fn set_lanes(&mut self, lanes: Option<Value>, inside: bool) {
        if let Op::Load { mask, in_bounds, .. } | Op::Store { mask, in_bounds, .. } | Op::Atomic { mask, in_bounds, .. } = self {
            (*mask, *in_bounds) = (lanes, inside);
        }
    }

    /// Sets the width in bytes of an op that accesses memory, or 0. The access can be wide ([`Access::can_be_wide`]).
    pub fn set_align(&mut self, bytes: u32) {
        if let Op::Load { align, .. } | Op::Store { align, .. } | Op::Atomic { align, .. } = self {
            *align = bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_through_aliases_as_each_of_it_does() {
        let text = "kernel @k(%x: ptr<f32>, %y: ptr_mut<f32>, %z: ptr_mut<f32>, %n: i64) unchecked {
            %p = pointer %n : ptr_mut<f32>
            %q = pointer %n : ptr<f32>
            return
        }";
        let func = crate::ir::parse(text).expect("it is well formed");
        let computed = func.region(func.body).insts[..2].iter().map(|inst| func.result(*inst));
        let all: Vec<Value> = func.params[..3].iter().map(|param| param.value).chain(computed).collect();
        let mutable = [all[1], all[2], all[3]];
        for stored in [&mutable[..0], &mutable[..1], &mutable[..2], &mutable[1..], &mutable[2..], &mutable] {
            let together = Stored::through(&func, stored.iter().copied());
            for base in &all {
                let each = stored.iter().any(|stored| may_alias(&func, *base, *stored));
                assert_eq!(together.may_alias(&func, *base), each, "{base} and {stored:?}");
            }
        }
    }
}
