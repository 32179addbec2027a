//! Box masks: accesses whose mask selects a box of the tile: rows `start + i < m`, columns `start + j < n`.
//!
//! If the corners of the box are in bounds, so are all its elements, and no element's index is checked. The mask then compares the
//! element's position with the number of rows or columns, in 32 bits.
//!
//! ```text
//! %rows = add (broadcast %start), (arange 0 .. 64)     %count = sub (max %m, 0), %start
//! load %x, %at {mask = %rows < %m}                     if %box_is_in_bounds {
//!                                                          load %x, %at {mask = (arange 0 .. 64) < %count, in_bounds = true}
//!                                                      } {
//!                                                          load %x, %at {mask = %rows < %m and %at is in bounds, in_bounds = true}
//!                                                      }
//! ```
//!
//! The second copy serves kernels that leave their tensor on purpose, and numbers near the ends of `i64`.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::analysis::affine::{Affine, AffineFacts, positions};
use crate::analysis::bounds::{self, Bound, End};
use crate::analysis::masks::{Conjunct, MOST_PARTS};
use crate::analysis::polynomial::Polynomial;
use crate::ir::{Access, BinaryOp, Builder, CompareOp, Function, Inst, Op, Value, postorder};

/// The start of a box must be less than this, so that its sum with an element's position does not overflow.
const FARTHEST: i64 = 1 << 62;

/// The box that a mask selects.
#[derive(Default)]
pub(super) struct Corners {
    index: Rc<Affine>,
    extents: Vec<usize>,
    uppers: Vec<Side>,
    lowers: Vec<Side>,
    /// The conjuncts of the mask that do not only bound the box.
    rest: Vec<Value>,
}

/// A comparison of `start + position along the axis` with a number.
struct Side {
    axis: usize,
    start: Polynomial,
    end: Polynomial,
}

/// The box of an access whose mask has these conjuncts, if its index is affine and a test can decide whether the box is in bounds.
pub(super) fn find(func: &Function, facts: &mut AffineFacts, access: Access, conjuncts: &[Conjunct]) -> Option<Corners> {
    let ty = func.ty(access.offset);
    let index = facts.get(func, access.offset).filter(|_| ty.is_tile())?;
    let extents = ty.extents();
    Bound::of(access.base, &index, &extents, Vec::new())?;
    let mut corners = Corners { index, extents, ..Corners::default() };
    conjuncts.iter().for_each(|conjunct| corners.add(conjunct));
    Some(corners)
}

impl Corners {
    /// Adds a side of the box, or a conjunct that does not bound it.
    fn add(&mut self, conjunct: &Conjunct) {
        let side = conjunct
            .along_axis(&self.extents)
            .map(|(comparison, axis)| (comparison.op, Side { axis, start: comparison.index.start.clone(), end: comparison.limit.clone() }));
        match side {
            Some((CompareOp::Lt, side)) => self.uppers.push(side),
            Some((CompareOp::Ge, side)) => self.lowers.push(side),
            _ if !self.rest.contains(&conjunct.whole) => self.rest.push(conjunct.whole),
            _ => {}
        }
    }

