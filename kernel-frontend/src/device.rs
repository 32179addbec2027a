//! `#[device]` functions and library functions: their signatures, and name resolution for functions and structs.
//!
//! A device function generates no code of its own: each call is elaborated separately, with its types, constants and shapes
//! (`elaborate/inline`). This module checks everything that does not depend on a call: the signature and the syntax of the body.

use std::collections::HashMap;
use std::rc::Rc;

use syn::FnArg;

use crate::ast::{Block, Expr, Name, Owner};
use crate::builtins;
use crate::device_struct::{self, DeviceStruct};
use crate::param_type::{ParamType, Types};
use crate::parse::{self, Request, plain};
use crate::signature::{self, ConstGeneric, Signature, TypeGeneric};
use crate::span::{Errors, SourceSpan};
use crate::structurize;

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
    /// The struct of the enclosing `impl` block.
    pub(crate) this: Option<Owner>,
    /// Is it visible in other crates?
    pub(crate) is_public: bool,
    /// The device functions and structs that it names.
    pub(crate) requests: Vec<Request>,
    /// Has an error in it been reported? Calls of it then report nothing more.
    pub(crate) is_broken: bool,
}

impl std::fmt::Debug for DeviceFn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.name.text)
    }
}

impl DeviceFn {
    /// Is it the constructor of a struct, with the fields as parameters? Type names start with a capital letter, function names do not.
    pub(crate) fn is_constructor(&self) -> bool {
        self.this.is_none() && parse::is_type_name(&self.name.text)
    }

    pub(crate) fn generic_name(&self, kind: GenericKind) -> &str {
        match kind {
            GenericKind::Type(index) => &self.types[index].name.text,
            GenericKind::Const(index) => &self.consts[index].name.text,
        }
    }
}

/// The generics of a function, in the order in which a call lists them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GenericKind {
    /// The n-th type parameter.
    Type(usize),
    /// The n-th constant parameter.
    Const(usize),
}

/// The origin of a function, which determines how names in its body are resolved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Home {
    /// A file of the library: its functions see each other.
    Library(&'static str),
    /// The user's source: its key in [`Devices`] (for a method, the key of its struct), its file, and its crate if it is another one.
    User { key: String, file: String, foreign: Option<String> },
}

/// A parameter of a device function.
pub(crate) struct Param {
    pub(crate) name: Name,
    pub(crate) mutable: bool,
    pub(crate) ty: ParamType,
    /// The default of an option, if the parameter is passed by name, as in `f(x, axis = 1)`, and may be omitted.
    pub(crate) option: Option<OptionDefault>,
}

/// The value of an option that a call omits.
pub(crate) enum OptionDefault {
    /// No value: it can only be passed on, and is then omitted there too.
    Absent,
    /// `#[option(1)]`.
    Value(Expr),
}

/// The user's device functions and structs that a kernel can reach.
#[derive(Clone, Debug, Default)]
pub(crate) struct Devices {
    /// Functions by key.
    pub(crate) functions: HashMap<String, Rc<DeviceFn>>,
    pub(crate) structs: HashMap<String, Rc<DeviceStruct>>,
    /// Resolved paths: from the key of the enclosing function or struct (`None` for the kernel itself) and the path as written, to a key.
    pub(crate) names: HashMap<(Option<String>, String), String>,
}

impl Devices {
    /// The function that a path names in the body of another function, or of the kernel.
    pub(crate) fn find(&self, from: Option<&str>, path: &str) -> Option<&Rc<DeviceFn>> {
        self.functions.get(self.key(from, path)?)
    }

    /// The struct that a path names there, including `Self` in the functions of a struct.
    pub(crate) fn find_struct(&self, from: Option<&str>, path: &str) -> Option<&Rc<DeviceStruct>> {
        let own = from.and_then(|from| self.structs.get(from));
        own.filter(|own| path == "Self" || path == own.name.text).or_else(|| self.structs.get(self.key(from, path)?))
    }

    fn key(&self, from: Option<&str>, path: &str) -> Option<&str> {
        self.names.get(&(from.map(str::to_string), path.to_string())).map(String::as_str)
    }
}

