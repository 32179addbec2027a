//! Views: tensors of several axes with shape and strides. `x.load([i, j], [M, N])` becomes a load with offsets and mask computed from them.

use super::arguments::option_help;
use super::convert::written_shape;
use super::meaning::{Meaning, View};
use super::{Elaborator, Value};
use crate::ast::{Call, Expr, ExprKind};
use crate::builtins::{self, Builtin};
use crate::signature::Signature;
use crate::span::SourceSpan;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{BinaryOp, Builder, CompareOp, ConstExpr, Elem, Op, Type};

const INDEX: Elem = Elem::Dtype(Dtype::I64);

impl Elaborator<'_> {
    /// A parameter `View<T, RANK>`: the pointer is followed by an extent for each axis and a stride for each but the last, whose stride is 1.
    pub(super) fn view_param(&mut self, signature: &Signature, name: &str, base: Value, rank: usize) -> Meaning {
        let mut scalar = |what: &str, axis: usize| {
            // A unique name: the text form identifies parameters by name.
            let mut own = format!("{name}_{what}{axis}");
            while signature.params.iter().any(|param| param.name.text == own) {
                own.push('_');
            }
            self.func.add_param(own, Type::scalar(Dtype::I64))
        };
        let extents = (0..rank).map(|axis| scalar("extent", axis)).collect();
        let mut strides: Vec<Value> = (0..rank - 1).map(|axis| scalar("stride", axis)).collect();
        let region = self.region;
        strides.push(Builder::new(&mut self.func, region, kernel_lang::location::Loc::NONE).index(1));
        Meaning::View(View { base, offset: None, extents, strides })
    }

    /// `view(pointer, [m, n], [stride, 1])`.
    pub(super) fn view(&mut self, args: &[Expr], span: SourceSpan) -> Meaning {
        let pointer = self.expr(&args[0]);
        let extents = self.indices(&args[1], "the shape of a view", "`[m, n]`");
        // Without a valid shape, the required number of strides is unknown.
        let strides = extents.as_ref().and_then(|_| self.indices(&args[2], "the stride of each axis", "`[stride, 1]`"));
        let (base, offset) = match pointer {
            Meaning::Poison => return Meaning::Poison,
            Meaning::Pointer { base, offset } if offset.is_none_or(|offset| self.func.ty(offset).is_scalar()) => (base, offset),
            other => {
                let found = self.describe(&other);
                let help = "a view begins at one element: `view(x, [m, n], [n, 1])`";
                self.errors.push_help(args[0].span, format!("`view` takes a pointer to one element, not {found}"), help);
                return Meaning::Poison;
            }
        };
        let (Some(extents), Some(strides)) = (extents, strides) else { return Meaning::Poison };
        if extents.len() != strides.len() {
            let message = format!("a view with {} has as many strides, not {}", axes(extents.len()), strides.len());
            self.errors.push_help(span, message, "rows of `n` elements are `view(x, [m, n], [n, 1])`");
            return Meaning::Poison;
        }
        Meaning::View(View { base, offset, extents, strides })
    }

    /// `load` or `store` as a method of a view.
    pub(super) fn view_access(&mut self, call: &Call, span: SourceSpan) -> Meaning {
        let row = builtins::find(&call.name.text).expect("`load` and `store` are builtins");
        match self.expr(&call.args[0]) {
            Meaning::View(view) => {
                if self.frames.is_empty() {
                    self.builtins.push((row.name, call.name.span.start));
                }
                if row.builtin == Builtin::Load { self.view_load(&view, call, span) } else { self.view_store(&view, call, span) }
            }
            meaning => {
                if !meaning.is_poison() {
                    let message = format!("`{}` is not a method of {}", row.name, self.describe(&meaning));
                    let help = format!("write `{}`; a `View` has blocks to {}", row.usage, row.name);
                    self.errors.push_help(call.name.span, message, help);
                }
                Meaning::Poison
            }
        }
    }

    /// `x.load([i, j], [M, N])`.
    fn view_load(&mut self, view: &View, call: &Call, span: SourceSpan) -> Meaning {
        const USAGE: &str = "write `x.load([i, j], [M, N])`: where the block begins, and its shape";
        if !self.check_view_options(call, &["other", "cache", "evict"]) {
            return Meaning::Poison;
        }
        let [_, starts, shape] = &call.args[..] else {
            self.wrong_count("`load` of a view", 3, call, USAGE.to_string());
            return Meaning::Poison;
        };
        let starts_of = self.indices(starts, "where a block begins", "`[i, j]`");
        let (Some(starts_of), Some(shape_of)) = (starts_of, self.shape(shape)) else { return Meaning::Poison };
        if !self.has_axes(view, starts_of.len(), starts.span) || !self.has_axes(view, shape_of.len(), shape.span) {
            return Meaning::Poison;
        }
        let (offset, mask) = self.elements(view, &starts_of, &shape_of, span);
        self.load_at(call, (view.base, offset, Some(mask)), span)
    }

    /// `y.store([i, j], tile)`.
    fn view_store(&mut self, view: &View, call: &Call, span: SourceSpan) -> Meaning {
        if !self.check_view_options(call, &["cache", "evict"]) {
            return Meaning::UNIT;
        }
        let [_, starts, value] = &call.args[..] else {
            let help = "write `y.store([i, j], tile)`: where the block begins, and its elements";
            self.wrong_count("`store` of a view", 3, call, help.to_string());
            return Meaning::UNIT;
        };
        let starts_of = self.indices(starts, "where a block begins", "`[i, j]`");
        let meaning = self.expr(value);
        let Some(starts_of) = starts_of.filter(|_| !meaning.is_poison()) else { return Meaning::UNIT };
        if !self.has_axes(view, starts_of.len(), starts.span) {
            return Meaning::UNIT;
        }
        if !matches!(meaning, Meaning::Value(_) | Meaning::Constant(_)) {
            self.value(&meaning, value.span);
            return Meaning::UNIT;
        }
        let shape = self.shape_of(&meaning);
        if shape.len() != starts_of.len() {
            let found = self.describe(&meaning);
            let message = format!("a block of a view with {} is a tile with as many, not {found}", axes(starts_of.len()));
            self.errors.push_help(
                value.span,
                message,
                "add the missing axes: `x[(None, ..)]` makes a tile a row, `x[(.., None)]` a column",
            );
            return Meaning::UNIT;
        }
        let (offset, mask) = self.elements(view, &starts_of, &shape, span);
        self.store_at(call, (view.base, offset, Some(mask)), (&meaning, value), span)
    }

    /// The offsets of a block, and the mask of its elements inside the view.
    fn elements(&mut self, view: &View, starts: &[Value], shape: &[ConstExpr], span: SourceSpan) -> (Value, Value) {
        let loc = self.loc(span);
        let mut b = Builder::new(&mut self.func, self.region, loc);
        let rank = shape.len();
        let (mut offset, mut mask): (Option<Value>, Option<Value>) = (None, None);
        for axis in 0..rank {
            // Along an axis with block extent 1 the offset is a scalar, so that offsets are sums of scalars and ranges.
            let is_one = shape[axis] == ConstExpr::Int(1);
            let row = if is_one { &[] } else { std::slice::from_ref(&shape[axis]) };
            let mut position = b.broadcast(starts[axis], row);
            if !is_one {
                let lanes = b.op(Op::Arange { start: ConstExpr::Int(0), end: shape[axis].clone() }, &[]);
                position = b.binary(BinaryOp::Add, position, lanes);
            }
            let (zero, extent) = (b.int_like(0, position), b.broadcast(view.extents[axis], row));
            let (low, high) = (b.compare(CompareOp::Ge, position, zero), b.compare(CompareOp::Lt, position, extent));
            let inside = b.binary(BinaryOp::And, low, high);
            let stride = b.broadcast(view.strides[axis], row);
            let step = b.binary(BinaryOp::Mul, position, stride);
            let [step, inside] = [step, inside].map(|mut tile| {
                for other in (0..rank).filter(|other| *other != axis && !is_one) {
                    tile = b.expand_dims(tile, other as u32);
                }
                b.broadcast(tile, shape)
            });
            offset = Some(offset.map_or(step, |offset| b.binary(BinaryOp::Add, offset, step)));
            mask = Some(mask.map_or(inside, |mask| b.binary(BinaryOp::And, mask, inside)));
        }
        let (mut offset, mask) = offset.zip(mask).expect("a view has an axis");
        if let Some(first) = view.offset {
            let first = b.broadcast(first, shape);
            offset = b.binary(BinaryOp::Add, offset, first);
        }
        (offset, mask)
    }

    /// A list of integer scalars in brackets, as `i64`.
    fn indices(&mut self, expr: &Expr, what: &str, example: &str) -> Option<Vec<Value>> {
        let ExprKind::Shape(list) = &expr.kind else {
            self.expr(expr);
            self.errors.push_help(expr.span, format!("{what} stands in brackets"), format!("write it like {example}"));
            return None;
        };
        if list.is_empty() {
            self.errors.push_help(expr.span, format!("{what} names at least one axis"), format!("write it like {example}"));
            return None;
        }
        let values: Vec<Option<Value>> = list
            .iter()
            .map(|item| {
                let meaning = self.expr(item);
                if meaning.is_poison() {
                    return None;
                }
                let is_scalar = matches!(meaning, Meaning::Value(_) | Meaning::Constant(_)) && self.shape_of(&meaning).is_empty();
                match is_scalar.then(|| self.with_elem(&meaning, &INDEX, item.span)) {
                    Some(Ok(value)) => value,
                    _ => {
                        let found = self.describe(&meaning);
                        let help = "one scalar for each axis; the lanes of the block come by themselves";
                        self.errors.push_help(item.span, format!("{what} is a list of `i64` scalars, not of {found}"), help);
                        None
                    }
                }
            })
            .collect();
        values.into_iter().collect()
    }

    fn has_axes(&mut self, view: &View, count: usize, span: SourceSpan) -> bool {
        if count == view.extents.len() {
            return true;
        }
        let found = self.describe(&Meaning::View(view.clone()));
        let named = if count == 1 { "1 is".to_string() } else { format!("{count} are") };
        let message = format!("{found} has {}, and here {named} named", axes(view.extents.len()));
        self.errors.push_help(span, message, "name one for each axis; one row of a matrix is a block of the shape `[1, N]`");
        false
    }

    fn check_view_options(&mut self, call: &Call, options: &[&str]) -> bool {
        let mut fine = true;
        for (option, _) in call.named.iter().filter(|(option, _)| !options.contains(&option.text.as_str())) {
            let help = match option.text.as_str() {
                "mask" => "elements outside of the view are masked off by themselves; others are chosen with `select`".to_string(),
                _ => option_help(option, options, "x.load([i, j], [M, N])"),
            };
            self.errors.push_help(option.span, format!("`{}` of a view has no option `{}`", call.name.text, option.text), help);
            fine = false;
        }
        for ty in &call.types {
            self.errors.push_help(
                ty.span,
                format!("`{}` takes no types", call.name.text),
                "remove the types: the elements have the type of the view",
            );
            fine = false;
        }
        fine
    }

    /// The extent of a view along an axis: a scalar.
    pub(super) fn view_extent(&mut self, view: &View, axis: &Expr) -> Meaning {
        let found = self.describe(&Meaning::View(view.clone()));
        let axis = self.axis(axis, view.extents.len(), &found);
        axis.map(|axis| view.extents[axis as usize]).into()
    }

    /// A view, as a phrase for messages.
    pub(super) fn describe_view(&self, view: &View) -> String {
        let ty = self.func.ty(view.base);
        let name = if matches!(ty, Type::Pointer { mutable: true, .. }) { "ViewMut" } else { "View" };
        format!("`{name}<{}, {}>`", ty.elem(), view.extents.len())
    }

    /// Reports a store through a read-only view.
    pub(super) fn read_only_view(&mut self, base: Value, span: SourceSpan) {
        let elem = self.func.ty(base).elem().clone();
        let (message, help) = match self.func.param_index(base).map(|index| &self.func.params[index].name) {
            Some(name) => {
                let help = format!("declare the parameter as `{name}: ViewMut<{elem}, ..>`");
                (format!("cannot store through `{name}`, which is only read"), help)
            }
            None => {
                let help = format!("make the address one that is written to: `address as PtrMut<{elem}>`");
                (format!("cannot store through a view of a `Ptr<{elem}>`"), help)
            }
        };
        self.errors.push_help(span, message, help);
    }

    /// Reports a view in the position of a number or a tile.
    pub(super) fn view_as_value(&mut self, view: &View, span: SourceSpan) {
        let found = self.describe_view(view);
        let help = format!("read a block of it: {}", block_of(view));
        self.errors.push_help(span, format!("a number or a tile is expected here, not {found}"), help);
    }

    /// Reports a view with offsets, as in pointer arithmetic.
    pub(super) fn view_with_offsets(&mut self, view: &View, span: SourceSpan) {
        let (found, elem) = (self.describe_view(view), self.func.ty(view.base).elem().clone());
        let help = format!("read a block of it, {}; a parameter `Ptr<{elem}>` has offsets, which may be data", block_of(view));
        self.errors.push_help(span, format!("{found} has no offsets"), help);
    }
}

/// The usage of a block load from the view.
fn block_of(view: &View) -> String {
    let shape: Vec<ConstExpr> = (0..view.extents.len()).map(|axis| ConstExpr::Param(["M", "N", "K", "L"][axis.min(3)].into())).collect();
    let starts = ["i", "j", "k", "l"][..view.extents.len().min(4)].join(", ");
    format!("`x.load([{starts}], {})`", written_shape(&shape))
}

fn axes(count: usize) -> String {
    if count == 1 { "1 axis".to_string() } else { format!("{count} axes") }
}
