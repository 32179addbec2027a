//! Index sinking: copies cheap tiles into the regions that use them: constants, `arange`s, broadcasts of scalars, sums of those,
//! and the masks of branches.
//!
//! ```text
//! ; before
//! kernel @k(%y: ptr_mut<f32>, %v: tile<f32, [64]>, %on: bool) {
//!     %0 = arange {start = 0, end = 64} : tile<i64, [64]>
//!     if %on () {
//!         store %y, %0, %v
//!         yield
//!     } () {
//!         yield
//!     }
//!     return
//! }
//! ; after
//! kernel @k(%y: ptr_mut<f32>, %v: tile<f32, [64]>, %on: bool) {
//!     %0 = arange {start = 0, end = 64} : tile<i64, [64]>
//!     if %on () {
//!         %1 = arange {start = 0, end = 64} : tile<i64, [64]>
//!         store %y, %1, %v
//!         yield
//!     } () {
//!         yield
//!     }
//!     return
//! }
//! ```
//!
//! Such a tile costs at most one instruction in any region, but it has only one layout. Shared between regions, it would tie their layouts
//! together, although the branch for full tiles requires another layout than the guarded one. For the same reason each op that uses an
//! index gets its own copy: the rows and the columns of a matrix may both begin as `arange(0, 64)`, but different threads hold them.
//!
//! A mask that compares an index with a number is copied into branches. A thread has seven predicate registers, so a guarded path whose masks are
//! computed in front of a loop takes them from the path for full tiles, which needs none. Where the index is known to be small, the copy compares
//! positions in 32 bits.
//!
//! The pass runs last before layout assignment, because [`super::cse`] and [`super::licm`] would undo it.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::affine::AffineFacts;
use crate::analysis::masks::Comparison;
use crate::analysis::polynomial::{Polynomial, Product};
use crate::dtype::Dtype;
use crate::ir::rewrite::Changed;
use crate::ir::{BinaryOp, Builder, CompareOp, Def, Function, Inst, Op, Region, SideTable, Value, postorder};
use crate::location::Loc;

/// A tile that is computed from more tiles is not copied.
const MOST_PARTS: usize = 128;
/// The pass copies at most this many ops, or as many as the kernel has if that is more. A tile that is not copied has a layout that all its
/// users share.
const FEW_COPIES: usize = 4096;

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let mut facts = AffineFacts::new();
    let count = func.all_insts().len();
    let mut sizes = Sizes { large: SideTable::new(), copies_left: FEW_COPIES.max(count) };
    let mut home: SideTable<Value, Option<Region>> = SideTable::new();
    let regions = func.regions_under(func.body);
    let mut branches: FxHashSet<Region> = FxHashSet::default();
    for region in &regions {
        for inst in &func.region(*region).insts {
            let data = func.inst(*inst);
            data.results.iter().for_each(|result| home[*result] = Some(*region));
            if let Op::If { then_region, else_region, .. } = data.op {
                branches.extend([then_region, else_region]);
            }
        }
    }
    let mut changed = false;
    for region in regions {
        let (copies, owner) = (SideTable::new(), SideTable::new());
        let (facts, home, sizes) = (&mut facts, &mut home, &mut sizes);
        let is_branch = branches.contains(&region);
        let mut cx = Cx { func, facts, home, sizes, region, is_branch, copies, owner, out: Vec::new(), changed: false };
        for inst in cx.func.region(region).insts.clone() {
            let user = &cx.func.inst(inst).op;
            let mut takes_tiles = false;
            user.for_each_operand(&mut |value| takes_tiles |= cx.func.ty(value).is_tile());
            // A value that a region yields keeps its layout, because it becomes a value of the surrounding region.
            if takes_tiles && !user.is_terminator() {
                let user = user.clone();
                let is_index = cx.func.inst(inst).results.clone().into_iter().any(|result| cx.is_index(result));
                let (mut op, mut own) = (user.clone(), FxHashMap::default());
                op.map_operands(&mut |value| {
                    if !is_index && cx.is_owned(&user, value) { cx.own(inst, value, &mut own) } else { cx.here(value) }
                });
                cx.func.inst_mut(inst).op = op;
            }
            cx.out.push(inst);
        }
        changed |= cx.changed;
        let out = std::mem::take(&mut cx.out);
        *func.insts_mut(region) = out;
    }
    changed
}

