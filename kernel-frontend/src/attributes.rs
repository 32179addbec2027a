//! Arguments of the `#[kernel]` attribute:
//! `#[kernel(BLOCK_SIZE = [1024, 4096], T = [f32, bf16], num_warps = 8, heuristics(EVEN = n % 16 == 0), unchecked, crate = path)]`.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};

use crate::ast::Name;
use crate::facts::{self, Declared};
use crate::heuristics::{self, Heuristic};
use crate::parse::plain;
use crate::signature::{ConstGeneric, Signature, TypeGeneric, dtype_of};
use crate::span::{Errors, SourceSpan};
use kernel_lang::Schedule;
use kernel_lang::diagnostic::did_you_mean;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::Requirement;

/// The arguments of `#[kernel(..)]`, checked against the signature.
pub(crate) struct Attributes {
    /// For each type parameter, the types to compile for.
    pub(crate) types: Vec<Vec<Dtype>>,
    /// For each constant parameter, the values to compile for; `None` if the launch chooses the value.
    pub(crate) consts: Vec<Option<Vec<i128>>>,
    pub(crate) schedule: Schedule,
    pub(crate) unchecked: bool,
    pub(crate) contract: bool,
    /// What the kernel's code may not lose.
    pub(crate) requires: Vec<Requirement>,
    pub(crate) heuristics: Vec<Heuristic>,
    /// The facts about arguments that variants may assume.
    pub(crate) facts: Declared,
    /// The path of the facade crate.
    pub(crate) krate: TokenStream,
}

/// One entry: `name`, `name = value` or `name = [value, ..]`.
struct Entry {
    name: Name,
    values: Option<Vec<syn::Expr>>,
    /// Are the values in brackets?
    is_list: bool,
}

/// Parses the attribute's arguments.
pub(crate) fn parse(tokens: TokenStream, signature: &Signature, errors: &mut Errors) -> Attributes {
    let mut attributes = Attributes {
        types: signature.types.iter().map(|generic| generic.choices.to_vec()).collect(),
        consts: vec![None; signature.consts.len()],
        schedule: Schedule::DEFAULT,
        unchecked: false,
        contract: false,
        requires: Vec::new(),
        heuristics: Vec::new(),
        facts: Declared::default(),
        krate: quote::quote!(::galatea),
    };
    let mut seen: Vec<String> = Vec::new();
    let mut do_not_specialize = None;
    let mut others = |name: &Name, input: ParseStream<'_>, errors: &mut Errors| match name.text.as_str() {
        "heuristics" => in_parentheses(input, name, "heuristics stand in parentheses", heuristics::FORM, errors, |content, errors| {
            heuristics::parse(content, signature, &mut attributes.heuristics, errors)
        }),
        "assume" => in_parentheses(input, name, "what is assumed stands in parentheses", facts::FORM, errors, |content, errors| {
            facts::assume(content, name.span, signature, &mut attributes.facts, errors)
        }),
        "require" => in_parentheses(input, name, "what is required stands in parentheses", REQUIRE_FORM, errors, |content, errors| {
            require(content, name.span, &mut attributes.requires, errors)
        }),
        "do_not_specialize" => {
            do_not_specialize.get_or_insert(name.span);
            facts::do_not_specialize(input, name.span, signature, &mut attributes.facts, errors).map(|()| true)
        }
        _ => Ok(false),
    };
    let entries = entries(tokens, &mut attributes.krate, &mut others, errors);
    for entry in entries {
        if seen.contains(&entry.name.text) {
            errors.push_help(entry.name.span, format!("`{}` is given twice", entry.name.text), "remove one of them");
            continue;
        }
        seen.push(entry.name.text.clone());
        apply(&entry, signature, &mut attributes, errors);
    }
    for heuristic in &attributes.heuristics {
        if heuristic.constant.is_none() && seen.contains(&heuristic.name.text) {
            let message = format!("`{}` is given twice: by a heuristic, and by a value", heuristic.name.text);
            errors.push_help(heuristic.name.span, message, "remove one of them");
        }
    }
    if let Some(span) = do_not_specialize {
        facts::check(&attributes.facts, span, signature, errors);
    }
    attributes
}

