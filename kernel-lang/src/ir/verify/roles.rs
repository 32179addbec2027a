//! The invariants of roles, and of the rings between them.

use std::collections::{BTreeMap, BTreeSet};

use super::Verifier;
use crate::ir::arena::{Inst, Region, SideTable, Value};
use crate::ir::constexpr::ConstExpr;
use crate::ir::function::{Def, Function};
use crate::ir::ops::Op;
use crate::ir::types::Type;

/// The region in which an op stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The body of the kernel.
    Body,
    Producer,
    Consumer,
}

/// A slot that a producer fills.
struct Filled {
    acquire: Inst,
    /// By block of the slot: has it been copied?
    copied: Vec<bool>,
}

/// A slot that a consumer reads.
struct Read {
    wait: Inst,
    /// The products in flight that read it.
    in_flight: u32,
}

impl Verifier<'_> {
    /// Invariants 16 to 19.
    pub(super) fn roles(&mut self) {
        let func = self.func;
        let insts = func.all_insts();
        let is_of_roles = |inst: &Inst| needed_place(&func.inst(*inst).op).is_some() || is_of_workers(&func.inst(*inst).op);
        if !insts.iter().any(is_of_roles) {
            return;
        }
        let mut places: SideTable<Inst, Option<Place>> = SideTable::new();
        let (mut roles, mut conditions) = (0, 0);
        for inst in &func.region(func.body).insts {
            places[*inst] = Some(Place::Body);
            match func.inst(*inst).op {
                Op::Roles { producer, consumer } => {
                    func.for_each_inst(producer, &mut |inst| places[inst] = Some(Place::Producer));
                    func.for_each_inst(consumer, &mut |inst| places[inst] = Some(Place::Consumer));
                    roles += 1;
                }
                Op::RunsIf { .. } => conditions += 1,
                _ => {}
            }
        }
        for inst in insts {
            let (op, place) = (&func.inst(inst).op, places[inst]);
            if let Some(needed) = needed_place(op).filter(|needed| place != Some(*needed)) {
                self.broken(
                    inst,
                    match needed {
                        Place::Body => "stands in a region of another op",
                        Place::Producer => "stands outside of a producer",
                        Place::Consumer => "stands outside of a consumer",
                    },
                );
            }
            match op {
                Op::Roles { .. } if roles > 1 => self.broken(inst, "is not the only one of its kernel"),
                Op::RunsIf { .. } if conditions > 1 => self.broken(inst, "is not the only one of its kernel"),
                op if is_of_workers(op) && roles == 0 => self.broken(inst, "is in a kernel without roles"),
                // A launch value is one of the grid of programs.
                Op::ProgramId { .. } | Op::NumPrograms { .. } if roles > 0 && place.is_some() => {
                    self.broken(inst, "counts programs, and a CTA of a kernel with roles is a worker");
                }
                _ => {}
            }
            if place == Some(Place::Producer) && !is_of_producer(func, inst) {
                self.broken(inst, "stands in a producer, which computes scalars and copies blocks");
            }
            match op {
                Op::CopyBlock { block, address, place, .. } => {
                    let contiguous = if let Type::Shared { contiguous, .. } = func.ty(*block) { *contiguous } else { 0 };
                    self.tensor(inst, *address, place, contiguous as usize);
                }
                Op::StoreBlock { address, place, .. } => self.tensor(inst, *address, place, 1),
                Op::Roles { producer, consumer } => {
                    func.regions_under(*producer).into_iter().for_each(|region| self.fills(region));
                    func.regions_under(*consumer).into_iter().for_each(|region| self.reads(region));
                }
                _ => {}
            }
        }
        self.sums_in_flight();
    }

    /// Invariant 17 in a region of a producer: each slot that is acquired gets all of its blocks.
    fn fills(&mut self, region: Region) {
        let func = self.func;
        let mut filled: BTreeMap<Inst, Filled> = BTreeMap::new();
        let mut incomplete = Vec::new();
        for inst in &func.region(region).insts {
            match func.inst(*inst).op {
                Op::RingAcquire { ring } => {
                    let Some((ring, _)) = block_of(func, ring) else { continue };
                    let slot = Filled { acquire: *inst, copied: vec![false; func.inst(ring).results.len()] };
                    incomplete.extend(filled.insert(ring, slot));
                }
                Op::CopyBlock { block, .. } => {
                    let Some((ring, member)) = block_of(func, block) else { continue };
                    match filled.get_mut(&ring).map(|slot| &mut slot.copied[member]) {
                        None => self.broken(*inst, "copies to a slot that its region does not acquire"),
                        Some(true) => self.broken(*inst, "copies to a block twice"),
                        Some(copied) => *copied = true,
                    }
                }
                _ => {}
            }
        }
        incomplete.extend(filled.into_values());
        for slot in incomplete.into_iter().filter(|slot| slot.copied.contains(&false)) {
            self.broken(slot.acquire, "acquires a slot to which its region does not copy all blocks");
        }
    }

    /// Invariants 18 and 19 in a region of a consumer: it frees each slot for which it waits, once, and reads none that is free. A loop that frees the previous slots is
    /// followed by a `warpgroup_wait`, which frees the last one.
    fn reads(&mut self, region: Region) {
        let func = self.func;
        // The slot of each ring that the region reads, and the rings of which a loop holds a slot.
        let mut slots: BTreeMap<Inst, Read> = BTreeMap::new();
        let mut held: BTreeMap<Inst, Inst> = BTreeMap::new();
        for inst in &func.region(region).insts {
            match &func.inst(*inst).op {
                Op::RingWait { ring } => {
                    let Some((ring, _)) = block_of(func, *ring) else { continue };
                    if slots.insert(ring, Read { wait: *inst, in_flight: 0 }).is_some() || held.contains_key(&ring) {
                        self.broken(*inst, "waits for a slot before the one before it is free");
                    }
                }
                Op::ReadBlock { block } if !wait_of(func, *block).is_some_and(|wait| slots.values().any(|slot| slot.wait == wait)) => {
                    self.broken(*inst, "reads a slot for which its region does not wait, or which is free");
                }
                Op::WarpgroupDot { a, b, in_flight, .. } => {
                    let waits: Vec<Inst> = [a, b].into_iter().filter_map(|block| wait_of(func, *block)).collect();
                    if !waits.iter().all(|wait| slots.values().any(|slot| slot.wait == *wait)) {
                        self.broken(*inst, "reads a slot for which its region does not wait, or which is free");
                    }
                    slots.values_mut().filter(|slot| waits.contains(&slot.wait)).for_each(|slot| slot.in_flight += u32::from(*in_flight));
                }
                Op::RingRelease { block } | Op::RingReleasePrevious { block, .. } => {
                    let Some(wait) = wait_of(func, *block) else { continue };
                    let ring = slots.iter().find(|(_, slot)| slot.wait == wait).map(|(ring, _)| *ring);
                    let Some(slot) = ring.and_then(|ring| slots.remove(&ring)) else {
                        self.broken(*inst, "frees a slot for which its region does not wait, or which is free");
                        continue;
                    };
                    match func.inst(*inst).op {
                        Op::RingReleasePrevious { products, .. } if products > slot.in_flight => {
                            self.broken(*inst, "frees a slot that a product in flight may read");
                        }
                        Op::RingRelease { .. } if slot.in_flight > 0 => self.broken(*inst, "frees a slot that a product in flight reads"),
                        _ => {}
                    }
                }
                Op::For { body, .. } => {
                    for inner in &func.region(*body).insts {
                        if let Op::RingReleasePrevious { block, .. } = func.inst(*inner).op
                            && let Some(Op::RingWait { ring }) = func.def_op(block)
                            && let Some((ring, _)) = block_of(func, *ring)
                        {
                            held.insert(ring, *inst);
                        }
                    }
                }
                Op::WarpgroupWait { ring, .. } => {
                    block_of(func, *ring).and_then(|(ring, _)| held.remove(&ring));
                }
                _ => {}
            }
        }
        slots.into_values().for_each(|slot| self.broken(slot.wait, "waits for a slot that its region does not free"));
        held.into_values().for_each(|inst| self.broken(inst, "holds a slot that no `warpgroup_wait` behind it frees"));
    }

    /// Invariant 19: sums in flight are used by products in flight, by the loops that carry them, and by a `warpgroup_wait`, once.
    fn sums_in_flight(&mut self) {
        let func = self.func;
        let insts = func.all_insts();
        let mut in_flight: SideTable<Value, bool> = SideTable::new();
        let mut carriers: BTreeSet<Inst> = BTreeSet::new();
        let mut grows = true;
        while grows {
            grows = false;
            for inst in &insts {
                let data = func.inst(*inst);
                let mut add = |values: &[Value]| {
                    for value in values {
                        grows |= !std::mem::replace(&mut in_flight[*value], true);
                    }
                };
                match &data.op {
                    Op::WarpgroupDot { in_flight: true, .. } => add(&data.results),
                    Op::For { init, body, .. } if !func.region(*body).insts.is_empty() => {
                        let (params, yielded) = (&func.region(*body).params[1..], func.yielded(*body));
                        let carried = (0..init.len().min(params.len()).min(yielded.len()))
                            .filter(|number| in_flight[init[*number]] || in_flight[yielded[*number]])
                            .collect::<Vec<usize>>();
                        for number in carried {
                            grows |= !std::mem::replace(&mut in_flight[params[number]], true);
                            grows |= !std::mem::replace(&mut in_flight[data.results[number]], true);
                            carriers.extend([*inst, func.terminator(*body)]);
                        }
                    }
                    _ => {}
                }
            }
        }
        let mut used: SideTable<Value, bool> = SideTable::new();
        for inst in insts {
            let op = &func.inst(inst).op;
            op.for_each_operand(&mut |value| {
                if !in_flight[value] {
                    return;
                }
                let may_use = match op {
                    Op::WarpgroupDot { acc, in_flight, .. } => *in_flight && *acc == value,
                    Op::WarpgroupWait { .. } => true,
                    _ => carriers.contains(&inst),
                };
                if !may_use {
                    self.broken(inst, format!("uses {value}, the sums of a product in flight"));
                } else if std::mem::replace(&mut used[value], true) {
                    self.broken(inst, format!("uses {value} again, the sums of a product in flight"));
                }
            });
        }
    }

    /// Invariant 16: the host makes the tensor map.
    fn tensor(&mut self, inst: Inst, address: Value, place: &[Value], contiguous: usize) {
        let func = self.func;
        let (extents, strides) = place[place.len() / 3..].split_at(place.len() / 3);
        let is_launch_value = |value: &Value| matches!(func.def_op(*value), Some(Op::LaunchValue { .. }));
        let others = strides.iter().enumerate().filter(|(axis, _)| *axis != contiguous).map(|(_, stride)| stride);
        if ![address].iter().chain(extents).chain(others).all(is_launch_value) {
            self.broken(inst, "has a tensor whose address, extents and strides are no launch values");
        }
        if !matches!(func.def_op(strides[contiguous]), Some(Op::Const { value: ConstExpr::Int(1) })) {
            self.broken(inst, "has no stride of 1 along the axis whose neighbours are adjacent");
        }
    }
}

