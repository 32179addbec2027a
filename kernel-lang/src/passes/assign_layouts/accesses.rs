//! Layout preferences of accesses and reductions, and converts for accesses that prefer another layout than their component.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::affine::AffineFacts;
use crate::ir::rewrite::Changed;
use crate::ir::{Function, Inst, Op, SideTable, Value};
use crate::target::Asked;

use super::components::Components;

/// The bytes of the widest access of a thread.
const WIDEST: u32 = 16;

/// The preferred layout of a component.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    /// The component's accesses to memory.
    pub(super) accesses: Vec<Width>,
    /// The axis along which its addresses are consecutive.
    pub(super) axis: Option<usize>,
    /// The number of neighbouring elements along that axis that a thread should hold.
    pub(super) vector: u32,
    /// The axes along which it is reduced or scanned.
    pub(super) reduced: Vec<usize>,
    /// Whether ops take its axes apart, or join or exchange them.
    pub(super) is_reshaped: bool,
}

impl Wish {
    /// The wish of these accesses alone.
    pub(super) fn new(accesses: Vec<Width>, axis: Option<usize>, vector: u32) -> Wish {
        Wish { accesses, axis, vector, reduced: Vec::new(), is_reshaped: false }
    }

    /// Does the component access memory?
    pub(super) fn is_access(&self) -> bool {
        !self.accesses.is_empty()
    }

    /// Do its accesses move single elements of rows, because these are not aligned? A tile whose axes change has other neighbours, which should stay in a
    /// warp.
    pub(super) fn is_narrow(&self) -> bool {
        self.axis.is_some() && self.vector == 1 && !self.is_reshaped && self.accesses.iter().all(|access| access.vector == 1)
    }
}

/// How wide an access can be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Width {
    /// The axis along which its addresses are consecutive.
    pub(super) axis: Option<usize>,
    /// The number of neighbouring elements along that axis that may move at once.
    pub(super) vector: u32,
    /// The bytes of an element.
    pub(super) bytes: u32,
    /// The pointer to its tensor.
    pub(super) tensor: Value,
    /// Whether it is a load.
    pub(super) is_load: bool,
}

/// One access to a tile.
pub(super) struct Access {
    pub(super) inst: Inst,
    pub(super) offset: Value,
    pub(super) width: Width,
    is_atomic: bool,
    /// Is there a wider access to the same tensor, or a copy of a block? This one then is that of a slower version of the code, and takes any layout.
    is_slower: bool,
}

/// The preference of each component.
pub(super) fn wishes(func: &Function, accesses: &[Access], components: &mut Components) -> Vec<Wish> {
    let mut wishes = vec![Wish::new(Vec::new(), None, 1); func.value_count()];
    let mut strength = vec![(0, 0); func.value_count()];
    for access in accesses {
        let component = components.find(access.offset);
        let wish = &mut wishes[component];
        if !access.is_slower {
            wish.accesses.push(access.width);
        }
        let wanted = (access.width.vector * access.width.bytes, access.width.bytes);
        if access.width.axis == wish.axis {
            wish.vector = wish.vector.max(access.width.vector);
        } else if access.width.axis.is_some() && wanted > strength[component] {
            (wish.axis, wish.vector) = (access.width.axis, access.width.vector);
        }
        if access.width.axis == wish.axis {
            strength[component] = strength[component].max(wanted);
        }
    }
    // The L2 updates a sector at a time. If lanes held more than one instruction updates, each instruction would update parts of sectors.
    for access in accesses.iter().filter(|access| access.is_atomic) {
        let wish = &mut wishes[components.find(access.offset)];
        match access.width.axis {
            None if has_own_positions(func, access.offset) => (wish.axis, wish.vector) = (None, 1),
            Some(_) if access.width.axis == wish.axis && access.width.vector > 1 => wish.vector = wish.vector.min(access.width.vector),
            _ => {}
        }
    }
    for wish in &mut wishes {
        wish.vector = whole_sectors(wish);
    }
    for inst in func.all_insts() {
        match &func.inst(inst).op {
            Op::Reduce { inputs, axis, .. } | Op::Scan { inputs, axis, .. } => {
                wishes[components.find(inputs[0])].reduced.push(*axis as usize);
            }
            Op::Reshape { x } | Op::Permute { x, .. } => {
                for tile in [*x, func.result(inst)] {
                    wishes[components.find(tile)].is_reshaped = true;
                }
            }
            _ => {}
        }
    }
    wishes
}

/// Do neighbours have neighbouring indices, but for the ends of rows? Indices that were loaded lie anywhere.
fn has_own_positions(func: &Function, offset: Value) -> bool {
    let (mut seen, mut open): (FxHashSet<Value>, Vec<Value>) = (FxHashSet::default(), vec![offset]);
    while let Some(value) = open.pop() {
        match func.def_op(value) {
            Some(Op::Arange { .. }) => return true,
            Some(
                op @ (Op::Binary { .. }
                | Op::Select { .. }
                | Op::Cast { .. }
                | Op::Bitcast { .. }
                | Op::ExpandDims { .. }
                | Op::Broadcast { .. }),
            ) if seen.insert(value) => {
                op.for_each_operand(&mut |operand| open.push(operand));
            }
            _ => {}
        }
    }
    false
}

