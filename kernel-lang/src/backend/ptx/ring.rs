//! Rings: tiles on their way from global to shared memory, each thread's elements to places that only it writes and reads. So nobody waits for
//! another: a thread knows its own copies to have arrived.
//!
//! A thread's elements lie in chunks of 16 bytes, the chunks of all threads side by side: neighbours move neighbouring chunks.

use std::collections::HashMap;
use std::ops::Range;

use crate::analysis::one_reader::Reader;
use crate::dtype::Dtype;
use crate::ir::{Cache, Function, Inst, Op, Region, Value};

use super::registers::{Class, Reg, asm};
use super::{Emitter, Lanes};

/// The most bytes that a thread copies at once.
const CHUNK: u32 = 16;
/// The least bytes that the hardware copies by itself.
const LEAST: u32 = 4;

/// The rings that are alive.
#[derive(Default)]
pub(super) struct Rings {
    alive: Vec<Ring>,
    /// Of each ring, the last op of its own region that names it, or holds one that does.
    last_users: HashMap<Value, Inst>,
}

impl Rings {
    /// Of a kernel of which nothing is emitted yet.
    pub(super) fn of(func: &Function) -> Rings {
        let (mut homes, mut last_users) = (HashMap::new(), HashMap::new());
        note_users(func, func.body, &mut Vec::new(), &mut homes, &mut last_users);
        Rings { alive: Vec::new(), last_users }
    }
}

/// Notes the users of rings under a region; `around` are the regions in which it stands, each with the op that holds the next.
fn note_users(
    func: &Function,
    region: Region,
    around: &mut Vec<(Region, Inst)>,
    homes: &mut HashMap<Value, Region>,
    last_users: &mut HashMap<Value, Inst>,
) {
    for &inst in &func.region(region).insts {
        let data = func.inst(inst);
        around.push((region, inst));
        if let Op::Ring { .. } = data.op {
            homes.insert(data.results[0], region);
            last_users.insert(data.results[0], inst);
        }
        data.op.for_each_operand(&mut |value| {
            let holder = homes.get(&value).and_then(|home| around.iter().find(|(region, _)| region == home));
            last_users.extend(holder.map(|(_, inst)| (value, *inst)));
        });
        data.op.for_each_region(&mut |inner| note_users(func, inner, around, homes, last_users));
        around.pop();
    }
}

struct Ring {
    value: Value,
    /// The op, in the region of the ring, behind which nobody names it.
    last: Inst,
    range: Range<u32>,
    /// Address of the thread's first chunk in the first slot.
    own: Reg,
    slot_bytes: u32,
}

impl Emitter<'_> {
    pub(super) fn ring(&mut self, slots: u32, result: Value) {
        let elements = self.lane_count(result) as u32 * self.func.ty(result).dtype().bytes() as u32;
        let threads = self.schedule.threads();
        let chunk = elements.min(CHUNK);
        let slot_bytes = elements * threads;
        let range = self.hold(slots * slot_bytes);
        let thread = self.thread();
        let own = self.reg(Class::B32);
        let base = self.shared_address(None);
        asm!(self, "mad.lo.s32 {own}, {thread}, {chunk}, {base}");
        let last = self.rings.last_users[&result];
        self.rings.alive.push(Ring { value: result, last, range, own, slot_bytes });
    }

    /// Behind an op: what it was the last to use is free.
    pub(super) fn release_rings(&mut self, inst: Inst) {
        let (gone, alive) = std::mem::take(&mut self.rings.alive).into_iter().partition(|ring| ring.last == inst);
        self.rings.alive = alive;
        let gone: Vec<Ring> = gone;
        gone.into_iter().for_each(|ring| self.give_back(ring.range));
    }

    /// The address of the thread's places in a slot, and what its elements from `register` on add to it.
    fn slot(&mut self, ring: Value, slot: Value) -> (Reg, u32) {
        let slot = self.scalar(slot);
        let known = self.rings.alive.iter().find(|known| known.value == ring).expect("a ring is alive where it is named");
        let (own, bytes, start) = (known.own, known.slot_bytes, known.range.start);
        let address = self.reg(Class::B32);
        asm!(self, "mad.lo.s32 {address}, {slot}, {bytes}, {own}");
        (address, start)
    }

    /// Where an element lies, behind the thread's first one.
    fn ring_place(&self, ring: Value, register: usize, dtype: Dtype) -> u32 {
        let bytes = dtype.bytes() as u32;
        let chunk = (self.lane_count(ring) as u32 * bytes).min(CHUNK);
        let at = register as u32 * bytes;
        at / chunk * chunk * self.schedule.threads() + at % chunk
    }

    pub(super) fn fetch(&mut self, op: &Op) {
        let &Op::Fetch { ring, slot, on, base, offset, mask, cache, evict, align } = op else { return };
        let dtype = self.func.ty(base).dtype();
        let access = self.access(base, offset, align, dtype);
        let (address, start) = self.slot(ring, slot);
        let (on, mask) = (self.scalar(on), mask.map(|mask| self.source(mask)));
        let owner = if self.readers[ring] != Reader::Each { self.owner_of(self.layout(offset).cloned().as_ref()) } else { None };
        let on = self.both(Some(on), owner).unwrap_or(on);
        for first in (0..self.lane_count(offset)).step_by(access.group) {
            let own = mask.as_ref().map(|mask| self.at(mask, first));
            let from = self.place_of(&access, first);
            let to = format!("[{address}+{}]", start + self.ring_place(ring, first, dtype));
            let bytes = (access.group * dtype.bytes()) as u32;
            if bytes < LEAST {
                // Too little for the hardware's copy: through a register.
                let pred = self.both(own, Some(on));
                let instruction = self.load_instruction(cache, evict, false, false);
                let regs = self.load_group(&instruction, &from, dtype, pred, &vec![None; access.group]);
                self.store_group("st.shared", &to, dtype, Some(on), &regs);
                continue;
            }
            let level = if bytes == CHUNK && cache != Cache::All { "cg" } else { "ca" };
            let size = own.map_or(String::new(), |own| {
                let size = self.reg(Class::B32);
                asm!(self, "selp.b32 {size}, {bytes}, 0, {own}");
                format!(", {size}")
            });
            let (hint, policy) = self.copy_policy(cache, evict);
            asm!(self, "@{on} cp.async.{level}.shared.global{hint} {to}, {from}, {bytes}{size}{policy}");
        }
    }

    pub(super) fn fetched(&mut self, ring: Value, slot: Value, result: Value) {
        let dtype = self.func.ty(result).dtype();
        let (address, start) = self.slot(ring, slot);
        let count = self.lane_count(result);
        let group = (CHUNK as usize / dtype.bytes()).min(count);
        let mut regs = Vec::new();
        for first in (0..count).step_by(group) {
            let place = format!("[{address}+{}]", start + self.ring_place(ring, first, dtype));
            regs.extend(self.load_group("ld.shared", &place, dtype, None, &vec![None; group]));
        }
        let lanes = if self.readers[result] == Reader::Broadcast {
            // Only the owner's slots were filled.
            let held = self.held(result);
            let found: Vec<Reg> = held.registers().map(|register| regs[register]).collect();
            self.broadcast_from_owner(&held, dtype, &found, false)
        } else {
            Lanes::Each(regs)
        };
        self.define(result, lanes);
    }
}
