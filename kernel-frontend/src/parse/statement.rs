//! Parses blocks, statements and patterns.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Expr as Rust, Pat};

use super::Parser;
use super::expression::update_operator;
use super::macros::{self, MACROS};
use crate::ast::{Block, Expr, ExprKind, For, LoopOptions, Name, Operator, Pattern, Stmt, StmtKind, While};
use crate::span::SourceSpan;
use kernel_lang::diagnostic::did_you_mean;
use kernel_lang::ir::BinaryOp;

impl Parser<'_> {
    pub(super) fn block(&mut self, block: &syn::Block) -> Block {
        let span = SourceSpan::of(block);
        let visible = self.bound.len();
        // As in Rust, a constant is visible in its whole block; elaboration reports a use before the declaration.
        self.bound.extend(block.stmts.iter().filter_map(|stmt| match stmt {
            syn::Stmt::Item(syn::Item::Const(item)) => Some(super::plain(&item.ident)),
            _ => None,
        }));
        let mut stmts = Vec::new();
        let mut value = None;
        for (index, stmt) in block.stmts.iter().enumerate() {
            let is_last = index + 1 == block.stmts.len();
            match stmt {
                // The last expression without a semicolon is the block's value, unless it is always a statement.
                syn::Stmt::Expr(expr, None) if is_last && !is_statement(expr) => value = Some(Box::new(self.expr(expr))),
                _ => stmts.extend(self.stmt(stmt)),
            }
        }
        self.bound.truncate(visible);
        Block { stmts, value, span }
    }

    fn stmt(&mut self, stmt: &syn::Stmt) -> Option<Stmt> {
        let span = SourceSpan::of(stmt);
        let kind = match stmt {
            syn::Stmt::Local(local) => self.local(local, span)?,
            syn::Stmt::Expr(expr, _) => return self.expr_stmt(expr, span),
            syn::Stmt::Macro(mac) => {
                self.attributes(&mac.attrs);
                self.macro_stmt(&mac.mac, span)?
            }
            syn::Stmt::Item(item) => {
                let (what, help) = match item {
                    syn::Item::Fn(_) => ("functions", "declare it outside, as a `#[device] fn`"),
                    syn::Item::Const(item) => return Some(Stmt { kind: self.constant(item), span }),
                    syn::Item::Static(syn::ItemStatic { ident, .. }) => {
                        let pattern = Pattern::Name { name: self.name(ident), mutable: false };
                        let help = "what is constant is `const NAME: f32 = ..;`, what changes `let mut name = ..;`";
                        self.errors.push_help(SourceSpan::of(item), "statics cannot be declared inside a kernel", help);
                        // The name is declared, so that its uses cause no further errors.
                        return Some(Stmt { kind: StmtKind::Let(pattern, None, Expr { kind: ExprKind::Error, span }), span });
                    }
                    syn::Item::Use(_) => ("imports", "builtins need no import"),
                    syn::Item::Macro(_) => ("macros", MACROS),
                    _ => ("items", "declare it outside, or write the computation out"),
                };
                self.errors.push_help(SourceSpan::of(item), format!("{what} cannot be declared inside a kernel"), help);
                return None;
            }
        };
        Some(Stmt { kind, span })
    }

    /// `const N: usize = 2 * M;`: an immutable variable, which is constant if its value is.
    fn constant(&mut self, item: &syn::ItemConst) -> StmtKind {
        self.attributes(&item.attrs);
        let pattern = Pattern::Name { name: self.name(&item.ident), mutable: false };
        StmtKind::Let(pattern, Some(self.ty(&item.ty)), self.expr(&item.expr))
    }

    fn local(&mut self, local: &syn::Local, span: SourceSpan) -> Option<StmtKind> {
        self.attributes(&local.attrs);
        let (pattern, ty) = match &local.pat {
            Pat::Type(typed) => (self.pattern(&typed.pat), Some(&*typed.ty)),
            other => (self.pattern(other), None),
        };
        let ty = ty.filter(|ty| !matches!(ty, syn::Type::Infer(_))).and_then(|ty| match ty {
            syn::Type::Tuple(_) => {
                self.errors.push_help(SourceSpan::of(ty), "a tuple's type is not written in a kernel", "leave it out");
                None
            }
            syn::Type::Path(path) if path.path.segments.last().is_some_and(is_struct_type) => {
                self.errors.push_help(SourceSpan::of(ty), "a struct's type is not written in a kernel", "leave it out: the value says it");
                None
            }
            ty => Some(self.ty(ty)),
        });
        let Some(init) = &local.init else {
            self.errors.push_help(span, "a variable needs a value where it is declared", "write `let mut x = ..;`");
            let pattern = match pattern {
                Pattern::Name { name, .. } => Pattern::Name { name, mutable: true },
                pattern => pattern,
            };
            return Some(StmtKind::Let(pattern, ty, Expr { kind: ExprKind::Error, span }));
        };
        if let Some((_, diverge)) = &init.diverge {
            self.errors.push_help(SourceSpan::of(diverge), "`let .. else` is not available in kernels", "use `if cond { return; }`");
        }
        Some(StmtKind::Let(pattern, ty, self.expr(&init.expr)))
    }

    pub(super) fn expr_stmt(&mut self, expr: &Rust, span: SourceSpan) -> Option<Stmt> {
        let kind = match expr {
            Rust::Group(group) => return self.expr_stmt(&group.expr, span),
            Rust::Assign(assign) => {
                self.attributes(&assign.attrs);
                let target = self.target(&assign.left);
                StmtKind::Assign(target, self.expr(&assign.right))
            }
            Rust::Binary(binary) if let Some(operator) = update_operator(&binary.op) => {
                let target = self.target(&binary.left);
                let value = self.expr(&binary.right);
                match target {
                    Pattern::Name { .. } | Pattern::Field { .. } => StmtKind::Update(target, operator, value),
                    Pattern::Error => return None,
                    Pattern::Wild | Pattern::Tuple(..) | Pattern::Struct { .. } => {
                        let sign = operator.sign();
                        self.errors.push_help(
                            SourceSpan::of(&binary.left),
                            format!("`{sign}=` needs one variable"),
                            "update the variables one by one",
                        );
                        return None;
                    }
                }
            }
            Rust::ForLoop(inner) => self.for_loop(inner)?,
            Rust::While(inner) => {
                self.attributes(&inner.attrs);
                self.label(inner.label.as_ref());
                let cond = self.condition(&inner.cond);
                StmtKind::While(While { cond, body: self.loop_body(&inner.body), going: None })
            }
            Rust::Loop(inner) => {
                self.attributes(&inner.attrs);
                self.label(inner.label.as_ref());
                let cond = Expr { kind: ExprKind::Bool(true), span: SourceSpan::at(inner.loop_token.span) };
                StmtKind::While(While { cond, body: self.loop_body(&inner.body), going: None })
            }
            Rust::Return(inner) if self.gives_value => StmtKind::Return(inner.expr.as_ref().map(|value| self.expr(value))),
            Rust::Return(inner) => {
                if let Some(value) = inner.expr.as_deref().filter(|value| !is_unit(value)) {
                    let help = match value {
                        Rust::Call(call) if is_ok(call) => "write `return;`",
                        _ => "write results to memory: `store(y + offsets, value)`",
                    };
                    self.errors.push_help(SourceSpan::of(value), "a kernel returns nothing", help);
                }
                StmtKind::Return(None)
            }
            Rust::Break(inner) => {
                if let Some(label) = &inner.label {
                    self.no_labels(SourceSpan::of(label));
                }
                if let Some(value) = &inner.expr {
                    self.errors.push_help(SourceSpan::of(value), "`break` gives no value", "assign to a variable before `break`");
                }
                StmtKind::Break
            }
            Rust::Continue(inner) => {
                if let Some(label) = &inner.label {
                    self.no_labels(SourceSpan::of(label));
                }
                StmtKind::Continue
            }
            Rust::Macro(mac) => self.macro_stmt(&mac.mac, span)?,
            Rust::Verbatim(tokens) if tokens.is_empty() => return None,
            other => return Some(Stmt { span, ..Stmt::of_expr(self.expr(other)) }),
        };
        Some(Stmt { kind, span })
    }

    fn loop_body(&mut self, body: &syn::Block) -> Block {
        let block = self.block(body);
        let span = block.span;
        Block::of(block.into_stmts(), span)
    }

    fn label(&mut self, label: Option<&syn::Label>) {
        if let Some(label) = label {
            self.no_labels(SourceSpan::of(label));
        }
    }

    fn no_labels(&mut self, span: SourceSpan) {
        self.errors.push_help(span, "labels are not available in kernels", "leave the innermost loop with `break`, outer ones with a flag");
    }

    fn for_loop(&mut self, inner: &syn::ExprForLoop) -> Option<StmtKind> {
        self.attributes(&inner.attrs);
        self.label(inner.label.as_ref());
        let visible = self.bound.len();
        let index = self.pattern(&inner.pat);
        if let Pattern::Tuple(_, span) = index {
            self.errors.push_help(span, "a loop has one index", "write `for i in a..b`");
        }
        let bounds = self.range(&inner.expr);
        let body = self.loop_body(&inner.body);
        self.bound.truncate(visible);
        let Bounds { lower, upper, step, options, is_reversed } = bounds?;
        let (range_span, is_static) = range_span(&inner.expr).map_or((None, false), |(span, is_static)| (Some(span), is_static));
        Some(StmtKind::For(Box::new(For { index, lower, upper, step, options, range_span, is_static, is_reversed, body, going: None })))
    }

    /// `a..b`, `(a..b).step_by(s)`, `range(a, b)`, `range(a, b, s, num_stages = 3, unroll = 2)`.
    fn range(&mut self, expr: &Rust) -> Option<Bounds> {
        const FORMS: &str = "write `a..b`, `(a..b).step_by(s)`, `range(a, b)` or `range(a, b, s)`";
        const WHOLE: &str = "a tile is computed as a whole, `2.0 * v`, `sum(v)`";
        let span = SourceSpan::of(expr);
        match expr {
            Rust::Paren(syn::ExprParen { expr, .. }) | Rust::Group(syn::ExprGroup { expr, .. }) => self.range(expr),
            Rust::Range(range) => {
                let (Some(lower), Some(upper)) = (&range.start, &range.end) else {
                    self.errors.push_help(span, "a loop needs both bounds", FORMS);
                    return None;
                };
                let (lower, mut upper) = (self.expr(lower), self.expr(upper));
                if matches!(range.limits, syn::RangeLimits::Closed(_)) {
                    let (span, one) = (upper.span, Expr { kind: ExprKind::Int(1, None), span: upper.span });
                    upper = Expr { kind: ExprKind::Binary(Operator::Binary(BinaryOp::Add), Box::new(upper), Box::new(one)), span };
                }
                Some(Bounds { lower, upper, step: None, options: LoopOptions::default(), is_reversed: false })
            }
            Rust::MethodCall(call) if call.method == "step_by" && call.args.len() == 1 => {
                let bounds = self.range(&call.receiver)?;
                if bounds.step.is_some() {
                    self.errors.push_help(span, "a loop has one step", FORMS);
                }
                if bounds.is_reversed {
                    let help = "write `(a..b).step_by(s).rev()`, which has the indices of `(a..b).step_by(s)`, the last one first";
                    self.errors.push_help(SourceSpan::from(&call.method), "`rev` stands behind `step_by`", help);
                }
                Some(Bounds { step: Some(self.expr(&call.args[0])), ..bounds })
            }
            Rust::MethodCall(call) if call.method == "rev" => {
                let bounds = self.range(&call.receiver)?;
                Some(Bounds { is_reversed: !bounds.is_reversed, ..bounds })
            }
            Rust::Call(call)
                if let Rust::Path(path) = &*call.func
                    && (path.path.is_ident("range") || path.path.is_ident("static_range")) =>
            {
                if path.path.is_ident("range") {
                    self.range_call(call, span, "range", FORMS)
                } else {
                    self.range_call(call, span, "static_range", "write `static_range(a, b)` or `static_range(a, b, s)`")
                }
            }
            other => {
                let is_of_elements = |name: &syn::Ident| ["iter", "into_iter", "iter_mut", "enumerate"].iter().any(|known| name == known);
                let help = match other {
                    Rust::Path(_) => format!("{FORMS}; {WHOLE}"),
                    Rust::MethodCall(call) if is_of_elements(&call.method) => format!("{FORMS}; {WHOLE}"),
                    _ => FORMS.to_string(),
                };
                self.errors.push_help(span, "a loop runs over a range of integers", help);
                None
            }
        }
    }

    fn range_call(&mut self, call: &syn::ExprCall, span: SourceSpan, function: &str, forms: &str) -> Option<Bounds> {
        let mut bounds = Vec::new();
        let mut options = LoopOptions::default();
        for arg in &call.args {
            if let Rust::Assign(assign) = arg {
                self.loop_option(assign, function, &mut options);
            } else {
                bounds.push(self.expr(arg));
            }
        }
        if !(2..=3).contains(&bounds.len()) {
            let help = if bounds.len() == 1 { format!("write both bounds: `{function}(0, n)`") } else { forms.to_string() };
            self.errors.push_help(span, format!("`{function}` takes 2 or 3 arguments, not {}", bounds.len()), help);
            return None;
        }
        let mut bounds = bounds.into_iter();
        Some(Bounds { lower: bounds.next()?, upper: bounds.next()?, step: bounds.next(), options, is_reversed: false })
    }

    fn loop_option(&mut self, assign: &syn::ExprAssign, function: &str, options: &mut LoopOptions) {
        let name = assign.left.to_token_stream().to_string();
        let value = self.expr(&assign.right);
        let option = match name.as_str() {
            _ if function == "static_range" => None,
            "num_stages" => Some(&mut options.num_stages),
            "unroll" => Some(&mut options.unroll),
            _ => None,
        };
        let span = SourceSpan::of(&assign.left);
        match option {
            Some(Some(_)) => self.errors.push_help(span, format!("`{name}` is given twice"), "keep one of them"),
            Some(option) => *option = Some(value),
            None => {
                let help = match (name.as_str(), did_you_mean(&name, ["num_stages", "unroll"])) {
                    _ if function == "static_range" => "its body stands in the kernel once for each index; options are for `range`",
                    ("loop_unroll_factor" | "unroll_factor", _) | (_, Some("unroll")) => "write `unroll = K`",
                    ("stages", _) | (_, Some("num_stages")) => "write `num_stages = N`",
                    _ => "a loop has the options `num_stages = N`, how many iterations are under way at once, and `unroll = K`",
                };
                self.errors.push_help(span, format!("`{function}` has no option `{name}`"), help);
            }
        }
    }

    pub(super) fn pattern(&mut self, pat: &Pat) -> Pattern {
        match pat {
            Pat::Ident(ident) if ident.by_ref.is_none() && ident.subpat.is_none() => {
                self.bound.push(super::plain(&ident.ident));
                Pattern::Name { name: self.name(&ident.ident), mutable: ident.mutability.is_some() }
            }
            Pat::Wild(_) => Pattern::Wild,
            Pat::Paren(paren) => self.pattern(&paren.pat),
            Pat::Tuple(tuple) => Pattern::Tuple(tuple.elems.iter().map(|elem| self.pattern(elem)).collect(), SourceSpan::of(tuple)),
            Pat::Struct(pat) => self.struct_pattern(pat),
            Pat::Type(typed) => {
                self.errors.push_help(SourceSpan::of(typed), "a type cannot stand inside a pattern", "write it after the whole pattern");
                Pattern::Error
            }
            other => {
                let help = if super::is_option(other) {
                    super::MAY_BE_MISSING
                } else {
                    "bind a name, `_`, a tuple of them, or the fields of a struct"
                };
                self.errors.push_help(SourceSpan::of(other), "this pattern is not available in kernels", help);
                match other {
                    Pat::TupleStruct(wrapped) if super::is_option(other) && wrapped.elems.len() == 1 => self.pattern(&wrapped.elems[0]),
                    _ => Pattern::Error,
                }
            }
        }
    }

    /// The left side of an assignment.
    fn target(&mut self, expr: &Rust) -> Pattern {
        match expr {
            Rust::Path(path) if let Some(ident) = path.path.get_ident() => {
                Pattern::Name { name: Name { text: super::plain(ident), span: ident.into() }, mutable: true }
            }
            Rust::Infer(_) => Pattern::Wild,
            Rust::Paren(syn::ExprParen { expr, .. }) | Rust::Group(syn::ExprGroup { expr, .. }) => self.target(expr),
            Rust::Tuple(tuple) => Pattern::Tuple(tuple.elems.iter().map(|elem| self.target(elem)).collect(), SourceSpan::of(tuple)),
            Rust::Index(_) | Rust::Unary(_) => {
                self.errors.push_help(
                    SourceSpan::of(expr),
                    "memory is not assigned to",
                    "write memory with `store(y + offsets, value, mask = mask)`; a tile is made anew: `v = select(arange(0, N) == i, value, v)`",
                );
                Pattern::Error
            }
            Rust::Field(field) => self.field_target(field),
            other => {
                self.errors.push_help(SourceSpan::of(other), "only variables are assigned to", "write `x = ..` or `(a, b) = ..`");
                Pattern::Error
            }
        }
    }
}

