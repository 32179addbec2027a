//! Ranges of expressions of dims, and proofs of comparisons.
//!
//! An interval of each term gives the first range. It is wide where terms depend on each other, as in `n - 8 * (n / 8)`. So a bound is also that of a
//! simpler sum, which is never larger, see `lower_of_distances` and this table:
//!
//! | term | a lower bound of the sum has instead |
//! |---|---|
//! | `c * (x / d)` for a positive number `d` | `c * (x - d + 1) / d`, or `c * x / d` if `c` is negative |
//! | `c * min(x, y)` | both `x` and `y`, the lesser bound, or the greater one if `c` is negative |
//!
//! An upper bound is a lower bound of the negated sum. The number of simpler sums is at most [`MOST_SUMS`] for a bound.

use std::cmp::Ordering;

use super::sum::{Atom, Sum, Term, floor, gcd};

/// The maximum number of sums that a bound is computed from.
const MOST_SUMS: usize = 64;
/// The maximum number of factors of a product that is written as a sum of `2^factors` products.
const MOST_FACTORS: usize = 4;

/// All numbers from `low` to `high`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Interval {
    pub(super) low: i128,
    pub(super) high: i128,
}

/// The answer to a question about dims: whether it holds for all their values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Proof {
    /// It holds for all values.
    Yes,
    /// It holds for no values.
    No,
    /// It holds for some values only, or no proof was found.
    Unknown,
}

/// A relation of two dims.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relation {
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

impl Interval {
    pub(super) fn of(number: i64) -> Interval {
        Interval { low: number.into(), high: number.into() }
    }

    fn of_all(numbers: &[i128]) -> Interval {
        let (low, high) = numbers.iter().fold((i128::MAX, i128::MIN), |(low, high), number| (low.min(*number), high.max(*number)));
        Interval { low, high }
    }

    /// The range of a sum of these terms.
    pub(super) fn of_terms(constant: i64, terms: &[Term]) -> Interval {
        terms.iter().fold(Interval::of(constant), |sum, term| {
            let product =
                term.factors.iter().fold(Interval::of(term.coefficient), |product, factor| product.times(Interval::of_atom(factor)));
            Interval { low: clamped(sum.low.saturating_add(product.low)), high: clamped(sum.high.saturating_add(product.high)) }
        })
    }

    fn of_atom(atom: &Atom) -> Interval {
        match atom {
            Atom::Symbol(symbol) => Interval { low: symbol.low.into(), high: symbol.high.into() },
            Atom::Quotient(quotient) => quotient.dividend.interval.divided_by(quotient.divisor.interval),
            Atom::Min(members) => {
                let least = |bound: fn(&Interval) -> i128| members.iter().map(|member| bound(&member.interval)).min().unwrap_or(0);
                Interval { low: least(|interval| interval.low), high: least(|interval| interval.high) }
            }
        }
    }

    /// The only number in the range.
    pub(super) fn single(self) -> Option<i64> {
        if self.low == self.high { self.low.try_into().ok() } else { None }
    }

    fn times(self, other: Interval) -> Interval {
        let products = [(self.low, other.low), (self.low, other.high), (self.high, other.low), (self.high, other.high)];
        Interval::of_all(&products.map(|(a, b)| clamped(a.saturating_mul(b))))
    }

    /// The range of quotients, rounded down. A quotient by 0 has no value, so it is in no range.
    pub(super) fn divided_by(self, divisor: Interval) -> Interval {
        // Divisors next to 0 give the quotients of the largest magnitude.
        let divisors = [divisor.low, divisor.high, -1, 1].into_iter().filter(|by| (divisor.low..=divisor.high).contains(by));
        let quotients: Vec<i128> = divisors.flat_map(|by| [floor(self.low, by), floor(self.high, by)]).flatten().collect();
        if quotients.is_empty() { Interval { low: -i128::MAX, high: i128::MAX } } else { Interval::of_all(&quotients) }
    }
}

impl Sum {
    /// A range of the values, as narrow as this module can show.
    pub(super) fn bounds(&self) -> Interval {
        let low = lower(self, &mut MOST_SUMS.clone());
        let high = self.scaled(-1).map(|negated| lower(&negated, &mut MOST_SUMS.clone()).saturating_neg());
        Interval { low, high: high.map_or(self.interval.high, |high| high.min(self.interval.high)) }
    }

    /// Whether the sum compares so with 0.
    pub(super) fn compares(&self, comparison: Relation) -> Proof {
        let Interval { low, high } = self.bounds();
        let is_never_zero = low > 0 || high < 0 || !self.divides_constant();
        let (yes, no) = match comparison {
            Relation::Eq => (low == 0 && high == 0, is_never_zero),
            Relation::Ne => (is_never_zero, low == 0 && high == 0),
            Relation::Lt => (high < 0 || high == 0 && is_never_zero, low >= 0),
            Relation::Le => (high <= 0, low > 0 || low == 0 && is_never_zero),
            Relation::Gt => (low > 0 || low == 0 && is_never_zero, high <= 0),
            Relation::Ge => (low >= 0, high < 0 || high == 0 && is_never_zero),
        };
        match (yes, no) {
            (true, _) => Proof::Yes,
            (_, true) => Proof::No,
            _ => Proof::Unknown,
        }
    }

