//! Types in the signature of a device function and in the fields of a struct.

use quote::ToTokens;

use crate::ast::{Name, Owner, TypeName};
use crate::parse::{self, Request, plain};
use crate::signature::{self, Signature, dtype_of};
use crate::span::{Errors, SourceSpan};

/// The type of a parameter, of a field, or of a result.
#[derive(Clone, Debug)]
pub(crate) enum ParamType {
    /// A type with an error that has been reported.
    Wrong,
    /// `f32`, `T`, `usize`: a scalar.
    Scalar(TypeName),
    /// `Value<T>`: a scalar or a tile of any shape.
    Value(TypeName),
    /// `Ptr<T>`, `PtrMut<T>`.
    Pointer(TypeName, bool),
    /// `View<T, 2>`, `ViewMut<T, 2>`.
    View(TypeName, usize, bool),
    /// `(Value<T>, usize)`; no result is the empty tuple.
    Tuple(Vec<ParamType>),
    /// `Welford<T>`, `Self`.
    Struct(Owner),
    /// `impl Fn(Value<T>) -> Value<T>`: the parameters and the result of a closure.
    Function(Vec<ParamType>, Box<ParamType>),
}

/// Parses types, and collects the paths of structs.
pub(crate) struct Types<'a> {
    pub(crate) generics: &'a Signature,
    /// The meaning of `Self`.
    pub(crate) this: Option<&'a Owner>,
    pub(crate) requests: Vec<Request>,
}

const KINDS: &str = "a device function takes and gives `Value<T>` (a scalar or a tile), scalars such as `f32` and `usize`, `Ptr<T>`, `PtrMut<T>`, `View<T, 2>`, `#[device]` structs, tuples of them, and takes closures, `impl Fn(Value<T>) -> Value<T>`";

impl Types<'_> {
    /// Parses a result type: a closure is allowed only as a parameter.
    pub(crate) fn given(&mut self, ty: &syn::Type, errors: &mut Errors) -> ParamType {
        match self.read(ty, errors) {
            ParamType::Function(..) => wrong(ty, errors),
            ty => ty,
        }
    }

    pub(crate) fn read(&mut self, ty: &syn::Type, errors: &mut Errors) -> ParamType {
        match ty {
            syn::Type::Group(group) => self.read(&group.elem, errors),
            syn::Type::Paren(paren) => self.read(&paren.elem, errors),
            syn::Type::ImplTrait(bounds) => match bounds.bounds.first() {
                Some(syn::TypeParamBound::Trait(bound)) if bounds.bounds.len() == 1 => self.function(ty, &bound.path, errors),
                _ => wrong(ty, errors),
            },
            syn::Type::Tuple(tuple) => ParamType::Tuple(tuple.elems.iter().map(|elem| self.read(elem, errors)).collect()),
            syn::Type::Path(path) if path.qself.is_none() => self.path(ty, &path.path, errors),
            _ => wrong(ty, errors),
        }
    }

    fn path(&mut self, ty: &syn::Type, path: &syn::Path, errors: &mut Errors) -> ParamType {
        let span = SourceSpan::of(ty);
        let Some(last) = path.segments.last() else { return ParamType::Wrong };
        let name = plain(&last.ident);
        let arguments = match &last.arguments {
            syn::PathArguments::AngleBracketed(generics) => Some(generics),
            _ => None,
        };
        let elem = arguments.and_then(|generics| match generics.args.first() {
            Some(syn::GenericArgument::Type(inner)) => Some((elem_name(inner)?, generics.args.len())),
            _ => None,
        });
        match (name.as_str(), elem) {
            ("Value", Some((elem, 1))) => ParamType::Value(elem),
            ("Ptr", Some((elem, 1))) => ParamType::Pointer(elem, false),
            ("PtrMut", Some((elem, 1))) => ParamType::Pointer(elem, true),
            ("Value" | "Ptr" | "PtrMut", _) => {
                errors.push_help(span, format!("`{name}` has one element type"), format!("write `{name}<f32>`"));
                ParamType::Wrong
            }
            ("View" | "ViewMut", elem) => match (elem, signature::view_rank(ty)) {
                (Some((elem, 2)), Some(rank)) => ParamType::View(elem, rank, name == "ViewMut"),
                _ => {
                    let message = format!("`{name}` has an element type and a number of axes");
                    errors.push_help(span, message, format!("write `{name}<f32, 2>`"));
                    ParamType::Wrong
                }
            },
            ("Self", _) => match self.this {
                Some(this) => ParamType::Struct(Owner { path: Name { span, ..this.path.clone() }, ..this.clone() }),
                None => {
                    errors.push_help(span, "there is no `Self` here", "it is the struct in the functions of an `impl` block");
                    ParamType::Wrong
                }
            },
            _ if self.is_struct(path, &name) => {
                let text = parse::request(path, &mut self.requests);
                let generics = arguments.map_or_else(Vec::new, |arguments| parse::generics(arguments, errors));
                ParamType::Struct(Owner { path: Name { text, span: SourceSpan::of(path) }, generics })
            }
            _ => elem_name(ty).map_or_else(|| wrong(ty, errors), ParamType::Scalar),
        }
    }

    /// Is it the name of a struct? Names of element types are not, and neither are single letters, which are undeclared type parameters.
    fn is_struct(&self, path: &syn::Path, name: &str) -> bool {
        let is_generic = path.segments.len() == 1 && self.generics.types.iter().any(|generic| generic.name.text == name);
        let is_elem = dtype_of(&name.to_ascii_lowercase()).is_some() || signature::float8_named(name).is_some();
        parse::is_type_name(name) && name.len() > 1 && !is_generic && !is_elem && !parse::is_of_the_host(name)
    }

    /// `Fn(A, B) -> C`.
    fn function(&mut self, ty: &syn::Type, path: &syn::Path, errors: &mut Errors) -> ParamType {
        match path.segments.last().map(|last| (plain(&last.ident), &last.arguments)) {
            Some((name, syn::PathArguments::Parenthesized(arguments))) if name == "Fn" => {
                let inputs = arguments.inputs.iter().map(|input| self.read(&input.ty, errors)).collect();
                let output = match &arguments.output {
                    syn::ReturnType::Default => ParamType::Tuple(Vec::new()),
                    syn::ReturnType::Type(_, ty) => self.read(ty, errors),
                };
                ParamType::Function(inputs, Box::new(output))
            }
            _ => wrong(ty, errors),
        }
    }
}

fn wrong(ty: &syn::Type, errors: &mut Errors) -> ParamType {
    let written = ty.to_token_stream().to_string().replace(' ', "");
    errors.push_help(SourceSpan::of(ty), format!("`{written}` is no type of the language"), KINDS);
    ParamType::Wrong
}

/// The name of an element type; each call checks whether such a type exists.
fn elem_name(ty: &syn::Type) -> Option<TypeName> {
    match ty {
        syn::Type::Group(group) => elem_name(&group.elem),
        syn::Type::Paren(paren) => elem_name(&paren.elem),
        syn::Type::Path(path) if path.qself.is_none() => {
            let last = path.path.segments.last().filter(|last| last.arguments.is_none())?;
            Some(TypeName { text: Some(plain(&last.ident)), span: SourceSpan::of(ty) })
        }
        _ => None,
    }
}
