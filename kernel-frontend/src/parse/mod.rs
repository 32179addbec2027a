//! Converts Rust syntax to the language's syntax tree. Unsupported syntax is reported here, once, at its span.

mod call;
mod expression;
mod inline_ptx;
mod macros;
mod matching;
mod outer;
mod statement;
mod structs;

use quote::ToTokens;

use crate::ast::{Block, Expr, ExprKind, Generic, Name, TypeName};
use crate::builtins;
use crate::span::{Errors, SourceSpan};
pub(crate) use outer::Outer;
use outer::Outers;

/// A path to a device function or to a struct.
#[derive(Clone)]
pub(crate) struct Request {
    /// The path as calls spell it.
    pub(crate) text: String,
    pub(crate) path: syn::Path,
}

/// The body of a kernel.
pub(crate) struct Body {
    pub(crate) block: Block,
    /// The paths of device functions, without duplicates.
    pub(crate) requests: Vec<Request>,
    /// The constants outside of the kernel that it names, without duplicates.
    pub(crate) outers: Vec<Outer>,
}

/// Parses a kernel's body.
pub(crate) fn body(item: &syn::ItemFn, errors: &mut Errors) -> Body {
    let outers = Some(Outers::of(item));
    let mut parser = Parser { errors, gives_value: false, requests: Vec::new(), bound: parameters(item), outers };
    let span = braces(&item.block);
    let block = parser.block(&item.block);
    if let Some(value) = &block.value
        && !matches!(value.kind, ExprKind::If(_) | ExprKind::Block(_) | ExprKind::Call(_) | ExprKind::Error)
        && !matches!(&value.kind, ExprKind::Tuple(list) if list.is_empty())
    {
        parser.errors.push_help(value.span, "a kernel returns nothing", "write results to memory: `store(y + offsets, value)`");
    }
    let outers = parser.outers.map_or_else(Vec::new, |outers| outers.list);
    Body { block: Block::of(block.into_stmts(), span), requests: parser.requests, outers }
}

/// Parses the body of a device function, which has a value.
pub(crate) fn function(item: &syn::ItemFn, errors: &mut Errors) -> (Block, Vec<Request>) {
    let mut parser = Parser { errors, gives_value: true, requests: Vec::new(), bound: parameters(item), outers: None };
    let block = Block { span: braces(&item.block), ..parser.block(&item.block) };
    (block, parser.requests)
}

/// Parses a single expression, such as the default of an option.
pub(crate) fn expression(expr: &syn::Expr, errors: &mut Errors) -> Expr {
    Parser { errors, gives_value: true, requests: Vec::new(), bound: Vec::new(), outers: None }.expr(expr)
}

/// Parses the generic arguments of a struct's type.
pub(crate) fn generics(list: &syn::AngleBracketedGenericArguments, errors: &mut Errors) -> Vec<Generic> {
    Parser { errors, gives_value: true, requests: Vec::new(), bound: Vec::new(), outers: None }.generic_arguments(list)
}

/// Requests the item that a path names, unless it is `Self`. Returns the path as written.
pub(crate) fn request(path: &syn::Path, requests: &mut Vec<Request>) -> String {
    let segments = path.segments.iter().map(|segment| plain(&segment.ident)).collect::<Vec<_>>();
    let text = format!("{}{}", if path.leading_colon.is_some() { "::" } else { "" }, segments.join("::"));
    if text != "Self" {
        let mut path = path.clone();
        path.segments.iter_mut().for_each(|segment| segment.arguments = syn::PathArguments::None);
        add_request(Request { text: text.clone(), path }, requests);
    }
    text
}

/// Adds a request, without duplicates.
pub(crate) fn add_request(request: Request, requests: &mut Vec<Request>) {
    if requests.iter().all(|known| known.text != request.text) {
        requests.push(request);
    }
}

/// Is it spelt as a type: `Welford`, but not `f32` or `stats`?
pub(crate) fn is_type_name(name: &str) -> bool {
    name.starts_with(char::is_uppercase)
}

/// Is it a Rust type that exists only on the host?
pub(crate) fn is_of_the_host(name: &str) -> bool {
    ["Vec", "Option", "Result", "String", "Box", "Rc", "Arc", "Tensor"].contains(&name)
}

/// The help for an `Option`.
pub(crate) const MAY_BE_MISSING: &str =
    "a constant says whether it is there, `const HAS_W: bool`: read it under `if HAS_W`, and give an empty tensor where it is not";

/// Is it `None`, `Some(x)` or the like?
pub(crate) fn is_option(pat: &syn::Pat) -> bool {
    let is_named =
        |path: &syn::Path| ["None", "Some", "Ok", "Err"].iter().any(|name| path.segments.last().is_some_and(|last| last.ident == name));
    match pat {
        syn::Pat::Ident(ident) => ident.ident == "None",
        syn::Pat::Path(path) => is_named(&path.path),
        syn::Pat::TupleStruct(pat) => is_named(&pat.path),
        _ => false,
    }
}

/// Is it a type constructor of signatures, for scalars, tiles or memory?
pub(crate) fn is_of_signatures(name: &str) -> bool {
    ["Value", "Tile", "Ptr", "PtrMut", "View", "ViewMut"].contains(&name)
}

