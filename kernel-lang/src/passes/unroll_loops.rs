//! Loop unrolling: the body of the main loop runs as many iterations as `unroll` says, or as many as load enough. A remainder loop runs the rest.
//!
//! ```text
//! ; before
//! ; then canonicalize, cse, dce
//! kernel @k(%y: ptr_mut<i64>, %n: i64) {
//!     %0 = const {value = 0} : i64
//!     %1 = const {value = 1} : i64
//!     for %0, %n, %1 {unroll = 2} (%i: i64) {
//!         store %y, %i, %i
//!         yield
//!     }
//!     return
//! }
//! ; after
//! kernel @k(%y: ptr_mut<i64>, %n: i64) {
//!     %0 = const {value = 0} : i64
//!     %1 = const {value = 1} : i64
//!     %2 = const {value = 9223372036854775806} : i64
//!     %3 = le %n, %2 : bool
//!     %4 = gt %n, %0 : bool
//!     %5 = and %3, %4 : bool
//!     %6 = max %n, %0 : i64
//!     %7 = select %5, %6, %0 : i64
//!     %8 = max %7, %0 : i64
//!     %9 = sub %8, %1 : i64
//!     %10 = add %9, %1 : i64
//!     %11 = const {value = 2} : i64
//!     %12 = and %10, %1 : i64
//!     %13 = sub %10, %12 : i64
//!     for %0, %13, %11 {unroll = 1} (%14: i64) {
//!         store %y, %14, %14
//!         %15 = add %14, %1 : i64
//!         store %y, %15, %15
//!         yield
//!     }
//!     for %13, %n, %1 {num_stages = 1, remainder = true} (%16: i64) {
//!         store %y, %16, %16
//!         yield
//!     }
//!     return
//! }
//! ```
//!
//! Loads of several iterations are then in flight at once, in registers, and the instructions of the loop itself run once for all of them. So the
//! pass also unrolls a loop without `unroll`, if its iterations load little and no thread waits for another in them.
//!
//! The pass runs after [`super::split_loops`] and unrolls only its main loop, because the remainder loop has few iterations.

use rustc_hash::FxHashSet;

use crate::analysis::loops::Loop;
use crate::ir::rewrite::{Changed, Substitution, copy_insts, split_for};
use crate::ir::{BinaryOp, Builder, CompareOp, Function, Inst, Op, Value};

use super::split_full_tiles::WIDEST;

/// The largest number of ops in an unrolled body. A body that would exceed it is repeated less often.
const MAX_OPS: usize = 4000;

/// A loop without `unroll` is unrolled if an iteration has at most that many ops.
const FEW_OPS: usize = 64;

/// The bytes that a program should load in an iteration. With less in flight, a kernel waits for the memory's latency rather than its bandwidth.
const ENOUGH_BYTES: usize = 2048;

/// A loop without `unroll` is repeated at most so many times: up to one less is left for the remainder loops.
const MOST_ITERATIONS: usize = 8;

/// The registers of a thread, of the usual four warps, for what a guarded loop carries and loads. With the indices and masks, it then takes about 32
/// registers, so that as many programs run at once as fit.
const REGISTERS: usize = 19;
/// The threads of a program of the usual four warps.
pub(super) const THREADS: usize = 128;
/// The registers for the address of a row. Addresses of elements in one row differ by constants.
const ADDRESS: usize = 2;
const WARPS: usize = 4;
/// The most iterations of a guarded loop whose loads are issued together.
const MOST_GUARDED_ITERATIONS: usize = 16;

/// The remainder loop of an unrolled loop without `unroll` is unrolled by so many times less: it would wait for memory in each of its iterations.
const FEWER_ITERATIONS: i64 = 4;

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let mut changed = false;
    for region in func.frequent_regions() {
        let mut out = Vec::new();
        for inst in func.region(region).insts.clone() {
            let is_asked = matches!(func.inst(inst).op, Op::For { unroll: Some(_), .. });
            let mut next = Loop::of(func, inst).and_then(|around| Some((factor(func, &around)?, around)));
            changed |= next.is_some();
            while let Some((factor, around)) = next {
                unroll(func, &around, factor, &mut out);
                let fewer = if is_asked { 1 } else { factor / FEWER_ITERATIONS };
                next = Loop::of(func, inst).filter(|_| fewer > 1).map(|remainder| (fewer, remainder));
            }
            out.push(inst);
        }
        *func.insts_mut(region) = out;
    }
    changed
}

fn factor(func: &Function, around: &Loop) -> Option<i64> {
    let Op::For { unroll, num_stages, remainder, guarded, .. } = &func.inst(around.inst).op else { return None };
    let mut ops = 0;
    func.for_each_inst(around.body, &mut |_| ops += 1);
    let wanted = match unroll {
        Some(wanted) => i64::try_from(wanted.as_int()?).ok()?,
        None if *remainder || ops > FEW_OPS || !only_loads(func, around) => return None,
        None if *guarded => enough_for_registers(func, around)?,
        None if num_stages.is_some() => return None,
        None => enough_for_memory(func, around)?,
    };
    Some(wanted.min((MAX_OPS / ops.max(1)) as i64)).filter(|factor| *factor > 1)
}

