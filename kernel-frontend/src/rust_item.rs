//! The Rust items that rustc and editors see for a device function or a struct: names, types and documentation, with bodies that panic.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use crate::device::DeviceFn;
use crate::device_struct::DeviceStruct;
use crate::param_type::ParamType;
use crate::parse::plain;
use crate::unused;

/// The function as Rust sees it.
pub(crate) fn function(item: &syn::ItemFn, func: &DeviceFn, krate: &TokenStream) -> TokenStream {
    signature((&item.attrs, &item.vis, &item.sig, &item.block), func, krate)
}

/// The struct and its `impl` blocks as Rust sees them.
pub(crate) fn structure(item: &syn::ItemStruct, impls: &[syn::ItemImpl], parsed: &DeviceStruct, krate: &TokenStream) -> TokenStream {
    let mut item = item.clone();
    bounds(&mut item.generics, krate);
    if let syn::Fields::Named(named) = &mut item.fields {
        for (field, param) in named.named.iter_mut().zip(&parsed.constructor.params) {
            let ty = written_type(&field.ty, &param.ty, krate);
            field.ty = syn::Type::Verbatim(ty);
        }
    }
    let mut methods = parsed.methods.iter();
    let blocks = impls.iter().filter(|block| block.trait_.is_none()).map(|block| {
        let mut generics = block.generics.clone();
        bounds(&mut generics, krate);
        let (attrs, ty) = (&block.attrs, &block.self_ty);
        let methods = block.items.iter().filter_map(|item| match item {
            syn::ImplItem::Fn(method) => Some(signature((&method.attrs, &method.vis, &method.sig, &method.block), methods.next()?, krate)),
            _ => None,
        });
        let methods: Vec<TokenStream> = methods.collect();
        quote! {
            #(#attrs)*
            #[allow(
                clippy::should_implement_trait, clippy::wrong_self_convention, clippy::new_ret_no_self, clippy::len_without_is_empty,
                reason = "the names are those of the kernel language"
            )]
            impl #generics #ty { #(#methods)* }
        }
    });
    let blocks: Vec<TokenStream> = blocks.collect();
    quote! {
        #[allow(dead_code, reason = "made in kernels, which take its source")]
        #item
        #(#blocks)*
    }
}

/// Replaces bounds that no import brings into scope by their paths.
fn bounds(generics: &mut syn::Generics, krate: &TokenStream) {
    for param in &mut generics.params {
        let syn::GenericParam::Type(param) = param else { continue };
        for bound in &mut param.bounds {
            if let syn::TypeParamBound::Trait(bound) = bound
                && let Some(last) = bound.path.segments.last()
            {
                bound.path = syn::parse_quote!(#krate::__private::#last);
            }
        }
    }
}

fn signature(
    (attrs, vis, sig, block): (&[syn::Attribute], &syn::Visibility, &syn::Signature, &syn::Block),
    func: &DeviceFn,
    krate: &TokenStream,
) -> TokenStream {
    let ident = &sig.ident;
    let generics = sig.generics.params.iter().filter_map(|param| match param {
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
    let params = sig.inputs.iter().zip(&func.params).filter_map(|(input, param)| match input {
        syn::FnArg::Typed(typed) => {
            let name = match &*typed.pat {
                syn::Pat::Ident(pat) => pat.ident.clone(),
                other => format_ident!("_parameter", span = other.span()),
            };
            let ty = written_type(&typed.ty, &param.ty, krate);
            Some(quote!(#name: #ty))
        }
        syn::FnArg::Receiver(receiver) => func.this.is_some().then(|| receiver.self_token.to_token_stream()),
    });
    let output = match &sig.output {
        syn::ReturnType::Default => None,
        syn::ReturnType::Type(arrow, ty) => {
            let ty = written_type(ty, &func.output, krate);
            Some(quote!(#arrow #ty))
        }
    };
    let names = sig.inputs.iter().filter_map(|input| match input {
        syn::FnArg::Typed(typed) => match &*typed.pat {
            syn::Pat::Ident(pat) => Some(&pat.ident),
            _ => None,
        },
        syn::FnArg::Receiver(_) => None,
    });
    // A body with mistakes has other messages.
    let lints = (!func.is_broken).then(|| unused::function(sig, block, &quote!(#krate::__private), &[]));
    let message = format!("`{}` is a device function: it has a meaning only inside `#[kernel]`", plain(ident));
    quote! {
        #(#attrs)*
        #[allow(
            dead_code, clippy::too_many_arguments, clippy::extra_unused_type_parameters,
            reason = "called from kernels, which take its source"
        )]
        #vis fn #ident<#(#generics),*>(#(#params),*) #output {
            #lints
            #(let _ = #names;)*
            ::core::panic!(#message)
        }
    }
}

/// Converts a type of the language to a Rust type: markers that no import brings into scope are replaced by their paths.
fn written_type(written: &syn::Type, ty: &ParamType, krate: &TokenStream) -> TokenStream {
    match (written, ty) {
        (_, ParamType::Wrong) => quote!(()),
        (syn::Type::Tuple(tuple), ParamType::Tuple(list)) => {
            let parts = tuple.elems.iter().zip(list).map(|(written, ty)| written_type(written, ty, krate));
            quote!((#(#parts,)*))
        }
        (syn::Type::Path(path), ParamType::Value(_) | ParamType::Pointer(..) | ParamType::View(..)) => match path.path.segments.last() {
            Some(last) => quote_spanned!(last.ident.span()=> #krate::dsl::#last),
            None => written.to_token_stream(),
        },
        (syn::Type::ImplTrait(bounds), ParamType::Function(inputs, output)) => match bounds.bounds.first() {
            Some(syn::TypeParamBound::Trait(bound)) => closure(&bound.path, inputs, output, krate),
            _ => written.to_token_stream(),
        },
        _ => written.to_token_stream(),
    }
}

fn closure(path: &syn::Path, inputs: &[ParamType], output: &ParamType, krate: &TokenStream) -> TokenStream {
    let Some(syn::PathArguments::Parenthesized(written)) = path.segments.last().map(|last| &last.arguments) else { return quote!(()) };
    let inputs = written.inputs.iter().zip(inputs).map(|(written, ty)| written_type(&written.ty, ty, krate));
    let output = match &written.output {
        syn::ReturnType::Default => quote!(()),
        syn::ReturnType::Type(_, ty) => written_type(ty, output, krate),
    };
    quote!(impl ::core::ops::Fn(#(#inputs),*) -> #output)
}
