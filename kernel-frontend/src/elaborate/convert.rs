//! Implicit conversions: constants take the type of the other operand, integers widen if every value is kept, scalars become tiles.

use super::meaning::{Constant, Kind, Meaning, shown};
use super::{Elaborator, Value};
use crate::span::SourceSpan;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{ConstExpr, Elem, Op, Type};

impl Elaborator<'_> {
    /// Emits a constant: a scalar, or a tile of equal elements.
    pub(super) fn materialize(&mut self, constant: &Constant, elem: &Elem, shape: &[ConstExpr], span: SourceSpan) -> Option<Value> {
        if let Kind::Outer(index) = constant.kind {
            return self.outer_as(index, elem, shape, span);
        }
        if !self.quotients_fit(constant, elem, span) {
            return None;
        }
        let value = match self.fit(constant, elem) {
            Ok(value) => value,
            Err((message, help)) => {
                self.errors.push_help(span, message, help);
                return None;
            }
        };
        self.emit(Op::Const { value }, &[Type::tile(elem.clone(), shape.to_vec())], span)
    }

    /// The constant converted to that type, or an error: message and help.
    pub(super) fn fit(&self, constant: &Constant, elem: &Elem) -> Result<ConstExpr, (String, String)> {
        let expr = shown(&constant.expr);
        let choices = self.choices(elem);
        let all = |test: fn(Dtype) -> bool| choices.iter().all(|dtype| test(*dtype));
        let (fits, wanted) = match constant.kind {
            Kind::Bool => (all(|dtype| dtype == Dtype::Bool), "`bool`"),
            Kind::Int => (all(|dtype| dtype != Dtype::Bool), "a number"),
            Kind::Float => (all(Dtype::is_float), "a float"),
            Kind::Outer(_) => (true, "of its own type"),
        };
        if !fits {
            let help = match (elem, constant.kind) {
                (Elem::Dtype(Dtype::Bool), _) => "write `true` or `false`".to_string(),
                (Elem::Dtype(_), Kind::Bool) => format!("cast it: `{expr} as {elem}`"),
                (Elem::Dtype(_), _) => format!("write an integer, or cast it: `{expr} as {elem}`"),
                (Elem::Param(name), Kind::Float) => format!("`{name}` may be an integer; bound it by `Float`, or cast: `{expr} as {name}`"),
                (Elem::Param(name), Kind::Int) => format!("`{name}` may be `bool`; bound it by `Number`"),
                (Elem::Param(name), Kind::Bool | Kind::Outer(_)) => format!("cast it: `{expr} as {name}`"),
            };
            return Err((format!("`{expr}` is {wanted}, not `{elem}`"), help));
        }
        let Some(dtype) = elem.dtype() else { return Ok(constant.expr.clone()) };
        match (constant.expr.to_dtype(dtype), &constant.expr) {
            (Err(message), _) if dtype.is_float8() => {
                Err((message, format!("the largest is `{dtype}::MAX`, which casts give for what is larger")))
            }
            (Err(message), ConstExpr::Float(_)) => Err((message, format!("infinity is written `{dtype}::INFINITY`"))),
            (Err(message), _) => Err((message, "use a wider type, or a smaller number".to_string())),
            (Ok(float), ConstExpr::Int(_)) if dtype.is_float() => Ok(float),
            (Ok(_), expr) => Ok(expr.clone()),
        }
    }

    /// A scalar or a tile as a value of the IR; a constant takes its own type or the default type of its kind.
    pub(super) fn value(&mut self, meaning: &Meaning, span: SourceSpan) -> Option<Value> {
        match meaning {
            Meaning::Value(value) => Some(*value),
            Meaning::Constant(constant) if matches!(constant.kind, Kind::Outer(index) if self.outers[index].dtype.is_none()) => {
                self.untyped_outer(constant, span);
                None
            }
            Meaning::Constant(Constant { kind: Kind::Outer(index), .. }) => self.outers.get(*index).map(|outer| outer.value),
            Meaning::Constant(constant) => {
                let elem = constant.elem.clone().unwrap_or_else(|| constant.kind.default_elem());
                self.materialize(constant, &elem, &[], span)
            }
            Meaning::Poison => None,
            Meaning::View(view) => {
                self.view_as_value(view, span);
                None
            }
            Meaning::Pointer { .. } | Meaning::Tuple(..) | Meaning::Function(_) => {
                let found = self.describe(meaning);
                let help = match meaning {
                    Meaning::Pointer { .. } => "read the elements first: `load(x + offsets)`".to_string(),
                    Meaning::Function(_) => "call it: `f(x)`".to_string(),
                    _ if *meaning == Meaning::UNIT => "what stands here does something and gives no value".to_string(),
                    _ => meaning.parts_help(None),
                };
                self.errors.push_help(span, format!("a number or a tile is expected here, not {found}"), help);
                None
            }
        }
    }

    /// The common element type without `as`, or the pair of types that has none.
    pub(super) fn common_elem(&self, meanings: &[&Meaning]) -> Result<Elem, (Elem, Elem)> {
        let typed: Vec<&Meaning> = meanings.iter().copied().filter(|meaning| !is_of_every_float(meaning)).collect();
        let takes = |elem: &Elem| self.choices(elem).iter().all(|dtype| dtype.is_float());
        if typed.len() < meanings.len()
            && typed.iter().any(|meaning| self.elem_of(meaning).is_some())
            && let Ok(elem) = self.common_elem(&typed)
            && takes(&elem)
        {
            return Ok(elem);
        }
        let mut common: Option<Elem> = None;
        for elem in meanings.iter().filter_map(|meaning| self.elem_of(meaning)) {
            common = Some(match common {
                None => elem,
                Some(known) => wider(&known, &elem).ok_or((known, elem))?,
            });
        }
        let is_float = |meaning: &&Meaning| matches!(meaning, Meaning::Constant(Constant { kind: Kind::Float, .. }));
        Ok(common.unwrap_or_else(|| if meanings.iter().any(is_float) { Kind::Float } else { Kind::Int }.default_elem()))
    }

    /// Converts a scalar or a tile to that element type; `Err` if this would need `as`.
    pub(super) fn with_elem(&mut self, meaning: &Meaning, elem: &Elem, span: SourceSpan) -> Result<Option<Value>, ()> {
        match meaning {
            Meaning::Constant(constant) if is_of_every_float(meaning) && self.fit(constant, elem).is_ok() => {
                Ok(self.materialize(constant, elem, &[], span))
            }
            Meaning::Constant(constant) => match &constant.elem {
                Some(own) if own != elem => match (wider(own, elem), self.materialize(constant, own, &[], span)) {
                    (Some(common), value) if common == *elem => Ok(value.and_then(|value| self.widen(value, elem, span))),
                    _ => Err(()),
                },
                _ => Ok(self.materialize(constant, elem, &[], span)),
            },
            Meaning::Value(value) => {
                let own = self.func.ty(*value).elem().clone();
                match wider(&own, elem) {
                    Some(common) if common == *elem => Ok(self.widen(*value, elem, span)),
                    _ => Err(()),
                }
            }
            _ => Ok(self.value(meaning, span)),
        }
    }

    fn widen(&mut self, value: Value, elem: &Elem, span: SourceSpan) -> Option<Value> {
        let ty = self.func.ty(value).with_elem(elem.clone());
        if self.func.ty(value) == &ty { Some(value) } else { self.emit(Op::Cast { x: value }, &[ty], span) }
    }

    /// Converts a scalar or a tile to that element type and shape; `Err` if this would need `as`.
    pub(super) fn spread(&mut self, meaning: &Meaning, elem: &Elem, shape: &[ConstExpr], span: SourceSpan) -> Result<Option<Value>, ()> {
        match meaning {
            // A constant becomes a tile of equal elements.
            Meaning::Constant(constant) if constant.elem.as_ref().is_none_or(|own| own == elem) => {
                Ok(self.materialize(constant, elem, shape, span))
            }
            _ => Ok(self.with_elem(meaning, elem, span)?.and_then(|value| self.with_shape(value, shape, span))),
        }
    }

    /// Broadcasts a value to that shape.
    pub(super) fn with_shape(&mut self, value: Value, shape: &[ConstExpr], span: SourceSpan) -> Option<Value> {
        if self.func.ty(value).shape() == shape {
            return Some(value);
        }
        let ty = Type::tile(self.func.ty(value).elem().clone(), shape.to_vec());
        self.emit(Op::Broadcast { x: value }, &[ty], span)
    }

    /// The common shape: scalars fit any shape, and an axis of extent 1 is repeated. `Err` is the first pair that differs.
    pub(super) fn common_shape(&self, meanings: &[&Meaning]) -> Result<Vec<ConstExpr>, (Vec<ConstExpr>, Vec<ConstExpr>)> {
        let mut common: Vec<ConstExpr> = Vec::new();
        for meaning in meanings {
            let shape = self.shape_of(meaning);
            if shape.is_empty() || common.is_empty() {
                common = if shape.is_empty() { common } else { shape };
                continue;
            }
            let both = |(a, b): (&ConstExpr, &ConstExpr)| match (a.as_int(), b.as_int()) {
                _ if a == b => Some(a.clone()),
                (Some(1), _) => Some(b.clone()),
                (_, Some(1)) => Some(a.clone()),
                _ => None,
            };
            let joined: Option<Vec<ConstExpr>> = common.iter().zip(&shape).map(both).collect();
            match joined.filter(|_| common.len() == shape.len()) {
                Some(joined) => common = joined,
                None => return Err((common, shape)),
            }
        }
        Ok(common)
    }

    /// Can a value be broadcast to that shape?
    pub(super) fn fits_shape(&self, meaning: &Meaning, shape: &[ConstExpr]) -> bool {
        let own = self.shape_of(meaning);
        own.is_empty() || own.len() == shape.len() && own.iter().zip(shape).all(|(own, to)| own == to || own.as_int() == Some(1))
    }
}

