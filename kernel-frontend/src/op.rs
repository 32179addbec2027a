//! `#[op("ns::name")]` on a function of tensors: the function, its definition with a schema, and a call that a recording can show.
//!
//! The body stays ordinary Rust. The schema is that of PyTorch, from the types of the signature:
//!
//! | Rust | schema |
//! |---|---|
//! | `&Tensor`, `&mut Tensor` | `Tensor`, `Tensor(a!)` |
//! | `Option<&Tensor>` | `Tensor?` |
//! | `&[Tensor]`, `&[&Tensor]` | `Tensor[]` |
//! | integers, `Dim`, `&Dim` | `SymInt` |
//! | `f32`, `f64` | `float` |
//! | `bool`, `&str`, `Dtype` | `bool`, `str`, `ScalarType` |

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};

use crate::span::{Errors, SourceSpan};

mod schema;

use schema::{is_slice_of_references, result_of, returned, schema_type};

/// The arguments of the attribute.
struct Arguments {
    name: syn::LitStr,
    krate: TokenStream,
    /// The function of the gradients, and the names of what it gets besides them.
    backward: Option<(Vec<syn::Ident>, syn::Expr)>,
    /// The function in place of the body for tensors on the CPU.
    cpu: Option<syn::Expr>,
    /// The number of floating-point operations of a call.
    flops: Option<syn::Expr>,
    /// The word `opaque`: the body is never recorded.
    opaque: Option<syn::Ident>,
    /// The function that makes the results of an opaque op in a recording.
    fake: Option<syn::Expr>,
}

/// The options that follow the name.
const OPTIONS: [&str; 6] = ["backward", "cpu", "crate", "fake", "flops", "opaque"];
const HELP: &str =
    "write `#[op(\"namespace::name\")]`, with the options `backward(x, out) = f`, `cpu = f`, `flops = f` and `opaque, fake = f` if needed";

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> syn::Result<Arguments> {
        let mut arguments =
            Arguments { name: input.parse()?, krate: quote!(::galatea), backward: None, cpu: None, flops: None, opaque: None, fake: None };
        while input.parse::<Option<syn::Token![,]>>()?.is_some() && !input.is_empty() {
            let option = input.call(syn::Ident::parse_any)?;
            if !OPTIONS.iter().any(|known| option == known) {
                let similar =
                    kernel_lang::diagnostic::did_you_mean(&option.to_string(), OPTIONS).map(|known| format!("; there is `{known}`"));
                return Err(syn::Error::new(option.span(), format!("an op has no option `{option}`{}", similar.unwrap_or_default())));
            }
            let saved = if option == "backward" && input.peek(syn::token::Paren) {
                let content;
                syn::parenthesized!(content in input);
                content.parse_terminated(syn::Ident::parse, syn::Token![,])?.into_iter().collect()
            } else {
                Vec::new()
            };
            if option != "opaque" {
                input.parse::<syn::Token![=]>()?;
            }
            let is_new = match option.to_string().as_str() {
                "crate" => {
                    arguments.krate = syn::Path::parse_mod_style(input)?.to_token_stream();
                    true
                }
                "backward" => arguments.backward.replace((saved, input.parse()?)).is_none(),
                "cpu" => arguments.cpu.replace(input.parse()?).is_none(),
                "fake" => arguments.fake.replace(input.parse()?).is_none(),
                "opaque" => arguments.opaque.replace(option.clone()).is_none(),
                _ => arguments.flops.replace(input.parse()?).is_none(),
            };
            if !is_new {
                return Err(syn::Error::new(option.span(), format!("`{option}` is given twice")));
            }
        }
        if !input.is_empty() {
            return Err(input.error("expected `,`"));
        }
        Ok(arguments)
    }
}

