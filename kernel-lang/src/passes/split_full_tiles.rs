//! Decides once per tile, not per element, whether a tile needs its masks.
//!
//! ```text
//! ; before
//! ; then canonicalize, cse, dce
//! kernel @k(%y: ptr_mut<f32>, %start: i64, %n: i64, %v: f32) {
//!     %0 = arange {start = 0, end = 64} : tile<i64, [64]>
//!     %1 = broadcast %start : tile<i64, [64]>
//!     %2 = add %1, %0 : tile<i64, [64]>
//!     %3 = broadcast %n : tile<i64, [64]>
//!     %4 = lt %2, %3 : tile<bool, [64]>
//!     %5 = broadcast %v : tile<f32, [64]>
//!     store %y, %2, %5 {mask = %4}
//!     return
//! }
//! ; after
//! kernel @k(%y: ptr_mut<f32>, %start: i64, %n: i64, %v: f32) {
//!     %0 = arange {start = 0, end = 64} : tile<i64, [64]>
//!     %1 = broadcast %start : tile<i64, [64]>
//!     %2 = add %1, %0 : tile<i64, [64]>
//!     %3 = broadcast %n : tile<i64, [64]>
//!     %4 = lt %2, %3 : tile<bool, [64]>
//!     %5 = broadcast %v : tile<f32, [64]>
//!     %6 = const {value = 0} : i64
//!     %7 = ge %start, %6 : bool
//!     %8 = length %y : i64
//!     %9 = const {value = 63} : i64
//!     %10 = sub %8, %9 : i64
//!     %11 = lt %start, %10 : bool
//!     %12 = lt %start, %n : bool
//!     %13 = sub %n, %start : i64
//!     %14 = gt %13, %9 : bool
//!     %15 = const {value = 4} : i64
//!     %16 = mul %start, %15 : i64
//!     %17 = address %y : i64
//!     %18 = add %17, %16 : i64
//!     %19 = const {value = 15} : i64
//!     %20 = and %18, %19 : i64
//!     %21 = eq %20, %6 : bool
//!     %22 = and %7, %11 : bool
//!     %23 = and %22, %12 : bool
//!     %24 = and %23, %14 : bool
//!     %25 = and %24, %21 : bool
//!     if %25 () {
//!         store %y, %2, %5 {in_bounds = true, align = 16}
//!         yield
//!     } () {
//!         store %y, %2, %5 {mask = %4}
//!         yield
//!     }
//!     return
//! }
//! ```
//!
//! Most tiles are full: they run without masks, with wide accesses; the last one of a tensor, tiles of unaligned slices and tiles that
//! would leave their tensor take the other branch, where [`super::guard_accesses`] guards every lane.
//!
//! What the condition asks about must be known in front of the branch. Where a stretch first reads scalars, the length of a tensor or its address,
//! these are read in front, too.
//!
//! A mask that is the same for every program, `columns < n` of a row's kernel, would make no tile full, or all: it stays, and the condition asks
//! that `n` is a whole number of wide accesses, so that each of them is masked as one. A mask of which nothing is known, such as one that was
//! loaded, stays as well, and accesses are wide along the axes that it has not.
//!
//! The condition never says "full" wrongly, whatever the numbers are: each part compares without overflow, or overflows to false.

use std::collections::{HashMap, HashSet};

use crate::analysis::affine::{Affine, AffineFacts};
use crate::analysis::bounds::{self, Bound, End};
use crate::analysis::conjuncts;
use crate::analysis::polynomial::Polynomial;
use crate::dtype::Dtype;
use crate::ir::rewrite::{Changed, Substitution, copy_insts};
use crate::ir::{Access, BinaryOp, Builder, CompareOp, ConstExpr, Def, Function, Inst, Op, Region, SideTable, Type, Value};
use crate::location::Loc;

/// The widest access of one thread, in bytes.
pub(super) const WIDEST: i64 = 16;
/// Longer stretches of ops are not doubled.
const MAX_OPS: usize = 4000;

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let mut facts = AffineFacts::new();
    let regions = func.regions_under(func.body);
    let mut changed = false;
    for region in regions {
        changed |= split_region(func, region, &mut facts);
    }
    changed
}

