//! `for` and `while`: the variables that the body assigns to become loop-carried values.

use super::join::Plan;
use super::meaning::{Constant, Kind, Meaning};
use super::scope::Origin;
use super::{Elaborator, Region, Value};
use crate::ast::{Expr, ExprKind, For, Pattern, While};
use crate::span::SourceSpan;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{BinaryOp, CompareOp, ConstExpr, Domain, Elem, MAX_STAGES, MAX_UNROLL, Op, Type};

/// The carried variables of a loop.
pub(super) struct Carried {
    /// The variables, with a plan that forms each one from the carried values.
    plans: Vec<(usize, Plan)>,
    pub(super) init: Vec<Value>,
}

impl Elaborator<'_> {
    pub(super) fn for_loop(&mut self, inner: &For, span: SourceSpan) {
        if self.frames.is_empty() {
            let name = if inner.is_static { "static_range" } else { "range" };
            self.builtins.extend(inner.range_span.map(|span| (name, span.start)));
        }
        if inner.is_static {
            return self.static_loop(inner, span);
        }
        let bounds = self.bounds(inner, span);
        let num_stages = self.loop_option(inner.options.num_stages.as_ref(), "num_stages", MAX_STAGES);
        let unroll = self.loop_option(inner.options.unroll.as_ref(), "unroll", MAX_UNROLL);
        let assigned = self.assigned(&[&inner.body], &[]);
        let Some((lower, upper, step)) = bounds else {
            // The bounds are unknown, or an error in them has been reported; the body is checked with an `i64` index.
            let region = self.func.add_region();
            let index = self.func.add_region_param(region, Type::scalar(Dtype::I64));
            let before = self.meanings();
            self.forget(&assigned);
            self.in_region(region, |cx| cx.iteration(&inner.index, Meaning::Value(index), inner));
            self.restore(&before);
            self.forget(&assigned);
            return;
        };
        let elem = self.func.ty(lower).elem().clone();
        let mirror = if inner.is_reversed { self.mirror(lower, upper, inner.step.as_ref().map(|_| step), span) } else { None };
        let mut carried = self.carry(&assigned, span, &mut |cx| {
            let region = cx.region;
            let index = cx.func.add_region_param(region, Type::scalar(elem.clone()));
            cx.iteration(&inner.index, Meaning::Value(index), inner);
        });
        match &inner.going {
            None => {
                let body = self.func.add_region();
                let index = self.func.add_region_param(body, Type::scalar(elem));
                self.enter(&carried, body);
                let values = self.in_region(body, |cx| {
                    let meaning = cx.mirrored(Meaning::Value(index), mirror, span);
                    cx.iteration(&inner.index, meaning, inner);
                    cx.leaves(&carried, span)
                });
                self.finish_region(body, Op::Yield { values }, span);
                let types = self.types(&carried.init);
                let init = carried.init.clone();
                self.close_loop(
                    Op::For { lower, upper, step, init, body, num_stages, unroll, remainder: false, guarded: false },
                    types,
                    &carried,
                    span,
                );
            }
            Some(_) if num_stages.is_some() || unroll.is_some() => {
                let option = inner.options.num_stages.as_ref().or(inner.options.unroll.as_ref());
                self.errors.push_help(
                    option.map_or(span, |value| value.span),
                    "a loop that may be left runs one iteration after another: it has no `num_stages` or `unroll`",
                    "let it run to its end, with what follows `break` or `return` under a condition; or leave the option out",
                );
            }
            Some(going) => self.leaving_for(inner, going, (lower, upper, step), mirror, &mut carried, span),
        }
    }

    /// Lowers a `for` with early exits to a `while` with a counter. The counter is 64 bits wide if that type holds every index, so that it
    /// passes `upper` without wrapping; otherwise it stops at `upper`.
    fn leaving_for(
        &mut self,
        inner: &For,
        going: &str,
        bounds: (Value, Value, Value),
        mirror: Option<Value>,
        carried: &mut Carried,
        span: SourceSpan,
    ) {
        let elem = self.func.ty(bounds.0).elem().clone();
        let may_wrap = elem.dtype().is_none_or(|dtype| dtype.bits() == 64);
        let wide = if may_wrap { elem.clone() } else { Elem::Dtype(Dtype::I64) };
        let mut widen = |value: Value| match self.cast(&Meaning::Value(value), &wide, span, span) {
            Meaning::Value(value) => value,
            _ => value,
        };
        let (lower, upper, step) = (widen(bounds.0), widen(bounds.1), widen(bounds.2));
        // As in a `for`, nothing runs if the step is not positive; a constant step is positive.
        let is_positive = if matches!(self.func.def_op(bounds.2), Some(Op::Const { value: ConstExpr::Int(_) })) {
            None
        } else {
            let zero = self.emit(Op::Const { value: ConstExpr::Int(0) }, &[Type::scalar(wide.clone())], span);
            zero.and_then(|zero| self.emit(Op::Compare { op: CompareOp::Gt, lhs: step, rhs: zero }, &[], span))
        };
        carried.init.push(lower);
        let test = self.func.add_region();
        let (params, index) = self.enter_counted(carried, test);
        let cond = self.in_region(test, |cx| {
            let more = cx.emit(Op::Compare { op: CompareOp::Lt, lhs: index, rhs: upper }, &[], span);
            let going = cx.name(going, span);
            match (cx.value(&going, span), more) {
                (Some(lhs), Some(rhs)) => {
                    let more = cx.emit(Op::Binary { op: BinaryOp::And, lhs, rhs }, &[], span)?;
                    match is_positive {
                        Some(rhs) => cx.emit(Op::Binary { op: BinaryOp::And, lhs: more, rhs }, &[], span),
                        None => Some(more),
                    }
                }
                _ => None,
            }
        });
        let Some(cond) = cond else { return };
        self.finish_region(test, Op::Condition { cond, values: params }, span);
        let body = self.func.add_region();
        let (_, index) = self.enter_counted(carried, body);
        let values = self.in_region(body, |cx| {
            let narrow = cx.cast(&Meaning::Value(index), &elem, span, span);
            let stride = if may_wrap { cx.stride_within(index, upper, step, span) } else { Some(step) };
            let next = stride.and_then(|rhs| cx.emit(Op::Binary { op: BinaryOp::Add, lhs: index, rhs }, &[], span));
            let meaning = cx.mirrored(narrow, mirror, span);
            cx.iteration(&inner.index, meaning, inner);
            let mut values = cx.leaves(carried, span);
            values.extend(next);
            values
        });
        self.finish_region(body, Op::Yield { values }, span);
        let types = self.types(&carried.init);
        let init = carried.init.clone();
        self.close_loop(Op::While { init, test, body }, types, carried, span);
    }

    /// The sum of `lower` and the last index: minus an index, it is the index of the iteration in reverse order. Sums may wrap, and the
    /// difference is correct again. The distance that the step divides fits 64 bits without a sign.
    fn mirror(&mut self, lower: Value, upper: Value, step: Option<Value>, span: SourceSpan) -> Option<Value> {
        let elem = self.func.ty(lower).elem().clone();
        let wide = if step.is_some() { Elem::Dtype(Dtype::U64) } else { elem.clone() };
        let one = self.emit(Op::Const { value: ConstExpr::Int(1) }, &[Type::scalar(wide.clone())], span)?;
        let mut widen = |value: Value| match self.cast(&Meaning::Value(value), &wide, span, span) {
            Meaning::Value(value) => value,
            _ => value,
        };
        let (lower, upper, step) = (widen(lower), widen(upper), step.map(&mut widen));
        let mut binary = |op, lhs, rhs| self.emit(Op::Binary { op, lhs, rhs }, &[], span);
        let mut last = binary(BinaryOp::Sub, upper, one)?;
        if let Some(step) = step {
            let span = binary(BinaryOp::Sub, last, lower)?;
            let iterations = binary(BinaryOp::Div, span, step)?;
            let whole = binary(BinaryOp::Mul, iterations, step)?;
            last = binary(BinaryOp::Add, lower, whole)?;
        }
        let sum = Meaning::Value(binary(BinaryOp::Add, lower, last)?);
        match self.cast(&sum, &elem, span, span) {
            Meaning::Value(sum) => Some(sum),
            _ => None,
        }
    }

    /// The index of an iteration, reversed if there is a mirror.
    fn mirrored(&mut self, index: Meaning, mirror: Option<Value>, span: SourceSpan) -> Meaning {
        match (&index, mirror) {
            (Meaning::Value(rhs), Some(lhs)) => {
                self.emit(Op::Binary { op: BinaryOp::Sub, lhs, rhs: *rhs }, &[], span).map_or(Meaning::Poison, Meaning::Value)
            }
            _ => index,
        }
    }

    /// The step, or the rest up to `upper` if that is smaller: added to an `index` below `upper`, it never passes `upper`. A distance that
    /// does not fit a signed type appears as a negative number; the end is then far away.
    fn stride_within(&mut self, index: Value, upper: Value, step: Value, span: SourceSpan) -> Option<Value> {
        let left = self.emit(Op::Binary { op: BinaryOp::Sub, lhs: upper, rhs: index }, &[], span)?;
        let ty = self.func.ty(left).clone();
        let zero = self.emit(Op::Const { value: ConstExpr::Int(0) }, &[ty], span)?;
        let cond = self.emit(Op::Compare { op: CompareOp::Gt, lhs: left, rhs: zero }, &[], span)?;
        let shorter = self.emit(Op::Binary { op: BinaryOp::Min, lhs: step, rhs: left }, &[], span)?;
        self.emit(Op::Select { cond, on_true: shorter, on_false: step }, &[], span)
    }

    /// Adds region parameters for the carried values, the last of which is the counter.
    fn enter_counted(&mut self, carried: &Carried, region: Region) -> (Vec<Value>, Value) {
        self.enter(carried, region);
        let params = self.func.region(region).params.clone();
        let index = params[params.len() - 1];
        (params, index)
    }

    pub(super) fn while_loop(&mut self, inner: &While, span: SourceSpan) {
        let assigned = self.assigned(&[&inner.body], &[&inner.cond]);
        let mut assigned = assigned;
        if let Some(index) = inner.going.as_ref().and_then(|going| self.find(going)) {
            assigned.push(index);
            assigned.sort_unstable();
            assigned.dedup();
        }
        let carried = self.carry(&assigned, span, &mut |cx| {
            cx.test(inner);
            cx.scoped(|cx| cx.stmts(&inner.body.stmts));
        });
        let test = self.func.add_region();
        self.enter(&carried, test);
        let (cond, values) = self.in_region(test, |cx| {
            let cond = cx.test(inner);
            let cond = cond.and_then(|cond| cx.value(&cond, inner.cond.span));
            (cond, cx.leaves(&carried, span))
        });
        let body = self.func.add_region();
        self.enter(&carried, body);
        let yields = self.in_region(body, |cx| {
            cx.scoped(|cx| cx.stmts(&inner.body.stmts));
            cx.leaves(&carried, span)
        });
        self.finish_region(body, Op::Yield { values: yields }, span);
        let Some(cond) = cond else {
            // The error in the condition has been reported; the variables keep their meanings from before the loop.
            let init = carried.init.clone();
            self.set(&carried, &init);
            return;
        };
        self.finish_region(test, Op::Condition { cond, values }, inner.cond.span);
        let types = self.types(&carried.init);
        let init = carried.init.clone();
        self.close_loop(Op::While { init, test, body }, types, &carried, span);
    }

    /// The condition of a `while`, combined with the flag of early exits.
    fn test(&mut self, inner: &While) -> Option<Meaning> {
        let span = inner.cond.span;
        let cond = match &inner.going {
            None => self.expr(&inner.cond),
            Some(going) => {
                let flag = Expr { kind: ExprKind::Name(going.clone()), span };
                let left = self.expr(&flag);
                // Without reporting errors: a constant condition is detected here, before it is combined with the flag.
                match self.logical_quiet(&left, &flag, &inner.cond) {
                    Ok(meaning) => meaning,
                    Err(meaning) => meaning,
                }
            }
        };
        match &cond {
            Meaning::Poison => None,
            Meaning::Constant(Constant { expr: ConstExpr::Bool(true), .. }) if inner.going.is_none() => {
                self.errors.push_help(span, "this loop never ends", "leave it with `if cond { break; }`");
                None
            }
            cond if self.is_scalar_bool(cond) => Some(cond.clone()),
            other => {
                let found = self.describe(other);
                let help = if self.shape_of(other).is_empty() {
                    self.compare_help(other)
                } else {
                    "the program as a whole goes on or stops: `while any(cond)` or `while all(cond)`"
                };
                self.errors.push_help(span, format!("the condition of a `while` is one `bool`, not {found}"), help);
                None
            }
        }
    }

    /// `going && cond`, or `Err` with the condition if it is not a scalar `bool`.
    fn logical_quiet(&mut self, left: &Meaning, flag: &Expr, cond: &Expr) -> Result<Meaning, Meaning> {
        let (variables, region, errors) = (self.meanings(), self.region, self.errors.len());
        self.region = self.func.add_region();
        let probe = self.expr(cond);
        self.region = region;
        self.restore(&variables);
        if !self.is_scalar_bool(&probe) {
            return Err(probe);
        }
        self.errors.truncate(errors);
        Ok(self.logical_with(true, (left, flag), cond, cond.span))
    }

    /// Elaborates one iteration of a `for`.
    pub(super) fn iteration(&mut self, index: &Pattern, meaning: Meaning, inner: &For) {
        self.scoped(|cx| {
            // A tuple pattern has been reported; its names have no meaning.
            let meaning = if matches!(index, Pattern::Tuple(..)) { Meaning::Poison } else { meaning };
            cx.bind_meaning(index, meaning);
            if let (Pattern::Name { .. }, Some(variable)) = (index, cx.variables.last_mut()) {
                variable.origin = Origin::LoopIndex;
            }
            cx.scoped(|cx| cx.stmts(&inner.body.stmts));
        });
    }

    /// Forgets the variables that skipped code assigns to, if its effect on them is unknown, and not an error that has been reported.
    pub(super) fn forget(&mut self, assigned: &[usize]) {
        if self.is_alone {
            assigned.iter().for_each(|index| self.variables[*index].meaning = Meaning::Poison);
        }
    }

    /// The constant value of an option of `range`.
    fn loop_option(&mut self, option: Option<&Expr>, name: &str, most: i128) -> Option<Box<ConstExpr>> {
        let expr = option?;
        let meaning = self.expr(expr);
        let value = self.const_int(&meaning, &format!("`{name}`"), expr.span)?;
        if let Some(number) = value.as_int().filter(|number| !(1..=most).contains(number)) {
            let help = match name {
                "num_stages" => "1 loads nothing ahead, 2 loads one iteration ahead; 3 and 4 are usual",
                _ => "1 is a loop as it stands; 2 and 4 are usual",
            };
            self.errors.push_help(expr.span, format!("`{name}` is a number from 1 to {most}, not {number}"), help);
            return None;
        }
        Some(value.into())
    }

    fn bounds(&mut self, inner: &For, span: SourceSpan) -> Option<(Value, Value, Value)> {
        let lower = self.expr(&inner.lower);
        let upper = self.expr(&inner.upper);
        let step = inner.step.as_ref().map(|step| self.expr(step));
        let one = Meaning::Constant(Constant::int(1));
        let parts = [
            (&lower, inner.lower.span),
            (&upper, inner.upper.span),
            (step.as_ref().unwrap_or(&one), inner.step.as_ref().map_or(span, |step| step.span)),
        ];
        let mut fine = true;
        for (meaning, span) in parts {
            let is_index = match meaning {
                Meaning::Poison => {
                    fine = false;
                    continue;
                }
                Meaning::Constant(constant) => matches!(constant.kind, Kind::Int | Kind::Outer(_)),
                Meaning::Value(value) => self.func.ty(*value).is_scalar() && self.check_domain(*value, Domain::Int),
                _ => false,
            };
            if !is_index {
                let found = self.describe(meaning);
                self.errors.push_help(
                    span,
                    format!("the bounds of a loop are integers, not {found}"),
                    "a loop counts with one integer: `for i in 0..n`",
                );
                fine = false;
            }
        }
        if let Some(Meaning::Constant(Constant { expr: ConstExpr::Int(value), .. })) = &step
            && *value <= 0
        {
            self.errors.push_help(
                parts[2].1,
                format!("the step of a loop is positive, not `{value}`"),
                "loops count upwards; `(a..b).step_by(s).rev()` begins with the last index",
            );
            fine = false;
        }
        if !fine {
            return None;
        }
        let elem = match self.common_elem(&[parts[0].0, parts[1].0, parts[2].0]) {
            Ok(elem) => elem,
            Err((a, b)) => {
                self.errors.push_help(
                    span,
                    format!("the bounds of the loop are `{a}` and `{b}`"),
                    format!("cast one of them: `(..) as {a}`"),
                );
                return None;
            }
        };
        let mut values = parts.into_iter().map(|(meaning, span)| self.with_elem(meaning, &elem, span).ok().flatten());
        let (lower, upper, step) = (values.next()?, values.next()?, values.next()?);
        Some((lower?, upper?, step?))
    }

    /// Turns the variables that a loop assigns to into carried values.
    ///
    /// A variable that is still an untyped constant has no type yet. A trial elaboration of the body determines it; its ops and errors are
    /// dropped.
    pub(super) fn carry(&mut self, assigned: &[usize], span: SourceSpan, trial: &mut dyn FnMut(&mut Self)) -> Carried {
        let is_open = assigned.iter().copied().filter(|index| {
            let meaning = &self.variables[*index].meaning;
            Self::is_open(meaning) || Self::open_outer(meaning).is_some()
        });
        let is_open: Vec<usize> = is_open.collect();
        if !is_open.is_empty() {
            for (index, elem) in self.try_body(&is_open, trial) {
                let Some(elem) = elem else {
                    self.variables[index].meaning = Meaning::Poison;
                    continue;
                };
                if let Meaning::Constant(constant) = self.variables[index].meaning.clone() {
                    let elem = if self.fit(&constant, &elem).is_ok() { elem } else { constant.kind.default_elem() };
                    self.variables[index].meaning = self.materialize(&constant, &elem, &[], span).into();
                }
            }
        }
        let mut carried = Carried { plans: Vec::new(), init: Vec::new() };
        for index in assigned {
            let meaning = self.variables[*index].meaning.clone();
            let plan = self.leaf_plan(&meaning, &mut carried.init, span);
            carried.plans.push((*index, plan));
        }
        carried
    }

    /// The element type of each variable after the body; `None` if it is that of an unknown value.
    fn try_body(&mut self, is_open: &[usize], trial: &mut dyn FnMut(&mut Self)) -> Vec<(usize, Option<Elem>)> {
        let (func, variables, scopes) = (self.func.clone(), self.variables.clone(), self.scopes.clone());
        let outers = self.outers.clone();
        let (region, errors, builtins) = (self.region, self.errors.len(), self.builtins.len());
        for index in is_open {
            if let Meaning::Constant(constant) = &mut self.variables[*index].meaning {
                // A placeholder for an unknown constant: it folds as a constant, and equals no other.
                constant.expr = ConstExpr::Param(format!("value {index}").as_str().into());
            }
        }
        self.region = self.func.add_region();
        trial(self);
        let found = is_open
            .iter()
            .map(|index| {
                let meaning = &self.variables[*index].meaning;
                if self.is_alone && meaning.is_poison() {
                    return (*index, None);
                }
                let kind = if let Meaning::Constant(constant) = meaning { constant.kind } else { Kind::Int };
                (*index, Some(self.elem_of(meaning).unwrap_or_else(|| kind.default_elem())))
            })
            .collect();
        (self.func, self.variables, self.scopes, self.region) = (func, variables, scopes, region);
        self.outers = outers;
        self.errors.truncate(errors);
        self.builtins.truncate(builtins);
        found
    }

    fn leaf_plan(&mut self, meaning: &Meaning, init: &mut Vec<Value>, span: SourceSpan) -> Plan {
        match meaning {
            Meaning::Poison => Plan::Same(Meaning::Poison),
            Meaning::Function(_) => Plan::Same(meaning.clone()),
            // A view is the same in every iteration: an assignment in the loop must keep it.
            Meaning::View(_) => Plan::Same(meaning.clone()),
            Meaning::Pointer { base, offset } => match self.offset_value(*offset, span) {
                Some(offset) => {
                    init.push(offset);
                    Plan::Pointer(*base, init.len() - 1)
                }
                None => Plan::Same(Meaning::Poison),
            },
            Meaning::Tuple(of, list) => Plan::Tuple(of.clone(), list.iter().map(|elem| self.leaf_plan(elem, init, span)).collect()),
            Meaning::Value(_) | Meaning::Constant(_) => match self.value(meaning, span) {
                Some(value) => {
                    init.push(value);
                    Plan::Result(init.len() - 1)
                }
                None => Plan::Same(Meaning::Poison),
            },
        }
    }

    /// Adds region parameters for the carried values; from here on the variables refer to them.
    pub(super) fn enter(&mut self, carried: &Carried, region: Region) {
        let params: Vec<Value> = self.types(&carried.init).into_iter().map(|ty| self.func.add_region_param(region, ty)).collect();
        self.set(carried, &params);
    }

    pub(super) fn set(&mut self, carried: &Carried, values: &[Value]) {
        for (index, plan) in &carried.plans {
            self.variables[*index].meaning = plan.with(values);
        }
    }

    /// The carried values at the end of an iteration. Assignment has kept their types.
    pub(super) fn leaves(&mut self, carried: &Carried, span: SourceSpan) -> Vec<Value> {
        let mut values = carried.init.clone();
        for (index, plan) in &carried.plans {
            let meaning = self.variables[*index].meaning.clone();
            self.leaf_values(plan, &meaning, &mut values, span);
        }
        // The counter of a loop with early exits belongs to no variable.
        let planned = carried.plans.iter().map(|(_, plan)| count(plan)).sum::<usize>();
        values.truncate(planned);
        values
    }

    fn leaf_values(&mut self, plan: &Plan, meaning: &Meaning, values: &mut [Value], span: SourceSpan) {
        match (plan, meaning) {
            (Plan::Tuple(_, plans), Meaning::Tuple(_, list)) => {
                plans.iter().zip(list).for_each(|(plan, elem)| self.leaf_values(plan, elem, values, span));
            }
            (Plan::Pointer(_, index), Meaning::Pointer { offset, .. }) => {
                if let Some(offset) = self.offset_value(*offset, span) {
                    values[*index] = offset;
                }
            }
            (Plan::Result(index), Meaning::Value(_) | Meaning::Constant(_)) => {
                let elem = self.func.ty(values[*index]).elem().clone();
                if let Ok(Some(value)) = self.with_elem(meaning, &elem, span) {
                    values[*index] = value;
                }
            }
            _ => {}
        }
    }

    pub(super) fn types(&self, values: &[Value]) -> Vec<Type> {
        values.iter().map(|value| self.func.ty(*value).clone()).collect()
    }

    pub(super) fn in_region<R>(&mut self, region: Region, inside: impl FnOnce(&mut Self) -> R) -> R {
        let outer = std::mem::replace(&mut self.region, region);
        let result = inside(self);
        self.region = outer;
        result
    }

    pub(super) fn finish_region(&mut self, region: Region, op: Op, span: SourceSpan) {
        self.in_region(region, |cx| cx.append(op, span));
    }

    pub(super) fn close_loop(&mut self, op: Op, types: Vec<Type>, carried: &Carried, span: SourceSpan) {
        let loc = self.loc(span);
        let inst = self.func.append(self.region, op, types, loc);
        let results = self.func.inst(inst).results.clone();
        self.set(carried, &results);
    }
}

fn count(plan: &Plan) -> usize {
    match plan {
        Plan::Same(_) => 0,
        Plan::Result(_) | Plan::Pointer(..) => 1,
        Plan::Tuple(_, list) => list.iter().map(count).sum(),
    }
}
