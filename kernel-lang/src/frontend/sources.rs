//! How the source of a device function reaches the kernels that call it, also in other modules and crates.
//!
//! A macro sees the tokens of its own item only. So `#[device] fn f` becomes a function `f`, which editors show and paths lead to, and
//! beside it a `macro_rules! f`, which hands its source on. The two live in different namespaces: whatever imports or re-exports the one does so
//! with the other. A kernel that calls `f` and `m::g` expands to a launcher in which
//!
//! ```text
//! f!{ { (m::g) (::galatea::__kernel) } { the kernel } }
//! ```
//!
//! stands for the compiled kernel. `f!` appends its source and calls the next in the list, `m::g!` does the same, and the last is a macro of ours
//! that has everything: the kernel, and a bundle for each path in it. A device function that calls others fetches their bundles in the
//! same way, once, where it is defined: names mean there what they mean to its author, and its own bundle is complete. rustc resolves
//! every path and reports those that lead nowhere, on the user's token.
//!
//! A bundle is a list of `{ key "crate" "file" false { path = key, .. } fn .. }`, the function itself first; the `bool` says whether it is broken.

use std::rc::Rc;

use proc_macro2::{Delimiter, Group, Ident, Literal, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;

use crate::frontend::device::{self, Devices, Home};
use crate::frontend::parse::{Request, plain};
use crate::frontend::place::Errors;

/// A device function as a bundle holds it.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) key: Ident,
    /// The crate that it is defined in.
    pub(crate) krate: String,
    pub(crate) file: String,
    /// Has a mistake in it been reported where it is defined? Kernels then say nothing of it.
    pub(crate) is_broken: bool,
    /// The function that each path in the body means.
    pub(crate) names: Vec<(String, Ident)>,
    pub(crate) item: syn::ItemFn,
}

/// A call that collects the bundles of `requests` and ends in `callback! { {} { state } { bundle } { bundle } .. }`.
pub(crate) fn collect(requests: &[Request], callback: &TokenStream, state: &TokenStream) -> TokenStream {
    let mut stops = requests.iter().map(|request| request.path.to_token_stream()).chain([callback.clone()]);
    let first = stops.next().unwrap_or_default();
    quote!(#first! { { #((#stops))* } { #state } })
}

/// What [`collect`] ends in: the state, and the bundles in the order of the requests.
pub(crate) fn collected(tokens: TokenStream) -> syn::Result<(TokenStream, Vec<Vec<Source>>)> {
    let mut groups = tokens.into_iter().filter_map(|token| if let TokenTree::Group(group) = token { Some(group.stream()) } else { None });
    // The list of stops, which is at its end.
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
        Ok(Source { key, krate, file, is_broken, names, item: input.parse()? })
    }
}

impl ToTokens for Source {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Source { key, krate, file, is_broken, names, item } = self;
        let names = names.iter().map(|(path, key)| quote!(#path = #key));
        tokens.extend(quote!({ #key #krate #file #is_broken { #(#names),* } #item }));
    }
}

impl Source {
    /// The source of a function as it stands in the user's file: without what only rustc reads.
    pub(crate) fn of(item: &syn::ItemFn, krate: &str) -> Source {
        let mut item = item.clone();
        item.attrs.clear();
        item.vis = syn::Visibility::Inherited;
        let span = item.sig.ident.span();
        let (file, start) = (span.file(), span.start());
        // Unique in a crate: two functions at one place come from one macro, and differ in their text or are in no one's way.
        let text = format!("{krate}:{file}:{}:{}:{}", start.line, start.column, item.to_token_stream());
        let key = format_ident!("{}_{:016x}", plain(&item.sig.ident), hash(&text), span = Span::call_site());
        Source { key, krate: krate.to_string(), file, is_broken: false, names: Vec::new(), item }
    }

    /// The macro that hands a bundle on, and its name.
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
        // Spans stay: an error in the function is shown in it.
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

/// The bundle of a function: itself with its names resolved, then what it calls, each once.
pub(crate) fn bundle(mut source: Source, requests: &[String], bundles: Vec<Vec<Source>>) -> Vec<Source> {
    source.names = requests.iter().zip(&bundles).filter_map(|(path, bundle)| Some((path.clone(), bundle.first()?.key.clone()))).collect();
    let mut all = vec![source];
    for found in bundles.into_iter().flatten() {
        if all.iter().all(|known| known.key != found.key) {
            all.push(found);
        }
    }
    all
}

/// The functions that a kernel can reach, from the bundles that its paths led to.
pub(crate) fn devices(requests: &[String], bundles: Vec<Vec<Source>>, here: &str, errors: &mut Errors) -> Devices {
    let mut devices = Devices::default();
    for (path, bundle) in requests.iter().zip(&bundles) {
        if let Some(first) = bundle.first() {
            devices.names.insert((None, path.clone()), first.key.to_string());
        }
    }
    for Source { key, krate, file, is_broken, names, item } in bundles.into_iter().flatten() {
        let key = key.to_string();
        if devices.functions.contains_key(&key) {
            continue;
        }
        for (path, callee) in names {
            devices.names.insert((Some(key.clone()), path), callee.to_string());
        }
        // What is wrong with the function alone has been reported where it is defined.
        let before = errors.len();
        let foreign = (krate != here).then_some(krate);
        let mut func = device::parse(&item, Home::User { key: key.clone(), file, foreign }, errors);
        errors.truncate(before);
        func.is_broken |= is_broken;
        devices.functions.insert(key, Rc::new(func));
    }
    devices
}

/// The literal texts of requests, for a state.
pub(crate) fn texts(requests: &[Request]) -> TokenStream {
    let texts = requests.iter().map(|request| Literal::string(&request.text));
    quote!(#(#texts)*)
}

/// FNV-1a, which is the same in every version of Rust.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
