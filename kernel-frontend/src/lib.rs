//! Frontend: from a Rust function to generic IR and to the code that launches it.
//!
//! `expand` runs the steps: parse the signature and the attributes, parse the body into the language's own syntax tree (`ast`), convert early
//! exits to nested control flow (`structurize`), check the body and build IR in one walk (`elaborate`), compile the listed variants
//! (`variants`), and generate the launcher (`launcher`). Each step reports its errors and continues. If there are errors, the result is all
//! errors and a stub with the same signature.

mod ast;
mod attributes;
mod autotune;
mod autotune_codegen;
mod builtins;
mod depth;
mod device;
mod device_item;
mod device_struct;
mod elaborate;
mod evaluate;
mod facts;
mod heuristics;
mod launcher;
// Texts that the frontend embeds. They are never compiled; the module exists so that rustfmt formats them.
#[cfg(false)]
mod library;
mod library_files;
mod module;
mod op;
mod param_type;
mod parse;
mod rust_item;
mod signature;
mod sources;
mod span;
mod structurize;
mod summary;
mod syntax;
mod type_arguments;
mod unused;
mod variant_cache;
mod variants;

use std::ops::Range;

use proc_macro2::TokenStream;
use quote::quote;

use kernel_lang::diagnostic::{Diagnostic, Diagnostics};
use kernel_lang::ir::Function;

use device::Devices;
pub use device_item::{device, device_bundle};
use span::{Errors, SourceSpan};
pub use variant_cache::Store;
pub use variants::{Pruned, Variant};

/// The output of a macro.
#[derive(Debug)]
pub struct Expansion {
    /// The generated code, or errors and a stub.
    pub tokens: TokenStream,
    /// The kernel's name.
    pub name: String,
    /// The embedded PTX, for callers that write it to files.
    pub variants: Vec<Variant>,
    /// Configurations that were left out because no GPU of a target could run them.
    pub pruned: Vec<Pruned>,
    /// The source file of the kernel.
    pub file: String,
}

impl Expansion {
    /// An expansion without a kernel.
    fn of_tokens(tokens: TokenStream) -> Expansion {
        Expansion { tokens, name: String::new(), variants: Vec::new(), pruned: Vec::new(), file: String::new() }
    }
}

/// Expands `#[kernel(..)]` on an item; variants may come from the store.
pub fn kernel(arguments: TokenStream, item: TokenStream, store: &dyn Store) -> Expansion {
    attribute(Given { kernel: Some(arguments), autotune: None, taken: None, twice: None }, item, store)
}

/// Expands `#[autotune(..)]` on an item that also has `#[kernel]`.
pub fn autotune(arguments: TokenStream, item: TokenStream, store: &dyn Store) -> Expansion {
    let span = SourceSpan::of(&arguments);
    attribute(Given { kernel: None, autotune: Some((arguments, span)), taken: None, twice: None }, item, store)
}

/// Expands `#[op(..)]` on an item.
pub fn op(arguments: TokenStream, item: TokenStream) -> TokenStream {
    op::expand(arguments, &item)
}

/// Expands `#[derive(Module)]`.
pub fn module(item: TokenStream) -> TokenStream {
    module::expand(&item)
}

/// The generic IR of the first kernel in a source text, checked together with its listed variants. For tests and tools.
///
/// The kernel can call the device functions of the text, also those in modules by their paths; imports are not followed.
///
/// # Errors
/// All errors in the kernel.
pub fn lower_source(source: &str, file: &str) -> Result<Function, Diagnostics> {
    lower_kernel(source, file, None).map(|listed| listed.func)
}

/// A kernel of a source text, and the values that its attributes list.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The generic IR.
    pub func: Function,
    /// Of each generic and each part of the schedule: its name and its values, as a user writes them. A part of the schedule that the
    /// attributes do not name has its default. A generic without listed values is absent.
    pub choices: Vec<(String, Vec<String>)>,
    /// The names of all kernels of the text.
    pub kernels: Vec<String>,
}

/// The kernel with this name, or the first one without a name; as [`lower_source`].
///
/// # Errors
/// All errors in the kernel, or the names of the kernels if none has this name.
pub fn lower_kernel(source: &str, file: &str, name: Option<&str>) -> Result<Listed, Diagnostics> {
    let (listed, errors) = checked(source, file, name);
    errors.into_diagnostics().finish(listed).map(|listed| listed.expect("a text without a kernel is a mistake"))
}

