//! Configurations: `Config { .. }` one by one, and `product(BLOCK_M = [64, 128], num_warps = [4, 8]) if BLOCK_M * num_warps < 1024`.

use syn::parse::ParseStream;

use super::{Autotune, FORM};
use crate::attributes::{Attributes, SCHEDULE, const_value, schedule};
use crate::evaluate::{Evaluator, Known};
use crate::parse::plain;
use crate::signature::Signature;
use crate::span::{Errors, SourceSpan};
use kernel_lang::Schedule;
use kernel_lang::diagnostic::did_you_mean;

/// `Config { BLOCK_SIZE: 1024, num_warps: 4 }`.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Config {
    /// One value for each of [`Autotune::tuned`].
    pub(crate) values: Vec<i128>,
    pub(crate) schedule: Schedule,
}

/// The value of `configs =`.
pub(super) struct Items {
    list: Vec<Item>,
    /// Is it a list, or a single product?
    is_list: bool,
}

struct Item {
    value: syn::Expr,
    /// The condition after `if`.
    condition: Option<syn::Expr>,
}

/// The maximum number of configurations of one product; more are probably a mistake.
const MOST: usize = 4096;

const PRODUCT: &str = "write `product(BLOCK_M = [64, 128], num_warps = [4, 8]) if BLOCK_M * num_warps < 1024`";

/// Parses a list, or a single product.
pub(super) fn read(input: ParseStream<'_>) -> syn::Result<Items> {
    if !input.peek(syn::token::Bracket) {
        return Ok(Items { list: vec![item(input)?], is_list: false });
    }
    let content;
    syn::bracketed!(content in input);
    let mut list = Vec::new();
    while !content.is_empty() {
        list.push(item(&content)?);
        if !content.is_empty() {
            content.parse::<syn::Token![,]>()?;
        }
    }
    Ok(Items { list, is_list: true })
}

fn item(input: ParseStream<'_>) -> syn::Result<Item> {
    let value = input.parse()?;
    let condition = if input.parse::<Option<syn::Token![if]>>()?.is_some() { Some(input.parse()?) } else { None };
    Ok(Item { value, condition })
}

/// One field of a configuration.
struct Field<'a> {
    ident: &'a syn::Ident,
    name: String,
    value: Option<&'a syn::Expr>,
}

/// A configuration as written, with its span.
struct Written<'a> {
    span: SourceSpan,
    fields: Vec<Field<'a>>,
    condition: Option<&'a syn::Expr>,
}

/// Converts the items and adds them to `autotune`.
pub(super) fn list(
    span: SourceSpan,
    items: &Items,
    signature: &Signature,
    attributes: &Attributes,
    autotune: &mut Autotune,
    errors: &mut Errors,
) {
    if items.list.is_empty() {
        errors.push_help(span, "the list of configurations is empty", FORM);
    }
    let mut written: Vec<Written<'_>> = Vec::new();
    for item in &items.list {
        match &item.value {
            syn::Expr::Call(call) if is_product(call) => product(call, item.condition.as_ref(), &mut written, errors),
            other if !items.is_list => errors.push_help(SourceSpan::of(other), "the configurations are a list, or a `product`", FORM),
            other => {
                if let Some(condition) = &item.condition {
                    errors.push_help(
                        SourceSpan::of(condition),
                        "only a `product` has a condition",
                        "leave the configuration out where it does not hold",
                    );
                }
                written.extend(config(other, errors));
            }
        }
    }
    fix(&written, signature, attributes, autotune, errors);
    let mut kept_of_product: Vec<(SourceSpan, bool)> = Vec::new();
    for written in &written {
        let Some(read) = fields(written, signature, attributes, &autotune.tuned, errors) else {
            kept_of_product.extend(written.condition.map(|condition| (SourceSpan::of(condition), true)));
            continue;
        };
        if let Some(condition) = written.condition {
            let kept = holds(condition, written, &read, signature, autotune, errors);
            kept_of_product.push((SourceSpan::of(condition), kept != Some(false)));
            if kept != Some(true) {
                // The error has been reported once for the whole product.
                if kept.is_none() {
                    return;
                }
                continue;
            }
        }
        if autotune.configs.contains(&read) {
            errors.push_help(written.span, "this configuration is listed twice", "remove one of them");
        } else {
            autotune.configs.push(read);
        }
    }
    if autotune.configs.is_empty() && !kept_of_product.is_empty() && kept_of_product.iter().all(|(_, kept)| !kept) {
        errors.push_help(kept_of_product[0].0, "no configuration of the product fulfils this", "list more values, or ask for less");
    }
}

