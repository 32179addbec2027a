//! Tile bounds: a test of a tile's corners proves that all its elements are in bounds.
//!
//! An index `start + stride_0 * i_0 + stride_1 * i_1 + ..` is smallest and largest in corners of the tile. If no stride is negative, these
//! corners are the first element and the last one:
//!
//! | index | of a tile | smallest | largest |
//! |---|---|---|---|
//! | `s + n * i + j` | `[4, 64]` | `s` | `s + 3 * n + 63` |
//! | `s - n * i + j`, which is `s - 3 * n + n * i + j` with the rows reversed | `[4, 64]` | `s - 3 * n` | `s + 63` |
//!
//! If a stride `n` is an argument, a test at run time checks that `n` is not negative, and so small that no sum overflows. Indices are
//! numbers modulo 2^64 and lengths are below 2^63: if the exact sum is in bounds, the index equals that sum.

use rustc_hash::FxHashSet;

use crate::analysis::affine::Affine;
use crate::analysis::polynomial::Polynomial;
use crate::dtype::Dtype;
use crate::ir::{BinaryOp, Builder, CompareOp, Value};

/// All strides must be less than this. A tile has at most 2^20 elements, so sums of stride terms are less than 2^60.
pub const LONGEST_STEP: i64 = 1 << 40;

/// An access that must be in bounds: the elements of `index` that are below each end.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Bound {
    /// The pointer.
    pub base: Value,
    /// The index of the access. Axes are reversed so that no stride is expected to be negative. Strides of axes with one element are 0.
    pub index: Affine,
    /// The extents of the tile.
    pub extents: Vec<usize>,
    /// The ends that the mask sets.
    pub ends: Vec<End>,
}

/// The elements from position 0 up to a number along an axis.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct End {
    /// The axis.
    pub axis: usize,
    /// The first position that the mask excludes, or the last one that it keeps if `is_inclusive`.
    pub end: Polynomial,
    /// Is `end` itself kept?
    pub is_inclusive: bool,
    /// Elements are accessed in runs of so many: an access reads a run as a whole if the mask keeps an element of it.
    pub run: usize,
}

impl End {
    /// The end of the positions that are less than `end`.
    pub fn below(axis: usize, end: Polynomial) -> End {
        End { axis, end, is_inclusive: false, run: 1 }
    }

    /// Appends the number of positions of an axis that are accessed. Zero or less if there is none.
    fn count(&self, b: &mut Builder<'_>, extent: usize) -> Value {
        let most = b.index((extent - usize::from(self.is_inclusive)) as i128);
        let end = self.end.value(b);
        let mut count = b.binary(BinaryOp::Min, end, most);
        let more = usize::from(self.is_inclusive) + self.run - 1;
        if more > 0 {
            let more = b.index(more as i128);
            count = b.binary(BinaryOp::Add, count, more);
        }
        if self.run > 1 {
            let whole_runs = b.index(-(self.run as i128));
            count = b.binary(BinaryOp::And, count, whole_runs);
        }
        count
    }
}

impl Bound {
    /// The bound for the elements of an access below each end; `None` if no test can decide whether these are in bounds.
    pub fn of(base: Value, index: &Affine, extents: &[usize], mut ends: Vec<End>) -> Option<Bound> {
        let mut index = index.clone();
        for (axis, extent) in extents.iter().enumerate() {
            let stride = std::mem::take(&mut index.strides[axis]);
            if *extent > 1 && stride.looks_negative() {
                index.start = index.start.plus(&stride.scaled(*extent as i64 - 1));
                index.strides[axis] = stride.scaled(-1);
                // The elements that the mask keeps are now the last ones. So all elements must be in bounds.
                ends.retain(|end| end.axis != axis);
            } else if *extent > 1 {
                index.strides[axis] = stride;
            }
        }
        let is_short = |stride: &Polynomial| stride.as_constant().is_none_or(|stride| (0..LONGEST_STEP).contains(&stride));
        let is_testable = index.strides.iter().all(is_short);
        is_testable.then(|| Bound { base, index, extents: extents.to_vec(), ends })
    }

