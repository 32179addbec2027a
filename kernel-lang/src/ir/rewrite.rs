//! What passes share to change a kernel: replacing values, copying regions.

use crate::ir::arena::{Handle, Inst, Region, SideTable, Value};
use crate::ir::function::Function;
use crate::ir::ops::Op;

/// Did a pass change the kernel?
pub type Changed = bool;

/// Which value stands for which: a substitution that follows chains.
#[derive(Clone, Debug, Default)]
pub struct Substitution {
    map: SideTable<Value, Option<Value>>,
    any: bool,
}

impl Substitution {
    /// Nothing is replaced.
    pub fn new() -> Substitution {
        Substitution::default()
    }

    /// From now on `to`, or what stands for it already, stands for `from`.
    pub fn insert(&mut self, from: Value, to: Value) {
        // Chains stay short where they are made from their end on, as passes do that walk in the order of the text.
        let to = self.get(to);
        if from != to {
            self.map[from] = Some(to);
            self.any = true;
        }
    }

    /// What stands for `value`.
    pub fn get(&self, value: Value) -> Value {
        let mut at = value;
        while let Some(next) = self.map[at] {
            at = next;
        }
        at
    }

    /// Is nothing replaced?
    pub fn is_empty(&self) -> bool {
        !self.any
    }
}

/// Replaces operands everywhere under a region.
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

/// Replaces ops by values: `expand` appends to the region what computes the value, or says that the op stays.
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

/// Copies the ops of `from` to the end of `to`, nested regions too. Operands that `map` knows are replaced; it learns the copies of
/// what is defined inside, `from`'s own parameters must be in it already.
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

/// Gives `op` copies of its regions.
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

/// How often each value is used, by its index.
pub fn use_counts(func: &Function) -> Vec<u32> {
    let mut counts = vec![0; func.value_count()];
    for inst in func.all_insts() {
        func.inst(inst).op.for_each_operand(&mut |value| counts[value.index()] += 1);
    }
    counts
}
