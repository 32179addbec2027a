//! Runs as launches of CUDA graphs.
//!
//! A graph holds the dims and the addresses of the run of which it was captured. A run with equal ones launches it as it is. Any other run makes its
//! launches as a capture, which changes a graph in place or makes a new one:
//!
//! | graphs of the run's dims | addresses of the run | effect |
//! |---|---|---|
//! | none | any | a new graph |
//! | some | new | the graph of these dims that was launched the longest time ago changes |
//! | some | those of a graph before it changed | a new graph |
//!
//! So addresses that alternate, as those of an allocator do, soon have a graph each. Addresses that never recur change one graph, and make no other.
//! If there are [`MOST_GRAPHS`] graphs, a graph changes in place of a new one: one of the run's dims, or else one of dims with several graphs, or else
//! any, of these the one that was launched the longest time ago.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};

use kernel_runtime::ops::Tensor;
use kernel_runtime::{DimValues, Error, Lent, Replay, Tensors, Update};

use crate::error::RunError;
use crate::execute::{self, Launches, Run, Values};
use crate::memory::Memory;
use crate::plan::Plan;

/// The graphs of a session's runs that use the same memory.
#[derive(Default)]
pub(crate) struct Replays {
    graphs: Vec<Captured>,
    /// The addresses of the run, in a vector that all runs use.
    addresses: Vec<u64>,
    /// Hashes of the dims and addresses that graphs had before they changed, the oldest first.
    replaced: Vec<u64>,
    /// The number of runs.
    runs: u64,
}

/// The most graphs: a service has a few batch sizes that most of its runs have, and an allocator a few addresses for each.
const MOST_GRAPHS: usize = 16;

/// The graph of a run.
struct Captured {
    dims: DimValues,
    /// The addresses of the tensors that the run was given.
    addresses: Vec<u64>,
    replay: Replay,
    /// The number of the latest run that launched it.
    last_run: u64,
}

/// How often runs of a session have made, changed and launched CUDA graphs. `captured` and `updated` grow while a session meets new dims and new addresses
/// of tensors; if they grow in each run, the inputs or outputs have other addresses each time, and [`Session::run_into`](crate::Session::run_into) is faster.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct ReplayCounts {
    /// The runs for which the driver made a graph.
    pub captured: usize,
    /// The runs that changed a graph in place.
    pub updated: usize,
    /// The runs that launched a graph as it was.
    pub unchanged: usize,
}

/// The counters behind [`ReplayCounts`].
#[derive(Default, Debug)]
pub(crate) struct Counters {
    captured: AtomicUsize,
    updated: AtomicUsize,
    unchanged: AtomicUsize,
}

/// Why a run was not one launch of a graph.
pub(crate) enum Refusal {
    /// A kernel must be tuned first, which no capture can.
    Untuned,
    /// A graph cannot hold the launches.
    Captured,
    /// The run fails in any case.
    Failed(RunError),
}

impl Counters {
    pub(crate) fn counts(&self) -> ReplayCounts {
        let [captured, updated, unchanged] = [&self.captured, &self.updated, &self.unchanged].map(|count| count.load(Ordering::Relaxed));
        ReplayCounts { captured, updated, unchanged }
    }
}

