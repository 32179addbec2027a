//! Outer constants: constants of Rust that a kernel's body names, `x + EPS` or `config::SCALE`.
//!
//! A macro sees neither the value nor the type of a constant outside of its item. rustc sees both: the launcher computes the constant and
//! passes it as an argument, after the kernel's own. So the PTX that is compiled with the crate holds for every value.
//!
//! An expression that consists of outer constants and literals only, `-EPS` or `2.0 * config::SCALE as f32`, is one outer constant: rustc
//! computes it, by the rules and with the types of Rust.

use quote::ToTokens;
use syn::{BinOp, Expr as Rust, Lit, UnOp};

use super::statement::tidy;
use super::{Parser, plain};
use crate::ast::ExprKind;
use crate::elaborate::is_math_constant;
use crate::signature::dtype_of;

/// An outer constant of a kernel.
#[derive(Clone)]
pub(crate) struct Outer {
    /// The expression as written.
    pub(crate) text: String,
    pub(crate) expr: Rust,
    /// The element type, where the expression tells it: `EPS as f32`, `A < B`.
    pub(crate) ty: Option<&'static str>,
}

/// The outer constants that a kernel's body has named so far.
pub(super) struct Outers {
    /// The kernel's generics, which are not outer.
    pub(super) generics: Vec<String>,
    pub(super) list: Vec<Outer>,
}

impl Outers {
    pub(super) fn of(item: &syn::ItemFn) -> Outers {
        let name = |param: &syn::GenericParam| match param {
            syn::GenericParam::Type(param) => Some(plain(&param.ident)),
            syn::GenericParam::Const(param) => Some(plain(&param.ident)),
            syn::GenericParam::Lifetime(_) => None,
        };
        Outers { generics: item.sig.generics.params.iter().filter_map(name).collect(), list: Vec::new() }
    }
}

impl Parser<'_> {
    /// The expression as an outer constant, if it is one.
    pub(super) fn outer(&mut self, expr: &Rust) -> Option<ExprKind> {
        self.outers.as_ref()?;
        let mut expr = expr;
        while let Rust::Paren(syn::ExprParen { expr: inner, .. }) | Rust::Group(syn::ExprGroup { expr: inner, .. }) = expr {
            expr = inner;
        }
        if !self.names_outer(expr)? {
            return None;
        }
        let text = tidy(&expr.to_token_stream()).replace(" :: ", "::");
        let outers = self.outers.as_mut()?;
        let index = outers.list.iter().position(|known| known.text == text).unwrap_or(outers.list.len());
        if index == outers.list.len() {
            outers.list.push(Outer { text: text.clone(), expr: expr.clone(), ty: told_type(expr) });
        }
        Some(ExprKind::Outer(index, text))
    }

    /// Does the expression name outer constants? `None` if it names anything else, too.
    fn names_outer(&self, expr: &Rust) -> Option<bool> {
        match expr {
            Rust::Group(group) => self.names_outer(&group.expr),
            Rust::Paren(paren) => self.names_outer(&paren.expr),
            Rust::Path(path) if path.qself.is_none() => self.is_outer(&path.path).then_some(true),
            Rust::Lit(lit) => match &lit.lit {
                Lit::Int(int) => is_primitive(int.suffix()).then_some(false),
                Lit::Float(float) => is_primitive(float.suffix()).then_some(false),
                Lit::Bool(_) => Some(false),
                _ => None,
            },
            Rust::Unary(unary) if !matches!(unary.op, UnOp::Deref(_)) => self.names_outer(&unary.expr),
            Rust::Cast(cast) if primitive(&cast.ty).is_some() => self.names_outer(&cast.expr),
            // In a long chain `a + b + c` the right side is short.
            Rust::Binary(binary) if !is_update(&binary.op) => {
                let right = self.names_outer(&binary.right)?;
                Some(self.names_outer(&binary.left)? | right)
            }
            _ => None,
        }
    }

    /// Is it the path of a constant outside of the kernel? By naming convention, constants are in capitals.
    fn is_outer(&self, path: &syn::Path) -> bool {
        let Some(outers) = &self.outers else { return false };
        let segments: Vec<String> = path.segments.iter().map(|segment| plain(&segment.ident)).collect();
        let Some((last, owner)) = segments.split_last() else { return false };
        if path.segments.iter().any(|segment| !segment.arguments.is_none()) || !is_constant_name(last) {
            return false;
        }
        match owner.last() {
            None => path.leading_colon.is_none() && !self.bound.contains(last) && !outers.generics.contains(last),
            // `f32::MAX`, `T::MAX` and `std::f32::consts::PI` are constants of the language.
            Some(owner) if owner == "consts" => !is_math_constant(last) && segments.iter().all(|segment| dtype_of(segment).is_none()),
            Some(owner) => dtype_of(owner).is_none() && !outers.generics.contains(owner),
        }
    }
}

/// Is it in capitals, as the names of constants are?
pub(super) fn is_constant_name(name: &str) -> bool {
    name.contains(char::is_uppercase) && !name.contains(char::is_lowercase)
}

/// The numeric types that Rust casts to and gives literals.
const PRIMITIVES: [&str; 12] = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "isize", "usize", "f32", "f64"];

fn is_primitive(suffix: &str) -> bool {
    suffix.is_empty() || PRIMITIVES.contains(&suffix)
}

fn primitive(ty: &syn::Type) -> Option<&'static str> {
    let syn::Type::Path(path) = ty else { return None };
    let ident = path.path.get_ident().filter(|_| path.qself.is_none())?;
    PRIMITIVES.into_iter().find(|name| ident == name)
}

/// The type of an expression, where a cast, a suffix or an operator tells it.
fn told_type(expr: &Rust) -> Option<&'static str> {
    let suffix = |suffix: &str| PRIMITIVES.into_iter().find(|name| *name == suffix);
    match expr {
        Rust::Group(group) => told_type(&group.expr),
        Rust::Paren(paren) => told_type(&paren.expr),
        Rust::Cast(cast) => primitive(&cast.ty),
        Rust::Unary(unary) => told_type(&unary.expr),
        Rust::Lit(syn::ExprLit { lit: Lit::Int(int), .. }) => suffix(int.suffix()),
        Rust::Lit(syn::ExprLit { lit: Lit::Float(float), .. }) => suffix(float.suffix()),
        Rust::Binary(binary) => match binary.op {
            BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_) | BinOp::Eq(_) | BinOp::Ne(_) | BinOp::And(_) | BinOp::Or(_) => {
                Some("bool")
            }
            BinOp::Shl(_) | BinOp::Shr(_) => told_type(&binary.left),
            _ => told_type(&binary.right).or_else(|| told_type(&binary.left)),
        },
        _ => None,
    }
}

fn is_update(op: &BinOp) -> bool {
    super::expression::operator(op).is_none()
}
