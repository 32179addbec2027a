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
use crate::ir::{Function, Handle, Inst, Op, Value};

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
    // A reduction of several tiles, such as the index of a maximum, is long code, of which there would be two copies.
    let input = |inst: Inst| match &func.inst(inst).op {
        Op::Reduce { inputs, .. } if inputs.len() == 1 => inputs.first().copied(),
        _ => None,
    };
    let mut reduces: Vec<(Inst, Value)> = func.all_insts().into_iter().filter_map(|inst| Some((inst, input(inst)?))).collect();
    reduces.retain(|(_, input)| data.results.contains(input));
    // A tile that something else uses crosses the branch in any case.
    let mut others = use_counts(func);
    reduces.iter().for_each(|(_, input)| others[input.index()] -= 1);
    reduces.retain(|(_, input)| others[input.index()] == 0);
    let is_reduced = |value: Value| reduces.iter().any(|(_, input)| *input == value);

    let mut with = Substitution::new();
    for (reduce, _) in &reduces {
        let result = func.result(*reduce);
        let ty = func.ty(result).clone();
        with.insert(result, func.add_result(branch, ty));
    }
    for version in [then_region, else_region] {
        let (mut map, mut values) = (Substitution::new(), Vec::new());
        for (result, value) in data.results.iter().zip(func.yielded(version).to_vec()) {
            map.insert(*result, value);
            values.extend((!is_reduced(*result)).then_some(value));
        }
        let terminator = func.insts_mut(version).pop();
        for (reduce, _) in &reduces {
            let mut moved = func.inst(*reduce).clone();
            moved.op.map_operands(&mut |input| map.get(input));
            copy_regions(func, &mut moved.op, &mut map);
            let ty = func.ty(moved.results[0]).clone();
            let copy = func.append(version, moved.op, [ty], moved.loc);
            values.push(func.result(copy));
        }
        if let Some(terminator) = terminator {
            func.inst_mut(terminator).op = Op::Yield { values };
            func.insts_mut(version).push(terminator);
        }
    }
    func.remove_results(branch, is_reduced);
    let body = func.body;
    substitute(func, body, &with);
    // The originals use results that are gone.
    for region in func.regions_under(body) {
        func.insts_mut(region).retain(|inst| !reduces.iter().any(|(reduce, _)| reduce == inst));
    }
}
