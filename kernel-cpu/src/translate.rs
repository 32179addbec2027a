//! Translation to instructions: elementwise ops and shape ops.
//!
//! Every value gets a slot. Scalars, argument words and constants have permanent slots at the front of the scratch; [`super::allocate`]
//! assigns those of tiles. A tile whose elements are all equal is stored as one chunk of elements. `bitcast`, `expand_dims` and similar ops
//! need no instruction: their result shares the operand's slot.

use std::collections::HashMap;

use crate::affine;
use crate::allocate::{self, Lifetime};
use crate::code::{Affine, CHUNK, Code, Condition, Instr, Label, Linear, PENDING, Slot, Walk};
use crate::conflicts::Decider;
use crate::forms::{self, Forms};
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{ConstExpr, Function, Inst, Op, Region, SideTable, Type, Value, rewrite};
use kernel_lang::scalar::Scalar;
use kernel_lang::scalar::lanes::{self, Lanes};

/// Where a value is stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Storage {
    pub(super) slot: Slot,
    /// Whether the slot is one chunk of elements that represents the whole tile.
    pub(super) uniform: bool,
}

/// A value as a function of an element's index.
#[derive(Clone, Debug)]
pub(super) enum Symbol {
    Affine(Affine),
    Mask(Vec<Condition>),
}

pub(super) struct Translator<'a> {
    pub(super) func: &'a Function,
    pub(super) forms: Forms,
    pub(super) instrs: Vec<Instr>,
    pub(super) loops: Vec<(Label, Label)>,
    pub(super) symbols: SideTable<Value, Option<Symbol>>,
    storage: SideTable<Value, Option<Storage>>,
    /// The word of each pointer's address, an argument or a scalar. The next word is the length.
    pub(super) words: SideTable<Value, usize>,
    front: Vec<u8>,
    tiles: Vec<Lifetime>,
    /// The tiles to which the addresses in view slots may point.
    pub(super) views: HashMap<u32, Slot>,
    pub(super) uses: Vec<u32>,
    /// The number of each access in the order of the kernel's text.
    pub(super) numbers: SideTable<Inst, u32>,
    /// The last instruction to which a jump leads.
    pub(super) landed: Label,
    /// Inside a region that combines elements: the number of pairs that each of its scalars represents.
    pub(super) lane_count: Option<usize>,
}

/// The slot of the program index or of the grid's extent along an axis, after `words` argument words.
pub(super) fn grid_slot(words: usize, num_programs: bool, axis: usize) -> Slot {
    Slot((8 * (words + 3 * usize::from(num_programs) + axis)) as u32)
}

/// Translates a kernel. None if its tiles do not fit the largest scratch.
pub(super) fn translate(func: &Function) -> Option<Code> {
    let mut cx = Translator {
        func,
        forms: forms::compute(func),
        instrs: Vec::new(),
        loops: Vec::new(),
        symbols: SideTable::new(),
        storage: SideTable::new(),
        words: SideTable::new(),
        front: Vec::new(),
        tiles: Vec::new(),
        views: HashMap::new(),
        uses: rewrite::use_counts(func),
        numbers: SideTable::new(),
        landed: 0,
        lane_count: None,
    };
    let words = cx.params();
    let (decider, numbers) = Decider::of(func, &cx.words);
    cx.numbers = numbers;
    cx.region(func.body);
    let Translator { mut instrs, loops, front, mut tiles, views, .. } = cx;
    let scratch_bytes = allocate::allocate(&mut instrs, &mut tiles, &loops, &views, front.len())?;
    Some(Code { instrs, words, constants: front, scratch_bytes, file_names: func.files.clone(), decider })
}

