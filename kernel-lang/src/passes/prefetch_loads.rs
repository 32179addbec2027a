//! Loads of a loop run ahead: while a turn computes, the elements of the next ones are on their way.
//!
//! ```text
//! ; before
//! kernel @k(%x: ptr<f32>, %y: ptr_mut<f32>, %n: i64, %zero: tile<f32, [512]>) {
//!     %0 = const {value = 0} : i64
//!     %1 = const {value = 512} : i64
//!     %2 = arange {start = 0, end = 512} : tile<i64, [512]>
//!     %3 = for %0, %n, %1, %zero {num_stages = 3} (%i: i64, %sum: tile<f32, [512]>) {
//!         %4 = broadcast %i : tile<i64, [512]>
//!         %5 = add %4, %2 : tile<i64, [512]>
//!         %6 = load %x, %5 {in_bounds = true, align = 16} : tile<f32, [512]>
//!         %7 = add %sum, %6 : tile<f32, [512]>
//!         yield %7
//!     } : tile<f32, [512]>
//!     store %y, %2, %3 {in_bounds = true}
//!     return
//! }
//! ; after
//! kernel @k(%x: ptr<f32>, %y: ptr_mut<f32>, %n: i64, %zero: tile<f32, [512]>) {
//!     %0 = const {value = 0} : i64
//!     %1 = const {value = 512} : i64
//!     %2 = arange {start = 0, end = 512} : tile<i64, [512]>
//!     %3 = ring {slots = 3} : tile<f32, [512]>
//!     %4 = lt %0, %n : bool
//!     %5 = const {value = 0} : i64
//!     %6 = add %0, %5 : i64
//!     %7 = sub %n, %0 : i64
//!     %8 = bitcast %7 : u64
//!     %9 = bitcast %5 : u64
//!     %10 = gt %8, %9 : bool
//!     %11 = and %4, %10 : bool
//!     %12 = const {value = 0} : i32
//!     %13 = broadcast %6 : tile<i64, [512]>
//!     %14 = add %13, %2 : tile<i64, [512]>
//!     fetch %3, %12, %11, %x, %14 {align = 16}
//!     fetch_group
//!     %15 = const {value = 512} : i64
//!     %16 = add %0, %15 : i64
//!     %17 = sub %n, %0 : i64
//!     %18 = bitcast %17 : u64
//!     %19 = bitcast %15 : u64
//!     %20 = gt %18, %19 : bool
//!     %21 = and %4, %20 : bool
//!     %22 = const {value = 1} : i32
//!     %23 = broadcast %16 : tile<i64, [512]>
//!     %24 = add %23, %2 : tile<i64, [512]>
//!     fetch %3, %22, %21, %x, %24 {align = 16}
//!     fetch_group
//!     %25 = const {value = 1024} : i64
//!     %26 = const {value = 0} : i32
//!     %27 = const {value = 2} : i32
//!     %49, %50, %51 = for %0, %n, %1, %zero, %26, %27 {num_stages = 1} (%28: i64, %29: tile<f32, [512]>, %30: i32, %31: i32) {
//!         %32 = add %28, %25 : i64
//!         %33 = sub %n, %28 : i64
//!         %34 = bitcast %33 : u64
//!         %35 = bitcast %25 : u64
//!         %36 = gt %34, %35 : bool
//!         %37 = broadcast %32 : tile<i64, [512]>
//!         %38 = add %37, %2 : tile<i64, [512]>
//!         fetch %3, %31, %36, %x, %38 {align = 16}
//!         fetch_group
//!         fetch_wait {pending = 2}
//!         %39 = const {value = 1} : i32
//!         %40 = add %30, %39 : i32
//!         %41 = const {value = 3} : i32
//!         %42 = eq %40, %41 : bool
//!         %43 = const {value = 0} : i32
//!         %44 = select %42, %43, %40 : i32
//!         %45 = broadcast %28 : tile<i64, [512]>
//!         %46 = add %45, %2 : tile<i64, [512]>
//!         %47 = fetched %3, %30 : tile<f32, [512]>
//!         %48 = add %29, %47 : tile<f32, [512]>
//!         yield %48, %44, %30
//!     } : tile<f32, [512]>, i32, i32
//!     store %y, %2, %49 {in_bounds = true}
//!     return
//! }
//! ```
//!
//! A load runs ahead if its offsets and its mask follow from the loop's index and from what stands in front of the loop, and nothing in the
//! loop may write what it reads. Those that are wide wait in a ring in shared memory, whose slots a thread fills by asynchronous copies, and
//! which cost no registers: `num_stages` slots, so that the slot which is filled was read a turn ago. The others are carried in registers, one
//! tile or scalar for each turn ahead.
//!
//! A loop that does not say how many turns are under way has as many as leave a multiprocessor full of threads: a GPU with few programs waits
//! for memory, one with many has no room to waste. There only scalars are carried in registers, and where a ring runs ahead anyway: a turn that
//! waits for one number waits as long.

