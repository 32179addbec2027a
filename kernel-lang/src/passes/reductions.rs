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
//! elements. A reduction leaves few. One that combines with what is computed behind the branch stays there.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::loops::captured;
use crate::ir::rewrite::{Substitution, copy_regions, substitute, use_counts};
use crate::ir::{Function, Handle, Inst, Op, Region, Value};

/// A branch that chooses between versions of a loop.
pub(super) struct Versions {
    /// The branch, whose results are those of the loop.
    pub(super) branch: Inst,
    /// Its two regions.
    pub(super) regions: [Region; 2],
}

/// Moves the reductions of what the versions of loops carry into the branches that choose between them, if nothing else uses it.
pub(super) fn sink_into_versions(func: &mut Function, branches: Vec<Versions>) {
    let insts = func.all_insts();
    let mut reduces = reduced_alone(func, &insts);
    let (mut with, mut sunk) = (Substitution::new(), FxHashSet::default());
    for Versions { branch, regions } in branches {
        let results = func.inst(branch).results.to_vec();
        let moved: Vec<(Value, Vec<Inst>)> = results.iter().filter_map(|result| Some((*result, reduces.remove(result)?))).collect();
        sink_into(func, branch, regions, &moved, &mut with);
        sunk.extend(moved.into_iter().flat_map(|(_, reduces)| reduces));
    }
    let body = func.body;
    substitute(func, body, &with);
    // The originals use results that are gone.
    for region in func.regions_under(body) {
        func.insts_mut(region).retain(|inst| !sunk.contains(inst));
    }
}

/// The tiles that nothing but reductions use, and their reductions. A tile that something else uses crosses the branch in any case.
fn reduced_alone(func: &Function, insts: &[Inst]) -> FxHashMap<Value, Vec<Inst>> {
    let mut reduces: FxHashMap<Value, Vec<Inst>> = FxHashMap::default();
    for inst in insts {
        // A reduction of several tiles, such as the index of a maximum, is long code, of which there would be two copies.
        if let Op::Reduce { inputs, combine, .. } = &func.inst(*inst).op
            && let [input] = inputs[..]
            // It may combine with what is computed behind the branch.
            && captured(func, &[*combine]).is_empty()
        {
            reduces.entry(input).or_default().push(*inst);
        }
    }
    let uses = use_counts(func);
    reduces.retain(|input, own| uses[input.index()] as usize == own.len());
    reduces
}

/// Moves reductions into the versions. `with` maps their results to results of the branch.
fn sink_into(func: &mut Function, branch: Inst, versions: [Region; 2], moved: &[(Value, Vec<Inst>)], with: &mut Substitution) {
    let results = func.inst(branch).results.to_vec();
    let gone: FxHashSet<Value> = moved.iter().map(|(result, _)| *result).collect();
    for reduce in moved.iter().flat_map(|(_, reduces)| reduces) {
        let result = func.result(*reduce);
        let ty = func.ty(result).clone();
        with.insert(result, func.add_result(branch, ty));
    }
    for version in versions {
        let (mut map, mut values) = (Substitution::new(), Vec::new());
        for (result, value) in results.iter().zip(func.yielded(version).to_vec()) {
            map.insert(*result, value);
            values.extend((!gone.contains(result)).then_some(value));
        }
        let terminator = func.insts_mut(version).pop();
        for reduce in moved.iter().flat_map(|(_, reduces)| reduces) {
            let mut copy = func.inst(*reduce).clone();
            copy.op.map_operands(&mut |input| map.get(input));
            copy_regions(func, &mut copy.op, &mut map);
            let ty = func.ty(copy.results[0]).clone();
            let copy = func.append(version, copy.op, [ty], copy.loc);
            values.push(func.result(copy));
        }
        if let Some(terminator) = terminator {
            func.inst_mut(terminator).op = Op::Yield { values };
            func.insts_mut(version).push(terminator);
        }
    }
    func.remove_results(branch, |result| gone.contains(&result));
}
