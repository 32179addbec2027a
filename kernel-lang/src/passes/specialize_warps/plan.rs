//! Which loads are copied ahead, and the rings that hold them.

use rustc_hash::FxHashMap;

use crate::analysis::blocks::{Block, Blocks};
use crate::ir::product::has_warpgroup_product;
use crate::ir::{ConstExpr, Def, Function, Inst, Op, Region, SideTable, Type, Value};
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

/// A load that is copied ahead.
pub(super) struct Copied {
    /// The block, in the axes of the product.
    pub(super) block: Block,
    /// The order of its elements in shared memory.
    pub(super) shared: SharedBlock,
    /// The number of its ring, and of the block in a slot.
    pub(super) ring: usize,
    pub(super) member: usize,
}

/// A ring: the blocks of a slot in the order of their loads.
pub(super) struct Ring {
    pub(super) members: Vec<Inst>,
    pub(super) slots: u32,
    /// The first and the last product that reads a slot.
    pub(super) products: Vec<Inst>,
    pub(super) loc: Loc,
}

/// A product by warpgroups.
pub(super) struct Product {
    /// The loads of both operands.
    pub(super) loads: [Inst; 2],
    /// Does the instruction compute the transpose? Of a tile with few rows, warps divide the columns.
    pub(super) swapped: bool,
}

