//! Tile padding: rounds every extent of a tile up to a power of two. The padding comes after the elements that exist.
//!
//! ```text
//! ; before
//! kernel @k(%x: ptr<f32>, %y: ptr_mut<f32>) {
//!     %0 = arange {start = 0, end = 96} : tile<i64, [96]>
//!     %1 = load %x, %0 : tile<f32, [96]>
//!     %2 = reduce %1 (%3: f32, %4: f32) {
//!         %5 = add %3, %4 : f32
//!         yield %5
//!     } : f32
//!     %6 = const {value = 0} : i64
//!     store %y, %6, %2
//!     return
//! }
//! ; after
//! kernel @k(%x: ptr<f32>, %y: ptr_mut<f32>) {
//!     %0 = arange {start = 0, end = 128} : tile<i64, [128]>
//!     %1 = arange {start = 0, end = 128} : tile<i64, [128]>
//!     %2 = const {value = 96} : tile<i64, [128]>
//!     %3 = lt %1, %2 : tile<bool, [128]>
//!     %4 = load %x, %0 {mask = %3} : tile<f32, [128]>
//!     %5 = arange {start = 0, end = 128} : tile<i64, [128]>
//!     %6 = const {value = 96} : tile<i64, [128]>
//!     %7 = lt %5, %6 : tile<bool, [128]>
//!     %8 = const {value = -0.0} : tile<f32, [128]>
//!     %9 = select %7, %4, %8 : tile<f32, [128]>
//!     %13 = reduce %9 (%10: f32, %11: f32) {
//!         %12 = add %10, %11 : f32
//!         yield %12
//!     } : f32
//!     %14 = const {value = 0} : i64
//!     store %y, %14, %13
//!     return
//! }
//! ```
//!
//! The values of padding do not matter to elementwise ops. Accesses mask it. Along a padded axis, reductions and scans must not combine it:
//! the pass fills it with the neutral element of the operator. For any other combining region, each run carries a predicate that says
//! whether the run has elements. A scan from the first element on meets no padding before an element.
//!
//! A reshape to which [`keeps_order`] does not apply moves elements: it becomes a gather of them.
//!
//! A sort gets padding that comes last, a histogram masks its padding, and a gather treats an index into padding as out of bounds.
//! [`crate::ir::padding`] says which ops may have such extents.

use crate::dtype::Dtype;
use crate::ir::padding::{keeps_order, padded};
use crate::ir::rewrite::{Changed, Substitution, copy_insts};
use crate::ir::{BinaryOp, Builder, CompareOp, ConstExpr, Function, Inst, Op, Region, SideTable, Type, Value};

/// The original extents of each tile whose extents changed.
type Before = SideTable<Value, Option<Vec<usize>>>;

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let before = pad_types(func);
    let mut changed = false;
    for region in func.regions_under(func.body) {
        for inst in std::mem::take(func.insts_mut(region)) {
            changed |= pad_op(func, region, inst, &before);
            func.insts_mut(region).push(inst);
        }
    }
    changed
}

fn pad_types(func: &mut Function) -> Before {
    let mut before = Before::new();
    for region in func.regions_under(func.body) {
        let mut values = func.region(region).params.clone();
        func.region(region).insts.iter().for_each(|inst| values.extend(&func.inst(*inst).results));
        for value in values {
            let ty = func.ty(value);
            let extents = if ty.is_tile() { ty.extents() } else { Vec::new() };
            if extents.iter().any(|extent| padded(*extent) != *extent) {
                let shape = extents.iter().map(|extent| ConstExpr::Int(padded(*extent) as i128)).collect();
                let ty = Type::tile(ty.elem().clone(), shape);
                func.set_ty(value, ty);
                before[value] = Some(extents);
            }
        }
    }
    before
}

