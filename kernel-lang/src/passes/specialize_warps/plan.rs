//! Which loads are copied ahead, and the rings that hold them.

use rustc_hash::FxHashMap;

use crate::analysis::blocks::{Block, Blocks};
use crate::dtype::Dtype;
use crate::ir::product::has_warpgroup_product;
use crate::ir::{ConstExpr, Def, Function, Inst, Op, Precision, Region, SideTable, Type, Value};
use crate::launch_value::persistent_entry::MOST_MAPS;
use crate::layout::{BLOCK_ALIGNMENT, MOST_COLUMNS, STAGING_BYTES, SharedBlock};
use crate::location::Loc;
use crate::passes::specialize::PRINT_BUFFER;
use crate::schedule::Schedule;
use crate::target::{Asked, Target};

use super::obstacle::{Obstacle, StoreObstacle};

/// The most slots of a ring. More of them hold no more than a copy takes to arrive.
const MOST_SLOTS: u32 = 8;
/// The fewest: one is filled while the other one is read.
pub(crate) const FEWEST_SLOTS: u32 = 2;
/// The fewest of each of two CTAs on a multiprocessor. Products in flight hold two, and the tensor cores take twice as long for those of one CTA. With three or four slots
/// of 24 kB, too few copies are on their way: a tile of 64 x 128 takes 11.9 us for the product of 1024 x 1024 matrices, and 9.1 us with one CTA (H200).
const FEWEST_OF_TWO: u32 = 5;
/// The shared memory that is left to the exchanges of the consumer.
const LEFT_BYTES: u32 = 1 << 10;
/// A computation of more ops is not followed.
const MOST_OPS: usize = 64;
/// The rows of an instruction that a warp holds.
const WARP_ROWS: u32 = 16;
/// The most accumulators of a thread.
const MOST_ACCUMULATORS: u32 = 208;
/// The bytes of an operand's row that an instruction multiplies.
const DEPTH_BYTES: u32 = 32;
/// An operand has so many times the elements of a small tile.
const SMALL: usize = 4;

/// A load that is copied ahead.
pub(super) struct Copied {
    /// The block, in the axes of the product that reads it from shared memory, if there is one.
    pub(super) block: Block,
    /// Are these the axes of the load in the other order?
    pub(super) transposed: bool,
    /// The order of its elements in shared memory.
    pub(super) shared: SharedBlock,
    /// Do threads read it, because a product takes it from registers, or another op uses it?
    pub(super) read: bool,
    /// Is `f32` rounded to `tf32`?
    pub(super) tf32: bool,
    /// The number of its ring, and of the block in a slot.
    pub(super) ring: usize,
    pub(super) member: usize,
}

/// A ring: the blocks of a slot in the order of their loads.
pub(super) struct Ring {
    pub(super) members: Vec<Inst>,
    pub(super) slots: u32,
    /// What reads a slot, in the order of the ops: products, and loads whose elements threads read.
    pub(super) readers: Vec<Inst>,
    pub(super) loc: Loc,
}

/// A product by warpgroups.
pub(super) struct Product {
    /// The loads of the operands that the instruction takes from shared memory. It takes at most one from registers.
    pub(super) blocks: [Option<Inst>; 2],
    /// Does the instruction compute the transpose? Of a tile with few rows, warps divide the columns, and only the first operand of an instruction may be in registers.
    pub(super) swapped: bool,
    /// The rows and columns, and the terms of each sum.
    pub(super) tile: [u32; 3],
}

/// A store that is copied from shared memory.
pub(super) struct Stored {
    /// The block that it writes.
    pub(super) block: Block,
    /// Is the product swapped whose accumulators the tile has?
    pub(super) swapped: bool,
}

/// What the version with roles does with each op.
pub(super) struct Plan {
    pub(super) loads: FxHashMap<Inst, Copied>,
    pub(super) rings: Vec<Ring>,
    /// By product.
    pub(super) products: FxHashMap<Inst, Product>,
    /// The stores that are copied from shared memory where the launch allows it.
    pub(super) stores: FxHashMap<Inst, Stored>,
    /// The other stores of what products give, in the order of the ops, with the reasons.
    pub(super) usual_stores: Vec<(Inst, StoreObstacle)>,
    /// The rows and columns of the largest product.
    pub(super) tile: [u32; 2],
}

impl Copied {
    pub(super) fn ty(&self, func: &Function) -> Type {
        let shape = self.shared.shape.map(|extent| ConstExpr::Int(extent.into())).to_vec();
        Type::Shared { elem: func.ty(self.block.base).elem().clone(), shape, contiguous: self.shared.contiguous as u32 }
    }
}