use std::collections::{HashMap, HashSet};

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::dtype::Dtype;
use crate::ir::rewrite::{Changed, Substitution, substitute};
use crate::ir::{
    BinaryOp, Builder, Cache, CompareOp, ConstExpr, Def, Function, Inst, Op, Region, SideTable, Stored, Type, Value, postorder,
};
use crate::location::Loc;
use crate::schedule::Schedule;
use crate::target::{Asked, Target};

use super::split_full_tiles::WIDEST;
use super::split_loops::Loop;

/// Bytes a thread of the rings of a loop that does not say how many it wants: all the threads that a multiprocessor runs, 2048, then find room
/// in its shared memory.
const BYTES_PER_THREAD: u32 = 96;

/// Runs the pass. The schedule's `num_stages` is the most that a loop has that says nothing itself.
///
/// # Errors
/// A loop asks for more than there is shared memory.
pub fn run(func: &mut Function, target: &Asked, schedule: Schedule) -> Result<Changed, Diagnostics> {
    let mut changed = false;
    // A launch that reports accesses asks about each of them where it stands.
    let regions = if func.reports { Vec::new() } else { func.regions_under(func.body) };
    for region in regions {
        let mut out = Vec::new();
        for inst in func.region(region).insts.clone() {
            if let Some(around) = Loop::of(func, inst)
                && let Some(plan) = plan(func, &around, target, schedule)?
            {
                out.extend(prefetch(func, &around, &plan));
                changed = true;
            }
            out.push(inst);
        }
        *func.insts_mut(region) = out;
    }
    Ok(changed)
}

/// Which loads run ahead, and how many turns.
struct Plan {
    ahead: u32,
    rings: Vec<Inst>,
    registers: Vec<Inst>,
}

fn plan(func: &Function, around: &Loop, target: &Asked, schedule: Schedule) -> Result<Option<Plan>, Diagnostics> {
    let data = func.inst(around.inst);
    let Op::For { num_stages, .. } = &data.op else { return Ok(None) };
    let wanted = num_stages.as_ref().and_then(ConstExpr::as_int).and_then(|wanted| u32::try_from(wanted).ok());
    let (tiles, scalars): (Vec<Inst>, Vec<Inst>) =
        early_loads(func, around).into_iter().partition(|load| func.ty(func.result(*load)).is_tile());
    let threads = schedule.threads();
    let (rings, mut registers): (Vec<Inst>, Vec<Inst>) =
        tiles.into_iter().partition(|load| fits_ring(func, *load, threads * schedule.num_ctas));
    let bytes = rings
        .iter()
        .map(|load| func.ty(func.result(*load)))
        .map(|ty| (ty.numel() as u32 / (threads * schedule.num_ctas)).max(1) * ty.dtype().bytes() as u32);
    let bytes = bytes.fold(0, u32::saturating_add);
    let stages = match wanted {
        Some(wanted) => wanted,
        None if holds_loops(func, around.body) => 1,
        None => {
            registers.clear();
            schedule.num_stages.min(BYTES_PER_THREAD.checked_div(bytes).unwrap_or(1))
        }
    };
    registers.extend(scalars);
    let slot = bytes.saturating_mul(threads);
    let most = Target::ALL.into_iter().map(Target::shared_bytes).max().unwrap_or_default();
    if let Some(needed) = Some(slot.saturating_mul(stages)).filter(|needed| *needed > most) {
        let message = format!("{stages} stages of this loop take {needed} bytes of shared memory, and a GPU has at most {most}");
        return Err(Diagnostic::new(data.loc, message).help("say a smaller `num_stages`, or make the tiles smaller").beyond_gpu().into());
    }
    // What one GPU has room for, another may not.
    let stages = target.ask(|target| stages.min(target.shared_bytes().checked_div(slot).unwrap_or(stages)));
    if stages < 2 || (rings.is_empty() && registers.is_empty()) {
        return Ok(None);
    }
    Ok(Some(Plan { ahead: stages - 1, rings, registers }))
}

