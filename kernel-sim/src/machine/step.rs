//! One step of a warp: selects a group of lanes, and executes its next instruction.

use crate::counters::Class;
use crate::fault::{FaultKind, Trap};
use crate::instructions::{Convergence, Instruction, Progress, Register};
use crate::lanes::{Lanes, Row, WARP};
use crate::machine::groups::{Group, Groups, State};
use crate::machine::{Cluster, Cx, Grid, Version, Warp};
use crate::program::{Action, Effect, Program, Step};

/// A running warp.
pub(crate) struct Running {
    /// The rank of the warp's CTA.
    pub(crate) rank: usize,
    pub(crate) warp: Warp,
    pub(crate) groups: Groups,
    /// The group that ran last.
    current: usize,
}

/// The result of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// An instruction was executed.
    Stepped,
    /// An instruction was executed, and other warps should run next.
    Yielded,
    /// An instruction was executed, and lanes returned to a step in the same state as before.
    Repeated,
    /// No group can continue now.
    Stuck,
    /// No lane is left.
    Ended,
}

/// The state of lanes that do not make progress.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Standstill {
    /// The time since which all repeating lanes repeat themselves; `None` if there are none.
    pub(crate) repeats_since: Option<u64>,
    /// The time since which all waiting lanes wait; `None` if there are none.
    pub(crate) waits_since: Option<u64>,
}

/// A trap, and the step of its instruction.
pub(crate) type Failure = (u32, Trap);

impl Running {
    pub(crate) fn new(rank: usize, warp: Warp) -> Running {
        let groups = Groups::new(warp.live);
        Running { rank, warp, groups, current: 0 }
    }

    /// Executes one instruction of one group. A value in `other` selects another group than the last one.
    pub(crate) fn step(&mut self, program: &Program, grid: &Grid, cluster: &mut Cluster, other: Option<u64>) -> Result<Outcome, Failure> {
        if self.warp.live.is_empty() {
            return Ok(Outcome::Ended);
        }
        let Some(group) = self.choose(cluster.events, other) else { return Ok(Outcome::Stuck) };
        self.current = group;
        let Some((step_index, lanes)) = self.groups.get(group).map(|group| (group.step, group.lanes)) else { return Ok(Outcome::Stuck) };
        let step = &program.steps[step_index as usize];
        let failed = |trap| (step_index, trap);
        self.warp.executed += 1;
        cluster.progress.time += 1;
        if cluster.progress.is_watched {
            self.warp.cycles.visit(step_index);
        }
        if let Action::Work(work) = &step.action {
            return self.work(work.as_ref(), (group, step_index), (program, grid), cluster).map_err(failed);
        }
        let active = self.guarded(step, lanes, program).map_err(failed)?;
        match &step.action {
            Action::Work(_) => Ok(Outcome::Stepped),
            Action::Branch { target, reconverge } => {
                cluster.counters.instruction(step.line, Class::Control, active);
                let stay = lanes.without(active);
                let ways = [(active, *target), (stay, step_index + 1)];
                self.part(group, &ways, *reconverge);
                let came_around =
                    *target <= step_index && cluster.progress.is_watched && self.came_around(*target, active, program, cluster);
                Ok(if came_around { Outcome::Repeated } else { Outcome::Stepped })
            }
            Action::BranchTable { index, targets, reconverge } => {
                cluster.counters.instruction(step.line, Class::Control, active);
                let cx = self.cx(active, (program, grid), cluster, step_index);
                let row = cx.read(*index).map_err(failed)?;
                let mut ways = vec![(lanes.without(active), step_index + 1)];
                for lane in active {
                    let Some(&target) = targets.get(row[lane] as usize) else {
                        let reason = format!("entry {} of a branch table that has {}", row[lane], targets.len());
                        return Err((step_index, Trap::new(lane, FaultKind::Illegal { reason })));
                    };
                    match ways.iter_mut().find(|way| way.1 == target) {
                        Some(way) => way.0 = way.0.or(Lanes::of(lane)),
                        None => ways.push((Lanes::of(lane), target)),
                    }
                }
                self.part(group, &ways, *reconverge);
                Ok(Outcome::Stepped)
            }
            Action::Exit => {
                cluster.counters.instruction(step.line, Class::Control, active);
                self.warp.live = self.warp.live.without(active);
                self.groups.end(group, active, step_index + 1);
                cluster.ended(self.rank, self.warp.index, active);
                Ok(if self.warp.live.is_empty() { Outcome::Ended } else { Outcome::Stepped })
            }
        }
    }

