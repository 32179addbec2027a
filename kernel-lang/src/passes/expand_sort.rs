//! Sort expansion: writes a sort as a bitonic network (K. E. Batcher, "Sorting networks and their applications", 1968). Each step compares
//! every element with the one whose index differs in one bit.
//!
//! ```text
//! ; before
//! kernel @k(%x: tile<u32, [2]>, %y: ptr_mut<u32>) {
//!     %0 = arange {start = 0, end = 2} : tile<i64, [2]>
//!     %1 = sort %x : tile<u32, [2]>
//!     store %y, %0, %1
//!     return
//! }
//! ; after
//! kernel @k(%x: tile<u32, [2]>, %y: ptr_mut<u32>) {
//!     %0 = arange {start = 0, end = 2} : tile<i64, [2]>
//!     %1 = reshape %x : tile<u32, [1, 2]>
//!     %2 = flip %1 {axis = 1} : tile<u32, [1, 2]>
//!     %3 = reshape %2 : tile<u32, [2]>
//!     %4 = min %x, %3 : tile<u32, [2]>
//!     %5 = max %x, %3 : tile<u32, [2]>
//!     %6 = arange {start = 0, end = 2} : tile<i64, [2]>
//!     %7 = const {value = 1} : tile<i64, [2]>
//!     %8 = lt %6, %7 : tile<bool, [2]>
//!     %9 = expand_dims %8 {axis = 1} : tile<bool, [2, 1]>
//!     %10 = expand_dims %9 : tile<bool, [1, 2, 1]>
//!     %11 = reshape %10 : tile<bool, [2]>
//!     %12 = select %11, %4, %5 : tile<u32, [2]>
//!     store %y, %0, %12
//!     return
//! }
//! ```
//!
//! The network sorts runs of 2, 4, 8 .. elements. To form a run of two, the first step compares each element with the one at the mirrored
//! position in the new run. Then both halves are bitonic, and comparisons at halved distances sort them. All runs have the same order, so that
//! a step depends on one bit of the index: threads that hold this bit in their registers need no selection.
//!
//! ```text
//! run of     compared at a distance of
//! 2          1
//! 4          3 or 1, then 1
//! 8          7, 5, 3 or 1, then 2 1
//! ```
//!
//! If only the first `count` elements are wanted, runs of that size are sorted, and those of the second half of the tile in the opposite order.
//! The better elements of both halves, compared one by one, are a tile of half the size with bitonic runs (A. Shanbhag, H. Pirk, S. Madden,
//! "Efficient top-k query processing on GPUs", 2018). The highest bits of the index are dropped first, because a thread often holds them in its
//! registers: it then has fewer elements.
//!
//! Floats are sorted as integers made of their bits, in the order of IEEE 754's `totalOrder`: -NaN, -infinity, .., infinity, NaN.

use crate::dtype::Dtype;
use crate::ir::rewrite::{Changed, Substitution, substitute};
use crate::ir::{BinaryOp, Builder, CompareOp, ConstExpr, Function, Op, Value};

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let mut with = Substitution::new();
    for region in func.regions_under(func.body) {
        let mut out = Vec::new();
        for inst in func.region(region).insts.clone() {
            let data = func.inst(inst);
            let Op::Sort { x, descending, .. } = data.op else {
                out.push(inst);
                continue;
            };
            let (loc, result) = (data.loc, data.results[0]);
            let count = func.ty(result).extents().last().copied().unwrap_or(1);
            let x = with.get(x);
            let scratch = func.add_region();
            let sorted = sort(&mut Builder::new(func, scratch, loc), x, descending, count.trailing_zeros());
            out.append(func.insts_mut(scratch));
            with.insert(result, sorted);
        }
        *func.insts_mut(region) = out;
    }
    substitute(func, func.body, &with)
}

/// The first `1 << count_bits` elements of a sorted tile.
fn sort(b: &mut Builder<'_>, x: Value, descending: bool, count_bits: u32) -> Value {
    let dtype = b.func.ty(x).dtype();
    let bits = b.func.ty(x).extents().last().copied().unwrap_or(1).trailing_zeros();
    let mut keys = keys(b, x, dtype);
    // The highest bit of the number of a run, if there are several.
    let top = |bits: u32| (bits > count_bits).then(|| bits - 1);
    for run in 1..=count_bits {
        let partner = flipped_runs(b, keys, run);
        let opposite = top(bits).filter(|_| run == count_bits);
        keys = compared(b, keys, partner, run - 1, opposite, descending);
        keys = merged(b, keys, run - 1, opposite, descending);
    }
    for bits in (count_bits..bits).rev() {
        keys = first_of_halves(b, keys, bits, descending);
        keys = merged(b, keys, count_bits, top(bits), descending);
    }
    values(b, keys, dtype)
}

