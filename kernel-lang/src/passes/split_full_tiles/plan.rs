//! The plan of a full tile: what must hold, so that its accesses need no masks and can be wide.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::affine::{Affine, AffineFacts};
use crate::analysis::bounds::Bound;
use crate::analysis::loops::Loop;
use crate::analysis::masks::Comparison;
use crate::analysis::polynomial::Polynomial;
use crate::ir::{Access, CompareOp, Function, Inst, Op, SideTable, Value};
use crate::passes::flat_indices::Flat;

use super::WIDEST;
use super::parts::{Parts, takes_partial_runs};

/// The conditions for a full straight-line region, and their effects.
#[derive(Default)]
pub(in crate::passes) struct Plan {
    /// Accesses whose elements must all be in bounds, or masked off.
    pub(in crate::passes) bounds: Vec<Bound>,
    /// The bytes of a run.
    pub(super) widest: i64,
    /// Accesses whose address must be divisible by `widest`: the base, the offset, and the bytes of an element.
    pub(in crate::passes) aligned: Vec<(Value, Rc<Affine>, i64)>,
    /// Comparisons that must hold for every element, and that are then dropped.
    pub(in crate::passes) masks: Vec<(Value, Test)>,
    /// The same masks in the shapes of accesses, which may have been made in front of a loop.
    pub(super) holding: Vec<Value>,
    /// Comparisons that end within the tile. Their starts and limits must be small, so that the distances between them do not overflow.
    pub(super) distances: Vec<(Value, Comparison)>,
    /// Must the distances of these ends fit in 32 bits? A loop then needs no 64-bit arithmetic for its masks.
    pub(in crate::passes) has_short_distances: bool,
    /// Numbers that must be divisible by others, so that masks end, and rows begin, at boundaries of wide accesses.
    pub(in crate::passes) divisible: Vec<(Polynomial, i64)>,
    /// The accesses, and how each may move its elements.
    pub(in crate::passes) accesses: FxHashMap<Inst, Width>,
    /// Pure ops that can be computed in front of the branch.
    pub(super) before: Vec<Inst>,
    /// The flattened indices, if the region divides indices.
    pub(super) flat: Option<Flat>,
}

impl Plan {
    /// Does it have no conditions?
    pub(super) fn is_certain(&self) -> bool {
        self.bounds.is_empty() && self.masks.is_empty() && self.distances.is_empty() && self.aligned.is_empty() && self.divisible.is_empty()
    }

    /// Does it make any access move several elements at once?
    pub(super) fn has_runs(&self) -> bool {
        self.accesses.values().any(|width| *width == Width::Runs)
    }

    /// The comparisons that end within the tile.
    pub(in crate::passes) fn distances(&self) -> impl Iterator<Item = &Comparison> {
        self.distances.iter().map(|(_, comparison)| comparison)
    }

