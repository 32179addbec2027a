//! Loads and stores: vectorised accesses, masks and cache modifiers.

pub(crate) mod async_buffer;
pub(crate) mod atomic;
pub(crate) mod checked_report;
pub(crate) mod common_buffer;
mod partial_runs;
pub(crate) mod policies;
pub(crate) mod store_block;
mod whole_warps;
pub(crate) mod width;

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::analysis::affine::{Affine, AffineFacts};
use crate::dtype::Dtype;
use crate::ir::{BinaryOp, Cache, Evict, Function, Op, Reader, Type, UNKNOWN_LENGTH, Value};
use crate::layout::Layout;

use crate::backend::ptx::text::registers::{Class, Reg, asm};
use crate::backend::ptx::{Emitter, Lanes, memory_type};

use partial_runs::{LoadedRun, Partial, StoredRuns};

/// The addresses of the elements of an access.
pub(crate) struct Access {
    /// The address of element `register` is `address[register or 0] + constant[register]`.
    addresses: Vec<Reg>,
    constants: Vec<i64>,
    /// The number of adjacent registers that one instruction moves.
    pub(crate) group: usize,
}

impl Emitter<'_> {
    /// A pointer that was loaded from memory or computed.
    pub(crate) fn pointer(&mut self, address: Value, result: Value) {
        let [pointer, length] = [0; 2].map(|_| self.reg(Class::B64));
        asm!(self, "cvta.to.global.u64 {pointer}, {}", self.scalar(address));
        asm!(self, "mov.b64 {length}, {UNKNOWN_LENGTH}");
        self.pointers[result] = Some((pointer, length));
    }

    /// The same address; the length in wider elements.
    pub(crate) fn view(&mut self, base: Value, result: Value) {
        let (pointer, narrow) = self.pointers[base].expect("a pointer is a parameter, or was made before");
        let elements = self.func.ty(result).dtype().bytes() / self.func.ty(base).dtype().bytes();
        let length = self.reg(Class::B64);
        asm!(self, "shr.u64 {length}, {narrow}, {}", elements.trailing_zeros());
        self.pointers[result] = Some((pointer, length));
    }

    pub(crate) fn load(&mut self, op: &Op, result: Value) {
        let &Op::Load { base, offset, mask, other, cache, evict, volatile, align, partial, shifted, reader, .. } = op else { return };
        let dtype = self.func.ty(base).dtype();
        let access = self.access(base, offset, align, dtype);
        let is_constant = matches!(self.func.ty(base), Type::Pointer { mutable: false, .. });
        let instruction = self.load_instruction(cache, evict, volatile, is_constant);
        let (mask, other) = (mask.map(|mask| self.source(mask)), other.map(|other| self.lanes(other)));
        // Another program, or a thread of this program that is ahead, may write concurrently. The owner reads, so that all threads get the
        // same value.
        let held = (reader != Reader::Each).then(|| self.held(offset));
        let (owner, copies) = held.as_ref().map_or((None, 0), |held| (held.owner, held.copies));
        let partial = (partial && mask.is_some() && access.group > 1).then(|| Partial::of(shifted));
        let (mut regs, mut runs) = (Vec::new(), Vec::new());
        let firsts = (0..self.lane_count(result)).step_by(access.group).filter(|first| *first as u32 & copies == 0);
        // The masked accesses convert each loaded bool to a predicate, which the others would skip.
        let may_be_whole = held.is_none() && dtype != Dtype::Bool;
        let mut whole = Vec::new();
        let end = self.in_whole_warps(mask.as_ref().filter(|_| may_be_whole), &access, firsts.clone(), |emitter, first| {
            let address = emitter.address_operand(&access, first);
            whole.push(emitter.load_words(&instruction, &address, dtype, None, &[None]));
        });
        for (number, first) in firsts.enumerate() {
            let own = mask.as_ref().map(|mask| match partial {
                Some(partial) => self.keeps_any(mask, first, access.group, partial),
                None => self.at(mask, first),
            });
            let pred = self.both(own, owner);
            let fill: Vec<Option<Reg>> =
                (first..first + access.group).map(|register| other.as_ref().map(|other| other.get(register))).collect();
            let address = self.address_operand(&access, first);
            let words = whole.get(number).cloned().unwrap_or_else(|| self.word_registers(dtype, access.group));
            self.load_into(&words, &instruction, &address, dtype, pred, &fill);
            if partial.is_some() {
                runs.push(LoadedRun { first, words, fill });
            } else {
                regs.extend(self.loaded_elements(&words, dtype, access.group));
            }
        }
        if let Some(end) = end {
            self.asm.define_label(&end);
        }
        if let (Some(mask), Some(partial)) = (&mask, partial) {
            self.fill_partial_runs(mask, dtype, &runs, partial);
            regs.extend(runs.iter().flat_map(|run| self.loaded_elements(&run.words, dtype, access.group)));
        }
        let lanes = match held {
            Some(held) if reader == Reader::Broadcast => self.broadcast_from_owner(&held, dtype, &regs, false),
            Some(held) => held.with_copies(&regs),
            None if self.layout(result).is_some() => Lanes::Each(regs),
            None => Lanes::Splat(regs[0]),
        };
        self.define(result, lanes);
    }

    /// Ends the thread if an element has a bit that is set, and the grid has no program. No thread ends, but the driver's compiler does not know
    /// that a grid has programs, so it must issue the loads in front of the exit.
    pub(crate) fn issue_loads(&mut self, loads: &[Value]) {
        let mut all: Option<Reg> = None;
        for &load in loads {
            let Some(&Op::Load { base, offset, align, .. }) = self.func.def_op(load) else { continue };
            let dtype = self.func.ty(base).dtype();
            let group = self.facts.get(self.func, offset).map_or(1, |affine| group(self.layout(offset), &affine, align, dtype));
            let lanes = self.lanes(load);
            let loaded_elements_word = if Class::of(dtype) == Class::B16 { group.min(2) } else { 1 };
            for first in (0..self.lane_count(load)).step_by(group) {
                let elements: Vec<Reg> = (first..first + loaded_elements_word).map(|register| lanes.get(register)).collect();
                let bits = self.words_of(dtype, &elements)[0];
                all = Some(self.or(all, bits));
            }
        }
        let Some(all) = all else { return };
        let (programs, [is_empty, ends]) = (self.reg(Class::B32), [0; 2].map(|_| self.reg(Class::Pred)));
        asm!(self, "mov.u32 {programs}, %nctaid.x");
        asm!(self, "setp.eq.u32 {is_empty}, {programs}, 0");
        asm!(self, "setp.ne.and.u32 {ends}, {all}, 0, {is_empty}");
        asm!(self, "@{ends} exit");
    }

    pub(crate) fn store(&mut self, op: &Op) {
        let &Op::Store { base, offset, value, mask, cache, evict, align, partial, shifted, .. } = op else { return };
        let dtype = self.func.ty(base).dtype();
        let access = self.access(base, offset, align, dtype);
        let instruction = self.store_instruction(cache, evict);
        let layout = self.layout(offset).cloned();
        let owner = self.owner_of(layout.as_ref());
        let copies = layout.as_ref().map_or(0, |layout| layout.free_bits().register);
        let (mask, values) = (mask.map(|mask| self.source(mask)), self.lanes(value));
        let partial = (partial && access.group > 1).then(|| Partial::of(shifted));
        let runs = (0..self.lane_count(offset)).step_by(access.group).filter(|first| *first as u32 & copies == 0);
        let end = self.in_whole_warps(mask.as_ref().filter(|_| owner.is_none()), &access, runs.clone(), |emitter, first| {
            let address = emitter.address_operand(&access, first);
            emitter.store_group(&instruction, &address, dtype, None, &[values.get(first)]);
        });
        for first in runs.clone() {
            let own = mask.as_ref().map(|mask| match partial {
                Some(partial) => self.keeps_all(mask, first, access.group, partial),
                None => self.at(mask, first),
            });
            let pred = self.both(own, owner);
            let regs: Vec<Reg> = (first..first + access.group).map(|register| values.get(register)).collect();
            let address = self.address_operand(&access, first);
            self.store_group(&instruction, &address, dtype, pred, &regs);
        }
        if let Some(end) = end {
            self.asm.define_label(&end);
        }
        if let (Some(mask), Some(partial)) = (&mask, partial) {
            let stored = StoredRuns { access: &access, instruction: &instruction, dtype, values: &values, owner, partial };
            self.store_partial_runs(mask, &stored, runs);
        }
    }

    /// Records that the mask of a wide access is equal for all elements that one instruction moves. An `async_copy` records nothing:
    /// for it, this holds only in iterations that exist, so the ops around it cannot rely on it.
    ///
    /// The previous entry of the mask is appended to `outside`.
    pub(crate) fn note_run(&mut self, op: &Op, outside: &mut Vec<(Value, Option<usize>)>) {
        let (Op::Load { base, offset, mask: Some(mask), align, partial: false, .. }
        | Op::Store { base, offset, mask: Some(mask), align, partial: false, .. }
        | Op::Atomic { base, offset, mask: Some(mask), align, .. }) = *op
        else {
            return;
        };
        let steps = self.facts.get(self.func, offset).or_else(|| Some(first_and_steps(self.func, &mut self.facts, offset)?.1));
        if let Some(steps) = steps {
            let run = group(self.layout(offset), &steps, align, self.func.ty(base).dtype());
            let known = self.runs.get(&mask).copied();
            outside.push((mask, known));
            self.runs.insert(mask, run.max(known.unwrap_or(1)));
        }
    }

    pub(crate) fn access(&mut self, base: Value, offset: Value, align: u32, dtype: Dtype) -> Access {
        let bytes = dtype.bytes() as i64;
        let (base_reg, _) = self.pointers[base].expect("a pointer is a parameter, or was made before");
        let layout = self.layout(offset).cloned();
        let count = self.lane_count(offset);
        match self.facts.get(self.func, offset) {
            Some(affine) => {
                let (addresses, constants) = self.addresses(Some((base_reg, base)), &affine, layout.as_ref(), count, bytes);
                let group = group(layout.as_ref(), &affine, align, dtype);
                Access { addresses, constants, group }
            }
            None => {
                let Some((first, steps)) = first_and_steps(self.func, &mut self.facts, offset) else {
                    let offsets = self.lanes(offset);
                    let addresses = (0..count).map(|register| {
                        let (scaled, address) = (self.reg(Class::B64), self.reg(Class::B64));
                        asm!(self, "shl.b64 {scaled}, {}, {}", offsets.get(register), bytes.trailing_zeros());
                        asm!(self, "add.s64 {address}, {base_reg}, {scaled}");
                        address
                    });
                    return Access { addresses: addresses.collect(), constants: vec![0; count], group: 1 };
                };
                let (start, constants) = self.addresses(Some((base_reg, base)), &steps, layout.as_ref(), count, bytes);
                let is_narrow = self.func.ty(first).dtype() == Dtype::I32;
                let offsets = self.lanes(first);
                let mut known: FxHashMap<Reg, Reg> = FxHashMap::default();
                let mut addresses = Vec::new();
                for register in 0..count {
                    let offset = offsets.get(register);
                    let address = known.get(&offset).copied().unwrap_or_else(|| {
                        let (scaled, address) = (self.reg(Class::B64), self.reg(Class::B64));
                        if is_narrow {
                            asm!(self, "mul.wide.s32 {scaled}, {offset}, {bytes}");
                        } else {
                            asm!(self, "shl.b64 {scaled}, {offset}, {}", bytes.trailing_zeros());
                        }
                        asm!(self, "add.s64 {address}, {}, {scaled}", start[0]);
                        address
                    });
                    known.insert(offset, address);
                    addresses.push(address);
                }
                let group = group(layout.as_ref(), &steps, align, dtype);
                Access { addresses, constants, group }
            }
        }
    }

    /// `[address+constant]`; a constant that does not fit the instruction is added into a register.
    pub(crate) fn address_operand(&mut self, access: &Access, register: usize) -> String {
        let address = access.addresses[register.min(access.addresses.len() - 1)];
        match access.constants[register] {
            0 => format!("[{address}]"),
            constant if i32::try_from(constant).is_ok() => format!("[{address}+{constant}]"),
            constant => {
                let far = self.reg(Class::B64);
                asm!(self, "add.s64 {far}, {address}, {constant}");
                format!("[{far}]")
            }
        }
    }

    pub(crate) fn load_group(
        &mut self,
        instruction: &str,
        address: &str,
        dtype: Dtype,
        pred: Option<Reg>,
        fill: &[Option<Reg>],
    ) -> Vec<Reg> {
        let words = self.load_words(instruction, address, dtype, pred, fill);
        self.loaded_elements(&words, dtype, fill.len())
    }

    /// Loads elements as [`Emitter::loaded_elements`] finds them.
    fn load_words(&mut self, instruction: &str, address: &str, dtype: Dtype, pred: Option<Reg>, fill: &[Option<Reg>]) -> Vec<Reg> {
        let words = self.word_registers(dtype, fill.len());
        self.load_into(&words, instruction, address, dtype, pred, fill);
        words
    }

    /// The registers for elements that one instruction loads: for several in a word of 32 bits, or for one in each register.
    fn word_registers(&mut self, dtype: Dtype, group: usize) -> Vec<Reg> {
        let (class, count) = match dtype {
            _ if are_packed(dtype, group) => (Class::B32, group.div_ceil(4 / dtype.bytes())),
            Dtype::Bool => (Class::B32, group),
            _ => (Class::of(dtype), group),
        };
        (0..count).map(|_| self.reg(class)).collect()
    }

    /// Loads elements into their [`Emitter::word_registers`]. If `pred` does not hold, the elements are those of `fill`.
    fn load_into(&mut self, words: &[Reg], instruction: &str, address: &str, dtype: Dtype, pred: Option<Reg>, fill: &[Option<Reg>]) {
        let policy = self.policy_operand(instruction);
        let guard = pred.map_or(String::new(), |pred| format!("@{pred} "));
        let is_packed = are_packed(dtype, fill.len());
        if pred.is_some() && is_packed {
            for (word, fill) in words.iter().zip(fill.chunks(4 / dtype.bytes())) {
                let fill = self.word_of(fill, dtype);
                asm!(self, "mov.b32 {word}, {fill}");
            }
        } else if pred.is_some() {
            for (reg, fill) in words.iter().zip(fill) {
                self.fill("", *reg, dtype, *fill);
            }
        }
        let element = if is_packed { "b32" } else { memory_type(dtype) };
        asm!(self, "{guard}{instruction}{}.{element} {}, {address}{policy}", vector(words.len()), list(words));
    }

    /// The elements of words that [`Emitter::load_words`] has loaded for `group` elements.
    fn loaded_elements(&mut self, words: &[Reg], dtype: Dtype, group: usize) -> Vec<Reg> {
        if are_packed(dtype, group) {
            return words.iter().flat_map(|word| self.unpack(*word, dtype)).collect();
        }
        words.iter().map(|reg| if dtype == Dtype::Bool { self.predicate(*reg) } else { *reg }).collect()
    }

    /// The word that holds the elements `fill`, which are zero if one is absent: a register, or a constant.
    fn word_of(&mut self, fill: &[Option<Reg>], dtype: Dtype) -> String {
        let Some(fill) = fill.iter().copied().collect::<Option<Vec<Reg>>>() else { return "0".to_string() };
        let fill: Vec<Reg> = fill.into_iter().map(|fill| if dtype == Dtype::Bool { self.byte(fill) } else { fill }).collect();
        self.pack(&fill).to_string()
    }

    /// Sets a register in place of a load: to zero if `fill` is absent. `guard` is that of the instruction.
    fn fill(&mut self, guard: &str, reg: Reg, dtype: Dtype, fill: Option<Reg>) {
        match fill {
            None if reg.class == Class::F32 => asm!(self, "{guard}mov.f32 {reg}, 0f00000000"),
            None if reg.class == Class::F64 => asm!(self, "{guard}mov.f64 {reg}, 0d0000000000000000"),
            None => asm!(self, "{guard}mov.{} {reg}, 0", reg.class.suffix()),
            Some(fill) if dtype == Dtype::Bool => asm!(self, "{guard}selp.b32 {reg}, 1, 0, {fill}"),
            Some(fill) => asm!(self, "{guard}mov.{} {reg}, {fill}", reg.class.suffix()),
        }
    }

    pub(crate) fn store_group(&mut self, instruction: &str, address: &str, dtype: Dtype, pred: Option<Reg>, regs: &[Reg]) {
        let guard = pred.map_or(String::new(), |pred| format!("@{pred} "));
        let policy = self.policy_operand(instruction);
        let mut regs: Vec<Reg> = regs.iter().map(|reg| if dtype == Dtype::Bool { self.byte(*reg) } else { *reg }).collect();
        if dtype.bytes() < 4 && regs.len() * dtype.bytes() >= 4 {
            let words: Vec<Reg> = regs.chunks(4 / dtype.bytes()).map(|part| self.pack(part)).collect();
            asm!(self, "{guard}{instruction}{}.b32 {address}, {}{policy}", vector(words.len()), list(&words));
        } else {
            for reg in &mut regs {
                *reg = self.clamp_low(*reg, dtype);
            }
            asm!(self, "{guard}{instruction}{}.{} {address}, {}{policy}", vector(regs.len()), memory_type(dtype), list(&regs));
        }
    }

    /// Unpacks the elements of a 32-bit word from memory.
    fn unpack(&mut self, word: Reg, dtype: Dtype) -> Vec<Reg> {
        if dtype.is_half() {
            let (low, high) = (self.reg(Class::B16), self.reg(Class::B16));
            asm!(self, "mov.b32 {{{low}, {high}}}, {word}");
            return vec![low, high];
        }
        let (bits, sign) = (8 * dtype.bytes(), if dtype.is_signed_int() { 's' } else { 'u' });
        let parts = (0..32 / bits).map(|part| {
            let element = self.reg(Class::B32);
            asm!(self, "bfe.{sign}32 {element}, {word}, {}, {bits}", part * bits);
            if dtype == Dtype::Bool { self.predicate(element) } else { element }
        });
        let parts: Vec<Reg> = parts.collect();
        self.unpacked.insert(parts[0], (word, parts.clone()));
        parts
    }

    /// Packs elements into a 32-bit word of memory.
    pub(crate) fn pack(&mut self, parts: &[Reg]) -> Reg {
        if let Some(word) = self.pack_clamped(parts) {
            return word;
        }
        let mut join = |low: Reg, high: Reg, selector: u32| {
            let both = self.reg(Class::B32);
            asm!(self, "prmt.b32 {both}, {low}, {high}, {selector:#x}");
            both
        };
        match *parts {
            [low, high] if low.class == Class::B16 => {
                let word = self.reg(Class::B32);
                asm!(self, "mov.b32 {word}, {{{low}, {high}}}");
                word
            }
            [low, high] => join(low, high, 0x5410),
            [a, b, c, d] => {
                let (low, high) = (join(a, b, 0x0040), join(c, d, 0x0040));
                join(low, high, 0x5410)
            }
            _ => unreachable!("a word holds two or four elements"),
        }
    }

    /// Packs elements that are clamped to their type, by an instruction that clamps them itself.
    fn pack_clamped(&mut self, parts: &[Reg]) -> Option<Reg> {
        let clamped: Vec<(Dtype, Reg)> = parts.iter().map(|part| self.clamped.get(part).copied()).collect::<Option<_>>()?;
        let (dtype, _) = clamped[0];
        // A cast to a wider integer keeps the register.
        if parts.len() * dtype.bytes() != 4 || clamped.iter().any(|(other, _)| *other != dtype) {
            return None;
        }
        let ty = memory_type(dtype);
        let mut word = None;
        for pair in clamped.chunks(2).rev() {
            let d = self.reg(Class::B32);
            let ((_, low), (_, high)) = (pair[0], pair[1]);
            if parts.len() == 2 {
                asm!(self, "cvt.pack.sat.{ty}.s32 {d}, {high}, {low}");
            } else {
                let above = word.map_or("0".to_string(), |word: Reg| word.to_string());
                asm!(self, "cvt.pack.sat.{ty}.s32.b32 {d}, {high}, {low}, {above}");
            }
            word = Some(d);
        }
        word
    }

    /// A register with an element in its low bits, for a store that ignores the high bits. If the element is clamped to its type, one instruction clamps it in
    /// place of two: the assembler merges it with a cast from a float.
    fn clamp_low(&mut self, element: Reg, dtype: Dtype) -> Reg {
        let Some((_, wide)) = self.clamped.get(&element).copied().filter(|(of, _)| *of == dtype) else { return element };
        let d = self.reg(Class::B32);
        let above = if dtype.bytes() == 1 { ".b32" } else { "" };
        let zero = if dtype.bytes() == 1 { ", 0" } else { "" };
        asm!(self, "cvt.pack.sat.{}.s32{above} {d}, {wide}, {wide}{zero}", memory_type(dtype));
        d
    }

    pub(crate) fn predicate(&mut self, byte: Reg) -> Reg {
        let pred = self.reg(Class::Pred);
        asm!(self, "setp.ne.s32 {pred}, {byte}, 0");
        pred
    }

    pub(crate) fn byte(&mut self, pred: Reg) -> Reg {
        let byte = self.reg(Class::B32);
        asm!(self, "selp.b32 {byte}, 1, 0, {pred}");
        byte
    }

    /// The kernel never writes memory behind a `Ptr` during the launch, so loads from it may use the read-only path, unless the launch
    /// begins while a previous one still writes.
    pub(crate) fn load_instruction(&mut self, cache: Cache, evict: Evict, volatile: bool, is_constant: bool) -> String {
        if volatile {
            return "ld.volatile.global".to_string();
        }
        let read_only = if is_constant && cache != Cache::Volatile && !self.begins_early { ".nc" } else { "" };
        match cache {
            Cache::Default => format!("ld.global{read_only}{}", self.priority(evict)),
            cache => format!("ld.global.{}{read_only}", cache.text()),
        }
    }

    fn store_instruction(&mut self, cache: Cache, evict: Evict) -> String {
        match cache {
            Cache::Default => format!("st.global{}", self.priority(evict)),
            cache => format!("st.global.{}", cache.text()),
        }
    }
}