/// Is it `()`?
fn is_unit(value: &Rust) -> bool {
    matches!(value, Rust::Tuple(tuple) if tuple.elems.is_empty())
}

/// Is it `Ok(())`?
pub(super) fn is_ok(call: &syn::ExprCall) -> bool {
    matches!(&*call.func, Rust::Path(path) if path.path.is_ident("Ok")) && call.args.len() == 1 && is_unit(&call.args[0])
}

/// The range of a loop.
struct Bounds {
    lower: Expr,
    upper: Expr,
    step: Option<Expr>,
    options: LoopOptions,
    is_reversed: bool,
}

/// The span of `range` in `for i in range(a, b)`, and whether it is `static_range`.
fn range_span(expr: &Rust) -> Option<(SourceSpan, bool)> {
    match expr {
        Rust::Paren(syn::ExprParen { expr, .. }) | Rust::Group(syn::ExprGroup { expr, .. }) => range_span(expr),
        Rust::Call(call) => {
            let is_static = matches!(&*call.func, Rust::Path(path) if path.path.is_ident("static_range"));
            Some((SourceSpan::of(&call.func), is_static))
        }
        Rust::MethodCall(call) => range_span(&call.receiver),
        _ => None,
    }
}

/// Is the expression always a statement, even at the end of a block?
pub(super) fn is_statement(expr: &Rust) -> bool {
    match expr {
        Rust::Assign(_) | Rust::ForLoop(_) | Rust::While(_) | Rust::Loop(_) | Rust::Return(_) | Rust::Break(_) | Rust::Continue(_) => true,
        Rust::Binary(binary) => update_operator(&binary.op).is_some(),
        Rust::Macro(mac) => macros::is_statement(&mac.mac),
        Rust::Verbatim(tokens) => tokens.is_empty(),
        Rust::Group(group) => is_statement(&group.expr),
        _ => false,
    }
}

/// `Welford`, `Welford<f32>`: a name in capitals is a type parameter.
fn is_struct_type(last: &syn::PathSegment) -> bool {
    let name = super::plain(&last.ident);
    super::is_type_name(&name)
        && !super::is_of_the_host(&name)
        && !super::is_of_signatures(&name)
        && (!last.arguments.is_none() || name.contains(char::is_lowercase))
}

/// Prints tokens with the usual spacing.
pub(crate) fn tidy(tokens: &TokenStream) -> String {
    tokens.to_string().replace(" (", "(").replace("( ", "(").replace(" )", ")").replace(" ,", ",").replace(" . ", ".")
}
