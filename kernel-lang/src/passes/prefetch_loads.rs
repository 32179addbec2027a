//! Prefetching: the loads of a loop run ahead, so that the elements for the next iterations arrive while an iteration computes.
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
//!     %3 = async_buffer {slots = 3} : tile<f32, [512]>
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
//!     async_copy %3, %12, %11, %x, %14 {align = 16}
//!     async_commit_group
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
//!     async_copy %3, %22, %21, %x, %24 {align = 16}
//!     async_commit_group
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
//!         async_copy %3, %31, %36, %x, %38 {align = 16}
//!         async_commit_group
//!         async_wait {pending = 2}
//!         %39 = const {value = 1} : i32
//!         %40 = add %30, %39 : i32
//!         %41 = const {value = 3} : i32
//!         %42 = eq %40, %41 : bool
//!         %43 = const {value = 0} : i32
//!         %44 = select %42, %43, %40 : i32
//!         %45 = broadcast %28 : tile<i64, [512]>
//!         %46 = add %45, %2 : tile<i64, [512]>
//!         %47 = local_load %3, %30 : tile<f32, [512]>
//!         %48 = add %29, %47 : tile<f32, [512]>
//!         yield %48, %44, %30
//!     } : tile<f32, [512]>, i32, i32
//!     store %y, %2, %49 {in_bounds = true}
//!     return
//! }
//! ```
//!
//! The pass prefetches a load if its offset and its mask depend only on the loop index and on values from in front of the loop, and if no
//! op in the loop may write the memory that it reads. Each wide load gets an async buffer in shared memory, which the threads fill by
//! asynchronous copies. These take no registers. The buffer has `num_stages` slots, and an iteration fills the slot that the previous
//! iteration read. The other loads are carried in registers: one tile or scalar for each iteration ahead.
//!
//! Beside wide loads, a scalar and a tile of at most 64 bytes, such as the statistics of some rows, get async buffers, too. In a register, such an element
//! would arrive an iteration early, but the driver's compiler moves the register within that iteration, and so waits for it. Measured on an H200:
//!
//! | kernel | in registers | in async buffers |
//! |---|---:|---:|
//! | gradient of layer norm, rows of 8192 halves: a tile of statistics | 59.1 us | 57.1 us |
//! | gradient of RMS norm, 4096 x 1024 halves, 4 warps: a scalar a row | 17.6 us | 13.9 us |
//!
//! A load that only products use, see [`stage_operands`], gets an async buffer whose slots are `common` to all threads. They copy each element once,
//! and each warp reads the fragments that it multiplies. Such a loop waits first, then copies, and then reads: between the wait and the copies all threads meet, so that the
//! slot which is copied has been read. It has up to four slots, as many as fit beside those of the other CTAs of a multiprocessor, and on each GPU that runs the code.
//!
//! A loop without `num_stages` gets the schedule's `num_stages`, but only as many slots as leave room in shared memory for the most threads
//! that a multiprocessor runs (`BYTES_PER_THREAD`). If it contains another loop, it prefetches nothing. Such a loop carries only scalars in
//! registers, and only if it also has async buffers: waiting for one scalar takes as long as waiting for a tile.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::factors::Factors;
use crate::analysis::loops::{self, Distance, Loop};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::dtype::Dtype;
use crate::ir::rewrite::{Changed, Substitution, substitute};
use crate::ir::{
    BinaryOp, Builder, Cache, CompareOp, ConstExpr, Def, Function, Inst, Op, Reader, Region, SideTable, Stored, Type, Value, postorder,
};
use crate::location::Loc;
use crate::schedule::Schedule;
use crate::target::{Asked, Target};

use super::split_full_tiles::WIDEST;
use super::stage_operands;

