//! BACKENDS: from verified IR to something that runs. They decide nothing about layouts or schedules.

#[cfg(feature = "codegen")]
pub mod cpu;
#[cfg(feature = "codegen")]
pub mod ptx;
