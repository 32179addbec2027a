//! Regions for the elements that a mask keeps: a few neighbours of each thread at a time.
//!
//! ```text
//! setp.ge.s32 %p, %slack, 0;      does the mask hold for the first of the neighbours?
//! vote.sync.any %q, %p;           of any thread of the warp?
//! @!%q bra.uni $otherwise;
//! ..                              the body, for these neighbours
//! ```

use std::ops::Range;

use crate::analysis::loops::captured;
use crate::ir::{Region, Value};

use crate::backend::ptx::arithmetic::compare::Tests;
use crate::backend::ptx::text::registers::{Class, Reg, asm};
use crate::backend::ptx::{Emitter, Lanes, Source};

/// The least number of elements of a thread that the body computes at once: with fewer, the tests take as long as the elements.
const LEAST_GROUP: usize = 4;

impl Emitter<'_> {
    /// Emits the body for each group of elements. A warp copies scalars if none of its threads has an element in the group for which the mask holds.
    pub(super) fn if_any(&mut self, mask: Value, [body, otherwise]: [Region; 2], results: &[Value]) {
        let count = self.lane_count(mask);
        let run = self.layout(mask).map_or(1, |layout| {
            (0..layout.shape().len()).map(|axis| layout.contiguous_per_thread(axis).elements() as usize).max().unwrap_or(1)
        });
        let size = run.max(LEAST_GROUP).min(count);
        let variables: Vec<Lanes> = results.iter().map(|result| self.variable(*result)).collect();
        let taken = self.taken(body);
        let tests = match &self.sources[mask] {
            Some(Source::Tests(tests)) => Some(tests.clone()),
            _ => None,
        };
        for first in (0..count).step_by(size) {
            let registers = first..first + size;
            let skipped = tests.as_ref().and_then(|tests| tests.of_any(registers.clone())).map(|any| self.skip_unless(&any));
            for (value, regs) in &taken {
                self.define(*value, Lanes::Each(regs[registers.clone()].to_vec()));
            }
            self.group = Some(size);
            self.scoped(body);
            let yielded: Vec<Lanes> = self.func.yielded(body).iter().map(|value| self.lanes(*value)).collect();
            self.group = None;
            self.copy(&variables, registers.clone(), |result, register| yielded[result].get(register));
            if let Some(skipped) = skipped {
                let end = self.asm.label();
                asm!(self, "bra.uni {end}");
                self.asm.define_label(&skipped);
                self.scoped(otherwise);
                let scalars: Vec<Reg> = self.func.yielded(otherwise).iter().map(|scalar| self.scalar(*scalar)).collect();
                self.copy(&variables, registers, |result, _| scalars[result]);
                self.asm.define_label(&end);
            }
        }
        for (value, regs) in taken {
            self.define(value, Lanes::Each(regs));
        }
    }

    /// The tiles from outside that a region uses, with their registers, unless all elements share one.
    fn taken(&mut self, body: Region) -> Vec<(Value, Vec<Reg>)> {
        let registers = captured(self.func, &[body]).into_iter().filter_map(|value| match self.lanes(value) {
            Lanes::Splat(_) => None,
            Lanes::Each(regs) => Some((value, regs)),
        });
        registers.collect()
    }

    /// Jumps to a label, which it returns, if the tests hold in no thread of the warp.
    fn skip_unless(&mut self, any: &Tests) -> String {
        let (own, warp, otherwise) = (self.test(any, 0), self.reg(Class::Pred), self.asm.label());
        asm!(self, "vote.sync.any.pred {warp}, {own}, 0xffffffff");
        asm!(self, "@!{warp} bra.uni {otherwise}");
        otherwise
    }

    /// Copies the elements of a group to registers of the results. `from` gives those of a result and an element of the group.
    fn copy(&mut self, variables: &[Lanes], registers: Range<usize>, from: impl Fn(usize, usize) -> Reg) {
        for (result, variable) in variables.iter().enumerate() {
            for (number, register) in registers.clone().enumerate() {
                let (to, from) = (variable.get(register), from(result, number));
                asm!(self, "mov.{} {to}, {from}", to.class.suffix());
            }
        }
    }
}
