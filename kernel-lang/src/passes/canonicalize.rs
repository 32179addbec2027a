//! Local simplification: constants are folded, operations that do nothing vanish, every op gets its simplest form.
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
//! Float operations are folded only where the result is exactly what the device computes; `x + 0.0` is not `x` when x is -0.0.

use crate::ir::rewrite::{Changed, Substitution};
use crate::ir::{BinaryOp, CompareOp, ConstExpr, Function, Inst, Op, Region, UnaryOp, Value};
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
        // A simpler op may be simpler still: `0 + n` is `n + 0` is `n`.
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

/// An `if` whose condition is known becomes the ops of the region that runs.
fn splice_decided_if(func: &Function, inst: Inst, with: &mut Substitution, out: &mut Vec<Inst>) -> bool {
    let data = func.inst(inst);
    let Op::If { cond, then_region, else_region } = data.op else { return false };
    let Some(ConstExpr::Bool(holds)) = constant(func, cond) else { return false };
    let taken = if *holds { then_region } else { else_region };
    for (result, value) in data.results.iter().zip(func.yielded(taken)) {
        with.insert(*result, *value);
    }
    let insts = &func.region(taken).insts;
    out.extend(&insts[..insts.len() - 1]);
    true
}

enum Simpler {
    /// The result is that value.
    Value(Value),
    /// The op can be that one.
    Op(Op),
    /// The op does nothing.
    Nothing,
}

/// The constant that every element of a value is.
fn constant(func: &Function, value: Value) -> Option<&ConstExpr> {
    match func.def_op(value)? {
        Op::Const { value } => Some(value),
        Op::Broadcast { x } | Op::ExpandDims { x, .. } | Op::Reshape { x } | Op::Permute { x, .. } | Op::Flip { x, .. } => {
            constant(func, *x)
        }
        _ => None,
    }
}

