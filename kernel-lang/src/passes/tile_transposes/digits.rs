//! Digits of a flat index, and indices as sums of digits.
//!
//! A kernel takes a flat index apart by divisions, as a number is taken apart into digits, where each digit has a base of its own:
//!
//! ```text
//! %column = flat % %w                        low 1, size %w
//! %row = flat / %w % %h                      low %w, size %h
//! %channel = flat / (%w * %h)                low %w * %h
//!
//! %channel + (%row * %w + %column) * %c      1 * (flat / (%w * %h)) + %c * (flat % (%w * %h))
//! ```
//!
//! Two digits that follow each other and that an index puts together again are one digit, as row and column in the last line.

#[cfg(test)]
mod tests;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::affine::AffineFacts;
use crate::analysis::factors::Factors;
use crate::analysis::polynomial::{Polynomial, Product};
use crate::analysis::ranges::divisor;
use crate::ir::{BinaryOp, Function, Op, Value};

/// A digit of the flat index: `flat / low % size`, or `flat / low` without a size.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Digit {
    pub(super) low: Factors,
    pub(super) size: Option<Factors>,
}

impl Digit {
    /// The flat index itself.
    fn whole() -> Digit {
        Digit { low: Factors::one(), size: None }
    }

    /// The digit divided by a divisor, and its remainder, if they are digits.
    fn divided(&self, op: BinaryOp, by: Factors) -> Option<Digit> {
        match (op, &self.size) {
            (BinaryOp::Div, None) => Some(Digit { low: self.low.times(&by), size: None }),
            (BinaryOp::Div, Some(size)) => Some(Digit { low: self.low.times(&by), size: Some(size.without(&by)?) }),
            (_, None) => Some(Digit { low: self.low.clone(), size: Some(by) }),
            (_, Some(size)) if size.without(&by).is_some() => Some(Digit { low: self.low.clone(), size: Some(by) }),
            (_, Some(size)) => by.without(size).map(|_| self.clone()),
        }
    }
}

/// An index: a sum of digits times coefficients, and a rest that is the same for all elements and programs.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Form {
    pub(super) digits: Vec<(Digit, Polynomial)>,
    pub(super) rest: Polynomial,
    /// The divisors that the digits no longer show. Their products must be exact.
    pub(super) exact: Vec<Factors>,
}

impl Form {
    fn add(&mut self, digit: Digit, coefficient: &Polynomial) {
        match self.digits.iter_mut().find(|(known, _)| *known == digit) {
            Some((_, sum)) => *sum = sum.plus(coefficient),
            None => self.digits.push((digit, coefficient.clone())),
        }
    }

    /// Is it the flat index?
    pub(super) fn is_whole(&self) -> bool {
        self.as_digit().is_some_and(|digit| digit.low.is_one() && digit.size.is_none())
    }

    /// The digit, if the index is nothing else.
    fn as_digit(&self) -> Option<&Digit> {
        match &self.digits[..] {
            [(digit, coefficient)] if coefficient.is(1) && self.rest.is(0) => Some(digit),
            _ => None,
        }
    }
}

/// The flat index of a kernel, `program * extent + position`, and the forms of its indices.
pub(super) struct Digits<'a> {
    func: &'a Function,
    /// The number of the program.
    program: Value,
    /// The values that depend on the number of the program.
    varying: &'a FxHashSet<Value>,
    /// The extent of all tiles.
    extent: i64,
    facts: AffineFacts,
    known: FxHashMap<Value, Option<Form>>,
}