/// The most bytes per thread in the async buffers of a loop without `num_stages`. The buffers of 2048 threads, the most that a multiprocessor
/// runs, then take at most 224 KiB, and an H100 has 227 KiB. A copy of 64 bytes a thread is not made ahead: group norm of `f16` takes 49.9 instead of
/// 46.5 us with it (16 x 512 x 64 x 64, H200).
const BYTES_PER_THREAD: u32 = 112;
/// The same if programs share the iterations, as in `range(program_id(0), rows, num_programs(0))`, and reduce a tile in each iteration. Such a grid has few
/// programs on each multiprocessor. They issue no loads while threads wait for each other, so more stages are needed to keep the memory busy. Gradient of RMS norm, 4096 x
/// 1024 halves, 256 programs of 4 warps, H200: 13.9 us with three stages, 13.5 us with four, 13.2 us with five.
const BYTES_PER_THREAD_OF_FEW: u32 = 160;
/// The fewest stages, if shared memory suffices, of a loop that scans a tile in each iteration. Cumulative sums of 8 rows of 100,000 `f32` in blocks of 8192, 8 warps,
/// H200: 21.4 us with one stage, 19.7 us with two.
const FEWEST_STAGES_OF_SCANS: u32 = 2;

/// Runs the pass. The schedule's `num_stages` is the maximum for a loop that does not set its own.
///
/// # Errors
/// If a loop needs more shared memory than a GPU has.
pub fn run(func: &mut Function, target: &Asked, schedule: Schedule) -> Result<Changed, Diagnostics> {
    let mut changed = false;
    // A launch that reports accesses checks each access at its original position.
    let regions = if func.reports { Vec::new() } else { func.regions_under(func.body) };
    let multiplied = if func.reports { SideTable::new() } else { stage_operands::multiplied(func, schedule) };
    for region in regions {
        let mut out = Vec::new();
        for inst in func.region(region).insts.clone() {
            if let Some(around) = Loop::of(func, inst)
                && let Some(plan) = plan(func, &around, &multiplied, target, schedule)?
            {
                let front = prefetch(func, &around, &plan);
                let waiting = take_waiting(func, &mut out, &front);
                out.extend(front.into_iter().chain(waiting));
                changed = true;
            }
            out.push(inst);
        }
        *func.insts_mut(region) = out;
    }
    Ok(changed)
}

/// Takes out of `before`, the ops in front of a loop, the branches at their end that only load, if `front` does not use what they load. A branch
/// waits for its loads, such as weights that every iteration uses, and the copies for the first iterations must not wait with it.
fn take_waiting(func: &Function, before: &mut Vec<Inst>, front: &[Inst]) -> Vec<Inst> {
    let mut used: FxHashSet<Value> = FxHashSet::default();
    front.iter().for_each(|inst| note_operands(func, *inst, &mut used));
    let mut waiting = Vec::new();
    for at in (0..before.len()).rev() {
        let data = func.inst(before[at]);
        let only_loads = only_loads(func, &data.op);
        if only_loads && !data.results.iter().any(|result| used.contains(result)) {
            waiting.insert(0, before.remove(at));
        } else if data.op.has_effects() && !only_loads {
            break;
        } else {
            note_operands(func, before[at], &mut used);
        }
    }
    waiting
}

fn note_operands(func: &Function, inst: Inst, used: &mut FxHashSet<Value>) {
    let op = &func.inst(inst).op;
    let mut note = |value: Value| _ = used.insert(value);
    op.for_each_operand(&mut note);
    op.for_each_region(&mut |region| func.for_each_inst(region, &mut |inner| func.inst(inner).op.for_each_operand(&mut note)));
}

/// Is it a branch that loads and computes element by element, and does nothing else? An exchange would need shared memory beside the buffers.
fn only_loads(func: &Function, op: &Op) -> bool {
    let mut only = matches!(op, Op::If { .. });
    op.for_each_region(&mut |region| {
        func.for_each_inst(region, &mut |inner| {
            let op = &func.inst(inner).op;
            only &= !op.exchanges() && (!op.has_effects() || matches!(op, Op::If { .. } | Op::Yield { .. }));
        });
    });
    only
}

