//! `dot`: products of matrices.

use super::Elaborator;
use super::convert::written_shape;
use super::meaning::{Constant, Meaning};
use super::modifier::Choice;
use super::operator::written;
use crate::ast::{Call, Expr, ExprKind, TypeName};
use crate::span::SourceSpan;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{Builder, ConstExpr, Elem, Op, Precision, Value, product};

/// An operand: its value, its meaning and its text.
type Operand<'a> = (Value, Meaning, &'a Expr);

impl Elaborator<'_> {
    pub(super) fn dot(&mut self, call: &Call, span: SourceSpan) -> Meaning {
        let [left, right, rest @ ..] = &call.args[..] else { return Meaning::Poison };
        let acc = rest.first().or(self.option(call, "acc")).map(|expr| (self.expr(expr), expr));
        let (a, b) = (self.tile("dot", "multiplies", left), self.tile("dot", "multiplies", right));
        let (Some((a_meaning, a)), Some((b_meaning, b))) = (a, b) else { return Meaning::Poison };
        let operands = [(a, a_meaning, left), (b, b_meaning, right)];
        let Some(shape) = self.shape_of_product(&operands, span) else { return Meaning::Poison };
        let sums = self.types_of_sums(&operands, span);
        let Some(&usual) = sums.first() else { return Meaning::Poison };
        let Some(sum) = self.type_of_sums(call, &operands, usual) else { return Meaning::Poison };
        let acc = match acc {
            None => self.materialize(&Constant::int(0), &sum, &shape, span),
            Some((meaning, _)) if meaning.is_poison() => None,
            Some((meaning, expr)) => self.start_of_sums(&meaning, expr, (&sum, &sums), &shape),
        };
        let precision = self.precision(call, &operands);
        let (Some(acc), Some(precision)) = (acc, precision) else { return Meaning::Poison };
        let loc = self.loc(span);
        let results = self.decide(&precision, span, &mut |cx, precision| {
            match Builder::new(&mut cx.func, cx.region, loc).try_op(Op::Dot { a, b, acc, precision }, &[]) {
                Ok(inst) => cx.func.inst(inst).results.to_vec(),
                // The types and the shapes fit, so that the extents are too small.
                Err(message) => {
                    let help = "load larger tiles under a mask, or sum products: `sum(a[(.., .., None)] * b[(None, .., ..)], axis = 1)`";
                    cx.errors.push_help(span, message, help);
                    Vec::new()
                }
            }
        });
        results.first().map_or(Meaning::Poison, |result| Meaning::Value(*result))
    }

    /// The shape of the product; reports operands that are no matrices or do not fit each other.
    fn shape_of_product(&mut self, operands: &[Operand<'_>; 2], span: SourceSpan) -> Option<Vec<ConstExpr>> {
        for (value, meaning, expr) in operands {
            if !matches!(self.func.ty(*value).shape().len(), 2 | 3) {
                let (found, written) = (self.describe(meaning), written(expr));
                let help = match self.func.ty(*value).shape().len() {
                    1 => format!("a row of a matrix is `{written}[(None, ..)]`, a column `{written}[(.., None)]`"),
                    _ => format!("put the axes in front of a matrix together: `{written}.reshape([BATCH, M, K])`"),
                };
                self.errors.push_help(expr.span, format!("`dot` multiplies matrices, or one axis of matrices, not {found}"), help);
                return None;
            }
        }
        let [(a, ..), (b, ..)] = operands;
        let ([batch @ .., m, k], [other @ .., inner, n]) = (self.func.ty(*a).shape(), self.func.ty(*b).shape()) else { return None };
        let (shape, fits, is_alike) = ([batch, &[m.clone(), n.clone()]].concat(), k == inner, batch == other);
        if fits && is_alike {
            return Some(shape);
        }
        let help = if batch.len() != other.len() {
            "both are matrices, or both have an axis in front: `x[(None, .., ..)].broadcast_to([BATCH, M, K])`"
        } else if !is_alike {
            "the axes in front of the matrices are equal: `broadcast_to` repeats a matrix"
        } else if batch.is_empty() {
            "the first has as many columns as the second has rows: `trans(b)` exchanges rows and columns"
        } else {
            "the first has as many columns as the second has rows: `permute(b, [0, 2, 1])` exchanges rows and columns"
        };
        self.cannot_multiply(operands, span, help);
        None
    }

    fn cannot_multiply(&mut self, [a, b]: &[Operand<'_>; 2], span: SourceSpan, help: &str) {
        let both = format!("`dot` cannot multiply {} by {}", self.describe(&a.1), self.describe(&b.1));
        self.errors.push_help(span, both, help);
    }

    /// The types in which the products can be added, the usual one first; reports operands without any.
    fn types_of_sums(&mut self, operands: &[Operand<'_>; 2], span: SourceSpan) -> Vec<Dtype> {
        let [a, b] = operands.each_ref().map(|(value, ..)| self.func.ty(*value).elem().clone());
        for ((_, meaning, expr), elem) in operands.iter().zip([&a, &b]) {
            if product::possible_sums(&self.func, elem, elem).is_empty() {
                let (found, written) = (self.describe(meaning), written(expr));
                let help = match elem {
                    Elem::Dtype(dtype) if dtype.is_int() => {
                        format!(
                            "cast it, `{written} as i8` or `{written} as f32`, or sum products: `sum(a[(.., .., None)] * b[(None, .., ..)], axis = 1)`"
                        )
                    }
                    _ => format!("cast it: `{written} as i8`, or `{written} as f16`"),
                };
                self.errors.push_help(expr.span, format!("`dot` multiplies floats, `i8` or `u8`, not {found}"), help);
                return Vec::new();
            }
        }
        let sums = product::possible_sums(&self.func, &a, &b);
        if sums.is_empty() {
            let help = "both have one element type, or are `i8` and `u8`, or 8-bit floats: cast one of them";
            self.cannot_multiply(operands, span, help);
        }
        sums
    }

    /// The type of the sums: the usual one, unless `acc_type` says another.
    fn type_of_sums(&mut self, call: &Call, operands: &[Operand<'_>; 2], usual: Dtype) -> Option<Elem> {
        let Some(expr) = self.option(call, "acc_type") else { return Some(Elem::Dtype(usual)) };
        let ExprKind::Name(name) = &expr.kind else {
            self.errors.push_help(expr.span, "`acc_type` is an element type", format!("write `acc_type = {usual}`"));
            return None;
        };
        let sum = self.elem(&TypeName { text: Some(name.clone()), span: expr.span })?;
        let [a, b] = operands.each_ref().map(|(value, ..)| self.func.ty(*value).elem().clone());
        if product::is_possible(&self.func, [&a, &b, &sum]) {
            return Some(sum);
        }
        let all = product::possible_sums(&self.func, &a, &b).iter().map(|dtype| format!("`{dtype}`")).collect::<Vec<_>>().join(" or ");
        let (message, help) = match sum {
            Elem::Dtype(Dtype::Bf16) => (
                format!("`dot` has no sums of `bf16`: no GPU adds products of `{a}` and `{b}` in it"),
                format!("add them in {all}, and cast the result: `dot(a, b) as bf16`"),
            ),
            _ => (
                format!("`dot` does not add products of `{a}` and `{b}` in `{sum}`"),
                format!("it adds them in {all}; cast the result: `dot(a, b) as {sum}`"),
            ),
        };
        self.errors.push_help(expr.span, message, help);
        None
    }

    /// The tile to which the products are added.
    fn start_of_sums(&mut self, meaning: &Meaning, expr: &Expr, (sum, all): (&Elem, &[Dtype]), shape: &[ConstExpr]) -> Option<Value> {
        let fits = self.fits_shape(meaning, shape);
        let start = if fits { self.spread(meaning, sum, shape, expr.span).ok().flatten() } else { None };
        if start.is_none() {
            let (found, wanted) = (self.describe(meaning), written_shape(shape));
            let own = self.elem_of(meaning).filter(|own| fits && own != sum);
            let help = match own {
                Some(own @ Elem::Param(_)) => format!("say `acc_type = {own}`, or start from `zeros::<{sum}>({wanted})`"),
                Some(own) if all.iter().any(|dtype| own == Elem::Dtype(*dtype)) => {
                    format!("say `acc_type = {own}`, or start from `zeros::<{sum}>({wanted})`")
                }
                _ => format!("start from `zeros::<{sum}>({wanted})`"),
            };
            self.errors.push_help(expr.span, format!("`dot` adds to `{sum}` of the shape `{wanted}`, not to {found}"), help);
        }
        start
    }

    /// The option `precision`, which changes only products of `f32`.
    fn precision(&mut self, call: &Call, operands: &[Operand<'_>; 2]) -> Option<Choice<Precision>> {
        let Some(expr) = self.option(call, "precision") else { return Some(Choice::One(Precision::Ieee)) };
        let texts: Vec<&'static str> = Precision::ALL.iter().map(|precision| precision.text()).collect();
        let choice = self.modifier(call, "precision", &texts);
        let of_text = |text| Precision::ALL.iter().copied().find(|known| Some(known.text()) == text).unwrap_or_default();
        let choice = choice.then(&|text| Choice::One(of_text(text)));
        let (value, meaning, _) = &operands[0];
        let elem = self.func.ty(*value).elem().clone();
        // Of other types, a function of any types may say the usual precision.
        if !self.choices(&elem).contains(&Dtype::F32) && matches!(&choice, Choice::One(precision) if *precision != Precision::Ieee) {
            let found = self.describe(meaning);
            let help = format!("leave `precision` out: products of `{elem}` have one precision");
            self.errors.push_help(expr.span, format!("`precision` is for products of `f32`, not of {found}"), help);
            return None;
        }
        Some(choice)
    }
}
