//! Parses expressions.

use quote::ToTokens;
use syn::{BinOp, Expr as Rust, Lit, UnOp};

use super::statement::tidy;
use super::{Parser, plain};
use crate::ast::{Expr, ExprKind, If, Name, Operator, TypeName};
use crate::builtins;
use crate::span::SourceSpan;
use kernel_lang::ir::{BinaryOp, CompareOp};

impl Parser<'_> {
    pub(super) fn expr(&mut self, expr: &Rust) -> Expr {
        let span = SourceSpan::of(expr);
        if let Some(kind) = self.outer(expr) {
            return Expr { kind, span };
        }
        let kind = match expr {
            Rust::Group(group) => return self.expr(&group.expr),
            Rust::Paren(paren) => return Expr { span, ..self.expr(&paren.expr) },
            Rust::Lit(lit) => self.literal(&lit.lit, span),
            Rust::Path(path) => self.path(path, span),
            Rust::Unary(unary) => self.unary(unary, span),
            Rust::Binary(binary) => return self.binary(binary, span),
            Rust::Cast(cast) => {
                let x = Box::new(self.expr(&cast.expr));
                match pointer_type(&cast.ty) {
                    Some((elem, mutable)) => ExprKind::CastToPointer(x, self.ty(elem), mutable),
                    None => ExprKind::Cast(x, self.ty(&cast.ty)),
                }
            }
            Rust::Call(call) => return self.call(call, span),
            Rust::MethodCall(call) => return self.method_call(call, span),
            Rust::Tuple(tuple) => ExprKind::Tuple(tuple.elems.iter().map(|elem| self.expr(elem)).collect()),
            Rust::Array(array) => ExprKind::Shape(array.elems.iter().map(|elem| self.expr(elem)).collect()),
            Rust::If(inner) => return self.if_expr(inner, span),
            Rust::Match(inner) => return self.match_expr(inner, span),
            Rust::Block(block) if block.label.is_none() => ExprKind::Block(self.block(&block.block)),
            Rust::Field(field) => {
                let base = self.expr(&field.base);
                let name = Name { text: field.member.to_token_stream().to_string(), span: SourceSpan::of(&field.member) };
                ExprKind::Field(Box::new(base), name)
            }
            Rust::Struct(literal) => return self.struct_literal(literal, span),
            _ => return self.unsupported(expr, span),
        };
        Expr { kind, span }
    }

    fn literal(&mut self, lit: &Lit, span: SourceSpan) -> ExprKind {
        match lit {
            Lit::Int(int) => {
                let suffix = self.suffix(int.suffix(), span);
                match int.base10_parse::<i128>() {
                    Ok(value) if suffix.as_ref().is_some_and(is_float) => ExprKind::Float(value as f64, suffix),
                    Ok(value) => ExprKind::Int(value, suffix),
                    Err(_) => {
                        self.errors.push_help(span, format!("`{int}` is too large for any integer type"), "the widest are `i64` and `u64`");
                        ExprKind::Error
                    }
                }
            }
            Lit::Float(float) => {
                let suffix = self.suffix(float.suffix(), span);
                match float.base10_parse::<f64>() {
                    Ok(value) => ExprKind::Float(value, suffix),
                    Err(_) => {
                        self.errors.push_help(span, format!("`{float}` is not a number"), "write it like `1.5` or `1e-3`");
                        ExprKind::Error
                    }
                }
            }
            Lit::Bool(bool) => ExprKind::Bool(bool.value),
            Lit::Str(text) => ExprKind::Text(text.value()),
            _ => {
                self.errors.push_help(
                    span,
                    "characters, byte strings and C strings have no meaning in a kernel",
                    "kernels compute with numbers and `bool`; a byte is written `97u8`",
                );
                ExprKind::Error
            }
        }
    }

    fn suffix(&mut self, suffix: &str, span: SourceSpan) -> Option<TypeName> {
        (!suffix.is_empty()).then(|| TypeName { text: Some(suffix.to_string()), span })
    }

    fn path(&mut self, path: &syn::ExprPath, span: SourceSpan) -> ExprKind {
        if path.qself.is_some() || path.path.segments.iter().any(|segment| !segment.arguments.is_none()) {
            return self
                .foreign(span, "paths with type arguments have no meaning here", "`name::<T>` is only for calls: `zeros::<f32>([N])`")
                .kind;
        }
        let mut segments: Vec<String> = path.path.segments.iter().map(|segment| plain(&segment.ident)).collect();
        if path.path.leading_colon.is_some() {
            segments.insert(0, String::new());
        }
        match segments.len() {
            1 => ExprKind::Name(segments.remove(0)),
            _ => ExprKind::Path(segments),
        }
    }

    fn unary(&mut self, unary: &syn::ExprUnary, span: SourceSpan) -> ExprKind {
        let x = self.expr(&unary.expr);
        match (&unary.op, x.kind) {
            (UnOp::Neg(_), ExprKind::Int(value, suffix)) => ExprKind::Int(-value, suffix),
            (UnOp::Neg(_), ExprKind::Float(value, suffix)) => ExprKind::Float(-value, suffix),
            (UnOp::Neg(_), kind) => ExprKind::Neg(Box::new(Expr { kind, span: x.span })),
            (UnOp::Not(_), kind) => ExprKind::Not(Box::new(Expr { kind, span: x.span })),
            _ => {
                self.foreign(
                    span,
                    "`*` does not dereference in a kernel",
                    "read memory with `load(pointer)`, write it with `store(pointer, value)`",
                )
                .kind
            }
        }
    }

    fn binary(&mut self, binary: &syn::ExprBinary, span: SourceSpan) -> Expr {
        let Some(operator) = operator(&binary.op) else {
            return self.foreign(span, "an assignment has no value", "make it a statement of its own");
        };
        let lhs = self.expr(&binary.left);
        // Rust parses `x ** y` as `x * (*y)`.
        if let (BinOp::Mul(_), Rust::Unary(syn::ExprUnary { op: UnOp::Deref(_), expr, .. })) = (&binary.op, &*binary.right) {
            self.expr(expr);
            let help = "a power is `x * x`, or of floats `pow(x, y)`; memory is read with `load(pointer)`";
            return self.foreign(span, "`*` does not dereference in a kernel, and there is no operator `**`", help);
        }
        let rhs = self.expr(&binary.right);
        Expr { kind: ExprKind::Binary(operator, Box::new(lhs), Box::new(rhs)), span }
    }

    pub(super) fn if_expr(&mut self, expr: &syn::ExprIf, span: SourceSpan) -> Expr {
        let cond = self.condition(&expr.cond);
        let declared = if let Rust::Let(binding) = &*expr.cond { self.inside_option(&binding.pat) } else { None };
        let mut then_block = self.block(&expr.then_branch);
        then_block.stmts.splice(0..0, declared);
        let else_block = expr.else_branch.as_ref().map(|(_, branch)| match &**branch {
            Rust::Block(block) => self.block(&block.block),
            other => {
                let value = self.expr(other);
                let span = value.span;
                crate::ast::Block { stmts: Vec::new(), value: Some(Box::new(value)), span }
            }
        });
        let keyword = SourceSpan::at(expr.if_token.span);
        Expr { kind: ExprKind::If(Box::new(If { cond, then_block, else_block, keyword })), span }
    }

    /// The condition of an `if` or a `while`.
    pub(super) fn condition(&mut self, cond: &Rust) -> Expr {
        match cond {
            Rust::Assign(assign) => {
                let [lhs, rhs] = [&assign.left, &assign.right].map(|side| {
                    self.expr(side);
                    tidy(&side.to_token_stream())
                });
                let help = format!("compare with `==`: `{lhs} == {rhs}`");
                self.foreign(SourceSpan::of(cond), "an assignment has no value", help)
            }
            Rust::Let(binding) if super::is_option(&binding.pat) => {
                self.foreign(SourceSpan::of(cond), "`if let` and `while let` are not available in kernels", super::MAY_BE_MISSING)
            }
            _ => self.expr(cond),
        }
    }

    /// Reports Rust expressions that a kernel cannot use, each with its equivalent.
    fn unsupported(&mut self, expr: &Rust, span: SourceSpan) -> Expr {
        let (message, help) = match expr {
            Rust::Assign(_) => ("an assignment has no value", "make it a statement of its own"),
            Rust::Range(_) => ("a range has no value", "ranges are for loops: `for i in a..b`; a tile of indices is `arange(0, N)`"),
            Rust::Index(index) => return self.index(index, span),
            Rust::Closure(closure) => return self.closure(closure, span),
            Rust::Reference(_) | Rust::RawAddr(_) => ("references have no meaning in a kernel", "values are copied; pass the value itself"),
            Rust::Repeat(_) => ("arrays are not available in kernels", "a tile of equal elements is `full([N], value)`"),
            Rust::Loop(_) | Rust::While(_) | Rust::ForLoop(_) => {
                ("a loop has no value", "make it a statement, and assign to a variable in it")
            }
            Rust::Unsafe(_) => {
                ("`unsafe` has no meaning inside a kernel", "for a kernel without bounds checks write `#[kernel(unchecked)]`")
            }
            Rust::Async(_) | Rust::Await(_) | Rust::TryBlock(_) | Rust::Yield(_) => {
                ("asynchronous code has no meaning in a kernel", "launches are asynchronous by themselves")
            }
            Rust::Try(_) => ("`?` has no meaning in a kernel", "nothing in a kernel fails: guard memory with `mask = ..`"),
            Rust::Const(_) => ("`const` blocks are not available in kernels", "arithmetic on constant parameters is constant by itself"),
            Rust::Let(_) => ("`if let` and `while let` are not available in kernels", "compare with `==` and the like"),
            Rust::Macro(mac) => return self.macro_call(&mac.mac, span),
            Rust::Return(_) => ("`return` cannot stand inside an expression", "write `if cond { return; }` as a statement"),
            Rust::Break(_) | Rust::Continue(_) => {
                ("`break` and `continue` cannot stand inside an expression", "write `if cond { break; }` as a statement")
            }
            Rust::Infer(_) => ("`_` has no value", "write the value"),
            Rust::Block(_) => ("labels are not available in kernels", "leave the innermost loop with `break`, outer ones with a flag"),
            _ => (
                "this syntax is not available in kernels",
                "a kernel has `let`, assignments, operators, calls, `if`, `for`, `while` and tuples",
            ),
        };
        self.foreign(span, message, help)
    }

    /// `x[(.., None)]` adds axes; other indexing is not supported.
    fn index(&mut self, index: &syn::ExprIndex, span: SourceSpan) -> Expr {
        let is_none = |expr: &Rust| matches!(expr, Rust::Path(path) if path.path.is_ident("None"));
        let is_axis = |expr: &Rust| matches!(expr, Rust::Range(_)) || is_none(expr);
        let list: Vec<&Rust> = match &*index.index {
            Rust::Tuple(tuple) => tuple.elems.iter().collect(),
            Rust::Paren(paren) => vec![&*paren.expr],
            other => vec![other],
        };
        if let Rust::Field(field) = &*index.expr
            && let Some((message, help)) = builtins::of_a_tensor(&field.member.to_token_stream().to_string())
        {
            return self.foreign(SourceSpan::of(&field.member), message, help);
        }
        if !list.iter().any(|span| is_axis(span)) {
            return self.foreign(
                span,
                "pointers and tiles are not indexed with `[]`",
                "of a pointer read `load(x + i)` or `load(x + arange(0, N))`; of a tile take `sum(select(arange(0, N) == i, v, 0.0))`",
            );
        }
        let is_whole = |expr: &Rust| matches!(expr, Rust::Range(range) if range.start.is_none() && range.end.is_none());
        if let Some(other) = list.iter().find(|expr| !is_none(expr) && !is_whole(expr)) {
            let help = "a column is `x[(.., None)]`, a row `x[(None, ..)]`; parts of a tile are not taken out";
            return self.foreign(
                SourceSpan::of(other),
                "each entry in `[]` is `..`, for an axis of the tile, or `None`, for a new one",
                help,
            );
        }
        let x = self.expr(&index.expr);
        let axes = list.into_iter().map(is_none).collect();
        Expr { kind: ExprKind::NewAxes(Box::new(x), axes), span }
    }

    /// A closure that combines two elements, or that is bound to a name.
    fn closure(&mut self, closure: &syn::ExprClosure, span: SourceSpan) -> Expr {
        if closure.asyncness.is_some() || closure.capture.is_some() || !matches!(closure.output, syn::ReturnType::Default) {
            return self.foreign(span, "a closure of a kernel has parameters and a value, nothing else", "write `|a, b| a + b`");
        }
        if let Some(typed) = closure.inputs.iter().find(|param| matches!(param, syn::Pat::Type(_))) {
            let message = "the parameters of a closure have the types of what it is called with";
            return self.foreign(SourceSpan::of(typed), message, "leave the types out: `|a, b| a + b`");
        }
        let visible = self.bound.len();
        let params = closure.inputs.iter().map(|param| self.pattern(param)).collect();
        let body = self.expr(&closure.body);
        self.bound.truncate(visible);
        Expr { kind: ExprKind::Closure(params, Box::new(body)), span }
    }
}

