//! The invariants of shared memory and of barriers that the compiler places.

use super::Verifier;
use crate::ir::arena::{Inst, Region, Value};
use crate::ir::function::Function;
use crate::ir::ops::Op;
use crate::ir::scratch::Part;
use crate::schedule::Schedule;

/// The bytes of the widest access, at whose multiples each range begins.
const WIDEST: u32 = 16;
/// The barriers of a CTA (PTX ISA, "bar").
const BARRIERS: u32 = 16;

impl Verifier<'_> {
    /// Invariant 15 for one op.
    pub(super) fn shared_memory(&mut self, inst: Inst, schedule: Schedule) {
        let func = self.func;
        let parts = func.scratch[inst].as_ref().map_or(&[][..], |scratch| &scratch.parts);
        if let Some(Part { range, .. }) = parts.iter().find(|part| part.range.start % WIDEST != 0 || part.range.is_empty()) {
            self.broken(
                inst,
                format!("has the bytes {}..{} of shared memory: they begin at a multiple of {WIDEST}", range.start, range.end),
            );
        }
        match func.inst(inst).op {
            Op::AsyncBuffer { .. } if parts.len() != 1 => self.broken(inst, "has no bytes of shared memory for its slots"),
            Op::SyncThreads { id, threads } => {
                let (of_cta, of_program) = (schedule.threads(), schedule.threads() * schedule.num_ctas);
                if threads != of_cta && threads != of_program {
                    self.broken(inst, format!("waits for {threads} threads: a CTA has {of_cta}, and a program {of_program}"));
                }
                if id >= BARRIERS || (id > 0 && threads != of_cta) {
                    self.broken(inst, format!("has no barrier {id}"));
                }
            }
            _ => {}
        }
    }

    /// Invariant 15 for the buffers of a region: while one lives, no other op uses its bytes.
    pub(super) fn held_memory(&mut self, region: Region) {
        let func = self.func;
        let insts = &func.region(region).insts;
        for (at, buffer) in insts.iter().enumerate().filter(|(_, inst)| matches!(func.inst(**inst).op, Op::AsyncBuffer { .. })) {
            let value = func.result(*buffer);
            let last = insts.iter().rposition(|inst| uses(func, *inst, value)).unwrap_or(at);
            let Some(held) = func.scratch[*buffer].as_ref().and_then(|scratch| scratch.parts.first()) else { continue };
            let overlaps = |inst: Inst| {
                let parts = func.scratch[inst].iter().flat_map(|scratch| &scratch.parts);
                parts.into_iter().any(|part| part.range.start < held.range.end && held.range.start < part.range.end)
            };
            let mut all = Vec::new();
            insts[at + 1..=last.max(at)].iter().for_each(|inst| all.extend(with_nested(func, *inst)));
            for inst in all.into_iter().filter(|inst| overlaps(*inst)) {
                self.broken(inst, "takes bytes of an async buffer that lives on");
            }
        }
    }
}

/// An op and the ops in its regions.
fn with_nested(func: &Function, inst: Inst) -> Vec<Inst> {
    let mut all = vec![inst];
    func.inst(inst).op.for_each_region(&mut |region| func.for_each_inst(region, &mut |inner| all.push(inner)));
    all
}

/// Does an op use the value, or an op in its regions?
fn uses(func: &Function, inst: Inst, value: Value) -> bool {
    let mut found = false;
    for inst in with_nested(func, inst) {
        func.inst(inst).op.for_each_operand(&mut |operand| found |= operand == value);
    }
    found
}
