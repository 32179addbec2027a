//! Carried indices: a loop that advances a tile of indices by one step for all elements carries the distance as a scalar instead of the
//! tile.
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
//! Triton kernels walk a row in this way (`pointers += BLOCK`). Other passes know nothing of the indices in a carried tile. After this
//! pass, an index is a scalar plus stride terms again, with wide accesses and immediate offsets.
//!
//! If a constant step is a multiple of the loop's own step, and the index is not used after the loop, the loop does not carry the scalar
//! either: the distance follows from the loop index. The same holds for scalars that a loop counts up.

use crate::analysis::affine::{Affine, AffineFacts};
use crate::analysis::loops::{Loop, carried_step};
use crate::dtype::Dtype;
use crate::ir::rewrite::{Changed, Substitution, substitute};
use crate::ir::{BinaryOp, Builder, Def, Function, Inst, Op, Region, SideTable, Type, Value};

/// The largest number of rounds. Rewriting an inner loop may show how an outer loop advances an index.
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

/// One walk over the kernel, in program order, inner loops before outer ones.
struct Cx {
    facts: AffineFacts,
    /// Which values are used.
    uses: SideTable<Value, bool>,
    /// The replacements for the results of loops that the walk has passed.
    with: Substitution,
    changed: bool,
}

/// A carried value that advances by the same step for all elements.
struct Moving {
    /// The position among the values that the loop carries.
    position: usize,
    step: Affine,
    /// The ratio of the step to the loop's own step, if it is a known integer and the final value is unused.
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
            let step = carried_step(func, &mut self.facts, *body, position)?;
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

impl Cx {
    /// Appends the rewritten loop to `out`. An index that follows the loop index is no longer carried. For any other one the loop carries
    /// the distance, a scalar, from which the body and the ops after the loop compute the tile.
    fn rewrite(&mut self, func: &mut Function, inst: Inst, moving: &[Moving], out: &mut Vec<Inst>) {
        let data = func.inst(inst).clone();
        let Op::For { lower, upper, step: increment, init, body, num_stages, unroll, remainder, guarded } = data.op else {
            return out.push(inst);
        };
        let (loc, scalar) = (data.loc, Type::scalar(Dtype::I64));
        let mut by_position: Vec<Option<&Moving>> = vec![None; init.len()];
        moving.iter().for_each(|moving| by_position[moving.position] = Some(moving));
        let is_carried = |position: usize| by_position[position].is_none_or(|moving| moving.scale.is_none());

        // The new body, with distances instead of tiles.
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
        // The body begins with the tiles. The ops that the first index needs come last.
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
        // The body ends with the next distances.
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

        // The new loop, followed by the tiles from the last distances.
        let scratch = func.add_region();
        let mut firsts = init.clone();
        for (position, _) in distances.iter().enumerate().filter(|(_, distance)| distance.is_some()) {
            firsts[position] = Builder::new(func, scratch, loc).index(0);
        }
        let firsts = carried(firsts);
        let types: Vec<Type> = firsts.iter().map(|value| func.ty(*value).clone()).collect();
        let new_loop = Op::For { lower, upper, step: increment, init: firsts, body: new_body, num_stages, unroll, remainder, guarded };
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

    /// Forgets the affine forms of a loop's body, whose parameters have changed.
    fn forget(&mut self, func: &Function, body: Region) {
        func.for_each_inst(body, &mut |inst| func.inst(inst).results.iter().for_each(|result| self.facts.forget(*result)));
    }
}

/// The tile or the number at a distance from its start.
fn moved(b: &mut Builder<'_>, start: Value, distance: Value) -> Value {
    let shape = b.func.ty(start).shape().to_vec();
    let wide = b.broadcast(distance, &shape);
    b.binary(BinaryOp::Add, start, wide)
}
