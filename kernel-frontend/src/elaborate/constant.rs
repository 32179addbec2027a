//! Arithmetic on constants, and named constants.

use super::Elaborator;
use super::meaning::{Constant, Kind, Meaning, shown};
use super::quotient::Quotient;
use super::scope::of_python;
use crate::ast::Operator;
use crate::signature::dtype_of;
use crate::span::SourceSpan;
use kernel_lang::diagnostic::did_you_mean;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{BinaryOp, CompareOp, ConstBinary, ConstExpr, ConstUnary, Elem, TypeConstant};

impl Elaborator<'_> {
    /// Folds an operator on two constants, if the result is a constant too.
    ///
    /// Constants with a float type are computed at run time, so that they round as any other value of that type.
    pub(super) fn fold(&mut self, operator: Operator, a: &Constant, b: &Constant, span: SourceSpan) -> Option<Meaning> {
        let op = const_op(operator)?;
        self.fold_op(op, a, b, span)
    }

    pub(super) fn fold_op(&mut self, op: ConstBinary, a: &Constant, b: &Constant, span: SourceSpan) -> Option<Meaning> {
        if [a, b].iter().any(|side| matches!(side.kind, Kind::Outer(_))) {
            return None;
        }
        let elem = match (&a.elem, &b.elem) {
            // A `bool` is one, whether the source names its type or not.
            _ if (a.kind, b.kind) == (Kind::Bool, Kind::Bool) => None,
            (Some(x), Some(y)) => Some(super::convert::wider(x, y)?),
            (one, other) => one.clone().or_else(|| other.clone()),
        };
        if elem.as_ref().is_some_and(|elem| !elem.dtype().is_some_and(|dtype| dtype.is_int())) {
            return None;
        }
        let is_comparison =
            matches!(op, ConstBinary::Eq | ConstBinary::Ne | ConstBinary::Lt | ConstBinary::Le | ConstBinary::Gt | ConstBinary::Ge);
        let kind = match (a.kind, b.kind) {
            (Kind::Bool, Kind::Bool) => match op {
                ConstBinary::And | ConstBinary::Or | ConstBinary::Xor | ConstBinary::Eq | ConstBinary::Ne => Kind::Bool,
                _ => return None,
            },
            (Kind::Bool, _) | (_, Kind::Bool) => return None,
            (Kind::Int, Kind::Int) => Kind::Int,
            _ if elem.is_some() => return None,
            _ => match op {
                ConstBinary::Shl | ConstBinary::Shr | ConstBinary::And | ConstBinary::Or | ConstBinary::Xor | ConstBinary::Cdiv => {
                    return None;
                }
                _ => Kind::Float,
            },
        };
        let divides = matches!(op, ConstBinary::Div | ConstBinary::Rem | ConstBinary::Cdiv);
        if kind == Kind::Int && divides && b.expr.as_int() == Some(0) {
            self.errors.push_help(span, "division by zero", "a constant needs a value when the kernel is compiled");
            return Some(Meaning::Poison);
        }
        let expr = ConstExpr::binary(op, a.expr.clone(), b.expr.clone());
        let is_literal = a.expr.is_literal() && b.expr.is_literal();
        let expr = match elem.as_ref().and_then(Elem::dtype) {
            Some(_) if is_literal && !is_comparison && expr.as_int().is_none() => return None,
            Some(dtype) if !is_comparison => wrapped(expr, dtype),
            _ => expr,
        };
        if is_literal && !expr.is_literal() {
            self.errors.push_help(
                span,
                format!("the constant `{}` has no value", shown(&expr)),
                "its value is outside of every integer type",
            );
            return Some(Meaning::Poison);
        }
        if is_comparison {
            // Of an integer and a float, the integer becomes a float.
            let float = Kind::Float.default_elem();
            let fits = kind != Kind::Float || [a, b].into_iter().all(|side| self.quotients_fit(side, &float, span));
            return Some(if fits { Meaning::constant(expr, Kind::Bool, None) } else { Meaning::Poison });
        }
        let quotients = if elem.is_none() { Quotient::of(op, a, b) } else { Vec::new() };
        Some(Meaning::Constant(Constant { expr, kind, elem, quotients }))
    }

    /// A constant integer, for a shape or a bound.
    pub(super) fn const_int(&mut self, meaning: &Meaning, what: &str, span: SourceSpan) -> Option<ConstExpr> {
        match meaning {
            Meaning::Poison => None,
            Meaning::Constant(Constant { expr, kind: Kind::Int, elem, .. })
                if elem.as_ref().is_none_or(|elem| self.choices(elem).iter().all(|dtype| dtype.is_int())) =>
            {
                Some(expr.clone())
            }
            other => {
                let found = self.describe(other);
                let help = self.outer_help(other).unwrap_or_else(|| {
                    "use a constant parameter, `const N: usize`, or a literal; both are known when the kernel is compiled".to_string()
                });
                let message = match other {
                    Meaning::Value(_) => format!("{what} must be constant, but this is {found} computed at run time"),
                    _ => format!("{what} must be a constant integer, not {found}"),
                };
                self.errors.push_help(span, message, help);
                None
            }
        }
    }

    /// `f32::INFINITY`, `i32::MAX`, `std::f32::consts::PI`.
    pub(super) fn path(&mut self, path: &[String], span: SourceSpan) -> Meaning {
        let written = path.join("::");
        let last = path.last().map_or("", String::as_str);
        let before = path.len().checked_sub(2).map_or("", |index| path[index].as_str());
        if before == "consts" {
            let elem = path.len().checked_sub(3).and_then(|index| dtype_of(&path[index])).filter(|dtype| dtype.is_float());
            if let Some((_, value)) = MATH.iter().find(|(name, _)| *name == last) {
                return Meaning::constant(ConstExpr::Float(*value), Kind::Float, elem.map(Elem::Dtype));
            }
            let help = did_you_mean(last, MATH.iter().map(|(name, _)| *name))
                .map_or("write the number".to_string(), |near| format!("did you mean `{near}`?"));
            self.errors.push_help(span, format!("there is no constant `{written}`"), help);
            return Meaning::Poison;
        }
        let Some(elem) = dtype_of(before).map(Elem::Dtype).or_else(|| self.type_param(before)) else {
            let help = match of_python(last) {
                Some(rust) => format!("write `{rust}`"),
                None if let Some(frame) = self.frames.last() => {
                    let name = &frame.func.name.text;
                    format!("kernels of other modules contain the body of `{name}`, where its paths mean nothing: pass it as an argument")
                }
                None => "a kernel sees constants outside, in capitals, and those of element types, such as `f32::MAX`".to_string(),
            };
            self.errors.push_help(span, format!("`{written}` is not known in a kernel"), help);
            return Meaning::Poison;
        };
        let choices = self.choices(&elem);
        let names = |constant: &TypeConstant| choices.iter().all(|dtype| constant.of(*dtype).is_some());
        if let Some(constant) = TypeConstant::named(last).filter(names) {
            return self.type_constant(elem, constant);
        }
        let names: Vec<&str> = TypeConstant::ALL.iter().filter(|constant| names(constant)).map(|constant| constant.name()).collect();
        let help = match did_you_mean(last, names.iter().copied()) {
            Some(near) => format!("did you mean `{before}::{near}`?"),
            None if names.is_empty() => format!("not all types that `{before}` stands for have constants: bound it by `Int` or `Float`"),
            None => format!("the constants of `{before}` are `{}`", names.join("`, `")),
        };
        self.errors.push_help(span, format!("there is no constant `{written}`"), help);
        Meaning::Poison
    }

    /// A constant of an element type: its value, if the type is known or if all types have the same.
    fn type_constant(&mut self, elem: Elem, constant: TypeConstant) -> Meaning {
        let choices = self.choices(&elem);
        let kind = if choices.iter().all(|dtype| dtype.is_float()) { Kind::Float } else { Kind::Int };
        let values: Vec<ConstExpr> = choices.iter().filter_map(|dtype| constant.of(*dtype)).collect();
        let is_one = values.iter().all(|value| value == &values[0] || is_nan(value) && is_nan(&values[0]));
        let expr = match &elem {
            Elem::Param(name) if !is_one => ConstExpr::OfType(name.clone(), constant),
            _ => values[0].clone(),
        };
        // A number of bits counts something: it takes the type of the other operand.
        let elem = (constant != TypeConstant::Bits).then_some(elem);
        Meaning::constant(expr, kind, elem)
    }
}

