//! `static_range`: the body once for each index, which is a constant in it.
//!
//! Where the bounds are known the body is elaborated that often, and no loop is left. Bounds that name constant parameters are known when
//! the kernel is specialised: then one body stands for all, and what it assigns to keeps its type from turn to turn.

use super::Elaborator;
use super::meaning::{Constant, Kind, Meaning};
use crate::frontend::ast::{For, Pattern};
use crate::frontend::place::Place;
use crate::ir::{ConstBinary, ConstExpr, Op};

/// How often a body is repeated at most.
const MAX_TURNS: i128 = 1 << 12;

impl Elaborator<'_> {
    pub(super) fn static_loop(&mut self, inner: &For, place: Place) {
        if inner.going.is_some() {
            self.errors.push_help(
                place,
                "`static_range` has no end but its last index: nothing leaves it",
                "put what follows under a condition, or loop with `range`",
            );
            return;
        }
        let mut bound = |expr: &crate::frontend::ast::Expr| {
            let meaning = self.expr(expr);
            self.const_int(&meaning, "a bound of `static_range`", expr.place)
        };
        let (start, end) = (bound(&inner.lower), bound(&inner.upper));
        let step = inner.step.as_ref().map_or(Some(ConstExpr::Int(1)), bound);
        let (Some(start), Some(end), Some(step)) = (start, end, step) else { return };
        if let Some(step) = step.as_int().filter(|step| *step <= 0) {
            let place = inner.step.as_ref().map_or(place, |step| step.place);
            let help = "it counts upwards; `static_range(a, b, s).rev()` begins with the last index";
            self.errors.push_help(place, format!("the step of `static_range` is positive, not `{step}`"), help);
            return;
        }
        match (start.as_int(), end.as_int(), step.as_int()) {
            (Some(start), Some(end), Some(step)) => self.written_out(inner, start, end, step, place),
            _ => self.repeated(inner, (start, end, step), place),
        }
    }

    fn written_out(&mut self, inner: &For, start: i128, end: i128, step: i128, place: Place) {
        let turns = if end > start { (end - start - 1) / step + 1 } else { 0 };
        if turns > MAX_TURNS {
            let message = format!("`static_range` repeats its body {turns} times, and {MAX_TURNS} is the most");
            self.errors.push_help(place, message, "a loop that is not written out is `range`");
            return;
        }
        let mistakes = self.errors.len();
        for turn in 0..turns {
            let turn = if inner.is_reversed { turns - 1 - turn } else { turn };
            self.turn(&inner.index, Meaning::Constant(Constant::int(start + turn * step)), inner);
            // The same mistake in each turn is one.
            if self.errors.len() > mistakes {
                return;
            }
        }
    }

    fn repeated(&mut self, inner: &For, (start, end, step): (ConstExpr, ConstExpr, ConstExpr), place: Place) {
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
        let carried = self.carry(&assigned, place, &mut |cx| cx.turn(&inner.index, meaning.clone(), inner));
        let body = self.func.add_region();
        self.enter(&carried, body);
        let values = self.in_region(body, |cx| {
            cx.turn(&inner.index, meaning.clone(), inner);
            cx.leaves(&carried, place)
        });
        self.finish_region(body, Op::Yield { values }, place);
        let (types, init) = (self.types(&carried.init), carried.init.clone());
        self.close_loop(Op::StaticFor { index, start, end, step, init, body }, types, &carried, place);
    }

    /// A name for the index that nothing else has.
    fn index_name(&mut self, pattern: &Pattern) -> String {
        let name = if let Pattern::Name { name, .. } = pattern { name.text.as_str() } else { "index" };
        let is_taken = |cx: &Self, name: &str| {
            let is_generic =
                cx.func.consts.iter().any(|param| *param.name == *name) || cx.func.types.iter().any(|param| *param.name == *name);
            is_generic || crate::frontend::signature::has_meaning(name) || cx.indices.iter().any(|known| known == name)
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