/// Sorts runs of `1 << run` elements, each of which is bitonic.
fn merged(b: &mut Builder<'_>, mut keys: Value, run: u32, opposite: Option<u32>, descending: bool) -> Value {
    let axis = b.func.ty(keys).shape().len() as u32 - 1;
    for bit in (0..run).rev() {
        let partner = b.op(Op::Butterfly { x: keys, axis, bit }, &[]);
        keys = compared(b, keys, partner, bit, opposite, descending);
    }
    keys
}

/// Of each element and its partner the one that comes first, or the other one where bit `bit` of the index is set. Where the bit `opposite` is
/// set, the order is reversed.
fn compared(b: &mut Builder<'_>, keys: Value, partner: Value, bit: u32, opposite: Option<u32>, descending: bool) -> Value {
    let (smaller, larger) = (b.binary(BinaryOp::Min, keys, partner), b.binary(BinaryOp::Max, keys, partner));
    let (first, last) = if descending { (larger, smaller) } else { (smaller, larger) };
    let mut takes_first = is_low(b, keys, bit);
    if let Some(opposite) = opposite {
        let is_usual = is_low(b, keys, opposite);
        takes_first = b.compare(CompareOp::Eq, takes_first, is_usual);
    }
    b.select(takes_first, first, last)
}

/// The tile with the order of each run of `1 << run` elements reversed.
fn flipped_runs(b: &mut Builder<'_>, keys: Value, run: u32) -> Value {
    let shape = b.func.ty(keys).shape().to_vec();
    let mut runs = shape.clone();
    let extent = runs.pop().and_then(|extent| extent.as_int()).expect("a specialised kernel's extents are numbers");
    runs.extend([extent >> run, 1 << run].map(ConstExpr::Int));
    let keys = b.reshape(keys, &runs);
    let flipped = b.flip(keys, runs.len() as u32 - 1);
    b.reshape(flipped, &shape)
}

/// Compares the elements whose index has the highest bit, `top`, with those whose index does not, and keeps the ones that come first.
fn first_of_halves(b: &mut Builder<'_>, keys: Value, top: u32, descending: bool) -> Value {
    let mut shape = b.func.ty(keys).shape().to_vec();
    let axis = shape.len() as u32 - 1;
    shape.splice(axis as usize.., [2, 1 << top].map(ConstExpr::Int));
    let halves = b.reshape(keys, &shape);
    let op = if descending { BinaryOp::Max } else { BinaryOp::Min };
    b.reduce(vec![halves], axis, |b, x, y| vec![b.binary(op, x[0], y[0])])[0]
}

/// Is bit `bit` of the index along the last axis 0? The result is a mask of the shape of `like`. It is made of two elements, so that threads
/// that hold the bit in their registers know it at compile time, and others compute it once.
fn is_low(b: &mut Builder<'_>, like: Value, bit: u32) -> Value {
    let shape = b.func.ty(like).shape().to_vec();
    let mut parts = shape.clone();
    let extent = parts.pop().and_then(|extent| extent.as_int()).expect("a specialised kernel's extents are numbers");
    parts.extend([extent >> (bit + 1), 2, 1 << bit].map(ConstExpr::Int));
    let number = b.op(Op::Arange { start: ConstExpr::Int(0), end: ConstExpr::Int(2) }, &[]);
    let one = b.int_like(1, number);
    let mut is_low = b.compare(CompareOp::Lt, number, one);
    is_low = b.expand_dims(is_low, 1);
    for _ in 0..parts.len() - 2 {
        is_low = b.expand_dims(is_low, 0);
    }
    is_low = b.broadcast(is_low, &parts);
    b.reshape(is_low, &shape)
}

/// Integers in the order of the elements.
fn keys(b: &mut Builder<'_>, x: Value, dtype: Dtype) -> Value {
    match dtype {
        Dtype::Bool => b.cast(x, Dtype::U8),
        _ if dtype.is_float() => {
            let bits = b.bitcast(x, dtype.bits_dtype());
            turned(b, bits)
        }
        _ => x,
    }
}

/// The elements that have these keys.
fn values(b: &mut Builder<'_>, keys: Value, dtype: Dtype) -> Value {
    match dtype {
        Dtype::Bool => b.cast(keys, Dtype::Bool),
        _ if dtype.is_float() => {
            let bits = turned(b, keys);
            b.bitcast(bits, dtype)
        }
        _ => keys,
    }
}

/// Inverts all bits but the sign of negative integers. This maps the bits of floats to integers in the same order, and back.
fn turned(b: &mut Builder<'_>, bits: Value) -> Value {
    let width = b.func.ty(bits).dtype().bits();
    let [last, all_but_sign] = [i128::from(width) - 1, (1 << (width - 1)) - 1].map(|int| b.int_like(int, bits));
    let sign = b.binary(BinaryOp::Shr, bits, last);
    let inverted = b.binary(BinaryOp::And, sign, all_but_sign);
    b.binary(BinaryOp::Xor, bits, inverted)
}
