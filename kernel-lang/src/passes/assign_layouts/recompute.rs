//! Recomputed tiles: instead of a `convert` of a cheap tile, the ops that compute it run once more, in the layout of the convert.
//!
//! A convert writes the tile to shared memory and waits for all warps. An example of a cheap tile is the mask `column < columns`: the load of
//! some rows and the load of their weights share it, but different threads hold its elements.

use crate::ir::renaming::operand_layout;
use crate::ir::{BinaryOp, Def, Function, Inst, Op, Value};
use crate::layout::Layout;

/// A tile that more ops compute is converted.
const MOST_OPS: usize = 16;

/// Replaces the converts of cheap tiles. All tiles have layouts.
pub(super) fn run(func: &mut Function) {
    for region in func.regions_under(func.body) {
        let mut out = Vec::new();
        for inst in func.region(region).insts.clone() {
            if let Op::Convert { x } = func.inst(inst).op
                && let Some(layout) = func.layouts[func.result(inst)].clone()
                && let Some(mut copies) = copies(func, x, &layout)
                && let Some(last) = copies.pop()
            {
                // The convert becomes the last op, because it defines the value that others use.
                func.inst_mut(inst).op = func.inst(last).op.clone();
                out.append(&mut copies);
            }
            out.push(inst);
        }
        *func.insts_mut(region) = out;
    }
}

/// Is a tile cheap to compute once more?
pub(super) fn is_cheap(func: &Function, value: Value) -> bool {
    let (mut open, mut left) = (vec![value], MOST_OPS);
    while let Some(value) = open.pop() {
        let Some(operands) = operands(func, value, &mut left) else { return false };
        open.extend(operands);
    }
    true
}

/// The tiles that the op of a tile takes, if that op may be copied. `left` is the number of ops that may still be.
fn operands(func: &Function, value: Value, left: &mut usize) -> Option<Vec<Value>> {
    *left = left.checked_sub(1)?;
    let op = func.def_op(value)?;
    match op {
        Op::Binary { op: BinaryOp::Div | BinaryOp::Rem, .. } => return None,
        Op::Broadcast { .. } | Op::ExpandDims { .. } | Op::Permute { .. } => {}
        Op::Const { .. } | Op::Arange { .. } | Op::Unary { .. } | Op::Binary { .. } | Op::Compare { .. } | Op::Cast { .. } => {}
        _ => return None,
    }
    let mut operands: Vec<Value> = Vec::new();
    op.for_each_operand(&mut |operand| operands.push(operand));
    operands.dedup();
    operands.retain(|operand| func.ty(*operand).is_tile());
    Some(operands)
}

/// Copies of the ops that compute a tile from scalars, in a layout. `None` if these are not cheap.
fn copies(func: &mut Function, value: Value, layout: &Layout) -> Option<Vec<Inst>> {
    let (mut copies, mut left) = (Vec::new(), MOST_OPS);
    copy(func, value, layout, &mut left, &mut copies)?;
    Some(copies)
}

fn copy(func: &mut Function, value: Value, layout: &Layout, left: &mut usize, copies: &mut Vec<Inst>) -> Option<Value> {
    let Def::Result(inst, _) = func.def(value) else { return None };
    let (mut op, loc) = (func.inst(inst).op.clone(), func.inst(inst).loc);
    let is_elementwise = !matches!(op, Op::Broadcast { .. } | Op::ExpandDims { .. } | Op::Permute { .. });
    for operand in operands(func, value, left)? {
        let layout = if is_elementwise { layout.clone() } else { operand_layout(func, &op, operand, layout)? };
        let copied = copy(func, operand, &layout, left, copies)?;
        op.map_operands(&mut |other| if other == operand { copied } else { other });
    }
    let ty = func.ty(value).clone();
    let inst = func.make_inst(op, [ty], loc);
    let result = func.result(inst);
    func.layouts[result] = Some(layout.clone());
    copies.push(inst);
    Some(result)
}
