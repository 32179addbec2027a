//! A stand-in for rustc between the expansions of our macros: a device function is a macro that hands its source on to the next one.

use std::collections::HashMap;

use kernel_frontend::{device, device_bundle};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::{ToTokens, quote};

/// The crate that the items are of.
pub(crate) const CRATE: &str = "bench";

/// The macros of device functions and structs, by their names: no path is resolved, so that a name is enough. Each hands on a bundle of sources.
pub(crate) struct Macros {
    bundles: HashMap<String, Group>,
}

impl Macros {
    /// Those of all items that are marked `#[device]`.
    pub(crate) fn of(items: &[syn::Item]) -> Macros {
        let mut macros = Macros { bundles: HashMap::new() };
        let mut left: Vec<TokenStream> = items.iter().filter_map(expanded).collect();
        // A function is added after the functions that it calls.
        while !left.is_empty() {
            let before = left.len();
            left.retain(|tokens| !macros.add(tokens));
            assert!(left.len() < before, "a device function calls what is in none of the files");
        }
        macros
    }

    /// Adds the macros of an expanded item, if the macros that the item calls are known.
    fn add(&mut self, tokens: &TokenStream) -> bool {
        let carriers = match call(tokens) {
            None => tokens.clone(),
            Some(call) if call.stops.iter().all(|stop| self.bundles.contains_key(stop)) => device_bundle(self.collected(call)),
            Some(_) => return false,
        };
        let file: syn::File = syn::parse2(carriers).expect("the macro writes items");
        let items = file.items.iter().flat_map(|item| match item {
            syn::Item::Mod(syn::ItemMod { content: Some((_, items)), .. }) => items.as_slice(),
            item => std::slice::from_ref(item),
        });
        let items: Vec<&syn::Item> = items.collect();
        for item in &items {
            let syn::Item::Use(syn::ItemUse { tree: syn::UseTree::Rename(name), .. }) = item else { continue };
            let rules = items.iter().find_map(|item| match item {
                syn::Item::Macro(item) if item.ident.as_ref() == Some(&name.ident) => Some(&item.mac.tokens),
                _ => None,
            });
            // `.. => { $($next)*! { { $($rest)* } $($state)* { the bundle } } };`
            let last = |tokens: TokenStream| groups(tokens, Delimiter::Brace).pop();
            let bundle = rules.cloned().and_then(last).and_then(|rule| last(rule.stream())).and_then(|call| last(call.stream()));
            self.bundles.insert(name.rename.to_string(), bundle.expect("the macro hands its source on"));
        }
        true
    }

    /// The input of the last macro in a chain of macros, if an expansion contains such a chain.
    pub(crate) fn follow(&self, tokens: &TokenStream) -> Option<TokenStream> {
        call(tokens).map(|call| self.collected(call))
    }

    fn collected(&self, Call { stops, state }: Call) -> TokenStream {
        let bundles = stops.iter().map(|stop| self.bundles.get(stop).unwrap_or_else(|| panic!("`{stop}` is in none of the files")));
        quote!({} #state #(#bundles)*)
    }
}

/// The arguments of an attribute.
pub(crate) fn arguments(attribute: &syn::Attribute) -> TokenStream {
    attribute.meta.require_list().map_or_else(|_| TokenStream::new(), |list| list.tokens.clone())
}

/// The expansion of `#[device]` on an item that has this attribute.
fn expanded(item: &syn::Item) -> Option<TokenStream> {
    let mut item = item.clone();
    let attrs = match &mut item {
        syn::Item::Fn(item) => &mut item.attrs,
        syn::Item::Struct(item) => &mut item.attrs,
        syn::Item::Mod(item) => &mut item.attrs,
        _ => return None,
    };
    let place = attrs.iter().position(|attribute| attribute.path().is_ident("device"))?;
    let attribute = attrs.remove(place);
    Some(device(arguments(&attribute), item.into_token_stream(), CRATE))
}

/// `first! { { (second) (callback) } { state } }`
struct Call {
    /// The macros that add their bundles, in order.
    stops: Vec<String>,
    state: Group,
}

/// The call of the first of a chain of macros, wherever it stands.
fn call(tokens: &TokenStream) -> Option<Call> {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let here = trees.windows(3).find_map(|window| match window {
        [TokenTree::Ident(first), TokenTree::Punct(mark), TokenTree::Group(given)] if mark.as_char() == '!' => {
            let [stops, state] = groups(given.stream(), Delimiter::Brace).try_into().ok()?;
            let mut names = vec![first.to_string()];
            let last = |path: Group| path.stream().into_iter().last().map(|name| name.to_string());
            names.extend(groups(stops.stream(), Delimiter::Parenthesis).into_iter().filter_map(last));
            let callback = names.pop()?;
            ["__kernel", "__device"].contains(&callback.as_str()).then_some(Call { stops: names, state })
        }
        _ => None,
    });
    here.or_else(|| trees.iter().find_map(|tree| if let TokenTree::Group(group) = tree { call(&group.stream()) } else { None }))
}

/// The groups of that kind among tokens.
fn groups(tokens: TokenStream, delimiter: Delimiter) -> Vec<Group> {
    let is_one = |tree| if let TokenTree::Group(group) = tree { Some(group).filter(|group| group.delimiter() == delimiter) } else { None };
    tokens.into_iter().filter_map(is_one).collect()
}
