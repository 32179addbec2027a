//! Builtins that join, split, concatenate, reverse and fill tiles.

use super::lookup::is_power_of_two;
use super::meaning::{Constant, Meaning};
use super::{Elaborator, Value};
use crate::ast::{Call, Expr};
use crate::span::SourceSpan;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{BinaryOp, Builder, CompareOp, ConstBinary, ConstExpr, Op, Type};

impl Elaborator<'_> {
    /// `join(a, b)`: both values along a new last axis.
    pub(super) fn join_tiles(&mut self, a: &Expr, b: &Expr, span: SourceSpan) -> Meaning {
        self.pair("join", a, b, span).map(|(a, b)| self.stack(a, b, span)).into()
    }

    /// `interleave(a, b)`: alternating elements along the last axis.
    pub(super) fn interleave(&mut self, a: &Expr, b: &Expr, span: SourceSpan) -> Meaning {
        let Some((a, b)) = self.pair("interleave", a, b, span) else { return Meaning::Poison };
        let mut shape = self.func.ty(a).shape().to_vec();
        let last = shape.pop().unwrap_or(ConstExpr::Int(1));
        shape.push(ConstExpr::binary(ConstBinary::Mul, last, ConstExpr::Int(2)));
        let joined = self.stack(a, b, span);
        let loc = self.loc(span);
        Builder::new(&mut self.func, self.region, loc).reshape(joined, &shape).into()
    }

    /// `cat(a, b, axis = k)`: concatenation.
    pub(super) fn cat(&mut self, call: &Call, span: SourceSpan) -> Meaning {
        let meanings = [&call.args[0], &call.args[1]].map(|arg| (self.expr(arg), arg));
        let is_scalar =
            |meaning: &Meaning| matches!(meaning, Meaning::Value(_) | Meaning::Constant(_)) && self.shape_of(meaning).is_empty();
        if let Some((scalar, at)) = meanings.iter().find(|(meaning, _)| is_scalar(meaning)) {
            let found = self.describe(scalar);
            let help = "two scalars become a tile of two with `join(a, b)`";
            self.errors.push_help(at.span, format!("`cat` takes tiles, not {found}"), help);
            return Meaning::Poison;
        }
        let [a, b] = &meanings;
        let (left, right) = (self.shape_of(&a.0), self.shape_of(&b.0));
        if left != right && !left.is_empty() && !right.is_empty() {
            let found = format!("{} and {}", self.describe(&a.0), self.describe(&b.0));
            self.errors.push_help(
                span,
                format!("`cat` takes tiles of one shape, not {found}"),
                "spread the smaller one: `broadcast_to(x, [..])`",
            );
            return Meaning::Poison;
        }
        let Some(values) = self.alike("cat", &[(&a.0, a.1), (&b.0, b.1)], span) else { return Meaning::Poison };
        let found = self.describe(&Meaning::Value(values[0]));
        let axis = match self.option(call, "axis") {
            None => 0,
            Some(axis) => match self.axis(axis, left.len(), &found) {
                Some(axis) => axis,
                None => return Meaning::Poison,
            },
        };
        let is_run = is_power_of_two(&left[axis as usize]);
        let [first, second] = [values[0], values[1]];
        let stacked = |cx: &mut Self| cx.cat_stacked(first, second, axis, span);
        let looked_up = |cx: &mut Self| cx.cat_looked_up(first, second, axis, span);
        self.either(is_run, span, stacked, looked_up).into()
    }

    /// Concatenates by a join and a permutation: [.., N, .., 2] becomes [.., 2, N, ..], whose row-major order has all of the first tile
    /// before the second. No element moves to another thread.
    fn cat_stacked(&mut self, first: Value, second: Value, axis: u32, span: SourceSpan) -> Option<Value> {
        let mut shape = self.func.ty(first).shape().to_vec();
        let mut order: Vec<u32> = (0..shape.len() as u32).collect();
        order.insert(axis as usize, shape.len() as u32);
        shape[axis as usize] = ConstExpr::binary(ConstBinary::Mul, shape[axis as usize].clone(), ConstExpr::Int(2));
        let joined = self.stack(first, second, span);
        let apart = self.emit(Op::Permute { x: joined, order }, &[], span)?;
        let loc = self.loc(span);
        Some(Builder::new(&mut self.func, self.region, loc).reshape(apart, &shape))
    }

    /// Concatenates by gathers, which give 0 beyond the extent. This is needed for padded extents: the padding of the first tile separates it
    /// from the second.
    fn cat_looked_up(&mut self, first: Value, second: Value, axis: u32, span: SourceSpan) -> Option<Value> {
        let mut shape = self.func.ty(first).shape().to_vec();
        let extent = shape[axis as usize].clone();
        shape[axis as usize] = ConstExpr::binary(ConstBinary::Mul, extent.clone(), ConstExpr::Int(2));
        let ty = Type::tile(Dtype::I64, shape);
        let index = self.positions(&ty, Some(axis), span);
        let loc = self.loc(span);
        let mut b = Builder::new(&mut self.func, self.region, loc);
        let extent = b.constant(extent, ty);
        let (is_first, behind) = (b.compare(CompareOp::Lt, index, extent), b.binary(BinaryOp::Sub, index, extent));
        let first = self.emit(Op::Gather { src: first, index, axis }, &[], span)?;
        let second = self.emit(Op::Gather { src: second, index: behind, axis }, &[], span)?;
        self.emit(Op::Select { cond: is_first, on_true: first, on_false: second }, &[], span)
    }

    /// `split(x)`: the elements at the two indices of the last axis.
    pub(super) fn split(&mut self, x: &Expr, span: SourceSpan) -> Meaning {
        let meaning = self.expr(x);
        let Some(value) = self.value(&meaning, x.span) else { return Meaning::Poison };
        let ty = self.func.ty(value).clone();
        let help = "make pairs first: `reshape(x, [N / 2, 2])`";
        match ty.shape().last() {
            Some(ConstExpr::Int(2)) => {}
            Some(last) if last.as_int().is_none() => {
                let cond = ConstExpr::binary(ConstBinary::Eq, last.clone(), ConstExpr::Int(2));
                let message = format!("`split` takes a tile whose last axis has 2 elements, and `{last}` is not 2");
                self.append(Op::StaticAssert { cond, message }, span);
            }
            _ => {
                let found = self.describe(&meaning);
                self.errors.push_help(x.span, format!("`split` takes a tile whose last axis has 2 elements, not {found}"), help);
                return Meaning::Poison;
            }
        }
        // Each half is a reduction over two elements that returns one of them, so it needs no arithmetic and no new op.
        let (axis, elem) = (ty.shape().len() as u32 - 1, ty.elem().clone());
        let halves = [0, 1].map(|which| {
            let combine = self.region_of(std::slice::from_ref(&elem), span, |_, first, second| vec![[first, second][which][0]]);
            self.emit(Op::Reduce { inputs: vec![value], axis, combine }, &[], span).into()
        });
        Meaning::Tuple(None, halves.to_vec())
    }

    /// `flip(x, axis = k)`.
    pub(super) fn flip(&mut self, call: &Call, span: SourceSpan) -> Meaning {
        let Some((meaning, value)) = self.tile("flip", "reverses", &call.args[0]) else { return Meaning::Poison };
        let Some(axis) = self.axis_option(call, &meaning) else { return Meaning::Poison };
        if axis.is_none() && self.func.ty(value).shape().len() > 1 {
            let found = self.describe(&meaning);
            self.errors.push_help(call.name.span, format!("`flip` needs an axis: {found} has several"), "write `flip(x, axis = 0)`");
            return Meaning::Poison;
        }
        self.emit(Op::Flip { x: value, axis: axis.unwrap_or(0) }, &[], span).into()
    }

    /// `squeeze(x, axis)`.
    pub(super) fn squeeze(&mut self, x: &Expr, axis: &Expr, span: SourceSpan) -> Meaning {
        let Some((meaning, value)) = self.tile("squeeze", "takes an axis off", x) else { return Meaning::Poison };
        let found = self.describe(&meaning);
        let mut shape = self.func.ty(value).shape().to_vec();
        let Some(at) = self.axis(axis, shape.len(), &found) else { return Meaning::Poison };
        let extent = shape.remove(at as usize);
        if extent != ConstExpr::Int(1) {
            let message =
                format!("axis {at} of {found} has {} elements, and `squeeze` takes off axes of extent 1", super::meaning::shown(&extent));
            self.errors.push_help(axis.span, message, "to combine the elements write `sum(x, axis = 0)` or the like");
            return Meaning::Poison;
        }
        let loc = self.loc(span);
        Builder::new(&mut self.func, self.region, loc).reshape(value, &shape).into()
    }

    /// `zeros_like(x)`.
    pub(super) fn zeros_like(&mut self, x: &Expr, span: SourceSpan) -> Meaning {
        let meaning = self.expr(x);
        let Some(value) = self.value(&meaning, x.span) else { return Meaning::Poison };
        let ty = self.func.ty(value).clone();
        let zero = match ty.elem().dtype() {
            Some(Dtype::Bool) => Constant::bool(ConstExpr::Bool(false)),
            _ => Constant::int(0),
        };
        self.materialize(&zero, ty.elem(), ty.shape(), span).into()
    }

    /// `full_like(x, value)`.
    pub(super) fn full_like(&mut self, x: &Expr, value: &Expr) -> Meaning {
        let meaning = self.expr(x);
        let like = self.value(&meaning, x.span);
        let filling = self.expr(value);
        let (Some(like), false) = (like, filling.is_poison()) else { return Meaning::Poison };
        let ty = self.func.ty(like).clone();
        if !matches!(filling, Meaning::Value(_) | Meaning::Constant(_)) || !self.shape_of(&filling).is_empty() {
            let found = self.describe(&filling);
            self.errors.push_help(value.span, format!("`full_like` spreads one scalar, not {found}"), "a tile needs no `full_like`");
            return Meaning::Poison;
        }
        self.fill(&filling, &ty, value).into()
    }

    /// Broadcasts a scalar to a tile of that type.
    pub(super) fn fill(&mut self, filling: &Meaning, ty: &Type, written: &Expr) -> Option<Value> {
        let elem = ty.elem();
        self.spread(filling, elem, ty.shape(), written.span).unwrap_or_else(|()| {
            let found = self.describe(filling);
            self.errors.push_help(
                written.span,
                format!("`{elem}` is expected here, not {found}"),
                format!("cast it: `{} as {elem}`", super::operator::written(written)),
            );
            None
        })
    }

    /// Converts two arguments to one type and one shape.
    fn pair(&mut self, name: &str, a: &Expr, b: &Expr, span: SourceSpan) -> Option<(Value, Value)> {
        let (left, right) = (self.expr(a), self.expr(b));
        let values = self.alike(name, &[(&left, a), (&right, b)], span)?;
        Some((values[0], values[1]))
    }

    /// Joins two values along a new last axis.
    fn stack(&mut self, first: Value, second: Value, span: SourceSpan) -> Value {
        let mut shape = self.func.ty(first).shape().to_vec();
        let rank = shape.len() as u32;
        shape.push(ConstExpr::Int(2));
        let loc = self.loc(span);
        let mut b = Builder::new(&mut self.func, self.region, loc);
        let mut position = b.op(Op::Arange { start: ConstExpr::Int(0), end: ConstExpr::Int(2) }, &[]);
        for axis in 0..rank {
            position = b.expand_dims(position, axis);
        }
        let zero = b.int_like(0, position);
        let is_first = b.compare(CompareOp::Eq, position, zero);
        let is_first = b.broadcast(is_first, &shape);
        let [first, second] = [first, second].map(|value| {
            let value = if rank == 0 { value } else { b.expand_dims(value, rank) };
            b.broadcast(value, &shape)
        });
        b.select(is_first, first, second)
    }
}
