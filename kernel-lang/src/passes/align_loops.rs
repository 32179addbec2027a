//! Alignment of loops: a loop whose rows begin at any element begins where its output is aligned, behind a part of less than 16 bytes.
//!
//! ```text
//! ; before
//! kernel @k(%x: ptr<f16>, %y: ptr_mut<f16>, %n: i64) {
//!     %0 = program_id : i64
//!     %1 = mul %0, %n : i64
//!     %2 = const {value = 0} : i64
//!     %3 = const {value = 512} : i64
//!     %4 = arange {start = 0, end = 512} : tile<i64, [512]>
//!     %5 = broadcast %1 : tile<i64, [512]>
//!     %6 = broadcast %n : tile<i64, [512]>
//!     for %2, %n, %3 (%7: i64) {
//!         %8 = broadcast %7 : tile<i64, [512]>
//!         %9 = add %8, %4 : tile<i64, [512]>
//!         %10 = add %5, %9 : tile<i64, [512]>
//!         %11 = lt %9, %6 : tile<bool, [512]>
//!         %12 = load %x, %10 {mask = %11} : tile<f16, [512]>
//!         store %y, %10, %12 {mask = %11}
//!         yield
//!     }
//!     return
//! }
//! ; after
//! kernel @k(%x: ptr<f16>, %y: ptr_mut<f16>, %n: i64) {
//!     %0 = program_id : i64
//!     %1 = mul %0, %n : i64
//!     %2 = const {value = 0} : i64
//!     %3 = const {value = 512} : i64
//!     %4 = arange {start = 0, end = 512} : tile<i64, [512]>
//!     %5 = broadcast %1 : tile<i64, [512]>
//!     %6 = broadcast %n : tile<i64, [512]>
//!     %7 = address %y : i64
//!     %8 = const {value = 2} : i64
//!     %9 = mul %1, %8 : i64
//!     %10 = add %7, %9 : i64
//!     %11 = const {value = 0} : i64
//!     %12 = const {value = 15} : i64
//!     %13 = sub %11, %10 : i64
//!     %14 = and %13, %12 : i64
//!     %15 = const {value = 1} : i64
//!     %16 = shr %14, %15 : i64
//!     %17 = const {value = 9223372036854775279} : i64
//!     %18 = le %n, %17 : bool
//!     %19 = lt %2, %n : bool
//!     %20 = and %18, %19 : bool
//!     %21 = select %20, %16, %11 : i64
//!     %22 = add %2, %21 : i64
//!     %23 = eq %21, %11 : bool
//!     if %23 () {
//!         for %2, %n, %3 (%24: i64) {
//!             %25 = broadcast %24 : tile<i64, [512]>
//!             %26 = add %25, %4 : tile<i64, [512]>
//!             %27 = add %5, %26 : tile<i64, [512]>
//!             %28 = lt %26, %6 : tile<bool, [512]>
//!             %29 = load %x, %27 {mask = %28} : tile<f16, [512]>
//!             store %y, %27, %29 {mask = %28}
//!             yield
//!         }
//!         yield
//!     } () {
//!         %30 = arange {start = 0, end = 8} : tile<i64, [8]>
//!         %31 = broadcast %21 : tile<i64, [8]>
//!         %32 = lt %30, %31 : tile<bool, [8]>
//!         %33 = arange {start = 0, end = 8} : tile<i64, [8]>
//!         %34 = broadcast %1 : tile<i64, [8]>
//!         %35 = broadcast %n : tile<i64, [8]>
//!         %36 = broadcast %2 : tile<i64, [8]>
//!         %37 = add %36, %33 : tile<i64, [8]>
//!         %38 = add %34, %37 : tile<i64, [8]>
//!         %39 = lt %37, %35 : tile<bool, [8]>
//!         %40 = and %39, %32 : tile<bool, [8]>
//!         %41 = load %x, %38 {mask = %40} : tile<f16, [8]>
//!         %42 = and %39, %32 : tile<bool, [8]>
//!         store %y, %38, %41 {mask = %42}
//!         for %22, %n, %3 (%43: i64) {
//!             %44 = broadcast %43 : tile<i64, [512]>
//!             %45 = add %44, %4 : tile<i64, [512]>
//!             %46 = add %5, %45 : tile<i64, [512]>
//!             %47 = lt %45, %6 : tile<bool, [512]>
//!             %48 = load %x, %46 {mask = %47} : tile<f16, [512]>
//!             store %y, %46, %48 {mask = %47}
//!             yield
//!         }
//!         yield
//!     }
//!     return
//! }
//! ```
//!
//! Each program may have a row, and rows whose length is no multiple of 16 bytes begin anywhere. A thread then moves one element by an instruction, in all iterations. With the part
//! in front, the other iterations are aligned, if all tensors have the rows at the same distance from a multiple of 16 bytes. [`super::split_loops`] tests that, as for any loop.
//! A row that is aligned keeps its loop, whose first index is known: where it is a multiple of 8, a weight for runs of 8 positions is loaded once for each run.
//!
//! The loop may begin anywhere if it computes each position on its own: its index appears only in the sum of index and position in the tile, the tiles of successive iterations are
//! next to each other, and the masks of all accesses end where the loop ends. Such a loop carries no values, or it carries accumulators that only reductions use: then the pass aligns
//! the loads instead of a store (`accumulators`).

