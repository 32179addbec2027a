//! Narrowing of carried indices: a loop that selects among indices carries them in 32 bits, if all of them fit.
//!
//! ```text
//! ; before
//! kernel @k(%x: ptr<f32>, %y: ptr_mut<i64>, %n: i64, %zero: i64, %one: i64, %at: tile<i64, [64]>) {
//!     %0 = const {value = 0} : tile<i64, [64]>
//!     %1 = const {value = 0} : tile<f32, [64]>
//!     %2 = for %zero, %n, %one, %0 (%3: i64, %4: tile<i64, [64]>) {
//!         %5 = load %x, %3 : f32
//!         %6 = broadcast %5 : tile<f32, [64]>
//!         %7 = gt %6, %1 : tile<bool, [64]>
//!         %8 = broadcast %3 : tile<i64, [64]>
//!         %9 = select %7, %8, %4 : tile<i64, [64]>
//!         yield %9
//!     } : tile<i64, [64]>
//!     store %y, %at, %2
//!     return
//! }
//! ; after
//! kernel @k(%x: ptr<f32>, %y: ptr_mut<i64>, %n: i64, %zero: i64, %one: i64, %at: tile<i64, [64]>) {
//!     %0 = const {value = 0} : tile<i64, [64]>
//!     %1 = const {value = 0.0} : tile<f32, [64]>
//!     %2 = const {value = -2147483648} : i64
//!     %3 = ge %zero, %2 : bool
//!     %4 = const {value = 2147483648} : i64
//!     %5 = le %n, %4 : bool
//!     %6 = and %3, %5 : bool
//!     %26 = if %6 {rare = true} () {
//!         %7 = cast %0 : tile<i32, [64]>
//!         %16 = for %zero, %n, %one, %7 (%8: i64, %9: tile<i32, [64]>) {
//!             %10 = load %x, %8 : f32
//!             %11 = broadcast %10 : tile<f32, [64]>
//!             %12 = gt %11, %1 : tile<bool, [64]>
//!             %13 = broadcast %8 : tile<i64, [64]>
//!             %14 = cast %13 : tile<i32, [64]>
//!             %15 = select %12, %14, %9 : tile<i32, [64]>
//!             yield %15
//!         } : tile<i32, [64]>
//!         %17 = cast %16 : tile<i64, [64]>
//!         yield %17
//!     } () {
//!         %25 = for %zero, %n, %one, %0 {num_stages = 1, remainder = true} (%18: i64, %19: tile<i64, [64]>) {
//!             %20 = load %x, %18 : f32
//!             %21 = broadcast %20 : tile<f32, [64]>
//!             %22 = gt %21, %1 : tile<bool, [64]>
//!             %23 = broadcast %18 : tile<i64, [64]>
//!             %24 = select %22, %23, %19 : tile<i64, [64]>
//!             yield %24
//!         } : tile<i64, [64]>
//!         yield %25
//!     } : tile<i64, [64]>
//!     store %y, %at, %26
//!     return
//! }
//! ```
//!
//! Such a loop finds the position of an extreme: `best_row = select(v > best, row, best_row)`. A 64-bit index takes two registers and two selections for each
//! element. The pass narrows a carried tile if each iteration selects among three kinds of indices: the tile itself, the loop index plus constants, and scalars
//! that are defined before the loop. A test before the loop checks that all of them fit in 32 bits. If the test fails, the original loop runs. That arm is rare,
//! so the later passes do not optimise it.
//!
//! The pass does not narrow a tile that a reduction consumes after the loop. Both arms of the branch would yield wide tiles to the reduction, and these take more
//! registers than the loop itself.

use std::ops::RangeInclusive;

use rustc_hash::FxHashSet;

use crate::analysis::affine::AffineFacts;
use crate::analysis::loops::{Loop, defined_in};
use crate::dtype::Dtype;
use crate::ir::rewrite::{Changed, Substitution, copy_regions, replace_by_branch, use_counts, yield_op};
use crate::ir::{BinaryOp, Builder, CompareOp, ConstExpr, Function, Handle, Inst, Op, SideTable, Type, Value};

