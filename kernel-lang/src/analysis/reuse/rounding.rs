//! Rounding: the index of a row that begins at a multiple of a constant, as it would be if the row began anywhere.
//!
//! ```text
//! load %x, %pid * %n / 16 * 16 + i            counts as %pid * %n + i
//! load %x, cdiv(%pid * %n, 16) * 16 + i       so does this
//! load %x, %pid / 16 * 16 + i                 stays: 16 programs have one index
//! ```
//!
//! Rounding makes neighbouring rows overlap by less than the constant. The constant is a cache line at most, and rows that begin anywhere share
//! a line with their neighbours, too. But if rows are nearer to each other than the constant, several begin at one multiple. So a distance of
//! rows that is known must be a multiple of the constant. One that is not known, such as `%n`, is taken to be larger.

use crate::analysis::polynomial::Polynomial;
use crate::dtype::Dtype;
use crate::ir::{BinaryOp, Elem, Op, Value};

use super::{Indices, LINE};

/// A scalar from which rounding follows: `unit` times the scalar is `number`, or less by less than `multiple`.
///
/// ```text
/// scalar         unit    number
/// %x / 16        16      %x
/// %x & -16       1       %x
/// %x % 16        -1      0          as in %x - %x % 16
/// ```
struct Rounded {
    number: Polynomial,
    multiple: i64,
    unit: i64,
}

impl Indices<'_> {
    /// The start of an index of elements of so many bytes, as it is without rounding.
    pub(super) fn unrounded(&mut self, start: &Polynomial, bytes: i128) -> Polynomial {
        let (mut unrounded, mut steps) = (start.clone(), Vec::new());
        let parts = self.parts(start);
        let factor = |part: Value| start.coefficient(part)?.as_constant();
        for &part in &parts {
            let Some((factor, rounded)) = factor(part).zip(self.rounded(part)) else { continue };
            let times = factor.checked_div(rounded.unit).unwrap_or_default();
            let is_near = (i128::from(times) * i128::from(rounded.multiple)).saturating_mul(bytes) <= LINE;
            if times > 0 && times * rounded.unit == factor && is_near {
                unrounded = unrounded.minus(&Polynomial::scalar(part).scaled(factor)).plus(&rounded.number.scaled(times));
                steps.push(times * rounded.multiple);
            }
        }
        // Rounding up adds one to the quotient if there is a remainder.
        for &part in parts.iter().filter(|part| self.is_predicate(**part)) {
            if let Some(step) = factor(part).filter(|step| steps.contains(step)) {
                unrounded = unrounded.minus(&Polynomial::scalar(part).scaled(step));
            }
        }
        unrounded
    }

    /// The number that a scalar rounds, unless rows are nearer to each other than numbers that are rounded alike.
    fn rounded(&mut self, scalar: Value) -> Option<Rounded> {
        let &Op::Binary { op, lhs, rhs } = self.func.def_op(scalar).filter(|_| self.func.ty(scalar).is_scalar())? else { return None };
        let constant = self.facts.get(self.func, rhs)?.as_constant()?;
        let number = self.facts.get(self.func, lhs)?.start.clone();
        let rounded = match op {
            BinaryOp::Div => Rounded { number: number.clone(), multiple: constant, unit: constant },
            BinaryOp::Rem => Rounded { number: Polynomial::default(), multiple: constant, unit: -1 },
            BinaryOp::And if constant.unsigned_abs().is_power_of_two() => {
                Rounded { number: number.clone(), multiple: constant.checked_neg()?, unit: 1 }
            }
            _ => return None,
        };
        if rounded.multiple <= 0 {
            return None;
        }
        for part in self.parts(&number) {
            let term = self.term(part, &number.coefficient(part)?)?;
            if term.factor.is_some_and(|(scalars, step)| scalars.is_empty() && step % i128::from(rounded.multiple) != 0) {
                return None;
            }
        }
        Some(rounded)
    }

    /// Is the value a comparison that counts as 0 or 1?
    fn is_predicate(&self, value: Value) -> bool {
        matches!(self.func.def_op(value), Some(Op::Cast { x }) if self.func.ty(*x).elem() == &Elem::Dtype(Dtype::Bool))
    }
}
