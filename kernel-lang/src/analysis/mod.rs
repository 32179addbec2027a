//! Analyses: properties of a kernel, computed on demand. The kernel stores no result, because a rewrite would make it stale.

pub mod affine;
pub mod bits;
pub mod blocks;
pub mod bounds;
pub mod factors;
pub mod flops;
pub mod index_overlap;
pub mod loops;
pub mod magnitudes;
pub mod masks;
pub mod polynomial;
pub mod ranges;
pub mod reuse;
pub mod symmetry;
pub mod uniform_loads;
pub mod unit_strides;
pub mod updates;
