//! Arguments of the `#[autotune]` attribute:
//! `#[autotune(configs = [Config { BLOCK_SIZE: 1024, num_warps: 4 }, ..], key = [n], prune = |config| config.BLOCK_SIZE < n, ..)]`.
//!
//! [`configs`] handles the configurations, and [`key`] the tuning key. A kernel with heuristics and without `#[autotune]` is treated as one
//! with a single configuration.

mod configs;
mod key;
mod verify;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};

use crate::attributes::{Attributes, integer};
use crate::heuristics::{self, Heuristic};
use crate::parse::plain;
use crate::signature::Signature;
use crate::span::{Errors, SourceSpan};
use kernel_lang::diagnostic::did_you_mean;
use kernel_lang::ir::{Function, Type};

pub(crate) use configs::Config;
pub(crate) use key::{Bucket, KeyPart};
pub(crate) use verify::{Reference, Verify};

/// The arguments of `#[autotune(..)]`, checked against the signature.
#[derive(Default)]
pub(crate) struct Autotune {
    /// The constant parameters that the configurations set, by index.
    pub(crate) tuned: Vec<usize>,
    pub(crate) configs: Vec<Config>,
    /// Values that every launch computes after choosing its configuration.
    pub(crate) heuristics: Vec<Heuristic>,
    /// The parts of the arguments that select the configuration.
    pub(crate) key: Vec<KeyPart>,
    /// A closure that returns true for configurations that do not fit the arguments.
    pub(crate) prune: Option<TokenStream>,
    /// The maximum number of configurations to time, and a closure that estimates the cost of each.
    pub(crate) top_k: Option<(usize, TokenStream)>,
    /// The pointers whose contents tuning restores, besides those that the kernel both reads and writes, by their index among pointers.
    pub(crate) restored: Vec<usize>,
    /// Is `restore_value` given, even if it is empty?
    pub(crate) says_restored: bool,
    /// The pointers that tuning sets to zero before each run.
    pub(crate) zeroed: Vec<usize>,
    /// Closures that tuning calls before and after each run.
    pub(crate) pre_hook: Option<TokenStream>,
    pub(crate) post_hook: Option<TokenStream>,
    /// The time budgets of tuning in milliseconds, for all configurations together: `warmup` before the measurement, `rep` for it.
    pub(crate) warmup: Option<u32>,
    pub(crate) rep: Option<u32>,
    /// Files with tuning records, relative to the crate's manifest.
    pub(crate) records: Vec<syn::LitStr>,
    /// The reference with which the results of each configuration are compared before it may be chosen.
    pub(crate) verify: Option<Verify>,
}

/// The maximum number of configurations with `prune`: the runtime has one bit for each.
const MOST_PRUNED: usize = 128;

const FORM: &str = "write `#[autotune(configs = [Config { BLOCK_SIZE: 1024, num_warps: 4 }, ..], key = [n])]`";

const OPTIONS: [&str; 12] = [
    "configs",
    "key",
    "prune",
    "heuristics",
    "reset_to_zero",
    "restore_value",
    "warmup",
    "rep",
    "pre_hook",
    "post_hook",
    "records",
    "verify",
];

/// Triton's names for the same options.
const FOREIGN: [(&str, &str); 9] = [
    (
        "prune_configs_by",
        "write `prune = |config| ..` for those that do not fit, `prune = top_k(4, |config| ..)` for those that may be fast",
    ),
    ("early_config_prune", "write `prune = |config| config.BLOCK_SIZE < n`"),
    ("perf_model", "write `prune = top_k(4, |config| estimated_cost)`"),
    ("top_k", "write `prune = top_k(4, |config| estimated_cost)`"),
    ("do_not_specialize", "write `#[kernel(do_not_specialize = [stride])]`"),
    ("do_not_specialize_on_alignment", "the alignment of tensors selects no variant of a kernel, so there is nothing to turn off"),
    ("use_cuda_graph", "runs are timed by events of the GPU, which the time of a launch is no part of"),
    ("do_bench", "`warmup = 5, rep = 100` say how many milliseconds tuning may take"),
    ("cache_results", "what was chosen is kept on disk; `records = \"tuned.json\"` embeds what you commit"),
];

