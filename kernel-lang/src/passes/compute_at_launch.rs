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

use std::collections::HashSet;

use crate::dtype::Dtype;
use crate::ir::rewrite::{Changed, Substitution, substitute};
use crate::ir::{BinaryOp, Builder, CompareOp, Function, Inst, Op, Region, Type, Value, computation};
use crate::launch_value::{Copies, MOST_PARAMETERS, axes, parameter_types};
use crate::location::Loc;
use crate::passes::dce;

/// The least cost of a launch value, see [`cost`].
const LEAST_COST: usize = 4;

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let mut parameters = parameter_types(func).len();
    let conditions = conditions(func, &mut parameters);
    // An op that only a condition used is no use of a scalar.
    dce::run(func);
    let changed = divide(func) | scalars(func, &mut parameters) | !conditions.is_empty();
    dce::run(func);
    share(func, &conditions);
    changed
}

/// The ops of a condition, and their copies in the region of its `launch_value`.
struct Copied {
    compute: Region,
    ops: Vec<(Inst, Inst)>,
}

/// Makes launch values of conditions. Returns those that depend on program ids.
fn conditions(func: &mut Function, parameters: &mut usize) -> Vec<Copied> {
    let mut all = Vec::new();
    for region in func.regions_under(func.body) {
        let mut at = 0;
        while let Some(&inst) = func.region(region).insts.get(at) {
            at += 1;
            let Op::If { cond, .. } = func.inst(inst).op else { continue };
            let Some(ops) = computation(func, cond, &Op::is_known_at_launch) else { continue };
            let count = axes(func, cond).len().max(1);
            if cost(func, &ops) < LEAST_COST || *parameters + count > MOST_PARAMETERS {
                continue;
            }
            *parameters += count;
            let (launch_value, copied) = make(func, &ops, cond, func.inst(inst).loc);
            let answer = func.result(launch_value);
            if let Op::If { cond, .. } = &mut func.inst_mut(inst).op {
                *cond = answer;
            }
            func.insts_mut(region).insert(at - 1, launch_value);
            at += 1;
            all.push(copied);
        }
    }
    all
}

/// Removes copies of ops that the kernel executes in any case. Of conditions that depend on no program id, no copy is executed.
fn share(func: &mut Function, conditions: &[Copied]) {
    let executed: HashSet<Inst> = executed(func).into_iter().flat_map(|region| func.region(region).insts.clone()).collect();
    for Copied { compute, ops } in conditions {
        if !func.region(*compute).insts.iter().any(|inst| matches!(func.inst(*inst).op, Op::ProgramId { .. })) {
            continue;
        }
        let mut shared = Substitution::new();
        // An op may have an operand now that is a launch value itself.
        let is_shared = |op: &Inst| executed.contains(op) && computation(func, func.result(*op), &|_| true).is_some();
        for (op, copy) in ops.iter().filter(|(op, _)| is_shared(op)) {
            shared.insert(func.result(*copy), func.result(*op));
        }
        substitute(func, *compute, &shared);
    }
    dce::run(func);
}

/// Divides scalars by divisors that the host knows: it computes `m`, which is `(2^32 - 1) / d` rounded down. `(n * m) >> 32` is less than `n / d`, by less
/// than `2 * n / 2^32`, so it is the quotient or up to two less.
fn divide(func: &mut Function) -> Changed {
    let is_known = |func: &Function, value: Value| {
        computation(func, value, &|op| op.is_known_at_launch() && !matches!(op, Op::ProgramId { .. })).is_some()
    };
    let mut replaced = Substitution::new();
    for region in executed(func) {
        for inst in std::mem::take(func.insts_mut(region)) {
            let data = func.inst(inst);
            let (result, loc) = (data.results.first().copied(), data.loc);
            let (n, d) = match (&data.op, result) {
                (&Op::Binary { op: BinaryOp::Div, lhs, rhs }, Some(result))
                    if *func.ty(result) == Type::scalar(Dtype::U32)
                        && func.splat(rhs).is_none()
                        && is_known(func, rhs)
                        && !is_known(func, lhs) =>
                {
                    (lhs, rhs)
                }
                _ => {
                    func.insts_mut(region).push(inst);
                    continue;
                }
            };
            let b = &mut Builder::new(func, region, loc);
            let [zero, one, most] = [0, 1, u32::MAX.into()].map(|number| b.int_like(number, n));
            let m = b.binary(BinaryOp::Div, most, d);
            let mut quotient = b.binary(BinaryOp::MulHigh, n, m);
            let product = b.binary(BinaryOp::Mul, quotient, d);
            let mut rest = b.binary(BinaryOp::Sub, n, product);
            for _ in 0..2 {
                let is_low = b.compare(CompareOp::Ge, rest, d);
                let next = b.binary(BinaryOp::Add, quotient, one);
                quotient = b.select(is_low, next, quotient);
                let less = b.binary(BinaryOp::Sub, rest, d);
                // The difference is a large number if it would be negative.
                rest = b.binary(BinaryOp::Min, rest, less);
            }
            let is_zero = b.compare(CompareOp::Eq, d, zero);
            let quotient = b.select(is_zero, zero, quotient);
            replaced.insert(func.result(inst), quotient);
        }
    }
    substitute(func, func.body, &replaced)
}

