//! Performance counters of a launch, for each source line.

mod memory;
mod table;
mod traffic;

use std::collections::{BTreeMap, HashMap, HashSet};

pub use memory::Sectors;
pub use traffic::{SharedTraffic, Traffic};

use crate::lanes::Lanes;
use crate::ptx::SourceLine;

/// The classes of instructions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Class {
    /// Integer arithmetic and logic, predicates, moves, conversions between integers.
    Integer,
    /// Floating-point arithmetic and conversions.
    Float,
    /// Approximate functions: `ex2`, `lg2`, `sin`, `rcp.approx`.
    Special,
    /// Matrix instructions.
    Matrix,
    /// Global, generic, local, constant and parameter memory.
    Memory,
    /// Shared memory, `ldmatrix`, `stmatrix`.
    Shared,
    /// Shuffles and votes.
    Warp,
    /// Barriers, fences and waits.
    Barrier,
    /// Branches, calls and exits.
    Control,
}

impl Class {
    /// All classes, in ascending order.
    pub const ALL: [Class; 9] = [
        Class::Integer,
        Class::Float,
        Class::Special,
        Class::Matrix,
        Class::Memory,
        Class::Shared,
        Class::Warp,
        Class::Barrier,
        Class::Control,
    ];
}

/// The counters of one source line.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct LineCounters {
    /// Instructions executed by warps, indexed by [`Class`].
    pub instructions: [u64; Class::ALL.len()],
    /// Instructions executed by threads: each instruction of a warp counts once for each active thread.
    pub thread_instructions: u64,
    /// Loads, stores and atomics of global memory, and the reads of `cp.async`. Bulk copies are not among them.
    pub global: Traffic,
    /// Loads, stores and atomics of shared memory, without asynchronous operations.
    pub shared: SharedTraffic,
    /// Additions and multiplications of matrix instructions: `2 m n k` for each.
    pub matrix_flops: u64,
    /// Bytes moved by bulk copies and `st.async`.
    pub async_bytes: u64,
}

/// The counters of a launch or of a part of it.
///
/// The sum over parts does not depend on the order of the parts, so it is the same in each run.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    lines: Vec<(SourceLine, LineCounters)>,
    /// The index of each line in `lines`.
    indices: HashMap<SourceLine, usize>,
    /// The index of the last used line: the next instruction mostly has the same line.
    last: usize,
    /// The sectors that each line touches, if they are counted.
    sectors: BTreeMap<SourceLine, Sectors>,
    /// See [`Counters::sectors_read_by_clusters`].
    read_by_clusters: u64,
}

impl LineCounters {
    /// The instructions of this class that warps executed.
    pub fn of(&self, class: Class) -> u64 {
        self.instructions[class as usize]
    }

    /// The instructions that warps executed.
    pub fn warp_instructions(&self) -> u64 {
        self.instructions.iter().sum()
    }

    /// Adds the counters of another line or of another part of the launch.
    pub fn merge(&mut self, other: &LineCounters) {
        self.instructions.iter_mut().zip(&other.instructions).for_each(|(own, other)| *own += other);
        self.thread_instructions += other.thread_instructions;
        self.global.merge(&other.global);
        self.shared.merge(&other.shared);
        self.matrix_flops += other.matrix_flops;
        self.async_bytes += other.async_bytes;
    }
}

impl Counters {
    /// Adds the counters of another part of the launch.
    pub fn merge(&mut self, other: &Counters) {
        for (line, counters) in &other.lines {
            self.at(*line).merge(counters);
        }
        for (line, sectors) in &other.sectors {
            self.sectors.entry(*line).or_default().merge(sectors);
        }
        self.read_by_clusters += other.read_by_clusters;
    }

    /// The sectors of global memory that each line touches, if the launch counts them ([`Options::count_sectors`](crate::Options)).
    pub fn sectors(&self) -> impl Iterator<Item = (SourceLine, &Sectors)> {
        self.sectors.iter().map(|(line, sectors)| (*line, sectors))
    }

    /// The sum over all lines.
    pub fn total(&self) -> LineCounters {
        let mut total = LineCounters::default();
        self.lines.iter().for_each(|(_, counters)| total.merge(counters));
        total
    }

    /// The counters of each line, sorted by file, line and column.
    pub fn lines(&self) -> impl Iterator<Item = (SourceLine, &LineCounters)> {
        let mut lines: Vec<_> = self.lines.iter().map(|(line, counters)| (*line, counters)).collect();
        lines.sort_by_key(|(line, _)| *line);
        lines.into_iter()
    }

    /// The report: a row for each source line, and the total. `files` has the numbers and names of `.file`.
    pub fn to_table(&self, files: &[(u32, String)]) -> String {
        table::render(self, files)
    }

