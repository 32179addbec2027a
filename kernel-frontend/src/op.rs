//! `#[op("ns::name")]` on a function of tensors: the function, its definition with a schema, and a call that a recording can show.
//!
//! The body stays ordinary Rust. The schema is that of PyTorch, from the types of the signature:
//!
//! | Rust | schema |
//! |---|---|
//! | `&Tensor`, `&mut Tensor` | `Tensor`, `Tensor(a!)` |
//! | `Option<&Tensor>` | `Tensor?` |
//! | `&[Tensor]`, `&[&Tensor]` | `Tensor[]` |
//! | integers, `Dim`, `&Dim` | `SymInt` |
//! | `f32`, `f64` | `float` |
//! | `bool`, `&str`, `Dtype` | `bool`, `str`, `ScalarType` |

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream};

use crate::span::{Errors, SourceSpan};

/// The arguments of the attribute.
struct Arguments {
    name: syn::LitStr,
    krate: TokenStream,
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> syn::Result<Arguments> {
        let name = input.parse()?;
        let mut krate = quote!(::galatea);
        if input.parse::<Option<syn::Token![,]>>()?.is_some() && !input.is_empty() {
            input.parse::<syn::Token![crate]>()?;
            input.parse::<syn::Token![=]>()?;
            krate = syn::Path::parse_mod_style(input)?.to_token_stream();
            input.parse::<Option<syn::Token![,]>>()?;
        }
        Ok(Arguments { name, krate })
    }
}