mod accumulators;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::affine::AffineFacts;
use crate::analysis::loops::{self, Loop};
use crate::analysis::masks::{self, Condition};
use crate::analysis::polynomial::Polynomial;
use crate::ir::rewrite::{Changed, Substitution, copy_regions, replace_by_branch, use_counts, yield_op};
use crate::ir::{BinaryOp, Builder, CompareOp, ConstExpr, Def, Function, Inst, Op, Region, SideTable, Stored, Type, Value, postorder};

use super::reductions::{self, Versions};
use super::split_full_tiles::{WIDEST, takes_partial_runs};

/// Longer bodies are not copied.
const MOST_OPS: usize = 64;
/// The part in front takes a warp's instructions for each op, and so must be small beside an iteration: it was measured for tiles of 2048 elements and more.
const FEWEST: usize = 256;

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    // A launch that reports accesses reports them at their original positions.
    if func.reports {
        return false;
    }
    let uses = use_counts(func);
    let (mut changed, mut accumulated) = (false, Vec::new());
    for region in func.frequent_regions() {
        let mut out = Vec::new();
        for inst in func.region(region).insts.clone() {
            let before = out.len();
            if let Some(around) = Loop::of(func, inst) {
                if let Some(plan) = Plan::of(func, &around) {
                    out.extend(align(func, &around, &plan));
                } else if let Some(plan) = accumulators::Plan::of(func, &around, &uses) {
                    let (insts, versions) = plan.align(func, &around);
                    out.extend(insts);
                    accumulated.push(versions);
                }
            }
            let is_same = out.len() == before;
            changed |= !is_same;
            out.extend(is_same.then_some(inst));
        }
        *func.insts_mut(region) = out;
    }
    reductions::sink_into_versions(func, accumulated);
    changed
}

/// The store that is to be aligned.
struct Plan {
    base: Value,
    /// The index of its first element in the first iteration.
    start: Polynomial,
    /// The bytes of an element: 1, 2, 4 or 8.
    bytes: i64,
    /// The elements of a tile, and the step of the loop.
    elements: i64,
    /// What computes the tiles that the loop takes from in front of it, in order.
    tiles: Vec<Inst>,
    /// Does an op outside of the loop access what the loop stores?
    is_shared: bool,
}

