//! Binary operators: types, shapes, and constants among the operands.

use super::Elaborator;
use super::convert::shapes_help;
use super::meaning::{Constant, Kind, Meaning, shown};
use crate::ast::{Expr, ExprKind, Operator};
use crate::span::SourceSpan;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{BinaryOp, ConstBinary, ConstExpr, Domain, Elem, Op, Value};

/// An operand with its source expression.
pub(super) type Operand<'a> = (&'a Meaning, &'a Expr);

impl Elaborator<'_> {
    /// `lhs operator rhs`.
    pub(super) fn operate(&mut self, operator: Operator, lhs: Operand<'_>, rhs: Operand<'_>, span: SourceSpan) -> Meaning {
        if lhs.0.is_poison() || rhs.0.is_poison() {
            return Meaning::Poison;
        }
        if let Some(meaning) = self.pointer_arithmetic(operator, lhs, rhs, span) {
            return meaning;
        }
        let is_offset =
            |meaning: &Meaning| self.elem_of(meaning).is_some_and(|elem| self.choices(&elem).iter().all(|dtype| dtype.is_int()));
        if let (Operator::Binary(BinaryOp::Add), Meaning::View(view)) = (operator, lhs.0)
            && is_offset(rhs.0)
        {
            self.view_with_offsets(view, lhs.1.span);
            return Meaning::Poison;
        }
        let is_shift = matches!(operator, Operator::Binary(BinaryOp::Shl | BinaryOp::Shr));
        if is_shift && !self.shift_count(operator, rhs) {
            return Meaning::Poison;
        }
        if let (Meaning::Constant(a), Meaning::Constant(b)) = (lhs.0, rhs.0)
            && let Some(meaning) = self.fold(operator, a, b, span)
        {
            return meaning;
        }
        if matches!(lhs.0, Meaning::Tuple(..)) || matches!(rhs.0, Meaning::Tuple(..)) {
            let (a, b) = (self.describe(lhs.0), self.describe(rhs.0));
            let is_nothing = *lhs.0 == Meaning::UNIT || *rhs.0 == Meaning::UNIT;
            let help = if is_nothing {
                "what gives `()` does something and has no value".to_string()
            } else {
                let (several, expr) = if matches!(lhs.0, Meaning::Tuple(..)) { lhs } else { rhs };
                several.parts_help(Some(expr))
            };
            self.errors.push_help(span, format!("cannot {} {a} {} {b}", verb(operator).0, verb(operator).1), help);
            return Meaning::Poison;
        }
        if self.counts_booleans(operator, lhs, rhs, span) {
            return Meaning::Poison;
        }
        self.divide_by_zero(operator, rhs);
        let Some((a, b)) = (if is_shift { self.shift_operands(operator, lhs, rhs, span) } else { self.operands(operator, lhs, rhs, span) })
        else {
            return Meaning::Poison;
        };
        self.apply(operator, (a, b), lhs, rhs, span)
    }

    /// Reports arithmetic with a `bool` and an untyped number, as in `count + (x > 0.0)`. For a typed number, the general type error is
    /// reported.
    fn counts_booleans(&mut self, operator: Operator, lhs: Operand<'_>, rhs: Operand<'_>, span: SourceSpan) -> bool {
        let Operator::Binary(op) = operator else { return false };
        for (predicate, number) in [(lhs, rhs), (rhs, lhs)] {
            if let Meaning::Constant(constant) = number.0
                && constant.kind != Kind::Bool
                && op.domain() == Domain::Number
                && self.elem_of(predicate.0) == Some(Elem::Dtype(Dtype::Bool))
            {
                let (a, b) = (self.describe(lhs.0), self.describe(rhs.0));
                let ty = if constant.kind == Kind::Float { "f32" } else { "i32" };
                let help = format!("a `bool` counts as 0 or 1 by a cast: `{} as {ty}`", written(predicate.1));
                self.errors.push_help(span, format!("cannot {} {a} {} {b}", verb(operator).0, verb(operator).1), help);
                return true;
            }
        }
        false
    }

    /// Converts the operands to values of one type and shape; reports an error if there is none.
    pub(super) fn operands(&mut self, operator: Operator, lhs: Operand<'_>, rhs: Operand<'_>, span: SourceSpan) -> Option<(Value, Value)> {
        let elem = match self.common_elem(&[lhs.0, rhs.0]) {
            Ok(elem) => elem,
            Err(pair) => {
                self.types_differ(operator, lhs, rhs, &pair, span);
                return None;
            }
        };
        // A float literal does not convert to an integer, but the other side can be cast to a float.
        for (float, other) in [(lhs, rhs), (rhs, lhs)] {
            let is_bare = matches!(float.0, Meaning::Constant(Constant { kind: Kind::Float, elem: None, .. }));
            if is_bare && self.choices(&elem).iter().all(|dtype| dtype.is_int()) {
                let (a, b) = (self.describe(lhs.0), self.describe(rhs.0));
                let help = format!("cast the other side, `{} as f32`, or write an integer", written(other.1));
                self.errors.push_help(span, format!("cannot {} {a} {} {b}", verb(operator).0, verb(operator).1), help);
                return None;
            }
        }
        let shape = match self.common_shape(&[lhs.0, rhs.0]) {
            Ok(shape) => shape,
            Err((x, y)) => {
                let (a, b) = (self.describe(lhs.0), self.describe(rhs.0));
                self.errors.push_help(
                    span,
                    format!("cannot {} {a} {} {b}: their shapes differ", verb(operator).0, verb(operator).1),
                    shapes_help(&x, &y, "both sides need the same extent, or one is a scalar"),
                );
                return None;
            }
        };
        let a = self.spread(lhs.0, &elem, &shape, lhs.1.span).ok().flatten();
        let b = self.spread(rhs.0, &elem, &shape, rhs.1.span).ok().flatten();
        Some((a?, b?))
    }

    /// Reports a negative constant shift count. A count with constant parameters is checked at specialisation.
    fn shift_count(&mut self, operator: Operator, count: Operand<'_>) -> bool {
        let Meaning::Constant(Constant { expr, kind: Kind::Int, .. }) = count.0 else { return true };
        let other = if operator == Operator::Binary(BinaryOp::Shl) { ">>" } else { "<<" };
        let message = format!("`{}` bits are no number of bits to shift by", shown(expr));
        let help = format!("a shift the other way is written `{other}`");
        match ConstExpr::binary(ConstBinary::Ge, expr.clone(), ConstExpr::Int(0)) {
            ConstExpr::Bool(true) => true,
            ConstExpr::Bool(false) => {
                self.errors.push_help(count.1.span, message, help);
                false
            }
            cond => {
                self.append(Op::StaticAssert { cond, message: format!("{message}: {help}") }, count.1.span);
                true
            }
        }
    }

    /// A shift keeps the type of its left side; the right side is a count that must fit it.
    fn shift_operands(&mut self, operator: Operator, lhs: Operand<'_>, rhs: Operand<'_>, span: SourceSpan) -> Option<(Value, Value)> {
        let elem = self.elem_of(lhs.0).unwrap_or_else(|| match (lhs.0, self.elem_of(rhs.0)) {
            (Meaning::Constant(constant), None) => constant.kind.default_elem(),
            (_, elem) => elem.unwrap_or(Elem::Dtype(Dtype::I64)),
        });
        if let Some(count) = self.elem_of(rhs.0)
            && super::convert::wider(&count, &elem).as_ref() != Some(&elem)
        {
            let (a, b) = (self.describe(lhs.0), self.describe(rhs.0));
            let help = format!("cast the count: `{} as {elem}`", written(rhs.1));
            self.errors.push_help(span, format!("cannot shift {a} by {b}"), help);
            return None;
        }
        let Ok(shape) = self.common_shape(&[lhs.0, rhs.0]) else {
            return self.operands(operator, lhs, rhs, span);
        };
        let a = self.spread(lhs.0, &elem, &shape, lhs.1.span).ok().flatten();
        let b = self.spread(rhs.0, &elem, &shape, rhs.1.span).ok().flatten();
        Some((a?, b?))
    }

    /// Emits the op for operands of one type; reports a type that the op does not support.
    fn apply(&mut self, operator: Operator, (a, b): (Value, Value), lhs: Operand<'_>, rhs: Operand<'_>, span: SourceSpan) -> Meaning {
        let op = match operator {
            Operator::Binary(op) => Op::Binary { op, lhs: a, rhs: b },
            Operator::Compare(op) => Op::Compare { op, lhs: a, rhs: b },
            Operator::And => Op::Binary { op: BinaryOp::And, lhs: a, rhs: b },
            Operator::Or => Op::Binary { op: BinaryOp::Or, lhs: a, rhs: b },
        };
        let domain = match operator {
            Operator::Binary(op) => op.domain(),
            Operator::Compare(_) => Domain::Any,
            Operator::And | Operator::Or => Domain::Bits,
        };
        if !self.check_domain(a, domain) {
            let (x, y) = (self.describe(lhs.0), self.describe(rhs.0));
            let help = match (self.func.ty(a).elem(), domain) {
                (Elem::Dtype(Dtype::Bool), _) => "`bool`s are combined with `&`, `|` and `^`; as numbers: `x as i32`".to_string(),
                (Elem::Dtype(dtype), Domain::Number | Domain::Float) if dtype.is_float8() => float8_help(lhs.1),
                (Elem::Dtype(_), _) => format!("`{}` takes {}; cast both sides, or `bitcast` them", operator.sign(), domain.describe()),
                (Elem::Param(name), Domain::Number) => format!("`{name}` may be `bool`; bound it by `Number`"),
                (Elem::Param(name), _) => format!("`{name}` may be a float; bound it by `Int`"),
            };
            self.errors.push_help(span, format!("cannot {} {x} {} {y}", verb(operator).0, verb(operator).1), help);
            return Meaning::Poison;
        }
        self.emit(op, &[], span).into()
    }

    fn types_differ(&mut self, operator: Operator, lhs: Operand<'_>, rhs: Operand<'_>, pair: &(Elem, Elem), span: SourceSpan) {
        let (a, b) = (self.describe(lhs.0), self.describe(rhs.0));
        let message = format!("cannot {} {a} {} {b}", verb(operator).0, verb(operator).1);
        let is_mask = |elem: &Elem| *elem == Elem::Dtype(Dtype::Bool);
        let is_bits = matches!(operator, Operator::Binary(BinaryOp::And | BinaryOp::Or | BinaryOp::Xor));
        let help = if is_bits && (is_mask(&pair.0) != is_mask(&pair.1)) {
            let sign = operator.sign();
            format!("`{sign}` binds closer than a comparison: `(a < b) {sign} mask`; a number becomes a `bool` by `x != 0`")
        } else if holds_more(&pair.0, &pair.1) {
            format!("cast one side: `{} as {}`", written(rhs.1), pair.0)
        } else {
            format!("cast one side: `{} as {}`", written(lhs.1), pair.1)
        };
        self.errors.push_help(span, message, help);
    }

    /// An integer divided by a literal 0 is always an error.
    fn divide_by_zero(&mut self, operator: Operator, rhs: Operand<'_>) {
        if let (Operator::Binary(BinaryOp::Div | BinaryOp::Rem), Meaning::Constant(constant)) = (operator, rhs.0)
            && constant.kind == Kind::Int
            && constant.expr.as_int() == Some(0)
            && self.elem_of(rhs.0).and_then(|elem| elem.dtype()).is_none_or(|dtype| dtype.is_int())
        {
            self.errors.push_help(rhs.1.span, "division by zero", "a float is divided by zero as `x / 0.0`");
        }
    }
}