fn holds_loops(func: &Function, body: Region) -> bool {
    let mut found = false;
    func.for_each_inst(body, &mut |inst| found |= matches!(func.inst(inst).op, Op::For { .. } | Op::While { .. }));
    found
}

/// Loads that may run ahead of their turn, in order.
fn early_loads(func: &Function, around: &Loop) -> Vec<Inst> {
    let mut writes: HashSet<Value> = HashSet::new();
    let (mut waits, mut overlaps) = (false, false);
    func.for_each_inst(around.body, &mut |inst| match func.inst(inst).op {
        Op::Store { base, .. } => drop(writes.insert(base)),
        // Others may write what is read behind it.
        Op::Atomic { .. } | Op::Barrier {} | Op::InlinePtx { volatile: true, .. } => waits = true,
        // The launch before may write all that is.
        Op::GdcWait {} => overlaps = true,
        _ => {}
    });
    let writes = Stored::through(func, writes);
    let body = &func.region(around.body).insts;
    let mut early: SideTable<Value, bool> = SideTable::new();
    early[around.index(func)] = true;
    let mut inside: SideTable<Value, bool> = SideTable::new();
    func.region(around.body).params.iter().for_each(|param| inside[*param] = true);
    let mut loads = Vec::new();
    for inst in body {
        let data = func.inst(*inst);
        let mut follows = true;
        data.op.for_each_operand(&mut |value| follows &= early[value] || !inside[value]);
        data.op.for_each_region(&mut |_| follows = false);
        for result in &data.results {
            (inside[*result], early[*result]) = (true, follows && data.op.is_pure());
        }
        if let Op::Load { base, volatile: false, .. } = data.op {
            let is_constant = matches!(func.ty(base), Type::Pointer { mutable: false, .. });
            if follows && !overlaps && (is_constant || (!waits && !writes.may_alias(func, base))) {
                loads.push(*inst);
            }
        }
    }
    loads
}

/// Can the hardware copy it to shared memory by itself?
///
/// It copies 4 bytes of a thread at least. With less, the thread would load and store them itself, and wait for them a turn too early.
fn fits_ring(func: &Function, load: Inst, threads: u32) -> bool {
    const NARROWEST: u32 = 4;
    let ty = func.ty(func.result(load));
    let Op::Load { cache, align, .. } = func.inst(load).op else { return false };
    i64::from(align) == WIDEST
        && (ty.numel() as u32 / threads).max(1) * ty.dtype().bytes() as u32 >= NARROWEST
        && matches!(cache, Cache::Default | Cache::All | Cache::Global)
}

/// Rewrites the loop; gives what stands in front of it.
fn prefetch(func: &mut Function, around: &Loop, plan: &Plan) -> Vec<Inst> {
    let loc = func.inst(around.inst).loc;
    let front = func.add_region();
    let ring = |func: &mut Function, load: &Inst| {
        let ty = func.ty(func.result(*load)).clone();
        Builder::new(func, front, loc).op(Op::Ring { slots: plan.ahead + 1 }, &[ty])
    };
    let rings = plan.rings.iter().map(|load| (*load, ring(func, load))).collect();
    let cx = Cx { around, plan, rings, front, loc };
    let loaded = first_turns(func, &cx);

    // In each turn: one that is so many turns ahead.
    let start = func.add_region();
    let index = around.index(func);
    let distance = around.distance(&mut Builder::new(func, front, loc), plan.ahead);
    let mut turn = Turn::at(func, around, (index, distance), start);
    let mut carried = Vec::new();
    if !cx.rings.is_empty() {
        carried.extend(turn_rings(func, &cx, &mut turn));
    }
    carried.extend(shift_registers(func, &cx, &mut turn, loaded));
    let ahead = std::mem::take(func.insts_mut(start));
    func.insts_mut(around.body).splice(0..0, ahead);
    carry(func, around, carried);
    std::mem::take(func.insts_mut(front))
}

