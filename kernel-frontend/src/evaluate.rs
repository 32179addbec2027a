//! Evaluates Rust expressions at compile time to a set of possible values: the condition of a `product`, and the results of heuristics.
//!
//! ```text
//! BLOCK * num_warps < 1024        with BLOCK = 64, num_warps = 8:   true
//! n % BLOCK == 0                  n is not known:                   false or true
//! if n > 4096 { 8 } else { 4 }    n is not known:                   8 or 4
//! n.next_power_of_two()           n is not known:                   unknown
//! ```

use std::cell::RefCell;

use crate::parse::plain;
use crate::span::SourceSpan;
use kernel_lang::dtype::Dtype;

/// A number or a boolean.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Known {
    Int(i128),
    /// An `f32`. A literal that meets it is rounded to it.
    Single(f32),
    /// An `f64` or a literal.
    Float(f64),
    Bool(bool),
}

impl Known {
    /// The value of a constant parameter, from its number in a key.
    pub(crate) fn of(dtype: Dtype, number: i128) -> Known {
        match dtype {
            Dtype::Bool => Known::Bool(number != 0),
            Dtype::F32 => Known::Single(f32::from_bits(number as u32)),
            Dtype::F64 => Known::Float(f64::from_bits(number as u64)),
            _ => Known::Int(number),
        }
    }
}

/// An expression with more possible values than this counts as unknown.
const MOST: usize = 16;

/// The values of names, and the first subexpression that is not known.
pub(crate) struct Evaluator<'a> {
    names: &'a dyn Fn(&str) -> Option<Known>,
    unknown: RefCell<Option<SourceSpan>>,
}

/// The possible values of an expression; `None` if they are not known.
type Values = Option<Vec<Known>>;

