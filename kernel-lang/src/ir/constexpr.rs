//! Constant expressions, which specialisation evaluates.
//!
//! A generic kernel names its constants (`BLOCK_SIZE / 2`); binding the constants turns every expression into a literal.

use std::fmt;

use crate::dtype::Dtype;
use crate::float8::{Format, nearest};
use crate::ir::type_constant::TypeConstant;
use crate::location::Name;

/// A constant expression over the kernel's constant parameters.
///
/// Integers are exact (`i128`), floats are `f64`, and booleans are a separate kind.
#[derive(Clone, PartialEq, Debug)]
pub enum ConstExpr {
    /// An integer.
    Int(i128),
    /// A float. It can hold every `f16`, `bf16` and `f32`.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// A constant parameter of the kernel; in `T == f32`, a type parameter or a dtype.
    Param(Name),
    /// `-a`, `!a` or `u8(a)`.
    Unary(ConstUnary, Box<ConstExpr>),
    /// `a + b` or another binary operation.
    Binary(ConstBinary, Box<ConstExpr>, Box<ConstExpr>),
    /// `if c { a } else { b }`: only the chosen side needs a value.
    If(Box<[ConstExpr; 3]>),
    /// `T::MAX` of a type parameter.
    OfType(Name, TypeConstant),
}

/// An operator on one constant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConstUnary {
    /// `-a`.
    Neg,
    /// `!a` of a boolean.
    Not,
    /// `u8(a)`: the integer wrapped to that type, modulo 2 to the power of its width.
    Wrap(Dtype),
}

macro_rules! const_binary {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        /// An operator on two constants.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum ConstBinary { $($(#[$doc])* $variant,)* }

        impl ConstBinary {
            /// Every operator.
            pub const ALL: &[ConstBinary] = &[$(ConstBinary::$variant),*];

            /// The spelling: an operator or a function name.
            pub const fn text(self) -> &'static str {
                match self { $(ConstBinary::$variant => $text,)* }
            }
        }
    };
}

const_binary! {
    /// Sum.
    Add = "+",
    /// Difference.
    Sub = "-",
    /// Product.
    Mul = "*",
    /// Quotient, truncated for integers.
    Div = "/",
    /// Remainder with the sign of the dividend.
    Rem = "%",
    /// `a << b`.
    Shl = "<<",
    /// `a >> b`.
    Shr = ">>",
    /// Bitwise or logical and.
    And = "&",
    /// Bitwise or logical or.
    Or = "|",
    /// Bitwise or logical exclusive or.
    Xor = "^",
    /// Equal.
    Eq = "==",
    /// Not equal.
    Ne = "!=",
    /// Less.
    Lt = "<",
    /// Less or equal.
    Le = "<=",
    /// Greater.
    Gt = ">",
    /// Greater or equal.
    Ge = ">=",
    /// Minimum.
    Min = "min",
    /// Maximum.
    Max = "max",
    /// Quotient rounded up.
    Cdiv = "cdiv",
}

/// The name of the parameter that holds the target's number. Every kernel has it; it is 0 on the CPU.
pub const TARGET: &str = "target";

impl ConstExpr {
    /// The number of parts above which an expression counts as long.
    pub const MOST_PARTS: usize = 128;

    /// The maximum nesting depth of an expression that is not long; the parser of the text form has this limit.
    pub const MOST_DEPTH: usize = ConstExpr::MOST_PARTS / 2;

    /// Has it too many parts for recursive algorithms? A part with one operand counts twice.
    pub fn is_long(&self) -> bool {
        let (mut parts, mut next) = (0, vec![self]);
        while let Some(part) = next.pop() {
            parts += 1;
            match part {
                _ if parts > ConstExpr::MOST_PARTS => return true,
                ConstExpr::Unary(_, operand) => {
                    parts += 1;
                    next.push(operand);
                }
                ConstExpr::Binary(_, lhs, rhs) => next.extend([&**lhs, &**rhs]),
                ConstExpr::If(parts) => next.extend(parts.iter()),
                ConstExpr::Int(_) | ConstExpr::Float(_) | ConstExpr::Bool(_) | ConstExpr::Param(_) | ConstExpr::OfType(..) => {}
            }
        }
        false
    }

