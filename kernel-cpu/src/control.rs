//! Control flow: translates `if`, `for` and `while` to jumps.
//!
//! A loop's carried values have their own slots. The end of the body overwrites them with the next values. An affine tile is carried as its
//! base, a scalar.

use std::collections::HashSet;

use crate::code::{Affine, Instr, Linear, Slot};
use crate::forms::Form;
use crate::translate::{Storage, Symbol, Translator};
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{Op, Region, Type, Value};

/// A carried value: its type and its slot.
struct Carried {
    ty: Type,
    to: Slot,
    symbolic: bool,
}

impl Translator<'_> {
    /// `if`
    pub(super) fn branch(&mut self, cond: Value, regions: [Region; 2], results: &[Value]) {
        let [on_true, on_false] = regions;
        let slots: Vec<Slot> = results.iter().map(|result| self.allocate_for(*result)).collect();
        let skip = self.jump(Instr::JumpUnless(self.storage(cond).slot, 0));
        self.region_into(on_true, &slots);
        let end = self.jump(Instr::Jump(0));
        self.land(skip);
        self.region_into(on_false, &slots);
        self.land(end);
    }

    /// A region that always runs.
    pub(super) fn always(&mut self, region: Region, results: &[Value]) {
        let slots: Vec<Slot> = results.iter().map(|result| self.allocate_for(*result)).collect();
        self.region_into(region, &slots);
    }

    /// Translates a region and copies its yielded values. The slots are new, so no copy overwrites the source of a later one.
    fn region_into(&mut self, region: Region, slots: &[Slot]) {
        self.region(region);
        for (value, to) in self.func.yielded(region).iter().zip(slots) {
            let from = self.storage(*value);
            self.copy(self.func.ty(*value), *to, from);
        }
    }

    /// `for`
    pub(super) fn count(&mut self, bounds: [Value; 3], init: &[Value], body: Region, results: &[Value]) {
        let func = self.func;
        let (index_param, params) = func.region(body).params.split_first().expect("a verified `for` has an index");
        let dtype = func.ty(*index_param).dtype();
        let carried: Vec<Carried> = params.iter().map(|param| self.carry(*param)).collect();
        self.assign(&carried, init);
        let index = self.allocate_for(*index_param);
        let [lower, upper, step] = bounds.map(|bound| self.storage(bound).slot);
        let begin = self.jump(Instr::ForBegin { index, lower, upper, step, dtype, exit: 0 });
        params.iter().zip(&carried).for_each(|(param, carried)| self.bind(*param, carried));
        self.region(body);
        self.assign(&carried, func.yielded(body));
        self.instrs.push(Instr::ForNext { index, upper, step, dtype, body: begin + 1 });
        self.loops.push((begin, self.instrs.len() - 1));
        self.land(begin);
        results.iter().zip(&carried).for_each(|(result, carried)| self.bind(*result, carried));
    }

    /// `while`: the parameters of the body and the results share the slots of the values that the test passes on.
    pub(super) fn repeat(&mut self, init: &[Value], test: Region, body: Region, results: &[Value]) {
        let func = self.func;
        let params = &func.region(test).params;
        let carried: Vec<Carried> = params.iter().map(|param| self.carry(*param)).collect();
        self.assign(&carried, init);
        let begin = self.here();
        params.iter().zip(&carried).for_each(|(param, carried)| self.bind(*param, carried));
        self.region(test);
        let Op::Condition { cond, values } = &func.inst(func.terminator(test)).op else {
            unreachable!("a verified test ends in `condition`");
        };
        let leave = self.jump(Instr::JumpUnless(self.storage(*cond).slot, 0));
        for ((value, param), result) in values.iter().zip(&func.region(body).params).zip(results) {
            let Storage { slot, uniform } = self.storage(*value);
            self.set_storage(*param, slot, uniform);
            self.set_storage(*result, slot, uniform);
        }
        self.region(body);
        self.assign(&carried, func.yielded(body));
        self.instrs.push(Instr::Jump(begin));
        self.loops.push((begin, self.instrs.len() - 1));
        self.land(leave);
    }

    /// Allocates a slot for a carried value.
    fn carry(&mut self, param: Value) -> Carried {
        let symbolic = self.forms.is_symbolic(param);
        let ty = if symbolic { Type::scalar(Dtype::I64) } else { self.func.ty(param).clone() };
        Carried { to: self.new_slot(&ty), ty, symbolic }
    }

    /// Binds a parameter or a result to the carried value.
    fn bind(&mut self, value: Value, carried: &Carried) {
        match self.forms.of(value) {
            Form::Affine(Affine { coefficients, .. }) if carried.symbolic => {
                let coefficients =
                    coefficients.iter().map(|coefficient| Linear::Const(coefficient.expect("carried ones are constant"))).collect();
                self.set_symbol(value, Symbol::Affine(Affine { base: Linear::Slot(carried.to), coefficients }));
            }
            _ => self.set_storage(value, carried.to, false),
        }
    }

    /// Assigns the next values to all carried values in parallel: a value that another copy would overwrite is saved first.
    fn assign(&mut self, carried: &[Carried], values: &[Value]) {
        let mut moves = Vec::new();
        for (carried, value) in carried.iter().zip(values) {
            let from = if carried.symbolic {
                let base = self.affine_of(*value).base;
                Storage { slot: self.slot(base), uniform: false }
            } else {
                self.storage(*value)
            };
            moves.push((carried, from));
        }
        let targets: HashSet<Slot> = carried.iter().map(|carried| carried.to).collect();
        for (own, from) in &mut moves {
            if targets.contains(&from.slot) && from.slot != own.to {
                let saved = self.new_slot(&own.ty);
                self.copy(&own.ty, saved, *from);
                *from = Storage { slot: saved, uniform: false };
            }
        }
        for (carried, from) in moves {
            if carried.to != from.slot {
                self.copy(&carried.ty, carried.to, from);
            }
        }
    }
}
