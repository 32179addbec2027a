//! A cluster that runs: whose turn it is, when asynchronous operations happen, and what it means when nobody can go on.

use std::collections::VecDeque;

use crate::counters::Counters;
use crate::fault::{Caller, Fault, FaultKind};
use crate::instructions::waiting_mbarriers;
use crate::lanes::{Lanes, WARP};
use crate::machine::step::{Failure, Outcome, Running};
use crate::machine::{Cluster, Cta, GlobalState, Grid, Issuer, Warp};
use crate::program::Program;
use crate::ptx::SourceLine;

/// Steps of one warp before the next has its turn, when nothing else ends it: long, so that what depends on the order is seen to.
const TURN: u64 = 4096;

/// Rounds in which every warp only asks whether something has happened.
const MAX_IDLE_ROUNDS: u32 = 20_000;

/// What all clusters of a launch share.
pub(crate) struct Job<'a> {
    pub(crate) program: &'a Program,
    pub(crate) grid: &'a Grid,
    pub(crate) seed: u64,
    pub(crate) max_instructions: u64,
}

/// How far a cluster came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Advance {
    Ended,
    /// It had its turn.
    Busy,
    /// It waits for what another cluster does, or for nothing.
    Idle,
}

/// A cluster that runs.
pub(crate) struct ClusterRun {
    cluster: Cluster,
    warps: Vec<Running>,
    random: Random,
    idle_rounds: u32,
}

