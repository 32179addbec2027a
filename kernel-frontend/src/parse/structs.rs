//! Parses structs: `Welford { mean, ..base }`, `Welford::new(..)`, `let Welford { mean, .. } = w`, `w.mean = ..`.

use quote::ToTokens;
use syn::Expr as Rust;

use super::{Parser, is_type_name, plain, request};
use crate::ast::{Expr, ExprKind, Name, Owner, Pattern, StructLiteral};
use crate::span::SourceSpan;

impl Parser<'_> {
    /// `Welford::<f32> { mean, count: 0.0 }`.
    pub(super) fn struct_literal(&mut self, literal: &syn::ExprStruct, span: SourceSpan) -> Expr {
        if literal.qself.is_some() {
            return self.foreign(span, "a struct is named by its path", "write `Welford { mean, count }`");
        }
        let owner = self.owner(&literal.path);
        let mut fields = Vec::new();
        for field in &literal.fields {
            if let Some(name) = self.field_name(&field.member) {
                fields.push((name, self.expr(&field.expr)));
            }
        }
        let base = literal.rest.as_ref().map(|base| self.expr(base));
        Expr { kind: ExprKind::Struct(Box::new(StructLiteral { owner, fields, base })), span }
    }

    /// The struct before a function's name, if the path is `Welford::new` or `stats::Welford::<f32>::new`.
    pub(super) fn owner_of(&mut self, path: &syn::Path) -> Option<Owner> {
        let is_function_of_struct = path.segments.len() > 1 && is_type_name(&plain(&path.segments[path.segments.len() - 2].ident));
        is_function_of_struct.then(|| {
            let segments = path.segments.iter().take(path.segments.len() - 1).cloned().collect();
            self.owner(&syn::Path { leading_colon: path.leading_colon, segments })
        })
    }

    fn owner(&mut self, path: &syn::Path) -> Owner {
        let span = SourceSpan::of(path);
        let generics = match path.segments.last().map(|last| &last.arguments) {
            Some(syn::PathArguments::AngleBracketed(list)) => self.generic_arguments(list),
            _ => Vec::new(),
        };
        Owner { path: Name { text: request(path, &mut self.requests), span }, generics }
    }

    /// `Welford { mean, count: n, .. }`.
    pub(super) fn struct_pattern(&mut self, pat: &syn::PatStruct) -> Pattern {
        let path = self.owner(&pat.path).path;
        let mut fields = Vec::new();
        for field in &pat.fields {
            if let Some(name) = self.field_name(&field.member) {
                fields.push((name, self.pattern(&field.pat)));
            }
        }
        Pattern::Struct { path, fields, is_partial: pat.rest.is_some(), span: SourceSpan::of(pat) }
    }

    /// `w.mean`, on the left side of an assignment.
    pub(super) fn field_target(&mut self, field: &syn::ExprField) -> Pattern {
        let name = Name { text: field.member.to_token_stream().to_string(), span: SourceSpan::of(&field.member) };
        let mut base = &*field.base;
        while let Rust::Paren(syn::ExprParen { expr, .. }) | Rust::Group(syn::ExprGroup { expr, .. }) = base {
            base = expr;
        }
        match base {
            Rust::Path(path) if let Some(ident) = path.path.get_ident() => {
                Pattern::Field { variable: self.name(ident), fields: vec![name] }
            }
            Rust::Field(inner) => match self.field_target(inner) {
                Pattern::Field { variable, mut fields } => {
                    fields.push(name);
                    Pattern::Field { variable, fields }
                }
                other => other,
            },
            other => {
                self.errors.push_help(
                    SourceSpan::of(other),
                    "only variables are assigned to",
                    "write `x = ..`, `(a, b) = ..` or `w.mean = ..`",
                );
                Pattern::Error
            }
        }
    }

    fn field_name(&mut self, member: &syn::Member) -> Option<Name> {
        match member {
            syn::Member::Named(ident) => Some(self.name(ident)),
            syn::Member::Unnamed(_) => {
                self.errors.push_help(
                    SourceSpan::of(member),
                    "the fields of a device struct have names",
                    "write `Welford { mean, count }`",
                );
                None
            }
        }
    }
}
