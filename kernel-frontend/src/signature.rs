//! A kernel's signature: its generics and its parameters.

use syn::{FnArg, GenericParam, Pat, TypeParamBound};

use crate::ast::Name;
use crate::parse::{MAY_BE_MISSING, is_of_signatures, is_of_the_host, is_type_name, plain};
use crate::span::{Errors, SourceSpan};
use kernel_lang::diagnostic::did_you_mean;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{Elem, TARGET, Type};

/// The dtypes that each bound allows.
pub(crate) const BOUNDS: &[(&str, &[Dtype])] =
    &[("Float", &Dtype::FLOATS), ("Int", &Dtype::INTS), ("Number", &Dtype::NUMBERS), ("Element", &Dtype::ALL)];

/// The bound of a type parameter without an explicit one.
pub(crate) const ANY: (&str, &[Dtype]) = ("Element", &Dtype::ALL);

/// A kernel's signature, as far as it could be parsed.
pub(crate) struct Signature {
    pub(crate) name: Name,
    pub(crate) types: Vec<TypeGeneric>,
    pub(crate) consts: Vec<ConstGeneric>,
    pub(crate) params: Vec<Param>,
}

/// `T: Float`.
pub(crate) struct TypeGeneric {
    pub(crate) name: Name,
    pub(crate) ident: syn::Ident,
    /// The bound, a name in [`BOUNDS`].
    pub(crate) bound: &'static str,
    pub(crate) choices: &'static [Dtype],
    /// Has its bound been reported? Values of this type then cause no further errors.
    pub(crate) is_broken: bool,
}

/// `const BLOCK_SIZE: usize`.
pub(crate) struct ConstGeneric {
    pub(crate) name: Name,
    pub(crate) ident: syn::Ident,
    pub(crate) dtype: Dtype,
    /// Has its type been reported? Its values are then meaningless.
    pub(crate) is_wrong: bool,
    /// The type as written.
    pub(crate) ty: syn::Type,
}

/// `x: Ptr<T>`.
pub(crate) struct Param {
    pub(crate) name: Name,
    pub(crate) ident: syn::Ident,
    pub(crate) mutable: bool,
    /// `None` if an error in it has been reported. A view has the type of its pointer.
    pub(crate) ty: Option<Type>,
    /// For `View<T, RANK>`: the number of axes.
    pub(crate) view: Option<usize>,
}

impl Signature {
    /// The index of a parameter's first argument word.
    pub(crate) fn word_of(&self, index: usize) -> usize {
        self.params[..index].iter().map(Param::words).sum()
    }

    /// The parameters that are tensors.
    pub(crate) fn pointers(&self) -> impl Iterator<Item = &Param> {
        self.params.iter().filter(|param| param.is_pointer())
    }
}

impl Param {
    /// Is it a tensor?
    pub(crate) fn is_pointer(&self) -> bool {
        matches!(self.ty, Some(Type::Pointer { .. }))
    }

    /// The number of argument words: a pointer has an address and a length. A view also has an extent for each axis and a stride for each but
    /// the last.
    pub(crate) fn words(&self) -> usize {
        match (&self.ty, self.view) {
            (Some(_), Some(rank)) => 1 + 2 * rank,
            (Some(ty), None) if ty.is_pointer() => 2,
            _ => 1,
        }
    }
}

/// The dtype of a Rust type name inside a kernel.
pub(crate) fn dtype_of(name: &str) -> Option<Dtype> {
    match name {
        "usize" | "isize" => Some(Dtype::I64),
        _ => name.parse().ok(),
    }
}

/// The 8-bit float type for a name that other libraries use: `float8_e4m3fn`, `F8E5M2`, `float8e4nv`, `fp8`.
pub(crate) fn float8_named(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    match name.as_str() {
        _ if name.contains("e4m3") || name.contains("e4nv") => Some("`f8e4m3`"),
        _ if name.contains("e5m2") || name == "float8e5" => Some("`f8e5m2`"),
        "f8" | "fp8" | "float8" => Some("`f8e4m3` or `f8e5m2`"),
        _ => None,
    }
}

