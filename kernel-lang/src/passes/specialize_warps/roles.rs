//! The body of the version with roles: the loops of both roles over the programs of a worker.

use rustc_hash::FxHashMap;

use crate::analysis::blocks::{Block, MOST_EXTENT};
use crate::dtype::Dtype;
use crate::ir::rewrite::{Substitution, copy_regions};
use crate::ir::{BinaryOp, Builder, ConstExpr, Def, Evict, Function, Inst, Op, Region, SideTable, Type, Value};
use crate::location::Loc;

use super::launch::{self, Place};
use super::plan::{Plan, Stored};
use super::programs::{Grid, group};
use super::slice::Slice;

/// Replaces the body of `func`, a copy of `original`.
pub(super) fn build(func: &mut Function, original: &Function, plan: &Plan, slice: &Slice) {
    func.insts_mut(func.body).clear();
    let head = func.body;
    let places = launch::append(func, original, plan, head);
    let grid = Grid::append(func, head, group(plan.tile));
    let mut rings: Vec<Vec<Value>> = Vec::new();
    for ring in &plan.rings {
        let types: Vec<Type> = ring.members.iter().map(|load| plan.loads[load].ty(original)).collect();
        let inst = func.append(head, Op::Ring { slots: ring.slots }, types, ring.loc);
        rings.push(func.inst(inst).results.to_vec());
    }
    let mut b = Builder::new(func, head, Loc::NONE);
    let [worker, workers] = [Op::Worker {}, Op::NumWorkers {}].map(|op| b.op(op, &[])).map(|count| b.cast(count, Dtype::I32));
    let mut maker = Maker { original, plan, slice, places: &places, grid, rings: &rings, waited: FxHashMap::default() };
    let producer = maker.role(func, [worker, workers], &mut |maker, func, to, map| maker.produce(func, original.body, to, map));
    let consumer = maker.role(func, [worker, workers], &mut |maker, func, to, map| maker.consume(func, original.body, to, map));
    func.append(head, Op::Roles { producer, consumer }, [], Loc::NONE);
    func.append(head, Op::Return {}, [], Loc::NONE);
}

/// Copies ops of the original kernel into a role.
struct Maker<'a> {
    original: &'a Function,
    plan: &'a Plan,
    slice: &'a Slice,
    places: &'a FxHashMap<Inst, Place>,
    grid: Grid,
    /// The blocks of each ring.
    rings: &'a [Vec<Value>],
    /// The blocks of the slot of each ring that the consumer reads.
    waited: FxHashMap<usize, Vec<Value>>,
}