/// Makes an op do to the elements that exist what it did before padding. Appends the ops that it needs to the region, in front of the op.
fn pad_op(func: &mut Function, region: Region, inst: Inst, before: &Before) -> Changed {
    let (op, loc) = (func.inst(inst).op.clone(), func.inst(inst).loc);
    let is_padded = func.inst(inst).results.iter().any(|result| before[*result].is_some());
    let b = &mut Builder::new(func, region, loc);
    let op = match op {
        Op::Arange { start, .. } if is_padded => {
            let extent = b.func.ty(b.func.result(inst)).extents()[0] as i128;
            let end = start.as_int().map(|start| ConstExpr::Int(start + extent)).expect("a specialised kernel's constants are numbers");
            Op::Arange { start, end }
        }
        mut op if let Some(access) = op.access() => {
            let Some(extents) = &before[access.offset] else { return false };
            op.set_lanes(Some(masked(b, access.offset, extents, access.mask)), access.in_bounds);
            op
        }
        Op::Reduce { inputs, axis, combine } => {
            let Some(exists) = exists_along(b, inputs[0], axis, before) else { return is_padded };
            let (inputs, combine) = without_padding(b, inst, (inputs, combine), exists, false);
            Op::Reduce { inputs, axis, combine }
        }
        Op::Scan { inputs, axis, reverse: true, combine } => {
            let Some(exists) = exists_along(b, inputs[0], axis, before) else { return is_padded };
            let (inputs, combine) = without_padding(b, inst, (inputs, combine), exists, true);
            Op::Scan { inputs, axis, reverse: true, combine }
        }
        Op::Flip { x, axis } => {
            let Some(extent) = odd_extent(before, x, axis) else { return is_padded };
            Op::Gather { src: x, index: reversed(b, x, axis, extent), axis }
        }
        Op::Gather { src, index, axis } => {
            let Some(extent) = odd_extent(before, src, axis) else { return is_padded };
            // An index into the padding becomes -1, which is out of bounds.
            let [limit, nowhere] = [extent as i128, -1].map(|int| b.int_like(int, index));
            let is_inside = b.compare(CompareOp::Lt, index, limit);
            Op::Gather { src, index: b.select(is_inside, index, nowhere), axis }
        }
        Op::Dot { a, b: factor, acc, precision } => {
            let first = b.func.ty(a).shape().len() as u32 - 2;
            // Padding may hold infinities and NaN, of which no product is 0.
            let mut zeroed = |x: Value, axis: u32| {
                let exists = exists_along(b, x, axis, before)?;
                let ty = b.func.ty(x).clone();
                let zero = if ty.dtype().is_float() { ConstExpr::Float(0.0) } else { ConstExpr::Int(0) };
                let zero = b.constant(zero, ty);
                Some(b.select(exists, x, zero))
            };
            let (left, right) = (zeroed(a, first + 1), zeroed(factor, first));
            if left.is_none() && right.is_none() {
                return is_padded;
            }
            Op::Dot { a: left.unwrap_or(a), b: right.unwrap_or(factor), acc, precision }
        }
        Op::Histogram { x, mask, bins } if is_padded || before[x].is_some() => {
            let mask = before[x].as_ref().map_or(mask, |extents| Some(masked(b, x, extents, mask)));
            let bins = bins.as_int().map(|bins| ConstExpr::Int(padded(bins as usize) as i128)).unwrap_or(bins);
            Op::Histogram { x, mask, bins }
        }
        Op::Reshape { x } => {
            let result = b.func.result(inst);
            let [from, to] = [x, result].map(|value| before[value].clone().unwrap_or_else(|| b.func.ty(value).extents()));
            if keeps_order(&from, &to) {
                return is_padded;
            }
            Op::Reshape { x: moved(b, x, &from, &to) }
        }
        Op::Sort { x, descending, count } if is_padded || before[x].is_some() => {
            let axis = b.func.ty(x).shape().len() as u32 - 1;
            let x = exists_along(b, x, axis, before).map_or(x, |exists| behind_all(b, x, exists, descending));
            let count = count.map(|count| count.as_int().map_or(count, |count| ConstExpr::Int(padded(count as usize) as i128).into()));
            Op::Sort { x, descending, count }
        }
        _ => return is_padded,
    };
    func.inst_mut(inst).op = op;
    true
}

/// The elements of a tile in the slots that they have after a reshape: a tile `[batch, slots, rest]` of the axes in front of those that change,
/// the axes that change, and the axes behind them.
///
/// ```text
/// [96] to [32, 3], of 128 and of 32 * 4 slots
/// slot        0  1  2  3  4  5  6  7  ..  124  125  126  127
/// element     0  1  2  -  3  4  5  -  ..   93   94   95    -
/// ```
fn moved(b: &mut Builder<'_>, x: Value, from: &[usize], to: &[usize]) -> Value {
    let same = |pairs: &mut dyn Iterator<Item = (&usize, &usize)>| pairs.take_while(|(a, b)| a == b).count();
    let front = same(&mut from.iter().zip(to));
    let behind = same(&mut from[front..].iter().rev().zip(to[front..].iter().rev()));
    let slots = |extents: &[usize]| extents.iter().map(|extent| padded(*extent) as i128).product::<i128>();
    let (old, new) = (&from[front..from.len() - behind], &to[front..to.len() - behind]);
    let shape = |middle: i128| [slots(&from[..front]), middle, slots(&from[from.len() - behind..])].map(ConstExpr::Int);
    let source = b.reshape(x, &shape(slots(old)));
    let slot = b.op(Op::Arange { start: ConstExpr::Int(0), end: ConstExpr::Int(slots(new)) }, &[]);
    // The row-major number of the element in each slot, then the slot that the element has now. What padding reads does not matter.
    let element = numbered(b, slot, new, |extent| (padded(extent), extent));
    let old_slot = numbered(b, element, old, |extent| (extent, padded(extent)));
    let row = b.expand_dims(old_slot, 0);
    let index = b.expand_dims(row, 2);
    let index = b.broadcast(index, &shape(slots(new)));
    b.op(Op::Gather { src: source, index, axis: 1 }, &[])
}

