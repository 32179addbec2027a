//! Runs as launches of CUDA graphs.
//!
//! A graph holds the addresses and the dims of the run of which it was captured. A run with equal ones launches it as it is. Any other run makes its
//! launches again, as a capture, and changes the graph in place.

use kernel_runtime::ops::Tensor;
use kernel_runtime::{Device, DimValues, Error, Lent, Replay, Tensors};

use crate::error::RunError;
use crate::execute::{self, Launches};
use crate::memory::{Lifetimes, Memory};
use crate::plan::Plan;

/// The graphs of a session's runs that use the same memory, for the dims of the latest ones. That of the last run is the last one.
#[derive(Default)]
pub(crate) struct Replays(Vec<Captured>);

/// The most graphs: a service has a few batch sizes that most of its runs have.
const MOST_GRAPHS: usize = 16;

/// The graph of a run.
struct Captured {
    dims: DimValues,
    /// The addresses of the tensors that the run was given.
    addresses: Vec<Option<u64>>,
    replay: Replay,
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

impl Replays {
    /// Runs a plan whose memory is prepared. If there is an error, the memory is incomplete.
    pub(crate) fn run(
        &mut self,
        (plan, lifetimes, device): (&Plan, &Lifetimes, &Device),
        inputs: &[&Tensor],
        dims: &DimValues,
        memory: &mut Memory,
    ) -> Result<Vec<Tensor>, Refusal> {
        let constants = plan.constants.iter().map(|constant| &constant.tensor);
        let given = inputs.iter().copied().chain(constants.clone());
        let addresses: Vec<_> = given.clone().map(Tensor::address).chain(memory.iter().flatten().map(Tensor::address)).collect();
        let mut execute = |launches: Launches| execute::run(plan, lifetimes, execute::shared(inputs), dims, memory, launches);
        let (mut captured, outputs) = match self.take(dims) {
            Some(captured) if captured.dims == *dims && captured.addresses == addresses => (captured, execute(Launches::Replayed)?),
            other => {
                let mut outcome = Ok(Vec::new());
                let work = || {
                    outcome = execute(Launches::Made);
                    Ok(())
                };
                let replay = match other {
                    Some(Captured { mut replay, .. }) => replay.update(work).map(|_| replay),
                    None => Replay::capture(device.stream(), work),
                };
                match (replay, outcome) {
                    (Ok(replay), Ok(outputs)) => (Captured { dims: dims.clone(), addresses, replay }, outputs),
                    (_, Err(error)) => return Err(Refusal::of(error)),
                    // The driver makes no graph of these launches.
                    (Err(_), Ok(_)) => return Err(Refusal::Captured),
                }
            }
        };
        let read = given.map(|tensor| (tensor, Lending::Read));
        let written = memory.iter().flatten().chain(&outputs).map(|tensor| (tensor, Lending::Written));
        captured.replay.launch(Run(read.chain(written))).map_err(|error| Refusal::of(error.into()))?;
        self.0.push(captured);
        Ok(outputs)
    }

    /// The graph of the latest run with these dims. If there is none, that of the earliest run, if there are so many that no graph may be added.
    fn take(&mut self, dims: &DimValues) -> Option<Captured> {
        match self.0.iter().position(|captured| captured.dims == *dims) {
            Some(known) => Some(self.0.remove(known)),
            None if self.0.len() == MOST_GRAPHS => Some(self.0.remove(0)),
            None => None,
        }
    }
}

impl std::fmt::Debug for Replays {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|captured| &captured.dims)).finish()
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
struct Run<I>(I);

#[derive(Clone, Copy)]
enum Lending {
    Read,
    Written,
}

impl<'t, I: Iterator<Item = (&'t Tensor, Lending)>> Tensors<'t> for Run<I> {
    fn lend(self, lent: &mut Lent<'t>) {
        self.0.for_each(|(tensor, lending)| match lending {
            Lending::Read => lent.lend_tensor(tensor),
            // SAFETY: a slot of memory has no other handle, and outputs are handles that only this run has made. An output that is an input or a constant is read by
            // no launch as one that is written: such a launch copies first, which no capture can.
            Lending::Written => unsafe { lent.lend_memory(tensor) },
        });
    }
}