impl<'a> Digits<'a> {
    pub(super) fn new(func: &'a Function, program: Value, varying: &'a FxHashSet<Value>, extent: i64) -> Digits<'a> {
        Digits { func, program, varying, extent, facts: AffineFacts::over_tiles(), known: FxHashMap::default() }
    }

    /// A product of scalars as a polynomial.
    pub(super) fn polynomial(&mut self, factors: &Factors) -> Option<Polynomial> {
        factors.polynomial(self.func, &mut self.facts)
    }

    /// The form of a tile of indices. The forms of the tiles in front of it are known, so the recursion is shallow.
    pub(super) fn form(&mut self, value: Value) -> Option<Form> {
        if let Some(form) = self.known.get(&value) {
            return form.clone();
        }
        let form = self.computed(value);
        self.known.insert(value, form.clone());
        form
    }

    fn computed(&mut self, value: Value) -> Option<Form> {
        let func = self.func;
        let affine = self.facts.get(func, value)?;
        let [stride] = &affine.strides[..] else { return None };
        let varying = self.varying;
        let is_fixed = |scalar: &Value| !varying.contains(scalar) && func.ty(*scalar).is_scalar();
        let by_program = affine.start.coefficient(self.program)?;
        if by_program != stride.scaled(self.extent) || !stride.scalars().all(|scalar| is_fixed(&scalar)) {
            return None;
        }
        let mut form = Form { digits: Vec::new(), rest: Polynomial::constant(affine.start.constant), exact: Vec::new() };
        if !stride.is(0) {
            form.add(Digit::whole(), stride);
        }
        let program = self.program;
        for (factors, number) in affine.start.terms.iter().filter(|(factors, _)| !factors.contains(&program)) {
            let (scalars, tiles): (Product, Product) = factors.iter().copied().partition(|factor| func.ty(*factor).is_scalar());
            if !scalars.iter().all(is_fixed) {
                return None;
            }
            let product = if scalars.is_empty() {
                Polynomial::constant(*number)
            } else {
                Polynomial { terms: vec![(scalars, *number)], constant: 0 }
            };
            match tiles[..] {
                [] => form.rest = form.rest.plus(&product),
                [tile] => {
                    let (digit, exact) = self.digit(tile)?;
                    form.add(digit, &product);
                    form.exact.extend(exact);
                }
                _ => return None,
            }
        }
        self.merge(&mut form);
        Some(form)
    }

    /// The digit that a division gives, and the divisors that it does not show.
    fn digit(&mut self, tile: Value) -> Option<(Digit, Vec<Factors>)> {
        let Some(&Op::Binary { op: op @ (BinaryOp::Div | BinaryOp::Rem), lhs, rhs }) = self.func.def_op(tile) else { return None };
        let by = Factors::of_divisor(self.func, divisor(self.func, rhs)?);
        if by.scalars().iter().any(|scalar| self.varying.contains(scalar)) {
            return None;
        }
        let form = self.form(lhs)?;
        let dividend = form.as_digit()?;
        let mut exact = form.exact.clone();
        if op == BinaryOp::Rem {
            // One of two remainders is left.
            exact.extend(dividend.size.iter().flat_map(|size| [size.clone(), by.clone()]));
        }
        Some((dividend.divided(op, by)?, exact))
    }

    /// Merges digits that follow each other and whose coefficients put them together again.
    fn merge(&mut self, form: &mut Form) {
        while let Some((lower, upper, merged)) = self.mergeable(form) {
            let between = form.digits[upper].0.low.clone();
            form.exact.push(between);
            form.digits[lower].0 = merged;
            form.digits.remove(upper);
        }
        form.digits.retain(|(_, coefficient)| !coefficient.is(0));
    }

    fn mergeable(&mut self, form: &Form) -> Option<(usize, usize, Digit)> {
        for (lower, (digit, coefficient)) in form.digits.iter().enumerate() {
            let Some(size) = digit.size.as_ref().filter(|size| !size.is_one()) else { continue };
            let Some(next) = self.polynomial(size).and_then(|size| coefficient.times(&size)) else { continue };
            let low = digit.low.times(size);
            let found = form.digits.iter().position(|(upper, coefficient)| upper.low == low && *coefficient == next);
            if let Some(upper) = found {
                let size = form.digits[upper].0.size.as_ref().map(|upper| size.times(upper));
                return Some((lower, upper, Digit { low: digit.low.clone(), size }));
            }
        }
        None
    }
}

/// A digit of the row or of the column of the flat index: `index / low % size`, or `index / low` without a size.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Part {
    /// 0 for the row, 1 for the column.
    pub(super) axis: usize,
    pub(super) low: Factors,
    pub(super) size: Option<Factors>,
}

/// An index as a sum of digits of the row and of the column, and a rest that is the same for all elements and programs.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    pub(super) parts: Vec<(Part, Polynomial)>,
    pub(super) rest: Polynomial,
    /// As in [`Form`].
    pub(super) exact: Vec<Factors>,
}

impl Digits<'_> {
    /// The form of an index by rows and columns, where `flat = row * period + column`.
    pub(super) fn parts(&mut self, value: Value, period: &Factors) -> Option<Parts> {
        let form = self.form(value)?;
        let mut parts = Vec::new();
        for (Digit { low, size }, coefficient) in form.digits {
            if let Some(low) = low.without(period) {
                parts.push((Part { axis: 0, low, size }, coefficient));
                continue;
            }
            // A row has `rest` units of the digit.
            let rest = period.without(&low)?;
            if let Some(more) = size.as_ref().and_then(|size| rest.without(size)) {
                // A row begins with the digit 0. A quotient of the column is less than `rest`.
                parts.push((Part { axis: 1, low, size: size.filter(|_| !more.is_one()) }, coefficient));
                continue;
            }
            let size = match size {
                Some(size) => Some(size.without(&rest)?),
                None => None,
            };
            let of_row = coefficient.times(&self.polynomial(&rest)?)?;
            parts.push((Part { axis: 0, low: Factors::one(), size }, of_row));
            parts.push((Part { axis: 1, low, size: None }, coefficient));
        }
        Some(Parts { parts, rest: form.rest, exact: form.exact })
    }
}