    /// `op(a, b)`, folded if both are literals and the operation is defined.
    pub fn binary(op: ConstBinary, lhs: ConstExpr, rhs: ConstExpr) -> ConstExpr {
        use ConstBinary::{Add, Mul};
        match evaluate_binary(op, &lhs, &rhs) {
            Some(Ok(value)) => value,
            _ => match (op, &lhs, &rhs) {
                (Mul | ConstBinary::Div, _, ConstExpr::Int(1)) | (Add | ConstBinary::Sub, _, ConstExpr::Int(0)) => lhs,
                // `(a + b) - a` folds to `b`, so that `arange(a, a + b)` has the shape of `arange(0, b)`.
                (Add | ConstBinary::Sub, _, _) if let Some(sum) = Sum::of(op, &lhs, &rhs) => sum.into_expr(),
                // Commutative operands are sorted, so that equal expressions have equal trees.
                (Add | Mul | ConstBinary::Min | ConstBinary::Max, _, _) if lhs.order_key() > rhs.order_key() => {
                    ConstExpr::Binary(op, Box::new(rhs), Box::new(lhs))
                }
                _ => ConstExpr::Binary(op, Box::new(lhs), Box::new(rhs)),
            },
        }
    }

    /// `op(a)`, folded if the operand is a literal.
    pub fn unary(op: ConstUnary, operand: ConstExpr) -> ConstExpr {
        match (op, &operand) {
            (ConstUnary::Neg, ConstExpr::Int(value)) => ConstExpr::Int(-value),
            (ConstUnary::Neg, ConstExpr::Float(value)) => ConstExpr::Float(-value),
            (ConstUnary::Not, ConstExpr::Bool(value)) => ConstExpr::Bool(!value),
            (ConstUnary::Wrap(dtype), ConstExpr::Int(value)) => ConstExpr::Int(dtype.wrap(*value)),
            _ => ConstExpr::Unary(op, Box::new(operand)),
        }
    }

    /// `if cond { then } else { other }`, folded if the condition is a literal or both sides are equal.
    pub fn select(cond: ConstExpr, then: ConstExpr, other: ConstExpr) -> ConstExpr {
        match cond {
            ConstExpr::Bool(true) => then,
            ConstExpr::Bool(false) => other,
            _ if then == other => then,
            cond => ConstExpr::If(Box::new([cond, then, other])),
        }
    }

    /// The value, if it is an integer literal.
    pub fn as_int(&self) -> Option<i128> {
        if let ConstExpr::Int(value) = self { Some(*value) } else { None }
    }

    /// The value, if it is a literal: 1 for `true`. It is rounded if no `f64` is equal to it.
    pub fn as_number(&self) -> Option<f64> {
        match *self {
            ConstExpr::Int(value) => Some(value as f64),
            ConstExpr::Float(value) => Some(value),
            ConstExpr::Bool(value) => Some(u8::from(value).into()),
            _ => None,
        }
    }

    /// Is it a literal?
    pub fn is_literal(&self) -> bool {
        matches!(self, ConstExpr::Int(_) | ConstExpr::Float(_) | ConstExpr::Bool(_))
    }

    /// Does it depend on the parameter of that name?
    pub fn names(&self, param: &str) -> bool {
        match self {
            ConstExpr::Int(_) | ConstExpr::Float(_) | ConstExpr::Bool(_) => false,
            ConstExpr::Param(name) | ConstExpr::OfType(name, _) => **name == *param,
            ConstExpr::Unary(_, operand) => operand.names(param),
            ConstExpr::Binary(_, lhs, rhs) => lhs.names(param) || rhs.names(param),
            ConstExpr::If(parts) => parts.iter().any(|part| part.names(param)),
        }
    }