/// Parses a signature and reports unsupported syntax.
pub(crate) fn parse(item: &syn::ItemFn, errors: &mut Errors) -> Signature {
    let sig = &item.sig;
    let name = Name { text: plain(&sig.ident), span: SourceSpan::from(&sig.ident) };
    let mut signature = Signature { name, types: Vec::new(), consts: Vec::new(), params: Vec::new() };
    qualifiers(sig, "a kernel", errors);
    if let syn::Safety::Unsafe(token) = &sig.safety {
        errors.push_help(
            SourceSpan::of(token),
            "a kernel is not declared `unsafe`",
            "for a kernel without bounds checks write `#[kernel(unchecked)]`",
        );
    }
    if let syn::ReturnType::Type(_, ty) = &sig.output
        && !matches!(&**ty, syn::Type::Tuple(tuple) if tuple.elems.is_empty())
    {
        errors.push_help(
            SourceSpan::of(ty),
            "a kernel returns nothing",
            "take a parameter `y: PtrMut<T>` and `store` the result through it",
        );
    }
    for param in &sig.generics.params {
        generic(param, &mut signature, errors);
    }
    for input in &sig.inputs {
        parameter(input, &mut signature, errors);
    }
    unique(&signature, errors);
    signature
}

/// Reports qualifiers that no function of the language can have; `what` names the kind of function in messages.
pub(crate) fn qualifiers(sig: &syn::Signature, what: &str, errors: &mut Errors) {
    let foreign: [(Option<SourceSpan>, &str, &str); 4] = [
        (sig.constness.as_ref().map(SourceSpan::of), "cannot be `const`", "remove `const`"),
        (sig.asyncness.as_ref().map(SourceSpan::of), "cannot be `async`", "launches are asynchronous by themselves"),
        (sig.abi.as_ref().map(SourceSpan::of), "has no ABI", "remove `extern`"),
        (sig.variadic.as_ref().map(SourceSpan::of), "has a fixed number of parameters", "remove `...`"),
    ];
    for (span, message, help) in foreign {
        if let Some(span) = span {
            errors.push_help(span, format!("{what} {message}"), help);
        }
    }
    no_where_clause(&sig.generics, errors);
}

pub(crate) fn no_where_clause(generics: &syn::Generics, errors: &mut Errors) {
    if let Some(clause) = &generics.where_clause {
        errors.push_help(
            SourceSpan::of(&clause.where_token),
            "`where` clauses are not available in kernels",
            "write the bound at the parameter: `T: Float`",
        );
    }
}

/// Parses one generic parameter.
pub(crate) fn generic(param: &GenericParam, signature: &mut Signature, errors: &mut Errors) {
    match param {
        GenericParam::Type(param) => {
            let name = Name { text: plain(&param.ident), span: SourceSpan::from(&param.ident) };
            if let Some((_, default)) = &param.default {
                errors.push_help(
                    SourceSpan::of(default),
                    "a type parameter of a kernel has no default",
                    "name the types at the launch: `kernel::<f32>(..)`",
                );
            }
            let found = bound(param, errors);
            let (bound, choices) = found.unwrap_or(ANY);
            signature.types.push(TypeGeneric { name, ident: param.ident.clone(), bound, choices, is_broken: found.is_none() });
        }
        GenericParam::Const(param) => {
            let name = Name { text: plain(&param.ident), span: SourceSpan::from(&param.ident) };
            if let Some((_, default)) = &param.default {
                errors.push_help(
                    SourceSpan::of(default),
                    "a constant parameter of a kernel has no default",
                    "list values to compile: `#[kernel(N = [1024])]`",
                );
            }
            let written = ident_of(&param.ty);
            let dtype = written.as_deref().and_then(dtype_of).filter(|dtype| !dtype.is_float() || is_float_constant(*dtype));
            if dtype.is_none() {
                not_an_integer(&param.ty, errors);
            }
            let is_wrong = dtype.is_none();
            let (dtype, ty) = dtype.map_or_else(|| (Dtype::I64, syn::parse_quote!(usize)), |dtype| (dtype, param.ty.clone()));
            signature.consts.push(ConstGeneric { name, ident: param.ident.clone(), dtype, is_wrong, ty });
        }
        GenericParam::Lifetime(param) => {
            errors.push_help(
                SourceSpan::of(param),
                "a kernel has no lifetime parameters",
                "remove it: `Ptr<T>` borrows its tensor for the launch by itself",
            );
        }
    }
}

