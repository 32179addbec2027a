//! Loops in which nothing can change any more: how they are known, and what they look at.
//!
//! A set of lanes that comes back to a step with the registers that it had there, while no byte of memory has changed in between, will do so for ever: what it
//! does follows from its registers and from memory, and barriers only make it wait. So for each set of lanes the watch takes its registers at a backward branch
//! as a reference, and compares when the lanes are there again; which visit is the reference follows Brent (*An improved Monte Carlo factorization algorithm*,
//! 1980), so that a cycle of any length is found within three rounds of it. Only registers that decide anything inside the cycle are compared (those
//! from which a branch, an address or a stored value follows), so that a loop that counts its attempts is found, and a loop that ends by its count is not.
//!
//! That all lanes of a cluster are in such cycles, or wait since before the cycles began, is for `run` to see.

use crate::fault::FaultKind;
use crate::lanes::{Lanes, Row, WideRow};
use crate::machine::{Access, Cx, Place, Warp};
use crate::program::{Action, Effect, Program};

/// How often memory, or anything else that lanes may look at, has changed: in the cluster, and in global memory by all clusters that run side by side.
pub(crate) type Version = (u64, u64);

/// What a cluster knows about its progress.
#[derive(Default)]
pub(crate) struct Progress {
    /// Is the watch on? Without it every access to memory that writes counts as a change.
    pub(crate) is_watched: bool,
    pub(crate) version: Version,
    /// Steps that were executed.
    pub(crate) time: u64,
}

impl Progress {
    /// Something happened that lanes may see.
    pub(crate) fn changed(&mut self) {
        self.version.0 += 1;
    }

    fn wrote_anywhere(&mut self) {
        self.version.0 += 1;
        self.version.1 += 1;
    }
}

/// What a warp is known to repeat.
#[derive(Default)]
pub(crate) struct Cycles {
    sets: Vec<Cycle>,
    /// What was read last, by [`Poll::rank`].
    polls: [Option<Poll>; 3],
}

/// Lanes that came to backward branches since the version changed.
struct Cycle {
    lanes: Lanes,
    version: Version,
    visits: u32,
    reference: Option<Reference>,
}

/// What the lanes had at one of the visits.
struct Reference {
    place: u32,
    carry: Lanes,
    /// A hash for each register, of the lanes' values and of whether they have one.
    registers: Vec<u64>,
    /// Steps that were executed since, a bit each.
    visited: Vec<u64>,
    /// A register that differed when it was looked at last.
    witness: Option<usize>,
    /// Since when nothing but repetition is known: the visit before the last one.
    since: u64,
    /// The last time that the lanes were back.
    came_back: Option<u64>,
}

/// A read of memory.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Poll {
    pub(crate) step: u32,
    pub(crate) lane: usize,
    pub(crate) place: Place,
    /// What was there.
    pub(crate) value: u128,
    time: u64,
    is_strong: bool,
}

impl Poll {
    /// What a loop waits for is more likely a strong read of global memory than any other.
    pub(crate) fn rank(&self) -> usize {
        match self.place {
            Place::Global(_) if self.is_strong => 2,
            Place::Global(_) => 1,
            _ => 0,
        }
    }
}

/// More sets of lanes of a warp are not watched at once.
const MAX_SETS: usize = 64;

impl Cycles {
    /// A step was executed.
    pub(crate) fn visit(&mut self, step: u32) {
        for reference in self.sets.iter_mut().filter_map(|set| set.reference.as_mut()) {
            reference.visited[step as usize / 64] |= 1 << (step % 64);
        }
    }

