//! Facts about the arguments of a launch, on which a variant may rely.

use kernel_lang::{Bindings, ir};

use crate::kernel::parts::{FactParts, KnownParts};

/// A fact about an argument: it equals a number, or is a multiple of one. `#[kernel]` generates facts.
#[derive(Clone, Copy, Debug)]
pub struct Fact {
    /// The name of the parameter.
    name: &'static str,
    /// The index of its argument word.
    word: usize,
    /// The bits of the word that the fact tests.
    mask: u64,
    /// The value of these bits if the fact holds.
    bits: u64,
}

impl Fact {
    /// The argument word equals `number`.
    pub const fn is(name: &'static str, word: usize, number: u64) -> Fact {
        Fact { name, word, mask: u64::MAX, bits: number }
    }

    /// The argument is a multiple of `of`, a power of two.
    ///
    /// # Panics
    /// If `of` is not a power of two. `#[kernel]` puts facts into statics, so such a program does not compile.
    pub const fn multiple_of(name: &'static str, word: usize, of: u64) -> Fact {
        assert!(of.is_power_of_two(), "a fact asks of an argument whether a power of two divides it");
        Fact { name, word, mask: of - 1, bits: 0 }
    }

    /// The fact as a package holds it.
    pub(crate) fn parts(&self) -> FactParts {
        let known = if self.mask == u64::MAX { KnownParts::Is(self.bits) } else { KnownParts::MultipleOf(self.mask + 1) };
        FactParts { param: self.name.to_owned(), known }
    }

    /// Returns whether the fact holds for these argument words.
    #[inline]
    fn holds(&self, words: &[u64]) -> bool {
        words.get(self.word).is_some_and(|word| word & self.mask == self.bits)
    }

    /// Binds the parameter to the value or the divisor that the fact states.
    pub(crate) fn bind(&self, func: &ir::Function, bindings: Bindings) -> Bindings {
        if self.mask != u64::MAX {
            return bindings.multiple(self.name, i128::from(self.mask) + 1);
        }
        bind_value(func, self.name, self.bits, bindings)
    }
}

/// Binds a parameter to the value with these bits.
pub(crate) fn bind_value(func: &ir::Function, name: &str, bits: u64, bindings: Bindings) -> Bindings {
    let param = func.params.iter().find(|param| *param.name == *name);
    let dtype = param.and_then(|param| func.ty(param.value).elem().dtype());
    // The bits of the word above the argument's own are zero.
    let unused = dtype.map_or(0, |dtype| 64 - 8 * dtype.bytes());
    let number = match dtype {
        Some(dtype) if dtype.is_signed_int() => i128::from((bits << unused).cast_signed() >> unused),
        _ => i128::from(bits),
    };
    bindings.constant(name, number)
}

/// A bit for each of these facts, set if it holds for the words.
#[inline]
pub(crate) fn which_hold(facts: &[Fact], words: &[u64]) -> u64 {
    facts.iter().enumerate().fold(0, |bits, (at, fact)| bits | u64::from(fact.holds(words)) << at)
}

/// The key that selects the variant of a launch: a word for each type and constant, and one more word if any facts hold.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Key<const N: usize> {
    general: [u64; N],
    facts: u64,
}

impl<const N: usize> Key<N> {
    /// A key of the words for types and constants, and of the bits of the facts that hold.
    #[inline]
    pub(crate) fn new(general: [u64; N], facts: u64) -> Key<N> {
        Key { general, facts }
    }

    /// The words for types and constants.
    #[inline]
    pub(crate) fn general(&self) -> &[u64] {
        &self.general
    }

    /// The key of the variant that relies on no facts.
    #[inline]
    pub(crate) fn without_facts(&self) -> Key<N> {
        Key { facts: 0, ..*self }
    }

    /// A bit for each fact that holds.
    #[inline]
    pub(crate) fn facts(&self) -> u64 {
        self.facts
    }
}

impl<const N: usize> AsRef<[u64]> for Key<N> {
    #[inline]
    fn as_ref(&self) -> &[u64] {
        if self.facts == 0 {
            return &self.general;
        }
        // SAFETY: the `repr(C)` struct consists of `N` words and one more, consecutive and without padding.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).cast(), N + 1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_is_asked_of_its_word() {
        let facts = [Fact::is("a", 1, 1), Fact::multiple_of("b", 2, 16), Fact::is("c", 0, 0xffff_ffff), Fact::is("d", 9, 0)];
        assert_eq!(which_hold(&facts, &[7, 1, 48]), 0b011);
        assert_eq!(which_hold(&facts, &[0xffff_ffff, 2, 24]), 0b100);
        assert_eq!(which_hold(&facts, &[0, 0, 0]), 0b010);
        assert_eq!(which_hold(&[], &[1]), 0);
    }

    #[test]
    fn only_a_power_of_two_is_asked_for() {
        for of in [0, 3, 24] {
            assert!(std::panic::catch_unwind(|| Fact::multiple_of("a", 0, of)).is_err(), "{of}");
        }
        assert_eq!(which_hold(&[Fact::multiple_of("a", 0, 1)], &[7]), 1);
    }

    #[test]
    fn a_key_has_a_word_for_facts_where_some_hold() {
        assert_eq!(Key::new([3, 4], 0).as_ref(), [3, 4]);
        assert_eq!(Key::new([3, 4], 5).as_ref(), [3, 4, 5]);
        assert_eq!(Key::new([3, 4], 5).general(), [3, 4]);
        assert_eq!((Key::new([], 0).as_ref(), Key::new([], 9).as_ref()), (&[][..], &[9][..]));
    }
}