/// Parses `#[device(crate = path)]`: the path of the facade crate.
pub(crate) fn device(tokens: TokenStream, errors: &mut Errors) -> TokenStream {
    let mut krate = quote::quote!(::galatea);
    let mut none = |name: &Name, input: ParseStream<'_>, errors: &mut Errors| {
        if name.text != "heuristics" {
            return Ok(false);
        }
        in_parentheses(input, name, "heuristics stand in parentheses", heuristics::FORM, errors, |content, errors| {
            errors.push_help(
                SourceSpan::at(content.span()),
                "a device function has no heuristics",
                "write them at the kernels that call it",
            );
            content.parse::<TokenStream>().map(|_| ())
        })
    };
    for entry in entries(tokens, &mut krate, &mut none, errors) {
        let message = format!("a device function has no option `{}`", entry.name.text);
        errors.push_help(entry.name.span, message, "its generics are given by the calls; the attribute takes `crate = path` only");
    }
    krate
}

/// Parses an entry with special syntax after its name; returns whether it is one.
type Others<'a> = dyn FnMut(&Name, ParseStream<'_>, &mut Errors) -> syn::Result<bool> + 'a;

/// Parses a parenthesised argument; skips anything else.
fn in_parentheses(
    input: ParseStream<'_>,
    name: &Name,
    message: &str,
    help: &str,
    errors: &mut Errors,
    read: impl FnOnce(ParseStream<'_>, &mut Errors) -> syn::Result<()>,
) -> syn::Result<bool> {
    if input.peek(syn::token::Paren) {
        let content;
        syn::parenthesized!(content in input);
        read(&content, errors)?;
    } else {
        errors.push_help(name.span, message, help);
        while !input.is_empty() && !input.peek(syn::Token![,]) {
            input.parse::<proc_macro2::TokenTree>()?;
        }
    }
    Ok(true)
}

const REQUIRE_FORM: &str = "write it like `require(wgmma, tma)`";

/// Parses the names in `require(..)`.
fn require(content: ParseStream<'_>, span: SourceSpan, requires: &mut Vec<Requirement>, errors: &mut Errors) -> syn::Result<()> {
    if content.is_empty() {
        errors.push_help(span, "nothing is required", REQUIRE_FORM);
    }
    for ident in content.parse_terminated(syn::Ident::parse_any, syn::Token![,])? {
        let (name, span) = (plain(&ident), SourceSpan::from(&ident));
        match Requirement::of_name(&name) {
            Some(known) if requires.contains(&known) => errors.push_help(span, format!("`{name}` is required twice"), "remove one of them"),
            Some(requirement) => requires.push(requirement),
            None => {
                let names = Requirement::ALL.map(Requirement::name);
                let help = match did_you_mean(&name, names) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("a kernel can require `{}`", names.join("`, `")),
                };
                errors.push_help(span, format!("there is no requirement `{name}`"), help);
            }
        }
    }
    Ok(())
}

