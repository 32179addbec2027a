//! Operands of matrix products go through shared memory: threads copy each element once, and warps read the fragments of a slice right in front of its products.
//!
//! ```text
//! ; before
//! ; num_warps 4
//! kernel @k(%x: ptr<bf16>, %y: ptr<bf16>, %i: tile<i64, [64, 64]>, %j: tile<i64, [64, 64]>, %acc: tile<f32, [64, 64]>) {
//!     %0 = load %x, %i {in_bounds = true, align = 16} : tile<bf16, [64, 64]>
//!     %1 = load %y, %j {in_bounds = true, align = 16} : tile<bf16, [64, 64]>
//!     %2 = dot %0, %1, %acc : tile<f32, [64, 64]>
//!     return
//! }
//! ; after
//! kernel @k(%x: ptr<bf16>, %y: ptr<bf16>, %i: tile<i64, [64, 64]>, %j: tile<i64, [64, 64]>, %acc: tile<f32, [64, 64]>) {
//!     %0 = async_buffer {slots = 1, common = true} : tile<bf16, [64, 64]>
//!     %1 = const {value = 0} : i32
//!     %2 = const {value = true} : bool
//!     async_copy %0, %1, %2, %x, %i {align = 16}
//!     async_commit_group
//!     %3 = async_buffer {slots = 1, common = true} : tile<bf16, [64, 64]>
//!     %4 = const {value = 0} : i32
//!     %5 = const {value = true} : bool
//!     async_copy %3, %4, %5, %y, %j {align = 16}
//!     async_commit_group
//!     async_wait
//!     %6 = local_load %0, %1 {first = [0, 0]} : tile<bf16, [64, 32]>
//!     %7 = local_load %3, %4 {first = [0, 0]} : tile<bf16, [32, 64]>
//!     %8 = dot %6, %7, %acc : tile<f32, [64, 64]>
//!     %9 = local_load %0, %1 {first = [0, 32]} : tile<bf16, [64, 32]>
//!     %10 = local_load %3, %4 {first = [32, 0]} : tile<bf16, [32, 64]>
//!     %11 = dot %9, %10, %8 : tile<f32, [64, 64]>
//!     return
//! }
//! ```
//!
//! A fragment has elements that other warps need, too, and lanes whose elements do not lie beside each other. If each warp loaded its fragments from the tensor, it would load
//! what others load as well, and a thread would hold fragments of the whole tile at a time.
//!
//! - **Slots.** Loops copy operands ahead into a ring of slots ([`prefetch_loads`](super::prefetch_loads)). Other loads that only products use get one slot: the copy is where
//!   the load was, and the wait for it in front of the product. If a branch chooses between two loads, both arms copy to the same slot.
//! - **Slices.** A product whose operands are both in slots becomes one for each [`SLICE_BYTES`] of the rows of its operands. Products that share a slot alternate, so that its
//!   fragments are read once. Both operands of a product have their own reads.
//!
//! The pass relies on these: nothing but products uses the loads, the kernel does not write the tensors, and a program is one CTA. The verifier tests that a barrier separates the
//! copies of a slot from the reads (invariant 13).

use rustc_hash::{FxHashMap, FxHashSet};

use crate::diagnostic::Diagnostics;
use crate::dtype::Dtype;
use crate::ir::product::multiplier;
use crate::ir::rewrite::{Changed, use_counts};
use crate::ir::{Builder, ConstExpr, Def, Function, Handle, Inst, Op, Reader, Region, SideTable, Stored, Type, Value};
use crate::layout::Multiplier;
use crate::location::Loc;
use crate::schedule::Schedule;
use crate::target::Asked;

use super::prefetch_loads::{is_copied, is_zero};

/// The bytes of a slice along the axis of the sums. Then a thread reads 16 bytes of neighbours, and the products of a slice take two instructions for each sum, so the fragments of
/// two slices fit beside 128 accumulators.
const SLICE_BYTES: usize = 64;
/// The shared memory that is left to the exchanges of other ops.
pub(super) const LEFT_BYTES: u32 = 1 << 10;