/// Splits each stretch of ops without branches and loops that accesses tiles. Reductions and scans belong to the stretch: what they combine
/// then has the layout that the full tile wants, and no tile has to leave the branch for them.
fn split_region(func: &mut Function, region: Region, facts: &mut AffineFacts) -> Changed {
    let insts = func.region(region).insts.clone();
    let mut out = Vec::new();
    // Where the region's values are used; looked up once, if any stretch is split.
    let mut uses: Option<Uses> = None;
    // What the branches hand on, in the place of what was computed there: substituted as the walk comes by.
    let mut with = Substitution::new();
    let mut changed = false;
    let mut at = 0;
    while at < insts.len() {
        let length = insts[at..].iter().take_while(|inst| is_plain(&func.inst(**inst).op)).count();
        let (whole, end) = (&insts[at..at + length], at + length);
        replace(func, whole, &with);
        match planned(func, whole, facts) {
            Some(Planned { front, stretch, plan }) => {
                let uses = uses.get_or_insert_with(|| Uses::of(func, &insts));
                out.extend(front);
                out.extend(split(func, &stretch, plan, &|value| uses.first_from(value, end), &mut with));
                changed = true;
            }
            None => out.extend(whole),
        }
        if let Some(inst) = insts.get(end) {
            replace(func, &[*inst], &with);
            out.push(*inst);
        }
        at = end + 1;
    }
    *func.insts_mut(region) = out;
    changed
}

/// A stretch that is worth to be split: without the ops that stand in front of it then.
struct Planned {
    front: Vec<Inst>,
    stretch: Vec<Inst>,
    plan: Plan,
}

fn planned(func: &Function, whole: &[Inst], facts: &mut AffineFacts) -> Option<Planned> {
    if whole.len() > MAX_OPS {
        return None;
    }
    let (front, behind) = scalars_in_front(func, whole);
    let (plan_whole, plan_behind) = (plan(func, whole, facts, &|_| true), plan(func, &behind, facts, &|_| true));
    let reach = |plan: &Option<Plan>| plan.as_ref().map(|plan| (plan.accesses.len(), plan.accesses.values().filter(|wide| **wide).count()));
    if reach(&plan_behind) > reach(&plan_whole) {
        plan_behind.map(|plan| Planned { front, stretch: behind, plan })
    } else {
        plan_whole.map(|plan| Planned { front: Vec::new(), stretch: whole.to_vec(), plan })
    }
}

/// Where the ops of a region, and those of its regions, use a value.
struct Uses {
    /// By value: the numbers of its uses, which are numbered through.
    at: SideTable<Value, Vec<u32>>,
    /// The number of the first use by each op of the region, or by one behind it.
    begins: Vec<u32>,
}

impl Uses {
    fn of(func: &Function, insts: &[Inst]) -> Uses {
        let mut uses = Uses { at: SideTable::new(), begins: Vec::new() };
        let mut number = 0;
        for inst in insts {
            uses.begins.push(number);
            let mut note = |inst: Inst| {
                func.inst(inst).op.for_each_operand(&mut |value| {
                    uses.at[value].push(number);
                    number += 1;
                });
            };
            note(*inst);
            func.inst(*inst).op.for_each_region(&mut |region| func.for_each_inst(region, &mut note));
        }
        uses
    }

    /// The first use of a value by the op number `op` of the region or by one behind it, if there is one.
    fn first_from(&self, value: Value, op: usize) -> Option<u32> {
        let begin = *self.begins.get(op)?;
        let uses = &self.at[value];
        uses.get(uses.partition_point(|at| *at < begin)).copied()
    }
}