    /// Replaces every parameter by its value from `bind` and evaluates.
    ///
    /// # Errors
    /// A message in the terms of the kernel language: an unbound parameter, a division by zero, a result outside `i128`.
    pub fn evaluate(&self, bind: &dyn Fn(&str) -> Option<ConstExpr>) -> Result<ConstExpr, String> {
        match self {
            ConstExpr::Int(_) | ConstExpr::Float(_) | ConstExpr::Bool(_) => Ok(self.clone()),
            ConstExpr::Param(name) => bind(name).ok_or_else(|| format!("`{name}` has no value")),
            ConstExpr::Unary(ConstUnary::Wrap(dtype), product) if let ConstExpr::Binary(ConstBinary::Mul, lhs, rhs) = &**product => {
                match (lhs.evaluate(bind)?, rhs.evaluate(bind)?) {
                    // A product of 64-bit integers may overflow `i128`; the low bits of the wrapped product are still correct.
                    (ConstExpr::Int(a), ConstExpr::Int(b)) => Ok(ConstExpr::Int(dtype.wrap(a.wrapping_mul(b)))),
                    (lhs, rhs) => Err(format!("`{lhs} * {rhs}` mixes kinds of constants")),
                }
            }
            ConstExpr::Unary(op, operand) => Ok(ConstExpr::unary(*op, operand.evaluate(bind)?)),
            ConstExpr::Binary(op, lhs, rhs) => {
                let (lhs, rhs) = (lhs.evaluate(bind)?, rhs.evaluate(bind)?);
                evaluate_binary(*op, &lhs, &rhs).unwrap_or_else(|| Err(format!("`{lhs} {} {rhs}` mixes kinds of constants", op.text())))
            }
            ConstExpr::If(parts) => {
                let [cond, then, other] = &**parts;
                match cond.evaluate(bind)? {
                    ConstExpr::Bool(true) => then.evaluate(bind),
                    ConstExpr::Bool(false) => other.evaluate(bind),
                    cond => Err(format!("the condition of a constant is {cond}, not `true` or `false`")),
                }
            }
            ConstExpr::OfType(name, constant) => {
                let code = bind(name).and_then(|code| u64::try_from(code.as_int()?).ok());
                let dtype = code.and_then(Dtype::from_code).ok_or_else(|| format!("`{name}` has no value"))?;
                constant.of(dtype).ok_or_else(|| format!("there is no constant `{dtype}::{}`", constant.name()))
            }
        }
    }

    /// Converts the literal to `dtype`: an integer becomes a float if `dtype` is one, and a float is rounded to its type.
    ///
    /// # Errors
    /// A message in the terms of the kernel language, if the literal does not fit. An expression over parameters is accepted until it is
    /// bound.
    pub fn to_dtype(&self, dtype: Dtype) -> Result<ConstExpr, String> {
        match (self, dtype.int_range()) {
            (ConstExpr::Int(int), None) if dtype == Dtype::F64 => Ok(ConstExpr::Float(*int as f64)),
            (ConstExpr::Int(int), None) => round_float(to_f64_odd(*int), dtype),
            (ConstExpr::Float(float), None) => round_float(*float, dtype),
            (ConstExpr::Bool(_), _) if dtype == Dtype::Bool => Ok(self.clone()),
            (ConstExpr::Int(int), Some((low, high))) if dtype != Dtype::Bool => {
                if (low..=high).contains(int) {
                    Ok(self.clone())
                } else {
                    Err(format!("`{int}` does not fit `{dtype}`, which holds {low} to {high}"))
                }
            }
            (ConstExpr::Int(_) | ConstExpr::Float(_) | ConstExpr::Bool(_), _) => Err(format!("`{self}` is not of type `{dtype}`")),
            (ConstExpr::Param(_) | ConstExpr::Unary(..) | ConstExpr::Binary(..) | ConstExpr::If(_) | ConstExpr::OfType(..), _) => {
                Ok(self.clone())
            }
        }
    }

    fn has_float(&self) -> bool {
        match self {
            ConstExpr::Float(_) => true,
            ConstExpr::Int(_) | ConstExpr::Bool(_) | ConstExpr::Param(_) => false,
            ConstExpr::Unary(_, operand) => operand.has_float(),
            ConstExpr::Binary(_, lhs, rhs) => lhs.has_float() || rhs.has_float(),
            ConstExpr::If(parts) => parts.iter().any(ConstExpr::has_float),
            ConstExpr::OfType(_, constant) => *constant != TypeConstant::Bits,
        }
    }

    fn order_key(&self) -> (bool, String) {
        (self.is_literal(), self.to_string())
    }
}