/// May a constant parameter have this float type, if configurations or heuristics set it?
fn is_float_constant(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::F32 | Dtype::F64)
}

fn not_an_integer(ty: &syn::Type, errors: &mut Errors) {
    errors.push_help(
        SourceSpan::of(ty),
        "a constant parameter is an integer or `bool`",
        "use `usize`, `i32`, `u32`, `i64`, `u64` or `bool`; a float is an ordinary parameter, or an `f32` or `f64` that the configurations of \
         `#[autotune]` set",
    );
}

/// Reports constant parameters of a float type that are not in `fixed`: a launch cannot name a float as a generic.
pub(crate) fn check_floats(signature: &mut Signature, fixed: &[usize], errors: &mut Errors) {
    for (index, generic) in signature.consts.iter_mut().enumerate() {
        if generic.dtype.is_float() && !fixed.contains(&index) {
            not_an_integer(&generic.ty, errors);
            (generic.dtype, generic.ty, generic.is_wrong) = (Dtype::I64, syn::parse_quote!(usize), true);
        }
    }
}

fn bound(param: &syn::TypeParam, errors: &mut Errors) -> Option<(&'static str, &'static [Dtype])> {
    const HELP: &str = "write one of `Float`, `Int`, `Number`, `Element`";
    let mut bounds = param.bounds.iter();
    let Some(first) = bounds.next() else {
        errors.push_help(
            SourceSpan::from(&param.ident),
            format!("the type parameter `{}` has no bound", param.ident),
            format!("write `{}: Float`, or `Int`, `Number`, `Element`", param.ident),
        );
        return None;
    };
    if let Some(extra) = bounds.next() {
        errors.push_help(SourceSpan::of(extra), "a type parameter of a kernel has one bound", HELP);
    }
    let name = match first {
        TypeParamBound::Trait(bound) => bound.path.segments.last().map(|segment| plain(&segment.ident)),
        _ => None,
    };
    let name = name.unwrap_or_default();
    let found = BOUNDS.iter().find(|(bound, _)| *bound == name).copied();
    if found.is_none() {
        let help = match did_you_mean(&name, BOUNDS.iter().map(|(bound, _)| *bound)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => HELP.to_string(),
        };
        let message = if name.is_empty() {
            "a type parameter is bound by a set of element types".to_string()
        } else {
            format!("`{name}` is not a set of element types")
        };
        errors.push_help(SourceSpan::of(first), message, help);
    }
    found
}

fn parameter(input: &FnArg, signature: &mut Signature, errors: &mut Errors) {
    let typed = match input {
        FnArg::Typed(typed) => typed,
        FnArg::Receiver(receiver) => {
            errors.push_help(SourceSpan::of(receiver), "a kernel has no `self`", "make it a function of its own");
            return;
        }
    };
    for attribute in &typed.attrs {
        if !attribute.path().is_ident("doc") && !attribute.path().is_ident("allow") {
            errors.push_help(SourceSpan::of(attribute), "a kernel's parameter has no attributes", "remove it");
        }
    }
    let (ident, mutable) = match &*typed.pat {
        Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => (pat.ident.clone(), pat.mutability.is_some()),
        other => {
            errors.push_help(SourceSpan::of(other), "a kernel's parameter is one name", "write `x: Ptr<T>`");
            (quote::format_ident!("parameter{}", signature.params.len()), false)
        }
    };
    let name = Name { text: plain(&ident), span: SourceSpan::from(&ident) };
    let ty = parameter_type(&typed.ty, signature, errors);
    let view = ty.as_ref().and_then(|_| view_rank(&typed.ty));
    signature.params.push(Param { name, ident, mutable, ty, view });
}

fn ident_of(ty: &syn::Type) -> Option<String> {
    match ty {
        syn::Type::Path(path) if path.qself.is_none() => path.path.get_ident().map(plain),
        syn::Type::Group(group) => ident_of(&group.elem),
        syn::Type::Paren(paren) => ident_of(&paren.elem),
        _ => None,
    }
}

