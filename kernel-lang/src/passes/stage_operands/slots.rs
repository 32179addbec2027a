//! Slots: loads that only products use become copies to shared memory, and each product reads its operands from there.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::dtype::Dtype;
use crate::ir::rewrite::{Changed, use_counts};
use crate::ir::{Builder, ConstExpr, Def, Function, Handle, Inst, Op, Reader, Region, SideTable, Stored, Type, Value};
use crate::location::Loc;
use crate::schedule::Schedule;
use crate::target::Asked;

use super::{LEFT_BYTES, Uses, is_product, is_stageable, multiplied, operands, remove_unused};

/// Copies the operands of products to slots where both are loads of the product's own region.
pub(super) fn stage(func: &mut Function, target: &Asked, schedule: Schedule) -> Changed {
    if schedule.num_ctas > 1 || !func.all_insts().iter().any(|inst| is_product(func, &func.inst(*inst).op)) {
        return false;
    }
    let cx = Cx::of(func, schedule);
    let mut changed = false;
    let mut open = vec![(func.body, 0)];
    while let Some((region, held)) = open.pop() {
        let body = func.region(region).insts.clone();
        // The groups of a ring would have to complete before those of a slot.
        if body.iter().any(|inst| matches!(func.inst(*inst).op, Op::AsyncWait { .. })) {
            continue;
        }
        let sources = sources(func, &cx, &body);
        let bytes = sources.iter().map(|value| bytes_of_tile(func, *value)).fold(held, u32::saturating_add);
        let is_small = target.ask(|target| bytes <= target.least_shared_bytes() - LEFT_BYTES);
        let held = if is_small && !sources.is_empty() {
            stage_region(func, region, &sources);
            changed = true;
            bytes
        } else {
            held
        };
        for inst in &func.region(region).insts {
            func.inst(*inst).op.for_each_region(&mut |inner| open.push((inner, held)));
        }
    }
    if changed {
        remove_unused(func);
    }
    changed
}

fn bytes_of_tile(func: &Function, value: Value) -> u32 {
    let ty = func.ty(value);
    (ty.numel() * ty.dtype().bytes()).try_into().unwrap_or(u32::MAX)
}

/// What [`stage`] knows of the kernel.
struct Cx {
    stored: Stored,
    uses: Uses,
    /// The uses of each value by ops, and by products, also behind `permute`s.
    counts: Vec<u32>,
    products: FxHashMap<Value, u32>,
    loads: SideTable<Inst, bool>,
}

impl Cx {
    fn of(func: &Function, schedule: Schedule) -> Cx {
        let insts = func.all_insts();
        let mut products = FxHashMap::default();
        for operand in insts.iter().filter_map(|inst| operands(func, *inst)).flatten() {
            *products.entry(operand.value).or_default() += 1;
        }
        Cx {
            stored: Stored::by(func, &insts),
            uses: Uses::of(func, &insts),
            counts: use_counts(func),
            products,
            loads: multiplied(func, schedule),
        }
    }

    /// Is the value an operand that can be copied: a load, or the result of a branch whose arms both load it?
    fn is_source(&self, func: &Function, value: Value) -> bool {
        let Def::Result(inst, index) = func.def(value) else { return false };
        match func.inst(inst).op {
            Op::Load { .. } => self.loads[inst],
            Op::If { then_region, else_region, .. } => {
                let is_load = |arm: Region| {
                    let yielded = func.yielded(arm)[index];
                    let is_own = |load: Inst| func.region(arm).insts.contains(&load) && is_stageable(func, &self.stored, load);
                    self.counts[yielded.index()] == 1 && matches!(func.def(yielded), Def::Result(load, 0) if is_own(load))
                };
                self.uses.are_products(value) && is_load(then_region) && is_load(else_region)
            }
            _ => false,
        }
    }
}

/// The operands that are copied for the products of a region: those that it defines, and whose products all stand in the region and have two such operands.
fn sources(func: &Function, cx: &Cx, body: &[Inst]) -> FxHashSet<Value> {
    let mut own: SideTable<Inst, bool> = SideTable::new();
    body.iter().for_each(|inst| own[*inst] = true);
    let products: Vec<[Value; 2]> =
        body.iter().filter_map(|inst| operands(func, *inst)).map(|operands| operands.map(|operand| operand.value)).collect();
    let is_own = |value: &Value| matches!(func.def(*value), Def::Result(inst, _) if own[inst]) && cx.is_source(func, *value);
    let mut sources: FxHashSet<Value> = products.iter().flatten().copied().filter(is_own).collect();
    loop {
        let mut counts: FxHashMap<Value, u32> = FxHashMap::default();
        for operand in products.iter().filter(|product| product.iter().all(|operand| sources.contains(operand))).flatten() {
            *counts.entry(*operand).or_default() += 1;
        }
        let before = sources.len();
        sources.retain(|value| counts.get(value) == cx.products.get(value));
        if sources.len() == before {
            return sources;
        }
    }
}

