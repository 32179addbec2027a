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
use crate::ir::{BinaryOp, Builder, Def, Function, Inst, Op, Region, SideTable, Type, Value};

use super::split_loops::Loop;

/// An index that more sums lead to in a turn stays as it is.
const MOST_SUMS: usize = 64;
/// What an inner loop becomes may show how an outer one moves; more often than that nobody looks.
const MOST_ROUNDS: usize = 8;

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let mut changed = false;
    for _ in 0..MOST_ROUNDS {
        let mut cx = Cx { facts: AffineFacts::new(), uses: SideTable::new(), with: Substitution::new(), changed: false };
        for inst in func.all_insts() {
            func.inst(inst).op.for_each_operand(&mut |value| cx.uses[value] = true);
        }
        cx.region(func, func.body);
        changed |= cx.changed;
        if !cx.changed {
            break;
        }
    }
    changed
}

/// One walk over the kernel, in the order of the text, inner loops before the ones around them.
struct Cx {
    facts: AffineFacts,
    /// Which values are used.
    uses: SideTable<Value, bool>,
    /// What the loops behind which the walk is now give in the place of what they gave.
    with: Substitution,
    changed: bool,
}

/// A carried value that moves by the same step for all lanes.
struct Moving {
    /// Its position among those that the loop carries.
    position: usize,
    step: Affine,
    /// How many times as far as the loop's own index it moves, if that is known, and nobody asks where it ends.
    scale: Option<i64>,
}

impl Cx {
    fn region(&mut self, func: &mut Function, region: Region) {
        let mut out = Vec::new();
        for inst in std::mem::take(func.insts_mut(region)) {
            func.inst_mut(inst).op.map_operands(&mut |value| self.with.get(value));
            let mut inner = Vec::new();
            func.inst(inst).op.for_each_region(&mut |region| inner.push(region));
            inner.into_iter().for_each(|inner| self.region(func, inner));
            let moving = self.moving(func, inst);
            if moving.is_empty() {
                out.push(inst);
            } else {
                self.changed = true;
                self.rewrite(func, inst, &moving, &mut out);
            }
        }
        *func.insts_mut(region) = out;
    }

    /// The carried values of a loop that are such indices.
    fn moving(&mut self, func: &Function, inst: Inst) -> Vec<Moving> {
        let Op::For { init, body, .. } = &func.inst(inst).op else { return Vec::new() };
        let moving = (0..init.len()).filter_map(|position| {
            let param = func.region(*body).params[position + 1];
            if func.ty(param).dtype() != Dtype::I64 {
                return None;
            }
            let step = step(func, &mut self.facts, param, func.yielded(*body)[position])?;
            let scale = self.scale(func, inst, position, &step);
            (func.ty(param).is_tile() || scale.is_some()).then_some(Moving { position, step, scale })
        });
        moving.collect()
    }

    fn scale(&self, func: &Function, inst: Inst, position: usize, step: &Affine) -> Option<i64> {
        let by = Loop::of(func, inst)?.constant_step(func)?;
        let distance = step.as_constant().filter(|distance| distance % by == 0)?;
        (!self.uses[func.inst(inst).results[position]]).then_some(distance / by)
    }
}