fn is_product(call: &syn::ExprCall) -> bool {
    matches!(&*call.func, syn::Expr::Path(path) if path.path.is_ident("product"))
}

fn config<'a>(elem: &'a syn::Expr, errors: &mut Errors) -> Option<Written<'a>> {
    match elem {
        syn::Expr::Struct(config) if config.path.is_ident("Config") => {
            if let Some(rest) = &config.rest {
                errors.push_help(SourceSpan::of(rest), "a configuration names all of its values", "write them out");
            }
            let mut fields = Vec::new();
            for field in &config.fields {
                match &field.member {
                    syn::Member::Named(ident) => {
                        let value = field.colon_token.map(|_| &field.expr);
                        fields.push(Field { ident, name: plain(ident), value });
                    }
                    member @ syn::Member::Unnamed(_) => {
                        errors.push_help(SourceSpan::of(member), "the values of a configuration have names", FORM);
                    }
                }
            }
            Some(Written { span: SourceSpan::of(config), fields, condition: None })
        }
        syn::Expr::Group(group) => config(&group.expr, errors),
        other => {
            errors.push_help(
                SourceSpan::of(other),
                "a configuration is written `Config { .. }`, several `product(..)`",
                "write `Config { BLOCK_SIZE: 1024, num_warps: 4 }`",
            );
            None
        }
    }
}

/// Every combination of the values, the last one changing fastest.
fn product<'a>(call: &'a syn::ExprCall, condition: Option<&'a syn::Expr>, written: &mut Vec<Written<'a>>, errors: &mut Errors) {
    let mut axes: Vec<(&syn::Ident, Vec<&syn::Expr>)> = Vec::new();
    for argument in &call.args {
        let (name, value) = match argument {
            syn::Expr::Assign(assign) => match &*assign.left {
                syn::Expr::Path(path) => (path.path.get_ident(), &*assign.right),
                _ => (None, argument),
            },
            _ => (None, argument),
        };
        let Some(ident) = name else {
            return errors.push_help(SourceSpan::of(argument), "a product names what it lists", PRODUCT);
        };
        let values: Vec<&syn::Expr> = match value {
            syn::Expr::Array(array) => array.elems.iter().collect(),
            value => vec![value],
        };
        if values.is_empty() {
            return errors.push_help(SourceSpan::of(value), format!("`{ident}` has no values"), PRODUCT);
        }
        if axes.iter().any(|(earlier, _)| *earlier == ident) {
            return errors.push_help(SourceSpan::from(ident), format!("`{ident}` is given twice"), "remove one of them");
        }
        axes.push((ident, values));
    }
    if axes.is_empty() {
        return errors.push_help(SourceSpan::of(call), "a product of nothing is no configuration", PRODUCT);
    }
    let count = axes.iter().try_fold(1usize, |count, (_, values)| count.checked_mul(values.len())).unwrap_or(usize::MAX);
    if count > MOST {
        return errors.push_help(SourceSpan::of(call), format!("this product has more than {MOST} configurations"), "list fewer values");
    }
    for mut number in 0..count {
        let mut fields = Vec::new();
        for (ident, values) in axes.iter().rev() {
            fields.push(Field { ident, name: plain(ident), value: Some(values[number % values.len()]) });
            number /= values.len();
        }
        fields.reverse();
        written.push(Written { span: SourceSpan::of(call), fields, condition });
    }
}

