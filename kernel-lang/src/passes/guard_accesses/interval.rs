//! Interval masks: accesses with known strides, `start + position`, where `position` is a small number for each element.
//!
//! The elements in bounds are those with `-start <= position < length - start`. A mask `position < end`, such as for the columns of a row,
//! or `start + position < end`, such as for the elements of a vector, only lowers the upper bound. So both bounds become numbers that are
//! compared with positions, in 32 bits.
//!
//! ```text
//! %position = arange {start = 0, end = 64}             load %x, %start + %position {mask = %position < %n}
//! %length = length %x                                  %slack = sub %length, %start
//!                                                      %end = min %n, %slack
//!                                                      %first = sub 0, %start
//!                                                      load .. {mask = %position < %end and %position >= %first, in_bounds = true}
//! ```

use std::rc::Rc;

use crate::analysis::affine::{Affine, AffineFacts};
use crate::analysis::masks::{Comparison, Condition, Conjunct};
use crate::ir::{Access, BinaryOp, Builder, CompareOp, ConstExpr, Function, Value};

/// The elements of an access whose mask holds and whose offset is in bounds.
pub(super) struct Interval {
    index: Rc<Affine>,
    shape: Vec<ConstExpr>,
    upper: Option<Upper>,
    /// The mask that the interval includes. It may be a conjunct of the access's mask.
    pub(super) absorbed: Option<Value>,
}

/// The upper bound that a mask sets.
struct Upper {
    end: Value,
    /// Is it `.. <= end`, and not `.. < end`?
    is_inclusive: bool,
    /// Is it a bound of `position`, and not of `start + position`?
    is_position: bool,
}

impl Upper {
    /// The first position or index above the bound. (That of the largest number is this number: no element is there.)
    fn end(&self, b: &mut Builder<'_>) -> Value {
        if !self.is_inclusive {
            return self.end;
        }
        let (last, one) = (b.index((i64::MAX - 1).into()), b.index(1));
        let end = b.binary(BinaryOp::Min, self.end, last);
        b.binary(BinaryOp::Add, end, one)
    }
}

/// The interval of an access whose mask has these conjuncts, if it has one and its mask is not a box, which `super::corners` handles.
pub(super) fn find(func: &Function, facts: &mut AffineFacts, access: Access, conjuncts: &[Conjunct]) -> Option<Interval> {
    let ty = func.ty(access.offset);
    let index = facts.get(func, access.offset).filter(|_| ty.is_tile())?;
    index.maximum_offset(&ty.extents())?;
    let upper = conjuncts.iter().find_map(|conjunct| Some((conjunct.mask, upper(conjunct, &index)?)));
    if upper.is_none() && access.mask.is_some() && ty.shape().len() > 1 {
        return None;
    }
    let (absorbed, upper) = upper.unzip();
    Some(Interval { index, shape: ty.shape().to_vec(), upper, absorbed })
}

/// The bound of the position or the index that a conjunct of the access's shape sets.
fn upper(conjunct: &Conjunct, index: &Affine) -> Option<Upper> {
    let Condition::Comparison(Comparison { op: op @ (CompareOp::Lt | CompareOp::Le), index: own, scalar: Some(end), .. }) =
        &conjunct.condition
    else {
        return None;
    };
    if conjunct.mask != conjunct.whole || own.strides != index.strides {
        return None;
    }
    let is_position = own.start.is(0);
    let upper = Upper { end: *end, is_inclusive: *op == CompareOp::Le, is_position };
    (is_position || own.start == index.start).then_some(upper)
}

/// In tiles of at most this many elements, the indices themselves are compared. Examples are slices of a guarded tile, of which a thread
/// holds one element or a few.
const FEW: usize = 512;

impl Interval {
    /// Is one 64-bit comparison of the indices cheaper than computing the bounds of a 32-bit comparison?
    fn is_few(&self) -> bool {
        let extents = self.shape.iter().map(|extent| extent.as_int().and_then(|extent| usize::try_from(extent).ok()));
        let is_small = extents.product::<Option<usize>>().is_some_and(|elements| elements <= FEW);
        is_small && self.index.start.as_constant().is_none() && self.upper.as_ref().is_none_or(|upper| !upper.is_position)
    }

    /// The length of the tensor, or the end of the mask if that is less.
    fn end(&self, b: &mut Builder<'_>, base: Value) -> Value {
        let length = b.length(base);
        let Some(upper) = self.upper.as_ref().filter(|upper| !upper.is_position) else { return length };
        let (zero, end) = (b.index(0), upper.end(b));
        let end = b.binary(BinaryOp::Max, end, zero);
        b.binary(BinaryOp::Min, end, length)
    }

    /// The mask of the elements in the interval. If a difference overflows, `start` is so far out of bounds that no element is inside, and
    /// the other comparison is false.
    pub(super) fn inside(&self, b: &mut Builder<'_>, Access { base, offset, .. }: Access) -> Value {
        if self.is_few() {
            let end = self.end(b, base);
            return super::below(b, offset, end);
        }
        let (known, start) = (self.index.start.as_constant(), self.index.start.value(b));
        let length = self.end(b, base);
        let mut end = b.binary(BinaryOp::Sub, length, start);
        if let Some(upper) = self.upper.as_ref().filter(|upper| upper.is_position) {
            let own = upper.end(b);
            end = b.binary(BinaryOp::Min, own, end);
        }
        let position = self.index.strides_value(b, &self.shape);
        let end = b.broadcast(end, &self.shape);
        let below = b.compare(CompareOp::Lt, position, end);
        if known.is_some_and(|start| start >= 0) {
            return below;
        }
        let zero = b.index(0);
        let first = b.binary(BinaryOp::Sub, zero, start);
        let first = b.broadcast(first, &self.shape);
        let behind = b.compare(CompareOp::Ge, position, first);
        b.binary(BinaryOp::And, below, behind)
    }
}
