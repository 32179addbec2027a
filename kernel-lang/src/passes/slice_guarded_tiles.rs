//! Slicing of guarded tiles: a loop processes a guarded tile in slices, which makes code that rarely runs shorter.
//!
//! ```text
//! ; before
//! kernel @k(%y: ptr_mut<i64>, %full: bool) {
//!     %0 = arange {start = 0, end = 1024} : tile<i64, [1024]>
//!     if %full () {
//!         store %y, %0, %0 {in_bounds = true, align = 16}
//!         yield
//!     } () {
//!         store %y, %0, %0
//!         yield
//!     }
//!     return
//! }
//! ; after
//! kernel @k(%y: ptr_mut<i64>, %full: bool) {
//!     %0 = arange {start = 0, end = 1024} : tile<i64, [1024]>
//!     if %full () {
//!         store %y, %0, %0 {in_bounds = true, align = 16}
//!         yield
//!     } () {
//!         %1 = const {value = 0} : i64
//!         %2 = const {value = 1024} : i64
//!         %3 = const {value = 128} : i64
//!         for %1, %2, %3 (%4: i64) {
//!             %5 = arange {start = 0, end = 128} : tile<i64, [128]>
//!             %6 = broadcast %4 : tile<i64, [128]>
//!             %7 = add %6, %5 : tile<i64, [128]>
//!             store %y, %7, %7
//!             yield
//!         }
//!         yield
//!     }
//!     return
//! }
//! ```
//!
//! A guard costs several instructions per element. Without slices, the guarded copy of [`super::split_full_tiles`] was most of a kernel's
//! code, and most of the time that the driver takes to compile it at the first launch.
//!
//! Tiles of rank 2 and more stay whole: slices have one axis, and a value that is broadcast or reduced along that axis is not made of
//! slices. Tiles that are reduced stay whole, too.
//!
//! Ops after the last reduction are sliced if they load more tiles, such as the weights of a norm. Loaded whole, these tiles would double the
//! registers of a thread. Both copies share one register count, so only half as many programs would run at once, in the fast copy, too. The
//! slices compute the parts that they need of earlier tiles again, including their loads.
//!
//! Slicing changes the order of accesses: a slice loads after an earlier slice has stored. So every access that may alias a store must use
//! the same pointer and the same index as the store.

use std::collections::HashSet;

use crate::analysis::affine::{Affine, AffineFacts};
use crate::dtype::Dtype;
use crate::ir::rewrite::Changed;
use crate::ir::{BinaryOp, Builder, ConstExpr, Def, Function, Inst, Op, Region, SideTable, Type, Value, may_alias, postorder};
use crate::location::Loc;

/// The shortest slice: one element for each thread of the usual four warps.
const SHORTEST: usize = 128;
/// The largest number of slices. Beyond it, slices become longer.
const MOST: usize = 8;

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let mut facts = AffineFacts::new();
    let mut changed = false;
    for inst in func.all_insts() {
        let data = func.inst(inst);
        if let Op::If { then_region, else_region, .. } = data.op
            && data.results.is_empty()
            && is_full(func, then_region)
        {
            let loc = data.loc;
            let first = behind_reductions(func, else_region);
            if let Some(extent) = sliceable(func, else_region, first, &mut facts) {
                slice(func, else_region, first, extent, loc);
                changed = true;
            }
        }
    }
    changed
}

/// Is the region the copy that needs no guards?
fn is_full(func: &Function, region: Region) -> bool {
    let is_proved = |op: &Op| matches!(op, Op::Load { in_bounds: true, .. } | Op::Store { in_bounds: true, .. });
    func.region(region).insts.iter().any(|inst| is_proved(&func.inst(*inst).op))
}

/// The position of the first op after the last reduction.
fn behind_reductions(func: &Function, region: Region) -> usize {
    let insts = &func.region(region).insts;
    insts.iter().rposition(|inst| matches!(func.inst(*inst).op, Op::Reduce { .. } | Op::Scan { .. })).map_or(0, |last| last + 1)
}

