//! Partial runs: wide accesses whose mask holds for only the first elements of a run, as before the end of a causal row.
//!
//! A run is loaded as a whole if its first element is kept, and stored as a whole if its last one is. One branch, which only the thread with
//! the partial run takes, replaces the loaded elements behind the end, or stores the elements before it.

use crate::dtype::Dtype;

use crate::backend::ptx::text::registers::{Class, Reg, asm};
use crate::backend::ptx::{Emitter, Lanes, Source};

use super::Access;

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
}

impl Emitter<'_> {
    /// Replaces the elements of partial runs that the mask excludes. Elements of one word stay packed: they are unpacked behind the branch, by
    /// instructions that also widen them.
    pub(super) fn fill_partial_runs(&mut self, mask: &Source, dtype: Dtype, runs: &[LoadedRun]) {
        let bounds = runs.iter().map(|run| (run.first, run.fill.len()));
        let Some(skip) = self.unless_partial(mask, bounds) else { return };
        for run in runs {
            let of_word = run.fill.len() / run.words.len();
            let words: Vec<String> = match of_word {
                1 => Vec::new(),
                _ => run.fill.chunks(of_word).map(|fill| self.word_of(fill, dtype)).collect(),
            };
            // The last element comes first: if the mask excludes an element, it excludes those behind it in the run.
            for at in (1..run.fill.len()).rev() {
                let is_kept = self.at(mask, run.first + at);
                let (word, part) = (run.words[at / of_word], at % of_word);
                match part {
                    0 if of_word == 1 => self.fill(&format!("@!{is_kept} "), word, dtype, run.fill[at]),
                    0 => asm!(self, "@!{is_kept} mov.b32 {word}, {}", words[at / of_word]),
                    _ => {
                        let kept = 4 / of_word * part;
                        let selector: usize = (0..4).map(|byte| (if byte < kept { byte } else { byte + 4 }) << (4 * byte)).sum();
                        asm!(self, "@!{is_kept} prmt.b32 {word}, {word}, {}, {selector:#06x}", words[at / of_word]);
                    }
                }
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
            let is_partial = self.reg(Class::Pred);
            asm!(self, "xor.pred {is_partial}, {begins}, {ends}");
            any = Some(any.map_or(is_partial, |before| {
                let either = self.reg(Class::Pred);
                asm!(self, "or.pred {either}, {before}, {is_partial}");
                either
            }));
        }
        let (any, skip) = (any?, self.asm.label());
        asm!(self, "@!{any} bra {skip}");
        Some(skip)
    }

    /// Stores the elements of partial runs that the mask keeps. `runs` are the first registers.
    pub(super) fn store_partial_runs(&mut self, mask: &Source, stored: &StoredRuns<'_>, runs: impl Iterator<Item = usize> + Clone) {
        let group = stored.access.group;
        let Some(skip) = self.unless_partial(mask, runs.clone().map(|first| (first, group))) else { return };
        for first in runs {
            for register in first..first + group - 1 {
                let [is_kept, is_whole] = [register, first + group - 1].map(|register| self.at(mask, register));
                let own = self.reg(Class::Pred);
                asm!(self, "xor.pred {own}, {is_kept}, {is_whole}");
                let pred = self.both(Some(own), stored.owner);
                let address = self.address_operand(stored.access, register);
                self.store_group(stored.instruction, &address, stored.dtype, pred, &[stored.values.get(register)]);
            }
        }
        self.asm.define_label(&skip);
    }
}