/// The `RANK` of `View<T, RANK>`.
pub(crate) fn view_rank(ty: &syn::Type) -> Option<usize> {
    let path = match ty {
        syn::Type::Group(group) => return view_rank(&group.elem),
        syn::Type::Paren(paren) => return view_rank(&paren.elem),
        syn::Type::Path(path) => &path.path,
        _ => return None,
    };
    let last = path.segments.last().filter(|last| last.ident == "View" || last.ident == "ViewMut")?;
    let syn::PathArguments::AngleBracketed(generics) = &last.arguments else { return None };
    let literal = match generics.args.get(1)? {
        syn::GenericArgument::Const(syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(literal), .. })) => literal,
        _ => return None,
    };
    literal.base10_parse().ok().filter(|rank| (1..=MAX_VIEW_RANK).contains(rank))
}

/// The maximum number of axes of a tensor.
const MAX_VIEW_RANK: usize = 8;

const KINDS: &str = "a kernel takes `Ptr<T>`, `PtrMut<T>`, `View<T, 2>`, `ViewMut<T, 2>` and scalars such as `usize` and `f32`";

fn parameter_type(ty: &syn::Type, signature: &Signature, errors: &mut Errors) -> Option<Type> {
    let span = SourceSpan::of(ty);
    let path = match ty {
        syn::Type::Group(group) => return parameter_type(&group.elem, signature, errors),
        syn::Type::Paren(paren) => return parameter_type(&paren.elem, signature, errors),
        syn::Type::Path(path) if path.qself.is_none() => &path.path,
        syn::Type::Reference(_) | syn::Type::Slice(_) | syn::Type::Ptr(_) | syn::Type::Array(_) => {
            errors.push_help(
                span,
                "memory is passed to a kernel as a pointer of its own kind",
                "write `x: Ptr<f32>` to read, `y: PtrMut<f32>` to write",
            );
            return None;
        }
        _ => {
            errors.push_help(span, "this type cannot be passed to a kernel", KINDS);
            return None;
        }
    };
    let last = path.segments.last()?;
    let name = plain(&last.ident);
    match name.as_str() {
        "Ptr" | "PtrMut" => {
            let mutable = name == "PtrMut";
            let syn::PathArguments::AngleBracketed(generics) = &last.arguments else {
                errors.push_help(span, format!("`{name}` needs an element type"), format!("write `{name}<f32>`"));
                return None;
            };
            match (generics.args.len(), generics.args.first()) {
                (1, Some(syn::GenericArgument::Type(inner))) => {
                    let elem = element(inner, signature, errors)?;
                    if let Some(index @ ("usize" | "isize")) = ident_of(inner).as_deref() {
                        errors.push_help(
                            SourceSpan::of(inner),
                            format!("tensors do not hold `{index}`"),
                            "write `i64`, which an index is in a kernel",
                        );
                        return None;
                    }
                    Some(Type::Pointer { elem, mutable })
                }
                _ => {
                    errors.push_help(span, format!("`{name}` has one element type"), format!("write `{name}<f32>`"));
                    None
                }
            }
        }
        "View" | "ViewMut" => {
            let inner = match &last.arguments {
                syn::PathArguments::AngleBracketed(generics) if generics.args.len() == 2 => generics.args.first(),
                _ => None,
            };
            match (inner, view_rank(ty)) {
                (Some(syn::GenericArgument::Type(inner)), Some(_)) => {
                    element(inner, signature, errors).map(|elem| Type::Pointer { elem, mutable: name == "ViewMut" })
                }
                _ => {
                    let message = format!("`{name}` has an element type and a number of axes from 1 to {MAX_VIEW_RANK}");
                    errors.push_help(span, message, format!("write `{name}<f32, 2>`"));
                    None
                }
            }
        }
        _ if !last.arguments.is_none() => {
            let help = match did_you_mean(&name, ["Ptr", "PtrMut"]) {
                Some(near) => format!("did you mean `{near}<..>`?"),
                None if name == "Option" => MAY_BE_MISSING.to_string(),
                None if name == "Value" => "a kernel takes scalars, `x: f32`, and loads tiles through `x: Ptr<f32>`".to_string(),
                None if is_of_the_host(&name) => "write `x: Ptr<f32>` to read a tensor, `y: PtrMut<f32>` to write it".to_string(),
                None => KINDS.to_string(),
            };
            errors.push_help(span, format!("`{name}` cannot be passed to a kernel"), help);
            None
        }
        _ => element(ty, signature, errors).map(Type::scalar),
    }
}