impl Devices {
    /// Collects the device functions and structs of a source text, which are all that a kernel in it can call.
    pub(crate) fn of_file(parsed: &syn::File, file: &str, errors: &mut Errors) -> Devices {
        let mut devices = Devices::default();
        let mut modules: Vec<(String, Vec<String>)> = Vec::new();
        devices.add_items(&parsed.items, false, &mut Vec::new(), file, &mut modules, errors);
        let callers: Vec<(Option<String>, Vec<String>)> =
            modules.iter().map(|(key, module)| (Some(key.clone()), module.clone())).chain([(None, Vec::new())]).collect();
        for (from, here) in &callers {
            for (key, module) in &modules {
                let is_struct = devices.structs.contains_key(key);
                let name = &key.rsplit("::").next().unwrap_or_default().to_string();
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
                for path in paths.into_iter().filter(|path| is_struct || !builtins::is_reserved(path)) {
                    devices.names.insert((from.clone(), path), key.clone());
                }
            }
        }
        devices
    }

    fn add_items(
        &mut self,
        items: &[syn::Item],
        all: bool,
        module: &mut Vec<String>,
        file: &str,
        modules: &mut Vec<(String, Vec<String>)>,
        errors: &mut Errors,
    ) {
        let is_device = |attrs: &[syn::Attribute]| attrs.iter().any(|attribute| attribute.path().is_ident("device"));
        for item in items {
            match item {
                syn::Item::Fn(item) if is_device(&item.attrs) || all && !has_another_meaning(item) => {
                    let key = format!("{}::{}", module.join("::"), plain(&item.sig.ident));
                    let home = Home::User { key: key.clone(), file: file.to_string(), foreign: None };
                    self.functions.insert(key.clone(), Rc::new(parse(item, home, errors)));
                    modules.push((key, module.clone()));
                }
                syn::Item::Struct(item) if is_device(&item.attrs) || all => {
                    let key = format!("{}::{}", module.join("::"), plain(&item.ident));
                    let home = Home::User { key: key.clone(), file: file.to_string(), foreign: None };
                    let impls = items.iter().filter_map(|other| match other {
                        syn::Item::Impl(block) if all && device_struct::is_impl_of(block, &item.ident) => Some(block.clone()),
                        _ => None,
                    });
                    let parsed = device_struct::parse(item, &impls.collect::<Vec<_>>(), &home, errors);
                    self.structs.insert(key.clone(), Rc::new(parsed));
                    modules.push((key, module.clone()));
                }
                syn::Item::Mod(syn::ItemMod { ident, attrs, content: Some((_, items)), .. }) => {
                    module.push(plain(ident));
                    self.add_items(items, is_device(attrs), module, file, modules, errors);
                    module.pop();
                }
                _ => {}
            }
        }
    }
}

/// Has a function of a device module an attribute that gives it another role, such as `#[kernel]`, `#[test]` or `#[device]`?
pub(crate) fn has_another_meaning(item: &syn::ItemFn) -> bool {
    let known = ["doc", "cfg", "allow", "expect", "warn", "deny", "must_use", "inline", "deprecated", "rustfmt"];
    item.attrs.iter().any(|attribute| attribute.path().segments.first().is_none_or(|first| known.iter().all(|name| first.ident != name)))
}

/// The `impl` block around a function.
pub(crate) struct Family<'a> {
    pub(crate) generics: &'a syn::Generics,
    pub(crate) this: &'a Owner,
}

/// Parses a device function and reports unsupported syntax.
pub(crate) fn parse(item: &syn::ItemFn, home: Home, errors: &mut Errors) -> DeviceFn {
    parse_in(item, None, home, errors)
}

