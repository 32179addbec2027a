//! Code generation for a kernel: a typed launcher, the IR's text, the variants, and one call into the runtime.

use proc_macro2::{Literal, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use crate::attributes::Attributes;
use crate::autotune::Autotune;
use crate::autotune_codegen::Tuned;
use crate::facts::{Fact, Known};
use crate::parse::Outer;
use crate::signature::Signature;
use crate::span::{Errors, SourceSpan};
use crate::unused;
use crate::variants::Variant;
use kernel_lang::Schedule;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::Type;

/// The inputs of a kernel's launcher.
pub(crate) struct Launcher<'a> {
    pub(crate) item: &'a syn::ItemFn,
    pub(crate) signature: &'a Signature,
    pub(crate) attributes: &'a Attributes,
    pub(crate) autotune: Option<&'a Autotune>,
    /// The path of the attribute that was removed from the function, if it had both. The generated code uses the path, so that its import is
    /// not reported as unused.
    pub(crate) taken: Option<&'a syn::Path>,
    /// The builtins in the body, each with its span.
    pub(crate) builtins: &'a [(&'static str, Span)],
    /// The facts that its variants may assume.
    pub(crate) facts: &'a [Fact],
    /// Does it contain a `device_print!`?
    pub(crate) prints: bool,
    /// The messages of `static_print!`, each with its span.
    pub(crate) notes: &'a [(SourceSpan, String)],
    /// The constants outside of the kernel that its body names. They are passed after the arguments.
    pub(crate) outers: &'a [Outer],
    /// The arguments of the kernel's attributes.
    pub(crate) arguments: Vec<TokenStream>,
    /// The type that the kernel takes each of them for, as far as its body tells; empty before the kernel is compiled.
    pub(crate) outer_types: &'a [Option<Dtype>],
}

/// A literal for a long text. It is a raw string where possible: escaping each character takes a tenth of the time of a compilation.
fn text(text: &str) -> Literal {
    let mut hashes = String::new();
    while text.contains(&format!("\"{hashes}")) {
        hashes.push('#');
    }
    format!("r{hashes}\"{text}\"{hashes}").parse().unwrap_or_else(|_| Literal::string(text))
}

