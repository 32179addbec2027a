//! The options of accesses that are words, such as `evict = "evict_first"`, or `true` and `false`.

use super::branch::Decider;
use super::join::Ways;
use super::meaning::{Constant, Kind, Meaning};
use super::{Elaborator, Value};
use crate::diagnostic::did_you_mean;
use crate::frontend::ast::{Block, Call, Expr, ExprKind};
use crate::frontend::place::Place;
use crate::ir::rewrite::{Substitution, copy_regions};
use crate::ir::{Builder, Cache, ConstExpr, Evict, Op};

/// What an option says, which constants may decide: `evict = if KEEP { "evict_last" } else { "evict_normal" }`.
#[derive(Clone)]
pub(super) enum Choice<T> {
    One(T),
    Either(ConstExpr, Box<[Choice<T>; 2]>),
}

impl<T: Copy> Choice<T> {
    /// With a second choice behind each of its ends.
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
        // An option of a function that is passed on is left out where it was left out.
        (!self.is_left_out(value)).then_some(value)
    }

    /// `cache` and `evict`.
    pub(super) fn cache_modifiers(&mut self, call: &Call, caches: &[Cache]) -> Choice<(Cache, Evict)> {
        const NORMAL: &str = "evict_normal";
        let evicts = [Evict::First, Evict::Last, Evict::NoAllocate];
        let words: Vec<_> = caches.iter().map(|cache| cache.text()).collect();
        let cache = self.modifier(call, "cache", &words);
        let words = [&[NORMAL], &evicts.map(Evict::text)[..]].concat();
        let evict = self.modifier(call, "evict", &words);
        cache.then(&|cache| {
            let cache = caches.iter().copied().find(|known| Some(known.text()) == cache).unwrap_or_default();
            evict.then(&|evict| Choice::One((cache, evicts.into_iter().find(|known| Some(known.text()) == evict).unwrap_or_default())))
        })
    }

    fn modifier(&mut self, call: &Call, option: &str, words: &[&'static str]) -> Choice<Option<&'static str>> {
        match self.option(call, option) {
            Some(expr) => self.choice(call, option, expr, words),
            None => Choice::One(None),
        }
    }

    fn choice(&mut self, call: &Call, option: &str, expr: &Expr, words: &[&'static str]) -> Choice<Option<&'static str>> {
        let ExprKind::If(branch) = &expr.kind else {
            return Choice::One(self.option_text(call, option, expr, words));
        };
        let decided = self.constant_bool(&branch.cond, || {
            let help = format!("it is part of the instruction: decide on a constant, or write a `{}` in each branch", call.word.text);
            (format!("what decides `{option}` is a constant `true` or `false`"), help)
        });
        let ways = [Some(&branch.then_block), branch.else_block.as_ref()].map(|block| match block {
            Some(Block { stmts, value: Some(value), .. }) if stmts.is_empty() => self.choice(call, option, value, words),
            Some(block) => Choice::One(self.no_word(option, words, block.place)),
            None => {
                let help = format!("add the other case: `else {{ \"{}\" }}`", words[0]);
                self.errors.push_help(expr.place, format!("`{option}` has no text where this `if` is false"), help);
                Choice::One(None)
            }
        });
        match decided {
            // In a function a call decides.
            Some(ConstExpr::Bool(cond)) => ways[usize::from(!cond)].clone(),
            Some(cond) => Choice::Either(cond, Box::new(ways)),
            None => Choice::One(None),
        }
    }

    /// Emits an access for each end of a choice, and an `if` of constants around them; the results are those of the access.
    pub(super) fn decide<T: Copy>(
        &mut self,
        choice: &Choice<T>,
        place: Place,
        emit: &mut dyn FnMut(&mut Self, T) -> Vec<Value>,
    ) -> Vec<Value> {
        let (cond, ways) = match choice {
            Choice::One(value) => return emit(self, *value),
            Choice::Either(cond, ways) => (cond, ways),
        };
        let outer = self.region;
        let [(then_region, then_values), (else_region, else_values)] = ways.each_ref().map(|way| {
            self.region = self.func.add_region();
            // A choice inside of this one leaves the region as it was.
            (self.region, self.decide(way, place, emit))
        });
        self.region = outer;
        let ways = Ways { regions: [then_region, else_region], yields: [then_values, else_values] };
        self.close(Decider::Constant(cond.clone()), ways, place)
    }

    /// Emits an op that a choice is a part of.
    pub(super) fn decide_op<T: Copy>(&mut self, choice: &Choice<T>, place: Place, op: &dyn Fn(T) -> Op) -> Vec<Value> {
        let mut is_first = true;
        self.decide(choice, place, &mut |cx, value| {
            let mut op = op(value);
            if !std::mem::replace(&mut is_first, false) {
                copy_regions(&mut cx.func, &mut op, &mut Substitution::new());
            }
            let loc = cx.loc(place);
            match Builder::new(&mut cx.func, cx.region, loc).try_op(op, &[]) {
                Ok(inst) => cx.func.inst(inst).results.clone(),
                Err(message) => {
                    cx.errors.push(place, message);
                    Vec::new()
                }
            }
        })
    }

    /// The literal text that an option is.
    pub(super) fn option_text(&mut self, call: &Call, option: &str, expr: &Expr, words: &[&'static str]) -> Option<&'static str> {
        let ExprKind::Text(text) = &expr.kind else {
            return self.no_word(option, words, expr.place);
        };
        let text = text.trim_start_matches('.');
        let found = words.iter().copied().find(|word| *word == text);
        if found.is_none() {
            // Of words of two letters each is near to every other.
            let near = words.iter().copied().find(|word| text.len() > 2 && word.contains(text));
            let near = near.or_else(|| did_you_mean(text, words.iter().copied()).filter(|word| word.len() > 2));
            let help = match near {
                Some(near) => format!("did you mean `\"{near}\"`?"),
                None => one_of(words),
            };
            self.errors.push_help(expr.place, format!("`{option} = \"{text}\"` has no meaning for `{}`", call.word.text), help);
        }
        found
    }

    fn no_word(&mut self, option: &str, words: &[&'static str], place: Place) -> Option<&'static str> {
        self.errors.push_help(place, format!("`{option}` is a literal text"), one_of(words));
        None
    }

    /// An option that is `true` or `false`, or a constant that is.
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

    /// An option that is `true` or `false` and decides on the type of the result.
    pub(super) fn literal_flag(&mut self, call: &Call, name: &str) -> bool {
        let Some(expr) = self.option(call, name) else { return false };
        let decided = self.constant_bool(expr, || {
            (format!("`{name}` is a literal `true` or `false`"), format!("write `{name} = true`, or leave it out"))
        });
        match decided {
            None => false,
            Some(ConstExpr::Bool(value)) => value,
            Some(_) => {
                let help = format!("the shape of the result hangs on it: write a `{}` in each branch of an `if`", call.word.text);
                self.errors.push_help(expr.place, format!("`{name}` is a literal `true` or `false`, not a parameter"), help);
                false
            }
        }
    }

    /// A constant `bool`; if it is none, `mistake` says what was expected and what to do.
    fn constant_bool(&mut self, expr: &Expr, mistake: impl FnOnce() -> (String, String)) -> Option<ConstExpr> {
        match self.expr(expr) {
            Meaning::Constant(Constant { expr, kind: Kind::Bool, .. }) => Some(expr),
            Meaning::Poison => None,
            other => {
                let (expected, help) = mistake();
                let found = self.describe(&other);
                self.errors.push_help(expr.place, format!("{expected}, not {found}"), help);
                None
            }
        }
    }
}

fn one_of(words: &[&str]) -> String {
    format!("write one of `\"{}\"`", words.join("\"`, `\""))
}
