//! The canonical form of expressions of dims: sums of products of atoms.
//!
//! ```text
//! 64*batch + cdiv(n, 1024)      constant 0, terms [64 * [batch], 1 * [(n + 1023) / 1024]]
//! n % 8                         constant 0, terms [1 * [n], -8 * [n / 8]]
//! max(n, m)                     constant 0, terms [-1 * [min(-n, -m)]]
//! ```
//!
//! An atom is a named dim, a floor quotient or a minimum. Other operations are sums of these, so that equal expressions mostly have one form. The
//! constructors return the simplest form that they find, and an error for what has no value. [`super::print`] writes `cdiv`, `%` and `max` again.

use std::cmp::{Ordering, Reverse};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::DimError;
use super::bounds::Interval;
use crate::Site;

/// The maximum number of factors in an expression, over all terms and nested expressions.
pub(super) const MOST_PARTS: usize = 1000;
/// The maximum depth of nested quotients and minima. Functions of this module recurse as deep.
pub(super) const MOST_DEPTH: usize = 32;
/// The maximum number of sums in a minimum. Each new one is compared with all others.
const MOST_MEMBERS: usize = 16;

/// A named dim.
#[derive(Debug)]
pub(super) struct Symbol {
    pub(super) name: Box<str>,
    pub(super) low: i64,
    pub(super) high: i64,
    /// The declaration. Two declarations of one name and range are the same dim.
    pub(super) declared: Site,
}

impl Symbol {
    fn key(&self) -> (&str, i64, i64) {
        (&self.name, self.low, self.high)
    }
}

/// A quotient, rounded down.
#[derive(Debug)]
pub(super) struct Quotient {
    pub(super) dividend: Sum,
    pub(super) divisor: Sum,
    /// Dividend and divisor before common factors were divided out: `cdiv(64*batch, 1024)` is printed as it was written.
    pub(super) shown: Option<(Sum, Sum)>,
}

/// A factor of a product.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Atom {
    Symbol(Arc<Symbol>),
    Quotient(Arc<Quotient>),
    /// At least two sums, sorted and different.
    Min(Arc<[Sum]>),
}

/// A product of atoms and a number.
#[derive(Clone, Debug)]
pub(super) struct Term {
    /// Not 0.
    pub(super) coefficient: i64,
    /// Sorted, and at least one. An atom that occurs several times is a power.
    pub(super) factors: Vec<Atom>,
}

/// A sum of terms and a number.
#[derive(Clone, Debug)]
pub(super) struct Sum {
    pub(super) constant: i64,
    /// Sorted, with different products.
    pub(super) terms: Vec<Term>,
    /// All named dims in it, sorted by name.
    pub(super) symbols: Vec<Arc<Symbol>>,
    /// A range of the values.
    pub(super) interval: Interval,
    parts: usize,
    depth: usize,
}

type Result<T> = std::result::Result<T, DimError>;

impl Sum {
    fn key(&self) -> (&[Term], i64) {
        (&self.terms, self.constant)
    }

    pub(super) fn constant(constant: i64) -> Sum {
        Sum { constant, terms: Vec::new(), symbols: Vec::new(), interval: Interval::of(constant), parts: 0, depth: 0 }
    }

    pub(super) fn symbol(symbol: Arc<Symbol>) -> Sum {
        let terms = vec![Term { coefficient: 1, factors: vec![Atom::Symbol(symbol.clone())] }];
        let interval = Interval { low: symbol.low.into(), high: symbol.high.into() };
        Sum { constant: 0, terms, symbols: vec![symbol], interval, parts: 1, depth: 0 }
    }

    fn atom(atom: Atom) -> Result<Sum> {
        Sum::new(0, vec![Term { coefficient: 1, factors: vec![atom] }])
    }