/// A loop that is being rewritten.
struct Cx<'a> {
    around: &'a Loop,
    plan: &'a Plan,
    /// The ring of each load that has one.
    rings: Vec<(Inst, Value)>,
    /// What stands in front of the loop.
    front: Region,
    loc: Loc,
}

/// What a loop carries besides: at first, and what a turn yields.
type Carried = (Value, Value);

/// Appends the first turns in front of the loop; gives what they load into registers, for each of the loads.
fn first_turns(func: &mut Function, cx: &Cx<'_>) -> Vec<Vec<Value>> {
    let (around, front) = (cx.around, cx.front);
    let mut loaded: Vec<Vec<Value>> = vec![Vec::new(); cx.plan.registers.len()];
    let runs = around.runs(&mut Builder::new(func, front, cx.loc));
    for number in 0..cx.plan.ahead {
        let distance = around.distance(&mut Builder::new(func, front, cx.loc), number);
        let mut turn = Turn::at(func, around, (around.lower, distance), front);
        let b = &mut Builder::new(func, front, cx.loc);
        turn.on = b.binary(BinaryOp::And, runs, turn.on);
        let slot = b.constant(ConstExpr::Int(number.into()), Type::scalar(Dtype::I32));
        fetch(func, cx, &mut turn, slot);
        for (load, loaded) in cx.plan.registers.iter().zip(&mut loaded) {
            loaded.push(load_ahead(func, &mut turn, *load));
        }
    }
    loaded
}

/// Lets each turn fetch one ahead and take out its own. Carried are the slots to read and to write.
fn turn_rings(func: &mut Function, cx: &Cx<'_>, turn: &mut Turn) -> [Carried; 2] {
    let i32 = Type::scalar(Dtype::I32);
    let b = &mut Builder::new(func, cx.front, cx.loc);
    let [first_read, first_write] = [0, cx.plan.ahead].map(|slot| b.constant(ConstExpr::Int(slot.into()), i32.clone()));
    let [read, write] = [0; 2].map(|_| func.add_region_param(cx.around.body, i32.clone()));
    fetch(func, cx, turn, write);
    let b = &mut Builder::new(func, turn.region, cx.loc);
    b.func.append(turn.region, Op::FetchWait { pending: cx.plan.ahead }, [], cx.loc);
    let one = b.constant(ConstExpr::Int(1), i32.clone());
    let next = b.binary(BinaryOp::Add, read, one);
    let end = b.constant(ConstExpr::Int((cx.plan.ahead + 1).into()), i32.clone());
    let is_end = b.compare(CompareOp::Eq, next, end);
    let zero = b.constant(ConstExpr::Int(0), i32);
    let next = b.select(is_end, zero, next);
    let rings: HashMap<Inst, Value> = cx.rings.iter().copied().collect();
    let mut insts = Vec::new();
    for inst in std::mem::take(func.insts_mut(cx.around.body)) {
        if let Some(ring) = rings.get(&inst) {
            insts.extend(take_out(func, inst, Op::Fetched { ring: *ring, slot: read }));
        }
        insts.push(inst);
    }
    *func.insts_mut(cx.around.body) = insts;
    // What was read now is written in the next turn.
    [(first_read, next), (first_write, read)]
}