/// The parts of an offset `first + steps`: a tile of `i32` or `i64`, and an affine index with known strides. Along each axis, at most one of both
/// changes. So elements with equal `first` share an address, and their steps are immediate offsets. Flattened indices have this form, and so have rows
/// that are gathered.
pub(crate) fn first_and_steps(func: &Function, facts: &mut AffineFacts, offset: Value) -> Option<(Value, Rc<Affine>)> {
    let narrow = |value: Value| match func.def_op(value) {
        Some(Op::Cast { x }) if func.ty(*x).elem().dtype() == Some(Dtype::I32) => Some(*x),
        _ => None,
    };
    if let Some(narrow) = narrow(offset) {
        return Some((narrow, Rc::new(Affine::steps(&vec![0; func.ty(offset).shape().len()]))));
    }
    let Some(&Op::Binary { op: BinaryOp::Add, lhs, rhs }) = func.def_op(offset) else { return None };
    let (first, steps) = if facts.get(func, rhs).is_some() { (lhs, rhs) } else { (rhs, lhs) };
    let first = narrow(first).unwrap_or(first);
    let steps = facts.get(func, steps).filter(|steps| steps.scalars().next().is_none())?;
    let is_apart = steps.strides.iter().zip(0..).all(|(step, axis)| step.is(0) || facts.step(func, first, axis) == Some(0));
    is_apart.then_some((first, steps))
}

