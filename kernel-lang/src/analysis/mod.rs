//! FACTS about a kernel, computed on demand and never stored in it.

pub mod affine;
pub mod bounds;
pub mod conjuncts;
pub mod meeting;
pub mod one_reader;
pub mod polynomial;
pub mod steps;
pub mod updates;