/// Parses the attribute's arguments.
pub(crate) fn parse(
    tokens: TokenStream,
    span: SourceSpan,
    signature: &Signature,
    attributes: &Attributes,
    errors: &mut Errors,
) -> Autotune {
    let mut autotune = Autotune { heuristics: attributes.heuristics.clone(), ..Autotune::default() };
    let (mut configs, before, mut seen) = (None, errors.len(), Vec::new());
    let result = (|input: ParseStream<'_>| {
        while !input.is_empty() {
            let ident = input.call(syn::Ident::parse_any)?;
            let (name, span) = (plain(&ident), SourceSpan::from(&ident));
            let is_new = !seen.contains(&name);
            if !is_new {
                errors.push_help(span, format!("`{name}` is given twice"), "remove one of them");
            }
            match name.as_str() {
                "heuristics" if input.peek(syn::token::Paren) => {
                    let content;
                    syn::parenthesized!(content in input);
                    heuristics::parse(&content, signature, &mut autotune.heuristics, errors)?;
                }
                "verify" if input.peek(syn::token::Paren) => {
                    let content;
                    syn::parenthesized!(content in input);
                    autotune.verify = verify::parse(span, &content, signature, errors)?;
                }
                _ => {
                    input.parse::<syn::Token![=]>()?;
                    if name == "configs" {
                        configs = Some((span, configs::read(input)?));
                    } else {
                        let value = input.parse::<syn::Expr>()?;
                        if is_new {
                            option(&name, span, value, signature, &mut autotune, errors);
                        }
                    }
                }
            }
            seen.push(name);
            if !input.is_empty() {
                input.parse::<syn::Token![,]>()?;
            }
        }
        Ok(())
    })
    .parse2(tokens);
    if let Err(error) = result {
        errors.push_help(SourceSpan::at(error.span()), format!("this attribute cannot be read: {error}"), FORM);
        return autotune;
    }
    match configs {
        // A misspelt `configs` has been reported.
        None if errors.len() > before => {}
        None => errors.push_help(span, "`#[autotune]` needs configurations", FORM),
        Some((span, items)) => {
            configs::list(span, &items, signature, attributes, &mut autotune, errors);
            if autotune.prune.is_some() && autotune.configs.len() > MOST_PRUNED {
                let message = format!("`prune` chooses among at most {MOST_PRUNED} configurations, here are {}", autotune.configs.len());
                errors.push_help(span, message, "list fewer, or make two kernels of it");
            }
        }
    }
    autotune
}

/// The single configuration of a kernel with heuristics and without tuning; it sets nothing.
pub(crate) fn untuned(attributes: &Attributes) -> Option<Autotune> {
    let configs = vec![Config { values: Vec::new(), schedule: attributes.schedule }];
    let heuristics = attributes.heuristics.clone();
    (!heuristics.is_empty()).then(|| Autotune { configs, heuristics, ..Autotune::default() })
}

impl Autotune {
    /// Checks that tuning can restore all memory that runs of this kernel change.
    pub(crate) fn check(&self, func: &Function, span: SourceSpan, errors: &mut Errors) {
        if self.configs.len() > 1 && !self.says_restored && func.writes_elsewhere() {
            let message = "tuning runs the kernel many times, and cannot restore memory of which only the kernel knows the address";
            errors.push_help(span, message, "if another run changes nothing there, say so: `#[autotune(.., restore_value = [])]`");
        }
        if let Some(verify) = &self.verify {
            verify.check(func, errors);
        }
    }

    /// The constant parameters that a launch does not name, by index.
    pub(crate) fn fixed(&self) -> Vec<usize> {
        let mut fixed: Vec<usize> =
            self.tuned.iter().copied().chain(self.heuristics.iter().filter_map(|heuristic| heuristic.constant)).collect();
        fixed.sort_unstable();
        fixed.dedup();
        fixed
    }
}

