//! Async buffers whose slots are common to all threads: the operands of matrix products. The threads copy each element once, in the layout of coalesced loads, and each warp
//! reads its fragments by `ldmatrix` or by vector loads. [`SharedTile`] is the order of the elements in a slot.
//!
//! Barriers separate copies from reads: see [`allocate_shared`](crate::backend::ptx::allocate_shared).

use rustc_hash::FxHashMap;

use crate::dtype::Dtype;
use crate::ir::{ConstExpr, Evict, Function, Op, Value};
use crate::layout::{Access, PartAccess, SharedTile, XorTable};

use crate::backend::ptx::exchange::relayout::thread_values;
use crate::backend::ptx::text::registers::{Class, Reg, asm};
use crate::backend::ptx::{Emitter, Lanes};

use super::async_buffer::LEAST;

/// So many elements are loaded, and then stored, where a copy is too narrow for `cp.async`.
const LOADED_AT_ONCE: usize = 32;

/// Are the slots of an async buffer common to all threads?
pub(crate) fn is_common(func: &Function, buffer: Value) -> bool {
    matches!(func.def_op(buffer), Some(Op::AsyncBuffer { common: true, .. }))
}

/// By common buffer: a part that is read from it. All parts of an operand have layouts of fragments, so the order that suits one suits all.
pub(crate) fn parts_of(func: &Function) -> FxHashMap<Value, Value> {
    let mut parts = FxHashMap::default();
    for inst in func.all_insts() {
        if let Op::LocalLoad { buffer, first: Some(_), .. } = func.inst(inst).op {
            parts.entry(buffer).or_insert(func.result(inst));
        }
    }
    parts
}

/// A buffer that was emitted.
pub(crate) struct CommonBuffer {
    tile: SharedTile,
    /// The address of the first slot.
    base: Reg,
    slot_bytes: u32,
    /// What the thread adds to offsets, in bytes, for each access to the tile. It does not change in loops.
    threads: Vec<(XorTable, Option<Reg>)>,
}

/// An instruction that accesses a slot.
struct SlotAccess {
    address: String,
    registers: Vec<u32>,
}

