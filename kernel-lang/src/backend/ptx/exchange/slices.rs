//! Slices of a reduction or a scan: the runs and inputs that fit into shared memory at once. A slice holds as many runs as fit, or some
//! inputs of one run.
//!
//! Register indices are compile-time constants, so the slices are emitted one after another. Together they are no longer than one exchange
//! of all runs.

use std::ops::Range;

use crate::dtype::Dtype;

use crate::backend::ptx::exchange::shared::WIDEST;

/// Runs and inputs of a reduction that go through shared memory at once: the runs of the first input, then those of the second, and so on.
pub(crate) struct Slice {
    pub(crate) runs: Range<usize>,
    pub(crate) inputs: Range<usize>,
}

impl Slice {
    /// The bytes of one input.
    fn input_bytes(&self, dtype: Dtype, writers: u32) -> u32 {
        (self.runs.len() as u32 * writers * dtype.bytes() as u32).next_multiple_of(WIDEST)
    }

    /// The bytes of the slice.
    pub(crate) fn bytes(&self, dtypes: &[Dtype], writers: u32) -> u32 {
        dtypes[self.inputs.clone()].iter().map(|dtype| self.input_bytes(*dtype, writers)).sum()
    }

    /// The offset at which the first thread writes this run of this input.
    pub(crate) fn offset(&self, dtypes: &[Dtype], writers: u32, input: usize, run: usize) -> u32 {
        let before: u32 = dtypes[self.inputs.start..input].iter().map(|dtype| self.input_bytes(*dtype, writers)).sum();
        before + (run - self.runs.start) as u32 * writers * dtypes[input].bytes() as u32
    }
}

/// How many of a number of parts fit into shared memory, from the bytes that so many take.
type AtOnce<'a> = &'a mut dyn FnMut(u32, &dyn Fn(u32) -> u32) -> u32;

/// The slices in which `runs` runs of these inputs go through shared memory, each with `writers` writing threads. There is one slice if
/// everything fits.
pub(crate) fn slices(runs: usize, dtypes: &[Dtype], writers: u32, at_once: AtOnce<'_>) -> Vec<Slice> {
    let inputs = dtypes.len();
    let of = |runs: u32, inputs: usize| Slice { runs: 0..runs as usize, inputs: 0..inputs }.bytes(dtypes, writers);
    let runs_at_once = at_once(runs as u32, &|runs| of(runs, inputs)) as usize;
    let mut inputs_at_once = inputs;
    if runs_at_once == 1 {
        // If one run does not fit, take as many inputs of the widest type as fit.
        let widest = dtypes.iter().map(|dtype| (writers * dtype.bytes() as u32).next_multiple_of(WIDEST)).max().unwrap_or(0);
        let bytes = |count: u32| if count == inputs as u32 { of(1, inputs) } else { count * widest };
        inputs_at_once = at_once(inputs as u32, &bytes) as usize;
    }
    let mut slices = Vec::new();
    for run in (0..runs).step_by(runs_at_once) {
        for input in (0..inputs).step_by(inputs_at_once) {
            let (last_run, last_input) = ((run + runs_at_once).min(runs), (input + inputs_at_once).min(inputs));
            slices.push(Slice { runs: run..last_run, inputs: input..last_input });
        }
    }
    slices
}