/// The element type of `Ptr<T>` and `PtrMut<T>`, and whether it is the latter.
fn pointer_type(ty: &syn::Type) -> Option<(&syn::Type, bool)> {
    let syn::Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|_| path.qself.is_none())?;
    let syn::PathArguments::AngleBracketed(list) = &last.arguments else { return None };
    match (list.args.first(), list.args.len()) {
        (Some(syn::GenericArgument::Type(elem)), 1) if last.ident == "Ptr" => Some((elem, false)),
        (Some(syn::GenericArgument::Type(elem)), 1) if last.ident == "PtrMut" => Some((elem, true)),
        _ => None,
    }
}

fn is_float(suffix: &TypeName) -> bool {
    matches!(suffix.text.as_deref(), Some("f16" | "bf16" | "f32" | "f64"))
}

/// The operator, unless it assigns.
pub(super) fn operator(op: &BinOp) -> Option<Operator> {
    Some(match op {
        BinOp::Add(_) => Operator::Binary(BinaryOp::Add),
        BinOp::Sub(_) => Operator::Binary(BinaryOp::Sub),
        BinOp::Mul(_) => Operator::Binary(BinaryOp::Mul),
        BinOp::Div(_) => Operator::Binary(BinaryOp::Div),
        BinOp::Rem(_) => Operator::Binary(BinaryOp::Rem),
        BinOp::And(_) => Operator::And,
        BinOp::Or(_) => Operator::Or,
        BinOp::BitXor(_) => Operator::Binary(BinaryOp::Xor),
        BinOp::BitAnd(_) => Operator::Binary(BinaryOp::And),
        BinOp::BitOr(_) => Operator::Binary(BinaryOp::Or),
        BinOp::Shl(_) => Operator::Binary(BinaryOp::Shl),
        BinOp::Shr(_) => Operator::Binary(BinaryOp::Shr),
        BinOp::Eq(_) => Operator::Compare(CompareOp::Eq),
        BinOp::Lt(_) => Operator::Compare(CompareOp::Lt),
        BinOp::Le(_) => Operator::Compare(CompareOp::Le),
        BinOp::Ne(_) => Operator::Compare(CompareOp::Ne),
        BinOp::Ge(_) => Operator::Compare(CompareOp::Ge),
        BinOp::Gt(_) => Operator::Compare(CompareOp::Gt),
        _ => return None,
    })
}

/// The operator in an assignment such as `+=`.
pub(super) fn update_operator(op: &BinOp) -> Option<Operator> {
    Some(Operator::Binary(match op {
        BinOp::AddAssign(_) => BinaryOp::Add,
        BinOp::SubAssign(_) => BinaryOp::Sub,
        BinOp::MulAssign(_) => BinaryOp::Mul,
        BinOp::DivAssign(_) => BinaryOp::Div,
        BinOp::RemAssign(_) => BinaryOp::Rem,
        BinOp::BitXorAssign(_) => BinaryOp::Xor,
        BinOp::BitAndAssign(_) => BinaryOp::And,
        BinOp::BitOrAssign(_) => BinaryOp::Or,
        BinOp::ShlAssign(_) => BinaryOp::Shl,
        BinOp::ShrAssign(_) => BinaryOp::Shr,
        _ => return None,
    }))
}