/// The verb and the preposition for messages: `add` and `and`.
fn verb(operator: Operator) -> (&'static str, &'static str) {
    match operator {
        Operator::Binary(BinaryOp::Add) => ("add", "and"),
        Operator::Binary(BinaryOp::Sub) => ("subtract", "and"),
        Operator::Binary(BinaryOp::Mul) => ("multiply", "and"),
        Operator::Binary(BinaryOp::Div) => ("divide", "by"),
        Operator::Binary(BinaryOp::Rem) => ("take the remainder of", "by"),
        Operator::Binary(BinaryOp::Shl | BinaryOp::Shr) => ("shift", "by"),
        Operator::Binary(BinaryOp::And) | Operator::And => ("apply `&` to", "and"),
        Operator::Binary(BinaryOp::Or) | Operator::Or => ("apply `|` to", "and"),
        Operator::Binary(BinaryOp::Xor) => ("apply `^` to", "and"),
        Operator::Binary(BinaryOp::Min) => ("take the `min` of", "and"),
        Operator::Binary(BinaryOp::Max) => ("take the `max` of", "and"),
        Operator::Binary(BinaryOp::MulHigh) => ("take the `umulhi` of", "and"),
        Operator::Binary(BinaryOp::CopySign) => ("take the `copysign` of", "and"),
        Operator::Binary(BinaryOp::DivApprox) => ("take the `fast_div` of", "and"),
        Operator::Compare(_) => ("compare", "and"),
    }
}

