//! Sets of the 32 lanes of a warp, and one value for each lane.

use std::fmt;

/// The number of lanes of a warp.
pub(crate) const WARP: usize = 32;

/// One 64-bit word for each lane. A narrower value is zero-extended.
pub(crate) type Row = [u64; WARP];

/// Up to 16 bytes for each lane.
pub(crate) type WideRow = [u128; WARP];

/// A set of lanes: bit `n` is lane `n`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Lanes(pub(crate) u32);

impl Lanes {
    pub(crate) const NONE: Lanes = Lanes(0);
    pub(crate) const ALL: Lanes = Lanes(u32::MAX);

    pub(crate) fn of(lane: usize) -> Lanes {
        Lanes(1 << lane)
    }

    /// Lanes `0..count`.
    pub(crate) fn first(count: usize) -> Lanes {
        Lanes(if count >= WARP { u32::MAX } else { (1 << count) - 1 })
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn count(self) -> u32 {
        self.0.count_ones()
    }

    pub(crate) fn has(self, lane: usize) -> bool {
        self.0 >> lane & 1 == 1
    }

    pub(crate) fn and(self, other: Lanes) -> Lanes {
        Lanes(self.0 & other.0)
    }

    pub(crate) fn or(self, other: Lanes) -> Lanes {
        Lanes(self.0 | other.0)
    }

    pub(crate) fn without(self, other: Lanes) -> Lanes {
        Lanes(self.0 & !other.0)
    }

    pub(crate) fn contains(self, other: Lanes) -> bool {
        other.0 & !self.0 == 0
    }

    /// The lowest lane, if there is one.
    pub(crate) fn lowest(self) -> Option<usize> {
        (self.0 != 0).then(|| self.0.trailing_zeros() as usize)
    }

    /// The lanes for which the test holds.
    pub(crate) fn filter(self, mut test: impl FnMut(usize) -> bool) -> Lanes {
        self.into_iter().filter(|&lane| test(lane)).collect()
    }
}

impl IntoIterator for Lanes {
    type Item = usize;
    type IntoIter = LanesIter;

    fn into_iter(self) -> LanesIter {
        LanesIter(self.0)
    }
}

impl FromIterator<usize> for Lanes {
    fn from_iter<I: IntoIterator<Item = usize>>(lanes: I) -> Lanes {
        Lanes(lanes.into_iter().fold(0, |bits, lane| bits | 1 << lane))
    }
}

/// The lanes of a set, from the lowest.
pub(crate) struct LanesIter(u32);

impl Iterator for LanesIter {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let lane = (self.0 != 0).then(|| self.0.trailing_zeros() as usize)?;
        self.0 &= self.0 - 1;
        Some(lane)
    }
}

impl fmt::Debug for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.0)
    }
}
