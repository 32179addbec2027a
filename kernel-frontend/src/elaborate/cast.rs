//! Casts: `x as T`, `x.to::<T>()` and `bitcast::<T>(x)`.

use super::Elaborator;
use super::meaning::{Constant, Kind, Meaning};
use crate::span::SourceSpan;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{ConstBinary, ConstExpr, Elem, Op};

impl Elaborator<'_> {
    /// Converts the meaning of the expression `at` as Rust's `as` does. A constant stays constant if it keeps its value.
    pub(super) fn cast(&mut self, meaning: &Meaning, elem: &Elem, at: SourceSpan, span: SourceSpan) -> Meaning {
        if let (Meaning::Pointer { base, offset }, Elem::Dtype(dtype @ (Dtype::U64 | Dtype::I64))) = (meaning, elem) {
            return self.address_of(*base, *offset, *dtype, span);
        }
        if let Meaning::Pointer { .. } = meaning {
            let found = self.describe(meaning);
            self.errors.push_help(at, format!("cannot cast {found}"), "read the elements first: `load(x + offsets) as f32`");
            return Meaning::Poison;
        }
        if let Meaning::Constant(constant) = meaning
            && let Some(meaning) = self.cast_constant(constant, elem, span)
        {
            return meaning;
        }
        let Some(value) = self.value(meaning, at) else { return Meaning::Poison };
        let ty = self.func.ty(value).with_elem(elem.clone());
        if self.func.ty(value) == &ty { Meaning::Value(value) } else { self.emit(Op::Cast { x: value }, &[ty], span).into() }
    }

    fn cast_constant(&mut self, constant: &Constant, elem: &Elem, span: SourceSpan) -> Option<Meaning> {
        let choices = self.choices(elem);
        let to_float = choices.iter().all(|dtype| dtype.is_float());
        let retyped = |expr: ConstExpr, kind: Kind| Some(Meaning::constant(expr, kind, Some(elem.clone())));
        match (constant.kind, elem) {
            (Kind::Bool, Elem::Dtype(Dtype::Bool)) => Some(Meaning::Constant(constant.clone())),
            (Kind::Bool, _) => None,
            (Kind::Int, Elem::Dtype(Dtype::Bool)) => {
                let expr = ConstExpr::binary(ConstBinary::Ne, constant.expr.clone(), ConstExpr::Int(0));
                Some(Meaning::Constant(Constant::bool(expr)))
            }
            (Kind::Int, Elem::Dtype(dtype)) if dtype.is_int() => match constant.expr.as_int() {
                Some(value) => retyped(ConstExpr::Int(dtype.wrap(value)), Kind::Int),
                // The value of a parameter is not known yet; it is kept in a type that holds all values of its own type.
                None => {
                    let own = constant.elem.clone().or_else(|| self.param_elem(&constant.expr)).unwrap_or(Elem::Dtype(Dtype::I64));
                    (super::convert::wider(&own, elem).as_ref() == Some(elem))
                        .then(|| Meaning::constant(constant.expr.clone(), Kind::Int, Some(elem.clone())))
                }
            },
            (Kind::Int, _) if to_float && constant.elem.is_none() => retyped(constant.expr.clone(), Kind::Float),
            (Kind::Int, Elem::Param(_)) if constant.elem.is_none() && !choices.contains(&Dtype::Bool) => {
                retyped(constant.expr.clone(), Kind::Int)
            }
            (Kind::Float, _) if to_float && constant.elem.is_none() => Some(self.typed(constant.clone(), elem.clone(), span)),
            _ => None,
        }
    }

    /// The declared type of a constant parameter.
    pub(super) fn param_elem(&self, expr: &ConstExpr) -> Option<Elem> {
        let ConstExpr::Param(name) = expr else { return None };
        self.func.consts.iter().find(|param| param.name == *name).map(|param| Elem::Dtype(param.dtype))
    }

    pub(super) fn bitcast(&mut self, meaning: &Meaning, elem: &Elem, at: SourceSpan, span: SourceSpan) -> Meaning {
        let Some(value) = self.value(meaning, at) else { return Meaning::Poison };
        let own = self.func.ty(value).elem().clone();
        let widths = |elem: &Elem| self.choices(elem).iter().map(|dtype| dtype.bits()).collect::<Vec<_>>();
        let (from, to) = (widths(&own), widths(elem));
        let one_width = from.iter().chain(&to).all(|bits| *bits == from[0] && *bits > 1);
        if own != *elem && !one_width {
            let help = match (own.dtype(), elem.dtype()) {
                (Some(dtype), _) if dtype.bits() > 1 => format!("the bits of `{own}` fit `u{}`", dtype.bits()),
                _ => "both types need a known width, and `bool` has no bits to take".to_string(),
            };
            self.errors.push_help(span, format!("`bitcast` needs types of one width, not `{own}` and `{elem}`"), help);
            return Meaning::Poison;
        }
        let ty = self.func.ty(value).with_elem(elem.clone());
        if own == *elem { Meaning::Value(value) } else { self.emit(Op::Bitcast { x: value }, &[ty], span).into() }
    }
}
