//! Code generation for kernels with tuning or heuristics: the `Config` struct, the tuner, and the rules that a launch applies.

use proc_macro2::{Group, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};

use crate::autotune::{Autotune, Bucket, Reference, Verify};
use crate::launcher::{Launcher, maxnreg, pointee};
use crate::signature::ConstGeneric;
use crate::span::SourceSpan;
use kernel_lang::Schedule;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::Type;

/// A launcher and the configurations of its kernel.
pub(super) struct Tuned<'a> {
    pub(super) launcher: &'a Launcher<'a>,
    pub(super) autotune: &'a Autotune,
}

impl Tuned<'_> {
    /// The constants that are fields of a configuration, with their indices among the kernel's constants.
    fn constants(&self) -> impl Iterator<Item = (usize, &ConstGeneric)> {
        self.autotune.fixed().into_iter().map(|index| (index, &self.launcher.signature.consts[index]))
    }

    /// Generates `pub mod kernel { pub struct Config { .. } }`.
    pub(super) fn module(&self) -> TokenStream {
        let private = self.launcher.private();
        let (vis, ident) = (&self.launcher.item.vis, &self.launcher.item.sig.ident);
        let doc = format!("The configurations of [`{ident}`](fn@{ident}).");
        let fields = self.constants().map(|(_, ConstGeneric { ident, ty, .. })| {
            let doc = format!("The constant parameter `{ident}`.");
            quote!(#[doc = #doc] pub #ident: #ty)
        });
        let names = self.constants().map(|(_, generic)| generic.ident.to_string());
        let constants = self.constants().map(|(_, generic)| &generic.ident);
        let writes = self.constants().map(|(index, generic)| {
            let (ident, span) = (&generic.ident, self.launcher.signature.types.len() + index);
            match generic.dtype.is_float() {
                true => quote!(key[#span] = self.#ident.to_bits() as u64;),
                false => quote!(key[#span] = self.#ident as u64;),
            }
        });
        // Floats have no total equality.
        let eq = self.constants().all(|(_, generic)| !generic.dtype.is_float()).then(|| quote!(, Eq));
        quote! {
            #[doc = #doc]
            #[allow(non_snake_case, trivial_numeric_casts, unreachable_pub, unused_imports, reason = "the kernel's own names; its visibility decides")]
            #vis mod #ident {
                use super::*;

                /// One configuration: values of the tuned constants, and a schedule.
                #[derive(Clone, Copy, PartialEq #eq)]
                pub struct Config {
                    #(#fields,)*
                    /// Warps of a CTA.
                    pub num_warps: u32,
                    /// CTAs that share a program.
                    pub num_ctas: u32,
                    /// How many iterations of a loop may be in flight.
                    pub num_stages: u32,
                    /// The most registers of a thread, if bounded.
                    pub maxnreg: ::core::option::Option<u32>,
                }

                impl ::core::fmt::Debug for Config {
                    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                        #private::debug_config(f, &[#((#names, &self.#constants)),*], #private::TuneConfig::schedule(self))
                    }
                }

                impl #private::TuneConfig for Config {
                    fn write_key(&self, key: &mut [u64]) {
                        #(#writes)*
                        let _ = key;
                    }
                    fn schedule(&self) -> #private::Schedule {
                        let Config { num_warps, num_ctas, num_stages, maxnreg, .. } = *self;
                        #private::Schedule { num_warps, num_ctas, num_stages, maxnreg }
                    }
                }
            }
        }
    }

    /// Generates the tuner, a static that all launches share.
    pub(super) fn tuner(&self) -> TokenStream {
        let (private, Autotune { key, zeroed, restored, warmup, rep, .. }) = (self.launcher.private(), self.autotune);
        let configs = self.configs();
        let parts = key.iter().map(|part| {
            let word = part.word;
            match part.bucket {
                Bucket::Exact => quote!(#private::KeyPart::exact(#word)),
                Bucket::PowerOfTwo => quote!(#private::KeyPart::power_of_two(#word)),
                Bucket::Multiple(step) => quote!(#private::KeyPart::multiple(#word, #step)),
            }
        });
        let zeroed = (!zeroed.is_empty()).then(|| quote!(.zeroing(&[#(#zeroed),*])));
        let restored = (!restored.is_empty()).then(|| quote!(.restoring(&[#(#restored),*])));
        let (warmup, rep) = (warmup.map(|time| quote!(.warmup(#time))), rep.map(|time| quote!(.rep(#time))));
        let records = self.records();
        quote!(#private::Tuner::new(&[#(#configs),*], &[#(#parts),*]) #zeroed #restored #warmup #rep #records)
    }

    /// Generates `.records(..)` with the text of each file. rustc reads the files, so a changed file triggers a rebuild and a missing file is
    /// an error at its name.
    fn records(&self) -> Option<TokenStream> {
        let private = self.launcher.private();
        let files = self.autotune.records.iter().map(|file| {
            let span = file.span();
            let is_absolute = std::path::Path::new(&file.value()).is_absolute();
            let path = if is_absolute { quote!(#file) } else { quote!(::core::concat!(::core::env!("CARGO_MANIFEST_DIR"), "/", #file)) };
            located(quote!(#private::RecordsFile::new(#file, ::core::include_str!(#path))), span)
        });
        (!self.autotune.records.is_empty()).then(|| quote!(.records(&[#(#files),*])))
    }

    fn configs(&self) -> Vec<TokenStream> {
        let module = &self.launcher.item.sig.ident;
        let of_config = |config: &crate::autotune::Config| {
            let fields = self.constants().map(|(index, generic)| {
                let ident = &generic.ident;
                // A launch computes the constants that heuristics set.
                let value = self.autotune.tuned.iter().position(|tuned| *tuned == index).map_or(0, |index| config.values[index]);
                let value = literal(generic.dtype, value);
                quote!(#ident: #value)
            });
            let Schedule { num_warps, num_ctas, num_stages, .. } = config.schedule;
            let maxnreg = maxnreg(config.schedule);
            quote!(#module::Config {
                #(#fields,)* num_warps: #num_warps, num_ctas: #num_ctas, num_stages: #num_stages, maxnreg: #maxnreg
            })
        };
        self.autotune.configs.iter().map(of_config).collect()
    }

    /// Generates functions of the arguments and a configuration. They capture nothing, so that a launch carries one pointer to all of them.
    pub(super) fn rules(&self) -> TokenStream {
        let private = self.launcher.private();
        let Autotune { prune, top_k, pre_hook, post_hook, heuristics, verify, .. } = self.autotune;
        let module = &self.launcher.item.sig.ident;
        // The return type is explicit, so that a wrong type is an error in the closure's body.
        let asked = |closure: &TokenStream, answer: TokenStream| {
            let (arguments, [words, config]) = (self.arguments(closure), LOCALS.map(local));
            quote!(|#words, #config| { #arguments #private::asked::<_, #answer>(#config, #closure) })
        };
        let mut rules = Vec::new();
        if !heuristics.is_empty() {
            rules.push(self.complete());
        }
        rules.extend(prune.as_ref().map(|rule| asked(rule, quote!(bool))).map(|rule| quote!(.prune(#rule))));
        rules.extend(top_k.as_ref().map(|(count, cost)| {
            let cost = asked(cost, quote!(f64));
            quote!(.top_k(#count, #cost))
        }));
        rules.extend(pre_hook.as_ref().map(|rule| asked(rule, quote!(_))).map(|rule| quote!(.pre_hook(#rule))));
        rules.extend(post_hook.as_ref().map(|rule| asked(rule, quote!(_))).map(|rule| quote!(.post_hook(#rule))));
        rules.extend(verify.as_ref().map(|verify| self.verify(verify)));
        let read = heuristics.iter().map(|heuristic| heuristic.value.to_token_stream());
        let read = read.chain(prune.clone()).chain(top_k.as_ref().map(|(_, cost)| cost.clone()));
        rules.extend(self.reading(&read.collect()));
        if rules.is_empty() {
            return quote!(&#private::Rules::NONE);
        }
        let words = self.launcher.words();
        quote!(const { &#private::Rules::<#module::Config, #words>::NONE #(#rules)* })
    }

    /// Generates `.reading(&[..])`: the words of the arguments that the code mentions. Addresses are no variables of it.
    fn reading(&self, code: &TokenStream) -> Option<TokenStream> {
        let signature = self.launcher.signature;
        let mentioned = signature.params.iter().enumerate().filter(|(_, param)| param.ty.is_some() && mentions(code, &param.name.text));
        let words: Vec<usize> = mentioned
            .flat_map(|(index, param)| {
                let word = signature.word_of(index);
                if param.is_pointer() { word + 1..word + 2 + param.view.unwrap_or(0) } else { word..word + 1 }
            })
            .collect();
        (!words.is_empty()).then(|| quote!(.reading(&[#(#words),*])))
    }

    /// Generates `.heuristics(|words, mut config| { .. })`: evaluates the heuristics in order, with the kernel's names in scope.
    fn complete(&self) -> TokenStream {
        let heuristics = &self.autotune.heuristics;
        let all: TokenStream = heuristics.iter().map(|heuristic| heuristic.value.to_token_stream()).collect();
        let (arguments, [words, config]) = (self.arguments(&all), LOCALS.map(local));
        let given = |name: &str| heuristics.iter().any(|heuristic| heuristic.name.text == name);
        let constants = self.constants().filter(|(_, generic)| !given(&generic.name.text) && mentions(&all, &generic.name.text));
        let constants = constants.map(|(_, ConstGeneric { ident, ty, .. })| quote!(let #ident: #ty = #config.#ident;));
        let parts = ["num_warps", "num_ctas", "num_stages"].into_iter().filter(|name| !given(name) && mentions(&all, name)).map(|name| {
            let ident = quote::format_ident!("{name}");
            quote!(let #ident: u32 = #config.#ident;)
        });
        let steps = heuristics.iter().map(|heuristic| {
            let (ident, value) = (&heuristic.ident, &heuristic.value);
            let ty = heuristic.constant.map_or_else(|| quote!(u32), |index| self.launcher.signature.consts[index].ty.to_token_stream());
            let span = SourceSpan::of(value).start;
            let stored = if heuristic.name.text == "maxnreg" { quote!(::core::option::Option::Some(#ident)) } else { quote!(#ident) };
            let bound = quote_spanned!(span=> let #ident: #ty = #value;);
            quote!(#bound #config.#ident = #stored;)
        });
        quote!(.heuristics(|#words, mut #config| {
            #arguments #(#constants)* #(#parts)* #(#steps)*
            #config
        }))
    }

    /// Generates `.verify(..)`: calls a Rust function with the kernel's arguments in host memory.
    fn verify(&self, Verify { reference, rtol, .. }: &Verify) -> TokenStream {
        let rtol = rtol.map_or_else(|| quote!(::core::option::Option::None), |rtol| quote!(::core::option::Option::Some(#rtol)));
        let Reference::Function(path) = reference else { return quote!(.verify(#rtol)) };
        let (mut takes, mut passed, mut gives, mut pointer) = (Vec::new(), Vec::new(), Vec::new(), 0usize);
        for (index, (param, ty)) in self.launcher.signature.params.iter().zip(self.launcher.inputs()).enumerate() {
            let (Some(of), Some(ty)) = (&param.ty, ty) else { continue };
            let name = quote::format_ident!("argument_{index}");
            let Type::Pointer { mutable, .. } = of else {
                let word = self.launcher.signature.word_of(index);
                passed.push(quote!(host.scalar::<#ty>(#word)));
                continue;
            };
            let elem = pointee(ty);
            if *mutable {
                takes.push(quote!(let mut #name = host.take::<#elem>(#pointer);));
                passed.push(quote!(&mut #name[..]));
                gives.push(quote!(host.give(#pointer, #name);));
            } else {
                takes.push(quote!(let #name = host.take::<#elem>(#pointer);));
                passed.push(quote!(&#name[..]));
            }
            pointer += 1;
        }
        let call = located(quote!(#path(#(#passed),*)), SourceSpan::of(path).start);
        let name = path.to_token_stream().to_string().replace(' ', "");
        quote!(.verify_by(#rtol, #name, |host| { #(#takes)* #call; #(#gives)* }))
    }

    /// Generates variables for the arguments that some code mentions, under their names: a scalar has its value, a tensor has its length and
    /// extents.
    fn arguments(&self, code: &TokenStream) -> TokenStream {
        let (private, signature) = (self.launcher.private(), self.launcher.signature);
        let ([words, _], mut arguments) = (LOCALS.map(local), TokenStream::new());
        for (index, (param, ty)) in signature.params.iter().zip(self.launcher.inputs()).enumerate() {
            let (ident, word) = (&param.ident, signature.word_of(index));
            if param.ty.is_none() || !mentions(code, &param.name.text) {
                continue;
            }
            arguments.extend(match (param.is_pointer(), param.view) {
                (true, view) => {
                    let rank = view.unwrap_or(0);
                    quote!(let #ident = #private::Extents::<#rank>::of(#words, #word);)
                }
                (false, _) => quote!(let #ident: #ty = #private::Scalar::of_word(#words[#word]);),
            });
        }
        if mentions(code, "extent") && signature.params.iter().any(|param| param.view.is_some()) {
            arguments.extend(quote!(
                #[allow(unused_imports, reason = "a closure may have a function of its own by this name")]
                use #private::extent;
            ));
        }
        quote!(let _ = #words; #arguments)
    }
}

/// The parameters of the closures in [`Tuned::rules`]: argument words and a configuration.
const LOCALS: [&str; 2] = ["words", "config"];

/// An identifier with macro hygiene, so that a parameter may have any name.
fn local(name: &str) -> syn::Ident {
    syn::Ident::new(name, Span::mixed_site())
}

/// The same tokens with another location, so that rustc reports errors in them there.
fn located(tokens: TokenStream, span: Span) -> TokenStream {
    let move_there = |mut token: TokenTree| {
        if let TokenTree::Group(group) = &token {
            let moved = Group::new(group.delimiter(), located(group.stream(), span));
            token = TokenTree::Group(moved);
        }
        // Name resolution stays unchanged.
        token.set_span(token.span().located_at(span));
        token
    };
    tokens.into_iter().map(move_there).collect()
}

/// Does the name occur anywhere in the code?
pub(super) fn mentions(code: &TokenStream, name: &str) -> bool {
    code.clone().into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == name,
        TokenTree::Group(group) => mentions(&group.stream(), name),
        _ => false,
    })
}

fn literal(dtype: Dtype, value: i128) -> TokenStream {
    let signed = |is_negative: bool, literal: proc_macro2::Literal| if is_negative { quote!(-#literal) } else { quote!(#literal) };
    match dtype {
        Dtype::Bool => literal_bool(value),
        Dtype::F32 => {
            let float = f32::from_bits(value as u32);
            signed(float.is_sign_negative(), proc_macro2::Literal::f32_unsuffixed(float.abs()))
        }
        Dtype::F64 => {
            let float = f64::from_bits(value as u64);
            signed(float.is_sign_negative(), proc_macro2::Literal::f64_unsuffixed(float.abs()))
        }
        _ => literal_int(value),
    }
}

fn literal_bool(value: i128) -> TokenStream {
    if value == 0 { quote!(false) } else { quote!(true) }
}

fn literal_int(value: i128) -> TokenStream {
    let literal = proc_macro2::Literal::i128_unsuffixed(value.abs());
    if value < 0 { quote!(-#literal) } else { quote!(#literal) }
}
