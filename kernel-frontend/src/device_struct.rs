//! `#[device]` structs: their fields, and the functions of their `impl` blocks.
//!
//! The IR has no structs: during elaboration a struct is the tuple of its fields together with its name. This module checks everything that
//! concerns a struct alone. Constructing a struct is a call of its constructor, a function whose parameters are the fields in order. Thus
//! generics are inferred from the fields, constants take their types, and errors are reported as for any other call.

use std::rc::Rc;

use crate::ast::{Block, Name, Owner};
use crate::device::{self, DeviceFn, Family, GenericKind, Home, Param};
use crate::param_type::{ParamType, Types};
use crate::parse::{self, Request, plain};
use crate::signature::{self, Signature, TypeGeneric};
use crate::span::{Errors, SourceSpan};

/// A struct that kernels can use.
pub(crate) struct DeviceStruct {
    pub(crate) name: Name,
    pub(crate) fields: Vec<Field>,
    /// The function whose parameters are the fields.
    pub(crate) constructor: Rc<DeviceFn>,
    /// The functions of its `impl` blocks, with `self` or without.
    pub(crate) methods: Vec<Rc<DeviceFn>>,
    /// The structs and device functions that it names.
    pub(crate) requests: Vec<Request>,
    /// Has an error in it been reported?
    pub(crate) is_broken: bool,
}

/// A field; its type is that of the constructor's parameter.
pub(crate) struct Field {
    pub(crate) name: Name,
    /// Is it visible in other crates?
    pub(crate) is_public: bool,
}

impl std::fmt::Debug for DeviceStruct {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.name.text)
    }
}

impl DeviceStruct {
    pub(crate) fn field(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name.text == name)
    }

    pub(crate) fn method(&self, name: &str) -> Option<&Rc<DeviceFn>> {
        self.methods.iter().find(|method| method.name.text == name)
    }

    /// The syntax of construction and destructuring: `Welford { mean, m2 }`.
    pub(crate) fn written(&self) -> String {
        let fields: Vec<&str> = self.fields.iter().map(|field| field.name.text.as_str()).collect();
        format!("{} {{ {} }}", self.name.text, fields.join(", "))
    }
}

/// Parses a struct and its `impl` blocks, and reports unsupported syntax.
pub(crate) fn parse(item: &syn::ItemStruct, impls: &[syn::ItemImpl], home: &Home, errors: &mut Errors) -> DeviceStruct {
    let before = errors.len();
    let name = Name { text: plain(&item.ident), span: SourceSpan::from(&item.ident) };
    let (generics, order) = struct_generics(item, &name, errors);
    let mut types = Types { generics: &generics, this: None, requests: Vec::new() };
    let (mut fields, mut params) = (Vec::new(), Vec::new());
    if let syn::Fields::Named(named) = &item.fields {
        for field in &named.named {
            let ident = field.ident.as_ref().expect("the fields have names");
            let name = Name { text: plain(ident), span: SourceSpan::from(ident) };
            let ty = match types.given(&field.ty, errors) {
                ParamType::Scalar(elem) if elem.text.as_deref() == Some("Self") => ParamType::Wrong,
                ty => ty,
            };
            params.push(Param { name: name.clone(), mutable: false, ty, option: None });
            fields.push(Field { name, is_public: is_public(&field.vis) });
        }
    } else {
        let help = format!("write `struct {} {{ mean: Value<T>, .. }}`; values without names are a tuple", name.text);
        errors.push_help(name.span, "the fields of a device struct have names", help);
    }
    let mut requests = types.requests;
    let mut methods: Vec<Rc<DeviceFn>> = Vec::new();
    for block in impls {
        for method in impl_block(block, &name, home, errors) {
            method.requests.iter().for_each(|request| parse::add_request(request.clone(), &mut requests));
            methods.push(Rc::new(method));
        }
    }
    let is_broken = errors.len() > before;
    let constructor = DeviceFn {
        name: name.clone(),
        types: generics.types,
        consts: generics.consts,
        generics: order,
        params,
        output: ParamType::Tuple(Vec::new()),
        body: Block::of(Vec::new(), name.span),
        home: home.clone(),
        this: None,
        is_public: true,
        requests: Vec::new(),
        is_broken,
    };
    DeviceStruct { name, fields, constructor: Rc::new(constructor), methods, requests, is_broken }
}

/// The generics of a struct; a type parameter without a bound accepts any element type.
fn struct_generics(item: &syn::ItemStruct, name: &Name, errors: &mut Errors) -> (Signature, Vec<GenericKind>) {
    let mut generics = Signature { name: name.clone(), types: Vec::new(), consts: Vec::new(), params: Vec::new() };
    signature::no_where_clause(&item.generics, errors);
    let mut order = Vec::new();
    for param in &item.generics.params {
        if let syn::GenericParam::Type(param) = param
            && param.bounds.is_empty()
            && param.default.is_none()
        {
            let name = Name { text: plain(&param.ident), span: SourceSpan::from(&param.ident) };
            let (bound, choices) = signature::ANY;
            order.push(GenericKind::Type(generics.types.len()));
            generics.types.push(TypeGeneric { name, ident: param.ident.clone(), bound, choices, is_broken: false });
        } else {
            device::generic(param, &mut generics, &mut order, errors);
        }
    }
    signature::unique(&generics, errors);
    (generics, order)
}

/// The functions of an `impl` block.
fn impl_block(block: &syn::ItemImpl, name: &Name, home: &Home, errors: &mut Errors) -> Vec<DeviceFn> {
    if let Some((path, _)) = &block.trait_ {
        let help = format!("write `impl {} {{ .. }}`; operators and traits are not those of Rust here", name.text);
        errors.push_help(SourceSpan::of(path), "a device struct implements no traits", help);
        return Vec::new();
    }
    signature::no_where_clause(&block.generics, errors);
    let generics = match &*block.self_ty {
        syn::Type::Path(path) => match path.path.segments.last().map(|last| &last.arguments) {
            Some(syn::PathArguments::AngleBracketed(arguments)) => parse::generics(arguments, errors),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    };
    let this = Owner { path: Name { text: name.text.clone(), span: SourceSpan::of(&block.self_ty) }, generics };
    let family = Family { generics: &block.generics, this: &this };
    let mut methods: Vec<DeviceFn> = Vec::new();
    for item in &block.items {
        let syn::ImplItem::Fn(item) = item else {
            let help = "an `impl` block holds functions; constants are generics, `const N: usize`";
            errors.push_help(SourceSpan::of(item), "this has no meaning in the `impl` block of a device struct", help);
            continue;
        };
        let function = syn::ItemFn {
            attrs: Vec::new(),
            vis: item.vis.clone(),
            modifiers: item.modifiers.clone(),
            sig: item.sig.clone(),
            block: Box::new(item.block.clone()),
        };
        methods.push(device::parse_in(&function, Some(&family), home.clone(), errors));
    }
    methods
}

/// Does the block belong to a struct of that name?
pub(crate) fn is_impl_of(block: &syn::ItemImpl, ident: &syn::Ident) -> bool {
    matches!(&*block.self_ty, syn::Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == *ident))
}

pub(crate) fn is_public(vis: &syn::Visibility) -> bool {
    matches!(vis, syn::Visibility::Public(_))
}