/// What is added to `param` to give `next`, if it is the same for all lanes.
fn step(func: &Function, facts: &mut AffineFacts, param: Value, next: Value) -> Option<Affine> {
    if func.ty(param).is_scalar() {
        return Some(facts.get(func, next)?.minus(&facts.get(func, param)?));
    }
    let mut at = next;
    let mut total = Affine::uniform(Polynomial::default(), func.ty(param).shape().len());
    let mut sums = 0;
    while at != param {
        sums += 1;
        if sums > MOST_SUMS {
            return None;
        }
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

impl Cx {
    /// Puts out the loop anew. An index that follows the loop's own is no longer carried; of another one the distance is, a scalar, from which the
    /// body and what stands behind the loop make the tile.
    fn rewrite(&mut self, func: &mut Function, inst: Inst, moving: &[Moving], out: &mut Vec<Inst>) {
        let data = func.inst(inst).clone();
        let Op::For { lower, upper, step: increment, init, body, num_stages, unroll, remainder } = data.op else { return out.push(inst) };
        let (loc, scalar) = (data.loc, Type::scalar(Dtype::I64));
        let mut by_position: Vec<Option<&Moving>> = vec![None; init.len()];
        moving.iter().for_each(|moving| by_position[moving.position] = Some(moving));
        let is_carried = |position: usize| by_position[position].is_none_or(|moving| moving.scale.is_none());

        // A body with distances in the places of tiles.
        let (old_params, new_body) = (func.region(body).params.clone(), func.add_region());
        let mut map = Substitution::new();
        let mut distances: Vec<Option<Value>> = vec![None; init.len()];
        for (index, param) in old_params.iter().enumerate() {
            match index.checked_sub(1).filter(|position| by_position[*position].is_some()) {
                Some(position) if is_carried(position) => distances[position] = Some(func.add_region_param(new_body, scalar.clone())),
                Some(_) => {}
                None => {
                    let ty = func.ty(*param).clone();
                    let new = func.add_region_param(new_body, ty);
                    map.insert(*param, new);
                }
            }
        }
        // At its begin, the tiles; what the first index needs stands last.
        let mut groups = Vec::new();
        for Moving { position, scale, .. } in moving {
            let (start, scratch) = (init[*position], func.add_region());
            let b = &mut Builder::new(func, scratch, loc);
            let distance = distances[*position].unwrap_or_else(|| {
                let (distance, scale) = (b.binary(BinaryOp::Sub, old_params[0], lower), b.index(scale.unwrap_or(0).into()));
                b.binary(BinaryOp::Mul, distance, scale)
            });
            map.insert(old_params[position + 1], moved(b, start, distance));
            groups.push(std::mem::take(func.insts_mut(scratch)));
        }
        let mut insts: Vec<Inst> = groups.into_iter().rev().flatten().collect();
        insts.append(func.insts_mut(body));
        let terminator = insts.pop();
        *func.insts_mut(new_body) = insts;
        // At its end, the next distances.
        let mut nexts = match terminator.map(|inst| &func.inst(inst).op) {
            Some(Op::Yield { values }) => values.clone(),
            _ => Vec::new(),
        };
        let b = &mut Builder::new(func, new_body, loc);
        for Moving { position, step, .. } in moving {
            if let Some(distance) = distances[*position] {
                let step = step.uniform_value(b);
                nexts[*position] = b.binary(BinaryOp::Add, distance, step);
            }
        }
        let carried = |values: Vec<Value>| -> Vec<Value> {
            values.into_iter().enumerate().filter(|(position, _)| is_carried(*position)).map(|(_, value)| value).collect()
        };
        if let Some(terminator) = terminator {
            func.inst_mut(terminator).op = Op::Yield { values: carried(nexts) };
            func.insts_mut(new_body).push(terminator);
        }
        substitute(func, new_body, &map);
        self.forget(func, new_body);

        // The loop anew, and behind it the tiles from the last distances.
        let scratch = func.add_region();
        let mut firsts = init.clone();
        for (position, _) in distances.iter().enumerate().filter(|(_, distance)| distance.is_some()) {
            firsts[position] = Builder::new(func, scratch, loc).index(0);
        }
        let firsts = carried(firsts);
        let types: Vec<Type> = firsts.iter().map(|value| func.ty(*value).clone()).collect();
        let new_loop = Op::For { lower, upper, step: increment, init: firsts, body: new_body, num_stages, unroll, remainder };
        let new_loop = func.append(scratch, new_loop, types, loc);
        out.append(func.insts_mut(scratch));
        let results = func.inst(new_loop).results.clone();
        let mut groups = Vec::new();
        for (old, new) in carried((0..init.len()).map(|at| data.results[at]).collect()).into_iter().zip(results) {
            let Def::Result(_, position) = func.def(old) else { continue };
            let last = match distances[position] {
                Some(_) => {
                    let last = moved(&mut Builder::new(func, scratch, loc), init[position], new);
                    groups.push(std::mem::take(func.insts_mut(scratch)));
                    last
                }
                None => new,
            };
            self.with.insert(old, last);
        }
        out.extend(groups.into_iter().rev().flatten());
    }

    /// Forgets what was known of a loop's body, whose parameters have changed.
    fn forget(&mut self, func: &Function, body: Region) {
        func.for_each_inst(body, &mut |inst| func.inst(inst).results.iter().for_each(|result| self.facts.forget(*result)));
    }
}

/// The tile, or the number, at a distance from where it began.
fn moved(b: &mut Builder<'_>, start: Value, distance: Value) -> Value {
    let shape = b.func.ty(start).shape().to_vec();
    let wide = b.broadcast(distance, &shape);
    b.binary(BinaryOp::Add, start, wide)
}
