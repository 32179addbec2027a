//! What a launch did, counted for each source line.

/// What an instruction is counted as.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Class {
    /// Integer arithmetic and logic, predicates, moves, conversions between integers.
    Integer,
    /// Floating-point arithmetic and conversions.
    Float,
    /// Approximate functions: `ex2`, `lg2`, `sin`, `rcp.approx`.
    Special,
    /// Matrix instructions.
    Matrix,
    /// Global, generic, local, constant and parameter memory.
    Memory,
    /// Shared memory, `ldmatrix`, `stmatrix`.
    Shared,
    /// Shuffles and votes.
    Warp,
    /// Barriers, fences and waits.
    Barrier,
    /// Branches, calls and exits.
    Control,
}

/// What a launch, or a part of it, did.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Counters {}
