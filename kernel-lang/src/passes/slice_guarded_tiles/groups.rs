//! Slices of a guarded tile of one axis whose groups are reduced: a slice has whole groups.
//!
//! ```text
//! before                                              in the loop, slice i of 8
//! %v = load %x, %offsets : tile<f32, [4096]>          tile<f32, [512]>, from element 512 i on
//! %g = reshape %v : tile<f32, [64, 64]>               tile<f32, [8, 64]>
//! %m = reduce %g {axis = 1} .. : tile<f32, [64]>      tile<f32, [8]>, from group 8 i on
//! ```
//!
//! Elements are numbered by rows, so a part of the first axis of a tile is the same part of the tile in another shape. Each op must compute
//! a part of its result from the same part of its operands. Slicing changes the order of accesses, so no access may alias a store.

use rustc_hash::FxHashSet;

use crate::analysis::affine::AffineFacts;
use crate::dtype::Dtype;
use crate::ir::rewrite::{Changed, Substitution, copy_regions};
use crate::ir::{BinaryOp, Builder, ConstExpr, Function, Inst, Op, Region, Type, Value, may_alias};
use crate::location::Loc;

use super::{MOST, SHORTEST, end};

/// Makes a loop over slices of the region's tiles, if it can be sliced so.
pub(super) fn slice(func: &mut Function, region: Region, loc: Loc, facts: &mut AffineFacts) -> Changed {
    // The CTAs of a cluster have whole groups, but not of a slice.
    if func.is_cluster {
        return false;
    }
    let mut insts = func.region(region).insts.clone();
    let Some(terminator) = insts.pop() else { return false };
    let Some(slices) = slices(func, &insts) else { return false };
    let ends = end::find(func, &insts, &|_| Some(0), facts);
    let (sliced, mut out): (Vec<Inst>, Vec<Inst>) = insts.into_iter().partition(|inst| !tiles(func, *inst).is_empty());

    let body = func.add_region();
    let index = func.add_region_param(body, Type::scalar(Dtype::I64));
    let mut map = Substitution::new();
    for inst in sliced {
        let data = func.inst(inst).clone();
        if let Op::Arange { start, end } = &data.op
            && let (Some(start), Some(end)) = (start.as_int(), end.as_int())
        {
            let length = (end - start) / slices as i128;
            let b = &mut Builder::new(func, body, data.loc);
            let positions = b.op(Op::Arange { start: ConstExpr::Int(start), end: ConstExpr::Int(start + length) }, &[]);
            let length = ConstExpr::Int(length);
            let step = b.constant(length.clone(), Type::scalar(Dtype::I64));
            let first = b.binary(BinaryOp::Mul, index, step);
            let first = b.broadcast(first, &[length]);
            let positions = b.binary(BinaryOp::Add, first, positions);
            map.insert(data.results[0], positions);
            continue;
        }
        let mut op = data.op;
        op.map_operands(&mut |value| map.get(value));
        copy_regions(func, &mut op, &mut map);
        let types: Vec<Type> = data.results.iter().map(|result| part(func.ty(*result), slices)).collect();
        let copy = func.append(body, op, types, data.loc);
        for (old, new) in data.results.into_iter().zip(func.inst(copy).results.clone()) {
            map.insert(old, new);
        }
    }
    Builder::new(func, body, loc).yield_values(Vec::new());

    let scratch = func.add_region();
    let b = &mut Builder::new(func, scratch, loc);
    let lower = b.index(0);
    let upper = match ends {
        Some(ends) => end::slices(b, &ends, slices),
        None => b.index(slices as i128),
    };
    let step = b.index(1);
    let num_stages = Some(ConstExpr::Int(1).into());
    func.append(
        scratch,
        Op::For { lower, upper, step, init: Vec::new(), body, num_stages, unroll: None, remainder: false, guarded: false },
        [],
        loc,
    );
    out.append(func.insts_mut(scratch));
    out.push(terminator);
    *func.insts_mut(region) = out;
    true
}

/// The tiles among the operands and results of an op.
fn tiles(func: &Function, inst: Inst) -> Vec<Value> {
    let data = func.inst(inst);
    let mut values = data.results.to_vec();
    data.op.for_each_operand(&mut |value| values.push(value));
    values.retain(|value| func.ty(*value).is_tile());
    values
}

/// The type of a part of a tile.
fn part(ty: &Type, slices: usize) -> Type {
    let mut shape = ty.shape().to_vec();
    shape[0] = ConstExpr::Int((ty.extents()[0] / slices) as i128);
    Type::tile(ty.elem().clone(), shape)
}

/// The number of slices of the ops' tiles; `None` if they cannot be sliced.
fn slices(func: &Function, insts: &[Inst]) -> Option<usize> {
    let (mut defined, mut accessed, mut stored) = (FxHashSet::default(), Vec::new(), Vec::new());
    let (mut has_groups, mut slices, mut largest) = (false, MOST, 0);
    for inst in insts {
        let data = func.inst(*inst);
        let tiles = tiles(func, *inst);
        if tiles.is_empty() {
            if !data.op.is_pure() {
                return None;
            }
            continue;
        }
        if !data.results.iter().all(|result| func.ty(*result).is_tile()) || !is_sliced(&data.op) {
            return None;
        }
        match &data.op {
            Op::Load { base, .. } => accessed.push(*base),
            Op::Store { base, .. } => {
                accessed.push(*base);
                stored.push(*base);
            }
            Op::Reduce { .. } | Op::Scan { .. } => has_groups = true,
            _ => {}
        }
        defined.extend(data.results.iter().copied());
        for tile in tiles {
            let extents = func.ty(tile).extents();
            if !defined.contains(&tile) {
                return None;
            }
            while !extents[0].is_multiple_of(slices) {
                slices /= 2;
            }
            largest = largest.max(extents.iter().product());
        }
    }
    let is_apart = |base: &Value| accessed.iter().filter(|other| may_alias(func, **other, *base)).count() == 1;
    while largest / slices < SHORTEST && slices > 1 {
        slices /= 2;
    }
    (has_groups && slices > 1 && stored.iter().all(is_apart)).then_some(slices)
}

/// Does the op compute a part of its result, along the first axis, from the same part of its operands?
fn is_sliced(op: &Op) -> bool {
    match op {
        Op::Load { volatile: false, .. } | Op::Store { .. } => true,
        Op::Const { .. } | Op::Arange { .. } | Op::Unary { .. } | Op::Binary { .. } | Op::Compare { .. } => true,
        Op::Fma { .. } | Op::Select { .. } | Op::Cast { .. } | Op::Bitcast { .. } | Op::Reshape { .. } => true,
        // A broadcast along the first axis is of a tile with the extent 1 there, which has no parts.
        Op::Broadcast { .. } => true,
        Op::ExpandDims { axis, .. } | Op::Reduce { axis, .. } | Op::Scan { axis, .. } => *axis > 0,
        _ => false,
    }
}
