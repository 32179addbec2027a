//! Tests at launch: conditions of branches that the host can evaluate become `launch_test`s.
//!
//! ```text
//! ; before
//! kernel @k(%y: ptr_mut<i64>, %n: i64) {
//!     %0 = program_id : i64
//!     %1 = const {value = 1024} : i64
//!     %2 = mul %0, %1 : i64
//!     %3 = length %y : i64
//!     %4 = sub %3, %1 : i64
//!     %5 = le %2, %4 : bool
//!     if %5 () {
//!         store %y, %0, %n
//!         yield
//!     } () {
//!         yield
//!     }
//!     return
//! }
//! ; after
//! kernel @k(%y: ptr_mut<i64>, %n: i64) {
//!     %0 = program_id : i64
//!     %7 = launch_test () {
//!         %1 = program_id : i64
//!         %2 = const {value = 1024} : i64
//!         %3 = mul %1, %2 : i64
//!         %4 = length %y : i64
//!         %5 = sub %4, %2 : i64
//!         %6 = le %3, %5 : bool
//!         yield %6
//!     } : bool
//!     if %7 () {
//!         store %y, %0, %n
//!         yield
//!     } () {
//!         yield
//!     }
//!     return
//! }
//! ```
//!
//! A program waits for such a condition before its first load, although it has the same value in most programs of a launch. A condition of few ops stays:
//! a launch test takes a comparison for each axis itself.

use std::collections::HashSet;

use crate::ir::rewrite::{Changed, Substitution};
use crate::ir::{Def, Function, Inst, Op, Value};
use crate::launch_test::{MOST_PARAMETERS, axes};

/// The number of ops that a test at launch saves at least. Constants, parameters, and the numbers of programs do not count.
const FEWEST_OPS: usize = 3;

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let mut parameters = 0;
    for region in func.regions_under(func.body) {
        let mut at = 0;
        while let Some(&inst) = func.region(region).insts.get(at) {
            at += 1;
            let Op::If { cond, .. } = func.inst(inst).op else { continue };
            let Some(ops) = computation(func, cond) else { continue };
            let count = axes(func, &ops).len().max(1);
            if ops.iter().filter(|op| is_counted(&func.inst(**op).op)).count() < FEWEST_OPS || parameters + count > MOST_PARAMETERS {
                continue;
            }
            parameters += count;
            let test = func.add_region();
            let mut copies = Substitution::new();
            for op in ops {
                let data = func.inst(op).clone();
                let mut copied = data.op;
                copied.map_operands(&mut |value| copies.get(value));
                let ty = func.ty(data.results[0]).clone();
                let copy = func.append(test, copied, [ty], data.loc);
                copies.insert(data.results[0], func.result(copy));
            }
            let (ty, loc) = (func.ty(cond).clone(), func.inst(inst).loc);
            func.append(test, Op::Yield { values: vec![copies.get(cond)] }, [], loc);
            let launch_test = func.make_inst(Op::LaunchTest { test }, [ty], loc);
            let answer = func.result(launch_test);
            if let Op::If { cond, .. } = &mut func.inst_mut(inst).op {
                *cond = answer;
            }
            func.insts_mut(region).insert(at - 1, launch_test);
            at += 1;
        }
    }
    parameters > 0
}

fn is_counted(op: &Op) -> bool {
    !matches!(op, Op::Const { .. } | Op::ProgramId { .. } | Op::NumPrograms { .. } | Op::Length { .. } | Op::Address { .. })
}

/// The ops that compute a value from the kernel's parameters, in order; `None` if the host does not know one of them.
fn computation(func: &Function, value: Value) -> Option<Vec<Inst>> {
    let mut ops: Vec<Inst> = Vec::new();
    let mut seen: HashSet<Value> = HashSet::new();
    // A value is visited twice: before its operands, and after them.
    let mut open = vec![(value, false)];
    while let Some((value, has_operands)) = open.pop() {
        let inst = match func.def(value) {
            Def::Param(..) if func.param_index(value).is_some() => continue,
            Def::Result(inst, 0) => inst,
            _ => return None,
        };
        if has_operands {
            ops.push(inst);
            continue;
        }
        if !seen.insert(value) {
            continue;
        }
        let op = &func.inst(inst).op;
        if !op.is_known_at_launch() || !func.ty(value).is_scalar() {
            return None;
        }
        open.push((value, true));
        let first = open.len();
        op.for_each_operand(&mut |operand| open.push((operand, false)));
        open[first..].reverse();
    }
    Some(ops)
}