/// Is it an infinity or NaN, which every float type has? It takes the type of the other operand, whatever type it is named after.
fn is_of_every_float(meaning: &Meaning) -> bool {
    matches!(meaning, Meaning::Constant(Constant { expr: ConstExpr::Float(value), .. }) if !value.is_finite())
}

/// The help for two shapes that differ; `same` is used if only extents differ.
pub(super) fn shapes_help(a: &[ConstExpr], b: &[ConstExpr], same: &str) -> String {
    match (a.len(), b.len()) {
        (x, y) if x != y && x > 0 && y > 0 => {
            let (long, short) = if x > y { (a, b) } else { (b, a) };
            match missing_axis(long, short) {
                Some(axis) => {
                    let index: Vec<&str> = (0..long.len()).map(|at| if at == axis { "None" } else { ".." }).collect();
                    let write = if long.len() == 2 { format!("`x[({})]`", index.join(", ")) } else { format!("`x.expand_dims({axis})`") };
                    let short = written_shape(short);
                    format!("give the tile of shape `{short}` an axis {axis}: {write}, or, if it is a reduction, `keep_dims = true`")
                }
                None => "tiles that meet have as many axes: `x[(None, ..)]` makes a tile a row, `x[(.., None)]` a column".to_string(),
            }
        }
        (x, y) if x == y && a.iter().zip(b).all(|(a, b)| are_equal_where_they_divide(a, b)) => {
            let (long, short) = if written_shape(a).len() > written_shape(b).len() { (a, b) } else { (b, a) };
            let (long, short) = (written_shape(long), written_shape(short));
            format!("`{long}` need not be `{short}` where a division has a rest: say that it is, `reshape(x, {short})`")
        }
        (1, _) | (_, 1) => same.to_string(),
        _ => "along each axis the extents are equal, or one of them is 1".to_string(),
    }
}

