//! The invariants of roles, and of the rings between them.

use std::collections::BTreeMap;

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

impl Verifier<'_> {
    /// Invariants 16 to 18.
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

    /// Invariant 18 in a region of a consumer: it frees each slot for which it waits, once, and reads none that is free.
    fn reads(&mut self, region: Region) {
        let func = self.func;
        // The wait for the slot of each ring that the region reads.
        let mut slots: BTreeMap<Inst, Inst> = BTreeMap::new();
        for inst in &func.region(region).insts {
            match func.inst(*inst).op {
                Op::RingWait { ring } => {
                    let Some((ring, _)) = block_of(func, ring) else { continue };
                    if slots.insert(ring, *inst).is_some() {
                        self.broken(*inst, "waits for a slot before the one before it is free");
                    }
                }
                Op::WarpgroupDot { a, b, .. } => {
                    let mut waits = [a, b].into_iter().filter_map(|block| wait_of(func, block));
                    if !waits.all(|wait| slots.values().any(|slot| *slot == wait)) {
                        self.broken(*inst, "reads a slot for which its region does not wait, or which is free");
                    }
                }
                Op::RingRelease { block } => {
                    let Some(wait) = wait_of(func, block) else { continue };
                    let before = slots.len();
                    slots.retain(|_, slot| *slot != wait);
                    if slots.len() == before {
                        self.broken(*inst, "frees a slot for which its region does not wait, or which is free");
                    }
                }
                _ => {}
            }
        }
        slots.into_values().for_each(|wait| self.broken(wait, "waits for a slot that its region does not free"));
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
        Op::RingWait { .. } | Op::RingRelease { .. } | Op::StoreBlock { .. } | Op::WarpgroupDot { .. } => Some(Place::Consumer),
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