/// Lets each turn load one ahead and use what was loaded for it. Carried is what is under way, `loaded` at first, in the order of the turns.
fn shift_registers(func: &mut Function, cx: &Cx<'_>, turn: &mut Turn, loaded: Vec<Vec<Value>>) -> Vec<Carried> {
    let body = cx.around.body;
    let mut carried = Vec::new();
    let mut uses = Substitution::new();
    for (load, firsts) in cx.plan.registers.iter().zip(loaded) {
        let result = func.result(*load);
        let ty = func.ty(result).clone();
        let params: Vec<Value> = firsts.iter().map(|_| func.add_region_param(body, ty.clone())).collect();
        let next = load_ahead(func, turn, *load);
        uses.insert(result, params[0]);
        carried.extend(firsts.into_iter().zip(params[1..].iter().copied().chain([next])));
    }
    let loads: HashSet<Inst> = cx.plan.registers.iter().copied().collect();
    func.insts_mut(body).retain(|inst| !loads.contains(inst));
    substitute(func, body, &uses);
    carried
}

/// Lets the loop carry more values. Their order is that of the parameters which its body has for them.
fn carry(func: &mut Function, around: &Loop, carried: Vec<Carried>) {
    let (firsts, nexts): (Vec<Value>, Vec<Value>) = carried.into_iter().unzip();
    let last = func.terminator(around.body);
    if let Op::Yield { values } = &mut func.inst_mut(last).op {
        values.extend(nexts);
    }
    for first in &firsts {
        let ty = func.ty(*first).clone();
        func.add_result(around.inst, ty);
    }
    if let Op::For { init, num_stages, .. } = &mut func.inst_mut(around.inst).op {
        init.extend(firsts);
        *num_stages = Some(ConstExpr::Int(1));
    }
}

/// Puts what comes out of a ring in the place of a load. A copy leaves zeros where the mask does not hold; where others are wanted, they are put
/// there now, and what takes the tile out comes in front.
fn take_out(func: &mut Function, load: Inst, fetched: Op) -> Option<Inst> {
    match func.inst(load).op {
        Op::Load { mask: Some(mask), other: Some(other), .. } if !is_zero(func, other) => {
            let (ty, loc) = (func.ty(func.result(load)).clone(), func.inst(load).loc);
            let taken = func.make_inst(fetched, [ty], loc);
            func.inst_mut(load).op = Op::Select { cond: mask, on_true: func.result(taken), on_false: other };
            Some(taken)
        }
        _ => {
            func.inst_mut(load).op = fetched;
            None
        }
    }
}

fn is_zero(func: &Function, value: Value) -> bool {
    match func.def_op(value) {
        Some(Op::Const { value }) => matches!(value, ConstExpr::Int(0)) || matches!(value, ConstExpr::Float(zero) if zero.to_bits() == 0),
        _ => false,
    }
}

/// Appends the fetches of a turn, as a group.
fn fetch(func: &mut Function, cx: &Cx<'_>, turn: &mut Turn, slot: Value) {
    if cx.rings.is_empty() {
        return;
    }
    for (load, ring) in &cx.rings {
        let (op, loc) = (func.inst(*load).op.clone(), func.inst(*load).loc);
        let Op::Load { base, offset, mask, cache, evict, align, .. } = op else { continue };
        let offset = turn.get(func, offset);
        let mask = mask.map(|mask| turn.get(func, mask));
        func.append(turn.region, Op::Fetch { ring: *ring, slot, on: turn.on, base, offset, mask, cache, evict, align }, [], loc);
    }
    func.append(turn.region, Op::FetchGroup {}, [], cx.loc);
}

/// Appends the load of a turn, which reads nothing unless there is such a turn.
fn load_ahead(func: &mut Function, turn: &mut Turn, load: Inst) -> Value {
    let (mut op, loc, ty) = (func.inst(load).op.clone(), func.inst(load).loc, func.ty(func.result(load)).clone());
    op.map_operands(&mut |value| turn.get(func, value));
    if let Op::Load { mask, offset, .. } = &mut op {
        let shape = func.ty(*offset).shape().to_vec();
        let b = &mut Builder::new(func, turn.region, loc);
        let on = b.broadcast(turn.on, &shape);
        *mask = Some(mask.map_or(on, |mask| b.binary(BinaryOp::And, mask, on)));
    }
    let inst = func.append(turn.region, op, [ty], loc);
    func.result(inst)
}

