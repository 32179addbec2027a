//! Slicing of guarded tiles: a loop processes a guarded tile in slices, which makes code that rarely runs shorter.
//!
//! ```text
//! ; before
//! kernel @k(%y: ptr_mut<i64>, %full: bool) {
//!     %0 = arange {start = 0, end = 1024} : tile<i64, [1024]>
//!     if %full () {
//!         store %y, %0, %0 {in_bounds = true, align = 16}
//!         yield
//!     } () {
//!         store %y, %0, %0
//!         yield
//!     }
//!     return
//! }
//! ; after
//! kernel @k(%y: ptr_mut<i64>, %full: bool) {
//!     %0 = arange {start = 0, end = 1024} : tile<i64, [1024]>
//!     if %full () {
//!         store %y, %0, %0 {in_bounds = true, align = 16}
//!         yield
//!     } () {
//!         %1 = const {value = 0} : i64
//!         %2 = const {value = 1024} : i64
//!         %3 = const {value = 512} : i64
//!         for %1, %2, %3 (%4: i64) {
//!             %5 = arange {start = 0, end = 512} : tile<i64, [512]>
//!             %6 = broadcast %4 : tile<i64, [512]>
//!             %7 = add %6, %5 : tile<i64, [512]>
//!             store %y, %7, %7
//!             yield
//!         }
//!         yield
//!     }
//!     return
//! }
//! ```
//!
//! A guard costs several instructions per element. Without slices, the guarded copy of [`super::split_full_tiles`] was most of a kernel's
//! code, and most of the time that the driver takes to compile it at the first launch.
//!
//! Slices lie along the longest axis of the tiles. Tiles without an axis of that extent stay whole: scalars, and the statistics of some rows.
//! They are computed and stored once, in front of the loop. Tiles that are reduced stay whole, too, unless each slice has whole groups
//! (`slice_guarded_tiles/groups.rs`).
//!
//! Ops after the last reduction are sliced if they use more tiles than the reductions do, such as the weights of a norm. Loaded whole, these
//! tiles would double the registers of a thread. Both copies share one register count, so only half as many programs would run at once, in the
//! fast copy, too. The slices compute the parts that they need of earlier tiles again, including their loads. Loads that only they need move
//! behind the reductions.
//!
//! The version for rows that are in bounds but not aligned is sliced like the guarded copy behind its reductions, unless all that it loads there lies at indices
//! of what it reduces. Slices would load the reduced tiles twice.
//!
//! If a full tile has flattened indices, its slower versions are sliced, too, because all versions share the register count. A slice of them has one
//! run for each thread. The fastest version is sliced only if each thread has many loads of one element. The version for ragged tiles has few
//! slices: the last tile of a tensor is often ragged, and the launch ends only after all of its slices, one after the other.
//!
//! Slicing changes the order of accesses: a slice loads after an earlier slice has stored. So either every access that may alias a store uses
//! the same pointer, no two elements have one index, and the index is the same or never equal to that of the store; or there is no other such access.

mod end;
mod groups;

use std::rc::Rc;

use rustc_hash::FxHashSet;

use crate::analysis::affine::{Affine, AffineFacts};
use crate::dtype::Dtype;
use crate::ir::rewrite::Changed;
use crate::ir::{BinaryOp, Builder, ConstExpr, Def, Function, Inst, Op, Region, SideTable, Type, Value, may_alias, postorder};
use crate::location::Loc;

/// The shortest slice: one element for each thread of the usual four warps.
const SHORTEST: usize = 128;
/// The largest number of slices. Beyond it, slices become longer.
const MOST: usize = 8;
/// The elements of a slice for each thread of the usual four warps, unless there are more slices than [`MOST`]. Each slice waits for memory once, and the
/// last program of a launch is often one whose tile is not full: the launch ends only after all of its slices, one after the other.
const GUARDED_ELEMENTS: usize = 4;
/// The same in a loop, where every iteration is guarded if rows are not aligned. With longer slices, the guarded version of a tile of 16 warps needs more
/// registers than the fast one.
const ELEMENTS_IN_LOOPS: usize = 8;
/// The largest number of slices in a loop.
const MOST_IN_LOOPS: usize = 4;
/// The most slices for the ops behind the last reduction of a row. Their loads wait for memory once in each slice, and where rows are not aligned, every program
/// takes them. Slices of several rows stay short: a layer norm would take up to 16 registers more for them, also where its rows are aligned.
const MOST_BEHIND: usize = 4;
/// The most slices of tiles with divided indices: the guarded copy computes these in 64 bits, so that already a few elements of a thread would take more
/// registers than the fast copy.
const MOST_DIVIDED: usize = 32;
/// The same in a loop.
const MOST_DIVIDED_IN_LOOPS: usize = 8;
/// The most elements that a thread of the usual four warps loads one by one at a time, in the fastest version of a full tile, in any other, and in the
/// version for ragged tiles.
const MOST_LOADS: usize = 64;
const FEWEST_LOADS: usize = 8;
const RAGGED_LOADS: usize = 16;
/// The most elements of which such a thread computes the indices at a time, in the version for ragged tiles.
const RAGGED_ELEMENTS: usize = 4;

