//! Memory traffic of a warp: sectors of global memory and bank conflicts in shared memory.
//!
//! The rules are those of the CUDA C++ Programming Guide, "Device Memory Accesses" and "Shared Memory" (compute capability 5 and later).

use crate::lanes::{Lanes, Row, WARP};

/// The size of a sector, the smallest unit of a transfer of global memory.
const SECTOR: u64 = 32;
/// The number of banks of shared memory, each one word wide.
const BANKS: u64 = 32;
/// The size of a bank's word in bytes.
const WORD: u64 = 4;

/// Traffic of global memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Traffic {
    /// Bytes that threads loaded. An atomic counts as a load and a store.
    pub load_bytes: u64,
    /// Bytes that threads stored.
    pub store_bytes: u64,
    /// Sectors of 32 bytes that loads touch, each counted once for each instruction of a warp.
    pub load_sectors: u64,
    /// Sectors that stores touch, counted in the same way.
    pub store_sectors: u64,
    /// Bytes of these sectors that some thread used, each counted once for each instruction of a warp.
    pub used_bytes: u64,
    /// The number of access instructions of warps.
    pub requests: u64,
}

/// Traffic of shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct SharedTraffic {
    /// Bytes that threads loaded. An atomic counts as a load and a store.
    pub load_bytes: u64,
    /// Bytes that threads stored.
    pub store_bytes: u64,
    /// The number of access instructions of warps.
    pub requests: u64,
    /// Passes over the banks. In one pass each bank delivers one word to any number of threads.
    pub wavefronts: u64,
    /// The number of passes without bank conflicts.
    pub ideal_wavefronts: u64,
}

impl Traffic {
    /// The sectors of loads and stores.
    pub fn sectors(&self) -> u64 {
        self.load_sectors + self.store_sectors
    }

    /// The part of the transferred bytes that threads used, from 0 to 1; 1 if there were no transfers.
    pub fn efficiency(&self) -> f64 {
        match self.sectors() {
            0 => 1.0,
            sectors => self.used_bytes as f64 / (sectors * SECTOR) as f64,
        }
    }

    pub(crate) fn merge(&mut self, other: &Traffic) {
        self.load_bytes += other.load_bytes;
        self.store_bytes += other.store_bytes;
        self.load_sectors += other.load_sectors;
        self.store_sectors += other.store_sectors;
        self.used_bytes += other.used_bytes;
        self.requests += other.requests;
    }

    pub(crate) fn record_load(&mut self, lanes: Lanes, addresses: &Row, bytes: u32) {
        let (used, sectors) = sectors(lanes, addresses, bytes);
        self.load_bytes += u64::from(lanes.count() * bytes);
        self.load_sectors += sectors;
        self.used_bytes += used;
        self.requests += 1;
    }

    pub(crate) fn record_store(&mut self, lanes: Lanes, addresses: &Row, bytes: u32) {
        let (used, sectors) = sectors(lanes, addresses, bytes);
        self.store_bytes += u64::from(lanes.count() * bytes);
        self.store_sectors += sectors;
        self.used_bytes += used;
        self.requests += 1;
    }

    pub(crate) fn record_update(&mut self, lanes: Lanes, addresses: &Row, bytes: u32) {
        self.record_load(lanes, addresses, bytes);
        self.record_store(lanes, addresses, bytes);
        self.requests -= 1;
    }
}

impl SharedTraffic {
    /// The extra passes because threads access different words of one bank.
    pub fn bank_conflicts(&self) -> u64 {
        self.wavefronts - self.ideal_wavefronts
    }

    pub(crate) fn merge(&mut self, other: &SharedTraffic) {
        self.load_bytes += other.load_bytes;
        self.store_bytes += other.store_bytes;
        self.requests += other.requests;
        self.wavefronts += other.wavefronts;
        self.ideal_wavefronts += other.ideal_wavefronts;
    }

    pub(crate) fn record_load(&mut self, lanes: Lanes, addresses: &Row, bytes: u32) {
        self.load_bytes += u64::from(lanes.count() * bytes);
        self.record(lanes, addresses, bytes);
    }

    pub(crate) fn record_store(&mut self, lanes: Lanes, addresses: &Row, bytes: u32) {
        self.store_bytes += u64::from(lanes.count() * bytes);
        self.record(lanes, addresses, bytes);
    }

    pub(crate) fn record_update(&mut self, lanes: Lanes, addresses: &Row, bytes: u32) {
        self.load_bytes += u64::from(lanes.count() * bytes);
        self.record_store(lanes, addresses, bytes);
    }

    /// Counts the passes of one instruction. The warp accesses memory in two halves for accesses of 8 bytes, and in quarters for 16 bytes.
    fn record(&mut self, lanes: Lanes, addresses: &Row, bytes: u32) {
        self.requests += 1;
        let together = WARP / (bytes / 4).clamp(1, 4) as usize;
        for first in (0..WARP).step_by(together) {
            let group = lanes.and(Lanes(Lanes::first(together).0 << first));
            if !group.is_empty() {
                self.wavefronts += wavefronts(group.into_iter().map(|lane| addresses[lane]), bytes);
                self.ideal_wavefronts += 1;
            }
        }
    }
}

