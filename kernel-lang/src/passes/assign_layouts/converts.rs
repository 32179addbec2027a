//! Converts at shape ops: inserts a `convert` wherever an op that changes the shape would have to move elements between threads.

use crate::ir::renaming::{operand_layout, register_sources, result_layout};
use crate::ir::{Function, Inst, Op, Value};

/// Inserts the converts. Layouts are assigned before; the new values get layouts here.
pub(super) fn insert(func: &mut Function) {
    for region in func.regions_under(func.body) {
        let mut out = Vec::new();
        for inst in func.region(region).insts.clone() {
            match func.inst(inst).op.clone() {
                Op::Broadcast { x } if func.ty(x).is_tile() => broadcast(func, inst, x, &mut out),
                Op::ExpandDims { x, .. } | Op::Reshape { x } | Op::Permute { x, .. } => moved(func, inst, x, &mut out),
                Op::Reduce { inputs, .. } => moved(func, inst, inputs[0], &mut out),
                _ => out.push(inst),
            }
        }
        *func.insts_mut(region) = out;
    }
}

/// Converts the operand to the layout that the broadcast's result requires.
fn broadcast(func: &mut Function, inst: Inst, x: Value, out: &mut Vec<Inst>) {
    let data = func.inst(inst).clone();
    if let Some(wanted) = func.layouts[data.results[0]].clone()
        && register_sources(func, &data.op, x, data.results[0]).is_none()
        && let Some(layout) = operand_layout(func, &data.op, x, &wanted)
    {
        let ty = func.ty(x).clone();
        let convert = func.make_inst(Op::Convert { x }, [ty], data.loc);
        out.push(convert);
        let converted = func.result(convert);
        func.layouts[converted] = Some(layout);
        func.inst_mut(inst).op = Op::Broadcast { x: converted };
    }
    out.push(inst);
}

/// Gives the op the result layout that follows from its operand's layout, and converts the results to the layouts that their users require.
fn moved(func: &mut Function, inst: Inst, x: Value, out: &mut Vec<Inst>) {
    let data = func.inst(inst).clone();
    let first = data.results[0];
    let natural = func.layouts[x].clone().and_then(|layout| result_layout(func, &data.op, first, &layout));
    let (Some(natural), true) = (natural, func.ty(first).is_tile()) else { return out.push(inst) };
    if register_sources(func, &data.op, x, first).is_some() {
        return out.push(inst);
    }
    let types: Vec<_> = data.results.iter().map(|result| func.ty(*result).clone()).collect();
    let op = func.make_inst(data.op, types, data.loc);
    out.push(op);
    let fresh = func.inst(op).results.clone();
    // The original instruction becomes the convert of the first result. The other results get new converts, which now define their values.
    for (index, (wanted, given)) in data.results.iter().zip(fresh).enumerate() {
        func.layouts[given] = Some(natural.clone());
        let convert = if index == 0 { inst } else { func.make_inst(Op::Convert { x: given }, [], data.loc) };
        func.redefine(convert, Op::Convert { x: given }, *wanted);
        out.push(convert);
    }
}