    /// The strides that are not constants.
    fn steps(&self) -> impl Iterator<Item = &Polynomial> {
        self.index.strides.iter().filter(|stride| stride.as_constant().is_none())
    }

    /// One more than the largest sum of stride terms of the elements that the mask keeps. Any number if it keeps none.
    pub fn span(&self, b: &mut Builder<'_>) -> Value {
        let is_whole = |axis: &usize| self.ends.iter().all(|end| end.axis != *axis);
        let (whole, parts): (Vec<usize>, Vec<usize>) = (0..self.extents.len()).partition(is_whole);
        let stride = |axis: usize, factor: i64| self.index.strides[axis].scaled(factor);
        let of_whole = whole.into_iter().map(|axis| stride(axis, self.extents[axis] as i64 - 1));
        let of_parts = parts.iter().map(|axis| stride(*axis, -1));
        let constant = of_whole.chain(of_parts).fold(Polynomial::constant(1), |sum, term| sum.plus(&term));
        let mut sum = (!constant.is(0) || parts.is_empty()).then(|| constant.value(b));
        for axis in parts {
            let counts: Vec<Value> = self.ends.iter().filter(|end| end.axis == axis).map(|end| end.count(b, self.extents[axis])).collect();
            let count = counts.into_iter().reduce(|least, count| b.binary(BinaryOp::Min, least, count)).expect("the axis has an end");
            let step = self.index.strides[axis].value(b);
            let reach = b.binary(BinaryOp::Mul, count, step);
            sum = Some(sum.map_or(reach, |sum| b.binary(BinaryOp::Add, sum, reach)));
        }
        sum.expect("an access has axes")
    }
}

/// Appends tests that together prove all these accesses in bounds. The tests never pass for an access that is out of bounds.
pub fn tests(b: &mut Builder<'_>, bounds: &[Bound]) -> Vec<Value> {
    let mut tests = Vec::new();
    let mut starts: FxHashSet<&Affine> = FxHashSet::default();
    for bound in bounds {
        // 0 <= start and start <= length - span. No overflow: `length` is not negative, and `span` is at least 1 and at most 2^60. (If the mask
        // keeps no element, both tests may pass.)
        let start = bound.index.uniform_value(b);
        if starts.insert(&bound.index) {
            let zero = b.index(0);
            tests.push(b.compare(CompareOp::Ge, start, zero));
        }
        let length = b.length(bound.base);
        let span = bound.span(b);
        let last = b.binary(BinaryOp::Sub, length, span);
        tests.push(b.compare(CompareOp::Le, start, last));
    }
    let mut steps: FxHashSet<&Polynomial> = FxHashSet::default();
    for step in bounds.iter().flat_map(Bound::steps) {
        if steps.insert(step) {
            let step = step.value(b);
            tests.push(is_below(b, step, LONGEST_STEP));
        }
    }
    tests
}

/// Appends the bits that any of these integers has; `None` if there are no integers.
pub fn any_bit(b: &mut Builder<'_>, numbers: Vec<Value>) -> Option<Value> {
    numbers.into_iter().reduce(|all, number| b.binary(BinaryOp::Or, all, number))
}

/// Appends a test: is each of these numbers at least 0 and less than `end`, a power of two? `None` if there are no numbers.
pub fn are_below(b: &mut Builder<'_>, numbers: Vec<Value>, end: i64) -> Option<Value> {
    any_bit(b, numbers).map(|all| is_below(b, all, end))
}

/// Appends a test: is a number at least 0 and less than `end`?
pub fn is_below(b: &mut Builder<'_>, number: Value, end: i64) -> Value {
    let end = b.index(end.into());
    let [number, end] = [number, end].map(|value| b.bitcast(value, Dtype::U64));
    b.compare(CompareOp::Lt, number, end)
}
