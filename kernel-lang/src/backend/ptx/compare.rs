//! Comparisons of indices: of places in the tile with numbers, in 32 bits, and of indices with a length. They are made at each use, because a
//! thread has seven predicates, and a tile has dozens of elements.

use crate::analysis::affine::{Affine, AffineFacts};
use crate::analysis::polynomial::Polynomial;
use crate::dtype::Dtype;
use crate::ir::{CompareOp, Function, Op, Value};
use crate::layout::Layout;

use super::registers::{Class, Reg, asm};
use super::{Emitter, Source};

/// What names how far a thread's place is from a number: the number, how places count, and the layout that spreads them over threads.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct RoomKey {
    limit: Polynomial,
    steps: Vec<Polynomial>,
    layout: Option<Layout>,
}

/// A comparison of positions in a tile, which fit 31 bits, with a number that is the same for every element.
pub(super) struct PositionTest {
    op: CompareOp,
    position: Affine,
    limit: Affine,
}

impl PositionTest {
    pub(super) fn of(func: &Function, facts: &mut AffineFacts, op: &Op, result: Value) -> Option<PositionTest> {
        let &Op::Compare { mut op, lhs, rhs } = op else { return None };
        let extents = func.ty(result).is_tile().then(|| func.ty(result).extents())?;
        let (mut position, mut limit, mut scalar) = (facts.get(func, lhs)?, facts.get(func, rhs)?, rhs);
        if position.is_uniform() {
            (position, limit, scalar, op) = (limit, position, lhs, op.swapped());
        }
        // A number that an op has computed need not be computed again from its parts.
        if let Some(Op::Broadcast { x }) = func.def_op(scalar)
            && func.ty(*x).is_scalar()
            && limit.as_constant().is_none()
        {
            limit.start = Polynomial::scalar(*x);
        }
        let is_position = position.start.as_constant().is_some_and(|start| (0..1 << 30).contains(&start));
        let is_small = position.lane_maximum(&extents).is_some_and(|maximum| maximum < 1 << 30);
        let is_order = !matches!(op, CompareOp::Eq | CompareOp::Ne);
        (is_position && is_small && is_order && limit.is_uniform() && !position.is_uniform()).then_some(PositionTest {
            op,
            position,
            limit,
        })
    }

    /// The scalars that it is computed from.
    pub(super) fn operands(&self) -> impl Iterator<Item = Value> {
        self.limit.scalars()
    }
}

/// Is a tile of indices inside a tensor? Of the indices and the length.
pub(super) fn bounds_test(func: &Function, facts: &mut AffineFacts, op: &Op) -> Option<(Value, Affine, Value)> {
    let &Op::Compare { op: CompareOp::Lt, lhs, rhs } = op else { return None };
    let (Some(&Op::Bitcast { x: index }), Some(&Op::Broadcast { x: length })) = (func.def_op(lhs), func.def_op(rhs)) else { return None };
    let is_test = func.ty(index).is_tile() && func.ty(lhs).dtype() == Dtype::U64 && func.ty(length).is_scalar();
    Some((index, facts.get(func, index).filter(|_| is_test)?, length))
}

/// A mask of more comparisons is computed once.
const MOST_TESTS: usize = 16;

/// Comparisons, all of which must hold.
#[derive(Clone, Debug)]
pub(super) struct Tests {
    all: Vec<Test>,
}

/// A comparison for each register of a thread.
#[derive(Clone, Debug)]
enum Test {
    /// A number of the thread with the register's part of a position.
    Place { op: CompareOp, room: Reg, parts: Vec<i64> },
    /// `base + part`, unsigned, with a length.
    Index { bases: Vec<Reg>, parts: Vec<i64>, length: Reg },
}

impl Test {
    fn moved(self, sources: &[u32]) -> Test {
        let parts = |parts: Vec<i64>| sources.iter().map(|at| parts[*at as usize]).collect();
        match self {
            Test::Place { op, room, parts: of } => Test::Place { op, room, parts: parts(of) },
            Test::Index { bases, parts: of, length } => {
                let bases = sources.iter().map(|at| bases[(*at as usize).min(bases.len() - 1)]).collect();
                Test::Index { bases, parts: parts(of), length }
            }
        }
    }
}

impl Tests {
    /// The same where runs of so many registers are alike: each is tested as its first.
    pub(super) fn of_runs(self, run: usize) -> Tests {
        let (Test::Place { parts, .. } | Test::Index { parts, .. }) = &self.all[0];
        let sources: Vec<u32> = (0..parts.len()).map(|register| (register & !(run - 1)) as u32).collect();
        self.moved(&sources)
    }