/// Longer chains of selections stay wide.
const MOST_SELECTIONS: usize = 16;

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let mut changed = false;
    let uses = use_counts(func);
    let mut reduced: FxHashSet<Value> = FxHashSet::default();
    for inst in func.all_insts() {
        if let Op::Reduce { inputs, .. } = &func.inst(inst).op {
            reduced.extend(inputs);
        }
    }
    let mut facts = AffineFacts::new();
    for region in func.regions_under(func.body) {
        let mut out = Vec::new();
        for inst in func.region(region).insts.clone() {
            if let Some(around) = Loop::of(func, inst)
                && !func.inst(inst).results.iter().any(|result| reduced.contains(result))
                && let Some(plan) = Plan::of(func, &around, &uses, &mut facts)
            {
                plan.apply(func, &around, &mut out);
                changed = true;
            } else {
                out.push(inst);
            }
        }
        *func.insts_mut(region) = out;
    }
    changed
}

/// The carried tiles of a loop that become narrow.
#[derive(Default)]
struct Plan {
    /// The positions of the tiles among the carried values.
    positions: Vec<usize>,
    /// The carried tiles, and the results of the ops that select among them.
    chain: FxHashSet<Value>,
    /// What must fit in 32 bits: these scalars, plus any number from the smallest to the largest one.
    scalars: Vec<(Value, RangeInclusive<i64>)>,
}

impl Plan {
    /// `None` if the loop carries no such tile. `uses` counts the uses of each value.
    fn of(func: &Function, around: &Loop, uses: &[u32], facts: &mut AffineFacts) -> Option<Plan> {
        let Op::For { init, remainder: false, .. } = &func.inst(around.inst).op else { return None };
        let is_index_tile = |value: Value| func.ty(value).is_tile() && func.ty(value).elem().dtype() == Some(Dtype::I64);
        let carried: Vec<usize> = (0..init.len()).filter(|position| is_index_tile(init[*position])).collect();
        if carried.is_empty() {
            return None;
        }
        let inside = defined_in(func, &[around.body]);
        let (params, next) = (&func.region(around.body).params[1..], func.yielded(around.body));
        let mut plan = Plan::default();
        for position in carried {
            let mut search =
                Search { func, index: around.index(func), facts: &mut *facts, inside: &inside, uses: 0, plan: Plan::default() };
            search.plan.chain.insert(params[position]);
            let is_narrow = search.is_selected(next[position]) && search.fits(init[position]);
            let Search { uses: known, plan: part, .. } = search;
            // Any other use would have to make the tile wide again.
            let is_private = known == part.chain.iter().map(|value| uses[value.index()]).sum::<u32>();
            if is_narrow && is_private && part.chain.len() > 1 {
                plan.positions.push(position);
                plan.chain.extend(part.chain);
                part.scalars.into_iter().for_each(|(scalar, added)| plan.require(scalar, added));
            }
        }
        (!plan.positions.is_empty()).then_some(plan)
    }

    /// Adds a scalar that must fit, plus these numbers.
    fn require(&mut self, scalar: Value, added: RangeInclusive<i64>) {
        match self.scalars.iter_mut().find(|(known, _)| *known == scalar) {
            Some((_, known)) => *known = *known.start().min(added.start())..=*known.end().max(added.end()),
            None => self.scalars.push((scalar, added)),
        }
    }

    /// Appends the test, and the branch with both loops.
    fn apply(&self, func: &mut Function, around: &Loop, out: &mut Vec<Inst>) {
        let data = func.inst(around.inst).clone();
        let (front, loc) = (func.add_region(), data.loc);
        let fits = self.test(&mut Builder::new(func, front, loc), around);
        let (_, [narrow_arm, wide_arm]) = replace_by_branch(func, around.inst, front, fits, true);
        out.append(func.insts_mut(front));

        // The original loop, in its simplest form.
        let mut wide = data.op;
        copy_regions(func, &mut wide, &mut Substitution::new());
        if let Op::For { num_stages, remainder, .. } = &mut wide {
            (*num_stages, *remainder) = (Some(ConstExpr::Int(1).into()), true);
        }
        let types: Vec<Type> = data.results.iter().map(|result| func.ty(*result).clone()).collect();
        let wide = func.make_inst(wide, types, loc);
        yield_op(func, wide_arm, wide);

        self.narrow_body(func, around);
        let mut results = data.results.to_vec();
        for position in &self.positions {
            let Op::For { init, .. } = &func.inst(around.inst).op else { continue };
            let first = init[*position];
            let first = Builder::new(func, narrow_arm, loc).cast(first, Dtype::I32);
            if let Op::For { init, .. } = &mut func.inst_mut(around.inst).op {
                init[*position] = first;
            }
            narrow(func, results[*position]);
        }
        func.insts_mut(narrow_arm).push(around.inst);
        let b = &mut Builder::new(func, narrow_arm, loc);
        for position in &self.positions {
            results[*position] = b.cast(results[*position], Dtype::I64);
        }
        b.yield_values(results);
    }

