//! Elementwise instructions: arithmetic, comparisons, conversions, math functions and inline PTX.

pub(crate) mod bf16_quotient;
pub(crate) mod compare;
pub(crate) mod convert;
pub(crate) mod dot;
pub(crate) mod elementwise;
pub(crate) mod float8;
pub(crate) mod inline;
pub(crate) mod math;
pub(crate) mod quotient;
pub(crate) mod remainder;
pub(crate) mod shared_divisor;
pub(crate) mod warpgroup_dot;
pub(crate) mod wide_product;