/// The axis without which the longer shape is the shorter one, if there is exactly one such axis.
fn missing_axis(long: &[ConstExpr], short: &[ConstExpr]) -> Option<usize> {
    let without = |axis: &usize| long.iter().enumerate().filter(|(at, _)| at != axis).map(|(_, extent)| extent).eq(short);
    let mut axes = (0..long.len()).filter(without);
    axes.next().filter(|_| axes.next().is_none())
}

/// Are two extents equal if the constants in them are powers of two?
fn are_equal_where_they_divide(a: &ConstExpr, b: &ConstExpr) -> bool {
    // Two samples that give constants with different names different values.
    let power =
        |name: &str, weight: usize| 6 + name.bytes().enumerate().map(|(i, byte)| usize::from(byte) * (1 + i * weight)).sum::<usize>() % 7;
    let of = |expr: &ConstExpr, weight: usize| expr.evaluate(&|name| Some(ConstExpr::Int(1 << power(name, weight)))).ok();
    a == b || [0, 3].iter().all(|weight| of(a, *weight).is_some_and(|extent| of(b, *weight) == Some(extent)))
}

/// A shape in source syntax.
pub(super) fn written_shape(shape: &[ConstExpr]) -> String {
    let extents: Vec<String> = shape.iter().map(shown).collect();
    format!("[{}]", extents.join(", "))
}

/// The one of two element types that holds every value of both.
pub(super) fn wider(a: &Elem, b: &Elem) -> Option<Elem> {
    match (a, b) {
        (Elem::Dtype(x), Elem::Dtype(y)) if x.widens_to(*y) => Some(b.clone()),
        (Elem::Dtype(x), Elem::Dtype(y)) if y.widens_to(*x) => Some(a.clone()),
        _ => (a == b).then(|| a.clone()),
    }
}
