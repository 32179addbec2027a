//! `load` and `store`.

use super::convert::{shapes_help, written_shape};
use super::meaning::{Constant, Meaning};
use super::scope::Origin;
use super::{Elaborator, Value};
use crate::diagnostic::did_you_mean;
use crate::dtype::Dtype;
use crate::frontend::ast::{Call, Expr, ExprKind};
use crate::frontend::place::Place;
use crate::ir::{Cache, ConstExpr, Elem, Evict, Op, Type};

/// Where an access goes.
pub(super) struct Target {
    pub(super) base: Value,
    pub(super) offset: Value,
    pub(super) mask: Option<Value>,
}

impl Elaborator<'_> {
    pub(super) fn load(&mut self, call: &Call, place: Place) -> Meaning {
        let before = self.errors.len();
        let target = self.target(call, place);
        let Some(Target { base, offset, mask }) = target else {
            self.load_options(call);
            return Meaning::Poison;
        };
        self.load_from((base, offset, mask), call, before, place)
    }

    /// A load of what has been found.
    pub(super) fn load_at(&mut self, call: &Call, target: (Value, Value, Option<Value>), place: Place) -> Meaning {
        let before = self.errors.len();
        self.load_from(target, call, before, place)
    }

    fn load_from(&mut self, (base, offset, mask): (Value, Value, Option<Value>), call: &Call, before: usize, place: Place) -> Meaning {
        let (other, cache, evict, volatile) = self.load_options(call);
        let elem = self.func.ty(base).elem().clone();
        let shape = self.func.ty(offset).shape().to_vec();
        let other = other.and_then(|(meaning, expr)| self.element(&meaning, &elem, &shape, expr, "`other`"));
        let op = Op::Load { base, offset, mask, other, cache, evict, volatile, in_bounds: false, align: 0 };
        if self.errors.len() > before {
            // The result has the right type, so that what follows is checked.
            return self.emit(Op::Const { value: ConstExpr::Param("mistake".into()) }, &[Type::tile(elem, shape)], place).into();
        }
        self.emit(op, &[], place).into()
    }

    fn load_options<'b>(&mut self, call: &'b Call) -> (Option<(Meaning, &'b Expr)>, Cache, Evict, bool) {
        let other = self.option(call, "other").map(|expr| (self.expr(expr), expr));
        let cache = self.cache(call, &[Cache::All, Cache::Global, Cache::Streaming, Cache::Volatile]);
        (other, cache, self.evict(call), self.flag(call, "volatile"))
    }

    pub(super) fn store(&mut self, call: &Call, place: Place) -> Meaning {
        let target = self.target(call, place);
        let value = self.expr(&call.args[1]);
        let Some(Target { base, offset, mask }) = target else {
            self.store_options(call);
            return Meaning::UNIT;
        };
        self.store_at(call, (base, offset, mask), (&value, &call.args[1]), place)
    }

    /// A store to what has been found.
    pub(super) fn store_at(
        &mut self,
        call: &Call,
        (base, offset, mask): (Value, Value, Option<Value>),
        (value, written): (&Meaning, &Expr),
        place: Place,
    ) -> Meaning {
        let (cache, evict) = self.store_options(call);
        if let Type::Pointer { mutable: false, .. } = self.func.ty(base) {
            match call.is_method {
                true => self.read_only_view(base, call.args[0].place),
                false => _ = self.is_writable(base, "store through", call.args[0].place),
            }
            return Meaning::UNIT;
        }
        let elem = self.func.ty(base).elem().clone();
        let shape = self.func.ty(offset).shape().to_vec();
        let Some(value) = self.element(value, &elem, &shape, written, "the value of a `store`") else { return Meaning::UNIT };
        self.append(Op::Store { base, offset, value, mask, cache, evict, in_bounds: false, align: 0 }, place);
        Meaning::UNIT
    }

    fn store_options(&mut self, call: &Call) -> (Cache, Evict) {
        (self.cache(call, &[Cache::WriteBack, Cache::Global, Cache::Streaming, Cache::WriteThrough]), self.evict(call))
    }

    /// Is it a `PtrMut`? `what` is what cannot be done with a `Ptr`.
    pub(super) fn is_writable(&mut self, base: Value, what: &str, place: Place) -> bool {
        let Type::Pointer { elem, mutable: false } = self.func.ty(base) else { return true };
        let (message, help) = match self.func.param_index(base).map(|index| &self.func.params[index].name) {
            Some(name) => {
                let help = format!("declare the parameter as `{name}: PtrMut<{elem}>`");
                (format!("cannot {what} `{name}`, which is `Ptr<{elem}>`"), help)
            }
            None => {
                (format!("cannot {what} a `Ptr<{elem}>`"), format!("make the address one that is written to: `address as PtrMut<{elem}>`"))
            }
        };
        self.errors.push_help(place, message, help);
        false
    }

    pub(super) fn target(&mut self, call: &Call, place: Place) -> Option<Target> {
        let word = &call.word.text;
        let pointer = &call.args[0];
        let meaning = self.expr(pointer);
        let mask = self.option(call, "mask").map(|expr| (self.expr(expr), expr));
        let (base, offset) = match meaning {
            Meaning::Pointer { base, offset } => (base, self.offset_value(offset, place)?),
            Meaning::Poison => return None,
            other => {
                let found = self.describe(&other);
                let help = match other {
                    Meaning::View(_) => "a view is read and written by blocks: `x.load([i, j], [M, N])`, `y.store([i, j], tile)`",
                    _ => "the address is a pointer parameter and offsets in elements: `x + offsets`",
                };
                self.errors.push_help(pointer.place, format!("`{word}` takes a pointer, not {found}"), help);
                return None;
            }
        };
        let shape = self.func.ty(offset).shape().to_vec();
        let mask = match mask {
            None => None,
            Some((meaning, expr)) => Some(self.mask(&meaning, &shape, "offsets", expr)?),
        };
        Some(Target { base, offset, mask })
    }

    /// A mask for what has that shape: the offsets of an access, the elements of a tile.
    pub(super) fn mask(&mut self, meaning: &Meaning, shape: &[ConstExpr], what: &str, expr: &Expr) -> Option<Value> {
        if meaning.is_poison() {
            return None;
        }
        if self.elem_of(meaning) != Some(Elem::Dtype(Dtype::Bool)) {
            let found = self.describe(meaning);
            self.errors.push_help(expr.place, format!("a mask is `bool`, not {found}"), format!("compare the {what}: `mask = {what} < n`"));
            return None;
        }
        let own = self.shape_of(meaning);
        if !self.fits_shape(meaning, shape) {
            let found = self.describe(meaning);
            let (message, help) = if shape.is_empty() {
                let help = "add a tile of offsets to the pointer: `x + offsets`".to_string();
                (format!("the mask is {found}, but the pointer is to one element"), help)
            } else {
                let message = format!("the mask is {found}, but the {what} have the shape `{}`", written_shape(shape));
                (message, shapes_help(&own, shape, &format!("a mask has the shape of the {what}")))
            };
            self.errors.push_help(expr.place, message, help);
            return None;
        }
        self.spread(meaning, &Elem::Dtype(Dtype::Bool), shape, expr.place).ok().flatten()
    }

    /// A value for the elements of memory.
    pub(super) fn element(&mut self, meaning: &Meaning, elem: &Elem, shape: &[ConstExpr], expr: &Expr, what: &str) -> Option<Value> {
        if meaning.is_poison() {
            return None;
        }
        if let Meaning::Pointer { .. } | Meaning::View(_) | Meaning::Tuple(..) = meaning {
            return self.value(meaning, expr.place);
        }
        let own = self.shape_of(meaning);
        if !self.fits_shape(meaning, shape) {
            let found = self.describe(meaning);
            let (message, help) = if shape.is_empty() {
                let help = "add a tile of offsets to the pointer: `y + offsets`".to_string();
                (format!("{what} is {found}, but the pointer is to one element"), help)
            } else {
                let message = format!("{what} is {found}, but the offsets have the shape `{}`", written_shape(shape));
                (message, shapes_help(&own, shape, "it has the shape of the offsets, or is a scalar"))
            };
            self.errors.push_help(expr.place, message, help);
            return None;
        }
        match self.spread(meaning, elem, shape, expr.place) {
            Ok(value) => value,
            Err(()) => {
                let found = self.describe(meaning);
                let mut help = format!("cast it: `{} as {elem}`", super::operator::written(expr));
                // A variable that began as a bare literal may have found the wrong type.
                if let ExprKind::Name(name) = &expr.kind
                    && self.find(name).is_some_and(|index| self.variables[index].mutable && self.variables[index].origin == Origin::Let)
                    && own.is_empty()
                {
                    help = format!("{help}, or declare it as `let mut {name}: {elem} = ..`");
                }
                self.errors.push_help(expr.place, format!("{what} is {found}, but the memory holds `{elem}`"), help);
                None
            }
        }
    }

    pub(super) fn option<'b>(&self, call: &'b Call, name: &str) -> Option<&'b Expr> {
        let (_, value) = call.named.iter().find(|(option, _)| option.text == name)?;
        // An option of a function that is passed on is left out where it was left out.
        let is_absent = matches!(&value.kind, ExprKind::Name(name) if self.find(name).is_some_and(|index| self.variables[index].meaning == Meaning::UNIT));
        (!is_absent).then_some(value)
    }

    fn cache(&mut self, call: &Call, allowed: &[Cache]) -> Cache {
        let Some(expr) = self.option(call, "cache") else { return Cache::Default };
        let words: Vec<&'static str> = allowed.iter().map(|cache| cache.text()).collect();
        self.modifier(call, "cache", expr, &words)
            .and_then(|word| allowed.iter().copied().find(|cache| cache.text() == word))
            .unwrap_or_default()
    }

    fn evict(&mut self, call: &Call) -> Evict {
        let Some(expr) = self.option(call, "evict") else { return Evict::Normal };
        let allowed = [Evict::First, Evict::Last, Evict::NoAllocate];
        let words: Vec<&'static str> = allowed.iter().map(|evict| evict.text()).collect();
        self.modifier(call, "evict", expr, &words)
            .and_then(|word| allowed.into_iter().find(|evict| evict.text() == word))
            .unwrap_or_default()
    }

    pub(super) fn modifier(&mut self, call: &Call, option: &str, expr: &Expr, words: &[&'static str]) -> Option<&'static str> {
        let list = format!("`\"{}\"`", words.join("\"`, `\""));
        let ExprKind::Text(text) = &expr.kind else {
            self.errors.push_help(expr.place, format!("`{option}` is a literal text"), format!("write one of {list}"));
            return None;
        };
        let text = text.trim_start_matches('.');
        let found = words.iter().copied().find(|word| *word == text);
        if found.is_none() {
            // Of words of two letters each is near to every other.
            let near = words.iter().copied().find(|word| text.len() > 2 && word.contains(text));
            let near = near.or_else(|| did_you_mean(text, words.iter().copied()).filter(|word| word.len() > 2));
            let help = match near {
                Some(near) => format!("did you mean `\"{near}\"`?"),
                None => format!("write one of {list}"),
            };
            self.errors.push_help(expr.place, format!("`{option} = \"{text}\"` has no meaning for `{}`", call.word.text), help);
        }
        found
    }

    /// An option that is `true` or `false`.
    pub(super) fn flag(&mut self, call: &Call, name: &str) -> bool {
        let Some(expr) = self.option(call, name) else { return false };
        match self.expr(expr) {
            Meaning::Constant(Constant { expr: ConstExpr::Bool(value), .. }) => value,
            Meaning::Poison => false,
            other => {
                let found = self.describe(&other);
                self.errors.push_help(
                    expr.place,
                    format!("`{name}` is a literal `true` or `false`, not {found}"),
                    format!("write `{name} = true`, or leave it out"),
                );
                false
            }
        }
    }
}