fn option(name: &str, span: SourceSpan, value: syn::Expr, signature: &Signature, autotune: &mut Autotune, errors: &mut Errors) {
    match name {
        "key" => key::parse(&value, signature, &mut autotune.key, errors),
        "prune" => prune(value, autotune, errors),
        "heuristics" => errors.push_help(span, "heuristics stand in parentheses", heuristics::FORM),
        "restore_value" => {
            autotune.says_restored = true;
            autotune.restored = written(&value, signature, errors);
        }
        "reset_to_zero" => autotune.zeroed = written(&value, signature, errors),
        "warmup" => autotune.warmup = milliseconds(name, &value, 0, errors),
        "rep" => autotune.rep = milliseconds(name, &value, 1, errors),
        "pre_hook" => autotune.pre_hook = hook(name, value, errors),
        "post_hook" => autotune.post_hook = hook(name, value, errors),
        "records" => autotune.records = records(&value, errors),
        "verify" => autotune.verify = verify::with(value, signature, errors),
        _ => {
            let help = match FOREIGN.iter().find(|(foreign, _)| *foreign == name) {
                Some((_, help)) => (*help).to_string(),
                None => did_you_mean(name, OPTIONS).map_or_else(|| FORM.to_string(), |near| format!("did you mean `{near}`?")),
            };
            errors.push_help(span, format!("`#[autotune]` has no option `{name}`"), help);
        }
    }
    let both = autotune.restored.iter().find(|pointer| autotune.zeroed.contains(pointer));
    if let Some(both) = both
        && matches!(name, "restore_value" | "reset_to_zero")
    {
        let param = &signature.pointers().nth(*both).map_or_else(String::new, |param| param.name.text.clone());
        errors.push_help(span, format!("`{param}` is both set to zero and restored"), "remove it from one of the two lists");
    }
}

/// The elements of a list in brackets, or a single value.
fn several(value: &syn::Expr) -> Vec<&syn::Expr> {
    match value {
        syn::Expr::Array(array) => array.elems.iter().collect(),
        other => vec![other],
    }
}

/// The name, if the expression is a single name.
pub(crate) fn name_of(value: &syn::Expr) -> Option<String> {
    match value {
        syn::Expr::Path(path) => path.path.get_ident().map(plain),
        syn::Expr::Group(group) => name_of(&group.expr),
        _ => None,
    }
}

/// The index of the parameter of that name; reports an error if there is none.
fn parameter(name: &str, span: SourceSpan, what: &str, signature: &Signature, errors: &mut Errors) -> Option<usize> {
    let found = signature.params.iter().position(|param| param.name.text == name);
    if found.is_none() {
        let help = match did_you_mean(name, signature.params.iter().map(|param| param.name.text.as_str())) {
            Some(near) => format!("did you mean `{near}`?"),
            None => what.to_string(),
        };
        errors.push_help(span, format!("the kernel has no parameter `{name}`"), help);
    }
    found
}

/// Parses names of tensors that the kernel writes, as their indices among pointers.
fn written(value: &syn::Expr, signature: &Signature, errors: &mut Errors) -> Vec<usize> {
    const HELP: &str = "name parameters of type `PtrMut<T>` or `ViewMut<T, 2>`";
    let mut found = Vec::new();
    for value in several(value) {
        let span = SourceSpan::of(value);
        let Some(name) = name_of(value) else {
            errors.push_help(span, "the list names parameters that the kernel writes", "write `[y]`");
            continue;
        };
        let Some(index) = parameter(&name, span, HELP, signature, errors) else { continue };
        match &signature.params[index].ty {
            // The error is reported at the parameter.
            None => {}
            Some(Type::Pointer { mutable: true, .. }) => {
                let number = signature.params[..index].iter().filter(|param| param.is_pointer()).count();
                if found.contains(&number) {
                    errors.push_help(span, format!("`{name}` is listed twice"), "remove one of them");
                } else {
                    found.push(number);
                }
            }
            Some(Type::Pointer { .. }) => errors.push_help(span, format!("the kernel does not write `{name}`"), HELP),
            Some(_) => errors.push_help(span, format!("`{name}` is no tensor"), HELP),
        }
    }
    found
}

