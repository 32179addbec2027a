//! The result of tuning for one key.

use std::sync::Arc;

use super::refusals::Refusals;
use super::{Outcome, Report};

/// The configuration that launches of a key use, and the fallbacks for launches that refuse it.
#[derive(Debug)]
pub(super) struct Winner<C> {
    pub(super) report: Arc<Report<C>>,
    /// The index of the chosen configuration.
    pub(super) chosen: usize,
    /// The indices of the other configurations that were measured, fastest first.
    others: Box<[usize]>,
    pub(super) refusals: Refusals,
}

impl<C> Winner<C> {
    pub(super) fn new(report: Report<C>, chosen: usize) -> Winner<C> {
        let measured = report.trials.iter().enumerate().filter_map(|(index, trial)| match trial.outcome {
            Outcome::Measured { median_us, .. } if index != chosen => Some((median_us, index)),
            _ => None,
        });
        let mut others: Vec<(f64, usize)> = measured.collect();
        others.sort_by(|a, b| a.0.total_cmp(&b.0));
        let others = others.into_iter().map(|(_, index)| index).collect();
        Winner { report: Arc::new(report), chosen, others, refusals: Refusals::new() }
    }

    /// The indices of the configurations that run: the chosen one, then the others by their times.
    pub(super) fn by_time(&self) -> impl Iterator<Item = usize> {
        std::iter::once(self.chosen).chain(self.others.iter().copied())
    }
}
