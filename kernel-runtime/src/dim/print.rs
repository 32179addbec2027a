//! The text of an expression of dims.
//!
//! The canonical form has neither remainders nor maxima nor quotients that are rounded up. The text has them where they make it shorter:
//!
//! | canonical | text |
//! |---|---|
//! | `(n + 1023) / 1024` | `cdiv(n, 1024)` |
//! | `3*n - 8*(n / 8)` | `2*n + n % 8` |
//! | `-min(-n, -m)` | `max(n, m)` |

use std::fmt;

use super::bounds::Relation;
use super::sum::{Atom, Quotient, Sum, Symbol, Term};

/// A summand of the text: a number times a product, or times a quotient or a remainder, which need parentheses as factors.
struct Summand {
    coefficient: i64,
    product: String,
    is_quotient: bool,
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (remainders, rest) = without_remainders(self);
        let mut summands: Vec<Summand> = rest.terms.iter().map(summand).collect();
        summands.extend(remainders);
        if summands.is_empty() {
            return write!(f, "{}", rest.constant);
        }
        // An expression that begins without a sign is easier to read.
        if let Some(at) = summands.iter().position(|summand| summand.coefficient > 0) {
            summands[..=at].rotate_right(1);
        }
        for (at, Summand { coefficient, product, is_quotient }) in summands.iter().enumerate() {
            let sign = match (at, *coefficient < 0) {
                (0, false) => "",
                (0, true) => "-",
                (_, false) => " + ",
                (_, true) => " - ",
            };
            let is_factor = coefficient.unsigned_abs() != 1 || sign == "-";
            let product = if *is_quotient && is_factor { format!("({product})") } else { product.clone() };
            match coefficient.unsigned_abs() {
                1 => write!(f, "{sign}{product}")?,
                number => write!(f, "{sign}{number}*{product}")?,
            }
        }
        match rest.constant {
            0 => Ok(()),
            constant if constant < 0 => write!(f, " - {}", constant.unsigned_abs()),
            constant => write!(f, " + {constant}"),
        }
    }
}

/// Takes remainders `k*(x % d)`, which are `k*x - k*d*(x / d)`, out of a sum, if it has all terms of `k*x`.
fn without_remainders(sum: &Sum) -> (Vec<Summand>, Sum) {
    let (mut remainders, mut rest) = (Vec::new(), sum.clone());
    let mut at = 0;
    while let Some(term) = rest.terms.get(at) {
        match remainder(&rest, term) {
            Some((remainder, others)) => {
                (rest, at) = (others, 0);
                remainders.push(remainder);
            }
            None => at += 1,
        }
    }
    (remainders, rest)
}

/// The remainder that the term of a quotient belongs to, and the sum without it.
fn remainder(sum: &Sum, term: &Term) -> Option<(Summand, Sum)> {
    let [Atom::Quotient(quotient)] = &term.factors[..] else { return None };
    let (dividend, divisor) = quotient.written();
    let by = divisor.known().filter(|by| term.coefficient % by == 0)?;
    let times = (term.coefficient / by).checked_neg()?;
    let removed = dividend.scaled(times).ok()?;
    let has = |part: &Term| {
        let same = sum.terms.iter().find(|known| known.factors == part.factors);
        same.is_some_and(|known| {
            (known.coefficient < 0) == (part.coefficient < 0) && known.coefficient.unsigned_abs() >= part.coefficient.unsigned_abs()
        })
    };
    if !removed.terms.iter().all(has) {
        return None;
    }
    let whole = Sum::of_quotient(quotient).ok()?.scaled(term.coefficient).ok()?;
    let others = sum.minus(&whole).ok()?.minus(&removed).ok()?;
    Some((Summand { coefficient: times, product: format!("{} % {by}", operand(dividend)), is_quotient: true }, others))
}

fn summand(term: &Term) -> Summand {
    let mut coefficient = term.coefficient;
    let mut factor = |atom: &Atom| match atom {
        Atom::Symbol(symbol) => symbol.name.to_string(),
        Atom::Quotient(quotient) if is_cdiv(quotient) || term.factors.len() == 1 => quotient_text(quotient),
        Atom::Quotient(quotient) => format!("({})", quotient_text(quotient)),
        Atom::Min(members) => match negated(members) {
            Some(negated) => {
                coefficient = -coefficient;
                format!("max({})", listed(&negated))
            }
            None => format!("min({})", listed(members)),
        },
    };
    let factors: Vec<String> = term.factors.iter().map(&mut factor).collect();
    let is_quotient = matches!(&term.factors[..], [Atom::Quotient(quotient)] if !is_cdiv(quotient));
    Summand { coefficient, product: factors.join("*"), is_quotient }
}

/// The negated members, if these have fewer signs: then the minimum is a negated maximum.
fn negated(members: &[Sum]) -> Option<Vec<Sum>> {
    let signs = |members: &[Sum]| members.iter().flat_map(|member| &member.terms).filter(|term| term.coefficient < 0).count();
    let negated: Vec<Sum> = members.iter().map(|member| member.scaled(-1).ok()).collect::<Option<_>>()?;
    (signs(&negated) < signs(members)).then_some(negated)
}

/// The members, with a number at the end.
fn listed(members: &[Sum]) -> String {
    let (numbers, others): (Vec<&Sum>, Vec<&Sum>) = members.iter().partition(|member| member.known().is_some());
    others.into_iter().chain(numbers).map(Sum::to_string).collect::<Vec<_>>().join(", ")
}

/// Is the quotient written as one that is rounded up?
fn is_cdiv(quotient: &Quotient) -> bool {
    let (dividend, divisor) = quotient.written();
    divisor.known().is_some_and(|by| by > 1 && dividend.constant == by - 1)
}

fn quotient_text(quotient: &Quotient) -> String {
    let (dividend, divisor) = quotient.written();
    if is_cdiv(quotient) {
        return format!("cdiv({}, {divisor})", dividend.without_constant());
    }
    format!("{} / {}", operand(dividend), operand(divisor))
}

/// A sum as an operand of `/` or `%`.
fn operand(sum: &Sum) -> String {
    let text = sum.to_string();
    let is_single = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_single { text } else { format!("({text})") }
}

impl Symbol {
    /// The name and the range: `batch in 1..=1024`.
    pub(super) fn declaration(&self) -> String {
        format!("{} in {}..={}", self.name, self.low, self.high)
    }
}

impl Sum {
    /// The ranges of the only dim for which the sum compares so with 0, and does not, if that is decided by one bound. With its name.
    pub(super) fn split(&self, comparison: Relation) -> Option<(String, [(i64, i64); 2])> {
        let [symbol] = &self.symbols[..] else { return None };
        let ([Term { factors, .. }], false) = (&self.terms[..], matches!(comparison, Relation::Eq | Relation::Ne)) else { return None };
        let [Atom::Symbol(_)] = &factors[..] else { return None };
        let holds = |value: i64| {
            let difference = self.evaluate(&|_| Ok(value)).ok()?;
            Some(comparison.holds(i64::try_from(difference.signum()).ok()?, 0))
        };
        // The comparison holds up to one value, or from one value on.
        let first = holds(symbol.low)?;
        let (mut below, mut above) = (symbol.low, symbol.high);
        while above - below > 1 {
            let middle = below + (above - below) / 2;
            if holds(middle)? == first { below = middle } else { above = middle }
        }
        Some((symbol.name.to_string(), [(symbol.low, below), (above, symbol.high)]))
    }
}
