//! `static_range`: a loop that is unrolled, with a constant index in each copy of the body.
//!
//! If the bounds are known, the body is elaborated for each index and no loop remains. If the bounds name constant parameters, specialisation
//! unrolls the loop: one body represents all iterations, and the variables that it assigns to keep their types from iteration to iteration.

use super::Elaborator;
use super::meaning::{Constant, Kind, Meaning};
use crate::ast::{For, Pattern};
use crate::span::SourceSpan;
use kernel_lang::ir::{ConstBinary, ConstExpr, Op};

/// Maximum number of iterations.
const MAX_ITERATIONS: i128 = 1 << 12;

impl Elaborator<'_> {
    pub(super) fn static_loop(&mut self, inner: &For, span: SourceSpan) {
        if inner.going.is_some() {
            self.errors.push_help(
                span,
                "`static_range` has no end but its last index: nothing leaves it",
                "put what follows under a condition, or loop with `range`",
            );
            return;
        }
        let mut bound = |expr: &crate::ast::Expr| {
            let meaning = self.expr(expr);
            self.const_int(&meaning, "a bound of `static_range`", expr.span)
        };
        let (start, end) = (bound(&inner.lower), bound(&inner.upper));
        let step = inner.step.as_ref().map_or(Some(ConstExpr::Int(1)), bound);
        let (Some(start), Some(end), Some(step)) = (start, end, step) else {
            // The bounds are unknown, or an error in them has been reported; the body is checked with an unknown index.
            let assigned = self.assigned(&[&inner.body], &[]);
            let (region, before) = (self.func.add_region(), self.meanings());
            self.forget(&assigned);
            self.in_region(region, |cx| cx.iteration(&inner.index, Meaning::Poison, inner));
            self.restore(&before);
            self.forget(&assigned);
            return;
        };
        if let Some(step) = step.as_int().filter(|step| *step <= 0) {
            let span = inner.step.as_ref().map_or(span, |step| step.span);
            let help = "it counts upwards; `static_range(a, b, s).rev()` begins with the last index";
            self.errors.push_help(span, format!("the step of `static_range` is positive, not `{step}`"), help);
            return;
        }
        match (start.as_int(), end.as_int(), step.as_int()) {
            (Some(start), Some(end), Some(step)) => self.written_out(inner, start, end, step, span),
            _ => self.repeated(inner, (start, end, step), span),
        }
    }

    fn written_out(&mut self, inner: &For, start: i128, end: i128, step: i128, span: SourceSpan) {
        let iterations = if end > start { (end - start - 1) / step + 1 } else { 0 };
        if iterations > MAX_ITERATIONS {
            let message = format!("`static_range` repeats its body {iterations} times, and {MAX_ITERATIONS} is the most");
            self.errors.push_help(span, message, "a loop that is not written out is `range`");
            return;
        }
        let mistakes = self.errors.len();
        for iteration in 0..iterations {
            let iteration = if inner.is_reversed { iterations - 1 - iteration } else { iteration };
            self.iteration(&inner.index, Meaning::Constant(Constant::int(start + iteration * step)), inner);
            // The same error in each iteration is reported once.
            if self.errors.len() > mistakes {
                return;
            }
        }
    }

    fn repeated(&mut self, inner: &For, (start, end, step): (ConstExpr, ConstExpr, ConstExpr), span: SourceSpan) {
        let index = self.index_name(&inner.index);
        let mut value = ConstExpr::Param(index.as_str().into());
        if inner.is_reversed {
            let binary = ConstExpr::binary;
            let span = binary(ConstBinary::Sub, binary(ConstBinary::Sub, end.clone(), ConstExpr::Int(1)), start.clone());
            let whole = binary(ConstBinary::Mul, binary(ConstBinary::Div, span, step.clone()), step.clone());
            let both_ends = binary(ConstBinary::Add, binary(ConstBinary::Add, start.clone(), whole), start.clone());
            value = binary(ConstBinary::Sub, both_ends, value);
        }
        let meaning = Meaning::constant(value, Kind::Int, None);
        let assigned = self.assigned(&[&inner.body], &[]);
        let carried = self.carry(&assigned, span, &mut |cx| cx.iteration(&inner.index, meaning.clone(), inner));
        let body = self.func.add_region();
        self.enter(&carried, body);
        let values = self.in_region(body, |cx| {
            cx.iteration(&inner.index, meaning.clone(), inner);
            cx.leaves(&carried, span)
        });
        self.finish_region(body, Op::Yield { values }, span);
        let (types, init) = (self.types(&carried.init), carried.init.clone());
        let [start, end, step] = [start, end, step].map(Box::new);
        self.close_loop(Op::StaticFor { index, start, end, step, init, body }, types, &carried, span);
    }

    /// A unique name for the index.
    fn index_name(&mut self, pattern: &Pattern) -> String {
        let name = if let Pattern::Name { name, .. } = pattern { name.text.as_str() } else { "index" };
        let is_taken = |cx: &Self, name: &str| {
            let is_generic =
                cx.func.consts.iter().any(|param| *param.name == *name) || cx.func.types.iter().any(|param| *param.name == *name);
            is_generic || crate::signature::has_meaning(name) || cx.indices.iter().any(|known| known == name)
        };
        let mut found = name.to_string();
        let mut count = 1;
        while is_taken(self, &found) {
            count += 1;
            found = format!("{name}_{count}");
        }
        self.indices.push(found.clone());
        found
    }
}