impl Plan {
    /// `None` if the loop may not begin elsewhere, or gains nothing by that.
    fn of(func: &Function, around: &Loop) -> Option<Plan> {
        let (last, insts) = func.region(around.body).insts.split_last()?;
        let is_plain = func.inst(around.inst).results.is_empty() && matches!(func.inst(*last).op, Op::Yield { .. });
        if !is_plain || insts.len() > MOST_OPS {
            return None;
        }
        let mut positions = Positions::new(func, around)?;
        let mut stores = FxHashMap::default();
        let mut plan: Option<Plan> = None;
        for inst in insts {
            let Op::Store { base, offset, .. } = func.inst(*inst).op else { continue };
            func.param_index(func.viewed(base))?;
            if stores.insert(func.viewed(base), (base, offset)).is_some() {
                return None;
            }
            let start = positions.start(offset)?;
            let bytes = func.ty(base).dtype().bytes() as i64;
            if plan.as_ref().is_none_or(|plan| bytes < plan.bytes) {
                plan = Some(Plan { base, start, bytes, elements: positions.elements as i64, tiles: Vec::new(), is_shared: false });
            }
        }
        let plan = plan.filter(|plan| plan.bytes < WIDEST && !plan.start.is_multiple_of(WIDEST / plan.bytes))?;
        let tiles = insts.iter().all(|inst| positions.is_independent(*inst, &stores)).then(|| positions.tiles(insts))??;
        let is_shared = is_accessed_elsewhere(func, around, stores.into_values().map(|(base, _)| base));
        Some(Plan { tiles, is_shared, ..plan })
    }
}

/// Does an op outside of the loop access one of these tensors?
fn is_accessed_elsewhere(func: &Function, around: &Loop, bases: impl Iterator<Item = Value>) -> bool {
    let (stored, mut inside) = (Stored::through(func, bases), FxHashSet::default());
    func.for_each_inst(around.body, &mut |inst| _ = inside.insert(inst));
    let accesses = |inst: Inst| func.inst(inst).op.access().is_some_and(|access| stored.may_alias(func, access.base));
    func.all_insts().into_iter().any(|inst| !inside.contains(&inst) && accesses(inst))
}

/// What the ops of a loop compute at each position, the sum of the index and the position in the tile.
struct Positions<'a> {
    func: &'a Function,
    index: Value,
    lower: Polynomial,
    upper: Polynomial,
    elements: usize,
    inside: SideTable<Value, bool>,
    facts: AffineFacts,
    /// Is a tile the same function of the position in every iteration?
    known: FxHashMap<Value, bool>,
}