/// The number of registers that are adjacent in memory and can move in one instruction.
fn group(layout: Option<&Layout>, affine: &Affine, align: u32, dtype: Dtype) -> usize {
    let Some(layout) = layout else { return 1 };
    let runs = |axis: &usize| affine.strides[*axis].is(1) && layout.shape()[*axis] > 1;
    let Some(axis) = (0..layout.rank()).rev().find(runs) else { return 1 };
    let run = layout.contiguous_per_thread(axis);
    let in_order = run.bits.iter().enumerate().take_while(|(index, bit)| *index as u32 == **bit).count();
    let widest = (align as usize / dtype.bytes()).max(1);
    if run.disjoint { widest.min(1 << in_order) } else { 1 }
}

/// Whether several elements of an access of `group` elements share a register of 32 bits.
fn are_packed(dtype: Dtype, group: usize) -> bool {
    dtype.bytes() < 4 && group * dtype.bytes() >= 4
}

fn vector(length: usize) -> &'static str {
    match length {
        2 => ".v2",
        4 => ".v4",
        _ => "",
    }
}

fn list(regs: &[Reg]) -> String {
    match regs {
        [reg] => reg.to_string(),
        _ => format!("{{{}}}", regs.iter().map(Reg::to_string).collect::<Vec<_>>().join(", ")),
    }
}