/// The number of neighbours that a thread should hold, if a component stores elements of several sizes.
///
/// A thread that holds 8 neighbours for the sake of 16-bit elements stores 8 elements of 32 bits by two instructions, and each of them writes halves of
/// sectors. With 4 neighbours, the accesses to 16-bit elements have 8 bytes, and all accesses move whole sectors. This is chosen unless it makes more
/// accesses narrower than the others.
fn whole_sectors(wish: &Wish) -> u32 {
    let widest = |access: &Width| WIDEST / access.bytes;
    let stored = wish.accesses.iter().filter(|access| !access.is_load && access.axis == wish.axis && access.vector == widest(access));
    let Some(vector) = stored.map(widest).min().filter(|vector| *vector < wish.vector) else { return wish.vector };
    let narrower = wish.accesses.iter().filter(|access| access.vector > vector).count();
    if 2 * narrower <= wish.accesses.len() { vector } else { wish.vector }
}

/// All accesses to tiles in a kernel.
pub(super) fn compute(func: &Function, target: &Asked) -> Vec<Access> {
    let mut facts = AffineFacts::new();
    let mut used: Option<SideTable<Value, bool>> = None;
    let mut accesses = Vec::new();
    let mut widest: FxHashMap<Value, u32> = FxHashMap::default();
    let mut bases = Vec::new();
    // The tensors in which blocks are stored.
    let mut copied: FxHashSet<Value> = FxHashSet::default();
    for inst in func.all_insts() {
        let (base, offset, align) = match func.inst(inst).op {
            Op::Load { base, offset, align, .. } | Op::Store { base, offset, align, .. } | Op::AsyncCopy { base, offset, align, .. } => {
                (base, offset, align)
            }
            Op::Atomic { base, offset, align, .. } => {
                // An old value that is used needs an instruction for its element.
                let is_wide = align > 0 && !used.get_or_insert_with(|| used_values(func))[func.result(inst)];
                let dtype = func.ty(base).dtype();
                (base, offset, if is_wide { align.min(target.ask(|target| target.widest_atomic_add(dtype))) } else { 0 })
            }
            Op::StoreBlock { base, .. } => {
                copied.insert(base);
                continue;
            }
            _ => continue,
        };
        if !func.ty(offset).is_tile() {
            continue;
        }
        let extents = func.ty(offset).extents();
        let axis = (0..extents.len()).rev().find(|axis| extents[*axis] > 1 && facts.step(func, offset, *axis) == Some(1));
        let bytes = func.ty(base).dtype().bytes() as u32;
        let vector = if axis.is_some() { (align / bytes).max(1) } else { 1 };
        let is_load = matches!(func.inst(inst).op, Op::Load { .. });
        let is_atomic = matches!(func.inst(inst).op, Op::Atomic { .. });
        accesses.push(Access { inst, offset, width: Width { axis, vector, bytes, tensor: base, is_load }, is_atomic, is_slower: false });
        bases.push(base);
        let known = widest.entry(base).or_default();
        *known = vector.max(*known);
    }
    for (access, base) in accesses.iter_mut().zip(bases) {
        access.is_slower = copied.contains(&base) || (2..widest[&base]).contains(&access.width.vector);
    }
    accesses
}

/// The values that an op uses.
fn used_values(func: &Function) -> SideTable<Value, bool> {
    let mut used = SideTable::new();
    func.for_each_inst(func.body, &mut |inst| func.inst(inst).op.for_each_operand(&mut |value| used[value] = true));
    used
}

/// Inserts a `convert` between an access and its component if the addresses are consecutive along another axis than the component's. The
/// elements then move between threads once, and neighbouring lanes access neighbouring addresses. An example is a store of a transposed
/// load.
pub(super) fn separate(func: &mut Function, accesses: &[Access], components: &mut Components, wishes: &[Wish]) -> Changed {
    let mut crossing: FxHashSet<Inst> = accesses
        .iter()
        .filter(|access| access.width.axis.is_some() && access.width.axis != wishes[components.find(access.offset)].axis)
        .map(|access| access.inst)
        .collect();
    if crossing.is_empty() {
        return false;
    }
    // An async buffer has the layout of its copies. The converts after its `local_load`s move the elements between threads.
    let buffers: FxHashSet<Value> = crossing.iter().filter_map(|inst| buffer_of(&func.inst(*inst).op)).collect();
    crossing.extend(
        func.all_insts().into_iter().filter(|inst| buffer_of(&func.inst(*inst).op).is_some_and(|buffer| buffers.contains(&buffer))),
    );
    for region in func.regions_under(func.body) {
        let mut out = Vec::new();
        for inst in func.region(region).insts.clone() {
            if !crossing.contains(&inst) {
                out.push(inst);
                continue;
            }
            let (mut op, loc) = (func.inst(inst).op.clone(), func.inst(inst).loc);
            op.map_operands(&mut |value| {
                if !func.ty(value).is_tile() || buffers.contains(&value) {
                    return value;
                }
                let ty = func.ty(value).clone();
                let convert = func.make_inst(Op::Convert { x: value }, [ty], loc);
                out.push(convert);
                func.result(convert)
            });
            if let Some(&result) = func.inst(inst).results.first() {
                // The convert replaces the load and keeps its result.
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

fn buffer_of(op: &Op) -> Option<Value> {
    match op {
        Op::AsyncCopy { buffer, .. } | Op::LocalLoad { buffer, .. } => Some(*buffer),
        _ => None,
    }
}