/// Does an iteration only load, and compute on elements? An exchange between threads waits for all of them: the loads behind it would wait, too.
fn only_loads(func: &Function, around: &Loop) -> bool {
    func.region(around.body).insts.iter().all(|inst| match &func.inst(*inst).op {
        Op::Load { volatile, .. } => !volatile,
        Op::Yield { .. } => true,
        op => op.is_pure() && !op.exchanges(),
    })
}

/// How many iterations load [`ENOUGH_BYTES`]. Wide loads are copied to shared memory some iterations ahead ([`super::prefetch_loads`]). Others are not, nor are
/// loads of what lies at a loaded index, so that twice as many bytes are enough.
fn enough_for_memory(func: &Function, around: &Loop) -> Option<i64> {
    let (mut bytes, mut enough) = (0, ENOUGH_BYTES);
    let mut loaded: FxHashSet<Value> = FxHashSet::default();
    for inst in &func.region(around.body).insts {
        let data = func.inst(*inst);
        let mut waits = false;
        data.op.for_each_operand(&mut |operand| waits |= loaded.contains(&operand));
        if let Op::Load { align, .. } = data.op {
            let ty = func.ty(data.results[0]);
            if ty.is_tile() {
                bytes += ty.numel() * ty.dtype().bytes();
                enough = if waits || i64::from(align) < WIDEST { 2 * ENOUGH_BYTES } else { enough };
            }
            waits = true;
        }
        loaded.extend(data.results.iter().filter(|_| waits));
    }
    (bytes > 0).then(|| (enough / bytes).min(MOST_ITERATIONS) as i64)
}

/// How many iterations of a guarded loop load elements for [`REGISTERS`], beside those of the carried tiles.
fn enough_for_registers(func: &Function, around: &Loop) -> Option<i64> {
    let registers = |inst: &Inst| match func.inst(*inst).op {
        Op::Load { offset, .. } => func.ty(offset).numel().div_ceil(THREADS) + ADDRESS * rows(func, offset),
        _ => 0,
    };
    let loaded: usize = func.region(around.body).insts.iter().map(registers).sum();
    let factor = REGISTERS.saturating_sub(carried_registers(func, around)).checked_div(loaded)?.min(MOST_GUARDED_ITERATIONS);
    (factor > 1).then(|| 1 << factor.ilog2())
}

/// The rows of a tile of several axes of which a thread of the usual four warps has elements, if neighbouring lanes have neighbours of a row.
pub(super) fn rows(func: &Function, value: Value) -> usize {
    match &func.ty(value).extents()[..] {
        [rows @ .., _] if !rows.is_empty() => rows.iter().product::<usize>().div_ceil(WARPS),
        _ => 0,
    }
}

/// The registers of a thread, of the usual four warps, for the tiles that a loop carries.
pub(super) fn carried_registers(func: &Function, around: &Loop) -> usize {
    let tiles = func.region(around.body).params.iter().map(|param| func.ty(*param)).filter(|ty| ty.is_tile());
    tiles.map(|ty| ty.numel().div_ceil(THREADS) * ty.dtype().bytes().div_ceil(4)).sum()
}

/// Appends a loop of several iterations each. The loop itself becomes its remainder loop.
fn unroll(func: &mut Function, around: &Loop, factor: i64, out: &mut Vec<Inst>) {
    let loc = func.inst(around.inst).loc;
    let scratch = func.add_region();
    let b = &mut Builder::new(func, scratch, loc);
    let span = around.span(b);
    // If `factor * step` overflows, the main loop runs no iteration, and the remainder loop runs all.
    let (longest, zero) = (b.index((i64::MAX / factor).into()), b.index(0));
    let fits = b.compare(CompareOp::Le, around.step, longest);
    let span = b.select(fits, span, zero);
    let middle = around.iterations_end(b, span, factor);
    let factor_value = b.index(factor.into());
    let step = b.binary(BinaryOp::Mul, around.step, factor_value);
    out.append(func.insts_mut(scratch));

    let params = func.region(around.body).params.clone();
    let first = func.add_region();
    let mut carried = Vec::new();
    for param in &params {
        let ty = func.ty(*param).clone();
        carried.push(func.add_region_param(first, ty));
    }
    let index = carried.remove(0);
    for iteration in 0..factor {
        let b = &mut Builder::new(func, first, loc);
        let at = if iteration == 0 {
            index
        } else {
            let iteration = b.index(iteration.into());
            let distance = b.binary(BinaryOp::Mul, around.step, iteration);
            b.binary(BinaryOp::Add, index, distance)
        };
        let mut map = Substitution::new();
        for (param, value) in params.iter().zip([at].iter().chain(&carried)) {
            map.insert(*param, *value);
        }
        copy_insts(func, around.body, first, &mut map);
        let last = func.insts_mut(first).pop();
        if let Some(Op::Yield { values }) = last.map(|inst| func.inst(inst).op.clone()) {
            carried = values;
        }
    }
    Builder::new(func, first, loc).yield_values(carried);
    out.extend(split_for(func, around.inst, middle, (first, step), true));
}
