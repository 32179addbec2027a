//! What executes a kernel: each backend takes verified IR and decides nothing that a pass could have decided.

pub mod cpu;