/// Converts an integer to `f64` with rounding to odd: it truncates, and sets the last bit if anything was lost. Rounding the result again to
/// fewer digits gives the same as rounding the integer directly.
#[inline(always)]
pub(crate) fn to_f64_odd(value: i128) -> f64 {
    let magnitude = value.unsigned_abs();
    let excess = (128 - magnitude.leading_zeros()).saturating_sub(53);
    let kept = magnitude >> excess;
    let lost = kept << excess != magnitude;
    let odd = (kept | u128::from(lost)) as f64 * 2f64.powi(excess as i32);
    if value < 0 { -odd } else { odd }
}

fn round_float(value: f64, dtype: Dtype) -> Result<ConstExpr, String> {
    let rounded = match dtype {
        // Round first: the conversions of `half` look only at the upper half of the digits, and the rounded value needs no further rounding.
        Dtype::F16 => half::f16::from_f64(nearest(value, 10, -14)).to_f64(),
        Dtype::Bf16 => half::bf16::from_f64(nearest(value, 7, -126)).to_f64(),
        Dtype::F32 => f64::from(value as f32),
        _ => Format::of(dtype).map_or(value, |format| format.round(value)),
    };
    let is_too_large = match Format::of(dtype) {
        Some(format) if rounded.is_finite() || !format.has_infinities() => rounded.abs() > format.to_f32(format.largest()).into(),
        _ => value.is_finite() && rounded.is_infinite(),
    };
    if is_too_large { Err(format!("`{value:?}` does not fit `{dtype}`")) } else { Ok(ConstExpr::Float(rounded)) }
}

/// A linear combination with integer coefficients: `2 * N - M + 3`.
#[derive(Default)]
struct Sum {
    terms: Vec<(ConstExpr, i128)>,
    constant: i128,
}

impl Sum {
    /// `None` if an operand contains a float or a boolean, or a number is too large.
    fn of(op: ConstBinary, lhs: &ConstExpr, rhs: &ConstExpr) -> Option<Sum> {
        let mut sum = Sum::default();
        sum.add(lhs, 1)?;
        sum.add(rhs, if op == ConstBinary::Sub { -1 } else { 1 })?;
        Some(sum)
    }

    fn add(&mut self, expr: &ConstExpr, factor: i128) -> Option<()> {
        match expr {
            ConstExpr::Int(value) => self.constant = self.constant.checked_add(value.checked_mul(factor)?)?,
            ConstExpr::Float(_) | ConstExpr::Bool(_) => return None,
            ConstExpr::Unary(ConstUnary::Neg, operand) => self.add(operand, factor.checked_neg()?)?,
            ConstExpr::Binary(ConstBinary::Add, a, b) => {
                self.add(a, factor)?;
                self.add(b, factor)?;
            }
            ConstExpr::Binary(ConstBinary::Sub, a, b) => {
                self.add(a, factor)?;
                self.add(b, factor.checked_neg()?)?;
            }
            ConstExpr::Binary(ConstBinary::Mul, a, b) if let Some(literal) = b.as_int() => self.add(a, factor.checked_mul(literal)?)?,
            term if term.has_float() => return None,
            term => match self.terms.iter_mut().find(|(known, _)| known == term) {
                Some((_, count)) => *count = count.checked_add(factor)?,
                None => self.terms.push((term.clone(), factor)),
            },
        }
        Some(())
    }

    /// The terms in a fixed order, the literal last.
    fn into_expr(mut self) -> ConstExpr {
        self.terms.retain(|(_, count)| *count != 0);
        self.terms.sort_by_key(|(term, count)| (*count < 0, term.to_string()));
        let times = |term: ConstExpr, count: i128| match count {
            1 => term,
            _ => ConstExpr::Binary(ConstBinary::Mul, Box::new(term), Box::new(ConstExpr::Int(count))),
        };
        let join = |op: ConstBinary, a: ConstExpr, b: ConstExpr| ConstExpr::Binary(op, Box::new(a), Box::new(b));
        let mut terms = self.terms.into_iter();
        let Some((first, count)) = terms.next() else { return ConstExpr::Int(self.constant) };
        let mut sum = times(first, count);
        for (term, count) in terms {
            sum =
                if count < 0 { join(ConstBinary::Sub, sum, times(term, -count)) } else { join(ConstBinary::Add, sum, times(term, count)) };
        }
        match self.constant {
            0 => sum,
            constant if constant < 0 && constant != i128::MIN => join(ConstBinary::Sub, sum, ConstExpr::Int(-constant)),
            constant => join(ConstBinary::Add, sum, ConstExpr::Int(constant)),
        }
    }
}

