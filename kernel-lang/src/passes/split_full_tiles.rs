//! Full tiles: one test per tile, not one per element, decides whether a tile needs its masks.
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
//!     %9 = const {value = 64} : i64
//!     %10 = sub %8, %9 : i64
//!     %11 = le %start, %10 : bool
//!     %12 = lt %start, %n : bool
//!     %13 = sub %n, %start : i64
//!     %14 = const {value = 63} : i64
//!     %15 = gt %13, %14 : bool
//!     %16 = const {value = 4} : i64
//!     %17 = mul %start, %16 : i64
//!     %18 = address %y : i64
//!     %19 = add %18, %17 : i64
//!     %20 = const {value = 15} : i64
//!     %21 = and %19, %20 : i64
//!     %22 = eq %21, %6 : bool
//!     %23 = and %7, %11 : bool
//!     %24 = and %23, %12 : bool
//!     %25 = and %24, %15 : bool
//!     %26 = and %25, %22 : bool
//!     if %26 () {
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
//! Most tiles are full: they run without masks and with wide accesses. The last tile of a tensor, tiles of unaligned slices and tiles that
//! would leave their tensor take the other branch, where [`super::guard_accesses`] guards every element.
//!
//! The condition uses only values that are known in front of the branch. If a straight-line region first loads scalars, such as a length or
//! an address, these loads move in front of the branch, too.
//!
//! Some masks stay in the fast path:
//!
//! - A mask that is the same for every program, such as `columns < n` in a kernel for rows. As a condition it would make no tile full, or
//!   all of them. Instead, the condition requires that `n` is a whole number of wide accesses, so that the mask is the same for all
//!   elements of an access.
//! - A mask with an end of the program's own, such as `columns <= row`. The last run before the end is partial: a load takes the whole run, which
//!   must be in the tensor, and replaces the elements behind the end. A store stores the elements in front of it one by one.
//! - A mask of which nothing is known, such as one that was loaded. Accesses are then wide only along axes that the mask does not have.
//!
//! A tile may also be empty: `empty_tiles` says when the other branch tests this first. Where the guarded copy would be slow, a version with shorter
//! runs comes before it (`narrow`).
//!
//! The condition never holds for a tile that is not full, whatever values the scalars have: each part compares without overflow, or
//! overflows to false.

mod empty_tiles;
mod front;
mod narrow;
mod parts;

use std::collections::{HashMap, HashSet};

use crate::analysis::affine::{Affine, AffineFacts};
use crate::analysis::bounds::{self, Bound};
use crate::analysis::loops::{self, Loop};
use crate::analysis::masks::Comparison;
use crate::analysis::polynomial::Polynomial;
use crate::dtype::Dtype;
use crate::ir::rewrite::{Changed, Substitution, copy_insts};
use crate::ir::{Access, BinaryOp, Builder, CompareOp, ConstExpr, Def, Function, Inst, Op, Region, SideTable, Type, Value};
use crate::location::Loc;
use crate::passes::flat_indices::{self, Flat, Full};

use front::scalars_in_front;
use parts::{Parts, takes_partial_runs};

/// The widest access of one thread, in bytes.
pub(super) const WIDEST: i64 = 16;
/// Longer straight-line regions are not duplicated.
const MAX_OPS: usize = 4000;
/// The sum or the difference of two numbers below this, and of a number and a position in a tile, does not overflow.
const SMALL: i64 = 1 << 62;

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let mut facts = AffineFacts::new();
    let (regions, loops) = (func.regions_under(func.body), loops::by_index(func));
    let mut changed = false;
    for region in regions {
        changed |= split_region(func, region, &loops, &mut facts);
    }
    changed
}

