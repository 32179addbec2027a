//! Disjointness proof: whether two accesses of two different programs always access different elements.
//!
//! Both offsets are sums over variables, and each program has its own values of the variables. The proof treats the variables as digits,
//! the largest coefficient first. If `|coefficient|` exceeds the range of the remaining sum, equal offsets have equal values of that
//! variable, and the proof drops the variable. If it has dropped all coordinates of the grid, equal offsets belong to the same program.
//!
//! ```text
//! store y + 1024 * p + i            i < 1024              1024 > 1023: equal p
//! store y + 1000 * p + i            i < 1024              1000 <= 1023: may conflict
//!                                   i < 1024, i < 1000    1000 > 999: equal p (a mask of columns)
//! store y + 64 * g * k + 64 * p + i i < 64, p < g         64 * g > 64 * (g - 1) + 63: equal k; 64 > 63: equal p
//! store y + i                       any p                 nothing implies equal p: may conflict
//! ```

use crate::conflicts::sum::{Sum, Variable, Variables};

/// The ids of the indices along axes start here, above those of variables.
const AXES: usize = usize::MAX / 2;

/// The elements that an access may touch: `constant + sum of coefficient * value` over its digits, where every limit holds.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Reach {
    constant: i128,
    digits: Vec<Digit>,
    limits: Vec<Limit>,
}

/// A variable, or the index along an axis of the tile.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Digit {
    id: usize,
    coefficient: i128,
    low: i128,
    high: i128,
}

/// `sum of coefficient * value <= bound`, with a coefficient for each digit.
#[derive(Clone, PartialEq, Debug)]
struct Limit {
    coefficients: Vec<i128>,
    bound: i128,
}

impl Digit {
    /// The range of `coefficient` times the digit's value.
    fn times(&self, coefficient: i128) -> Option<(i128, i128)> {
        let (a, b) = (coefficient.checked_mul(self.low)?, coefficient.checked_mul(self.high)?);
        Some((a.min(b), a.max(b)))
    }

    fn as_constant(&self) -> Option<i128> {
        (self.low == self.high).then_some(self.low)
    }
}

impl Reach {
    /// The reach of an access at `offset`, for those elements of a tile for which no sum of `limits` is positive. `programs` are the
    /// variables that distinguish programs. `None` if a number is too large.
    pub(super) fn of(variables: &Variables, offset: &Sum, limits: &[Sum], extents: &[usize], programs: &[Variable]) -> Option<Reach> {
        let offset = variables.expanded(offset)?;
        let limits: Vec<Sum> = limits.iter().filter_map(|limit| variables.expanded(limit)).collect();
        let mut reach = Reach { constant: offset.constant, digits: Vec::new(), limits: Vec::new() };
        let limited = limits.iter().flat_map(|limit| &limit.terms).map(|(variable, _)| *variable);
        for variable in offset.terms.iter().map(|(variable, _)| *variable).chain(programs.iter().copied()).chain(limited) {
            if reach.digits.iter().all(|digit| digit.id != variable) {
                let coefficient = coefficient(&offset, variable);
                reach.digits.push(Digit { id: variable, coefficient, low: 0, high: variables.last(variable) });
            }
        }
        for (axis, (coefficient, extent)) in offset.axes.iter().zip(extents).enumerate() {
            reach.digits.push(Digit { id: AXES + axis, coefficient: *coefficient, low: 0, high: *extent as i128 - 1 });
        }
        for limit in limits.iter().filter(|limit| limit.axes.len() == offset.axes.len()) {
            let coefficients = reach.digits.iter().map(|digit| coefficient(limit, digit.id)).collect();
            reach.limits.push(Limit { coefficients, bound: limit.constant.checked_neg()? });
        }
        reach.tighten();
        Some(reach)
    }

    /// Whether the access touches no element.
    fn is_empty(&self) -> bool {
        let is_impossible = |limit: &Limit| limit.bound < 0 && limit.coefficients.iter().all(|coefficient| *coefficient == 0);
        self.digits.iter().any(|digit| digit.low > digit.high) || self.limits.iter().any(is_impossible)
    }

    /// Restricts the ranges of the digits by the limits.
    fn tighten(&mut self) {
        for Limit { coefficients, bound } in &self.limits {
            for at in 0..self.digits.len() {
                let mut others = (0..self.digits.len()).filter(|other| *other != at);
                let room = others.try_fold(*bound, |room, other| room.checked_sub(self.digits[other].times(coefficients[other])?.0));
                let (Some(room), Digit { low, high, .. }) = (room, &mut self.digits[at]) else { continue };
                match coefficients[at] {
                    0 => {}
                    coefficient if coefficient > 0 => *high = (*high).min(room.div_euclid(coefficient)),
                    // value >= room / coefficient, rounded up
                    coefficient => *low = (*low).max(-room.div_euclid(-coefficient)),
                }
            }
        }
    }

