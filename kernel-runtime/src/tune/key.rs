//! The key of a launch: what it has in common with all launches that use the same configuration.
//!
//! Always part of it are the device, the configurations that `prune` leaves, the element types and the constants that the launch names, which facts of its
//! arguments hold: they select another variant; and which tensors are aligned for accesses of 16 bytes: kernels run another copy of their code where
//! one is not. `key = [..]` adds sizes.

/// One argument word of a key, and which of its values are alike.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct KeyPart {
    word: usize,
    alike: Alike,
}

#[derive(Clone, Copy, Debug)]
enum Alike {
    None,
    PowerOfTwo,
    Multiple(u64),
}

impl KeyPart {
    /// `n`: each value is alone.
    pub const fn exact(word: usize) -> KeyPart {
        KeyPart { word, alike: Alike::None }
    }

    /// `bucket(n)`: values with the same next power of two are alike.
    pub const fn power_of_two(word: usize) -> KeyPart {
        KeyPart { word, alike: Alike::PowerOfTwo }
    }

    /// `bucket(n, 512)`: values with the same next multiple are alike.
    pub const fn multiple(word: usize, of: u64) -> KeyPart {
        KeyPart { word, alike: Alike::Multiple(of) }
    }

    /// What stands for these argument words in a key. What has no bucket above it is alone.
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

/// The words of a key, on the stack where it is of a usual size.
pub(super) struct TuningKey {
    room: [u64; USUAL],
    len: usize,
    /// All of them, where there is not room enough.
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
            Some(place) => *place = word,
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
    fn buckets_hold_what_is_below_their_ends() {
        let of = |part: KeyPart, value: u64| part.of(&[9, value]);
        let values = [0, 1, 2, 3, 512, 513, 1024, u64::MAX];
        assert_eq!(values.map(|value| of(KeyPart::exact(1), value)), values);
        assert_eq!(values.map(|value| of(KeyPart::power_of_two(1), value)), [1, 1, 2, 4, 512, 1024, 1024, u64::MAX]);
        assert_eq!(values.map(|value| of(KeyPart::multiple(1, 512), value)), [0, 512, 512, 512, 512, 1024, 1024, u64::MAX]);
    }
}
