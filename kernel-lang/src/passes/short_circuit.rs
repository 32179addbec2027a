//! Short circuits: in a remainder loop, conditions test first what is the same in all iterations.
//!
//! ```text
//! ; before
//! kernel @k(%y: ptr_mut<f32>, %n: i64, %m: i64, %f: f32, %aligned: bool) {
//!     %0 = const {value = 0} : i64
//!     %1 = const {value = 1} : i64
//!     for %0, %n, %1 {remainder = true} (%i: i64) {
//!         %2 = mul %i, %m : i64
//!         %3 = add %2, %i : i64
//!         %4 = mul %3, %3 : i64
//!         %5 = lt %4, %n : bool
//!         %6 = and %5, %aligned : bool
//!         if %6 () {
//!             store %y, %2, %f
//!             yield
//!         } () {
//!             yield
//!         }
//!         yield
//!     }
//!     return
//! }
//! ; after
//! kernel @k(%y: ptr_mut<f32>, %n: i64, %m: i64, %f: f32, %aligned: bool) {
//!     %0 = const {value = 0} : i64
//!     %1 = const {value = 1} : i64
//!     for %0, %n, %1 {remainder = true} (%2: i64) {
//!         %3 = mul %2, %m : i64
//!         %8 = if %aligned () {
//!             %4 = add %3, %2 : i64
//!             %5 = mul %4, %4 : i64
//!             %6 = lt %5, %n : bool
//!             yield %6
//!         } () {
//!             %7 = const {value = false} : bool
//!             yield %7
//!         } : bool
//!         if %8 () {
//!             store %y, %3, %f
//!             yield
//!         } () {
//!             yield
//!         }
//!         yield
//!     }
//!     return
//! }
//! ```
//!
//! The main loop runs the iterations with full tiles ([`super::split_loops`]). If rows are not aligned, it runs none, and the remainder loop runs all. Each of
//! them would compute the whole condition before its first load, although one part of it fails in all.

use rustc_hash::FxHashMap;

use crate::dtype::Dtype;
use crate::ir::rewrite::{Changed, Substitution};
use crate::ir::{BinaryOp, Builder, ConstExpr, Def, Function, Inst, Op, Region, SideTable, Type, Value, postorder};
use crate::passes::dce;

/// The fewest ops for which a branch pays, and the most that are copied for one.
const FEWEST_OPS: usize = 3;
const MOST_OPS: usize = 64;
/// The most conjuncts of a condition.
const MOST_CONJUNCTS: usize = 32;

/// A condition of a branch in a loop.
struct Condition {
    branch: Inst,
    /// The conjuncts that are the same in all iterations, and the others.
    fixed: Vec<Value>,
    rest: Vec<Value>,
}

/// Runs the pass. It takes time linear in the kernel, because of nested remainder loops only the innermost ones are changed.
pub fn run(func: &mut Function) -> Changed {
    let mut changed = false;
    for body in innermost(func) {
        changed |= in_loop(func, body);
    }
    if changed {
        dce::run(func);
    }
    changed
}

/// The bodies of the remainder loops that contain no other remainder loop.
fn innermost(func: &Function) -> Vec<Region> {
    let mut bodies = Vec::new();
    // By region: does it contain a remainder loop? Inner regions come first.
    let mut contains: SideTable<Region, bool> = SideTable::new();
    for region in func.regions_under(func.body).into_iter().rev() {
        for inst in func.region(region).insts.iter().rev() {
            let op = &func.inst(*inst).op;
            let mut inside = false;
            op.for_each_region(&mut |inner| inside |= contains[inner]);
            if let Op::For { body, remainder: true, .. } = op {
                bodies.extend((!inside).then_some(*body));
                inside = true;
            }
            contains[region] |= inside;
        }
    }
    bodies.reverse();
    bodies
}

fn in_loop(func: &mut Function, body: Region) -> Changed {
    let varies = varying(func, body);
    let mut conditions = Vec::new();
    for region in func.regions_under(body) {
        for branch in &func.region(region).insts {
            let Op::If { cond, .. } = func.inst(*branch).op else { continue };
            let (rest, fixed): (Vec<Value>, Vec<Value>) = conjuncts(func, cond).into_iter().partition(|conjunct| varies[*conjunct]);
            if !fixed.is_empty() && !rest.is_empty() {
                conditions.push(Condition { branch: *branch, fixed, rest });
            }
        }
    }
    let late = only_for(func, body, &conditions);
    // By branch: the ops that go in front of it.
    let tests: FxHashMap<Inst, Vec<Inst>> =
        conditions.iter().filter_map(|condition| Some((condition.branch, test(func, condition, &late)?))).collect();
    if tests.is_empty() {
        return false;
    }
    for region in func.regions_under(body) {
        for inst in std::mem::take(func.insts_mut(region)) {
            let front = tests.get(&inst).into_iter().flatten().copied();
            func.insts_mut(region).extend(front.chain([inst]));
        }
    }
    true
}

