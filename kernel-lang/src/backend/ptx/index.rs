//! Indices: `uniform + thread part + register part`.

use std::collections::HashMap;

use crate::analysis::affine::{Affine, AffineFacts};
use crate::ir::{CompareOp, Function, Op, Value};
use crate::layout::{Layout, Level};

use super::registers::{Class, Reg, asm};
use super::{Emitter, Lanes, Source};

/// What names an address: base, offset's uniform part and lane coefficients, and the layout that spreads it over threads.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct AddressKey {
    base: Option<Value>,
    uniform: Vec<(Value, i64)>,
    lanes: Vec<i64>,
    layout: Option<Layout>,
    bytes: i64,
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
        let (mut position, mut limit) = (facts.get(func, lhs)?, facts.get(func, rhs)?);
        if position.is_uniform() {
            (position, limit, op) = (limit, position, op.swapped());
        }
        let is_position = position.uniform.is_empty() && (0..1 << 30).contains(&position.constant);
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
        self.limit.uniform.iter().map(|(value, _)| *value)
    }
}

/// Comparisons of a thread's number with each register's part of a position, all of which must hold.
#[derive(Clone, Debug)]
pub(super) struct Tests {
    all: Vec<(CompareOp, Reg)>,
    constants: Vec<i64>,
}

impl Tests {
    /// The same where runs of so many registers are alike: each is tested as its first.
    pub(super) fn of_runs(mut self, run: usize) -> Tests {
        for register in 0..self.constants.len() {
            self.constants[register] = self.constants[register & !(run - 1)];
        }
        self
    }

    /// Both, if they are of the same positions.
    pub(super) fn and(&self, other: &Tests) -> Option<Tests> {
        let all = self.all.iter().chain(&other.all).copied().collect();
        (self.constants == other.constants).then(|| Tests { all, constants: self.constants.clone() })
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

    /// What register number `register` adds to an index: the same for every thread.
    pub(super) fn register_part(layout: Option<&Layout>, affine: &Affine, register: usize) -> i64 {
        let Some(layout) = layout else { return 0 };
        let position = layout.apply(register as u32, 0, 0, 0);
        position.iter().zip(&affine.lanes).map(|(at, lane)| i64::from(*at).wrapping_mul(*lane)).fold(0, i64::wrapping_add)
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
            AddressKey { base: base_value, uniform: affine.uniform.clone(), lanes: affine.lanes.clone(), layout: layout.cloned(), bytes };
        if let Some(known) = self.addresses.iter().rev().find_map(|scope| scope.get(&key)) {
            return *known;
        }
        let mut sum = base;
        for (value, coefficient) in &affine.uniform {
            let term = self.scaled(self.scalar(*value), coefficient.wrapping_mul(bytes));
            sum = Some(self.sum(sum, term));
        }
        for (axis, lane) in affine.lanes.iter().enumerate() {
            let part = layout.and_then(|layout| self.threads.parts.get(&(layout.clone(), axis)).copied().flatten());
            let scale = lane.wrapping_mul(bytes);
            if let Some(part) = part.filter(|_| scale != 0) {
                let term = self.reg(Class::B64);
                match u32::try_from(scale) {
                    Ok(scale) => asm!(self, "mul.wide.u32 {term}, {part}, {scale}"),
                    Err(_) => {
                        let wide = self.reg(Class::B64);
                        asm!(self, "cvt.u64.u32 {wide}, {part}");
                        asm!(self, "mul.lo.s64 {term}, {wide}, {scale}");
                    }
                }
                sum = Some(self.sum(sum, term));
            }
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
        let [at_least, at_most] = [0; 2].map(|_| self.reg(Class::B64));
        let mut limit = self.address(None, None, &test.limit, None, 1);
        if test.limit.constant != 0 {
            let sum = self.reg(Class::B64);
            asm!(self, "add.s64 {sum}, {limit}, {}", test.limit.constant);
            limit = sum;
        }
        // Beyond the positions on either side, every number is as good as the next.
        asm!(self, "max.s64 {at_least}, {limit}, -1");
        asm!(self, "min.s64 {at_most}, {at_least}, {}", i32::MAX);
        let mut room = self.reg(Class::B32);
        asm!(self, "cvt.u32.u64 {room}, {at_most}");
        for (axis, lane) in test.position.lanes.iter().enumerate().filter(|(_, lane)| **lane != 0) {
            let part = layout.as_ref().and_then(|layout| self.threads.parts.get(&(layout.clone(), axis)).copied().flatten());
            let Some(mut part) = part else { continue };
            if *lane != 1 {
                let scaled = self.reg(Class::B32);
                asm!(self, "mul.lo.s32 {scaled}, {part}, {lane}");
                part = scaled;
            }
            let rest = self.reg(Class::B32);
            asm!(self, "sub.s32 {rest}, {room}, {part}");
            room = rest;
        }
        let constants = (0..self.lane_count(result))
            .map(|register| test.position.constant + Self::register_part(layout.as_ref(), &test.position, register));
        let tests = Tests { all: vec![(test.op.swapped(), room)], constants: constants.collect() };
        self.sources[result] = Some(Source::Tests(tests));
    }

    /// Do all the tests hold for that element?
    pub(super) fn test(&mut self, tests: &Tests, register: usize) -> Reg {
        let constant = tests.constants[register];
        let mut before: Option<Reg> = None;
        for (op, room) in &tests.all {
            let holds = self.reg(Class::Pred);
            match before {
                Some(before) => asm!(self, "setp.{}.and.s32 {holds}, {room}, {constant}, {before}", op.name()),
                None => asm!(self, "setp.{}.s32 {holds}, {room}, {constant}", op.name()),
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
        let thread = self.address(None, None, affine, layout.as_ref(), 1);
        let parts = (0..self.lane_count(value)).map(|register| {
            let constant = affine.constant.wrapping_add(Self::register_part(layout.as_ref(), affine, register));
            if constant == 0 {
                return thread;
            }
            let index = self.reg(Class::B64);
            asm!(self, "add.s64 {index}, {thread}, {constant}");
            index
        });
        parts.collect()
    }
}
