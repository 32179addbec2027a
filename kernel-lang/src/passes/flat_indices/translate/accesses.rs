//! Accesses of the copy: the offset of an access, whether a run of it is one wide access, and whether one load serves a run.

use crate::dtype::Dtype;
use crate::ir::{BinaryOp, Inst, Op, Type, Value};

use super::super::Width;
use super::super::runs::{Grant, Run};
use super::{Copy, Ends, Index, Tile};

/// A sum of more levels is computed for each element.
const DEEPEST: u32 = 16;

impl Copy<'_, '_> {
    /// A load, a store or an atomic.
    pub(super) fn access(&mut self, inst: Inst, mut op: Op, results: &[Value]) {
        let access = op.access().expect("it is an access");
        if !self.b.func.ty(access.offset).is_tile() {
            op.map_operands(&mut |value| self.scalars.get(value));
            let types: Vec<Type> = results.iter().map(|result| self.b.func.ty(*result).clone()).collect();
            let copy = self.b.func.append(self.b.region, op, types, self.b.loc);
            for (old, new) in results.iter().zip(self.b.func.inst(copy).results.clone()) {
                self.scalars.insert(*old, new);
            }
            return;
        }
        let base = self.scalars.get(access.base);
        let is_inside = self.full.width(inst).is_some() || self.flat.inside.contains(&inst);
        if let Some(ends) = self.loaded_ends(&op) {
            let tile = self.load_ends(op, results[0], ends, is_inside);
            self.tiles.insert(results[0], tile);
            return;
        }
        let is_of_runs = self.is_of_runs(&op, results);
        let (offset, is_wide) = self.offset(access.offset, access.base, is_of_runs);
        let runs = self.flat.runs(self.b.func, self.grant);
        let width = runs.width(access.base) as u32;
        let is_wide = match self.full.width(inst) {
            Some(width) => width == Width::Runs,
            None => {
                let has_one_mask = access.mask.is_none_or(|mask| matches!(self.runs.get(&mask), Some(Run::Same { .. })));
                // The guard, too, must be the same for a run.
                let has_one_guard = is_inside || runs.has_whole_runs(&self.flat.demands, access.base);
                is_wide && has_one_mask && has_one_guard && access.can_be_wide(self.b.func)
            }
        };
        let mut shaped = |value: Value| {
            if !self.b.func.ty(value).is_tile() {
                return self.scalars.get(value);
            }
            let tile = self.tile(value);
            if is_of_runs { tile.value } else { self.spread(tile) }
        };
        op.map_operands(&mut |value| {
            if value == access.base {
                base
            } else if value == access.offset {
                offset
            } else {
                shaped(value)
            }
        });
        let copy = op.access().expect("it is still an access");
        op.set_lanes(copy.mask, copy.in_bounds || is_inside);
        op.set_align(if is_wide { width } else { 0 });
        let shape = self.shape(is_of_runs).to_vec();
        let types: Vec<Type> = results.iter().map(|result| Type::tile(self.b.func.ty(*result).elem().clone(), shape.clone())).collect();
        let copy = self.b.func.append(self.b.region, op, types, self.b.loc);
        for (old, new) in results.iter().zip(self.b.func.inst(copy).results.clone()) {
            self.tiles.insert(*old, Tile { value: new, is_of_runs, ends: None });
        }
    }

    /// The offsets of a load of at most two elements for each run. Only such tensors are loaded twice that nothing writes meanwhile.
    fn loaded_ends(&mut self, op: &Op) -> Option<Ends> {
        let Op::Load { base, offset, mask, other, .. } = *op else { return None };
        let is_constant = matches!(self.b.func.ty(base), Type::Pointer { mutable: false, .. });
        if self.grant != Grant::Long || !is_constant || !self.is_exact(offset) {
            return None;
        }
        let index = self.index(offset);
        let ends = if index.step == 0 { self.elements(index).ends? } else { return None };
        [mask, other].into_iter().flatten().all(|operand| self.tile(operand).is_of_runs).then_some(ends)
    }