/// The loads to prefetch, and the number of iterations ahead.
struct Plan {
    ahead: u32,
    buffers: Vec<Inst>,
    /// The buffers whose slots are common to all threads.
    common: FxHashSet<Inst>,
    registers: Vec<Inst>,
}

fn plan(
    func: &Function,
    around: &Loop,
    multiplied: &SideTable<Inst, bool>,
    target: &Asked,
    schedule: Schedule,
) -> Result<Option<Plan>, Diagnostics> {
    let data = func.inst(around.inst);
    let Op::For { num_stages, .. } = &data.op else { return Ok(None) };
    let wanted = num_stages.as_deref().and_then(ConstExpr::as_int).and_then(|wanted| u32::try_from(wanted).ok());
    let threads = schedule.threads();
    let early = early_loads(func, around);
    let common: FxHashSet<Inst> = early.iter().copied().filter(|load| multiplied[*load] && is_copied_by_hardware(func, *load)).collect();
    let (mut buffers, others): (Vec<Inst>, Vec<Inst>) =
        early.into_iter().partition(|load| common.contains(load) || fits_buffer(func, *load, threads * schedule.num_ctas));
    let (small, registers): (Vec<Inst>, Vec<Inst>) = others.into_iter().partition(|load| !buffers.is_empty() && is_small(func, *load));
    let (mut registers, scalars): (Vec<Inst>, Vec<Inst>) = registers.into_iter().partition(|load| func.ty(func.result(*load)).is_tile());
    let bytes = buffers
        .iter()
        .filter(|load| !common.contains(load))
        .map(|load| func.ty(func.result(*load)))
        .map(|ty| (ty.numel() as u32 / (threads * schedule.num_ctas)).max(1) * ty.dtype().bytes() as u32);
    let bytes = bytes.fold(0, u32::saturating_add);
    let common_bytes = common.iter().map(|load| bytes_of(func, *load)).fold(0, u32::saturating_add);
    let slot = bytes.saturating_mul(threads).saturating_add(common_bytes);
    let most = Target::ALL.into_iter().map(Target::shared_bytes).max().unwrap_or_default();
    let stages = match wanted {
        Some(wanted) => wanted,
        None if holds_loops(func, around.body) => 1,
        None if !common.is_empty() => {
            registers.clear();
            stage_operands::slots_of_loop(func, around, slot, target, schedule)
        }
        None => {
            registers.clear();
            let holds = |wanted: fn(&Op) -> bool| func.region(around.body).insts.iter().any(|inst| wanted(&func.inst(*inst).op));
            let (reduces, scans) = (holds(|op| matches!(op, Op::Reduce { .. })), holds(|op| matches!(op, Op::Scan { .. })));
            let in_flight = if reduces && is_shared(func, around) { BYTES_PER_THREAD_OF_FEW } else { BYTES_PER_THREAD };
            let is_scan = scans && bytes > 0 && slot.saturating_mul(FEWEST_STAGES_OF_SCANS) <= most;
            let least = if is_scan { FEWEST_STAGES_OF_SCANS } else { 1 };
            schedule.num_stages.min(in_flight.checked_div(bytes).unwrap_or(1).max(least))
        }
    };
    if let Some(needed) = Some(slot.saturating_mul(stages)).filter(|needed| *needed > most) {
        let message = format!("{stages} stages of this loop take {needed} bytes of shared memory, and a GPU has at most {most}");
        return Err(Diagnostic::new(data.loc, message).help("say a smaller `num_stages`, or make the tiles smaller").beyond_gpu().into());
    }
    // Another GPU may have less shared memory.
    let stages = target.ask(|target| stages.min(target.shared_bytes().checked_div(slot).unwrap_or(stages)));
    // Small tiles must not cost a stage. Each thread may hold all elements of a tile.
    let small_bytes: u32 = small.iter().map(|load| bytes_of(func, *load)).sum();
    let with_small = slot.saturating_add(small_bytes.saturating_mul(threads)).saturating_mul(stages);
    if target.ask(|target| with_small <= target.shared_bytes()) {
        buffers.extend(small);
    } else {
        registers.extend(small.into_iter().filter(|load| wanted.is_some() || !func.ty(func.result(*load)).is_tile()));
    }
    registers.extend(scalars);
    if stages < 2 || (buffers.is_empty() && registers.is_empty()) {
        return Ok(None);
    }
    Ok(Some(Plan { ahead: stages - 1, buffers, common, registers }))
}