impl Maker<'_> {
    /// A role: a loop over the programs of a worker.
    fn role(
        &mut self,
        func: &mut Function,
        [worker, workers]: [Value; 2],
        body: &mut dyn FnMut(&mut Self, &mut Function, Region, &mut Substitution),
    ) -> Region {
        let (role, program) = (func.add_region(), func.add_region());
        let number = func.add_region_param(program, func.ty(worker).clone());
        let ids = self.grid.ids(&mut Builder::new(func, program, Loc::NONE), number);
        let mut map = Substitution::new();
        for inst in self.original.all_insts() {
            match self.original.inst(inst).op {
                Op::ProgramId { axis } => map.insert(self.original.result(inst), ids[axis as usize]),
                Op::NumPrograms { axis } => map.insert(self.original.result(inst), self.grid.programs[axis as usize]),
                _ => {}
            }
        }
        body(self, func, program, &mut map);
        func.append(program, Op::Yield { values: Vec::new() }, [], Loc::NONE);
        let once = || Some(Box::new(ConstExpr::Int(1)));
        let op = Op::For {
            lower: worker,
            upper: self.grid.total,
            step: workers,
            init: Vec::new(),
            body: program,
            num_stages: once(),
            unroll: once(),
            remainder: false,
            guarded: false,
        };
        func.append(role, op, [], Loc::NONE);
        func.append(role, Op::Yield { values: Vec::new() }, [], Loc::NONE);
        role
    }

    fn is_of_grid(&self, inst: Inst) -> bool {
        matches!(self.original.inst(inst).op, Op::ProgramId { .. } | Op::NumPrograms { .. })
    }

    /// Copies the ops of the slice, and replaces loads by copies of blocks.
    fn produce(&mut self, func: &mut Function, from: Region, to: Region, map: &mut Substitution) {
        let original = self.original;
        for inst in &original.region(from).insts {
            let data = original.inst(*inst);
            if let Some(copied) = self.plan.loads.get(inst) {
                let ring = &self.plan.rings[copied.ring];
                let blocks = &self.rings[copied.ring];
                if ring.members[0] == *inst {
                    func.append(to, Op::RingAcquire { ring: blocks[0] }, [], data.loc);
                }
                let mut b = Builder::new(func, to, data.loc);
                let at = &self.places[inst];
                let place = place(&mut b, &copied.block, at, map);
                let evict = if let Op::Load { evict, .. } = data.op { evict } else { Evict::Unset };
                let (block, base) = (blocks[copied.member], copied.block.base);
                let op = Op::CopyBlock { block, base, address: at.address, place, once: at.once, evict, tf32: copied.tf32 };
                func.append(to, op, [], data.loc);
            } else if self.slice.control[*inst] {
                self.copy_control(func, *inst, to, map);
            } else if !self.is_of_grid(*inst) && data.results.iter().any(|result| self.slice.values[*result]) {
                copy_op(func, original, *inst, to, map);
            }
        }
    }

    /// Copies a branch or a loop with those of its results that the producer needs.
    fn copy_control(&mut self, func: &mut Function, inst: Inst, to: Region, map: &mut Substitution) {
        let original = self.original;
        let data = original.inst(inst);
        let carried = self.slice.carried(original, inst);
        let of = |values: &[Value]| carried.iter().map(|number| values[*number]).collect::<Vec<Value>>();
        let mut op = data.op.clone();
        let kept = match &mut op {
            Op::For { init, .. } | Op::While { init, .. } => {
                *init = of(init);
                true
            }
            _ => false,
        };
        op.map_operands(&mut |value| map.get(value));
        let mut number = 0;
        let is_for = matches!(op, Op::For { .. });
        op.map_regions(&mut |region| {
            let copy = func.add_region();
            let params = &original.region(region).params;
            let params = match (kept, is_for) {
                (true, true) => [&params[..1], &of(&params[1..])].concat(),
                (true, false) => of(params),
                (false, _) => Vec::new(),
            };
            for param in params {
                let new = func.add_region_param(copy, original.ty(param).clone());
                map.insert(param, new);
            }
            self.produce(func, region, copy, map);
            let end = original.terminator(region);
            let mut last = original.inst(end).op.clone();
            if let Op::Yield { values } | Op::Condition { values, .. } = &mut last {
                *values = of(values);
            }
            last.map_operands(&mut |value| map.get(value));
            func.append(copy, last, [], original.inst(end).loc);
            number += 1;
            copy
        });
        let results = of(&data.results);
        let types: Vec<Type> = results.iter().map(|result| original.ty(*result).clone()).collect();
        let copy = func.append(to, op, types, data.loc);
        for (old, new) in results.into_iter().zip(func.inst(copy).results.to_vec()) {
            map.insert(old, new);
        }
    }

    /// Copies all ops, and replaces products by those of blocks in shared memory.
    fn consume(&mut self, func: &mut Function, from: Region, to: Region, map: &mut Substitution) {
        let original = self.original;
        for inst in &original.region(from).insts {
            let data = original.inst(*inst);
            let is_operand = data.results.first().is_some_and(|result| self.is_in_shared(*result));
            if self.is_of_grid(*inst) || is_operand || matches!(data.op, Op::Return {}) {
                continue;
            }
            if self.plan.products.contains_key(inst) {
                self.multiply(func, *inst, to, map);
            } else if self.plan.loads.contains_key(inst) {
                self.read(func, *inst, to, map);
            } else if let Some(stored) = self.plan.stores.get(inst) {
                self.store(func, *inst, stored, to, map);
            } else if data.op.has_regions() {
                let mut op = data.op.clone();
                op.map_operands(&mut |value| map.get(value));
                op.map_regions(&mut |region| {
                    let copy = func.add_region();
                    for param in original.region(region).params.clone() {
                        let new = func.add_region_param(copy, original.ty(param).clone());
                        map.insert(param, new);
                    }
                    self.consume(func, region, copy, map);
                    copy
                });
                append_copy(func, original, *inst, op, to, map);
            } else {
                copy_op(func, original, *inst, to, map);
            }
        }
    }

    /// Appends a branch: the block is copied from shared memory, or stored as before where the launch does not allow that.
    fn store(&self, func: &mut Function, store: Inst, stored: &Stored, to: Region, map: &mut Substitution) {
        let (place, loc) = (&self.places[&store], self.original.inst(store).loc);
        let Op::Store { base, value, .. } = self.original.inst(store).op else { unreachable!("a plan's store is one") };
        let [then_region, else_region] = [0; 2].map(|_| func.add_region());
        let mut b = Builder::new(func, then_region, loc);
        let numbers = self::place(&mut b, &stored.block, place, map);
        let op = Op::StoreBlock { base, value: map.get(value), address: place.address, place: numbers, swapped: stored.swapped };
        func.append(then_region, op, [], loc);
        // What only this store needs of its index and its mask is computed there.
        let mut inner = map.clone();
        if let Op::Store { offset, mask, .. } = self.original.inst(store).op {
            [Some(offset), mask].into_iter().flatten().for_each(|operand| self.copy_pure(func, operand, else_region, &mut inner));
        }
        copy_op(func, self.original, store, else_region, &mut inner);
        for region in [then_region, else_region] {
            func.append(region, Op::Yield { values: Vec::new() }, [], loc);
        }
        let cond = place.cond.expect("a store has a condition");
        func.append(to, Op::If { cond, then_region, else_region, rare: true }, [], loc);
    }

    /// Copies the pure ops that lead to a tile. Their originals go if nothing else uses them.
    fn copy_pure(&self, func: &mut Function, tile: Value, to: Region, map: &mut Substitution) {
        let mut ops = Vec::new();
        let (mut seen, mut open): (SideTable<Value, bool>, Vec<(Value, bool)>) = (SideTable::new(), vec![(tile, false)]);
        while let Some((value, has_operands)) = open.pop() {
            let Def::Result(inst, _) = self.original.def(value) else { continue };
            let op = &self.original.inst(inst).op;
            if has_operands {
                ops.push(inst);
            } else if !seen[value] && self.original.ty(value).is_tile() && op.is_pure() && !op.has_regions() {
                seen[value] = true;
                open.push((value, true));
                op.for_each_operand(&mut |operand| open.push((operand, false)));
            }
        }
        ops.into_iter().for_each(|inst| copy_op(func, self.original, inst, to, map));
    }

    /// Is a tile one that the producer copies, or a transpose of one, and that no thread reads?
    fn is_in_shared(&self, mut tile: Value) -> bool {
        loop {
            let Def::Result(inst, _) = self.original.def(tile) else { return false };
            match &self.original.inst(inst).op {
                Op::Permute { x, .. } => tile = *x,
                _ => return self.plan.loads.get(&inst).is_some_and(|copied| !copied.read),
            }
        }
    }

    /// Appends a product.
    fn multiply(&mut self, func: &mut Function, product: Inst, to: Region, map: &mut Substitution) {
        let planned = &self.plan.products[&product];
        let Op::Dot { a, b, acc, .. } = self.original.inst(product).op else { unreachable!("a product of a plan is a `dot`") };
        let ring = self.ring_of_reader(product);
        self.begin_read(func, product, ring, to);
        let operand = |(operand, load): (Value, Option<Inst>)| match load {
            Some(load) => self.block_of(load),
            None => map.get(operand),
        };
        let [a, b] = [(a, planned.blocks[0]), (b, planned.blocks[1])].map(operand);
        let op = Op::WarpgroupDot { a, b, acc: map.get(acc), swapped: planned.swapped, in_flight: false };
        append_copy(func, self.original, product, op, to, map);
        self.end_read(func, product, ring, to);
    }

    /// Appends a read of a block by threads.
    fn read(&mut self, func: &mut Function, load: Inst, to: Region, map: &mut Substitution) {
        let ring = self.ring_of_reader(load);
        self.begin_read(func, load, ring, to);
        let mut b = Builder::new(func, to, self.original.inst(load).loc);
        let mut tile = b.op(Op::ReadBlock { block: self.block_of(load) }, &[]);
        if self.plan.loads[&load].transposed {
            tile = b.op(Op::Permute { x: tile, order: vec![1, 0] }, &[]);
        }
        map.insert(self.original.result(load), tile);
        self.end_read(func, load, ring, to);
    }

    /// The number of the ring that a product or a load reads.
    fn ring_of_reader(&self, reader: Inst) -> usize {
        self.plan.rings.iter().position(|ring| ring.readers.contains(&reader)).expect("each product and each read has a ring")
    }

    /// The block of a slot for which the consumer has waited.
    fn block_of(&self, load: Inst) -> Value {
        let copied = &self.plan.loads[&load];
        self.waited[&copied.ring][copied.member]
    }

    /// The first reader of a slot waits for it.
    fn begin_read(&mut self, func: &mut Function, reader: Inst, number: usize, to: Region) {
        if self.plan.rings[number].readers.first() == Some(&reader) {
            let types: Vec<Type> = self.rings[number].iter().map(|block| func.ty(*block).clone()).collect();
            let wait = func.append(to, Op::RingWait { ring: self.rings[number][0] }, types, self.original.inst(reader).loc);
            self.waited.insert(number, func.inst(wait).results.to_vec());
        }
    }

    /// The last reader of a slot frees it.
    fn end_read(&self, func: &mut Function, reader: Inst, number: usize, to: Region) {
        if self.plan.rings[number].readers.last() == Some(&reader) {
            func.append(to, Op::RingRelease { block: self.waited[&number][0] }, [], self.original.inst(reader).loc);
        }
    }
}

