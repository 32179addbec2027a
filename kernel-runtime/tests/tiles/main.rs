//! Tiles between threads: conversions, reductions and scans as PTX, on the simulator, against plain arrays; and accesses against the CPU's.
//!
//! The layouts are random. A thread that reads what it must not, a missing barrier and memory that nobody wrote are faults of the simulator.

mod accesses;
mod budgets;
mod conversions;
mod harness;
mod hazards;
mod kernels;
mod random;
mod reductions;
