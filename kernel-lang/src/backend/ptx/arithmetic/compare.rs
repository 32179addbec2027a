//! Index comparisons: indices within a tile against a limit, in 32 bits, and indices against a length. They are recomputed at each use,
//! because a thread has seven predicate registers and a tile has dozens of elements.

use std::ops::Range;
use std::rc::Rc;

use rustc_hash::FxHashSet;

use crate::analysis::affine::{Affine, AffineFacts};
use crate::analysis::bits::Bits;
use crate::analysis::masks::{self, Comparison};
use crate::analysis::polynomial::Polynomial;
use crate::dtype::Dtype;
use crate::ir::{CompareOp, Function, Op, Value};
use crate::layout::Layout;

use crate::backend::ptx::text::registers::{Class, Reg, asm};
use crate::backend::ptx::{Emitter, Source};

/// The key of a slack: the limit and where the positions begin, the strides of the index, and the layout that distributes the elements over threads.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct SlackKey {
    limit: Polynomial,
    begin: Polynomial,
    steps: Vec<Polynomial>,
    layout: Option<Layout>,
}

/// A comparison of tile indices, which fit into 31 bits, with a limit that is the same for every element.
pub(crate) struct PositionTest {
    op: CompareOp,
    position: Rc<Affine>,
    limit: Polynomial,
    /// The index of position 0, which is neither negative nor above 2^62.
    begin: Polynomial,
}

impl PositionTest {
    /// The comparison as a test of positions. `kept` are the results of comparisons that are not tests of blocks: see [`of_several_blocks`].
    pub(crate) fn of(func: &Function, facts: &mut AffineFacts, op: &Op, result: Value, kept: &FxHashSet<Value>) -> Option<PositionTest> {
        let comparison = if func.ty(result).is_tile() { Comparison::of(func, facts, op)? } else { return None };
        let Comparison { op, index: mut position, extents, mut limit, scalar } = comparison;
        // A limit that an op has computed already is not recomputed from its terms.
        if let Some(scalar) = scalar.filter(|_| limit.as_constant().is_none()) {
            limit = Polynomial::scalar(scalar);
        }
        // `start + i == n` holds exactly where `i == n - start` does, even if a sum wraps around.
        if matches!(op, CompareOp::Eq | CompareOp::Ne) {
            limit = limit.minus(&position.start);
            Rc::make_mut(&mut position).start = Polynomial::constant(0);
        }
        // In `program * 64 + i < n`, `i` is compared with `n - program * 64`.
        let mut begin = Polynomial { constant: 0, ..position.start.clone() };
        if !begin.is(0) && !kept.contains(&result) && Bits::default().are_few(func, &position.start) {
            let constant = position.start.constant;
            Rc::make_mut(&mut position).start = Polynomial::constant(constant);
        } else {
            begin = Polynomial::constant(0);
        }
        let is_position = position.start.as_constant().is_some_and(|start| (0..1 << 30).contains(&start));
        let is_small = position.maximum_offset(&extents).is_some_and(|maximum| maximum < 1 << 30);
        (is_position && is_small && !position.is_uniform()).then_some(PositionTest { op, position, limit, begin })
    }

    /// The scalars from which the comparison is computed.
    pub(crate) fn operands(&self) -> impl Iterator<Item = Value> {
        self.limit.scalars().chain(self.begin.scalars())
    }
}

