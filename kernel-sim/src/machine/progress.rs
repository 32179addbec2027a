//! Detection of loops without progress, and of the memory that such a loop polls.
//!
//! Lanes that return to a step with the same registers, without a change of memory in between, repeat the same steps forever: their
//! behaviour follows from their registers and from memory, and barriers only delay them. At a backward branch, the check therefore compares
//! the registers of a set of lanes with a reference from an earlier visit. The reference visit is chosen by Brent's method (*An improved
//! Monte Carlo factorization algorithm*, 1980): the visits number 2, 4, 8 and so on. It finds a cycle of any length within three passes through
//! it.
//!
//! Only decisive registers are compared: those from which a branch, an address or a stored value inside the cycle follows. A polling loop
//! that counts its attempts is therefore detected, while a loop whose count decides when it ends is not.
//!
//! `run` decides whether all lanes of a cluster are in such cycles, or have waited since before the cycles began.

use crate::fault::FaultKind;
use crate::lanes::{Lanes, Row, WideRow};
use crate::machine::{Access, Cx, Location, Warp};
use crate::program::{Action, Effect, Program};

/// A count of the changes to memory and to everything else that lanes can observe: in the cluster, and in global memory by all clusters
/// that run interleaved.
pub(crate) type Version = (u64, u64);

/// The progress of a cluster.
#[derive(Default)]
pub(crate) struct Progress {
    /// Whether stores are compared with the old values. If not, every write access counts as a change.
    pub(crate) is_watched: bool,
    pub(crate) version: Version,
    /// The number of executed steps.
    pub(crate) time: u64,
}

impl Progress {
    /// Records a change that lanes can observe.
    pub(crate) fn changed(&mut self) {
        self.version.0 += 1;
    }

    fn wrote_anywhere(&mut self) {
        self.version.0 += 1;
        self.version.1 += 1;
    }
}

/// The sets of lanes of a warp that are checked for cycles.
#[derive(Default)]
pub(crate) struct Cycles {
    sets: Vec<Cycle>,
    /// The last reads of memory, by [`Poll::rank`].
    polls: [Option<Poll>; 3],
}

/// Lanes that took backward branches since the version changed.
struct Cycle {
    lanes: Lanes,
    version: Version,
    visits: u32,
    reference: Option<Reference>,
}

/// The state of the lanes at one of the visits.
struct Reference {
    step: u32,
    carry: Lanes,
    /// A hash for each register, over the values of the lanes and whether each value is defined.
    registers: Vec<u64>,
    /// The steps executed since the visit, one bit each.
    visited: Vec<u64>,
    /// The register that differed in the last comparison.
    witness: Option<usize>,
    /// The time of the visit before the last one. From there on, the lanes can only have repeated themselves.
    since: u64,
    /// The time of the last return in the same state.
    came_back: Option<u64>,
}

/// A read of memory.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Poll {
    pub(crate) step: u32,
    pub(crate) lane: usize,
    pub(crate) location: Location,
    /// The value that was read.
    pub(crate) value: u128,
    time: u64,
    is_strong: bool,
}

impl Poll {
    /// The likelihood that a loop polls this read. Strong reads of global memory rank highest.
    pub(crate) fn rank(&self) -> usize {
        match self.location {
            Location::Global(_) if self.is_strong => 2,
            Location::Global(_) => 1,
            _ => 0,
        }
    }
}

/// The maximum number of sets of lanes that are checked at once in a warp.
const MAX_SETS: usize = 64;

impl Cycles {
    /// Records the execution of a step.
    pub(crate) fn visit(&mut self, step: u32) {
        for reference in self.sets.iter_mut().filter_map(|set| set.reference.as_mut()) {
            reference.visited[step as usize / 64] |= 1 << (step % 64);
        }
    }

