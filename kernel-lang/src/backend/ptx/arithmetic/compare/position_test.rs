//! Which comparisons are tests of positions, and which are bounds checks.

use std::rc::Rc;

use rustc_hash::FxHashSet;

use crate::analysis::affine::{Affine, AffineFacts};
use crate::analysis::bits::Bits;
use crate::analysis::masks::{self, Comparison};
use crate::analysis::polynomial::Polynomial;
use crate::dtype::Dtype;
use crate::ir::{CompareOp, Function, Op, Value};

/// A comparison of tile indices, which fit into 31 bits, with a limit that is the same for every element.
pub(crate) struct PositionTest {
    pub(super) op: CompareOp,
    pub(super) position: Rc<Affine>,
    pub(super) limit: Polynomial,
    /// The index of position 0, which is neither negative nor above 2^62.
    pub(super) begin: Polynomial,
}

impl PositionTest {
    /// The comparison as a test of positions. `kept` are the results of comparisons that are not tests of blocks: see [`of_several_blocks`].
    pub(crate) fn of(func: &Function, facts: &mut AffineFacts, op: &Op, result: Value, kept: &FxHashSet<Value>) -> Option<PositionTest> {
        let comparison = if func.ty(result).is_tile() { Comparison::of(func, facts, op)? } else { return None };
        let Comparison { op, index: mut position, extents, mut limit, scalar } = comparison;
        // A limit that an op has computed already is not recomputed from its terms.
        if let Some(scalar) = scalar.filter(|_| limit.as_constant().is_none()) {
            limit = Polynomial::scalar(scalar);
        }
        // `start + i == n` holds exactly where `i == n - start` does, even if a sum wraps around.
        if matches!(op, CompareOp::Eq | CompareOp::Ne) {
            limit = limit.minus(&position.start);
            Rc::make_mut(&mut position).start = Polynomial::constant(0);
        }
        // In `program * 64 + i < n`, `i` is compared with `n - program * 64`.
        let mut begin = Polynomial { constant: 0, ..position.start.clone() };
        if !begin.is(0) && !kept.contains(&result) && Bits::default().are_few(func, &position.start) {
            let constant = position.start.constant;
            Rc::make_mut(&mut position).start = Polynomial::constant(constant);
        } else {
            begin = Polynomial::constant(0);
        }
        let is_position = position.start.as_constant().is_some_and(|start| (0..1 << 30).contains(&start));
        let is_small = position.maximum_offset(&extents).is_some_and(|maximum| maximum < 1 << 30);
        (is_position && is_small && !position.is_uniform()).then_some(PositionTest { op, position, limit, begin })
    }

    /// The scalars from which the comparison is computed.
    pub(crate) fn operands(&self) -> impl Iterator<Item = Value> {
        self.limit.scalars().chain(self.begin.scalars())
    }
}

/// The comparisons of blocks of which a mask combines several, such as the rows and the columns of a tile at any place. Tested at each use, they let the driver's
/// compiler load the whole tile at once: a transpose of 64 x 64 elements then took 95 registers instead of 56.
pub(crate) fn of_several_blocks(func: &Function, facts: &mut AffineFacts) -> FxHashSet<Value> {
    let (mut several, none) = (FxHashSet::default(), FxHashSet::default());
    let masks: FxHashSet<Value> = func.all_insts().into_iter().filter_map(|inst| func.inst(inst).op.access()?.mask).collect();
    for mask in masks {
        let conjuncts = masks::conjuncts(func, facts, mask).into_iter().map(|conjunct| conjunct.mask);
        let blocks = conjuncts.filter(|mask| {
            let test = func.def_op(*mask).and_then(|op| PositionTest::of(func, facts, op, *mask, &none));
            test.is_some_and(|test| !test.begin.is(0))
        });
        let blocks: Vec<Value> = blocks.collect();
        several.extend(blocks.iter().filter(|_| blocks.len() > 1));
    }
    several
}

/// The indices and the length of a bounds check: whether a tile of indices lies inside a tensor.
pub(crate) fn bounds_test(func: &Function, facts: &mut AffineFacts, op: &Op) -> Option<(Value, Rc<Affine>, Value)> {
    let &Op::Compare { op: CompareOp::Lt, lhs, rhs } = op else { return None };
    let (Some(&Op::Bitcast { x: index }), Some(&Op::Broadcast { x: length })) = (func.def_op(lhs), func.def_op(rhs)) else { return None };
    let is_test = func.ty(index).is_tile() && func.ty(lhs).dtype() == Dtype::U64 && func.ty(length).is_scalar();
    Some((index, facts.get(func, index).filter(|_| is_test)?, length))
}
