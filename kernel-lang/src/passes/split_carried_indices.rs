//! A loop that moves a tile of indices by the same step for all lanes carries the distance as a scalar instead of the tile.
//!
//! ```text
//! ; before
//! ; then cse, dce
//! kernel @k(%y: ptr_mut<f32>, %zero: i64, %n: i64, %one: i64, %v: tile<f32, [64]>) {
//!     %0 = arange {start = 0, end = 64} : tile<i64, [64]>
//!     %1 = broadcast %n : tile<i64, [64]>
//!     %2 = for %zero, %n, %one, %0 (%3: i64, %at: tile<i64, [64]>) {
//!         store %y, %at, %v
//!         %next = add %at, %1 : tile<i64, [64]>
//!         yield %next
//!     } : tile<i64, [64]>
//!     return
//! }
//! ; after
//! kernel @k(%y: ptr_mut<f32>, %zero: i64, %n: i64, %one: i64, %v: tile<f32, [64]>) {
//!     %0 = arange {start = 0, end = 64} : tile<i64, [64]>
//!     %1 = const {value = 0} : i64
//!     %7 = for %zero, %n, %one, %1 (%2: i64, %3: i64) {
//!         %4 = broadcast %3 : tile<i64, [64]>
//!         %5 = add %0, %4 : tile<i64, [64]>
//!         store %y, %5, %v
//!         %6 = add %3, %n : i64
//!         yield %6
//!     } : i64
//!     return
//! }
//! ```
//!
//! This is how Triton kernels walk a row (`pointers += BLOCK`). Carried as a tile, the indices would be registers that nobody can see
//! through; now they are `uniform + lanes` again, with wide accesses and immediate offsets.
//!
//! A constant step that is a multiple of the loop's own needs no scalar either, where nobody asks for the index behind the loop: the distance
//! follows from the loop's index. So it does for scalars that a loop counts up.

use crate::analysis::affine::{Affine, AffineFacts};
use crate::analysis::polynomial::Polynomial;
use crate::dtype::Dtype;
use crate::ir::rewrite::{Changed, Substitution, substitute};
use crate::ir::{BinaryOp, Builder, Function, Inst, Op, Region, Type, Value};

use super::split_loops::Loop;

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let mut changed = false;
    // One tile at a time: each rewrite makes the loop anew.
    while let Some((region, inst, index, step)) = find(func) {
        match scale(func, inst, index, &step) {
            Some(scale) => follow_the_index(func, region, inst, index, scale),
            None => rewrite(func, region, inst, index, &step),
        }
        changed = true;
    }
    changed
}

/// A loop, which of its carried values is such a tile, and the step.
fn find(func: &Function) -> Option<(Region, Inst, usize, Affine)> {
    let mut facts = AffineFacts::new();
    for region in func.regions_under(func.body) {
        for inst in &func.region(region).insts {
            let Op::For { init, body, .. } = &func.inst(*inst).op else { continue };
            for index in 0..init.len() {
                let param = func.region(*body).params[index + 1];
                if func.ty(param).dtype() == Dtype::I64
                    && let Some(step) = step(func, &mut facts, param, func.yielded(*body)[index])
                    && (func.ty(param).is_tile() || scale(func, *inst, index, &step).is_some())
                {
                    return Some((region, *inst, index, step));
                }
            }
        }
    }
    None
}

/// How many times as far as the loop's own index a carried one moves, if that is known, and nobody asks where it ends.
fn scale(func: &Function, inst: Inst, index: usize, step: &Affine) -> Option<i64> {
    let by = Loop::of(func, inst)?.constant_step(func)?;
    let distance = step.as_constant().filter(|distance| distance % by == 0)?;
    let end = func.inst(inst).results[index];
    let mut is_used = false;
    func.for_each_inst(func.body, &mut |user| func.inst(user).op.for_each_operand(&mut |value| is_used |= value == end));
    (!is_used).then_some(distance / by)
}

/// What is added to `param` to give `next`, if it is the same for all lanes.
fn step(func: &Function, facts: &mut AffineFacts, param: Value, next: Value) -> Option<Affine> {
    if func.ty(param).is_scalar() {
        return Some(facts.get(func, next)?.minus(&facts.get(func, param)?));
    }
    let mut at = next;
    let mut total = Affine::uniform(Polynomial::default(), func.ty(param).shape().len());
    while at != param {
        let Some(Op::Binary { op: op @ (BinaryOp::Add | BinaryOp::Sub), lhs, rhs }) = func.def_op(at) else { return None };
        let mut uniform = |value: Value| facts.get(func, value).filter(Affine::is_uniform);
        match (uniform(*lhs), uniform(*rhs)) {
            (None, Some(rhs)) => {
                total = if *op == BinaryOp::Add { total.plus(&rhs) } else { total.minus(&rhs) };
                at = *lhs;
            }
            (Some(lhs), None) if *op == BinaryOp::Add => {
                total = total.plus(&lhs);
                at = *rhs;
            }
            _ => return None,
        }
    }
    Some(total)
}

