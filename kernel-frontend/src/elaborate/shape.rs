//! Builtins that change or query shapes.

use super::convert::written_shape;
use super::meaning::{Constant, Kind, Meaning};
use super::{Elaborator, Value};
use crate::ast::{Expr, ExprKind};
use crate::builtins::{Builtin, Row};
use crate::span::SourceSpan;
use kernel_lang::ir::{Builder, ConstBinary, ConstExpr, Op, Type};

impl Elaborator<'_> {
    /// `x[(.., None)]`.
    pub(super) fn new_axes(&mut self, x: &Expr, axes: &[bool], span: SourceSpan) -> Meaning {
        let meaning = self.expr(x);
        // The offsets of a pointer take new axes too.
        let (base, value) = match &meaning {
            Meaning::Pointer { base, offset: Some(offset) } => (Some(*base), Some(*offset)),
            other => (None, self.value(other, x.span)),
        };
        let Some(mut value) = value else { return Meaning::Poison };
        let rank = self.func.ty(value).shape().len();
        let kept = axes.iter().filter(|is_new| !**is_new).count();
        if kept != rank {
            let found = self.describe(&meaning);
            let axes_of = |count: usize| if count == 1 { "1 axis".to_string() } else { format!("{count} axes") };
            self.errors.push_help(
                span,
                format!("{found} has {}, and `[]` names {}", axes_of(rank), axes_of(kept)),
                "write one `..` for each axis of the tile, and `None` where a new one goes",
            );
            return Meaning::Poison;
        }
        if kept == axes.len() {
            self.errors.push_help(span, "these `[]` add no axis", "`None` stands where a new axis goes: `x[(.., None)]`");
            return Meaning::Poison;
        }
        for (axis, _) in axes.iter().enumerate().filter(|(_, is_new)| **is_new) {
            let Some(expanded) = self.emit(Op::ExpandDims { x: value, axis: axis as u32 }, &[], span) else { return Meaning::Poison };
            value = expanded;
        }
        base.map_or(Meaning::Value(value), |base| Meaning::Pointer { base, offset: Some(value) })
    }

    /// `x.col()`, `x.row()`.
    pub(super) fn new_axis(&mut self, row: &Row, axis: u32, x: &Expr, span: SourceSpan) -> Meaning {
        let meaning = self.expr(x);
        let Some(value) = self.value(&meaning, x.span) else { return Meaning::Poison };
        if self.func.ty(value).shape().len() != 1 {
            let (found, name) = (self.describe(&meaning), row.name);
            let message = format!("`{name}` is of a tile with one axis, not {found}");
            self.errors.push_help(span, message, "`x[(.., .., None)]` and `expand_dims(x, axis)` add an axis anywhere");
            return Meaning::Poison;
        }
        self.emit(Op::ExpandDims { x: value, axis }, &[], span).into()
    }

    /// Parses an axis index below `count`, counted from the end if negative. `what` names the owner of the axes in messages.
    pub(super) fn axis(&mut self, expr: &Expr, count: usize, what: &str) -> Option<u32> {
        let rank = count as i128;
        match self.expr(expr) {
            Meaning::Poison => None,
            Meaning::Constant(Constant { expr: ConstExpr::Int(axis), .. }) if (-rank..rank).contains(&axis) => {
                u32::try_from(axis.rem_euclid(rank)).ok()
            }
            Meaning::Constant(Constant { expr: ConstExpr::Int(axis), .. }) => {
                let help = match count {
                    0 => "a scalar has no axes".to_string(),
                    1 => "the only axis is 0".to_string(),
                    2 => "the axes are 0 and 1; negative ones count from the end".to_string(),
                    _ => format!("the axes are 0 to {}; negative ones count from the end", count - 1),
                };
                self.errors.push_help(expr.span, format!("there is no axis {axis} in {what}"), help);
                None
            }
            other => {
                let found = self.describe(&other);
                let help = "axes are numbered from 0, and from the end by -1 and so on";
                self.errors.push_help(expr.span, format!("an axis is a literal number, not {found}"), help);
                None
            }
        }
    }

    pub(super) fn expand_dims(&mut self, x: &Expr, axis: &Expr, span: SourceSpan) -> Meaning {
        let meaning = self.expr(x);
        let Some(value) = self.value(&meaning, x.span) else { return Meaning::Poison };
        let found = self.describe(&meaning);
        let Some(axis) = self.axis(axis, self.func.ty(value).shape().len() + 1, &format!("{found} with an axis more")) else {
            return Meaning::Poison;
        };
        self.emit(Op::ExpandDims { x: value, axis }, &[], span).into()
    }

    pub(super) fn broadcast_to(&mut self, x: &Expr, shape: &Expr, span: SourceSpan) -> Meaning {
        let meaning = self.expr(x);
        let shape = self.shape(shape);
        let value = self.value(&meaning, x.span);
        let (Some(value), Some(shape)) = (value, shape) else { return Meaning::Poison };
        if !self.fits_shape(&Meaning::Value(value), &shape) {
            let found = self.describe(&meaning);
            let help = if self.func.ty(value).shape().len() == shape.len() {
                "only axes of extent 1 repeat"
            } else {
                "add the missing axes first: `x[(None, ..)]` makes a tile a row, `x[(.., None)]` a column"
            };
            self.errors.push_help(span, format!("cannot broadcast {found} to `{}`", written_shape(&shape)), help);
            return Meaning::Poison;
        }
        self.with_shape(value, &shape, span).into()
    }

    pub(super) fn reshape(&mut self, x: &Expr, shape: &Expr, span: SourceSpan) -> Meaning {
        let meaning = self.expr(x);
        let shape = self.shape(shape);
        let value = self.value(&meaning, x.span);
        let (Some(value), Some(shape)) = (value, shape) else { return Meaning::Poison };
        let numel = |shape: &[ConstExpr]| shape.iter().try_fold(1i128, |numel, extent| numel.checked_mul(extent.as_int()?));
        if let (Some(from), Some(to)) = (numel(self.func.ty(value).shape()), numel(&shape))
            && from != to
        {
            let found = self.describe(&meaning);
            self.errors.push_help(
                span,
                format!("cannot reshape {found} to `{}`: it has {from} elements, not {to}", written_shape(&shape)),
                "a reshape keeps every element; to repeat elements write `broadcast_to(x, [..])`",
            );
            return Meaning::Poison;
        }
        let loc = self.loc(span);
        Builder::new(&mut self.func, self.region, loc).reshape(value, &shape).into()
    }

    /// The shape of an argument of `extent` and similar builtins; for a pointer, the shape of its offsets.
    fn shape_of_argument(&mut self, name: &str, x: &Expr) -> Option<(Meaning, Vec<ConstExpr>)> {
        let meaning = self.expr(x);
        match &meaning {
            Meaning::Poison => None,
            Meaning::Value(_) | Meaning::Constant(_) => Some((meaning.clone(), self.shape_of(&meaning))),
            Meaning::Pointer { offset, .. } => {
                let shape = offset.map_or_else(Vec::new, |offset| self.func.ty(offset).shape().to_vec());
                Some((meaning, shape))
            }
            Meaning::Tuple(..) | Meaning::View(_) | Meaning::Function(_) => {
                let found = self.describe(&meaning);
                let help = match meaning {
                    Meaning::View(_) => "multiply its extents: `extent(x, 0) * extent(x, 1)`".to_string(),
                    _ => meaning.parts_help(Some(x)),
                };
                self.errors.push_help(x.span, format!("`{name}` takes a scalar or a tile, not {found}"), help);
                None
            }
        }
    }

    pub(super) fn extent(&mut self, x: &Expr, axis: &Expr) -> Meaning {
        if let ExprKind::Name(name) = &x.kind
            && let Some(index) = self.find(name)
            && let Meaning::View(view) = self.variables[index].meaning.clone()
        {
            return self.view_extent(&view, axis);
        }
        let Some((meaning, shape)) = self.shape_of_argument("extent", x) else { return Meaning::Poison };
        let found = self.describe(&meaning);
        if matches!(meaning, Meaning::Pointer { .. }) && shape.is_empty() {
            let help = "the sizes of its tensor are parameters of the kernel: `n: usize`";
            self.errors.push_help(x.span, format!("`extent` takes a tile or a view, not {found}"), help);
            return Meaning::Poison;
        }
        let Some(axis) = self.axis(axis, shape.len(), &found) else { return Meaning::Poison };
        Meaning::constant(shape[axis as usize].clone(), Kind::Int, None)
    }

    /// `rank(x)`, `numel(x)`.
    pub(super) fn count(&mut self, row: &Row, x: &Expr) -> Meaning {
        if let (Builtin::Rank, ExprKind::Name(name)) = (row.builtin, &x.kind)
            && let Some(index) = self.find(name)
            && let Meaning::View(view) = &self.variables[index].meaning
        {
            return Meaning::constant(ConstExpr::Int(view.extents.len() as i128), Kind::Int, None);
        }
        let Some((_, shape)) = self.shape_of_argument(row.name, x) else { return Meaning::Poison };
        let count = match row.builtin {
            Builtin::Rank => ConstExpr::Int(shape.len() as i128),
            _ => shape.into_iter().fold(ConstExpr::Int(1), |numel, extent| ConstExpr::binary(ConstBinary::Mul, numel, extent)),
        };
        Meaning::constant(count, Kind::Int, None)
    }

    pub(super) fn permute(&mut self, x: &Expr, order: &Expr, span: SourceSpan) -> Meaning {
        let meaning = self.expr(x);
        let Some(value) = self.value(&meaning, x.span) else { return Meaning::Poison };
        let rank = self.func.ty(value).shape().len();
        let ExprKind::Shape(list) = &order.kind else {
            self.errors.push_help(order.span, "the order of the axes stands in brackets", "write it like `permute(x, [1, 0, 2])`");
            return Meaning::Poison;
        };
        let found = self.describe(&meaning);
        let axes: Vec<Option<u32>> = list.iter().map(|axis| self.axis(axis, rank, &found)).collect();
        let Some(axes) = axes.into_iter().collect::<Option<Vec<u32>>>() else { return Meaning::Poison };
        if let Some(missing) = (0..rank as u32).find(|axis| !axes.contains(axis)) {
            let message = format!("axis {missing} of {found} is missing in the order");
            self.errors.push_help(order.span, message, "each axis stands in the order once");
            return Meaning::Poison;
        }
        if axes.len() > rank {
            let message = format!("the order names {} axes, and {found} has {rank}", axes.len());
            self.errors.push_help(order.span, message, "each axis stands in the order once");
            return Meaning::Poison;
        }
        self.emit(Op::Permute { x: value, order: axes }, &[], span).into()
    }

    pub(super) fn trans(&mut self, x: &Expr, span: SourceSpan) -> Meaning {
        let meaning = self.expr(x);
        let Some(value) = self.value(&meaning, x.span) else { return Meaning::Poison };
        if self.func.ty(value).shape().len() != 2 {
            let found = self.describe(&meaning);
            let help = "axes in another order: `permute(x, [1, 0, 2])`; a new axis: `x[(.., None)]`";
            self.errors.push_help(span, format!("`trans` exchanges the two axes of a tile, not those of {found}"), help);
            return Meaning::Poison;
        }
        self.emit(Op::Permute { x: value, order: vec![1, 0] }, &[], span).into()
    }

    /// The index of each element of a tile along one axis, or its row-major index.
    pub(super) fn positions(&mut self, ty: &Type, axis: Option<u32>, span: SourceSpan) -> Value {
        let loc = self.loc(span);
        let shape = ty.shape().to_vec();
        let rank = shape.len() as u32;
        let mut b = Builder::new(&mut self.func, self.region, loc);
        let mut sum: Option<Value> = None;
        for along in (0..rank).filter(|along| axis.is_none_or(|axis| axis == *along)) {
            let mut tile = b.op(Op::Arange { start: ConstExpr::Int(0), end: shape[along as usize].clone() }, &[]);
            for other in (0..rank).filter(|other| *other != along) {
                tile = b.expand_dims(tile, other);
            }
            if axis.is_none() && along + 1 < rank {
                let stride =
                    shape[along as usize + 1..].iter().cloned().reduce(|a, b| ConstExpr::binary(kernel_lang::ir::ConstBinary::Mul, a, b));
                let like = b.func.ty(tile).clone();
                let stride = b.constant(stride.unwrap_or(ConstExpr::Int(1)), like);
                tile = b.binary(kernel_lang::ir::BinaryOp::Mul, tile, stride);
            }
            let tile = b.broadcast(tile, &shape);
            sum = Some(sum.map_or(tile, |sum| b.binary(kernel_lang::ir::BinaryOp::Add, sum, tile)));
        }
        sum.expect("a tile has an axis")
    }
}

impl From<Value> for Meaning {
    fn from(value: Value) -> Meaning {
        Meaning::Value(value)
    }
}