    /// The tests of a tile whose elements are those of other registers.
    pub(super) fn moved(self, sources: &[u32]) -> Tests {
        Tests { all: self.all.into_iter().map(|test| test.moved(sources)).collect() }
    }

    /// Both, unless they are so many that truths are better kept.
    pub(super) fn and(&self, other: &Tests) -> Option<Tests> {
        (self.all.len() + other.all.len() <= MOST_TESTS).then(|| Tests { all: self.all.iter().chain(&other.all).cloned().collect() })
    }
}

impl Emitter<'_> {
    /// Compares in 32 bits: the thread part is taken off the limit once, and each register's part is a constant.
    pub(super) fn test_positions(&mut self, test: &PositionTest, result: Value) {
        let layout = self.layout(result).cloned();
        let room = self.room(test, layout.as_ref());
        let constants = (0..self.lane_count(result))
            .map(|register| test.position.start.constant + Self::register_part(layout.as_ref(), &test.position, register));
        let test = Test::Place { op: test.op.swapped(), room, parts: constants.collect() };
        self.sources[result] = Some(Source::Tests(Tests { all: vec![test] }));
    }

    /// Compares at each use, so that the indices of a whole tile are never held at once.
    pub(super) fn test_bounds(&mut self, (index, affine, length): (Value, Affine, Value), result: Value) {
        let layout = self.layout(index).cloned();
        let (bases, parts) = self.addresses(None, &affine, layout.as_ref(), self.lane_count(index), 1);
        let test = Test::Index { bases, parts, length: self.scalar(length) };
        self.sources[result] = Some(Source::Tests(Tests { all: vec![test] }));
    }

    /// The limit less the thread part, computed once in a region.
    fn room(&mut self, test: &PositionTest, layout: Option<&Layout>) -> Reg {
        let key = RoomKey { limit: test.limit.start.clone(), steps: test.position.lanes.clone(), layout: layout.cloned() };
        if let Some(known) = self.rooms.iter().rev().find_map(|scope| scope.get(&key)) {
            return *known;
        }
        let [at_least, at_most] = [0; 2].map(|_| self.reg(Class::B64));
        let limit = self.step(&test.limit.start, 1);
        // Beyond the positions on either side, every number is as good as the next.
        asm!(self, "max.s64 {at_least}, {limit}, -1");
        asm!(self, "min.s64 {at_most}, {at_least}, {}", i32::MAX);
        let mut room = self.reg(Class::B32);
        asm!(self, "cvt.u32.u64 {room}, {at_most}");
        let lanes = test.position.lanes.iter().map(|lane| lane.as_constant().expect("the steps of positions are known"));
        for (axis, lane) in lanes.enumerate().filter(|(_, lane)| *lane != 0) {
            let part = layout.and_then(|layout| self.threads.parts.get(&(layout.clone(), axis)).copied().flatten());
            let Some(mut part) = part else { continue };
            if lane != 1 {
                let scaled = self.reg(Class::B32);
                asm!(self, "mul.lo.s32 {scaled}, {part}, {lane}");
                part = scaled;
            }
            let rest = self.reg(Class::B32);
            asm!(self, "sub.s32 {rest}, {room}, {part}");
            room = rest;
        }
        if let Some(scope) = self.rooms.last_mut() {
            scope.insert(key, room);
        }
        room
    }

    /// Do all the tests hold for that element?
    pub(super) fn test(&mut self, tests: &Tests, register: usize) -> Reg {
        let mut before: Option<Reg> = None;
        for test in &tests.all {
            let (compare, left, right) = match test {
                Test::Place { op, room, parts } => (format!("{}.s32", op.name()), *room, parts[register].to_string()),
                Test::Index { bases, parts, length } => {
                    let mut index = bases[register.min(bases.len() - 1)];
                    if parts[register] != 0 {
                        let base = index;
                        index = self.reg(Class::B64);
                        asm!(self, "add.s64 {index}, {base}, {}", parts[register]);
                    }
                    ("lt.u64".to_string(), index, length.to_string())
                }
            };
            let holds = self.reg(Class::Pred);
            match (before, compare.split_once('.')) {
                (Some(before), Some((op, ty))) => asm!(self, "setp.{op}.and.{ty} {holds}, {left}, {right}, {before}"),
                _ => asm!(self, "setp.{compare} {holds}, {left}, {right}"),
            }
            before = Some(holds);
        }
        before.expect("there is a test")
    }
}
