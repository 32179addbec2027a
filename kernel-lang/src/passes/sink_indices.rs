//! Copies cheap tiles into the regions that use them: constants, `arange`, broadcasts of scalars, and sums of those.
//!
//! ```text
//! ; before
//! kernel @k(%y: ptr_mut<f32>, %v: tile<f32, [64]>, %on: bool) {
//!     %0 = arange {start = 0, end = 64} : tile<i64, [64]>
//!     if %on () {
//!         store %y, %0, %v
//!         yield
//!     } () {
//!         yield
//!     }
//!     return
//! }
//! ; after
//! kernel @k(%y: ptr_mut<f32>, %v: tile<f32, [64]>, %on: bool) {
//!     %0 = arange {start = 0, end = 64} : tile<i64, [64]>
//!     if %on () {
//!         %1 = arange {start = 0, end = 64} : tile<i64, [64]>
//!         store %y, %1, %v
//!         yield
//!     } () {
//!         yield
//!     }
//!     return
//! }
//! ```
//!
//! Such a tile costs an instruction or none wherever it stands, but a tile has one layout: shared between regions it would tie
//! their layouts together, and the branch for full tiles wants another layout than the guarded one. Runs last before layouts are
//! assigned, because [`super::cse`] and [`super::licm`] would undo it.

use crate::analysis::affine::AffineFacts;
use crate::ir::rewrite::Changed;
use crate::ir::{Def, Function, Inst, Op, Region, SideTable, Value};

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let mut facts = AffineFacts::new();
    let mut home: SideTable<Value, Option<Region>> = SideTable::new();
    let regions = func.regions_under(func.body);
    for region in &regions {
        for inst in &func.region(*region).insts {
            func.inst(*inst).results.iter().for_each(|result| home[*result] = Some(*region));
        }
    }
    let mut changed = false;
    for region in regions {
        let mut cx = Cx { func, facts: &mut facts, home: &home, region, copies: SideTable::new(), out: Vec::new(), changed: false };
        for inst in cx.func.region(region).insts.clone() {
            let mut op = cx.func.inst(inst).op.clone();
            // What a region hands on keeps its layout: it flows into the values around the region.
            if !op.is_terminator() {
                op.map_operands(&mut |value| cx.here(value));
                cx.func.inst_mut(inst).op = op;
            }
            cx.out.push(inst);
        }
        changed |= cx.changed;
        let out = std::mem::take(&mut cx.out);
        *func.insts_mut(region) = out;
    }
    changed
}

struct Cx<'a> {
    func: &'a mut Function,
    facts: &'a mut AffineFacts,
    home: &'a SideTable<Value, Option<Region>>,
    region: Region,
    copies: SideTable<Value, Option<Value>>,
    out: Vec<Inst>,
    changed: bool,
}

impl Cx<'_> {
    /// The value, or its copy in this region if it is cheap and comes from another.
    fn here(&mut self, value: Value) -> Value {
        if let Some(copy) = self.copies[value] {
            return copy;
        }
        let Def::Result(inst, _) = self.func.def(value) else { return value };
        if self.home[value] == Some(self.region) || !self.func.ty(value).is_tile() || !self.is_cheap(value) {
            return value;
        }
        let data = self.func.inst(inst).clone();
        let mut op = data.op;
        op.map_operands(&mut |operand| self.here(operand));
        let ty = self.func.ty(value).clone();
        let copy = self.func.make_inst(op, [ty], data.loc);
        self.out.push(copy);
        let result = self.func.result(copy);
        self.copies[value] = Some(result);
        self.changed = true;
        result
    }

    fn is_cheap(&mut self, value: Value) -> bool {
        match self.func.def_op(value) {
            Some(Op::Const { .. } | Op::Arange { .. }) => true,
            Some(Op::Broadcast { x }) => self.func.ty(*x).is_scalar() || self.facts.get(self.func, value).is_some(),
            Some(
                Op::ExpandDims { .. } | Op::Reshape { .. } | Op::Permute { .. } | Op::Flip { .. } | Op::Unary { .. } | Op::Binary { .. },
            ) => self.facts.get(self.func, value).is_some(),
            _ => false,
        }
    }
}
