//! The instructions, and what they work on.

use crate::backend::cpu::conflicts::Decider;
use crate::backend::cpu::lookup::Lookup;
use crate::dtype::Dtype;
use crate::ir::{AccessKind, AtomicOp, Semantics};
use crate::location::{Loc, Name};
use crate::scalar::lanes::Lanes;

/// Lanes that stand for a uniform tile: loops take operands of a uniform tile in chunks of this many.
pub(super) const CHUNK: usize = 128;

/// A place in the scratch: its byte offset. While translating, tiles have the number of a [`super::allocate::Lifetime`] instead, marked by
/// [`PENDING`]. A slot marked by [`VIEW`] is that of an address: the value is there, in a tensor or elsewhere in the scratch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Slot(pub(super) u32);

/// Marks the slot of a tile that has no place yet.
pub(super) const PENDING: u32 = 1 << 31;

/// Marks the slot of a value's address.
pub(super) const VIEW: u32 = 1 << 30;

/// An `i64` scalar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Linear {
    Const(i64),
    Slot(Slot),
}

/// An `i64` tile: `base + sum of coefficient[axis] * index[axis]`, wrapping.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Affine {
    pub(super) base: Linear,
    pub(super) coefficients: Vec<Linear>,
}

/// A `bool` tile that holds on one range of lanes a row (unless offsets wrap).
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Condition {
    /// The same scalar for every lane.
    Uniform(Slot),
    /// `lhs < rhs`, or `lhs <= rhs`; along the innermost axis each grows by 0 or 1.
    Less { lhs: Affine, rhs: Affine, or_equal: bool },
}

/// Which lanes are active.
#[derive(Clone, Debug)]
pub(super) enum Mask {
    /// Those where every condition holds.
    Conditions(Vec<Condition>),
    /// Those where the tile is 1.
    Tile(Slot),
}

/// The offsets of an access.
#[derive(Clone, Debug)]
pub(super) enum Offsets {
    Affine(Affine),
    Tile(Slot),
}

/// What inactive lanes of a load read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Other {
    Zero,
    Uniform(Slot),
    Tile(Slot),
}

/// A load, a store, or where an atomic acts.
#[derive(Clone, Debug)]
pub(super) struct Access {
    pub(super) kind: AccessKind,
    /// The word of the scratch that holds the address; the length is the next.
    pub(super) word: usize,
    /// The pointer's name; empty if it was made of an address.
    pub(super) parameter: Name,
    pub(super) loc: Loc,
    pub(super) extents: Vec<usize>,
    pub(super) dtype: Dtype,
    pub(super) offsets: Offsets,
    pub(super) mask: Mask,
    /// What a load writes and a store reads.
    pub(super) data: Slot,
    pub(super) other: Other,
    /// The slot of an address that is to be the tensor's, if every lane is active, inside and contiguous, and `data`'s otherwise.
    pub(super) view: Option<Slot>,
    /// Its number among all accesses in the order of the kernel's text.
    pub(super) number: u32,
}

/// An atomic: its access holds the old values.
#[derive(Clone, Debug)]
pub(super) struct Atomic {
    pub(super) access: Access,
    pub(super) op: AtomicOp,
    pub(super) sem: Semantics,
    /// Those that the op lacks are the data again: they are not used.
    pub(super) operands: [Slot; 2],
}

/// Which element of a tile stands at an index: `first + sum of strides[axis] * index[axis]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Walk {
    pub(super) first: usize,
    pub(super) strides: Vec<isize>,
}

impl Walk {
    /// Row-major over a tile of those extents.
    pub(super) fn rows(extents: &[usize]) -> Walk {
        let mut strides = vec![1; extents.len()];
        for axis in (1..extents.len()).rev() {
            strides[axis - 1] = strides[axis] * extents[axis] as isize;
        }
        Walk { first: 0, strides }
    }
}

/// An index into [`Code::instrs`].
pub(super) type Label = usize;

