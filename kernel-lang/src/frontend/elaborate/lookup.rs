//! `gather`, `histogram`, `sort` and `topk`: elements that go where data says.

use super::meaning::Meaning;
use super::{Elaborator, Value};
use crate::dtype::Dtype;
use crate::frontend::ast::Call;
use crate::frontend::place::Place;
use crate::ir::{Builder, ConstBinary, ConstExpr, Domain, Elem, Op, Type};

impl Elaborator<'_> {
    pub(super) fn gather(&mut self, call: &Call, place: Place) -> Meaning {
        let [src, index, axis] = &call.args[..] else { return Meaning::Poison };
        let (source, at) = (self.tile("gather", "takes elements of", src), self.tile("gather", "is told where by", index));
        let (Some((meaning, value)), Some((index_meaning, index_value))) = (source, at) else { return Meaning::Poison };
        let (from, to) = (self.func.ty(value).shape().to_vec(), self.func.ty(index_value).shape().to_vec());
        let Some(axis) = self.axis(axis, from.len(), &self.describe(&meaning)) else { return Meaning::Poison };
        let is_aligned = from.len() == to.len() && (0..from.len()).all(|other| other == axis as usize || from[other] == to[other]);
        if !is_aligned {
            let (a, b) = (self.describe(&meaning), self.describe(&index_meaning));
            let help = "index and tile have as many axes, and all but that one are alike: `broadcast_to(index, [M, N])`";
            self.errors.push_help(place, format!("`gather` along axis {axis} cannot look up {b} in {a}"), help);
            return Meaning::Poison;
        }
        if !self.check_domain(index_value, Domain::Int) {
            self.wrong_domain("gather", Domain::Int, &index_meaning, index);
            return Meaning::Poison;
        }
        if self.needs_powers_of_two("gather", &meaning, src.place) || self.needs_powers_of_two("gather", &index_meaning, index.place) {
            return Meaning::Poison;
        }
        match self.with_elem(&index_meaning, &Elem::Dtype(Dtype::I64), index.place) {
            Ok(Some(index)) => self.emit(Op::Gather { src: value, index, axis }, &[], place).into(),
            Ok(None) => Meaning::Poison,
            Err(()) => {
                let found = self.describe(&index_meaning);
                let help = format!("cast it: `{} as usize`", super::operator::written(index));
                self.errors.push_help(index.place, format!("an index is `i64`, and {found} does not widen to it"), help);
                Meaning::Poison
            }
        }
    }

    pub(super) fn histogram(&mut self, call: &Call, place: Place) -> Meaning {
        let [x, bins] = &call.args[..] else { return Meaning::Poison };
        let tile = self.tile("histogram", "counts the elements of", x);
        let given = self.expr(bins);
        let bins_value = self.const_int(&given, "the number of bins", bins.place);
        let mask = self.option(call, "mask").map(|expr| (self.expr(expr), expr));
        let (Some((meaning, value)), Some(count)) = (tile, bins_value) else { return Meaning::Poison };
        if !self.check_domain(value, Domain::Int) {
            self.wrong_domain("histogram", Domain::Int, &meaning, x);
            return Meaning::Poison;
        }
        let shape = self.func.ty(value).shape().to_vec();
        let mask = match mask {
            None => None,
            Some((meaning, expr)) => match self.mask(&meaning, &shape, "elements", expr) {
                Some(mask) => Some(mask),
                None => return Meaning::Poison,
            },
        };
        let is_odd = self.needs_powers_of_two("histogram", &meaning, x.place) || self.is_odd_count("a histogram", &count, bins.place);
        if is_odd || !self.check_extent(&count, "the histogram", bins.place) {
            return Meaning::Poison;
        }
        self.emit(Op::Histogram { x: value, bins: count, mask }, &[], place).into()
    }

    pub(super) fn sort(&mut self, call: &Call, place: Place) -> Meaning {
        let x = &call.args[0];
        let Some((meaning, value)) = self.tile("sort", "orders the elements of", x) else { return Meaning::Poison };
        let descending = self.flag(call, "descending");
        if self.needs_powers_of_two("sort", &meaning, x.place) {
            return Meaning::Poison;
        }
        let Some(axis) = self.last_axis(call, &meaning) else { return Meaning::Poison };
        let value = self.axes_exchanged(value, axis, place);
        let sorted = value.and_then(|value| self.emit(Op::Sort { x: value, descending }, &[], place));
        sorted.and_then(|sorted| self.axes_exchanged(sorted, axis, place)).into()
    }

    /// The first of what is sorted downwards.
    pub(super) fn topk(&mut self, call: &Call, place: Place) -> Meaning {
        let [x, count] = &call.args[..] else { return Meaning::Poison };
        let tile = self.tile("topk", "takes the largest elements of", x);
        let given = self.expr(count);
        let k = self.const_int(&given, "the number of elements", count.place);
        let (Some((meaning, value)), Some(k)) = (tile, k) else { return Meaning::Poison };
        let Some(axis) = self.last_axis(call, &meaning) else { return Meaning::Poison };
        let extent = self.func.ty(value).shape()[axis as usize].clone();
        if let (Some(k), Some(extent)) = (k.as_int(), extent.as_int())
            && k > extent
        {
            let found = self.describe(&meaning);
            self.errors.push_help(count.place, format!("{found} has no {k} elements along axis {axis}"), format!("write at most {extent}"));
            return Meaning::Poison;
        }
        let is_odd = self.needs_powers_of_two("topk", &meaning, x.place) || self.is_odd_count("what `topk` gives", &k, count.place);
        if is_odd || !self.check_extent(&k, "what `topk` gives", count.place) {
            return Meaning::Poison;
        }
        let Some(value) = self.axes_exchanged(value, axis, place) else { return Meaning::Poison };
        let Some(sorted) = self.emit(Op::Sort { x: value, descending: true }, &[], place) else { return Meaning::Poison };
        let ty = self.func.ty(sorted).clone();
        let mut shape = ty.shape().to_vec();
        let extent = shape.pop().expect("a tile has an axis");
        shape.extend([ConstExpr::binary(ConstBinary::Div, extent, k.clone()), k]);
        let along = shape.len() as u32 - 2;
        let Some(runs) = self.emit(Op::Reshape { x: sorted }, &[Type::tile(ty.elem().clone(), shape)], place) else {
            return Meaning::Poison;
        };
        let loc = self.loc(place);
        let first = Builder::new(&mut self.func, self.region, loc).reduce(vec![runs], along, |_, earlier, _| earlier.to_vec());
        self.axes_exchanged(first[0], axis, place).into()
    }

    /// `axis = k`, the last one if it is left out.
    fn last_axis(&mut self, call: &Call, meaning: &Meaning) -> Option<u32> {
        let axis = self.axis_option(call, meaning)?;
        Some(axis.unwrap_or(self.shape_of(meaning).len() as u32 - 1))
    }

    /// The tile with that axis and the last one in each other's place.
    fn axes_exchanged(&mut self, value: Value, axis: u32, place: Place) -> Option<Value> {
        let rank = self.func.ty(value).shape().len() as u32;
        if axis + 1 == rank {
            return Some(value);
        }
        let mut order: Vec<u32> = (0..rank).collect();
        order.swap(axis as usize, rank as usize - 1);
        self.emit(Op::Permute { x: value, order }, &[], place)
    }
}
