//! The parts of a mask: conjuncts that are tested for a whole tile, ends that stay masks, and what is not known.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::affine::AffineFacts;
use crate::analysis::bounds::End;
use crate::analysis::loops::Loop;
use crate::analysis::masks::{self, Comparison, Condition, Conjunct};
use crate::analysis::polynomial::Polynomial;
use crate::dtype::Dtype;
use crate::ir::{CompareOp, Def, Function, Op, Type, Value};

use super::{Ragged, Sought, Test, WIDEST};

/// The most scalars that are searched for what an end is computed from.
const MOST_SCALARS: usize = 64;

/// The conjuncts of a mask, as far as they can be tested for a whole tile.
#[derive(Default)]
pub(super) struct Parts<'a> {
    /// Present if the last run that the mask keeps may be partial.
    loops: Option<&'a FxHashMap<Value, Loop>>,
    /// The masks that may end within the tile, wherever the tile begins.
    ragged: Ragged<'a>,
    /// Are there no runs, so that it does not matter where between two elements a mask ends?
    is_by_element: bool,
    /// The masks that end at a distance from the start of the tile. This needs a test that the distance does not overflow.
    pub(super) distances: Vec<(Value, Comparison)>,
    pub(super) tests: Vec<(Value, Test)>,
    /// The masks of the access's shape that the tests make hold.
    pub(super) holding: Vec<Value>,
    pub(super) ends: Vec<End>,
    /// The axes along which a conjunct of another kind may differ.
    partial: Vec<usize>,
    /// Does a conjunct differ along axes that are not tracked?
    is_scattered: bool,
}

impl<'a> Parts<'a> {
    /// The parts of an access's mask. Tests use only values that are known in front of the branch.
    pub(super) fn of(
        func: &Function,
        facts: &mut AffineFacts,
        mask: Value,
        is_early: &dyn Fn(Value) -> bool,
        sought: Sought<'a>,
    ) -> Parts<'a> {
        let Sought { loops, ragged, widest, .. } = sought;
        let (mut parts, extents) = (Parts { loops, ragged, is_by_element: widest == 0, ..Parts::default() }, func.ty(mask).extents());
        let mut kept = FxHashSet::default();
        for conjunct in masks::conjuncts(func, facts, mask) {
            if !parts.tests.iter().any(|(known, _)| *known == conjunct.mask) {
                parts.add(func, &conjunct, &extents, is_early);
            }
            if parts.tests.iter().any(|(known, _)| *known == conjunct.mask) {
                parts.holding.push(conjunct.whole);
            } else {
                kept.insert(conjunct.whole);
            }
        }
        // A mask of several conjuncts holds only if all of them do.
        parts.holding.retain(|whole| !kept.contains(whole));
        parts
    }

    fn add(&mut self, func: &Function, conjunct: &Conjunct, extents: &[usize], is_early: &dyn Fn(Value) -> bool) {
        let test = match &conjunct.condition {
            Condition::Uniform(value) if is_early(*value) => Some(Test::Uniform(*value)),
            // The predicate is not known in front of the branch, but the same for all elements. It stays in the mask.
            Condition::Uniform(_) => return,
            Condition::Comparison(comparison) if comparison.scalars().all(is_early) => Test::of(comparison),
            _ => None,
        };
        match (test, conjunct.along_axis(extents)) {
            (Some(Test::Order(Comparison { op, index, limit, .. }, _)), Some((_, axis)))
                if index.start.is(0)
                    && (op == CompareOp::Lt || op == CompareOp::Le && (self.is_by_element || self.is_partial(func, &limit))) =>
            {
                self.ends.push(End { is_inclusive: op == CompareOp::Le, ..End::below(axis, limit) });
            }
            // A shifted tile begins before its row. The elements there are in bounds like the others, and stay masked.
            (Some(Test::Order(Comparison { op: CompareOp::Ge, index: positions, .. }, _)), Some(_))
                if self.ragged == Ragged::Shifted && positions.start.is(0) => {}
            (Some(Test::Order(comparison @ Comparison { op: CompareOp::Lt, .. }, _)), Some((_, axis)))
                if self.ragged.includes(&comparison) =>
            {
                self.ends.push(End::below(axis, comparison.distance()));
                self.distances.push((conjunct.mask, comparison));
            }
            (Some(test), _) => self.tests.push((conjunct.mask, test)),
            (None, _) => self.unknown(&func.ty(conjunct.mask).extents(), conjunct.axes.as_deref()),
        }
    }

    /// May the last run before an end be partial, and is that to be expected?
    pub(super) fn is_partial(&self, func: &Function, end: &Polynomial) -> bool {
        self.ragged == Ragged::Shifted || self.loops.is_some_and(|loops| !is_of_arguments(func, loops, end))
    }

    /// Adds a conjunct of which only the axes are known.
    fn unknown(&mut self, extents: &[usize], axes: Option<&[usize]>) {
        match axes {
            Some(axes) => self.partial.extend(axes.iter().zip(extents).filter(|(_, extent)| **extent > 1).map(|(axis, _)| *axis)),
            None => self.is_scattered = true,
        }
    }

    /// Is the mask the same for all elements of a wide access along the axis, whatever the unknown conjuncts are?
    pub(super) fn is_whole_along(&self, axis: usize) -> bool {
        !self.is_scattered && !self.partial.contains(&axis)
    }
}

/// Is an end computed only from arguments, constants and the indices of loops over blocks, whose steps are multiples of wide accesses?
///
/// Masks end at arguments, such as the length of a row, which usually are multiples of wide accesses, also relative to a block. So the condition
/// requires it. In contrast, an end that depends on the program, as in a causal mask, takes every value.
fn is_of_arguments(func: &Function, loops: &FxHashMap<Value, Loop>, end: &Polynomial) -> bool {
    let is_of_blocks = |around: &Loop| around.step_divisor(func) % WIDEST == 0;
    let mut next: Vec<Value> = end.scalars().collect();
    let mut seen = FxHashSet::default();
    while let Some(value) = next.pop() {
        if !seen.insert(value) {
            continue;
        }
        let is_known = match func.def(value) {
            Def::Result(inst, _) => {
                let op = &func.inst(inst).op;
                op.for_each_operand(&mut |operand| next.push(operand));
                op.is_pure() && !matches!(op, Op::ProgramId { .. })
            }
            Def::Param(..) => loops.get(&value).is_some_and(is_of_blocks) || func.params.iter().any(|param| param.value == value),
        };
        if !is_known || seen.len() > MOST_SCALARS {
            return false;
        }
    }
    true
}

/// Can an access have partial runs? A load reads the elements of such a run that its mask excludes, too: that needs a test of their bounds,
/// and must not meet the writes of other programs.
pub(in crate::passes) fn takes_partial_runs(func: &Function, op: &Op) -> bool {
    match op {
        Op::Load { base, volatile: false, .. } => {
            matches!(func.ty(*base), Type::Pointer { mutable: false, .. }) && func.ty(*base).dtype() != Dtype::Bool && !func.unchecked
        }
        Op::Store { .. } => true,
        _ => false,
    }
}
