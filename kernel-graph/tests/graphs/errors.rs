//! The errors of recordings and of runs.
