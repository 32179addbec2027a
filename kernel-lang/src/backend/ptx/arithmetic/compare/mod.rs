//! Index comparisons: indices within a tile against a limit, in 32 bits, and indices against a length. They are recomputed at each use,
//! because a thread has seven predicate registers and a tile has dozens of elements.

mod conjunction;
mod position_test;

use std::rc::Rc;

use crate::analysis::affine::Affine;
use crate::analysis::polynomial::Polynomial;
use crate::backend::ptx::text::registers::{Class, Reg, asm};
use crate::backend::ptx::{Emitter, Source};
use crate::dtype::Dtype;
use crate::ir::{Op, Value};
use crate::layout::Layout;

use conjunction::Test;
pub(crate) use conjunction::Tests;
pub(crate) use position_test::{PositionTest, bounds_test, of_several_blocks};

/// The key of a slack: the limit and where the positions begin, the strides of the index, and the layout that distributes the elements over threads.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct SlackKey {
    limit: Polynomial,
    begin: Polynomial,
    steps: Vec<Polynomial>,
    layout: Option<Layout>,
}

impl Emitter<'_> {
    /// Compares in 32 bits: the thread part is subtracted from the limit once, and each register's part is a constant.
    pub(crate) fn test_positions(&mut self, test: &PositionTest, result: Value) {
        let layout = self.layout(result).cloned();
        let slack = self.slack(test, layout.as_ref());
        let constants = (0..self.lane_count(result))
            .map(|register| test.position.start.constant + Self::register_part(layout.as_ref(), &test.position, register));
        let test = Test::Position { op: test.op.swapped(), slack, parts: constants.collect() };
        self.sources[result] = Some(Source::Tests(test.into()));
    }

    /// Compares at each use, so that the indices of a whole tile are never live at once.
    pub(crate) fn test_bounds(&mut self, (index, affine, length): (Value, Rc<Affine>, Value), result: Value) {
        let layout = self.layout(index).cloned();
        let (bases, parts) = self.addresses(None, &affine, layout.as_ref(), self.lane_count(index), 1);
        let test = Test::Index { bases, parts, length: self.scalar(length) };
        self.sources[result] = Some(Source::Tests(test.into()));
    }

    /// The slack: the limit minus the thread part, computed once per region.
    pub(crate) fn slack(&mut self, test: &PositionTest, layout: Option<&Layout>) -> Reg {
        let key = SlackKey {
            limit: test.limit.clone(),
            begin: test.begin.clone(),
            steps: test.position.strides.clone(),
            layout: layout.cloned(),
        };
        if let Some(known) = self.slacks.iter().rev().find_map(|scope| scope.get(&key)) {
            return *known;
        }
        let mut slack = self.reg(Class::B32);
        // Limits beyond the range of the indices are equivalent, so clamping preserves the result. That of a constant is computed here: where `ptxas` 13.0
        // computes one from 64-bit extrema, and the slack's own minimum follows, it negates the slack.
        if let Some(limit) = test.limit.as_constant().filter(|_| test.begin.is(0)) {
            asm!(self, "mov.b32 {slack}, {}", limit.clamp(-1, i32::MAX.into()));
        } else if let Some((limit, dtype)) = self.before_widening(&test.limit).filter(|_| test.begin.is(0)) {
            match dtype {
                Dtype::U32 => asm!(self, "min.u32 {slack}, {limit}, {}", i32::MAX),
                _ => asm!(self, "max.s32 {slack}, {limit}, -1"),
            }
        } else {
            let mut limit = self.step(&test.limit, 1);
            if !test.begin.is(0) {
                // No index is negative, so that limits below -1 are equivalent. The distance of -1 from the begin does not wrap.
                let (begin, natural, distance) = (self.step(&test.begin, 1), self.reg(Class::B64), self.reg(Class::B64));
                asm!(self, "max.s64 {natural}, {limit}, -1");
                asm!(self, "sub.s64 {distance}, {natural}, {begin}");
                limit = distance;
            }
            let (mut at_least, at_most) = (limit, self.reg(Class::B64));
            if !test.begin.is(0) || !self.is_left(&test.limit) {
                at_least = self.reg(Class::B64);
                asm!(self, "max.s64 {at_least}, {limit}, -1");
            }
            asm!(self, "min.s64 {at_most}, {at_least}, {}", i32::MAX);
            asm!(self, "cvt.u32.u64 {slack}, {at_most}");
        }
        let lanes = test.position.strides.iter().map(|stride| stride.as_constant().expect("the steps of positions are known"));
        for (axis, lane) in lanes.enumerate().filter(|(_, lane)| *lane != 0) {
            let part = layout.and_then(|layout| self.threads.parts.get(&(layout.clone(), axis)).copied().flatten());
            let Some(mut part) = part else { continue };
            if lane != 1 {
                let scaled = self.reg(Class::B32);
                asm!(self, "mul.lo.s32 {scaled}, {part}, {lane}");
                part = scaled;
            }
            let rest = self.reg(Class::B32);
            asm!(self, "sub.s32 {rest}, {slack}, {part}");
            slack = rest;
        }
        if let Some(scope) = self.slacks.last_mut() {
            scope.insert(key, slack);
        }
        slack
    }

    /// Is a limit what is left of a loop around this region, and so positive?
    fn is_left(&mut self, limit: &Polynomial) -> bool {
        let (func, facts) = (self.func, &mut self.facts);
        let mut of = |value: Value| facts.get(func, value).map(|affine| affine.start.clone());
        let limit = match &limit.terms[..] {
            [(factors, 1)] if limit.constant == 0 && factors.len() == 1 => of(factors[0]),
            _ => Some(limit.clone()),
        };
        let left = self.loops.iter().map(|(index, upper)| of(*upper).map(|upper| upper.minus(&Polynomial::scalar(*index))));
        limit.is_some() && left.into_iter().any(|left| left == limit)
    }

    /// A limit that was widened from 32 bits, before that.
    fn before_widening(&mut self, limit: &Polynomial) -> Option<(Reg, Dtype)> {
        let [(factors, 1)] = &limit.terms[..] else { return None };
        let &[wide] = &factors[..] else { return None };
        match self.func.def_op(wide) {
            Some(Op::Cast { x }) if limit.constant == 0 => {
                let dtype = self.func.ty(*x).dtype();
                matches!(dtype, Dtype::I32 | Dtype::U32).then(|| (self.scalar(*x), dtype))
            }
            _ => None,
        }
    }
}
