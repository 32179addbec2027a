//! Masks: the conjuncts of an access's mask, and the comparisons of indices among them.
//!
//! ```text
//! %rows = lt (%i + positions), (broadcast %m)      : tile<bool, [4]>
//! %3 = broadcast (expand_dims %rows {axis = 1})    : tile<bool, [4, 64]>
//! %4 = broadcast %flag                             : tile<bool, [4, 64]>
//! %5 = and %3, %4
//! %6 = and %5, %loaded
//!
//! conjunct of %6   whole     axes   condition
//! %rows            %3        0      `%i + position < %m`
//! %4               %4        0, 1   uniform: %flag
//! %loaded          %loaded   0, 1   unknown
//! ```
//!
//! A mask is split at each `and`, also behind ops that only change its shape. The users of the analysis decide which conjuncts they test for
//! a whole tile, and which ones remain masks.

use std::rc::Rc;

use rustc_hash::FxHashSet;

use crate::analysis::affine::{Affine, AffineFacts};
use crate::analysis::polynomial::Polynomial;
use crate::ir::{BinaryOp, CompareOp, Function, Op, Value, axes};

/// The limit on the masks visited. In a longer conjunction, nothing is known of the remaining conjuncts.
pub const MOST_PARTS: usize = 64;

/// A mask that holds wherever the mask of the access holds.
#[derive(Clone, Debug)]
pub struct Conjunct {
    /// The mask. It may lack axes of the access, or have them in another order.
    pub mask: Value,
    /// The largest conjunct of the access's shape that contains this one: the mask itself, or the result of the ops that change its shape.
    pub whole: Value,
    /// For each axis of the mask, the access's axis. `None` if the axes do not correspond, as after a `reshape`.
    pub axes: Option<Vec<usize>>,
    /// What the mask tests.
    pub condition: Condition,
}

/// What a conjunct tests.
#[derive(Clone, Debug)]
pub enum Condition {
    /// A predicate that is the same for every element.
    Uniform(Value),
    /// A comparison of affine indices.
    Comparison(Comparison),
    /// Nothing is known.
    Unknown,
}

/// A comparison of an affine index with a limit that is the same for every element: `start + sum of stride terms < limit`.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The operator. The index is its left operand.
    pub op: CompareOp,
    /// The index.
    pub index: Rc<Affine>,
    /// The extents of the tile of indices.
    pub extents: Vec<usize>,
    /// The limit.
    pub limit: Polynomial,
    /// The scalar that is broadcast to give the limit, if an op has computed one.
    pub scalar: Option<Value>,
}

/// The conjuncts of an access's mask: it holds exactly where all of them hold. Each appears once, in the order of the operands.
pub fn conjuncts(func: &Function, facts: &mut AffineFacts, mask: Value) -> Vec<Conjunct> {
    let (mut found, mut seen) = (Vec::new(), FxHashSet::default());
    let all: Vec<usize> = (0..func.ty(mask).shape().len()).collect();
    let mut next = vec![(mask, mask, Some(all))];
    while let Some((mask, whole, axes)) = next.pop() {
        if !seen.insert((mask, axes.clone())) {
            continue;
        }
        let condition = match func.def_op(mask).filter(|_| seen.len() <= MOST_PARTS) {
            Some(Op::Binary { op: BinaryOp::And, lhs, rhs }) => {
                next.extend([*rhs, *lhs].map(|side| (side, if whole == mask { side } else { whole }, axes.clone())));
                continue;
            }
            // A broadcast mask holds where its operand holds, whatever the shape.
            Some(
                op @ (Op::Broadcast { x } | Op::ExpandDims { x, .. } | Op::Permute { x, .. } | Op::Reshape { x } | Op::Flip { x, .. }),
            ) if func.ty(*x).is_tile() => {
                next.push((*x, whole, axes.and_then(|axes| axes::of_operand(op, &axes))));
                continue;
            }
            Some(Op::Broadcast { x }) => Condition::Uniform(*x),
            Some(op) => Comparison::of(func, facts, op).map_or(Condition::Unknown, Condition::Comparison),
            None => Condition::Unknown,
        };
        found.push(Conjunct { mask, whole, axes, condition });
    }
    found
}

impl Conjunct {
    /// The comparison and the axis of the access, if this is a comparison whose index is `start + position along that axis`. `extents` are
    /// those of the access.
    pub fn along_axis(&self, extents: &[usize]) -> Option<(&Comparison, usize)> {
        let (Condition::Comparison(comparison), Some(axes)) = (&self.condition, &self.axes) else { return None };
        let strides = &comparison.index.strides;
        let own = strides.iter().position(|stride| stride.is(1))?;
        let is_alone = strides.iter().enumerate().all(|(other, stride)| other == own || stride.is(0));
        // If the axis is a broadcast of one position, it says nothing about the element's position.
        (is_alone && comparison.extents[own] == extents[axes[own]]).then_some((comparison, axes[own]))
    }
}

impl Comparison {
    /// An op as a comparison. If only its right operand differs between elements, that is the index, and the operator is swapped.
    pub fn of(func: &Function, facts: &mut AffineFacts, op: &Op) -> Option<Comparison> {
        let &Op::Compare { mut op, lhs, rhs } = op else { return None };
        let (mut index, mut limit, mut scalar) = (facts.get(func, lhs)?, facts.get(func, rhs)?, rhs);
        if index.is_uniform() && !limit.is_uniform() {
            (index, limit, scalar, op) = (limit, index, lhs, op.swapped());
        }
        let scalar = match func.def_op(scalar) {
            Some(Op::Broadcast { x }) if func.ty(*x).is_scalar() => Some(*x),
            _ => None,
        };
        limit.is_uniform().then(|| Comparison { op, index, extents: func.ty(lhs).extents(), limit: limit.start.clone(), scalar })
    }