/// The kind of a region that is sliced.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    /// Each access is guarded.
    Guarded { in_loop: bool },
    /// Guarded, beside a version for tiles in bounds, so that it hardly ever runs.
    Rare,
    /// Of rows in bounds that are not aligned: as frequent as the fast version.
    ByElement,
    /// Of a tile with flattened indices that only masks keep from being full.
    Ragged,
    /// The fastest version of a full tile with flattened indices.
    Fastest,
    /// Another one, also if it is the first of two but selects the elements of runs.
    Slower,
}

impl Version {
    /// The number of slices of a region's tiles, which have so many elements, from the op `first` on.
    fn slices(self, func: &Function, region: Region, first: usize, extent: usize) -> usize {
        let limited = |loads: usize| narrow_loads(func, region) / SHORTEST / loads;
        match self {
            Version::Guarded { in_loop: true } if divides(func, region) => MOST_DIVIDED_IN_LOOPS,
            Version::Guarded { .. } | Version::Rare if divides(func, region) => MOST_DIVIDED,
            Version::Guarded { .. } if first > 0 && !has_rows(func, region) => MOST_BEHIND,
            Version::Rare => MOST,
            Version::Guarded { in_loop: true } => (extent / SHORTEST / ELEMENTS_IN_LOOPS).clamp(1, MOST_IN_LOOPS),
            Version::Guarded { in_loop: false } => (extent / SHORTEST / GUARDED_ELEMENTS).clamp(1, MOST),
            Version::Ragged => limited(RAGGED_LOADS).max(extent / SHORTEST / RAGGED_ELEMENTS).next_power_of_two(),
            Version::ByElement => MOST_BEHIND,
            Version::Fastest => limited(MOST_LOADS).next_power_of_two(),
            Version::Slower => limited(FEWEST_LOADS).next_power_of_two(),
        }
    }
}

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let mut facts = AffineFacts::new();
    let mut changed = false;
    let in_loops = in_loops(func);
    for inst in func.all_insts() {
        let data = func.inst(inst);
        let Op::If { then_region, else_region, rare, .. } = data.op else { continue };
        if !data.results.is_empty() || !rare && !is_full(func, then_region) {
            continue;
        }
        let loc = data.loc;
        // The guarded copy, or two versions of the full one, of which the first is the fastest.
        let regions = match is_full(func, else_region) {
            false => slower(func, else_region, Version::Guarded { in_loop: in_loops.contains(&inst) }),
            true if selects(func, then_region) => vec![(then_region, Version::Slower), (else_region, Version::Slower)],
            true => vec![(then_region, Version::Fastest), (else_region, Version::Slower)],
        };
        for (region, version) in regions {
            let first = behind_reductions(func, region);
            let Some(plan) = plan(func, region, first, &mut facts) else {
                changed |= matches!(version, Version::Guarded { .. } | Version::Rare) && groups::slice(func, region, loc, &mut facts);
                continue;
            };
            if version == Version::ByElement && shares_indices(func, region, first, &plan.late) {
                continue;
            }
            let slices = version.slices(func, region, first, plan.extent);
            let length = SHORTEST.max(plan.extent / slices.min(plan.extent));
            // Any other version than the guarded one has too few slices to prefetch.
            let num_stages = (!matches!(version, Version::Guarded { .. })).then(|| ConstExpr::Int(1).into());
            if length < plan.extent {
                slice(func, region, first, &plan, &Slices { length, num_stages }, loc, &mut facts);
                changed = true;
            }
        }
    }
    changed
}

