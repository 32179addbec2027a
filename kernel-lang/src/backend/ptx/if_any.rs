//! Code that a warp skips where a mask holds for none of its elements. An `if_any` is emitted for a group of each thread's elements at a time:
//!
//! ```text
//! setp.ge.s32 %p, %slack, 0;      does the mask hold for the first element of the group?
//! vote.sync.any %q, %p;           of any thread of the warp?
//! @!%q bra.uni $one;
//! ..                              the body, for all elements of the group
//! bra.uni $end;
//! $one:
//! ..                              the body, for one element
//! ```
//!
//! An `any_in_warp` is the same vote on all elements, for a branch.

use std::ops::Range;

use crate::analysis::loops::captured;
use crate::dtype::Dtype;
use crate::ir::{BinaryOp, Region, Value};

use crate::backend::ptx::arithmetic::compare::Tests;
use crate::backend::ptx::text::registers::{Class, Reg, asm};
use crate::backend::ptx::{Emitter, Lanes, Source};

impl Emitter<'_> {
    /// Emits the body for each group of elements. If no thread of a warp has an element in the group for which the mask holds, the warp computes one element for
    /// the whole group.
    pub(super) fn if_any(&mut self, mask: Value, group: usize, body: Region, results: &[Value]) {
        let count = self.lane_count(mask);
        let variables: Vec<Lanes> = results.iter().map(|result| self.variable(*result)).collect();
        let taken = self.taken(body);
        let tests = match &self.sources[mask] {
            Some(Source::Tests(tests)) => Some(tests.clone()),
            _ => None,
        };
        // Of a mask without tests, nothing is known before it is computed.
        let size = if tests.is_some() { group.min(count) } else { count };
        self.prepare_divisors(body);
        for first in (0..count).step_by(size) {
            let group = first..first + size;
            let skipped = tests.as_ref().and_then(|tests| tests.of_any(group.clone())).map(|any| self.skip_unless(&any));
            self.compute(body, &taken, &variables, group.clone(), size);
            if let Some(skipped) = skipped {
                let end = self.asm.label();
                asm!(self, "bra.uni {end}");
                self.asm.define_label(&skipped);
                self.compute(body, &taken, &variables, group, 1);
                self.asm.define_label(&end);
            }
        }
        for (value, regs) in taken {
            self.define(value, Lanes::Each(regs));
        }
    }

    /// Computes the first `size` elements of a group. If that is one, the others equal it.
    fn compute(&mut self, body: Region, taken: &[(Value, Vec<Reg>)], variables: &[Lanes], group: Range<usize>, size: usize) {
        for (value, regs) in taken {
            self.define(*value, Lanes::Each(regs[group.start..group.start + size].to_vec()));
        }
        self.group = Some(size);
        self.scoped(body);
        let yielded: Vec<Lanes> = self.func.yielded(body).iter().map(|value| self.lanes(*value)).collect();
        self.group = None;
        for (variable, yielded) in variables.iter().zip(yielded) {
            for (number, register) in group.clone().enumerate() {
                let (to, from) = (variable.get(register), yielded.get(number.min(size - 1)));
                asm!(self, "mov.{} {to}, {from}", to.class.suffix());
            }
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

    /// Does a mask hold for an element of any thread of the warp?
    pub(super) fn any_in_warp(&mut self, mask: Value, result: Value) {
        let lanes = self.lanes(mask);
        let mut own = lanes.get(0);
        for register in 1..self.lane_count(mask) {
            own = self.binary(BinaryOp::Or, Dtype::Bool, own, lanes.get(register));
        }
        let warp = self.vote(own);
        self.define(result, Lanes::Splat(warp));
    }

    /// Does a predicate hold in any thread of the warp?
    fn vote(&mut self, own: Reg) -> Reg {
        let warp = self.reg(Class::Pred);
        asm!(self, "vote.sync.any.pred {warp}, {own}, 0xffffffff");
        warp
    }

    /// Jumps to a label, which it returns, if the tests hold in no thread of the warp.
    fn skip_unless(&mut self, any: &Tests) -> String {
        let own = self.test(any, 0);
        let (warp, one) = (self.vote(own), self.asm.label());
        asm!(self, "@!{warp} bra.uni {one}");
        one
    }
}
