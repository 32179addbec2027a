//! `#[device]` functions and the library's: their signatures, and which function a call means.
//!
//! A device function has no code of its own: each call of it is elaborated anew, with the types, constants and shapes of that call
//! (`elaborate/inline`). What can be said of it alone, its signature and the form of its body, is checked here.

use std::collections::HashMap;
use std::rc::Rc;

use quote::ToTokens;
use syn::FnArg;

use crate::frontend::ast::{Block, Expr, Name, TypeName};
use crate::frontend::parse::{self, Request, plain};
use crate::frontend::place::{Errors, Place};
use crate::frontend::signature::{self, ConstGeneric, Signature, TypeGeneric};
use crate::frontend::structure;
use crate::frontend::words;

/// A function that is written in the language and called from kernels.
pub(crate) struct DeviceFn {
    pub(crate) name: Name,
    pub(crate) types: Vec<TypeGeneric>,
    pub(crate) consts: Vec<ConstGeneric>,
    pub(crate) generics: Vec<GenericKind>,
    pub(crate) params: Vec<Param>,
    pub(crate) output: ParamType,
    pub(crate) body: Block,
    pub(crate) home: Home,
    /// The device functions that it calls.
    pub(crate) requests: Vec<Request>,
    /// Has something in it been reported? Then calls of it say no more.
    pub(crate) is_broken: bool,
}

impl std::fmt::Debug for DeviceFn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.name.text)
    }
}

/// The generics of a function in the order in which a call names them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GenericKind {
    /// The n-th type.
    Type(usize),
    /// The n-th constant.
    Const(usize),
}

/// Where a function comes from: how the names in its body are looked up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Home {
    /// A file of the library: its functions see each other.
    Library(&'static str),
    /// The user's source: its key in [`Devices`], the file that it stands in, and its crate, if that is another one.
    User { key: String, file: String, foreign: Option<String> },
}

/// A parameter of a device function.
pub(crate) struct Param {
    pub(crate) name: Name,
    pub(crate) mutable: bool,
    pub(crate) ty: ParamType,
    /// Is it given by its name, as in `f(x, axis = 1)`, or left out?
    pub(crate) option: Option<OptionDefault>,
}

/// What an option is if a call leaves it out.
pub(crate) enum OptionDefault {
    /// Left out where it is passed on, too.
    Absent,
    /// `#[option(1)]`
    Value(Expr),
}

/// The type of a parameter or of what a function gives.
#[derive(Clone, Debug)]
pub(crate) enum ParamType {
    /// It has been reported.
    Wrong,
    /// `f32`, `T`, `usize`: a scalar.
    Scalar(TypeName),
    /// `Value<T>`: a scalar or a tile of any shape.
    Value(TypeName),
    /// `Ptr<T>`, `PtrMut<T>`
    Pointer(TypeName, bool),
    /// `(Value<T>, usize)`; nothing is the empty tuple.
    Tuple(Vec<ParamType>),
    /// `impl Fn(Value<T>) -> Value<T>`: what a closure takes, and gives.
    Function(Vec<ParamType>, Box<ParamType>),
}

/// The user's device functions that a kernel can reach.
#[derive(Clone, Debug, Default)]
pub(crate) struct Devices {
    /// By their keys.
    pub(crate) functions: HashMap<String, Rc<DeviceFn>>,
    /// Which function a call means: the key of the function that it stands in, nothing for the kernel itself, and the path as written.
    pub(crate) names: HashMap<(Option<String>, String), String>,
}

impl Devices {
    /// The function that a path names in the body of another, or of the kernel.
    pub(crate) fn find(&self, from: Option<&str>, path: &str) -> Option<&Rc<DeviceFn>> {
        let key = self.names.get(&(from.map(str::to_string), path.to_string()))?;
        self.functions.get(key)
    }
}

impl Devices {
    /// Those of a source text, which is all that a kernel in it can call.
    pub(crate) fn of_file(parsed: &syn::File, file: &str, errors: &mut Errors) -> Devices {
        let mut devices = Devices::default();
        let mut modules: Vec<(String, Vec<String>)> = Vec::new();
        devices.add_items(&parsed.items, &mut Vec::new(), file, &mut modules, errors);
        let callers: Vec<(Option<String>, Vec<String>)> =
            modules.iter().map(|(key, module)| (Some(key.clone()), module.clone())).chain([(None, Vec::new())]).collect();
        for (from, here) in &callers {
            for (key, module) in &modules {
                let name = &devices.functions[key].name.text;
                let below = |path: &[String]| path.iter().chain([name]).cloned().collect::<Vec<_>>().join("::");
                let mut paths = vec![format!("crate::{}", below(module))];
                for up in 0..=here.len() {
                    let Some(rest) = module.strip_prefix(&here[..here.len() - up]) else { continue };
                    let supers = vec!["super".to_string(); up];
                    paths.push([&supers[..], rest, std::slice::from_ref(name)].concat().join("::"));
                    if up == 0 {
                        paths.push(format!("self::{}", below(rest)));
                    }
                }
                for path in paths.into_iter().filter(|path| !words::is_reserved(path)) {
                    devices.names.insert((from.clone(), path), key.clone());
                }
            }
        }
        devices
    }

