//! Index and address computation: each index is a sum `uniform + thread part + register part`.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::affine::Affine;
use crate::analysis::polynomial::{Polynomial, Product};
use crate::ir::Value;
use crate::layout::{Coordinate, Layout, Level};

use crate::backend::ptx::text::registers::{Class, Reg, asm};
use crate::backend::ptx::{Emitter, Lanes};

/// The key of an address: the base, the terms of the offset that are the same for every thread, the strides, and the layout that
/// distributes the elements over threads.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct AddressKey {
    base: Option<Value>,
    terms: Vec<(Product, i64)>,
    strides: Vec<Polynomial>,
    layout: Option<Layout>,
    bytes: i64,
}

impl AddressKey {
    pub(super) fn new(base: Option<Value>, affine: &Affine, layout: Option<&Layout>, bytes: i64) -> AddressKey {
        AddressKey { base, terms: affine.start.terms.clone(), strides: affine.strides.clone(), layout: layout.cloned(), bytes }
    }

    /// Is it the key of an address that differs from another one only by terms that are the same for every thread?
    pub(super) fn differs_in_terms(&self, other: &AddressKey) -> bool {
        self.base == other.base && self.strides == other.strides && self.layout == other.layout && self.bytes == other.bytes
    }
}

/// The thread's part of an index along an axis, by layout; and the predicates of the threads that store elements held by several threads.
#[derive(Default)]
pub(super) struct ThreadParts {
    pub(super) parts: FxHashMap<(Layout, usize), Option<Reg>>,
    owner: FxHashMap<Option<Layout>, Option<Reg>>,
    /// The register with the thread's index in its CTA.
    thread: Option<Reg>,
    /// The register with the CTA's rank in its cluster, if there are several CTAs.
    block: Option<Reg>,
}

impl ThreadParts {
    /// The CTA's rank in its cluster.
    pub(super) fn block(&self) -> Reg {
        self.block.expect("there are several CTAs")
    }

    /// The thread's index in its CTA.
    pub(super) fn number(&self) -> Reg {
        self.thread.expect("what depends on the thread only is emitted first")
    }
}