impl Launcher<'_> {
    /// The launcher of a kernel that compiled without errors.
    pub(crate) fn tokens(&self, ir: &str, variants: &[Variant]) -> TokenStream {
        self.launching(&self.kernel(ir, variants))
    }

    /// The compiled kernel as an expression, for a launcher that has already been emitted.
    pub(crate) fn value(&self, ir: &str, variants: &[Variant], functions: &[syn::Path]) -> TokenStream {
        let (shadow, checks, kernel) = (self.shadow(functions), self.outer_checks(), self.kernel(ir, variants));
        quote!({ #shadow #checks #kernel })
    }

    /// Lets rustc check the types of outer constants, for a launcher that was emitted before they were known.
    fn outer_checks(&self) -> Option<TokenStream> {
        let private = self.private();
        let checks: Vec<TokenStream> = self
            .outers
            .iter()
            .zip(self.outer_types)
            .filter_map(|(outer, ty)| {
                let constant = constant_of(&private, outer, (*ty)?);
                Some(quote!(#constant;))
            })
            .collect();
        (!checks.is_empty()).then(|| quote!(const _: fn() = || { #(#checks)* };))
    }

    /// The outer constants as arguments. A known type is checked by rustc.
    fn outer_pushes(&self, args: &syn::Ident) -> Vec<TokenStream> {
        let private = self.private();
        let push = |(index, outer): (usize, &Outer)| {
            let expr = &outer.expr;
            let constant = match self.outer_types.get(index).copied().flatten() {
                Some(dtype) => constant_of(&private, outer, dtype),
                None => quote!(#expr),
            };
            quote!(#args.constant(#constant);)
        };
        self.outers.iter().enumerate().map(push).collect()
    }

    /// The expression in place of the compiled kernel when compilation failed: its errors.
    pub(crate) fn errors(&self, errors: Errors, functions: &[syn::Path]) -> TokenStream {
        let (errors, value) = (errors.into_tokens(), self.value("", &[], functions));
        quote!({ #errors #value })
    }

    /// The launcher of a kernel that other macros compile.
    ///
    /// The search stops at the first function that is not found. `others` are looked up beside it, so that all missing functions are
    /// reported. rustc suggests names that are in scope, and the import puts the names of the builtins there.
    pub(crate) fn deferred(&self, kernel: &TokenStream, others: &[&syn::Path], errors: Errors) -> TokenStream {
        let krate = &self.attributes.krate;
        let kernel = &quote!({
            #[allow(unused_imports, reason = "for the suggestions of rustc")]
            use #krate::__builtins::*;
            #(#others! {})*
            #kernel
        });
        if errors.is_empty() {
            return self.launching(kernel);
        }
        let private = self.private();
        let names = self.signature.params.iter().map(|param| &param.ident);
        let errors = errors.into_tokens();
        let function = self.function(quote! {
            static GALATEA_KERNEL: #private::Kernel = #kernel;
            let _ = &GALATEA_KERNEL;
            #(let _ = #names;)*
            ::core::unreachable!()
        });
        quote!(#errors #function)
    }

    fn kernel(&self, ir: &str, variants: &[Variant]) -> TokenStream {
        let private = self.private();
        let name = &self.signature.name.text;
        let schedule = self.schedule(self.attributes.schedule);
        let params = self.signature.params.iter().map(|param| {
            let name = &param.name.text;
            let kind = match (&param.ty, param.view) {
                (Some(Type::Pointer { mutable: false, .. }), Some(rank)) => quote!(View(#rank)),
                (Some(Type::Pointer { mutable: true, .. }), Some(rank)) => quote!(ViewMut(#rank)),
                (Some(Type::Pointer { mutable: false, .. }), None) => quote!(Pointer),
                (Some(Type::Pointer { mutable: true, .. }), None) => quote!(PointerMut),
                _ => quote!(Scalar),
            };
            quote!(#private::Param { name: #name, kind: #private::ParamKind::#kind })
        });
        let params = params
            .chain(self.outers.iter().map(|Outer { text, .. }| quote!(#private::Param { name: #text, kind: #private::ParamKind::Scalar })));
        let variants = variants.iter().map(|variant| {
            let Variant { key, schedule, target, entry, shared_bytes, ptx, .. } = variant;
            let (schedule, ptx) = (self.schedule(*schedule), text(ptx));
            quote!(#private::Variant {
                key: &[#(#key),*], schedule: #schedule, target: #target,
                entry: #entry, shared_bytes: #shared_bytes, ptx: #ptx
            })
        });
        let (facts, ir) = (self.facts(), text(ir));
        let (printing, notes) = (self.prints.then(|| quote!(.printing())), self.notes());
        // The block contains no user code. The promise of `unsafe` holds: variants, parameters and facts come from this compilation of this
        // IR.
        let kernel = quote!(unsafe { #private::Kernel::new(#name, #ir, #schedule, &[#(#params),*], &[#(#variants),*]) #facts #printing });
        if self.notes.is_empty() { kernel } else { quote!({ #notes #kernel }) }
    }

    /// Generates `.specializing(&[..])`: the tests that a launch applies to its argument words.
    fn facts(&self) -> TokenStream {
        let private = self.private();
        let facts = self.facts.iter().map(|Fact { param, known }| {
            let (word, param) = (self.signature.word_of(*param), &self.signature.params[*param]);
            let name = &param.name.text;
            match known {
                Known::Is(number) => {
                    // The bits of the argument, zero-extended.
                    let bits = param.ty.as_ref().map_or(64, |ty| 8 * ty.dtype().bytes());
                    let number = *number as u64 & (u64::MAX >> (64 - bits));
                    quote!(#private::Fact::is(#name, #word, #number))
                }
                Known::MultipleOf(of) => {
                    let of = *of as u64;
                    quote!(#private::Fact::multiple_of(#name, #word, #of))
                }
            }
        });
        if self.facts.is_empty() { TokenStream::new() } else { quote!(.specializing(&[#(#facts),*])) }
    }

    /// Generates warnings. A macro cannot emit warnings directly, so each one is a use of a deprecated item.
    fn notes(&self) -> TokenStream {
        let notes = self.notes.iter().map(|(span, text)| {
            let name = syn::Ident::new("static_print", span.start);
            quote!(const _: () = {
                #[deprecated(note = #text)]
                #[allow(non_camel_case_types, reason = "the name is the macro's")]
                struct #name;
                #[allow(path_statements, reason = "using it is what makes rustc tell the note")]
                #name;
            };)
        });
        notes.collect()
    }

    fn schedule(&self, schedule: Schedule) -> TokenStream {
        let private = self.private();
        let Schedule { num_warps, num_ctas, num_stages, .. } = schedule;
        let maxnreg = maxnreg(schedule);
        quote!(#private::Schedule { num_warps: #num_warps, num_ctas: #num_ctas, num_stages: #num_stages, maxnreg: #maxnreg })
    }

    fn launching(&self, kernel: &TokenStream) -> TokenStream {
        let private = self.private();
        // Local names with macro hygiene, so that a parameter may have any name.
        let args = syn::Ident::new("args", Span::mixed_site());
        let pushes = self.signature.params.iter().zip(self.inputs()).map(|(param, input)| {
            let (name, ident) = (&param.name.text, &param.ident);
            match (&param.ty, input) {
                (Some(Type::Pointer { mutable, .. }), Some(ty)) => {
                    let elem = pointee(ty);
                    if let Some(rank) = param.view {
                        let method = format_ident!("{}", if *mutable { "view_mut" } else { "view" });
                        return quote!(#args.#method::<#elem>(#name, #ident, #rank););
                    }
                    let method = format_ident!("{}", if *mutable { "pointer_mut" } else { "pointer" });
                    quote!(#args.#method::<#elem>(#name, #ident);)
                }
                (Some(of), Some(ty)) if self.is_of_any(of) => {
                    quote!(#args.generic_scalar::<#ty>(#ident);)
                }
                (_, Some(ty)) => quote!(#args.scalar::<#ty>(#ident);),
                _ => quote!(#args.scalar(#ident);),
            }
        });
        let pushes = pushes.chain(self.outer_pushes(&args));
        let words = self.key_words(&args);
        let [key, chosen] = ["key", "rules"].map(|name| syn::Ident::new(name, Span::mixed_site()));
        // User code in the launch is limited to rules and type parameters, which are outside the `unsafe` blocks. The promise of `unsafe`
        // holds: the arguments are pushed in the order and with the types of the signature that the kernel was compiled from, and the key has
        // a word for each of its generics; a configuration writes the words of constants. The word of a type is that of the pushed tensors.
        let launch = match self.autotune {
            None => quote! {
                let #key = #words;
                unsafe { #private::Launch::new(#args, #key) }
            },
            Some(autotune) => {
                let tuned = Tuned { launcher: self, autotune };
                let (module, tuner, rules) = (&self.item.sig.ident, tuned.tuner(), tuned.rules());
                quote! {
                    static GALATEA_TUNER: #private::Tuner<#module::Config> = #tuner;
                    let (#key, #chosen) = (#words, #rules);
                    unsafe { #private::AutotunedLaunch::new(#args, #key, &GALATEA_TUNER, #chosen) }
                }
            }
        };
        let shadow = self.shadow(&[]);
        let lints = unused::function(&self.item.sig, &self.item.block, &private, &self.arguments);
        self.function(quote! {
            static GALATEA_KERNEL: #private::Kernel = #kernel;
            #lints
            #shadow
            let mut #args = #private::Args::new(&GALATEA_KERNEL);
            #(#pushes)*
            #launch
        })
    }

    /// A launcher with the same signature for a kernel that did not compile, so that its callers still compile.
    pub(crate) fn stub(&self, errors: Errors) -> TokenStream {
        let errors = errors.into_tokens();
        let shadow = self.shadow(&[]);
        let names = self.signature.params.iter().map(|param| &param.ident);
        let function = self.function(quote! {
            #shadow
            #(let _ = #names;)*
            ::core::unreachable!()
        });
        quote!(#errors #function)
    }

    fn function(&self, body: TokenStream) -> TokenStream {
        let private = self.private();
        let (vis, sig) = (&self.item.vis, &self.item.sig);
        let attrs = &self.item.attrs;
        let ident = &sig.ident;
        let safety = self.attributes.unchecked.then(|| quote!(unsafe));
        let generics = self.generics();
        let params = self.signature.params.iter().zip(self.inputs()).map(|(param, ty)| {
            let ident = &param.ident;
            let ty = match (&param.ty, ty) {
                (Some(Type::Pointer { mutable, .. }), Some(ty)) => {
                    let kind = if param.view.is_some() { "View" } else { "Ptr" };
                    let (elem, argument) = (pointee(ty), format_ident!("{kind}{}", if *mutable { "MutArg" } else { "Arg" }));
                    quote!(impl #private::#argument<'a, #elem>)
                }
                (Some(of), Some(ty)) if self.is_of_any(of) => {
                    quote!(impl #private::GenericScalarArg<#ty>)
                }
                (Some(_), Some(ty)) => quote!(impl #private::ScalarArg<#ty>),
                // A parameter whose type has been reported accepts any argument.
                _ => quote!(impl ::core::marker::Sized),
            };
            quote!(#ident: #ty)
        });
        let (words, keys) = (self.words(), self.signature.types.len() + self.signature.consts.len());
        let launch = match self.autotune {
            None => quote!(#private::Launch<'a, #words, #keys>),
            Some(_) => quote!(#private::AutotunedLaunch<'a, #words, #keys, #ident::Config>),
        };
        let module = self.autotune.map(|autotune| Tuned { launcher: self, autotune }.module());
        let applied = self.applied();
        quote! {
            #applied
            #module
            #(#attrs)*
            #[allow(
                non_snake_case, trivial_numeric_casts, clippy::missing_safety_doc, clippy::too_many_arguments, clippy::manual_is_multiple_of,
                reason = "the kernel's own names and parameters; constants become key words"
            )]
            #vis #safety fn #ident<'a, #(#generics),*>(#(#params),*) -> #launch {
                #body
            }
        }
    }

    /// Emitted beside the function, because inside it a parameter may have the path's name.
    fn applied(&self) -> Option<TokenStream> {
        self.taken.map(|path| {
            quote! {
                const _: () = {
                    #[allow(unused_imports, reason = "the attribute at this path has been applied")]
                    use #path as _;
                };
            }
        })
    }

    /// An unused import of each builtin and each function, with the span of its use in the body, so that editors show its documentation
    /// there.
    fn shadow(&self, functions: &[syn::Path]) -> Option<TokenStream> {
        if self.builtins.is_empty() && functions.is_empty() {
            return None;
        }
        let krate = &self.attributes.krate;
        let builtins = self.builtins.iter().map(|(name, span)| {
            let name = syn::Ident::new(name, *span);
            quote_spanned!(*span=> #name as _)
        });
        Some(quote! {
            {
                #[allow(unused_imports, reason = "for editors: hovering over a builtin of the body shows what it does")]
                use #krate::dsl::{#(#builtins),*};
                #(
                    #[allow(unused_imports, reason = "for editors: hovering over a call of a device function shows what it does")]
                    use #functions as _;
                )*
            }
        })
    }

    /// The generics that a launch names, in source order.
    fn generics(&self) -> Vec<TokenStream> {
        let written = self.item.sig.generics.params.iter().filter_map(|param| {
            let name = match param {
                syn::GenericParam::Type(param) => &param.ident,
                syn::GenericParam::Const(param) => &param.ident,
                syn::GenericParam::Lifetime(_) => return None,
            };
            if let Some(generic) = self.signature.types.iter().find(|generic| generic.ident == *name) {
                let (ident, bound) = (&generic.ident, self.bound(generic));
                return Some(quote!(#ident: #bound));
            }
            let index = self.launch_consts().find(|index| self.signature.consts[*index].ident == *name)?;
            let (ident, ty) = (&self.signature.consts[index].ident, &self.signature.consts[index].ty);
            Some(quote!(const #ident: #ty))
        });
        written.collect()
    }

    /// The constants that the launch names: those that neither configurations nor heuristics set.
    pub(crate) fn launch_consts(&self) -> impl Iterator<Item = usize> {
        let fixed = self.autotune.map(Autotune::fixed).unwrap_or_default();
        (0..self.signature.consts.len()).filter(move |index| !fixed.contains(index))
    }

    pub(super) fn words(&self) -> usize {
        self.signature.word_of(self.signature.params.len()) + self.outers.len()
    }

    pub(super) fn private(&self) -> TokenStream {
        let krate = &self.attributes.krate;
        quote!(#krate::__private)
    }

    /// The parameter types as written.
    pub(super) fn inputs(&self) -> Vec<Option<&syn::Type>> {
        let typed = self.item.sig.inputs.iter().filter_map(|input| match input {
            syn::FnArg::Typed(typed) => Some(Some(&*typed.ty)),
            syn::FnArg::Receiver(_) => None,
        });
        typed.collect()
    }
}

/// The `T` of `Ptr<T>` and `View<T, 2>`.
pub(super) fn pointee(ty: &syn::Type) -> TokenStream {
    match ty {
        syn::Type::Group(group) => pointee(&group.elem),
        syn::Type::Paren(paren) => pointee(&paren.elem),
        syn::Type::Path(path) => match path.path.segments.last().map(|segment| &segment.arguments) {
            Some(syn::PathArguments::AngleBracketed(generics)) => {
                let elem = generics.args.first();
                quote!(#elem)
            }
            _ => quote!(#ty),
        },
        _ => quote!(#ty),
    }
}

/// An outer constant that rustc checks to be of a type.
fn constant_of(private: &TokenStream, Outer { expr, .. }: &Outer, dtype: Dtype) -> TokenStream {
    let ty = dtype_type(private, dtype);
    // rustc reports a constant of another type at the inferred generic.
    let inferred = quote_spanned!(expr.span()=> _);
    quote!(#private::constant_of::<#ty, #inferred>(#expr))
}

/// A dtype as a Rust type.
fn dtype_type(private: &TokenStream, dtype: Dtype) -> TokenStream {
    let name = format_ident!("{}", dtype.name());
    match dtype {
        Dtype::F16 | Dtype::Bf16 | Dtype::F8E4M3 | Dtype::F8E5M2 => quote!(#private::#name),
        _ => quote!(::core::primitive::#name),
    }
}

pub(super) fn maxnreg(schedule: Schedule) -> TokenStream {
    match schedule.maxnreg {
        Some(registers) => quote!(::core::option::Option::Some(#registers)),
        None => quote!(::core::option::Option::None),
    }
}

/// Expands an item that is not a function: its errors, and the item unchanged.
pub(crate) fn foreign(item: &TokenStream, message: &str, help: &str) -> TokenStream {
    let mut errors = Errors::default();
    errors.push_help(SourceSpan::of(item), message, help);
    let errors = errors.into_tokens();
    quote!(#errors #item)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_have_the_value_of_their_text() {
        for wanted in [
            "",
            "a",
            "\"",
            "\"#",
            "a \"#\"##\" b",
            "\\n \\",
            "line\nline",
            "carriage\rreturn",
            "tab\t, ü, \u{7f}",
            "ends with \"",
            "r#\"raw\"#",
        ] {
            let literal: syn::LitStr = syn::parse2(proc_macro2::TokenTree::from(text(wanted)).into()).expect("it is a string");
            assert_eq!(literal.value(), wanted);
        }
    }
}
