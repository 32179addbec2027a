//! A simulated CUDA driver: a library with the interface of the CUDA driver, whose GPUs are simulated. Programs load it under the name
//! `libcuda.so.1`, so that tests of code that calls the driver run on machines without a GPU.
//!
//! The driver delays work as far as the interface allows. Work on a stream runs only when the host or another stream waits for it. No order
//! holds by chance: code that omits a wait reads the old contents of memory. Freed memory is never allocated again, and an access to it is
//! a fault. An illegal call is an error even if a real driver tolerates it, such as a launch in a context that is not the thread's current
//! one.
//!
//! `cargo xtask ci driver` runs the GPU tests of `kernel-runtime` on this driver. `SIM_DRIVER_GPUS` sets the number of GPUs; the default is
//! 2.
//!
//! The driver implements only the functions that `kernel-runtime` and cudarc call. Any other function is not found.

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
mod tensor_map;
mod work;