    /// Appends the test whether all indices fit in 32 bits.
    fn test(&self, b: &mut Builder<'_>, around: &Loop) -> Value {
        let index = around.index(b.func);
        let mut all: Option<Value> = None;
        for (scalar, added) in &self.scalars {
            let (first, last, behind) = if *scalar == index { (around.lower, around.upper, 1) } else { (*scalar, *scalar, 0) };
            let least = i64::from(i32::MIN) - added.start();
            let most = i64::from(i32::MAX) - added.end() + behind;
            for (op, value, limit) in [(CompareOp::Ge, first, least), (CompareOp::Le, last, most)] {
                let limit = b.index(limit.into());
                let fits = b.compare(op, value, limit);
                all = Some(all.map_or(fits, |all| b.binary(BinaryOp::And, all, fits)));
            }
        }
        all.unwrap_or_else(|| b.constant(ConstExpr::Bool(true), Type::scalar(Dtype::Bool)))
    }

    /// Makes the ops of the loop's body select among narrow indices.
    fn narrow_body(&self, func: &mut Function, around: &Loop) {
        for param in func.region(around.body).params.clone() {
            if self.chain.contains(&param) {
                narrow(func, param);
            }
        }
        let mut casts = Substitution::new();
        let mut out = Vec::new();
        for inst in func.region(around.body).insts.clone() {
            let data = func.inst(inst).clone();
            if data.results.iter().any(|result| self.chain.contains(result)) {
                let mut op = data.op;
                op.map_operands(&mut |value| {
                    let is_index = func.ty(value).elem().dtype() == Some(Dtype::I64);
                    if is_index && casts.get(value) == value {
                        let cast = func.make_inst(Op::Cast { x: value }, [func.ty(value).with_elem(Dtype::I32)], data.loc);
                        casts.insert(value, func.result(cast));
                        out.push(cast);
                    }
                    if is_index { casts.get(value) } else { value }
                });
                func.inst_mut(inst).op = op;
                narrow(func, data.results[0]);
            }
            out.push(inst);
        }
        *func.insts_mut(around.body) = out;
    }
}

/// Makes a tile of indices narrow.
fn narrow(func: &mut Function, value: Value) {
    let ty = func.ty(value).with_elem(Dtype::I32);
    func.set_ty(value, ty);
}

/// The search for the indices among which a loop selects.
struct Search<'a> {
    func: &'a Function,
    /// The loop's index.
    index: Value,
    facts: &'a mut AffineFacts,
    /// The values of the loop's body.
    inside: &'a SideTable<Value, bool>,
    /// The uses of the chain that the search has found.
    uses: u32,
    plan: Plan,
}

impl Search<'_> {
    /// Does an iteration select a value among indices that may fit in 32 bits?
    fn is_selected(&mut self, value: Value) -> bool {
        let is_known = self.plan.chain.contains(&value);
        let choices = match self.func.def_op(value) {
            _ if is_known => [None, None],
            Some(&Op::Select { on_true, on_false, .. }) if self.inside[value] => [Some(on_true), Some(on_false)],
            Some(&Op::Binary { op: BinaryOp::Min | BinaryOp::Max, lhs, rhs }) if self.inside[value] => [Some(lhs), Some(rhs)],
            _ => return self.fits(value),
        };
        self.uses += 1;
        self.plan.chain.insert(value);
        self.plan.chain.len() <= MOST_SELECTIONS && choices.into_iter().flatten().all(|choice| self.is_selected(choice))
    }

    /// Is a tile a constant that fits in 32 bits, or the sum of such constants and one scalar, which a test in front of the loop can compare?
    fn fits(&mut self, value: Value) -> bool {
        let func = self.func;
        let extents: Vec<usize> = func.ty(value).extents().to_vec();
        let Some(affine) = self.facts.get(func, value) else { return false };
        let Some(highest) = affine.maximum_offset(&extents) else { return false };
        let (constant, mut scalars) = (affine.start.constant, affine.start.scalars());
        let narrow = i64::from(i32::MIN)..=i64::from(i32::MAX);
        let Some(last) = constant.checked_add(highest).filter(|last| narrow.contains(&constant) && narrow.contains(last)) else {
            return false;
        };
        match (scalars.next(), scalars.next()) {
            (None, _) => true,
            (Some(scalar), None) => {
                let is_once = affine.start.coefficient(scalar).is_some_and(|coefficient| coefficient.is(1));
                self.plan.require(scalar, constant..=last);
                is_once && (scalar == self.index || !self.inside[scalar])
            }
            _ => false,
        }
    }
}