    /// The sum of these terms, whose products may be equal and whose coefficients may be 0.
    fn new(constant: i64, mut terms: Vec<Term>) -> Result<Sum> {
        terms.sort_by(|a, b| a.order().cmp(&b.order()));
        let mut merged: Vec<Term> = Vec::with_capacity(terms.len());
        for term in terms {
            match merged.last_mut() {
                Some(last) if last.factors == term.factors => {
                    last.coefficient = last.coefficient.checked_add(term.coefficient).ok_or(DimError::Overflow)?;
                }
                _ => merged.push(term),
            }
        }
        merged.retain(|term| term.coefficient != 0);
        // The negated sum exists, too.
        if constant == i64::MIN || merged.iter().any(|term| term.coefficient == i64::MIN) {
            return Err(DimError::Overflow);
        }
        let (mut parts, mut depth, mut symbols) = (0, 0, Vec::new());
        for atom in merged.iter().flat_map(|term| &term.factors) {
            parts += 1;
            match atom {
                Atom::Symbol(symbol) => add_symbols(&mut symbols, std::slice::from_ref(symbol))?,
                atom => {
                    for inner in atom.inner() {
                        parts += inner.parts;
                        depth = depth.max(inner.depth + 1);
                        add_symbols(&mut symbols, &inner.symbols)?;
                    }
                }
            }
        }
        if parts > MOST_PARTS || depth > MOST_DEPTH {
            return Err(DimError::TooComplex);
        }
        let interval = Interval::of_terms(constant, &merged);
        Ok(Sum { constant, terms: merged, symbols, interval, parts, depth })
    }

