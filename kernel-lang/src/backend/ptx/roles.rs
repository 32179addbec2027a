//! Warp roles: a producer that copies blocks to rings in shared memory, and consumers that multiply them.
//!
//! A ring has two mbarriers for each slot. The *full* one completes a phase when the bytes of all copies to the slot have arrived; the *empty* one when each warp of the
//! consumer has freed the slot. Both sides go through the slots in the same order and keep their position in two registers: the slot, and the parity of the phase for
//! which they wait. The producer begins with the parity of the phase before the first one, which counts as complete. The position is kept over all loops, so it lives in
//! registers that instructions overwrite, outside of the values of the IR.
//!
//! ```text
//! slot            0   1   2   3   0   1   2   3   0
//! parity, full    0   0   0   0   1   1   1   1   0      consumer
//! parity, empty   1   1   1   1   0   0   0   0   1      producer
//! ```

use std::collections::{BTreeMap, BTreeSet};

use crate::ir::{Cache, Def, Evict, Function, Handle, Inst, Op, Region, Value, largest_product, shared_block};
use crate::launch_value::persistent_entry::{self, TensorMap};
use crate::layout::{BLOCK_ALIGNMENT, SharedBlock};

use crate::backend::ptx::Emitter;
use crate::backend::ptx::arithmetic::warpgroup_dot::in_place;
use crate::backend::ptx::exchange::budget::ends;
use crate::backend::ptx::memory::store_block::staged;
use crate::backend::ptx::text::registers::{Class, Reg, asm};

/// The bytes of an mbarrier.
const MBARRIER: u32 = 8;
/// The named barrier of the consumer. Number 0 is that of all threads.
pub(crate) const CONSUMER_BARRIER: u32 = 1;

/// The rings of a kernel, and the state of the role that is being emitted.
#[derive(Default)]
pub(crate) struct Rings {
    /// By the op.
    rings: BTreeMap<usize, Ring>,
    /// The blocks of a slot, by the value that names one.
    blocks: BTreeMap<Value, Slot>,
    /// The tensor maps, in the order of their parameters.
    maps: Vec<TensorMap>,
    /// The predicate that the thread is the first one of its warp.
    pub(crate) leads_warp: Option<Reg>,
    /// The offset of the memory through which warps store blocks, if they do.
    pub(crate) staging: Option<u32>,
    pub(crate) role: Role,
    /// The accumulators whose registers a product overwrites.
    pub(crate) in_place: BTreeSet<Value>,
    /// The rings that products in flight read, by op.
    in_flight: BTreeSet<usize>,
    /// The rings that threads read, by op.
    read: BTreeSet<usize>,
    /// The blocks whose copies round, by the op of the ring and their number.
    rounded: BTreeSet<(usize, usize)>,
}

/// Which threads execute the code that is being emitted.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Role {
    /// All threads of the CTA.
    #[default]
    All,
    /// One thread of a warpgroup of its own.
    Producer,
    /// The threads of the schedule.
    Consumer,
}

#[derive(Clone)]
struct Ring {
    slots: u32,
    /// The offset of the first slot in shared memory.
    start: u32,
    /// The bytes from one slot to the next.
    slot_bytes: u32,
    /// The bytes of the copies to a slot.
    copied_bytes: u32,
    /// The offset of the first mbarrier: those of full slots, and then those of empty ones.
    barriers: u32,
    /// The blocks of a slot, with their offsets in it.
    members: Vec<(u32, SharedBlock)>,
    /// The next slot and its parity.
    position: Option<[Reg; 2]>,
    /// The slot that the producer has acquired last: its offset, and the address of its full mbarrier.
    acquired: Option<[Reg; 2]>,
    /// The address of the empty mbarrier of the slot that products in flight read, or 0. Only of a ring that has such products.
    held: Option<Reg>,
}

/// A block of a slot that the consumer reads.
#[derive(Clone, Copy)]
pub(crate) struct Slot {
    /// The address of the first byte of the block.
    pub(crate) address: Reg,
    pub(crate) block: SharedBlock,
    /// The address of the empty mbarrier.
    empty: Reg,
}

/// A tensor of which instructions copy blocks.
#[derive(Clone, Copy)]
pub(crate) struct Tensor<'a> {
    /// A parameter of the kernel.
    pub(crate) base: Value,
    pub(crate) address: Value,
    /// The corner of the block, and the extents and strides of the tensor.
    pub(crate) place: &'a [Value],
    /// Do copies round `f32` to `tf32`?
    pub(crate) tf32: bool,
}