/// Splits each straight-line region that accesses tiles. Reductions and scans belong to such a region. The tiles that they combine then
/// have the layout for full tiles, and no tile has to leave the branch for them.
fn split_region(func: &mut Function, region: Region, loops: &HashMap<Value, Loop>, facts: &mut AffineFacts) -> Changed {
    let insts = func.region(region).insts.clone();
    let mut out = Vec::new();
    // The uses of the region's values, computed once, if any straight-line region is split.
    let mut uses: Option<Uses> = None;
    // The replacements for values that moved into branches, applied as the walk proceeds.
    let mut with = Substitution::new();
    let mut changed = false;
    let mut at = 0;
    while at < insts.len() {
        let length = insts[at..].iter().take_while(|inst| is_plain(&func.inst(**inst).op)).count();
        let (whole, end) = (&insts[at..at + length], at + length);
        replace(func, whole, &with);
        match planned(func, whole, loops, facts) {
            Some(Planned { front, ops, plan }) => {
                let uses = uses.get_or_insert_with(|| Uses::of(func, &insts));
                out.extend(front);
                out.extend(split(func, &ops, plan, facts, &|value| uses.first_from(value, end), &mut with));
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

/// A straight-line region that is worth splitting, and the ops that then move in front of it.
struct Planned {
    front: Vec<Inst>,
    ops: Vec<Inst>,
    plan: Plan,
}

fn planned(func: &Function, whole: &[Inst], loops: &HashMap<Value, Loop>, facts: &mut AffineFacts) -> Option<Planned> {
    if whole.len() > MAX_OPS {
        return None;
    }
    let (front, behind) = scalars_in_front(func, whole);
    let sought = Sought { loops: Some(loops), ..Sought::WIDEST };
    let (plan_whole, plan_behind) = (plan(func, whole, facts, &|_| true, sought), plan(func, &behind, facts, &|_| true, sought));
    let reach = |plan: &Option<Plan>| {
        plan.as_ref().map(|plan| (plan.accesses.len(), plan.accesses.values().filter(|width| **width != Width::Elements).count()))
    };
    let planned = if reach(&plan_behind) > reach(&plan_whole) {
        plan_behind.map(|plan| Planned { front, ops: behind, plan })
    } else {
        plan_whole.map(|plan| Planned { front: Vec::new(), ops: whole.to_vec(), plan })
    };
    // The tiles of a main loop are full, but it may have flattened indices.
    let is_certain = planned.is_none();
    let mut planned = planned.unwrap_or_else(|| Planned { front: Vec::new(), ops: whole.to_vec(), plan: certain(func, whole) });
    planned.plan.flat = flat(func, &planned, loops, facts);
    planned.plan.narrow = narrow::plan(func, &planned.ops, &planned.plan, facts);
    (!is_certain || planned.plan.flat.is_some()).then_some(planned)
}

fn flat(func: &Function, Planned { ops, plan, .. }: &Planned, loops: &HashMap<Value, Loop>, facts: &mut AffineFacts) -> Option<Flat> {
    let late: HashSet<Inst> = ops.iter().copied().filter(|inst| !plan.before.contains(inst)).collect();
    let is_usable = |value: Value| !matches!(func.def(value), Def::Result(inst, _) if late.contains(&inst));
    flat_indices::find(func, &full(ops, plan, false), loops, facts, &is_usable)
}

/// What the condition of a plan guarantees.
fn full<'a>(ops: &'a [Inst], plan: &'a Plan, is_ragged: bool) -> Full<'a> {
    Full { ops, accesses: &plan.accesses, masks: plan.masks.iter().map(|(mask, _)| *mask).collect(), is_ragged }
}

/// The uses of values by the ops of a region and of its nested regions.
struct Uses {
    /// By value: the numbers of its uses. Uses are numbered in program order.
    at: SideTable<Value, Vec<u32>>,
    /// For each op of the region: the number of the first use by that op or a later one.
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

    /// The first use of a value by the op at position `op` of the region or by a later op, if there is one.
    fn first_from(&self, value: Value, op: usize) -> Option<u32> {
        let begin = *self.begins.get(op)?;
        let uses = &self.at[value];
        uses.get(uses.partition_point(|at| *at < begin)).copied()
    }
}

/// Can an op be part of a straight-line region? A sort cannot: it is long, and nothing in it is guarded, so it is not duplicated.
pub(super) fn is_plain(op: &Op) -> bool {
    let mut plain = !op.is_terminator() && !matches!(op, Op::Sort { .. });
    op.for_each_region(&mut |_| plain = matches!(op, Op::Reduce { .. } | Op::Scan { .. }));
    plain
}

/// The conditions for a full straight-line region, and their effects.
#[derive(Default)]
pub(super) struct Plan {
    /// Accesses whose elements must all be in bounds, or masked off.
    pub(super) bounds: Vec<Bound>,
    /// The bytes of a run.
    widest: i64,
    /// Accesses whose address must be divisible by `widest`: the base, the offset, and the bytes of an element.
    pub(super) aligned: Vec<(Value, Affine, i64)>,
    /// Comparisons that must hold for every element, and that are then dropped.
    pub(super) masks: Vec<(Value, Test)>,
    /// Comparisons that end within the tile. Their starts and limits must be small, so that the distances between them do not overflow.
    distances: Vec<(Value, Comparison)>,
    /// Numbers that must be divisible by others, so that masks end, and rows begin, at boundaries of wide accesses.
    pub(super) divisible: Vec<(Polynomial, i64)>,
    /// The accesses, and how each may move its elements.
    pub(super) accesses: HashMap<Inst, Width>,
    /// Pure ops that can be computed in front of the branch.
    before: Vec<Inst>,
    /// The flattened indices, if the region divides indices.
    flat: Option<Flat>,
    /// The plan of a version with shorter runs for tiles that are not full.
    narrow: Option<Box<Plan>>,
}

impl Plan {
    /// Does it have no conditions?
    fn is_certain(&self) -> bool {
        self.bounds.is_empty() && self.masks.is_empty() && self.distances.is_empty() && self.aligned.is_empty() && self.divisible.is_empty()
    }

    /// Where the condition requires for another access that an end is a multiple, no run before it is partial.
    fn forget_partial_runs(&mut self, partial: &HashMap<Inst, Vec<(Polynomial, i64)>>) {
        let required = |(end, run): &(Polynomial, i64)| self.divisible.iter().any(|(number, divisor)| number == end && divisor % run == 0);
        for (inst, ends) in partial {
            if ends.iter().all(required) {
                self.accesses.insert(*inst, Width::Runs);
            }
        }
    }
}

/// How an access moves its elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Width {
    /// One by one.
    Elements,
    /// In runs of as many bytes as the plan says. The mask is the same for all elements of a run.
    Runs,
    /// In runs, of which the last may be partial: the mask may hold for only its first elements.
    PartialRuns,
}

/// A condition under which a conjunct of a mask holds for the whole tile.
pub(super) enum Test {
    /// `start + t < limit`, or another order, for every sum `t` of the stride terms: from 0 to the second field.
    Order(Comparison, i64),
    /// A predicate that is the same for every element.
    Uniform(Value),
}

impl Test {
    /// The test of a comparison, if there is one.
    fn of(comparison: &Comparison) -> Option<Test> {
        let maximum = comparison.index.maximum_offset(&comparison.extents)?;
        (!matches!(comparison.op, CompareOp::Eq | CompareOp::Ne)).then(|| Test::Order(comparison.clone(), maximum))
    }
}

/// The plan of a region whose tiles are known to be full: it has no conditions.
fn certain(func: &Function, ops: &[Inst]) -> Plan {
    let (mut plan, _) = unconditional(func, ops);
    for inst in ops {
        if let Op::Load { in_bounds: true, align, .. } | Op::Store { in_bounds: true, align, .. } = func.inst(*inst).op {
            plan.accesses.insert(*inst, if i64::from(align) == WIDEST { Width::Runs } else { Width::Elements });
        }
    }
    plan
}

/// A plan without conditions, and the values that depend on memory, which cannot be part of a condition.
fn unconditional(func: &Function, ops: &[Inst]) -> (Plan, SideTable<Value, bool>) {
    let (mut plan, mut late) = (Plan { widest: WIDEST, ..Plan::default() }, SideTable::<Value, bool>::new());
    for inst in ops {
        let data = func.inst(*inst);
        let mut early = data.op.is_pure();
        let mut need = |op: &Op| op.for_each_operand(&mut |value| early &= !late[value]);
        need(&data.op);
        // The region of a reduction may use scalars from outside.
        data.op.for_each_region(&mut |region| func.for_each_inst(region, &mut |inst| need(&func.inst(inst).op)));
        if early {
            plan.before.push(*inst);
        } else {
            data.results.iter().for_each(|result| late[*result] = true);
        }
    }
    (plan, late)
}

/// What a plan is to make possible.
#[derive(Clone, Copy)]
pub(super) struct Sought<'a> {
    /// The bytes of a run.
    widest: i64,
    /// The loops around the region. Without them, masks end at boundaries of runs.
    loops: Option<&'a HashMap<Value, Loop>>,
    /// May masks end within a tile, wherever it begins?
    is_ragged: bool,
}

impl Sought<'_> {
    /// The widest accesses.
    pub(super) const WIDEST: Sought<'static> = Sought { widest: WIDEST, loops: None, is_ragged: false };
}

/// The conditions for a full straight-line region. The conditions use only values that are `usable`.
pub(super) fn plan(
    func: &Function,
    ops: &[Inst],
    facts: &mut AffineFacts,
    usable: &dyn Fn(Value) -> bool,
    sought: Sought<'_>,
) -> Option<Plan> {
    let (mut plan, late) = unconditional(func, ops);
    let widest = sought.widest;
    plan.widest = widest;
    let is_early = |value: Value| !late[value] && usable(value);
    let (mut bounds, mut aligned, mut masks, mut distances) = (HashSet::new(), HashSet::new(), HashSet::new(), HashSet::new());
    let mut partial: HashMap<Inst, Vec<(Polynomial, i64)>> = HashMap::new();
    for inst in ops {
        let Some(access @ Access { base, offset, mask, in_bounds: false, .. }) = func.inst(*inst).op.access() else { continue };
        if !is_early(base) {
            continue;
        }
        let ty = func.ty(offset);
        let Some(affine) = facts.get(func, offset).filter(|affine| ty.is_tile() && affine.scalars().all(is_early)) else { continue };
        let extents = ty.extents();
        let loops = sought.loops.filter(|_| takes_partial_runs(func, &func.inst(*inst).op));
        let mut parts = mask.map_or(Parts::default(), |mask| Parts::of(func, facts, mask, &is_early, Sought { loops, ..sought }));
        let bytes = func.ty(base).dtype().bytes() as i64;
        let run = run_axis(&affine, &extents, bytes, widest).filter(|axis| parts.is_whole_along(*axis) && access.can_be_wide(func));
        let mut width = if run.is_some() { Width::Runs } else { Width::Elements };
        for at in 0..parts.ends.len() {
            let end = &parts.ends[at];
            if Some(end.axis) != run {
                continue;
            }
            if parts.is_partial(func, &end.end) {
                width = Width::PartialRuns;
                partial.entry(*inst).or_default().push((end.end.clone(), widest / bytes));
                // A partial run is loaded as a whole, and stored element by element.
                parts.ends[at].run = if matches!(func.inst(*inst).op, Op::Load { .. }) { (widest / bytes) as usize } else { 1 };
            } else {
                plan.divisible.push((end.end.clone(), widest / bytes));
            }
        }
        let Some(bound) = Bound::of(base, &affine, &extents, parts.ends.clone()) else { continue };
        plan.accesses.insert(*inst, width);
        if run.is_some() {
            let unknown = affine.strides.iter().zip(&extents).filter(|(lane, extent)| lane.as_constant().is_none() && **extent > 1);
            plan.divisible.extend(unknown.map(|(lane, _)| (lane.clone(), widest / bytes)));
        }
        if !func.unchecked && bounds.insert(bound.clone()) {
            plan.bounds.push(bound);
        }
        let alignment = (base, affine, bytes);
        if run.is_some() && aligned.insert(alignment.clone()) {
            plan.aligned.push(alignment);
        }
        plan.distances.extend(parts.distances.into_iter().filter(|(mask, _)| distances.insert(*mask)));
        plan.masks.extend(parts.tests.into_iter().filter(|(mask, _)| masks.insert(*mask)));
    }
    plan.forget_partial_runs(&partial);
    (!plan.accesses.is_empty()).then_some(plan)
}

/// The innermost axis along which addresses are consecutive and that has at least one wide access. The strides of all other axes must be
/// multiples of `widest` bytes, so that each run along the axis has the alignment of the first run. A stride that is not known counts as
/// such a multiple: the caller adds it to [`Plan::divisible`], and the condition tests it.
fn run_axis(affine: &Affine, extents: &[usize], bytes: i64, widest: i64) -> Option<usize> {
    let runs = |axis: &usize| affine.strides[*axis].is(1) && extents[*axis] as i64 * bytes >= widest;
    let fastest = (0..extents.len()).rev().find(runs)?;
    let keeps_alignment = |axis: usize| {
        let step = affine.strides[axis].as_constant().unwrap_or(0);
        axis == fastest || extents[axis] == 1 || step.wrapping_mul(bytes) % widest == 0
    };
    (0..extents.len()).all(keeps_alignment).then_some(fastest)
}

/// Replaces the straight-line region by a condition and an `if` with both versions. `first_use` returns the first use of a value after the
/// region. `with` receives the values that replace those of the region there.
fn split(
    func: &mut Function,
    ops: &[Inst],
    plan: Plan,
    facts: &mut AffineFacts,
    first_use: &dyn Fn(Value) -> Option<u32>,
    with: &mut Substitution,
) -> Vec<Inst> {
    let loc = ops.iter().map(|inst| func.inst(*inst).loc).find(|loc| loc.is_some()).unwrap_or(Loc::NONE);
    let mut out = plan.before.clone();
    let (results, remade) = handed_on(func, ops, &plan.before, first_use, with);
    // Tiles of runs have layouts of their own, and to leave them, elements would move between threads, or between the CTAs of a program.
    let flat = plan.flat.as_ref().filter(|_| results.iter().all(|result| func.ty(*result).is_scalar()));
    if flat.is_none() && plan.is_certain() {
        return ops.to_vec();
    }
    let unless_empty = if results.is_empty() { empty_tiles::find(func, ops, &plan, facts) } else { None };
    let scratch = func.add_region();
    let b = &mut Builder::new(func, scratch, loc);
    let is_full = condition(b, &plan);
    let fits = flat.and_then(|flat| flat.test(b));
    let cond = fits.map_or(is_full, |fits| b.binary(BinaryOp::And, is_full, fits));
    out.append(func.insts_mut(scratch));

    let ragged = flat.and_then(Flat::ragged).filter(|_| !plan.is_certain() && unless_empty.is_none());
    let narrow = plan.narrow.as_deref().filter(|_| flat.is_none() && unless_empty.is_none() && narrow::is_tied(func, ops, &results));
    let body = func.add_region();
    *func.insts_mut(body) = ops.to_vec();
    let [fast, guarded] = [true, false].map(|is_full| {
        let region = func.add_region();
        if let Some(flat) = flat.filter(|_| is_full) {
            let values = flat.write(func, &full(ops, &plan, false), &results, region, facts, loc);
            Builder::new(func, region, loc).yield_values(values);
            return region;
        }
        let mut map = Substitution::new();
        copy_insts(func, body, region, &mut map);
        if is_full {
            make_full(func, ops, region, &plan, &mut map);
        } else if let Some(test) = unless_empty {
            return empty_tiles::skip(func, region, &plan.masks[test].1, loc);
        } else if plan.is_certain() {
            make_guarded(func, region);
        }
        let values = results.iter().map(|value| map.get(*value)).collect();
        Builder::new(func, region, loc).yield_values(values);
        if is_full {
            return region;
        }
        let [front, inner] = [(); 2].map(|()| func.add_region());
        let cond = if let Some(ragged) = ragged {
            let b = &mut Builder::new(func, front, loc);
            let further = flat.and_then(|flat| flat.ragged_test(b));
            let cond = all_of(b, fits.into_iter().chain(further));
            let values = ragged.write(func, &full(ops, &plan, true), &results, inner, facts, loc);
            Builder::new(func, inner, loc).yield_values(values);
            cond
        } else if let Some(narrow) = narrow {
            let mut map = Substitution::new();
            copy_insts(func, body, inner, &mut map);
            make_full(func, ops, inner, narrow, &mut map);
            let values = results.iter().map(|value| map.get(*value)).collect();
            Builder::new(func, inner, loc).yield_values(values);
            condition(&mut Builder::new(func, front, loc), narrow)
        } else {
            return region;
        };
        branch(func, front, cond, [inner, region], &results, loc);
        front
    });
    let types: Vec<Type> = results.iter().map(|value| func.ty(*value).clone()).collect();
    let branch = func.make_inst(Op::If { cond, then_region: fast, else_region: guarded }, types, loc);
    for (old, new) in results.iter().zip(func.inst(branch).results.clone()) {
        with.insert(*old, new);
    }
    replace(func, &remade, with);
    out.push(branch);
    out.extend(remade);
    out
}

/// Appends a branch to a region, which then yields what the branch yields in place of `results`.
fn branch(func: &mut Function, region: Region, cond: Value, [then_region, else_region]: [Region; 2], results: &[Value], loc: Loc) {
    let types: Vec<Type> = results.iter().map(|value| func.ty(*value).clone()).collect();
    let branch = func.append(region, Op::If { cond, then_region, else_region }, types, loc);
    let values = func.inst(branch).results.clone();
    Builder::new(func, region, loc).yield_values(values);
}

/// Forgets that the accesses of a region are in bounds, so that the region is sliced: indices that do not fit in 32 bits are rare.
fn make_guarded(func: &mut Function, region: Region) {
    for inst in func.region(region).insts.clone() {
        if let Op::Load { in_bounds, align, .. } | Op::Store { in_bounds, align, .. } = &mut func.inst_mut(inst).op {
            (*in_bounds, *align) = (false, 0);
        }
    }
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

/// The values that the branch must yield: used later, and not computed in front of it. A branch yields no pointers. Pointers that are used
/// later are made again from their addresses, by the ops that the function also returns.
fn handed_on(
    func: &mut Function,
    ops: &[Inst],
    before: &[Inst],
    first_use: &dyn Fn(Value) -> Option<u32>,
    with: &mut Substitution,
) -> (Vec<Value>, Vec<Inst>) {
    let is_before: HashSet<Inst> = before.iter().copied().collect();
    let inside: HashSet<Value> =
        ops.iter().filter(|inst| !is_before.contains(inst)).flat_map(|inst| &func.inst(*inst).results).copied().collect();
    let (mut results, mut remade, mut used) = (Vec::new(), Vec::new(), Vec::new());
    for inst in ops.iter().filter(|inst| !is_before.contains(inst)) {
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

/// Removes masks and marks accesses in the copy for full tiles. `region` holds copies of `ops`, in the same order.
pub(super) fn make_full(func: &mut Function, ops: &[Inst], region: Region, plan: &Plan, map: &mut Substitution) {
    let copies = func.region(region).insts.clone();
    for (original, copy) in ops.iter().zip(&copies) {
        let Some(width) = plan.accesses.get(original) else { continue };
        let op = &mut func.inst_mut(*copy).op;
        let mask = op.access().and_then(|access| access.mask);
        op.set_lanes(mask, true);
        op.set_align(if *width == Width::Elements { 0 } else { plan.widest as u32 });
        if let Op::Load { partial, .. } | Op::Store { partial, .. } = op {
            *partial = *width == Width::PartialRuns;
        }
    }
    let copy_of: HashMap<Inst, Inst> = ops.iter().copied().zip(copies).collect();
    let mut with = Substitution::new();
    let mut constants = Vec::new();
    for (mask, _) in &plan.masks {
        let defined = if let Def::Result(inst, _) = func.def(*mask) { copy_of.get(&inst) } else { None };
        if let Some(copy) = defined {
            // A comparison that holds for all elements becomes a constant.
            func.inst_mut(*copy).op = Op::Const { value: ConstExpr::Bool(true) };
        } else {
            // A mask that is defined before the straight-line region cannot become a constant there. Instead, a new constant replaces it in
            // the copy.
            let ty = func.ty(*mask).clone();
            let inst = func.make_inst(Op::Const { value: ConstExpr::Bool(true) }, [ty], Loc::NONE);
            with.insert(map.get(*mask), func.result(inst));
            constants.push(inst);
        }
    }
    crate::ir::rewrite::substitute(func, region, &with);
    func.insts_mut(region).splice(0..0, constants);
    narrow::mask_by_position(func, region, plan, map);
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
            Test::Order(Comparison { op, index, limit, .. }, maximum) => {
                let (start, limit) = (index.uniform_value(b), limit.value(b));
                parts.push(b.compare(*op, start, limit));
                if matches!(op, CompareOp::Lt | CompareOp::Le) {
                    // If `start < limit`, the exact difference is positive. A difference that overflows is negative, and its test fails.
                    let room = b.binary(BinaryOp::Sub, limit, start);
                    let maximum = b.index((*maximum).into());
                    parts.push(b.compare(op.swapped(), room, maximum));
                } else {
                    // The stride terms only add to `index`. The sum must not wrap.
                    let last = b.index((i64::MAX - maximum).into());
                    parts.push(b.compare(CompareOp::Le, start, last));
                }
            }
            Test::Uniform(value) => parts.push(*value),
        }
    }
    let mut small: HashSet<&Polynomial> = HashSet::new();
    for number in plan.distances.iter().flat_map(|(_, Comparison { index, limit, .. })| [&index.start, limit]) {
        if small.insert(number) {
            let number = number.value(b);
            parts.push(bounds::is_below(b, number, SMALL));
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
        let low_bits = b.index((plan.widest - 1).into());
        let misaligned = b.binary(BinaryOp::And, addresses, low_bits);
        let zero = b.index(0);
        parts.push(b.compare(CompareOp::Eq, misaligned, zero));
    }
    all_of(b, parts)
}

fn all_of(b: &mut Builder<'_>, parts: impl IntoIterator<Item = Value>) -> Value {
    let always = b.constant(ConstExpr::Bool(true), Type::scalar(Dtype::Bool));
    parts.into_iter().reduce(|all, part| b.binary(BinaryOp::And, all, part)).unwrap_or(always)
}