    /// Where the condition requires for another access that an end is a multiple, no run before it is partial.
    fn forget_partial_runs(&mut self, partial: &FxHashMap<Inst, Vec<(Polynomial, i64)>>) {
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
pub(in crate::passes) enum Width {
    /// One by one.
    Elements,
    /// In runs of as many bytes as the plan says. The mask is the same for all elements of a run.
    Runs,
    /// In runs. The last run that the mask keeps may be partial: the mask may hold for only its first elements. In a shifted tile, the first run may be partial, too.
    PartialRuns,
}

/// A condition under which a conjunct of a mask holds for the whole tile.
pub(in crate::passes) enum Test {
    /// `start + t < limit`, or another order, for every sum `t` of the stride terms: from 0 to the second field.
    Order(Comparison, i64),
    /// A predicate that is the same for every element.
    Uniform(Value),
}

impl Test {
    /// The test of a comparison, if there is one.
    pub(super) fn of(comparison: &Comparison) -> Option<Test> {
        let maximum = comparison.index.maximum_offset(&comparison.extents)?;
        (!matches!(comparison.op, CompareOp::Eq | CompareOp::Ne)).then(|| Test::Order(comparison.clone(), maximum))
    }
}

/// The plan of a region whose tiles are known to be full: it has no conditions.
pub(super) fn certain(func: &Function, ops: &[Inst]) -> Plan {
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
pub(in crate::passes) struct Sought<'a> {
    /// The bytes of a run.
    pub(super) widest: i64,
    /// The loops around the region. Without them, masks end at boundaries of runs.
    pub(super) loops: Option<&'a FxHashMap<Value, Loop>>,
    /// The masks that may end within a tile, wherever it begins.
    pub(super) ragged: Ragged<'a>,
    /// Are scalars that are accessed to be in bounds, too? One test in front of a loop then replaces a test in each iteration.
    pub(super) scalars: bool,
}

/// Which masks may end within a tile.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Ragged<'a> {
    /// None.
    #[default]
    Never,
    /// Those that end at this number.
    At(&'a Polynomial),
    /// All.
    Anywhere,
    /// All. A shifted tile also has a mask that begins within the tile.
    Shifted,
}

impl Ragged<'_> {
    pub(super) fn includes(self, comparison: &Comparison) -> bool {
        match self {
            Ragged::Never => false,
            Ragged::At(end) => comparison.limit == *end,
            Ragged::Anywhere | Ragged::Shifted => true,
        }
    }
}

impl Sought<'_> {
    /// The widest accesses.
    pub(in crate::passes) const WIDEST: Sought<'static> = Sought { widest: WIDEST, loops: None, ragged: Ragged::Never, scalars: false };
    /// The widest accesses, with masks that may end within a tile if they end at this number.
    pub(in crate::passes) fn ending_at(end: &Polynomial) -> Sought<'_> {
        Sought { ragged: Ragged::At(end), ..Sought::WIDEST }
    }

    /// The same, with accesses of one element in bounds.
    pub(in crate::passes) fn and_scalars(self) -> Self {
        Sought { scalars: true, ..self }
    }

    /// Accesses of single elements, none of which is wide, with masks that may end anywhere.
    pub(in crate::passes) const ELEMENTS: Sought<'static> = Sought { widest: 0, loops: None, ragged: Ragged::Anywhere, scalars: false };
}

/// The conditions for a full straight-line region. The conditions use only values that are `usable`.
pub(in crate::passes) fn plan(
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
    let (mut bounds, mut aligned, mut masks, mut distances) =
        (FxHashSet::default(), FxHashSet::default(), FxHashSet::default(), FxHashSet::default());
    let mut partial: FxHashMap<Inst, Vec<(Polynomial, i64)>> = FxHashMap::default();
    for inst in ops {
        let Some(access @ Access { base, offset, mask, in_bounds: false, .. }) = func.inst(*inst).op.access() else { continue };
        if !is_early(base) {
            continue;
        }
        let ty = func.ty(offset);
        let is_sought = ty.is_tile() || sought.scalars && mask.is_none();
        let Some(affine) = facts.get(func, offset).filter(|affine| is_sought && affine.scalars().all(is_early)) else { continue };
        let extents = ty.extents();
        let loops = sought.loops.filter(|_| takes_partial_runs(func, &func.inst(*inst).op));
        let ragged = if is_shifted(&func.inst(*inst).op) { Ragged::Shifted } else { sought.ragged };
        let mut parts = mask.map_or(Parts::default(), |mask| Parts::of(func, facts, mask, &is_early, Sought { loops, ragged, ..sought }));
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
        plan.holding.extend(parts.holding);
    }
    plan.forget_partial_runs(&partial);
    let is_tile = |inst: &Inst| func.inst(*inst).op.access().is_some_and(|access| func.ty(access.offset).is_tile());
    plan.accesses.keys().any(is_tile).then_some(plan)
}

/// Is it an access of a shifted tile?
pub(in crate::passes) fn is_shifted(op: &Op) -> bool {
    matches!(op, Op::Load { shifted: true, .. } | Op::Store { shifted: true, .. })
}

/// The innermost axis along which addresses are consecutive and that has at least one wide access. The strides of all other axes must be
/// multiples of `widest` bytes, so that each run along the axis has the alignment of the first run. A stride that is not known counts as
/// such a multiple: the caller adds it to [`Plan::divisible`], and the condition tests it. No access is wide if `widest` is less than an element.
fn run_axis(affine: &Affine, extents: &[usize], bytes: i64, widest: i64) -> Option<usize> {
    if widest < bytes {
        return None;
    }
    let runs = |axis: &usize| affine.strides[*axis].is(1) && extents[*axis] as i64 * bytes >= widest;
    let fastest = (0..extents.len()).rev().find(runs)?;
    let keeps_alignment = |axis: usize| {
        let step = affine.strides[axis].as_constant().unwrap_or(0);
        axis == fastest || extents[axis] == 1 || step.wrapping_mul(bytes) % widest == 0
    };
    (0..extents.len()).all(keeps_alignment).then_some(fastest)
}
