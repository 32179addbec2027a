//! `#[derive(Module)]`: the parameters of a struct are those of its fields. `#[module(skip)]` leaves a field out, such as a size.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};

use crate::span::{Errors, SourceSpan};

/// Expands the derive macro.
pub(crate) fn expand(item: &TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let fail = |mut errors: Errors, at: SourceSpan, message: &str, help: &str| {
        errors.push_help(at, message, help);
        errors.into_tokens()
    };
    let Ok(item) = syn::parse2::<syn::DeriveInput>(item.clone()) else {
        return fail(errors, SourceSpan::of(item), "a module is a struct", "derive `Module` for a struct of tensors and modules");
    };
    let syn::Data::Struct(data) = &item.data else {
        let help = "derive `Module` for a struct, or implement it";
        return fail(errors, SourceSpan::of(&item.ident), "only a struct can derive `Module`", help);
    };
    let mut krate = quote!(::galatea);
    for attribute in item.attrs.iter().filter(|attribute| attribute.path().is_ident("module")) {
        let parsed = attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("crate") {
                return Err(meta.error("a struct has `#[module(crate = path)]`"));
            }
            krate = syn::Path::parse_mod_style(meta.value()?)?.to_token_stream();
            Ok(())
        });
        if let Err(error) = parsed {
            errors.push_help(SourceSpan::of(attribute), error.to_string(), "leave the attribute out");
        }
    }
    let mut fields = Vec::new();
    for (number, field) in data.fields.iter().enumerate() {
        let mut skipped = false;
        for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("module")) {
            let is_skip = attribute.parse_args::<syn::Ident>().is_ok_and(|word| word == "skip");
            if !is_skip {
                errors.push_help(SourceSpan::of(attribute), "a field of a module has no such attribute", "write `#[module(skip)]`");
            }
            skipped |= is_skip;
        }
        if !skipped {
            let member = field.ident.clone().map_or_else(|| syn::Member::from(number), syn::Member::from);
            let name =
                field.ident.as_ref().map_or_else(|| number.to_string(), |ident| ident.to_string().trim_start_matches("r#").to_owned());
            fields.push((member, name, field.ty.clone()));
        }
    }
    if !errors.is_empty() {
        return errors.into_tokens();
    }
    let (members, names, types): (Vec<_>, Vec<_>, Vec<_>) = (
        fields.iter().map(|(member, ..)| member).collect(),
        fields.iter().map(|(_, name, _)| name).collect(),
        fields.iter().map(|(.., ty)| ty).collect(),
    );
    let mut generics = item.generics.clone();
    if !generics.params.is_empty() {
        let clause = generics.make_where_clause();
        types.iter().for_each(|ty| clause.predicates.push(syn::parse_quote!(#ty: #krate::ops::Module)));
    }
    let (ident, (params, arguments, clause)) = (&item.ident, generics.split_for_impl());
    quote! {
        #[automatically_derived]
        impl #params #krate::ops::Module for #ident #arguments #clause {
            fn visit(&self, path: &::core::primitive::str, f: &mut dyn ::core::ops::FnMut(&::core::primitive::str, &#krate::ops::Tensor)) {
                let _ = (path, &f);
                #(#krate::ops::Module::visit(&self.#members, &#krate::ops::path_of(path, #names), f);)*
            }

            fn visit_mut(
                &mut self,
                path: &::core::primitive::str,
                f: &mut dyn ::core::ops::FnMut(&::core::primitive::str, &mut #krate::ops::Tensor) -> #krate::Result<()>,
            ) -> #krate::Result<()> {
                let _ = (path, &f);
                #(#krate::ops::Module::visit_mut(&mut self.#members, &#krate::ops::path_of(path, #names), f)?;)*
                ::core::result::Result::Ok(())
            }
        }
    }
}