/// The values of a loop that may change between its iterations.
fn varying(func: &Function, body: Region) -> SideTable<Value, bool> {
    let mut varies: SideTable<Value, bool> = SideTable::new();
    for region in func.regions_under(body) {
        func.region(region).params.iter().for_each(|param| varies[*param] = true);
    }
    func.for_each_inst(body, &mut |inst| {
        let data = func.inst(inst);
        let mut is_fixed = data.op.is_pure() && !data.op.has_regions();
        data.op.for_each_operand(&mut |operand| is_fixed &= !varies[operand]);
        data.results.iter().for_each(|result| varies[*result] = !is_fixed);
    });
    varies
}

/// The conjuncts of a condition, in order.
fn conjuncts(func: &Function, cond: Value) -> Vec<Value> {
    let (mut found, mut open) = (Vec::new(), vec![cond]);
    while let Some(value) = open.pop() {
        match func.def_op(value) {
            Some(Op::Binary { op: BinaryOp::And, lhs, rhs }) if found.len() + open.len() < MOST_CONJUNCTS => open.extend([*rhs, *lhs]),
            _ => found.push(value),
        }
    }
    found
}

/// The scalars of a loop that only these conditions need.
fn only_for(func: &Function, body: Region, conditions: &[Condition]) -> SideTable<Value, bool> {
    let mut branches: SideTable<Inst, bool> = SideTable::new();
    conditions.iter().for_each(|condition| branches[condition.branch] = true);
    let mut insts = Vec::new();
    func.for_each_inst(body, &mut |inst| insts.push(inst));
    let (mut needed, mut late): (SideTable<Value, bool>, SideTable<Value, bool>) = (SideTable::new(), SideTable::new());
    // An op comes before its users.
    for inst in insts.into_iter().rev() {
        let data = func.inst(inst);
        let is_scalar = |value: &Value| func.ty(*value).is_scalar();
        if branches[inst] {
            continue;
        }
        if data.op.is_pure() && !data.op.has_regions() && data.results.iter().all(|result| is_scalar(result) && !needed[*result]) {
            data.results.iter().for_each(|result| late[*result] = true);
            continue;
        }
        data.op.for_each_operand(&mut |operand| needed[operand] = true);
    }
    late
}

/// Makes ops that compute the rest of a condition only where the fixed conjuncts hold, and gives their result to the branch. `None` if that would not pay.
fn test(func: &mut Function, condition: &Condition, late: &SideTable<Value, bool>) -> Option<Vec<Inst>> {
    let Condition { branch, fixed, rest } = condition;
    let ops = ops(func, rest, late).filter(|ops| ops.len() >= FEWEST_OPS)?;
    let loc = func.inst(*branch).loc;
    let (then_region, else_region, front) = (func.add_region(), func.add_region(), func.add_region());
    let mut map = Substitution::new();
    for inst in ops {
        let data = func.inst(inst).clone();
        let mut op = data.op;
        op.map_operands(&mut |value| map.get(value));
        let ty = func.ty(data.results[0]).clone();
        let copy = func.append(then_region, op, [ty], data.loc);
        map.insert(data.results[0], func.result(copy));
    }
    let all = |b: &mut Builder<'_>, values: Vec<Value>| {
        values.into_iter().reduce(|all, value| b.binary(BinaryOp::And, all, value)).expect("there is a conjunct")
    };
    let b = &mut Builder::new(func, then_region, loc);
    let rest = all(b, rest.iter().map(|value| map.get(*value)).collect());
    b.yield_values(vec![rest]);
    let b = &mut Builder::new(func, else_region, loc);
    let never = b.constant(ConstExpr::Bool(false), Type::scalar(Dtype::Bool));
    b.yield_values(vec![never]);
    let cond = all(&mut Builder::new(func, front, loc), fixed.clone());
    let test = func.append(front, Op::If { cond, then_region, else_region, rare: false }, [Type::scalar(Dtype::Bool)], loc);
    let answer = func.result(test);
    if let Op::If { cond, .. } = &mut func.inst_mut(*branch).op {
        *cond = answer;
    }
    Some(std::mem::take(func.insts_mut(front)))
}

/// The ops that compute these values, as far as nothing else needs them, in order; `None` if they are too many.
fn ops(func: &Function, values: &[Value], late: &SideTable<Value, bool>) -> Option<Vec<Inst>> {
    let (mut ops, mut seen): (Vec<Inst>, SideTable<Value, bool>) = (Vec::new(), SideTable::new());
    for value in values {
        let enter = |(ops, seen): &mut (&mut Vec<Inst>, &mut SideTable<Value, bool>), value: Value, before: &mut Vec<Value>| {
            let is_new = late[value] && ops.len() <= MOST_OPS && !std::mem::replace(&mut seen[value], true);
            if is_new && let Some(op) = func.def_op(value) {
                op.for_each_operand(&mut |operand| before.push(operand));
            }
            is_new
        };
        let leave = |(ops, _): &mut (&mut Vec<Inst>, &mut SideTable<Value, bool>), value: Value| {
            if let Def::Result(inst, _) = func.def(value) {
                ops.push(inst);
            }
        };
        postorder(&mut (&mut ops, &mut seen), *value, enter, leave);
    }
    (ops.len() <= MOST_OPS).then_some(ops)
}