impl Emitter<'_> {
    /// Emits the values that depend only on the thread, at the top of the kernel, where they dominate every use.
    pub(super) fn thread_parts(&mut self) {
        let thread = self.reg(Class::B32);
        asm!(self, "mov.u32 {thread}, %tid.x");
        self.threads.thread = Some(thread);
        // Threads are numbered across the CTAs of a program: the threads of its first CTA, then those of the second.
        let mut of_program = thread;
        if self.schedule.num_ctas > 1 {
            let block = self.reg(Class::B32);
            of_program = self.reg(Class::B32);
            asm!(self, "mov.u32 {block}, %cluster_ctarank");
            asm!(self, "mad.lo.s32 {of_program}, {block}, {}, {thread}", self.schedule.threads());
            self.threads.block = Some(block);
        }
        let (mut layouts, mut seen): (Vec<Layout>, FxHashSet<&Layout>) = (Vec::new(), FxHashSet::default());
        for inst in self.func.all_insts() {
            let of_results = self.func.inst(inst).results.iter().filter_map(|result| self.func.layouts[*result].as_ref());
            layouts.extend(of_results.filter(|layout| seen.insert(layout)).cloned());
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

    /// The predicate of the thread whose `free` bits are all zero; `None` if this holds for every thread.
    pub(super) fn owner(&mut self, free: u32, thread: Reg) -> Option<Reg> {
        if free == 0 {
            return None;
        }
        let (bits, owns) = (self.reg(Class::B32), self.reg(Class::Pred));
        asm!(self, "and.b32 {bits}, {thread}, {free}");
        asm!(self, "setp.eq.s32 {owns}, {bits}, 0");
        Some(owns)
    }

    /// The thread's part along an axis: shifts each run of thread bits to its run of index bits.
    fn thread_part(&mut self, layout: &Layout, axis: usize, thread: Reg) -> Option<Reg> {
        let bases: Vec<u32> = [Level::Lane, Level::Warp, Level::Block]
            .into_iter()
            .flat_map(|level| (0..layout.bits(level)).map(move |bit| layout.basis_along(level, bit, axis)))
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

    /// `((thread >> from) & (2^length - 1)) << to`, without the operations that have no effect.
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

    /// The predicate under which this thread stores elements of that layout. If several threads hold an element, one of them stores it.
    pub(super) fn owner_of(&self, layout: Option<&Layout>) -> Option<Reg> {
        self.threads.owner.get(&layout.cloned()).copied().flatten()
    }

    /// Like [`Emitter::owner_of`], among the threads of this CTA, because each CTA has its own shared memory.
    pub(super) fn owner_in_cta(&mut self, layout: &Layout) -> Option<Reg> {
        let free = layout.free_bits();
        if free.block == 0 {
            return self.owner_of(Some(layout));
        }
        let thread = self.thread();
        self.owner(free.lane | free.warp << 5, thread)
    }

    /// The offset that register `register` adds to an index, as far as the strides are constants. It is the same for every thread.
    pub(super) fn register_part(layout: Option<&Layout>, affine: &Affine, register: usize) -> i64 {
        let Some(layout) = layout else { return 0 };
        let element = layout.flat_index(Coordinate { register: register as u32, ..Coordinate::default() });
        let mut part = 0i64;
        for (axis, stride) in affine.strides.iter().enumerate() {
            if let Some(stride) = stride.as_constant().filter(|stride| *stride != 0) {
                part = part.wrapping_add(i64::from(layout.index_along(axis, element)).wrapping_mul(stride));
            }
        }
        part
    }

    /// `base + bytes * (uniform + thread part)`, computed once per region and shared by all accesses. The caller adds the constants.
    pub(super) fn address(
        &mut self,
        base: Option<Reg>,
        base_value: Option<Value>,
        affine: &Affine,
        layout: Option<&Layout>,
        bytes: i64,
    ) -> Reg {
        let key = AddressKey::new(base_value, affine, layout, bytes);
        if let Some(known) = self.addresses.iter().rev().find_map(|scope| scope.get(&key)) {
            return *known;
        }
        let mut sum = base;
        let is_subtracted = |(_, coefficient): &&(Product, i64)| coefficient.wrapping_mul(bytes) == -1;
        for (factors, coefficient) in affine.start.terms.iter().filter(|term| !is_subtracted(term)) {
            let product = self.product(factors);
            let term = self.scaled(product, coefficient.wrapping_mul(bytes));
            sum = Some(self.sum(sum, term));
        }
        for (factors, _) in affine.start.terms.iter().filter(is_subtracted) {
            let (product, difference) = (self.product(factors), self.reg(Class::B64));
            match sum {
                Some(sum) => asm!(self, "sub.s64 {difference}, {sum}, {product}"),
                None => asm!(self, "neg.s64 {difference}, {product}"),
            }
            sum = Some(difference);
        }
        for (axis, lane) in affine.strides.iter().enumerate() {
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

    /// The addresses of the elements of a thread, and the constant offset of each. There is one address per element if a stride is an
    /// argument, and otherwise one for all.
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
        let is_known = affine.strides.iter().all(|stride| stride.as_constant().is_some());
        let addresses = match layout.filter(|_| !is_known) {
            Some(layout) => self.stepping(address, affine, layout, count, bytes),
            None => vec![address],
        };
        (addresses, (0..count).map(constant).collect())
    }

    /// The addresses of a thread's elements, as far as they differ by strides that are arguments. Each address is computed from an earlier
    /// one, and elements with equal indices along those axes share one address.
    fn stepping(&mut self, first: Reg, affine: &Affine, layout: &Layout, count: usize, bytes: i64) -> Vec<Reg> {
        let axes: Vec<usize> = (0..affine.strides.len()).filter(|axis| affine.strides[*axis].as_constant().is_none()).collect();
        let indices: Vec<Vec<u32>> = (0..count)
            .map(|register| {
                let element = layout.flat_index(Coordinate { register: register as u32, ..Coordinate::default() });
                axes.iter().map(|axis| layout.index_along(*axis, element)).collect()
            })
            .collect();
        let mut addresses = vec![first];
        for register in 1..count {
            let address = match indices[..register].iter().position(|index| *index == indices[register]) {
                Some(same) => addresses[same],
                None => {
                    // Start from the element that differs only in the highest bit.
                    let near = register ^ 1 << register.ilog2();
                    let mut address = addresses[near];
                    for (index, axis) in axes.iter().enumerate() {
                        let distance = i64::from(indices[register][index]) - i64::from(indices[near][index]);
                        if distance != 0 {
                            let step = self.step(&affine.strides[*axis], distance.wrapping_mul(bytes));
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

    /// `factor * lane`, computed once per region.
    pub(super) fn step(&mut self, lane: &Polynomial, factor: i64) -> Reg {
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

    /// Materialises a tile of indices in registers.
    pub(super) fn index_tile(&mut self, result: Value, affine: &Affine) {
        let lanes = Lanes::Each(self.index_registers(result, affine));
        self.define(result, lanes);
    }

    /// The indices of a tile or of a scalar in registers, one for each element that the thread holds.
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