/// The scalars that a stretch reads before it accesses a tile, a length or an address say, with what they are computed from; and what is left. If
/// these stand in front, the branch may ask about them.
fn scalars_in_front(func: &Function, stretch: &[Inst]) -> (Vec<Inst>, Vec<Inst>) {
    let is_access =
        |inst: &Inst, of_tile: bool| func.inst(*inst).op.access().is_some_and(|access| func.ty(access.offset).is_tile() == of_tile);
    let first = stretch.iter().position(|inst| is_access(inst, true)).unwrap_or(0);
    let last = stretch[..first].iter().rposition(|inst| is_access(inst, false)).map_or(0, |last| last + 1);
    let mut needed: SideTable<Value, bool> = SideTable::new();
    let mut front = Vec::new();
    for inst in stretch[..last].iter().rev() {
        let data = func.inst(*inst);
        if !data.op.is_pure() || data.results.iter().any(|result| needed[*result]) {
            let mut need = |op: &Op| op.for_each_operand(&mut |value| needed[value] = true);
            need(&data.op);
            data.op.for_each_region(&mut |region| func.for_each_inst(region, &mut |inst| need(&func.inst(inst).op)));
            front.push(*inst);
        }
    }
    front.reverse();
    let is_front: HashSet<Inst> = front.iter().copied().collect();
    let behind = stretch.iter().copied().filter(|inst| !is_front.contains(inst)).collect();
    (front, behind)
}

/// A sort is long, and nothing in it is guarded: it stands once.
pub(super) fn is_plain(op: &Op) -> bool {
    let mut plain = !op.is_terminator() && !matches!(op, Op::Sort { .. });
    op.for_each_region(&mut |_| plain = matches!(op, Op::Reduce { .. } | Op::Scan { .. }));
    plain
}

/// What makes a stretch full.
#[derive(Default)]
pub(super) struct Plan {
    /// Accesses whose lanes are then all in bounds, or masked off.
    pub(super) bounds: Vec<Bound>,
    /// Accesses whose address must be divisible by [`WIDEST`], by base, offset, and bytes of an element.
    pub(super) aligned: Vec<(Value, Affine, i64)>,
    /// Comparisons that then hold for every lane.
    pub(super) masks: Vec<(Value, Test)>,
    /// Numbers that must be divisible by others, so that masks end, and rows begin, where wide accesses do.
    pub(super) divisible: Vec<(Polynomial, i64)>,
    /// The accesses: whether each may be wide.
    pub(super) accesses: HashMap<Inst, bool>,
    /// Pure ops that can be computed in front of the branch.
    before: Vec<Inst>,
}

/// A comparison of a tile of indices with a number.
pub(super) enum Test {
    /// `uniform + lane < limit`, or `<=`, for all lanes up to the maximum.
    Below { op: CompareOp, index: Affine, maximum: i64, limit: Polynomial },
    /// `uniform + lane > limit`, or `>=`, for all lanes up to the maximum.
    Above { op: CompareOp, index: Affine, maximum: i64, limit: Polynomial },
    /// A truth value that is the same for every lane.
    Uniform(Value),
}

/// What a mask is the conjunction of, as far as it can be tested for a whole tile.
#[derive(Default)]
struct Parts {
    tests: Vec<(Value, Test)>,
    ends: Vec<End>,
    /// The axes along which a part of another kind may differ.
    partial: Vec<usize>,
    /// Does one differ in a way that is not followed?
    is_scattered: bool,
}

impl Parts {
    /// A part of which nothing is known but the axes that it has.
    fn unknown(&mut self, extents: &[usize], axes: Option<&[usize]>) {
        match axes {
            Some(axes) => self.partial.extend(axes.iter().zip(extents).filter(|(_, extent)| **extent > 1).map(|(axis, _)| *axis)),
            None => self.is_scattered = true,
        }
    }

    /// Is the mask the same for all that a wide access along the axis moves, whatever is not known of it?
    fn is_whole_along(&self, axis: usize) -> bool {
        !self.is_scattered && !self.partial.contains(&axis)
    }
}