/// The ops in loops.
fn in_loops(func: &Function) -> FxHashSet<Inst> {
    let mut inside = FxHashSet::default();
    for inst in func.all_insts() {
        if matches!(func.inst(inst).op, Op::For { .. } | Op::While { .. }) && !inside.contains(&inst) {
            func.inst(inst).op.for_each_region(&mut |region| func.for_each_inst(region, &mut |inner| inside.extend([inner])));
        }
    }
    inside
}

/// Are all loads of the ops behind the reductions at indices of other loads? Then they need no addresses and no comparisons of their own, and fit beside the
/// reduced tiles.
fn shares_indices(func: &Function, region: Region, first: usize, late: &FxHashSet<Inst>) -> bool {
    let offset = |inst: &Inst| if let Op::Load { offset, .. } = func.inst(*inst).op { Some(offset) } else { None };
    let (front, behind) = func.region(region).insts.split_at(first);
    let (late, early): (Vec<Inst>, Vec<Inst>) = front.iter().partition(|inst| late.contains(inst));
    let known: FxHashSet<Value> = early.iter().filter_map(offset).collect();
    late.iter().chain(behind).filter_map(offset).all(|offset| known.contains(&offset))
}

/// Does a region have tiles of several axes?
fn has_rows(func: &Function, region: Region) -> bool {
    let mut results = func.region(region).insts.iter().flat_map(|inst| &func.inst(*inst).results);
    results.any(|result| func.ty(*result).extents().len() > 1)
}

/// Does a region divide indices?
fn divides(func: &Function, region: Region) -> bool {
    func.region(region).insts.iter().any(|inst| match func.inst(*inst).op {
        Op::Binary { op: BinaryOp::Div | BinaryOp::Rem, lhs, .. } => func.ty(lhs).is_tile() && func.ty(lhs).dtype() == Dtype::I64,
        _ => false,
    })
}

/// Does a region select one of two elements of a run for each element? This is the version for divisors that are only long.
fn selects(func: &Function, region: Region) -> bool {
    let is_of_run = |value: Value| matches!(func.def_op(value), Some(Op::Broadcast { x }) if func.ty(*x).is_tile());
    func.region(region).insts.iter().any(|inst| match func.inst(*inst).op {
        Op::Select { on_true, on_false, .. } => is_of_run(on_true) && is_of_run(on_false),
        _ => false,
    })
}

/// The number of elements that a region loads one by one.
fn narrow_loads(func: &Function, region: Region) -> usize {
    let counts = func.region(region).insts.iter().map(|inst| match func.inst(*inst).op {
        Op::Load { offset, align: 0, .. } => func.ty(offset).extents().iter().product(),
        _ => 0,
    });
    counts.sum()
}

/// Is the region a copy that needs no guards? The copy with flattened indices has several versions.
fn is_full(func: &Function, region: Region) -> bool {
    func.region(region).insts.iter().any(|inst| match func.inst(*inst).op {
        Op::Load { in_bounds, .. } | Op::Store { in_bounds, .. } => in_bounds,
        Op::If { then_region, else_region, .. } => is_full(func, then_region) && is_full(func, else_region),
        _ => false,
    })
}

/// The copy that is guarded: the region, or the part of it that runs for tiles that are not empty, or beside a version for ragged tiles.
fn slower(func: &Function, region: Region, guarded: Version) -> Vec<(Region, Version)> {
    if let [.., test, _] = *func.region(region).insts
        && let Op::If { then_region, else_region, rare, .. } = func.inst(test).op
        && func.inst(test).results.is_empty()
    {
        if func.region(else_region).insts.len() == 1 {
            return vec![(then_region, guarded)];
        }
        if is_full(func, then_region) {
            return if rare {
                vec![(then_region, Version::ByElement), (else_region, Version::Rare)]
            } else {
                vec![(then_region, Version::Ragged), (else_region, guarded)]
            };
        }
    }
    vec![(region, guarded)]
}

/// The position of the first op after the last reduction.
fn behind_reductions(func: &Function, region: Region) -> usize {
    let insts = &func.region(region).insts;
    insts.iter().rposition(|inst| matches!(func.inst(*inst).op, Op::Reduce { .. } | Op::Scan { .. })).map_or(0, |last| last + 1)
}

/// The slices of a region.
struct Slices {
    length: usize,
    num_stages: Option<Box<ConstExpr>>,
}

/// How to slice a region.
struct Plan {
    /// The extent of the axis along which the slices lie.
    extent: usize,
    /// The ops in front of the first sliced op that only sliced ops need.
    late: FxHashSet<Inst>,
}

