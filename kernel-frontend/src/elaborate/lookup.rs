//! `gather`, `histogram`, `sort` and `topk`: data-dependent element moves.

use super::meaning::{Meaning, shown};
use super::{Elaborator, Value};
use crate::ast::Call;
use crate::span::SourceSpan;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{ConstBinary, ConstExpr, Domain, Elem, Op};

impl Elaborator<'_> {
    pub(super) fn gather(&mut self, call: &Call, span: SourceSpan) -> Meaning {
        let [src, index, axis] = &call.args[..] else { return Meaning::Poison };
        let (source, at) = (self.tile("gather", "takes elements of", src), self.tile("gather", "is told where by", index));
        let (Some((meaning, value)), Some((index_meaning, index_value))) = (source, at) else { return Meaning::Poison };
        let (from, to) = (self.func.ty(value).shape().to_vec(), self.func.ty(index_value).shape().to_vec());
        let Some(axis) = self.axis(axis, from.len(), &self.describe(&meaning)) else { return Meaning::Poison };
        let is_aligned = from.len() == to.len() && (0..from.len()).all(|other| other == axis as usize || from[other] == to[other]);
        if !is_aligned {
            let (a, b) = (self.describe(&meaning), self.describe(&index_meaning));
            let help = "index and tile have as many axes, and all but that one are alike: `broadcast_to(index, [M, N])`";
            self.errors.push_help(span, format!("`gather` along axis {axis} cannot look up {b} in {a}"), help);
            return Meaning::Poison;
        }
        if !self.check_domain(index_value, Domain::Int) {
            self.wrong_domain("gather", Domain::Int, &index_meaning, index);
            return Meaning::Poison;
        }
        match self.with_elem(&index_meaning, &Elem::Dtype(Dtype::I64), index.span) {
            Ok(Some(index)) => self.emit(Op::Gather { src: value, index, axis }, &[], span).into(),
            Ok(None) => Meaning::Poison,
            Err(()) => {
                let found = self.describe(&index_meaning);
                let help = format!("cast it: `{} as usize`", super::operator::written(index));
                self.errors.push_help(index.span, format!("an index is `i64`, and {found} does not widen to it"), help);
                Meaning::Poison
            }
        }
    }

    pub(super) fn histogram(&mut self, call: &Call, span: SourceSpan) -> Meaning {
        let [x, bins] = &call.args[..] else { return Meaning::Poison };
        let tile = self.tile("histogram", "counts the elements of", x);
        let given = self.expr(bins);
        let bins_value = self.const_int(&given, "the number of bins", bins.span);
        let mask = self.option(call, "mask").map(|expr| (self.expr(expr), expr));
        let (Some((meaning, value)), Some(count)) = (tile, bins_value) else { return Meaning::Poison };
        if !self.check_domain(value, Domain::Int) {
            self.wrong_domain("histogram", Domain::Int, &meaning, x);
            return Meaning::Poison;
        }
        let shape = self.func.ty(value).shape().to_vec();
        let mask = match mask {
            None => None,
            Some((meaning, expr)) => match self.mask(&meaning, &shape, "elements", expr) {
                Some(mask) => Some(mask),
                None => return Meaning::Poison,
            },
        };
        if !self.check_extent(&count, "the histogram", bins.span) {
            return Meaning::Poison;
        }
        self.emit(Op::Histogram { x: value, bins: count, mask }, &[], span).into()
    }

    pub(super) fn sort(&mut self, call: &Call, span: SourceSpan) -> Meaning {
        let x = &call.args[0];
        let Some((meaning, value)) = self.tile("sort", "orders the elements of", x) else { return Meaning::Poison };
        let descending = self.flag(call, "descending");
        let Some(axis) = self.last_axis(call, &meaning) else { return Meaning::Poison };
        let value = self.axes_exchanged(value, axis, span);
        let sorted =
            value.and_then(|value| self.decide_op(&descending, span, &|descending| Op::Sort { x: value, descending, count: None }).pop());
        sorted.and_then(|sorted| self.axes_exchanged(sorted, axis, span)).into()
    }

    /// `topk`: the first elements of a descending sort.
    pub(super) fn topk(&mut self, call: &Call, span: SourceSpan) -> Meaning {
        let [x, count] = &call.args[..] else { return Meaning::Poison };
        let tile = self.tile("topk", "takes the largest elements of", x);
        let given = self.expr(count);
        let k = self.const_int(&given, "the number of elements", count.span);
        let (Some((meaning, value)), Some(k)) = (tile, k) else { return Meaning::Poison };
        let Some(axis) = self.last_axis(call, &meaning) else { return Meaning::Poison };
        let extent = self.func.ty(value).shape()[axis as usize].clone();
        if let (Some(k), Some(extent)) = (k.as_int(), extent.as_int())
            && k > extent
        {
            let found = self.describe(&meaning);
            self.errors.push_help(count.span, format!("{found} has no {k} elements along axis {axis}"), format!("write at most {extent}"));
            return Meaning::Poison;
        }
        if !self.check_extent(&k, "what `topk` gives", count.span) {
            return Meaning::Poison;
        }
        let enough = ConstExpr::binary(ConstBinary::Le, k.clone(), extent.clone());
        if enough != ConstExpr::Bool(true) {
            let message = format!("`topk` is asked for `{}` of `{}` elements", shown(&k), shown(&extent));
            self.append(Op::StaticAssert { cond: enough, message }, count.span);
        }
        let value = self.axes_exchanged(value, axis, span);
        let first = value.and_then(|value| self.emit(Op::Sort { x: value, descending: true, count: Some(k.into()) }, &[], span));
        first.and_then(|first| self.axes_exchanged(first, axis, span)).into()
    }

    /// Selects between two computations of the same value by a constant condition: at once if it is known, else at specialisation.
    pub(super) fn either(
        &mut self,
        cond: ConstExpr,
        span: SourceSpan,
        first: impl FnOnce(&mut Self) -> Option<Value>,
        second: impl FnOnce(&mut Self) -> Option<Value>,
    ) -> Option<Value> {
        match cond {
            ConstExpr::Bool(true) => return first(self),
            ConstExpr::Bool(false) => return second(self),
            _ => {}
        }
        let [then_region, else_region] = [self.func.add_region(), self.func.add_region()];
        let value = self.in_region(then_region, first)?;
        self.finish_region(then_region, Op::Yield { values: vec![value] }, span);
        let other = self.in_region(else_region, second)?;
        self.finish_region(else_region, Op::Yield { values: vec![other] }, span);
        let (ty, loc) = (self.func.ty(value).clone(), self.loc(span));
        let inst = self.func.append(self.region, Op::StaticIf { cond, then_region, else_region }, [ty], loc);
        Some(self.func.result(inst))
    }

    /// The option `axis = k`; the last axis by default.
    fn last_axis(&mut self, call: &Call, meaning: &Meaning) -> Option<u32> {
        let axis = self.axis_option(call, meaning)?;
        Some(axis.unwrap_or(self.shape_of(meaning).len() as u32 - 1))
    }

    /// Swaps that axis with the last one.
    fn axes_exchanged(&mut self, value: Value, axis: u32, span: SourceSpan) -> Option<Value> {
        let rank = self.func.ty(value).shape().len() as u32;
        if axis + 1 == rank {
            return Some(value);
        }
        let mut order: Vec<u32> = (0..rank).collect();
        order.swap(axis as usize, rank as usize - 1);
        self.emit(Op::Permute { x: value, order }, &[], span)
    }
}

/// Is the extent a power of two? The result is a constant expression, known now or at specialisation.
pub(super) fn is_power_of_two(extent: &ConstExpr) -> ConstExpr {
    let below = ConstExpr::binary(ConstBinary::Sub, extent.clone(), ConstExpr::Int(1));
    ConstExpr::binary(ConstBinary::Eq, ConstExpr::binary(ConstBinary::And, extent.clone(), below), ConstExpr::Int(0))
}