/// What makes a stretch full, as far as a condition can say so that is made from values that are `usable`.
pub(super) fn plan(func: &Function, stretch: &[Inst], facts: &mut AffineFacts, usable: &dyn Fn(Value) -> bool) -> Option<Plan> {
    let mut plan = Plan::default();
    // What depends on memory, or on anything that does, cannot be part of the condition.
    let mut late: SideTable<Value, bool> = SideTable::new();
    for inst in stretch {
        let data = func.inst(*inst);
        let mut early = data.op.is_pure();
        let mut need = |op: &Op| op.for_each_operand(&mut |value| early &= !late[value]);
        need(&data.op);
        // A reduction may use scalars from outside.
        data.op.for_each_region(&mut |region| func.for_each_inst(region, &mut |inst| need(&func.inst(inst).op)));
        if early {
            plan.before.push(*inst);
        } else {
            data.results.iter().for_each(|result| late[*result] = true);
        }
    }
    let is_early = |affine: &Affine| affine.scalars().all(|value| !late[value] && usable(value));
    let (mut bounds, mut aligned, mut masks) = (HashSet::new(), HashSet::new(), HashSet::new());
    for inst in stretch {
        let Some(Access { base, offset, mask, in_bounds: false, .. }) = func.inst(*inst).op.access() else { continue };
        if late[base] || !usable(base) {
            continue;
        }
        let ty = func.ty(offset);
        let Some(affine) = facts.get(func, offset).filter(|affine| ty.is_tile() && is_early(affine)) else { continue };
        let extents = ty.extents();
        let mut parts = Parts::default();
        if let Some(mask) = mask {
            let axes: Vec<usize> = (0..extents.len()).collect();
            let is_early_value = &|value| !late[value] && usable(value);
            Masks { func, facts, extents: &extents, is_early: &is_early, is_early_value }.parts(mask, Some(&axes), &mut parts);
        }
        let Some(bound) = Bound::of(base, &affine, &extents, parts.ends.clone()) else { continue };
        let bytes = func.ty(base).dtype().bytes() as i64;
        // An atomic takes one element at a time.
        let is_atomic = matches!(func.inst(*inst).op, Op::Atomic { .. });
        let run = run_axis(&affine, &extents, bytes).filter(|axis| parts.is_whole_along(*axis) && !is_atomic);
        plan.accesses.insert(*inst, run.is_some());
        for end in parts.ends.iter().filter(|end| Some(end.axis) == run) {
            plan.divisible.push((end.end.clone(), WIDEST / bytes));
        }
        if run.is_some() {
            let unknown = affine.lanes.iter().zip(&extents).filter(|(lane, extent)| lane.as_constant().is_none() && **extent > 1);
            plan.divisible.extend(unknown.map(|(lane, _)| (lane.clone(), WIDEST / bytes)));
        }
        if !func.unchecked && bounds.insert(bound.clone()) {
            plan.bounds.push(bound);
        }
        let alignment = (base, affine, bytes);
        if run.is_some() && aligned.insert(alignment.clone()) {
            plan.aligned.push(alignment);
        }
        plan.masks.extend(parts.tests.into_iter().filter(|(mask, _)| masks.insert(*mask)));
    }
    (!plan.accesses.is_empty()).then_some(plan)
}

/// The axis that the lanes run along, if each run is a whole number of wide accesses from the first one, or may be where a step is an argument.
fn run_axis(affine: &Affine, extents: &[usize], bytes: i64) -> Option<usize> {
    let runs = |axis: &usize| affine.lanes[*axis].is(1) && extents[*axis] as i64 * bytes >= WIDEST;
    let fastest = (0..extents.len()).rev().find(runs)?;
    let keeps_alignment = |axis: usize| {
        let step = affine.lanes[axis].as_constant().unwrap_or(0);
        axis == fastest || extents[axis] == 1 || step.wrapping_mul(bytes) % WIDEST == 0
    };
    (0..extents.len()).all(keeps_alignment).then_some(fastest)
}

/// Takes masks apart.
struct Masks<'a> {
    func: &'a Function,
    facts: &'a mut AffineFacts,
    /// The access's.
    extents: &'a [usize],
    is_early: &'a dyn Fn(&Affine) -> bool,
    is_early_value: &'a dyn Fn(Value) -> bool,
}

