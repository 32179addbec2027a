//! Sums over variables: integers `constant + coefficient * variable + ..` with numeric coefficients.
//!
//! Variables count from 0: the coordinates of a program in the grid, the iterations of a loop, the indices along the axes of a tile. Sums
//! are exact, not modulo 2^64: the caller checks whether a sum [fits](Variables::fits) the type in which the kernel computes.
//!
//! ```text
//! program_id(0) * 1024 + arange(0, 1024)     0 + 1024 * v0, axes [1]         v0 < the number of programs
//! v0 / 8 * 8 + v0 % 8                        0 + 8 * v1 + 1 * v2             v0 = 8 * v1 + v2, v2 < 8
//! ```

use kernel_lang::dtype::Dtype;

/// A variable with the same value for all elements of a tile: its number in [`Variables`].
pub(super) type Variable = usize;

/// The maximum number of terms of a sum, to limit the cost.
const MOST_TERMS: usize = 16;

/// A sum. Each variable occurs at most once, in order, with a nonzero coefficient.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Sum {
    pub(super) constant: i128,
    pub(super) terms: Vec<(Variable, i128)>,
    /// The coefficients of the indices along a tile's axes; empty for a scalar.
    pub(super) axes: Vec<i128>,
}

/// The range of a variable, and its parts.
#[derive(Clone, Copy, Debug)]
struct Range {
    /// An upper bound that the variable does not reach; at least 2.
    count: i128,
    /// If the variable is split as `divisor * quotient + remainder`: these three.
    parts: Option<(i128, Variable, Variable)>,
}

/// The variables of one launch.
#[derive(Debug, Default)]
pub(super) struct Variables {
    ranges: Vec<Range>,
}

impl Sum {
    /// A number, for all elements of a tile of this rank.
    pub(super) fn constant(constant: i128, rank: usize) -> Sum {
        Sum { constant, terms: Vec::new(), axes: vec![0; rank] }
    }

    /// A variable, for all elements of a tile of this rank.
    fn variable(variable: Variable, rank: usize) -> Sum {
        Sum { constant: 0, terms: vec![(variable, 1)], axes: vec![0; rank] }
    }

    /// The number that equals the sum, if the sum is constant.
    pub(super) fn as_constant(&self) -> Option<i128> {
        (self.terms.is_empty() && self.axes.iter().all(|axis| *axis == 0)).then_some(self.constant)
    }

    /// `self + factor * other`, both with the same number of axes. `None` if the sum is too long or a number too large.
    pub(super) fn plus(&self, other: &Sum, factor: i128) -> Option<Sum> {
        if self.axes.len() != other.axes.len() {
            return None;
        }
        let add = |own: i128, other: i128| other.checked_mul(factor).and_then(|other| own.checked_add(other));
        let mut sum = Sum { constant: add(self.constant, other.constant)?, terms: self.terms.clone(), axes: Vec::new() };
        for (variable, coefficient) in &other.terms {
            match sum.terms.binary_search_by_key(variable, |(known, _)| *known) {
                Ok(at) => sum.terms[at].1 = add(sum.terms[at].1, *coefficient)?,
                Err(at) => sum.terms.insert(at, (*variable, add(0, *coefficient)?)),
            }
        }
        sum.terms.retain(|(_, coefficient)| *coefficient != 0);
        sum.axes = self.axes.iter().zip(&other.axes).map(|(own, other)| add(*own, *other)).collect::<Option<_>>()?;
        (sum.terms.len() <= MOST_TERMS).then_some(sum)
    }

    /// The product with a number; `None` if a number is too large.
    pub(super) fn times(&self, factor: i128) -> Option<Sum> {
        Sum::constant(0, self.axes.len()).plus(self, factor)
    }

