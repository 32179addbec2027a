//! Transport of the source of device functions and structs to the kernels that name them, also across modules and crates.
//!
//! A macro sees only the tokens of its own item. Therefore `#[device] fn f` becomes a function `f`, for editors and path resolution, and a
//! `macro_rules! f` beside it, which passes on its source. The two live in different namespaces, so an import or a re-export applies to both.
//! A kernel that calls `f` and `m::g` expands to a launcher in which
//!
//! ```text
//! f!{ { (m::g) (::galatea::__kernel) } { the kernel } }
//! ```
//!
//! takes the position of the compiled kernel. `f!` appends its source and calls the next macro in the list, `m::g!` does the same, and the
//! last one is a macro of this crate that receives everything: the kernel, and a bundle for each path in it. A device function that calls
//! others collects their bundles in the same way, once, at its definition: names resolve in the scope of its author, and its own bundle is
//! complete. rustc resolves every path and reports unresolved paths at the user's token. If a path is not resolved, the kernel never arrives
//! here; its other errors are found beforehand, with an unknown value for each such call (`elaborate::check_kernel`).
//!
//! Structs use the same mechanism: `#[device] struct S` emits a `macro_rules! S`. Its methods have no path of their own, so they must be part
//! of its source: a `#[device] mod` contains a struct and its `impl` blocks. Items in one `mod` name each other without rustc, and may do so in
//! cycles.
//!
//! A bundle is a list of `{ key "crate" "file" false { path = key, .. } fn .. }`, or with `struct .. impl ..` instead of the function. The
//! item that was named comes first; the `bool` tells whether it is broken.

use std::rc::Rc;

use proc_macro2::{Delimiter, Group, Ident, Literal, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;

use crate::device::{self, Devices, Home};
use crate::device_struct;
use crate::parse::{Request, plain};
use crate::span::Errors;

/// An item whose source a macro passes on.
#[derive(Clone)]
pub(crate) enum Definition {
    Function(syn::ItemFn),
    /// A struct and its `impl` blocks.
    Struct(syn::ItemStruct, Vec<syn::ItemImpl>),
}

/// A device function or a struct as an entry of a bundle.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) key: Ident,
    /// The crate that defines it.
    pub(crate) krate: String,
    pub(crate) file: String,
    /// Has an error in it been reported at its definition? Kernels then report nothing about it.
    pub(crate) is_broken: bool,
    /// The resolution of each path in it.
    pub(crate) names: Vec<(String, Ident)>,
    pub(crate) definition: Definition,
}

/// Generates a call that collects the bundles of `requests` and ends in `callback! { {} { state } { bundle } { bundle } .. }`.
pub(crate) fn collect(requests: &[Request], callback: &TokenStream, state: &TokenStream) -> TokenStream {
    let mut stops = requests.iter().map(|request| request.path.to_token_stream()).chain([callback.clone()]);
    let first = stops.next().unwrap_or_default();
    quote!(#first! { { #((#stops))* } { #state } })
}

/// Parses the input of the callback of [`collect`]: the state, and the bundles in the order of the requests.
pub(crate) fn collected(tokens: TokenStream) -> syn::Result<(TokenStream, Vec<Vec<Source>>)> {
    let mut groups = tokens.into_iter().filter_map(|token| if let TokenTree::Group(group) = token { Some(group.stream()) } else { None });
    // The list of remaining macros, which is empty now.
    groups.next();
    let state = groups.next().unwrap_or_default();
    let bundles = groups.map(syn::parse2::<Bundle>).map(|bundle| Ok(bundle?.0)).collect::<syn::Result<_>>()?;
    Ok((state, bundles))
}

struct Bundle(Vec<Source>);

impl Parse for Bundle {
    fn parse(input: ParseStream<'_>) -> syn::Result<Bundle> {
        let mut sources = Vec::new();
        while !input.is_empty() {
            let inner;
            syn::braced!(inner in input);
            sources.push(inner.parse()?);
        }
        Ok(Bundle(sources))
    }
}

impl Parse for Source {
    fn parse(input: ParseStream<'_>) -> syn::Result<Source> {
        let key = input.parse()?;
        let krate = input.parse::<syn::LitStr>()?.value();
        let file = input.parse::<syn::LitStr>()?.value();
        let is_broken = input.parse::<syn::LitBool>()?.value;
        let inner;
        syn::braced!(inner in input);
        let name = |input: ParseStream<'_>| {
            let path = input.parse::<syn::LitStr>()?.value();
            input.parse::<syn::Token![=]>()?;
            Ok((path, input.parse()?))
        };
        let names = Punctuated::<_, syn::Token![,]>::parse_terminated_with(&inner, name)?.into_iter().collect();
        let definition = match input.parse()? {
            syn::Item::Fn(item) => Definition::Function(item),
            syn::Item::Struct(item) => {
                let mut impls = Vec::new();
                while !input.is_empty() {
                    impls.push(input.parse()?);
                }
                Definition::Struct(item, impls)
            }
            other => return Err(syn::Error::new_spanned(other, "a function or a struct is handed on")),
        };
        Ok(Source { key, krate, file, is_broken, names, definition })
    }
}

