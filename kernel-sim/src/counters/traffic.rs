//! Memory traffic of a warp: sectors of global memory and bank conflicts in shared memory.
//!
//! The rules are those of the CUDA C++ Programming Guide, "Device Memory Accesses" and "Shared Memory" (compute capability 5 and later).

use crate::lanes::{Lanes, Row, WARP};

/// The size of a sector, the smallest unit of a transfer of global memory.
pub(super) const SECTOR: u64 = 32;
/// The size of a cache line.
const LINE: u64 = 128;
/// The number of banks of shared memory, each one word wide.
const BANKS: u64 = 32;
/// The size of a bank's word in bytes.
const WORD: u64 = 4;

/// The number of widths that an access of one thread can have.
const WIDTHS: usize = 5;

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
    /// The fewest sectors that hold the used bytes, summed over the instructions of warps.
    pub least_sectors: u64,
    /// Cache lines of 128 bytes that contain the sectors, each counted once for each instruction of a warp. The L1 looks up one in a cycle.
    pub lines: u64,
    /// The bytes that threads loaded and stored, by the bytes of one thread's access: 1, 2, 4, 8 and 16.
    pub bytes_by_width: [u64; WIDTHS],
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
        self.least_sectors += other.least_sectors;
        self.lines += other.lines;
        self.bytes_by_width.iter_mut().zip(other.bytes_by_width).for_each(|(own, other)| *own += other);
        self.requests += other.requests;
    }

    pub(crate) fn record_load(&mut self, lanes: Lanes, addresses: &Row, bytes: u32) {
        self.load_bytes += u64::from(lanes.count() * bytes);
        self.load_sectors += self.record(lanes, addresses, bytes);
    }

    pub(crate) fn record_store(&mut self, lanes: Lanes, addresses: &Row, bytes: u32) {
        self.store_bytes += u64::from(lanes.count() * bytes);
        self.store_sectors += self.record(lanes, addresses, bytes);
    }

    /// Counts what loads and stores have in common, and returns the number of sectors.
    fn record(&mut self, lanes: Lanes, addresses: &Row, bytes: u32) -> u64 {
        let Touched { used, sectors, lines } = touched(lanes, addresses, bytes);
        self.used_bytes += used;
        self.lines += lines;
        self.least_sectors += used.div_ceil(SECTOR);
        self.bytes_by_width[(bytes.max(1).ilog2() as usize).min(WIDTHS - 1)] += u64::from(lanes.count() * bytes);
        self.requests += 1;
        sectors
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

/// The memory that the lanes of a request touch.
struct Touched {
    /// The number of different bytes.
    used: u64,
    /// The number of different sectors.
    sectors: u64,
    /// The number of different cache lines.
    lines: u64,
}

fn touched(lanes: Lanes, addresses: &Row, bytes: u32) -> Touched {
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
    let mut touched = Touched { used: 0, sectors: 0, lines: 0 };
    let (mut end, mut next_sector, mut next_line) = (0, 0, 0);
    for &mut address in sorted {
        let own_end = address.saturating_add(u64::from(bytes));
        touched.used += own_end - address.max(end).min(own_end);
        end = own_end;
        touched.sectors += units(address, own_end, SECTOR, &mut next_sector);
        touched.lines += units(address, own_end, LINE, &mut next_line);
    }
    touched
}

/// The number of units of memory from an address to an end that begin at the unit `next` or later. `next` becomes the first unit behind them.
fn units(address: u64, end: u64, size: u64, next: &mut u64) -> u64 {
    let first = (address / size).max(*next);
    *next = end.div_ceil(size).max(*next);
    *next - first.min(*next)
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
    fn lines_of_well_known_patterns() {
        let lines = |bytes, address: fn(u64) -> u64| {
            let mut traffic = Traffic::default();
            traffic.record_load(Lanes::ALL, &row(address), bytes);
            traffic.lines
        };
        assert_eq!(lines(4, |lane| 4096 + 4 * lane), 1, "stride 1");
        assert_eq!(lines(4, |lane| 4096 + 16 + 4 * lane), 2, "across a line");
        assert_eq!(lines(16, |lane| 4096 + 16 * lane), 4, "four at once");
        assert_eq!(lines(4, |lane| 4096 + 128 * (lane % 8)), 8, "eight lines, four times");
        assert_eq!(lines(2, |lane| 4096 + 4096 * lane), 32, "scattered");
    }

    #[test]
    fn lanes_that_do_not_take_part_move_nothing() {
        let mut traffic = Traffic::default();
        traffic.record_store(Lanes::first(8), &row(|lane| 4 * lane), 4);
        traffic.record_update(Lanes::of(3), &row(|_| 64), 4);
        let expected = Traffic {
            load_bytes: 4,
            store_bytes: 36,
            load_sectors: 1,
            store_sectors: 2,
            used_bytes: 40,
            least_sectors: 3,
            lines: 3,
            bytes_by_width: [0, 0, 40, 0, 0],
            requests: 2,
        };
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