/// The axis of a tile along which it is sliced. `None` if it stays whole.
fn sliced_axis(func: &Function, value: Value, extent: usize) -> Option<usize> {
    let ty = func.ty(value);
    ty.is_tile().then(|| ty.extents().iter().position(|other| *other == extent)).flatten()
}

/// How to slice the region's ops from the op `first` on, if they can be sliced.
fn plan(func: &Function, region: Region, first: usize, facts: &mut AffineFacts) -> Option<Plan> {
    let insts = &func.region(region).insts;
    let (front, behind) = insts.split_at(first);
    let behind = &behind[..behind.len() - 1];
    let results = behind.iter().flat_map(|inst| &func.inst(*inst).results).filter(|result| func.ty(**result).is_tile());
    let stored = behind.iter().filter_map(|inst| match &func.inst(*inst).op {
        Op::Store { offset, .. } if func.ty(*offset).is_tile() => Some(offset),
        _ => None,
    });
    let extent = results.chain(stored).flat_map(|value| func.ty(*value).extents()).max().filter(|extent| *extent >= 2 * SHORTEST)?;
    let is_sliced = |value: Value| sliced_axis(func, value, extent).is_some();

    let late = late(func, front, &is_sliced);
    let is_tile_load = |inst: &Inst| matches!(&func.inst(*inst).op, Op::Load { offset, .. } if is_sliced(*offset));
    if first > 0 && !behind.iter().chain(&late).any(is_tile_load) {
        return None;
    }
    let mut inside: SideTable<Value, bool> = SideTable::new();
    let mut rebuildable = Rebuildable { func, is_sliced: &is_sliced, in_front: front.iter().copied().collect(), known: SideTable::new() };
    // Each access once, because many are equal.
    let mut accesses: FxHashSet<(Value, Option<Rc<Affine>>, bool)> = FxHashSet::default();
    let mut whole_stores: FxHashSet<Value> = FxHashSet::default();
    for inst in behind {
        let data = func.inst(*inst);
        let mut values = data.results.clone();
        data.op.for_each_operand(&mut |value| values.push(value));
        values.retain(|value| is_sliced(*value));
        match &data.op {
            Op::Load { base, offset, volatile: false, .. } if is_sliced(*offset) => {
                accesses.insert((*base, facts.get(func, *offset), false));
            }
            Op::Store { base, offset, .. } if is_sliced(*offset) => {
                accesses.insert((*base, facts.get(func, *offset), true));
            }
            // A whole tile is stored in front of the loop. It is loaded there only from a tensor that the kernel does not write.
            Op::Store { base, .. } if values.is_empty() => {
                whole_stores.insert(*base);
            }
            Op::Load { base, volatile: false, .. } if values.is_empty() && is_constant(func, *base) => {}
            op if op.is_pure() && (values.is_empty() || is_slice_by_slice(op)) => {}
            _ => return None,
        }
        data.results.iter().for_each(|result| inside[*result] = true);
        for value in values {
            let is_clear = func.ty(value).extents().iter().filter(|other| **other >= extent).count() == 1;
            if !is_clear || !(inside[value] || rebuildable.is(value)) {
                return None;
            }
        }
    }
    let in_order = accesses.iter().filter(|(.., is_store)| *is_store).all(|store @ (stored, at, _)| {
        let mut others = accesses.iter().filter(|access| *access != store && may_alias(func, access.0, *stored));
        match at.as_ref().map(|at| &at.strides[..]) {
            // No two elements have one index.
            Some([stride]) if stride.as_constant().is_some_and(|stride| stride != 0) => {
                let is_apart =
                    |other: &Option<Rc<Affine>>| at.as_ref().zip(other.as_ref()).is_some_and(|(at, other)| at.is_apart_from(other));
                others.all(|(base, other, _)| base == stored && (other == at || is_apart(other)))
            }
            // Rows may overlap if their stride is an argument. Which of two elements with one index is stored is not specified.
            Some([_, _, ..]) => others.next().is_none(),
            _ => false,
        }
    });
    let is_apart = whole_stores.iter().all(|whole| accesses.iter().all(|(base, ..)| !may_alias(func, *base, *whole)));
    (in_order && is_apart).then_some(Plan { extent, late })
}

/// Does a slice of the operands determine a slice of the result?
fn is_slice_by_slice(op: &Op) -> bool {
    matches!(op, Op::ExpandDims { .. }) || !op.looks_across()
}

