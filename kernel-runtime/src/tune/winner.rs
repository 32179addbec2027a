//! What was chosen for a key.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Report;

/// The configuration that launches of a key use.
#[derive(Debug)]
pub(super) struct Winner<C> {
    pub(super) report: Arc<Report<C>>,
    /// Its place.
    chosen: AtomicUsize,
}

impl<C> Winner<C> {
    pub(super) fn new(report: Report<C>, chosen: usize) -> Winner<C> {
        Winner { report: Arc::new(report), chosen: AtomicUsize::new(chosen) }
    }

    /// The place of the configuration that launches use.
    #[inline]
    pub(super) fn chosen(&self) -> usize {
        self.chosen.load(Ordering::Relaxed)
    }

    /// From now on launches use another one.
    pub(super) fn choose(&self, place: usize) {
        self.chosen.store(place, Ordering::Relaxed);
    }
}
