//! Compaction: removes dead ops, values and regions from the tables of a kernel.
//!
//! Passes remove ops from regions, but not from the tables. After the passes, more than half of the ops in the tables are dead. Compaction makes copies of the
//! kernel and side tables that much smaller.

use crate::ir::arena::{Handle, Inst, Value};
use crate::ir::function::{Def, Function};

/// The entities of a table that compaction keeps, and their new handles.
struct Kept<H> {
    /// By old index.
    new: Vec<Option<H>>,
}

impl<H: Handle> Kept<H> {
    /// Keeps `handles` of a table with `len` entities. New handles are numbered in the order of the table.
    fn new(len: usize, handles: impl IntoIterator<Item = H>) -> Kept<H> {
        let mut is_kept = vec![false; len];
        handles.into_iter().for_each(|handle| is_kept[handle.index()] = true);
        let mut count = 0;
        let renumbered = is_kept.into_iter().map(|is_kept| {
            count += usize::from(is_kept);
            is_kept.then(|| H::new(count - 1))
        });
        Kept { new: renumbered.collect() }
    }

    fn has(&self, old: H) -> bool {
        self.new[old.index()].is_some()
    }

    /// The new handle of a kept entity.
    fn get(&self, old: H) -> H {
        self.new[old.index()].expect("compaction keeps an entity with its region and its users")
    }
}

impl Function {
    /// Removes the ops, values and regions that are not in the body. Renumbers the others in order, so all earlier handles become invalid.
    ///
    /// If an op uses a value that the body does not define, the method changes nothing; the verifier reports such a kernel.
    pub fn compact(&mut self) {
        let (regions, insts) = (self.regions_under(self.body), self.all_insts());
        let params = regions.iter().flat_map(|region| &self.regions[*region].params);
        let values = params.chain(insts.iter().flat_map(|inst| &self.insts[*inst].results)).copied();
        let values = Kept::new(self.values.len(), values);
        let mut is_whole = true;
        insts.iter().for_each(|inst| self.insts[*inst].op.for_each_operand(&mut |value| is_whole &= values.has(value)));
        if !is_whole {
            return;
        }
        let (regions, insts) = (Kept::new(self.regions.len(), regions), Kept::new(self.insts.len(), insts));
        self.values.retain(|value| values.has(value));
        self.insts.retain(|inst| insts.has(inst));
        self.regions.retain(|region| regions.has(region));
        for (inst, data) in self.insts.iter_mut() {
            data.op.map_operands(&mut |value| values.get(value));
            data.op.map_regions(&mut |region| regions.get(region));
            for (index, result) in data.results.iter_mut().enumerate() {
                *result = values.get(*result);
                self.values[*result].def = Def::Result(inst, index);
            }
        }
        for (region, data) in self.regions.iter_mut() {
            data.insts.iter_mut().for_each(|inst| *inst = insts.get(*inst));
            for (index, param) in data.params.iter_mut().enumerate() {
                *param = values.get(*param);
                self.values[*param].def = Def::Param(region, index);
            }
        }
        self.body = regions.get(self.body);
        self.params.iter_mut().for_each(|param| param.value = values.get(param.value));
        let before = std::mem::take(&mut self.scratch);
        for old in (0..insts.new.len()).map(Inst::new).filter(|old| insts.has(*old)) {
            if let Some(scratch) = &before[old] {
                self.scratch[insts.get(old)] = Some(scratch.clone());
            }
        }
        let before = std::mem::take(&mut self.layouts);
        for old in (0..values.new.len()).map(Value::new).filter(|old| values.has(*old)) {
            if let Some(layout) = &before[old] {
                self.layouts[values.get(old)] = Some(layout.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Dtype;
    use crate::ir::{Op, Stage, Type, parse, verify};
    use crate::location::Loc;

    const TEXT: &str = "kernel @k(%x: ptr<f32>, %y: ptr_mut<f32>, %n: i64) {
        %0 = const {value = 0} : i64
        %1 = const {value = 64} : i64
        %2 = arange {start = 0, end = 64} : tile<i64, [64]>
        for %0, %n, %1 (%i: i64) {
            %3 = broadcast %i : tile<i64, [64]>
            %4 = add %3, %2 : tile<i64, [64]>
            %5 = load %x, %4 : tile<f32, [64]>
            store %y, %4, %5
            yield
        }
        return
    }";

    #[test]
    fn only_entities_of_the_body_are_kept() {
        let mut func = parse(TEXT).unwrap();
        let (text, values, insts) = (func.to_string(), func.value_count(), func.insts.len());
        // A dead region with three ops, and a dead `arange` between live ops.
        let dead = func.add_region();
        for _ in 0..3 {
            func.append(dead, Op::ProgramId { axis: 0 }, [Type::scalar(Dtype::I64)], Loc::NONE);
        }
        let body = func.body;
        let removed = func.insts_mut(body).remove(2);
        let late = func.inst(removed).clone();
        let arange = func.make_inst(late.op, [func.ty(late.results[0]).clone()], late.loc);
        let (old, new) = (late.results[0], func.result(arange));
        func.insts_mut(body).insert(2, arange);
        for inst in func.all_insts() {
            func.inst_mut(inst).op.map_operands(&mut |value| if value == old { new } else { value });
        }
        assert!(func.value_count() > values && func.to_string() == text);
        func.compact();
        assert_eq!((func.to_string(), func.value_count(), func.insts.len(), func.regions.len()), (text, values, insts, 2));
        verify(&func, Stage::Tile).unwrap();
        for inst in func.all_insts() {
            let results = &func.inst(inst).results;
            assert!((0..results.len()).all(|index| func.def(results[index]) == Def::Result(inst, index)));
        }
    }

    #[test]
    fn a_kernel_with_an_undefined_value_is_not_changed() {
        let mut func = parse(TEXT).unwrap();
        let body = func.body;
        func.insts_mut(body).remove(2);
        let (text, values) = (func.to_string(), func.value_count());
        func.compact();
        assert_eq!((func.to_string(), func.value_count()), (text, values));
    }
}
