//! Ends of masks that move with the loop index: `position < n - first` in a loop over `first`, which is `first + position < n`.
//!
//! Such an end moves back in the tile as far as the tile moves forward in the tensor. So the last element that the mask keeps is the same in all iterations,
//! and if it is in bounds in the last iteration, the elements of all iterations in front of the end are.

use crate::analysis::bounds::Bound;
use crate::analysis::polynomial::Polynomial;
use crate::ir::Value;

/// Has a bound an end that moves with the loop index?
pub(super) fn has(bound: &Bound, index: Value) -> bool {
    bound.ends.iter().any(|end| end.end.coefficient(index).is_some_and(|moves| !moves.is(0)))
}

/// Does every end of a bound stay where it is, in the tile or in the tensor? Of ends that move along two axes, both would move the last element back.
pub(super) fn stay(bound: &Bound, index: Value) -> bool {
    let (scale, mut moving_axis): (_, Option<usize>) = (bound.index.start.coefficient(index), None);
    bound.ends.iter().all(|end| {
        let (Some(scale), Some(moves)) = (&scale, end.end.coefficient(index)) else { return false };
        if moves.is(0) {
            return true;
        }
        let stride = &bound.index.strides[end.axis];
        // The product of other numbers could wrap.
        let is_exact = stride.is(1) || moves.is(-1);
        let compensates = stride.times(&moves).is_some_and(|distance| distance.plus(scale).is(0));
        is_exact && compensates && *moving_axis.get_or_insert(end.axis) == end.axis
    })
}

/// The bound of the elements in front of the ends if the loop index is the last number in front of `end`, the end of the loop.
pub(super) fn at_last(mut bound: Bound, end: &Polynomial, index: Value) -> Bound {
    let to_last = end.minus(&Polynomial::constant(1)).minus(&Polynomial::scalar(index));
    let Bound { extents, ends, .. } = &mut bound;
    ends.retain(|end| {
        let moved = end.end.coefficient(index).and_then(|moves| moves.times(&to_last));
        let Some(count) = moved.and_then(|moved| end.end.plus(&moved).as_constant()).filter(|_| !end.is_inclusive && end.run == 1) else {
            return true;
        };
        // If there is no element, the first one is tested.
        extents[end.axis] = extents[end.axis].min(count.max(1) as usize);
        false
    });
    bound
}
