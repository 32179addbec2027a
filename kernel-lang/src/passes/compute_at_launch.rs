//! Launch values: scalars that the host can compute become `launch_value`s.
//!
//! ```text
//! ; before
//! kernel @k(%y: ptr_mut<f32>, %n: i64) {
//!     %0 = program_id : i64
//!     %1 = const {value = 1024} : i64
//!     %2 = mul %0, %1 : i64
//!     %3 = length %y : i64
//!     %4 = sub %3, %1 : i64
//!     %5 = le %2, %4 : bool
//!     if %5 () {
//!         %6 = cast %n : f32
//!         %7 = const {value = 1.0} : f32
//!         %8 = div %7, %6 : f32
//!         store %y, %0, %8
//!         yield
//!     } () {
//!         yield
//!     }
//!     return
//! }
//! ; after
//! kernel @k(%y: ptr_mut<f32>, %n: i64) {
//!     %3 = launch_value () {
//!         %0 = const {value = 1.0} : f32
//!         %1 = cast %n : f32
//!         %2 = div %0, %1 : f32
//!         yield %2
//!     } : f32
//!     %4 = program_id : i64
//!     %10 = launch_value () {
//!         %5 = const {value = 1024} : i64
//!         %6 = mul %4, %5 : i64
//!         %7 = length %y : i64
//!         %8 = sub %7, %5 : i64
//!         %9 = le %6, %8 : bool
//!         yield %9
//!     } : bool
//!     if %10 () {
//!         store %y, %4, %3
//!         yield
//!     } () {
//!         yield
//!     }
//!     return
//! }
//! ```
//!
//! Conditions of branches come first: a program waits for such a condition before its first load, although it has the same value in most programs of a
//! launch. Then come scalars that depend on no program id. Scalars of few ops stay: a launch value takes a load from the parameters, and a condition also takes
//! a comparison for each axis.

use rustc_hash::FxHashSet;

use crate::analysis::loops;
use crate::dtype::Dtype;
use crate::ir::rewrite::{Changed, Substitution, substitute};
use crate::ir::{BinaryOp, Function, Inst, Op, Region, SideTable, Type, Value, computation};
use crate::launch_value::{Copies, MOST_PARAMETERS, axes, count, executed, known_scalars, parameters};
use crate::location::Loc;
use crate::passes::{dce, divide};

/// The least cost of a launch value, see [`cost`].
const LEAST_COST: usize = 4;

/// Runs the pass. It takes time linear in the kernel: launch values are few, and each is computed by a bounded number of ops.
pub fn run(func: &mut Function) -> Changed {
    let mut parameters = parameters(func).iter().map(|(_, parameters)| parameters.count()).sum();
    let conditions = conditions(func, &mut parameters);
    // An op that only a condition used is no use of a scalar.
    dce::run(func);
    let changed = divide::scalars::run(func) | scalars(func, &mut parameters);
    if changed {
        dce::run(func);
    }
    share(func, &conditions);
    changed || !conditions.is_empty()
}

/// A condition that is a launch value: the ops that compute it, and their copies in the region of the `launch_value`.
struct Condition {
    compute: Region,
    ops: Vec<Inst>,
    copies: Copies,
}

/// Makes launch values of conditions.
fn conditions(func: &mut Function, parameters: &mut usize) -> Vec<Condition> {
    let known = known_scalars(func, &executed(func), &Op::is_known_at_launch);
    let mut all = Vec::new();
    for region in func.regions_under(func.body) {
        let mut at = 0;
        while let Some(&inst) = func.region(region).insts.get(at)
            && *parameters < MOST_PARAMETERS
        {
            at += 1;
            let Op::If { cond, .. } = func.inst(inst).op else { continue };
            if !known[cond] {
                continue;
            }
            let Some(ops) = computation(func, cond, &Op::is_known_at_launch) else { continue };
            let count = count(&axes(func, cond));
            if cost(func, &ops) < LEAST_COST || *parameters + count > MOST_PARAMETERS {
                continue;
            }
            *parameters += count;
            let (compute, ty, loc) = (func.add_region(), func.ty(cond).clone(), func.inst(inst).loc);
            let mut copies = Copies::new(compute);
            copies.add_all(func, &ops);
            copies.finish(func, [cond].into_iter(), loc);
            let launch_value = func.make_inst(Op::LaunchValue { compute }, [ty], loc);
            let answer = func.result(launch_value);
            if let Op::If { cond, .. } = &mut func.inst_mut(inst).op {
                *cond = answer;
            }
            func.insts_mut(region).insert(at - 1, launch_value);
            at += 1;
            all.push(Condition { compute, ops, copies });
        }
    }
    all
}

