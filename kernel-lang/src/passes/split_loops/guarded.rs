//! Guarded loops: a version of a loop for rows that are not aligned, which runs all iterations.
//!
//! ```text
//! if %remainder_loop_is_fast | !%all_are_inside {
//!     the remainder loop
//! } else {
//!     for %lower, %upper, %step {guarded = true} {
//!         %v = load %x, %row + %at {mask = %at < %n, in_bounds = true}
//!     }
//! }
//! ```
//!
//! The remainder loop has the layout of the main loop, in which a thread has neighbours, because both carry the same tiles. Accesses of single elements
//! would touch as many sectors as wide ones, and a branch in each iteration would keep its loads from being issued before those of the iteration before
//! have arrived. A guarded loop has no branch and a layout of its own, in which neighbouring lanes have neighbours. The carried tiles move from one layout
//! to the other in front of it and behind it ([`crate::passes::assign_layouts`]).
//!
//! The elements that the masks keep must be in bounds in every iteration, so that an access tests only its mask, which is the same in all iterations if they
//! are rows. A test of the first iteration and of the last one shows that. Where it fails, the remainder loop tests each access.
//!
//! If an access has no mask, or one that does not end at a number, as in a table of flags, the accesses of the guarded loop are tested one by one.

use crate::analysis::affine::AffineFacts;
use crate::analysis::loops::{self, Loop};
use crate::dtype::Dtype;
use crate::ir::rewrite::{Substitution, copy_regions};
use crate::ir::{BinaryOp, Builder, CompareOp, ConstExpr, Function, Inst, Op, Region, Type, UnaryOp, Value, computation};
use crate::passes::split_full_tiles::{Plan, Sought, WIDEST, has_aligned_runs, narrow_run, plan};
use crate::passes::unroll_loops::{THREADS, carried_registers, rows};

use super::{first_is_full, has_shifted, last_index, last_is_inside, only_grows, scales};

/// Longer bodies have no guarded version.
const MOST_GUARDED_OPS: usize = 200;
/// The most registers of a thread, of the usual four warps, for what the loop carries and loads element by element: all versions share the register count.
const MOST_REGISTERS: usize = 40;
/// The same if the loop carries tiles of several rows, of which the main loop needs as many. Their accesses gain more: each row has ends of its own.
const MOST_REGISTERS_OF_ROWS: usize = 128;
/// The registers for a row of a tile: its address, and what advances that.
const OF_ROW: usize = 3;

/// The guarded version of a loop.
pub(super) struct Guarded {
    /// Is the remainder loop the better version?
    is_remainder: Value,
    /// What holds in each iteration, so that its accesses need only their masks.
    pub(super) masked: Option<Plan>,
}

impl Guarded {
    /// Appends the test that chooses between the guarded loop and the remainder loop. `has_begun` says whether the main loop runs an iteration; then the
    /// remainder loop follows. `run` is that of [`remainder_is_fast`].
    pub(super) fn new(b: &mut Builder<'_>, around: &Loop, plan: &Plan, run: i64, has_begun: Value, facts: &mut AffineFacts) -> Guarded {
        let mut masked = masked_iterations(b.func, around, facts);
        let is_remainder = or_else(b, around, has_begun, |b| {
            let whole = around.span(b);
            let is_single = b.compare(CompareOp::Le, whole, around.step);
            let is_fast = remainder_is_fast(b, plan, run, is_single);
            let Some(plan) = &masked else { return is_fast };
            let scales = scales(plan, around.index(b.func));
            let first = first_is_full(b, plan, &scales);
            let Some(last) = last_index(b, around, facts) else {
                masked = None;
                return is_fast;
            };
            let last = last_is_inside(b, around, plan, last, &scales);
            let are_inside = b.binary(BinaryOp::And, first, last);
            let may_leave = b.unary(UnaryOp::Not, are_inside);
            b.binary(BinaryOp::Or, is_fast, may_leave)
        });
        Guarded { is_remainder, masked }
    }

    /// Makes the remainder loop the first of two versions of what the main loop leaves, and `whole` the second one, as a guarded loop. `in_bounds` is its body,
    /// unless it is that of `whole`.
    pub(super) fn add(self, func: &mut Function, around: &Loop, whole: Op, in_bounds: Option<Region>) {
        let data = func.inst(around.inst).clone();
        let types: Vec<_> = data.results.iter().map(|value| func.ty(*value).clone()).collect();
        let Op::For { lower, upper, step, init, body, .. } = whole else { return };
        let body = in_bounds.unwrap_or(body);
        // Several iterations are unrolled, and load together, unless threads wait for each other in them: then the loads run one iteration ahead.
        let num_stages = Some(ConstExpr::Int(if exchanges(func, body) { 2 } else { 1 }).into());
        let mut guarded = Op::For { lower, upper, step, init, body, num_stages, unroll: None, remainder: false, guarded: true };
        if in_bounds.is_none() {
            copy_regions(func, &mut guarded, &mut Substitution::new());
        }
        let [then_region, else_region] = [data.op, guarded].map(|op| {
            let region = func.add_region();
            let inst = func.append(region, op, types.clone(), data.loc);
            let results = func.inst(inst).results.to_vec();
            Builder::new(func, region, data.loc).yield_values(results);
            region
        });
        func.inst_mut(around.inst).op = Op::If { cond: self.is_remainder, then_region, else_region, rare: false };
    }
}

