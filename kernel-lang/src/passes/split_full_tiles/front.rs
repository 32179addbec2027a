//! Loads of scalars that move in front of a region, so that the condition of its branch can use them.
//!
//! ```text
//! %row = load %index, %i                          %row = load %index, %i
//! %x = load %table, %row * %n + (arange ..)       %next = load %index, %i + 1
//! %next = load %index, %i + 1                     if %both_rows_are_in_bounds { .. } { .. }
//! %y = load %table, %next * %n + (arange ..)
//! ```

use crate::ir::{Def, Function, Inst, Op, SideTable, Type, Value};

/// Splits a straight-line region into two lists of ops. The first has loads of scalars, such as of a length or an address, and the ops that they
/// depend on: all loads in front of the first access to a tile, and later ones from memory that nothing writes. The second has the remaining
/// ops. The condition of the branch can use values of the first list.
pub(super) fn scalars_in_front(func: &Function, ops: &[Inst]) -> (Vec<Inst>, Vec<Inst>) {
    let is_access =
        |inst: &Inst, of_tile: bool| func.inst(*inst).op.access().is_some_and(|access| func.ty(access.offset).is_tile() == of_tile);
    let first = ops.iter().position(|inst| is_access(inst, true)).unwrap_or(0);
    let last = ops[..first].iter().rposition(|inst| is_access(inst, false)).map_or(0, |last| last + 1);
    let later = movable_loads(func, &ops[last..]);
    let mut needed: SideTable<Value, bool> = SideTable::new();
    let mut front = Vec::new();
    for (at, inst) in ops.iter().enumerate().rev() {
        let data = func.inst(*inst);
        let is_needed = data.results.iter().any(|result| needed[*result]);
        if is_needed || later[*inst] || at < last && !data.op.is_pure() {
            let mut need = |op: &Op| op.for_each_operand(&mut |value| needed[value] = true);
            need(&data.op);
            data.op.for_each_region(&mut |region| func.for_each_inst(region, &mut |inst| need(&func.inst(inst).op)));
            front.push(*inst);
        }
    }
    front.reverse();
    let mut is_front: SideTable<Inst, bool> = SideTable::new();
    front.iter().for_each(|inst| is_front[*inst] = true);
    let behind = ops.iter().copied().filter(|inst| !is_front[*inst]).collect();
    (front, behind)
}

/// The loads of scalars from memory that nothing writes, whose operands are computed from such scalars alone. Behind an op that may wait for
/// other programs, there is none.
fn movable_loads(func: &Function, ops: &[Inst]) -> SideTable<Inst, bool> {
    // The ops that stay, of those that were not visited all.
    let (mut stays, mut loads): (SideTable<Inst, bool>, SideTable<Inst, bool>) = (SideTable::new(), SideTable::new());
    ops.iter().for_each(|inst| stays[*inst] = true);
    for inst in ops {
        let data = func.inst(*inst);
        let is_load =
            matches!(data.op, Op::Load { base, volatile: false, .. } if matches!(func.ty(base), Type::Pointer { mutable: false, .. }));
        if !data.op.is_pure() && data.op.access().is_none() {
            break;
        }
        let is_plain = (is_load || data.op.is_pure()) && !data.op.has_regions();
        let mut can_move = is_plain && data.results.iter().all(|result| func.ty(*result).is_scalar());
        if !can_move {
            continue;
        }
        data.op.for_each_operand(&mut |value| {
            can_move &= !matches!(func.def(value), Def::Result(inst, _) if stays[inst]);
        });
        if can_move {
            stays[*inst] = false;
            loads[*inst] = is_load;
        }
    }
    loads
}