impl Masks<'_> {
    /// Adds the parts of a mask. `axes` are those of the access that the mask's axes are, if each is one.
    fn parts(&mut self, mask: Value, axes: Option<&[usize]>, out: &mut Parts) {
        let mut seen: HashSet<(Value, Option<Vec<usize>>)> = HashSet::new();
        let mut next = vec![(mask, axes.map(<[usize]>::to_vec))];
        while let Some((mask, axes)) = next.pop() {
            if !seen.insert((mask, axes.clone())) || out.tests.iter().any(|(known, _)| *known == mask) {
                continue;
            }
            if seen.len() > conjuncts::MOST_PARTS {
                out.unknown(&self.func.ty(mask).extents(), axes.as_deref());
                continue;
            }
            self.part(mask, axes, out, &mut next);
        }
    }

    /// Adds a part, or puts those that it has on the list of what is next.
    fn part(&mut self, mask: Value, axes: Option<Vec<usize>>, out: &mut Parts, next: &mut Vec<(Value, Option<Vec<usize>>)>) {
        let func = self.func;
        match func.def_op(mask) {
            Some(Op::Binary { op: BinaryOp::And, lhs, rhs }) => next.extend([(*rhs, axes.clone()), (*lhs, axes)]),
            Some(Op::Broadcast { x }) if func.ty(*x).is_scalar() && (self.is_early_value)(*x) => out.tests.push((mask, Test::Uniform(*x))),
            // One truth for all, which nobody can ask about in front.
            Some(Op::Broadcast { x }) if func.ty(*x).is_scalar() => {}
            // Whatever the shape, a tile of truths is full where this one is.
            Some(Op::Broadcast { x }) if func.ty(*x).is_tile() => next.push((*x, axes)),
            Some(Op::Reshape { x } | Op::Flip { x, .. }) => next.push((*x, None)),
            Some(Op::ExpandDims { x, axis }) => {
                let axes = axes.map(|mut axes| {
                    axes.remove(*axis as usize);
                    axes
                });
                next.push((*x, axes));
            }
            Some(Op::Permute { x, order }) => {
                let axes = axes.map(|axes| {
                    let mut before = vec![0; order.len()];
                    order.iter().zip(axes).for_each(|(from, axis)| before[*from as usize] = axis);
                    before
                });
                next.push((*x, axes));
            }
            Some(Op::Compare { op, lhs, rhs }) => match self.comparison(*op, *lhs, *rhs) {
                Some(Test::Below { op: CompareOp::Lt, index, limit, .. })
                    if let Some((axis, axes)) = prefix(&index).zip(axes.as_ref())
                        // Of one place that is repeated, a lane's place says nothing.
                        && func.ty(*lhs).extents()[axis] == self.extents[axes[axis]] =>
                {
                    out.ends.push(End { axis: axes[axis], end: limit });
                }
                Some(test) => out.tests.push((mask, test)),
                None => out.unknown(&func.ty(mask).extents(), axes.as_deref()),
            },
            _ => out.unknown(&func.ty(mask).extents(), axes.as_deref()),
        }
    }

    fn comparison(&mut self, mut op: CompareOp, lhs: Value, rhs: Value) -> Option<Test> {
        let mut left = self.facts.get(self.func, lhs).filter(self.is_early)?;
        let mut right = self.facts.get(self.func, rhs).filter(self.is_early)?;
        if left.is_uniform() {
            (left, right, op) = (right, left, op.swapped());
        }
        let maximum = left.lane_maximum(&self.func.ty(lhs).extents()).filter(|_| right.is_uniform())?;
        match op {
            CompareOp::Lt | CompareOp::Le => Some(Test::Below { op, index: left, maximum, limit: right.start }),
            CompareOp::Gt | CompareOp::Ge => Some(Test::Above { op, index: left, maximum, limit: right.start }),
            CompareOp::Eq | CompareOp::Ne => None,
        }
    }
}

/// The axis whose position the index is.
fn prefix(index: &Affine) -> Option<usize> {
    let axis = index.lanes.iter().position(|lane| lane.is(1))?;
    let is_alone = index.lanes.iter().enumerate().all(|(other, lane)| other == axis || lane.is(0));
    (is_alone && index.start.is(0)).then_some(axis)
}