    /// Loads both elements of each run, the second one of those that have it: the index of another one may be out of bounds.
    fn load_ends(&mut self, op: Op, result: Value, ends: Ends, is_inside: bool) -> Tile {
        let access = op.access().expect("it is a load");
        let (base, shape) = (self.scalars.get(access.base), self.shape(true).to_vec());
        let [first, second] = [(ends.first, None), (ends.second, Some(ends.has_second))].map(|(offset, has)| {
            let offset = self.b.cast(offset, Dtype::I64);
            let mut copy = op.clone();
            copy.map_operands(&mut |value| match value {
                _ if value == access.base => base,
                _ if value == access.offset => offset,
                _ => self.tile(value).value,
            });
            let own = copy.access().and_then(|access| access.mask);
            let mask = match (own, has) {
                (Some(own), Some(has)) => Some(self.b.binary(BinaryOp::And, own, has)),
                (own, has) => own.or(has),
            };
            copy.set_lanes(mask, access.in_bounds || is_inside);
            copy.set_align(0);
            let ty = Type::tile(self.b.func.ty(result).elem().clone(), shape.clone());
            self.b.op(copy, &[ty])
        });
        self.of_ends(Ends { first, second, ..ends })
    }

    /// Does one load serve a whole run?
    fn is_of_runs(&mut self, op: &Op, results: &[Value]) -> bool {
        let Op::Load { offset, mask, other, .. } = *op else { return false };
        matches!(self.runs.get(&results[0]), Some(Run::Same { .. }))
            && [Some(offset), mask, other].into_iter().flatten().all(|operand| self.tile(operand).is_of_runs)
    }

    /// The offset of an access, and whether a run of it is one wide access.
    fn offset(&mut self, offset: Value, base: Value, is_of_runs: bool) -> (Value, bool) {
        let runs = self.flat.runs(self.b.func, self.grant);
        let is_wide =
            matches!(self.runs.get(&offset), Some(Run::Steps { by: 1, is_aligned: true })) && runs.is_aligned(&self.flat.demands, base);
        let is_affine = self.affine(offset).is_some();
        if is_of_runs || is_affine || !self.is_exact(offset) {
            if !is_of_runs
                && !is_affine
                && let Some(&Run::Steps { by, .. }) = self.runs.get(&offset)
                && let Some(first) = self.first(offset, DEEPEST)
            {
                // The steps stay apart, as below.
                let (first, steps) = (self.spread(first), self.steps(Index { base: None, step: by, constant: 0 }));
                return (self.b.binary(BinaryOp::Add, first, steps), is_wide);
            }
            let tile = self.tile(offset);
            return (if is_of_runs { tile.value } else { self.spread(tile) }, false);
        }
        let index = self.index(offset);
        if index.step == 0 || index.base.is_some_and(|base| !base.is_of_runs) {
            let elements = self.elements(index);
            let narrow = self.spread(elements);
            return (self.b.cast(narrow, Dtype::I64), is_wide);
        }
        // The first index of a run fits in 32 bits, as every index does; `base` is that only modulo 2^32. The steps stay apart, so that a thread
        // computes one address for a run.
        let first = self.elements(Index { step: 0, ..index });
        let narrow = self.spread(first);
        let (wide, steps) = (self.b.cast(narrow, Dtype::I64), self.steps(Index { constant: 0, ..index }));
        (self.b.binary(BinaryOp::Add, wide, steps), is_wide)
    }

    /// The index of the first element of each run in 64 bits, for an index that is not computed in 32 bits but from such ones.
    fn first(&mut self, value: Value, depth: u32) -> Option<Tile> {
        if let Some(affine) = self.affine(value) {
            let stride = affine.strides[0].map(&|scalar| self.scalars.get(scalar)).scaled(self.flat.run as i64);
            return Some(self.affine_sum(&affine, if stride.is(0) { Vec::new() } else { vec![stride] }));
        }
        if self.is_exact(value) {
            let index = self.index(value);
            let tile = self.elements(Index { step: 0, ..index });
            return tile.is_of_runs.then(|| Tile::of_runs(self.b.cast(tile.value, Dtype::I64)));
        }
        match self.b.func.def_op(value).cloned() {
            Some(Op::Binary { op: op @ (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul), lhs, rhs }) if depth > 0 => {
                let (x, y) = (self.first(lhs, depth - 1)?, self.first(rhs, depth - 1)?);
                Some(Tile::of_runs(self.b.binary(op, x.value, y.value)))
            }
            _ => Some(self.tile(value)).filter(|tile| tile.is_of_runs),
        }
    }
}