    /// Records that lanes reached a step by a backward branch. Returns true if they were there before in the same state.
    pub(crate) fn came_around(&mut self, program: &Program, warp: &Warp, lanes: Lanes, step: u32, progress: &Progress) -> bool {
        let fresh = || Cycle { lanes, version: progress.version, visits: 0, reference: None };
        let number = match self.sets.iter().position(|set| set.lanes == lanes) {
            Some(number) => number,
            None => {
                if self.sets.len() == MAX_SETS {
                    self.sets.clear();
                }
                self.sets.push(fresh());
                self.sets.len() - 1
            }
        };
        let set = &mut self.sets[number];
        if set.version != progress.version {
            *set = fresh();
        }
        set.visits += 1;
        if let Some(reference) = &mut set.reference
            && reference.step == step
            && reference.is_repeated(program, warp, lanes)
        {
            reference.since = reference.came_back.unwrap_or(reference.since);
            reference.came_back = Some(progress.time);
            return true;
        }
        // The first visit is skipped: most loops change memory before the second visit.
        let is_known = set.reference.as_ref().is_some_and(|reference| reference.came_back.is_some());
        if set.visits > 1 && set.visits.is_power_of_two() && !is_known {
            set.reference = Some(Reference {
                step,
                carry: warp.carry.and(lanes),
                registers: (0..warp.registers.len()).map(|register| hash(warp, register, lanes)).collect(),
                visited: vec![0; program.steps.len().div_ceil(64)],
                witness: None,
                since: progress.time,
                came_back: None,
            });
        }
        false
    }

    /// The time since which these lanes are known to repeat themselves; `None` if they are not, or if something has changed.
    pub(crate) fn repeats_since(&self, lanes: Lanes, version: Version) -> Option<u64> {
        self.cycle(lanes, version).map(|reference| reference.since)
    }

    /// The read that most likely keeps these lanes in their cycle, or the step at which the cycle begins.
    pub(crate) fn awaited(&self, lanes: Lanes, version: Version) -> Option<Result<Poll, u32>> {
        let reference = self.cycle(lanes, version)?;
        let is_inside = |poll: &&Poll| reference.visited[poll.step as usize / 64] >> (poll.step % 64) & 1 == 1;
        Some(self.polls.iter().rev().flatten().find(is_inside).copied().ok_or(reference.step))
    }

    fn cycle(&self, lanes: Lanes, version: Version) -> Option<&Reference> {
        let known = self.sets.iter().filter(|set| set.version == version && set.lanes.contains(lanes));
        known.filter_map(|set| set.reference.as_ref()).find(|reference| reference.came_back.is_some())
    }
}

impl Reference {
    fn is_repeated(&mut self, program: &Program, warp: &Warp, lanes: Lanes) -> bool {
        let differs = |register: &usize| hash(warp, *register, lanes) != self.registers[*register];
        if self.witness.as_ref().is_some_and(differs) || self.carry != warp.carry.and(lanes) {
            return false;
        }
        let different: Vec<usize> = (0..self.registers.len()).filter(differs).collect();
        if different.is_empty() {
            return true;
        }
        let decisive = decisive(program, &self.visited);
        self.witness = different.into_iter().find(|&register| decisive[register]);
        self.witness.is_none()
    }
}

/// The registers that decide what these steps do apart from computing registers: operands of branches, guards, addresses, stored values and
/// barriers, and the registers from which these are computed. The order of the steps is ignored, so the set may be too large.
fn decisive(program: &Program, visited: &[u64]) -> Vec<bool> {
    let steps: Vec<_> =
        (0..program.steps.len()).filter(|step| visited[step / 64] >> (step % 64) & 1 == 1).map(|step| &program.steps[step]).collect();
    let mut decisive = vec![false; program.registers.len()];
    for step in &steps {
        let computes = matches!(&step.action, Action::Work(_)) && step.effect == Effect::Registers;
        let operands = if computes { &[][..] } else { &step.uses.reads };
        for register in operands.iter().copied().chain(step.guard.map(|(register, _)| register)) {
            decisive[register.0 as usize] = true;
        }
    }
    loop {
        let mut is_done = true;
        // Visits the steps backwards, because operands are mostly computed before their uses.
        for step in steps.iter().rev() {
            if !step.uses.writes.iter().any(|register| decisive[register.0 as usize]) {
                continue;
            }
            for register in &step.uses.reads {
                is_done &= std::mem::replace(&mut decisive[register.0 as usize], true);
            }
        }
        if is_done {
            return decisive;
        }
    }
}