    /// The number, if the sum has no terms.
    pub(super) fn known(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The named dim, if the sum is only that.
    pub(super) fn as_symbol(&self) -> Option<&Arc<Symbol>> {
        match (&self.terms[..], self.constant) {
            ([Term { coefficient: 1, factors }], 0) => match &factors[..] {
                [Atom::Symbol(symbol)] => Some(symbol),
                _ => None,
            },
            _ => None,
        }
    }

    pub(super) fn plus(&self, other: &Sum) -> Result<Sum> {
        let constant = self.constant.checked_add(other.constant).ok_or(DimError::Overflow)?;
        Sum::new(constant, self.terms.iter().chain(&other.terms).cloned().collect())
    }

    pub(super) fn minus(&self, other: &Sum) -> Result<Sum> {
        self.plus(&other.scaled(-1)?)
    }

    pub(super) fn scaled(&self, by: i64) -> Result<Sum> {
        let scaled = |number: i64| number.checked_mul(by).ok_or(DimError::Overflow);
        let term = |term: &Term| Ok(Term { coefficient: scaled(term.coefficient)?, factors: term.factors.clone() });
        Sum::new(scaled(self.constant)?, self.terms.iter().map(term).collect::<Result<_>>()?)
    }

    pub(super) fn times(&self, other: &Sum) -> Result<Sum> {
        if self.terms.len().saturating_mul(other.terms.len()) > MOST_PARTS {
            return Err(DimError::TooComplex);
        }
        let mut total = self.scaled(other.constant)?.plus(&other.without_constant().scaled(self.constant)?)?;
        let mut products = std::mem::take(&mut total.terms);
        for (a, b) in self.terms.iter().flat_map(|a| other.terms.iter().map(move |b| (a, b))) {
            let coefficient = a.coefficient.checked_mul(b.coefficient).ok_or(DimError::Overflow)?;
            let mut factors: Vec<Atom> = a.factors.iter().chain(&b.factors).cloned().collect();
            factors.sort();
            products.push(Term { coefficient, factors });
        }
        Sum::new(total.constant, products)
    }

    /// `self / divisor`, rounded down.
    pub(super) fn floor_div(&self, divisor: &Sum) -> Result<Sum> {
        let zero = || DimError::DivisionByZero { dividend: self.to_string() };
        match divisor.known() {
            Some(0) => Err(zero()),
            Some(by) if by < 0 => self.scaled(-1)?.divided_by(by.checked_neg().ok_or(DimError::Overflow)?),
            Some(by) => self.divided_by(by),
            None if divisor.interval.high < 0 => self.scaled(-1)?.floor_div(&divisor.scaled(-1)?),
            None if divisor.interval.low > 0 => self.divided_by_positive(divisor),
            None if divisor.interval == Interval::of(0) => Err(zero()),
            None => Sum::quotient(self.clone(), divisor.clone(), None),
        }
    }

    /// `self / by`, rounded down, for a positive number. Multiples of `by` leave the quotient, then the common factors of what is left.
    fn divided_by(&self, by: i64) -> Result<Sum> {
        let parts = |part: &dyn Fn(i64) -> i64| {
            let terms = self.terms.iter().map(|term| Term { coefficient: part(term.coefficient), factors: term.factors.clone() });
            Sum::new(part(self.constant), terms.collect())
        };
        let (whole, rest) = (parts(&|number| number.div_euclid(by))?, parts(&|number| number.rem_euclid(by))?);
        if let Some(quotient) = rest.bounds().divided_by(Interval::of(by)).single() {
            return whole.plus(&Sum::constant(quotient));
        }
        // Quotients of quotients are one: `(n / a + c) / b` is `(n + c * a) / (a * b)`.
        if let [Term { coefficient: 1, factors }] = &rest.terms[..]
            && let [Atom::Quotient(inner)] = &factors[..]
            && let Some(inner_by) = inner.divisor.known().filter(|inner_by| *inner_by > 0)
            && let Some(total) = inner_by.checked_mul(by)
            && let Ok(dividend) = Sum::constant(rest.constant).scaled(inner_by).and_then(|added| inner.dividend.plus(&added))
        {
            return whole.plus(&dividend.divided_by(total)?);
        }
        // All of these numbers are positive.
        let common = rest.terms.iter().fold(by as u64, |common, term| gcd(common, term.coefficient as u64)) as i64;
        if common == 1 {
            return whole.plus(&Sum::quotient(rest, Sum::constant(by), None)?);
        }
        let terms = rest.terms.iter().map(|term| Term { coefficient: term.coefficient / common, factors: term.factors.clone() });
        let reduced = Sum::new(rest.constant.div_euclid(common), terms.collect())?;
        let shown = (rest, Sum::constant(by));
        match by / common {
            1 => whole.plus(&reduced),
            divisor => whole.plus(&Sum::quotient(reduced, Sum::constant(divisor), Some(shown))?),
        }
    }

    /// `self / divisor`, rounded down, for an expression that is positive. Terms that are multiples of a product leave the quotient.
    fn divided_by_positive(&self, divisor: &Sum) -> Result<Sum> {
        if let ([first, ..], [of_divisor, ..]) = (&self.terms[..], &divisor.terms[..])
            && first.coefficient % of_divisor.coefficient == 0
            && divisor.scaled(first.coefficient / of_divisor.coefficient)? == *self
        {
            return Ok(Sum::constant(first.coefficient / of_divisor.coefficient));
        }
        let ([product], 0) = (&divisor.terms[..], divisor.constant) else {
            return Sum::quotient(self.clone(), divisor.clone(), None);
        };
        let (mut whole, mut rest) = (Vec::new(), Vec::new());
        for term in &self.terms {
            match term.divided_by(product) {
                Some(quotient) => whole.push(quotient),
                None => rest.push(term.clone()),
            }
        }
        // `divided_by` gives a term without factors for a multiple of the whole product.
        let constants = whole.iter().filter(|term| term.factors.is_empty()).map(|term| term.coefficient).sum();
        whole.retain(|term| !term.factors.is_empty());
        let (whole, rest) = (Sum::new(constants, whole)?, Sum::new(self.constant, rest)?);
        if let Some(quotient) = rest.bounds().divided_by(divisor.interval).single() {
            return whole.plus(&Sum::constant(quotient));
        }
        whole.plus(&Sum::quotient(rest, divisor.clone(), None)?)
    }

    /// The quotient as an expression.
    pub(super) fn of_quotient(quotient: &Arc<Quotient>) -> Result<Sum> {
        Sum::atom(Atom::Quotient(quotient.clone()))
    }

    fn quotient(dividend: Sum, divisor: Sum, shown: Option<(Sum, Sum)>) -> Result<Sum> {
        Sum::atom(Atom::Quotient(Arc::new(Quotient { dividend, divisor, shown })))
    }

    /// The smaller one of two sums.
    pub(super) fn min(&self, other: &Sum) -> Result<Sum> {
        let mut members = self.members()?;
        members.extend(other.members()?);
        if members.len() > MOST_MEMBERS {
            return Err(DimError::TooComplex);
        }
        // A member that is never less than another one is not needed.
        let mut kept: Vec<Sum> = Vec::new();
        for member in members {
            let is_at_most = |a: &Sum, b: &Sum| match (a.known(), b.known()) {
                (Some(a), Some(b)) => a <= b,
                _ => b.minus(a).is_ok_and(|difference| difference.bounds().low >= 0),
            };
            if kept.iter().any(|other| is_at_most(other, &member)) {
                continue;
            }
            kept.retain(|other| !is_at_most(&member, other));
            kept.push(member);
        }
        let [first, others @ ..] = &kept[..] else { return Ok(Sum::constant(0)) };
        if others.is_empty() {
            return Ok(first.clone());
        }
        // Terms that all members have leave the minimum, and so does the constant closest to 0 of the members that still have terms.
        let is_shared = |term: &Term| others.iter().all(|other| other.terms.contains(term));
        let terms: Vec<Term> = first.terms.iter().filter(|term| is_shared(term)).cloned().collect();
        let constants = kept.iter().filter(|member| member.terms.len() > terms.len()).map(|member| member.constant);
        let constant = constants.min_by_key(|constant| (constant.unsigned_abs(), *constant < 0)).unwrap_or(0);
        let shared = Sum::new(constant, terms)?;
        let mut members = kept.iter().map(|member| member.minus(&shared)).collect::<Result<Vec<Sum>>>()?;
        members.sort();
        Sum::atom(Atom::Min(members.into()))?.plus(&shared)
    }

    /// The sums whose minimum is this sum: those of a minimum in it, each plus the rest.
    fn members(&self) -> Result<Vec<Sum>> {
        let is_minimum = |term: &Term| term.coefficient == 1 && matches!(&term.factors[..], [Atom::Min(_)]);
        let Some(at) = self.terms.iter().position(is_minimum) else { return Ok(vec![self.clone()]) };
        let mut rest = self.clone();
        let term = rest.terms.remove(at);
        let rest = Sum::new(rest.constant, rest.terms)?;
        match &term.factors[..] {
            [Atom::Min(members)] => members.iter().map(|member| member.plus(&rest)).collect(),
            _ => Ok(vec![self.clone()]),
        }
    }

    /// The sum with another sum in place of an atom that a term consists of.
    pub(super) fn with_term_replaced(&self, at: usize, by: &Sum) -> Result<Sum> {
        let mut terms = self.terms.clone();
        let term = terms.remove(at);
        Sum::new(self.constant, terms)?.plus(&by.scaled(term.coefficient)?)
    }

    pub(super) fn without_constant(&self) -> Sum {
        let interval = Interval::of_terms(0, &self.terms);
        Sum { constant: 0, interval, ..self.clone() }
    }

    /// The value, if `value` is that of each named dim.
    pub(super) fn evaluate(&self, value: &dyn Fn(&Symbol) -> Result<i64>) -> Result<i128> {
        let mut total = i128::from(self.constant);
        for term in &self.terms {
            let mut product = i128::from(term.coefficient);
            for factor in &term.factors {
                product = product.checked_mul(factor.evaluate(value)?).ok_or(DimError::Overflow)?;
            }
            total = total.checked_add(product).ok_or(DimError::Overflow)?;
        }
        Ok(total)
    }
}

impl Term {
    fn key(&self) -> ((Reverse<usize>, &[Atom]), i64) {
        (self.order(), self.coefficient)
    }

