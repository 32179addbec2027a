//! The producer's part of a kernel: the scalars and the control flow from which the places of copied blocks follow.

use crate::ir::{Def, Function, Inst, Op, Region, SideTable, Value};
use crate::location::Loc;

use super::obstacle::Obstacle;
use super::plan::Plan;

/// The ops and values of the producer.
pub(super) struct Slice {
    /// The branches and loops that it executes.
    pub(super) control: SideTable<Inst, bool>,
    /// The scalars that it computes.
    pub(super) values: SideTable<Value, bool>,
}

/// The slice that leads to the copied loads of a plan.
pub(super) fn of(func: &Function, plan: &Plan) -> Result<Slice, Obstacle> {
    let mut slicer =
        Slicer { func, slice: Slice { control: SideTable::new(), values: SideTable::new() }, around: SideTable::new(), open: Vec::new() };
    slicer.note_regions(func.body, None);
    for inst in func.all_insts() {
        let Some(copied) = plan.loads.get(&inst) else { continue };
        let region = func.regions_under(func.body).into_iter().find(|region| func.region(*region).insts.contains(&inst));
        if let Some(around) = region.and_then(|region| slicer.around[region]) {
            slicer.keep(around);
        }
        let corners = copied.block.axes.iter().flat_map(|axis| axis.corner.scalars());
        corners.for_each(|scalar| slicer.need(scalar));
        slicer.follow(func.inst(inst).loc)?;
    }
    Ok(slicer.slice)
}

struct Slicer<'a> {
    func: &'a Function,
    slice: Slice,
    /// The op of which a region is a part.
    around: SideTable<Region, Option<Inst>>,
    /// Values whose operands have not been visited.
    open: Vec<Value>,
}

impl Slicer<'_> {
    fn note_regions(&mut self, region: Region, around: Option<Inst>) {
        self.around[region] = around;
        for inst in self.func.region(region).insts.clone() {
            let mut inner = Vec::new();
            self.func.inst(inst).op.for_each_region(&mut |region| inner.push(region));
            inner.into_iter().for_each(|region| self.note_regions(region, Some(inst)));
        }
    }

    fn need(&mut self, value: Value) {
        if !self.slice.values[value] {
            self.slice.values[value] = true;
            self.open.push(value);
        }
    }

    /// Keeps a branch or a loop, those around it, and what they decide by.
    fn keep(&mut self, inst: Inst) {
        let mut next = Some(inst);
        while let Some(inst) = next.filter(|inst| !self.slice.control[*inst]) {
            self.slice.control[inst] = true;
            match self.func.inst(inst).op {
                Op::If { cond, .. } => self.need(cond),
                Op::For { lower, upper, step, .. } => [lower, upper, step].into_iter().for_each(|bound| self.need(bound)),
                Op::While { test, .. } => {
                    if let Op::Condition { cond, .. } = self.func.inst(self.func.terminator(test)).op {
                        self.need(cond);
                    }
                }
                _ => {}
            }
            next = self.region_of(inst).and_then(|region| self.around[region]);
        }
    }

    fn region_of(&self, inst: Inst) -> Option<Region> {
        self.func.regions_under(self.func.body).into_iter().find(|region| self.func.region(*region).insts.contains(&inst))
    }

    /// Visits the operands of all needed values.
    fn follow(&mut self, loc: Loc) -> Result<(), Obstacle> {
        let func = self.func;
        while let Some(value) = self.open.pop() {
            if func.param_index(value).is_some() {
                continue;
            }
            if !func.ty(value).is_scalar() {
                return Err(Obstacle::Data(loc));
            }
            match func.def(value) {
                Def::Result(inst, number) => {
                    let op = &func.inst(inst).op;
                    if op.is_pure() && !op.has_regions() {
                        op.for_each_operand(&mut |operand| self.need(operand));
                    } else if matches!(op, Op::If { .. } | Op::For { .. } | Op::While { .. }) {
                        self.keep(inst);
                        self.carried(inst, number);
                    } else {
                        return Err(Obstacle::Data(loc));
                    }
                }
                Def::Param(region, number) => {
                    let Some(inst) = self.around[region] else { return Err(Obstacle::Data(loc)) };
                    self.keep(inst);
                    match func.inst(inst).op {
                        Op::For { .. } if number == 0 => {}
                        Op::For { .. } => self.carried(inst, number - 1),
                        Op::While { .. } => self.carried(inst, number),
                        _ => return Err(Obstacle::Data(loc)),
                    }
                }
            }
        }
        Ok(())
    }

    /// Needs a result of a branch, or a carried value of a loop: what it begins as and what regions pass on.
    fn carried(&mut self, inst: Inst, number: usize) {
        let func = self.func;
        let mut needed = func.inst(inst).results.get(number).copied().into_iter().collect::<Vec<_>>();
        match &func.inst(inst).op {
            Op::If { then_region, else_region, .. } => {
                needed.extend([then_region, else_region].map(|region| func.yielded(*region)[number]))
            }
            Op::For { init, body, .. } => needed.extend([init[number], func.region(*body).params[number + 1], func.yielded(*body)[number]]),
            Op::While { init, test, body } => {
                let params = [test, body].map(|region| func.region(*region).params[number]);
                let yielded = [test, body].map(|region| func.yielded(*region)[number]);
                needed.extend([init[number]].into_iter().chain(params).chain(yielded));
            }
            _ => {}
        }
        needed.into_iter().for_each(|value| self.need(value));
    }
}

impl Slice {
    /// The numbers of those results of a branch, or carried values of a loop, that the producer computes.
    pub(super) fn carried(&self, func: &Function, inst: Inst) -> Vec<usize> {
        let results = &func.inst(inst).results;
        (0..results.len()).filter(|number| self.values[results[*number]]).collect()
    }
}