impl Evaluator<'_> {
    /// An evaluator with the given names.
    pub(crate) fn new(names: &dyn Fn(&str) -> Option<Known>) -> Evaluator<'_> {
        Evaluator { names, unknown: RefCell::new(None) }
    }

    /// The first unknown subexpression that has been evaluated so far.
    pub(crate) fn unknown(&self) -> Option<SourceSpan> {
        *self.unknown.borrow()
    }

    /// All possible values of the expression.
    pub(crate) fn values(&self, expr: &syn::Expr) -> Values {
        match expr {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(int), .. }) => int.base10_parse().ok().map(|value| vec![Known::Int(value)]),
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Float(float), .. }) => {
                float.base10_parse().ok().map(|value| vec![Known::Float(value)])
            }
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Bool(bool), .. }) => Some(vec![Known::Bool(bool.value)]),
            syn::Expr::Paren(syn::ExprParen { expr, .. }) | syn::Expr::Group(syn::ExprGroup { expr, .. }) => self.values(expr),
            // rustc reports values that do not fit the type.
            syn::Expr::Cast(cast) => self.values(&cast.expr),
            syn::Expr::Block(block) => self.block(&block.block),
            syn::Expr::Path(path) => match path.path.get_ident().and_then(|ident| (self.names)(&plain(ident))) {
                Some(value) => Some(vec![value]),
                None => self.is_unknown(SourceSpan::of(expr)),
            },
            syn::Expr::Unary(unary) => {
                let values = self.values(&unary.expr)?;
                let negated = values.into_iter().map(|value| match (unary.op, value) {
                    (syn::UnOp::Neg(_), Known::Int(value)) => value.checked_neg().map(Known::Int),
                    (syn::UnOp::Neg(_), Known::Float(value)) => Some(Known::Float(-value)),
                    (syn::UnOp::Neg(_), Known::Single(value)) => Some(Known::Single(-value)),
                    (syn::UnOp::Not(_), Known::Bool(value)) => Some(Known::Bool(!value)),
                    _ => None,
                });
                negated.collect()
            }
            syn::Expr::Binary(binary) => self.binary(binary),
            syn::Expr::If(branch) => self.branch(branch),
            syn::Expr::Call(call) => match (&*call.func, call.args.len()) {
                (syn::Expr::Path(path), 2) => {
                    let name = path.path.segments.last().map(|last| plain(&last.ident)).unwrap_or_default();
                    self.method(&name, &call.args[0], Some(&call.args[1])).or_else(|| self.is_unknown(SourceSpan::of(expr)))
                }
                _ => self.is_unknown(SourceSpan::of(expr)),
            },
            syn::Expr::MethodCall(call) if call.args.len() <= 1 => {
                self.method(&plain(&call.method), &call.receiver, call.args.first()).or_else(|| self.is_unknown(SourceSpan::of(expr)))
            }
            other => self.is_unknown(SourceSpan::of(other)),
        }
    }

    fn is_unknown(&self, span: SourceSpan) -> Values {
        self.unknown.borrow_mut().get_or_insert(span);
        None
    }

    fn block(&self, block: &syn::Block) -> Values {
        match &block.stmts[..] {
            [syn::Stmt::Expr(expr, None)] => self.values(expr),
            _ => self.is_unknown(SourceSpan::of(block)),
        }
    }

    fn branch(&self, branch: &syn::ExprIf) -> Values {
        let condition = self.values(&branch.cond).unwrap_or_else(either);
        let mut found = Vec::new();
        if condition.contains(&Known::Bool(true)) {
            found.extend(self.block(&branch.then_branch)?);
        }
        if condition.contains(&Known::Bool(false)) {
            found.extend(branch.else_branch.as_ref().and_then(|(_, other)| self.values(other))?);
        }
        few(found)
    }

    fn binary(&self, binary: &syn::ExprBinary) -> Values {
        use syn::BinOp;
        let (lhs, rhs) = (self.values(&binary.left), self.values(&binary.right));
        // One side alone may decide `&&` and `||`. A comparison of unknown values is either true or false.
        let (lhs, rhs) = match binary.op {
            BinOp::And(_) | BinOp::Or(_) => (lhs.unwrap_or_else(either), rhs.unwrap_or_else(either)),
            BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_) | BinOp::Eq(_) | BinOp::Ne(_) => match (lhs, rhs) {
                (Some(lhs), Some(rhs)) => (lhs, rhs),
                _ => return Some(either()),
            },
            _ => (lhs?, rhs?),
        };
        pairs(&lhs, &rhs, |pair| match pair {
            (Known::Int(a), Known::Int(b)) => Some(match binary.op {
                BinOp::Add(_) => Known::Int(a.checked_add(b)?),
                BinOp::Sub(_) => Known::Int(a.checked_sub(b)?),
                BinOp::Mul(_) => Known::Int(a.checked_mul(b)?),
                BinOp::Div(_) => Known::Int(a.checked_div(b)?),
                BinOp::Rem(_) => Known::Int(a.checked_rem(b)?),
                BinOp::Shl(_) => Known::Int(a.checked_mul(1i128.checked_shl(u32::try_from(b).ok()?)?)?),
                BinOp::Shr(_) => Known::Int(a.checked_shr(u32::try_from(b).ok()?)?),
                BinOp::BitAnd(_) => Known::Int(a & b),
                BinOp::BitOr(_) => Known::Int(a | b),
                BinOp::BitXor(_) => Known::Int(a ^ b),
                BinOp::Lt(_) => Known::Bool(a < b),
                BinOp::Le(_) => Known::Bool(a <= b),
                BinOp::Gt(_) => Known::Bool(a > b),
                BinOp::Ge(_) => Known::Bool(a >= b),
                BinOp::Eq(_) => Known::Bool(a == b),
                BinOp::Ne(_) => Known::Bool(a != b),
                _ => return None,
            }),
            (Known::Single(a), Known::Single(b)) => compared(&binary.op, a, b),
            (Known::Single(a), Known::Float(b)) => compared(&binary.op, a, b as f32),
            (Known::Float(a), Known::Single(b)) => compared(&binary.op, a as f32, b),
            (Known::Float(a), Known::Float(b)) => compared(&binary.op, a, b),
            (Known::Bool(a), Known::Bool(b)) => Some(Known::Bool(match binary.op {
                BinOp::And(_) | BinOp::BitAnd(_) => a && b,
                BinOp::Or(_) | BinOp::BitOr(_) => a || b,
                BinOp::Eq(_) => a == b,
                BinOp::Ne(_) | BinOp::BitXor(_) => a != b,
                _ => return None,
            })),
            _ => None,
        })
    }

    /// Functions that compute sizes: `cdiv(a, b)`, `a.min(b)`, `a.next_power_of_two()`.
    fn method(&self, name: &str, receiver: &syn::Expr, argument: Option<&syn::Expr>) -> Values {
        let receiver = self.values(receiver)?;
        let argument = match argument {
            Some(argument) => self.values(argument)?,
            // A dummy argument, which these methods ignore.
            None if matches!(name, "next_power_of_two" | "is_power_of_two") => vec![Known::Int(0)],
            None => return None,
        };
        pairs(&receiver, &argument, |pair| {
            let (Known::Int(a), Known::Int(b)) = pair else { return None };
            let natural = u64::try_from(a).ok();
            Some(match name {
                "min" => Known::Int(a.min(b)),
                "max" => Known::Int(a.max(b)),
                "cdiv" | "div_ceil" if a >= 0 && b > 0 => Known::Int(a.checked_add(b - 1)? / b),
                "pow" => Known::Int(a.checked_pow(u32::try_from(b).ok()?)?),
                "is_multiple_of" if b > 0 => Known::Bool(a % b == 0),
                "next_multiple_of" if a >= 0 && b > 0 => Known::Int((a.checked_add(b - 1)? / b).checked_mul(b)?),
                "next_power_of_two" => Known::Int(natural?.checked_next_power_of_two()?.into()),
                "is_power_of_two" => Known::Bool(natural?.is_power_of_two()),
                _ => return None,
            })
        })
    }
}