/// Appends the numbers that say where a block is. A corner behind the greatest extent is clamped: all elements of such a block are outside.
fn place(b: &mut Builder<'_>, block: &Block, place: &Place, map: &Substitution) -> Vec<Value> {
    let most = b.index(MOST_EXTENT);
    let corners: Vec<Value> = block.axes.iter().map(|axis| axis.corner.map(&|scalar| map.get(scalar)).value(b)).collect();
    let corners = corners.into_iter().map(|corner| b.binary(BinaryOp::Min, corner, most)).collect();
    [corners, place.extents.clone(), place.strides.clone()].concat()
}

fn copy_op(func: &mut Function, original: &Function, inst: Inst, to: Region, map: &mut Substitution) {
    let mut op = original.inst(inst).op.clone();
    op.map_operands(&mut |value| map.get(value));
    copy_regions(func, &mut op, map);
    append_copy(func, original, inst, op, to, map);
}

fn append_copy(func: &mut Function, original: &Function, inst: Inst, op: Op, to: Region, map: &mut Substitution) {
    let data = original.inst(inst);
    let types: Vec<Type> = data.results.iter().map(|result| original.ty(*result).clone()).collect();
    let copy = func.append(to, op, types, data.loc);
    for (old, new) in data.results.iter().zip(func.inst(copy).results.to_vec()) {
        map.insert(*old, new);
    }
}
