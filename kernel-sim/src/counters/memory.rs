//! The sectors of global memory that a launch touches, each counted once: the traffic of memory behind caches that lose nothing.

use std::collections::HashMap;

use super::traffic::SECTOR;
use crate::lanes::{Lanes, Row};

/// The sectors that a source line touches. The number of a sector is its address divided by 32. Each has a bit for each of its 32 bytes that
/// some thread asked for, the lowest for the first byte.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Sectors {
    /// The sectors that loads, atomics and asynchronous copies read.
    pub loaded: HashMap<u64, u32>,
    /// The sectors that stores and atomics write.
    pub stored: HashMap<u64, u32>,
}

impl Sectors {
    /// Adds the sectors of another line or of another part of the launch.
    pub fn merge(&mut self, other: &Sectors) {
        other.loaded.iter().for_each(|(sector, bytes)| *self.loaded.entry(*sector).or_default() |= bytes);
        other.stored.iter().for_each(|(sector, bytes)| *self.stored.entry(*sector).or_default() |= bytes);
    }

    pub(crate) fn record_load(&mut self, lanes: Lanes, addresses: &Row, bytes: u32) {
        record(&mut self.loaded, lanes, addresses, bytes);
    }

    pub(crate) fn record_store(&mut self, lanes: Lanes, addresses: &Row, bytes: u32) {
        record(&mut self.stored, lanes, addresses, bytes);
    }
}

/// Accesses are at most half a sector wide.
fn record(sectors: &mut HashMap<u64, u32>, lanes: Lanes, addresses: &Row, bytes: u32) {
    for lane in lanes {
        let (sector, first) = (addresses[lane] / SECTOR, addresses[lane] % SECTOR);
        let asked: u64 = ((1 << bytes) - 1) << first;
        for (sector, asked) in [(sector, asked as u32), (sector + 1, (asked >> SECTOR) as u32)] {
            if asked != 0 {
                *sectors.entry(sector).or_default() |= asked;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sector_counts_once() {
        let mut sectors = Sectors::default();
        sectors.record_load(Lanes::ALL, &std::array::from_fn(|lane| 16 + 4 * lane as u64), 4);
        sectors.record_load(Lanes::first(4), &std::array::from_fn(|lane| 4 * lane as u64), 4);
        sectors.record_store(Lanes::ALL, &std::array::from_fn(|lane| 64 * lane as u64), 2);
        assert_eq!((sectors.loaded.len(), sectors.stored.len()), (5, 32));
        let mut other = Sectors::default();
        other.record_load(Lanes::of(3), &std::array::from_fn(|lane| 1024 * lane as u64 + 24), 16);
        sectors.merge(&other);
        assert_eq!(sectors.loaded.len(), 7);
        assert_eq!((sectors.loaded[&0], sectors.loaded[&96], sectors.loaded[&97], sectors.stored[&2]), (u32::MAX, 0xff00_0000, 0xff, 3));
    }
}