/// Runs the pass.
///
/// # Errors
/// None.
pub fn run(func: &mut Function, target: &Asked, schedule: Schedule) -> Result<Changed, Diagnostics> {
    let is_staged = !func.reports && schedule.num_warps > 1 && stage(func, target, schedule);
    Ok(slice(func) | is_staged)
}

/// The loads that only products by matrix instructions use, of tensors that the kernel does not write.
pub(super) fn multiplied(func: &Function, schedule: Schedule) -> SideTable<Inst, bool> {
    let mut multiplied = SideTable::new();
    let insts = func.all_insts();
    if schedule.num_ctas > 1 || !insts.iter().any(|inst| is_product(func, &func.inst(*inst).op)) {
        return multiplied;
    }
    let stored = Stored::by(func, &insts);
    let uses = Uses::of(func, &insts);
    for inst in insts {
        if is_stageable(func, &stored, inst) {
            multiplied[inst] = uses.are_products(func.result(inst));
        }
    }
    multiplied
}

/// Is it a product by matrix instructions?
fn is_product(func: &Function, op: &Op) -> bool {
    matches!(op, Op::Dot { a, precision, .. } if matches!(multiplier(func.ty(*a).dtype(), *precision), Multiplier::Mma { .. }))
}

/// Can the elements of the load be copied to shared memory?
fn is_stageable(func: &Function, stored: &Stored, inst: Inst) -> bool {
    match func.inst(inst).op {
        Op::Load { base, other, cache, volatile: false, partial: false, shifted: false, .. } => {
            func.ty(func.result(inst)).is_tile()
                && is_copied(cache)
                && other.is_none_or(|other| is_zero(func, other))
                && !stored.may_alias(func, base)
        }
        _ => false,
    }
}

/// What uses each value.
struct Uses {
    /// Is it an operand of a product, or permuted for one?
    of_products: SideTable<Value, bool>,
    otherwise: SideTable<Value, bool>,
}

impl Uses {
    fn of(func: &Function, insts: &[Inst]) -> Uses {
        let mut uses = Uses { of_products: SideTable::new(), otherwise: SideTable::new() };
        // Users come before the values that they use. What a loop carries has other uses.
        for inst in insts.iter().rev() {
            match &func.inst(*inst).op {
                op @ Op::Dot { a, b, acc, .. } if is_product(func, op) => {
                    [*a, *b].into_iter().for_each(|operand| uses.of_products[operand] = true);
                    uses.otherwise[*acc] = true;
                }
                Op::Permute { x, .. } if uses.are_products(func.result(*inst)) => uses.of_products[*x] = true,
                op => op.for_each_operand(&mut |operand| uses.otherwise[operand] = true),
            }
        }
        uses
    }

    fn are_products(&self, value: Value) -> bool {
        self.of_products[value] && !self.otherwise[value]
    }
}

/// An operand of a product: a value, and the orders of the `permute`s behind it, the first one first.
#[derive(Clone)]
struct Operand {
    value: Value,
    orders: Vec<Vec<u32>>,
}

impl Operand {
    fn of(func: &Function, mut value: Value) -> Operand {
        let mut orders = Vec::new();
        while let Some(Op::Permute { x, order }) = func.def_op(value) {
            orders.insert(0, order.clone());
            value = *x;
        }
        Operand { value, orders }
    }

    /// The axis of the value that becomes the axis `axis` of the operand.
    fn axis(&self, axis: usize) -> usize {
        self.orders.iter().rev().fold(axis, |axis, order| order[axis] as usize)
    }

    /// Appends the `permute`s of another value.
    fn permuted(&self, b: &mut Builder<'_>, value: Value) -> Value {
        self.orders.iter().fold(value, |value, order| b.permute(value, order.clone()))
    }
}

/// The operands of a product.
fn operands(func: &Function, product: Inst) -> Option<[Operand; 2]> {
    match &func.inst(product).op {
        op @ Op::Dot { a, b, .. } if is_product(func, op) => Some([Operand::of(func, *a), Operand::of(func, *b)]),
        _ => None,
    }
}

