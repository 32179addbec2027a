//! Parses the statement macros `static_assert!`, `device_assert!`, `static_print!` and `device_print!`, and reports all others.

use quote::ToTokens;
use syn::Expr as Rust;
use syn::punctuated::Punctuated;

use super::Parser;
use super::statement::tidy;
use crate::ast::{Expr, ExprKind, StmtKind};
use crate::builtins;
use crate::span::SourceSpan;
use kernel_lang::ir::template::{self, Piece};

/// The macros that are statements.
const STATEMENTS: [&str; 4] = ["static_assert", "device_assert", "static_print", "device_print"];

/// The help for any other macro.
pub(super) const MACROS: &str =
    "the macros of the language are `static_assert!`, `device_assert!`, `static_print!`, `device_print!` and `inline_ptx!`";

/// Is the macro a statement, even at the end of a block?
pub(super) fn is_statement(mac: &syn::Macro) -> bool {
    STATEMENTS.iter().any(|name| mac.path.is_ident(name))
}

impl Parser<'_> {
    pub(super) fn macro_stmt(&mut self, mac: &syn::Macro, span: SourceSpan) -> Option<StmtKind> {
        if !is_statement(mac) {
            return match self.macro_call(mac, span) {
                Expr { kind: ExprKind::Error, .. } => None,
                value => Some(StmtKind::Expr(value)),
            };
        }
        let args = match mac.parse_body_with(Punctuated::<Rust, syn::Token![,]>::parse_terminated) {
            Ok(args) => args,
            Err(error) => {
                self.errors.push_syn(&error);
                return None;
            }
        };
        let is_static = mac.path.is_ident("static_assert") || mac.path.is_ident("static_print");
        match mac.path.is_ident("static_assert") || mac.path.is_ident("device_assert") {
            true => self.assertion(args, is_static, span),
            false => self.printing(args, is_static, span),
        }
    }

    fn assertion(&mut self, args: Punctuated<Rust, syn::Token![,]>, is_static: bool, span: SourceSpan) -> Option<StmtKind> {
        let (macro_name, form, failed) = match is_static {
            true => ("static_assert!", "write `static_assert!(N > 16, \"N is too small\")`", "static assertion failed"),
            false => ("device_assert!", "write `device_assert!(x >= 0, \"x is negative\")`", "assertion failed"),
        };
        let mut args = args.into_iter();
        let Some(cond) = args.next() else {
            self.errors.push_help(span, format!("`{macro_name}` needs a condition"), form);
            return None;
        };
        let message = match args.next() {
            None => format!("{failed}: `{}`", tidy(&cond.to_token_stream())),
            Some(Rust::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. })) => format!("{failed}: {}", text.value()),
            Some(other) => {
                self.errors.push_help(SourceSpan::of(&other), format!("the message of `{macro_name}` is a literal text"), form);
                return None;
            }
        };
        if let Some(extra) = args.next() {
            self.errors.push_help(SourceSpan::of(&extra), format!("`{macro_name}` takes a condition and a message"), form);
        }
        let cond = self.expr(&cond);
        Some(if is_static { StmtKind::StaticAssert(cond, message) } else { StmtKind::DeviceAssert(cond, message) })
    }

    /// Parses a format string and the values of its placeholders; a placeholder with a name refers to that variable.
    fn printing(&mut self, args: Punctuated<Rust, syn::Token![,]>, is_static: bool, span: SourceSpan) -> Option<StmtKind> {
        let (macro_name, form) = match is_static {
            true => ("static_print!", "write `static_print!(\"N is {}\", N)`"),
            false => ("device_print!", "write `device_print!(\"x is {}\", x)`"),
        };
        let mut args = args.into_iter();
        let text = match args.next() {
            Some(Rust::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. })) => text,
            Some(other) => {
                self.errors.push_help(SourceSpan::of(&other), format!("the text of `{macro_name}` is a literal"), form);
                return None;
            }
            None => {
                self.errors.push_help(span, format!("`{macro_name}` needs a text"), form);
                return None;
            }
        };
        let at = SourceSpan::of(&text);
        let pieces = match template::parse(&text.value()) {
            Ok(pieces) => pieces,
            Err(message) => {
                let help =
                    "a value stands at `{}`, at `{x}` if it is a variable, and at `{:x}` in hexadecimal; braces are written `{{` and `}}`";
                self.errors.push_help(at, message, help);
                return None;
            }
        };
        let (mut template, mut values, mut placeholders) = (String::new(), Vec::new(), 0);
        for piece in pieces {
            match piece {
                Piece::Value { name: Some(name), hex } => {
                    template.push_str(&Piece::Value { name: None, hex }.to_string());
                    values.push(Some(Expr { kind: ExprKind::Name(name), span: at }));
                }
                Piece::Value { name: None, .. } => {
                    template.push_str(&piece.to_string());
                    placeholders += 1;
                    match args.next() {
                        Some(arg) => values.push(Some(self.expr(&arg))),
                        None => values.push(None),
                    }
                }
                Piece::Text(_) => template.push_str(&piece.to_string()),
            }
        }
        let missing = values.iter().filter(|value| value.is_none()).count();
        if missing > 0 {
            let (given, placeholders) =
                (placeholders - missing, if placeholders == 1 { "a placeholder".into() } else { format!("{placeholders} placeholders") });
            let given = if given == 0 { "none is".to_string() } else { format!("{given} of them are") };
            self.errors.push_help(at, format!("the text of `{macro_name}` has {placeholders}, and {given} given"), form);
            return None;
        }
        let mut is_wrong = false;
        for extra in args {
            self.expr(&extra);
            let help = "add `{}` to the text";
            self.errors.push_help(SourceSpan::of(&extra), format!("the text of `{macro_name}` has no placeholder for this value"), help);
            is_wrong = true;
        }
        let values = values.into_iter().flatten().collect();
        (!is_wrong).then_some(if is_static { StmtKind::StaticPrint(template, values) } else { StmtKind::DevicePrint(template, values) })
    }

    pub(super) fn macro_call(&mut self, mac: &syn::Macro, span: SourceSpan) -> Expr {
        let name = mac.path.segments.last().map_or_else(String::new, |segment| segment.ident.to_string());
        let help = match name.as_str() {
            // The semicolon after a statement is not part of it.
            "inline_ptx" => return self.inline_ptx(mac, SourceSpan::of(mac)),
            "asm" | "llvm_asm" | "global_asm" => super::inline_ptx::FORM,
            "device_assert" => "make it a statement: `device_assert!(x >= 0, \"x is negative\");`",
            "static_assert" => "make it a statement: `static_assert!(N > 16, \"N is too small\");`",
            "device_print" => "make it a statement: `device_print!(\"x is {}\", x);`",
            "static_print" => "make it a statement: `static_print!(\"N is {}\", N);`",
            "assert" | "assert_eq" | "assert_ne" | "debug_assert" => {
                "write `device_assert!(cond, \"message\")`; what is known at compile time is checked with `static_assert!`"
            }
            "println" | "print" | "dbg" | "eprintln" => {
                "write `device_print!(\"x is {}\", x)`; what is known at compile time is told by `static_print!`"
            }
            "vec" => "a tile is made by `arange`, `zeros`, `full` or `load`",
            "panic" | "todo" | "unimplemented" | "unreachable" => "a kernel cannot panic; leave it with `return`",
            name => match builtins::find(name) {
                Some(row) => &format!("it is a function: `{}`", row.usage),
                None => MACROS,
            },
        };
        self.foreign(span, format!("the macro `{name}!` is not available in kernels"), help)
    }
}