/// Do the programs of a grid share the iterations of the loop?
fn is_shared(func: &Function, around: &Loop) -> bool {
    let counts_programs = |value: &Value| matches!(func.def_op(*value), Some(Op::NumPrograms { .. }));
    Factors::of(func, around.step).scalars().iter().any(counts_programs)
}

fn holds_loops(func: &Function, body: Region) -> bool {
    let mut found = false;
    func.for_each_inst(body, &mut |inst| found |= matches!(func.inst(inst).op, Op::For { .. } | Op::While { .. }));
    found
}

/// Loads that may run ahead of their iteration, in order.
fn early_loads(func: &Function, around: &Loop) -> Vec<Inst> {
    let mut writes: FxHashSet<Value> = FxHashSet::default();
    let (mut waits, mut overlaps) = (false, false);
    func.for_each_inst(around.body, &mut |inst| match func.inst(inst).op {
        Op::Store { base, .. } => drop(writes.insert(base)),
        // Other threads or programs may write the memory that a later load reads.
        Op::Atomic { .. } | Op::Barrier {} | Op::InlinePtx { volatile: true, .. } => waits = true,
        // The previous launch may write any memory.
        Op::GdcWait {} => overlaps = true,
        _ => {}
    });
    let writes = Stored::through(func, writes);
    let body = &func.region(around.body).insts;
    let mut early: SideTable<Value, bool> = SideTable::new();
    early[around.index(func)] = true;
    let inside = loops::defined_in(func, &[around.body]);
    let mut loads = Vec::new();
    for inst in body {
        let data = func.inst(*inst);
        let mut follows = true;
        data.op.for_each_operand(&mut |value| follows &= early[value] || !inside[value]);
        data.op.for_each_region(&mut |_| follows = false);
        data.results.iter().for_each(|result| early[*result] = follows && data.op.is_pure());
        if let Op::Load { base, volatile: false, .. } = data.op {
            let is_constant = matches!(func.ty(base), Type::Pointer { mutable: false, .. });
            if follows && !overlaps && (is_constant || (!waits && !writes.may_alias(func, base))) {
                loads.push(*inst);
            }
        }
    }
    loads
}

/// Can the hardware copy the loaded tile to shared memory asynchronously, with wide copies?
///
/// An asynchronous copy has at least 4 bytes per thread. For less, the thread would load and store the bytes itself, and wait for them an
/// iteration too early.
fn fits_buffer(func: &Function, load: Inst, threads: u32) -> bool {
    let ty = func.ty(func.result(load));
    let Op::Load { cache, align, partial, shifted, .. } = func.inst(load).op else { return false };
    if partial && !shifted {
        return false;
    }
    ty.is_tile()
        && i64::from(align) == WIDEST
        && (ty.numel() as u32 / threads).max(1) * ty.dtype().bytes() as u32 >= NARROWEST
        && is_copied(cache)
}

/// Can the hardware copy each element of an operand asynchronously?
fn is_copied_by_hardware(func: &Function, load: Inst) -> bool {
    let Op::Load { align, .. } = func.inst(load).op else { return false };
    align.max(func.ty(func.result(load)).dtype().bytes() as u32) >= NARROWEST
}

/// Is it a number or a tile of a few elements, each of which can be copied asynchronously?
fn is_small(func: &Function, load: Inst) -> bool {
    const MOST_BYTES: u32 = 64;
    let Op::Load { cache, partial: false, .. } = func.inst(load).op else { return false };
    bytes_of(func, load) <= MOST_BYTES && func.ty(func.result(load)).dtype().bytes() as u32 >= NARROWEST && is_copied(cache)
}

