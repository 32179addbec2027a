//! Order of conjuncts: in a condition, conjuncts that are known early come before those that wait for a load.
//!
//! ```text
//! ; before
//! kernel @k(%x: ptr<i64>, %y: ptr_mut<f32>, %n: i64, %f: f32) {
//!     %0 = program_id : i64
//!     %1 = load %x, %0 : i64
//!     %2 = lt %1, %n : bool
//!     %3 = lt %0, %n : bool
//!     %4 = and %2, %3 : bool
//!     %5 = const {value = 7} : i64
//!     %6 = and %n, %5 : i64
//!     %7 = const {value = 0} : i64
//!     %8 = eq %6, %7 : bool
//!     %9 = and %4, %8 : bool
//!     if %9 () {
//!         store %y, %0, %f
//!         yield
//!     } () {
//!         yield
//!     }
//!     return
//! }
//! ; after
//! kernel @k(%x: ptr<i64>, %y: ptr_mut<f32>, %n: i64, %f: f32) {
//!     %0 = program_id : i64
//!     %1 = load %x, %0 : i64
//!     %2 = lt %1, %n : bool
//!     %3 = lt %0, %n : bool
//!     %4 = const {value = 7} : i64
//!     %5 = and %n, %4 : i64
//!     %6 = const {value = 0} : i64
//!     %7 = eq %5, %6 : bool
//!     %8 = and %7, %3 : bool
//!     %9 = and %8, %2 : bool
//!     if %9 () {
//!         store %y, %0, %f
//!         yield
//!     } () {
//!         yield
//!     }
//!     return
//! }
//! ```
//!
//! A program computes a condition by a chain of `and`s. If a loaded number is in the first link, the whole chain waits for the load. So conjuncts that wait for a
//! load come last. Conjuncts that are the same in all programs come first: [`super::compute_at_launch`] makes one launch value of them. If the host can compute
//! the whole condition at launch, the pass does not change the condition.

use rustc_hash::FxHashSet;

use crate::dtype::Dtype;
use crate::ir::rewrite::{Changed, use_counts};
use crate::ir::{BinaryOp, Def, Function, Handle, Inst, Op, SideTable, Type, Value};
use crate::launch_value::{executed, known_scalars};
use crate::passes::dce;

/// When the value of a scalar is known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Known {
    /// At launch, and it is the same in all programs.
    Uniform,
    /// At launch, for each program.
    AtLaunch,
    /// When the program runs. Values that a loop carries count as these.
    Running,
    /// When a load has arrived.
    Loaded,
}

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let chains = chains(func);
    if chains.is_empty() {
        return false;
    }
    let regions = executed(func);
    let (uniform, at_launch) = (known_scalars(func, &regions, &Op::is_uniform), known_scalars(func, &regions, &Op::is_known_at_launch));
    let late = loaded(func);
    let known = |value: &Value| match *value {
        value if uniform[value] || func.param_index(value).is_some() => Known::Uniform,
        value if at_launch[value] => Known::AtLaunch,
        value if late[value] => Known::Loaded,
        _ => Known::Running,
    };
    let mut ordered: SideTable<Inst, Vec<Value>> = SideTable::new();
    for (root, conjuncts) in chains {
        let (mut order, mut seen) = (conjuncts.clone(), FxHashSet::default());
        order.retain(|conjunct| seen.insert(*conjunct));
        order.sort_by_key(known);
        let is_late = order.last().is_some_and(|last| known(last) > Known::AtLaunch);
        if is_late && order.len() > 1 && order != conjuncts {
            ordered[root] = order;
        }
    }
    let mut changed = false;
    for region in func.regions_under(func.body) {
        let mut out = Vec::new();
        for inst in func.region(region).insts.clone() {
            if let [first, middle @ .., last] = &ordered[inst][..] {
                let (loc, mut all) = (func.inst(inst).loc, *first);
                for &next in middle {
                    let and = func.make_inst(Op::Binary { op: BinaryOp::And, lhs: all, rhs: next }, [Type::scalar(Dtype::Bool)], loc);
                    all = func.result(and);
                    out.push(and);
                }
                func.inst_mut(inst).op = Op::Binary { op: BinaryOp::And, lhs: all, rhs: *last };
                changed = true;
            }
            out.push(inst);
        }
        *func.insts_mut(region) = out;
    }
    if changed {
        dce::run(func);
    }
    changed
}

/// The last op of each chain of `and`s, and the conjuncts of the chain, in their order. Only the next `and` uses the result of an `and` inside of a chain.
fn chains(func: &Function) -> Vec<(Inst, Vec<Value>)> {
    let uses = use_counts(func);
    let sides = |inst: Inst| match func.inst(inst).op {
        Op::Binary { op: BinaryOp::And, lhs, rhs } if *func.ty(lhs) == Type::scalar(Dtype::Bool) => Some([lhs, rhs]),
        _ => None,
    };
    let mut chains = Vec::new();
    // The ops of the region that are in no chain yet: what a loop has in front of it stays there.
    let mut is_free: SideTable<Inst, bool> = SideTable::new();
    for region in func.regions_under(func.body) {
        let insts = &func.region(region).insts;
        insts.iter().for_each(|inst| is_free[*inst] = true);
        for &root in insts.iter().rev() {
            if !std::mem::take(&mut is_free[root]) {
                continue;
            }
            let Some([lhs, rhs]) = sides(root) else { continue };
            let (mut open, mut conjuncts) = (vec![rhs, lhs], Vec::new());
            while let Some(value) = open.pop() {
                let link = match func.def(value) {
                    Def::Result(link, 0) if uses[value.index()] == 1 && is_free[link] => sides(link).map(|sides| (link, sides)),
                    _ => None,
                };
                let Some((link, [lhs, rhs])) = link else {
                    conjuncts.push(value);
                    continue;
                };
                is_free[link] = false;
                open.extend([rhs, lhs]);
            }
            chains.push((root, conjuncts));
        }
    }
    chains
}

/// The values that depend on a load, or on what a region computes.
fn loaded(func: &Function) -> SideTable<Value, bool> {
    let mut late: SideTable<Value, bool> = SideTable::new();
    for inst in func.all_insts() {
        let data = func.inst(inst);
        let mut is_late = !data.op.is_pure() || data.op.has_regions();
        data.op.for_each_operand(&mut |operand| is_late |= late[operand]);
        data.results.iter().for_each(|result| late[*result] = is_late);
    }
    late
}
