//! Facts about a kernel's arguments, for which it has specialised variants: `assume(stride = 1, n % 16 == 0)` of `#[kernel]`, and unit
//! strides, which are detected automatically.
//!
//! A fact only selects a variant: each launch evaluates the facts for its arguments, and runs another variant if a fact does not hold.
//!
//! ```text
//! stride_xm  stride_xn  n        facts: x is read along stride_xn = 1 (or stride_xm = 1); n % 16 == 0 was declared
//!      4096          1  4096     the variant for stride_xn = 1 and n % 16 == 0
//!      4096          1  4097     .. for stride_xn = 1
//!      4096          2  4097     .. without facts
//!         1       4096  4096     .. for stride_xm = 1 and n % 16 == 0: not compiled ahead of time
//! ```
//!
//! Few variants are compiled ahead of time: one without facts; one where the last stride of each tensor, in the order of the signature, is 1;
//! and one for each `assume`, which also contains those unit strides unless it mentions strides itself. There are thus at most two more than
//! `assume`s. A launch with another combination compiles its variant at run time.

use syn::parse::{Parse, ParseStream};

use crate::attributes::integer;
use crate::autotune::name_of;
use crate::signature::Signature;
use crate::span::{Errors, SourceSpan};
use crate::variants::Instance;
use kernel_lang::diagnostic::did_you_mean;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{Elem, Function};

/// A fact that may hold for an argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Fact {
    /// The index of the parameter.
    pub(crate) param: usize,
    pub(crate) known: Known,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Known {
    /// The argument equals this number.
    Is(i128),
    /// The argument is a multiple of this power of two.
    MultipleOf(i128),
}

/// The facts that the attribute declares.
#[derive(Default)]
pub(crate) struct Declared {
    /// The facts of each `assume(..)`.
    pub(crate) assumed: Vec<Vec<Fact>>,
    /// Strides that are not specialised automatically, by parameter index.
    pub(crate) left_out: Vec<usize>,
    /// Are all strides excluded?
    pub(crate) none: bool,
}

/// The facts of a kernel. A launch computes a word with one bit for each fact, set if the fact holds.
#[derive(Default)]
pub(crate) struct Facts {
    pub(crate) list: Vec<Fact>,
    /// The combinations that are compiled ahead of time, besides the one without facts.
    built: Vec<u64>,
}

/// The maximum number of facts: the bits of a word.
const MOST: usize = 64;

pub(crate) const FORM: &str = "write `assume(stride = 1, n % 16 == 0)`";
pub(crate) const DO_NOT_FORM: &str = "write `do_not_specialize = [stride]`, or `do_not_specialize` for all";

impl Fact {
    fn implies(self, other: Fact) -> bool {
        let follows = match (self.known, other.known) {
            (Known::Is(a), Known::Is(b)) => a == b,
            (Known::Is(a) | Known::MultipleOf(a), Known::MultipleOf(of)) => a % of == 0,
            (Known::MultipleOf(_), Known::Is(_)) => false,
        };
        self.param == other.param && follows
    }
}

impl Facts {
    /// Collects the declared facts and those that the kernel itself suggests.
    pub(crate) fn of(signature: &Signature, declared: &Declared, func: &Function) -> Facts {
        let mut list: Vec<Fact> = Vec::new();
        for fact in declared.assumed.iter().flatten() {
            if !list.contains(fact) {
                list.push(*fact);
            }
        }
        let steps = steps(signature, func);
        let is_step = |fact: &Fact| steps.iter().any(|(_, step)| fact.param == *step);
        let mut rows: Vec<Fact> = Vec::new();
        for (at, (tensor, step)) in steps.iter().enumerate() {
            if declared.none || declared.left_out.contains(step) {
                continue;
            }
            let fact = Fact { param: *step, known: Known::Is(1) };
            if !list.contains(&fact) && list.len() < MOST {
                list.push(fact);
            }
            // The last stride of each tensor: the elements of a row are usually contiguous.
            if steps.get(at + 1).is_none_or(|(next, _)| next != tensor) {
                rows.push(fact);
            }
        }
        let mut facts = Facts { list, built: Vec::new() };
        facts.build(&rows);
        for group in &declared.assumed {
            let also = if group.iter().any(is_step) { &[][..] } else { &rows };
            facts.build(&[group, also].concat());
        }
        facts
    }