/// Parses a device function, or a function of an `impl` block, whose generics are those of the block and its own.
pub(crate) fn parse_in(item: &syn::ItemFn, family: Option<&Family<'_>>, home: Home, errors: &mut Errors) -> DeviceFn {
    let (sig, before) = (&item.sig, errors.len());
    signature::qualifiers(sig, "a device function", errors);
    if let syn::Safety::Unsafe(token) = &sig.safety {
        errors.push_help(
            SourceSpan::of(token),
            "a device function is not declared `unsafe`",
            "whether bounds are checked is the kernel's choice: `#[kernel(unchecked)]`",
        );
    }
    let name = Name { text: plain(&sig.ident), span: SourceSpan::from(&sig.ident) };
    let mut generics = Signature { name: name.clone(), types: Vec::new(), consts: Vec::new(), params: Vec::new() };
    let mut order = Vec::new();
    for param in family.iter().flat_map(|family| &family.generics.params).chain(&sig.generics.params) {
        generic(param, &mut generics, &mut order, errors);
    }
    let mut types = Types { generics: &generics, this: family.map(|family| family.this), requests: Vec::new() };
    let mut params: Vec<Param> = Vec::new();
    for input in &sig.inputs {
        let param = parameter(input, params.len(), &mut types, errors);
        if params.iter().any(|known| known.name.text == param.name.text) {
            errors.push_help(param.name.span, format!("the parameter `{}` is declared twice", param.name.text), "choose another name");
        }
        if param.option.is_none() && params.last().is_some_and(|last| last.option.is_some()) {
            errors.push_help(param.name.span, "a parameter stands after an option", "options come last: calls give them by their names");
        }
        params.push(param);
    }
    signature::unique(&generics, errors);
    let output = match &sig.output {
        syn::ReturnType::Default => ParamType::Tuple(Vec::new()),
        syn::ReturnType::Type(_, ty) => types.given(ty, errors),
    };
    let mut requests = types.requests;
    let (body, named) = parse::function(item, errors);
    named.into_iter().for_each(|request| parse::add_request(request, &mut requests));
    let body = structurize::function(body, errors);
    let is_broken = errors.len() > before;
    let (this, is_public) = (family.map(|family| family.this.clone()), device_struct::is_public(&item.vis));
    let Signature { types, consts, .. } = generics;
    DeviceFn { name, types, consts, generics: order, params, output, body, home, this, is_public, requests, is_broken }
}

/// Parses one generic parameter and records its index in the order in which a call lists them.
pub(crate) fn generic(param: &syn::GenericParam, generics: &mut Signature, order: &mut Vec<GenericKind>, errors: &mut Errors) {
    let (types, consts) = (generics.types.len(), generics.consts.len());
    signature::generic(param, generics, errors);
    // The generics of a function are those of Rust.
    signature::check_floats(generics, &[], errors);
    if generics.types.len() > types {
        order.push(GenericKind::Type(types));
    } else if generics.consts.len() > consts {
        order.push(GenericKind::Const(consts));
    }
}

fn parameter(input: &FnArg, index: usize, types: &mut Types<'_>, errors: &mut Errors) -> Param {
    let typed = match input {
        FnArg::Typed(typed) => typed,
        FnArg::Receiver(receiver) => return self_parameter(receiver, types, errors),
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
            errors.push_help(SourceSpan::of(attribute), "this attribute has no meaning here", "a parameter may be an `#[option(default)]`");
        }
    }
    let (name, mutable) = match &*typed.pat {
        syn::Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => {
            (Name { text: plain(&pat.ident), span: SourceSpan::from(&pat.ident) }, pat.mutability.is_some())
        }
        other => {
            errors.push_help(SourceSpan::of(other), "a parameter is one name", "write `x: Value<f32>`; a tuple is taken apart in the body");
            (Name { text: format!("parameter {index}"), span: SourceSpan::of(other) }, false)
        }
    };
    Param { name, mutable, ty: types.read(&typed.ty, errors), option }
}

/// `self`, `mut self`.
fn self_parameter(receiver: &syn::Receiver, types: &Types<'_>, errors: &mut Errors) -> Param {
    let span = SourceSpan::of(receiver);
    let ty = match types.this {
        Some(this) => ParamType::Struct(this.clone()),
        None => {
            errors.push_help(
                span,
                "a device function has no `self`",
                "methods stand in the `impl` block of a struct, in a `#[device] mod`",
            );
            ParamType::Wrong
        }
    };
    if matches!(receiver.kind, syn::ReceiverKind::Reference(..)) {
        errors.push_help(span, "references have no meaning in a kernel", "values are copied: write `self`, and give what is new");
    } else if matches!(receiver.kind, syn::ReceiverKind::Typed(..)) {
        errors.push_help(span, "`self` has the type of its struct", "write `self`");
    }
    let name = Name { text: "self".to_string(), span: SourceSpan::of(&receiver.self_token) };
    Param { name, mutable: receiver.mutability.is_some(), ty, option: None }
}