/// The number of different bytes that the lanes use, and of different sectors that they touch.
fn sectors(lanes: Lanes, addresses: &Row, bytes: u32) -> (u64, u64) {
    let mut sorted = [0; WARP];
    let mut count = 0;
    for lane in lanes {
        sorted[count] = addresses[lane];
        count += 1;
    }
    let sorted = &mut sorted[..count];
    if !sorted.is_sorted() {
        sorted.sort_unstable();
    }
    let (mut used, mut sectors) = (0, 0);
    let (mut end, mut next_sector) = (0, 0);
    for &mut address in sorted {
        let own_end = address.saturating_add(u64::from(bytes));
        used += own_end - address.max(end).min(own_end);
        end = own_end;
        let first = (address / SECTOR).max(next_sector);
        next_sector = own_end.div_ceil(SECTOR).max(next_sector);
        sectors += next_sector - first.min(next_sector);
    }
    (used, sectors)
}

/// The number of passes that these accesses need: the maximum over the banks of the number of different words.
fn wavefronts(addresses: impl Iterator<Item = u64>, bytes: u32) -> u64 {
    let mut words = [0; 4 * WARP];
    let mut count = 0;
    for address in addresses {
        for word in address / WORD..(address + u64::from(bytes)).div_ceil(WORD) {
            if count < words.len() {
                words[count] = word;
                count += 1;
            }
        }
    }
    let words = &mut words[..count];
    if !words.is_sorted() {
        words.sort_unstable();
    }
    let mut of_bank = [0; BANKS as usize];
    let mut last = None;
    for &mut word in words {
        if last.replace(word) != Some(word) {
            of_bank[(word % BANKS) as usize] += 1;
        }
    }
    of_bank.into_iter().max().unwrap_or(0).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(address: impl Fn(u64) -> u64) -> Row {
        std::array::from_fn(|lane| address(lane as u64))
    }

    /// The sectors and the efficiency of one load by a whole warp.
    fn load(bytes: u32, address: impl Fn(u64) -> u64) -> (u64, f64) {
        let mut traffic = Traffic::default();
        traffic.record_load(Lanes::ALL, &row(address), bytes);
        assert_eq!(traffic.load_bytes, 32 * u64::from(bytes));
        (traffic.load_sectors, traffic.efficiency())
    }

    #[test]
    fn sectors_of_well_known_patterns() {
        assert_eq!(load(4, |lane| 4096 + 4 * lane), (4, 1.0), "stride 1");
        assert_eq!(load(4, |lane| 4096 + 8 * lane), (8, 0.5), "stride 2");
        assert_eq!(load(4, |lane| 4096 + 128 * lane), (32, 0.125), "stride 32");
        assert_eq!(load(16, |lane| 4096 + 16 * lane), (16, 1.0), "four at once");
        assert_eq!(load(4, |lane| 4096 + 4 * (31 - lane)), (4, 1.0), "backwards");
        assert_eq!(load(4, |_| 4096), (1, 0.125), "all the same");
        assert_eq!(load(4, |lane| 4096 + 16 + 4 * lane), (5, 0.8), "in the middle of a sector");
        assert_eq!(load(2, |lane| 4096 + 2 * lane), (2, 1.0), "half precision");
        assert_eq!(load(16, |lane| 4096 + 16 + 32 * lane), (32, 0.5), "half of each sector");
    }

    #[test]
    fn lanes_that_do_not_take_part_move_nothing() {
        let mut traffic = Traffic::default();
        traffic.record_store(Lanes::first(8), &row(|lane| 4 * lane), 4);
        traffic.record_update(Lanes::of(3), &row(|_| 64), 4);
        let expected = Traffic { load_bytes: 4, store_bytes: 36, load_sectors: 1, store_sectors: 2, used_bytes: 40, requests: 2 };
        assert_eq!(traffic, expected);
    }

    /// The passes and the bank conflicts of one load by a whole warp.
    fn shared(bytes: u32, address: impl Fn(u64) -> u64) -> (u64, u64) {
        let mut traffic = SharedTraffic::default();
        traffic.record_load(Lanes::ALL, &row(address), bytes);
        (traffic.wavefronts, traffic.bank_conflicts())
    }

    #[test]
    fn banks_of_well_known_patterns() {
        assert_eq!(shared(4, |lane| 4 * lane), (1, 0), "stride 1");
        assert_eq!(shared(4, |lane| 8 * lane), (2, 1), "stride 2");
        assert_eq!(shared(4, |lane| 12 * lane), (1, 0), "stride 3");
        assert_eq!(shared(4, |lane| 128 * lane), (32, 31), "a column of 32 words a row");
        assert_eq!(shared(4, |lane| 132 * lane), (1, 0), "a column of 33 words a row");
        assert_eq!(shared(4, |_| 64), (1, 0), "all the same");
        assert_eq!(shared(2, |lane| 2 * lane), (1, 0), "two lanes a word");
        assert_eq!(shared(1, |lane| 128 * (lane % 2) + lane), (2, 1), "bytes of two rows");
        assert_eq!(shared(8, |lane| 8 * lane), (2, 0), "8 bytes");
        assert_eq!(shared(8, |lane| 16 * lane), (4, 2), "8 bytes, stride 2");
        assert_eq!(shared(16, |lane| 16 * lane), (4, 0), "16 bytes");
        assert_eq!(shared(16, |lane| 128 * lane), (32, 28), "16 bytes of 32 rows");
    }

    #[test]
    fn a_matrix_of_eight_rows_is_one_pass_if_its_rows_are_swizzled() {
        // Eight lanes read a matrix of `ldmatrix`, 16 bytes each.
        let matrix = |address: fn(u64) -> u64| {
            let mut traffic = SharedTraffic::default();
            traffic.record_load(Lanes::first(8), &std::array::from_fn(|row| address(row as u64)), 16);
            (traffic.wavefronts, traffic.bank_conflicts())
        };
        assert_eq!(matrix(|row| 128 * row), (8, 7));
        assert_eq!(matrix(|row| 128 * row + 16 * row), (1, 0));
    }
}