/// Parses an element type, with errors in the terms of a signature.
fn element(ty: &syn::Type, signature: &Signature, errors: &mut Errors) -> Option<Elem> {
    let span = SourceSpan::of(ty);
    let name = match ty {
        syn::Type::Path(path) if path.qself.is_none() => {
            path.path.segments.last().filter(|last| last.arguments.is_none()).map(|last| plain(&last.ident))
        }
        syn::Type::Group(group) => return element(&group.elem, signature, errors),
        _ => None,
    };
    let Some(name) = name else {
        errors.push_help(span, "this type cannot be passed to a kernel", KINDS);
        return None;
    };
    if let Some(generic) = signature.types.iter().find(|generic| generic.name.text == name) {
        return Some(Elem::Param(generic.name.text.as_str().into()));
    }
    if let Some(dtype) = dtype_of(&name) {
        return Some(Elem::Dtype(dtype));
    }
    if matches!(name.as_str(), "i128" | "u128") {
        errors.push_help(span, format!("`{name}` is not an element type"), "the widest integers are `i64` and `u64`");
        return None;
    }
    if let Some(float8) = float8_named(&name) {
        errors.push_help(span, format!("`{name}` is not an element type"), format!("did you mean {float8}?"));
        return None;
    }
    let names = Dtype::ALL.iter().map(|dtype| dtype.name()).chain(["usize", "isize", "Ptr", "PtrMut"]);
    let help = match did_you_mean(&name, names.chain(signature.types.iter().map(|generic| generic.name.text.as_str()))) {
        Some(near) => format!("did you mean `{near}`?"),
        None if name.len() == 1 => format!("declare it: `fn {}<{name}: Float>(..)`", signature.name.text),
        None if name == "constexpr" => format!("a constant is a generic: `fn {}<const BLOCK_SIZE: usize>(..)`", signature.name.text),
        None if is_alias(&name) => of_alias(&name, &signature.name.text),
        None => KINDS.to_string(),
    };
    errors.push_help(span, format!("`{name}` is not an element type"), help);
    None
}

/// Is it spelt as a type of the user: `Half`?
pub(crate) fn is_alias(name: &str) -> bool {
    is_type_name(name) && name.contains(char::is_lowercase) && !is_of_the_host(name) && !is_of_signatures(name)
}

/// The help for a type alias in a kernel. Its code depends on the element types, and only rustc, after the macro, knows what an alias stands for.
pub(crate) fn of_alias(name: &str, kernel: &str) -> String {
    format!(
        "if `{name}` is an alias, the macro does not see what it stands for: write the type itself, or a type parameter that the launch \
         names, `fn {kernel}<T: Float>(..)` and `{kernel}::<{name}>(..)`"
    )
}

/// Does the name have a predefined meaning in constant expressions?
pub(crate) fn has_meaning(name: &str) -> bool {
    dtype_of(name).is_some() || matches!(name, "inf" | "nan" | "min" | "max" | "cdiv" | TARGET)
}

/// Reports duplicate names, and names that conflict in the IR's text or in the launcher.
pub(crate) fn unique(signature: &Signature, errors: &mut Errors) {
    let types = signature.types.iter().map(|generic| &generic.name);
    let consts = signature.consts.iter().map(|generic| &generic.name);
    let generics: Vec<&Name> = types.chain(consts).collect();
    for (index, name) in generics.iter().enumerate() {
        if has_meaning(&name.text) {
            errors.push_help(name.span, format!("`{}` has a meaning of its own in a kernel", name.text), "choose another name");
        }
        if generics[..index].iter().any(|earlier| earlier.text == name.text) {
            errors.push_help(name.span, format!("the generic `{}` is declared twice", name.text), "choose another name");
        }
    }
    for (index, param) in signature.params.iter().enumerate() {
        if signature.params[..index].iter().any(|earlier| earlier.name.text == param.name.text) {
            errors.push_help(param.name.span, format!("the parameter `{}` is declared twice", param.name.text), "choose another name");
        }
        if generics.iter().any(|name| name.text == param.name.text) {
            errors.push_help(param.name.span, format!("`{}` is a generic of the kernel", param.name.text), "choose another name");
        }
    }
}