/// The single extent of the region's tiles from the op `first` on, if these can be sliced.
fn sliceable(func: &Function, region: Region, first: usize, facts: &mut AffineFacts) -> Option<usize> {
    let insts = &func.region(region).insts;
    let behind = &insts[first..];
    if first > 0 && !behind.iter().any(|inst| matches!(&func.inst(*inst).op, Op::Load { offset, .. } if func.ty(*offset).is_tile())) {
        return None;
    }
    let mut inside: SideTable<Value, bool> = SideTable::new();
    let mut rebuildable = Rebuildable { func, in_front: insts[..first].iter().copied().collect(), known: SideTable::new() };
    let mut extent = None;
    // Each access once, because many are equal.
    let mut accesses: HashSet<(Value, Option<Affine>, bool)> = HashSet::new();
    let mut numbers: HashSet<Value> = HashSet::new();
    for inst in &behind[..behind.len() - 1] {
        let data = func.inst(*inst);
        match &data.op {
            Op::Load { base, offset, volatile: false, .. } if func.ty(*offset).is_tile() => {
                accesses.insert((*base, facts.get(func, *offset), false));
            }
            Op::Store { base, offset, .. } if func.ty(*offset).is_tile() => {
                accesses.insert((*base, facts.get(func, *offset), true));
            }
            // A scalar that is stored, or loaded where nothing is written, stays in front of the loop.
            Op::Store { base, .. } => {
                numbers.insert(*base);
            }
            Op::Load { base, volatile: false, .. } if is_constant(func, *base) => {}
            // These ops combine elements across a tile: a slice of the operand does not determine a slice of the result.
            op if op.looks_across() => return None,
            Op::Broadcast { x } if func.ty(*x).is_tile() => return None,
            op if op.is_pure() => {}
            _ => return None,
        }
        let mut values = data.results.clone();
        values.iter().for_each(|value| inside[*value] = true);
        data.op.for_each_operand(&mut |value| values.push(value));
        for value in values.into_iter().filter(|value| func.ty(*value).is_tile()) {
            let extents = func.ty(value).extents();
            let is_there = inside[value] || rebuildable.is(value);
            if extents.len() != 1 || *extent.get_or_insert(extents[0]) != extents[0] || !is_there {
                return None;
            }
        }
    }
    let in_order = accesses.iter().filter(|(.., is_store)| *is_store).all(|(stored, at, _)| {
        let is_one_to_one =
            at.as_ref().is_some_and(|at| at.strides.iter().all(|stride| stride.as_constant().is_some_and(|stride| stride != 0)));
        is_one_to_one && accesses.iter().all(|(base, other, _)| !may_alias(func, *base, *stored) || (base, other) == (stored, at))
    });
    let is_apart = numbers.iter().all(|number| accesses.iter().all(|(base, ..)| !may_alias(func, *base, *number)));
    extent.filter(|extent| in_order && is_apart && *extent >= 2 * SHORTEST)
}

fn is_constant(func: &Function, base: Value) -> bool {
    matches!(func.ty(base), Type::Pointer { mutable: false, .. })
}

/// Finds tiles whose slices can be computed again from scalars, and from what the ops in front load from tensors that no program writes.
struct Rebuildable<'f> {
    func: &'f Function,
    in_front: HashSet<Inst>,
    known: SideTable<Value, Option<bool>>,
}

impl Rebuildable<'_> {
    fn is(&mut self, value: Value) -> bool {
        let func = self.func;
        let enter = |cx: &mut Self, value: Value, before: &mut Vec<Value>| {
            let is_new = cx.known[value].is_none();
            if is_new && let Some(op) = rebuilding_op(func, value) {
                op.for_each_operand(&mut |operand| before.extend(func.ty(operand).is_tile().then_some(operand)));
            }
            is_new
        };
        let leave = |cx: &mut Self, value: Value| {
            let is = cx.is_by_operands(value);
            cx.known[value] = Some(is);
        };
        postorder(self, value, enter, leave);
        self.known[value] == Some(true)
    }

    fn is_by_operands(&self, value: Value) -> bool {
        let func = self.func;
        let Some(op) = rebuilding_op(func, value) else {
            return match func.def_op(value) {
                Some(Op::Const { .. } | Op::Arange { .. }) => true,
                Some(Op::Broadcast { x }) => func.ty(*x).is_scalar(),
                _ => false,
            };
        };
        let mut all = match (op, func.def(value)) {
            (Op::Load { base, .. }, Def::Result(inst, _)) => is_constant(func, *base) && self.in_front.contains(&inst),
            _ => true,
        };
        op.for_each_operand(&mut |operand| all &= !func.ty(operand).is_tile() || self.known[operand] == Some(true));
        all
    }
}