    /// The smallest and the largest sum of the constant and the remaining digits.
    fn range(&self, left: &[bool]) -> Option<(i128, i128)> {
        let (mut low, mut high) = (self.constant, self.constant);
        for (digit, _) in self.digits.iter().zip(left).filter(|(_, left)| **left) {
            let (least, most) = digit.times(digit.coefficient)?;
            (low, high) = (low.checked_add(least)?, high.checked_add(most)?);
        }
        // A limit is used only if it shares no digit with a limit that is already used.
        let mut used = [vec![false; left.len()], vec![false; left.len()]];
        for limit in &self.limits {
            if let Some((factor, digits, saved)) = self.saved(limit, left)
                && let used = &mut used[usize::from(factor > 0)]
                && digits.iter().all(|digit| !used[*digit])
            {
                digits.iter().for_each(|digit| used[*digit] = true);
                if factor > 0 {
                    high = high.checked_sub(saved)?;
                } else {
                    low = low.checked_add(saved)?;
                }
            }
        }
        Some((low, high))
    }

    /// The amount by which a limit moves an end of the range, the upper end if the factor is positive, and the digits at which the offset's
    /// coefficients are the limit's coefficients times the factor.
    fn saved(&self, limit: &Limit, left: &[bool]) -> Option<(i128, Vec<usize>, i128)> {
        let both = || self.digits.iter().zip(&limit.coefficients).enumerate().filter(|(at, (_, own))| left[*at] && **own != 0);
        let (_, (largest, own)) = both().max_by_key(|(_, (_, own))| own.abs())?;
        let factor = (largest.coefficient % own == 0).then_some(largest.coefficient / own).filter(|factor| *factor != 0)?;
        let digits: Vec<usize> =
            both().filter(|(_, (digit, own))| own.checked_mul(factor) == Some(digit.coefficient)).map(|(at, _)| at).collect();
        let (mut most, mut bound) = (0i128, limit.bound);
        for (at, digit) in self.digits.iter().enumerate() {
            let (least, greatest) = digit.times(limit.coefficients[at])?;
            if digits.contains(&at) {
                most = most.checked_add(greatest)?;
            } else {
                bound = bound.checked_sub(least)?;
            }
        }
        let saved = most.checked_sub(bound)?.checked_mul(factor.abs())?;
        (saved > 0).then_some((factor, digits, saved))
    }

    fn find(&self, id: usize) -> Option<(usize, Digit)> {
        self.digits.iter().copied().enumerate().find(|(_, digit)| digit.id == id)
    }
}

/// The coefficient of a variable or an axis.
fn coefficient(sum: &Sum, id: usize) -> i128 {
    if id >= AXES {
        return sum.axes[id - AXES];
    }
    sum.terms.binary_search_by_key(&id, |(variable, _)| *variable).map_or(0, |at| sum.terms[at].1)
}

