//! Whole tiles in bounds: one test of a tile's corners says so of all its elements.
//!
//! An index `start + lane_0 * i_0 + lane_1 * i_1 + ..` is smallest and largest in corners of the tile. With no `lane_k` negative these are the
//! first element and the last:
//!
//! | index | of a tile | smallest | largest |
//! |---|---|---|---|
//! | `s + n * i + j` | `[4, 64]` | `s` | `s + 3 * n + 63` |
//! | `s - n * i + j`, which is `s - 3 * n + n * i + j` with the rows the other way round | `[4, 64]` | `s - 3 * n` | `s + 63` |
//!
//! Whether an `n` that is an argument is not negative, a test asks when the kernel runs; and whether it is so small that no sum overflows. Indices
//! are numbers modulo 2^64, lengths are below 2^63: where the exact sum is in bounds, the index is that sum.

use std::collections::HashSet;

use crate::analysis::affine::Affine;
use crate::analysis::polynomial::Polynomial;
use crate::dtype::Dtype;
use crate::ir::{BinaryOp, Builder, CompareOp, Op, Value};

/// Steps from lane to lane are less than that: as a tile has at most 2^20 elements, sums of them are less than 2^60.
pub const LONGEST_STEP: i64 = 1 << 40;

/// An access that must be in bounds: of `index`'s lanes, those below each end.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Bound {
    /// The pointer.
    pub base: Value,
    /// The access's index, in an order in which no step is expected to be negative. Steps along axes of one element are 0.
    pub index: Affine,
    /// The extents of the tile.
    pub extents: Vec<usize>,
    /// What a mask leaves.
    pub ends: Vec<End>,
}

/// The lanes from 0 up to a number along an axis.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct End {
    /// The axis.
    pub axis: usize,
    /// The number.
    pub end: Polynomial,
}

impl Bound {
    /// The lanes of an access below each end; `None` if a test cannot say whether they are in bounds.
    pub fn of(base: Value, index: &Affine, extents: &[usize], mut ends: Vec<End>) -> Option<Bound> {
        let mut index = index.clone();
        for (axis, extent) in extents.iter().enumerate() {
            let lane = std::mem::take(&mut index.lanes[axis]);
            if *extent > 1 && lane.looks_negative() {
                index.start = index.start.plus(&lane.scaled(*extent as i64 - 1));
                index.lanes[axis] = lane.scaled(-1);
                // The lanes that a mask keeps are now the last: all must be in bounds.
                ends.retain(|end| end.axis != axis);
            } else if *extent > 1 {
                index.lanes[axis] = lane;
            }
        }
        let is_short = |lane: &Polynomial| lane.as_constant().is_none_or(|lane| (0..LONGEST_STEP).contains(&lane));
        let is_testable = index.lanes.iter().all(is_short);
        is_testable.then(|| Bound { base, index, extents: extents.to_vec(), ends })
    }

    /// The steps that are arguments.
    fn steps(&self) -> impl Iterator<Item = &Polynomial> {
        self.index.lanes.iter().filter(|lane| lane.as_constant().is_none())
    }

    /// What the last lane adds to the index, of those that no mask keeps off.
    pub fn maximum(&self, b: &mut Builder<'_>) -> Value {
        let is_whole = |axis: &usize| self.ends.iter().all(|end| end.axis != *axis);
        let (whole, parts): (Vec<usize>, Vec<usize>) = (0..self.extents.len()).partition(is_whole);
        let spans = whole.into_iter().map(|axis| self.index.lanes[axis].scaled(self.extents[axis] as i64 - 1));
        let whole = spans.fold(Polynomial::default(), |sum, span| sum.plus(&span));
        let mut sum = (!whole.is(0) || self.ends.is_empty()).then(|| whole.value(b));
        for axis in parts {
            // At least one lane: an empty row need not be fast.
            let mut count = b.index(self.extents[axis] as i128);
            for end in self.ends.iter().filter(|end| end.axis == axis) {
                let end = end.end.value(b);
                count = b.binary(BinaryOp::Min, end, count);
            }
            let one = b.index(1);
            let count = b.binary(BinaryOp::Max, count, one);
            let last = b.binary(BinaryOp::Sub, count, one);
            let step = self.index.lanes[axis].value(b);
            let last = b.binary(BinaryOp::Mul, last, step);
            sum = Some(sum.map_or(last, |sum| b.binary(BinaryOp::Add, sum, last)));
        }
        sum.expect("an access has axes")
    }
}

/// Appends tests that together say that all these accesses are in bounds. They never say so wrongly, whatever the numbers are.
pub fn tests(b: &mut Builder<'_>, bounds: &[Bound]) -> Vec<Value> {
    let mut tests = Vec::new();
    let mut starts: HashSet<&Affine> = HashSet::new();
    for bound in bounds {
        // 0 <= start and start < length - maximum: `length` is not negative and `maximum` is less than 2^60.
        let start = bound.index.uniform_value(b);
        if starts.insert(&bound.index) {
            let zero = b.index(0);
            tests.push(b.compare(CompareOp::Ge, start, zero));
        }
        let length = b.op(Op::Length { base: bound.base }, &[]);
        let maximum = bound.maximum(b);
        let limit = b.binary(BinaryOp::Sub, length, maximum);
        tests.push(b.compare(CompareOp::Lt, start, limit));
    }
    let mut steps: HashSet<&Polynomial> = HashSet::new();
    for step in bounds.iter().flat_map(Bound::steps) {
        if steps.insert(step) {
            let step = step.value(b);
            tests.push(is_below(b, step, LONGEST_STEP));
        }
    }
    tests
}

/// Is a number at least 0 and less than `end`?
pub fn is_below(b: &mut Builder<'_>, number: Value, end: i64) -> Value {
    let end = b.index(end.into());
    let [number, end] = [number, end].map(|value| b.bitcast(value, Dtype::U64));
    b.compare(CompareOp::Lt, number, end)
}
