//! Reductions of what a loop carries move into the branches of its versions.
//!
//! ```text
//! %total = if %is_remainder {               %sum = if %is_remainder {
//!     %r = for .. {remainder}                   %r = for .. {remainder}
//!     yield %r                                  %s = reduce %r
//! } else {                                      yield %s
//!     %g = for .. {guarded}                 } else {
//!     yield %g                                  %g = for .. {guarded}
//! }                                             %t = reduce %g
//! ..                                            yield %t
//! %sum = reduce %total                      }
//! ```
//!
//! A guarded loop has a layout of its own. Behind the branch, the carried tiles would have the other layout, and each thread would exchange all of its
//! elements. A reduction leaves few.

use crate::ir::rewrite::{Substitution, copy_regions, substitute, use_counts};
use crate::ir::{Function, Handle, Inst, Op, SideTable, Value};

/// Moves the reductions of what the versions of a loop carry into the branch that chooses between them, if nothing else uses it.
pub(super) fn sink(func: &mut Function) {
    let versions: Vec<Inst> = func.all_insts().into_iter().filter(|inst| is_branch_of_versions(func, *inst)).collect();
    for branch in versions {
        sink_into(func, branch);
    }
}

/// Does an op choose between the remainder loop and the guarded loop?
fn is_branch_of_versions(func: &Function, inst: Inst) -> bool {
    let Op::If { else_region, .. } = func.inst(inst).op else { return false };
    func.region(else_region).insts.iter().any(|inst| matches!(func.inst(*inst).op, Op::For { guarded: true, .. }))
}

fn sink_into(func: &mut Function, branch: Inst) {
    let data = func.inst(branch).clone();
    let Op::If { then_region, else_region, .. } = data.op else { return };
    let is_carried = |value: Value| data.results.contains(&value);
    let mut reduces = func.all_insts();
    reduces.retain(|inst| matches!(&func.inst(*inst).op, Op::Reduce { inputs, .. } if inputs.iter().all(|input| is_carried(*input))));
    // A tile that something else uses crosses the branch in any case.
    let mut others = use_counts(func);
    reduces.iter().for_each(|reduce| func.inst(*reduce).op.for_each_operand(&mut |input| others[input.index()] -= 1));
    reduces.retain(|reduce| {
        let mut is_only_reduced = true;
        func.inst(*reduce).op.for_each_operand(&mut |input| is_only_reduced &= others[input.index()] == 0);
        is_only_reduced
    });
    let mut reduced: SideTable<Value, bool> = SideTable::new();
    reduces.iter().for_each(|reduce| func.inst(*reduce).op.for_each_operand(&mut |input| reduced[input] = true));

    let mut with = Substitution::new();
    for reduce in &reduces {
        for result in func.inst(*reduce).results.clone() {
            let ty = func.ty(result).clone();
            with.insert(result, func.add_result(branch, ty));
        }
    }
    for version in [then_region, else_region] {
        let mut map = Substitution::new();
        let carried = func.yielded(version).to_vec();
        data.results.iter().zip(&carried).for_each(|(result, value)| map.insert(*result, *value));
        let mut values: Vec<Value> = data.results.iter().zip(carried).filter(|(result, _)| !reduced[**result]).map(|(_, value)| value).collect();
        let last = func.insts_mut(version).pop();
        for reduce in &reduces {
            let mut moved = func.inst(*reduce).clone();
            moved.op.map_operands(&mut |input| map.get(input));
            copy_regions(func, &mut moved.op, &mut map);
            let types: Vec<_> = moved.results.iter().map(|result| func.ty(*result).clone()).collect();
            let copy = func.append(version, moved.op, types, moved.loc);
            values.extend(func.inst(copy).results.iter());
        }
        func.insts_mut(version).extend(last);
        let terminator = func.terminator(version);
        func.inst_mut(terminator).op = Op::Yield { values };
    }
    func.remove_results(branch, |result| reduced[result]);
    let body = func.body;
    substitute(func, body, &with);
    // They use results that are gone.
    for region in func.regions_under(body) {
        func.insts_mut(region).retain(|inst| !reduces.contains(inst));
    }
}