impl Rings {
    /// Of a kernel, before its rings are emitted.
    pub(crate) fn of(func: &Function) -> Rings {
        let (mut in_flight, mut read, mut rounded) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for inst in func.all_insts() {
            match func.inst(inst).op {
                Op::WarpgroupWait { ring, .. } => _ = in_flight.insert(ring_of(func, ring).0),
                Op::CopyBlock { block, tf32: true, .. } => _ = rounded.insert(ring_of(func, block)),
                Op::ReadBlock { block } => _ = read.insert(ring_of(func, waited(func, block)).0),
                _ => {}
            }
        }
        Rings { in_place: in_place(func), in_flight, read, rounded, ..Rings::default() }
    }

    /// The tensor maps, in the order of their parameters.
    pub(crate) fn maps(&self) -> impl Iterator<Item = &TensorMap> {
        self.maps.iter()
    }

    /// Do the elements of a tile come from a block whose copies round?
    pub(crate) fn is_rounded(&self, func: &Function, mut tile: Value) -> bool {
        while let Some(Op::Convert { x } | Op::Permute { x, .. }) = func.def_op(tile) {
            tile = *x;
        }
        let Some(Op::ReadBlock { block }) = func.def_op(tile) else { return false };
        self.rounded.contains(&(ring_of(func, waited(func, *block)).0, ring_of(func, *block).1))
    }

    /// The block of a slot that a value names.
    pub(crate) fn block(&self, value: Value) -> Slot {
        self.blocks[&value]
    }
}