    /// Adds a combination to compile ahead of time: the given facts and all facts that they imply.
    fn build(&mut self, known: &[Fact]) {
        let follows = |fact: &Fact| known.iter().any(|known| known.implies(*fact));
        let bits = self.list.iter().enumerate().filter(|(_, fact)| follows(fact)).fold(0, |bits, (at, _)| bits | 1 << at);
        if bits != 0 && !self.built.contains(&bits) {
            self.built.push(bits);
        }
    }

    /// Expands each instance into one without facts and one for each combination that is compiled ahead of time.
    pub(crate) fn instances(&self, general: Vec<Instance>, signature: &Signature) -> Vec<Instance> {
        let with = |bits: u64| {
            let known = self.list.iter().enumerate().filter(move |(at, _)| bits >> at & 1 == 1);
            let known: Vec<_> = known.map(|(_, fact)| (signature.params[fact.param].name.text.as_str().into(), fact.known)).collect();
            general.iter().map(move |instance| Instance { facts: bits, known: known.clone(), ..instance.clone() })
        };
        let special: Vec<Instance> = self.built.iter().flat_map(|bits| with(*bits)).collect();
        [general.clone(), special].concat()
    }
}

/// Pairs of a tensor and a stride, both as parameter indices, in order.
fn steps(signature: &Signature, func: &Function) -> Vec<(usize, usize)> {
    let index = |value| {
        let param = func.params.iter().find(|param| param.value == value)?;
        signature.params.iter().position(|own| own.name.text == *param.name)
    };
    let pairs = kernel_lang::steps(func).into_iter().filter_map(|(tensor, step)| Some((index(tensor)?, index(step)?)));
    // Only integers: a launch cannot encode the number 1 for a generic type.
    let is_integer = |param: usize| signature.params[param].ty.as_ref().and_then(|ty| ty.elem().dtype()).is_some_and(Dtype::is_int);
    pairs.filter(|(_, step)| is_integer(*step)).collect()
}

/// Parses the arguments of `assume(..)`.
pub(crate) fn assume(
    input: ParseStream<'_>,
    span: SourceSpan,
    signature: &Signature,
    declared: &mut Declared,
    errors: &mut Errors,
) -> syn::Result<()> {
    let entries = syn::punctuated::Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated(input)?;
    if entries.is_empty() {
        errors.push_help(span, "`assume` says nothing", FORM);
    }
    let mut group: Vec<Fact> = Vec::new();
    for entry in &entries {
        let Some(fact) = fact(entry, signature, errors) else { continue };
        if group.iter().any(|earlier| earlier.param == fact.param) {
            let message = format!("`{}` is assumed twice", signature.params[fact.param].name.text);
            errors.push_help(
                SourceSpan::of(entry),
                message,
                "each `assume(..)` is a variant of its own: write another one, or remove this",
            );
        } else {
            group.push(fact);
        }
    }
    let facts = declared.assumed.iter().map(Vec::len).sum::<usize>() + group.len();
    if facts > MOST {
        errors.push_help(span, format!("{facts} facts are too many: a kernel can have {MOST}"), "keep those that make a variant faster");
    }
    declared.assumed.push(group);
    Ok(())
}

/// Parses `n = 1`, `n == 1` or `n % 16 == 0`.
fn fact(entry: &syn::Expr, signature: &Signature, errors: &mut Errors) -> Option<Fact> {
    let span = SourceSpan::of(entry);
    let (left, right) = match entry {
        syn::Expr::Assign(assign) => (&*assign.left, &*assign.right),
        syn::Expr::Binary(binary) if matches!(binary.op, syn::BinOp::Eq(_)) => (&*binary.left, &*binary.right),
        _ => {
            errors.push_help(span, "`assume` knows numbers and multiples of an argument", FORM);
            return None;
        }
    };
    let (named, of) = match left {
        syn::Expr::Binary(binary) if matches!(binary.op, syn::BinOp::Rem(_)) => (&*binary.left, Some(&*binary.right)),
        other => (other, None),
    };
    let Some(name) = name_of(named) else {
        errors.push_help(SourceSpan::of(named), "`assume` names an argument of the launch", FORM);
        return None;
    };
    let (param, dtype) = scalar(&name, SourceSpan::of(named), signature, errors)?;
    let known = match of {
        None => Known::Is(number(right, &name, dtype, errors)?),
        Some(of) => {
            let divisor = integer(of).filter(|of| of.count_ones() == 1 && *of > 1 && *of <= 1 << 30);
            let Some(divisor) = divisor.filter(|_| dtype != Dtype::Bool) else {
                let help = "name a power of two from 2 on: `n % 16 == 0`";
                errors.push_help(SourceSpan::of(of), format!("of `{name}` a power of two can be assumed to divide it"), help);
                return None;
            };
            if integer(right) != Some(0) {
                errors.push_help(SourceSpan::of(right), "of a remainder only 0 can be assumed", format!("write `{name} % {divisor} == 0`"));
                return None;
            }
            // A divisor that does not fit the type divides only 0.
            if dtype.int_range().is_none_or(|(_, high)| divisor > high) {
                errors.push_help(
                    SourceSpan::of(of),
                    format!("`{divisor}` does not fit `{dtype}`, the type of `{name}`"),
                    "name a smaller number",
                );
                return None;
            }
            Known::MultipleOf(divisor)
        }
    };
    Some(Fact { param, known })
}