/// The errors of the first kernel in a source text, in source order, each with the byte range to underline. For tests and tools; it has the
/// scope of [`lower_source`].
pub fn mistakes(source: &str, file: &str) -> Vec<(Range<usize>, Diagnostic)> {
    checked(source, file, None).1.into_underlined()
}

/// A builtin as described by its row in the table. For tests and tools; [`kernel_lang::dsl`] has the documentation.
#[derive(Clone, Copy, Debug)]
pub struct BuiltinInfo {
    /// The builtin's name.
    pub name: &'static str,
    /// Its usage, with all options.
    pub usage: &'static str,
    /// The number of arguments, without options; the receiver of a method counts.
    pub arguments: usize,
    /// Is it available as a method, `x.exp()`?
    pub is_method: bool,
}

/// All builtins of the language.
pub fn builtins() -> impl Iterator<Item = BuiltinInfo> {
    builtins::BUILTINS.iter().map(|row| BuiltinInfo { name: row.name, usage: row.usage, arguments: row.args, is_method: row.method })
}

/// Imports the macro `of` under the name of each builtin. In the scope of a kernel's calls, rustc then suggests a builtin with a similar name
/// for a function that it does not find.
pub fn builtin_names(of: &TokenStream) -> TokenStream {
    let names = builtins::BUILTINS.iter().filter(|row| !row.builtin.is_only_method()).map(|row| quote::format_ident!("{}", row.name));
    quote!(#(pub use #of as #names;)*)
}

/// The first kernel in a source text that has the name, if there is one, and its errors; without a kernel there is at least one error.
fn checked(source: &str, file: &str, name: Option<&str>) -> (Option<Listed>, Errors) {
    let mut errors = Errors::default();
    let tokens: TokenStream = source.parse().unwrap_or_default();
    if let Some(span) = depth::exceeded(&tokens) {
        let (message, help) = depth::message();
        errors.push_help(SourceSpan::at(span), message, help);
        return (None, errors);
    }
    let listed = match syn::parse_file(source) {
        Err(error) => {
            syntax::explain(&tokens, &error, &mut errors);
            None
        }
        Ok(parsed) => {
            let devices = Devices::of_file(&parsed, file, &mut errors);
            let mut kernels = kernels(parsed);
            let names: Vec<String> = kernels.iter().map(|(_, item)| item.sig.ident.to_string()).collect();
            let span = SourceSpan::at(proc_macro2::Span::call_site());
            let chosen = name.map_or(Some(0), |name| names.iter().position(|known| known == name)).filter(|at| *at < kernels.len());
            match (chosen, name) {
                (Some(at), _) => {
                    let (given, item) = kernels.swap_remove(at);
                    let expanded = expand(&given, &item, &devices, file, &(), &mut errors);
                    Some(Listed { func: expanded.func, choices: expanded.choices, kernels: names })
                }
                (None, Some(name)) if !names.is_empty() => {
                    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                    let help = format!("there are {}", names.join(", "));
                    errors.push_help(span, format!("there is no kernel `{name}` in this text"), help);
                    None
                }
                // Errors of the device functions may be the reason.
                (None, _) if errors.is_empty() => {
                    errors.push(span, "there is no `#[kernel]` in this text");
                    None
                }
                (None, _) => None,
            }
        }
    };
    (listed, errors)
}

/// The kernels of a file, without the language's attributes.
fn kernels(parsed: syn::File) -> Vec<(Given, syn::ItemFn)> {
    let functions = parsed.items.into_iter().filter_map(|item| if let syn::Item::Fn(item) = item { Some(item) } else { None });
    let kernel = |mut item: syn::ItemFn| {
        let mut given = Given { kernel: None, autotune: None, taken: None, twice: None };
        given.take_from(&mut item);
        (given.kernel.is_some() || given.autotune.is_some()).then_some((given, item))
    };
    functions.filter_map(kernel).collect()
}

/// The arguments of the attributes on a function.
struct Given {
    kernel: Option<TokenStream>,
    autotune: Option<(TokenStream, SourceSpan)>,
    /// The path of the attribute that was found on the function.
    taken: Option<syn::Path>,
    /// The span of a repeated attribute of the same name.
    twice: Option<SourceSpan>,
}

impl Given {
    /// The configurations: those of `#[autotune]`, or the single one of a kernel with heuristics.
    fn autotune(
        &self,
        signature: &signature::Signature,
        attributes: &attributes::Attributes,
        errors: &mut Errors,
    ) -> Option<autotune::Autotune> {
        match &self.autotune {
            Some((tokens, span)) => Some(autotune::parse(tokens.clone(), *span, signature, attributes, errors)),
            None => autotune::untuned(attributes),
        }
    }

    /// The arguments of both attributes.
    fn arguments(&self) -> Vec<TokenStream> {
        self.kernel.iter().chain(self.autotune.iter().map(|(tokens, _)| tokens)).cloned().collect()
    }

    /// Removes the language's attributes from a function.
    fn take_from(&mut self, item: &mut syn::ItemFn) {
        item.attrs.retain(|attribute| {
            let arguments = match &attribute.meta {
                syn::Meta::List(list) => list.tokens.clone(),
                _ => TokenStream::new(),
            };
            match attribute.path().segments.last().map(|segment| segment.ident.to_string()).as_deref() {
                Some("kernel") if self.kernel.is_none() => self.kernel = Some(arguments),
                Some("autotune") if self.autotune.is_none() => self.autotune = Some((arguments, SourceSpan::of(attribute.path()))),
                // If it stayed on the function, it would expand the launcher as a kernel.
                Some("kernel" | "autotune") => self.twice = Some(SourceSpan::of(attribute)),
                _ => return true,
            }
            self.taken = Some(attribute.path().clone());
            false
        });
    }
}

fn attribute(mut given: Given, tokens: TokenStream, store: &dyn Store) -> Expansion {
    let mut item = match function(&tokens, "a kernel", "write `#[kernel] fn name(x: Ptr<f32>, ..) { .. }`") {
        Ok(item) => item,
        Err(Unparsed::Body(item, errors)) => return Expansion::of_tokens(unparsed(given, *item, errors)),
        Err(Unparsed::Item(tokens)) => return Expansion::of_tokens(tokens),
    };
    let original = item.clone();
    given.take_from(&mut item);
    let mut errors = Errors::default();
    let body = parse::body(&item, &mut errors);
    if !body.requests.is_empty() {
        return deferred(&given, &item, &original, body, errors);
    }
    let file = item.sig.ident.span().file();
    let mut errors = Errors::default();
    let expanded = expand(&given, &item, &Devices::default(), &file, store, &mut errors);
    let launcher = expanded.launcher(&item, &given);
    let tokens =
        if errors.is_empty() { launcher.tokens(&expanded.func.to_string(), &expanded.outcomes.variants) } else { launcher.stub(errors) };
    Expansion { tokens, name: expanded.signature.name.text, variants: expanded.outcomes.variants, pruned: expanded.outcomes.pruned, file }
}

/// The errors of an item that is not parsed as a function.
enum Unparsed {
    /// The body has a syntax error; the function is without it.
    Body(Box<syn::ItemFn>, Errors),
    /// The expansion for any other item.
    Item(TokenStream),
}

/// Parses a function.
fn function(tokens: &TokenStream, what: &str, help: &str) -> Result<syn::ItemFn, Unparsed> {
    if let Some(span) = depth::exceeded(tokens) {
        return Err(Unparsed::Item(depth::explained(span)));
    }
    syn::parse2::<syn::ItemFn>(tokens.clone()).map_err(|error| {
        if let Some(item) = syntax::without_body(tokens) {
            let mut errors = Errors::default();
            syntax::explain(tokens, &error, &mut errors);
            return Unparsed::Body(Box::new(item), errors);
        }
        // An item other than a function is returned unchanged.
        Unparsed::Item(match syn::parse2::<syn::Item>(tokens.clone()).is_err() {
            true => syntax::explained(tokens, &error),
            false => launcher::foreign(tokens, &format!("{what} is a function"), help),
        })
    })
}

/// The stub of a kernel whose body has a syntax error, and the errors of its signature and its attributes.
fn unparsed(mut given: Given, mut item: syn::ItemFn, mut errors: Errors) -> TokenStream {
    given.take_from(&mut item);
    let signature = signature::parse(&item, &mut errors);
    let attributes = attributes::parse(given.kernel.clone().unwrap_or_default(), &signature, &mut errors);
    let autotune = given.autotune(&signature, &attributes, &mut errors);
    let launcher = launcher::Launcher {
        item: &item,
        signature: &signature,
        attributes: &attributes,
        autotune: autotune.as_ref(),
        taken: given.taken.as_ref(),
        builtins: &[],
        facts: &[],
        prints: false,
        notes: &[],
        outers: &[],
        arguments: given.arguments(),
        outer_types: &[],
    };
    launcher.stub(errors)
}

/// The launcher of a kernel that calls device functions. Macros collect the sources of the functions, and [`kernel_bundle`] then compiles the
/// kernel.
///
/// `body` is the parsed body, and `errors` has the errors found in it.
fn deferred(given: &Given, item: &syn::ItemFn, original: &syn::ItemFn, body: parse::Body, mut errors: Errors) -> Expansion {
    let mut signature = signature::parse(item, &mut errors);
    let attributes = attributes::parse(given.kernel.clone().unwrap_or_default(), &signature, &mut errors);
    let autotune = given.autotune(&signature, &attributes, &mut errors);
    let fixed = autotune.as_ref().map(autotune::Autotune::fixed).unwrap_or_default();
    signature::check_floats(&mut signature, &fixed, &mut errors);
    let krate = &attributes.krate;
    let mut whole = item.clone();
    // Other attributes apply to the launcher only; the compiled kernel needs only the attributes that determine its code.
    whole.attrs.clone_from(&original.attrs);
    whole.attrs.retain(|attribute| is_named(attribute, "kernel") || is_named(attribute, "autotune"));
    if let Some(arguments) = &given.kernel
        && !whole.attrs.iter().any(|attribute| is_named(attribute, "kernel"))
    {
        whole.attrs.push(syn::parse_quote!(#[kernel(#arguments)]));
    }
    if let Some((arguments, _)) = &given.autotune
        && !whole.attrs.iter().any(|attribute| is_named(attribute, "autotune"))
    {
        whole.attrs.push(syn::parse_quote!(#[autotune(#arguments)]));
    }
    let paths: Vec<&syn::Path> = body.requests.iter().map(|request| &request.path).collect();
    let texts = sources::texts(&body.requests);
    let kernel = sources::collect(&body.requests, &quote!(#krate::__kernel), &quote!({ #texts } { #(#paths),* } #whole));
    let launcher = launcher::Launcher {
        item,
        signature: &signature,
        attributes: &attributes,
        autotune: autotune.as_ref(),
        taken: given.taken.as_ref(),
        builtins: &[],
        facts: &[],
        prints: false,
        notes: &[],
        outers: &[],
        arguments: given.arguments(),
        outer_types: &[],
    };
    // Errors that do not depend on the functions are reported also if a function is not found; rustc shows an error once.
    let block = structurize::run(body.block, &mut errors);
    elaborate::check_kernel(&signature, &block, &body.outers, &attributes, &mut errors);
    let launcher = launcher::Launcher { outers: &body.outers, ..launcher };
    Expansion { name: signature.name.text.clone(), ..Expansion::of_tokens(launcher.deferred(&kernel, &paths[1..], errors)) }
}

/// The final callback after the sources of a kernel's device functions are collected: the compiled kernel, as an expression.
///
/// `krate` is the name of the crate that is being compiled.
pub fn kernel_bundle(tokens: TokenStream, krate: &str, store: &dyn Store) -> Expansion {
    if let Some(span) = depth::exceeded(&tokens) {
        return Expansion::of_tokens(depth::explained(span));
    }
    let read = || {
        let (state, bundles) = sources::collected(tokens)?;
        let (requests, paths, mut item) = syn::parse::Parser::parse2(state_of_kernel, state)?;
        let mut given = Given { kernel: None, autotune: None, taken: None, twice: None };
        given.take_from(&mut item);
        let mut errors = Errors::default();
        let devices = sources::devices(&requests, bundles, krate, &mut errors);
        let file = item.sig.ident.span().file();
        let expanded = expand(&given, &item, &devices, &file, store, &mut errors);
        let launcher = expanded.launcher(&item, &given);
        let tokens = if errors.is_empty() {
            launcher.value(&expanded.func.to_string(), &expanded.outcomes.variants, &paths)
        } else {
            launcher.errors(errors, &paths)
        };
        Ok(Expansion {
            tokens,
            name: expanded.signature.name.text,
            variants: expanded.outcomes.variants,
            pruned: expanded.outcomes.pruned,
            file,
        })
    };
    read().unwrap_or_else(|error: syn::Error| Expansion::of_tokens(error.to_compile_error()))
}

fn state_of_kernel(input: syn::parse::ParseStream<'_>) -> syn::Result<(Vec<String>, Vec<syn::Path>, syn::ItemFn)> {
    let (texts, paths);
    syn::braced!(texts in input);
    let mut requests = Vec::new();
    while !texts.is_empty() {
        requests.push(texts.parse::<syn::LitStr>()?.value());
    }
    syn::braced!(paths in input);
    let paths = syn::punctuated::Punctuated::<syn::Path, syn::Token![,]>::parse_terminated(&paths)?;
    Ok((requests, paths.into_iter().collect(), input.parse()?))
}

fn is_named(attribute: &syn::Attribute, name: &str) -> bool {
    attribute.path().segments.last().is_some_and(|segment| segment.ident == name)
}

struct Expanded {
    func: Function,
    signature: signature::Signature,
    attributes: attributes::Attributes,
    autotune: Option<autotune::Autotune>,
    builtins: Vec<(&'static str, proc_macro2::Span)>,
    facts: facts::Facts,
    choices: Vec<(String, Vec<String>)>,
    outcomes: variants::Outcomes,
    prints: bool,
    notes: Vec<(SourceSpan, String)>,
    outers: Vec<parse::Outer>,
    outer_types: Vec<Option<kernel_lang::dtype::Dtype>>,
}

impl Expanded {
    fn launcher<'a>(&'a self, item: &'a syn::ItemFn, given: &'a Given) -> launcher::Launcher<'a> {
        launcher::Launcher {
            item,
            signature: &self.signature,
            attributes: &self.attributes,
            autotune: self.autotune.as_ref(),
            taken: given.taken.as_ref(),
            builtins: &self.builtins,
            facts: &self.facts.list,
            prints: self.prints,
            notes: &self.notes,
            outers: &self.outers,
            arguments: given.arguments(),
            outer_types: &self.outer_types,
        }
    }
}

/// Runs all steps from a function to its IR and its variants.
fn expand(given: &Given, item: &syn::ItemFn, devices: &Devices, file: &str, store: &dyn Store, errors: &mut Errors) -> Expanded {
    let mut signature = signature::parse(item, errors);
    let name = signature.name.span;
    if given.kernel.is_none() {
        errors.push_help(name, "`#[autotune]` needs a kernel", "write `#[kernel]` below it");
    }
    if let Some(span) = given.twice {
        errors.push_help(span, "this attribute stands on the kernel twice", "remove one of them");
    }
    let attributes = attributes::parse(given.kernel.clone().unwrap_or_default(), &signature, errors);
    let autotune = given.autotune(&signature, &attributes, errors);
    let fixed = autotune.as_ref().map(autotune::Autotune::fixed).unwrap_or_default();
    signature::check_floats(&mut signature, &fixed, errors);
    let parse::Body { block, outers, .. } = parse::body(item, errors);
    let body = structurize::run(block, errors);
    let lowered = elaborate::run(&signature, &body, &outers, devices, &attributes, file, errors);
    if let Some(autotune) = autotune.as_ref().filter(|_| errors.is_empty()) {
        autotune.check(&lowered.func, name, errors);
    }
    let (mut facts, mut outcomes) = (facts::Facts::default(), variants::Outcomes::default());
    let (mut notes, mut choices) = (Vec::new(), Vec::new());
    if errors.is_empty() {
        let instances = variants::instances(&signature, &attributes, autotune.as_ref());
        let has_choice = autotune.as_ref().is_some_and(|autotune| autotune.configs.len() > 1);
        notes = variants::notes(&lowered.func, &instances, &lowered.spans, name);
        choices = variants::choices(&instances);
        facts = facts::Facts::of(&signature, &attributes.facts, &lowered.func);
        let instances = facts.instances(instances, &signature);
        outcomes = variants::compile(&lowered.func, &instances, has_choice, &lowered.spans, name, store, errors);
    }
    Expanded {
        prints: lowered.func.has_prints(),
        notes,
        func: lowered.func,
        signature,
        attributes,
        autotune,
        builtins: lowered.builtins,
        facts,
        choices,
        outcomes,
        outers,
        outer_types: lowered.outers,
    }
}
