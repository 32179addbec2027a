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
//! A tile may also be empty: `empty_tiles` says when the other branch tests this first. Where the guarded copy would be slow, another version comes
//! before it: with shorter runs (`narrow`), or by element (`by_element`).
//!
//! `plan` says what the condition must require, and `condition` tests it.

mod by_element;
mod condition;
mod empty_tiles;
mod front;
mod narrow;
mod parts;
mod plan;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::affine::AffineFacts;
use crate::analysis::loops::{self, Loop};
use crate::analysis::masks::Comparison;
use crate::ir::rewrite::{Changed, Substitution, copy_insts};
use crate::ir::{BinaryOp, Builder, ConstExpr, Def, Function, Inst, Op, Region, SideTable, Type, Value};
use crate::location::Loc;
use crate::passes::flat_indices::{self, Flat, Full};

pub(super) use condition::{condition, has_aligned_runs, is_inside};
pub(super) use empty_tiles::is_loaded;
pub(super) use narrow::run as narrow_run;
pub(super) use parts::takes_partial_runs;
pub(super) use plan::{Plan, Sought, Test, Width, is_shifted, plan};

use condition::all_of;
use front::scalars_in_front;
use plan::{Ragged, certain};

/// The widest access of one thread, in bytes.
pub(super) const WIDEST: i64 = 16;
/// Longer straight-line regions are not duplicated.
const MAX_OPS: usize = 4000;

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let mut facts = AffineFacts::new();
    let (regions, loops) = (func.frequent_regions(), loops::by_index(func));
    let guarded = loops::guarded_bodies(func);
    let mut changed = false;
    for region in regions.into_iter().filter(|region| !guarded.contains(region)) {
        changed |= split_region(func, region, &loops, &mut facts);
    }
    changed
}

/// Splits each straight-line region that accesses tiles. Reductions and scans belong to such a region. The tiles that they combine then
/// have the layout for full tiles, and no tile has to leave the branch for them.
fn split_region(func: &mut Function, region: Region, loops: &FxHashMap<Value, Loop>, facts: &mut AffineFacts) -> Changed {
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

fn planned(func: &Function, whole: &[Inst], loops: &FxHashMap<Value, Loop>, facts: &mut AffineFacts) -> Option<Planned> {
    // `split_loops` has made shifted accesses wide where possible. Those outside of the loop, and those of the remainder loop, are too few for another version.
    if whole.len() > MAX_OPS || whole.iter().any(|inst| is_shifted(&func.inst(*inst).op)) {
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
    (!is_certain || planned.plan.flat.is_some()).then_some(planned)
}

fn flat(func: &Function, Planned { ops, plan, .. }: &Planned, loops: &FxHashMap<Value, Loop>, facts: &mut AffineFacts) -> Option<Flat> {
    let mut late: SideTable<Inst, bool> = SideTable::new();
    ops.iter().filter(|inst| !plan.before.contains(inst)).for_each(|inst| late[*inst] = true);
    let is_usable = |value: Value| !matches!(func.def(value), Def::Result(inst, _) if late[inst]);
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
    // The version for tiles that are not full, and whether a tile for which it is not made is rare.
    let is_open = flat.is_none() && unless_empty.is_none() && plan.has_runs();
    let second = is_open.then(|| {
        let by_element = by_element::plan(func, ops, &plan, &results, facts).map(|plan| (plan, true));
        by_element.or_else(|| narrow::plan(func, ops, &plan, &results, facts).map(|plan| (plan, false)))
    });
    let second = second.flatten();
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
        let mut is_rare = false;
        let cond = if let Some(ragged) = ragged {
            let b = &mut Builder::new(func, front, loc);
            let further = flat.and_then(|flat| flat.ragged_test(b));
            let cond = all_of(b, fits.into_iter().chain(further));
            let values = ragged.write(func, &full(ops, &plan, true), &results, inner, facts, loc);
            Builder::new(func, inner, loc).yield_values(values);
            cond
        } else if let Some((second, is_last)) = &second {
            is_rare = *is_last;
            let mut map = Substitution::new();
            copy_insts(func, body, inner, &mut map);
            make_full(func, ops, inner, second, &mut map);
            let values = results.iter().map(|value| map.get(*value)).collect();
            Builder::new(func, inner, loc).yield_values(values);
            condition(&mut Builder::new(func, front, loc), second)
        } else {
            return region;
        };
        branch(func, front, cond, [inner, region], is_rare, &results, loc);
        front
    });
    let types: Vec<Type> = results.iter().map(|value| func.ty(*value).clone()).collect();
    let branch = func.make_inst(Op::If { cond, then_region: fast, else_region: guarded, rare: false }, types, loc);
    for (old, new) in results.iter().zip(func.inst(branch).results.clone()) {
        with.insert(*old, new);
    }
    replace(func, &remade, with);
    out.push(branch);
    out.extend(remade);
    out
}

/// Appends a branch to a region, which then yields what the branch yields in place of `results`.
fn branch(
    func: &mut Function,
    region: Region,
    cond: Value,
    [then_region, else_region]: [Region; 2],
    rare: bool,
    results: &[Value],
    loc: Loc,
) {
    let types: Vec<Type> = results.iter().map(|value| func.ty(*value).clone()).collect();
    let branch = func.append(region, Op::If { cond, then_region, else_region, rare }, types, loc);
    let values = func.inst(branch).results.to_vec();
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
    let is_before: FxHashSet<Inst> = before.iter().copied().collect();
    let inside: FxHashSet<Value> =
        ops.iter().filter(|inst| !is_before.contains(inst)).flat_map(|inst| &func.inst(*inst).results).copied().collect();
    let (mut results, mut remade, mut used) = (Vec::new(), Vec::new(), Vec::new());
    for inst in ops.iter().filter(|inst| !is_before.contains(inst)) {
        let data = func.inst(*inst).clone();
        if let (Op::Pointer { .. } | Op::View { .. }, [pointer]) = (&data.op, &data.results[..])
            && first_use(*pointer).is_some()
        {
            if let Op::Pointer { address } = &data.op
                && inside.contains(address)
                && !results.contains(address)
            {
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
    let addresses: FxHashSet<Value> = results.iter().copied().collect();
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
    let copy_of: FxHashMap<Inst, Inst> = ops.iter().copied().zip(copies).collect();
    let mut with = Substitution::new();
    let (mut constants, mut seen) = (Vec::new(), FxHashSet::default());
    let holding = plan.masks.iter().map(|(mask, _)| mask).chain(&plan.holding);
    for mask in holding.filter(|mask| seen.insert(**mask)) {
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