/// All configurations must set the same fields.
fn fix(written: &[Written<'_>], signature: &Signature, attributes: &Attributes, autotune: &mut Autotune, errors: &mut Errors) {
    let mut reported: Vec<&str> = Vec::new();
    for field in written.iter().flat_map(|written| &written.fields) {
        let heuristic = autotune.heuristics.iter().any(|heuristic| heuristic.name.text == field.name);
        if heuristic && !reported.contains(&field.name.as_str()) {
            reported.push(&field.name);
            let message = format!("`{}` is given by a heuristic too", field.name);
            errors.push_help(SourceSpan::from(field.ident), message, "remove one of them");
        }
        if let Some(index) = signature.consts.iter().position(|generic| generic.name.text == field.name)
            && !autotune.tuned.contains(&index)
        {
            autotune.tuned.push(index);
            if attributes.consts[index].is_some() {
                let help = "a constant is fixed by the configurations or listed in `#[kernel(..)]`, not both";
                errors.push_help(SourceSpan::from(field.ident), format!("`{}` is listed in `#[kernel(..)]` too", field.name), help);
            }
        }
    }
    autotune.tuned.sort_unstable();
}

fn fields(written: &Written<'_>, signature: &Signature, attributes: &Attributes, tuned: &[usize], errors: &mut Errors) -> Option<Config> {
    // The same error in another combination is reported once, but makes this configuration invalid too.
    let (all, errors) = (errors, &mut Errors::default());
    let mut values: Vec<Option<i128>> = vec![None; tuned.len()];
    let mut read = Config { values: Vec::new(), schedule: attributes.schedule };
    let mut seen: Vec<&str> = Vec::new();
    for Field { ident, name, value } in &written.fields {
        let (name, span) = (name.as_str(), SourceSpan::from(*ident));
        if seen.contains(&name) {
            errors.push_help(span, format!("`{name}` is given twice"), "remove one of them");
            continue;
        }
        seen.push(name);
        let at = tuned.iter().position(|index| signature.consts[*index].name.text == name);
        let Some(value) = value else {
            errors.push_help(span, format!("`{name}` needs a value"), format!("write `{name}: 4`"));
            if let Some(at) = at {
                values[at] = Some(0);
            }
            continue;
        };
        match at {
            _ if SCHEDULE.contains(&name) => schedule(name, value, &mut read.schedule, errors),
            Some(at) => values[at] = const_value(value, &signature.consts[tuned[at]], errors).or(Some(0)),
            None if signature.types.iter().any(|generic| generic.name.text == name) => {
                let help =
                    format!("each type that launches name is tuned by itself; `#[kernel({name} = [f32, bf16])]` lists what is compiled");
                errors.push_help(span, format!("`{name}` is a type, and configurations fix constants"), help);
            }
            None => {
                let names = signature.consts.iter().map(|generic| generic.name.text.as_str()).chain(SCHEDULE);
                let help = match did_you_mean(name, names) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("declare it: `fn {}<const {name}: usize>(..)`", signature.name.text),
                };
                errors.push_help(span, format!("the kernel has no constant parameter `{name}`"), help);
            }
        }
    }
    for (value, index) in values.iter().zip(tuned) {
        if value.is_none() {
            let name = &signature.consts[*index].name.text;
            errors.push_help(written.span, format!("this configuration has no `{name}`"), "every configuration fixes the same constants");
        }
    }
    read.values = values.into_iter().map(|value| value.unwrap_or(0)).collect();
    (!all.append(std::mem::take(errors))).then_some(read)
}

/// Does the condition hold for this configuration? `None` if an error in the condition has been reported.
fn holds(
    condition: &syn::Expr,
    written: &Written<'_>,
    read: &Config,
    signature: &Signature,
    autotune: &Autotune,
    errors: &mut Errors,
) -> Option<bool> {
    let names = |name: &str| {
        let constant = autotune.tuned.iter().zip(&read.values).find(|(index, _)| signature.consts[**index].name.text == name);
        if let Some((index, value)) = constant {
            return Some(Known::of(signature.consts[*index].dtype, *value));
        }
        let value = match name {
            "num_warps" => Some(read.schedule.num_warps),
            "num_ctas" => Some(read.schedule.num_ctas),
            "num_stages" => Some(read.schedule.num_stages),
            "maxnreg" => read.schedule.maxnreg,
            _ => None,
        };
        value.map(|value| Known::Int(value.into()))
    };
    let evaluator = Evaluator::new(&names);
    let found = evaluator.values(condition);
    let named = || written.fields.iter().map(|field| format!("`{}`", field.name)).collect::<Vec<_>>().join(", ");
    match (evaluator.unknown(), found.as_deref()) {
        (Some(unknown), _) => {
            let help = format!(
                "the condition decides which are compiled: it speaks of {} and literals; of arguments `prune = |config| ..` does",
                named()
            );
            errors.push_help(unknown, "this is not known while the crate compiles", help);
            None
        }
        (None, Some([Known::Bool(holds)])) => Some(*holds),
        (None, Some([Known::Int(_) | Known::Single(_) | Known::Float(_), ..])) => {
            errors.push_help(SourceSpan::of(condition), "a condition is true or false", PRODUCT);
            None
        }
        // A condition on values that cannot be computed may be true or false.
        (None, _) => {
            errors.push_help(
                SourceSpan::of(condition),
                "this cannot be computed",
                "it overflows, divides by zero, or mixes numbers and booleans",
            );
            None
        }
    }
}