fn count(counter: &AtomicUsize) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Replays {
    /// Runs a plan whose memory is prepared. If there is an error, the memory is incomplete.
    pub(crate) fn run(
        &mut self,
        run: Run<'_>,
        inputs: &[&Tensor],
        (memory, values): (&mut Memory, &mut Values),
        outputs: &mut Vec<Tensor>,
        counters: &Counters,
    ) -> Result<(), Refusal> {
        self.addresses.clear();
        self.addresses.extend(read(run.plan, inputs).chain(memory.iter().flatten()).filter_map(Tensor::address));
        let fits = |graph: &Captured| graph.addresses == self.addresses && graph.dims == *run.dims;
        let known = match self.graphs.iter().position(fits) {
            Some(known) => {
                count(&counters.unchanged);
                known
            }
            None => self.capture(run, inputs, (memory, values), outputs, counters)?,
        };
        self.runs += 1;
        let graph = &mut self.graphs[known];
        graph.last_run = self.runs;
        let read = read(run.plan, inputs).map(|tensor| (tensor, Lending::Read));
        let written = memory.iter().flatten().map(|tensor| (tensor, Lending::Written));
        graph.replay.launch(Loan(read.chain(written))).map_err(|error| Refusal::of(error.into()))?;
        Ok(run.lifetimes.outputs(run.plan, inputs, run.dims, memory, outputs)?)
    }

    /// Makes a graph for the run, or changes one, and returns its index.
    fn capture(
        &mut self,
        run: Run<'_>,
        inputs: &[&Tensor],
        (memory, values): (&mut Memory, &mut Values),
        outputs: &mut Vec<Tensor>,
        counters: &Counters,
    ) -> Result<usize, Refusal> {
        let recurs = self.replaced.contains(&hash(run.dims, &self.addresses));
        let changed = self.to_change(run.dims, recurs);
        let mut outcome = Ok(());
        let work = || {
            outcome = execute::run(run, execute::shared(inputs), (&mut *memory, values), Launches::Made, outputs);
            // Otherwise the graph would have the launches in front of the error.
            if outcome.is_ok() { Ok(()) } else { Err(Error::InCapture { doing: "fail", help: "" }) }
        };
        let made = match changed {
            Some(index) => self.graphs[index].replay.update(work).map(|update| (index, update)),
            None => Replay::capture(run.stream, work).map(|replay| {
                self.graphs.push(Captured { dims: DimValues::new(), addresses: Vec::new(), replay, last_run: 0 });
                (self.graphs.len() - 1, Update::Rebuilt)
            }),
        };
        outcome.map_err(Refusal::of)?;
        // The driver makes no graph of these launches.
        let (index, update) = made.map_err(|_| Refusal::Captured)?;
        count(if update == Update::Rebuilt { &counters.captured } else { &counters.updated });
        let graph = &mut self.graphs[index];
        if changed.is_some() {
            if self.replaced.len() == MOST_GRAPHS {
                self.replaced.remove(0);
            }
            self.replaced.push(hash(&graph.dims, &graph.addresses));
        }
        graph.dims.clone_from(run.dims);
        graph.addresses.clone_from(&self.addresses);
        // Nothing has run yet: the memory of the outputs is lent to the launch.
        run.lifetimes.take(run.plan, run.stream, outputs, memory);
        Ok(index)
    }

    /// The graph that a run with these dims changes, if it makes no new one.
    fn to_change(&self, dims: &DimValues, recurs: bool) -> Option<usize> {
        let is_full = self.graphs.len() >= MOST_GRAPHS;
        let oldest = |may_change: &dyn Fn(&Captured) -> bool| {
            let graphs = self.graphs.iter().enumerate().filter(|(_, graph)| may_change(graph));
            graphs.min_by_key(|(_, graph)| graph.last_run).map(|(index, _)| index)
        };
        let has_several = |graph: &Captured| self.graphs.iter().filter(|other| other.dims == graph.dims).count() > 1;
        match oldest(&|graph| graph.dims == *dims) {
            Some(_) if recurs && !is_full => None,
            None if is_full => oldest(&has_several).or_else(|| oldest(&|_| true)),
            of_dims => of_dims,
        }
    }
}

/// The tensors that a run is given to read.
fn read<'t>(plan: &'t Plan, inputs: &'t [&'t Tensor]) -> impl Iterator<Item = &'t Tensor> {
    inputs.iter().copied().chain(plan.constants.iter().map(|constant| &constant.tensor))
}

/// A hash of what a graph holds. Two runs with one hash cost a graph too many, and no more.
fn hash(dims: &DimValues, addresses: &[u64]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (dims, addresses).hash(&mut hasher);
    hasher.finish()
}

impl std::fmt::Debug for Replays {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.graphs.iter().map(|captured| &captured.dims)).finish()
    }
}

impl Refusal {
    fn of(error: RunError) -> Refusal {
        let mut cause = &error;
        while let RunError::Node { source, .. } = cause {
            cause = source;
        }
        if matches!(cause, RunError::Runtime(error) if error.is_tuning_in_capture()) {
            return Refusal::Untuned;
        }
        let is_of_capture = matches!(cause, RunError::Runtime(error) if matches!(**error, Error::InCapture { .. } | Error::NotLent { .. }));
        if is_of_capture { Refusal::Captured } else { Refusal::Failed(error) }
    }
}

impl From<RunError> for Refusal {
    fn from(error: RunError) -> Refusal {
        Refusal::Failed(error)
    }
}

/// Tensors that a replay uses.
struct Loan<I>(I);

#[derive(Clone, Copy)]
enum Lending {
    Read,
    Written,
}

impl<'t, I: Iterator<Item = (&'t Tensor, Lending)>> Tensors<'t> for Loan<I> {
    fn lend(self, lent: &mut Lent<'t>) {
        self.0.for_each(|(tensor, lending)| match lending {
            Lending::Read => lent.lend_tensor(tensor),
            // SAFETY: a slot of memory has no other handle. An input or a constant is read by no launch as one that is written: such a launch copies first,
            // which no capture can.
            Lending::Written => unsafe { lent.lend_memory(tensor) },
        });
    }
}