impl<'a> Positions<'a> {
    fn new(func: &'a Function, around: &Loop) -> Option<Positions<'a>> {
        let elements = usize::try_from(around.constant_step(func)?).ok().filter(|elements| *elements >= FEWEST)?;
        let mut facts = AffineFacts::new();
        let [lower, upper] = [around.lower, around.upper].map(|bound| facts.get(func, bound).map(|form| form.start.clone()));
        let (lower, upper) = (lower?, upper?);
        let inside = loops::defined_in(func, &[around.body]);
        Some(Positions { func, index: around.index(func), lower, upper, elements, inside, facts, known: FxHashMap::default() })
    }

    /// The index of an access at the first position, if each position has the next index.
    fn start(&mut self, offset: Value) -> Option<Polynomial> {
        let form = self.facts.get(self.func, offset)?;
        let [stride] = &form.strides[..] else { return None };
        let own = Polynomial::scalar(self.index);
        (stride.is(1) && self.is_sum(offset)).then(|| form.start.minus(&own).plus(&self.lower))
    }

    /// Does the op do the same for each position, whatever iteration it is in? `stores` has the pointer and the offset of the store to each tensor.
    fn is_independent(&mut self, inst: Inst, stores: &FxHashMap<Value, (Value, Value)>) -> bool {
        let data = self.func.inst(inst);
        let has_tile = data.results.iter().map(|value| self.func.ty(*value)).all(|ty| !ty.is_tile() || ty.extents()[..] == [self.elements]);
        has_tile
            && match data.op {
                Op::Load { base, offset, mask: Some(mask), other, volatile: false, in_bounds: false, align: 0, .. } => {
                    let tensor = self.func.viewed(base);
                    // A load of what an iteration stores is of the same position, and in front of the store.
                    let is_apart = match stores.get(&tensor) {
                        Some(stored) => *stored == (base, offset),
                        None => self.func.param_index(tensor).is_some(),
                    };
                    is_apart && self.ends_with_loop(mask) && [offset, mask].into_iter().chain(other).all(|value| self.is_positional(value))
                }
                Op::Store { offset, value, mask: Some(mask), in_bounds: false, align: 0, .. } => {
                    self.ends_with_loop(mask) && [offset, value, mask].into_iter().all(|value| self.is_positional(value))
                }
                Op::Broadcast { .. } => true,
                ref op => op.is_elementwise(),
            }
    }

    /// Does a mask exclude all positions from the end of the loop on?
    fn ends_with_loop(&mut self, mask: Value) -> bool {
        let own = Polynomial::scalar(self.index);
        masks::conjuncts(self.func, &mut self.facts, mask).iter().any(|conjunct| match &conjunct.condition {
            Condition::Comparison(comparison) => {
                let strides = &comparison.index.strides;
                let behind = comparison.distance().plus(&own).minus(&self.upper);
                comparison.op == CompareOp::Lt && strides.len() == 1 && strides[0].is(1) && behind.is(0)
            }
            Condition::Uniform(_) | Condition::Unknown => false,
        })
    }

    /// Does a mask exclude nothing but the positions from the end of the loop on?
    fn is_only_end(&mut self, mask: Value) -> bool {
        self.ends_with_loop(mask) && masks::conjuncts(self.func, &mut self.facts, mask).len() == 1
    }

    /// Is it `start + stride * position`, and the rest the same in all iterations?
    fn is_sum(&mut self, value: Value) -> bool {
        let Some(form) = self.facts.get(self.func, value) else { return false };
        let [stride] = &form.strides[..] else { return false };
        let mut scalars = form.start.scalars().chain(stride.scalars());
        scalars.all(|scalar| scalar == self.index || !self.inside[scalar])
            && form.start.coefficient(self.index).is_some_and(|coefficient| coefficient == *stride)
    }

    /// Is the tile a function of the position?
    fn is_positional(&mut self, value: Value) -> bool {
        if let Some(known) = self.known.get(&value) {
            return *known;
        }
        let found = self.is_sum(value) || self.is_computed(value);
        self.known.insert(value, found);
        found
    }

    /// The ops in front of the loop that compute the tiles for these ops, in order; `None` if they are many.
    fn tiles(&self, insts: &[Inst]) -> Option<Vec<Inst>> {
        let func = self.func;
        let mut walk = (FxHashSet::default(), Vec::new());
        for inst in insts {
            let mut operands = Vec::new();
            func.inst(*inst).op.for_each_operand(&mut |operand| operands.push(operand));
            for operand in operands.into_iter().filter(|operand| !self.inside[*operand]) {
                let enter = |(seen, _): &mut (FxHashSet<Value>, Vec<Inst>), value: Value, before: &mut Vec<Value>| {
                    let Def::Result(inst, _) = func.def(value) else { return false };
                    let is_new = func.ty(value).is_tile() && seen.len() <= MOST_OPS && seen.insert(value);
                    func.inst(inst).op.for_each_operand(&mut |operand| before.push(operand));
                    is_new
                };
                let leave = |(_, found): &mut (FxHashSet<Value>, Vec<Inst>), value: Value| {
                    if let Def::Result(inst, _) = func.def(value) {
                        found.push(inst);
                    }
                };
                postorder(&mut walk, operand, enter, leave);
            }
        }
        let is_short = walk.1.len() <= MOST_OPS;
        is_short.then_some(walk.1)
    }

    fn is_computed(&mut self, value: Value) -> bool {
        let Def::Result(inst, _) = self.func.def(value) else { return false };
        match self.func.inst(inst).op {
            Op::Broadcast { x } => self.func.ty(x).is_scalar() && !self.inside[x],
            Op::Const { .. } => true,
            // `is_independent` asks about its operands.
            Op::Load { .. } => self.inside[value],
            Op::Arange { .. } => false,
            // A body is short, so it is not deep.
            ref op if op.is_elementwise() && self.inside[value] => {
                let mut operands = Vec::new();
                op.for_each_operand(&mut |operand| operands.push(operand));
                operands.into_iter().all(|operand| self.is_positional(operand))
            }
            _ => false,
        }
    }
}

/// Makes a version of the loop that begins where the store is aligned. Returns the branch with both.
fn align(func: &mut Function, around: &Loop, plan: &Plan) -> Vec<Inst> {
    let loc = func.inst(around.inst).loc;
    let front = func.add_region();
    let b = &mut Builder::new(func, front, loc);
    let (address, start, bytes) = (b.address(plan.base), plan.start.value(b), b.index(plan.bytes.into()));
    let offset = b.binary(BinaryOp::Mul, start, bytes);
    let address = b.binary(BinaryOp::Add, address, offset);
    let (zero, low_bits) = (b.index(0), b.index((WIDEST - 1).into()));
    let distance = b.binary(BinaryOp::Sub, zero, address);
    let distance = b.binary(BinaryOp::And, distance, low_bits);
    let log = b.index(plan.bytes.trailing_zeros().into());
    let ahead = b.binary(BinaryOp::Shr, distance, log);
    // No position may overflow.
    let most = b.index((i64::MAX - WIDEST - plan.elements).into());
    let fits = b.compare(CompareOp::Le, around.upper, most);
    let runs = b.compare(CompareOp::Lt, around.lower, around.upper);
    let is_fine = b.binary(BinaryOp::And, fits, runs);
    let ahead = b.select(is_fine, ahead, zero);
    let begin = b.binary(BinaryOp::Add, around.lower, ahead);
    let is_aligned = b.compare(CompareOp::Eq, ahead, zero);

    let (_, [given, shifted]) = replace_by_branch(func, around.inst, front, is_aligned, false);
    yield_op(func, given, around.inst);
    let mut aligned = func.inst(around.inst).op.clone();
    copy_regions(func, &mut aligned, &mut Substitution::new());
    if let Op::For { lower, .. } = &mut aligned {
        *lower = begin;
    }
    Front { func, region: shifted, around, elements: WIDEST / plan.bytes, copies: FxHashMap::default() }.fill(ahead, &plan.tiles);
    let aligned = func.make_inst(aligned, [], loc);
    func.insts_mut(shifted).push(aligned);
    if plan.is_shared {
        // Other threads hold the positions now. The emitter inserts barriers for changes of layouts, and the layout is the same.
        func.append(shifted, Op::Barrier {}, [], loc);
    }
    Builder::new(func, shifted, loc).yield_values(Vec::new());
    std::mem::take(func.insts_mut(front))
}

/// The body of a loop for its first few positions.
struct Front<'a> {
    func: &'a mut Function,
    region: Region,
    around: &'a Loop,
    /// The elements of each tile.
    elements: i64,
    copies: FxHashMap<Value, Value>,
}

