//! Canonicalisation: folds constants, removes ops that do nothing, and gives every op its simplest form.
//!
//! ```text
//! ; before
//! kernel @k(%y: ptr_mut<i64>, %n: i64) {
//!     %0 = const {value = 3} : i64
//!     %1 = sub %0, %0 : i64
//!     %2 = add %1, %n : i64
//!     store %y, %1, %2
//!     return
//! }
//! ; after
//! kernel @k(%y: ptr_mut<i64>, %n: i64) {
//!     %0 = const {value = 3} : i64
//!     %1 = const {value = 0} : i64
//!     store %y, %1, %n
//!     return
//! }
//! ```
//!
//! The pass folds float ops only where the result is exactly the device's; `x + 0.0` is not `x` when x is -0.0.

use crate::ir::rewrite::{Changed, Substitution};
use crate::ir::{BinaryOp, CompareOp, ConstExpr, Function, Inst, InstData, Op, Region, UnaryOp, Value};
use crate::scalar::{self, Scalar};

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let mut changed = false;
    let mut with = Substitution::new();
    region(func, func.body, &mut with, &mut changed);
    changed
}

fn region(func: &mut Function, at: Region, with: &mut Substitution, changed: &mut bool) {
    let mut out: Vec<Inst> = Vec::new();
    for inst in func.region(at).insts.clone() {
        func.inst_mut(inst).op.map_operands(&mut |value| with.get(value));
        let mut inner = Vec::new();
        func.inst(inst).op.for_each_region(&mut |region| inner.push(region));
        inner.into_iter().for_each(|inner| region(func, inner, with, changed));
        if splice_decided_if(func, inst, with, &mut out) {
            *changed = true;
            continue;
        }
        let mut kept = true;
        // A simpler op may become simpler still: `0 + n` becomes `n + 0`, then `n`.
        while let Some(simpler) = simplify(func, inst).filter(|_| kept) {
            *changed = true;
            match simpler {
                Simpler::Op(op) => func.inst_mut(inst).op = op,
                Simpler::Value(value) => {
                    with.insert(func.result(inst), value);
                    kept = false;
                }
                Simpler::Nothing => kept = false,
            }
        }
        if kept {
            out.push(inst);
        }
    }
    *func.insts_mut(at) = out;
}

/// Replaces an `if` whose condition is known by the ops of the region that runs.
fn splice_decided_if(func: &Function, inst: Inst, with: &mut Substitution, out: &mut Vec<Inst>) -> bool {
    let data = func.inst(inst);
    let Op::If { cond, then_region, else_region, .. } = data.op else { return false };
    let Some(ConstExpr::Bool(holds)) = func.splat(cond) else { return false };
    let taken = if *holds { then_region } else { else_region };
    for (result, value) in data.results.iter().zip(func.yielded(taken)) {
        with.insert(*result, *value);
    }
    let insts = &func.region(taken).insts;
    out.extend(&insts[..insts.len() - 1]);
    true
}

enum Simpler {
    /// The result equals that value.
    Value(Value),
    /// That op can replace the op.
    Op(Op),
    /// The op does nothing.
    Nothing,
}

/// The predicate that every element of a value equals, if it is known.
fn predicate(func: &Function, value: Value) -> Option<bool> {
    if let Some(ConstExpr::Bool(predicate)) = func.splat(value) { Some(*predicate) } else { None }
}