impl ToTokens for Source {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Source { key, krate, file, is_broken, names, definition } = self;
        let names = names.iter().map(|(path, key)| quote!(#path = #key));
        tokens.extend(quote!({ #key #krate #file #is_broken { #(#names),* } #definition }));
    }
}

impl ToTokens for Definition {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Definition::Function(item) => item.to_tokens(tokens),
            Definition::Struct(item, impls) => tokens.extend(quote!(#item #(#impls)*)),
        }
    }
}

impl Definition {
    pub(crate) fn ident(&self) -> &Ident {
        match self {
            Definition::Function(item) => &item.sig.ident,
            Definition::Struct(item, _) => &item.ident,
        }
    }

    /// The definition without the parts that only rustc reads.
    fn bare(&self) -> Definition {
        match self {
            Definition::Function(item) => {
                let mut item = item.clone();
                item.attrs.clear();
                item.vis = syn::Visibility::Inherited;
                Definition::Function(item)
            }
            Definition::Struct(item, impls) => {
                let (mut item, mut impls) = (item.clone(), impls.clone());
                item.attrs.clear();
                item.vis = syn::Visibility::Inherited;
                item.fields.iter_mut().for_each(|field| field.attrs.clear());
                for block in &mut impls {
                    block.attrs.clear();
                    for item in &mut block.items {
                        if let syn::ImplItem::Fn(method) = item {
                            method.attrs.clear();
                        }
                    }
                }
                Definition::Struct(item, impls)
            }
        }
    }
}

impl Source {
    /// The source of a function or a struct in the user's file.
    pub(crate) fn of(definition: &Definition, krate: &str) -> Source {
        let definition = definition.bare();
        let ident = definition.ident();
        let (file, start) = (ident.span().file(), ident.span().start());
        // Two definitions of a crate have the same span only if one macro makes both. If their texts are equal, too, they share a key, and
        // kernels use one of them for both.
        let text = format!("{krate}:{file}:{}:{}:{}", start.line, start.column, definition.to_token_stream());
        let key = format_ident!("{}_{:016x}", plain(ident), hash(&text), span = Span::call_site());
        Source { key, krate: krate.to_string(), file, is_broken: false, names: Vec::new(), definition }
    }

    /// Generates the macro that passes on a bundle, and its name.
    pub(crate) fn carrier(bundle: &[Source], is_public: bool) -> (Ident, TokenStream) {
        let name = format_ident!("__galatea_{}", bundle[0].key, span = Span::call_site());
        let export = is_public.then(|| quote!(#[macro_export]));
        let dollar = quote!($);
        let many = |name: &str| {
            let name = format_ident!("{name}", span = Span::call_site());
            quote!(#dollar (#dollar #name)*)
        };
        let declare = |name: &str| {
            let name = format_ident!("{name}", span = Span::call_site());
            quote!(#dollar (#dollar #name:tt)*)
        };
        let (next, rest, state) = (declare("next"), declare("rest"), declare("state"));
        let (then, others, so_far) = (many("next"), many("rest"), many("state"));
        // Spans are kept, so that an error in the function is shown in it.
        let bundle = Group::new(Delimiter::Brace, quote!(#(#bundle)*));
        let tokens = quote! {
            #[doc(hidden)]
            #[allow(unused_macros, reason = "used by kernels, if at all")]
            #export
            macro_rules! #name {
                () => {};
                ({ (#next) #rest } #state) => { #then! { { #others } #so_far #bundle } };
            }
        };
        (name, tokens)
    }
}

/// The bundles of the items that one macro defines, each with everything that it names: the definitions themselves, and the bundles of other
/// paths.
pub(crate) fn bundles(mut own: Vec<Source>, requests: &[String], found: Vec<Vec<Source>>) -> Vec<Vec<Source>> {
    for (path, bundle) in requests.iter().zip(&found) {
        if let Some(first) = bundle.first() {
            own.iter_mut().for_each(|source| source.names.push((path.clone(), first.key.clone())));
        }
    }
    let all: Vec<&Source> = own.iter().chain(found.iter().flatten()).collect();
    let bundle_of = |source: &Source| {
        let mut bundle = vec![source.clone()];
        let mut next = 0;
        while let Some(source) = bundle.get(next) {
            let named: Vec<Ident> = source.names.iter().map(|(_, key)| key.clone()).collect();
            for key in named {
                let found = all.iter().find(|source| source.key == key).filter(|_| bundle.iter().all(|known| known.key != key));
                bundle.extend(found.map(|source| (*source).clone()));
            }
            next += 1;
        }
        bundle
    };
    own.iter().map(bundle_of).collect()
}

/// The functions and structs that a kernel can reach, from the bundles of its paths.
pub(crate) fn devices(requests: &[String], bundles: Vec<Vec<Source>>, here: &str, errors: &mut Errors) -> Devices {
    let mut devices = Devices::default();
    for (path, bundle) in requests.iter().zip(&bundles) {
        if let Some(first) = bundle.first() {
            devices.names.insert((None, path.clone()), first.key.to_string());
        }
    }
    for Source { key, krate, file, is_broken, names, definition } in bundles.into_iter().flatten() {
        let key = key.to_string();
        if devices.functions.contains_key(&key) || devices.structs.contains_key(&key) {
            continue;
        }
        for (path, callee) in names {
            devices.names.insert((Some(key.clone()), path), callee.to_string());
        }
        // Errors in the item itself have been reported at its definition.
        let before = errors.len();
        let foreign = (krate != here).then_some(krate);
        let home = Home::User { key: key.clone(), file, foreign };
        match definition {
            Definition::Function(item) => {
                let mut func = device::parse(&item, home, errors);
                func.is_broken |= is_broken;
                devices.functions.insert(key, Rc::new(func));
            }
            Definition::Struct(item, impls) => {
                let mut parsed = device_struct::parse(&item, &impls, &home, errors);
                parsed.is_broken |= is_broken;
                devices.structs.insert(key, Rc::new(parsed));
            }
        }
        errors.truncate(before);
    }
    devices
}

/// The paths of requests as string literals, for a state.
pub(crate) fn texts(requests: &[Request]) -> TokenStream {
    let texts = requests.iter().map(|request| Literal::string(&request.text));
    quote!(#(#texts)*)
}

/// FNV-1a, which is the same in every version of Rust.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
