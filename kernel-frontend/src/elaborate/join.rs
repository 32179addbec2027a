//! Control-flow joins: values that differ between two branches become results of the op.

use std::rc::Rc;

use super::meaning::{Constant, Instance, Kind, Meaning};
use super::{Elaborator, Region, Value};
use crate::span::SourceSpan;
use kernel_lang::ir::{ConstExpr, ConstUnary, Elem, Op, Type};

/// The meaning of a variable after a join, given the results of the op.
#[derive(Clone, Debug)]
pub(super) enum Plan {
    /// The meaning is the same in both branches.
    Same(Meaning),
    /// The meaning is the n-th result.
    Result(usize),
    /// A pointer whose offset is the n-th result.
    Pointer(Value, usize),
    /// The elements of a tuple, or the fields of a struct.
    Tuple(Option<Rc<Instance>>, Vec<Plan>),
}

impl Plan {
    /// The meaning, given the results.
    pub(super) fn with(&self, results: &[Value]) -> Meaning {
        let get = |index: usize| results.get(index).copied();
        match self {
            Plan::Same(meaning) => meaning.clone(),
            Plan::Result(index) => get(*index).into(),
            Plan::Pointer(base, index) => {
                get(*index).map_or(Meaning::Poison, |offset| Meaning::Pointer { base: *base, offset: Some(offset) })
            }
            Plan::Tuple(of, list) => Meaning::Tuple(of.clone(), list.iter().map(|plan| plan.with(results)).collect()),
        }
    }
}

/// Two branches with their regions, and the values that each yields.
pub(super) struct Ways {
    pub(super) regions: [Region; 2],
    pub(super) yields: [Vec<Value>; 2],
    /// A constant condition of the branches: two constants then join to a constant.
    pub(super) choice: Option<ConstExpr>,
}

impl Elaborator<'_> {
    /// Plans the join of `a` from the first branch and `b` from the second; `None` if they have no common type.
    pub(super) fn join(&mut self, a: &Meaning, b: &Meaning, ways: &mut Ways, span: SourceSpan) -> Option<Plan> {
        match (a, b) {
            (Meaning::Poison, _) | (_, Meaning::Poison) => Some(Plan::Same(Meaning::Poison)),
            _ if a == b => Some(Plan::Same(a.clone())),
            (Meaning::Tuple(of, x), Meaning::Tuple(other, y)) if of == other && x.len() == y.len() => {
                let parts = x.iter().zip(y).map(|(a, b)| self.join(a, b, ways, span)).collect::<Option<Vec<Plan>>>();
                parts.map(|parts| Plan::Tuple(of.clone(), parts))
            }
            (Meaning::Pointer { base, offset: x }, Meaning::Pointer { base: other, offset: y }) if base == other => {
                let (x, y) = (self.offset_in(ways.regions[0], *x, span)?, self.offset_in(ways.regions[1], *y, span)?);
                (self.func.ty(x) == self.func.ty(y)).then(|| Plan::Pointer(*base, ways.push(x, y)))
            }
            (Meaning::Constant(x), Meaning::Constant(y))
                if let Some(cond) = &ways.choice
                    && let Some(chosen) = self.chosen(cond, x, y) =>
            {
                Some(Plan::Same(Meaning::Constant(chosen)))
            }
            (Meaning::Value(_) | Meaning::Constant(_), Meaning::Value(_) | Meaning::Constant(_)) => {
                let elem = self.common_elem(&[a, b]).ok()?;
                // A constant takes the shape of the other value.
                let shape = match (a, b) {
                    (Meaning::Constant(_), other) | (other, Meaning::Constant(_)) => self.shape_of(other),
                    _ if self.shape_of(a) == self.shape_of(b) => self.shape_of(a),
                    _ => return None,
                };
                for meaning in [a, b] {
                    if let Meaning::Constant(constant @ Constant { elem: None, .. }) = meaning {
                        self.fit(constant, &elem).ok()?;
                    }
                }
                let region = self.region;
                self.region = ways.regions[0];
                let x = self.yielded(a, &elem, &shape, span);
                self.region = ways.regions[1];
                let y = self.yielded(b, &elem, &shape, span);
                self.region = region;
                Some(Plan::Result(ways.push(x?, y?)))
            }
            _ => None,
        }
    }

    /// `if cond { a } else { b }` as a constant; `None` if no type has both.
    fn chosen(&self, cond: &ConstExpr, a: &Constant, b: &Constant) -> Option<Constant> {
        let elem = match (&a.elem, &b.elem) {
            (None, None) => None,
            _ => Some(self.common_elem(&[&Meaning::Constant(a.clone()), &Meaning::Constant(b.clone())]).ok()?),
        };
        let is_float = elem.as_ref().is_some_and(|elem| self.choices(elem).iter().all(|dtype| dtype.is_float()));
        let kind = match (a.kind, b.kind) {
            (x, y) if x == y => x,
            (Kind::Int | Kind::Float, Kind::Int | Kind::Float) if elem.is_none() || is_float => Kind::Float,
            _ => return None,
        };
        let [then, other] = [a, b].map(|side| {
            match &elem {
                // A constant with a type has been converted to it.
                Some(elem) if side.elem.is_none() => self.fit(side, elem).ok(),
                _ => Some(side.expr_of(kind)),
            }
        });
        let quotients = |side: &Constant, cond: &ConstExpr| side.quotients.iter().map(|quotient| quotient.under(cond)).collect::<Vec<_>>();
        let never = ConstExpr::unary(ConstUnary::Not, cond.clone());
        let quotients = [quotients(a, cond), quotients(b, &never)].concat();
        Some(Constant { expr: ConstExpr::select(cond.clone(), then?, other?), kind, elem, quotients })
    }

    /// The value that a branch yields; a scalar is broadcast if the other branch has a tile.
    fn yielded(&mut self, meaning: &Meaning, elem: &Elem, shape: &[ConstExpr], span: SourceSpan) -> Option<Value> {
        let value = self.with_elem(meaning, elem, span).ok()??;
        if self.func.ty(value).shape() == shape {
            return Some(value);
        }
        self.emit(Op::Broadcast { x: value }, &[Type::tile(elem.clone(), shape.to_vec())], span)
    }

    fn offset_in(&mut self, region: Region, offset: Option<Value>, span: SourceSpan) -> Option<Value> {
        let outer = std::mem::replace(&mut self.region, region);
        let value = self.offset_value(offset, span);
        self.region = outer;
        value
    }
}

impl Ways {
    fn push(&mut self, a: Value, b: Value) -> usize {
        self.yields[0].push(a);
        self.yields[1].push(b);
        self.yields[0].len() - 1
    }
}
