//! Partial runs: wide accesses whose mask holds for only the first elements of a run, as before the end of a causal row, or for only the last ones, as
//! at the start of a row in a shifted tile.
//!
//! A run is loaded as a whole if an element is kept, and stored as a whole if all are. One branch, which only a thread with a partial run takes,
//! replaces the loaded elements that the mask excludes, or stores those that it keeps.

use crate::dtype::Dtype;

use crate::backend::ptx::text::registers::{Class, Reg, asm};
use crate::backend::ptx::{Emitter, Lanes, Source};

use super::Access;

/// Which elements the mask of a partial run may exclude.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Partial {
    /// The last ones.
    End,
    /// The first ones or the last ones, but not both.
    AnyEnd,
}

impl Partial {
    /// The kind of an access that is `partial`.
    pub(super) fn of(shifted: bool) -> Partial {
        if shifted { Partial::AnyEnd } else { Partial::End }
    }
}

/// Adjacent registers that one instruction has loaded.
pub(super) struct LoadedRun {
    /// The number of the first register.
    pub(super) first: usize,
    /// The elements, narrow ones packed in words: see [`Emitter::loaded_elements`].
    pub(super) words: Vec<Reg>,
    /// What replaces each element that the mask excludes.
    pub(super) fill: Vec<Option<Reg>>,
}

/// Runs of a store.
pub(super) struct StoredRuns<'a> {
    pub(super) access: &'a Access,
    pub(super) instruction: &'a str,
    pub(super) dtype: Dtype,
    pub(super) values: &'a Lanes,
    /// Holds for the thread that stores, if several hold the elements.
    pub(super) owner: Option<Reg>,
    pub(super) partial: Partial,
}

impl Emitter<'_> {
    /// A predicate: does the mask keep an element of the run of `length` registers from `first` on?
    pub(super) fn keeps_any(&mut self, mask: &Source, first: usize, length: usize, partial: Partial) -> Reg {
        let begins = self.at(mask, first);
        match partial {
            Partial::End => begins,
            Partial::AnyEnd => {
                let ends = self.at(mask, first + length - 1);
                self.combine("or.pred", begins, ends)
            }
        }
    }

    /// A predicate: does the mask keep all elements of the run of `length` registers from `first` on?
    pub(super) fn keeps_all(&mut self, mask: &Source, first: usize, length: usize, partial: Partial) -> Reg {
        let ends = self.at(mask, first + length - 1);
        match partial {
            Partial::End => ends,
            Partial::AnyEnd => {
                let begins = self.at(mask, first);
                self.combine("and.pred", begins, ends)
            }
        }
    }

    fn combine(&mut self, instruction: &str, a: Reg, b: Reg) -> Reg {
        if a == b {
            return a;
        }
        let result = self.reg(Class::Pred);
        asm!(self, "{instruction} {result}, {a}, {b}");
        result
    }

    /// Replaces the elements of partial runs that the mask excludes. Elements of one word stay packed: they are unpacked behind the branch, by
    /// instructions that also widen them.
    pub(super) fn fill_partial_runs(&mut self, mask: &Source, dtype: Dtype, runs: &[LoadedRun], partial: Partial) {
        let bounds = runs.iter().map(|run| (run.first, run.fill.len()));
        let Some(skip) = self.unless_partial(mask, bounds) else { return };
        for run in runs {
            let of_word = run.fill.len() / run.words.len();
            let words: Vec<String> = match of_word {
                1 => Vec::new(),
                _ => run.fill.chunks(of_word).map(|fill| self.word_of(fill, dtype)).collect(),
            };
            // The mask keeps the first element of a run that is partial at its end.
            let first = usize::from(partial == Partial::End);
            for at in (first..run.fill.len()).rev() {
                let is_kept = self.at(mask, run.first + at);
                let (word, part) = (run.words[at / of_word], at % of_word);
                if of_word == 1 {
                    self.fill(&format!("@!{is_kept} "), word, dtype, run.fill[at]);
                    continue;
                }
                let bytes = 4 / of_word;
                let own = bytes * part..bytes * (part + 1);
                let selector: usize = (0..4).map(|byte| (if own.contains(&byte) { byte + 4 } else { byte }) << (4 * byte)).sum();
                asm!(self, "@!{is_kept} prmt.b32 {word}, {word}, {}, {selector:#06x}", words[at / of_word]);
            }
        }
        self.asm.define_label(&skip);
    }

    /// Branches to the label that it returns, unless a run of the thread is partial. Runs are given by their first registers and their lengths.
    fn unless_partial(&mut self, mask: &Source, runs: impl Iterator<Item = (usize, usize)>) -> Option<String> {
        let mut any: Option<Reg> = None;
        for (first, length) in runs {
            let (begins, ends) = (self.at(mask, first), self.at(mask, first + length - 1));
            if begins == ends {
                continue;
            }
            let is_partial = self.combine("xor.pred", begins, ends);
            any = Some(any.map_or(is_partial, |before| self.combine("or.pred", before, is_partial)));
        }
        let (any, skip) = (any?, self.asm.label());
        asm!(self, "@!{any} bra {skip}");
        Some(skip)
    }

    /// Stores the elements of partial runs that the mask keeps. `runs` are the first registers.
    pub(super) fn store_partial_runs(&mut self, mask: &Source, stored: &StoredRuns<'_>, runs: impl Iterator<Item = usize> + Clone) {
        let group = stored.access.group;
        let Some(skip) = self.unless_partial(mask, runs.clone().map(|first| (first, group))) else { return };
        // Of a run that is partial at its end, the last element is not kept.
        let most = if stored.partial == Partial::End { group - 1 } else { group };
        for first in runs {
            let is_whole = self.keeps_all(mask, first, group, stored.partial);
            for register in first..first + most {
                let is_kept = self.at(mask, register);
                if is_kept == is_whole {
                    continue;
                }
                let own = self.combine("xor.pred", is_kept, is_whole);
                let pred = self.both(Some(own), stored.owner);
                let address = self.address_operand(stored.access, register);
                self.store_group(stored.instruction, &address, stored.dtype, pred, &[stored.values.get(register)]);
            }
        }
        self.asm.define_label(&skip);
    }
}
