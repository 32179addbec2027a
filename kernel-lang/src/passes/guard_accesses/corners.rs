//! Accesses whose mask leaves a box of the tile: rows `start + i < m`, columns `start + j < n`.
//!
//! Where the box's corners are in bounds, so is what the mask leaves, and no element's index is looked at. Then a mask is the lane's place
//! compared with how many rows or columns there are, in 32 bits.
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
//! The second copy is for kernels that mean to leave their tensor, and for numbers near the ends of `i64`.

use std::collections::{HashMap, HashSet};

use crate::analysis::affine::{Affine, AffineFacts, place};
use crate::analysis::bounds::{self, Bound, End};
use crate::analysis::conjuncts;
use crate::analysis::polynomial::Polynomial;
use crate::ir::{Access, BinaryOp, Builder, CompareOp, Function, Inst, Op, Value, postorder};

/// Where a box begins is less than that, so that no sum with a lane's place overflows.
const FARTHEST: i64 = 1 << 62;

/// What a mask leaves of a tile.
#[derive(Default)]
pub(super) struct Corners {
    index: Affine,
    extents: Vec<usize>,
    uppers: Vec<Side>,
    lowers: Vec<Side>,
    /// Parts of the mask that say something else.
    rest: Vec<Value>,
}

/// A comparison of `start + place along the axis` with a number.
struct Side {
    axis: usize,
    start: Polynomial,
    end: Polynomial,
}

/// The box of an access, if its index is a sum and a test can say whether it is in bounds.
pub(super) fn find(func: &Function, facts: &mut AffineFacts, access: Access) -> Option<Corners> {
    let ty = func.ty(access.offset);
    let index = facts.get(func, access.offset).filter(|_| ty.is_tile())?;
    let extents = ty.extents();
    Bound::of(access.base, &index, &extents, Vec::new())?;
    let axes: Vec<usize> = (0..extents.len()).collect();
    let mut corners = Corners { index, extents, ..Corners::default() };
    if let Some(mask) = access.mask {
        corners.mask(func, facts, mask, &axes);
    }
    Some(corners)
}

impl Corners {
    /// Takes a mask of the access's shape apart.
    fn mask(&mut self, func: &Function, facts: &mut AffineFacts, mask: Value, axes: &[usize]) {
        for part in conjuncts::compute(func, mask) {
            if !self.sides(func, facts, part, axes) {
                self.rest.push(part);
            }
        }
    }

    /// Adds what a mask consists of, and answers whether that is all. `axes` are those of the access that the mask's are.
    fn sides(&mut self, func: &Function, facts: &mut AffineFacts, mask: Value, axes: &[usize]) -> bool {
        let (mut seen, mut is_all) = (HashSet::new(), true);
        let mut next = vec![(mask, axes.to_vec())];
        while let Some((mask, mut axes)) = next.pop() {
            if !seen.insert((mask, axes.clone())) {
                continue;
            }
            match func.def_op(mask) {
                _ if seen.len() > conjuncts::MOST_PARTS => is_all = false,
                Some(Op::Binary { op: BinaryOp::And, lhs, rhs }) => next.extend([(*rhs, axes.clone()), (*lhs, axes)]),
                Some(Op::Broadcast { x }) if func.ty(*x).is_tile() => next.push((*x, axes)),
                Some(Op::ExpandDims { x, axis }) => {
                    axes.remove(*axis as usize);
                    next.push((*x, axes));
                }
                Some(Op::Permute { x, order }) => {
                    let mut before = vec![0; order.len()];
                    order.iter().zip(axes).for_each(|(from, axis)| before[*from as usize] = axis);
                    next.push((*x, before));
                }
                Some(&Op::Compare { op, lhs, rhs }) => is_all &= self.side(func, facts, (op, lhs, rhs), &axes).is_some(),
                _ => is_all = false,
            }
        }
        is_all
    }

    fn side(
        &mut self,
        func: &Function,
        facts: &mut AffineFacts,
        (mut op, lhs, rhs): (CompareOp, Value, Value),
        axes: &[usize],
    ) -> Option<()> {
        let (mut place, mut end) = (facts.get(func, lhs)?, facts.get(func, rhs)?);
        if place.is_uniform() {
            (place, end, op) = (end, place, op.swapped());
        }
        let axis = place.lanes.iter().position(|lane| lane.is(1))?;
        // Of one place that is repeated, a lane's place says nothing.
        let is_whole = func.ty(lhs).extents()[axis] == self.extents[axes[axis]];
        let is_place = is_whole && end.is_uniform() && place.lanes.iter().enumerate().all(|(other, lane)| other == axis || lane.is(0));
        let side = Side { axis: axes[axis], start: place.start, end: end.start };
        match op {
            CompareOp::Lt if is_place => self.uppers.push(side),
            CompareOp::Ge if is_place => self.lowers.push(side),
            _ => return None,
        }
        Some(())
    }

    /// Makes the access a branch: where the box is in bounds, and where that is not known.
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
        let ends: Vec<End> = self.uppers.iter().map(|side| End { axis: side.axis, end: Polynomial::scalar(side.count(b)) }).collect();
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
                for End { axis, end } in &ends {
                    let (place, end) = (place(r, ty.shape(), *axis), end.value(r));
                    let end = r.broadcast(end, ty.shape());
                    parts.push(r.compare(CompareOp::Lt, place, end));
                }
                parts.into_iter().reduce(|all, part| r.binary(BinaryOp::And, all, part))
            } else {
                // Made here, so that the other copy need not compute it.
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
            let values = r.func.inst(copy).results.clone();
            r.yield_values(values);
            region
        });
        b.func.inst_mut(inst).op = Op::If { cond, then_region: inside, else_region: guarded };
    }
}

/// A mask computed anew from what it compares; one of many parts is used as it is.
fn again(b: &mut Builder<'_>, mask: Value) -> Value {
    let (mut parts, mut entered): (Vec<Value>, usize) = (Vec::new(), 0);
    let func = &*b.func;
    let enter = |parts: &mut Vec<Value>, value: Value, before: &mut Vec<Value>| {
        entered += 1;
        let is_new = entered <= 2 * conjuncts::MOST_PARTS && !parts.contains(&value);
        if is_new {
            before.extend(mask_operands(func, value));
        }
        is_new
    };
    postorder(&mut parts, mask, enter, Vec::push);
    if entered > 2 * conjuncts::MOST_PARTS {
        return mask;
    }
    let mut copies: HashMap<Value, Value> = HashMap::new();
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

/// The masks that a mask is made of.
fn mask_operands(func: &Function, mask: Value) -> Vec<Value> {
    match func.def_op(mask) {
        Some(Op::Binary { lhs, rhs, .. }) => vec![*lhs, *rhs],
        Some(Op::Broadcast { x }) if func.ty(*x).is_tile() => vec![*x],
        Some(Op::ExpandDims { x, .. } | Op::Permute { x, .. }) => vec![*x],
        _ => Vec::new(),
    }
}

impl Side {
    /// How many lanes are below the end: none, if it is not positive. The start is from 0 up to [`FARTHEST`].
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
