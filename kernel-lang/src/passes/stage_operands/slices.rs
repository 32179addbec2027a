//! Slices: a product of operands in slots becomes a chain of products of slices, each of which reads its fragments right in front.

use rustc_hash::FxHashMap;

use crate::ir::rewrite::Changed;
use crate::ir::{Builder, ConstExpr, Def, Function, Inst, Op, Region, SideTable, Type, Value};
use crate::location::Loc;

use super::{Operand, operands, remove_unused};

/// The bytes of a slice along the axis of the sums. Then a thread reads 16 bytes of neighbours, and the products of a slice take two instructions for each sum, so the fragments of
/// two slices fit beside 128 accumulators.
const SLICE_BYTES: usize = 64;
/// So many products alternate at most. Registers hold the accumulators of no more.
const MOST_SHARING: usize = 8;

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
pub(super) fn slice(func: &mut Function) -> Changed {
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
        // By position: the group whose products stand where its last one was, and nothing where the others were.
        let mut group_at: FxHashMap<usize, Option<&Vec<Product>>> = FxHashMap::default();
        for group in &groups {
            group_at.extend(group.iter().map(|product| (product.at, None)));
            group_at.extend(group.last().map(|product| (product.at, Some(group))));
        }
        let mut out = Vec::new();
        for (at, inst) in body.iter().enumerate() {
            match group_at.get(&at) {
                Some(Some(group)) => slice_group(func, group, &mut out),
                Some(None) => {}
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
    let (depth, bytes) = (*func.ty(a).extents().last()?, func.ty(a).dtype().bytes());
    let step = SLICE_BYTES / bytes;
    let are_read = operands.iter().all(|operand| matches!(func.def(operand.value), Def::Result(read, _) if reads[read]));
    // Fragments of both operands differ, also if both are one tile.
    let is_one = operands[0].value == operands[1].value && depth <= step;
    let is_sliced = depth > step && depth.is_multiple_of(step);
    let step = step.min(depth);
    (are_read && (is_one || is_sliced)).then_some(Product { at, inst, operands, step, count: depth / step })
}

/// A slice of an operand: what is read, the orders of its `permute`s, and the axis that is cut.
type Slice = (Read, Vec<Vec<u32>>, usize);

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
            group.len() < MOST_SHARING && shares && is_alike && !is_used()
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
        let mut known: Vec<(Slice, Value)> = Vec::new();
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