fn simplify(func: &Function, inst: Inst) -> Option<Simpler> {
    let data = func.inst(inst);
    let op = &data.op;
    if let Some(folded) = fold(func, inst) {
        return Some(folded);
    }
    let int = |value: Value| constant(func, value).and_then(ConstExpr::as_int);
    let truth = |value: Value| if let Some(ConstExpr::Bool(value)) = constant(func, value) { Some(*value) } else { None };
    match op {
        // A constant stands right of a commutative operation, so that one rule serves both orders.
        Op::Binary { op: op @ (BinaryOp::Add | BinaryOp::Mul | BinaryOp::And | BinaryOp::Or | BinaryOp::Xor), lhs, rhs }
            if constant(func, *lhs).is_some() && constant(func, *rhs).is_none() =>
        {
            Some(Simpler::Op(Op::Binary { op: *op, lhs: *rhs, rhs: *lhs }))
        }
        Op::Compare { op, lhs, rhs } if constant(func, *lhs).is_some() && constant(func, *rhs).is_none() => {
            Some(Simpler::Op(Op::Compare { op: op.swapped(), lhs: *rhs, rhs: *lhs }))
        }
        Op::Binary { op, lhs, rhs } => {
            let dtype = func.ty(*lhs).dtype();
            match (op, int(*rhs)) {
                (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Shl | BinaryOp::Shr | BinaryOp::Or | BinaryOp::Xor, Some(0))
                    if dtype.is_int() =>
                {
                    return Some(Simpler::Value(*lhs));
                }
                (BinaryOp::Mul | BinaryOp::Div, Some(1)) if dtype.is_int() => return Some(Simpler::Value(*lhs)),
                (BinaryOp::Mul | BinaryOp::And, Some(0)) if dtype.is_int() => return Some(Simpler::Value(*rhs)),
                _ => {}
            }
            match (op, truth(*rhs)) {
                (BinaryOp::And, Some(true)) | (BinaryOp::Or | BinaryOp::Xor, Some(false)) => Some(Simpler::Value(*lhs)),
                (BinaryOp::And, Some(false)) | (BinaryOp::Or, Some(true)) => Some(Simpler::Value(*rhs)),
                _ if lhs == rhs && matches!(op, BinaryOp::And | BinaryOp::Or) => Some(Simpler::Value(*lhs)),
                _ => None,
            }
        }
        Op::Select { cond, on_true, on_false } => match truth(*cond) {
            Some(true) => Some(Simpler::Value(*on_true)),
            Some(false) => Some(Simpler::Value(*on_false)),
            None if on_true == on_false => Some(Simpler::Value(*on_true)),
            None => None,
        },
        Op::Cast { x } | Op::Bitcast { x } | Op::Broadcast { x } | Op::Reshape { x } if func.ty(*x) == func.ty(data.results[0]) => {
            Some(Simpler::Value(*x))
        }
        Op::Broadcast { x } => match func.def_op(*x) {
            Some(Op::Broadcast { x: inner }) => Some(Simpler::Op(Op::Broadcast { x: *inner })),
            _ => None,
        },
        Op::ExpandDims { .. } | Op::Reshape { .. } | Op::Permute { .. } | Op::Flip { .. } => simplify_shape(func, op),
        // Along an axis of extent 1 there is nothing to combine.
        Op::Reduce { inputs, axis, .. } if inputs.len() == 1 && func.ty(inputs[0]).extents()[*axis as usize] == 1 => {
            Some(Simpler::Op(Op::Reshape { x: inputs[0] }))
        }
        // A mask that holds everywhere is none; one that holds nowhere leaves nothing to load.
        Op::Load { mask: Some(mask), .. } if truth(*mask) == Some(true) => {
            let mut op = op.clone();
            if let Op::Load { mask, other, .. } = &mut op {
                *mask = None;
                // Without a mask `other` still fills lanes out of bounds, unless there are none.
                if let Op::Load { in_bounds: true, .. } = data.op {
                    *other = None;
                }
            }
            Some(Simpler::Op(op))
        }
        Op::Store { mask: Some(mask), in_bounds, .. } | Op::Atomic { mask: Some(mask), in_bounds, .. } if truth(*mask) == Some(true) => {
            let mut op = op.clone();
            op.set_lanes(None, *in_bounds);
            Some(Simpler::Op(op))
        }
        Op::Load { mask: Some(mask), other, volatile: false, .. } if truth(*mask) == Some(false) => Some(match other {
            Some(other) => Simpler::Value(*other),
            None => Simpler::Op(Op::Const { value: Scalar::from_bits(func.ty(data.results[0]).dtype(), 0).to_const() }),
        }),
        Op::Store { mask: Some(mask), .. } if truth(*mask) == Some(false) => Some(Simpler::Nothing),
        Op::Atomic { mask: Some(mask), .. } if truth(*mask) == Some(false) => Some(match data.results[..] {
            [old] => Simpler::Op(Op::Const { value: Scalar::from_bits(func.ty(old).dtype(), 0).to_const() }),
            _ => Simpler::Nothing,
        }),
        // Negations of truths and bits undo each other.
        Op::Unary { op: UnaryOp::Not, x } => match func.def_op(*x) {
            Some(Op::Unary { op: UnaryOp::Not, x: inner }) => Some(Simpler::Value(*inner)),
            _ => None,
        },
        _ => None,
    }
}

/// An op that only moves elements.
fn simplify_shape(func: &Function, op: &Op) -> Option<Simpler> {
    let (Op::ExpandDims { x, .. } | Op::Reshape { x } | Op::Permute { x, .. } | Op::Flip { x, .. }) = op else { return None };
    match (op, func.def_op(*x)) {
        (Op::Permute { order, .. }, _) if order.is_sorted() => Some(Simpler::Value(*x)),
        (Op::Flip { axis, .. }, _) if func.ty(*x).extents()[*axis as usize] == 1 => Some(Simpler::Value(*x)),
        // However they are moved, equal elements are equal.
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

/// The result of an op of constants, if the device computes exactly that.
fn fold(func: &Function, inst: Inst) -> Option<Simpler> {
    let data = func.inst(inst);
    let &[result] = &data.results[..] else { return None };
    let dtype = func.ty(result).elem().dtype()?;
    let operand = |value: Value| Scalar::from_const(constant(func, value)?, func.ty(value).dtype());
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

/// The least and the greatest element of a tile of places, or of one number: `columns < 1024` holds everywhere in a tile of 1024.
fn range(func: &Function, value: Value) -> Option<(i128, i128)> {
    match func.def_op(value)? {
        Op::Const { value } => value.as_int().map(|number| (number, number)),
        Op::Arange { start, end } => Some((start.as_int()?, end.as_int()? - 1)),
        Op::Broadcast { x } | Op::ExpandDims { x, .. } | Op::Reshape { x } | Op::Permute { x, .. } | Op::Flip { x, .. } => range(func, *x),
        _ => None,
    }
}

/// Does a comparison hold for all elements, or for none, of what lies in these ranges?
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