    /// The sectors that loads read, each counted once for each cluster that reads it, if the launch counts sectors. If no cluster's L1 lost a
    /// sector, the L2 would deliver so many.
    pub fn sectors_read_by_clusters(&self) -> u64 {
        self.read_by_clusters
    }

    /// Ends the counters of one cluster.
    pub(crate) fn of_cluster(mut self) -> Counters {
        let read: HashSet<u64> = self.sectors.values().flat_map(|sectors| sectors.loaded.keys().copied()).collect();
        self.read_by_clusters = read.len() as u64;
        self
    }

    /// The counters of a line, for updates.
    pub(crate) fn at(&mut self, line: SourceLine) -> &mut LineCounters {
        if self.lines.get(self.last).is_none_or(|(known, _)| *known != line) {
            self.last = *self.indices.entry(line).or_insert_with(|| {
                self.lines.push((line, LineCounters::default()));
                self.lines.len() - 1
            });
        }
        &mut self.lines[self.last].1
    }

    /// Counts an instruction of a warp with these active lanes.
    pub(crate) fn instruction(&mut self, line: SourceLine, class: Class, lanes: Lanes) {
        let counters = self.at(line);
        counters.instructions[class as usize] += 1;
        counters.thread_instructions += u64::from(lanes.count());
    }

    /// Counts the additions and multiplications of a matrix instruction.
    pub(crate) fn matrix(&mut self, line: SourceLine, flops: u64) {
        self.at(line).matrix_flops += flops;
    }

    /// The sectors of a line, for updates.
    pub(crate) fn sectors_at(&mut self, line: SourceLine) -> &mut Sectors {
        self.sectors.entry(line).or_default()
    }

    /// Counts the bytes of a bulk copy or of `st.async`.
    pub(crate) fn asynchronous(&mut self, line: SourceLine, bytes: u64) {
        self.at(line).async_bytes += bytes;
    }
}

impl PartialEq for Counters {
    fn eq(&self, other: &Counters) -> bool {
        self.lines().eq(other.lines()) && self.sectors == other.sectors && self.read_by_clusters == other.read_by_clusters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(line: u32) -> SourceLine {
        SourceLine { file: 1, line, column: 5 }
    }

    /// The counters of one warp in a vector addition of 32 elements.
    fn add() -> Counters {
        let mut counters = Counters::default();
        let addresses = std::array::from_fn(|lane| 4 * lane as u64);
        for array in 0..2 {
            counters.instruction(line(7 + array), Class::Memory, Lanes::ALL);
            counters.at(line(7 + array)).global.record_load(Lanes::ALL, &addresses, 4);
        }
        counters.instruction(line(9), Class::Float, Lanes::ALL);
        counters.instruction(line(9), Class::Memory, Lanes::ALL);
        counters.at(line(9)).global.record_store(Lanes::ALL, &addresses, 4);
        counters
    }

    #[test]
    fn the_sum_does_not_depend_on_the_order() {
        let mut other = Counters::default();
        other.instruction(line(3), Class::Integer, Lanes::first(5));
        other.matrix(line(9), 4096);
        other.asynchronous(line(2), 128);
        let (mut left, mut right) = (add(), other.clone());
        left.merge(&other);
        right.merge(&add());
        assert_eq!(left, right);
        assert_ne!(left, add());
        assert_eq!(left.lines().map(|(line, _)| line.line).collect::<Vec<_>>(), [2, 3, 7, 8, 9]);
        let total = left.total();
        assert_eq!((total.warp_instructions(), total.thread_instructions), (5, 4 * 32 + 5));
        assert_eq!((total.of(Class::Memory), total.of(Class::Float), total.of(Class::Barrier)), (3, 1, 0));
        assert_eq!((total.global.load_bytes, total.global.store_bytes), (32 * 8, 32 * 4));
        assert_eq!((total.matrix_flops, total.async_bytes), (4096, 128));
    }

    #[test]
    fn the_report_has_a_row_for_each_line() {
        let mut counters = add();
        counters.instruction(line(12), Class::Shared, Lanes::ALL);
        counters.at(line(12)).shared.record_store(Lanes::ALL, &std::array::from_fn(|lane| 8 * lane as u64), 4);
        counters.instruction(SourceLine { column: 9, ..line(12) }, Class::Barrier, Lanes::ALL);
        counters.instruction(SourceLine::default(), Class::Control, Lanes::ALL);
        let expected = "\
line           instructions  global bytes  sectors/request  efficiency  shared bytes  bank conflicts  matrix flops
(no line)                 1
src/add.rs:7              1           128              4.0        100%
src/add.rs:8              1           128              4.0        100%
src/add.rs:9              2           128              4.0        100%
src/add.rs:12             2                                                      128               1
total                     7           384              4.0        100%           128               1
";
        assert_eq!(counters.to_table(&[(1, "src/add.rs".to_owned())]), expected);
    }
}
