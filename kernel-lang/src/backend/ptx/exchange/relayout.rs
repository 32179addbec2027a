//! Layout conversions: registers are renamed, exchanged by shuffles, or moved through shared memory.

use std::collections::BTreeMap;

use crate::dtype::Dtype;
use crate::ir::renaming::register_sources;
use crate::ir::{Op, Value};
use crate::layout::{Access, Conversion, SharedPlan, ShufflePlan, XorTable, known_conversion};

use crate::backend::ptx::exchange::parts::Parts;
use crate::backend::ptx::text::registers::{Class, Reg, asm};
use crate::backend::ptx::{Emitter, Lanes, Source};

/// The maximum number of bytes that a `flip` writes to shared memory before a barrier.
pub(crate) const EXCHANGED_BYTES: u32 = 16 << 10;

impl Emitter<'_> {
    /// `broadcast`, `expand_dims`, `reshape`, `permute`: every thread already holds the elements of the result.
    pub(crate) fn reshape(&mut self, op: &Op, x: Value, result: Value) {
        if let Source::Tests(tests) = self.source(x) {
            let sources = register_sources(self.func, op, x, result).expect("a verified op moves nothing between threads");
            self.sources[result] = Some(Source::Tests(tests.moved(&sources)));
            return;
        }
        let lanes = match self.lanes(x) {
            Lanes::Each(regs) if self.func.ty(x).numel() == 1 => Lanes::Splat(regs[0]),
            Lanes::Splat(reg) => Lanes::Splat(reg),
            Lanes::Each(regs) => {
                let sources = register_sources(self.func, op, x, result).expect("a verified op moves nothing between threads");
                Lanes::Each(sources.into_iter().map(|register| regs[register as usize]).collect())
            }
        };
        self.define(result, lanes);
    }

    /// `flip`: inverting every bit of an index along the axis inverts a fixed set of bits of its hardware coordinate.
    pub(crate) fn flip(&mut self, x: Value, axis: usize, result: Value) {
        let (Lanes::Each(regs), Some(layout)) = (self.lanes(x), self.layout(x)) else {
            let lanes = self.lanes(x);
            return self.define(result, lanes);
        };
        let last = layout.mask_along(axis);
        let inverse = layout.pseudo_inverse().expect("layouts of verified tiles hold every element");
        let other = layout.coordinate(inverse.apply(last));
        let regs: Vec<Reg> = (0..regs.len()).map(|register| regs[register ^ other.register as usize]).collect();
        let dtype = self.func.ty(x).dtype();
        let regs = match (other.lane, other.warp) {
            (0, 0) => regs,
            (lane, 0) => {
                let exchanged = regs.into_iter().flat_map(|reg| {
                    let words = self.words_of(dtype, &[reg]);
                    let words = self.shuffle("bfly", &words, lane);
                    self.elements_of(dtype, &words, 1)
                });
                exchanged.collect()
            }
            (lane, warp) => {
                // In several exchanges, because a tile may be larger than shared memory.
                let at_once = self.at_once() as usize;
                regs.chunks(at_once).flat_map(|regs| self.exchanged(dtype, regs, lane | warp << 5)).collect()
            }
        };
        self.define(result, Lanes::Each(regs));
    }

    /// The registers of the thread whose index differs in those bits, through shared memory.
    fn exchanged(&mut self, dtype: Dtype, regs: &[Reg], bits: u32) -> Vec<Reg> {
        let bytes = self.schedule.threads() * dtype.bytes() as u32;
        let range = self.scratch();
        let thread = self.thread();
        let other = self.reg(Class::B32);
        asm!(self, "xor.b32 {other}, {thread}, {bits}");
        let [own, other] = [thread, other].map(|thread| self.thread_address(thread, dtype.bytes()));
        let operand = |address: Reg, index: usize| format!("[{address}+{}]", range.start + index as u32 * bytes);
        for (index, reg) in regs.iter().enumerate() {
            self.store_group("st.shared", &operand(own, index), dtype, None, &[*reg]);
        }
        self.barrier();
        (0..regs.len()).flat_map(|index| self.load_group("ld.shared", &operand(other, index), dtype, None, &[None])).collect()
    }

    /// `convert`: uses the cheapest plan.
    pub(crate) fn convert(&mut self, x: Value, result: Value) {
        let (Lanes::Each(regs), Some(from), Some(to)) = (self.lanes(x), self.layout(x), self.layout(result)) else {
            let lanes = self.lanes(x);
            return self.define(result, lanes);
        };
        let dtype = self.func.ty(x).dtype();
        let plan = known_conversion(from, to, 8 * dtype.bytes() as u32);
        let regs = match plan.as_ref().as_ref().expect("a verified conversion finds every element") {
            Conversion::None => regs,
            Conversion::Registers(from) => from.iter().map(|register| regs[*register as usize]).collect(),
            Conversion::Shuffle(plan) => self.by_shuffles(plan, dtype, &regs),
            Conversion::Shared(plan) => self.through_shared(plan, dtype, &regs),
        };
        self.define(result, Lanes::Each(regs));
    }

    fn by_shuffles(&mut self, plan: &ShufflePlan, dtype: Dtype, regs: &[Reg]) -> Vec<Reg> {
        let packed = plan.packed_registers();
        let (from_bits, to_bits) = packed.iter().fold((0, 0), |bits, parts| (bits.0 | parts.0, bits.1 | parts.1));
        // By the first of the registers that are packed together.
        let mut words: BTreeMap<u32, Vec<Reg>> = BTreeMap::new();
        for register in (0..regs.len() as u32).filter(|register| register & from_bits == 0) {
            let elements: Vec<Reg> = packed.iter().map(|(part, _)| regs[(register ^ part) as usize]).collect();
            words.insert(register, self.words_of(dtype, &elements));
        }
        self.swap_where(&mut words, &plan.send);
        let thread_lane = self.xor_of_thread_bits(&thread_values(&plan.source_lane));
        let mut lanes: BTreeMap<u32, String> = BTreeMap::new();
        let mut received: BTreeMap<u32, Vec<Reg>> = BTreeMap::new();
        for round in &plan.rounds {
            let sent = words[&round.send].clone();
            let got = if plan.exchanges(round) {
                let lane = lanes.entry(round.lane).or_insert_with(|| match thread_lane {
                    None => round.lane.to_string(),
                    Some(lane) if round.lane == 0 => lane.to_string(),
                    Some(lane) => {
                        let d = self.asm.reg(Class::B32);
                        asm!(self, "xor.b32 {d}, {lane}, {}", round.lane);
                        d.to_string()
                    }
                });
                let lane = lane.clone();
                self.shuffle("idx", &sent, lane)
            } else {
                sent
            };
            received.insert(round.receive, got);
        }
        self.swap_where(&mut received, &plan.receive);
        let mut out: BTreeMap<u32, Reg> = BTreeMap::new();
        for (register, words) in received.into_iter().filter(|(register, _)| *register < plan.registers && register & to_bits == 0) {
            let elements = self.elements_of(dtype, &words, packed.len());
            out.extend(packed.iter().zip(elements).map(|((_, part), element)| (register ^ part, element)));
        }
        with_copies(out, &plan.copies, plan.registers)
    }

    /// For the value `v` of each bit: swaps registers `i` and `i ^ v` in the threads in which the bit is set.
    fn swap_where(&mut self, words: &mut BTreeMap<u32, Vec<Reg>>, table: &XorTable) {
        for (bit, value) in thread_values(table).into_iter().enumerate().filter(|(_, value)| *value != 0) {
            let is_set = self.thread_bit(bit);
            let registers: Vec<u32> = words.keys().flat_map(|register| [*register, register ^ value]).collect();
            let mut swapped = BTreeMap::new();
            for register in registers {
                let there = match (words.get(&register), words.get(&(register ^ value))) {
                    (Some(own), Some(other)) => self.choose(is_set, other, own),
                    (Some(only), None) | (None, Some(only)) => only.clone(),
                    (None, None) => continue,
                };
                swapped.entry(register).or_insert(there);
            }
            *words = swapped;
        }
    }

    fn through_shared(&mut self, plan: &SharedPlan, dtype: Dtype, regs: &[Reg]) -> Vec<Reg> {
        let bytes = dtype.bytes() as u32;
        let elements = plan.memory.elements();
        let (at_once, range) = (self.at_once(), self.scratch());
        let thread = self.thread();
        let stores = self.owner(plan.store.idle.lane | plan.store.idle.warp << 5, thread);
        let loaded: Vec<u32> = plan.load.instructions.iter().flat_map(|instruction| instruction.registers.iter().copied()).collect();
        let variables = self.results_of_parts(at_once < elements, dtype, loaded.len());
        let part = self.begin_parts(at_once < elements, at_once * bytes);
        for access in self.shared_accesses(&plan.store, bytes) {
            let group: Vec<Reg> = access.registers.iter().map(|register| regs[*register as usize]).collect();
            let (to, is_inside) = self.operand_in_part(part.as_ref(), &access, range.start);
            let stores = self.both(stores, is_inside);
            self.store_group("st.shared", &to, dtype, stores, &group);
        }
        if plan.within_warps && part.is_none() {
            self.warp_barrier();
        } else {
            self.barrier();
        }
        let mut read = Vec::new();
        for access in self.shared_accesses(&plan.load, bytes) {
            let (from, is_inside) = self.operand_in_part(part.as_ref(), &access, range.start);
            let fill = (0..access.registers.len()).map(|register| variables.get(read.len() + register).copied()).collect::<Vec<_>>();
            read.extend(self.load_group("ld.shared", &from, dtype, is_inside, &fill));
        }
        let read = self.end_parts(part, elements * bytes, variables, read);
        let out: BTreeMap<u32, Reg> = loaded.into_iter().zip(read).collect();
        let registers = out.len() + plan.copies.len();
        with_copies(out, &plan.copies, registers as u32)
    }

    /// The operand of a shared-memory access of an exchange that starts at `start`, and the predicate whether the access lies in the part.
    fn operand_in_part(&mut self, part: Option<&Parts>, access: &SharedAccess, start: u32) -> (String, Option<Reg>) {
        let offset = match (part, access.offset) {
            (Some(_), None) => {
                let zero = self.reg(Class::B32);
                asm!(self, "mov.b32 {zero}, 0");
                zero
            }
            (_, offset) => offset.unwrap_or(access.address),
        };
        let (address, is_inside) = self.in_part(part, access.address, offset, i64::from(access.constant));
        let text = match start + access.constant {
            0 => format!("[{address}]"),
            constant => format!("[{address}+{constant}]"),
        };
        (text, is_inside)
    }

    /// The address and the registers of each instruction.
    fn shared_accesses(&mut self, access: &Access, bytes: u32) -> Vec<SharedAccess> {
        let scaled: Vec<u32> = thread_values(&access.thread).into_iter().map(|value| value * bytes).collect();
        let thread = self.xor_of_thread_bits(&scaled);
        let mut addresses: BTreeMap<u32, (Reg, Option<Reg>)> = BTreeMap::new();
        let mut accesses = Vec::new();
        for instruction in &access.instructions {
            let (xor, add) = access.split(instruction);
            let (address, offset) = match addresses.get(&xor) {
                Some(known) => *known,
                None => {
                    let offset = thread.map(|thread| {
                        if xor == 0 {
                            return thread;
                        }
                        let d = self.reg(Class::B32);
                        asm!(self, "xor.b32 {d}, {thread}, {}", xor * bytes);
                        d
                    });
                    let address = self.shared_address(offset);
                    addresses.insert(xor, (address, offset));
                    (address, offset)
                }
            };
            accesses.push(SharedAccess { address, offset, constant: add * bytes, registers: instruction.registers.clone() });
        }
        accesses
    }
}

/// The shared-memory address of an instruction of an exchange.
struct SharedAccess {
    address: Reg,
    /// The offset of the address from the start of shared memory; `None` if it is 0.
    offset: Option<Reg>,
    /// Bytes to be added to both.
    constant: u32,
    registers: Vec<u32>,
}

/// The values by bit of the thread index: five bits of the lane, then the bits of the warp.
pub(crate) fn thread_values(table: &XorTable) -> Vec<u32> {
    let mut values = table.lane.clone();
    values.resize(5, 0);
    values.extend(&table.warp);
    values
}

fn with_copies(mut registers: BTreeMap<u32, Reg>, copies: &[(u32, u32)], count: u32) -> Vec<Reg> {
    for (register, from) in copies {
        let copy = registers[from];
        registers.insert(*register, copy);
    }
    (0..count).map(|register| registers[&register]).collect()
}
