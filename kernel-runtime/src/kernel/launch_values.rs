//! The launch values of a loaded variant, and their parameters in earlier launches.

use std::borrow::Cow;
use std::sync::{Mutex, OnceLock, PoisonError};

use kernel_lang::launch_value;

/// The number of launches whose parameters are kept for good. A model launches a kernel with a few shapes, over and over.
const KEPT: usize = 8;

/// The launch values of a variant.
#[derive(Debug)]
pub(crate) struct LaunchValues {
    values: launch_value::LaunchValues,
    asked: Asked,
    /// The first launches, which are found without a lock.
    first: [OnceLock<Launch>; KEPT],
    /// The last launch that is not one of the first.
    last: Mutex<Option<Launch>>,
}

/// The words on which launch values depend, and of each the bits.
#[derive(Debug)]
pub(super) struct Asked(Box<[(usize, u64)]>);

#[derive(Debug)]
struct Launch {
    grid: [u32; 3],
    /// The bits that are asked for, in the order of [`Asked`].
    asked: Box<[u64]>,
    parameters: Box<[u64]>,
}

impl LaunchValues {
    /// The launch values that the PTX states, if any.
    ///
    /// # Errors
    /// A description of what is wrong with the statement.
    pub(crate) fn of_ptx(ptx: &str) -> Result<Option<LaunchValues>, String> {
        let Some(values) = launch_value::LaunchValues::of_ptx(ptx)? else { return Ok(None) };
        Ok(Some(LaunchValues { asked: Asked::of(&values), values, first: Default::default(), last: Mutex::default() }))
    }

    /// The parameters for a launch with these words and this number of programs along each axis: those after the kernel's own, one a word.
    #[inline]
    pub(crate) fn parameters(&self, words: &[&u64], grid: [u32; 3]) -> Cow<'_, [u64]> {
        for launch in &self.first {
            match launch.get() {
                Some(launch) if self.is_alike(launch, words, grid) => return Cow::Borrowed(&launch.parameters),
                Some(_) => {}
                None => break,
            }
        }
        Cow::Owned(self.compute(words, grid))
    }

    /// The bytes of shared memory that a CTA uses in a launch with these parameters, if they are fewer than those of the variant.
    #[inline]
    pub(crate) fn shared_bytes(&self, parameters: &[u64]) -> Option<u32> {
        self.values.shared_bytes(parameters)
    }

    #[inline]
    fn is_alike(&self, launch: &Launch, words: &[&u64], grid: [u32; 3]) -> bool {
        launch.grid == grid && self.asked.is_alike(&launch.asked, words)
    }

    #[cold]
    fn compute(&self, words: &[&u64], grid: [u32; 3]) -> Vec<u64> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(launch) = last.as_ref().filter(|launch| self.is_alike(launch, words, grid)) {
            return launch.parameters.to_vec();
        }
        let asked = self.asked.of_words(words);
        let words: Vec<u64> = words.iter().map(|word| **word).collect();
        let parameters = self.values.parameters(&words, grid);
        let mut launch = Launch { grid, asked, parameters: parameters.clone().into() };
        for first in &self.first {
            match first.set(launch) {
                Ok(()) => return parameters,
                Err(refused) => launch = refused,
            }
        }
        *last = Some(launch);
        parameters
    }
}

impl Asked {
    pub(super) fn of(values: &launch_value::LaunchValues) -> Asked {
        Asked(values.asked().iter().copied().enumerate().filter(|(_, bits)| *bits != 0).collect())
    }

    /// The bits of a launch with these words.
    pub(super) fn of_words(&self, words: &[&u64]) -> Box<[u64]> {
        self.bits(words).collect()
    }

    /// Returns whether a launch with these words has the same bits.
    #[inline]
    pub(super) fn is_alike(&self, asked: &[u64], words: &[&u64]) -> bool {
        self.bits(words).zip(asked).all(|(bits, asked)| bits == *asked)
    }

    /// A hash of the bits and the grid, of 16 bits. Launches differ in few bits of few words, such as those of addresses; all of them affect the upper bits of the product.
    #[inline]
    pub(super) fn hash(&self, words: &[&u64], grid: [u32; 3]) -> u64 {
        let grid = grid.into_iter().map(u64::from);
        let hash = grid.chain(self.bits(words)).fold(0u64, |hash, word| (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95));
        hash >> 48
    }

    #[inline]
    fn bits(&self, words: &[&u64]) -> impl Iterator<Item = u64> {
        self.0.iter().map(|(word, bits)| *words[*word] & bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = "// launch values:
// kernel @launch_values(%x: ptr<f32>, %n: i64) {
//     %5, %6 = launch_value () {
//         %0 = program_id : i64
//         %1 = lt %0, %n : bool
//         %2 = address %x : i64
//         %3 = const {value = 15} : i64
//         %4 = and %2, %3 : i64
//         yield %1, %4
//     } : bool, i64
//     return
// }
";

    #[test]
    fn launches_of_many_shapes_have_parameters_of_their_own() {
        let values = LaunchValues::of_ptx(PTX).unwrap().unwrap();
        for _ in 0..2 {
            for n in 0..3 * KEPT as u64 {
                let parameters = values.parameters(&[&(4096 * n + 8), &77, &n], [5, 1, 1]);
                // The bound, and whether no other program is below `n`.
                let programs = match n {
                    0 => [0, 1],
                    1..4 => [0, 0],
                    4 => [4, 1],
                    5.. => [5, 1],
                };
                assert_eq!(*parameters, [programs[0], programs[1], 8], "{n}");
            }
        }
    }

    #[test]
    fn only_the_low_bits_of_an_address_count() {
        let values = LaunchValues::of_ptx(PTX).unwrap().unwrap();
        (0..100u64).for_each(|at| _ = values.parameters(&[&(16 * at), &at, &3], [2, 1, 1]));
        assert!(values.first[1].get().is_none(), "one computation serves all");
        assert!(LaunchValues::of_ptx(".version 8.0").unwrap().is_none());
    }
}