fn simplify(func: &Function, inst: Inst) -> Option<Simpler> {
    if let Some(folded) = fold(func, inst) {
        return Some(folded);
    }
    let data = func.inst(inst);
    match &data.op {
        Op::Binary { op, lhs, rhs } => simplify_binary(func, *op, *lhs, *rhs),
        Op::Compare { op, lhs, rhs } if is_constant_first(func, *lhs, *rhs) => {
            Some(Simpler::Op(Op::Compare { op: op.swapped(), lhs: *rhs, rhs: *lhs }))
        }
        Op::Select { cond, on_true, on_false } => match predicate(func, *cond) {
            Some(true) => Some(Simpler::Value(*on_true)),
            Some(false) => Some(Simpler::Value(*on_false)),
            None => (on_true == on_false).then_some(Simpler::Value(*on_true)),
        },
        Op::Cast { x } | Op::Bitcast { x } | Op::Broadcast { x } | Op::Reshape { x } if func.ty(*x) == func.ty(data.results[0]) => {
            Some(Simpler::Value(*x))
        }
        Op::Broadcast { x } => match func.def_op(*x) {
            Some(Op::Broadcast { x: inner }) => Some(Simpler::Op(Op::Broadcast { x: *inner })),
            _ => None,
        },
        Op::ExpandDims { .. } | Op::Reshape { .. } | Op::Permute { .. } | Op::Flip { .. } => simplify_shape(func, &data.op),
        // An axis of extent 1 has nothing to combine.
        Op::Reduce { inputs, axis, .. } if inputs.len() == 1 && func.ty(inputs[0]).extents()[*axis as usize] == 1 => {
            Some(Simpler::Op(Op::Reshape { x: inputs[0] }))
        }
        Op::Load { mask: Some(mask), .. } | Op::Store { mask: Some(mask), .. } | Op::Atomic { mask: Some(mask), .. } => {
            if predicate(func, *mask)? { Some(Simpler::Op(without_mask(&data.op))) } else { without_lanes(func, data) }
        }
        // Two negations of predicates or bits cancel.
        Op::Unary { op: UnaryOp::Not, x } => match func.def_op(*x) {
            Some(Op::Unary { op: UnaryOp::Not, x: inner }) => Some(Simpler::Value(*inner)),
            _ => None,
        },
        _ => None,
    }
}

/// Is only the left operand constant? Commutative ops and comparisons are rewritten with the constant on the right, so that one rule serves
/// both orders.
fn is_constant_first(func: &Function, lhs: Value, rhs: Value) -> bool {
    func.splat(lhs).is_some() && func.splat(rhs).is_none()
}

/// Simplifies an op with 0, 1, a predicate or two equal operands.
fn simplify_binary(func: &Function, op: BinaryOp, lhs: Value, rhs: Value) -> Option<Simpler> {
    use BinaryOp::{Add, And, Div, Mul, MulHigh, Or, Shl, Shr, Sub, Xor};
    if matches!(op, Add | Mul | And | Or | Xor) && is_constant_first(func, lhs, rhs) {
        return Some(Simpler::Op(Op::Binary { op, lhs: rhs, rhs: lhs }));
    }
    let dtype = func.ty(lhs).dtype();
    let number = func.splat(rhs).and_then(ConstExpr::as_int).filter(|_| dtype.is_int());
    if matches!(op, Sub | Xor) && lhs == rhs && !dtype.is_float() {
        return Some(Simpler::Op(Op::Const { value: Scalar::from_bits(dtype, 0).to_const() }));
    }
    // `x - (x - y)` is `y`, because integers wrap.
    if let (Sub, false, Some(Op::Binary { op: Sub, lhs: from, rhs: distance })) = (op, dtype.is_float(), func.def_op(rhs))
        && *from == lhs
    {
        return Some(Simpler::Value(*distance));
    }
    if let (Shr, Some(amount)) = (op, number)
        && let Some(lhs) = multiple_below(func, lhs, amount)
    {
        return Some(Simpler::Op(Op::Binary { op, lhs, rhs }));
    }
    let simpler = match (op, number, predicate(func, rhs)) {
        (Add | Sub | Shl | Shr | Or | Xor, Some(0), _) | (Mul | Div, Some(1), _) => lhs,
        (Mul | MulHigh | And, Some(0), _) => rhs,
        (And, _, Some(true)) | (Or | Xor, _, Some(false)) => lhs,
        (And, _, Some(false)) | (Or, _, Some(true)) => rhs,
        (And | Or, ..) if lhs == rhs => lhs,
        _ => return None,
    };
    Some(Simpler::Value(simpler))
}