    fn add_items(
        &mut self,
        items: &[syn::Item],
        module: &mut Vec<String>,
        file: &str,
        modules: &mut Vec<(String, Vec<String>)>,
        errors: &mut Errors,
    ) {
        for item in items {
            match item {
                syn::Item::Fn(item) if item.attrs.iter().any(|attribute| attribute.path().is_ident("device")) => {
                    let key = format!("{}::{}", module.join("::"), item.sig.ident);
                    let home = Home::User { key: key.clone(), file: file.to_string(), foreign: None };
                    self.functions.insert(key.clone(), Rc::new(parse(item, home, errors)));
                    modules.push((key, module.clone()));
                }
                syn::Item::Mod(syn::ItemMod { ident, content: Some((_, items)), .. }) => {
                    module.push(plain(ident));
                    self.add_items(items, module, file, modules, errors);
                    module.pop();
                }
                _ => {}
            }
        }
    }
}

/// Reads a device function and reports what it cannot have.
pub(crate) fn parse(item: &syn::ItemFn, home: Home, errors: &mut Errors) -> DeviceFn {
    let (sig, before) = (&item.sig, errors.len());
    signature::qualifiers(sig, "a device function", errors);
    if let syn::Safety::Unsafe(token) = &sig.safety {
        errors.push_help(
            Place::of(token),
            "a device function is not declared `unsafe`",
            "whether bounds are checked is the kernel's choice: `#[kernel(unchecked)]`",
        );
    }
    let name = Name { text: plain(&sig.ident), place: Place::from(&sig.ident) };
    let mut generics = Signature { name: name.clone(), types: Vec::new(), consts: Vec::new(), params: Vec::new() };
    let mut order = Vec::new();
    for param in &sig.generics.params {
        let (types, consts) = (generics.types.len(), generics.consts.len());
        signature::generic(param, &mut generics, errors);
        if generics.types.len() > types {
            order.push(GenericKind::Type(types));
        } else if generics.consts.len() > consts {
            order.push(GenericKind::Const(consts));
        }
    }
    let mut params: Vec<Param> = Vec::new();
    for input in &sig.inputs {
        let param = parameter(input, params.len(), errors);
        if params.iter().any(|known| known.name.text == param.name.text) {
            errors.push_help(param.name.place, format!("the parameter `{}` is declared twice", param.name.text), "choose another name");
        }
        if param.option.is_none() && params.last().is_some_and(|last| last.option.is_some()) {
            errors.push_help(param.name.place, "a parameter stands after an option", "options come last: calls give them by their names");
        }
        params.push(param);
    }
    signature::unique(&generics, errors);
    let output = match &sig.output {
        syn::ReturnType::Default => ParamType::Tuple(Vec::new()),
        syn::ReturnType::Type(_, ty) => match param_type(ty, errors) {
            ParamType::Function(..) => wrong(ty, errors),
            ty => ty,
        },
    };
    let (body, requests) = parse::function(item, errors);
    let body = structure::function(body, errors);
    let is_broken = errors.len() > before;
    DeviceFn { name, types: generics.types, consts: generics.consts, generics: order, params, output, body, home, requests, is_broken }
}