/// The number that an argument is assumed to equal.
fn number(value: &syn::Expr, name: &str, dtype: Dtype, errors: &mut Errors) -> Option<i128> {
    let span = SourceSpan::of(value);
    if let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Bool(bool), .. }) = value
        && dtype == Dtype::Bool
    {
        return Some(bool.value.into());
    }
    let Some(number) = integer(value).filter(|_| dtype != Dtype::Bool) else {
        let help =
            if dtype == Dtype::Bool { "write `true` or `false`" } else { "write a literal: the macro does not see constants outside" };
        errors.push_help(span, format!("`{name}` is `{dtype}`, and this is no number of it"), help);
        return None;
    };
    let (low, high) = dtype.int_range().unwrap_or((0, 0));
    if !(low..=high).contains(&number) {
        let message = format!("`{number}` does not fit `{dtype}`, the type of `{name}`");
        errors.push_help(span, message, format!("`{dtype}` holds {low} to {high}"));
        return None;
    }
    Some(number)
}

/// The index and the type of the integer or boolean parameter with this name.
fn scalar(name: &str, span: SourceSpan, signature: &Signature, errors: &mut Errors) -> Option<(usize, Dtype)> {
    let Some(index) = signature.params.iter().position(|param| param.name.text == name) else {
        let help = match did_you_mean(name, signature.params.iter().map(|param| param.name.text.as_str())) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "name integers among the arguments of the launch".to_owned(),
        };
        errors.push_help(span, format!("the kernel has no parameter `{name}`"), help);
        return None;
    };
    const HELP: &str = "integers and `bool`s select variants; how tensors are aligned is tested by the kernel itself";
    let param = &signature.params[index];
    match param.ty.as_ref()?.elem() {
        _ if param.is_pointer() => errors.push_help(span, format!("`{name}` is a tensor"), HELP),
        Elem::Dtype(dtype) if dtype.is_float() => errors.push_help(span, format!("`{name}` is `{dtype}`"), HELP),
        Elem::Dtype(dtype) => return Some((index, *dtype)),
        Elem::Param(generic) => errors.push_help(span, format!("`{name}` is `{generic}`, which the launch names"), HELP),
    }
    None
}

/// Parses the value of `do_not_specialize`.
pub(crate) fn do_not_specialize(
    input: ParseStream<'_>,
    span: SourceSpan,
    signature: &Signature,
    declared: &mut Declared,
    errors: &mut Errors,
) -> syn::Result<()> {
    if !input.peek(syn::Token![=]) {
        declared.none = true;
        return Ok(());
    }
    input.parse::<syn::Token![=]>()?;
    let names;
    if !input.peek(syn::token::Bracket) {
        errors.push_help(span, "`do_not_specialize` is a list of arguments", DO_NOT_FORM);
        input.parse::<syn::Expr>()?;
        return Ok(());
    }
    syn::bracketed!(names in input);
    let names = names.parse_terminated(syn::Expr::parse, syn::Token![,])?;
    if names.is_empty() {
        errors.push_help(span, "`do_not_specialize` names nothing", DO_NOT_FORM);
    }
    for name in &names {
        let span = SourceSpan::of(name);
        let Some(name) = name_of(name) else {
            errors.push_help(span, "`do_not_specialize` lists names of arguments", DO_NOT_FORM);
            continue;
        };
        if let Some((index, _)) = scalar(&name, span, signature, errors) {
            declared.left_out.push(index);
        }
    }
    Ok(())
}

/// Reports strides that are both assumed and excluded.
pub(crate) fn check(declared: &Declared, span: SourceSpan, signature: &Signature, errors: &mut Errors) {
    let both = |fact: &&Fact| declared.left_out.contains(&fact.param);
    if let Some(fact) = declared.assumed.iter().flatten().find(both) {
        let name = &signature.params[fact.param].name.text;
        errors.push_help(span, format!("`{name}` is assumed, and in `do_not_specialize`"), "remove it from one of them");
    }
}
