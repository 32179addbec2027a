//! A CUDA driver without a GPU: a library with the driver's interface, whose GPUs are simulated ones. Under the name `libcuda.so.1` it is what a program
//! loads instead of NVIDIA's, so that tests of what talks to the driver run on any machine.
//!
//! It is the laziest driver that the interface allows. Work that is queued on a stream waits until somebody waits for it, on the host or on another stream:
//! nothing is in order by luck, and what forgets to wait sees the memory as it was. Freed memory is never handed out again, and its use is a fault. What a
//! program may not do, such as launching into a context that is not the thread's own, is an error, also where a real driver would forgive it.
//!
//! `cargo xtask ci driver` runs the GPU tests of `kernel-runtime` on it. `SIM_DRIVER_GPUS` says how many GPUs there are, by default 2.
//!
//! It does what `kernel-runtime` and cudarc ask of a driver, and no more: a function that is not here is not found.

#![allow(non_snake_case, reason = "the functions have the names of the interface")]

mod call;
mod context;
mod event;
mod function;
mod graph;
mod memory;
mod plant;
mod state;
mod stream;
mod work;