/// Of a sum of a multiple of `2^n` and a number below `2^n`: the multiple, if `n <= amount`. The bits above `amount` are those of the multiple.
/// So the upper half of an index is often the same for a whole tile: the start of the tile is a multiple of its length.
fn multiple_below(func: &Function, sum: Value, amount: i128) -> Option<Value> {
    let Op::Binary { op: BinaryOp::Add, lhs, rhs } = *func.def_op(sum)? else { return None };
    let largest = |value: Value| match func.def_op(func.unmoved(value))? {
        Op::Arange { start, end } => end.as_int().filter(|_| start.as_int().is_some_and(|start| start >= 0)).map(|end| end - 1),
        _ => None,
    };
    let zeros = |value: Value| match func.def_op(func.unmoved(value))? {
        Op::Binary { op: BinaryOp::Mul, rhs, .. } => func.splat(*rhs)?.as_int().map(i128::trailing_zeros),
        Op::Binary { op: BinaryOp::Shl, rhs, .. } => func.splat(*rhs)?.as_int().and_then(|amount| u32::try_from(amount).ok()),
        _ => None,
    };
    let is_split = |multiple: Value, rest: Value| {
        let (Some(zeros), Some(largest)) = (zeros(multiple), largest(rest)) else { return false };
        let bits = i128::BITS - largest.leading_zeros();
        bits <= zeros && i128::from(bits) <= amount
    };
    [(lhs, rhs), (rhs, lhs)].into_iter().find_map(|(multiple, rest)| is_split(multiple, rest).then_some(multiple))
}

/// The access without its mask, which holds for every element.
fn without_mask(access: &Op) -> Op {
    let mut op = access.clone();
    if let Op::Load { mask, other, in_bounds, .. } = &mut op {
        *mask = None;
        // Without a mask, `other` still fills elements that are out of bounds, unless the access is in bounds.
        *other = other.filter(|_| !*in_bounds);
    }
    if let Op::Store { mask, .. } | Op::Atomic { mask, .. } = &mut op {
        *mask = None;
    }
    op
}

/// Simplifies an access whose mask holds for no element: it loads the value for masked elements, and stores nothing.
fn without_lanes(func: &Function, access: &InstData) -> Option<Simpler> {
    match (&access.op, &access.results[..]) {
        (Op::Load { volatile: true, .. }, _) => None,
        (Op::Load { other: Some(other), .. }, _) => Some(Simpler::Value(*other)),
        (_, [result]) => {
            let zero = Scalar::from_bits(func.ty(*result).dtype(), 0);
            Some(Simpler::Op(Op::Const { value: zero.to_const() }))
        }
        _ => Some(Simpler::Nothing),
    }
}

/// Simplifies an op that only moves elements.
fn simplify_shape(func: &Function, op: &Op) -> Option<Simpler> {
    let (Op::ExpandDims { x, .. } | Op::Reshape { x } | Op::Permute { x, .. } | Op::Flip { x, .. }) = op else { return None };
    match (op, func.def_op(*x)) {
        (Op::Permute { order, .. }, _) if order.is_sorted() => Some(Simpler::Value(*x)),
        (Op::Flip { axis, .. }, _) if func.ty(*x).extents()[*axis as usize] == 1 => Some(Simpler::Value(*x)),
        // Moving the elements of a uniform tile has no effect.
        (_, Some(Op::Broadcast { x: inner })) if func.ty(*inner).is_scalar() => Some(Simpler::Op(Op::Broadcast { x: *inner })),
        (Op::Reshape { .. }, Some(Op::Reshape { x: inner } | Op::ExpandDims { x: inner, .. })) => {
            Some(Simpler::Op(Op::Reshape { x: *inner }))
        }
        (Op::Permute { order, .. }, Some(Op::Permute { x: inner, order: first })) => {
            let order = order.iter().map(|axis| first[*axis as usize]).collect();
            Some(Simpler::Op(Op::Permute { x: *inner, order }))
        }
        (Op::Flip { axis, .. }, Some(Op::Flip { x: inner, axis: first })) if axis == first => Some(Simpler::Value(*inner)),
        _ => None,
    }
}