/// The fewest bytes of an asynchronous copy.
const NARROWEST: u32 = 4;

pub(super) fn is_copied(cache: Cache) -> bool {
    matches!(cache, Cache::Default | Cache::All | Cache::Global)
}

/// The bytes of a loaded tile.
fn bytes_of(func: &Function, load: Inst) -> u32 {
    let ty = func.ty(func.result(load));
    (ty.numel() * ty.dtype().bytes()).try_into().unwrap_or(u32::MAX)
}

/// Rewrites the loop. Returns the ops that precede it.
fn prefetch(func: &mut Function, around: &Loop, plan: &Plan) -> Vec<Inst> {
    let loc = func.inst(around.inst).loc;
    let front = func.add_region();
    let buffer = |func: &mut Function, load: &Inst| {
        let ty = func.ty(func.result(*load)).clone();
        Builder::new(func, front, loc).op(Op::AsyncBuffer { slots: plan.ahead + 1, common: plan.common.contains(load) }, &[ty])
    };
    let buffers = plan.buffers.iter().map(|load| (*load, buffer(func, load))).collect();
    let cx = Cx { around, plan, buffers, front, loc };
    let loaded = first_iterations(func, &cx);

    // In each iteration, the loads of the iteration that is `ahead` iterations later.
    let start = func.add_region();
    let index = around.index(func);
    let distance = around.distance(&mut Builder::new(func, front, loc), plan.ahead);
    let mut iteration = Iteration::at(func, around, (index, distance), start);
    let mut carried = Vec::new();
    if !cx.buffers.is_empty() {
        carried.extend(iteration_buffers(func, &cx, &mut iteration));
    }
    carried.extend(shift_registers(func, &cx, &mut iteration, loaded));
    let ahead = std::mem::take(func.insts_mut(start));
    func.insts_mut(around.body).splice(0..0, ahead);
    carry(func, around, carried);
    std::mem::take(func.insts_mut(front))
}

/// A loop that is being rewritten.
struct Cx<'a> {
    around: &'a Loop,
    plan: &'a Plan,
    /// The async buffer of each load that has one.
    buffers: Vec<(Inst, Value)>,
    /// The ops in front of the loop.
    front: Region,
    loc: Loc,
}

/// An additional value that the loop carries: the initial value, and the value that an iteration yields.
type Carried = (Value, Value);

/// Appends the loads of the first iterations in front of the loop. Returns the values in registers, for each of these loads.
fn first_iterations(func: &mut Function, cx: &Cx<'_>) -> Vec<Vec<Value>> {
    let (around, front) = (cx.around, cx.front);
    let mut loaded: Vec<Vec<Value>> = vec![Vec::new(); cx.plan.registers.len()];
    let runs = around.runs(&mut Builder::new(func, front, cx.loc));
    for number in 0..cx.plan.ahead {
        let distance = around.distance(&mut Builder::new(func, front, cx.loc), number);
        let mut iteration = Iteration::at(func, around, (around.lower, distance), front);
        let b = &mut Builder::new(func, front, cx.loc);
        iteration.on = b.binary(BinaryOp::And, runs, iteration.on);
        let slot = b.constant(ConstExpr::Int(number.into()), Type::scalar(Dtype::I32));
        async_copy(func, cx, &mut iteration, slot);
        for (load, loaded) in cx.plan.registers.iter().zip(&mut loaded) {
            loaded.push(load_ahead(func, &mut iteration, *load));
        }
    }
    loaded
}