/// `None` if an operand is not a literal, or if the kinds do not match.
fn evaluate_binary(op: ConstBinary, lhs: &ConstExpr, rhs: &ConstExpr) -> Option<Result<ConstExpr, String>> {
    match (lhs, rhs) {
        (ConstExpr::Int(a), ConstExpr::Int(b)) => Some(evaluate_ints(op, *a, *b)),
        (ConstExpr::Float(a), ConstExpr::Float(b)) => evaluate_floats(op, *a, *b).map(Ok),
        (ConstExpr::Float(a), ConstExpr::Int(b)) => evaluate_floats(op, *a, *b as f64).map(Ok),
        (ConstExpr::Int(a), ConstExpr::Float(b)) => evaluate_floats(op, *a as f64, *b).map(Ok),
        (ConstExpr::Bool(a), ConstExpr::Bool(b)) => match op {
            ConstBinary::And => Some(Ok(ConstExpr::Bool(a & b))),
            ConstBinary::Or => Some(Ok(ConstExpr::Bool(a | b))),
            ConstBinary::Xor | ConstBinary::Ne => Some(Ok(ConstExpr::Bool(a ^ b))),
            ConstBinary::Eq => Some(Ok(ConstExpr::Bool(a == b))),
            _ => None,
        },
        _ => None,
    }
}

fn evaluate_ints(op: ConstBinary, a: i128, b: i128) -> Result<ConstExpr, String> {
    let shift = u32::try_from(b).ok().filter(|bits| *bits < 64);
    let value = match op {
        ConstBinary::Add => a.checked_add(b),
        ConstBinary::Sub => a.checked_sub(b),
        ConstBinary::Mul => a.checked_mul(b),
        ConstBinary::Div => a.checked_div(b),
        ConstBinary::Rem => a.checked_rem(b),
        ConstBinary::Cdiv => a.checked_div(b).and_then(|q| a.checked_rem(b).map(|r| q + i128::from(r != 0 && (r < 0) == (b < 0)))),
        ConstBinary::Shl => shift.and_then(|bits| a.checked_mul(1 << bits)),
        ConstBinary::Shr => shift.map(|bits| a >> bits),
        ConstBinary::And => Some(a & b),
        ConstBinary::Or => Some(a | b),
        ConstBinary::Xor => Some(a ^ b),
        ConstBinary::Min => Some(a.min(b)),
        ConstBinary::Max => Some(a.max(b)),
        ConstBinary::Eq => return Ok(ConstExpr::Bool(a == b)),
        ConstBinary::Ne => return Ok(ConstExpr::Bool(a != b)),
        ConstBinary::Lt => return Ok(ConstExpr::Bool(a < b)),
        ConstBinary::Le => return Ok(ConstExpr::Bool(a <= b)),
        ConstBinary::Gt => return Ok(ConstExpr::Bool(a > b)),
        ConstBinary::Ge => return Ok(ConstExpr::Bool(a >= b)),
    };
    value.map(ConstExpr::Int).ok_or_else(|| format!("the constant `{a} {} {b}` has no value", op.text()))
}

fn evaluate_floats(op: ConstBinary, a: f64, b: f64) -> Option<ConstExpr> {
    Some(match op {
        ConstBinary::Add => ConstExpr::Float(a + b),
        ConstBinary::Sub => ConstExpr::Float(a - b),
        ConstBinary::Mul => ConstExpr::Float(a * b),
        ConstBinary::Div => ConstExpr::Float(a / b),
        ConstBinary::Rem => ConstExpr::Float(a % b),
        ConstBinary::Min => ConstExpr::Float(a.min(b)),
        ConstBinary::Max => ConstExpr::Float(a.max(b)),
        ConstBinary::Eq => ConstExpr::Bool(a == b),
        ConstBinary::Ne => ConstExpr::Bool(a != b),
        ConstBinary::Lt => ConstExpr::Bool(a < b),
        ConstBinary::Le => ConstExpr::Bool(a <= b),
        ConstBinary::Gt => ConstExpr::Bool(a > b),
        ConstBinary::Ge => ConstExpr::Bool(a >= b),
        _ => return None,
    })
}