    /// Returns false if the constant is no multiple of a common factor of all terms: then the sum is never 0.
    fn divides_constant(&self) -> bool {
        let common = self.terms.iter().fold(0u64, |common, term| gcd(common, term.coefficient.unsigned_abs()));
        common == 0 || self.constant.unsigned_abs().is_multiple_of(common)
    }
}

impl Relation {
    /// Whether two numbers compare so.
    pub fn holds(self, left: i64, right: i64) -> bool {
        let order = left.cmp(&right);
        match self {
            Relation::Eq => order == Ordering::Equal,
            Relation::Ne => order != Ordering::Equal,
            Relation::Lt => order == Ordering::Less,
            Relation::Le => order != Ordering::Greater,
            Relation::Gt => order == Ordering::Greater,
            Relation::Ge => order != Ordering::Less,
        }
    }

    /// The operator in Rust.
    pub(super) fn operator(self) -> &'static str {
        match self {
            Relation::Eq => "==",
            Relation::Ne => "!=",
            Relation::Lt => "<",
            Relation::Le => "<=",
            Relation::Gt => ">",
            Relation::Ge => ">=",
        }
    }
}

/// A saturated bound whose negative exists, too.
fn clamped(bound: i128) -> i128 {
    bound.max(-i128::MAX)
}

/// A lower bound of a sum.
fn lower(sum: &Sum, sums: &mut usize) -> i128 {
    let least = lower_of_distances(sum).map_or(sum.interval.low, |bound| bound.max(sum.interval.low));
    if *sums == 0 {
        return least;
    }
    *sums -= 1;
    for (at, term) in sum.terms.iter().enumerate() {
        let [factor] = &term.factors[..] else { continue };
        let simpler = match factor {
            Atom::Symbol(_) => None,
            Atom::Min(members) => lower_of_members(sum, at, members, sums),
            Atom::Quotient(quotient) => match quotient.divisor.known() {
                Some(by) if by > 0 => lower_of_quotient(sum, at, &quotient.dividend, by, sums),
                _ => None,
            },
        };
        if let Some(simpler) = simpler {
            return least.max(simpler);
        }
    }
    least
}

/// A lower bound of a sum with each atom as its least value and a distance from it: `n*m - n` is `m' + n'*m'` for `n = 1 + n'` and `m = 1 + m'`.
/// No distance is less than 0, so only products with negative coefficients count.
fn lower_of_distances(sum: &Sum) -> Option<i128> {
    let mut products: Vec<(Vec<&Atom>, i128)> = Vec::new();
    for Term { coefficient, factors } in sum.terms.iter().filter(|term| term.factors.len() <= MOST_FACTORS) {
        for subset in 0u32..1 << factors.len() {
            let (mut distances, mut coefficient) = (Vec::new(), i128::from(*coefficient));
            for (at, factor) in factors.iter().enumerate() {
                if subset >> at & 1 == 1 {
                    distances.push(factor);
                } else {
                    coefficient = coefficient.checked_mul(Interval::of_atom(factor).low)?;
                }
            }
            match products.iter_mut().find(|(known, _)| *known == distances) {
                Some((_, sum)) => *sum = sum.checked_add(coefficient)?,
                None => products.push((distances, coefficient)),
            }
        }
    }
    let others: Vec<Term> = sum.terms.iter().filter(|term| term.factors.len() > MOST_FACTORS).cloned().collect();
    let mut bound = Interval::of_terms(sum.constant, &others).low;
    for (distances, coefficient) in products {
        let greatest = distances.iter().try_fold(coefficient, |product, atom| {
            let Interval { low, high } = Interval::of_atom(atom);
            product.checked_mul(high.checked_sub(low)?)
        });
        bound = bound.checked_add(if distances.is_empty() { coefficient } else { greatest?.min(0) })?;
    }
    Some(bound)
}

/// A lower bound of a sum with a minimum of these members in the term at an index.
fn lower_of_members(sum: &Sum, at: usize, members: &[Sum], sums: &mut usize) -> Option<i128> {
    let of_members = members.iter().map(|member| Some(lower(&sum.with_term_replaced(at, member).ok()?, sums)));
    if sum.terms[at].coefficient > 0 { of_members.collect::<Option<Vec<i128>>>()?.into_iter().min() } else { of_members.flatten().max() }
}

/// A lower bound of a sum with a quotient in the term at an index: that of the sum times the divisor, with a number between in place of the quotient.
fn lower_of_quotient(sum: &Sum, at: usize, dividend: &Sum, divisor: i64, sums: &mut usize) -> Option<i128> {
    let most_lost = if sum.terms[at].coefficient > 0 { divisor - 1 } else { 0 };
    let least_dividend = dividend.minus(&Sum::constant(most_lost)).ok()?;
    // All other terms are multiplied by the divisor, and the quotient by it is the dividend.
    let rest = sum.with_term_replaced(at, &Sum::constant(0)).and_then(|rest| rest.scaled(divisor)).ok()?;
    let scaled = least_dividend.scaled(sum.terms[at].coefficient).and_then(|quotient| rest.plus(&quotient)).ok()?;
    let bound = lower(&scaled, sums);
    // Rounded up.
    floor(bound.checked_neg()?, divisor.into())?.checked_neg()
}