/// The ops in front that compute only sliced tiles, and which nothing in front needs that stays.
fn late(func: &Function, front: &[Inst], is_sliced: &dyn Fn(Value) -> bool) -> FxHashSet<Inst> {
    let mut late = FxHashSet::default();
    let mut needed: SideTable<Value, bool> = SideTable::new();
    for inst in front.iter().rev() {
        let data = func.inst(*inst);
        let can_move = match &data.op {
            Op::Load { base, volatile: false, .. } => is_constant(func, *base),
            op => op.is_pure(),
        };
        if can_move && data.results.iter().all(|result| is_sliced(*result) && !needed[*result]) {
            late.insert(*inst);
            continue;
        }
        let mut need = |op: &Op| op.for_each_operand(&mut |value| needed[value] = true);
        need(&data.op);
        data.op.for_each_region(&mut |region| func.for_each_inst(region, &mut |inner| need(&func.inst(inner).op)));
    }
    late
}

fn is_constant(func: &Function, base: Value) -> bool {
    matches!(func.ty(base), Type::Pointer { mutable: false, .. })
}

/// Finds tiles whose slices can be computed again from scalars, and from what the ops in front load from tensors that no program writes.
struct Rebuildable<'f> {
    func: &'f Function,
    is_sliced: &'f dyn Fn(Value) -> bool,
    in_front: FxHashSet<Inst>,
    known: SideTable<Value, Option<bool>>,
}

impl Rebuildable<'_> {
    fn is(&mut self, value: Value) -> bool {
        let func = self.func;
        let enter = |cx: &mut Self, value: Value, before: &mut Vec<Value>| {
            let is_new = cx.known[value].is_none();
            if is_new && let Some(op) = rebuilding_op(func, value) {
                op.for_each_operand(&mut |operand| before.extend((cx.is_sliced)(operand).then_some(operand)));
            }
            is_new
        };
        let leave = |cx: &mut Self, value: Value| {
            let is = cx.is_by_operands(value);
            cx.known[value] = Some(is);
        };
        postorder(self, value, enter, leave);
        self.known[value] == Some(true)
    }

    fn is_by_operands(&self, value: Value) -> bool {
        let func = self.func;
        let Some(op) = rebuilding_op(func, value) else {
            return match func.def_op(value) {
                Some(Op::Const { .. } | Op::Arange { .. }) => true,
                Some(Op::Broadcast { x }) => !(self.is_sliced)(*x),
                _ => false,
            };
        };
        let mut all = match (op, func.def(value)) {
            (Op::Load { base, .. }, Def::Result(inst, _)) => is_constant(func, *base) && self.in_front.contains(&inst),
            _ => true,
        };
        op.for_each_operand(&mut |operand| all &= !(self.is_sliced)(operand) || self.known[operand] == Some(true));
        all
    }
}

/// The op that computes a tile from other tiles slice by slice, or the load of the tile, if there is one.
fn rebuilding_op(func: &Function, value: Value) -> Option<&Op> {
    func.def_op(value).filter(|op| {
        matches!(op, Op::Broadcast { x } if func.ty(*x).is_tile())
            || matches!(
                op,
                Op::ExpandDims { .. }
                    | Op::Unary { .. }
                    | Op::Binary { .. }
                    | Op::Compare { .. }
                    | Op::Select { .. }
                    | Op::Fma { .. }
                    | Op::Cast { .. }
                    | Op::Bitcast { .. }
                    | Op::Load { volatile: false, .. }
            )
    })
}

