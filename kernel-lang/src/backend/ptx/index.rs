//! Indices: `uniform + thread part + register part`.

use std::collections::HashMap;

use crate::analysis::affine::{Affine, AffineFacts};
use crate::analysis::polynomial::Polynomial;
use crate::dtype::Dtype;
use crate::ir::{CompareOp, Function, Op, Value};
use crate::layout::{Layout, Level};

use super::registers::{Class, Reg, asm};
use super::{Emitter, Lanes, Source};

/// What names an address: base, the offset's terms that are the same for every thread, its steps, and the layout that spreads it over threads.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct AddressKey {
    base: Option<Value>,
    terms: Vec<(Vec<Value>, i64)>,
    lanes: Vec<Polynomial>,
    layout: Option<Layout>,
    bytes: i64,
}

/// What names how far a thread's place is from a number: the number, how places count, and the layout that spreads them over threads.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct RoomKey {
    limit: Polynomial,
    steps: Vec<Polynomial>,
    layout: Option<Layout>,
}

/// The thread's own part of an index along an axis, by layout; and who stores elements that several threads hold.
#[derive(Default)]
pub(super) struct ThreadParts {
    parts: HashMap<(Layout, usize), Option<Reg>>,
    owner: HashMap<Option<Layout>, Option<Reg>>,
    /// Register of the thread's number in its CTA.
    thread: Option<Reg>,
    /// Register of the CTA's number in its cluster, where there are several.
    block: Option<Reg>,
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

    /// Both.
    pub(super) fn and(self, other: Tests) -> Tests {
        Tests { all: self.all.into_iter().chain(other.all).collect() }
    }
}

impl ThreadParts {
    /// The CTA's number in its cluster.
    pub(super) fn block(&self) -> Reg {
        self.block.expect("there are several CTAs")
    }

    /// The thread's number in its CTA.
    pub(super) fn number(&self) -> Reg {
        self.thread.expect("what depends on the thread only is emitted first")
    }
}