/// Makes each iteration copy the tiles of a later iteration and load its own. The loop carries the slots to read and to write.
fn iteration_buffers(func: &mut Function, cx: &Cx<'_>, iteration: &mut Iteration) -> [Carried; 2] {
    let i32 = Type::scalar(Dtype::I32);
    let b = &mut Builder::new(func, cx.front, cx.loc);
    let [first_read, first_write] = [0, cx.plan.ahead].map(|slot| b.constant(ConstExpr::Int(slot.into()), i32.clone()));
    let [read, write] = [0; 2].map(|_| func.add_region_param(cx.around.body, i32.clone()));
    let region = iteration.region;
    let wait = |func: &mut Function, pending: u32| func.append(region, Op::AsyncWait { pending }, [], cx.loc);
    if cx.plan.common.is_empty() {
        async_copy(func, cx, iteration, write);
        wait(func, cx.plan.ahead);
    } else {
        // All threads meet behind the wait: the slot to write has been read.
        wait(func, cx.plan.ahead - 1);
        async_copy(func, cx, iteration, write);
    }
    let b = &mut Builder::new(func, iteration.region, cx.loc);
    let one = b.constant(ConstExpr::Int(1), i32.clone());
    let next = b.binary(BinaryOp::Add, read, one);
    let end = b.constant(ConstExpr::Int((cx.plan.ahead + 1).into()), i32.clone());
    let is_end = b.compare(CompareOp::Eq, next, end);
    let zero = b.constant(ConstExpr::Int(0), i32);
    let next = b.select(is_end, zero, next);
    let buffers: FxHashMap<Inst, Value> = cx.buffers.iter().copied().collect();
    let mut insts = Vec::new();
    for inst in std::mem::take(func.insts_mut(cx.around.body)) {
        if let Some(buffer) = buffers.get(&inst) {
            let mask = partial_mask(func, inst);
            let first = cx.plan.common.contains(&inst).then(|| vec![0; func.ty(*buffer).shape().len()]);
            insts.extend(take_out(func, inst, Op::LocalLoad { buffer: *buffer, slot: read, mask, reader: Reader::Each, first }));
        }
        insts.push(inst);
    }
    *func.insts_mut(cx.around.body) = insts;
    // The slot that this iteration reads is written in the next iteration.
    [(first_read, next), (first_write, read)]
}

/// Makes each iteration load for a later iteration, and use the value that was loaded for it. The loop carries the values in flight, in the
/// order of the iterations; `loaded` are the initial ones.
fn shift_registers(func: &mut Function, cx: &Cx<'_>, iteration: &mut Iteration, loaded: Vec<Vec<Value>>) -> Vec<Carried> {
    let body = cx.around.body;
    let mut carried = Vec::new();
    let mut uses = Substitution::new();
    for (load, firsts) in cx.plan.registers.iter().zip(loaded) {
        let result = func.result(*load);
        let ty = func.ty(result).clone();
        let params: Vec<Value> = firsts.iter().map(|_| func.add_region_param(body, ty.clone())).collect();
        let next = load_ahead(func, iteration, *load);
        uses.insert(result, params[0]);
        carried.extend(firsts.into_iter().zip(params[1..].iter().copied().chain([next])));
    }
    let loads: FxHashSet<Inst> = cx.plan.registers.iter().copied().collect();
    func.insts_mut(body).retain(|inst| !loads.contains(inst));
    substitute(func, body, &uses);
    carried
}

/// Makes the loop carry more values, in the order of the parameters that its body has for them.
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
        *num_stages = Some(ConstExpr::Int(1).into());
    }
}

/// Replaces a load by a `local_load`. An asynchronous copy leaves zeros where the mask does not hold. If the load has a nonzero `other`, a
/// `select` inserts it here, and the function returns the `local_load`, which precedes the `select`.
fn take_out(func: &mut Function, load: Inst, local_load: Op) -> Option<Inst> {
    match func.inst(load).op {
        Op::Load { mask: Some(mask), other: Some(other), .. } if !func.has_zero_bits(other) => {
            let (ty, loc) = (func.ty(func.result(load)).clone(), func.inst(load).loc);
            let taken = func.make_inst(local_load, [ty], loc);
            func.inst_mut(load).op = Op::Select { cond: mask, on_true: func.result(taken), on_false: other };
            Some(taken)
        }
        _ => {
            func.inst_mut(load).op = local_load;
            None
        }
    }
}

