//! What accesses and reductions want of a layout, and accesses that want another than the tiles around them.

use std::collections::HashSet;

use crate::analysis::affine::AffineFacts;
use crate::ir::rewrite::Changed;
use crate::ir::{Function, Inst, Op, Value};

use super::components::Components;

/// What a component's layout should be.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    /// Does the component access memory?
    pub(super) is_access: bool,
    /// The axis that its memory runs along.
    pub(super) axis: Option<usize>,
    /// How many neighbouring elements a thread should hold along it.
    pub(super) vector: u32,
    /// Axes that it is reduced or scanned along.
    pub(super) reduced: Vec<usize>,
}

/// One access: the axis along which its addresses are neighbours, and how many elements may move at once.
pub(super) struct Access {
    inst: Inst,
    offset: Value,
    axis: Option<usize>,
    vector: u32,
    bytes: u32,
}

/// What each component wishes.
pub(super) fn wishes(func: &Function, accesses: &[Access], components: &mut Components) -> Vec<Wish> {
    let mut wishes = vec![Wish { is_access: false, axis: None, vector: 1, reduced: Vec::new() }; func.value_count()];
    let mut strength = vec![(0, 0); func.value_count()];
    for access in accesses {
        let component = components.find(access.offset);
        let wish = &mut wishes[component];
        wish.is_access = true;
        let wanted = (access.vector * access.bytes, access.bytes);
        if access.axis == wish.axis {
            wish.vector = wish.vector.max(access.vector);
        } else if access.axis.is_some() && wanted > strength[component] {
            (wish.axis, wish.vector) = (access.axis, access.vector);
        }
        if access.axis == wish.axis {
            strength[component] = strength[component].max(wanted);
        }
    }
    for inst in func.all_insts() {
        if let Op::Reduce { inputs, axis, .. } | Op::Scan { inputs, axis, .. } = &func.inst(inst).op {
            wishes[components.find(inputs[0])].reduced.push(*axis as usize);
        }
    }
    wishes
}

/// The accesses to tiles of a kernel.
pub(super) fn compute(func: &Function) -> Vec<Access> {
    let mut facts = AffineFacts::new();
    let mut accesses = Vec::new();
    for inst in func.all_insts() {
        let (base, offset, align) = match func.inst(inst).op {
            Op::Load { base, offset, align, .. } | Op::Store { base, offset, align, .. } | Op::Fetch { base, offset, align, .. } => {
                (base, offset, align)
            }
            Op::Atomic { base, offset, .. } => (base, offset, 0),
            _ => continue,
        };
        if !func.ty(offset).is_tile() {
            continue;
        }
        let extents = func.ty(offset).extents();
        let axis = (0..extents.len()).rev().find(|axis| extents[*axis] > 1 && facts.step(func, offset, *axis) == Some(1));
        let bytes = func.ty(base).dtype().bytes() as u32;
        let vector = if axis.is_some() { (align / bytes).max(1) } else { 1 };
        accesses.push(Access { inst, offset, axis, vector, bytes });
    }
    accesses
}

/// Puts a `convert` between an access and the tiles around it where its memory runs along another axis than theirs: what it moves then
/// crosses the threads once, and memory sees neighbours. A store of a load's transpose is so.
pub(super) fn separate(func: &mut Function, accesses: &[Access], components: &mut Components, wishes: &[Wish]) -> Changed {
    let mut crossing: HashSet<Inst> = accesses
        .iter()
        .filter(|access| access.axis.is_some() && access.axis != wishes[components.find(access.offset)].axis)
        .map(|access| access.inst)
        .collect();
    if crossing.is_empty() {
        return false;
    }
    // A ring lies as its fetches do; what is fetched crosses the threads where it is taken out.
    let rings: HashSet<Value> = crossing.iter().filter_map(|inst| ring_of(&func.inst(*inst).op)).collect();
    crossing.extend(func.all_insts().into_iter().filter(|inst| ring_of(&func.inst(*inst).op).is_some_and(|ring| rings.contains(&ring))));
    for region in func.regions_under(func.body) {
        let mut out = Vec::new();
        for inst in func.region(region).insts.clone() {
            if !crossing.contains(&inst) {
                out.push(inst);
                continue;
            }
            let (mut op, loc) = (func.inst(inst).op.clone(), func.inst(inst).loc);
            op.map_operands(&mut |value| {
                if !func.ty(value).is_tile() || rings.contains(&value) {
                    return value;
                }
                let ty = func.ty(value).clone();
                let convert = func.make_inst(Op::Convert { x: value }, [ty], loc);
                out.push(convert);
                func.result(convert)
            });
            if let Some(&result) = func.inst(inst).results.first() {
                // The convert takes the load's place and keeps its result.
                let ty = func.ty(result).clone();
                let load = func.make_inst(op, [ty], loc);
                out.push(load);
                op = Op::Convert { x: func.result(load) };
            }
            func.inst_mut(inst).op = op;
            out.push(inst);
        }
        *func.insts_mut(region) = out;
    }
    true
}

fn ring_of(op: &Op) -> Option<Value> {
    match op {
        Op::Fetch { ring, .. } | Op::Fetched { ring, .. } => Some(*ring),
        _ => None,
    }
}