impl Front<'_> {
    /// Appends the ops for the first `ahead` positions.
    fn fill(&mut self, ahead: Value, tiles: &[Inst]) {
        self.copies.insert(self.around.index(self.func), self.around.lower);
        let loc = self.func.inst(self.around.inst).loc;
        let shape = [ConstExpr::Int(self.elements.into())];
        let b = &mut Builder::new(self.func, self.region, loc);
        let positions = b.op(Op::Arange { start: ConstExpr::Int(0), end: shape[0].clone() }, &[]);
        let ahead = b.broadcast(ahead, &shape);
        let is_ahead = b.compare(CompareOp::Lt, positions, ahead);
        let insts = self.func.region(self.around.body).insts.clone();
        for inst in tiles.iter().chain(&insts[..insts.len() - 1]) {
            self.copy(*inst, is_ahead);
        }
    }

    fn copy(&mut self, inst: Inst, is_ahead: Value) {
        let data = self.func.inst(inst).clone();
        let mut op = data.op;
        op.map_operands(&mut |value| self.copies.get(&value).copied().unwrap_or(value));
        match &mut op {
            Op::Load { mask: Some(mask), .. } | Op::Store { mask: Some(mask), .. } => {
                *mask = Builder::new(self.func, self.region, data.loc).binary(BinaryOp::And, *mask, is_ahead);
            }
            Op::Arange { start: ConstExpr::Int(start), end } => *end = ConstExpr::Int(*start + i128::from(self.elements)),
            _ => {}
        }
        let resized = |value: &Value| {
            let ty = self.func.ty(*value);
            if ty.is_tile() { Type::tile(ty.elem().clone(), vec![ConstExpr::Int(self.elements.into())]) } else { ty.clone() }
        };
        let types: Vec<Type> = data.results.iter().map(resized).collect();
        let copy = self.func.append(self.region, op, types, data.loc);
        let results = self.func.inst(copy).results.clone();
        self.copies.extend(data.results.into_iter().zip(results));
    }
}
