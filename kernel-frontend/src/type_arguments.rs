//! Code generation for the type parameters of a launcher, and the words of its key.
//!
//! A launch names a type for each type parameter, or `Any` for the dtype of the tensors of that type.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use crate::autotune_codegen::{Tuned, mentions};
use crate::launcher::Launcher;
use crate::signature::{Param, TypeGeneric};
use kernel_lang::ir::{Elem, Type};

impl Launcher<'_> {
    /// The bound of a type parameter of the launcher.
    pub(crate) fn bound(&self, generic: &TypeGeneric) -> TokenStream {
        let suffix = if self.may_be_any(generic) { "Arg" } else { "" };
        let (private, bound) = (self.private(), format_ident!("{}{suffix}", generic.bound));
        quote!(#private::#bound)
    }

    /// Returns whether the type of a scalar is a type parameter for which a launch may name `Any`.
    pub(crate) fn is_of_any(&self, ty: &Type) -> bool {
        self.signature.types.iter().any(|generic| is_of(ty, generic) && self.may_be_any(generic))
    }

    /// Returns whether a launch may name `Any` for a type parameter: a tensor has the type, and no rule of the configurations mentions it. A rule is
    /// Rust code, which needs the type.
    fn may_be_any(&self, generic: &TypeGeneric) -> bool {
        let is_mentioned = |autotune| mentions(&Tuned { launcher: self, autotune }.rules(), &generic.name.text);
        self.signature.pointers().any(|param| param.is_of(generic)) && !self.autotune.is_some_and(is_mentioned)
    }

    /// The key of a launch with these arguments.
    pub(crate) fn key_words(&self, args: &syn::Ident) -> TokenStream {
        let types = self.signature.types.iter().map(|generic| self.type_word(generic, args));
        let free: Vec<usize> = self.launch_consts().collect();
        let consts = self.signature.consts.iter().enumerate().map(|(index, generic)| {
            let ident = &generic.ident;
            if free.contains(&index) { quote!(#ident as u64) } else { quote!(0) }
        });
        quote!([#(#types,)* #(#consts),*])
    }

    fn type_word(&self, generic: &TypeGeneric, args: &syn::Ident) -> TokenStream {
        let (private, ident) = (self.private(), &generic.ident);
        if !self.may_be_any(generic) {
            return quote!(<#ident as #private::Element>::CODE);
        }
        let (name, allowed) = (&generic.name.text, format_ident!("{}", allowed_by(generic.bound)));
        let tensors = self.signature.pointers().enumerate().filter(|(_, param)| param.is_of(generic)).map(|(index, _)| index);
        let scalars = self.signature.params.iter().enumerate().filter(|(_, param)| !param.is_pointer() && param.is_of(generic));
        let scalars = scalars.map(|(index, param)| {
            let (name, word) = (&param.name.text, self.signature.word_of(index));
            quote!((#name, #word))
        });
        quote! {
            #args.type_word::<#ident>(&#private::TypeParam {
                name: #name, allowed: &#private::Dtype::#allowed, tensors: &[#(#tensors),*], scalars: &[#(#scalars),*]
            })
        }
    }
}

impl Param {
    /// Returns whether the type of the scalar, or of the tensor's elements, is the type parameter.
    fn is_of(&self, generic: &TypeGeneric) -> bool {
        self.ty.as_ref().is_some_and(|ty| is_of(ty, generic))
    }
}

fn is_of(ty: &Type, generic: &TypeGeneric) -> bool {
    matches!(ty.elem(), Elem::Param(name) if **name == *generic.name.text)
}

/// The constant of `Dtype` with the dtypes that a bound allows.
fn allowed_by(bound: &str) -> &'static str {
    match bound {
        "Float" => "FLOATS",
        "Int" => "INTS",
        "Number" => "NUMBERS",
        _ => "ALL",
    }
}