#[derive(Clone, Debug)]
pub(super) enum Instr {
    /// An elementwise op. `strides[0]` and `strides[1..]` are the bytes from lane to lane of the result and the operands, 0 for uniform ones.
    Lanes {
        lanes: Lanes,
        count: usize,
        result: Slot,
        operands: [Slot; 3],
        strides: [u32; 4],
        chunked: bool,
    },
    /// `count` elements of `width` bytes, all as the first one at `from`.
    Fill {
        to: Slot,
        from: Slot,
        width: usize,
        count: usize,
    },
    /// Bytes.
    Copy {
        to: Slot,
        from: Slot,
        bytes: usize,
    },
    /// Elements of `width` bytes from where one walk over `extents` leads to where the other does.
    Rearrange {
        to: Slot,
        to_walk: Walk,
        from: Slot,
        from_walk: Walk,
        width: usize,
        extents: Vec<usize>,
    },
    /// An `i64` tile from its form.
    Index {
        to: Slot,
        affine: Affine,
        extents: Vec<usize>,
    },
    /// A `bool` tile from its form.
    Conditions {
        to: Slot,
        conditions: Vec<Condition>,
        extents: Vec<usize>,
    },
    Load(Box<Access>),
    /// Sets the view of the store that comes after the next op, so that this op writes to the tensor itself.
    Aim(Box<Access>),
    Store(Box<Access>),
    /// Of a checked run: ends it unless the `bool` holds.
    Assert {
        cond: Slot,
        message: Name,
        loc: Loc,
    },
    Atomic(Box<Atomic>),
    /// Elements where data says.
    Lookup {
        to: Slot,
        from: Slot,
        lookup: Box<Lookup>,
    },
    Jump(Label),
    /// Goes on unless the `bool` holds.
    JumpUnless(Slot, Label),
    /// Sets the index to `lower`, or leaves.
    ForBegin {
        index: Slot,
        lower: Slot,
        upper: Slot,
        step: Slot,
        dtype: Dtype,
        exit: Label,
    },
    /// Advances the index and repeats, or goes on.
    ForNext {
        index: Slot,
        upper: Slot,
        step: Slot,
        dtype: Dtype,
        body: Label,
    },
    Return,
}

/// A translated kernel.
#[derive(Debug)]
pub(super) struct Code {
    pub(super) instrs: Vec<Instr>,
    /// Argument words.
    pub(super) words: usize,
    /// What the scratch holds at first: argument words, program index and grid (3 words each), scalars, constants.
    pub(super) constants: Vec<u8>,
    pub(super) scratch_bytes: usize,
    pub(super) file_names: Vec<Name>,
    /// Says at each launch which accesses conflict.
    pub(super) decider: Decider,
}

impl Linear {
    fn visit(&mut self, f: &mut dyn FnMut(&mut Slot)) {
        if let Linear::Slot(slot) = self {
            f(slot);
        }
    }
}

impl Affine {
    /// The coefficient of the innermost axis; 0 of a scalar.
    pub(super) fn innermost(&self) -> Linear {
        self.coefficients.last().copied().unwrap_or(Linear::Const(0))
    }

    fn visit(&mut self, f: &mut dyn FnMut(&mut Slot)) {
        self.base.visit(f);
        self.coefficients.iter_mut().for_each(|coefficient| coefficient.visit(f));
    }
}

impl Condition {
    fn visit(&mut self, f: &mut dyn FnMut(&mut Slot)) {
        match self {
            Condition::Uniform(slot) => f(slot),
            Condition::Less { lhs, rhs, .. } => {
                lhs.visit(f);
                rhs.visit(f);
            }
        }
    }
}

impl Access {
    fn visit(&mut self, f: &mut dyn FnMut(&mut Slot)) {
        f(&mut self.data);
        match &mut self.offsets {
            Offsets::Affine(affine) => affine.visit(f),
            Offsets::Tile(slot) => f(slot),
        }
        match &mut self.mask {
            Mask::Conditions(conditions) => conditions.iter_mut().for_each(|condition| condition.visit(f)),
            Mask::Tile(slot) => f(slot),
        }
        match &mut self.other {
            Other::Zero => {}
            Other::Uniform(slot) | Other::Tile(slot) => f(slot),
        }
    }
}

impl Instr {
    /// Calls `f` with every slot it reads or writes.
    pub(super) fn visit_slots(&mut self, f: &mut dyn FnMut(&mut Slot)) {
        match self {
            Instr::Lanes { result, operands, .. } => {
                f(result);
                operands.iter_mut().for_each(f);
            }
            Instr::Fill { to, from, .. } | Instr::Copy { to, from, .. } | Instr::Rearrange { to, from, .. } => {
                f(to);
                f(from);
            }
            Instr::Index { to, affine, .. } => {
                f(to);
                affine.visit(f);
            }
            Instr::Conditions { to, conditions, .. } => {
                f(to);
                conditions.iter_mut().for_each(|condition| condition.visit(f));
            }
            Instr::Load(access) | Instr::Store(access) | Instr::Aim(access) => access.visit(f),
            Instr::Atomic(atomic) => {
                atomic.access.visit(f);
                atomic.operands.iter_mut().for_each(f);
            }
            Instr::Lookup { to, from, lookup } => {
                f(to);
                f(from);
                lookup.visit(f);
            }
            Instr::JumpUnless(condition, _) | Instr::Assert { cond: condition, .. } => f(condition),
            Instr::ForBegin { index, lower, upper, step, .. } => [index, lower, upper, step].into_iter().for_each(f),
            Instr::ForNext { index, upper, step, .. } => [index, upper, step].into_iter().for_each(f),
            Instr::Jump(_) | Instr::Return => {}
        }
    }
}
