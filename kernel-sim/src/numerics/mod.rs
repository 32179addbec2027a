//! Bit-exact arithmetic: rounding modes, small floats, sums of products. All functions are pure functions of bits.

pub(crate) mod approximate;
pub(crate) mod float;
pub(crate) mod integer_float;
pub(crate) mod matrix;
pub(crate) mod small_float;