fn slice(func: &mut Function, region: Region, first_op: usize, plan: &Plan, slices: &Slices, loc: Loc, facts: &mut AffineFacts) {
    let (extent, length) = (plan.extent, slices.length);
    let mut whole = func.region(region).insts.clone();
    let insts = whole.split_off(first_op);
    whole.retain(|inst| !plan.late.contains(inst));
    let body = func.add_region();
    let first = func.add_region_param(body, Type::scalar(Dtype::I64));
    let mut cx = Slicer { body, first, extent, length: ConstExpr::Int(length as i128), map: SideTable::new() };
    let sliced: Vec<Inst> = insts.iter().copied().filter(|inst| is_sliced_store(func, *inst, extent)).collect();
    let ends = end::find(func, &sliced, &|value| sliced_axis(func, value, extent), facts);
    // Whole tiles are computed once, in front of the loop.
    let mut out = whole;
    for inst in &insts[..insts.len() - 1] {
        let data = func.inst(*inst);
        let mut values = data.results.clone();
        data.op.for_each_operand(&mut |value| values.push(value));
        if values.into_iter().any(|value| cx.axis(func, value).is_some()) {
            cx.copy(func, *inst);
        } else {
            out.push(*inst);
        }
    }
    Builder::new(func, body, loc).yield_values(Vec::new());
    let scratch = func.add_region();
    let b = &mut Builder::new(func, scratch, loc);
    let lower = b.index(0);
    let upper = match ends {
        Some(ends) => end::positions(b, &ends),
        None => b.index(extent as i128),
    };
    let step = b.index(length as i128);
    func.append(
        scratch,
        Op::For {
            lower,
            upper,
            step,
            init: Vec::new(),
            body,
            num_stages: slices.num_stages.clone(),
            unroll: None,
            remainder: false,
            guarded: false,
        },
        [],
        loc,
    );
    out.append(func.insts_mut(scratch));
    out.push(insts[insts.len() - 1]);
    *func.insts_mut(region) = out;
}

/// Is it a store of a tile that is sliced?
fn is_sliced_store(func: &Function, inst: Inst, extent: usize) -> bool {
    matches!(func.inst(inst).op, Op::Store { offset, .. } if sliced_axis(func, offset, extent).is_some())
}

struct Slicer {
    body: Region,
    /// The index of the slice's first element in the tile.
    first: Value,
    extent: usize,
    length: ConstExpr,
    /// The slice of each tile.
    map: SideTable<Value, Option<Value>>,
}

impl Slicer {
    /// The axis of a tile along which it is sliced.
    fn axis(&self, func: &Function, value: Value) -> Option<usize> {
        sliced_axis(func, value, self.extent)
    }

    fn slice_type(&self, func: &Function, value: Value) -> Type {
        let ty = func.ty(value);
        let mut shape = ty.shape().to_vec();
        if let Some(axis) = self.axis(func, value) {
            shape[axis] = self.length.clone();
        }
        Type::tile(ty.elem().clone(), shape)
    }

    /// Computes the slices of a tile and of all tiles that it depends on.
    fn make(&mut self, func: &mut Function, value: Value) {
        let enter = |(cx, func): &mut (&mut Self, &mut Function), value: Value, before: &mut Vec<Value>| {
            let is_new = cx.axis(func, value).is_some() && cx.map[value].is_none();
            if is_new && let Some(op) = func.def_op(value) {
                op.for_each_operand(&mut |operand| before.push(operand));
            }
            is_new
        };
        let leave = |(cx, func): &mut (&mut Self, &mut Function), value: Value| {
            if let Def::Result(inst, _) = func.def(value) {
                cx.copy(func, inst);
            }
        };
        postorder(&mut (self, func), value, enter, leave);
    }

    /// Copies an op for a slice. Slices of its operands that do not exist yet are computed first.
    fn copy(&mut self, func: &mut Function, inst: Inst) {
        let data = func.inst(inst).clone();
        if let Op::Arange { start, .. } = &data.op {
            return self.arange(func, start.as_int().unwrap_or(0), data.results[0], data.loc);
        }
        let mut op = data.op;
        let mut operands = Vec::new();
        op.for_each_operand(&mut |value| operands.extend((self.axis(func, value).is_some() && self.map[value].is_none()).then_some(value)));
        for value in operands {
            self.make(func, value);
        }
        op.map_operands(&mut |value| self.map[value].unwrap_or(value));
        let types: Vec<Type> = data.results.iter().map(|result| self.slice_type(func, *result)).collect();
        let copy = func.append(self.body, op, types, data.loc);
        for (old, new) in data.results.into_iter().zip(func.inst(copy).results.clone()) {
            self.map[old] = Some(new);
        }
    }

    fn arange(&mut self, func: &mut Function, start: i128, result: Value, loc: Loc) {
        let end = start + self.length.as_int().unwrap_or(0);
        let b = &mut Builder::new(func, self.body, loc);
        let lanes = b.op(Op::Arange { start: ConstExpr::Int(start), end: ConstExpr::Int(end) }, &[]);
        let first = b.broadcast(self.first, std::slice::from_ref(&self.length));
        self.map[result] = Some(b.binary(BinaryOp::Add, first, lanes));
    }
}