/// A row-major number in one space of axes as the number of the same indices in another. `of` gives the extents of an axis in both.
fn numbered(b: &mut Builder<'_>, number: Value, axes: &[usize], of: impl Fn(usize) -> (usize, usize)) -> Value {
    let mut apply = |op: BinaryOp, value: Value, by: usize| {
        let by = b.int_like(by as i128, value);
        b.binary(op, value, by)
    };
    let (mut terms, mut stride, mut new_stride) = (Vec::new(), 1, 1);
    for (axis, extent) in axes.iter().enumerate().rev() {
        let (own, new) = of(*extent);
        let mut index = if stride == 1 { number } else { apply(BinaryOp::Div, number, stride) };
        if axis > 0 {
            index = apply(BinaryOp::Rem, index, own);
        }
        terms.push(if new_stride == 1 { index } else { apply(BinaryOp::Mul, index, new_stride) });
        (stride, new_stride) = (stride * own, new_stride * new);
    }
    terms.into_iter().reduce(|sum, term| b.binary(BinaryOp::Add, sum, term)).expect("a shape that changes has axes")
}

/// The original extent of a tile along an axis, if it changed.
fn odd_extent(before: &Before, x: Value, axis: u32) -> Option<usize> {
    before[x].as_ref().map(|extents| extents[axis as usize]).filter(|extent| padded(*extent) != *extent)
}

/// A tile of the shape of `x` with the reversed index along the axis: `extent - 1 - index`.
fn reversed(b: &mut Builder<'_>, x: Value, axis: u32, extent: usize) -> Value {
    let shape = b.func.ty(x).shape().to_vec();
    let mut index = b.op(Op::Arange { start: ConstExpr::Int(0), end: shape[axis as usize].clone() }, &[]);
    let last = b.int_like(extent as i128 - 1, index);
    index = b.binary(BinaryOp::Sub, last, index);
    for other in (0..shape.len() as u32).filter(|other| *other != axis) {
        index = b.expand_dims(index, other);
    }
    b.broadcast(index, &shape)
}

/// The tile with padding that sorts after every element, or next to equal ones. Floats are sorted by their bits. So the padding has the
/// bits of the last NaN of `totalOrder`, or of the first one in descending order.
fn behind_all(b: &mut Builder<'_>, x: Value, exists: Value, descending: bool) -> Value {
    let ty = b.func.ty(x).clone();
    let dtype = ty.dtype();
    if dtype.is_float() {
        let bits = b.bitcast(x, dtype.bits_dtype());
        let last = if descending { -1 } else { (1i128 << (dtype.bits() - 1)) - 1 };
        let last = b.int_like(last, bits);
        let bits = b.select(exists, bits, last);
        return b.bitcast(bits, dtype);
    }
    let last = match dtype.int_range() {
        Some((low, high)) if dtype != Dtype::Bool => ConstExpr::Int(if descending { low } else { high }),
        _ => ConstExpr::Bool(!descending),
    };
    let last = b.constant(last, ty);
    b.select(exists, x, last)
}

/// The mask of an access, which excludes the padding.
fn masked(b: &mut Builder<'_>, offset: Value, extents: &[usize], mask: Option<Value>) -> Value {
    let exists = (0..extents.len()).filter_map(|axis| exists(b, offset, axis, extents[axis])).collect::<Vec<_>>();
    let all = mask.into_iter().chain(exists).reduce(|all, one| b.binary(BinaryOp::And, all, one));
    all.expect("a padded tile has a padded axis")
}

/// The mask, in the shape of `like`, of the first `extent` elements along an axis. `None` if these are all elements.
fn exists(b: &mut Builder<'_>, like: Value, axis: usize, extent: usize) -> Option<Value> {
    let shape = b.func.ty(like).shape().to_vec();
    if shape[axis].as_int() == Some(extent as i128) {
        return None;
    }
    let mut index = b.op(Op::Arange { start: ConstExpr::Int(0), end: shape[axis].clone() }, &[]);
    for other in (0..shape.len()).filter(|other| *other != axis) {
        index = b.expand_dims(index, other as u32);
    }
    let index = b.broadcast(index, &shape);
    let extent = b.int_like(extent as i128, index);
    Some(b.compare(CompareOp::Lt, index, extent))
}

