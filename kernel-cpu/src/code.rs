//! Instructions of the CPU executor, and their operands.

use crate::conflicts::Decider;
use crate::dot::Sums;
use crate::lookup::Lookup;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{AccessKind, AtomicOp, Semantics};
use kernel_lang::location::{Loc, Name};
use kernel_lang::scalar::lanes::Lanes;

/// The elements that represent a uniform tile: loops read operands that are uniform tiles in chunks of this size.
pub(super) const CHUNK: usize = 128;

/// A byte offset in the scratch. During translation a tile's slot is the number of a [`super::allocate::Lifetime`], marked by [`PENDING`].
/// A slot marked by [`VIEW`] holds an address: the value is at that address, in a tensor or elsewhere in the scratch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Slot(pub(super) u32);

/// Marks the slot of a tile that is not allocated yet.
pub(super) const PENDING: u32 = 1 << 31;

/// Marks a slot that holds the address of a value.
pub(super) const VIEW: u32 = 1 << 30;

/// An `i64` scalar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Linear {
    Const(i64),
    Slot(Slot),
}

impl Linear {
    /// The scalar, if it is a constant.
    pub(super) fn constant(self) -> Option<i64> {
        match self {
            Linear::Const(number) => Some(number),
            Linear::Slot(_) => None,
        }
    }
}

/// An `i64` tile: `base + sum of coefficient[axis] * index[axis]`, wrapping. Instructions have its scalars in slots.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Affine<S = Linear> {
    pub(super) base: S,
    pub(super) coefficients: Vec<S>,
}

/// A `bool` tile that is true on one range of elements in each row (unless offsets wrap).
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Condition {
    /// The same scalar for every element.
    Uniform(Slot),
    /// `lhs < rhs`, or `lhs <= rhs`; each side grows by 0 or 1 along the innermost axis.
    Less { lhs: Affine, rhs: Affine, or_equal: bool },
}

/// The active elements of an access.
#[derive(Clone, Debug)]
pub(super) enum Mask {
    /// The elements for which every condition holds.
    Conditions(Vec<Condition>),
    /// The elements for which the tile is 1.
    Tile(Slot),
}

/// The offsets of an access.
#[derive(Clone, Debug)]
pub(super) enum Offsets {
    Affine(Affine),
    Tile(Slot),
}

/// The value that inactive elements of a load read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Other {
    Zero,
    Uniform(Slot),
    Tile(Slot),
}

/// The memory access of a load, a store or an atomic.
#[derive(Clone, Debug)]
pub(super) struct Access {
    pub(super) kind: AccessKind,
    /// The word of the scratch that holds the address; the next word holds the length.
    pub(super) word: usize,
    /// The pointer's name; empty if the pointer was made from an address.
    pub(super) parameter: Name,
    pub(super) loc: Loc,
    pub(super) extents: Vec<usize>,
    pub(super) dtype: Dtype,
    pub(super) offsets: Offsets,
    pub(super) mask: Mask,
    /// The tile that a load writes and a store reads.
    pub(super) data: Slot,
    pub(super) other: Other,
    /// The slot of the view, if the access has one. Its address is that of the tensor if every element is active, inside and contiguous,
    /// and otherwise that of `data`.
    pub(super) view: Option<Slot>,
    /// The number of the access among all accesses, in the order of the kernel's text.
    pub(super) number: u32,
}

/// An atomic. The data of its access is the tile of old values.
#[derive(Clone, Debug)]
pub(super) struct Atomic {
    pub(super) access: Access,
    pub(super) op: AtomicOp,
    pub(super) sem: Semantics,
    /// The operands. Missing ones repeat the data and are not read.
    pub(super) operands: [Slot; 2],
}

/// A walk over the elements of a tile: the element at an index is `first + sum of strides[axis] * index[axis]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Walk {
    pub(super) first: usize,
    pub(super) strides: Vec<isize>,
}

impl Walk {
    /// The row-major walk over a tile of these extents.
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
    /// An elementwise op. `strides[0]` is the stride of the result in bytes, `strides[1..]` are those of the operands, 0 for uniform ones.
    Lanes {
        lanes: Lanes,
        count: usize,
        result: Slot,
        operands: [Slot; 3],
        strides: [u32; 4],
        chunked: bool,
    },
    /// Sets `count` elements of `width` bytes to the element at `from`.
    Fill {
        to: Slot,
        from: Slot,
        width: usize,
        count: usize,
    },
    /// Copies bytes.
    Copy {
        to: Slot,
        from: Slot,
        bytes: usize,
    },
    /// Copies elements of `width` bytes from the positions of one walk over `extents` to those of the other.
    Rearrange {
        to: Slot,
        to_walk: Walk,
        from: Slot,
        from_walk: Walk,
        width: usize,
        extents: Vec<usize>,
    },
    /// Computes the elements of an `i64` tile from its form.
    Index {
        to: Slot,
        affine: Affine,
        extents: Vec<usize>,
    },
    /// Computes the elements of a `bool` tile from its form.
    Conditions {
        to: Slot,
        conditions: Vec<Condition>,
        extents: Vec<usize>,
    },
    Load(Box<Access>),
    /// Sets the view of the store that follows the next op, so that this op writes to the tensor directly.
    Aim(Box<Access>),
    Store(Box<Access>),
    /// Ends a checked run if the `bool` is false.
    Assert {
        cond: Slot,
        message: Name,
        loc: Loc,
    },
    Atomic(Box<Atomic>),
    /// A data-dependent op.
    Lookup {
        to: Slot,
        from: Slot,
        lookup: Box<Lookup>,
    },
    /// Adds matrix products, whose extents are `[batch, m, n, k]`. The elements of all tiles have the type of the sums.
    Dot {
        to: Slot,
        a: Slot,
        b: Slot,
        extents: [usize; 4],
        sums: Sums,
    },
    Jump(Label),
    /// Jumps if the `bool` is false.
    JumpUnless(Slot, Label),
    /// Sets the index to `lower`, or jumps to `exit` if there is no iteration.
    ForBegin {
        index: Slot,
        lower: Slot,
        upper: Slot,
        step: Slot,
        dtype: Dtype,
        exit: Label,
    },
    /// Advances the index and jumps to the body if there is another iteration.
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
    /// The number of argument words.
    pub(super) words: usize,
    /// The initial content of the scratch: argument words, program index and grid (3 words each), scalars, constants.
    pub(super) constants: Vec<u8>,
    pub(super) scratch_bytes: usize,
    pub(super) file_names: Vec<Name>,
    /// Computes the conflicting accesses of each launch.
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
    /// The coefficient of the innermost axis; 0 for a scalar.
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
    /// Calls `f` with every slot that the instruction reads or writes.
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
            Instr::Dot { to, a, b, .. } => [to, a, b].into_iter().for_each(f),
            Instr::JumpUnless(condition, _) | Instr::Assert { cond: condition, .. } => f(condition),
            Instr::ForBegin { index, lower, upper, step, .. } => [index, lower, upper, step].into_iter().for_each(f),
            Instr::ForNext { index, upper, step, .. } => [index, upper, step].into_iter().for_each(f),
            Instr::Jump(_) | Instr::Return => {}
        }
    }
}