impl Translator<'_> {
    fn params(&mut self) -> usize {
        let mut words = 0;
        for param in &self.func.params {
            let ty = self.func.ty(param.value);
            self.words[param.value] = words;
            if !ty.is_pointer() {
                self.set_storage(param.value, argument(words, ty.dtype()), false);
            }
            words += if ty.is_pointer() { 2 } else { 1 };
        }
        self.front = vec![0; 8 * (words + 6)];
        words
    }

    pub(super) fn region(&mut self, region: Region) {
        let func = self.func;
        func.region(region).insts.iter().for_each(|inst| self.inst(*inst));
    }

    fn inst(&mut self, inst: Inst) {
        let func = self.func;
        let data = func.inst(inst);
        if let [result] = data.results[..]
            && self.forms.is_symbolic(result)
            && !matches!(data.op, Op::For { .. })
        {
            return self.symbolic(&data.op, result);
        }
        match &data.op {
            Op::Unary { .. }
            | Op::Binary { .. }
            | Op::Compare { .. }
            | Op::Fma { .. }
            | Op::Select { .. }
            | Op::Cast { .. }
            | Op::ReducePio2 { .. } => self.elementwise(&data.op, &data.results),
            Op::Bitcast { x } | Op::ExpandDims { x, .. } | Op::Reshape { x } => self.stay(*x, data.results[0]),
            Op::Const { value } => self.constant(value, data.results[0]),
            Op::Broadcast { x } => self.broadcast(*x, data.results[0]),
            Op::ProgramId { axis } => self.grid_value(false, *axis, data.results[0]),
            Op::NumPrograms { axis } => self.grid_value(true, *axis, data.results[0]),
            Op::Address { base } => self.set_scalar(data.results[0], argument(self.words[*base], Dtype::I64)),
            Op::Length { base } => self.set_scalar(data.results[0], argument(self.words[*base] + 1, Dtype::I64)),
            Op::Pointer { address } => self.pointer(*address, data.results[0]),
            Op::Load { .. } => self.load(inst),
            Op::Store { .. } => self.store(inst),
            Op::Atomic { .. } => self.atomic(inst),
            // One thread runs all elements of a program, and a launch on the CPU begins when the previous one has ended.
            Op::Barrier {} | Op::GdcWait {} | Op::GdcLaunchDependents {} => {}
            Op::LaunchValue { compute } => self.always(*compute, &data.results),
            Op::If { cond, then_region, else_region, .. } => self.branch(*cond, [*then_region, *else_region], &data.results),
            Op::For { lower, upper, step, init, body, .. } => self.count([*lower, *upper, *step], init, *body, &data.results),
            Op::While { init, test, body } => self.repeat(init, *test, *body, &data.results),
            Op::Return {} => self.instrs.push(Instr::Return),
            // The op that contains the region takes its yielded values.
            Op::Yield { .. } | Op::Condition { .. } => {}
            Op::Assert { cond, message, .. } => {
                let cond = self.storage(*cond).slot;
                self.instrs.push(Instr::Assert { cond, message: message.as_str().into(), loc: data.loc });
            }
            // A checked run on the CPU checks every access itself.
            Op::Report { .. } => {}
            Op::Arange { .. } => unreachable!("`arange` is affine"),
            Op::Permute { x, order } => self.permute(*x, order, data.results[0]),
            Op::Flip { x, axis } => self.flip(*x, *axis as usize, data.results[0]),
            Op::Reduce { inputs, axis, combine } => self.reduce(inputs, *axis, *combine, &data.results),
            Op::Scan { inputs, axis, reverse, combine } => self.scan(inputs, (*axis, *reverse), *combine, &data.results),
            Op::Gather { src, index, axis } => self.gather(*src, *index, *axis as usize, data.results[0]),
            Op::Dot { a, b, acc, precision } => self.dot([*a, *b, *acc], *precision, data.results[0]),
            Op::Histogram { x, mask, .. } => self.histogram(*x, *mask, data.results[0]),
            Op::Sort { x, descending, .. } => self.sort(*x, *descending, data.results[0]),
            Op::Butterfly { x, axis, bit } => self.butterfly(*x, *axis as usize, *bit, data.results[0]),
            Op::Convert { .. } | Op::IssueLoads { .. } | Op::IfAny { .. } | Op::AnyInWarp { .. } | Op::SyncThreads { .. } => {
                unreachable!("a kernel for the CPU has no layouts")
            }
            Op::InlinePtx { .. } => unreachable!("a kernel for the CPU computes what the text stands for"),
            Op::View { .. } => unreachable!("a kernel for the CPU accesses elements as it names them"),
            Op::AsyncBuffer { .. } | Op::AsyncCopy { .. } | Op::AsyncCommitGroup {} | Op::AsyncWait { .. } | Op::LocalLoad { .. } => {
                unreachable!("a kernel for the CPU loads where it stands")
            }
            Op::Worker {}
            | Op::NumWorkers {}
            | Op::RunsIf { .. }
            | Op::Roles { .. }
            | Op::Ring { .. }
            | Op::RingAcquire { .. }
            | Op::CopyBlock { .. }
            | Op::StoreBlock { .. }
            | Op::RingWait { .. }
            | Op::ReadBlock { .. }
            | Op::RingRelease { .. }
            | Op::RingReleasePrevious { .. }
            | Op::WarpgroupWait { .. }
            | Op::WarpgroupDot { .. } => unreachable!("a kernel for the CPU has no roles"),
            Op::StaticIf { .. } | Op::StaticFor { .. } | Op::StaticAssert { .. } | Op::StaticPrint { .. } | Op::Print { .. } => {
                unreachable!("a specialised kernel has no `{}`", data.op.name())
            }
        }
    }

    /// An op that computes each element from the operands' elements at the same index.
    fn elementwise(&mut self, op: &Op, results: &[Value]) {
        let func = self.func;
        let dtype = |value: Value| func.ty(value).dtype();
        let table = "a verified op is in its domain";
        match op {
            Op::Unary { op, x } => self.lanes(lanes::unary(*op, dtype(*x)).expect(table), results[0], &[*x]),
            Op::Binary { op, lhs, rhs } => self.lanes(lanes::binary(*op, dtype(*lhs)).expect(table), results[0], &[*lhs, *rhs]),
            Op::Compare { op, lhs, rhs } => match lanes::compare(*op, dtype(*lhs)) {
                (lanes, false) => self.lanes(lanes, results[0], &[*lhs, *rhs]),
                (lanes, true) => self.lanes(lanes, results[0], &[*rhs, *lhs]),
            },
            Op::Fma { a, b, c } => self.lanes(lanes::fma(dtype(*a)).expect(table), results[0], &[*a, *b, *c]),
            Op::Select { cond, on_true, on_false } => {
                self.lanes(lanes::select(dtype(*on_true)), results[0], &[*cond, *on_true, *on_false]);
            }
            Op::Cast { x } if dtype(*x) == dtype(results[0]) => self.stay(*x, results[0]),
            Op::Cast { x } => self.lanes(lanes::cast(dtype(*x), dtype(results[0])), results[0], &[*x]),
            Op::ReducePio2 { x } => {
                for (lanes, result) in lanes::reduce_pio2().into_iter().zip(results) {
                    self.lanes(lanes, *result, &[*x]);
                }
            }
            other => unreachable!("`{}` reads other elements", other.name()),
        }
    }

    /// Lets the result share the operand's slot.
    fn stay(&mut self, x: Value, result: Value) {
        let Storage { slot, uniform } = self.storage(x);
        self.set_storage(result, slot, uniform);
    }

    fn grid_value(&mut self, num_programs: bool, axis: u32, result: Value) {
        let words = self.front_words();
        self.set_scalar(result, grid_slot(words, num_programs, axis as usize));
    }

    /// Sets a scalar to the one at `from`.
    fn set_scalar(&mut self, value: Value, from: Slot) {
        match self.lane_count {
            Some(_) => self.uniform(value, from),
            None => self.set_storage(value, from, false),
        }
    }

    /// The number of elements of the value.
    fn count_of(&self, value: Value) -> usize {
        self.lane_count.unwrap_or_else(|| self.func.ty(value).numel())
    }

    fn front_words(&self) -> usize {
        self.func.params.iter().map(|param| if self.func.ty(param.value).is_pointer() { 2 } else { 1 }).sum()
    }

    pub(super) fn storage(&self, value: Value) -> Storage {
        self.storage[value].expect("a verified op uses what is defined")
    }

    pub(super) fn set_storage(&mut self, value: Value, slot: Slot, uniform: bool) {
        self.storage[value] = Some(Storage { slot, uniform });
    }

    /// Allocates a tile of `bytes` bytes.
    pub(super) fn new_tile(&mut self, bytes: usize) -> Slot {
        self.tiles.push(Lifetime::new(bytes));
        Slot((self.tiles.len() - 1) as u32 | PENDING)
    }

    /// Allocates a scalar.
    pub(super) fn new_scalar(&mut self) -> Slot {
        self.front.extend([0; 8]);
        Slot((self.front.len() - 8) as u32)
    }

    /// Allocates a slot for a whole value of this type.
    pub(super) fn new_slot(&mut self, ty: &Type) -> Slot {
        if ty.is_scalar() { self.new_scalar() } else { self.new_tile(ty.numel() * ty.dtype().bytes()) }
    }

    /// Allocates a slot for this value.
    pub(super) fn allocate_for(&mut self, value: Value) -> Slot {
        let slot = self.new_slot(self.func.ty(value));
        self.set_storage(value, slot, false);
        slot
    }

    /// The slot of the whole value; a uniform tile is expanded first.
    pub(super) fn full(&mut self, value: Value) -> Slot {
        let Storage { slot, uniform } = self.storage(value);
        if !uniform {
            return slot;
        }
        let to = self.new_slot(self.func.ty(value));
        self.copy(self.func.ty(value), to, Storage { slot, uniform });
        to
    }

    /// Copies a whole value.
    pub(super) fn copy(&mut self, ty: &Type, to: Slot, from: Storage) {
        let (width, count) = (ty.dtype().bytes(), ty.numel());
        self.instrs.push(match from {
            Storage { slot, uniform: true } => Instr::Fill { to, from: slot, width, count },
            Storage { slot, uniform: false } => Instr::Copy { to, from: slot, bytes: width * count },
        });
    }

    /// An elementwise op; its result is uniform if its operands are.
    fn lanes(&mut self, lanes: Lanes, result: Value, operands: &[Value]) {
        let ty = self.func.ty(result);
        let sources: Vec<Storage> = operands.iter().map(|operand| self.storage(*operand)).collect();
        let is_tile = ty.is_tile() || self.lane_count.is_some();
        let uniform = is_tile && sources.iter().all(|source| source.uniform);
        let count = if uniform { self.count_of(result).min(CHUNK) } else { self.count_of(result) };
        let slot = if !is_tile { self.new_scalar() } else { self.new_tile(count * ty.dtype().bytes()) };
        let chunked = !uniform && sources.iter().any(|source| source.uniform);
        // Missing operands repeat the first one and are not read.
        let operand = |index: usize| sources.get(index).map_or(sources[0].slot, |source| source.slot);
        let stride = |index: usize| {
            let width = operands.get(index).map_or(0, |operand| self.func.ty(*operand).dtype().bytes());
            if sources.get(index).is_some_and(|source| source.uniform) { 0 } else { width as u32 }
        };
        let strides = [ty.dtype().bytes() as u32, stride(0), stride(1), stride(2)];
        self.instrs.push(Instr::Lanes { lanes, count, result: slot, operands: [operand(0), operand(1), operand(2)], strides, chunked });
        self.set_storage(result, slot, uniform);
    }

    /// An op on two `i64` scalars.
    pub(super) fn scalar_lanes(&mut self, lanes: Lanes, operands: [Slot; 2]) -> Slot {
        let result = self.new_scalar();
        let [a, b] = operands;
        self.instrs.push(Instr::Lanes { lanes, count: 1, result, operands: [a, b, b], strides: [8; 4], chunked: false });
        result
    }

    fn constant(&mut self, value: &ConstExpr, result: Value) {
        let ty = self.func.ty(result);
        let scalar = Scalar::from_const(value, ty.dtype()).expect("a verified constant fits its type");
        let slot = self.front_constant(scalar, self.count_of(result).min(CHUNK));
        self.set_storage(result, slot, ty.is_tile() || self.lane_count.is_some());
    }

    /// Writes `count` equal elements to the front of the scratch.
    pub(super) fn front_constant(&mut self, scalar: Scalar, count: usize) -> Slot {
        let width = scalar.dtype().bytes();
        let begin = self.front.len().next_multiple_of(if count > 1 { 64 } else { 8 });
        self.front.resize(begin, 0);
        let bytes = scalar.bits().to_le_bytes();
        (0..count).for_each(|_| self.front.extend(&bytes[..width]));
        self.front.resize(self.front.len().next_multiple_of(8), 0);
        if cfg!(target_endian = "big") {
            self.front[begin..begin + width * count].chunks_exact_mut(width).for_each(<[u8]>::reverse);
        }
        Slot(begin as u32)
    }

    fn broadcast(&mut self, x: Value, result: Value) {
        let (from, ty) = (self.func.ty(x), self.func.ty(result));
        let source = self.storage(x);
        let width = ty.dtype().bytes();
        if from.extents() == ty.extents() || source.uniform && from.numel() >= CHUNK {
            return self.set_storage(result, source.slot, source.uniform);
        }
        if source.uniform || from.is_scalar() {
            return self.uniform(result, source.slot);
        }
        let to = self.allocate_for(result);
        let mut from_walk = Walk::rows(&from.extents());
        from_walk.strides.iter_mut().zip(from.extents()).filter(|(_, extent)| *extent == 1).for_each(|(stride, _)| *stride = 0);
        let extents = ty.extents();
        self.instrs.push(Instr::Rearrange { to, to_walk: Walk::rows(&extents), from: source.slot, from_walk, width, extents });
    }

    fn permute(&mut self, x: Value, order: &[u32], result: Value) {
        let source = self.storage(x);
        let extents = self.func.ty(result).extents();
        if source.uniform || extents.is_empty() {
            return self.set_storage(result, source.slot, source.uniform);
        }
        let rows = Walk::rows(&self.func.ty(x).extents());
        let from_walk = Walk { first: 0, strides: order.iter().map(|axis| rows.strides[*axis as usize]).collect() };
        let to = self.allocate_for(result);
        let width = self.func.ty(x).dtype().bytes();
        self.instrs.push(Instr::Rearrange { to, to_walk: Walk::rows(&extents), from: source.slot, from_walk, width, extents });
    }

    fn flip(&mut self, x: Value, axis: usize, result: Value) {
        let Storage { slot, uniform } = self.storage(x);
        if uniform {
            return self.set_storage(result, slot, true);
        }
        let extents = self.func.ty(x).extents();
        let to_walk = Walk::rows(&extents);
        let mut from_walk = to_walk.clone();
        from_walk.first = (extents[axis] - 1) * from_walk.strides[axis] as usize;
        from_walk.strides[axis] *= -1;
        let width = self.func.ty(x).dtype().bytes();
        let to = self.allocate_for(result);
        self.instrs.push(Instr::Rearrange { to, to_walk, from: slot, from_walk, width, extents });
    }

    /// Sets a value to the uniform tile of a scalar.
    pub(super) fn uniform(&mut self, value: Value, from: Slot) {
        let ty = self.func.ty(value);
        let (width, count) = (ty.dtype().bytes(), self.count_of(value).min(CHUNK));
        let to = self.new_tile(width * count);
        self.instrs.push(Instr::Fill { to, from, width, count });
        self.set_storage(value, to, true);
    }

    /// An `i64` scalar, as a constant if possible.
    pub(super) fn linear(&self, value: Value) -> Linear {
        affine::constant(self.func, value).map_or_else(|| Linear::Slot(self.storage(value).slot), Linear::Const)
    }

    /// Appends a jump whose target is not known yet.
    pub(super) fn jump(&mut self, instr: Instr) -> Label {
        self.instrs.push(instr);
        self.instrs.len() - 1
    }

    /// The label of the next instruction, as a target of jumps.
    pub(super) fn here(&mut self) -> Label {
        self.landed = self.instrs.len();
        self.landed
    }

    /// Sets the target of the jump at `at` to the next instruction.
    pub(super) fn land(&mut self, at: Label) {
        let here = self.here();
        match &mut self.instrs[at] {
            Instr::Jump(target) | Instr::JumpUnless(_, target) | Instr::ForBegin { exit: target, .. } => {
                *target = here;
            }
            other => unreachable!("{other:?} is no jump"),
        }
    }
}

/// The scalar in an argument word: its low bytes.
fn argument(word: usize, dtype: Dtype) -> Slot {
    let skipped = if cfg!(target_endian = "big") { 8 - dtype.bytes() } else { 0 };
    Slot((8 * word + skipped) as u32)
}
