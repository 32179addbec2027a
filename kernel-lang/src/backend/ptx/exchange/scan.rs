//! Scans: the results of prefixes, in addition to those of whole runs that `reduce.rs` computes.
//!
//! A thread scans its own runs of neighbours first. What comes before a run is elsewhere: in other lanes, in other warps, or in registers further on. It is the
//! same for all elements of the run, so it is gathered for the run, level by level, and combined with each element once at the end.
//!
//! ```text
//! elements             a b c d | e f g h        two lanes, runs of 4
//! prefixes in a run    a ab abc abcd | e ef efg efgh
//! before the run       -             | abcd
//! result               a ab abc abcd | abcde abcdef ..
//! ```
//!
//! There may be no neutral element, so a predicate says whether anything comes before the run of a thread.

use std::collections::BTreeMap;

use crate::backend::ptx::Emitter;
use crate::backend::ptx::text::registers::{Class, Reg, asm};
use crate::ir::Region;

/// The prefixes of a scan.
pub(super) struct Scan {
    /// For each register, the result of its element and of the elements before it in its run.
    prefixes: Vec<Vec<Reg>>,
    /// The register bits of a run of neighbours: those that come before the bits of lanes and warps.
    neighbours: u32,
    /// Are all bits until now those of a run?
    is_within_runs: bool,
    /// What comes before each run, by its first register.
    before: BTreeMap<u32, Before>,
}

/// The result of the elements before a run.
struct Before {
    values: Vec<Reg>,
    /// Whether there are any, if that is not so in all threads.
    holds: Option<Reg>,
}

impl Scan {
    /// A scan of these elements, which are in the registers of a thread.
    pub(super) fn of(elements: Vec<Vec<Reg>>) -> Scan {
        Scan { prefixes: elements, neighbours: 0, is_within_runs: true, before: BTreeMap::new() }
    }

    /// The first registers of the runs.
    fn runs(&self) -> Vec<u32> {
        (0..self.prefixes.len() as u32).filter(|register| register & self.neighbours == 0).collect()
    }
}

impl Emitter<'_> {
    /// Combines runs whose registers differ in a bit, which is `late` in the later run. `earlier` gives the result of the run in front of that of a register.
    pub(super) fn scan_registers<'r>(
        &mut self,
        combine: Region,
        scan: &mut Scan,
        bit: u32,
        late: u32,
        earlier: impl Fn(u32) -> &'r Vec<Reg>,
    ) {
        if scan.is_within_runs {
            for register in (0..scan.prefixes.len() as u32).filter(|register| register & bit == late) {
                let own = scan.prefixes[register as usize].clone();
                scan.prefixes[register as usize] = self.combined(combine, earlier(register), &own);
            }
            scan.neighbours |= bit;
        } else {
            for run in scan.runs().into_iter().filter(|run| run & bit == late) {
                self.put_before(combine, scan, run, earlier(run), None);
            }
        }
    }

    /// Combines a run of a thread with `earlier`, the result of other threads, where `is_later` holds. Registers with the same bits but `taken` belong to it.
    pub(super) fn scan_others(&mut self, combine: Region, scan: &mut Scan, (run, taken): (u32, u32), earlier: &[Reg], is_later: Reg) {
        scan.is_within_runs = false;
        for own in scan.runs().into_iter().filter(|own| own & !taken == run) {
            self.put_before(combine, scan, own, earlier, Some(is_later));
        }
    }

    fn put_before(&mut self, combine: Region, scan: &mut Scan, run: u32, earlier: &[Reg], is_later: Option<Reg>) {
        let Some(Before { values, holds }) = scan.before.remove(&run) else {
            scan.before.insert(run, Before { values: earlier.to_vec(), holds: is_later });
            return;
        };
        let mut longer = self.combined(combine, earlier, &values);
        if let Some(holds) = holds {
            longer = self.choose(holds, &longer, earlier);
        }
        let before = match (holds, is_later) {
            (_, None) => Before { values: longer, holds: None },
            (holds, Some(is_later)) => {
                let any = holds.map(|holds| {
                    let any = self.reg(Class::Pred);
                    asm!(self, "or.pred {any}, {holds}, {is_later}");
                    any
                });
                Before { values: self.choose(is_later, &longer, &values), holds: any }
            }
        };
        scan.before.insert(run, before);
    }

    /// The results, by register.
    pub(super) fn prefixes(&mut self, combine: Region, scan: Scan) -> Vec<Vec<Reg>> {
        let Scan { mut prefixes, neighbours, before, .. } = scan;
        for (register, prefix) in prefixes.iter_mut().enumerate() {
            if let Some(Before { values, holds }) = before.get(&(register as u32 & !neighbours)) {
                let longer = self.combined(combine, values, prefix);
                *prefix = holds.map_or(longer.clone(), |holds| self.choose(holds, &longer, prefix));
            }
        }
        prefixes
    }
}
