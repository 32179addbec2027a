//! BACKENDS: from verified IR to something that runs. They decide nothing about layouts or schedules.

pub mod cpu;
pub mod printed;
pub mod ptx;