/// The elementwise op or the load that computes a tile, if there is one.
fn rebuilding_op(func: &Function, value: Value) -> Option<&Op> {
    func.def_op(value).filter(|op| {
        matches!(
            op,
            Op::Unary { .. }
                | Op::Binary { .. }
                | Op::Compare { .. }
                | Op::Select { .. }
                | Op::Fma { .. }
                | Op::Cast { .. }
                | Op::Bitcast { .. }
                | Op::Load { volatile: false, .. }
        )
    })
}

fn slice(func: &mut Function, region: Region, first_op: usize, extent: usize, loc: Loc) {
    let length = SHORTEST.max(extent / MOST);
    let mut whole = func.region(region).insts.clone();
    let insts = whole.split_off(first_op);
    let body = func.add_region();
    let first = func.add_region_param(body, Type::scalar(Dtype::I64));
    let mut cx = Slicer { body, first, length: ConstExpr::Int(length as i128), map: SideTable::new() };
    // Scalars and pointers are computed once, in front of the loop.
    let mut out = whole;
    for inst in &insts[..insts.len() - 1] {
        let data = func.inst(*inst);
        let is_scalar = match &data.op {
            Op::Store { offset, .. } => func.ty(*offset).is_scalar(),
            _ => data.results.iter().all(|result| !func.ty(*result).is_tile()),
        };
        if is_scalar {
            out.push(*inst);
        } else {
            cx.copy(func, *inst);
        }
    }
    Builder::new(func, body, loc).yield_values(Vec::new());
    let scratch = func.add_region();
    let b = &mut Builder::new(func, scratch, loc);
    let (lower, upper, step) = (b.index(0), b.index(extent as i128), b.index(length as i128));
    func.append(scratch, Op::For { lower, upper, step, init: Vec::new(), body, num_stages: None, unroll: None, remainder: false }, [], loc);
    out.append(func.insts_mut(scratch));
    out.push(insts[insts.len() - 1]);
    *func.insts_mut(region) = out;
}

struct Slicer {
    body: Region,
    /// The index of the slice's first element in the tile.
    first: Value,
    length: ConstExpr,
    /// The slice of each tile.
    map: SideTable<Value, Option<Value>>,
}

impl Slicer {
    /// Computes the slices of a tile and of all tiles that it depends on.
    fn make(&mut self, func: &mut Function, value: Value) {
        let enter = |(cx, func): &mut (&mut Self, &mut Function), value: Value, before: &mut Vec<Value>| {
            let is_new = func.ty(value).is_tile() && cx.map[value].is_none();
            if is_new && let Some(op) = func.def_op(value) {
                op.for_each_operand(&mut |operand| before.push(operand));
            }
            is_new
        };
        let leave = |(cx, func): &mut (&mut Self, &mut Function), value: Value| {
            if let Def::Result(inst, _) = func.def(value) {
                cx.copy(func, inst);
            }
        };
        postorder(&mut (self, func), value, enter, leave);
    }

    /// Copies an op for a slice. Slices of its operands that do not exist yet are computed first.
    fn copy(&mut self, func: &mut Function, inst: Inst) {
        let data = func.inst(inst).clone();
        if let Op::Arange { start, .. } = &data.op {
            return self.arange(func, start.as_int().unwrap_or(0), data.results[0], data.loc);
        }
        let mut op = data.op;
        let mut operands = Vec::new();
        op.for_each_operand(&mut |value| operands.extend((func.ty(value).is_tile() && self.map[value].is_none()).then_some(value)));
        for value in operands {
            self.make(func, value);
        }
        op.map_operands(&mut |value| self.map[value].unwrap_or(value));
        let types: Vec<Type> =
            data.results.iter().map(|result| Type::tile(func.ty(*result).elem().clone(), vec![self.length.clone()])).collect();
        let copy = func.append(self.body, op, types, data.loc);
        for (old, new) in data.results.into_iter().zip(func.inst(copy).results.clone()) {
            self.map[old] = Some(new);
        }
    }

    fn arange(&mut self, func: &mut Function, start: i128, result: Value, loc: Loc) {
        let end = start + self.length.as_int().unwrap_or(0);
        let b = &mut Builder::new(func, self.body, loc);
        let lanes = b.op(Op::Arange { start: ConstExpr::Int(start), end: ConstExpr::Int(end) }, &[]);
        let first = b.broadcast(self.first, std::slice::from_ref(&self.length));
        self.map[result] = Some(b.binary(BinaryOp::Add, first, lanes));
    }
}
