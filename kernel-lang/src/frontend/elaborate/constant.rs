//! Arithmetic on constants, and named constants.

use super::Elaborator;
use super::meaning::{Constant, Kind, Meaning, shown};
use super::quotient::Quotient;
use super::scope::of_python;
use crate::diagnostic::did_you_mean;
use crate::dtype::Dtype;
use crate::float8::Format;
use crate::frontend::ast::Operator;
use crate::frontend::signature::dtype_of;
use crate::frontend::span::SourceSpan;
use crate::ir::{BinaryOp, CompareOp, ConstBinary, ConstExpr, ConstUnary, Elem};

impl Elaborator<'_> {
    /// Folds an operator on two constants, if the result is a constant too.
    ///
    /// Constants with a float type are computed at run time, so that they round as any other value of that type.
    pub(super) fn fold(&mut self, operator: Operator, a: &Constant, b: &Constant, span: SourceSpan) -> Option<Meaning> {
        let op = const_op(operator)?;
        self.fold_op(op, a, b, span)
    }

    pub(super) fn fold_op(&mut self, op: ConstBinary, a: &Constant, b: &Constant, span: SourceSpan) -> Option<Meaning> {
        let elem = match (&a.elem, &b.elem) {
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
            Meaning::Constant(Constant { expr, kind: Kind::Int, .. }) => Some(expr.clone()),
            other => {
                let found = self.describe(other);
                let help = "use a constant parameter, `const N: usize`, or a literal; both are known when the kernel is compiled";
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
        let Some(dtype) = dtype_of(before) else {
            let param = self.type_param(before);
            if let Some(elem) = &param
                && self.choices(elem).iter().all(|dtype| dtype.is_float() && !dtype.is_float8())
                && let Some(value) = float_constant(Dtype::F32, last).filter(|value| !value.is_finite())
            {
                return Meaning::constant(ConstExpr::Float(value), Kind::Float, param);
            }
            let help = if let Some(elem) = &param {
                match self.choices(elem).iter().all(|dtype| dtype.is_float()) {
                    true => format!(
                        "only `INFINITY`, `NEG_INFINITY` and `NAN` are known of every float type; cast one: `f32::{last} as {before}`"
                    ),
                    false => format!("a type parameter has no constants; cast one: `i32::{last} as {before}`"),
                }
            } else if let Some(rust) = of_python(last) {
                format!("write `{rust}`")
            } else {
                "a kernel does not see constants outside: declare it in the body, or write `#[device] fn name() -> f32 { .. }`".to_string()
            };
            self.errors.push_help(span, format!("`{written}` is not known in a kernel"), help);
            return Meaning::Poison;
        };
        let value = if dtype.is_float() {
            float_constant(dtype, last).map(ConstExpr::Float)
        } else {
            int_constant(dtype, last).map(ConstExpr::Int)
        };
        match value {
            Some(expr) => Meaning::constant(expr, if dtype.is_float() { Kind::Float } else { Kind::Int }, Some(Elem::Dtype(dtype))),
            None => {
                let names: Vec<&str> = match dtype.is_float() {
                    true => FLOAT_NAMES.iter().copied().filter(|name| float_constant(dtype, name).is_some()).collect(),
                    false => vec!["MAX", "MIN"],
                };
                let help = match did_you_mean(last, names.iter().copied()) {
                    Some(near) => format!("did you mean `{before}::{near}`?"),
                    None => format!("the constants of `{before}` are `{}`", names.join("`, `")),
                };
                self.errors.push_help(span, format!("there is no constant `{written}`"), help);
                Meaning::Poison
            }
        }
    }
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

const FLOAT_NAMES: &[&str] = &["INFINITY", "NEG_INFINITY", "NAN", "MAX", "MIN", "EPSILON", "MIN_POSITIVE"];

fn float_constant(dtype: Dtype, name: &str) -> Option<f64> {
    let float8 = Format::of(dtype);
    let has_infinities = float8.is_none_or(Format::has_infinities);
    if let Some(format) = float8 {
        let largest = format.to_f32(format.largest());
        let own = [("MAX", largest), ("MIN", -largest), ("EPSILON", format.epsilon()), ("MIN_POSITIVE", format.smallest_normal())];
        if let Some((_, value)) = own.iter().find(|(own, _)| *own == name) {
            return Some(f64::from(*value));
        }
    }
    let pick = |f16: half::f16, bf16: half::bf16, f32: f32, f64: f64| match dtype {
        Dtype::F16 => f16.to_f64(),
        Dtype::Bf16 => bf16.to_f64(),
        Dtype::F32 => f64::from(f32),
        _ => f64,
    };
    use half::{bf16, f16};
    Some(match name {
        "INFINITY" if has_infinities => f64::INFINITY,
        "NEG_INFINITY" if has_infinities => f64::NEG_INFINITY,
        "NAN" => f64::NAN,
        "MAX" => pick(f16::MAX, bf16::MAX, f32::MAX, f64::MAX),
        "MIN" => pick(f16::MIN, bf16::MIN, f32::MIN, f64::MIN),
        "EPSILON" => pick(f16::EPSILON, bf16::EPSILON, f32::EPSILON, f64::EPSILON),
        "MIN_POSITIVE" => pick(f16::MIN_POSITIVE, bf16::MIN_POSITIVE, f32::MIN_POSITIVE, f64::MIN_POSITIVE),
        _ => return None,
    })
}

fn int_constant(dtype: Dtype, name: &str) -> Option<i128> {
    let (low, high) = dtype.int_range().filter(|_| dtype.is_int())?;
    match name {
        "MAX" => Some(high),
        "MIN" => Some(low),
        _ => None,
    }
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
