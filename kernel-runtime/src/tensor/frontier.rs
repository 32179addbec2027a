//! The few pairs of elements that decide whether all pairs are within tolerances.

use std::cmp::Reverse;
use std::fmt;

/// The errors that decide whether all errors are within tolerances, each with the magnitude of its element.
///
/// An error is within the tolerances if `error <= atol + rtol * magnitude`. The right side does not decrease if the magnitude grows, also after
/// rounding. So an error is redundant if another error is at least as large and has at most its magnitude:
///
/// | magnitude | error | |
/// |---|---|---|
/// | 1 | 3 | |
/// | 2 | 2 | redundant: the error is below that of magnitude 1 |
/// | 4 | 5 | |
/// | 9 | 6 | |
///
/// If errors do not depend on the magnitudes, or are random fractions of them, few of many errors remain. If larger magnitudes always have larger
/// errors, all remain. Of more than [`Frontier::MANY`], only the vertices of the upper convex hull are kept. In the table, a line from magnitude 1 to
/// magnitude 9 is below the error of magnitude 4, which thus is a vertex. Without rounding, the vertices alone decide: `atol + rtol * magnitude` is a
/// line too, and a line that is not below the vertices is not below the errors between them.
#[derive(Clone)]
pub(crate) struct Frontier {
    is_float: bool,
    /// Magnitudes and errors. Of floats, the bits of each number as an `f64`: positive numbers have the order of their bits. In the first `sorted`
    /// pairs, both increase.
    pairs: Vec<(u64, u64)>,
    sorted: usize,
}

impl Frontier {
    /// The number of unsorted pairs above which redundant pairs are removed.
    const UNSORTED: usize = 1 << 12;
    /// The number of pairs above which only the convex hull is kept.
    const MANY: usize = 1 << 14;

    /// A frontier of floats or of integers.
    pub(crate) fn new(is_float: bool) -> Frontier {
        Frontier { is_float, pairs: Vec::new(), sorted: 0 }
    }

    /// Adds a finite error of a float.
    #[inline]
    pub(crate) fn add_float(&mut self, magnitude: f64, error: f64) {
        self.add(magnitude.to_bits(), error.to_bits());
    }

    /// Adds an error of an integer.
    #[inline]
    pub(crate) fn add(&mut self, magnitude: u64, error: u64) {
        let below = self.pairs[..self.sorted].partition_point(|&(other, _)| other <= magnitude);
        if below > 0 && self.pairs[below - 1].1 >= error {
            return;
        }
        self.pairs.push((magnitude, error));
        if self.pairs.len() - self.sorted > self.sorted.max(Self::UNSORTED) {
            self.reduce();
        }
    }

    /// Removes the redundant pairs.
    pub(crate) fn reduce(&mut self) {
        // The stable sort merges the sorted pairs instead of sorting them again.
        self.pairs.sort_by_key(|&(magnitude, error)| (magnitude, Reverse(error)));
        let mut largest = None;
        self.pairs.retain(|&(_, error)| {
            let remains = largest.is_none_or(|largest| error > largest);
            largest = largest.max(Some(error));
            remains
        });
        if self.pairs.len() > Self::MANY {
            self.keep_hull();
        }
        self.sorted = self.pairs.len();
    }

    /// Keeps the vertices of the upper convex hull of the sorted pairs, by Andrew's monotone chain algorithm (*Another efficient algorithm for convex
    /// hulls in two dimensions*, 1979).
    fn keep_hull(&mut self) {
        let mut hull: Vec<(u64, u64)> = Vec::new();
        for &next in &self.pairs {
            while let [.., before, last] = hull[..]
                && self.slope(before, last) <= self.slope(last, next)
            {
                hull.pop();
            }
            hull.push(next);
        }
        self.pairs = hull;
    }

    fn slope(&self, low: (u64, u64), high: (u64, u64)) -> f64 {
        let distance = |low, high| if self.is_float { self.number(high) - self.number(low) } else { (high - low) as f64 };
        distance(low.1, high.1) / distance(low.0, high.0)
    }

    fn number(&self, number: u64) -> f64 {
        if self.is_float { f64::from_bits(number) } else { number as f64 }
    }

    /// Returns whether all errors are within the tolerances, including those that were redundant. Tolerances are not negative.
    pub(crate) fn is_within(&self, atol: f64, rtol: f64) -> bool {
        self.pairs.iter().all(|&(magnitude, error)| {
            let tolerance = atol + rtol * self.number(magnitude);
            if self.is_float {
                self.number(error) <= tolerance
            } else {
                // The conversion to an integer rounds down and saturates, so the comparison is exact. No error is within a NaN.
                tolerance >= 0.0 && error <= tolerance as u64
            }
        })
    }