    /// The lanes came to a step by a backward branch. True if they have been there before in the same state.
    pub(crate) fn came_around(&mut self, program: &Program, warp: &Warp, lanes: Lanes, place: u32, progress: &Progress) -> bool {
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
            && reference.place == place
            && reference.is_repeated(program, warp, lanes)
        {
            reference.since = reference.came_back.unwrap_or(reference.since);
            reference.came_back = Some(progress.time);
            return true;
        }
        // The first visit is left out: most loops change memory before the second one.
        let is_known = set.reference.as_ref().is_some_and(|reference| reference.came_back.is_some());
        if set.visits > 1 && set.visits.is_power_of_two() && !is_known {
            set.reference = Some(Reference {
                place,
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

    /// Since when these lanes are known to repeat themselves, if they are and nothing has changed.
    pub(crate) fn repeats_since(&self, lanes: Lanes, version: Version) -> Option<u64> {
        self.cycle(lanes, version).map(|reference| reference.since)
    }

    /// What these lanes look at in their cycle: the read that most likely keeps them there, or the step that they come back to.
    pub(crate) fn awaited(&self, lanes: Lanes, version: Version) -> Option<Result<Poll, u32>> {
        let reference = self.cycle(lanes, version)?;
        let is_inside = |poll: &&Poll| reference.visited[poll.step as usize / 64] >> (poll.step % 64) & 1 == 1;
        Some(self.polls.iter().rev().flatten().find(is_inside).copied().ok_or(reference.place))
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

/// The registers from which it follows what these steps do beside computing registers: each branch, guard, address, stored value and operand of a barrier, and
/// whatever these are computed from. The order of the steps is not asked, so that there may be too many.
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
        // What is computed late is looked at first, as operands are computed before.
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

/// 64 bits of the lanes' values of a register.
fn hash(warp: &Warp, register: usize, lanes: Lanes) -> u64 {
    let row = &warp.registers[register];
    let start = u64::from(warp.defined[register].and(lanes).0);
    lanes.into_iter().fold(start, |hash, lane| {
        // The mixing step of SplitMix64.
        let mixed = (hash ^ row[lane]).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ mixed >> 29
    })
}

impl Cx<'_> {
    /// To be called before a store: it counts as a change if a byte will differ.
    pub(crate) fn will_store(&mut self, access: Access, addresses: &Row, values: &WideRow) {
        if !self.cluster.progress.is_watched {
            return self.cluster.progress.wrote_anywhere();
        }
        for lane in self.lanes {
            let Ok(place) = self.resolve(access.space, addresses[lane]) else { continue };
            if self.now_holds(access, lane, place) != Some(values[lane] & low_bits(access.bytes)) {
                self.wrote(place);
            }
        }
    }

    /// To be called behind an update: it counts as a change if a byte differs now.
    pub(crate) fn has_updated(&mut self, access: Access, addresses: &Row, old: &WideRow, update: &dyn Fn(usize, u128) -> u128) {
        if !self.cluster.progress.is_watched {
            return self.cluster.progress.wrote_anywhere();
        }
        for lane in self.lanes {
            let Ok(place) = self.resolve(access.space, addresses[lane]) else { continue };
            if (update(lane, old[lane]) ^ old[lane]) & low_bits(access.bytes) != 0 {
                self.wrote(place);
            }
        }
    }

    /// To be called behind a read of memory, for what a fault says of a loop.
    pub(crate) fn has_read(&mut self, access: Access, addresses: &Row, values: &WideRow) {
        let Some(lane) = self.lanes.lowest().filter(|_| self.cluster.progress.is_watched) else { return };
        let Ok(place @ (Place::Global(_) | Place::Shared { .. })) = self.resolve(access.space, addresses[lane]) else { return };
        let (step, value, time) = (self.step, values[lane], self.cluster.progress.time);
        let poll = Poll { step, lane, place, value, time, is_strong: access.scope.is_some() };
        let known = &mut self.warp.cycles.polls[poll.rank()];
        if known.is_none_or(|known| known.time <= time) {
            *known = Some(poll);
        }
    }

    fn wrote(&mut self, place: Place) {
        let version = &mut self.cluster.progress.version;
        match place {
            Place::Global(_) => version.1 += 1,
            Place::Shared { .. } | Place::Local(_) | Place::Param(_) => version.0 += 1,
        }
    }

    /// The bytes at a place; none if nobody may look at them, or if they are not read as one.
    fn now_holds(&self, access: Access, lane: usize, place: Place) -> Option<u128> {
        if access.bytes > access.alignment {
            return None;
        }
        let held: Result<u128, FaultKind> = match place {
            Place::Global(address) => {
                self.grid.global.find(address, access.bytes).map(|(allocation, offset)| allocation.load(offset, access.bytes))
            }
            Place::Shared { rank, offset } => self.cluster.ctas[rank].shared.peek(offset, access.bytes),
            Place::Local(offset) => self.warp.local.load(lane, offset, access.bytes, true),
            Place::Param(_) => return None,
        };
        held.ok()
    }
}

fn low_bits(bytes: u32) -> u128 {
    u128::MAX >> (128 - 8 * bytes.min(16))
}
