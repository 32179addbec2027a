//! The backend for GPUs: it translates verified IR to PTX, and makes no decisions about layouts or schedules. The one for the CPU is the crate
//! `kernel-cpu`.

pub mod print_records;
pub mod ptx;