/// The stretch as a condition and an `if` with both versions. `first_use` says where a value of the stretch is first used behind it, if it is; `with`
/// learns what is to be used there instead.
fn split(
    func: &mut Function,
    stretch: &[Inst],
    plan: Plan,
    first_use: &dyn Fn(Value) -> Option<u32>,
    with: &mut Substitution,
) -> Vec<Inst> {
    let loc = stretch.iter().map(|inst| func.inst(*inst).loc).find(|loc| loc.is_some()).unwrap_or(Loc::NONE);
    let mut out = plan.before.clone();
    let scratch = func.add_region();
    let cond = condition(&mut Builder::new(func, scratch, loc), &plan);
    out.append(func.insts_mut(scratch));

    let (results, remade) = handed_on(func, stretch, &plan.before, first_use, with);
    let body = func.add_region();
    *func.insts_mut(body) = stretch.to_vec();
    let [full, guarded] = [true, false].map(|is_full| {
        let region = func.add_region();
        let mut map = Substitution::new();
        copy_insts(func, body, region, &mut map);
        if is_full {
            make_full(func, stretch, region, &plan, &mut map);
        }
        let values = results.iter().map(|value| map.get(*value)).collect();
        Builder::new(func, region, loc).yield_values(values);
        region
    });
    let types: Vec<Type> = results.iter().map(|value| func.ty(*value).clone()).collect();
    let branch = func.make_inst(Op::If { cond, then_region: full, else_region: guarded }, types, loc);
    for (old, new) in results.iter().zip(func.inst(branch).results.clone()) {
        with.insert(*old, new);
    }
    replace(func, &remade, with);
    out.push(branch);
    out.extend(remade);
    out
}

fn replace(func: &mut Function, insts: &[Inst], with: &Substitution) {
    if with.is_empty() {
        return;
    }
    for inst in insts {
        func.inst_mut(*inst).op.map_operands(&mut |value| with.get(value));
        let mut inner = Vec::new();
        func.inst(*inst).op.for_each_region(&mut |region| inner.push(region));
        inner.into_iter().for_each(|region| {
            crate::ir::rewrite::substitute(func, region, with);
        });
    }
}

/// The values that the branch must hand on: used later, and not computed in front of it. A branch hands on numbers, no pointers: those that are used
/// later are made again, of their addresses, by the ops that are given as well.
fn handed_on(
    func: &mut Function,
    stretch: &[Inst],
    before: &[Inst],
    first_use: &dyn Fn(Value) -> Option<u32>,
    with: &mut Substitution,
) -> (Vec<Value>, Vec<Inst>) {
    let is_before: HashSet<Inst> = before.iter().copied().collect();
    let inside: HashSet<Value> =
        stretch.iter().filter(|inst| !is_before.contains(inst)).flat_map(|inst| &func.inst(*inst).results).copied().collect();
    let (mut results, mut remade, mut used) = (Vec::new(), Vec::new(), Vec::new());
    for inst in stretch.iter().filter(|inst| !is_before.contains(inst)) {
        let data = func.inst(*inst).clone();
        if let (Op::Pointer { address }, [pointer]) = (&data.op, &data.results[..])
            && first_use(*pointer).is_some()
        {
            if inside.contains(address) && !results.contains(address) {
                results.push(*address);
            }
            let copy = func.make_inst(data.op, [func.ty(*pointer).clone()], data.loc);
            with.insert(*pointer, func.result(copy));
            remade.push(copy);
        } else {
            used.extend(data.results.iter().filter_map(|result| Some((first_use(*result)?, *result))));
        }
    }
    used.sort_unstable();
    let addresses: HashSet<Value> = results.iter().copied().collect();
    results.extend(used.into_iter().map(|(_, value)| value).filter(|value| !addresses.contains(value)));
    (results, remade)
}