/// Parses names of files: rustc finds their texts, and the runtime parses them.
fn records(value: &syn::Expr, errors: &mut Errors) -> Vec<syn::LitStr> {
    let mut found: Vec<syn::LitStr> = Vec::new();
    for value in several(value) {
        match value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(file), .. }) if !file.value().is_empty() => {
                if found.iter().any(|known| known.value() == file.value()) {
                    errors.push_help(SourceSpan::of(value), "this file is listed twice", "remove one of them");
                } else {
                    found.push(file.clone());
                }
            }
            _ => {
                const HELP: &str = "write `records = \"tuned/h200.json\"`, a path from the folder of `Cargo.toml` on";
                errors.push_help(SourceSpan::of(value), "`records` is the name of a file, or a list of them", HELP);
            }
        }
    }
    found
}

fn prune(value: syn::Expr, autotune: &mut Autotune, errors: &mut Errors) {
    const HELP: &str = "say which configurations do not fit the arguments: `prune = |config| config.BLOCK_SIZE < n`";
    const TOP_K: &str = "say how many to time, and what each may cost: `prune = top_k(4, |config| cdiv(n, config.BLOCK_SIZE) as f64)`";
    for value in several(&value) {
        let (span, twice) = (SourceSpan::of(value), "this is given twice");
        match value {
            syn::Expr::Closure(closure) if closure.inputs.len() == 1 => {
                if autotune.prune.replace(closure.to_token_stream()).is_some() {
                    errors.push_help(span, twice, "join them with `||`");
                }
            }
            syn::Expr::Call(call) if matches!(&*call.func, syn::Expr::Path(path) if path.path.is_ident("top_k")) => {
                let args: Vec<&syn::Expr> = call.args.iter().collect();
                let (count, cost) = match args[..] {
                    [count, syn::Expr::Closure(cost)] if cost.inputs.len() == 1 => (count, cost),
                    _ => {
                        errors.push_help(span, "`top_k` takes a number and a closure of one configuration", TOP_K);
                        continue;
                    }
                };
                match integer(count).and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0) {
                    Some(count) if autotune.top_k.is_none() => autotune.top_k = Some((count, cost.to_token_stream())),
                    Some(_) => errors.push_help(span, twice, "remove one of them"),
                    None => errors.push_help(SourceSpan::of(count), "`top_k` keeps at least one configuration", TOP_K),
                }
            }
            _ => errors.push_help(span, "`prune` is a closure of one configuration, or `top_k`", HELP),
        }
    }
}

fn hook(name: &str, value: syn::Expr, errors: &mut Errors) -> Option<TokenStream> {
    match value {
        syn::Expr::Closure(closure) if closure.inputs.len() == 1 => Some(closure.to_token_stream()),
        other => {
            errors.push_help(
                SourceSpan::of(&other),
                format!("`{name}` is a closure of one configuration"),
                format!("write `{name} = |config| ..`"),
            );
            None
        }
    }
}

/// The maximum time budget: one hour.
const MOST_MILLISECONDS: u32 = 3_600_000;

fn milliseconds(name: &str, value: &syn::Expr, least: u32, errors: &mut Errors) -> Option<u32> {
    let found = integer(value).and_then(|value| u32::try_from(value).ok()).filter(|value| (least..=MOST_MILLISECONDS).contains(value));
    if found.is_none() {
        let message = format!("`{name}` is a number of milliseconds from {least} to {MOST_MILLISECONDS}");
        errors.push_help(SourceSpan::of(value), message, format!("write `{name} = {}`", if name == "rep" { 100 } else { 5 }));
    }
    found
}