/// A 64-bit hash of a register's values in these lanes.
fn hash(warp: &Warp, register: usize, lanes: Lanes) -> u64 {
    let row = &warp.registers[register];
    let start = u64::from(warp.defined[register].and(lanes).0);
    lanes.into_iter().fold(start, |hash, lane| {
        // The mixing function of SplitMix64.
        let mixed = (hash ^ row[lane]).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ mixed >> 29
    })
}

impl Cx<'_> {
    /// Must be called before a store. The store counts as a change if it changes a byte.
    pub(crate) fn will_store(&mut self, access: Access, addresses: &Row, values: &WideRow) {
        if !self.cluster.progress.is_watched {
            return self.cluster.progress.wrote_anywhere();
        }
        for lane in self.lanes {
            let Ok(location) = self.resolve(access.space, addresses[lane]) else { continue };
            if self.now_holds(access, lane, location) != Some(values[lane] & low_bits(access.bytes)) {
                self.wrote(location);
            }
        }
    }

    /// Must be called after an update. The update counts as a change if a byte differs from the old value.
    pub(crate) fn has_updated(&mut self, access: Access, addresses: &Row, old: &WideRow, update: &dyn Fn(usize, u128) -> u128) {
        if !self.cluster.progress.is_watched {
            return self.cluster.progress.wrote_anywhere();
        }
        for lane in self.lanes {
            let Ok(location) = self.resolve(access.space, addresses[lane]) else { continue };
            if (update(lane, old[lane]) ^ old[lane]) & low_bits(access.bytes) != 0 {
                self.wrote(location);
            }
        }
    }

    /// Must be called after a read of memory: records the read for the fault message of a loop.
    pub(crate) fn has_read(&mut self, access: Access, addresses: &Row, values: &WideRow) {
        let Some(lane) = self.lanes.lowest().filter(|_| self.cluster.progress.is_watched) else { return };
        let Ok(location @ (Location::Global(_) | Location::Shared { .. })) = self.resolve(access.space, addresses[lane]) else { return };
        let (step, value, time) = (self.step, values[lane], self.cluster.progress.time);
        let poll = Poll { step, lane, location, value, time, is_strong: access.scope.is_some() };
        let known = &mut self.warp.cycles.polls[poll.rank()];
        if known.is_none_or(|known| known.time <= time) {
            *known = Some(poll);
        }
    }

    fn wrote(&mut self, location: Location) {
        let version = &mut self.cluster.progress.version;
        match location {
            Location::Global(_) => version.1 += 1,
            Location::Shared { .. } | Location::Local(_) | Location::Param(_) => version.0 += 1,
        }
    }

    /// The current value at an address; `None` if the memory is inaccessible or the access is not read as one value.
    fn now_holds(&self, access: Access, lane: usize, location: Location) -> Option<u128> {
        if access.bytes > access.alignment {
            return None;
        }
        let held: Result<u128, FaultKind> = match location {
            Location::Global(address) => {
                self.grid.global.find(address, access.bytes).map(|(allocation, offset)| allocation.load(offset, access.bytes))
            }
            Location::Shared { rank, offset } => self.cluster.ctas[rank].shared.peek(offset, access.bytes),
            Location::Local(offset) => self.warp.local.load(lane, offset, access.bytes, true),
            Location::Param(_) => return None,
        };
        held.ok()
    }
}

fn low_bits(bytes: u32) -> u128 {
    u128::MAX >> (128 - 8 * bytes.min(16))
}
