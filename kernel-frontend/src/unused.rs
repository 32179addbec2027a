//! Code by which rustc lints the variables of a kernel: variables that are unused, needlessly `mut`, or assigned and never read.
//!
//! rustc does not see the body of a kernel. The launcher therefore contains a function that nothing calls, with the kernel's variables at the
//! user's spans, in the kernel's control flow. Each expression is reduced to the variables that it reads:
//!
//! ```text
//! let mut v = load(x + at, mask = at < n);     let mut v = used(&[x, at, at, n]);
//! for i in 0..n { v += 1.0; }                  for i in indices(used(&[n])) { v += used(&[]); }
//! ```
//!
//! `#[allow(unused_variables)]` and its like on the kernel, on its parameters and on statements apply to this function, too. The first value of
//! a `mut` variable may be unread: in a kernel a variable cannot be declared without one.

mod pattern;

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{Expr, Pat, Stmt};

use crate::parse::plain;
use pattern::{Taken, given, is_variable};

/// The function for rustc, as an item inside the launcher or the device function.
///
/// `attributes` are the arguments of the kernel's own attributes: a parameter that they name is used.
pub(crate) fn function(sig: &syn::Signature, block: &syn::Block, private: &TokenStream, attributes: &[TokenStream]) -> TokenStream {
    let mut cx = Lints { private, scope: Vec::new(), structs: 0 };
    let (mut params, mut types) = (Vec::new(), Vec::new());
    for input in &sig.inputs {
        let syn::FnArg::Typed(typed) = input else { continue };
        let Pat::Ident(pat) = &*typed.pat else { continue };
        let (attrs, mutability, ident) = (lint_attributes(&typed.attrs), &pat.mutability, &pat.ident);
        params.push(quote!(#(#attrs)* #mutability #ident: u32));
        types.push(quote!(u32));
        cx.scope.push(Variable::new(ident));
    }
    let mut named = Vec::new();
    attributes.iter().for_each(|tokens| cx.scan(tokens.clone(), &mut named));
    let named = (!named.is_empty()).then(|| {
        let used = cx.used(&named);
        quote!(#used;)
    });
    let body = cx.block(block, false);
    quote! {
        const _: fn(#(#types),*) = {
            #[allow(unreachable_code, clippy::all, reason = "rustc lints the kernel's variables in it, and nothing else")]
            fn variables(#(#params),*) {
                #named
                #body
            }
            variables
        };
    }
}

/// A variable in scope.
struct Variable {
    name: String,
    ident: syn::Ident,
    /// For a closure, the variables around it that its body reads: its call reads them.
    captured: Vec<syn::Ident>,
}

impl Variable {
    fn new(ident: &syn::Ident) -> Variable {
        Variable { name: plain(ident), ident: ident.clone(), captured: Vec::new() }
    }
}

struct Lints<'a> {
    private: &'a TokenStream,
    scope: Vec<Variable>,
    /// The number of structs for patterns so far.
    structs: usize,
}

impl Lints<'_> {
    fn used(&self, reads: &[impl ToTokens]) -> TokenStream {
        let private = self.private;
        quote!(#private::lints::used(&[#(#reads),*]))
    }

    fn find(&self, ident: &syn::Ident) -> Option<&Variable> {
        let name = plain(ident);
        self.scope.iter().rev().find(|variable| variable.name == name)
    }

    /// The name of a variable in scope, where it is used. A kernel goes by the text of names, so it has the hygiene of the declaration: both
    /// may stem from different macros.
    fn named(&self, ident: &syn::Ident) -> Option<syn::Ident> {
        let mut named = self.find(ident)?.ident.clone();
        named.set_span(ident.span().resolved_at(named.span()));
        Some(named)
    }

    /// The value of an expression: of type `u32`, from what it reads.
    fn value(&mut self, expr: &Expr) -> TokenStream {
        match expr {
            Expr::Group(group) => self.value(&group.expr),
            Expr::Paren(paren) => self.value(&paren.expr),
            Expr::If(_) | Expr::Match(_) | Expr::Block(_) | Expr::Closure(_) => self.nested(expr, true),
            _ => {
                let mut reads = Vec::new();
                self.reads(expr, &mut reads);
                self.used(&reads)
            }
        }
    }

    /// An expression with blocks in it; `has_value` if its value is wanted.
    fn nested(&mut self, expr: &Expr, has_value: bool) -> TokenStream {
        match expr {
            Expr::If(branch) => {
                let (cond, then) = (self.value(&branch.cond), self.block(&branch.then_branch, has_value));
                let other = match &branch.else_branch {
                    Some((_, other)) => match &**other {
                        Expr::Block(block) => self.block(&block.block, has_value),
                        other => {
                            let other = self.nested(other, has_value);
                            quote!({ #other })
                        }
                    },
                    None if has_value => quote!({ 0 }),
                    None => quote!({}),
                };
                quote!(if #cond != 0 #then else #other)
            }
            Expr::Match(matched) => self.matched(matched, has_value),
            Expr::Block(block) => self.block(&block.block, has_value),
            Expr::Closure(closure) => self.closure(closure),
            other => {
                let value = self.value(other);
                if has_value { value } else { quote!(#value;) }
            }
        }
    }

    /// A closure as a block in which its parameters have values.
    fn closure(&mut self, closure: &syn::ExprClosure) -> TokenStream {
        let visible = self.scope.len();
        let mut params = TokenStream::new();
        for input in &closure.inputs {
            let Taken { structs, pattern, value, names, .. } = self.taken(input);
            let first = self.used(&[] as &[syn::Ident]);
            let given = given();
            params.extend(quote!(#structs let #given = #first; let #pattern = #value;));
            self.scope.extend(names.iter().map(Variable::new));
        }
        let body = self.value(&closure.body);
        self.scope.truncate(visible);
        quote!({ #params #body })
    }

    fn matched(&mut self, matched: &syn::ExprMatch, has_value: bool) -> TokenStream {
        let value = self.value(&matched.expr);
        let last = matched.arms.len().saturating_sub(1);
        let mut is_complete = false;
        let arms: Vec<TokenStream> = matched
            .arms
            .iter()
            .enumerate()
            .map(|(index, arm)| {
                let visible = self.scope.len();
                let (pat, guard) = match &arm.pat {
                    Pat::Guard(guarded) => (&*guarded.pat, Some(&*guarded.guard)),
                    pat => (pat, None),
                };
                let mut reads = Vec::new();
                let pattern = match pat {
                    Pat::Ident(ident) if is_variable(&ident.ident) => {
                        self.scope.push(Variable::new(&ident.ident));
                        let (mutability, ident) = (&ident.mutability, &ident.ident);
                        quote!(#mutability #ident)
                    }
                    other => {
                        let mut named = Vec::new();
                        self.scan(other.to_token_stream(), &mut named);
                        reads.extend(named.iter().map(ToTokens::to_token_stream));
                        quote!(_)
                    }
                };
                let is_always = guard.is_none() && matches!(pat, Pat::Wild(_) | Pat::Ident(_)) && index == last;
                is_complete |= is_always;
                let guard = (!is_always).then(|| {
                    if let Some(guard) = guard {
                        self.reads(guard, &mut reads);
                    }
                    let cond = self.used(&reads);
                    quote!(if #cond != 0)
                });
                let body = match &*arm.body {
                    Expr::Block(block) => self.block(&block.block, has_value),
                    other if has_value => {
                        let value = self.value(other);
                        quote!({ #value })
                    }
                    other => {
                        let stmt = self.expr_stmt(other);
                        quote!({ #stmt })
                    }
                };
                self.scope.truncate(visible);
                quote!(#pattern #guard => #body)
            })
            .collect();
        let rest = (!is_complete).then(|| if has_value { quote!(_ => 0) } else { quote!(_ => {}) });
        quote!(match #value { #(#arms)* #rest })
    }

    fn block(&mut self, block: &syn::Block, has_value: bool) -> TokenStream {
        let visible = self.scope.len();
        let mut stmts = TokenStream::new();
        let mut value = has_value.then(|| quote!(0));
        let mut constants: Vec<String> = Vec::new();
        for (index, stmt) in block.stmts.iter().enumerate() {
            match stmt {
                Stmt::Local(local) => stmts.extend(self.local(local)),
                Stmt::Item(syn::Item::Const(item)) => {
                    let reads = self.value(&item.expr);
                    let (name, ident, attrs) = (plain(&item.ident), &item.ident, lint_attributes(&item.attrs));
                    let declare = !is_variable(&item.ident) && !constants.contains(&name);
                    let declared = declare.then(|| quote!(#(#attrs)* const #ident: u32 = 0;));
                    stmts.extend(quote!(#declared #reads;));
                    if declare {
                        constants.push(name);
                        self.scope.push(Variable::new(&item.ident));
                    }
                }
                Stmt::Expr(expr, None) if has_value && index + 1 == block.stmts.len() && !is_statement(expr) => {
                    value = Some(self.nested(expr, true));
                }
                Stmt::Expr(expr, _) => stmts.extend(self.expr_stmt(expr)),
                Stmt::Macro(mac) => {
                    let mut reads = Vec::new();
                    self.scan(mac.mac.tokens.clone(), &mut reads);
                    let used = self.used(&reads);
                    stmts.extend(quote!(#used;));
                }
                Stmt::Item(_) => {}
            }
        }
        self.scope.truncate(visible);
        quote!({ #stmts #value })
    }

    fn local(&mut self, local: &syn::Local) -> TokenStream {
        let Some(init) = &local.init else { return TokenStream::new() };
        let (given, init_value) = (given(), self.value(&init.expr));
        let (attrs, Taken { structs, pattern, value, names, is_mutable }) = (lint_attributes(&local.attrs), self.taken(&local.pat));
        let mut captured = Vec::new();
        if let Expr::Closure(closure) = &*init.expr {
            self.scan(closure.body.to_token_stream(), &mut captured);
        }
        self.scope.extend(names.iter().map(|name| Variable { captured: captured.clone(), ..Variable::new(name) }));
        let first = is_mutable.then(|| quote!(#[allow(unused_assignments, reason = "a kernel declares no variable without a value")]));
        // The usual case has nothing to take apart.
        let whole = if let Pat::Type(typed) = &local.pat { &*typed.pat } else { &local.pat };
        if matches!(whole, Pat::Ident(_) | Pat::Wild(_)) {
            return quote!(#first #(#attrs)* let #pattern = #init_value;);
        }
        quote!(#structs let #given = #init_value; #first #(#attrs)* let #pattern = #value;)
    }

    fn expr_stmt(&mut self, expr: &Expr) -> TokenStream {
        let private = self.private;
        match expr {
            Expr::Group(group) => self.expr_stmt(&group.expr),
            Expr::If(_) | Expr::Match(_) | Expr::Block(_) => self.nested(expr, false),
            Expr::Assign(assign) => {
                let value = self.value(&assign.right);
                let given = given();
                let mut stmts = quote!(let #given = #value;);
                self.assigned(&assign.left, &mut stmts);
                quote!({ #stmts })
            }
            Expr::Binary(binary) if is_update(&binary.op) => {
                let value = self.value(&binary.right);
                match self.variable(&binary.left) {
                    Some(ident) => {
                        let op = &binary.op;
                        quote!(#ident #op #value;)
                    }
                    None => {
                        let given = given();
                        let mut stmts = quote!(let #given = #value;);
                        self.assigned(&binary.left, &mut stmts);
                        quote!({ #stmts })
                    }
                }
            }
            Expr::ForLoop(inner) => {
                let (range, visible, attrs) = (self.value(&inner.expr), self.scope.len(), lint_attributes(&inner.attrs));
                let Taken { pattern, names, .. } = self.taken(&inner.pat);
                self.scope.extend(names.iter().map(Variable::new));
                let body = self.block(&inner.body, false);
                self.scope.truncate(visible);
                quote!(#(#attrs)* for #pattern in #private::lints::indices(#range) #body)
            }
            Expr::While(inner) => {
                let (cond, body) = (self.value(&inner.cond), self.block(&inner.body, false));
                quote!(while #cond != 0 #body)
            }
            Expr::Loop(inner) => {
                let body = self.block(&inner.body, false);
                quote!(loop #body)
            }
            Expr::Return(inner) => {
                let value = inner.expr.as_ref().map(|value| self.value(value));
                quote!({ #value; return; })
            }
            Expr::Break(_) => quote!(break;),
            Expr::Continue(_) => quote!(continue;),
            other => {
                let value = self.value(other);
                quote!(#value;)
            }
        }
    }

    /// Assigns the value [`given`] to the target of an assignment.
    fn assigned(&mut self, target: &Expr, stmts: &mut TokenStream) {
        let private = self.private;
        match target {
            Expr::Group(group) => self.assigned(&group.expr, stmts),
            Expr::Paren(paren) => self.assigned(&paren.expr, stmts),
            Expr::Tuple(tuple) => tuple.elems.iter().for_each(|elem| self.assigned(elem, stmts)),
            _ => {
                let mut base = target;
                while let Expr::Field(field) = base {
                    base = &field.base;
                }
                let is_part = !std::ptr::eq(base, target);
                let given = given();
                stmts.extend(match self.variable(base) {
                    // A part of a struct or of a tuple: the rest of it is kept.
                    Some(ident) if is_part => quote!(#private::lints::changed(&mut #ident, #given);),
                    Some(ident) => quote!(#ident = #given;),
                    None => quote!(#private::lints::used(&[#given]);),
                });
            }
        }
    }

    /// The variable in scope that the expression is.
    fn variable(&self, expr: &Expr) -> Option<syn::Ident> {
        let Expr::Path(path) = expr else { return None };
        self.named(path.path.get_ident()?)
    }

    /// Collects what an expression reads, in the order of evaluation.
    fn reads(&mut self, expr: &Expr, reads: &mut Vec<TokenStream>) {
        match expr {
            Expr::Path(path) => {
                if let Some(ident) = path.path.get_ident()
                    && let Some(variable) = self.find(ident)
                {
                    let captured: Vec<TokenStream> =
                        variable.captured.iter().filter(|name| self.find(name).is_some()).map(ToTokens::to_token_stream).collect();
                    reads.extend(self.named(ident).map(ToTokens::into_token_stream));
                    reads.extend(captured);
                }
                path.path.segments.iter().for_each(|segment| self.generics(&segment.arguments, reads));
            }
            Expr::Lit(_) => {}
            Expr::Group(group) => self.reads(&group.expr, reads),
            Expr::Paren(paren) => self.reads(&paren.expr, reads),
            Expr::Unary(unary) => self.reads(&unary.expr, reads),
            Expr::Cast(cast) => self.reads(&cast.expr, reads),
            Expr::Field(field) => self.reads(&field.base, reads),
            // The name of an option, `mask = m`, is no variable.
            Expr::Assign(option) => self.reads(&option.right, reads),
            Expr::Binary(binary) => {
                // A chain `a + b + c` is as deep as it is long.
                let (mut chain, mut left) = (vec![&*binary.right], &*binary.left);
                while let Expr::Binary(inner) = left {
                    chain.push(&*inner.right);
                    left = &*inner.left;
                }
                self.reads(left, reads);
                chain.into_iter().rev().for_each(|operand| self.reads(operand, reads));
            }
            Expr::Call(call) => {
                self.reads(&call.func, reads);
                call.args.iter().for_each(|arg| self.reads(arg, reads));
            }
            Expr::MethodCall(call) => {
                self.reads(&call.receiver, reads);
                if let Some(turbofish) = &call.turbofish {
                    turbofish.args.iter().for_each(|argument| self.generic(argument, reads));
                }
                call.args.iter().for_each(|arg| self.reads(arg, reads));
            }
            Expr::Tuple(tuple) => tuple.elems.iter().for_each(|elem| self.reads(elem, reads)),
            Expr::Array(array) => array.elems.iter().for_each(|elem| self.reads(elem, reads)),
            Expr::Struct(literal) => {
                literal.fields.iter().for_each(|field| self.reads(&field.expr, reads));
                literal.rest.iter().for_each(|rest| self.reads(rest, reads));
            }
            Expr::Index(index) => {
                self.reads(&index.expr, reads);
                self.reads(&index.index, reads);
            }
            Expr::Range(range) => [&range.start, &range.end].into_iter().flatten().for_each(|bound| self.reads(bound, reads)),
            Expr::If(_) | Expr::Match(_) | Expr::Block(_) | Expr::Closure(_) => reads.push(self.nested(expr, true)),
            other => {
                let mut named = Vec::new();
                self.scan(other.to_token_stream(), &mut named);
                reads.extend(named.iter().map(ToTokens::to_token_stream));
            }
        }
    }

    fn generics(&mut self, arguments: &syn::PathArguments, reads: &mut Vec<TokenStream>) {
        if let syn::PathArguments::AngleBracketed(list) = arguments {
            list.args.iter().for_each(|argument| self.generic(argument, reads));
        }
    }

    /// A constant of the body among generic arguments looks like a type.
    fn generic(&mut self, argument: &syn::GenericArgument, reads: &mut Vec<TokenStream>) {
        match argument {
            syn::GenericArgument::Const(expr) => self.reads(expr, reads),
            other => {
                let mut named = Vec::new();
                self.scan(other.to_token_stream(), &mut named);
                reads.extend(named.iter().map(ToTokens::to_token_stream));
            }
        }
    }

    /// Collects every name in some code that a variable in scope has. In a text, `{x}` names `x`.
    fn scan(&self, tokens: TokenStream, named: &mut Vec<syn::Ident>) {
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => named.extend(self.named(&ident)),
                TokenTree::Group(group) => self.scan(group.stream(), named),
                TokenTree::Literal(literal) => {
                    let text = literal.to_string();
                    let names = text.split(|c: char| !c.is_alphanumeric() && c != '_');
                    let variable = |name: &str| self.scope.iter().rev().find(|variable| variable.name == name);
                    named.extend(names.filter_map(|name| Some(variable(name)?.ident.clone())));
                }
                TokenTree::Punct(_) => {}
            }
        }
    }
}

fn is_statement(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Assign(_) | Expr::ForLoop(_) | Expr::While(_) | Expr::Loop(_) | Expr::Return(_) | Expr::Break(_) | Expr::Continue(_)
    ) || matches!(expr, Expr::Binary(binary) if is_update(&binary.op))
}

fn is_update(op: &syn::BinOp) -> bool {
    use syn::BinOp::{
        AddAssign, BitAndAssign, BitOrAssign, BitXorAssign, DivAssign, MulAssign, RemAssign, ShlAssign, ShrAssign, SubAssign,
    };
    matches!(
        op,
        AddAssign(_)
            | SubAssign(_)
            | MulAssign(_)
            | DivAssign(_)
            | RemAssign(_)
            | BitXorAssign(_)
            | BitAndAssign(_)
            | BitOrAssign(_)
            | ShlAssign(_)
            | ShrAssign(_)
    )
}

/// The attributes that set the level of lints.
fn lint_attributes(attributes: &[syn::Attribute]) -> Vec<&syn::Attribute> {
    let sets_levels = |attribute: &&syn::Attribute| {
        let path = attribute.path();
        // An expectation of another lint would not be fulfilled here.
        let expects_unused = path.is_ident("expect") && attribute.to_token_stream().to_string().contains("unused");
        ["allow", "warn", "deny"].iter().any(|level| path.is_ident(level)) || expects_unused
    };
    attributes.iter().filter(sets_levels).collect()
}