/// An operand in source syntax, for a help.
pub(super) fn written(expr: &Expr) -> String {
    match &expr.kind {
        ExprKind::Name(name) | ExprKind::Outer(_, name) => name.clone(),
        ExprKind::Int(value, suffix) => format!("{value}{}", suffix.as_ref().and_then(|suffix| suffix.text.as_deref()).unwrap_or("")),
        ExprKind::Float(value, suffix) => format!("{value:?}{}", suffix.as_ref().and_then(|suffix| suffix.text.as_deref()).unwrap_or("")),
        ExprKind::Bool(value) => value.to_string(),
        ExprKind::Field(x, name) => format!("{}.{}", written(x), name.text),
        ExprKind::Call(call) if !call.is_method => format!("{}(..)", call.name.text),
        _ => "(..)".to_string(),
    }
}

/// The help for an 8-bit float in arithmetic.
pub(super) fn float8_help(x: &Expr) -> String {
    format!("floats of 8 bits are stored, compared and cast: `{} as f32`", written(x))
}

/// Does a cast to `a` lose no more than a cast to `b`? Floats are preferred, then wider types, then concrete ones.
pub(super) fn holds_more(a: &Elem, b: &Elem) -> bool {
    let rank = |elem: &Elem| elem.dtype().map_or((0, 0), |dtype| (1 + u32::from(dtype.is_float()), dtype.bits()));
    rank(a) >= rank(b)
}