/// Drops the carried index: it begins where it began, and moves as the loop's own.
fn follow_the_index(func: &mut Function, region: Region, inst: Inst, index: usize, scale: i64) {
    let Some(around) = Loop::of(func, inst) else { return };
    let data = func.inst(inst).clone();
    let Op::For { lower, upper, step, mut init, body, num_stages, unroll, remainder } = data.op else { return };
    let start = init.remove(index);
    let shape = func.ty(start).shape().to_vec();
    let new_body = func.add_region();
    let mut map = Substitution::new();
    let old_params = func.region(body).params.clone();
    for (_, param) in old_params.iter().enumerate().filter(|(position, _)| *position != index + 1) {
        let ty = func.ty(*param).clone();
        let new = func.add_region_param(new_body, ty);
        map.insert(*param, new);
    }
    let at = around.index(func);
    let b = &mut Builder::new(func, new_body, data.loc);
    let distance = b.binary(BinaryOp::Sub, at, lower);
    let scale = b.index(scale.into());
    let distance = b.binary(BinaryOp::Mul, distance, scale);
    let distance = b.broadcast(distance, &shape);
    let moved = b.binary(BinaryOp::Add, start, distance);
    map.insert(old_params[index + 1], moved);
    let insts = func.region(body).insts.clone();
    func.insts_mut(new_body).extend(insts);
    let last = func.terminator(new_body);
    if let Op::Yield { values } = &mut func.inst_mut(last).op {
        values.remove(index);
    }
    substitute(func, new_body, &map);

    let types: Vec<Type> = init.iter().map(|value| func.ty(*value).clone()).collect();
    let new = func.make_inst(Op::For { lower, upper, step, init, body: new_body, num_stages, unroll, remainder }, types, data.loc);
    let mut with = Substitution::new();
    let kept = data.results.iter().enumerate().filter(|(position, _)| *position != index);
    for ((_, old), new) in kept.zip(func.inst(new).results.clone()) {
        with.insert(*old, new);
    }
    let list = func.insts_mut(region);
    if let Some(place) = list.iter().position(|at| *at == inst) {
        list[place] = new;
    }
    let body = func.body;
    substitute(func, body, &with);
}

fn rewrite(func: &mut Function, region: Region, inst: Inst, index: usize, step: &Affine) {
    let data = func.inst(inst).clone();
    let Op::For { lower, upper, step: increment, mut init, body, num_stages, unroll, remainder } = data.op else { return };
    let (old_param, start, loc) = (func.region(body).params[index + 1], init[index], data.loc);
    let shape = func.ty(old_param).shape().to_vec();
    let scalar = Type::scalar(Dtype::I64);

    // A body with the distance in the tile's place, and the tile made from it.
    let new_body = func.add_region();
    let mut map = Substitution::new();
    for (position, param) in func.region(body).params.clone().into_iter().enumerate() {
        let ty = if position == index + 1 { scalar.clone() } else { func.ty(param).clone() };
        let new = func.add_region_param(new_body, ty);
        map.insert(param, new);
    }
    let moved = func.region(new_body).params[index + 1];
    let b = &mut Builder::new(func, new_body, loc);
    let wide = b.broadcast(moved, &shape);
    let tile = b.binary(BinaryOp::Add, start, wide);
    let mut insts = func.region(body).insts.clone();
    let terminator = insts.pop();
    func.insts_mut(new_body).extend(insts);
    let step = step.uniform_value(&mut Builder::new(func, new_body, loc));
    let next = Builder::new(func, new_body, loc).binary(BinaryOp::Add, moved, step);
    func.insts_mut(new_body).extend(terminator);
    // Not the scalar in its place: the tile stands for the old tile.
    map.insert(old_param, tile);
    substitute(func, new_body, &map);
    if let Some(Op::Yield { values }) = terminator.map(|inst| &mut func.inst_mut(inst).op) {
        values[index] = next;
    }

    // The loop anew, and behind it the tile from the last distance.
    let scratch = func.add_region();
    init[index] = Builder::new(func, scratch, loc).index(0);
    let types: Vec<Type> = init.iter().map(|value| func.ty(*value).clone()).collect();
    let new_loop =
        func.append(scratch, Op::For { lower, upper, step: increment, init, body: new_body, num_stages, unroll, remainder }, types, loc);
    let results = func.inst(new_loop).results.clone();
    let b = &mut Builder::new(func, scratch, loc);
    let wide = b.broadcast(results[index], &shape);
    let last = b.binary(BinaryOp::Add, start, wide);
    let mut with = Substitution::new();
    for (position, (old, new)) in data.results.iter().zip(&results).enumerate() {
        with.insert(*old, if position == index { last } else { *new });
    }
    let replacement = func.region(scratch).insts.clone();
    let list = func.insts_mut(region);
    if let Some(place) = list.iter().position(|at| *at == inst) {
        list.splice(place..=place, replacement);
    }
    let body = func.body;
    substitute(func, body, &with);
}