    /// Selects the group to run: the last one while it can run, or another one if there is a value in `other`.
    fn choose(&mut self, events: u64, other: Option<u64>) -> Option<usize> {
        let live = self.warp.live;
        let can_run = |groups: &Groups, number: usize| {
            let Some(group) = groups.get(number) else { return false };
            match group.state {
                State::Running => true,
                State::Suspended { .. } => false,
                State::Blocked { events: seen, .. } => seen != events,
                State::Meeting { lanes, .. } => here(groups, group.step).contains(lanes.and(live)),
                State::MeetingAll { .. } => here(groups, group.step).contains(live),
            }
        };
        if other.is_none() && can_run(&self.groups, self.current) {
            return Some(self.current);
        }
        let able: Vec<usize> = self.groups.iter().map(|(number, _)| number).filter(|&number| can_run(&self.groups, number)).collect();
        let after = able.iter().position(|&number| number > self.current).unwrap_or(0);
        (!able.is_empty()).then(|| able[(after + other.unwrap_or(0) as usize) % able.len()])
    }

    /// The lanes whose guard predicate holds.
    fn guarded(&self, step: &Step, lanes: Lanes, program: &Program) -> Result<Lanes, Trap> {
        let Some((Register(register), wanted)) = step.guard else { return Ok(lanes) };
        let undefined = lanes.without(self.warp.defined[register as usize]);
        if let Some(lane) = undefined.lowest() {
            let nobody_wrote =
                || Trap::new(lane, FaultKind::UninitialisedRegister { register: program.registers[register as usize].clone() });
            return Err(self.warp.unknown(Register(register), lane).map_or_else(nobody_wrote, |unknown| unknown.trap(lane)));
        }
        let row = &self.warp.registers[register as usize];
        Ok(lanes.filter(|lane| (row[lane] == 1) == wanted))
    }

    fn part(&mut self, group: usize, ways: &[(Lanes, u32)], meeting: Option<u32>) {
        let taken: Vec<(Lanes, u32)> = ways.iter().copied().filter(|(lanes, _)| !lanes.is_empty()).collect();
        self.groups.part(group, &taken, meeting);
    }

    fn work(
        &mut self,
        work: &dyn Instruction,
        (group, step_index): (usize, u32),
        (program, grid): (&Program, &Grid),
        cluster: &mut Cluster,
    ) -> Result<Outcome, Trap> {
        let step = &program.steps[step_index as usize];
        let own = self.lanes_of(group);
        let since = self.groups.waits_since(group).unwrap_or(cluster.progress.time);
        let mut active = self.guarded(step, own, program)?;
        // Groups that have converged at this step execute it together.
        let met = here(&self.groups, step_index).or(own);
        let mut together = own;
        match work.convergence() {
            Convergence::Free => {}
            _ if active.is_empty() => {}
            Convergence::Aligned => {
                if !met.contains(self.warp.live) {
                    self.groups.set_state(group, State::MeetingAll { since });
                    return Ok(Outcome::Stepped);
                }
                (together, active) = (met, self.guarded(step, met, program)?);
                if active != self.warp.live {
                    return Err(divergent(active, self.warp.live));
                }
            }
            Convergence::Members(mask) => {
                let masks = self.cx(active, (program, grid), cluster, step_index).read(mask)?;
                let awaited = self.awaited(&masks, active, own)?;
                if !met.contains(awaited) {
                    self.groups.set_state(group, State::Meeting { lanes: awaited, since });
                    return Ok(Outcome::Stepped);
                }
                if !awaited.is_empty() {
                    (together, active) = (met, self.guarded(step, met, program)?);
                    let masks = self.cx(active, (program, grid), cluster, step_index).read(mask)?;
                    self.awaited(&masks, active, together)?;
                }
            }
        }
        let numbers = self.groups_within(step_index, together);
        if active.is_empty() {
            numbers.into_iter().for_each(|group| self.groups.go(group, step_index + 1));
            return Ok(Outcome::Stepped);
        }
        let progress = work.execute(&mut self.cx(active, (program, grid), cluster, step_index))?;
        if progress == Progress::Wait {
            let state = State::Blocked { events: cluster.events, since };
            numbers.into_iter().for_each(|group| self.groups.set_state(group, state));
            return Ok(Outcome::Stepped);
        }
        // The exchange between lanes of several groups does not follow from the earlier state of one set of lanes.
        if step.effect == Effect::Progress || step.effect == Effect::Registers && numbers.len() > 1 {
            cluster.progress.changed();
        }
        cluster.counters.instruction(step.line, work.class(), active);
        numbers.into_iter().for_each(|group| self.groups.go(group, step_index + 1));
        Ok(if progress == Progress::Yield { Outcome::Yielded } else { Outcome::Stepped })
    }

    /// Checks the member masks of the active lanes, and returns the named lanes that are not in `own`.
    fn awaited(&self, masks: &Row, active: Lanes, own: Lanes) -> Result<Lanes, Trap> {
        let mut awaited = Lanes::NONE;
        for lane in active {
            let mask = masks[lane] as u32;
            let refuse = |reason: String| Err(Trap::new(lane, FaultKind::MemberMask { mask, reason }));
            if !Lanes(mask).has(lane) {
                return refuse(format!("it does not name lane {lane}, which executes the instruction"));
            }
            for other in Lanes(mask).and(self.warp.live).without(Lanes::of(lane)) {
                if active.has(other) && masks[other] as u32 != mask {
                    return refuse(format!("lane {other}, which it names, has the mask {:#010x}", masks[other]));
                }
                if own.has(other) && !active.has(other) {
                    return refuse(format!("it names lane {other}, which does not execute the instruction"));
                }
            }
            awaited = awaited.or(Lanes(mask).and(self.warp.live).without(own));
        }
        Ok(awaited)
    }

