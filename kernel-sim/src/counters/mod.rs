//! What a launch did, counted for each source line.

mod table;
mod traffic;

use std::collections::HashMap;

pub use traffic::{SharedTraffic, Traffic};

use crate::lanes::Lanes;
use crate::ptx::SourceLine;

/// What an instruction is counted as.
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
    /// All classes, in their order.
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

/// What one source line did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct LineCounters {
    /// Instructions that a warp executed, by [`Class`].
    pub instructions: [u64; Class::ALL.len()],
    /// The same, each counted for every thread that took part.
    pub thread_instructions: u64,
    /// Loads, stores and atomics of global memory, not those of asynchronous copies.
    pub global: Traffic,
    /// Loads, stores and atomics of shared memory, not those of asynchronous operations.
    pub shared: SharedTraffic,
    /// Additions and multiplications of matrix instructions: `2 m n k` each.
    pub matrix_flops: u64,
    /// Bytes that asynchronous copies moved.
    pub async_bytes: u64,
}

/// What a launch, or a part of it, did.
///
/// The sum of what its parts did does not depend on their order, so it is the same in each run.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    lines: Vec<(SourceLine, LineCounters)>,
    places: HashMap<SourceLine, usize>,
    /// Where the last line stands: the next instruction mostly has the same.
    last: usize,
}

impl LineCounters {
    /// Instructions of that class that a warp executed.
    pub fn of(&self, class: Class) -> u64 {
        self.instructions[class as usize]
    }

    /// Instructions that a warp executed.
    pub fn warp_instructions(&self) -> u64 {
        self.instructions.iter().sum()
    }

    /// Adds what another line, or the same line elsewhere, did.
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
    /// Adds what another part did.
    pub fn merge(&mut self, other: &Counters) {
        for (line, counters) in &other.lines {
            self.at(*line).merge(counters);
        }
    }

    /// The sum over all lines.
    pub fn total(&self) -> LineCounters {
        let mut total = LineCounters::default();
        self.lines.iter().for_each(|(_, counters)| total.merge(counters));
        total
    }

    /// Each line that did something, by file, line and column.
    pub fn lines(&self) -> impl Iterator<Item = (SourceLine, &LineCounters)> {
        let mut lines: Vec<_> = self.lines.iter().map(|(line, counters)| (*line, counters)).collect();
        lines.sort_by_key(|(line, _)| *line);
        lines.into_iter()
    }

    /// The report: a row for each source line, and the total. `files` are the names and numbers of `.file`.
    pub fn to_table(&self, files: &[(u32, String)]) -> String {
        table::render(self, files)
    }

    /// What that line did, to be changed.
    pub(crate) fn at(&mut self, line: SourceLine) -> &mut LineCounters {
        if self.lines.get(self.last).is_none_or(|(known, _)| *known != line) {
            self.last = *self.places.entry(line).or_insert_with(|| {
                self.lines.push((line, LineCounters::default()));
                self.lines.len() - 1
            });
        }
        &mut self.lines[self.last].1
    }

    /// A warp executed an instruction with these lanes.
    pub(crate) fn instruction(&mut self, line: SourceLine, class: Class, lanes: Lanes) {
        let counters = self.at(line);
        counters.instructions[class as usize] += 1;
        counters.thread_instructions += u64::from(lanes.count());
    }

    /// A matrix instruction multiplied and added that often, each counted once.
    pub(crate) fn matrix(&mut self, line: SourceLine, flops: u64) {
        self.at(line).matrix_flops += flops;
    }

    /// An asynchronous copy moved bytes.
    pub(crate) fn asynchronous(&mut self, line: SourceLine, bytes: u64) {
        self.at(line).async_bytes += bytes;
    }
}

impl PartialEq for Counters {
    fn eq(&self, other: &Counters) -> bool {
        self.lines().eq(other.lines())
    }
}