fn parameter(input: &FnArg, index: usize, errors: &mut Errors) -> Param {
    let typed = match input {
        FnArg::Typed(typed) => typed,
        FnArg::Receiver(receiver) => {
            errors.push_help(Place::of(receiver), "a device function has no `self`", "make it a function of its own");
            let name = Name { text: "self".to_string(), place: Place::of(receiver) };
            return Param { name, mutable: false, ty: ParamType::Wrong, option: None };
        }
    };
    let mut option = None;
    for attribute in &typed.attrs {
        if attribute.path().is_ident("option") {
            option = Some(match &attribute.meta {
                syn::Meta::List(_) => match attribute.parse_args::<syn::Expr>() {
                    Ok(value) => OptionDefault::Value(parse::expression(&value, errors)),
                    Err(error) => {
                        errors.push_syn(&error);
                        OptionDefault::Absent
                    }
                },
                _ => OptionDefault::Absent,
            });
        } else if !attribute.path().is_ident("doc") && !attribute.path().is_ident("allow") {
            errors.push_help(Place::of(attribute), "this attribute has no meaning here", "a parameter may be an `#[option(default)]`");
        }
    }
    let (name, mutable) = match &*typed.pat {
        syn::Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => {
            (Name { text: plain(&pat.ident), place: Place::from(&pat.ident) }, pat.mutability.is_some())
        }
        other => {
            errors.push_help(Place::of(other), "a parameter is one name", "write `x: Value<f32>`; a tuple is taken apart in the body");
            (Name { text: format!("parameter {index}"), place: Place::of(other) }, false)
        }
    };
    Param { name, mutable, ty: param_type(&typed.ty, errors), option }
}

const KINDS: &str = "a device function takes and gives `Value<T>` (a scalar or a tile), scalars such as `f32` and `usize`, `Ptr<T>`, `PtrMut<T>`, tuples of them, and takes closures, `impl Fn(Value<T>) -> Value<T>`";

fn param_type(ty: &syn::Type, errors: &mut Errors) -> ParamType {
    let place = Place::of(ty);
    match ty {
        syn::Type::Group(group) => param_type(&group.elem, errors),
        syn::Type::Paren(paren) => param_type(&paren.elem, errors),
        syn::Type::ImplTrait(bounds) => match bounds.bounds.first() {
            Some(syn::TypeParamBound::Trait(bound)) if bounds.bounds.len() == 1 => function_type(ty, &bound.path, errors),
            _ => wrong(ty, errors),
        },
        syn::Type::Tuple(tuple) => ParamType::Tuple(tuple.elems.iter().map(|elem| param_type(elem, errors)).collect()),
        syn::Type::Path(path) if path.qself.is_none() => {
            let Some(last) = path.path.segments.last() else { return ParamType::Wrong };
            let name = plain(&last.ident);
            let elem = match &last.arguments {
                syn::PathArguments::AngleBracketed(generics) => match (generics.args.len(), generics.args.first()) {
                    (1, Some(syn::GenericArgument::Type(inner))) => Some(inner),
                    _ => None,
                },
                _ => None,
            };
            match (name.as_str(), elem.and_then(elem_name)) {
                ("Value", Some(elem)) => ParamType::Value(elem),
                ("Ptr", Some(elem)) => ParamType::Pointer(elem, false),
                ("PtrMut", Some(elem)) => ParamType::Pointer(elem, true),
                ("Value" | "Ptr" | "PtrMut", None) => {
                    errors.push_help(place, format!("`{name}` has one element type"), format!("write `{name}<f32>`"));
                    ParamType::Wrong
                }
                _ => match elem_name(ty) {
                    Some(elem) => ParamType::Scalar(elem),
                    None => wrong(ty, errors),
                },
            }
        }
        _ => wrong(ty, errors),
    }
}

/// `Fn(A, B) -> C`
fn function_type(ty: &syn::Type, path: &syn::Path, errors: &mut Errors) -> ParamType {
    match path.segments.last().map(|last| (plain(&last.ident), &last.arguments)) {
        Some((name, syn::PathArguments::Parenthesized(arguments))) if name == "Fn" => {
            let inputs = arguments.inputs.iter().map(|input| param_type(&input.ty, errors)).collect();
            let output = match &arguments.output {
                syn::ReturnType::Default => ParamType::Tuple(Vec::new()),
                syn::ReturnType::Type(_, ty) => param_type(ty, errors),
            };
            ParamType::Function(inputs, Box::new(output))
        }
        _ => wrong(ty, errors),
    }
}

fn wrong(ty: &syn::Type, errors: &mut Errors) -> ParamType {
    let written = ty.to_token_stream().to_string().replace(' ', "");
    errors.push_help(Place::of(ty), format!("`{written}` is no type of the language"), KINDS);
    ParamType::Wrong
}

/// The name of an element type; whether there is one of that name is seen where the function is called.
fn elem_name(ty: &syn::Type) -> Option<TypeName> {
    match ty {
        syn::Type::Group(group) => elem_name(&group.elem),
        syn::Type::Paren(paren) => elem_name(&paren.elem),
        syn::Type::Path(path) if path.qself.is_none() => {
            let last = path.path.segments.last().filter(|last| last.arguments.is_none())?;
            Some(TypeName { text: Some(plain(&last.ident)), place: Place::of(ty) })
        }
        _ => None,
    }
}
