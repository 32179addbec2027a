//! Atomics: the executing thread, the memory order, and the broadcast of the old value.
//!
//! If several threads hold an element, one of them, the owner, executes the atomic and broadcasts its result: between lanes by a shuffle,
//! between warps through shared memory. A scalar is therefore the same in every thread, and a loop that waits for it stays uniform.
//!
//! ```text
//! bar.sync               release: all earlier accesses of every thread are complete
//! atom.acq_rel ..        or, with several elements per thread, relaxed atomics between two fences
//! bar.sync               acquire: no thread continues earlier
//! ```
//!
//! If the old value is unused, nothing can be acquired: the instruction is `red`, and only the release remains.

use crate::dtype::Dtype;
use crate::ir::{AtomicOp, Handle, Op, Scope, Semantics, Value};
use crate::layout::Layout;
use crate::target::Target;

use super::{list, vector};
use crate::backend::ptx::text::registers::{Class, Reg, asm};
use crate::backend::ptx::{Emitter, Lanes};

/// An atomic instruction without its address and operands.
#[derive(Clone, Copy)]
struct Instruction {
    op: AtomicOp,
    dtype: Dtype,
    sem: Semantics,
    scope: Scope,
    wants_old: bool,
}

/// The threads and registers that act on the elements of a tile, or on a scalar.
pub(crate) struct Held {
    /// The predicate of the owner among threads that hold the same element; `None` if all threads hold different elements.
    pub(crate) owner: Option<Reg>,
    /// The bits of the thread index in which threads that hold the same element differ.
    free: u32,
    /// The bits of the register index in which registers that hold the same element differ.
    pub(crate) copies: u32,
    count: u32,
    /// The registers that are not copies.
    registers: Vec<u32>,
    is_scalar: bool,
}

impl Instruction {
    /// `atom.acq_rel.gpu.global.add.f32`
    fn text(self, op: &str, ty: &str) -> String {
        // An exchange has no `red` form, so its result is discarded.
        let has_destination = self.wants_old || matches!(self.op, AtomicOp::Exchange | AtomicOp::CompareAndSwap);
        let opcode = if has_destination { "atom" } else { "red" };
        let destination = match (self.wants_old, has_destination) {
            (false, true) => " _,",
            _ => "",
        };
        format!("{opcode}.{}.{}.global.{op}.{ty}{destination}", self.sem.text(), self.scope.text())
    }
}

impl Held {
    /// The elements in all registers, from those in the registers that are not copies.
    pub(crate) fn with_copies(&self, found: &[Reg]) -> Lanes {
        if self.is_scalar {
            return Lanes::Splat(found[0]);
        }
        let index = |register: u32| self.registers.binary_search(&(register & !self.copies)).expect("a copy has its first register");
        Lanes::Each((0..self.count).map(|register| found[index(register)]).collect())
    }

    /// The registers that are not copies.
    pub(crate) fn registers(&self) -> impl Iterator<Item = usize> {
        self.registers.iter().map(|register| *register as usize)
    }
}

