//! Parses calls: `name(a, b, option = c)`, `x.name(b)`, `name::<T>(a)`.

use syn::Expr as Rust;

use super::{Parser, is_of_the_host, plain};
use crate::ast::{Call, Expr, ExprKind, Generic, Name, TypeName};
use crate::builtins;
use crate::signature::dtype_of;
use crate::span::SourceSpan;

/// Arguments, and options with their names.
type Arguments = (Vec<Expr>, Vec<(Name, Expr)>);

impl Parser<'_> {
    pub(super) fn call(&mut self, call: &syn::ExprCall, span: SourceSpan) -> Expr {
        let mut func = &*call.func;
        while let Rust::Paren(syn::ExprParen { expr, .. }) | Rust::Group(syn::ExprGroup { expr, .. }) = func {
            func = expr;
        }
        let Rust::Path(path) = func else {
            self.expr(func);
            return self.foreign(
                SourceSpan::of(func),
                "only builtins and device functions can be called",
                "call a function by its name: `gelu(x)`",
            );
        };
        let Some(last) = path.path.segments.last().filter(|_| path.qself.is_none()) else {
            let help = "call a function by its name: `gelu(x)`";
            return self.foreign(span, "only builtins and device functions can be called", help);
        };
        let Some((args, named)) = self.arguments(&call.args) else { return Expr { kind: ExprKind::Error, span } };
        let mut name = self.name(&last.ident);
        if super::statement::is_ok(call) {
            return self.foreign(span, "`Ok` has no meaning in a kernel", "leave `Ok(())` out: nothing in a kernel fails");
        }
        // A closure may have such a name.
        if !self.bound.contains(&name.text)
            && let Some((message, help)) = of_another_language(&path.path)
        {
            return self.foreign(SourceSpan::of(path), message, help);
        }
        let owner = self.owner_of(&path.path);
        if owner.is_none() && path.path.segments.len() > 1 {
            let written = path.path.segments.iter().map(|segment| plain(&segment.ident)).collect::<Vec<_>>().join("::");
            if builtins::find(&name.text).is_some() {
                let help = format!("builtins need no path: `{}(..)`", name.text);
                return self.foreign(SourceSpan::of(path), format!("`{written}` cannot be called from a kernel"), help);
            }
            if path.path.segments.len() == 2 && dtype_of(&plain(&path.path.segments[0].ident)).is_some() {
                let ty = plain(&path.path.segments[0].ident);
                let help = match name.text.as_str() {
                    "from" | "from_f32" | "from_f64" => format!("write `x as {ty}`"),
                    "from_bits" => format!("write `bitcast::<{ty}>(x)`"),
                    name => builtins::unknown(name, true).1,
                };
                return self.foreign(SourceSpan::of(path), format!("`{written}` cannot be called from a kernel"), help);
            }
            name.span = SourceSpan::from(&path.path.segments[0].ident).to(name.span);
        }
        if owner.is_none() {
            name.text = self.function_name(&path.path);
            self.function_value(&name.text, call.args.get(2));
        }
        let (mut types, mut generics) = (Vec::new(), Vec::new());
        match &last.arguments {
            syn::PathArguments::None => {}
            syn::PathArguments::AngleBracketed(list) if owner.is_none() && builtins::find(&name.text).is_some() => {
                types = self.type_arguments(&name.text, list)
            }
            syn::PathArguments::AngleBracketed(list) => generics = self.generic_arguments(list),
            syn::PathArguments::Parenthesized(_) => {
                return self.foreign(span, "this syntax is not available in kernels", "write `function::<T>(..)`");
            }
        }
        Expr { kind: ExprKind::Call(Call { name, owner: owner.map(Box::new), types, generics, args, named, is_method: false }), span }
    }

    pub(super) fn method_call(&mut self, call: &syn::ExprMethodCall, span: SourceSpan) -> Expr {
        if let Some(module) = self.python_module(&call.receiver) {
            return self.of_a_module(module, call, span);
        }
        let receiver = self.expr(&call.receiver);
        let Some((mut args, named)) = self.arguments(&call.args) else { return Expr { kind: ExprKind::Error, span } };
        args.insert(0, receiver);
        let name = self.name(&call.method);
        // Builtin methods take types; the methods of a struct take generics.
        let (types, generics) = match &call.turbofish {
            None => (Vec::new(), Vec::new()),
            Some(list) if builtins::find(&name.text).is_some() => (self.type_arguments(&name.text, list), Vec::new()),
            Some(list) => (Vec::new(), self.generic_arguments(list)),
        };
        self.function_value(&name.text, call.args.get(1));
        Expr { kind: ExprKind::Call(Call { name, owner: None, types, generics, args, named, is_method: true }), span }
    }

    /// The name of Triton's module in `tl.load(..)`, `tl.math.exp(..)`.
    fn python_module<'a>(&self, receiver: &'a Rust) -> Option<&'a syn::Ident> {
        match receiver {
            Rust::Field(field) => self.python_module(&field.base),
            Rust::Path(path) => {
                let name = path.path.get_ident()?;
                (["tl", "triton"].iter().any(|module| name == module) && !self.bound.contains(&plain(name))).then_some(name)
            }
            _ => None,
        }
    }

    /// Reports `tl.` in `tl.load(..)`, and continues with the call of the builtin.
    fn of_a_module(&mut self, module: &syn::Ident, call: &syn::ExprMethodCall, span: SourceSpan) -> Expr {
        let name = plain(&call.method);
        if builtins::find(&name).is_none() {
            self.arguments(&call.args);
            let (message, help) = builtins::unknown(&name, false);
            return self.foreign(SourceSpan::from(&call.method), message, help);
        }
        let help = format!("builtins need no module: `{name}(..)`");
        self.errors.push_help(SourceSpan::from(module), format!("there is no variable `{module}` here"), help);
        let func = syn::ExprPath { attrs: Vec::new(), qself: None, path: call.method.clone().into() };
        let args = call.args.clone();
        self.call(&syn::ExprCall { attrs: Vec::new(), func: Box::new(Rust::Path(func)), paren_token: call.paren_token, args }, span)
    }

    /// The combining function may be given as the name of a function.
    fn function_value(&mut self, function: &str, arg: Option<&Rust>) {
        if let ("reduce" | "associative_scan", Some(Rust::Path(path))) = (function, arg)
            && self.owner_of(&path.path).is_none()
        {
            self.function_name(&path.path);
        }
    }

    /// Arguments and options; `None` if their order makes them ambiguous.
    fn arguments(&mut self, list: &syn::punctuated::Punctuated<Rust, syn::Token![,]>) -> Option<Arguments> {
        let mut is_ordered = true;
        let (mut args, mut named) = (Vec::new(), Vec::<(Name, Expr)>::new());
        for arg in list {
            match arg {
                Rust::Assign(assign) => {
                    let Rust::Path(path) = &*assign.left else {
                        self.errors.push_help(
                            SourceSpan::of(&assign.left),
                            "the name of an option is one identifier",
                            "options are written `mask = m`",
                        );
                        continue;
                    };
                    let Some(ident) = path.path.get_ident() else {
                        self.errors.push_help(
                            SourceSpan::of(path),
                            "the name of an option is one identifier",
                            "options are written `mask = m`",
                        );
                        continue;
                    };
                    let name = self.name(ident);
                    let value = self.expr(&assign.right);
                    if named.iter().any(|(known, _)| known.text == name.text) {
                        self.errors.push_help(name.span, format!("the option `{}` is given twice", name.text), "remove one of them");
                    } else {
                        named.push((name, value));
                    }
                }
                other => {
                    let expr = self.expr(other);
                    if !named.is_empty() {
                        is_ordered = false;
                        self.errors.push_help(expr.span, "an argument stands after an option", "options such as `mask = m` come last");
                    }
                    args.push(expr);
                }
            }
        }
        is_ordered.then_some((args, named))
    }

    /// The generic arguments of a device function: types and constants.
    pub(super) fn generic_arguments(&mut self, generics: &syn::AngleBracketedGenericArguments) -> Vec<Generic> {
        let mut list = Vec::new();
        for argument in &generics.args {
            match argument {
                syn::GenericArgument::Type(ty) => list.push(Generic::Type(self.ty(ty))),
                syn::GenericArgument::Const(Rust::Block(block)) if block.block.stmts.len() == 1 => match &block.block.stmts[0] {
                    syn::Stmt::Expr(expr, None) => list.push(Generic::Const(self.expr(expr))),
                    other => self.errors.push_help(SourceSpan::of(other), "a constant is one expression", "write `f::<{ 2 * N }>(..)`"),
                },
                syn::GenericArgument::Const(expr) => list.push(Generic::Const(self.expr(expr))),
                other => self.errors.push_help(SourceSpan::of(other), "types and constants stand here", "write `f::<f32, 64>(..)`"),
            }
        }
        list
    }

    fn type_arguments(&mut self, function: &str, generics: &syn::AngleBracketedGenericArguments) -> Vec<TypeName> {
        let usage = match builtins::find(function) {
            Some(row) if row.usage.contains("::<") => row.usage,
            _ if function == "full" => "full::<f32>([N], value)",
            row => row.map_or("zeros::<f32>([N])", |row| row.usage),
        };
        let mut types = Vec::new();
        for argument in &generics.args {
            match argument {
                syn::GenericArgument::Type(ty) => types.push(self.ty(ty)),
                other => {
                    let help = format!("write it like `{usage}`");
                    self.errors.push_help(SourceSpan::of(other), "only an element type can stand here", help);
                }
            }
        }
        types
    }
}

/// The message and help for a call of a name that means something in Rust on the host or in Python: `Some(x)`, `Vec::new()`, `f32(x)`.
fn of_another_language(path: &syn::Path) -> Option<(String, String)> {
    let segments: Vec<String> = path.segments.iter().map(|segment| plain(&segment.ident)).collect();
    let (last, before) = segments.split_last()?;
    let written = segments.join("::");
    let help = match (last.as_str(), before) {
        ("Some" | "Ok", _) => "values are not wrapped: write the value itself".to_string(),
        ("Err", _) => "nothing in a kernel fails: leave it with `return`".to_string(),
        (ty, []) if dtype_of(ty).is_some() => return Some((format!("the type `{ty}` cannot be called"), format!("cast with `x as {ty}`"))),
        (_, [.., owner]) if is_of_the_host(owner) => {
            "kernels compute with scalars and tiles: a tile is made by `arange`, `zeros`, `full` or `load`".to_string()
        }
        _ => return None,
    };
    Some((format!("`{written}` has no meaning in a kernel"), help))
}
