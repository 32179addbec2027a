//! The end of a loop over slices: no element behind the limit of a mask is stored, so the loop does not go on behind it.
//!
//! ```text
//! %at = add (broadcast %start), (arange 0 .. 1024)       for 0 .. min(1024, %n - %start) {
//! %mask = lt %at, (broadcast %n)                             a slice of each tile
//! store %y, %at, %v {mask = %mask}                       }
//! ```
//!
//! This needs such a comparison in the mask of each store. If the comparisons differ, the loop goes on to the last end. A checked launch reports loads out of
//! bounds that no store needs, so its loop goes to the end of the tile.

use crate::analysis::affine::AffineFacts;
use crate::analysis::masks::{self, Condition, Conjunct};
use crate::analysis::polynomial::Polynomial;
use crate::dtype::Dtype;
use crate::ir::{BinaryOp, Builder, CompareOp, Function, Inst, Op, Value};

/// More ends than this cost more than slices that store nothing.
const MOST_ENDS: usize = 4;

/// An index that is computed from more tiles has no end.
const MOST_PARTS: usize = 64;

/// The end of the positions that a store keeps along the sliced axis: those with `start + position < limit`.
#[derive(PartialEq)]
pub(super) struct End {
    start: Number,
    limit: Number,
    /// The extent of the axis.
    extent: usize,
}

/// One side of a comparison, which is the same for all positions.
#[derive(PartialEq)]
enum Number {
    /// Of 64 bits.
    Wide(Polynomial),
    /// A scalar of 32 bits, in the version of a tile that computes its indices in 32 bits.
    Narrow(Value),
}

impl Number {
    fn value(&self, b: &mut Builder<'_>) -> Value {
        match self {
            Number::Wide(number) => number.value(b),
            Number::Narrow(scalar) => b.cast(*scalar, Dtype::I64),
        }
    }

    /// The largest number of the type.
    fn largest(&self) -> i128 {
        match self {
            Number::Wide(_) => i64::MAX.into(),
            Number::Narrow(_) => i32::MAX.into(),
        }
    }
}

impl End {
    /// The end that a conjunct of a mask states along an axis of a tile with these extents.
    fn of(func: &Function, facts: &mut AffineFacts, conjunct: &Conjunct, axis: usize, extents: &[usize]) -> Option<End> {
        let extent = extents[axis];
        if let Some((comparison, along)) = conjunct.along_axis(extents) {
            let (start, limit) = (Number::Wide(comparison.index.start.clone()), Number::Wide(comparison.limit.clone()));
            return (comparison.op == CompareOp::Lt && along == axis).then_some(End { start, limit, extent });
        }
        let (Condition::Unknown, Some(axes)) = (&conjunct.condition, &conjunct.axes) else { return None };
        let Op::Compare { op: CompareOp::Lt, lhs, rhs } = *func.def_op(conjunct.mask)? else { return None };
        let own = axes.iter().position(|along| *along == axis)?;
        if func.ty(lhs).dtype() != Dtype::I32 || func.ty(lhs).extents()[own] != extent {
            return None;
        }
        let (index, limit) = (sum(func, facts, lhs, own)?, sum(func, facts, rhs, own)?);
        let is_end = index.has_position && !limit.has_position;
        is_end.then_some(End { start: Number::Narrow(index.scalar?), limit: Number::Narrow(limit.scalar?), extent })
    }

    /// Appends the number of positions that are kept.
    fn positions(&self, b: &mut Builder<'_>) -> Value {
        let extent = self.extent as i128;
        let (start, limit) = (self.start.value(b), self.limit.value(b));
        let (zero, all, last) = (b.index(0), b.index(extent), b.index(self.start.largest() - extent));
        // From a start that is not negative, neither a position nor the difference overflows.
        let limit = b.binary(BinaryOp::Max, limit, zero);
        let distance = b.binary(BinaryOp::Sub, limit, start);
        let positions = b.binary(BinaryOp::Min, distance, all);
        let (is_natural, is_low) = (b.compare(CompareOp::Ge, start, zero), b.compare(CompareOp::Le, start, last));
        let is_exact = b.binary(BinaryOp::And, is_natural, is_low);
        b.select(is_exact, positions, all)
    }
}

/// A tile of 32-bit indices as a sum.
#[derive(Default)]
struct Sum {
    /// A scalar that all elements share.
    scalar: Option<Value>,
    /// Is the other term the position along the axis? Otherwise there is none.
    has_position: bool,
}