    /// Terms of a higher degree come first.
    fn order(&self) -> (Reverse<usize>, &[Atom]) {
        (Reverse(self.factors.len()), &self.factors)
    }

    /// The quotient, if it is exact. A quotient without factors is a number.
    fn divided_by(&self, other: &Term) -> Option<Term> {
        let mut factors = self.factors.clone();
        for factor in &other.factors {
            factors.remove(factors.iter().position(|known| known == factor)?);
        }
        (self.coefficient % other.coefficient == 0).then(|| Term { coefficient: self.coefficient / other.coefficient, factors })
    }
}

impl Quotient {
    /// Dividend and divisor as they were written.
    pub(super) fn written(&self) -> (&Sum, &Sum) {
        self.shown.as_ref().map_or((&self.dividend, &self.divisor), |(dividend, divisor)| (dividend, divisor))
    }

    fn key(&self) -> (&Sum, &Sum) {
        (&self.dividend, &self.divisor)
    }
}

impl Atom {
    /// The sums in a quotient or a minimum.
    fn inner(&self) -> impl Iterator<Item = &Sum> {
        let (pair, members): (Option<[&Sum; 2]>, &[Sum]) = match self {
            Atom::Symbol(_) => (None, &[]),
            Atom::Quotient(quotient) => (Some([&quotient.dividend, &quotient.divisor]), &[]),
            Atom::Min(members) => (None, members),
        };
        pair.into_iter().flatten().chain(members)
    }