impl ClusterRun {
    /// The cluster with that number, its CTAs loaded and nothing executed.
    pub(crate) fn new(number: u64, job: &Job<'_>) -> ClusterRun {
        let Job { program, grid, seed, .. } = job;
        let threads = grid.block.iter().product::<u32>() as usize;
        let ranks = grid.cluster.iter().product::<u32>();
        let ctas = (0..ranks).map(|rank| Cta::new(grid.cta(number, rank).1, threads as u32, grid));
        let mut cluster = Cluster::new(grid.cta(number, 0).0, ctas.collect(), grid.block);
        cluster.clocks = cluster.clocks.of_cluster(number as u32);
        cluster.global = GlobalState::new(grid);
        let warps = (0..ranks as usize).flat_map(|rank| {
            (0..threads.div_ceil(WARP)).map(move |index| {
                let lanes = Lanes::first(threads - index * WARP);
                Running::new(rank, Warp::new(index, lanes, program.registers.len(), program.local_bytes))
            })
        });
        let warps = warps.collect();
        let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number);
        ClusterRun { cluster, warps, random, idle_rounds: 0 }
    }

    /// Takes what clusters before it did in global memory, or gives that back with what this one did.
    pub(crate) fn exchange(&mut self, state: &mut GlobalState) {
        std::mem::swap(&mut self.cluster.global, state);
    }

    /// It ended, and no other cluster saw what it did: compares that with theirs.
    pub(crate) fn compare(&self, job: &Job<'_>) {
        if let (Some(record), Some(shadow)) = (&job.grid.record, &self.cluster.global.shadow) {
            record.ended(self.cluster.clocks.cluster(), shadow);
        }
    }

    /// What it did.
    pub(crate) fn into_counters(self) -> Counters {
        self.cluster.counters
    }

    /// Runs to the end.
    pub(crate) fn run(&mut self, job: &Job<'_>) -> Result<(), Box<Fault>> {
        loop {
            match self.round(job)? {
                Advance::Ended => return Ok(()),
                Advance::Busy => {}
                Advance::Idle => return Err(self.deadlock(job)),
            }
        }
    }

    /// One turn of every warp.
    pub(crate) fn round(&mut self, job: &Job<'_>) -> Result<Advance, Box<Fault>> {
        let mut progressed = false;
        let mut yielded = false;
        let count = self.warps.len();
        let first = if job.seed == 0 { 0 } else { self.random.below(count as u64) as usize };
        for offset in 0..count {
            let number = (first + offset) % count;
            let events = self.cluster.events;
            let outcome = self.turn(number, job)?;
            let idle = matches!(outcome, Outcome::Yielded | Outcome::Stuck | Outcome::Ended) && events == self.cluster.events;
            yielded |= outcome == Outcome::Yielded;
            progressed |= !idle;
        }
        if job.seed != 0 && self.random.below(4) == 0 {
            progressed |= self.complete_one(job)?;
        }
        if self.warps.iter().all(|running| running.warp.live.is_empty()) {
            while self.complete_one(job)? {}
            return Ok(Advance::Ended);
        }
        if progressed {
            self.idle_rounds = 0;
            return Ok(Advance::Busy);
        }
        if self.complete_one(job)? {
            return Ok(Advance::Busy);
        }
        self.idle_rounds += 1;
        // Those that ask again and again may count how often they do.
        let may_go_on = yielded && !job.program.is_cooperative && self.idle_rounds < MAX_IDLE_ROUNDS;
        Ok(if may_go_on { Advance::Busy } else { Advance::Idle })
    }

    /// One turn of a warp. `Stuck` if it could not do a single step.
    fn turn(&mut self, number: usize, job: &Job<'_>) -> Result<Outcome, Box<Fault>> {
        let (steps, pick) = match job.seed {
            0 => (TURN, None),
            _ => (1 + self.random.below(48), Some(self.random.next())),
        };
        let mut done = 0;
        let before = self.warps[number].warp.executed;
        let mut turn = pick;
        let outcome = loop {
            let result = self.warps[number].step(job.program, job.grid, &mut self.cluster, turn.take());
            let outcome = result.map_err(|failure| self.fault(number, failure, job))?;
            done += 1;
            if outcome != Outcome::Stepped {
                break outcome;
            }
            if done == steps {
                // Groups that wait for each other need turns too.
                turn = Some(1);
                let result = self.warps[number].step(job.program, job.grid, &mut self.cluster, turn);
                break result.map_err(|failure| self.fault(number, failure, job))?;
            }
        };
        let executed = self.warps[number].warp.executed;
        if executed > job.max_instructions {
            let place = self.warps[number].waits_at().unwrap_or_default();
            let kind = FaultKind::TooLong { instructions: executed };
            return Err(self.fault(number, (place.0, crate::fault::Trap::new(place.1, kind)), job));
        }
        Ok(if outcome == Outcome::Stuck && executed > before { Outcome::Stepped } else { outcome })
    }

    /// Completes an asynchronous operation that is ready: the oldest, or with a seed any. False if there is none.
    fn complete_one(&mut self, job: &Job<'_>) -> Result<bool, Box<Fault>> {
        let ready: Vec<usize> = (0..self.cluster.in_flight.len()).filter(|&at| self.cluster.in_flight[at].operation.is_ready()).collect();
        if ready.is_empty() {
            return Ok(false);
        }
        let pick = if job.seed == 0 { 0 } else { self.random.below(ready.len() as u64) as usize };
        let Some(mut flying) = self.cluster.in_flight.remove(ready[pick]) else { return Ok(false) };
        let issuer = flying.issuer;
        let result = flying.operation.complete(&mut self.cluster, job.grid, issuer);
        self.cluster.happened();
        result.map_err(|trap| self.fault_of(issuer, (issuer.step, trap), job))?;
        Ok(true)
    }

    fn fault(&self, number: usize, failure: Failure, job: &Job<'_>) -> Box<Fault> {
        let running = &self.warps[number];
        let (step, lane) = (failure.0, failure.1.lane);
        self.fault_of(Issuer { rank: running.rank, warp: running.warp.index, lane, step }, failure, job)
    }

    fn fault_of(&self, issuer: Issuer, (place, trap): Failure, job: &Job<'_>) -> Box<Fault> {
        let Job { program, grid, .. } = job;
        let step = &program.steps[trap.step.unwrap_or(place) as usize];
        let file = |line: SourceLine| program.files.iter().find(|(number, _)| *number == line.file).map(|(_, name)| name.clone());
        let caller = |&line: &SourceLine| Caller { file: file(line), line: line.line, column: line.column };
        Box::new(Fault {
            kind: *trap.kind,
            kernel: program.name.clone(),
            file: file(step.line),
            line: step.line.line,
            column: step.line.column,
            callers: step.callers.iter().map(caller).collect(),
            ptx_line: step.position.line,
            instruction: step.text.clone(),
            cta: self.cluster.ctas[issuer.rank].id,
            thread: grid.thread(issuer.warp, issuer.lane),
        })
    }

    /// Why nobody can go on.
    pub(crate) fn deadlock(&self, job: &Job<'_>) -> Box<Fault> {
        for (number, running) in self.warps.iter().enumerate() {
            if let Some(failure) = running.obstacle() {
                return self.fault(number, failure, job);
            }
        }
        let mut places: Vec<(u32, usize)> = Vec::new();
        let mut first = None;
        for (number, running) in self.warps.iter().enumerate() {
            let Some((place, lane)) = running.waits_at() else { continue };
            first.get_or_insert((number, place, lane));
            match places.iter_mut().find(|(known, _)| *known == place) {
                Some((_, warps)) => *warps += 1,
                None => places.push((place, 1)),
            }
        }
        let each = places.iter().map(|&(place, warps)| {
            let step = &job.program.steps[place as usize];
            let line = if step.line.line > 0 { format!("line {}", step.line.line) } else { format!("PTX line {}", step.position.line) };
            format!("{warps} warps wait at {line}, `{}`", step.text)
        });
        let mut parts: Vec<String> = each.collect();
        parts.extend(self.cluster.ctas.iter().filter_map(|cta| cta.barriers.waiting()));
        parts.extend(self.cluster.ctas.iter().flat_map(|cta| waiting_mbarriers(&cta.mbarriers)));
        let live = self.cluster.ctas.iter().map(|cta| cta.live_threads).sum();
        parts.extend(self.cluster.barrier.waiting(live));
        let (number, place, lane) = first.unwrap_or_default();
        let kind = FaultKind::Deadlock { description: parts.join("; ") };
        self.fault(number, (place, crate::fault::Trap::new(lane, kind)), job)
    }
}

