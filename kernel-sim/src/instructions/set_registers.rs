//! `setmaxnreg`: moves registers between warpgroups (PTX ISA, "Miscellaneous Instructions: setmaxnreg").

use super::{Convergence, Form, Instruction, Progress, Unsupported, wgmma};
use crate::counters::Class;
use crate::fault::Trap;
use crate::machine::Cx;

struct SetRegisters {
    count: u32,
    increases: bool,
}

/// Decodes `setmaxnreg`.
pub(super) fn decode(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    let action = form.one_of(&[("inc", true), ("dec", false)]);
    let increases = action.ok_or_else(|| form.error("`.inc` or `.dec` is missing"))?;
    for modifier in ["sync", "aligned", "u32"] {
        if !form.flag(modifier) {
            return Err(form.error(format!("`.{modifier}` is missing")));
        }
    }
    let count = form.immediate()?;
    if !(24..=256).contains(&count) || count % 8 != 0 {
        return Err(form.error(format!("a thread can have 24 to 256 registers, a multiple of 8, not {count}")));
    }
    Ok(Box::new(SetRegisters { count: count as u32, increases }))
}

impl Instruction for SetRegisters {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let SetRegisters { count, increases } = *self;
        let group = wgmma::warpgroup(cx)?;
        // Zero until the first change, because the driver determines the initial number.
        let old = cx.warp.max_registers;
        if old != 0 && (if increases { count < old } else { count > old }) {
            let verb = if increases { "raise" } else { "lower" };
            return Err(cx.illegal(0, format!("`setmaxnreg` can not {verb} the number of registers from {old} to {count}")));
        }
        let ordinal = cx.warp.matrices.register_changes;
        let changes = &mut cx.cluster.ctas[cx.rank].warpgroups.entry(group).or_default().register_counts;
        let first = *changes.entry(ordinal).or_insert(count);
        if first != count {
            return Err(cx.illegal(0, format!("one warp of the warpgroup wants {first} registers, and another {count}")));
        }
        cx.warp.matrices.register_changes += 1;
        cx.warp.max_registers = count;
        Ok(Progress::Done)
    }

    fn convergence(&self) -> Convergence {
        Convergence::Aligned
    }

    fn class(&self) -> Class {
        Class::Control
    }
}