/// The comparisons of blocks of which a mask combines several, such as the rows and the columns of a tile at any place. Tested at each use, they let the driver's
/// compiler load the whole tile at once: a transpose of 64 x 64 elements then took 95 registers instead of 56.
pub(crate) fn of_several_blocks(func: &Function) -> FxHashSet<Value> {
    let (mut facts, mut several, none) = (AffineFacts::new(), FxHashSet::default(), FxHashSet::default());
    let masks: FxHashSet<Value> = func.all_insts().into_iter().filter_map(|inst| func.inst(inst).op.access()?.mask).collect();
    for mask in masks {
        let conjuncts = masks::conjuncts(func, &mut facts, mask).into_iter().map(|conjunct| conjunct.mask);
        let blocks = conjuncts.filter(|mask| {
            let test = func.def_op(*mask).and_then(|op| PositionTest::of(func, &mut facts, op, *mask, &none));
            test.is_some_and(|test| !test.begin.is(0))
        });
        let blocks: Vec<Value> = blocks.collect();
        several.extend(blocks.iter().filter(|_| blocks.len() > 1));
    }
    several
}

/// The indices and the length of a bounds check: whether a tile of indices lies inside a tensor.
pub(crate) fn bounds_test(func: &Function, facts: &mut AffineFacts, op: &Op) -> Option<(Value, Rc<Affine>, Value)> {
    let &Op::Compare { op: CompareOp::Lt, lhs, rhs } = op else { return None };
    let (Some(&Op::Bitcast { x: index }), Some(&Op::Broadcast { x: length })) = (func.def_op(lhs), func.def_op(rhs)) else { return None };
    let is_test = func.ty(index).is_tile() && func.ty(lhs).dtype() == Dtype::U64 && func.ty(length).is_scalar();
    Some((index, facts.get(func, index).filter(|_| is_test)?, length))
}

/// The maximum number of comparisons in a mask that is recomputed; larger masks are computed once.
const MOST_TESTS: usize = 16;

/// A conjunction of comparisons.
#[derive(Clone, Debug)]
pub(crate) struct Tests {
    all: Vec<Test>,
}

/// A comparison for each register of a thread.
#[derive(Clone, Debug)]
enum Test {
    /// Compares the thread's slack with the register's part of the index.
    Position { op: CompareOp, slack: Reg, parts: Vec<i64> },
    /// Compares `base + part`, unsigned, with a length.
    Index { bases: Vec<Reg>, parts: Vec<i64>, length: Reg },
}

impl Test {
    /// Is it the same for all elements of a thread, such as for elements of one row?
    fn is_uniform(&self) -> bool {
        matches!(self, Test::Position { parts, .. } if parts.iter().all(|part| *part == parts[0]))
    }

    fn moved(self, sources: &[u32]) -> Test {
        let parts = |parts: Vec<i64>| sources.iter().map(|at| parts[*at as usize]).collect();
        match self {
            Test::Position { op, slack, parts: of } => Test::Position { op, slack, parts: parts(of) },
            Test::Index { bases, parts: of, length } => {
                let bases = sources.iter().map(|at| bases[(*at as usize).min(bases.len() - 1)]).collect();
                Test::Index { bases, parts: parts(of), length }
            }
        }
    }
}

impl Tests {
    /// The tests if runs of `run` adjacent registers are equal: each run is tested at its first register.
    pub(crate) fn of_runs(self, run: usize) -> Tests {
        let (Test::Position { parts, .. } | Test::Index { parts, .. }) = &self.all[0];
        let sources: Vec<u32> = (0..parts.len()).map(|register| (register & !(run - 1)) as u32).collect();
        self.moved(&sources)
    }

    /// A test that holds if a mask may hold for an element of one of these registers: that of the register whose index the limit excludes last.
    pub(crate) fn of_any(&self, registers: Range<usize>) -> Option<Tests> {
        let first = self.all.iter().find_map(|test| {
            let Test::Position { op, slack, parts } = test else { return None };
            let parts = parts[registers.clone()].iter().copied();
            let part = match op {
                CompareOp::Gt | CompareOp::Ge => parts.min(),
                CompareOp::Lt | CompareOp::Le => parts.max(),
                CompareOp::Eq | CompareOp::Ne => None,
            };
            Some(Test::Position { op: *op, slack: *slack, parts: vec![part?] })
        });
        Some(Tests { all: vec![first?] })
    }

