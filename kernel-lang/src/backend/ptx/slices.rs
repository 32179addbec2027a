//! What a reduction or a scan exchanges at once: as many runs as fit into shared memory, or some inputs of one run.
//!
//! Registers are known at compile time, so slices stand behind one another in the code: together they are no longer than one exchange of all.

use std::ops::Range;

use crate::dtype::Dtype;

use super::Emitter;
use super::shared::WIDEST;

/// Runs and inputs of a reduction that go through shared memory at once: the runs of the first input, those of the second, and so on.
pub(super) struct Slice {
    pub(super) runs: Range<usize>,
    pub(super) inputs: Range<usize>,
}

impl Slice {
    /// What an input takes.
    fn input_bytes(&self, dtype: Dtype, writers: u32) -> u32 {
        (self.runs.len() as u32 * writers * dtype.bytes() as u32).next_multiple_of(WIDEST)
    }

    /// What all of it takes.
    pub(super) fn bytes(&self, dtypes: &[Dtype], writers: u32) -> u32 {
        dtypes[self.inputs.clone()].iter().map(|dtype| self.input_bytes(*dtype, writers)).sum()
    }

    /// Where the first thread writes that run of that input.
    pub(super) fn place(&self, dtypes: &[Dtype], writers: u32, input: usize, run: usize) -> u32 {
        let before: u32 = dtypes[self.inputs.start..input].iter().map(|dtype| self.input_bytes(*dtype, writers)).sum();
        before + (run - self.runs.start) as u32 * writers * dtypes[input].bytes() as u32
    }
}

impl Emitter<'_> {
    /// The slices in which so many runs of these inputs go through shared memory, where so many threads write each of them: one, if all fits.
    pub(super) fn slices(&self, runs: usize, dtypes: &[Dtype], writers: u32) -> Vec<Slice> {
        let inputs = dtypes.len();
        let of = |runs: u32, inputs: usize| Slice { runs: 0..runs as usize, inputs: 0..inputs }.bytes(dtypes, writers);
        let runs_at_once = self.at_once(runs as u32, |runs| of(runs, inputs)) as usize;
        let mut inputs_at_once = inputs;
        if runs_at_once == 1 {
            // If one run does not fit, as many inputs of the widest type as do.
            let widest = dtypes.iter().map(|dtype| (writers * dtype.bytes() as u32).next_multiple_of(WIDEST)).max().unwrap_or(0);
            let bytes = |count: u32| if count == inputs as u32 { of(1, inputs) } else { count * widest };
            inputs_at_once = self.at_once(inputs as u32, bytes) as usize;
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
}