fn entries(tokens: TokenStream, krate: &mut TokenStream, others: &mut Others<'_>, errors: &mut Errors) -> Vec<Entry> {
    let mut list = Vec::new();
    let result = (|input: ParseStream<'_>| {
        while !input.is_empty() {
            let ident = input.call(syn::Ident::parse_any)?;
            let name = Name { text: plain(&ident), span: SourceSpan::from(&ident) };
            if ident == "crate" {
                input.parse::<syn::Token![=]>()?;
                *krate = syn::Path::parse_mod_style(input)?.to_token_stream();
            } else if others(&name, input, errors)? {
                // `others` has parsed the entry.
            } else if input.parse::<Option<syn::Token![=]>>()?.is_some() {
                let (values, is_list) = match input.parse::<syn::Expr>()? {
                    syn::Expr::Array(array) => (array.elems.into_iter().collect(), true),
                    value => (vec![value], false),
                };
                list.push(Entry { name, values: Some(values), is_list });
            } else {
                list.push(Entry { name, values: None, is_list: false });
            }
            if !input.is_empty() {
                input.parse::<syn::Token![,]>()?;
            }
        }
        Ok(())
    })
    .parse2(tokens);
    if let Err(error) = result {
        // A parse error inside an entry is reported once, so the incomplete entry is dropped.
        if list.last().is_some_and(|entry| entry.values.is_none()) {
            list.pop();
        }
        errors.push_help(
            SourceSpan::at(error.span()),
            format!("this attribute cannot be read: {error}"),
            "write it like `#[kernel(BLOCK_SIZE = [1024, 4096], num_warps = 8)]`",
        );
    }
    list
}

fn apply(entry: &Entry, signature: &Signature, attributes: &mut Attributes, errors: &mut Errors) {
    let name = entry.name.text.as_str();
    let values = entry.values.as_deref();
    match name {
        "unchecked" | "contract" => {
            if values.is_some() {
                errors.push_help(entry.name.span, format!("`{name}` has no value"), format!("write `#[kernel({name})]`"));
            }
            *(if name == "contract" { &mut attributes.contract } else { &mut attributes.unchecked }) = true;
        }
        _ if SCHEDULE.contains(&name) => {
            if let Some(value) = one(entry, errors) {
                schedule(name, value, &mut attributes.schedule, errors);
            }
        }
        _ => {
            if let Some(index) = signature.consts.iter().position(|generic| generic.name.text == name) {
                let generic = &signature.consts[index];
                let found = listed(entry, errors, &format!("`{name} = [1024, 4096]`"), |value, errors| const_value(value, generic, errors));
                attributes.consts[index] = Some(found);
            } else if let Some(index) = signature.types.iter().position(|generic| generic.name.text == name) {
                let generic = &signature.types[index];
                let found = listed(entry, errors, &format!("`{name} = [f32, bf16]`"), |value, errors| type_value(value, generic, errors));
                attributes.types[index] = found;
            } else {
                unknown(&entry.name, signature, errors);
            }
        }
    }
}

fn unknown(name: &Name, signature: &Signature, errors: &mut Errors) {
    let generics = signature.types.iter().map(|generic| &generic.name).chain(signature.consts.iter().map(|generic| &generic.name));
    let names: Vec<&str> = generics
        .map(|name| name.text.as_str())
        .chain(SCHEDULE)
        .chain(["unchecked", "contract", "heuristics", "assume", "require", "do_not_specialize", "crate"])
        .collect();
    let help = match did_you_mean(&name.text, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if name.text.chars().all(|c| c.is_uppercase() || c == '_' || c.is_ascii_digit()) => {
            format!("declare it: `fn {}<const {}: usize>(..)`", signature.name.text, name.text)
        }
        None => format!("the kernel knows `{}`", names.join("`, `")),
    };
    errors.push_help(name.span, format!("the kernel has no parameter or option `{}`", name.text), help);
}

/// The values of a list, without duplicates.
fn listed<T: PartialEq>(
    entry: &Entry,
    errors: &mut Errors,
    form: &str,
    mut read: impl FnMut(&syn::Expr, &mut Errors) -> Option<T>,
) -> Vec<T> {
    let mut found: Vec<T> = Vec::new();
    let Some(values) = &entry.values else {
        errors.push_help(entry.name.span, format!("`{}` needs values", entry.name.text), format!("write {form}"));
        return found;
    };
    if values.is_empty() {
        errors.push_help(
            entry.name.span,
            format!("`{}` has no values", entry.name.text),
            format!("write {form}, or leave it to the launch"),
        );
    }
    for value in values {
        if let Some(read) = read(value, errors) {
            if found.contains(&read) {
                errors.push_help(SourceSpan::of(value), "this value is listed twice", "remove one of them");
            } else {
                found.push(read);
            }
        }
    }
    found
}

