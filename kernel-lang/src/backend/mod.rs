//! Backends: they translate verified IR to PTX or to a program for the CPU. They make no decisions about layouts or schedules.

pub mod cpu;
pub mod print_records;
pub mod ptx;
