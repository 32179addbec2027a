//! Deadlock messages: the threads that wait, their lines, and the events that they wait for.

use crate::arguments::phrase;
use crate::fault::{Fault, FaultKind, Trap};
use crate::instructions::waiting_mbarriers;
use crate::machine::run::{ClusterRun, Job};
use crate::machine::{Location, progress::Poll};

/// The maximum number of listed groups of waiting programs.
const MAX_LISTED: usize = 8;

/// The programs whose warps wait at one line for one event.
struct Waiting {
    what: String,
    programs: Vec<[u32; 3]>,
    warps: usize,
}

/// The fault of clusters without progress. The fault belongs to the first waiting thread.
pub(super) fn fault(runs: &[&ClusterRun], job: &Job<'_>) -> Box<Fault> {
    for run in runs {
        for (number, running) in run.warps.iter().enumerate() {
            if let Some(failure) = running.obstacle(run.cluster.progress.version) {
                return run.fault(number, failure, job);
            }
        }
    }
    // Sorts the programs by index, so that the order of execution does not matter.
    let mut runs = runs.to_vec();
    runs.sort_by_key(|run| {
        let [x, y, z] = run.cluster.id;
        [z, y, x]
    });
    let mut all: Vec<Waiting> = Vec::new();
    let mut first = None;
    for run in &runs {
        for (number, step, lane) in repeating(run, job, &mut all).into_iter().chain(blocked(run, job, &mut all)) {
            first.get_or_insert((*run, number, step, lane));
        }
    }
    let mut parts: Vec<String> = all.iter().take(MAX_LISTED).map(Waiting::to_string).collect();
    if all.len() > MAX_LISTED {
        parts.push(format!("{} more wait for other things", all.len() - MAX_LISTED));
    }
    for run in runs.iter().take(MAX_LISTED) {
        let cluster = &run.cluster;
        parts.extend(cluster.ctas.iter().filter_map(|cta| cta.barriers.waiting()));
        parts.extend(cluster.ctas.iter().flat_map(|cta| waiting_mbarriers(&cta.mbarriers)));
        let live = cluster.ctas.iter().map(|cta| cta.live_threads).sum();
        parts.extend(cluster.barrier.waiting(live));
    }
    let (run, number, step, lane) = first.unwrap_or((runs[0], 0, 0, 0));
    run.fault(number, (step, Trap::new(lane, FaultKind::Deadlock { description: parts.join("; ") })), job)
}

/// The repeating warps of each program: number, step and lane. Each program is listed with the most likely read of global memory that one
/// of its warps polls.
fn repeating(run: &ClusterRun, job: &Job<'_>, all: &mut Vec<Waiting>) -> Vec<(usize, u32, usize)> {
    let version = run.cluster.progress.version;
    let mut found = Vec::new();
    for (rank, cta) in run.cluster.ctas.iter().enumerate() {
        let mut best: Option<(usize, Result<Poll, u32>, usize)> = None;
        let mut warps = 0;
        for (number, running) in run.warps.iter().enumerate().filter(|(_, running)| running.rank == rank) {
            let groups = running.groups.iter().filter(|(_, group)| !group.lanes.is_empty());
            let mut awaited =
                groups.filter_map(|(_, group)| Some((running.warp.cycles.awaited(group.lanes, version)?, group.lanes.lowest()?)));
            let Some((what, lane)) = awaited.next() else { continue };
            warps += 1;
            let rank_of = |what: &Result<Poll, u32>| what.as_ref().map_or(0, |poll| poll.rank() + 1);
            if best.as_ref().is_none_or(|(_, known, _)| rank_of(known) < rank_of(&what)) {
                best = Some((number, what, lane));
            }
        }
        let Some((number, what, lane)) = best else { continue };
        let (step, lane) = what.map_or_else(|step| (step, lane), |poll| (poll.step, poll.lane));
        let line = line(step, job);
        let what = match what {
            Ok(poll) => format!("asks again and again at {line}, for {}, which stays {}", location(&poll, job), number_of(poll.value)),
            Err(_) => format!("repeats {line}, and nothing changes"),
        };
        found.push((number, step, lane));
        add(all, what, cta.id, warps);
    }
    found
}

/// The warps that wait in an instruction.
fn blocked(run: &ClusterRun, job: &Job<'_>, all: &mut Vec<Waiting>) -> Vec<(usize, u32, usize)> {
    let version = run.cluster.progress.version;
    let mut found = Vec::new();
    for (number, running) in run.warps.iter().enumerate() {
        let waits = |lanes| running.warp.cycles.repeats_since(lanes, version).is_none();
        let group = running.groups.iter().map(|(_, group)| group).find(|group| !group.lanes.is_empty() && waits(group.lanes));
        let Some((step, lane)) = group.and_then(|group| Some((group.step, group.lanes.lowest()?))) else { continue };
        found.push((number, step, lane));
        add(all, format!("waits at {}", line(step, job)), run.cluster.ctas[running.rank].id, 1);
    }
    found
}

fn add(all: &mut Vec<Waiting>, what: String, program: [u32; 3], warps: usize) {
    match all.iter_mut().find(|known| known.what == what) {
        Some(known) => {
            known.warps += warps;
            if !known.programs.contains(&program) {
                known.programs.push(program);
            }
        }
        None => all.push(Waiting { what, programs: vec![program], warps }),
    }
}

impl std::fmt::Display for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Waiting { what, programs, warps } = self;
        let warps = if *warps == 1 { "1 warp".to_owned() } else { format!("{warps} warps") };
        match &programs[..] {
            [program] => write!(f, "program {program:?} {what} ({warps})"),
            [first, second] => write!(f, "each of the programs {first:?} and {second:?} {what} ({warps})"),
            [first, .., last] => write!(f, "each of the {} programs from {first:?} to {last:?} {what} ({warps})", programs.len()),
            [] => Ok(()),
        }
    }
}

/// The line of a step, such as `` line 7, `bar.sync 0;` ``.
fn line(step: u32, job: &Job<'_>) -> String {
    let step = &job.program.steps[step as usize];
    let line = if step.line.line > 0 { format!("line {}", step.line.line) } else { format!("PTX line {}", step.position.line) };
    format!("{line}, `{}`", step.text)
}

fn location(poll: &Poll, job: &Job<'_>) -> String {
    match poll.location {
        Location::Global(address) => {
            let elements = job.grid.arguments.locate(address);
            if elements.is_empty() { format!("global address {address:#x}") } else { phrase(&elements) }
        }
        Location::Shared { offset, .. } => format!("shared address {offset:#x}"),
        Location::Local(address) | Location::Param(address) => format!("address {address:#x}"),
    }
}

/// Formats small numbers in decimal and other numbers in hexadecimal.
fn number_of(value: u128) -> String {
    if value < 1 << 20 { value.to_string() } else { format!("{value:#x}") }
}
