//! Arithmetic to the bit: rounding modes, small floats, sums of products. Pure functions of bits.