/// What the version with roles does with each op.
pub(super) struct Plan {
    pub(super) loads: FxHashMap<Inst, Copied>,
    pub(super) rings: Vec<Ring>,
    /// By product.
    pub(super) products: FxHashMap<Inst, Product>,
    /// The stores that are copied from shared memory where the launch allows it, with the blocks that they write.
    pub(super) stores: FxHashMap<Inst, Block>,
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
    if let Some(load) = used_otherwise(func, &plan) {
        return Err(Obstacle::Operand(func.inst(load).loc));
    }
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

fn add_product(
    func: &Function,
    plan: &mut Plan,
    blocks: &mut Blocks<'_>,
    regions: &SideTable<Inst, Option<Region>>,
    product: Inst,
    schedule: Schedule,
) -> Result<(), Obstacle> {
    let (op, loc) = (&func.inst(product).op, func.inst(product).loc);
    let Op::Dot { a, b, acc, .. } = op else { return Err(Obstacle::Product(loc)) };
    let (&[rows, columns], &[_, depth]) = (&func.ty(*acc).extents()[..], &func.ty(*a).extents()[..]) else {
        return Err(Obstacle::Product(loc));
    };
    let [rows, columns, depth] = [rows, columns, depth].map(|extent| u32::try_from(extent).unwrap_or(u32::MAX));
    let divided = WARP_ROWS * schedule.num_warps;
    let swapped = rows < divided;
    if swapped && columns < divided {
        return Err(Obstacle::Rows(loc));
    }
    let across = if swapped { rows } else { columns };
    let bytes = func.ty(*a).dtype().bytes() as u32;
    if !(8..=MOST_COLUMNS).contains(&across) || depth * bytes < DEPTH_BYTES || rows * columns > MOST_ACCUMULATORS * schedule.threads() {
        return Err(Obstacle::Product(loc));
    }
    let mut loads = Vec::new();
    for operand in [a, b] {
        let (load, is_transposed) =
            loaded(func, *operand).filter(|(load, _)| regions[*load] == regions[product]).ok_or(Obstacle::Operand(loc))?;
        let mut block = blocks.block(load).map_err(|why| Obstacle::Block(func.inst(load).loc, why))?;
        if is_transposed {
            block.axes.swap(0, 1);
            block.contiguous = 1 - block.contiguous;
        }
        let extents = func.ty(*operand).extents();
        let bytes = func.ty(block.base).dtype().bytes() as u32;
        let shared = SharedBlock::new([extents[0] as u32, extents[1] as u32], block.contiguous, bytes).ok_or(Obstacle::Product(loc))?;
        match plan.loads.get(&load) {
            // One block has one order.
            Some(known) if known.shared != shared => return Err(Obstacle::Operand(loc)),
            Some(_) => {}
            None => {
                plan.loads.insert(load, Copied { block, shared, ring: usize::MAX, member: 0 });
            }
        }
        loads.push(load);
    }
    let loads = [loads[0], loads[1]];
    let dtypes = [a, b, acc].map(|tile| func.ty(*tile).dtype());
    let contiguous = loads.map(|load| plan.loads[&load].shared.contiguous as u32);
    if !has_warpgroup_product(dtypes, contiguous) {
        return Err(Obstacle::Product(loc));
    }
    plan.products.insert(product, Product { loads, swapped });
    if rows * columns > plan.tile[0] * plan.tile[1] {
        plan.tile = [rows, columns];
    }
    join(plan, product, loads, loc);
    Ok(())
}

/// Puts the loads of a product into one ring, together with those that share a ring with one of them.
fn join(plan: &mut Plan, product: Inst, loads: [Inst; 2], loc: Loc) {
    let mut rings: Vec<usize> = loads.iter().map(|load| plan.loads[load].ring).filter(|ring| *ring != usize::MAX).collect();
    rings.sort_unstable();
    rings.dedup();
    let ring = match rings.first() {
        Some(first) => *first,
        None => {
            plan.rings.push(Ring { members: Vec::new(), slots: 0, products: Vec::new(), loc });
            plan.rings.len() - 1
        }
    };
    for other in rings.into_iter().skip(1) {
        let (members, products) = (std::mem::take(&mut plan.rings[other].members), std::mem::take(&mut plan.rings[other].products));
        plan.rings[ring].members.extend(members);
        plan.rings[ring].products.extend(products);
    }
    plan.rings[ring].members.extend(loads);
    plan.rings[ring].products.push(product);
    for load in plan.rings[ring].members.clone() {
        plan.loads.get_mut(&load).expect("a member is a load of the plan").ring = ring;
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

    /// Puts the members and the products of each ring in the order of the ops, each once, and removes rings that became part of others.
    fn order(&mut self, insts: &[Inst]) {
        let mut rings = Vec::new();
        for ring in std::mem::take(&mut self.rings) {
            let in_order = |of: &[Inst]| insts.iter().copied().filter(|inst| of.contains(inst)).collect::<Vec<Inst>>();
            let (members, products) = (in_order(&ring.members), in_order(&ring.products));
            for (member, load) in members.iter().enumerate() {
                let copied = self.loads.get_mut(load).expect("a member is a load of the plan");
                (copied.ring, copied.member) = (rings.len(), member);
            }
            if !members.is_empty() {
                rings.push(Ring { members, products, ..ring });
            }
        }
        self.rings = rings;
    }
}

/// A load of the plan whose elements an op other than a product of the plan uses.
fn used_otherwise(func: &Function, plan: &Plan) -> Option<Inst> {
    let mut other = None;
    for inst in func.all_insts() {
        let op = &func.inst(inst).op;
        if plan.products.contains_key(&inst) {
            // The accumulator is no load.
            let Op::Dot { acc, .. } = op else { continue };
            other = other.or(loaded(func, *acc).map(|(load, _)| load).filter(|load| plan.loads.contains_key(load)));
            continue;
        }
        if matches!(op, Op::Permute { order, .. } if order[..] == [1, 0]) {
            continue;
        }
        op.for_each_operand(&mut |operand| {
            other = other.or(loaded(func, operand).map(|(load, _)| load).filter(|load| plan.loads.contains_key(load)));
        });
    }
    other
}

/// Finds the stores of what products give, and decides which of them are copies of blocks.
fn add_stores(func: &Function, plan: &mut Plan, blocks: &mut Blocks<'_>, schedule: Schedule) {
    for store in func.all_insts() {
        let Op::Store { value, .. } = func.inst(store).op else { continue };
        if plan.loads.len() + plan.stores.len() == MOST_MAPS || !is_product(func, plan, value, MOST_OPS) {
            continue;
        }
        match stored(func, blocks, store, schedule) {
            Ok(block) => _ = plan.stores.insert(store, block),
            Err(why) => plan.usual_stores.push((store, why)),
        }
    }
}

/// The block that a store copies. A copy is not ordered with other accesses, so its tensor has none, and it is executed once in a program.
fn stored(func: &Function, blocks: &mut Blocks<'_>, store: Inst, schedule: Schedule) -> Result<Block, StoreObstacle> {
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
    let is_wide = block.contiguous == 1 && extents[1] * bits as usize / 8 >= 32 && extents[0] as u32 >= WARP_ROWS * schedule.num_warps;
    if is_wide { Ok(block) } else { Err(StoreObstacle::Shape) }
}

/// Does an elementwise computation lead from a product to the tile?
fn is_product(func: &Function, plan: &Plan, tile: Value, most: usize) -> bool {
    let Def::Result(inst, number) = func.def(tile) else { return false };
    let op = &func.inst(inst).op;
    let mut found = plan.products.contains_key(&inst);
    if most == 0 || found {
        return found;
    }
    match op {
        Op::For { body, .. } => found = is_product(func, plan, func.yielded(*body)[number], most - 1),
        Op::While { test, body, .. } => {
            found = [test, body].iter().any(|region| is_product(func, plan, func.yielded(**region)[number], most - 1))
        }
        op if op.is_elementwise() => op.for_each_operand(&mut |operand| {
            found |= func.ty(operand).shape() == func.ty(tile).shape() && is_product(func, plan, operand, most / 2);
        }),
        _ => {}
    }
    found
}
