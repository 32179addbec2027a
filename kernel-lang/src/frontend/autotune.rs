//! `#[autotune(configs = [Config { BLOCK_SIZE: 1024, num_warps: 4 }, ..], key = [n], prune = |config| config.BLOCK_SIZE < n)]`

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};

use crate::Schedule;
use crate::diagnostic::did_you_mean;
use crate::frontend::attributes::{Attributes, SCHEDULE, const_value, schedule};
use crate::frontend::parse::plain;
use crate::frontend::place::{Errors, Place};
use crate::frontend::signature::Signature;
use crate::ir::Type;

/// What `#[autotune(..)]` says, checked against the signature.
#[derive(Debug)]
pub(crate) struct Autotune {
    /// The constant parameters that the configurations fix, by their index.
    pub(crate) tuned: Vec<usize>,
    pub(crate) configs: Vec<Config>,
    /// The parameters whose values choose the configuration, by their index.
    pub(crate) key: Vec<usize>,
    /// A closure that says of a configuration whether it does not fit the arguments.
    pub(crate) prune: Option<TokenStream>,
}

/// `Config { BLOCK_SIZE: 1024, num_warps: 4 }`
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Config {
    /// One for each of [`Autotune::tuned`].
    pub(crate) values: Vec<i128>,
    pub(crate) schedule: Schedule,
}

/// The runtime has a bit for each configuration that may be pruned.
const MOST_PRUNED: usize = 128;

const FORM: &str = "write `#[autotune(configs = [Config { BLOCK_SIZE: 1024, num_warps: 4 }, ..], key = [n])]`";
const LATER: [&str; 5] = ["heuristics", "reset_to_zero", "restore_value", "product", "prune_configs_by"];

/// Reads the attribute's arguments.
pub(crate) fn parse(tokens: TokenStream, place: Place, signature: &Signature, attributes: &Attributes, errors: &mut Errors) -> Autotune {
    let mut autotune = Autotune { tuned: Vec::new(), configs: Vec::new(), key: Vec::new(), prune: None };
    let (mut configs, before) = (None, errors.len());
    let result = (|input: ParseStream<'_>| {
        while !input.is_empty() {
            let ident = input.call(syn::Ident::parse_any)?;
            let name = plain(&ident);
            input.parse::<syn::Token![=]>()?;
            let value = input.parse::<syn::Expr>()?;
            match name.as_str() {
                "configs" => configs = Some((ident, value)),
                "key" => key(&value, signature, &mut autotune, errors),
                "prune" => prune(value, &mut autotune, errors),
                _ if LATER.contains(&name.as_str()) => {
                    errors.push_help(Place::from(&ident), format!("`{name}` is not available yet"), FORM);
                }
                _ => {
                    let help = did_you_mean(&name, ["configs", "key", "prune"])
                        .map_or_else(|| FORM.to_string(), |near| format!("did you mean `{near}`?"));
                    errors.push_help(Place::from(&ident), format!("`#[autotune]` has no option `{name}`"), help);
                }
            }
            if !input.is_empty() {
                input.parse::<syn::Token![,]>()?;
            }
        }
        Ok(())
    })
    .parse2(tokens);
    if let Err(error) = result {
        errors.push_help(Place::at(error.span()), format!("this attribute cannot be read: {error}"), FORM);
        return autotune;
    }
    match configs {
        // A misspelt `configs` has been reported.
        None if errors.len() > before => {}
        None => errors.push_help(place, "`#[autotune]` needs configurations", FORM),
        Some((ident, syn::Expr::Array(array))) => {
            if array.elems.is_empty() {
                errors.push_help(Place::from(&ident), "the list of configurations is empty", FORM);
            }
            list(&array, signature, attributes, &mut autotune, errors);
            if autotune.prune.is_some() && autotune.configs.len() > MOST_PRUNED {
                let message = format!("`prune` chooses among at most {MOST_PRUNED} configurations, here are {}", autotune.configs.len());
                errors.push_help(Place::from(&ident), message, "list fewer, or make two kernels of it");
            }
        }
        Some((_, other)) => {
            let message = match &other {
                syn::Expr::Call(call) if matches!(&*call.func, syn::Expr::Path(path) if path.path.is_ident("product")) => {
                    "`product` is not available yet"
                }
                _ => "the configurations are a list",
            };
            errors.push_help(Place::of(&other), message, FORM);
        }
    }
    autotune
}

fn key(value: &syn::Expr, signature: &Signature, autotune: &mut Autotune, errors: &mut Errors) {
    let names: Vec<&syn::Expr> = match value {
        syn::Expr::Array(array) => array.elems.iter().collect(),
        other => vec![other],
    };
    for value in names {
        let place = Place::of(value);
        let name = match value {
            syn::Expr::Path(path) => path.path.get_ident().map(plain),
            _ => None,
        };
        let Some(name) = name else {
            errors.push_help(place, "the key lists parameters of the kernel", "write `key = [n]`");
            continue;
        };
        let Some(index) = signature.params.iter().position(|param| param.name.text == name) else {
            let help = match did_you_mean(&name, signature.params.iter().map(|param| param.name.text.as_str())) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "the key lists parameters of the kernel, such as its sizes".to_string(),
            };
            errors.push_help(place, format!("the kernel has no parameter `{name}`"), help);
            continue;
        };
        if matches!(signature.params[index].ty, Some(Type::Pointer { .. })) {
            errors.push_help(place, format!("`{name}` is a pointer, and every tensor would be tuned anew"), "list the sizes: `key = [n]`");
        } else if autotune.key.contains(&index) {
            errors.push_help(place, format!("`{name}` is listed twice"), "remove one of them");
        } else {
            autotune.key.push(index);
        }
    }
}