fn needed_place(op: &Op) -> Option<Place> {
    match op {
        Op::Roles { .. } | Op::RunsIf { .. } | Op::Ring { .. } => Some(Place::Body),
        Op::RingAcquire { .. } | Op::CopyBlock { .. } => Some(Place::Producer),
        Op::RingWait { .. }
        | Op::ReadBlock { .. }
        | Op::RingRelease { .. }
        | Op::RingReleasePrevious { .. }
        | Op::StoreBlock { .. }
        | Op::WarpgroupDot { .. }
        | Op::WarpgroupWait { .. } => Some(Place::Consumer),
        _ => None,
    }
}

fn is_of_workers(op: &Op) -> bool {
    matches!(op, Op::Worker {} | Op::NumWorkers {})
}

/// Does one thread execute the op?
fn is_of_producer(func: &Function, inst: Inst) -> bool {
    let data = func.inst(inst);
    let mut has_tiles = data.results.iter().any(|result| func.ty(*result).is_tile());
    data.op.for_each_operand(&mut |operand| has_tiles |= func.ty(operand).is_tile());
    // An op of the consumer is reported as such.
    !has_tiles && (data.op.has_regions() || data.op.is_terminator() || data.op.is_pure()) || needed_place(&data.op).is_some()
}

/// The ring of which a value names a block, and the number of the block.
fn block_of(func: &Function, block: Value) -> Option<(Inst, usize)> {
    match func.def(block) {
        Def::Result(inst, number) if matches!(func.inst(inst).op, Op::Ring { .. }) => Some((inst, number)),
        _ => None,
    }
}

/// The wait that gave a block.
fn wait_of(func: &Function, block: Value) -> Option<Inst> {
    match func.def(block) {
        Def::Result(inst, _) if matches!(func.inst(inst).op, Op::RingWait { .. }) => Some(inst),
        _ => None,
    }
}