/// Scalars that depend on no program id, and that other ops use.
fn scalars(func: &mut Function, parameters: &mut usize) -> Changed {
    let may_move = |op: &Op| op.is_known_at_launch() && !matches!(op, Op::ProgramId { .. });
    // The results of such ops, in order, and those that ops use which stay.
    let (mut movable, mut used): (HashSet<Value>, HashSet<Value>) = (HashSet::new(), HashSet::new());
    let mut order: Vec<Value> = Vec::new();
    for region in executed(func) {
        for inst in &func.region(region).insts {
            let data = func.inst(*inst);
            let mut moves = may_move(&data.op) && data.results.len() == 1 && func.ty(data.results[0]).is_scalar();
            data.op.for_each_operand(&mut |operand| moves &= func.param_index(operand).is_some() || movable.contains(&operand));
            if moves {
                movable.insert(data.results[0]);
                order.push(data.results[0]);
            } else {
                data.op.for_each_operand(&mut |operand| _ = used.insert(operand));
            }
        }
    }
    let compute = func.add_region();
    let mut copies = Copies::new(compute);
    // Some values are computed several times, in branches.
    let mut launched: Vec<(Value, Vec<Value>)> = Vec::new();
    for value in order.into_iter().filter(|value| used.contains(value)) {
        let Some(ops) = computation(func, value, &may_move) else { continue };
        if cost(func, &ops) < LEAST_COST {
            continue;
        }
        for op in ops {
            let (data, ty) = (func.inst(op).clone(), func.ty(func.result(op)).clone());
            copies.add(func, &data, &ty);
        }
        match launched.iter_mut().find(|(first, _)| copies.copy(*first) == copies.copy(value)) {
            Some((_, others)) => others.push(value),
            None if *parameters < MOST_PARAMETERS => {
                *parameters += 1;
                launched.push((value, Vec::new()));
            }
            None => {}
        }
    }
    if launched.is_empty() {
        return false;
    }
    copies.finish(func, launched.iter().map(|(value, _)| *value));
    let types: Vec<Type> = launched.iter().map(|(value, _)| func.ty(*value).clone()).collect();
    let launch_value = func.make_inst(Op::LaunchValue { compute }, types, Loc::NONE);
    func.insts_mut(func.body).insert(0, launch_value);
    let mut replaced = Substitution::new();
    for ((value, others), result) in launched.iter().zip(func.inst(launch_value).results.clone()) {
        others.iter().chain([value]).for_each(|value| replaced.insert(*value, result));
    }
    substitute(func, func.body, &replaced)
}

/// The regions of the kernel, without those of launch values.
fn executed(func: &Function) -> Vec<Region> {
    let mut launched: HashSet<Region> = HashSet::new();
    for inst in func.all_insts() {
        if let Op::LaunchValue { compute } = func.inst(inst).op {
            launched.insert(compute);
        }
    }
    func.regions_under(func.body).into_iter().filter(|region| !launched.contains(region)).collect()
}

/// A `launch_value` outside any region that computes `value` by copies of `ops`.
fn make(func: &mut Function, ops: &[Inst], value: Value, loc: Loc) -> (Inst, Copied) {
    let compute = func.add_region();
    let mut copied = Vec::new();
    let mut copies = Substitution::new();
    for op in ops {
        let data = func.inst(*op).clone();
        let mut own = data.op;
        own.map_operands(&mut |value| copies.get(value));
        let ty = func.ty(data.results[0]).clone();
        let copy = func.append(compute, own, [ty], data.loc);
        copies.insert(data.results[0], func.result(copy));
        copied.push((*op, copy));
    }
    let ty = func.ty(value).clone();
    func.append(compute, Op::Yield { values: vec![copies.get(value)] }, [], loc);
    (func.make_inst(Op::LaunchValue { compute }, [ty], loc), Copied { compute, ops: copied })
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