    fn evaluate(&self, value: &dyn Fn(&Symbol) -> Result<i64>) -> Result<i128> {
        match self {
            Atom::Symbol(symbol) => value(symbol).map(i128::from),
            Atom::Quotient(quotient) => {
                let (dividend, divisor) = (quotient.dividend.evaluate(value)?, quotient.divisor.evaluate(value)?);
                floor(dividend, divisor).ok_or_else(|| DimError::DivisionByZero { dividend: quotient.dividend.to_string() })
            }
            Atom::Min(members) => {
                let mut least = i128::MAX;
                for member in members.iter() {
                    least = least.min(member.evaluate(value)?);
                }
                Ok(least)
            }
        }
    }
}

/// The quotient, rounded down; `None` for a division by 0, or if it exceeds 128 bits.
pub(super) fn floor(dividend: i128, divisor: i128) -> Option<i128> {
    let (quotient, rest) = (dividend.checked_div(divisor)?, dividend.checked_rem(divisor)?);
    Some(if rest != 0 && (rest < 0) != (divisor < 0) { quotient - 1 } else { quotient })
}

pub(super) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Adds named dims to a sorted list.
fn add_symbols(list: &mut Vec<Arc<Symbol>>, added: &[Arc<Symbol>]) -> Result<()> {
    for symbol in added {
        match list.binary_search_by(|known| known.name.cmp(&symbol.name)) {
            Ok(at) if list[at] == *symbol => {}
            Ok(at) => return Err(DimError::conflict(&list[at], symbol)),
            Err(at) => list.insert(at, symbol.clone()),
        }
    }
    Ok(())
}

/// Equality, order and hash by a method `key`, which leaves out what does not change the value.
macro_rules! compared_by_key {
    ($($ty:ty),*) => {$(
        impl PartialEq for $ty {
            fn eq(&self, other: &$ty) -> bool {
                self.key() == other.key()
            }
        }

        impl Eq for $ty {}

        impl PartialOrd for $ty {
            fn partial_cmp(&self, other: &$ty) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $ty {
            fn cmp(&self, other: &$ty) -> Ordering {
                self.key().cmp(&other.key())
            }
        }

        impl Hash for $ty {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.key().hash(state);
            }
        }
    )*};
}

compared_by_key!(Symbol, Quotient, Term, Sum);
