//! Products of scalars, such as the divisor in `offsets / (w * h)`, by their factors: which product is a multiple of which follows from them.

use crate::analysis::affine::AffineFacts;
use crate::analysis::polynomial::Polynomial;
use crate::analysis::ranges::Divisor;
use crate::ir::{BinaryOp, Function, Op, Value};

/// The most factors that are told apart.
const MOST_FACTORS: usize = 16;

/// A product of scalars and of a constant that is at least 1. Equal products of scalars have equal factors.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Factors {
    /// The factors that are no constants, in order.
    scalars: Vec<Value>,
    constant: i128,
}

impl Factors {
    /// The product 1.
    pub fn one() -> Factors {
        Factors { scalars: Vec::new(), constant: 1 }
    }

    /// The factors of a scalar.
    pub fn of(func: &Function, scalar: Value) -> Factors {
        let mut factors = Factors::one();
        let mut next = vec![scalar];
        while let Some(value) = next.pop() {
            match func.def_op(value) {
                Some(Op::Const { value }) if let Some(number) = value.as_int().filter(|number| (1..1 << 31).contains(number)) => {
                    factors.constant = factors.constant.saturating_mul(number);
                }
                Some(Op::Binary { op: BinaryOp::Mul, lhs, rhs }) if factors.scalars.len() + next.len() < MOST_FACTORS => {
                    next.extend([*lhs, *rhs]);
                }
                _ => factors.scalars.push(value),
            }
        }
        factors.scalars.sort();
        factors
    }

    /// The factors of a divisor.
    pub fn of_divisor(func: &Function, divisor: Divisor) -> Factors {
        match divisor {
            Divisor::Scalar(scalar) => Factors::of(func, scalar),
            Divisor::Constant(constant) => Factors { scalars: Vec::new(), constant: constant.into() },
        }
    }

    /// The factors that are no constants, in order.
    pub fn scalars(&self) -> &[Value] {
        &self.scalars
    }

    /// The constant factor.
    pub fn constant(&self) -> i128 {
        self.constant
    }

    /// Is the product 1, whatever values the scalars have?
    pub fn is_one(&self) -> bool {
        self.scalars.is_empty() && self.constant == 1
    }

    /// The product of both.
    #[must_use]
    pub fn times(&self, other: &Factors) -> Factors {
        let mut scalars = [&self.scalars[..], &other.scalars].concat();
        scalars.sort();
        Factors { scalars, constant: self.constant.saturating_mul(other.constant) }
    }

    /// The quotient, if this product is a multiple of `part` whatever values the scalars have.
    pub fn without(&self, part: &Factors) -> Option<Factors> {
        let mut rest = self.clone();
        for scalar in &part.scalars {
            let at = rest.scalars.iter().position(|own| own == scalar)?;
            rest.scalars.remove(at);
        }
        (rest.constant % part.constant == 0).then(|| Factors { constant: rest.constant / part.constant, ..rest })
    }

    /// The product as a polynomial; `None` if it is too long.
    pub fn polynomial(&self, func: &Function, facts: &mut AffineFacts) -> Option<Polynomial> {
        let constant = Polynomial::constant(i64::try_from(self.constant).ok()?);
        self.scalars.iter().try_fold(constant, |product, scalar| product.times(&facts.get(func, *scalar)?.start))
    }
}