/// Expands the attribute.
pub(crate) fn expand(arguments: TokenStream, item: &TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let span = SourceSpan::of(&arguments);
    let written = arguments.clone();
    let arguments = syn::parse2::<Arguments>(arguments);
    let Ok(function) = syn::parse2::<syn::ItemFn>(item.clone()) else {
        errors.push_help(
            SourceSpan::of(item),
            "an op is a function",
            "write `#[op(\"namespace::name\")]` in front of a function of tensors",
        );
        let errors = errors.into_tokens();
        return quote!(#errors #item);
    };
    let arguments = match arguments {
        Ok(arguments) => arguments,
        Err(error) => {
            let at = SourceSpan::of(&error.to_compile_error());
            let is_named = syn::parse2::<syn::LitStr>(first_token(&written)).is_ok();
            match is_named {
                true => errors.push_help(at, error.to_string(), HELP),
                false => errors.push_help(span, "an op has a name", HELP),
            }
            let errors = errors.into_tokens();
            return quote!(#errors #item);
        }
    };
    check_name(&arguments.name, &mut errors);
    let signature = Signature::of(&function, &mut errors);
    signature.check(&arguments, &mut errors);
    if !errors.is_empty() {
        let errors = errors.into_tokens();
        return quote!(#errors #item);
    }
    signature.tokens(&function, &arguments)
}

fn first_token(tokens: &TokenStream) -> TokenStream {
    tokens.clone().into_iter().take(1).collect()
}

fn check_name(name: &syn::LitStr, errors: &mut Errors) {
    let value = name.value();
    let is_word = |word: &str| {
        let mut chars = word.chars();
        chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_') && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let is_name = value
        .split_once("::")
        .is_some_and(|(namespace, name)| is_word(namespace) && name.split('.').all(is_word) && name.split('.').count() <= 2);
    if !is_name {
        let message = format!("`{value}` is no name of an op");
        errors.push_help(SourceSpan::of(name), message, "a name has a namespace: `mylib::silu`, or `mylib::silu.out` with an overload");
    }
}

/// The parameters of an op.
struct Signature<'a> {
    params: Vec<Param<'a>>,
    /// The part of the schema behind the arrow.
    returns: String,
}

struct Param<'a> {
    ident: &'a syn::Ident,
    ty: &'a syn::Type,
    schema: String,
    /// A tensor that the op writes.
    is_written: bool,
}

impl Param<'_> {
    fn is_tensor(&self) -> bool {
        self.schema.starts_with("Tensor")
    }

    fn is_reference(&self) -> bool {
        matches!(self.ty, syn::Type::Reference(_))
    }

    /// The variable with what the op keeps of the parameter.
    fn saved(&self) -> syn::Ident {
        quote::format_ident!("galatea_saved_{}", self.ident.unraw())
    }

    /// The expression of the parameter for a backward function, which is lent what the op keeps.
    fn lent(&self) -> TokenStream {
        let saved = self.saved();
        match () {
            () if self.schema.starts_with("Tensor?") => quote!(#saved.as_ref()),
            () if self.is_reference() => quote!(&#saved),
            () => quote!(#saved),
        }
    }
}

impl<'a> Signature<'a> {
    fn of(function: &'a syn::ItemFn, errors: &mut Errors) -> Signature<'a> {
        let sig = &function.sig;
        for (is_there, span, what) in [
            (sig.asyncness.is_some(), SourceSpan::of(&sig.asyncness), "`async`"),
            (!matches!(sig.safety, syn::Safety::Default), SourceSpan::of(&sig.safety), "`unsafe`"),
            (!sig.generics.params.is_empty(), SourceSpan::of(&sig.generics), "generic"),
            (sig.variadic.is_some(), SourceSpan::of(&sig.variadic), "variadic"),
        ] {
            if is_there {
                errors.push_help(span, format!("an op cannot be {what}"), "write an ordinary function of tensors");
            }
        }
        let mut letters = 'a'..='z';
        let mut params = Vec::new();
        for input in &sig.inputs {
            let syn::FnArg::Typed(typed) = input else {
                errors.push_help(SourceSpan::of(input), "an op has no receiver", "write a function, and pass the fields that it needs");
                continue;
            };
            let syn::Pat::Ident(syn::PatIdent { ident, .. }) = &*typed.pat else {
                errors.push_help(SourceSpan::of(&typed.pat), "a parameter of an op has a name", "write `x: &Tensor`");
                continue;
            };
            match schema_type(&typed.ty) {
                Some("Tensor!") => {
                    let letter = letters.next().unwrap_or('z');
                    params.push(Param { ident, ty: &typed.ty, schema: format!("Tensor({letter}!) {ident}"), is_written: true });
                }
                Some(ty) => params.push(Param { ident, ty: &typed.ty, schema: format!("{ty} {ident}"), is_written: false }),
                None => errors.push_help(
                    SourceSpan::of(&typed.ty),
                    format!("an op cannot take `{}`", text(&typed.ty)),
                    "a parameter is `&Tensor`, `&mut Tensor`, `Option<&Tensor>`, `&[Tensor]`, an integer, `Dim`, `f32`, `f64`, `bool`, `&str` or `Dtype`",
                ),
            }
        }
        let returns = match &sig.output {
            syn::ReturnType::Type(_, ty) => result_of(ty).and_then(returned),
            syn::ReturnType::Default => None,
        };
        if returns.is_none() {
            errors.push_help(
                SourceSpan::of(&sig.output),
                "an op returns a `Result` of tensors",
                "write `-> Result<Tensor>`, `-> Result<(Tensor, Tensor)>` or `-> Result<()>`",
            );
        }
        Signature { params, returns: returns.unwrap_or_default() }
    }

    /// The names of the returned tensors for a backward function: `out`, or `out0`, `out1` and so on.
    fn outputs(&self) -> Vec<String> {
        match self.returns.matches("Tensor").count() {
            1 => vec!["out".to_owned()],
            count => (0..count).map(|number| format!("out{number}")).collect(),
        }
    }

    /// Checks the options against the signature.
    fn check(&self, arguments: &Arguments, errors: &mut Errors) {
        match (&arguments.opaque, &arguments.fake) {
            (Some(opaque), None) => errors.push_help(
                SourceSpan::of(opaque),
                "an opaque op has a function that makes its results in a recording",
                "write `opaque, fake = f`: `f` has the signature of the op, and allocates the results without elements",
            ),
            (None, Some(fake)) => errors.push_help(
                SourceSpan::of(fake),
                "`fake` is for opaque ops: a recording calls the body of this one",
                "remove `fake`, or write `opaque` if the body cannot be recorded",
            ),
            _ => {}
        }
        let Some((saved, function)) = &arguments.backward else { return };
        if !self.params.iter().any(Param::is_tensor) {
            errors.push_help(SourceSpan::of(function), "an op without a tensor has no gradient", "remove `backward`");
        }
        let names: Vec<String> = self.params.iter().map(|param| param.ident.to_string()).chain(self.outputs()).collect();
        for name in saved {
            if !names.contains(&name.to_string()) {
                let message = format!("the op has no parameter `{name}`");
                errors.push_help(SourceSpan::of(name), message, format!("the names are `{}`", names.join("`, `")));
            }
        }
    }

    fn tokens(&self, function: &syn::ItemFn, arguments: &Arguments) -> TokenStream {
        let Arguments { name, krate, backward, cpu, flops, opaque, fake } = arguments;
        let name = name.value();
        let (attrs, vis, sig, block) = (&function.attrs, &function.vis, &function.sig, &function.block);
        let (ident, inputs, output) = (&sig.ident, &sig.inputs, &sig.output);
        let params: Vec<&str> = self.params.iter().map(|param| &*param.schema).collect();
        let schema = format!("{name}({}) -> {}", params.join(", "), self.returns);
        let private = quote!(#krate::__private);
        let named = |param: &Param<'_>| {
            let (ident, text) = (param.ident, param.ident.to_string());
            quote!((#text, &#ident))
        };
        let all: Vec<TokenStream> = self.params.iter().map(named).collect();
        let tensors: Vec<TokenStream> = self.params.iter().filter(|param| param.is_tensor()).map(named).collect();
        // A tensor that the body writes is lent to it, and looked at again after it.
        let passed: Vec<TokenStream> = self
            .params
            .iter()
            .map(|Param { ident, is_written, .. }| if *is_written { quote!(&mut *#ident) } else { quote!(#ident) })
            .collect();
        let written: Vec<&syn::Ident> = self.params.iter().filter(|param| param.is_written).map(|param| param.ident).collect();
        // Variables with macro hygiene, so that a parameter may have any name. Functions have none.
        let [call, result, tape, saved] = ["call", "result", "tape", "saved"].map(|name| syn::Ident::new(name, Span::mixed_site()));
        let def = quote!(#ident::DEF);
        let body = match cpu {
            None => quote!(galatea_body(#(#passed),*)),
            Some(cpu) => quote! {
                if #private::is_on_cpu(&[#(#tensors),*]) { (#cpu)(#(#passed),*) } else { galatea_body(#(#passed),*) }
            },
        };
        let (lists, values) = self.inputs(krate);
        // A type of the op's own that cannot be made of the runtime's errors is an error of its signature.
        let own_error = quote_spanned!(syn::spanned::Spanned::span(output)=> #private::own_error);
        let body = match fake {
            None => body,
            Some(fake) => {
                let types = self.params.iter().map(|param| param.ty);
                let by_name = self.by_name("galatea_fake", &quote!(galatea_typed), krate, &def);
                quote! {
                    if #call.is_opaque() {
                        fn galatea_typed(#inputs) #output {
                            let galatea_function: fn(#(#types),*) #output = #fake;
                            galatea_function(#(#passed),*)
                        }
                        #by_name
                        #lists
                        #own_error(#call.record(::std::vec![#(#values),*], galatea_fake))
                    } else {
                        #body
                    }
                }
            }
        };
        let flops = flops.as_ref().map(|flops| {
            let types = self.params.iter().map(|param| match param.ty {
                syn::Type::Reference(reference) => {
                    let elem = &reference.elem;
                    quote!(&#elem)
                }
                ty => quote!(#ty),
            });
            let values = self.params.iter().map(|Param { ident, is_written, .. }| match is_written {
                true => quote!(&*#ident),
                false => quote!(::core::clone::Clone::clone(&#ident)),
            });
            quote! {
                #call.flops(|| {
                    let flops: fn(#(#types),*) -> #private::Dim = #flops;
                    flops(#(#values),*)
                });
            }
        });
        let (begin, end) = match backward {
            None if opaque.is_some() => {
                let refuse = quote! {
                    if let ::core::result::Result::Err(error) = #private::refuse_gradients(&#def, &[#(#tensors),*]) {
                        return #own_error(::core::result::Result::Err(error));
                    }
                };
                (refuse, TokenStream::new())
            }
            None => (TokenStream::new(), quote!(let #result = #private::named(&#def, &[#(#tensors),*], #result);)),
            Some((names, function)) => {
                let saves: Vec<&Param<'_>> = self.params.iter().filter(|param| names.contains(param.ident)).collect();
                let (idents, kept) = (saves.iter().map(|param| param.ident), saves.iter().map(|param| param.saved()));
                let begin = quote! {
                    let #tape = #private::tape(&#def, &[#(#tensors),*]);
                    let #saved = #tape.as_ref().map(|_| (#(#private::Saved::saved(&#idents),)*));
                };
                let end = self.backward(names, function, krate, &def);
                let end = quote! {
                    let mut #result = #result;
                    if let (Some(galatea_tape), Some((#(#kept,)*)), Ok(galatea_returned)) = (#tape, #saved, &mut #result) {
                        #end
                    }
                };
                (begin, end)
            }
        };
        let doc = format!("The definition of the op `{name}`.");
        let by_name = self.by_name("galatea_call", &quote!(galatea_op), krate, &def);
        let idents = self.params.iter().map(|param| param.ident);
        let (has_backward, has_cpu, is_opaque) = (backward.is_some(), cpu.is_some(), opaque.is_some());
        // An operation of a recording has the line of its caller, as a launch has.
        let is_tracked = attrs.iter().any(|attr| attr.path().is_ident("track_caller"));
        let tracked = is_opaque.then(|| quote!(#[track_caller]));
        let track_caller = tracked.clone().filter(|_| !is_tracked);
        quote! {
            #[doc = #doc]
            #vis mod #ident {
                #[doc = #doc]
                pub static DEF: #private::OpDef = #private::OpDef {
                    name: #name,
                    schema: #schema,
                    file: ::core::file!(),
                    line: ::core::line!(),
                    has_backward: #has_backward,
                    has_cpu: #has_cpu,
                    is_opaque: #is_opaque,
                };
            }

            #(#attrs)*
            #track_caller
            #vis fn #ident(#inputs) #output {
                fn galatea_body(#inputs) #output #block
                #tracked
                fn galatea_op(#inputs) #output {
                    let #call = #private::OpCall::begin(&#def, &[#(#all),*]);
                    #flops
                    #begin
                    #[allow(clippy::redundant_closure_call, reason = "a function may be given as a closure")]
                    let #result = #body;
                    #end
                    #call.end(&#result, &[#(&*#written),*]);
                    #result
                }
                const _: () = {
                    #by_name
                    #private::inventory::submit! {
                        #private::OpEntry { def: &#def, function: galatea_call }
                    }
                };
                if #private::is_intercepted() {
                    #lists
                    return #own_error(#private::intercepted(&#def, ::std::vec![#(#values),*]));
                }
                galatea_op(#(#idents),*)
            }

            // An op that is called only by name is used.
            const _: () = {
                let _ = #ident;
            };
        }
    }

    /// What follows the body of a call through which gradients flow: `galatea_tape` ends, with a closure that calls the backward function.
    fn backward(&self, names: &[syn::Ident], function: &syn::Expr, krate: &TokenStream, def: &TokenStream) -> TokenStream {
        let private = quote!(#krate::__private);
        let is_list = self.returns == "Tensor[]";
        let written: Vec<&syn::Ident> = self.params.iter().filter(|param| param.is_written).map(|param| param.ident).collect();
        let outputs = self.outputs();
        let grads = match is_list {
            true => quote!(galatea_grads),
            false => {
                let numbers = 0..outputs.len() + written.len();
                quote!(#(&galatea_grads[#numbers]),*)
            }
        };
        let mut kept = Vec::new();
        let mut lent = Vec::new();
        for name in names {
            if let Some(param) = self.params.iter().find(|param| param.ident == name) {
                lent.push(param.lent());
                continue;
            }
            let variable = quote::format_ident!("galatea_{name}");
            let number = outputs.iter().position(|output| name == output);
            kept.push(match is_list {
                true => quote! {
                    let #variable: ::std::vec::Vec<_> =
                        #private::OpResults::tensors(galatea_returned).into_iter().map(#private::Saved::saved).collect();
                },
                false => quote!(let #variable = #private::Saved::saved(#private::OpResults::tensors(galatea_returned)[#number]);),
            });
            lent.push(quote!(&#variable));
        }
        let tensors = self.params.iter().filter(|param| param.is_tensor()).count();
        let span = syn::spanned::Spanned::span(function);
        let call = quote_spanned!(span=> (#function)(#grads, #(#lent),*));
        let into_grads = quote_spanned!(span=> #private::OpGrads::<#tensors>::into_grads);
        quote! {
            #(#kept)*
            let mut galatea_results = #private::OpResults::tensors_mut(galatea_returned);
            #(galatea_results.push(&mut *#written);)*
            galatea_tape.end(galatea_results, &#krate::__autograd::KERNELS, move |galatea_grads| {
                #[allow(clippy::redundant_closure_call, reason = "a function may be given as a closure")]
                let galatea_found = #call.map_err(|error| #private::into_error(&#def, error))?;
                Ok(#into_grads(galatea_found))
            });
        }
    }

    /// A function that calls `target`, which has the signature of the op, with arguments of any type.
    fn by_name(&self, name: &str, target: &TokenStream, krate: &TokenStream, def: &TokenStream) -> TokenStream {
        let private = quote!(#krate::__private);
        let name = quote::format_ident!("{name}");
        let count = self.params.len();
        let takes = self.params.iter().enumerate().map(|(number, param)| {
            let variable = quote::format_ident!("galatea_{number}");
            let text = param.ident.to_string();
            let ty = match () {
                () if param.schema.starts_with("Tensor[]") => quote!(&[#private::OpTensor]),
                () if param.is_reference() && param.schema.starts_with("SymInt") => quote!(#private::Dim),
                () => quote!(_),
            };
            quote!(let #variable = inputs.next::<#ty>(#text)?;)
        });
        let passes = self.params.iter().enumerate().map(|(number, param)| {
            let variable = quote::format_ident!("galatea_{number}");
            match () {
                () if is_slice_of_references(param.ty) => quote!(&#variable.iter().collect::<::std::vec::Vec<_>>()),
                () if param.is_reference() && param.schema.starts_with("SymInt") => quote!(&#variable),
                () => quote!(#variable),
            }
        });
        quote! {
            fn #name<'a>(
                inputs: ::std::vec::Vec<#private::OpInput<'a>>,
            ) -> ::core::result::Result<::std::vec::Vec<#private::OpTensor>, #private::Error> {
                let mut inputs = #private::OpInputs::new(&#def, inputs, #count)?;
                #(#takes)*
                let results = #target(#(#passes),*).map_err(|error| #private::into_error(&#def, error))?;
                Ok(#private::OpResults::tensors(&results).into_iter().cloned().collect())
            }
        }
    }

    /// The arguments as those of a call by name: variables with lists, and the arguments, which may borrow them.
    fn inputs(&self, krate: &TokenStream) -> (TokenStream, Vec<TokenStream>) {
        let private = quote!(#krate::__private);
        let (mut lists, mut values) = (TokenStream::new(), Vec::new());
        for (number, Param { ident, ty, is_written, .. }) in self.params.iter().enumerate() {
            let value = match () {
                () if *is_written => quote!(&mut *#ident),
                () if is_slice_of_references(ty) => {
                    let list = quote::format_ident!("galatea_{number}");
                    lists.extend(quote! {
                        let #list: ::std::vec::Vec<#private::OpTensor> = #ident.iter().map(|tensor| (*tensor).clone()).collect();
                    });
                    quote!(&*#list)
                }
                () => quote!(#ident),
            };
            values.push(quote!(#private::OpInput::from(#value)));
        }
        (lists, values)
    }
}

/// A type as a user writes it.
fn text(ty: &syn::Type) -> String {
    let spaced = ty.to_token_stream().to_string();
    [(" :: ", "::"), (" < ", "<"), (" >", ">"), ("& ", "&"), (" ,", ","), ("[ ", "["), (" ]", "]")]
        .iter()
        .fold(spaced, |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(signature: &str) -> String {
        let tokens: TokenStream = format!("{signature} {{}}").parse().expect("it is Rust");
        let expanded = expand(quote!("ns::f"), &tokens).to_string();
        expanded.split("schema : \"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or(&expanded).to_owned()
    }

    #[test]
    fn schemas_are_those_of_torch() {
        for (signature, expected) in [
            ("fn f(x: &Tensor) -> Result<Tensor>", "ns::f(Tensor x) -> Tensor"),
            ("pub fn f(x: &ops::Tensor, y: &mut Tensor) -> galatea::Result<()>", "ns::f(Tensor x, Tensor(a!) y) -> ()"),
            ("fn f(a: &mut Tensor, b: &mut Tensor) -> Result<()>", "ns::f(Tensor(a!) a, Tensor(b!) b) -> ()"),
            (
                "fn f(x: Option<&Tensor>, all: &[Tensor], some: &[&Tensor]) -> Result<Vec<Tensor>>",
                "ns::f(Tensor? x, Tensor[] all, Tensor[] some) -> Tensor[]",
            ),
            (
                "fn f(n: usize, d: Dim, e: &Dim, a: f32, b: bool, s: &str, t: Dtype) -> Result<(Tensor, Tensor)>",
                "ns::f(SymInt n, SymInt d, SymInt e, float a, bool b, str s, ScalarType t) -> (Tensor, Tensor)",
            ),
        ] {
            assert_eq!(schema(signature), expected);
        }
    }
}