impl From<i128> for ConstExpr {
    fn from(value: i128) -> ConstExpr {
        ConstExpr::Int(value)
    }
}

/// Operators and `if` are parenthesised, and `min`, `max` and `cdiv` are calls. Floats always have a point, an exponent, `inf` or `nan`.
impl fmt::Display for ConstExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConstExpr::Int(value) => write!(f, "{value}"),
            ConstExpr::Float(value) if value.is_nan() => f.write_str("nan"),
            ConstExpr::Float(value) => write!(f, "{value:?}"),
            ConstExpr::Bool(value) => write!(f, "{value}"),
            ConstExpr::Param(name) => f.write_str(name),
            ConstExpr::Unary(ConstUnary::Neg, operand) => write!(f, "(-{operand})"),
            ConstExpr::Unary(ConstUnary::Not, operand) => write!(f, "(!{operand})"),
            ConstExpr::Unary(ConstUnary::Wrap(dtype), operand) => write!(f, "{dtype}({operand})"),
            ConstExpr::Binary(op @ (ConstBinary::Min | ConstBinary::Max | ConstBinary::Cdiv), lhs, rhs) => {
                write!(f, "{}({lhs}, {rhs})", op.text())
            }
            ConstExpr::Binary(op, lhs, rhs) => write!(f, "({lhs} {} {rhs})", op.text()),
            ConstExpr::If(parts) => {
                let [cond, then, other] = &**parts;
                write!(f, "(if {cond} {{ {then} }} else {{ {other} }})")
            }
            ConstExpr::OfType(name, constant) => write!(f, "{name}::{}", constant.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn param(name: &str) -> ConstExpr {
        ConstExpr::Param(name.into())
    }

    #[test]
    fn equal_expressions_have_equal_trees() {
        let a = ConstExpr::binary(ConstBinary::Mul, param("BM"), param("BN"));
        let b = ConstExpr::binary(ConstBinary::Mul, param("BN"), param("BM"));
        assert_eq!(a, b);
        assert_eq!(ConstExpr::binary(ConstBinary::Mul, param("BM"), ConstExpr::Int(1)), param("BM"));
        // 2 * N - N + M - 3 - M + 3 is N.
        let twice = ConstExpr::binary(ConstBinary::Mul, ConstExpr::Int(2), param("N"));
        let less = ConstExpr::binary(ConstBinary::Sub, twice, param("N"));
        let more = ConstExpr::binary(ConstBinary::Sub, ConstExpr::binary(ConstBinary::Add, less, param("M")), ConstExpr::Int(3));
        let same = ConstExpr::binary(ConstBinary::Add, ConstExpr::binary(ConstBinary::Sub, more, param("M")), ConstExpr::Int(3));
        assert_eq!(same, param("N"));
        assert_eq!(ConstExpr::binary(ConstBinary::Sub, param("N"), param("M")).to_string(), "(N - M)");
        assert_eq!(ConstExpr::binary(ConstBinary::Add, param("N"), ConstExpr::Float(0.5)).to_string(), "(N + 0.5)");
    }

    #[test]
    fn integers_wrap_in_their_type() {
        let bind = |name: &str| (name == "B").then_some(ConstExpr::Int(i128::from(u64::MAX - 1)));
        let wrapped = |op, rhs| ConstExpr::unary(ConstUnary::Wrap(Dtype::U64), ConstExpr::binary(op, param("B"), rhs));
        assert_eq!(wrapped(ConstBinary::Mul, param("B")).evaluate(&bind), Ok(ConstExpr::Int(4)));
        assert_eq!(wrapped(ConstBinary::Add, ConstExpr::Int(5)).evaluate(&bind), Ok(ConstExpr::Int(3)));
        assert_eq!(wrapped(ConstBinary::Sub, ConstExpr::Int(5)).to_string(), "u64((B - 5))");
        assert_eq!(ConstExpr::unary(ConstUnary::Wrap(Dtype::I8), ConstExpr::Int(200)), ConstExpr::Int(-56));
    }

    #[test]
    fn a_number_is_rounded_once() {
        let of = |value: ConstExpr, dtype| match value.to_dtype(dtype) {
            Ok(ConstExpr::Float(float)) => float,
            other => panic!("{other:?}"),
        };
        // Halfway between two `f16`, plus a difference that neither `f32` nor the upper digits of `f64` can hold.
        let above = |digits: i32| 1.0 + 2f64.powi(-digits) + 2f64.powi(-45);
        assert_eq!(of(ConstExpr::Float(above(11)), Dtype::F16), 1.0 + 2f64.powi(-10));
        assert_eq!(of(ConstExpr::Float(-above(8)), Dtype::Bf16), -1.0 - 2f64.powi(-7));
        assert_eq!(of(ConstExpr::Float(2f64.powi(-25) * above(30)), Dtype::F16), 2f64.powi(-24));
        assert!(ConstExpr::Float(65520.0).to_dtype(Dtype::F16).is_err());
        let int = |digits: u32| ConstExpr::Int((1 << 60) + (1 << (60 - digits)) + 1);
        assert_eq!(of(int(24), Dtype::F32), 2f64.powi(60) + 2f64.powi(37));
        assert_eq!(of(int(8), Dtype::Bf16), 2f64.powi(60) + 2f64.powi(53));
        assert_eq!(of(int(53), Dtype::F64), 2f64.powi(60) + 2f64.powi(8));
        assert_eq!(to_f64_odd(-(1 << 60)), -(2f64.powi(60)));
        assert_eq!(to_f64_odd((1 << 60) + 1).to_bits(), 2f64.powi(60).to_bits() | 1);
        assert_eq!(to_f64_odd(i128::MIN), -(2f64.powi(127)));
    }

    /// The side that is not chosen divides by zero.
    #[test]
    fn only_the_chosen_side_is_evaluated() {
        let bind = |name: &str| (name == "B").then_some(ConstExpr::Int(0));
        let is_positive = ConstExpr::binary(ConstBinary::Gt, param("B"), ConstExpr::Int(0));
        let quotient = ConstExpr::binary(ConstBinary::Div, ConstExpr::Int(8), param("B"));
        let guarded = ConstExpr::select(is_positive, quotient.clone(), ConstExpr::Int(1));
        assert_eq!(guarded.evaluate(&bind), Ok(ConstExpr::Int(1)));
        assert_eq!(guarded.to_string(), "(if (B > 0) { (8 / B) } else { 1 })");
        assert_eq!(ConstExpr::select(ConstExpr::Bool(false), quotient, param("B")), param("B"));
        assert_eq!(ConstExpr::select(param("C"), param("B"), param("B")), param("B"));
    }

    #[test]
    fn a_constant_of_a_type_is_that_of_its_binding() {
        let bind = |dtype: Dtype| move |name: &str| (name == "T").then_some(ConstExpr::Int(dtype.code().into()));
        let of = |constant| ConstExpr::OfType("T".into(), constant);
        assert_eq!(of(TypeConstant::Max).evaluate(&bind(Dtype::U8)), Ok(ConstExpr::Int(255)));
        assert_eq!(of(TypeConstant::Epsilon).evaluate(&bind(Dtype::F64)), Ok(ConstExpr::Float(f64::EPSILON)));
        assert!(of(TypeConstant::Epsilon).evaluate(&bind(Dtype::U8)).is_err());
        assert!(of(TypeConstant::Max).evaluate(&|_| None).is_err());
        assert_eq!(of(TypeConstant::Bits).to_string(), "T::BITS");
    }

    #[test]
    fn evaluates_as_rust_does() {
        let bind = |name: &str| (name == "B").then_some(ConstExpr::Int(-7));
        let quotient = ConstExpr::binary(ConstBinary::Div, param("B"), ConstExpr::Int(2));
        assert_eq!(quotient.evaluate(&bind), Ok(ConstExpr::Int(-3)));
        let up = ConstExpr::binary(ConstBinary::Cdiv, ConstExpr::Int(7), ConstExpr::Int(2));
        assert_eq!(up, ConstExpr::Int(4));
        let by_zero = ConstExpr::binary(ConstBinary::Div, param("B"), ConstExpr::Int(0));
        assert!(by_zero.evaluate(&bind).is_err());
        assert!(param("C").evaluate(&bind).is_err());
    }
}