/// Expands the attribute.
pub(crate) fn expand(arguments: TokenStream, item: &TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let span = SourceSpan::of(&arguments);
    let arguments = syn::parse2::<Arguments>(arguments);
    let Ok(function) = syn::parse2::<syn::ItemFn>(item.clone()) else {
        errors.push_help(
            SourceSpan::of(item),
            "an op is a function",
            "write `#[op(\"namespace::name\")]` in front of a function of tensors",
        );
        let errors = errors.into_tokens();
        return quote!(#errors #item);
    };
    let Ok(Arguments { name, krate }) = arguments else {
        errors.push_help(span, "an op has a name", "write `#[op(\"namespace::name\")]`");
        let errors = errors.into_tokens();
        return quote!(#errors #item);
    };
    check_name(&name, &mut errors);
    let signature = Signature::of(&function, &mut errors);
    if !errors.is_empty() {
        let errors = errors.into_tokens();
        return quote!(#errors #item);
    }
    signature.tokens(&function, &name.value(), &krate)
}

fn check_name(name: &syn::LitStr, errors: &mut Errors) {
    let value = name.value();
    let is_word = |word: &str| {
        let mut chars = word.chars();
        chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_') && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let is_name = value
        .split_once("::")
        .is_some_and(|(namespace, name)| is_word(namespace) && name.split('.').all(is_word) && name.split('.').count() <= 2);
    if !is_name {
        let message = format!("`{value}` is no name of an op");
        errors.push_help(SourceSpan::of(name), message, "a name has a namespace: `mylib::silu`, or `mylib::silu.out` with an overload");
    }
}

/// The parameters of an op.
struct Signature<'a> {
    params: Vec<Param<'a>>,
    /// The part of the schema behind the arrow.
    returns: String,
}

struct Param<'a> {
    ident: &'a syn::Ident,
    schema: String,
    /// A tensor that the op writes.
    is_written: bool,
}

impl<'a> Signature<'a> {
    fn of(function: &'a syn::ItemFn, errors: &mut Errors) -> Signature<'a> {
        let sig = &function.sig;
        for (is_there, span, what) in [
            (sig.asyncness.is_some(), SourceSpan::of(&sig.asyncness), "`async`"),
            (!matches!(sig.safety, syn::Safety::Default), SourceSpan::of(&sig.safety), "`unsafe`"),
            (!sig.generics.params.is_empty(), SourceSpan::of(&sig.generics), "generic"),
            (sig.variadic.is_some(), SourceSpan::of(&sig.variadic), "variadic"),
        ] {
            if is_there {
                errors.push_help(span, format!("an op cannot be {what}"), "write an ordinary function of tensors");
            }
        }
        let mut letters = 'a'..='z';
        let mut params = Vec::new();
        for input in &sig.inputs {
            let syn::FnArg::Typed(typed) = input else {
                errors.push_help(SourceSpan::of(input), "an op has no receiver", "write a function, and pass the fields that it needs");
                continue;
            };
            let syn::Pat::Ident(syn::PatIdent { ident, .. }) = &*typed.pat else {
                errors.push_help(SourceSpan::of(&typed.pat), "a parameter of an op has a name", "write `x: &Tensor`");
                continue;
            };
            match schema_type(&typed.ty) {
                Some("Tensor!") => {
                    let letter = letters.next().unwrap_or('z');
                    params.push(Param { ident, schema: format!("Tensor({letter}!) {ident}"), is_written: true });
                }
                Some(ty) => params.push(Param { ident, schema: format!("{ty} {ident}"), is_written: false }),
                None => errors.push_help(
                    SourceSpan::of(&typed.ty),
                    format!("an op cannot take `{}`", text(&typed.ty)),
                    "a parameter is `&Tensor`, `&mut Tensor`, `Option<&Tensor>`, `&[Tensor]`, an integer, `Dim`, `f32`, `f64`, `bool`, `&str` or `Dtype`",
                ),
            }
        }
        let returns = match &sig.output {
            syn::ReturnType::Type(_, ty) => result_of(ty).and_then(returned),
            syn::ReturnType::Default => None,
        };
        if returns.is_none() {
            errors.push_help(
                SourceSpan::of(&sig.output),
                "an op returns a `Result` of tensors",
                "write `-> Result<Tensor>`, `-> Result<(Tensor, Tensor)>` or `-> Result<()>`",
            );
        }
        Signature { params, returns: returns.unwrap_or_default() }
    }

    fn tokens(&self, function: &syn::ItemFn, name: &str, krate: &TokenStream) -> TokenStream {
        let (attrs, vis, sig, block) = (&function.attrs, &function.vis, &function.sig, &function.block);
        let (ident, inputs, output) = (&sig.ident, &sig.inputs, &sig.output);
        let params: Vec<&str> = self.params.iter().map(|param| &*param.schema).collect();
        let schema = format!("{name}({}) -> {}", params.join(", "), self.returns);
        let args = self.params.iter().map(|Param { ident, .. }| {
            let text = ident.to_string();
            quote!((#text, &#ident))
        });
        // A tensor that the body writes is lent to it, and looked at again after it.
        let passed =
            self.params.iter().map(|Param { ident, is_written, .. }| if *is_written { quote!(&mut *#ident) } else { quote!(#ident) });
        let written = self.params.iter().filter(|param| param.is_written).map(|param| param.ident);
        let private = quote!(#krate::__private);
        // Variables with macro hygiene, so that a parameter may have any name. Functions have none.
        let [call, result] = ["call", "result"].map(|name| syn::Ident::new(name, Span::mixed_site()));
        let doc = format!("The definition of the op `{name}`.");
        quote! {
            #[doc = #doc]
            #vis mod #ident {
                #[doc = #doc]
                pub static DEF: #private::OpDef = #private::OpDef { name: #name, schema: #schema, file: ::core::file!(), line: ::core::line!() };
            }

            #(#attrs)*
            #vis fn #ident(#inputs) #output {
                fn galatea_body(#inputs) #output #block
                let #call = #private::OpCall::begin(&#ident::DEF, &[#(#args),*]);
                let #result = galatea_body(#(#passed),*);
                #call.end(&#result, &[#(&*#written),*]);
                #result
            }
        }
    }
}

/// The type of a parameter in a schema; `Tensor!` for a tensor that is written.
fn schema_type(ty: &syn::Type) -> Option<&'static str> {
    match ty {
        syn::Type::Reference(reference) => match &*reference.elem {
            syn::Type::Slice(slice) if reference.mutability.is_none() => match schema_type(&slice.elem) {
                _ if last_word(&slice.elem).as_deref() == Some("Tensor") => Some("Tensor[]"),
                Some("Tensor") => Some("Tensor[]"),
                _ => None,
            },
            elem => match (last_word(elem)?.as_str(), reference.mutability) {
                ("Tensor", Some(_)) => Some("Tensor!"),
                ("Tensor", None) => Some("Tensor"),
                ("str", None) => Some("str"),
                ("Dim", None) => Some("SymInt"),
                _ => None,
            },
        },
        syn::Type::Group(group) => schema_type(&group.elem),
        syn::Type::Paren(paren) => schema_type(&paren.elem),
        ty => match last_word(ty)?.as_str() {
            "Option" => (schema_type(generic_of(ty)?)? == "Tensor").then_some("Tensor?"),
            "i8" | "i16" | "i32" | "i64" | "isize" | "u8" | "u16" | "u32" | "u64" | "usize" | "Dim" => Some("SymInt"),
            "f32" | "f64" => Some("float"),
            "bool" => Some("bool"),
            "Dtype" => Some("ScalarType"),
            _ => None,
        },
    }
}

/// The `T` of `Result<T>`.
fn result_of(ty: &syn::Type) -> Option<&syn::Type> {
    (last_word(ty)? == "Result").then(|| generic_of(ty)).flatten()
}

/// The results in a schema.
fn returned(ty: &syn::Type) -> Option<String> {
    match ty {
        syn::Type::Tuple(tuple) if tuple.elems.is_empty() => Some("()".to_owned()),
        syn::Type::Tuple(tuple) if (2..=3).contains(&tuple.elems.len()) => {
            let all = tuple.elems.iter().map(|elem| (last_word(elem)? == "Tensor").then_some("Tensor")).collect::<Option<Vec<_>>>()?;
            Some(format!("({})", all.join(", ")))
        }
        ty => match last_word(ty)?.as_str() {
            "Tensor" => Some("Tensor".to_owned()),
            "Vec" => (last_word(generic_of(ty)?)? == "Tensor").then(|| "Tensor[]".to_owned()),
            _ => None,
        },
    }
}

/// The last segment of a path.
fn last_word(ty: &syn::Type) -> Option<String> {
    match ty {
        syn::Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        syn::Type::Group(group) => last_word(&group.elem),
        syn::Type::Paren(paren) => last_word(&paren.elem),
        _ => None,
    }
}

/// The first generic argument of a path.
fn generic_of(ty: &syn::Type) -> Option<&syn::Type> {
    let syn::Type::Path(path) = ty else { return None };
    match &path.path.segments.last()?.arguments {
        syn::PathArguments::AngleBracketed(generics) => generics.args.iter().find_map(|argument| match argument {
            syn::GenericArgument::Type(ty) => Some(ty),
            _ => None,
        }),
        _ => None,
    }
}

/// A type as a user writes it.
fn text(ty: &syn::Type) -> String {
    let spaced = ty.to_token_stream().to_string();
    [(" :: ", "::"), (" < ", "<"), (" >", ">"), ("& ", "&"), (" ,", ","), ("[ ", "["), (" ]", "]")]
        .iter()
        .fold(spaced, |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(signature: &str) -> String {
        let tokens: TokenStream = format!("{signature} {{}}").parse().expect("it is Rust");
        let expanded = expand(quote!("ns::f"), &tokens).to_string();
        expanded.split("schema : \"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or(&expanded).to_owned()
    }

    #[test]
    fn schemas_are_those_of_torch() {
        for (signature, expected) in [
            ("fn f(x: &Tensor) -> Result<Tensor>", "ns::f(Tensor x) -> Tensor"),
            ("pub fn f(x: &ops::Tensor, y: &mut Tensor) -> galatea::Result<()>", "ns::f(Tensor x, Tensor(a!) y) -> ()"),
            ("fn f(a: &mut Tensor, b: &mut Tensor) -> Result<()>", "ns::f(Tensor(a!) a, Tensor(b!) b) -> ()"),
            (
                "fn f(x: Option<&Tensor>, all: &[Tensor], some: &[&Tensor]) -> Result<Vec<Tensor>>",
                "ns::f(Tensor? x, Tensor[] all, Tensor[] some) -> Tensor[]",
            ),
            (
                "fn f(n: usize, d: Dim, e: &Dim, a: f32, b: bool, s: &str, t: Dtype) -> Result<(Tensor, Tensor)>",
                "ns::f(SymInt n, SymInt d, SymInt e, float a, bool b, str s, ScalarType t) -> (Tensor, Tensor)",
            ),
        ] {
            assert_eq!(schema(signature), expected);
        }
    }
}
