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
//!     %1 = arange {start = 0, end = 2} : tile<i64, [2]>
//!     %2 = cast %1 : tile<i32, [2]>
//!     %3 = const {value = 1} : tile<i32, [2]>
//!     %4 = and %2, %3 : tile<i32, [2]>
//!     %5 = const {value = 0} : tile<i32, [2]>
//!     %6 = eq %4, %5 : tile<bool, [2]>
//!     %7 = butterfly %x : tile<u32, [2]>
//!     %8 = min %x, %7 : tile<u32, [2]>
//!     %9 = max %x, %7 : tile<u32, [2]>
//!     %10 = select %6, %8, %9 : tile<u32, [2]>
//!     store %y, %0, %10
//!     return
//! }
//! ```
//!
//! The network sorts runs of 2, 4, 8 .. elements, every second run in descending order. Two neighbouring runs then form a bitonic sequence.
//! Comparisons at halved distances merge the two runs into one:
//!
//! ```text
//! run of     compared at a distance of
//! 2          1
//! 4          2 1
//! 8          4 2 1
//! ```
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
            let Op::Sort { x, descending } = data.op else {
                out.push(inst);
                continue;
            };
            let (loc, result) = (data.loc, data.results[0]);
            let x = with.get(x);
            let scratch = func.add_region();
            let sorted = sort(&mut Builder::new(func, scratch, loc), x, descending);
            out.append(func.insts_mut(scratch));
            with.insert(result, sorted);
        }
        *func.insts_mut(region) = out;
    }
    substitute(func, func.body, &with)
}

fn sort(b: &mut Builder<'_>, x: Value, descending: bool) -> Value {
    let dtype = b.func.ty(x).dtype();
    let extents = b.func.ty(x).extents();
    let axis = extents.len() - 1;
    let bits = extents[axis].trailing_zeros();
    let is_low: Vec<Value> = (0..bits).map(|bit| is_low(b, x, bit)).collect();
    let mut keys = keys(b, x, dtype);
    for run in 1..=bits {
        for bit in (0..run).rev() {
            let partner = b.op(Op::Butterfly { x: keys, axis: axis as u32, bit }, &[]);
            let (smaller, larger) = (b.binary(BinaryOp::Min, keys, partner), b.binary(BinaryOp::Max, keys, partner));
            // In an ascending run the lower index takes the smaller element. Every second run is descending. The last run, the whole tile,
            // has the requested order.
            let takes_smaller = match is_low.get(run as usize) {
                Some(rises) => b.compare(CompareOp::Eq, is_low[bit as usize], *rises),
                None => is_low[bit as usize],
            };
            keys = if descending { b.select(takes_smaller, larger, smaller) } else { b.select(takes_smaller, smaller, larger) };
        }
    }
    values(b, keys, dtype)
}

/// Is bit `bit` of the index along the last axis 0? The result is a mask of the shape of `x`.
fn is_low(b: &mut Builder<'_>, x: Value, bit: u32) -> Value {
    let shape = b.func.ty(x).shape().to_vec();
    let extent = shape[shape.len() - 1].clone();
    let index = b.op(Op::Arange { start: ConstExpr::Int(0), end: extent }, &[]);
    let index = b.cast(index, Dtype::I32);
    let one = b.int_like(1 << bit, index);
    let masked = b.binary(BinaryOp::And, index, one);
    let zero = b.int_like(0, index);
    let mut is_low = b.compare(CompareOp::Eq, masked, zero);
    for _ in 1..shape.len() {
        is_low = b.expand_dims(is_low, 0);
    }
    b.broadcast(is_low, &shape)
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
    let zero = b.int_like(0, bits);
    let is_negative = b.compare(CompareOp::Lt, bits, zero);
    let all_but_sign = b.int_like((1 << (width - 1)) - 1, bits);
    let inverted = b.binary(BinaryOp::Xor, bits, all_but_sign);
    b.select(is_negative, inverted, bits)
}