impl Emitter<'_> {
    /// Emits at the top, where it reaches every use, what depends on the thread only.
    pub(super) fn thread_parts(&mut self) {
        let thread = self.reg(Class::B32);
        asm!(self, "mov.u32 {thread}, %tid.x");
        self.threads.thread = Some(thread);
        // The threads of a program are numbered through: those of its first CTA, then those of the second.
        let mut of_program = thread;
        if self.schedule.num_ctas > 1 {
            let block = self.reg(Class::B32);
            of_program = self.reg(Class::B32);
            asm!(self, "mov.u32 {block}, %cluster_ctarank");
            asm!(self, "mad.lo.s32 {of_program}, {block}, {}, {thread}", self.schedule.threads());
            self.threads.block = Some(block);
        }
        let mut layouts: Vec<Layout> = Vec::new();
        for inst in self.func.all_insts() {
            for result in &self.func.inst(inst).results {
                layouts.extend(self.layout(*result).filter(|layout| !layouts.contains(layout)).cloned());
            }
        }
        for layout in &layouts {
            for axis in 0..layout.rank() {
                let part = self.thread_part(layout, axis, of_program);
                self.threads.parts.insert((layout.clone(), axis), part);
            }
            let free = layout.free_bits();
            let warps = layout.bits(Level::Warp);
            let owner = self.owner(free.lane | free.warp << 5 | free.block << (5 + warps), of_program);
            self.threads.owner.insert(Some(layout.clone()), owner);
        }
        let all = self.schedule.threads() * self.schedule.num_ctas - 1;
        let owner = self.owner(all, of_program);
        self.threads.owner.insert(None, owner);
    }

    /// Is this the thread whose `free` bits are all zero? `None` if every thread is.
    pub(super) fn owner(&mut self, free: u32, thread: Reg) -> Option<Reg> {
        if free == 0 {
            return None;
        }
        let (bits, owns) = (self.reg(Class::B32), self.reg(Class::Pred));
        asm!(self, "and.b32 {bits}, {thread}, {free}");
        asm!(self, "setp.eq.s32 {owns}, {bits}, 0");
        Some(owns)
    }

    /// The thread's part along an axis: runs of thread bits that become runs of index bits, shifted into place.
    fn thread_part(&mut self, layout: &Layout, axis: usize, thread: Reg) -> Option<Reg> {
        let bases: Vec<u32> = [Level::Lane, Level::Warp, Level::Block]
            .into_iter()
            .flat_map(|level| (0..layout.bits(level)).map(move |bit| layout.basis(level, bit).map_or(0, |basis| basis[axis])))
            .collect();
        let (bits, basis) = (bases.len(), |bit: usize| bases[bit]);
        let mut sum: Option<Reg> = None;
        let mut bit = 0;
        while bit < bits {
            let first = basis(bit);
            if first == 0 {
                bit += 1;
                continue;
            }
            let length = (1..bits - bit).take_while(|next| basis(bit + next) == first << next).count() + 1;
            let term = self.shifted_bits(thread, bit, length, first.trailing_zeros(), bits);
            sum = Some(match sum {
                Some(sum) => {
                    let both = self.reg(Class::B32);
                    asm!(self, "or.b32 {both}, {sum}, {term}");
                    both
                }
                None => term,
            });
            bit += length;
        }
        sum
    }

    /// `((thread >> from) & (2^length - 1)) << to`, without the steps that do nothing.
    fn shifted_bits(&mut self, thread: Reg, from: usize, length: usize, to: u32, bits: usize) -> Reg {
        let mut at = thread;
        if from + length < bits {
            let masked = self.reg(Class::B32);
            asm!(self, "and.b32 {masked}, {at}, {}", ((1u64 << length) - 1) << from);
            at = masked;
        } else if from > 0 {
            let shifted = self.reg(Class::B32);
            asm!(self, "shr.u32 {shifted}, {at}, {from}");
            at = shifted;
        }
        let is_shifted_down = from > 0 && from + length >= bits;
        let shift = if is_shifted_down { i64::from(to) } else { i64::from(to) - from as i64 };
        if shift == 0 {
            return at;
        }
        let moved = self.reg(Class::B32);
        if shift > 0 {
            asm!(self, "shl.b32 {moved}, {at}, {shift}");
        } else {
            asm!(self, "shr.u32 {moved}, {at}, {}", -shift);
        }
        moved
    }

    /// The predicate under which this thread stores elements of that layout: of elements that several threads hold, one stores.
    pub(super) fn owner_of(&self, layout: Option<&Layout>) -> Option<Reg> {
        self.threads.owner.get(&layout.cloned()).copied().flatten()
    }

    /// What register number `register` adds to an index by the steps that are known: the same for every thread.
    pub(super) fn register_part(layout: Option<&Layout>, affine: &Affine, register: usize) -> i64 {
        let Some(layout) = layout else { return 0 };
        let position = layout.apply(register as u32, 0, 0, 0);
        let known = affine.lanes.iter().map(|lane| lane.as_constant().unwrap_or(0));
        position.iter().zip(known).map(|(at, lane)| i64::from(*at).wrapping_mul(lane)).fold(0, i64::wrapping_add)
    }

    /// `base + bytes * (uniform + thread part)`, computed once in a region for all accesses alike. Constants are left to the caller.
    pub(super) fn address(
        &mut self,
        base: Option<Reg>,
        base_value: Option<Value>,
        affine: &Affine,
        layout: Option<&Layout>,
        bytes: i64,
    ) -> Reg {
        let key =
            AddressKey { base: base_value, terms: affine.start.terms.clone(), lanes: affine.lanes.clone(), layout: layout.cloned(), bytes };
        if let Some(known) = self.addresses.iter().rev().find_map(|scope| scope.get(&key)) {
            return *known;
        }
        let mut sum = base;
        for (factors, coefficient) in &affine.start.terms {
            let product = self.product(factors);
            let term = self.scaled(product, coefficient.wrapping_mul(bytes));
            sum = Some(self.sum(sum, term));
        }
        for (axis, lane) in affine.lanes.iter().enumerate() {
            let part = layout.and_then(|layout| self.threads.parts.get(&(layout.clone(), axis)).copied().flatten());
            let Some(part) = part.filter(|_| !lane.is(0)) else { continue };
            let term = self.reg(Class::B64);
            match lane.as_constant().map(|lane| lane.wrapping_mul(bytes)) {
                Some(scale) if u32::try_from(scale).is_ok() => asm!(self, "mul.wide.u32 {term}, {part}, {scale}"),
                scale => {
                    let wide = self.reg(Class::B64);
                    asm!(self, "cvt.u64.u32 {wide}, {part}");
                    match scale {
                        Some(scale) => asm!(self, "mul.lo.s64 {term}, {wide}, {scale}"),
                        None => {
                            let step = self.step(lane, bytes);
                            asm!(self, "mul.lo.s64 {term}, {wide}, {step}");
                        }
                    }
                }
            }
            sum = Some(self.sum(sum, term));
        }
        let address = sum.unwrap_or_else(|| {
            let zero = self.reg(Class::B64);
            asm!(self, "mov.b64 {zero}, 0");
            zero
        });
        if let Some(scope) = self.addresses.last_mut() {
            scope.insert(key, address);
        }
        address
    }

    /// Where the elements lie that a thread holds: an address for each, if a step is an argument, or one for all; and the constants to be
    /// added to them.
    pub(super) fn addresses(
        &mut self,
        base: Option<(Reg, Value)>,
        affine: &Affine,
        layout: Option<&Layout>,
        count: usize,
        bytes: i64,
    ) -> (Vec<Reg>, Vec<i64>) {
        let (base, base_value) = base.unzip();
        let address = self.address(base, base_value, affine, layout, bytes);
        let constant = |register| affine.start.constant.wrapping_add(Self::register_part(layout, affine, register)).wrapping_mul(bytes);
        let is_known = affine.lanes.iter().all(|lane| lane.as_constant().is_some());
        let addresses = match layout.filter(|_| !is_known) {
            Some(layout) => self.stepping(address, affine, layout, count, bytes),
            None => vec![address],
        };
        (addresses, (0..count).map(constant).collect())
    }

    /// The addresses of a thread's elements, as far as they differ by steps that are arguments: each from one that is known, and of elements at the
    /// same place along those axes only one.
    fn stepping(&mut self, first: Reg, affine: &Affine, layout: &Layout, count: usize, bytes: i64) -> Vec<Reg> {
        let axes: Vec<usize> = (0..affine.lanes.len()).filter(|axis| affine.lanes[*axis].as_constant().is_none()).collect();
        let places: Vec<Vec<u32>> = (0..count)
            .map(|register| {
                let place = layout.apply(register as u32, 0, 0, 0);
                axes.iter().map(|axis| place[*axis]).collect()
            })
            .collect();
        let mut addresses = vec![first];
        for register in 1..count {
            let address = match places[..register].iter().position(|place| *place == places[register]) {
                Some(same) => addresses[same],
                None => {
                    // From the element that differs in the highest bit only.
                    let near = register ^ 1 << register.ilog2();
                    let mut address = addresses[near];
                    for (index, axis) in axes.iter().enumerate() {
                        let distance = i64::from(places[register][index]) - i64::from(places[near][index]);
                        if distance != 0 {
                            let step = self.step(&affine.lanes[*axis], distance.wrapping_mul(bytes));
                            address = self.sum(Some(address), step);
                        }
                    }
                    address
                }
            };
            addresses.push(address);
        }
        addresses
    }

    /// `factor * lane`, computed once in a region.
    fn step(&mut self, lane: &Polynomial, factor: i64) -> Reg {
        let step = self.address(None, None, &Affine::uniform(lane.clone(), 0), None, factor);
        match lane.constant.wrapping_mul(factor) {
            0 => step,
            constant => {
                let sum = self.reg(Class::B64);
                asm!(self, "add.s64 {sum}, {step}, {constant}");
                sum
            }
        }
    }

    fn product(&mut self, factors: &[Value]) -> Reg {
        let mut product = self.scalar(factors[0]);
        for factor in &factors[1..] {
            let (before, factor) = (product, self.scalar(*factor));
            product = self.reg(Class::B64);
            asm!(self, "mul.lo.s64 {product}, {before}, {factor}");
        }
        product
    }

    fn scaled(&mut self, value: Reg, factor: i64) -> Reg {
        if factor == 1 {
            return value;
        }
        let product = self.reg(Class::B64);
        if factor > 0 && factor.count_ones() == 1 {
            asm!(self, "shl.b64 {product}, {value}, {}", factor.trailing_zeros());
        } else {
            asm!(self, "mul.lo.s64 {product}, {value}, {factor}");
        }
        product
    }

    fn sum(&mut self, sum: Option<Reg>, term: Reg) -> Reg {
        let Some(sum) = sum else { return term };
        let total = self.reg(Class::B64);
        asm!(self, "add.s64 {total}, {sum}, {term}");
        total
    }

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

    /// Puts a tile of indices into registers.
    pub(super) fn index_tile(&mut self, result: Value, affine: &Affine) {
        let lanes = Lanes::Each(self.index_registers(result, affine));
        self.define(result, lanes);
    }

    /// The indices of a tile, or of a scalar, in registers: one for each that the thread holds.
    pub(super) fn index_registers(&mut self, value: Value, affine: &Affine) -> Vec<Reg> {
        let layout = self.layout(value).cloned();
        let (bases, constants) = self.addresses(None, affine, layout.as_ref(), self.lane_count(value), 1);
        let parts = constants.into_iter().enumerate().map(|(register, constant)| {
            let base = bases[register.min(bases.len() - 1)];
            if constant == 0 {
                return base;
            }
            let index = self.reg(Class::B64);
            asm!(self, "add.s64 {index}, {base}, {constant}");
            index
        });
        parts.collect()
    }
}