fn is_nan(value: &ConstExpr) -> bool {
    matches!(value, ConstExpr::Float(float) if float.is_nan())
}

/// Typed integers wrap as at run time, so that a function computes the same for a constant and for a value. An `i64` stays a linear
/// combination, which shapes are compared by; overflow of 64 bits is an error there.
pub(super) fn wrapped(expr: ConstExpr, dtype: Dtype) -> ConstExpr {
    if dtype == Dtype::I64 && !expr.is_literal() { expr } else { ConstExpr::unary(ConstUnary::Wrap(dtype), expr) }
}

fn const_op(operator: Operator) -> Option<ConstBinary> {
    Some(match operator {
        Operator::Binary(op) => match op {
            BinaryOp::Add => ConstBinary::Add,
            BinaryOp::Sub => ConstBinary::Sub,
            BinaryOp::Mul => ConstBinary::Mul,
            BinaryOp::Div => ConstBinary::Div,
            BinaryOp::Rem => ConstBinary::Rem,
            BinaryOp::And => ConstBinary::And,
            BinaryOp::Or => ConstBinary::Or,
            BinaryOp::Xor => ConstBinary::Xor,
            BinaryOp::Shl => ConstBinary::Shl,
            BinaryOp::Shr => ConstBinary::Shr,
            BinaryOp::Min => ConstBinary::Min,
            BinaryOp::Max => ConstBinary::Max,
            BinaryOp::MulHigh | BinaryOp::CopySign | BinaryOp::DivApprox => return None,
        },
        Operator::Compare(op) => match op {
            CompareOp::Eq => ConstBinary::Eq,
            CompareOp::Ne => ConstBinary::Ne,
            CompareOp::Lt => ConstBinary::Lt,
            CompareOp::Le => ConstBinary::Le,
            CompareOp::Gt => ConstBinary::Gt,
            CompareOp::Ge => ConstBinary::Ge,
        },
        Operator::And => ConstBinary::And,
        Operator::Or => ConstBinary::Or,
    })
}