impl Emitter<'_> {
    /// Allocates a ring and initialises its mbarriers.
    pub(crate) fn ring(&mut self, inst: Inst, slots: u32) {
        let (mut slot_bytes, mut copied_bytes, mut members) = (0, 0, Vec::new());
        for value in &self.func.inst(inst).results {
            let block = shared_block(self.func.ty(*value)).expect("a verified block has an order that the hardware knows");
            members.push((slot_bytes, block));
            slot_bytes += block.bytes().next_multiple_of(BLOCK_ALIGNMENT);
            copied_bytes += block.bytes();
        }
        let start = self.scratch().start;
        let barriers = start + slots * slot_bytes;
        let ring = Ring { slots, start, slot_bytes, copied_bytes, barriers, members, position: None, acquired: None, held: None };
        let base = self.shared_address(None);
        let [thread, others] = [self.thread(), self.reg(Class::Pred)];
        let end = self.asm.label();
        asm!(self, "setp.ne.u32 {others}, {thread}, 0");
        asm!(self, "@{others} bra {end}");
        for (kind, count) in [1, self.schedule.num_warps].into_iter().enumerate() {
            for slot in 0..slots {
                let at = ring.barriers + (kind as u32 * slots + slot) * MBARRIER;
                asm!(self, "mbarrier.init.shared::cta.b64 [{base}+{at}], {count}");
            }
        }
        asm!(self, "fence.mbarrier_init.release.cluster");
        self.asm.define_label(&end);
        self.rings.rings.insert(inst.index(), ring);
    }

    /// Emits both roles. Registers move from the producer to the consumer.
    pub(crate) fn roles(&mut self, producer: Region, consumer: Region) {
        let registers = self.schedule.role_registers(self.workers());
        self.rings.staging = self.placed.has_parts().then(|| self.scratch().start);
        let (thread, consumers) = (self.thread(), self.schedule.threads());
        self.prefetch_maps([consumer, producer]);
        // All threads see the mbarriers.
        asm!(self, "bar.sync 0");
        let [produces, idles] = [0; 2].map(|_| self.reg(Class::Pred));
        let (other, end) = (self.asm.label(), self.asm.label());
        asm!(self, "setp.ge.u32 {produces}, {thread}, {consumers}");
        asm!(self, "@{produces} bra {other}");
        if let Some([_, count]) = registers.of_roles {
            asm!(self, "setmaxnreg.inc.sync.aligned.u32 {count}");
        }
        let (lane, leads) = (self.reg(Class::B32), self.reg(Class::Pred));
        asm!(self, "and.b32 {lane}, {thread}, 31");
        asm!(self, "setp.eq.u32 {leads}, {lane}, 0");
        self.rings.leads_warp = Some(leads);
        self.begin_role(Role::Consumer, 0);
        self.scoped(consumer);
        if self.rings.staging.is_some() {
            // The memory of a CTA is gone when the CTA ends.
            asm!(self, "@{leads} cp.async.bulk.wait_group.read 0");
        }
        asm!(self, "bra {end}");
        self.asm.define_label(&other);
        if let Some([count, _]) = registers.of_roles {
            asm!(self, "setmaxnreg.dec.sync.aligned.u32 {count}");
        }
        asm!(self, "setp.ne.u32 {idles}, {thread}, {consumers}");
        asm!(self, "@{idles} bra {end}");
        self.begin_role(Role::Producer, 1);
        self.scoped(producer);
        self.asm.define_label(&end);
        self.rings.role = Role::All;
    }

    /// The producer's thread fetches the tensor maps while the mbarriers are initialised.
    fn prefetch_maps(&mut self, roles: [Region; 2]) {
        let func = self.func;
        for role in roles {
            func.for_each_inst(role, &mut |inst| match &func.inst(inst).op {
                Op::CopyBlock { block, base, address, place, tf32, .. } => {
                    let (ring, member) = ring_of(func, *block);
                    let block = self.rings.rings[&ring].members[member].1;
                    self.tensor_map(Tensor { base: *base, address: *address, place, tf32: *tf32 }, block);
                }
                Op::StoreBlock { base, value, address, place, swapped } => {
                    self.tensor_map(Tensor { base: *base, address: *address, place, tf32: false }, staged(func, *value, *swapped));
                }
                _ => {}
            });
        }
        let (thread, consumers, produces) = (self.thread(), self.schedule.threads(), self.reg(Class::Pred));
        asm!(self, "setp.eq.u32 {produces}, {thread}, {consumers}");
        for map in 0..self.rings.maps.len() {
            let address = self.map_address(map);
            asm!(self, "@{produces} prefetch.tensormap [{address}]");
        }
    }

    /// The generic address of a tensor map.
    fn map_address(&mut self, map: usize) -> Reg {
        let [offset, address] = [0; 2].map(|_| self.reg(Class::B64));
        asm!(self, "mov.b64 {offset}, {}", persistent_entry::map_name(map));
        asm!(self, "cvta.param.u64 {address}, {offset}");
        address
    }

    /// The workers that a multiprocessor runs at the same time.
    pub(crate) fn workers(&self) -> u32 {
        let workers = self.schedule.workers(largest_product(self.func));
        let bytes = ends(self.func, self.schedule).into_values().max().unwrap_or_default();
        if self.target.ask(|target| bytes <= target.shared_bytes_of(workers)) { workers } else { 1 }
    }

    fn begin_role(&mut self, role: Role, parity: u32) {
        self.rings.role = role;
        let rings: Vec<usize> = self.rings.rings.keys().copied().collect();
        for ring in rings {
            let position = [0, parity].map(|number| {
                let reg = self.reg(Class::B32);
                asm!(self, "mov.b32 {reg}, {number}");
                reg
            });
            let has_products_in_flight = self.rings.in_flight.contains(&ring);
            let held = (role == Role::Consumer && has_products_in_flight).then(|| {
                let reg = self.reg(Class::B32);
                asm!(self, "mov.b32 {reg}, 0");
                reg
            });
            if let Some(ring) = self.rings.rings.get_mut(&ring) {
                (ring.position, ring.held) = (Some(position), held);
            }
        }
    }

    /// The offset of the next slot of a ring, and the addresses of its full and empty mbarriers.
    fn next_slot(&mut self, ring: &Ring) -> [Reg; 3] {
        let [slot, _] = ring.position.expect("a ring is used in a role");
        let [offset, full, empty] = [0; 3].map(|_| self.reg(Class::B32));
        let base = self.shared_address(None);
        asm!(self, "mul.lo.s32 {offset}, {slot}, {}", ring.slot_bytes);
        asm!(self, "mad.lo.s32 {full}, {slot}, {MBARRIER}, {base}");
        asm!(self, "add.s32 {full}, {full}, {}", ring.barriers);
        asm!(self, "add.s32 {empty}, {full}, {}", ring.slots * MBARRIER);
        [offset, full, empty]
    }

    /// Waits for the phase with the parity of the ring's position.
    fn await_phase(&mut self, ring: &Ring, mbarrier: Reg) {
        let [_, parity] = ring.position.expect("a ring is used in a role");
        let (again, done) = (self.asm.label(), self.reg(Class::Pred));
        self.asm.define_label(&again);
        asm!(self, "mbarrier.try_wait.parity.shared::cta.b64 {done}, [{mbarrier}], {parity}");
        asm!(self, "@!{done} bra {again}");
    }

    /// Moves the position to the next slot. After the last one, the phase has the other parity.
    fn advance_ring(&mut self, ring: &Ring) {
        let [slot, parity] = ring.position.expect("a ring is used in a role");
        let (wraps, flipped) = (self.reg(Class::Pred), self.reg(Class::B32));
        asm!(self, "add.s32 {slot}, {slot}, 1");
        asm!(self, "setp.eq.u32 {wraps}, {slot}, {}", ring.slots);
        asm!(self, "selp.b32 {slot}, 0, {slot}, {wraps}");
        asm!(self, "xor.b32 {flipped}, {parity}, 1");
        asm!(self, "selp.b32 {parity}, {flipped}, {parity}, {wraps}");
    }

    pub(crate) fn ring_acquire(&mut self, ring: Value) {
        let (key, _) = ring_of(self.func, ring);
        let ring = self.rings.rings[&key].clone();
        let [offset, full, empty] = self.next_slot(&ring);
        self.await_phase(&ring, empty);
        asm!(self, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [{full}], {}", ring.copied_bytes);
        self.advance_ring(&ring);
        if let Some(ring) = self.rings.rings.get_mut(&key) {
            ring.acquired = Some([offset, full]);
        }
    }

    /// The address of a tensor map, and the index of a block's first element along each axis, for the instructions that copy it. `block` is what one of them copies.
    pub(crate) fn mapped(&mut self, tensor: Tensor<'_>, block: SharedBlock) -> (Reg, Vec<Reg>) {
        let corner = &tensor.place[..tensor.place.len() / 3];
        let map = self.tensor_map(tensor, block);
        let address = self.map_address(map);
        let narrow = |corner: &Value| {
            let (wide, narrow) = (self.scalar(*corner), self.reg(Class::B32));
            asm!(self, "cvt.u32.u64 {narrow}, {wide}");
            narrow
        };
        (address, corner.iter().map(narrow).collect())
    }

    /// Copies a block, one atom after the other.
    pub(crate) fn copy_block(&mut self, to: Value, tensor: Tensor<'_>, once: Option<Value>, evict: Evict) {
        let (key, member) = ring_of(self.func, to);
        let ring = self.rings.rings[&key].clone();
        let [slot, full] = ring.acquired.expect("a verified producer copies to a slot that it has acquired");
        let (offset, block) = ring.members[member];
        let (along, across) = (block.contiguous, 1 - block.contiguous);
        let (address, corner) = self.mapped(tensor, block);
        let to = self.shared_address(Some(slot));
        // A copy that names the usual priority is slower than one that names none: 1024 x 1024 matrices are multiplied in 11.2 instead of 8.7 us (H200).
        let once = once.filter(|_| evict == Evict::Unset).map(|once| self.scalar(once));
        let hinted = self.copy_policy(Cache::Default, if once.is_some() { Evict::First } else { evict });
        for atom in 0..block.atoms() {
            let first = self.plus(corner[along], atom * block.row_elements());
            let at = ring.start + offset + atom * block.atom_bytes();
            let index = tensor_index(&corner, first, corner[across]);
            let mut copy = |guard: &str, (hint, policy): &(&str, String)| {
                asm!(
                    self,
                    "{guard}cp.async.bulk.tensor.{}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes{hint} [{to}+{at}], [{address}, {index}], \
                     [{full}]{policy}",
                    corner.len()
                );
            };
            match once {
                Some(once) => {
                    copy(&format!("@{once} "), &hinted);
                    copy(&format!("@!{once} "), &("", String::new()));
                }
                None => copy("", &hinted),
            }
        }
    }

    /// The sum of a number and a constant.
    pub(crate) fn plus(&mut self, number: Reg, constant: u32) -> Reg {
        if constant == 0 {
            return number;
        }
        let sum = self.reg(Class::B32);
        asm!(self, "add.s32 {sum}, {number}, {constant}");
        sum
    }

    /// The number of the tensor map of these blocks of a tensor.
    fn tensor_map(&mut self, Tensor { base, address, place, tf32 }: Tensor<'_>, block: SharedBlock) -> usize {
        let (extents, strides) = place[place.len() / 3..].split_at(place.len() / 3);
        // The hardware counts axes from the one with neighbours, which has no stride, and a further axis is the last one.
        let axes: Vec<usize> = [block.contiguous, 1 - block.contiguous].into_iter().chain(2..extents.len()).collect();
        let parameter = |value: Value| self.launch_values[&value].first;
        let map = TensorMap {
            dtype: self.func.ty(base).dtype(),
            tf32,
            block: [block.row_elements(), block.rows()].into_iter().chain((2..extents.len()).map(|_| 1)).collect(),
            swizzle: block.row_bytes(),
            address: parameter(address),
            extents: axes.iter().map(|axis| parameter(extents[*axis])).collect(),
            strides: axes[1..].iter().map(|axis| parameter(strides[*axis])).collect(),
        };
        let known = self.rings.maps.iter().position(|known| *known == map);
        known.unwrap_or_else(|| {
            self.rings.maps.push(map);
            self.rings.maps.len() - 1
        })
    }

    pub(crate) fn ring_wait(&mut self, ring: Value, results: &[Value]) {
        let (key, _) = ring_of(self.func, ring);
        let ring = self.rings.rings[&key].clone();
        let [offset, full, empty] = self.next_slot(&ring);
        self.await_phase(&ring, full);
        self.advance_ring(&ring);
        let slot = self.shared_address(Some(offset));
        for (result, (offset, block)) in results.iter().zip(&ring.members) {
            let address = self.reg(Class::B32);
            asm!(self, "add.s32 {address}, {slot}, {}", ring.start + offset);
            self.rings.blocks.insert(*result, Slot { address, block: *block, empty });
        }
    }

    /// One thread of each warp frees the slot for its warp.
    pub(crate) fn ring_release(&mut self, block: Value) {
        self.end_reads(waited(self.func, block));
        let (empty, leads) = (self.rings.block(block).empty, self.rings.leads_warp.expect("a slot is freed by a consumer"));
        asm!(self, "@{leads} mbarrier.arrive.shared::cta.b64 _, [{empty}]");
    }

    /// Frees the slot that products before the last `products` ones have read, and holds that of the block.
    pub(crate) fn ring_release_previous(&mut self, block: Value, products: u32) {
        asm!(self, "wgmma.wait_group.sync.aligned {products}");
        let (held, empty) = (self.release_held(waited(self.func, block)), self.rings.block(block).empty);
        asm!(self, "mov.b32 {held}, {empty}");
    }

    /// Waits for all products, whose sums stay in their registers, and frees the slot that they read.
    pub(crate) fn warpgroup_wait(&mut self, ring: Value, sums: &[Value], results: &[Value]) {
        asm!(self, "wgmma.wait_group.sync.aligned 0");
        let held = self.release_held(ring);
        asm!(self, "mov.b32 {held}, 0");
        for (sum, result) in sums.iter().zip(results) {
            let lanes = self.lanes(*sum);
            self.define(*result, lanes);
        }
    }

    /// Before a slot is free, all lanes have read their elements of it.
    fn end_reads(&mut self, ring: Value) {
        if self.rings.read.contains(&ring_of(self.func, ring).0) {
            asm!(self, "bar.warp.sync 0xffffffff");
        }
    }

    /// One thread of each warp frees the slot that is held, if any, for its warp.
    fn release_held(&mut self, ring: Value) -> Reg {
        self.end_reads(ring);
        let (key, _) = ring_of(self.func, ring);
        let held = self.rings.rings[&key].held.expect("a ring with products in flight holds a slot");
        let (leads, frees) = (self.rings.leads_warp.expect("a slot is freed by a consumer"), self.reg(Class::Pred));
        asm!(self, "setp.ne.and.u32 {frees}, {held}, 0, {leads}");
        asm!(self, "@{frees} mbarrier.arrive.shared::cta.b64 _, [{held}]");
        held
    }
}