impl Emitter<'_> {
    pub(crate) fn atomic(&mut self, op: &Op, result: Option<Value>) {
        let Op::Atomic { base, offset, values, op: atomic, mask, sem, scope, align, .. } = op else { return };
        let wants_old = result.is_some_and(|result| self.needed[result.index()]);
        if !wants_old && !atomic.writes() {
            return;
        }
        let sem = if wants_old { *sem } else { sem.without_acquire() };
        let dtype = self.func.ty(*base).dtype();
        // An old value needs an instruction for its element.
        let width = if wants_old || *align == 0 { 0 } else { self.target.ask(|target| target.widest_atomic_add(dtype)).min(*align) };
        let access = self.access(*base, *offset, width, dtype);
        let held = self.held(*offset);
        let (mask, values): (_, Vec<Lanes>) = (mask.map(|mask| self.source(mask)), values.iter().map(|value| self.lanes(*value)).collect());

        if sem.releases() {
            self.program_barrier();
        }
        let is_fenced = sem != Semantics::Relaxed && held.registers.len() > access.group;
        let own = if is_fenced { Semantics::Relaxed } else { sem };
        let instruction = Instruction { op: *atomic, dtype, sem: own, scope: *scope, wants_old };
        if is_fenced && sem.releases() {
            asm!(self, "fence.acq_rel.{}", scope.text());
        }
        let mut found = Vec::new();
        for first in held.registers().step_by(access.group) {
            let own = mask.as_ref().map(|mask| self.at(mask, first));
            let acts = self.both(own, held.owner);
            let address = self.address_operand(&access, first);
            if access.group > 1 {
                let terms: Vec<Reg> = (first..first + access.group).map(|register| values[0].get(register)).collect();
                self.add_several(instruction, &address, acts, &terms);
            } else {
                let operands: Vec<Reg> = values.iter().map(|value| value.get(first)).collect();
                found.extend(self.act(instruction, &address, acts, &operands));
            }
        }
        if is_fenced && sem.acquires() {
            asm!(self, "fence.acq_rel.{}", scope.text());
        }
        let Some(result) = result.filter(|_| wants_old) else { return };
        let lanes = self.broadcast_from_owner(&held, dtype, &found, sem.acquires());
        if sem.acquires() && self.schedule.num_ctas > 1 {
            self.program_barrier();
        }
        self.define(result, lanes);
    }

    /// The owners of the elements at these offsets.
    pub(crate) fn held(&self, offset: Value) -> Held {
        let layout = self.layout(offset);
        let free = layout.map(Layout::free_bits);
        let copies = free.map_or(0, |free| free.register);
        let count = self.lane_count(offset) as u32;
        Held {
            owner: self.owner_of(layout),
            free: free.map_or(u32::MAX, |free| free.lane | free.warp << 5) & (self.schedule.threads() - 1),
            copies,
            count,
            registers: (0..count).filter(|register| register & copies == 0).collect(),
            is_scalar: layout.is_none(),
        }
    }

    /// Broadcasts the owner's values to all threads that hold the element: one value for each register that is not a copy. With `waits`, no
    /// thread continues before all owners have acted.
    pub(crate) fn broadcast_from_owner(&mut self, held: &Held, dtype: Dtype, found: &[Reg], waits: bool) -> Lanes {
        let found = self.share_found(dtype, found, held, waits);
        held.with_copies(&found)
    }

    /// The conjunction of two predicates; `None` stands for true.
    pub(crate) fn both(&mut self, a: Option<Reg>, b: Option<Reg>) -> Option<Reg> {
        let (Some(first), Some(second)) = (a, b) else { return a.or(b) };
        let both = self.reg(Class::Pred);
        asm!(self, "and.pred {both}, {first}, {second}");
        Some(both)
    }

    /// Emits the atomic for one element. Returns its old value if it is used.
    fn act(&mut self, instruction: Instruction, address: &str, acts: Option<Reg>, operands: &[Reg]) -> Option<Reg> {
        let Instruction { op, dtype, sem, scope, .. } = instruction;
        let (sem, scope) = (sem.text(), scope.text());
        match op {
            AtomicOp::Load => Some(self.load_group(&format!("ld.{sem}.{scope}.global"), address, dtype, acts, &[None])[0]),
            AtomicOp::Store => {
                self.store_group(&format!("st.{sem}.{scope}.global"), address, dtype, acts, operands);
                None
            }
            AtomicOp::Max | AtomicOp::Min if dtype.is_float() => self.float_extreme(instruction, address, acts, operands[0]),
            AtomicOp::Add if dtype == Dtype::Bf16 && !self.target.ask(Target::has_bf16_atomics) => {
                self.add_by_exchange(instruction, address, acts, operands[0])
            }
            // The integer is in a 32-bit register, and the instruction takes a 16-bit one.
            AtomicOp::CompareAndSwap if dtype.is_int() && dtype.bits() == 16 => {
                let narrow: Vec<Reg> = operands
                    .iter()
                    .map(|wide| {
                        let narrow = self.asm.reg(Class::B16);
                        asm!(self, "cvt.u16.u32 {narrow}, {wide}");
                        narrow
                    })
                    .collect();
                let old = self.old(instruction, Class::B16, acts);
                self.exchange(&instruction.text("cas", "b16"), old, address, acts, &narrow);
                old.map(|old| {
                    let wide = self.reg(Class::B32);
                    let sign = if dtype.is_signed_int() { 's' } else { 'u' };
                    asm!(self, "cvt.{sign}32.{sign}16 {wide}, {old}");
                    wide
                })
            }
            _ => {
                let (name, ty) = name_and_type(op, dtype);
                let old = self.old(instruction, Class::of(dtype), acts);
                self.exchange(&instruction.text(name, ty), old, address, acts, operands);
                old
            }
        }
    }

    /// Adds to neighbouring elements by one instruction. Each element is updated by itself: the update of several is not one step.
    fn add_several(&mut self, instruction: Instruction, address: &str, acts: Option<Reg>, terms: &[Reg]) {
        let (op, ty, terms) = match instruction.dtype {
            Dtype::F32 => ("add", "f32", terms.to_vec()),
            half => {
                let words = terms.chunks(2).map(|pair| self.pack(pair)).collect();
                ("add.noftz", if half == Dtype::F16 { "f16x2" } else { "bf16x2" }, words)
            }
        };
        if terms.len() > 1 {
            self.ptx_version = self.ptx_version.max((8, 1));
        }
        let guard = acts.map_or(String::new(), |acts| format!("@{acts} "));
        let instruction = instruction.text(&format!("{op}{}", vector(terms.len())), ty);
        asm!(self, "{guard}{instruction} {address}, {}", list(&terms));
    }

    /// A register for the old value, 0 where the predicate is false.
    fn old(&mut self, instruction: Instruction, class: Class, acts: Option<Reg>) -> Option<Reg> {
        if !instruction.wants_old {
            return None;
        }
        let old = self.reg(class);
        match class {
            _ if acts.is_none() => {}
            Class::F32 => asm!(self, "mov.f32 {old}, 0f00000000"),
            Class::F64 => asm!(self, "mov.f64 {old}, 0d0000000000000000"),
            _ => asm!(self, "mov.{} {old}, 0", class.suffix()),
        }
        Some(old)
    }

    fn exchange(&mut self, instruction: &str, old: Option<Reg>, address: &str, acts: Option<Reg>, operands: &[Reg]) {
        let guard = acts.map_or(String::new(), |acts| format!("@{acts} "));
        let destination = old.map_or(String::new(), |old| format!("{old}, "));
        let operands: Vec<String> = operands.iter().map(Reg::to_string).collect();
        asm!(self, "{guard}{instruction} {destination}{address}, {}", operands.join(", "));
    }

    /// Float minimum and maximum by integer atomics. The bits of floats of one sign are ordered like integers, those of negative floats in
    /// reverse.
    ///
    /// ```text
    ///        operand >= 0     operand < 0
    /// max    signed max       unsigned min
    /// min    signed min       unsigned max
    /// ```
    ///
    /// A NaN operand is replaced by the integer that changes nothing.
    fn float_extreme(&mut self, instruction: Instruction, address: &str, acts: Option<Reg>, operand: Reg) -> Option<Reg> {
        let is_max = instruction.op == AtomicOp::Max;
        let (bits, class) = if operand.class == Class::F64 { (64, Class::B64) } else { (32, Class::B32) };
        let [raw, ordered] = [0; 2].map(|_| self.reg(class));
        let [is_nan, is_negative, is_positive] = [0; 3].map(|_| self.reg(Class::Pred));
        let neutral = match (is_max, bits) {
            (true, _) => "-1",
            (false, 32) => "0x7fffffff",
            (false, _) => "0x7fffffffffffffff",
        };
        asm!(self, "mov.b{bits} {raw}, {operand}");
        asm!(self, "setp.nan.f{bits} {is_nan}, {operand}, {operand}");
        asm!(self, "selp.b{bits} {ordered}, {neutral}, {raw}, {is_nan}");
        asm!(self, "setp.lt.s{bits} {is_negative}, {ordered}, 0");
        asm!(self, "not.pred {is_positive}, {is_negative}");
        let old = self.old(instruction, class, Some(is_negative));
        let (above, below) = if is_max { ("max", "min") } else { ("min", "max") };
        for (sign, name, ty) in [(is_positive, above, 's'), (is_negative, below, 'u')] {
            let acts = self.both(acts, Some(sign));
            self.exchange(&instruction.text(name, &format!("{ty}{bits}")), old, address, acts, &[ordered]);
        }
        old.map(|old| {
            let float = self.reg(operand.class);
            asm!(self, "mov.b{bits} {float}, {old}");
            float
        })
    }

    /// A `bf16` sum on a target without the instruction: a compare-and-swap loop that retries if the element has changed.
    fn add_by_exchange(&mut self, instruction: Instruction, address: &str, acts: Option<Reg>, operand: Reg) -> Option<Reg> {
        let [old, now] = [0; 2].map(|_| self.reg(Class::B16));
        let changed = self.reg(Class::Pred);
        let (again, end) = (self.asm.label(), self.asm.label());
        if let Some(acts) = acts {
            asm!(self, "mov.b16 {old}, 0");
            asm!(self, "@!{acts} bra {end}");
        }
        asm!(self, "ld.relaxed.{}.global.b16 {old}, {address}", instruction.scope.text());
        let term = self.cast_one(operand, Dtype::Bf16, Dtype::F32);
        self.asm.define_label(&again);
        let wide = self.cast_one(old, Dtype::Bf16, Dtype::F32);
        let sum = self.reg(Class::F32);
        asm!(self, "add.rn.f32 {sum}, {wide}, {term}");
        let rounded = self.cast_one(sum, Dtype::F32, Dtype::Bf16);
        let exchange = Instruction { op: AtomicOp::CompareAndSwap, wants_old: true, ..instruction };
        self.exchange(&exchange.text("cas", "b16"), Some(now), address, None, &[old, rounded]);
        asm!(self, "setp.ne.b16 {changed}, {now}, {old}");
        asm!(self, "mov.b16 {old}, {now}");
        asm!(self, "@{changed} bra {again}");
        self.asm.define_label(&end);
        Some(old).filter(|_| instruction.wants_old)
    }

    /// Broadcasts by a shuffle if the threads that hold the same element are in one warp, and otherwise through shared memory.
    fn share_found(&mut self, dtype: Dtype, found: &[Reg], held: &Held, waits: bool) -> Vec<Reg> {
        let (threads, free) = (self.schedule.threads(), held.free);
        let thread = self.thread();
        if free >> 5 == 0 {
            let mut everywhere = found.to_vec();
            if free != 0 {
                let lane = self.reg(Class::B32);
                asm!(self, "and.b32 {lane}, {thread}, {}", !free & 31);
                everywhere.iter_mut().for_each(|element| {
                    let words = self.words_of(dtype, &[*element]);
                    let words = self.shuffle("idx", &words, lane);
                    *element = self.elements_of(dtype, &words, 1)[0];
                });
            }
            if waits {
                self.barrier();
            }
            return everywhere;
        }
        let owners = (!free & (threads - 1)) + 1;
        let at_once = self.at_once() as usize;
        found.chunks(at_once).flat_map(|found| self.share_through_memory(dtype, found, held, owners)).collect()
    }

    /// Broadcasts the values of the first `owners` threads to all threads through shared memory.
    fn share_through_memory(&mut self, dtype: Dtype, found: &[Reg], held: &Held, owners: u32) -> Vec<Reg> {
        let (thread, bytes) = (self.thread(), dtype.bytes() as u32);
        let range = self.scratch();
        let operand = |address: Reg, index: usize| format!("[{address}+{}]", range.start + index as u32 * owners * bytes);
        let own = if owners == 1 { self.shared_address(None) } else { self.thread_address(thread, dtype.bytes()) };
        for (index, element) in found.iter().enumerate() {
            self.store_group("st.shared", &operand(own, index), dtype, held.owner, &[*element]);
        }
        self.barrier();
        let from = if owners == 1 {
            own
        } else {
            let first = self.reg(Class::B32);
            asm!(self, "and.b32 {first}, {thread}, {}", owners - 1);
            self.thread_address(first, dtype.bytes())
        };
        (0..found.len()).map(|index| self.load_group("ld.shared", &operand(from, index), dtype, None, &[None])[0]).collect()
    }
}

