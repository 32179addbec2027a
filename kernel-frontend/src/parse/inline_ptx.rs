//! Parses `inline_ptx!("neg.f32 {y}, {x};", y: f32, x = load(p), cpu = |x| -x)`.

use syn::parse::{Parse, ParseStream};
use syn::{Expr as Rust, Token};

use super::Parser;
use crate::ast::{Expr, ExprKind, InlinePtx, Name, TypeName};
use crate::span::SourceSpan;
use kernel_lang::ir::assembly::{self, Piece};

/// The syntax, for error messages.
pub(super) const FORM: &str = "write `inline_ptx!(\"neg.f32 {y}, {x};\", y: f32, x = value, cpu = |x| -x)`";

/// The arguments: the texts one after another, then results, operands and options in any order.
struct Tokens {
    texts: Vec<syn::LitStr>,
    items: Vec<(syn::Ident, Item)>,
}

enum Item {
    /// `y: f32`.
    Result(Box<syn::Type>),
    /// `x = value`.
    Value(Box<Rust>),
}

impl Parse for Tokens {
    fn parse(input: ParseStream<'_>) -> syn::Result<Tokens> {
        let mut tokens = Tokens { texts: Vec::new(), items: Vec::new() };
        while !input.is_empty() {
            if tokens.items.is_empty() && input.peek(syn::LitStr) {
                tokens.texts.push(input.parse()?);
            } else {
                let name: syn::Ident = input.parse()?;
                let item = if input.peek(Token![:]) {
                    input.parse::<Token![:]>()?;
                    Item::Result(input.parse()?)
                } else {
                    input.parse::<Token![=]>()?;
                    Item::Value(input.parse()?)
                };
                tokens.items.push((name, item));
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(tokens)
    }
}

impl Parser<'_> {
    pub(super) fn inline_ptx(&mut self, mac: &syn::Macro, span: SourceSpan) -> Expr {
        let before = self.errors.len();
        let tokens: Tokens = match mac.parse_body() {
            Ok(tokens) => tokens,
            Err(error) => return self.foreign(SourceSpan::at(error.span()), format!("`inline_ptx!` cannot be read here: {error}"), FORM),
        };
        let (Some(first), Some(last)) = (tokens.texts.first(), tokens.texts.last()) else {
            return self.foreign(span, "`inline_ptx!` needs a text", FORM);
        };
        let text_span = SourceSpan::of(first).to(SourceSpan::of(last));
        let text = tokens.texts.iter().map(syn::LitStr::value).collect::<Vec<_>>().join("\n");
        let (mut results, mut operands) = (Vec::<(Name, TypeName)>::new(), Vec::<(Name, Expr)>::new());
        let (mut cpu, mut pack, mut isa, mut volatile) = (None, 1, 0, false);
        let mut known: Vec<String> = Vec::new();
        for (ident, item) in &tokens.items {
            let name = self.name(ident);
            if known.contains(&name.text) {
                self.errors.push_help(
                    name.span,
                    format!("the name `{}` is given twice", name.text),
                    "results, operands and options have names of their own",
                );
            }
            known.push(name.text.clone());
            match (name.text.as_str(), item) {
                (_, Item::Result(ty)) => {
                    let ty = self.ty(ty);
                    results.push((name, ty));
                }
                ("cpu", Item::Value(value)) => cpu = Some(self.expr(value)),
                ("pack", Item::Value(value)) => pack = self.pack(value),
                ("isa", Item::Value(value)) => isa = self.isa(value),
                ("volatile", Item::Value(value)) => match &**value {
                    Rust::Lit(syn::ExprLit { lit: syn::Lit::Bool(flag), .. }) => volatile = flag.value,
                    other => {
                        let help = "write `volatile = true`, or leave it out";
                        self.errors.push_help(SourceSpan::of(other), "`volatile` is a literal `true` or `false`", help);
                    }
                },
                (_, Item::Value(value)) => {
                    let value = self.expr(value);
                    operands.push((name, value));
                }
            }
        }
        match assembly::parse(&text) {
            Ok(pieces) => {
                // A name that occurs only in the text is a variable, as in `device_print!`.
                for piece in pieces {
                    let Piece::Register { name, .. } = piece else { continue };
                    if !known.contains(&name) && !name.starts_with(|c: char| c.is_ascii_digit()) {
                        let value = Expr { kind: ExprKind::Name(name.clone()), span: text_span };
                        known.push(name.clone());
                        operands.push((Name { text: name, span: text_span }, value));
                    }
                }
            }
            Err(message) => {
                let help = "a register stands at `{x}`, and at `{x[1]}` where `pack` gives it several; braces are written `{{` and `}}`";
                self.errors.push_help(text_span, message, help);
            }
        }
        let Some(cpu) = cpu else {
            let help = "say what it computes, for the CPU and for who reads it: `cpu = |x| -x`";
            return self.foreign(span, "`inline_ptx!` needs the option `cpu`", help);
        };
        let inline = InlinePtx { text, span: text_span, results, operands, cpu, pack, isa, volatile };
        let kind = if self.errors.len() > before { ExprKind::Error } else { ExprKind::InlinePtx(Box::new(inline)) };
        Expr { kind, span }
    }

    fn pack(&mut self, value: &Rust) -> u32 {
        let literal = match value {
            Rust::Lit(syn::ExprLit { lit: syn::Lit::Int(number), .. }) => number.base10_parse::<u32>().ok(),
            _ => None,
        };
        literal.filter(|pack| pack.is_power_of_two() && *pack <= 16).unwrap_or_else(|| {
            let help = "`pack = 4` gives the text four elements at a time: of `u8` in one register";
            self.errors.push_help(SourceSpan::of(value), "`pack` is a literal power of two up to 16", help);
            1
        })
    }

    /// Parses `8.1` as 81.
    fn isa(&mut self, value: &Rust) -> u32 {
        let version = match value {
            Rust::Lit(syn::ExprLit { lit: syn::Lit::Float(number), .. }) => {
                number.base10_digits().split_once('.').and_then(|(major, minor)| {
                    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
                    (minor < 10 && (6..100).contains(&major)).then_some(10 * major + minor)
                })
            }
            _ => None,
        };
        version.unwrap_or_else(|| {
            let help = "write the version that the manual gives for the instruction: `isa = 8.1`";
            self.errors.push_help(SourceSpan::of(value), "`isa` is a version of the PTX ISA", help);
            0
        })
    }
}
