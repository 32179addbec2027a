//! What the generics of a function are in a call of it: named there, or told by the arguments.

use std::rc::Rc;

use super::Elaborator;
use super::inline::{Arg, Frame, mentions, usage};
use super::meaning::{Constant, Meaning};
use crate::frontend::ast::{Call, Expr, Generic, TypeName};
use crate::frontend::device::{DeviceFn, GenericKind};
use crate::frontend::param_type::ParamType;
use crate::frontend::place::Place;
use crate::frontend::signature::TypeGeneric;
use crate::ir::{Domain, Elem};

impl Elaborator<'_> {
    /// The call's frame, with the generics that the call names or its arguments tell.
    pub(super) fn frame(&mut self, func: &Rc<DeviceFn>, call: &Call, args: &[Option<Arg>], place: Place) -> Option<Frame> {
        self.frame_with(func, call, args, &[], place)
    }

    /// A frame whose constants are told by what stands around the call, if nothing else tells them.
    pub(super) fn frame_with(
        &mut self,
        func: &Rc<DeviceFn>,
        call: &Call,
        args: &[Option<Arg>],
        told: &[Option<Meaning>],
        place: Place,
    ) -> Option<Frame> {
        let name = func.name.text.as_str();
        let mut types: Vec<Option<Elem>> = vec![None; func.types.len()];
        let mut consts: Vec<Option<Meaning>> = vec![None; func.consts.len()];
        let before = self.errors.len();
        if let Some(extra) = call.generics.get(func.generics.len()) {
            let place = match extra {
                Generic::Type(ty) => ty.place,
                Generic::Const(expr) => expr.place,
            };
            let count = match func.generics.len() {
                0 => "no generics".to_string(),
                1 => "1 generic".to_string(),
                count => format!("{count} generics"),
            };
            self.errors.push_help(place, format!("`{name}` has {count}"), format!("write `{}`", usage(func)));
        }
        for (generic, kind) in call.generics.iter().zip(&func.generics) {
            match (generic, kind) {
                (Generic::Type(ty), _) if ty.text.as_deref() == Some("_") => {}
                (Generic::Type(ty), GenericKind::Type(index)) => types[*index] = self.elem(ty),
                (Generic::Type(TypeName { text: Some(text), place }), GenericKind::Const(index)) => {
                    consts[*index] = Some(self.name(text, *place));
                }
                (Generic::Type(_), GenericKind::Const(_)) => {}
                (Generic::Const(expr), GenericKind::Const(index)) => consts[*index] = Some(self.expr(expr)),
                (Generic::Const(expr), GenericKind::Type(index)) => {
                    let generic = &func.types[*index].name.text;
                    self.errors.push_help(expr.place, format!("`{generic}` of `{name}` is a type"), format!("write `{}`", usage(func)));
                }
            }
        }
        if self.errors.len() > before {
            return None;
        }
        for (index, generic) in func.types.iter().enumerate() {
            let generic_name = generic.name.text.as_str();
            if types[index].is_none() {
                types[index] = self.infer(func, generic_name, call, args, place)?;
            }
            let Some(elem) = &types[index] else {
                self.errors.push_help(
                    call.word.place,
                    format!("nothing says what `{generic_name}` of `{name}` is"),
                    format!("name it: `{}`", usage(func)),
                );
                continue;
            };
            if let Some(dtype) = self.choices(elem).iter().find(|dtype| !generic.choices.contains(dtype)) {
                if self.is_library(func) {
                    self.outside_of_bound(func, generic, call, args);
                    continue;
                }
                let message = match elem {
                    Elem::Dtype(dtype) => format!("`{name}` takes `{}` for `{generic_name}`, which `{dtype}` is not", generic.bound),
                    Elem::Param(param) => {
                        format!("`{name}` takes `{}` for `{generic_name}`, and `{param}` may be `{dtype}`", generic.bound)
                    }
                };
                let help = match elem {
                    Elem::Dtype(_) => format!("cast what you give; `{}` stands for {}", generic.bound, list(generic.choices)),
                    Elem::Param(param) => format!("bound it in the same way, `{param}: {}`, or cast what you give", generic.bound),
                };
                self.errors.push_help(call.word.place, message, help);
            }
        }
        for (index, generic) in func.consts.iter().enumerate() {
            let generic_name = generic.name.text.as_str();
            if consts[index].is_none() {
                let mut args = func.params.iter().zip(args);
                let found = args.find_map(|(param, arg)| const_of(&param.ty, generic_name, &arg.as_ref()?.0));
                consts[index] = found.or_else(|| told.get(index)?.clone());
            }
            match &consts[index] {
                Some(Meaning::Constant(Constant { elem: None, .. }) | Meaning::Poison) => {}
                Some(Meaning::Constant(constant)) => consts[index] = Some(Meaning::Constant(Constant { elem: None, ..constant.clone() })),
                Some(other) => {
                    let found = self.describe(other);
                    self.errors.push_help(
                        call.word.place,
                        format!("`{generic_name}` of `{name}` must be constant, but this is {found} computed at run time"),
                        "use a constant parameter, `const N: usize`, or a literal",
                    );
                }
                None => {
                    let message = format!("nothing says what `{generic_name}` of `{name}` is");
                    self.errors.push_help(call.word.place, message, format!("name it: `{}`", usage(func)));
                }
            }
        }
        if self.errors.len() > before {
            return None;
        }
        let types = func.types.iter().zip(types).map(|(generic, elem)| Some((generic.name.text.clone(), elem?)));
        let consts = func.consts.iter().zip(consts).map(|(generic, value)| Some((generic.name.text.clone(), value?)));
        let (types, consts) = (types.collect::<Option<_>>()?, consts.collect::<Option<_>>()?);
        Some(Frame { func: func.clone(), types, consts, scopes: self.scopes.len() })
    }

    /// Reports the argument of a word of the library that the bound of its type parameter, which the user does not know, forbids.
    fn outside_of_bound(&mut self, func: &DeviceFn, generic: &TypeGeneric, call: &Call, args: &[Option<Arg>]) {
        let domain = match generic.bound {
            "Float" => Domain::Float,
            "Int" => Domain::Int,
            _ => Domain::Number,
        };
        for ((param, arg), written) in func.params.iter().zip(args).zip(&call.args) {
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

    /// The type that the arguments give a type parameter; `None` has been reported, `Some(None)` says that no argument has it.
    fn infer(&mut self, func: &DeviceFn, generic: &str, call: &Call, args: &[Option<Arg>], place: Place) -> Option<Option<Elem>> {
        let mut pointees: Vec<Elem> = Vec::new();
        let mut values: Vec<Meaning> = Vec::new();
        for (param, arg) in func.params.iter().zip(args) {
            if let Some((meaning, _)) = arg {
                self.collect(&param.ty, generic, meaning, &mut pointees, &mut values);
            }
        }
        let found = match pointees.first() {
            // A pointer says it exactly.
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
                self.outside_of_bound(func, bound, call, args);
                return None;
            }
            let given = func.params.iter().zip(args).zip(&call.args).filter(|((param, _), _)| mentions(&param.ty, generic));
            let elems = given.filter_map(|((_, arg), expr)| Some((self.elem_of(&arg.as_ref()?.0), expr)));
            let elems: Vec<(Option<Elem>, &Expr)> = elems.collect();
            self.types_differ_among(name, &elems, &(a, b), place);
        } else {
            let keep = if super::operator::holds_more(&a, &b) { &a } else { &b };
            let message = format!("`{generic}` of `{name}` cannot be both `{a}` and `{b}`");
            self.errors.push_help(
                call.word.place,
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
            // What the struct's own parameter is, its fields say.
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

/// The constant that a struct among the arguments gives a constant parameter.
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

fn list(dtypes: &[crate::dtype::Dtype]) -> String {
    dtypes.iter().map(|dtype| format!("`{dtype}`")).collect::<Vec<_>>().join(", ")
}
