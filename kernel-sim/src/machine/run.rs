//! The scheduler of a cluster: the order of its warps, the completion of asynchronous operations, and the detection of deadlocks.

use std::collections::VecDeque;

use crate::counters::Counters;
use crate::fault::{Caller, Fault, FaultKind};
use crate::lanes::{Lanes, WARP};
use crate::machine::step::{Failure, Outcome, Running, Standstill};
use crate::machine::{Cluster, Cta, GlobalState, Grid, Issuer, Version, Warp, waiting};
use crate::program::Program;
use crate::ptx::SourceLine;

/// The maximum number of steps in one time slice of a warp. Time slices are long, so that missing synchronisation between warps shows.
const TIME_SLICE: u64 = 4096;

/// The number of instructions of a warp after which the scheduler begins to watch for loops without progress. Most warps end earlier, and
/// so avoid the cost. Cooperative kernels are watched from the start.
const UNWATCHED: u64 = 1 << 14;

/// The number of consecutive rounds without progress in the cluster after which warps that only poll are taken for deadlocked.
const MAX_IDLE_ROUNDS: u32 = 20_000;

/// The data that all clusters of a launch share.
pub(crate) struct Job<'a> {
    pub(crate) program: &'a Program,
    pub(crate) grid: &'a Grid,
    pub(crate) clusters: Chosen,
    pub(crate) seed: u64,
    pub(crate) max_instructions: u64,
}

/// The clusters of a launch that run.
#[derive(Clone, Copy)]
pub(crate) struct Chosen {
    /// The number of clusters of the launch.
    pub(crate) all: u64,
    /// The number of clusters that run.
    pub(crate) run: u64,
}

impl Chosen {
    /// The number of the cluster with this index among those that run. Each is from its own part of as many equal parts of the launch; the first cluster and
    /// the last one run.
    ///
    /// Its place differs from part to part. At equal distances, all clusters could begin at addresses with one alignment, or end a tile at the same column.
    pub(crate) fn number(self, index: u64) -> u64 {
        /// The fraction of the golden ratio, in units of 2^-64: its multiples are spread evenly.
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        if index > 0 && index == self.run - 1 {
            return self.all - 1;
        }
        // The part, as its first cluster and the first one of the next part.
        let [begin, end] = [index, index + 1].map(|at| u128::from(at) * u128::from(self.all) / u128::from(self.run));
        let place = ((end - begin) * u128::from(index.wrapping_mul(GOLDEN))) >> 64;
        (begin + place) as u64
    }
}

/// The result of a scheduling round of a cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Advance {
    Ended,
    /// The cluster made progress.
    Busy,
    /// All threads poll or wait.
    Idle,
    /// Every thread repeats itself or waits, and no thread can continue without a change from outside the cluster.
    Standstill,
}

/// A running cluster.
pub(crate) struct ClusterRun {
    pub(super) cluster: Cluster,
    pub(super) warps: Vec<Running>,
    random: Random,
    idle_rounds: u32,
    /// The version at which no thread could continue.
    standstill: Option<Version>,
}