/// Is it a sum of few products of constants with numbers of programs, which are at least 0 and less than 2^60?
fn is_small(func: &Function, number: &Polynomial) -> bool {
    let is_number = |value: &Value| matches!(func.def_op(*value), Some(Op::ProgramId { .. } | Op::NumPrograms { .. }));
    let is_small = |(factors, coefficient): &(Product, i64)| {
        matches!(&factors[..], [factor] if is_number(factor)) && (0..1 << 26).contains(coefficient)
    };
    number.terms.len() <= 4 && number.terms.iter().all(is_small) && (0..1 << 58).contains(&number.constant)
}

struct Cx<'a> {
    func: &'a mut Function,
    facts: &'a mut AffineFacts,
    home: &'a mut SideTable<Value, Option<Region>>,
    sizes: &'a mut Sizes,
    region: Region,
    /// Is it a branch of an `if`?
    is_branch: bool,
    /// Copies that the whole region uses.
    copies: SideTable<Value, Option<Value>>,
    /// For each index and each tile that it is computed from: the only op that uses it.
    owner: SideTable<Value, Option<Inst>>,
    out: Vec<Inst>,
    changed: bool,
}

/// Which cheap tiles are small enough to copy.
struct Sizes {
    /// Tiles that are computed from more than [`MOST_PARTS`] others.
    large: SideTable<Value, bool>,
    /// How many more ops may be copied.
    copies_left: usize,
}

