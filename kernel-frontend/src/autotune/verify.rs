//! Verification of configurations: `verify = cpu`, `verify = reference`, `verify(cpu, rtol = 1e-2)` name the reference for the results of
//! each configuration.

use syn::parse::ParseStream;
use syn::punctuated::Punctuated;

use crate::attributes::integer;
use crate::signature::Signature;
use crate::span::{Errors, SourceSpan};
use kernel_lang::ir::{Function, Op};

/// The reference for the results of a configuration, and the tolerance.
pub(crate) struct Verify {
    pub(crate) reference: Reference,
    /// The tolerance relative to the values; `None` for a default that depends on the type.
    pub(crate) rtol: Option<f64>,
    span: SourceSpan,
}

/// The source of the expected results.
pub(crate) enum Reference {
    /// The kernel itself, executed on the CPU.
    Cpu,
    /// A Rust function of slices and scalars.
    Function(syn::Path),
}

const FORM: &str =
    "write `verify = cpu`, or the name of a function of slices and scalars: `verify = reference`; `verify(cpu, rtol = 1e-2)` allows errors";

/// Parses the value of `verify =`.
pub(super) fn with(value: syn::Expr, signature: &Signature, errors: &mut Errors) -> Option<Verify> {
    let span = SourceSpan::of(&value);
    Some(Verify { reference: reference(value, signature, errors)?, rtol: None, span })
}

/// Parses the arguments of `verify(..)`.
pub(super) fn parse(span: SourceSpan, input: ParseStream<'_>, signature: &Signature, errors: &mut Errors) -> syn::Result<Option<Verify>> {
    let (mut found, mut rtol) = (None, None);
    for value in Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated(input)? {
        match value {
            syn::Expr::Assign(option) if matches!(&*option.left, syn::Expr::Path(path) if path.path.is_ident("rtol")) => {
                match number(&option.right).filter(|value| value.is_finite() && *value >= 0.0) {
                    Some(value) if rtol.is_none() => rtol = Some(value),
                    Some(_) => errors.push_help(SourceSpan::of(&option), "`rtol` is given twice", "remove one of them"),
                    None => {
                        let message = "`rtol` is a number that is not negative";
                        errors.push_help(SourceSpan::of(&option.right), message, "write `rtol = 1e-3`: a thousandth of the value");
                    }
                }
            }
            syn::Expr::Assign(option) => {
                errors.push_help(SourceSpan::of(&option.left), "`verify` has one option, `rtol`", "write `verify(cpu, rtol = 1e-3)`");
            }
            value if found.is_some() => errors.push_help(SourceSpan::of(&value), "there is one reference", FORM),
            value => match reference(value, signature, errors) {
                Some(reference) => found = Some(reference),
                None => return Ok(None),
            },
        }
    }
    Ok(Some(Verify { reference: found.unwrap_or(Reference::Cpu), rtol, span }))
}

impl Verify {
    /// Checks that the reference can observe all effects of the kernel.
    pub(super) fn check(&self, func: &Function, errors: &mut Errors) {
        if func.all_insts().iter().any(|inst| matches!(func.inst(*inst).op, Op::Pointer { .. })) {
            let message = "nothing but the GPU can follow the addresses that this kernel computes with";
            errors.push_help(self.span, message, "leave `verify` out, and compare its results in a test");
        }
    }
}

fn reference(value: syn::Expr, signature: &Signature, errors: &mut Errors) -> Option<Reference> {
    let span = SourceSpan::of(&value);
    let path = match value {
        syn::Expr::Path(path) if path.qself.is_none() => path.path,
        syn::Expr::Group(group) => return reference(*group.expr, signature, errors),
        _ => {
            errors.push_help(span, "`verify` names what is right", FORM);
            return None;
        }
    };
    if path.is_ident("cpu") {
        return Some(Reference::Cpu);
    }
    if let Some(view) = signature.params.iter().find(|param| param.view.is_some()) {
        let message = format!("a function of slices does not see the shape of `{}`, which is a view", view.name.text);
        errors.push_help(span, message, "write `verify = cpu`: the kernel itself, run by the CPU");
        return None;
    }
    Some(Reference::Function(path))
}

fn number(value: &syn::Expr) -> Option<f64> {
    match value {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Float(float), .. }) => float.base10_parse().ok(),
        value => integer(value).map(|value| value as f64),
    }
}