/// A tile as the sum of a scalar and the position along an axis, or as one of both.
fn sum(func: &Function, facts: &mut AffineFacts, tile: Value, axis: usize) -> Option<Sum> {
    let mut sum = Sum::default();
    let mut parts = vec![(tile, axis)];
    for _ in 0..MOST_PARTS {
        let Some((part, axis)) = parts.pop() else { return Some(sum) };
        match *func.def_op(part)? {
            Op::Binary { op: BinaryOp::Add, lhs, rhs } => parts.extend([(rhs, axis), (lhs, axis)]),
            Op::Binary { op: BinaryOp::Mul, lhs, rhs } if func.splat(rhs).and_then(|factor| factor.as_int()) == Some(1) => {
                parts.push((lhs, axis));
            }
            Op::Broadcast { x } if func.ty(x).is_scalar() && sum.scalar.is_none() => sum.scalar = Some(x),
            Op::Broadcast { x } if func.ty(x).extents().get(axis) == func.ty(part).extents().get(axis) => parts.push((x, axis)),
            Op::ExpandDims { x, axis: new } if axis != new as usize => parts.push((x, axis - usize::from(axis > new as usize))),
            Op::Cast { x } if func.ty(x).is_tile() => {
                let index = facts.get(func, x)?;
                let extents = func.ty(x).extents();
                let steps = || index.strides.iter().enumerate().filter(|(other, _)| extents[*other] > 1);
                let is_along = |step: i64| steps().all(|(other, stride)| stride.is(if other == axis { step } else { 0 }));
                let is_position = is_along(1);
                if !index.start.is(0) || !(is_along(0) || is_position && !sum.has_position) {
                    return None;
                }
                sum.has_position |= is_position;
            }
            _ => return None,
        }
    }
    None
}

/// Ends such that each store keeps no position behind one of them. None if a store has no end.
pub(super) fn find(func: &Function, insts: &[Inst], axis_of: &dyn Fn(Value) -> Option<usize>, facts: &mut AffineFacts) -> Option<Vec<End>> {
    if func.reports {
        return None;
    }
    let mut of_stores: Vec<Vec<End>> = Vec::new();
    for inst in insts {
        let Op::Store { offset, mask, .. } = func.inst(*inst).op else { continue };
        let (axis, extents) = (axis_of(offset)?, func.ty(offset).extents());
        let conjuncts = masks::conjuncts(func, facts, mask?);
        of_stores.push(conjuncts.iter().filter_map(|conjunct| End::of(func, facts, conjunct, axis, &extents)).collect());
    }
    let mut ends = Vec::new();
    while !of_stores.is_empty() {
        // The end that most stores have, the first of these.
        let shared = |end: &End| of_stores.iter().filter(|own| own.contains(end)).count();
        let counts: Vec<usize> = of_stores[0].iter().map(shared).collect();
        let most = counts.iter().copied().max()?;
        let at = counts.iter().position(|count| *count == most)?;
        let end = of_stores[0].swap_remove(at);
        of_stores.remove(0);
        of_stores.retain(|own| !own.contains(&end));
        ends.push(end);
    }
    (1..=MOST_ENDS).contains(&ends.len()).then_some(ends)
}

/// Appends the number of slices up to the last end, of tiles that are cut into so many.
pub(super) fn slices(b: &mut Builder<'_>, ends: &[End], slices: usize) -> Value {
    let counts = ends.iter().map(|end| {
        let length = end.extent / slices;
        let positions = end.positions(b);
        let begun = b.index(length as i128 - 1);
        let begun = b.binary(BinaryOp::Add, positions, begun);
        // Extents are powers of two. A negative number of positions stays less than one slice.
        let shift = b.index(length.trailing_zeros().into());
        b.binary(BinaryOp::Shr, begun, shift)
    });
    let counts: Vec<Value> = counts.collect();
    largest(b, counts)
}

/// Appends the number of positions up to the last end.
pub(super) fn positions(b: &mut Builder<'_>, ends: &[End]) -> Value {
    let counts = ends.iter().map(|end| end.positions(b)).collect();
    largest(b, counts)
}

fn largest(b: &mut Builder<'_>, counts: Vec<Value>) -> Value {
    counts.into_iter().reduce(|one, other| b.binary(BinaryOp::Max, one, other)).expect("there is an end")
}