    /// The number of positions from the start of the index to the limit, if neither the start nor the difference overflows.
    pub fn distance(&self) -> Polynomial {
        self.limit.minus(&self.index.start)
    }

    /// The scalars from which the comparison is computed.
    pub fn scalars(&self) -> impl Iterator<Item = Value> {
        self.index.scalars().chain(self.limit.scalars())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The function, and its last value but for the terminator.
    fn function(params: &str, body: &str) -> (Function, Value) {
        let func = crate::ir::parse(&format!("kernel @k({params}) {{\n{body}return\n}}")).expect("it is well formed");
        let insts = &func.region(func.body).insts;
        let last = func.result(insts[insts.len() - 2]);
        (func, last)
    }

    /// `%m2 = and %m1, %m0`, `%m3 = and %m2, %m1`, and so on up to `depth` masks: each is the conjunction of the two masks before it.
    fn shared(depth: usize) -> (Function, Value) {
        let lines: String = (2..depth).map(|at| format!("%m{at} = and %m{}, %m{} : bool\n", at - 1, at - 2)).collect();
        function("%m0: bool, %m1: bool", &lines)
    }

    #[test]
    fn parts_that_are_shared_count_once() {
        let (func, last) = shared(50);
        let mut parts: Vec<Value> = conjuncts(&func, &mut AffineFacts::new(), last).into_iter().map(|conjunct| conjunct.mask).collect();
        parts.sort_unstable();
        assert_eq!(parts, func.params.iter().map(|param| param.value).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_long_is_taken_apart_in_part() {
        let (func, last) = shared(1000);
        assert!(conjuncts(&func, &mut AffineFacts::new(), last).len() <= MOST_PARTS);
    }

    #[test]
    fn shapes_in_between_do_not_multiply_the_parts() {
        // Each mask is the conjunction of the one before and of its transpose: two ways to each mask, one for each order of the axes.
        let lines = (1..500).map(|at| {
            let before = at - 1;
            format!(
                "%t{at} = permute %m{before} {{order = [1, 0]}} : tile<bool, [8, 8]>\n%m{at} = and %m{before}, %t{at} : tile<bool, [8, 8]>\n"
            )
        });
        let (func, last) = function("%m0: tile<bool, [8, 8]>", &lines.collect::<String>());
        assert!(conjuncts(&func, &mut AffineFacts::new(), last).len() <= MOST_PARTS + 1);
    }

    #[test]
    fn comparisons_are_related_to_the_axes_of_the_access() {
        let (func, last) = function(
            "%i: i64, %m: i64, %flag: bool, %loaded: tile<bool, [64, 4]>",
            "%0 = arange {start = 0, end = 4} : tile<i64, [4]>
            %1 = broadcast %i : tile<i64, [4]>
            %2 = add %1, %0 : tile<i64, [4]>
            %3 = broadcast %m : tile<i64, [4]>
            %4 = gt %3, %2 : tile<bool, [4]>
            %5 = broadcast %flag : tile<bool, [4]>
            %6 = and %4, %5 : tile<bool, [4]>
            %7 = expand_dims %6 {axis = 1} : tile<bool, [4, 1]>
            %8 = broadcast %7 : tile<bool, [4, 64]>
            %9 = permute %8 {order = [1, 0]} : tile<bool, [64, 4]>
            %10 = reshape %4 : tile<bool, [1, 4]>
            %11 = broadcast %10 : tile<bool, [64, 4]>
            %12 = and %9, %11 : tile<bool, [64, 4]>
            %13 = and %12, %loaded : tile<bool, [64, 4]>\n",
        );
        let insts = &func.region(func.body).insts;
        let value = |at: usize| func.result(insts[at]);
        let found = conjuncts(&func, &mut AffineFacts::new(), last);
        let places: Vec<_> = found.iter().map(|conjunct| (conjunct.mask, conjunct.whole, conjunct.axes.clone())).collect();
        let loaded = func.params[3].value;
        let expected = [
            (value(4), value(9), Some(vec![1])),
            (value(5), value(9), Some(vec![1])),
            (value(4), value(11), None),
            (loaded, loaded, Some(vec![0, 1])),
        ];
        assert_eq!(places, expected);
        let (comparison, axis) = found[0].along_axis(&[64, 4]).expect("it compares `%i` and a position");
        let limit = func.params[1].value;
        assert_eq!((axis, comparison.op, comparison.scalar), (1, CompareOp::Lt, Some(limit)));
        assert_eq!((&comparison.index.start, &comparison.limit), (&Polynomial::scalar(func.params[0].value), &Polynomial::scalar(limit)));
        assert!(matches!(found[1].condition, Condition::Uniform(flag) if flag == func.params[2].value));
        assert!(found[2].along_axis(&[64, 4]).is_none(), "the axes do not correspond");
        assert!(matches!(found[3].condition, Condition::Unknown));
    }

    #[test]
    fn a_position_that_is_broadcast_is_not_the_elements() {
        let (func, last) = function(
            "%n: i64",
            "%0 = arange {start = 0, end = 1} : tile<i64, [1]>
            %1 = broadcast %n : tile<i64, [1]>
            %2 = lt %0, %1 : tile<bool, [1]>
            %3 = broadcast %2 : tile<bool, [8]>\n",
        );
        let found = conjuncts(&func, &mut AffineFacts::new(), last);
        assert!(found[0].along_axis(&[1]).is_some() && found[0].along_axis(&[8]).is_none());
    }
}
