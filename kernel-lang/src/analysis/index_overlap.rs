//! Index overlap: can an element have the same index in two accesses?
//!
//! ```text
//! for %k in 0 .. n step 1024       store at %k + i, i < 1024
//!   in two iterations                   1024 * iterations apart: no element overlaps any other
//! for %k in 0 .. n                 load at %k + i, store at %k + i + 1
//!   in one iteration                    1 apart: no element overlaps itself
//!   in two iterations                   the store overlaps the load of the next iteration
//! while ..                         load at %p + i, store at %p + i + 1024, and then another %p
//!   in two iterations                   nothing is known of how %p changes: assumed to overlap
//! ```

use std::rc::Rc;

use crate::analysis::affine::Affine;
use crate::analysis::loops::Loop;
use crate::analysis::polynomial::Polynomial;
use crate::ir::{Function, SideTable, Value};

/// The smallest index of each loop that constants bound, and a number that no index exceeds.
#[derive(Default)]
pub struct IndexRanges(SideTable<Value, Option<(i64, i64)>>);

/// The loop indices of an access in one iteration and of an access in a later iteration. The second index is greater, by a multiple of
/// `step` if the step is known.
#[derive(Clone, Copy)]
pub struct Iterations {
    /// The loop index of the first access and that of the second.
    pub indices: [Value; 2],
    /// The smallest distance between the two indices, if it is known.
    pub step: Option<i64>,
}

/// The second of two accesses is in a later iteration.
#[derive(Clone, Copy)]
pub struct Later<'a> {
    /// The loop indices, if the loop counts.
    pub iterations: Option<Iterations>,
    /// The values that change in each iteration; `None` if none does.
    pub varies: Option<&'a SideTable<Value, bool>>,
}

/// The range of an access's indices, without the term of one loop index.
struct Reach {
    start: Polynomial,
    /// The range of the stride terms and of the terms of loops with known bounds, if it is known.
    range: Option<(i128, i128)>,
    has_indices: bool,
}

/// An index and the extents of its tile.
type Index = (Rc<Affine>, Vec<usize>);

impl IndexRanges {
    /// The ranges of all loops of a kernel.
    pub fn of(func: &Function) -> IndexRanges {
        let mut ranges = IndexRanges::default();
        for inst in func.all_insts() {
            if let Some(around) = Loop::of(func, inst) {
                ranges.0[around.index(func)] = around.index_bounds(func);
            }
        }
        ranges
    }

    /// Can an element have the same index in both accesses, in one iteration or in two?
    pub fn may_meet(&self, first: &Index, second: &Index, later: Option<Later<'_>>) -> bool {
        let is_same = first.0.strides == second.0.strides && first.1 == second.1;
        let varies = later.and_then(|later| later.varies);
        let is_anew = |part: &Polynomial| varies.is_some_and(|varies| part.scalars().any(|value| varies[value]));
        // A stride differs between iterations.
        if [first, second].iter().any(|(affine, _)| affine.strides.iter().any(is_anew)) {
            return true;
        }
        let Some(Iterations { indices: [from, to], step }) = later.and_then(|later| later.iterations) else {
            let is_known = ![first, second].iter().any(|(affine, _)| is_anew(&affine.start));
            return !is_known || !is_same || second.0.start.minus(&first.0.start).as_constant().is_none_or(|apart| apart == 0);
        };
        let (Some(scale), Some(same)) = (first.0.start.coefficient(from), second.0.start.coefficient(to)) else { return true };
        let Some(scale) = scale.as_constant().filter(|_| scale == same) else { return true };
        let (first, second) = (self.reach(first, from), self.reach(second, to));
        let is_known = !is_anew(&first.start);
        let Some(apart) = second.start.minus(&first.start).as_constant().filter(|_| is_known) else { return true };
        let (scale, apart, step) = (i128::from(scale), i128::from(apart), step.map(i128::from));
        if let (Some(step), Some((first_low, first_high)), Some((low, high))) = (step, first.range, second.range) {
            let (least, most) = (apart + low - first_high, apart + high - first_low);
            if (scale > 0 && scale * step + least > 0) || (scale < 0 && scale * step + most < 0) {
                return false;
            }
        }
        match step {
            _ if !is_same || first.has_indices || second.has_indices => true,
            _ if scale == 0 => apart == 0,
            // The loop index moves the second access away from the first.
            _ if scale.signum() * apart.signum() >= 0 => false,
            Some(step) => apart % (scale * step) == 0,
            None => true,
        }
    }

    fn reach(&self, (affine, extents): &Index, index: Value) -> Reach {
        let (mut start, mut has_indices) = (Polynomial::constant(affine.start.constant), false);
        let mut parts: Vec<Option<(i128, i128)>> = Vec::new();
        for (factors, coefficient) in &affine.start.terms {
            match factors[..] {
                [value] if value == index => {}
                [value] if let Some((low, high)) = self.0[value] => {
                    has_indices = true;
                    let ends = [low, high].map(|end| i128::from(end) * i128::from(*coefficient));
                    parts.push(Some((ends[0].min(ends[1]), ends[0].max(ends[1]))));
                }
                _ => start.terms.push((factors.clone(), *coefficient)),
            }
        }
        parts.extend(affine.strides.iter().zip(extents).map(|(stride, extent)| {
            let end = i128::from(stride.as_constant()?) * (*extent as i128 - 1);
            Some((end.min(0), end.max(0)))
        }));
        let range = parts.into_iter().try_fold((0, 0), |(low, high), part| part.map(|(least, most)| (low + least, high + most)));
        Reach { start, range, has_indices }
    }
}