    /// Returns whether no error was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }
}

/// Shows the number of pairs, because there can be many.
impl fmt::Debug for Frontier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Frontier({} pairs)", self.pairs.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(u64, u64)]) -> Frontier {
        let mut frontier = Frontier::new(false);
        pairs.iter().for_each(|&(magnitude, error)| frontier.add(magnitude, error));
        frontier.reduce();
        frontier
    }

    /// Pairs of magnitudes below a prime in an irregular order: multiples of a number that is no multiple of the prime take all remainders.
    fn scattered(prime: u64, step: u64, error: impl Fn(u64) -> u64) -> Vec<(u64, u64)> {
        (1..prime).map(|i| i * step % prime).map(|magnitude| (magnitude, error(magnitude))).collect()
    }

    #[test]
    fn redundant_pairs_are_removed() {
        assert_eq!(of(&[(2, 2), (4, 5), (9, 6), (1, 3)]).pairs, [(1, 3), (4, 5), (9, 6)]);
        assert_eq!(of(&[(1, 1), (1, 3), (1, 2)]).pairs, [(1, 3)]);
        assert_eq!(of(&[(3, 7), (2, 7), (9, 7)]).pairs, [(2, 7)]);
        assert!(of(&[]).is_empty());
    }

    #[test]
    fn many_pairs_leave_the_same_frontier_in_every_order() {
        const PRIME: u64 = 100_003;
        let pairs = |step| scattered(PRIME, step, |magnitude| magnitude * magnitude % PRIME);
        let (some, others) = (of(&pairs(7919)).pairs, of(&pairs(31_337)).pairs);
        assert_eq!(some, others);
        assert!(some.is_sorted_by(|low, high| low.0 < high.0 && low.1 < high.1));
        assert!(pairs(1).iter().all(|pair| some.iter().any(|other| other.0 <= pair.0 && other.1 >= pair.1)));
        assert!(some.len() < 1000, "{} pairs remain", some.len());
    }

    #[test]
    fn few_increasing_errors_all_remain() {
        let increasing: Vec<(u64, u64)> = (0..10_000).map(|i| (i, i + 1)).collect();
        assert_eq!(of(&increasing).pairs, increasing);
        let reversed: Vec<(u64, u64)> = increasing.iter().rev().copied().collect();
        assert_eq!(of(&reversed).pairs, increasing);
    }

    #[test]
    fn many_increasing_errors_leave_their_convex_hull() {
        let line = of(&scattered(1_000_003, 7919, |magnitude| 3 * magnitude));
        assert!(line.pairs.len() <= Frontier::MANY, "{} pairs remain", line.pairs.len());
        assert!(line.is_within(0.0, 3.0) && line.is_within(3_000_006.0, 0.0) && line.is_within(2_000_004.0, 1.0));
        assert!(!line.is_within(0.0, 2.999) && !line.is_within(3_000_005.0, 0.0) && !line.is_within(2_000_003.0, 1.0));
        // A concave curve: every error above the lines between its neighbours decides for some tolerances.
        let pairs = scattered(1_000_003, 7919, |magnitude| magnitude.isqrt() + magnitude / 7);
        let curve = of(&pairs);
        assert!(curve.pairs.len() <= Frontier::MANY, "{} pairs remain", curve.pairs.len());
        for rtol in [0.0, 0.1, 0.143, 0.1435, 0.15, 0.2, 0.5, 1.0] {
            let least = pairs.iter().map(|&(magnitude, error)| error as f64 - rtol * magnitude as f64).fold(0.0, f64::max);
            assert!(curve.is_within(least + 1e-6, rtol), "{least} + {rtol} m");
            assert!(least == 0.0 || !curve.is_within(least - 1e-6, rtol), "{least} + {rtol} m");
        }
    }

    #[test]
    fn floats_have_the_order_of_their_bits() {
        let mut frontier = Frontier::new(true);
        for (magnitude, error) in [(1.0, 0.5), (1e-300, 5e-324), (1e300, 0.25), (2.0, 1.0)] {
            frontier.add_float(magnitude, error);
        }
        frontier.reduce();
        assert_eq!(frontier.pairs.len(), 3);
        assert!(frontier.is_within(0.0, 0.5) && !frontier.is_within(0.0, 0.499) && !frontier.is_within(0.5, 0.2));
    }
}