/// The plan of a kernel, for a target that has warpgroup products. [`Plan::fit`] follows.
pub(super) fn plan(func: &Function, schedule: Schedule) -> Result<Plan, Obstacle> {
    let insts = func.all_insts();
    let products: Vec<Inst> = insts.iter().copied().filter(|inst| matches!(func.inst(*inst).op, Op::Dot { .. })).collect();
    let Some(first) = products.first() else { return Err(Obstacle::NoProducts) };
    if schedule.num_ctas != 1 || ![4, 8].contains(&schedule.num_warps) {
        return Err(Obstacle::Schedule(func.inst(*first).loc));
    }
    if func.reports {
        return Err(Obstacle::Checked);
    }
    if func.overlaps() {
        return Err(Obstacle::Overlaps);
    }
    if func.params.iter().any(|param| &*param.name == PRINT_BUFFER) {
        return Err(Obstacle::Prints);
    }
    if let Some(access) = waiting(func, &insts) {
        return Err(Obstacle::Waits(func.inst(access).loc));
    }
    let regions = regions_of(func);
    let mut blocks = Blocks::of(func);
    let mut plan = Plan {
        loads: FxHashMap::default(),
        rings: Vec::new(),
        products: FxHashMap::default(),
        stores: FxHashMap::default(),
        usual_stores: Vec::new(),
        tile: [0; 2],
    };
    for product in products {
        add_product(func, &mut plan, &mut blocks, &regions, product, schedule)?;
    }
    if plan.loads.len() > MOST_MAPS {
        return Err(Obstacle::Maps);
    }
    find_readers(func, &mut plan, &insts)?;
    plan.order(&insts);
    add_stores(func, &mut plan, &mut blocks, schedule);
    Ok(plan)
}

/// An access inside of a `while` that may see what another program stores, so that the loop may wait for that program.
fn waiting(func: &Function, insts: &[Inst]) -> Option<Inst> {
    insts.iter().filter(|inst| matches!(func.inst(**inst).op, Op::While { .. })).find_map(|inst| {
        let mut found = None;
        func.inst(*inst).op.for_each_region(&mut |region| {
            let mut inside = func.regions_under(region).into_iter().flat_map(|region| &func.region(region).insts);
            found =
                found.or(inside.find(|inst| matches!(func.inst(**inst).op, Op::Atomic { .. } | Op::Load { volatile: true, .. })).copied());
        });
        found
    })
}

/// The region of each op.
fn regions_of(func: &Function) -> SideTable<Inst, Option<Region>> {
    let mut regions = SideTable::new();
    for region in func.regions_under(func.body) {
        func.region(region).insts.iter().for_each(|inst| regions[*inst] = Some(region));
    }
    regions
}

/// The load of an operand, and whether the operand is its transpose.
fn loaded(func: &Function, mut operand: Value) -> Option<(Inst, bool)> {
    let mut is_transposed = false;
    loop {
        let Def::Result(inst, _) = func.def(operand) else { return None };
        match &func.inst(inst).op {
            Op::Permute { x, order } if order[..] == [1, 0] => (operand, is_transposed) = (*x, !is_transposed),
            Op::Load { .. } => return Some((inst, is_transposed)),
            _ => return None,
        }
    }
}

/// An operand that is loaded for its product, in the axes of the product.
struct Loaded {
    load: Inst,
    transposed: bool,
    block: Block,
    shared: SharedBlock,
}

