//! Patterns of `let`, of closures and of loops, as rustc sees them.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::Pat;

use super::Lints;
use crate::parse::plain;

/// A pattern for rustc, and a value that it takes apart.
pub(super) struct Taken {
    /// The structs that the pattern names.
    pub(super) structs: TokenStream,
    pub(super) pattern: TokenStream,
    pub(super) value: TokenStream,
    pub(super) names: Vec<syn::Ident>,
    pub(super) is_mutable: bool,
}

impl Lints<'_> {
    /// A pattern of `let` or of a closure's parameter, for the value [`given`].
    pub(super) fn taken(&mut self, pat: &Pat) -> Taken {
        let given = given();
        let plain = |pattern: TokenStream| Taken {
            structs: TokenStream::new(),
            pattern,
            value: quote!(#given),
            names: Vec::new(),
            is_mutable: false,
        };
        match pat {
            Pat::Ident(pat) if is_variable(&pat.ident) => {
                let (mutability, ident) = (&pat.mutability, &pat.ident);
                Taken { names: vec![ident.clone()], is_mutable: mutability.is_some(), ..plain(quote!(#mutability #ident)) }
            }
            Pat::Paren(paren) => self.taken(&paren.pat),
            Pat::Type(typed) => self.taken(&typed.pat),
            Pat::Tuple(tuple) => {
                let parts: Vec<Taken> = tuple.elems.iter().map(|elem| self.taken(elem)).collect();
                let (patterns, values) = (parts.iter().map(|part| &part.pattern), parts.iter().map(|part| &part.value));
                let (pattern, value) = (quote!((#(#patterns,)*)), quote!((#(#values,)*)));
                Taken::of(parts, TokenStream::new(), pattern, value)
            }
            // With a struct of its own, rustc's help for an unused field is one for a field.
            Pat::Struct(pat) => {
                self.structs += 1;
                let name = quote::format_ident!("Fields{}", self.structs);
                let members: Vec<&syn::Member> = pat.fields.iter().map(|field| &field.member).collect();
                let generics: Vec<syn::Ident> = (0..members.len()).map(|index| quote::format_ident!("T{index}")).collect();
                let parts: Vec<Taken> = pat.fields.iter().map(|field| self.taken(&field.pat)).collect();
                let fields = pat.fields.iter().zip(&parts).map(|(field, part)| {
                    let (member, pattern) = (&field.member, &part.pattern);
                    if field.colon_token.is_some() { quote!(#member: #pattern) } else { pattern.clone() }
                });
                let values = members.iter().zip(&parts).map(|(member, part)| {
                    let value = &part.value;
                    quote!(#member: #value)
                });
                let (pattern, value) = (quote!(#name { #(#fields,)* .. }), quote!(#name { #(#values,)* }));
                let declared = quote!(
                    #[allow(dead_code, reason = "only taken apart")]
                    struct #name<#(#generics),*> { #(#members: #generics),* }
                );
                Taken::of(parts, declared, pattern, value)
            }
            _ => plain(quote!(_)),
        }
    }
}

impl Taken {
    fn of(parts: Vec<Taken>, mut structs: TokenStream, pattern: TokenStream, value: TokenStream) -> Taken {
        let (mut names, mut is_mutable) = (Vec::new(), false);
        for part in parts {
            structs.extend(part.structs);
            names.extend(part.names);
            is_mutable |= part.is_mutable;
        }
        Taken { structs, pattern, value, names, is_mutable }
    }
}

/// Is it a variable, by naming convention? A name in capitals would be a pattern for a constant of the module.
pub(super) fn is_variable(ident: &syn::Ident) -> bool {
    plain(ident).starts_with(|c: char| c.is_lowercase() || c == '_')
}

/// The value that a pattern takes apart. It has the hygiene of a macro, because the kernel may have a variable of this name.
pub(super) fn given() -> syn::Ident {
    syn::Ident::new("given", Span::mixed_site())
}