/// The mask of a load that may have partial runs.
fn partial_mask(func: &Function, load: Inst) -> Option<Value> {
    match func.inst(load).op {
        Op::Load { mask, partial: true, .. } => mask,
        _ => None,
    }
}

/// Appends the asynchronous copies of an iteration, as one group.
fn async_copy(func: &mut Function, cx: &Cx<'_>, iteration: &mut Iteration, slot: Value) {
    if cx.buffers.is_empty() {
        return;
    }
    for (load, buffer) in &cx.buffers {
        let (op, loc) = (func.inst(*load).op.clone(), func.inst(*load).loc);
        let Op::Load { base, offset, mask, cache, evict, align, partial, .. } = op else { continue };
        let offset = iteration.get(func, offset);
        let mask = mask.map(|mask| iteration.get(func, mask));
        func.append(
            iteration.region,
            Op::AsyncCopy {
                buffer: *buffer,
                slot,
                on: iteration.on,
                base,
                offset,
                mask,
                cache,
                evict,
                align,
                partial,
                reader: Reader::Each,
            },
            [],
            loc,
        );
    }
    func.append(iteration.region, Op::AsyncCommitGroup {}, [], cx.loc);
}

/// Appends the load of an iteration. The load reads nothing if the iteration does not exist.
fn load_ahead(func: &mut Function, iteration: &mut Iteration, load: Inst) -> Value {
    let (mut op, loc, ty) = (func.inst(load).op.clone(), func.inst(load).loc, func.ty(func.result(load)).clone());
    op.map_operands(&mut |value| iteration.get(func, value));
    if let Op::Load { mask, offset, .. } = &mut op {
        let shape = func.ty(*offset).shape().to_vec();
        let b = &mut Builder::new(func, iteration.region, loc);
        let on = b.broadcast(iteration.on, &shape);
        *mask = Some(mask.map_or(on, |mask| b.binary(BinaryOp::And, mask, on)));
    }
    let inst = func.append(iteration.region, op, [ty], loc);
    func.result(inst)
}

/// An iteration that is prefetched: the values that the loop's body computes from the loop index, for another index.
struct Iteration {
    /// Does the iteration exist?
    on: Value,
    region: Region,
    /// The ops of the body, which are copied for the iteration.
    body: FxHashSet<Inst>,
    known: SideTable<Value, Option<Value>>,
}

impl Iteration {
    /// The iteration at `distance` from the iteration with index `from`. Appends its index, and the predicate that it exists, to `region`.
    fn at(func: &mut Function, around: &Loop, (from, distance): (Value, Distance), region: Region) -> Iteration {
        let loc = func.inst(around.inst).loc;
        let b = &mut Builder::new(func, region, loc);
        let index = b.binary(BinaryOp::Add, from, distance.value);
        let on = around.is_left(b, from, distance);
        let mut known = SideTable::new();
        known[around.index(func)] = Some(index);
        Iteration { on, region, body: func.region(around.body).insts.iter().copied().collect(), known }
    }

    fn get(&mut self, func: &mut Function, value: Value) -> Value {
        let enter = |(iteration, func): &mut (&mut Iteration, &mut Function), value: Value, before: &mut Vec<Value>| {
            let is_new =
                iteration.known[value].is_none() && matches!(func.def(value), Def::Result(inst, _) if iteration.body.contains(&inst));
            if is_new && let Some(op) = func.def_op(value) {
                op.for_each_operand(&mut |operand| before.push(operand));
            }
            is_new
        };
        let leave = |(iteration, func): &mut (&mut Iteration, &mut Function), value: Value| {
            if let Def::Result(inst, _) = func.def(value) {
                iteration.copy(func, inst);
            }
        };
        postorder(&mut (&mut *self, func), value, enter, leave);
        self.known[value].unwrap_or(value)
    }

    /// Appends a copy of an op of the body whose operands are known.
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