fn add_product(
    func: &Function,
    plan: &mut Plan,
    blocks: &mut Blocks<'_>,
    regions: &SideTable<Inst, Option<Region>>,
    product: Inst,
    schedule: Schedule,
) -> Result<(), Obstacle> {
    let (op, loc) = (&func.inst(product).op, func.inst(product).loc);
    let Op::Dot { a, b, acc, precision } = op else { return Err(Obstacle::Product(loc)) };
    let (&[rows, columns], &[_, depth]) = (&func.ty(*acc).extents()[..], &func.ty(*a).extents()[..]) else {
        return Err(Obstacle::Product(loc));
    };
    let tile = [rows, columns, depth].map(|extent| u32::try_from(extent).unwrap_or(u32::MAX));
    let ([rows, columns, depth], divided) = (tile, WARP_ROWS * schedule.num_warps);
    if rows < divided && columns < divided {
        return Err(Obstacle::Rows(loc));
    }
    let dtypes = [a, b, acc].map(|tile| func.ty(*tile).dtype());
    let bytes = dtypes[0].bytes() as u32;
    if depth * bytes < DEPTH_BYTES || (dtypes[0] == Dtype::F32) != (*precision == Precision::Tf32) {
        return Err(Obstacle::Product(loc));
    }
    let operands = [*a, *b];
    let [left, right] = operands.map(|operand| loaded_block(func, blocks, regions, (product, operand)));
    let loaded = [left?, right?];
    let has_instruction = |(swapped, in_registers): (bool, bool)| {
        let (down, across) = if swapped { (columns, rows) } else { (rows, columns) };
        let first = usize::from(swapped);
        let contiguous = [0, 1].map(|number| match &loaded[number] {
            Some(loaded) if number != first || !in_registers => Some(loaded.shared.contiguous as u32),
            _ => None,
        });
        let words = if in_registers { down * depth * bytes / 4 } else { 0 };
        down >= divided
            && (8..=MOST_COLUMNS).contains(&across)
            && rows.saturating_mul(columns) + words <= MOST_ACCUMULATORS * schedule.threads()
            && contiguous[1 - first].is_some()
            && contiguous[first].is_none() == in_registers
            && has_warpgroup_product(dtypes, contiguous)
    };
    let natural = rows < divided;
    let forms = [(natural, false), (natural, true), (!natural, true)];
    let Some((swapped, in_registers)) = forms.into_iter().find(|form| has_instruction(*form)) else {
        let is_computed = loaded.iter().all(Option::is_none);
        return Err(if is_computed { Obstacle::Operand(loc) } else { Obstacle::Product(loc) });
    };
    let (mut of_instruction, mut loads) = ([None; 2], Vec::new());
    for (number, operand) in loaded.into_iter().enumerate() {
        let is_in_registers = in_registers && number == usize::from(swapped);
        match operand {
            Some(Loaded { load, transposed, block, shared }) if !is_in_registers => {
                of_instruction[number] = Some(load);
                loads.push(load);
                match plan.loads.get(&load) {
                    // One block has one order.
                    Some(known) if known.shared != shared => return Err(Obstacle::Operand(loc)),
                    Some(_) => {}
                    None => _ = plan.loads.insert(load, Copied::new(block, shared, transposed)),
                }
            }
            _ => {
                for (load, block, shared) in sources(func, blocks, regions, (product, operands[number]))? {
                    plan.loads.entry(load).or_insert_with(|| Copied::new(block, shared, false));
                    loads.push(load);
                }
            }
        }
    }
    plan.products.insert(product, Product { blocks: of_instruction, swapped, tile });
    if rows * columns > plan.tile[0] * plan.tile[1] {
        plan.tile = [rows, columns];
    }
    join(plan, product, &loads, loc);
    Ok(())
}

/// The block that an operand is, if it is loaded in the region of its product for it.
fn loaded_block(
    func: &Function,
    blocks: &mut Blocks<'_>,
    regions: &SideTable<Inst, Option<Region>>,
    (product, operand): (Inst, Value),
) -> Result<Option<Loaded>, Obstacle> {
    let Some((load, transposed)) = loaded(func, operand).filter(|(load, _)| regions[*load] == regions[product]) else { return Ok(None) };
    let mut block = blocks.block(load).map_err(|why| Obstacle::Block(func.inst(load).loc, why))?;
    if transposed {
        block.axes.swap(0, 1);
        block.contiguous = 1 - block.contiguous;
    }
    let shared = order_of(func, operand, &block).ok_or(Obstacle::Product(func.inst(product).loc))?;
    Ok(Some(Loaded { load, transposed, block, shared }))
}

/// The order in shared memory of a tile that is a block.
fn order_of(func: &Function, tile: Value, block: &Block) -> Option<SharedBlock> {
    let extents = func.ty(tile).extents();
    SharedBlock::new([extents[0] as u32, extents[1] as u32], block.contiguous, func.ty(block.base).dtype().bytes() as u32)
}