    /// The groups at this step whose lanes are in this set.
    fn groups_within(&self, step_index: u32, lanes: Lanes) -> Vec<usize> {
        let is_there = |state| !matches!(state, State::Suspended { .. });
        let found =
            self.groups.iter().filter(|(_, group)| group.step == step_index && is_there(group.state) && lanes.contains(group.lanes));
        found.map(|(number, _)| number).collect()
    }

    fn lanes_of(&self, group: usize) -> Lanes {
        self.groups.get(group).map_or(Lanes::NONE, |group| group.lanes)
    }

    fn cx<'a>(&'a mut self, lanes: Lanes, (program, grid): (&'a Program, &'a Grid), cluster: &'a mut Cluster, step_index: u32) -> Cx<'a> {
        let line = program.steps[step_index as usize].line;
        Cx { lanes, warp: &mut self.warp, cluster, rank: self.rank, grid, step: step_index, line, names: &program.registers }
    }

    /// Whether lanes that took a backward branch return to the step in the same state as before.
    fn came_around(&mut self, target: u32, lanes: Lanes, program: &Program, cluster: &Cluster) -> bool {
        // The lanes may have joined other lanes at the step.
        let is_there = |group: &Group| group.step == target && group.state == State::Running && group.lanes.contains(lanes);
        let Some(lanes) = self.groups.iter().map(|(_, group)| group).find(|group| is_there(group)).map(|group| group.lanes) else {
            return false;
        };
        if lanes.is_empty() {
            return false;
        }
        let mut cycles = std::mem::take(&mut self.warp.cycles);
        let came_around = cycles.came_around(program, &self.warp, lanes, target, &cluster.progress);
        self.warp.cycles = cycles;
        came_around
    }

    /// The state of the warp if all lanes either repeat themselves or wait; `None` if some lane can continue.
    pub(crate) fn standstill(&self, version: Version) -> Option<Standstill> {
        let mut all = Standstill::default();
        for (number, group) in self.groups.iter().filter(|(_, group)| !group.lanes.is_empty()) {
            match (group.state, self.warp.cycles.repeats_since(group.lanes, version), self.groups.waits_since(number)) {
                (State::Suspended { .. }, _, _) => {}
                (_, Some(since), _) => all.repeats_since = Some(all.repeats_since.map_or(since, |known| known.min(since))),
                (_, None, Some(since)) => all.waits_since = all.waits_since.max(Some(since)),
                (_, None, None) => return None,
            }
        }
        Some(all)
    }

    /// The reason why the warp cannot continue, as a fault of its waiting lanes; `None` if it only waits for other warps.
    pub(crate) fn obstacle(&self, version: Version) -> Option<Failure> {
        self.groups.iter().find_map(|(_, group)| {
            let lane = group.lanes.lowest()?;
            if self.warp.cycles.repeats_since(group.lanes, version).is_some() {
                return None;
            }
            let fault = match group.state {
                State::MeetingAll { .. } => divergent_kind(group.lanes, self.warp.live),
                State::Meeting { lanes, .. } => {
                    let missing = lanes.and(self.warp.live).without(here(&self.groups, group.step));
                    let reason = format!("the named lanes {:#010x} never come to this instruction", missing.0);
                    FaultKind::MemberMask { mask: lanes.or(group.lanes).0, reason }
                }
                State::Running | State::Suspended { .. } | State::Blocked { .. } => return None,
            };
            Some((group.step, Trap::new(lane, fault)))
        })
    }

    /// The step of the first group, and the group's lowest lane.
    pub(crate) fn waits_at(&self) -> Option<(u32, usize)> {
        self.groups.iter().find(|(_, group)| !group.lanes.is_empty()).map(|(_, group)| (group.step, group.lanes.lowest().unwrap_or(0)))
    }
}

/// The lanes that wait at a step for other lanes to reach it.
fn here(groups: &Groups, step_index: u32) -> Lanes {
    let waits = |state| matches!(state, State::Meeting { .. } | State::MeetingAll { .. });
    let at_step = groups.iter().filter(|(_, group)| group.step == step_index && waits(group.state));
    at_step.fold(Lanes::NONE, |lanes, (_, group)| lanes.or(group.lanes))
}

fn divergent(reached: Lanes, expected: Lanes) -> Trap {
    Trap::new(reached.lowest().unwrap_or(WARP - 1), divergent_kind(reached, expected))
}

fn divergent_kind(reached: Lanes, expected: Lanes) -> FaultKind {
    FaultKind::DivergentWarp { reached: reached.into(), expected: expected.into() }
}