    /// Splits the sum by a positive divisor into the terms that are multiples of it, divided by it, and the rest: `self = divisor *
    /// multiples + rest`.
    fn split(&self, divisor: i128) -> (Sum, Sum) {
        let (multiples, rest): (Vec<_>, Vec<_>) = self.terms.iter().copied().partition(|(_, coefficient)| coefficient % divisor == 0);
        let pick = |is_multiple: bool| {
            move |axis: &i128| match (axis % divisor == 0, is_multiple) {
                (true, true) => axis / divisor,
                (false, false) => *axis,
                _ => 0,
            }
        };
        let multiples = multiples.into_iter().map(|(variable, coefficient)| (variable, coefficient / divisor)).collect();
        let axes = |is_multiple: bool| self.axes.iter().map(pick(is_multiple)).collect();
        (
            Sum { constant: self.constant.div_euclid(divisor), terms: multiples, axes: axes(true) },
            Sum { constant: self.constant.rem_euclid(divisor), terms: rest, axes: axes(false) },
        )
    }
}

impl Variables {
    /// A new variable, less than `count`; the constant 0 if `count` is less than 2.
    pub(super) fn add(&mut self, count: i128) -> Sum {
        if count < 2 {
            return Sum::constant(0, 0);
        }
        self.ranges.push(Range { count, parts: None });
        Sum::variable(self.ranges.len() - 1, 0)
    }

    /// The largest value of a variable; the smallest is 0.
    pub(super) fn last(&self, variable: Variable) -> i128 {
        self.ranges[variable].count - 1
    }

    /// The variables into which a variable was split; the variable itself if it was not split.
    pub(super) fn parts(&self, variable: Variable) -> Vec<Variable> {
        let (mut whole, mut parts) = (vec![variable], Vec::new());
        while let Some(variable) = whole.pop() {
            match self.ranges[variable].parts {
                Some((_, quotient, remainder)) => whole.extend([quotient, remainder]),
                None => parts.push(variable),
            }
        }
        parts
    }

    /// The smallest and the largest value of a sum; `None` if a number is too large.
    pub(super) fn range(&self, sum: &Sum, extents: &[usize]) -> Option<(i128, i128)> {
        let terms = sum.terms.iter().map(|(variable, coefficient)| (*coefficient, self.last(*variable)));
        let axes = sum.axes.iter().zip(extents).map(|(coefficient, extent)| (*coefficient, *extent as i128 - 1));
        terms.chain(axes).try_fold((sum.constant, sum.constant), |(low, high), (coefficient, last)| {
            let end = coefficient.checked_mul(last)?;
            Some((low.checked_add(end.min(0))?, high.checked_add(end.max(0))?))
        })
    }

    /// Whether every value of the sum fits this integer type.
    pub(super) fn fits(&self, sum: &Sum, extents: &[usize], dtype: Dtype) -> bool {
        let (least, most) = match dtype.bits() {
            _ if !dtype.is_int() => return false,
            bits if dtype.is_signed_int() => (-1 << (bits - 1), (1 << (bits - 1)) - 1),
            bits => (0, (1 << bits) - 1),
        };
        self.range(sum, extents).is_some_and(|(low, high)| least <= low && high <= most)
    }

    /// The sum in terms of variables that are not split; `None` if it is too long.
    pub(super) fn expanded(&self, sum: &Sum) -> Option<Sum> {
        let mut sum = sum.clone();
        while let Some(at) = sum.terms.iter().position(|(variable, _)| self.ranges[*variable].parts.is_some()) {
            let (variable, coefficient) = sum.terms.remove(at);
            let (divisor, quotient, remainder) = self.ranges[variable].parts?;
            let rank = sum.axes.len();
            sum = sum.plus(&Sum::variable(quotient, rank), coefficient.checked_mul(divisor)?)?;
            sum = sum.plus(&Sum::variable(remainder, rank), coefficient)?;
        }
        Some(sum)
    }

