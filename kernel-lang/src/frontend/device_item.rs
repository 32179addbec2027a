//! `#[device] fn`: a function for rustc and editors, and beside it the macro that hands its source to kernels.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use crate::frontend::device::{self, DeviceFn, Home};
use crate::frontend::parse::plain;
use crate::frontend::place::{Errors, Place};
use crate::frontend::sources::{self, Source};
use crate::frontend::{attributes, words};

/// `#[device]` on an item.
///
/// `crate_name` is the name of the crate that is being compiled.
pub fn device(arguments: TokenStream, item: TokenStream, crate_name: &str) -> TokenStream {
    let item = match super::function(&item, "a device function", "write `#[device] fn name(x: Value<f32>) -> Value<f32> { .. }`") {
        Ok(item) => item,
        Err(tokens) => return tokens,
    };
    let mut errors = Errors::default();
    let krate = attributes::device(arguments, &mut errors);
    let mut source = Source::of(&item, crate_name);
    let home = Home::User { key: source.key.to_string(), file: source.file.clone(), foreign: None };
    let func = device::parse(&item, home, &mut errors);
    let name = &func.name;
    if words::find(&name.text).is_some() {
        errors.push_help(
            name.place,
            format!("`{}` is a word of the language", name.text),
            "choose another name: in a kernel, this one means the word",
        );
    }
    // Other circles cannot be seen from here; rustc reports that it finds no end of them.
    let selfs = [name.text.clone(), format!("self::{}", name.text)];
    if let Some(request) = func.requests.iter().find(|request| selfs.contains(&request.text)) {
        errors.push_help(
            Place::of(&request.path),
            format!("`{0}` calls itself: `{0}` calls `{0}`", name.text),
            "a device function becomes a part of its caller, so that it cannot recurse; write a loop",
        );
    }
    let requests: Vec<_> = func.requests.iter().filter(|request| !selfs.contains(&request.text)).cloned().collect();
    source.is_broken = !errors.is_empty();
    let (function, errors) = (rust_function(&item, &func, &krate), errors.into_tokens());
    let (vis, ident, cfgs) = (&item.vis, &item.sig.ident, cfgs(&item));
    let carrier = if requests.is_empty() {
        carrier(&[source], vis, ident, &cfgs)
    } else {
        let texts = sources::texts(&requests);
        let state = quote!({ #texts } { #(#cfgs)* } { #vis } #ident #source);
        let call = sources::collect(&requests, &quote!(#krate::__device), &state);
        quote!(#(#cfgs)* #call)
    };
    quote!(#errors #function #carrier)
}

/// What the collected sources of a device function's callees end in: the macro that hands on all of them.
pub fn device_bundle(tokens: TokenStream) -> TokenStream {
    let read = || {
        let (state, bundles) = sources::collected(tokens)?;
        let (requests, cfgs, vis, ident, source) = syn::parse::Parser::parse2(state_of_device, state)?;
        let bundle = sources::bundle(source, &requests, bundles);
        Ok(carrier(&bundle, &vis, &ident, &cfgs))
    };
    read().unwrap_or_else(|error: syn::Error| error.to_compile_error())
}

type State = (Vec<String>, Vec<syn::Attribute>, syn::Visibility, Ident, Source);

fn state_of_device(input: syn::parse::ParseStream<'_>) -> syn::Result<State> {
    let (texts, cfgs, vis);
    syn::braced!(texts in input);
    let mut requests = Vec::new();
    while !texts.is_empty() {
        requests.push(texts.parse::<syn::LitStr>()?.value());
    }
    syn::braced!(cfgs in input);
    let cfgs = cfgs.call(syn::Attribute::parse_outer)?;
    syn::braced!(vis in input);
    let vis = vis.parse()?;
    let ident = input.parse()?;
    let source;
    syn::braced!(source in input);
    Ok((requests, cfgs, vis, ident, source.parse()?))
}

/// `macro_rules! f`, visible where the function is.
fn carrier(bundle: &[Source], vis: &syn::Visibility, ident: &Ident, cfgs: &[syn::Attribute]) -> TokenStream {
    let (name, carrier) = Source::carrier(bundle, matches!(vis, syn::Visibility::Public(_)));
    quote! {
        #(#cfgs)* #carrier
        #(#cfgs)*
        #[doc(hidden)]
        #[allow(unused_imports, unreachable_pub, reason = "for kernels that call the function")]
        #vis use #name as #ident;
    }
}

/// Conditions that decide whether the item is there at all.
fn cfgs(item: &syn::ItemFn) -> Vec<syn::Attribute> {
    item.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg")).cloned().collect()
}

/// The function as Rust sees it: its name, its signature and its documentation.
fn rust_function(item: &syn::ItemFn, func: &DeviceFn, krate: &TokenStream) -> TokenStream {
    let (attrs, vis, ident) = (&item.attrs, &item.vis, &item.sig.ident);
    let generics = item.sig.generics.params.iter().filter_map(|param| match param {
        syn::GenericParam::Type(param) => {
            let generic = func.types.iter().find(|generic| generic.ident == param.ident)?;
            let (ident, bound) = (&generic.ident, format_ident!("{}", generic.bound));
            Some(quote!(#ident: #krate::__private::#bound))
        }
        syn::GenericParam::Const(param) => {
            let generic = func.consts.iter().find(|generic| generic.ident == param.ident)?;
            let (ident, ty) = (&generic.ident, &generic.ty);
            Some(quote!(const #ident: #ty))
        }
        syn::GenericParam::Lifetime(_) => None,
    });
    let params = item.sig.inputs.iter().zip(&func.params).filter_map(|(input, param)| match input {
        syn::FnArg::Typed(typed) => {
            let name = match &*typed.pat {
                syn::Pat::Ident(pat) => pat.ident.clone(),
                other => format_ident!("_parameter", span = other.span()),
            };
            let ty = rust_type(&typed.ty, &param.ty, krate);
            Some(quote!(#name: #ty))
        }
        syn::FnArg::Receiver(_) => None,
    });
    let output = match &item.sig.output {
        syn::ReturnType::Default => None,
        syn::ReturnType::Type(arrow, ty) => {
            let ty = rust_type(ty, &func.output, krate);
            Some(quote!(#arrow #ty))
        }
    };
    let message = format!("`{}` is a device function: it has a meaning only inside `#[kernel]`", plain(ident));
    quote! {
        #(#attrs)*
        #[allow(
            dead_code, unused_variables, clippy::too_many_arguments, clippy::extra_unused_type_parameters,
            reason = "called from kernels, which take its source"
        )]
        #vis fn #ident<#(#generics),*>(#(#params),*) #output {
            ::core::panic!(#message)
        }
    }
}

/// A type of the language as a type of Rust: the markers that no import brings into scope get their paths.
fn rust_type(written: &syn::Type, ty: &device::ParamType, krate: &TokenStream) -> TokenStream {
    match (written, ty) {
        (_, device::ParamType::Wrong) => quote!(()),
        (syn::Type::Tuple(tuple), device::ParamType::Tuple(list)) => {
            let parts = tuple.elems.iter().zip(list).map(|(written, ty)| rust_type(written, ty, krate));
            quote!((#(#parts,)*))
        }
        (syn::Type::Path(path), device::ParamType::Value(_) | device::ParamType::Pointer(..)) => match path.path.segments.last() {
            Some(last) => quote_spanned!(last.ident.span()=> #krate::dsl::#last),
            None => written.to_token_stream(),
        },
        (syn::Type::ImplTrait(bounds), device::ParamType::Function(inputs, output)) => match bounds.bounds.first() {
            Some(syn::TypeParamBound::Trait(bound)) => rust_closure(&bound.path, inputs, output, krate),
            _ => written.to_token_stream(),
        },
        _ => written.to_token_stream(),
    }
}

fn rust_closure(path: &syn::Path, inputs: &[device::ParamType], output: &device::ParamType, krate: &TokenStream) -> TokenStream {
    let Some(syn::PathArguments::Parenthesized(written)) = path.segments.last().map(|last| &last.arguments) else { return quote!(()) };
    let inputs = written.inputs.iter().zip(inputs).map(|(written, ty)| rust_type(&written.ty, ty, krate));
    let output = match &written.output {
        syn::ReturnType::Default => quote!(()),
        syn::ReturnType::Type(_, ty) => rust_type(ty, output, krate),
    };
    quote!(impl ::core::ops::Fn(#(#inputs),*) -> #output)
}
