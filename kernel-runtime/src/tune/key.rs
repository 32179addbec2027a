//! The tuning key of a launch. All launches with the same key use the same configuration.
//!
//! The key always contains the device, the class of the number of programs ([`Programs`]), the configurations that `prune` leaves, and the
//! element types and constants that the launch names. It contains the facts that hold for the arguments, because facts select another
//! variant. It contains which tensors are aligned for accesses of 16 bytes, because kernels run another copy of their code for unaligned
//! ones. `key = [..]` adds sizes.

use crate::cache::Programs;

/// One argument word of a key, and the rule that maps equivalent values to one.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct KeyPart {
    pub(super) word: usize,
    pub(super) alike: Alike,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Alike {
    None,
    PowerOfTwo,
    Multiple(u64),
}

impl KeyPart {
    /// `n`: every value is distinct.
    pub const fn exact(word: usize) -> KeyPart {
        KeyPart { word, alike: Alike::None }
    }

    /// `bucket(n)`: values with the same next power of two are equivalent.
    pub const fn power_of_two(word: usize) -> KeyPart {
        KeyPart { word, alike: Alike::PowerOfTwo }
    }

    /// `bucket(n, 512)`: values with the same next multiple are equivalent.
    pub const fn multiple(word: usize, of: u64) -> KeyPart {
        KeyPart { word, alike: Alike::Multiple(of) }
    }

    /// The word of a key for these argument words. A value above the last bucket stands for itself.
    #[inline]
    pub(super) fn of(self, words: &[u64]) -> u64 {
        let value = words.get(self.word).copied().unwrap_or(0);
        match self.alike {
            Alike::None => value,
            Alike::PowerOfTwo => value.checked_next_power_of_two().unwrap_or(value),
            Alike::Multiple(of) => value.checked_next_multiple_of(of).unwrap_or(value),
        }
    }
}

impl Programs {
    /// The class of a grid whose programs have `warps` warps each, on a GPU with that many multiprocessors.
    #[inline]
    pub(super) fn of([x, y, z]: [u32; 3], warps: u32, multiprocessors: u64) -> Programs {
        // No grid has more than 2^31 * 2^16 * 2^16 programs.
        let programs = u64::from(x) * u64::from(y) * u64::from(z);
        let warps = programs.saturating_mul(warps.into());
        let wave = 64 * multiprocessors;
        match warps {
            warps if warps <= wave => Programs::UpToOneWave,
            warps if warps <= 8 * wave => Programs::FewWaves,
            _ => Programs::ManyWaves,
        }
    }
}

/// The words of a key, on the stack up to `USUAL` words.
pub(super) struct TuningKey {
    room: [u64; USUAL],
    len: usize,
    /// All words, if there are more than `USUAL`.
    all: Vec<u64>,
}

const USUAL: usize = 32;

impl TuningKey {
    #[inline]
    pub(super) fn new() -> TuningKey {
        TuningKey { room: [0; USUAL], len: 0, all: Vec::new() }
    }

    #[inline]
    pub(super) fn push(&mut self, word: u64) {
        match self.room.get_mut(self.len) {
            Some(slot) => *slot = word,
            None => self.push_behind(word),
        }
        self.len += 1;
    }

    #[cold]
    fn push_behind(&mut self, word: u64) {
        if self.all.is_empty() {
            self.all.extend(self.room);
        }
        self.all.push(word);
    }

    #[inline]
    pub(super) fn words(&self) -> &[u64] {
        self.room.get(..self.len).unwrap_or(&self.all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_its_words_in_order_however_long() {
        for len in [0, 3, 32, 33, 101] {
            let mut key = TuningKey::new();
            (0..len).for_each(|word| key.push(word));
            assert!(key.words().iter().copied().eq(0..len), "{:?}", key.words());
        }
    }

    #[test]
    fn programs_are_counted_in_waves() {
        use Programs::{FewWaves, ManyWaves, UpToOneWave};
        let of = |grid, warps| Programs::of(grid, warps, 132);
        // 8448 warps are a wave.
        for (warps, wave) in [(1, 8448), (4, 2112), (32, 264), (16 * 4, 132)] {
            assert_eq!([0, 1, wave].map(|x| of([x, 1, 1], warps)), [UpToOneWave; 3]);
            assert_eq!([wave + 1, 8 * wave].map(|x| of([x, 1, 1], warps)), [FewWaves; 2]);
            assert_eq!([8 * wave + 1, i32::MAX as u32].map(|x| of([x, 1, 1], warps)), [ManyWaves; 2]);
        }
        assert_eq!([of([88, 8, 3], 4), of([1, 33, 65], 4), of([1, 1, 2113], 4)], [UpToOneWave, FewWaves, FewWaves]);
        assert_eq!(of([i32::MAX as u32, 65_535, 65_535], 32 * 16), ManyWaves);
    }

    #[test]
    fn buckets_hold_what_is_below_their_ends() {
        let of = |part: KeyPart, value: u64| part.of(&[9, value]);
        let values = [0, 1, 2, 3, 512, 513, 1024, u64::MAX];
        assert_eq!(values.map(|value| of(KeyPart::exact(1), value)), values);
        assert_eq!(values.map(|value| of(KeyPart::power_of_two(1), value)), [1, 1, 2, 4, 512, 1024, 1024, u64::MAX]);
        assert_eq!(values.map(|value| of(KeyPart::multiple(1, 512), value)), [0, 512, 512, 512, 512, 1024, 1024, u64::MAX]);
    }
}