/// A comparison of floats. Their arithmetic is left to rustc, which knows the types of literals.
fn compared<T: PartialOrd>(op: &syn::BinOp, a: T, b: T) -> Option<Known> {
    use syn::BinOp;
    Some(Known::Bool(match op {
        BinOp::Lt(_) => a < b,
        BinOp::Le(_) => a <= b,
        BinOp::Gt(_) => a > b,
        BinOp::Ge(_) => a >= b,
        BinOp::Eq(_) => a == b,
        BinOp::Ne(_) => a != b,
        _ => return None,
    }))
}

fn either() -> Vec<Known> {
    vec![Known::Bool(true), Known::Bool(false)]
}

/// The results of the operation for all pairs; unknown if it fails for one pair.
fn pairs(lhs: &[Known], rhs: &[Known], operation: impl Fn((Known, Known)) -> Option<Known>) -> Values {
    let all: Option<Vec<Known>> = lhs.iter().flat_map(|a| rhs.iter().map(|b| operation((*a, *b)))).collect();
    few(all?)
}

fn few(values: Vec<Known>) -> Values {
    let mut found: Vec<Known> = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    (found.len() <= MOST).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> (Values, bool) {
        let names = |name: &str| match name {
            "BLOCK" => Some(Known::Int(64)),
            "num_warps" => Some(Known::Int(8)),
            "EVEN" => Some(Known::Bool(true)),
            "SCALE" => Some(Known::of(Dtype::F32, 0.1f32.to_bits().into())),
            _ => None,
        };
        let evaluator = Evaluator::new(&names);
        let values = evaluator.values(&syn::parse_str(text).expect("an expression"));
        (values, evaluator.unknown().is_some())
    }

    fn ints(list: &[i128]) -> Values {
        Some(list.iter().copied().map(Known::Int).collect())
    }

    #[test]
    fn what_is_known_has_one_value() {
        for (text, value) in [
            ("BLOCK * num_warps", 512),
            ("(BLOCK as u32) >> 2", 16),
            ("cdiv(BLOCK, 60) + -3", -1),
            ("if BLOCK >= 2048 { 8 } else if EVEN { 2 } else { 4 }", 2),
            ("(BLOCK + 1).next_power_of_two().min(100)", 100),
            ("BLOCK.div_ceil(num_warps).pow(2)", 64),
        ] {
            assert_eq!(values(text), (ints(&[value]), false), "{text}");
        }
        for (text, value) in [
            ("BLOCK % 48 == 16 && !(num_warps < 8)", true),
            ("BLOCK.is_power_of_two() != EVEN", false),
            ("SCALE < 1.0 && SCALE != -0.5 && SCALE == 0.1", true),
        ] {
            assert_eq!(values(text), (Some(vec![Known::Bool(value)]), false), "{text}");
        }
    }

    #[test]
    fn what_is_not_known_has_the_values_of_its_branches() {
        assert_eq!(values("n % BLOCK == 0"), (Some(either()), true));
        assert_eq!(values("if n > 4096 { 8 } else { num_warps / 2 }"), (ints(&[8, 4]), true));
        assert_eq!(values("n > 3 && BLOCK > 64"), (Some(vec![Known::Bool(false)]), true));
        for text in ["n.next_power_of_two()", "BLOCK / (BLOCK - 64)", "BLOCK + EVEN", "SCALE + 1.0", "{ let a = 1; a }", "f(BLOCK)"] {
            assert_eq!(values(text).0, None, "{text}");
        }
    }
}