fn one<'a>(entry: &'a Entry, errors: &mut Errors) -> Option<&'a syn::Expr> {
    match entry.values.as_deref() {
        Some([value]) if !entry.is_list => Some(value),
        _ => {
            let name = &entry.name.text;
            let help = format!("write `{name} = 8`; several are tried by `#[autotune(configs = [Config {{ {name}: 8, .. }}, ..])]`");
            errors.push_help(entry.name.span, format!("`{name}` has one value"), help);
            None
        }
    }
}

/// The fields of a schedule, by their names in attributes.
pub(crate) const SCHEDULE: [&str; 4] = ["num_warps", "num_ctas", "num_stages", "maxnreg"];

/// Sets a field of a schedule from an expression.
pub(crate) fn schedule(name: &str, value: &syn::Expr, schedule: &mut Schedule, errors: &mut Errors) {
    if integer(value).is_some_and(|value| set_schedule(name, value, schedule)) {
        return;
    }
    let (message, help) = match name {
        "num_warps" => ("a power of two from 1 to 32", "4 and 8 are usual; a warp is 32 threads"),
        "num_ctas" => {
            ("a power of two from 1 to 16", "1 is usual; more share a program whose tiles one CTA cannot hold, on GPUs that have clusters")
        }
        "num_stages" => ("a number from 1 to 16", "3 is usual"),
        _ => ("a number from 16 to 255", "leave it out, and the assembler takes what it needs"),
    };
    errors.push_help(SourceSpan::of(value), format!("`{name}` is {message}"), help);
}

/// Sets a field of a schedule; returns whether the value is valid for it.
pub(crate) fn set_schedule(name: &str, value: i128, schedule: &mut Schedule) -> bool {
    let Ok(value) = u32::try_from(value) else { return false };
    let power = |most: u32| value.is_power_of_two() && value <= most;
    let (fits, span) = match name {
        "num_warps" => (power(32), &mut schedule.num_warps),
        "num_ctas" => (power(Schedule::MOST_CTAS), &mut schedule.num_ctas),
        "num_stages" => ((1..=16).contains(&value), &mut schedule.num_stages),
        _ => {
            let fits = (16..=Schedule::MOST_REGISTERS).contains(&value);
            if fits {
                schedule.maxnreg = Some(value);
            }
            return fits;
        }
    };
    if fits {
        *span = value;
    }
    fits
}

/// Parses a value for a constant parameter.
pub(crate) fn const_value(value: &syn::Expr, generic: &ConstGeneric, errors: &mut Errors) -> Option<i128> {
    let (name, ty) = (&generic.name.text, generic.ty.to_token_stream().to_string());
    let span = SourceSpan::of(value);
    if generic.is_wrong {
        return None;
    }
    if generic.dtype == Dtype::Bool {
        return match value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Bool(bool), .. }) => Some(i128::from(bool.value)),
            _ => {
                errors.push_help(span, format!("`{name}` is `bool`"), "write `true` or `false`");
                None
            }
        };
    }
    if generic.dtype.is_float() {
        let found = match generic.dtype {
            Dtype::F32 => float::<f32>(value).filter(|value| value.is_finite()).map(|value| value.to_bits().into()),
            _ => float::<f64>(value).filter(|value| value.is_finite()).map(|value| value.to_bits().into()),
        };
        if found.is_none() {
            let message = format!("`{name}` is `{ty}`, and this is not a finite number of it");
            errors.push_help(span, message, "write literals, such as `0.5` or `1.0 / 3.0`: the macro does not see constants outside");
        }
        return found;
    }
    let Some(found) = integer(value) else {
        errors.push_help(
            span,
            format!("`{name}` is `{ty}`, and this is not an integer"),
            "write literals: the macro does not see constants outside",
        );
        return None;
    };
    let (low, high) = generic.dtype.int_range().unwrap_or((0, 0));
    let low = if ty == "usize" { 0 } else { low };
    if !(low..=high).contains(&found) {
        errors.push_help(span, format!("`{found}` does not fit `{ty}`, the type of `{name}`"), format!("`{ty}` holds {low} to {high}"));
        return None;
    }
    Some(found)
}

