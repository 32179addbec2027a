//! Closures of reductions and scans: `|a, b| a + b` becomes a region.

use super::join::Plan;
use super::meaning::Meaning;
use super::{Elaborator, Region, Value};
use crate::ast::{Call, Expr, ExprKind, Name, Owner, Pattern};
use crate::builtins::{self, Builtin, Row};
use crate::parse;
use crate::span::SourceSpan;
use kernel_lang::ir::{Elem, Op, Type};

impl Elaborator<'_> {
    /// Adds the parameters of a region that combines such elements: the earlier run's values, then the later run's.
    pub(super) fn region_params(&mut self, region: Region, elems: &[Elem]) {
        for elem in elems.iter().chain(elems) {
            self.func.add_region_param(region, Type::scalar(elem.clone()));
        }
    }

    /// Elaborates a closure on two elements, tuples or structs to a region; the plan describes how elements form one side.
    pub(super) fn closure(&mut self, row: &Row, expr: &Expr, elems: &[Elem], plan: &Plan) -> Option<Region> {
        if let ExprKind::Name(name) = &expr.kind
            && let Some(row) = builtins::find(name).filter(|row| row.args < 2 && self.find(name).is_none())
        {
            let help = match row.builtin {
                Builtin::Fold(_) | Builtin::Predicate(_) | Builtin::Arg(_) | Builtin::Cumulative(_) => {
                    format!("it goes along an axis by itself, `{}`; a closure combines two, `|a, b| a + b`", row.usage)
                }
                _ => "write what two elements give: `|a, b| a + b`".to_string(),
            };
            self.errors.push_help(expr.span, format!("`{name}` does not combine two elements"), help);
            return None;
        }
        if let Some(closure) = self.calling(expr) {
            return self.closure(row, &closure, elems, plan);
        }
        let ExprKind::Closure(params, body) = &expr.kind else {
            let meaning = self.expr(expr);
            if !meaning.is_poison() {
                let found = self.describe(&meaning);
                self.errors.push_help(
                    expr.span,
                    format!("`{}` takes a closure or a function here, not {found}", row.name),
                    format!("write `{}`", row.usage),
                );
            }
            return None;
        };
        let [earlier, later] = &params[..] else {
            self.errors.push_help(
                expr.span,
                format!(
                    "this closure has {} parameter{}, and combines two elements",
                    params.len(),
                    if params.len() == 1 { "" } else { "s" }
                ),
                match plan {
                    Plan::Tuple(None, _) => "write `|(a, b), (c, d)| (a + c, b + d)`",
                    _ => "write `|a, b| a + b`",
                },
            );
            return None;
        };
        let mistakes = self.errors.len();
        let before = self.meanings();
        let region = self.func.add_region();
        self.region_params(region, elems);
        let outer = std::mem::replace(&mut self.region, region);
        let values = self.scoped(|cx| {
            let params = cx.func.region(region).params.clone();
            let (first, second) = params.split_at(elems.len());
            cx.bind_meaning(earlier, plan.with(first));
            cx.bind_meaning(later, plan.with(second));
            let meaning = cx.expr(body);
            let mut values = Vec::new();
            cx.closure_values(row, &meaning, body, elems, plan, &mut values).then_some(values)
        });
        self.region = outer;
        self.check_assignments(&before, body.span);
        self.restore(&before);
        let values = values?;
        let loc = self.loc(expr.span);
        self.func.append(region, Op::Yield { values }, [], loc);
        self.check_ops(row, region, body.span);
        (self.errors.len() == mistakes).then_some(region)
    }

    /// Expands a function name `f` to the closure `|a, b| f(a, b)`, for a builtin or a device function.
    fn calling(&self, expr: &Expr) -> Option<Expr> {
        let span = expr.span;
        let (owner, text) = match &expr.kind {
            ExprKind::Name(name) if self.is_function(name) && !self.is_type(expr) => (None, name.clone()),
            ExprKind::Path(path) => match path.split_last() {
                Some((last, owner)) if parse::is_type_path(owner) => (Some(owner.join("::")), last.clone()),
                _ => (None, path.join("::")),
            },
            _ => return None,
        };
        // The spaces prevent conflicts with names in the source.
        let name = |text: &str| Name { text: text.to_string(), span };
        let (earlier, later) = (name("earlier value"), name("later value"));
        let arg = |name: &Name| Expr { kind: ExprKind::Name(name.text.clone()), span };
        let args = vec![arg(&earlier), arg(&later)];
        let owner = owner.map(|owner| Box::new(Owner { path: name(&owner), generics: Vec::new() }));
        let call = Call { name: name(&text), owner, types: Vec::new(), generics: Vec::new(), args, named: Vec::new(), is_method: false };
        let param = |name: Name| Pattern::Name { name, mutable: false };
        let body = Expr { kind: ExprKind::Call(call), span };
        Some(Expr { kind: ExprKind::Closure(vec![param(earlier), param(later)], Box::new(body)), span })
    }

    /// Is it a closure parameter of a function, or not a variable at all?
    fn is_function(&self, name: &str) -> bool {
        self.find(name).is_none_or(|index| matches!(self.variables[index].meaning, Meaning::Function(_)))
    }

    /// Converts the closure's result to elements of the inputs.
    fn closure_values(&mut self, row: &Row, meaning: &Meaning, body: &Expr, elems: &[Elem], plan: &Plan, values: &mut Vec<Value>) -> bool {
        match (plan, meaning) {
            (_, Meaning::Poison) => false,
            (Plan::Tuple(of, plans), Meaning::Tuple(given, parts)) if of == given && plans.len() == parts.len() => {
                plans.iter().zip(parts).all(|(plan, part)| self.closure_values(row, part, body, elems, plan, values))
            }
            (Plan::Result(index), part) if !matches!(part, Meaning::Tuple(..)) => {
                let value = self.closure_value(row, part, body, &elems[*index]);
                values.extend(value);
                value.is_some()
            }
            (plan, other) => {
                let found = self.describe(other);
                let wanted = match plan {
                    Plan::Tuple(Some(of), _) => format!("`{}`", of.def.name.text),
                    Plan::Tuple(None, plans) => format!("a tuple of {}", plans.len()),
                    Plan::Result(index) => format!("`{}`", elems[*index]),
                    Plan::Same(_) | Plan::Pointer(..) => return false,
                };
                self.errors.push_help(
                    body.span,
                    format!("the closure gives {found}, and combines {wanted}"),
                    "it gives what both elements together are: of the same type as each",
                );
                false
            }
        }
    }

    fn closure_value(&mut self, row: &Row, part: &Meaning, body: &Expr, elem: &Elem) -> Option<Value> {
        if !self.shape_of(part).is_empty() {
            self.not_a_scalar(row, part, body.span);
            return None;
        }
        self.with_elem(part, elem, body.span).unwrap_or_else(|()| {
            let found = self.describe(part);
            self.errors.push_help(
                body.span,
                format!("the closure gives {found}, and combines `{elem}`"),
                format!("cast what it gives: `(..) as {elem}`"),
            );
            None
        })
    }

    fn not_a_scalar(&mut self, row: &Row, meaning: &Meaning, span: SourceSpan) {
        let found = self.describe(meaning);
        self.errors.push_help(
            span,
            format!("a closure combines single elements, and this is {found}"),
            format!("give another tile as another input: `{}((x, y), axis, |(a, b), (c, d)| ..)`", row.name),
        );
    }

    pub(super) fn check_assignments(&mut self, before: &[Meaning], span: SourceSpan) {
        let changed = self.variables.iter().zip(before).find(|(variable, before)| variable.meaning != **before);
        if let Some(name) = changed.map(|(variable, _)| variable.name.clone()) {
            self.errors.push_help(span, format!("a closure cannot assign to `{name}`, which is outside of it"), "it only gives a value");
        }
    }

    /// Elements are combined in an unspecified order and number, so only pure computation is allowed.
    fn check_ops(&mut self, row: &Row, region: Region, span: SourceSpan) {
        for inst in self.insts_under(region) {
            let data = self.func.inst(inst);
            let at = self.spans.get(data.loc).unwrap_or(span);
            let mut tile = data.results.iter().copied().find(|value| self.func.ty(*value).is_tile());
            data.op.for_each_operand(&mut |value| tile = tile.or(self.func.ty(value).is_tile().then_some(value)));
            let (message, help) = match &data.op {
                Op::Load { .. } | Op::Store { .. } | Op::Atomic { .. } => {
                    ("a closure neither reads nor writes memory", "load before, and give the tile as another input")
                }
                Op::InlinePtx { volatile: true, .. } => (
                    "an `inline_ptx!` that is `volatile` cannot stand in a closure",
                    "elements are combined in no certain order and number: what only computes needs no `volatile`",
                ),
                Op::Assert { assumed: true, .. } => ("`assume` cannot stand in a closure", "assume it before: `assume(n > 0)`"),
                Op::Assert { .. } => ("`device_assert!` cannot stand in a closure", "check the tile before: `device_assert!(x >= 0)`"),
                Op::Print { .. } => ("`device_print!` cannot stand in a closure", "print the tile before: `device_print!(\"x is {}\", x)`"),
                Op::Barrier {} | Op::GdcWait {} => ("a closure does not wait", "wait before or after the reduction"),
                Op::GdcLaunchDependents {} => ("a closure only computes", "call `gdc_launch_dependents` before or after the reduction"),
                Op::If { .. } => ("`if` cannot stand in a closure", "choose with `select(cond, a, b)`"),
                Op::For { .. } | Op::While { .. } => ("a loop cannot stand in a closure", "write the computation out"),
                _ => match tile {
                    Some(value) => return self.not_a_scalar(row, &Meaning::Value(value), at),
                    None => continue,
                },
            };
            self.errors.push_help(at, message, help);
            return;
        }
    }

    fn insts_under(&self, region: Region) -> Vec<kernel_lang::ir::Inst> {
        let mut insts = Vec::new();
        self.func.for_each_inst(region, &mut |inst| insts.push(inst));
        insts
    }
}
