//! Integer quotients in constants that become floats: `x * (1 / 2)` is `x * 0` in Rust's arithmetic and `x * 0.5` in Python's, so it is an
//! error.
//!
//! A constant without a type records its integer quotients until it takes a float type. Literals are checked then; quotients of constant
//! parameters are checked at specialisation by a `static_assert`. An exact quotient is allowed, and so is an explicit cast of the integer:
//! `(B / 2) as f32`.

use super::Elaborator;
use super::meaning::{Constant, Kind, shown};
use crate::span::SourceSpan;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{ConstBinary, ConstExpr, Elem, Op};

/// A quotient of integers that may be inexact.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Quotient {
    dividend: ConstExpr,
    divisor: ConstExpr,
    /// The condition under which the constant has it.
    cond: ConstExpr,
}

impl Quotient {
    /// The quotients in the result of an operator on two constants.
    pub(super) fn of(op: ConstBinary, a: &Constant, b: &Constant) -> Vec<Quotient> {
        let mut all: Vec<Quotient> = a.quotients.iter().chain(&b.quotients).cloned().collect();
        if (op, a.kind, b.kind) == (ConstBinary::Div, Kind::Int, Kind::Int) {
            let own = Quotient { dividend: a.expr.clone(), divisor: b.expr.clone(), cond: ConstExpr::Bool(true) };
            if own.remainder() != ConstExpr::Int(0) {
                all.push(own);
            }
        }
        all
    }

    /// The quotient in one branch of a constant `if`.
    pub(super) fn under(&self, cond: &ConstExpr) -> Quotient {
        let cond = match &self.cond {
            ConstExpr::Bool(true) => cond.clone(),
            own => ConstExpr::binary(ConstBinary::And, cond.clone(), own.clone()),
        };
        Quotient { cond, ..self.clone() }
    }

    /// The remainder that it loses: 0 where the constant does not have it.
    fn remainder(&self) -> ConstExpr {
        let remainder = ConstExpr::binary(ConstBinary::Rem, self.dividend.clone(), self.divisor.clone());
        ConstExpr::select(self.cond.clone(), remainder, ConstExpr::Int(0))
    }

    /// The message and the help.
    fn mistake(&self) -> (String, String) {
        let (a, b) = (&self.dividend, &self.divisor);
        let text = shown(&ConstExpr::Binary(ConstBinary::Div, Box::new(a.clone()), Box::new(b.clone())));
        let float = |side: &ConstExpr| side.as_int().map(|number| format!("{number}.0"));
        let fix = match (float(a), float(b)) {
            (Some(a), Some(b)) => format!("{a} / {b}"),
            (Some(a), None) => format!("{a} / {b}"),
            (None, Some(b)) => format!("{a} / {b}"),
            (None, None) => format!("{a} as f32 / {b} as f32"),
        };
        let message = format!("`{text}` is a quotient of integers that loses its remainder, and a float is wanted here");
        (message, format!("write `{fix}`, or `({text}) as f32` if the integer is meant"))
    }
}

impl Elaborator<'_> {
    /// Reports inexact quotients if a constant without a type takes the type `elem`. Returns false if the error is certain.
    pub(super) fn quotients_fit(&mut self, constant: &Constant, elem: &Elem, span: SourceSpan) -> bool {
        let choices = self.choices(elem);
        if constant.elem.is_some() || !choices.iter().any(|dtype| dtype.is_float()) {
            return true;
        }
        let is_integer = choices.into_iter().filter(|dtype| !dtype.is_float()).map(|dtype| is_type(elem, dtype));
        let is_integer = is_integer.reduce(|one, other| ConstExpr::binary(ConstBinary::Or, one, other));
        for quotient in &constant.quotients {
            let (remainder, (message, help)) = (quotient.remainder(), quotient.mistake());
            if remainder.is_literal() {
                self.errors.push_help(span, message, help);
                return false;
            }
            let is_exact = ConstExpr::binary(ConstBinary::Eq, remainder, ConstExpr::Int(0));
            let cond = match &is_integer {
                Some(is_integer) => ConstExpr::binary(ConstBinary::Or, is_exact, is_integer.clone()),
                None => is_exact,
            };
            self.append(Op::StaticAssert { cond, message: format!("{message}: {help}") }, span);
        }
        true
    }
}

fn is_type(elem: &Elem, dtype: Dtype) -> ConstExpr {
    let name = |text: &str| ConstExpr::Param(text.into());
    ConstExpr::binary(ConstBinary::Eq, name(&elem.to_string()), name(dtype.name()))
}