fn type_value(value: &syn::Expr, generic: &TypeGeneric, errors: &mut Errors) -> Option<Dtype> {
    let span = SourceSpan::of(value);
    let name = match value {
        syn::Expr::Path(path) => path.path.segments.last().map(|segment| plain(&segment.ident)),
        _ => None,
    };
    let choices = || generic.choices.iter().map(|dtype| dtype.name());
    let list = || format!("`{}` stands for `{}`", generic.bound, choices().collect::<Vec<_>>().join("`, `"));
    let Some(name) = name else {
        errors.push_help(span, format!("`{}` is a type, and this is none", generic.name.text), list());
        return None;
    };
    match dtype_of(&name) {
        Some(dtype) if generic.choices.contains(&dtype) => Some(dtype),
        found => {
            let help = match did_you_mean(&name, choices()).filter(|_| found.is_none()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => list(),
            };
            errors.push_help(span, format!("`{}` cannot be `{name}`", generic.name.text), help);
            None
        }
    }
}

/// A literal float, or arithmetic on literals such as `1.0 / 3.0`, computed in the type. An integer counts as a float.
fn float<F>(value: &syn::Expr) -> Option<F>
where
    F: std::str::FromStr<Err: std::fmt::Display> + std::ops::Neg<Output = F>,
    F: std::ops::Add<Output = F> + std::ops::Sub<Output = F> + std::ops::Mul<Output = F> + std::ops::Div<Output = F>,
{
    match value {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Float(float), .. }) => float.base10_parse().ok(),
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(int), .. }) => int.base10_digits().parse().ok(),
        syn::Expr::Paren(syn::ExprParen { expr, .. }) | syn::Expr::Group(syn::ExprGroup { expr, .. }) => float(expr),
        syn::Expr::Unary(syn::ExprUnary { op: syn::UnOp::Neg(_), expr, .. }) => float::<F>(expr).map(|value| -value),
        syn::Expr::Binary(binary) => {
            let (a, b) = (float::<F>(&binary.left)?, float::<F>(&binary.right)?);
            match binary.op {
                syn::BinOp::Add(_) => Some(a + b),
                syn::BinOp::Sub(_) => Some(a - b),
                syn::BinOp::Mul(_) => Some(a * b),
                syn::BinOp::Div(_) => Some(a / b),
                _ => None,
            }
        }
        _ => None,
    }
}

/// A literal integer, or arithmetic on literals such as `4 * 1024` and `1 << 12`.
pub(crate) fn integer(value: &syn::Expr) -> Option<i128> {
    match value {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(int), .. }) => int.base10_parse().ok(),
        syn::Expr::Paren(syn::ExprParen { expr, .. }) | syn::Expr::Group(syn::ExprGroup { expr, .. }) => integer(expr),
        syn::Expr::Unary(syn::ExprUnary { op: syn::UnOp::Neg(_), expr, .. }) => integer(expr)?.checked_neg(),
        syn::Expr::Binary(binary) => {
            let (a, b) = (integer(&binary.left)?, integer(&binary.right)?);
            match binary.op {
                syn::BinOp::Add(_) => a.checked_add(b),
                syn::BinOp::Sub(_) => a.checked_sub(b),
                syn::BinOp::Mul(_) => a.checked_mul(b),
                syn::BinOp::Div(_) => a.checked_div(b),
                syn::BinOp::Shl(_) => u32::try_from(b).ok().filter(|bits| *bits < 64).and_then(|bits| a.checked_mul(1 << bits)),
                _ => None,
            }
        }
        _ => None,
    }
}
