//! Cache hints and their reasons, as text for users.

use std::fmt;

use super::Hints;
use crate::analysis::reuse::Reuse;
use crate::ir::{Cache, Evict, Function, Op};
use crate::passes::choose_eviction::{self, Decision, Reason};

/// The cache hint of an access.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hint {
    /// The hint, as a user would write it; empty without one.
    pub text: &'static str,
    /// The reason for the hint, or for having none.
    pub reason: &'static str,
}

/// The hints of all accesses of a kernel in which none has been chosen yet.
pub(super) fn all(func: &Function) -> Hints {
    let decisions = choose_eviction::decide(func).into_iter();
    let mut hints: Hints = decisions.map(|decision| (decision.inst, of_access(func, &decision))).collect();
    for inst in func.all_insts() {
        let op = &func.inst(inst).op;
        if let Op::Atomic { .. } = op {
            hints.insert(inst, Hint { text: "", reason: "atomics work in the L2" });
        }
    }
    hints
}

fn of_access(func: &Function, Decision { inst, evict, reason }: &Decision) -> Hint {
    let (cache, volatile) = match func.inst(*inst).op {
        Op::Load { cache, volatile, .. } => (cache, volatile),
        Op::Store { cache, .. } => (cache, false),
        _ => unreachable!("a decision is about a load or a store"),
    };
    let reason = match reason {
        Reason::Named => "the kernel names it",
        Reason::Output { reads_again: true } => "the output should leave the L2 before the elements that a later loop reads again",
        Reason::Output { reads_again: false } => "no hint makes this store faster",
        Reason::Written => "the kernel also writes the tensor",
        Reason::ComputedPointer => "the pointer is computed",
        Reason::PartOfTile => "the elements are narrow, and the mask leaves out a part of the tile that differs between programs",
        Reason::Guess { reuse, reads_mostly, moves_words } => match (reuse, reads_mostly) {
            (Reuse::Once, true) => {
                "each element is read once, and the kernel mostly reads; a launch that reads more than 268 MB has no hint"
            }
            (Reuse::Once, false) => "each element is read once, and the output should leave the L2 first",
            (Reuse::Parts, true) => "other programs or iterations read the rest of the cache lines",
            (Reuse::Parts, false) => "the rest of the cache lines is read later, and the output should leave the L2 first",
            (Reuse::Gathered, true) => "the index was loaded, so other programs may read the elements, too",
            (Reuse::Gathered, false) => "the index was loaded, and the output should leave the L2 first",
            (Reuse::Again, _) => "a later loop of the program reads the elements again",
            (Reuse::Last, _) => "an earlier loop has read the elements, and none does later",
            (Reuse::Shared, false) if *moves_words => "other programs may read the elements, too, and the output should leave the L2 first",
            (Reuse::Shared, _) => "other programs, iterations or loads may read the elements, too",
        },
    };
    Hint { text: name(cache, *evict, volatile), reason }
}

fn name(cache: Cache, evict: Evict, volatile: bool) -> &'static str {
    match (volatile, cache, evict) {
        (true, ..) => "volatile",
        (_, Cache::Default, Evict::Unset) => "",
        (_, Cache::Default, Evict::FirstIfSmall) => Evict::First.text(),
        (_, Cache::Default, evict) => evict.text(),
        (_, cache, _) => cache.text(),
    }
}

/// The hint, or `none`, with the reason behind a colon.
impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", if self.text.is_empty() { "none" } else { self.text }, self.reason)
    }
}