    /// Quotient and remainder of a nonnegative sum and a positive divisor, if both are sums. A variable may be split in two: `v0 / 8` and
    /// `v0 % 8`.
    pub(super) fn divided(&mut self, sum: &Sum, extents: &[usize], divisor: i128) -> Option<(Sum, Sum)> {
        let sum = self.expanded(sum)?;
        let (multiples, rest) = sum.split(divisor);
        let is_below =
            |variables: &Variables, sum: &Sum, end: i128| variables.range(sum, extents).is_some_and(|(low, high)| 0 <= low && high < end);
        if is_below(self, &rest, divisor) {
            return Some((multiples, rest));
        }
        let rank = sum.axes.len();
        if let [(variable, 1)] = rest.terms[..]
            && rest == Sum::variable(variable, rank)
        {
            // The variable is not always below the divisor, so both parts have at least two values.
            let quotient = self.ranges.len();
            self.ranges.push(Range { count: self.last(variable) / divisor + 1, parts: None });
            self.ranges.push(Range { count: divisor, parts: None });
            self.ranges[variable].parts = Some((divisor, quotient, quotient + 1));
            return Some((multiples.plus(&Sum::variable(quotient, rank), 1)?, Sum::variable(quotient + 1, rank)));
        }
        // (factor * inner + small) / divisor = inner / (divisor / factor), if small < factor
        let coefficients = rest.terms.iter().map(|(_, coefficient)| coefficient).chain(&rest.axes);
        for factor in coefficients.copied().filter(|factor| *factor > 1 && divisor % factor == 0).collect::<Vec<_>>() {
            let (inner, small) = rest.split(factor);
            if is_below(self, &small, factor) {
                let (quotient, remainder) = self.divided(&inner, extents, divisor / factor)?;
                return Some((multiples.plus(&quotient, 1)?, small.plus(&remainder, factor)?));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_knows_its_range_and_which_types_hold_it() {
        let mut variables = Variables::default();
        let program = variables.add(100);
        let mut sum = program.times(1024).unwrap();
        sum.axes = vec![-1];
        assert_eq!(variables.range(&sum, &[1024]), Some((-1023, 99 * 1024)));
        assert!(variables.fits(&sum, &[1024], Dtype::I32));
        assert!(!variables.fits(&sum, &[1024], Dtype::U32) && !variables.fits(&sum, &[1024], Dtype::I16));
        assert_eq!(variables.add(1), Sum::constant(0, 0), "a variable of one value is a number");
    }

    #[test]
    fn a_variable_is_split_once_for_divisors_that_divide_each_other() {
        let mut variables = Variables::default();
        let v = variables.add(60);
        let (row, column) = variables.divided(&v, &[], 4).unwrap();
        assert_eq!(variables.expanded(&v), row.times(4).unwrap().plus(&column, 1));
        assert_eq!(variables.range(&row, &[]), Some((0, 14)));
        // v / 12 is row / 3, and v % 12 is 4 * (row % 3) + column.
        let (outer, rest) = variables.divided(&v, &[], 12).unwrap();
        let (outer_of_row, rest_of_row) = variables.divided(&row, &[], 3).unwrap();
        assert_eq!(outer, outer_of_row);
        assert_eq!(variables.expanded(&rest), column.plus(&rest_of_row, 4));
        // 4 does not divide 5: no result.
        assert_eq!(variables.divided(&v, &[], 5), None);
    }

    #[test]
    fn multiples_leave_a_division() {
        let mut variables = Variables::default();
        let block = variables.add(10).times(64).unwrap();
        let (quotient, remainder) = variables.divided(&block.plus(&Sum::constant(63, 0), 1).unwrap(), &[], 64).unwrap();
        assert_eq!((quotient.terms[0].1, quotient.constant, remainder), (1, 0, Sum::constant(63, 0)));
        assert_eq!(variables.divided(&block.plus(&Sum::constant(65, 0), 1).unwrap(), &[], 64).unwrap().0.constant, 1);
    }
}
