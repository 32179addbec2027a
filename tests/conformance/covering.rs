//! Covering arrays: rows of choices in which each pair of choices of two dimensions appears.
//!
//! ```text
//! dimensions of 2, 2 and 3 choices       rows  000 011 102 110 001 012
//! ```
//!
//! Most defects depend on at most two choices (D. R. Kuhn et al., Software fault interactions, 2004), and there are far fewer rows than combinations.

/// So many covering arrays, the first one of which `pairwise` makes. In each of the others, the choices of each dimension change places at random.
pub(crate) fn rounds<const N: usize>(choices: [usize; N], count: usize) -> Vec<Vec<[usize; N]>> {
    let mut dice = Dice(1);
    let first = pairwise(choices, &mut dice);
    let others = (1..count).map(|_| {
        let renamed: [Vec<usize>; N] = choices.map(|count| dice.order(count));
        first.iter().map(|row| std::array::from_fn(|dimension| renamed[dimension][row[dimension]])).collect()
    });
    let others: Vec<_> = others.collect();
    std::iter::once(first).chain(others).collect()
}

/// Rows that together have each pair of choices, by the greedy algorithm of D. M. Cohen et al. (The AETG system, 1997).
fn pairwise<const N: usize>(choices: [usize; N], dice: &mut Dice) -> Vec<[usize; N]> {
    let mut missing = Missing::new(&choices);
    let mut rows = Vec::new();
    while let Some([first, second]) = missing.draw(dice) {
        let mut row = [None; N];
        for (dimension, choice) in [first, second] {
            row[dimension] = Some(choice);
        }
        for dimension in dice.order(N) {
            if row[dimension].is_none() {
                // Of the choices with the most missing pairs, any.
                let order = dice.below(choices[dimension]);
                let rotated = (0..choices[dimension]).map(|choice| (choice + order) % choices[dimension]);
                row[dimension] = rotated.max_by_key(|choice| missing.with(&row, (dimension, *choice)));
            }
        }
        let row = row.map(|choice| choice.expect("each dimension has a choice"));
        missing.remove(&row);
        rows.push(row);
    }
    rows
}

/// A dimension, and one of its choices.
type Chosen = (usize, usize);

/// The pairs that no row has yet.
struct Missing {
    /// The number of the first choice of each dimension, and the number of all choices.
    firsts: Vec<usize>,
    all: usize,
    is_missing: Vec<bool>,
    /// All missing pairs, and some that are not missing any more.
    pairs: Vec<[Chosen; 2]>,
}

impl Missing {
    fn new(choices: &[usize]) -> Missing {
        let mut firsts = Vec::new();
        let all = choices.iter().fold(0, |first, count| {
            firsts.push(first);
            first + count
        });
        let of = |dimension: usize| (0..choices[dimension]).map(move |choice| (dimension, choice));
        let two = (0..choices.len()).flat_map(|second| (0..second).map(move |first| (first, second)));
        let pairs: Vec<[Chosen; 2]> = two.flat_map(|(a, b)| of(a).flat_map(move |a| of(b).map(move |b| [a, b]))).collect();
        let mut missing = Missing { firsts, all, is_missing: vec![false; all * all], pairs };
        for index in 0..missing.pairs.len() {
            let number = missing.number(missing.pairs[index]);
            missing.is_missing[number] = true;
        }
        missing
    }

    /// The number of a pair, whose first dimension is the smaller one.
    fn number(&self, [(a, x), (b, y)]: [Chosen; 2]) -> usize {
        let (x, y) = (self.firsts[a] + x, self.firsts[b] + y);
        x.min(y) * self.all + x.max(y)
    }

    /// A missing pair.
    fn draw(&mut self, dice: &mut Dice) -> Option<[Chosen; 2]> {
        while !self.pairs.is_empty() {
            let pair = self.pairs.swap_remove(dice.below(self.pairs.len()));
            if self.is_missing[self.number(pair)] {
                return Some(pair);
            }
        }
        None
    }

    /// The missing pairs of a choice with those that a row has already.
    fn with<const N: usize>(&self, row: &[Option<usize>; N], chosen: Chosen) -> usize {
        let others = row.iter().enumerate().filter_map(|(dimension, choice)| Some((dimension, (*choice)?)));
        others.filter(|other| self.is_missing[self.number([*other, chosen])]).count()
    }

    fn remove<const N: usize>(&mut self, row: &[usize; N]) {
        for second in 0..N {
            for first in 0..second {
                let number = self.number([(first, row[first]), (second, row[second])]);
                self.is_missing[number] = false;
            }
        }
    }
}

/// Random numbers that are the same in every run: xorshift*.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end
    }

    /// The numbers below `count` in a random order.
    fn order(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        (1..count).for_each(|at| order.swap(at, self.below(at + 1)));
        order
    }
}
