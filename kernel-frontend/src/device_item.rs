//! The `#[device]` attribute on a function, a struct or a module: it emits the items for rustc and editors, and for each item a macro that
//! passes on its source.

use std::rc::Rc;

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};

use crate::device::{self, Home};
use crate::device_struct;
use crate::elaborate::check_function;
use crate::parse::{self, Request};
use crate::sources::{self, Definition, Source};
use crate::span::{Errors, SourceSpan};
use crate::{attributes, builtins, depth, launcher, rust_item, syntax};

const FORMS: &str =
    "write `#[device] fn name(x: Value<f32>) -> Value<f32> { .. }`, `#[device] struct Name { .. }` or `#[device] mod name { .. }`";

/// Expands `#[device]` on an item.
///
/// `crate_name` is the name of the crate that is being compiled.
pub fn device(arguments: TokenStream, item: TokenStream, crate_name: &str) -> TokenStream {
    if let Some(span) = depth::exceeded(&item) {
        return depth::explained(span);
    }
    let parsed = match syn::parse2::<syn::Item>(item.clone()) {
        Ok(parsed) => parsed,
        Err(error) => return syntax::explained(&item, &error),
    };
    let mut errors = Errors::default();
    let krate = attributes::device(arguments, &mut errors);
    match parsed {
        syn::Item::Fn(function) => define(vec![Definition::Function(function)], &krate, crate_name, errors),
        syn::Item::Struct(item) => define(vec![Definition::Struct(item, Vec::new())], &krate, crate_name, errors),
        syn::Item::Mod(syn::ItemMod { attrs, vis, mod_token, ident, content: Some((_, items)), .. }) => {
            let (definitions, others) = members(items);
            let defined = define(definitions, &krate, crate_name, errors);
            quote!(#(#attrs)* #vis #mod_token #ident { #(#others)* #defined })
        }
        syn::Item::Impl(_) => {
            let help = "put the struct and the block into one module: `#[device] mod name { struct Name { .. } impl Name { .. } }`";
            launcher::foreign(&item, "a device struct and its functions stand in one `#[device] mod`", help)
        }
        syn::Item::Mod(_) => launcher::foreign(&item, "a device module has its items in braces", "write `#[device] mod name { .. }`"),
        _ => launcher::foreign(&item, "this is no device function, and no struct", FORMS),
    }
}

/// Splits a module into its device functions and structs, and the other items: imports, kernels, and host code.
fn members(items: Vec<syn::Item>) -> (Vec<Definition>, Vec<syn::Item>) {
    let (mut definitions, mut others) = (Vec::new(), Vec::new());
    for item in items {
        match item {
            syn::Item::Fn(item) if !device::has_another_meaning(&item) => definitions.push(Definition::Function(item)),
            syn::Item::Struct(item) => definitions.push(Definition::Struct(item, Vec::new())),
            other => others.push(other),
        }
    }
    let mut rest = Vec::new();
    for item in others {
        let owner = definitions.iter_mut().find_map(|definition| match (definition, &item) {
            (Definition::Struct(owner, impls), syn::Item::Impl(block)) if device_struct::is_impl_of(block, &owner.ident) => Some(impls),
            _ => None,
        });
        match (owner, item) {
            (Some(impls), syn::Item::Impl(block)) => impls.push(block),
            (_, item) => rest.push(item),
        }
    }
    (definitions, rest)
}

/// Emits the items for rustc, and the macros that pass on the sources.
fn define(definitions: Vec<Definition>, krate: &TokenStream, crate_name: &str, mut errors: Errors) -> TokenStream {
    let mut sources: Vec<Source> = definitions.iter().map(|definition| Source::of(definition, crate_name)).collect();
    let keys: Vec<(String, Ident)> =
        definitions.iter().zip(&sources).map(|(definition, source)| (parse::plain(definition.ident()), source.key.clone())).collect();
    let (mut items, mut requests) = (TokenStream::new(), Vec::new());
    for (definition, source) in definitions.iter().zip(&mut sources) {
        let before = errors.len();
        let home = Home::User { key: source.key.to_string(), file: source.file.clone(), foreign: None };
        let (item, named) = item(definition, home, krate, &mut errors);
        items.extend(item);
        for request in named {
            // Names in the same module are resolved here, so they may form cycles. Cycles between other items are not detected here; rustc
            // reports endless macro recursion.
            match keys.iter().find(|(name, _)| request.text == *name || request.text == format!("self::{name}")) {
                Some((_, key)) => source.names.push((request.text, key.clone())),
                None => parse::add_request(request, &mut requests),
            }
        }
        source.is_broken = errors.len() > before;
    }
    let errors = errors.into_tokens();
    let heads: Vec<Head> = definitions.iter().map(Head::of).collect();
    let carriers = if requests.is_empty() {
        carriers(&heads, sources::bundles(sources, &[], Vec::new()))
    } else {
        let texts = sources::texts(&requests);
        let state = quote!({ #texts } #({ #heads #sources })*);
        let call = sources::collect(&requests, &quote!(#krate::__device), &state);
        // A function that is disabled by `cfg` requests nothing.
        let cfgs = if let [head] = &heads[..] { &head.cfgs[..] } else { &[] };
        quote!(#(#cfgs)* #call)
    };
    quote!(#errors #items #carriers)
}

/// The item as rustc sees it, and the paths to other items that it uses.
fn item(definition: &Definition, home: Home, krate: &TokenStream, errors: &mut Errors) -> (TokenStream, Vec<Request>) {
    match definition {
        Definition::Function(item) => {
            let func = device::parse(item, home, errors);
            let name = &func.name;
            if builtins::find(&name.text).is_some() {
                errors.push_help(
                    name.span,
                    format!("`{}` is a builtin", name.text),
                    "choose another name: in a kernel, this one means the builtin",
                );
            }
            let selfs = [name.text.clone(), format!("self::{}", name.text)];
            if let Some(request) = func.requests.iter().find(|request| selfs.contains(&request.text)) {
                errors.push_help(
                    SourceSpan::of(&request.path),
                    format!("`{0}` calls itself: `{0}` calls `{0}`", name.text),
                    "a device function becomes a part of its caller, so that it cannot recurse; write a loop",
                );
            }
            let item = rust_item::function(item, &func, krate);
            let func = Rc::new(func);
            check_function(&func, errors);
            (item, func.requests.clone())
        }
        Definition::Struct(item, impls) => {
            let parsed = device_struct::parse(item, impls, &home, errors);
            parsed.methods.iter().for_each(|method| check_function(method, errors));
            (rust_item::structure(item, impls, &parsed, krate), parsed.requests)
        }
    }
}

/// The final callback after the sources of an item's callees are collected: emits the macros that pass on all of them.
pub fn device_bundle(tokens: TokenStream) -> TokenStream {
    let read = || {
        let (state, bundles) = sources::collected(tokens)?;
        let (requests, heads, sources) = syn::parse::Parser::parse2(state_of_device, state)?;
        Ok(carriers(&heads, sources::bundles(sources, &requests, bundles)))
    };
    read().unwrap_or_else(|error: syn::Error| error.to_compile_error())
}

/// The parts of an item that its carrier macro needs: its `cfg` conditions, its visibility and its name.
struct Head {
    cfgs: Vec<syn::Attribute>,
    vis: syn::Visibility,
    ident: Ident,
}

impl Head {
    fn of(definition: &Definition) -> Head {
        let (attrs, vis) = match definition {
            Definition::Function(item) => (&item.attrs, &item.vis),
            Definition::Struct(item, _) => (&item.attrs, &item.vis),
        };
        let cfgs = attrs.iter().filter(|attribute| attribute.path().is_ident("cfg")).cloned().collect();
        Head { cfgs, vis: vis.clone(), ident: definition.ident().clone() }
    }
}

impl ToTokens for Head {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Head { cfgs, vis, ident } = self;
        tokens.extend(quote!({ #(#cfgs)* } { #vis } #ident));
    }
}

impl syn::parse::Parse for Head {
    fn parse(input: syn::parse::ParseStream<'_>) -> syn::Result<Head> {
        let (cfgs, vis);
        syn::braced!(cfgs in input);
        syn::braced!(vis in input);
        Ok(Head { cfgs: cfgs.call(syn::Attribute::parse_outer)?, vis: vis.parse()?, ident: input.parse()? })
    }
}

fn state_of_device(input: syn::parse::ParseStream<'_>) -> syn::Result<(Vec<String>, Vec<Head>, Vec<Source>)> {
    let texts;
    syn::braced!(texts in input);
    let (mut requests, mut heads, mut sources) = (Vec::new(), Vec::new(), Vec::new());
    while !texts.is_empty() {
        requests.push(texts.parse::<syn::LitStr>()?.value());
    }
    while !input.is_empty() {
        let (one, source);
        syn::braced!(one in input);
        heads.push(one.parse()?);
        syn::braced!(source in one);
        sources.push(source.parse()?);
    }
    Ok((requests, heads, sources))
}

/// Emits `macro_rules! f` for each item, with the item's visibility.
fn carriers(heads: &[Head], bundles: Vec<Vec<Source>>) -> TokenStream {
    let carriers = heads.iter().zip(&bundles).map(|(Head { cfgs, vis, ident }, bundle)| {
        let (name, carrier) = Source::carrier(bundle, device_struct::is_public(vis));
        quote! {
            #(#cfgs)* #carrier
            #(#cfgs)*
            #[doc(hidden)]
            #[allow(unused_imports, unreachable_pub, reason = "for kernels that name the item")]
            #vis use #name as #ident;
        }
    });
    carriers.collect()
}
