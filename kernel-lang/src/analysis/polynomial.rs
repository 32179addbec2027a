//! Polynomials: sums of products of scalars. The starts and the strides of affine indices are polynomials.
//!
//! ```text
//! %5 = mul %pid, (const 64)
//! %6 = add %5, (const 3)         64 * %pid + 3
//! times %stride                  64 * %pid * %stride + 3 * %stride
//! ```
//!
//! Arithmetic is modulo 2^64, like that of `i64`. So a polynomial equals the value of the ops, whatever values the scalars have.

use crate::ir::{BinaryOp, Builder, Few, Value};

/// Products of more factors are not tracked.
const MOST_FACTORS: usize = 4;

/// The scalars of a product, sorted. Nearly all products are of one scalar.
pub type Product = Few<Value>;

/// A sum of products. Polynomials with equal parts are equal, whatever values the scalars have.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Polynomial {
    /// Products of `i64` scalars with their coefficients: sorted, each product once, none with coefficient 0.
    pub terms: Vec<(Product, i64)>,
    /// The constant term.
    pub constant: i64,
}

impl Polynomial {
    /// Polynomials of more terms are not tracked.
    pub const MOST_TERMS: usize = 16;

    /// Has the polynomial few enough terms, and short enough products, to be tracked?
    pub fn is_short(&self) -> bool {
        self.terms.len() <= Polynomial::MOST_TERMS && self.terms.iter().all(|(factors, _)| factors.len() <= MOST_FACTORS)
    }

    /// A constant.
    pub fn constant(constant: i64) -> Polynomial {
        Polynomial { terms: Vec::new(), constant }
    }

    /// A scalar.
    pub fn scalar(value: Value) -> Polynomial {
        Polynomial { terms: vec![(Few::One(value), 1)], constant: 0 }
    }

    /// The value, if it is a constant.
    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// Is it the constant `number`?
    pub fn is(&self, number: i64) -> bool {
        self.as_constant() == Some(number)
    }

    /// The same polynomial of other scalars.
    #[must_use]
    pub fn map(&self, scalar: &dyn Fn(Value) -> Value) -> Polynomial {
        let product = |(factors, coefficient): &(Product, i64)| {
            let mut factors: Product = factors.iter().map(|factor| scalar(*factor)).collect();
            factors.sort_unstable();
            Polynomial { terms: vec![(factors, *coefficient)], constant: 0 }
        };
        self.terms.iter().map(product).fold(Polynomial::constant(self.constant), |sum, term| sum.plus(&term))
    }

    /// The scalars of all terms.
    pub fn scalars(&self) -> impl Iterator<Item = Value> {
        self.terms.iter().flat_map(|(factors, _)| factors.iter().copied())
    }

    /// The coefficient of `value`, if the polynomial is linear in `value`.
    pub fn coefficient(&self, value: Value) -> Option<Polynomial> {
        let mut coefficient = Polynomial::default();
        for (factors, number) in self.terms.iter().filter(|(factors, _)| factors.contains(&value)) {
            let rest: Product = factors.iter().copied().filter(|factor| *factor != value).collect();
            match (factors.len() - rest.len(), rest.is_empty()) {
                (1, true) => coefficient.constant = coefficient.constant.wrapping_add(*number),
                (1, false) => coefficient.add_term(&rest, *number),
                _ => return None,
            }
        }
        Some(coefficient)
    }

    /// Would the polynomial be negative if every scalar were positive?
    pub fn looks_negative(&self) -> bool {
        let mut coefficients = self.terms.iter().map(|(_, coefficient)| *coefficient).chain((self.constant != 0).then_some(self.constant));
        !self.is(0) && coefficients.all(|coefficient| coefficient < 0)
    }

    /// Is it divisible by `divisor`, a power of two, whatever values the scalars have?
    pub fn is_multiple_of(&self, divisor: i64) -> bool {
        self.constant % divisor == 0 && self.terms.iter().all(|(_, coefficient)| coefficient % divisor == 0)
    }

    /// The sum of two polynomials.
    #[must_use]
    pub fn plus(&self, other: &Polynomial) -> Polynomial {
        let mut sum = self.clone();
        other.terms.iter().for_each(|(factors, coefficient)| sum.add_term(factors, *coefficient));
        sum.constant = sum.constant.wrapping_add(other.constant);
        sum
    }

    /// The difference of two polynomials.
    #[must_use]
    pub fn minus(&self, other: &Polynomial) -> Polynomial {
        self.plus(&other.scaled(-1))
    }

    /// The product with a number.
    #[must_use]
    pub fn scaled(&self, factor: i64) -> Polynomial {
        let mut scaled = Polynomial::constant(self.constant.wrapping_mul(factor));
        self.terms.iter().for_each(|(factors, coefficient)| scaled.add_term(factors, coefficient.wrapping_mul(factor)));
        scaled
    }

    /// The product of two polynomials, unless it is too long.
    pub fn times(&self, other: &Polynomial) -> Option<Polynomial> {
        let mut product = self.scaled(other.constant);
        for (factors, coefficient) in &other.terms {
            product.add_term(factors, coefficient.wrapping_mul(self.constant));
            for (own, own_coefficient) in &self.terms {
                let mut all: Product = own.iter().chain(factors).copied().collect();
                all.sort_unstable();
                product.add_term(&all, coefficient.wrapping_mul(*own_coefficient));
            }
        }
        product.is_short().then_some(product)
    }

    fn add_term(&mut self, factors: &[Value], coefficient: i64) {
        match self.terms.binary_search_by(|(known, _)| known[..].cmp(factors)) {
            Ok(found) => {
                self.terms[found].1 = self.terms[found].1.wrapping_add(coefficient);
                if self.terms[found].1 == 0 {
                    self.terms.remove(found);
                }
            }
            Err(index) if coefficient != 0 => self.terms.insert(index, (factors.iter().copied().collect(), coefficient)),
            Err(_) => {}
        }
    }

    /// Appends ops that compute the polynomial.
    pub fn value(&self, b: &mut Builder<'_>) -> Value {
        let product = |b: &mut Builder<'_>, factors: &Product| {
            let product = factors.iter().copied().reduce(|product, factor| b.binary(BinaryOp::Mul, product, factor));
            product.expect("a product has factors")
        };
        let is_subtracted = |(_, coefficient): &&(Product, i64)| *coefficient == -1;
        let mut sum: Option<Value> = None;
        for (factors, coefficient) in self.terms.iter().filter(|term| !is_subtracted(term)) {
            let mut term = product(b, factors);
            if *coefficient != 1 {
                let coefficient = b.index((*coefficient).into());
                term = b.binary(BinaryOp::Mul, term, coefficient);
            }
            sum = Some(sum.map_or(term, |sum| b.binary(BinaryOp::Add, sum, term)));
        }
        let mut sum = match sum {
            Some(sum) if self.constant == 0 => sum,
            Some(sum) => {
                let constant = b.index(self.constant.into());
                b.binary(BinaryOp::Add, sum, constant)
            }
            None => b.index(self.constant.into()),
        };
        for (factors, _) in self.terms.iter().filter(is_subtracted) {
            let term = product(b, factors);
            sum = b.binary(BinaryOp::Sub, sum, term);
        }
        sum
    }
}
