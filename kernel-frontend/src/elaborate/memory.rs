//! Elaboration of `load` and `store`.

use super::convert::{shapes_help, written_shape};
use super::meaning::Meaning;
use super::modifier::Choice;
use super::scope::Origin;
use super::{Elaborator, Value};
use crate::ast::{Call, Expr, ExprKind};
use crate::span::SourceSpan;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{Cache, ConstExpr, Elem, Evict, Op, Type};

/// The address of an access.
pub(super) struct Target {
    pub(super) base: Value,
    pub(super) offset: Value,
    pub(super) mask: Option<Value>,
}

impl Elaborator<'_> {
    pub(super) fn load(&mut self, call: &Call, span: SourceSpan) -> Meaning {
        let before = self.errors.len();
        let target = self.target(call, span);
        let Some(Target { base, offset, mask }) = target else {
            self.other(call);
            self.load_modifiers(call);
            return Meaning::Poison;
        };
        self.load_from((base, offset, mask), call, before, span)
    }

    /// Emits a load from an elaborated address.
    pub(super) fn load_at(&mut self, call: &Call, target: (Value, Value, Option<Value>), span: SourceSpan) -> Meaning {
        let before = self.errors.len();
        self.load_from(target, call, before, span)
    }

    fn load_from(&mut self, (base, offset, mask): (Value, Value, Option<Value>), call: &Call, before: usize, span: SourceSpan) -> Meaning {
        let other = self.other(call);
        let modifiers = self.load_modifiers(call);
        let elem = self.func.ty(base).elem().clone();
        let shape = self.func.ty(offset).shape().to_vec();
        let other = other.and_then(|(meaning, expr)| self.element(&meaning, &elem, &shape, expr, "`other`"));
        if self.errors.len() > before {
            // The result has the right type, so that the code after it can be checked.
            return self.emit(Op::Const { value: ConstExpr::Param("mistake".into()) }, &[Type::tile(elem, shape)], span).into();
        }
        let loaded = self.decide(&modifiers, span, &mut |cx, ((cache, evict), volatile)| {
            let reader = Default::default();
            let op = Op::Load {
                base,
                offset,
                mask,
                other,
                cache,
                evict,
                volatile,
                in_bounds: false,
                align: 0,
                partial: false,
                shifted: false,
                reader,
            };
            Vec::from_iter(cx.emit(op, &[], span))
        });
        loaded.first().copied().into()
    }

    fn other<'b>(&mut self, call: &'b Call) -> Option<(Meaning, &'b Expr)> {
        self.option(call, "other").map(|expr| (self.expr(expr), expr))
    }

    fn load_modifiers(&mut self, call: &Call) -> Choice<((Cache, Evict), bool)> {
        let modifiers = self.cache_modifiers(call, &[Cache::All, Cache::Global, Cache::Streaming, Cache::Volatile]);
        let volatile = self.flag(call, "volatile");
        modifiers.then(&|modifiers| volatile.then(&|volatile| Choice::One((modifiers, volatile))))
    }

    pub(super) fn store(&mut self, call: &Call, span: SourceSpan) -> Meaning {
        let target = self.target(call, span);
        let value = self.expr(&call.args[1]);
        let Some(Target { base, offset, mask }) = target else {
            self.store_modifiers(call);
            return Meaning::UNIT;
        };
        self.store_at(call, (base, offset, mask), (&value, &call.args[1]), span)
    }

    /// Emits a store to an elaborated address.
    pub(super) fn store_at(
        &mut self,
        call: &Call,
        (base, offset, mask): (Value, Value, Option<Value>),
        (value, written): (&Meaning, &Expr),
        span: SourceSpan,
    ) -> Meaning {
        let modifiers = self.store_modifiers(call);
        if let Type::Pointer { mutable: false, .. } = self.func.ty(base) {
            match call.is_method {
                true => self.read_only_view(base, call.args[0].span),
                false => _ = self.is_writable(base, "store through", call.args[0].span),
            }
            return Meaning::UNIT;
        }
        let elem = self.func.ty(base).elem().clone();
        let shape = self.func.ty(offset).shape().to_vec();
        let Some(value) = self.element(value, &elem, &shape, written, "the value of a `store`") else { return Meaning::UNIT };
        self.decide(&modifiers, span, &mut |cx, (cache, evict)| {
            cx.append(
                Op::Store { base, offset, value, mask, cache, evict, in_bounds: false, align: 0, partial: false, shifted: false },
                span,
            );
            Vec::new()
        });
        Meaning::UNIT
    }

    fn store_modifiers(&mut self, call: &Call) -> Choice<(Cache, Evict)> {
        self.cache_modifiers(call, &[Cache::WriteBack, Cache::Global, Cache::Streaming, Cache::WriteThrough])
    }

    /// Is it a `PtrMut`? `what` names the operation that a `Ptr` does not allow.
    pub(super) fn is_writable(&mut self, base: Value, what: &str, span: SourceSpan) -> bool {
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
        self.errors.push_help(span, message, help);
        false
    }

    pub(super) fn target(&mut self, call: &Call, span: SourceSpan) -> Option<Target> {
        let name = &call.name.text;
        let pointer = &call.args[0];
        let meaning = self.expr(pointer);
        let mask = self.option(call, "mask").map(|expr| (self.expr(expr), expr));
        let (base, offset) = match meaning {
            Meaning::Pointer { base, offset } => (base, self.offset_value(offset, span)?),
            Meaning::Poison => return None,
            other => {
                let found = self.describe(&other);
                let help = match other {
                    Meaning::View(_) => "a view is read and written by blocks: `x.load([i, j], [M, N])`, `y.store([i, j], tile)`",
                    _ => "the address is a pointer parameter and offsets in elements: `x + offsets`",
                };
                self.errors.push_help(pointer.span, format!("`{name}` takes a pointer, not {found}"), help);
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

    /// Converts a mask to a shape: that of the offsets of an access, or of a tile's elements.
    pub(super) fn mask(&mut self, meaning: &Meaning, shape: &[ConstExpr], what: &str, expr: &Expr) -> Option<Value> {
        if meaning.is_poison() {
            return None;
        }
        if self.elem_of(meaning) != Some(Elem::Dtype(Dtype::Bool)) {
            let found = self.describe(meaning);
            self.errors.push_help(expr.span, format!("a mask is `bool`, not {found}"), format!("compare the {what}: `mask = {what} < n`"));
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
            self.errors.push_help(expr.span, message, help);
            return None;
        }
        self.spread(meaning, &Elem::Dtype(Dtype::Bool), shape, expr.span).ok().flatten()
    }

    /// Converts a value to the element type of memory.
    pub(super) fn element(&mut self, meaning: &Meaning, elem: &Elem, shape: &[ConstExpr], expr: &Expr, what: &str) -> Option<Value> {
        if meaning.is_poison() {
            return None;
        }
        if let Meaning::Pointer { .. } | Meaning::View(_) | Meaning::Tuple(..) = meaning {
            return self.value(meaning, expr.span);
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
            self.errors.push_help(expr.span, message, help);
            return None;
        }
        match self.spread(meaning, elem, shape, expr.span) {
            Ok(value) => value,
            Err(()) => {
                let found = self.describe(meaning);
                let mut help = format!("cast it: `{} as {elem}`", super::operator::written(expr));
                // A variable that is initialised with a bare literal may have taken the wrong type.
                if let ExprKind::Name(name) = &expr.kind
                    && self.find(name).is_some_and(|index| self.variables[index].mutable && self.variables[index].origin == Origin::Let)
                    && own.is_empty()
                {
                    help = format!("{help}, or declare it as `let mut {name}: {elem} = ..`");
                }
                self.errors.push_help(expr.span, format!("{what} is {found}, but the memory holds `{elem}`"), help);
                None
            }
        }
    }
}