fn exists_along(b: &mut Builder<'_>, input: Value, axis: u32, before: &Before) -> Option<Value> {
    let extents = before[input].as_ref()?;
    exists(b, input, axis as usize, extents[axis as usize])
}

/// The inputs and the region of a reduction or a scan that ignores padding. With `reverse`, the run at the higher indices, which may not
/// exist, is the earlier one.
fn without_padding(
    b: &mut Builder<'_>,
    inst: Inst,
    (mut inputs, combine): (Vec<Value>, Region),
    exists: Value,
    reverse: bool,
) -> (Vec<Value>, Region) {
    if let [input] = inputs[..]
        && let Some(neutral) = operator(b.func, combine).and_then(|op| neutral(op, b.func.ty(input).dtype()))
    {
        let ty = b.func.ty(input).clone();
        let neutral = b.constant(neutral, ty);
        return (vec![b.select(exists, input, neutral)], combine);
    }
    let old = b.func.region(combine).params.clone();
    let (earlier, later) = old.split_at(inputs.len());
    let region = b.func.add_region();
    let mut map = Substitution::new();
    let mut params = |func: &mut Function, old: &[Value]| -> (Vec<Value>, Value) {
        let values = old.iter().map(|value| {
            let ty = func.ty(*value).clone();
            let new = func.add_region_param(region, ty);
            map.insert(*value, new);
            new
        });
        (values.collect(), func.add_region_param(region, Type::scalar(Dtype::Bool)))
    };
    let ((earlier, earlier_exists), (later, later_exists)) = (params(b.func, earlier), params(b.func, later));
    copy_insts(b.func, combine, region, &mut map);
    let both = b.func.yielded(region).to_vec();
    b.func.insts_mut(region).pop();
    // If the run at the higher indices has elements, so has the run at the lower indices.
    let (higher, lower) =
        if reverse { ((earlier, earlier_exists), (later, later_exists)) } else { ((later, later_exists), (earlier, earlier_exists)) };
    let mut inner = Builder::new(b.func, region, b.loc);
    let mut values: Vec<Value> = both.iter().zip(&lower.0).map(|(both, lower)| inner.select(higher.1, *both, *lower)).collect();
    values.push(lower.1);
    inner.yield_values(values);
    inputs.push(exists);
    let ty = b.func.inst(inst).results.first().map(|result| b.func.ty(*result).with_elem(Dtype::Bool));
    b.func.add_result(inst, ty.expect("a reduction has a result"));
    (inputs, region)
}

/// The operator of a region that consists of one binary op.
fn operator(func: &Function, combine: Region) -> Option<BinaryOp> {
    let data = func.region(combine);
    let &[first, last] = &data.insts[..] else { return None };
    let Op::Binary { op, lhs, rhs } = func.inst(first).op else { return None };
    let yields = matches!(&func.inst(last).op, Op::Yield { values } if values[..] == func.inst(first).results[..]);
    (yields && data.params == [lhs, rhs]).then_some(op)
}

/// The neutral element of an operator.
fn neutral(op: BinaryOp, dtype: Dtype) -> Option<ConstExpr> {
    let range = dtype.int_range();
    Some(match op {
        // `0.0 + -0.0` is 0.0, and `-0.0 + -0.0` is -0.0.
        BinaryOp::Add if dtype.is_float() => ConstExpr::Float(-0.0),
        BinaryOp::Mul if dtype.is_float() => ConstExpr::Float(1.0),
        // The result of NaN and another operand is that operand, a number or NaN.
        BinaryOp::Min | BinaryOp::Max if dtype.is_float() => ConstExpr::Float(f64::NAN),
        BinaryOp::And if dtype == Dtype::Bool => ConstExpr::Bool(true),
        BinaryOp::Or | BinaryOp::Xor if dtype == Dtype::Bool => ConstExpr::Bool(false),
        BinaryOp::Add | BinaryOp::Or | BinaryOp::Xor => ConstExpr::Int(0),
        BinaryOp::Mul => ConstExpr::Int(1),
        BinaryOp::And if dtype.is_signed_int() => ConstExpr::Int(-1),
        BinaryOp::And | BinaryOp::Min => ConstExpr::Int(range?.1),
        BinaryOp::Max => ConstExpr::Int(range?.0),
        _ => return None,
    })
}
