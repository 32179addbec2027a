//! The `heuristics(..)` argument of `#[kernel]` and `#[autotune]`:
//! `heuristics(EVEN_N = n % BLOCK_SIZE == 0, num_warps = if BLOCK_SIZE >= 2048 { 8 } else { 4 })`.
//!
//! Every launch computes the heuristics in order. Each may use the arguments, the values of the configuration, and earlier heuristics.

use syn::ext::IdentExt;
use syn::parse::ParseStream;

use crate::ast::Name;
use crate::attributes::{Attributes, SCHEDULE, set_schedule};
use crate::evaluate::{Evaluator, Known};
use crate::parse::plain;
use crate::signature::Signature;
use crate::span::{Errors, SourceSpan};
use crate::variants::{Bound, Instance};
use kernel_lang::diagnostic::did_you_mean;
use kernel_lang::dtype::Dtype;

/// One heuristic.
#[derive(Clone)]
pub(crate) struct Heuristic {
    pub(crate) name: Name,
    pub(crate) ident: syn::Ident,
    /// The index of the constant parameter that it sets; `None` if it sets a field of the schedule.
    pub(crate) constant: Option<usize>,
    pub(crate) value: syn::Expr,
}

pub(crate) const FORM: &str = "write `heuristics(EVEN_N = n % BLOCK_SIZE == 0)`";

/// Parses the arguments in the parentheses.
pub(crate) fn parse(input: ParseStream<'_>, signature: &Signature, list: &mut Vec<Heuristic>, errors: &mut Errors) -> syn::Result<()> {
    while !input.is_empty() {
        let ident = input.call(syn::Ident::parse_any)?;
        let name = Name { text: plain(&ident), span: SourceSpan::from(&ident) };
        input.parse::<syn::Token![=]>()?;
        let value = input.parse::<syn::Expr>()?;
        let constant = signature.consts.iter().position(|generic| generic.name.text == name.text);
        if constant.is_none() && !SCHEDULE.contains(&name.text.as_str()) {
            unknown(&name, signature, errors);
        } else if list.iter().any(|earlier| earlier.name.text == name.text) {
            errors.push_help(name.span, format!("`{}` is given twice", name.text), "remove one of them");
        } else {
            list.push(Heuristic { name, ident, constant, value });
        }
        if !input.is_empty() {
            input.parse::<syn::Token![,]>()?;
        }
    }
    Ok(())
}

fn unknown(name: &Name, signature: &Signature, errors: &mut Errors) {
    let text = &name.text;
    if signature.types.iter().any(|generic| generic.name.text == *text) {
        return errors.push_help(name.span, format!("`{text}` is a type, which the launch names"), "heuristics give constants");
    }
    if signature.params.iter().any(|param| param.name.text == *text) {
        let help = "heuristics give constants of the kernel, `const EVEN_N: bool`, from its arguments";
        return errors.push_help(name.span, format!("`{text}` is an argument of the launch"), help);
    }
    let names = signature.consts.iter().map(|generic| generic.name.text.as_str()).chain(SCHEDULE);
    let help = match did_you_mean(text, names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("declare it: `fn {}<const {text}: bool>(..)`", signature.name.text),
    };
    errors.push_help(name.span, format!("the kernel has no constant parameter `{text}`"), help);
}

/// Every combination of values that the heuristics may give an instance; empty if only a launch can compute them.
pub(crate) fn instances(instance: Instance, heuristics: &[Heuristic], signature: &Signature, attributes: &Attributes) -> Vec<Instance> {
    let mut list = vec![instance];
    for heuristic in heuristics {
        list = list.into_iter().flat_map(|instance| with(&instance, heuristic, signature, attributes)).collect();
    }
    list
}

/// The instance with each valid value of one heuristic.
fn with(instance: &Instance, heuristic: &Heuristic, signature: &Signature, attributes: &Attributes) -> Vec<Instance> {
    let names = |name: &str| instance.known(name, signature);
    let values = Evaluator::new(&names).values(&heuristic.value);
    let Some(index) = heuristic.constant else {
        let ints =
            values.unwrap_or_default().into_iter().filter_map(|value| if let Known::Int(value) = value { Some(value) } else { None });
        return ints
            .filter_map(|value| {
                let mut schedule = instance.schedule;
                set_schedule(&heuristic.name.text, value, &mut schedule).then(|| Instance { schedule, ..instance.clone() })
            })
            .collect();
    };
    let generic = &signature.consts[index];
    let range = generic.dtype.int_range().unwrap_or((0, 1));
    let values: Vec<i128> = match values {
        Some(values) => values
            .into_iter()
            .filter_map(|value| match value {
                Known::Float(value) => generic.dtype.bits_of(value),
                Known::Single(value) => generic.dtype.bits_of(value.into()),
                Known::Int(_) if generic.dtype.is_float() => None,
                Known::Bool(value) => (generic.dtype == Dtype::Bool).then_some(i128::from(value)),
                Known::Int(value) => (generic.dtype != Dtype::Bool && (range.0..=range.1).contains(&value)).then_some(value),
            })
            .collect(),
        None => match &attributes.consts[index] {
            Some(listed) => listed.clone(),
            None if generic.dtype == Dtype::Bool => vec![0, 1],
            None => Vec::new(),
        },
    };
    let span = signature.types.len() + index;
    let bound = |value: i128| {
        let mut instance = instance.clone();
        if let Bound::Const(_, bound) = &mut instance.generics[span] {
            *bound = value;
        }
        instance
    };
    values.into_iter().map(bound).collect()
}

impl Instance {
    /// The value of a name in a heuristic's expression.
    fn known(&self, name: &str, signature: &Signature) -> Option<Known> {
        let schedule = self.schedule;
        if let Some(index) = signature.consts.iter().position(|generic| generic.name.text == name) {
            let Bound::Const(_, value) = self.generics[signature.types.len() + index] else { return None };
            return Some(Known::of(signature.consts[index].dtype, value));
        }
        match name {
            "num_warps" => Some(Known::Int(schedule.num_warps.into())),
            "num_ctas" => Some(Known::Int(schedule.num_ctas.into())),
            "num_stages" => Some(Known::Int(schedule.num_stages.into())),
            _ => None,
        }
    }
}