/// Do the segments of a path name a type?
pub(crate) fn is_type_path(path: &[String]) -> bool {
    path.last().is_some_and(|last| is_type_name(last))
}

/// The names of the parameters.
fn parameters(item: &syn::ItemFn) -> Vec<String> {
    let name = |input: &syn::FnArg| match input {
        syn::FnArg::Typed(syn::PatType { pat, .. }) => {
            if let syn::Pat::Ident(pat) = &**pat {
                Some(plain(&pat.ident))
            } else {
                None
            }
        }
        syn::FnArg::Receiver(_) => None,
    };
    item.sig.inputs.iter().filter_map(name).collect()
}

fn braces(block: &syn::Block) -> SourceSpan {
    SourceSpan { start: block.brace_token.span.open(), end: block.brace_token.span.close() }
}

const ELEMENT_TYPES: &str =
    "element types are `f16`, `bf16`, `f32`, `f64`, `i8` to `i64`, `u8` to `u64`, `usize`, `isize`, `bool` and type parameters such as `T`";

struct Parser<'a> {
    errors: &'a mut Errors,
    /// Is it a device function's body? A kernel returns no value.
    gives_value: bool,
    requests: Vec<Request>,
    /// The variables in scope.
    bound: Vec<String>,
    /// The outer constants of a kernel. A device function has none: kernels of other modules contain its body, where its names mean nothing.
    outers: Option<Outers>,
}

impl Parser<'_> {
    /// Reports unsupported syntax and continues with an error expression.
    fn foreign(&mut self, span: SourceSpan, message: impl Into<String>, help: impl Into<String>) -> Expr {
        self.errors.push_help(span, message, help);
        Expr { kind: ExprKind::Error, span }
    }

    fn ty(&mut self, ty: &syn::Type) -> TypeName {
        let span = SourceSpan::of(ty);
        let text = match ty {
            syn::Type::Group(group) => return self.ty(&group.elem),
            syn::Type::Paren(paren) => return self.ty(&paren.elem),
            syn::Type::Path(path) if path.qself.is_none() => match path.path.get_ident() {
                Some(ident) => Some(plain(ident)),
                None => {
                    // `half::f16` and similar paths: the last segment is the dtype.
                    let last = path.path.segments.last().filter(|segment| segment.arguments.is_none());
                    last.map(|segment| plain(&segment.ident)).filter(|text| text.parse::<kernel_lang::dtype::Dtype>().is_ok())
                }
            },
            _ => None,
        };
        if text.is_none() {
            let written = ty.to_token_stream().to_string().replace(' ', "").replace("*const", "*const ").replace("*mut", "*mut ");
            // `let x: Value<f32>`: a type that is valid only in signatures.
            let host = written.split('<').next().is_some_and(is_of_the_host);
            let is_value = host || ["Value<", "Tile<", "View<", "ViewMut<"].iter().any(|kind| written.starts_with(kind));
            let help = match ty {
                syn::Type::Ptr(_) if written.starts_with("*mut") => "a pointer is written `address as PtrMut<f32>`",
                syn::Type::Ptr(_) => "a pointer is written `address as Ptr<f32>`",
                _ if written.starts_with("Ptr") => "an address becomes a pointer by `as`: `address as Ptr<f32>`",
                _ if is_value => {
                    "a variable has the type of its value: leave the type out, or write the element type of a scalar, `let x: f32 = ..`"
                }
                _ => ELEMENT_TYPES,
            };
            self.errors.push_help(span, format!("`{written}` is not an element type"), help);
        }
        TypeName { text, span }
    }

    fn name(&mut self, ident: &syn::Ident) -> Name {
        Name { text: plain(ident), span: ident.into() }
    }

    /// The name by which calls refer to a function. If no builtin has the name, the function is requested.
    fn function_name(&mut self, path: &syn::Path) -> String {
        let segments = path.segments.iter().map(|segment| plain(&segment.ident)).collect::<Vec<_>>();
        let text = format!("{}{}", if path.leading_colon.is_some() { "::" } else { "" }, segments.join("::"));
        // A variable hides a function of its name, as in Rust.
        if !builtins::is_reserved(&text) && !self.bound.contains(&text) {
            request(path, &mut self.requests);
        }
        text
    }

    /// Reports attributes in the body. Lints and comments have no effect and are accepted; any other attribute would be lost silently.
    fn attributes(&mut self, attributes: &[syn::Attribute]) {
        for attribute in attributes {
            let known = ["doc", "allow", "expect", "warn", "deny", "rustfmt"];
            let path = attribute.path();
            if !path.segments.first().is_some_and(|first| known.iter().any(|name| first.ident == name)) {
                self.errors.push_help(
                    SourceSpan::of(attribute),
                    format!("the attribute `{}` has no meaning inside a kernel", path.to_token_stream()),
                    "remove it; a constant parameter and `if` choose code at compile time",
                );
            }
        }
    }
}

/// An identifier without `r#`.
pub(crate) fn plain(ident: &syn::Ident) -> String {
    let text = ident.to_string();
    text.strip_prefix("r#").map_or(text.clone(), str::to_string)
}
