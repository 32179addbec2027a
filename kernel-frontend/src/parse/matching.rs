//! Parses `match` on a scalar into a chain of `if` and `else`, over a value that is computed once.

use quote::ToTokens;
use syn::{Expr as Rust, Pat};

use super::statement::{is_statement, tidy};
use super::{MAY_BE_MISSING, Parser, is_option};
use crate::ast::{Block, Expr, ExprKind, If, Name, Operator, Pattern, Stmt, StmtKind};
use crate::span::SourceSpan;
use kernel_lang::ir::CompareOp;

/// The name of the matched value. The space prevents conflicts with names in the source.
const MATCHED: &str = "matched value";

/// An arm: its condition (`None` for always) and its value.
struct Arm {
    cond: Option<Expr>,
    block: Block,
    span: SourceSpan,
}

impl Parser<'_> {
    /// Rewrites `match x { 0 => a, 1 | 2 => b, _ => c }` to `{ let y = x; if y == 0 { a } else if y == 1 || y == 2 { b } else { c } }`.
    pub(super) fn match_expr(&mut self, expr: &syn::ExprMatch, span: SourceSpan) -> Expr {
        let value = self.expr(&expr.expr);
        let at = value.span;
        let keyword = SourceSpan::at(expr.match_token.span);
        let arms: Vec<Arm> = expr.arms.iter().map(|arm| self.arm(arm, at)).collect();
        let is_for = |arm: &syn::Arm, wanted: bool| match &arm.pat {
            Pat::Lit(syn::ExprLit { lit: syn::Lit::Bool(lit), .. }) => lit.value == wanted,
            _ => false,
        };
        let covers_bool = [true, false].iter().all(|wanted| expr.arms.iter().any(|arm| is_for(arm, *wanted)));
        let is_last = |index: usize| index + 1 == arms.len();
        if let Some(after) = arms.iter().enumerate().find(|(index, arm)| arm.cond.is_none() && !is_last(*index)) {
            let help = "arms are tried from the first on, and `_` takes what is left: put it last";
            return self.foreign(arms[after.0 + 1].span, "this arm is never taken", help);
        }
        let has_option = expr.arms.iter().any(|arm| is_option(&arm.pat));
        if !covers_bool && !has_option && arms.last().is_none_or(|arm| arm.cond.is_some()) {
            return self.foreign(keyword, "this `match` does not say what other values do", "end it with an arm `_ => ..`");
        }
        let mut rest: Option<Block> = None;
        for arm in arms.into_iter().rev() {
            let block = match (arm.cond, rest.take()) {
                (Some(cond), Some(else_block)) => {
                    let kind = ExprKind::If(Box::new(If { cond, then_block: arm.block, else_block: Some(else_block), keyword }));
                    Block { stmts: Vec::new(), value: Some(Box::new(Expr { kind, span })), span }
                }
                _ => arm.block,
            };
            rest = Some(block);
        }
        let pattern = Pattern::Name { name: Name { text: MATCHED.to_string(), span: at }, mutable: false };
        let bind = Stmt { kind: StmtKind::Let(pattern, None, value), span: at };
        let chain = rest.map(|block| Box::new(Expr { span: block.span, kind: ExprKind::Block(block) }));
        Expr { kind: ExprKind::Block(Block { stmts: vec![bind], value: chain, span }), span }
    }

    fn arm(&mut self, arm: &syn::Arm, at: SourceSpan) -> Arm {
        self.attributes(&arm.attrs);
        let span = SourceSpan::of(&arm.pat);
        let visible = self.bound.len();
        let bind = self.binding(&arm.pat, at);
        let cond = self.case(&arm.pat, at).map(|cond| match &bind {
            // The guard can use the bound name.
            Some(bind) => Expr { span, kind: ExprKind::Block(Block { stmts: vec![bind.clone()], value: Some(Box::new(cond)), span }) },
            None => cond,
        });
        let body = SourceSpan::of(&arm.body);
        let mut block = match &*arm.body {
            Rust::Block(block) if block.label.is_none() => self.block(&block.block),
            other if is_statement(other) => Block::of(self.expr_stmt(other, body).into_iter().collect(), body),
            other => Block { stmts: Vec::new(), value: Some(Box::new(self.expr(other))), span: body },
        };
        block.stmts.splice(0..0, bind);
        self.bound.truncate(visible);
        Arm { cond, block, span }
    }

    /// `other => ..`, `other if guard => ..`: binds the value to a name.
    fn binding(&mut self, pat: &Pat, at: SourceSpan) -> Option<Stmt> {
        match pat {
            Pat::Guard(guarded) => self.binding(&guarded.pat, at),
            Pat::Ident(ident) if is_name(ident) => {
                let span = SourceSpan::of(pat);
                let value = Expr { kind: ExprKind::Name(MATCHED.to_string()), span: at };
                Some(Stmt { kind: StmtKind::Let(self.pattern(pat), None, value), span })
            }
            _ => self.inside_option(pat),
        }
    }

    /// Declares the name in `Some(x)`, which is reported elsewhere, so that its uses cause no further errors.
    pub(super) fn inside_option(&mut self, pat: &Pat) -> Option<Stmt> {
        match pat {
            Pat::TupleStruct(wrapped) if is_option(pat) && wrapped.elems.len() == 1 => {
                let span = SourceSpan::of(pat);
                let unknown = Expr { kind: ExprKind::Error, span };
                Some(Stmt { kind: StmtKind::Let(self.pattern(&wrapped.elems[0]), None, unknown), span })
            }
            _ => None,
        }
    }

    /// The condition under which a pattern matches; `None` for always.
    fn case(&mut self, pat: &Pat, at: SourceSpan) -> Option<Expr> {
        let span = SourceSpan::of(pat);
        let matched = || Expr { kind: ExprKind::Name(MATCHED.to_string()), span: at };
        let compare =
            |op: CompareOp, to: Expr| Expr { kind: ExprKind::Binary(Operator::Compare(op), Box::new(matched()), Box::new(to)), span };
        match pat {
            Pat::Wild(_) => None,
            Pat::Ident(ident) if is_name(ident) => None,
            pat if is_option(pat) => {
                let written = tidy(&pat.to_token_stream());
                Some(self.foreign(span, format!("`{written}` is not a pattern of a kernel"), MAY_BE_MISSING))
            }
            Pat::Paren(paren) => self.case(&paren.pat, at),
            Pat::Guard(guarded) => {
                let (fits, guard) = (self.case(&guarded.pat, at), self.expr(&guarded.guard));
                Some(match fits {
                    Some(fits) => joined(Operator::And, fits, guard),
                    None => guard,
                })
            }
            Pat::Lit(lit) => Some(compare(CompareOp::Eq, self.expr(&Rust::Lit(lit.clone())))),
            Pat::Path(path) => Some(compare(CompareOp::Eq, self.expr(&Rust::Path(path.clone())))),
            // A constant parameter, by naming convention.
            Pat::Ident(ident) if ident.subpat.is_none() && ident.by_ref.is_none() => {
                let name = Rust::Path(syn::ExprPath { attrs: Vec::new(), qself: None, path: ident.ident.clone().into() });
                Some(compare(CompareOp::Eq, self.expr(&name)))
            }
            Pat::Range(range) => {
                let last = if matches!(range.limits, syn::RangeLimits::Closed(_)) { CompareOp::Le } else { CompareOp::Lt };
                let low = range.start.as_ref().map(|low| compare(CompareOp::Ge, self.expr(low)));
                let high = range.end.as_ref().map(|high| compare(last, self.expr(high)));
                match (low, high) {
                    (Some(low), Some(high)) => Some(joined(Operator::And, low, high)),
                    (low, high) => low.or(high),
                }
            }
            Pat::Or(or) => {
                let cases: Vec<Option<Expr>> = or.cases.iter().map(|case| self.case(case, at)).collect();
                // An alternative that always matches makes the others irrelevant.
                let cases = cases.into_iter().collect::<Option<Vec<Expr>>>()?;
                cases.into_iter().reduce(|a, b| joined(Operator::Or, a, b))
            }
            other => {
                let written = tidy(&other.to_token_stream());
                let help = "an arm has a number, `true`, a range such as `1..=3`, several with `|`, a name, or `_`";
                Some(self.foreign(span, format!("`{written}` is not a pattern of a kernel"), help))
            }
        }
    }
}

fn joined(operator: Operator, lhs: Expr, rhs: Expr) -> Expr {
    let span = lhs.span.to(rhs.span);
    Expr { kind: ExprKind::Binary(operator, Box::new(lhs), Box::new(rhs)), span }
}

/// Does the pattern bind the value, by naming convention? A name in capitals is a constant to compare with.
fn is_name(ident: &syn::PatIdent) -> bool {
    let name = ident.ident.to_string();
    ident.subpat.is_none() && ident.by_ref.is_none() && name != "None" && name.contains(char::is_lowercase)
}
