//! Arithmetic to the bit: rounding modes, small floats, sums of products. Pure functions of bits.

pub(crate) mod matrix;
pub(crate) mod small_float;