impl ClusterRun {
    /// Creates the cluster with this number. Its CTAs are loaded, and nothing is executed yet.
    pub(crate) fn new(number: u64, job: &Job<'_>) -> ClusterRun {
        let Job { program, grid, seed, .. } = job;
        let threads = grid.block.iter().product::<u32>() as usize;
        let ranks = grid.cluster.iter().product::<u32>();
        let ctas = (0..ranks).map(|rank| Cta::new(grid.cta(number, rank).1, threads as u32, grid));
        let mut cluster = Cluster::new(grid.cta(number, 0).0, ctas.collect(), grid.block);
        cluster.clocks = cluster.clocks.of_cluster(number as u32);
        cluster.global = GlobalState::new(grid);
        cluster.progress.is_watched = program.is_cooperative;
        let warps = (0..ranks as usize).flat_map(|rank| {
            (0..threads.div_ceil(WARP)).map(move |index| {
                let lanes = Lanes::first(threads - index * WARP);
                Running::new(rank, Warp::new(index, lanes, program.registers.len(), program.local_bytes))
            })
        });
        let warps = warps.collect();
        let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number);
        ClusterRun { cluster, warps, random, idle_rounds: 0, standstill: None }
    }

    /// Swaps the state of global memory with that of this cluster: once to pass the state of earlier clusters in, and once to take the
    /// result out.
    pub(crate) fn exchange(&mut self, state: &mut GlobalState) {
        std::mem::swap(&mut self.cluster.global, state);
    }

    /// Compares the accesses of an ended cluster with those of other clusters. Only for clusters that run in parallel and do not see each
    /// other's work.
    pub(crate) fn compare(&self, job: &Job<'_>) {
        if let (Some(record), Some(shadow)) = (&job.grid.record, &self.cluster.global.shadow) {
            record.ended(self.cluster.clocks.cluster(), shadow);
        }
    }

    /// The counters of the cluster.
    pub(crate) fn into_counters(self) -> Counters {
        self.cluster.counters.of_cluster()
    }

    /// Runs the cluster to its end.
    pub(crate) fn run(&mut self, job: &Job<'_>) -> Result<(), Box<Fault>> {
        loop {
            match self.round(job)? {
                Advance::Ended => return Ok(()),
                Advance::Busy => {}
                Advance::Idle | Advance::Standstill => return Err(waiting::fault(&[&*self], job)),
            }
        }
    }

    /// Gives every warp one time slice.
    pub(crate) fn round(&mut self, job: &Job<'_>) -> Result<Advance, Box<Fault>> {
        if self.standstill == Some(self.cluster.progress.version) {
            return Ok(Advance::Standstill);
        }
        let mut progressed = false;
        let mut yielded = false;
        let count = self.warps.len();
        let first = if job.seed == 0 { 0 } else { self.random.below(count as u64) as usize };
        for offset in 0..count {
            let number = (first + offset) % count;
            let events = self.cluster.events;
            let outcome = self.time_slice(number, job)?;
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
        let stands_still = self.stands_still();
        if progressed && !stands_still {
            self.idle_rounds = 0;
            return Ok(Advance::Busy);
        }
        if self.complete_one(job)? {
            return Ok(Advance::Busy);
        }
        if stands_still {
            self.standstill = Some(self.cluster.progress.version);
            return Ok(Advance::Standstill);
        }
        self.idle_rounds += 1;
        // Polling threads may give up after a number of attempts, so they get more rounds. `run_in_turns` counts the rounds of cooperative kernels.
        let may_go_on = yielded && !job.program.is_cooperative && self.idle_rounds < MAX_IDLE_ROUNDS;
        Ok(match yielded {
            _ if may_go_on => Advance::Busy,
            true => Advance::Idle,
            false => Advance::Standstill,
        })
    }

    /// Whether every thread repeats itself, or has waited since before the other threads began to repeat themselves. Only the repeating
    /// threads could release the waiting ones, and since then each of them has executed everything that it will ever execute.
    fn stands_still(&self) -> bool {
        let version = self.cluster.progress.version;
        let mut all = Standstill::default();
        for running in self.warps.iter().filter(|running| !running.warp.live.is_empty()) {
            let Some(one) = running.standstill(version) else { return false };
            all.waits_since = all.waits_since.max(one.waits_since);
            all.repeats_since = [all.repeats_since, one.repeats_since].into_iter().flatten().min();
        }
        all.repeats_since.is_some_and(|repeats| all.waits_since.is_none_or(|waits| waits <= repeats))
    }

    /// Gives a warp one time slice. The result is `Stuck` if the warp could not execute a step.
    fn time_slice(&mut self, number: usize, job: &Job<'_>) -> Result<Outcome, Box<Fault>> {
        let (steps, pick) = match job.seed {
            0 => (TIME_SLICE, None),
            _ => (1 + self.random.below(48), Some(self.random.next())),
        };
        let mut done = 0;
        let before = self.warps[number].warp.executed;
        let mut other = pick;
        let outcome = loop {
            let result = self.warps[number].step(job.program, job.grid, &mut self.cluster, other.take());
            let outcome = result.map_err(|failure| self.fault(number, failure, job))?;
            done += 1;
            if !matches!(outcome, Outcome::Stepped | Outcome::Repeated) {
                break outcome;
            }
            // Another iteration of the same cycle would show nothing new.
            if done == steps || outcome == Outcome::Repeated {
                // Groups that wait for each other need steps, too.
                other = Some(1);
                let result = self.warps[number].step(job.program, job.grid, &mut self.cluster, other);
                break result.map_err(|failure| self.fault(number, failure, job))?;
            }
        };
        let executed = self.warps[number].warp.executed;
        self.cluster.progress.is_watched |= executed > UNWATCHED;
        if executed > job.max_instructions {
            let (step, lane) = self.warps[number].waits_at().unwrap_or_default();
            let kind = FaultKind::TooLong { instructions: executed };
            return Err(self.fault(number, (step, crate::fault::Trap::new(lane, kind)), job));
        }
        Ok(if outcome == Outcome::Stuck && executed > before { Outcome::Stepped } else { outcome })
    }

    /// Completes an asynchronous operation that is ready: the oldest one, or a random one if there is a seed. Returns false if none is
    /// ready.
    fn complete_one(&mut self, job: &Job<'_>) -> Result<bool, Box<Fault>> {
        let ready: Vec<usize> = (0..self.cluster.in_flight.len()).filter(|&at| self.cluster.in_flight[at].operation.is_ready()).collect();
        if ready.is_empty() {
            return Ok(false);
        }
        let pick = if job.seed == 0 { 0 } else { self.random.below(ready.len() as u64) as usize };
        let Some(mut flying) = self.cluster.in_flight.remove(ready[pick]) else { return Ok(false) };
        let issuer = flying.issuer;
        let result = flying.operation.complete(&mut self.cluster, job.grid, issuer);
        self.cluster.progress.changed();
        self.cluster.happened();
        result.map_err(|trap| self.fault_of(issuer, (issuer.step, trap), job))?;
        Ok(true)
    }

    pub(super) fn fault(&self, number: usize, failure: Failure, job: &Job<'_>) -> Box<Fault> {
        let running = &self.warps[number];
        let (step, lane) = (failure.0, failure.1.lane);
        self.fault_of(Issuer { rank: running.rank, warp: running.warp.index, lane, step }, failure, job)
    }

    fn fault_of(&self, issuer: Issuer, (step_index, trap): Failure, job: &Job<'_>) -> Box<Fault> {
        let Job { program, grid, .. } = job;
        let step = &program.steps[trap.step.unwrap_or(step_index) as usize];
        let file = |line: SourceLine| program.files.iter().find(|(number, _)| *number == line.file).map(|(_, name)| name.clone());
        let caller = |&line: &SourceLine| Caller { file: file(line), line: line.line, column: line.column };
        let elements = trap.kind.global_address().map_or_else(Vec::new, |address| grid.arguments.locate(address));
        Box::new(Fault {
            elements,
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
}

/// Runs clusters that may see each other's work: interleaved in a fixed order on one core, as many at a time as the GPU has space for.
pub(crate) fn run_in_turns(resident: usize, job: &Job<'_>, mut done: impl FnMut(Counters)) -> Result<(), Box<Fault>> {
    let mut state = GlobalState::new(job.grid);
    let mut next = 0;
    let mut running: VecDeque<ClusterRun> = VecDeque::new();
    let mut idle = 0;
    // The number of changes of global memory, and the number of consecutive clusters without progress since the last change.
    let mut changes = 0;
    let mut still = 0;
    loop {
        // The running clusters may wait for a cluster that has not started.
        if next < job.clusters.run && running.len() < resident {
            running.push_front(ClusterRun::new(job.clusters.number(next), job));
            next += 1;
            (idle, still) = (0, 0);
        }
        while let Some(mut run) = running.pop_front() {
            run.cluster.progress.version.1 = changes;
            run.exchange(&mut state);
            let advance = run.round(job)?;
            run.exchange(&mut state);
            if run.cluster.progress.version.1 != changes {
                still = 0;
            }
            changes = run.cluster.progress.version.1;
            match advance {
                Advance::Ended => {
                    (idle, still) = (0, 0);
                    done(run.into_counters());
                    break;
                }
                Advance::Busy => (idle, still) = (0, 0),
                Advance::Idle => (idle, still) = (idle + 1, 0),
                Advance::Standstill => (idle, still) = (idle + 1, still + 1),
            }
            let all_started = next == job.clusters.run || running.len() + 1 >= resident;
            running.push_back(run);
            if all_started && (still >= running.len() || idle > running.len() * MAX_IDLE_TURNS) {
                let runs: Vec<&ClusterRun> = running.iter().collect();
                return Err(waiting::fault(&runs, job));
            }
            if !all_started {
                break;
            }
        }
        if running.is_empty() && next == job.clusters.run {
            return Ok(());
        }
    }
}

/// Runs clusters one after the other. Each cluster gets the state of global memory that its predecessors left.
pub(crate) fn run_in_order(job: &Job<'_>, mut done: impl FnMut(Counters)) -> Result<(), Box<Fault>> {
    let mut state = GlobalState::new(job.grid);
    for index in 0..job.clusters.run {
        let mut run = ClusterRun::new(job.clusters.number(index), job);
        run.exchange(&mut state);
        run.run(job)?;
        run.exchange(&mut state);
        done(run.into_counters());
    }
    Ok(())
}

/// The number of consecutive rounds of each cluster after which clusters that all only poll or wait are taken for deadlocked.
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

#[cfg(test)]
mod tests {
    use super::Chosen;

    #[test]
    fn chosen_clusters_differ_and_are_spread() {
        for (all, run) in [(1, 1), (2, 2), (7, 7), (100, 1), (100, 2), (450, 5), (30_705, 33), (30_720, 64), (1 << 40, 1000), (u64::MAX, 3)]
        {
            let numbers: Vec<u64> = (0..run).map(|index| Chosen { all, run }.number(index)).collect();
            assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
            assert_eq!((numbers[0], numbers[numbers.len() - 1]), (0, if run == 1 { 0 } else { all - 1 }));
            // Each eighth has its share.
            let of_eighth = |eighth: u64| {
                numbers.iter().filter(|number| u128::from(**number) * 8 / u128::from(all) == u128::from(eighth)).count() as u64
            };
            assert!((0..8).all(|eighth| of_eighth(eighth).abs_diff(run / 8) <= 1), "{numbers:?}");
        }
    }

    #[test]
    fn chosen_clusters_have_all_alignments() {
        // At equal distances, all numbers would be multiples of 16, 1,024 and 16,384.
        for (all, run) in [(513, 33), (30_721, 31), ((1 << 20) + 1, 65)] {
            for modulus in [2, 4, 8] {
                let of_remainder =
                    |remainder| (0..run).filter(|index| Chosen { all, run }.number(*index) % modulus == remainder).count() as u64;
                assert!((0..modulus).all(|remainder| of_remainder(remainder) <= 2 * run.div_ceil(modulus)), "{all} {run} {modulus}");
            }
        }
    }
}