impl Emitter<'_> {
    pub(super) fn common_buffer(&mut self, result: Value) {
        let func = self.func;
        let start = self.scratch().start;
        let bytes = func.ty(result).dtype().bytes() as u32;
        let layout = |value: Value| func.layouts[value].as_ref().expect("tiles have layouts");
        // Nobody reads a buffer without parts.
        let part = self.parts.get(&result).copied().unwrap_or(result);
        let tile = SharedTile::new(layout(result), layout(part), 8 * bytes).expect("fragments have the threads of the program");
        let (shared, base) = (self.shared_address(None), self.reg(Class::B32));
        asm!(self, "add.s32 {base}, {shared}, {start}");
        let read = tile.part(layout(part), &vec![0; layout(part).rank()]).map(|part| part.access.thread);
        let tables = [Some(tile.store.thread.clone()), read].into_iter().flatten();
        let threads = tables.map(|table| {
            let own = self.offset_of_thread(&table, bytes);
            (table, own)
        });
        let threads = threads.collect();
        let slot_bytes = func.ty(result).numel() as u32 * bytes;
        self.common_buffers.insert(result, CommonBuffer { tile, base, slot_bytes, threads });
    }

    fn offset_of_thread(&mut self, table: &XorTable, bytes: u32) -> Option<Reg> {
        let scaled: Vec<u32> = thread_values(table).into_iter().map(|value| value * bytes).collect();
        self.xor_of_thread_bits(&scaled)
    }

    /// The addresses of an access to a slot.
    fn slot_accesses(&mut self, [buffer, slot]: [Value; 2], access: &Access, bytes: u32) -> Vec<SlotAccess> {
        let slot = self.scalar(slot);
        let CommonBuffer { base, slot_bytes, ref threads, .. } = self.common_buffers[&buffer];
        let known = threads.iter().find(|(table, _)| *table == access.thread).map(|(_, own)| *own);
        let begin = self.reg(Class::B32);
        asm!(self, "mad.lo.s32 {begin}, {slot}, {slot_bytes}, {base}");
        let thread = known.unwrap_or_else(|| self.offset_of_thread(&access.thread, bytes));
        self.accesses_from(begin, thread, access, bytes)
    }

    /// The addresses of an access to a tile in shared memory. `begin` is the address of the tile, and `thread` what the thread adds to it.
    fn accesses_from(&mut self, begin: Reg, thread: Option<Reg>, access: &Access, bytes: u32) -> Vec<SlotAccess> {
        let mut addresses: FxHashMap<u32, Reg> = FxHashMap::default();
        let instructions = access.instructions.iter().map(|instruction| {
            let (xor, add) = access.split(instruction);
            let address = *addresses.entry(xor).or_insert_with(|| {
                let Some(mut own) = thread else { return begin };
                if xor != 0 {
                    let other = self.reg(Class::B32);
                    asm!(self, "xor.b32 {other}, {own}, {}", xor * bytes);
                    own = other;
                }
                let address = self.reg(Class::B32);
                asm!(self, "add.s32 {address}, {begin}, {own}");
                address
            });
            SlotAccess { address: format!("[{address}+{}]", add * bytes), registers: instruction.registers.clone() }
        });
        instructions.collect()
    }

    /// Copies the elements that the thread holds in the buffer's layout. Elements that `cp.async` cannot copy go through registers.
    pub(super) fn copy_to_common(&mut self, op: &Op) {
        let &Op::AsyncCopy { buffer, slot, on, base, offset, mask, cache, evict, align, .. } = op else { return };
        let dtype = self.func.ty(base).dtype();
        let from = self.access(base, offset, align, dtype);
        let store = self.common_buffers[&buffer].tile.store.clone();
        let accesses = self.slot_accesses([buffer, slot], &store, dtype.bytes() as u32);
        let (on, mask) = (self.copies_if(on), mask.map(|mask| self.source(mask)));
        let thread = self.thread();
        let owner = self.owner(store.idle.lane | store.idle.warp << 5, thread);
        let on = self.both(on, owner);
        let mut loaded: Vec<(String, Vec<Reg>)> = Vec::new();
        let mut count = 0;
        for SlotAccess { address, registers } in accesses {
            let group = common_run(&registers, from.group);
            let bytes = (group * dtype.bytes()) as u32;
            let mut elements = Vec::new();
            for (number, run) in registers.chunks(group).enumerate() {
                let first = run[0] as usize;
                let own = mask.as_ref().map(|mask| self.at(mask, first));
                let from = self.address_operand(&from, first);
                if bytes >= LEAST {
                    let to = behind(&address, number as u32 * bytes);
                    // Without a priority: ptxas 13.0 takes a uniform summand of the address into a copy, and if the copy also has an L2 policy, it makes an
                    // instruction that an H200 does not know. The address of another async buffer comes from one `mad`, which has no such summand.
                    self.copy_chunk([&to, &from], bytes, [on, own], (cache, Evict::Unset));
                } else {
                    let pred = self.both(own, on);
                    let instruction = self.load_instruction(cache, evict, false, false);
                    elements.extend(self.load_group(&instruction, &from, dtype, pred, &vec![None; group]));
                }
            }
            if bytes < LEAST {
                // Elements that are loaded one by one are stored together.
                loaded.push((address, elements));
                count += registers.len();
            }
            if count >= LOADED_AT_ONCE {
                count = 0;
                self.store_loaded(std::mem::take(&mut loaded), dtype, on);
            }
        }
        self.store_loaded(loaded, dtype, on);
    }

    /// The condition of a copy, unless it is the constant `true`.
    fn copies_if(&mut self, on: Value) -> Option<Reg> {
        let is_always = matches!(self.func.def_op(on), Some(Op::Const { value: ConstExpr::Bool(true) }));
        (!is_always).then(|| self.scalar(on))
    }

    fn store_loaded(&mut self, loaded: Vec<(String, Vec<Reg>)>, dtype: Dtype, on: Option<Reg>) {
        for (to, elements) in loaded {
            self.store_group("st.shared", &to, dtype, on, &elements);
        }
    }

    /// Reads a part of a slot.
    pub(super) fn load_common(&mut self, slot: [Value; 2], first: &[u32], result: Value) {
        let dtype = self.func.ty(result).dtype();
        let layout = self.func.layouts[result].as_ref().expect("tiles have layouts");
        let part = self.common_buffers[&slot[0]].tile.part(layout, first).expect("a verified part belongs to the tile");
        let accesses = self.slot_accesses(slot, &part.access, dtype.bytes() as u32);
        self.load_part(&part, accesses, result);
    }

    /// Reads a block of a ring.
    pub(crate) fn read_block(&mut self, block: Value, result: Value) {
        let slot = self.rings.block(block);
        let layout = self.func.layouts[result].as_ref().expect("tiles have layouts");
        let part = slot.block.read(layout).expect("a block has all elements of its tile");
        let bytes = slot.block.element_bytes;
        let thread = self.offset_of_thread(&part.access.thread, bytes);
        let accesses = self.accesses_from(slot.address, thread, &part.access, bytes);
        self.load_part(&part, accesses, result);
    }

    fn load_part(&mut self, part: &PartAccess, accesses: Vec<SlotAccess>, result: Value) {
        let dtype = self.func.ty(result).dtype();
        let count = self.lane_count(result);
        let mut elements: Vec<Option<Reg>> = vec![None; count];
        for SlotAccess { address, registers } in accesses {
            let loaded = if part.by_matrices {
                self.load_matrices(&address, dtype)
            } else {
                self.load_group("ld.shared", &address, dtype, None, &vec![None; registers.len()])
            };
            registers.iter().zip(loaded).for_each(|(register, element)| elements[*register as usize] = Some(element));
        }
        for (register, from) in &part.copies {
            elements[*register as usize] = elements[*from as usize];
        }
        let elements = elements.into_iter().map(|element| element.expect("a part has all elements")).collect();
        self.define(result, Lanes::Each(elements));
    }

    /// Four matrices of 16-bit elements, transposed.
    fn load_matrices(&mut self, address: &str, dtype: Dtype) -> Vec<Reg> {
        let words = [0; 4].map(|_| self.reg(Class::B32));
        let [a, b, c, d] = words;
        asm!(self, "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {{{a}, {b}, {c}, {d}}}, {address}");
        self.loaded_elements(&words, dtype, 8)
    }
}

/// How many neighbours in memory are also neighbours in registers and in the tensor, where `group` of them begin at a multiple of `group`.
fn common_run(registers: &[u32], group: usize) -> usize {
    let mut run = 1;
    let is_run = |run: usize| {
        registers.chunks(run).all(|part| {
            part.len() == run && (part[0] as usize).is_multiple_of(run) && part.iter().zip(part[0]..).all(|(own, next)| *own == next)
        })
    };
    while 2 * run <= group && is_run(2 * run) {
        run *= 2;
    }
    run
}

/// The operand that many bytes behind `[address+constant]`.
fn behind(operand: &str, bytes: u32) -> String {
    match bytes {
        0 => operand.to_string(),
        bytes => format!("{}+{bytes}]", operand.trim_end_matches(']')),
    }
}
