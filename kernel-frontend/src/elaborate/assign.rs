//! `let` and assignment. A variable keeps its type; one that is initialised with an untyped constant takes the type of the first value it is
//! combined with.

use super::Elaborator;
use super::convert::{wider, written_shape};
use super::meaning::{Constant, Kind, Meaning};
use super::scope::{Origin, Variable};
use crate::ast::{Expr, ExprKind, Name, Operator, Pattern, TypeName};
use crate::span::SourceSpan;
use kernel_lang::ir::Elem;

impl Elaborator<'_> {
    /// `let pattern: ty = value;`.
    pub(super) fn bind(&mut self, pattern: &Pattern, ty: Option<&TypeName>, value: &Expr) {
        let elem = ty.and_then(|ty| Some((self.elem(ty)?, ty.span)));
        if let (Pattern::Name { .. }, ExprKind::Closure(params, body), None) = (pattern, &value.kind, &elem) {
            let closure = self.function_value(params.clone(), (**body).clone(), None);
            return self.bind_meaning(pattern, closure);
        }
        let mut meaning = self.expr_as(value, elem.as_ref().map(|(elem, _)| elem));
        if let Some((elem, span)) = elem {
            meaning = self.ascribe(meaning, &elem, value, span);
        }
        self.bind_meaning(pattern, meaning);
    }

    pub(super) fn bind_meaning(&mut self, pattern: &Pattern, meaning: Meaning) {
        match pattern {
            Pattern::Name { name, mutable } => {
                self.check_name_is_free(name);
                self.declare(Variable { name: name.text.clone(), meaning, mutable: *mutable, origin: Origin::Let, argument: None });
            }
            Pattern::Tuple(list, span) => {
                let parts = self.take_apart(meaning, list.len(), *span);
                list.iter().zip(parts).for_each(|(pattern, part)| self.bind_meaning(pattern, part));
            }
            Pattern::Struct { path, fields, is_partial, span } => {
                let parts = self.fields_of(meaning, (path, fields, *is_partial), *span);
                fields.iter().zip(parts).for_each(|((_, pattern), part)| self.bind_meaning(pattern, part));
            }
            Pattern::Field { .. } | Pattern::Wild | Pattern::Error => {}
        }
    }

    /// Reports a variable with the name of a constant parameter, which Rust does not allow either.
    fn check_name_is_free(&mut self, name: &Name) {
        if self.is_constant_parameter(&name.text) {
            let message = format!("`{}` is a constant parameter, and no variable can have its name", name.text);
            self.errors.push_help(name.span, message, "choose another name");
        }
    }

    fn take_apart(&mut self, meaning: Meaning, len: usize, span: SourceSpan) -> Vec<Meaning> {
        match meaning {
            Meaning::Tuple(None, parts) if parts.len() == len => return parts,
            Meaning::Poison => {}
            other => {
                let found = self.describe(&other);
                let help = match other.as_struct() {
                    Some((of, _)) => format!("name its fields: `{}`", of.def.written()),
                    None => "the pattern has as many names as the tuple has values; `_` skips one".to_string(),
                };
                self.errors.push_help(span, format!("a tuple of {len} is taken apart here, but the value is {found}"), help);
            }
        }
        vec![Meaning::Poison; len]
    }

    /// Converts a value to the declared scalar type.
    fn ascribe(&mut self, meaning: Meaning, elem: &Elem, value: &Expr, ty: SourceSpan) -> Meaning {
        match &meaning {
            Meaning::Poison => Meaning::Poison,
            Meaning::Constant(constant) if constant.elem.is_none() => self.typed(constant.clone(), elem.clone(), value.span),
            Meaning::Value(inner) if self.func.ty(*inner).is_tile() => {
                let found = self.describe(&meaning);
                self.errors.push_help(
                    ty,
                    format!("the value is {found}, not the scalar `{elem}`"),
                    format!("leave the type out, or cast the elements: `{} as {elem}`", super::operator::written(value)),
                );
                Meaning::Poison
            }
            // A constant of that type, or of one that widens to it, stays a constant.
            Meaning::Constant(Constant { expr, kind, elem: Some(own), .. }) if wider(own, elem).as_ref() == Some(elem) => {
                Meaning::constant(expr.clone(), *kind, Some(elem.clone()))
            }
            Meaning::Value(_) | Meaning::Constant(_) => match self.with_elem(&meaning, elem, value.span) {
                Ok(converted) => converted.into(),
                Err(()) => {
                    let found = self.describe(&meaning);
                    self.errors.push_help(
                        value.span,
                        format!("`{elem}` is expected here, not {found}"),
                        format!("cast it: `{} as {elem}`", super::operator::written(value)),
                    );
                    Meaning::Poison
                }
            },
            Meaning::Pointer { .. } | Meaning::View(_) | Meaning::Tuple(..) | Meaning::Function(_) => {
                let found = self.describe(&meaning);
                self.errors.push_help(ty, format!("the value is {found}, not the scalar `{elem}`"), "leave the type out");
                Meaning::Poison
            }
        }
    }

    /// `pattern = value;`.
    pub(super) fn assign(&mut self, pattern: &Pattern, meaning: Meaning, span: SourceSpan) {
        match pattern {
            Pattern::Name { name, .. } => self.assign_name(name, meaning, span),
            Pattern::Tuple(list, pattern_span) => {
                let parts = self.take_apart(meaning, list.len(), *pattern_span);
                list.iter().zip(parts).for_each(|(pattern, part)| self.assign(pattern, part, span));
            }
            Pattern::Field { variable, fields } => self.assign_field(variable, fields, meaning, span),
            Pattern::Struct { .. } | Pattern::Wild | Pattern::Error => {}
        }
    }

    /// The element type that the target of an assignment keeps.
    pub(super) fn elem_of_target(&self, pattern: &Pattern) -> Option<Elem> {
        let (name, fields) = match pattern {
            Pattern::Name { name, .. } => (name, &[][..]),
            Pattern::Field { variable, fields } => (variable, &fields[..]),
            _ => return None,
        };
        let variable = &self.variables[self.find(&name.text)?].meaning;
        let part = fields.iter().try_fold(variable, |part, field| part.part(&field.text));
        self.elem_of(part?)
    }

    /// `name += value;`, `name.field += value;`.
    pub(super) fn update(&mut self, pattern: &Pattern, operator: Operator, value: &Expr, span: SourceSpan) {
        let (name, fields) = match pattern {
            Pattern::Name { name, .. } => (name, &[][..]),
            Pattern::Field { variable, fields } => (variable, &fields[..]),
            _ => return,
        };
        let rhs = self.expr(value);
        let mut target = Expr { kind: ExprKind::Name(name.text.clone()), span: name.span };
        for field in fields {
            let span = target.span.to(field.span);
            target = Expr { kind: ExprKind::Field(Box::new(target), field.clone()), span };
        }
        let lhs = self.expr(&target);
        let result = self.operate(operator, (&lhs, &target), (&rhs, value), span);
        if !lhs.is_poison() {
            self.assign(pattern, result, value.span);
        }
    }

    fn assign_name(&mut self, name: &Name, meaning: Meaning, span: SourceSpan) {
        let Some(index) = self.find(&name.text) else {
            self.assign_unknown(name, meaning);
            return;
        };
        self.check_mutable(index, name);
        let old = self.variables[index].meaning.clone();
        let new = self.keep_type(&name.text, &old, meaning, span);
        self.variables[index].meaning = new;
    }

    /// Reports an assignment to a name that is no variable.
    fn assign_unknown(&mut self, name: &Name, meaning: Meaning) {
        if self.is_declarable(&name.text) {
            let help = format!("declare it where it first gets a value: `let mut {} = ..;`", name.text);
            self.errors.push_help(name.span, format!("there is no variable `{}` here", name.text), help);
            // Its uses cause no further errors.
            self.bind_meaning(&Pattern::Name { name: name.clone(), mutable: true }, meaning);
        } else if !self.name(&name.text, name.span).is_poison() {
            self.errors.push_help(
                name.span,
                format!("`{}` is a constant parameter and never changes", name.text),
                "assign to a variable: `let mut x = ..;`",
            );
        }
    }

    pub(super) fn check_mutable(&mut self, index: usize, name: &Name) {
        if !self.variables[index].mutable {
            let help = match self.variables[index].origin {
                Origin::Parameter => format!("declare the parameter as `mut {}`", name.text),
                Origin::LeftOut => format!("the call leaves it out; give it a default: `#[option(..)] mut {}`", name.text),
                Origin::Let => format!("declare it as `let mut {}`", name.text),
                Origin::LoopIndex => format!("a loop counts by itself; copy the index: `let mut j = {};`", name.text),
            };
            self.errors.push_help(name.span, format!("`{}` is not mutable", name.text), help);
        }
    }

    /// Converts `new` to the type of `old`; on an error returns `old`, so that elaboration continues with the right type.
    pub(super) fn keep_type(&mut self, name: &str, old: &Meaning, new: Meaning, span: SourceSpan) -> Meaning {
        match (old, &new) {
            // The unknown value of a call may have any type, and later assignments keep that type.
            (Meaning::Poison, _) | (_, Meaning::Poison) if self.is_alone => return Meaning::Poison,
            (Meaning::Poison, _) => return new,
            (_, Meaning::Poison) => return old.clone(),
            (Meaning::Tuple(of, olds), Meaning::Tuple(other, news)) if of == other && olds.len() == news.len() => {
                let before = self.errors.len();
                let mut kept = Vec::new();
                for (index, (old, new)) in olds.iter().zip(news).enumerate() {
                    kept.push(match of {
                        // A mismatch of structs is one error, not one error per field.
                        Some(_) if self.errors.len() > before => old.clone(),
                        Some(of) => self.keep_type(&format!("{name}.{}", of.def.fields[index].name.text), old, new.clone(), span),
                        None => self.keep_type(name, old, new.clone(), span),
                    });
                }
                return Meaning::Tuple(of.clone(), kept);
            }
            (Meaning::Pointer { base: a, .. }, Meaning::Pointer { base: b, .. }) if a != b => {
                let param = |value: &kernel_lang::ir::Value| {
                    self.func.param_index(*value).map(|index| format!("`{}`", self.func.params[index].name))
                };
                let other = if param(a).is_none() { "another" } else { "an" };
                let into = param(a).unwrap_or_else(|| "what an address leads to".to_string());
                let elsewhere = param(b).unwrap_or_else(|| format!("what {other} address leads to"));
                let message = format!("`{name}` points into {into} and cannot point into {elsewhere}");
                self.errors.push_help(
                    span,
                    message,
                    "a pointer stays in one tensor; declare another variable, or `select` between what is loaded",
                );
                return old.clone();
            }
            (Meaning::View(a), Meaning::View(b)) if a == b => return new,
            (Meaning::View(_), Meaning::View(_)) => {
                let message = format!("`{name}` is a view, and a view stays the one it is");
                self.errors.push_help(span, message, "declare another variable, or `select` between what is loaded");
                return old.clone();
            }
            (Meaning::Pointer { .. }, Meaning::Pointer { .. }) if self.offset_shape(old) == self.offset_shape(&new) => return new,
            (Meaning::Constant(Constant { elem: None, kind: Kind::Int | Kind::Float | Kind::Bool, .. }), Meaning::Constant(other))
                if let Kind::Outer(index) = other.kind =>
            {
                let elem = if let Meaning::Constant(old) = old { old.kind.default_elem() } else { Kind::Int.default_elem() };
                return self.outer_as(index, &elem, &[], span).into();
            }
            (Meaning::Constant(Constant { elem: None, kind, .. }), Meaning::Constant(other)) => {
                let fits = match kind {
                    Kind::Bool => other.kind == Kind::Bool,
                    Kind::Int => other.kind == Kind::Int,
                    Kind::Float => other.kind != Kind::Bool,
                    Kind::Outer(_) => true,
                };
                if fits {
                    // An untyped integer assigned to a float variable becomes a float.
                    let kind = if other.elem.is_none() && !matches!(kind, Kind::Outer(_)) { *kind } else { other.kind };
                    return Meaning::Constant(Constant { expr: other.expr_of(kind), kind, ..other.clone() });
                }
            }
            (Meaning::Constant(constant @ Constant { elem: None, .. }), Meaning::Value(value)) if self.func.ty(*value).is_scalar() => {
                let elem = self.func.ty(*value).elem().clone();
                if self.fit(constant, &elem).is_ok() {
                    return new;
                }
            }
            (Meaning::Constant(Constant { elem: Some(elem), .. }), Meaning::Constant(other)) if other.elem.is_none() => {
                return match self.typed(other.clone(), elem.clone(), span) {
                    Meaning::Poison => old.clone(),
                    typed => typed,
                };
            }
            (Meaning::Value(_) | Meaning::Constant(_), Meaning::Value(_) | Meaning::Constant(_))
                if self.shape_of(old) == self.shape_of(&new) =>
            {
                let before = self.errors.len();
                if let Some(elem) = self.elem_of(old)
                    && let Ok(value) = self.with_elem(&new, &elem, span)
                {
                    return value.map_or_else(|| old.clone(), Meaning::Value);
                }
                self.errors.truncate(before);
            }
            _ => {}
        }
        self.type_changes(name, old, &new, span);
        old.clone()
    }

    fn offset_shape(&self, pointer: &Meaning) -> Vec<kernel_lang::ir::ConstExpr> {
        match pointer {
            Meaning::Pointer { offset: Some(offset), .. } => self.func.ty(*offset).shape().to_vec(),
            _ => Vec::new(),
        }
    }

    pub(super) fn is_float(&self, meaning: &Meaning) -> bool {
        let is_float = |elem: Elem| self.choices(&elem).iter().all(|dtype| dtype.is_float());
        matches!(meaning, Meaning::Constant(Constant { kind: Kind::Float, .. })) || self.elem_of(meaning).is_some_and(is_float)
    }

    fn type_changes(&mut self, name: &str, old: &Meaning, new: &Meaning, span: SourceSpan) {
        let (was, is) = (self.describe(old), self.describe(new));
        let (old_shape, new_shape) = (self.shape_of(old), self.shape_of(new));
        let help = match (old, new) {
            (Meaning::Constant(Constant { elem: None, kind: Kind::Int, .. }), _) if self.is_float(new) => {
                format!("declare it as a float: `let mut {name} = 0.0;`")
            }
            (Meaning::Pointer { .. }, Meaning::Pointer { .. }) => "declare a new variable: `let p = x + offsets;`".to_string(),
            (Meaning::Value(_) | Meaning::Constant(_), Meaning::Value(value)) if old_shape.is_empty() && !new_shape.is_empty() => {
                let ty = self.func.ty(*value);
                let shape = written_shape(&new_shape);
                format!(
                    "make it a tile from the start, filled with its first value: `let mut {name} = full::<{}>({shape}, ..);`",
                    ty.elem()
                )
            }
            (Meaning::Value(value), _) if !old_shape.is_empty() && new_shape.is_empty() => {
                format!("spread the scalar: `full::<{}>({}, value)`", self.func.ty(*value).elem(), written_shape(&old_shape))
            }
            _ => match (self.elem_of(old), self.elem_of(new)) {
                (Some(old), Some(new)) if old != new => format!("cast the value: `(..) as {old}`"),
                _ => format!("a variable keeps its type; declare a new one with `let {name} = ..;`"),
            },
        };
        self.errors.push_help(span, format!("cannot assign {is} to `{name}`, which is {was}"), help);
    }
}