/// A slot of its own for an operand.
#[derive(Clone, Copy)]
struct Slot {
    buffer: Value,
    /// The number of the slot, and the condition of the copies.
    number: Value,
    on: Value,
}

/// Replaces the loads of the sources by copies, and reads the slots in front of each product.
fn stage_region(func: &mut Function, region: Region, sources: &FxHashSet<Value>) {
    let mut slots: FxHashMap<Value, Slot> = FxHashMap::default();
    let mut is_waiting = false;
    let mut out = Vec::new();
    for inst in func.region(region).insts.clone() {
        let (loc, results) = (func.inst(inst).loc, func.inst(inst).results.to_vec());
        let front = func.add_region();
        for result in results.iter().filter(|result| sources.contains(result)) {
            slots.insert(*result, slot(func, front, *result, loc));
        }
        out.append(func.insts_mut(front));
        match func.inst(inst).op {
            Op::Load { .. } if sources.contains(&results[0]) => {
                is_waiting = true;
                copy_in_place(func, inst, slots[&results[0]], &mut out);
            }
            Op::If { then_region, else_region, .. } if results.iter().any(|result| sources.contains(result)) => {
                is_waiting = true;
                for arm in [then_region, else_region] {
                    copy_in_arm(func, arm, &results, &slots);
                }
                func.remove_results(inst, |result| sources.contains(&result));
                out.push(inst);
            }
            Op::Dot { acc, precision, .. } => {
                let of = operands(func, inst).filter(|operands| operands.iter().all(|operand| sources.contains(&operand.value)));
                if let Some(operands) = of {
                    if std::mem::take(&mut is_waiting) {
                        func.append(front, Op::AsyncWait { pending: 0 }, [], loc);
                    }
                    let [a, b] = operands.map(|operand| {
                        let Slot { buffer, number, .. } = slots[&operand.value];
                        let ty = func.ty(buffer).clone();
                        let first = Some(vec![0; ty.shape().len()]);
                        let op = Op::LocalLoad { buffer, slot: number, mask: None, reader: Reader::Each, first };
                        let mut b = Builder::new(func, front, loc);
                        let tile = b.op(op, &[ty]);
                        operand.permuted(&mut b, tile)
                    });
                    func.inst_mut(inst).op = Op::Dot { a, b, acc, precision };
                    out.append(func.insts_mut(front));
                }
                out.push(inst);
            }
            _ => out.push(inst),
        }
    }
    *func.insts_mut(region) = out;
}

fn slot(func: &mut Function, front: Region, of: Value, loc: Loc) -> Slot {
    let ty = func.ty(of).clone();
    let mut b = Builder::new(func, front, loc);
    let buffer = b.op(Op::AsyncBuffer { slots: 1, common: true }, &[ty]);
    let number = b.constant(ConstExpr::Int(0), Type::scalar(Dtype::I32));
    let on = b.constant(ConstExpr::Bool(true), Type::scalar(Dtype::Bool));
    Slot { buffer, number, on }
}

/// Appends the copy of what a load loads, as a group of its own.
fn copy_in_place(func: &mut Function, load: Inst, Slot { buffer, number, on }: Slot, out: &mut Vec<Inst>) {
    let (op, loc) = (func.inst(load).op.clone(), func.inst(load).loc);
    let Op::Load { base, offset, mask, cache, evict, align, partial, .. } = op else { unreachable!("a source is a load") };
    let reader = Reader::Each;
    let copy = Op::AsyncCopy { buffer, slot: number, on, base, offset, mask, cache, evict, align, partial, reader };
    out.push(func.make_inst(copy, [], loc));
    out.push(func.make_inst(Op::AsyncCommitGroup {}, [], loc));
}

/// Replaces the loads that an arm of a branch yields for the sources among `results` by copies.
fn copy_in_arm(func: &mut Function, arm: Region, results: &[Value], slots: &FxHashMap<Value, Slot>) {
    let yielded: Vec<(Value, Option<Slot>)> =
        func.yielded(arm).iter().copied().zip(results.iter().map(|result| slots.get(result).copied())).collect();
    let mut out = Vec::new();
    for inst in func.region(arm).insts.clone() {
        let of = yielded.iter().find(|(value, slot)| slot.is_some() && func.inst(inst).results.first() == Some(value));
        match of {
            Some((_, Some(slot))) => copy_in_place(func, inst, *slot, &mut out),
            _ => out.push(inst),
        }
    }
    *func.insts_mut(arm) = out;
    let last = func.terminator(arm);
    func.inst_mut(last).op = Op::Yield { values: yielded.into_iter().filter(|(_, slot)| slot.is_none()).map(|(value, _)| value).collect() };
}
