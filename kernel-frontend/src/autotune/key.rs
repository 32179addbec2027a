//! The tuning key: `key = [n, bucket(m), bucket(k, 512), extent(x, 1)]`. Launches with the same key share a configuration.

use quote::ToTokens;

use super::{name_of, parameter, several};
use crate::attributes::integer;
use crate::signature::Signature;
use crate::span::{Errors, SourceSpan};
use kernel_lang::ir::{Elem, Type};

/// One argument word, and the equivalence of its values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct KeyPart {
    pub(crate) word: usize,
    pub(crate) bucket: Bucket,
}

/// The equivalence of values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bucket {
    /// Each value is distinct.
    Exact,
    /// Values with the same next power of two are equivalent.
    PowerOfTwo,
    /// Values with the same next multiple are equivalent.
    Multiple(u64),
}

pub(super) fn parse(value: &syn::Expr, signature: &Signature, key: &mut Vec<KeyPart>, errors: &mut Errors) {
    for value in several(value) {
        let Some(part) = part(value, signature, errors) else { continue };
        if key.iter().any(|earlier| earlier.word == part.word) {
            let text = value.to_token_stream().to_string().replace(" ", "").replace(',', ", ");
            let message = match name_of(value) {
                Some(name) => format!("`{name}` is listed twice"),
                None => format!("what `{text}` is made of is listed already"),
            };
            errors.push_help(SourceSpan::of(value), message, "remove one of them");
        } else {
            key.push(part);
        }
    }
}

fn part(value: &syn::Expr, signature: &Signature, errors: &mut Errors) -> Option<KeyPart> {
    let syn::Expr::Call(call) = value else {
        return scalar(value, signature, errors).map(|word| KeyPart { word, bucket: Bucket::Exact });
    };
    match name_of(&call.func).as_deref() {
        Some("extent") => extent(call, signature, errors).map(|word| KeyPart { word, bucket: Bucket::Exact }),
        Some("bucket") => {
            let (inner, bucket) = match call.args.len() {
                1 => (&call.args[0], Bucket::PowerOfTwo),
                2 => match integer(&call.args[1]).and_then(|step| u64::try_from(step).ok()).filter(|step| *step > 1) {
                    Some(step) => (&call.args[0], Bucket::Multiple(step)),
                    None => {
                        let help = "`bucket(n)` is the next power of two, `bucket(n, 512)` the next multiple of 512";
                        errors.push_help(SourceSpan::of(&call.args[1]), "a bucket's size is a number above 1", help);
                        return None;
                    }
                },
                _ => {
                    errors.push_help(
                        SourceSpan::of(value),
                        "`bucket` takes a size, and a number if need be",
                        "write `bucket(n)` or `bucket(n, 512)`",
                    );
                    return None;
                }
            };
            let word = match inner {
                syn::Expr::Call(call) if name_of(&call.func).as_deref() == Some("extent") => extent(call, signature, errors)?,
                _ => {
                    let word = scalar(inner, signature, errors)?;
                    is_size(inner, signature, errors)?;
                    word
                }
            };
            Some(KeyPart { word, bucket })
        }
        _ => {
            let help = "write `key = [n]`, `key = [bucket(n)]` or, of a view, `key = [extent(x, 1)]`";
            errors.push_help(SourceSpan::of(value), "the key lists parameters of the kernel", help);
            None
        }
    }
}

fn scalar(value: &syn::Expr, signature: &Signature, errors: &mut Errors) -> Option<usize> {
    let span = SourceSpan::of(value);
    let Some(name) = name_of(value) else {
        errors.push_help(span, "the key lists parameters of the kernel", "write `key = [n]`");
        return None;
    };
    let index = parameter(&name, span, "the key lists parameters of the kernel, such as its sizes", signature, errors)?;
    if signature.params[index].view.is_some() {
        errors.push_help(
            span,
            format!("`{name}` is a view, and every tensor would be tuned anew"),
            format!("write `key = [extent({name}, 0)]`"),
        );
        return None;
    }
    if signature.params[index].is_pointer() {
        errors.push_help(span, format!("`{name}` is a pointer, and every tensor would be tuned anew"), "list the sizes: `key = [n]`");
        return None;
    }
    Some(signature.word_of(index))
}

/// Is the parameter an integer?
fn is_size(value: &syn::Expr, signature: &Signature, errors: &mut Errors) -> Option<()> {
    let name = name_of(value)?;
    let param = signature.params.iter().find(|param| param.name.text == name)?;
    let is_int = match &param.ty {
        None => true,
        Some(Type::Tile { elem: Elem::Dtype(dtype), .. }) => dtype.int_range().is_some(),
        Some(_) => false,
    };
    if !is_int {
        errors.push_help(
            SourceSpan::of(value),
            format!("`{name}` is no integer, and buckets are of sizes"),
            format!("write `key = [{name}]`"),
        );
    }
    is_int.then_some(())
}

/// `extent(x, 1)` of a view.
fn extent(call: &syn::ExprCall, signature: &Signature, errors: &mut Errors) -> Option<usize> {
    let span = SourceSpan::of(call);
    let form = "write `extent(x, 0)`, of a parameter that is a view";
    let (Some(name), 2) = (call.args.first().and_then(name_of), call.args.len()) else {
        errors.push_help(span, "`extent` takes a view and an axis", form);
        return None;
    };
    let index = parameter(&name, SourceSpan::of(&call.args[0]), form, signature, errors)?;
    let Some(rank) = signature.params[index].view else {
        if signature.params[index].ty.is_some() {
            errors.push_help(span, format!("`{name}` is no view, and has no extents"), form);
        }
        return None;
    };
    match integer(&call.args[1]).and_then(|axis| usize::try_from(axis).ok()).filter(|axis| *axis < rank) {
        Some(axis) => Some(signature.word_of(index) + 2 + axis),
        None => {
            let help = format!("its axes are 0 to {}", rank - 1);
            errors.push_help(SourceSpan::of(&call.args[1]), format!("`{name}` has {rank} axes, and not this one"), help);
            None
        }
    }
}