/// Removes copies of ops that the kernel executes in any case. Of conditions that depend on no program id, no copy is executed.
fn share(func: &mut Function, conditions: &[Condition]) {
    let is_of_program = |condition: &&Condition| {
        func.region(condition.compute).insts.iter().any(|inst| matches!(func.inst(*inst).op, Op::ProgramId { .. }))
    };
    let conditions: Vec<&Condition> = conditions.iter().filter(is_of_program).collect();
    if conditions.is_empty() {
        return;
    }
    // An op may have an operand now that is a launch value itself: that one is not known from ops.
    let known = known_scalars(func, &executed(func), &Op::is_known_at_launch);
    for Condition { compute, ops, copies } in conditions {
        let mut shared = Substitution::new();
        for value in ops.iter().map(|op| func.result(*op)).filter(|value| known[*value]) {
            shared.insert(copies.copy(value), value);
        }
        substitute(func, *compute, &shared);
    }
    dce::run(func);
}

/// Scalars that depend on no program id, and that other ops use.
fn scalars(func: &mut Function, parameters: &mut usize) -> Changed {
    let executed = executed(func);
    let known = known_scalars(func, &executed, &Op::is_uniform);
    // The scalars in order, and those that ops use which depend on more.
    let (mut order, mut used): (Vec<Value>, SideTable<Value, bool>) = (Vec::new(), SideTable::new());
    for region in executed {
        for inst in &func.region(region).insts {
            let data = func.inst(*inst);
            match data.results.first().filter(|result| known[**result]) {
                Some(result) => order.push(*result),
                None => data.op.for_each_operand(&mut |operand| used[operand] = true),
            }
        }
    }
    let compute = func.add_region();
    let mut copies = Copies::new(compute);
    // Some values are computed several times, in branches.
    let mut launched: Vec<(Value, Vec<Value>)> = Vec::new();
    let mut seen: FxHashSet<Value> = FxHashSet::default();
    for value in order.into_iter().filter(|value| used[*value]) {
        let value = known_factor(func, value);
        if !seen.insert(value) {
            continue;
        }
        if *parameters == MOST_PARAMETERS {
            break;
        }
        let Some(ops) = computation(func, value, &Op::is_uniform) else { continue };
        if cost(func, &ops) < LEAST_COST {
            continue;
        }
        copies.add_all(func, &ops);
        match launched.iter_mut().find(|(first, _)| copies.copy(*first) == copies.copy(value)) {
            Some((_, others)) => others.push(value),
            None => {
                *parameters += 1;
                launched.push((value, Vec::new()));
            }
        }
    }
    if launched.is_empty() {
        return false;
    }
    copies.finish(func, launched.iter().map(|(value, _)| *value), Loc::NONE);
    let types: Vec<Type> = launched.iter().map(|(value, _)| func.ty(*value).clone()).collect();
    let launch_value = func.make_inst(Op::LaunchValue { compute }, types, Loc::NONE);
    func.insts_mut(func.body).insert(0, launch_value);
    let mut replaced = Substitution::new();
    for ((value, others), result) in launched.iter().zip(func.inst(launch_value).results.clone()) {
        others.iter().chain([value]).for_each(|value| replaced.insert(*value, result));
    }
    substitute(func, func.body, &replaced)
}

/// What an integer is a constant multiple of or is widened from, or the scalar itself. The kernel multiplies and widens, so that later passes know its factors
/// and its range.
fn known_factor(func: &Function, value: Value) -> Value {
    let is_int = |value: Value| func.ty(value).elem().dtype().is_some_and(Dtype::is_int);
    match func.def_op(value) {
        Some(Op::Binary { op: BinaryOp::Mul, lhs, rhs }) if loops::constant(func, *rhs).is_some() => *lhs,
        Some(Op::Cast { x }) if is_int(*x) && is_int(value) && func.ty(*x).dtype().bits() < func.ty(value).dtype().bits() => *x,
        _ => value,
    }
}

/// About how many instructions these ops are.
fn cost(func: &Function, ops: &[Inst]) -> usize {
    let of = |inst: &Inst| {
        let data = func.inst(*inst);
        let dtype = func.ty(data.results[0]).elem().dtype();
        let is_wide = dtype.is_some_and(|dtype| dtype.bits() == 64);
        match data.op {
            Op::Const { .. }
            | Op::ProgramId { .. }
            | Op::NumPrograms { .. }
            | Op::Length { .. }
            | Op::Address { .. }
            | Op::Bitcast { .. } => 0,
            Op::Cast { .. } if dtype.is_some_and(|dtype| dtype.is_int()) => 0,
            Op::Binary { op: BinaryOp::Div | BinaryOp::Rem, .. } => 8,
            Op::Binary { op: BinaryOp::Mul, .. } if is_wide => 4,
            _ if is_wide => 2,
            _ => 1,
        }
    };
    ops.iter().map(of).sum()
}