    /// The tests of a tile whose elements are those of other registers.
    pub(crate) fn moved(self, sources: &[u32]) -> Tests {
        Tests { all: self.all.into_iter().map(|test| test.moved(sources)).collect() }
    }
}

impl Emitter<'_> {
    /// Compares in 32 bits: the thread part is subtracted from the limit once, and each register's part is a constant.
    pub(crate) fn test_positions(&mut self, test: &PositionTest, result: Value) {
        let layout = self.layout(result).cloned();
        let slack = self.slack(test, layout.as_ref());
        let constants = (0..self.lane_count(result))
            .map(|register| test.position.start.constant + Self::register_part(layout.as_ref(), &test.position, register));
        let test = Test::Position { op: test.op.swapped(), slack, parts: constants.collect() };
        self.sources[result] = Some(Source::Tests(Tests { all: vec![test] }));
    }

    /// Compares at each use, so that the indices of a whole tile are never live at once.
    pub(crate) fn test_bounds(&mut self, (index, affine, length): (Value, Rc<Affine>, Value), result: Value) {
        let layout = self.layout(index).cloned();
        let (bases, parts) = self.addresses(None, &affine, layout.as_ref(), self.lane_count(index), 1);
        let test = Test::Index { bases, parts, length: self.scalar(length) };
        self.sources[result] = Some(Source::Tests(Tests { all: vec![test] }));
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

    /// The conjunction of two masks, with as few comparisons for an element as possible. `None` if it has more than [`MOST_TESTS`]: then a predicate is computed
    /// and kept.
    ///
    /// The driver's compiler computes a chain of comparisons once, and keeps its result in a register for each element: it has only seven predicates. One
    /// comparison it computes again.
    pub(crate) fn conjunction(&mut self, lhs: Tests, rhs: Tests) -> Option<Tests> {
        let mut all: Vec<Test> = Vec::new();
        'tests: for test in lhs.all.into_iter().chain(rhs.all) {
            for known in &mut all {
                if let Some(both) = self.one_test(known, &test).or_else(|| self.one_test(&test, known)) {
                    *known = both;
                    continue 'tests;
                }
            }
            all.push(test);
        }
        (all.len() <= MOST_TESTS).then_some(Tests { all })
    }

    /// One comparison that holds where two do, if the second one compares with the same parts as the first, or is the same for all elements.
    fn one_test(&mut self, first: &Test, second: &Test) -> Option<Test> {
        let Test::Position { op, slack, parts } = first else { return None };
        let Test::Position { op: other_op, slack: other, parts: other_parts } = second else { return None };
        // Is the comparison that of an index below a limit?
        let is_below = match op {
            CompareOp::Gt | CompareOp::Ge => true,
            CompareOp::Lt | CompareOp::Le => false,
            CompareOp::Eq | CompareOp::Ne => return None,
        };
        let both = if op == other_op && parts == other_parts {
            let both = self.reg(Class::B32);
            asm!(self, "{}.s32 {both}, {slack}, {other}", if is_below { "min" } else { "max" });
            both
        } else if is_below && second.is_uniform() && !first.is_uniform() {
            // No part is negative, so that none is below this slack.
            let (holds, both) = (self.reg(Class::Pred), self.reg(Class::B32));
            asm!(self, "setp.{}.s32 {holds}, {other}, {}", other_op.name(), other_parts[0]);
            asm!(self, "selp.b32 {both}, {slack}, -1, {holds}");
            both
        } else {
            return None;
        };
        Some(Test::Position { op: *op, slack: both, parts: parts.clone() })
    }

    /// Emits the conjunction of the tests for that element.
    pub(crate) fn test(&mut self, tests: &Tests, register: usize) -> Reg {
        let mut before: Option<Reg> = None;
        for test in &tests.all {
            let (compare, left, right) = match test {
                Test::Position { op, slack, parts } => (format!("{}.s32", op.name()), *slack, parts[register].to_string()),
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