/// Is it the name of a constant of `std::f64::consts`?
pub(crate) fn is_math_constant(name: &str) -> bool {
    MATH.iter().any(|(known, _)| *known == name)
}

/// The constants of `std::f64::consts`.
const MATH: &[(&str, f64)] = {
    use std::f64::consts as c;
    &[
        ("PI", c::PI),
        ("TAU", c::TAU),
        ("E", c::E),
        ("SQRT_2", c::SQRT_2),
        ("LN_2", c::LN_2),
        ("LN_10", c::LN_10),
        ("LOG2_E", c::LOG2_E),
        ("LOG10_E", c::LOG10_E),
        ("LOG2_10", c::LOG2_10),
        ("LOG10_2", c::LOG10_2),
        ("FRAC_PI_2", c::FRAC_PI_2),
        ("FRAC_PI_3", c::FRAC_PI_3),
        ("FRAC_PI_4", c::FRAC_PI_4),
        ("FRAC_PI_6", c::FRAC_PI_6),
        ("FRAC_PI_8", c::FRAC_PI_8),
        ("FRAC_1_PI", c::FRAC_1_PI),
        ("FRAC_2_PI", c::FRAC_2_PI),
        ("FRAC_2_SQRT_PI", c::FRAC_2_SQRT_PI),
        ("FRAC_1_SQRT_2", c::FRAC_1_SQRT_2),
    ]
};
