//! Rewriting shared by all passes: replacing values, copying regions and splitting loops.

use crate::ir::arena::{Handle, Inst, Region, SideTable, Value};
use crate::ir::constexpr::ConstExpr;
use crate::ir::function::Function;
use crate::ir::ops::Op;

/// Did a pass change the kernel?
pub type Changed = bool;

/// A map from values to their replacements, which follows chains.
#[derive(Clone, Debug, Default)]
pub struct Substitution {
    map: SideTable<Value, Option<Value>>,
    any: bool,
}

impl Substitution {
    /// An empty substitution.
    pub fn new() -> Substitution {
        Substitution::default()
    }

    /// Replaces `from` by `to`, or by the replacement of `to`.
    pub fn insert(&mut self, from: Value, to: Value) {
        // Resolving `to` keeps chains short when passes insert in the order of the text.
        let to = self.get(to);
        if from != to {
            self.map[from] = Some(to);
            self.any = true;
        }
    }

    /// The replacement of `value`.
    pub fn get(&self, value: Value) -> Value {
        let mut at = value;
        while let Some(next) = self.map[at] {
            at = next;
        }
        at
    }

    /// Is the substitution empty?
    pub fn is_empty(&self) -> bool {
        !self.any
    }
}

/// Replaces operands in a region and its nested regions.
pub fn substitute(func: &mut Function, region: Region, with: &Substitution) -> Changed {
    if with.is_empty() {
        return false;
    }
    let mut insts = Vec::new();
    func.for_each_inst(region, &mut |inst| insts.push(inst));
    for inst in insts {
        func.inst_mut(inst).op.map_operands(&mut |value| with.get(value));
    }
    true
}

/// Replaces ops by values: `expand` appends ops that compute the value to the region, or returns `None` to keep the op.
pub fn expand_each(func: &mut Function, mut expand: impl FnMut(&mut Function, Region, Inst) -> Option<Value>) -> Changed {
    let mut replaced = Substitution::new();
    for region in func.regions_under(func.body) {
        for inst in std::mem::take(func.insts_mut(region)) {
            match expand(func, region, inst) {
                Some(value) => replaced.insert(func.result(inst), value),
                None => func.insts_mut(region).push(inst),
            }
        }
    }
    substitute(func, func.body, &replaced)
}

/// Copies the ops of `from` to the end of `to`, with nested regions. Operands in `map` are replaced; the copies of values defined inside are
/// added to it. The parameters of `from` must be in it already.
pub fn copy_insts(func: &mut Function, from: Region, to: Region, map: &mut Substitution) {
    for inst in func.region(from).insts.clone() {
        let data = func.inst(inst).clone();
        let mut op = data.op;
        op.map_operands(&mut |value| map.get(value));
        copy_regions(func, &mut op, map);
        let types: Vec<_> = data.results.iter().map(|value| func.ty(*value).clone()).collect();
        let copy = func.append(to, op, types, data.loc);
        for (old, new) in data.results.into_iter().zip(func.inst(copy).results.clone()) {
            map.insert(old, new);
        }
    }
}

/// Replaces the regions of `op` by copies.
pub fn copy_regions(func: &mut Function, op: &mut Op, map: &mut Substitution) {
    op.map_regions(&mut |region| {
        let copy = func.add_region();
        for param in func.region(region).params.clone() {
            let ty = func.ty(param).clone();
            let new = func.add_region_param(copy, ty);
            map.insert(param, new);
        }
        copy_insts(func, region, copy, map);
        copy
    });
}

/// Makes two loops of the loop `inst`, and returns the first one, which belongs in front of `inst`; `None` if `inst` is no loop. The first has the
/// body `first`, a region with its own parameters, and runs the iterations before `middle` in steps of `step`. The second is `inst`, with the
/// original body, and runs the other iterations. `middle` is an index of the loop, or one after its last one. `is_unrolled` says whether `first` is
/// several iterations of the original body.
pub fn split_for(func: &mut Function, inst: Inst, middle: Value, (first, step): (Region, Value), is_unrolled: bool) -> Option<Inst> {
    let data = func.inst(inst).clone();
    let Op::For { lower, upper, step: own_step, init, body, num_stages, unroll, guarded, .. } = data.op else { return None };
    let types: Vec<_> = init.iter().map(|value| func.ty(*value).clone()).collect();
    // A loop that is unrolled is not unrolled again.
    let unroll = if is_unrolled { Some(ConstExpr::Int(1).into()) } else { unroll };
    let head = Op::For { lower, upper: middle, step, init, body: first, num_stages, unroll, remainder: false, guarded };
    let head = func.make_inst(head, types, data.loc);
    let (init, num_stages) = (func.inst(head).results.to_vec(), Some(ConstExpr::Int(1).into()));
    let rest = Op::For { lower: middle, upper, step: own_step, init, body, num_stages, unroll: None, remainder: true, guarded };
    func.inst_mut(inst).op = rest;
    Some(head)
}

/// Appends to `front` a branch that takes the place of the op `inst`, and returns it with its two arms, which are empty. The results of the branch replace those
/// of the op in the whole kernel, to which the branch does not belong yet: an arm may hold the op.
pub fn replace_by_branch(func: &mut Function, inst: Inst, front: Region, cond: Value, rare: bool) -> (Inst, [Region; 2]) {
    let data = func.inst(inst).clone();
    let types: Vec<_> = data.results.iter().map(|result| func.ty(*result).clone()).collect();
    let arms = [0; 2].map(|_| func.add_region());
    let branch = func.append(front, Op::If { cond, then_region: arms[0], else_region: arms[1], rare }, types, data.loc);
    let mut with = Substitution::new();
    for (old, new) in data.results.iter().zip(&func.inst(branch).results) {
        with.insert(*old, *new);
    }
    substitute(func, func.body, &with);
    (branch, arms)
}

/// Appends an op to an arm of a branch, which yields the op's results.
pub fn yield_op(func: &mut Function, arm: Region, inst: Inst) {
    let (values, loc) = (func.inst(inst).results.to_vec(), func.inst(inst).loc);
    func.insts_mut(arm).push(inst);
    func.append(arm, Op::Yield { values }, [], loc);
}

/// Appends copies of ops, with the layouts of their results, to a region.
pub fn copy_laid_out(func: &mut Function, insts: &[Inst], to: Region, map: &mut Substitution) {
    let scratch = func.add_region();
    *func.insts_mut(scratch) = insts.to_vec();
    copy_insts(func, scratch, to, map);
    for inst in insts {
        let result = func.result(*inst);
        func.layouts[map.get(result)] = func.layouts[result].clone();
    }
}

/// The results of some ops that other ops use. `uses` are the [`use_counts`].
pub fn used_elsewhere(func: &Function, insts: &[Inst], uses: &[u32]) -> Vec<Value> {
    let mut own: SideTable<Value, u32> = SideTable::new();
    for inst in insts {
        func.inst(*inst).op.for_each_operand(&mut |operand| own[operand] += 1);
    }
    insts.iter().map(|inst| func.result(*inst)).filter(|result| uses[result.index()] > own[*result]).collect()
}

/// The number of uses of each value, by its index.
pub fn use_counts(func: &Function) -> Vec<u32> {
    let mut counts = vec![0; func.value_count()];
    for inst in func.all_insts() {
        func.inst(inst).op.for_each_operand(&mut |value| counts[value.index()] += 1);
    }
    counts
}
