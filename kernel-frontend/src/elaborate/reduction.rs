//! Builtins that combine the elements along an axis: reductions and scans.

use std::slice;

use super::join::Plan;
use super::meaning::Meaning;
use super::{Elaborator, Region, Value};
use crate::ast::{Call, Expr, ExprKind};
use crate::builtins::{Builtin, Row};
use crate::span::SourceSpan;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::rewrite::{Substitution, copy_regions};
use kernel_lang::ir::{BinaryOp, Builder, CompareOp, Domain, Elem, Op};

/// The verb of most of these builtins, for messages.
const COMBINES: &str = "combines the elements of";

impl Elaborator<'_> {
    /// The tile argument of a builtin such as `sum`; `does` is the verb for messages.
    pub(super) fn tile(&mut self, name: &str, does: &str, x: &Expr) -> Option<(Meaning, Value)> {
        let meaning = self.expr(x);
        let value = self.value(&meaning, x.span)?;
        if self.func.ty(value).is_scalar() {
            let found = self.describe(&meaning);
            let help = "a scalar is the one element already; tiles come from `arange`, `zeros`, `full` and `load`";
            self.errors.push_help(x.span, format!("`{name}` {does} a tile, not {found}"), help);
            return None;
        }
        Some((meaning, value))
    }

    /// The option `axis = k`: `Some(None)` if it is omitted.
    pub(super) fn axis_option(&mut self, call: &Call, meaning: &Meaning) -> Option<Option<u32>> {
        let Some(expr) = self.option(call, "axis") else { return Some(None) };
        let (rank, found) = (self.shape_of(meaning).len(), self.describe(meaning));
        self.axis(expr, rank, &found).map(Some)
    }

    /// Reduces along one axis, or along all of them, with a region made for the call.
    fn along(&mut self, inputs: Vec<Value>, axis: Option<u32>, combine: Region, keep_dims: bool, span: SourceSpan) -> Vec<Value> {
        let loc = self.loc(span);
        let rank = self.func.ty(inputs[0]).shape().len() as u32;
        // The last axis comes first, so that elements are combined in row-major order.
        let axes: Vec<u32> = axis.map_or_else(|| (0..rank).rev().collect(), |axis| vec![axis]);
        let mut values = inputs;
        for (count, axis) in axes.iter().enumerate() {
            let mut op = Op::Reduce { inputs: values, axis: *axis, combine };
            if count > 0 {
                copy_regions(&mut self.func, &mut op, &mut Substitution::new());
            }
            let inst = Builder::new(&mut self.func, self.region, loc).try_op(op, &[]).expect("tiles of one shape have their axes");
            values = self.func.inst(inst).results.to_vec();
        }
        if keep_dims {
            let mut b = Builder::new(&mut self.func, self.region, loc);
            for axis in axes.iter().rev() {
                values.iter_mut().for_each(|value| *value = b.expand_dims(*value, *axis));
            }
        }
        values
    }

    /// A region that combines scalars of those types.
    pub(super) fn region_of(
        &mut self,
        elems: &[Elem],
        span: SourceSpan,
        combine: impl FnOnce(&mut Builder<'_>, &[Value], &[Value]) -> Vec<Value>,
    ) -> Region {
        let loc = self.loc(span);
        let region = self.func.add_region();
        self.region_params(region, elems);
        let params = self.func.region(region).params.clone();
        let (earlier, later) = params.split_at(elems.len());
        let mut b = Builder::new(&mut self.func, region, loc);
        let values = combine(&mut b, earlier, later);
        b.yield_values(values);
        region
    }

    fn finish(&mut self, call: &Call, meaning: &Meaning, inputs: Vec<Value>, combine: Region, span: SourceSpan) -> Option<Vec<Value>> {
        let (axis, keep_dims) = self.along_options(call, meaning)?;
        Some(self.along(inputs, axis, combine, keep_dims, span))
    }

    /// The options `axis` and `keep_dims`.
    fn along_options(&mut self, call: &Call, meaning: &Meaning) -> Option<(Option<u32>, bool)> {
        let keep_dims = self.literal_flag(call, "keep_dims");
        Some((self.axis_option(call, meaning)?, keep_dims))
    }

    /// `sum`, `prod` and `xor_sum`.
    pub(super) fn fold_tile(&mut self, op: BinaryOp, call: &Call, span: SourceSpan) -> Meaning {
        let name = call.name.text.as_str();
        let Some((meaning, value)) = self.tile(name, COMBINES, &call.args[0]) else { return Meaning::Poison };
        // Booleans are combined by `any` and `all` instead.
        let domain = if op == BinaryOp::Xor { Domain::Int } else { op.domain() };
        if !self.check_domain(value, domain) {
            self.wrong_domain(name, domain, &meaning, &call.args[0]);
            return Meaning::Poison;
        }
        let elem = self.func.ty(value).elem().clone();
        let combine = self.region_of(&[elem], span, |b, x, y| vec![b.binary(op, x[0], y[0])]);
        self.finish(call, &meaning, vec![value], combine, span).map(|values| values[0]).into()
    }

    /// `any` and `all`.
    pub(super) fn predicate(&mut self, op: BinaryOp, call: &Call, span: SourceSpan) -> Meaning {
        let name = call.name.text.as_str();
        let Some((meaning, value)) = self.tile(name, COMBINES, &call.args[0]) else { return Meaning::Poison };
        if self.func.ty(value).elem() != &Elem::Dtype(Dtype::Bool) {
            let found = self.describe(&meaning);
            let help = format!("compare first: `{name}({} != 0)`", super::operator::written(&call.args[0]));
            self.errors.push_help(call.args[0].span, format!("`{name}` takes `bool`, not {found}"), help);
            return Meaning::Poison;
        }
        let combine = self.region_of(&[Dtype::Bool.into()], span, |b, x, y| vec![b.binary(op, x[0], y[0])]);
        self.finish(call, &meaning, vec![value], combine, span).map(|values| values[0]).into()
    }

    /// Are all elements of a mask true?
    pub(super) fn all_hold(&mut self, value: Value, span: SourceSpan) -> Value {
        let combine = self.region_of(&[Dtype::Bool.into()], span, |b, x, y| vec![b.binary(BinaryOp::And, x[0], y[0])]);
        self.along(vec![value], None, combine, false, span)[0]
    }

    /// `max(x, axis = k)` and `min(x, axis = k)`.
    pub(super) fn extreme(&mut self, op: BinaryOp, call: &Call, span: SourceSpan) -> Meaning {
        let name = call.name.text.as_str();
        let Some((meaning, value)) = self.tile(name, COMBINES, &call.args[0]) else { return Meaning::Poison };
        if !self.check_domain(value, op.domain()) {
            self.wrong_domain(name, op.domain(), &meaning, &call.args[0]);
            return Meaning::Poison;
        }
        let propagate_nan = self.flag(call, "propagate_nan");
        let Some((axis, keep_dims)) = self.along_options(call, &meaning) else { return Meaning::Poison };
        let elem = self.func.ty(value).elem().clone();
        let values = self.decide(&propagate_nan, span, &mut |cx, propagate_nan| {
            let combine = cx.region_of(slice::from_ref(&elem), span, |b, x, y| {
                let (x, y) = (x[0], y[0]);
                let mut value = b.binary(op, x, y);
                if propagate_nan {
                    for operand in [y, x] {
                        let is_nan = b.compare(CompareOp::Ne, operand, operand);
                        value = b.select(is_nan, operand, value);
                    }
                }
                vec![value]
            });
            cx.along(vec![value], axis, combine, keep_dims, span)
        });
        values.first().copied().into()
    }

    /// `argmax` and `argmin`: the first position of an element that equals the extreme. Two reductions, each commutative and of one value, cost
    /// less than one of pairs, which has to keep the order of the runs; and a kernel that also asks for the extreme shares the first.
    pub(super) fn arg_extreme(&mut self, op: BinaryOp, call: &Call, span: SourceSpan) -> Meaning {
        let name = call.name.text.as_str();
        let Some((meaning, value)) = self.tile(name, COMBINES, &call.args[0]) else { return Meaning::Poison };
        if !self.check_domain(value, op.domain()) {
            self.wrong_domain(name, op.domain(), &meaning, &call.args[0]);
            return Meaning::Poison;
        }
        let Some((axis, keep_dims)) = self.along_options(call, &meaning) else { return Meaning::Poison };
        let ty = self.func.ty(value).clone();
        let combine = self.region_of(slice::from_ref(ty.elem()), span, |b, x, y| vec![b.binary(op, x[0], y[0])]);
        let extreme = self.along(vec![value], axis, combine, false, span)[0];
        let positions = self.positions(&ty, axis, span);
        let loc = self.loc(span);
        let mut b = Builder::new(&mut self.func, self.region, loc);
        // 32-bit indices suffice for every tile, and halve the data that threads exchange.
        let positions = b.cast(positions, Dtype::I32);
        let extreme = axis.map_or(extreme, |axis| b.expand_dims(extreme, axis));
        let extreme = b.broadcast(extreme, ty.shape());
        let is_extreme = b.compare(CompareOp::Eq, value, extreme);
        let nowhere = b.int_like(i128::from(i32::MAX), positions);
        let candidates = b.select(is_extreme, positions, nowhere);
        let combine = self.region_of(&[Elem::Dtype(Dtype::I32)], span, |b, x, y| vec![b.binary(BinaryOp::Min, x[0], y[0])]);
        let first = self.along(vec![candidates], axis, combine, keep_dims, span)[0];
        let mut b = Builder::new(&mut self.func, self.region, loc);
        // NaN equals nothing. If there is nothing else, the first element counts.
        let [nowhere, start] = [i128::from(i32::MAX), 0].map(|int| b.int_like(int, first));
        let is_found = b.compare(CompareOp::Ne, first, nowhere);
        let first = b.select(is_found, first, start);
        b.cast(first, Dtype::I64).into()
    }

    /// `cumsum` and the other cumulative operations.
    pub(super) fn cumulative(&mut self, op: BinaryOp, call: &Call, span: SourceSpan) -> Meaning {
        let name = call.name.text.as_str();
        let Some((meaning, value)) = self.tile(name, COMBINES, &call.args[0]) else { return Meaning::Poison };
        if !self.check_domain(value, op.domain()) {
            self.wrong_domain(name, op.domain(), &meaning, &call.args[0]);
            return Meaning::Poison;
        }
        let reverse = self.flag(call, "reverse");
        let Some(axis) = self.axis_option(call, &meaning) else { return Meaning::Poison };
        if axis.is_none() && self.func.ty(value).shape().len() > 1 {
            let found = self.describe(&meaning);
            let help = format!("write `{name}(x, axis = 0)`; along all of them in row-major order: reshape first");
            self.errors.push_help(call.name.span, format!("`{name}` needs an axis: {found} has several"), help);
            return Meaning::Poison;
        }
        let elem = self.func.ty(value).elem().clone();
        let combine = self.region_of(&[elem], span, |b, x, y| vec![b.binary(op, x[0], y[0])]);
        let axis = axis.unwrap_or(0);
        let scanned = self.decide_op(&reverse, span, &|reverse| Op::Scan { inputs: vec![value], axis, reverse, combine });
        scanned.first().copied().into()
    }

    /// `reduce(x, axis, |a, b| ..)` and `associative_scan(x, axis, |a, b| ..)`.
    pub(super) fn custom(&mut self, row: &Row, call: &Call, span: SourceSpan) -> Meaning {
        let meaning = self.expr(&call.args[0]);
        let (mut parts, mut inputs) = (Vec::new(), Vec::new());
        let Some(plan) = self.inputs(&meaning, call.args[0].span, &mut parts, &mut inputs) else { return Meaning::Poison };
        let shape = self.func.ty(inputs[0]).shape().to_vec();
        if let Some(scalar) = parts.iter().find(|part| self.shape_of(part).is_empty()) {
            let found = self.describe(scalar);
            let help = "spread a scalar over the tile: `broadcast_to(a, [N])`";
            self.errors.push_help(call.args[0].span, format!("`{}` combines the elements of tiles, not {found}", row.name), help);
            return Meaning::Poison;
        }
        if inputs.iter().any(|value| self.func.ty(*value).shape() != shape) {
            let found: Vec<String> = parts.iter().map(|part| self.describe(part)).collect();
            self.errors.push_help(
                call.args[0].span,
                format!("the inputs of `{}` differ in shape: {}", row.name, found.join(", ")),
                "spread the smaller one: `broadcast_to(x, [M, N])`",
            );
            return Meaning::Poison;
        }
        let found = self.describe(&parts[0]);
        if let ExprKind::Closure(..) = call.args[1].kind {
            let help = format!("the axis stands in front of the closure: `{}`", row.usage);
            self.errors.push_help(call.args[1].span, "an axis is a literal number, not a closure", help);
            return Meaning::Poison;
        }
        let axis = self.axis(&call.args[1], shape.len(), &found);
        let elems: Vec<Elem> = inputs.iter().map(|value| self.func.ty(*value).elem().clone()).collect();
        let combine = self.closure(row, &call.args[2], &elems, &plan);
        let (Some(axis), Some(combine)) = (axis, combine) else { return Meaning::Poison };
        let values = if row.builtin == Builtin::Scan {
            let reverse = self.flag(call, "reverse");
            self.decide_op(&reverse, span, &|reverse| Op::Scan { inputs: inputs.clone(), axis, reverse, combine })
        } else {
            let keep_dims = self.literal_flag(call, "keep_dims");
            self.along(inputs, Some(axis), combine, keep_dims, span)
        };
        plan.with(&values)
    }

    /// Collects the tiles in a tuple or a struct, with a plan that forms it from them.
    fn inputs(&mut self, meaning: &Meaning, span: SourceSpan, parts: &mut Vec<Meaning>, values: &mut Vec<Value>) -> Option<Plan> {
        match meaning {
            Meaning::Tuple(of, list) if !list.is_empty() => {
                let plans = list.iter().map(|part| self.inputs(part, span, parts, values)).collect::<Option<Vec<Plan>>>()?;
                Some(Plan::Tuple(of.clone(), plans))
            }
            part => {
                values.push(self.value(part, span)?);
                parts.push(part.clone());
                Some(Plan::Result(values.len() - 1))
            }
        }
    }
}
