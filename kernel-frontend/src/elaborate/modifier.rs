//! Access options with names, such as `evict = "evict_first"`, and with `true` or `false`.

use super::branch::Decider;
use super::join::Ways;
use super::meaning::{Constant, Kind, Meaning};
use super::{Elaborator, Value};
use crate::ast::{Block, Call, Expr, ExprKind};
use crate::span::SourceSpan;
use kernel_lang::diagnostic::did_you_mean;
use kernel_lang::ir::rewrite::{Substitution, copy_regions};
use kernel_lang::ir::{Builder, Cache, ConstExpr, Evict, Op};

/// The value of an option, which constants may select: `evict = if KEEP { "evict_last" } else { "evict_normal" }`.
#[derive(Clone)]
pub(super) enum Choice<T> {
    One(T),
    Either(ConstExpr, Box<[Choice<T>; 2]>),
}

impl<T: Copy> Choice<T> {
    /// Extends each leaf by a second choice.
    pub(super) fn then<U>(&self, next: &impl Fn(T) -> Choice<U>) -> Choice<U> {
        match self {
            Choice::One(value) => next(*value),
            Choice::Either(cond, ways) => Choice::Either(cond.clone(), Box::new(ways.each_ref().map(|way| way.then(next)))),
        }
    }
}

impl Elaborator<'_> {
    pub(super) fn option<'b>(&self, call: &'b Call, name: &str) -> Option<&'b Expr> {
        let (_, value) = call.named.iter().find(|(option, _)| option.text == name)?;
        // An omitted option of a function that is passed on is omitted there too.
        (!self.is_left_out(value)).then_some(value)
    }

    /// The options `cache` and `evict`.
    pub(super) fn cache_modifiers(&mut self, call: &Call, caches: &[Cache]) -> Choice<(Cache, Evict)> {
        let evicts = [Evict::Normal, Evict::First, Evict::Last, Evict::NoAllocate];
        let texts: Vec<_> = caches.iter().map(|cache| cache.text()).collect();
        let cache = self.modifier(call, "cache", &texts);
        let evict = self.modifier(call, "evict", &evicts.map(Evict::text));
        cache.then(&|cache| {
            let cache = caches.iter().copied().find(|known| Some(known.text()) == cache).unwrap_or_default();
            evict.then(&|evict| Choice::One((cache, evicts.into_iter().find(|known| Some(known.text()) == evict).unwrap_or_default())))
        })
    }

    pub(super) fn modifier(&mut self, call: &Call, option: &str, texts: &[&'static str]) -> Choice<Option<&'static str>> {
        match self.option(call, option) {
            Some(expr) => self.choice(call, option, expr, texts),
            None => Choice::One(None),
        }
    }

    fn choice(&mut self, call: &Call, option: &str, expr: &Expr, texts: &[&'static str]) -> Choice<Option<&'static str>> {
        let ExprKind::If(branch) = &expr.kind else {
            return Choice::One(self.option_text(call, option, expr, texts));
        };
        let decided = self.constant_bool(&branch.cond, || {
            let help = format!("it is part of the instruction: decide on a constant, or write a `{}` in each branch", call.name.text);
            (format!("what decides `{option}` is a constant `true` or `false`"), help)
        });
        let ways = [Some(&branch.then_block), branch.else_block.as_ref()].map(|block| match block {
            Some(Block { stmts, value: Some(value), .. }) if stmts.is_empty() => self.choice(call, option, value, texts),
            Some(block) => Choice::One(self.not_literal(option, texts, block.span)),
            None => {
                let help = format!("add the other case: `else {{ \"{}\" }}`", texts[0]);
                self.errors.push_help(expr.span, format!("`{option}` has no text where this `if` is false"), help);
                Choice::One(None)
            }
        });
        match decided {
            // In a function, the call may determine the condition.
            Some(ConstExpr::Bool(cond)) => ways[usize::from(!cond)].clone(),
            Some(cond) => Choice::Either(cond, Box::new(ways)),
            None => Choice::One(None),
        }
    }

    /// Emits an access for each leaf of a choice, with an `if` on constants around them. The results are those of the access.
    pub(super) fn decide<T: Copy>(
        &mut self,
        choice: &Choice<T>,
        span: SourceSpan,
        emit: &mut dyn FnMut(&mut Self, T) -> Vec<Value>,
    ) -> Vec<Value> {
        let (cond, ways) = match choice {
            Choice::One(value) => return emit(self, *value),
            Choice::Either(cond, ways) => (cond, ways),
        };
        let outer = self.region;
        let [(then_region, then_values), (else_region, else_values)] = ways.each_ref().map(|way| {
            self.region = self.func.add_region();
            // A nested choice restores the region.
            (self.region, self.decide(way, span, emit))
        });
        self.region = outer;
        let ways = Ways { regions: [then_region, else_region], yields: [then_values, else_values], choice: None };
        self.close(Decider::Constant(cond.clone()), ways, span)
    }

    /// Emits an op with a choice as an attribute.
    pub(super) fn decide_op<T: Copy>(&mut self, choice: &Choice<T>, span: SourceSpan, op: &dyn Fn(T) -> Op) -> Vec<Value> {
        let mut is_first = true;
        self.decide(choice, span, &mut |cx, value| {
            let mut op = op(value);
            if !std::mem::replace(&mut is_first, false) {
                copy_regions(&mut cx.func, &mut op, &mut Substitution::new());
            }
            let loc = cx.loc(span);
            match Builder::new(&mut cx.func, cx.region, loc).try_op(op, &[]) {
                Ok(inst) => cx.func.inst(inst).results.to_vec(),
                Err(message) => {
                    cx.errors.push(span, message);
                    Vec::new()
                }
            }
        })
    }

    /// The literal text of an option.
    pub(super) fn option_text(&mut self, call: &Call, option: &str, expr: &Expr, texts: &[&'static str]) -> Option<&'static str> {
        let ExprKind::Text(text) = &expr.kind else {
            return self.not_literal(option, texts, expr.span);
        };
        let text = text.trim_start_matches('.');
        let found = texts.iter().copied().find(|known| *known == text);
        if found.is_none() {
            // Texts of two letters are all similar, so no suggestion is made for them.
            let near = texts.iter().copied().find(|known| text.len() > 2 && known.contains(text));
            let near = near.or_else(|| did_you_mean(text, texts.iter().copied()).filter(|known| known.len() > 2));
            let help = match near {
                Some(near) => format!("did you mean `\"{near}\"`?"),
                None => one_of(texts),
            };
            self.errors.push_help(expr.span, format!("`{option} = \"{text}\"` has no meaning for `{}`", call.name.text), help);
        }
        found
    }

    fn not_literal(&mut self, option: &str, texts: &[&'static str], span: SourceSpan) -> Option<&'static str> {
        self.errors.push_help(span, format!("`{option}` is a literal text"), one_of(texts));
        None
    }

    /// An option with a literal or constant `bool` as value.
    pub(super) fn flag(&mut self, call: &Call, name: &str) -> Choice<bool> {
        let Some(expr) = self.option(call, name) else { return Choice::One(false) };
        let decided = self.constant_bool(expr, || {
            let help = format!("write `{name} = true`, leave it out, or let a constant decide: `{name} = FLAG` of `const FLAG: bool`");
            (format!("`{name}` is a constant `true` or `false`"), help)
        });
        match decided {
            Some(ConstExpr::Bool(value)) => Choice::One(value),
            Some(cond) => Choice::Either(cond, Box::new([Choice::One(true), Choice::One(false)])),
            None => Choice::One(false),
        }
    }

    /// An option with a literal `bool` as value that determines the type of the result.
    pub(super) fn literal_flag(&mut self, call: &Call, name: &str) -> bool {
        let Some(expr) = self.option(call, name) else { return false };
        let decided = self.constant_bool(expr, || {
            (format!("`{name}` is a literal `true` or `false`"), format!("write `{name} = true`, or leave it out"))
        });
        match decided {
            None => false,
            Some(ConstExpr::Bool(value)) => value,
            Some(_) => {
                let help = format!("the shape of the result hangs on it: write a `{}` in each branch of an `if`", call.name.text);
                self.errors.push_help(expr.span, format!("`{name}` is a literal `true` or `false`, not a parameter"), help);
                false
            }
        }
    }

    /// A constant `bool`; otherwise `mistake` gives the message and the help.
    fn constant_bool(&mut self, expr: &Expr, mistake: impl FnOnce() -> (String, String)) -> Option<ConstExpr> {
        match self.expr(expr) {
            Meaning::Constant(Constant { expr, kind: Kind::Bool, .. }) => Some(expr),
            Meaning::Poison => None,
            other => {
                let (expected, help) = mistake();
                let found = self.describe(&other);
                self.errors.push_help(expr.span, format!("{expected}, not {found}"), help);
                None
            }
        }
    }
}

fn one_of(texts: &[&str]) -> String {
    format!("write one of `\"{}\"`", texts.join("\"`, `\""))
}