/// What must hold in each iteration so that its accesses need only their masks. `None` if the first iteration and the last one do not decide that, or if some
/// access has no mask that ends: it may be meant to leave its tensor.
fn masked_iterations(func: &Function, around: &Loop, facts: &mut AffineFacts) -> Option<Plan> {
    let (_, ops) = func.region(around.body).insts.split_last()?;
    let index = around.index(func);
    let inside = loops::defined_in(func, &[around.body]);
    let mut plan = plan(func, ops, facts, &|value| value == index || !inside[value], Sought::ELEMENTS)?;
    plan.has_short_distances = true;
    let has_ends = plan.bounds.iter().all(|bound| !bound.ends.is_empty());
    (has_ends && only_grows(&plan, index)).then_some(plan)
}

/// The bytes of the shortest runs for which the remainder loop moves several elements at once, if a guarded version of the loop is worth its code
/// for rows that are not aligned even to these.
pub(super) fn guarded_run(func: &Function, around: &Loop, plan: &Plan) -> Option<i64> {
    let insts = &func.region(around.body).insts;
    // Shifted tiles are aligned already.
    if has_shifted(func, around) {
        return None;
    }
    let is_small = insts.len() <= MOST_GUARDED_OPS && fits_registers(func, around);
    let has_rows = !plan.aligned.is_empty() || !plan.divisible.is_empty();
    // A program of several CTAs cannot move elements between layouts.
    (is_small && has_rows && !func.is_cluster).then(|| narrow_run(func, plan))?
}

/// Does the loop carry tiles, and need few registers for them and for its loads?
fn fits_registers(func: &Function, around: &Loop) -> bool {
    let insts = &func.region(around.body).insts;
    let elements = |inst: &Inst| match func.inst(*inst).op {
        Op::Load { offset, .. } if func.ty(offset).is_tile() => func.ty(offset).numel().div_ceil(THREADS),
        _ => 0,
    };
    let loaded: usize = insts.iter().map(elements).sum();
    // The loads of the next iteration wait in registers.
    let ahead = if exchanges(func, around.body) { loaded } else { 0 };
    let most_rows = insts.iter().flat_map(|inst| &func.inst(*inst).results).map(|tile| rows(func, *tile)).max().unwrap_or(0);
    let carried = carried_registers(func, around);
    let carries_rows = func.region(around.body).params.iter().any(|tile| rows(func, *tile) > 0);
    let most = if carries_rows { MOST_REGISTERS_OF_ROWS } else { MOST_REGISTERS };
    carried > 0 && carried + loaded + ahead + OF_ROW * most_rows <= most
}

/// Do threads wait for each other in an iteration?
fn exchanges(func: &Function, body: Region) -> bool {
    func.region(body).insts.iter().any(|inst| func.inst(*inst).op.exchanges())
}

/// Appends a test: is `first` true, or what `rest` computes? If the launch does not know the bounds of the loop, it does not know the answer either, and the
/// program computes the rest only where it is needed: the driver's compiler would move it in front of the main loop.
fn or_else(b: &mut Builder<'_>, around: &Loop, first: Value, rest: impl FnOnce(&mut Builder<'_>) -> Value) -> Value {
    let is_known = |bound: Value| computation(b.func, bound, &Op::is_known_at_launch).is_some();
    if is_known(around.lower) && is_known(around.upper) {
        let rest = rest(b);
        return b.binary(BinaryOp::Or, first, rest);
    }
    let [then_region, else_region] = [b.func.add_region(), b.func.add_region()];
    let inner = &mut Builder::new(b.func, then_region, b.loc);
    let yes = inner.constant(ConstExpr::Bool(true), Type::scalar(Dtype::Bool));
    inner.yield_values(vec![yes]);
    let inner = &mut Builder::new(b.func, else_region, b.loc);
    let rest = rest(inner);
    inner.yield_values(vec![rest]);
    let test = Op::If { cond: first, then_region, else_region, rare: false };
    let test = b.func.append(b.region, test, [Type::scalar(Dtype::Bool)], b.loc);
    b.func.result(test)
}

/// Appends a test: is the remainder loop the faster version if the main loop runs no iteration? `is_single` says whether the whole loop has at most one. The
/// remainder loop accesses runs of at least `run` bytes.
///
/// | rows | tile of the first iteration | iterations | version |
/// |---|---|---|---|
/// | aligned | full | any | remainder loop |
/// | aligned | not full, such as at the last columns | one | remainder loop, which may be wide |
/// | aligned | not full | several | guarded loop |
/// | aligned to shorter runs | any | any | remainder loop, of these runs |
/// | not aligned | any | any | guarded loop |
fn remainder_is_fast(b: &mut Builder<'_>, plan: &Plan, run: i64, is_single: Value) -> Value {
    let mut is_wanted = is_single;
    if run < WIDEST {
        let is_aligned = has_aligned_runs(b, plan, WIDEST);
        let is_narrow = b.unary(UnaryOp::Not, is_aligned);
        is_wanted = b.binary(BinaryOp::Or, is_wanted, is_narrow);
    }
    let has_runs = has_aligned_runs(b, plan, run);
    b.binary(BinaryOp::And, has_runs, is_wanted)
}

/// The two regions of an op that chooses between the remainder loop and the guarded loop.
pub(super) fn versions(func: &Function, inst: Inst) -> Option<[Region; 2]> {
    let Op::If { then_region, else_region, .. } = func.inst(inst).op else { return None };
    let is_guarded = func.region(else_region).insts.iter().any(|inst| matches!(func.inst(*inst).op, Op::For { guarded: true, .. }));
    is_guarded.then_some([then_region, else_region])
}