fn prune(value: syn::Expr, autotune: &mut Autotune, errors: &mut Errors) {
    let help = "say which configurations do not fit the arguments: `prune = |config| config.BLOCK_SIZE < n`";
    match value {
        syn::Expr::Closure(closure) if closure.inputs.len() == 1 => autotune.prune = Some(closure.to_token_stream()),
        other => errors.push_help(Place::of(&other), "`prune` is a closure of one configuration", help),
    }
}

fn list(array: &syn::ExprArray, signature: &Signature, attributes: &Attributes, autotune: &mut Autotune, errors: &mut Errors) {
    let structs: Vec<&syn::ExprStruct> = array.elems.iter().filter_map(|elem| config(elem, errors)).collect();
    // Whatever one configuration fixes, all must.
    for config in &structs {
        for field in &config.fields {
            let syn::Member::Named(ident) = &field.member else { continue };
            let name = plain(ident);
            if let Some(index) = signature.consts.iter().position(|generic| generic.name.text == name)
                && !autotune.tuned.contains(&index)
            {
                autotune.tuned.push(index);
                if attributes.consts[index].is_some() {
                    let help = "a constant is fixed by the configurations or listed in `#[kernel(..)]`, not both";
                    errors.push_help(Place::from(ident), format!("`{name}` is listed in `#[kernel(..)]` too"), help);
                }
            }
        }
    }
    autotune.tuned.sort_unstable();
    for config in structs {
        if let Some(read) = fields(config, signature, attributes, &autotune.tuned, errors) {
            if autotune.configs.contains(&read) {
                errors.push_help(Place::of(config), "this configuration is listed twice", "remove one of them");
            } else {
                autotune.configs.push(read);
            }
        }
    }
}

fn config<'a>(elem: &'a syn::Expr, errors: &mut Errors) -> Option<&'a syn::ExprStruct> {
    match elem {
        syn::Expr::Struct(config) if config.path.is_ident("Config") => {
            if let Some(rest) = &config.rest {
                errors.push_help(Place::of(rest), "a configuration names all of its values", "write them out");
            }
            Some(config)
        }
        syn::Expr::Group(group) => config(&group.expr, errors),
        other => {
            errors.push_help(
                Place::of(other),
                "a configuration is written `Config { .. }`",
                "write `Config { BLOCK_SIZE: 1024, num_warps: 4 }`",
            );
            None
        }
    }
}

fn fields(
    config: &syn::ExprStruct,
    signature: &Signature,
    attributes: &Attributes,
    tuned: &[usize],
    errors: &mut Errors,
) -> Option<Config> {
    let before = errors.len();
    let mut values: Vec<Option<i128>> = vec![None; tuned.len()];
    let mut read = Config { values: Vec::new(), schedule: attributes.schedule };
    let mut seen: Vec<String> = Vec::new();
    for field in &config.fields {
        let syn::Member::Named(ident) = &field.member else {
            errors.push_help(Place::of(&field.member), "the values of a configuration have names", FORM);
            continue;
        };
        let (name, place) = (plain(ident), Place::from(ident));
        if seen.contains(&name) {
            errors.push_help(place, format!("`{name}` is given twice"), "remove one of them");
            continue;
        }
        seen.push(name.clone());
        if field.colon_token.is_none() {
            errors.push_help(place, format!("`{name}` needs a value"), format!("write `{name}: 4`"));
            values
                .iter_mut()
                .zip(tuned)
                .filter(|(_, index)| signature.consts[**index].name.text == name)
                .for_each(|(value, _)| *value = Some(0));
            continue;
        }
        match name.as_str() {
            name if SCHEDULE.contains(&name) => schedule(name, &field.expr, &mut read.schedule, errors),
            _ => match tuned.iter().position(|index| signature.consts[*index].name.text == name) {
                Some(at) => values[at] = const_value(&field.expr, &signature.consts[tuned[at]], errors).or(Some(0)),
                None => {
                    let names = signature.consts.iter().map(|generic| generic.name.text.as_str()).chain(SCHEDULE);
                    let help = match did_you_mean(&name, names) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("declare it: `fn {}<const {name}: usize>(..)`", signature.name.text),
                    };
                    errors.push_help(place, format!("the kernel has no constant parameter `{name}`"), help);
                }
            },
        }
    }
    for (value, index) in values.iter().zip(tuned) {
        if value.is_none() {
            let name = &signature.consts[*index].name.text;
            errors.push_help(
                Place::of(config),
                format!("this configuration has no `{name}`"),
                "every configuration fixes the same constants",
            );
        }
    }
    read.values = values.into_iter().map(|value| value.unwrap_or(0)).collect();
    (errors.len() == before).then_some(read)
}
