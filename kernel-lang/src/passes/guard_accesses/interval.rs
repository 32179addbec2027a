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

use crate::analysis::affine::{Affine, AffineFacts};
use crate::analysis::masks::{Comparison, Condition, Conjunct};
use crate::ir::{Access, BinaryOp, Builder, CompareOp, ConstExpr, Function, Op, Value};

/// The elements of an access whose mask holds and whose offset is in bounds.
pub(super) struct Interval {
    index: Affine,
    shape: Vec<ConstExpr>,
    upper: Option<Upper>,
    /// The mask that the interval includes. It may be a conjunct of the access's mask.
    pub(super) absorbed: Option<Value>,
}

/// The upper bound that a mask sets.
enum Upper {
    /// `position < end`
    Position(Value),
    /// `start + position < end`
    Index(Value),
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
    let Condition::Comparison(Comparison { op: CompareOp::Lt, index: own, scalar: Some(end), .. }) = &conjunct.condition else {
        return None;
    };
    if conjunct.mask != conjunct.whole || own.strides != index.strides {
        return None;
    }
    let is_position = own.start.is(0);
    let upper = if is_position { Upper::Position(*end) } else { Upper::Index(*end) };
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
        is_small && self.index.start.as_constant().is_none() && !matches!(self.upper, Some(Upper::Position(_)))
    }

    /// The length of the tensor, or the end of the mask if that is less.
    fn end(&self, b: &mut Builder<'_>, base: Value) -> Value {
        let length = b.op(Op::Length { base }, &[]);
        let Some(Upper::Index(end)) = self.upper else { return length };
        let zero = b.index(0);
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
        if let Some(Upper::Position(own)) = self.upper {
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
