//! Rust's syntax to the language's own: what a kernel cannot say is reported here, once, where it stands.

mod call;
mod expression;
mod inline_ptx;
mod macros;
mod matching;
mod statement;
mod structs;

use quote::ToTokens;

use crate::frontend::ast::{Block, Expr, ExprKind, Generic, Name, TypeName};
use crate::frontend::place::{Errors, Place};
use crate::frontend::words;

/// A path that leads to a device function or to a struct.
#[derive(Clone)]
pub(crate) struct Request {
    /// The path as the calls spell it.
    pub(crate) text: String,
    pub(crate) path: syn::Path,
}

/// Parses a kernel's body; also the paths that lead to device functions, each once.
pub(crate) fn body(item: &syn::ItemFn, errors: &mut Errors) -> (Block, Vec<Request>) {
    let mut parser = Parser { errors, gives_value: false, requests: Vec::new(), bound: parameters(item) };
    let place = braces(&item.block);
    let block = parser.block(&item.block);
    if let Some(value) = &block.value
        && !matches!(value.kind, ExprKind::If(_) | ExprKind::Block(_) | ExprKind::Call(_) | ExprKind::Error)
        && !matches!(&value.kind, ExprKind::Tuple(list) if list.is_empty())
    {
        parser.errors.push_help(value.place, "a kernel returns nothing", "write results to memory: `store(y + offsets, value)`");
    }
    (Block::of(block.into_stmts(), place), parser.requests)
}

/// Parses the body of a device function, which has a value.
pub(crate) fn function(item: &syn::ItemFn, errors: &mut Errors) -> (Block, Vec<Request>) {
    let mut parser = Parser { errors, gives_value: true, requests: Vec::new(), bound: parameters(item) };
    let block = Block { place: braces(&item.block), ..parser.block(&item.block) };
    (block, parser.requests)
}

/// Parses an expression that stands for itself, as the default of an option does.
pub(crate) fn expression(expr: &syn::Expr, errors: &mut Errors) -> Expr {
    Parser { errors, gives_value: true, requests: Vec::new(), bound: Vec::new() }.expr(expr)
}

/// What stands between the `<` and `>` of a struct's type.
pub(crate) fn generics(list: &syn::AngleBracketedGenericArguments, errors: &mut Errors) -> Vec<Generic> {
    Parser { errors, gives_value: true, requests: Vec::new(), bound: Vec::new() }.generic_arguments(list)
}

/// Asks for what a path leads to; `Self` is at hand. The path as it is written.
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

/// Each path is asked for once.
pub(crate) fn add_request(request: Request, requests: &mut Vec<Request>) {
    if requests.iter().all(|known| known.text != request.text) {
        requests.push(request);
    }
}

/// Is it written as types are: `Welford`, but not `f32` or `stats`?
pub(crate) fn is_type_name(name: &str) -> bool {
    name.starts_with(char::is_uppercase)
}

/// Is it what Rust has for values of the host?
pub(crate) fn is_of_the_host(name: &str) -> bool {
    ["Vec", "Option", "Result", "String", "Box", "Rc", "Arc", "Tensor"].contains(&name)
}

/// Is it what a signature calls scalars, tiles and memory?
pub(crate) fn is_of_signatures(name: &str) -> bool {
    ["Value", "Ptr", "PtrMut", "View", "ViewMut"].contains(&name)
}

/// Do the segments of a path lead to a type?
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

fn braces(block: &syn::Block) -> Place {
    Place { start: block.brace_token.span.open(), end: block.brace_token.span.close() }
}

const ELEMENT_TYPES: &str =
    "element types are `f16`, `bf16`, `f32`, `f64`, `i8` to `i64`, `u8` to `u64`, `usize`, `isize`, `bool` and type parameters such as `T`";

struct Parser<'a> {
    errors: &'a mut Errors,
    /// Is it a device function's body? A kernel returns nothing.
    gives_value: bool,
    requests: Vec<Request>,
    /// The variables that have been declared so far.
    bound: Vec<String>,
}

impl Parser<'_> {
    /// Reports something foreign and goes on with a hole in its place.
    fn foreign(&mut self, place: Place, message: impl Into<String>, help: impl Into<String>) -> Expr {
        self.errors.push_help(place, message, help);
        Expr { kind: ExprKind::Error, place }
    }

    fn ty(&mut self, ty: &syn::Type) -> TypeName {
        let place = Place::of(ty);
        let text = match ty {
            syn::Type::Group(group) => return self.ty(&group.elem),
            syn::Type::Paren(paren) => return self.ty(&paren.elem),
            syn::Type::Path(path) if path.qself.is_none() => match path.path.get_ident() {
                Some(ident) => Some(plain(ident)),
                None => {
                    // `half::f16` and the like: the last segment is the dtype.
                    let last = path.path.segments.last().filter(|segment| segment.arguments.is_none());
                    last.map(|segment| plain(&segment.ident)).filter(|text| text.parse::<crate::dtype::Dtype>().is_ok())
                }
            },
            _ => None,
        };
        if text.is_none() {
            let written = ty.to_token_stream().to_string().replace(' ', "").replace("*const", "*const ").replace("*mut", "*mut ");
            // `let x: Value<f32>`: what a signature says of a parameter.
            let is_value = ["Value<", "Tile<", "View<", "ViewMut<"].iter().any(|kind| written.starts_with(kind));
            let help = match ty {
                syn::Type::Ptr(_) if written.starts_with("*mut") => "a pointer is written `address as PtrMut<f32>`",
                syn::Type::Ptr(_) => "a pointer is written `address as Ptr<f32>`",
                _ if written.starts_with("Ptr") => "an address becomes a pointer by `as`: `address as Ptr<f32>`",
                _ if is_value => {
                    "a variable has the type of its value: leave the type out, or write the element type of a scalar, `let x: f32 = ..`"
                }
                _ => ELEMENT_TYPES,
            };
            self.errors.push_help(place, format!("`{written}` is not an element type"), help);
        }
        TypeName { text, place }
    }

    fn name(&mut self, ident: &syn::Ident) -> Name {
        Name { text: plain(ident), place: ident.into() }
    }

    /// The name by which calls know a function, which is looked for if no word has it.
    fn function_name(&mut self, path: &syn::Path) -> String {
        let segments = path.segments.iter().map(|segment| plain(&segment.ident)).collect::<Vec<_>>();
        let text = format!("{}{}", if path.leading_colon.is_some() { "::" } else { "" }, segments.join("::"));
        // A variable hides a function of its name, as in Rust.
        if !words::is_reserved(&text) && !self.bound.contains(&text) {
            request(path, &mut self.requests);
        }
        text
    }

    /// Attributes in the body: lints and comments mean nothing here, anything else would be lost unseen.
    fn attributes(&mut self, attributes: &[syn::Attribute]) {
        for attribute in attributes {
            let known = ["doc", "allow", "expect", "warn", "deny", "rustfmt"];
            let path = attribute.path();
            if !path.segments.first().is_some_and(|first| known.iter().any(|name| first.ident == name)) {
                self.errors.push_help(
                    Place::of(attribute),
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
