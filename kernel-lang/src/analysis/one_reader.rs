//! Which loads one thread must make for all that hold the same element.
//!
//! What a kernel reads where it writes, too, may change while it runs: another program stores, or a thread of this one that is ahead. Threads that
//! hold the same element must then not each look for themselves, or a scalar would differ between them and a branch on it part them.
//!
//! ```text
//! %c = load %flags, %i        one reads for all: a branch asks
//! if %c == 0 { store %flags, %i, 1 }
//!
//! %v = load %x, %at           each reads for itself: of those that hold an element, the one that stores it has read it before
//! store %x, %at, %v * 2.0
//! ```

use crate::ir::{Function, Op, SideTable, Value, may_alias};

/// For each load of what the kernel writes, whether its result goes anywhere but, element by element, into stores.
pub fn compute(func: &Function) -> SideTable<Value, bool> {
    let mut insts = func.all_insts();
    let stored: Vec<Value> = insts
        .iter()
        .filter_map(|inst| match func.inst(*inst).op {
            Op::Store { base, .. } => Some(base),
            Op::Atomic { base, op, .. } => op.writes().then_some(base),
            _ => None,
        })
        .collect();
    // Users stand behind what they use, but for loops, whose values are taken to go anywhere.
    insts.reverse();
    let mut travels: SideTable<Value, bool> = SideTable::new();
    let mut told = SideTable::new();
    for inst in insts {
        let data = func.inst(inst);
        let goes_on = match &data.op {
            // The thread that acts on an element is the one that speaks for it everywhere.
            Op::Store { .. } | Op::Atomic { .. } => false,
            Op::Load { base, .. } => {
                let result = data.results[0];
                told[result] = travels[result] && stored.iter().any(|stored| may_alias(func, *base, *stored));
                travels[result]
            }
            Op::Unary { .. }
            | Op::Binary { .. }
            | Op::Compare { .. }
            | Op::Fma { .. }
            | Op::Select { .. }
            | Op::Cast { .. }
            | Op::Bitcast { .. }
            | Op::ExpandDims { .. }
            | Op::Reshape { .. } => data.results.iter().any(|result| travels[*result]),
            _ => true,
        };
        if goes_on {
            data.op.for_each_operand(&mut |value| travels[value] = true);
        }
    }
    told
}