/// The loads from which an operand in registers is computed in the region of its product, and that are copied ahead. Threads load a small tile themselves, such as the
/// scale of a column; a large one that is no block would keep products waiting.
fn sources(
    func: &Function,
    blocks: &mut Blocks<'_>,
    regions: &SideTable<Inst, Option<Region>>,
    (product, operand): (Inst, Value),
) -> Result<Vec<(Inst, Block, SharedBlock)>, Obstacle> {
    let (mut found, mut open) = (Vec::new(), vec![operand]);
    let mut seen: SideTable<Value, bool> = SideTable::new();
    while let Some(value) = open.pop() {
        let Def::Result(inst, _) = func.def(value) else { continue };
        if std::mem::replace(&mut seen[value], true) || regions[inst] != regions[product] || !func.ty(value).is_tile() {
            continue;
        }
        let data = func.inst(inst);
        if data.op.is_pure() {
            data.op.for_each_operand(&mut |operand| open.push(operand));
        } else if matches!(data.op, Op::Load { .. }) {
            let is_small = func.ty(value).numel() * SMALL <= func.ty(operand).numel();
            match blocks.block(inst).map(|block| (order_of(func, value, &block), block)) {
                Ok((Some(shared), block)) => found.push((inst, block, shared)),
                _ if is_small => {}
                Ok(_) => return Err(Obstacle::Product(func.inst(product).loc)),
                Err(why) => return Err(Obstacle::Block(data.loc, why)),
            }
        }
    }
    Ok(found)
}

/// Puts the loads of a product into one ring, together with those that share a ring with one of them.
fn join(plan: &mut Plan, product: Inst, loads: &[Inst], loc: Loc) {
    let mut rings: Vec<usize> = loads.iter().map(|load| plan.loads[load].ring).filter(|ring| *ring != usize::MAX).collect();
    rings.sort_unstable();
    rings.dedup();
    let ring = match rings.first() {
        Some(first) => *first,
        None => {
            plan.rings.push(Ring { members: Vec::new(), slots: 0, readers: Vec::new(), loc });
            plan.rings.len() - 1
        }
    };
    for other in rings.into_iter().skip(1) {
        let (members, readers) = (std::mem::take(&mut plan.rings[other].members), std::mem::take(&mut plan.rings[other].readers));
        plan.rings[ring].members.extend(members);
        plan.rings[ring].readers.extend(readers);
    }
    plan.rings[ring].members.extend(loads);
    plan.rings[ring].readers.push(product);
    for load in plan.rings[ring].members.clone() {
        plan.loads.get_mut(&load).expect("a member is a load of the plan").ring = ring;
    }
}

impl Copied {
    fn new(block: Block, shared: SharedBlock, transposed: bool) -> Copied {
        Copied { block, transposed, shared, read: false, tf32: false, ring: usize::MAX, member: 0 }
    }
}

impl Plan {
    /// Gives the rings as many slots as fit, and as the schedule has stages. If a multiprocessor cannot run several CTAs with such rings, it runs one.
    pub(super) fn fit(&mut self, target: &Asked, schedule: Schedule) -> Result<(), Obstacle> {
        if !target.ask(Target::has_warpgroup_products) {
            return Err(Obstacle::Target);
        }
        let bytes: u32 = self.loads.values().map(|copied| copied.shared.bytes().next_multiple_of(BLOCK_ALIGNMENT)).sum();
        // The mbarriers of a ring are followed by the next multiple of the alignment.
        let barriers = self.rings.len() as u32 * BLOCK_ALIGNMENT;
        let left = LEFT_BYTES + barriers + schedule.num_warps * STAGING_BYTES;
        let fitting = |workers: u32| target.ask(|target| target.shared_bytes_of(workers)).saturating_sub(left) / bytes;
        let wanted = MOST_SLOTS.min(schedule.num_stages.max(FEWEST_SLOTS));
        let workers = schedule.workers(self.tile[0] * self.tile[1]);
        let fewest = if workers > 1 { FEWEST_OF_TWO.min(wanted) } else { FEWEST_SLOTS };
        let slots = if fitting(workers) >= fewest { fitting(workers) } else { fitting(1) }.min(wanted);
        if slots < FEWEST_SLOTS {
            return Err(Obstacle::Memory(self.rings.first().map_or(Loc::NONE, |ring| ring.loc)));
        }
        self.rings.iter_mut().for_each(|ring| ring.slots = slots);
        Ok(())
    }

    /// Puts the members and the readers of each ring in the order of the ops, each once, and removes rings that became part of others.
    fn order(&mut self, insts: &[Inst]) {
        let mut rings = Vec::new();
        for ring in std::mem::take(&mut self.rings) {
            let in_order = |of: &[Inst]| insts.iter().copied().filter(|inst| of.contains(inst)).collect::<Vec<Inst>>();
            let (members, readers) = (in_order(&ring.members), in_order(&ring.readers));
            for (member, load) in members.iter().enumerate() {
                let copied = self.loads.get_mut(load).expect("a member is a load of the plan");
                (copied.ring, copied.member) = (rings.len(), member);
            }
            if !members.is_empty() {
                rings.push(Ring { members, readers, ..ring });
            }
        }
        self.rings = rings;
    }
}