/// The ring of which a value is a block, and the number of the block.
fn ring_of(func: &Function, block: Value) -> (usize, usize) {
    match func.def(block) {
        Def::Result(inst, member) => (inst.index(), member),
        Def::Param(..) => unreachable!("a verified block is one of a ring"),
    }
}

/// The ring of a block of `ring_wait`.
fn waited(func: &Function, block: Value) -> Value {
    let Some(Op::RingWait { ring }) = func.def_op(block) else { unreachable!("a verified block is one of a slot") };
    *ring
}

/// The operand of a tensor copy with the index of the first element: along the axis with neighbours, along the other one, and then along further ones.
pub(crate) fn tensor_index(corner: &[Reg], along: Reg, across: Reg) -> String {
    let index: Vec<String> = [along, across].iter().chain(&corner[2..]).map(Reg::to_string).collect();
    format!("{{{}}}", index.join(", "))
}

/// The shared memory of a ring: its slots, and behind them two mbarriers for each. Rings follow one another, each at a multiple of the alignment.
pub(crate) fn ring_bytes(func: &Function, ring: Inst, slots: u32) -> u32 {
    let bytes = |block: &Value| shared_block(func.ty(*block)).map_or(0, SharedBlock::bytes).next_multiple_of(BLOCK_ALIGNMENT);
    let blocks: u32 = func.inst(ring).results.iter().map(bytes).sum();
    (slots * (blocks + 2 * MBARRIER)).next_multiple_of(BLOCK_ALIGNMENT)
}