/// The names of the operation and of its type in the instruction.
fn name_and_type(op: AtomicOp, dtype: Dtype) -> (&'static str, &'static str) {
    let (name, is_numeric) = match op {
        AtomicOp::Add => ("add", true),
        AtomicOp::Max => ("max", true),
        AtomicOp::Min => ("min", true),
        AtomicOp::And => ("and", false),
        AtomicOp::Or => ("or", false),
        AtomicOp::Xor => ("xor", false),
        AtomicOp::Exchange => ("exch", false),
        AtomicOp::CompareAndSwap => ("cas", false),
        AtomicOp::Load | AtomicOp::Store => unreachable!("loads and stores are instructions of their own"),
    };
    let ty = match (is_numeric, dtype) {
        (true, Dtype::I32) if op != AtomicOp::Add => "s32",
        (true, Dtype::I64) if op != AtomicOp::Add => "s64",
        (true, Dtype::I32 | Dtype::U32) => "u32",
        (true, Dtype::I64 | Dtype::U64) => "u64",
        (true, Dtype::F16) => "noftz.f16",
        (true, Dtype::Bf16) => "noftz.bf16",
        (true, Dtype::F32) => "f32",
        (true, _) => "f64",
        (false, dtype) => match dtype.bits() {
            16 => "b16",
            32 => "b32",
            _ => "b64",
        },
    };
    (name, ty)
}
