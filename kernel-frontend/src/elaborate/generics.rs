//! Generic arguments of a function call: explicit ones, and those inferred from the arguments.

use std::rc::Rc;

use super::Elaborator;
use super::inline::{Arg, Frame, mentions, usage};
use super::meaning::{Constant, Kind, Meaning};
use crate::ast::{Call, Expr, Generic, TypeName};
use crate::device::{DeviceFn, GenericKind};
use crate::param_type::ParamType;
use crate::signature::TypeGeneric;
use crate::span::SourceSpan;
use kernel_lang::ir::{Domain, Elem};

/// A call of a function with elaborated arguments.
pub(super) struct CallSite<'a> {
    pub(super) func: &'a Rc<DeviceFn>,
    pub(super) call: &'a Call,
    /// The arguments in the order of the parameters.
    pub(super) args: &'a [Option<Arg>],
    pub(super) span: SourceSpan,
}

impl Elaborator<'_> {
    /// The frame of the call, with generics that are explicit or inferred from the arguments. `given` has a value for each constant generic
    /// that the context of the call determines; it is used where the generic is neither explicit nor inferred.
    pub(super) fn frame(&mut self, site: &CallSite<'_>, given: &[Option<Meaning>]) -> Option<Frame> {
        let func = site.func;
        let before = self.errors.len();
        self.check_generic_count(site);
        let (mut types, mut consts) = self.named_generics(site);
        if self.errors.len() > before {
            return None;
        }
        for (generic, elem) in func.types.iter().zip(&mut types) {
            if elem.is_none() {
                *elem = self.infer(site, &generic.name.text)?;
            }
            match elem {
                Some(elem) => self.check_bound(site, generic, elem),
                None => self.report_unknown_generic(site, &generic.name.text),
            }
        }
        for (index, generic) in func.consts.iter().enumerate() {
            let name = generic.name.text.as_str();
            let args = || func.params.iter().zip(site.args).find_map(|(param, arg)| const_of(&param.ty, name, &arg.as_ref()?.0));
            let value = consts[index].take().or_else(args).or_else(|| given.get(index)?.clone());
            consts[index] = self.constant_generic(site, name, value);
        }
        if self.errors.len() > before {
            return None;
        }
        let types = func.types.iter().zip(types).map(|(generic, elem)| Some((generic.name.text.clone(), elem?)));
        let consts = func.consts.iter().zip(consts).map(|(generic, value)| Some((generic.name.text.clone(), value?)));
        let (types, consts) = (types.collect::<Option<_>>()?, consts.collect::<Option<_>>()?);
        Some(Frame { func: func.clone(), types, consts, scopes: self.scopes.len() })
    }

    fn check_generic_count(&mut self, CallSite { func, call, .. }: &CallSite<'_>) {
        let Some(extra) = call.generics.get(func.generics.len()) else { return };
        let span = match extra {
            Generic::Type(ty) => ty.span,
            Generic::Const(expr) => expr.span,
        };
        let count = match func.generics.len() {
            0 => "no generics".to_string(),
            1 => "1 generic".to_string(),
            count => format!("{count} generics"),
        };
        self.errors.push_help(span, format!("`{}` has {count}", func.name.text), format!("write `{}`", usage(func)));
    }

    /// The explicit types and constants of the call.
    fn named_generics(&mut self, CallSite { func, call, .. }: &CallSite<'_>) -> (Vec<Option<Elem>>, Vec<Option<Meaning>>) {
        let mut types: Vec<Option<Elem>> = vec![None; func.types.len()];
        let mut consts: Vec<Option<Meaning>> = vec![None; func.consts.len()];
        for (generic, kind) in call.generics.iter().zip(&func.generics) {
            match (generic, kind) {
                (Generic::Type(ty), _) if ty.text.as_deref() == Some("_") => {}
                (Generic::Type(ty), GenericKind::Type(index)) => types[*index] = self.elem(ty),
                (Generic::Type(TypeName { text: Some(text), span }), GenericKind::Const(index)) => {
                    consts[*index] = Some(self.name(text, *span));
                }
                (Generic::Type(_), GenericKind::Const(_)) => {}
                (Generic::Const(expr), GenericKind::Const(index)) => consts[*index] = Some(self.expr(expr)),
                (Generic::Const(expr), GenericKind::Type(_)) => {
                    let message = format!("`{}` of `{}` is a type", func.generic_name(*kind), func.name.text);
                    self.errors.push_help(expr.span, message, format!("write `{}`", usage(func)));
                }
            }
        }
        (types, consts)
    }

    /// Reports a type that the bound of its parameter forbids.
    fn check_bound(&mut self, site: &CallSite<'_>, generic: &TypeGeneric, elem: &Elem) {
        let Some(other) = self.choices(elem).iter().copied().find(|dtype| !generic.choices.contains(dtype)) else { return };
        if self.is_library(site.func) {
            return self.outside_of_bound(site, generic);
        }
        let (name, generic_name, bound) = (&site.func.name.text, &generic.name.text, generic.bound);
        let (message, help) = match elem {
            Elem::Dtype(dtype) => (
                format!("`{name}` takes `{bound}` for `{generic_name}`, which `{dtype}` is not"),
                format!("cast what you give; `{bound}` stands for {}", list(generic.choices)),
            ),
            Elem::Param(param) => (
                format!("`{name}` takes `{bound}` for `{generic_name}`, and `{param}` may be `{other}`"),
                format!("bound it in the same way, `{param}: {bound}`, or cast what you give"),
            ),
        };
        self.errors.push_help(site.call.name.span, message, help);
    }

    /// The value of a constant parameter; reports an error if it is not a constant.
    fn constant_generic(&mut self, site: &CallSite<'_>, generic: &str, value: Option<Meaning>) -> Option<Meaning> {
        match value {
            Some(Meaning::Constant(constant)) if !matches!(constant.kind, Kind::Outer(_)) => {
                Some(Meaning::Constant(Constant { elem: None, ..constant }))
            }
            Some(Meaning::Poison) => Some(Meaning::Poison),
            Some(other) => {
                let (name, found) = (&site.func.name.text, self.describe(&other));
                let (message, help) = match self.outer_help(&other) {
                    Some(help) => (format!("`{generic}` of `{name}` must be known when the kernel is compiled, and this is {found}"), help),
                    None => (
                        format!("`{generic}` of `{name}` must be constant, but this is {found} computed at run time"),
                        "use a constant parameter, `const N: usize`, or a literal".to_string(),
                    ),
                };
                self.errors.push_help(site.call.name.span, message, help);
                None
            }
            None => {
                self.report_unknown_generic(site, generic);
                None
            }
        }
    }

    fn report_unknown_generic(&mut self, CallSite { func, call, .. }: &CallSite<'_>, generic: &str) {
        let message = format!("nothing says what `{generic}` of `{}` is", func.name.text);
        self.errors.push_help(call.name.span, message, format!("name it: `{}`", usage(func)));
    }

    /// Reports an argument of a library builtin that violates a bound. The user does not see the bound, so the message names the domain.
    fn outside_of_bound(&mut self, CallSite { func, call, args, .. }: &CallSite<'_>, generic: &TypeGeneric) {
        let domain = match generic.bound {
            "Float" => Domain::Float,
            "Int" => Domain::Int,
            _ => Domain::Number,
        };
        for ((param, arg), written) in func.params.iter().zip(*args).zip(&call.args) {
            let (Some((meaning, _)), ParamType::Scalar(name) | ParamType::Value(name)) = (arg, &param.ty) else { continue };
            let elem = self.elem_of(meaning);
            let fits = match &elem {
                Some(elem) => self.choices(elem).iter().all(|dtype| generic.choices.contains(dtype)),
                None => domain != Domain::Int || !self.is_float(meaning),
            };
            if name.text.as_deref() == Some(generic.name.text.as_str()) && !fits {
                return self.wrong_domain(&func.name.text, domain, meaning, written);
            }
        }
    }

    /// Infers a type parameter from the arguments. `None` if an error has been reported, `Some(None)` if no argument has the type.
    fn infer(&mut self, site: &CallSite<'_>, generic: &str) -> Option<Option<Elem>> {
        let CallSite { func, call, args, span } = *site;
        let mut pointees: Vec<Elem> = Vec::new();
        let mut values: Vec<Meaning> = Vec::new();
        for (param, arg) in func.params.iter().zip(args) {
            if let Some((meaning, _)) = arg {
                self.collect(&param.ty, generic, meaning, &mut pointees, &mut values);
            }
        }
        let found = match pointees.first() {
            // A pointer determines the type exactly.
            Some(elem) => return Some(Some(elem.clone())),
            None if values.is_empty() => return Some(None),
            None => self.common_elem(&values.iter().collect::<Vec<_>>()),
        };
        let (a, b) = match found {
            Ok(elem) => return Some(Some(elem)),
            Err(pair) => pair,
        };
        let name = func.name.text.as_str();
        if self.is_library(func) {
            let bound = func.types.iter().find(|known| known.name.text == generic)?;
            if [&a, &b].iter().any(|elem| !self.choices(elem).iter().all(|dtype| bound.choices.contains(dtype))) {
                self.outside_of_bound(site, bound);
                return None;
            }
            let given = func.params.iter().zip(args).zip(&call.args).filter(|((param, _), _)| mentions(&param.ty, generic));
            let elems = given.filter_map(|((_, arg), expr)| Some((self.elem_of(&arg.as_ref()?.0), expr)));
            let elems: Vec<(Option<Elem>, &Expr)> = elems.collect();
            self.types_differ_among(name, &elems, &(a, b), span);
        } else {
            let keep = if super::operator::holds_more(&a, &b) { &a } else { &b };
            let message = format!("`{generic}` of `{name}` cannot be both `{a}` and `{b}`");
            self.errors.push_help(
                call.name.span,
                message,
                format!("cast one of the {}: `(..) as {keep}`", if func.is_constructor() { "fields" } else { "arguments" }),
            );
        }
        None
    }

    pub(super) fn collect(&self, ty: &ParamType, generic: &str, meaning: &Meaning, pointees: &mut Vec<Elem>, values: &mut Vec<Meaning>) {
        match (ty, meaning) {
            (ParamType::Scalar(name) | ParamType::Value(name), Meaning::Value(_) | Meaning::Constant(_))
                if name.text.as_deref() == Some(generic) =>
            {
                values.push(meaning.clone());
            }
            (ParamType::Pointer(name, _), Meaning::Pointer { base, .. }) if name.text.as_deref() == Some(generic) => {
                pointees.push(self.func.ty(*base).elem().clone());
            }
            (ParamType::View(name, ..), Meaning::View(view)) if name.text.as_deref() == Some(generic) => {
                pointees.push(self.func.ty(view.base).elem().clone());
            }
            (ParamType::Tuple(types), Meaning::Tuple(None, list)) => {
                types.iter().zip(list).for_each(|(ty, part)| self.collect(ty, generic, part, pointees, values));
            }
            // The fields of a struct determine its type parameters.
            (ParamType::Struct(owner), Meaning::Tuple(Some(of), fields)) => {
                let func = &of.def.constructor;
                let named = func.generics.iter().zip(&owner.generics).filter(|(_, named)| named.name() == Some(generic));
                for (kind, _) in named.filter(|(kind, _)| matches!(kind, GenericKind::Type(_))) {
                    let own = func.generic_name(*kind);
                    func.params.iter().zip(fields).for_each(|(param, field)| self.collect(&param.ty, own, field, pointees, values));
                }
            }
            _ => {}
        }
    }
}

/// Infers a constant parameter from a struct among the arguments.
fn const_of(ty: &ParamType, generic: &str, meaning: &Meaning) -> Option<Meaning> {
    match (ty, meaning) {
        (ParamType::Tuple(types), Meaning::Tuple(None, list)) => types.iter().zip(list).find_map(|(ty, part)| const_of(ty, generic, part)),
        (ParamType::Struct(owner), Meaning::Tuple(Some(of), _)) => {
            let mut named = of.def.constructor.generics.iter().zip(&owner.generics).filter(|(_, named)| named.name() == Some(generic));
            named.find_map(|(kind, _)| if let GenericKind::Const(index) = kind { of.consts.get(*index).cloned() } else { None })
        }
        _ => None,
    }
}

fn list(dtypes: &[kernel_lang::dtype::Dtype]) -> String {
    dtypes.iter().map(|dtype| format!("`{dtype}`")).collect::<Vec<_>>().join(", ")
}
