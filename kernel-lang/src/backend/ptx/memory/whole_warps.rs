//! Whole warps: a warp accesses its elements without tests, and without their `other` values, if its mask holds for all of them. Where a row ends within a
//! block, that is most warps.
//!
//! A warp decides by one vote, and the accesses are written twice. So this is for elements that are accessed one by one, of which each takes a comparison.
//! In a counted loop it is slower: the driver's assembler does not move loads over the branch, among the arithmetic of other elements.

use crate::backend::ptx::text::registers::{Class, asm};
use crate::backend::ptx::{Emitter, Source};

use super::Access;

/// The fewest accesses of a thread whose tests take longer than the vote.
const LEAST: usize = 8;

impl Emitter<'_> {
    /// Emits the accesses for a warp of which the mask keeps all elements, by calling `each` with the first register of each run. The masked accesses follow,
    /// and then the label that this returns. None if there is no such version.
    ///
    /// Accesses of which each has an address of its own are left alone: the addresses would be kept for both versions.
    pub(super) fn in_whole_warps(
        &mut self,
        mask: Option<&Source>,
        access: &Access,
        runs: impl Iterator<Item = usize>,
        mut each: impl FnMut(&mut Self, usize),
    ) -> Option<String> {
        let Some(Source::Tests(tests)) = mask else { return None };
        let elements = access.constants.len();
        if access.group > 1 || access.addresses.len() == elements || elements < LEAST || !self.loops.is_empty() {
            return None;
        }
        let all = tests.of_all(0..elements)?;
        let (own, warp, [masked, end]) = (self.test(&all, 0), self.reg(Class::Pred), [0; 2].map(|_| self.asm.label()));
        asm!(self, "vote.sync.all.pred {warp}, {own}, 0xffffffff");
        asm!(self, "@!{warp} bra.uni {masked}");
        runs.for_each(|first| each(self, first));
        asm!(self, "bra.uni {end}");
        self.asm.define_label(&masked);
        Some(end)
    }
}