/// Finds the loads whose elements threads read, and those that are rounded: `f32` that only products use.
fn find_readers(func: &Function, plan: &mut Plan, insts: &[Inst]) -> Result<(), Obstacle> {
    let (mut exact, mut from_shared): (SideTable<Inst, bool>, SideTable<Inst, bool>) = (SideTable::new(), SideTable::new());
    for inst in insts {
        let op = &func.inst(*inst).op;
        if matches!(op, Op::Permute { order, .. } if order[..] == [1, 0]) {
            continue;
        }
        let product = plan.products.get(inst).map(|product| product.blocks);
        let mut number = 0;
        op.for_each_operand(&mut |operand| {
            let place = number;
            number += 1;
            let Some((load, _)) = loaded(func, operand) else { return };
            let Some(copied) = plan.loads.get_mut(&load) else { return };
            match product {
                // The third operand are the accumulators.
                Some(blocks) if place < 2 && blocks[place] == Some(load) => from_shared[load] = true,
                Some(_) if place < 2 => copied.read = true,
                _ => (copied.read, exact[load]) = (true, true),
            }
        });
    }
    for (load, copied) in &mut plan.loads {
        copied.tf32 = func.ty(copied.block.base).dtype() == Dtype::F32 && !exact[*load];
        if !copied.tf32 && from_shared[*load] && func.ty(copied.block.base).dtype() == Dtype::F32 {
            return Err(Obstacle::Operand(func.inst(*load).loc));
        }
        if copied.read {
            plan.rings[copied.ring].readers.push(*load);
        }
    }
    Ok(())
}

/// Finds the stores of what products give, and decides which of them are copies of blocks.
fn add_stores(func: &Function, plan: &mut Plan, blocks: &mut Blocks<'_>, schedule: Schedule) {
    for store in func.all_insts() {
        let Op::Store { value, .. } = func.inst(store).op else { continue };
        if plan.loads.len() + plan.stores.len() == MOST_MAPS {
            continue;
        }
        let Some(product) = product_of(func, plan, value, MOST_OPS) else { continue };
        match stored(func, blocks, store, product.swapped, schedule) {
            Ok(stored) => _ = plan.stores.insert(store, stored),
            Err(why) => plan.usual_stores.push((store, why)),
        }
    }
}

/// The block that a store copies. A copy is not ordered with other accesses, so its tensor has none, and it is executed once in a program.
fn stored(func: &Function, blocks: &mut Blocks<'_>, store: Inst, swapped: bool, schedule: Schedule) -> Result<Stored, StoreObstacle> {
    let Op::Store { base, value, .. } = func.inst(store).op else { return Err(StoreObstacle::Repeated) };
    if !func.region(func.body).insts.contains(&store) {
        return Err(StoreObstacle::Repeated);
    }
    let accesses = func.all_insts().into_iter().filter_map(|inst| func.inst(inst).op.access()).filter(|access| access.base == base);
    if accesses.count() != 1 {
        return Err(StoreObstacle::Accessed);
    }
    let bits = func.ty(value).dtype().bits();
    if ![16, 32].contains(&bits) {
        return Err(StoreObstacle::Type);
    }
    let block = blocks.block(store).map_err(StoreObstacle::Block)?;
    let extents = func.ty(value).extents();
    let divided = extents[usize::from(swapped)] as u32;
    let has_parts = SharedBlock::staged([extents[0] as u32, extents[1] as u32], bits / 8, swapped).is_some();
    let is_copied = block.contiguous == 1 && has_parts && divided >= WARP_ROWS * schedule.num_warps;
    if is_copied { Ok(Stored { block, swapped }) } else { Err(StoreObstacle::Shape) }
}

/// The product from which an elementwise computation leads to the tile.
fn product_of<'a>(func: &Function, plan: &'a Plan, tile: Value, most: usize) -> Option<&'a Product> {
    let Def::Result(inst, number) = func.def(tile) else { return None };
    let op = &func.inst(inst).op;
    if let Some(product) = plan.products.get(&inst) {
        return Some(product);
    }
    if most == 0 {
        return None;
    }
    let of_region = |region: Region| product_of(func, plan, func.yielded(region)[number], most - 1);
    match op {
        Op::For { body, .. } => of_region(*body),
        Op::While { test, body, .. } => of_region(*test).or_else(|| of_region(*body)),
        op if op.is_elementwise() => {
            let mut found = None;
            op.for_each_operand(&mut |operand| {
                if found.is_none() && func.ty(operand).shape() == func.ty(tile).shape() {
                    found = product_of(func, plan, operand, most / 2);
                }
            });
            found
        }
        _ => None,
    }
}