/// Folds an op of constants, if the device computes exactly that result.
fn fold(func: &Function, inst: Inst) -> Option<Simpler> {
    let data = func.inst(inst);
    let &[result] = &data.results[..] else { return None };
    let dtype = func.ty(result).elem().dtype()?;
    let operand = |value: Value| Scalar::from_const(func.splat(value)?, func.ty(value).dtype());
    let folded = match &data.op {
        Op::Broadcast { x } | Op::ExpandDims { x, .. } | Op::Reshape { x } | Op::Permute { x, .. } | Op::Flip { x, .. } => operand(*x)?,
        Op::Unary { op, x } if is_exact(*op) => scalar::unary(*op, operand(*x)?)?,
        Op::Binary { op, lhs, rhs } if *op != BinaryOp::DivApprox => scalar::binary(*op, operand(*lhs)?, operand(*rhs)?)?,
        Op::Compare { op, lhs, rhs } if lhs == rhs && !func.ty(*lhs).dtype().is_float() => {
            let holds = matches!(op, CompareOp::Eq | CompareOp::Le | CompareOp::Ge);
            return Some(Simpler::Op(Op::Const { value: ConstExpr::Bool(holds) }));
        }
        Op::Compare { op, lhs, rhs } if let Some(holds) = decided(*op, range(func, *lhs), range(func, *rhs)) => {
            return Some(Simpler::Op(Op::Const { value: ConstExpr::Bool(holds) }));
        }
        Op::Compare { op, lhs, rhs } => scalar::compare(*op, operand(*lhs)?, operand(*rhs)?)?,
        Op::Fma { a, b, c } => scalar::fma(operand(*a)?, operand(*b)?, operand(*c)?)?,
        Op::Cast { x } => scalar::cast(operand(*x)?, dtype),
        Op::Bitcast { x } => scalar::bitcast(operand(*x)?, dtype)?,
        _ => return None,
    };
    Some(Simpler::Op(Op::Const { value: folded.to_const() }))
}

/// The smallest and the largest element of an `arange` tile or of a constant: `columns < 1024` holds everywhere in a tile of 1024.
fn range(func: &Function, value: Value) -> Option<(i128, i128)> {
    match func.def_op(func.unmoved(value))? {
        Op::Const { value } => value.as_int().map(|number| (number, number)),
        Op::Arange { start, end } => Some((start.as_int()?, end.as_int()? - 1)),
        _ => None,
    }
}

/// The result of a comparison that is the same for all elements in these ranges.
fn decided(op: CompareOp, lhs: Option<(i128, i128)>, rhs: Option<(i128, i128)>) -> Option<bool> {
    let ((least, most), (low, high)) = (lhs?, rhs?);
    let either = |always: bool, never: bool| if always { Some(true) } else { never.then_some(false) };
    match op {
        CompareOp::Lt => either(most < low, least >= high),
        CompareOp::Le => either(most <= low, least > high),
        CompareOp::Gt => either(least > high, most <= low),
        CompareOp::Ge => either(least >= high, most < low),
        CompareOp::Eq => either(false, most < low || least > high),
        CompareOp::Ne => either(most < low || least > high, false),
    }
}

fn is_exact(op: UnaryOp) -> bool {
    use UnaryOp::{Abs, Brev, Ceil, Clz, Floor, Neg, Not, Popc, Rint, Round, Sqrt, Trunc};
    matches!(op, Neg | Not | Abs | Sqrt | Floor | Ceil | Round | Rint | Trunc | Popc | Clz | Brev)
}