    /// Replaces the access by a branch: one copy for a box in bounds, one for a box of which this is not known.
    pub(super) fn split(&self, b: &mut Builder<'_>, inst: Inst, access: Access) {
        let mut tests = Vec::new();
        for side in self.uppers.iter().chain(&self.lowers) {
            if !side.start.as_constant().is_some_and(|start| (0..FARTHEST).contains(&start)) {
                let start = side.start.value(b);
                tests.push(bounds::is_below(b, start, FARTHEST));
            }
        }
        for side in &self.lowers {
            let (start, end) = (side.start.value(b), side.end.value(b));
            tests.push(b.compare(CompareOp::Ge, start, end));
        }
        let ends: Vec<End> = self.uppers.iter().map(|side| End::below(side.axis, Polynomial::scalar(side.count(b)))).collect();
        let ty = b.func.ty(access.offset).clone();
        let bound = Bound::of(access.base, &self.index, &self.extents, ends.clone()).expect("it was found testable");
        tests.extend(bounds::tests(b, &[bound]));
        tests.dedup();
        let cond = tests.into_iter().reduce(|all, test| b.binary(BinaryOp::And, all, test)).expect("a bound is tested");

        let [inside, guarded] = [true, false].map(|is_inside| {
            let region = b.func.add_region();
            let r = &mut Builder::new(b.func, region, b.loc);
            let mask = if is_inside {
                let mut parts = self.rest.clone();
                for End { axis, end, .. } in &ends {
                    let (position, end) = (positions(r, ty.shape(), *axis), end.value(r));
                    let end = r.broadcast(end, ty.shape());
                    parts.push(r.compare(CompareOp::Lt, position, end));
                }
                parts.into_iter().reduce(|all, part| r.binary(BinaryOp::And, all, part))
            } else {
                // Computed in this region, so that the other copy need not compute it.
                let mask = access.mask.map(|mask| again(r, mask));
                Some(super::inside(r, Access { mask, ..access }))
            };
            let (mut op, results) = (r.func.inst(inst).op.clone(), r.func.inst(inst).results.clone());
            op.set_lanes(mask, true);
            if let Op::Load { mask: None, other, .. } = &mut op {
                *other = None;
            }
            let types: Vec<_> = results.iter().map(|result| r.func.ty(*result).clone()).collect();
            let copy = r.func.append(region, op, types, r.loc);
            let values = r.func.inst(copy).results.to_vec();
            r.yield_values(values);
            region
        });
        b.func.inst_mut(inst).op = Op::If { cond, then_region: inside, else_region: guarded, rare: false };
    }
}

/// Computes a mask again from its comparisons. A mask of many conjuncts is used as it is.
fn again(b: &mut Builder<'_>, mask: Value) -> Value {
    let (mut parts, mut entered): (Vec<Value>, usize) = (Vec::new(), 0);
    let func = &*b.func;
    let enter = |parts: &mut Vec<Value>, value: Value, before: &mut Vec<Value>| {
        entered += 1;
        let is_new = entered <= 2 * MOST_PARTS && !parts.contains(&value);
        if is_new {
            before.extend(mask_operands(func, value));
        }
        is_new
    };
    postorder(&mut parts, mask, enter, Vec::push);
    if entered > 2 * MOST_PARTS {
        return mask;
    }
    let mut copies: FxHashMap<Value, Value> = FxHashMap::default();
    for part in parts {
        let ty = b.func.ty(part).clone();
        let copy = match b.func.def_op(part).cloned() {
            Some(op @ Op::Compare { .. }) => b.op(op, &[ty]),
            Some(mut op) if !mask_operands(b.func, part).is_empty() => {
                op.map_operands(&mut |operand| copies.get(&operand).copied().unwrap_or(operand));
                b.op(op, &[ty])
            }
            _ => part,
        };
        copies.insert(part, copy);
    }
    copies[&mask]
}

/// The masks that the op of a mask combines.
fn mask_operands(func: &Function, mask: Value) -> Vec<Value> {
    match func.def_op(mask) {
        Some(Op::Binary { lhs, rhs, .. }) => vec![*lhs, *rhs],
        Some(Op::Broadcast { x }) if func.ty(*x).is_tile() => vec![*x],
        Some(Op::ExpandDims { x, .. } | Op::Permute { x, .. }) => vec![*x],
        _ => Vec::new(),
    }
}

impl Side {
    /// The number of elements below the end. The result is not positive if there are none. The start is at least 0 and less than
    /// [`FARTHEST`].
    fn count(&self, b: &mut Builder<'_>) -> Value {
        let end = self.end.value(b);
        if self.start.is(0) {
            return end;
        }
        let zero = b.index(0);
        let (end, start) = (b.binary(BinaryOp::Max, end, zero), self.start.value(b));
        b.binary(BinaryOp::Sub, end, start)
    }
}