/// Removes the `permute`s and the reads of slots that nothing uses any more.
fn remove_unused(func: &mut Function) {
    let mut uses = use_counts(func);
    for region in func.regions_under(func.body) {
        let mut insts = func.region(region).insts.clone();
        insts.reverse();
        insts.retain(|inst| {
            let data = func.inst(*inst);
            let is_unused =
                matches!(data.op, Op::Permute { .. } | Op::LocalLoad { first: Some(_), .. }) && uses[data.results[0].index()] == 0;
            if is_unused {
                data.op.for_each_operand(&mut |operand| uses[operand.index()] -= 1);
            }
            !is_unused
        });
        insts.reverse();
        *func.insts_mut(region) = insts;
    }
}

/// Copies the operands of products to slots where both are loads of the product's own region.
fn stage(func: &mut Function, target: &Asked, schedule: Schedule) -> Changed {
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

/// A product of two slots.
struct Product {
    /// Its position in the region.
    at: usize,
    inst: Inst,
    operands: [Operand; 2],
    /// The elements of a slice along the axis of the sums, and their number.
    step: usize,
    count: usize,
}

/// Makes products of slices of the products whose operands are in slots.
fn slice(func: &mut Function) -> Changed {
    let mut changed = false;
    for region in func.regions_under(func.body) {
        let body = func.region(region).insts.clone();
        let mut reads: SideTable<Inst, bool> = SideTable::new();
        body.iter().for_each(|inst| reads[*inst] = matches!(func.inst(*inst).op, Op::LocalLoad { first: Some(_), .. }));
        let products: Vec<Product> = body.iter().enumerate().filter_map(|(at, inst)| sliceable(func, &reads, at, *inst)).collect();
        if products.is_empty() {
            continue;
        }
        changed = true;
        let groups = groups(func, &body, products);
        let mut out = Vec::new();
        for (at, inst) in body.iter().enumerate() {
            let is_of = |group: &&Vec<Product>| group.iter().any(|product| product.at == at);
            match groups.iter().find(is_of) {
                // All of them stand where the last one was.
                Some(group) if group.iter().any(|product| product.at > at) => {}
                Some(group) => slice_group(func, group, &mut out),
                None => out.push(*inst),
            }
        }
        *func.insts_mut(region) = out;
    }
    if changed {
        remove_unused(func);
    }
    changed
}

fn sliceable(func: &Function, reads: &SideTable<Inst, bool>, at: usize, inst: Inst) -> Option<Product> {
    let operands = operands(func, inst)?;
    let Op::Dot { a, .. } = func.inst(inst).op else { return None };
    let (depth, bytes) = (*func.ty(a).extents().last()? as usize, func.ty(a).dtype().bytes());
    let step = SLICE_BYTES / bytes;
    let are_read = operands.iter().all(|operand| matches!(func.def(operand.value), Def::Result(read, _) if reads[read]));
    // Fragments of both operands differ, also if both are one tile.
    let is_one = operands[0].value == operands[1].value && depth <= step;
    let is_sliced = depth > step && depth.is_multiple_of(step);
    let step = step.min(depth);
    (are_read && (is_one || is_sliced)).then_some(Product { at, inst, operands, step, count: depth / step })
}

/// What is read: the buffer, the slot, and the first index of the part.
type Read = (Value, Value, Vec<u32>);

fn read(func: &Function, operand: &Operand) -> Option<Read> {
    match func.def_op(operand.value) {
        Some(Op::LocalLoad { buffer, slot, first: Some(first), .. }) => Some((*buffer, *slot, first.clone())),
        _ => None,
    }
}

/// Joins products that share a slot, if no op between them uses the result of the first one.
fn groups(func: &Function, body: &[Inst], products: Vec<Product>) -> Vec<Vec<Product>> {
    let mut groups: Vec<Vec<Product>> = Vec::new();
    for product in products {
        let joins = |group: &Vec<Product>| {
            let shares = group
                .iter()
                .flat_map(|other| &other.operands)
                .any(|other| product.operands.iter().any(|own| read(func, own) == read(func, other)));
            let is_alike = group.iter().all(|other| (other.step, other.count) == (product.step, product.count));
            let results: Vec<Value> = group.iter().map(|other| func.result(other.inst)).collect();
            let begin = group.first().map_or(product.at, |first| first.at);
            let is_used = || body[begin..=product.at].iter().any(|inst| uses_any(func, *inst, &results));
            shares && is_alike && !is_used()
        };
        match groups.last_mut() {
            Some(group) if joins(group) => group.push(product),
            _ => groups.push(vec![product]),
        }
    }
    groups
}

/// Does an op use one of the values, or an op in its regions?
fn uses_any(func: &Function, inst: Inst, values: &[Value]) -> bool {
    let mut found = false;
    let op = &func.inst(inst).op;
    op.for_each_operand(&mut |operand| found |= values.contains(&operand));
    op.for_each_region(&mut |region| {
        func.for_each_inst(region, &mut |inner| func.inst(inner).op.for_each_operand(&mut |operand| found |= values.contains(&operand)));
    });
    found
}

/// Appends the products of slices, one slice of all products after the other.
fn slice_group(func: &mut Function, group: &[Product], out: &mut Vec<Inst>) {
    let mut sums: Vec<Value> = group.iter().map(|product| accumulator(func, product.inst)).collect();
    let front = func.add_region();
    for number in 0..group[0].count {
        let mut known: Vec<((Read, Vec<Vec<u32>>, usize), Value)> = Vec::new();
        for (product, sum) in group.iter().zip(&mut sums) {
            let data = func.inst(product.inst);
            let (Op::Dot { a, precision, .. }, loc) = (data.op.clone(), data.loc) else { unreachable!("a product is a `dot`") };
            let rank = func.ty(a).shape().len();
            let mut operands = product.operands.iter().zip([rank - 1, rank - 2]).map(|(operand, axis)| {
                let axis = operand.axis(axis);
                let key = (read(func, operand).expect("an operand is read from a slot"), operand.orders.clone(), axis);
                if let Some((_, value)) = known.iter().find(|(other, _)| *other == key) {
                    return *value;
                }
                let value = slice_of(func, operand, axis, product.step, number, (front, loc));
                known.push((key, value));
                value
            });
            let [a, b] = [0; 2].map(|_| operands.next().expect("a product has two operands"));
            drop(operands);
            let op = Op::Dot { a, b, acc: *sum, precision };
            if number + 1 == product.count {
                func.inst_mut(product.inst).op = op;
                func.insts_mut(front).push(product.inst);
            } else {
                let ty = func.ty(*sum).clone();
                *sum = Builder::new(func, front, loc).op(op, &[ty]);
            }
        }
    }
    out.append(func.insts_mut(front));
}

fn accumulator(func: &Function, product: Inst) -> Value {
    match func.inst(product).op {
        Op::Dot { acc, .. } => acc,
        _ => unreachable!("a product is a `dot`"),
    }
}

/// Appends the read of a slice of an operand, and its `permute`s.
fn slice_of(func: &mut Function, operand: &Operand, axis: usize, step: usize, number: usize, (front, loc): (Region, Loc)) -> Value {
    let Some(Op::LocalLoad { buffer, slot, mask, reader, first: Some(first) }) = func.def_op(operand.value).cloned() else {
        unreachable!("an operand is read from a slot")
    };
    let mut first = first;
    first[axis] += (number * step) as u32;
    let ty = func.ty(operand.value);
    let mut shape = ty.shape().to_vec();
    shape[axis] = ConstExpr::Int(step as i128);
    let ty = Type::tile(ty.dtype(), shape);
    let mut b = Builder::new(func, front, loc);
    let tile = b.op(Op::LocalLoad { buffer, slot, mask, reader, first: Some(first) }, &[ty]);
    operand.permuted(&mut b, tile)
}
