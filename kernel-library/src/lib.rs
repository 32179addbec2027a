//! Kernels that models are made of.
mod softmax;
pub use softmax::softmax;