/// A turn that runs ahead: what the loop's body computes from its index, for another index.
struct Turn {
    /// Is there such a turn?
    on: Value,
    region: Region,
    /// The ops of the body, which a turn computes anew.
    body: HashSet<Inst>,
    known: SideTable<Value, Option<Value>>,
}

impl Turn {
    /// The one at that distance from a turn whose index is `from`. Appends its index, and whether there is one, to `region`.
    fn at(func: &mut Function, around: &Loop, (from, distance): (Value, Distance), region: Region) -> Turn {
        let loc = func.inst(around.inst).loc;
        let b = &mut Builder::new(func, region, loc);
        let index = b.binary(BinaryOp::Add, from, distance.value);
        let on = around.is_left(b, from, distance);
        let mut known = SideTable::new();
        known[around.index(func)] = Some(index);
        Turn { on, region, body: func.region(around.body).insts.iter().copied().collect(), known }
    }

    fn get(&mut self, func: &mut Function, value: Value) -> Value {
        let enter = |(turn, func): &mut (&mut Turn, &mut Function), value: Value, before: &mut Vec<Value>| {
            let is_new = turn.known[value].is_none() && matches!(func.def(value), Def::Result(inst, _) if turn.body.contains(&inst));
            if is_new && let Some(op) = func.def_op(value) {
                op.for_each_operand(&mut |operand| before.push(operand));
            }
            is_new
        };
        let leave = |(turn, func): &mut (&mut Turn, &mut Function), value: Value| {
            if let Def::Result(inst, _) = func.def(value) {
                turn.copy(func, inst);
            }
        };
        postorder(&mut (&mut *self, func), value, enter, leave);
        self.known[value].unwrap_or(value)
    }

    /// Appends an op of the body whose operands are known.
    fn copy(&mut self, func: &mut Function, inst: Inst) {
        let data = func.inst(inst).clone();
        let mut op = data.op;
        op.map_operands(&mut |operand| self.known[operand].unwrap_or(operand));
        let types: Vec<Type> = data.results.iter().map(|value| func.ty(*value).clone()).collect();
        let copy = func.append(self.region, op, types, data.loc);
        for (old, new) in data.results.iter().zip(func.inst(copy).results.clone()) {
            self.known[*old] = Some(new);
        }
    }
}

impl Loop {
    /// Has the loop a turn?
    fn runs(&self, b: &mut Builder<'_>) -> Value {
        let has_room = b.compare(CompareOp::Lt, self.lower, self.upper);
        if self.constant_step(b.func).is_some() {
            return has_room;
        }
        let zero = b.index(0);
        let moves = b.compare(CompareOp::Gt, self.step, zero);
        b.binary(BinaryOp::And, has_room, moves)
    }

    /// How far the index moves in so many turns.
    fn distance(&self, b: &mut Builder<'_>, turns: u32) -> Distance {
        if let Some(distance) = self.constant_step(b.func).and_then(|step| step.checked_mul(turns.into())) {
            return Distance { value: b.index(distance.into()), fits: None };
        }
        let turns = b.index(turns.into());
        let value = b.binary(BinaryOp::Mul, self.step, turns);
        let (step, turns) = (b.bitcast(self.step, Dtype::U64), b.bitcast(turns, Dtype::U64));
        let high = b.binary(BinaryOp::MulHigh, step, turns);
        let zero = b.int_like(0, high);
        Distance { value, fits: Some(b.compare(CompareOp::Eq, high, zero)) }
    }

    /// Is there a turn at that distance from one at `index`?
    fn is_left(&self, b: &mut Builder<'_>, index: Value, distance: Distance) -> Value {
        // From an index below `upper` what is left is positive, also where it does not fit 63 bits.
        let left = b.binary(BinaryOp::Sub, self.upper, index);
        let (left, far) = (b.bitcast(left, Dtype::U64), b.bitcast(distance.value, Dtype::U64));
        let is_left = b.compare(CompareOp::Gt, left, far);
        distance.fits.map_or(is_left, |fits| b.binary(BinaryOp::And, is_left, fits))
    }
}

/// A distance of indices, of which 64 bits are told.
#[derive(Clone, Copy)]
struct Distance {
    value: Value,
    /// Are there no others, if that is not sure?
    fits: Option<Value>,
}