/// Runs clusters that may see each other's work: side by side, in a fixed order, as many at a time as the GPU holds.
pub(crate) fn run_in_turns(clusters: u64, resident: usize, job: &Job<'_>, mut done: impl FnMut(Counters)) -> Result<(), Box<Fault>> {
    let mut state = GlobalState::new(job.grid);
    let mut next = 0;
    let mut running: VecDeque<ClusterRun> = VecDeque::new();
    let mut idle = 0;
    loop {
        // Whoever did not end in its turn may wait for one that has not started.
        if next < clusters && running.len() < resident {
            running.push_front(ClusterRun::new(next, job));
            next += 1;
            idle = 0;
        }
        while let Some(mut run) = running.pop_front() {
            run.exchange(&mut state);
            let advance = run.round(job)?;
            run.exchange(&mut state);
            match advance {
                Advance::Ended => {
                    idle = 0;
                    done(run.into_counters());
                    break;
                }
                Advance::Busy => idle = 0,
                Advance::Idle => idle += 1,
            }
            let all_started = next == clusters || running.len() + 1 >= resident;
            if all_started && idle > (running.len() + 1) * MAX_IDLE_TURNS {
                return Err(run.deadlock(job));
            }
            running.push_back(run);
            if !all_started {
                break;
            }
        }
        if running.is_empty() && next == clusters {
            return Ok(());
        }
    }
}

/// Runs clusters one after the other, each with what those before it did in global memory.
pub(crate) fn run_in_order(clusters: u64, job: &Job<'_>, mut done: impl FnMut(Counters)) -> Result<(), Box<Fault>> {
    let mut state = GlobalState::new(job.grid);
    for number in 0..clusters {
        let mut run = ClusterRun::new(number, job);
        run.exchange(&mut state);
        run.run(job)?;
        run.exchange(&mut state);
        done(run.into_counters());
    }
    Ok(())
}

/// Turns in which every cluster only asks whether something has happened.
const MAX_IDLE_TURNS: usize = 2_000;

/// SplitMix64 (Steele, Lea, Flood, *Fast splittable pseudorandom number generators*, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }
}
