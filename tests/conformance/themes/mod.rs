//! The themes: each a function that lists its cases.

pub(crate) mod arithmetic;
pub(crate) mod casts;
pub(crate) mod math;
pub(crate) mod reductions;
pub(crate) mod scans;

use galatea::Dtype;

/// The integers with a sign.
pub(crate) const SIGNED: [Dtype; 4] = [Dtype::I8, Dtype::I16, Dtype::I32, Dtype::I64];
/// The integers without one.
pub(crate) const UNSIGNED: [Dtype; 4] = [Dtype::U8, Dtype::U16, Dtype::U32, Dtype::U64];
pub(crate) const INTS: [Dtype; 8] = Dtype::INTS;
pub(crate) const FLOATS: [Dtype; 4] = [Dtype::F16, Dtype::Bf16, Dtype::F32, Dtype::F64];
/// The types of numbers.
pub(crate) const NUMBERS: [Dtype; 12] = {
    let ([a, b, c, d], [e, f, g, h], [i, j, k, l]) = (SIGNED, UNSIGNED, FLOATS);
    [a, b, c, d, e, f, g, h, i, j, k, l]
};

/// Each of the one with each of the other.
pub(crate) fn pairs<'a>(a: &'a [Dtype], b: &'a [Dtype]) -> impl Iterator<Item = (Dtype, Dtype)> + use<'a> {
    a.iter().flat_map(move |a| b.iter().map(move |b| (*a, *b)))
}