impl Cx<'_> {
    /// The value, or its copy in this region if it is cheap and another region computes it.
    fn here(&mut self, value: Value) -> Value {
        if let Some(copy) = self.copies[value] {
            return copy;
        }
        if !self.is_foreign(value) || self.parts(value).is_none_or(|parts| parts.len() > self.sizes.copies_left) {
            return value;
        }
        let enter = |cx: &mut Self, value: Value, before: &mut Vec<Value>| {
            let is_new = cx.copies[value].is_none() && cx.is_foreign(value);
            if is_new && let Some(op) = cx.func.def_op(value) {
                op.for_each_operand(&mut |operand| before.push(operand));
            }
            is_new
        };
        let leave = |cx: &mut Self, value: Value| {
            let copy = cx.positions_mask(value);
            let copy = copy.unwrap_or_else(|| cx.copy(value, |cx, operand| cx.copies[operand].unwrap_or(operand)));
            cx.copies[value] = Some(copy);
        };
        postorder(self, value, enter, leave);
        self.copies[value].unwrap_or(value)
    }

    /// A copy of a mask `start + position < limit` that compares positions, which fit in 32 bits, if the start is known to be small: the number of a
    /// program times a constant. The sum is then not negative, and a limit below 0 excludes as many elements as 0.
    fn positions_mask(&mut self, value: Value) -> Option<Value> {
        let op = self.func.def_op(value).cloned().filter(|op| matches!(op, Op::Compare { .. }))?;
        let Comparison { op: CompareOp::Lt, index, extents, limit, .. } = Comparison::of(self.func, self.facts, &op)? else { return None };
        index.maximum_offset(&extents)?;
        if index.start.as_constant().is_some() || !is_small(self.func, &index.start) {
            return None;
        }
        let (shape, scratch) = (self.func.ty(value).shape().to_vec(), self.func.add_region());
        let b = &mut Builder::new(self.func, scratch, Loc::NONE);
        let (start, limit, zero) = (index.uniform_value(b), limit.value(b), b.index(0));
        let limit = b.binary(BinaryOp::Max, limit, zero);
        let distance = b.binary(BinaryOp::Sub, limit, start);
        let (positions, distance) = (index.strides_value(b, &shape), b.broadcast(distance, &shape));
        let mask = b.compare(CompareOp::Lt, positions, distance);
        self.out.append(self.func.insts_mut(scratch));
        Some(mask)
    }

    /// Is it a cheap tile that another region computes?
    fn is_foreign(&mut self, value: Value) -> bool {
        let is_computed = matches!(self.func.def(value), Def::Result(..));
        is_computed && self.home[value] != Some(self.region) && self.func.ty(value).is_tile() && self.is_cheap(value)
    }

    /// The index, or a copy if ops other than `user` use it. `own` holds the copies that `user` has.
    fn own(&mut self, user: Inst, value: Value, own: &mut FxHashMap<Value, Value>) -> Value {
        let Some(parts) = self.parts(value) else { return value };
        let is_free = |part: &Value| self.home[*part] == Some(self.region) && self.owner[*part].is_none_or(|owner| owner == user);
        if parts.iter().all(is_free) {
            parts.into_iter().for_each(|part| self.owner[part] = Some(user));
            return value;
        }
        if parts.len() > self.sizes.copies_left {
            return value;
        }
        // Each part comes before the tiles that are computed from it.
        for part in parts {
            if !own.contains_key(&part) && matches!(self.func.def(part), Def::Result(..)) {
                let copy = self.copy(part, |_, operand| own.get(&operand).copied().unwrap_or(operand));
                self.home[copy] = Some(self.region);
                self.owner[copy] = Some(user);
                own.insert(part, copy);
            }
        }
        own.get(&value).copied().unwrap_or(value)
    }

    fn copy(&mut self, value: Value, operand: impl Fn(&Self, Value) -> Value) -> Value {
        let Def::Result(inst, _) = self.func.def(value) else { return value };
        let data = self.func.inst(inst).clone();
        let mut op = data.op;
        op.map_operands(&mut |value| operand(self, value));
        let ty = self.func.ty(value).clone();
        let copy = self.func.make_inst(op, [ty], data.loc);
        self.out.push(copy);
        self.changed = true;
        self.sizes.copies_left = self.sizes.copies_left.saturating_sub(1);
        self.func.result(copy)
    }

    /// The tiles that a cheap tile is computed from, and the tile itself as the last one. `None` if these are too many to copy.
    fn parts(&mut self, value: Value) -> Option<Vec<Value>> {
        let func = &*self.func;
        let (mut parts, mut entered): (Vec<Value>, FxHashSet<Value>) = (Vec::new(), FxHashSet::default());
        let large = &mut self.sizes.large;
        let mut is_large = false;
        let enter = |_: &mut Vec<Value>, value: Value, before: &mut Vec<Value>| {
            is_large |= large[value] || entered.len() > MOST_PARTS;
            let is_new = !is_large && func.ty(value).is_tile() && entered.insert(value);
            if is_new && let Some(op) = func.def_op(value) {
                op.for_each_operand(&mut |operand| before.push(operand));
            }
            is_new
        };
        postorder(&mut parts, value, enter, Vec::push);
        if is_large {
            // A tile that is computed from this one is then large, too.
            large[value] = true;
        }
        (!is_large).then_some(parts)
    }

    /// Is the value a cheap tile of indices?
    fn is_index(&mut self, value: Value) -> bool {
        self.func.ty(value).is_tile()
            && self.func.ty(value).dtype() == Dtype::I64
            && self.is_cheap(value)
            && self.facts.get(self.func, value).is_some()
    }

    /// Does an op need its own copy of an operand? A cheap tile of indices is copied. A tile whose elements are all equal is copied only for
    /// comparisons: many comparisons often use one such tile, which would tie their layouts together.
    fn is_owned(&mut self, op: &Op, value: Value) -> bool {
        let is_compare = matches!(op, Op::Compare { .. });
        self.is_index(value) && (is_compare || self.facts.get(self.func, value).is_some_and(|index| !index.is_uniform()))
    }

    fn is_cheap(&mut self, value: Value) -> bool {
        match self.func.def_op(value) {
            Some(Op::Const { .. } | Op::Arange { .. }) => true,
            Some(op @ Op::Compare { .. }) => self.is_branch && Comparison::of(self.func, self.facts, op).is_some(),
            Some(Op::Broadcast { x }) => self.func.ty(*x).is_scalar() || self.facts.get(self.func, value).is_some(),
            Some(
                Op::ExpandDims { .. } | Op::Reshape { .. } | Op::Permute { .. } | Op::Flip { .. } | Op::Unary { .. } | Op::Binary { .. },
            ) => self.facts.get(self.func, value).is_some(),
            _ => false,
        }
    }
}