/// Whether no element that one access touches in one program is touched by the other access in another program. `programs` are the
/// variables that distinguish programs.
pub(super) fn are_apart(first: &Reach, second: &Reach, programs: &[Variable]) -> bool {
    if first.is_empty() || second.is_empty() {
        return true;
    }
    let mut left = [vec![true; first.digits.len()], vec![true; second.digits.len()]];
    // The pairs of digits that the proof may drop, and the program coordinates that may still differ.
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    let mut differ: Vec<usize> = Vec::new();
    for (at, digit) in first.digits.iter().enumerate() {
        let Some((other_at, other)) = second.find(digit.id) else { continue };
        let is_one = digit.as_constant().is_some() && digit.as_constant() == other.as_constant();
        if programs.contains(&digit.id) && !is_one {
            differ.push(digit.id);
        }
        if digit.coefficient == other.coefficient && is_one {
            (left[0][at], left[1][other_at]) = (false, false);
        } else if digit.coefficient == other.coefficient && digit.coefficient != 0 {
            pairs.push((at, other_at));
        }
    }
    pairs.sort_by_key(|(at, _)| first.digits[*at].coefficient.abs());
    loop {
        if differ.is_empty() {
            return true;
        }
        let ends = |left: &[Vec<bool>; 2]| Some((first.range(&left[0])?, second.range(&left[1])?));
        let Some(((low, high), (other_low, other_high))) = ends(&left) else { return false };
        if high < other_low || other_high < low {
            return true;
        }
        let Some((at, other_at)) = pairs.pop() else { return false };
        (left[0][at], left[1][other_at]) = (false, false);
        let Some(((low, high), (other_low, other_high))) = ends(&left) else { return false };
        // If the values differed, the remaining sums would have to differ by at least the coefficient.
        let most = high.saturating_sub(other_low).max(other_high.saturating_sub(low));
        let Digit { id, coefficient, .. } = first.digits[at];
        if coefficient.abs() <= most {
            return false;
        }
        differ.retain(|program| *program != id);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// A small generator, so that the test needs no external seed.
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % bound
        }

        fn of<T: Copy>(&mut self, list: &[T]) -> T {
            list[self.below(list.len())]
        }
    }

    /// An access: its offset and the limits of its elements.
    struct Access {
        offset: Sum,
        limits: Vec<Sum>,
    }

    fn value(sum: &Sum, values: &[i128], indices: &[i128]) -> i128 {
        let terms = sum.terms.iter().map(|(variable, coefficient)| values[*variable] * coefficient);
        sum.constant + terms.sum::<i128>() + sum.axes.iter().zip(indices).map(|(axis, index)| axis * index).sum::<i128>()
    }

    /// All assignments of numbers below the counts.
    fn all(counts: &[i128]) -> Vec<Vec<i128>> {
        counts.iter().fold(vec![Vec::new()], |all, count| {
            all.iter().flat_map(|values| (0..*count).map(|next| [&values[..], &[next]].concat())).collect()
        })
    }

    /// Each element that an access touches, with the programs that touch it.
    fn touched(access: &Access, counts: &[i128], extents: &[usize]) -> HashMap<i128, Vec<[i128; 2]>> {
        let extents: Vec<i128> = extents.iter().map(|extent| *extent as i128).collect();
        let mut touched: HashMap<i128, Vec<[i128; 2]>> = HashMap::new();
        for values in all(counts) {
            for indices in all(&extents) {
                if access.limits.iter().all(|limit| value(limit, &values, &indices) <= 0) {
                    touched.entry(value(&access.offset, &values, &indices)).or_default().push([values[0], values[1]]);
                }
            }
        }
        touched
    }

    /// The offset of a random access. In most offsets a coefficient is about as large as the range of the terms after it.
    fn offset(random: &mut Random, variables: &[(Variable, i128)], extents: &[usize]) -> Sum {
        let mut counts: Vec<i128> = variables.iter().map(|(_, count)| *count).chain(extents.iter().map(|extent| *extent as i128)).collect();
        let mut coefficients = vec![0; counts.len()];
        let (mut order, mut reach): (Vec<usize>, i128) = ((0..counts.len()).collect(), 1);
        while !order.is_empty() {
            let at = order.swap_remove(random.below(order.len()));
            coefficients[at] = random.of(&[reach, reach, reach, reach - 1, reach + 1, 0]) * random.of(&[1, 1, 1, -1]);
            reach += coefficients[at].abs() * (std::mem::replace(&mut counts[at], 0) - 1);
        }
        let (terms, axes) = coefficients.split_at(variables.len());
        let terms = variables.iter().zip(terms).filter(|(_, coefficient)| **coefficient != 0);
        Sum {
            constant: random.of(&[0, 0, 1, -2]),
            terms: terms.map(|((variable, _), coefficient)| (*variable, *coefficient)).collect(),
            axes: axes.to_vec(),
        }
    }

    /// A mask that compares a part of an offset, or something else.
    fn limit(random: &mut Random, offset: &Sum, variables: &[(Variable, i128)], extents: &[usize]) -> Sum {
        let mut limit = if random.below(4) == 0 { self::offset(random, variables, extents) } else { offset.clone() };
        limit.terms.retain(|_| random.below(3) != 0);
        limit.axes.iter_mut().filter(|_| random.below(3) == 0).for_each(|axis| *axis = 0);
        limit.constant = -(random.below(20) as i128) + 2;
        limit
    }

    /// The proof is never wrong, and often succeeds. The test enumerates every program, iteration and element of small accesses.
    #[test]
    fn accesses_that_are_said_to_be_apart_are() {
        let mut random = Random(1);
        let (mut apart, mut proven) = (0, 0);
        for case in 0..3000 {
            let counts = [2 + random.below(3), 2 + random.below(2), 2 + random.below(2)].map(|count| count as i128);
            let mut variables = Variables::default();
            counts.iter().for_each(|count| _ = variables.add(*count));
            let numbers: Vec<(Variable, i128)> = counts.iter().copied().enumerate().collect();
            let extents: Vec<usize> = (0..random.below(3)).map(|_| random.of(&[1, 2, 4])).collect();
            let first = offset(&mut random, &numbers, &extents);
            let second = match random.below(3) {
                0 => offset(&mut random, &numbers, &extents),
                _ => Sum { constant: first.constant + random.of(&[0, 0, 1, 7]), ..first.clone() },
            };
            let [first, second] = [first, second].map(|offset| {
                let limits = (0..random.below(3)).map(|_| limit(&mut random, &offset, &numbers, &extents)).collect();
                Access { offset, limits }
            });
            let reach = |access: &Access| Reach::of(&variables, &access.offset, &access.limits, &extents, &[0, 1]).unwrap();
            let is_proven = are_apart(&reach(&first), &reach(&second), &[0, 1]);
            let (one, other) = (touched(&first, &counts, &extents), touched(&second, &counts, &extents));
            let meets = one.iter().any(|(element, programs)| {
                other.get(element).is_some_and(|others| programs.iter().any(|program| others.iter().any(|other| other != program)))
            });
            assert!(!(is_proven && meets), "case {case}: {:?} {:?}, {:?} {:?}", first.offset, first.limits, second.offset, second.limits);
            apart += usize::from(!meets);
            proven += usize::from(is_proven);
        }
        assert!(apart > 500 && proven * 4 > apart * 3, "{apart} are apart, of which {proven} are found");
    }
}