/// Drops masks and marks accesses in the copy that runs for full tiles. `region` holds copies of `stretch` in its order.
pub(super) fn make_full(func: &mut Function, stretch: &[Inst], region: Region, plan: &Plan, map: &mut Substitution) {
    let copies = func.region(region).insts.clone();
    for (original, copy) in stretch.iter().zip(&copies) {
        let Some(is_wide) = plan.accesses.get(original) else { continue };
        match &mut func.inst_mut(*copy).op {
            Op::Load { in_bounds, align, .. } | Op::Store { in_bounds, align, .. } => {
                (*in_bounds, *align) = (true, if *is_wide { WIDEST as u32 } else { 0 });
            }
            Op::Atomic { in_bounds, .. } => *in_bounds = true,
            _ => {}
        }
    }
    let copy_of: HashMap<Inst, Inst> = stretch.iter().copied().zip(copies).collect();
    let mut with = Substitution::new();
    let mut constants = Vec::new();
    for (mask, _) in &plan.masks {
        let defined = if let Def::Result(inst, _) = func.def(*mask) { copy_of.get(&inst) } else { None };
        if let Some(copy) = defined {
            // A comparison that holds everywhere becomes a constant in its place.
            func.inst_mut(*copy).op = Op::Const { value: ConstExpr::Bool(true) };
        } else {
            // A mask defined before the stretch cannot be replaced at its definition: here a constant stands for it.
            let ty = func.ty(*mask).clone();
            let inst = func.make_inst(Op::Const { value: ConstExpr::Bool(true) }, [ty], Loc::NONE);
            with.insert(map.get(*mask), func.result(inst));
            constants.push(inst);
        }
    }
    crate::ir::rewrite::substitute(func, region, &with);
    func.insts_mut(region).splice(0..0, constants);
}

pub(super) fn condition(b: &mut Builder<'_>, plan: &Plan) -> Value {
    let mut parts = bounds::tests(b, &plan.bounds);
    let mut divisible = HashSet::new();
    for (number, divisor) in &plan.divisible {
        if divisible.insert((number, divisor)) {
            let number = number.value(b);
            let low_bits = b.index((divisor - 1).into());
            let rest = b.binary(BinaryOp::And, number, low_bits);
            let zero = b.index(0);
            parts.push(b.compare(CompareOp::Eq, rest, zero));
        }
    }
    for (_, test) in &plan.masks {
        match test {
            Test::Below { op, index, maximum, limit } => {
                // Where `start < limit`, the difference is positive: where it overflows, it shows as negative.
                let (start, limit) = (index.uniform_value(b), limit.value(b));
                parts.push(b.compare(*op, start, limit));
                let room = b.binary(BinaryOp::Sub, limit, start);
                let maximum = b.index((*maximum).into());
                parts.push(b.compare(op.swapped(), room, maximum));
            }
            Test::Above { op, index, maximum, limit } => {
                // The lanes only add to `index`, which must not wrap.
                let (start, limit) = (index.uniform_value(b), limit.value(b));
                parts.push(b.compare(*op, start, limit));
                let last = b.index((i64::MAX - maximum).into());
                parts.push(b.compare(CompareOp::Le, start, last));
            }
            Test::Uniform(value) => parts.push(*value),
        }
    }
    let mut addresses: Option<Value> = None;
    for (base, index, bytes) in &plan.aligned {
        let start = index.uniform_value(b);
        let bytes = b.index((*bytes).into());
        let offset = b.binary(BinaryOp::Mul, start, bytes);
        let address = b.op(Op::Address { base: *base }, &[]);
        let address = b.binary(BinaryOp::Add, address, offset);
        addresses = Some(addresses.map_or(address, |all| b.binary(BinaryOp::Or, all, address)));
    }
    if let Some(addresses) = addresses {
        let low_bits = b.index((WIDEST - 1).into());
        let misaligned = b.binary(BinaryOp::And, addresses, low_bits);
        let zero = b.index(0);
        parts.push(b.compare(CompareOp::Eq, misaligned, zero));
    }
    let always = b.constant(ConstExpr::Bool(true), Type::scalar(Dtype::Bool));
    parts.into_iter().reduce(|all, part| b.binary(BinaryOp::And, all, part)).unwrap_or(always)
}
